from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb._view import Badge, Data
from runbook_nb.playbooks.events import Approved, Failed, Reset, Settled, Skipped, TimedOut
from runbook_nb.playbooks.run import run_of
from runbook_nb.record.contents import contents_of
from runbook_nb.record.log import ROW_TYPES, STEP_KINDS, WIDTHS
from runbook_nb.record.phrases import step_status
from runbook_nb.record.steps import (
    _TAKEN,
    STEP_STATES,
    STEP_VERDICTS,
    StepFacts,
    calls_words,
    deviation_words,
    refusal_reason,
    states_counted,
    step_words,
    steps_sentence,
    verdict_of,
)

sys.path.append(str(Path(__file__).parents[1] / "playbooks"))
from hand_events import Plan, book, step, stuck

OUTCOMES = ("ok", "error", "cached", "retried", "cancelled")


def steps_of(plan, **more):
    return run_of(plan.events, **more).walk.raw_overlay.steps


def test_every_kind_of_a_step_has_a_value_and_a_row():
    assert set(_TAKEN) == STEP_KINDS
    assert {kind for kind in STEP_KINDS if WIDTHS[kind] == 1 and kind in ROW_TYPES} == STEP_KINDS


def test_what_was_recorded_of_each_step_is_counted():
    found = steps_of(stuck())
    done, short, passed, here = (
        found[key] for key in ("detection", "analysis", "notify", "containment")
    )
    assert (done.status, done.calls, done.of_tool("query_siem")) == ("completed", 2, (2, 0, 0))
    assert list(done.matched) == ["alert"]
    assert short.deviations[0]["names"] == ["whois"]
    assert (passed.status, passed.passed_over) == ("skipped", False)
    assert (here.status, here.of_tool("isolate_host")) == ("stuck", (0, 3, 0))
    assert dict(here.refused) == {
        ("delete_mailbox", "unexpected_tool", None): 2,
        ("isolate_host", "max_tool_calls", 3): 1,
    }
    assert "recovery" not in found


@given(st.lists(st.sampled_from(OUTCOMES), max_size=12), st.integers(0, 3))
def test_calls_add_up_whatever_came_of_them(outcomes, running):
    plan = Plan(book(step("a", tools=["t"])))
    for outcome in outcomes:
        plan.call("a", "t", outcome)
    for _ in range(running):
        plan.admit("a", "t")
    facts = steps_of(plan).get("a", StepFacts())
    counts = Counter(outcomes)
    assert facts.calls == len(outcomes) + running
    assert facts.unsettled == running
    good = counts["ok"] + counts["cached"] + counts["retried"]
    assert facts.of_tool("t") == (good, len(outcomes) - good, running)


def test_a_call_filed_under_another_step_is_counted_there_alone():
    plan = Plan(book(step("a", tools=["t"]), step("b", tools=["t"])))
    name = plan.admit("a", "t")
    other = plan.admit("a", "t")
    plan.close(0, "a", by="host")
    plan.add(Settled, call_id=name, step_id="b")
    found = steps_of(plan)
    assert (found["a"].calls, found["a"].unsettled, found["b"].of_tool("t")) == (1, 1, (1, 0, 0))
    plan.add(Settled, call_id=other, step_id="a", outcome="error")
    found = steps_of(plan)
    assert (found["a"].of_tool("t"), found["b"].of_tool("t")) == ((0, 1, 0), (1, 0, 0))


def test_housekeeping_is_no_call_of_a_step():
    plan = Plan(book(step("a", tools=["t"])))
    name = plan.admit("a", "skills", housekeeping=True)
    plan.add(Settled, call_id=name, step_id="a", filed=False, counted=False)
    facts = steps_of(plan)["a"]
    assert (facts.calls, facts.status, dict(facts.aside)) == (0, "pending", {"skills": 1})


def test_what_was_called_early_is_known_to_its_own_step():
    plan = Plan(book(step("a", tools=["t"]), step("b", tools=["u"])))
    name = plan.admit("a", "u", early_for="b")
    plan.add(Settled, call_id=name, step_id="a")
    assert dict(steps_of(plan)["b"].early) == {"u": 1}


def test_after_a_reset_only_what_follows_counts():
    plan = stuck()
    plan.add(Reset)
    run = run_of(plan.events)
    assert run.walk.raw_overlay.steps == {}
    assert set(run.state.values()) == {"pending"}
    plan.call("detection", "query_siem")
    again = run_of(plan.events)
    assert again.walk.raw_overlay.steps["detection"].calls == 1
    assert not again.walk.raw_overlay.edges
    assert [row.type for row in again.walk].count("loop") == 1
    assert "Began again" in next(row.text for row in again.walk if row.type == "loop")


def test_a_step_that_failed_and_was_closed_is_closed():
    plan = Plan(book(step("a", tools=["t"])))
    plan.add(Failed, step_id="a", error="no route")
    assert steps_of(plan)["a"].ended == {"note": "no route", "by": "host"}
    plan.close(0, "a", by="person", who="ana", note="by hand")
    facts = steps_of(plan)["a"]
    assert (facts.status, facts.ended["who"]) == ("completed", "ana")


def test_steps_are_counted_by_state_in_one_order():
    facts = [StepFacts(), StepFacts(status="completed"), StepFacts(), StepFacts(status="stuck")]
    assert states_counted(facts) == [("completed", 1), ("stuck", 1), ("pending", 2)]
    assert [state for state, _ in states_counted([StepFacts(status=s) for s in STEP_STATES])] == [
        *STEP_STATES
    ]
    assert steps_sentence(facts).startswith("4 steps: 1 completed, 1 stuck, 2 pending; 0 calls")


def test_every_verdict_on_a_step_has_a_meaning():
    facts = [StepFacts(status=state) for state in STEP_STATES]
    words = {verdict_of(one, short) for one in facts for short in (False, True)}
    assert words == set(STEP_VERDICTS)


@pytest.mark.parametrize(
    ("status", "by", "word"),
    [
        ("skipped", "calls", "passed over"),
        ("skipped", "host", "skipped"),
        ("completed", "cap", "closed by cap"),
        ("completed", "calls", "completed"),
        ("stuck", None, "stuck"),
    ],
)
def test_the_word_of_a_step_says_how_it_ended(status, by, word):
    assert step_status(StepFacts(status=status, ended={"by": by} if by else {})) == word


# -- words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "key", "value", "words"),
    [
        ("admitted", "t", {}, "Called t"),
        ("admitted", "t", {"arguments": {"q": "x" * 90}}, f"Called t with q={'x' * 59}…"),
        (
            "admitted",
            "t",
            {"arguments": dict.fromkeys("abcdef", 1)},
            "Called t with a=1, b=1, c=1, d=1 and 2 more",
        ),
        ("settled", "t", {"outcome": "ok"}, "t answered"),
        ("settled", "t", {"outcome": "cached"}, "t was answered from what is kept"),
        ("settled", "t", {"outcome": "error", "error": "E: no"}, "t failed: E: no"),
        (
            "settled",
            "t",
            {"outcome": "ok", "matched": ["a", "b"]},
            "t answered; it matched probes a and b",
        ),
        ("refused", "t", {"type": "unexpected_tool"}, "Refused t: not expected in this step"),
        ("refused", "t", {"type": "odd", "why": "so it is"}, "Refused t: so it is"),
        ("deviation", "tools_missing", {"names": ["a", "b"]}, "Closed without a, b"),
        ("deviation", "odd_thing", {"why": "so"}, "Odd thing: so"),
        ("closed", "calls", {}, "Closed by its calls"),
        ("closed", "cap", {}, "Closed by its cap"),
        ("skipped", "calls", {"note": "for b"}, "Skipped: for b"),
        ("skipped", "calls", {}, "Skipped, passed over"),
        ("skipped", "host", {}, "Skipped by the host"),
        ("given_up", "timeout", {"note": "slow"}, "Failed by its time limit: slow"),
        ("approved", "", {"who": "ana", "note": "fine"}, "Approved by ana: fine"),
        ("stuck", "", {"why": "the cap is full"}, "Stuck: the cap is full"),
    ],
)
def test_an_event_of_a_step_is_said_in_words(kind, key, value, words):
    assert step_words(kind, key, value) == words


def test_deviations_are_said_in_few_words():
    assert deviation_words({"kind": "insufficient_effort", "limit": 3}) == (
        "fewer calls than the 3 required"
    )
    told = deviation_words({"kind": "unexpected_tool", "tool": "rm"})
    assert told == (Data(value="rm"), "went through,", "not expected in this step")
    assert refusal_reason("max_tool_calls") == "max tool calls"
    assert calls_words(0, 0) == "0 calls recorded"


def test_every_event_makes_its_row():
    plan = Plan(book(step("a", tools=["t"]), step("b", required=False)))
    plan.call("a", "t", arguments={"q": 1})
    plan.refuse("a", "rm")
    plan.note("a", "insufficient_effort")
    plan.add(TimedOut, step_id="a", seconds=12.0, allowed=10.0)
    plan.add(Approved, step_id="a", who="ana")
    plan.close(0, "a")
    plan.add(Skipped, step_id="b", index=1, pointer=2, reason="no need")
    types = Counter(row.type for row in run_of(plan.events).walk)
    assert types == {
        "stage": 2,
        "call": 2,
        "refusal": 1,
        "deviation": 2,
        "approval": 1,
        "close": 2,
        "step": 3,
    }


# -- what is hidden ------------------------------------------------------------------------------


def secretive():
    plan = Plan(book(step("a", tools=["t"])))
    given = {"token": "tk-48151623", "host": "web-1"}
    plan.call("a", "t", "error", given, error="E: tk-48151623 was refused")
    plan.refuse("a", "rm", arguments=given, message="rm tk-48151623")
    plan.close(0, "a", by="person", who="ana", note="used tk-48151623")
    return plan


def test_arguments_are_redacted_and_what_they_held_is_hidden_everywhere():
    policy = {"keys": ["token"]}
    run = run_of(secretive().events, redact=policy)
    everywhere = [
        str(run.walk.to_dicts()),
        str(run),
        run.to_markdown(),
        run.recording().to_json(),
        str(run.walk.raw_overlay.steps),
        run.walk.flowchart().mermaid,
        str(run.state),
    ]
    assert not [text for text in everywhere if "tk-48151623" in text]
    assert "host=web-1" in str(run.walk.to_dicts())
    assert "tk-48151623" in str(run.unredacted().walk.to_dicts())
    assert run.redaction.entries[0].places["calls"] >= 2


def test_what_calls_were_given_is_among_the_contents_of_a_run():
    held = [one for one in contents_of(run_of(secretive().events)) if one.place == "calls"]
    assert {"token": "tk-48151623", "host": "web-1"} in [dict(one.value) for one in held]


def test_the_mark_of_a_step_is_a_badge_with_its_sign():
    from runbook_nb.record.phrases import Teller

    run = run_of(stuck().events)
    teller = Teller(run.structure, run.walk.raw_overlay)
    marks = [teller.step_mark(node) for node in run.structure.nodes]
    assert all(isinstance(mark, Badge) for mark in marks)
    assert [mark.word for mark in marks] == [
        "completed",
        "completed",
        "skipped",
        "stuck here",
        "pending",
        "optional",
    ]
    assert teller.pointer == "containment"
