"""JSON of any depth: read and written as `json` does it, where `json` itself gives up."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb import _deep
from runbook_nb._deep import read_json, write_json

DEEP = 60_000
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


def by_hand(text):
    """Read with the reader that keeps no stack, whatever the depth."""
    return _deep._Reader(text).read()


def pieces(value, *, sort_keys=False):
    return "".join(_deep._pieces(value, sort_keys=sort_keys))


@given(VALUES)
def test_both_readers_and_both_writers_say_the_same(value):
    text = json.dumps(value)
    assert by_hand(text) == read_json(text) == json.loads(text)
    for sort_keys in (False, True):
        compact = json.dumps(
            value, ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys, allow_nan=False
        )
        assert write_json(value, sort_keys=sort_keys) == compact
        assert pieces(value, sort_keys=sort_keys) == compact


@given(VALUES, st.integers(0, 4))
def test_blanks_between_the_parts_change_nothing(value, indent):
    text = f" \n{json.dumps(value, indent=indent)}\t\r\n"
    assert json.dumps(by_hand(text)) == json.dumps(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        "[",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "{1:2}",
        '{"a"}',
        '{"a":}',
        '{"a":1,}',
        '{"a":1 "b":2}',
        '{"a" 1}',
        '["a]',
        '["\n"]',
        "[1}",
        '{"a":1]',
        "[1] 2",
        "nul",
        "01",
        "-",
        "1.",
        "NaN",
        "[Infinity]",
        "[-Infinity]",
        "'a'",
    ],
)
def test_what_is_no_json_is_refused_by_both_readers(text):
    for read in (read_json, by_hand):
        with pytest.raises(ValueError):  # noqa: PT011 - the message is the library's
            read(text)


def test_an_integer_nobody_can_spell_out_is_refused():
    for read in (read_json, by_hand):
        with pytest.raises(ValueError, match="digits"):
            read("9" * 5000)


@pytest.mark.parametrize("layer", [('{"next":', "}"), ("[", "]"), ('[0,{"a":1,"b":', ',"c":2}]')])
def test_what_is_nested_without_end_is_read_and_written(layer):
    before, after = layer
    text = before * DEEP + "null" + after * DEEP
    value = read_json(text)
    assert write_json(value) == text
    assert write_json(value, sort_keys=True) == text
    assert read_json(text.encode()) is not None


def test_a_deep_text_that_breaks_off_is_refused():
    with pytest.raises(ValueError, match="Expecting"):
        read_json('{"next":' * DEEP)
    with pytest.raises(ValueError, match="Expecting"):
        read_json("[" * DEEP + "]" * (DEEP - 1) + "}")


def test_what_json_lacks_is_refused_at_any_depth():
    for odd in ({1: 2}, float("nan"), {"a"}, object()):
        deep = odd
        for _ in range(DEEP):
            deep = [deep]
        with pytest.raises((TypeError, ValueError)):
            write_json(deep)


def test_a_key_that_comes_twice_counts_as_its_last():
    assert by_hand('{"a":1,"b":2,"a":[3]}') == {"a": [3], "b": 2}
