"""Passes over plain classes give the codes of the compiled test, or leave the column to it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from runbook_nb._text import MISSING
from runbook_nb.rules.operators import compile_condition
from runbook_nb.rules.passes import both, codes_by_class, overwritten

NAN = float("nan")
DAY = dt.date(2026, 1, 2)
COLUMNS = {
    "bools": [True, False, None],
    "ints": [1, 7, 8, 10**30, MISSING],
    "floats": [1.0, 7.0, 7.5, NAN, None, MISSING],
    "numbers": [7, 7.0, 2**53 + 1, NAN],
    "texts": ["", "ab", "b", "é", None],
    "dates": [DAY, dt.date.max, MISSING],
    "spans": [dt.timedelta(1), dt.timedelta(0), None],
    "nothing": [None, MISSING, None],
}
CONDITIONS = [
    *((op, limit) for op in ("gt", "gte", "lt", "lte", "eq", "ne")
      for limit in (7, 7.5, 2.0**53, Decimal("7.5"), "b", DAY, dt.timedelta(0))),
    *((op, limit) for op in ("eq", "ne") for limit in (True, False, [1], {"x": 1})),
    *((op, limit) for op in ("in", "not_in")
      for limit in ([], [7, "b"], [True, 7.0], [DAY], [Decimal("7.5")], [[1]])),
    *((op, limit) for op in ("exists", "missing", "is_null") for limit in (True, False)),
    ("between", [1, 7.5]), ("between", ["a", "b"]), ("between", [Decimal(1), Decimal(8)]),
    ("contains", "b"), ("contains", 7), ("starts_with", "a"), ("matches", "b"),
]  # fmt: skip


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize(("op", "limit"), CONDITIONS, ids=str)
def test_a_pass_gives_the_codes_of_the_test(name, op, limit):
    values = COLUMNS[name]
    test = compile_condition(op, limit)
    found = codes_by_class(op, limit, values, frozenset(map(type, values)))
    assert found is None or found == bytes(map(test, values))


@pytest.mark.parametrize(
    ("name", "op", "limit"),
    [
        ("ints", "gt", 7),
        ("floats", "gt", 7.5),
        ("numbers", "eq", 7),
        ("texts", "in", ["b"]),
        ("texts", "starts_with", "a"),
        ("dates", "lte", DAY),
        ("bools", "eq", True),
        ("ints", "between", [1, 8]),
        ("ints", "gt", "7"),
        ("nothing", "gt", 7),
    ],
)
def test_common_conditions_have_a_pass(name, op, limit):
    values = COLUMNS[name]
    assert codes_by_class(op, limit, values, frozenset(map(type, values))) is not None


@pytest.mark.parametrize(
    ("values", "op", "limit"),
    [
        ([1, "1"], "gt", 7),
        ([1, True], "eq", 1),
        ([[1]], "eq", [1]),
        ([dt.datetime(2026, 1, 2)], "exists", True),  # noqa: DTZ001
        (["a"], "matches", "a"),
        ([1.5], "gt", Decimal("1.5")),
    ],
)
def test_what_may_answer_in_its_own_way_has_no_pass(values, op, limit):
    assert codes_by_class(op, limit, values, frozenset(map(type, values))) is None


def test_bytes_are_joined_side_by_side():
    assert overwritten(bytes([1, 0, 5]), bytes([0, 1, 1]), 3) == bytes([1, 3, 3])
    assert both(bytes([1, 1, 0, 0]), bytes([1, 0, 1, 0])) == bytes([1, 0, 0, 0])
    assert overwritten(b"", b"", 3) == both(b"", b"") == b""
