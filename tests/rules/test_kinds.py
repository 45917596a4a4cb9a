"""Kinds of values: what is comparable with what, and what foreign scalars become."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
from collections import OrderedDict, UserDict
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from runbook_nb._text import MISSING
from runbook_nb.rules.kinds import compare_numbers, kind_of, kind_words, plain, same

NAIVE = dt.datetime.fromisoformat("2026-01-02T03:04:05")
AWARE = NAIVE.replace(tzinfo=dt.UTC)


class Colour(enum.Enum):
    RED = "red"


class Word(enum.StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (7, "number"),
        (7.5, "number"),
        (Decimal("7"), "number"),
        (float("inf"), "number"),
        (True, "bool"),
        ("7", "text"),
        ("", "text"),
        (Word.RED, "text"),
        (AWARE.date(), "date"),
        (NAIVE, "naive datetime"),
        (AWARE, "aware datetime"),
        (dt.timedelta(1), "timedelta"),
        ([], "list"),
        ((1, 2), "list"),
        ({}, "map"),
        (OrderedDict(a=1), "map"),
        (UserDict(a=1), "map"),
        (None, "null"),
        (MISSING, "missing"),
        (float("nan"), "nan"),
        (Decimal("NaN"), "nan"),
        (b"7", "other"),
        ({7}, "other"),
        (Colour.RED, "other"),
        (1j, "other"),
        (NAIVE.time(), "other"),
    ],
)
def test_every_value_has_one_kind(value, kind):
    assert kind_of(value) == kind


@pytest.mark.parametrize(
    ("foreign", "python"),
    [
        (np.int64(30), 30),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.datetime64("2026-01-02T03:04:05"), NAIVE),
        (np.timedelta64(2, "h"), dt.timedelta(hours=2)),
        (pd.NaT, None),
        (pd.NA, None),
        (np.datetime64("NaT"), None),
        (np.array(7), 7),
    ],
)
def test_foreign_scalars_become_plain(foreign, python):
    found = plain(foreign)
    assert found == python
    assert type(found) is type(python)


def test_a_signalling_nan_becomes_a_quiet_one():
    assert plain(Decimal("sNaN")).is_qnan()


def test_pandas_times_are_times():
    assert kind_of(plain(pd.Timestamp("2026-01-02"))) == "naive datetime"
    assert kind_of(plain(pd.Timestamp("2026-01-02", tz="UTC"))) == "aware datetime"
    assert kind_of(plain(pd.Timedelta(days=1))) == "timedelta"


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, 1.0),
        (1, Decimal("1.0")),
        (0.0, -0.0),
        ([1, [2]], [1.0, (2,)]),
        ({"a": {"b": 1}, "c": 2}, {"c": 2, "a": {"b": 1}}),
        ([None], [None]),
        (AWARE, AWARE.astimezone(dt.timezone(dt.timedelta(hours=5)))),
        ([np.int64(1)], [1]),
        (10**400, 10**400),
    ],
)
def test_equal_content_is_the_same(left, right):
    assert same(left, right)
    assert same(right, left)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, True),
        (0, False),
        (1, "1"),
        ([True], [1]),
        ({"a": 1}, {"a": True}),
        ({"a": 1}, {"b": 1}),
        ([1], [1, 2]),
        (float("nan"), float("nan")),
        ([float("nan")], [float("nan")]),
        (0.1, Decimal("0.1")),
        (AWARE, NAIVE),
        (AWARE.date(), NAIVE),
        (b"a", b"a"),
        (None, MISSING),
    ],
)
def test_other_content_or_another_kind_is_not_the_same(left, right):
    assert not same(left, right)
    assert not same(right, left)


def test_numbers_compare_whatever_the_decimal_context_traps():
    with decimal.localcontext() as context:
        context.traps[decimal.FloatOperation] = True
        assert compare_numbers(lambda a, b: a > b, Decimal("0.5"), 0.25)
        assert compare_numbers(lambda a, b: a > b, 0.5, Decimal("0.25"))
        assert same(0.5, Decimal("0.5"))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (7, "a number"),
        (AWARE, "a datetime with a zone"),
        (NAIVE, "a datetime without a zone"),
        (MISSING, "missing"),
        (b"", "a value of type bytes"),
        (np.zeros(2), "a value of type ndarray"),
    ],
)
def test_kinds_have_words(value, words):
    assert kind_words(value) == words
