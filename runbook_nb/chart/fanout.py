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
from runbook_nb.chart.model import Chart, FanOutStage, as_items
from runbook_nb.chart.plan import StagePlan, plan_chart
from runbook_nb.chart.scope import Frame, InterruptSignal, Scope
from runbook_nb.errors import ChartError, LimitReached, RunCancelled, describe_error
from runbook_nb.record.log import FAILED, NOT_REACHED, OK, FanOut, Track
from runbook_nb.record.slots import Slots

if TYPE_CHECKING:
    from runbook_nb.chart.executor import Execution, Steps

#: Branches of plain functions run between two pauses for others.
BREATH: Final = 256


def run_fan_out(execution: Execution, plan: StagePlan, stage: FanOutStage, frame: Frame) -> Steps:
    """Run a fan-out stage; give (False, the slots)."""
    stopped, found = yield from execution.call(plan, stage.items, frame)
    if stopped:
        return True, None
    try:
        items = freeze(as_items(found, stage), "items")
        fan = FanOut(
            execution.log,
            plan.ref,
            items,
            cap=stage.max_branches,
            into=stage.into,
            subject=stage.subject,
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
            try:
                awaitable = next(branch)
            except StopIteration:
                if index % BREATH == BREATH - 1:
                    yield None
                continue
            yield self.share(range(index + 1, count), branch, awaitable)
            return

    async def share(self, indices: range, begun: Steps, awaitable: Any) -> None:
        """Run a branch that waits, and the rest, with a bounded number of workers."""
        import asyncio

        from runbook_nb.chart.executor import drive

        rest = iter(indices)
        failure: list[BaseException] = []

        async def work(first: Steps | None = None) -> None:
            try:
                if first is not None:
                    await drive(first, awaitable)
                for index in rest:
                    if failure:
                        return
                    await drive(self.branch(index))
            except BaseException as error:
                # Raised here it would end this worker only; the first one ends the fan-out. A
                # keyboard interrupt in particular must not leave through the event loop.
                if not failure:
                    failure.append(error)
                    for other in workers:
                        if other is not asyncio.current_task():
                            other.cancel()

        size = min(self.stage.max_concurrency, 1 + len(indices))
        workers = [asyncio.ensure_future(work(begun))]
        workers += [asyncio.ensure_future(work()) for _ in range(size - 1)]
        try:
            await asyncio.wait(workers)
        except asyncio.CancelledError:
            for worker in workers:
                worker.cancel()
            await asyncio.wait(workers)
            raise
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
                track.add(self.plan.code("result"), freeze(output, "the branch's result"))
        except BaseException as error:
            from runbook_nb.chart.executor import ends_run

            fan.close(index, track, *_status_of(error))
            if self.stage.fail_fast or ends_run(error):
                raise
            return
        fan.close(index, track, OK)

    def plan_for(self, index: int, track: Track) -> Sequence[StagePlan]:
        """Have the factory make the chart of one item."""
        try:
            chart = self.stage.branch(self.fan.items[index], index)  # type: ignore[operator]
            if not isinstance(chart, Chart):
                raise ChartError(
                    f"branch of fan-out {self.stage.name!r} gave {type(chart).__name__}, "
                    "not a built chart",
                    where=self.stage.id,
                    code="bad_branch",
                    fix="return flow_chart(…)…build()",
                )
        except BaseException as error:
            track.add(self.plan.code("error"), freeze(describe_error(error)))
            raise
        layouts = self.execution.templates.setdefault(self.key, {})
        layouts.setdefault(layout_of(chart), chart)
        return plan_chart(chart, self.execution.log)


def _status_of(error: BaseException) -> tuple[int, str | None]:
    """Say what a branch is when this error leaves it: reached and failed, or not reached."""
    from asyncio import CancelledError

    if isinstance(error, CancelledError | GeneratorExit | RunCancelled):
        return NOT_REACHED, "the run was stopped while it ran"
    if isinstance(error, LimitReached):
        return NOT_REACHED, "a limit ended the run while it ran"
    if isinstance(error, InterruptSignal):
        return NOT_REACHED, "the run paused while it ran"
    return FAILED, None


def layout_of(chart: Chart) -> tuple[Any, ...]:
    """Give what makes two charts the same layout: their stages' ids, names and kinds, in order."""
    return tuple(
        (
            type(stage).__name__,
            stage.id,
            stage.name,
            tuple((b.route, b.id, b.name) for b in getattr(stage, "branches", ())),
        )
        for stage in chart.stages
    )
