"""Judging frames: the decisions are those of `decide`, row by row, whatever the rows came in."""

from __future__ import annotations

import datetime as dt
import pickle
import sys

import numpy as np
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


RULES = RuleSet(
    "health-signal",
    "v1",
    [
        Rule({"age_known": {"eq": False}}, "declined"),
        Rule({"age_days": {"gt": 7}}, "unprotected"),
        Rule({"tag": {"matches": "^x"}}, "tagged"),
    ],
    default="protected",
)


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "age_known": [True, False, True, True],
            "age_days": pd.array([2**60 + 1, None, 9, None], dtype="Int64"),
            "tag": ["xa", "b", None, "c"],
        },
        index=list("wxyz"),
    )


def test_a_judged_frame_gives_a_typed_frame_with_the_index_it_came_with(frame):
    made = judge_frame(frame, RULES).to_frame()
    assert list(made.index) == list("wxyz")
    assert list(made["verdict"]) == ["unprotected", "declined", "unprotected", "declined"]
    assert list(made["verdict"].cat.categories) == list(RULES.branches)
    assert made["rule"].tolist() == [2, 1, 2, 2]
    assert list(made["via"]) == ["rule", "rule", "rule", "unreadable"]
    assert [str(made[name].dtype) for name in ("rule", "age_known", "age_days", "tag")] == [
        *("Int64", "boolean", "Int64", "string")
    ]
    assert made["age_days"].iloc[0] == 2**60 + 1


def test_a_rule_that_did_not_decide_is_no_number():
    made = judge_frame([{"a": 1}, {"a": 9}], RuleSet("r", "1", [Rule({"a": {"gt": 7}}, "x")]))
    assert made.branches == (None, "x")
    assert made.counts() == {"x": 1, None: 1}
    found = made.to_frame()
    assert found["rule"].isna().tolist() == [True, False]
    assert found["verdict"].isna().tolist() == [True, False]
    assert found["via"].tolist() == ["none", "rule"]


def test_a_key_named_like_a_column_of_the_answer_keeps_both():
    rules = RuleSet("r", "1", [Rule({"verdict": {"eq": "old"}}, "x")], "y")
    made = judge_frame({"verdict": ["old", "new"]}, rules).to_frame()
    assert made["verdict"].tolist() == ["x", "y"]
    assert made["verdict (read)"].tolist() == ["old", "new"]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, None, 2**63 + 5], "UInt64"),
        ([1, 2**70], "object"),
        ([1, 2.5], "object"),
        ([1.5, None], "Float64"),
        ([dt.datetime(2026, 1, 2, tzinfo=dt.UTC), None], "datetime64[us, UTC]"),
        ([dt.timedelta(1), None], "timedelta64[us]"),
        ([dt.date(2026, 1, 2), None], "object"),
    ],
)
def test_values_read_have_the_narrowest_type_that_loses_nothing(values, dtype):
    rules = RuleSet("r", "1", [Rule({"a": {"exists": False}}, "x")], "y")
    made = judge_frame([{"a": value} for value in values], rules).to_frame()
    assert str(made["a"].dtype) == dtype
    assert [None if pd.isna(v) else v for v in made["a"]] == values


def test_the_view_shows_the_first_rows_and_says_how_many_there_are(frame):
    text = str(judge_frame(pd.concat([frame] * 100, ignore_index=True), RULES))
    assert text.startswith("Judged health-signal v1 · 400 rows (200 declined, 200 unprotected)")
    assert text.endswith("more rows: judged.to_frame()")
    assert len(text.splitlines()) < 40
    first = str(judge_frame(frame.assign(age_days=1), RULES))
    assert "rule 3: tag matches  a pattern is put to each text" in first


def test_what_is_judged_value_by_value_is_named():
    rules = RuleSet(
        "r",
        "1",
        [
            Rule({"mixed": {"gt": 1}, "days": {"gt": 1}}, "x"),
            Rule({"a.b": {"eq": 1}}, "y"),
            Rule(lambda facts: False, "z"),
        ],
        "other",
        unreadable="skip",
    )
    rows = [{"mixed": 1, "days": 1, "a": {"b": 2}}, {"mixed": "1", "days": 2, "a": {}}]
    assert [tuple(each) for each in judge_frame(rows, rules).fallbacks] == [
        (0, False, "mixed", "gt", "a column of mixed values (int, str)"),
        (1, False, "a.b", "eq", "a dotted path is followed value by value"),
        (2, False, None, None, "a function rule is called row by row"),
    ]


def test_more_outcomes_than_a_byte_can_tell_are_told_apart():
    rules = RuleSet(
        "r", "1", [Rule({f"k{n}": {"eq": 1}, "z": {"eq": 1}}, f"b{n}") for n in range(10)], "other"
    )
    rows = [{f"k{n}": row >> n & 1 for n in range(10)} | {"z": 0} for row in range(1024)]
    judged = held_against_decide(rows, rules)
    assert len(judged.paths) == 1024
    assert judged.numbers.typecode == "H"
    held_against_decide({name: np.array([r[name] for r in rows]) for name in rows[0]}, rules)


def test_numbers_take_one_byte_a_row_as_long_as_outcomes_are_few(posture):
    rows = pd.DataFrame({"age_days": np.arange(10_000) % 40, "age_known": True})
    judged = judge_frame(rows, posture)
    assert sys.getsizeof(judged.numbers) < len(rows) + 100


def test_no_python_code_runs_per_row(posture, calls_of):
    frame = pd.DataFrame({"age_days": np.arange(20_000) % 40, "age_known": True})
    rows = frame.to_dict("records")
    judge_frame(frame, posture), judge_frame(rows, posture)  # what is made once is made
    for source in (frame, rows):
        assert calls_of(lambda source=source: judge_frame(source, posture)) < 2_000


def test_judged_travels(frame):
    judged = judge_frame(frame, RULES)
    copy = pickle.loads(pickle.dumps(judged))  # noqa: S301 - ours
    assert list(copy) == list(judged)
    assert copy.counts() == judged.counts()


@pytest.mark.parametrize(
    "source", [{"x": ["a", "\ud800"]}, [{"x": "a"}, {"x": "\ud800"}]], ids=["columns", "rows"]
)
def test_texts_no_file_can_spell_stand_in_the_frame_as_they_are(source):
    rules = RuleSet("r", "1", [Rule({"x": {"eq": "a"}}, then="old")], default="new")
    assert judge_frame(source, rules).to_frame()["x"].tolist() == ["a", "\ud800"]
