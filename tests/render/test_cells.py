from __future__ import annotations

from datetime import date
from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb._text import MISSING
from runbook_nb._view import Badge, Card, Data, FlowLine, Table
from runbook_nb.render.cells import (
    answer_of,
    cell_text,
    fit,
    is_missing,
    is_number,
    more_rows,
    packed,
    pad,
    run_text,
    state_word,
    width,
    wrap,
)
from runbook_nb.settings import settings


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "—"),
        (MISSING, "—"),
        ("", "—"),
        (0, "0"),
        (0.0, "0.0"),
        (False, "false"),
        (True, "true"),
        (float("nan"), "NaN"),
        (date(2026, 11, 28), "2026-11-28"),
        (Colour.RED, "red"),
        ("[REDACTED]", "[REDACTED]"),
        ([], "[]"),
    ],
)
def test_a_value_shows_as_what_was_recorded_and_only_nothing_as_a_dash(value, shown):
    assert run_text(Data(value=value)) == shown


def test_a_unit_follows_a_value_but_not_a_dash():
    assert run_text(Data(value=7, unit="days")) == "7 days"
    assert run_text(Data(value=None, unit="days")) == "—"


def test_a_long_value_is_cut_visibly_at_the_cap_for_cells():
    assert run_text(Data(value="x" * 400)) == "x" * 199 + "…"
    with settings(max_cell=5):
        assert run_text(Data(value="backup")) == "back…"


def test_words_of_ours_are_not_cut_with_the_data():
    assert run_text("x" * 400) == "x" * 400


def test_runs_stand_in_a_row_with_one_space_and_none_before_punctuation():
    assert cell_text(("Rule 2 fired: ", Data(value="age"), " was", 30, ".")) == (
        "Rule 2 fired: age was 30."
    )
    assert cell_text((Badge(word="a"), "->", Badge(word="b"))) == "a -> b"
    assert cell_text(("(", Data(value=3), ")")) == "(3)"


def test_data_that_begins_with_punctuation_still_stands_apart():
    assert cell_text(("key", Data(value=".env"))) == "key .env"
    assert cell_text((Data(value="problem"), Data(value="late"), "!=", Data(value=""))) == (
        "problem late != —"
    )


def test_a_blank_run_leaves_no_double_space():
    assert cell_text(("a", "", "b")) == "a b"


def test_truth_values_and_texts_are_not_numbers():
    assert [is_number(cell) for cell in (1, Data(value=1.5), True, Data(value="1"), None)] == [
        True,
        True,
        False,
        False,
        False,
    ]


def test_an_empty_text_of_ours_is_blank_and_of_theirs_missing():
    assert not is_missing("")
    assert is_missing(Data(value=""))


def test_an_answer_holds_its_counts_and_what_they_amount_to():
    badges = (Badge(word="declined", count=3),)
    card = Card(kind="E", name="x", headline="3 rows", badges=badges, tail="no verdict was reached")
    assert answer_of(card) == "3 rows (3 declined), no verdict was reached"
    assert answer_of(Card(kind="E", name="x", badges=badges)) == "3 declined"
    assert answer_of(Card(kind="E", name="x")) == ""


def test_more_rows_counts_from_the_rows_there_are():
    table = Table(columns=(), rows=((), ()), total=0, rest="to_frame()")
    assert more_rows(table, 1) == "1 more row: to_frame()"
    assert more_rows(table, 2) == ""


def test_a_state_is_said_unless_our_own_words_say_it():
    def word(*cells):
        return state_word(FlowLine(depth=0, cells=cells, state="not_reached"))

    assert word("load") == "not reached"
    assert word("load", "9 not reached") == ""
    assert word("load", ("rule", "not reached: time")) == ""
    assert word("load", Data(value="not reached")) == "not reached"
    assert word("not reached") == "not reached"
    declined = FlowLine(depth=0, cells=("approve", "declined"), state="failed")
    assert state_word(declined) == ""


@pytest.mark.parametrize(
    ("text", "columns"),
    [("abc", 3), ("備份", 4), ("ｶﾅ", 2), ("Ａ", 2), ("e\u0301", 1), ("a\u200bb", 2), ("\u00ad", 1)],
)
def test_width_is_what_a_terminal_takes(text, columns):
    assert width(text) == columns


@given(st.text(), st.integers(0, 40))
def test_a_cut_text_fits_and_says_that_it_was_cut(text, columns):
    cut = fit(text, columns)
    assert width(cut) <= columns
    assert cut == text or cut.endswith("…") or columns == 0


@given(st.text(), st.integers(0, 80), st.booleans())
def test_padding_adds_spaces_alone(text, columns, right):
    padded = pad(text, columns, right=right)
    assert width(padded) == max(columns, width(text))
    assert padded.replace(" ", "") == text.replace(" ", "")


@given(st.text(alphabet="ab 備", max_size=200), st.integers(6, 40))
def test_wrapping_keeps_every_word_that_fits_a_line(text, columns):
    lines = wrap(text, columns)
    assert all(width(line) <= columns for line in lines)
    if all(width(word) <= columns for word in text.split(" ")):
        assert " ".join(lines) == text


@given(st.lists(st.text(alphabet="ab ", min_size=1, max_size=30), max_size=12))
def test_packed_facts_stay_in_order_and_within_the_line(parts):
    lines = packed(parts, 40)
    assert all(width(line) <= 40 for line in lines)
    assert " · ".join(lines) == " · ".join(parts)


def test_a_fact_wider_than_the_line_is_wrapped_not_cut():
    assert packed(["a", "last backup older than the threshold"], 20) == [
        "a",
        "last backup older",
        "than the threshold",
    ]
