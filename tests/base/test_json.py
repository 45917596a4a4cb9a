"""JSON: what is refused, what is converted, and that equal values give equal bytes."""

from __future__ import annotations

import json
import math
from collections import deque
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb._json import WireReport, byte_size, canonical, encode, to_wire, wire_key
from runbook_nb.errors import CycleError, JsonError

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=4), inner, max_size=4
        )
    ),
    max_leaves=12,
)


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


@given(JSON)
def test_json_values_come_back_and_equal_ones_give_equal_bytes(value):
    assert json.loads(encode(value)) == value
    assert canonical(json.loads(canonical(value))) == canonical(value)
    assert to_wire(value) == value
    assert byte_size(encode(value)) == len(encode(value).encode())


def test_canonical_form_sorts_keys_and_plain_form_keeps_their_order():
    value = {"b": 1, "a": {"d": 1, "c": 2}}
    assert encode(value) == '{"b":1,"a":{"d":1,"c":2}}'
    assert canonical(value) == '{"a":{"c":2,"d":1},"b":1}'


OWN = []
OWN.append({"x": OWN})


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({1, 2}, "a set at the top"),
        ({"rows": [{"at": date(2026, 1, 1)}]}, "a date at rows[0].at"),
        ([float("nan")], "nan at [0]"),
        ({"x": math.inf}, "inf at x"),
        ({1: 2}, "the key 1 at the top is not text"),
        ({"a": {None: 1}}, "the key None at a is not text"),
        ("\ud800", "a lone surrogate in the text at the top"),
        ({"\ud800": 1}, "a lone surrogate"),
        (OWN, "contains itself"),
        (Colour.RED, "a Colour"),
        ([10**5000], "an integer of 16610 bits at [0]"),
        (np.int64(1), "a int64"),
    ],
)
def test_what_json_cannot_carry_is_refused_with_its_path(value, fault):
    for write in (encode, canonical):
        with pytest.raises(JsonError, match="JSON cannot carry") as caught:
            write(value)
        assert fault in str(caught.value)
        assert isinstance(caught.value, ValueError)


def test_what_is_nested_too_deeply_is_refused_and_does_not_break():
    deep = []
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(JsonError, match="nested too deeply"):
        encode(deep)


def test_subclasses_of_plain_types_and_tuples_are_written():
    class Text(str):
        __slots__ = ()

    assert encode({"a": (1, Text("x")), "b": Level.HIGH.value}) == '{"a":[1,"x"],"b":3}'


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        (date(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, 3, tzinfo=UTC), "2026-01-02T03:00:00+00:00"),
        (time(1, 2), "01:02:00"),
        (timedelta(days=1, hours=2), "P1DT2H"),
        (Decimal("0.10"), "0.10"),
        (Decimal("NaN"), None),
        (float("nan"), None),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        ({"b", "a"}, ["a", "b"]),
        (frozenset({2, 1}), [1, 2]),
        ((1, 2), [1, 2]),
        (deque([1]), [1]),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.datetime64("2026-01-02"), "2026-01-02T00:00:00"),
        (pd.Timestamp("2026-01-02"), "2026-01-02T00:00:00"),
        (pd.NaT, None),
        (pd.NA, None),
        ({1: "a", None: "b", False: "c"}, {"1": "a", "null": "b", "false": "c"}),
        ("\ud800x", "\\ud800x"),
    ],
)
def test_other_values_are_converted_by_a_stated_rule(value, wire):
    assert to_wire(value) == wire
    encode(to_wire(value))


def test_what_has_no_form_is_replaced_by_its_type_and_counted():
    report = WireReport()
    assert to_wire({"a": object(), "b": [object(), b"x"]}, report) == {
        "a": "<object>",
        "b": ["<object>", "<bytes>"],
    }
    assert report.replaced == {"object": 2, "bytes": 1}
    assert report.count == 3


def test_what_contains_itself_is_refused():
    with pytest.raises(CycleError):
        to_wire(OWN)


def test_foreign_objects_are_not_asked_for_their_form():
    class Foreign:
        def to_dict(self):
            raise AssertionError

    assert to_wire(Foreign()) == "<Foreign>"


@pytest.mark.parametrize(
    ("key", "text"),
    [("a", "a"), (1, "1"), (None, "null"), (True, "true"), ((1, 2), "(1, 2)"), (1.5, "1.5")],
)
def test_keys_become_texts_as_json_writers_have_it(key, text):
    assert wire_key(key) == text


@given(JSON)
def test_converting_twice_changes_nothing(value):
    assert to_wire(to_wire(value)) == to_wire(value)
