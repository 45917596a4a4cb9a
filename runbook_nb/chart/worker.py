"""What a worker does: run branches of a fan-out by the engine's own code, in a log of its own.

Chart layer. A worker knows the branches it was given and where they stand in the run: the path of
their ids, how deep they lie, what time is left. It gives back what it logged, as data.
"""

from __future__ import annotations

import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from runbook_nb._frozen import FrozenDict
from runbook_nb._stop import Stop
from runbook_nb.chart.endings import Steps, drive
from runbook_nb.chart.executor import Execution
from runbook_nb.chart.fanout import FanOutBranches
from runbook_nb.chart.model import Chart, FanOutStage, FunctionStage, Limits
from runbook_nb.chart.plan import StageForm, StagePlan
from runbook_nb.chart.scope import Frame
from runbook_nb.chart.shipping import (
    Table,
    drawing_of,
    dumps,
    error_line,
    error_that_travels,
    unpacked,
    why_not,
)
from runbook_nb.chart.standing import Standing, standing
from runbook_nb.chart.streaming import StreamEvent
from runbook_nb.chart.watch import Where
from runbook_nb.record.log import FAILED, Code, FanOut, StageRef, Track, width_of
from runbook_nb.record.pauses import Place
from runbook_nb.record.redact import Redact
from runbook_nb.record.tracks import Filed
from runbook_nb.settings import settings

#: Fan-outs that a worker keeps ready, the last used last.
KEPT_READY: Final = 4


class Work(NamedTuple):
    """What all chunks of one execution of a fan-out have in common.

    ``fan`` stands for the execution; ``prefix``, ``path``, ``nested``, ``depth`` and ``looping``
    say where in the run it is, as its frame does.
    """

    fan: Any
    name: str
    stage: FanOutStage
    ref: StageRef
    path: str
    prefix: str
    nested: int
    depth: int
    looping: bool
    limits: Limits
    policy: Redact | None
    options: Mapping[str, Any]
    streams: bool


class Chunk(NamedTuple):
    """The branches to run in one go: those of the items from ``first`` on."""

    first: int
    items: Sequence[Any]
    bases: array[int] | None
    visits: dict[str, dict[Any, int]]
    seconds: float | None
    width: int


class Question(NamedTuple):
    """A branch that waits: what it asks, where it goes on, where it stood."""

    reason: str
    expects: Any
    data: Any
    place: Place
    where: Stood | None


class Stood(NamedTuple):
    """Where an error arose; see `Where`."""

    ref: StageRef
    codes: tuple[int, ...]
    at: int
    when: str
    branches: str
    base: int | None


class Landed(NamedTuple):
    """What came of a chunk: the log of its worker, and its branches as columns in it."""

    codes: Sequence[Code]
    all_shapes: Sequence[tuple[int, ...]]
    filed: Filed
    taken_back: list[tuple[str, Any]]
    undeclared: list[tuple[str, str]]
    visits: dict[str, dict[Any, int]]
    templates: dict[str, dict[Any, Chart]]
    waiting: dict[int, Question]
    ended: tuple[BaseException, Stood | None] | None
    streamed: list[StreamEvent]
    seconds: float
    #: Branches whose record cannot leave the worker, and why.
    lost: Mapping[int, str] = FrozenDict()


class _Around(Frame):
    """Stands for the frame of the stage the branches belong to, which stayed behind."""

    __slots__ = ("_work",)

    def __init__(self, work: Work) -> None:
        super().__init__(Track(), {}, FrozenDict(), work.path)
        self._work = work
        self.loopy = work.looping
        self.mounts = work.depth

    @property
    def prefix(self) -> str:
        return self._work.prefix

    @property
    def nested(self) -> int:
        return self._work.nested


class _Part(FanOut):
    """A part of a fan-out: its branches have the indices of the whole."""

    __slots__ = ("first",)
    first: int

    def path(self, prefix: str, index: int) -> str:
        return super().path(prefix, self.first + index)


class _Present(Standing):
    """The branch of a chunk that runs now, where they run one after another."""

    __slots__ = ("_branches",)

    def __init__(self, branches: _Away) -> None:
        super().__init__(branches.work.fan, branches.first, branches.refused)
        self._branches = branches

    @property
    def index(self) -> int:
        filed = self._branches.fan.shape_numbers()
        return self._branches.first + next(i for i, number in enumerate(filed) if number < 0)


class _Away(FanOutBranches):
    """The branches of a chunk."""

    def __init__(self, execution: Execution, work: Work, chunk: Chunk) -> None:
        stage = work.stage
        form = StageForm(stage, work.ref.path)
        plan = StagePlan(form, execution.log, execution.chart)
        fan = _Part(
            execution.log,
            work.ref,
            chunk.items,
            cap=max(len(chunk.items), 1),
            into=stage.into,
            subject=stage.subject,
            bases=chunk.bases,
        )
        fan.first = self.first = chunk.first
        super().__init__(execution, plan, fan, _Around(work))
        self.work = work
        self.looping = False  # what the next visit goes on from is noted where the whole is
        self.max_concurrency = chunk.width
        self.refused: dict[int, str] = {}
        self.present = _Present(self)

    def run(self) -> Steps:
        """Run every branch; what one was refused and went on without makes it a failed one."""
        standing.set(self.present)
        try:
            yield from super().run()
        finally:
            for index, why in self.refused.items():
                self.fan.deny(index - self.first, why)

    def branch(self, index: int, place: Any = None, answer: Any = None) -> Steps:
        """Run a branch that may wait, with others running meanwhile."""
        standing.set(Standing(self.work.fan, self.first + index, self.refused))
        try:
            yield from super().branch(index, place, answer)
        finally:
            standing.set(self.present)

    def ask(self) -> None:
        """Ask nothing: what waits is told of where the whole is."""


def run_chunk(
    work: Work,
    chunk: Chunk,
    signal: Stop | None = None,
    hear: Callable[[StreamEvent], Any] | None = None,
) -> Landed:
    """Run the branches of a chunk; give what came of them, whatever ended them."""
    chart = Chart(work.name, (FunctionStage(id=work.ref.id, name=work.ref.name, fn=print),))
    streamed: list[StreamEvent] = []
    if hear is None and work.streams:
        hear = streamed.append
    execution = Execution(
        chart, limits=work.limits, redact=work.policy, signal=signal, on_stream=hear
    )
    execution.visits.update(chunk.visits)
    timer = execution.options.timer
    started = timer()
    execution.end_after(chunk.seconds)
    branches = _Away(execution, work, chunk)
    error = _run(execution, branches.run())
    return Landed(
        codes=execution.log.codes,
        all_shapes=[shape.codes for shape in execution.log.shapes],
        filed=branches.fan.filed(),
        taken_back=execution.log.taken_back,
        undeclared=list(execution.undeclared),
        visits=execution.visits,
        templates=execution.templates,
        waiting={
            index: Question(
                signal.reason, signal.expects, signal.data, signal.place, _stood(where, signal)
            )
            for index, (signal, where) in branches.waiting.items()
        },
        ended=None if error is None else (error, _stood(execution.place, error)),
        streamed=streamed,
        seconds=timer() - started,
    )


def _stood(where: Where | None, error: BaseException) -> Stood | None:
    if where is None or where.error is not error:
        return None
    codes = tuple(where.track.codes)
    return Stood(where.ref, codes, where.at, where.when, where.branches, where.base)


def _run(execution: Execution, steps: Steps) -> BaseException | None:
    """Run the engine's steps in an event loop of their own; give the error that ended them."""
    import asyncio

    async def whole() -> BaseException | None:
        try:
            await (execution.watch(steps) if execution.watched else drive(steps))
        except BaseException as error:  # whatever it is, it is told of where the run is
            return error
        return None

    if asyncio._get_running_loop() is None:
        return asyncio.run(whole())
    from runbook_nb._sync import run_sync  # an executor that runs things in its caller's thread

    return run_sync(whole)


# -- in another process ------------------------------------------------------------------------

#: Set when the pool that this process belongs to is to end.
_ending = Stop()

_ready: OrderedDict[str, tuple[Work, Table]] = OrderedDict()
_ready_lock = threading.Lock()


def begin_process(ending: Any) -> None:
    """Make a process of a pool of ours ready: deaf to the keyboard, and it hears of the end."""
    import signal

    # Whoever presses for an end presses for the run, which tells its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def hear() -> None:
        ending.wait()
        _ending.set("the run was stopped")

    threading.Thread(target=hear, name="runbook_nb-ending", daemon=True).start()


def run_sent(key: str, work: bytes, chunk: bytes) -> bytes:
    """Run a chunk that was sent, and give back what came of it as bytes.

    Parameters
    ----------
    key : str
        Names what all chunks of a fan-out have in common, so that it is unpacked once.
    work, chunk : bytes
        A packed `Work` and a packed `Chunk`.
    """
    try:
        known, table = _made_ready(key, work)
    except Exception as error:
        return dumps(("branch", error_line(error)), Table())
    try:
        these, more = unpacked(chunk)
    except Exception as error:
        return dumps(("items", error_line(error)), Table())
    table = table + more
    with settings(**known.options):
        landed = run_chunk(known, these, _ending)
    if landed.ended is not None:
        ending, stood = landed.ended
        landed = landed._replace(ended=(error_that_travels(ending, table), stood))
    drawings = {
        place: {layout: drawing_of(made) for layout, made in charts.items()}
        for place, charts in landed.templates.items()
    }
    landed = landed._replace(templates=drawings)
    try:
        return dumps(("landed", landed), table)
    except Exception:
        return _without_what_stays(landed, table)


def _made_ready(key: str, work: bytes) -> tuple[Work, Table]:
    with _ready_lock:
        found = _ready.get(key)
        if found is None:
            found = _ready[key] = unpacked(work)
            while len(_ready) > KEPT_READY:
                _ready.popitem(last=False)
        _ready.move_to_end(key)
        return found


def _without_what_stays(landed: Landed, table: Table) -> bytes:
    """Give back the branches that can go; of the others, why they cannot."""
    filed, waiting = landed.filed, dict(landed.waiting)
    values: list[Any] = []
    shapes, offsets, statuses = filed.shapes[:], filed.offsets[:], bytearray(filed.statuses)
    lost: dict[int, str] = {}
    for index, number in enumerate(filed.shapes):
        if number < 0:
            continue
        codes = [landed.codes[code] for code in landed.all_shapes[number]]
        start = filed.offsets[index]
        own = filed.values[start : start + sum(map(width_of, codes))], waiting.get(index)
        told = why_not(partial(dumps, own, table))
        if told is None:
            offsets[index] = len(values)
            values.extend(own[0])
            continue
        lost[index] = told
        shapes[index], offsets[index], statuses[index] = -1, 0, FAILED
        waiting.pop(index, None)
    notes = {index: note for index, note in filed.notes.items() if index not in lost}
    filed = Filed(shapes, offsets, values, bytes(statuses), notes)
    landed = landed._replace(filed=filed, waiting=waiting, lost=lost)
    return dumps(("landed", landed), table)
