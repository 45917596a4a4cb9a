"""Fan-out: one branch chart per item, in bounded numbers, each on a track of its own.

Chart layer. Branches of plain functions run one after another in a plain loop that lets others
run now and then; as soon as one has something to await, at most ``max_concurrency`` workers share
the rest. Each branch is filed under its item's index, so the record does not depend on who
finished first. A branch that fails is a failed slot; what ends the whole run ends it here too,
and every item keeps a status that says what became of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._frozen import FrozenDict, freeze
from runbook_nb.chart.endings import Steps, drive, ending_of, why_not_reached
from runbook_nb.chart.model import MAX_NESTING, Chart, DeciderStage, FanOutStage, Stage, as_items
from runbook_nb.chart.plan import StagePlan, plan_chart
from runbook_nb.chart.scope import Frame, Scope
from runbook_nb.errors import ChartError, LimitReached
from runbook_nb.record.log import FAILED, NOT_REACHED, OK, FanOut, Track
from runbook_nb.record.slots import Slots

if TYPE_CHECKING:
    from runbook_nb.chart.executor import Execution

#: Branches of plain functions run between two pauses for others.
BREATH: Final = 256

_DONE: Final = object()


def run_fan_out(execution: Execution, plan: StagePlan, stage: FanOutStage, frame: Frame) -> Steps:
    """Run a fan-out stage; give (False, the slots)."""
    stopped, found = yield from execution.call(plan, stage.items, frame)
    if stopped:
        return True, None
    try:
        if frame.path.count("/") >= MAX_NESTING:
            raise LimitReached(
                f"fan-out {stage.name!r} lies inside {MAX_NESTING} others, which is the most",
                code="depth_limit",
                where=stage.id,
                fix="a factory that makes charts with the same factory inside never ends",
            )
        items = freeze(as_items(found, stage), "items")
        fan = FanOut(
            execution.log,
            plan.ref,
            items,
            cap=stage.max_branches,
            into=stage.into,
            subject=stage.subject,
            execution=execution.log.executions(frame.track.codes) - 1,
        )
        frame.track.add(plan.code("fan_out"), fan)
        yield from _Branches(execution, plan, stage, fan, f"{frame.path}{stage.id}").run()
        slots = Slots(fan)
        scope = Scope(frame, plan)
        scope[stage.into] = slots
        scope.close()
    except BaseException as error:
        execution.failed(error, plan, frame.track)
        raise
    return False, slots


class _Branches:
    """The branches of one execution of a fan-out."""

    def __init__(
        self, execution: Execution, plan: StagePlan, stage: FanOutStage, fan: FanOut, key: str
    ) -> None:
        self.execution = execution
        self.plan = plan
        self.stage = stage
        self.fan = fan
        self.key = key
        built = stage.branch if isinstance(stage.branch, Chart) else None
        self.plans = None if built is None else plan_chart(built, execution.log)

    def run(self) -> Steps:
        """Run every branch up to the cap."""
        count = min(len(self.fan), self.fan.cap)
        for index in range(count):
            branch = self.branch(index)
            awaitable = next(branch, _DONE)
            while awaitable is None:  # a fan-out inside lets others run; so does this one
                try:
                    yield None
                except BaseException as error:
                    awaitable = branch.throw(error)
                else:
                    awaitable = next(branch, _DONE)
            if awaitable is not _DONE:
                yield self.share(range(index + 1, count), branch, awaitable)
                return
            if index % BREATH == BREATH - 1:
                yield None

    async def share(self, indices: range, begun: Steps, awaitable: Any) -> None:
        """Run a branch that waits, and the rest, with a bounded number of workers."""
        import asyncio

        left = iter(indices)
        waiting = [(begun, awaitable)]
        failure: list[BaseException] = []

        async def work() -> None:
            try:
                while not failure:
                    if waiting:
                        await drive(*waiting.pop())
                        continue
                    index = next(left, None)
                    if index is None:
                        return
                    await drive(self.branch(index))
                    if index % BREATH == BREATH - 1:
                        await asyncio.sleep(0)
            except BaseException as error:
                # Raised here it would end this worker only; the first one ends the fan-out. A
                # keyboard interrupt in particular must not leave through the event loop.
                if not failure:
                    failure.append(error)
                    for other in workers:
                        if other is not asyncio.current_task():
                            other.cancel()

        size = min(self.stage.max_concurrency, 1 + len(indices))
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
            raise failure[0]

    def branch(self, index: int) -> Steps:
        """Run one branch and file it; only what ends the run, or fail-fast, leaves here."""
        execution, fan = self.execution, self.fan
        args = FrozenDict(item=fan.items[index], index=index)
        track = Track()
        try:
            plans = self.plans if self.plans is not None else self.plan_for(index, track)
            output = yield from execution.run_chart(plans, Frame(track, {}, args, f"{self.key}/"))
            if output is not None:
                self.keep(output, plans[-1], track)
        except BaseException as error:
            ending = ending_of(error)
            if ending is None:
                fan.close(index, track, FAILED)
            else:
                fan.close(index, track, NOT_REACHED, why_not_reached(ending))
            if self.stage.fail_fast or ending is not None:
                execution.left_branch(error, f"{self.stage.id}~{index}/")
                raise
            return
        fan.close(index, track, OK)

    def keep(self, output: Any, last: StagePlan, track: Track) -> None:
        """File what a branch gave."""
        try:
            output = freeze(output, "the branch's result")
        except Exception as error:
            self.execution.failed(error, last, track)
            raise
        track.add(self.plan.code("result"), output)

    def plan_for(self, index: int, track: Track) -> Sequence[StagePlan]:
        """Have the factory make the chart of one item."""
        try:
            chart = self.stage.branch(self.fan.items[index], index)  # type: ignore[operator]
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
            self.execution.failed(error, self.plan, track)
            raise
        layouts = self.execution.templates.setdefault(self.key, {})
        layouts.setdefault(layout_of(chart), chart)
        return plan_chart(chart, self.execution.log)


def layout_of(chart: Chart) -> tuple[Any, ...]:
    """Give what makes two charts the same layout: their stages' ids, names and kinds, in order."""
    return tuple(map(_layout, chart.stages))


def _layout(stage: Stage) -> tuple[Any, ...]:
    inner: Any = ()
    if isinstance(stage, DeciderStage):
        inner = tuple((b.route, b.id, b.name) for b in stage.branches)
    elif isinstance(stage, FanOutStage) and isinstance(stage.branch, Chart):
        inner = layout_of(stage.branch)
    return (type(stage).__name__, stage.id, stage.name, inner)
