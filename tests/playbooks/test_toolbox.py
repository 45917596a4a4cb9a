"""A playbook held over a toolbox."""

from __future__ import annotations

import asyncio
import threading

import pytest

import runbook_nb as rb
from runbook_nb.errors import PlaybookError, ToolRefused
from runbook_nb.playbooks import (
    Playbook,
    PlaybookEnforcerHook,
    PlaybookMiddleware,
    PlaybookStep,
    current_plan,
    guard,
)
from runbook_nb.tools import Session, Toolbox, define_tool


def book(*steps):
    return Playbook(
        id="ir",
        name="Incident response",
        steps=[
            PlaybookStep(id=f"step-{n}", description="One.", expected_tools=list(tools))
            for n, tools in enumerate(steps)
        ],
    )


def tool(name, execute=lambda args: "done", **more):
    return define_tool(name=name, execute=execute, **more)


def box_of(held, *tools, **more):
    return Toolbox(tools, middleware=[held], **more)


def told(held):
    return [(one.tool, one.outcome) for one in held.hook.enforcer.calls]


def test_calls_are_judged_in_order_and_refused_ones_do_not_run():
    held, ran = PlaybookMiddleware(book(["search"], ["isolate"])), []
    box = box_of(
        held, tool("search"), tool("isolate", lambda args: ran.append(args["host"]) or "off")
    )
    with pytest.raises(ToolRefused) as refused:
        box.call_sync("isolate", {"host": "web-01"})
    assert refused.value.code == "unexpected_tool"
    assert refused.value.facts["tool"] == "isolate"
    assert refused.value.facts["step_id"] == "step-0"
    assert ran == []
    assert box.call_sync("search") == "done"
    assert box.call_sync("isolate", {"host": "web-01"}) == "off"
    assert told(held) == [("isolate", "refused"), ("search", "ok"), ("isolate", "ok")]
    assert held.hook.enforcer.calls[-1].arguments == {"host": "web-01"}


def test_the_call_id_is_that_of_the_box():
    held = PlaybookMiddleware(book(["search"]))
    box_of(held, tool("search")).call_sync("search", call_id="tc-1")
    assert held.hook.enforcer.calls[0].call_id == "tc-1"


def test_what_a_later_gate_refuses_is_an_error_of_the_call():
    held = PlaybookMiddleware(book(["search"]))
    box = box_of(held, tool("search", check_in="always"))
    with pytest.raises(ToolRefused) as refused:
        box.call_sync("search")
    assert refused.value.code == "consent_required"
    assert told(held) == [("search", "error")]
    assert not held.hook.enforcer.is_complete


def triage_of(*inner):
    """Give a runbook whose stages call other tools."""

    def procedure(tools):
        async def gather(scope):
            for name in inner:
                scope[name] = await tools.call(name, {"of": name})

        return rb.flow_chart("triage", gather, id="gather").build()

    return rb.runbook_as_tool(
        name="triage",
        description="Calls others.",
        procedure=procedure,
        result_kind="verdict/triage",
        composed_of=list(inner),
    )


def test_what_a_runbook_calls_is_judged_in_the_same_plan():
    held = PlaybookMiddleware(book(["triage", "inventory", "ages"]))
    box = box_of(held, triage_of("inventory", "ages"), tool("inventory"), tool("ages"))
    box.call_sync("triage", call_id="tc-1")
    calls = held.hook.enforcer.calls
    assert [(one.call_id, one.tool, one.parent) for one in calls] == [
        ("tc-1", "triage", None),
        ("tc-1#inner-1", "inventory", "tc-1"),
        ("tc-1#inner-2", "ages", "tc-1"),
    ]
    assert {one.outcome for one in calls} == {"ok"}
    assert held.hook.enforcer.is_complete


def test_an_id_that_comes_again_is_another_call():
    held = PlaybookMiddleware(book(["triage", "ages", "last"]))
    box = box_of(held, triage_of("ages"), tool("ages"))
    for _ in range(2):
        box.call_sync("triage", call_id="tc-1")
    calls = held.hook.enforcer.calls
    outer = [one.call_id for one in calls if one.tool == "triage"]
    assert len({one.call_id for one in calls}) == 4
    assert [one.parent for one in calls if one.tool == "ages"] == outer


def test_a_call_the_plan_has_no_place_for_does_not_pass_inside_another():
    held, ran = PlaybookMiddleware(book(["triage"], ["pay"])), []
    box = box_of(held, triage_of("pay"), tool("pay", ran.append))
    with pytest.raises(ToolRefused) as refused:
        box.call_sync("triage")
    assert refused.value.code == "unexpected_tool"
    assert ran == []
    assert dict(told(held)) == {"triage": "error", "pay": "refused"}


def test_calls_made_side_by_side_name_the_one_call_they_are_made_in():
    def procedure(tools):
        async def gather(scope):
            found = await asyncio.gather(*(tools.call("ages", {"n": n}) for n in range(4)))
            scope["found"] = found

        return rb.flow_chart("triage", gather, id="gather").build()

    triage = rb.runbook_as_tool(
        name="triage",
        description="Calls another often.",
        procedure=procedure,
        result_kind="verdict/triage",
        composed_of=["ages"],
    )
    held = PlaybookMiddleware(book(["triage", "ages"]))
    box_of(held, triage, tool("ages")).call_sync("triage", call_id="tc-1")
    inner = [one for one in held.hook.enforcer.calls if one.tool == "ages"]
    assert [one.parent for one in inner] == ["tc-1"] * 4


def test_a_guarded_function_in_a_body_belongs_to_the_plan():
    hook = PlaybookEnforcerHook(book(["search", "fetch"]))

    @guard(hook)
    def fetch():
        return 1

    box = box_of(PlaybookMiddleware(hook), tool("search", lambda args: fetch()))
    with hook.run("r1") as enforcer:
        assert box.call_sync("search") == 1
    assert [(one.tool, bool(one.parent)) for one in enforcer.calls] == [
        ("search", False),
        ("fetch", True),
    ]


def test_runs_and_conversations_have_plans_of_their_own():
    hook = PlaybookEnforcerHook(book(["search"]), scope="thread")
    for name in ("a", "b"):
        session = Session(name, tenant="acme")
        box_of(PlaybookMiddleware(hook), tool("search"), session=session).call_sync("search")
    assert hook.keys == ("thread:a", "thread:b")
    runs = PlaybookEnforcerHook(book(["search"]))
    box = box_of(PlaybookMiddleware(runs), tool("search"))
    for run in ("r1", "r2"):
        with runs.run(run):
            box.call_sync("search")
    assert runs.keys == ("r1", "r2")


def test_two_that_refuse_are_refused_around_one_call():
    plan = book(["search"])
    box = Toolbox([tool("search")], middleware=[PlaybookMiddleware(plan), PlaybookMiddleware(plan)])
    with pytest.raises(PlaybookError) as refused:
        box.call_sync("search")
    assert refused.value.code == "two_enforcers"


def test_middleware_within_may_change_what_is_called_with():
    from dataclasses import replace

    async def widen(call, following):
        return await following(replace(call, args={**call.args, "wide": True}))

    def search(args):
        return dict(args)

    held = PlaybookMiddleware(book(["search"]))
    box = Toolbox([tool("search", search)], middleware=[held, widen])
    assert box.call_sync("search", {"q": 1}) == {"q": 1, "wide": True}


def test_a_thousand_calls_at_once_keep_to_their_runs():
    hook = PlaybookEnforcerHook(book(["search"], ["isolate"]))
    box = box_of(PlaybookMiddleware(hook), tool("search"), tool("isolate"))

    async def run(number):
        with hook.run(f"r{number}"):
            await box.call("search", {"n": number})
            await box.call("isolate", {"n": number})

    async def all_of_them():
        await asyncio.gather(*(run(number) for number in range(1_000)))

    asyncio.run(all_of_them())
    assert len(hook.keys) == 1_000
    for number in range(1_000):
        calls = hook.enforcer_for(f"r{number}").calls
        assert [(one.tool, one.arguments) for one in calls] == [
            ("search", {"n": number}),
            ("isolate", {"n": number}),
        ]


def test_an_inner_call_from_a_thread_of_its_own_reaches_the_plan():
    """A thread that was started without a copy of the context knows only the call's id."""
    hook = PlaybookEnforcerHook(book(["outer", "ages"]))
    seen = []

    def outer(args, ctx):
        def call():
            seen.append(current_plan())
            asyncio.run(ctx.tools.call("ages", {}))

        thread = threading.Thread(target=call)
        thread.start()
        thread.join()

    held = PlaybookMiddleware(hook)
    box = box_of(held, tool("outer", outer), tool("ages"))
    with hook.run("r1") as enforcer:
        box.call_sync("outer", call_id="tc-1")
    assert seen == [None]
    assert [(one.tool, one.parent) for one in enforcer.calls] == [("outer", None), ("ages", "tc-1")]
    assert hook.keys == ("r1",)
    assert repr(held).startswith("<PlaybookMiddleware <PlaybookEnforcerHook")
