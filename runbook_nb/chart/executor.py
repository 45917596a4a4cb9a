"""The engine: runs a chart stage by stage and appends what happens to the log.

Chart layer. The engine is written as generators that yield only what must be awaited, so a chart
of plain functions runs as a plain loop with no task, thread or future, and an async stage costs
one await. `drive` is the only place that awaits. Cancellation, limits, pauses and signals end the
run wherever they arise; only ordinary errors may end as a failed branch.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._frozen import FrozenDict, freeze
from runbook_nb._text import did_you_mean, listed
from runbook_nb.chart.builder import DECLINED, declined_branch
from runbook_nb.chart.fanout import run_fan_out
from runbook_nb.chart.model import Chart, DeciderStage, FanOutStage, Limits, Retry
from runbook_nb.chart.plan import StagePlan, plan_chart
from runbook_nb.chart.scope import Frame, InterruptSignal, Scope, frozen_args
from runbook_nb.errors import (
    ChartError,
    LimitReached,
    RunCancelled,
    RunSignal,
    describe_error,
)
from runbook_nb.record.log import Log, Track
from runbook_nb.record.redact import as_redact
from runbook_nb.record.run import Run
from runbook_nb.rules.evaluate import Decision, judge_facts, judge_facts_async
from runbook_nb.settings import settings

if TYPE_CHECKING:
    from runbook_nb._stop import Stop

#: What the engine's generators yield: something to await, or None to let others run.
Steps = Generator[Any, Any, Any]

_START: Final = object()


def ends_run(error: BaseException) -> bool:
    """Say whether an error ends the whole run, wherever it was raised."""
    return not isinstance(error, Exception) or isinstance(
        error, RunSignal | RunCancelled | LimitReached
    )


async def drive(steps: Steps, awaitable: Any = _START) -> Any:
    """Run an engine generator to its end, awaiting what it yields."""
    try:
        if awaitable is _START:
            awaitable = next(steps)
        while True:
            try:
                if awaitable is None:
                    from asyncio import sleep

                    awaitable = sleep(0)
                value = await awaitable
            except BaseException as error:  # whatever it is, the stage that waits must see it
                awaitable = steps.throw(error)
            else:
                awaitable = steps.send(value)
    except StopIteration as done:
        return done.value


async def execute(
    chart: Chart,
    args: Mapping[str, Any] | None,
    *,
    limits: Limits | None = None,
    redact: Any = None,
    signal: Stop | None = None,
) -> Run:
    """Run a chart once and give the run; see `Chart.run`."""
    execution = Execution(chart, args, limits=limits, redact=redact, signal=signal)
    try:
        output = await execution.go()
    except InterruptSignal as pause:
        return execution.finish("paused", pause=pause)
    except BaseException as error:
        run = execution.finish(status_of(error), error=error)
        _hand_over(error, run, execution)
        raise
    return execution.finish("ok", output=output)


def status_of(error: BaseException) -> str:
    """Name the status a run ends with when this error leaves it."""
    if isinstance(error, RunSignal):
        return error.run_status
    if isinstance(error, LimitReached):
        return "limited"
    if not isinstance(error, Exception) or isinstance(error, RunCancelled):
        return "cancelled"
    return "failed"


def _hand_over(error: BaseException, run: Run, execution: Execution) -> None:
    with suppress(AttributeError):  # an exception class with slots: the toolbox still has the run
        error.run = run  # type: ignore[attr-defined]
    where = f" in stage {execution.failed_in!r}" if execution.failed_in else ""
    note = f"raised{where} of chart {execution.chart.name!r}; error.run holds what happened"
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


class Execution:
    """One run of one chart: its log, its state, what it is watched for."""

    def __init__(
        self,
        chart: Chart,
        args: Mapping[str, Any] | None,
        *,
        limits: Limits | None,
        redact: Any,
        signal: Stop | None,
    ) -> None:
        self.chart = chart
        self.args = frozen_args(args)
        self.policy = as_redact(redact)
        self.log = Log()
        self.state: dict[str, Any] = {}
        self.options = settings.current
        self.limits = limits or Limits()
        self.signal = signal
        self.watched = signal is not None or self.limits != Limits()
        self.failed_in: str | None = None
        #: Charts that factories made, by the key of their fan-out: one per distinct layout.
        self.templates: dict[str, dict[Any, Chart]] = {}
        #: Branches taken that the chart did not declare: (decider key, route).
        self.undeclared: list[tuple[str, str]] = []
        self._running = chart.stages[0].name
        self._deadline: float | None = None
        if self.limits.seconds is not None:
            self._deadline = self.options.timer() + self.limits.seconds

    # -- the run as a whole ----------------------------------------------------------------

    async def go(self) -> Any:
        """Run the chart under its limits and its signal."""
        frame = Frame(self.log.root, self.state, self.args, "")
        steps = self.run_chart(plan_chart(self.chart, self.log), frame)
        if not self.watched:
            return await drive(steps)
        import asyncio

        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        fired: list[str] = []

        def stop(why: str) -> None:
            if task is not None and not fired:
                fired.append(why)
                task.cancel()

        forget: list[Callable[[], Any]] = []
        if self.signal is not None and not self.signal.is_set():
            forget.append(self.signal.on_set(lambda: loop.call_soon_threadsafe(stop, "signal")))
        if self.limits.seconds is not None:
            forget.append(loop.call_later(self.limits.seconds, stop, "seconds").cancel)
        try:
            return await drive(steps)
        except asyncio.CancelledError:
            # Only a cancellation of our own making is turned into our own words.
            if fired and task is not None and task.uncancel() == 0:
                raise (self._cancelled() if fired[0] == "signal" else self._overran()) from None
            raise
        finally:
            for each in forget:
                each()

    def check(self, plan: StagePlan) -> None:
        """Before a stage: end the run when it was asked to stop or its time is up."""
        if self.signal is not None and self.signal.is_set():
            raise self._cancelled(f"before stage {plan.ref.name!r}")
        if self._deadline is not None and self.options.timer() > self._deadline:
            raise self._overran()
        self._running = plan.ref.name

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

    def finish(
        self,
        status: str,
        *,
        output: Any = None,
        error: BaseException | None = None,
        pause: InterruptSignal | None = None,
    ) -> Run:
        """Make the run's record out of what was logged."""
        return Run(
            name=self.chart.name,
            status=status,
            args=self.args,
            log=self.log,
            raw_state=self.state,
            raw_result=freeze(output, "result"),
            structure=self._structure(),
            policy=self.policy,
            error=None if error is None else FrozenDict(describe_error(error)),
            pause=None if pause is None else FrozenDict(reason=pause.reason, expects=pause.expects),
        )

    def _structure(self) -> Any:
        if not self.templates and not self.undeclared:
            return self.chart.structure
        from runbook_nb.chart.templates import structure_with

        return structure_with(self.chart, self.templates, self.undeclared)

    # -- stages ----------------------------------------------------------------------------

    def run_chart(self, plans: Sequence[StagePlan], frame: Frame) -> Steps:
        """Run the stages of a chart in order; give what the last one returned."""
        output: Any = None
        codes = frame.track.codes
        for plan in plans:
            if self.watched:
                self.check(plan)
            codes.append(plan.stage_code)
            stage = plan.stage
            if isinstance(stage, DeciderStage):
                taken = yield from self.decide(plan, stage, frame)
                if taken is None:
                    return None
                if self.watched:
                    self.check(taken)
                codes.append(taken.stage_code)
                stopped, output = yield from self.call(taken, taken.fn, frame)
            elif isinstance(stage, FanOutStage):
                stopped, output = yield from run_fan_out(self, plan, stage, frame)
            else:
                stopped, output = yield from self.call(plan, plan.fn, frame)
            if stopped:
                return output
        return output

    def call(self, plan: StagePlan, fn: Any, frame: Frame) -> Steps:
        """Run one function over a scope; give whether it stopped the chart, and its value."""
        if plan.stage.retry is not None:
            return (yield from self._call_again(plan, plan.stage.retry, fn, frame))
        scope = Scope(frame, plan)
        try:
            value = yield from self._once(plan, fn, scope)
        except BaseException as error:
            self.failed(error, plan, frame.track)
            raise
        finally:
            scope.close()
        if scope.stopped is not None:
            frame.track.add(plan.code("stop"), scope.stopped[0])
            return True, value
        return False, value

    def _once(self, plan: StagePlan, fn: Any, scope: Scope) -> Steps:
        """Run a stage's function once, under the limit of a stage."""
        limit = self.limits.stage_seconds
        started = 0.0 if limit is None else self.options.timer()
        try:
            value = self._in_thread(fn, scope) if plan.stage.blocking else fn(scope)
            if value is not None and hasattr(value, "__await__"):
                return (yield value if limit is None else self._within(plan, value, limit))
        except StopIteration as error:  # it would read as the end of the engine's own steps
            raise ChartError(
                f"stage {plan.ref.name!r} raised StopIteration", where=plan.ref.id
            ) from error
        if limit is not None and self.options.timer() - started > limit:
            raise self._stage_overran(plan)
        return value

    async def _in_thread(self, fn: Any, scope: Scope) -> Any:
        from asyncio import to_thread

        return await to_thread(fn, scope)

    async def _within(self, plan: StagePlan, value: Any, seconds: float) -> Any:
        import asyncio

        try:
            async with asyncio.timeout(seconds) as limit:
                return await value
        except TimeoutError:
            if limit.expired():
                raise self._stage_overran(plan) from None
            raise

    def _stage_overran(self, plan: StagePlan) -> LimitReached:
        return LimitReached(
            f"stage {plan.ref.name!r} ran longer than its limit of {self.limits.stage_seconds:g} s",
            code="stage_time_limit",
            where=plan.ref.id,
            fix="raise Limits(stage_seconds=…) or make the stage quicker",
        )

    def _call_again(self, plan: StagePlan, retry: Retry, fn: Any, frame: Frame) -> Steps:
        state, track = frame.state, frame.track
        attempt = 1
        while True:
            before = dict(state)
            codes, values = len(track.codes), len(track.values)
            scope = Scope(frame, plan)
            try:
                value = yield from self._once(plan, fn, scope)
                break
            except BaseException as error:
                if ends_run(error) or attempt >= retry.attempts or not _worth_it(retry, error):
                    self.failed(error, plan, track)
                    raise
                # A failed attempt leaves nothing behind but the fact that it failed.
                state.clear()
                state.update(before)
                del track.codes[codes:], track.values[values:]
                described = freeze(describe_error(error))
                fact = {"attempt": attempt, "attempts": retry.attempts, "error": described}
                track.add(plan.code("retry"), FrozenDict(fact))
                delay = retry.backoff(attempt) if callable(retry.backoff) else retry.backoff
            finally:
                scope.close()
            attempt += 1
            if delay > 0:
                from asyncio import sleep

                yield sleep(delay)
            if self.watched:
                self.check(plan)
        if scope.stopped is not None:
            track.add(plan.code("stop"), scope.stopped[0])
            return True, value
        return False, value

    def failed(self, error: BaseException, plan: StagePlan, track: Track) -> None:
        """Put an error that leaves a stage on the record."""
        if isinstance(error, InterruptSignal):
            track.add(plan.code("pause"), FrozenDict(reason=error.reason, expects=error.expects))
            return
        self.failed_in = self.failed_in or plan.ref.name
        described = describe_error(error)
        if not described["message"] and not isinstance(error, Exception):
            described["message"] = "the run was ended from outside"
        track.add(plan.code("error"), freeze(described))

    # -- deciders --------------------------------------------------------------------------

    def decide(self, plan: StagePlan, stage: DeciderStage, frame: Frame) -> Steps:
        """Judge, record the decision, give the plan of the branch taken; None when stopped."""
        track = frame.track
        if stage.rules is None:
            stopped, answer = yield from self.call(plan, stage.judge, frame)
            if stopped:
                return None
            if not isinstance(answer, Decision):
                return self._route_by_word(plan, answer, track)
            route, via = answer.path.branch, answer.path.via
            track.codes.append(plan.decision_code(answer.path))
            track.values.extend(answer.values)
        else:
            scope = Scope(frame, plan)
            try:
                if plan.has_functions:
                    found = yield judge_facts_async(stage.rules, frame.state, scope)
                else:
                    found = judge_facts(stage.rules, frame.state)
            except BaseException as error:
                self.failed(error, plan, track)
                raise
            finally:
                scope.close()
            decision_path, values = found
            track.codes.extend(plan.decision_codes(decision_path))
            track.values.extend(values)
            route, via = decision_path.branch, decision_path.via
        taken = plan.branches.get(route) if route is not None else None
        if taken is None:
            taken = self._route_elsewhere(plan, route, via, frame)
        return taken

    def _route_by_word(self, plan: StagePlan, answer: Any, track: Track) -> StagePlan:
        taken = plan.branches.get(answer) if isinstance(answer, str) else None
        if taken is None and plan.default is not None:
            taken = plan.branches[plan.default]
        if taken is None:
            raise self._no_branch(plan, answer, track)
        route = next(word for word, branch in plan.branches.items() if branch is taken)
        track.add(plan.code("choice", route), freeze(answer, "the decider's answer"))
        return taken

    def _route_elsewhere(
        self, plan: StagePlan, route: str | None, via: str, frame: Frame
    ) -> StagePlan:
        if route is None and plan.default is not None:
            return plan.branches[plan.default]
        if route == DECLINED and via in ("unreadable", "outside"):
            # No branch was declared for what could not be judged; it gets one that writes nothing.
            self.undeclared.append((f"{frame.path}{plan.ref.id}", DECLINED))
            return plan.add_branch(declined_branch())
        raise self._no_branch(plan, route, frame.track)

    def _no_branch(self, plan: StagePlan, answer: Any, track: Track) -> ChartError:
        routes = list(plan.branches)
        if answer is None:
            message = (
                f"decider {plan.ref.name!r} named no branch: no rule matched and it has no default"
            )
        else:
            message = f"decider {plan.ref.name!r} named {answer!r}, which is none of its branches"
        near = did_you_mean(answer, routes) if isinstance(answer, str) else None
        error = ChartError(
            message,
            code="unknown_branch",
            where=plan.ref.id,
            fix=near or f"its branches are {listed(routes)}",
        )
        self.failed(error, plan, track)
        return error


def _worth_it(retry: Retry, error: BaseException) -> bool:
    if not isinstance(error, Exception):
        return False
    if isinstance(retry.on, tuple):
        return isinstance(error, retry.on)
    try:
        return bool(retry.on(error))
    except Exception:  # a question that cannot be answered is answered with no
        return False
