"""Probes C5 to C8: one count everywhere, and every way not to run told apart."""

from __future__ import annotations

import json

import pytest

import runbook_nb as rb
from runbook_nb._view import Table
from runbook_nb.coverage import Ledger

RULES = rb.RuleSet("r", "1", [rb.Rule({"days": {"gt": 7}}, "old")], "fresh")


@pytest.mark.parametrize("n", [0, 1, 50, 51])
def test_probe_c5_every_place_counts_the_same(triage, n):
    envelope = triage([{"host": f"h{i}", "days": i} for i in range(n)], RULES)
    result, wire = envelope["result"], json.loads(envelope.to_json())["result"]
    assert result["rows_total"] == wire["rows_total"] == len(envelope.verdicts) == n
    assert f"; {n} row(s) assessed" in envelope["af_coverage"]["sentence"]
    assert f"{n} row(s), one decider pass per row" in json.dumps(envelope["af_coverage"])
    card = envelope.view()
    assert sum(badge.count for badge in card.badges) == n
    tables = [part for part in card.sections[0].parts if isinstance(part, Table)]
    assert sum(table.total for table in tables) == n
    assert sum(len(table.rows) for table in tables) == min(n, 50)
    first = str(envelope).split("\n")[0]
    shown = {0: "0 subjects", 1: "1 row"}.get(n, f"{n} rows")
    assert shown in first
    assert len(result["verdicts"]) == result["rows_shown"] == min(n, 50)
    body, _, note = result["table"].partition("\n\n")
    assert max(body.count("\n") - 1, 0) == min(n, 50)
    assert note == ("50 of 51 rows shown; 1 not in this table." if n == 51 else "")
    [record] = envelope.run.fan_outs
    assert record.decided == n
    decided = sum(1 for row in envelope.walk if row.type == "condition")
    assert decided == n
    walk = result["walk"]
    assert walk["steps_executed"] == envelope.walk.steps_executed == 3 + 4 * n
    assert walk["total"] == len(envelope.walk)
    assert walk["shown"] == walk["rows"] == min(walk["total"], walk["shown"])


def chart(items, cap=9):
    def load(scope):
        if scope.args["item"] == "bad":
            raise KeyError("age")
        scope["days"] = 1

    each = (
        rb.flow_chart("one", load, id="load", stage_name="Load")
        .add_decider("Age", rules=RULES, id="age")
        .branch("old", lambda s: s.set("verdict", "old"))
        .branch("fresh", lambda s: s.set("verdict", "fresh"))
        .end()
        .build()
    )
    return (
        rb.flow_chart("c", lambda s: s.set("xs", items), id="a")
        .add_parallel_for_each(
            "Each", id="each", items=lambda s: s["xs"], branch=each, max_branches=cap, into="out"
        )
        .add_function("Collect", lambda s: s.set("n", len(s["out"])), id="z")
        .build()
    )


def test_probe_c6_ran_not_taken_not_reached_and_failed_are_told_apart():
    run = chart(["good", "bad", "late"], cap=2).run_sync()
    text = str(run.walk)
    assert "1 of 3 done, 1 failed, 1 not reached" in text
    [old] = [line for line in text.split("\n") if line.strip().startswith("old")]
    assert "not taken" in old
    states = {line.state for part in run.walk.view().sections for line in part.parts[0].lines}
    assert states == {"ran", "not_taken"}
    failed = chart(["bad"]).run_sync()
    lines = {line.key: line.state for line in failed.walk.view().sections[0].parts[0].lines}
    assert lines["each/load"] == "failed"
    assert lines["each/age"] == "not_reached"


def test_probe_c7_two_fan_outs_in_a_row_over_nothing_complete():
    each = rb.flow_chart("one", lambda s: 1, id="one").build()
    seen = []
    made = (
        rb.flow_chart("c", lambda s: s.set("xs", []), id="a")
        .add_parallel_for_each(
            "One", id="one-each", items=lambda s: s["xs"], branch=each, max_branches=9, into="ys"
        )
        .add_parallel_for_each(
            "Two", id="two-each", items=lambda s: s["ys"], branch=each, max_branches=9, into="zs"
        )
        .add_function("Collect", lambda s: seen.append(list(s["zs"])), id="z")
        .build()
    )
    tool = rb.runbook_as_tool(name="chain", description="d", procedure=lambda tools: made)
    envelope = rb.Toolbox([tool]).call_sync("chain")
    assert seen == [[]]
    assert envelope.run.status == "ok"
    whats = [item["what"] for item in envelope["af_coverage"]["not_checked"]]
    assert whats == [
        "nothing was assessed by 'One': it was given no subject",
        "nothing was assessed by 'Two': it was given no subject",
    ]


def test_probe_c8_the_control_flow_in_one_call_and_one_subjects_path_in_another(triage):
    rows = [{"host": f"h{i}", "days": i, "notes": "n" * 400} for i in range(60)]
    envelope = triage(rows, RULES)
    flow = str(envelope.walk)
    assert len(flow.split("\n")) < 20
    assert "60 of 60 done" in flow
    path = str(envelope.why("h9"))
    assert "days" in path
    assert "> 7" in path or ">  7" in path
    assert len(path.split("\n")) < 8
    for text in (flow, path, str(envelope.why("h9").walk())):
        assert "n" * 50 not in text
        assert "h10" not in text


def test_an_empty_ledger_is_counted_as_empty():
    assert Ledger().counts == ("checked 0", "not checked 0", "cannot cover 0")
