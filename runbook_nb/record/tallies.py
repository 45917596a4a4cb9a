"""Counting many small numbers: how often each stands in a sequence, where first, where last.

Record layer. What a run of a million branches keeps per branch is a small number; what is told of
all of them is counted from those numbers in a few passes that run no Python per branch. numpy does
it where the sequence is long; what comes out is the same without it.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Any, Final

#: From this length on numpy is imported for it; a shorter sequence is counted sooner than that.
LONG: Final = 100_000

#: Branches summed up together by `RunningSums`.
BLOCK: Final = 1_024

#: More different numbers than this are looked for in one pass, not in one each.
FEW: Final = 64

#: Sequence[int] that lie within this of each other are counted in a table of all of them.
CLOSE: Final = 65_536


def numpy_for(length: int) -> Any:
    """Give numpy where it is worth using for so many numbers; None where it is not."""
    found = sys.modules.get("numpy")
    if found is None and length >= LONG:
        import numpy

        return numpy
    return found if length >= BLOCK else None


def vector_of(numbers: Sequence[int], numpy: Any) -> Any:
    """Look at numbers as a numpy array, without copying them where they are held as an array."""
    if not isinstance(numbers, array | bytes | bytearray):
        return numpy.fromiter(numbers, "q", len(numbers))
    return numpy.frombuffer(numbers, dtype=getattr(numbers, "typecode", "B"))


class Identities:
    """Which objects stand in a sequence, to be compared without a step for each.

    It holds on to them, so that each stays the one it was.

    Examples
    --------
    >>> name = "web-1"
    >>> (Identities([name, None]).numbers == Identities([name, 0]).numbers).tolist()
    [True, False]
    """

    __slots__ = ("held", "numbers")

    def __init__(self, values: Sequence[Any]) -> None:
        import numpy

        self.held: Any = numpy.fromiter(values, object, len(values))
        #: Where each object lies: equal numbers are the very same object.
        self.numbers: Any = numpy.frombuffer(self.held, numpy.intp)


def tally(numbers: Sequence[int]) -> dict[int, int]:
    """Count each number, in the order in which they first stand.

    Examples
    --------
    >>> tally(array("i", [2, -1, 2]))
    {2: 2, -1: 1}
    """
    numpy = numpy_for(len(numbers))
    if numpy is None:
        return dict(Counter(numbers))
    held = vector_of(numbers, numpy)
    counts = _counts(held, numpy)
    if counts is None:
        values, first, times = numpy.unique(held, return_index=True, return_counts=True)
        order = numpy.argsort(first, kind="stable")
        return dict(zip(values[order].tolist(), times[order].tolist(), strict=True))
    # Where a number stands first is found soonest by looking for it: nearly always at the start.
    starts = {number: int((held == number).argmax()) for number in counts}
    return {number: counts[number] for number in sorted(starts, key=starts.__getitem__)}


def _counts(held: Any, numpy: Any) -> dict[int, int] | None:
    """Count numbers that lie close together; None where they are many or far apart."""
    low = int(held.min())
    if int(held.max()) - low > CLOSE:
        return None
    counts = numpy.bincount(held - low if low else held)
    found = numpy.flatnonzero(counts)
    if len(found) > FEW:
        return None
    return dict(zip((found + low).tolist(), counts[found].tolist(), strict=True))


def tally_pairs(ones: Sequence[int], others: Sequence[int]) -> dict[tuple[int, int], int]:
    r"""Count each pair of numbers that stand at the same place, in the order of first standing.

    Examples
    --------
    >>> tally_pairs(array("i", [3, 3, -1]), b"\x01\x02\x00")
    {(3, 1): 1, (3, 2): 1, (-1, 0): 1}
    """
    numpy = numpy_for(len(ones))
    if numpy is None or getattr(others, "typecode", "B") != "B":
        return dict(Counter(zip(ones, others, strict=True)))
    found = tally(_joined(ones, others, numpy))
    return {(number >> 8, number & 255): times for number, times in found.items()}


def runs(numbers: Sequence[int]) -> list[int]:
    """Give numbers as runs: each number, and how often it stands there.

    Examples
    --------
    >>> runs(array("i", [4, 4, -1]))
    [4, 2, -1, 1]
    """
    numpy = numpy_for(len(numbers))
    if numpy is None:
        return [part for number, run in groupby(numbers) for part in (number, len(list(run)))]
    held = vector_of(numbers, numpy)
    starts = numpy.flatnonzero(held[1:] != held[:-1]) + 1
    found = numpy.empty((len(starts) + 1, 2), "q")
    found[0, 0] = held[0]
    found[1:, 0] = held[starts]
    found[:, 1] = numpy.diff(starts, prepend=0, append=len(held))
    told: list[int] = found.ravel().tolist()
    return told


def run_count(numbers: Sequence[int]) -> int:
    """Count the runs of numbers.

    Examples
    --------
    >>> run_count(array("i", [4, 4, -1]))
    2
    """
    numpy = numpy_for(len(numbers))
    if numpy is None:
        return sum(1 for _ in groupby(numbers))
    held = vector_of(numbers, numpy)
    return 1 + int(numpy.count_nonzero(held[1:] != held[:-1]))


def picker(places: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Give what picks the values at these places out of a sequence, without a step for each.

    Examples
    --------
    >>> picker([2, 0])("abc"), picker([1])("abc"), picker([])("abc")
    (('c', 'a'), ('b',), ())
    """
    if len(places) < 2:
        return lambda values: tuple([values[place] for place in places])
    return itemgetter(*places)


def places_of(numbers: Sequence[int], wanted: int) -> Sequence[int]:
    r"""Give the places where a number stands, in order.

    Examples
    --------
    >>> list(places_of(b"\x00\x01\x00", 0))
    [0, 2]
    """
    numpy = numpy_for(len(numbers))
    if numpy is None:
        return [place for place, number in enumerate(numbers) if number == wanted]
    found: Sequence[int] = array(
        "q", numpy.flatnonzero(vector_of(numbers, numpy) == wanted).astype("q").tobytes()
    )
    return found


def standing(numbers: Sequence[int], wanted: int) -> Iterator[int]:
    r"""Yield the places where a number stands, in order; nothing is found before it is asked for.

    Examples
    --------
    >>> list(standing(b"\x00\x01\x00", 0))
    [0, 2]
    """
    try:
        place = -1
        while True:
            place = numbers.index(wanted, place + 1)
            yield place
    except ValueError:
        return


def gathered(numbers: Sequence[int]) -> dict[int, Sequence[int]]:
    """Give the places of each number, in the order in which they first stand.

    Examples
    --------
    >>> {number: list(places) for number, places in gathered(array("i", [2, -1, 2])).items()}
    {2: [0, 2], -1: [1]}
    """
    if numpy_for(len(numbers)) is not None:
        counts = tally(numbers)
        if len(counts) == 1:
            return {number: range(len(numbers)) for number in counts}
        if len(counts) <= FEW:
            return {number: places_of(numbers, number) for number in counts}
    return _gathered(numbers)


def gathered_pairs(
    ones: Sequence[int], others: Sequence[int]
) -> dict[tuple[int, int], Sequence[int]]:
    """Give the places of each pair of numbers, in the order in which they first stand."""
    numpy = numpy_for(len(ones))
    if numpy is None:
        return _gathered(zip(ones, others, strict=True))
    found = gathered(_joined(ones, others, numpy))
    return {(number >> 8, number & 255): places for number, places in found.items()}


def _gathered(keys: Iterable[Any]) -> dict[Any, Sequence[int]]:
    found: dict[Any, Sequence[int]] = {}
    for place, key in enumerate(keys):
        found.setdefault(key, []).append(place)  # type: ignore[attr-defined]
    return found


def _joined(ones: Sequence[int], others: Sequence[int], numpy: Any) -> array[int]:
    # The second number is a byte: both fit into one.
    joined = vector_of(ones, numpy).astype("q")
    joined *= 256
    joined += vector_of(others, numpy)
    return array("q", joined.tobytes())


def first_and_last(numbers: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Give the first and the last place of each number, in the order of the first.

    Examples
    --------
    >>> first_and_last(array("i", [5, 7, 5]))
    {5: (0, 2), 7: (1, 1)}
    """
    numpy = numpy_for(len(numbers))
    if numpy is None:
        places = range(len(numbers))  # of equal keys the last stays, in the place of the first
        last = dict(zip(numbers, places, strict=True))
        first = dict(zip(reversed(numbers), reversed(places), strict=True))
        return {number: (first[number], place) for number, place in last.items()}
    held = vector_of(numbers, numpy)
    few = _counts(held, numpy)
    if few is not None:
        end = len(numbers) - 1
        found = {
            number: (int((held == number).argmax()), end - int((held[::-1] == number).argmax()))
            for number in few
        }
        return dict(sorted(found.items(), key=lambda each: each[1][0]))
    values, starts = numpy.unique(held, return_index=True)
    _, ends = numpy.unique(held[::-1], return_index=True)
    order = numpy.argsort(starts, kind="stable")
    ends = len(numbers) - 1 - ends
    return {
        number: (start, end)
        for number, start, end in zip(
            values[order].tolist(), starts[order].tolist(), ends[order].tolist(), strict=True
        )
    }


def mapped(numbers: Sequence[int], table: Mapping[int, int]) -> array[int]:
    """Give what a table makes of each number; every number is in it.

    One byte is used for each where that is enough.

    Examples
    --------
    >>> mapped(array("i", [-1, 4, 4]), {-1: 9, 4: 0})
    array('B', [9, 0, 0])
    """
    small = all(0 <= number < 256 for number in table.values())
    typecode = "B" if small else "q"
    if small and _are_bytes(numbers):
        told = bytearray(256)
        for number, value in table.items():
            told[number] = value
        return array("B", bytes(numbers).translate(told))
    numpy = numpy_for(len(numbers))
    if numpy is None or not table:
        return array(typecode, map(table.__getitem__, numbers))
    values = numpy.fromiter(table.values(), typecode, len(table))
    if len(table) == 1:
        return array(typecode, values.tobytes()) * len(numbers)
    held, low = vector_of(numbers, numpy), min(table)
    if max(table) - low <= CLOSE:
        close = numpy.zeros(max(table) - low + 1, typecode)
        close[numpy.fromiter(table, "q", len(table)) - low] = values
        return array(typecode, close[held.astype("q") - low if low else held].tobytes())
    known = numpy.fromiter(table, "q", len(table))
    order = numpy.argsort(known)
    places = numpy.searchsorted(known[order], held)
    return array(typecode, values[order][places].tobytes())


def _are_bytes(numbers: Sequence[int]) -> bool:
    return isinstance(numbers, bytes | bytearray) or getattr(numbers, "typecode", "") == "B"


class RunningSums:
    """What weights add up to along a sequence of numbers, and the place where a sum is passed.

    Only every `BLOCK`-th sum is kept, so that it takes next to no room.

    Parameters
    ----------
    numbers : sequence of int
    weights : mapping
        Number -> its weight, from 0.

    Examples
    --------
    >>> sums = RunningSums(array("i", [0, 1, 0]), {0: 2, 1: 5})
    >>> sums.total, sums.at(0), sums.at(2), sums.at(8)
    (9, (0, 0), (1, 2), (2, 7))
    """

    __slots__ = ("_ends", "_numbers", "_weights", "total")

    def __init__(self, numbers: Sequence[int], weights: dict[int, int]) -> None:
        self._numbers = numbers
        self._weights = weights
        self._ends = array("q", accumulate(self._blocks()))
        self.total = self._ends[-1] if self._ends else 0

    def _blocks(self) -> Iterable[int]:
        numbers, weights = self._numbers, self._weights
        numpy = numpy_for(len(numbers))
        if numpy is None or not weights:
            return (
                sum(map(weights.__getitem__, numbers[start : start + BLOCK]))
                for start in range(0, len(numbers), BLOCK)
            )
        held = vector_of(mapped(numbers, weights), numpy).astype("q")
        sums: list[int] = numpy.add.reduceat(held, range(0, len(numbers), BLOCK)).tolist()
        return sums

    def at(self, sum_: int) -> tuple[int, int]:
        """Give the place within whose weight a sum lies, and what the weights before it add up to.

        Past the end that is the length, and the total.
        """
        block = bisect_right(self._ends, sum_)
        before = self._ends[block - 1] if block else 0
        weights = self._weights
        for place in range(block * BLOCK, min((block + 1) * BLOCK, len(self._numbers))):
            after = before + weights[self._numbers[place]]
            if after > sum_:
                return place, before
            before = after
        return len(self._numbers), self.total

    def before(self, place: int) -> int:
        """Give what the weights before a place add up to.

        Examples
        --------
        >>> RunningSums(array("i", [0, 1, 0]), {0: 2, 1: 5}).before(2)
        7
        """
        block = place // BLOCK
        sum_ = self._ends[block - 1] if block else 0
        weights = self._weights
        return sum_ + sum(weights[number] for number in self._numbers[block * BLOCK : place])


__all__ = [
    "BLOCK",
    "LONG",
    "Identities",
    "RunningSums",
    "first_and_last",
    "gathered",
    "gathered_pairs",
    "mapped",
    "numpy_for",
    "places_of",
    "run_count",
    "runs",
    "standing",
    "tally",
    "tally_pairs",
    "vector_of",
]
