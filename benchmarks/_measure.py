"""Measuring without flicker: interleaved rounds in one process, medians, counts before clocks."""

from __future__ import annotations

import gc
import math
import os
import platform
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any


def interleaved(work: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Time every piece of work once per round, in an order that rotates; seconds per round."""
    names = list(work)
    times: dict[str, list[float]] = {name: [] for name in names}
    for name in names:  # warm up
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


def growth(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Give the exponent of growth: 1 is in proportion, 2 is quadratic (least squares of logs)."""
    xs, ys = [math.log(n) for n in sizes], [math.log(s) for s in seconds]
    return statistics.linear_regression(xs, ys).slope


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, the first column to the left and the others to the right."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(head))]
    for line in lines:
        first, *rest = (
            text.ljust(width) if n == 0 else text.rjust(width)
            for n, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        print("  " + "  ".join([first, *rest]))
    print()


def machine() -> str:
    """Say where this ran."""
    return f"Python {platform.python_version()}, {sys.platform}, {os.cpu_count()} cores"
