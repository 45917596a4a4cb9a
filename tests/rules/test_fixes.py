"""What is advised instead of a limit that nothing could be compared with."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb.rules.fixes import fix_words, literal
from runbook_nb.rules.kinds import KIND_WORDS, MISMATCH, kind_of
from runbook_nb.rules.operators import compile_condition

DAY = dt.date.fromisoformat("2026-09-01")
NAIVE = dt.datetime.fromisoformat("2026-09-01T00:00:00")
AWARE = NAIVE.replace(tzinfo=dt.UTC)
NUMBER, TEXT, DATE = "a number", "text", "a date"
NO_ZONE, ZONE = "a datetime without a zone", "a datetime with a zone"


@pytest.mark.parametrize(
    ("held", "needed", "limit", "fix"),
    [
        (NO_ZONE, DATE, DAY, "write datetime(2026, 9, 1) as the limit"),
        (
            ZONE,
            DATE,
            DAY,
            "write datetime(2026, 9, 1, tzinfo=UTC) as the limit, or the zone that is meant",
        ),
        (DATE, NO_ZONE, NAIVE, "write date(2026, 9, 1) as the limit"),
        (NO_ZONE, TEXT, "2026-09-01", "write datetime(2026, 9, 1) as the limit, without quotes"),
        (DATE, TEXT, " 2026-09-01 ", "write date(2026, 9, 1) as the limit, without quotes"),
        (NUMBER, TEXT, "90", "write 90 as the limit, without quotes"),
        (NUMBER, TEXT, "1.5", "write 1.5 as the limit, without quotes"),
        (NUMBER, TEXT, "-7", "write -7 as the limit, without quotes"),
    ],
)
def test_a_limit_that_means_a_value_of_the_other_kind_is_spelt_out(held, needed, limit, fix):
    assert fix_words([held], needed, "lt", limit) == fix


def test_the_limits_of_a_list_are_all_spelt_out():
    assert fix_words([NUMBER], TEXT, "between", ["1", "5"]) == (
        "write [1, 5] as the limit, without quotes"
    )
    assert "give the limit as a number" in fix_words([NUMBER], TEXT, "in", ["1", "many"])


@pytest.mark.parametrize("limit", ["90 days ago", "soon", 90])
def test_an_age_is_judged_by_a_column_of_days(limit):
    needed = TEXT if isinstance(limit, str) else NUMBER
    assert fix_words([NO_ZONE], needed, "lt", limit) == (
        "write datetime(year, month, day) as the limit; for an age, judge a column of days "
        "since then"
    )
    assert fix_words([DATE], needed, "lt", limit).startswith("write date(year, month, day)")


def test_a_time_of_day_is_not_thrown_away():
    at_eight = NAIVE.replace(hour=8)
    assert fix_words([DATE], NO_ZONE, "lt", at_eight) == (
        "make both sides a datetime without a zone, or give the limit as a date"
    )
    assert "year, month, day" in fix_words([DATE], TEXT, "lt", "2026-09-01T08:00")


def test_a_zone_is_not_thrown_away_either():
    assert fix_words([NO_ZONE], ZONE, "lt", AWARE).startswith("give both sides a zone")
    assert "year, month, day" in fix_words([NO_ZONE], TEXT, "lt", "2026-09-01T00:00Z")


def test_a_hidden_limit_is_not_spelt_in_other_words():
    assert fix_words([NO_ZONE], TEXT, "lt", "2026-09-01", hidden=True) == (
        "make the values text before judging, or give the limit as a datetime without a zone"
    )


@pytest.mark.parametrize("op", ["contains", "starts_with", "matches"])
def test_operators_of_texts_are_not_told_to_take_a_number(op):
    assert "write" not in fix_words([NUMBER], TEXT, op, "90")


def test_values_of_several_kinds_are_made_one():
    assert fix_words([NUMBER, TEXT], DATE, "lt", DAY) == "make every value a date before judging"


@pytest.mark.parametrize("text", ["", "nan", "1e999", "9" * 50, "sNaN", "inf\x00"])
def test_texts_that_are_no_number_are_not_written_as_one(text):
    assert "nan" not in fix_words([NUMBER], TEXT, "gt", text).lower()


def test_seconds_and_zones_are_written():
    zone = dt.timezone(dt.timedelta(hours=2))
    assert literal(NAIVE.replace(hour=8, second=3)) == "datetime(2026, 9, 1, 8, 0, 3)"
    assert literal(NAIVE.replace(microsecond=5)) == "datetime(2026, 9, 1, 0, 0, 0, 5)"
    assert literal(NAIVE.replace(tzinfo=zone)) == (
        "datetime(2026, 9, 1, tzinfo=timezone(timedelta(minutes=120)))"
    )


NAMES = {
    "date": dt.date,
    "datetime": dt.datetime,
    "timezone": dt.timezone,
    "timedelta": dt.timedelta,
    "UTC": dt.UTC,
}


@given(
    st.one_of(
        st.dates(),
        st.datetimes(),
        st.datetimes(timezones=st.just(dt.UTC)),
        st.integers(-(10**6), 10**6),
    ),
    st.sampled_from([DAY, NAIVE, AWARE, 1]),
)
def test_what_is_advised_can_be_typed_and_then_judged(limit, value):
    """Of any limit, as it is or as a text, the advice is a limit the value can be compared with."""
    for given_ in (limit, limit.isoformat() if isinstance(limit, dt.date) else str(limit)):
        held, needed = kind_of(value), kind_of(given_)
        if held == needed:
            continue
        said = fix_words([KIND_WORDS[held]], KIND_WORDS[needed], "lt", given_)
        if not said.startswith("write ") or "year" in said:
            continue
        code = said.removeprefix("write ").partition(" as the limit")[0]
        name, _, args = code.partition("(")
        typed = NAMES[name](*_read(args.removesuffix(")"))) if args else int(code)
        assert compile_condition("lt", typed)(value) != MISMATCH


def _read(args):
    parts = args.split(", ")
    zone = [dt.UTC] if parts[-1] == "tzinfo=UTC" else []
    numbers = [int(part) for part in parts if not part.startswith("tzinfo")]
    return [*numbers, *[0] * (7 - len(numbers)), *zone] if zone else numbers
