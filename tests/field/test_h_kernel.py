"""Probe H4: running a defining cell again."""

from __future__ import annotations

import runbook_nb as rb


def test_probe_h4_the_last_definition_wins_and_nothing_is_doubled():
    inventory = rb.define_tool(
        name="inventory",
        description="d",
        execute=lambda args: rb.coverage({"rows": [{"host": "a", "days": 9}]}, checked=["inv"]),
    )
    box = rb.Toolbox([inventory])

    def cell(days):
        rules = rb.RuleSet("age", f"v{days}", [rb.Rule({"days": {"gt": days}}, "old")], "fresh")
        each = (
            rb.flow_chart("one", lambda s: s.update(s.args["item"]), id="load")
            .add_decider("Age", rules=rules, id="age")
            .branch("old", lambda s: s.set("verdict", "old"))
            .branch("fresh", lambda s: s.set("verdict", "fresh"))
            .end()
            .build()
        )

        def procedure(tools):
            async def load(scope):
                scope["rows"] = (await tools.call("inventory", {}))["result"]["rows"]

            def collect(scope):
                scope["verdicts"] = [
                    {"host": slot.item["host"], **slot.value} for slot in scope["out"]
                ]

            return (
                rb.flow_chart("ages", load, id="load")
                .add_parallel_for_each(
                    "Each",
                    id="each",
                    items=lambda s: s["rows"],
                    branch=each,
                    max_branches=9,
                    into="out",
                    subject="host",
                )
                .add_function("Collect", collect, id="z")
                .build()
            )

        box.add(
            rb.runbook_as_tool(
                name="ages",
                description="d",
                procedure=procedure,
                result_kind="verdict/age",
                rules=rules,
                verdicts={"decider": "Age"},
                composed_of=["inventory"],
            )
        )
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
