"""Small playbooks, and enforcers of them, that tests of several modules hold calls to."""

from __future__ import annotations

from typing import Any

from runbook_nb.playbooks import Playbook, PlaybookEnforcer, PlaybookStep


def step(name: str, *tools: str, **more: Any) -> PlaybookStep:
    """Give a step that expects some tools."""
    return PlaybookStep(id=name, description=f"Do {name}.", expected_tools=list(tools), **more)


def book(*steps: PlaybookStep, **more: Any) -> Playbook:
    """Give a playbook of steps."""
    return Playbook(id="ir", name="Response", steps=list(steps), **more)


def held(*steps: PlaybookStep, policy: Any = None, **more: Any) -> PlaybookEnforcer:
    """Give an enforcer of a playbook of steps; what is no option of it is one of the playbook."""
    of_book = ("allow_extra_tools", "strict_sequence", "max_iterations", "description")
    about = {name: more.pop(name) for name in of_book if name in more}
    return PlaybookEnforcer.from_playbook(book(*steps, **about), policy=policy, **more)


def call(enforcer: PlaybookEnforcer, tool: str, arguments: Any = None, outcome: str = "ok") -> Any:
    """Make a call, if it may be made, and tell what came of it."""
    admission = enforcer.admit(tool, arguments)
    if admission.allowed:
        enforcer.settle(admission, outcome)
    return admission


def kinds(enforcer: PlaybookEnforcer) -> list[str]:
    """Give the types of what was noted."""
    return [one.violation_type for one in enforcer.violations]


def statuses(enforcer: PlaybookEnforcer) -> dict[str, str]:
    """Give where each step with a record stands."""
    return {key: one.status.value for key, one in enforcer.plan.step_executions.items()}
