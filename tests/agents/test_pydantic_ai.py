"""A playbook held over agents of pydantic-ai, with models that follow a script."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys

import pytest

try:
    import pydantic_ai
except ImportError:
    if os.environ.get("CI"):
        raise
    pytest.skip(
        "pydantic-ai is not installed: pip install 'pydantic-ai-slim>=2.68'",
        allow_module_level=True,
    )

from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability, Hooks
from pydantic_ai.exceptions import ApprovalRequired, ModelRetry, SkipToolExecution
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults

from runbook_nb.agents.pydantic_ai import PlaybookCapability
from runbook_nb.errors import PlaybookError
from runbook_nb.playbooks import (
    Playbook,
    PlaybookEnforcer,
    PlaybookEnforcerHook,
    PlaybookStep,
    current_plan,
    guard,
)

STEPS = [
    PlaybookStep(id="look", description="Look.", expected_tools=["search"], hints=["Widen it"]),
    PlaybookStep(id="act", description="Act.", expected_tools=["isolate"]),
]
BOOK = Playbook(id="ir", name="Incident response", steps=STEPS)


def scripted(*turns, answer="done"):
    """Give a model that makes the calls of each turn, then answers."""

    def reply(messages, info):
        said = sum(isinstance(message, ModelResponse) for message in messages)
        if said < len(turns):
            calls = [
                ToolCallPart(name, args, tool_call_id=f"c{said}.{n}")
                for n, (name, args) in enumerate(turns[said])
            ]
            return ModelResponse(parts=calls)
        return ModelResponse(parts=[TextPart(answer)])

    return FunctionModel(reply)


def agent_of(model, capability, *more, ran=None, **options):
    ran = [] if ran is None else ran
    agent = Agent(model, capabilities=[capability, *more], **options)

    @agent.tool_plain
    async def search(q: str = "x") -> str:
        ran.append(("search", q))
        if q == "bad":
            raise ValueError("the index is down")
        if q == "again":
            raise ModelRetry("another query, please")
        await asyncio.sleep(0)
        return f"found {q}"

    @agent.tool_plain
    def isolate(host: str = "web-01") -> str:
        ran.append(("isolate", host))
        return "off"

    return agent


def run(agent, prompt="go", **more):
    """Run an agent in a loop of its own: the framework's sync door leaves one open."""
    return asyncio.run(agent.run(prompt, **more))


def told(capability):
    return [(one.tool, one.outcome) for one in capability.hook.enforcer.calls]


def returns(result):
    return [
        (part.tool_name, part.outcome, part.content)
        for message in result.all_messages()
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]


def test_a_run_in_order_completes_its_plan():
    capability, ran = PlaybookCapability(BOOK), []
    agent = agent_of(scripted([("search", {})], [("isolate", {})]), capability, ran=ran)
    result = run(agent)
    assert ran == [("search", "x"), ("isolate", "web-01")]
    assert told(capability) == [("search", "ok"), ("isolate", "ok")]
    enforcer = capability.hook.enforcer
    assert enforcer.is_complete
    assert capability.hook.keys == (result.run_id,)
    assert enforcer.events[-1].kind == "finished"
    assert [one.call_id for one in enforcer.calls] == ["c0.0", "c1.0"]


def test_a_refused_call_is_not_run_and_fails_with_the_text():
    capability, ran = PlaybookCapability(BOOK), []
    turns = [("isolate", {})], [("search", {})], [("isolate", {})]
    result = run(agent_of(scripted(*turns), capability, ran=ran))
    assert ran == [("search", "x"), ("isolate", "web-01")]
    name, outcome, content = returns(result)[0]
    assert (name, outcome) == ("isolate", "failed")
    assert content.startswith("PlaybookEnforcer blocked: ")
    assert "Widen it" in content
    assert told(capability)[0] == ("isolate", "refused")


def test_refusals_take_nothing_from_the_retries_of_a_tool():
    capability = PlaybookCapability(BOOK)
    turns = [[("isolate", {})]] * 5
    run(agent_of(scripted(*turns), capability))
    assert told(capability) == [("isolate", "refused")] * 5


def test_the_right_calls_in_one_reply_pass_in_order():
    capability, ran = PlaybookCapability(BOOK), []
    run(agent_of(scripted([("search", {}), ("isolate", {})]), capability, ran=ran))
    assert ran == [("search", "x"), ("isolate", "web-01")]
    assert capability.hook.enforcer.is_complete


def test_under_compat_they_are_judged_side_by_side():
    hook = PlaybookEnforcerHook(BOOK, policy="compat")
    capability, ran = PlaybookCapability(hook), []
    run(agent_of(scripted([("search", {}), ("isolate", {})]), capability, ran=ran))
    assert ran == [("search", "x")]
    assert ("isolate", "refused") in told(capability)


def test_a_failing_tool_closes_no_step():
    capability = PlaybookCapability(BOOK)
    agent = agent_of(scripted([("search", {"q": "bad"})]), capability)
    with pytest.raises(ValueError, match="down"):
        run(agent)
    assert told(capability) == [("search", "error")]
    assert capability.hook.enforcer.events[-1].kind == "finished"


def test_a_call_that_asks_to_be_made_again_did_not_succeed():
    capability = PlaybookCapability(BOOK)
    turns = [("search", {"q": "again"})], [("search", {"q": "y"})], [("isolate", {})]
    run(agent_of(scripted(*turns), capability))
    assert told(capability) == [("search", "error"), ("search", "ok"), ("isolate", "ok")]


def test_a_call_answered_by_another_capability_is_cached():
    class Answers(AbstractCapability):
        async def before_tool_execute(self, ctx, *, call, tool_def, args):
            raise SkipToolExecution("from a cache")

    class AnswersToo(AbstractCapability):
        async def wrap_tool_execute(self, ctx, *, call, tool_def, args, handler):
            return "from a cache"

    for other in (Answers(), AnswersToo()):
        capability, ran = PlaybookCapability(BOOK), []
        run(agent_of(scripted([("search", {})]), capability, other, ran=ran))
        assert ran == []
        assert told(capability) == [("search", "cached")]
        assert capability.hook.enforcer.plan.completed_steps == ["look"]


def test_evidence_is_read_from_what_the_tool_ran_with():
    step = PlaybookStep(
        id="look",
        description="Look.",
        expected_tools=["search"],
        required_probes=[{"name": "auth", "match": "auth"}],
    )
    hooks = Hooks()

    @hooks.on.before_tool_execute
    async def widen(ctx, *, call, tool_def, args):
        return {"q": "auth"}

    capability = PlaybookCapability(Playbook(id="ir", name="R", steps=[step]))
    run(agent_of(scripted([("search", {"q": "web"})]), capability, hooks))
    record = capability.hook.enforcer.plan.step_executions["look"]
    assert record.matched_probes == ["auth"]


def test_a_call_that_waits_for_approval_is_cancelled_and_judged_again():
    hook = PlaybookEnforcerHook(BOOK, scope="thread")
    agent = Agent(
        scripted([("search", {})]),
        capabilities=[PlaybookCapability(hook)],
        output_type=[str, DeferredToolRequests],
    )

    @agent.tool
    def search(ctx, q: str = "x") -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired
        return "found"

    first = run(agent)
    assert isinstance(first.output, DeferredToolRequests)
    (call,) = first.output.approvals
    run(
        agent,
        None,
        message_history=first.all_messages(),
        deferred_tool_results=DeferredToolResults(approvals={call.tool_call_id: True}),
    )
    assert [(one.tool, one.outcome) for one in hook.enforcer.calls] == [
        ("search", "cancelled"),
        ("search", "ok"),
    ]
    assert hook.enforcer.plan.completed_steps == ["look"]


def test_each_run_has_a_plan_of_its_own():
    capability = PlaybookCapability(BOOK)
    agent = agent_of(scripted([("search", {})], [("isolate", {})]), capability)

    async def many():
        return await asyncio.gather(*(agent.run("go") for _ in range(20)))

    results = asyncio.run(many())
    assert sorted(capability.hook.keys) == sorted(result.run_id for result in results)
    for result in results:
        enforcer = capability.hook.enforcer_for(result.run_id)
        assert enforcer.is_complete
        assert len(enforcer.calls) == 2


def test_a_selector_sees_the_run():
    asked = []

    def select(run):
        asked.append(run)
        return BOOK if run.metadata.get("kind") == "ir" else None

    capability = PlaybookCapability(PlaybookEnforcerHook(select=select))
    agent = agent_of(scripted([("isolate", {})]), capability, name="helper")
    assert returns(run(agent, metadata={"kind": "ir"}))[0][1] == "failed"
    assert returns(run(agent, metadata={"kind": "chat"}))[0][1] == "success"
    assert [run.agent_name for run in asked] == ["helper", "helper"]
    assert all(run.run_id and run.thread_id for run in asked)


def test_guarded_functions_in_a_tool_belong_to_its_call():
    steps = [PlaybookStep(id="look", description="L.", expected_tools=["search", "fetch"])]
    hook = PlaybookEnforcerHook(Playbook(id="ir", name="R", steps=steps))

    @guard(hook)
    def fetch():
        return current_plan()

    agent = Agent(scripted([("search", {})]), capabilities=[PlaybookCapability(hook)])

    @agent.tool_plain
    def search() -> str:  # a sync tool: the framework runs it in a thread
        assert fetch() is hook.enforcer
        return "found"

    run(agent)
    told = {one.tool: (one.call_id, one.parent, one.outcome) for one in hook.enforcer.calls}
    assert told["fetch"][1:] == (told["search"][0], "ok")


def test_an_answer_too_early_is_sent_back_as_often_as_asked():
    def reply(messages, info):
        said = sum(isinstance(message, ModelResponse) for message in messages)
        if said == 1:
            return ModelResponse(parts=[ToolCallPart("search", {})])
        return ModelResponse(parts=[TextPart(f"answer {said}")])

    capability = PlaybookCapability(BOOK, nudges=2)
    agent = agent_of(FunctionModel(reply), capability, retries=3)
    result = run(agent)
    assert result.output == "answer 3"
    texts = json.dumps([repr(message) for message in result.all_messages()])
    assert "'look' and 'act'" in texts or "look and act" in texts
    assert capability.hook.enforcer.plan.unresolved_required_steps() == ["act"]


def test_no_answer_is_sent_back_when_all_is_done_or_nothing_was_asked():
    for nudges, turns in ((3, ([("search", {})], [("isolate", {})])), (0, ())):
        capability = PlaybookCapability(BOOK, nudges=nudges)
        agent = agent_of(scripted(*turns), capability)
        assert run(agent).output == "done"


@pytest.mark.parametrize("inject", ["none", "step", "plan"])
def test_the_model_is_told_of_the_playbook_as_the_hook_says(inject):
    seen = []

    def reply(messages, info):
        seen.append(info.instructions or "")
        return ModelResponse(parts=[TextPart("done")])

    capability = PlaybookCapability(PlaybookEnforcerHook(BOOK, inject=inject))
    run(agent_of(FunctionModel(reply), capability))
    assert ("search" in seen[0]) == (inject != "none")
    assert ("act: Act." in seen[0]) == (inject == "plan")


def test_two_playbooks_on_one_agent_are_refused():
    def twice():
        both = [PlaybookCapability(BOOK) for _ in range(2)]
        run(Agent(TestModel(), capabilities=both))

    with pytest.raises(PlaybookError) as refused:
        twice()
    assert refused.value.code == "two_enforcers"
    second = PlaybookCapability(BOOK, id="second")
    agent = agent_of(scripted([("search", {})]), PlaybookCapability(BOOK), second)
    with pytest.raises(PlaybookError):
        run(agent)


def test_one_that_only_records_may_stand_beside():
    hook = PlaybookEnforcerHook(BOOK, block_violations=False)
    records = PlaybookCapability(hook, id="audit")
    agent = agent_of(scripted([("search", {})]), PlaybookCapability(BOOK), records)
    run(agent)
    assert told(records) == [("search", "ok")]


def test_a_model_that_calls_everything_is_held_too():
    """The framework's own test model calls each tool once, in the order they are registered."""
    capability = PlaybookCapability(PlaybookEnforcer.from_playbook(BOOK))
    run(agent_of(TestModel(), capability))
    assert capability.hook.enforcer.is_complete


def test_without_the_framework_the_import_says_what_to_install():
    program = (
        "import sys; sys.modules['pydantic_ai'] = None\n"
        "try:\n    import runbook_nb.agents.pydantic_ai\n"
        "except ImportError as error:\n    print(error)"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert "pip install" in told.stdout
    assert pydantic_ai.__name__ == "pydantic_ai"


def test_a_streamed_run_is_held_too():
    async def stream(messages, info):
        said = sum(isinstance(message, ModelResponse) for message in messages)
        names = (["isolate", "search"], ["isolate"], [])[said]
        for n, name in enumerate(names):
            yield {n: DeltaToolCall(name=name, json_args="{}", tool_call_id=f"c{said}.{n}")}
        if not names:
            yield "done"

    capability = PlaybookCapability(BOOK)
    agent = agent_of(FunctionModel(stream_function=stream), capability)

    async def go():
        async with agent.run_stream("go") as result:
            return await result.get_output()

    assert asyncio.run(go()) == "done"
    assert told(capability) == [("isolate", "refused"), ("search", "ok"), ("isolate", "ok")]
    assert capability.hook.enforcer.events[-1].kind == "finished"


def test_what_would_be_refused_can_be_hidden():
    seen = []

    def reply(messages, info):
        seen.append([one.name for one in info.function_tools])
        if len(seen) > 2:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart(seen[-1][0], {})])

    capability = PlaybookCapability(BOOK, hide=True)
    run(agent_of(FunctionModel(reply), capability))
    assert seen == [["search"], ["isolate"], []]
    assert capability.hook.enforcer.is_complete
