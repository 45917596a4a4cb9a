"""Putting a condition to a numpy array at once, to exactly the answers Python gives per value.

What numpy would round is not left to it: a limit is first turned into the nearest number of the
array's own kind, and the comparison into one with that, which has the same answers. Whole numbers
are held against fractions, and floats against whole numbers of any size, without losing a digit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from fractions import Fraction
from typing import Any, Final

from runbook_nb.rules.held import Vector
from runbook_nb.rules.kinds import AWARE, BOOL, DATE, MISMATCH, NAIVE, NULL, NUMBER, SPAN, kind_of
from runbook_nb.rules.operators import PRESENCE

#: Whole microseconds per unit of numpy's times; nanoseconds are the other way round.
_MICROSECONDS: Final = {
    "us": 1,
    "ms": 1000,
    "s": 10**6,
    "m": 60 * 10**6,
    "h": 3600 * 10**6,
    "D": 24 * 3600 * 10**6,
    "W": 7 * 24 * 3600 * 10**6,
}
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - of both kinds, see `_microseconds`
_FIRST_DAY: Final = _EPOCH.toordinal()
_TICK: Final = timedelta(microseconds=1)
#: The span of datetimes and of timedeltas, in microseconds.
_RANGES: Final = {
    "M": (
        (datetime(1, 1, 1) - _EPOCH) // _TICK,  # noqa: DTZ001
        (datetime(9999, 12, 31) - _EPOCH) // _TICK + 24 * 3600 * 10**6 - 1,  # noqa: DTZ001
    ),
    "m": (timedelta.min // _TICK, timedelta.max // _TICK),
}

#: Longest list of elements that are compared one by one.
FEW: Final = 8

#: From an array to a truth value per element, or one for all.
Answer = Callable[[Any], Any]


def codes_by_vector(op: str, limit: Any, vector: Vector) -> bytes | None:
    r"""Give the outcome codes of an array's values; None when they must be looked at one by one.

    Examples
    --------
    >>> import numpy as np
    >>> codes_by_vector("gt", 7.5, Vector(np.array([7, 8]), None))
    b'\x00\x01'
    """
    import numpy as np

    data, nulls, zone, _ = vector
    if op in PRESENCE:
        there = (op == "exists") is limit
        if nulls is None:
            return bytes([there]) * len(data)
        return _bytes(~nulls if there else nulls)
    number = numbers_of(vector)
    if number is None or (zone is not None and not _by_instant(op, limit, zone)):
        return None
    kind, data, scale = number
    answer = _answer(op, limit, kind, data.dtype, scale)
    if answer is None:
        return None
    if answer is MISMATCH:
        codes = np.full(len(data), MISMATCH, "u1")
        if nulls is not None:
            codes[nulls] = NULL
        return _bytes(codes)
    if isinstance(answer, bool):
        codes = np.full(len(data), answer, "u1")
    else:
        codes = answer(data).view("u1")
    if nulls is not None:
        codes = codes | (nulls.view("u1") * np.uint8(NULL))  # 0 or 1 beside 3 is 3
    return _bytes(codes)


def numbers_of(vector: Vector) -> tuple[str, Any, Fraction] | None:
    """Give an array's kind, its values as numbers, and how many microseconds one of them is.

    None where a value is none that Python's datetimes can hold.
    """
    import numpy as np

    data, nulls, zone, days = vector
    if days:
        return DATE, data, Fraction(1)
    letter = data.dtype.kind
    if letter == "b":
        return BOOL, data, Fraction(1)
    if letter in "iu":
        return NUMBER, data, Fraction(1)
    if letter == "f":
        return (NUMBER, data if data.dtype == "f8" else data.astype("f8"), Fraction(1))
    if letter not in "mM":
        return None
    unit, count = np.datetime_data(data.dtype)
    numbers = data.view("i8")
    if unit == "ns" and count == 1:
        scale = Fraction(1, 1000)
    elif unit in _MICROSECONDS:
        scale = Fraction(_MICROSECONDS[unit] * count)
        low, high = _RANGES[letter]
        seen = numbers if nulls is None else numbers[~nulls]
        if len(seen) and (int(seen.min()) * scale < low or int(seen.max()) * scale > high):
            return None
    else:
        return None
    kind = SPAN if letter == "m" else NAIVE if zone is None else AWARE
    return kind, numbers, scale


def _by_instant(op: str, limit: Any, zone: Any) -> bool:
    """Say whether Python compares datetimes of a zone with a limit as instants, whichever they are.

    Two of one zone are compared by their clocks, and one that a clock shows twice equals none of
    another zone.
    """
    for each in limit if op in ("in", "not_in", "between") else (limit,):
        if not isinstance(each, datetime) or each.utcoffset() is None:
            continue
        ordered = op not in ("eq", "ne", "in", "not_in")
        if not ordered and each.utcoffset() != each.replace(fold=1 - each.fold).utcoffset():
            return False
        if not (_fixed(zone) or (ordered and each.tzinfo is not zone)):
            return False
    return True


def _fixed(zone: Any) -> bool:
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)
    return isinstance(zone, timezone) or name == "UTC"


def _bytes(codes: Any) -> bytes:
    found: bytes = codes.tobytes()
    return found


def _answer(op: str, limit: Any, kind: str, dtype: Any, scale: Fraction) -> Any:
    """Give the comparison, one truth for every value, `MISMATCH` for every value, or None."""
    if op in ("in", "not_in"):
        return _membership(limit, kind, dtype, scale, op == "in")
    if op == "between":
        if kind_of(limit[0]) != kind:
            return MISMATCH
        low = _compared("gte", _number(limit[0]), dtype, scale)
        high = _compared("lte", _number(limit[1]), dtype, scale)
        if low is False or high is False:
            return False
        if low is True or high is True:
            return high if low is True else low
        return lambda data: low(data) & high(data)
    if op not in ("eq", "ne", "gt", "gte", "lt", "lte") or kind_of(limit) != kind:
        return MISMATCH
    return _compared(op, _number(limit), dtype, scale)


def _number(limit: Any) -> Any:
    """Give a limit as a number: dates in days, times in microseconds (of UTC, with a zone)."""
    if isinstance(limit, datetime):
        if limit.utcoffset() is not None:
            limit = limit.astimezone(UTC).replace(tzinfo=None)
        return _microseconds(limit - _EPOCH)
    if isinstance(limit, timedelta):
        return _microseconds(limit)
    if isinstance(limit, date):
        return limit.toordinal() - _FIRST_DAY
    return limit


def _microseconds(span: timedelta) -> Fraction | int:
    nanoseconds = getattr(span, "nanoseconds", 0)  # pandas' own spans are finer
    whole = timedelta(span.days, span.seconds, span.microseconds) // _TICK
    return whole + Fraction(nanoseconds, 1000) if nanoseconds else whole


def _compared(op: str, limit: Any, dtype: Any, scale: Fraction) -> Answer | bool:
    """Compare numbers of an array with an exact limit."""
    if op == "ne":
        same = _compared("eq", limit, dtype, scale)
        return (not same) if isinstance(same, bool) else lambda data: ~same(data)
    if dtype.kind == "b":
        return (lambda data: data) if limit else (lambda data: ~data)
    if dtype.kind == "f":
        return _beside_floats(op, limit)
    return _beside_integers(op, limit, dtype, scale)


def _beside_integers(op: str, limit: Any, dtype: Any, scale: Fraction) -> Answer | bool:
    import numpy as np

    info = np.iinfo(dtype)
    if _beyond(limit, info, scale):
        return (limit > 0) is (op in ("lt", "lte")) if op != "eq" else False
    exact = limit if scale == 1 else Fraction(limit) / scale
    # Over 7.5 is over 7; at least 7.5 is at least 8.
    bound = math.floor(exact) if op in ("gt", "lte") else math.ceil(exact)
    if op == "eq" and bound != exact:
        return False
    if bound < info.min:
        return op in ("gt", "gte")
    if bound > info.max:
        return op in ("lt", "lte")
    return _held_against(op, dtype.type(bound))


def _beyond(limit: Any, info: Any, scale: Fraction) -> bool:
    """Say whether a limit is far outside the array's numbers: then nothing need be spelt out."""
    far = 4 * (int(info.max) + 1) * max(scale, Fraction(1))
    return bool(limit > int(far) or limit < -int(far))


def _beside_floats(op: str, limit: Any) -> Answer | bool:
    nearest = _nearest(limit)
    order = _order(nearest, limit)
    if op == "eq":
        return _held_against("eq", nearest) if order == 0 else False
    if order:
        # No float lies between the limit and the one nearest to it.
        if order < 0:
            op = {"gt": "gt", "gte": "gt", "lt": "lte", "lte": "lte"}[op]
        else:
            op = {"gt": "gte", "gte": "gte", "lt": "lt", "lte": "lt"}[op]
    return _held_against(op, nearest)


def _nearest(limit: Any) -> float:
    try:
        return float(limit)
    except OverflowError:
        return math.inf if limit > 0 else -math.inf


def _order(number: float, limit: Any) -> int:
    """Give -1, 0 or 1 as the float is below, at or above the limit, exactly."""
    if isinstance(limit, float):
        return 0
    if math.isinf(number):
        infinite = not isinstance(limit, int) and limit.is_infinite()
        return 0 if infinite else 1 if number > 0 else -1
    if not isinstance(limit, int):
        from decimal import Decimal

        if number == 0 and limit != 0:  # smaller than any float: not to be spelt out
            return -1 if limit > 0 else 1
        exact = Decimal.from_float(number)
        return int(exact > limit) - int(exact < limit)
    return (number > limit) - (number < limit)


def _held_against(op: str, bound: Any) -> Answer:
    import numpy as np

    compare = {
        "eq": np.equal,
        "gt": np.greater,
        "gte": np.greater_equal,
        "lt": np.less,
        "lte": np.less_equal,
    }[op]
    return lambda data: compare(data, bound)


def _membership(
    elements: Sequence[Any], kind: str, dtype: Any, scale: Fraction, inside: bool
) -> Any:
    mine = [element for element in elements if kind_of(element) == kind]
    if not mine:
        return MISMATCH if elements else not inside
    found = [_compared("eq", _number(element), dtype, scale) for element in mine]
    tests: list[Any] = [each for each in found if not isinstance(each, bool)]
    if not tests:
        return not inside
    if len(tests) > FEW:
        return _among(mine, dtype, scale, inside)

    def answer(data: Any) -> Any:
        held = tests[0](data)
        for each in tests[1:]:
            held = held | each(data)
        return held if inside else ~held

    return answer


def _among(elements: Sequence[Any], dtype: Any, scale: Fraction, inside: bool) -> Answer:
    """Look many elements up at once: those the array can hold, as it would hold them."""
    import numpy as np

    wanted = []
    for element in elements:
        number = _number(element)
        if isinstance(_compared("eq", number, dtype, scale), bool):
            continue
        wanted.append(
            _nearest(number)
            if dtype.kind == "f"
            else int(number if scale == 1 else Fraction(number) / scale)
        )
    among = np.array(wanted, dtype)
    return lambda data: np.isin(data, among, invert=not inside)
