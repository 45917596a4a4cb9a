"""Verdict rows as an answer carries them: converted for JSON when looked at, counted before.

Bridge layer. A million rows are judged, counted and told of; some fifty are shown. So a row is
converted when somebody looks at it, and what is said of all of them is counted without that: where
the types of a column prove that JSON carries every value of it, nothing is looked at; where they do
not, each row is converted once to know, and let go again.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain, repeat
from typing import Any, Final, TypeGuard, overload

from runbook_nb._frozen import FrozenDict, MadeOnDemand
from runbook_nb._json import MAX_BITS, WireReport, are_plain, are_plain_parts, to_wire
from runbook_nb._text import MISSING
from runbook_nb.record.collected import VerdictRows, without_missing
from runbook_nb.rules.columns import Columns
from runbook_nb.rules.held import CategoryColumn, Held, Vector

#: Exact types of values that JSON carries in some form, whatever the value; of ints see below.
CARRIED: Final[frozenset[type]] = frozenset(
    {type(None), bool, int, float, str, Decimal, date, datetime, time, timedelta, type(MISSING)}
)

#: Types of Arrow columns of which JSON carries every value.
_ARROW: Final = frozenset(
    {"string", "large_string", "string_view", "bool", "null", "date32[day]", "float", "double"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
    | {f"{time}[ns]" for time in ("timestamp", "duration")}
)

#: Every int of a size below this is written.
_LARGEST: Final = 1 << MAX_BITS


class WireRows(MadeOnDemand[FrozenDict]):
    """Rows of a source in the order they are shown, each converted when looked at.

    Parameters
    ----------
    source : sequence of mappings
        The rows as they were written.
    order : sequence of int, optional
        Places in the source, as the rows are shown; None for all of them as they stand.
    counts : mapping
        Verdict -> how many rows have it, in the order they first appear.
    """

    __slots__ = ("_counts", "order", "source")

    def __init__(
        self,
        source: Sequence[Any],
        order: Sequence[int] | None = None,
        counts: Mapping[str, int] | None = None,
    ) -> None:
        self.source = source
        self.order = order
        self._counts = dict(counts or {})

    def counts(self) -> dict[str, int]:
        """Count the rows of each verdict, in the order they first appear."""
        return dict(self._counts)

    def place_of(self, row: int) -> int:
        """Give the place in the source of a row."""
        return row if self.order is None else self.order[row]

    def column(self, name: str) -> Sequence[Any] | None:
        """Give what stands under a name in each row, not converted; None where rows differ.

        A name that a row lacks is told as None.
        """
        source = self.source
        if not is_columnar(source) or name not in source.names:
            return None
        held = without_missing(source.column(name))
        if self.order is None:
            return held
        if isinstance(held, Held):
            return held.many(self.order)
        return list(map(held.__getitem__, self.order))

    def __len__(self) -> int:
        return len(self.source) if self.order is None else len(self.order)

    @overload
    def __getitem__(self, index: int) -> FrozenDict: ...
    @overload
    def __getitem__(self, index: slice) -> list[FrozenDict]: ...
    def __getitem__(self, index: int | slice) -> FrozenDict | list[FrozenDict]:
        if isinstance(index, slice):
            rows = range(len(self))[index]
            places = rows if self.order is None else [self.order[row] for row in rows]
            if isinstance(self.source, VerdictRows):
                names, cells = self.source.names, self.source.cells(places)
                if are_plain_parts([*names], [*chain.from_iterable(cells)]):
                    return list(map(FrozenDict, map(zip, repeat(names), zip(*cells, strict=True))))
            some = list(self._written(places))
            if are_plain(some):
                return [row if row.__class__ is FrozenDict else FrozenDict(row) for row in some]
            return list(map(_converted, some))
        return _converted(self.source[self.place_of(range(len(self))[index])])

    def __iter__(self) -> Iterator[FrozenDict]:
        return map(_converted, self.source if self.order is None else self._written(self.order))

    def _written(self, places: Sequence[int]) -> Iterable[Any]:
        """Give the rows at some places of the source, as they were written."""
        rows = self.source
        if isinstance(rows, VerdictRows):
            return rows.some(places)
        return rows.rows(places) if isinstance(rows, Columns) else map(rows.__getitem__, places)

    def __reduce__(self) -> tuple[Any, ...]:
        return (tuple, (list(self),))

    def __repr__(self) -> str:
        return f"<WireRows: {len(self)} rows>"


def _converted(row: Any) -> FrozenDict:
    return FrozenDict(to_wire(row))


def is_columnar(rows: Any) -> TypeGuard[VerdictRows | Columns]:
    """Say whether rows are held as columns, so that nothing need be made of each to count them."""
    return isinstance(rows, VerdictRows | Columns)


def read_rows(
    entries: Sequence[Any], rank: Sequence[str], report: WireReport
) -> tuple[WireRows, int]:
    """Read what may be verdict rows; give those that are, and how many are none.

    Parameters
    ----------
    entries : sequence
        What was written, row by row or as columns.
    rank : sequence of str
        Verdict words, worst first.
    report : WireReport
        Collects the values that JSON cannot carry.
    """
    order: Sequence[int] | None = None
    if is_columnar(entries) and _proven(entries):
        counts = _counted(entries)
    else:
        kept, counts = _touched(entries, report)
        if len(kept) < len(entries):
            order = kept
    dropped = 0 if order is None else len(entries) - len(order)
    if rank and len(counts) > 1:
        order = _ranked(entries, order, counts, rank)
        counts = Counter({word: counts[word] for word in sorted(counts, key=rank_of(rank))})
    return WireRows(entries, order, counts), dropped


def _touched(entries: Sequence[Any], report: WireReport) -> tuple[array[int], Counter[str]]:
    kept, counts = array("q"), Counter[str]()
    for place, entry in enumerate(entries):
        word = _verdict_of(entry, report)
        if word is not None:
            kept.append(place)
            counts[word] += 1
    return kept, counts


def _verdict_of(entry: Any, report: WireReport) -> str | None:
    try:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("verdict"), str):
            return None
        word: str = to_wire(entry, report)["verdict"]
    except Exception:  # whatever a foreign object does when it is looked at: it is no row
        return None
    return word


def _proven(rows: VerdictRows | Columns) -> bool:
    """Say whether the types in every column prove that JSON carries each value of it."""
    if any(name.__class__ is not str or not _is_text(name) for name in rows.names):
        return False
    if "verdict" not in rows.names:
        return False
    for name in rows.names:
        if isinstance(rows, VerdictRows) and name == rows.names[1]:
            continue  # its words are texts
        if not is_carried(rows.held(name)):
            return False
        if name == "verdict" and set(map(type, rows.column(name))) != {str}:
            return False
    return True


def is_carried(column: Sequence[Any]) -> bool:
    """Say whether the types in a column prove that JSON carries each value of it.

    Examples
    --------
    >>> is_carried([1, "a", None]), is_carried([1, 1j])
    (True, False)
    """
    if column.__class__ is list:
        pass
    elif isinstance(column, CategoryColumn):
        return is_carried(column.words)
    elif isinstance(column, Held):
        vector, arrow = column.vector(), column.arrow()
        if vector is not None:
            return vector.data.dtype.kind in "biuf" or _can_be_held(vector)
        if arrow is not None and (str(arrow.type) in _ARROW or _are_times(arrow)):
            return True
    types = getattr(column, "classes", None) or set(map(type, column))
    if not types <= CARRIED:
        return False
    return int not in types or _are_short(column, types)


def _are_times(arrow: Any) -> bool:
    """Say whether Arrow data are times, all of which Python can hold."""
    if not str(arrow.type).startswith(("timestamp[", "duration[")):
        return False
    from runbook_nb.rules.arrows import vector_of

    vector = vector_of(arrow)
    return vector is not None and _can_be_held(vector)


def _can_be_held(vector: Vector) -> bool:
    """Say whether Python has a value for each of an array's times."""
    from runbook_nb.rules.vectors import numbers_of

    return numbers_of(vector) is not None


def _are_short(column: Sequence[Any], types: Collection[type]) -> bool:
    if set(types) <= {int, bool}:
        return bool(max(column) < _LARGEST and min(column) > -_LARGEST)
    return all(-_LARGEST < value < _LARGEST for value in column if value.__class__ is int)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # written like another name, perhaps
        return False
    return True


def _counted(rows: Any) -> Counter[str]:
    held = rows.counts() if isinstance(rows, VerdictRows) else Counter(rows.column("verdict"))
    counts: Counter[str] = Counter()
    for word, times in held.items():
        counts[word if word.isascii() else to_wire(word)] += times
    return counts


def rank_of(rank: Sequence[str]) -> Callable[[Any], int]:
    """Give what says where a verdict stands in a rank; a word that is not in it comes last."""
    order = {word: place for place, word in enumerate(rank)}
    return lambda word: order.get(word, len(order))


def _ranked(
    entries: Sequence[Any], order: Sequence[int] | None, counts: Mapping[str, int], rank: Any
) -> Sequence[int]:
    """Give the places of the rows, worst verdict first, those of one rank as they stood."""
    place_of = rank_of(rank)
    if order is None and isinstance(entries, VerdictRows):
        ranked = sorted(counts, key=place_of)
        if len({min(place_of(word), len(rank)) for word in ranked}) == len(ranked):
            joined = array("q")
            for word in ranked:
                joined.extend(array("q", entries.rows_of(word)))
            return joined
    places = range(len(entries)) if order is None else order
    held = entries.column("verdict") if is_columnar(entries) else None
    ranks = [
        place_of(to_wire(entries[place]["verdict"] if held is None else held[place]))
        for place in places  # what is no row has no verdict to ask for
    ]
    return array("q", map(places.__getitem__, sorted(range(len(places)), key=ranks.__getitem__)))
