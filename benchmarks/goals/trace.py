"""The recorded trace as a file: goals 17 and 18."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import ours
import task
from goal import Figure, NotMeasured, Plan, goal
from goals.memory import charts, has_batch
from measure import in_child, interleaved, median

MILLION = 1_000_000


def files() -> Any:
    try:
        from runbook_nb.record import walk_file
    except ImportError as missing:
        raise NotMeasured("walks are not written as columns yet") from missing
    return walk_file


def unpacked(data: bytes) -> int:
    """Give the bytes of the JSON that a file holds."""
    return len(zlib.decompress(data))


@goal(17, "recorded trace, columnar JSON", "by hand 1,240 B, footprintjs 10,824 B per subject")
def trace_bytes(plan: Plan) -> Iterator[Figure]:
    write = files().write_walk
    n = plan.size(100_000)
    rows = task.rows_of(n)
    by_hand = len(json.dumps(task.written_walk(rows[:2_000])[1])) / min(n, 2_000)
    yield Figure("walk by hand, JSON of its dicts", by_hand, "B")
    data = write(ours.row_wise_chart(rows).run_sync().walk)
    yield Figure("row-wise", unpacked(data) / n, "B", 160, 60)
    yield Figure("row-wise, packed", len(data) / n, "B")
    has_batch()
    data = write(ours.batch_chart(rows, n).run_sync().walk)
    yield Figure("batch", unpacked(data) / n, "B", 160, 30)
    yield Figure("batch, packed", len(data) / n, "B")


def written(kind: str, n: int, rounds: int) -> dict[str, Any]:
    """Write the walk of a run, read it back, and compare rows at many places."""
    file = files()
    make, _ = charts(kind, n)
    walk = make().run_sync().walk
    times = interleaved({"write": lambda: file.write_walk(walk)}, rounds)["write"]
    data = file.write_walk(walk)
    start = perf_counter()
    again = file.read_walk(data)
    read = perf_counter() - start
    total = len(walk)
    compared = 0
    for part in range(200):
        place = (total - 50) * part // 199
        if list(walk.page(place, 50)) != list(again.page(place, 50)):
            raise AssertionError(f"rows from {place} on are not the same when read back")
        compared += 50
    return {"write": median(times), "read": read, "rows": total, "compared": compared,
            "bytes": unpacked(data)}  # fmt: skip


@goal(18, "writing that JSON with the stdlib, 1,000,000 subjects; the same rows when read back")
def trace_written(plan: Plan) -> Iterator[Figure]:
    files()
    n = plan.size(MILLION)
    for kind in ("row-wise", "batch, rows in"):
        if kind != "row-wise":
            has_batch()
        told = in_child("goals.trace:written", kind, n, plan.rounds(3))
        yield Figure(f"{kind}, written and packed", told["write"], "s", 1, 0.4)
        yield Figure(f"{kind}, read back", told["read"], "s")
        yield Figure(f"{kind}, rows compared, of {told['rows']:,}", told["compared"], "rows")
