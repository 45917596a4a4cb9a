"""The structure as data: groups in one another, and the form it leaves the process in."""

from __future__ import annotations

import json

import pytest

from runbook_nb.chart.builder import flow_chart
from runbook_nb.errors import LoadError
from runbook_nb.record.structure import Structure


def nested(depth):
    chart = flow_chart("leaf", lambda s: None, id="leaf").build()
    for number in range(depth):
        chart = (
            flow_chart("c", lambda s: None, id="a")
            .add_subchart("S", chart, id=f"s{number}")
            .add_function("B", lambda s: None, id="b")
            .build()
        )
    return chart.structure


def test_a_group_holds_everything_inside_and_is_written_with_what_lies_in_it_directly():
    structure = nested(2)
    assert dict(structure.groups) == {
        "s1": ("s1/a", "s1/s0", "s1/s0/leaf", "s1/b"),
        "s1/s0": ("s1/s0/leaf",),
    }
    assert {group["key"]: group["members"] for group in structure.to_dict()["groups"]} == {
        "s1": ["s1/a", "s1/s0", "s1/b"],
        "s1/s0": ["s1/s0/leaf"],
    }


@pytest.mark.parametrize("depth", [0, 1, 2, 5])
def test_a_structure_comes_back_as_it_was(depth):
    structure = nested(depth)
    again = Structure.from_dict(json.loads(json.dumps(structure.to_dict())))
    assert again == structure
    assert again.frames() == structure.frames()
    assert [node.key for node in again.inside(None)] == [n.key for n in structure.inside(None)]


def test_groups_that_list_everything_inside_are_read_too():
    structure = nested(3)
    whole = structure.to_dict()
    whole["groups"] = [{"key": key, "members": list(held)} for key, held in structure.groups]
    assert Structure.from_dict(whole) == structure


def test_what_is_written_grows_with_the_depth_and_not_with_its_square():
    small, large = (
        sum(len(group["members"]) for group in nested(depth).to_dict()["groups"])
        for depth in (10, 20)
    )
    assert large <= 2 * small + 2


def test_groups_in_a_circle_are_refused():
    data = nested(2).to_dict()
    data["groups"] = [{"key": "s1", "members": ["s1/s0"]}, {"key": "s1/s0", "members": ["s1"]}]
    with pytest.raises(LoadError, match="lies in itself") as caught:
        Structure.from_dict(data)
    assert caught.value.fix


def test_a_chart_made_while_running_has_the_structure_of_one_that_was_built():
    leaf = flow_chart("leaf", lambda s: None, id="leaf").build()

    def middle(lazy):
        made = (lambda: leaf) if lazy else leaf
        return (
            flow_chart("middle", lambda s: None, id="m")
            .add_subchart("L", made, id="l", lazy=lazy)
            .add_parallel_for_each(
                "E",
                id="each",
                items=lambda s: [1, 2],
                branch=(lambda item, index: leaf) if lazy else leaf,
                max_branches=2,
                into="out",
            )
            .build()
        )

    def outer(lazy):
        made = (lambda: middle(True)) if lazy else middle(False)
        fork = flow_chart("outer", lambda s: None, id="a").add_fork("F", id="f")
        fork.branch("x", made, lazy=lazy).branch("y", lambda s: None)
        return fork.end().add_function("Z", lambda s: None, id="z").build()

    built, met = outer(False).structure, outer(True).run_sync().structure
    assert [(n.key, n.kind, n.branch) for n in met.nodes] == [
        (n.key, n.kind, n.branch) for n in built.nodes
    ]
    assert set(met.edges) == set(built.edges)
    assert dict(met.groups) == dict(built.groups)
