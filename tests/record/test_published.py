"""The published form of a structure: what is written, what is read, and that both agree."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb.errors import LoadError
from runbook_nb.record import published_read
from runbook_nb.record.published import published_structure
from runbook_nb.record.published_read import kind_of, structure_as_written, structure_of

sys.path.insert(0, str(Path(__file__).parent))

from recorded_charts import asking, backup_triage, everything, failing, inner, stopping, triage

FOREIGN = Path(__file__).with_name("foreign")
CHARTS = {
    "asking": asking,
    "backup_triage": backup_triage,
    "everything": everything,
    "failing": failing,
    "stopping": stopping,
    "triage": triage,
}
#: What of our own structures the published form has no place for.
OURS = ("cap", "inputs", "into", "max_concurrency", "merge", "outputs", "rules", "subject")


def nodes_in(published):
    """Every stage of a published form by its id, those of charts inside included."""
    todo, found = [published], {}
    while todo:
        one = todo.pop()
        found.setdefault(one["id"], one)
        todo += [one[key] for key in ("next", "subflowStructure") if key in one]
        todo += one.get("children", [])
    return found


def plain(fn=lambda s: None, **options):
    return rb.flow_chart("chart", fn, id="a", stage_name="A", **options)


# -- what is written -----------------------------------------------------------------------------


def test_stages_hang_one_under_the_other():
    root = published_structure(plain().add_function("B", print, id="b").build().structure)
    assert root == {
        "name": "chart",
        "id": "a",
        "type": "stage",
        "next": {"name": "B", "id": "b", "type": "stage"},
        "stageName": "A",
    }


def test_a_stage_named_like_its_chart_needs_no_second_name():
    root = published_structure(rb.flow_chart("chart", print, id="a").build().structure)
    assert root == {"name": "chart", "id": "a", "type": "stage"}


def test_every_kind_has_its_marks():
    found = nodes_in(published_structure(everything().structure))
    assert found["a"]["description"] == "first"
    assert found["sub"] == {
        "name": "Sub",
        "id": "sub",
        "type": "stage",
        "isSubflowRoot": True,
        "subflowId": "sub",
        "subflowName": "Sub",
        "subflowStructure": {
            "name": "In",
            "id": "in",
            "type": "stage",
            "next": {"name": "Out", "id": "out", "type": "stage"},
        },
        "next": found["both"],
    }
    assert found["both"]["type"] == "fork"
    assert "isDynamicParallel" not in found["both"]
    for child in found["both"]["children"]:
        assert (child["isParallelChild"], child["parallelGroupId"]) == (True, "both")
    assert found["y"]["isSubflowRoot"] is True
    assert (found["pick"]["type"], found["pick"]["hasSelector"]) == ("selector", True)
    assert found["pick"]["branchIds"] == ["p", "q"]
    assert found["talk"] | {"next": None} == {
        "name": "Talk",
        "id": "talk",
        "type": "streaming",
        "isStreaming": True,
        "streamId": "Talk",
        "next": None,
    }
    assert found["late"]["isLazy"] is True
    assert "subflowStructure" not in found["late"]
    assert (found["enough"]["type"], found["enough"]["hasDecider"]) == ("decider", True)
    assert [child["id"] for child in found["enough"]["children"]] == ["no", "yes"]


def test_a_branch_that_loops_says_where_to():
    branch = nodes_in(published_structure(everything().structure))["no"]
    assert branch["loopTarget"] == "late"
    assert branch["next"] == {
        "name": "late",
        "id": "late",
        "type": "loop",
        "isLoopReference": True,
    }


def test_the_end_of_a_chart_that_loops_says_where_to():
    chart = plain(lambda s: s.stop("once")).add_function("B", print, id="b").loop_to("a").build()
    last = published_structure(chart.structure)["next"]
    assert last["loopTarget"] == "a"
    assert last["next"] == {"name": "a", "id": "a", "type": "loop", "isLoopReference": True}


def test_a_fan_out_holds_its_template():
    each = published_structure(triage().structure)["next"]
    assert (each["type"], each["isDynamicParallel"]) == ("fork", True)
    template = each["subflowStructure"]
    assert (template["id"], template["tags"]) == ("load", ["first"])
    assert template["next"]["children"][0]["description"] == "needs work"
    assert each["next"]["id"] == "collect"


def test_pausing_retrying_and_tags_are_told():
    assert nodes_in(published_structure(asking().structure))["approve"]["isPausable"] is True
    root = published_structure(failing().structure)
    assert root["retryAttempts"] == 3
    tagged = plain(tags=["slow", "io"]).build()
    assert published_structure(tagged.structure)["tags"] == ["slow", "io"]


def test_a_stream_of_its_own_name_is_told():
    chart = plain().add_streaming("Talk", print, id="talk", stream="words").build()
    assert published_structure(chart.structure)["next"]["streamId"] == "words"


def test_the_default_of_a_decider_is_told():
    chart = (
        plain()
        .add_decider("Which", lambda s: "one", id="which")
        .branch("one", print)
        .branch("two", print)
        .default("two")
        .end()
        .build()
    )
    assert published_structure(chart.structure)["next"]["defaultBranch"] == "two"


def test_charts_inside_charts_are_each_written_once():
    chart = plain().add_subchart("Mid", plain().add_subchart("In", inner(), id="i").build(), id="m")
    text = json.dumps(published_structure(chart.build().structure))
    assert text.count('"id": "out"') == 1
    mid = published_structure(chart.build().structure)["next"]
    assert mid["subflowStructure"]["next"]["subflowStructure"]["id"] == "in"


# -- that both agree -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", CHARTS)
def test_our_structures_are_read_back_but_for_what_has_no_place(name):
    structure = CHARTS[name]().structure
    read = structure_of(published_structure(structure))
    written = structure.to_dict()
    for node in written["nodes"]:
        node.pop("added", None)
        detail = {k: v for k, v in node.pop("detail", {}).items() if k not in OURS}
        if detail:
            node["detail"] = detail
    assert read.to_dict() == written
    assert published_structure(read) == published_structure(structure)


@pytest.mark.parametrize("path", sorted(FOREIGN.glob("*.json")), ids=lambda path: path.stem)
def test_foreign_structures_come_back_as_they_were(path):
    structure = json.loads(path.read_text(encoding="utf-8"))["structure"]
    assert published_structure(structure_of(structure)) == structure


NAMES = st.text(alphabet="abc", min_size=1, max_size=3)


@st.composite
def specs(draw, depth=2):
    """A published structure, with ids of its own."""
    used = set()

    def one(depth):
        identity = draw(NAMES.filter(lambda name: name not in used))
        used.add(identity)
        made = {"name": draw(NAMES), "id": identity, "type": "stage"}
        if draw(st.booleans()):
            made["tags"] = draw(st.lists(NAMES, min_size=1, max_size=2))
        if draw(st.booleans()):
            made["description"] = draw(NAMES)
        kind = draw(st.sampled_from(["stage", "streaming", "pausable", "decider", "fork", "each"]))
        if kind == "streaming":
            made |= {"type": "streaming", "isStreaming": True, "streamId": draw(NAMES)}
        elif kind == "pausable":
            made["isPausable"] = True
        elif depth and kind in ("decider", "fork"):
            children = [leaf() for _ in range(draw(st.integers(1, 3)))]
            made |= {"type": kind, "children": children}
            if kind == "decider":
                made |= {"hasDecider": True, "branchIds": [child["id"] for child in children]}
            else:
                for child in children:
                    child |= {"isParallelChild": True, "parallelGroupId": identity}
        elif depth and kind == "each":
            made |= {"type": "fork", "isDynamicParallel": True}
            inside = draw(st.sampled_from(["x", "y"]))
            made["subflowStructure"] = {"name": inside, "id": inside, "type": "stage"}
        return made

    def leaf():
        identity = draw(NAMES.filter(lambda name: name not in used))
        used.add(identity)
        return {"name": draw(NAMES), "id": identity, "type": "stage"}

    chain = [one(depth) for _ in range(draw(st.integers(1, 4)))]
    for before, after in itertools.pairwise(chain):
        before["next"] = after
    return chain[0]


@settings(max_examples=200, deadline=None)
@given(specs())
def test_what_is_read_is_written_again_alike(spec):
    read = structure_of(spec)
    assert published_structure(read) == spec
    assert structure_as_written(read.to_dict(), "here") == read
    assert structure_of(published_structure(read)) == read


# -- what is read --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ({}, "stage"),
        ({"type": "nobody knows"}, "stage"),
        ({"type": "streaming"}, "streaming"),
        ({"isStreaming": True}, "streaming"),
        ({"isPausable": True}, "pausable"),
        ({"type": "decider"}, "decider"),
        ({"hasDecider": True, "type": "stage"}, "decider"),
        ({"hasSelector": True}, "selector"),
        ({"type": "selector"}, "selector"),
        ({"type": "fork", "children": [{}]}, "fork"),
        ({"children": [{}]}, "fork"),
        ({"type": "fork", "isDynamicParallel": True}, "fan_out"),
        ({"type": "subflow"}, "subchart"),
        ({"isSubflowRoot": True}, "subchart"),
        ({"subflowStructure": {}}, "subchart"),
    ],
    ids=repr,
)
def test_the_kind_of_a_stage_is_told_by_its_marks(spec, kind):
    assert kind_of(spec) == kind


def test_nothing_is_a_structure_without_stages():
    for nothing in (None, {}, []):
        assert structure_of(nothing).nodes == ()


def test_a_stage_may_have_a_name_alone_or_an_id_alone():
    read = structure_of({"name": "A", "next": {"id": "b"}})
    assert [(node.key, node.name) for node in read.nodes] == [("A", "A"), ("b", "b")]


def test_branches_meet_at_what_comes_next_and_a_looping_one_does_not():
    read = structure_of(
        {
            "id": "d",
            "type": "decider",
            "children": [
                {"id": "x"},
                {"id": "y", "loopTarget": "d"},
                {"id": "z", "next": {"id": "w"}},
            ],
            "next": {"id": "e"},
        }
    )
    edges = {(edge.source, edge.target): edge.kind for edge in read.edges}
    assert edges == {
        ("d", "x"): "branch",
        ("d", "y"): "branch",
        ("y", "d"): "loop",
        ("d", "z"): "branch",
        ("z", "w"): "next",
        ("x", "e"): "next",
        ("w", "e"): "next",
    }


def test_nothing_may_be_selected_so_what_follows_a_selector_follows_itself():
    read = structure_of(
        {"id": "s", "hasSelector": True, "children": [{"id": "x"}], "next": {"id": "e"}}
    )
    assert ("s", "e") in {(edge.source, edge.target) for edge in read.edges}


def test_a_branch_may_be_routed_to_by_another_name_than_its_id():
    read = structure_of({"id": "d", "type": "decider", "children": [{"id": "x2", "branchId": "x"}]})
    assert [(node.id, node.branch) for node in read.branches_of("d")] == [("x2", "x")]
    assert published_structure(read)["children"][0]["branchId"] == "x"


def test_other_marks_are_kept():
    spec = {
        "name": "A",
        "id": "a",
        "type": "stage",
        "retryAttempts": 2,
        "convergeAt": "z",
        "tags": ["t"],
        "next": {
            "name": "M",
            "id": "m",
            "type": "stage",
            "isSubflowRoot": True,
            "subflowId": "m",
            "subflowName": "M",
            "isLazy": True,
        },
    }
    assert published_structure(structure_of(spec)) == spec


def test_a_chain_of_thousands_is_written_and_read():
    spec = None
    for n in reversed(range(5_000)):
        spec = {"name": f"S{n}", "id": f"s{n}", "type": "stage", **({"next": spec} if spec else {})}
    read = structure_of(spec)
    assert len(read.nodes) == 5_000
    again = published_structure(read)
    for n in range(5_000):
        assert again["id"] == f"s{n}"
        again = again.get("next", {})


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        ("x", "structure"),
        ({"id": 3}, "structure.id"),
        ({"id": "a", "next": 3}, "structure, after a"),
        ({"id": "a", "type": "decider", "children": 3}, "structure, a"),
        ({"id": "a", "type": "decider", "children": [3]}, "structure, a child of a"),
        ({"id": "a", "next": {}}, "structure, after a"),
        ({"id": "a", "description": 3}, "structure, stage a.description"),
    ],
    ids=repr,
)
def test_what_is_no_structure_is_refused_with_its_place(spec, where):
    with pytest.raises(LoadError) as refused:
        structure_of(spec)
    assert refused.value.code == "bad_recording"
    assert refused.value.where == where
    assert refused.value.fix


def test_a_structure_that_contains_itself_is_refused(monkeypatch):
    monkeypatch.setattr(published_read, "MAX_STAGES", 1_000)
    spec = {"id": "a"}
    spec["next"] = spec
    with pytest.raises(LoadError) as refused:
        structure_of(spec)
    assert refused.value.code == "too_large"
    mount = {"id": "m"}
    mount["subflowStructure"] = mount
    with pytest.raises(LoadError) as refused:
        structure_of(mount)
    assert refused.value.code == "too_deep"


# -- our own written form, from somebody else ----------------------------------------------------


def written(change):
    made = triage().structure.to_dict()
    change(made)
    return made


@pytest.mark.parametrize(
    "change",
    [
        lambda made: made.update(name=3),
        lambda made: made.pop("nodes"),
        lambda made: made["nodes"].append(made["nodes"][0]),
        lambda made: made["nodes"][0].update(kind="magic"),
        lambda made: made["nodes"][0].update(key=7),
        lambda made: made["nodes"][0].update(detail=7),
        lambda made: made["nodes"][0].update(odd=7),
        lambda made: made["edges"][0].update(target="nowhere"),
        lambda made: made["edges"][0].update(kind="magic"),
        lambda made: made["edges"][0].update(label=[]),
        lambda made: made["groups"].append(["nowhere", []]),
        lambda made: made["groups"].append(["rows", ["rows"]]),
        lambda made: made["groups"].extend([["rows", ["collect"]], ["collect", ["rows"]]]),
        lambda made: made.update(groups=3),
    ],
)
def test_a_written_structure_that_does_not_fit_together_is_refused(change):
    assert structure_as_written(written(lambda made: None), "here").to_dict() == written(
        lambda made: None
    )
    with pytest.raises(LoadError) as refused:
        structure_as_written(written(change), "here")
    assert (refused.value.code, refused.value.where) == ("bad_recording", "here")


@pytest.mark.parametrize("nothing", [None, 3, [], "x"])
def test_what_is_no_written_structure_is_refused(nothing):
    with pytest.raises(LoadError):
        structure_as_written(nothing, "here")
