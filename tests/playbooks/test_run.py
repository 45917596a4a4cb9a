from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hand_events import AT, NIST, Plan, book, probes, step, stuck
from hypothesis import given, settings
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb.playbooks import PlaybookEnforcer, PlaybookPlan
from runbook_nb.playbooks.events import Finished, Resumed, Settled
from runbook_nb.playbooks.run import run_of
from runbook_nb.playbooks.told import Told


def enforcer_of(playbook=NIST, **more):
    return PlaybookEnforcer.from_playbook(playbook, **more)


def make(enforcer, tool, outcome="ok", **arguments):
    ticket = enforcer.admit(tool, arguments)
    if ticket.allowed:
        error = "E: no" if outcome == "error" else None
        enforcer.settle(ticket, outcome, error=error)
    return ticket


def test_a_run_is_the_record_that_charts_leave():
    run = run_of(stuck().events)
    assert isinstance(run, rb.Run)
    assert run.state == {
        "detection": "completed",
        "analysis": "completed",
        "notify": "skipped",
        "containment": "stuck",
        "recovery": "pending",
        "lessons": "pending",
    }
    assert (run.status, run.pause["reason"]) == (
        "paused",
        "step containment waits for somebody to decide: no call can close the step",
    )
    assert run.ended_at["stage_id"] == "containment"
    assert run.walk.steps_executed == 4
    assert run.walk.page(0, 3).shown == 3
    assert list(run.walk.to_frame().columns)[:3] == ["step", "type", "depth"]
    assert run.commits[0].changes[0].key == "detection"


def counted(overlay):
    """Give all that an overlay counts, by name."""
    return {name: getattr(overlay, name) for name in overlay.__slots__}


def test_a_run_is_read_back_from_its_recording():
    run = run_of(stuck().events)
    back = rb.load_recording(run.recording().to_json())
    assert back.walk == run.walk
    assert counted(back.walk.raw_overlay) == counted(run.walk.raw_overlay)
    assert back.walk.flowchart().dot == run.walk.flowchart().dot
    assert back.structure == run.structure


def test_a_run_is_explored_as_a_charts_is():
    explorer = run_of(stuck().events).explore()
    assert explorer.line() == "Explorer nist-800-61-ir · row 0 of 35 · Came to step detection"
    last = explorer.look({"step": 33})
    names = last["picture"]["names"] if last["picture"] else explorer.opening["at"]["picture"]
    assert "4 containment" in names
    assert last["state"]["held"]
    now = [number for number, word in last["nodes"].items() if word == "now"]
    assert [names[int(number) - 1] for number in now] == ["4 containment"]


def test_what_is_told_late_belongs_to_its_own_step():
    plan = Plan(book(step("a", tools=["t"]), step("b", tools=["u"])))
    first, second = plan.admit("a", "t"), plan.admit("b", "u")
    plan.add(Settled, call_id=first, step_id="a")
    plan.close(0, "a")
    plan.add(Settled, call_id=second, step_id="b")
    run = run_of(plan.events)
    assert dict(run.walk.raw_overlay.edges) == {("a", "b"): 1}
    late = next(row for row in run.walk if row.text == "t answered")
    assert late.stage_id == "a"
    assert run.explore().look({"step": late.step})["words"].endswith("t answered")


def test_a_step_takes_from_its_first_call_until_it_ends():
    plan = Plan(book(step("a", tools=["t"])), tick=2)
    plan.call("a", "t")
    plan.close(0, "a")
    assert run_of(plan.events).seconds == {"a": 4.0}


def test_a_finished_run_ended_whatever_is_left():
    plan = stuck()
    plan.add(Finished, verdict="incomplete", unresolved=("containment", "recovery"))
    run = run_of(plan.events)
    assert (run.status, run.verdict, run.pause) == ("ok", "incomplete", None)


def test_a_journal_that_was_torn_is_told():
    plan = stuck()
    plan.add(Resumed, after=3, torn="half a line")
    assert "Journal torn: half a line" in [row.text for row in run_of(plan.events).walk]


@pytest.mark.parametrize("policy", ["safe", "compat"])
def test_the_live_record_and_the_enforcer_count_the_same(policy):
    enforcer = enforcer_of(policy=policy)
    make(enforcer, "query_siem", index="alert")
    make(enforcer, "delete_mailbox")
    make(enforcer, "enrich_indicator", "error")
    make(enforcer, "enrich_indicator", q="indicator")
    make(enforcer, "page_owner")
    for _ in range(5):
        make(enforcer, "isolate_host", "error", host="web-1")
    enforcer.admit("restore_host")
    agree(enforcer)
    enforcer.finish()
    agree(enforcer)


def agree(enforcer):
    """Every count that views show is the one that the enforcer gives."""
    told, report, plan = Told.of_run(enforcer.run), enforcer.report(), enforcer.plan
    assert told.refused == len(report.refused)
    assert told.deviations == len(report.deviations)
    assert {one.node.id for one in told.undone} == set(report.unresolved)
    running = [call for call in enforcer.calls if call.outcome is None and not call.housekeeping]
    assert told.unsettled == len(running) <= len(report.running)
    filed = sum(one.facts.calls - one.facts.unsettled for one in told.steps)
    assert filed + told.after.calls - told.after.unsettled == plan.total_tool_calls
    here = plan.current_step
    assert told.pointer == (None if here is None else here.id)
    stuck = told.current is not None and told.current.facts.status in ("stuck", "failed")
    assert stuck or not enforcer.is_stuck
    for one in told.steps:
        record = plan.step_executions.get(one.node.id)
        if record is not None:
            assert one.facts.calls - one.facts.unsettled == record.tool_call_count
            assert sorted(one.facts.matched) == sorted(set(record.matched_probes))
            status = record.status.value.replace("_", " ")
            assert one.facts.status in (status, "stuck")


TOOLS = ("query_siem", "enrich_indicator", "page_owner", "isolate_host", "rm", "restore_host")
MOVES = st.one_of(
    st.tuples(st.just("call"), st.sampled_from(TOOLS), st.sampled_from(["ok", "error"])),
    st.tuples(st.sampled_from(["skip", "close", "fail", "reset", "finish"])),
    st.tuples(st.just("open"), st.sampled_from(TOOLS)),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(MOVES, max_size=12), st.sampled_from(["safe", "compat"]), st.booleans())
def test_whatever_happens_views_count_as_the_enforcer_does(moves, policy, block):
    enforcer = enforcer_of(policy=policy, block_violations=block)
    for move, *rest in moves:
        if move == "call":
            make(enforcer, *rest, index="alert host")
        elif move == "open":
            enforcer.admit(*rest)
        elif move == "skip":
            enforcer.skip_current_step("no need")
        elif move == "close":
            enforcer.complete_current_step("by the host")
        elif move == "fail" and enforcer.current_step is not None:
            enforcer.fail_current_step("no way")
        elif move == "reset":
            enforcer.reset()
        elif move == "finish":
            enforcer.finish()
    agree(enforcer)
    run = enforcer.run
    assert len(list(run.walk)) == len(run.walk)
    assert rb.load_recording(run.recording().to_json()).walk == run.walk


def test_a_step_that_no_call_can_close_is_stuck_where_its_policy_lets_that_pass():
    made = book(step("a", tools=["t"], max_tool_calls=2), step("b", tools=["v"]))
    enforcer = enforcer_of(made, policy="compat")
    for _ in range(3):
        make(enforcer, "t", "error")
    assert enforcer.is_stuck
    assert "stuck" not in [event.kind for event in enforcer.events]
    assert "stuck at step 1 of 2, a" in str(enforcer.plan)
    assert enforcer.run.state["a"] == "stuck"
    assert "peripheries" in enforcer.flowchart().dot


def test_what_is_noted_after_the_last_step_is_shown():
    enforcer = enforcer_of(book(step("a", tools=["t"])), block_violations=False)
    make(enforcer, "t")
    make(enforcer, "q")
    assert "q went through, the playbook is complete" in str(enforcer.plan)


def test_a_plan_is_shown_as_whoever_enforces_it_knows_it():
    enforcer = enforcer_of()
    make(enforcer, "query_siem", index="alert")
    make(enforcer, "rm")
    assert str(enforcer.plan) == str(enforcer) == str(enforcer.run)
    assert "refused 1 rm" in str(enforcer.plan)
    bare = PlaybookPlan.model_validate(enforcer.plan.model_dump())
    assert "not carried" in str(bare)
    assert "refused" not in str(bare).replace("refusals", "")


def test_the_record_is_made_anew_only_when_something_happened():
    enforcer = enforcer_of()
    before = enforcer.run
    assert enforcer.run is before
    make(enforcer, "query_siem")
    assert enforcer.run is not before


def test_what_a_plan_had_come_to_before_is_told_by_names_alone():
    first = enforcer_of(book(step("a", tools=["t"], required_probes=probes("x")), step("b")))
    make(first, "t", q="x")
    again = PlaybookEnforcer(PlaybookPlan.model_validate(first.plan.model_dump()))
    told = Told.of_run(again.run)
    assert [one.facts.status for one in told.steps] == ["completed", "pending"]
    assert told.steps[0].facts.tools == {("t", "unknown"): 1}
    assert told.steps[0].probes == (1, 1)
    assert "nothing is known of how it ended" in str(again.run.walk.to_dicts())


def test_a_playbook_without_steps_leaves_a_record_too():
    enforcer = enforcer_of(book())
    make(enforcer, "anything")
    assert enforcer.run.walk.total >= 2
    assert "No steps" in enforcer.run.to_markdown() or "no steps" in str(enforcer)


def test_times_are_those_of_the_events_and_no_clock():
    plan = stuck()
    assert {event.at for event in plan.events} == {AT}
    assert plan.events[0].at + timedelta(0) == AT
    assert str(run_of(plan.events)) == str(run_of(stuck().events))


def test_a_tool_whose_name_holds_a_secret_is_hidden_in_every_view():
    secret = "hunter2!"
    asked = book(step("a", tools=["scan", f"read-{secret}"]))
    plan = PlaybookEnforcer.from_playbook(asked, redact={"values": [secret]})
    plan.settle(plan.admit(f"read-{secret}"))
    plan.admit(f"wipe-{secret}")
    log = rb.event_log([plan], activity="tool")
    assert log.records[0]["tool"] == "read-[REDACTED]"
    made = rb.runbook_as_tool(name="r", description="R.", procedure=lambda tools: plan.procedure())
    plan.finish()
    answer = made.execute_sync({})
    views = (
        *(plan, plan.run, plan.plan, plan.report(), log, answer),
        *(rb.event_log([plan.run], activity="tool"), *plan.violations),
    )
    for view in views:
        drawn = view._repr_mimebundle_()
        drawn = drawn[0] if isinstance(drawn, tuple) else drawn
        assert secret not in f"{view}{drawn}", type(view).__name__
    assert secret not in json.dumps(answer.to_dict()) + answer.to_json(dossier=True)
    assert plan.report().refused[0].tool == "wipe-[REDACTED]"
