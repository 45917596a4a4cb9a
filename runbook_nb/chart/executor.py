"""The engine: runs a chart stage by stage and appends what happens to the log.

Chart layer. The engine is written as generators that yield only what must be awaited, so a chart
of plain functions runs as a plain loop with no task, thread or future, and an async stage costs
one await. `drive` is the only place that awaits. Cancellation, limits, pauses and signals end the
run wherever they arise; only ordinary errors may end as a failed branch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from types import AsyncGeneratorType, GeneratorType
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._frozen import FrozenDict, freeze
from runbook_nb._sync import on_interrupt
from runbook_nb._text import did_you_mean, listed, show
from runbook_nb.chart.builder import declined_branch
from runbook_nb.chart.endings import Steps, drive, ending_of, status_of
from runbook_nb.chart.fanout import run_fan_out
from runbook_nb.chart.inputs import checked_input
from runbook_nb.chart.model import DECLINED, Chart, DeciderStage, FanOutStage, Limits
from runbook_nb.chart.plan import StagePlan, plan_chart
from runbook_nb.chart.retry import run_again
from runbook_nb.chart.scope import Frame, InterruptSignal, Scope
from runbook_nb.errors import ChartError, LimitReached, Paused, RunCancelled, describe_error
from runbook_nb.record.log import Log, StageRef, Track
from runbook_nb.record.redact import as_redact
from runbook_nb.record.run import Run
from runbook_nb.record.walk import runtime_id
from runbook_nb.rules.evaluate import Decision, judge_facts, judge_steps
from runbook_nb.settings import settings

if TYPE_CHECKING:
    from runbook_nb._stop import Stop
    from runbook_nb.rules import RuleSet

_GENERATORS: Final = (GeneratorType, AsyncGeneratorType)

#: Flag of a generator that was written to be awaited.
_ITERABLE_COROUTINE: Final = 0x100


async def execute(
    chart: Chart,
    args: Any,
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
        return execution.finish("paused", error=pause)
    except BaseException as error:
        run = execution.finish(status_of(error), error=error)
        _hand_over(error, run, execution)
        raise
    return execution.finish("ok", output=output)


def _hand_over(error: BaseException, run: Run, execution: Execution) -> None:
    with suppress(Exception):  # a class with slots, say: the toolbox still has the run
        error.run = run  # type: ignore[attr-defined]
    place = execution.place
    where = f" in stage {place.ref.name!r}" if place is not None and place.error is error else ""
    note = f"raised{where} of chart {execution.chart.name!r}; error.run holds what happened"
    if note not in getattr(error, "__notes__", ()):
        with suppress(Exception):
            error.add_note(note)


def _question(error: BaseException) -> FrozenDict | None:
    """Give what a pause asks; None for what is no pause."""
    if isinstance(error, InterruptSignal):
        return FrozenDict(reason=error.reason, expects=error.expects)
    if isinstance(error, Paused):  # an inner procedure asked
        return FrozenDict(reason=error.message, expects=None)
    return None


class _Place:
    """Where an error arose: the stage, the track it stood on, the branches around that track."""

    __slots__ = ("at", "branches", "error", "ref", "track")

    def __init__(self, error: BaseException, ref: StageRef, track: Track) -> None:
        self.error = error
        self.ref = ref
        self.track = track
        self.at = len(track.codes)
        self.branches = ""


class Execution:
    """One run of one chart: its log, its state, what it is watched for."""

    def __init__(
        self,
        chart: Chart,
        args: Any,
        *,
        limits: Limits | None,
        redact: Any,
        signal: Stop | None,
    ) -> None:
        if limits is not None and not isinstance(limits, Limits):
            raise ChartError(
                f"limits is {type(limits).__name__}, not Limits",
                where="limits",
                fix="write limits=rb.Limits(seconds=…)",
            )
        self.chart = chart
        self.policy = as_redact(redact)
        self.args = checked_input(chart, args, self.policy)
        self.log = Log()
        self.state: dict[str, Any] = {}
        self.options = settings.current
        self.limits = limits or Limits()
        self.signal = signal
        self.watched = signal is not None or self.limits != Limits()
        #: Where the last error arose that left a stage.
        self.place: _Place | None = None
        #: Charts that factories made, by the key of their fan-out: one per distinct layout.
        self.templates: dict[str, dict[Any, Chart]] = {}
        #: Branches taken that the chart did not declare: (decider key, branch id).
        self.undeclared: dict[tuple[str, str], None] = {}
        self._interrupted = False
        self._running = chart.stages[0].name
        self._deadline: float | None = None
        if self.limits.seconds is not None:
            self._deadline = self.options.timer() + self.limits.seconds

    # -- the run as a whole ----------------------------------------------------------------

    async def go(self) -> Any:
        """Run the chart under its limits and its signal; give its frozen result."""
        frame = Frame(self.log.root, self.state, self.args, "")
        plans = plan_chart(self.chart, self.log)
        steps = self.run_chart(plans, frame)
        forget = on_interrupt(self._interrupt)
        try:
            output = await (self._watch(steps) if self.watched else drive(steps))
        finally:
            forget()
        if self.watched:
            self.check(plans[-1], frame.track, "after")
        try:
            return freeze(output, "result")
        except Exception as error:
            self.failed(error, plans[-1], frame.track)
            raise

    async def _watch(self, steps: Steps) -> Any:
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
        if self.limits.seconds is not None:
            forget.append(loop.call_later(self.limits.seconds, stop, "seconds").cancel)
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

    def _interrupt(self) -> None:
        """End the run before its next stage; called by another thread."""
        self._interrupted = True
        self.watched = True

    def check(self, plan: StagePlan, track: Track, when: str = "before") -> None:
        """Between stages: end the run when it was asked to stop or its time is up."""
        error = self.asked_to_end(plan, when)
        if error is not None:
            self.place = _Place(error, plan.ref, track)
            track.add(plan.code("ended", when), freeze(describe_error(error)))
            raise error
        self._running = plan.ref.name

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

    def finish(
        self,
        status: str,
        *,
        output: Any = None,
        error: BaseException | None = None,
    ) -> Run:
        """Make the run's record out of what was logged."""
        question = None if error is None else _question(ending_of(error) or error)
        told = error is not None and not isinstance(error, InterruptSignal)
        return Run(
            name=self.chart.name,
            status=status,
            args=self.args,
            log=self.log,
            raw_state=self.state,
            raw_result=output,
            structure=self._structure(),
            policy=self.policy,
            error=freeze(describe_error(error)) if error is not None and told else None,
            pause=question,
            ended_at=None if error is None else self._ended_at(error),
        )

    def _ended_at(self, error: BaseException) -> FrozenDict | None:
        place = self.place
        if place is None or place.error is not error:
            return None
        executed = self.log.executions(place.track.codes[: place.at])
        # A stage the run ended before was never executed, so that there is no id for it.
        between = self.log.codes[place.track.codes[place.at]].kind == "ended"
        known = executed and not between
        name = runtime_id(place.branches, place.ref.id, executed - 1) if known else None
        return FrozenDict(stage=place.ref.name, stage_id=place.ref.id, runtime_stage_id=name)

    def _structure(self) -> Any:
        if not self.templates and not self.undeclared:
            return self.chart.structure
        from runbook_nb.chart.templates import structure_with

        return structure_with(self.chart, self.templates, sorted(self.undeclared))

    # -- stages ----------------------------------------------------------------------------

    def run_chart(self, plans: Sequence[StagePlan], frame: Frame) -> Steps:
        """Run the stages of a chart in order; give what the last one returned."""
        output: Any = None
        codes = frame.track.codes
        for plan in plans:
            if self.watched:
                self.check(plan, frame.track)
            codes.append(plan.stage_code)
            stage = plan.stage
            if isinstance(stage, DeciderStage):
                taken = yield from self.decide(plan, stage, frame)
                if taken is None:
                    return None
                if self.watched:
                    self.check(taken, frame.track)
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
        retry = plan.stage.retry
        scope: Scope | None = None
        try:
            if retry is None:
                scope = self.scope(plan, frame)
                value = yield from self.once(plan, fn, scope)
            else:
                scope, value = yield from run_again(self, plan, retry, fn, frame)
        except BaseException as error:
            if scope is not None:
                scope.close()  # first of all: a thread may still be writing
            self.failed(error, plan, frame.track)
            raise
        scope.close()
        if scope.stopped is not None:
            reason: Any = scope.stopped
            frame.track.add(plan.code("stop"), reason[0])
            return True, value
        return False, value

    def scope(self, plan: StagePlan, frame: Frame) -> Scope:
        """Open the scope of one execution of a stage."""
        if not plan.stage.blocking:
            return Scope(frame, plan)
        from runbook_nb.chart.threads import ThreadScope

        return ThreadScope(frame, plan)

    def once(self, plan: StagePlan, fn: Any, scope: Scope) -> Steps:
        """Run a stage's function once, under the limit of a stage."""
        limit = self.limits.stage_seconds
        started = 0.0 if limit is None else self.options.timer()
        try:
            value = self._in_thread(fn, scope) if plan.stage.blocking else fn(scope)
            if value is not None and (hasattr(value, "__await__") or self._awaits(value)):
                value = yield value if limit is None else self._within(plan, value, limit)
        except StopIteration as error:  # it would read as the end of the engine's own steps
            raise ChartError(
                f"stage {plan.ref.name!r} raised StopIteration", where=plan.ref.id
            ) from error
        except Exception as error:
            if scope.stopped.__class__ is InterruptSignal and ending_of(error) is None:
                raise scope.stopped from error
            raise
        if scope.stopped.__class__ is InterruptSignal:
            # Whatever caught the question, it was asked, and nobody has answered it.
            raise scope.stopped
        if value.__class__ in _GENERATORS:
            raise ChartError(
                f"stage {plan.ref.name!r} is a generator: its body would never run",
                where=plan.ref.id,
                code="generator_stage",
                fix="return a value instead of yielding",
            )
        if limit is not None and self.options.timer() - started > limit:
            raise self._stage_overran(plan)
        return value

    def _awaits(self, value: Any) -> bool:
        return (
            value.__class__ is GeneratorType
            and value.gi_code.co_flags & _ITERABLE_COROUTINE == _ITERABLE_COROUTINE
        )

    def _in_thread(self, fn: Any, scope: Scope) -> Any:
        from runbook_nb.chart.threads import in_thread

        return in_thread(fn, scope)

    async def _within(self, plan: StagePlan, value: Any, seconds: float) -> Any:
        import asyncio

        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                value = await value
        except Exception as error:
            # The stage's own time-out is its own affair; an error it made of ours is not.
            if limit.expired() and ending_of(error) is None:
                raise self._stage_overran(plan) from None
            raise
        if limit.expired():
            raise self._stage_overran(plan)
        return value

    def _stage_overran(self, plan: StagePlan) -> LimitReached:
        return LimitReached(
            f"stage {plan.ref.name!r} ran longer than its limit of {self.limits.stage_seconds:g} s",
            code="stage_time_limit",
            where=plan.ref.id,
            fix="raise Limits(stage_seconds=…) or make the stage quicker",
        )

    def failed(self, error: BaseException, plan: StagePlan, track: Track) -> None:
        """Put an error that leaves a stage on the record."""
        if self.place is None or self.place.error is not error:
            self.place = _Place(error, plan.ref, track)
        question = _question(error)
        if question is not None:
            track.add(plan.code("pause"), question)
            return
        described = describe_error(error)
        if not described["message"] and not isinstance(error, Exception):
            described["message"] = "the run was ended from outside"
        track.add(plan.code("error"), freeze(described))

    def left_branch(self, error: BaseException, segment: str) -> None:
        """Note that an error leaves a branch: its place lies inside."""
        if self.place is not None and self.place.error is error:
            self.place.branches = segment + self.place.branches

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
            path, values = yield from self._judge(plan, stage.rules, frame)
            track.codes.extend(plan.decision_codes(path))
            track.values.extend(values)
            route, via = path.branch, path.via
        taken = plan.branches.get(route) if route is not None else None
        if taken is None:
            taken = self._route_elsewhere(plan, route, via, frame)
        return taken

    def _judge(self, plan: StagePlan, rules: RuleSet, frame: Frame) -> Steps:
        if not plan.has_functions and self.limits.stage_seconds is None:
            try:
                return judge_facts(rules, frame.state)
            except BaseException as error:  # an unreadable value that raises, by declaration
                self.failed(error, plan, frame.track)
                raise
        scope = Scope(frame, plan)
        try:
            return (yield from self._judge_in_time(plan, judge_steps(rules, frame.state, scope)))
        except BaseException as error:
            self.failed(error, plan, frame.track)
            raise
        finally:
            scope.close()

    def _judge_in_time(self, plan: StagePlan, judging: Steps) -> Steps:
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
                    value = yield self._within(plan, awaitable, left)
                except Exception as error:
                    awaitable = judging.throw(error)
                else:
                    awaitable = judging.send(value)
        except StopIteration as done:
            if self.options.timer() > deadline:
                raise self._stage_overran(plan) from None
            return done.value

    def _route_by_word(self, plan: StagePlan, answer: Any, track: Track) -> StagePlan:
        word = answer if isinstance(answer, str) and answer in plan.branches else plan.default
        if word is None:
            raise self._no_branch(plan, answer, track)
        try:
            kept = freeze(answer, "the decider's answer")
        except Exception as error:
            self.failed(error, plan, track)
            raise
        track.add(plan.code("choice", word), kept)
        return plan.branches[word]

    def _route_elsewhere(
        self, plan: StagePlan, route: str | None, via: str, frame: Frame
    ) -> StagePlan:
        if route is None and plan.default is not None:
            frame.track.add(plan.code("route", plan.default))
            return plan.branches[plan.default]
        if route == DECLINED and via in ("unreadable", "outside"):
            # No branch was declared for what could not be judged; it gets one that writes nothing.
            branch_id = plan.chart._declined_ids[plan.stage.id]
            self.undeclared[f"{frame.path}{plan.ref.id}", branch_id] = None
            return plan.add_branch(declined_branch(branch_id))
        raise self._no_branch(plan, route, frame.track)

    def _no_branch(self, plan: StagePlan, answer: Any, track: Track) -> ChartError:
        routes = list(plan.branches)
        if answer is None:
            message = (
                f"decider {plan.ref.name!r} named no branch: no rule matched and it has no default"
            )
        else:
            named = repr(answer) if isinstance(answer, str) else show(answer)
            message = f"decider {plan.ref.name!r} named {named}, which is none of its branches"
        near = did_you_mean(answer, routes) if isinstance(answer, str) else None
        error = ChartError(
            message,
            code="unknown_branch",
            where=plan.ref.id,
            fix=near or f"its branches are {listed(routes)}",
        )
        self.failed(error, plan, track)
        return error
