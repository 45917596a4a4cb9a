"""A playbook as a graph: what could happen, in the form that charts have too.

Each step is a node with what is expected of it; the order of the steps is its edges. Everything
that draws, explores or files a procedure reads this and nothing else of a playbook.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from runbook_nb._frozen import FrozenDict, freeze
from runbook_nb._text import clip
from runbook_nb.playbooks.limits import MAX_ID
from runbook_nb.playbooks.model import Playbook, PlaybookStep
from runbook_nb.playbooks.policy import EnforcementPolicy
from runbook_nb.playbooks.skills import effective_probes, effort_of, unresolved_skills
from runbook_nb.record.structure import Structure, StructureEdge, StructureNode


def structure_of(
    playbook: Playbook,
    skills: Mapping[str, Any] | None = None,
    policy: EnforcementPolicy | None = None,
) -> Structure:
    """Give a playbook as a graph of its steps.

    Parameters
    ----------
    playbook : Playbook
    skills : mapping, optional
        The skills its steps use, as objects or as a plan's first event has them. Without them
        nothing is said of skills that nobody gave.
    policy : EnforcementPolicy, optional
        Says whether a skill's numbers of calls hold.

    Examples
    --------
    >>> steps = [PlaybookStep(id=name, description="Do it.") for name in ("look", "act")]
    >>> drawn = structure_of(Playbook(id="ir", name="Incident response", steps=steps))
    >>> [(node.key, node.detail["place"]) for node in drawn.nodes], len(drawn.edges)
    ([('look', 1), ('act', 2)], 1)
    """
    inherit = policy is not None and policy.inherit_effort
    keys = step_keys(playbook)
    nodes = tuple(
        StructureNode(
            key=key,
            id=step.id,
            name=clip(step.id, MAX_ID) or f"step {place}",
            kind="step",
            description=step.description or None,
            detail=FrozenDict(_detail(step, place, skills, inherit=inherit)),
        )
        for place, (key, step) in enumerate(zip(keys, playbook.steps, strict=True), 1)
    )
    edges = tuple(
        StructureEdge(source=source, target=target, kind="next")
        for source, target in pairwise(keys)
    )
    return Structure(name=playbook.id, nodes=nodes, edges=edges)


def step_keys(playbook: Playbook) -> list[str]:
    """Give the key of each step: its id, numbered where an earlier step has the same.

    Examples
    --------
    >>> twice = [PlaybookStep(id="look", description="") for _ in range(2)]
    >>> step_keys(Playbook(id="ir", name="IR", steps=twice))
    ['look', 'look (2)']
    """
    keys: dict[str, None] = {}
    for place, step in enumerate(playbook.steps, 1):
        name = key = step.id or f"step {place}"
        again = 1
        while key in keys:
            again += 1
            key = f"{name} ({again})"
        keys[key] = None
    return list(keys)


def phase_of(step: PlaybookStep) -> str:
    """Give the title of the group of steps a step was declared in; empty where it was in none.

    Examples
    --------
    >>> phase_of(PlaybookStep(id="a", description="", metadata={"group": {"title": "Triage"}}))
    'Triage'
    """
    group = step.metadata.get("group")
    if isinstance(group, Mapping):
        group = group.get("title") or group.get("goal") or group.get("id")
    return group if isinstance(group, str) else ""


def _detail(
    step: PlaybookStep, place: int, skills: Mapping[str, Any] | None, *, inherit: bool
) -> Iterator[tuple[str, Any]]:
    least, most = effort_of(step, skills, inherit=inherit)
    told = {
        "optional": not step.required,
        "phase": phase_of(step),
        "tools": freeze(list(dict.fromkeys(step.expected_tools))),
        "least": least,
        "most": most,
        "probes": freeze([probe.name for probe in effective_probes(step, skills)]),
        "checks": freeze([str(one.get("name")) for one in step.checks if one.get("name")]),
        "uses": freeze(list(dict.fromkeys(step.uses))),
        "unresolved": freeze([] if skills is None else unresolved_skills(step, skills)),
        "form": step.kind,
    }
    yield "place", place
    for name, value in told.items():
        if value or (value == 0 and name in ("least", "most")):
            yield name, value
