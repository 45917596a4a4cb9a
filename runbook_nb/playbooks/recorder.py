"""The events of a plan written as the log that charts leave too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._frozen import FrozenDict, freeze
from runbook_nb._json import to_wire
from runbook_nb.playbooks.begun import skills_from
from runbook_nb.playbooks.events import (
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
from runbook_nb.playbooks.model import status_words
from runbook_nb.playbooks.outline import structure_of
from runbook_nb.playbooks.policy import EnforcementPolicy
from runbook_nb.playbooks.state import STANDING
from runbook_nb.record.log import Code, Log, StageRef
from runbook_nb.record.steps import AFTER, DECLINED, SUCCEEDED
from runbook_nb.record.structure import Structure, StructureNode

if TYPE_CHECKING:
    from runbook_nb.playbooks.model import PlaybookPlan

#: Violations that are told of in another way: by the event itself, or by how the plan stands.
_TOLD_ELSEWHERE: Final = ("step_timeout", *STANDING)


class Recorder:
    """Goes through the events of a plan once, and writes the log."""

    def __init__(self, events: list[Event]) -> None:
        self.events = tuple(events)
        begun = events[0]
        assert isinstance(begun, Begun)  # noqa: S101 - nothing else makes a plan
        self.begun = begun
        self.policy = EnforcementPolicy.of(begun.policy)
        self.structure: Structure = structure_of(
            begun.playbook, skills_from(begun.skills), self.policy
        )
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
        from runbook_nb.playbooks.report import report_on

        self.report = report_on(self.events)
        self.tell_stuck()

    def end_with(self, also: Mapping[str, Any]) -> None:
        """Write what the run wrote at its end."""
        if also:
            self.come_to(self.stage or self.first)
        for key, value in also.items():
            self.write(key, value)

    @property
    def here(self) -> StructureNode | None:
        """The first step that is neither done nor passed by."""
        nodes = self.structure.nodes
        return next((n for n in nodes if self.state[n.key] not in ("completed", "skipped")), None)

    def tell_stuck(self) -> None:
        """Say that a step is stuck where its policy lets that pass in silence."""
        here, reason = self.here, self.report.stuck
        if (
            reason
            and here is not None
            and self.state[here.key] not in ("stuck", "failed", DECLINED)
        ):
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
            status = status_words(record)
            if (kind := _ENDINGS.get(status)) is not None:
                self.add(kind, stage, "earlier", FrozenDict())
            self.turn(stage, status)

    # -- events ----------------------------------------------------------------------------

    def _admitted(self, event: Admitted) -> None:
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

    def _settled(self, event: Settled) -> None:
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

    def _refused(self, event: Refused) -> None:
        stage = self.at(event.step_id)
        told: dict[str, Any] = {"call_id": event.call_id, "type": event.violation}
        told["why"] = event.message
        node = self.structure.node(stage.id)
        if event.violation == "max_tool_calls" and node is not None:
            told["limit"] = node.detail.get("most")
        self.add("refused", stage, event.tool, _given(told, event.arguments))

    def _noted(self, event: ViolationNoted) -> None:
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

    def _closed(self, event: Closed) -> None:
        told = {"who": event.who, "note": event.note, "result": event.result}
        self.ended("closed", event, "completed", told)

    def _skipped(self, event: Skipped) -> None:
        self.ended("skipped", event, "skipped", {"who": event.who, "note": event.reason})

    def _failed(self, event: Failed) -> None:
        self.ended("given_up", event, "failed", {"who": event.who, "note": event.error})

    def _approved(self, event: Approved) -> None:
        told = {"who": event.who, "note": event.note}
        self.add("approved", self.at(event.step_id), None, freeze(told))

    def _declined(self, event: Declined) -> None:
        stage = self.at(event.step_id)
        told = {"who": event.who, **({"note": event.note} if event.note else {})}
        self.add("given_up", stage, DECLINED, freeze(told))
        self.turn(stage, DECLINED)

    def _timed_out(self, event: TimedOut) -> None:
        told = {"seconds": event.seconds, "limit": event.allowed}
        self.add("deviation", self.at(event.step_id), "step_timeout", freeze(told))

    def _became_stuck(self, event: Stuck) -> None:
        stage = self.at(event.step_id)
        self.add("stuck", stage, None, freeze({"why": event.reason}))
        if self.state.get(stage.id) not in ("failed", DECLINED):
            self.turn(stage, "stuck")

    def _reset(self, event: Reset) -> None:
        self.add("reset", self.stage or self.first, None, FrozenDict())
        for node in self.structure.nodes:
            self.write(node.key, "pending")
        for kept in (self.matched, self.seen, self.began, self.seconds, self.begun_stages):
            kept.clear()
        self.stage = None

    def _resumed(self, event: Resumed) -> None:
        if event.torn:
            stage = self.come_to(self.stage or self.first)
            self.add("deviation", stage, "journal_torn", freeze({"why": event.torn}))

    def _finished(self, event: Finished) -> None:
        self.verdict = event.verdict


#: The kind of code by which a step ended, by its status.
_ENDINGS: Final = {"completed": "closed", "skipped": "skipped", "failed": "given_up"}

#: Where a call stands that came when no step was left.
_AFTER: Final = StageRef(AFTER, AFTER, "step")

_TOLD: Final[dict[type[Event], Callable[[Recorder, Any], None]]] = {
    Admitted: Recorder._admitted,
    Settled: Recorder._settled,
    Refused: Recorder._refused,
    ViolationNoted: Recorder._noted,
    Closed: Recorder._closed,
    Skipped: Recorder._skipped,
    Failed: Recorder._failed,
    Approved: Recorder._approved,
    Declined: Recorder._declined,
    TimedOut: Recorder._timed_out,
    Stuck: Recorder._became_stuck,
    Reset: Recorder._reset,
    Resumed: Recorder._resumed,
    Finished: Recorder._finished,
}


def _given(told: dict[str, Any], arguments: Any) -> Any:
    """Keep what a call was given beside what is told of it; what cannot be kept, as JSON has it."""
    if arguments is None:
        return freeze(told)
    try:
        return freeze({**told, "arguments": arguments})
    except Exception:  # an object may refuse to be copied
        return freeze({**told, "arguments": to_wire(arguments)})
