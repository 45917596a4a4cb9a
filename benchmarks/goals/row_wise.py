"""A chart per subject, row by row, with its whole walk: goals 1 to 6 and 21."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import ours
import task
from goal import Figure, Plan, goal
from measure import Times, calls_of, each, growth, interleaved, median, ratio, slope_ratio

MORE = 8  # stages or conditions between the two charts whose difference is one of them


def _seen_to_be_right(n: int = 300) -> Iterator[Figure]:
    rows = task.rows_of(n)
    chart = ours.row_wise_chart(rows)
    ours.verify(rows, ours.caller(chart)())
    facts = ours.same_facts(chart.run_sync(), rows)
    yield Figure(f"facts equal to the walk by hand, {n} subjects", facts, "facts")


def _without_collector(rows: task.Rows) -> None:
    gc.disable()
    try:
        task.written_walk(rows)
    finally:
        gc.enable()


def _compared(plan: Plan, n: int, rounds: int, *, off: bool = False) -> dict[str, list[float]]:
    rows = task.rows_of(n)
    chart = ours.row_wise_chart(rows)
    work = {
        "bare loop": lambda: task.bare_loop(rows),
        "bare + evidence": lambda: task.with_evidence(rows),
        "written walk": lambda: task.written_walk(rows),
        "written walk, flat": lambda: task.written_walk(rows, flat=True),
        "row-wise": ours.answers(chart),
        "row-wise, chart alone": chart.run_sync,
    }
    if off:
        work["written walk, collector off"] = lambda: _without_collector(rows)
    times = interleaved(work, rounds)
    for name in work:
        plan.note(name, n, each(times[name], n))
    return times


def _told(times: Times, n: int) -> Iterator[Figure]:
    """Tell what holds nothing to a gate: the chart alone, the flat walk by hand, microseconds."""
    yield Figure("chart alone", ratio(times, "row-wise, chart alone", "written walk"))
    flat = ratio(times, "row-wise", "written walk, flat")
    yield Figure("to the envelope, of the walk by hand in flat rows", flat)
    yield Figure("to the envelope", each(times["row-wise"], n), "us/subject")
    yield Figure("walk by hand", each(times["written walk"], n), "us/subject")
    yield Figure("walk by hand in flat rows", each(times["written walk, flat"], n), "us/subject")


@goal(1, "row-wise chart, N = 1,000: full walk and evidence", "walk written by hand")
def row_wise_thousand(plan: Plan) -> Iterator[Figure]:
    yield from _seen_to_be_right()
    n = 1_000
    rows = task.rows_of(n)
    chart = ours.row_wise_chart(rows)
    chart.run_sync()
    yield Figure("calls per subject", calls_of(chart.run_sync) / n, "calls", 150, 60)
    times = _compared(plan, n, plan.rounds(15))
    yield Figure("to the envelope", ratio(times, "row-wise", "written walk"), "x", 2.5, 0.6)
    yield from _told(times, n)


@goal(2, "row-wise chart, N = 100,000", "walk written by hand, collector on / off")
def row_wise_hundred_thousand(plan: Plan) -> Iterator[Figure]:
    n = plan.size(100_000)
    times = _compared(plan, n, plan.rounds(5), off=True)
    yield Figure("to the envelope", ratio(times, "row-wise", "written walk"), "x", 0.6, 0.12)
    off = "written walk, collector off"
    yield Figure("to the envelope, collector off", ratio(times, "row-wise", off), "x", 2, 0.4)
    yield from _told(times, n)


@goal(3, "row-wise chart, N = 10,000", "bare loop and evidence tuples")
def row_wise_ten_thousand(plan: Plan) -> Iterator[Figure]:
    n = plan.size(10_000)
    times = _compared(plan, n, plan.rounds(15))
    yield Figure("to the envelope", ratio(times, "row-wise", "bare + evidence"), "x", 25, 5)
    yield Figure("chart alone", ratio(times, "row-wise, chart alone", "bare + evidence"))


def _slope(plan: Plan, what: str) -> tuple[float, float]:
    n = plan.size(1_000)
    rows = task.rows_of(n)
    more = {what: MORE}
    work = {
        "more": ours.row_wise_chart(rows, collecting=False, **more).run_sync,
        "less": ours.row_wise_chart(rows, collecting=False).run_sync,
        "hand, more": lambda: task.written_walk(rows, **more),
        "hand, less": lambda: task.written_walk(rows),
    }
    times = interleaved(work, plan.rounds(15))
    cost = (median(times["more"]) - median(times["less"])) / n / MORE * 1e6
    return slope_ratio(times, "more", "less", "hand, more", "hand, less"), cost


@goal(4, "one more recorded stage (1 read, 1 write)", "the stage written by hand")
def one_more_stage(plan: Plan) -> Iterator[Figure]:
    found, cost = _slope(plan, "stages")
    yield Figure("slope over 8 stages, N = 1,000", found, "x", 2, 0.4)
    yield Figure("a stage", cost, "us/subject")


@goal(5, "one more decided condition with evidence", "the condition written by hand")
def one_more_condition(plan: Plan) -> Iterator[Figure]:
    found, cost = _slope(plan, "conditions")
    yield Figure("slope over 8 conditions, N = 1,000", found, "x", 0.8, 0.15)
    yield Figure("a condition", cost, "us/subject")


@goal(6, "growth from 1,000 to 1,000,000, row-wise, rows in")
def row_wise_growth(plan: Plan) -> Iterator[Figure]:
    sizes = (500, 1_000, 2_000) if plan.quick else (1_000, 10_000, 100_000, 1_000_000)
    rounds = (15, 9, 3, 1)
    medians = []
    for n, turns in zip(sizes, rounds, strict=False):
        rows = task.rows_of(n)
        chart = ours.row_wise_chart(rows)
        times = interleaved({"run": chart.run_sync}, plan.rounds(turns))["run"]
        medians.append(median(times))
        plan.note("row-wise, chart alone", n, each(times, n))
        del rows, chart
    yield Figure("exponent", growth(sizes, medians), "exponent", 1.05, 1.0)
    last = growth(sizes[-2:], medians[-2:])
    yield Figure(f"exponent, {sizes[-2]:,} to {sizes[-1]:,} alone", last, "exponent")
    yield Figure(f"N = {sizes[-1]:,}, chart alone", medians[-1], "s")


@goal(21, "warm, N = 50, to the envelope", "walk written by hand")
def warm_fifty(plan: Plan) -> Iterator[Figure]:
    n = 50
    rows = task.rows_of(n)
    answer = ours.answers(ours.row_wise_chart(rows))
    work = {"hand": lambda: task.written_walk(rows), "row-wise": answer}
    times = interleaved(work, plan.rounds(61))
    plan.note("row-wise", n, each(times["row-wise"], n))
    plan.note("written walk", n, each(times["hand"], n))
    yield Figure("to the envelope", ratio(times, "row-wise", "hand"), "x", 4, 1)
    yield Figure("to the envelope", median(times["row-wise"]) * 1e3, "ms", 3, 1)
    yield Figure("calls", calls_of(answer), "calls")
