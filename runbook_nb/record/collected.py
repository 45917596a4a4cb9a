"""Verdict rows collected from the slots of a fan-out: made when looked at, and knowing their item.

Record layer. A row names its subject, its verdict and some columns of its item, and nothing of that
has to be written down again: the record has it. What is kept per row is the number of its word.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, overload

from runbook_nb._frozen import FrozenDict, MadeOnDemand
from runbook_nb._rows import FrozenRows
from runbook_nb._text import MISSING
from runbook_nb.record.log import OK, FanOut
from runbook_nb.record.shapes import facts_of
from runbook_nb.record.tallies import mapped, places_of, tally
from runbook_nb.rules.columns import Columns
from runbook_nb.rules.held import CHUNK, Held, PlainColumn

#: The number of a branch that has no verdict, and so no row.
_NONE = 0


class VerdictRows(MadeOnDemand[FrozenDict]):
    """One row per branch that ended ``ok`` with a verdict, in item order.

    Attributes
    ----------
    fan_out : FanOut
        Whose branches the rows are about.
    names : tuple of str
        The columns of every row: the subject's, ``verdict``, then the others.
    """

    __slots__ = ("_numbers", "_subject", "_verdict", "_words", "fan_out", "names", "places")

    def __init__(
        self, fan_out: FanOut, subject: str, columns: Sequence[str], verdict: str = "verdict"
    ) -> None:
        self.fan_out = fan_out
        self._subject = subject
        self._verdict = verdict
        self.names = (subject, verdict, *(n for n in columns if n not in (subject, verdict)))
        words: dict[str, int] = {"": _NONE}
        table: dict[int, int] = {}
        numbers = fan_out.shape_numbers()
        for number in fan_out.shape_counts():
            route = facts_of(fan_out.log, fan_out.log.shapes[number]).route
            table[number] = _NONE if not route else words.setdefault(route, len(words))
        if fan_out.begun_count < len(fan_out):
            table[-1] = _NONE
        self._words = tuple(words)
        words_of = mapped(numbers, table)
        #: Item of each row; None where row and item have one number.
        self.places: Sequence[int] | None = None
        if fan_out.status_count(OK) < len(fan_out) or _NONE in table.values():
            kept = [place for place in fan_out.ended_as(OK) if words_of[place] != _NONE]
            self.places = array("q", kept)
            words_of = array(words_of.typecode, map(words_of.__getitem__, kept))
        self._numbers = words_of

    @property
    def declared(self) -> tuple[str, ...]:
        """What they were made with besides their fan-out: subject, verdict and the other names."""
        own = (self._subject, self._verdict)
        return (*own, *(name for name in self.names if name not in own))

    def item_of(self, row: int) -> int:
        """Give the index of the item that a row is about."""
        return row if self.places is None else self.places[row]

    def counts(self) -> dict[str, int]:
        """Count the rows of each verdict, in the order they first appear."""
        if self.places is not None:
            return {self._words[number]: times for number, times in tally(self._numbers).items()}
        counts = dict.fromkeys(self._words[1:], 0)
        fan = self.fan_out
        for number, times in fan.shape_counts().items():
            counts[facts_of(fan.log, fan.log.shapes[number]).route or ""] += times
        return counts

    def rows_of(self, word: str) -> Sequence[int]:
        """Give the places of the rows with a verdict."""
        return places_of(self._numbers, self._words.index(word)) if word in self._words else ()

    def column(self, name: str) -> Sequence[Any]:
        """Give what stands under a name in each row; None where the item has nothing there."""
        if name == self._verdict:
            return list(map(self._words.__getitem__, self._numbers))
        return self._cells(name, self.places)

    def held(self, name: str) -> Sequence[Any]:
        """Give what stands under a name in each item, also in those without a row."""
        items = self.fan_out.items
        if items.__class__ is FrozenRows:
            return items.under(name)
        return items.held(name) if isinstance(items, Columns) else self._cells(name, None)

    def _cells(self, name: str, places: Sequence[int] | None) -> Sequence[Any]:
        """Give what stands under a name in some items, in all of them for None."""
        items = self.fan_out.items
        if items.__class__ is FrozenRows:
            return items.under(name, places)
        if isinstance(items, Columns):
            held = items.held(name) if places is None else items.values(name, places)
            return without_missing(held)
        some = items if places is None else map(items.__getitem__, places)
        return [self._value(item, name) for item in some]

    def _own_items(self) -> Iterator[Any]:
        items = self.fan_out.items
        if isinstance(items, FrozenRows):  # a row of verdicts keeps none of the items
            each = items.each()
            return each if self.places is None else map(list(each).__getitem__, self.places)
        return iter(items) if self.places is None else map(items.__getitem__, self.places)

    def _value(self, item: Any, name: str) -> Any:
        if isinstance(item, Mapping):
            return item.get(name)
        return item if name == self._subject else None

    def row_of(self, item: Any, word: str | None) -> FrozenDict:
        """Make the row of an item with a verdict."""
        value, verdict = self._value, self._verdict
        return FrozenDict(
            {name: word if name == verdict else value(item, name) for name in self.names}
        )

    def _row(self, item: Any, number: int) -> FrozenDict:
        return self.row_of(item, self._words[number])

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> FrozenDict: ...
    @overload
    def __getitem__(self, index: slice) -> list[FrozenDict]: ...
    def __getitem__(self, index: int | slice) -> FrozenDict | list[FrozenDict]:
        if isinstance(index, slice):
            return list(self.some(range(len(self))[index]))
        place = range(len(self))[index]
        items, item = self.fan_out.items, self.item_of(place)
        row = items.fresh(item, item + 1)[0] if isinstance(items, FrozenRows) else items[item]
        return self._row(row, self._numbers[place])

    def some(self, rows: Sequence[int]) -> Iterator[FrozenDict]:
        """Make the rows at some places, a part of them at a time, column by column."""
        starts = range(0, len(rows), CHUNK)
        return chain.from_iterable(self._part(rows[start : start + CHUNK]) for start in starts)

    def _part(self, rows: Sequence[int]) -> Iterator[FrozenDict]:
        cells = zip(*self.cells(rows), strict=True)
        return map(FrozenDict, map(zip, repeat(self.names), cells))

    def cells(self, rows: Sequence[int]) -> list[Sequence[Any]]:
        """Give what stands in some rows, column by column."""
        places = rows if self.places is None else [self.places[row] for row in rows]
        words = [self._words[self._numbers[row]] for row in rows]
        return [
            words if name == self._verdict else self._cells(name, places) for name in self.names
        ]

    def __iter__(self) -> Iterator[FrozenDict]:
        return map(self._row, self._own_items(), self._numbers)

    def __repr__(self) -> str:
        counts = ", ".join(f"{times} {word}" for word, times in self.counts().items())
        return f"<VerdictRows: {len(self)} rows{f' ({counts})' if counts else ''}>"


def without_missing(column: Sequence[Any]) -> Sequence[Any]:
    """Give a column with None where a row lacks it."""
    if column.__class__ is PlainColumn:
        types, column = column.classes, column.whole()
    elif column.__class__ is not list and isinstance(column, Held):
        return column  # of a frame: what it has not is null
    else:
        types = frozenset(map(type, column))
    if type(MISSING) not in types:
        return column
    return [None if value is MISSING else value for value in column]
