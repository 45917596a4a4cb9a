"""How walks and runs look: the structure once, with what happened to it.

Record layer: views only. Fan-outs are folded: like branches are told once, with counts. What ran,
what was not taken, what was not reached and what failed are told apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from runbook_nb._text import MISSING_CELL, counted, show
from runbook_nb._view import Badge, Card, Cell, Data, Flow, FlowLine, Prose, Section, verdict_role
from runbook_nb.record.counts import count_fan_out
from runbook_nb.record.graph import drawn_order, walk_graph
from runbook_nb.record.overlay import (
    Overlay,
    declared_ways,
    overlay_of,
    template_path,
)
from runbook_nb.record.slots import error_words, served_subject
from runbook_nb.record.structure import StructureNode, branch_badge
from runbook_nb.rules.model import DECLINED_BRANCH

if TYPE_CHECKING:
    from runbook_nb.record.run import Run
    from runbook_nb.record.walk import Walk

#: How a heading says that a run ended without an answer, by its status.
_ENDED = {
    "ok": "Ran through",
    "absent": "Nothing found",
    "failed": "Stopped",
    "cancelled": "Cancelled",
    "limited": "Stopped by a limit",
    "paused": "Waiting",
}


def walk_flow(walk: Walk) -> Flow:
    """Outline a walk: every stage of the structure once, branches with counts and causes."""
    overlay = overlay_of(walk.log, walk.redactor, walk.only)
    like = sum(max(sums[1] - 1, 0) for sums in overlay.fan_outs.values())
    shown_once = f"{counted(like + 1, 'like branch', 'like branches')} shown once"
    return Flow(
        lines=tuple(_lines(walk, overlay)),
        summary=_told(walk),
        notes=(shown_once,) if like else (),
        graph=walk_graph(walk, overlay),
    )


def _told(walk: Walk) -> str:
    """Say what happened in one sentence, for who sees neither picture nor outline."""
    steps = counted(walk.steps_executed, "step")
    if walk.only is not None:
        made = list(walk.own_decisions())
        return f"{made[-1].decision.sentence}; {steps}" if made else steps
    items, ok, outcomes = _outcomes(walk)
    words = [f"{badge.count} {badge.word}" for badge in outcomes]
    if not items:
        return steps
    told = f"{ok} of {counted(items, 'subject')} done"
    return f"{told}: {', '.join(words)}; {steps}" if words else f"{told}; {steps}"


def _outcomes(walk: Walk) -> tuple[int, int, tuple[Badge, ...]]:
    """Count the items of all fan-outs, those that are done, and each outcome that occurred."""
    branches = [node.branch for node in walk.structure.nodes if node.branch is not None]
    branches.sort(key=lambda word: word == DECLINED_BRANCH)
    taken: Counter[str] = Counter(dict.fromkeys(branches, 0))
    failed = missed = items = ok = 0
    for fan in walk.log.fan_outs():
        counts = count_fan_out(fan).served_by(walk.redactor)
        items, ok = items + counts.items, ok + counts.ok
        failed, missed = failed + counts.failed, missed + counts.not_reached
        taken.update(counts.by_branch)
    order = tuple(branches)
    badges = [
        *(Badge(word=show(w), role=verdict_role(w, order), count=n) for w, n in taken.items()),
        Badge(word="failed", role="failed", count=failed),
        Badge(word="not reached", role="not_reached", count=missed),
    ]
    return items, ok, tuple(badge for badge in badges if badge.count)


def _has_one_kind_of_subject(walk: Walk) -> bool:
    """Tell whether outcomes can be counted together: those of nested fan-outs cannot."""
    return walk.only is None and len({fan.stage.id for fan in walk.log.fan_outs()}) == 1


def _lines(walk: Walk, overlay: Overlay) -> Iterator[FlowLine]:
    structure, within = walk.structure, walk.redactor.text(template_path(walk.only))
    frames = structure.frames()
    outside = structure.depth(within[:-1], frames) + 1 if within else 0
    for node in drawn_order(structure, partial(_rules_of, walk)):
        if not node.key.startswith(within):
            continue
        depth = structure.depth(node.key, frames) - outside
        if node.kind == "branch":
            yield from _branch_lines(walk, overlay, node, depth + 1)
        else:
            yield FlowLine(
                depth=depth,
                cells=(Data(value=node.name), *_what(overlay, node)),
                state=_state(overlay, node),
                key=node.key,
            )


def _rules_of(walk: Walk, decider: StructureNode) -> Iterator[Any]:
    return iter(walk.rules_at(decider.id))


def _state(overlay: Overlay, node: StructureNode) -> Any:
    if not overlay.runs[node.key]:
        return "not_reached"
    return "failed" if overlay.failed[node.key] == overlay.runs[node.key] else "ran"


def _what(overlay: Overlay, node: StructureNode) -> Iterator[Cell]:
    runs, failed = overlay.runs[node.key], overlay.failed[node.key]
    if node.kind == "fan_out" and node.key in overlay.fan_outs:
        items, ok, bad, missed, past = overlay.fan_outs[node.key]
        words = [f"{ok} of {items} done"]
        if bad:
            words.append(f"{bad} failed")
        if missed:
            cap = f": past the cap of {node.detail.get('cap')} branches" if past == missed else ""
            words.append(f"{missed} not reached{cap}")
        yield ", ".join(words)
        return
    if runs != 1:
        yield f"{runs} times" if runs else ""
    if failed:
        yield f"{failed} failed" if failed != runs else ""


def _branch_lines(
    walk: Walk, overlay: Overlay, node: StructureNode, depth: int
) -> Iterator[FlowLine]:
    route = (node.decider or "", node.branch or "")
    taken = overlay.routes[route]
    name: Cell = branch_badge(walk.structure, node)
    causes = overlay.causes.get(route, [])
    if taken:
        for place, cause in enumerate(causes):
            yield FlowLine(
                depth=depth,
                cells=(
                    name if place == 0 else "",
                    cause.times,
                    cause.word,
                    cause.condition if cause.path.via == "default" else Data(value=cause.condition),
                    Data(value=cause.label) if cause.label else "",
                ),
                state="ran",
                key=node.key,
            )
        if not causes:
            yield FlowLine(depth=depth, cells=(name, taken, "", "", ""), key=node.key)
        return
    word, condition = _untaken(walk, node)
    state: Any = overlay.state_of_untaken(node)
    yield FlowLine(
        depth=depth,
        cells=(name, 0, word, Data(value=condition) if condition else "", state.replace("_", " ")),
        state=state,
        key=node.key,
    )


def _untaken(walk: Walk, node: StructureNode) -> tuple[str, str]:
    decider = walk.structure.node(node.decider or "")
    for rules in walk.rules_at(decider.id if decider is not None else ""):
        for way in declared_ways(rules, node.branch, walk.redactor):
            return way.word, " and ".join(way.conditions)
    return "", ""


def walk_card(walk: Walk) -> Card:
    """Show a walk folded."""
    flow = walk_flow(walk)
    overlay_items = sum(counts for counts in (len(fan) for fan in walk.log.fan_outs()))
    name = walk.name
    words = [counted(walk.steps_executed, "step")]
    if walk.only is not None:
        fan, index, _ = walk.only
        told = show(served_subject(walk.redactor, fan, index))
        name = f"{walk.name}, {told if told != MISSING_CELL else f'item {index}'}"
    elif overlay_items:
        words.append(counted(overlay_items, "subject"))
    words.append(counted(len(walk), "row"))
    steps: tuple[Any, ...] = (walk.steps_executed, "steps,", len(walk), "rows")
    heading: Cell = steps
    if _has_one_kind_of_subject(walk):
        items, _, outcomes = _outcomes(walk)
        heading = (items, "subject" if items == 1 else "subjects", *outcomes)
    text = walk.redactor.text
    judged = (path.rules for _, path in walk.decision_paths()[0])
    rules = {text(one.title) for one in judged if not one.is_bare}
    return Card(
        kind="Walk",
        name=name,
        qualifiers=tuple(sorted(rules)),
        eyebrow=tuple(("rules", Data(value=title, tone="code")) for title in sorted(rules)),
        headline=", ".join(words),
        sections=(Section(label="", parts=(flow,)),),
        heading=heading,
        foot="" if heading is steps else steps,
    )


def run_card(run: Run) -> Card:
    """Show a run: how it ended and where, then what was reached."""
    error = run.error
    reached = ""
    if run.fan_outs:
        items = sum(counts.items for counts in run.fan_outs)
        done = sum(counts.ok for counts in run.fan_outs)
        reached = f"{done} of {counted(items, 'subject')} done"
    state = run.status if run.status == "ok" else f"{run.status}{_where(run)}"
    if error is not None:
        state = f"{state}: {error_words(error)}"
    elif run.pause is not None:
        state = f"{state}: {show(run.pause['reason'])}"
    sections: list[Section] = []
    if run.status != "ok":
        if ended := _ended(run):
            sections.append(Section(label="", parts=(Prose(text=ended),), in_text=False))
        claim = Prose(
            text="No coverage is claimed: this run gave no answer. What follows is how far it came."
        )
        sections.append(Section(label="", parts=(claim,)))
    sections.append(Section(label="Reached", parts=(walk_flow(run.walk),), note=reached))
    words = [counted(run.steps_executed, "step")]
    if reached:
        words.append(reached)
    if run.status != "ok":
        words.append("no answer" if run.status != "paused" else "incomplete answer")
    return Card(
        kind="Run",
        name=run.name,
        state=state,
        headline=", ".join(words),
        sections=tuple(sections),
        heading=_heading(run),
        foot=", ".join(words),
        qualifiers=("unredacted",) if run.is_unredacted else (),
        eyebrow=("unredacted: nothing is hidden in this view",) if run.is_unredacted else (),
    )


def _heading(run: Run) -> Cell:
    place = run.ended_at
    words = _ENDED.get(run.status, "Ended")
    if place is not None:
        words = f"{words} at {show(place['stage'] or place['stage_id'])}"
    return (words, *_outcomes(run.walk)[2]) if _has_one_kind_of_subject(run.walk) else words


def _ended(run: Run) -> Cell:
    """Say why a run that gave no answer ended: the error with its stage, or the open question."""
    place = run.ended_at
    if run.error is not None:
        where = () if place is None else ("in stage", Data(value=place["stage_id"]))
        said: tuple[Any, ...] = (Data(value=run.error.get("type") or "error", tone="code"), *where)
        message = run.error.get("message")
        return (*said, ":", Data(value=message)) if message else said
    if run.pause is not None:
        return ("It waits for an answer:", Data(value=run.pause["reason"]))
    return ""


def _where(run: Run) -> str:
    place = run.ended_at
    return "" if place is None else f" at {show(place['stage_id'])}"
