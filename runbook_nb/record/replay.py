"""A track played again: its steps, its levels, and what every key held when.

Record layer. Nothing here copies a state: each key has a timeline of its values, which are shared
with the log, and a list that grows by appending is kept once, with a length per version. Playing a
track again costs time and memory in the number of its codes, however long it looped.

A mounted chart runs in its parent's track. Its stages carry its path, and what they change belongs
to a level of its own, whose first state is what was mapped in.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from runbook_nb._frozen import FrozenDict, FrozenList
from runbook_nb._text import MISSING
from runbook_nb.record.log import NOT_REACHED, Code, FanOut, Log, StageRef
from runbook_nb.record.places import runtime_id
from runbook_nb.record.shapes import apply_change

#: Kinds of codes that change the state of the level they stand in.
CHANGES: Final = frozenset({"write", "update", "append", "delete"})

#: Words with which a mounted chart is left that has not failed.
_LEFT_WELL: Final = ("ok", "stopped")


class Prefix:
    """The first items of a list that may have grown since.

    Examples
    --------
    >>> grown = ["a", "b"]
    >>> held = Prefix(grown, 1)
    >>> held.value
    ['a']
    """

    __slots__ = ("items", "length")

    def __init__(self, items: list[Any], length: int) -> None:
        self.items = items
        self.length = length

    @property
    def value(self) -> FrozenList:
        """The list as it was."""
        return FrozenList(self.items[: self.length])


def value_of_held(held: Any) -> Any:
    """Give the value a timeline holds."""
    return held.value if held.__class__ is Prefix else held


def grown(held: Any, tail: Sequence[Any]) -> Prefix:
    """Give a list with more items at its end, sharing the items it had where that is possible."""
    if held.__class__ is Prefix and held.length == len(held.items):
        held.items.extend(tail)
        return Prefix(held.items, len(held.items))
    old = value_of_held(held)
    # A log that was read may append to what is no list; replaying it must not break.
    items = [*(old if isinstance(old, list | tuple) else ()), *tail]
    return Prefix(items, len(items))


class Past(NamedTuple):
    """Another timeline, as it was at a time."""

    timeline: Timeline
    time: int


class _Versions:
    """The values of one key, with the time each came about."""

    __slots__ = ("orders", "times", "values")

    def __init__(self) -> None:
        self.times = array("q")
        self.values: list[Any] = []
        #: Per version, the place of its key among the keys; it moves when a key comes anew.
        self.orders = array("q")


_NO_VERSIONS: Final = _Versions()


class Timeline:
    """What each key of one state held at every time; a deleted key holds `MISSING`.

    Parameters
    ----------
    base : mapping or Past
        The state before the first time.

    Examples
    --------
    >>> line = Timeline({"a": 1})
    >>> line.put("a", 4, 2)
    >>> line.at("a", 3), line.at("a", 4), line.at("b", 9)
    (1, 2, MISSING)
    """

    __slots__ = ("_count", "_keys", "base")

    def __init__(self, base: Mapping[str, Any] | Past = FrozenDict()) -> None:  # noqa: B008
        self.base = base
        self._keys: dict[str, _Versions] = {}
        self._count = 0

    def put(self, key: str, time: int, held: Any) -> None:
        """Note that a key holds a value from a time on; times never go back."""
        entry = self._keys.get(key)
        if entry is None:
            entry = self._keys[key] = _Versions()
        if entry.values:
            before, order = entry.values[-1], entry.orders[-1]
        else:
            before, order = self.first(key), -1
        if before is MISSING:
            order = self._count
            self._count += 1
        entry.times.append(time)
        entry.values.append(held)
        entry.orders.append(order)

    def first(self, key: str) -> Any:
        """Give what a key held before the first time."""
        base = self.base
        if isinstance(base, Past):
            return base.timeline.at(key, base.time)
        return base.get(key, MISSING)

    def version(self, key: str, time: int) -> int:
        """Give the number of the version of a key that held at a time; -1 is the base."""
        entry = self._keys.get(key)
        return -1 if entry is None else bisect_right(entry.times, time) - 1

    def held(self, key: str, version: int) -> Any:
        """Give what a key held in one of its versions."""
        return self.first(key) if version < 0 else self._keys[key].values[version]

    def time(self, key: str, version: int) -> int:
        """Give when a version of a key came about."""
        return self._keys[key].times[version]

    def at(self, key: str, time: int) -> Any:
        """Give what a key held at a time."""
        return self.held(key, self.version(key, time))

    def now(self, key: str) -> Any:
        """Give what a key held last."""
        return self.held(key, len(self._keys.get(key, _NO_VERSIONS).times) - 1)

    def versions(self, key: str) -> int:
        """Count the changes of a key."""
        return len(self._keys.get(key, _NO_VERSIONS).times)

    @property
    def keys(self) -> list[str]:
        """Every key that was ever there, those of the base first."""
        return list(dict.fromkeys((*self._base_keys(), *self._keys)))

    def _base_keys(self) -> list[str]:
        base = self.base
        if isinstance(base, Past):
            return list(base.timeline.state(base.time))
        return list(base)

    def state(self, time: int) -> dict[str, Any]:
        """Give what every key held at a time, in the order the keys came."""
        found: list[tuple[tuple[bool, int], str, Any]] = []
        base = {key: place for place, key in enumerate(self._base_keys())}
        for key in self.keys:
            version = self.version(key, time)
            held = self.held(key, version)
            if held is not MISSING:
                order = -1 if version < 0 else self._keys[key].orders[version]
                place = (False, base[key]) if order < 0 else (True, order)
                found.append((place, key, held))
        found.sort(key=lambda entry: entry[0])
        return {key: held for _, key, held in found}


class Step:
    """One executed stage of a track.

    Attributes
    ----------
    number : int
        Which of its track, from 0.
    at, last : int
        Where its first and its last code stand.
    ref : StageRef
    level : Level
        Whose state it read and wrote.
    own : array of int
        Where its codes stand, the first one left out, and those of charts mounted in it.
    status : {"ok", "failed", "paused"}
    jump : Step or None
        The step that went back to where this one follows: it ran because of a loop.
    entered : Level or None
        The level of the chart it mounted.
    place : int
        Its place among the steps of its level.
    """

    __slots__ = ("at", "entered", "jump", "level", "number", "own", "place", "ref", "status")

    def __init__(self, number: int, at: int, ref: StageRef, level: Level) -> None:
        self.number = number
        self.at = at
        self.ref = ref
        self.level = level
        self.own = array("q")
        self.status = "ok"
        self.jump: Step | None = None
        self.entered: Level | None = None
        self.place = len(level.steps)

    @property
    def last(self) -> int:
        """Where its last code stands."""
        return self.own[-1] if self.own else self.at

    @property
    def before(self) -> Step | None:
        """The step of its level that ran before it."""
        return self.level.steps[self.place - 1] if self.place else None


class Level:
    """One execution of a chart in a track: its steps, and the timeline of its state.

    Attributes
    ----------
    path : str
        The path its stages carry.
    timeline : Timeline
    steps : list of Step
    opener : Step or None
        The step that mounted it; None for the level a track begins with.
    opened, closed : int
        Where it was entered and where it was left; -1 for what is not so.
    """

    __slots__ = ("_loops", "_seen", "closed", "opened", "opener", "path", "steps", "timeline")

    def __init__(
        self, path: str, timeline: Timeline, opener: Step | None = None, opened: int = -1
    ) -> None:
        self.path = path
        self.timeline = timeline
        self.steps: list[Step] = []
        self.opener = opener
        self.opened = opened
        self.closed = -1
        #: Target of a loop -> what runs between it and where the loop goes back, the last jump.
        self._loops: dict[str, tuple[set[str], Step]] = {}
        self._seen: dict[str, int] = {}

    def begin(self, step: Step) -> None:
        """Take in a step that begins here."""
        self.steps.append(step)
        self._seen[step.ref.id] = step.place
        jumps = [jump for region, jump in self._loops.values() if step.ref.id in region]
        if jumps:
            step.jump = max(jumps, key=lambda jump: jump.number)

    def go_back(self, target: str) -> None:
        """Note that the last step went back to an earlier stage."""
        if not self.steps:
            return
        region = self._loops[target][0] if target in self._loops else {target}
        first = self._seen.get(target, len(self.steps))
        region.update(step.ref.id for step in self.steps[first:])
        self._loops[target] = (region, self.steps[-1])


class Branching(NamedTuple):
    """Where a fan-out, a fork or a selection stands: its code and its step."""

    fan: FanOut
    at: int
    step: Step


class Replayed:
    """One track, played again.

    Attributes
    ----------
    prefix : str
        What the runtime ids of its steps begin with.
    template : str
        What the structure's keys of its stages begin with.
    first : int
        The number its executions begin with.
    steps, levels, fans : list
        In the order they began.
    parent : Replayed or None
        The track it is a branch of; ``branching`` and ``index`` say which.
    """

    def __init__(
        self,
        log: Log,
        codes: Sequence[int],
        values: Sequence[Any],
        offset: int = 0,
        *,
        prefix: str = "",
        template: str = "",
        first: int = 0,
        path: str = "",
        base: Mapping[str, Any] | Past = FrozenDict(),  # noqa: B008
        parent: Replayed | None = None,
        branching: Branching | None = None,
        index: int = -1,
    ) -> None:
        self.log = log
        self.codes = codes
        self.values = values
        self.offset = offset
        self.prefix = prefix
        self.template = template
        self.first = first
        self.parent = parent
        self.branching = branching
        self.index = index
        self.places = array("q")
        #: Number of the step each code belongs to.
        self.owners = array("q")
        self.steps: list[Step] = []
        self.fans: list[Branching] = []
        #: Where what the track's chart gave is recorded; -1 where it gave nothing.
        self.result = -1
        self._branches: dict[tuple[int, int], Replayed] = {}
        self._fan_of: dict[int, Branching] | None = None
        self.top = Level(path, Timeline(base))
        self.levels = [self.top]
        self._play()

    # -- playing ---------------------------------------------------------------------------

    def _play(self) -> None:
        table, width = self.log.codes, self.log.width
        widths: dict[int, int] = {}
        open_levels = {self.top.path: self.top}
        at = self.offset
        for place, number in enumerate(self.codes):
            code = table[number]
            self.places.append(at)
            wide = widths.get(number)
            if wide is None:
                wide = widths[number] = width(code)
            step = self._take(place, code, open_levels, self.values[at] if wide else None)
            self.owners.append(-1 if step is None else step.number)
            at += wide
        self._settle()

    def _settle(self) -> None:
        """Find the steps that had not ended: what is inside them waits for an answer."""
        for step in reversed(self.steps):
            inner = step.entered
            if step.status == "ok" and inner is not None and inner.closed < 0 and inner.steps:
                failed = inner.steps[-1].status == "failed"
                step.status = "failed" if failed else "paused"
        for branching in self.fans:
            fan, step = branching.fan, branching.step
            if step.status == "ok" and fan.status_count(NOT_REACHED):
                # Those that never began are no branches.
                waiting = (self.branch(branching, i) for i in fan.ended_as(NOT_REACHED))
                if any(one is not None and one.waits for one in waiting):
                    step.status = "paused"

    @property
    def waits(self) -> bool:
        """Whether it had not ended and waits for an answer."""
        return bool(self.top.steps) and self.top.steps[-1].status == "paused"

    def _take(self, place: int, code: Code, levels: dict[str, Level], value: Any) -> Step | None:
        kind, path = code.kind, code.stage.path
        if kind == "result":  # filed by the stage around the track
            self.result = place
            return None
        level = levels.get(path)
        if level is None:
            # A log by another hand may leave out that a level was entered.
            level = levels[path] = Level(path, Timeline())
            self.levels.append(level)
        if kind == "stage":
            step = Step(len(self.steps), place, code.stage, level)
            self.steps.append(step)
            level.begin(step)
            return step
        if kind == "ended" or not level.steps:
            return None  # between stages, or before the first one
        step = level.steps[-1]
        step.own.append(place)
        if kind in CHANGES:
            self._change(level.timeline, place, code, value)
        elif kind == "enter":
            seed = value if isinstance(value, Mapping) else FrozenDict()
            inner = Level(f"{code.stage.key}/", Timeline(seed), step, place)
            levels[inner.path] = step.entered = inner
            self.levels.append(inner)
        elif kind == "leave":
            if step.entered is not None:
                step.entered.closed = place
            step.status = "ok" if code.key in _LEFT_WELL else "failed"
        elif kind == "fan_out":
            self.fans.append(Branching(value, place, step))
        elif kind == "loop":
            level.go_back(code.key or "")
        elif kind in ("error", "pause"):
            step.status = "failed" if kind == "error" else "paused"
        return step

    def _change(self, timeline: Timeline, place: int, code: Code, value: Any) -> None:
        key = code.key or ""
        if code.kind == "append":
            value = grown(timeline.now(key), (value,))
        elif code.kind != "write":
            before = timeline.now(key)
            state = {} if before is MISSING else {key: value_of_held(before)}
            apply_change(state, code, value)
            value = state.get(key, MISSING)
        timeline.put(key, place, value)

    # -- asking ----------------------------------------------------------------------------

    def code(self, place: int) -> Code:
        """Give the code at a place."""
        return self.log.codes[self.codes[place]]

    def value(self, place: int) -> Any:
        """Give the value that goes with the code at a place; None where none does."""
        code = self.code(place)
        return self.values[self.places[place]] if self.log.width(code) else None

    def actuals(self, place: int) -> tuple[Any, ...]:
        """Give all values that go with the code at a place."""
        at = self.places[place]
        return tuple(self.values[at : at + self.log.width(self.code(place))])

    def own(self, step: Step) -> Iterator[tuple[int, Code]]:
        """Yield the codes of a step with their places, those of charts mounted in it left out."""
        return ((place, self.code(place)) for place in step.own)

    def runtime_id(self, step: Step) -> str:
        """Name the execution."""
        return runtime_id(self.prefix, step.ref.key, self.first + step.number)

    def key(self, step: Step) -> str:
        """Give the key of the step's stage in the structure."""
        return f"{self.template}{step.ref.key}"

    def step_at(self, place: int) -> Step:
        """Give the step of the code at a place."""
        return self.steps[self.owners[place]]

    def fan_of(self, step: Step) -> Branching | None:
        """Give the branches of a step; None where it has none."""
        if self._fan_of is None:
            self._fan_of = {one.step.number: one for one in self.fans}
        return self._fan_of.get(step.number)

    def branch(self, branching: Branching, index: int) -> Replayed | None:
        """Play a branch again; None when it never began."""
        fan, place, step = branching
        found = self._branches.get((place, index))
        shape = fan.shape(index)
        if found is None and shape is not None:
            inside = not fan.is_fan_out  # children of a fork go on from the state it found
            found = self._branches[place, index] = Replayed(
                self.log,
                shape.codes,
                *fan.part(index),
                prefix=fan.path(self.prefix, index),
                template=fan.template(self.template),
                first=fan.base(index),
                path=fan.stage.path if inside else "",
                base=Past(step.level.timeline, place) if inside else FrozenDict(),
                parent=self,
                branching=branching,
                index=index,
            )
        return found

    def branches(self, branching: Branching) -> Iterator[Replayed]:
        """Play every branch that began again, in item order."""
        for index in range(len(branching.fan)):
            found = self.branch(branching, index)
            if found is not None:
                yield found
