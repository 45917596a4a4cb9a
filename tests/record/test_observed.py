"""Structures completed by what ran: placed where it ran, and reached as it was reached."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

import runbook_nb as rb
from runbook_nb.record.log import FanOut, Log, StageRef
from runbook_nb.record.observed import Met, completed
from runbook_nb.record.overlay import Overlay, overlay_of
from runbook_nb.record.published_read import structure_of
from runbook_nb.record.redact import Redactor
from runbook_nb.record.structure import Structure, StructureNode

FOREIGN = Path(__file__).with_name("foreign")


def node(key, kind="stage", **more):
    return StructureNode(key=key, id=key.rpartition("/")[2], name=key.upper(), kind=kind, **more)


def chain(*keys):
    spec = None
    for key in reversed(keys):
        spec = {"id": key, "name": key, **({"next": spec} if spec else {})}
    return structure_of(spec, "c")


def overlay(*edges, loops=()):
    made = Overlay()
    for edge in edges:
        made.edges[edge] += 1
    for edge in loops:
        made.loops[edge] += 1
    return made


def edges_of(structure):
    return {(edge.source, edge.target): edge.kind for edge in structure.edges}


def test_what_ran_is_placed_behind_what_it_came_after():
    made = completed(
        chain("a", "c"),
        {"b": Met(node("b"), None, "a"), "z": Met(node("z"), None, "c")},
        overlay(("a", "b"), ("b", "c"), ("c", "z")),
        {},
    )
    assert [one.key for one in made.nodes] == ["a", "b", "c", "z"]
    assert edges_of(made) == {
        ("a", "c"): "next",
        ("a", "b"): "next",
        ("b", "c"): "next",
        ("c", "z"): "next",
    }


def test_what_came_first_is_first():
    made = completed(
        Structure(name="c", nodes=()), {"a": Met(node("a"), None, None)}, Overlay(), {}
    )
    assert [one.key for one in made.nodes] == ["a"]
    made = completed(chain("b"), {"a": Met(node("a"), None, None)}, overlay(("a", "b")), {})
    assert [one.key for one in made.nodes] == ["a", "b"]


def test_a_chart_inside_becomes_known_by_what_ran_in_it():
    mount = {"id": "m", "name": "M", "isSubflowRoot": True, "next": {"id": "z", "name": "Z"}}
    made = completed(
        structure_of(mount, "c"),
        {"m/in": Met(node("m/in"), "m", "m"), "m/out": Met(node("m/out"), "m", "m/in")},
        overlay(("m", "m/in"), ("m/in", "m/out"), ("m/out", "z")),
        {},
    )
    assert [one.key for one in made.nodes] == ["m", "m/in", "m/out", "z"]
    assert made.groups == (("m", ("m/in", "m/out")),)
    assert made.node("m").detail["template"] == "per_run"
    edges = edges_of(made)
    assert edges["m", "m/in"] == "enter"
    assert edges["m/in", "m/out"] == "next"
    assert edges["m/out", "z"] == "next"
    assert ("m", "z") not in edges


def test_a_chart_in_a_chart_that_ran_lies_in_both():
    mount = {"id": "m", "name": "M", "isSubflowRoot": True}
    met = {
        "m/n": Met(node("m/n", "subchart"), "m", "m"),
        "m/n/in": Met(node("m/n/in"), "m/n", "m/n"),
    }
    made = completed(structure_of(mount), met, overlay(("m", "m/n"), ("m/n", "m/n/in")), {})
    assert dict(made.groups) == {"m": ("m/n", "m/n/in"), "m/n": ("m/n/in",)}
    assert made.frames()["m/n/in"] == "m/n"


def test_a_branch_that_ran_belongs_to_its_decider():
    spec = {"id": "d", "name": "D", "type": "decider", "children": [{"id": "x"}]}
    branch = node("y", "branch", branch="y", decider="d")
    made = completed(structure_of(spec), {"y": Met(branch, None, "d")}, overlay(("d", "y")), {})
    assert {one.branch for one in made.branches_of("d")} == {"x", "y"}
    (edge,) = [edge for edge in made.edges if edge.target == "y"]
    assert (edge.kind, edge.label) == ("branch", "y")


def test_a_way_back_that_was_taken_is_drawn():
    made = completed(
        chain("a", "b"), {"z": Met(node("z"), None, "b")}, overlay(loops=[("b", "a")]), {}
    )
    assert edges_of(made)["b", "a"] == "loop"
    gone = completed(chain("a"), {"z": Met(node("z"), None, "a")}, overlay(loops=[("a", "q")]), {})
    assert ("a", "q") not in edges_of(gone)


def test_a_fan_out_is_told_the_bounds_it_ran_with():
    spec = {"id": "f", "name": "F", "type": "fork", "isDynamicParallel": True}
    fan = FanOut(Log(), StageRef("f", "F", "fan_out"), [1, 2], cap=9, into="out")
    made = completed(structure_of(spec), {}, Overlay(), {"f": fan})
    assert dict(made.node("f").detail) == {"template": "unknown", "cap": 9, "into": "out"}
    met = {"f/in": Met(node("f/in"), "f", "f")}
    made = completed(structure_of(spec), met, overlay(("f", "f/in")), {"f": fan})
    assert made.node("f").detail["template"] == "per_item"
    assert edges_of(made)["f", "f/in"] == "fan_out"


def test_what_is_known_stays():
    known = chain("a", "b", "c")
    assert completed(known, {}, overlay(("a", "b"), ("b", "c")), {}) == known


@pytest.mark.parametrize("path", sorted(FOREIGN.glob("*.json")), ids=lambda path: path.stem)
def test_a_structure_made_of_what_ran_alone_holds_all_that_ran(path):
    document = json.loads(path.read_text(encoding="utf-8"))
    whole = rb.load_recording(copy.deepcopy(document))
    document["structure"] = None
    run = rb.load_recording(document)
    assert run.steps_executed == whole.steps_executed
    assert run.state == whole.state
    seen = overlay_of(run.log, Redactor(None))
    assert set(seen.runs) <= {one.key for one in run.structure.nodes}
    assert "<svg" in run.walk.flowchart().svg
