"""The commit log: one commit per executed stage, and the questions that can be put to it.

Record layer. A log is of one chart. What mounted charts and branches did is in logs of their own,
which `CommitLog.whole` gathers. Commits are made when looked at, from a log that nobody copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, overload

from runbook_nb._display import Renderable
from runbook_nb._text import MISSING, counted, did_you_mean
from runbook_nb._view import Card, Cell, Column, Data, Section, Table
from runbook_nb.errors import PathError
from runbook_nb.record.commit import Change, Commit, checked_encoding
from runbook_nb.record.queries import (
    Births,
    CommitSlice,
    StateAt,
    Stop,
    births_of,
    last_writer,
    slice_from,
    state_at,
    stops_of,
    value_at,
    writers,
)
from runbook_nb.record.replay import Branching, Level, Replayed
from runbook_nb.record.sources import PublishedSource, RecordedSource, Served, Source, entry_of
from runbook_nb.settings import settings

if TYPE_CHECKING:
    import pandas as pd

    from runbook_nb.record.redact import Redactor
    from runbook_nb.record.run import Run
    from runbook_nb.record.structure import Structure
    from runbook_nb.record.why import Why


class _Commits(Sequence[Commit], Renderable):
    """What a log and a run's commits altogether have in common."""

    def encoded(self, encoding: str = "full", *, provenance: bool = False) -> list[dict[str, Any]]:
        """Give the log in the published shape.

        Parameters
        ----------
        encoding : {"full", "delta"}
            With ``delta`` a list that only grew is written as the items it grew by. Both lead to
            the same states.
        provenance : bool
            Whether each row lists the keys its stage had read before.

        Examples
        --------
        >>> from runbook_nb.chart.builder import flow_chart
        >>> run = flow_chart("c", lambda s: s.set("n", 1), id="a").build().run_sync()
        >>> run.commits.encoded()[0]["trace"]
        [{'path': 'n', 'verb': 'set'}]
        """
        checked_encoding(encoding)
        return [commit.to_dict(encoding, provenance=provenance) for commit in self]

    def to_frame(self) -> pd.DataFrame:
        """Give one row per change, and one for each commit that changed nothing."""
        import pandas as pd

        return pd.DataFrame(
            [row for commit in self for row in _frame_rows(commit)], columns=list(_FRAME)
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def _table(self, rest: str) -> Table:
        shown = list(islice(self, settings.max_table_rows))
        # A column in which nothing stands is left out.
        asked = {
            "in": any(commit.path for commit in shown),
            "status": any(commit.status != "ok" for commit in shown),
        }
        heads = [column for column in _COLUMNS if asked.get(str(column.head), True)]
        return Table(
            columns=tuple(heads),
            rows=tuple(tuple(_CELLS[str(c.head)](commit) for c in heads) for commit in shown),
            total=len(self),
            rest=rest,
            note="in the order the stages began",
            empty="no stage was executed",
        )


_FRAME = ("path", "idx", "runtimeStageId", "stageId", "stage", "status", "key", "verb", "value")

_COLUMNS: Final = (
    Column(head="step"),
    Column(head="in"),
    Column(head="stage"),
    Column(head="changed"),
    Column(head="status"),
)

_CELLS: Final[dict[str, Callable[[Commit], Cell]]] = {
    "step": lambda commit: Data(value=commit.runtime_stage_id, tone="code"),
    "in": lambda commit: Data(value=commit.path, tone="code") if commit.path else "",
    "stage": lambda commit: Data(value=commit.stage),
    "changed": lambda commit: Data(value=commit.words) if commit.changes else "",
    "status": lambda commit: "" if commit.status == "ok" else commit.status,
}


def _frame_rows(commit: Commit) -> Iterator[tuple[Any, ...]]:
    head = (
        commit.path,
        commit.index,
        commit.runtime_stage_id,
        commit.stage_id,
        commit.stage,
        commit.status,
    )
    for change in commit.changes:
        yield (*head, change.key, change.verb, change.value)
    if not commit.changes:
        yield (*head, None, None, None)


class CommitLog(_Commits):
    """The commits of one chart, in order, one per executed stage.

    It is a sequence of `Commit`. Indices of questions count commits; -1 stands for the state
    before the first one, and what lies past the end means the end.

    Attributes
    ----------
    name : str
        The procedure's name.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> chart = (flow_chart("c", lambda s: s.set("n", 1), id="a")
    ...     .add_function("B", lambda s: s.set("n", s["n"] + 1), id="b").build())
    >>> log = chart.run_sync().commits
    >>> log.last_writer("n"), log.value_at(0, "n"), log.state_at(-1).state
    (<Commit b#1 · set n>, 1, {})
    """

    def __init__(self, source: Source, name: str = "", whole: RunTracks | None = None) -> None:
        self.name = name
        self._source = source
        self._run = whole

    @classmethod
    def from_published(
        cls,
        bundles: Sequence[Mapping[str, Any]],
        initial_state: Mapping[str, Any] | None = None,
        encoding: str = "full",
        *,
        name: str = "",
        path: str = "",
    ) -> CommitLog:
        """Read a commit log that was written down, by this package or by footprintjs.

        Parameters
        ----------
        bundles : sequence of mapping
            The commits in order.
        initial_state : mapping, optional
            The state before the first one; None when it is not known.
        encoding : {"full", "delta"}
            How the values are written. The verbs say it all; it is checked, and nothing else.
        name, path : str
            What the log is called, and where it stands in its run.

        Raises
        ------
        LoadError
            Something in it is no commit.

        Examples
        --------
        >>> log = CommitLog.from_published([{"idx": 0, "stage": "A", "stageId": "a",
        ...     "runtimeStageId": "a#0", "overwrite": {"n": 1}, "updates": {},
        ...     "redactedPaths": [], "trace": [{"path": "n", "verb": "set"}]}])
        >>> log.value_at(0, "n"), log.state_at(0).basis
        (1, 'log')
        """
        checked_encoding(encoding)
        return cls(PublishedSource(bundles, initial_state, path=path), name)

    @property
    def path(self) -> str:
        """The mounts and branches around the chart; empty for a run's own."""
        return self._source.path

    @property
    def entered(self) -> str | None:
        """The execution that began the chart; None for a run's own."""
        return self._source.entered

    @property
    def raw_source(self) -> Source:
        """What the log is read from; not served."""
        return self._source

    # -- as a sequence ---------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._source)

    @overload
    def __getitem__(self, index: int) -> Commit: ...
    @overload
    def __getitem__(self, index: slice) -> list[Commit]: ...
    def __getitem__(self, index: int | slice) -> Commit | list[Commit]:
        places = range(len(self))[index]
        if isinstance(places, range):
            return [self._source.commit(place) for place in places]
        return self._source.commit(places)

    def __iter__(self) -> Iterator[Commit]:
        return map(self._source.commit, range(len(self)))

    # -- questions -------------------------------------------------------------------------

    def of(self, stage: str, key: str | None = None) -> list[Commit]:
        """Give every commit of a stage, by its id; with a key, those that changed it."""
        return list(self._of(stage, key))

    def first(self, stage: str, key: str | None = None) -> Commit | None:
        """Give the first commit of a stage, by its id; with a key, the first that changed it."""
        return next(self._of(stage, key), None)

    def _of(self, stage: str, key: str | None) -> Iterator[Commit]:
        source = self._source
        places = range(len(source)) if key is None else writers(source, key)
        return (source.commit(place) for place in places if source.stage_id(place) == stage)

    def last_writer(self, key: str, before: int | None = None) -> Commit | None:
        """Give the last commit that changed a key, of all or of those before an index."""
        found = last_writer(self._source, key, before)
        return None if found < 0 else self._source.commit(found)

    def value_at(self, index: int, key: str, default: Any = None) -> Any:
        """Give what a key held after a commit, served; ``default`` where it was not there."""
        found = value_at(self._source, key, index)
        return default if found is MISSING else found

    def state_at(self, index: int) -> StateAt:
        """Give the state after a commit, with what it was put together from."""
        return state_at(self._source, index)

    def index_of(self, runtime_stage_id: str) -> int:
        """Give the commit of an execution; -1 when it is not in this log."""
        return self._indices.get(runtime_stage_id, -1)

    @cached_property
    def _indices(self) -> dict[str, int]:
        runtime_id = self._source.runtime_id
        return {runtime_id(index): index for index in reversed(range(len(self)))}

    def births(self, key: str, index: int | None = None) -> Births:
        """Give, for each item of a list, the commit since which it stands where it stands."""
        return births_of(self._source, key, len(self) if index is None else index)

    def stops(self) -> tuple[Stop, ...]:
        """Give the places where somebody going through the run may stop."""
        return stops_of(self._source)

    def causes(self, *, step: str | None = None, key: str | None = None) -> CommitSlice:
        """Give the commits that one commit rests on, by what its stage read.

        Parameters
        ----------
        step : str, optional
            The execution to begin with.
        key : str, optional
            Begin with the last commit that changed this key instead.

        See Also
        --------
        why : The same for one value, through decisions, mounted charts and branches too.
        """
        if key is not None and step is None:
            index, missing = last_writer(self._source, key), "never-written"
        else:
            index, missing = self.index_of(step or ""), "no-such-step"
        if index < 0:
            return CommitSlice(root=None, missing=missing)
        return slice_from(self._source, index)

    def why(self, path: str, *, at: int | None = None) -> Why:
        """Say which reads led to a value; see `Why`.

        Parameters
        ----------
        path : str
            A state key, or a place inside one: ``"subjects[3].age"``.
        at : int, optional
            The commit after which the value is looked at; the last one unless given.

        Raises
        ------
        PathError
            The path leads nowhere, or asks for many values at once.
        """
        from runbook_nb.record.why import why_of

        return why_of(self, path, at=at)

    # -- the run around it -----------------------------------------------------------------

    def whole(self) -> WholeLog:
        """Give the commits of the whole run: of every mounted chart and branch too.

        Of a log that was read there is nothing but itself.
        """
        return WholeLog(self, self._run)

    @property
    def raw_run(self) -> RunTracks | None:
        """The run the log is of, as it was recorded; None of a log that was read. Not served."""
        return self._run

    def view(self) -> Card:
        """Show one row per commit."""
        changes = "commit" if len(self) == 1 else "commits"
        return Card(
            kind="Commits",
            name=self.name,
            qualifiers=(self.path,) if self.path else (),
            headline=f"{len(self)} {changes}",
            sections=(Section(label="Commits", parts=(self._table("commits.to_frame()"),)),),
        )


class RunTracks:
    """What the logs of one run share: its tracks, played again, and how they are served."""

    def __init__(
        self,
        root: Replayed,
        *,
        name: str,
        args: Mapping[str, Any],
        redactor: Redactor,
        structure: Structure | None = None,
    ) -> None:
        self.root = root
        self.name = name
        self.args = args
        self.redactor = redactor
        self.structure = structure
        self._logs: dict[int, CommitLog] = {}

    def log_of(self, track: Replayed, level: Level) -> CommitLog:
        """Give the log of one level of a track."""
        found = self._logs.get(id(level))
        if found is None:
            served = Served(self.redactor, self.structure)
            found = CommitLog(RecordedSource(track, level, served), self.name, self)
            self._logs[id(level)] = found
        return found

    def logs(self, track: Replayed) -> Iterator[CommitLog]:
        """Yield the logs of a track and of all branches inside it, in the order they began."""
        fans = iter((*track.fans, None))
        fan = next(fans)
        for level in track.levels:
            while fan is not None and fan.at < level.opened:
                yield from self._inside(track, fan)
                fan = next(fans)
            yield self.log_of(track, level)
        while fan is not None:
            yield from self._inside(track, fan)
            fan = next(fans)

    def _inside(self, track: Replayed, branching: Branching) -> Iterator[CommitLog]:
        for branch in track.branches(branching):
            yield from self.logs(branch)

    def commits(self, track: Replayed) -> Iterator[Commit]:
        """Yield the commits of a track and of all branches inside it, in the order they began."""
        for step in track.steps:
            yield self.log_of(track, step.level)[step.place]
            branching = track.fan_of(step)
            if branching is not None:
                yield from self._branches(track, branching)

    def _branches(self, track: Replayed, branching: Branching) -> Iterator[Commit]:
        for branch in track.branches(branching):
            if branching.fan.is_fan_out:
                yield entry_of(track, branching, branch.index, self.redactor)
            yield from self.commits(branch)

    def count(self, track: Replayed) -> int:
        """Count the steps of a track and of all branches inside it."""
        total = len(track.steps)
        for branching in track.fans:
            for branch in track.branches(branching):
                total += self.count(branch) + branching.fan.is_fan_out
        return total


def log_of_run(run: Run) -> CommitLog:
    """Give the commit log of a run's own chart."""
    args, _, _ = run.raw
    root = run.log.root
    track = Replayed(run.log, root.codes, root.values, base=run.raw_initial)
    tracks = RunTracks(
        track,
        name=run.name,
        args=args,
        redactor=run.redactor,
        structure=run.raw_structure,
    )
    return tracks.log_of(track, track.top)


class WholeLog(_Commits):
    """Every commit of a run, in the order the stages began: one per executed step.

    A stage that holds a chart stands before what it holds, although it commits after it. Entering
    a fan-out's branch is a step too, and has a commit that changes nothing.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> run = flow_chart("c", lambda s: s.set("n", 1), id="a").build().run_sync()
    >>> len(run.commits.whole()) == run.steps_executed
    True
    """

    def __init__(self, log: CommitLog, run: RunTracks | None) -> None:
        self._log = log
        self._run = run
        self.name = log.name

    @cached_property
    def _all(self) -> tuple[Commit, ...]:
        return tuple(self._log if self._run is None else self._run.commits(self._run.root))

    @cached_property
    def logs(self) -> tuple[CommitLog, ...]:
        """The logs, the run's own first, in the order their charts began."""
        return (self._log,) if self._run is None else tuple(self._run.logs(self._run.root))

    def log(self, path: str, entered: str | None = None) -> CommitLog:
        """Give the log of a mounted chart or a branch.

        Parameters
        ----------
        path : str
            As in `CommitLog.path`: ``"each~3"``, ``"sub"``, ``""`` for the run's own. Of several
            executions the last is meant.
        entered : str, optional
            The execution that began it, to name one of several.

        Raises
        ------
        PathError
            There is none.
        """
        for log in reversed(self.logs):
            if log.path == path and entered in (None, log.entered):
                return log
        raise PathError(
            f"no chart ran under {path!r}" + (f" that {entered!r} began" if entered else ""),
            code="no_such_log",
            where=path,
            fix=did_you_mean(path, {log.path for log in self.logs if log.path}),
        )

    def __len__(self) -> int:
        return len(self._log) if self._run is None else self._run.count(self._run.root)

    @overload
    def __getitem__(self, index: int) -> Commit: ...
    @overload
    def __getitem__(self, index: slice) -> list[Commit]: ...
    def __getitem__(self, index: int | slice) -> Commit | list[Commit]:
        return list(self._all[index]) if isinstance(index, slice) else self._all[index]

    def __iter__(self) -> Iterator[Commit]:
        return iter(self._log if self._run is None else self._run.commits(self._run.root))

    def view(self) -> Card:
        """Show one row per commit."""
        return Card(
            kind="Commits",
            name=self.name,
            qualifiers=("whole run",),
            headline=f"{counted(len(self), 'commit')} in {counted(len(self.logs), 'log')}",
            sections=(
                Section(label="Commits", parts=(self._table("commits.whole().to_frame()"),)),
            ),
        )


__all__ = ["Change", "Commit", "CommitLog", "RunTracks", "WholeLog", "log_of_run"]
