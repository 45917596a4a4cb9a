"""What recording a fan-out costs, against loops written by hand.

The task, the same for all: rows ``{subject, age_days, age_known}`` -> per subject take the row (3
writes), decide by two rules and a default with the evidence of each condition, write the verdict ->
collect the verdict rows.

References, all in this process:

``bare loop``       the verdict and nothing else
``loop + evidence`` the verdict, and a tuple per condition tried
``written walk``    a complete walk by hand: one dict per step, write, condition and decision

Method. Counts come first, since they are the same on every machine: subjects lost, objects the
garbage collector has to look at, its collections during a run, bytes of the record's own columns.
Clocks are read in interleaved rounds whose order rotates, after a collection; a ratio is the median
of the ratios within each round; growth is the slope of the logarithms of medians over five sizes.
The collector stays on, as a user has it. Microseconds are shown to give an idea and gate nothing.
The exit status is 1 when subjects are lost or growth is far from proportional.
"""

from __future__ import annotations

import gc
import statistics
import sys
from collections.abc import Callable
from typing import Any

from _measure import growth, interleaved, machine, ratio, table

import runbook_nb as rb
from runbook_nb._frozen import freeze

WHOLE = 5_000
SIZES = (1_000, 2_000, 4_000, 8_000, 16_000)
ROUNDS = 15
GROWTH_ROUNDS = 7
FAR_FROM_PROPORTIONAL = 1.3  # a quadratic part shows as far more; a busy machine does not

Rows = list[dict[str, Any]]

POSTURE = rb.RuleSet(
    "health-signal",
    "v1",
    rules=[
        rb.Rule({"age_known": {"eq": False}}, then="declined", label="the age cannot be read"),
        rb.Rule({"age_days": {"gt": 7}}, then="unprotected", label="older than 7 days"),
    ],
    default=rb.Default("protected", label="within 7 days"),
)


def rows_of(n: int) -> Rows:
    return [
        {"subject": f"cluster-{i}", "age_days": i % 40, "age_known": i % 23 > 0} for i in range(n)
    ]


# -- the references ------------------------------------------------------------------------


def bare_loop(rows: Rows) -> Rows:
    verdicts = []
    for row in rows:
        if row["age_known"] is False:
            word = "declined"
        elif row["age_days"] > 7:
            word = "unprotected"
        else:
            word = "protected"
        verdicts.append({"subject": row["subject"], "verdict": word})
    return verdicts


def loop_with_evidence(rows: Rows) -> tuple[Rows, list[Any]]:
    verdicts, evidence = [], []
    for row in rows:
        known, age = row["age_known"], row["age_days"]
        first = ("age_known", "eq", False, known, known is False)
        if first[4]:
            word, tried = "declined", (first,)
        else:
            second = ("age_days", "gt", 7, age, age > 7)
            word, tried = ("unprotected" if second[4] else "protected"), (first, second)
        evidence.append(tried)
        verdicts.append({"subject": row["subject"], "verdict": word})
    return verdicts, evidence


def written_walk(rows: Rows) -> tuple[Rows, Rows]:
    verdicts: Rows = []
    walk: Rows = []
    add = walk.append
    for i, row in enumerate(rows):
        state: dict[str, Any] = {}
        load = f"each~{i}/load#0"
        add({"type": "stage", "id": load, "stage": "load", "label": None})
        for key, value in row.items():
            state[key] = value
            add({"type": "write", "id": load, "key": key, "value": value})
        posture = f"each~{i}/posture#1"
        add({"type": "stage", "id": posture, "stage": "posture", "label": None})
        word, label = "protected", "within 7 days"
        for number, (key, op, limit, then, said) in enumerate(
            (
                ("age_known", "eq", False, "declined", "the age cannot be read"),
                ("age_days", "gt", 7, "unprotected", "older than 7 days"),
            )
        ):
            actual = state[key]
            result = actual == limit if op == "eq" else actual > limit
            add(
                {
                    "type": "condition",
                    "id": posture,
                    "rule": number,
                    "key": key,
                    "op": op,
                    "threshold": limit,
                    "actual": actual,
                    "result": result,
                }
            )
            if result:
                word, label = then, said
                break
        add({"type": "decision", "id": posture, "branch": word, "label": label})
        branch = f"each~{i}/{word}#2"
        add({"type": "stage", "id": branch, "stage": word, "label": None})
        state["verdict"] = word
        add({"type": "write", "id": branch, "key": "verdict", "value": word})
        verdicts.append({"subject": state["subject"], "verdict": word})
    return verdicts, walk


# -- the recorded chart --------------------------------------------------------------------


def chart_of(rows: Rows, *, collecting: bool = True) -> rb.Chart:
    def load(scope: Any) -> None:
        scope.update(scope.args["item"])

    def verdict(word: str) -> Callable[[Any], None]:
        return lambda scope: scope.set("verdict", word)

    def collect(scope: Any) -> None:
        scope["verdicts"] = [
            {"subject": slot.item["subject"], "verdict": slot.value["verdict"]}
            for slot in scope["results"]
        ]

    decider = rb.flow_chart("subject", load, id="load").add_decider(
        "Posture", rules=POSTURE, id="posture"
    )
    for word in POSTURE.branches:
        decider = decider.branch(word, verdict(word))
    chart = rb.flow_chart("triage", lambda scope: None, id="start").add_parallel_for_each(
        "Each",
        id="each",
        items=lambda scope: rows,
        branch=decider.end().build(),
        max_branches=len(rows),
        into="results",
        subject="subject",
    )
    if collecting:
        chart = chart.add_function("Collect", collect, id="collect")
    return chart.build()


def lose_none(n: int) -> bool:
    """Run once and compare every subject with the bare loop."""
    rows = rows_of(n)
    run = chart_of(rows).run_sync()
    slots = run.slots("each")
    expected = bare_loop(rows)
    kept = sum(slot.status == "ok" for slot in slots)
    same = [dict(row) for row in run.state["verdicts"]] == expected
    decided = len(run.decisions)
    table(
        ["lose none", "subjects", "slots", "ok", "decisions", "verdicts right"],
        [["recorded chart", f"{n:,}", f"{len(slots):,}", f"{kept:,}", f"{decided:,}", str(same)]],
    )
    return same and len(slots) == kept == decided == n


def weigh(n: int) -> None:
    """Count what a run leaves behind, without the author's own collecting stage."""

    def left_by(work: Callable[[], Any]) -> tuple[Any, float, int]:
        gc.collect()
        before, turns = len(gc.get_objects()), gc.get_stats()[2]["collections"]
        kept = work()
        turns = gc.get_stats()[2]["collections"] - turns
        gc.collect()
        return kept, (len(gc.get_objects()) - before) / n, turns

    lines = []
    for name, rows in (
        ("recorded chart", rows_of(n)),
        ("recorded chart, rows frozen before", freeze(rows_of(n))),
    ):
        chart = chart_of(rows, collecting=False)
        chart.run_sync()  # what is made once is made
        run, objects, turns = left_by(chart.run_sync)
        (fan,) = run.log.fan_outs()
        columns = (fan.shapes, fan.offsets, fan.statuses, fan.values)
        size = sum(map(sys.getsizeof, columns)) / n
        lines.append([name, f"{n:,}", f"{objects:.3f}", str(turns), f"{size:.1f}"])
    table(
        ["left behind", "subjects", "tracked objects each", "gen-2 collections", "bytes each"],
        lines,
    )
    print(
        f"  path shapes {len(run.log.shapes)}, codes {len(run.log.codes)}; bytes are those of the"
    )
    print("  record's columns; plain rows are copied, as dicts the collector does not look at\n")


def compare(n: int, rounds: int) -> None:
    rows = rows_of(n)
    chart = chart_of(rows)
    work = {
        "bare loop": lambda: bare_loop(rows),
        "loop + evidence": lambda: loop_with_evidence(rows),
        "written walk": lambda: written_walk(rows),
        "recorded chart": chart.run_sync,
    }
    times = interleaved(work, rounds)
    table(
        [f"N = {n:,}", "us each", "x bare", "x evidence", "x written walk"],
        [
            [
                name,
                f"{statistics.median(times[name]) / n * 1e6:.2f}",
                *(
                    f"{ratio(times, name, other):.2f}"
                    for other in ("bare loop", "loop + evidence", "written walk")
                ),
            ]
            for name in work
        ],
    )


def grow() -> float:
    charts = {n: chart_of(rows_of(n)) for n in SIZES}
    inputs = {n: rows_of(n) for n in SIZES}
    chart_times = interleaved({str(n): charts[n].run_sync for n in SIZES}, GROWTH_ROUNDS)
    hand_times = interleaved(
        {str(n): lambda n=n: written_walk(inputs[n]) for n in SIZES}, GROWTH_ROUNDS
    )
    rows, slopes = [], []
    for name, times in (("recorded chart", chart_times), ("written walk", hand_times)):
        medians = [statistics.median(times[str(n)]) for n in SIZES]
        slopes.append(growth(SIZES, medians))
        each = [f"{s / n * 1e6:.2f}" for n, s in zip(SIZES, medians, strict=True)]
        rows.append([name, *each, f"{slopes[-1]:.2f}"])
    table(["us each at N =", *(f"{n:,}" for n in SIZES), "exponent"], rows)
    return slopes[0]


def main() -> int:
    print(f"fan-out, {machine()}\n")
    complete = lose_none(WHOLE)
    weigh(WHOLE)
    compare(1_000, ROUNDS)
    compare(10_000, 5)
    exponent = grow()
    if not complete:
        print("  subjects were lost")
    if exponent > FAR_FROM_PROPORTIONAL:
        print(f"  cost grows with the power {exponent:.2f} of the subjects")
    return 0 if complete and exponent <= FAR_FROM_PROPORTIONAL else 1


if __name__ == "__main__":
    sys.exit(main())
