"""A plain interpreter of drawn charts that writes everything down at once, the obvious way.

It knows nothing of codes, shapes or views. What it wrote is what the views of the engine's run must
say: rows, commits, the state of every chart, counts, the executions of every function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from drawn_charts import (
    CHECKS,
    LETTERS,
    SIZES,
    ChartSpec,
    Decider,
    Fan,
    Fork,
    Mount,
    Work,
    answer_to,
    branch_ids,
    id_of,
    is_met,
    row_of,
    words_of,
)

import runbook_nb as rb
from runbook_nb.record.narrative import condition_words

#: Rows that undoing what a stage wrote takes away.
_CHANGES = ("Wrote ", "Appended to ", "Merged into ", "Deleted ")

_MISSING = object()


class Failed(Exception):
    """A stage failed; the text is the row of it."""


class Ended(Exception):
    """Something ended the whole run."""

    def __init__(self, kind: str) -> None:
        super().__init__(ENDINGS[kind][0])
        self.kind = kind


class Asked(Exception):
    """A question ended what was going on."""


#: Row and run status of each way to end a whole run from inside.
ENDINGS = {
    "signal": ("Failed: Absent", "absent"),
    "cancel": ("Failed: CancelledError", "cancelled"),
    "keyboard": ("Failed: KeyboardInterrupt", "cancelled"),
}


#: Stands for a key that the branch of a fork took away.
GONE: Any = object()


@dataclass
class Commit:
    """What one executed stage changed in the state of its chart."""

    id: str
    path: str
    values: dict[str, Any] = field(default_factory=dict)
    deleted: frozenset[str] = frozenset()


@dataclass
class Slot:
    """What became of a branch."""

    item: Any
    status: str
    value: Any = None
    branch: str | None = None


@dataclass
class Track:
    """One sequence of executions, numbered, and the word its last decision came to."""

    prefix: str
    item: str
    number: int = 0
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    decided: str | None = None


@dataclass
class Level:
    """One chart that runs: its track, its place, its state.

    In the child of a fork: what was written there, and what is still the parent's.
    """

    track: Track
    path: str
    name: str
    state: dict[str, Any]
    written: dict[str, Any] | None = None
    inherited: set[str] = field(default_factory=set)

    @property
    def where(self) -> str:
        """The path of the chart in the run."""
        return f"{self.track.prefix}{self.path}"


class Step:
    """One executed stage, as long as it runs."""

    def __init__(self, level: Level, name: str, stage_id: str) -> None:
        self.level = level
        self.name = name
        self.id = stage_id
        self.runtime_id = f"{level.where}{stage_id}#{level.track.number}"
        level.track.number += 1
        self.before = dict(level.state)
        self.written = None if level.written is None else dict(level.written)
        self.inherited = set(level.inherited)
        self.commit = Commit(self.runtime_id, level.where[:-1])
        self.row("stage", 0, f"Ran {name}")
        self.began = len(level.track.rows)

    def row(self, kind: str, depth: int, text: str, at: int | None = None) -> None:
        rows, where = self.level.track.rows, self.level.where[:-1] or None
        name = None if kind == "fork" else self.name
        row = (kind, depth, name, self.id, self.runtime_id, where, text)
        rows.insert(len(rows) if at is None else at, row)

    # -- state -----------------------------------------------------------------------------

    def write(self, key: str, value: Any, verb: str = "Wrote") -> None:
        level = self.level
        if level.written is not None:
            level.written[key] = value
        level.state[key] = value
        verb = "Wrote" if key in level.inherited else verb
        level.inherited.discard(key)
        self.row("step", 1, f"{verb} {key}")

    def read(self, key: str) -> Any:
        self.row("step", 1, f"Read {key}")
        return self.level.state.get(key)

    def append(self, key: str, value: Any) -> None:
        self.write(key, [*self.level.state.get(key, []), value], "Appended to")

    def merge(self, key: str, partial: dict[str, Any]) -> None:
        old = self.level.state.get(key)
        self.write(key, {**(old if isinstance(old, dict) else {}), **partial}, "Merged into")

    def delete(self, key: str) -> None:
        level = self.level
        del level.state[key]
        level.inherited.discard(key)
        if level.written is not None:
            level.written.pop(key, None)
        self.row("step", 1, f"Deleted {key}")

    def do(self, spec: Work) -> None:
        for kind, key, value in spec.ops:
            if kind == "write":
                self.write(key, value)
            elif kind == "read":
                self.read(key)
            elif kind == "append":
                self.append(key, value)
            elif kind == "merge":
                self.merge(key, value)
            elif kind == "emit":
                shown = "true" if value is True else "—" if value is None else value
                self.row("emit", 1, f"Emitted {key}: {shown}")
            elif key in self.level.state:
                self.delete(key)

    def take_back(self, since: int | None = None) -> None:
        """Forget what the stage wrote so far; with a place, all its rows since there."""
        level, rows = self.level, self.level.track.rows
        level.state.clear()
        level.state.update(self.before)
        level.inherited = set(self.inherited)
        if level.written is not None:
            level.written.clear()
            level.written.update(self.written or {})
        if since is not None:
            del rows[since:]
            return
        kept = [row for row in rows[self.began :] if not row[-1].startswith(_CHANGES)]
        rows[self.began :] = kept

    def close(self) -> None:
        state, before = self.level.state, self.before
        self.commit.values = {
            key: value for key, value in state.items() if not same(before.get(key, _MISSING), value)
        }
        self.commit.deleted = frozenset(key for key in before if key not in state)

    def fail(self, text: str) -> None:
        """Write down that the stage failed."""
        self.row("error", 0, text)
        self.close()


def same(a: Any, b: Any) -> bool:
    """Compare structurally; True is not 1."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


class Eager:
    """Runs a drawn chart and writes everything down.

    Parameters
    ----------
    questions : {"pause", "told", "resume"}
        Whether the first question pauses the run, all are answered at once, or the run goes on
        after each.
    """

    def __init__(self, spec: ChartSpec, questions: str = "pause") -> None:
        self.questions = questions
        self.commits: list[Commit] = []
        self.calls: Counter[str] = Counter()
        #: Where each branch goes on counting when it is visited again.
        self.visits: Counter[str] = Counter()
        #: The state each chart ended with, in the order in which they ended.
        self.ends: list[tuple[str, dict[str, Any]]] = []
        #: The branches of each fan-out, fork and selector, in the order in which they began.
        self.fans: list[tuple[str, list[Slot]]] = []
        self.pauses = 0
        self.result: Any = None
        self.root = Level(Track("", "r"), "", "c", {})
        try:
            self.result = self.chart(spec, self.root)[1]
            self.status = "ok"
        except Failed:
            self.status = "failed"
        except Asked:
            self.status = "paused"
        except Ended as error:
            self.status = ENDINGS[error.kind][1]

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """The rows of the run."""
        return self.root.track.rows

    @property
    def state(self) -> dict[str, Any]:
        """The final state."""
        return self.root.state

    def step(self, level: Level, name: str, stage_id: str) -> Step:
        step = Step(level, name, stage_id)
        self.commits.append(step.commit)
        return step

    # -- a chart ---------------------------------------------------------------------------

    def chart(self, spec: ChartSpec, level: Level) -> tuple[bool, Any, str | None]:
        """Run a chart; give whether it was stopped, its value, and the reason it was stopped."""
        steps = ["start", *(["gate"] if spec.passes else [])]
        steps += [id_of(stage, place) for place, stage in enumerate(spec.stages)]
        loops: Counter[str] = Counter()
        at = 0
        while True:
            stage_id, target = steps[at], None
            reason: str | None = None
            value: Any = None
            if stage_id == "start":
                last = self.start(level)
            elif stage_id == "gate":
                last, reason = self.gate(level, spec)
            else:
                place = at - len(steps) + len(spec.stages)
                last, value, reason, target = self.stage(spec, place, level)
            if reason is not None:
                self.ends.append((level.where, dict(level.state)))
                return True, value, reason
            at += 1
            if target is None and at == len(steps):
                if not spec.passes:
                    self.ends.append((level.where, dict(level.state)))
                    return False, value, None
                target = "gate"
            if target is not None:
                loops[target] += 1
                last.row("loop", 0, f"Went back to {target}, pass {loops[target] + 1}")
                at = steps.index(target)

    def start(self, level: Level) -> Step:
        step = self.step(level, level.name, "start")
        self.calls[template(level, "start")] += 1
        if "item" not in level.state:
            step.write("item", level.track.item)
        step.close()
        return step

    def gate(self, level: Level, spec: ChartSpec) -> tuple[Step, str | None]:
        step = self.step(level, "GATE", "gate")
        self.calls[template(level, "gate")] += 1
        passes = (step.read("passes") or 0) + 1
        step.write("passes", passes)
        reason = "round enough" if passes > spec.passes else None
        if reason:
            step.row("break", 0, f"Stopped here: {reason}")
        step.close()
        return step, reason

    def stage(
        self, spec: ChartSpec, place: int, level: Level
    ) -> tuple[Step, Any, str | None, str | None]:
        """Run one stage; give its last step, its value, why it stopped, where it goes back to."""
        stage = spec.stages[place]
        stage_id = id_of(stage, place)
        if isinstance(stage, Decider):
            return self.decider(spec, place, level)
        if isinstance(stage, Fork):
            return (*self.fork(spec, place, level), None)
        if isinstance(stage, Fan):
            return (*self.fan(stage, stage_id, level), None)
        return (*self.part(stage, stage_id.upper(), stage_id, level), None)

    def part(
        self, spec: Work | Mount, name: str, stage_id: str, level: Level
    ) -> tuple[Step, Any, str | None]:
        if isinstance(spec, Mount):
            return self.mount(spec, name, stage_id, level)
        stream = name if name == stage_id.upper() else f"stream of {name}"
        return self.work(spec, name, stage_id, level, stream=stream)

    # -- functions -------------------------------------------------------------------------

    def work(
        self,
        spec: Work,
        name: str,
        stage_id: str,
        level: Level,
        *,
        stream: str = "",
        more: Callable[[Step], Any] = lambda step: None,
    ) -> tuple[Step, Any, str | None]:
        """Run a function, as often as its questions need; ``more`` is what follows inside it."""
        call = _Call(self, spec, stream, more)
        while True:
            step = self.step(level, name, stage_id)
            try:
                return step, *call.run(step)
            except Asked:
                step.close()
                self.pauses += 1
                if self.questions == "pause":
                    raise
                answer = call.answers[-1]
                where = level.where[:-1] or None
                runtime_id = f"{level.where}{stage_id}#{level.track.number}"
                text = f"Went on with the answer {answer}"
                row = ("resume", 0, name, stage_id, runtime_id, where, text)
                level.track.rows.append(row)

    def decider(
        self, spec: ChartSpec, place: int, level: Level
    ) -> tuple[Step, Any, str | None, str | None]:
        stage: Any = spec.stages[place]
        stage_id = id_of(stage, place)
        decision: Any = None

        def judge(step: Step) -> str:
            nonlocal decision
            if stage.by != "word":
                step.read("n")
                decision = rb.decide(level.state, SIZES)
                return str(decision.branch)
            if stage.rounds:
                rounds = step.read(f"rounds{place}") or 0
                if rounds < stage.rounds:
                    step.write(f"rounds{place}", rounds + 1)
                    return "again"
            n = level.state.get("n")
            return "big" if isinstance(n, int) and n > 1 else "small"

        if stage.by == "rules":
            step = self.step(level, stage_id.upper(), stage_id)
            word, reason = judge(step), None
        else:
            found = self.work(stage.judge, stage_id.upper(), stage_id, level, more=judge)
            step, word, reason = found
        if reason is not None:
            return step, None, reason, None
        text = f"Chose {word} without evidence"
        step.row("condition", 1, condition_words(decision) if decision else text)
        level.track.decided = word
        step.close()
        branch = stage.branches[words_of(stage).index(word)]
        last, value, reason = self.part(branch, word, branch_ids(spec)[place, word], level)
        targets = {"self": stage_id, "start": "start"}
        return last, value, reason, targets[stage.target] if word == "again" else None

    # -- side by side ----------------------------------------------------------------------

    def fork(self, spec: ChartSpec, place: int, level: Level) -> tuple[Step, Any, str | None]:
        stage: Any = spec.stages[place]
        stage_id, ids = id_of(stage, place), branch_ids(spec)
        step, chosen, reason = self.chosen(stage, stage_id, level)
        if reason is not None:
            return step, None, reason
        at = len(level.track.rows)
        slots = [Slot(word, "not_reached") for word in chosen]
        self.fans.append((f"{level.where}{stage_id}", slots))

        views: dict[int, dict[str, Any]] = {}
        gone: dict[int, list[str]] = {}

        def child(index: int, track: Track) -> Any:
            word = chosen[index]
            view = replace(
                level, track=track, state=dict(level.state), written={}, inherited=set(level.state)
            )
            part = stage.children[LETTERS.index(word)]
            _, value, _ = self.part(part, word, ids[place, word], view)
            views[index] = view.written or {}
            gone[index] = [key for key in level.state if key not in view.state]
            return views[index] if value is None else value

        def track_of(index: int) -> Track:
            key = f"{level.where}{stage_id}:{chosen[index]}"
            return Track(level.track.prefix, level.track.item, self.visits[key])

        tracks, ending = self.branches(slots, child, track_of, fail_fast=stage.fail_fast)
        began = len(tracks)
        words = f"Forked into {', '.join(chosen) or 'nothing'}"
        words += "" if began == len(chosen) else f"; {began} of {len(chosen)} began"
        if chosen:
            step.row("fork", 0, words, at)
        for index, track in enumerate(tracks):
            self.visits[f"{level.where}{stage_id}:{chosen[index]}"] = track.number
            level.track.rows += track.rows
        settle(step, ending)
        self.merge(stage, step, slots, views, gone)
        step.close()
        return step, slots, None

    def chosen(
        self, stage: Fork, stage_id: str, level: Level
    ) -> tuple[Step, list[str], str | None]:
        name = stage_id.upper()

        def reads(step: Step) -> None:
            for rule in CHECKS:  # each is tried, and each reads
                step.read(*rule.when)

        if stage.by is None:
            return self.step(level, name, stage_id), list(LETTERS), None
        if stage.by == "rules":
            step, reason = self.step(level, name, stage_id), None
            reads(step)
        else:

            def judge(step: Step) -> None:
                if stage.by == "selection":
                    reads(step)

            step, _, reason = self.work(stage.judge, name, stage_id, level, more=judge)
        if reason is not None:
            return step, [], reason
        if stage.by in ("rules", "selection"):
            selection = rb.select(level.state, CHECKS)
            words: list[str] = list(selection.branches)
            text = condition_words(selection)
        else:
            words = list(dict.fromkeys(stage.named))
            if stage.by == "set":
                words.sort()
            text = f"Selected {', '.join(words) or 'nothing'} without evidence"
        step.row("selector", 0, text)
        return step, [word for word in LETTERS if word in words], None

    def branches(
        self,
        slots: list[Slot],
        run: Callable[[int, Track], Any],
        track_of: Callable[[int], Track],
        *,
        fail_fast: bool,
        cap: int = 99,
    ) -> tuple[list[Track], Exception | None]:
        """Run branches one after another; give their tracks, and what ends the stage."""
        tracks: list[Track] = []
        ending: Exception | None = None
        asked: Exception | None = None
        for index, slot in enumerate(slots[:cap]):
            track = track_of(index)
            tracks.append(track)
            try:
                slot.value = run(index, track)
                slot.status, slot.branch = "ok", track.decided
            except Failed as error:
                slot.status = "failed"
                if fail_fast:
                    ending = error
                    break
            except Asked as error:
                asked = error
            except Ended as error:
                ending = error
                break
        return tracks, ending or asked

    def merge(
        self,
        stage: Fork,
        step: Step,
        slots: list[Slot],
        views: dict[int, dict[str, Any]],
        gone: dict[int, list[str]],
    ) -> None:
        if stage.into:
            step.write(f"out_{step.id}", slots)
        if stage.merge == "function":
            step.write("merged", [slot.item for slot in slots if slot.status == "ok"])
        if stage.merge != "keys":
            return
        written: dict[str, Any] = {}
        for index, slot in enumerate(slots):
            if slot.status != "ok":
                continue
            for key, value in [*views[index].items(), *((key, GONE) for key in gone[index])]:
                if value is GONE and written.get(key) is GONE:
                    continue
                if key in written:
                    step.fail("Failed: ChartError")
                    raise Failed("Failed: ChartError")
                written[key] = value
        for key, value in written.items():
            if value is GONE:
                step.delete(key)
            else:
                step.write(key, value)

    def fan(self, spec: Fan, stage_id: str, level: Level) -> tuple[Step, Any, str | None]:
        name = stage_id.upper()
        step, _, reason = self.work(spec.judge, name, stage_id, level)
        if reason is not None:
            return step, None, reason
        at = len(level.track.rows)
        item = level.state["item"]
        names = [f"{item}.{number}" for number in range(spec.items)]
        items: list[Any] = [row_of(one, place) for place, one in enumerate(names)]
        slots = [Slot(one, "not_reached") for one in (items if spec.rows else names)]
        self.fans.append((f"{level.where}{stage_id}", slots))

        def branch(index: int, track: Track) -> Any:
            if spec.factory and spec.factory_fault and index == 0:
                ended = ENDINGS.get(spec.factory_fault)
                text = ended[0] if ended else "Failed: RuntimeError"
                track.rows.append(("error", 0, name, stage_id, None, track.prefix[:-1], text))
                raise Ended(spec.factory_fault) if ended else Failed(text)
            inner = Level(track, "", f"{level.name}.{stage_id}", {})
            if spec.rows:
                return self.judged(items[index], inner)
            value = self.chart(spec.branch, inner)[1]
            return inner.state if value is None else value

        def track_of(index: int) -> Track:
            prefix = f"{level.where}{stage_id}~{index}/"
            return Track(prefix, f"{item}.{index}", self.visits[prefix])

        tracks, ending = self.branches(
            slots, branch, track_of, fail_fast=spec.fail_fast, cap=spec.cap
        )
        text = f"Fanned out: {len(tracks)} of {spec.items} items began a branch"
        left = spec.items - min(spec.items, spec.cap)
        text += f"; {left} past the cap of {spec.cap} did not" if left else ""
        if spec.items:
            step.row("fork", 0, text, at)
        number = step.runtime_id.rpartition("#")[2]
        for index, track in enumerate(tracks):
            self.visits[track.prefix] = track.number
            mount = (f"{name} [{index}]", f"{stage_id}~{index}")
            place = f"{level.where}{mount[1]}#{number}"
            status = slots[index].status.replace("_", " ")

            def framed(kind: str, depth: int, text: str, mount: Any = mount, p: str = place) -> Any:
                return (kind, depth, *mount, p, level.where[:-1] or None, text)

            level.track.rows += [
                framed("subflow", 0, f"Entered {mount[0]}"),
                framed("step", 1, "Received item"),
                framed("step", 1, "Received index"),
                *track.rows,
                framed("subflow", 0, f"Left {mount[0]}: {status}"),
            ]
        settle(step, ending)
        step.write(f"out_{stage_id}", slots)
        step.close()
        return step, slots, None

    def judged(self, row: dict[str, Any], level: Level) -> dict[str, Any]:
        step = self.step(level, "Take one row", "take")
        for key, value in row.items():
            step.write(key, value)
        step.close()
        step = self.step(level, "Verdict", "verdict")
        step.read("n")
        decision = rb.decide(level.state, SIZES)
        step.row("condition", 1, condition_words(decision))
        step.close()
        word = level.track.decided = str(decision.branch)
        step = self.step(level, word, word)
        step.write("verdict", word)
        step.close()
        self.ends.append((level.where, dict(level.state)))
        return level.state

    # -- mounted charts --------------------------------------------------------------------

    def mount(
        self, spec: Mount, name: str, stage_id: str, level: Level
    ) -> tuple[Step, Any, str | None]:
        step = self.step(level, name, stage_id)
        item, n = step.read("item"), step.read("n")
        if spec.inputs == "mapping" and "n" not in level.state:
            step.fail("Failed: MissingKey")
            raise Failed("Failed: MissingKey")
        step.row("subflow", 0, f"Entered {name}")
        step.row("step", 1, "Received item")
        step.row("step", 1, "Received n")
        path, chart_name = f"{level.path}{stage_id}/", f"{level.name}.{stage_id}"
        inner = Level(level.track, path, chart_name, {"item": item, "n": n})
        try:
            stopped, value, reason = self.chart(spec.chart, inner)
        except (Failed, Ended) as error:
            word = "failed" if isinstance(error, Failed) else ENDINGS[error.kind][1]
            step.row("subflow", 0, f"Left {name}: {word}")
            step.close()
            raise
        step.row("subflow", 0, f"Left {name}: {'stopped' if stopped else 'ok'}")
        for key, new in self.outputs(spec, step, inner.state, value, stopped=stopped).items():
            step.write(key, joined(level.state.get(key), new, spec.array_merge))
        if not (stopped and spec.propagate):
            reason = None
        else:
            step.row("break", 0, f"Stopped here: {reason}")
        step.close()
        return step, value, reason

    def outputs(
        self, spec: Mount, step: Step, state: dict[str, Any], value: Any, *, stopped: bool
    ) -> dict[str, Any]:
        got = f"got_{step.id}"
        if spec.outputs is None:
            return {}
        if spec.outputs == "function":
            step.read("n")
            given = state if value is None else value
            found = sorted(given) if isinstance(given, dict) else given
            return {got: found, "list": ["out"], "map": {"via": step.id}}
        named = {got: "n", f"also_{step.id}": "item"}
        if not stopped and any(name not in state for name in named.values()):
            step.fail("Failed: MissingKey")
            raise Failed("Failed: MissingKey")
        return {key: state[name] for key, name in named.items() if name in state}


def settle(step: Step, ending: Exception | None) -> None:
    """End the stage around branches as they make it end."""
    if ending is None:
        return
    if not isinstance(ending, Asked):
        step.row("error", 0, str(ending))
    step.close()
    raise ending


def template(level: Level, stage_id: str) -> str:
    """Give the key of a stage in the structure."""
    parts = [part.partition("~")[0] for part in level.where.split("/")]
    return "/".join([*parts[:-1], stage_id])


def joined(old: Any, new: Any, array_merge: str) -> Any:
    """Join what comes out of a chart with what is there."""
    if isinstance(old, list) and isinstance(new, list):
        return new if array_merge == "replace" else [*old, *new]
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{key: joined_inside(old.get(key), new[key]) for key in new}}
    return new


def joined_inside(old: Any, new: Any) -> Any:
    """Join one level deeper."""
    if isinstance(old, list) and isinstance(new, list):
        return [*old, *new]
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **new}
    return new


class _Call:
    """One function of a chart as it is called, again after every question it asks."""

    def __init__(self, eager: Eager, spec: Work, stream: str, more: Callable[[Step], Any]) -> None:
        self.spec = spec
        self.stream = stream if spec.form == "stream" else ""
        self.more = more
        self.answers: list[int] = []
        self.told = eager.questions == "told"
        self.calls = eager.calls
        #: Whether the first half of a pausable stage is over.
        self.second = False

    def run(self, step: Step) -> tuple[Any, str | None]:
        """Run it in one execution; give its value and why it stopped the chart."""
        spec, pausable = self.spec, self.spec.form == "pausable"
        key = template(step.level, step.id)
        item = step.level.state["item"]
        self.calls[key] += 1
        if not self.second:
            self.attempts(step)
        if pausable and not self.second and spec.asks:
            self.answers.append(answer_to(f"{key} {item} 0?"))
            if not self.told:
                self.second = True
                step.row("pause", 0, f"Paused: {key} {item} 0?")
                raise Asked
        for number in range(spec.asks):
            question = f"{key} {item} {number}?"
            if number == len(self.answers):
                self.answers.append(answer_to(question))
                if not self.told:
                    self.streamed(step, ", cut short")
                    step.take_back()
                    step.row("pause", 0, f"Paused: {question}")
                    raise Asked
            step.append("said", self.answers[number])
        fault = spec.fault if is_met(spec, item) else None
        if fault is not None and fault != "stop":
            self.fail(step, fault)
        value = self.more(step)
        self.streamed(step)
        if fault == "stop":
            step.row("break", 0, "Stopped here: enough")
        step.close()
        shown = None if pausable and not spec.asks else spec.result
        return (shown if value is None else value), ("enough" if fault == "stop" else None)

    def attempts(self, step: Step) -> None:
        spec, rows = self.spec, step.level.track.rows
        for attempt in range(1, spec.tries + 1):
            since = len(rows)
            step.do(spec)
            if attempt > spec.fails:
                return
            if attempt == spec.tries:
                break
            step.take_back(since)
            words = f"Attempt {attempt} of {spec.tries} failed, ValueError: again; tried again"
            step.row("retry", 1, words)
        self.fail(step, "ValueError")

    def fail(self, step: Step, fault: str) -> None:
        self.streamed(step, ", cut short")
        ended = ENDINGS.get(fault)
        text = ended[0] if ended else f"Failed: {'RuntimeError' if fault == 'error' else fault}"
        step.fail(text)
        raise Ended(fault) if ended else Failed(text)

    def streamed(self, step: Step, cut: str = "") -> None:
        if self.stream:
            step.row("step", 1, f"Streamed 2 tokens to {self.stream}{cut}")
