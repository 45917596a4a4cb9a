"""Counts of the steps of a plan by where they stand."""

from __future__ import annotations

from typing import Any

from runbook_nb.playbooks.closing import stuck_reason
from runbook_nb.playbooks.keeper import Keeper
from runbook_nb.playbooks.model import StepStatus


def summary_of(keeper: Keeper) -> dict[str, Any]:
    """Give counts of steps by where they stand.

    Parameters
    ----------
    keeper : Keeper
        The plan and its terms.

    Returns
    -------
    dict
        The published keys and, under another profile than ``compat``, more beside them.
    """
    plan = keeper.state.plan
    statuses = [record.status for record in plan.step_executions.values()]
    total = len(plan.playbook.steps)
    told: dict[str, Any] = {
        "total_steps": total,
        "current_step_index": plan.current_step_index,
        "completed": statuses.count(StepStatus.COMPLETED),
        "skipped": statuses.count(StepStatus.SKIPPED),
        "failed": statuses.count(StepStatus.FAILED),
        "pending": total - len(statuses),
        "progress": plan.progress,
        "is_complete": plan.completed,
    }
    if keeper.state.policy.profile == "compat":
        return told
    resolved = told["completed"] + told["skipped"]
    return {
        **told,
        "in_progress": statuses.count(StepStatus.IN_PROGRESS),
        "not_started": told["pending"],
        "resolved_fraction": resolved / total if total else 1.0,
        "stuck": stuck_reason(keeper.terms, keeper.state),
    }
