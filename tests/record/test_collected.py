"""Verdict rows collected from slots are the rows one would have written out of them."""

from __future__ import annotations

import copy
import json
import pickle
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judged_cases import POLICIES, ROWS, RULES, Case, rule_set

import runbook_nb as rb
from runbook_nb.errors import DefinitionError, RunbookError
from runbook_nb.record.collected import VerdictRows, without_missing
from runbook_nb.record.written import read_log, write_log
from runbook_nb.rules.columns import Columns, as_columns

tried = settings(
    max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)

AGE = rb.RuleSet("age", "v1", [rb.Rule({"age": {"gt": 7}}, "old")], "fresh")
DAYS = [{"host": "a", "age": 9}, {"host": "b"}, {"host": "c", "age": 1}, {"age": 30}]


def run_of(chart, redact=None):
    try:
        return chart.run_sync(redact=redact)
    except RunbookError as error:
        return error.run


def by_hand(slots, names):
    """Write the rows out of slots, one after the other."""
    return [
        {"host": slot.item.get("host"), "verdict": slot.branch}
        | {name: slot.item.get(name) for name in names if name not in ("host", "verdict")}
        for slot in slots
        if slot.status == "ok" and slot.branch is not None
    ]


@given(RULES.map(rule_set).filter(bool), ROWS, st.integers(1, 10), st.booleans(), POLICIES)
@tried
def test_the_rows_are_those_written_by_hand_slot_by_slot(rules, rows, cap, columnar, policy):
    case = Case(rules, rows, cap)
    slots = run_of(case.judged() if columnar else case.twin(), policy).slots("judge")
    names = ["age", "Größe", "a.b"]
    rows = slots.verdict_rows(*names, subject="host")
    expected = by_hand(slots, names) if policy is None else None
    if expected is None:
        assert len(rows) == sum(s.status == "ok" and s.branch is not None for s in slots)
        return
    assert repr([dict(row) for row in rows]) == repr(expected)
    assert repr(list(map(dict, rows[::-1]))) == repr(expected[::-1])
    words = [row["verdict"] for row in expected]
    assert list(rows.counts().items()) == list(Counter(words).items())
    for word in set(words):
        assert list(rows.rows_of(word)) == [n for n, one in enumerate(words) if one == word]
    for name in rows.names:
        assert repr(list(rows.column(name))) == repr([row[name] for row in expected])
    ok = [slot.index for slot in slots if slot.status == "ok" and slot.branch is not None]
    assert [rows.item_of(row) for row in range(len(rows))] == ok


def rows_of_days(form="judged"):
    case = Case(AGE, DAYS, 99)
    return run_of(case.judged() if form == "judged" else case.twin()).slots("judge")


@pytest.mark.parametrize("form", ["judged", "twin"])
def test_copies_are_the_rows_without_the_record(form):
    rows = rows_of_days(form).verdict_rows("age", subject="host")
    assert isinstance(rows, VerdictRows)
    for again in (pickle.loads(pickle.dumps(rows)), list(rows)):  # noqa: S301 - our own
        assert again == list(map(dict, rows))
        assert not isinstance(again, VerdictRows)
    assert list(copy.copy(rows)) == list(rows)
    assert rows == list(rows)
    assert rows not in ([], "x")
    with pytest.raises(IndexError):
        rows[len(rows)]
    assert rows.rows_of("no such word") == ()


def test_columns_named_twice_or_like_the_subject_stand_once():
    rows = rows_of_days().verdict_rows("host", "age", "verdict", "age", "none", subject="host")
    assert rows.names[:2] == ("host", "verdict")
    assert list(rows[0]) == ["host", "verdict", "age", "none"] or list(rows[0]) == list(
        dict.fromkeys(rows.names)
    )
    assert rows[0]["none"] is None


def test_a_fan_out_without_a_subject_says_what_to_write():
    chart = rb.flow_chart("c", lambda s: None, id="c").add_judge_each(
        "J", id="j", items=lambda s: DAYS, rules=AGE, into="out", max_branches=9
    )
    slots = chart.build().run_sync().slots("j")
    with pytest.raises(DefinitionError, match=r"subject"):
        slots.verdict_rows("age")
    assert [row["age"] for row in slots.verdict_rows("age", subject="host")] == [9, None, 1, 30]


def test_what_a_row_lacks_is_none():
    held = as_columns([{"a": 1}, {"b": 2}])
    assert list(without_missing(held.held("a"))) == [1, None]
    assert without_missing([1, 2]) == [1, 2]
    assert without_missing([1, rb._text.MISSING]) == [1, None]


@pytest.mark.parametrize("form", ["judged", "twin"])
def test_a_name_that_no_item_has_is_none_also_where_a_branch_has_no_row(form):
    case = Case(AGE, DAYS, 3)  # the last is past the cap
    rows = run_of(getattr(case, form)()).slots("judge").verdict_rows("none", subject="host")
    assert len(rows) == 3
    assert list(rows.column("none")) == [None] * 3
    assert [dict(row) for row in rows[1:]] == [dict(rows[1]), dict(rows[2])]


def test_rows_shown_together_read_each_column_once(calls_of):
    held = as_columns({"host": ["h"] * 600, "age": list(range(600))})
    rows = (
        Case(AGE, held, 600).judged().run_sync().slots("judge").verdict_rows("age", subject="host")
    )
    assert rows[100:500] == [rows[place] for place in range(100, 500)]
    together = calls_of(lambda: rows[100:500])
    assert together * 3 < calls_of(lambda: [rows[place] for place in range(100, 500)])


def test_no_row_is_made_to_count_them(calls_of):
    def count(size):
        case = Case(AGE, as_columns({"host": ["h"] * size, "age": list(range(size))}), size)
        slots = case.judged().run_sync().slots("judge")
        return calls_of(lambda: slots.verdict_rows("age", subject="host").counts())

    assert count(20_000) < count(2_000) + 100


def paused():
    """Give a chart that asks with rows and verdicts kept as columns in its state."""
    held = as_columns(DAYS)
    return (
        rb.flow_chart("c", lambda s: s.set("rows", held), id="rows")
        .add_judge_each(
            "J", id="j", items=lambda s: s["rows"], rules=AGE, into="out", subject="host",
            max_branches=9,
        )
        .add_function("V", lambda s: s.set("kept", s["out"].verdict_rows("age")), id="v")
        .add_function("Ask", lambda s: s.set("said", rb.interrupt(s, "go on?")), id="ask")
        .build()
    )  # fmt: skip


def test_a_run_that_keeps_rows_as_columns_pauses_and_goes_on():
    chart = paused()
    first = chart.run_sync()
    assert isinstance(first.state["rows"], Columns)
    assert isinstance(first.state["kept"], VerdictRows)
    again = chart.resume_sync(json.loads(json.dumps(first.checkpoint)), "yes")
    assert (again.status, again.state["said"]) == ("ok", "yes")
    assert again.state["rows"] == DAYS
    assert again.state["kept"] == list(first.state["kept"])


def test_the_log_of_rows_kept_as_columns_is_read_back_with_every_row():
    log = paused().run_sync().log
    written = json.loads(json.dumps(write_log(log)))
    assert "Columns>" not in json.dumps(written)
    assert "VerdictRows>" not in json.dumps(written)
    again = read_log(written, [AGE])
    assert again.root.values[0] == DAYS
    assert json.dumps(write_log(again)) == json.dumps(written)
