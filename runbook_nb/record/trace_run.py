"""Tracing through the tracks of a run: what each thing that was done rests on.

Record layer. A write rests on what its step had read before; what the engine wrote for a stage
rests on branches, on mounted charts, on what merged them. A decision is a read like any other,
and what ran because of it rests on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from runbook_nb._text import MISSING
from runbook_nb.record.lookup import Steps, follow, path_text
from runbook_nb.record.origins import same_held
from runbook_nb.record.replay import Branching, Level, Replayed, Step
from runbook_nb.record.slots import Slots
from runbook_nb.record.trace_reads import Made, ReadTracer
from runbook_nb.record.trace_signs import (
    is_container,
    moved,
    same_items,
    same_object,
    ways,
)
from runbook_nb.record.trace_targets import (
    Bundled,
    Decided,
    End,
    Input,
    Item,
    Link,
    Looped,
    Returned,
    Target,
    Written,
    nothing,
)
from runbook_nb.record.tracing import ALWAYS
from runbook_nb.record.why import WhyNode
from runbook_nb.rules.decision import Decision, Selection


class RunTracer(ReadTracer):
    """Traces through the tracks of a run."""

    # -- nodes ---------------------------------------------------------------------------------

    def node(self, name: str, depth: int, target: Target) -> WhyNode:
        """Make the node of a target."""
        text = self.text
        assert not isinstance(target, Bundled | End)  # noqa: S101 - of a run
        track = target.track
        step = target.branching.step if isinstance(target, Item) else target.step
        facts = self._facts(target)
        runtime, log, commit = (
            track.runtime_id(step),
            self.tracks.log_of(track, step.level).path,
            step.place,
        )
        stage, stage_id = step.ref.name, step.ref.id
        if isinstance(target, Item):  # entering a branch is a step of its own
            fan, index = target.branching.fan, target.number
            number = runtime.rpartition("#")[2]
            log, commit = fan.path(track.prefix, index)[:-1], -1
            runtime = f"{log}#{number}"
            stage, stage_id = f"{stage} [{index}]", f"{stage_id}~{index}"
        return WhyNode(
            facts.value,
            id=name,
            what=facts.what,
            runtime_stage_id=text(runtime),
            stage_id=text(stage_id),
            stage=text(stage),
            log=text(log),
            commit=commit,
            node=text(track.key(step)),
            kind=step.ref.kind,
            key=text(facts.key),
            place=text(facts.place),
            depth=depth,
            decision=facts.decision,
        )

    def _facts(self, target: Target) -> _Facts:
        if isinstance(target, Written):
            return self._facts_of_write(target)
        if isinstance(target, Decided):
            return self._facts_of_decision(target)
        if isinstance(target, Item):
            item = target.branching.fan.item(target.number)
            mark = ("item", id(target.branching.fan), target.number)
            return _Facts(
                "item",
                "item",
                path_text("item", target.steps),
                lambda: self.shown("item", item, target.steps, mark),
            )
        if isinstance(target, Input):
            assert target.step.entered is not None  # noqa: S101 - it mounted a chart
            seed = target.step.entered.timeline.first(target.key)
            return _Facts(
                "input",
                target.key,
                path_text(target.key, target.steps),
                lambda: self.shown(target.key, seed, target.steps),
            )
        if isinstance(target, Returned):
            return _Facts("result", "", "", lambda: self._returned(target))
        return _Facts("loop", "", "", nothing)

    def _facts_of_write(self, target: Written) -> _Facts:
        _, step, key, steps, version = target
        held = step.level.timeline.held(key, version)
        what = "delete" if held is MISSING else "write"
        mark = (id(step.level), key, version)
        return _Facts(what, key, path_text(key, steps), lambda: self.shown(key, held, steps, mark))

    def _facts_of_decision(self, target: Decided) -> _Facts:
        track, step = target
        made: Decision | Selection | None = None
        said: Any = MISSING
        what = "selection" if step.ref.kind == "selector" else "decision"
        for place, code in track.own(step):
            if code.path is not None and code.kind in ("decision", "selection"):
                kind = Selection if what == "selection" else Decision
                made = kind(code.path, track.actuals(place), self.redactor)
                said = list(made.branches) if isinstance(made, Selection) else made.branch
            elif code.kind in ("choice", "choices"):
                said = code.key if code.kind == "choice" else track.value(place)
            elif code.kind == "route":
                said = code.key
        return _Facts(what, "", "", lambda: self.redactor.scrub(said), made)

    def _returned(self, target: Returned) -> Any:
        track, step = target
        if track.result < 0 or track.top.steps[-1:] != [step]:
            return MISSING  # what the stages of a mounted chart return is not on the record
        value = track.value(track.result)
        served = self.redactor.served if isinstance(value, Mapping) else self.redactor.scrub
        return served(value)

    # -- what a target rests on ----------------------------------------------------------------

    def links(self, target: Target) -> Iterator[Link]:
        """Yield what a target rests on."""
        if isinstance(target, Written):
            return self._with_own(target, self._of_write(target))
        if isinstance(target, Decided):
            step = target.step
            fan = target.track.fan_of(step)
            end = ALWAYS if fan is None else fan.at
            reads = self.reads(target.track, step, -1, end)
            return self._with_own(target, reads)
        if isinstance(target, Item):
            return self._with_own(target, self._of_item(target))
        if isinstance(target, Input):
            return self._with_own(target, self._of_input(target))
        if isinstance(target, Returned):
            return self._with_own(target, self._of_result(target))
        assert isinstance(target, Looped)  # noqa: S101 - the last there is
        return self.control(target.track, target.step)

    def _with_own(self, target: Target, links: Iterator[Link]) -> Iterator[Link]:
        """Yield what a target rests on; where that is nothing, that it is the stage's own."""
        assert not isinstance(target, Bundled | End)  # noqa: S101 - of a run
        track = target.track
        step = target.branching.step if isinstance(target, Item) else target.step
        some = False
        for link in links:
            some = True
            yield link
        if not some:
            yield Link("own", "", End("own", track.key(step), step.ref.name, nothing))
        yield from self.control(track, step)

    # -- writes --------------------------------------------------------------------------------

    def _of_write(self, target: Written) -> Iterator[Link]:
        track, step, key, steps, version = target
        line = step.level.timeline
        place = line.time(key, version)
        held = line.held(key, version)
        branching, inner = track.fan_of(step), step.entered
        if branching is not None and place > branching.at:
            if isinstance(held, Slots) and held.fan_out is branching.fan:
                yield from self._slots(track, branching, steps)
            else:
                yield from self._merged(track, branching, target, place)
            return
        if inner is not None and 0 <= inner.closed < place:
            yield from self._mapped_out(track, inner, target, place)
            yield from self.reads(track, step, inner.closed, place)
            return
        yield from self.kept(target)
        yield from self.reads(track, step, -1, place, Made(key, held, steps))

    def _slots(self, track: Replayed, branching: Branching, steps: Steps) -> Iterator[Link]:
        fan, _, step = branching
        if not steps or not isinstance(steps[0], int):
            yield from self.reads(track, step, -1, branching.at)
            for branch in track.branches(branching):
                yield from self._branch_value(branch, ())
            return
        index, part, rest = steps[0], steps[1] if len(steps) > 1 else "", steps[2:]
        found = track.branch(branching, index)
        if found is None or part in ("item", "index"):
            if fan.is_fan_out:
                yield Link(
                    "item",
                    path_text(f"item {index}", rest),
                    Item(track, branching, index, rest if part == "item" else ()),
                )
            else:
                yield from self.reads(track, step, -1, branching.at)
            return
        if part in ("", "value"):
            yield from self._branch_value(found, rest)
        if part in ("", "branch", "sentence"):
            decider = _last_decider(found)
            if decider is not None:
                yield Link("decided", _branch_word(found), Decided(found, decider))
        if part in ("status", "reason") and found.top.steps:
            yield Link("branch", _branch_word(found), Returned(found, found.top.steps[-1]))

    def _branch_value(self, branch: Replayed, rest: Steps) -> Iterator[Link]:
        """Yield what a branch gave: what its last stage returned, else its final state."""
        word = _branch_word(branch)
        if branch.result >= 0 and branch.top.steps:
            last = branch.top.steps[-1]
            yield Link("branch", word, Returned(branch, last))
            return
        line = branch.top.timeline
        keys = [rest[0]] if rest else [k for k in line.state(ALWAYS) if line.versions(k)]
        for key in map(str, keys):
            yield Link("branch", word, self.resolve(branch, branch.top, key, ALWAYS, rest[1:]))
        if not keys and branch.top.steps:
            yield Link("branch", word, Returned(branch, branch.top.steps[-1]))

    def _merged(
        self, track: Replayed, branching: Branching, target: Written, place: int
    ) -> Iterator[Link]:
        step, key, steps = target.step, target.key, target.steps
        held = step.level.timeline.held(key, target.version)
        structure = self.tracks.structure
        node = None if structure is None else structure.node(track.key(step))
        merge = "" if node is None else node.detail.get("merge")
        for branch in track.branches(branching) if merge in ("", "keys") else ():
            line = branch.top.timeline
            if not line.versions(key) or branching.fan.status(branch.index) != "ok":
                continue
            # No two branches that ended well wrote a key that was merged. What was hidden in a
            # recording is equal to nothing.
            if (merge and line.now(key) is not MISSING) or same_held(line.now(key), held):
                found = self.resolve(branch, branch.top, key, ALWAYS, steps)
                yield Link("merged", _branch_word(branch), found)
                return
        yield from self.reads(track, step, branching.at, place)
        for branch in track.branches(branching):
            yield from self._branch_value(branch, ())

    def _mapped_out(
        self, track: Replayed, inner: Level, target: Written, place: int
    ) -> Iterator[Link]:
        step, key, steps = target.step, target.key, target.steps
        line = step.level.timeline
        after = line.held(key, target.version)
        before = line.held(key, target.version - 1) if target.version else line.first(key)
        state = inner.timeline.state(inner.closed)
        declared = self._declared(track, step, "outputs")
        names = [declared[key]] if key in declared and declared[key] in state else list(state)
        exact = len(names) == 1 and key in declared
        found = [
            (name, way)
            for name in names
            for way in ways(before, after, state[name], known=exact)
            if exact or is_container(state[name])
        ]
        for name, (start, kept) in found:
            rest = moved(steps, start)
            if rest is not None:
                made = self.resolve(track, inner, name, inner.closed, rest)
                yield Link("output", path_text(name, rest), made)
            if kept and not steps and before is not MISSING:
                at = line.time(key, target.version - 1) if target.version else -1
                made = self.resolve(track, step.level, key, at)
                yield Link("kept", key, made)
        if not found:
            # It was made of what the chart gave by a function, or is what a stage returned.
            if inner.steps:
                yield Link("output", "", Returned(track, inner.steps[-1]))
            for name in () if exact or key in declared else state:
                made = self.resolve(track, inner, name, inner.closed)
                yield Link("output", name, made)

    def _declared(self, track: Replayed, step: Step, which: str) -> Mapping[str, str]:
        """Give what a mount declares of what goes in or out by name; nothing of a function."""
        structure = self.tracks.structure
        node = None if structure is None else structure.node(track.key(step))
        found = None if node is None else node.detail.get(which)
        return found if isinstance(found, Mapping) else {}

    # -- items, inputs, results ----------------------------------------------------------------

    def _of_item(self, target: Item) -> Iterator[Link]:
        track, branching, index, steps = target
        fan, at, step = branching
        match = self._match(track, branching)
        line = step.level.timeline
        for place, code in track.own(step):
            if place >= at:
                break
            if code.kind == "read" and code.key is not None:
                key = code.key
                rest: Steps = ()
                if match == (key, place) or same_object(
                    follow(line.at(key, place), (index,)), fan.item(index)
                ):
                    rest = (index, *steps)
                made = self.resolve(track, step.level, key, place, rest)
                yield Link("read", path_text(key, rest), made)
            elif code.kind == "args":
                yield from self.args(track, step, Made("", fan.items, (index, *steps)))
        yield from self.answers(track, step)

    def _match(self, track: Replayed, branching: Branching) -> tuple[str, int] | None:
        """Find the read that gave the list of items itself."""
        fan, at, step = branching
        if id(fan) not in self._items:
            self._items[id(fan)] = None
            for place, code in track.own(step):
                if code.kind == "read" and code.key is not None and place < at:
                    held = step.level.timeline.at(code.key, place)
                    if held is fan.items or same_items(held, fan.items):
                        self._items[id(fan)] = (code.key, place)
        return self._items[id(fan)]

    def _of_input(self, target: Input) -> Iterator[Link]:
        track, step, key, steps = target
        pairs = self._paired(track, step)
        assert step.entered is not None  # noqa: S101 - it mounted a chart
        if key in pairs:
            name, place = pairs[key]
            made = self.resolve(track, step.level, name, place, steps)
            yield Link("read", path_text(name, steps), made)
            return
        value = step.entered.timeline.first(key)
        yield from self.reads(track, step, -1, step.entered.opened, Made(key, value, steps))

    def _paired(self, track: Replayed, step: Step) -> dict[str, tuple[str, int]]:
        """Pair what was mapped in with what was read for it, where it was so read for read."""
        found = self._pairs.get(id(step))
        if found is None:
            found = self._pairs[id(step)] = {}
            inner = step.entered
            assert inner is not None  # noqa: S101 - it mounted a chart
            seed = inner.timeline.base
            declared = self._declared(track, step, "inputs")
            reads = [
                (code.key, place)
                for place, code in track.own(step)
                if code.kind == "read" and code.key is not None and place < inner.opened
            ]
            if isinstance(seed, Mapping) and len(reads) == len(seed):
                line = step.level.timeline
                pairs = dict(zip(seed, reads, strict=True))
                # Names mapped to names are read one for one, in their order.
                if all(
                    declared.get(name) == key or same_held(line.at(key, place), seed[name])
                    for name, (key, place) in pairs.items()
                ) and not any(code.kind == "args" for _, code in track.own(step)):
                    found.update(pairs)
        return found

    def _of_result(self, target: Returned) -> Iterator[Link]:
        track, step = target
        branching = track.fan_of(step)
        if step.entered is not None and step.entered.steps:
            yield Link("output", "", Returned(track, step.entered.steps[-1]))
        elif branching is not None:
            yield from self._slots(track, branching, ())
        else:
            last = track.result >= 0 and track.top.steps[-1] is step
            value = track.value(track.result) if last else MISSING
            yield from self.reads(track, step, -1, ALWAYS, Made(value=value))


class _Facts(NamedTuple):
    """What a node says of its target."""

    what: str
    key: str
    place: str
    value: Callable[[], Any]
    decision: Decision | Selection | None = None


def _last_decider(branch: Replayed) -> Step | None:
    return next((s for s in reversed(branch.steps) if s.ref.kind == "decider"), None)


def _branch_word(branch: Replayed) -> str:
    assert branch.branching is not None  # noqa: S101 - it is a branch
    fan = branch.branching.fan
    return f"[{branch.index}]" if fan.is_fan_out else str(fan.items[branch.index])
