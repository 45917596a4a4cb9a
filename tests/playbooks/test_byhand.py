"""A person's work under a step goes through the door that everybody goes through."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runbook_nb.errors import PlaybookError, ToolRefused
from runbook_nb.playbooks import PlaybookEnforcer
from runbook_nb.playbooks.brief import MODES
from runbook_nb.playbooks.model import Playbook, PlaybookStep

ME = "R. Ito"


def plan_of(*steps, **options):
    book = Playbook(id="ir", name="Response", steps=list(steps))
    return PlaybookEnforcer.from_playbook(book, **options)


def looks(**more):
    return PlaybookStep(id="look", description="Look.", expected_tools=["scan"], **more)


def acts(**more):
    return PlaybookStep(id="act", description="Act.", expected_tools=["isolate"], **more)


def test_the_block_is_a_call_admitted_before_and_settled_after():
    plan = plan_of(looks(), acts())
    with plan.step("look", by=ME, note="all of it", arguments={"host": "web-3"}) as work:
        assert [call.outcome for call in plan.calls] == [None]
        assert work.word == "running"
        work.result = {"hosts": 2}
    (call,) = plan.calls
    assert call.arguments == {"by": ME, "host": "web-3", "note": "all of it"}
    assert (call.tool, call.outcome, work.word) == ("scan", "ok", "done")
    assert work.settlement.closed
    assert call.started <= call.ended


def test_it_does_what_admit_and_settle_do():
    by_hand, by_calls = (plan_of(looks(min_tool_calls=2), acts()) for _ in range(2))
    for _ in range(2):
        with by_hand.step("look", by=ME):
            pass
        by_calls.settle(by_calls.admit("scan", {"by": ME}))
    assert by_hand.step("look", by=ME).ask() is False
    assert [one.kind for one in by_hand.events] == [one.kind for one in by_calls.events]


def test_work_that_is_refused_is_not_begun():
    plan = plan_of(looks(), acts())
    begun = []
    with pytest.raises(ToolRefused) as refused, plan.step("act", by=ME):
        begun.append(True)
    assert not begun
    assert refused.value.code == "unexpected_tool"
    assert refused.value.facts["step_id"] == "look"
    assert [call.outcome for call in plan.calls] == ["refused"]


def test_an_error_is_the_error_of_the_call_and_goes_on_its_way():
    plan = plan_of(looks(), acts())
    work = plan.step("look", by=ME)
    with pytest.raises(ConnectionError, match="no answer"), work:
        raise ConnectionError("no answer")
    assert (work.word, plan.calls[0].outcome) == ("failed", "error")
    assert plan.calls[0].error == "ConnectionError: no answer"
    assert "no answer" in str(work)
    stopped = plan.step("look", by=ME)
    with pytest.raises(KeyboardInterrupt), stopped:
        raise KeyboardInterrupt
    assert (stopped.word, plan.calls[1].outcome) == ("cancelled", "cancelled")


def test_a_person_approves_behind_an_optional_step():
    optional = PlaybookStep(id="warn", description="Warn.", expected_tools=["post"], required=False)
    sign = PlaybookStep(id="sign", description="Sign.", kind="approval")
    plan = plan_of(optional, sign, acts())
    assert plan.step("sign", by=ME).ask()
    assert len(plan.events) == 1  # asking passes nothing over
    refused = plan.step("act", by=ME)
    assert not refused.ask()
    assert "step 'sign' waits for an approval" in str(refused)
    with plan.step("sign", by=ME, note="seen", done=True) as work:
        pass
    assert (work.word, work.is_closed, plan.current_step.id) == ("done", True, "act")
    assert plan.plan.step_executions["warn"].status == "skipped"


def test_asking_twice_asks_once():
    plan = plan_of(looks())
    work = plan.step("look", by=ME)
    assert work.ask()
    assert work.ask()
    with work:
        pass
    assert [call.outcome for call in plan.calls] == ["ok"]
    with pytest.raises(PlaybookError, match="done already"), work:
        pass


def test_work_of_a_closed_step_is_neither_begun_nor_held_against_anybody():
    plan = plan_of(looks(), acts())
    with plan.step("look", by=ME):
        pass
    before = plan.events
    work = plan.step("look", by=ME)
    assert not work.ask()
    assert work.word == "closed"
    with pytest.raises(ToolRefused) as refused, work:
        pass
    assert refused.value.code == "step_closed"
    assert plan.events == before


def test_a_call_that_would_be_another_steps_is_not_made():
    first = PlaybookStep(id="first", description="First.", expected_tools=["scan"])
    plan = plan_of(first, PlaybookStep(id="second", description="Again.", expected_tools=["scan"]))
    work = plan.step("second", by=ME)
    assert not work.ask()
    assert "belongs to step 'first'" in work.why
    assert [(call.outcome, call.counted) for call in plan.calls] == [("cancelled", False)]
    assert plan.current_step.id == "first"


def test_of_steps_that_share_an_id_the_first_open_one_is_meant():
    plan = plan_of(looks(), looks(), policy="compat")
    for place in (1, 2):
        with plan.step("look", by=ME):
            pass
        assert plan.plan.current_step_index == place
    assert plan.is_complete


def test_where_calls_are_only_noted_the_work_goes_on():
    plan = plan_of(looks(), acts(), block_violations=False)
    with plan.step("act", by=ME) as work:
        pass
    assert work.word == "done"
    assert [one.violation_type for one in plan.violations] == ["unexpected_tool"]


def test_an_optional_step_is_passed_over_as_by_any_call():
    page = PlaybookStep(id="page", description="Page.", expected_tools=["page"], required=False)
    plan = plan_of(page, acts())
    with plan.step("act", by=ME):
        pass
    assert plan.plan.step_executions["page"].status == "skipped"
    assert plan.is_complete


def test_a_step_without_tools_has_a_turn_and_no_calls():
    plan = plan_of(looks(), PlaybookStep(id="judge", description="Decide.", kind="manual"))
    with pytest.raises(ToolRefused, match="not the turn"), plan.step("judge", by=ME):
        pass
    with plan.step("look", by=ME):
        pass
    with plan.step("judge", by=ME, note="one", done=True) as work:
        pass
    assert work.is_closed
    assert {call.tool for call in plan.calls} == {"scan"}
    closed = plan.events[-1]
    assert (closed.kind, closed.by, closed.who, closed.note) == ("closed", "person", ME, "one")


def test_an_approval_is_given_and_its_tools_are_called_after_it():
    pay = PlaybookStep(id="pay", description="Pay.", kind="approval", expected_tools=["pay"])
    plan = plan_of(pay)
    with pytest.raises(ToolRefused) as refused, plan.step("pay", by=ME):
        pass
    assert refused.value.code == "approval_missing"
    plan.step("pay", by="M. Osei", note="seen").close()
    assert not plan.is_complete
    with plan.step("pay", by=ME, done=True):
        pass
    assert plan.is_complete
    assert [call.outcome for call in plan.calls] == ["refused", "ok"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"step": "lok", "by": ME}, "no_such_step"),
        ({"step": "look", "by": "  "}, "nobody_named"),
        ({"step": "both", "by": ME}, "which_tool"),
    ],
)
def test_what_means_nothing_is_said_before_anything_is_asked(arguments, code):
    both = PlaybookStep(id="both", description="Two.", expected_tools=["scan", "isolate"])
    plan = plan_of(looks(), both)
    with pytest.raises(PlaybookError) as wrong:
        plan.step(**arguments)
    assert wrong.value.code == code
    assert wrong.value.fix
    assert plan.calls == ()


def test_secrets_are_in_no_view_of_it():
    plan = plan_of(looks(), acts(), redact={"values": ["hunter2!"]})
    work = plan.step("look", by="hunter2!", note="it is hunter2!")
    with pytest.raises(ValueError, match="hunter2"), work:
        raise ValueError("hunter2!")
    shown = work._repr_mimebundle_()[0]
    assert "hunter2!" not in str(shown)
    assert "hunter2!" not in str(plan.calls[0].arguments)
    assert "[REDACTED]" in str(shown)


def test_a_person_is_told_how_to_close_what_a_model_waits_for():
    plan = plan_of(PlaybookStep(id="judge", description="Decide.", kind="manual"))
    assert "wait for it" in plan.brief("step")
    assert "enforcer.complete(…)" in plan.brief("hand")
    assert MODES[-1] == "hand"
    with pytest.raises(PlaybookError, match="hand"):
        plan.brief("hands")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["look", "act"]), st.sampled_from(["ok", "raise"])), max_size=12
    )
)
def test_whoever_works_by_hand_cannot_close_a_step_without_a_call_that_succeeded(doings):
    plan = plan_of(looks(), acts())
    done = []
    for step, how in doings:
        try:
            with plan.step(step, by=ME):
                if how == "raise":
                    raise LookupError
            done.append(step)
        except (LookupError, ToolRefused):
            continue
    assert done == [call.step_id for call in plan.calls if call.outcome == "ok"]
    assert all(plan.plan.is_step_complete(step) == (step in done) for step in ("look", "act"))
    assert done in ([], ["look"], ["look", "act"])
    assert PlaybookEnforcer.load(plan.dump()).plan == plan.plan


ASKED = {
    "required_probes": [{"name": "sign-ins", "match": "index=auth", "description": "Seen."}],
    "checks": [{"name": "all hosts", "path": "host", "op": "eq", "value": "all"}],
}


def test_a_step_that_closes_without_its_evidence_says_so_and_with_it_does_not():
    plan = plan_of(looks(**ASKED), acts())
    with plan.step("look", by=ME, arguments={"host": "all"}) as work:
        pass
    assert "step is closed" in str(work)
    assert "Evidence not met, noted as a deviation: sign-ins\n" in str(work)
    other = plan_of(looks(**ASKED), acts())
    with other.step("look", by=ME, arguments={"host": "all", "index": "auth"}) as work:
        pass
    assert "not met" not in str(work)


def test_a_person_who_closes_without_evidence_is_told_so():
    plan = plan_of(looks(**ASKED), acts(), policy={"evidence": "hold"})
    with plan.step("look", by=ME, done=True) as work:
        pass
    assert work.is_closed
    assert "noted as a deviation: sign-ins, all hosts" in str(work)


def test_what_was_shown_is_not_asked_for_again():
    plan = plan_of(looks(**ASKED, min_tool_calls=2), acts(), policy={"evidence": "hold"})
    assert "sign-ins: Seen." in plan.brief("step")
    with plan.step("look", by=ME, arguments={"index": "auth"}) as work:
        pass
    for told in (plan.brief("step"), plan.brief("plan"), " ".join(str(work).split())):
        assert "sign-ins" not in told
        assert 'Evidence asked for: all hosts: arguments.host = "all"' in told
