"""Making an event happen to a plan: the only code that changes one. It judges nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final

from runbook_nb.errors import PlaybookError
from runbook_nb.playbooks.eventkinds import (
    Admitted,
    Approved,
    Begun,
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
from runbook_nb.playbooks.model import (
    EnforcementViolation,
    PlaybookPlan,
    StepExecution,
    StepStatus,
)
from runbook_nb.playbooks.policy import EnforcementPolicy
from runbook_nb.playbooks.state import Call, Noted, PlanState


def apply(state: PlanState | None, event: Event) -> PlanState:
    """Make an event happen to a plan, and give the plan's state.

    This is the only code that changes a plan. It judges nothing.

    Parameters
    ----------
    state : PlanState or None
        The state so far; None before the first event, which is `Begun`.
    event : Event
        What happened.

    Raises
    ------
    PlaybookError
        Something happened before the beginning, or to a call that nobody admitted.

    Examples
    --------
    >>> from datetime import UTC
    >>> from runbook_nb.playbooks.model import Playbook
    >>> book = Playbook(id="ir", name="Incident response")
    >>> at = datetime(2026, 1, 1, tzinfo=UTC)
    >>> state = apply(None, Begun(seq=1, at=at, playbook=book, digest="", policy={}, skills={}))
    >>> state.seq, state.plan.started_at == at
    (1, True)
    """
    if event.__class__ is Begun:
        state = _begin(event)
    elif state is None:
        raise PlaybookError(
            f"a plan cannot start with an event {event.kind!r}",
            code="bad_event",
            fix="let the first event be 'begun'",
        )
    else:
        if event.__class__ is not Resumed:
            state.verdict = None  # the run goes on, and is to be judged again
        _HOW[event.__class__](state, event)
    state.seq = event.seq
    return state


def replay(events: Iterable[Event]) -> PlanState:
    """Give the state that events lead to.

    Raises
    ------
    PlaybookError
        There are no events, or they cannot have happened in this order.

    Examples
    --------
    >>> from datetime import UTC
    >>> from runbook_nb.playbooks.model import Playbook
    >>> book = Playbook(id="ir", name="Incident response")
    >>> at = datetime(2026, 1, 1, tzinfo=UTC)
    >>> begun = Begun(seq=1, at=at, playbook=book, digest="", policy={}, skills={})
    >>> replay([begun, Reset(seq=2, at=at)]).seq
    2
    """
    state: PlanState | None = None
    for event in events:
        state = apply(state, event)
    if state is None:
        raise PlaybookError("there are no events to make a plan of", code="bad_event")
    return state


def _begin(event: Any) -> PlanState:
    if event.plan is None:
        plan = PlaybookPlan(playbook=event.playbook, started_at=event.at)
    else:
        plan = event.plan.model_copy(deep=True)  # an event never changes
    state = PlanState(
        plan,
        EnforcementPolicy.of(event.policy),
        key=event.key,
        block=event.block,
        record=event.record,
        skills=event.skills,
    )
    _take_over(state)
    return state


def _take_over(state: PlanState) -> None:
    """Make the facts of steps of the records of a plan that was handed over.

    Records name tools and say nothing of what came of them, so none of those calls is known to
    have succeeded but those of a step that is completed.
    """
    plan = state.plan
    state.closed.update(range(min(plan.current_step_index, len(plan.playbook.steps))))
    for step_id, record in plan.step_executions.items():
        facts = state.touched(step_id)
        facts.attempted.update(record.tool_calls)
        facts.counted = record.tool_call_count
        if record.status is StepStatus.COMPLETED:
            facts.succeeded.update(record.tool_calls)


def _record(state: PlanState, step_id: str) -> StepExecution:
    records = state.plan.step_executions
    record = records.get(step_id)
    if record is None:
        record = records[step_id] = StepExecution(step_id=step_id)
    return record


def _started(state: PlanState, step_id: str, at: datetime) -> StepExecution:
    """Give a step's record; one made now is in progress since now."""
    record = state.plan.step_executions.get(step_id)
    if record is None:
        record = _record(state, step_id)
        record.status = StepStatus.IN_PROGRESS
        record.started_at = at
    return record


def _admit(state: PlanState, event: Any) -> None:
    step_id = None if event.housekeeping else event.step_id
    state.calls[event.call_id] = Call(
        event.call_id,
        event.tool,
        step_id,
        started=event.at,
        admitted_under=event.step_id,
        index=event.index,
        arguments=event.arguments,
        parent=event.parent,
        batch=event.batch,
        housekeeping=event.housekeeping,
        judged=event.judged,
        early_for=event.early_for,
        seq=event.seq,
        exact=event.exact,
    )
    if step_id is None:
        return
    state.touched(step_id).running[event.call_id] = event.tool
    if state.policy.record_started == "admission":
        _started(state, step_id, event.at)


def _refuse(state: PlanState, event: Any) -> None:
    state.calls[event.call_id] = Call(
        event.call_id,
        event.tool,
        event.step_id,
        "refused",
        started=event.at,
        ended=event.at,
        admitted_under=event.step_id,
        arguments=event.arguments,
        parent=event.parent,
        batch=event.batch,
        violation=event.violation,
        seq=event.seq,
        exact=event.exact,
    )
    if event.step_id is not None:
        state.touched(event.step_id).refused[event.violation] += 1
    if event.noted:
        _note(state, event, event.arguments)


def _note(state: PlanState, event: Any, arguments: Any) -> None:
    violation = EnforcementViolation(
        violation_type=event.violation,
        step_id=event.step_id,
        tool_name=event.tool,
        message=event.message,
        timestamp=event.at,
        blocked=event.blocked,
    )
    state.noted.append(Noted(violation, event.seq, event.call_id, arguments))


def _note_only(state: PlanState, event: Any) -> None:
    call = state.calls.get(event.call_id)
    if call is not None:
        call.violation = event.violation
    if event.step_id is not None:
        state.touched(event.step_id).violations.append(event.violation)
    if event.noted:
        _note(state, event, None if call is None else call.arguments)


def _settle(state: PlanState, event: Any) -> None:
    call = state.calls.get(event.call_id)
    if call is None:
        raise PlaybookError(
            f"the call {event.call_id!r} ended, but nobody admitted it",
            code="unknown_call",
            where=event.call_id,
        )
    if call.step_id is not None:
        state.touched(call.step_id).running.pop(event.call_id, None)
    call.outcome = event.outcome
    call.ended = event.at
    call.error = event.error
    call.result = event.result
    call.matched = event.matched
    call.checks = event.checks
    call.counted = event.counted
    call.step_id = event.step_id
    if event.arguments is not None:
        call.arguments = event.arguments
    call.exact = call.exact and event.exact
    state.left.discard(event.call_id)
    if event.filed:
        _file(state, event, call)


def _file(state: PlanState, event: Any, call: Call) -> None:
    plan = state.plan
    plan.total_tool_calls += not event.again
    if event.step_id is None:
        return
    record = _started(state, event.step_id, event.at)
    facts = state.touched(event.step_id)
    if not event.again:
        record.tool_calls.append(call.tool)
        record.tool_call_count += 1
        facts.calls.append(call.call_id)
        facts.attempted[call.tool] += 1
        if facts.first_result_at is None:
            facts.first_result_at = event.at
    if event.matched:
        record.matched_probes.extend(event.matched)
    facts.counted += event.counted
    facts.checks.extend(name for name in event.checks if name not in facts.checks)
    if call.succeeded:
        facts.succeeded[call.tool] += 1
        if call.early_for is not None:
            state.touched(call.early_for).early.append(call.call_id)


def _move(state: PlanState, event: Any) -> None:
    state.closed.add(event.index)
    state.plan.current_step_index = event.pointer
    state.plan.completed = event.completed
    state.touched(event.step_id).stuck = None


def _close(state: PlanState, event: Any) -> None:
    record = _started(state, event.step_id, event.at)
    record.status = StepStatus.COMPLETED
    record.completed_at = event.at
    record.result = event.result
    facts = state.touched(event.step_id)
    facts.closed_by = event.by
    facts.who = event.who
    facts.note = event.note
    _move(state, event)


def _skip(state: PlanState, event: Any) -> None:
    record = _record(state, event.step_id)
    record.status = StepStatus.SKIPPED
    if event.reason:
        record.result = event.reason
    facts = state.touched(event.step_id)
    facts.skipped_because = event.reason
    facts.closed_by = event.by
    facts.who = event.who
    _move(state, event)


def _fail(state: PlanState, event: Any) -> None:
    _failed(state, event, event.error)


def _failed(state: PlanState, event: Any, error: str) -> None:
    record = _started(state, event.step_id, event.at)
    record.status = StepStatus.FAILED
    record.completed_at = event.at
    record.error = error
    state.plan.errors.append(f"{event.step_id}: {error}")
    facts = state.touched(event.step_id)
    facts.who = event.who


def _approve(state: PlanState, event: Any) -> None:
    state.touched(event.step_id).approvals.append((event.who, event.note, event.at))


def _decline(state: PlanState, event: Any) -> None:
    # Published records have no word for it; what they have is that the step failed, and with what.
    said = f": {event.note}" if event.note else ""
    _failed(state, event, f"declined by {event.who}{said}")
    state.touched(event.step_id).declined = (event.who, event.note, event.at)


def _time_out(state: PlanState, event: Any) -> None:
    state.touched(event.step_id).timed_out_at = event.at


def _stick(state: PlanState, event: Any) -> None:
    state.touched(event.step_id).stuck = event.reason


def _reset(state: PlanState, event: Any) -> None:
    plan = state.plan
    plan.current_step_index = 0
    plan.step_executions = {}
    plan.completed = False
    plan.total_tool_calls = 0
    plan.errors = []
    state.steps.clear()
    state.noted.clear()
    state.closed.clear()
    # A call that still runs ends some time, and then belongs to no step of the new beginning.
    state.calls = {key: call for key, call in state.calls.items() if call.outcome is None}
    for call in state.calls.values():
        call.step_id = None
        call.housekeeping = True


def _resume(state: PlanState, event: Any) -> None:
    state.left.update(call_id for call_id in event.open if call_id in state.calls)


def _finish(state: PlanState, event: Any) -> None:
    state.verdict = event.verdict


_HOW: Final[dict[type[Event], Callable[[PlanState, Any], None]]] = {
    Admitted: _admit,
    Refused: _refuse,
    Settled: _settle,
    ViolationNoted: _note_only,
    Closed: _close,
    Skipped: _skip,
    Failed: _fail,
    Approved: _approve,
    Declined: _decline,
    TimedOut: _time_out,
    Stuck: _stick,
    Reset: _reset,
    Resumed: _resume,
    Finished: _finish,
}
