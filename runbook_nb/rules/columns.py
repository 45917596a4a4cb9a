"""Rows kept as columns: a frozen sequence whose rows are made when somebody looks at them.

What comes in as a frame stays one. What comes in as a list of mappings is taken apart by key, with
one small number per row for which keys it had, and in which order.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

from runbook_nb._frozen import FrozenDict, FrozenList, MadeOnDemand
from runbook_nb._text import MISSING
from runbook_nb.rules.held import CHUNK, Held, PlainColumn, Vector

#: One tuple of names per distinct layout, and per row the number of its own (None: all the first).
Layouts = tuple[tuple[str, ...], ...]
Numbers = bytes | array  # type: ignore[type-arg]


def smallest(numbers: Sequence[int], most: int) -> Numbers:
    r"""Keep numbers up to ``most`` in as few bytes each as they fit.

    Examples
    --------
    >>> smallest([0, 1], 1), smallest([0, 300], 300).typecode
    (b'\x00\x01', 'H')
    """
    if most < 256:
        return bytes(numbers)
    return array("H" if most < 65536 else "I", numbers)


class Columns(MadeOnDemand[FrozenDict]):
    """Rows kept as columns; made by `as_columns`.

    A frozen sequence of `FrozenDict`: a row is made when it is looked at, with the keys it had in
    the order it had them. Columns hold canonical Python values.

    Parameters
    ----------
    held : mapping
        Column by name.
    length : int
        How many rows there are.
    layouts, numbers : optional
        The distinct layouts, and per row the number of its own; every row has every column unless
        given.
    rows : sequence of FrozenDict, optional
        The rows themselves, where they share too little to be taken apart.
    labels : object, optional
        The labels of the rows in the frame they came from.

    Examples
    --------
    >>> rows = as_columns([{"host": "a", "age": 2}, {"host": "b"}])
    >>> rows.names, len(rows), rows[1], rows.column("age")[1]
    (('host', 'age'), 2, {'host': 'b'}, MISSING)
    """

    __slots__ = ("_held", "_layouts", "_length", "_names", "_numbers", "_rows", "labels")

    def __init__(
        self,
        held: Mapping[str, Held],
        length: int,
        layouts: Layouts | None = None,
        numbers: Numbers | None = None,
        *,
        rows: Sequence[FrozenDict] | None = None,
        names: tuple[str, ...] | None = None,
        labels: Any = None,
    ) -> None:
        self._held = dict(held)
        self._length = length
        self._names = tuple(held) if names is None else names
        self._layouts: Layouts = (self._names,) if layouts is None else layouts
        self._numbers = numbers
        self._rows = rows
        self.labels = labels

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order of first appearance."""
        return self._names

    @property
    def layouts(self) -> Layouts:
        """The distinct layouts of rows: which keys, in which order."""
        return self._layouts

    def layout_of(self, index: int) -> int:
        """Give which of the `layouts` a row has."""
        return 0 if self._numbers is None else self._numbers[index]

    def held(self, name: str) -> Held:
        """Give a column; one of `MISSING` when no row has the key."""
        found = self._held.get(name)
        if found is not None:
            return found
        if self._rows is not None and name in self._names:
            found = PlainColumn([row.get(name, MISSING) for row in self._rows])
        else:
            found = PlainColumn([MISSING] * self._length)
        self._held[name] = found
        return found

    def column(self, name: str) -> Sequence[Any]:
        """Give a column's values, `MISSING` where a row lacks the key.

        Examples
        --------
        >>> list(as_columns({"age": [2, float("nan")]}).column("age"))
        [2, None]
        """
        return self.held(name)

    def values(self, name: str, indices: Iterable[int]) -> list[Any]:
        """Give a column's values of some rows, in the order asked for."""
        if name not in self._names:
            return [MISSING for _ in indices]
        return self.held(name).many(indices)

    def is_full(self, name: str) -> bool:
        """Say whether every row has the key."""
        return self._rows is None and all(name in layout for layout in self._layouts)

    def rows(self, indices: Sequence[int]) -> Iterator[FrozenDict]:
        """Make some rows, a part of them at a time."""
        for start in range(0, len(indices), CHUNK):
            yield from self._made(indices[start : start + CHUNK])

    def part(self, rows: range) -> Columns:
        """Give neighbouring rows alone.

        Examples
        --------
        >>> list(as_columns({"age": [1, 2, 3]}).part(range(1, 3)))
        [{'age': 2}, {'age': 3}]
        """
        numbers = self._numbers if self._numbers is None else self._numbers[rows.start : rows.stop]
        kept = None if self._rows is None else self._rows[rows.start : rows.stop]
        held = {name: column.part(rows) for name, column in self._held.items()}
        return Columns(held, len(rows), self._layouts, numbers, rows=kept, names=self._names)

    def vector(self, name: str) -> Vector | None:
        """Give a column as a numpy array with its nulls; None when it is no such column."""
        return self.held(name).vector() if name in self._names else None

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> FrozenDict: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[FrozenDict]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return FrozenList(self._made(range(*index.indices(self._length))))
        place = index + self._length if index < 0 else index
        if not 0 <= place < self._length:
            raise IndexError(f"row {index} of {self._length}")
        if self._rows is not None:
            return self._rows[place]
        layout = self._layouts[self.layout_of(place)]
        return FrozenDict({name: self._held[name].one(place) for name in layout})

    def __iter__(self) -> Iterator[FrozenDict]:
        if self._rows is not None:
            yield from self._rows
            return
        yield from self.rows(range(self._length))

    def _made(self, indices: Sequence[int]) -> Iterator[FrozenDict]:
        if self._rows is not None:
            return map(self._rows.__getitem__, indices)
        if self._numbers is None:
            layout = self._layouts[0]
            parts = [self._held[name].many(indices) for name in layout]
            if not parts:
                return (FrozenDict() for _ in indices)
            return (FrozenDict(zip(layout, row, strict=True)) for row in zip(*parts, strict=True))
        values = {name: self._held[name].many(indices) for name in self._names}
        layouts = [self._layouts[self._numbers[index]] for index in indices]
        return (
            FrozenDict({name: values[name][place] for name in layout})
            for place, layout in enumerate(layouts)
        )

    def __copy__(self) -> Columns:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Columns:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        held = {} if self._rows is not None else {name: self._held[name] for name in self._names}
        return (
            _read_back,
            (
                held,
                self._length,
                self._layouts,
                self._numbers,
                self._rows,
                self._names,
                self.labels,
            ),
        )

    def __repr__(self) -> str:
        return f"<Columns, {self._length} rows of {', '.join(self._names) or 'nothing'}>"


def _read_back(*parts: Any) -> Columns:
    held, length, layouts, numbers, rows, names, labels = parts
    return Columns(held, length, layouts, numbers, rows=rows, names=names, labels=labels)


def as_columns(source: Any) -> Columns:
    """Take rows or a frame as `Columns`: as they are now, whatever their owner does later.

    A list of mappings keeps what it holds. Frames (a DataFrame, columns by name, an Arrow table)
    cannot tell a null from a NaN: any NA is None, and a column that is not there is missing.
    Integers with nulls stay integers where the frame keeps them as such.

    Parameters
    ----------
    source : DataFrame, mapping of columns, list of mappings, Arrow table or record batch
        One row per subject.

    Raises
    ------
    RuleError
        It is none of these, its columns are not equally long, or two are written alike.

    Examples
    --------
    >>> as_columns({"host": ["a", "b"], "age": [2, None]})[1]
    {'host': 'b', 'age': None}
    """
    from runbook_nb.rules.intake import take

    return take(source)


def rows_of(frame: Any) -> list[FrozenDict]:
    """Give the rows that row-wise judging of a frame reads: those of `as_columns`.

    Examples
    --------
    >>> rows_of({"age": [2, None]})
    [{'age': 2}, {'age': None}]
    """
    return list(as_columns(frame))
