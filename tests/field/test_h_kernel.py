"""Probes H3 and H4: an error behind a button, and running a defining cell again."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "runbook"))

from host_runbooks import inventory_of, judging, runbook_over

import runbook_nb as rb


def test_probe_h3_an_error_behind_a_button_stands_beside_it_with_the_stage_named():
    """The button sends a message; what handles it is a method, so that a test sees the error."""

    def load(scope):
        raise ConnectionError("the inventory does not answer")

    def procedure(tools):
        return rb.flow_chart("ages", load, id="load", stage_name="Load the inventory").build()

    ages = rb.runbook_as_tool(
        name="ages", description="d", procedure=procedure, result_kind="verdict/age"
    )
    form = rb.RunForm(rb.Toolbox([ages]), "ages")
    told = form.answer({"ask": "run", "id": "1", "about": {}})
    assert told["answer"]["begun"]
    form.join()
    assert form.status == "failed"
    assert isinstance(form.error, ConnectionError)
    # What the script draws beside the button is in a trait, and in the static view.
    assert form.outcome["what"] == "ConnectionError: the inventory does not answer"
    assert form.outcome["stage"] == "Load the inventory"
    shown = str(form._repr_mimebundle_()[0])
    assert "the inventory does not answer" in shown
    assert "Load the inventory" in shown


def test_probe_h4_the_last_definition_wins_and_nothing_is_doubled():
    box = rb.Toolbox([inventory_of([{"host": "a", "days": 9}])])

    def cell(days):
        rules = rb.RuleSet("age", f"v{days}", [rb.Rule({"days": {"gt": days}}, "old")], "fresh")
        each = judging(rules, decider="Age", branches=("old", "fresh"))
        box.add(runbook_over(each, rules, name="ages", chart="ages", decider="Age"))
        return box.call_sync("ages")

    envelopes = [cell(days) for days in (7, 7, 30)]
    assert [e.verdicts[0]["verdict"] for e in envelopes] == ["old", "old", "fresh"]
    assert [e["result"]["rule_version"] for e in envelopes] == ["v7", "v7", "v30"]
    assert {e["result"]["walk"]["steps_executed"] for e in envelopes} == {7}
    assert [len(e.dossier.rule_sets) for e in envelopes] == [1, 1, 1]
    assert sorted(tool.name for tool in box) == ["ages", "inventory"]
    assert "not_checked" not in envelopes[2]["af_coverage"]


def test_probe_h4_triage_in_a_cell_run_again():
    box = rb.Toolbox([])
    for limit in (7, 7, 30):
        rules = rb.RuleSet("age", "1", [rb.Rule({"days": {"gt": limit}}, "old")], "fresh")
        rows = [{"host": "a", "days": 9}]
        envelope = rb.triage(rows, rules, subject="host", source="inv", toolbox=box)
    assert envelope.verdicts[0]["verdict"] == "fresh"
    assert len(box) == 2
