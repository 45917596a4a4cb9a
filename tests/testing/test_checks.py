"""Assertions about answers fail when they should, and say all of it."""

import pytest

import runbook_nb as rb
from runbook_nb.testing import (
    FrozenClock,
    assert_hidden,
    assert_reproducible,
    assert_verdicts,
    forms_of,
    reproducible,
)

SECRET = "t0p-s3cret & <more>"


@pytest.fixture(scope="module")
def rules():
    return rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], rb.Default("fresh"))


def judged(rules, rows, **more):
    return rb.triage(rows, rules, subject="host", source="rows made here", **more)


ROWS = [{"host": "a", "days": 9}, {"host": "b", "days": 1}, {"host": "c", "days": None}]


# --- verdicts ----------------------------------------------------------------------------------


def test_exactly_the_verdicts_there_are_pass(rules):
    assert_verdicts(judged(rules, ROWS), {"a": "old", "b": "fresh", "c": "declined"})


def test_every_difference_is_told_at_once_with_its_reason(rules):
    with pytest.raises(AssertionError) as caught:
        assert_verdicts(judged(rules, ROWS), {"a": "fresh", "c": "declined", "d": "old"})
    assert str(caught.value).splitlines() == [
        "3 verdicts differ",
        "  a is old, not fresh: old by rule 1 of age v1: days 9 > 7",
        "  d has no row; old was expected",
        "  b is fresh and was not expected: fresh by default of age v1: no rule fired",
    ]


def test_one_difference_is_one(rules):
    with pytest.raises(AssertionError, match=r"^1 verdict differs"):
        assert_verdicts(judged(rules, ROWS[:1]), {"a": "fresh"})


def test_two_rows_about_one_subject_are_a_difference(rules):
    with pytest.raises(AssertionError, match="a has several rows"):
        assert_verdicts(judged(rules, [ROWS[0], ROWS[0]]), {"a": "old"})


def test_a_copy_that_holds_fewer_rows_than_there_are_proves_nothing(rules):
    wire = judged(rules, ROWS, max_rows=2).to_dict()
    with pytest.raises(AssertionError, match="only 2 of 3 rows are held"):
        assert_verdicts(rb.Envelope.from_dict(wire), {"a": "old", "b": "fresh"})


# --- repeatability -----------------------------------------------------------------------------


def test_an_answer_made_twice_is_the_same_in_every_form(rules):
    envelope = assert_reproducible(lambda: judged(rules, ROWS))
    assert envelope.verdicts.complete


def test_what_depends_on_something_else_than_its_input_is_found(rules):
    calls = []

    def make():
        calls.append(1)
        return judged(rules, [{"host": f"host-{len(calls)}", "days": 9}])

    with pytest.raises(
        AssertionError, match=r"the form str differs from character \d+ on"
    ) as caught:
        assert_reproducible(make)
    assert "host-1" in str(caught.value)
    assert "host-2" in str(caught.value)


def test_ids_and_clock_may_be_chosen(rules):
    def make():
        return judged(rules, [{"host": rb.settings.ids(6), "days": rb.settings.clock().day}])

    one = assert_reproducible(make, seed="one")
    assert assert_reproducible(make, seed="one") == one
    assert assert_reproducible(make, seed="two") != one


def test_a_form_that_comes_and_goes_is_found():
    class Shy(rb.RuleSet):
        shown = 0

        def to_markdown(self):
            Shy.shown += 1
            return "m" * Shy.shown

    with pytest.raises(AssertionError, match="the form to_markdown differs from character 1"):
        assert_reproducible(lambda: Shy("r", "1", [rb.Rule({"a": {"gt": 1}}, "x")]))


# --- secrets -----------------------------------------------------------------------------------


def test_a_hidden_value_is_in_no_form(rules):
    rows = [{"host": "a", "days": 9, "token": SECRET}]
    shown = judged(rules, rows, columns=["days", "token"], redact={"keys": ["token"]})
    assert_hidden(shown, SECRET)


@pytest.mark.parametrize("columns", [["days"], ["days", "token"]])
def test_a_value_that_is_not_hidden_is_found_even_where_no_row_shows_it(rules, columns):
    shown = judged(rules, [{"host": "a", "days": 9, "token": SECRET}], columns=columns)
    with pytest.raises(AssertionError, match="holds secret number 2") as caught:
        assert_hidden(shown, "something else", SECRET)
    assert SECRET not in str(caught.value)


def test_what_is_encoded_in_an_output_is_looked_into(rules):
    forms = dict(forms_of(judged(rules, ROWS)))
    assert forms["text/html, picture 1"].startswith("<svg")
    assert '"format": "runbook_nb/envelope/1"' in forms["text/html, what it carries"]
    assert {"repr", "str", "text/plain", "text/html", "to_json", "recording"} <= set(forms)


@pytest.mark.parametrize("secrets", [(), ("",), ("x", "")])
def test_looking_for_nothing_is_no_proof(rules, secrets):
    with pytest.raises(AssertionError, match="no secret was named"):
        assert_hidden(judged(rules, ROWS), *secrets)


# --- time --------------------------------------------------------------------------------------


def test_a_clock_without_a_zone_is_refused():
    from datetime import datetime

    with pytest.raises(rb.errors.DefinitionError, match="has no zone"):
        FrozenClock(datetime(2026, 1, 1))  # noqa: DTZ001 - that is the point


def test_reproducible_takes_other_settings_and_gives_them_back():
    before = rb.settings.max_text_rows
    with reproducible(max_text_rows=3) as settings:
        assert settings.max_text_rows == 3
    assert rb.settings.max_text_rows == before
