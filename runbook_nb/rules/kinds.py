"""What a value is to a rule: its kind, its plain form, and when two values are the same.

Every condition has one of seven outcomes, kept as a small number: false, true, or one of five
reasons why it could not be read. Two values of different kinds are never compared: a text that
looks like a number is not one, and ``True`` is not ``1``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from runbook_nb._frozen import FrozenDict, FrozenList
from runbook_nb._json import plain_scalar
from runbook_nb._text import MISSING

#: Outcome codes of one condition.
NO: Final = 0
YES: Final = 1
ABSENT: Final = 2
NULL: Final = 3
NAN: Final = 4
MISMATCH: Final = 5
ERROR: Final = 6

#: How many outcome codes there are.
CODES: Final = 7

#: Outcome code -> the condition's result.
RESULTS: Final[tuple[bool | None, ...]] = (False, True, None, None, None, None, None)

#: Outcome code -> why the condition could not be read.
STATUSES: Final[tuple[str | None, ...]] = (
    None,
    None,
    "missing",
    "null",
    "nan",
    "type_mismatch",
    "rule_error",
)

NUMBER: Final = "number"
TEXT: Final = "text"
BOOL: Final = "bool"
DATE: Final = "date"
AWARE: Final = "aware datetime"
NAIVE: Final = "naive datetime"
SPAN: Final = "timedelta"
LIST: Final = "list"
MAP: Final = "map"
OTHER: Final = "other"

_ABSENT_KIND: Final = "missing"
_NULL_KIND: Final = "null"
_NAN_KIND: Final = "nan"

#: Kinds that hold no value to compare -> the outcome code they give.
UNREADABLE_CODES: Final[dict[str, int]] = {_ABSENT_KIND: ABSENT, _NULL_KIND: NULL, _NAN_KIND: NAN}

#: Kinds whose values have an order.
ORDERED: Final = frozenset({NUMBER, TEXT, DATE, AWARE, NAIVE, SPAN})

#: Kind -> how a sentence names it.
KIND_WORDS: Final[dict[str, str]] = {
    NUMBER: "a number",
    TEXT: "text",
    BOOL: "true or false",
    DATE: "a date",
    AWARE: "a datetime with a zone",
    NAIVE: "a datetime without a zone",
    SPAN: "a duration",
    LIST: "a list",
    MAP: "a mapping",
    _ABSENT_KIND: "missing",
    _NULL_KIND: "null",
    _NAN_KIND: "NaN",
}

# Floats, decimals and datetimes are not here: their kind depends on the value.
_BY_CLASS: Final[dict[type, str]] = {
    bool: BOOL,
    int: NUMBER,
    str: TEXT,
    date: DATE,
    timedelta: SPAN,
    list: LIST,
    tuple: LIST,
    FrozenList: LIST,
    dict: MAP,
    FrozenDict: MAP,
    type(None): _NULL_KIND,
    type(MISSING): _ABSENT_KIND,
}


def plain(value: Any) -> Any:
    """Give the plain form of a value: numpy and pandas scalars as Python's, NaT and NA as None.

    Examples
    --------
    >>> plain(Decimal("sNaN"))
    Decimal('NaN')
    """
    value = plain_scalar(value)
    if isinstance(value, Decimal) and value.is_snan():
        return Decimal("NaN")  # a signalling NaN raises in every comparison
    return value


def kind_of(value: Any) -> str:
    """Name the kind of a plain value.

    Examples
    --------
    >>> kind_of(7), kind_of(True), kind_of("7"), kind_of(float("nan")), kind_of(b"7")
    ('number', 'bool', 'text', 'nan', 'other')
    """
    found = _BY_CLASS.get(type(value))
    if found is not None:
        return found
    if isinstance(value, float):
        return _NAN_KIND if value != value else NUMBER  # noqa: PLR0124 - only NaN differs from itself
    if isinstance(value, Decimal):
        return _NAN_KIND if value.is_nan() else NUMBER
    if isinstance(value, datetime):  # before date, of which it is a subclass
        return NAIVE if value.utcoffset() is None else AWARE
    for classes, kind in _SUBCLASSES:
        if isinstance(value, classes):
            return kind
    return OTHER


_SUBCLASSES: Final[tuple[tuple[Any, str], ...]] = (
    (int, NUMBER),
    (str, TEXT),
    (date, DATE),
    (timedelta, SPAN),
    ((list, tuple), LIST),
    (Mapping, MAP),
)


def kind_words(value: Any) -> str:
    """Name the kind of a value as a sentence does.

    Examples
    --------
    >>> kind_words(7), kind_words(b"")
    ('a number', 'a value of type bytes')
    """
    value = plain(value)
    kind = kind_of(value)
    return KIND_WORDS[kind] if kind in KIND_WORDS else f"a value of type {type(value).__name__}"


def compare_numbers(compare: Callable[[Any, Any], Any], left: Any, right: Any) -> bool:
    """Compare two numbers exactly, whatever the decimal context traps.

    Examples
    --------
    >>> compare_numbers(operator.gt, Decimal("0.5"), 0.25)
    True
    """
    if isinstance(left, float) and isinstance(right, Decimal):
        left = Decimal.from_float(left)
    elif isinstance(left, Decimal) and isinstance(right, float):
        right = Decimal.from_float(right)
    return bool(compare(left, right))


def same(left: Any, right: Any) -> bool:
    """Say whether two values are equal in kind and content, lists and mappings item by item.

    Examples
    --------
    >>> same([1, {"a": 2.0}], (1.0, {"a": 2})), same(True, 1), same("1", 1)
    (True, False, False)
    """
    left, right = plain(left), plain(right)
    kind = kind_of(left)
    if kind != kind_of(right):
        return False
    if kind == NUMBER:
        return compare_numbers(operator.eq, left, right)
    if kind == LIST:
        return len(left) == len(right) and all(map(same, left, right))
    if kind == MAP:
        return len(left) == len(right) and all(
            key in right and same(item, right[key]) for key, item in left.items()
        )
    if kind in (_NULL_KIND, _ABSENT_KIND):
        return True
    return kind not in (_NAN_KIND, OTHER) and bool(left == right)
