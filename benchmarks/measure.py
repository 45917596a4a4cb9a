"""Measuring without flicker: counts before clocks, interleaved rounds, medians of ratios."""

from __future__ import annotations

import gc
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import threading
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

HERE = Path(__file__).parent

Times = dict[str, list[float]]


def interleaved(work: Mapping[str, Callable[[], Any]], rounds: int) -> Times:
    """Time every piece of work once per round, in an order that rotates; seconds per round.

    Each is warmed up once and starts after a collection, with nothing of the one before it alive.
    """
    names = list(work)
    times: Times = {name: [] for name in names}
    for name in names:
        work[name]()
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            gc.collect()
            start = perf_counter()
            made = work[name]()
            times[name].append(perf_counter() - start)
            del made
    return times


def ratio(times: Mapping[str, Sequence[float]], name: str, reference: str) -> float:
    """Give the median of the ratios within each round, which a busy machine moves least."""
    pairs = zip(times[name], times[reference], strict=True)
    return statistics.median(one / other for one, other in pairs)


def slope_ratio(times: Times, more: str, less: str, other_more: str, other_less: str) -> float:
    """Give the median of the ratios of two differences, each taken within a round."""
    rounds = zip(*(times[name] for name in (more, less, other_more, other_less)), strict=True)
    return statistics.median(
        (one - two) / (three - four) for one, two, three, four in rounds if three > four
    )


def median(seconds: Iterable[float]) -> float:
    return statistics.median(seconds)


def each(seconds: Iterable[float], n: int) -> float:
    """Give the median in microseconds per subject."""
    return statistics.median(seconds) / n * 1e6


def growth(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Give the exponent of growth: 1 is in proportion, 2 is quadratic (least squares of logs)."""
    xs, ys = [math.log(n) for n in sizes], [math.log(s) for s in seconds]
    return statistics.linear_regression(xs, ys).slope


def calls_of(work: Callable[[], Any]) -> int:
    """Count the calls that a piece of work makes, in Python and in C."""
    count = 0

    def seen(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    threading.setprofile(seen)  # a run may take place in a thread of its own
    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return count


def left_by(work: Callable[[], Any]) -> tuple[Any, int, int]:
    """Give what work returns, the tracked objects it leaves, and gen-2 collections during it."""
    gc.collect()
    before, turns = len(gc.get_objects()), gc.get_stats()[2]["collections"]
    kept = work()
    turns = gc.get_stats()[2]["collections"] - turns
    gc.collect()
    return kept, len(gc.get_objects()) - before, turns


def size_of(value: Any, *, but: Iterable[Any] = ()) -> int:
    """Add up `sys.getsizeof` of columns: containers and what they are made of, never an atom.

    What a column holds by reference belongs to its owner and is not counted; ``but`` names
    further objects that belong to somebody else.
    """
    seen = {id(one) for one in but}

    def sized(one: Any) -> int:
        if id(one) in seen:
            return 0
        seen.add(id(one))
        if isinstance(one, bytes | bytearray | array | memoryview):
            return sys.getsizeof(one)
        if type(one) in (list, tuple, dict):
            inner = one.values() if isinstance(one, dict) else one
            nested = (sized(part) for part in inner if type(part) in _COLUMNS)
            return sys.getsizeof(one) + sum(nested)
        if hasattr(one, "nbytes"):
            return int(one.nbytes)
        return 0

    return sized(value)


_COLUMNS = (list, tuple, dict, bytes, bytearray, array, memoryview)


def resident() -> int:
    """Give the bytes of this process that are in memory now."""
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def in_child(function: str, *arguments: Any, **environment: str) -> Any:
    """Run ``module:function`` of this folder in a process of its own; it gives plain data."""
    program = (
        "import sys, json, importlib; sys.path[:0] = sys.argv[1:3]\n"
        "module, name = sys.argv[3].split(':')\n"
        "made = getattr(importlib.import_module(module), name)(*json.loads(sys.argv[4]))\n"
        "print('\\n' + json.dumps(made))"
    )
    command = [sys.executable, "-c", program, str(HERE), str(HERE.parent)]
    said = subprocess.run(
        [*command, function, json.dumps(arguments)],
        env=os.environ | environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(said.stdout.splitlines()[-1])


def machine() -> dict[str, Any]:
    """Say where this runs."""
    model = "unknown"
    try:
        with Path("/proc/cpuinfo").open() as file:
            named = (line for line in file if line.startswith("model name"))
            model = next(named, "x: unknown").partition(":")[2].strip()
    except OSError:
        model = platform.processor() or model
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "cores": os.cpu_count(),
        "processor": model,
    }


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, the first two columns to the left and the others to the right."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(head))]
    for line in lines:
        texts = (
            text.ljust(width) if n < 2 else text.rjust(width)
            for n, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        print("  ".join(texts).rstrip())
