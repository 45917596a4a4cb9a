"""Each operator, by example: what is true, what is false, what cannot be read and why."""

from __future__ import annotations

import datetime as dt
import decimal
from decimal import Decimal
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from runbook_nb._text import MISSING
from runbook_nb.rules.kinds import RESULTS, STATUSES
from runbook_nb.rules.operators import COMPILERS, OPERATORS, compile_condition

NAN = float("nan")
DAY = dt.date.fromisoformat("2026-01-02")
NAIVE = dt.datetime.fromisoformat("2026-01-02T00:00:00")
AWARE = NAIVE.replace(tzinfo=dt.UTC)


def judge(op, threshold, actual):
    code = compile_condition(op, threshold)(actual)
    return RESULTS[code] if STATUSES[code] is None else STATUSES[code]


@pytest.mark.parametrize(
    ("op", "threshold", "actual", "outcome"),
    [
        ("eq", 7, 7.0, True),
        ("eq", 7, "7", "type_mismatch"),
        ("eq", 1, True, "type_mismatch"),
        ("eq", False, False, True),
        ("eq", False, 0, "type_mismatch"),
        ("eq", "a", "b", False),
        ("eq", [1, {"a": 2}], [1, {"a": 2}], True),
        ("eq", {"a": 1}, {"a": 1, "b": 2}, False),
        ("eq", 7, NAN, "nan"),
        ("eq", 7, MISSING, "missing"),
        ("eq", 7, None, "null"),
        ("ne", 7, 8, True),
        ("ne", 7, 7.0, False),
        ("ne", 7, NAN, "nan"),
        ("ne", 7, MISSING, "missing"),
        ("ne", 7, "8", "type_mismatch"),
        ("gt", 7, 30, True),
        ("gt", 7, 7, False),
        ("gt", 7, 7.5, True),
        ("gt", 7, NAN, "nan"),
        ("gt", 7, True, "type_mismatch"),
        ("gt", 7, "30", "type_mismatch"),
        ("gt", 7, np.int64(30), True),
        ("gt", 7, np.float64("nan"), "nan"),
        ("gt", 7, pd.NA, "null"),
        ("gt", 7, [30], "type_mismatch"),
        ("gte", 7, 7, True),
        ("lt", "b", "a", True),
        ("lt", "9", "10", True),
        ("lt", 7, float("-inf"), True),
        ("lte", Decimal("0.1"), 0.1, False),
        ("lte", Decimal("0.5"), 0.5, True),
        ("gt", 10**400, 1.5, False),
        ("lt", 10**400, float("inf"), False),
        ("gt", DAY, DAY + dt.timedelta(1), True),
        ("gt", DAY, AWARE, "type_mismatch"),
        ("gt", AWARE, NAIVE, "type_mismatch"),
        ("gt", NAIVE, AWARE, "type_mismatch"),
        ("lt", AWARE, AWARE - dt.timedelta(1), True),
        ("lt", AWARE, pd.Timestamp("2020-01-01", tz="UTC"), True),
        ("lt", AWARE, pd.NaT, "null"),
        ("gt", dt.timedelta(1), dt.timedelta(2), True),
        ("gt", dt.timedelta(1), np.timedelta64(3, "D"), True),
        ("gt", dt.timedelta(1), 3, "type_mismatch"),
        ("in", [1, "a"], "a", True),
        ("in", [1, "a"], 1.0, True),
        ("in", [1, "a"], 2, False),
        ("in", [1, "a"], True, "type_mismatch"),
        ("in", [1, "a"], [1], "type_mismatch"),
        ("in", [[1], [2]], [2], True),
        ("in", [], "a", False),
        ("in", [], MISSING, "missing"),
        ("in", [True], 1, "type_mismatch"),
        ("in", [1], NAN, "nan"),
        ("in", [Decimal("1")], 1, True),
        ("not_in", [1], 2, True),
        ("not_in", [1], 1, False),
        ("not_in", [1], "1", "type_mismatch"),
        ("not_in", [], 1, True),
        ("not_in", [], None, "null"),
        ("exists", True, 0, True),
        ("exists", True, None, False),
        ("exists", True, MISSING, False),
        ("exists", True, NAN, False),
        ("exists", False, pd.NaT, True),
        ("exists", True, b"x", True),
        ("missing", True, MISSING, True),
        ("missing", True, None, True),
        ("missing", False, 0, True),
        ("is_null", True, None, True),
        ("is_null", True, NAN, True),
        ("is_null", True, MISSING, False),
        ("is_null", False, MISSING, True),
        ("is_null", True, Decimal("sNaN"), True),
        ("between", [1, 5], 1, True),
        ("between", [1, 5], 5, True),
        ("between", [1, 5], 5.1, False),
        ("between", [1, 5], "3", "type_mismatch"),
        ("between", [1, 5], Decimal("sNaN"), "nan"),
        ("contains", "b", "abc", True),
        ("contains", "b", ["a", "b"], True),
        ("contains", "b", ["a", 1], False),
        ("contains", "b", [1], "type_mismatch"),
        ("contains", "b", [], False),
        ("contains", 1, [True], "type_mismatch"),
        ("contains", 1, [True, 1], True),
        ("contains", 1, "1", "type_mismatch"),
        ("contains", "a", {"a": 1}, "type_mismatch"),
        ("starts_with", "ab", "abc", True),
        ("starts_with", "ab", "cab", False),
        ("starts_with", "ab", 7, "type_mismatch"),
        ("matches", "^a+$", "aaa", True),
        ("matches", "b", "abc", True),
        ("matches", "^b", "abc", False),
        ("matches", "^a$", "a\n", False),
        ("matches", "a", None, "null"),
        ("matches", "é", "café", True),
        ("matches", "a", "\ud800", "rule_error"),
    ],
)
def test_an_operator_judges_a_value(op, threshold, actual, outcome):
    assert judge(op, threshold, actual) == outcome


def test_there_is_an_example_of_every_operator():
    (mark,) = test_an_operator_judges_a_value.pytestmark
    assert {example[0] for example in mark.args[1]} == set(OPERATORS) == set(COMPILERS)


class Hostile:
    """Raises, whatever is asked of it."""

    def __eq__(self, other):
        raise RuntimeError("no")

    __lt__ = __gt__ = __le__ = __ge__ = __ne__ = __eq__
    __hash__ = None

    def __bool__(self):
        raise RuntimeError("no")

    def __len__(self):
        raise RuntimeError("no")


class HostileText(str):
    """A text whose comparisons raise."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other):
        raise RuntimeError("no")

    __lt__ = __gt__ = __ne__ = __eq__

    def __contains__(self, item):
        raise RuntimeError("no")

    def startswith(self, *_):
        raise RuntimeError("no")


class Liar:
    """Says that it is a whole number."""

    __class__ = int  # type: ignore[assignment]


THRESHOLDS = {
    "in": [1, "a"],
    "not_in": [1, "a"],
    "between": [1, 2],
    "exists": True,
    "missing": True,
    "is_null": True,
    "contains": "a",
    "starts_with": "a",
    "matches": "a",
}


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize(
    "actual",
    [
        Hostile(),
        HostileText("a"),
        Liar(),
        mock.MagicMock(spec=int),
        mock.MagicMock(spec=dict),
        np.timedelta64(3, "M"),
        np.zeros(3),
        [Hostile()],
        {"a": Hostile()},
    ],
    ids=lambda value: type(value).__name__,
)
def test_no_value_makes_a_test_raise(op, actual):
    for threshold in (THRESHOLDS.get(op, 1), THRESHOLDS.get(op, "a")):
        assert judge(op, threshold, actual) in (True, False, "type_mismatch", "rule_error")


def test_a_list_within_itself_cannot_be_judged():
    endless: list = []
    endless.append(endless)
    other: list = []
    other.append(other)
    assert judge("eq", [[1]], endless) is False
    assert judge("eq", other, endless) == "rule_error"


@pytest.mark.parametrize("op", ["exists", "missing", "is_null"])
def test_presence_always_has_an_answer(op):
    for actual in (Hostile(), np.timedelta64(3, "M"), MISSING, None, NAN):
        assert judge(op, True, actual) in (True, False)


def test_decimals_meet_floats_even_where_the_context_traps_it():
    with decimal.localcontext() as context:
        context.traps[decimal.FloatOperation] = True
        assert judge("gt", Decimal("0.5"), 0.75) is True
        assert judge("gt", 0.5, Decimal("0.75")) is True
        assert judge("in", [Decimal("0.5")], 0.5) is True
        assert judge("between", [Decimal("0"), Decimal("1")], 0.5) is True


def test_an_expensive_pattern_is_judged_in_linear_time():
    assert judge("matches", "(a+)+$", "a" * 10_000 + "b") is False
