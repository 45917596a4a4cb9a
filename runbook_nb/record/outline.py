"""How walks and runs look: the structure once, with what happened to it.

Record layer: views only. Fan-outs are folded: like branches are told once, with counts. What ran,
what was not taken, what was not reached and what failed are told apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._text import MISSING_CELL, counted, listed, show
from runbook_nb._view import (
    Badge,
    Card,
    Cell,
    Data,
    Flow,
    FlowLine,
    Prose,
    Role,
    Section,
    verdict_role,
)
from runbook_nb.record.causes import declared_ways
from runbook_nb.record.graph import structure_graph, walk_graph
from runbook_nb.record.log import StageRef
from runbook_nb.record.order import drawn_order, judging_rules, shown_order
from runbook_nb.record.overlay import Overlay, template_path
from runbook_nb.record.phrases import COUNTED, Teller, joined, state_words
from runbook_nb.record.slots import error_words, served_subject
from runbook_nb.record.structure import Structure, StructureNode, branch_badge
from runbook_nb.rules.model import DECLINED_BRANCH

if TYPE_CHECKING:
    from runbook_nb.record.run import Run
    from runbook_nb.record.walk import Walk

#: Rule sets a walk names before it only counts them.
MAX_RULES: Final = 4

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
    return _Told(walk).flow()


def structure_flow(structure: Structure, rules: Mapping[str, Any] | None = None) -> Flow:
    """Outline what could happen: every stage, every branch, the default named."""
    lines = tuple(_declared_lines(structure))
    return Flow(lines=lines, graph=structure_graph(structure, rules))


class _Told:
    """What a walk and a run are told as: outline and picture, sentence and outcomes."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.overlay = walk.raw_overlay
        self.teller = Teller(walk.structure, self.overlay)
        self.names = {node.key: show(node.name) for node in walk.structure.nodes}

    def flow(self) -> Flow:
        walk, overlay = self.walk, self.overlay
        like = sum(max(spread.begun - 1, 0) for spread in overlay.fan_outs.values())
        shown_once = f"{counted(like + 1, 'like branch', 'like branches')} shown once"
        return Flow(
            lines=tuple(_Outline(walk, self.teller, overlay).lines()),
            summary=self.sentence(),
            notes=(shown_once,) if like else (),
            graph=walk_graph(walk, overlay),
        )

    def sentence(self) -> str:
        """Say what happened in one sentence, for who sees neither picture nor outline."""
        walk, overlay = self.walk, self.overlay
        steps = counted(walk.steps_executed, "step")
        if walk.only is not None:
            made = list(walk.own_decisions())
            return f"{made[-1].decision.sentence}; {steps}" if made else steps
        items, ok, outcomes = self.outcomes
        parts = [steps, *self._endings()]
        if items:
            words = ", ".join(f"{badge.count} {badge.word}" for badge in outcomes)
            told = f"{ok} of {counted(items, 'subject')} done"
            return "; ".join([f"{told}: {words}" if words else told, *parts])
        if watched := [node.key for node in walk.structure.nodes if node.kind == "step"]:
            from runbook_nb.record.steps import steps_sentence

            return steps_sentence([overlay.step(key) for key in watched])
        stages = [node for node in walk.structure.nodes if not _is_verdict(walk.structure, node)]
        ran = sum(overlay.runs[node.key] > 0 for node in stages)
        return "; ".join([f"{ran} of {counted(len(stages), 'stage')} ran", *parts])

    def _endings(self) -> Iterator[str]:
        """Say what else there is to know of a run: loops, a stop, a question, what failed."""
        overlay = self.overlay
        if back := sum(overlay.loops.values()):
            yield f"went back {counted(back, 'time')}"
        alone = [key for key in self.names if self.teller.fan_out_around(key) is None]
        for key in alone:
            # A chart that hands a stop on stopped at a stage inside it.
            if key in overlay.stops and key not in self.walk.structure.heads:
                reason = overlay.stops[key][1]
                words = "" if reason is None else f": {show(reason)}"
                yield f"stopped on purpose at {self.names[key]}{words}"
        if waiting := [name for key, name in self.names.items() if overlay.waiting(key) > 0]:
            yield f"waits for an answer at {listed(waiting)}"
        # A chart fails with the stage inside it, which says more.
        failed = [key for key in alone if overlay.failed[key]]
        around = {self.teller.frames.get(key) for key in failed}
        if names := [self.names[key] for key in failed if key not in around]:
            yield f"failed at {listed(names)}"

    def waits_at(self) -> dict[str, str] | None:
        """Give the first stage that waits for an answer."""
        for node in self.walk.structure.nodes:
            if self.overlay.waiting(node.key) > 0:
                return {"stage": node.name, "stage_id": node.id}
        return None

    @cached_property
    def outcomes(self) -> tuple[int, int, tuple[Badge, ...]]:
        """Count the items of all fan-outs, those that are done, and each outcome that occurred."""
        roles = self._roles
        taken: Counter[str] = Counter(dict.fromkeys(roles, 0))
        failed = missed = items = ok = 0
        for counts in self.walk.fan_out_counts():
            items, ok = items + counts.items, ok + counts.ok
            failed, missed = failed + counts.failed, missed + counts.not_reached
            taken.update(counts.by_branch)
        waiting = min(sum(s.waiting for s in self.overlay.fan_outs.values()), missed)
        badges = [
            *(Badge(word=show(w), role=roles.get(w, "d"), count=n) for w, n in taken.items()),
            Badge(word="failed", role="failed", count=failed),
            Badge(word="waiting", role="pending", count=waiting),
            Badge(word="not reached", role="not_reached", count=missed - waiting),
        ]
        return items, ok, tuple(badge for badge in badges if badge.count)

    @property
    def _roles(self) -> dict[str, Role]:
        """The role of each verdict, as its own decider declares it; declined comes last."""
        structure, found = self.walk.structure, dict[str, Role]()
        for node in structure.nodes:
            if node.kind == "decider":
                order = tuple(n.branch or "" for n in structure.branches_of(node.key))
                for word in order:
                    found.setdefault(word, verdict_role(word, order))
        if DECLINED_BRANCH in found:
            found[DECLINED_BRANCH] = found.pop(DECLINED_BRANCH)
        return found

    @property
    def has_one_kind_of_subject(self) -> bool:
        """Tell whether outcomes can be counted together: those of nested fan-outs cannot."""
        walk = self.walk
        return walk.only is None and len({one.stage_id for one in walk.fan_out_counts()}) == 1


class _Outline:
    """The lines of a walk."""

    def __init__(self, walk: Walk, teller: Teller, overlay: Overlay) -> None:
        self.walk = walk
        self.teller = teller
        self.overlay = overlay

    def lines(self) -> Iterator[FlowLine]:
        walk, overlay = self.walk, self.overlay
        within = walk.redactor.text(template_path(walk.only))
        rules_of = partial(judging_rules, walk, overlay)
        for drawn in shown_order(walk.structure, rules_of, overlay, within[:-1] or None):
            node = drawn.node
            if _is_verdict(walk.structure, node):
                yield from self.verdict(node, drawn.depth)
            elif node.kind == "step":
                yield FlowLine(
                    depth=drawn.depth,
                    cells=(Data(value=node.name), *self.teller.step(node)),
                    state=self.teller.state(node),
                    key=node.key,
                )
            else:
                yield FlowLine(
                    depth=drawn.depth,
                    cells=(Data(value=node.name), *self.said(node)),
                    state=self.teller.state(node),
                    key=node.key,
                    beside=node.kind == "branch",
                )

    def said(self, node: StructureNode) -> Iterator[Cell]:
        """Yield what is said of a stage: what it is and what came of it, then how often it ran."""
        visits, failed = self.overlay.visits(node.key), self.overlay.failed[node.key]
        fan = node.kind == "fan_out" and node.key in self.overlay.fan_outs
        phrases = [self.teller.fan_out(node) if fan else self.teller.kind(node)]
        if node.kind == "branch":
            phrases.insert(0, self.word(node))
        if visits > 1 and self.teller.form(node) not in COUNTED:
            phrases.append(f"{visits} times")
        phrases += self.teller.more(node, listed=True)
        if node.kind == "branch":
            phrases += self.of_branch(node)
        if failed and failed < visits and not fan:
            phrases.append(f"{failed} failed")
        phrases.append(self.teller.tags(node))
        yield joined(phrases)

    @staticmethod
    def word(node: StructureNode) -> Cell:
        """Give the word that leads to a branch, where its name is another."""
        word = node.branch or ""
        return Data(value=word) if node.name.casefold() != word.casefold() else ""

    def of_branch(self, node: StructureNode) -> Iterator[Cell]:
        """Yield what is said of a branch of a selector: which rule selects it."""
        route = node.decider or "", node.branch or ""
        owner = self.walk.structure.node(route[0])
        if owner is None or owner.kind != "selector":
            return
        causes = self.overlay.causes.get(route, [])
        for cause in causes:
            yield cause.word, Data(value=cause.condition)
            if cause.label:
                yield Data(value=cause.label)
        if not causes:
            word, condition = self.untaken(node)
            yield word if not condition else (word, Data(value=condition))
        if self.teller.state(node) == "not_taken":
            yield "not selected"

    def verdict(self, node: StructureNode, depth: int) -> Iterator[FlowLine]:
        overlay, key = self.overlay, node.key
        route = (node.decider or "", node.branch or "")
        taken = overlay.routes[route]
        name: Cell = branch_badge(self.walk.structure, node)
        more = joined(
            [self.teller.kind(node), *self.teller.more(node, listed=True), self.teller.tags(node)]
        )
        behind: tuple[Cell, ...] = (more,) if more else ()
        causes = overlay.causes.get(route, [])
        if taken:
            state = self.teller.state(node)
            for place, cause in enumerate(causes):
                said = cause.condition if cause.via == "default" else Data(value=cause.condition)
                label = Data(value=cause.label) if cause.label else ""
                cells = (name if place == 0 else "", cause.times, cause.word, said, label)
                tail = behind if place == 0 else ()
                yield FlowLine(depth=depth, cells=(*cells, *tail), state=state, key=key)
            if not causes:
                cells = (name, taken, "", "", "")
                yield FlowLine(depth=depth, cells=(*cells, *behind), state=state, key=key)
            return
        word, condition = self.untaken(node)
        state = self.teller.state(node)
        yield FlowLine(
            depth=depth,
            cells=(name, 0, word, Data(value=condition) if condition else "", state_words(state)),
            state=state,
            key=key,
        )

    def untaken(self, node: StructureNode) -> tuple[str, str]:
        """Say what would have led to a branch: the first rule, with its conditions."""
        owner = self.walk.structure.node(node.decider or "")
        rules_of = judging_rules(self.walk, self.overlay, owner) if owner is not None else ()
        for rules in rules_of:
            for way in declared_ways(rules, node.branch, self.walk.redactor):
                return way.word, " and ".join(way.conditions)
        return "", ""


def _is_verdict(structure: Structure, node: StructureNode) -> bool:
    """Tell whether a node is a branch of a decider, and no branch of a fork or selector."""
    owner = structure.node(node.decider or "")
    return node.kind == "branch" and (owner is None or owner.kind == "decider")


def _declared_lines(structure: Structure) -> Iterator[FlowLine]:
    teller = Teller(structure, None)
    kinds = {node.key: node.kind for node in structure.nodes}
    defaults = {edge.target for edge in structure.edges if edge.kind == "default"}
    for drawn in drawn_order(structure, None):
        node = drawn.node
        name: Cell = Data(value=node.name)
        phrases: list[Cell] = []
        beside = node.kind == "branch" and kinds.get(node.decider or "") != "decider"
        if node.kind == "branch" and not beside:
            name = branch_badge(structure, node)
            if node.key in defaults:
                phrases.append("default")
            elif node.added:
                phrases.append("added for subjects that reach no classification")
        elif beside and node.name.casefold() != (node.branch or "").casefold():
            phrases.append(Data(value=node.branch))
        if node.kind == "decider":
            rules = node.detail.get("rules")
            phrases.append(f"decided by {rules}" if rules else "decides")
        elif node.kind == "fan_out":
            phrases.append(teller.fan_out(node))
        elif node.kind == "step":
            phrases += teller.step(node)
        else:
            phrases.append(teller.kind(node))
        phrases += [*teller.more(node, listed=True), teller.tags(node)]
        if node.description and node.kind not in ("branch", "decider", "fan_out"):
            phrases.append(Data(value=node.description))
        said = joined(phrases)
        yield FlowLine(
            depth=drawn.depth,
            cells=(name, said) if said else (name,),
            state="declared",
            key=node.key,
            beside=beside,
        )


def walk_head(walk: Walk) -> Card:
    """Show a walk without its content."""
    overlay_items = sum(counts for counts in (len(fan) for fan in walk.log.fan_outs()))
    name = walk.name
    words = [counted(walk.steps_executed, "step")]
    if walk.only is not None:
        fan, index, _ = walk.only
        whose = show(served_subject(walk.redactor, fan, index))
        name = f"{walk.name}, {whose if whose != MISSING_CELL else f'item {index}'}"
    elif overlay_items:
        words.append(counted(overlay_items, "subject"))
    words.append(counted(len(walk), "row"))
    text = walk.redactor.text
    judged = (path.rules for _, path in walk.decision_paths()[0])
    rules = sorted({text(one.title) for one in judged if not one.is_bare})
    more = (f"+{len(rules) - MAX_RULES} more rule sets",) if len(rules) > MAX_RULES + 1 else ()
    rules = rules[: MAX_RULES if more else MAX_RULES + 1]
    return Card(
        kind="Walk",
        name=name,
        qualifiers=(*rules, *more),
        eyebrow=(*(("rules", Data(value=title, tone="code")) for title in rules), *more),
        headline=", ".join(words),
    )


def walk_card(walk: Walk) -> Card:
    """Show a walk folded."""
    told = _Told(walk)
    steps: tuple[Any, ...] = (walk.steps_executed, "steps,", len(walk), "rows")
    heading: Cell = steps
    if told.has_one_kind_of_subject:
        items, _, outcomes = told.outcomes
        heading = (items, "subject" if items == 1 else "subjects", *outcomes)
    return replace(
        walk_head(walk),
        sections=(Section(label="", parts=(told.flow(),)),),
        heading=heading,
        foot="" if heading is steps else steps,
    )


def _reached(run: Run) -> str:
    if not run.fan_outs:
        return ""
    items = sum(counts.items for counts in run.fan_outs)
    done = sum(counts.ok for counts in run.fan_outs)
    return f"{done} of {counted(items, 'subject')} done"


def _place(run: Run, told: _Told | None = None) -> Mapping[str, Any] | None:
    """Give the stage a run ended at, or waits at."""
    if run.ended_at is not None or run.status != "paused":
        return run.ended_at
    return (told or _Told(run.walk)).waits_at()


def run_head(run: Run, told: _Told | None = None) -> Card:
    """Show how a run ended and where, without what was reached."""
    error, stop, place = run.error, _stop_of(run), _place(run, told)
    where = f" at {show(place['stage_id'])}" if run.status != "ok" and place is not None else ""
    state = f"{run.status}{where}"
    if error is not None:
        state = f"{state}: {error_words(error)}"
    elif run.pause is not None:
        state = f"{state}: {show(run.pause['reason'])}"
    elif stop is not None:
        reason = "" if stop[1] is None else f": {show(stop[1])}"
        state = f"{state}, stopped on purpose at {show(stop[0].id)}{reason}"
    words = [counted(run.steps_executed, "step")]
    if reached := _reached(run):
        words.append(reached)
    if run.status != "ok":
        words.append("no answer" if run.status != "paused" else "incomplete answer")
    return Card(
        kind="Run",
        name=run.name,
        state=state,
        headline=", ".join(words),
        qualifiers=("unredacted",) if run.is_unredacted else (),
        eyebrow=("unredacted: nothing is hidden in this view",) if run.is_unredacted else (),
    )


def run_card(run: Run) -> Card:
    """Show a run: how it ended and where, then what was reached."""
    told, stop = _Told(run.walk), _stop_of(run)
    head, place = run_head(run, told), _place(run, told)
    sections: list[Section] = []
    if ended := _ended(run, stop, sum(told.overlay.waiting(key) for key in told.overlay.asked)):
        sections.append(Section(label="", parts=(Prose(text=ended),), in_text=False))
    if run.status != "ok":
        claim = Prose(
            text="No coverage is claimed: this run gave no answer. What follows is how far it came."
        )
        sections.append(Section(label="", parts=(claim,)))
    sections.append(Section(label="Reached", parts=(told.flow(),), note=_reached(run)))
    heading: Cell = _heading(run.status, place, stop)
    if told.has_one_kind_of_subject:
        heading = (_heading(run.status, place, stop), *told.outcomes[2])
    return replace(head, sections=tuple(sections), heading=heading, foot=head.headline)


def _stop_of(run: Run) -> tuple[StageRef, Any] | None:
    """Give the stage that ended the run on purpose, and the reason it gave."""
    log, redactor = run.log, run.redactor
    found: tuple[StageRef, Any] | None = None
    if run.status != "ok":
        return None
    at = len(log.root.values)
    for number in reversed(log.root.codes):
        code = log.codes[number]
        at -= log.width(code)
        if code.kind == "stop" and (found is not None or not code.stage.path):
            found = code.stage, redactor.scrub(log.root.values[at])
        elif code.kind != "leave" or found is None:
            break  # a chart that hands the stop on said so last
    if found is None:
        return None
    stage, reason = found
    return stage._replace(id=redactor.text(stage.id), name=redactor.text(stage.name)), reason


def _heading(
    status: str, place: Mapping[str, Any] | None, stop: tuple[StageRef, Any] | None
) -> str:
    if stop is not None:
        return f"Stopped on purpose at {show(stop[0].name)}"
    words = _ENDED.get(status, "Ended")
    return words if place is None else f"{words} at {show(place['stage'] or place['stage_id'])}"


def _ended(run: Run, stop: tuple[StageRef, Any] | None, waiting: int) -> Cell:
    """Say why a run ended early: the error with its stage, the open question, or the reason."""
    place = run.ended_at
    if run.error is not None:
        where = () if place is None else ("in stage", Data(value=place["stage_id"]))
        said: tuple[Any, ...] = (Data(value=run.error.get("type") or "error", tone="code"), *where)
        message = run.error.get("message")
        return (*said, ":", Data(value=message)) if message else said
    if run.pause is not None:
        asked = ("It waits for an answer:", Data(value=run.pause["reason"]))
        more = waiting - 1
        behind = f"({counted(more, 'more question waits', 'more questions wait')} behind it)"
        return (*asked, behind) if more > 0 else asked
    if stop is not None and stop[1] is not None:
        return ("The reason given:", Data(value=stop[1]))
    return ""
