"""The engine: runs a chart stage by stage and appends what happens to the log.

Chart layer. The engine is written as generators that yield only what must be awaited, so a chart
of plain functions runs as a plain loop with no task, thread or future, and an async stage costs
one await. `drive` is the only place that awaits. Charts mounted in one another run in the same
loop, so that their depth costs no stack. Cancellation, limits, pauses and signals end the run
wherever they arise; only ordinary errors may end as a failed branch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from types import AsyncGeneratorType, GeneratorType
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._frozen import FrozenDict, freeze
from runbook_nb._sync import is_awaitable, on_interrupt
from runbook_nb._text import MISSING, counted
from runbook_nb.chart.contract import check_output, hide_in
from runbook_nb.chart.deciding import choose, decide
from runbook_nb.chart.endings import Steps, drive, ending_of, status_of, stray_stop
from runbook_nb.chart.fanout import go_on_branches, run_fan_out, run_fork
from runbook_nb.chart.inputs import checked_input
from runbook_nb.chart.model import (
    Chart,
    FanOutStage,
    ForkStage,
    JudgeEachStage,
    Limits,
    PausableStage,
    SelectorStage,
    StreamingStage,
)
from runbook_nb.chart.mounts import enter, leave
from runbook_nb.chart.onlookers import begin
from runbook_nb.chart.plan import CALLS, DECIDES, MOUNTS, ChartPlan, StagePlan, plan_chart
from runbook_nb.chart.resume import Level, place_of, question_of, reenter, undo
from runbook_nb.chart.scope import Frame, InterruptSignal, Scope, frozen_args
from runbook_nb.chart.straight import Begun
from runbook_nb.chart.watch import Watch, Where
from runbook_nb.errors import ChartError, LimitReached, Paused, describe_error
from runbook_nb.record.log import Code, Log, StageRef, Track
from runbook_nb.record.places import runtime_id
from runbook_nb.record.redact import as_redact, joined_policies
from runbook_nb.record.run import Run
from runbook_nb.record.shapes import replayed
from runbook_nb.record.structure import Structure

if TYPE_CHECKING:
    from runbook_nb._stop import Stop
    from runbook_nb.chart.engines import Engine
    from runbook_nb.chart.streaming import StreamEvent
    from runbook_nb.record.checkpoint import Resumed
    from runbook_nb.record.pauses import Place

_GENERATORS: Final = (GeneratorType, AsyncGeneratorType)

#: What the state of a run is held to when it began without any.
_NOTHING: Final = FrozenDict()


async def execute(
    chart: Chart, args: Any, *, state: Mapping[str, Any] | None = None, **options: Any
) -> Run:
    """Run a chart once and give the run; see `Chart.run`."""
    execution = Execution(chart, **options)
    execution.args = checked_input(chart, args, execution.policy)
    execution.begin_with(frozen_args(state, "state"))
    return await _ended(execution)


async def go_on(chart: Chart, checkpoint: Mapping[str, Any], answer: Any, **options: Any) -> Run:
    """Go on with a paused run and give it; see `Chart.resume`."""
    execution = Execution(chart, **options)
    from runbook_nb.record.checkpoint import read_checkpoint

    resumed = read_checkpoint(checkpoint, chart.structure, chart.name, _rules_in(chart))
    execution.resume_from(resumed, freeze(answer, "answer"))
    return await _ended(execution)


def _rules_in(chart: Chart) -> list[Any]:
    from runbook_nb.chart.layout import rules_by_key

    return [rules for _, rules in rules_by_key(chart, "")]


async def _ended(execution: Execution) -> Run:
    status, told = "ok", begin(execution)
    try:
        output = await execution.go()
    except InterruptSignal as pause:
        status = "paused"
        return execution.finish("paused", error=pause)
    except BaseException as error:
        status = status_of(error)
        if getattr(error, "code", None) == "bad_checkpoint":
            raise  # found where the run was to go on: nothing has run
        run = execution.finish(status, error=error)
        hide_in(error, run.redactor)
        _hand_over(error, run, execution)
        raise
    finally:
        if told is not None:
            told(status)
    return execution.finish("ok", output=output)


def _hand_over(error: BaseException, run: Run, execution: Execution) -> None:
    with suppress(Exception):  # a class with slots, say: the toolbox still has the run
        error.run = run  # type: ignore[attr-defined]
    place = execution.place
    where = ""
    if place is not None and place.error is error:
        where = f" {place.when} stage {place.ref.name!r}"
    note = f"raised{where} of chart {execution.chart.name!r}; error.run holds what happened"
    if note not in getattr(error, "__notes__", ()):
        with suppress(Exception):
            error.add_note(note)


def _engine(given: Any) -> Engine | None:
    from runbook_nb.chart.engines import as_engine

    return as_engine(given)


def _question(error: BaseException) -> FrozenDict | None:
    """Give what a pause asks; None for what is no pause."""
    if isinstance(error, InterruptSignal):
        return error.question
    if isinstance(error, Paused):  # an inner procedure asked
        return FrozenDict(reason=error.message, expects=None, data=None)
    return None


class Execution(Watch):
    """One run of one chart: its log, its state, what it is watched for."""

    def __init__(
        self,
        chart: Chart,
        *,
        limits: Limits | None,
        redact: Any,
        signal: Stop | None,
        on_stream: Callable[[StreamEvent], Any] | None = None,
        engine: Any = None,
    ) -> None:
        super().__init__(chart, limits, signal)
        #: Where the branches of fan-outs run; None for here.
        self.engine = None if engine is None else _engine(engine)
        self.policy = as_redact(redact)
        self.args = _NOTHING
        self.log = Log(chart._known)
        self.initial = _NOTHING
        self.state: dict[str, Any] = {}
        self.on_stream = on_stream
        #: Charts that factories made, by the key of their stage: one per distinct layout.
        self.templates: dict[str, dict[Any, Chart]] = {}
        #: Branches taken that the chart did not declare: (decider key, branch id).
        self.undeclared: dict[tuple[str, str], None] = {}
        #: Where the next visit of each branch of a fan-out goes on counting; see `FanOut.bases`.
        self.visits: dict[str, dict[Any, int]] = {}
        #: What the chart's contract gives, where it declares any.
        self.given: Any = MISSING
        self._resumed: Place | None = None
        self._answer: Any = None
        #: The structure that an earlier part of the run met.
        self._met: Structure | None = None

    def begin_with(self, initial: FrozenDict) -> None:
        """Take the state that the first stage finds."""
        self.initial = initial
        self.state.update(initial)

    def resume_from(self, resumed: Resumed, answer: Any) -> None:
        """Take over what a paused run left."""
        self.log, self.args, self.initial = resumed.log, resumed.args, resumed.initial
        self.policy = joined_policies(resumed.policy, self.policy)
        root = self.log.root
        self.state.update(replayed(self.log, root.codes, root.values, "", self.initial)[0])
        self._resumed, self._answer, self._met = resumed.place, answer, resumed.met
        self.undeclared.update(dict.fromkeys(resumed.undeclared))

    # -- the run as a whole ----------------------------------------------------------------

    async def go(self) -> Any:
        """Run the chart under its limits and its signal; give its frozen result."""
        frame = Frame(self.log.root, self.state, self.args, "")
        plan = plan_chart(self.chart, self.log)
        frame.base, frame.loopy = self.initial, plan.loops
        if self._resumed is not None:
            self._count_visits()
        steps = self.run_chart(plan, frame, self._resumed, self._answer)
        forget = on_interrupt(self.interrupt)
        try:
            output = await (self.watch(steps) if self.watched else drive(steps))
        finally:
            forget()
            if self.engine is not None:
                await self.engine.close()
        if self.watched:
            self.check(plan.stages[-1], frame.track, "after")
        try:
            output = freeze(output, "result")
        except Exception as error:
            self.failed(error, plan.stages[-1], frame.track)
            raise
        if self.chart.output is not None or self.chart.output_schema is not None:
            self.given = self._checked_output(frame.track)
        return output

    def _checked_output(self, track: Track) -> Any:
        try:
            return check_output(self.chart, FrozenDict(self.state))
        except Exception as error:
            # No stage is to blame: the run ended after the last one that ran.
            ran = (self.log.codes[code] for code in reversed(track.codes))
            last = next(code.stage for code in ran if code.kind == "stage" and not code.stage.path)
            self.place = Where(error, last, track, "after")
            ended = self.log.number(Code("ended", last, "after"))
            track.add(ended, freeze(describe_error(error)))
            raise

    def _count_visits(self) -> None:
        from runbook_nb.chart.fanout import note_visit
        from runbook_nb.record.redact import Redactor
        from runbook_nb.record.walk import Walk

        walk = Walk(self.log, name="", structure=self.chart.structure, redactor=Redactor(None))
        for fan, index, prefix in walk.tracks():
            if not fan.notes.get(index):
                note_visit(self.visits, fan, index, prefix)

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
        resumable, structure = None, self._structure()
        if isinstance(error, InterruptSignal):
            from runbook_nb.record.checkpoint import Resumed, structure_digest

            resumable = Resumed(
                self.log,
                self.args,
                self.initial,
                error.place,
                tuple(sorted(self.undeclared)),
                structure_digest(self.chart.structure),
                structure if structure is not self.chart.structure else None,
                self.policy,
            )
        return Run(
            name=self.chart.name,
            status=status,
            args=self.args,
            initial=self.initial,
            log=self.log,
            raw_state=self.state,
            raw_result=output,
            raw_output=self.given,
            structure=structure,
            policy=self.policy,
            error=freeze(describe_error(error)) if error is not None and told else None,
            pause=question,
            ended_at=None if error is None else self._ended_at(error),
            resumable=resumable,
        )

    def _ended_at(self, error: BaseException) -> FrozenDict | None:
        where = self.place
        if where is None or where.error is not error:
            return None
        executed: int | None = None
        # A stage the run ended before was never executed, so that there is no id for it.
        for place, event in enumerate(self.log.events(where.track.codes)):
            if place == where.at:
                executed = None if event.code.kind == "ended" else event.execution
                break
        known = executed is not None and executed >= 0
        number = (executed or 0) + (where.base or 0)
        name = runtime_id(where.branches, where.ref.key, number) if known else None
        return FrozenDict(stage=where.ref.name, stage_id=where.ref.id, runtime_stage_id=name)

    def _structure(self) -> Any:
        if not self.templates and not self.undeclared and self._met is None:
            return self.chart.structure
        from runbook_nb.chart.templates import both_structures, structure_with

        met = structure_with(self.chart, self.templates, sorted(self.undeclared))
        return met if self._met is None else both_structures(self._met, met)

    # -- stages ----------------------------------------------------------------------------

    def run_chart(  # noqa: PLR0912, PLR0915 - the one loop that everything runs in, flat so that it is quick
        self, chart: ChartPlan, frame: Frame, place: Place | Begun | None = None, answer: Any = None
    ) -> Steps:
        """Run the stages of a chart, and of the charts mounted in it; give its value.

        With a place the run goes on there: the stage that asked gets the answer. With a branch that
        was begun it goes on where that stands.
        """
        level = Level(chart, frame)
        outer: list[Level] = []  # the charts around the present one, outermost first
        track, codes = frame.track, frame.track.codes
        if isinstance(place, Begun):
            place = level.stand(place)
        elif place is not None:
            level = reenter(self, level, outer, place, answer)
        try:
            while True:  # once for each chart that is entered or come back to
                plan, frame, done = level.plan, level.frame, None
                stages, last, loops = plan.stages, plan.last, plan.loops
                while True:
                    if place is None:
                        taken = stages[level.at]
                        if self.watched:
                            self.check(taken, track)
                        codes.append(taken.stage_code)
                        level.route = None
                    else:
                        taken, done = yield from self._go_on(level, place, answer)
                        place = None
                    form = taken.form
                    if form == DECIDES:
                        level.route, taken = yield from decide(self, taken, frame)
                        form = taken.form
                        if form == DECIDES:  # it was stopped
                            done = True, None
                    if done is not None:
                        (stopped, output), done = done, None
                    elif form == CALLS:
                        stopped, output = yield from self.call(taken, taken.fn, frame)
                    elif form == MOUNTS:
                        level.taken = taken
                        inner = yield from enter(self, taken, frame)
                        outer.append(level)
                        level = inner
                        break
                    else:
                        stopped, output = yield from self._perform(level, taken, frame)
                    level.taken = taken
                    if not stopped:
                        if loops:
                            if self._goes_on(level):
                                continue
                        elif level.at < last:
                            level.at += 1
                            continue
                    while outer:  # this chart has ended; so may those around it
                        inner, level = level, outer.pop()
                        stopped, output = yield from leave(
                            self, level.taken, (level.frame, inner.frame), output, stopped
                        )
                        if not stopped and self._goes_on(level):
                            break
                    else:
                        return output
                    break
        except BaseException as error:
            if isinstance(error, InterruptSignal):
                error.place = place_of([*outer, level], error)
            else:
                word = status_of(error)
                codes.extend(around.taken.code("leave", word) for around in reversed(outer))
            raise

    def _go_on(self, level: Level, place: Place | Begun, answer: Any) -> Steps:
        """Go on with a stage that waited; give its plan, and how it ended where it has."""
        taken, frame = level.taken, level.frame
        if isinstance(place, Begun):
            return taken, None
        if place.kind == "branches":
            return taken, (yield from go_on_branches(self, taken, frame, place.pending, answer))
        frame.track.add(taken.code("resume"), answer)
        frame.track.codes.append(taken.stage_code)
        if level.answering is None:
            return taken, None
        done = yield from self.call(taken, level.answering, frame)
        frame.answers = level.answering = None
        return taken, done

    def _perform(self, level: Level, plan: StagePlan, frame: Frame) -> Steps:
        """Run a stage that is no plain function; give whether it stopped the chart, its value."""
        stage, kind = plan.stage, plan.stage.__class__
        if kind is FanOutStage:
            return (yield from run_fan_out(self, plan, stage, frame))
        if kind is JudgeEachStage:
            from runbook_nb.chart.judged_rows import run_judge_each

            return (yield from run_judge_each(self, plan, stage, frame))
        if kind is ForkStage:
            return (yield from run_fork(self, plan, stage, frame))
        if kind is SelectorStage:
            chosen = yield from choose(self, plan, frame)
            frame.answers = None
            if chosen is None:
                return True, None
            return (yield from run_fork(self, plan, stage, frame, chosen))
        if kind is PausableStage:
            level.taken = plan
            return (yield from self._asked(level, plan, frame))
        return (yield from self.call(plan, plan.fn, frame))

    def _goes_on(self, level: Level) -> bool:
        """Move to the stage that comes next in a chart; say whether there is one."""
        target: str | None = level.taken.loop_to
        if target is None:
            level.at += 1
            if level.at < len(level.plan.stages):
                return True
            target = level.plan.loop_to
        if target is None:
            return False
        self._goes_back(level, target)
        return True

    def _goes_back(self, level: Level, target: str) -> None:
        loops = level.frame.loops
        if loops is None:
            loops = level.frame.loops = {}
        passes = loops.get(target, 0) + 1
        track = level.frame.track
        place = level.plan.places[target]
        if passes > self.limits.loops:
            error = LimitReached(
                f"chart {level.plan.chart.name!r} went back to stage {target!r} "
                f"{counted(self.limits.loops, 'time')}, which is the limit",
                code="loop_limit",
                where=target,
                fix="raise Limits(loops=…), or let a stage end the loop with scope.stop(…)",
            )
            self.end_between(error, level.plan.stages[place], track)
            raise error
        loops[target] = passes
        track.add(level.taken.code("loop", target), passes)
        level.at = place

    def _asked(self, level: Level, plan: StagePlan, frame: Frame) -> Steps:
        """Run a pausable stage up to its question, if it has one."""
        stopped, value = yield from self.call(plan, plan.fn, frame)
        if stopped or value is None:
            return stopped, value
        level.asks = True
        try:
            signal = question_of(value, plan)
        except Exception as error:
            self.failed(error, plan, frame.track)
            raise
        self.failed(signal, plan, frame.track)
        raise signal

    def call(self, plan: StagePlan, fn: Any, frame: Frame) -> Steps:
        """Run one function over a scope; give whether it stopped the chart, and its value.

        What it wrote before it asked a question is not kept, because it will run again.
        """
        scope: Scope | None = None
        start = len(frame.track.codes)
        begun = frame.begun
        try:
            if begun is not None:
                frame.begun, scope, start = None, begun.scope, begun.start
                value = yield from self.settled(plan, begun.outcome(), scope)
            elif plan.plain and self.untimed:
                scope = Scope(frame, plan)
                value = fn(scope)
                if value is not None or scope.stopped is not None:
                    value = yield from self.settled(plan, value, scope)
            elif plan.stage.retry is None:
                scope = self.scope(plan, frame)
                value = yield from self.once(plan, fn, scope)
            else:
                from runbook_nb.chart.retry import run_again

                scope, value = yield from run_again(self, plan, plan.stage.retry, fn, frame)
        except BaseException as error:
            told = error
            if scope is not None:
                told = self.leaving(error, plan, scope)
                scope.close()  # first of all: a thread may still be writing
                self.end_stream(scope, plan, frame.track, complete=False)
            if isinstance(told, InterruptSignal):
                undo(self.log, frame, plan.ref.path, start)
            self.failed(told, plan, frame.track)
            if told is error:
                raise
            raise told from told.__cause__ or error
        scope.close()
        if scope.answers is not None:
            frame.answers = None  # they were for this execution
        if scope.streaming is not None:
            self.end_stream(scope, plan, frame.track, complete=True)
        if scope.stopped is not None:
            reason: Any = scope.stopped
            frame.track.add(plan.code("stop"), reason[0])
            return True, value
        return False, value

    def scope(self, plan: StagePlan, frame: Frame) -> Scope:
        """Open the scope of one execution of a stage."""
        if plan.stage.blocking:
            from runbook_nb.chart.threads import ThreadScope

            scope: Scope = ThreadScope(frame, plan)
        else:
            scope = Scope(frame, plan)
        if isinstance(plan.stage, StreamingStage):
            from runbook_nb.chart.streaming import Stream

            scope.streaming = Stream(plan.stage.stream, self.on_stream)
        return scope

    def end_stream(self, scope: Scope, plan: StagePlan, track: Track, *, complete: bool) -> None:
        """Close the stream of a stage and put it on the record."""
        if scope.streaming is not None:
            track.add(plan.code("streamed"), freeze(scope.streaming.end(complete)))

    def once(self, plan: StagePlan, fn: Any, scope: Scope) -> Steps:
        """Run a stage's function once, under the limit of a stage."""
        limit = self.limits.stage_seconds
        started = 0.0 if limit is None else self.options.timer()
        try:
            value = self._in_thread(fn, scope) if plan.stage.blocking else fn(scope)
            value = yield from self.settled(plan, value, scope)
        except Exception as error:
            told = self.leaving(error, plan, scope)
            if told is error:
                raise
            raise told from told.__cause__ or error
        if limit is not None and self.options.timer() - started > limit:
            raise self.stage_overran(plan)
        return value

    def settled(self, plan: StagePlan, value: Any, scope: Scope) -> Steps:
        """Wait for what a function gave, where it is to be waited for; refuse what is no value."""
        if value is not None and is_awaitable(value):
            limit = self.limits.stage_seconds
            value = yield value if limit is None else self.within(plan, value, limit)
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
        return value

    def leaving(self, error: BaseException, plan: StagePlan, scope: Scope) -> BaseException:
        """Give what leaves a stage when its function raised."""
        stray = stray_stop(error)
        if stray is not None:  # it would read as the end of the engine's own steps
            told = ChartError(f"stage {plan.ref.name!r} raised StopIteration", where=plan.ref.id)
            told.__cause__ = stray
            return told
        if isinstance(error, Exception) and isinstance(scope.stopped, InterruptSignal):
            ending = ending_of(error)
            if ending is None or isinstance(ending, InterruptSignal):
                return scope.stopped
        return error

    def _in_thread(self, fn: Any, scope: Scope) -> Any:
        from runbook_nb.chart.threads import in_thread

        return in_thread(fn, scope)

    def failed(
        self, error: BaseException, plan: StagePlan, track: Track, ref: StageRef | None = None
    ) -> None:
        """Put an error that leaves a stage on the record, under the stage's ref or another."""
        ref = plan.ref if ref is None else ref
        if self.place is None or self.place.error is not error:
            self.place = Where(error, ref, track)
        question = _question(error)
        if question is not None:
            track.add(self.log.number(Code("pause", ref)), question)
            return
        described = describe_error(error)
        if not described["message"] and not isinstance(error, Exception):
            described["message"] = "the run was ended from outside"
        track.add(self.log.number(Code("error", ref)), freeze(described))

    def left_branch(self, error: BaseException, segment: str, base: int) -> None:
        """Note that an error leaves a branch: its place lies inside."""
        if self.place is not None and self.place.error is error:
            self.place.branches = segment + self.place.branches
            if self.place.base is None:
                self.place.base = base
