"""The door to a plan: calls and what comes of them, batches, moves, and what is kept."""

from __future__ import annotations

import copy
import json
import threading
from datetime import UTC, datetime, timedelta
from itertools import count
from types import SimpleNamespace

import pytest
from held_plans import book, call, held, kinds, statuses, step

from runbook_nb.errors import PlaybookDefinitionError, PlaybookError
from runbook_nb.playbooks import (
    EnforcementPolicy,
    Playbook,
    PlaybookEnforcer,
    PlaybookPlan,
    Skill,
)
from runbook_nb.playbooks.events import replay
from runbook_nb.settings import settings

TWO = (step("a", "scan"), step("b", "read"))


def refused_as(code):
    """Give what an error of the playbooks with a code is raised within."""

    class Raised:
        def __enter__(self):
            return self

        def __exit__(self, kind, error, trace):
            assert isinstance(error, PlaybookError), error
            assert error.code == code, error
            assert error.fix or error.problems, error
            return True

    return Raised()


# -- the published interface ------------------------------------------------------------------


def test_validating_and_recording_are_two_halves_that_never_advance():
    enforcer = held(*TWO)
    assert enforcer.validate_tool_call("scan").allowed
    enforcer.record_tool_call("scan", arguments={"q": 1}, result={"rows": 2})
    assert statuses(enforcer) == {"a": "in_progress"}
    assert enforcer.plan.current_step_index == 0
    result = enforcer.validate_tool_call("read")
    assert (result.allowed, result.current_step.id) == (False, "a")
    assert kinds(enforcer) == ["unexpected_tool"]
    assert enforcer.complete_current_step("done") is True
    enforcer.record_tool_call("read")
    assert enforcer.complete_current_step() is False
    assert enforcer.is_complete
    assert enforcer.complete_current_step() is False


def test_a_step_that_only_recorded_calls_closed_by_the_host_is_done():
    enforcer = held(step("a", "scan"))
    enforcer.record_tool_call("scan")
    enforcer.complete_current_step()
    assert enforcer.finish().verdict == "pass"


def test_skipping_is_for_optional_steps():
    enforcer = held(step("a", "scan"), step("b", "read", required=False))
    assert enforcer.skip_current_step("no") is False
    call(enforcer, "scan")
    assert enforcer.skip_current_step("not severe") is True
    record = enforcer.plan.step_executions["b"]
    assert (record.result, record.started_at) == ("not severe", None)
    assert enforcer.skip_current_step() is False


def test_a_failed_step_stays_and_can_still_be_closed():
    enforcer = held(*TWO)
    enforcer.fail_current_step("first")
    enforcer.fail_current_step("second")
    assert statuses(enforcer) == {"a": "failed"}
    assert len(enforcer.plan.errors) == 2
    call(enforcer, "scan")
    assert enforcer.plan.step_executions["a"].error == "second"
    assert statuses(enforcer) == {"a": "completed"}


def test_hints_are_of_the_step_and_of_the_next_and_are_copies():
    enforcer = held(step("a", hints=["one"]), step("b", hints=["two"]))
    enforcer.current_step_hints.append("x")
    assert (enforcer.current_step_hints, enforcer.get_next_step_hints()) == (["one"], ["two"])
    enforcer.complete_current_step()
    assert enforcer.get_next_step_hints() == []
    enforcer.complete_current_step()
    assert enforcer.current_step_hints == []


def test_a_reset_begins_again_and_keeps_when_it_began():
    enforcer = held(*TWO)
    began = enforcer.plan.started_at
    call(enforcer, "pay")
    call(enforcer, "scan")
    enforcer.reset()
    assert (enforcer.violations, enforcer.plan.step_executions) == ([], {})
    assert (enforcer.plan.current_step_index, enforcer.plan.started_at) == (0, began)
    assert call(enforcer, "scan").allowed


def test_a_call_that_runs_over_a_reset_belongs_to_no_step_afterwards():
    enforcer = held(*TWO)
    admission = enforcer.admit("scan")
    enforcer.reset()
    assert enforcer.settle(admission).closed is False
    assert enforcer.plan.step_executions == {}


def test_violations_are_a_copy():
    enforcer = held(*TWO)
    call(enforcer, "pay")
    enforcer.violations.clear()
    assert kinds(enforcer) == ["unexpected_tool"]


def test_a_playbook_may_be_a_mapping_and_the_plan_may_be_handed_over():
    told = json.loads(book(*TWO).model_dump_json())
    assert PlaybookEnforcer.from_playbook(told).current_step.id == "a"
    plan = PlaybookPlan(playbook=Playbook(**told))
    enforcer = PlaybookEnforcer(plan)
    call(enforcer, "scan")
    assert plan.current_step_index == 1


# -- outcomes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "counts", "closes"),
    [
        ("ok", 1, True),
        ("retried", 1, True),
        ("cached", 1, True),
        ("error", 1, False),
        ("cancelled", 0, False),
    ],
)
def test_what_each_outcome_does(outcome, counts, closes):
    enforcer = held(step("a", "scan"))
    assert enforcer.settle(enforcer.admit("scan"), outcome).closed is closes
    assert enforcer.plan.total_tool_calls == counts
    assert enforcer.calls[0].outcome == outcome


def test_under_compat_an_answer_from_a_cache_was_never_made():
    enforcer = held(step("a", "scan"), policy="compat")
    call(enforcer, "scan", outcome="cached")
    assert (enforcer.plan.total_tool_calls, enforcer.is_complete) == (0, False)


def test_a_failed_call_may_be_settled_again_as_retried_and_counts_once():
    enforcer = held(step("a", "scan", max_tool_calls=2))
    admission = enforcer.admit("scan")
    enforcer.settle(admission, "error", error=ValueError("down"))
    assert enforcer.settle(admission, "retried").closed
    assert enforcer.plan.step_executions["a"].tool_calls == ["scan"]
    assert enforcer.plan.total_tool_calls == 1
    assert enforcer.state.facts_of("a").counted == 1
    compat = held(step("a", "scan"), policy="compat")
    admission = compat.admit("scan")
    compat.settle(admission, "error")
    assert not compat.settle(admission, "retried").closed


@pytest.mark.parametrize("word", ["all", "successful"])
def test_a_call_that_is_settled_twice_takes_one_place_under_the_cap(word):
    policy = EnforcementPolicy("safe", cap_counts=word)
    enforcer = held(step("a", "scan", "read", max_tool_calls=2), policy=policy)
    admission = enforcer.admit("scan")
    enforcer.settle(admission, "error")
    enforcer.settle(admission, "retried")
    assert enforcer.state.facts_of("a").counted == 1


def test_what_cannot_be_settled():
    enforcer = held(*TWO)
    with refused_as("unknown_call"):
        enforcer.settle("nobody")
    with refused_as("already_settled"):
        enforcer.settle(enforcer.admit("pay"))
    admission = enforcer.admit("scan")
    with refused_as("bad_outcome"):
        enforcer.settle(admission, "okay")
    enforcer.settle(admission.call_id)
    with refused_as("already_settled"):
        enforcer.settle(admission)
    assert len(enforcer.calls) == 2


def test_calls_have_ids_of_their_own():
    enforcer = held(step("a", "scan", "read"))
    first = enforcer.admit("scan", call_id="tool-1")
    with refused_as("call_id_taken"):
        enforcer.admit("scan", call_id="tool-1")
    enforcer.settle(first, "error")
    again = enforcer.admit("scan", call_id="tool-1")
    assert again.call_id == "tool-1~2"
    assert enforcer.admit("scan").call_id not in ("tool-1", "tool-1~2")


def test_a_call_is_credited_to_the_step_it_was_admitted_under():
    enforcer = held(step("a", "scan"), step("b", "ask", max_tool_calls=1))
    first, second = enforcer.admit("scan"), enforcer.admit("scan")
    enforcer.settle(first)
    told = enforcer.settle(second)
    assert (told.step_id, told.closed, enforcer.current_step.id) == ("a", False, "b")
    assert enforcer.plan.step_executions["a"].tool_calls == ["scan", "scan"]
    spilling = held(step("a", "scan"), step("b", "ask", max_tool_calls=1), policy="compat")
    first, second = spilling.admit("scan"), spilling.admit("scan")
    spilling.settle(first)
    assert spilling.settle(second).step_id == "b"
    assert spilling.is_complete


def test_evidence_is_looked_for_in_what_a_call_was_really_made_with():
    enforcer = held(step("a", "scan", required_probes=[{"name": "auth", "match": "auth"}]))
    admission = enforcer.admit("scan", {"index": "web"})
    enforcer.settle(admission, arguments={"index": "auth"})
    assert kinds(enforcer) == []
    assert enforcer.calls[0].arguments == {"index": "auth"}


def test_facts_of_calls_are_kept():
    enforcer = held(step("a", "scan", "read"))
    outer = enforcer.admit("scan", {"q": [1, {"b": 2}]}, call_id="o", batch="reply-1")
    inner = enforcer.admit("read", "text", call_id="i", parent="o")
    enforcer.settle(inner, "error", error=ValueError("no such file"))
    enforcer.settle(outer)
    first, second = enforcer.calls
    assert (first.batch, second.parent, second.arguments) == ("reply-1", "o", "text")
    assert (second.error, second.outcome) == ("ValueError: no such file", "error")
    assert first.started <= second.started <= second.ended <= first.ended


@pytest.mark.parametrize("ask", ["admit", "validate_tool_call"])
def test_what_an_answer_goes_against_is_what_is_noted_its_time_too(ask):
    at = datetime(2026, 1, 1, tzinfo=UTC)
    times = (at + timedelta(seconds=n) for n in count())
    with settings(clock=lambda: next(times)):
        enforcer = held(*TWO)
        answer = getattr(enforcer, ask)("elsewhere")
    assert [answer.violation] == enforcer.violations
    assert answer.violation.timestamp == enforcer.events[-1].at > at


def test_a_violation_tells_its_call():
    enforcer = held(*TWO)
    refused = enforcer.admit("pay", {"amount": 3}, call_id="c9")
    noted = enforcer.state.noted[0]
    assert (noted.call_id, noted.seq, refused.seq) == ("c9", 2, 2)
    assert noted.args_digest == enforcer.events[1].args_digest


# -- batches ----------------------------------------------------------------------------------


def test_a_reply_that_is_right_in_order_is_let_through_in_order():
    enforcer = held(*TWO, step("c", "pay"))
    first, second, third = enforcer.admit_batch(["scan", ("read", {"q": 1}), {"tool": "pay"}])
    assert [one.allowed for one in (first, second, third)] == [True, True, True]
    assert [one.provisional for one in (first, second, third)] == [False, True, True]
    assert [one.step_id for one in (first, second, third)] == ["a", "b", "c"]
    assert (second.seq, enforcer.current_step.id) == (None, "a")
    enforcer.settle(first)
    for one in (second, third):
        confirmed = enforcer.confirm(one)
        assert not confirmed.provisional
        enforcer.settle(confirmed)
    assert enforcer.finish().verdict == "pass"
    assert len({one.batch for one in enforcer.calls}) == 1


def test_what_was_let_through_provisionally_is_refused_when_the_call_before_failed():
    enforcer = held(*TWO)
    first, second = enforcer.admit_batch(["scan", "read"])
    enforcer.settle(first, "error")
    confirmed = enforcer.confirm(second)
    assert (confirmed.allowed, confirmed.violation.violation_type) == (False, "unexpected_tool")
    assert kinds(enforcer) == ["unexpected_tool"]


def test_a_provisional_call_is_confirmed_once():
    enforcer = held(*TWO)
    first, second = enforcer.admit_batch(["scan", "read"])
    assert enforcer.confirm(first) is first
    with refused_as("call_id_taken"):
        enforcer.admit("scan", call_id=second.call_id)
    enforcer.settle(first)
    enforcer.confirm(second)
    with refused_as("unknown_call"):
        enforcer.confirm(second.call_id)


def test_a_provisional_call_that_was_made_without_asking_is_taken_in_if_it_was_right():
    enforcer = held(*TWO)
    first, second = enforcer.admit_batch(["scan", "read"])
    enforcer.settle(first)
    assert enforcer.settle(second).closed
    wrong = held(*TWO)
    first, second = wrong.admit_batch(["scan", "read"])
    wrong.settle(first, "error")
    with refused_as("not_confirmed"):
        wrong.settle(second)
    assert statuses(wrong) == {"a": "in_progress"}
    assert kinds(wrong) == ["unexpected_tool"]


def test_a_batch_is_judged_one_by_one_where_nobody_looks_ahead():
    enforcer = held(*TWO, policy=EnforcementPolicy(lookahead=False))
    assert [one.allowed for one in enforcer.admit_batch(["scan", "read"])] == [True, False]
    ahead = held(*TWO)
    assert [one.allowed for one in ahead.admit_batch(["read", "scan"])] == [False, True]


def test_looking_ahead_knows_what_is_done_already():
    enforcer = held(*TWO, step("c", "pay", requires=["a", "scan"]))
    call(enforcer, "scan")
    assert [one.allowed for one in enforcer.admit_batch(["read", "pay"])] == [True, True]


def test_looking_ahead_touches_nothing():
    enforcer = held(step("a", "scan", required_probes=[{"name": "x", "match": "auth"}]), *TWO[1:])
    enforcer.admit_batch([("scan", {"q": "auth"}), "read", "pay"])
    assert enforcer.plan.current_step_index == 0
    assert enforcer.plan.step_executions["a"].matched_probes == []
    assert [one.kind for one in enforcer.events] == ["begun", "admitted", "refused"]
    assert replay(enforcer.events).plan == enforcer.plan


@pytest.mark.parametrize("wrong", [[7], [[]], [{"name": "scan"}], [(7, {})]])
def test_what_is_no_call_of_a_batch(wrong):
    with refused_as("bad_batch"):
        held(*TWO).admit_batch(wrong)


# -- people -----------------------------------------------------------------------------------


def test_a_manual_step_is_closed_by_a_person_with_a_note():
    enforcer = held(step("a", kind="manual"), step("b", "read"))
    assert enforcer.waits_for_person
    assert not enforcer.may("read")
    enforcer.complete("a", by="ana", note="called the customer")
    facts = enforcer.state.facts_of("a")
    assert (facts.closed_by, facts.who, facts.note) == ("person", "ana", "called the customer")
    assert enforcer.plan.step_executions["a"].result == "called the customer"
    assert enforcer.may("read")


def test_a_manual_step_with_tools_is_not_closed_by_them():
    enforcer = held(step("a", "scan", kind="manual"))
    call(enforcer, "scan")
    assert not enforcer.is_complete
    enforcer.complete(enforcer.current_step, by="ana")
    assert enforcer.finish().verdict == "pass"


@pytest.mark.parametrize("policy", ["safe", "compat"])
def test_an_approval_opens_a_step_or_closes_one_without_tools(policy):
    steps = [step("ok", kind="approval"), step("pay", "refund", kind="approval")]
    enforcer = held(*steps, policy=policy)
    with refused_as("approval_missing"):
        enforcer.complete("ok", by="ana")
    enforcer.approve("ok", by="ana", note="within limits")
    assert statuses(enforcer) == {"ok": "completed"}
    refused = enforcer.admit("refund")
    assert refused.violation.violation_type == "approval_missing"
    assert (enforcer.waits_for_person, enforcer.is_stuck) == (True, False)
    enforcer.approve("pay", by="ben")
    assert not enforcer.waits_for_person
    call(enforcer, "refund")
    assert enforcer.is_complete
    assert [one[:2] for one in enforcer.state.facts_of("ok").approvals] == [
        ("ana", "within limits")
    ]
    assert enforcer.state.facts_of("pay").approvals[0][0] == "ben"


BEHIND = (
    step("warn", "post", required=False),
    step("tell", "mail", required=False),
    step("sign", kind="approval"),
    step("drain", "cordon"),
)


def test_a_person_passes_over_optional_steps_as_a_call_does():
    enforcer = held(*BEHIND)
    assert enforcer.waits_for_person
    enforcer.approve("sign", by="ana", note="yes")
    assert statuses(enforcer) == {"warn": "skipped", "tell": "skipped", "sign": "completed"}
    skips = [one for one in enforcer.events if one.kind == "skipped"]
    assert [(one.by, one.who, one.reason) for one in skips] == [
        ("person", "ana", "passed over for step 'sign'")
    ] * 2
    assert replay(enforcer.events).plan == enforcer.plan
    call(enforcer, "cordon")
    assert enforcer.finish().verdict == "pass"


def test_a_person_closes_a_manual_step_behind_optional_ones():
    enforcer = held(*BEHIND[:2], step("m", kind="manual"))
    call(enforcer, "post")
    enforcer.complete("m", by="ana")
    assert statuses(enforcer) == {"warn": "completed", "tell": "skipped", "m": "completed"}
    assert enforcer.is_complete


def test_what_a_person_cannot_pass_over():
    required = held(BEHIND[0], step("must", "scan"), BEHIND[2])
    blocking = held(*BEHIND, policy=EnforcementPolicy(optional="blocking"))
    compat = held(*BEHIND, policy="compat")
    wants = held(BEHIND[0], step("sign", kind="approval", requires=["warn"]))
    for enforcer in (required, blocking, compat, wants):
        assert not enforcer.waits_for_person
        before = enforcer.events
        with refused_as("not_its_turn"):
            enforcer.approve("sign", by="ana")
        assert enforcer.events == before
    enforcer = held(*BEHIND)
    before = enforcer.events
    for act, code in ((enforcer.complete, "approval_missing"), (enforcer.approve, "nobody_named")):
        with refused_as(code):
            act("sign", by="ana" if code == "approval_missing" else " ")
        assert enforcer.events == before


def test_a_refusal_tells_what_may_be_passed_over_and_who_waits_behind_it():
    refused = held(*BEHIND).admit("cordon")
    assert refused.hints[0] == "Call 'post' now."
    assert refused.hints[-1] == (
        "Step 'warn' is optional and may be passed over: behind it, step 'sign' waits for an "
        "approval."
    )
    opens = held(BEHIND[0], step("drain", "cordon", kind="approval")).admit("cordon")
    assert "step 'drain' waits for an approval" in opens.hints[-1]
    closes = held(BEHIND[0], step("m", kind="manual"), step("b", "pay")).admit("pay")
    assert "step 'm' waits for a person to close it" in closes.hints[-1]
    assert held(*BEHIND).admit("other").hints == ("Call 'post' now.",)
    assert held(*BEHIND, policy="compat").admit("cordon").hints == ("Call 'post' now.",)


def test_what_a_host_does_may_be_done_by_a_person_who_is_named():
    enforcer = held(*BEHIND)
    enforcer.skip_current_step("all know", by="ana")
    enforcer.fail_current_step("no answer", by="ben")
    enforcer.reset(by="cy")
    assert [(one.kind, one.who) for one in enforcer.events[1:]] == [
        ("skipped", "ana"),
        ("failed", "ben"),
        ("reset", "cy"),
    ]
    assert [one.by for one in enforcer.events[1:3]] == ["person", "person"]
    enforcer.skip_current_step("all know")
    enforcer.reset()
    assert [one.who for one in enforcer.events[4:]] == [None, None]
    assert "who" not in enforcer.events[-1].to_dict()  # as in every journal of before
    count_ = len(enforcer.events)
    for act in (
        lambda: enforcer.skip_current_step(by=""),
        lambda: enforcer.fail_current_step("no", by=" "),
        lambda: enforcer.reset(by="\u200b"),
    ):
        with refused_as("nobody_named"):
            act()
    assert len(enforcer.events) == count_


def test_what_a_person_cannot_do():
    enforcer = held(step("a", "scan"), step("b", kind="approval"))
    with refused_as("no_such_step"):
        enforcer.complete("aa", by="ana")
    with refused_as("not_its_turn"):
        enforcer.approve("b", by="ana")
    with refused_as("nobody_named"):
        enforcer.complete("a", by=" ")
    with refused_as("not_an_approval"):
        enforcer.approve("a", by="ana")
    assert len(enforcer.events) == 1


def test_a_person_who_closes_a_step_without_its_tools_does_not_make_it_done():
    enforcer = held(step("a", "scan"))
    enforcer.complete("a", by="ana", note="it was obvious")
    report = enforcer.finish()
    assert (report.verdict, report.unresolved) == ("incomplete", ("a",))
    assert kinds(enforcer) == ["tools_missing", "unresolved_step"]


# -- what is refused when it is made ----------------------------------------------------------


def test_everything_wrong_is_told_together_with_its_place_and_what_to_do():
    steps = [
        step("a", "scan", uses=["siem"], max_tool_calls=0),
        step("a", "read", min_tool_calls=3, max_tool_calls=2),
        step("c", requires=["c"], required_probes=[{"name": "blank", "match": "  "}]),
    ]
    with pytest.raises(PlaybookDefinitionError) as raised:
        held(*steps, skills={"siems": SimpleNamespace(allowed_tools=None)})
    assert raised.value.code == "refused_by_policy"
    assert [one.where for one in raised.value.problems] == [
        "steps[0].id",
        "steps[0].uses",
        "steps[0].max_tool_calls",
        "steps[1].min_tool_calls",
        "steps[2].requires",
        "steps[2].required_probes[0].match",
    ]
    assert all(one.fix for one in raised.value.problems)
    assert "did you mean 'siems'?" in str(raised.value)


def test_compat_refuses_none_of_what_was_published():
    steps = [
        step("a", "scan", uses=["siem"], max_tool_calls=0),
        step("a", "read", min_tool_calls=3, max_tool_calls=2),
        step("c", required_probes=[{"name": "blank", "match": " "}]),
    ]
    assert held(*steps, policy="compat").warnings == ()


def test_an_unresolved_skill_may_be_warned_of():
    policy = EnforcementPolicy(unresolved_skills="warn")
    enforcer = held(step("a", "scan", uses=["siem"]), policy=policy)
    assert "'siem'" in enforcer.warnings[0]


def test_an_empty_step_may_be_refused():
    policy = EnforcementPolicy(empty_step="reject")
    with pytest.raises(PlaybookDefinitionError, match="kind: manual"):
        held(step("a"), policy=policy)
    assert held(step("a", kind="manual"), policy=policy).waits_for_person
    assert held(step("a", max_tool_calls=1), policy=policy).may("scan")


# -- keeping ----------------------------------------------------------------------------------


def busy():
    """Give a plan to which a little of everything happened."""
    probes = [{"name": "auth", "match": "auth"}]
    skill = SimpleNamespace(
        allowed_tools=["scan"], required_probes=[], min_tool_calls=None, max_tool_calls=4
    )
    enforcer = held(
        step("a", "scan", uses=["siem"], required_probes=probes),
        step("b", "ask", required=False),
        step("c", kind="approval"),
        step("d", "pay"),
        skills={"siem": skill},
        key="run-7",
    )
    call(enforcer, "pay", {"amount": 3})
    call(enforcer, "scan", {"q": "web"}, "error")
    call(enforcer, "scan", {"q": "auth"})
    enforcer.skip_current_step("not severe")
    enforcer.approve("c", by="ana", note="yes")
    return enforcer, skill


def test_a_dump_is_json_and_gives_the_same_plan_again():
    enforcer, skill = busy()
    dumped = json.loads(json.dumps(enforcer.dump()))
    for skills in (None, {"siem": skill}):
        again = PlaybookEnforcer.load(dumped, skills)
        assert again.plan == enforcer.plan
        assert again.violations == enforcer.violations
        assert (again.policy, again.key) == (enforcer.policy, "run-7")
        assert again.calls == enforcer.calls
        assert again.dump() == enforcer.dump()
        assert again.adherence_score() == enforcer.adherence_score()
        call(again, "pay")
        assert again.finish().verdict == "pass_with_deviations"


def test_a_skill_that_is_not_what_it_was_is_refused():
    enforcer, skill = busy()
    other = copy.copy(skill)
    other.allowed_tools = ["scan", "wipe"]
    for given in ({"siem": other}, {}, {"siem": skill, "more": skill}):
        with refused_as("skill_changed"):
            PlaybookEnforcer.load(enforcer.dump(), given)


def test_what_is_no_dump_is_refused():
    for wrong in ({}, {"schema": "other", "events": []}, {"schema": held().dump()["schema"]}):
        with refused_as("bad_dump"):
            PlaybookEnforcer.load(wrong)


class Kept:
    """A journal in memory, which can be full."""

    def __init__(self):
        self.kept, self.full = [], False

    def append(self, events):
        if self.full:
            raise OSError("no space left")
        self.kept += events

    def events(self):
        return tuple(self.kept)


def test_what_happens_is_kept_before_anybody_hears_of_it():
    journal, heard = Kept(), []
    enforcer = held(*TWO, journal=journal)
    enforcer.on_change(lambda event: heard.append((event, event in journal.kept)))
    call(enforcer, "scan")
    assert [kept for _, kept in heard] == [True] * 3
    assert tuple(journal.kept) == enforcer.events


def test_a_call_whose_admission_cannot_be_kept_is_not_made():
    journal, heard = Kept(), []
    enforcer = held(*TWO, journal=journal, observers=[heard.append])
    journal.full = True
    with pytest.raises(OSError, match="no space"):
        enforcer.admit("scan", call_id="c")
    assert [one.outcome for one in enforcer.calls] == ["cancelled"]
    assert len(heard) == 1
    journal.full = False
    assert call(enforcer, "scan").allowed
    assert tuple(journal.kept) == enforcer.events == tuple(heard)
    assert replay(journal.kept).plan == enforcer.plan


def test_a_plan_is_taken_up_again_from_its_journal_and_goes_on_in_it():
    journal = Kept()
    enforcer = held(step("a", "scan", max_tool_calls=1), step("b", "read"), journal=journal)
    running = enforcer.admit("scan")
    again = PlaybookEnforcer.resume(journal)
    assert again.events[-1].kind in ("resumed", "stuck", "violation")
    assert again.plan.current_step_index == 0
    again.settle(running.call_id)
    call(again, "read")
    assert again.is_complete
    assert tuple(journal.kept) == again.events
    assert replay(journal.kept).plan == again.plan


# -- telling ----------------------------------------------------------------------------------


def test_an_observer_that_raises_is_dropped_and_named_and_harms_nothing():
    def broken(event):
        raise ValueError(event.kind)

    heard = []
    enforcer = held(*TWO, observers=[broken, heard.append])
    call(enforcer, "scan")
    assert enforcer.dropped_observers == (
        "test_an_observer_that_raises_is_dropped_and_named_and_harms_nothing."
        "<locals>.broken: ValueError at event 1",
    )
    assert [one.seq for one in heard] == [1, 2, 3, 4]
    assert enforcer.current_step.id == "b"


def test_an_observer_may_do_something_to_the_plan():
    enforcer = held(*TWO)
    heard = []

    def closes(event):
        heard.append(event.seq)
        if event.kind == "closed" and event.step_id == "a":
            call(enforcer, "read")

    enforcer.on_change(closes)
    call(enforcer, "scan")
    assert enforcer.is_complete
    assert heard == list(range(2, len(enforcer.events) + 1))


def test_observers_are_told_outside_the_lock():
    enforcer, seen = held(*TWO), []

    def looks(event):
        other = threading.Thread(target=lambda: seen.append(enforcer.may("scan")))
        other.start()
        other.join(timeout=20)

    enforcer.on_change(looks)
    enforcer.admit("scan")
    assert seen == [True]


def test_many_threads_make_one_plan():
    enforcer = held(step("a", "scan", max_tool_calls=400, min_tool_calls=400))
    heard = []
    enforcer.on_change(heard.append)

    def work():
        for _ in range(60):
            call(enforcer, "scan", {"q": 1})

    threads = [threading.Thread(target=work) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert enforcer.plan.step_executions["a"].tool_call_count == 400
    assert enforcer.is_complete
    assert [one.seq for one in heard] == [one.seq for one in enforcer.events][1:]
    assert replay(enforcer.events).plan == enforcer.plan


# -- what is not seen -------------------------------------------------------------------------


def test_what_is_hidden_is_in_nothing_that_is_kept():
    enforcer = held(
        step("a", "scan", required_probes=[{"name": "key", "match": "s3cret-key"}]),
        redact={"keys": ["token"]},
    )
    admission = enforcer.admit("scan", {"token": "s3cret-key", "q": "s3cret-key"})
    enforcer.settle(admission, "error", error=RuntimeError("refused s3cret-key"))
    call(enforcer, "pay", {"note": "with s3cret-key"})
    call(enforcer, "scan", {"token": "s3cret-key"})
    told = json.dumps(enforcer.dump()["events"][1:])
    assert "s3cret-key" not in told
    assert enforcer.plan.step_executions["a"].matched_probes == ["key"]


def test_values_json_cannot_hold_are_kept_as_text_or_by_their_type():
    class Odd:
        def __str__(self):
            raise ValueError("no text")

        __repr__ = __str__

    ring = {}
    ring["self"] = ring
    enforcer = held(step("a", "scan"), policy="compat")
    for given in (ring, {"x": Odd()}, {"x": float("nan")}, {1: object()}, b"raw", {"x": {1, 2}}):
        call(enforcer, "scan", given, "error")
    assert json.loads(json.dumps(enforcer.dump()))
    assert enforcer.plan.total_tool_calls == 6


def test_later_changes_of_a_value_change_no_record():
    enforcer, given = held(step("a", "scan")), {"hosts": ["web-1"]}
    call(enforcer, "scan", given)
    given["hosts"].append("web-2")
    assert enforcer.calls[0].arguments == {"hosts": ["web-1"]}


# -- cost -------------------------------------------------------------------------------------


def test_admitting_a_call_costs_the_same_however_much_happened(calls_of):
    enforcer = held(step("a", "scan", "read", max_tool_calls=9000))
    call(enforcer, "scan", {"q": 1})
    first = calls_of(lambda: enforcer.admit("scan", {"q": 2}))
    for k in range(300):
        call(enforcer, "scan", {"q": k})
    later = calls_of(lambda: enforcer.admit("scan", {"q": 2}))
    assert later <= first
    assert first <= 75


# -- what is not to be got away with ----------------------------------------------------------


def test_an_admission_of_another_plan_settles_nothing_here():
    here, there = held(step("a", "pay"), step("b", "scan")), held(step("a", "scan"))
    foreign, own = there.admit("scan"), here.admit("pay")
    assert foreign.call_id == own.call_id
    with refused_as("other_call"):
        here.settle(foreign)
    assert here.settle(own).closed


def test_an_admission_of_before_a_reset_settles_no_call_of_its_id_afterwards():
    enforcer = held(step("a", "scan"), step("b", "pay"))
    before = enforcer.admit("pay", call_id="c")
    enforcer.reset()
    assert enforcer.admit("scan", call_id="c").allowed
    with refused_as("other_call"):
        enforcer.settle(before)
    assert enforcer.current_step.id == "a"


def test_a_batch_that_cannot_be_answered_leaves_no_call_open():
    enforcer = held(step("a", "scan", max_tool_calls=1))
    twice = {"tool": "scan", "call_id": "c"}
    with refused_as("call_id_taken"):
        enforcer.admit_batch([twice, twice])
    assert [one.outcome for one in enforcer.calls] == ["cancelled"]
    assert call(enforcer, "scan").allowed
    assert enforcer.is_complete


def test_a_batch_that_cannot_be_kept_waits_for_no_confirmation():
    class Full:
        full = False

        def append(self, events):
            if self.full:
                raise OSError("no space left")

    journal = Full()
    enforcer = held(step("a", "scan"), step("b", "pay"), journal=journal)
    journal.full = True
    reply = [{"tool": "scan", "call_id": "s"}, {"tool": "pay", "call_id": "p"}]
    with pytest.raises(OSError, match="no space"):
        enforcer.admit_batch(reply)
    journal.full = False
    assert [one.allowed for one in enforcer.admit_batch(reply)] == [True, True]


def test_work_that_is_stopped_while_an_observer_draws_leaves_no_call_open():
    def stop(event):
        if event.kind == "admitted":
            raise KeyboardInterrupt

    enforcer = held(step("a", "scan", max_tool_calls=1), observers=[stop])
    with pytest.raises(KeyboardInterrupt):
        enforcer.admit("scan")
    assert [one.outcome for one in enforcer.calls] == ["cancelled"]


def test_a_clock_that_fails_leaves_the_plan_to_other_threads():
    enforcer = held(step("a", "scan"))
    with settings(clock=lambda: 1 / 0), pytest.raises(ZeroDivisionError):
        enforcer.admit("scan")
    found = []
    other = threading.Thread(target=lambda: found.append(enforcer.may("scan")), daemon=True)
    other.start()
    other.join(10)
    assert found == [True]


def test_what_is_held_to_stays_as_it_was_begun():
    playbook = book(
        step("a", "scan"), step("b", "x", required=False), step("c", "y", requires=["b"])
    )
    enforcer = PlaybookEnforcer.from_playbook(playbook)
    begun = enforcer.dump()["events"][0]
    playbook.steps[0].expected_tools[:] = ["pay"]
    playbook.steps[2].requires.clear()
    assert enforcer.dump()["events"][0] == begun
    assert not enforcer.may("pay")
    call(enforcer, "scan")
    assert not enforcer.may("y")


@pytest.mark.parametrize("value", ["nothing", object()])
def test_arguments_that_are_changed_afterwards_prove_nothing(value):
    probe = {"name": "p", "match": "index=auth"}
    enforcer = held(step("a", "scan", required_probes=[probe]))
    given = {"q": ["nothing"], "more": value}
    running = enforcer.admit("scan", given)
    given["q"][0] = "index=auth"
    enforcer.settle(running)
    assert enforcer.report().unmatched == {"a": ("p",)}


def test_a_call_that_became_another_on_the_way_is_noted_where_skills_forbid_it():
    git = Skill("git", "Use git.", allowed_tools=["Bash(git:*)"])
    enforcer = held(step("a", "Bash", uses=["git"]), skills={"git": git})
    running = enforcer.admit("Bash", {"command": "git log"})
    told = enforcer.settle(running, arguments={"command": "rm -rf /"})
    assert [one.violation_type for one in told.violations] == ["tool_outside_skill"]
    assert enforcer.finish().verdict == "pass_with_deviations"


@pytest.mark.parametrize("tools", [(), ("sign",)])
def test_a_host_who_closes_what_nobody_approved_is_noted(tools):
    enforcer = held(step("a", *tools, kind="approval"), step("b", "pay"))
    enforcer.complete_current_step("fine")
    assert "approval_missing" in kinds(enforcer)


@pytest.mark.parametrize("by", [None, 5, "\u200b", " \u202e"])
def test_an_approval_is_somebody_s(by):
    enforcer = held(step("a", kind="approval"))
    with refused_as("nobody_named"):
        enforcer.approve("a", by)


def test_what_was_finished_and_goes_on_is_judged_again():
    enforcer = held(step("a", "scan"))
    assert enforcer.finish().verdict == "incomplete"
    call(enforcer, "scan")
    assert (enforcer.state.verdict, enforcer.run.verdict) == (None, None)
    assert enforcer.finish().verdict == enforcer.run.verdict == "pass"


def test_what_people_say_is_kept_without_known_secrets():
    enforcer = held(
        step("a", "scan", required=False),
        step("b", kind="approval"),
        step("c", kind="manual"),
        step("d", "pay"),
        redact={"keys": ["token"]},
    )
    secret = "t0p-s3cret-value"
    call(enforcer, "scan", {"token": secret}, "error")
    enforcer.skip_current_step(f"no {secret}")
    enforcer.approve("b", f"me {secret}", f"note {secret}")
    enforcer.complete("c", "me", f"note {secret}")
    enforcer.fail_current_step(f"failed {secret}")
    assert secret not in json.dumps(enforcer.dump())
    assert secret not in enforcer.plan.model_dump_json()


def test_what_an_admission_says_of_itself_steers_no_terminal():
    assert "\x1b" not in repr(held(step("a", "scan")).admit("\x1b[31mscan" + "x" * 500))
