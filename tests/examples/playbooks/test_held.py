"""The shipped playbooks held over their own tools: done, refused, stuck and left incomplete."""

from __future__ import annotations

import pytest

from runbook_nb.examples.playbooks import nist_800_61_ir, refund_escalation, shipped_playbook
from runbook_nb.playbooks import PlaybookEnforcer


class Held:
    """Calls the tools of an exercise as far as the playbook lets them."""

    def __init__(self, name, exercise, policy=None):
        book = shipped_playbook(name).load()
        self.enforcer = PlaybookEnforcer.from_playbook(book, policy=policy)
        self.exercise = exercise

    def __call__(self, tool, **arguments):
        admission = self.enforcer.admit(tool, arguments)
        if not admission.allowed:
            return "refused"
        try:
            result = getattr(self.exercise, tool)(**arguments)
        except Exception as error:  # what a tool raises is an outcome like any other
            self.enforcer.settle(admission, "error", error=str(error))
            return "failed"
        self.enforcer.settle(admission, "ok", result)
        return "ok"

    @property
    def at(self):
        step = self.enforcer.current_step
        return step.id if step else None


@pytest.fixture
def incident():
    def begin(unreachable=0, policy=None):
        held = Held("nist-800-61-ir", nist_800_61_ir.Exercise(unreachable), policy)
        assert held("query_siem", query="index=alert") == "ok"
        assert held("query_siem", query="index=auth host=web-3") == "ok"
        assert held("enrich_indicator", indicator="203.0.113.66", source="reputation") == "ok"
        assert held("enrich_indicator", indicator="203.0.113.66", source="whois") == "ok"
        assert (
            held("enrich_indicator", indicator="updates-cdn.example", source="reputation") == "ok"
        )
        assert held.at == "notify"
        return held

    return begin


def test_an_incident_is_worked_through_to_the_end(incident):
    held = incident()
    assert held("page_owner", service="shop", message="web-3 goes off the network") == "ok"
    for tool in ("isolate_host", "restore_host", "watch_host"):
        assert held(tool, host="web-3") == "ok"
    assert held("write_review", title="Sign-in by a stranger", text="One page.") == "ok"
    report = held.enforcer.finish()
    assert (report.verdict, report.unresolved, report.deviations) == ("pass", (), ())
    assert held.enforcer.adherence_score() == 1.0
    assert held.exercise.watched == ["web-3"]


def test_the_owner_may_be_told_later_and_the_step_passed_over(incident):
    held = incident()
    assert held("isolate_host", host="web-3") == "ok"
    assert held.enforcer.plan.step_executions["notify"].status == "skipped"
    assert held.at == "recovery"


def test_a_step_stays_open_until_it_was_looked_at_often_enough():
    held = Held("nist-800-61-ir", nist_800_61_ir.Exercise())
    assert held("query_siem", query="index=alert") == "ok"
    assert held.at == "detection"
    assert held("query_siem", query="index=auth host=web-3") == "ok"
    for indicator in ("203.0.113.66", "updates-cdn.example", "198.51.100.20"):
        assert held.at == "analysis"
        held("enrich_indicator", indicator=indicator, source="reputation")
    assert held.at == "notify"
    (violation,) = held.enforcer.violations
    assert violation.violation_type == "evidence_incomplete", "nobody asked for a registrant"
    assert "whois" in violation.message


def test_nothing_is_isolated_before_it_was_looked_at():
    held = Held("nist-800-61-ir", nist_800_61_ir.Exercise())
    assert held("isolate_host", host="web-3") == "refused"
    assert held.exercise.isolated == []
    assert held.enforcer.finish().verdict == "incomplete"


def test_a_host_that_never_answers_leaves_the_plan_where_it_is(incident):
    held = incident(unreachable=9)
    told = [held("isolate_host", host="web-3") for _ in range(4)]
    assert set(told) <= {"failed", "refused"}
    assert held.at == "containment"
    assert held("restore_host", host="web-3") == "refused"
    report = held.enforcer.finish()
    assert report.verdict == "incomplete"
    assert {"containment", "recovery"} <= set(report.unresolved)


def test_where_failures_use_up_the_limit_the_plan_is_stuck_and_says_so(incident):
    held = incident(unreachable=9, policy={"cap_counts": "all", "on_cap": "fail"})
    told = [held("isolate_host", host="web-3") for _ in range(4)]
    assert told == ["failed", "failed", "failed", "refused"]
    assert held("query_siem", query="host=web-3") == "refused"
    assert held.enforcer.is_stuck
    assert "containment" in held.enforcer.stuck_reason
    report = held.enforcer.finish()
    assert (report.verdict, len(report.refused)) == ("incomplete", 2)
    assert report.unresolved == ("containment", "recovery")


@pytest.fixture
def refund():
    held = Held("refund-escalation", refund_escalation.Exercise())
    held("lookup_order", order="R-1043")
    held("lookup_customer", customer="C-9")
    held("check_refund_policy", order="R-1043")
    return held


def test_nothing_is_paid_before_somebody_approved(refund):
    assert refund.at == "approve"
    assert refund("issue_refund", order="R-1043", amount=640.0) == "refused"
    refund.enforcer.approve("approve", by="r.osei", note="Damaged on arrival, photographs seen.")
    assert refund("issue_refund", order="R-1043", amount=640.0) == "ok"
    assert refund("issue_refund", order="R-1043", amount=640.0) == "refused", "only once"
    assert [one["amount"] for one in refund.exercise.refunds] == [640.0]
    report = refund.enforcer.finish()
    assert report.unresolved == ()


def test_an_agent_that_would_rather_be_done_is_held_to_the_order():
    held = Held("refund-escalation", refund_escalation.Exercise())
    *before, last = refund_escalation.IMPATIENT
    told = [[held(tool, **arguments) for tool, arguments in turn] for turn in before]
    assert told == [["refused"], ["ok", "ok"], ["refused"], ["ok"], ["refused"]]
    held.enforcer.approve("approve", by="r.osei", note="Damaged on arrival, photographs seen.")
    assert [held(tool, **arguments) for tool, arguments in last] == ["ok", "refused", "ok"]
    report = held.enforcer.finish()
    assert (report.verdict, report.unresolved) == ("pass_with_deviations", ())
    assert [call.tool for call in report.refused] == ["issue_refund"] * 4
    assert [one["amount"] for one in held.exercise.refunds] == [640.0], (
        "paid once, as the policy says"
    )


def test_a_refund_is_checked_before_it_is_decided():
    held = Held("refund-escalation", refund_escalation.Exercise())
    assert held("check_refund_policy", order="R-1043") == "refused"
    assert held("lookup_order", order="R-9") == "failed"
    assert held("lookup_order", order="R-1042") == "ok"
    assert held("lookup_customer", customer="C-7") == "ok"
    assert held.at == "check_eligibility"
