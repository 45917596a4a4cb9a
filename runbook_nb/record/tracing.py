"""Tracing a value back through the log: what each step read, and why it ran.

Record layer. The trace goes breadth first and meets every step once, so it costs no more than the
part of the run that led to the value. Two links are told from the record by sight: a value that
*is* the object that was read (copies keep the object) rests on that place alone, and what a
mounted chart gave is found by the values that came out. Where that is not enough, everything that
was read counts: a slice may name too much, never too little of what was recorded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from runbook_nb._frozen import FrozenDict
from runbook_nb._text import MISSING, did_you_mean, listed
from runbook_nb.errors import PathError
from runbook_nb.record.bundles import deep_equal
from runbook_nb.record.log import Code
from runbook_nb.record.origins import same_held
from runbook_nb.record.paths import Steps, follow, must_follow, path_of, path_text
from runbook_nb.record.queries import clamped
from runbook_nb.record.replay import Branching, Level, Prefix, Replayed, Step, value_of_held
from runbook_nb.record.slots import Slots, slot_of
from runbook_nb.record.sources import PublishedSource, RecordedSource, Source
from runbook_nb.record.why import Why, WhyEdge, WhyNode, WhySource
from runbook_nb.rules.decision import Decision, Selection

if TYPE_CHECKING:
    from runbook_nb.record.commits import CommitLog, RunTracks

#: State keys named in an error before the rest is left out.
_NAMED: Final = 8

#: A state key is asked about after the last code there is.
_ALWAYS: Final = 2**62


def trace(log: CommitLog, path: str, at: int | None = None) -> Why:
    """Trace a value of a log's state back to where its reads end."""
    source = log.source
    line = source.timeline
    key, steps = path_of(path, line.keys)
    time = _ALWAYS if at is None else source.end(clamped(source, at))
    held = line.at(key, time)
    if held is MISSING and line.version(key, time) < 0:
        raise _no_key(source, key, time)
    if held is MISSING and steps:
        raise PathError(
            f"{key!r} was deleted, so there is nothing inside it",
            where=path,
            fix=f"ask why({key!r}), or for a time before that with at=",
        )
    if follow(held, steps) is MISSING and held is not MISSING:
        # Said of what may be seen.
        must_follow(source.redactor.value(key, value_of_held(held)), key, steps)
        raise PathError(f"{path!r} leads nowhere", where=path)
    tracer: _Tracer
    if isinstance(source, RecordedSource) and log.run is not None:
        tracer = _RunTracer(log.run, source)
    elif isinstance(source, PublishedSource):
        tracer = _BundleTracer(source)
    else:
        raise TypeError(f"a {type(source).__name__} cannot be traced")
    tracer.go(tracer.start(key, steps, time))
    value = tracer.shown(key, held, steps)
    return Why(
        name=log.name,
        path=source.redactor.text(path_text(key, steps)),
        value=None if value is MISSING else value,
        nodes=tuple(tracer.nodes),
        edges=tuple(tracer.edges),
        sources=tuple(tracer.sources),
    )


def _no_key(source: Source, key: str, time: int) -> PathError:
    text = source.redactor.text
    there = [text(one) for one in source.timeline.state(time)]
    names = f"{listed(there[:_NAMED])}{' and more' if len(there) > _NAMED else ''}"
    return PathError(
        f"nobody has written {text(key)!r}",
        where=text(key),
        fix=did_you_mean(key, there) or (f"the state has {names}" if there else None),
    )


class Link(NamedTuple):
    """What a target rests on: how, the word for it, and the target."""

    kind: str
    key: str
    target: Target


# -- targets -----------------------------------------------------------------------------------


class Written(NamedTuple):
    """A change of a key by a step."""

    track: Replayed
    step: Step
    key: str
    steps: Steps
    version: int


class Decided(NamedTuple):
    """What a decider or a selector came to."""

    track: Replayed
    step: Step


class Looped(NamedTuple):
    """That a step sent the run back."""

    track: Replayed
    step: Step


class Item(NamedTuple):
    """An item handed to a branch of a fan-out."""

    track: Replayed
    branching: Branching
    index: int
    steps: Steps


class Input(NamedTuple):
    """A key mapped into a mounted chart."""

    track: Replayed
    step: Step
    key: str
    steps: Steps


class Returned(NamedTuple):
    """What a step returned."""

    track: Replayed
    step: Step


class Bundled(NamedTuple):
    """A change of a key in a log that was written down."""

    index: int
    key: str
    steps: Steps
    version: int


class End(NamedTuple):
    """Where a slice ends."""

    kind: str
    place: str
    stage: str
    value: Callable[[], Any]
    mark: Any = None


Target = Written | Decided | Looped | Item | Input | Returned | Bundled | End


def _nothing() -> Any:
    return MISSING


def _is_container(value: Any) -> bool:
    return isinstance(value, dict | list) or value.__class__ is Prefix


class _Tracer:
    """Goes from target to target, each once, nearest first."""

    def __init__(self, source: Source) -> None:
        self.redactor = source.redactor
        self.nodes: list[WhyNode] = []
        self.edges: list[WhyEdge] = []
        self.sources: list[WhySource] = []
        self._known: dict[Any, str] = {}
        self._ends: dict[str, WhySource] = {}
        self._waiting: deque[tuple[str, int, Target]] = deque()
        self._served: dict[Any, Any] = {}

    def start(self, key: str, steps: Steps, time: int) -> Target:
        """Give the target of a key at a time."""
        raise NotImplementedError

    def mark(self, target: Target) -> Any:
        """Give what tells a target from others."""
        raise NotImplementedError

    def node(self, name: str, depth: int, target: Target) -> WhyNode:
        """Make the node of a target."""
        raise NotImplementedError

    def links(self, target: Target) -> Iterator[Link]:
        """Yield what a target rests on."""
        raise NotImplementedError

    def go(self, target: Target) -> None:
        """Trace a target."""
        self._meet(target, 0)
        while self._waiting:
            name, depth, here = self._waiting.popleft()
            met: dict[WhyEdge, None] = {}
            for link in self.links(here):
                origin = self._meet(link.target, depth + 1)
                if origin != name:
                    met[WhyEdge(name, origin, link.kind, self.redactor.text(link.key))] = None
            for edge in met:
                self.edges.append(edge)
                if edge.origin in self._ends:
                    self._ends[edge.origin].times += 1

    def _meet(self, target: Target, depth: int) -> str:
        if isinstance(target, End):
            return self._end(target)
        mark = self.mark(target)
        found = self._known.get(mark)
        if found is None:
            found = self._known[mark] = f"n{len(self.nodes)}"
            self.nodes.append(self.node(found, depth, target))
            self._waiting.append((found, depth, target))
        return found

    def _end(self, end: End) -> str:
        mark = (end.kind, end.place, end.stage, end.mark)
        found = self._known.get(mark)
        if found is None:
            text = self.redactor.text
            found = self._known[mark] = f"s{len(self.sources)}"
            source = WhySource(found, end.kind, text(end.place), text(end.stage), end.value)
            self.sources.append(source)
            self._ends[found] = source
        return found

    def shown(self, key: str, held: Any, steps: Steps, mark: Any = None) -> Any:
        """Give what stands at a path of a key's value, served."""
        if held is MISSING:
            return MISSING
        if not self.redactor.active:
            return value_of_held(follow(held, steps))
        found: Any = MISSING if mark is None else self._served.get(mark, MISSING)
        if found is MISSING:
            found = self.redactor.value(key, value_of_held(held))
            if mark is not None:
                self._served[mark] = found
        for place in range(len(steps)):
            if isinstance(found, str):  # what stands for a hidden value stands for all inside it
                return found
            found = follow(found, steps[place : place + 1])
        return found


# -- a run -------------------------------------------------------------------------------------


class _RunTracer(_Tracer):
    """Traces through the tracks of a run."""

    def __init__(self, tracks: RunTracks, source: RecordedSource) -> None:
        super().__init__(source)
        self.tracks = tracks
        self.source = source
        self._items: dict[int, tuple[str, int] | None] = {}
        self._pairs: dict[int, dict[str, tuple[str, int]]] = {}
        self._updates: dict[tuple[int, int, int], bool] = {}

    def start(self, key: str, steps: Steps, time: int) -> Target:
        return self.resolve(self.source.track, self.source.level, key, time, steps)

    def mark(self, target: Target) -> Any:
        if isinstance(target, Written | Input):
            return (
                type(target),
                id(target.track),
                target.step.number,
                target.key,
                target.steps,
            )
        if isinstance(target, Item):
            return (Item, id(target.track), target.branching.at, target.index, target.steps)
        if isinstance(target, Decided | Looped | Returned):
            return (type(target), id(target.track), target.step.number)
        raise TypeError(type(target))

    # -- finding who wrote ---------------------------------------------------------------------

    def resolve(
        self, track: Replayed, level: Level, key: str, time: int, steps: Steps = ()
    ) -> Target:
        """Give who brought about what a key held at a time, at a path inside it."""
        while True:
            line = level.timeline
            version = line.version(key, time)
            origins = self.tracks.log_of(track, level).source.origins
            origin = origins.origin(key, steps, version)
            if origin >= 0:
                made = origins.written(key, steps, origin)
                step = track.step_at(line.time(key, made))
                return Written(track, step, key, steps, made)
            held = line.first(key)
            if held is MISSING:
                return End("absent", path_text(key, steps), "", _nothing, (id(track), level.path))
            if level.opener is not None:
                return Input(track, level.opener, key, steps)
            if track.parent is None or track.branching is None:
                return End(
                    "initial",
                    path_text(key, steps),
                    "",
                    lambda held=held: self.shown(key, held, steps),
                )
            level, time, track = track.branching.step.level, track.branching.at, track.parent

    # -- nodes ---------------------------------------------------------------------------------

    def node(self, name: str, depth: int, target: Target) -> WhyNode:
        text = self.redactor.text
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
            fan, index = target.branching.fan, target.index
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
            item = target.branching.fan.items[target.index]
            mark = ("item", id(target.branching.fan), target.index)
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
        return _Facts("loop", "", "", _nothing)

    def _facts_of_write(self, target: Written) -> _Facts:
        track, step, key, steps, version = target
        held = step.level.timeline.held(key, version)
        what = "delete" if held is MISSING else "write"
        mark = (id(step.level), key, version)
        return _Facts(
            what, key, path_text(key, steps), lambda: self.shown(key, held, steps, mark)
        )

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
        if isinstance(target, Written):
            return self._with_own(target, self._of_write(target))
        if isinstance(target, Decided):
            step = target.step
            fan = target.track.fan_of(step)
            end = _ALWAYS if fan is None else fan.at
            reads = self._reads(target.track, step, -1, end)
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
            yield Link("own", "", End("own", track.key(step), step.ref.name, _nothing))
        yield from self.control(track, step)

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

    def _reads(
        self,
        track: Replayed,
        step: Step,
        begin: int,
        end: int,
        *,
        name: str = "",
        value: Any = MISSING,
        steps: Steps = (),
    ) -> Iterator[Link]:
        """Yield what a step read between two places, its input and answers among it.

        A read that gave the very object that was written is followed at the path asked about.
        """
        for place, code in track.own(step):
            if not begin < place < end:
                continue
            if code.kind == "read" and code.key is not None:
                yield from self._read(track, step, code.key, place, value, steps)
            elif code.kind == "args":
                yield from self._args(track, step, name, value, steps)
        yield from self._answers(track, step)

    def _answers(self, track: Replayed, step: Step) -> Iterator[Link]:
        before = step.before
        while before is not None and before.ref == step.ref and before.status == "paused":
            for place, code in track.own(before):
                if code.kind == "resume":
                    answer = track.value(place)
                    end = End(
                        "answer",
                        "",
                        step.ref.name,
                        lambda answer=answer: self.redactor.scrub(answer),
                        (id(track), place),
                    )
                    yield Link("answer", "", end)
            before = before.before

    def _read(
        self, track: Replayed, step: Step, key: str, place: int, value: Any, steps: Steps
    ) -> Iterator[Link]:
        line = step.level.timeline
        version = line.version(key, place)
        held = line.held(key, version)
        rest: Steps = ()
        if held is MISSING and "." in key:
            key, rest = _dotted(line.at, key, place)
            version = line.version(key, place)
            held = line.held(key, version)
        if version >= 0 and track.step_at(line.time(key, version)) is step:
            # Its own writing: what that was built on counts, what it read before does anyway.
            while version > 0 and track.step_at(line.time(key, version - 1)) is step:
                version -= 1
            if track.code(line.time(key, version)).kind in ("append", "update"):
                target = self.resolve(track, step.level, key, step.at, rest)
                yield Link("read", path_text(key, rest), target)
            return
        if _is_container(value) and held is value:
            rest = (*rest, *steps)
        yield Link(
            "read", path_text(key, rest), self.resolve(track, step.level, key, place, rest)
        )

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

    def _args(
        self, track: Replayed, step: Step, name: str, value: Any, steps: Steps
    ) -> Iterator[Link]:
        """Yield what looking at the input rests on, where it can be told which part of it."""
        level = step.level
        args = self._args_of(track, level)
        part = self._part_of(track, step, args, name, value, steps)
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
        for key in part[:1] or tuple(args):
            rest = part[1:]
            yield Link(
                "input",
                path_text(str(key), rest),
                Input(track, level.opener, str(key), rest),
            )

    def _part_of(
        self,
        track: Replayed,
        step: Step,
        args: Mapping[str, Any],
        name: str,
        value: Any,
        steps: Steps,
    ) -> Steps:
        """Find which part of its input a step wrote: the very object, or the one of that name."""
        if value is MISSING:
            return ()
        for key, one in args.items():
            if one is value and _is_container(value):
                return (key, *steps)
        item = args.get("item")
        for path, around in (((), args), (("item",), item)):
            if (
                isinstance(around, Mapping)
                and name in around
                and around[name] is value
                and (_is_telling(value) or self._wrote_all(track, step, around))
            ):
                return (*path, name, *steps)
        return ()

    def _wrote_all(self, track: Replayed, step: Step, around: Mapping[str, Any]) -> bool:
        """Say whether a step wrote every entry of a mapping in its order, as an update does."""
        mark = (id(track), step.number, id(around))
        if mark not in self._updates:
            wrote = [
                (code.key, track.value(place))
                for place, code in track.own(step)
                if code.kind == "write"
            ]
            begin = next((n for n, (key, _) in enumerate(wrote) if key == next(iter(around))), 0)
            run = wrote[begin : begin + len(around)]
            self._updates[mark] = len(around) > 1 and [key for key, _ in run] == list(around) and (
                all(value is around[key] for key, value in run)
            )
        return self._updates[mark]

    def _shown_args(self, args: Mapping[str, Any], key: str, rest: Steps) -> Any:
        if not key:
            return self.redactor.served(args)
        return self.shown(key, args.get(key, MISSING), rest)

    # -- writes --------------------------------------------------------------------------------

    def _of_write(self, target: Written) -> Iterator[Link]:
        track, step, key, steps, version = target
        line = step.level.timeline
        place = line.time(key, version)
        code, held = track.code(place), line.held(key, version)
        branching, inner = track.fan_of(step), step.entered
        if branching is not None and place > branching.at:
            if isinstance(held, Slots) and held.fan_out is branching.fan:
                yield from self._slots(track, branching, steps)
            else:
                yield from self._merged(track, branching, target, place)
            return
        if inner is not None and 0 <= inner.closed < place:
            yield from self._mapped_out(track, inner, target, place)
            yield from self._reads(track, step, inner.closed, place)
            return
        if self._builds_on(code, track.value(place), steps):
            before = line.held(key, version - 1)
            if follow(before, steps) is not MISSING:
                at = line.time(key, version - 1) if version else -1
                yield Link(
                    "kept",
                    path_text(key, steps),
                    self.resolve(track, step.level, key, at, steps),
                )
        yield from self._reads(track, step, -1, place, name=key, value=held, steps=steps)

    @staticmethod
    def _builds_on(code: Code, value: Any, steps: Steps) -> bool:
        """Say whether what stands at the path is made of what stood there before, too."""
        if code.kind == "append":
            return not steps
        return code.kind == "update" and isinstance(follow(value, steps), Mapping)

    def _slots(self, track: Replayed, branching: Branching, steps: Steps) -> Iterator[Link]:
        fan, _, step = branching
        if not steps or not isinstance(steps[0], int):
            yield from self._reads(track, step, -1, branching.at)
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
                yield from self._reads(track, step, -1, branching.at)
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
        keys = [rest[0]] if rest else [k for k in line.state(_ALWAYS) if line.versions(k)]
        for key in map(str, keys):
            yield Link("branch", word, self.resolve(branch, branch.top, key, _ALWAYS, rest[1:]))
        if not keys and branch.top.steps:
            yield Link("branch", word, Returned(branch, branch.top.steps[-1]))

    def _merged(
        self, track: Replayed, branching: Branching, target: Written, place: int
    ) -> Iterator[Link]:
        step, key, steps = target.step, target.key, target.steps
        held = step.level.timeline.held(key, target.version)
        wrote = [
            branch
            for branch in track.branches(branching)
            if branch.top.timeline.versions(key)
            and same_held(branch.top.timeline.now(key), held)
        ]
        if wrote:
            for branch in wrote:
                found = self.resolve(branch, branch.top, key, _ALWAYS, steps)
                yield Link("merged", _branch_word(branch), found)
            return
        yield from self._reads(track, step, branching.at, place)
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
            for way in _ways(before, after, state[name])
            if exact or _is_telling(value_of_held(state[name]))
        ]
        for name, (start, kept) in found:
            rest = _moved(steps, start)
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
                if match == (key, place) or _same_object(
                    follow(line.at(key, place), (index,)), fan.items[index]
                ):
                    rest = (index, *steps)
                made = self.resolve(track, step.level, key, place, rest)
                yield Link("read", path_text(key, rest), made)
            elif code.kind == "args":
                yield from self._args(track, step, "", fan.items, (index, *steps))
        yield from self._answers(track, step)

    def _match(self, track: Replayed, branching: Branching) -> tuple[str, int] | None:
        """Find the read that gave the list of items itself."""
        fan, at, step = branching
        if id(fan) not in self._items:
            self._items[id(fan)] = None
            for place, code in track.own(step):
                if code.kind == "read" and code.key is not None and place < at:
                    held = step.level.timeline.at(code.key, place)
                    if held is fan.items or _same_items(held, fan.items):
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
        yield from self._reads(
            track, step, -1, step.entered.opened, name=key, value=value, steps=steps
        )

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
            value = track.value(track.result) if track.result >= 0 else MISSING
            yield from self._reads(track, step, -1, _ALWAYS, value=value)


class _Facts(NamedTuple):
    """What a node says of its target."""

    what: str
    key: str
    place: str
    value: Callable[[], Any]
    decision: Decision | Selection | None = None


def _dotted(at: Callable[[str, int], Any], key: str, time: int) -> tuple[str, Steps]:
    """Read a dotted key as rules do: a path into what its first part holds."""
    first, *names = key.split(".")
    held = at(first, time)
    steps: list[str | int] = []
    for name in names:
        is_list = held.__class__ is Prefix or isinstance(held, list | tuple)
        steps.append(int(name) if is_list and name.isascii() and name.isdigit() else name)
        held = follow(held, steps[-1:])
        if held is MISSING:
            return first, ()
    return first, tuple(steps)


def _is_telling(value: Any) -> bool:
    """Say whether a value that is the very object somewhere else hardly can be so by chance.

    Python keeps one true, one false, one None, one of each small number and short text.
    """
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int):
        return not -6 < value < 257  # noqa: PLR2004 - what the interpreter keeps one of
    return not (isinstance(value, str | bytes) and len(value) < 2)  # noqa: PLR2004


def _same_object(a: Any, b: Any) -> bool:
    """Say whether two values are one object that can be told from equal ones."""
    return a is b and _is_container(a)


def _same_items(held: Any, items: Sequence[Any]) -> bool:
    if held.__class__ is Prefix:
        held = value_of_held(held)
    if not isinstance(held, list) or len(held) != len(items):
        return False
    return all(a is b for a, b in zip(held, items, strict=True))


def _ways(before: Any, after: Any, given: Any) -> Iterator[tuple[int, bool]]:
    """Say how a value may have come out of a mounted chart.

    Yields where in ``after`` it begins, and whether it was joined to what was there.
    """
    after, given = value_of_held(after), value_of_held(given)
    before = value_of_held(before)
    if after is given or (_is_container(given) and deep_equal(after, given)):
        yield 0, False
    elif isinstance(given, list) and isinstance(before, list) and isinstance(after, list):
        joined = len(after) == len(before) + len(given)
        tail = after[len(before) :]
        if joined and given and all(a is b for a, b in zip(tail, given, strict=True)):
            yield len(before), True
    elif isinstance(given, dict) and isinstance(before, dict) and isinstance(after, dict):
        if given and all(key in after for key in given) and len(after) <= len(before) + len(given):
            yield 0, True


def _moved(steps: Steps, start: int) -> Steps | None:
    """Move a path from the joined list into the list that was put behind it."""
    if not start or not steps:
        return steps
    first = steps[0]
    return (first - start, *steps[1:]) if isinstance(first, int) and first >= start else None


def _last_decider(branch: Replayed) -> Step | None:
    return next((s for s in reversed(branch.steps) if s.ref.kind == "decider"), None)


def _branch_word(branch: Replayed) -> str:
    assert branch.branching is not None  # noqa: S101 - it is a branch
    fan = branch.branching.fan
    return f"[{branch.index}]" if fan.is_fan_out else str(fan.items[branch.index])


# -- bundles -----------------------------------------------------------------------------------


class _BundleTracer(_Tracer):
    """Traces through a commit log that was written down: its rows say what was read, or not."""

    def __init__(self, source: PublishedSource) -> None:
        super().__init__(source)
        self.source = source

    def start(self, key: str, steps: Steps, time: int) -> Target:
        return self.resolve(key, steps, time)

    def mark(self, target: Target) -> Any:
        assert isinstance(target, Bundled)  # noqa: S101 - of bundles
        return target[:3]

    def resolve(self, key: str, steps: Steps, time: int) -> Target:
        """Give who brought about what a key held at a time, at a path inside it."""
        line = self.source.timeline
        origin = self.source.origins.origin(key, steps, line.version(key, time))
        if origin >= 0:
            return Bundled(line.time(key, origin), key, steps, origin)
        held, place = line.first(key), path_text(key, steps)
        if held is MISSING:
            return End("absent", place, "", _nothing)
        return End("initial", place, "", lambda: self.shown(key, held, steps))

    def node(self, name: str, depth: int, target: Target) -> WhyNode:
        assert isinstance(target, Bundled)  # noqa: S101 - of bundles
        source, (index, key, steps, version) = self.source, target
        held = source.timeline.held(key, version)
        return WhyNode(
            lambda: self.shown(key, held, steps),
            id=name,
            what="delete" if held is MISSING else "write",
            runtime_stage_id=source.runtime_id(index),
            stage_id=source.stage_id(index),
            stage=source.stage(index),
            log=source.path,
            commit=index,
            node=source.stage_id(index),
            kind="stage",
            key=key,
            place=path_text(key, steps),
            depth=depth,
            decision=None,
        )

    def links(self, target: Target) -> Iterator[Link]:
        assert isinstance(target, Bundled)  # noqa: S101 - of bundles
        source, (index, key, steps, version) = self.source, target
        some = False
        if source.verbs(index, key) & {"append", "merge"} and not steps and version:
            some = True
            yield Link("kept", key, self.resolve(key, (), index - 1))
        for name in source.read_keys(index):
            some = True
            yield Link("read", name, self.resolve(name, (), index - 1))
        if "args" in source.commit(index).sources:
            some = True
            yield Link("input", "", End("args", "", "", _nothing))
        if not some:
            kind = "own" if source.knows_reads(index) else "unrecorded"
            end = End(kind, source.stage_id(index), source.stage(index), _nothing)
            yield Link("own", "", end)
