"""What is kept of values: plain, frozen, and without what is hidden."""

from __future__ import annotations

import json
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runbook_nb._frozen import FrozenDict
from runbook_nb.playbooks.values import MAX_ERROR, UNWRITABLE, Kept

PLAIN = Kept(None)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (None, None),
        ("text", "text"),
        ({"a": 1, "b": "x", "c": None, "d": True}, {"a": 1, "b": "x", "c": None, "d": True}),
        ({"at": date(2026, 1, 2)}, {"at": "2026-01-02"}),
        ({"hosts": {"b", "a"}}, {"hosts": ["a", "b"]}),
        ({"share": float("nan")}, {"share": None}),
        ({"name": "Zürich"}, {"name": "Zürich"}),
        ([1, (2, 3)], [1, [2, 3]]),
        ({"x": object}, {"x": "<type>"}),
    ],
)
def test_what_is_kept_of_arguments(given, kept):
    assert PLAIN.arguments(given) == kept
    assert PLAIN.result(given) == kept


def test_what_is_kept_cannot_be_changed():
    for value in ({"a": 1}, {"a": [1]}):
        kept = PLAIN.arguments(value)
        assert isinstance(kept, FrozenDict)
        with pytest.raises(TypeError):
            kept["a"] = 2


def test_what_cannot_be_written_at_all_has_a_placeholder():
    ring = []
    ring.append(ring)
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert PLAIN.arguments(ring) == PLAIN.arguments(deep) == UNWRITABLE


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (None, None),
        ("it failed", "it failed"),
        (ValueError("no such host"), "ValueError: no such host"),
        (7, "7"),
    ],
)
def test_what_is_kept_of_an_error(given, kept):
    assert PLAIN.error(given) == kept


def test_an_error_is_cut_and_need_not_have_a_text():
    class Odd(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    assert len(PLAIN.error("x" * 9000)) == MAX_ERROR
    assert PLAIN.error(Odd()) == "Odd"


def test_what_stood_under_a_hidden_name_is_hidden_wherever_it_comes_up_again():
    kept = Kept({"keys": ["token"]})
    assert kept.text("with t0p-s3cret") == "with t0p-s3cret"
    assert kept.arguments({"auth": {"token": "t0p-s3cret"}}) == {"auth": {"token": "[REDACTED]"}}
    assert kept.text("with t0p-s3cret") == "with [REDACTED]"
    assert kept.result({"said": "it is t0p-s3cret"}) == {"said": "it is [REDACTED]"}
    assert kept.error(ValueError("t0p-s3cret refused")) == "ValueError: [REDACTED] refused"


def test_paths_and_literal_values_are_hidden_too():
    kept = Kept({"paths": ["rows[*].key"], "values": ["hunter2-hunter2"]})
    given = {"rows": [{"key": "k1", "id": 1}], "note": "hunter2-hunter2"}
    assert kept.arguments(given) == {
        "rows": [{"key": "[REDACTED]", "id": 1}],
        "note": "[REDACTED]",
    }
    assert kept.arguments("text with hunter2-hunter2") == "text with [REDACTED]"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(values)
def test_whatever_is_given_json_carries_what_is_kept(given):
    kept = PLAIN.arguments(given)
    assert json.loads(json.dumps(kept, allow_nan=False)) == kept
    assert PLAIN.arguments(kept) == kept
