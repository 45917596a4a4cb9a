"""Does a step close: what ends it, what it lacks when it ends, and when nothing can end it.

Everything here reads the terms and the state of a plan and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from runbook_nb._text import counted, listed
from runbook_nb._value import frozen
from runbook_nb.playbooks.judging import (
    calls_used,
    current_of,
    declined_words,
    due_past,
    is_cap_full,
    judge,
    missing_tools,
    quoted,
    steps_past,
    undone_before,
    waits_for_person,
)
from runbook_nb.playbooks.policy import EnforcementPolicy
from runbook_nb.playbooks.state import PlanState
from runbook_nb.playbooks.terms import StepTerms, Terms
from runbook_nb.playbooks.unmet import (
    failing_checks,
    is_past_showing,
    unmatched_probes,
    unmet_evidence,
)

#: What a call that ended does to its step.
Ending = Literal["calls", "cap", "fail", "hold"]


@frozen
class Shortfall:
    """Something a step lacks when it closes.

    Attributes
    ----------
    violation : str
        The type it is noted as.
    message : str
        What is lacking, in a sentence.
    """

    violation: str
    message: str


def ending_of(terms: StepTerms, state: PlanState) -> Ending | None:
    """Say what a successful call does to the step it is filed under.

    Parameters
    ----------
    terms : StepTerms
        The step.
    state : PlanState
        The plan, with the call filed.

    Returns
    -------
    str or None
        ``calls`` or ``cap`` close it; ``fail`` marks it as failed, ``hold`` keeps it open with
        what it lacks noted; None leaves it as it is.
    """
    if terms.person or declined_words(terms, state) is not None:
        return None
    policy = state.policy
    missing = missing_tools(terms, state)
    facts = state.steps[terms.id]
    full = terms.cap is not None and facts.counted >= terms.cap
    if terms.tools and not missing:
        below = terms.floor is not None and facts.counted < terms.floor
        if policy.floor == "hold" and below and not full:
            return None
        if policy.evidence == "hold" and unmet_evidence(terms, state):
            return "cap" if full else None
        return "calls"
    if not full:
        return None
    if not terms.tools or policy.on_cap == "close":
        return "cap"
    return "fail" if policy.on_cap == "fail" else "hold"


def shortfalls(terms: StepTerms, state: PlanState, *, by_person: bool = False) -> list[Shortfall]:
    """Give what a step lacks, in the order in which it is noted when it closes.

    Parameters
    ----------
    terms : StepTerms
        The step.
    state : PlanState
        The plan.
    by_person : bool
        Whether somebody closes it who may take calls made too early for it as its own.

    Examples
    --------
    >>> from runbook_nb.playbooks.model import Playbook, PlaybookPlan, PlaybookStep
    >>> step = PlaybookStep(id="look", description="Look.", expected_tools=["scan"])
    >>> book = Playbook(id="ir", name="Response", steps=[step])
    >>> state = PlanState(PlaybookPlan(playbook=book), EnforcementPolicy())
    >>> terms = Terms(book, {}, state.policy)
    >>> [one.violation for one in shortfalls(terms.steps[0], state)]
    ['tools_missing']
    """
    found = []
    record = state.plan.step_executions.get(terms.id)
    unmatched = unmatched_probes(terms, record)
    if unmatched:
        total = len({probe.name for probe in terms.probes})
        found.append(
            Shortfall(
                violation="evidence_incomplete",
                message=f"step {quoted(terms.id)} has {total - len(unmatched)} of "
                f"{counted(total, 'probe')}: no call shows {listed(map(quoted, unmatched))}",
            )
        )
    facts = state.steps.get(terms.id)
    made = 0 if facts is None else facts.counted
    if terms.floor is not None and made < terms.floor:
        found.append(
            Shortfall(
                violation="insufficient_effort",
                message=f"step {quoted(terms.id)} takes at least "
                f"{counted(terms.floor, 'call')} and had {made}",
            )
        )
    if tells_missing(state.policy):
        lacking = lacking_tools(terms, state, by_person=by_person)
        if lacking:
            found.append(tools_missing(terms, lacking))
    found += _unmet_checks(terms, state)
    if terms.step.kind == "approval" and not (facts is not None and facts.approvals):
        found.append(
            Shortfall(
                violation="approval_missing",
                message=f"step {quoted(terms.id)} was closed without anybody's approval",
            )
        )
    return found


def tools_missing(terms: StepTerms, lacking: Iterable[str]) -> Shortfall:
    """Give the shortfall of a step some of whose tools were never called with success."""
    return Shortfall(
        violation="tools_missing",
        message=f"step {quoted(terms.id)} expects {listed(map(quoted, lacking))}, "
        "of which there was no successful call",
    )


def tells_missing(policy: EnforcementPolicy) -> bool:
    """Say whether a step that lacks tools is noted: the published enforcer never does."""
    return policy.profile != "compat" or policy.on_cap != "close"


def lacking_tools(terms: StepTerms, state: PlanState, *, by_person: bool = False) -> list[str]:
    """Name the expected tools a step lacks; for a person, calls made too early count."""
    missing = missing_tools(terms, state)
    facts = state.steps.get(terms.id)
    if not by_person or facts is None or not facts.early:
        return missing
    early = {state.calls[call_id].tool for call_id in facts.early if call_id in state.calls}
    return [tool for tool in missing if tool not in early]


def _unmet_checks(terms: StepTerms, state: PlanState) -> list[Shortfall]:
    return [
        Shortfall(
            violation="validation_failed" if one.outcome == "unmet" else "validation_unreadable",
            message=f"{quoted(one.name)} of step {quoted(terms.id)} is {one.outcome}: {one.reason}",
        )
        for one in failing_checks(terms, state)
    ]


#: What can be done about a step that no call moves on.
_ASK: Final = "a person has to close it, or the plan has to be set back"


def stuck_reason(terms: Terms, state: PlanState) -> str | None:
    """Say why no call can bring a plan on any more; None where one can, or a person is due.

    A step that a person closes waits, and is not stuck; neither is a plan at its end, nor one
    in which a call still runs.

    Examples
    --------
    >>> from runbook_nb.playbooks.model import Playbook, PlaybookPlan, PlaybookStep
    >>> step = PlaybookStep(id="look", description="Look.", expected_tools=["scan"])
    >>> book = Playbook(id="ir", name="Response", steps=[step])
    >>> state = PlanState(PlaybookPlan(playbook=book), EnforcementPolicy())
    >>> stuck_reason(Terms(book, {}, state.policy), state) is None
    True
    """
    current = current_of(terms, state)
    if current is None or any(facts.running.keys() - state.left for facts in state.steps.values()):
        return None
    if state.block and terms.budget is not None and calls_used(state) >= terms.budget:
        return f"the run has made the {counted(terms.budget, 'call')} it may make"
    if terms.interleaved:
        left = [one for one in terms.steps if one.index not in state.closed]
        still = [one for one in left if not waits_for_person(one, state)]
        if len(still) < len(left):  # a person is due, whom a step that was declined does not stop
            still = [one for one in still if declined_words(one, state) is None]
        reasons = {one.index: _stuck_at(terms, state, one) for one in still}
        if any(reasons[o.index] is None and _is_reached(terms, state, o) for o in still):
            return None
        return next((why for why in reasons.values() if why is not None), None)
    reason = _stuck_at(terms, state, current)
    if reason is None or current.step.required or terms.policy.optional == "blocking":
        return reason
    return reason if not _way_past(terms, state) else None


def _is_reached(terms: Terms, state: PlanState, at: StepTerms) -> bool:
    """Say whether a call of what a step lacks goes to it, and not to an earlier open one."""
    asked = missing_tools(at, state) or at.tools
    return not asked or any(judge(terms, state, tool).index == at.index for tool in asked)


def _way_past(terms: Terms, state: PlanState) -> bool:
    """Say whether some later step can be reached over optional ones, by a call or a person."""
    if due_past(terms, state) is not None:
        return True
    for later, _ in steps_past(terms, state):
        reached = any(judge(terms, state, tool).passed_over for tool in later.tools)
        if reached and _stuck_at(terms, state, later) is None:
            return True
    return False


def _stuck_at(terms: Terms, state: PlanState, at: StepTerms) -> str | None:
    """Say why no call can close one step."""
    declined = declined_words(at, state)
    if declined is not None:
        return f"{declined}; setting the plan back asks for it again"
    if waits_for_person(at, state) or not state.block:
        return None
    facts = state.steps.get(at.id)
    if facts is not None and facts.timed_out_at is not None and state.policy.on_timeout == "block":
        return f"step {quoted(at.id)} took longer than it may, and {_ASK}"
    lacking = undone_before(terms, state, at)
    if lacking:
        return f"step {quoted(at.id)} comes after {listed(map(quoted, lacking))}, not done; {_ASK}"
    missing = missing_tools(at, state)
    outside = [
        tool for tool in missing or at.tools if not terms.lenient and terms.is_outside(at, tool)
    ]
    if outside and (missing or len(outside) == len(at.tools)):
        return (
            f"step {quoted(at.id)} expects {listed(map(quoted, outside))}, "
            "which the skills it uses do not allow"
        )
    if not at.tools and at.entries is not None and not at.entries and not terms.lenient:
        return f"the skills that step {quoted(at.id)} uses allow no tool at all"
    if at.open_ended:
        return f"step {quoted(at.id)} lists no tools and has no cap, so no call closes it; {_ASK}"
    running = {} if facts is None else facts.running
    still = [tool for tool in missing if tool not in running.values()]
    if is_cap_full(at, state) and not (still and state.policy.on_cap == "hold"):
        left = sorted(running.keys() & state.left)
        if left:
            return (
                f"step {quoted(at.id)} waits for what came of {listed(map(quoted, left))}, which "
                f"ran when the plan was left: settle it, or {_ASK}"
            )
        return (
            f"step {quoted(at.id)} had the {counted(max(at.cap or 0, 1), 'call')} it may have and "
            f"is not closed{_unshown(at, state, missing)}; {_ASK}"
        )
    if not missing and is_past_showing(at, state):
        return f"no call can meet the validation of step {quoted(at.id)} any more; {_ASK}"
    return None


def _unshown(at: StepTerms, state: PlanState, missing: list[str]) -> str:
    """Say which evidence a step is held for."""
    if state.policy.evidence != "hold" or missing:
        return ""
    unmet = unmet_evidence(at, state)
    return f", for no call shows {listed(map(quoted, unmet))}" if unmet else ""
