"""Recordings that are damaged, huge, hostile or merely odd: refused in words, or read as far as
they go. Nothing in them is executed, and nothing crashes."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb.errors import LoadError
from runbook_nb.record import loading, published, published_read
from runbook_nb.record.recording import OWN_ID

FOREIGN = Path(__file__).with_name("foreign")
NAMES = ["triage_evidence", "subflow", "loop", "fork", "selector", "fan_out_nested", "failing"]
DOCUMENTS = {
    name: json.loads((FOREIGN / f"{name}.json").read_text(encoding="utf-8")) for name in NAMES
}


def look_at(run):
    """Ask for every view: none may fail."""
    rows = list(run.walk)
    assert run.steps_executed <= len(rows) or not rows
    str(run)
    str(run.structure)
    run._repr_mimebundle_()
    run.walk.flowchart()
    [commit.to_dict() for commit in run.commits]
    [made.decision.to_dict() for made in run.decisions]
    run.recording().to_json()
    return run


def refused(source, code, **options):
    with pytest.raises(LoadError) as caught:
        rb.load_recording(source, **options)
    error = caught.value
    assert error.code == code, error
    assert error.where
    assert error.fix
    assert len(str(error)) < 1000
    return error


def in_words(error):
    assert error.code
    assert error.where
    assert error.fix


def of(name="subflow", **changes):
    document = copy.deepcopy(DOCUMENTS[name])
    document["snapshot"].update(changes)
    return document


# -- the door ------------------------------------------------------------------------------------


def test_a_path_a_text_bytes_a_mapping_and_a_recording_are_one(tmp_path):
    path = FOREIGN / "loop.json"
    text = path.read_text(encoding="utf-8")
    document = json.loads(text)
    recording = rb.Recording(document["snapshot"], document["events"], document["structure"])
    ways = [path, str(path), text, f"\n {text}", text.encode(), b"\xef\xbb\xbf" + text.encode()]
    walks = [list(rb.load_recording(way).walk) for way in (*ways, document, recording)]
    assert all(walk == walks[0] for walk in walks)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "not_json"),
        (b"\xff\xfe\x00", "not_json"),
        (b"{", "not_json"),
        (b'{"snapshot": NaN}', "not_json"),
        (b"null", "not_a_recording"),
        (b"[]", "not_a_recording"),
        (b"{}", "not_a_recording"),
        (b'"text"', "not_a_recording"),
        (b'{"snapshot": []}', "not_a_recording"),
        (b'{"snapshot": null, "events": [], "structure": {}}', "not_a_recording"),
        (b'{"executionTree": {}, "commitLog": []}', "not_a_recording"),
        (b'{"format": "agentfootprint.recording.packed.v1"}', "not_a_recording"),
        (b'{"snapshot": ' + b"9" * 5000 + b"}", "not_json"),
        (b"[" * 100_000, "not_json"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_file_that_is_no_recording_is_refused(tmp_path, content, code):
    path = tmp_path / "odd.json"
    path.write_bytes(content)
    error = refused(path, code)
    assert "odd.json" in error.where


def test_a_file_that_is_not_there_or_cannot_be_opened(tmp_path):
    refused(tmp_path / "nowhere.json", "cannot_read")
    refused(tmp_path, "cannot_read")
    refused("\0", "cannot_read")
    refused("no/such\x1b[31mfile", "cannot_read")


def test_what_is_too_large_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "big.json"
    with path.open("wb") as file:
        file.truncate(loading.MAX_BYTES + 1)
    refused(path, "too_large")
    refused(FOREIGN / "loop.json", "too_large", max_bytes=100)
    text = (FOREIGN / "loop.json").read_text(encoding="utf-8")
    refused(text, "too_large", max_bytes=100)
    refused(text.encode(), "too_large", max_bytes=100)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_device_that_never_ends_is_read_as_far_as_allowed():
    if Path("/dev/zero").exists():
        refused("/dev/zero", "too_large", max_bytes=1000)


@pytest.mark.parametrize("odd", [None, 3, 3.5, True, [], object()])
def test_other_things_are_no_recordings(odd):
    refused(odd, "not_a_recording")


# -- depth and size ------------------------------------------------------------------------------


def chain(length, loop_in_children=False):
    """A tree and a structure of many stages."""
    tree, structure = None, None
    for n in reversed(range(length)):
        node = {"id": f"s{n}", "runtimeStageId": f"s{n}#{n}", "name": f"S{n}"}
        if tree is not None:
            if loop_in_children and n % 2:
                node["children"] = [tree]
            else:
                node["next"] = tree
        tree = node
        spec = {"id": f"s{n}", "name": f"S{n}", "type": "stage"}
        if structure is not None:
            spec["next"] = structure
        structure = spec
    commits = [
        {
            "idx": n,
            "stage": f"S{n}",
            "stageId": f"s{n}",
            "runtimeStageId": f"s{n}#{n}",
            "overwrite": {"n": n},
            "updates": {},
            "trace": [{"path": "n", "verb": "set"}],
        }
        for n in range(length)
    ]
    snapshot = {"sharedState": {"n": length - 1}, "executionTree": tree, "commitLog": commits}
    return {"snapshot": snapshot, "events": [], "structure": structure}


def test_a_chain_of_many_thousand_stages_is_read_and_written():
    length = 8_000
    run = rb.load_recording(chain(length))
    assert run.steps_executed == length
    assert run.walk[-1].text == "Wrote n"
    assert len(run.structure.nodes) == length
    text = run.recording().to_json()
    again = rb.load_recording(text)
    assert again.steps_executed == length
    assert again.recording().to_json() == text
    read_back = published_read.structure_of(published.published_structure(run.structure))
    assert read_back.nodes[-1].id == f"s{length - 1}"


def test_branches_nested_in_branches_by_the_thousand_are_read():
    document = chain(5_000, loop_in_children=True)
    document["structure"] = None
    assert rb.load_recording(document).steps_executed == 5_000


def test_values_nested_without_end_are_refused():
    deep = []
    for _ in range(50_000):
        deep = [deep]
    commit = {"runtimeStageId": "start#0", "overwrite": {"a": deep}, "trace": []}
    context = {"globalContext": {"a": deep}, "history": []}
    for changes in (
        {"sharedState": {"a": deep}},
        {"initialState": {"a": deep}},
        {"commitLog": [commit]},
        {"recorders": [{"data": [{"runtimeStageId": "x", "evidence": {"rules": deep}}]}]},
        {"subflowResults": {"sub": {"treeContext": context}}},
    ):
        error = refused(of(**changes), "too_deep")
        assert "snapshot" in error.where


def test_a_linked_list_in_the_state_is_a_value_and_no_tree():
    deep = {}
    for _ in range(5_000):
        deep = {"next": deep}
    refused(of(sharedState={"head": deep}), "too_deep")


def test_charts_inside_charts_without_end_are_refused():
    document, inner = of(), {"id": "in", "name": "In", "type": "stage"}
    for n in range(5_000):
        inner = {
            "id": f"m{n}",
            "name": "M",
            "isSubflowRoot": True,
            "subflowId": f"m{n}",
            "subflowStructure": inner,
        }
    document["structure"] = inner
    refused(document, "too_deep")
    children = {"id": "c", "name": "C"}
    for n in range(5_000):
        children = {"id": f"d{n}", "name": "D", "hasDecider": True, "children": [children]}
    document["structure"] = {"id": "a", "name": "A", "next": children}
    rb.load_recording(document)  # a branch of a branch is not looked into


def test_a_mount_that_mounts_itself_is_refused():
    node = {"id": "sub", "runtimeStageId": "sub#0", "name": "Sub", "subflowId": "sub"}
    result = {"subflowId": "sub", "treeContext": {"stageContexts": node, "history": []}}
    refused(of(executionTree=node, subflowResults={"sub#0": result}), "too_deep")
    fan = {
        "id": "f",
        "runtimeStageId": "f#0",
        "logs": {"parallelForEach": {"items": 1}},
        "children": [{"id": "f~0", "runtimeStageId": "f~0#1", "subflowId": "f~0"}],
    }
    result = {"treeContext": {"stageContexts": fan}}
    refused(of(executionTree=fan, subflowResults={"f~0": result}), "too_deep")


def test_parts_that_contain_themselves_are_refused(monkeypatch):
    from runbook_nb.record import foreign

    monkeypatch.setattr(foreign, "MAX_STEPS", 5_000)
    monkeypatch.setattr(published_read, "MAX_STAGES", 5_000)
    node = {"id": "a", "runtimeStageId": "a#0", "name": "A"}
    node["next"] = node
    refused(of(executionTree=node), "too_large")
    node = {"id": "a", "runtimeStageId": "a#0", "name": "A"}
    node["children"] = [node]
    refused(of(executionTree=node), "too_large")
    spec = {"id": "a", "name": "A"}
    spec["next"] = spec
    document = of()
    document["structure"] = spec
    refused(document, "too_large")


def test_a_fan_out_that_claims_to_be_endless_is_refused():
    fan = {
        "id": "f",
        "runtimeStageId": "f#0",
        "logs": {"parallelForEach": {"items": 10**12, "maxBranches": 10**12}},
    }
    refused(of(executionTree=fan), "too_large")
    fan["logs"]["parallelForEach"]["items"] = 1
    fan["children"] = [{"id": "f~999999999", "runtimeStageId": "f~9#1", "subflowId": "f~9"}]
    refused(of(executionTree=fan), "too_large")


@pytest.mark.parametrize(
    "parts",
    [
        {"trace": [None]},
        {"trace": 3},
        {"trace": [{"path": 3}]},
        {"trace": [{"path": "a", "verb": "set"}], "overwrite": []},
        {"trace": [{"path": "a", "verb": "set"}], "overwrite": {"a": 1}, "updates": 7},
    ],
    ids=repr,
)
def test_a_commit_that_is_none_is_refused(parts):
    error = refused(of(commitLog=[{"runtimeStageId": "start#0", **parts}]), "bad_recording")
    assert error.where.startswith("commitLog, start#0")


# -- odd parts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"executionTree": 3},
        {"executionTree": {"runtimeStageId": "a#0", "next": 3}},
        {"executionTree": {"id": "a", "runtimeStageId": "a#0", "next": {"id": "b"}}},
        {
            "executionTree": {
                "id": "f",
                "runtimeStageId": "f#0",
                "logs": {"parallelForEach": {}},
                "children": [3],
            }
        },
    ],
)
def test_a_tree_that_is_none_is_refused(changes):
    refused(of(**changes), "bad_recording")


@pytest.mark.parametrize(
    "structure",
    [
        3,
        "text",
        [1],
        {"id": 3},
        {"id": "a", "name": []},
        {"next": {"id": "b"}},
        {"id": "a", "next": 7},
        {"id": "a", "children": {"b": {}}},
        {"id": "a", "type": "decider", "children": [1]},
        {"id": "a", "type": "decider", "children": [{"name": None}]},
        {"id": "a", "description": 5},
        {"id": "a", "isSubflowRoot": True, "subflowStructure": "x"},
    ],
    ids=repr,
)
def test_a_structure_that_is_none_is_refused(structure):
    document = of()
    document["structure"] = structure
    error = refused(document, "bad_recording")
    assert error.where.startswith("structure")


@pytest.mark.parametrize(
    "changes",
    [
        {"executionTree": None},
        {"executionTree": {}},
        {"commitLog": None},
        {"commitLog": {"a": 1}},
        {"commitLog": [None, 3, [], {}, {"runtimeStageId": 4}, {"runtimeStageId": "start#0"}]},
        {
            "commitLog": [
                {
                    "runtimeStageId": "start#0",
                    "trace": [{"path": "a", "verb": []}, {"path": ""}, {"path": "b"}],
                    "overwrite": {},
                }
            ]
        },
        {
            "commitLog": [
                {
                    "runtimeStageId": "start#0",
                    "trace": [
                        {"path": "__proto__\x1fx", "verb": "set"},
                        {"path": "a\x1f0\x1fb", "verb": "append"},
                        {"path": "a\x1f99999999999999999999", "verb": "merge"},
                        {"path": "a", "verb": "explode"},
                    ],
                    "overwrite": {"a": [1], "__proto__": {"x": 1}},
                    "updates": {"a": {"0": 1}},
                }
            ]
        },
        {"subflowResults": []},
        {"subflowResults": {"sub": None, "sub#1": {"treeContext": 3}}},
        {"subflowResults": {"sub": {"treeContext": {"stageContexts": [], "history": "x"}}}},
        {"recorders": {}},
        {"recorders": [None, {"data": 3}, {"data": [{"type": 3, "text": 4}]}]},
        {"recorders": [{"data": [{"runtimeStageId": "start#0", "evidence": {"rules": 3}}]}]},
        {"sharedState": None},
        {"initialState": 3},
        {"runId": {"a": []}, "unheard of": [{}]},
    ],
    ids=lambda value: repr(value)[:60],
)
def test_what_is_merely_odd_is_read_as_far_as_it_goes(changes):
    look_at(rb.load_recording(of(**changes)))


def test_without_a_structure_what_ran_is_the_structure():
    for name in NAMES:
        document = copy.deepcopy(DOCUMENTS[name])
        document["structure"] = None
        run = look_at(rb.load_recording(document))
        whole = rb.load_recording(DOCUMENTS[name])
        assert run.steps_executed == whole.steps_executed
        assert [r.runtime_stage_id for r in run.walk] == [r.runtime_stage_id for r in whole.walk]


def test_texts_of_a_file_are_escaped_wherever_they_are_shown():
    bad = "<img src=x onerror=alert(1)>\u202e\x1b[31m"
    text = (FOREIGN / "decider_evidence.json").read_text(encoding="utf-8")
    for word in ("Score", "gold", "good", "picks a way", "verdict"):
        text = text.replace(word, json.dumps(bad)[1:-1])
    run = look_at(rb.load_recording(text))
    html = run._repr_mimebundle_()[0]["text/html"] + run.walk.flowchart().svg
    assert "<img src=x" not in html
    for shown in (html, str(run), str(run.walk)):
        assert "\x1b" not in shown
        assert "\u202e" not in shown


def test_a_lone_surrogate_is_carried_and_shown():
    text = (FOREIGN / "loop.json").read_text(encoding="utf-8").replace('"Body"', '"\\ud800"')
    run = rb.load_recording(text)
    list(run.walk)
    str(run)
    run.walk.flowchart()


ODD = st.sampled_from(
    [None, True, 0, -1, 10**20, 1.5, "", "x", "a/b~1#2", "\x1f", [], {}, [[]], {"a": {}}, ["x", 1]]
)


@st.composite
def damaged(draw):
    """One of the files with some of its parts taken out, doubled, or made something else."""
    document = copy.deepcopy(DOCUMENTS[draw(st.sampled_from(NAMES))])
    for _ in range(draw(st.integers(1, 4))):
        home, key = document, draw(st.sampled_from(["snapshot", "structure"]))
        for _ in range(draw(st.integers(0, 12))):
            inner = home[key]
            if not isinstance(inner, dict | list) or not inner:
                break
            keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
            home, key = inner, draw(st.sampled_from(keys))
        what = draw(st.sampled_from(["odd", "gone", "twice"]))
        if what == "odd" or home is document:
            home[key] = copy.deepcopy(draw(ODD))
        elif what == "gone":
            del home[key]
        elif isinstance(home, list):
            home.append(home[key])
        else:
            home[f"{key}2"] = home[key]
    return document


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(damaged())
def test_a_damaged_recording_is_refused_in_words_or_read_as_far_as_it_goes(document):
    try:
        run = rb.load_recording(document)
    except LoadError as error:
        in_words(error)
    else:
        look_at(run)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_text_cut_or_changed_anywhere_is_refused_or_read(data):
    text = (FOREIGN / "selector.json").read_text(encoding="utf-8")
    at = data.draw(st.integers(0, len(text)))
    put = data.draw(st.sampled_from(["", "}", "]", '"', ",", "\x00", "9" * 5000, "[" * 3000]))
    try:
        run = rb.load_recording(text[:at] + put + text[at + data.draw(st.integers(0, 40)) :] + " ")
    except LoadError:
        return
    look_at(run)


# -- our own, damaged ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own():
    chart = (
        rb.flow_chart("c", lambda s: s.set("n", 3), id="a")
        .add_decider(
            "D",
            id="d",
            rules=rb.RuleSet("r", "1", [rb.Rule({"n": {"gt": 1}}, "x")], default="y"),
        )
        .branch("x", lambda s: s.set("done", True))
        .branch("y", lambda s: None)
        .branch("declined", lambda s: None)
        .end()
        .build()
    )
    return chart.run_sync().recording().to_dict()


def record_in(document):
    return next(row for row in document["snapshot"]["recorders"] if row["id"] == OWN_ID)["data"]


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("format", "runbook_nb/recording/999"),
        ("format", None),
        ("name", 3),
        ("status", "splendid"),
        ("error", {"type": "E"}),
        ("pause", []),
        ("ended_at", "a#0"),
        ("structure", None),
        ("structure", {"name": "c"}),
        ("structure", {"name": "c", "nodes": [{"key": "a"}]}),
        ("log", None),
        ("log", {"format": "runbook_nb/log/1"}),
    ],
)
def test_our_own_record_is_not_trusted_either(own, part, value):
    document = copy.deepcopy(own)
    record_in(document)[part] = value
    with pytest.raises(LoadError) as caught:
        rb.load_recording(document)
    assert caught.value.where
    assert caught.value.fix


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_our_own_record_damaged_anywhere_is_refused_or_read(own, data):
    document = copy.deepcopy(own)
    home, key = {"data": record_in(document)}, "data"
    for _ in range(data.draw(st.integers(1, 8))):
        inner = home[key]
        if not isinstance(inner, dict | list) or not inner:
            break
        keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        home, key = inner, data.draw(st.sampled_from(keys))
    if "data" in home:
        return
    home[key] = data.draw(ODD)
    try:
        run = rb.load_recording(document)
    except LoadError:
        return
    look_at(run)
