"""What a run comes to, in one verdict, in counts, and in words."""

from __future__ import annotations

import json
import re

import pytest
from held_plans import call, held, kinds, step

from runbook_nb.errors import PlaybookError
from runbook_nb.playbooks import EnforcementPolicy
from runbook_nb.playbooks.told import Told

PROBE = [{"name": "auth", "match": "auth", "description": "Look at the log-ins."}]


def test_a_run_without_any_call_is_incomplete():
    report = held(step("a", "scan"), step("b", "read", required=False)).finish()
    assert (report.verdict, report.unresolved, report.passed) == ("incomplete", ("a",), False)
    assert report.steps == (("a", "pending"), ("b", "pending"))
    assert report.score == 0.0
    assert report.policy == "safe"


def test_a_run_that_followed_its_playbook_passes():
    enforcer = held(step("a", "scan", required_probes=PROBE))
    call(enforcer, "scan", {"q": "auth"})
    report = enforcer.finish()
    assert (report.verdict, report.score, report.deviations) == ("pass", 1.0, ())
    assert report.unmatched == {}
    assert report.passed


def test_what_went_against_the_playbook_is_told_beside_the_verdict():
    enforcer = held(step("a", "scan", required_probes=PROBE), key="run-7")
    call(enforcer, "pay")
    call(enforcer, "scan")
    report = enforcer.finish()
    assert report.verdict == "pass_with_deviations"
    assert report.deviations == ("unexpected_tool", "evidence_incomplete")
    assert [one.tool for one in report.refused] == ["pay"]
    assert report.unmatched == {"a": ("auth",)}
    assert (report.playbook, report.key) == ("Response", "run-7")


@pytest.mark.parametrize("recorded", [True, False])
def test_a_verdict_does_not_depend_on_whether_violations_are_recorded(recorded):
    enforcer = held(step("a", "scan"), record_violations=recorded)
    call(enforcer, "pay")
    call(enforcer, "scan")
    call(enforcer, "pay")
    report = enforcer.finish()
    assert report.verdict == "pass_with_deviations"
    assert sorted(report.deviations) == ["playbook_complete", "unexpected_tool"]


def test_each_required_step_that_is_not_done_is_noted_once():
    enforcer = held(step("a", "scan"), step("b", "read"))
    enforcer.finish()
    call(enforcer, "scan")
    report = enforcer.finish()
    assert kinds(enforcer) == ["unresolved_step", "unresolved_step"]
    assert report.unresolved == ("b",)
    call(enforcer, "read")
    assert enforcer.finish().verdict == "pass"
    assert enforcer.events[-1].kind == "finished"


def test_under_compat_nothing_is_noted_at_the_end():
    enforcer = held(step("a", "scan"), policy="compat")
    assert enforcer.finish().verdict == "incomplete"
    assert kinds(enforcer) == []


def test_a_report_can_be_had_without_ending_anything():
    enforcer = held(step("a", "scan"))
    running = enforcer.admit("scan")
    assert enforcer.report().running == (running.call_id,)
    assert enforcer.events[-1].kind == "admitted"


def test_a_skipped_optional_step_owes_no_evidence():
    enforcer = held(step("a", "scan", required=False, required_probes=PROBE), step("b", "read"))
    call(enforcer, "read")
    assert enforcer.finish().unmatched == {}


# -- score ------------------------------------------------------------------------------------


def scored(policy="safe"):
    enforcer = held(
        step("a", "scan", required_probes=PROBE),
        step("b", "ask", required=False, required_probes=PROBE),
        step("c", "read", required_probes=PROBE),
        step("d", "pay"),
        policy=policy,
    )
    call(enforcer, "scan", {"q": "auth"})
    enforcer.skip_current_step()
    enforcer.admit("read")
    return enforcer


@pytest.mark.parametrize(
    ("scope", "count", "score"),
    [
        ("reached", None, 1 / 3),
        ("required", None, 1 / 3),
        ("all", None, 1 / 4),
        ("reached", {"completed"}, 1.0),
        ("reached", ["completed", "skipped"], 0.5),
        ("all", {"failed"}, 1.0),
        (None, None, 1 / 3),
    ],
)
def test_over_what_a_score_is_taken(scope, count, score):
    assert scored().adherence_score(scope, count) == pytest.approx(score)


def test_the_published_score_is_of_reached_steps():
    enforcer = held(step("a", "scan"), step("b", "read"), policy="compat")
    assert enforcer.adherence_score() == 1.0
    assert held(step("a", "scan"), step("b", "read")).adherence_score() == 0.0
    assert held().adherence_score() == 1.0


# -- counts -----------------------------------------------------------------------------------

PUBLISHED = [
    *("total_steps", "current_step_index", "completed", "skipped", "failed", "pending"),
    *("progress", "is_complete"),
]


def test_the_summary_counts_every_step_once():
    told = scored().get_step_summary()
    assert list(told)[:8] == PUBLISHED
    assert [told[word] for word in ("completed", "skipped", "in_progress", "not_started")] == [
        *(1, 1, 1, 1)
    ]
    assert (told["resolved_fraction"], told["stuck"]) == (0.5, None)
    assert list(scored("compat").get_step_summary()) == PUBLISHED


# -- words ------------------------------------------------------------------------------------


def test_a_brief_tells_all_steps_and_what_is_asked_for_now():
    enforcer = held(
        step("a", "scan", "read", required_probes=PROBE, hints=["Last hour first."]),
        step("b", "pay", required=False, max_tool_calls=2, min_tool_calls=1),
        description="What to do about a log-in.",
    )
    call(enforcer, "read")
    text = enforcer.brief()
    for words in (
        "'Response': What to do about a log-in.",
        "Its 2 steps, in this order:",
        "1. a: Do a. (in progress, now)",
        "2. b: Do b. (pending, optional)",
        "Tools still to be called: scan.",
        "Evidence asked for: auth: Look at the log-ins.",
        "Hint: Last hour first.",
    ):
        assert words in text
    now = enforcer.brief("step")
    assert now in text
    assert "b: Do b." not in now
    call(enforcer, "scan")
    assert "at least 1 call" in enforcer.brief("step")
    assert "at most 2 calls" in enforcer.brief("step")
    call(enforcer, "pay")
    assert enforcer.brief("step") == "Every step is closed."


def test_a_refusal_is_counted_once_and_the_counts_add_up():
    enforcer = held(step("a", "scan", min_tool_calls=2), step("b", "pay"))
    for tool in ("pay", "pay", "wipe", "scan"):
        call(enforcer, tool)
    enforcer.complete("a", by="ana")
    report = enforcer.report()
    text = str(report)
    assert "call of pay          refused 2 times: unexpected tool" in text
    assert "call of wipe         refused 1 time: unexpected tool" in text
    assert "insufficient effort  1 time" in text
    times = [int(n) for n in re.findall(r"(\d+) times?", text)]
    assert sum(times) == len(report.deviations) == 4
    assert "deviations 4" in text


def test_a_brief_marks_the_steps_of_a_person():
    told = held(step("a", kind="manual"), step("b", "pay", kind="approval")).brief()
    assert "1. a: Do a. (pending, manual, now)" in told
    assert "2. b: Do b. (pending, approval)" in told


def test_a_brief_says_whose_turn_it_is():
    enforcer = held(step("a", kind="manual"), step("b", "pay", kind="approval"))
    assert "closed by a person" in enforcer.brief("step")
    enforcer.complete("a", by="ana")
    assert "approved by a person" in enforcer.brief("step")
    enforcer.approve("b", by="ana")
    assert "Tools still to be called: pay." in enforcer.brief("step")


def test_a_brief_says_that_a_step_is_optional_and_who_waits_behind_it():
    optional = step("a", "scan", required=False)
    assert "This step is optional." in held(optional, step("b", "pay")).brief("step")
    enforcer = held(optional, step("b", kind="approval"))
    told = enforcer.brief("step")
    assert "'a' is optional and may be passed over: behind it, step 'b' waits for an app" in told
    assert "%step" not in told
    assert "%step b --done, or enforcer.approve(…)" in enforcer.brief("hand")
    assert "optional" not in held(step("a", "scan"), step("b", kind="manual")).brief("step")
    assert "optional" not in held(optional, step("b", "pay"), policy="compat").brief("step")


def test_a_brief_tells_what_was_called_before_its_turn():
    enforcer = held(step("a", "scan"), step("b", "pay"), allow_extra_tools=True)
    call(enforcer, "pay")
    call(enforcer, "pay")
    assert "before its turn" not in enforcer.brief()
    call(enforcer, "scan")
    assert "Called already, before its turn: pay." in enforcer.brief("step")


def test_a_brief_of_something_else_is_refused():
    with pytest.raises(PlaybookError, match="did you mean 'plan'") as raised:
        held().brief("plans")
    assert raised.value.code == "bad_brief"


def test_nothing_in_a_brief_steers_a_terminal():
    enforcer = held(step("a\x1b[2J", "scan\x07", hints=["x\x1b[31m"]))
    assert "\x1b" not in enforcer.brief()
    assert "\x07" not in enforcer.brief()


def test_a_report_is_the_same_after_a_restart():
    enforcer = held(step("a", "scan", required_probes=PROBE), step("b", "read"))
    call(enforcer, "pay")
    call(enforcer, "scan", {"q": "web"})
    again = type(enforcer).load(json.loads(json.dumps(enforcer.dump())))
    assert again.report() == enforcer.report()
    assert again.brief() == enforcer.brief()


def test_the_policy_is_told_with_its_changes():
    policy = EnforcementPolicy("safe", floor="record")
    assert held(step("a", "scan"), policy=policy).report().policy == "safe, 1 change"


@pytest.mark.parametrize("record", [True, False])
def test_a_report_and_the_record_of_a_run_count_the_same_deviations(record):
    enforcer = held(step("a", "scan", requires=["never"]), record_violations=record)
    for tool in ("scan", "pay", "scan"):
        call(enforcer, tool)
    report, told = enforcer.finish(), Told.of_run(enforcer.run)
    assert len(report.deviations) == told.deviations == len(report.refused) == 3
    assert report.stuck
