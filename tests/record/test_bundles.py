"""The rules of the published commit log, held to what was recorded of the upstream engine."""

import json
import os
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb._text import MISSING
from runbook_nb.errors import LoadError
from runbook_nb.record.bundles import (
    SEPARATOR,
    BundleRow,
    apply_bundle,
    apply_row,
    deep_equal,
    deep_merge,
    differing,
    rows_of,
)

HERE = Path(__file__).parents[1] / "oracle" / "data"
TABLES = Path(os.environ.get("RUNBOOK_NB_ORACLE") or HERE) / "chart" / "functions.json"
RULES = {"deep_equal": deep_equal, "deep_merge": deep_merge, "apply_bundle": apply_bundle}
WORDS = {"undefined": MISSING, "NaN": float("nan"), "-0": -0.0}


def decode(value):
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("$js") == "date":
        return datetime.fromisoformat(value["iso"])
    if "$js" in value:
        return WORDS[value["$js"]]
    return {key: decode(item) for key, item in value.items()}


def recorded(name):
    rows = json.loads(TABLES.read_text("utf-8"))["rows"]
    return [row for row in rows if row["fn"] == name]


@pytest.mark.parametrize("name", RULES)
def test_every_recorded_row_comes_out_as_recorded(name):
    rows = recorded(name)
    assert rows
    for row in rows:
        found = RULES[name](*map(decode, row["args"]))
        assert deep_equal(found, decode(row["result"])), row


# -- equality ----------------------------------------------------------------------------------

NAN = float("nan")


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (1, 1.0, True),
        (1, Decimal(1), True),
        (1, True, False),
        (0, False, False),
        (0.0, -0.0, True),
        (NAN, float("nan"), True),
        (Decimal("NaN"), Decimal("NaN"), True),
        (NAN, 0, False),
        ("1", 1, False),
        (None, MISSING, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": MISSING}, {}, True),
        ({"a": None}, {}, False),
        ({"a": MISSING, "b": 1}, {"b": 1, "c": MISSING}, True),
        ({"a": MISSING}, {"b": 1}, False),
        ([1, [2, {"x": NAN}]], [1, [2, {"x": NAN}]], True),
        ([1, 2], (1, 2), False),
        ((1, 2), (1, 2), True),
        ([1], [1, MISSING], False),
        ([], {}, False),
        ({1, 2}, frozenset({2, 1}), True),
        ({1}, [1], False),
        (date(2026, 1, 1), date(2026, 1, 1), True),
        (date(2026, 1, 1), datetime(2026, 1, 1), False),  # noqa: DTZ001
        (
            datetime(2026, 1, 1, 12, tzinfo=UTC),
            datetime(2026, 1, 1, 14, tzinfo=timezone(timedelta(hours=2))),
            True,
        ),
        (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1), False),  # noqa: DTZ001
    ],
)
def test_equality_is_of_structure(a, b, equal):
    assert deep_equal(a, b) is equal
    assert deep_equal(b, a) is equal


def test_what_cannot_be_compared_equals_only_itself():
    import numpy as np

    class Odd:
        def __eq__(self, other):
            raise RuntimeError

        __hash__ = None

    array, odd = np.array([1, 2]), Odd()
    assert deep_equal(array, array)
    assert deep_equal(odd, odd)
    assert not deep_equal(array, np.array([1, 2]))
    assert not deep_equal(odd, Odd())


def test_values_too_deep_to_be_compared_are_not_equal():
    def nest():
        value = []
        for _ in range(50_000):
            value = [value]
        return value

    assert not deep_equal(nest(), nest())


VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-3, 3), st.floats(allow_nan=True), st.text(max_size=2)
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=1), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_a_value_equals_its_copy(value):
    import copy

    assert deep_equal(value, copy.deepcopy(value))


@given(VALUES, VALUES)
def test_equality_is_the_same_both_ways_and_agrees_with_what_differs(a, b):
    assert deep_equal(a, b) == deep_equal(b, a) == (not list(differing(a, b)))


# -- merging -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("into", "partial", "merged"),
    [
        ([1, 2], {"a": 3}, {"0": 1, "1": 2, "a": 3}),
        ([1, 2], {}, [1, 2]),
        ({"a": 1}, {}, {"a": 1}),
        (MISSING, {}, {}),
        (5, [1], [1]),
        (5, {"a": 1}, {"a": 1}),
        ({"a": {"b": [1]}}, {"a": {"b": [1, 2]}}, {"a": {"b": [1, 2]}}),
        ([{"x": 1}], [{"x": 1}], [{"x": 1}, {"x": 1}]),
        ([1, True, "1", None, NAN], [1.0, "1", None, NAN], [1, True, "1", None, NAN]),
        ([1, 1], [2, 2], [1, 2]),
        ({"a": 1}, None, None),
    ],
)
def test_merging_follows_the_written_form(into, partial, merged):
    assert deep_equal(deep_merge(into, partial), merged)


@given(VALUES, VALUES)
def test_merging_changes_neither_side(into, partial):
    import copy

    left, right = copy.deepcopy(into), copy.deepcopy(partial)
    deep_merge(into, partial)
    assert deep_equal(into, left)
    assert deep_equal(partial, right)


@given(VALUES, st.dictionaries(st.text(max_size=1), VALUES, max_size=3))
def test_every_key_merged_in_is_there(into, partial):
    if partial:
        assert partial.keys() <= deep_merge(into, partial).keys()


# -- rows --------------------------------------------------------------------------------------


def test_paths_are_lists_or_texts_joined_by_the_separator():
    bundle = {
        "overwrite": {"a": {"b": 1}, f"x{SEPARATOR}y": 2},
        "updates": {"m": {"k": 3}},
        "trace": [
            {"path": ["a", "b"], "verb": "set"},
            {"path": f"a{SEPARATOR}b", "verb": "set"},
            {"path": f"x{SEPARATOR}y", "verb": "set"},
            {"path": "m", "verb": "merge", "readKeys": ["a"]},
        ],
    }
    assert [(row.path, row.value, row.reads) for row in rows_of(bundle)] == [
        (("a", "b"), 1, None),
        (("a", "b"), 1, None),
        ((f"x{SEPARATOR}y",), 2, None),
        (("m",), {"k": 3}, ("a",)),
    ]
    assert apply_bundle({}, bundle) == {"a": {"b": 1}, f"x{SEPARATOR}y": 2, "m": {"k": 3}}


def test_a_set_to_nothing_takes_the_key_away_also_inside():
    bundle = {"trace": [{"path": "a", "verb": "set"}, {"path": ["b", "c"], "verb": "delete"}]}
    assert apply_bundle({"a": 1, "b": {"c": 1, "d": 2}}, bundle) == {"b": {"d": 2}}


def test_what_says_nothing_changes_nothing():
    state = {"a": [1]}
    for verb in ("append", "merge", "conjure"):
        row = rows_of({"trace": [{"path": "a", "verb": verb}]})[0]
        assert not row.can_be_applied
        assert apply_row(state["a"], row) == [1]


def test_an_element_of_a_list_can_be_set():
    row = BundleRow(("rows", "1", "age"), "set", 5)
    assert apply_row([{"age": 1}, {"age": 2}], row) == [{"age": 1}, {"age": 5}]
    # What is no position makes a mapping of it, as the rows of the form say.
    assert apply_row([1], BundleRow(("rows", "9"), "set", 5)) == {"9": 5}


def test_the_state_given_is_not_changed():
    state = {"a": {"b": {"c": 1}}, "l": [1]}
    bundle = {
        "overwrite": {"a": {"b": {"c": 2}}, "l": [2]},
        "trace": [{"path": ["a", "b", "c"], "verb": "set"}, {"path": "l", "verb": "append"}],
    }
    assert apply_bundle(state, bundle) == {"a": {"b": {"c": 2}}, "l": [1, 2]}
    assert state == {"a": {"b": {"c": 1}}, "l": [1]}


@pytest.mark.parametrize(
    ("bundle", "where"),
    [
        ({"trace": 5}, "commitLog[2]"),
        ({"trace": ["a"]}, "commitLog[2]"),
        ({"overwrite": [], "trace": []}, "commitLog[2]"),
        ({"updates": 1, "trace": []}, "commitLog[2]"),
        ({"trace": [{"verb": "set"}]}, "commitLog[2].trace[0]"),
        ({"trace": [{"path": [], "verb": "set"}]}, "commitLog[2].trace[0]"),
    ],
)
def test_what_is_no_bundle_is_refused_with_its_place(bundle, where):
    with pytest.raises(LoadError) as caught:
        rows_of(bundle, "commitLog[2]")
    assert caught.value.where == where


def test_differences_are_named_by_the_shortest_paths():
    a = {"x": [1, {"y": 2, "z": 3}], "w": {"v": 1}}
    b = {"x": [1, {"y": 9, "z": 3}], "w": {"other": 1}}
    assert list(differing(a, b)) == [("x", "1", "y"), ("w",)]
    assert list(differing(a, a)) == []
