from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hand_events import NIST, WHY_STUCK, Plan, book, step, stuck

from runbook_nb._display import through
from runbook_nb.playbooks import EnforcementPolicy, Playbook, PlaybookEnforcer, PlaybookPlan
from runbook_nb.playbooks.events import Approved, Closed, Declined, Finished, Skipped, replay
from runbook_nb.playbooks.run import run_of
from runbook_nb.playbooks.steptables import seconds_words
from runbook_nb.playbooks.told import Told

#: As the visual reference has it.
TEXT = """\
Plan nist-800-61-ir · safe · stuck at step 4 of 6, containment · 2 required steps not done
    1  completed  detection    query_siem ok 2           calls 2    probes 1/1
    2  completed  analysis     enrich_indicator ok 3     calls 3/5  probes 1/2
       evidence incomplete: whois
    3  skipped    notify       page_owner not called     calls 0    optional
  > 4  stuck      containment  isolate_host failed 3     calls 3/3  probes 1/1
       refused 2 delete_mailbox: not expected · refused 1 isolate_host: over the limit of 3
    5  pending    recovery     restore_host, watch_host  calls 0
    6  pending    lessons      write_review              calls 0    optional
deviations 4 · evidence 3 of 4 probes on the steps reached"""


def html(card):
    return through("html", card)


def read(drawn):
    """Give the words of what was drawn, without its tags."""
    return " ".join(re.sub(r"<[^>]*>", " ", drawn).split())


def test_the_text_of_a_plan_is_that_of_the_reference():
    assert str(run_of(stuck().events)) == TEXT


def test_the_rich_view_says_state_why_what_is_left_and_under_which_rules():
    drawn = html(run_of(stuck().events).view())
    for words in (
        "Playbook plan",
        "1.2.0",
        ", refuses calls outside the plan",
        "Stuck at step 4 of 6",
        "2 completed",
        "1 stuck",
        "1 skipped",
        "2 pending",
        WHY_STUCK,
        "Required steps not done:",
        "deviations 4",
        "evidence 3 of 4 probes on the steps reached",
        "▶ marks the pointer · calls used / limit · probes matched / required",
        "evidence incomplete: probe",
        "is not expected in this step",
        "is over the limit of 3 calls",
        "8 calls recorded, 3 refused",
    ):
        assert words in read(drawn), words
    assert drawn.count("<tbody>") == 6  # one per step, so that a host stripes none apart


def test_a_plan_that_waits_says_first_for_what():
    name = "sign-off-by-someone"
    plan = Plan(book(step(name, "Pay it back.", kind="approval"), step("b", tools=["t"])))
    first, second, third, *_ = str(run_of(plan.events)).splitlines()
    assert f"waiting for an approval at step 1 of 2, {name}" in first
    assert second == "ir 1.0.0 · policy safe, refuses calls outside the plan"
    assert third == "  To be approved: Pay it back."
    told = read(html(run_of(plan.events).view()))
    assert told.count("ir 1.0.0") == told.count("ir ") == 1  # its name is told once
    assert told.index("To be approved: Pay it back.") < told.index("Required steps not done")
    short = Plan(book(step("a", kind="manual")))
    assert str(run_of(short.events)).splitlines()[1] == "  To be done: Do a."


def test_an_approval_that_was_given_is_waited_for_no_more():
    plan = Plan(book(step("a", tools=["pay"], kind="approval")))
    assert "waiting for an approval" in str(run_of(plan.events))
    plan.add(Approved, step_id="a", who="bo")
    told = str(run_of(plan.events))
    assert "waiting" not in told
    assert "To be approved" not in read(html(run_of(plan.events).view()))


@pytest.mark.parametrize("name", ["plan_stuck", "plan_declined"])
def test_the_rich_view_is_the_golden_one_byte_for_byte(name):
    """``RUNBOOK_NB_WRITE_GOLDEN=1`` writes it anew; sheet and picture have tests of their own."""
    plan = stuck()
    if name == "plan_declined":
        steps = [
            step("look", tools=["scan"]),
            step("pay", tools=["refund"], kind="approval"),
            step("tell"),
        ]
        plan = Plan(book(*steps))
        plan.call("look", "scan")
        plan.add(Closed, step_id="look", index=0, pointer=1)
        plan.add(Declined, step_id="pay", who="R. Ito", note="too much")
        plan.add(Finished, verdict="declined", unresolved=("pay", "tell"))
    drawn = html(run_of(plan.events).view())
    drawn = re.sub(r"<style>.*?</style>|<img[^>]*>", "", drawn, flags=re.DOTALL)
    path = Path(__file__).parent / "golden" / f"{name}.html"
    if os.environ.get("RUNBOOK_NB_WRITE_GOLDEN"):
        path.write_text(drawn + "\n", encoding="utf-8", newline="\n")
    assert drawn + "\n" == path.read_bytes().decode()


def test_markdown_carries_the_same_facts():
    told = run_of(stuck().events).to_markdown()
    assert told.startswith("**Plan nist-800-61-ir · safe · stuck at step 4 of 6, containment")
    assert "| 4 | stuck | `containment` · Isolate the affected host" in told
    assert "- 4: refused 2: `delete_mailbox` is not expected in this step" in told
    assert "8 calls recorded, 3 refused" in told


def test_the_picture_has_pointer_refusals_and_a_line_for_every_state():
    graph = run_of(stuck().events).walk.flowchart().graph
    assert graph.direction == "LR"
    assert [(node.key, node.state, node.role) for node in graph.nodes] == [
        ("detection", "ran", "a"),
        ("analysis", "ran", "a"),
        ("notify", "not_taken", None),
        ("containment", "ran", "b"),
        ("recovery", "not_reached", None),
        ("lessons", "not_reached", None),
        ("containment~refused", "declared", None),
    ]
    assert [edge.state for edge in graph.edges] == [
        *("taken", "taken", "taken", "not_taken", "not_taken", "gap"),
    ]
    assert not graph.groups


STATES = {
    "Not started": lambda plan: None,
    "At step 1 of 2": lambda plan: plan.call("a", "t"),
    "At step 2 of 2": lambda plan: plan.close(0, "a"),
    "Completed": lambda plan: [done(plan)],
    "Completed, with deviations": lambda plan: (plan.refuse("a", "rm"), done(plan)),
    "Incomplete": lambda plan: plan.add(Finished, verdict="incomplete"),
}


def done(plan):
    for place, (name, tool) in enumerate([("a", "t"), ("b", "u")]):
        plan.call(name, tool)
        plan.close(place, name, completed=place == 1)


@pytest.mark.parametrize("words", STATES)
def test_the_headline_says_where_a_plan_stands(words):
    plan = Plan(book(step("a", tools=["t"]), step("b", tools=["u"])))
    STATES[words](plan)
    run = run_of(plan.events)
    assert run.view().heading[0] == words
    assert words.lower() in str(run).splitlines()[0]


@pytest.mark.parametrize(
    ("kind", "words"),
    [("manual", "Waiting for a person"), ("approval", "Waiting for an approval")],
)
def test_a_step_of_a_person_waits_for_one(kind, words):
    run = run_of(Plan(book(step("a", kind=kind))).events)
    assert run.view().heading[0] == f"{words} at step 1 of 1"
    assert "waits for" in run.pause["reason"]


def test_who_closed_a_step_and_what_passed_it_over_is_said():
    plan = Plan(book(step("a", tools=["t"]), step("b", required=False), step("c", tools=["u"])))
    plan.close(0, "a", by="cap")
    plan.add(Skipped, step_id="b", index=1, pointer=2, by="calls", reason="u is for a later step")
    plan.add(Approved, step_id="c", who="bo", note="fine")
    plan.close(2, "c", by="person", who="ana", note="seen", completed=True)
    run = run_of(plan.events)
    text, drawn = str(run), html(run.view())
    for words in ("closed by cap", "passed over", "u is for a later step", "ana", "bo", "fine"):
        assert words in text
        assert words in read(drawn)
    assert "closed by ana" in drawn
    assert text.splitlines()[0] == "Plan ir · safe · incomplete · 2 required steps not done"


def test_a_bare_plan_says_what_it_does_not_carry():
    plan = replay(stuck().events).plan
    bare = PlaybookPlan.model_validate_json(plan.model_dump_json())
    text = str(bare)
    assert "policy not carried" in text
    assert "Outcomes of calls, refusals, deviations" in " ".join(text.split())
    assert "deviations 0" not in text  # which nobody knows
    assert "query_siem 2 calls" in text
    drawn = html(bare.view())
    assert "✓ <samp" not in drawn
    assert "evidence 3 of 4 probes" in drawn


def test_what_follows_the_last_step_is_told_under_it():
    plan = Plan(book(step("a", tools=["t"])))
    plan.close(0, "a", completed=True)
    plan.refuse(None, "rm", "playbook_complete")
    run = run_of(plan.events)
    assert "refused 1 rm: the playbook is complete" in str(run)
    assert Told.of_run(run).refused == 1


def many(number=48, phases=("Triage", "Hunt", "Contain", "Recover")):
    steps = [
        step(f"s{n:02}", tools=[f"t{n}"], metadata={"group": {"title": phases[n // 12]}})
        if phases
        else step(f"s{n:02}", tools=[f"t{n}"])
        for n in range(number)
    ]
    plan = Plan(book(*steps))
    for n in range(20):
        plan.call(f"s{n:02}", f"t{n}")
        plan.close(n, f"s{n:02}")
    plan.refuse("s20", "rm")
    plan.call("s20", "t20", "error")
    return run_of(plan.events)


def test_more_than_forty_steps_are_drawn_by_phase_and_the_cap_is_said():
    chart = many().walk.flowchart()
    titles = [line.split('"')[1] for line in chart.mermaid.splitlines() if '("' in line]
    assert titles == [
        "Triage, 12 steps<br/>12 completed",
        "Hunt, 12 steps<br/>8 completed, 1 in progress, 3 pending, 1<br/>refused",
        "Contain, 12 steps<br/>12 pending",
        "Recover, 12 steps<br/>12 pending",
    ]
    said = "48 steps are more than 40: drawn as 4 nodes, 4 phases as one each"
    assert said in html(many().view())
    assert said in chart.drawing.note


def test_without_phases_the_pointer_and_the_ends_stay():
    chart = many(phases=()).walk.flowchart()
    titles = [line.split('"')[1] for line in chart.mermaid.splitlines() if '("' in line]
    assert [title.partition("<br/>")[0] for title in titles] == [
        *("1 s00", "19 steps", "21 s20", "26 steps", "48 s47", "⊘ 1 refused"),
    ]


def test_of_many_steps_those_around_the_pointer_stand_open():
    run = many()
    drawn, text = html(run.view()), str(run)
    assert "Rows 1 to 15" in drawn
    assert "15 completed" in drawn
    assert "Rows 26 to 48" in drawn
    assert "> 21" in text
    assert "10 of 48 rows" in text
    assert drawn.index(">s20<") < drawn.index("Rows 1 to 15")


def test_a_duration_is_said_where_it_is_worth_it():
    assert seconds_words(None) == seconds_words(0.05) == ""
    plan = Plan(book(step("a", tools=["t"])), tick=3)
    plan.call("a", "t")
    plan.close(0, "a")
    run = run_of(plan.events)
    assert "6 s" in str(run)
    assert "took 6 s" in html(run.view())


def test_a_skill_nobody_gave_is_named():
    plan = Plan(book(step("a", tools=["t"], uses=["gone"])), policy="compat")
    assert "skill gone was not given: it binds nothing" in str(run_of(plan.events))


def test_a_playbook_shows_its_steps_before_any_run():
    text = str(NIST)
    assert text.splitlines()[0] == "Playbook nist-800-61-ir · 1.2.0 · 6 steps, 2 optional"
    drawn = html(NIST.view())
    assert "in this order, no other tools" in drawn
    assert [node.state for node in NIST.flowchart().graph.nodes] == [
        *("declared", "declared", "not_reached", "declared", "declared", "not_reached"),
    ]


def test_a_policy_shows_what_is_otherwise_first():
    lines = str(EnforcementPolicy("safe", on_cap="fail", floor="record")).splitlines()
    assert lines[0] == "Policy safe · 2 rules changed"
    assert [line.split() for line in lines[2:4]] == [
        ["on_cap", "fail", "instead", "of", "hold"],
        ["floor", "record", "instead", "of", "hold"],
    ]


def test_a_report_never_shows_its_score_alone():
    enforcer = PlaybookEnforcer.from_playbook(NIST)
    enforcer.admit("rm")
    report = enforcer.finish()
    text = str(report)
    assert "Report NIST incident response · safe · incomplete" in text
    assert (
        "4 required steps not done · deviations 1 · score 0%, the mean share of probes per step"
        in text
    )
    for words in ("not done", "call of rm", "unexpected tool"):
        assert words in text


def test_a_report_of_steps_that_ask_for_no_evidence_has_no_score_to_tell():
    step = {"id": "ok", "description": "Approve it.", "kind": "approval"}
    book = Playbook.model_validate({"id": "b", "name": "B", "steps": [step]})
    plan = PlaybookEnforcer.from_playbook(book)
    plan.decline("ok", by="M. Osei", note="wrong window")
    text = str(plan.finish())
    assert "1 required step not done" in text
    assert "no step asks for evidence" in text
    assert "score" not in text


def test_a_violation_says_whether_a_call_was_refused_for_it():
    noted, refused = stuck().events, PlaybookEnforcer.from_playbook(NIST)
    refused.admit("rm")
    assert str(refused.violations[0]).startswith("Violation unexpected_tool · call refused")
    assert str(replay(noted).violations[0]).startswith("Violation evidence_incomplete · noted")
