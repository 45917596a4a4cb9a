"""The form of a playbook: what is asked of a person, handed in, refused, and shown without one."""

import gc
import json

import pytest
from untrusted import HINTS, dropped, reading, sanitized

import runbook_nb as rb
from runbook_nb.errors import DefinitionError, PlaybookError
from runbook_nb.playbooks import PlaybookEnforcer
from runbook_nb.playbooks.model import Playbook, PlaybookStep
from runbook_nb.render.bundle import HTML, TEXT
from runbook_nb.settings import settings
from runbook_nb.widgets.base import MAX_CSS, MAX_JS, MAX_STATE
from runbook_nb.widgets.playbookform import MAX_STEPS, PlaybookForm

HOSTILE = "</style><img src=x onerror=alert(1)>\u202e|\\N"
SECRET = "hunter2!"


def plan_of(*steps, **options):
    book = Playbook(id="refund", name="Refund escalation", steps=list(steps))
    return PlaybookEnforcer.from_playbook(book, **options)


def manual(name="review", **more):
    return PlaybookStep(id=name, description="Read it twice.", kind="manual", **more)


def approval(name="approve", **more):
    return PlaybookStep(id=name, description="Decide.", kind="approval", **more)


def pays(**more):
    return PlaybookStep(id="pay", description="Pay once.", expected_tools=["pay"], **more)


def handed_in(form, **about):
    """Hand the form in as its script does."""
    given = {"step": form.asks["step"], **about}
    return form.answer({"ask": "hand_in", "id": "1", "about": given})


# -- what is asked ---------------------------------------------------------------------------


def test_it_asks_for_what_the_step_at_the_pointer_waits_for():
    plan = plan_of(manual(hints=["Mind the amount."]), approval(), pays())
    form = PlaybookForm(plan)
    assert (form.asks["kind"], form.asks["step"]) == ("manual", "review")
    assert form.asks["verb"] == "Close the step"
    assert form.asks["lines"] == ["Mind the amount."]
    plan.complete("review", by="R. Ito")
    assert (form.asks["kind"], form.asks["verb"]) == ("approval", "Approve")
    plan.approve("approve", by="M. Osei")
    assert form.asks["kind"] == ""
    assert "done by calls of 'pay'" in form.asks["about"]
    plan.settle(plan.admit("pay"))
    assert form.asks == {"kind": "", "step": "", "about": "Every step is closed.", "lines": []}


def test_an_approval_before_tools_asks_no_more_once_it_is_given():
    plan = plan_of(approval("pay", expected_tools=["pay"]))
    form = PlaybookForm(plan, who="M. Osei")
    assert form.asks["verb"] == "Approve"
    assert form.hand_in(note="go")
    assert form.asks["kind"] == ""
    assert form.asks["about"] == "Step pay is done by calls of 'pay'."
    plan.settle(plan.admit("pay"))
    assert form.asks["about"] == "Every step is closed."


def test_an_approval_can_be_declined_and_the_form_says_who_did():
    plan = plan_of(approval("pay", expected_tools=["pay"]))
    form = PlaybookForm(plan, who="M. Osei")
    assert form.asks["other"] == "Decline"
    assert handed_in(form, who="M. Osei", note="too much", decline=True)["answer"]["done"]
    assert form.said == "step 'pay' is declined"
    assert form.asks["kind"] == ""
    assert form.asks["about"] == "The step 'pay' was declined by 'M. Osei': too much."
    assert "declined" in str(form.steps[0]["status"])
    assert plan.report().declined == {"pay": ("M. Osei", "too much")}


def test_only_an_approval_offers_to_be_declined():
    form = PlaybookForm(plan_of(manual()), who="M. Osei")
    assert "other" not in form.asks
    with pytest.raises(PlaybookError, match="not one that is approved"):
        form.hand_in(decline=True)


def test_it_asks_for_what_waits_behind_an_optional_step():
    plan = plan_of(pays(required=False), approval(hints=["Mind the amount."]))
    form = PlaybookForm(plan, who="R. Ito")
    assert (form.asks["kind"], form.asks["step"]) == ("approval", "approve")
    way = "Step 'pay' is optional and may be passed over: behind it, step 'approve' waits for"
    assert form.asks["lines"] == [f"{way} an approval.", "Mind the amount."]
    assert "step approve waits for an approval" in str(form)
    handed_in(form, who="R. Ito", note="small")
    assert (plan.is_complete, form.said) == (True, "step 'approve' is approved")
    assert plan.plan.step_executions["pay"].status == "skipped"
    needed = PlaybookForm(plan_of(pays(), approval()))
    assert needed.asks["kind"] == ""


def test_where_steps_interleave_it_asks_for_any_that_waits():
    book = Playbook(id="r", name="R", steps=[approval(), pays(), manual()], strict_sequence=False)
    form = PlaybookForm(PlaybookEnforcer.from_playbook(book))
    assert form.asks["step"] == "approve"
    assert form.hand_in("R. Ito", "too much", decline=True)
    assert (form.asks["kind"], form.asks["step"]) == ("manual", "review")
    assert form.asks["lines"] == []
    assert form.hand_in("R. Ito")
    assert form.asks["about"] == "The step 'approve' was declined by 'R. Ito': too much."


def test_a_stuck_step_is_freed_by_a_person():
    plan = plan_of(pays(max_tool_calls=1), policy={"cap_counts": "all", "on_cap": "fail"})
    form = PlaybookForm(plan, who="R. Ito")
    assert form.asks["kind"] == ""
    plan.settle(plan.admit("pay"), "error", error="no answer")
    assert form.asks["kind"] == "stuck"
    assert plan.stuck_reason in form.asks["lines"]
    assert form.hand_in(note="paid at the counter")
    assert plan.plan.step_executions["pay"].result == "paid at the counter"


def test_the_steps_say_where_they_stand():
    plan = plan_of(manual(), pays(required=False))
    form = PlaybookForm(plan)
    assert [(one["place"], one["name"], one["here"], one["optional"]) for one in form.steps] == [
        (1, "review", True, False),
        (2, "pay", False, True),
    ]
    plan.complete("review", by="R. Ito")
    words = [one["status"][0] for one in form.steps]
    assert words == ["completed", "pending"]
    assert all(one["status"][2] for one in form.steps), "a sign beside each word"


def test_of_many_steps_those_around_the_pointer_are_listed():
    plan = plan_of(*(manual(f"s{n}") for n in range(200)))
    for n in range(100):
        plan.complete(f"s{n}", by="R. Ito")
    form = PlaybookForm(plan)
    assert len(form.steps) == MAX_STEPS
    assert [one["name"] for one in form.steps if one["here"]] == ["s100"]
    assert len(json.dumps(form.get_state(), default=str)) < MAX_STATE


# -- handing in ------------------------------------------------------------------------------


def test_what_is_handed_in_is_who_and_a_note():
    plan = plan_of(manual(), approval())
    form = PlaybookForm(plan)
    answer = handed_in(form, who="R. Ito", note="All there.")
    assert answer["answer"]["done"] is True
    event = plan.events[-1]
    assert (event.kind, event.by, event.who, event.note) == (
        "closed",
        "person",
        "R. Ito",
        "All there.",
    )
    assert form.said == "step 'review' is closed"
    assert handed_in(form, who="M. Osei", note="")["answer"]["said"] == "step 'approve' is approved"
    assert [one.who for one in plan.events if one.kind == "approved"] == ["M. Osei"]


@pytest.mark.parametrize("who", ["", "   "])
def test_nobody_is_nobody(who):
    plan = plan_of(manual())
    form = PlaybookForm(plan)
    answer = handed_in(form, who=who, note="x")
    assert answer["answer"]["done"] is False
    assert "required" in answer["answer"]["faults"]["who"]
    assert not plan.is_complete
    form.who = "R. Ito"
    assert form.faults == {}


def test_what_is_asked_no_more_cannot_be_handed_in():
    plan = plan_of(manual(), manual("again"))
    form = PlaybookForm(plan, who="R. Ito")
    plan.complete("review", by="M. Osei")
    answer = handed_in(form, step="review", who="R. Ito", note="x")
    assert "gone on since" in answer["fault"]["what"]
    assert not plan.is_complete
    assert handed_in(form, who="R. Ito")["answer"]["done"]
    with pytest.raises(DefinitionError, match="Every step is closed"):
        form.hand_in()


def test_what_the_plan_refuses_is_shown():
    plan = plan_of(manual())
    form = PlaybookForm(plan, who="R. Ito")
    plan.__dict__["complete"] = lambda *given: (_ for _ in ()).throw(
        PlaybookError("not now", fix="wait")
    )
    assert handed_in(form, who="R. Ito")["fault"] == {"what": "not now", "fix": "wait"}


def test_only_an_enforcer_will_do():
    with pytest.raises(DefinitionError, match="takes an enforcer, not Playbook"):
        PlaybookForm(plan_of(manual()).plan.playbook)


def test_a_form_that_is_closed_or_gone_hears_no_more():
    plan = plan_of(manual(), manual("again"))
    form = PlaybookForm(plan)
    form.close()
    plan.complete("review", by="R. Ito")
    assert form.asks["step"] == "review"
    assert plan.dropped_observers == ()
    PlaybookForm(plan)
    gc.collect()
    plan.complete("again", by="R. Ito")
    assert plan.dropped_observers == ()


# -- what is shown ---------------------------------------------------------------------------


def test_it_says_in_a_line_what_is_asked_and_what_was_done():
    plan = plan_of(manual(), pays())
    form = PlaybookForm(plan, who="R. Ito")
    assert form.line() == "PlaybookForm refund · safe · step review waits for a person to close it"
    form.hand_in()
    assert "nothing is asked of a person" in form.line()
    assert form.line().endswith("step 'review' is closed")


def test_the_static_view_has_the_plan_below_what_is_asked():
    with settings(static=True):
        form = PlaybookForm(plan_of(manual(), pays()), who="R. Ito")
        data, _ = form._repr_mimebundle_()
    assert set(data) == {HTML, TEXT}
    assert "Asked of a person" in data[HTML]
    assert "Read it twice." in data[TEXT]
    assert "2  pending" in data[TEXT]
    assert "To be done" not in data[TEXT] + data[HTML]  # it is told above, once
    assert data[TEXT].startswith("PlaybookForm refund")


def test_hostile_text_stays_text_also_untrusted():
    step = PlaybookStep(id=HOSTILE, description=HOSTILE, kind="manual", hints=[HOSTILE])
    with settings(static=True):
        form = PlaybookForm(plan_of(step), who=HOSTILE)
        page = form._repr_mimebundle_()[0][HTML]
    assert "<img src=x" not in page
    assert set(dropped(page)) <= HINTS
    assert reading(sanitized(page)) == reading(page)
    assert "\u202e" not in page
    assert "\u202e" not in json.dumps(form.get_state(), default=str, ensure_ascii=False)


def test_secrets_are_in_neither_state_nor_view():
    step = manual(hints=[f"Not {SECRET}."])
    with settings(static=True):
        form = PlaybookForm(plan_of(step, pays(), redact={"values": [SECRET]}))
        handed_in(form, who=f"R. Ito {SECRET}", note=f"it was {SECRET}")
        state = json.dumps(form.get_state(), default=str)
        data, _ = form._repr_mimebundle_()
    assert SECRET not in state
    assert SECRET not in data[TEXT] + data[HTML]
    assert "[REDACTED]" in form.who


def test_a_note_is_in_no_state():
    form = PlaybookForm(plan_of(manual(), manual("again")))
    form.hand_in(who="R. Ito", note="only for the record")
    assert "only for the record" not in json.dumps(form.get_state(), default=str)


def test_the_same_plan_gives_the_same_state():
    def state():
        given = PlaybookForm(plan_of(manual(), pays()), who="R. Ito").get_state()
        return {name: value for name, value in given.items() if name not in ("layout", "style")}

    assert json.dumps(state(), default=str) == json.dumps(state(), default=str)


def test_script_and_sheet_are_small_and_never_write_markup():
    assert len(PlaybookForm._esm.encode()) <= MAX_JS
    assert len(PlaybookForm._css.encode()) <= MAX_CSS
    assert "innerHTML" not in PlaybookForm._esm
    assert rb.PlaybookForm is PlaybookForm
