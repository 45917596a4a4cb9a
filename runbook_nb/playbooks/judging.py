"""May this call be made: the rules of admission, read from the terms and the state of a plan.

`judge` changes nothing. What it gives says whether the call may be made, under which step, what it
goes against, what is passed over to come there, and what helps whoever made it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from runbook_nb._text import MISSING, clip, listed, visible
from runbook_nb._value import frozen
from runbook_nb.playbooks.state import PlanState, StepFacts
from runbook_nb.playbooks.terms import StepTerms, Terms
from runbook_nb.playbooks.unmet import is_past_showing, unmet_evidence

#: Longest name told in a message, in characters.
_NAME: Final = 120
#: Longest note of a person told in a message, in characters.
_NOTE: Final = 400


@frozen
class Judgement:
    """What judging a call comes to.

    Attributes
    ----------
    allowed : bool
        Whether it may be made.
    index : int or None
        The place of the step it was judged under; None after the last step, or for housekeeping.
    violation : str or None
        The type of what it goes against.
    message : str
        That in a sentence.
    hints : tuple of str
        What helps.
    blocked : bool
        What the violation says of itself.
    passed_over : tuple of int
        Places of optional steps that are passed over if the call is made.
    housekeeping : bool
        Whether it belongs to no step.
    early_for : int or None
        The place of the later step whose tool this is.
    """

    allowed: bool
    index: int | None = None
    violation: str | None = None
    message: str = ""
    hints: tuple[str, ...] = ()
    blocked: bool = False
    passed_over: tuple[int, ...] = ()
    housekeeping: bool = False
    early_for: int | None = None


def judge(terms: Terms, state: PlanState, tool: str, arguments: Any = MISSING) -> Judgement:
    """Say whether a call may be made now.

    Parameters
    ----------
    terms : Terms
        What the steps ask for.
    state : PlanState
        Where the plan stands.
    tool : str
        The tool.
    arguments : object, optional
        What it is called with; left out, its name alone is judged.

    Examples
    --------
    >>> from runbook_nb.playbooks.model import Playbook, PlaybookPlan, PlaybookStep
    >>> from runbook_nb.playbooks.policy import EnforcementPolicy
    >>> step = PlaybookStep(id="look", description="Look.", expected_tools=["scan"])
    >>> book = Playbook(id="ir", name="Response", steps=[step])
    >>> state = PlanState(PlaybookPlan(playbook=book), EnforcementPolicy())
    >>> judge(Terms(book, {}, state.policy), state, "format_disk").violation
    'unexpected_tool'
    """
    current = current_of(terms, state)
    if terms.is_housekeeping(tool) and (current is None or tool not in terms.expected):
        return Judgement(allowed=True, housekeeping=True)
    if current is None:
        return _after_the_last(terms, state, tool) if state.plan.completed else _ALLOWED
    if terms.budget is not None and calls_used(state) >= terms.budget:
        return _against(
            state,
            current,
            "plan_budget",
            f"the run may make {terms.budget} calls, and has made them; "
            f"{quoted(tool)} would be one more",
            ("Bring the run to its end with what is there.",),
        )
    if terms.interleaved:
        return _judged_anywhere(terms, state, current, tool, arguments)
    found = _judged_at(terms, state, current, tool, arguments)
    if current.step.required or terms.policy.optional == "blocking" or tool in current.tools:
        return found
    if found.allowed and found.violation is None and not current.tools:
        return found  # it lists no tools, and takes this one
    past = _judged_past(terms, state, tool, arguments)
    return past or _told_of_way(terms, state, current, tool, found)


def current_of(terms: Terms, state: PlanState) -> StepTerms | None:
    """Give the terms of the step at the pointer, or None where it is out of range."""
    place = state.plan.current_step_index
    return terms.steps[place] if 0 <= place < len(terms.steps) else None


def is_cap_full(terms: StepTerms, state: PlanState) -> bool:
    """Say whether a step has taken, or is taking, as many calls as it may."""
    if terms.cap is None:
        return False
    facts = state.steps.get(terms.id)
    running = 0 if facts is None else _reserved(terms, state, facts)
    if not running and terms.id not in state.plan.step_executions:
        return False
    return (0 if facts is None else facts.counted) + running >= terms.cap


def missing_tools(terms: StepTerms, state: PlanState) -> list[str]:
    """Name the expected tools that do not count as called yet, as declared."""
    facts = state.steps.get(terms.id)
    if facts is None:
        return list(terms.tools)
    seen = facts.attempted if state.policy.seen == "attempted" else facts.succeeded
    return [tool for tool in terms.tools if not seen[tool]]


def calls_used(state: PlanState) -> int:
    """Count the calls that a plan has had, those that run or were left running among them."""
    running = sum(len(facts.running) for facts in state.steps.values())
    return state.plan.total_tool_calls + running


def _reserved(terms: StepTerms, state: PlanState, facts: StepFacts) -> int:
    """Count the calls that run under a step and may come to count: admission reserves them."""
    if state.policy.credit != "admitted" or not facts.running:
        return 0
    if state.policy.cap_counts == "expected" and terms.tools:
        return sum(tool in terms.tools for tool in facts.running.values())
    return len(facts.running)


_ALLOWED: Final = Judgement(allowed=True)


def _after_the_last(terms: Terms, state: PlanState, tool: str) -> Judgement:
    hints = ("The playbook has come to its end: say what was found and stop.",)
    word = terms.policy.after_complete
    if terms.lenient or word == "allow":
        return Judgement(allowed=True, hints=hints)
    refused = word == "reject" or (word == "as_others" and state.block)
    return Judgement(
        allowed=not refused,
        violation="playbook_complete",
        message=f"every step is closed, and {quoted(tool)} belongs to none",
        hints=hints,
        # Upstream says of itself what it does to other violations; safe, what it does.
        blocked=state.block if word == "reject" and terms.policy.profile == "compat" else refused,
    )


def _against(
    state: PlanState, at: StepTerms, kind: str, message: str, hints: tuple[str, ...], **more: Any
) -> Judgement:
    return Judgement(
        allowed=not state.block,
        index=at.index,
        violation=kind,
        message=message,
        hints=hints,
        blocked=state.block,
        **more,
    )


def _judged_at(
    terms: Terms, state: PlanState, at: StepTerms, tool: str, arguments: Any
) -> Judgement:
    """Judge a call under one step."""
    own = tuple(at.step.hints)
    barred = _barred(terms, state, at, tool)
    if barred is not None:
        return _against(state, at, *barred)
    if terms.is_outside(at, tool, arguments):
        if not terms.lenient:
            return _against(
                state,
                at,
                "tool_outside_skill",
                _outside_message(at, tool),
                own,
                **_early(terms, state, at, tool),
            )
        if terms.policy.cap_applies_to == "listed":
            return Judgement(allowed=True, index=at.index)
    early: dict[str, Any] = {}
    if (at.tools or at.closed_to_tools) and tool not in at.tools:
        early = _early(terms, state, at, tool)
        bound = at.closed_to_tools and at.entries is not None
        if not terms.lenient and not bound:
            told, hint = _unexpected(terms, state, at, tool)
            return _against(state, at, "unexpected_tool", told, (hint, *own), **early)
        if terms.lenient and terms.policy.cap_applies_to == "listed":
            return Judgement(allowed=True, index=at.index, hints=own, **early)
    owner = _owner_after(terms, at, tool)
    if owner is not None:
        return _against(
            state,
            at,
            "unexpected_tool",
            f"{quoted(tool)} is a tool of step {quoted(owner.id)}, which comes after step "
            f"{quoted(at.id)}",
            (f"Call another tool, or have step {quoted(at.id)} closed first.", *own),
        )
    if is_cap_full(at, state) and not _is_held_for(terms, state, at, tool):
        return _against(
            state,
            at,
            "max_tool_calls",
            f"step {quoted(at.id)} takes at most {at.cap} calls, and has had them",
            ("Go on to what comes after this step.",),
        )
    return Judgement(allowed=True, index=at.index, hints=own, **early)


def _owner_after(terms: Terms, at: StepTerms, tool: str) -> StepTerms | None:
    """Give the later step whose tool this is, where a step that lists none would let it through.

    A step without tools takes any up to its cap; what a later step is there for would then be done
    before its turn.
    """
    if at.tools or at.entries is not None or terms.lenient or terms.interleaved:
        return None
    if terms.policy.empty_step == "open":
        return None
    return next((one for one in terms.steps[at.index + 1 :] if tool in one.tools), None)


def _is_held_for(terms: Terms, state: PlanState, at: StepTerms, tool: str) -> bool:
    """Say whether a step with a full cap stays open for a tool it still lacks."""
    if terms.policy.on_cap != "hold" or tool not in at.tools:
        return False
    facts = state.steps.get(at.id)
    running = facts.running.values() if facts is not None else ()
    return tool in missing_tools(at, state) and tool not in running


def _barred(
    terms: Terms, state: PlanState, at: StepTerms, tool: str
) -> tuple[str, str, tuple[str, ...]] | None:
    """Say what bars every tool from a step: time, an approval, what has to come first."""
    facts = state.steps.get(at.id)
    if facts is not None and facts.declined is not None:
        stop = "Say what was found and stop: the run cannot go on past this step."
        return (
            "approval_declined",
            f"{declined_words(at, state)}; {quoted(tool)} may not be called",
            (stop if at.step.required and not terms.interleaved else "Leave this step out.",),
        )
    if facts is not None and facts.timed_out_at is not None and terms.policy.on_timeout == "block":
        return (
            "step_timeout",
            f"step {quoted(at.id)} took longer than the {at.step.timeout_seconds:g} s it may",
            ("Ask a person to close the step or to set the plan back.",),
        )
    if at.step.kind == "approval" and at.tools and not (facts is not None and facts.approvals):
        return (
            "approval_missing",
            f"step {quoted(at.id)} waits for an approval before {quoted(tool)} may be called",
            ("Ask a person to approve the step.",),
        )
    lacking = undone_before(terms, state, at)
    if lacking:
        return (
            "prerequisite_missing",
            f"step {quoted(at.id)} comes after {listed(map(quoted, lacking))}, "
            f"so {quoted(tool)} may not be called yet",
            tuple(at.step.hints),
        )
    return None


def undone_before(terms: Terms, state: PlanState, at: StepTerms) -> list[str]:
    """Name the steps and tools that a step comes after and that are not done."""
    return [name for name in at.step.requires if not _is_done(terms, state, name)]


def _is_done(terms: Terms, state: PlanState, name: str) -> bool:
    """Say whether a step is completed or, where no step has that id, a tool was called."""
    if name in terms.by_id:
        return state.plan.is_step_complete(name)
    return any(facts.succeeded[name] for facts in state.steps.values())


def _judged_anywhere(
    terms: Terms, state: PlanState, current: StepTerms, tool: str, arguments: Any
) -> Judgement:
    """Judge a call where steps interleave: it goes to the first open step that lists its tool.

    Of a tool that none lists, the step at the pointer is asked first, then those that list nothing.
    """
    still = [one for one in terms.steps if one.index not in state.closed]
    listing = [one for one in still if tool in one.tools]
    asked = listing or [current, *(one for one in still if not one.tools)]
    found = [_judged_at(terms, state, one, tool, arguments) for one in asked]
    fitting = (one for one in found if one.allowed and one.violation is None)
    return next(fitting, found[0])


def _judged_past(terms: Terms, state: PlanState, tool: str, arguments: Any) -> Judgement | None:
    """Judge a call that fits a step behind optional ones, which it would pass over."""
    for later, passed in steps_past(terms, state):
        if tool in later.tools:
            found = _judged_at(terms, state, later, tool, arguments)
            if not found.allowed or found.violation is not None:
                return None
            return Judgement(allowed=True, index=later.index, hints=found.hints, passed_over=passed)
    return None


def steps_past(terms: Terms, state: PlanState) -> Iterator[tuple[StepTerms, tuple[int, ...]]]:
    """Yield the steps that come next if optional ones are passed over, and the places of those.

    There are none where the policy has optional steps done, or steps interleave. A required step is
    never passed over.

    Examples
    --------
    >>> from runbook_nb.playbooks.model import Playbook, PlaybookPlan, PlaybookStep
    >>> from runbook_nb.playbooks.policy import EnforcementPolicy
    >>> warn = PlaybookStep(id="warn", description="Warn.", required=False)
    >>> sign = PlaybookStep(id="sign", description="Sign.", kind="approval")
    >>> book = Playbook(id="ir", name="Response", steps=[warn, sign])
    >>> state = PlanState(PlaybookPlan(playbook=book), EnforcementPolicy())
    >>> [(one.index, passed) for one, passed in steps_past(Terms(book, {}, state.policy), state)]
    [(1, (0,))]
    """
    current = current_of(terms, state)
    if current is None or terms.interleaved or terms.policy.optional == "blocking":
        return
    passed: tuple[int, ...] = ()
    for one in terms.steps[current.index :]:
        if passed:
            yield one, passed
        if one.step.required:
            return
        passed = (*passed, one.index)


def waits_for_person(terms: StepTerms, state: PlanState) -> bool:
    """Say whether a person has to close a step, or to approve it before its tools are called.

    Examples
    --------
    >>> from runbook_nb.playbooks.model import Playbook, PlaybookPlan, PlaybookStep
    >>> from runbook_nb.playbooks.policy import EnforcementPolicy
    >>> step = PlaybookStep(id="sign", description="Sign.", kind="manual")
    >>> book = Playbook(id="ir", name="Response", steps=[step])
    >>> state = PlanState(PlaybookPlan(playbook=book), EnforcementPolicy())
    >>> waits_for_person(Terms(book, {}, state.policy).steps[0], state)
    True
    """
    if terms.step.kind == "approval":
        facts = state.facts_of(terms.id)
        if facts.declined is not None:
            return False
        return terms.person or not facts.approvals
    return terms.person


def declined_words(terms: StepTerms, state: PlanState) -> str | None:
    """Say in a sentence who declined to approve a step, and why; None where nobody did."""
    facts = state.steps.get(terms.id)
    if facts is None or facts.declined is None:
        return None
    who, note, _ = facts.declined
    said = clip(visible(note), _NOTE).rstrip(".") if note else ""  # it stands in a sentence
    why = f": {said}" if said else ""
    return f"step {quoted(terms.id)} was declined by {quoted(who)}{why}"


def open_past(terms: Terms, state: PlanState) -> Iterator[tuple[StepTerms, tuple[int, ...]]]:
    """Yield those of `steps_past` on which a person may act: what they come after is done."""
    return (one for one in steps_past(terms, state) if not undone_before(terms, state, one[0]))


def due_past(terms: Terms, state: PlanState) -> StepTerms | None:
    """Give the step of a person that comes next if optional steps are passed over, if one does."""
    found = (one for one, _ in open_past(terms, state) if waits_for_person(one, state))
    return next(found, None)


def way_past(terms: Terms, state: PlanState) -> str | None:
    """Say in a sentence whom passing over the current step brings to act; None if nobody."""
    current, due = current_of(terms, state), due_past(terms, state)
    if current is None or due is None:
        return None
    waits = "for an approval" if due.step.kind == "approval" else "for a person to close it"
    return (
        f"Step {quoted(current.id)} is optional and may be passed over: behind it, step "
        f"{quoted(due.id)} waits {waits}."
    )


def _told_of_way(
    terms: Terms, state: PlanState, current: StepTerms, tool: str, found: Judgement
) -> Judgement:
    """Tell whoever called a tool of a later step what may be passed over on the way to it."""
    later = any(tool in one.tools for one in terms.steps[current.index + 1 :])
    way = way_past(terms, state) if later and found.violation is not None else None
    return found if way is None else replace(found, hints=(*found.hints, way))


def _early(terms: Terms, state: PlanState, at: StepTerms, tool: str) -> dict[str, Any]:
    """Name the later step whose tool is called, where such calls are remembered."""
    if not terms.policy.credit_early or not (terms.lenient or not state.block):
        return {}
    for later in terms.steps[at.index + 1 :]:
        if tool in later.tools:
            return {"early_for": later.index}
    return {}


def _outside_message(at: StepTerms, tool: str) -> str:
    allowed = listed(map(quoted, sorted(at.entries or ()))) or "none"
    uses = listed(map(quoted, at.step.uses))
    return (
        f"{quoted(tool)} is not among the tools of {uses}, which step {quoted(at.id)} uses; "
        f"they allow {allowed}"
    )


def _unexpected(terms: Terms, state: PlanState, at: StepTerms, tool: str) -> tuple[str, str]:
    if not at.tools:
        told = f"step {quoted(at.id)} is closed by a person, and {quoted(tool)} is not part of it"
        return told, f"Wait until step {quoted(at.id)} is closed."
    expected = listed(map(quoted, at.tools))
    told = f"{quoted(tool)} is not a tool of step {quoted(at.id)}, which expects {expected}"
    either = listed(map(quoted, at.tools), "or")
    if is_cap_full(at, state) and not any(_is_held_for(terms, state, at, one) for one in at.tools):
        return told, f"No call of {either} is taken any more: ask a person to close the step."
    if state.policy.evidence == "hold" and not missing_tools(at, state):
        unmet = unmet_evidence(at, state)
        shown = listed(map(quoted, unmet))
        if unmet and is_past_showing(at, state):
            return told, f"No call can show {shown} any more: ask a person to close the step."
        if unmet:
            return told, f"Call {either} again: no call shows {shown} yet."
    return told, f"Call {either} now."


def quoted(name: str) -> str:
    """Give a name as messages tell it: shortened, with nothing in it that steers a terminal.

    Examples
    --------
    >>> quoted("scan")
    "'scan'"
    """
    return f"'{clip(visible(name), _NAME)}'"
