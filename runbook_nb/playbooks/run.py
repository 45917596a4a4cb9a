"""A run under a playbook as the record that charts leave too: rows, state, commits, flowchart.

The record is made from the events of a plan and from nothing else, so one that was kept gives the
same record as the live one. What is counted of a step is counted by `record.steps`, from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from runbook_nb._frozen import FrozenDict, freeze
from runbook_nb.playbooks.events import (
    Event,
)
from runbook_nb.playbooks.policy import EnforcementPolicy
from runbook_nb.playbooks.recorder import Recorder
from runbook_nb.record.redact import Redact, as_redact
from runbook_nb.record.run import Run
from runbook_nb.record.steps import DECLINED
from runbook_nb.record.structure import StructureNode

if TYPE_CHECKING:
    import pandas as pd

    from runbook_nb._view import Card
    from runbook_nb.playbooks.model import Playbook
    from runbook_nb.playbooks.report import PlaybookReport


class PlaybookRun(Run):
    """What was recorded of a run under a playbook.

    Attributes
    ----------
    playbook : Playbook
        What was followed.
    enforcement : EnforcementPolicy
        The rules it was held to.
    blocks : bool
        Whether calls outside the plan were refused.
    verdict : str or None
        What finishing gave; None while it goes on.
    seconds : mapping
        By step, how long it took from its first call until it ended.
    events : tuple of Event
        What it is made from; not served.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> from runbook_nb.playbooks.events import Begun
    >>> from runbook_nb.playbooks.model import Playbook, PlaybookStep
    >>> book = Playbook(id="ir", name="IR", steps=[PlaybookStep(id="look", description="Look.")])
    >>> at = datetime(2026, 1, 1, tzinfo=UTC)
    >>> run = run_of([Begun(seq=1, at=at, playbook=book, digest="", policy={}, skills={})])
    >>> run.status, run.state, len(run.walk)
    ('paused', {'look': 'pending'}, 0)
    """

    playbook: Playbook
    enforcement: EnforcementPolicy
    blocks: bool
    verdict: str | None
    seconds: Mapping[str, float]
    events: tuple[Event, ...]

    @cached_property
    def account(self) -> Mapping[str, Any]:
        """What an answer made of it has to say: a row per step, and what was not covered."""
        from runbook_nb.playbooks.account import account_of
        from runbook_nb.playbooks.told import Told

        return account_of(Told.of_run(self))

    @cached_property
    def report(self) -> PlaybookReport:
        """What it came to, judged from its events; ids and names in it are not served."""
        from runbook_nb.playbooks.report import report_on

        return report_on(self.events)

    @property
    def pointer(self) -> StructureNode | None:
        """The step that is current; None where none is left."""
        from runbook_nb.record.phrases import Teller

        key = Teller(self.structure, self.walk.raw_overlay).pointer
        return None if key is None else self.structure.node(key)

    def end_as(self, status: str, error: FrozenDict | None) -> None:
        """Say that whoever drove it ended in this way; for who drives."""
        self.status = status
        self._error = error
        self._pause = None

    def to_frame(self) -> pd.DataFrame:
        """Give the steps as a DataFrame, one row each, with what was counted of it."""
        import pandas as pd

        from runbook_nb.playbooks.told import Told

        return pd.DataFrame([one.to_dict() for one in Told.of_run(self).steps])

    def view(self) -> Card:
        """Show how far it came, step by step."""
        from runbook_nb.playbooks.cards import run_card

        return run_card(self)

    def _head(self) -> Card:
        from runbook_nb.playbooks.cards import run_head

        return run_head(self)


def run_of(
    events: Iterable[Event],
    *,
    redact: Redact | Mapping[str, Any] | None = None,
    args: Mapping[str, Any] | None = None,
    also: Mapping[str, Any] | None = None,
) -> PlaybookRun:
    """Make the record of a run from its events.

    Parameters
    ----------
    events : iterable of Event
        Those of one plan, from its first on.
    redact : Redact or mapping, optional
        What must not be seen in any view of it.
    args : mapping, optional
        The input of the run.
    also : mapping, optional
        What the run wrote beside the states of its steps, once it had ended.
    """
    told = Recorder(list(events))
    told.end_with(also or {})
    here = None if told.verdict is not None else told.here
    run = PlaybookRun(
        name=told.begun.playbook.id,
        status="ok" if here is None else "paused",
        args=freeze(dict(args or {})),
        log=told.log,
        raw_state=told.state,
        raw_result=None,
        structure=told.structure,
        policy=as_redact(redact),
        pause=None if here is None else _waits(here, told.state[here.key]),
        ended_at=None if here is None else _place(here),
        initial=told.initial,
    )
    run.playbook = told.begun.playbook
    run.enforcement = told.policy
    run.blocks = told.begun.block
    run.verdict = told.verdict
    run.seconds = FrozenDict(told.seconds)
    run.events = told.events
    run.report = told.report
    return run


def _waits(here: StructureNode, status: str) -> FrozenDict:
    tools = ", ".join(map(str, here.detail.get("tools") or ()))
    form = here.detail.get("form")
    wanted = f"a call of {tools}" if tools else "its step to be closed"
    if form:
        wanted = "an approval" if form == "approval" else "somebody to do the step"
    if status == DECLINED:
        wanted = "nothing any more: it was declined"
    if status == "stuck":
        wanted = "somebody to decide: no call can close the step"
    return FrozenDict(reason=f"step {here.name} waits for {wanted}", expects=None)


def _place(node: StructureNode) -> FrozenDict:
    return FrozenDict(stage=node.name, stage_id=node.id, runtime_stage_id=None)
