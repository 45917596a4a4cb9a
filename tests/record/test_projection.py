"""The walk's columns and its cut to a cap, by the published cases 67 to 73."""

from __future__ import annotations

import asyncio

import pytest

import runbook_nb as rb
from runbook_nb.chart.builder import flow_chart
from runbook_nb.errors import DefinitionError
from runbook_nb.record.projection import COLUMNS, WalkRow, project_walk


def entry(kind, text="x", depth=0, **more):
    return {"type": kind, "text": text, "depth": depth, **more}


def kinds(cut):
    return [row.type for row in cut.rows]


def test_case_67_a_row_has_the_eight_columns_in_order():
    cut = project_walk(
        [entry("stage", "x", 0, stageName="A", stageId="a", runtimeStageId="a#0")], 10
    )
    assert list(cut.rows[0].to_dict().items()) == [
        ("step", 0),
        ("type", "stage"),
        ("depth", 0),
        ("stage", "A"),
        ("stage_id", "a"),
        ("runtime_stage_id", "a#0"),
        ("subflow", None),
        ("text", "x"),
    ]
    assert tuple(cut.rows[0].to_dict()) == COLUMNS
    assert (cut.projection, cut.complete) == ("full", True)


def test_case_68_as_many_entries_as_the_cap_fit():
    cut = project_walk([entry("stage")] * 3, 3)
    assert (cut.projection, cut.shown, cut.total, cut.complete) == ("full", 3, 3, True)


LONG = [entry("stage"), *[entry("step", depth=1)] * 40, entry("stage"), entry("condition")]


def test_case_69_beyond_the_cap_reads_and_writes_go_first():
    cut = project_walk(LONG, 20)
    assert cut.projection == "control-flow"
    assert kinds(cut) == ["stage", "stage", "condition"]
    assert (cut.shown, cut.total, cut.complete) == (3, 43, False)


def test_case_70_what_is_left_is_numbered_anew():
    assert [row.step for row in project_walk(LONG, 20).rows] == [0, 1, 2]


def test_case_71_conditions_beyond_the_cap_are_cut_from_the_end():
    conditions = [entry("condition", str(n)) for n in range(30)]
    cut = project_walk(conditions, 10)
    assert cut.projection == "control-flow"
    assert [row.text for row in cut.rows] == [str(n) for n in range(10)]
    assert cut.conditions_first


def ten_writes():
    rules = rb.RuleSet("r", "v1", [rb.Rule({"k0": {"gt": -1}}, "a")], default="a")

    def writes(scope):
        for n in range(40):
            scope[f"k{n}"] = n

    return (
        flow_chart("c", writes, id="w")
        .add_decider("D", id="d", rules=rules)
        .branch("a", lambda s: None)
        .end()
        .build()
    )


def test_case_72_forty_writes_and_a_decider_under_a_cap_of_twenty():
    cut = ten_writes().run_sync().walk.project(20)
    assert "condition" in kinds(cut)
    assert "step" not in kinds(cut)
    assert cut.total > cut.shown
    assert cut.projection == "control-flow"


@pytest.mark.parametrize("cap", [1, 5, 500])
def test_case_73_the_counters_hold_for_any_cap(cap):
    walk = asyncio.run(ten_writes().run()).walk
    cut = walk.project(cap)
    assert cut.shown <= cut.total == len(walk)
    assert cut.complete == (cut.shown == cut.total)
    assert len(cut.rows) == cut.shown
    assert project_walk(walk, cap) == cut


def test_control_flow_keeps_conditions_before_other_rows_in_their_order():
    entries = [entry("stage", f"s{n}") for n in range(5)] + [
        entry("condition", f"c{n}") for n in range(3)
    ]
    entries += [entry("step", depth=1)] * 9
    cut = project_walk(entries, 4)
    assert [row.text for row in cut.rows] == ["s0", "c0", "c1", "c2"]
    assert cut.conditions_first
    assert not project_walk(entries, 8).conditions_first


def test_entries_may_be_rows_or_any_iterable():
    rows = [WalkRow(0, "stage", 0, "A", "a", "a#0", None, "x")]
    assert project_walk(iter(rows), 5).rows == tuple(rows)


def test_no_entry_is_a_complete_walk():
    cut = project_walk([], 1)
    assert (cut.rows, cut.projection, cut.total, cut.complete) == ((), "full", 0, True)


@pytest.mark.parametrize("cap", [0, -1, True, 2.0, "5", None])
def test_a_cap_is_a_whole_number_from_one(cap):
    with pytest.raises(DefinitionError):
        project_walk([], cap)
