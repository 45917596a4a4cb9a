"""Cases 79 to 87: the run's own recording, filed beside its walk when asked for."""

from __future__ import annotations

import asyncio
import json

import runbook_nb as rb
from runbook_nb.record import recording
from runbook_nb.runbook import tickets
from runbook_nb.runbook.tickets import mint_chart_recording
from runbook_nb.tools import ToolContext

FIELDS = ["recording_ref", "recording_kind", "recording_bytes", "recording_note"]


def recorded(call, artifacts=..., **options):
    envelope = call(walk={"recording": options or True}, artifacts=artifacts)
    return envelope, envelope["result"]["walk"]


def kinds(box):
    return sorted(ticket.kind for ticket in box.artifacts.list_sync().artifacts)


def test_case_79_the_recording_redeems_in_its_published_shape(call, kit):
    envelope, walk = recorded(call)
    assert list(walk)[-4:] == FIELDS
    assert walk["recording_ref"] != walk["ref"]
    bundle = kit.parcel(call.box, envelope, "recording_ref")
    assert list(bundle) == ["snapshot", "events", "structure"]
    assert bundle["events"] == []
    assert bundle["structure"]["name"] == "backup-protection-triage"
    assert walk["recording_kind"] == "recording/run"
    record = call.box.artifacts.get_sync(walk["recording_ref"])
    assert walk["recording_bytes"] == record.meta.bytes == len(record.data.encode())
    assert bundle == json.loads(json.dumps(envelope.recording().to_dict()))


def test_case_80_off_means_no_field_no_measuring_and_no_store_call(call, kit, monkeypatch):
    monkeypatch.setattr(recording, "recording_of", lambda run, report: 1 / 0)
    for option in ({}, {"recording": False}):
        envelope = call(walk=option)
        assert not [key for key in envelope["result"]["walk"] if key.startswith("recording_")]
        assert kinds(call.box) == ["recording/chart-walk"]


def test_case_81_a_store_may_refuse_the_recording_alone(call, kit):
    store = kit.Refusing(RuntimeError("quota reached"), {"recording/run"})
    _, walk = recorded(call, artifacts=store)
    assert "ref" in walk
    assert "recording_ref" not in walk
    assert "recording_kind" not in walk
    assert walk["recording_bytes"] > 0
    assert "quota reached" in walk["recording_note"]
    assert "unaffected" in walk["recording_note"]


def test_case_82_without_a_store_only_the_note_is_there(call):
    _, walk = recorded(call, artifacts=None)
    assert [key for key in walk if key.startswith("recording_")] == ["recording_note"]
    assert "no artifact store" in walk["recording_note"]


def minted(call, max_bytes):
    run, box = call().run, call.box
    ctx = ToolContext(call_id="tc-1", artifacts=box.artifacts)
    policy = rb.RecordingOptions(max_bytes=max_bytes)
    return asyncio.run(mint_chart_recording(run, policy, ctx, "t"))[0]


def test_case_83_the_ceiling_is_exact(call):
    measured = minted(call, 5_000_000)["recording_bytes"]
    assert minted(call, measured)["recording_kind"] == "recording/run"
    over = minted(call, measured - 1)
    assert list(over) == ["recording_bytes", "recording_note"]
    assert over["recording_bytes"] == measured
    for said in (str(measured), str(measured - 1), "walk.recording.max_bytes", "NOT filed"):
        assert said in over["recording_note"]


def test_case_83_the_ceiling_counts_bytes_of_utf8(call):
    wide = call(rows=[{"subject": "é" * 500, "age_days": 1, "age_known": True}])
    assert wide.run is not None
    text = json.dumps(wide.recording().to_dict(), ensure_ascii=False, separators=(",", ":"))
    ctx = ToolContext(call_id="tc-1", artifacts=call.box.artifacts)
    policy = rb.RecordingOptions(max_bytes=len(text))
    fields, _ = asyncio.run(mint_chart_recording(wide.run, policy, ctx, "t"))
    assert "recording_ref" not in fields
    assert fields["recording_bytes"] == len(text.encode())


def test_case_84_over_the_ceiling_the_walk_is_filed_and_the_recording_is_not(call):
    _, walk = recorded(call, max_bytes=1)
    assert "ref" in walk
    assert "recording_ref" not in walk
    assert "NOT filed" in walk["recording_note"]
    assert kinds(call.box) == ["recording/chart-walk"]


def test_case_85_a_snapshot_that_contains_itself_costs_the_reference_only(call, monkeypatch):
    made = recording.recording_of

    def cyclic(run, report):
        recording = made(run, report)
        snapshot = dict(recording.snapshot)
        snapshot["loop"] = snapshot
        return rb.Recording(snapshot, [], recording.structure)

    monkeypatch.setattr(recording, "recording_of", cyclic)
    envelope, walk = recorded(call)
    assert [key for key in walk if key.startswith("recording_")] == ["recording_note"]
    assert "could not be serialised" in walk["recording_note"]
    assert envelope["result"]["rows_total"] == 3


def test_case_86_labels(call):
    for options, label in (
        ({}, "backup_triage recording"),
        ({"label": "nightly posture sweep"}, "nightly posture sweep"),
    ):
        _, walk = recorded(call, **options)
        assert call.box.artifacts.get_sync(walk["recording_ref"]).meta.label == label


def test_case_87_both_parcels_name_the_outer_call(call):
    envelope, walk = recorded(call)
    for ref in (walk["ref"], walk["recording_ref"]):
        assert call.box.artifacts.get_sync(ref).meta.origin["toolCallId"] == "tc-1"
    assert envelope["result"]["af_provenance"]["toolCallId"] == "tc-1"


def test_a_walk_swept_by_its_own_recording_is_no_ticket_any_more(call):
    _, walk = recorded(call, artifacts=rb.InMemoryArtifacts(max_count=1))
    assert "ref" not in walk
    assert "kind" not in walk
    assert "given up again" in walk["note"]
    assert call.box.artifacts.get_sync(walk["recording_ref"]) is not None


def test_a_store_that_answers_nonsense_costs_the_tickets_only(call):
    class Odd(rb.InMemoryArtifacts):
        async def put(self, scope, given):
            return None

    envelope, walk = recorded(call, artifacts=Odd())
    assert "ref" not in walk
    assert "recording_ref" not in walk
    assert envelope["result"]["rows_total"] == 3


def test_the_note_says_what_json_could_not_carry_and_says_nothing_when_it_carried_all(kit):
    def note(fn):
        answer = kit.ask(fn, walk={"recording": True})
        return answer["result"]["walk"]["recording_note"]

    odd = note(lambda s: s.update({"handle": object(), "rows": {1: "a", "1": "b"}}))
    assert "values of type object: type names stand for them" in odd
    assert "keys JSON writes alike" in odd
    assert note(lambda s: s.set("done", True)) == tickets.RECORDING_NOTE
