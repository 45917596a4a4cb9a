"""The card of a hook: the runs it keeps, and where each stands.

Playbooks layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from runbook_nb._text import clip, counted, visible
from runbook_nb._view import Badge, Card, Cell, Column, Data, Section, Table
from runbook_nb.playbooks.scopes import Closed, Seat
from runbook_nb.settings import settings

if TYPE_CHECKING:
    from runbook_nb.playbooks.enforcer import PlaybookEnforcer
    from runbook_nb.playbooks.hook import PlaybookEnforcerHook

_LONGEST = 60


def hook_card(hook: PlaybookEnforcerHook, seats: Sequence[Seat]) -> Card:
    """Show the runs under a hook, the last used first.

    Parameters
    ----------
    hook : PlaybookEnforcerHook
        The hook.
    seats : sequence of Seat
        Its runs, the least recently used first.

    Examples
    --------
    >>> from runbook_nb.playbooks import Playbook, PlaybookEnforcerHook
    >>> hook_card(PlaybookEnforcerHook(Playbook(id="ir", name="Response")), []).headline
    'no run was heard of yet'
    """
    latest = list(reversed(seats))
    table = Table(
        columns=(
            Column(head="run"),
            Column(head="playbook", in_text="hidden"),
            Column(head="stands"),
            Column(head="steps done", align="right", in_text="labelled"),
            Column(head="calls", align="right", in_text="labelled"),
            Column(head="refused", align="right", in_text="labelled"),
        ),
        rows=tuple(map(_row, latest[: settings.max_table_rows])),
        total=len(latest),
        rest="hook.keys",
        empty="no run was heard of yet",
    )
    one = hook.playbook
    gone = hook.evicted
    return Card(
        kind="PlaybookEnforcerHook",
        name="chosen for each run" if one is None else clip(visible(one.id), _LONGEST),
        qualifiers=(f"policy {hook.policy.label}", f"a plan for each {hook.scope}"),
        headline=counted(len(latest), "run") if latest else "no run was heard of yet",
        badges=() if hook.block_violations else (Badge(word="records only", role="stuck"),),
        sections=(Section(label="Runs", parts=(table,)),),
        closing=(f"at most {counted(hook.max_runs, 'plan')} kept",),
        remarks=(
            (f"{counted(gone, 'run')} refused from now on: their plans had to go unfinished",)
            if gone
            else ()
        ),
    )


def _row(seat: Seat) -> tuple[Cell, ...]:
    key = Data(value=seat.key, tone="code")
    plan = seat.held
    if plan is None:
        return (key, None, "not held to a playbook", None, None, None)
    if isinstance(plan, Closed):
        return (key, None, Badge(word=plan.code, role="failed"), None, None, None)
    calls = plan.calls
    steps = len(plan.plan.playbook.steps)
    return (
        key,
        Data(value=plan.plan.playbook.id),
        _standing(plan),
        Data(value=f"{len(plan.plan.completed_steps)} of {steps}"),
        Data(value=len(calls)),
        Data(value=sum(call.outcome == "refused" for call in calls)),
    )


def _standing(plan: PlaybookEnforcer) -> Cell:
    if plan.is_complete:
        return Badge(word="complete", role="completed")
    step = plan.current_step
    if step is not None and plan.state.facts_of(step.id).declined is not None:
        return Badge(word="declined", role="failed")
    if plan.is_stuck:
        return Badge(word="stuck", role="stuck")
    return Data(value="nowhere" if step is None else f"at {step.id}")
