"""Texts for people: cuts that show, control characters that do not act, words that are near."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb._text import (
    MISSING,
    SUMMARY_LENGTH,
    clip,
    counted,
    did_you_mean,
    duration_text,
    listed,
    nearest,
    number_text,
    show,
    summarize,
    visible,
)


@given(st.text(), st.integers(1, 30))
def test_a_cut_text_fits_and_shows_that_it_was_cut(text, length):
    cut = clip(text, length)
    assert len(cut) <= length
    if len(text) <= length:
        assert cut == text
    else:
        assert cut.endswith("…")
        assert text.startswith(cut[:-1])


@given(st.text())
def test_a_visible_text_has_nothing_that_acts_on_a_terminal_or_turns_text_around(text):
    shown = visible(text)
    for char in shown:
        point = ord(char)
        assert not (point < 0x20)
        assert not (0x7F <= point < 0xA0)
        assert not (0xD800 <= point < 0xE000)
        assert point not in range(0x202A, 0x202F)
        assert point not in range(0x2066, 0x206A)
        assert point not in (0x2028, 0x2029)
    shown.encode("utf-8")


def test_ordinary_text_stays_as_it_is():
    for text in ("plain", "Ärger – 30 °C", "日本語", ""):
        assert visible(text) == text
    assert visible("a\tb\r\n\x00\u202e") == "a\\tb\\r\\n\\x00\\u202e"


@pytest.mark.parametrize(
    ("word", "choices", "found"),
    [
        ("notIn", ["in", "not_in"], "not_in"),
        ("lable", ["when", "then", "label"], "label"),
        ("Max Rows", ["max_rows"], "max_rows"),
        ("zzz", ["when", "then"], None),
        ("x", [], None),
    ],
)
def test_the_word_that_was_meant(word, choices, found):
    assert nearest(word, choices) == found


@pytest.mark.parametrize(
    ("word", "choices", "said"),
    [
        ("ge", ["gt", "gte", "lt"], "did you mean 'gte'?"),
        ("cov", ["coverage"], "did you mean 'coverage'?"),
        ("zzz", ["a"], None),
        ("x", ["axe"], None),
        ("", ["axe"], None),
    ],
)
def test_a_fix_is_offered_only_where_something_is_near(word, choices, said):
    assert did_you_mean(word, choices) == said


@given(st.text(max_size=6), st.lists(st.text(max_size=6), max_size=5))
def test_a_fix_does_not_depend_on_the_order_of_the_choices(word, choices):
    assert did_you_mean(word, choices) == did_you_mean(word, choices[::-1])


def test_lists_and_counts_read_as_sentences():
    assert [listed(["a", "b", "c"][:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
    assert listed(["a", "b"], "or") == "a or b"
    assert [counted(n, "row") for n in (0, 1, 2)] == ["0 rows", "1 row", "2 rows"]
    assert counted(2, "entry", "entries") == "2 entries"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (MISSING, "undefined"),
        (None, "null"),
        (True, "true"),
        (False, "false"),
        ("x", '"x"'),
        (30, "30"),
        (2.0, "2.0"),
        (Decimal("0.10"), "0.10"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        pytest.param(10**400, "<integer of 1329 bits>"),
        (date(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        (timedelta(hours=1), "PT1H"),
        ([], "[]"),
        ([1], "(1 item)"),
        ((1, 2), "(2 items)"),
        ({1, 2}, "(2 items)"),
        ({}, "{}"),
        ({"a": 1, "b": 2}, "{a, b}"),
        (dict.fromkeys("abcdef"), "{a, b, c, d, ... (6 keys)}"),
        ({"x" * 90: 1, "y": 2}, "{2 keys}"),
        (b"x", "<bytes>"),
        (object(), "<object>"),
    ],
)
def test_summaries_of_values(value, said):
    assert summarize(value) == said


@given(st.text(min_size=SUMMARY_LENGTH + 1))
def test_a_long_text_is_cut_before_it_is_quoted(text):
    said = summarize(text)
    assert said == f'"{text[: SUMMARY_LENGTH - 3]}..."'


def test_values_in_a_table_are_bare():
    assert [show(v) for v in ("a", None, MISSING, True, 3, "\x1b")] == [
        "a",
        "—",
        "—",
        "true",
        "3",
        "\\x1b",
    ]


@pytest.mark.parametrize(
    ("delta", "text"),
    [
        (timedelta(0), "PT0S"),
        (timedelta(days=1), "P1D"),
        (timedelta(seconds=-90), "-PT1M30S"),
        (timedelta(microseconds=1500), "PT0.0015S"),
        (timedelta(days=2, hours=3, minutes=4, seconds=5.5), "P2DT3H4M5.5S"),
    ],
)
def test_durations_in_the_standard_form(delta, text):
    assert duration_text(delta) == text


@given(st.integers(-(10**30), 10**30) | st.decimals(allow_nan=False, allow_infinity=False))
def test_numbers_lose_no_digit(value):
    assert Decimal(number_text(value)) == value


def test_the_missing_value_is_one_and_false():
    import copy
    import pickle

    assert copy.deepcopy(MISSING) is MISSING
    assert pickle.loads(pickle.dumps(MISSING)) is MISSING  # noqa: S301 - what a worker is sent
    assert not MISSING
    assert repr(MISSING) == "MISSING"
