"""A run under a playbook as the record that charts leave too: rows, state, commits, flowchart.

The record is made from the events of a plan and from nothing else, so one that was kept gives the
same record as the live one. What is counted of a step is counted by `record.steps`, from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._frozen import FrozenDict, freeze
from runbook_nb._json import to_wire
from runbook_nb.playbooks.events import (
    Admitted,
    Approved,
    Begun,
    Closed,
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
    replay,
)
from runbook_nb.playbooks.outline import structure_of
from runbook_nb.playbooks.policy import EnforcementPolicy
from runbook_nb.record.log import Code, Log, StageRef
from runbook_nb.record.redact import Redact, as_redact
from runbook_nb.record.run import Run
from runbook_nb.record.steps import AFTER, SUCCEEDED
from runbook_nb.record.structure import Structure, StructureNode

if TYPE_CHECKING:
    import pandas as pd

    from runbook_nb._view import Card
    from runbook_nb.playbooks.model import Playbook, PlaybookPlan
    from runbook_nb.playbooks.report import PlaybookReport

#: Violations that are told of in another way: by the event itself, or beside the score.
_TOLD_ELSEWHERE: Final = ("step_timeout", "step_stuck", "unresolved_step")


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
        return _report_on(self.events)

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


def _report_on(events: Sequence[Event]) -> PlaybookReport:
    from runbook_nb.playbooks.begun import skills_from
    from runbook_nb.playbooks.keeper import Keeper
    from runbook_nb.playbooks.report import report_of
    from runbook_nb.playbooks.terms import Terms
    from runbook_nb.playbooks.values import Kept

    state = replay(events)
    terms = Terms(state.playbook, skills_from(state.skills), state.policy)
    return report_of(Keeper(terms, state, Kept(None)))


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
    teller = _Recorder(list(events))
    return teller.run(as_redact(redact), args or {}, also or {})


class _Recorder:
    """Goes through the events of a plan once, and writes the log."""

    def __init__(self, events: list[Event]) -> None:
        self.events = tuple(events)
        begun = events[0]
        assert isinstance(begun, Begun)  # noqa: S101 - nothing else makes a plan
        self.begun = begun
        self.policy = EnforcementPolicy.of(begun.policy)
        self.structure: Structure = structure_of(begun.playbook, begun.skills, self.policy)
        self.log = Log()
        self.state: dict[str, Any] = {}
        self.places: dict[str | None, StructureNode] = {}
        for node in reversed(self.structure.nodes):
            self.places[node.id] = node
        self.calls: dict[str, Admitted] = {}
        self.stage: StageRef | None = None
        self.begun_stages: set[StageRef] = set()
        self.matched: dict[str, list[str]] = {}
        self.seen: dict[str, list[str]] = {}
        self.began: dict[str, datetime] = {}
        self.seconds: dict[str, float] = {}
        self.verdict: str | None = None
        self.stuck = ""
        for node in self.structure.nodes:
            self.state[node.key] = "pending"
        #: Where is told what belongs to no step, as long as none was come to.
        self.first = self.stage_of(self.structure.nodes[0].id) if self.state else _AFTER
        self.initial = FrozenDict(self.state)
        if begun.plan is not None:
            self.taken_up(begun.plan)
        for event in events[1:]:
            if not isinstance(event, Resumed):
                self.verdict = None
            _TOLD[type(event)](self, event)
        self.report = _report_on(self.events)
        self.tell_stuck()

    def run(
        self, policy: Redact | None, args: Mapping[str, Any], also: Mapping[str, Any]
    ) -> PlaybookRun:
        """Give the run, with what it wrote at its end."""
        if also:
            self.come_to(self.stage or self.first)
            for key, value in also.items():
                self.write(key, value)
        here = self.here
        over = self.verdict is not None or here is None
        run = PlaybookRun(
            name=self.begun.playbook.id,
            status="ok" if over else "paused",
            args=freeze(dict(args)),
            log=self.log,
            raw_state=self.state,
            raw_result=None,
            structure=self.structure,
            policy=policy,
            pause=None if over or here is None else self._waits(here),
            ended_at=None if over or here is None else _place(here),
            initial=self.initial,
        )
        run.playbook = self.begun.playbook
        run.enforcement = self.policy
        run.blocks = self.begun.block
        run.verdict = self.verdict
        run.seconds = FrozenDict(self.seconds)
        run.events = self.events
        run.report = self.report
        return run

    def _waits(self, here: StructureNode) -> FrozenDict:
        tools = ", ".join(map(str, here.detail.get("tools") or ()))
        form = here.detail.get("form")
        wanted = f"a call of {tools}" if tools else "its step to be closed"
        if form:
            wanted = "an approval" if form == "approval" else "somebody to do the step"
        if self.state[here.key] == "stuck":
            wanted = "somebody to decide: no call can close the step"
        return FrozenDict(reason=f"step {here.name} waits for {wanted}", expects=None)

    @property
    def here(self) -> StructureNode | None:
        """The first step that is neither done nor passed by."""
        nodes = self.structure.nodes
        return next((n for n in nodes if self.state[n.key] not in ("completed", "skipped")), None)

    def tell_stuck(self) -> None:
        """Say that a step is stuck where its policy lets that pass in silence."""
        here, reason = self.here, self.report.stuck
        if reason and here is not None and self.state[here.key] not in ("stuck", "failed"):
            stage = self.come_to(StageRef(here.key, here.name, "step"))
            self.add("stuck", stage, None, freeze({"why": reason}))
            self.turn(stage, "stuck")

    # -- writing ---------------------------------------------------------------------------

    def stage_of(self, step_id: str | None) -> StageRef:
        """Give the stage of a step by its id."""
        node = self.places.get(step_id) if step_id is not None else None
        return _AFTER if node is None else StageRef(node.key, node.name, "step")

    def add(self, kind: str, stage: StageRef, key: str | None = None, *values: Any) -> None:
        """Append one code to the log."""
        self.log.root.add(self.log.number(Code(kind, stage, key)), *values)

    def come_to(self, stage: StageRef) -> StageRef:
        """Begin a step that was not come to yet; what is told later of an earlier one is its."""
        if stage not in self.begun_stages:
            self.add("stage", stage)
            self.begun_stages.add(stage)
        self.stage = stage
        return stage

    def at(self, step_id: str | None) -> StageRef:
        """Come to a step by its id."""
        return self.come_to(self.stage_of(step_id))

    def write(self, key: str, value: Any) -> None:
        """Write a key of the state where it is not so already."""
        if self.state.get(key) != value:
            kept = freeze(value, key)
            self.add("write", self.stage or self.first, key, kept)
            self.state[key] = kept

    def turn(self, stage: StageRef, status: str) -> None:
        """Say where a step stands now."""
        if stage is not _AFTER:
            self.write(stage.id, status)

    def taken_up(self, plan: PlaybookPlan) -> None:
        """Tell what a plan had come to before anybody enforced it: calls by their names alone."""
        for node in self.structure.nodes:
            record = plan.step_executions.get(node.id)
            if record is None or self.places[node.id] is not node:
                continue
            stage = self.at(node.id)
            for tool in record.tool_calls:
                told = {"outcome": "unknown", "counted": True}
                self.add("settled", stage, tool, freeze(told))
                self.seen.setdefault(stage.id, []).append(tool)
            if record.matched_probes:
                self.matched[stage.id] = list(record.matched_probes)
                told = {"outcome": "unknown", "aside": True, "matched": self.matched[stage.id]}
                self.add("settled", stage, "", freeze(told))
            status = record.status.value.replace("_", " ")
            if (kind := _ENDINGS.get(status)) is not None:
                self.add(kind, stage, "earlier", FrozenDict())
            self.turn(stage, status)

    # -- events ----------------------------------------------------------------------------

    def admitted(self, event: Admitted) -> None:
        self.calls[event.call_id] = event
        stage = self.at(event.step_id)
        told: dict[str, Any] = {"call_id": event.call_id}
        if event.housekeeping:
            told["aside"] = True
        if event.parent is not None:
            told["parent"] = event.parent
        self.add("admitted", stage, event.tool, _given(told, event.arguments))
        if event.housekeeping or stage is _AFTER:
            return
        self.began.setdefault(stage.id, event.at)
        if self.state[stage.id] in ("pending", "stuck"):
            self.turn(stage, "in progress")

    def settled(self, event: Settled) -> None:
        call = self.calls.get(event.call_id)
        stage = self.at(event.step_id)
        told: dict[str, Any] = {"call_id": event.call_id, "outcome": event.outcome}
        if event.matched:
            told["matched"] = list(event.matched)
            self.matched.setdefault(stage.id, []).extend(event.matched)
        if event.checks:
            told["checks"] = list(event.checks)
        if event.error is not None:
            told["error"] = event.error
        if not event.filed or (call is not None and call.housekeeping):
            told["aside"] = True
        elif event.counted:
            told["counted"] = True
        admitted = None if call is None else self.stage_of(call.step_id)
        if admitted is not None and admitted != stage:
            told["under"] = admitted.key
        tool = "" if call is None else call.tool
        early = None if call is None else call.early_for
        if early is not None and event.outcome in SUCCEEDED:
            told["early_for"] = self.stage_of(early).key
        self.add("settled", stage, tool, _given(told, event.arguments))
        if event.outcome in SUCCEEDED or self.policy.seen == "attempted":
            self.seen.setdefault(stage.id, []).append(tool)

    def refused(self, event: Refused) -> None:
        stage = self.at(event.step_id)
        told: dict[str, Any] = {"call_id": event.call_id, "type": event.violation}
        told["why"] = event.message
        node = self.structure.node(stage.id)
        if event.violation == "max_tool_calls" and node is not None:
            told["limit"] = node.detail.get("most")
        self.add("refused", stage, event.tool, _given(told, event.arguments))

    def noted(self, event: ViolationNoted) -> None:
        if event.violation in _TOLD_ELSEWHERE:
            return
        stage = self.at(event.step_id)
        told: dict[str, Any] = {"why": event.message}
        if event.tool is not None:
            told["tool"] = event.tool
        node = self.structure.node(stage.id)
        if node is not None:
            told |= self._facts_of(event.violation, node)
        self.add("deviation", stage, event.violation, freeze(told))

    def _facts_of(self, violation: str, node: StructureNode) -> dict[str, Any]:
        """Name what a violation is about, from what the step had come to by then."""
        if violation == "evidence_incomplete":
            met = self.matched.get(node.key, ())
            return {"names": [one for one in node.detail.get("probes", ()) if one not in met]}
        if violation == "tools_missing":
            seen = self.seen.get(node.key, ())
            return {"names": [one for one in node.detail.get("tools", ()) if one not in seen]}
        if violation == "insufficient_effort":
            return {"limit": node.detail.get("least")}
        return {"limit": node.detail.get("most")} if violation == "max_tool_calls" else {}

    def ended(self, kind: str, event: Any, status: str, told: Mapping[str, Any]) -> None:
        """File how a step ended."""
        stage = self.at(event.step_id)
        kept = {name: value for name, value in told.items() if value not in (None, "")}
        self.add(kind, stage, event.by, freeze(kept))
        self.turn(stage, status)
        if stage.id in self.began:
            took = (event.at - self.began[stage.id]).total_seconds()
            self.seconds[stage.id] = max(took, 0.0)

    def closed(self, event: Closed) -> None:
        told = {"who": event.who, "note": event.note, "result": event.result}
        self.ended("closed", event, "completed", told)

    def skipped(self, event: Skipped) -> None:
        self.ended("skipped", event, "skipped", {"who": event.who, "note": event.reason})

    def failed(self, event: Failed) -> None:
        self.ended("given_up", event, "failed", {"who": event.who, "note": event.error})

    def approved(self, event: Approved) -> None:
        told = {"who": event.who, "note": event.note}
        self.add("approved", self.at(event.step_id), None, freeze(told))

    def timed_out(self, event: TimedOut) -> None:
        told = {"seconds": event.seconds, "limit": event.allowed}
        self.add("deviation", self.at(event.step_id), "step_timeout", freeze(told))

    def became_stuck(self, event: Stuck) -> None:
        stage = self.at(event.step_id)
        self.add("stuck", stage, None, freeze({"why": event.reason}))
        if self.state.get(stage.id) != "failed":
            self.turn(stage, "stuck")

    def reset(self, event: Reset) -> None:
        self.add("reset", self.stage or self.first, None, FrozenDict())
        for node in self.structure.nodes:
            self.write(node.key, "pending")
        for kept in (self.matched, self.seen, self.began, self.seconds, self.begun_stages):
            kept.clear()
        self.stage = None

    def resumed(self, event: Resumed) -> None:
        if event.torn:
            stage = self.come_to(self.stage or self.first)
            self.add("deviation", stage, "journal_torn", freeze({"why": event.torn}))

    def finished(self, event: Finished) -> None:
        self.verdict = event.verdict


#: The kind of code by which a step ended, by its status.
_ENDINGS: Final = {"completed": "closed", "skipped": "skipped", "failed": "given_up"}

#: Where a call stands that came when no step was left.
_AFTER: Final = StageRef(AFTER, AFTER, "step")

_TOLD: Final[dict[type[Event], Callable[[_Recorder, Any], None]]] = {
    Admitted: _Recorder.admitted,
    Settled: _Recorder.settled,
    Refused: _Recorder.refused,
    ViolationNoted: _Recorder.noted,
    Closed: _Recorder.closed,
    Skipped: _Recorder.skipped,
    Failed: _Recorder.failed,
    Approved: _Recorder.approved,
    TimedOut: _Recorder.timed_out,
    Stuck: _Recorder.became_stuck,
    Reset: _Recorder.reset,
    Resumed: _Recorder.resumed,
    Finished: _Recorder.finished,
}


def _given(told: dict[str, Any], arguments: Any) -> Any:
    """Keep what a call was given beside what is told of it; what cannot be kept, as JSON has it."""
    if arguments is None:
        return freeze(told)
    try:
        return freeze({**told, "arguments": arguments})
    except Exception:  # an object may refuse to be copied
        return freeze({**told, "arguments": to_wire(arguments)})


def _place(node: StructureNode) -> FrozenDict:
    return FrozenDict(stage=node.name, stage_id=node.id, runtime_stage_id=None)
