"""Rows as CSV: exact, and nothing in them that a spreadsheet would run."""

import csv
import io
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb.share.spreadsheet import sheet_of

RULES = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], rb.Default("fresh"))


def read(sheet):
    return list(csv.reader(io.StringIO(sheet.text, newline="")))


def judged(rows, **more):
    return rb.triage(rows, RULES, subject="host", source="rows", **more)


def test_it_has_a_line_per_row_with_what_decided_it():
    sheet = sheet_of(judged([{"host": "a", "days": 9}, {"host": "b", "days": None}]))
    assert read(sheet) == [
        ["host", "verdict", "days", "decided_by", "rule"],
        ["a", "old", "9", "days 9 > 7", "1"],
        ["b", "declined", "", "days is null", "unreadable"],
    ]
    assert (sheet.rows, sheet.total, sheet.guarded) == (2, 2, 0)


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t", "\r", "\n", "  =", "\uff1d"])
def test_what_a_spreadsheet_would_run_is_kept_as_text(sign):
    name = f"{sign}HYPERLINK(1)"
    sheet = sheet_of(judged([{"host": name, "days": 9}]))
    assert read(sheet)[1][0] == f"'{name}"
    assert sheet.guarded == 1


def test_so_is_the_name_of_a_column():
    sheet = sheet_of(judged([{"host": "a", "days": 9, "=x": 1}], columns=["host", "=x"]))
    assert "'=x" in read(sheet)[0]


def test_numbers_are_numbers_also_below_nothing():
    rows = [{"host": "a", "days": -3}, {"host": "b", "days": 2**70}, {"host": "c", "days": 0.1}]
    sheet = sheet_of(judged(rows))
    assert [row[2] for row in read(sheet)[1:]] == ["-3", str(2**70), "0.1"]
    assert sheet.guarded == 0


def test_ids_and_other_values_are_exact():
    rows = [
        {"host": "0012", "days": 1, "more": True},
        {"host": "1e5", "days": 1, "more": date(2026, 11, 29)},
        {"host": 'a,b"c', "days": 1, "more": datetime(2026, 11, 29, 1, 2, 3, tzinfo=UTC)},
        {"host": "line\r\nline", "days": 1, "more": Decimal("1.10")},
        {"host": "e", "days": 1, "more": [1, "x"]},
        {"host": "f", "days": 1, "more": timedelta(days=1)},
    ]
    sheet = sheet_of(judged(rows, columns=["host", "more"]))
    found = read(sheet)
    place = found[0].index("more")
    assert [row[0] for row in found[1:]] == [row["host"] for row in rows]
    assert [row[place] for row in found[1:]] == [
        "true",
        "2026-11-29",
        "2026-11-29T01:02:03+00:00",
        "1.10",
        '[1,"x"]',
        "P1D",
    ]


@given(st.lists(st.text(min_size=1).filter(str.strip), max_size=8, unique=True))
def test_whatever_a_name_is_it_reads_back_and_runs_nothing(names):
    sheet = sheet_of(judged([{"host": name, "days": 9} for name in names]))
    found = [row[0] for row in read(sheet)[1:]]
    assert len(found) == len(names)
    for name, cell in zip(names, found, strict=True):
        assert cell in (name, f"'{name}")
        assert not cell.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r", "\n"))


@pytest.mark.parametrize(
    "before", ["\ufeff", "\xa0", "\x0b", "\x00", "\u200b", " \u3000", "\u2060"]
)
def test_what_shows_nothing_hides_no_formula(before):
    sheet = sheet_of(judged([{"host": f"{before}=1+1", "days": 9}]))
    assert (read(sheet)[1][0], sheet.guarded) == (f"'{before}=1+1", 1)
    plain = sheet_of(judged([{"host": f"{before}a=1", "days": 9}]))
    assert (read(plain)[1][0], plain.guarded) == (f"{before}a=1", 0)


def test_a_capped_copy_says_how_many_rows_it_lacks():
    live = judged([{"host": f"h{n}", "days": n} for n in range(60)])
    assert (sheet_of(live).rows, sheet_of(live).total) == (60, 60)
    copy = rb.Envelope.from_dict(live.to_dict())
    assert (sheet_of(copy).rows, sheet_of(copy).total) == (50, 60)


def test_what_a_policy_hides_is_hidden(tmp_path):
    rows = [{"host": "a", "days": 9, "token": "s3cr3t-value"}]
    answer = judged(rows, columns=["host", "token"], redact=rb.Redact(keys=["token"]))
    text = answer.to_csv(tmp_path / "a.csv").read_text()
    assert "s3cr3t" not in text
    assert "[REDACTED]" in text


def test_no_rows_are_a_line_of_names_or_nothing_at_all():
    answer = judged([])
    assert sheet_of(answer).rows == 0
