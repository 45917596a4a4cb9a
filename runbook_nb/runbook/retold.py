"""The walk of a copy, told again from what its dossier carries.

Bridge layer. Of a run that went straight through, every count its flowchart shows follows from the
structure and from what became of each subject; then the flowchart can be drawn again, to be held
against one that somebody shows. Of any other run it cannot, and nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from runbook_nb.record.causes import cause_of
from runbook_nb.record.counts import FanOutCounts
from runbook_nb.record.outline import walk_flow
from runbook_nb.record.overlay import Overlay, Spread
from runbook_nb.record.redact import Redactor
from runbook_nb.record.structure import Structure, StructureNode
from runbook_nb.rules import Decision
from runbook_nb.runbook.fans import FanOutGroup

if TYPE_CHECKING:
    from runbook_nb._view import Flow
    from runbook_nb.runbook.dossier import SubjectFacts
    from runbook_nb.runbook.grounds import Ground

#: The stages of which a dossier tells how often they ran.
_PLAIN: Final = frozenset({"stage", "decider", "branch", "fan_out"})


def retold_flow(ground: Ground) -> Flow | None:
    """Outline the walk of a copy; None where its dossier does not tell all of it.

    Parameters
    ----------
    ground : Ground
        Of a copy that carries its dossier.
    """
    walk = _retold(ground)
    return None if walk is None else walk_flow(walk)  # type: ignore[arg-type]


def retold_path(ground: Ground, facts: SubjectFacts) -> Flow | None:
    """Outline one subject's own path; None where the dossier does not tell all of it.

    Parameters
    ----------
    ground : Ground
        Of a copy that carries its dossier.
    facts : SubjectFacts
        Of the subject.
    """
    dossier = ground.dossier
    if dossier is None or not isinstance(facts.decision, Decision):
        return None
    structure, overlay = dossier.structure, Overlay()
    if not _is_plain(structure):
        return None
    if facts.stage not in {group.key for group in dossier.fan_outs}:
        return retold_flow(ground)  # the run's own decision: its path is that of the run
    inside = [node for node in structure.nodes if structure.fan_out_of(node.key) == facts.stage]
    deciders = [node for node in inside if node.kind == "decider"]
    if facts.status != "ok" or len(deciders) != 1:
        return None
    _decide(overlay, deciders[0].key, [facts.decision])
    _ran_inside(overlay, inside, 1)
    _edges(overlay, structure, {})
    within = f"{facts.stage}/"
    stage = _Stage(deciders[0].id, deciders[0].key.removeprefix(within))
    walk = _Retold(
        structure, overlay, sum(overlay.runs.values()) + 1, [], [_Made(stage, facts.decision)]
    )
    walk.only = (_Fan(within), facts.index, "")
    return walk_flow(walk)  # type: ignore[arg-type]


class _Fan(NamedTuple):
    """Stands for a fan-out: of it is only asked what the keys inside it begin with."""

    within: str

    def template(self, outer: str) -> str:
        return f"{outer}{self.within}"


class _Stage(NamedTuple):
    id: str
    key: str


class _Made(NamedTuple):
    stage: _Stage
    decision: Decision


class _Retold:
    """Answers what is asked of a walk that is outlined."""

    only: tuple[_Fan, int, str] | None = None

    def __init__(
        self,
        structure: Structure,
        overlay: Overlay,
        steps: int,
        counts: Sequence[FanOutCounts],
        own: Sequence[_Made],
    ) -> None:
        self.structure = structure
        self.raw_overlay = overlay
        self.steps_executed = steps
        self.redactor = Redactor(None)
        self._counts = list(counts)
        self._own = own

    def fan_out_counts(self) -> list[FanOutCounts]:
        """Give the counts of the fan-outs, as the dossier has them."""
        return self._counts

    def own_decisions(self) -> Iterator[_Made]:
        """Yield the decisions outside any fan-out."""
        return iter(self._own)

    def rules_at(self, decider: str) -> tuple[Any, ...]:
        """Give the rule sets that judged at a decider, by its id."""
        keys = [node.key for node in self.structure.find(decider, "decider")]
        return tuple(rules for key in keys for rules in self.raw_overlay.rules.get(key, ()))


def _retold(ground: Ground) -> _Retold | None:
    dossier = ground.dossier
    if dossier is None or not ground.complete or not _is_plain(dossier.structure):
        return None
    structure, overlay = dossier.structure, Overlay()
    groups = {group.key: group for group in dossier.fan_outs}
    if set(groups) != {node.key for node in structure.nodes if node.kind == "fan_out"}:
        return None
    if not all(_went_through(group) for group in groups.values()):
        return None
    own = _own_decisions(ground, structure)
    if own is None:
        return None
    for made in own:
        _decide(overlay, made.stage.key, [made.decision])
    for key, group in groups.items():
        if not _fan_out(ground, overlay, structure, key, group):
            return None
    _ran(overlay, structure, groups)
    _edges(overlay, structure, groups)
    steps = sum(overlay.runs.values()) + sum(one.begun for one in overlay.fan_outs.values())
    if steps != ground.walk.get("steps_executed"):
        return None  # something else happened, of which the dossier does not tell
    counts = [group.counts for group in dossier.fan_outs]
    return _Retold(structure, overlay, steps, counts, own)


def _is_plain(structure: Structure) -> bool:
    return not any(edge.kind in ("loop", "fork", "enter") for edge in structure.edges) and all(
        node.kind in _PLAIN
        and not {"retry", "form", "loop_to", "lazy"} & node.detail.keys()
        and node.detail.get("template", "built") == "built"
        and (node.kind != "fan_out" or not structure.fan_out_of(node.key))
        for node in structure.nodes
    )


def _went_through(group: FanOutGroup) -> bool:
    counts = group.counts
    undecided = counts.undecided and (group.decides or counts.has_decider)
    return not counts.failed and counts.not_reached == counts.past_cap and not undecided


def _own_decisions(ground: Ground, structure: Structure) -> list[_Made] | None:
    """Give the decisions of the top; None where one was made that is not carried."""
    deciders = [
        n for n in structure.nodes if n.kind == "decider" and not structure.fan_out_of(n.key)
    ]
    if not deciders:
        return []
    found = [one for one in ground.subjects if any(one.stage == node.id for node in deciders)]
    if len(deciders) != len(found) or len({one.stage for one in found}) != len(found):
        return None
    by_id = {node.id: node.key for node in deciders}
    made = []
    for one in found:
        if not isinstance(one.decision, Decision):
            return None
        made.append(_Made(_Stage(one.stage, by_id[one.stage]), one.decision))
    return made


def _decide(overlay: Overlay, key: str, decisions: Sequence[Decision]) -> None:
    """Count decisions of one decider, in order."""
    for decision in decisions:
        route = key, decision.path.branch or ""
        overlay.routes[route] += 1
        overlay.rules.setdefault(key, {})[decision.rules] = None
        causes = overlay.causes.setdefault(route, [])
        cause = next((one for one in causes if one.is_of(decision.path)), None)
        if cause is None:
            cause = cause_of(decision)
            causes.append(cause)
        cause.times += 1
        if cause.conditions:
            tried = decision.path.tried[-1]
            told = decision.conditions_of(tried)
            for (condition, met), now in zip(cause.conditions, told, strict=True):
                if not condition.redacted:
                    met.add_all([now.actual])


def _fan_out(
    ground: Ground, overlay: Overlay, structure: Structure, key: str, group: FanOutGroup
) -> bool:
    """Count one fan-out; say whether all that happened in it is carried."""
    counts = group.counts
    begun = counts.items - counts.not_reached
    overlay.fan_outs[key] = Spread(
        items=counts.items,
        ok=counts.ok,
        not_reached=counts.not_reached,
        past_cap=counts.past_cap,
        begun=begun,
    )
    inside = [node for node in structure.nodes if structure.fan_out_of(node.key) == key]
    deciders = [node for node in inside if node.kind == "decider"]
    if len(deciders) > 1:
        return False
    mine = [one for one in ground.subjects if one.stage == key]
    mine.sort(key=lambda one: (one.execution, one.index))
    decisions = [one.decision for one in mine if one.status == "ok" and one.decision is not None]
    judged = [one for one in decisions if isinstance(one, Decision)]
    if deciders:
        if len(judged) != begun:
            return False
        _decide(overlay, deciders[0].key, judged)
    _ran_inside(overlay, inside, begun)
    return True


def _ran_inside(overlay: Overlay, inside: Sequence[StructureNode], begun: int) -> None:
    """Count what ran of the stages of a branch: each as often as it began, or was chosen."""
    for node in inside:
        if node.branch is None:
            overlay.runs[node.key] += begun
        else:
            overlay.runs[node.key] += overlay.routes[node.decider or "", node.branch]


def _ran(overlay: Overlay, structure: Structure, groups: dict[str, FanOutGroup]) -> None:
    """Count what ran at the top: each stage once, of branches the one that was taken."""
    for node in structure.nodes:
        if structure.fan_out_of(node.key):
            continue
        taken = node.branch is None or overlay.routes[node.decider or "", node.branch]
        overlay.runs[node.key] += 1 if taken else 0


def _edges(overlay: Overlay, structure: Structure, groups: dict[str, FanOutGroup]) -> None:
    nodes: dict[str, StructureNode] = {node.key: node for node in structure.nodes}
    for edge in structure.edges:
        if edge.kind == "fan_out":
            times = overlay.fan_outs[edge.source].begun if edge.source in groups else 0
        elif edge.kind in ("branch", "default"):
            times = overlay.runs[edge.target]
        else:
            times = overlay.runs[edge.source]
        if times:
            overlay.edges[edge.source, edge.target] += times
    for key, spread in overlay.fan_outs.items():
        if not spread.begun and overlay.runs[key]:  # what follows comes after the stage itself
            after = {
                edge.target
                for edge in structure.edges
                if structure.fan_out_of(edge.source) == key
                and not structure.fan_out_of(edge.target)
                and nodes[edge.target].branch is None
            }
            overlay.edges.update({(key, target): 1 for target in after})


__all__ = ["retold_flow", "retold_path"]
