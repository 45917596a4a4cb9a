"""Laws that every plan keeps, whatever was done to it; under ``safe``, more of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from runbook_nb.playbooks import PlaybookEnforcer, StepStatus
from runbook_nb.playbooks.events import from_dict, replay
from runbook_nb.playbooks.unmet import unmet_evidence


def broken_laws(enforcer: PlaybookEnforcer, tools: Iterable[str] = ()) -> list[str]:
    """Name the laws a plan breaks.

    Parameters
    ----------
    enforcer : PlaybookEnforcer
        The plan, and what holds calls to it.
    tools : iterable of str
        More tools that could be called than the steps name.
    """
    found = [*_replaying(enforcer), *_counting(enforcer), *_telling_the_truth(enforcer)]
    if enforcer.policy.profile == "safe":
        found += safe_laws(enforcer, tools)
    return found


def safe_laws(enforcer: PlaybookEnforcer, tools: Iterable[str] = ()) -> list[str]:
    """Name the laws of ``safe`` that a plan breaks, whatever it was held to."""
    return [*_finishing(enforcer), *_crediting(enforcer), *_never_freezing(enforcer, tools)]


def _replaying(enforcer: PlaybookEnforcer) -> Iterator[str]:
    """What happened, read back from JSON, leads to the same plan."""
    state = replay([from_dict(event.to_dict()) for event in enforcer.events])
    if state.plan != enforcer.plan:
        yield f"replayed plan differs: {state.plan!r} against {enforcer.plan!r}"
    for name in ("steps", "calls", "closed", "violations", "seq", "verdict"):
        if getattr(state, name) != getattr(enforcer.state, name):
            yield f"replayed {name} differ"
    if [event.seq for event in enforcer.events] != list(range(1, len(enforcer.events) + 1)):
        yield "events are not numbered one by one"


def _counting(enforcer: PlaybookEnforcer) -> Iterator[str]:
    """Records count what was called, no more and no less."""
    filed: Counter[str] = Counter()
    for key, record in enforcer.plan.step_executions.items():
        calls = [enforcer.state.calls.get(one) for one in enforcer.state.facts_of(key).calls]
        if record.tool_call_count != len(record.tool_calls):
            yield f"{key}: counted {record.tool_call_count} of {record.tool_calls}"
        if all(calls) and [call.tool for call in calls] != record.tool_calls:
            yield f"{key}: the record names other calls than were filed"
        filed[key] = record.tool_call_count
    if enforcer.plan.total_tool_calls < filed.total():
        yield f"{filed.total()} calls on record, {enforcer.plan.total_tool_calls} in all"
    for call in enforcer.calls:
        times = sum(facts.calls.count(call.call_id) for facts in enforcer.state.steps.values())
        if times > 1 or (times and call.outcome in (None, "refused", "cancelled")):
            yield f"{call.call_id} ({call.outcome}) is on record {times} times"


def _telling_the_truth(enforcer: PlaybookEnforcer) -> Iterator[str]:
    """A violation says it blocked exactly where a call was refused for it."""
    if not enforcer.record_violations:
        if enforcer.violations:
            yield "violations are recorded that were not to be"
        return
    if enforcer.policy.profile == "compat":
        return
    blocked = Counter(one.violation_type for one in enforcer.violations if one.blocked)
    refused = Counter(call.violation for call in enforcer.calls if call.outcome == "refused")
    if blocked != refused:
        yield f"{blocked} say they blocked, {refused} were refused"


def _finishing(enforcer: PlaybookEnforcer) -> Iterator[str]:
    """No required step is reported done without successful calls of its tools."""
    report = enforcer.report()
    for terms in enforcer.terms.steps:
        if not terms.step.required or terms.id in report.unresolved:
            continue
        facts = enforcer.state.facts_of(terms.id)
        early = {enforcer.state.calls[one].tool for one in facts.early}
        lacking = [tool for tool in terms.tools if not facts.succeeded[tool] and tool not in early]
        if lacking:
            yield f"{terms.id} is reported done without {lacking}"
    done = enforcer.plan.completed_steps
    for terms in enforcer.terms.steps:
        facts = enforcer.state.facts_of(terms.id)
        if terms.id in done and facts.closed_by in ("calls", "cap"):
            if any(not facts.succeeded[tool] for tool in terms.tools):
                yield f"{terms.id} was closed by {facts.closed_by} without its tools"
            short = terms.floor is not None and facts.counted < terms.floor
            full = terms.cap is not None and facts.counted >= terms.cap
            if short and not full:
                yield f"{terms.id} was closed below its floor"
        held = enforcer.policy.evidence == "hold" and terms.tools and facts.closed_by == "calls"
        if terms.id in done and held and (unmet := unmet_evidence(terms, enforcer.state)):
            yield f"{terms.id} was closed by calls without {unmet}"
    for step_id in report.declined:
        if step_id in done:
            yield f"{step_id} was declined, and is completed"
    declined = not report.declined.keys().isdisjoint(report.unresolved)
    if report.unresolved and report.verdict != ("declined" if declined else "incomplete"):
        yield f"{report.unresolved} are not done, and the verdict is {report.verdict}"
    if report.verdict == "pass" and enforcer.violations:
        yield "the verdict is pass, with violations"


def _crediting(enforcer: PlaybookEnforcer) -> Iterator[str]:
    """A call belongs to the step it was admitted under, and evidence is of what succeeded."""
    for call in enforcer.calls:
        if call.outcome == "refused" or call.housekeeping:
            continue
        if call.step_id != call.admitted_under:
            yield f"{call.call_id} was admitted under {call.admitted_under}, is in {call.step_id}"
        if call.matched and not call.succeeded:
            yield f"{call.call_id} failed, and is evidence of {call.matched}"
    for terms in enforcer.terms.steps:
        record = enforcer.plan.step_executions.get(terms.id)
        if record is None or not enforcer.block_violations or terms.cap is None:
            continue
        judged = [one for one in enforcer.calls if one.step_id == terms.id and one.judged]
        # A full cap stays open for a tool the step lacks, until one call of it has succeeded.
        beyond = [one for one in judged if one.counted][max(terms.cap, 0) :]
        if sum(one.succeeded for one in beyond) > len(terms.tools):
            yield f"{terms.id} took more calls than its cap and what it lacked"


def _never_freezing(enforcer: PlaybookEnforcer, tools: Iterable[str]) -> Iterator[str]:
    """A plan that nothing can bring on says so, or waits for a person or a call."""
    step = enforcer.current_step
    if step is None or enforcer.is_stuck or enforcer.waits_for_person:
        return
    left = enforcer.state.left  # of which nobody may ever tell
    if any(call.outcome is None and call.call_id not in left for call in enforcer.calls):
        return
    names = {tool for one in enforcer.terms.steps for tool in one.tools} | {*tools, "some tool"}
    names |= {name.split("(")[0] for one in enforcer.terms.steps for name in one.entries or ()}
    if not any(enforcer.may(name) for name in sorted(names)):
        yield f"no call is let through at {step.id}, and nothing says that the run is stuck"
    record = enforcer.plan.step_executions.get(step.id)
    if record is not None and record.status is StepStatus.SKIPPED:
        yield f"{step.id} was passed over, and is current"
