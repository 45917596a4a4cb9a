"""The sentences of a narrative: what is read from them, and what is left a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runbook_nb.record.foreign_told import (
    Narrative,
    Row,
    Told,
    kept_by_recorders,
    narrative_of,
)

FOREIGN = Path(__file__).with_name("foreign")


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("Step 1: Read n = 1", "read"),
        ("Step 12: Write n = 2", "write"),
        ("Step 2: Update n = {x: 1}", "update"),
        ("Step 3: Delete n", "delete"),
        ("Step 4: Input: n = 1", "received"),
        ("Read n", "read"),
        ("Wrote n", "write"),
        ("Merged into n", "update"),
        ("Appended to n", "write"),
        ("Deleted n", "delete"),
        ("Received n", "received"),
        ("Read other", None),
        ("Somebody's own words about n", None),
        ("", None),
    ],
)
def test_what_a_step_did(text, operation):
    assert Row("step", text, "n").operation == operation


def test_a_step_without_a_key_did_nothing_known():
    assert Row("step", "Step 1: Read n = 1").operation is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[Condition]: It was old, so old.", "It was old, so old."),
        ("[Loop]: On pass 2", "On pass 2"),
        ("no mark", "no mark"),
        ("[lower]: stays", "[lower]: stays"),
        ("[Note]: [Note]: once", "[Note]: once"),
    ],
)
def test_the_sentence_has_no_mark(text, sentence):
    found = Row("condition", text).sentence
    assert found == sentence
    assert isinstance(found, Told)


@pytest.mark.parametrize(
    ("text", "name", "payload"),
    [
        ("[emit] progress: {done: 1}", "progress", "{done: 1}"),
        ("[emit] a: b: c", "a", "b: c"),
        ("[emit] two\nlines: x\ny", "two\nlines", "x\ny"),
        ("[emit] a: x\ny", "a", "x\ny"),
        ("own words", "event", "own words"),
    ],
)
def test_an_event(text, name, payload):
    assert Row("emit", text).emitted == (name, payload)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[Retry]: attempt 1 of 3 at Flaky failed (not yet).", (1, 3, "not yet")),
        (
            "[Retry]: attempt 2 of 3 at Flaky failed (a (b) c). Waited 50ms before the next.",
            (2, 3, "a (b) c"),
        ),
        ("[Retry]: somehow", (None, None, "somehow")),
    ],
)
def test_a_retry(text, told):
    assert Row("retry", text).retried == told


def test_the_rows_of_an_execution_keep_their_order():
    rows = [
        {"type": "stage", "text": "one", "runtimeStageId": "a#0"},
        {"type": "stage", "text": "other", "runtimeStageId": "b#1"},
        {"type": "step", "text": "two", "runtimeStageId": "a#0", "key": "n"},
        {"type": "step", "text": "nobody's"},
        {"type": "step", "text": 3, "runtimeStageId": "a#0"},
        {"type": "step", "text": "three", "runtimeStageId": "a#0", "key": 3},
    ]
    found = narrative_of({"recorders": [{"id": "n", "data": rows}]})
    assert found.kept
    assert [(row.text, row.key) for row in found.of("a#0")] == [
        ("one", None),
        ("two", "n"),
        ("three", None),
    ]
    assert found.has("a#0", "step")
    assert not found.has("b#1", "step")
    assert found.of("nowhere") == []


def test_the_first_observer_that_kept_sentences_is_the_narrative():
    first = [{"type": "stage", "text": "x", "runtimeStageId": "a#0"}]
    second = [{"type": "stage", "text": "y", "runtimeStageId": "a#0"}]
    recorders = [{"data": [{"n": 1}]}, {"data": []}, {"data": first}, {"data": second}]
    assert [row.text for row in narrative_of({"recorders": recorders}).of("a#0")] == ["x"]


@pytest.mark.parametrize("recorders", [None, 3, [], [3], [{}], [{"data": {}}], [{"data": [3]}]])
def test_there_may_be_none(recorders):
    found = narrative_of({"recorders": recorders})
    assert found == Narrative()
    assert not found.kept


def test_what_observers_kept():
    assert list(kept_by_recorders({"recorders": [{"data": 1}, 3, {"x": 2}]})) == [1, None]
    assert list(kept_by_recorders({})) == []


@pytest.mark.parametrize("path", sorted(FOREIGN.glob("*.json")), ids=lambda path: path.stem)
def test_every_step_the_engine_tells_is_understood(path):
    snapshot = json.loads(path.read_text(encoding="utf-8"))["snapshot"]
    for rows in narrative_of(snapshot).rows.values():
        for row in rows:
            if row.type == "step":
                assert row.operation is not None, row.text
            elif row.type == "emit":
                assert row.emitted[0] != "event", row.text
            elif row.type == "retry":
                assert row.retried[0] is not None, row.text
