"""Events: written and read, and made to happen."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from held_plans import book, call, held, step

from runbook_nb.errors import PlaybookError
from runbook_nb.playbooks import PlaybookEnforcer, PlaybookPlan, StepExecution
from runbook_nb.playbooks import events as ev

AT = datetime(2026, 1, 1, tzinfo=UTC)


def begun(*steps, policy=None, **more):
    return ev.Begun(
        seq=1, at=AT, playbook=book(*steps), digest="d", policy=policy or {}, skills={}, **more
    )


SAMPLES = [
    begun(step("a", "scan")),
    begun(step("a"), plan=PlaybookPlan(playbook=book(step("a")), started_at=AT)),
    ev.Admitted(seq=2, at=AT, call_id="c", tool="scan", step_id="a", index=0, arguments={"q": 1}),
    ev.Refused(
        seq=2, at=AT, call_id="c", tool="pay", violation="unexpected_tool", hints=("Scan first.",)
    ),
    ev.Settled(seq=3, at=AT, call_id="c", step_id="a", matched=("auth",), checks=("k",)),
    ev.ViolationNoted(seq=3, at=AT, violation="tools_missing", message="m", step_id="a"),
    ev.Closed(seq=4, at=AT, step_id="a", index=0, pointer=1, violations=("tools_missing",)),
    ev.Skipped(seq=4, at=AT, step_id="a", index=0, pointer=1, reason="no"),
    ev.Failed(seq=4, at=AT, step_id="a", error="broke"),
    ev.Approved(seq=4, at=AT, step_id="a", who="ana"),
    ev.Declined(seq=4, at=AT, step_id="a", who="ana", note="no"),
    ev.TimedOut(seq=4, at=AT, step_id="a", seconds=9.5, allowed=5.0),
    ev.Stuck(seq=4, at=AT, step_id="a", reason="full"),
    ev.Reset(seq=4, at=AT),
    ev.Resumed(seq=4, at=AT, after=3, open=("c",)),
    ev.Finished(seq=4, at=AT, verdict="pass", unmatched={"a": ("auth",)}),
]


def test_there_is_a_sample_of_every_kind():
    assert {one.kind for one in SAMPLES} == set(ev.KINDS)


@pytest.mark.parametrize("event", SAMPLES, ids=lambda one: one.kind)
def test_an_event_is_read_back_from_json(event):
    told = json.loads(json.dumps(event.to_dict()))
    again = ev.from_dict(told)
    assert again.to_dict() == event.to_dict()
    assert type(again) is type(event)
    assert told["kind"] == event.kind
    assert told["at"] == AT.isoformat()
    if event.kind != "finished":  # of a mapping JSON makes lists
        assert again == event


def test_the_digest_of_arguments_does_not_depend_on_their_order():
    first = ev.Admitted(seq=2, at=AT, call_id="c", tool="t", arguments={"a": 1, "b": 2})
    second = ev.Admitted(seq=2, at=AT, call_id="c", tool="t", arguments={"b": 2, "a": 1})
    assert first.to_dict()["args_digest"] == second.args_digest
    assert ev.Admitted(seq=2, at=AT, call_id="c", tool="t").args_digest is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kind": "begin"}, "there is no kind of event 'begin'"),
        ({"kind": None}, "there is no kind of event None"),
        ({"kind": ["reset"]}, "there is no kind of event"),
        ({"when": 1}, "cannot have, or lacks, when"),
        ({"step_id": ...}, "cannot have, or lacks, step_id"),
        ({"at": "yesterday"}, "cannot be read"),
        ({"at": 7}, "cannot be read"),
    ],
)
def test_what_is_no_event_is_refused(change, says):
    told = {**ev.Approved(seq=4, at=AT, step_id="a", who="ana").to_dict(), **change}
    told = {key: value for key, value in told.items() if value is not ...}
    with pytest.raises(PlaybookError, match=says) as raised:
        ev.from_dict(told)
    assert raised.value.code == "bad_event"


def test_a_plan_starts_with_its_beginning_and_with_nothing_else():
    with pytest.raises(PlaybookError, match="cannot start"):
        ev.apply(None, ev.Reset(seq=1, at=AT))
    with pytest.raises(PlaybookError, match="no events"):
        ev.replay([])


def test_a_call_that_nobody_admitted_cannot_end():
    state = ev.apply(None, begun(step("a", "scan")))
    with pytest.raises(PlaybookError) as raised:
        ev.apply(state, ev.Settled(seq=2, at=AT, call_id="c"))
    assert raised.value.code == "unknown_call"


def test_a_record_begins_with_admission_or_with_the_first_result():
    later = AT + timedelta(minutes=5)
    for policy, started in (({}, AT), ({"profile": "compat"}, later)):
        state = ev.replay(
            [
                begun(step("a", "scan"), policy=policy),
                ev.Admitted(seq=2, at=AT, call_id="c", tool="scan", step_id="a", index=0),
                ev.Settled(seq=3, at=later, call_id="c", step_id="a"),
            ]
        )
        assert state.plan.step_executions["a"].started_at == started
        assert state.facts_of("a").first_result_at == later
        assert (state.calls["c"].started, state.calls["c"].ended) == (AT, later)


def test_a_reset_forgets_everything_but_calls_that_still_run():
    state = ev.replay(
        [
            begun(step("a", "scan", "read")),
            ev.Admitted(seq=2, at=AT, call_id="c", tool="scan", step_id="a", index=0),
            ev.Settled(seq=3, at=AT, call_id="c", step_id="a"),
            ev.Admitted(seq=4, at=AT, call_id="d", tool="read", step_id="a", index=0),
            ev.Reset(seq=5, at=AT),
        ]
    )
    assert list(state.calls) == ["d"]
    assert state.calls["d"].step_id is None
    assert (state.plan.step_executions, state.plan.total_tool_calls, state.steps) == ({}, 0, {})
    assert state.plan.started_at == AT


def test_a_plan_that_was_handed_over_goes_on_from_where_it_stood():
    plan = PlaybookPlan(playbook=book(step("a", "x"), step("b", "scan", "read")), started_at=AT)
    plan.current_step_index = 1
    plan.total_tool_calls = 2
    plan.step_executions = {
        "a": StepExecution(step_id="a", status="completed", tool_calls=["x"], tool_call_count=1),
        "b": StepExecution(
            step_id="b", status="in_progress", tool_calls=["scan"], tool_call_count=1
        ),
    }
    enforcer = PlaybookEnforcer(plan, policy="compat")
    call(enforcer, "read")
    assert enforcer.plan is plan
    assert plan.completed
    # Nothing says that the earlier call succeeded, so under safe it has to be made again.
    plan.current_step_index, plan.completed = 1, False
    plan.step_executions["b"].status = "in_progress"
    careful = PlaybookEnforcer(plan)
    call(careful, "read")
    assert not careful.is_complete
    call(careful, "scan")
    assert careful.is_complete


def test_replaying_twice_gives_the_same_twice():
    plan = PlaybookPlan(playbook=book(step("a", "scan"), step("b", "read")), current_step_index=1)
    enforcer = PlaybookEnforcer(plan)
    call(enforcer, "read")
    first, second = ev.replay(enforcer.events), ev.replay(enforcer.events)
    assert first.plan == second.plan == enforcer.plan
    assert first.plan is not enforcer.plan


def test_nothing_of_a_replay_is_judged():
    enforcer = held(step("a", "scan"), step("b", "pay"))
    call(enforcer, "pay")
    call(enforcer, "scan")
    told = [event.to_dict() for event in enforcer.events]
    told[0]["playbook"]["steps"][0]["expected_tools"] = ["something else"]
    state = ev.replay([ev.from_dict(one) for one in told])
    assert state.plan.completed_steps == ["a"]
    assert [one.violation_type for one in state.violations] == ["unexpected_tool"]
