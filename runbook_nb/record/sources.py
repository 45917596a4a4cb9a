"""What a commit log is read from: a track played again, or bundles that somebody wrote down.

Record layer. Both give the same: a timeline of every key, and per commit who made it, when, and
what was read. All queries are put to that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from runbook_nb._frozen import FrozenDict, freeze
from runbook_nb._frozen import deep_merge as merge_partials
from runbook_nb._text import MISSING
from runbook_nb.errors import LoadError
from runbook_nb.record.bundles import SEPARATOR, BundleRow, apply_row, differing, rows_of
from runbook_nb.record.commit import VERB_OF, Change, Commit
from runbook_nb.record.origins import Origins, same_held
from runbook_nb.record.redact import Redactor
from runbook_nb.record.replay import (
    CHANGES,
    Branching,
    Level,
    Prefix,
    Replayed,
    Step,
    Timeline,
    grown,
    value_of_held,
)

if TYPE_CHECKING:
    from runbook_nb.record.structure import Structure


class Read(NamedTuple):
    """One read: the key, and the time at which it was read."""

    key: str
    time: int


class Source(Protocol):
    """A commit log's ground.

    Attributes
    ----------
    path : str
        The mounts and branches around its chart.
    entered : str or None
        The execution that opened it.
    timeline : Timeline
    origins : Origins
    redactor : Redactor
    knows_base : bool
        Whether the state before the first commit is known.
    """

    path: str
    entered: str | None
    timeline: Timeline
    origins: Origins
    redactor: Redactor
    knows_base: bool

    def __len__(self) -> int: ...
    def commit(self, index: int) -> Commit:
        """Make a commit."""
        ...

    def runtime_id(self, index: int) -> str:
        """Name the execution of a commit."""
        ...

    def stage_id(self, index: int) -> str:
        """Give the id of the stage of a commit."""
        ...

    def stage(self, index: int) -> str:
        """Name the stage of a commit."""
        ...

    def end(self, index: int) -> int:
        """Give the time at which a commit was made; for -1, that of the base."""
        ...

    def index_at(self, time: int) -> int:
        """Give the commit that was being made at a time."""
        ...

    def reads(self, index: int) -> Iterator[Read]:
        """Yield what the step of a commit read, own writes included."""
        ...

    def verbs(self, index: int, key: str) -> frozenset[str]:
        """Give what the step of a commit did to a key."""
        ...

    def hidden(self, index: int, state: Mapping[str, Any]) -> list[tuple[str, ...]]:
        """Give the hidden paths of the state after a commit."""
        ...

    def skipped(self, index: int) -> int:
        """Count the rows up to a commit that could not be applied."""
        ...


class Served(NamedTuple):
    """What a recorded log is served with."""

    redactor: Redactor
    structure: Structure | None = None


class RecordedSource:
    """One level of a track, played again."""

    knows_base = True

    def __init__(self, track: Replayed, level: Level, served: Served) -> None:
        self.track = track
        self.level = level
        self.served = served
        self.redactor = served.redactor
        self.timeline = level.timeline
        self.origins = Origins(level.timeline, track.owners.__getitem__)
        self.path = self.redactor.text(log_path(track, level))
        opener = opener_of(track, level)
        self.entered = None if opener is None else self.redactor.text(opener)

    def __len__(self) -> int:
        return len(self.level.steps)

    def runtime_id(self, index: int) -> str:
        """Name the execution of a commit."""
        return self.redactor.text(self.track.runtime_id(self.level.steps[index]))

    def stage_id(self, index: int) -> str:
        """Give the id of the stage of a commit."""
        return self.redactor.text(self.level.steps[index].ref.id)

    def stage(self, index: int) -> str:
        """Name the stage of a commit."""
        return self.redactor.text(self.level.steps[index].ref.name)

    def end(self, index: int) -> int:
        """Give the time at which a commit was made; for -1, that of the base."""
        return self.level.steps[index].last if index >= 0 else -1

    def index_at(self, time: int) -> int:
        """Give the commit that was being made at a time."""
        return self.track.step_at(time).place

    def reads(self, index: int) -> Iterator[Read]:
        """Yield what the step of a commit read, own writes included."""
        for place, code in self.track.own(self.level.steps[index]):
            if code.kind == "read" and code.key is not None:
                yield Read(code.key, place)

    def verbs(self, index: int, key: str) -> frozenset[str]:
        """Give what the step of a commit did to a key."""
        own = self.track.own(self.level.steps[index])
        return frozenset(
            VERB_OF[code.kind] for _, code in own if code.kind in CHANGES and code.key == key
        )

    def hidden(self, index: int, state: Mapping[str, Any]) -> list[tuple[str, ...]]:
        """Give the hidden paths of the state after a commit."""
        if not self.redactor.active:
            return []
        return list(differing(state, self.redactor.served(state)))

    def skipped(self, index: int) -> int:
        """Count the rows up to a commit that could not be applied."""
        return 0

    def commit(self, index: int) -> Commit:
        """Make a commit."""
        step = self.level.steps[index]
        touched: dict[str, _Touched] = {}
        reads: dict[str, None] = {}
        sources: tuple[str, ...] = ()
        for place, code in self.track.own(step):
            key = code.key or ""
            if code.kind == "read":
                reads[key] = None
            elif code.kind == "args":
                sources = ("args",)
            elif code.kind in CHANGES:
                one = touched.get(key)
                if one is None:
                    one = touched[key] = _Touched(tuple(reads))
                one.verbs.add(VERB_OF[code.kind])
                if code.kind == "update":
                    one.merge(self.track.value(place))
        return self._commit(
            step,
            index=index,
            changes=changes_of(touched, self.timeline, step.at - 1, step.last, self.redactor),
            reads=tuple(map(self.redactor.text, reads)),
            sources=sources,
        )

    def _commit(self, step: Step, **facts: Any) -> Commit:
        text, structure = self.redactor.text, self.served.structure
        node = None if structure is None else structure.node(self.track.key(step))
        return Commit(
            path=self.path,
            stage=text(step.ref.name),
            stage_id=text(step.ref.id),
            runtime_stage_id=text(self.track.runtime_id(step)),
            status=step.status,
            tags=() if node is None else tuple(map(text, node.tags)),
            **facts,
        )


class _Touched:
    """What a stage did to one key."""

    __slots__ = ("partial", "reads", "verbs")

    def __init__(self, reads: tuple[str, ...]) -> None:
        self.reads = reads
        self.verbs: set[str] = set()
        self.partial: Any = None

    def merge(self, partial: Any) -> None:
        """Take in something merged into the key."""
        self.partial = partial if self.partial is None else merge_partials(self.partial, partial)


def changes_of(
    touched: Mapping[str, _Touched],
    timeline: Timeline,
    start: int,
    end: int,
    redactor: Redactor,
) -> tuple[Change, ...]:
    """Give the net changes between two times."""
    found = []
    for key, one in touched.items():
        before, after = timeline.at(key, start), timeline.at(key, end)
        if same_held(before, after):
            continue
        verb = "set"
        if after is MISSING:
            verb = "delete"
        elif one.verbs == {"append"} and before is not MISSING:
            verb = "append"
        elif one.verbs == {"merge"} and isinstance(before, Mapping):
            verb = "merge"
        found.append(
            Change(
                key,
                verb,
                before,
                after,
                partial=one.partial,
                reads=one.reads,
                redactor=redactor,
            )
        )
    return tuple(found)


# -- where a log stands ------------------------------------------------------------------------


def log_path(track: Replayed, level: Level) -> str:
    """Name a log by the mounts and branches around its chart; empty for a run's own.

    The children of a fork carry no path of their own in their ids; their logs are named like the
    branches of a fan-out, by fork and child.
    """
    branching = track.branching
    if branching is None or branching.fan.is_fan_out:
        return f"{track.prefix}{level.path}"[:-1]
    if level is not track.top:
        return f"{track.prefix}{level.path}"[:-1]
    fan = branching.fan
    return f"{track.prefix}{fan.stage.key}~{fan.items[track.index]}"


def opener_of(track: Replayed, level: Level) -> str | None:
    """Give the runtime id of the step that opened a level; None for a run's own."""
    if level.opener is not None:
        return track.runtime_id(level.opener)
    if track.parent is None or track.branching is None:
        return None
    return track.parent.runtime_id(track.branching.step)


def entry_of(track: Replayed, branching: Branching, index: int, redactor: Redactor) -> Commit:
    """Make the commit of entering a fan-out's branch: a step that changes nothing."""
    fan, _, step = branching
    text, head = redactor.text, track.runtime_id(step)
    number = head.rpartition("#")[2]
    name = fan.path(track.prefix, index)[:-1]
    return Commit(
        index=-1,
        path=text(name),
        stage=text(f"{fan.stage.name} [{index}]"),
        stage_id=text(f"{fan.stage.id}~{index}"),
        runtime_stage_id=text(f"{name}#{number}"),
        status="failed" if fan.status(index) == "failed" else "ok",
    )


# -- bundles -----------------------------------------------------------------------------------


class PublishedSource:
    """A commit log as it was written down, by whomever."""

    def __init__(
        self,
        bundles: Sequence[Mapping[str, Any]],
        initial_state: Mapping[str, Any] | None,
        *,
        path: str = "",
        entered: str | None = None,
    ) -> None:
        self.path = path
        self.entered = entered
        self.redactor = Redactor(None)
        self.knows_base = initial_state is not None
        base = freeze(dict(initial_state or {}), "initial_state")
        self.timeline = Timeline(base)
        self.origins = Origins(self.timeline, lambda time: time)
        self._bundles: list[Mapping[str, Any]] = []
        self._rows: list[list[BundleRow]] = []
        self._skipped: list[int] = []
        self._take(bundles)

    def _take(self, bundles: Sequence[Mapping[str, Any]]) -> None:
        skipped = 0
        for index, bundle in enumerate(bundles):
            where = f"commitLog[{index}]"
            if not isinstance(bundle, Mapping):
                raise LoadError(f"a commit is a mapping, not {type(bundle).__name__}", where=where)
            kept: Mapping[str, Any] = freeze(bundle, where)
            rows = rows_of(kept, where)
            for row in rows:
                if row.can_be_applied:
                    self._apply(index, row)
                else:
                    skipped += 1
            self._bundles.append(kept)
            self._rows.append(rows)
            self._skipped.append(skipped)

    def _apply(self, index: int, row: BundleRow) -> None:
        key, held = row.path[0], self.timeline.now(row.path[0])
        whole = len(row.path) == 1
        if whole and row.verb == "append" and isinstance(row.value, list) and _is_list(held):
            after: Any = grown(held, row.value)
        else:
            after = apply_row(value_of_held(held), row)
            after = after if after is MISSING else freeze(after, key)
        self.timeline.put(key, index, after)

    def __len__(self) -> int:
        return len(self._bundles)

    def runtime_id(self, index: int) -> str:
        """Name the execution of a commit."""
        return str(self._bundles[index].get("runtimeStageId", ""))

    def stage_id(self, index: int) -> str:
        """Give the id of the stage of a commit."""
        found = self._bundles[index].get("stageId")
        return str(found) if found is not None else self.runtime_id(index).rpartition("#")[0]

    def stage(self, index: int) -> str:
        """Name the stage of a commit."""
        return str(self._bundles[index].get("stage", self.stage_id(index)))

    def end(self, index: int) -> int:
        """Give the time at which a commit was made; for -1, that of the base."""
        return index

    def index_at(self, time: int) -> int:
        """Give the commit that was being made at a time."""
        return time

    def reads(self, index: int) -> Iterator[Read]:
        """Yield what the step of a commit read, own writes included."""
        for key in self.read_keys(index):
            yield Read(key, index - 1)

    def read_keys(self, index: int) -> tuple[str, ...]:
        """Give the keys the rows of a commit say were read."""
        return tuple(dict.fromkeys(k for row in self._rows[index] for k in row.reads or ()))

    def knows_reads(self, index: int) -> bool:
        """Say whether the rows of a commit say what was read."""
        return any(row.reads is not None for row in self._rows[index])

    def verbs(self, index: int, key: str) -> frozenset[str]:
        """Give what the step of a commit did to a key."""
        return frozenset(row.verb for row in self._rows[index] if row.path[0] == key)

    def hidden(self, index: int, state: Mapping[str, Any]) -> list[tuple[str, ...]]:
        """Give the hidden paths of the state after a commit."""
        found: dict[tuple[str, ...], None] = {}
        for bundle in self._bundles[: index + 1]:
            for path in bundle.get("redactedPaths", ()):
                steps = path.split(SEPARATOR) if isinstance(path, str) else map(str, path)
                found[tuple(steps)] = None
        return list(found)

    def skipped(self, index: int) -> int:
        """Count the rows up to a commit that could not be applied."""
        return self._skipped[index] if index >= 0 else 0

    def commit(self, index: int) -> Commit:
        """Make a commit."""
        touched: dict[str, _Touched] = {}
        for row in self._rows[index]:
            one = touched.setdefault(row.path[0], _Touched(row.reads or ()))
            whole = len(row.path) == 1
            one.verbs.add(row.verb if whole or row.verb == "merge" else "set")
            if row.verb == "merge":
                partial = row.value
                for key in reversed(row.path[1:]):
                    partial = FrozenDict({key: partial})
                one.merge(partial)
        bundle = self._bundles[index]
        return Commit(
            index=index,
            path=self.path,
            stage=self.stage(index),
            stage_id=self.stage_id(index),
            runtime_stage_id=self.runtime_id(index),
            status=str(bundle.get("status", "ok")),
            changes=changes_of(touched, self.timeline, index - 1, index, self.redactor),
            reads=self.read_keys(index),
            sources=tuple(map(str, bundle.get("untrackedSources", ()))),
            tags=tuple(map(str, bundle.get("tags", ()))),
        )


def _is_list(held: Any) -> bool:
    return held.__class__ is Prefix or isinstance(held, list)
