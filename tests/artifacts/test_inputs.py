"""What files a walk or a recording: published kinds, labels and origins, compact JSON text."""

import json

import pytest

from runbook_nb._frozen import freeze
from runbook_nb.artifacts import (
    CHART_WALK_ARTIFACT_KIND,
    RECORDING_ARTIFACT_KIND,
    ArtifactScope,
    InMemoryArtifacts,
    chart_walk_put_input,
    recording_put_input,
)
from runbook_nb.errors import ArtifactError


def test_the_kinds_are_the_published_ones():
    assert CHART_WALK_ARTIFACT_KIND == "recording/chart-walk"
    assert RECORDING_ARTIFACT_KIND == "recording/run"


def test_case_66_a_walk_is_filed_as_compact_text_under_its_tools_name():
    put = chart_walk_put_input([{"a": 1}], toolName="t", toolCallId="c")
    assert put == {
        "kind": "recording/chart-walk",
        "mediaType": "application/json",
        "data": '[{"a":1}]',
        "label": "t walk",
        "origin": {"toolCallId": "c"},
    }
    assert put == chart_walk_put_input([{"a": 1}], tool_name="t", tool_call_id="c")


def test_case_66_with_nothing_known_a_walk_has_a_plain_label_and_no_origin():
    assert chart_walk_put_input([]) == {
        "kind": "recording/chart-walk",
        "mediaType": "application/json",
        "data": "[]",
        "label": "chart walk",
    }


def test_a_given_label_is_kept_word_for_word():
    assert chart_walk_put_input([], tool_name="t", label=" mine ")["label"] == " mine "
    assert recording_put_input({}, run_id="r", label="mine")["label"] == "mine"


@pytest.mark.parametrize("nothing", [None, ""])
def test_empty_names_and_ids_are_not_there(nothing):
    put = chart_walk_put_input([], tool_name=nothing, tool_call_id=nothing, runId=nothing)
    assert (put["label"], "origin" in put) == ("chart walk", False)
    put = recording_put_input({}, run_id=nothing, label=nothing)
    assert (put["label"], "origin" in put) == ("run recording", False)


def test_a_recording_is_filed_under_its_run():
    put = recording_put_input({"events": []}, runId="r1", toolCallId="c1")
    assert list(put.items()) == [
        ("kind", "recording/run"),
        ("mediaType", "application/json"),
        ("data", '{"events":[]}'),
        ("label", "run r1"),
        ("origin", {"runId": "r1", "toolCallId": "c1"}),
    ]
    assert put == recording_put_input({"events": []}, run_id="r1", tool_call_id="c1")
    assert recording_put_input({})["label"] == "run recording"


@pytest.mark.parametrize("make", [chart_walk_put_input, recording_put_input])
@pytest.mark.parametrize("bad", [[{"x"}], [float("nan")], ["\ud800"], [object()], None])
def test_what_json_cannot_carry_is_an_unserializable_recording(make, bad):
    with pytest.raises(ArtifactError) as caught:
        make(bad)
    assert caught.value.code == "unserializable_recording"
    assert "cannot be written as JSON" in str(caught.value)


def test_a_cycle_is_an_unserializable_recording():
    snapshot = {}
    snapshot["self"] = snapshot
    with pytest.raises(ArtifactError, match="contains itself"):
        recording_put_input({"snapshot": snapshot})


@pytest.mark.parametrize("rows", ["[]", {"rows": []}, 5, iter([])])
def test_the_rows_of_a_walk_are_a_list(rows):
    with pytest.raises(ArtifactError, match="its rows are a list"):
        chart_walk_put_input(rows)


def test_frozen_rows_are_written_as_they_are():
    rows = freeze([{"text": "é", "subflow": None}])
    assert chart_walk_put_input(rows)["data"] == '[{"text":"é","subflow":null}]'
    assert chart_walk_put_input(tuple(rows))["data"] == chart_walk_put_input(rows)["data"]


@pytest.mark.parametrize("make", [chart_walk_put_input, recording_put_input])
def test_a_misspelt_argument_is_refused_with_the_likely_one(make):
    with pytest.raises(ArtifactError) as caught:
        make([], toolCallID="c")
    assert caught.value.fix == "did you mean 'tool_call_id'?"


def test_a_recording_has_no_tool_name():
    with pytest.raises(ArtifactError, match="toolName"):
        recording_put_input({}, toolName="t")


def test_an_id_in_two_spellings_is_refused():
    with pytest.raises(ArtifactError, match="twice"):
        chart_walk_put_input([], tool_call_id="a", toolCallId="b")


def test_a_store_takes_both_and_gives_the_same_text_back():
    store, scope = InMemoryArtifacts(), ArtifactScope("c1")
    rows = [{"step": 0, "text": "é"}]
    for put in (
        chart_walk_put_input(rows, tool_name="t", run_id="r"),
        recording_put_input({"snapshot": {}, "events": [], "structure": rows}),
    ):
        record = store.get_sync(scope, store.put_sync(scope, put).meta.ref)
        assert record.data == put["data"]
        assert record.meta.kind == put["kind"]
        assert record.meta.label == put["label"]
        assert record.meta.bytes == len(put["data"].encode())
        assert json.loads(record.data)
