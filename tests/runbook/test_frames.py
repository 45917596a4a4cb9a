"""A frame with types holds what the frame without them holds, row by row."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from alike import FORMS, MADE, PLAIN, known_to, options, short, tables

import runbook_nb as rb
from runbook_nb._json import to_wire
from runbook_nb.record.redact import PLACEHOLDER
from runbook_nb.runbook.frames import numbered, typed, words_of

few = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)

AGE = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], "fresh")
IDS = [2**53 + 1, None, 2**63 - 1]


def plain(value):
    """Give a cell in its form for JSON; the gaps of a frame are None."""
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return None
    return to_wire(value.to_pydatetime() if isinstance(value, pd.Timestamp) else value)


def answered(rows, rules, drawn):
    try:
        return short(rows, rules, drawn)
    except rb.errors.RunbookError:
        return None


def same_cells(answer):
    one, other = answer.to_frame(typed=False), answer.to_frame(typed=True)
    assert len(one) == len(other) == len(answer.verdicts)
    for name in one.columns:
        if name in ("decided_by", "decided_by (record)"):
            continue
        seen = [plain(value) for value in other[name]]
        told = [plain(value) for value in one[name]]
        if name.startswith("rule"):
            told, seen = ([None if v is None else str(v) for v in held] for held in (told, seen))
        assert repr(seen) == repr(told), name
    return one, other


@given(MADE, tables(), st.sampled_from(sorted(FORMS)), options())
@few
def test_of_a_frame_the_cells_are_those_of_the_untyped_frame(rules, table, form, drawn):
    answer = answered(FORMS[form](table), rules, known_to(rules, [table], drawn))
    if answer is not None:
        same_cells(answer)


@given(MADE, PLAIN, options())
@few
def test_of_rows_the_cells_are_those_of_the_untyped_frame(rules, rows, drawn):
    answer = answered(rows, rules, known_to(rules, rows, drawn))
    if answer is not None:
        same_cells(answer)


def asked(rows, **more):
    return rb.triage(rows, AGE, subject="host", source="rows", **more)


FRAMES = {
    "rows": lambda: [{"host": one, "days": one} for one in IDS],
    "pandas": lambda: pd.DataFrame({"host": IDS, "days": IDS}, dtype="Int64"),
    "columns": lambda: {"host": IDS, "days": IDS},
    "arrow": lambda: __import__("pyarrow").table({"host": IDS, "days": IDS}),
}  # fmt: skip


@pytest.mark.parametrize("form", FRAMES)
def test_ids_with_gaps_stay_whole_to_the_last_digit(form):
    frame = asked(FRAMES[form]()).to_frame(typed=True)
    for name in ("host", "days"):
        assert frame[name].dtype == "Int64"
        assert [None if pd.isna(one) else int(one) for one in frame[name]] == IDS
    assert [frame[name].dtype.name for name in ("verdict", "rule", "status")] == ["category"] * 3


def test_ids_too_large_for_a_column_of_numbers_are_no_floats():
    ids = [2**64, 1, None]
    frame = asked([{"host": one, "days": 1} for one in ids]).to_frame(typed=True)
    assert frame["host"].dtype == object
    assert [type(one) for one in frame["host"]].count(float) == 0
    assert [plain(one) for one in frame["host"]] == [to_wire(one) for one in ids]


def test_ids_that_are_digits_stay_texts():
    frame = asked([{"host": "007", "days": 1}, {"host": "8", "days": 9}]).to_frame(typed=True)
    assert list(frame["host"]) == ["007", "8"]


def test_the_rows_of_a_frame_stand_in_the_order_shown_and_all_of_them():
    rows = [{"host": n, "days": n} for n in range(20)]
    frame = asked(rows, rank=["old"], max_rows=2).to_frame(typed=True)
    assert list(frame["host"]) == [*range(8, 20), *range(8)]
    assert list(frame["verdict"]) == ["old"] * 12 + ["fresh"] * 8
    assert list(frame["verdict"].cat.categories) == ["old", "fresh"]


def test_a_compared_value_stands_in_a_column_of_its_own_unless_it_is_hidden():
    rows = [{"host": "a", "days": 9}, {"host": "b", "days": None}]
    beside = asked(rows, columns=["host"])
    frame = beside.to_frame(typed=True)
    assert [plain(one) for one in frame["days"]] == [9, None]
    assert frame["days"].dtype == "Int64"
    hidden = asked(rows, columns=["host"], redact={"keys": ["days"]}).to_frame(typed=True)
    assert set(hidden["days"]) == {PLACEHOLDER}


def test_a_column_has_the_type_of_its_values():
    kinds = {
        "Int64": [1, None],
        "int64": [1, 2],
        "float64": [1.5, 2.0],
        "bool": [True, False],
        "boolean": [True, None],
        "object": ["a", None],
        "datetime64[us, UTC]": [datetime(2026, 1, 2, tzinfo=UTC), None],
    }
    assert [pd.Series(typed(values)).dtype.name for values in kinds.values()] == list(kinds)
    assert list(typed([1, "a", 2.0])) == [1, "a", 2.0]


def test_words_are_categories_in_the_order_given():
    assert list(words_of(["b", None, "a"], ["a", "b"]).categories) == ["a", "b"]
    assert list(words_of(["b", None, "a"]).codes) == [0, -1, 1]
    assert list(numbered([2, 0, 1, 0], ["x", None, "x"]).codes) == [0, 0, -1, 0]
