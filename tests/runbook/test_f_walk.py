"""Cases 74 to 78, and 72 to 73 through the bridge: the walk's ticket and its descriptor."""

from __future__ import annotations

import json

import pytest

import runbook_nb as rb

KEYS = ["ref", "kind", "rows", "steps_executed", "projection", "shown", "total", "complete"]
KEYS += ["walk_segment", "note"]


def wide(writes):
    """A procedure that writes many keys, then decides."""

    def many(scope):
        for n in range(writes):
            scope[f"k{n}"] = n

    rules = rb.RuleSet("r", "1", [rb.Rule({"k0": {"gt": 7}}, "big")], default="small")
    return lambda tools: (
        rb.flow_chart("wide", many, id="many")
        .add_decider("Size", rules=rules, id="size")
        .branch("big", lambda s: None)
        .branch("small", lambda s: None)
        .end()
        .build()
    )


def run_wide(cap, writes=10, **box):
    tool = rb.runbook_as_tool(
        name="wide", description="d", procedure=wide(writes), walk={"cap": cap}
    )
    toolbox = rb.Toolbox([tool], **box)
    return toolbox, toolbox.call_sync("wide", call_id="tc-1")


def test_case_72_beyond_the_cap_decisions_stay_and_writes_go(kit):
    box, envelope = run_wide(20, writes=40)
    walk = envelope["result"]["walk"]
    types = [row["type"] for row in kit.parcel(box, envelope)]
    assert "condition" in types
    assert "step" not in types
    assert "CONTROL-FLOW" in walk["note"]
    assert walk["projection"] == "control-flow"
    assert walk["total"] > walk["shown"]
    assert f"{walk['shown']} of {walk['total']}" in walk["note"]


@pytest.mark.parametrize("cap", [1, 5, 500])
def test_case_73_the_counters_are_true_for_every_cap(cap):
    walk = run_wide(cap)[1]["result"]["walk"]
    assert walk["shown"] <= walk["total"]
    assert walk["complete"] == (walk["shown"] == walk["total"])
    assert walk["rows"] == walk["shown"] <= cap


def test_case_73_when_control_flow_is_cut_decisions_are_kept_first_and_the_note_says_so(call, kit):
    envelope = call(walk={"cap": 3})
    rows = kit.parcel(call.box, envelope)
    assert [row["type"] for row in rows] == ["condition"] * 3
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert "decisions were kept first" in envelope["result"]["walk"]["note"]


def test_case_74_without_a_store_only_the_ticket_is_missing(call):
    envelope = call(artifacts=None)
    walk = envelope["result"]["walk"]
    assert [key for key in KEYS if key not in walk] == ["ref", "kind"]
    assert "no artifact store" in walk["note"]
    assert walk["steps_executed"] > 0
    assert envelope["result"]["rows_total"] == 3


def test_case_75_a_store_that_fails_costs_the_ticket_and_says_why(call, kit):
    envelope = call(artifacts=kit.Refusing(RuntimeError("disk full")))
    walk = envelope["result"]["walk"]
    assert "ref" not in walk
    assert "kind" not in walk
    assert "disk full" in walk["note"]
    assert "Only the ticket was lost" in walk["note"]
    assert envelope["result"]["rows_total"] == 3


def test_case_75_a_stores_error_is_told_without_its_attributes(call, kit):
    leaky = RuntimeError("refused")
    leaky.headers = {"authorization": "Bearer abcdef"}
    envelope = call(artifacts=kit.Refusing(leaky), walk={"recording": True})
    assert "Bearer" not in envelope.to_json()


def test_case_75_what_must_not_be_swallowed_passes(call, kit):
    with pytest.raises(KeyboardInterrupt):
        call(artifacts=kit.Refusing(KeyboardInterrupt()))


def test_case_76_the_ticket_redeems(call, kit):
    envelope = call()
    walk = envelope["result"]["walk"]
    record = call.box.artifacts.get_sync(walk["ref"])
    assert record.meta.kind == "recording/chart-walk"
    assert record.meta.label == "backup_triage walk"
    assert record.meta.origin["toolCallId"] == "tc-1"
    rows = json.loads(record.data)
    assert len(rows) == walk["rows"]
    assert walk["walk_segment"] == "full"
    assert rows == [row.to_dict() for row in envelope.walk]


def test_case_77_the_descriptors_keys_are_in_order(call):
    assert list(call()["result"]["walk"]) == KEYS


def test_case_78_a_decision_against_seven_names_seven(call):
    texts = [row.text for row in call().walk if row.type == "condition"]
    assert any("7" in text for text in texts)


def test_a_run_without_a_row_files_nothing_and_says_so(kit, monkeypatch):
    from runbook_nb.record.projection import project_walk
    from runbook_nb.record.walk import Walk

    monkeypatch.setattr(Walk, "project", lambda self, cap, **_: project_walk([], cap))
    for artifacts in (rb.InMemoryArtifacts(), None):
        walk = kit.ask(lambda s: None, artifacts=artifacts)["result"]["walk"]
        assert "ref" not in walk
        assert "no narrative to file" in walk["note"]
        assert "store" not in walk["note"]
