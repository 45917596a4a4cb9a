"""What the ``safe`` profile does instead of each recorded quirk: by the rule, not by the case."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from playbook_sequence import Replay, differences, skills_of

from runbook_nb.errors import PlaybookDefinitionError
from runbook_nb.playbooks import EnforcementPolicy, Playbook, PlaybookEnforcer, PlaybookStep
from runbook_nb.playbooks.patterns import permits
from runbook_nb.playbooks.skills import allowed_tools_for, effort_of, unresolved_skills
from runbook_nb.playbooks.vocabulary import problems_in

#: Says what of a quirk's better behaviour a replay does not show; None where it has no occasion.
Assertion = Callable[[dict[str, Any], Replay], list[str] | None]


def refusal_of(case: dict[str, Any]) -> PlaybookDefinitionError | None:
    """Give why the playbook of a case is refused under ``safe``, if it is."""
    given = case["input"]
    try:
        PlaybookEnforcer.from_playbook(
            Playbook(**given["playbook"]), skills=skills_of(given.get("skills"))
        )
    except PlaybookDefinitionError as error:
        return error
    return None


def reasons_to_refuse(case: dict[str, Any]) -> list[str]:
    """Say, from the playbook alone, what ``safe`` must not let pass."""
    book, skills = Playbook(**case["input"]["playbook"]), skills_of(case["input"].get("skills"))
    ids = [step.id for step in book.steps]
    unread = any(problems_in(step) for step in book.steps)
    if unread:  # told before anything else is looked at
        return ["checks cannot be read"]
    found = ["share the id"] if len(set(ids)) < len(ids) else []
    for step in book.steps:
        floor, cap = effort_of(step, skills, inherit=True)
        found += ["uses"] if unresolved_skills(step, skills) else []
        found += ["max_tool_calls"] if cap is not None and cap < 1 else []
        over = cap is not None and floor is not None and cap >= 1 and floor > cap
        found += ["min_tool_calls"] if over else []
        found += (
            ["required_probes"] if any(not p.match.strip() for p in step.required_probes) else []
        )
    return found


def _calls(case: dict[str, Any], replay: Replay) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Give each call of a case with what is told of it."""
    found = []
    for event, told in zip(case["input"]["events"], replay.told, strict=True):
        if event["op"] == "batch":
            found += list(zip(event["calls"], told["calls"], strict=True))
        elif event["op"] in ("call", "validate"):
            found.append((event, told))
    return found


def open_step(case: dict[str, Any], replay: Replay) -> list[str]:
    """Q04: no call is let through at a step that lists no tools and has no cap."""
    if not replay.enforcer.block_violations:
        return []  # then it is let through, and noted: a law of every plan
    steps = {one.id: one for one in replay.enforcer.terms.steps}
    return [
        f"{event['tool']} was let through at {told['step_before']}"
        for event, told in _calls(case, replay)
        if told["allowed"] and told["step_before"] in steps
        if steps[told["step_before"]].open_ended and steps[told["step_before"]].entries is None
        if not replay.enforcer.terms.lenient
    ]


def optional_passable(case: dict[str, Any], replay: Replay) -> list[str]:
    """Q05: no call that fits the step behind optional ones is refused at an optional one."""
    steps = replay.enforcer.terms.steps
    found = []
    for event, told in _calls(case, replay):
        if told["allowed"] or told["category"] != "unexpected_tool":
            continue
        place = next(one.index for one in steps if one.id == told["step_before"])
        while place < len(steps) and not steps[place].step.required:
            place += 1
            if place < len(steps) and event["tool"] in steps[place].tools:
                found.append(f"{event['tool']} was refused, and fits {steps[place].id}")
    return found


def early_remembered(case: dict[str, Any], replay: Replay) -> list[str]:
    """Q06: a later step's tool that succeeded before its time is offered to that step."""
    found = []
    for call in replay.enforcer.calls:
        if call.early_for is None or not call.succeeded:
            continue
        if call.call_id not in replay.enforcer.state.facts_of(call.early_for).early:
            found.append(f"{call.call_id} is not remembered for {call.early_for}")
    terms, closed = replay.enforcer.terms, replay.enforcer.state.closed
    for call in replay.enforcer.calls:
        under = terms.by_id.get(call.step_id or "")
        if under is None or not under.tools or not (call.succeeded and call.judged):
            continue
        behind = [one for one in terms.steps[under.index + 1 :] if one.index not in closed]
        fits = any(call.tool in one.tools for one in behind)
        if fits and call.tool not in under.tools and call.early_for is None:
            found.append(f"{call.call_id} is not remembered as early")
    return found


def tools_missing_told(case: dict[str, Any], replay: Replay) -> list[str]:
    """Q07: a step that had all its calls without its tools is not completed, and says so."""
    silent = not replay.enforcer.record_violations
    noted = {(one.violation_type, one.step_id) for one in replay.enforcer.violations}
    found = []
    for one in replay.enforcer.terms.steps:
        facts = replay.enforcer.state.facts_of(one.id)
        judged = [call for call in replay.enforcer.calls if call.step_id == one.id and call.judged]
        full = one.cap is not None and sum(call.counted for call in judged) >= one.cap
        if full and one.tools and any(not facts.succeeded[tool] for tool in one.tools):
            if ("tools_missing", one.id) not in noted and not silent:
                found.append(f"nothing says that {one.id} lacks tools")
            if replay.enforcer.plan.is_step_complete(one.id) and facts.closed_by == "cap":
                found.append(f"{one.id} was closed by its cap")
    return found


def cap_for_all(case: dict[str, Any], replay: Replay) -> list[str]:
    """Q08: unlisted tools that are let through are held to the cap too."""
    found = []
    for one in replay.enforcer.terms.steps:
        if one.cap is None or not replay.enforcer.block_violations:
            continue
        judged = [call for call in replay.enforcer.calls if call.step_id == one.id and call.judged]
        counted = sum(call.counted for call in judged)
        if counted > one.cap + len(one.tools):
            found.append(f"{one.id} took {counted} calls of {one.cap}")
    return found


def as_other_violations(case: dict[str, Any], replay: Replay) -> list[str]:
    """Q09: after the last step a call is refused exactly where others would be."""
    return [
        f"{event['tool']} was refused in record-only mode"
        for event, told in _calls(case, replay)
        if not told["allowed"] and not replay.enforcer.block_violations
    ]


def floor_holds(case: dict[str, Any], replay: Replay) -> list[str]:
    """Q10: no call closes a step below its floor."""
    found = []
    for one in replay.enforcer.terms.steps:
        facts = replay.enforcer.state.facts_of(one.id)
        short = one.floor is not None and facts.counted < one.floor
        full = one.cap is not None and facts.counted >= one.cap
        done = replay.enforcer.plan.is_step_complete(one.id)
        if done and facts.closed_by == "calls" and short and not full:
            found.append(f"{one.id} closed after {facts.counted} of {one.floor} calls")
    return found


def failures_never_freeze(case: dict[str, Any], replay: Replay) -> list[str]:
    """Q13: calls that failed use up no cap."""
    found = []
    for event, told in _calls(case, replay):
        step = next((s for s in replay.enforcer.terms.steps if s.id == told["step_before"]), None)
        if told["category"] == "max_tool_calls" and step is not None:
            facts = replay.enforcer.state.facts_of(step.id)
            if sum(facts.succeeded.values()) < (step.cap or 0):
                found.append(f"{event['tool']} was refused for the cap of {step.id}")
    return found


def batches_in_order(case: dict[str, Any], replay: Replay) -> list[str] | None:
    """Q15: a reply whose calls are right one after another is let through whole."""
    if replay.driver != "hook":  # of which single calls bring nothing on
        return None
    if any(event.get("outcome") == "error" for event, _ in _calls(case, replay)):
        return None  # a batch is judged as if what comes before succeeds
    single = {**case, "input": {**case["input"], "events": []}}
    for event in case["input"]["events"]:
        calls = event["calls"] if event["op"] == "batch" else [event]
        single["input"]["events"] += [{"op": "call", **one} for one in calls]
    alone = [told["allowed"] for told in Replay(single, "safe").told if "category" in told]
    together = [told["allowed"] for _, told in _calls(case, replay)]
    worse = [n for n, (a, b) in enumerate(zip(alone, together, strict=False)) if a and not b]
    return [f"call {n} is refused only because it came in a batch" for n in worse]


def empty_list_denies(case: dict[str, Any], replay: Replay) -> list[str]:
    """Q17: a step whose skills allow nothing lets no tool through."""
    if not replay.enforcer.block_violations:
        return []
    skills = skills_of(case["input"].get("skills"))
    denied = {
        one.id
        for one in replay.enforcer.terms.steps
        if allowed_tools_for(one.step, skills, empty_skill_list="deny") == set()
    }
    return [
        f"{event['tool']} was let through at {told['step_before']}"
        for event, told in _calls(case, replay)
        if told["allowed"] and told["step_before"] in denied and not replay.enforcer.terms.lenient
    ]


def impossible_is_stuck(case: dict[str, Any], replay: Replay) -> list[str]:
    """Q19: a step that expects a tool its skills forbid says that it is stuck."""
    step = replay.enforcer.current_step
    terms = replay.enforcer.terms.of(step) if step is not None else None
    if terms is None or terms.entries is None or replay.enforcer.terms.lenient:
        return []
    if not replay.enforcer.block_violations or not step.required:
        return []  # then a call brings the run on all the same
    outside = [one for one in terms.tools if not permits(terms.entries, one)]
    return ["an impossible step is not told"] if outside and not replay.enforcer.is_stuck else []


def effort_inherited(case: dict[str, Any], replay: Replay) -> list[str]:
    """Q20: the bounds of skills hold where the step has none."""
    skills = skills_of(case["input"].get("skills"))
    return [
        f"{one.id} is held to {one.floor}–{one.cap}"
        for one in replay.enforcer.terms.steps
        if (one.floor, one.cap) != effort_of(one.step, skills, inherit=True)
    ]


def housekeeping(case: dict[str, Any], replay: Replay) -> list[str]:
    """Q21: tools that are always allowed are let through, and belong to no step."""
    always = set(EnforcementPolicy().always_allowed)
    found = [
        f"{event['tool']} was refused"
        for event, told in _calls(case, replay)
        if event["tool"] in always and not told["allowed"]
    ]
    listed = {tool for one in replay.enforcer.terms.steps for tool in one.tools}
    for record in replay.enforcer.plan.step_executions.values():
        found += [f"{one} is on record" for one in record.tool_calls if one in always - listed]
    return found


def unfinished_is_told(case: dict[str, Any], replay: Replay) -> list[str]:
    """Q22: a run with required steps to go says so beside a score below 1."""
    report = replay.enforcer.finish()
    left = replay.enforcer.plan.unresolved_required_steps()
    noted = [v.step_id for v in replay.enforcer.violations if v.violation_type == "unresolved_step"]
    found = [f"{one} is not told" for one in left if one not in report.unresolved]
    found += [f"{one} is not noted" for one in left if one not in noted]
    found += ["the verdict is not incomplete"] if left and report.passed else []
    if not replay.enforcer.record_violations:
        found = [one for one in found if "noted" not in one]
    untouched = set(left) - replay.enforcer.plan.step_executions.keys()
    return found + (["the score is 1"] if untouched and report.score == 1.0 else [])


def folded_evidence(case: dict[str, Any], replay: Replay) -> list[str]:
    """Q23: ``key=value`` finds an argument, and letters of any script are found as written."""
    found = []
    for call in replay.enforcer.calls:
        given = call.arguments
        step = replay.enforcer.terms.by_id.get(call.step_id or "")
        if not call.succeeded or step is None or not isinstance(given, dict):
            continue
        leaves = {f"{key}={value}".casefold() for key, value in given.items()}
        matched = replay.enforcer.plan.step_executions[step.id].matched_probes
        found += [
            f"{probe.name} is not found in {given}"
            for probe in step.probes
            if probe.match.casefold() in leaves and probe.name not in matched
        ]
        found += _fields_confused(call.tool, given, step)
    return found


def _fields_confused(tool: str, given: dict[str, Any], step: Any) -> list[str]:
    """Say where a check of one field is met by what stands in another, as a plain probe is."""
    found = []
    for probe in step.probes:
        for field, value in given.items():
            one = {"name": "c", "path": field, "op": "contains", "value": probe.match}
            check = PlaybookStep(id="s", description="", expected_tools=[tool], checks=[one])
            held = PlaybookEnforcer.from_playbook(Playbook(id="p", name="n", steps=[check]))
            held.settle(held.admit(tool, given))
            met = held.calls[0].checks == ("c",)
            if met != (isinstance(value, str) and probe.match in value):
                found.append(f"a check of {field} is {'met' if met else 'unmet'} by {given}")
    return found


def settled_steps_count(case: dict[str, Any], replay: Replay) -> list[str]:
    """Q24: the score can be of completed steps alone."""
    enforcer = replay.enforcer
    done = [enforcer.terms.by_id[one] for one in enforcer.plan.completed_steps]
    shares = [enforcer.plan.step_executions[one.id].probe_coverage(one.probes) for one in done]
    expected = sum(shares) / len(shares) if shares else 1.0
    score = enforcer.adherence_score(scope="reached", count={"completed"})
    return [] if abs(score - expected) < 1e-9 else [f"the score is {score}, not {expected}"]


def every_step_in_a_bucket(case: dict[str, Any], replay: Replay) -> list[str]:
    """Q25: each step is counted in exactly one place of the summary."""
    told = replay.enforcer.get_step_summary()
    words = ("completed", "skipped", "failed", "in_progress", "not_started")
    total = sum(told.get(word, 0) for word in words)
    return [] if total == told["total_steps"] else [f"{told} counts {total} steps"]


def patterns_understood(case: dict[str, Any], replay: Replay) -> list[str]:
    """Q32: an entry such as ``Bash(git:*)`` bounds the arguments of the tool it names."""
    steps = replay.enforcer.terms.by_id
    found = []
    for call in replay.enforcer.calls:
        entries = steps[call.admitted_under].entries if call.admitted_under in steps else None
        if entries is None or call.violation not in (None, "tool_outside_skill"):
            continue
        if replay.enforcer.terms.lenient or not call.judged:
            continue
        fits = permits(entries, call.tool, call.arguments)
        if fits != (call.violation is None):
            found.append(f"{call.tool} with {call.arguments} is {call.violation or 'let through'}")
    return found


def interleaved(case: dict[str, Any], replay: Replay) -> list[str]:
    """Q03: where the order does not bind, no tool of an open step is unexpected."""
    if replay.enforcer.plan.playbook.strict_sequence:
        return []
    listed = {tool for one in replay.enforcer.terms.steps for tool in one.tools}
    refused = [one for one in replay.enforcer.calls if one.violation == "unexpected_tool"]
    open_tools = {
        tool
        for one in replay.enforcer.terms.steps
        if one.index not in replay.enforcer.state.closed
        for tool in one.tools
    }
    return [f"{one.tool} is unexpected" for one in refused if one.tool in listed & open_tools]


def budget_is_kept(case: dict[str, Any], replay: Replay) -> list[str] | None:
    """Q01: a playbook that says how many calls it takes is held to it."""
    most = replay.enforcer.plan.playbook.max_iterations
    if most is None or not replay.enforcer.block_violations:
        return None
    judged = [one for one in replay.enforcer.calls if one.judged and not one.housekeeping]
    made = [one for one in judged if one.outcome != "refused"]
    return [f"{len(made)} calls were let through, of {most}"] if len(made) > most else []


def dump_goes_on(case: dict[str, Any], replay: Replay) -> list[str]:
    """Q33: what was dumped goes on with its violations, its score and its skills."""
    again = PlaybookEnforcer.load(json.loads(json.dumps(replay.enforcer.dump())))
    kept = ("plan", "violations", "policy")
    found = [key for key in kept if getattr(again, key) != getattr(replay.enforcer, key)]
    same = again.adherence_score() == replay.enforcer.adherence_score()
    return [f"{key} is lost" for key in found] + ([] if same else ["the score differs"])


def started_at_admission(case: dict[str, Any], replay: Replay) -> list[str]:
    """Q34: a step has begun when its first call was let through, and each call says when it ran."""
    found = [
        f"{one.call_id} has no times"
        for one in replay.enforcer.calls
        if one.judged and one.outcome not in ("refused", None) and None in (one.started, one.ended)
    ]
    for key, record in replay.enforcer.plan.step_executions.items():
        calls = [
            one.started
            for one in replay.enforcer.calls
            if one.step_id == key and one.started and one.outcome != "refused"
        ]
        if record.started_at is not None and calls and record.started_at > min(calls):
            found.append(f"{key} started after its first call")
    return found


def hints_are_told(case: dict[str, Any], replay: Replay) -> list[str]:
    """Q02: what a step is about and its hints are there to be told before anything is refused."""
    step = replay.enforcer.current_step
    if step is None:
        return []
    text = replay.enforcer.brief("step")
    return [f"{one!r} is not told" for one in (step.description, *step.hints) if one not in text]


def nothing_more(case: dict[str, Any], replay: Replay) -> list[str]:
    """The general laws say it: credit, success and evidence are laws of every plan."""
    return []


#: Quirk -> what the better behaviour of its row is.
BETTER: dict[str, Assertion] = {
    "Q01": budget_is_kept,
    "Q02": hints_are_told,
    "Q03": interleaved,
    "Q04": open_step,
    "Q05": optional_passable,
    "Q06": early_remembered,
    "Q07": tools_missing_told,
    "Q08": cap_for_all,
    "Q09": as_other_violations,
    "Q10": floor_holds,
    "Q12": nothing_more,
    "Q13": failures_never_freeze,
    "Q14": nothing_more,
    "Q15": batches_in_order,
    "Q16": nothing_more,
    "Q17": empty_list_denies,
    "Q19": impossible_is_stuck,
    "Q20": effort_inherited,
    "Q21": housekeeping,
    "Q22": unfinished_is_told,
    "Q23": folded_evidence,
    "Q24": settled_steps_count,
    "Q25": every_step_in_a_bucket,
    "Q32": patterns_understood,
    "Q33": dump_goes_on,
    "Q34": started_at_admission,
    "Q35": nothing_more,
}


#: Facts of the end that a stricter score, and more counts, make no difference to.
SAME = ("violations", "statuses", "records", "unresolved", "pointer", "total_tool_calls")


def is_plain(case: dict[str, Any]) -> bool:
    """Say whether a case uses nothing that any rule of the policy changes."""
    given = case["input"]
    book = Playbook(**given["playbook"])
    always = EnforcementPolicy().always_allowed
    return (
        book.strict_sequence
        and not book.allow_extra_tools
        and book.max_iterations is None
        and given.get("block_violations", True)
        and given.get("driver", "hook") == "hook"
        and all(event["op"] == "call" for event in given["events"])
        and all(event.get("outcome", "ok") == "ok" for event in given["events"])
        and all(event["tool"] not in always for event in given["events"])
        and all(
            step.required
            and step.expected_tools
            and not (step.uses or step.required_probes or step.validation)
            and step.min_tool_calls is None
            and step.max_tool_calls is None
            for step in book.steps
        )
    )


def unlike_compat(case: dict[str, Any], replay: Replay) -> list[str]:
    """Say where a plain case is judged otherwise than recorded."""
    found = []
    for place, (one, told) in enumerate(zip(case["expect"]["events"], replay.told, strict=True)):
        expected = {key: value for key, value in one.items() if key != "after"}
        found += differences(expected, told, f"events[{place}]")
    left = replay.left()
    return found + [f"{key}: {left[key]!r}" for key in SAME if left[key] != case["expect"][key]]
