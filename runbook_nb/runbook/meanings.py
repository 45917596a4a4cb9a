"""What each verdict means, harvested from the rules that ran and the chart that was declared.

Bridge layer. A meaning is never handed in by a caller: it is a branch's declared description, a
rule's label that a decision carried, or the label of a default. Nothing is made up from a branch
id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from runbook_nb._text import did_you_mean, listed
from runbook_nb.record.structure import Structure

if TYPE_CHECKING:
    from runbook_nb.record.run import Run


def resolve_decider(structure: Structure, decider: str) -> tuple[frozenset[str], dict[str, str]]:
    """Find the configured decider in a structure.

    Parameters
    ----------
    structure : Structure
        As it was declared, before the run.
    decider : str
        Its id or its name.

    Returns
    -------
    spellings : frozenset of str
        What a decision's stage may be called: the word itself, and the id and name of the node.
    declared : dict
        Branch -> its description, else its name when that differs from the branch id.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> chart = (flow_chart("c", print, id="a").add_decider("Posture", lambda s: "x", id="posture")
    ...     .branch("x", print, description="all is well").end().build())
    >>> spellings, declared = resolve_decider(chart.structure, "posture")
    >>> sorted(spellings), declared
    (['Posture', 'posture'], {'x': 'all is well'})
    """
    spellings = {decider}
    declared: dict[str, str] = {}
    if any(node.kind == "step" for node in structure.nodes):
        from runbook_nb.record.steps import STEP_DECIDER, STEP_VERDICTS

        declared.update(STEP_VERDICTS if decider == STEP_DECIDER else {})
    for node in structure.find(decider, "decider"):
        spellings |= {node.id, node.name}
        for branch in structure.branches_of(node.key):
            if branch.branch is not None and not branch.added:
                # A branch without a name of its own bears its word as name, which says nothing.
                own = branch.name if branch.name != branch.branch else ""
                meaning = branch.description or own
                if meaning.strip():
                    declared.setdefault(branch.branch, meaning)
    return frozenset(spellings), declared


def observed_meanings(
    decisions: Iterable[tuple[str, Iterable[tuple[str, str]]]], spellings: frozenset[str]
) -> dict[str, str]:
    """Harvest meanings from decisions in order; a later decision overrides an earlier one.

    Parameters
    ----------
    decisions : iterable of (str, iterable of (str, str))
        The decider's name or id, possibly behind a path, with the (branch, label) pairs its
        evidence carried: the default's first, a rule's last.

    Examples
    --------
    >>> observed_meanings([("each~0/posture", [("fresh", "no rule"), ("stale", "old")])],
    ...                   frozenset({"posture"}))
    {'fresh': 'no rule', 'stale': 'old'}
    """
    observed: dict[str, str] = {}
    for name, pairs in decisions:
        if name.rpartition("/")[2] in spellings:
            for branch, label in pairs:
                if label.strip():
                    observed[branch] = label
    return observed


def compose_meanings(
    declared: Mapping[str, str], observed: Mapping[str, str]
) -> dict[str, str] | None:
    """Lay observed meanings over declared ones; None when there is none at all.

    Examples
    --------
    >>> compose_meanings({"fresh": "F", "stale": "S"}, {"fresh": "no rule"})
    {'fresh': 'no rule', 'stale': 'S'}
    """
    return {**declared, **observed} or None


def meanings_of(run: Run, declared_in: Structure, decider: str) -> dict[str, str] | None:
    """Give the meanings of a run's verdicts.

    Decisions count in the order they were made. Of many equal ones only the first and the last
    matter: the first gives a branch its place in the map, the last its words.
    """
    text = run.redactor.text
    spellings, declared = resolve_decider(declared_in, decider)
    order = [
        (stage.name, path.meanings) for each in run.walk.decision_paths() for stage, path in each
    ]
    names = {name for name, _ in order}
    if names and not names & spellings and not any(declared_in.find(decider, "decider")):
        # Nothing is harvested then, and nobody would see why.
        fix = did_you_mean(decider, names) or f"those that decided are {listed(sorted(names))}"
        words = f"verdicts.decider {decider!r} named no decider of {run.name}; {fix}"
        from logging import getLogger

        getLogger("runbook_nb").warning("%s", text(words))
    observed = {text(b): text(m) for b, m in observed_meanings(order, spellings).items()}
    return compose_meanings({text(b): text(m) for b, m in declared.items()}, observed)
