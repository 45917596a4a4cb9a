"""Random playbooks, random calls, batches, failures and restarts: the laws hold of all of them."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from types import SimpleNamespace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plan_laws import broken_laws

from runbook_nb.errors import PlaybookError
from runbook_nb.playbooks import Playbook, PlaybookEnforcer

TOOLS = ["scan", "read", "ask", "pay", "wipe"]
OUTCOMES = ["ok", "ok", "ok", "error", "error", "cached", "retried", "cancelled"]

tool = st.sampled_from(TOOLS)
probe = st.sampled_from([{"name": "auth", "match": "auth"}, {"name": "web", "match": "web"}])


@st.composite
def steps(draw, name):
    step = {
        "id": name,
        "description": name,
        "expected_tools": draw(st.lists(tool, max_size=3)),
        "required": draw(st.sampled_from([True, True, False])),
        "required_probes": draw(st.lists(probe, max_size=1)),
        "uses": draw(st.sampled_from([[], [], ["safe"], ["none"]])),
    }
    if draw(st.sampled_from([False, False, True])):
        step["checks"] = [{"name": "of auth", "path": "index", "op": "eq", "value": "auth"}]
    if draw(st.sampled_from([False, False, True])):
        step["validation"] = {"min_success": 2}
    cap = draw(st.none() | st.integers(1, 3))
    floor = draw(st.none() | st.integers(0, 3))
    if cap is not None and floor is not None:
        floor = min(floor, cap)
    step |= {"max_tool_calls": cap, "min_tool_calls": floor}
    kind = draw(st.sampled_from([None, None, None, "manual", "approval"]))
    return step if kind is None else {**step, "kind": kind}


@st.composite
def books(draw):
    count = draw(st.integers(0, 4))
    made = [draw(steps(f"s{n}")) for n in range(count)]
    for n, one in enumerate(made[1:], 1):
        if draw(st.sampled_from([False, False, False, True])):
            one["requires"] = [draw(st.sampled_from([f"s{k}" for k in range(n)] + TOOLS))]
    return {
        "id": "pb",
        "name": "A playbook",
        "steps": made,
        "allow_extra_tools": draw(st.sampled_from([False, False, True])),
        "strict_sequence": draw(st.sampled_from([True, True, False])),
        "max_iterations": draw(st.none() | st.integers(1, 8)),
    }


arguments = st.sampled_from([None, {"index": "auth"}, {"host": "web-1"}, "auth"])
call = st.tuples(tool, arguments, st.sampled_from(OUTCOMES))
host = st.sampled_from(
    ["complete", "skip", "fail", "reset", "person", "approve", "decline", "finish"]
)
event = st.one_of(
    st.tuples(st.just("call"), call),
    st.tuples(st.just("call"), call),
    st.tuples(st.just("open"), call),
    st.tuples(st.just("batch"), st.lists(call, min_size=1, max_size=4)),
    st.tuples(st.just("restart"), st.none()),
    st.tuples(st.just("validate"), tool),
    st.tuples(st.just("record"), tool),
)

#: What shows all the evidence that these steps ask for.
SHOWN = {"index": "auth", "host": "web-1"}
HELD = {"evidence": "hold"}

SKILLS = {
    "safe": SimpleNamespace(allowed_tools=["scan", "read", "ask"], required_probes=[]),
    "none": SimpleNamespace(allowed_tools=[], required_probes=[]),
}


class Driver:
    """Does to a plan what a stream of events says."""

    def __init__(self, book, policy, **how):
        self.enforcer = PlaybookEnforcer.from_playbook(
            Playbook(**book), policy=policy, skills=SKILLS, **how
        )
        self.open = []

    def do(self, kind, what):
        enforcer = self.enforcer
        if kind == "call":
            self._end(enforcer.admit(*what[:2]), what[2])
        elif kind == "open":
            admission = enforcer.admit(*what[:2])
            self.open += [(admission, what[2])] if admission.allowed else []
        elif kind == "batch":
            admissions = enforcer.admit_batch([one[:2] for one in what])
            for admission, one in zip(admissions, what, strict=True):
                self._end(enforcer.confirm(admission), one[2])
        elif kind == "restart":
            self.open = []
            dumped = json.loads(json.dumps(enforcer.dump()))
            self.enforcer = PlaybookEnforcer.load(dumped)
        elif kind == "validate":
            enforcer.validate_tool_call(what)
        elif kind == "record":
            enforcer.record_tool_call(what, arguments={"index": "auth"})
        else:
            with suppress(PlaybookError):  # nothing closes a step that was declined
                self._host(kind)

    def _end(self, admission, outcome):
        if admission.allowed:
            self.enforcer.settle(admission, outcome)

    def _host(self, kind):
        enforcer, step = self.enforcer, self.enforcer.current_step
        if kind == "reset":
            enforcer.reset()
        elif kind == "finish":
            enforcer.finish()
        elif kind == "complete":
            enforcer.complete_current_step("done")
        elif kind == "skip":
            enforcer.skip_current_step("not needed")
        elif kind == "fail":
            enforcer.fail_current_step("it broke")
        elif step is not None and kind == "approve" and step.kind == "approval":
            enforcer.approve(step, "ana", "yes")
        elif step is not None and kind == "decline" and step.kind == "approval":
            enforcer.decline(step, "eve", "no")
        elif step is not None and kind == "person" and step.kind != "approval":
            enforcer.complete(step, "ben", "by hand")

    def settle_open(self):
        for admission, outcome in self.open:
            call = self.enforcer.state.calls.get(admission.call_id)
            if call is not None and call.outcome is None:
                self.enforcer.settle(admission, outcome)
        self.open = []


def drive(book, stream, policy, **how):
    driver = Driver(book, policy, **how)
    for kind, what in stream:
        driver.do(kind, what)
    assert broken_laws(driver.enforcer, TOOLS) == []
    driver.settle_open()
    assert broken_laws(driver.enforcer, TOOLS) == []
    return driver.enforcer


few = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@few
@given(books(), st.lists(event, max_size=14), st.booleans())
def test_under_safe_no_stream_of_calls_breaks_a_law(book, stream, block):
    drive(book, stream, "safe", block_violations=block)


@few
@given(books(), st.lists(event | st.tuples(host, st.none()), max_size=14))
def test_under_safe_no_move_of_a_host_breaks_a_law(book, stream):
    drive(book, stream, "safe")


@few
@given(books(), st.lists(event | st.tuples(host, st.none()), max_size=14), st.booleans())
def test_where_evidence_holds_no_calls_close_a_step_without_it(book, stream, all_count):
    """And nothing freezes without a word, whichever calls fill a cap."""
    counts = "all" if all_count else "successful"
    drive(book, stream, {**HELD, "cap_counts": counts})


@few
@given(
    books(),
    st.lists(event | st.tuples(host, st.none()), max_size=12),
    st.fixed_dictionaries(
        {
            "on_stuck": st.sampled_from(["fail", "close", "none"]),
            "on_cap": st.sampled_from(["close", "fail", "hold"]),
            "cap_counts": st.sampled_from(["all", "expected", "successful"]),
        }
    ),
    st.booleans(),
)
def test_under_no_policy_does_a_record_say_what_did_not_happen(book, stream, rules, recorded):
    drive(book, stream, {"profile": "compat", **rules}, record_violations=recorded)


@few
@given(books(), st.lists(event, max_size=10), st.sampled_from(["safe", HELD]))
def test_a_plan_followed_by_success_alone_comes_to_its_end_or_says_why_not(book, stream, policy):
    """After any stream, calling what is asked for ends the run, a person's turn or 'stuck'."""
    driver = Driver(book, policy)
    for kind, what in stream:
        driver.do(kind, what)
    driver.settle_open()
    enforcer = driver.enforcer
    for _ in range(60):
        if enforcer.is_stuck or enforcer.waits_for_person or enforcer.current_step is None:
            return
        names = [name for one in enforcer.terms.steps for name in one.tools] + TOOLS
        asked = [name for name in dict.fromkeys(names) if enforcer.may(name, SHOWN)]
        missing = enforcer.terms.steps[enforcer.plan.current_step_index].tools
        for name in sorted(asked, key=lambda one: one not in missing):
            admission = enforcer.admit(name, SHOWN)
            if admission.allowed:
                enforcer.settle(admission)
    raise AssertionError(f"{enforcer!r} goes on for ever: {enforcer.plan!r}")


@settings(few, max_examples=80)
@given(books(), st.lists(event | st.tuples(host, st.none()), max_size=14), st.booleans())
def test_a_report_adds_up_and_the_record_says_the_same(book, stream, block):
    """Each refusal and each deviation stands in one line of it, and none in two."""
    driver = Driver(book, "safe", block_violations=block)
    for kind, what in stream:
        driver.do(kind, what)
    report = driver.enforcer.finish()
    facts = report.view().sections[1].parts[0].items
    told = [detail for fact in facts if (detail := re.match(r"refused (\d+)", str(fact.detail)))]
    assert sum(int(one[1]) for one in told) == len(report.refused)
    noted = [one for fact in facts if (one := re.fullmatch(r"(\d+) times?", str(fact.detail)))]
    assert sum(int(one[1]) for one in told + noted) == len(report.deviations)

    account = driver.enforcer.run.account
    assert account["report"]["outcome"] == report.verdict
    assert account["report"]["deviations"] == len(report.deviations)
    declined = {row["step"] for row in account["verdicts"] if row["verdict"] == "approval declined"}
    assert declined == {step for step, status in report.steps if status == "declined"}
    assert all(step in account["report"]["declined"] for step in report.declined)
