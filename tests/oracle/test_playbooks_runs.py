"""Recorded runs under one hook: scopes of plans, its constructor, and scripted agents."""

from __future__ import annotations

import builtins
from collections import Counter
from functools import cached_property

import pytest
from plan_laws import broken_laws
from playbook_safe import is_plain, reasons_to_refuse, refusal_of
from playbook_sequence import Replay, all_differences, left_of, skills_of
from playbook_turns import passed_over, readings_of, run_agent, turns_of, under_safe
from playbook_values import decode, recorded

from runbook_nb.errors import PlaybookDefinitionError
from runbook_nb.playbooks import EnforcementPolicy, Playbook, PlaybookEnforcerHook, ToolEvent
from runbook_nb.playbooks.scopes import key_of

# -- scopes ------------------------------------------------------------------------------------

SCOPE = {"playbooks", "scope", "max_runs", "select", "events", "inspect", "skills"}
#: How a case says that its selector fails.
RAISING = ("raise", "fail", "boom", "error")
FAILING = ("select_raises", "selector_raises", "select_error")
SWITCHES = {"block_violations", "record_violations"}


class Scoped:
    """A case of kind ``scope``, replayed."""

    def __init__(self, case, policy):
        given = self.given = case["input"]
        #: What the case says that is not acted on here; it is then held to the laws alone.
        self.passed_over = sorted(given.keys() - SCOPE - SWITCHES - set(FAILING))
        self.books, self.asked = given["playbooks"], []
        told = {key: given[key] for key in ("scope", "max_runs", *SWITCHES) if key in given}
        chosen = {"select": self.select} if given.get("select") else {"playbook": self.only()}
        if given.get("skills") is not None:
            told["skills"] = skills_of(given["skills"])
        self.chosen = "raise" if any(map(given.get, FAILING)) else given.get("select")
        self.hook = PlaybookEnforcerHook(**chosen, **told, policy=policy, lint="off")
        self.events = [self.call(event) for event in given["events"]]

    def only(self):
        """Give the playbook of a hook that selects none; others may stand beside it."""
        return Playbook(**self.books.get("main", next(iter(self.books.values()))))

    def select(self, run):
        self.asked.append(run.run_id)
        chosen, names = self.chosen, run.metadata
        if isinstance(chosen, dict):  # run -> playbook, or how it fails
            by_run = chosen.keys() & {run.run_id, run.thread_id}
            names = {"playbook": chosen[by_run.pop()]} if by_run else {**names, **chosen}
        if isinstance(chosen, str) or any(str(word).startswith(RAISING) for word in names):
            raise RuntimeError("the selector of the case raises")
        name = names.get("playbook")
        return None if name is None else Playbook(**self.books[name])

    def call(self, event):
        told = ToolEvent(
            tool_name=event["tool"],
            arguments=decode(event.get("args")),
            run_id=event.get("run"),
            thread_id=event.get("thread"),
            metadata=event.get("metadata") or {},
        )
        self.hook.before(told)
        if told.cancel is None:
            told.error = "it failed" if event.get("outcome") == "error" else None
            self.hook.after(told)
        return told

    def plan(self, key, expected):
        """Give what is expected of a plan as it is; None where there is no such plan."""
        enforcer = self.hook.enforcer_for(key)
        return None if enforcer is None else self._left(enforcer, expected)

    def plans(self, expected):
        return {key: self.plan(key, told) for key, told in expected.items()}

    def latest(self, expected):
        try:
            return self._left(self.hook.enforcer, expected)
        except LookupError:
            return "LookupError"

    def _left(self, enforcer, expected):
        left = left_of(enforcer)
        return {name: left[name] for name in expected} if isinstance(expected, dict) else left


@pytest.mark.parametrize("case", recorded("scope"))
def test_scopes_are_as_recorded(case, outcome, unjudged):
    replay, expect = Scoped(case, "compat"), case["expect"]
    if replay.passed_over:
        unjudged(case)
        return
    for event, expected in zip(replay.events, expect["events"], strict=True):
        found = {"run": event.run_id, "tool": event.tool_name, "allowed": event.cancel is None}
        found["thread"] = event.thread_id
        assert {key: found[key] for key in expected} == expected
    assert replay.plans(expect["plans"]) == expect["plans"]
    assert replay.asked == expect.get("selector_asked", [])
    assert replay.latest(expect["latest"]) == expect["latest"]
    outcome({"family": "playbooks scope compat", **case}, "matched")


def restarts_none(replay):
    """Q27: what is known of a live run only grows, or its further calls are refused by name."""
    scope = replay.given.get("scope", "run")
    made, lost = {}, set()
    for event in replay.events:
        key = key_of(scope, event.run_id, event.thread_id)
        if event.cancel is None:
            assert key not in lost, "a run that was dropped goes on"
            made.setdefault(key, []).append(event.tool_name)
        elif event.refusal.code == "plan_evicted":
            lost.add(key)
    assert replay.hook.evicted >= len(lost)
    assert not lost & set(replay.hook.keys)
    for key in replay.hook.keys:
        plan = replay.hook.enforcer_for(key).plan
        known = [tool for one in plan.step_executions.values() for tool in one.tool_calls]
        before, now = made.get(key, []), []
        if len(known) < len(before):  # begun again, which only a finished plan is
            before, now = before[: len(before) - len(known)], before[len(before) - len(known) :]
            assert {tool for step in plan.playbook.steps for tool in step.expected_tools} <= {
                *before
            }
        assert known == (now or before)


SCOPE_QUIRKS = {"Q27": restarts_none}


@pytest.mark.parametrize("case", recorded("scope"))
def test_scopes_under_the_safe_profile(case, outcome, unjudged):
    replay = Scoped(case, "safe")
    for event in replay.events:  # what is refused says so as structure, and only that
        assert (event.cancel is None) == (event.refusal is None)
    if replay.passed_over:
        unjudged(case)
    elif case["quirk"] is None:
        allowed = [event.cancel is None for event in replay.events]
        assert allowed == [event["allowed"] for event in case["expect"]["events"]]
        assert replay.plans(case["expect"]["plans"]) == case["expect"]["plans"]
        outcome({"family": "playbooks scope safe", **case}, "matched")
    elif case["quirk"] in SCOPE_QUIRKS:
        SCOPE_QUIRKS[case["quirk"]](replay)
        outcome({"family": "playbooks scope safe", **case}, "improved")
    else:
        unjudged(case)


# -- the constructor ---------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["compat", "safe"])
@pytest.mark.parametrize("case", recorded("hook_constructor"))
def test_the_constructor_refuses_as_recorded(case, profile, outcome):
    kwargs = dict(case["input"]["kwargs"])
    if kwargs.pop("give_playbook", False):
        kwargs["playbook"] = Playbook(id="ir", name="Response")
    if kwargs.pop("give_select", False):
        kwargs["select"] = lambda run: None
    if case["expect"]["ok"]:
        assert PlaybookEnforcerHook(**kwargs, policy=profile).name == "PlaybookEnforcerHook"
    else:
        expected = getattr(builtins, case["expect"]["error_class"])
        with pytest.raises(expected) as refused:
            PlaybookEnforcerHook(**kwargs, policy=profile)
        assert refused.value.fix
    outcome({"family": f"playbooks hook_constructor {profile}", **case}, "matched")


# -- agents ------------------------------------------------------------------------------------


def calls_of(loop, expect):
    """Give what is said of each call, in the words of the recording."""
    asked = [one.keys() for one in expect["calls"]]
    told = [made.told() for made in loop.calls]
    return [{key: one[key] for key in keys} for keys, one in zip(asked, told, strict=True)]


def unlike(case, loop):
    """Name what of a scripted agent is not as recorded, of all that the loop gives."""
    expect = case["expect"]
    found = {"calls": calls_of(loop, expect), **left_of(loop.hook.enforcer)}
    if not loop.fates:
        found |= {"bodies_run": loop.bodies, "stop_reason": loop.stop_reason}
    known = found.keys() & expect.keys() - {"summary"}
    wrong = {key: found[key] for key in known if found[key] != expect[key]}
    summary = expect.get("summary", {})
    return wrong | {
        key: found["summary"][key] for key in summary if found["summary"][key] != summary[key]
    }


def compat_of(case):
    """Play a case under the published rules, as its recording is to be read."""
    loops = [run_agent(case, fates=one, policy="compat") for one in readings_of(case)]
    loops = loops or [run_agent(case, policy="compat")]
    return next((loop for loop in loops if not unlike(case, loop)), loops[0])


@pytest.mark.parametrize("case", recorded("agent"))
def test_agents_are_as_recorded(case, outcome, unjudged):
    loop, expect, more = compat_of(case), case["expect"], passed_over(case)
    if more and not loop.fates:  # what happened cannot be told from the recording
        held_to_the_laws(loop)
        unjudged(case)
        return
    assert unlike(case, loop) == {}
    told = {"calls", "bodies_run", "stop_reason", *left_of(loop.hook.enforcer)}
    if expect.keys() - told:
        names = ", ".join(sorted(expect.keys() - told))
        unjudged({**case, "title": f"{case['title']} (nothing is told of {names})"})
    outcome({"family": "playbooks agent compat", **case}, "as told" if more else "matched")


def a_right_reply_passes(case, loop):
    """Q15: of a reply, what fits the steps in their order is let through."""
    plan, steps = loop.hook.enforcer.plan, case["input"]["playbook"]["steps"]
    wanted = [tool for step in steps for tool in step["expected_tools"]]
    first = [call["tool"] for call in case["input"]["turns"][0]]
    if first == wanted[: len(first)]:
        assert not any(made.blocked for made in loop.calls[: len(first)])
        assert plan.completed_steps[: len(first)]


def an_answer_from_a_cache_counts(case, loop):
    """Q28: a call that is answered without running its tool is known, and closes its step."""
    known = {one.call_id: one for one in loop.hook.enforcer.calls}
    told = [(made, known[made.event.call_id]) for made in loop.calls]
    served = [one for made, one in told if made.from_cache or made.event.outcome == "retried"]
    assert all(one.outcome in ("cached", "retried") and one.succeeded for one in served)
    if served and not any(made.errored for made in loop.calls):
        refused = {one.violation for made, one in told if made.blocked}
        assert refused <= {"playbook_complete"}


def housekeeping_is_let_through(case, loop):
    """Q21: the finishing tool, and the one that gives a skill, is neither refused nor counted."""
    always = EnforcementPolicy().always_allowed
    done = [made for made in loop.calls if made.tool in always]
    assert done
    assert not any(made.blocked for made in done)
    plan = loop.hook.enforcer.plan
    made = [one for one in loop.calls if not one.blocked]
    assert plan.total_tool_calls == len(made) - len(done)
    assert not any({*always} & {*one.tool_calls} for one in plan.step_executions.values())
    assert not any(one.tool_name in always for one in loop.hook.enforcer.violations)


def the_laws_say_it(case, loop):
    """What is refused, credited, counted and left undone is a law of every plan."""


def what_nobody_registered_is_found_before(case, loop):
    """Q19: a playbook that asks for a tool which does not exist is found by its linter."""
    given = case["input"]
    found = Playbook(**given["playbook"]).lint(tools=[*given["tools"]])
    expected = {tool for step in given["playbook"]["steps"] for tool in step["expected_tools"]}
    if expected - given["tools"].keys():
        assert "unknown_tool" in {one.code for one in found}


AGENT_QUIRKS = {
    **dict.fromkeys(("Q12", "Q13", "Q14", "Q16", "Q22", "Q35"), the_laws_say_it),
    "Q15": a_right_reply_passes,
    "Q19": what_nobody_registered_is_found_before,
    "Q21": housekeeping_is_let_through,
    "Q28": an_answer_from_a_cache_counts,
}


def held_to_the_laws(loop):
    """What is refused did not run and says why; what ran is known, with how it came out."""
    enforcer = loop.hook.enforcer
    known = {one.call_id: one for one in enforcer.calls}
    ran = [made.tool for made in loop.calls if not (made.blocked or made.from_cache)]
    again = [made.tool for made in loop.calls if made.event.outcome == "retried"]
    assert Counter(loop.bodies) <= Counter(ran + again)
    for made in loop.calls:
        told = known[made.event.call_id]
        refused = made.event.refusal is not None
        assert refused == (told.outcome == "refused")
        assert made.blocked == (refused or (made.blocked and told.outcome == "cancelled"))
        if not made.blocked:
            ended = "error" if made.errored else made.event.outcome or "ok"
            assert told.outcome == ended
    assert broken_laws(enforcer) == []
    done = enforcer.finish()
    assert (done.verdict == "incomplete") == bool(done.unresolved)


def plain(case):
    """Say whether no rule of the policy makes a difference to a case."""
    given = case["input"]
    calls = [{"op": "call", **call} for turn in turns_of(given) for call in turn]
    return not passed_over(case) and is_plain({"input": {**given, "events": calls}})


@pytest.mark.parametrize("case", recorded("agent"))
def test_agents_under_the_safe_profile(case, outcome, unjudged):
    family = {"family": "playbooks agent safe", **case}
    if refusal_of(case) is not None:
        assert reasons_to_refuse(case)
        outcome(family, "refused")
        return
    loop = run_agent(case, fates=under_safe(compat_of(case)), policy="safe")
    if case["quirk"] is None and plain(case):
        expect = case["expect"]
        assert [made.told() for made in loop.calls] == expect["calls"]
        left = left_of(loop.hook.enforcer)
        assert left["statuses"] == expect["statuses"]
        assert left["violations"] == expect["violations"]
        how = "matched"
    elif case["quirk"] is None and (loop.fates or not passed_over(case)):
        how = "lawful"
    elif case["quirk"] in AGENT_QUIRKS and (loop.fates or not passed_over(case)):
        AGENT_QUIRKS[case["quirk"]](case, loop)
        how = "improved"
    else:
        unjudged(case)
        how = "unjudged"
    held_to_the_laws(loop)
    outcome(family, how)


# -- sequences, told as events -----------------------------------------------------------------


class Told(Replay):
    """A recorded sequence of which each call is told to a hook, before it and after."""

    @cached_property
    def hook(self):
        return PlaybookEnforcerHook.over(self.enforcer)

    def _op_call(self, event):
        told = self.event_of(event)
        ticket = self.hook.before(told)
        return {**self._judged(ticket.admission), **self.done(told, event)}

    def _op_batch(self, event):
        events = [self.event_of(call) for call in event["calls"]]
        tickets = self.hook.before_all(events)
        judged = [self._judged(ticket.admission) for ticket in tickets]
        for place, (told, call) in enumerate(zip(events, event["calls"], strict=True)):
            if told.cancel is None and not self.hook.again(told):
                judged[place] = self._judged(tickets[place].admission)
            judged[place].update(tool=call["tool"], **self.done(told, call))
        return {"calls": judged}

    def event_of(self, call):
        return ToolEvent(tool_name=call["tool"], arguments=decode(call.get("args")))

    def done(self, told, call):
        before = len(self.enforcer.violations)
        if told.cancel is None:
            told.error = "it failed" if call.get("outcome") == "error" else None
            told.result = call.get("result")
            self.hook.after(told)
        return {"closing_violations": self._noted(before)}


def by_hook():
    return [
        one for one in recorded("sequence") if one.values[0]["input"].get("driver") != "enforcer"
    ]


@pytest.mark.parametrize("case", by_hook())
def test_sequences_told_as_events_are_as_recorded(case, outcome):
    assert all_differences(case, Told(case, "compat")) == []
    outcome({"family": "playbooks sequence by events compat", **case}, "equal")


@pytest.mark.parametrize("case", by_hook())
def test_under_the_safe_profile_events_come_to_what_calls_come_to(case):
    def left(kind):
        try:
            replay = kind(case, "safe")
        except PlaybookDefinitionError as refused:
            return str(refused)
        return replay.told, replay.left()

    assert left(Told) == left(Replay)
