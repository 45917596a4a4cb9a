"""Everything that can be wrong with a playbook, in a fixed order."""

from __future__ import annotations

from runbook_nb._text import counted
from runbook_nb.playbooks.ground import NOT_ACTED_ON, Findings, Ground, Place, why_impossible
from runbook_nb.playbooks.judging import quoted
from runbook_nb.playbooks.lint import LintFinding
from runbook_nb.playbooks.model import PlaybookStep
from runbook_nb.playbooks.skillfaults import skill_faults
from runbook_nb.playbooks.stepfaults import LOOKS


def faults_of(ground: Ground) -> Findings:
    """Give everything that is wrong, by the order of the steps; what concerns skills comes last."""
    yield from _whole(ground)
    blocked = _blocked(ground)
    for n, step in enumerate(ground.playbook.steps):
        at = Place(n, step)
        if blocked is not None and blocked.where == f"steps[{n}]":
            yield blocked
        for look in LOOKS:
            yield from look(ground, at)
    yield from skill_faults(ground)


def _whole(ground: Ground) -> Findings:
    book, policy = ground.playbook, ground.policy
    if not book.steps:
        yield LintFinding(
            code="no_steps",
            severity="warning",
            where="steps",
            message="there is none, and a plan without steps is never completed",
            fix="declare at least one step",
        )
    needed = sum(
        max(len(set(step.expected_tools)), ground.effort_of(step)[0] or 0)
        for step in book.steps
        if step.required
    )
    if book.max_iterations is not None and book.max_iterations < needed:
        yield LintFinding(
            code="budget_below_steps",
            severity="error" if policy.enforce_budget else "warning",
            where="max_iterations",
            message=f"is {book.max_iterations}, and the required steps take {needed} at least",
            fix=f"write {needed} or more",
        )
    unread = [
        ("max_iterations", book.max_iterations is not None and not policy.enforce_budget),
        ("strict_sequence", not book.strict_sequence and not policy.honor_strict_sequence),
    ]
    for place, unheard in unread:
        if unheard:
            message, fix = NOT_ACTED_ON
            yield LintFinding(
                code="not_acted_on", severity="warning", where=place, message=message, fix=fix
            )


def _blocked(ground: Ground) -> LintFinding | None:
    """Find the first step that calls do not reach, because an earlier one never closes by them."""
    book, policy = ground.playbook, ground.policy
    if not book.strict_sequence and policy.honor_strict_sequence:
        return None
    for n, step in enumerate(book.steps[:-1]):
        passable = not step.required and policy.optional == "passable"
        if passable or not _never_closes(ground, step):
            continue
        behind = book.steps[n + 1 :]
        more = "step" if len(behind) == 2 else counted(len(behind) - 1, "step")
        also = f", nor the {more} behind" if len(behind) > 1 else ""
        asks = policy.on_stuck in ("ask", "fail")
        who = "a person or the host" if asks else "the host"
        return Place(n + 1, behind[0]).found(
            "unreachable_step",
            "warning" if policy.on_stuck == "ask" else "error",
            "",
            f"is not reached by calls{also}: no call closes {quoted(step.id)}, only {who} does",
            f"mend steps[{n}], or let a person close it with kind: manual",
        )
    return None


def _never_closes(ground: Ground, step: PlaybookStep) -> bool:
    """Say whether no call can close a step that calls are meant to close."""
    policy = ground.policy
    if step.kind or policy.on_stuck == "close":
        return False
    cap = ground.effort_of(step)[1]
    if not step.expected_tools:
        return ground.allows_nothing(step) if cap is not None else policy.empty_step == "open"
    missing = [
        tool
        for tool in dict.fromkeys(step.expected_tools)
        if why_impossible(ground, step, tool)
        or (ground.tools is not None and tool not in ground.tools)
    ]
    possible = len(set(step.expected_tools)) - len(missing)
    full = policy.on_cap == "fail" and cap is not None and 0 < cap < len(set(step.expected_tools))
    by_cap = cap is not None and policy.on_cap == "close" and possible > 0
    return bool(missing or full) and not by_cap
