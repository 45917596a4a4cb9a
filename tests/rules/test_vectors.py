"""Arrays answer a condition as Python answers it for each of their values."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from runbook_nb.rules.arrows import codes_by_arrow, codes_by_word, vector_of, words_of
from runbook_nb.rules.held import ArrayColumn, ArrowColumn, Vector
from runbook_nb.rules.operators import compile_condition
from runbook_nb.rules.vectors import codes_by_vector

EDGES = [2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**400]
LIMITS = [0, 7, 7.5, -0.0, 2.0**53, 2.0**63, 1e300, float("inf"), float("-inf"), 5e-324,
          Decimal("7.5"), Decimal("1e400"), Decimal("-1e-400"), Decimal("Infinity"),
          Decimal(2**53 + 1), *EDGES, *(-edge for edge in EDGES)]  # fmt: skip
ARRAYS = [
    np.array([-128, 0, 7, 127], "i1"),
    np.array([0, 7, 8, 255], "u1"),
    np.array([-(2**63), -1, 7, 2**53, 2**53 + 1, 2**63 - 1], "i8"),
    np.array([0, 7, 2**53 + 1, 2**63, 2**64 - 1], "u8"),
    np.array([0.1, 7.5, -0.0, np.inf, np.nan], "f4"),
    np.array([0.1, 7.5, 2.0**53, 2.0**63, -np.inf, np.nan, 5e-324, 1.7e308]),
    np.array([0.1, 7.5, np.inf], "f2"),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: str(array.dtype))
@pytest.mark.parametrize("op", ["eq", "ne", "gt", "gte", "lt", "lte", "in", "not_in", "between"])
def test_numbers_are_compared_without_losing_a_digit(array, op):
    column = ArrayColumn(array)
    for limit in LIMITS:
        asked = {"in": [limit, 7], "not_in": [limit, 7], "between": sorted([limit, 7])}
        test = compile_condition(op, asked.get(op, limit))
        found = codes_by_vector(op, asked.get(op, limit), column.vector())
        assert found == bytes(map(test, column)), limit


def test_many_elements_are_looked_up_at_once():
    for array in ARRAYS:
        column = ArrayColumn(array)
        for op in ("in", "not_in"):
            test = compile_condition(op, LIMITS)
            assert codes_by_vector(op, LIMITS, column.vector()) == bytes(map(test, column))


@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s", "m", "h", "D", "W"])
def test_times_of_every_unit(unit):
    numbers = np.array([0, 1, -1, 2**40 if unit in ("ns", "us") else 999, -(2**63)], "i8")
    limits = [dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 1, 0, 0, 0, 1), dt.datetime.max]  # noqa: DTZ001, DTZ901
    for op in ("eq", "ne", "gt", "gte", "lt", "lte"):
        for limit in limits:
            column = ArrayColumn(numbers.view(f"M8[{unit}]"))
            test = compile_condition(op, limit)
            assert codes_by_vector(op, limit, column.vector()) == bytes(map(test, column))
        for limit in (dt.timedelta(0), dt.timedelta(microseconds=1), dt.timedelta.max):
            column = ArrayColumn(numbers.view(f"m8[{unit}]"))
            test = compile_condition(op, limit)
            assert codes_by_vector(op, limit, column.vector()) == bytes(map(test, column))


def test_what_python_compares_by_the_clock_is_left_to_it():
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    column = ArrayColumn(np.array(["2020-10-25T00:30", "2020-10-25T01:30"], "M8[s]"), zone=berlin)
    here = dt.datetime(2020, 10, 25, 2, 30, tzinfo=berlin)
    assert codes_by_vector("gt", here, column.vector()) is None
    assert codes_by_vector("eq", here.astimezone(dt.UTC), column.vector()) is None
    there = here.astimezone(dt.UTC)
    expected = bytes(map(compile_condition("gt", there), column))
    assert codes_by_vector("gt", there, column.vector()) == expected


def test_years_no_datetime_can_hold_are_looked_at_one_by_one():
    vector = Vector(np.array(["20000-01-01"], "M8[s]"), None)
    assert codes_by_vector("gt", dt.datetime(2020, 1, 1), vector) is None  # noqa: DTZ001


TEXTS = pa.chunked_array([["a", "ab", None], ["é", "", "👍", "\uffff"]])


@pytest.mark.parametrize(
    ("op", "limit"),
    [
        *((op, "é") for op in ("eq", "ne", "gt", "gte", "lt", "lte", "contains", "starts_with")),
        *((op, limit) for op in ("in", "not_in") for limit in (["a", "é", 7], [7], [])),
        *((op, limit) for op in ("exists", "missing", "is_null") for limit in (True, False)),
        ("between", ["a", "é"]),
        ("between", [1, 2]),
        ("gt", "\uffff"),
        ("gt", 7),
        ("contains", 7),
    ],
)
def test_arrow_text_is_compared_by_arrow(op, limit):
    test = compile_condition(op, limit)
    assert codes_by_arrow(op, limit, TEXTS) == bytes(map(test, ArrowColumn(TEXTS)))


def test_text_that_arrow_cannot_spell_is_left_to_the_test():
    assert codes_by_arrow("eq", "\ud800", TEXTS) is None
    assert codes_by_arrow("in", ["\ud800"], TEXTS) is None
    assert codes_by_arrow("matches", "a", TEXTS) is None
    assert codes_by_arrow("eq", "a", pa.chunked_array([[1]])) is None


def test_a_value_that_stands_in_many_places_is_tested_once():
    met = []

    def test(value):
        met.append(value)
        return 3 if value is None else int(value == "b")

    data = pa.chunked_array([pa.array(["a", "b", None, "a"]).dictionary_encode()] * 2)
    assert codes_by_word(*words_of(data), test) == bytes([0, 1, 3, 0] * 2)
    assert met == ["a", "b", None]
    assert codes_by_word(np.array([1, -1, 0], "i1"), ["a", "b"], test) == bytes([1, 3, 0])


def test_arrow_numbers_are_seen_as_numpy_sees_them():
    assert vector_of(pa.chunked_array([[1, None]])).nulls.tolist() == [False, True]
    assert vector_of(pa.chunked_array([[True]])).data.tolist() == [True]
    assert vector_of(pa.chunked_array([[dt.date(1970, 1, 2)]])).data.tolist() == [1]
    assert vector_of(TEXTS) is None
