"""The structure of a run whose branch charts were made per item is their union."""

from __future__ import annotations

import runbook_nb as rb
from runbook_nb.chart.builder import flow_chart

RULES = rb.RuleSet("r", "v1", [rb.Rule({"n": {"gt": 1}}, "big")], default="small")


def chain(*ids):
    builder = flow_chart(ids[0], lambda s: None, id=ids[0])
    for each in ids[1:]:
        builder.add_function(each, lambda s: None, id=each)
    return builder.build()


def fan(make, items=(0, 1), **more):
    return (
        flow_chart("start", lambda s: None, id="start")
        .add_parallel_for_each(
            "Each", id="each", items=lambda s: list(items), branch=make, max_branches=9, into="out"
        )
        .add_function("after", lambda s: None, id="after")
        .build()
    )


def edges(structure):
    return {(e.source, e.target, e.kind) for e in structure.edges}


def test_before_the_run_the_template_is_unknown_and_afterwards_it_is_what_was_met():
    chart = fan(lambda item, index: chain("a", "b"))
    assert chart.structure.node("each").detail["template"] == "unknown"
    assert [n.key for n in chart.structure.nodes] == ["start", "each", "after"]
    after = chart.run_sync().structure
    assert after.node("each").detail["template"] == "per_item"
    assert [n.key for n in after.nodes] == ["start", "each", "each/a", "each/b", "after"]
    assert edges(after) == {
        ("start", "each", "next"),
        ("each", "each/a", "fan_out"),
        ("each/a", "each/b", "next"),
        ("each/b", "after", "next"),
    }
    assert after.groups == (("each", ("each/a", "each/b")),)


def test_charts_of_different_layouts_are_joined():
    def make(item, index):
        return chain("a", "b") if item else chain("a", "x", "y")

    structure = fan(make).run_sync().structure
    assert [n.key for n in structure.nodes] == [
        "start",
        "each",
        "each/a",
        "each/b",
        "each/x",
        "each/y",
        "after",
    ]
    assert {("each/a", "each/x", "next"), ("each/a", "each/b", "next")} <= edges(structure)
    assert {("each/y", "after", "next"), ("each/b", "after", "next")} <= edges(structure)
    assert ("each", "after", "next") not in edges(structure)


def test_the_order_of_the_items_does_not_show_in_the_structure():
    def make(item, index):
        return chain("a", "b") if item else chain("a", "x")

    one, other = (fan(make, items=items).run_sync().structure for items in ((0, 1), (1, 0)))
    assert one == other


def test_what_differs_only_inside_a_nested_fan_out_is_joined_too():
    def make(item, index):
        return fan(chain("p") if item else chain("q"), items=(1,))

    structure = fan(make).run_sync().structure
    keys = {n.key for n in structure.nodes}
    assert {"each/each/p", "each/each/q"} <= keys
    frames = structure.frames()
    assert frames["each/each/p"] == frames["each/each/q"] == "each/each"
    assert frames["each/start"] == "each"


def test_factories_inside_factories():
    structure = fan(lambda i, n: fan(lambda j, m: chain("leaf"), items=(1,))).run_sync().structure
    assert "each/each/leaf" in {n.key for n in structure.nodes}
    assert structure.frames()["each/each/leaf"] == "each/each"
    assert set(dict(structure.groups)["each"]) == {
        "each/start",
        "each/each",
        "each/each/leaf",
        "each/after",
    }


def test_the_run_and_its_picture_know_the_same_nodes():
    def make(item, index):
        return chain("a", "b") if item else chain("a")

    run = fan(make).run_sync()
    keys = {n.key for n in run.structure.nodes}
    for row in run.walk:
        if row.type == "stage":
            path = (row.subflow or "").replace("~0", "").replace("~1", "")
            assert f"{path}/{row.stage_id}".lstrip("/") in keys
    assert "a" in str(run.walk)


def test_a_declined_branch_nobody_declared_is_in_the_structure_of_the_run_only():
    def make(item, index):
        return (
            flow_chart("b", lambda s: None, id="b")
            .add_decider("D", lambda s: rb.decide(s, RULES), id="d")
            .branch("big", lambda s: None)
            .branch("small", lambda s: None)
            .end()
            .add_function("z", lambda s: None, id="z")
            .build()
        )

    for each in (make, make(0, 0)):
        structure = fan(each).run_sync().structure
        node = structure.node("each/declined")
        assert (node.decider, node.branch, node.added) == ("each/d", "declined", True)
        assert ("each/d", "each/declined", "branch") in edges(structure)
        assert ("each/declined", "each/z", "next") in edges(structure)
        assert "each/declined" in dict(structure.groups)["each"]
