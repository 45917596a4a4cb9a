"""Tracing through the tracks of a run: who wrote what was read, and why a step ran.

Record layer. Where it can be told which part of a value a step used, the trace follows that part;
where it cannot, everything that was read counts. So a trace may name too much of what was
recorded, and never too little.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from runbook_nb._frozen import FrozenDict
from runbook_nb._text import MISSING
from runbook_nb.record.bundles import deep_equal
from runbook_nb.record.lookup import Steps, follow, path_text
from runbook_nb.record.origins import Origins, same_inside
from runbook_nb.record.replay import Level, Past, Replayed, Step, Timeline
from runbook_nb.record.sources import RecordedSource
from runbook_nb.record.trace_signs import dotted, grew_from, is_container
from runbook_nb.record.trace_targets import (
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
from runbook_nb.record.tracing import Tracer

if TYPE_CHECKING:
    from runbook_nb.record.commits import RunTracks


class Made(NamedTuple):
    """What a step made of what it read: the key it wrote, the value, the path inside it."""

    name: str = ""
    value: Any = MISSING
    steps: Steps = ()


_NOTHING_MADE: Final = Made()


class ReadTracer(Tracer):
    """Traces through the tracks of a run."""

    def __init__(self, tracks: RunTracks, source: RecordedSource) -> None:
        super().__init__(source)
        self.tracks = tracks
        self.source = source
        self._items: dict[int, tuple[str, int] | None] = {}
        self._pairs: dict[int, dict[str, tuple[str, int]]] = {}
        self._kept: dict[tuple[int, str, Steps], dict[int, bool]] = {}
        self._updates: dict[tuple[int, int, int], bool] = {}

    def start(self, key: str, steps: Steps, time: int) -> Target:
        """Give the target of a key at a time."""
        return self.resolve(self.source.track, self.source.level, key, time, steps)

    def mark(self, target: Target) -> Any:
        """Give what tells a target from others."""
        if isinstance(target, Written | Input):
            return (
                type(target),
                id(target.track),
                target.step.number,
                target.key,
                target.steps,
            )
        if isinstance(target, Item):
            return (Item, id(target.track), target.branching.at, target.number, target.steps)
        if isinstance(target, Decided | Looped | Returned):
            return (type(target), id(target.track), target.step.number)
        raise TypeError(type(target))

    def origins(self, track: Replayed, level: Level) -> Origins:
        """Give the origins of the values of a level."""
        return self.tracks.log_of(track, level).raw_source.origins

    def resolve(
        self, track: Replayed, level: Level, key: str, time: int, steps: Steps = ()
    ) -> Target:
        """Give who brought about what a key held at a time, at a path inside it."""
        while True:
            line = level.timeline
            version = line.version(key, time)
            origins = self.origins(track, level)
            origin = origins.origin(key, steps, version)
            if origin >= 0:
                made = origins.written(key, steps, origin)
                step = track.step_at(line.time(key, made))
                return Written(track, step, key, steps, made)
            held = line.first(key)
            if held is MISSING:
                return End("absent", path_text(key, steps), "", nothing, (id(track), level.path))
            if level.opener is not None:
                return Input(track, level.opener, key, steps)
            if track.parent is None or track.branching is None:
                shown = partial(self.shown, key, held, steps)
                return End("initial", path_text(key, steps), "", shown)
            level, time, track = track.branching.step.level, track.branching.at, track.parent

    def control(self, track: Replayed, step: Step) -> Iterator[Link]:
        """Yield why a step ran at all: a decision, a selection, a loop, of its own or around it."""
        while True:
            before = step.before
            while before is not None and before.ref == step.ref and before.status == "paused":
                step, before = before, before.before  # it went on with an answer
            if before is not None and before.ref.kind == "decider" and before.status == "ok":
                yield Link("decided", "", Decided(track, before))
                return
            if step.jump is not None:
                yield Link("looped", "", Looped(track, step.jump))
                return
            if step.level.opener is not None:
                step = step.level.opener
            elif track.parent is not None and track.branching is not None:
                branching, track = track.branching, track.parent
                step = branching.step
                if branching.fan.form == "selection":
                    yield Link("selected", "", Decided(track, step))
                    return
            else:
                return

    # -- reads ---------------------------------------------------------------------------------

    def reads(
        self, track: Replayed, step: Step, begin: int, end: int, made: Made = _NOTHING_MADE
    ) -> Iterator[Link]:
        """Yield what a step read between two places, its input and answers among it.

        A read that gave the very object that was made of it is followed at the path asked about.
        """
        for place, code in track.own(step):
            if not begin < place < end:
                continue
            if code.kind == "read" and code.key is not None:
                yield from self._read(track, step, code.key, place, made)
            elif code.kind == "args":
                yield from self.args(track, step, made)
        yield from self.answers(track, step)

    def answers(self, track: Replayed, step: Step) -> Iterator[Link]:
        """Yield the answers a step went on with."""
        before = step.before
        while before is not None and before.ref == step.ref and before.status == "paused":
            for place, code in track.own(before):
                if code.kind == "resume":
                    shown = partial(self.redactor.scrub, track.value(place))
                    mark = (id(track), place)
                    yield Link("answer", "", End("answer", "", step.ref.name, shown, mark))
            before = before.before

    def _read(
        self, track: Replayed, step: Step, key: str, place: int, made: Made
    ) -> Iterator[Link]:
        line = step.level.timeline
        version = line.version(key, place)
        held = line.held(key, version)
        rest: Steps = ()
        if held is MISSING and "." in key:
            key, rest = dotted(line.at, key, place)
            version = line.version(key, place)
            held = line.held(key, version)
        if version >= 0 and track.step_at(line.time(key, version)) is step:
            # Of its own writing, only what it was built on comes from elsewhere.
            for link in self.kept(Written(track, step, key, rest, version)):
                yield link._replace(kind="read")
            return
        if is_container(made.value) and held is made.value:
            rest = (*rest, *made.steps)
        found = self.resolve(track, step.level, key, place, rest)
        yield Link("read", path_text(key, rest), found)

    def kept(self, target: Written) -> Iterator[Link]:
        """Yield what stood at a path before, where what a step wrote there is made of it too."""
        track, step, key, steps, version = target
        line = step.level.timeline
        first = self.origins(track, step.level).first_of_step(key, version)
        mark = (id(step.level), key, steps)
        known = self._kept.setdefault(mark, {})
        passed: list[int] = []
        builds = True
        while builds and version not in known:
            passed.append(version)
            builds = self._builds_on(track, line, key, version, steps)
            if version == first:
                break
            version -= 1
        builds = known.get(version, builds) if builds else False
        known.update(dict.fromkeys(passed, builds))
        if builds:
            time = line.time(key, first - 1) if first else -1
            found = self.resolve(track, step.level, key, time, steps)
            yield Link("kept", path_text(key, steps), found)

    @staticmethod
    def _builds_on(track: Replayed, line: Timeline, key: str, version: int, steps: Steps) -> bool:
        """Say whether what stands at a path after a change is made of what stood there before."""
        before, after = line.held(key, version - 1), line.held(key, version)
        if follow(before, steps) is MISSING:
            return False
        if same_inside(before, after, steps):
            return True
        place = line.time(key, version)
        kind, here = track.code(place).kind, follow(track.value(place), steps)
        if kind == "append":
            return not steps
        if kind == "update":
            return isinstance(here, Mapping)
        # What a child of a fork appends to, or merges into, its parent's value is written whole.
        inherited = version == 0 and isinstance(line.base, Past)
        return inherited and kind == "write" and grew_from(follow(before, steps), here)

    def _args_of(self, track: Replayed, level: Level) -> Mapping[str, Any]:
        while True:
            if level.opener is not None:
                seed = level.timeline.base
                return seed if isinstance(seed, Mapping) else FrozenDict()
            if track.parent is None or track.branching is None:
                return self.tracks.args
            if track.branching.fan.is_fan_out:
                items = track.branching.fan.items
                return FrozenDict(item=items[track.index], index=track.index)
            level, track = track.branching.step.level, track.parent

    def args(self, track: Replayed, step: Step, made: Made = _NOTHING_MADE) -> Iterator[Link]:
        """Yield what looking at the input rests on, where it can be told which part of it."""
        level = step.level
        args = self._args_of(track, level)
        part = self._part_of(track, step, args, made)
        if not part and len(args) == 1:
            part = tuple(args)  # all of it is that one entry
        while level.opener is None and track.parent is not None and track.branching is not None:
            if track.branching.fan.is_fan_out:
                rest = part[1:] if part[:1] == ("item",) else ()
                target = Item(track.parent, track.branching, track.index, rest)
                yield Link("item", path_text("item", rest), target)
                return
            level, track = track.branching.step.level, track.parent
        if level.opener is None:
            place = path_text(str(part[0]), part[1:]) if part else ""
            key = str(part[0]) if part else ""
            yield Link(
                "input",
                place,
                End("args", place, "", lambda: self._shown_args(args, key, part[1:])),
            )
            return
        for key in map(str, part[:1] or tuple(args)):
            rest = part[1:]
            yield Link("input", path_text(key, rest), Input(track, level.opener, key, rest))

    def _part_of(self, track: Replayed, step: Step, args: Mapping[str, Any], made: Made) -> Steps:
        """Find which part of its input a step wrote: the very object, or an entry of it all."""
        name, value, steps = made
        if value is MISSING:
            return ()
        for key, one in args.items():
            if one is value and is_container(value):
                return (key, *steps)
        item = args.get("item")
        for path, around in (((), args), (("item",), item)):
            if (
                isinstance(around, Mapping)
                and name in around
                and self._wrote_all(track, step, around)
            ):
                return (*path, name, *steps)
        return ()

    def _wrote_all(self, track: Replayed, step: Step, around: Mapping[str, Any]) -> bool:
        """Say whether a step wrote every entry of a mapping in its order, as an update does."""
        mark = (id(track), step.number, id(around))
        if mark not in self._updates:
            wrote = [
                (code.key or "", track.value(place))
                for place, code in track.own(step)
                if code.kind == "write"
            ]
            begin = next((n for n, (key, _) in enumerate(wrote) if key == next(iter(around))), 0)
            run = wrote[begin : begin + len(around)]
            self._updates[mark] = (
                len(around) > 1
                and [key for key, _ in run] == list(around)
                and all(deep_equal(value, around[key]) for key, value in run)
            )
        return self._updates[mark]

    def _shown_args(self, args: Mapping[str, Any], key: str, rest: Steps) -> Any:
        if not key:
            return self.redactor.served(args)
        return self.shown(key, args.get(key, MISSING), rest)
