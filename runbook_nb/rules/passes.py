"""Putting a condition to a whole list of values of plain classes, with no Python code per value.

A pass gives the outcome codes that the compiled test gives value by value, or None when the
classes met are not among those it serves. The classes are told by their exact type first, so that
nothing in the values can answer a comparison in its own way.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from itertools import repeat
from typing import Any, Final

from runbook_nb._text import MISSING
from runbook_nb.rules.kinds import (
    ABSENT,
    BOOL,
    DATE,
    MISMATCH,
    NAN,
    NO,
    NULL,
    NUMBER,
    SPAN,
    TEXT,
    YES,
    kind_of,
)
from runbook_nb.rules.operators import PRESENCE

#: The exact classes that are served, with their kinds.
PLAIN_KINDS: Final[dict[type, str]] = {
    bool: BOOL,
    int: NUMBER,
    float: NUMBER,
    str: TEXT,
    date: DATE,
    timedelta: SPAN,
}

COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}

_NOTHING: Final = frozenset({type(None), type(MISSING)})
_SWAPPED: Final = bytes([1, 0, *range(2, 256)])

#: The limit of which a truth value says by itself whether the comparison holds.
_SAME: Final = {operator.eq: True, operator.ne: False}

#: From values to one byte each, 0 or 1.
Pass = Callable[[Sequence[Any]], bytes]


def codes_by_class(
    op: str, limit: Any, values: Sequence[Any], classes: frozenset[type]
) -> bytes | None:
    r"""Give the outcome codes of values of plain classes; None when a value is of another class.

    Examples
    --------
    >>> codes_by_class("gt", 7, [9, None, 2], frozenset({int, type(None)}))
    b'\x01\x03\x00'
    >>> codes_by_class("gt", 7, [9, "9"], frozenset({int, str})) is None
    True
    """
    there = classes - _NOTHING
    if op in PRESENCE:
        if not there <= PLAIN_KINDS.keys():
            return None
        return _presence(op, limit, values, classes)
    if not there:
        return _marked(bytes(len(values)), values, classes)
    kinds = {PLAIN_KINDS.get(each) for each in there}
    if len(kinds) > 1 or None in kinds:
        return None
    answer = _pass_of(op, limit, kinds.pop() or "", there)
    if answer is None:
        return None
    if isinstance(answer, int):
        return _marked(bytes([answer]) * len(values), values, classes)
    if classes & _NOTHING:  # something comparable stands in for what is not there
        filler = _filler(there)
        filled = [filler if v is None or v is MISSING else v for v in values]
        return _marked(answer(filled), values, classes)
    return _marked(answer(values), values, classes)


def _filler(classes: frozenset[type]) -> Any:
    cls = next(iter(classes))
    return date(2000, 1, 1) if cls is date else cls()


def _marked(codes: bytes, values: Sequence[Any], classes: frozenset[type]) -> bytes:
    """Write the codes of what is absent, null or NaN over those of comparisons."""
    for cls, found, code in ((type(None), None, NULL), (type(MISSING), MISSING, ABSENT)):
        if cls in classes:
            codes = overwritten(codes, bytes(map(operator.is_, values, repeat(found))), code)
    if float in classes:
        nan = bytes(map(operator.ne, values, values))
        if b"\x01" in nan:
            codes = overwritten(codes, nan, NAN)
    return codes


def overwritten(codes: bytes, mask: bytes, code: int) -> bytes:
    r"""Put one code wherever the mask is 1.

    Examples
    --------
    >>> overwritten(bytes([1, 1, 0]), bytes([0, 1, 1]), 3)
    b'\x01\x03\x03'
    """
    # Long integers do bytes side by side: 255 where the mask is 1 clears what stood there.
    size = len(codes)
    old, at = int.from_bytes(codes, "little"), int.from_bytes(mask, "little")
    return ((old & ~(at * 255)) | (at * code)).to_bytes(size, "little")


def both(left: bytes, right: bytes) -> bytes:
    r"""Give 1 wherever both are 1.

    Examples
    --------
    >>> both(bytes([1, 1, 0]), bytes([0, 1, 1]))
    b'\x00\x01\x00'
    """
    found = int.from_bytes(left, "little") & int.from_bytes(right, "little")
    return found.to_bytes(len(left), "little")


def _presence(op: str, wanted: bool, values: Sequence[Any], classes: frozenset[type]) -> bytes:
    marks = _marked(bytes(len(values)), values, classes)
    unread = {"exists": (), "missing": (ABSENT, NULL, NAN), "is_null": (NULL, NAN)}[op]
    table = bytearray(256)
    for code in range(7):
        nothing = code in (ABSENT, NULL, NAN)
        holds = not nothing if op == "exists" else code in unread
        table[code] = YES if holds is wanted else NO
    return marks.translate(bytes(table))


def _pass_of(op: str, limit: Any, kind: str, classes: frozenset[type]) -> Pass | int | None:
    """Give the pass for values of one kind, or the one code all of them have."""
    if op in COMPARISONS:
        return _comparison(COMPARISONS[op], limit, kind, classes)
    if op in ("in", "not_in"):
        return _membership(limit, kind, op == "in")
    if op == "between":
        low = _comparison(operator.ge, limit[0], kind, classes)
        high = _comparison(operator.le, limit[1], kind, classes)
        if low is None or high is None or isinstance(low, int) or isinstance(high, int):
            return low if isinstance(low, int) else None
        above, below = low, high
        return lambda values: both(above(values), below(values))
    if op == "contains":
        if kind != TEXT or kind_of(limit) != TEXT:
            return MISMATCH
        return lambda values: bytes(map(operator.contains, values, repeat(limit)))
    if op == "starts_with":
        if kind != TEXT:
            return MISMATCH
        return lambda values: bytes(map(str.startswith, values, repeat(limit)))
    return None if kind == TEXT else MISMATCH  # a pattern is put to each text


def _comparison(
    compare: Callable[[Any, Any], Any], limit: Any, kind: str, classes: frozenset[type]
) -> Pass | int | None:
    if kind_of(limit) != kind:
        return MISMATCH
    if type(limit) not in PLAIN_KINDS and (type(limit) is not Decimal or float in classes):
        return None  # a limit that compares in its own way, or a float beside a Decimal
    if kind == BOOL and compare in _SAME:  # a truth value is the byte itself, or the other one
        return bytes if _SAME[compare] is limit else _other
    return lambda values: bytes(map(compare, values, repeat(limit)))


def _other(values: Sequence[Any]) -> bytes:
    return bytes(values).translate(_SWAPPED)


def _membership(elements: Sequence[Any], kind: str, inside: bool) -> Pass | int | None:
    mine = [element for element in elements if kind_of(element) == kind]
    if not mine:
        return MISMATCH if elements else (NO if inside else YES)
    if any(type(each) not in PLAIN_KINDS and type(each) is not Decimal for each in mine):
        return None
    among = frozenset(mine).__contains__

    def answer(values: Iterable[Any]) -> bytes:
        codes = bytes(map(among, values))
        return codes if inside else codes.translate(_SWAPPED)

    return answer


__all__ = ["COMPARISONS", "PLAIN_KINDS", "both", "codes_by_class", "overwritten"]
