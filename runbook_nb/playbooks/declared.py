"""What a playbook asks for as rules about an event log, in the words of DECLARE."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from runbook_nb._frozen import Immutable
from runbook_nb._value import frozen
from runbook_nb.errors import PlaybookDefinitionError

if TYPE_CHECKING:
    from runbook_nb.playbooks.eventlog import Activity
    from runbook_nb.playbooks.model import Playbook, PlaybookStep


@frozen
class DeclareRule(Immutable):
    """One rule about the activities of a run.

    Attributes
    ----------
    template : {"existence", "precedence"}
        ``existence(a)``: a happens. ``precedence(a, b)``: b happens only after a has.
    activities : tuple of str
        What it is about.

    Examples
    --------
    >>> str(DeclareRule(template="precedence", activities=("detect", "contain")))
    'precedence(detect, contain)'
    """

    template: Literal["existence", "precedence"]
    activities: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.template}({', '.join(self.activities)})"

    def holds(self, trace: Sequence[str]) -> bool:
        """Say whether it holds of what happened in a run, in that order.

        Examples
        --------
        >>> DeclareRule(template="precedence", activities=("a", "b")).holds(["b", "a"])
        False
        """
        first, *then = self.activities
        if self.template == "existence":
            return first in trace
        return all(
            activity not in trace or first in trace[: trace.index(activity)] for activity in then
        )


def declare_rules(playbook: Playbook, *, activity: Activity = "step") -> tuple[DeclareRule, ...]:
    """Give what a playbook asks of the order of steps or tools as rules about an event log.

    A step that has to be done exists; it, and every optional step after it, is preceded by the
    step before it that has to be done. Nothing is said of an order where none is asked for, and
    nothing of a tool that may be called earlier all the same.

    Parameters
    ----------
    playbook : Playbook
    activity : {"step", "tool"}
        What the log that they are about names in ``concept:name``.

    Examples
    --------
    >>> from runbook_nb.playbooks.model import Playbook, PlaybookStep
    >>> steps = [PlaybookStep(id=name, description="") for name in ("detect", "contain")]
    >>> for rule in declare_rules(Playbook(id="ir", name="IR", steps=steps)):
    ...     print(rule)
    existence(detect)
    existence(contain)
    precedence(detect, contain)
    """
    if activity == "step":
        found = _rules([(step, (step.id,)) for step in playbook.steps], playbook.strict_sequence)
    elif activity == "tool":
        named = [(step, tuple(step.expected_tools)) for step in playbook.steps]
        found = _rules(named, playbook.strict_sequence, early=playbook.allow_extra_tools)
    else:
        raise PlaybookDefinitionError(
            f"there are no rules about {activity!r}",
            code="unknown_activity",
            where="activity",
            fix="use 'step' or 'tool'",
        )
    return tuple(dict.fromkeys(found))


def _rules(
    steps: Sequence[tuple[PlaybookStep, tuple[str, ...]]], ordered: bool, *, early: bool = False
) -> Iterator[DeclareRule]:
    """Give the rules of steps with their activities; early ones may come before their step."""
    for step, names in steps:
        if step.required:
            for name in names:
                yield DeclareRule(template="existence", activities=(name,))
    before: Sequence[str] = ()
    met: set[str] = set()
    is_open = False
    of = {step.id: names for step, names in reversed(steps)}
    for step, names in () if early else steps:
        first = [
            *(before if ordered else ()),
            *(one for key in step.requires for one in of.get(key, ())),
        ]
        for name in names:
            if name not in met:
                yield from (_precedence(one, name) for one in dict.fromkeys(first) if one != name)
        met |= {*names}
        # While a step that lists no tools is current, tools of later steps may be called.
        is_open = is_open or (not names and step.kind is None)
        if step.required and names and not is_open:
            before = names


def _precedence(first: str, then: str) -> DeclareRule:
    return DeclareRule(template="precedence", activities=(first, then))
