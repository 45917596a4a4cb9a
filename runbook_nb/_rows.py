"""Rows of atoms, kept as columns: a row is made when somebody looks at it.

Base layer. Rows that a run goes over are a copy of what it was given, and a dict for each of them
is most of what a recorded run holds. A column costs one reference per row, and the garbage
collector has nothing to look at there.
"""

from __future__ import annotations

import os
import threading
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from operator import eq, itemgetter
from typing import Any, Final, cast, overload

from runbook_nb._frozen import ATOMS, FrozenDict, Immutable, classes_of, freeze, is_flat

#: How many rows are taken apart at once, and how many are made.
_PART: Final = 2048
_MADE: Final = 256

#: Of more layouts than this the rows share too little to be kept by column.
_MOST_LAYOUTS: Final = 256

#: A row that several threads look at first is one object for all of them.
_KEEPING: Final = threading.Lock()
if hasattr(os, "register_at_fork"):  # no thread that held it goes on in the child
    os.register_at_fork(after_in_child=_KEEPING._at_fork_reinit)  # type: ignore[attr-defined]

#: The keys that rows have, in their order, and a column for each.
Layout = tuple[tuple[str, ...], list[list[Any]]]


class FrozenRows(Sequence[FrozenDict], Immutable):
    """Rows of atoms, as a sequence that cannot be changed; made by `frozen_rows`.

    A row that is looked at stays as it was handed out, so that it is always the same object.

    Parameters
    ----------
    size : int
        How many rows there are.
    layouts : list of Layout
        The distinct layouts of rows, each with the columns of its own rows.
    numbers, places : optional
        Per row the number of its layout, and where it stands in its columns; with one layout all
        stand where they are.

    Examples
    --------
    >>> rows = frozen_rows([{"age": 2}]); rows[0], rows[0] is rows[0], rows == [{"age": 2}]
    ({'age': 2}, True, True)
    """

    __slots__ = ("_kept", "_layouts", "_made_first", "_numbers", "_places", "_size")

    def __init__(
        self,
        size: int,
        layouts: list[Layout],
        numbers: Sequence[int] | None = None,
        places: Sequence[int] | None = None,
    ) -> None:
        self._size = size
        self._layouts = layouts
        self._numbers = numbers
        self._places = places
        #: The rows that somebody looked at, at their places; no list while nobody did.
        self._kept: list[FrozenDict | None] | None = None
        #: Few rows are copied sooner than made of their columns: for the first who wants them all.
        self._made_first: list[FrozenDict] | None = None

    def fresh(self, start: int, end: int) -> list[FrozenDict]:
        """Give rows to somebody who says which of them stay in use; see `keep`."""
        known = [] if self._kept is None else self._kept[start:end]
        if known and all(known):  # somebody has looked at each of them
            return cast("list[FrozenDict]", known)
        first, self._made_first = self._made_first, None
        if first is not None and start == 0 and end == self._size:
            made = first
        elif self._numbers is not None:
            made = list(map(self._made, range(start, end)))
        else:
            ((keys, columns),) = self._layouts
            parts = [column[start:end] for column in columns]
            if not parts:
                made = [FrozenDict() for _ in range(start, end)]
            else:
                made = list(map(FrozenDict, map(zip, repeat(keys), zip(*parts, strict=True))))
        if not known:
            return made
        return [row if was is None else was for was, row in zip(known, made, strict=True)]

    def keep(self, index: int, row: FrozenDict) -> FrozenDict:
        """Keep a row as it was handed out; give the one that was kept before, where one was."""
        with _KEEPING:
            if self._kept is None:
                self._kept = [None] * self._size
            kept = self._kept[index]
            if kept is None:
                kept = self._kept[index] = row
            return kept

    @property
    def kept(self) -> Mapping[int, FrozenDict]:
        """The rows that somebody looked at, by their places."""
        if self._kept is None:
            return {}
        return {place: row for place, row in enumerate(self._kept) if row is not None}

    @property
    def table(self) -> Layout | None:
        """The keys and the columns, where all rows have the same keys in the same order.

        They are to be read where they stand, never changed or handed on.
        """
        return self._layouts[0] if self._numbers is None else None

    def column(self, key: Any) -> list[Any] | None:
        """Give what every row has under a key, to be read only; None where one has no such key."""
        if self._numbers is None:
            keys, columns = self._layouts[0]
            return columns[keys.index(key)] if key in keys else None
        if all(key in keys for keys, _ in self._layouts):
            return self.under(key)
        return None

    def under(self, key: Any, places: Iterable[int] | None = None) -> list[Any]:
        """Give what stands under a key in some rows, in all of them for None; it is read only.

        It is None where a row has no such key, and no row is made for it.
        """
        found = self._under(key)
        return found if places is None else list(map(found.__getitem__, places))

    def _under(self, key: Any) -> list[Any]:
        if self._numbers is None:
            return self.column(key) or [None] * self._size
        found = [
            columns[keys.index(key)] if key in keys else None for keys, columns in self._layouts
        ]
        held = map(found.__getitem__, self._numbers)
        places = self._places or ()
        return [None if c is None else c[at] for c, at in zip(held, places, strict=True)]

    def each(self) -> Iterator[FrozenDict]:
        """Give every row to somebody who keeps none of them."""
        starts = range(0, self._size, _MADE)
        return chain.from_iterable(
            self.fresh(start, min(start + _MADE, self._size)) for start in starts
        )

    def _made(self, index: int) -> FrozenDict:
        at, number = index, 0
        if self._numbers is not None and self._places is not None:
            number, at = self._numbers[index], self._places[index]
        keys, columns = self._layouts[number]
        return FrozenDict(zip(keys, [column[at] for column in columns], strict=True))

    def _looked_at(self, start: int, end: int) -> list[FrozenDict]:
        with _KEEPING:
            rows = self.fresh(start, end)
            if self._kept is None:
                self._kept = [None] * self._size
            self._kept[start:end] = rows
        return rows

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> FrozenDict: ...
    @overload
    def __getitem__(self, index: slice) -> list[FrozenDict]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[place] for place in range(self._size)[index]]
        place = range(self._size)[index]
        row = None if self._kept is None else self._kept[place]
        return self.keep(place, self._made(place)) if row is None else row

    def __iter__(self) -> Iterator[FrozenDict]:
        starts = range(0, self._size, _MADE)
        return chain.from_iterable(
            self._looked_at(start, min(start + _MADE, self._size)) for start in starts
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        rows = other.each() if isinstance(other, FrozenRows) else other
        return self._size == len(other) and all(map(eq, self.each(), rows))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return (FrozenRows, (self._size, self._layouts, self._numbers, self._places))

    def __copy__(self) -> list[Any]:
        return list(map(dict, self.each()))

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return list(map(dict, self.each()))

    def __repr__(self) -> str:
        return repr(list(self.each()))


def frozen_rows(value: Any) -> Any:
    """Freeze a list as `freeze` does, plain dicts of atoms under texts as `FrozenRows`."""
    taken = None
    if value.__class__ is list and {dict}.issuperset(map(type, value)):
        taken = _taken_apart(value) if value else None
    return freeze(value, "items") if taken is None else taken


def _has_text_keys(rows: list[dict[Any, Any]]) -> bool:
    # Of 1 and True, or of a text and one of a subclass, a layout would know but one.
    return {str}.issuperset(map(type, chain.from_iterable(rows)))


def _taken_apart(rows: list[dict[str, Any]]) -> FrozenRows | None:
    """Take rows apart by layout and column; None when they share too little."""
    keys = tuple(rows[0])
    columns = columns_of(rows, keys, exact=True)
    if columns is not None:
        if not all(classes_of(column) <= ATOMS for column in columns):
            return None
        taken = FrozenRows(len(rows), [(keys, columns)])
        if len(rows) <= _MADE:
            taken._made_first = list(map(FrozenDict, rows))
        return taken
    if not is_flat(rows) or not _has_text_keys(rows):
        return None
    known: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    order: dict[tuple[str, ...], int] = {}
    numbers, places = bytearray(), array("I")
    for keys, row in zip(map(tuple, rows), rows, strict=True):
        alike = known.setdefault(keys, [])
        number = order.setdefault(keys, len(order))
        if number >= _MOST_LAYOUTS:
            return None
        numbers.append(number)
        places.append(len(alike))
        alike.append(row)
    layouts = [
        (keys, [list(map(itemgetter(key), alike)) for key in keys]) for keys, alike in known.items()
    ]
    return FrozenRows(len(rows), layouts, bytes(numbers), places)


def columns_of(
    rows: Sequence[Any], names: tuple[str, ...], *, exact: bool = False
) -> list[list[Any]] | None:
    """Take rows of one layout apart by column; None when they have several.

    With ``exact`` the keys of every row have to be texts, and of no subclass.

    Keys laid end to end equal the names over and over only when every row has all of them, in
    this order: a row with fewer would need another that has one of them twice.

    Examples
    --------
    >>> columns_of([{"a": 1, "b": 2}, {"a": 3, "b": 4}], ("a", "b"))
    [[1, 3], [2, 4]]
    """
    width = len(names)
    found: list[list[Any]] = [[] for _ in names]
    for start in range(0, len(rows), _PART):
        part = rows if len(rows) <= _PART else rows[start : start + _PART]
        size = len(part)
        keys = list(chain.from_iterable(part))
        if len(keys) != width * size or (exact and not classes_of(keys) <= {str}):
            return None
        for at, name in enumerate(names):
            if keys[at::width].count(name) != size:
                return None
        for name, column in zip(names, found, strict=True):
            column.extend(map(itemgetter(name), part))
    return found


__all__ = ["FrozenRows", "columns_of", "frozen_rows"]
