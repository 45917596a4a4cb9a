"""The operators of conditions: each is compiled once into a test from a value to an outcome code.

A test never raises. Its fast lane serves values of exactly the plain classes of its threshold;
everything else goes through the slow lane, which makes the value plain, finds its kind and says
why it cannot be compared when it cannot. ``exists``, ``missing`` and ``is_null`` always have an
answer.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final

from runbook_nb.rules.kinds import (
    BOOL,
    DATE,
    ERROR,
    LIST,
    MISMATCH,
    NAN,
    NO,
    NUMBER,
    SPAN,
    TEXT,
    UNREADABLE_CODES,
    YES,
    compare_numbers,
    kind_of,
    plain,
    same,
)

#: From the value of a key to an outcome code.
Test = Callable[[Any], int]

# The one exact class per kind that the fast lane serves without a second look.
_FAST: Final[dict[str, type]] = {NUMBER: int, TEXT: str, BOOL: bool, DATE: date, SPAN: timedelta}


def _slow_lane(kind: str, holds: Callable[[Any], Any]) -> Test:
    def test(actual: Any) -> int:
        try:
            value = plain(actual)
            found = kind_of(value)
            if found == kind:
                return YES if holds(value) else NO
        except Exception:
            return ERROR
        return UNREADABLE_CODES.get(found, MISMATCH)

    return test


def _comparison(compare: Callable[[Any, Any], Any]) -> Callable[[Any], Test]:
    """Make the compiler of an operator that compares a value with one threshold."""

    def compile_test(limit: Any) -> Test:
        kind = kind_of(limit)
        fast = _FAST.get(kind)
        # A float beside a Decimal may trap, and NaN differs from everything: slow lane.
        floats = kind == NUMBER and not isinstance(limit, Decimal) and compare is not operator.ne
        slow = _slow_lane(kind, _holds(compare, kind, limit))

        def test(actual: Any) -> int:
            cls = type(actual)
            if cls is fast:
                return YES if compare(actual, limit) else NO
            if cls is float and floats:
                if compare(actual, limit):
                    return YES
                return NO if actual == actual else NAN  # noqa: PLR0124 - only NaN differs from itself
            return slow(actual)

        if fast is not None:
            test.lane = (fast, compare, limit)  # type: ignore[attr-defined]
        return test

    return compile_test


#: Class a test's fast lane serves, how it compares, with what. Judging many rows at once, that
#: saves a call per condition; the answer is the test's own: `NO` is false, and `YES` is true.
Lane = tuple[type | None, Callable[[Any, Any], bool] | None, Any]
_NO_LANE: Final[Lane] = (None, None, None)


def fast_lane(test: Test) -> Lane:
    """Give the fast lane of a compiled test; one of no class when it has none.

    Examples
    --------
    >>> fast_lane(compile_condition("gt", 7))
    (<class 'int'>, <built-in function gt>, 7)
    >>> fast_lane(compile_condition("starts_with", "a"))
    (None, None, None)
    """
    lane: Lane = getattr(test, "lane", _NO_LANE)
    return lane


def _holds(compare: Callable[[Any, Any], Any], kind: str, limit: Any) -> Callable[[Any], Any]:
    if compare is operator.eq:
        return lambda value: same(value, limit)
    if compare is operator.ne:
        return lambda value: not same(value, limit)
    if kind == NUMBER:
        return lambda value: compare_numbers(compare, value, limit)
    return lambda value: compare(value, limit)


def _between(limits: Sequence[Any]) -> Test:
    low, high = limits
    kind = kind_of(low)
    above, below = _holds(operator.ge, kind, low), _holds(operator.le, kind, high)
    return _slow_lane(kind, lambda value: above(value) and below(value))


def _membership(inside: bool) -> Callable[[Sequence[Any]], Test]:
    yes, no = (YES, NO) if inside else (NO, YES)

    def compile_test(elements: Sequence[Any]) -> Test:
        kinds = frozenset(kind_of(element) for element in elements)
        texts = frozenset(e for e in elements if kind_of(e) == TEXT)
        numbers = frozenset(e for e in elements if kind_of(e) == NUMBER)

        def test(actual: Any) -> int:
            cls = type(actual)
            if cls is str and texts:
                return yes if actual in texts else no
            if cls is int and numbers:
                return yes if actual in numbers else no
            try:
                value = plain(actual)
                kind = kind_of(value)
                if kind in kinds:
                    return yes if any(same(value, element) for element in elements) else no
            except Exception:
                return ERROR
            return UNREADABLE_CODES.get(kind, MISMATCH if kinds else no)

        return test

    return compile_test


def _contains(wanted: Any) -> Test:
    wanted_kind = kind_of(wanted)

    def test(actual: Any) -> int:
        try:
            value = plain(actual)
            kind = kind_of(value)
            if kind == LIST:
                return _holds_element(value, wanted, wanted_kind)
            if kind == TEXT == wanted_kind:
                return YES if wanted in value else NO
        except Exception:
            return ERROR
        return UNREADABLE_CODES.get(kind, MISMATCH)

    return test


def _holds_element(items: Sequence[Any], wanted: Any, wanted_kind: str) -> int:
    comparable = not items
    for item in items:
        if kind_of(plain(item)) == wanted_kind:
            comparable = True
            if same(item, wanted):
                return YES
    return NO if comparable else MISMATCH


def _starts_with(prefix: str) -> Test:
    return _slow_lane(TEXT, lambda value: value.startswith(prefix))


def _matches(pattern: str) -> Test:
    return _slow_lane(TEXT, compile_pattern(pattern).search)


def compile_pattern(pattern: str) -> Any:
    """Compile a pattern with the linear-time engine.

    Raises
    ------
    ImportError
        google-re2 is not installed.
    Exception
        The engine's own error: the pattern is not one it accepts.
    """
    import re2

    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def _presence(answer: Callable[[str], bool]) -> Callable[[bool], Test]:
    """Make the compiler of an operator that asks what kind of value is there, if any."""

    def compile_test(wanted: bool) -> Test:
        def test(actual: Any) -> int:
            try:
                kind = kind_of(plain(actual))
            except Exception:
                kind = "other"  # a value that cannot even be classified is there all the same
            return YES if answer(kind) is wanted else NO

        return test

    return compile_test


#: Operator -> the compiler of its test. The order is the order in which messages list them.
COMPILERS: Final[dict[str, Callable[[Any], Test]]] = {
    "eq": _comparison(operator.eq),
    "ne": _comparison(operator.ne),
    "gt": _comparison(operator.gt),
    "gte": _comparison(operator.ge),
    "lt": _comparison(operator.lt),
    "lte": _comparison(operator.le),
    "in": _membership(True),
    "not_in": _membership(False),
    "exists": _presence(lambda kind: kind not in UNREADABLE_CODES),
    "missing": _presence(lambda kind: kind in UNREADABLE_CODES),
    "is_null": _presence(lambda kind: kind in ("null", "nan")),
    "between": _between,
    "contains": _contains,
    "starts_with": _starts_with,
    "matches": _matches,
}

OPERATORS: Final = tuple(COMPILERS)

#: Other spellings that are accepted.
ALIASES: Final = {"notIn": "not_in"}

#: How operators are spelt elsewhere -> what is meant by it here.
ELSEWHERE: Final = {
    "=": "eq",
    "==": "eq",
    "is": "eq",
    "equals": "eq",
    "!=": "ne",
    "<>": "ne",
    "neq": "ne",
    "not": "ne",
    ">": "gt",
    ">=": "gte",
    "<": "lt",
    "<=": "lte",
    "less": "lt",
    "less_than": "lt",
    "greater": "gt",
    "greater_than": "gt",
    "more": "gt",
    "min": "gte",
    "max": "lte",
    "nin": "not_in",
    "present": "exists",
    "null": "is_null",
    "range": "between",
    "includes": "contains",
    "prefix": "starts_with",
    "regex": "matches",
}

#: Operator -> the name it has in published evidence, where that differs.
PUBLISHED: Final = {"not_in": "notIn"}

#: Operators that ask whether a value is there.
PRESENCE: Final = frozenset({"exists", "missing", "is_null"})


def compile_condition(op: str, threshold: Any) -> Test:
    """Compile one checked condition into its test.

    Examples
    --------
    >>> older = compile_condition("gt", 7)
    >>> older(30), older(2), older(None), older("30")
    (1, 0, 3, 5)
    """
    return COMPILERS[op](threshold)
