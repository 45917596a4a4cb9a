"""A run that went on after a pause knows the charts that were made before it."""

from __future__ import annotations

import json

import pytest

from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.scope import interrupt
from runbook_nb.errors import CheckpointError


def inner(name="in"):
    return flow_chart(name, lambda scope: None, id="seed").build()


def lazy_then_ask():
    return (
        flow_chart("c", lambda scope: scope.set("items", [1, 2]), id="a")
        .add_subchart("Made", inner, id="made", lazy=True)
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda scope: scope["items"],
            branch=lambda item, index: inner(f"chart {item}"),
            max_branches=5,
            into="out",
        )
        .add_function("Ask", lambda scope: interrupt(scope, "go on?"), id="ask")
        .add_subchart("Later", inner, id="later", lazy=True)
        .build()
    )


def resumed():
    checkpoint = json.loads(json.dumps(lazy_then_ask().run_sync().checkpoint))
    return lazy_then_ask().resume_sync(checkpoint, "yes")


def test_every_executed_stage_has_a_node():
    structure = resumed().structure
    for key in ("a", "made", "made/seed", "each", "each/seed", "ask", "later", "later/seed"):
        assert structure.node(key) is not None, key
    assert [node.key for node in structure.inside("made")] == ["made/seed"]
    assert [node.key for node in structure.inside("later")] == ["later/seed"]


def test_the_edges_are_those_of_a_run_that_never_paused():
    straight = (
        lazy_then_ask().resume_sync(lazy_then_ask().run_sync().checkpoint, "yes").structure.edges
    )
    found = {(edge.source, edge.target, edge.kind) for edge in straight}
    assert ("made", "made/seed", "enter") in found
    assert ("made/seed", "each", "next") in found
    assert ("each", "each/seed", "fan_out") in found
    assert ("each/seed", "ask", "next") in found
    assert ("later", "later/seed", "enter") in found
    assert ("made", "each", "next") not in found
    assert ("each", "ask", "next") not in found


@pytest.mark.parametrize("met", [7, {"name": "c"}, {"name": "other", "nodes": []}, {"nodes": [1]}])
def test_a_damaged_structure_is_refused(met):
    checkpoint = {**lazy_then_ask().run_sync().checkpoint, "met": met}
    with pytest.raises(CheckpointError) as caught:
        lazy_then_ask().resume_sync(checkpoint, "yes")
    assert caught.value.code == "bad_checkpoint"


def asks(id):
    return flow_chart("made", lambda s: s.set("said", interrupt(s, f"{id}?")), id=id).build()


def mounting(id):
    return (
        flow_chart("c", lambda s: None, id="begin")
        .add_subchart("Made", lambda: asks(id), id="made", lazy=True, outputs={"said": "said"})
        .build()
    )


def fanning(id):
    return (
        flow_chart("c", lambda s: None, id="begin")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: [1],
            branch=lambda item, index: asks(id),
            max_branches=1,
            into="said",
        )
        .build()
    )


@pytest.mark.parametrize("chart_with", [mounting, fanning])
def test_an_answer_never_goes_to_another_stage_than_the_one_that_asked(chart_with):
    checkpoint = json.loads(json.dumps(chart_with("staging").run_sync().checkpoint))
    with pytest.raises(CheckpointError, match=r"asked by '.*staging', and stage '.*production'"):
        chart_with("production").resume_sync(checkpoint, True)
    assert chart_with("staging").resume_sync(checkpoint, True).status == "ok"
