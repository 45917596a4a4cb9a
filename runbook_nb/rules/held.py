"""One column as it is held: a list of Python values, a numpy array, Arrow data, or categories.

Whatever holds it, a column is read as canonical Python values: numpy scalars as Python's, a
pandas Timestamp as a datetime unless its nanoseconds would be lost, and of a frame every NA as
None, since frames cannot tell a null from a NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import compress
from operator import itemgetter
from typing import Any, Final, NamedTuple, overload

from runbook_nb._frozen import ATOMS, MadeOnDemand, classes_of
from runbook_nb._json import plain_scalar
from runbook_nb._text import MISSING
from runbook_nb.rules.facts import snapshot

#: Classes whose values are canonical as they are, in a frame as well.
SETTLED: Final = (ATOMS - {float, complex, Decimal}) | {type(MISSING)}

#: So few cells of a series, or of Arrow data, are read one by one.
FEW: Final = 64

#: How many rows are made at a time when all are looked at one after the other.
CHUNK: Final = 1024


class Vector(NamedTuple):
    """A column as numpy has it.

    Attributes
    ----------
    data : numpy.ndarray
        The values; what stands where a value is null means nothing.
    nulls : numpy.ndarray or None
        True where the value is null; None when none is.
    zone : object
        The time zone of instants that have one (their ``data`` is UTC); else None.
    days : bool
        Whether the numbers are dates, as days since 1970-01-01.
    """

    data: Any
    nulls: Any
    zone: Any = None
    days: bool = False


def canonical(value: Any) -> Any:
    """Give the canonical Python value of one cell of a frame.

    Examples
    --------
    >>> canonical(float("nan")) is None, canonical(2.0), canonical([1])
    (True, 2.0, [1])
    """
    cls = type(value)
    if cls is float:
        return value if value == value else None  # noqa: PLR0124 - only NaN differs from itself
    if cls in SETTLED:
        return value
    if isinstance(value, Decimal):
        return None if value.is_nan() else value
    if cls is complex:
        return value if value == value else None  # noqa: PLR0124
    module = cls.__module__.partition(".")[0]
    if module == "pandas":
        return _canonical_pandas(value, cls.__name__)
    if module == "numpy":
        plain = plain_scalar(value)
        if plain is not value:
            if cls.__name__ == "datetime64" and plain is not None:
                return instants([value])[0]
            if cls.__name__ == "timedelta64" and plain is not None:
                return lengths([value])[0]
            return canonical(plain)
    return snapshot(value)


def _canonical_pandas(value: Any, name: str) -> Any:
    if name in ("NaTType", "NAType"):
        return None
    give = {"Timestamp": "to_pydatetime", "Timedelta": "to_pytimedelta"}.get(name)
    if give is None:
        return snapshot(value)
    lost = value.nanosecond if name == "Timestamp" else value.nanoseconds
    if lost:
        return value
    try:
        return getattr(value, give)()
    except (OverflowError, ValueError):  # a year no datetime can hold
        return value


def instants(data: Any, zone: Any = None) -> list[Any]:
    """Give datetimes for ``datetime64`` values, None for NaT; with a zone they are its local time.

    Where a datetime would lose nanoseconds, or cannot hold the year, it is a pandas Timestamp.
    """
    import numpy as np

    data = np.asarray(data)
    coarse = data.astype("datetime64[us]")
    exact = _exact(data, coarse)
    found: list[Any] = coarse.tolist()
    if zone is not None:
        found = [_local(each, zone) for each in found]
    from runbook_nb.rules.dataframes import stamp_of

    for place in np.flatnonzero(~exact).tolist():
        found[place] = stamp_of(data[place], zone)
    return found


def lengths(data: Any) -> list[Any]:
    """Give timedeltas for ``timedelta64`` values, None for NaT."""
    import numpy as np

    data = np.asarray(data)
    coarse = data.astype("timedelta64[us]")
    found: list[Any] = coarse.tolist()
    from runbook_nb.rules.dataframes import span_of

    for place in np.flatnonzero(~_exact(data, coarse)).tolist():
        found[place] = span_of(data[place])
    return found


def _exact(data: Any, coarse: Any) -> Any:
    """Say where nothing is lost on the way to microseconds, and Python can hold the outcome."""
    import numpy as np

    whole = np.isnat(data) | (coarse.astype(data.dtype) == data)
    number = coarse.view("int64")
    if data.dtype.kind == "M":
        low, high = -62135596800000000, 253402300799999999  # years 1 and 9999
    else:
        low, high = -(2**63) + 1, 2**63 - 1  # fewer days than a timedelta can hold
    return whole & (np.isnat(data) | ((number >= low) & (number <= high)))


def _local(instant: Any, zone: Any) -> Any:
    from datetime import UTC, datetime

    if not isinstance(instant, datetime):
        return instant
    try:
        return instant.replace(tzinfo=UTC).astimezone(zone)
    except OverflowError:  # the first and last hours of all datetimes
        return instant.replace(tzinfo=UTC)


class Held(MadeOnDemand[Any]):
    """A column: a frozen sequence of canonical values, `MISSING` where a row has none."""

    __slots__ = ()

    def many(self, indices: Iterable[int]) -> list[Any]:
        """Give the values of some rows, in the order asked for."""
        raise NotImplementedError

    def one(self, index: int) -> Any:
        """Give the value of a row."""
        return self.many((index,))[0]

    def whole(self) -> list[Any]:
        """Give the values of all rows; the list is not to be changed."""
        return self.many(range(len(self)))

    def part(self, rows: range) -> Held:
        """Give the column of neighbouring rows alone."""
        return PlainColumn(self.many(rows))

    def vector(self) -> Vector | None:
        """Give the column as numpy has it, when it has it."""
        return None

    def arrow(self) -> Any:
        """Give the column as Arrow has it, when it has it; None otherwise."""
        return None

    @property
    def classes(self) -> frozenset[type] | None:
        """The exact classes of the values, where that is known; None otherwise."""
        return None

    @property
    def vector_type(self) -> str:
        """What the values are, in a word."""
        vector = self.vector()
        return "values" if vector is None else str(vector.data.dtype)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return self.many(range(*index.indices(len(self))))
        size = len(self)
        place = index + size if index < 0 else index
        if not 0 <= place < size:
            raise IndexError(f"row {index} of {size}")
        return self.one(place)

    def __iter__(self) -> Iterator[Any]:
        for start in range(0, len(self), CHUNK):
            yield from self.many(range(start, min(start + CHUNK, len(self))))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, {len(self)} values>"


class PlainColumn(Held):
    """A list of Python values."""

    __slots__ = ("_classes", "_values")

    def __init__(self, values: list[Any], classes: frozenset[type] | None = None) -> None:
        self._values = values
        self._classes = classes

    @classmethod
    def of_cells(cls, cells: list[Any]) -> PlainColumn:
        """Hold the cells of a frame: every NA as None, what could change as a snapshot."""
        classes = classes_of(cells)
        if classes <= SETTLED:
            return cls(cells, classes)
        if classes <= SETTLED | {float}:
            kept = [v if v == v else None for v in cells]  # noqa: PLR0124
            return cls(kept)
        return cls(list(map(canonical, cells)))

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def many(self, indices: Iterable[int]) -> list[Any]:
        """Give the values of some rows, in the order asked for."""
        if isinstance(indices, range) and indices.step == 1:
            return self._values[indices.start : indices.stop]
        if isinstance(indices, tuple | list) and len(indices) > 1:
            return list(itemgetter(*indices)(self._values))
        return list(map(self._values.__getitem__, indices))

    def one(self, index: int) -> Any:
        """Give the value of a row."""
        return self._values[index]

    def kept(self, selectors: Iterable[Any]) -> list[Any]:
        """Give the values of the rows whose selector is true."""
        return list(compress(self._values, selectors))

    def whole(self) -> list[Any]:
        """Give the list itself, which is not to be changed."""
        return self._values

    @property
    def classes(self) -> frozenset[type]:
        """The exact classes of the values."""
        if self._classes is None:
            self._classes = classes_of(self._values)
        return self._classes

    def __reduce__(self) -> tuple[Any, ...]:
        return (PlainColumn, (self._values,))


class ArrayColumn(Held):
    """A numpy array of truth values, numbers, instants or lengths of time, with its nulls."""

    __slots__ = ("_data", "_nulls", "_owner", "_zone")

    def __init__(self, data: Any, nulls: Any = None, zone: Any = None, owner: Any = None) -> None:
        self._data = data
        self._nulls = nulls
        self._zone = zone
        self._owner = owner  # a lazy copy of a frame stays one as long as somebody holds it

    def __len__(self) -> int:
        return len(self._data)

    def many(self, indices: Iterable[int]) -> list[Any]:
        """Give the values of some rows, in the order asked for."""
        import numpy as np

        where: Any
        if isinstance(indices, range) and indices.step == 1:
            where = slice(indices.start, indices.stop)
        elif isinstance(indices, tuple) and len(indices) == 1:  # one cell: nothing to gather
            if self._nulls is not None and self._nulls[indices[0]]:
                return [None]
            where = slice(indices[0], indices[0] + 1)
        else:
            where = indices if isinstance(indices, np.ndarray) else np.array([*indices], dtype="i8")
        data = self._data[where]
        if data.dtype.kind == "M":
            found = instants(data, self._zone)
        elif data.dtype.kind == "m":
            found = lengths(data)
        else:
            found = data.tolist()
            if data.dtype.kind == "f":
                for place in np.flatnonzero(np.isnan(data)).tolist():
                    found[place] = None
        if self._nulls is not None:
            for place in np.flatnonzero(self._nulls[where]).tolist():
                found[place] = None
        return found

    def part(self, rows: range) -> Held:
        """Give the column of neighbouring rows alone, without copying it."""
        where = slice(rows.start, rows.stop)
        nulls = None if self._nulls is None else self._nulls[where]
        return ArrayColumn(self._data[where], nulls, self._zone, self._owner)

    def vector(self) -> Vector:
        """Give the array and where it is null."""
        import numpy as np

        nulls, data = self._nulls, self._data
        if data.dtype.kind == "f":
            nan = np.isnan(data)
            nulls = nan if nulls is None else nulls | nan
        elif data.dtype.kind in "mM":
            nat = np.isnat(data)
            nulls = nat if nulls is None else nulls | nat
        return Vector(data, nulls if nulls is not None and nulls.any() else None, self._zone)

    def __reduce__(self) -> tuple[Any, ...]:
        return (ArrayColumn, (self._data, self._nulls, self._zone))


class SeriesColumn(Held):
    """A pandas series whose values cannot be changed: taken out when they are first looked at."""

    __slots__ = ("_made", "_series", "_take")

    def __init__(self, series: Any, take: Callable[[Any], Held]) -> None:
        self._series = series
        self._take = take
        self._made: Held | None = None

    def __len__(self) -> int:
        return len(self._series)

    def made(self) -> Held:
        """Give the column in the form it is judged in."""
        if self._made is None:
            self._made = self._take(self._series)
        return self._made

    def many(self, indices: Iterable[int]) -> list[Any]:
        """Give the values of some rows, in the order asked for."""
        places = indices if isinstance(indices, Sequence) else list(indices)
        if self._made is None and len(places) <= FEW:
            return [canonical(self._series.iloc[place]) for place in places]
        return self.made().many(places)

    def part(self, rows: range) -> Held:
        """Give the column of neighbouring rows alone."""
        if self._made is not None:
            return self._made.part(rows)
        return SeriesColumn(self._series.iloc[rows.start : rows.stop], self._take)

    def whole(self) -> list[Any]:
        """Give the values of all rows; the list is not to be changed."""
        return self.made().whole()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_same, (self.made(),))


def _same(column: Held) -> Held:
    return column


class CategoryColumn(Held):
    """Few values, and per row which of them; null where it is none."""

    __slots__ = ("_codes", "_words")

    def __init__(self, codes: Any, words: Held) -> None:
        self._codes = codes
        self._words = words

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def codes(self) -> Any:
        """Per row the place among the words, -1 where it is null: a numpy array."""
        return self._codes

    @property
    def words(self) -> Held:
        """The values that occur, each once."""
        return self._words

    def part(self, rows: range) -> Held:
        """Give the column of neighbouring rows alone, without copying it."""
        return CategoryColumn(self._codes[rows.start : rows.stop], self._words)

    def many(self, indices: Iterable[int]) -> list[Any]:
        """Give the values of some rows, in the order asked for."""
        words = [*self._words.whole(), None]  # the code of a null is -1, the last
        return [words[self._codes[index]] for index in indices]

    def __reduce__(self) -> tuple[Any, ...]:
        return (CategoryColumn, (self._codes, self._words))


class ArrowColumn(Held):
    """Arrow data, which nobody can change."""

    __slots__ = ("_data",)

    def __init__(self, data: Any) -> None:
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def many(self, indices: Iterable[int]) -> list[Any]:
        """Give the values of some rows, in the order asked for."""
        if isinstance(indices, range) and indices.step == 1:
            return _arrow_values(self._data.slice(indices.start, len(indices)))
        places = indices if isinstance(indices, Sequence) else [*indices]
        if len(places) <= FEW:  # taking joins all chunks first, however few are wanted
            cut = self._data.slice
            return [v for place in places for v in _arrow_values(cut(int(place), 1))]
        import pyarrow as pa

        return _arrow_values(self._data.take(pa.array([*places], pa.int64())))

    def part(self, rows: range) -> Held:
        """Give the column of neighbouring rows alone, without copying it."""
        return ArrowColumn(self._data.slice(rows.start, len(rows)))

    def arrow(self) -> Any:
        """Give the data."""
        return self._data

    def __reduce__(self) -> tuple[Any, ...]:
        return (ArrowColumn, (self._data,))


def _arrow_values(part: Any) -> list[Any]:
    import pyarrow as pa

    kind = part.type
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return _arrow_times(part, kind)
    found: list[Any] = part.to_pylist()
    if pa.types.is_floating(kind):
        return [v if v == v else None for v in found]  # noqa: PLR0124
    if pa.types.is_nested(kind) or pa.types.is_dictionary(kind):
        return list(map(canonical, found))
    return found


def _arrow_times(part: Any, kind: Any) -> list[Any]:
    import numpy as np
    import pyarrow as pa

    letter = "M" if pa.types.is_timestamp(kind) else "m"
    numbers = part.cast(pa.int64()).fill_null(np.iinfo("int64").min)
    data = np.asarray(numbers).view(f"{letter}8[{kind.unit}]")
    if letter == "m":
        return lengths(data)
    return instants(data, None if kind.tz is None else zone_of(kind.tz))


def zone_of(name: str) -> Any:
    """Give the time zone an Arrow type names: a name of the zone database, or an offset."""
    import pyarrow as pa

    return pa.lib.string_to_tzinfo(name)
