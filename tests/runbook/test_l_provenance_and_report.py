"""Cases 120 to 127: where an answer comes from, and what a procedure may add to it."""

from __future__ import annotations

import json
from datetime import date

import pytest

import runbook_nb as rb

HOSTILE = ["af_provenance", "rule_version", "af_coverage", "walk", "report_note", "verdicts"]
HOSTILE += ["rows_total", "table"]


def hostile(scope):
    scope["verdicts"] = [{"subject": "a", "verdict": "ok"}]
    scope["report"] = {**dict.fromkeys(HOSTILE, "mine"), "stale_after_days": 7}


def provenance(kit, *answers):
    async def body(scope, tools):
        for n, _ in enumerate(answers):
            await tools.call(f"t{n}", {})

    inner = [
        rb.define_tool(name=f"t{n}", description="d", execute=lambda args, answer=answer: answer)
        for n, answer in enumerate(answers)
    ]
    box = rb.Toolbox([*inner, kit.calling(body)])
    return box.call_sync("asker", call_id="tc-1")["result"]["af_provenance"]


OURS = {"tool": "asker", "toolCallId": "tc-1"}


def test_case_120_the_carried_stamp_with_this_call_on_top(call):
    result = call()["result"]
    assert next(iter(result)) == "af_provenance"
    assert result["af_provenance"] == {
        "source": "LOCAL SEED",
        "tool": "backup_triage",
        "toolCallId": "tc-1",
    }


def test_case_121_a_stamp_may_lie_at_the_top_and_must_be_a_mapping(kit):
    assert provenance(kit, {"af_provenance": {"source": "s"}}) == {"source": "s", **OURS}
    assert provenance(kit, {"af_provenance": "s"}) == OURS
    both = {"af_provenance": {"source": "top"}, "result": {"af_provenance": {"source": "payload"}}}
    assert provenance(kit, both)["source"] == "payload"


def test_case_122_the_first_stamp_there_is_counts(kit):
    first, second = {"af_provenance": {"a": 1}}, {"af_provenance": {"b": 2}}
    assert provenance(kit, {"x": 1}, first, second) == {"a": 1, **OURS}
    carried = {"af_provenance": {"tool": "inner", "source": "s"}}
    assert list(provenance(kit, carried)) == ["tool", "source", "toolCallId"]
    assert carried == {"af_provenance": {"tool": "inner", "source": "s"}}


def test_case_122_a_carried_stamp_is_made_fit_for_json(kit):
    found = provenance(kit, {"af_provenance": {"at": date(2026, 1, 2), 3: {4}}})
    assert json.loads(json.dumps(found, allow_nan=False)) == {"at": "2026-01-02", "3": [4], **OURS}


def test_case_123_the_spine_cannot_be_overwritten(kit):
    envelope = kit.ask(
        hostile, result_kind="verdict/x", rules={"name": "r", "version": "v9"}, artifacts=None
    )
    result = envelope["result"]
    assert result["af_provenance"]["tool"] == "restart_probe"
    assert result["rule_version"] == "v9"
    assert "af_coverage" not in result
    assert result["walk"]["shown"] > 0
    assert result["rows_total"] == 1
    assert result["verdicts"] == [{"subject": "a", "verdict": "ok"}]
    assert result["table"].startswith("|")
    places = [result["report_note"].index(f"`{name}`") for name in HOSTILE]
    assert places == sorted(places)
    assert "8 reserved names" in result["report_note"]
    assert result["stale_after_days"] == 7


def test_case_123_a_key_that_is_no_text_cannot_slip_past(kit):
    result = kit.ask(lambda s: s.set("report", {1: "a", None: "b", False: "c"}))["result"]
    assert {key: result[key] for key in ("1", "null", "false")} == {
        "1": "a",
        "null": "b",
        "false": "c",
    }


def test_case_124_a_clean_report_needs_no_note(call):
    assert "report_note" not in call()["result"]


@pytest.mark.parametrize("value", [["a"], "a", 7, None])
def test_case_125_a_report_that_is_no_mapping_is_ignored(kit, value):
    result = kit.ask(lambda s: s.set("report", value))["result"]
    assert list(result) == ["af_provenance", "rule_version", "walk"]


def test_case_126_a_report_cannot_put_a_table_into_a_panel(kit):
    def stage(scope):
        scope["report"] = {"table": "| x | y |"}

    result = kit.ask(stage, result_kind="verdict/x", presentation="panel")["result"]
    assert "table" not in result
    assert "`table`" in result["report_note"]


def test_case_126_the_whole_projection_is_reserved_also_where_a_run_had_no_meanings(kit):
    def stage(scope):
        scope["report"] = {"verdict_meanings": {"ok": "trust me"}}

    result = kit.ask(stage, result_kind="verdict/x")["result"]
    assert "verdict_meanings" not in result
    assert "`verdict_meanings`" in result["report_note"]


def test_case_126_without_a_projection_its_names_are_ordinary(kit):
    report = {"verdicts": [1], "table": "t", "rows_total": 3, "verdict_meanings": {}}
    result = kit.ask(lambda s: s.set("report", report))["result"]
    assert {key: result[key] for key in report} == report
    assert "report_note" not in result


def test_case_127_where_the_refusal_stands(kit):
    keys = list(kit.ask(hostile, result_kind="verdict/x")["result"])
    assert keys == [
        "af_provenance",
        "rule_version",
        "stale_after_days",
        "verdicts",
        "rows_shown",
        "rows_total",
        "rows_complete",
        "table",
        "render_note",
        "report_note",
        "walk",
    ]


@pytest.mark.parametrize("redact", [None, {"keys": ["token"]}])
def test_a_carried_stamp_that_contains_itself_costs_that_part_and_not_the_answer(kit, redact):
    loop = []
    loop.append(loop)

    async def body(scope, tools):
        await tools.call("inv", {})

    answer = {"af_provenance": {"loop": loop, "source": "s"}}
    inv = rb.define_tool(name="inv", description="d", execute=lambda args: answer)
    box = rb.Toolbox([inv, kit.calling(body, redact=redact)])
    found = box.call_sync("asker", call_id="tc-1")["result"]["af_provenance"]
    assert found == (OURS if redact else {"loop": "<list>", "source": "s", **OURS})


def test_a_stage_that_changes_an_inner_answer_forges_neither_ledger_nor_provenance(kit):
    async def forge(scope, tools):
        answer = await tools.call("backup_inventory", {})
        answer["af_coverage"]["checked"].append({"what": "FORGED"})
        answer["result"]["af_provenance"]["source"] = "FORGED"

    inner = rb.coverage({"af_provenance": {"source": "seed"}}, checked=["the inventory"])
    box = rb.Toolbox([kit.inventory(answer=inner), kit.calling(forge)])
    answer = box.call_sync("asker")
    assert answer["result"]["af_provenance"]["source"] == "seed"
    assert "FORGED" not in answer.to_json()
