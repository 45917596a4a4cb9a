"""Deciding what happens to a plan, and making it happen as events.

A `Keeper` holds the terms of a playbook and the state of one plan. Each of its methods is one thing
that can be asked of a plan; it judges, makes events of what it found and applies them. It takes no
locks and tells nobody: that is the work of the enforcer around it.
"""

from __future__ import annotations

import copy
from collections import Counter
from datetime import datetime
from typing import Any, Final

from runbook_nb._text import did_you_mean, listed
from runbook_nb.errors import PlaybookError
from runbook_nb.playbooks.applying import apply
from runbook_nb.playbooks.closing import (
    Shortfall,
    ending_of,
    lacking_tools,
    shortfalls,
    stuck_reason,
    tells_missing,
    tools_missing,
)
from runbook_nb.playbooks.eventkinds import (
    Admitted,
    Approved,
    Closed,
    Declined,
    Event,
    Failed,
    Finished,
    Refused,
    Reset,
    Resumed,
    Settled,
    Skipped,
    Stuck,
    TimedOut,
    ViolationNoted,
)
from runbook_nb.playbooks.evidence import matched_probes
from runbook_nb.playbooks.judging import (
    Judgement,
    current_of,
    declined_words,
    judge,
    open_past,
    quoted,
)
from runbook_nb.playbooks.model import StepStatus
from runbook_nb.playbooks.state import Call, PlanState, StepFacts
from runbook_nb.playbooks.terms import StepTerms, Terms
from runbook_nb.playbooks.values import Kept, snapshot
from runbook_nb.settings import settings

#: What can come of a call.
OUTCOMES: Final = ("ok", "error", "cached", "retried", "cancelled")


def checked_outcome(outcome: Any) -> str:
    """Give what came of a call back; refuse what no call comes to, with the near one."""
    if outcome in OUTCOMES:
        return str(outcome)
    raise PlaybookError(
        f"a call cannot come to {outcome!r}",
        code="bad_outcome",
        where="outcome",
        fix=did_you_mean(str(outcome), OUTCOMES) or f"use {listed(OUTCOMES, 'or')}",
    )


class Keeper:
    """Decides what happens to one plan.

    Parameters
    ----------
    terms : Terms
        What the steps ask for.
    state : PlanState
        Where the plan stands.
    kept : Kept
        What is kept of values.

    Attributes
    ----------
    made : list of Event
        The events made since they were last taken.

    Examples
    --------
    >>> from runbook_nb.playbooks.model import Playbook, PlaybookPlan, PlaybookStep
    >>> from runbook_nb.playbooks.policy import EnforcementPolicy
    >>> step = PlaybookStep(id="look", description="Look.", expected_tools=["scan"])
    >>> book = Playbook(id="ir", name="Response", steps=[step])
    >>> state = PlanState(PlaybookPlan(playbook=book), EnforcementPolicy())
    >>> keeper = Keeper(Terms(book, {}, state.policy), state, Kept(None))
    >>> keeper.admit("call-1", "scan", {}).allowed, keeper.settle("call-1")
    (True, True)
    >>> [event.kind for event in keeper.made]
    ['admitted', 'settled', 'closed']
    """

    __slots__ = ("_timed", "given", "kept", "made", "now", "state", "terms")

    def __init__(self, terms: Terms, state: PlanState, kept: Kept) -> None:
        self.terms = terms
        self.state = state
        self.kept = kept
        self.made: list[Event] = []
        #: What running calls were really given, as it was then: evidence is looked for in that.
        self.given: dict[str, Any] = {}
        #: The time of what is being asked; None where the clock is to be asked each time.
        self.now: datetime | None = None
        self._timed = tuple(one for one in terms.steps if one.seconds is not None)

    def fork(self) -> Keeper:
        """Give a copy on which things can be tried; nothing done to it touches the plan."""
        state = copy.copy(self.state)
        state.plan = state.plan.model_copy(
            update={
                "step_executions": {
                    key: record.model_copy(
                        update={
                            "tool_calls": list(record.tool_calls),
                            "matched_probes": list(record.matched_probes),
                        }
                    )
                    for key, record in state.plan.step_executions.items()
                },
                "errors": list(state.plan.errors),
            }
        )
        state.steps = {key: _copied(facts) for key, facts in state.steps.items()}
        state.calls = {key: copy.copy(call) for key, call in state.calls.items()}
        state.noted = list(state.noted)
        state.closed = set(state.closed)
        forked = Keeper(self.terms, state, self.kept)
        forked.now = self.now
        forked.given = dict(self.given)
        return forked

    def moment(self) -> datetime:
        """Give the time: one for all that is made of one thing that was asked."""
        if self.now is not None:
            return self.now
        moment: datetime = settings.clock()
        return moment

    def _happen(self, kind: type[Event], **fields: Any) -> Any:
        event = kind(seq=self.state.seq + 1, at=self.moment(), **fields)
        apply(self.state, event)
        self.made.append(event)
        return event

    # -- calls -----------------------------------------------------------------------------

    def admit(
        self,
        call_id: str,
        tool: str,
        arguments: Any = None,
        *,
        parent: str | None = None,
        batch: str | None = None,
    ) -> Judgement:
        """Judge a call, and let it through or refuse it."""
        self.watch_time()
        found = judge(self.terms, self.state, tool, arguments)
        step = self.terms.at(found.index)
        given = self.kept.arguments(arguments)
        exact = self.kept.is_exact(arguments, given)
        if not found.allowed:
            self._refuse(found, call_id, tool, given, exact, parent=parent, batch=batch)
            return found
        for place in found.passed_over:
            self._pass_over(place, tool, step)
        early = None if found.early_for is None else self.terms.steps[found.early_for].id
        self._happen(
            Admitted,
            call_id=call_id,
            tool=tool,
            step_id=None if step is None else step.id,
            index=found.index,
            arguments=given,
            parent=parent,
            batch=batch,
            housekeeping=found.housekeeping,
            early_for=early,
            exact=exact,
        )
        self.given[call_id] = given if exact else snapshot(arguments)
        if found.violation is not None:
            about: dict[str, Any] = {"tool": tool, "call_id": call_id, "blocked": found.blocked}
            self._note(found.violation, found.message, step, **about)
        return found

    def _refuse(
        self,
        found: Judgement,
        call_id: str,
        tool: str,
        given: Any,
        exact: bool = True,
        **where: str | None,
    ) -> None:
        step = self.terms.at(found.index)
        self._happen(
            Refused,
            call_id=call_id,
            tool=tool,
            step_id=None if step is None else step.id,
            arguments=given,
            violation=found.violation,
            message=self.kept.text(found.message),
            hints=found.hints,
            blocked=found.blocked,
            noted=self.state.record,
            exact=exact,
            **where,
        )
        self.watch_stuck()

    def check(self, call_id: str, tool: str) -> Judgement:
        """Judge the name of a call that is not made now; only what it goes against is noted."""
        self.watch_time()
        found = judge(self.terms, self.state, tool)
        if not found.allowed:
            self._refuse(found, call_id, tool, None)
        elif found.violation is not None:
            step = self.terms.at(found.index)
            about: dict[str, Any] = {"tool": tool, "blocked": found.blocked}
            self._note(found.violation, found.message, step, **about)
        return found

    def record(self, call_id: str, tool: str, arguments: Any = None) -> None:
        """File a call that was made, without judging whether it may be; it closes nothing."""
        self.watch_time()
        found = judge(self.terms, self.state, tool, arguments)
        step = current_of(self.terms, self.state)
        elsewhere = found.index is not None and (found.passed_over or self.terms.interleaved)
        if elsewhere and found.allowed and found.violation is None:
            step = self.terms.steps[found.index or 0]
            for place in found.passed_over:
                self._pass_over(place, tool, step)
        given = self.kept.arguments(arguments)
        exact = self.kept.is_exact(arguments, given)
        self._happen(
            Admitted,
            call_id=call_id,
            tool=tool,
            step_id=None if step is None else step.id,
            index=None if step is None else step.index,
            arguments=given,
            housekeeping=found.housekeeping,
            judged=False,
            exact=exact,
        )
        self.given[call_id] = given if exact else snapshot(arguments)
        self.settle(call_id, moves=False)

    def settle(
        self,
        call_id: str,
        outcome: str = "ok",
        result: Any = None,
        error: Any = None,
        arguments: Any = None,
        *,
        moves: bool = True,
    ) -> bool:
        """File what came of a call; say whether a step closed with it."""
        self.watch_time()
        call = self._settling(call_id, outcome)
        if call is None:
            return False
        again = call.outcome is not None
        given = self.given.pop(call_id, call.arguments)
        changed = arguments is not None and not self.kept.is_exact(arguments, given)
        given = arguments if changed else given
        step = self._filed_under(call)
        kept = self.kept.arguments(given) if changed else None
        gave = self.kept.result(result) if self._reads_results(step) else None
        counts = outcome != "cached" or self.state.policy.cached_counts
        filed = not call.housekeeping and outcome != "cancelled" and counts
        self._happen(
            Settled,
            call_id=call_id,
            outcome=outcome,
            step_id=step.id if step is not None else None,
            filed=filed,
            again=again,
            counted=filed and not (again and call.counted) and self._counts(step, call, outcome),
            matched=self._matched(step, call, outcome, given) if filed else (),
            checks=self._checks(step, call, outcome, (given, result, error)) if filed else (),
            error=self.kept.error(error),
            result=gave,
            arguments=kept,
            exact=(kept is None or self.kept.is_exact(given, kept))
            and (gave is None or self.kept.is_exact(result, gave)),
        )
        if changed and step is not None and self.terms.is_outside(step, call.tool, given):
            told = f"{quoted(call.tool)} was called with what the skills of its step do not allow"
            self._note("tool_outside_skill", told, step, tool=call.tool, call_id=call_id)
        if not (filed and moves) or step is None:
            return False
        closed = outcome != "error" and self._advance(step)
        if not closed:
            self.watch_stuck()
        return closed

    def _settling(self, call_id: str, outcome: str) -> Call | None:
        """Give the call that is settled; None where there is nothing to do."""
        call = self.state.calls.get(call_id)
        if call is None:
            raise PlaybookError(
                f"the call {call_id!r} was never admitted, so it cannot be settled",
                code="unknown_call",
                where=call_id,
                fix="settle what admit() gave, once",
            )
        if call.outcome is None:
            return call
        if call.outcome == "error" and outcome == "retried":
            return call if self.state.policy.seen == "successful" else None
        raise PlaybookError(
            f"the call {call_id!r} is {call.outcome!r} already, so it cannot be settled as "
            f"{outcome!r}",
            code="already_settled",
            where=call_id,
            fix="settle each call once; only a failed one may be settled again, as 'retried'",
        )

    def _filed_under(self, call: Call) -> StepTerms | None:
        if call.housekeeping:
            return None
        if self.state.policy.credit == "pointer" and call.outcome is None:
            return current_of(self.terms, self.state)
        return self.terms.at(call.index)

    def _counts(self, step: StepTerms | None, call: Call, outcome: str) -> bool:
        word = self.state.policy.cap_counts
        if word == "successful":
            return outcome != "error"
        if word == "expected" and step is not None and step.tools:
            return call.tool in step.tools
        return True

    def _is_evidence(self, outcome: str) -> bool:
        return outcome != "error" or self.state.policy.evidence_from == "attempted"

    def _matched(
        self, step: StepTerms | None, call: Call, outcome: str, given: Any
    ) -> tuple[str, ...]:
        if step is None or not step.probes or not self._is_evidence(outcome):
            return ()
        record = self.state.plan.step_executions.get(step.id)
        known = () if record is None else record.matched_probes
        found = matched_probes(step.probes, call.tool, given, self.state.policy.probe_text)
        return tuple(name for name in found if name not in known)

    def _reads_results(self, step: StepTerms | None) -> bool:
        return step is not None and step.checks is not None and step.checks.reads_results

    def _checks(
        self, step: StepTerms | None, call: Call, outcome: str, came_of: tuple[Any, Any, Any]
    ) -> tuple[str, ...]:
        if step is None or step.checks is None:
            return ()
        seen = copy.copy(call)
        seen.outcome = outcome
        seen.arguments, seen.result, error = came_of
        seen.error = self.kept.error(error)
        found: tuple[str, ...] = step.checks.met_by(seen, self.state.policy.evidence_from)
        return found

    # -- steps -----------------------------------------------------------------------------

    def _advance(self, step: StepTerms) -> bool:
        """Close the step a successful call is filed under, if that ends it."""
        state = self.state
        if step.index in state.closed:
            return False
        if not self.terms.interleaved and step.index != state.plan.current_step_index:
            return False
        ending = ending_of(step, state)
        if ending in ("calls", "cap"):
            self.close(step, by=ending)
            return True
        if ending is not None:
            self._hold(step, ending)
        return False

    def _hold(self, step: StepTerms, ending: str) -> None:
        """Note once what a step with a full cap lacks, and fail it where it is to fail."""
        lacking = tools_missing(step, lacking_tools(step, self.state))
        if "tools_missing" not in self.state.facts_of(step.id).violations:
            self._fall_short(lacking, step)
        record = self.state.plan.step_executions[step.id]
        if ending == "fail" and record.status is not StepStatus.FAILED:
            self._happen(Failed, step_id=step.id, error=lacking.message, by="cap")

    def close(
        self,
        step: StepTerms,
        *,
        by: str,
        who: str | None = None,
        note: str | None = None,
        result: str | None = None,
    ) -> None:
        """Complete a step, with what it lacks noted."""
        lacking = shortfalls(step, self.state, by_person=by in ("host", "person"))
        held = self.state.facts_of(step.id).violations
        for one in lacking:
            if one.violation != "tools_missing" or "tools_missing" not in held:
                self._fall_short(one, step)
        self._happen(
            Closed,
            **self._moved(step),
            by=by,
            who=self._said(who),
            note=self._said(note),
            result=self._said(result),
            violations=tuple(one.violation for one in lacking),
        )

    def skip(self, step: StepTerms, reason: str | None, *, by: str, who: str | None = None) -> None:
        """Pass over an optional step."""
        told = {"reason": self._said(reason), "by": by, "who": self._said(who)}
        self._happen(Skipped, **self._moved(step), **told)

    def come_to(self, step: StepTerms, who: str) -> None:
        """Pass over the optional steps before the one that a person acts on."""
        passed = next(
            (places for one, places in open_past(self.terms, self.state) if one is step), ()
        )
        for place in passed:
            told = f"passed over for step {quoted(step.id)}"
            self.skip(self.terms.steps[place], told, by="person", who=who)

    def fail(self, step: StepTerms, error: str, *, by: str, who: str | None = None) -> None:
        """Mark a step as failed; it stays where it is."""
        self._happen(Failed, step_id=step.id, error=self._said(error), by=by, who=self._said(who))

    def approve(self, step: StepTerms, who: str, note: str) -> None:
        """Note a person's approval of a step, and close it if that is all it waits for."""
        self._happen(Approved, step_id=step.id, who=self._said(who), note=self._said(note))
        if not step.tools:
            self.close(step, by="person", who=who, note=note, result=note or None)

    def decline(self, step: StepTerms, who: str, note: str) -> None:
        """Note that a person declined to approve a step, which nothing can close from then on."""
        self._happen(Declined, step_id=step.id, who=self._said(who), note=self._said(note))

    def reset(self, who: str | None = None) -> None:
        """Set the plan back to its beginning."""
        self._happen(Reset, who=self._said(who))

    def _moved(self, step: StepTerms) -> dict[str, Any]:
        """Give which step is left, and where the pointer goes from there."""
        end, pointer = len(self.terms.steps), step.index + 1
        if self.terms.interleaved:
            closed = self.state.closed | {step.index}
            open_places = (one.index for one in self.terms.steps if one.index not in closed)
            pointer = next(open_places, end)
        left = {"step_id": step.id, "index": step.index}
        return {**left, "pointer": pointer, "completed": pointer >= end}

    def _pass_over(self, place: int, tool: str, step: StepTerms | None) -> None:
        onto = "" if step is None else f" of step {quoted(step.id)}"
        self.skip(self.terms.steps[place], f"passed over for {quoted(tool)}{onto}", by="calls")

    # -- what comes about by itself --------------------------------------------------------

    def watch_time(self) -> None:
        """Find the steps that have taken longer than they may."""
        for step in self._timed:
            record = self.state.plan.step_executions.get(step.id)
            if record is None or record.started_at is None or step.index in self.state.closed:
                continue
            facts = self.state.facts_of(step.id)
            seconds = (self.moment() - record.started_at).total_seconds()
            allowed = step.seconds or 0.0
            if facts.timed_out_at is not None or seconds <= allowed:
                continue
            if facts.declined is not None:
                continue  # it came to its end when it was declined
            self._happen(TimedOut, step_id=step.id, seconds=seconds, allowed=allowed)
            told = f"step {quoted(step.id)} has taken {seconds:g} s and may take {allowed:g} s"
            self._note("step_timeout", told, step)
            if self.state.policy.on_timeout == "fail":
                self.fail(step, told, by="timeout")

    def watch_stuck(self) -> None:
        """Find whether no call can bring the plan on, and do about it what the policy says."""
        word = self.state.policy.on_stuck
        step = current_of(self.terms, self.state)
        if word == "none" or step is None or declined_words(step, self.state) is not None:
            return  # of a step that was declined is told who declined it
        reason = stuck_reason(self.terms, self.state)
        facts = self.state.facts_of(step.id)
        if reason is None or facts.stuck == reason:
            return
        self._happen(Stuck, step_id=step.id, reason=reason)
        self._note("step_stuck", reason, step)
        record = self.state.plan.step_executions.get(step.id)
        if word == "fail" and not (record is not None and record.status is StepStatus.FAILED):
            self.fail(step, reason, by="cap")
        elif word == "close":
            self.close(step, by="cap", result=reason)

    # -- noting ----------------------------------------------------------------------------

    def _fall_short(self, one: Shortfall, step: StepTerms) -> None:
        self._note(one.violation, one.message, step)

    def _note(
        self,
        violation: str,
        message: str,
        step: StepTerms | None,
        **about: Any,
    ) -> None:
        self._happen(
            ViolationNoted,
            violation=violation,
            message=self.kept.text(message),
            step_id=None if step is None else step.id,
            noted=self.state.record,
            **about,
        )

    def _said(self, text: str | None) -> str | None:
        """Give what somebody said, without the secrets that are known."""
        return None if text is None else self.kept.text(text)

    def finish(self, verdict: str, unresolved: tuple[str, ...], unmatched: Any) -> None:
        """Note what the run comes to."""
        self._happen(Finished, verdict=verdict, unresolved=unresolved, unmatched=unmatched)

    def resume(self, torn: str = "") -> None:
        """Note that the plan is taken up again, and which calls are open."""
        running = tuple(c.call_id for c in self.state.calls.values() if c.outcome is None)
        self._happen(Resumed, after=self.state.seq, open=running, torn=torn)

    def note_unresolved(self, step: StepTerms) -> None:
        """Note once that a required step is not done at the end of a run.

        The published enforcer says nothing of it.
        """
        if self.state.policy.profile == "compat":
            return
        if "unresolved_step" not in self.state.facts_of(step.id).violations:
            told = f"step {quoted(step.id)} is required, and was not done when the run ended"
            self._note("unresolved_step", told, step)

    def lacks_tools(self, step: StepTerms) -> bool:
        """Say whether a step was completed without successful calls of its tools."""
        return tells_missing(self.state.policy) and bool(
            lacking_tools(step, self.state, by_person=True)
        )


def _copied(facts: StepFacts) -> StepFacts:
    twin = copy.copy(facts)
    for name in ("calls", "approvals", "violations", "checks", "early"):
        setattr(twin, name, list(getattr(facts, name)))
    twin.running = dict(facts.running)
    for name in ("succeeded", "attempted", "refused"):
        setattr(twin, name, Counter(getattr(facts, name)))
    return twin
