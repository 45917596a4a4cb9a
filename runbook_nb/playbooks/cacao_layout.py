"""The line that is made of the graph of a CACAO document, and what it does to what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from runbook_nb._text import at
from runbook_nb._value import frozen
from runbook_nb.playbooks.cacao import FOLLOWING, branches_of, next_of
from runbook_nb.playbooks.cacao_check import reachable
from runbook_nb.playbooks.cacao_losses import Lost
from runbook_nb.playbooks.problems import FileProblem, told

#: How deep conditions, loops and parallel parts may lie in one another.
MAX_NESTING: Final = 50

_STEPS: Final = ("action", "playbook-action")
_OPTIONAL: Final = ("if-condition", "while-condition", "switch-condition")


@frozen
class Branch:
    """Where a step lies: in one branch of a step that has several.

    Attributes
    ----------
    key, type, name : str
        The step that has branches.
    branch : str
        Which of them it is (``"on_true"``, ``"cases.high"``).
    condition : str or None
        What is asked there.
    """

    key: str
    type: str
    name: str
    branch: str
    condition: str | None

    @property
    def is_optional(self) -> bool:
        """Whether there is another way than this one."""
        return self.type in _OPTIONAL

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form."""
        made = {"type": self.type, "id": self.key, "branch": self.branch}
        if self.name:
            made["name"] = self.name
        return made if self.condition is None else {**made, "condition": self.condition}


class Layout:
    """One document, its steps laid out one after the other.

    Parameters
    ----------
    document : mapping
        One in which nothing is wrong.
    lost : Lost
        Is told what changes.

    Attributes
    ----------
    steps : list of (str, tuple of Branch)
        The ids of what a playbook has as steps, in order, and the branches each lies in.
    beside : dict
        The other steps of the document, whole.
    problem : FileProblem or None
        Why it cannot be laid out.

    Examples
    --------
    >>> workflow = {
    ...     "s": {"type": "start", "on_completion": "a"},
    ...     "a": {"type": "action", "name": "Look", "on_completion": "e"},
    ...     "e": {"type": "end"},
    ... }
    >>> Layout({"workflow_start": "s", "workflow": workflow}, Lost()).steps
    [('a', ())]
    """

    def __init__(self, document: Mapping[str, Any], lost: Lost) -> None:
        self._document = document
        self._workflow: Mapping[str, Any] = document["workflow"]
        self._lost = lost
        self._seen: set[str] = set()
        self.steps: list[tuple[str, tuple[Branch, ...]]] = []
        self.beside: dict[str, Any] = {}
        self.problem: FileProblem | None = None
        self._follow(document["workflow_start"], (), frozenset(), frozenset())
        self._leave_out()

    def name(self, key: str) -> str:
        """Give what a step is called in reports."""
        name: str = self._workflow[key].get("name") or key
        return name

    @property
    def loops(self) -> list[FileProblem]:
        """The loops that are come to, as what is wrong with them."""
        return [
            FileProblem(
                code="loop",
                where=at("workflow", key),
                message=f"{told(self.name(key))} is gone through again and again",
            )
            for key in self._workflow
            if key in self._seen and self._workflow[key]["type"] == "while-condition"
        ]

    def _follow(
        self,
        first: str | None,
        around: tuple[Branch, ...],
        stops: frozenset[str | None],
        later: frozenset[str],
    ) -> None:
        """Lay out what follows a step, until it ends, stops or comes to what stands later."""
        key = first
        while key is not None and key not in stops:
            step = self._workflow[key]
            kind = step["type"]
            if kind == "end":
                self._seen.add(key)
                self._keep_whole(key, step, {"type"})
                return
            if key in self._seen or key in later:
                self._lost.add("changed", "join", self.name(key), "it is come to by several ways")
                return
            self._seen.add(key)
            if kind == "start":
                self._keep_whole(key, step, {"type", *FOLLOWING})
            elif kind in _STEPS:
                self.steps.append((key, around))
            else:
                key = self._spread(key, step, around, stops, later)
                continue
            key = next_of(step)

    def _spread(
        self,
        key: str,
        step: Mapping[str, Any],
        around: tuple[Branch, ...],
        stops: frozenset[str | None],
        later: frozenset[str],
    ) -> str | None:
        """Lay out the branches of a step one after the other, and give what follows them."""
        if len(around) == MAX_NESTING:
            self.problem = FileProblem(
                code="too_deep",
                where=at("workflow", key),
                message=f"branches lie in one another deeper than {MAX_NESTING} levels",
                fix="take parts out into playbooks of their own",
            )
            return None
        kind = step["type"]
        self._lost.add("changed", kind, self.name(key))
        self.beside[key] = step
        heads = branches_of(step)
        after = next_of(step) or self._meeting([head for _, head in heads])
        if after is not None:  # what is come to in any case stands behind the branches
            later |= reachable(after, self._workflow)
        for where, head in heads:
            branch = Branch(
                key=key,
                type=kind,
                name=step.get("name", ""),
                branch=where,
                condition=step.get("condition", step.get("switch")),
            )
            self._follow(head, (*around, branch), stops | {after, key}, later)
        return after

    def _meeting(self, heads: Sequence[str]) -> str | None:
        """Find the step at which all branches come together again, where there is one."""
        ways = [reachable(head, self._workflow) for head in heads]
        common = {key for key in set.intersection(*ways) if self._workflow[key]["type"] != "end"}
        return next((key for key in common if common <= reachable(key, self._workflow)), None)

    def _leave_out(self) -> None:
        first = [self._document["workflow_start"], self._document.get("workflow_exception")]
        ways = [reachable(key, self._workflow, failing=True) for key in first if key is not None]
        failing = set().union(*ways)
        for key, step in self._workflow.items():
            if key in self._seen or step == {"type": "end"}:
                continue
            self.beside[key] = step
            note = "it is come to on a failure only" if key in failing else "nothing leads to it"
            self._lost.add("left_out", step["type"], self.name(key), note)

    def _keep_whole(self, key: str, step: Mapping[str, Any], usual: set[str]) -> None:
        if set(step) - usual:
            self.beside[key] = step
            self._lost.add("kept", step["type"], self.name(key))

    @property
    def is_unordered(self) -> bool:
        """Whether each step is a branch of one parallel step, and there is nothing else."""
        around = [branches for _, branches in self.steps]
        if len(around) < 2 or any(len(branches) != 1 for branches in around):
            return False
        places = {(one.key, one.branch) for (one,) in around}
        kinds = {(one.key, one.type) for (one,) in around}
        return len(places) == len(around) and [kind for _, kind in kinds] == ["parallel"]
