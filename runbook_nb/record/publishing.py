"""A run in the published snapshot: its execution tree, the charts inside it, its narrative.

Record layer. The names and the shape are those that flow viewers mount; everything in it is
served. What a stage saw and wrote stands in its commit; the tree has summaries of it, so that a
value is in the snapshot once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from runbook_nb._frozen import handed_out
from runbook_nb._json import WireReport, encode, to_wire
from runbook_nb._text import MISSING
from runbook_nb.record.commits import RunTracks, log_of_run
from runbook_nb.record.log import FAILED
from runbook_nb.record.places import Entry
from runbook_nb.record.replay import Branching, Level, Replayed, Step, value_of_held
from runbook_nb.record.run import Run
from runbook_nb.record.slots import error_words, reason_of
from runbook_nb.record.structure import StructureNode

#: Longest beginning of a text that a summary shows.
MAX_PREVIEW: Final = 80

_PARALLEL: Final = ("fork", "selector", "fan_out")
_FRAMING: Final = ("enter", "received", "leave")


def published_snapshot(run: Run, report: WireReport) -> dict[str, Any]:
    """Give the published snapshot of a run, without what observers keep.

    Parameters
    ----------
    run : Run
    report : WireReport
        Counts the values JSON cannot carry.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> run = flow_chart("c", lambda s: s.set("n", 1), id="a").build().run_sync()
    >>> published_snapshot(run, WireReport())["executionTree"]["runtimeStageId"]
    'a#0'
    """
    publisher = _Publisher(run, report)
    track = publisher.tracks.root
    snapshot: dict[str, Any] = {"sharedState": to_wire(run.state, report)}
    tree = publisher.tree(track, track.top, "")
    if tree is not None:
        snapshot["executionTree"] = tree
    if not run.redactor.active:
        # The state before anything ran; left out under a policy, which cannot vouch for it.
        snapshot["initialState"] = to_wire(run.raw_initial, report)
    snapshot["commitLog"] = publisher.commits(track, track.top)
    snapshot["commitValues"] = "full"
    snapshot["writeProvenance"] = "reads-prefix"
    subflows = publisher.results()
    if subflows:
        snapshot["subflowResults"] = subflows
    return snapshot


class _Publisher:
    def __init__(self, run: Run, report: WireReport) -> None:
        self.report = report
        self.redactor = run.redactor
        self.text = run.redactor.text
        self.structure = run.raw_structure
        tracks = log_of_run(run).raw_run
        assert tracks is not None  # noqa: S101 - only a log that was read has no run around it
        self.tracks: RunTracks = tracks
        #: Charts inside, in the order they began.
        self.waiting: list[_Inside] = []

    def commits(self, track: Replayed, level: Level) -> list[Any]:
        """Give the commits of one chart, each row with the keys read before it."""
        log = self.tracks.log_of(track, level)
        written: list[Any] = to_wire(log.encoded(provenance=True), self.report)
        return written

    # -- the tree --------------------------------------------------------------------------

    def tree(self, track: Replayed, level: Level, inside: str) -> dict[str, Any] | None:
        """Give the executed stages of one chart, each under the one before.

        Parameters
        ----------
        track, level
        inside : str
            The path of the mounts and branches around it, which its names begin with.
        """
        main: list[dict[str, Any]] = []
        decider: tuple[str, dict[str, Any]] | None = None
        for step in level.steps:
            known = self.structure.node(track.key(step))
            node = self.node(track, step, known, inside)
            if decider is not None and known is not None and known.decider == decider[0]:
                # What a decider chose hangs under it; what comes next, behind both.
                decider[1].setdefault("children", []).append(node)
                decider[1]["flowMessages"] = [_chosen(known, self.text)]
                continue
            main.append(node)
            decider = (track.key(step), node) if step.ref.kind == "decider" else None
        for before, after in zip(main[-2::-1], main[:0:-1], strict=True):
            before["next"] = after
        return main[0] if main else None

    def node(
        self, track: Replayed, step: Step, known: StructureNode | None, inside: str
    ) -> dict[str, Any]:
        """Give one executed stage."""
        ref, kind = step.ref, step.ref.kind
        name = self.text(track.runtime_id(step))
        node: dict[str, Any] = {
            "id": name.rpartition("#")[0],
            "runtimeStageId": name,
            "name": self.text(f"{inside}{ref.name}"),
            "isDecider": kind == "decider",
            "isFork": kind in _PARALLEL,
            "logs": {},
            "errors": {},
            "metrics": {},
            "evals": {},
        }
        if known is not None and known.description is not None:
            node["description"] = self.text(known.description)
        self._used(track, step, node)
        for place, code in track.own(step):
            if code.kind == "error":
                node["errors"]["stageExecutionError"] = self.text(error_words(track.value(place)))
            elif code.kind == "loop":
                node["logs"]["dynamicNextTarget"] = self.text(code.key or "")
                back = {"type": "loop", "targetStage": node["logs"]["dynamicNextTarget"]}
                node["flowMessages"] = [{**back, "iteration": track.value(place)}]
        if step.entered is not None:
            node["subflowId"] = node["id"]
            if step.status == "failed":
                node["errors"].setdefault("subflowError", "a stage inside failed")
            self.waiting.append(_Inside(track, step.entered, node, ref.name))
        branching = track.fan_of(step)
        if branching is not None:
            self._spread(track, branching, node, inside)
        return node

    def _used(self, track: Replayed, step: Step, node: dict[str, Any]) -> None:
        commit = self.tracks.log_of(track, step.level)[step.place]
        # What the child of a fork writes is in no published log, so the tree has it whole.
        around = track.branching
        whole = around is not None and not around.fan.is_fan_out and step.level is track.top
        writes = {
            change.key: to_wire(change.value, self.report)
            if whole
            else _summary("__writeSummary", change.value)
            for change in commit.changes
            if change.verb != "delete"
        }
        if writes:
            node["stageWrites"] = writes
        reads: dict[str, Any] = {}
        for place, code in track.own(step):
            if code.kind == "read" and code.key is not None:
                held = value_of_held(step.level.timeline.at(code.key, place))
                seen = held if held is MISSING else self.redactor.value(code.key, held)
                reads[self.text(code.key)] = _summary("__readSummary", seen)
        if reads:
            node["stageReads"] = reads

    # -- charts inside of it -----------------------------------------------------------------

    def _spread(
        self, track: Replayed, branching: Branching, node: dict[str, Any], inside: str
    ) -> None:
        """Hang the branches of a fan-out, a fork or a selection under it."""
        fan = branching.fan
        children = []
        for branch in track.branches(branching):
            if fan.is_fan_out:
                children.append(self._generated(track, branching, branch, inside))
            else:
                child = self.tree(branch, branch.top, inside)
                if child is not None:
                    children.append(child)
        if children:
            node["children"] = children
        if fan.is_fan_out:
            node["logs"]["parallelForEach"] = {
                "items": len(fan),
                "branches": len(children),
                "maxBranches": fan.cap,
                "truncated": len(fan) > fan.cap,
                "into": None if fan.into is None else self.text(fan.into),
            }
        elif fan.form == "selection":
            node["logs"]["selectedChildIds"] = [self.text(item) for item in fan.items]

    def _generated(
        self, track: Replayed, branching: Branching, branch: Replayed, inside: str
    ) -> dict[str, Any]:
        """Give the branch of one item, as the mount that it is."""
        fan, index = branching.fan, branch.index
        path = self.text(branch.prefix[:-1])
        name = f"{fan.stage.name} [{index}]"
        node: dict[str, Any] = {
            "id": path,
            "runtimeStageId": f"{path}#{track.first + branching.step.number}",
            "name": self.text(f"{inside}{name}"),
            "isDecider": False,
            "isFork": False,
            "logs": {},
            "errors": {},
            "metrics": {},
            "evals": {},
            "subflowId": path,
        }
        if fan.status_number(index) == FAILED:
            node["errors"]["subflowError"] = self.text(reason_of(fan, index))
        self.waiting.append(_Inside(branch, branch.top, node, name, fan.status(index)))
        return node

    def results(self) -> dict[str, Any]:
        """Give what the charts inside did, by their path.

        Of several executions the last stands there, earlier ones stand under their own ids.
        """
        found: dict[str, Any] = {}
        executions: dict[str, str] = {}
        for one in self.waiting:  # grows while it is walked
            path = one.node["subflowId"]
            if path in found:
                found[executions[path]] = found.pop(path)
            found[path] = self._result(one, path)
            executions[path] = one.node["runtimeStageId"]
        return found

    def _result(self, one: _Inside, path: str) -> dict[str, Any]:
        level, last = one.level, len(one.track.codes)
        begin, end = (
            to_wire(self.redactor.served(_state(level, time)), self.report) for time in (-1, last)
        )
        context: dict[str, Any] = {"globalContext": end}
        tree = self.tree(one.track, level, f"{path}/")
        if tree is not None:
            context["stageContexts"] = tree
        context["history"] = self.commits(one.track, level)
        context["initialState"] = begin
        result = {
            "subflowId": path,
            "subflowName": self.text(one.name),
            "parentStageId": path.rpartition("/")[0],
            "treeContext": context,
        }
        return result if one.status is None else {**result, "status": one.status}


class _Inside(NamedTuple):
    """One execution of a chart inside another, with the node of the tree that stands for it."""

    track: Replayed
    level: Level
    node: dict[str, Any]
    name: str
    status: str | None = None


def _state(level: Level, time: int) -> dict[str, Any]:
    held = level.timeline.state(time)
    return {key: handed_out(value_of_held(value)) for key, value in held.items()}


def _chosen(branch: StructureNode, text: Callable[[str], str]) -> dict[str, Any]:
    return {
        "type": "branch",
        "targetStage": text(branch.name),
        "rationale": text(f"returned branchId: {branch.branch}"),
    }


def _summary(mark: str, value: Any) -> dict[str, Any]:
    """Summarise a value as the published form does where it keeps no copy."""
    made: dict[str, Any] = {mark: True}
    if value is MISSING or value is None:
        return {**made, "type": "undefined" if value is MISSING else "null"}
    if isinstance(value, Mapping):
        return {**made, "type": "object", "size": len(value)}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return {**made, "type": "array", "size": len(value)}
    wire = to_wire(value)
    if isinstance(wire, str):
        return {**made, "type": "string", "size": len(wire), "preview": wire[:MAX_PREVIEW]}
    name = "boolean" if isinstance(wire, bool) else "number"
    return {**made, "type": name, "preview": encode(wire)}


# -- the narrative -------------------------------------------------------------------------------


def published_narrative(run: Run) -> list[dict[str, Any]]:
    """Give the rows of a run's walk as a published narrative has them.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> run = flow_chart("c", lambda s: s.set("n", 1), id="a").build().run_sync()
    >>> [row["type"] for row in published_narrative(run)]
    ['stage', 'step']
    """
    walk, text = run.walk, run.redactor.text
    numbers: Counter[str] = Counter()
    told = []
    for entry, row in zip(walk.entries(), walk, strict=True):
        name = row.runtime_stage_id
        written: dict[str, Any] = {"type": row.type, "text": row.text, "depth": row.depth}
        mount = _mount_of(entry, name)
        if row.stage is not None:
            # What lies inside a chart is named with its path; a mount is named as it is.
            around = "" if mount is not None or not row.subflow else f"{row.subflow}/"
            written["stageName"] = f"{around}{row.stage}"
        written["stageId"] = row.stage_id if name is None else name.rpartition("#")[0]
        if name is not None:
            written["runtimeStageId"] = name
        if row.depth and row.type in ("step", "emit", "retry") and name is not None and not mount:
            numbers[name] += 1
            written["stepNumber"] = numbers[name]
        inside = mount or row.subflow
        if inside:
            written["subflowId"] = inside
        if row.type == "subflow":
            written["direction"] = "exit" if row.text.startswith("Left ") else "entry"
        if row.type == "step":
            key = _key_of(entry)
            if key is not None:
                written["key"] = text(key)
        told.append(written)
    return told


def _mount_of(entry: Entry, name: str | None) -> str | None:
    """Give the path of the chart that a row tells the entering or leaving of."""
    code = None if entry.event is None else entry.event.code.kind
    framing = entry.event is None and entry.type in ("subflow", "step")
    return name.rpartition("#")[0] if name and (framing or code in _FRAMING) else None


def _key_of(entry: Entry) -> str | None:
    if entry.event is not None:
        return entry.event.code.key
    return entry.note.rpartition(" ")[2]  # what a branch was given
