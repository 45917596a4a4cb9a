"""Judging frames: the decisions are those of `decide`, row by row, whatever the rows came in."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

from runbook_nb.errors import RuleError
from runbook_nb.rules import Rule, RuleSet, decide
from runbook_nb.rules.columns import as_columns, rows_of
from runbook_nb.rules.frame import judge_columns, judge_frame

ROWS = [
    {"subject": "a", "age_days": 30, "age_known": True},
    {"subject": "b", "age_days": 2, "age_known": True},
    {"subject": "c", "age_days": None, "age_known": False},
    {"subject": "d", "age_known": True},
    {"age_known": True, "age_days": "30", "subject": "é"},
]


def held_against_decide(source, rules):
    """Hold every decision about a frame against the one about its row."""
    judged = judge_columns(rules, as_columns(source))
    expected = [decide(row, rules) for row in rows_of(source)]
    assert list(judged) == expected
    for mine, other in zip(judged, expected, strict=True):
        assert mine.path is other.path
        assert mine.sentence == other.sentence
        assert mine.evidence == other.evidence
    assert list(judged.paths) == list(dict.fromkeys(made.path for made in expected))
    return judged


def test_rows_are_judged_as_decide_judges_them(posture):
    judged = held_against_decide(ROWS, posture)
    assert judged.branches == ("unprotected", "protected", "declined", "declined", "declined")
    assert judged.counts() == {"protected": 1, "unprotected": 1, "declined": 3}


@pytest.mark.parametrize(
    "form",
    [
        pd.DataFrame,
        lambda rows: pd.DataFrame(rows).convert_dtypes(),
        lambda rows: pd.DataFrame(rows).convert_dtypes(dtype_backend="pyarrow"),
        pa.Table.from_pylist,
        pa.RecordBatch.from_pylist,
        lambda rows: {name: [row.get(name) for row in rows] for name in rows[0]},
    ],
)
def test_every_form_of_a_frame_is_judged_as_decide_judges_its_rows(form, posture):
    held_against_decide(form(ROWS[:4]), posture)


def test_a_function_rule_is_called_for_the_rows_that_reach_it():
    met = []

    def old(facts):
        met.append(facts["host"])
        return facts["age"] > 7

    rules = RuleSet("r", "1", [Rule({"skip": {"eq": True}}, "skipped"), Rule(old, "old")], "new")
    rows = [{"host": n, "skip": n == 1, "age": n * 5} for n in range(4)]
    judged = judge_frame(rows, rules)
    assert met == [0, 2, 3]
    assert judged.branches == ("new", "skipped", "old", "old")
    assert judged.decision(2) == decide(rows[2], rules)
    assert judged.fallbacks[0].why == "a function rule is called row by row"


def test_an_unreadable_value_under_raise_names_the_first_row():
    rules = RuleSet("r", "1", [Rule({"age": {"gt": 7}}, "old")], "new", unreadable="raise")
    with pytest.raises(RuleError, match="age is missing") as refused:
        judge_frame([{"age": 1}, {"age": 2}, {}, {"age": None}], rules)
    assert refused.value.code == "unreadable"
    assert refused.value.where == "r 1, rules[0], row 2"


def test_an_asynchronous_function_rule_is_refused():
    async def old(facts):
        return facts["age"] > 7

    rules = RuleSet("r", "1", [Rule(old, "old")], "new")
    with pytest.raises(RuleError) as refused:
        judge_frame([{"age": 1}], rules)
    assert refused.value.code == "async_rule"


def test_a_dotted_key_is_a_flat_name_first_and_else_a_path():
    rules = RuleSet("r", "1", [Rule({"disk.free": {"lt": 5}}, "full")], "fine")
    rows = [{"disk": {"free": 3}}, {"disk.free": 9, "disk": {"free": 3}}, {"disk": 1}, {}]
    judged = held_against_decide(rows, rules)
    assert judged.branches == ("full", "fine", "declined", "declined")


def test_no_rows_are_judged_to_nothing(posture):
    judged = judge_frame([], posture)
    assert (len(judged), judged.branches, judged.counts(), judged.paths) == (0, (), {}, ())
