"""Whole walks filed in columns beside the capped rows, and read back through their ticket."""

from __future__ import annotations

import json
import pickle
import sys

import pytest

import runbook_nb as rb
from runbook_nb.errors import DefinitionError, NotCarried, SubjectNotFound

FORMS = ("columns", "arrow")
KEYS = [
    "columns_ref",
    "columns_kind",
    "columns_form",
    "columns_rows",
    "columns_total",
    "columns_complete",
    "columns_bytes",
    "columns_note",
]


@pytest.mark.parametrize("form", FORMS)
def test_the_whole_walk_is_filed_beside_the_rows(call, form):
    plain = call(walk={"cap": 5})
    envelope = call(walk={"cap": 5, "form": form})
    walk = envelope["result"]["walk"]
    assert [key for key in walk if key.startswith("columns_")] == KEYS
    assert {k: v for k, v in walk.items() if k not in (*KEYS, "ref")} == {
        k: v for k, v in plain["result"]["walk"].items() if k != "ref"
    }
    record = envelope._artifacts.get_sync(walk["columns_ref"])
    assert record.meta.kind == walk["columns_kind"] == rb.CHART_WALK_COLUMNS_ARTIFACT_KIND
    assert record.meta.bytes == len(record.data) == walk["columns_bytes"]
    assert record.meta.label == "backup_triage walk, whole"
    assert record.meta.origin["toolCallId"] == "tc-1"
    live = envelope.walk
    assert walk["columns_rows"] == walk["columns_total"] == len(live) > walk["rows"]
    assert walk["columns_complete"] is True
    assert rb.read_walk(record) == live


def test_by_default_nothing_of_it_is_there(call):
    for options in ({}, {"walk": {"form": "json"}}, {"walk": rb.WalkOptions()}):
        assert not [key for key in call(**options)["result"]["walk"] if "columns" in key]


@pytest.mark.parametrize("form", FORMS)
def test_a_copy_has_the_whole_walk_through_its_ticket(call, form):
    envelope = call(walk={"cap": 5, "form": form})
    copy = rb.Envelope.from_dict(json.loads(envelope.to_json()), envelope._artifacts)
    walk, live = copy.walk, envelope.walk
    assert list(walk) == list(live)
    assert (len(walk), walk.total, walk.shown, walk.complete, walk.steps_executed) == (
        len(live),
        len(live),
        len(live),
        True,
        live.steps_executed,
    )
    assert walk.page(3, 4) == live.page(3, 4)
    assert walk.page(3, 4).total == len(live)
    assert walk[-1] == live[-1]
    assert walk.of("cluster-b") == live.of("cluster-b")
    assert [made.decision.sentence for made in walk.decisions] == [
        made.decision.sentence for made in live.decisions
    ]
    assert walk.flowchart().svg == live.flowchart().svg
    assert walk.to_frame().equals(live.to_frame())
    assert f"{len(live)} rows filed" in str(walk)
    with pytest.raises(SubjectNotFound):
        walk.of("cluster-z")


def test_a_copy_without_that_ticket_has_the_rows_within_the_cap(call):
    envelope = call(walk={"cap": 5})
    walk = rb.Envelope.from_dict(envelope.to_dict(), envelope._artifacts).walk
    page = walk.page(1, 2)
    assert (len(walk), walk.shown, walk.complete, page.total) == (5, 5, False, 5)
    assert walk.total == len(envelope.walk)
    with pytest.raises(NotCarried, match="not carried by the filed rows") as caught:
        walk.of("cluster-b")
    assert '"form": "columns"' in caught.value.fix


def test_a_ticket_that_cannot_be_redeemed_leaves_the_rows(call):
    envelope = call(walk={"form": "columns"})
    store, wire = envelope._artifacts, envelope.to_dict()
    store.delete_sync(wire["result"]["walk"]["columns_ref"])
    walk = rb.Envelope.from_dict(wire, store).walk
    assert walk.whole is None
    assert list(walk) == list(envelope.walk)
    none = rb.Envelope.from_dict(wire).walk
    with pytest.raises(NotCarried, match="no store is at hand"):
        none.page(0, 1)


def test_a_damaged_walk_in_the_store_is_not_carried(call):
    envelope = call(walk={"form": "columns"})
    store, wire = envelope._artifacts, envelope.to_dict()
    filed = store.put_sync(rb.chart_walk_columns_put_input(b"damaged"))
    wire["result"]["walk"]["columns_ref"] = filed.meta.ref
    with pytest.raises(NotCarried, match="the walk is not carried: no walk"):
        rb.Envelope.from_dict(wire, store).walk.page(0, 1)


def test_without_a_store_the_counters_and_the_reason_are_left(call):
    walk = call(artifacts=None, walk={"form": "columns"})["result"]["walk"]
    assert "columns_ref" not in walk
    assert "columns_kind" not in walk
    assert (walk["columns_rows"], walk["columns_complete"]) == (0, False)
    assert walk["columns_total"] == walk["total"]
    assert "no artifact store" in walk["columns_note"]


def test_a_store_that_fails_costs_the_ticket_alone(call, kit):
    envelope = call(artifacts=kit.Refusing(RuntimeError("disk full")), walk={"form": "columns"})
    walk = envelope["result"]["walk"]
    assert "columns_ref" not in walk
    assert "disk full" in walk["columns_note"]
    assert walk["columns_bytes"] > 0
    assert (walk["columns_rows"], walk["columns_complete"]) == (0, False)
    assert envelope["result"]["rows_total"] == 3


def test_a_walk_given_up_for_another_loses_its_ticket(call):
    store = rb.InMemoryArtifacts(max_count=1)
    walk = call(artifacts=store, walk={"form": "columns"})["result"]["walk"]
    assert "ref" not in walk
    assert "to make room for the whole walk" in walk["note"]
    assert "columns_ref" in walk
    walk = call(artifacts=store, walk={"form": "columns", "recording": True})["result"]["walk"]
    assert "ref" not in walk
    assert "columns_ref" not in walk
    assert "to make room for the recording" in walk["columns_note"]
    assert (walk["columns_rows"], walk["columns_complete"]) == (0, False)
    assert "recording_ref" in walk


@pytest.mark.parametrize("form", ["colums", "JSON", "", None, 3, ["columns"]])
def test_a_form_that_is_none_is_refused_by_name(call, form):
    with pytest.raises(DefinitionError, match=r"walk\.form is") as caught:
        call(walk={"form": form})
    assert caught.value.where == "walk.form"


def test_arrow_without_pyarrow_is_refused_when_declared(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DefinitionError, match="pyarrow is not installed") as caught:
        call(walk={"form": "arrow"})
    assert "pip install 'runbook-nb[arrow]'" in caught.value.fix


@pytest.mark.parametrize("form", FORMS)
def test_what_is_hidden_is_not_in_what_is_filed(call, form):
    envelope = call(walk={"form": form}, redact={"keys": ["age_days"]})
    ref = envelope["result"]["walk"]["columns_ref"]
    walk = rb.read_walk(envelope._artifacts.get_sync(ref))
    assert list(walk) == list(envelope.walk)
    assert not [row for row in walk if "30 >" in row.text]
    assert any("[REDACTED]" in row.text for row in walk)


def test_what_shows_an_envelope_carries_no_reference_to_it(call):
    envelope = call(walk={"form": "columns"})
    payload = json.dumps(envelope.view().payload(None))
    assert envelope["result"]["walk"]["columns_ref"] not in payload
    again = pickle.loads(pickle.dumps(envelope))  # noqa: S301 - our own bytes
    assert again["result"]["walk"] == envelope["result"]["walk"]
