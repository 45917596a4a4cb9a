"""Recordings of the published engine, read into a log, so that every view works as for our own.

Record layer. The execution tree says which stages ran, the commits what each changed, the
narrative what each read and how it went on. The log is built from these alone: what was not
recorded has no row, and is named among the notes. The tree is followed with a list in place of
the stack, since it nests each stage in the one before.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from runbook_nb._frozen import FrozenDict, freeze
from runbook_nb._text import MISSING, show
from runbook_nb.errors import LoadError
from runbook_nb.record.changes import Change, fold
from runbook_nb.record.evidence import evidence_of, judged_by
from runbook_nb.record.log import FAILED, NOT_REACHED, OK, Code, FanOut, Log, StageRef, Track
from runbook_nb.record.observed import Met, completed
from runbook_nb.record.overlay import overlay_of
from runbook_nb.record.places import runtime_id
from runbook_nb.record.published import MAX_LEVELS, bad_part
from runbook_nb.record.redact import Redactor
from runbook_nb.record.structure import Structure, StructureNode
from runbook_nb.record.told import Narrative, Row, Told, narrative_of

#: Most executed stages a recording is read with.
MAX_STEPS: Final = 1_000_000

#: What stands where a value was not recorded.
NOT_CARRIED: Final = Told("<not carried>")

#: Kinds of stage whose children run side by side.
_PARALLEL: Final = ("fork", "selector", "fan_out")

#: Under which names the engine notes that a stage failed, where no narrative says so.
_ERRORS: Final = ("stageExecutionError", "deciderError", "selectorError", "inputMapperError")


@dataclass(slots=True)
class Level:
    """The stages of one chart: the root's, those of a branch, those of a mounted chart.

    Attributes
    ----------
    strip : str
        What the ids of its stages begin with in the file.
    path : str
        The mounts around them, inside their own track.
    template : str
        What the keys of their nodes begin with.
    commits : mapping
        The commits of its log, by execution.
    state : dict
        As far as the commits were folded.
    within : tuple of str
        Under which path of its log the stages keep what they write: in a fork, each child has a
        place of its own.
    around : dict or None
        What the stages see beside what they wrote: in a fork, the state of the parent.
    depth : int
        How many mounts and branches lie around it.
    stopped : bool
        Whether a stage of it stopped it on purpose.
    last : str or None
        Key of the stage that ran last.
    """

    strip: str
    path: str
    template: str
    commits: Mapping[str, list[Mapping[str, Any]]]
    state: dict[str, Any]
    within: tuple[str, ...] = ()
    around: dict[str, Any] | None = None
    depth: int = 0
    stopped: bool = False
    last: str | None = None

    @property
    def seen(self) -> Mapping[str, Any]:
        """What a stage sees: the state, over what lies around it."""
        return self.state if self.around is None else {**self.around, **self.state}


class Visit(NamedTuple):
    """One executed stage: its node of the tree, where it stands, what is told of it."""

    node: Mapping[str, Any]
    level: Level
    execution: str
    ref: StageRef
    key: str
    rows: list[Row]


class Writer:
    """Appends codes to one track and counts its executions."""

    def __init__(self, log: Log, prefix: str, base: int) -> None:
        self.log = log
        self.track = Track()
        self.prefix = prefix
        self.base = base
        self.count = 0
        self.failed = False
        self.paused = False
        #: What failed or paused in it last: the stage, the id of its execution, what was logged.
        self.ending: tuple[StageRef, str, Any] | None = None

    @property
    def status(self) -> tuple[int, str | None]:
        """How the branch of this track ended, and why it has no value where no row says so."""
        if self.failed:
            return FAILED, None
        return (NOT_REACHED, "the run paused in it") if self.paused else (OK, None)

    def add(
        self, kind: str, ref: StageRef, *values: Any, key: str | None = None, path: Any = None
    ) -> None:
        """Append one code with its values."""
        if kind == "stage":
            self.count += 1
        self.track.add(self.log.number(Code(kind, ref, key, path)), *values)

    def end(self, kind: str, ref: StageRef, value: Any, number: int) -> None:
        """Append a failure or a pause, which may be how the track ends."""
        self.add(kind, ref, value)
        self.failed, self.paused = kind == "error", kind == "pause"
        self.ending = ref, runtime_id(self.prefix, ref.key, self.base + number), value


@dataclass(slots=True)
class Rebuilt:
    """What a recording was read into.

    Attributes
    ----------
    log : Log
    structure : Structure
        The published one, with what ran and was not in it.
    notes : dict of str
        What the recording does not carry, in order; the keys are sentences.
    executions : dict
        The id of each execution here -> its id in the file.
    status : str or None
        How the run ended; None where the recording does not tell.
    ending : (StageRef, str, object) or None
        Where it failed or paused: the stage, the id of its execution, what was logged there.
    """

    log: Log
    structure: Structure
    notes: dict[str, None] = field(default_factory=dict)
    executions: dict[str, str] = field(default_factory=dict)
    status: str | None = "ok"
    ending: tuple[StageRef, str, Any] | None = None


def rebuild(snapshot: Mapping[str, Any], structure: Structure) -> Rebuilt:
    """Read the snapshot of a published recording into a log.

    Raises
    ------
    LoadError
        A part is not what its place asks for, or there is too much of it.
    """
    reader = _Rebuild(snapshot, structure)
    reader.read()
    return reader.made


class _After(NamedTuple):
    """A stage whose children, or whose mounted chart, come to their end here."""

    visit: Visit
    #: Which execution of the track the stage is.
    number: int
    inner: Level | None = None


class _Next(NamedTuple):
    """A node of the tree that comes next, and the decider it is a branch of."""

    node: Any
    level: Level
    decider: str | None = None


class _Rebuild:
    def __init__(self, snapshot: Mapping[str, Any], structure: Structure) -> None:
        self.snapshot = snapshot
        self.structure = structure
        self.narrative: Narrative = narrative_of(snapshot)
        self.evidence = evidence_of(snapshot)
        self.made = Rebuilt(Log(), structure)
        self.unknown: dict[str, Met] = {}
        self.fans: dict[str, FanOut] = {}
        #: Branches that did not end well, and what around them ran last.
        self.broken: list[Writer] = []
        self.visits: dict[str, dict[Any, int]] = {}
        self.steps = 0
        found = snapshot.get("subflowResults")
        self.subflows: Mapping[str, Any] = found if isinstance(found, Mapping) else {}

    @property
    def log(self) -> Log:
        return self.made.log

    def note(self, sentence: str) -> None:
        """Say, once, what is not carried or was read otherwise."""
        self.made.notes.setdefault(sentence)

    def read(self) -> None:
        tree = self.snapshot.get("executionTree")
        base = self.snapshot.get("initialState")
        state = dict(base) if isinstance(base, Mapping) else {}
        writer = Writer(self.log, "", 0)
        self.log.root = writer.track
        if isinstance(tree, Mapping) and tree.get("runtimeStageId"):
            level = Level("", "", "", _commits(self.snapshot.get("commitLog")), state)
            last = self.follow(tree, level, writer)
            self._say_how_it_ended(writer, level, last)
        elif tree is not None and not isinstance(tree, Mapping):
            raise bad_part("executionTree is no mapping", "snapshot.executionTree")
        self._say_what_is_missing()
        if self.unknown or self.fans:
            overlay = overlay_of(self.log, Redactor(None))
            self.made.structure = completed(self.structure, self.unknown, overlay, self.fans)

    # -- one track -------------------------------------------------------------------------

    def follow(self, root: Any, level: Level, writer: Writer) -> Visit | None:
        """Write a track: a stage of the tree and all that follow it; give the last of its own."""
        last: Visit | None = None
        todo: list[_Next | _After] = [_Next(root, level)]
        while todo:
            step = todo.pop()
            if isinstance(step, _After):
                self._end(step, writer)
                continue
            visit = self._visit(step)
            if visit.node.get("next") is not None:
                todo.append(_Next(visit.node["next"], visit.level))
            if visit.level is level:
                last = visit
            todo += self._run(visit, writer)
        return last

    def _visit(self, step: _Next) -> Visit:
        node, level = step.node, step.level
        if not isinstance(node, Mapping):
            raise bad_part("a stage of the execution tree is no mapping", "snapshot.executionTree")
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise LoadError(
                f"the execution tree holds more than {MAX_STEPS} stages, or contains itself",
                code="too_large",
                where="snapshot.executionTree",
                fix="load a shorter run",
            )
        execution = node.get("runtimeStageId")
        if not isinstance(execution, str) or not execution:
            raise bad_part("an executed stage has no id", "snapshot.executionTree.runtimeStageId")
        given = node.get("id")
        whole = given if isinstance(given, str) else execution.rpartition("#")[0]
        identity = whole.removeprefix(level.strip)
        identity = self._taken_by_default(step.decider, identity, node) or identity
        key = f"{level.template}{identity}"
        known = self.structure.node(key)
        name = node.get("name")
        told = name.removeprefix(level.strip) if isinstance(name, str) else identity
        kind = known.kind if known is not None else _kind(node)
        if known is not None and known.kind == "branch":
            form = known.detail.get("form")
            kind = form if form in ("subchart", *_PARALLEL, "decider") else "branch"
        elif step.decider is not None and kind == "stage":
            kind = "branch"
        ref = StageRef(identity, told if known is None else known.name, kind, level.path)
        if known is None and key not in self.unknown:
            head = level.template[:-1] or None
            observed = _observed(key, ref, node, step.decider)
            self.unknown[key] = Met(observed, head, level.last or step.decider or head)
        level.last = key
        return Visit(node, level, execution, ref, key, self.narrative.of(execution))

    def _taken_by_default(
        self, decider: str | None, identity: str, node: Mapping[str, Any]
    ) -> str | None:
        """Name the branch behind a default: the engine runs a copy of it under another id."""
        if decider is None or identity != "default":
            return None
        named = [n.id for n in self.structure.branches_of(decider) if n.name == node.get("name")]
        return named[0] if len(named) == 1 else None

    # -- one stage -------------------------------------------------------------------------

    def _run(self, visit: Visit, writer: Writer) -> list[_Next | _After]:
        """Write a stage up to where its children begin; give what comes before its next."""
        node, ref = visit.node, visit.ref
        if any(row.type == "resume" for row in visit.rows):
            self.note("The answers a run went on with are not carried.")
            writer.add("resume", ref, NOT_CARRIED)
            writer.paused = False
        writer.add("stage", ref)
        number = writer.count - 1
        here = runtime_id(writer.prefix, ref.key, writer.base + number)
        self.made.executions[here] = visit.execution
        commits = visit.level.commits.get(visit.execution, [])
        if any("args" in _list(commit.get("untrackedSources")) for commit in commits):
            writer.add("args", ref)
        mounted = ref.kind == "subchart" or isinstance(node.get("subflowId"), str)
        late = mounted or ref.kind == "fan_out"
        changes = [] if late else self._folded(visit, commits[:1])
        self._told_steps(visit, changes, writer, settled=not mounted)
        if mounted:
            return self._enter(visit, number, writer)
        children = [child for child in _list(node.get("children")) if child is not None]
        if ref.kind in _PARALLEL:
            self._select(visit, children, writer)
            self._spread(visit, children, writer)
            return [_After(visit, number)]
        if children and ref.kind == "decider":
            self._choose(visit, children[0], writer)
        owner = visit.key if ref.kind == "decider" else None
        inside = [_Next(child, visit.level, owner) for child in reversed(children)]
        return [_After(visit, number), *inside]

    def _folded(self, visit: Visit, commits: list[Mapping[str, Any]]) -> list[Change]:
        level = visit.level
        return [change for commit in commits for change in fold(level.state, commit, level.within)]

    def _told_steps(
        self, visit: Visit, changes: list[Change], writer: Writer, *, settled: bool
    ) -> None:
        """Write what a stage did in the order it was told, else what it read, then what it wrote."""
        left = {change.key: change for change in changes}
        steps = [row for row in visit.rows if row.type in ("step", "emit", "retry")]
        if not any(row.type == "step" for row in steps):
            reads = visit.node.get("stageReads")
            for key in reads if isinstance(reads, Mapping) else ():
                writer.add("read", visit.ref, key=str(key))
        writes = [row.key for row in steps if row.operation in ("write", "update", "delete")]
        for row in steps:
            if row.type == "emit":
                name, payload = row.emitted
                writer.add("emit", visit.ref, payload, key=name)
            elif row.type == "retry":
                self._retried(visit, row, writer)
            elif row.key is not None and settled:
                done = row.operation or self._unnamed(visit, row, left)
                if done == "read":
                    writer.add("read", visit.ref, key=row.key)
                elif done != "received":
                    writes.remove(row.key) if row.key in writes else None
                    again = row.key in writes
                    self._change(visit, row.key, left.get(row.key), writer, again=again)
                    if not again:
                        left.pop(row.key, None)
        for change in left.values():
            self._change(visit, change.key, change, writer)

    def _unnamed(self, visit: Visit, row: Row, left: Mapping[str, Change]) -> str:
        """Say what a step did whose sentence is not the engine's own."""
        self.note(
            "What some steps did is told in words of their author; reads are told from writes by their effect."
        )
        return "write" if row.key in left else "read"

    def _change(
        self,
        visit: Visit,
        key: str,
        change: Change | None,
        writer: Writer,
        *,
        again: bool = False,
    ) -> None:
        """Write one change; where the same key is changed again, only its outcome was recorded."""
        value = visit.level.seen.get(key, MISSING) if change is None else change.value
        if value is MISSING:
            writer.add("delete", visit.ref, key=key)
        elif change is not None and change.partial is not None:
            part = {} if again else change.partial
            writer.add("update", visit.ref, frozen(part, key), key=key)
        else:
            writer.add("write", visit.ref, frozen(value, key), key=key)

    def _retried(self, visit: Visit, row: Row, writer: Writer) -> None:
        attempt, attempts, message = row.retried
        error = {"type": "Error", "message": message}
        told = {"attempt": attempt or 1, "attempts": attempts or 1, "error": error}
        writer.add("retry", visit.ref, freeze(told))

    # -- decisions -------------------------------------------------------------------------

    def _judged(self, visit: Visit, kind: str, word: str | None, writer: Writer) -> bool:
        """Write a decision with its evidence, where there is any that says what happened."""
        evidence = self.evidence.get(visit.execution)
        found = None if evidence is None else judged_by(evidence, visit.level.seen)
        if found is None or (word is not None and found.path.branch != word):
            return False
        path = self.log.same_path(found.path)
        writer.add(kind, visit.ref, *found.values, path=path)
        return True

    def _choose(self, visit: Visit, child: Any, writer: Writer) -> None:
        if not isinstance(child, Mapping):
            return
        whole = str(child.get("id"))
        identity = whole.removeprefix(visit.level.strip)
        identity = self._taken_by_default(visit.key, identity, child) or identity
        taken = self.structure.node(f"{visit.level.template}{identity}")
        word = identity if taken is None or taken.branch is None else taken.branch
        if self._judged(visit, "decision", word, writer):
            return
        told = next((row.sentence for row in visit.rows if row.type == "condition"), None)
        writer.add("choice", visit.ref, word if told is None else told, key=word)
        self.note("The evidence of decisions is carried in words only.")

    def _select(self, visit: Visit, children: list[Any], writer: Writer) -> None:
        if visit.ref.kind != "selector" or self._judged(visit, "selection", None, writer):
            return
        chosen = _mapping(visit.node.get("logs")).get("selectedChildIds")
        if isinstance(chosen, list):
            words = [str(one).removeprefix(visit.level.strip) for one in chosen]
            writer.add("choices", visit.ref, freeze(words))

    # -- branches --------------------------------------------------------------------------

    def _spread(self, visit: Visit, children: list[Any], writer: Writer) -> None:
        """Write the branches of a fan-out, a fork or a selector."""
        if visit.ref.kind == "selector" and not children:
            return
        self._deeper(visit.level)
        form = {"selector": "selection"}.get(visit.ref.kind, visit.ref.kind)
        fan = self._fan_out(visit, children, form, writer)
        known = self.visits.setdefault(f"{writer.prefix}{visit.ref.key}", {})
        fan.bases = array("q", (known.get(self._name(fan, i), 0) for i in range(len(fan))))
        writer.add("fan_out", visit.ref, fan)
        self.fans[visit.key] = fan
        for place, child in enumerate(children):
            index = _index(child, place) if fan.is_fan_out else place
            if not isinstance(child, Mapping) or not 0 <= index < len(fan):
                raise bad_part(
                    f"a branch of {show(visit.key)} has no place", "snapshot.executionTree"
                )
            path = fan.path(writer.prefix, index)
            if fan.is_fan_out:
                number = writer.base + fan.execution
                self.made.executions[f"{path[:-1]}#{number}"] = str(child.get("runtimeStageId"))
            branch = Writer(self.log, path, fan.base(index))
            run = self._item if fan.is_fan_out else self._child
            status, note = run(visit, fan, index, child, branch)
            if status != OK and branch.ending is not None:
                self.broken.append(branch)
            fan.close(index, branch.track, status, note)
            known[self._name(fan, index)] = fan.base(index) + branch.count

    @staticmethod
    def _name(fan: FanOut, index: int) -> Any:
        return index if fan.is_fan_out else fan.items[index]

    def _fan_out(self, visit: Visit, children: list[Any], form: str, writer: Writer) -> FanOut:
        noted = _mapping(_mapping(visit.node.get("logs")).get("parallelForEach"))
        items: list[Any]
        if form == "fan_out":
            count = max(
                [_whole(noted.get("items")), *(_index(c, i) + 1 for i, c in enumerate(children))]
            )
            if count > MAX_STEPS:
                raise LoadError(
                    f"a fan-out over {count} items is more than {MAX_STEPS}",
                    code="too_large",
                    where=f"snapshot.executionTree, {show(visit.key)}",
                    fix="load a smaller run",
                )
            items = [NOT_CARRIED] * count
            cap = _whole(noted.get("maxBranches")) or len(children)
            if count > len(children):
                self.note("The items of a fan-out that began no branch are not carried.")
        else:
            items = [self._word(visit, child) for child in children]
            cap = len(items)
        into = noted.get("into")
        return FanOut(
            self.log,
            visit.ref,
            items,
            cap=cap,
            into=into if isinstance(into, str) else None,
            execution=writer.count - 1,
            form=form,
        )

    def _word(self, visit: Visit, child: Any) -> str:
        whole = str(_mapping(child).get("id"))
        identity = whole.removeprefix(visit.level.strip)
        known = self.structure.node(f"{visit.level.template}{identity}")
        return identity if known is None or known.branch is None else known.branch

    def _item(
        self, visit: Visit, fan: FanOut, index: int, child: Mapping[str, Any], branch: Writer
    ) -> tuple[int, str | None]:
        result = self._result_of(child)
        if result is None:
            return NOT_REACHED, "what it did was not recorded"
        level = self._inside(visit, result, child, "")
        items: Any = fan.items
        items[index] = frozen(level.state.get("item", NOT_CARRIED), "item")
        tree = _mapping(result.get("treeContext")).get("stageContexts")
        if tree is not None:
            self.follow(tree, level, branch)
        error = _mapping(child.get("errors")).get("subflowError")
        if error is not None and not branch.failed:
            return FAILED, str(error)
        return branch.status

    def _child(
        self, visit: Visit, fan: FanOut, index: int, child: Mapping[str, Any], branch: Writer
    ) -> tuple[int, str | None]:
        level = visit.level
        # Children of children write to the place of the outermost.
        inner = Level(
            level.strip,
            level.path,
            level.template,
            level.commits,
            level.state if level.within else {},
            level.within or ("runs", str(child.get("id"))),
            level.around or level.state,
            level.depth + 1,
        )
        self.follow(child, inner, branch)
        return branch.status

    # -- mounted charts --------------------------------------------------------------------

    def _result_of(self, node: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Find what the chart mounted at a node, or generated for it, did in that execution."""
        for key in (node.get("runtimeStageId"), node.get("subflowId"), node.get("id")):
            if isinstance(key, str) and isinstance(self.subflows.get(key), Mapping):
                found: Mapping[str, Any] = self.subflows[key]
                return found
        return None

    def _inside(
        self, visit: Visit, result: Mapping[str, Any], node: Mapping[str, Any], path: str
    ) -> Level:
        """Make the level of a mounted chart; its state is what was mapped in."""
        outer = visit.level
        self._deeper(outer)
        context = _mapping(result.get("treeContext"))
        commits = _commits(context.get("history"))
        base = context.get("initialState")
        state = dict(base) if isinstance(base, Mapping) else {}
        for seed in commits.pop("", []):
            fold(state, seed)
        strip = f"{node.get('subflowId') or node.get('id')}/"
        return Level(strip, path, f"{visit.key}/", commits, state, depth=outer.depth + 1)

    def _deeper(self, level: Level) -> None:
        if level.depth >= MAX_LEVELS:
            raise LoadError(
                f"charts lie inside one another more than {MAX_LEVELS} levels deep",
                code="too_deep",
                where=f"snapshot.executionTree, at {show(level.strip)}",
                fix="load a run that is nested less deeply",
            )

    def _enter(self, visit: Visit, number: int, writer: Writer) -> list[_Next | _After]:
        result = self._result_of(visit.node)
        tree = None
        if result is not None:
            tree = _mapping(result.get("treeContext")).get("stageContexts")
        if result is None or not isinstance(tree, Mapping) or not tree.get("runtimeStageId"):
            self.note("What some mounted charts did is not carried.")
            return [_After(visit, number)]
        inner = self._inside(visit, result, visit.node, f"{visit.level.path}{visit.ref.id}/")
        given = FrozenDict({key: frozen(value, key) for key, value in inner.state.items()})
        writer.add("enter", visit.ref, given)
        for key in given:
            writer.add("received", visit.ref, key=key)
        return [_After(visit, number, inner), _Next(tree, inner)]

    # -- how a stage ended -------------------------------------------------------------------

    def _end(self, after: _After, writer: Writer) -> None:
        """Write what comes behind a stage's children: how it was left, what it wrote, where next."""
        visit, _, inner = after
        node, ref = visit.node, visit.ref
        errors = _mapping(node.get("errors"))
        if inner is not None:
            ended = "stopped" if inner.stopped else "ok"
            writer.add("leave", ref, key="failed" if "subflowError" in errors else ended)
        commits = visit.level.commits.get(visit.execution, [])
        late = ref.kind == "fan_out" or inner is not None
        for change in self._folded(visit, commits if late else commits[1:]):
            self._change(visit, change.key, change, writer)
        if "outputMapperError" in errors:
            self.note("A mapping out of a mounted chart failed, and the engine went on without it.")
        for message in self._failures(visit, errors):
            writer.end("error", ref, freeze(_described(message)), after.number)
        for row in visit.rows:
            if row.type == "pause":
                self.note("What a pause asked is not carried.")
                asked = {"reason": NOT_CARRIED, "expects": None, "data": None}
                writer.end("pause", ref, freeze(asked), after.number)
            elif row.type == "break":
                writer.add("stop", ref, None)
                visit.level.stopped = True
        for target, times in _loops(node):
            writer.add("loop", ref, times, key=target.removeprefix(visit.level.strip))

    def _failures(self, visit: Visit, errors: Mapping[str, Any]) -> Iterator[str]:
        noted = [str(errors[name]) for name in _ERRORS if name in errors]
        told = [row.sentence for row in visit.rows if row.type == "error"]
        yield from noted[:1] or told[:1]

    def _say_how_it_ended(self, writer: Writer, level: Level, last: Visit | None) -> None:
        made = self.made
        waiting = next((branch for branch in self.broken if branch.paused), None)
        if writer.failed or writer.paused or waiting is not None:
            made.status = "failed" if writer.failed else "paused"
            made.ending = writer.ending if waiting is None or writer.failed else waiting.ending
        elif last is not None and not level.stopped and self._more_to_come(last.key):
            # The engine lets a run go on when a branch failed, unless it was asked to fail fast.
            made.status = "failed" if self.broken else None
            made.ending = self.broken[0].ending if self.broken else None
            if not self.broken:
                self.note(f"Why the run ended at {show(last.ref.name)} is not carried.")

    def _more_to_come(self, key: str) -> bool:
        """Say whether the structure has anything behind a stage, its branches and its charts."""
        own = {key, *(node.key for node in self.structure.branches_of(key))}
        members = dict(self.structure.groups)
        own |= {member for head in own for member in members.get(head, ())}
        return any(
            edge.source in own and edge.target not in own and edge.kind == "next"
            for edge in self.structure.edges
        )

    def _say_what_is_missing(self) -> None:
        self.note("The run's input and what its last stage returned are not carried.")
        if not self.narrative.kept:
            self.note(
                "No narrative was kept: events, retries, stops and pauses are not carried, and in "
                "which order a stage read and wrote is not known."
            )


# -- parts of a file, whatever they are ----------------------------------------------------------


def frozen(value: Any, key: str) -> Any:
    """Freeze a value of the file; too deep a one is refused as the file's fault."""
    return freeze(value, key)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _whole(value: Any) -> int:
    fits = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if fits else 0


def _index(child: Any, place: int) -> int:
    """Give the item a generated branch is of, which its id ends in."""
    tail = str(_mapping(child).get("id")).rpartition("~")[2]
    return int(tail) if tail.isdecimal() and len(tail) < 10 else place


def _commits(found: Any) -> dict[str, list[Mapping[str, Any]]]:
    """Sort a commit log by execution; what is no commit is passed over."""
    sorted_ones: dict[str, list[Mapping[str, Any]]] = {}
    for commit in _list(found):
        if isinstance(commit, Mapping) and isinstance(commit.get("runtimeStageId"), str):
            sorted_ones.setdefault(commit["runtimeStageId"], []).append(commit)
    return sorted_ones


def _loops(node: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    target = _mapping(node.get("logs")).get("dynamicNextTarget")
    for message in _list(node.get("flowMessages")):
        if isinstance(message, Mapping) and message.get("type") == "loop":
            yield (
                str(target or message.get("targetStage")),
                max(_whole(message.get("iteration")), 1),
            )


_NAMED: Final = re.compile(r"([A-Za-z_$][\w$.]*): (.*)", re.DOTALL)


def _described(message: str) -> dict[str, str]:
    """Take an error's name off its message, where there is one."""
    found = _NAMED.fullmatch(message)
    if found is None:
        return {"type": "Error", "message": message}
    return {"type": found[1], "message": found[2]}


def _kind(node: Mapping[str, Any]) -> str:
    """Name the kind of an executed stage that the structure does not know, by what it left."""
    logs = _mapping(node.get("logs"))
    if "parallelForEach" in logs:
        return "fan_out"
    if isinstance(node.get("subflowId"), str):
        return "subchart"
    if "selectedChildIds" in logs:
        return "selector"
    kinds = {m.get("type") for m in _list(node.get("flowMessages")) if isinstance(m, Mapping)}
    if "branch" in kinds or node.get("isDecider"):
        return "decider"
    if "children" in kinds or node.get("isFork") or len(_list(node.get("children"))) > 1:
        return "fork"
    return "decider" if node.get("children") else "stage"


def _observed(
    key: str, ref: StageRef, node: Mapping[str, Any], decider: str | None
) -> StructureNode:
    """Make the node of a stage that ran and is not in the structure."""
    kind: Any = ref.kind if decider is None else "branch"
    described = node.get("description")
    return StructureNode(
        key=key,
        id=ref.id,
        name=ref.name,
        kind=kind,
        branch=None if decider is None else ref.id,
        decider=decider,
        description=described if isinstance(described, str) else None,
        added=True,
        detail={} if ref.kind in ("stage", "branch") or decider is None else {"form": ref.kind},
    )
