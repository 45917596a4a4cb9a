"""One hook over many runs: what it refuses, what it tells, and that runs keep apart."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb.errors import (
    PlaybookDefinitionError,
    PlaybookError,
    PlaybookLoadError,
    ToolRefused,
)
from runbook_nb.playbooks import (
    EnforcementPolicy,
    JsonlJournal,
    Playbook,
    PlaybookEnforcer,
    PlaybookEnforcerHook,
    PlaybookStep,
    PlaybookWarning,
    ToolEvent,
    current_plan,
    last_plan,
)
from runbook_nb.playbooks.hook import as_hook
from runbook_nb.playbooks.tickets import outcome_of

STEPS = [
    PlaybookStep(id="look", description="Look.", expected_tools=["search"], hints=["Widen it"]),
    PlaybookStep(id="enrich", description="Enrich.", expected_tools=["enrich"]),
    PlaybookStep(id="act", description="Act.", expected_tools=["isolate"]),
]
BOOK = Playbook(id="ir", name="Incident response", steps=STEPS)


def hook(**more):
    return PlaybookEnforcerHook(BOOK, **more)


def done(hook, tool, run="r1", **more):
    ticket = hook.admit(tool, run_id=run, **more)
    if ticket.allowed:
        ticket.settle()
    return ticket.allowed


# -- the constructor ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kwargs", "code"),
    [
        ({}, "playbook_or_select"),
        ({"playbook": BOOK, "select": lambda run: None}, "playbook_or_select"),
        ({"playbook": BOOK, "scope": "runs"}, "bad_scope"),
        ({"playbook": BOOK, "max_runs": 0}, "bad_number"),
        ({"playbook": BOOK, "max_runs": True}, "bad_number"),
        ({"playbook": BOOK, "max_runs": "9"}, "bad_number"),
        ({"playbook": BOOK, "priority": None}, "bad_number"),
        ({"playbook": BOOK, "inject": "steps"}, "bad_inject"),
        ({"playbook": BOOK, "lint": "loud"}, "bad_lint"),
        ({"select": "ir"}, "bad_playbook"),
        ({"playbook": BOOK, "policy": "safest"}, "unknown_profile"),
    ],
)
def test_what_is_wrong_with_a_hook_is_said_when_it_is_made(kwargs, code):
    with pytest.raises(PlaybookDefinitionError) as refused:
        PlaybookEnforcerHook(**kwargs)
    assert isinstance(refused.value, ValueError)
    assert refused.value.code == code
    assert refused.value.fix


def test_what_is_wrong_with_its_playbook_too():
    step = PlaybookStep(id="look", description="Look.", expected_tools=["x"], uses=["nobody"])
    with pytest.raises(PlaybookDefinitionError, match="nobody"):
        PlaybookEnforcerHook(Playbook(id="ir", name="Response", steps=[step]))


IMPOSSIBLE = Playbook(
    id="pay", name="Pay", steps=[PlaybookStep(id="a", description="A.", expected_tools=["pay_out"])]
)


def test_a_playbook_that_cannot_end_is_told_once():
    with pytest.warns(PlaybookWarning, match="payout"):
        PlaybookEnforcerHook(IMPOSSIBLE, tools=["payout"])
    with pytest.raises(PlaybookDefinitionError, match="payout") as refused:
        PlaybookEnforcerHook(IMPOSSIBLE, tools=["payout"], lint="raise")
    assert refused.value.code == "cannot_end"
    PlaybookEnforcerHook(IMPOSSIBLE, tools=["payout"], lint="off")
    PlaybookEnforcerHook(IMPOSSIBLE, tools=["payout"], policy="compat", lint="raise")
    PlaybookEnforcerHook(IMPOSSIBLE, tools=["pay_out"], lint="raise")


def test_one_that_was_chosen_closes_its_run_where_that_is_asked_for():
    held = PlaybookEnforcerHook(select=lambda run: IMPOSSIBLE, tools=["payout"], lint="raise")
    assert held.admit("pay_out", run_id="r1").refusal.code == "plan_failed"


def test_a_file_that_is_not_there_is_said_when_the_hook_is_made(tmp_path):
    with pytest.raises(PlaybookLoadError):
        PlaybookEnforcerHook(tmp_path / "none.yaml")


def test_a_mapping_is_taken_for_a_playbook():
    made = PlaybookEnforcerHook(BOOK.model_dump())
    assert made.enforcer.plan.playbook == BOOK


def test_it_shows_what_it_holds_under_which_policy():
    made = hook(policy={"floor": "record"})
    assert "ir · policy safe, 1 change · a plan for each run" in repr(made)
    assert (made.name, made.scope, made.priority) == ("PlaybookEnforcerHook", "run", 50)


# -- plans -------------------------------------------------------------------------------------


def test_runs_share_nothing():
    held = hook()
    assert [done(held, tool, run) for tool, run in [("search", "a"), ("enrich", "b")]] == [
        True,
        False,
    ]
    assert held.enforcer_for("a").plan.current_step.id == "enrich"
    assert held.enforcer_for("b").plan.current_step.id == "look"
    assert held.enforcer_for("a").violations == []
    assert held.enforcer is held.enforcer_for("b")
    assert held.keys == ("a", "b")


def test_before_any_call_there_is_a_fresh_plan():
    held = hook()
    assert held.enforcer.plan.current_step_index == 0
    assert held.keys == ("__no_run__",)


def test_where_nothing_is_enforced_there_is_none():
    held = PlaybookEnforcerHook(select=lambda run: None)
    with pytest.raises(LookupError):
        _ = held.enforcer
    assert done(held, "anything", "r1")
    with pytest.raises(LookupError, match="r1"):
        _ = held.enforcer
    assert held.finish() is None


def test_a_thread_carries_its_plan_over_runs():
    held = hook(scope="thread")
    assert done(held, "search", "r1", thread_id="t")
    assert done(held, "enrich", "r2", thread_id="t")
    assert not done(held, "enrich", "r3", thread_id="u")
    assert held.enforcer_for("thread:t").plan.current_step_index == 2


def test_a_selector_is_asked_once_for_a_run_and_sees_it():
    asked = []

    def select(run):
        asked.append((run.run_id, run.thread_id, dict(run.metadata), run.agent_name))
        return BOOK

    held = PlaybookEnforcerHook(select=select)
    for _ in range(2):
        held.admit(
            "search", run_id="r1", thread_id="t", metadata={"kind": "ir"}, agent_name="helper"
        )
    assert asked == [("r1", "t", {"kind": "ir"}, "helper")]


@pytest.mark.parametrize("answer", ["raises", "no playbook", "async"])
def test_a_selector_that_fails_closes_its_run_and_tells_the_model_nothing(answer):
    secret = "password=hunter2"
    asked = []

    async def later():
        return BOOK

    def select(run):
        asked.append(run.run_id)
        if answer == "raises":
            raise KeyError(secret)
        return later() if answer == "async" else 17

    held = PlaybookEnforcerHook(select=select)
    for _ in range(2):
        ticket = held.admit("search", run_id="r1")
        assert not ticket.allowed
        assert ticket.refusal.code == "selector_failed"
        assert ticket.refusal.text.startswith("PlaybookEnforcer blocked: ")
        assert secret not in ticket.refusal.text
    assert asked == ["r1"]
    assert held.enforcer_for("r1") is None
    with pytest.raises(ToolRefused) as refused, held.calling("search", run_id="r1"):
        pass
    assert refused.value.__cause__ is not None


def test_a_dropped_live_run_is_refused_by_name():
    held = hook(max_runs=1)
    assert done(held, "search", "a")
    assert done(held, "search", "b")
    ticket = held.admit("enrich", run_id="a")
    assert ticket.refusal.code == "plan_evicted"
    assert held.evicted == 1
    held.release("a")
    assert held.evicted == 0
    assert done(held, "search", "a")


def test_a_finished_run_makes_room():
    held = hook(max_runs=2)
    done(held, "search", "live")
    done(held, "search", "ended")
    report = held.finish("ended")
    assert report.verdict == "incomplete"
    assert list(report.unresolved) == ["enrich", "act"]
    done(held, "search", "new")
    assert held.keys == ("live", "new")
    assert held.evicted == 0


# -- journals ----------------------------------------------------------------------------------


def kept_in(folder):
    """Give the journal of each run."""
    return lambda key: JsonlJournal(folder / f"{key}.jsonl")


def test_a_run_outlives_its_hook(tmp_path):
    first = hook(journal=kept_in(tmp_path))
    assert done(first, "search", "r1")
    first.release("r1")  # as the end of its process would
    again = hook(journal=kept_in(tmp_path))
    assert done(again, "enrich", "r1")
    plan = again.enforcer_for("r1").plan
    assert plan.completed_steps == ["look", "enrich"]
    assert JsonlJournal(tmp_path / "r1.jsonl").verify().ok


def test_a_live_plan_that_had_to_go_comes_back_from_its_journal(tmp_path):
    held = hook(max_runs=1, journal=kept_in(tmp_path))
    assert done(held, "search", "a")
    assert done(held, "search", "b")
    assert held.keys == ("b",)
    assert done(held, "enrich", "a")
    assert held.evicted == 0
    assert held.enforcer_for("a").plan.completed_steps == ["look", "enrich"]


def test_a_call_that_ran_while_its_plan_had_to_go_is_kept(tmp_path):
    held = hook(max_runs=1, journal=kept_in(tmp_path))
    running = held.admit("search", run_id="a")
    assert done(held, "search", "b")
    assert running.settle("ok").closed
    for tool in ("enrich", "isolate"):  # however often it has to go again meanwhile
        assert done(held, tool, "a")
        done(held, "search", f"other than {tool}")
    del running
    held.admit("isolate", run_id="a")
    assert held.enforcer_for("a").plan.completed_steps == ["look", "enrich", "act"]
    assert JsonlJournal(tmp_path / "a.jsonl").verify().ok


def test_a_journal_of_another_plan_closes_the_run(tmp_path):
    first = hook(journal=kept_in(tmp_path))
    done(first, "search", "r1")
    first.release("r1")
    for other in (
        PlaybookEnforcerHook(BOOK.model_copy(update={"version": "2"}), journal=kept_in(tmp_path)),
        hook(policy={"floor": "record"}, journal=kept_in(tmp_path)),
    ):
        ticket = other.admit("search", run_id="r1")
        assert ticket.refusal.code == "plan_failed"
        assert "PlaybookError" in ticket.refusal.text


def test_the_end_of_a_run_lets_its_journal_go(tmp_path):
    held = hook(journal=kept_in(tmp_path))
    with held.run("r1"):
        assert done(held, "search", None)
    other = PlaybookEnforcer.resume(JsonlJournal(tmp_path / "r1.jsonl"))
    assert other.plan.completed_steps == ["look"]


# -- events ------------------------------------------------------------------------------------


def test_a_refusal_is_told_as_text_and_as_structure():
    held = hook()
    event = ToolEvent(tool_name="isolate", run_id="r1", call_id="c1")
    ticket = held.before(event)
    assert event.cancel == ticket.refusal.text
    assert event.cancel.startswith("PlaybookEnforcer blocked: ")
    assert "Widen it" in event.cancel
    assert event.refusal.to_dict() == {
        "outcome": "refused",
        "code": "unexpected_tool",
        "tool": "isolate",
        "call_id": "c1",
        "step_id": "look",
        "key": "r1",
        "hints": list(event.refusal.hints),
        "seq": event.refusal.seq,
        "text": event.cancel,
    }
    enforcer = held.enforcer_for("r1")
    told = next(one for one in enforcer.events if one.seq == event.refusal.seq)
    assert told.kind == "refused"
    assert told.call_id == "c1"
    assert held.after(event) is None
    assert enforcer.plan.total_tool_calls == 0


def test_a_tool_that_prints_the_prefix_is_no_refusal():
    held = hook()
    event = ToolEvent(tool_name="search", run_id="r1", call_id="c1")
    held.before(event)
    event.result = "PlaybookEnforcer blocked: not really"
    held.after(event)
    assert event.refusal is None
    assert [one.outcome for one in held.enforcer.calls] == ["ok"]


def test_before_and_after_may_be_told_of_by_different_objects():
    held = hook()
    held.before(SimpleNamespace(tool_name="search", run_id="r1", call_id="c1", cancel=None))
    held.after(SimpleNamespace(tool_name="search", run_id="r1", call_id="c1"))
    assert held.enforcer.plan.completed_steps == ["look"]


def test_events_without_ids_are_matched_by_their_tool_in_order():
    held = hook(policy={"cap_counts": "all"})
    events = [SimpleNamespace(tool_name="search", arguments={"n": n}) for n in range(2)]
    for event in events:
        held.before(event)
        assert event.call_id
    held.after(SimpleNamespace(tool_name="search", error="down"))
    held.after(SimpleNamespace(tool_name="search"))
    told = {one.call_id: one.outcome for one in held.enforcer.calls}
    assert told == {events[0].call_id: "error", events[1].call_id: "ok"}


def test_an_id_that_comes_again_is_another_call():
    held = hook()
    for error in ("down", None):
        event = ToolEvent(tool_name="search", run_id="r1", call_id="c1", error=error)
        held.before(event)
        assert event.call_id == "c1"
        held.after(event)
    assert [one.outcome for one in held.enforcer.calls] == ["error", "ok"]
    first, second = [one.call_id for one in held.enforcer.calls]
    assert first == "c1" != second
    with held.calling("enrich", call_id="c1", run_id="r1") as ticket:
        inner = held.admit("pay")
    known = {one.call_id: one.parent for one in held.enforcer.calls}
    assert known[inner.call_id] == ticket.call_id not in ("c1", second)


def test_an_error_does_not_close_a_step():
    held = hook()
    event = ToolEvent(tool_name="search", run_id="r1")
    held.before(event)
    event.error = ValueError("down")
    held.after(event)
    assert held.enforcer.plan.completed_steps == []


@pytest.mark.parametrize("outcome", ["cached", "retried"])
def test_what_came_from_a_cache_or_after_retries_closes_it(outcome):
    held = hook()
    event = ToolEvent(tool_name="search", run_id="r1", call_id="c1")
    held.before(event)
    event.outcome = outcome
    held.after(event)
    assert held.enforcer.plan.completed_steps == ["look"]
    assert [one.outcome for one in held.enforcer.calls] == [outcome]


def test_under_compat_a_cached_answer_is_not_recorded():
    held = hook(policy="compat")
    event = ToolEvent(tool_name="search", run_id="r1", outcome="cached")
    held.before(event)
    held.after(event)
    assert held.enforcer.plan.total_tool_calls == 0


def test_an_unknown_outcome_is_refused_with_the_near_one():
    held = hook()
    event = ToolEvent(tool_name="search", outcome="cahced")
    held.before(event)
    with pytest.raises(PlaybookError, match="cached") as refused:
        held.after(event)
    assert refused.value.code == "bad_outcome"


def test_after_alone_is_an_error_that_teaches():
    held = hook()
    done(held, "search", "r1")
    with pytest.raises(PlaybookError, match="before") as refused:
        held.after(ToolEvent(tool_name="enrich", run_id="r1", call_id="c9"))
    assert refused.value.code == "unknown_call"


def test_after_a_refused_call_told_by_another_object_is_nothing():
    held = hook()
    held.before(ToolEvent(tool_name="search", run_id="r1", call_id="c1"))
    held.after(ToolEvent(tool_name="search", run_id="r1", call_id="c1", error="down"))
    for _ in range(2):
        held.before(ToolEvent(tool_name="isolate", run_id="r1", call_id="c1"))
        assert held.after(ToolEvent(tool_name="isolate", run_id="r1", call_id="c1")) is None


def test_after_a_run_whose_plan_was_dropped_meanwhile_is_nothing():
    held = hook(max_runs=1)
    event = ToolEvent(tool_name="search", run_id="r1", call_id="c1")
    held.before(event)
    done(held, "search", "r2")
    assert held.after(event) is None


def test_the_arguments_it_really_ran_with_are_evidence():
    step = PlaybookStep(
        id="look",
        description="Look.",
        expected_tools=["search"],
        required_probes=[{"name": "auth", "match": "auth"}],
    )
    held = PlaybookEnforcerHook(Playbook(id="ir", name="R", steps=[step]))
    event = ToolEvent(tool_name="search", arguments={"index": "web"}, run_id="r1")
    held.before(event)
    event.arguments = {"index": "auth"}
    held.after(event)
    record = held.enforcer.plan.step_executions["look"]
    assert record.matched_probes == ["auth"]


# -- several calls in one reply ----------------------------------------------------------------


def reply_of(*tools, run="r1"):
    return [
        ToolEvent(tool_name=tool, run_id=run, call_id=f"c{n}", batch="b1")
        for n, tool in enumerate(tools)
    ]


def test_the_right_calls_of_one_reply_are_let_through_in_their_order():
    held, events = hook(), reply_of("search", "enrich", "pay")
    tickets = held.before_all(events)
    assert [ticket.allowed for ticket in tickets] == [True, True, False]
    assert [ticket.provisional for ticket in tickets] == [False, True, False]
    assert [event.refusal is None for event in events] == [True, True, False]
    for event in events:
        if held.again(event):
            held.after(event)
    told = [(one.tool, one.outcome, one.batch) for one in held.enforcer.calls]
    assert sorted(told) == [
        ("enrich", "ok", "b1"),
        ("pay", "refused", "b1"),
        ("search", "ok", "b1"),
    ]
    assert held.enforcer.plan.completed_steps == ["look", "enrich"]


def test_one_whose_ground_failed_is_refused_when_it_is_asked_again():
    held, (first, second) = hook(), reply_of("search", "enrich")
    held.before_all([first, second])
    first.error = "down"
    held.after(first)
    assert not held.again(second)
    assert second.cancel == second.refusal.text
    assert held.after(second) is None
    assert not held.again(second)


def test_its_body_is_not_entered_then_either():
    held, (first, second) = hook(), reply_of("search", "enrich")
    one, other = held.before_all([first, second])
    one.settle("error")
    with pytest.raises(ToolRefused), other.running():
        raise AssertionError("entered")


def test_under_compat_a_reply_is_judged_against_one_state():
    held, events = hook(policy="compat"), reply_of("search", "enrich")
    held.before_all(events)
    assert [event.cancel is None for event in events] == [True, False]


def test_a_reply_of_a_run_that_is_left_alone_or_closed():
    assert hook().before_all([]) == []
    free = PlaybookEnforcerHook(select=lambda run: None)
    assert [ticket.allowed for ticket in free.before_all(reply_of("a", "b"))] == [True, True]
    shut = PlaybookEnforcerHook(select=lambda run: 1 / 0)
    assert [ticket.allowed for ticket in shut.before_all(reply_of("a", "b"))] == [False, False]


# -- calls that are not made after all --------------------------------------------------------


def test_what_another_has_cancelled_is_not_judged():
    held = hook()
    event = ToolEvent(tool_name="search", run_id="r1", call_id="c1", cancel="not on a Sunday")
    ticket = held.before(event)
    assert (ticket.allowed, ticket.refusal.code) == (False, "cancelled")
    assert event.refusal is None
    assert held.after(event) is None
    assert held.enforcer.calls == ()
    assert [one.allowed for one in held.before_all([event])] == [False]


def test_under_compat_it_is_judged_all_the_same():
    held = hook(policy="compat")
    held.before(ToolEvent(tool_name="pay", run_id="r1", cancel="not on a Sunday"))
    assert [one.violation_type for one in held.enforcer.violations] == ["unexpected_tool"]


def test_what_another_cancels_later_is_a_cancelled_call_and_holds_no_place():
    step = PlaybookStep(id="look", description="L.", expected_tools=["search"], max_tool_calls=1)
    held = PlaybookEnforcerHook(Playbook(id="ir", name="R", steps=[step]))
    event = ToolEvent(tool_name="search", run_id="r1")
    held.before(event)
    event.cancel = "not on a Sunday"
    held.after(event)
    assert [one.outcome for one in held.enforcer.calls] == ["cancelled"]
    assert done(held, "search")
    assert held.enforcer.is_complete


def test_what_one_hook_refuses_another_that_let_it_through_takes_for_cancelled():
    blocks, records = hook(), hook(block_violations=False)
    event = ToolEvent(tool_name="pay", run_id="r1", call_id="c1")
    for held in (records, blocks):
        held.before(event)
    for held in (blocks, records):
        held.after(event)
    assert [one.outcome for one in blocks.enforcer.calls] == ["refused"]
    assert [one.outcome for one in records.enforcer.calls] == ["cancelled"]


def test_an_event_may_be_told_again_after_it_was_refused():
    held = hook()
    event = ToolEvent(tool_name="enrich", run_id="r1", call_id="c1")
    held.before(event)
    done(held, "search")
    held.before(event)
    assert event.cancel is None
    assert event.refusal is None
    held.after(event)
    assert held.enforcer.plan.completed_steps == ["look", "enrich"]


def test_what_is_no_event_is_refused_with_what_one_is():
    for event in ({"tool_name": "search"}, ToolEvent(tool_name=None)):
        with pytest.raises(PlaybookError, match="ToolEvent") as refused:
            hook().before(event)
        assert refused.value.code == "bad_event"


# -- two hooks ---------------------------------------------------------------------------------


def test_two_hooks_that_refuse_are_refused_on_one_call():
    event = ToolEvent(tool_name="search", run_id="r1")
    one, other = hook(), hook()
    one.before(event)
    with pytest.raises(PlaybookError) as refused:
        other.before(event)
    assert refused.value.code == "two_enforcers"


@pytest.mark.parametrize("second", [{"block_violations": False}, {"policy": "compat"}])
def test_one_that_only_records_may_stand_beside(second):
    event = ToolEvent(tool_name="isolate", run_id="r1")
    one, other = hook(), hook(**second)
    other.before(event)
    one.before(event)
    assert event.cancel is not None
    session = type("Session", (), {})()
    one.attach(session)
    other.attach(session)


def test_two_that_refuse_are_refused_on_one_session():
    session = type("Session", (), {})()
    one = hook()
    one.attach(session)
    one.attach(session)
    with pytest.raises(PlaybookError):
        hook().attach(session)
    with pytest.raises(PlaybookDefinitionError) as refused:
        one.attach("session")
    assert refused.value.code == "bad_session"


# -- runs and nested calls ---------------------------------------------------------------------


def test_calls_in_a_run_belong_to_it():
    held = hook()
    assert current_plan() is None
    with held.run("r7") as enforcer:
        assert current_plan() is enforcer is held.enforcer_for("r7")
        with held.calling("search", {"q": "x"}):
            assert current_plan() is enforcer
        assert held.keys == ("r7",)
    assert current_plan() is None
    assert enforcer.finish().verdict == "incomplete"
    assert last_plan() is enforcer


def test_a_run_is_drawn_a_name_and_concluded():
    held = hook()
    with held.run(), held.run():
        assert len(set(held.keys)) == 2
    assert [held.enforcer_for(key).events[-1].kind for key in held.keys] == ["finished"] * 2


def test_a_run_that_is_closed_gives_no_enforcer():
    held = PlaybookEnforcerHook(select=lambda run: 1 / 0)
    with held.run("r1") as enforcer:
        assert enforcer is None
        assert not held.admit("search").allowed


def test_a_nested_call_is_judged_in_the_same_plan_and_names_its_parent():
    """What a tool calls in its body cannot leave the plan, even under another run's name."""
    steps = [PlaybookStep(id="look", description="Look.", expected_tools=["code", "search"])]
    held = PlaybookEnforcerHook(Playbook(id="ir", name="R", steps=steps))
    with held.calling("code", {"text": "…"}, run_id="r1", call_id="outer"):
        with held.calling("search", {}, call_id="inner"):
            pass
        refused = held.admit("pay", {}, call_id="refused")
    assert held.keys == ("r1",)
    assert refused.refusal.code == "unexpected_tool"
    told = {one.call_id: (one.parent, one.outcome) for one in held.enforcer.calls}
    assert told == {
        "outer": (None, "ok"),
        "inner": ("outer", "ok"),
        "refused": ("outer", "refused"),
    }


def test_nested_calls_reach_the_plan_from_threads_and_tasks():
    steps = [PlaybookStep(id="look", description="Look.", expected_tools=["code", "search"])]
    held = PlaybookEnforcerHook(Playbook(id="ir", name="R", steps=steps))

    def search():
        with held.calling("search"):
            pass

    async def body():
        with held.calling("code", run_id="r1", call_id="outer"):
            await asyncio.to_thread(search)
            await asyncio.gather(asyncio.to_thread(search), asyncio.to_thread(search))

    asyncio.run(body())
    parents = [one.parent for one in held.enforcer_for("r1").calls if one.tool == "search"]
    assert parents == ["outer"] * 3


def test_a_call_that_was_admitted_is_settled_once():
    held = hook()
    ticket = held.admit("search")
    assert ticket.settle("ok").closed
    assert ticket.settle("error") is None
    assert [one.outcome for one in held.enforcer.calls] == ["ok"]
    assert held.admit("pay").settle() is None


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(ValueError(), "error"), (KeyboardInterrupt(), "cancelled"), (SystemExit(), "cancelled")],
)
def test_how_a_body_ended_is_what_came_of_the_call(error, outcome):
    held = hook()
    with pytest.raises(type(error)), held.calling("search"):
        raise error
    assert [one.outcome for one in held.enforcer.calls] == [outcome]
    assert outcome_of(error) == outcome


def test_a_hook_may_stand_over_one_plan():
    enforcer = PlaybookEnforcer.from_playbook(BOOK, policy=EnforcementPolicy("compat"))
    held = as_hook(enforcer)
    assert done(held, "search", "any run")
    assert held.enforcer is enforcer
    assert held.policy.profile == "compat"
    assert as_hook(held) is held
    with pytest.raises(PlaybookDefinitionError) as refused:
        as_hook("ir")
    assert refused.value.code == "bad_plan"


# -- many at once ------------------------------------------------------------------------------

RUNS = 1_000


def check_apart(held):
    assert len(held.keys) == RUNS
    for number in range(RUNS):
        enforcer = held.enforcer_for(f"r{number}")
        record = enforcer.plan.step_executions
        assert [one.tool_calls for one in record.values()] == [["search"], ["enrich"], ["isolate"]]
        assert len(enforcer.violations) == 1
        assert [one.arguments["n"] for one in enforcer.calls if one.arguments] == [number] * 4
        assert enforcer.is_complete


def test_a_thousand_runs_in_tasks_keep_apart():
    held = hook()

    async def run(number):
        with held.run(f"r{number}"):
            for tool in ("search", "isolate", "enrich", "isolate"):
                ticket = held.admit(tool, {"n": number})
                if ticket.allowed:
                    with ticket.running():
                        await asyncio.sleep(0)

    async def all_of_them():
        await asyncio.gather(*(run(number) for number in range(RUNS)))

    asyncio.run(all_of_them())
    check_apart(held)


def test_a_thousand_runs_in_threads_keep_apart():
    held, start = hook(), threading.Barrier(8)

    def runs(worker):
        start.wait(30)
        numbers = range(worker, RUNS, 8)
        for tool in ("search", "isolate", "enrich", "isolate"):
            for number in numbers:  # each worker has 125 runs open at once
                ticket = held.admit(tool, {"n": number}, run_id=f"r{number}")
                if ticket.allowed:
                    ticket.settle()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(runs, range(8)))
    check_apart(held)


moves = st.tuples(
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["search", "enrich", "isolate", "pay"]),
    st.sampled_from(["ok", "error", "cached", "retried", "cancelled"]),
)


@pytest.mark.parametrize("profile", ["safe", "compat"])
@given(moves=st.lists(moves, max_size=25))
def test_runs_side_by_side_come_to_what_each_comes_to_alone(profile, moves):
    def left(enforcer):
        plan = enforcer.plan.model_dump(exclude={"started_at"})
        for record in plan["step_executions"].values():
            del record["started_at"], record["completed_at"]
        told = [(one.tool, one.outcome, one.step_id, one.violation) for one in enforcer.calls]
        return plan, told, [one.violation_type for one in enforcer.violations]

    def play(held, chosen):
        for run, tool, outcome in chosen:
            event = ToolEvent(tool_name=tool, run_id=run, outcome=outcome)
            held.before(event)
            held.after(event)

    together = hook(policy=profile)
    play(together, moves)
    for run in together.keys:
        alone = hook(policy=profile)
        play(alone, [move for move in moves if move[0] == run])
        assert left(together.enforcer_for(run)) == left(alone.enforcer)


def test_threads_in_one_run_count_every_call():
    step = PlaybookStep(id="look", description="Look.", expected_tools=["search", "last"])
    held = PlaybookEnforcerHook(Playbook(id="ir", name="R", steps=[step]))

    def calls(worker):
        return [done(held, "search", "r1") for _ in range(100)]

    with ThreadPoolExecutor(8) as pool:
        assert all(all(found) for found in pool.map(calls, range(8)))
    plan = held.enforcer_for("r1").plan
    assert plan.total_tool_calls == 800
    assert plan.step_executions["look"].tool_call_count == 800
    seqs = [event.seq for event in held.enforcer_for("r1").events]
    assert seqs == list(range(1, len(seqs) + 1))


def test_a_hook_adds_little_to_what_its_enforcer_does(calls_of):
    enforcer, held = PlaybookEnforcer.from_playbook(BOOK), hook()
    done(held, "pay", "r1")
    alone = calls_of(lambda: enforcer.admit("pay", call_id="a"))
    through = calls_of(lambda: held.admit("pay", call_id="b", run_id="r1"))
    assert through - alone < 40


# -- what it shows -----------------------------------------------------------------------------


def test_it_shows_each_run_and_where_it_stands():
    def select(run):
        return {"free": None, "bad": 17}.get(run.run_id, BOOK)

    held = PlaybookEnforcerHook(select=select, max_runs=4)
    assert str(held).splitlines()[0].endswith("no run was heard of yet")
    for run in ("live", "free", "bad", "done"):
        done(held, "search", run)
    for tool in ("pay", "enrich", "isolate"):
        done(held, tool, "done")
    lines = [" ".join(line.split()) for line in str(held).splitlines()]
    assert lines == [
        "PlaybookEnforcerHook chosen for each run · policy safe · a plan for each run · 4 runs",
        "done complete steps done 3 of 3 calls 4 refused 1",
        "bad selector_failed steps done — calls — refused —",
        "free not held to a playbook steps done — calls — refused —",
        "live at enrich steps done 1 of 3 calls 1 refused 0",
        "at most 4 plans kept",
    ]


def test_one_that_only_records_says_so():
    assert "records only" in str(hook(block_violations=False))


def test_a_ticket_says_what_became_of_it():
    held = hook()
    one, other = held.admit("search", call_id="c1"), held.admit("pay", call_id="c2")
    assert (repr(one), repr(other)) == (
        "<Ticket 'c1': search admitted>",
        "<Ticket 'c2': pay refused>",
    )
    one.settle()
    assert repr(one) == "<Ticket 'c1': search settled>"
    assert (one.enforcer, other.enforcer) == (held.enforcer, held.enforcer)
