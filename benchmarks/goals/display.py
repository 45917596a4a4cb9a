"""Showing an answer, and changing a limit of its rules: goals 24 to 27, and 32."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import ours
import task
from goal import Figure, Plan, goal
from measure import calls_of, median

import runbook_nb as rb
from runbook_nb.render import svg
from runbook_nb.render.folding import MAX_NODES
from runbook_nb.render.html import render_html
from runbook_nb.render.layouts.base import TIMEOUT

SIZES = (50, 1_000, 10_000, 100_000)
#: Stages of a long chart; a picture has fewer, and says so.
STAGES = 500


def best_of(work: Callable[[], Any], rounds: int) -> float:
    """Give the median of milliseconds."""
    times = []
    for _ in range(rounds):
        gc.collect()
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return median(times) * 1e3


def envelopes(plan: Plan) -> Iterator[tuple[int, rb.Envelope]]:
    for n in sorted({plan.size(size) for size in SIZES}):
        yield n, ours.caller(ours.row_wise_chart(task.rows_of(n)))()


def anew(flow: Any) -> Any:
    svg._kept.clear()
    svg._drawings.clear()
    return svg.draw(flow)


@goal(24, "drawing the folded chart, any N, the first time / again", "dot's floor 11 ms")
def folded_chart(plan: Plan) -> Iterator[Figure]:
    first, again, sizes = [], [], []
    svg.draw(ours.row_wise_chart(task.rows_of(2)).run_sync().walk.flowchart().flow)  # loads it
    for _, envelope in envelopes(plan):
        walk = envelope.walk
        flow = walk.flowchart().flow
        first.append(best_of(lambda flow=flow: anew(flow), plan.rounds(15)))
        again.append(best_of(lambda flow=flow: svg.draw(flow), plan.rounds(15)))
        sizes.append(len((svg.draw(flow).svg or "").encode()))
        if not sizes[-1]:
            raise AssertionError("nothing was drawn")
    named = f"N = {', '.join(f'{n:,}' for n in SIZES)}"
    yield Figure(f"first time, the slowest of {named}", max(first), "ms", 40, 20)
    yield Figure("again", max(again), "ms", 1, 0.1)
    yield Figure("size", max(sizes) / 1024, "KB", 20)
    yield Figure("sizes between the smallest N and the largest", max(sizes) - min(sizes), "B")


def chain_of(n: int) -> rb.Chart:
    chart = rb.flow_chart("long", lambda scope: None, id="start")
    for k in range(n - 1):
        chart = chart.add_function(f"stage {k}", lambda scope: None, id=f"stage{k}")
    return chart.build()


@goal(25, "drawing up to the cap of nodes, drawn out", "dot 61 to 173 ms at 500 nodes")
def drawn_out(plan: Plan) -> Iterator[Figure]:
    for stages in (MAX_NODES, STAGES, 5_000):
        flow = chain_of(stages).run_sync().walk.flowchart().flow
        start = perf_counter()
        drawing = anew(flow)
        seconds = perf_counter() - start
        drawn = (drawing.svg or "").count('<g class="node')
        yield Figure(f"{stages:,} stages", seconds, "s", TIMEOUT)
        yield Figure(f"{stages:,} stages, nodes drawn", drawn, "nodes", MAX_NODES)
        said = any("stages" in note for note in (*flow.notes, drawing.note or "") if note)
        if stages > MAX_NODES and not said:
            yield Figure(f"{stages:,} stages, times it is not said", 1, "times", 0)


@goal(26, "HTML of an envelope, no picture or carried form, any N", "pandas 0.7 to 1.25 ms")
def html(plan: Plan) -> Iterator[Figure]:
    times, sizes, calls, tags = [], [], [], []
    with rb.settings(embed=False, layout="none"):
        for n, envelope in envelopes(plan):
            first = perf_counter()
            render_html(envelope.view())
            first = (perf_counter() - first) * 1e3
            shown = lambda envelope=envelope: render_html(envelope.view())  # noqa: E731
            times.append(best_of(shown, plan.rounds(15)))
            text = shown()
            sizes.append(len(text.encode()))
            tags.append(text.count("</"))
            calls.append(calls_of(shown))
            yield Figure(f"N = {n:,}, first time", first, "ms")
    yield Figure("the slowest N, again", max(times), "ms", 5, 0.5)
    yield Figure("size", max(sizes) / 1024, "KB", 64)
    yield Figure("more elements at the largest N than at 1,000", tags[-1] - tags[1], "elements", 20)
    yield Figure("calls at the largest N, of those at 1,000", calls[-1] / calls[1], "x", 1.1)


@goal(27, "narrative of 500 rows / of a whole 100,000-row walk")
def narrative(plan: Plan) -> Iterator[Figure]:
    n = plan.size(100_000) // 14 + 1  # 14 rows of walk or so per subject
    chart = ours.row_wise_chart(task.rows_of(n), collecting=False)
    made = calls_to_text(chart)
    yield Figure("sentences made before they are asked for", made, "sentences", 0, 0)
    walk = chart.run_sync().walk
    whole = min(len(walk), 100_000)
    page = best_of(lambda: [row.text for row in walk.page(0, 500)], plan.rounds(31))
    yield Figure("500 rows", page, "ms", 1, 0.2)
    every = best_of(lambda: [row.text for row in walk.page(0, whole)], plan.rounds(9))
    yield Figure(f"{whole:,} rows", every, "ms", 120, 50)


def calls_to_text(chart: rb.Chart) -> int:
    """Count the sentences that a run makes by itself."""
    from runbook_nb.record import narrative as module

    made = 0
    real = module.row_words

    def counting(*given: Any, **named: Any) -> Any:
        nonlocal made
        made += 1
        return real(*given, **named)

    from runbook_nb.record import walk as reader

    module.row_words = reader.row_words = counting
    try:
        chart.run_sync()
    finally:
        module.row_words = reader.row_words = real
    return made


#: The limit of a lab that is moved, one of them after the other, so that each is a change.
LIMITS = (5, 6, 8, 9, 10, 12, 14, 20)


@goal(32, "a limit changed in a rule lab over 100,000 recorded subjects")
def limit_changed(plan: Plan) -> Iterator[Figure]:
    n = plan.size(100_000)
    rows = task.rows_of(n)
    ages = [row["age_days"] for row in rows if row["age_known"]]
    for name, chart in (
        ("recorded row by row", ours.row_wise_chart(rows)),
        ("recorded as columns", ours.batch_chart(rows, n)),
    ):
        lab, times = rb.RuleLab(ours.caller(chart)()), []
        for turn in range(plan.rounds(4) * len(LIMITS)):
            limit = LIMITS[turn % len(LIMITS)]
            start = perf_counter()
            lab.set_limit(2, "age_days", "gt", limit)
            times.append((perf_counter() - start) * 1e3)
            low, high = sorted((limit, 7))
            expected = sum(low < age <= high for age in ages)
            if not lab.told["changed"] == lab.comparison.changed == expected:
                raise AssertionError(f"{lab.told['changed']} changes, not {expected}")
        yield Figure(f"{name}, judged and told", median(times), "ms", 200, 50)
        yield Figure(f"{name}, the slowest of {len(times)}", max(times), "ms")
        yield Figure(f"{name}, the first", times[0], "ms")
