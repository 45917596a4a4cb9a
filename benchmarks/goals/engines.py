"""Branches that compute, on two workers: goal 29."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import ours
import task
from goal import Figure, NotMeasured, Plan, goal
from measure import interleaved, median, ratio

SECONDS = 0.005
SUBJECTS = 400


def computing(scope: Any) -> None:
    """Take the row, and compute for 5 ms."""
    from time import perf_counter as clock

    until = clock() + 0.005
    total = 0
    while clock() < until:
        total += 1
    scope.update(scope.args["item"])


@goal(29, "Dask, 2 worker processes, branches that compute for 5 ms", "the same in place")
def on_dask(plan: Plan) -> Iterator[Figure]:
    try:
        from distributed import Client, LocalCluster
    except ImportError as missing:
        raise NotMeasured("distributed is not installed") from missing
    rows = task.rows_of(100 if plan.quick else SUBJECTS)
    chart = ours.chart_loading(rows, computing, max_concurrency=64)
    warnings.simplefilter("ignore")
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        start = perf_counter()
        there = chart.run_sync(engine=client)
        first = perf_counter() - start
        here = chart.run_sync()
        if here.walk.to_dicts() != there.walk.to_dicts():
            raise AssertionError("the walk from the cluster is another one")
        times = interleaved(
            {
                "dask": lambda: chart.run_sync(engine=client),
                "processes": lambda: chart.run_sync(engine="processes"),
                "inline": chart.run_sync,
            },
            plan.rounds(5),
        )
    speed = ratio(times, "inline", "dask")
    yield Figure("times as fast", speed, "x", 1.6, 1.8, at_least=True)
    yield Figure("engine='processes', times as fast", ratio(times, "inline", "processes"))
    yield Figure("in place", median(times["inline"]), "s")
    yield Figure("the first run on the cluster", first, "s")
