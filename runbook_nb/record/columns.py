"""The values of a log in columns: the order in which a written log holds them.

Record layer. What one code recorded again and again is alike, so values stand together by code: in
the root track by code, in the branches of a fan-out by their place in the shape. Writer and reader
both walk a log in this order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from runbook_nb.record.log import Code, FanOut, Log


class Column(NamedTuple):
    """The places of values that belong together.

    Attributes
    ----------
    code : Code
        What recorded them.
    part : int
        Which value of the code.
    places : list of int
        Where they stand, in the order of the record.
    """

    code: Code
    part: int
    places: list[int]


def root_columns(log: Log, codes: Sequence[int]) -> Iterator[Column]:
    """Yield the columns of a track.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> chart = flow_chart("c", lambda s: s.update({"a": 1, "b": 2}), id="a").build()
    >>> log = chart.run_sync().log
    >>> [(column.code.key, column.places) for column in root_columns(log, log.root.codes)]
    [('a', [0]), ('b', [1])]
    """
    starts: dict[int, list[int]] = {}
    at = 0
    for number in codes:
        width = log.width(log.codes[number])
        if width:
            starts.setdefault(number, []).append(at)
            at += width
    for number, places in starts.items():
        code = log.codes[number]
        for part in range(log.width(code)):
            yield Column(code, part, [place + part for place in places])


def fan_columns(log: Log, fan: FanOut) -> Iterator[Column]:
    """Yield the columns of the branches of a fan-out, shape by shape in order of first branch."""
    starts: dict[int, list[int]] = {}
    for index, number in enumerate(fan.shapes):
        if number >= 0:
            starts.setdefault(number, []).append(fan.offsets[index])
    for number, places in starts.items():
        at = 0
        for place in log.shapes[number].codes:
            code = log.codes[place]
            width = log.width(code)
            for part in range(width):
                yield Column(code, part, [start + at + part for start in places])
            at += width
