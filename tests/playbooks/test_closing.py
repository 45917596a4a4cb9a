"""Does a step close: what ends it, what it lacks, and when nothing can end it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from held_plans import call, held, kinds, statuses, step

from runbook_nb.playbooks import EnforcementPolicy
from runbook_nb.testing.fixed import FrozenClock, reproducible

COMPAT = "compat"


def test_a_step_closes_when_each_of_its_tools_succeeded_in_any_order():
    enforcer = held(step("a", "scan", "read", "scan"))
    assert not enforcer.settle(enforcer.admit("read")).closed
    assert enforcer.settle(enforcer.admit("scan")).closed
    assert enforcer.state.facts_of("a").closed_by == "calls"


@pytest.mark.parametrize(("word", "closed"), [("attempted", True), ("successful", False)])
def test_whether_a_failed_call_makes_a_tool_count_as_called(word, closed):
    enforcer = held(step("a", "scan", "read"), policy=EnforcementPolicy(seen=word))
    call(enforcer, "scan", outcome="error")
    call(enforcer, "read")
    assert enforcer.is_complete is closed


def test_a_failed_call_closes_nothing_under_any_policy():
    for policy in ("safe", COMPAT):
        enforcer = held(step("a", "scan", max_tool_calls=1), policy=policy)
        call(enforcer, "scan", outcome="error")
        assert not enforcer.is_complete


def test_one_call_closes_one_step():
    enforcer = held(step("a", "scan"), step("b", "scan"))
    call(enforcer, "scan")
    assert enforcer.current_step.id == "b"


@pytest.mark.parametrize(
    ("word", "status", "by"),
    [("close", "completed", "cap"), ("fail", "failed", None), ("hold", "in_progress", None)],
)
def test_a_full_cap_without_the_tools_is_told_whatever_it_does(word, status, by):
    enforcer = held(
        step("a", "scan", "read", max_tool_calls=2), policy=EnforcementPolicy(on_cap=word)
    )
    call(enforcer, "scan")
    call(enforcer, "scan")
    assert statuses(enforcer) == {"a": status}
    assert enforcer.state.facts_of("a").closed_by == by
    assert kinds(enforcer)[0] == "tools_missing"
    assert enforcer.finish().unresolved == ("a",)
    assert enforcer.finish().verdict == "incomplete"


def test_under_compat_a_full_cap_closes_and_says_nothing():
    enforcer = held(step("a", "scan", "read", max_tool_calls=1), policy=COMPAT)
    call(enforcer, "scan")
    assert (enforcer.is_complete, kinds(enforcer)) == (True, [])


@pytest.mark.parametrize("word", ["close", "fail", "hold"])
def test_a_step_that_lists_no_tools_is_closed_by_its_cap(word):
    enforcer = held(step("a", max_tool_calls=2), policy=EnforcementPolicy(on_cap=word))
    call(enforcer, "scan")
    assert not enforcer.is_complete
    call(enforcer, "read")
    assert (enforcer.is_complete, kinds(enforcer)) == (True, [])
    assert enforcer.state.facts_of("a").closed_by == "cap"


def test_what_a_held_step_lacks_is_told_once():
    enforcer = held(step("a", "scan", "read", max_tool_calls=1))
    call(enforcer, "scan")
    call(enforcer, "read", outcome="error")
    enforcer.complete_current_step("by hand")
    assert kinds(enforcer) == ["tools_missing"]


def test_a_step_closes_once_however_many_calls_were_under_way():
    enforcer = held(step("a", "scan"), step("b", "read"), strict_sequence=False)
    first, second = enforcer.admit("scan"), enforcer.admit("scan")
    assert enforcer.settle(first).closed
    assert not enforcer.settle(second).closed
    assert [one.kind for one in enforcer.events].count("closed") == 1


def test_a_probe_is_matched_once():
    enforcer = held(step("a", "scan", "read", required_probes=[{"name": "x", "match": "auth"}]))
    call(enforcer, "scan", {"q": "auth"})
    call(enforcer, "read", {"q": "auth"})
    assert enforcer.plan.step_executions["a"].matched_probes == ["x"]
    assert [one.matched for one in enforcer.calls] == [("x",), ()]


@pytest.mark.parametrize(("word", "calls"), [("record", 1), ("hold", 3)])
def test_a_floor_is_noted_or_keeps_the_step_open(word, calls):
    enforcer = held(step("a", "scan", min_tool_calls=3), policy=EnforcementPolicy(floor=word))
    made = 0
    while not enforcer.is_complete:
        call(enforcer, "scan")
        made += 1
    assert made == calls
    assert kinds(enforcer) == ([] if word == "hold" else ["insufficient_effort"])


def test_evidence_is_told_before_effort_and_after_that_tools():
    probes = [{"name": name, "match": name} for name in ("auth", "dns")]
    enforcer = held(step("a", "scan", min_tool_calls=2, required_probes=probes))
    call(enforcer, "scan", {"index": "dns"}, "error")
    enforcer.complete_current_step()
    assert kinds(enforcer) == ["evidence_incomplete", "insufficient_effort", "tools_missing"]
    assert "0 of 2 probes" in enforcer.violations[0].message
    assert "'auth' and 'dns'" in enforcer.violations[0].message
    assert all(one.tool_name is None and not one.blocked for one in enforcer.violations)


@pytest.mark.parametrize(("word", "found"), [("attempted", ["auth"]), ("successful", [])])
def test_which_calls_are_evidence(word, found):
    probes = [{"name": "auth", "match": "auth"}]
    enforcer = held(
        step("a", "scan", required_probes=probes), policy=EnforcementPolicy(evidence_from=word)
    )
    call(enforcer, "scan", {"index": "auth"}, "error")
    assert enforcer.plan.step_executions["a"].matched_probes == found


def test_results_are_never_evidence_of_probes():
    enforcer = held(step("a", "scan", required_probes=[{"name": "auth", "match": "auth"}]))
    enforcer.settle(enforcer.admit("scan", {"q": 1}), "ok", result={"index": "auth"})
    assert kinds(enforcer) == ["evidence_incomplete"]


# -- checks and validation --------------------------------------------------------------------

AUTH = {"name": "auth logs", "tool": "scan", "path": "index", "op": "eq", "value": "auth"}
ROWS = {"name": "rows", "source": "result", "path": "rows", "op": "gt", "value": 0}


def test_a_check_is_met_by_a_field_and_not_by_a_comment():
    enforcer = held(step("a", "scan", checks=[AUTH]))
    call(enforcer, "scan", {"index": "web", "comment": "index=auth"})
    assert kinds(enforcer) == ["validation_failed"]
    assert enforcer.report().unmatched == {"a": ("auth logs",)}
    good = held(step("a", "scan", checks=[AUTH]))
    call(good, "scan", {"index": "auth"})
    assert (kinds(good), good.report().verdict) == ([], "pass")
    assert good.calls[0].checks == ("auth logs",)


@pytest.mark.parametrize(
    ("result", "noted"),
    [
        ({"rows": 3}, []),
        ({"rows": 0}, ["validation_failed"]),
        ({"rows": "many"}, ["validation_unreadable"]),
        (None, ["validation_unreadable"]),
    ],
)
def test_a_check_of_results_is_met_unmet_or_unreadable(result, noted):
    enforcer = held(step("a", "scan", validation={"all": [ROWS]}))
    enforcer.settle(enforcer.admit("scan"), "ok", result=result)
    assert kinds(enforcer) == noted
    assert enforcer.is_complete


def test_a_validation_counts_calls():
    rules = {"min_success": 3, "calls": {"read": 2}}
    enforcer = held(step("a", "scan", "read", validation=rules))
    call(enforcer, "read")
    call(enforcer, "scan")
    assert kinds(enforcer) == ["validation_failed"]


def test_a_check_that_was_met_stays_met_when_what_met_it_is_hidden():
    token = {"name": "token", "path": "token", "op": "eq", "value": "t0p-s3cret"}
    enforcer = held(step("a", "scan", checks=[token]), redact={"keys": ["token"]})
    call(enforcer, "scan", {"token": "t0p-s3cret"})
    assert kinds(enforcer) == []
    assert "t0p-s3cret" not in str(enforcer.dump()["events"][1:])


def test_under_compat_validation_is_carried_and_never_read():
    enforcer = held(step("a", "scan", validation={"rows": "> 0"}), policy=COMPAT)
    call(enforcer, "scan")
    assert (enforcer.is_complete, kinds(enforcer)) == (True, [])


# -- time -------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["record", "fail", "block"])
def test_a_step_that_takes_too_long_is_told_once(word):
    clock = FrozenClock()
    with reproducible():
        from runbook_nb.settings import settings

        with settings(clock=clock):
            enforcer = held(
                step("a", "scan", "read", timeout_seconds=60),
                policy=EnforcementPolicy(on_timeout=word),
            )
            clock.advance(hours=9)  # before the first call nothing has begun
            call(enforcer, "scan")
            clock.advance(seconds=60)
            enforcer.check_time()
            assert kinds(enforcer) == []
            clock.advance(seconds=1)
            enforcer.check_time()
            enforcer.check_time()
            assert kinds(enforcer) == ["step_timeout"]
            assert "61 s" in enforcer.violations[0].message
            assert statuses(enforcer) == {"a": "failed" if word == "fail" else "in_progress"}
            assert enforcer.may("read") is (word != "block")
            assert enforcer.is_stuck is (word == "block")
            call(enforcer, "read")
            assert enforcer.is_complete is (word != "block")
            assert enforcer.finish().verdict != "pass"


def test_time_is_looked_at_with_every_event():
    clock = FrozenClock()
    from runbook_nb.settings import settings

    with settings(clock=clock):
        enforcer = held(step("a", "scan", timeout_seconds=60))
        admission = enforcer.admit("scan")
        clock.advance(seconds=90)
        told = enforcer.settle(admission)
        assert [one.violation_type for one in told.violations] == ["step_timeout"]
        assert (told.closed, enforcer.finish().verdict) == (True, "pass_with_deviations")
        compat = held(step("a", "scan", timeout_seconds=60), policy=COMPAT)
        admission = compat.admit("scan")
        clock.advance(seconds=90)
        assert compat.settle(admission).violations == ()


# -- stuck ------------------------------------------------------------------------------------


def impossible(**more):
    safe = SimpleNamespace(allowed_tools=["scan"], required_probes=[])
    return held(step("a", "scan", "pay", uses=["k"]), skills={"k": safe}, **more)


def test_a_step_that_no_call_can_close_says_so_from_the_beginning():
    enforcer = impossible()
    assert enforcer.is_stuck
    assert "'pay'" in enforcer.stuck_reason
    assert enforcer.get_step_summary()["stuck"] == enforcer.stuck_reason
    assert "stuck" in enforcer.brief()
    assert not impossible(allow_extra_tools=True).is_stuck


@pytest.mark.parametrize(
    ("word", "noted", "status"),
    [
        ("none", ["tool_outside_skill"], {}),
        ("ask", ["tool_outside_skill", "step_stuck"], {}),
        ("fail", ["tool_outside_skill", "step_stuck"], {"a": "failed"}),
        ("close", [*("tool_outside_skill", "step_stuck", "tools_missing")], {"a": "completed"}),
    ],
)
def test_what_happens_to_a_stuck_step(word, noted, status):
    enforcer = impossible(policy=EnforcementPolicy(on_stuck=word))
    call(enforcer, "pay")
    call(enforcer, "pay") if word == "ask" else None
    assert kinds(enforcer)[: len(noted)] == noted
    assert statuses(enforcer) == status
    assert kinds(enforcer).count("step_stuck") == (word != "none")
    assert enforcer.report().verdict == "incomplete"


def test_under_compat_failures_fill_the_cap_and_the_plan_says_that_it_is_stuck():
    enforcer = held(step("a", "scan", max_tool_calls=2), policy=COMPAT)
    call(enforcer, "scan", outcome="error")
    assert not enforcer.is_stuck
    call(enforcer, "scan", outcome="error")
    assert not call(enforcer, "scan").allowed
    assert "'a'" in enforcer.stuck_reason
    enforcer.complete_current_step("by hand")
    assert not enforcer.is_stuck


def test_under_safe_failures_use_up_nothing():
    enforcer = held(step("a", "scan", max_tool_calls=1))
    for _ in range(20):
        call(enforcer, "scan", outcome="error")
    assert not enforcer.is_stuck
    call(enforcer, "scan")
    assert enforcer.is_complete


def test_a_plan_that_is_stuck_at_an_optional_step_may_be_led_past_it():
    safe = SimpleNamespace(allowed_tools=["scan"], required_probes=[])
    optional = step("a", "pay", uses=["k"], required=False)
    assert not held(optional, step("b", "read"), skills={"k": safe}).is_stuck
    by_hand = held(optional, step("b", kind="manual"), skills={"k": safe})
    assert (by_hand.is_stuck, by_hand.waits_for_person) == (False, True)
    kept = held(optional, step("b", kind="manual", requires=["a"]), skills={"k": safe})
    assert (kept.is_stuck, kept.waits_for_person) == (True, False)
    blocking = EnforcementPolicy(optional="blocking")
    assert held(optional, step("b", "read"), skills={"k": safe}, policy=blocking).is_stuck


# -- evidence that holds a step open ---------------------------------------------------------

HOLD = {"evidence": "hold"}
ENOUGH = {"name": "enough", "source": "result", "path": "count", "op": "ge", "value": 3}
EVIDENCE = pytest.mark.parametrize(
    ("asked", "name"),
    [
        ({"required_probes": [{"name": "sign-ins", "match": "index=auth"}]}, "sign-ins"),
        ({"checks": [ENOUGH]}, "enough"),
        ({"validation": {"all": [ENOUGH]}}, "validation"),
    ],
)


def shown(enforcer, *, count=3, index="auth", outcome="ok"):
    admission = enforcer.admit("scan", {"index": index})
    return enforcer.settle(admission, outcome, result={"count": count})


@EVIDENCE
def test_unmet_evidence_holds_a_step_open_until_a_call_shows_it(asked, name):
    enforcer = held(step("a", "scan", **asked), step("b", "pay"), policy=HOLD)
    assert not shown(enforcer, count=0, index="web").closed
    refused = enforcer.admit("pay")
    assert not refused.allowed
    assert refused.result.hints[0] == f"Call 'scan' again: no call shows '{name}' yet."
    assert f"Evidence asked for: {name}" in enforcer.brief("step")
    assert "stays open until there is the evidence" in enforcer.brief("step")
    assert kinds(enforcer) == ["unexpected_tool"]
    assert shown(enforcer).closed
    assert enforcer.state.facts_of("a").closed_by == "calls"
    assert enforcer.admit("pay").allowed


@EVIDENCE
@pytest.mark.parametrize("profile", ["safe", COMPAT])
def test_by_default_unmet_evidence_is_recorded_and_holds_nothing(asked, name, profile):
    enforcer = held(step("a", "scan", **asked), step("b", "pay"), policy=profile)
    assert shown(enforcer, count=0, index="web").closed
    assert enforcer.admit("pay").allowed
    told = [one.message for one in enforcer.violations]
    assert profile == COMPAT or any(f"'{name}'" in one for one in told)


@EVIDENCE
def test_a_full_cap_a_host_and_a_person_close_a_held_step_with_the_deviation(asked, name):
    capped = held(step("a", "scan", max_tool_calls=2, **asked), policy=HOLD)
    shown(capped, count=0, index="web")
    assert shown(capped, count=0, index="web").closed
    hosted = held(step("a", "scan", **asked), policy=HOLD)
    shown(hosted, count=0, index="web")
    hosted.complete_current_step("enough seen")
    person = held(step("a", "scan", **asked), policy=HOLD)
    shown(person, count=0, index="web")
    person.complete("a", by="ana", note="enough seen")
    for enforcer, by in ((capped, "cap"), (hosted, "host"), (person, "person")):
        assert enforcer.state.facts_of("a").closed_by == by
        report = enforcer.finish()
        assert (report.verdict, dict(report.unmatched)) == (
            "pass_with_deviations",
            {"a": (name,)},
        )
        assert len(kinds(enforcer)) == 1


def test_a_held_step_whose_cap_failures_filled_is_stuck_and_says_for_what():
    enforcer = held(
        step("a", "scan", max_tool_calls=2, checks=[ENOUGH]),
        policy={**HOLD, "cap_counts": "all"},
    )
    shown(enforcer, count=0)
    shown(enforcer, outcome="error")
    assert enforcer.stuck_reason.startswith(
        "step 'a' had the 2 calls it may have and is not closed, for no call shows 'enough'"
    )


@pytest.mark.parametrize(
    ("validation", "stuck"),
    [
        ({"not": {**ENOUGH, "op": "lt"}}, True),
        ({"all": [{"not": {**ENOUGH, "op": "lt"}}, ENOUGH]}, True),
        ({"any": [{"not": {**ENOUGH, "op": "lt"}}, ENOUGH]}, False),
        ({"not": {"not": ENOUGH}}, False),
        ({"not": {"min_success": 1}}, True),
        ({"min_success": 2}, False),
    ],
)
def test_what_a_call_has_ruled_out_for_good_is_stuck_and_what_it_has_not_is_open(validation, stuck):
    enforcer = held(step("a", "scan", validation=validation), step("b", "pay"), policy=HOLD)
    assert not shown(enforcer, count=0).closed
    assert enforcer.is_stuck is stuck
    hint = enforcer.admit("pay").result.hints[0]
    assert hint.startswith("No call can show 'validation'" if stuck else "Call 'scan' again")
    assert shown(enforcer).closed is not stuck


def test_a_floor_and_evidence_both_hold():
    enforcer = held(step("a", "scan", min_tool_calls=2, checks=[ENOUGH]), policy=HOLD)
    assert not shown(enforcer).closed
    assert shown(enforcer, count=0).closed
