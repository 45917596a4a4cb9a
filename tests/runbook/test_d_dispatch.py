"""Cases 47 to 58: how a procedure's stages call other tools."""

from __future__ import annotations

import pytest

import runbook_nb as rb
from runbook_nb.runbook import Envelope


def tool(name="inv", execute=lambda args: {"a": 1}, **more):
    return rb.define_tool(name=name, description="d", execute=execute, **more)


async def ask_inv(scope, tools):
    scope["answer"] = await tools.call("inv", {})


def test_case_47_without_a_dispatch_an_inner_call_says_what_is_missing(kit):
    with pytest.raises(rb.ToolRefused, match=r"asker.*inv.*dispatch"):
        kit.calling(ask_inv).execute_sync({})


def test_case_48_has_answers_no_without_a_dispatch_and_records_nothing():
    recorded = rb.recording_dispatch(None, "r")
    assert recorded.tools.has("x") is False
    assert recorded.records == []


def test_case_49_an_answer_comes_back_as_it_was_returned(kit):
    answer, seen = {"a": 1}, []

    async def body(scope, tools):
        seen.append(await tools.call("inv", {}))

    rb.Toolbox([tool(execute=lambda args: answer), kit.calling(body)]).call_sync("asker")
    assert seen[0] is answer


def test_case_50_an_inner_error_leaves_the_call_unchanged(kit):
    error = KeyError("age")

    def fail(args):
        raise error

    box = rb.Toolbox([tool(execute=fail), kit.calling(ask_inv)])
    with pytest.raises(KeyError) as caught:
        box.call_sync("asker")
    assert caught.value is error
    assert box.last_run.status == "failed"


def test_case_51_an_absence_ends_the_run_and_is_the_answer(kit):
    absence, after = rb.absent("rows", checked=["the store"]), []

    async def body(scope, tools):
        await tools.call("inv", {})
        after.append(True)

    box = rb.Toolbox([tool(execute=lambda args: absence), kit.calling(body)])
    assert box.call_sync("asker") is absence
    assert after == []
    assert box.last_run.status == "absent"


def test_case_51_an_absence_inside_a_ledger_ends_the_run_too(kit):
    answer = rb.coverage(rb.absent("rows", checked=["the store"]), not_checked=["tapes"])
    box = rb.Toolbox([tool(execute=lambda args: answer), kit.calling(ask_inv)])
    assert box.call_sync("asker") is answer


def test_case_51_an_absence_caught_in_a_stage_is_still_the_answer(kit):
    absence = rb.absent("rows", checked=["the store"])

    async def body(scope, tools):
        try:
            await tools.call("inv", {})
        except Exception:
            scope["verdicts"] = [{"subject": "a", "verdict": "fine"}]

    runbook = kit.calling(body, result_kind="verdict/x", keep_record=True)
    box = rb.Toolbox([tool(execute=lambda args: absence), runbook])
    assert box.call_sync("asker", call_id="c1") is absence
    assert box.last_run.status == "absent"
    assert rb.inner_runs_of(runbook).get("c1")["outcome"] == "error"


def test_case_51_an_absence_in_a_best_effort_branch_is_still_the_answer(kit):
    absence = rb.absent("rows", checked=["the store"])

    def procedure(tools):
        async def look(scope):
            await tools.call("inv", {})

        each = rb.flow_chart("one", look, id="look").build()
        return (
            rb.flow_chart("c", lambda s: s.set("xs", [1, 2]), id="a")
            .add_parallel_for_each(
                "Each", id="each", items=lambda s: s["xs"], branch=each, max_branches=9, into="out"
            )
            .build()
        )

    runbook = rb.runbook_as_tool(name="asker", description="d", procedure=procedure)
    box = rb.Toolbox([tool(execute=lambda args: absence), runbook])
    assert box.call_sync("asker") is absence


def test_case_51_an_absence_caught_before_a_pause_is_still_the_answer(kit):
    absence = rb.absent("rows", checked=["the store"])

    async def body(scope, tools):
        try:
            await tools.call("inv", {})
        except Exception:
            rb.interrupt(scope, "shall I go on?")

    box = rb.Toolbox([tool(execute=lambda args: absence), kit.calling(body)])
    assert box.call_sync("asker") is absence


def test_case_52_an_absence_one_asked_to_survive_comes_back_raw(kit):
    absence, seen = rb.absent("rows", checked=["the store"]), []

    async def body(scope, tools):
        seen.append(await tools.call("inv", {}, allow_absent=True))

    box = rb.Toolbox([tool(execute=lambda args: absence), kit.calling(body)])
    envelope = box.call_sync("asker")
    assert isinstance(envelope, Envelope)
    assert seen == [absence]
    assert envelope["af_coverage"]["checked"][0] == {"what": "the store"}


def test_case_53_a_wrapped_signal_is_found(kit):
    absence = rb.absent("rows", checked=["the store"])

    async def body(scope, tools):
        try:
            await tools.call("inv", {})
        except Exception as error:
            try:
                raise ValueError("one") from error
            except ValueError as again:
                raise RuntimeError("two") from again

    box = rb.Toolbox([tool(execute=lambda args: absence), kit.calling(body)])
    assert box.call_sync("asker") is absence


def test_case_53_an_unrelated_error_after_an_absence_does_not_hide_it(kit):
    absence = rb.absent("rows", checked=["the store"])

    async def body(scope, tools):
        try:
            await tools.call("inv", {})
        except Exception:
            scope["rows"] = None
        scope["n"] = len(scope["rows"])

    box = rb.Toolbox([tool(execute=lambda args: absence), kit.calling(body)])
    assert box.call_sync("asker") is absence


def test_case_54_an_inner_tool_that_asks_a_person_is_refused(kit):
    entered = []
    inv = tool(execute=entered.append, check_in="always")
    box = rb.Toolbox([inv, kit.calling(ask_inv)], consent=lambda tool, args: True)
    with pytest.raises(rb.ToolRefused, match=r"'inv'.*cannot pause"):
        box.call_sync("asker")
    assert entered == []


def test_case_55_an_inner_tool_that_wants_artifacts_is_refused(kit):
    entered = []
    schema = {"type": "object", "properties": {"d": {"type": "string"}}}
    inv = tool(execute=entered.append, wants={"d": "k"}, input_schema=schema)
    with pytest.raises(rb.ToolRefused, match="'inv'"):
        rb.Toolbox([inv, kit.calling(ask_inv)]).call_sync("asker")
    assert entered == []


def test_case_56_an_inner_tool_gets_only_a_credential_that_was_issued(kit):
    got = []
    inv = tool(execute=lambda args, ctx: got.append(ctx.credential), needs={"credential": "vault"})
    runbook = kit.calling(ask_inv)
    waiting = rb.Toolbox([inv, runbook], credentials=lambda need: {"status": "consent-required"})
    with pytest.raises(rb.ToolRefused, match=r"inv.*vault.*consent-required"):
        waiting.call_sync("asker")
    assert got == []
    issued = {"status": "issued", "credential": "key"}
    rb.Toolbox([inv, runbook], credentials=lambda need: issued).call_sync("asker")
    assert got == ["key"]


def test_case_57_an_inner_call_has_an_id_of_its_own_and_neither_store_nor_tools(kit):
    seen = []

    async def body(scope, tools):
        await tools.call("inv", {})
        await tools.call("inv", {})

    inv = tool(execute=lambda args, ctx: seen.append((ctx.call_id, ctx.has_artifacts, ctx.tools)))
    rb.Toolbox([inv, kit.calling(body)]).call_sync("asker", call_id="tc-outer")
    assert seen == [("tc-outer#inner-1", False, None), ("tc-outer#inner-2", False, None)]


def test_case_58_an_unknown_inner_tool_is_named(kit):
    async def body(scope, tools):
        await tools.call("nope", {})

    with pytest.raises(rb.ToolRefused, match=r"'nope'.*provider"):
        rb.Toolbox([kit.calling(body)]).call_sync("asker")
