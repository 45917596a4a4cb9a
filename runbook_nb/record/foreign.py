"""Recordings of the published engine, read into a log, so that every view works as for our own.

Record layer. The execution tree says which stages ran, the commits what each changed, the
narrative what each read and how it went on. The log is built from these alone: what was not
recorded has no row, and is named among the notes. The tree is followed with a list in place of
the stack, since it nests each stage in the one before.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from runbook_nb._frozen import FrozenDict, freeze
from runbook_nb._text import show
from runbook_nb.errors import LoadError
from runbook_nb.record.changes import FoldedChange, fold
from runbook_nb.record.evidence import evidence_of, judged_by
from runbook_nb.record.foreign_parts import (
    ERRORS,
    commits_by_execution,
    described,
    index_of,
    list_of,
    loops_of,
    mapping_of,
    observed_kind,
    observed_node,
    whole_of,
)
from runbook_nb.record.foreign_steps import (
    changes_late,
    whole_writes,
    write_change,
    write_steps,
)
from runbook_nb.record.foreign_told import Narrative, narrative_of
from runbook_nb.record.foreign_tracks import NOT_CARRIED, Level, Rebuilt, Visit, Writer
from runbook_nb.record.log import FAILED, NOT_REACHED, OK, FanOut, Log, StageRef
from runbook_nb.record.observed import Met, completed
from runbook_nb.record.overlay import overlay_of
from runbook_nb.record.places import runtime_id
from runbook_nb.record.published_read import MAX_LEVELS, bad_part
from runbook_nb.record.redact import Redactor
from runbook_nb.record.structure import Structure

#: Most executed stages a recording is read with.
MAX_STEPS: Final = 1_000_000

#: Kinds of stage whose children run side by side.
_PARALLEL: Final = ("fork", "selector", "fan_out")


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
            level = Level("", "", "", commits_by_execution(self.snapshot.get("commitLog")), state)
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
        kind = known.kind if known is not None else observed_kind(node)
        if known is not None and known.kind == "branch":
            form = known.detail.get("form")
            kind = form if form in ("subchart", *_PARALLEL, "decider") else "branch"
        elif step.decider is not None and kind == "stage":
            kind = "branch"
        ref = StageRef(identity, told if known is None else known.name, kind, level.path)
        if known is None and key not in self.unknown:
            head = level.template[:-1] or None
            observed = observed_node(key, ref, node, step.decider)
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
        if any("args" in list_of(commit.get("untrackedSources")) for commit in commits):
            writer.add("args", ref)
        late = visit.mounts or ref.kind == "fan_out" or changes_late(visit)
        changes = [] if late else self._folded(visit, commits[:1])
        if not commits and not late:
            changes = whole_writes(visit)
        write_steps(visit, changes, writer, self.note)
        if visit.mounts:
            return self._enter(visit, number, writer)
        children = [child for child in list_of(node.get("children")) if child is not None]
        if ref.kind in _PARALLEL:
            self._select(visit, children, writer)
            self._spread(visit, children, writer)
            return [_After(visit, number)]
        if children and ref.kind == "decider":
            self._choose(visit, children[0], writer)
        owner = visit.key if ref.kind == "decider" else None
        inside = [_Next(child, visit.level, owner) for child in reversed(children)]
        return [_After(visit, number), *inside]

    def _folded(self, visit: Visit, commits: list[Mapping[str, Any]]) -> list[FoldedChange]:
        level = visit.level
        if any(commit.get("redactedPaths") for commit in commits):
            self.made.hidden = True
        return [change for commit in commits for change in fold(level.state, commit, level.within)]

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
        how = "not carried" if told is None else "carried in words only"
        self.note(f"The evidence of decisions is {how}.")

    def _select(self, visit: Visit, children: list[Any], writer: Writer) -> None:
        if visit.ref.kind != "selector" or self._judged(visit, "selection", None, writer):
            return
        chosen = mapping_of(visit.node.get("logs")).get("selectedChildIds")
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
            index = index_of(child, place) if fan.is_fan_out else place
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
        noted = mapping_of(mapping_of(visit.node.get("logs")).get("parallelForEach"))
        items: list[Any]
        if form == "fan_out":
            count = max(
                [
                    whole_of(noted.get("items")),
                    *(index_of(c, i) + 1 for i, c in enumerate(children)),
                ]
            )
            if count > MAX_STEPS:
                raise LoadError(
                    f"a fan-out over {count} items is more than {MAX_STEPS}",
                    code="too_large",
                    where=f"snapshot.executionTree, {show(visit.key)}",
                    fix="load a smaller run",
                )
            items = [NOT_CARRIED] * count
            cap = whole_of(noted.get("maxBranches")) or len(children)
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
        whole = str(mapping_of(child).get("id"))
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
        items[index] = freeze(level.state.get("item", NOT_CARRIED), "item")
        tree = mapping_of(result.get("treeContext")).get("stageContexts")
        if tree is not None:
            self.follow(tree, level, branch)
        error = mapping_of(child.get("errors")).get("subflowError")
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
        context = mapping_of(result.get("treeContext"))
        commits = commits_by_execution(context.get("history"))
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
            tree = mapping_of(result.get("treeContext")).get("stageContexts")
        if result is None or not isinstance(tree, Mapping) or not tree.get("runtimeStageId"):
            self.note("What some mounted charts did is not carried.")
            return [_After(visit, number)]
        inner = self._inside(visit, result, visit.node, f"{visit.level.path}{visit.ref.id}/")
        given = FrozenDict({key: freeze(value, key) for key, value in inner.state.items()})
        writer.add("enter", visit.ref, given)
        for key in given:
            writer.add("received", visit.ref, key=key)
        return [_After(visit, number, inner), _Next(tree, inner)]

    # -- how a stage ended -------------------------------------------------------------------

    def _end(self, after: _After, writer: Writer) -> None:
        """Write what comes behind what is inside of a stage: what it wrote, where it went."""
        visit, _, inner = after
        node, ref = visit.node, visit.ref
        errors = mapping_of(node.get("errors"))
        if inner is not None:
            ended = "stopped" if inner.stopped else "ok"
            writer.add("leave", ref, key="failed" if "subflowError" in errors else ended)
        commits = visit.level.commits.get(visit.execution, [])
        late = visit.mounts or ref.kind == "fan_out" or changes_late(visit)
        for change in self._folded(visit, commits if late else commits[1:]):
            write_change(visit, change, writer)
        if "outputMapperError" in errors:
            self.note("A mapping out of a mounted chart failed, and the engine went on without it.")
        for message in self._failures(visit, errors):
            writer.end("error", ref, freeze(described(message)), after.number)
        for row in visit.rows:
            if row.type == "pause":
                self.note("What a pause asked is not carried.")
                asked = {"reason": NOT_CARRIED, "expects": None, "data": None}
                writer.end("pause", ref, freeze(asked), after.number)
            elif row.type == "break":
                writer.add("stop", ref, None)
                visit.level.stopped = True
        for target, times in loops_of(node):
            writer.add("loop", ref, times, key=target.removeprefix(visit.level.strip))

    def _failures(self, visit: Visit, errors: Mapping[str, Any]) -> Iterator[str]:
        noted = [str(errors[name]) for name in ERRORS if name in errors]
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
        if any(code.stage.kind == "streaming" for code in self.log.codes):
            self.note("What streaming stages streamed is not carried.")
        if self.made.hidden:
            self.note("Some values were hidden when the run was recorded.")
        self.note("The run's input and what its last stage returned are not carried.")
        if not self.narrative.kept:
            self.note(
                "No narrative was kept: events, retries, stops and pauses are not carried, and in "
                "which order a stage read and wrote is not known."
            )
