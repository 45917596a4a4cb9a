"""Where the rows of a walk are, both ways: from a row to its event, from an event to its row.

Record layer. Nothing goes through the rows: rows are summed by shape and branch, and so are those
of a kind, the decisions say. A row of a million branches is found by a search in the sums.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, Final, Literal, NamedTuple

from runbook_nb.record.log import ROW_TYPES, Event, FanOut, Log
from runbook_nb.record.places import HEAD, Part
from runbook_nb.record.rows import Branch, Rows
from runbook_nb.record.shapes import ShapeFacts, facts_of
from runbook_nb.record.tallies import RunningSums

#: Kinds of code whose row tells a decision, and whose row tells a change of state.
DECISIONS: Final = frozenset({"decision", "choice", "selection", "choices"})
WRITES: Final = frozenset({"write", "update", "append", "delete"})

#: What a row around those of a track is: it tells how a fan-out spread, that a branch was
#: entered, what came in, that it was left; empty for a row of an event.
Frame = Literal["", "fork", "enter", "received", "leave"]


class Spot(NamedTuple):
    """Where a row is.

    Attributes
    ----------
    chain : tuple of (FanOut, int, str)
        The branches around it, the outermost first, each with the path before it.
    part : Part
        Its track.
    place : int
        Which event of the track it tells of; -1 before the first, the number of events behind
        the last.
    frame : str
        What the row is, where it tells of no event.
    """

    chain: tuple[Branch, ...]
    part: Part
    place: int
    frame: Frame = ""

    @property
    def event(self) -> Event | None:
        """The event it tells of; None for the rows around a branch."""
        return self.part.facts.events[self.place] if self.frame in ("", "fork") else None

    @property
    def branch(self) -> Branch | None:
        """The innermost branch of a fan-out around it; None outside any."""
        return next((one for one in reversed(self.chain) if one[0].is_fan_out), None)


class Spots:
    """Finds where rows are.

    Parameters
    ----------
    rows : Rows
        The rows of a walk.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> walk = flow_chart("c", lambda s: s.set("n", 1), id="a").build().run_sync().walk
    >>> spots = walk.spots
    >>> spots.at(1).event.code.kind, spots.row(spots.at(1))
    ('write', 1)
    """

    __slots__ = ("_rows",)

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    @property
    def rows(self) -> Rows:
        """The rows it finds places of."""
        return self._rows

    def at(self, step: int) -> Spot:
        """Find the place of a row.

        Raises
        ------
        IndexError
            There is no such row.
        """
        if not 0 <= step < self._rows.count():
            raise IndexError(step)
        only, part = self._rows.only, self._rows.own()
        chain = () if only is None else (only,)
        skip = step
        while True:
            if chain and chain[-1][0].is_fan_out:
                if skip < HEAD:
                    return Spot(chain, part, -1, "received" if skip else "enter")
                skip -= HEAD
            place, skip = self._event_at(part, skip, root=not chain)
            if place == len(part.facts.events):
                return Spot(chain, part, place, "leave")
            event = part.facts.events[place]
            if event.code.kind != "fan_out":
                return Spot(chain, part, place)
            if skip == 0:
                return Spot(chain, part, place, "fork")
            fan = fan_of(part, event)
            index, before = self._rows.sums_of(fan).at(skip - 1)
            skip -= 1 + before
            branch = (fan, index, part.prefix)
            chain, part = (*chain, branch), self._rows.part_of(*branch)

    def _event_at(self, part: Part, skip: int, *, root: bool) -> tuple[int, int]:
        """Give the event within whose rows a row lies, and how many of those are before it."""
        if root:
            ends = self._rows.root_ends()
            place = bisect_right(ends, skip)
            return place, skip - (ends[place - 1] if place else 0)
        for place, event in enumerate(part.facts.events):
            size = self._size(part, event)
            if skip < size:
                return place, skip
            skip -= size
        return len(part.facts.events), skip

    def _size(self, part: Part, event: Event) -> int:
        if event.code.kind == "fan_out":
            return self._rows.rows_of(fan_of(part, event))
        return int(event.code.kind in ROW_TYPES)

    def row(self, spot: Spot) -> int:
        """Give the number of the row that tells of a place, or of the first one behind it."""
        step = self._start(spot.chain)
        inside = bool(spot.chain and spot.chain[-1][0].is_fan_out)
        if spot.frame == "enter" or not inside:
            return step + self._before(spot.part, spot.place, root=not spot.chain)
        if spot.frame == "received":
            return step + 1
        return step + HEAD + self._before(spot.part, spot.place, root=False)

    def start(self, branch: Branch, around: tuple[Branch, ...] = ()) -> int:
        """Give the number of the first row of a branch, by the branches around it."""
        return self._start((*around, branch))

    def _start(self, chain: tuple[Branch, ...]) -> int:
        only, step = self._rows.only, 0
        part, inner = self._rows.own(), chain
        if only is not None:
            inner = chain[1:]
            step = HEAD if inner and only[0].is_fan_out else 0
        root = only is None
        for depth, (fan, index, _) in enumerate(inner):
            place = place_of_fan(part, fan)
            step += self._before(part, place, root=root) + 1 + self._rows.sums_of(fan).before(index)
            if depth < len(inner) - 1 and fan.is_fan_out:
                step += HEAD
            part, root = self._rows.part_of(fan, index, part.prefix), False
        return step

    def _before(self, part: Part, place: int, *, root: bool) -> int:
        if place <= 0:
            return 0
        if root and self._rows.only is None:
            return self._rows.root_ends()[place - 1]
        return sum(self._size(part, event) for event in part.facts.events[:place])


class Marks:
    """Finds the rows of one kind among all rows.

    Parameters
    ----------
    rows : Rows
    kinds : frozenset of str
        Kinds of code: `DECISIONS`, `WRITES`.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> walk = flow_chart("c", lambda s: s.set("n", 1), id="a").build().run_sync().walk
    >>> marks = walk.marks(WRITES)
    >>> marks.total, marks.at(0), marks.before(1)
    (1, 1, 0)
    """

    __slots__ = ("_ends", "_kinds", "_log", "_rows", "_spots", "_sums")

    def __init__(self, log: Log, rows: Rows, kinds: frozenset[str]) -> None:
        self._log = log
        self._rows = rows
        self._spots = Spots(rows)
        self._kinds = kinds
        self._sums: dict[int, RunningSums] = {}
        self._ends: array[int] | None = None

    @property
    def total(self) -> int:
        """How many there are."""
        own = self._rows.own()
        return self._in(own, len(own.facts.events))

    def at(self, number: int) -> int:
        """Give the row of the mark of a number, from 0.

        Raises
        ------
        IndexError
            There is no such mark.
        """
        if not 0 <= number < self.total:
            raise IndexError(number)
        only, part = self._rows.only, self._rows.own()
        chain: tuple[Branch, ...] = () if only is None else (only,)
        while True:
            place, number = self._event_at(part, number, root=not chain)
            event = part.facts.events[place]
            if event.code.kind != "fan_out":
                return self._spots.row(Spot(chain, part, place))
            fan = fan_of(part, event)
            index, before = self._sums_of(fan).at(number)
            number -= before
            branch = (fan, index, part.prefix)
            chain, part = (*chain, branch), self._rows.part_of(*branch)

    def before(self, step: int) -> int:
        """Count the marks among the rows before a row."""
        if step >= self._rows.count():
            return self.total
        spot = self._spots.at(max(step, 0))
        only, part = self._rows.only, self._rows.own()
        found = 0
        for fan, index, _ in spot.chain[0 if only is None else 1 :]:
            found += self._in(part, place_of_fan(part, fan)) + self._sums_of(fan).before(index)
            part = self._rows.part_of(fan, index, part.prefix)
        return found + self._in(part, max(spot.place, 0))

    def _event_at(self, part: Part, number: int, *, root: bool) -> tuple[int, int]:
        if root:
            ends = self._root_ends()
            place = bisect_right(ends, number)
            return place, number - (ends[place - 1] if place else 0)
        for place, size in enumerate(self._sizes(part.facts, part)):
            if number < size:
                return place, number
            number -= size
        raise IndexError(number)

    def _in(self, part: Part, until: int) -> int:
        """Count the marks of a track's first events."""
        if self._rows.only is None and part.facts is self._rows.root_facts():
            return self._root_ends()[until - 1] if until else 0
        sizes = self._sizes(part.facts, part)
        return sum(size for _, size in zip(range(until), sizes, strict=False))

    def _sizes(self, facts: ShapeFacts, part: Part) -> Iterator[int]:
        for event in facts.events:
            if event.code.kind == "fan_out":
                yield self._sums_of(fan_of(part, event)).total
            else:
                yield int(event.code.kind in self._kinds)

    def _root_ends(self) -> array[int]:
        if self._ends is None:
            own = Part(self._rows.root_facts(), self._log.root.values, 0, "")
            self._ends = array("q", accumulate(self._sizes(own.facts, own)))
        return self._ends

    def _sums_of(self, fan: FanOut) -> RunningSums:
        found = self._sums.get(id(fan))
        if found is None:
            plain, nested = {-1: 0}, False
            for number in fan.shape_counts():
                facts = facts_of(self._log, self._log.shapes[number])
                plain[number] = sum(event.code.kind in self._kinds for event in facts.events)
                nested = nested or bool(facts.fan_outs)
            numbers = fan.shape_numbers()
            if nested:  # how many there are depends on what fanned out inside
                numbers = array("q", (self._in_branch(fan, i) for i in range(len(numbers))))
                plain = {many: many for many in set(numbers)}
            found = self._sums[id(fan)] = RunningSums(numbers, plain)
        return found

    def _in_branch(self, fan: FanOut, index: int) -> int:
        if fan.shape(index) is None:
            return 0
        part = self._rows.part_of(fan, index, "")
        return sum(self._sizes(part.facts, part))


def fan_of(part: Part, event: Event) -> FanOut:
    """Give what spread at an event of a track."""
    fan: Any = part.values[part.offset + event.at]
    return fan  # type: ignore[no-any-return]


def place_of_fan(part: Part, fan: FanOut) -> int:
    """Give which event of a track something spread at."""
    for place, event in enumerate(part.facts.events):
        if event.code.kind == "fan_out" and fan_of(part, event) is fan:
            return place
    raise LookupError(fan.stage.id)


__all__ = ["DECISIONS", "WRITES", "Marks", "Spot", "Spots", "fan_of", "place_of_fan"]
