"""All subjects judged as columns: goals 7, 8 and 30."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import ours
import task
from goal import Figure, NotMeasured, Plan, goal
from measure import calls_of, each, interleaved, median, ratio

import runbook_nb as rb


def frames() -> Any:
    try:
        import pandas as pd
    except ImportError as missing:
        raise NotMeasured("pandas is not installed") from missing
    return pd


def _same_as_rows(source: Any, rows: task.Rows) -> Figure:
    """See that the batch says what the row-wise chart says, on every subject."""
    batch = ours.caller(ours.batch_chart(source, len(rows)))()
    ours.verify(rows, batch)
    ours_rows = ours.caller(ours.row_wise_chart(rows))()
    for decided, other in zip(
        batch.run.walk.iter_decisions(), ours_rows.run.walk.iter_decisions(), strict=True
    ):
        if decided.decision != other.decision:
            raise AssertionError(f"{decided.decision} is not {other.decision}")
    return Figure("decisions equal to those row by row", len(rows), "decisions")


@goal(7, "batch decide without numpy, rows in, N = 10,000", "bare loop and evidence tuples")
def batch_rows_in(plan: Plan) -> Iterator[Figure]:
    n = plan.size(10_000)
    rows = task.rows_of(n)
    chart = ours.batch_chart(rows, n)
    work = {
        "bare + evidence": lambda: task.with_evidence(rows),
        "batch": ours.answers(chart),
        "batch, chart alone": chart.run_sync,
        "judge_frame": lambda: ours.judge_frame(rows, ours.POSTURE),
    }
    times = interleaved(work, plan.rounds(15))
    plan.note("batch, rows in", n, each(times["batch"], n))
    yield Figure("to the envelope", ratio(times, "batch", "bare + evidence"), "x", 2, 0.4)
    yield Figure("chart alone", ratio(times, "batch, chart alone", "bare + evidence"))
    yield Figure("judge_frame alone", ratio(times, "judge_frame", "bare + evidence"))
    yield Figure("calls per subject", calls_of(chart.run_sync) / n, "calls", 1)
    yield Figure("numpy imported", float("numpy" in sys.modules), "times", 0, 0)
    yield _same_as_rows(task.rows_of(500), task.rows_of(500))


@goal(8, "batch decide, pandas DataFrame in, N = 100,000 / 1,000,000", "bare loop, no record")
def batch_frame_in(plan: Plan) -> Iterator[Figure]:
    pd = frames()
    sizes = (1_000, 2_000) if plan.quick else (100_000, 1_000_000)
    for n, rounds, gate, stretch in zip(sizes, (15, 7), (1, 0.6), (0.2, 0.1), strict=True):
        rows = task.rows_of(n)
        frame = pd.DataFrame(task.columns_of(n))
        chart = ours.batch_chart(frame, n)
        work = {
            "bare loop": lambda rows=rows: task.bare_loop(rows),
            "batch": ours.answers(chart),
            "batch, chart alone": chart.run_sync,
            "judge_frame": lambda frame=frame: ours.judge_frame(frame, ours.POSTURE),
        }
        times = interleaved(work, plan.rounds(rounds))
        plan.note("batch, frame in", n, each(times["batch"], n))
        size = f"N = {n:,}"
        found = ratio(times, "batch", "bare loop")
        yield Figure(f"to the envelope, {size}", found, "x", gate, stretch)
        yield Figure(f"chart alone, {size}", ratio(times, "batch, chart alone", "bare loop"))
        yield Figure(f"judge_frame alone, {size}", ratio(times, "judge_frame", "bare loop"))
    yield _same_as_rows(pd.DataFrame(task.columns_of(500)), task.rows_of(500))


@goal(30, "judging 100,000 recorded subjects again")
def judge_again(plan: Plan) -> Iterator[Figure]:
    n = plan.size(100_000)
    rows = task.rows_of(n)
    stricter = rb.RuleSet(
        "health-signal",
        "v2",
        rules=[
            rb.Rule({"age_known": {"eq": False}}, then="declined", label="cannot be read"),
            rb.Rule({"age_days": {"gt": 3}}, then="unprotected", label="older than 3 days"),
        ],
        default=rb.Default("protected", label="within 3 days"),
    )
    charts = {"recorded row by row": ours.row_wise_chart(rows)}
    with suppress(NotMeasured):
        charts["recorded as columns"] = ours.batch_chart(rows, n)
    for name, chart in charts.items():
        run = chart.run_sync()

        def again(run: rb.Run = run, columns: bool = name.endswith("columns")) -> Any:
            (fan,) = run.log.fan_outs()
            if columns:
                return ours.judge_frame(fan.items, stricter)
            return ours.judge_frame(list(fan.items), stricter)

        judged = again()
        expected = sum(row["age_known"] and row["age_days"] > 3 for row in rows)
        if judged.counts()["unprotected"] != expected:
            raise AssertionError(f"{judged.counts()}, not {expected} unprotected")
        taken = median(interleaved({"again": again}, plan.rounds(15))["again"]) * 1e3
        yield Figure(name, taken, "ms", 200, 50)
