"""The values of a log in columns: the order in which a written log holds them.

Record layer. What one code recorded again and again is alike, so values stand together by code: in
the root track by code, in the branches of a fan-out by their place in the shape. Writer and reader
both walk a log in this order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from runbook_nb.record.log import Code, FanOut, Log, Track


class Column(NamedTuple):
    """The places of values that belong together.

    Attributes
    ----------
    code : Code
        What recorded them.
    part : int
        Which value of the code.
    places : sequence of int
        In a track, where they stand; in a fan-out, the branches they are of. In the order of the
        record.
    at : int
        In a fan-out, where they stand in each of the branches, from the beginning of its values.
    """

    code: Code
    part: int
    places: Sequence[int]
    at: int = 0

    def held_in(self, track: Track | FanOut) -> Sequence[Any]:
        """Give the values themselves, out of the track or the fan-out the column is of."""
        if isinstance(track, Track):
            return [track.values[place] for place in self.places]
        return track.column(self.at, self.places)

    def put_into(self, track: Track | FanOut, values: Iterable[Any]) -> None:
        """Put other values in their places."""
        if isinstance(track, Track):
            for place, value in zip(self.places, values, strict=True):
                track.values[place] = value
        else:
            track.put(self.at, self.places, values)


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
    for number, indices in fan.of_shapes().items():
        at = 0
        for place in log.shapes[number].codes:
            code = log.codes[place]
            width = log.width(code)
            for part in range(width):
                yield Column(code, part, indices, at + part)
            at += width
