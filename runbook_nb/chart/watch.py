"""What may end a run from outside its stages: a stop, a limit of time, an interrupt.

Chart layer. All of them act between stages, and end an awaited stage in its middle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._frozen import freeze
from runbook_nb._sync import loop_at_hand
from runbook_nb.chart.endings import Steps, drive, ending_of
from runbook_nb.chart.model import Chart, Limits
from runbook_nb.chart.plan import StagePlan
from runbook_nb.errors import ChartError, LimitReached, RunCancelled, describe_error
from runbook_nb.record.log import StageRef, Track
from runbook_nb.settings import settings

if TYPE_CHECKING:
    from runbook_nb._stop import Stop


_NO_LIMITS: Final = Limits()


class Where:
    """Where an error arose: the stage, the track it stood on, the branches around that track."""

    __slots__ = ("at", "base", "branches", "error", "ref", "track", "when")

    def __init__(self, error: BaseException, ref: StageRef, track: Track, when: str = "in") -> None:
        self.error = error
        self.when = when
        self.ref = ref
        self.track = track
        self.at = len(track.codes)
        self.branches = ""
        self.base: int | None = None


class Watch:
    """Watches one run: its signal, its limits, who interrupts it."""

    def __init__(self, chart: Chart, limits: Limits | None, signal: Stop | None) -> None:
        if limits is not None and not isinstance(limits, Limits):
            raise ChartError(
                f"limits is {type(limits).__name__}, not Limits",
                where="limits",
                fix="write limits=rb.Limits(seconds=…)",
            )
        self.chart = chart
        self.options = settings.current
        self.limits = limits or _NO_LIMITS
        self.signal = signal
        timed = self.limits.seconds is not None or self.limits.stage_seconds is not None
        self.watched = signal is not None or timed
        #: Whether a single stage may take as long as it likes.
        self.untimed = self.limits.stage_seconds is None
        #: Where the last error arose that left a stage.
        self.place: Where | None = None
        self._interrupted = False
        self._running = chart.stages[0].name
        self._deadline: float | None = None
        if self.limits.seconds is not None:
            self._deadline = self.options.timer() + self.limits.seconds

    async def watch(self, steps: Steps) -> Any:
        """Run an engine generator to its end, under the signal and the limits."""
        await loop_at_hand()
        import asyncio

        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        asked = 0 if task is None else task.cancelling()
        fired: list[str] = []
        over = False

        def stop(why: str) -> None:
            # Called by the loop, perhaps only after the run has ended on its own.
            if task is not None and not fired and not over:
                fired.append(why)
                task.cancel()

        forget: list[Callable[[], Any]] = []
        if self.signal is not None and not self.signal.is_set():
            forget.append(self.signal.on_set(lambda: loop.call_soon_threadsafe(stop, "signal")))
        if self._deadline is not None:
            left = max(self._deadline - self.options.timer(), 0.0)
            forget.append(loop.call_later(left, stop, "seconds").cancel)
        try:
            return await drive(steps)
        except asyncio.CancelledError as error:
            # Only a cancellation of our own making, and of nobody else's, gets our own words.
            if not fired or task is None or task.cancelling() - 1 > asked:
                raise
            ended: Any = self._cancelled() if fired[0] == "signal" else self._overran()
            if self.place is not None and self.place.error is error:
                self.place.error = ended
            raise ended from None
        finally:
            over = True
            for each in forget:
                each()
            if fired and task is not None:
                task.uncancel()

    @property
    def seconds_left(self) -> float | None:
        """What is left of the time for the whole run; None where there is no limit."""
        return None if self._deadline is None else self._deadline - self.options.timer()

    def end_after(self, seconds: float | None) -> None:
        """End when so many seconds have passed from now on, as a part of a run that began before.

        What is said of the limit is what it is for the whole.
        """
        self._deadline = None if seconds is None else self.options.timer() + seconds

    def interrupt(self) -> None:
        """End the run before its next stage; called by another thread."""
        self._interrupted = True
        self.watched = True

    def check(self, plan: StagePlan, track: Track, when: str = "before") -> None:
        """Between stages: end the run when it was asked to stop or its time is up."""
        error = self.asked_to_end(plan, when)
        if error is not None:
            self.end_between(error, plan, track, when)
            raise error
        self._running = plan.ref.name

    def goes_on(self, plan: StagePlan) -> bool:
        """Say whether `check` would let the run go on to a stage, and note it when it does."""
        if self.asked_to_end(plan, "before") is not None:
            return False
        self._running = plan.ref.name
        return True

    def end_between(
        self, error: BaseException, plan: StagePlan, track: Track, when: str = "before"
    ) -> None:
        """Put on the record that the run ends between stages; the stage is the next, or last."""
        self.place = Where(error, plan.ref, track, when)
        track.add(plan.code("ended", when), freeze(describe_error(error)))

    def asked_to_end(self, plan: StagePlan, when: str) -> RunCancelled | LimitReached | None:
        """Give the error a run must end with that was asked to stop, or whose time is up."""
        if self._interrupted or (self.signal is not None and self.signal.is_set()):
            return self._cancelled(f"{when} stage {plan.ref.name!r}")
        if self._deadline is not None and self.options.timer() > self._deadline:
            return self._overran()
        return None

    def _cancelled(self, when: str | None = None) -> RunCancelled:
        reason = self.signal.reason if self.signal is not None else None
        return RunCancelled(
            f"chart {self.chart.name!r} was stopped {when or f'during stage {self._running!r}'}"
            + (f": {reason}" if reason else ""),
            where=self._running,
        )

    def _overran(self) -> LimitReached:
        return LimitReached(
            f"chart {self.chart.name!r} ran longer than its limit of {self.limits.seconds:g} s; "
            f"stage {self._running!r} was the last to run",
            code="time_limit",
            where=self._running,
            fix="raise Limits(seconds=…) or make that stage quicker",
        )

    async def within(self, plan: StagePlan, value: Any, seconds: float) -> Any:
        """Await something under the limit of a stage."""
        await loop_at_hand()
        import asyncio

        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                value = await value
        except Exception as error:
            # The stage's own time-out is its own affair; an error it made of ours is not.
            if limit.expired() and ending_of(error) is None:
                raise self.stage_overran(plan) from None
            raise
        if limit.expired():
            raise self.stage_overran(plan)
        return value

    def in_time(self, plan: StagePlan, judging: Steps) -> Steps:
        """Judge with function rules; what they wait for, and all of it, under a stage's limit."""
        limit = self.limits.stage_seconds
        if limit is None:
            return (yield from judging)
        deadline = self.options.timer() + limit
        try:
            awaitable = next(judging)
            while True:
                left = max(deadline - self.options.timer(), 0.0)
                try:
                    value = yield self.within(plan, awaitable, left)
                except Exception as error:
                    awaitable = judging.throw(error)
                else:
                    awaitable = judging.send(value)
        except StopIteration as done:
            if self.options.timer() > deadline:
                raise self.stage_overran(plan) from None
            return done.value

    def stage_overran(self, plan: StagePlan) -> LimitReached:
        """Make the error of a stage that took longer than it may."""
        return LimitReached(
            f"stage {plan.ref.name!r} ran longer than its limit of {self.limits.stage_seconds:g} s",
            code="stage_time_limit",
            where=plan.ref.id,
            fix="raise Limits(stage_seconds=…) or make the stage quicker",
        )
