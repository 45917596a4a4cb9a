"""One fan-out spread over workers: cut into chunks, sent, and joined in the order of its items.

Chart layer. Chunks are runs of neighbouring branches, so that joining them in order gives the
record that running them in order would have given. How large they are depends on how long
branches take, and nothing recorded depends on it. A chunk whose worker died is tried again, alone
and in ever smaller pieces, until what kills its worker is by itself: that branch is lost, and the
others are not. So a branch may run more than once where a worker died, and only there.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Generator
from dataclasses import fields
from math import isqrt
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from runbook_nb._ids import random_id
from runbook_nb._text import clip
from runbook_nb.chart.engines import Engine, is_lost
from runbook_nb.chart.fanout import note_visit
from runbook_nb.chart.scope import InterruptSignal
from runbook_nb.chart.shipping import (
    Table,
    error_line,
    loads,
    packed,
    plain_options,
    what_stays,
    why_not,
    without_items,
)
from runbook_nb.chart.streaming import StreamEvent, tell
from runbook_nb.chart.watch import Where
from runbook_nb.chart.worker import Chunk, Landed, Stood, Work, run_chunk, run_sent
from runbook_nb.errors import EngineError, RunCancelled
from runbook_nb.record.joining import Joined
from runbook_nb.record.log import FAILED, Track

if TYPE_CHECKING:
    from runbook_nb.chart.fanout import FanOutBranches

#: How long a chunk should take, in seconds: long against sending it, short against waiting.
CHUNK_SECONDS: Final = 0.2
#: Chunks are not made shorter than this for the sake of an even end.
SHORTEST: Final = 0.02
#: Branches of a chunk, at most; and how much longer the next may be than the last.
MOST: Final = 4096
GROWTH: Final = 8

#: Workers that may be lost while nothing has come back yet, before the engine counts as gone.
HOPELESS: Final = 8

#: Longest reason told of a lost branch, in characters.
REASON_LENGTH: Final = 300

#: Why a branch has no value when the run ended while it was out.
OUT_NOTE: Final = "the run was stopped while it was out on a worker"


class Cut(NamedTuple):
    """A run of neighbouring branches, and how often it was cut since its worker was lost."""

    first: int
    stop: int
    level: int = 0
    alone: bool = False


class Lost(NamedTuple):
    """What became of branches that could not be run where they were to run."""

    code: str
    reason: str


class Spread:
    """One execution of a fan-out on the workers of an engine; await it to run it.

    Around it things go on in turn, as they do where branches run in place: what waits for workers
    is no reason to begin the next child of a fork.
    """

    in_turn = True

    def __init__(self, branches: FanOutBranches, engine: Engine) -> None:
        self.branches = branches
        self.execution = branches.execution
        self.fan = branches.fan
        self.engine = engine
        self.count = min(len(self.fan), self.fan.cap)
        self.fresh = 0
        self.joined = 0
        self.suspects: deque[Cut] = deque()
        self.out: dict[object, Cut] = {}
        self.futures: dict[object, Any] = {}
        self.tables: dict[object, Table] = {}
        self.landed: dict[int, tuple[Cut, Landed | Lost]] = {}
        self.arrived: deque[tuple[object, Any]] = deque()
        #: Where the branches end whose outcome still counts: one of them ended the run.
        self.limit = self.count
        self.ended: tuple[BaseException, Where | None] | None = None
        self.gone: Lost | None = None
        self.last_size = 0
        self.each: float | None = None
        self.ending = False
        #: How many workers were lost, and whether any work ever came back.
        self.losses, self.proven = 0, False
        self.key = ""
        self.sent: tuple[bytes, Table] | None = None

    def __await__(self) -> Generator[Any, None, None]:
        return self.run().__await__()

    async def run(self) -> None:
        """Run every branch; raise what ended the run."""
        import asyncio

        if not self.count:
            return
        self.loop = asyncio.get_running_loop()
        self.news = asyncio.Event()
        self.crew = self.engine.crew(self.branches.max_concurrency, self.count)
        self.work = self._work()
        try:
            if not self.crew.direct:
                self._pack()
            await self._until_done()
        except BaseException:
            await self._stop()
            raise
        finally:
            await self.crew.close()
        if self.ended is not None:
            error, where = self.ended
            if isinstance(error, RunCancelled) or getattr(error, "code", None) == "time_limit":
                self._file_the_rest()  # whatever came first, it was not the order of the items
            self.execution.place = where
            raise error

    # -- sending ---------------------------------------------------------------------------

    def _work(self) -> Work:
        branches, execution = self.branches, self.execution
        frame, plan = branches.frame, branches.plan
        options = execution.options
        return Work(
            fan=object() if self.crew.direct else None,
            name=execution.chart.name,
            stage=without_items(plan.stage),
            ref=plan.ref,
            path=frame.path,
            prefix=frame.prefix,
            nested=frame.nested,
            depth=frame.depth,
            looping=frame.looping,
            limits=execution.limits,
            policy=execution.policy,
            options={one.name: getattr(options, one.name) for one in fields(options)},
            streams=execution.on_stream is not None,
        )

    def _pack(self) -> None:
        self.key = random_id(22)
        work = self.work._replace(fan=self.key, options=plain_options(self.work.options))
        table = Table()
        reason = why_not(lambda: setattr(self, "sent", (packed(work, table), table)))
        if reason is not None:
            stays = what_stays(work.stage.branch)
            self.gone = Lost("cannot_be_sent", f"its chart cannot be sent to a worker: {stays}")

    def _feed(self) -> None:
        """Send chunks until enough are out."""
        while True:
            if self.suspects:
                # Each by itself: what is out when a worker dies is under suspicion too.
                if self.out:
                    return
                cut = self.suspects.popleft()
            elif self.fresh < self.limit and len(self.out) < self.crew.window:
                size = self._size()
                cut = Cut(self.fresh, min(self.fresh + size, self.limit))
                self.fresh = cut.stop
            else:
                return
            if cut.first < self.limit:
                self._send(cut)

    def _size(self) -> int:
        """Say how many branches the next chunk is to have."""
        crew, left = self.crew, self.limit - self.fresh
        if self.each is None:
            size = 1
        else:
            each = max(self.each, 1e-7)
            size = min(int(CHUNK_SECONDS / each), self.last_size * GROWTH, MOST)
            # Twice over: whoever has the slower half of what is left is not waited for long.
            even = -(-left // (2 * crew.abreast))
            size = min(size, max(even, int(SHORTEST / each)))
        self.last_size = max(size, crew.width, 1)
        return self.last_size

    def _chunk(self, cut: Cut) -> Chunk:
        fan, execution = self.fan, self.execution
        bases = None if fan.bases is None else fan.bases[cut.first : cut.stop]
        visits: dict[str, dict[Any, int]] = {}
        if execution.visits and self.branches.looping:
            insides = tuple(
                fan.path(self.work.prefix, index) for index in range(cut.first, cut.stop)
            )
            visits = {
                key: dict(known)
                for key, known in execution.visits.items()
                if key.startswith(insides)
            }
        return Chunk(
            first=cut.first,
            items=[fan.items[index] for index in range(cut.first, cut.stop)],
            bases=bases,
            visits=visits,
            seconds=execution.seconds_left,
            width=self.crew.width,
        )

    def _send(self, cut: Cut) -> None:
        if self.gone is not None:
            self._land(cut, self.gone)
            return
        ticket, chunk = object(), self._chunk(cut)
        try:
            if self.crew.direct:
                hear = None if self.execution.on_stream is None else self._hear
                future = self.crew.submit(run_chunk, self.work, chunk, self.crew.signal, hear)
            else:
                assert self.sent is not None  # noqa: S101 - else it is gone
                table = Table()
                reason: str | None = None
                try:
                    body = packed(chunk, table)
                except Exception as error:
                    reason = error_line(error)
                if reason is not None:
                    self._unsendable(cut, reason)
                    return
                self.tables[ticket] = self.sent[1] + table
                future = self.crew.submit(run_sent, self.key, self.sent[0], body)
            self.out[ticket] = cut
            self.futures[ticket] = future
            future.add_done_callback(lambda future: self._tell(ticket, future))
        except Exception as error:
            self.out.pop(ticket, None)
            self.gone = Lost("engine_gone", f"the engine takes no more work: {error_line(error)}")
            self._land(cut, self.gone)

    def _unsendable(self, cut: Cut, reason: str) -> None:
        """Find the items that cannot be sent, and send the others."""
        if cut.stop - cut.first == 1:
            self._land(cut, Lost("cannot_be_sent", f"its item cannot be sent: {reason}"))
            return
        for index in reversed(range(cut.first, cut.stop)):
            self.suspects.appendleft(cut._replace(first=index, stop=index + 1))

    def _hear(self, event: StreamEvent) -> None:
        """Tell the listener, in the thread of the run, what a worker's thread streams."""
        with contextlib.suppress(RuntimeError):  # the loop has ended: nobody listens
            self.loop.call_soon_threadsafe(tell, self.execution.on_stream, event)

    def _tell(self, ticket: object, future: Any) -> None:
        """Take note, in whatever thread, that a chunk has come back."""
        try:
            came: Any = (True, self._result(future))
        except BaseException as error:
            came = (False, error)
        self.arrived.append((ticket, came))
        with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits
            self.loop.call_soon_threadsafe(self.news.set)

    def _result(self, future: Any) -> Any:
        found = future.result()
        if hasattr(found, "__await__"):  # of a client that lives in an event loop itself
            import asyncio

            loop = future.client.loop.asyncio_loop
            found = asyncio.run_coroutine_threadsafe(found, loop).result()
        return found

    # -- coming back -----------------------------------------------------------------------

    async def _until_done(self) -> None:
        while self.joined < self.limit:
            self._feed()
            self._join()
            if self.joined >= self.limit:
                break
            await self.news.wait()
            self.news.clear()
            self._take()
            self._join()
        await self._gather_in()

    def _take(self) -> None:
        """Look at what has come back."""
        crowd = len(self.out)
        while self.arrived:
            ticket, (fine, came) = self.arrived.popleft()
            cut = self.out.pop(ticket, None)
            self.futures.pop(ticket, None)
            table = self.tables.pop(ticket, None)
            if cut is None:
                continue
            if fine:
                self._came(cut, came, table)
            else:
                self._failed(cut, came, crowd)

    def _came(self, cut: Cut, came: Any, table: Table | None) -> None:
        if table is not None:
            table.log = self.execution.log.tables
            try:
                word, came = loads(came, table)
            except Exception as error:
                self._land(cut, Lost("cannot_come_back", error_line(error)))
                return
            if word == "branch":
                self.gone = Lost("cannot_be_sent", f"a worker cannot load its chart: {came}")
                self._land(cut, self.gone)
                return
            if word == "items":
                self._unsendable(cut, came)
                return
        stopped = came.ended is not None and isinstance(came.ended[0], RunCancelled)
        if stopped and self.crew.told and not self.ending:
            self.suspects.append(cut)  # others on the same workers were told to end, not these
            return
        self.proven = True
        self.each = came.seconds / max(cut.stop - cut.first, 1)
        if came.ended is not None:
            self.limit = min(self.limit, cut.stop)
        self._land(cut, came)

    def _failed(self, cut: Cut, error: BaseException, crowd: int) -> None:
        """Decide what becomes of a chunk that an executor ended in an error."""
        from concurrent.futures import BrokenExecutor
        from concurrent.futures import CancelledError as Dropped

        dropped = isinstance(error, Dropped) or type(error).__name__ in _DROPPED
        if self.ending or cut.first >= self.limit:
            if self.ending and not (dropped and self.crew.keeps_word):
                self._note_out(cut)
            return
        if not is_lost(error):
            if not dropped:
                self._land(cut, Lost("worker_failed", f"its worker failed: {error_line(error)}"))
            elif self.crew.is_gone():
                self._land(cut, Lost("engine_gone", f"the engine went away: {_cause(error)}"))
            else:
                self._land(cut, Lost("dropped", f"the engine dropped it: {_cause(error)}"))
            return
        self.losses += 1
        lost = Lost("worker_lost", f"the worker that ran it was lost: {_cause(error)}")
        hopeless = not self.proven and self.losses >= HOPELESS
        if hopeless or (not self.crew.renew() and isinstance(error, BrokenExecutor)):
            self.gone = Lost("engine_gone", f"the engine's workers are gone: {_cause(error)}")
            self._land(cut, lost)
            return
        size = cut.stop - cut.first
        if crowd > 1 and not cut.alone:
            self.suspects.append(cut._replace(alone=True))
        elif size == 1:
            self._land(cut, lost)
        else:
            step = isqrt(size) if cut.level == 0 and size > 3 else 1
            for first in range(cut.first, cut.stop, step):
                stop = min(first + step, cut.stop)
                self.suspects.append(Cut(first, stop, cut.level + 1, alone=True))

    def _land(self, cut: Cut, outcome: Landed | Lost) -> None:
        self.landed[cut.first] = cut, outcome

    async def _gather_in(self) -> None:
        """Wait for what is still out: nothing of a fan-out runs on when it has ended."""
        if self.out:
            if self.crew.direct:
                self.crew.halt()
            await self._wait_for_the_rest()

    async def _wait_for_the_rest(self) -> None:
        for future in list(self.futures.values()):
            await _cancel(future)
        self._take()
        while any(map(_is_running, self.futures.values())):
            await self.news.wait()
            self.news.clear()
            self._take()

    async def _stop(self) -> None:
        """End early: tell the workers, wait for them, and keep what they had done."""
        self.ending = True
        self.crew.halt()
        with contextlib.suppress(BaseException):  # asked twice: nobody is waited for any more
            await self._wait_for_the_rest()
        self._file_the_rest()

    # -- joining ---------------------------------------------------------------------------

    def _join(self) -> None:
        """File what has come back, in the order of the items, as far as there is no gap."""
        while self.ended is None and self.joined in self.landed:
            cut, outcome = self.landed.pop(self.joined)
            self.joined = cut.stop
            self._file(cut, outcome)

    def _file_the_rest(self) -> None:
        """File what came back of branches behind a gap, and say which never did."""
        for _, (cut, outcome) in sorted(self.landed.items()):
            self._file(cut, outcome)
        self.landed.clear()
        for cut in self.out.values():
            self._note_out(cut)

    def _note_out(self, cut: Cut) -> None:
        self.fan.notes.update(dict.fromkeys(range(cut.first, cut.stop), OUT_NOTE))

    def _file(self, cut: Cut, outcome: Landed | Lost) -> None:
        if isinstance(outcome, Lost):
            for index in range(cut.first, cut.stop):
                self._lose(index, outcome)
            return
        execution, fan, log = self.execution, self.fan, self.execution.log
        joined = Joined(log, outcome.codes, outcome.all_shapes)
        fan.take(cut.first, joined.moved(outcome.filed))
        log.taken_back.extend(outcome.taken_back)
        execution.undeclared.update(dict.fromkeys(outcome.undeclared))
        for key, charts in outcome.templates.items():
            known = execution.templates.setdefault(key, {})
            for layout, chart in charts.items():
                known.setdefault(layout, chart)
        for key, counts in outcome.visits.items():
            execution.visits.setdefault(key, {}).update(counts)
        if self.branches.looping:
            for index in range(cut.first, cut.stop):
                note_visit(execution.visits, fan, index, self.branches.frame.prefix)
        for index, asked in outcome.waiting.items():
            signal = InterruptSignal(asked.reason, asked.expects, asked.data)
            signal.place = asked.place
            where = self._where(signal, asked.where, joined)
            self.branches.waiting[cut.first + index] = signal, where
        if not self.crew.direct:
            for event in outcome.streamed:
                tell(execution.on_stream, event)
        for index, reason in outcome.lost.items():
            words = f"its record cannot come back from the worker: {reason}"
            self._lose(cut.first + index, Lost("cannot_come_back", words))
        if outcome.ended is not None and self.ended is None:
            error, stood = outcome.ended
            self.ended = error, self._where(error, stood, joined)

    def _where(self, error: BaseException, stood: Stood | None, joined: Joined) -> Where | None:
        if stood is None:
            return None
        track = Track()
        track.codes.extend(joined.numbers(stood.codes))
        where = Where(error, stood.ref, track, stood.when)
        where.at, where.branches, where.base = stood.at, stood.branches, stood.base
        return where

    def _lose(self, index: int, lost: Lost) -> None:
        """File a branch that was lost, as one that failed."""
        branches, track = self.branches, Track()
        ref = branches.plan.ref._replace(path="")
        words = clip(" ".join(lost.reason.split()), REASON_LENGTH)  # the code is never cut off
        error = EngineError(f"{words} ({lost.code})", code=lost.code, where=ref.id)
        self.execution.failed(error, branches.plan, track, ref)
        branches.close(index, track, FAILED)
        if branches.fail_fast and self.ended is None:
            branches.left(error, index)
            self.ended = error, self.execution.place
            self.limit = min(self.limit, index + 1)


#: What dask calls it when it lets go of what it was to do.
_DROPPED: Final = ("FutureCancelledError", "FuturesCancelledError")


def _cause(error: BaseException) -> str:
    """Say what an executor says, without the names it makes up for each piece of work."""
    name, reason = type(error).__name__, getattr(error, "reason", None)
    if isinstance(reason, str):
        return f"{name}: {reason}"
    return name if name == "KilledWorker" else error_line(error)


async def _cancel(future: Any) -> None:
    """Ask for the end of what was submitted; one that runs goes on."""
    from concurrent.futures import Future

    with contextlib.suppress(Exception):  # the engine is gone, and so is the work
        if isinstance(future, Future):
            future.cancel()
        else:  # a cluster has to be asked, which takes a while
            from runbook_nb.chart.threads import in_thread

            await in_thread(future.cancel)


def _is_running(future: Any) -> bool:
    """Say whether an executor is at work on something, as far as its future says so."""
    running = getattr(future, "running", None)
    return callable(running) and running() is True
