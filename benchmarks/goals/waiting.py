"""Branches that wait: goals 22 and 23."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import ours
import task
from goal import Figure, Plan, goal
from measure import median

import runbook_nb as rb

BOUND = 50


class Waiting:
    """A stage that waits, and how many of them waited at once."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.now, self.most = seconds, 0, 0

    async def __call__(self, scope: Any) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(self.seconds)
        self.now -= 1
        scope.update(scope.args["item"])


async def by_hand(rows: task.Rows, seconds: float) -> None:
    """Wait for every row with as many workers as the bound allows: the floor of asyncio."""
    left = iter(rows)

    async def worker() -> None:
        for _ in left:
            await asyncio.sleep(seconds)

    await asyncio.gather(*(worker() for _ in range(BOUND)))


async def _timed(work: Any) -> float:
    loop = asyncio.get_running_loop()
    start = loop.time()
    await work
    return loop.time() - start


@goal(22, "1,000 subjects that wait 5 ms, 50 at a time", "ideal: 0.100 s")
def waiting(plan: Plan) -> Iterator[Figure]:
    n = plan.size(1_000)
    rows = task.rows_of(n)
    for seconds, rounds in ((0.005, 15), (0.05, 5)):
        stage = Waiting(seconds)
        chart = ours.chart_loading(rows, stage, max_concurrency=BOUND)
        asyncio.run(chart.run())
        ideal = n / BOUND * seconds
        ours_times, hand_times = [], []
        for _ in range(plan.rounds(rounds)):
            ours_times.append(asyncio.run(_timed(chart.run())))
            hand_times.append(asyncio.run(_timed(by_hand(rows, seconds))))
        gated = (0.80, 0.90) if seconds == 0.005 else (None, None)
        share = ideal / median(ours_times)
        name = f"{seconds * 1e3:.0f} ms"
        yield Figure(f"share of the ideal, {name}", share, "of 1", *gated, at_least=True)
        yield Figure(f"50 workers by hand, {name}", ideal / median(hand_times), "of 1")
        yield Figure(f"most at once, {name}", stage.most, "branches", BOUND, BOUND)


def tasks_of(chart: rb.Chart) -> int:
    """Count the tasks a run makes, the one it runs in not counted."""
    made = 0

    async def main() -> None:
        nonlocal made
        loop = asyncio.get_running_loop()

        def factory(loop: Any, coroutine: Any, **options: Any) -> Any:
            nonlocal made
            made += 1
            return asyncio.Task(coroutine, loop=loop, **options)

        loop.set_task_factory(factory)
        await chart.run()
        loop.set_task_factory(None)

    asyncio.run(main())
    return made


@goal(23, "asyncio tasks: none for sync stages, at most the bound for async ones")
def tasks(plan: Plan) -> Iterator[Figure]:
    rows = task.rows_of(1_000)
    sync = ours.row_wise_chart(rows)
    yield Figure("sync stages, 1,000 subjects", tasks_of(sync), "tasks", 0, 0)
    waiting = ours.chart_loading(rows, Waiting(0), max_concurrency=BOUND)
    yield Figure("async stages, 1,000 subjects", tasks_of(waiting), "tasks", BOUND, BOUND)
