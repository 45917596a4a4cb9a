"""Work side by side: the branches of fan-outs, forks and selectors, each on a track of its own.

Chart layer. Branches of plain functions run one after another in a plain loop that lets others
run now and then; as soon as one has something to await, at most ``max_concurrency`` workers share
the rest. Each branch is filed under its item's index, so the record does not depend on who
finished first. A branch that fails is a failed slot; what ends the whole run ends it here too,
and every item keeps a status that says what became of it. A branch that asks a question waits
while the others go on; when they have ended the run asks what the first of those that wait asks.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._frozen import FrozenDict, freeze
from runbook_nb._rows import frozen_rows
from runbook_nb._sync import loop_at_hand
from runbook_nb._text import MISSING
from runbook_nb.chart.endings import PAUSED_NOTE, Steps, drive, ending_of, why_not_reached
from runbook_nb.chart.model import (
    MAX_NESTING,
    Chart,
    FanOutStage,
    ForkStage,
    JudgeEachStage,
    Stage,
    branches_of,
    inner_chart,
)
from runbook_nb.chart.plan import ChartPlan, StagePlan, plan_alone, plan_chart
from runbook_nb.chart.resume import misplaced
from runbook_nb.chart.scope import Frame, InterruptSignal, Scope
from runbook_nb.chart.straight import Begun, Straight, straight_through
from runbook_nb.errors import ChartError, LimitReached
from runbook_nb.record.log import FAILED, NOT_REACHED, OK, FanOut, Track
from runbook_nb.record.shapes import facts_of, replayed, state_after
from runbook_nb.record.slots import Slots

if TYPE_CHECKING:
    from runbook_nb.chart.executor import Execution
    from runbook_nb.record.pauses import Place

#: Branches of plain functions run between two pauses for others.
BREATH: Final = 256

_DONE: Final = object()


def run_fan_out(execution: Execution, plan: StagePlan, stage: FanOutStage, frame: Frame) -> Steps:
    """Run a fan-out stage; give (False, the slots)."""
    stopped, found = yield from execution.call(plan, stage.items, frame)
    frame.answers = None
    if stopped:
        return True, None
    try:
        fan = _fan_of(
            execution,
            plan,
            frame,
            frozen_rows(as_items(found, stage)),
            cap=stage.max_branches,
            into=stage.into,
            subject=stage.subject,
        )
        yield from FanOutBranches(execution, plan, fan, frame).run()
    except BaseException as error:
        _failed(execution, error, plan, frame)
        raise
    return _collected(execution, plan, frame, fan)


def run_fork(
    execution: Execution,
    plan: StagePlan,
    stage: ForkStage,
    frame: Frame,
    chosen: Sequence[str] | None = None,
) -> Steps:
    """Run the branches of a fork, or those a selector chose; give (stopped, the slots)."""
    routes = list(plan.branches) if chosen is None else list(chosen)
    try:
        fan = _fan_of(
            execution,
            plan,
            frame,
            freeze(routes, "branches"),
            cap=max(len(routes), 1),
            into=stage.into,
            form="fork" if chosen is None else "selection",
        )
        yield from _Children(execution, plan, fan, frame).run()
    except BaseException as error:
        _failed(execution, error, plan, frame)
        raise
    return (yield from _merged(execution, plan, stage, frame, fan))


def go_on_branches(
    execution: Execution,
    plan: StagePlan,
    frame: Frame,
    pending: Mapping[int, Place],
    answer: Any,
) -> Steps:
    """Go on with the branches that paused: the first of them gets the answer."""
    stage: Any = plan.stage
    fan = _last_fan(execution, plan, frame)
    if any(not 0 <= index < len(fan) or fan.shape(index) is None for index in pending):
        raise misplaced(f"the checkpoint names branches of {plan.ref.name!r} that never began")
    waiting = {index for index, note in fan.notes.items() if note == PAUSED_NOTE}
    if waiting != set(pending):
        raise misplaced(
            f"the checkpoint leaves out branches of {plan.ref.name!r} that wait, or names others"
        )
    branches: _Branches
    if isinstance(stage, FanOutStage):
        branches = FanOutBranches(execution, plan, fan, frame)
    else:
        branches = _Children(execution, plan, fan, frame)
    try:
        yield from branches.go_on(pending, answer)
    except BaseException as error:
        _failed(execution, error, plan, frame)
        raise
    if isinstance(stage, FanOutStage):
        return _collected(execution, plan, frame, fan)
    return (yield from _merged(execution, plan, stage, frame, fan))


def _last_fan(execution: Execution, plan: StagePlan, frame: Frame) -> FanOut:
    found: FanOut | None = None
    for event in execution.log.events(frame.track.codes):
        if event.code.kind == "fan_out" and event.code.stage == plan.ref:
            found = frame.track.values[event.at]
    if found is None:
        raise misplaced(
            f"the checkpoint says that {plan.ref.name!r} waits for branches, and it has none"
        )
    return found


def _fan_of(
    execution: Execution,
    plan: StagePlan,
    frame: Frame,
    items: Sequence[Any],
    made: type[FanOut] = FanOut,
    **facts: Any,
) -> Any:
    if frame.nested >= MAX_NESTING:
        raise LimitReached(
            f"{plan.ref.kind.replace('_', '-')} {plan.ref.name!r} lies inside {MAX_NESTING} "
            "others, which is the most",
            code="depth_limit",
            where=plan.ref.id,
            fix="a factory that makes charts with the same factory inside never ends",
        )
    track = frame.track
    base = 0 if frame.around is None else frame.around[1].base(frame.around[2])
    fan = made(
        execution.log,
        plan.ref,
        items,
        execution=base + execution.log.executed(track) - 1,
        **facts,
    )
    if frame.looping:
        fan.bases = _bases(execution.visits, fan, frame.prefix)
    track.add(plan.code("fan_out"), fan)
    return fan


def _visited(fan: FanOut, index: int) -> Any:
    return index if fan.is_fan_out else fan.items[index]


def _bases(visits: dict[str, dict[Any, int]], fan: FanOut, prefix: str) -> array[int] | None:
    known = visits.get(f"{prefix}{fan.stage.key}")
    if known is None:
        return None
    return array("q", (known.get(_visited(fan, index), 0) for index in range(len(fan))))


def note_visit(visits: dict[str, dict[Any, int]], fan: FanOut, index: int, prefix: str) -> None:
    """Note where the next visit of a branch goes on counting its executions."""
    shape = fan.shape(index)
    if shape is not None:
        known = visits.setdefault(f"{prefix}{fan.stage.key}", {})
        executed = facts_of(fan.log, shape).executions
        known[_visited(fan, index)] = fan.base(index) + executed


def _failed(execution: Execution, error: BaseException, plan: StagePlan, frame: Frame) -> None:
    # Branches that wait said so themselves; the stage around them has not ended.
    if not isinstance(error, InterruptSignal):
        execution.failed(error, plan, frame.track)


def _collected(execution: Execution, plan: StagePlan, frame: Frame, fan: FanOut) -> Any:
    slots = Slots(fan)
    try:
        if fan.into is not None:
            scope = Scope(frame, plan)
            scope[fan.into] = slots
            scope.close()
    except BaseException as error:
        execution.failed(error, plan, frame.track)
        raise
    return False, slots


def _merged(
    execution: Execution, plan: StagePlan, stage: ForkStage, frame: Frame, fan: FanOut
) -> Steps:
    _, slots = _collected(execution, plan, frame, fan)
    if stage.merge is None:
        return False, slots
    try:
        if callable(stage.merge):
            scope = execution.scope(plan, frame)
            try:
                yield from execution.once(plan, lambda scope: stage.merge(scope, slots), scope)
            except InterruptSignal as error:
                raise ChartError(
                    f"the merge function of {plan.ref.name!r} asked a question",
                    where=plan.ref.id,
                    code="question_in_merge",
                    fix="ask in a stage of its own, after the fork",
                ) from error
            finally:
                scope.close()
            if scope.stopped is not None:
                reason: Any = scope.stopped
                frame.track.add(plan.code("stop"), reason[0])
                return True, slots
        else:
            _merge_keys(plan, frame, fan)
    except BaseException as error:
        execution.failed(error, plan, frame.track)
        raise
    return False, slots


def _merge_keys(plan: StagePlan, frame: Frame, fan: FanOut) -> None:
    writers: dict[str, Any] = {} if fan.into is None else {fan.into: "into"}
    written: dict[str, Any] = {}
    for index, shape in fan.begun():
        if fan.status_number(index) != OK:
            continue
        facts = facts_of(fan.log, shape)
        state = state_after(facts, *fan.part(index))
        touched = {event.code.key for event in facts.changes}
        gone = [key for key in frame.state if key in touched and key not in state]
        for key, value in [*state.items(), *((key, MISSING) for key in gone)]:
            if value is MISSING and written.get(key, state) is MISSING:
                continue  # two branches may take away one key
            if key in writers:
                raise ChartError(
                    f"branches {writers[key]!r} and {fan.items[index]!r} of {plan.ref.name!r} "
                    f"both changed {key!r}"
                    if writers[key] != "into"
                    else f"branch {fan.items[index]!r} of {plan.ref.name!r} wrote {key!r}, where "
                    "its slots go",
                    where=plan.ref.id,
                    code="merge_conflict",
                    fix="let them write different keys, or give merge=function(scope, slots)",
                )
            writers[key] = fan.items[index]
            written[key] = value
    scope = Scope(frame, plan)
    for key, value in written.items():
        if value is MISSING:
            scope.delete(key)
        else:
            scope[key] = value
    scope.close()


class _Branches:
    """The branches of one execution of a fan-out, a fork or a selector."""

    #: What a branch is told of as its index, less where it stands here: a part begins later.
    first = 0

    def __init__(
        self,
        execution: Execution,
        plan: StagePlan,
        fan: FanOut,
        frame: Frame,
    ) -> None:
        self.execution = execution
        self.plan = plan
        self.fan = fan
        self.frame = frame
        self.max_concurrency: int = plan.stage.max_concurrency
        self.fail_fast: bool = plan.stage.fail_fast
        #: Branches that wait for an answer: index -> their question, and where it was asked.
        self.waiting: dict[int, tuple[InterruptSignal, Any]] = {}
        self.looping = frame.looping
        #: What all branches run, where they all run the same.
        self.chart: ChartPlan | None = None

    def chart_for(self, index: int, track: Track) -> ChartPlan:
        """Give the chart of one branch, where each has its own."""
        raise NotImplementedError

    def frame_for(self, index: int, track: Track, plan: ChartPlan) -> Frame:
        """Give the frame of one branch, as it begins."""
        raise NotImplementedError

    def straight(self) -> Straight | None:
        """Give what runs branches straight through, where that can be."""
        return None

    def run(self) -> Steps:
        """Run every branch up to the cap; then ask what the first of them asks, if any does."""
        count = min(len(self.fan), self.fan.cap)
        straight, index = self.straight(), 0
        while index < count:
            begun = None
            if straight is not None:
                index, begun = straight.run(index, min(count, index - index % BREATH + BREATH))
                if begun is None:
                    if index % BREATH == 0:
                        yield None
                    continue
            branch = self.branch(index, begun)
            awaitable = next(branch, _DONE)
            # A fan-out inside lets others run, or waits for its workers: so does this one.
            while awaitable is not _DONE and (awaitable is None or hasattr(awaitable, "in_turn")):
                raised: BaseException | None = None
                try:
                    yield awaitable
                except BaseException as error:
                    raised = error
                try:  # outside of the handler: what the branch raises has no other error behind it
                    awaitable = next(branch) if raised is None else branch.throw(raised)
                except StopIteration:
                    awaitable = _DONE
            if awaitable is not _DONE:
                yield self.share(range(index + 1, count), branch, awaitable)
                break
            index += 1
            if index % BREATH == 0:
                yield None
        self.ask()

    def go_on(self, pending: Mapping[int, Place], answer: Any) -> Steps:
        """Go on with the first of the branches that wait."""
        first = min(pending)
        for index, place in pending.items():
            if index != first:
                asked = place.question
                signal = InterruptSignal(asked["reason"], asked["expects"], asked["data"])
                signal.place = place
                self.waiting[index] = (signal, None)
        yield from self.branch(first, pending[first], answer)
        self.ask()

    def ask(self) -> None:
        """End in the question of the first branch that waits; the places of all go with it."""
        if not self.waiting:
            return
        first = min(self.waiting)
        question, where = self.waiting[first]
        signal = InterruptSignal(question.reason, question.expects, question.data)
        signal.pending = {i: self.waiting[i][0].place for i in sorted(self.waiting)}
        if where is not None:
            where.error = signal
            self.execution.place = where
        raise signal

    async def share(self, indices: range, begun: Steps, awaitable: Any) -> None:
        """Run a branch that waits, and the rest, with a bounded number of workers."""
        await loop_at_hand()
        import asyncio

        left = iter(indices)
        waiting = [(begun, awaitable)]
        failure: list[tuple[BaseException, Any]] = []

        async def work() -> None:
            task = asyncio.current_task()
            try:
                while not failure:
                    if waiting:
                        await drive(*waiting.pop(), task)
                        continue
                    index = next(left, None)
                    if index is None:
                        return
                    await drive(self.branch(index), task=task)
                    if index % BREATH == BREATH - 1:
                        await asyncio.sleep(0)
            except BaseException as error:
                # Raised here it would end this worker only; the first one ends the fan-out. A
                # keyboard interrupt in particular must not leave through the event loop.
                if not failure:
                    failure.append((error, self.execution.place))
                    for other in workers:
                        if other is not task:
                            other.cancel()

        size = min(self.max_concurrency, 1 + len(indices))
        workers = [asyncio.ensure_future(work()) for _ in range(size)]
        cancelled: asyncio.CancelledError | None = None
        while True:
            try:
                await asyncio.wait(workers)
                break
            except asyncio.CancelledError as error:  # leave nobody working behind
                cancelled = error
                for worker in workers:
                    worker.cancel()
        for branch, unawaited in waiting:  # no worker came to begin
            branch.close()
            getattr(unawaited, "close", lambda: None)()
        if cancelled is not None:
            raise cancelled
        if failure:
            first, place = failure[0]
            self.execution.place = place  # those that were ended with it had places of their own
            raise first

    def branch(self, index: int, place: Place | Begun | None = None, answer: Any = None) -> Steps:
        """Run one branch and file it; only what ends the run, or fail-fast, leaves here."""
        execution, fan = self.execution, self.fan
        begun = place if isinstance(place, Begun) else None
        if begun is not None:
            track = begun.frame.track
        else:
            track = Track() if place is None else fan.reopen(index)
        try:
            plan = self.chart or self.chart_for(index, track)
            frame = self.frame_for(index, track, plan) if begun is None else begun.frame
            if place is not None and begun is None:
                state, _ = replayed(
                    fan.log, track.codes, track.values, plan.stages[0].ref.path, frame.base
                )
                frame.state.clear()
                frame.state.update(state)
            output = yield from execution.run_chart(plan, frame, place, answer)
            if output is not None:
                self.keep(output, plan.stages[-1], track)
        except BaseException as error:
            ending = ending_of(error)
            if ending is None:
                self.close(index, track, FAILED)
            else:
                self.close(index, track, NOT_REACHED, why_not_reached(ending))
            if isinstance(error, InterruptSignal):
                self.left(error, index)
                self.waiting[index] = (error, execution.place)
                return
            if self.fail_fast or ending is not None:
                self.left(error, index)
                raise
            return
        if self.looping:
            self.close(index, track, OK)
        else:
            fan.close(index, track, OK)

    def left(self, error: BaseException, index: int) -> None:
        """Note that an error leaves a branch."""
        self.execution.left_branch(error, self.fan.path("", index), self.fan.base(index))

    def close(self, index: int, track: Track, status: int, note: str | None = None) -> None:
        """File a branch that ended."""
        self.fan.close(index, track, status, note)
        if self.looping:
            self.visited(index)

    def visited(self, index: int) -> None:
        """Note that a branch ended, where the chart may go back and run it again."""
        note_visit(self.execution.visits, self.fan, index, self.frame.prefix)

    def keep(self, output: Any, last: StagePlan, track: Track) -> None:
        """File what a branch gave."""
        try:
            output = freeze(output, "the branch's result")
        except Exception as error:
            self.execution.failed(error, last, track)
            raise
        track.add(self.plan.code("result"), output)


class FanOutBranches(_Branches):
    """The branches of a fan-out: each item runs through a chart in a state of its own."""

    def __init__(self, execution: Execution, plan: StagePlan, fan: FanOut, frame: Frame) -> None:
        stage: FanOutStage = plan.stage
        super().__init__(execution, plan, fan, frame)
        self.stage = stage
        self.key = f"{frame.path}{stage.id}"
        self.path = f"{self.key}/"
        built = stage.branch if isinstance(stage.branch, Chart) else None
        self.chart = None if built is None else plan_chart(built, execution.log)

    def run(self) -> Steps:
        """Run every branch up to the cap, on the workers of the run's engine where it has one."""
        engine = self.execution.engine
        if engine is None or isinstance(self.stage, JudgeEachStage):
            yield from super().run()
            return
        from runbook_nb.chart.spreading import Spread

        yield Spread(self, engine)
        self.ask()

    def straight(self) -> Straight | None:
        """Give what runs branches straight through, if they begin that way."""
        return straight_through(self)

    def frame_for(self, index: int, track: Track, plan: ChartPlan) -> Frame:
        """Begin in an empty state, with the item as the input."""
        args = FrozenDict(item=self.fan.items[index], index=self.first + index)
        frame = Frame(track, {}, args, self.path, (self.frame, self.fan, index))
        frame.loopy = plan.loops
        return frame

    def chart_for(self, index: int, track: Track) -> ChartPlan:
        """Have the factory make the chart of one item."""
        try:
            place = self.first + index
            chart = self.stage.branch(self.fan.items[index], place)  # type: ignore[operator]
            if not isinstance(chart, Chart):
                if hasattr(chart, "__await__") and hasattr(chart, "close"):
                    chart.close()  # else it warns that nobody awaited it
                raise ChartError(
                    f"branch of fan-out {self.stage.name!r} gave {type(chart).__name__}, "
                    "not a built chart",
                    where=self.stage.id,
                    code="bad_branch",
                    fix="return flow_chart(…)…build() from a plain function",
                )
        except BaseException as error:
            # The track of a branch knows nothing of the mounts around the fan-out.
            self.execution.failed(error, self.plan, track, self.plan.ref._replace(path=""))
            raise
        layouts = self.execution.templates.setdefault(self.key, {})
        layouts.setdefault(layout_of(chart), chart)
        return plan_chart(chart, self.execution.log)


class _Children(_Branches):
    """The children of a fork: each is a stage on a view of its own of the parent's state."""

    def chart_for(self, index: int, track: Track) -> ChartPlan:
        return plan_alone(self.plan.branches[self.fan.items[index]])

    def frame_for(self, index: int, track: Track, plan: ChartPlan) -> Frame:
        around = self.frame
        around.growing.clear()
        base = dict(around.state)
        frame = Frame(track, dict(base), around.args, around.path, (around, self.fan, index))
        frame.base, frame.inherited = base, set(base)
        return frame


def layout_of(chart: Chart) -> tuple[Any, ...]:
    """Give what makes two charts the same layout: their stages' ids, names and kinds, in order."""
    return (*map(_layout, chart.stages), chart.loop_to)


def _layout(stage: Stage) -> tuple[Any, ...]:
    inner = inner_chart(stage)
    return (
        type(stage).__name__,
        stage.id,
        stage.name,
        tuple((b.route, b.loop_to, _layout(b.stage)) for b in branches_of(stage)),
        () if inner is None else layout_of(inner),
    )


def as_items(found: Any, stage: Stage) -> Sequence[Any]:
    """Read what a fan-out's ``items`` gave: a list, a tuple or slots; None is no item.

    Raises
    ------
    ChartError
        Anything else, naming the stage.
    """
    from runbook_nb.record.slots import Slots

    if found is None:
        return ()
    if isinstance(found, list | tuple | Slots):
        return found
    raise ChartError(
        f"items of fan-out {stage.name!r} gave {type(found).__name__}, not a list",
        where=stage.id,
        code="bad_items",
        fix="return a list of items; a DataFrame goes in as frame.to_dict('records')",
    )
