"""What a run leaves in memory, and a million subjects: goals 12 to 16."""

from __future__ import annotations

import gc
import random
import statistics
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import ours
import task
from goal import Figure, NotMeasured, Plan, goal
from goals.batch import frames
from measure import in_child, left_by, resident, size_of

import runbook_nb as rb

MILLION = 1_000_000


def recorder_bytes(run: rb.Run) -> int:
    """Add up the record's own columns: of the fan-out, and the tables shared by all subjects.

    The items are the input, and values that the columns hold by reference are the input's too.
    """
    (fan,) = run.log.fan_outs()
    names = {name for kind in type(fan).__mro__ for name in getattr(kind, "__slots__", ())}
    names |= set(getattr(fan, "__dict__", ()))
    left_out = {"items", "log", "stage"}
    parts = [getattr(fan, name) for name in sorted(names - left_out) if hasattr(fan, name)]
    return size_of([part for part in parts if part is not None], but=(fan.items,))


def charts(kind: str, n: int) -> tuple[Callable[[], rb.Chart], Any]:
    """Give what makes a chart of a kind, and its input, made before anything is measured."""
    if kind == "row-wise":
        rows = task.rows_of(n)
        return lambda: ours.row_wise_chart(rows), rows
    if kind == "batch, rows in":
        rows = task.rows_of(n)
        return lambda: ours.batch_chart(rows, n), rows
    frame = frames().DataFrame(task.columns_of(n))
    return lambda: ours.batch_chart(frame, n), frame


def has_batch() -> None:
    ours.batch_chart([{"subject": "a", "age_days": 1, "age_known": True}], 1)


@goal(12, "recorder memory per subject, by sys.getsizeof of its columns")
def recorder_memory(plan: Plan) -> Iterator[Figure]:
    n = plan.size(100_000)
    run = ours.row_wise_chart(task.rows_of(n)).run_sync()
    yield Figure("row-wise", recorder_bytes(run) / n, "B", 160, 60)
    has_batch()
    run = ours.batch_chart(task.rows_of(n), n).run_sync()
    yield Figure("batch", recorder_bytes(run) / n, "B", 16, 4)


def resident_after(kind: str, n: int) -> dict[str, float]:
    """Run once in this process and say what it holds above its input, and how long it took."""
    small, _kept = charts(kind, 200)
    ours.caller(small())().to_json()  # what is made once is made
    make, _source = charts(kind, n)
    answer = ours.caller(make())
    gc.collect()
    before, start = resident(), perf_counter()
    envelope = answer()
    text = envelope.to_json()
    seconds = perf_counter() - start
    gc.collect()
    ours_run = envelope.run
    recorder = recorder_bytes(ours_run) / n
    # What is held in pages that were there already shows in no resident memory.
    held = max((resident() - before) / n, recorder)
    if len(text) > 200_000:
        raise AssertionError(f"the envelope has {len(text):,} characters")
    told = {"bytes": held, "seconds": seconds, "recorder": recorder}
    return {**told, **explained(envelope, n)}


def explained(envelope: rb.Envelope, n: int) -> dict[str, float]:
    """Explain subjects of a run again: verdict, evidence and the walk of each."""
    dice = random.Random(7)
    rows = [dice.randrange(n) for _ in range(51)]
    times = []
    for row in rows:
        start = perf_counter()
        why = envelope.why(f"cluster-{row}")
        walk = list(why.walk())
        evidence = why.decision.evidence
        times.append(perf_counter() - start)
        expected = task.bare_loop([task.rows_of(row + 1)[-1]] if row < 5_000 else [_row(row)])
        if [why.verdict] != expected or len(walk) < 8 or not evidence:
            raise AssertionError(f"cluster-{row} is explained as {why.verdict}, not {expected}")
    return {"explained first": times[0], "explained": statistics.median(times[1:])}


def _row(i: int) -> task.Row:
    return {"subject": f"cluster-{i}", "age_days": i % 40, "age_known": i % 23 > 0}


def references(n: int) -> dict[str, float]:
    """Time bare rows and an envelope, in the same process and rounds as nothing else."""
    rows = task.rows_of(n)
    times = []
    for _ in range(3):
        gc.collect()
        start = perf_counter()
        task.bare_envelope(rows)
        times.append(perf_counter() - start)
    return {"seconds": statistics.median(times)}


KINDS = {
    "row-wise": (300, 80, 40, 6),
    "batch, rows in": (120, 45, 4, 0.8),
    "batch, columns in": (50, 15, 1, 0.1),
}


def _measured(plan: Plan) -> Iterator[tuple[str, dict[str, float]]]:
    n = plan.size(MILLION)
    for kind in KINDS:
        if kind != "row-wise":
            has_batch()
        yield kind, in_child("goals.memory:resident_after", kind, n)


@goal(13, "run memory above the input, N = 1,000,000", "walk written by hand 4,228 B")
def run_memory(plan: Plan) -> Iterator[Figure]:
    for kind, told in _measured(plan):
        gate, stretch, _, _ = KINDS[kind]
        yield Figure(kind, told["bytes"], "B", gate, stretch)


def million_against_bare(kind: str, n: int, rounds: int) -> dict[str, list[float]]:
    """Time one kind and the reference in one process, round by round."""
    make, source = charts(kind, n)
    rows = task.rows_of(n) if kind == "batch, columns in" else source
    answer = ours.answers(make())
    small, _ = charts(kind, 200)
    ours.answers(small())()
    times: dict[str, list[float]] = {"ours": [], "bare": []}
    for _ in range(rounds):
        for name, work in (("bare", lambda: task.bare_envelope(rows)), ("ours", answer)):
            gc.collect()
            start = perf_counter()
            made = work()
            times[name].append(perf_counter() - start)
            del made
    return times


@goal(14, "1,000,000 subjects, envelope in hand", "bare rows and envelope")
def million(plan: Plan) -> Iterator[Figure]:
    n = plan.size(MILLION)
    for kind, (_, _, gate, stretch) in KINDS.items():
        if kind != "row-wise":
            has_batch()
        rounds = plan.rounds(3 if kind == "row-wise" else 7)
        times = in_child("goals.memory:million_against_bare", kind, n, rounds)
        pairs = zip(times["ours"], times["bare"], strict=True)
        found = statistics.median(one / other for one, other in pairs)
        seconds = statistics.median(times["ours"])
        name = "batch, frame in" if kind == "batch, columns in" else kind
        plan.note(name, n, seconds / n * 1e6)
        plan.note("bare + envelope", n, statistics.median(times["bare"]) / n * 1e6)
        yield Figure(kind, found, "x", gate, stretch)
        yield Figure(kind, seconds, "s")


@goal(15, "one subject of the million explained again: verdict, evidence, walk")
def one_of_a_million(plan: Plan) -> Iterator[Figure]:
    for kind, told in _measured(plan):
        yield Figure(f"{kind}, any after the first", told["explained"] * 1e3, "ms", 1, 0.1)
        yield Figure(f"{kind}, the first", told["explained first"] * 1e3, "ms")


@goal(16, "tracked objects left per subject; gen-2 collections during a run", "by hand 5.8")
def tracked_objects(plan: Plan) -> Iterator[Figure]:
    n = plan.size(100_000)
    rows = task.rows_of(n)
    kinds: dict[str, Any] = {"row-wise": ours.row_wise_chart(rows, collecting=False)}
    missing = None
    try:
        kinds["batch"] = ours.batch_chart(rows, n, collecting=False)
    except NotMeasured as why:
        missing = why
    _, objects, turns = left_by(lambda: task.written_walk(rows))
    yield Figure("by hand, objects per subject", objects / n, "objects")
    yield Figure("by hand, gen-2 collections", turns, "collections")
    flat = left_by(lambda: task.written_walk(rows, flat=True))[1]
    yield Figure("by hand in flat rows, objects per subject", flat / n, "objects")
    for name, chart in kinds.items():
        chart.run_sync()
        _, objects, turns = left_by(chart.run_sync)
        yield Figure(f"{name}, objects per subject", max(objects, 0) / n, "objects", 0.1, 0.001)
        yield Figure(f"{name}, gen-2 collections", turns, "collections", 3, 0)
    if missing is not None:
        raise missing
