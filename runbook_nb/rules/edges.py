"""Values around a limit: the rows nearest to it, and how all values of a key are spread.

Numbers are compared as they are; dates, instants and spans by their days or seconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple

from runbook_nb._text import MISSING
from runbook_nb.rules.judging import read
from runbook_nb.rules.kinds import (
    AWARE,
    DATE,
    NAIVE,
    NUMBER,
    OTHER,
    SPAN,
    UNREADABLE_CODES,
    kind_of,
    plain,
)
from runbook_nb.rules.known import KnownFacts
from runbook_nb.rules.model import Rule
from runbook_nb.rules.operators import compile_condition

#: The operators with a limit that values lie on one side of.
SIDED: Final = ("gt", "gte", "lt", "lte", "between")

#: The kinds of limit that can be measured from.
MEASURED: Final = frozenset({NUMBER, DATE, AWARE, NAIVE, SPAN})

#: How many bars a histogram has at most.
BARS: Final = 30

#: Of long tails, values beyond this many times the middle half lie in the last bar.
_FENCE: Final = 12.0
#: The largest number an axis is drawn to: its ends are still apart by a number.
_FAR: Final = 1e300
#: The least width of a bar, of which powers of ten can still be taken.
_NEAR: Final = 1e-300


def measure(value: Any, kind: str) -> float:
    """Give a value as a number to measure by; NaN when it is of another kind.

    Examples
    --------
    >>> measure(date(1970, 1, 3), DATE), measure(timedelta(minutes=1), SPAN), measure("7", NUMBER)
    (2.0, 60.0, nan)
    """
    if value is None or value is MISSING or kind_of(value) != kind:
        return math.nan
    if kind == NUMBER:
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if kind == SPAN:
        return float(value.total_seconds())
    if kind == DATE:
        return float(value.toordinal() - date(1970, 1, 1).toordinal())
    zone = None if kind == NAIVE else UTC
    return float((value - datetime(1970, 1, 1, tzinfo=zone)).total_seconds())


def measured_back(number: float, kind: str) -> Any:
    """Give what a number measures, for showing.

    Examples
    --------
    >>> measured_back(2.0, DATE), measured_back(7.0, NUMBER), measured_back(7.5, NUMBER)
    (datetime.date(1970, 1, 3), 7, 7.5)
    """
    if kind == NUMBER:
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    if kind == SPAN:
        return timedelta(seconds=number)
    if kind == DATE:
        return date(1970, 1, 1) + timedelta(days=round(number))
    zone = None if kind == NAIVE else UTC
    return datetime(1970, 1, 1, tzinfo=zone) + timedelta(seconds=number)


class Measures:
    """The columns of facts as numbers, each made once.

    Parameters
    ----------
    facts : KnownFacts
    left_out : sequence of int, optional
        Rows that are not to be measured.
    """

    def __init__(self, facts: KnownFacts, left_out: Sequence[int] = ()) -> None:
        self.facts = facts
        self._left_out = tuple(left_out)
        self._held: dict[tuple[str, str], Any] = {}
        self._samples: dict[str, tuple[Any, ...]] = {}

    def __len__(self) -> int:
        return len(self.facts) - len(self._left_out)

    def column(self, key: str, kind: str) -> Any:
        """Give a column as a numpy array, NaN where there is no such number."""
        found = self._held.get((key, kind))
        if found is None:
            found = self._held[key, kind] = self._made(key, kind)
            if self._left_out:
                found[list(self._left_out)] = math.nan
        return found

    def _made(self, key: str, kind: str) -> Any:
        import numpy as np

        columns = self.facts.columns
        if key in columns.names and kind == NUMBER:
            vector = columns.vector(key)
            if vector is not None and vector.data.dtype.kind in "iuf":
                data = vector.data.astype("f8")
                if vector.nulls is not None:
                    data[vector.nulls] = np.nan
                return data
        values = self._values(key)
        if kind == NUMBER and set(map(type, values)) <= {int, float}:
            try:
                return np.array(values, "f8")
            except OverflowError:
                pass
        return np.fromiter((_measure(v, kind) for v in values), "f8", len(values))

    def _values(self, key: str) -> Sequence[Any]:
        columns = self.facts.columns
        if key in columns.names and columns.is_full(key):
            return columns.held(key).whole()
        return [_read(columns, row, key) for row in range(len(columns))]

    def samples(self, key: str) -> tuple[Any, ...]:
        """Give one value of each kind there is under a key; none where there is nothing.

        Examples
        --------
        >>> from runbook_nb.rules.columns import as_columns
        >>> from runbook_nb.rules.known import KnownFacts
        >>> Measures(KnownFacts(as_columns({"age": [None, 2, 3, "x"]}))).samples("age")
        (2, 'x')
        """
        if key not in self._samples:
            found: dict[str, Any] = {}
            settled: set[type] = set()
            for value in self._values(key):
                cls = value.__class__
                if cls in settled:
                    continue
                kind = _kind(value)
                if kind in UNREADABLE_CODES:
                    continue
                found.setdefault(kind, value)
                if not issubclass(cls, datetime):  # which are of two kinds
                    settled.add(cls)
            self._samples[key] = tuple(found.values())
        return self._samples[key]


def _kind(value: Any) -> str:
    try:
        return kind_of(plain(value))
    except Exception:  # a foreign value
        return OTHER


def _read(columns: Any, row: int, key: str) -> Any:
    try:
        return read(columns, row, key)
    except Exception:  # a strange mapping: there is nothing to measure
        return MISSING


def _measure(value: Any, kind: str) -> float:
    try:
        return measure(value, kind)
    except Exception:  # a foreign value
        return math.nan


class Limit(NamedTuple):
    """A limit of a rule that values can be measured from.

    Attributes
    ----------
    rule_index : int
    key, op : str
    value : object
        The limit; one end of it for ``between``.
    """

    rule_index: int
    key: str
    op: str
    value: Any

    @property
    def kind(self) -> str:
        """The kind of its value."""
        return kind_of(self.value)


def limits_of(rules: Sequence[Rule]) -> tuple[Limit, ...]:
    """Give the limits of rules that values lie on one side of.

    Examples
    --------
    >>> limits_of([Rule({"age": {"gt": 7}, "tier": {"eq": 1}}, "x")])
    (Limit(rule_index=0, key='age', op='gt', value=7),)
    """
    found: list[Limit] = []
    for n, rule in enumerate(rules):
        for key, ops in rule.when.items() if isinstance(rule.when, Mapping) else ():
            for op, threshold in ops.items():
                ends = threshold if op == "between" else (threshold,)
                if op in SIDED:
                    found += [Limit(n, key, op, end) for end in ends if kind_of(end) in MEASURED]
    return tuple(found)


class Near(NamedTuple):
    """A row near a limit.

    Attributes
    ----------
    row : int
    value : object
    distance : float
        From the limit: negative below it. In days or seconds where it measures time.
    meets : bool
        Whether it meets the condition.
    """

    row: int
    value: Any
    distance: float
    meets: bool


def nearest_rows(measures: Measures, limit: Limit, many: int = 3) -> tuple[Near, ...]:
    """Give the rows nearest to a limit on either side, so many on each, by their values.

    Examples
    --------
    >>> from runbook_nb.rules.columns import as_columns
    >>> measures = Measures(KnownFacts(as_columns({"age": [1, 7, 8, 30]})))
    >>> [(near.row, near.value, near.meets) for near in
    ...  nearest_rows(measures, Limit(0, "age", "gt", 7), 1)]
    [(1, 7, False), (2, 8, True)]
    """
    import numpy as np

    column = measures.column(limit.key, limit.kind)
    with np.errstate(invalid="ignore", over="ignore"):  # as far away as numbers go is far enough
        away = column - measure(limit.value, limit.kind)
    # A value on the limit is on the side that `gte` and `lt` part, or that `gt` and `lte` do.
    on_upper = limit.op in ("gte", "lt", "between")
    with np.errstate(invalid="ignore"):
        upper = away >= 0 if on_upper else away > 0
        lower = away < 0 if on_upper else away <= 0
    rows: list[int] = []
    for side in (lower, upper):
        places = np.flatnonzero(side)
        gaps = np.abs(away[places])
        if len(places) > many:
            cut = np.partition(gaps, many - 1)[many - 1]
            places = places[gaps <= cut]
            gaps = np.abs(away[places])
        rows += places[np.argsort(gaps, kind="stable")][:many].tolist()
    found = [_near(measures, limit, row, float(away[row])) for row in rows]
    return tuple(sorted(found, key=lambda near: (near.distance, near.row)))


def _near(measures: Measures, limit: Limit, row: int, distance: float) -> Near:
    value = _read(measures.facts.columns, row, limit.key)
    op = "gte" if limit.op == "between" else limit.op
    return Near(row, value, distance, compile_condition(op, limit.value)(value) == 1)


class Histogram(NamedTuple):
    """How the values of a key are spread.

    Attributes
    ----------
    key, kind : str
    edges : tuple of float
        Where bars begin and the last one ends; the last bar holds what lies beyond, too, when
        ``open_end`` says so.
    counts : tuple of int
        How many values lie in each bar, from its left edge to before the next.
    total : int
        How many values there are in all.
    unread : int
        How many rows have no such value.
    open_end : bool
    beyond : int
        How many values no axis reaches, infinite ones among them; they are in no bar.
    """

    key: str
    kind: str
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    total: int
    unread: int
    open_end: bool
    beyond: int = 0


def histogram(measures: Measures, key: str, kind: str, marks: Sequence[float] = ()) -> Histogram:
    """Count the values of a key in bars of equal width.

    Whole numbers get bars of whole width that begin on whole numbers. Bars reach as far as the
    bulk of the values and the marks do; what lies beyond is in the last.

    Examples
    --------
    >>> from runbook_nb.rules.columns import as_columns
    >>> found = histogram(Measures(KnownFacts(as_columns({"a": [0, 1, 1, 3, None]}))), "a", NUMBER)
    >>> found.edges, found.counts, found.unread
    ((0.0, 1.0, 2.0, 3.0, 4.0), (1, 2, 0, 1), 1)
    """
    import numpy as np

    column = measures.column(key, kind)
    values = column[np.abs(column) <= _FAR]
    marks = [mark for mark in marks if abs(mark) <= _FAR]
    beyond = int((np.abs(column) > _FAR).sum())
    unread = len(measures) - len(values) - beyond
    if not len(values):
        return Histogram(key, kind, (), (), 0, unread, False, beyond)
    low, high = float(values.min()), float(values.max())
    lower, upper = (float(q) for q in np.percentile(values, (25, 75)))
    reach = max([upper + _FENCE * max(upper - lower, 1e-12), *marks])
    open_end = high > reach and upper > lower
    low, top = min([low, *marks]), reach if open_end else max([high, *marks])
    whole = bool((values == np.floor(values)).all()) and all(m.is_integer() for m in marks)
    width = _width(top - low, whole)
    first = math.floor(low / width) * width
    if first > low:  # the quotient was too small to be told from nothing
        first -= width
    bars = max(math.floor((top - first) / width) + 1, 1)
    places = np.minimum((values - first) // width, bars - 1).astype("i8")
    counts = np.bincount(places, minlength=bars).tolist()
    edges = tuple(first + width * n for n in range(bars + 1))
    return Histogram(key, kind, edges, tuple(counts), len(values), unread, open_end, beyond)


def _width(span: float, whole: bool) -> float:
    """Give a round width of bars: 1, 2 or 5 times a power of ten."""
    least = span / BARS
    if least < _NEAR:
        return 1.0 if whole or span <= 0 else _NEAR
    if whole and least <= 1:
        return 1.0
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * step for step in (1, 2, 5, 10) if power * step >= least)


__all__ = [
    "Histogram",
    "Limit",
    "Measures",
    "Near",
    "histogram",
    "limits_of",
    "measure",
    "measured_back",
    "nearest_rows",
]
