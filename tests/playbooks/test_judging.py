"""May this call be made: each rule of admission under each word of the policy."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from held_plans import call, held, kinds, statuses, step
from hypothesis import given, settings
from hypothesis import strategies as st

from runbook_nb.errors import PlaybookError
from runbook_nb.playbooks import EnforcementPolicy, RequiredProbe
from runbook_nb.playbooks.judging import steps_past

COMPAT = "compat"


def skill(*tools, **more):
    return SimpleNamespace(
        **{
            "allowed_tools": list(tools),
            "required_probes": [],
            "min_tool_calls": None,
            "max_tool_calls": None,
            **more,
        }
    )


# -- what may be passed over ------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=7))
def test_a_person_comes_as_far_as_a_call_and_never_past_a_required_step(required):
    def plan():
        kinds_ = [step(f"s{n}", f"t{n}", required=must) for n, must in enumerate(required)]
        return held(*kinds_)

    reach = next((n for n, must in enumerate(required) if must), len(required) - 1)
    terms, state = plan().terms, plan().state
    assert [(one.index, passed) for one, passed in steps_past(terms, state)] == [
        (n, tuple(range(n))) for n in range(1, reach + 1)
    ]
    for n in range(len(required)):
        by_call, by_hand = plan(), plan()
        assert by_call.may(f"t{n}") == (n <= reach)
        call(by_call, f"t{n}")
        if n > reach:
            with pytest.raises(PlaybookError, match="not the turn"):
                by_hand.complete(f"s{n}", by="ana")
            continue
        by_hand.complete(f"s{n}", by="ana")
        assert statuses(by_hand) == statuses(by_call)


# -- what may be called -----------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["safe", "compat"])
@pytest.mark.parametrize("tool", ["Scan", "scan ", "sc*", ""])
def test_names_compare_exactly(policy, tool):
    assert not held(step("a", "scan"), policy=policy).may(tool)


def test_an_unexpected_tool_is_refused_with_what_to_call():
    refused = held(step("a", "scan", "read", hints=["Look first."])).admit("pay")
    assert refused.violation.violation_type == "unexpected_tool"
    assert refused.violation.blocked
    for word in ("'pay'", "'a'", "'scan'", "'read'"):
        assert word in refused.refusal
    assert refused.refusal.startswith("PlaybookEnforcer blocked: ")
    assert refused.refusal.endswith("Look first.")
    assert refused.hints[1:] == ("Look first.",)


def test_nobody_is_told_to_call_what_would_be_refused():
    policy = {"cap_counts": "all", "on_cap": "fail"}
    enforcer = held(step("a", "scan", max_tool_calls=1), policy=policy)
    enforcer.settle(enforcer.admit("scan"), "error")
    hint = enforcer.admit("pay").hints[0]
    assert not enforcer.may("scan")
    assert hint == "No call of 'scan' is taken any more: ask a person to close the step."


def test_a_step_without_tools_does_not_let_a_later_steps_tool_through():
    steps = [step("look", max_tool_calls=2), step("pay", "pay")]
    refused = held(*steps).admit("pay")
    assert refused.violation.violation_type == "unexpected_tool"
    for word in ("'pay'", "'look'"):
        assert word in refused.violation.message
    assert held(*steps).admit("anything").allowed
    assert held(*steps, policy=COMPAT).admit("pay").allowed


def test_an_optional_step_without_tools_is_passed_over_for_a_later_steps_tool():
    enforcer = held(step("look", max_tool_calls=2, required=False), step("pay", "pay"))
    assert enforcer.admit("pay").step_id == "pay"


def test_record_only_lets_through_and_notes():
    enforcer = held(step("a", "scan"), block_violations=False)
    assert enforcer.admit("pay").allowed
    assert [(one.violation_type, one.blocked) for one in enforcer.violations] == [
        ("unexpected_tool", False)
    ]


def test_what_is_not_recorded_is_still_refused_and_says_only_hints():
    enforcer = held(step("a", "scan", hints=["Look."]), record_violations=False)
    refused = enforcer.admit("pay")
    assert (refused.allowed, refused.violation, enforcer.violations) == (False, None, [])
    assert refused.refusal == "PlaybookEnforcer blocked:  | Hints: Call 'scan' now. Look."
    assert enforcer.report().deviations == ("unexpected_tool",)


def test_names_in_messages_steer_nothing_and_are_cut():
    refused = held(step("a", "scan")).admit("x\x1b[31m" + "y" * 500)
    assert "\x1b" not in refused.refusal
    assert len(refused.refusal) < 400


# -- skills -----------------------------------------------------------------------------------


def test_a_skill_bounds_a_step_in_addition_to_what_it_expects():
    enforcer = held(step("a", "scan", uses=["k"]), skills={"k": skill("scan", "read")})
    assert enforcer.admit("read").violation.violation_type == "unexpected_tool"
    refused = enforcer.admit("pay")
    assert refused.violation.violation_type == "tool_outside_skill"
    for word in ("'pay'", "'k'", "'a'", "'read' and 'scan'"):
        assert word in refused.refusal


@pytest.mark.parametrize(
    ("word", "allowed"), [("unbound", True), ("deny", False)], ids=["unbound", "deny"]
)
def test_an_empty_list_says_nothing_or_forbids_all(word, allowed):
    enforcer = held(
        step("a", "scan", uses=["k"]), skills={"k": skill()}, policy={"empty_skill_list": word}
    )
    assert enforcer.may("scan") is allowed
    assert enforcer.is_stuck is not allowed


def test_skills_may_be_no_more_than_advice():
    policy = EnforcementPolicy(skills_mean="advisory")
    enforcer = held(step("a", "pay", uses=["k"]), skills={"k": skill("scan")}, policy=policy)
    assert enforcer.may("pay")


def test_a_pattern_bounds_arguments_or_is_a_name():
    of = {"skills": {"k": skill("Bash(git:*)")}}
    understood = held(step("a", "Bash", uses=["k"]), **of)
    assert understood.may("Bash", {"command": "git log"})
    assert not understood.may("Bash", {"command": "rm -rf /"})
    assert not held(step("a", "Bash", uses=["k"]), policy=COMPAT, **of).may("Bash")


def test_effort_is_inherited_under_safe():
    skills = {"k": skill("scan", min_tool_calls=2, max_tool_calls=3)}
    own = held(step("a", "scan", uses=["k"]), skills=skills).terms.steps[0]
    assert (own.floor, own.cap) == (2, 3)
    none = held(step("a", "scan", uses=["k"]), skills=skills, policy=COMPAT).terms.steps[0]
    assert (none.floor, none.cap) == (None, None)


def test_probes_of_skills_are_asked_for_and_the_steps_own_win():
    probes = [RequiredProbe(name="auth", match="x"), RequiredProbe(name="dns", match="dns")]
    mine = step("a", "scan", uses=["k"], required_probes=[{"name": "auth", "match": "auth"}])
    enforcer = held(mine, skills={"k": skill("scan", required_probes=probes)})
    found = enforcer.effective_probes(mine)
    assert [(one.name, one.match) for one in found] == [("auth", "auth"), ("dns", "dns")]
    assert enforcer.allowed_tools_for(mine) == {"scan"}
    assert enforcer.allowed_tools_for(step("other")) is None


# -- caps -------------------------------------------------------------------------------------


def test_running_calls_take_their_places_under_a_cap():
    enforcer = held(step("a", "scan", max_tool_calls=2, min_tool_calls=2))
    assert enforcer.admit("scan").allowed
    assert enforcer.admit("scan").allowed
    assert enforcer.admit("scan").violation.violation_type == "max_tool_calls"
    compat = held(step("a", "scan", max_tool_calls=1), policy=COMPAT)
    assert [compat.admit("scan").allowed for _ in range(3)] == [True, True, True]


@pytest.mark.parametrize(
    ("word", "left"), [("all", False), ("expected", True), ("successful", True)]
)
def test_what_uses_up_a_cap(word, left):
    policy = EnforcementPolicy(cap_counts=word, on_cap="close")
    enforcer = held(
        step("a", "scan", "read", max_tool_calls=2), policy=policy, allow_extra_tools=True
    )
    call(enforcer, "other", outcome="error")
    call(enforcer, "other", outcome="error")
    assert enforcer.may("scan") is left


@pytest.mark.parametrize(("word", "allowed"), [("listed", True), ("all", False)])
def test_whether_unlisted_tools_are_held_to_the_cap(word, allowed):
    policy = EnforcementPolicy("safe", cap_applies_to=word)
    enforcer = held(
        step("a", "scan", "read", max_tool_calls=1), policy=policy, allow_extra_tools=True
    )
    call(enforcer, "scan")
    assert enforcer.may("other") is allowed
    assert enforcer.may("read")  # what a step still lacks is let through all the same


def test_a_step_held_at_its_cap_takes_what_it_lacks_once_and_nothing_else():
    enforcer = held(step("a", "scan", "read", max_tool_calls=2))
    call(enforcer, "scan")
    call(enforcer, "scan")
    assert kinds(enforcer) == ["tools_missing"]
    assert not enforcer.may("scan")
    first, second = enforcer.admit("read"), enforcer.admit("read")
    assert (first.allowed, second.allowed) == (True, False)
    enforcer.settle(first)
    assert statuses(enforcer) == {"a": "completed"}


# -- optional steps ---------------------------------------------------------------------------


def test_a_call_passes_over_optional_steps_and_never_over_a_required_one():
    steps = [step("a", "scan"), step("b", "ask", required=False), step("c", "dns", required=False)]
    enforcer = held(*steps, step("d", "pay"), step("e", "wipe"))
    assert not enforcer.may("ask")
    call(enforcer, "scan")
    assert not enforcer.may("wipe")
    admission = call(enforcer, "pay")
    assert admission.step_id == "d"
    assert statuses(enforcer) == {
        "a": "completed",
        "b": "skipped",
        "c": "skipped",
        "d": "completed",
    }
    assert "'pay'" in enforcer.plan.step_executions["b"].result
    assert enforcer.state.facts_of("c").closed_by == "calls"


def test_nothing_is_passed_over_for_a_call_that_the_later_step_refuses():
    later = step("b", "pay", uses=["k"])
    for block in (True, False):
        enforcer = held(
            step("a", "ask", required=False),
            later,
            skills={"k": skill("read")},
            block_violations=block,
        )
        admission = call(enforcer, "pay")
        assert (admission.allowed, admission.step_id) == (not block, "a")
        assert kinds(enforcer)[0] == "unexpected_tool"
        assert "skipped" not in statuses(enforcer).values()


def test_asking_passes_over_nothing():
    enforcer = held(step("a", "ask", required=False), step("b", "pay"))
    assert enforcer.may("pay")
    assert enforcer.validate_tool_call("pay").allowed
    assert enforcer.plan.current_step_index == 0


def test_an_optional_step_blocks_the_way_under_compat():
    enforcer = held(step("a", "ask", required=False), step("b", "pay"), policy=COMPAT)
    assert enforcer.admit("pay").violation.violation_type == "unexpected_tool"


def test_what_fits_the_optional_step_itself_stays_with_it():
    enforcer = held(step("a", "ask", required=False), step("b", "ask", "pay"))
    assert call(enforcer, "ask").step_id == "a"
    loose = held(step("a", required=False, max_tool_calls=2), step("b", "pay"))
    assert call(loose, "anything").step_id == "a"


def test_optional_steps_at_the_end_are_passed_over_when_the_run_ends():
    enforcer = held(step("a", "scan"), step("b", "ask", required=False))
    call(enforcer, "scan")
    report = enforcer.finish()
    assert (report.verdict, enforcer.is_complete) == ("pass", True)
    assert statuses(enforcer)["b"] == "skipped"


# -- steps that say nothing of tools ----------------------------------------------------------


def test_an_empty_step_is_a_persons_or_open_or_refused():
    safe = held(step("a"), step("b", "pay"))
    assert not safe.may("pay")
    assert safe.waits_for_person
    assert not safe.is_stuck
    assert "closed by a person" in safe.admit("pay").refusal
    assert held(step("a"), step("b", "pay"), policy=COMPAT).may("pay")


def test_a_persons_step_takes_the_tools_of_its_skills():
    enforcer = held(step("a", uses=["k"]), skills={"k": skill("read")})
    assert enforcer.may("read")
    assert not enforcer.may("pay")
    call(enforcer, "read")
    assert not enforcer.is_complete


# -- the end ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "block", "allowed", "noted"),
    [
        ("reject", True, False, [("playbook_complete", True)]),
        ("reject", False, False, [("playbook_complete", True)]),
        ("as_others", True, False, [("playbook_complete", True)]),
        ("as_others", False, True, [("playbook_complete", False)]),
        ("record", True, True, [("playbook_complete", False)]),
        ("allow", True, True, []),
    ],
)
def test_what_happens_to_calls_after_the_last_step(word, block, allowed, noted):
    policy = EnforcementPolicy(after_complete=word)
    enforcer = held(step("a", "scan"), policy=policy, block_violations=block)
    call(enforcer, "scan")
    assert call(enforcer, "scan").allowed is allowed
    assert [(one.violation_type, one.blocked) for one in enforcer.violations] == noted
    assert enforcer.plan.total_tool_calls == 1 + allowed


def test_extra_tools_may_be_called_after_the_end_where_they_may_be_called_at_all():
    enforcer = held(step("a", "scan"), allow_extra_tools=True)
    call(enforcer, "scan")
    assert call(enforcer, "pay").allowed
    assert enforcer.violations == []


def test_a_playbook_without_steps_lets_everything_through_and_never_completes():
    enforcer = held()
    assert call(enforcer, "anything").allowed
    assert (enforcer.is_complete, enforcer.progress, enforcer.finish().verdict) == (
        *(False, 1.0, "pass"),
    )


# -- housekeeping, budgets, order -------------------------------------------------------------


def test_what_is_always_allowed_belongs_to_no_step():
    policy = EnforcementPolicy(always_allowed=["read_*", "note"])
    enforcer = held(step("a", "scan", max_tool_calls=1), policy=policy)
    for tool in ("read_file", "note"):
        assert call(enforcer, tool).housekeeping
    assert enforcer.plan.total_tool_calls == 0
    assert enforcer.plan.step_executions == {}
    assert [one.tool for one in enforcer.calls if one.housekeeping] == ["read_file", "note"]
    call(enforcer, "scan")
    assert call(enforcer, "note").allowed


def test_a_tool_that_is_always_allowed_counts_where_a_step_expects_it():
    enforcer = held(step("a", "task_complete"))
    assert call(enforcer, "task_complete").step_id == "a"
    assert enforcer.is_complete


@pytest.mark.parametrize("always", ["task_complete", "task_*"])
def test_what_is_always_allowed_takes_no_tool_from_a_later_step(always):
    policy = EnforcementPolicy(always_allowed=[always])
    enforcer = held(step("a", "scan"), step("b", "task_complete"), policy=policy)
    assert not call(enforcer, "task_complete").allowed
    call(enforcer, "scan")
    assert call(enforcer, "task_complete").step_id == "b"


def test_a_plan_has_only_so_many_calls():
    enforcer = held(step("a", "scan", "read"), max_iterations=2)
    call(enforcer, "scan", outcome="error")
    running = enforcer.admit("scan")
    refused = enforcer.admit("read")
    assert refused.violation.violation_type == "plan_budget"
    assert not enforcer.is_stuck  # one still runs
    enforcer.settle(running)
    assert "may make" in enforcer.stuck_reason
    assert held(step("a", "scan"), max_iterations=0, policy=COMPAT).may("scan")


def test_steps_interleave_where_the_playbook_says_that_order_does_not_bind():
    steps = [step("a", "scan"), step("b", "read"), step("c", "scan", "pay")]
    enforcer = held(*steps, strict_sequence=False)
    assert call(enforcer, "pay").step_id == "c"
    assert call(enforcer, "read").step_id == "b"
    assert (enforcer.current_step.id, enforcer.plan.completed_steps) == ("a", ["b"])
    assert call(enforcer, "scan").step_id == "a"
    assert enforcer.current_step.id == "c"
    assert call(enforcer, "scan").step_id == "c"
    assert enforcer.is_complete
    strict = held(*steps, strict_sequence=False, policy=COMPAT)
    assert not strict.may("read")


def test_what_a_step_requires_comes_first():
    steps = [step("a", "scan"), step("b", "read"), step("c", "pay", requires=["a", "read"])]
    enforcer = held(*steps, strict_sequence=False)
    refused = enforcer.admit("pay")
    assert refused.violation.violation_type == "prerequisite_missing"
    assert "'a' and 'read'" in refused.refusal
    call(enforcer, "scan")
    call(enforcer, "read")
    assert call(enforcer, "pay").allowed


def test_an_early_call_is_remembered_for_its_step_and_credited_by_a_person_alone():
    steps = [step("a", "scan"), step("b", "pay")]
    enforcer = held(*steps, allow_extra_tools=True)
    early = call(enforcer, "pay", {"order": 7})
    call(enforcer, "pay", outcome="error")
    assert [one.call_id for one in enforcer.early_calls("b")] == [early.call_id]
    assert enforcer.early_calls() == ()
    call(enforcer, "scan")
    assert enforcer.current_step.id == "b"
    assert [one.arguments for one in enforcer.early_calls()] == [{"order": 7}]
    enforcer.complete("b", by="ana", note="paid by call 2")
    assert enforcer.finish().verdict == "pass"
    assert held(*steps, allow_extra_tools=True, policy=COMPAT).early_calls("b") == ()


def test_what_was_called_early_covers_no_more_than_itself():
    enforcer = held(step("a", "scan"), step("b", "pay", "mail"), allow_extra_tools=True)
    call(enforcer, "pay")
    call(enforcer, "scan")
    enforcer.complete("b", by="ana")
    assert "'mail'" in enforcer.violations[-1].message
    assert "'pay'" not in enforcer.violations[-1].message
    assert enforcer.finish().unresolved == ("b",)


def test_asking_is_no_event():
    enforcer = held(step("a", "scan"))
    assert enforcer.may("scan")
    assert not enforcer.may("pay")
    assert len(enforcer.events) == 1
