"""A person declines to approve a step: nothing closes it then, and everything says who and why."""

import json

import pytest
from held_plans import call, held, kinds, statuses, step
from journal_samples import chained, document_of, lines_of, verified
from journals import Clock

import runbook_nb as rb
from runbook_nb.errors import PlaybookError
from runbook_nb.playbooks import PlaybookEnforcer
from runbook_nb.playbooks.eventlog import event_log
from runbook_nb.playbooks.events import Declined, from_dict
from runbook_nb.playbooks.hook import as_hook
from runbook_nb.playbooks.policy import EnforcementPolicy
from runbook_nb.render.bundle import HTML, TEXT
from runbook_nb.settings import settings

WHO, WHY = "R. Ito", "too much"


def asked(**more):
    """Give a plan that waits for the approval of a payment."""
    pay = step("pay", "refund", kind="approval", **more)
    plan = held(step("look", "scan"), pay, step("tell", "mail"))
    call(plan, "scan")
    return plan


def declined(**more):
    plan = asked(**more)
    plan.decline("pay", by=WHO, note=WHY)
    return plan


def code_of(act):
    with pytest.raises(PlaybookError) as refused:
        act()
    assert WHO in str(refused.value)
    assert WHY in str(refused.value)
    return refused.value.code


def shown(value):
    return "\n".join(value._repr_mimebundle_()[0][kind] for kind in (HTML, TEXT))


# -- what it does ------------------------------------------------------------------------------


def test_it_is_an_event_and_fails_the_step():
    plan = declined()
    event = plan.events[-1]
    assert isinstance(event, Declined)
    assert (event.step_id, event.who, event.note) == ("pay", WHO, WHY)
    assert from_dict(json.loads(json.dumps(event.to_dict()))) == event
    assert statuses(plan) == {"look": "completed", "pay": "failed"}
    assert plan.plan.step_executions["pay"].error == "declined by R. Ito: too much"


def test_nothing_closes_a_step_that_was_declined():
    plan = declined()
    assert code_of(lambda: plan.complete("pay", by="M. Osei")) == "step_declined"
    assert code_of(lambda: plan.approve("pay", by="M. Osei")) == "step_declined"
    assert code_of(lambda: plan.decline("pay", by="M. Osei")) == "step_declined"
    assert code_of(plan.complete_current_step) == "step_declined"
    assert plan.skip_current_step("no") is False
    assert code_of(lambda: plan.fail_current_step("it broke")) == "step_declined"
    assert statuses(plan)["pay"] == "failed"
    assert plan.run.state["pay"] == "declined"


@pytest.mark.parametrize("word", ["record", "fail", "block"])
def test_no_time_runs_on_under_a_step_that_was_declined(word):
    clock = Clock()
    with settings(clock=clock):
        pay = step("pay", "refund", kind="approval", timeout_seconds=5)
        plan = held(pay, step("tell", "mail"), policy={"profile": "safe", "on_timeout": word})
        plan.decline("pay", by=WHO, note=WHY)
        clock.seconds += 60
        plan.check_time()
        report = plan.finish()
    assert kinds(plan) == ["unresolved_step", "unresolved_step"]
    assert report.steps[0] == ("pay", "declined")
    assert plan.run.state["pay"] == "declined"


@pytest.mark.parametrize(
    "rules", [{}, {"on_stuck": "close"}, {"on_stuck": "fail"}, {"seen": "attempted"}]
)
def test_no_call_closes_it_either_also_where_calls_are_only_noted(rules):
    policy = EnforcementPolicy("safe", **rules)
    pay = step("pay", "refund", kind="approval", max_tool_calls=1)
    plan = held(pay, step("tell", "mail"), policy=policy, block_violations=False)
    plan.decline("pay", by=WHO, note=WHY)
    for tool in ("refund", "refund", "mail"):
        call(plan, tool)
    assert plan.current_step.id == "pay"
    assert "approval_declined" in kinds(plan)
    assert plan.finish().verdict == "declined"


def test_its_tools_are_refused_with_who_and_why():
    plan = declined()
    admission = plan.admit("refund")
    assert admission.allowed is False
    assert admission.violation.violation_type == "approval_declined"
    assert "declined by 'R. Ito': too much" in admission.violation.message
    assert admission.hints == ("Say what was found and stop: the run cannot go on past this step.",)
    assert plan.admit("mail").allowed is False


def test_the_run_ends_as_declined_never_as_fine():
    plan = declined()
    report = plan.finish()
    assert (report.verdict, report.passed) == ("declined", False)
    assert report.declined == {"pay": (WHO, WHY)}
    assert report.unresolved == ("pay", "tell")
    assert ("pay", "declined") in report.steps
    assert plan.run.verdict == "declined"
    assert plan.waits_for_person is False


def test_an_optional_one_may_still_be_passed_over():
    plan = declined(required=False)
    assert plan.admit("refund").hints[0] == "Leave this step out."
    call(plan, "mail")
    report = plan.finish()
    assert statuses(plan)["pay"] == "skipped"
    assert report.verdict == "pass_with_deviations"
    assert report.declined == {"pay": (WHO, WHY)}


def test_without_a_policy_that_passes_over_the_host_skips_it():
    pay = step("pay", "refund", kind="approval", required=False)
    plan = held(pay, step("tell", "mail"), policy=EnforcementPolicy(optional="blocking"))
    plan.decline("pay", by=WHO, note=WHY)
    assert WHO in plan.stuck_reason
    assert plan.skip_current_step("was declined", by=WHO) is True
    call(plan, "mail")
    assert plan.finish().passed


def test_where_steps_interleave_the_others_go_on():
    pay = step("pay", "refund", kind="approval")
    plan = held(pay, step("tell", "mail"), policy="safe", strict_sequence=False)
    plan.decline("pay", by=WHO, note=WHY)
    call(plan, "mail")
    assert statuses(plan) == {"pay": "failed", "tell": "completed"}
    assert plan.finish().verdict == "declined"

    assert plan.admit("refund").hints == ("Leave this step out.",)
    assert "Other steps may still be done" in plan.brief()


@pytest.mark.parametrize("word", ["ask", "fail", "close"])
def test_a_person_who_is_due_elsewhere_is_not_stuck_for_it(word):
    policy = EnforcementPolicy("safe", on_stuck=word)
    pay = step("pay", "refund", kind="approval")
    plan = held(step("look", kind="manual"), pay, policy=policy, strict_sequence=False)
    plan.decline("pay", by=WHO, note=WHY)
    plan.admit("refund")
    assert plan.stuck_reason is None
    assert statuses(plan) == {"pay": "failed"}
    assert "waiting for a person at step 1 of 2, look" in repr(plan)
    plan.complete("look", by="M. Osei")
    assert WHO in plan.stuck_reason


def test_setting_the_plan_back_asks_again():
    plan = declined()
    plan.reset(by=WHO)
    call(plan, "scan")
    assert plan.waits_for_person is True
    plan.approve("pay", by=WHO)
    assert plan.admit("refund").allowed


# -- what cannot be declined -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (lambda plan: plan.decline("look", by=WHO), "not_its_turn"),
        (lambda plan: plan.decline("payy", by=WHO), "no_such_step"),
        (lambda plan: plan.decline("pay", by=" "), "nobody_named"),
    ],
)
def test_what_cannot_be_declined_is_refused(act, code):
    with pytest.raises(PlaybookError) as refused:
        act(asked())
    assert refused.value.code == code


def test_a_step_that_asks_for_no_approval_or_has_one_is_not_declined():
    plan = held(step("look", "scan"))
    with pytest.raises(PlaybookError) as refused:
        plan.decline("look", by=WHO)
    assert refused.value.code == "not_an_approval"
    plan = asked()
    plan.approve("pay", by="M. Osei")
    with pytest.raises(PlaybookError, match=r"was approved by 'M\. Osei'") as refused:
        plan.decline("pay", by=WHO)
    assert refused.value.code == "already_approved"


# -- what says so ------------------------------------------------------------------------------


def test_every_view_says_who_declined_and_why():
    plan = declined()
    report = plan.finish()
    for value in (plan, plan.run, plan.plan, report):
        told = shown(value)
        assert WHO in told, value
        assert WHY in told, value
        assert "declined" in told, value
    assert "declined at step 2 of 3" in repr(declined())
    assert "declined" in plan.flowchart().mermaid


def test_a_report_tells_it_once():
    told = str(declined().finish())
    assert told.count(WHO) == 1
    assert "step pay   not done, declined by R. Ito: too much" in told
    assert "stuck" not in told


@pytest.mark.parametrize("how", ["by a call", "by a person", "at the end"])
def test_who_declined_an_optional_one_is_told_when_it_was_passed_over(how):
    pay = step("pay", "refund", kind="approval", required=False)
    tell = step("tell", "mail", required=how == "by a call")
    plan = held(step("look", "scan"), pay, tell)
    call(plan, "scan")
    plan.decline("pay", by=WHO, note=WHY)
    if how == "by a person":
        plan.skip_current_step("so be it", by="M. Osei")
        assert "so be it" in shown(plan)
    elif how == "by a call":
        call(plan, "mail")
    plan.finish()
    assert statuses(plan)["pay"] == "skipped"
    for value in (plan, plan.run):
        assert f"declined by {WHO}: {WHY}" in str(value)
    account = plan.run.account
    assert account["report"]["declined"] == "step 'pay' by R. Ito"
    entry = {"what": "optional step 'pay': it was declined by R. Ito, and passed by", "why": WHY}
    assert entry in account["coverage"]["not_checked"]


def test_the_runs_of_a_hook_tell_it():
    plan = declined()
    card = str(as_hook(plan))
    assert "declined" in card
    assert "stuck" not in card


def test_the_brief_tells_who_and_asks_for_nothing_more():
    for mode in ("plan", "step", "hand"):
        told = declined().brief(mode)
        assert "declined by 'R. Ito': too much" in told
        assert "still to be called" not in told
        assert "wait for it" not in told
        assert "--done" not in told
    assert "2. pay: Do pay. (declined, approval, now)" in declined().brief()


def test_the_answer_says_it_in_its_rows_its_report_and_its_ledger():
    plan = declined()
    plan.finish()
    account = plan.run.account
    assert account["verdicts"][1]["verdict"] == "approval declined"
    assert account["report"]["outcome"] == "declined"
    assert account["report"]["declined"] == "step 'pay' by R. Ito"
    entry = {"what": "step 'pay': it was declined by R. Ito", "why": WHY}
    assert entry in account["coverage"]["not_checked"]


def test_a_row_of_the_record_says_it():
    plan = declined()
    assert any("Declined by R. Ito: too much" in str(row) for row in plan.run.walk)
    assert plan.run.state["pay"] == "declined"
    assert plan.run.pause["reason"] == "step pay waits for nothing any more: it was declined"


def test_the_event_log_has_it():
    (row,) = (one for one in event_log([declined()]) if one["outcome"] == "declined")
    assert (row["concept:name"], row["org:resource"]) == ("pay", WHO)


def test_secrets_in_a_note_are_hidden():
    plan = asked()
    plan = PlaybookEnforcer.from_playbook(plan.plan.playbook, redact={"values": ["hunter2!"]})
    call(plan, "scan")
    plan.decline("pay", by=WHO, note="it is hunter2!")
    assert "hunter2!" not in json.dumps(plan.dump()) + shown(plan) + plan.brief()


def test_a_note_that_ends_a_sentence_ends_it_once():
    plan = asked()
    plan.decline("pay", by=WHO, note="Not today.")
    assert "was declined by 'R. Ito': Not today.\n" in plan.brief()
    assert "Not today; " in plan.stuck_reason


def test_a_call_that_came_before_it_is_told_in_words():
    plan = asked()
    plan.admit("refund")
    assert "refused 1 refund: not approved yet" in str(plan)


@pytest.mark.parametrize("tool", ["t0p-hunter2!", "hunter2!"])
def test_secrets_in_the_name_of_a_tool_are_hidden_in_what_refuses_it(tool):
    pay = step("pay", tool, kind="approval")
    plan = held(pay, step("tell", "mail"), redact={"values": ["hunter2!"]})
    plan.decline("pay", by=WHO, note="no hunter2!")
    work = plan.step("pay", WHO)
    assert work.ask() is False
    admission = plan.admit(tool)
    ticket = as_hook(plan).admit(tool)
    for told in (admission, admission.violation, admission.refusal, admission.hints, ticket):
        assert "hunter2!" not in repr(told)
    assert "hunter2!" not in shown(work) + str(work.refusal)
    assert admission.tool == tool


# -- what is kept ------------------------------------------------------------------------------


def test_a_plan_that_is_taken_up_again_is_still_declined():
    plan = PlaybookEnforcer.load(json.loads(json.dumps(declined().dump())))
    assert code_of(lambda: plan.approve("pay", by=WHO)) == "step_declined"
    assert plan.report().verdict == "declined"


def test_a_journal_verifies_and_one_that_hides_it_does_not():
    document = document_of(lines_of("declined"))
    assert verified(chained(document)).ok
    found = [one for one in document["lines"] if one["event"]["kind"] == "finished"]
    assert found[0]["event"]["verdict"] == "declined"
    found[0]["event"]["verdict"] = "incomplete"
    assert not verified(chained(document)).ok


def test_an_answer_made_of_it_verifies():
    plan = declined()
    plan.finish()
    made = rb.runbook_as_tool(name="r", description="R.", procedure=lambda tools: plan.procedure())
    answer = made.execute_sync({})
    assert answer["result"]["verdicts"][1]["verdict"] == "approval declined"
    assert answer.verify().ok
