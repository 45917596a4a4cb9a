"""Rows are found where they are, both ways, whatever spread inside whatever."""

import kind_charts
import pytest
from drawn_charts import ENDING, ORDINARY, charts, run_chart
from hypothesis import given, settings

import runbook_nb as rb
from runbook_nb.chart.builder import flow_chart
from runbook_nb.record.narrative import row_words
from runbook_nb.record.spots import DECISIONS, WRITES, Spot

TYPE_OF = {"enter": "subflow", "received": "step", "leave": "subflow", "fork": "fork"}


def agrees(walk):
    """Hold every row, every decision and every write to what going through the rows finds."""
    spots, rows = walk.spots, list(walk)
    entries = list(walk.entries())
    for step, (row, entry) in enumerate(zip(rows, entries, strict=True)):
        spot = spots.at(step)
        assert spots.row(spot) in ({step, step - 1} if spot.frame == "received" else {step})
        if spot.frame:
            assert row.type == TYPE_OF[spot.frame]
        if spot.frame in ("", "fork") and entry.event is not None:
            assert spot.event is entry.event
            part = spot.part
            assert row.text == row_words(entry.event, part.values, part.offset, walk.redactor)
    for kinds in (DECISIONS, WRITES):
        found = [n for n, e in enumerate(entries) if e.event and e.event.code.kind in kinds]
        marks = walk.marks(kinds)
        assert [marks.at(number) for number in range(marks.total)] == found
        before = [marks.before(step) for step in range(len(rows) + 1)]
        assert before == [sum(one < step for one in found) for step in range(len(rows) + 1)]


@pytest.mark.parametrize("kind", kind_charts.KINDS)
def test_rows_of_every_kind_of_stage_are_found(kind):
    agrees(kind_charts.run(kind_charts.KINDS[kind]()).walk)


def nested():
    look = (
        flow_chart("look", lambda s: s.set("n", s.args["item"]), id="load")
        .add_decider("Deep?", id="deep", rules=kind_charts.HEALTH)
        .branch("sick", lambda s: s.set("v", "sick"))
        .branch("well", kind_charts.nothing)
        .end()
        .build()
    )
    site = (
        flow_chart("site", lambda s: s.set("hosts", list(range(s.args["item"]))), id="list")
        .add_parallel_for_each(
            "Hosts", id="hosts", items=lambda s: s["hosts"], branch=look, max_branches=3, into="o"
        )
        .add_function("Close", lambda s: s.set("done", True), id="close")
        .build()
    )
    return (
        flow_chart("sites", lambda s: s.set("sites", [2, 0, 5, 1]), id="start")
        .add_parallel_for_each(
            "Sites", id="sites", items=lambda s: s["sites"], branch=site, max_branches=9, into="o"
        )
        .build()
    )


def test_rows_inside_a_fan_out_inside_a_fan_out_are_found():
    walk = nested().run_sync().walk
    agrees(walk)
    agrees(walk.of(5, stage="sites"))
    inner = next(spot for spot in map(walk.spots.at, range(len(walk))) if len(spot.chain) == 2)
    assert inner.branch[0].stage.id == "hosts"
    outer, branch = inner.chain
    assert walk[walk.spots.start(branch, (outer,))].text == "Entered Hosts [0]"


@settings(max_examples=60, deadline=None)
@given(charts(ORDINARY))
def test_rows_of_charts_drawn_at_random_are_found(spec):
    agrees(run_chart(spec).walk)


@settings(max_examples=60, deadline=None)
@given(charts(ENDING))
def test_rows_of_runs_that_end_in_the_middle_are_found(spec):
    agrees(run_chart(spec).walk)


def test_there_is_no_row_past_the_end():
    walk = flow_chart("c", lambda s: s.set("n", 1), id="a").build().run_sync().walk
    for step in (-1, 2):
        with pytest.raises(IndexError):
            walk.spots.at(step)
    marks = walk.marks(WRITES)
    for number in (-1, 1):
        with pytest.raises(IndexError):
            marks.at(number)
    assert marks.before(99) == 1


def test_a_row_far_behind_costs_no_more_than_one_at_the_front(calls_of):
    rules = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], "fresh")
    rows = [{"host": f"h{n}", "days": n % 30} for n in range(20_000)]
    walk = rb.triage(rows, rules, subject="host", source="inventory").walk
    marks, last = walk.marks(DECISIONS), len(walk) - 1
    assert marks.total == 20_000
    marks.at(0), walk.spots.at(last)  # sums are made at the first asking
    near, far = calls_of(lambda: walk.spots.at(3)), calls_of(lambda: walk.spots.at(last - 3))
    assert far <= near + 20
    near, far = calls_of(lambda: marks.at(3)), calls_of(lambda: marks.at(19_999))
    assert far <= near + 2_100  # within one block of sums
    assert isinstance(walk.spots.at(marks.at(19_999)), Spot)
