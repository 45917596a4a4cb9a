"""Looking at a value level by level never lets through what going through it would refuse."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb._frozen import freeze
from runbook_nb._json import (
    MAX_BITS,
    MAX_NESTING,
    WireReport,
    _first_problem,
    _is_fine,
    are_plain,
    encode,
    to_wire,
)
from runbook_nb.errors import JsonError


class Color(StrEnum):
    RED = "red"


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.sampled_from(["\ud800", "é", b"x", object, Color.RED, 2**MAX_BITS, -(2**MAX_BITS), {1}]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=2) | st.integers() | st.just("\udfff"), inner, max_size=3),
    ),
    max_leaves=10,
)


@given(VALUES)
def test_what_is_fine_at_once_has_no_problem(value):
    if _is_fine(value):
        assert _first_problem(value, MAX_NESTING) is None
        assert json.loads(encode(value)) == json.loads(json.dumps(value))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text("abc"),
        lambda inner: st.lists(inner) | st.dictionaries(st.text("abc"), inner),
        max_leaves=20,
    )
)
def test_plain_values_are_fine_at_once(value):
    assert _is_fine(value)
    assert _is_fine(freeze(value))


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_depth_and_circles_are_left_to_who_can_tell_of_them():
    circle: list[Any] = []
    circle.append(circle)
    assert not _is_fine(circle)
    assert _is_fine(nested(MAX_NESTING - 1))
    assert not _is_fine(nested(MAX_NESTING + 1))
    encode(nested(MAX_NESTING))
    with pytest.raises(JsonError, match="nested too deeply"):
        encode(nested(MAX_NESTING + 1))
    with pytest.raises(JsonError, match="contains itself"):
        encode(circle)


def test_a_value_that_grows_with_every_level_is_not_spread_out():
    value: Any = [1]
    for _ in range(60):
        value = [value, value]
    assert not _is_fine(value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": [float("nan")]}, r"nan at a\[0\]"),
        ({"a": {1: 2}}, "the key 1 at a is not text"),
        ({"a": ["\ud800"]}, r"lone surrogate in the text at a\[0\]"),
        ([{"\ud800": 1}], "lone surrogate"),
        ([2**MAX_BITS], "an integer of"),
    ],
)
def test_what_is_wrong_is_told_as_ever(value, said):
    with pytest.raises(JsonError, match=said):
        encode(value)


def test_looking_at_once_costs_few_calls(calls_of):
    rows = [{"subject": f"row-{n}", "n": n, "ok": True} for n in range(1000)]
    assert calls_of(lambda: _is_fine(rows)) < 20_000


@given(st.lists(st.dictionaries(st.text(max_size=2), SCALARS, max_size=2), max_size=3))
def test_plain_rows_are_carried_as_they_are(rows):
    wire = to_wire(rows)
    one_by_one = [to_wire(row) for row in rows]
    assert repr(wire) == repr(one_by_one)
    assert all(given is not carried for given, carried in zip(rows, wire, strict=True))
    if are_plain(rows):
        report = WireReport()
        assert repr(to_wire(rows, report)) == repr(rows)
        assert report.count == 0


def test_rows_in_other_scripts_are_plain():
    assert are_plain([{"größe": "—"}])
    assert not are_plain([{"a": "\ud800"}])
    assert not are_plain([{"\udfff": 1}])
