"""A run that nobody holds any more is gone at once: no garbage collection is waited for."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import runbook_nb as rb

ROWS = [{"subject": f"c{i}", "age": i % 9, "known": i % 5 > 0} for i in range(40)]
RULES = rb.RuleSet(
    "age",
    "v1",
    rules=[
        rb.Rule({"known": {"eq": False}}, then="declined", label="cannot be read"),
        rb.Rule({"age": {"gt": 4}}, then="old", label="older than 4"),
    ],
    default=rb.Default("fresh", label="within 4"),
)

LOOKS: dict[str, Callable[[rb.Envelope], Any]] = {
    "not at all": lambda envelope: None,
    "in a cell": lambda envelope: envelope._repr_mimebundle_(),
    "as JSON, with its dossier": lambda envelope: envelope.to_json(dossier=True),
    "as a frame": lambda envelope: envelope.to_frame(),
    "at why": lambda envelope: envelope.why("c3").sentence,
    "at every row of its walk": lambda envelope: [row.text for row in envelope.run.walk],
    "at the walk of one": lambda envelope: [row.text for row in envelope.run.walk.of("c3")],
    "at its commits": lambda envelope: list(envelope.run.commits),
    "at its slots": lambda envelope: list(envelope.run.state.values()),
    "at its walk as a file": lambda envelope: rb.write_walk(envelope.run.walk),
    "to verify it": lambda envelope: envelope.verify(),
    "to judge it again": lambda envelope: envelope.rejudge(RULES),
}


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Keep the collector from helping, after it was given what is there."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def subject_chart() -> rb.Chart:
    return (
        rb.flow_chart("one", lambda scope: scope.update(scope.args["item"]), id="one")
        .add_decider("Age", rules=RULES, id="age")
        .branch("declined", lambda scope: None)
        .branch("old", lambda scope: None)
        .branch("fresh", lambda scope: None)
        .end()
        .build()
    )


def row_by_row() -> rb.Chart:
    return (
        rb.flow_chart("rows", lambda scope: scope.set("rows", ROWS), id="rows")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda scope: scope["rows"],
            branch=subject_chart(),
            max_branches=99,
            into="out",
            subject="subject",
        )
        .build()
    )


def fan_outs_inside() -> rb.Chart:
    return (
        rb.flow_chart("sites", lambda scope: None, id="sites")
        .add_parallel_for_each(
            "Site",
            id="site",
            items=lambda scope: ["a", "b"],
            branch=row_by_row(),
            max_branches=9,
            into="sites",
        )
        .build()
    )


def side_by_side() -> rb.Chart:
    return (
        rb.flow_chart("fork", lambda scope: None, id="begin")
        .add_fork("Both", id="both", into="both")
        .branch("left", lambda scope: scope.set("x", 1))
        .branch("right", lambda scope: scope.set("y", 2))
        .end()
        .build()
    )


@pytest.mark.parametrize("look", LOOKS)
def test_an_answer_that_was_looked_at_goes_when_it_is_let_go(look: str) -> None:
    def ask() -> rb.Envelope:
        return rb.triage(ROWS, RULES, subject="subject", source="rows")

    LOOKS[look](ask())  # what a first look leaves for all that follow
    gc.collect()
    gc.disable()
    try:
        envelope = ask()
        run = weakref.ref(envelope.run)
        LOOKS[look](envelope)
        assert run() is not None
        del envelope
        assert run() is None
    finally:
        gc.enable()


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("make", [row_by_row, fan_outs_inside, side_by_side])
def test_a_run_goes_with_its_fan_outs(make: Callable[[], rb.Chart]) -> None:
    run = make().run_sync()
    assert len([row.text for row in run.walk]) == len(run.walk)
    gone = weakref.ref(run)
    del run
    assert gone() is None


@pytest.mark.usefixtures("uncollected")
def test_slots_outlive_their_run() -> None:
    run = row_by_row().run_sync()
    slots, gone = run.slots("each"), weakref.ref(run)
    del run
    assert gone() is None
    rows = slots.verdict_rows()
    assert [row["verdict"] for row in rows][:3] == ["declined", "fresh", "fresh"]
    assert slots[6].status == "ok"


@pytest.mark.usefixtures("uncollected")
def test_a_toolbox_keeps_its_last_run_and_no_earlier_one() -> None:
    chart = row_by_row()
    tool = rb.runbook_as_tool(
        name="ages", description="Judges ages.", procedure=lambda tools: chart, result_kind="x"
    )
    box = rb.Toolbox([tool], artifacts=None)
    runs = []
    for _ in range(3):
        runs.append(weakref.ref(box.call_sync("ages").run))
    assert [run() is None for run in runs] == [True, True, False]
