"""The laws of the record, over random charts, held against a plain interpreter that writes eagerly.

A chart is drawn as data. `Interpreter` walks that data and writes every row, commit and value down
at once, the obvious way; `build` makes the same chart for the engine, whose views must say the
same.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb._stop import Stop
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.model import Limits
from runbook_nb.chart.scope import interrupt
from runbook_nb.errors import LimitReached, RunCancelled, RunSignal
from runbook_nb.record.narrative import condition_words
from runbook_nb.record.projection import project_walk
from runbook_nb.record.shapes import apply_change
from runbook_nb.settings import settings as options

RULES = rb.RuleSet(
    "size", "v1", [rb.Rule({"n": {"gt": 1}}, "big", label="more than one")], default="small"
)


def held(examples: int) -> settings:
    """How often a law is tried; a busy machine is no fault of it."""
    return settings(
        max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )


class Absent(RunSignal):
    run_status = "absent"


# -- charts as data ----------------------------------------------------------------------------


@dataclass
class StageSpec:
    ops: list[tuple[str, str, Any]]
    result: Any = None
    fault: str | None = None
    #: The item the fault is met with; None for every one.
    at: int | None = None


@dataclass
class DeciderSpec:
    n: int | None
    taken: StageSpec = field(default_factory=lambda: StageSpec([]))


@dataclass
class FanSpec:
    items: int
    cap: int
    branch: ChartSpec
    fail_fast: bool = False
    items_fault: str | None = None
    factory: bool = False
    factory_fault: str | None = None
    factory_at: int = 0


@dataclass
class ChartSpec:
    stages: list[StageSpec | DeciderSpec | FanSpec]


KEYS = st.sampled_from(["n", "a", "b"])
VALUES = st.sampled_from([0, 1, 2, "x", None, True])
OPS = st.one_of(
    st.tuples(st.just("write"), KEYS, VALUES),
    st.tuples(st.just("read"), KEYS, st.none()),
    st.tuples(st.just("append"), st.just("list"), VALUES),
    st.tuples(st.just("merge"), st.just("map"), st.dictionaries(st.sampled_from("xy"), VALUES)),
    st.tuples(st.just("delete"), KEYS, st.none()),
    st.tuples(st.just("emit"), st.just("event"), VALUES),
)
ORDINARY = ("error", "stop")
ENDING = ("interrupt", "signal", "cancel", "keyboard", "set_stop", "tick")


def stage_specs(faults: tuple[str, ...]) -> st.SearchStrategy[StageSpec]:
    none = st.none()
    return st.builds(
        StageSpec,
        st.lists(OPS, max_size=3),
        st.sampled_from([None, None, 7, "done"]),
        st.one_of(none, none, none, st.sampled_from(faults)) if faults else none,
        st.one_of(none, st.integers(0, 3)),
    )


def chart_specs(faults: tuple[str, ...] = (), depth: int = 2) -> st.SearchStrategy[ChartSpec]:
    stage = stage_specs(faults)
    kinds = [stage, stage, st.builds(DeciderSpec, st.sampled_from([None, 0, 2, "x"]), stage)]
    if depth:
        kinds.append(fan_specs(faults, depth))
    return st.builds(ChartSpec, st.lists(st.one_of(kinds), min_size=1, max_size=3))


def fan_specs(faults: tuple[str, ...], depth: int) -> st.SearchStrategy[FanSpec]:
    some = st.sampled_from([None, None, None, *faults]) if faults else st.none()
    return st.builds(
        FanSpec,
        st.integers(0, 4),
        st.integers(1, 5),
        st.deferred(lambda: chart_specs(faults, depth - 1)),
        st.booleans() if faults else st.just(False),
        some.map(lambda kind: kind if kind in ("error", "signal", "interrupt") else None),
        st.booleans(),
        some.map(lambda kind: kind if kind in ("error", "signal", "keyboard") else None),
        st.integers(0, 3),
    )


def with_fan_out(faults: tuple[str, ...] = (), depth: int = 2) -> st.SearchStrategy[ChartSpec]:
    def insert(spec: ChartSpec, fan: FanSpec, at: int) -> ChartSpec:
        return ChartSpec([*spec.stages[:at], fan, *spec.stages[at:]])

    return st.builds(
        insert, chart_specs(faults, depth), fan_specs(faults, depth), st.integers(0, 3)
    )


# -- the engine's chart ------------------------------------------------------------------------


class World:
    """What the stages of one run share: a stop, a clock, how often each lets others go first."""

    def __init__(self, turns: list[int] | None = None) -> None:
        self.stop = Stop()
        self.now = 0.0
        self.turns = turns
        self.calls = 0

    def pauses(self) -> int:
        self.calls += 1
        return self.turns[self.calls % len(self.turns)] if self.turns else 0


def do_ops(scope: Any, ops: list[tuple[str, str, Any]]) -> None:
    for kind, key, value in ops:
        if kind == "write":
            scope[key] = value
        elif kind == "read":
            scope.get(key)
        elif kind == "append":
            scope.append(key, value)
        elif kind == "merge":
            scope.merge(key, value)
        elif kind == "emit":
            scope.emit(key, value)
        elif key in scope._data:  # a look that leaves no trace: deleting what is not there fails
            scope.delete(key)


def do_fault(scope: Any, kind: str | None, world: World) -> None:
    if kind == "error":
        raise ValueError("boom")
    if kind == "stop":
        scope.stop("enough")
    elif kind == "interrupt":
        interrupt(scope, "go on?")
    elif kind == "signal":
        raise Absent("nothing there")
    elif kind == "cancel":
        raise asyncio.CancelledError
    elif kind == "keyboard":
        raise KeyboardInterrupt
    elif kind == "set_stop":
        world.stop.set("pressed")
    elif kind == "tick":
        world.now += 100.0


def met(spec: StageSpec, args: Any) -> str | None:
    return spec.fault if spec.at is None or args.get("index", spec.at) == spec.at else None


def stage_fn(spec: StageSpec, world: World) -> Any:
    def work(scope: Any) -> Any:
        do_ops(scope, spec.ops)
        do_fault(scope, met(spec, scope.args), world)
        return spec.result

    async def work_async(scope: Any) -> Any:
        for _ in range(world.pauses()):
            await asyncio.sleep(0)
        return work(scope)

    return work if world.turns is None else work_async


def build(spec: ChartSpec, world: World, name: str = "c") -> Any:
    builder = flow_chart(name, lambda scope: None, id="start")
    for place, stage in enumerate(spec.stages):
        if isinstance(stage, StageSpec):
            builder.add_function(f"S{place}", stage_fn(stage, world), id=f"s{place}")
        elif isinstance(stage, DeciderSpec):
            write = StageSpec([("write", "n", stage.n)] if stage.n is not None else [])
            builder.add_function(f"N{place}", stage_fn(write, world), id=f"n{place}")
            fn = stage_fn(stage.taken, world)
            decider = builder.add_decider(f"D{place}", id=f"d{place}", rules=RULES)
            for word in ("big", "small", "declined"):
                decider.branch(word, fn)
            decider.end()
        else:
            add_fan(builder, stage, place, world, name)
    return builder.build()


def add_fan(builder: Any, fan: FanSpec, place: int, world: World, name: str) -> None:
    inner = build(fan.branch, world, f"{name}{place}")

    def items(scope: Any) -> list[int]:
        do_fault(scope, fan.items_fault, world)
        return list(range(fan.items))

    def factory(item: int, index: int) -> Any:
        if index == fan.factory_at:
            do_fault(None, fan.factory_fault, world)
        return inner

    builder.add_parallel_for_each(
        f"F{place}",
        id=f"f{place}",
        items=items,
        branch=factory if fan.factory else inner,
        max_branches=fan.cap,
        into=f"out{place}",
        fail_fast=fan.fail_fast,
        max_concurrency=2,
    )


def run_spec(spec: ChartSpec, turns: list[int] | None = None, **more: Any) -> Any:
    """Run a chart; give the run whichever way it ended."""
    world = World(turns)
    chart = build(spec, world)
    with options(timer=lambda: world.now):
        try:
            return asyncio.run(chart.run(signal=world.stop, limits=Limits(seconds=10), **more))
        except BaseException as error:
            return error.run  # type: ignore[attr-defined]


# -- the plain interpreter ---------------------------------------------------------------------


class Failed(Exception):
    pass


class Ended(Exception):
    def __init__(self, kind: str) -> None:
        self.kind = kind


class Stopped(Exception):
    pass


END_ROWS = {
    "interrupt": ("pause", "Paused: go on?"),
    "signal": ("error", "Failed: Absent: nothing there"),
    "cancel": ("error", "Failed: CancelledError: the run was ended from outside"),
    "keyboard": ("error", "Failed: KeyboardInterrupt: the run was ended from outside"),
}


class Interpreter:
    """Runs a chart spec and writes everything down at once."""

    def __init__(self, prefix: str = "", index: int | None = None) -> None:
        self.prefix = prefix
        self.index = index
        self.rows: list[tuple[Any, ...]] = []
        self.state: dict[str, Any] = {}
        self.commits: list[dict[str, Any]] = []
        self.result: Any = None
        self.counts: list[dict[str, Any]] = []
        self.decided: str | None = None
        self.stage = ("", "")
        self.before: dict[str, Any] = {}

    def row(self, kind: str, depth: int, text: str, stage: tuple[str, str] | None = None) -> None:
        name, stage_id = stage or self.stage
        shown = None if kind == "fork" else name
        runtime = f"{self.prefix}{stage_id}#{len(self.commits)}"
        self.rows.append((kind, depth, shown, stage_id, runtime, self.prefix[:-1] or None, text))

    def begin(self, name: str, stage_id: str) -> None:
        self.stage = (name, stage_id)
        self.before = dict(self.state)
        self.row("stage", 0, f"Ran {name}")
        self.began = len(self.rows)

    def commit(self) -> None:
        missing = object()
        changed = {
            key: value
            for key, value in self.state.items()
            if type(self.before.get(key, missing)) is not type(value) or self.before[key] != value
        }
        gone = [key for key in self.before if key not in self.state]
        self.commits.append({"id": self.stage[1], "values": changed, "deleted": set(gone)})

    def chart(self, spec: ChartSpec, name: str = "c") -> None:
        self.begin(name, "start")
        self.commit()
        try:
            for place, stage in enumerate(spec.stages):
                if isinstance(stage, StageSpec):
                    self.run_stage(stage, f"S{place}", f"s{place}")
                elif isinstance(stage, DeciderSpec):
                    self.run_decider(stage, place)
                else:
                    self.fan(stage, place, name)
        except Stopped:
            pass

    def run_stage(self, spec: StageSpec, name: str, stage_id: str) -> None:
        self.begin(name, stage_id)
        self.ops(spec)
        args = {} if self.index is None else {"index": self.index}
        self.fault(met(spec, args))
        self.result = spec.result
        self.commit()
        if met(spec, args) == "stop":
            raise Stopped

    def ops(self, spec: StageSpec) -> None:
        for kind, key, value in spec.ops:
            if kind == "write":
                self.state[key] = value
                self.row("step", 1, f"Wrote {key}")
            elif kind == "read":
                self.row("step", 1, f"Read {key}")
            elif kind == "append":
                self.state[key] = [*self.state.get(key, []), value]
                self.row("step", 1, f"Appended to {key}")
            elif kind == "merge":
                old = self.state.get(key)
                self.state[key] = {**(old if isinstance(old, dict) else {}), **value}
                self.row("step", 1, f"Merged into {key}")
            elif kind == "emit":
                shown = "true" if value is True else "—" if value is None else value
                self.row("emit", 1, f"Emitted {key}: {shown}")
            elif key in self.state:
                del self.state[key]
                self.row("step", 1, f"Deleted {key}")

    def fault(self, kind: str | None) -> None:
        if kind == "error":
            self.row("error", 0, "Failed: ValueError: boom")
            self.commit()
            raise Failed("boom")
        if kind == "stop":
            self.row("break", 0, "Stopped here: enough")
        elif kind in END_ROWS:
            self.end(kind)

    def take_back(self) -> None:
        """What a stage wrote before it asked is not kept: it will run again."""
        changes = ("Wrote ", "Appended ", "Merged ", "Deleted ")
        kept = [row for row in self.rows[self.began :] if not row[-1].startswith(changes)]
        self.rows[self.began :] = kept
        self.state = dict(self.before)

    def end(self, kind: str) -> None:
        row_type, text = END_ROWS[kind]
        if kind == "interrupt":
            self.take_back()
        self.row(row_type, 0, text)
        self.commit()
        raise Ended(kind)

    def run_decider(self, spec: DeciderSpec, place: int) -> None:
        ops = [("write", "n", spec.n)] if spec.n is not None else []
        self.run_stage(StageSpec(ops), f"N{place}", f"n{place}")
        self.begin(f"D{place}", f"d{place}")
        decision = rb.decide(self.state, RULES)
        self.row("step", 1, "Read n")
        self.row("condition", 1, condition_words(decision))
        self.decided = decision.branch
        self.commit()
        taken = decision.branch or ""
        branch_id = taken if place == self.first_decider else f"d{place}.{taken}"
        self.run_stage(spec.taken, taken, branch_id)

    first_decider = 0

    def fan(self, spec: FanSpec, place: int, name: str) -> None:
        stage = (f"F{place}", f"f{place}")
        self.begin(*stage)
        if spec.items_fault == "error":
            self.fault("error")
        if spec.items_fault in END_ROWS:
            self.end(spec.items_fault)
        branches: list[Interpreter | None] = [None] * spec.items
        statuses = ["not_reached"] * spec.items
        ended: Exception | None = None
        asked: Exception | None = None
        for index in range(min(spec.items, spec.cap)):
            branch = Interpreter(f"{self.prefix}f{place}~{index}/", index)
            branch.first_decider = first_decider(spec.branch)
            branches[index] = branch
            try:
                if spec.factory and spec.factory_fault and index == spec.factory_at:
                    branch.stage = stage
                    self.factory_fault(branch, spec.factory_fault)
                branch.chart(spec.branch, f"{name}{place}")
                statuses[index] = "ok"
            except Failed as error:
                statuses[index] = "failed"
                if spec.fail_fast:
                    ended = error
                    break
            except Ended as error:
                if error.kind != "interrupt":
                    ended = error
                    break
                asked = asked or error  # the others go on
        ended = ended or asked
        self.fan_rows(spec, place, branches, statuses)
        self.counts.append(counted(statuses, branches))
        if isinstance(ended, Failed):
            self.row("error", 0, "Failed: ValueError: boom", stage)
        elif isinstance(ended, Ended) and ended.kind != "interrupt":
            row_type, text = END_ROWS[ended.kind]
            self.row(row_type, 0, text, stage)
        if ended is not None:
            self.commit()
            raise ended
        self.state[f"out{place}"] = statuses
        self.row("step", 1, f"Wrote out{place}", stage)
        self.result = statuses
        self.commit()

    def factory_fault(self, branch: Interpreter, kind: str) -> None:
        row_type, text = END_ROWS.get(kind, ("error", "Failed: ValueError: boom"))
        name, stage_id = branch.stage
        branch.rows.append((row_type, 0, name, stage_id, None, branch.prefix[:-1], text))
        raise Failed("boom") if kind == "error" else Ended(kind)

    def fan_rows(
        self, spec: FanSpec, place: int, branches: list[Interpreter | None], statuses: list[str]
    ) -> None:
        if not spec.items:
            return
        began = sum(branch is not None for branch in branches)
        text = f"Fanned out: {began} of {spec.items} items began a branch"
        left = spec.items - min(spec.items, spec.cap)
        text += f"; {left} past the cap of {spec.cap} did not" if left else ""
        self.row("fork", 0, text, (f"F{place}", f"f{place}"))
        for index, branch in enumerate(branches):
            if branch is None:
                continue
            mount = (f"F{place} [{index}]", f"f{place}~{index}")
            self.row("subflow", 0, f"Entered {mount[0]}", mount)
            self.row("step", 1, "Received item", mount)
            self.row("step", 1, "Received index", mount)
            self.rows += branch.rows
            self.row("subflow", 0, f"Left {mount[0]}: {statuses[index].replace('_', ' ')}", mount)


def first_decider(spec: ChartSpec) -> int:
    places = [p for p, stage in enumerate(spec.stages) if isinstance(stage, DeciderSpec)]
    return places[0] if places else 0


def counted(statuses: list[str], branches: list[Interpreter | None]) -> dict[str, Any]:
    ok = [b for b, status in zip(branches, statuses, strict=True) if status == "ok"]
    decided = [b.decided for b in ok if b is not None and b.decided is not None]
    return {
        "items": len(statuses),
        "ok": len(ok),
        "failed": statuses.count("failed"),
        "not_reached": statuses.count("not_reached"),
        "decided": len(decided),
        "undecided": len(ok) - len(decided),
        "by_branch": {word: decided.count(word) for word in dict.fromkeys(decided)},
    }


def interpret(spec: ChartSpec) -> tuple[Interpreter, str]:
    whole = Interpreter()
    whole.first_decider = first_decider(spec)
    try:
        whole.chart(spec)
        status = "ok"
    except Failed:
        status = "failed"
    except Ended as error:
        status = {"interrupt": "paused", "signal": "absent"}.get(error.kind, "cancelled")
    return whole, status


def told(rows: Any) -> list[tuple[Any, ...]]:
    return [
        (r.type, r.depth, r.stage, r.stage_id, r.runtime_stage_id, r.subflow, r.text) for r in rows
    ]


def statuses_for_slots(value: Any) -> Any:
    """Compare slots by their statuses; the interpreter keeps nothing else of them."""
    if hasattr(value, "fan_out"):
        return [slot.status for slot in value]
    return value


SURE = ("error", "stop", "interrupt", "signal", "cancel", "keyboard")


# -- lossless ----------------------------------------------------------------------------------


@given(chart_specs(SURE))
@held(120)
def test_rows_are_those_an_eager_recorder_would_have_written(spec):
    expected, status = interpret(spec)
    run = run_spec(spec)
    assert run.status == status
    assert told(run.walk) == expected.rows


@given(chart_specs(SURE))
@held(60)
def test_commits_and_state_are_those_an_eager_recorder_would_have_written(spec):
    expected, _ = interpret(spec)
    run = run_spec(spec)
    assert {k: statuses_for_slots(v) for k, v in run.state.items()} == expected.state
    assert [
        {
            "id": commit.stage_id,
            "values": {k: statuses_for_slots(v) for k, v in commit.values.items()},
            "deleted": set(commit.deleted),
        }
        for commit in run.commits
    ] == expected.commits


@given(chart_specs(SURE))
@held(50)
def test_commits_replayed_give_the_final_state(spec):
    run = run_spec(spec)
    state: dict[str, Any] = {}
    for commit in run.commits:
        state.update(commit.values)
        for key in commit.deleted:
            del state[key]
    assert state == run.state
    replayed: dict[str, Any] = {}
    for event in run.log.events(run.log.root.codes):
        if event.code.kind in ("write", "update", "append", "delete"):
            value = None if event.code.kind == "delete" else run.log.root.values[event.at]
            apply_change(replayed, event.code, value)
    assert replayed == run.state


# -- the counting law --------------------------------------------------------------------------


def fans_in(run: Any) -> list[Any]:
    """Every execution of every fan-out, nested ones too."""
    seen: dict[int, Any] = {id(fan): fan for fan in run.log.fan_outs()}
    for fan, _, _ in run.walk.branches():
        seen[id(fan)] = fan
    return list(seen.values())


def hold_the_counting_law(run: Any) -> None:
    from runbook_nb.record.counts import count_fan_out
    from runbook_nb.record.slots import Slots, decision_of

    for fan in fans_in(run):
        counts = count_fan_out(fan)
        assert counts.items == counts.ok + counts.failed + counts.not_reached
        assert counts.ok == counts.decided + counts.undecided
        assert sum(counts.by_branch.values()) == counts.decided
        assert counts.past_cap <= counts.not_reached
        slots = list(Slots(fan))
        assert [slot.index for slot in slots] == list(range(counts.items))
        words = [slot.status for slot in slots]
        assert [words.count(w) for w in ("ok", "failed", "not_reached")] == [
            counts.ok,
            counts.failed,
            counts.not_reached,
        ]
        assert all(slot.reason for slot in slots if slot.status != "ok")
        assert all(slot.reason is None for slot in slots if slot.status == "ok")
        decided = [i for i, s in enumerate(slots) if s.status == "ok" and decision_of(fan, i)]
        assert len(decided) == counts.decided


def hold_the_counters_of_the_walk(run: Any) -> None:
    rows = list(run.walk)
    assert len(run.walk) == len(rows) == run.walk.total
    executed = {row.runtime_stage_id for row in rows if row.runtime_stage_id is not None}
    assert run.steps_executed == len(executed)
    stages = [row.runtime_stage_id for row in rows if row.type == "stage"]
    assert len(stages) == len(set(stages))
    began = sum(1 for _ in run.walk.branches())
    assert sum(row.text.startswith("Entered") for row in rows) == began
    assert len(run.commits) == sum(1 for row in rows if row.type == "stage" and row.subflow is None)
    assert len(run.decisions) == sum(1 for row in rows if row.type == "condition")


@given(with_fan_out(SURE))
@held(60)
def test_the_counts_are_those_a_plain_loop_would_have_made(spec):
    expected, _ = interpret(spec)
    found = [counts.to_dict() for counts in run_spec(spec).fan_outs]
    assert [{name: f[name] for name in e} for f, e in zip(found, expected.counts, strict=True)] == (
        expected.counts
    )


@given(with_fan_out((*ORDINARY, *ENDING)), st.lists(st.integers(0, 3), min_size=1, max_size=5))
@held(120)
def test_the_counting_law_holds_for_every_way_a_run_can_stop(spec, turns):
    for each in (None, turns):
        run = run_spec(spec, each)
        hold_the_counting_law(run)
        hold_the_counters_of_the_walk(run)
        assert (run.error is None) == (run.status in ("ok", "paused"))
        assert (run.status == "ok") or run.ended_at is not None


ONE = ChartSpec([FanSpec(4, 3, ChartSpec([StageSpec([]), DeciderSpec(2)]))])


@given(st.integers(0, 12))
@held(13)
def test_the_counting_law_holds_wherever_a_task_is_cancelled_from_outside(after):
    world = World([1])
    chart = build(ONE, world)

    async def main() -> Any:
        task = asyncio.ensure_future(chart.run())
        for _ in range(after):
            await asyncio.sleep(0)
        task.cancel()
        try:
            return await task
        except asyncio.CancelledError as error:
            return getattr(error, "run", None)

    run = asyncio.run(main())
    if run is not None:
        assert run.status in ("cancelled", "ok")
        hold_the_counting_law(run)
        hold_the_counters_of_the_walk(run)
    else:
        assert after == 0  # cancelled before it began, it left nothing


@given(st.integers(0, 12))
@held(13)
def test_the_counting_law_holds_wherever_a_stop_is_set_from_outside(after):
    world = World([1])
    chart = build(ONE, world)

    async def main() -> Any:
        task = asyncio.ensure_future(chart.run(signal=world.stop))
        for _ in range(after):
            await asyncio.sleep(0)
        world.stop.set("window closed")
        try:
            return await task
        except RunCancelled as error:
            return error.run

    run = asyncio.run(main())
    assert run.status == "ok" or "window closed" in run.error["message"]
    hold_the_counting_law(run)
    hold_the_counters_of_the_walk(run)


def test_a_limit_passed_inside_a_branch_leaves_the_rest_not_reached():
    spec = ChartSpec([FanSpec(4, 4, ChartSpec([StageSpec([], None, "tick", 1), StageSpec([])]))])
    run = run_spec(spec)
    assert run.status == "limited"
    assert run.fan_outs[0].to_dict() | {"by_branch": None} == {
        "stage_id": "f0",
        "stage_name": "F0",
        "items": 4,
        "ok": 1,
        "failed": 0,
        "not_reached": 3,
        "past_cap": 0,
        "decided": 0,
        "undecided": 1,
        "has_decider": False,
        "by_branch": None,
    }
    assert [slot.reason for slot in run.slots("f0")] == [
        None,
        "a limit ended the run while it ran",
        "the run ended before it was reached",
        "the run ended before it was reached",
    ]


# -- the same bytes ----------------------------------------------------------------------------


def everything(run: Any) -> str:
    return json.dumps(
        [run.recording().to_dict(), [d.decision.to_dict() for d in run.decisions], str(run)],
        sort_keys=True,
        default=str,
    )


@given(chart_specs(ORDINARY), st.lists(st.integers(0, 4), min_size=1, max_size=6))
@held(60)
def test_async_stages_in_any_order_give_the_bytes_of_sync_ones(spec, turns):
    assume(not has_fail_fast(spec))
    assert everything(run_spec(spec, turns)) == everything(run_spec(spec))


def has_fail_fast(spec: ChartSpec) -> bool:
    fans = [stage for stage in spec.stages if isinstance(stage, FanSpec)]
    return any(fan.fail_fast or has_fail_fast(fan.branch) for fan in fans)


@given(chart_specs(SURE))
@held(60)
def test_a_second_run_gives_the_same_bytes(spec):
    assert everything(run_spec(spec)) == everything(run_spec(spec))


@given(with_fan_out(("error",)), st.integers(0, 3))
@held(60)
def test_what_is_told_of_a_branch_does_not_depend_on_its_siblings(spec, more):
    place = next(p for p, stage in enumerate(spec.stages) if isinstance(stage, FanSpec))
    fan = spec.stages[place]
    assume(fan.items and not fan.fail_fast and fan.items_fault is None)
    alone, wide = FanSpec(**vars(fan)), FanSpec(**vars(fan))
    alone.items = alone.cap = 1
    wide.items = wide.cap = 1 + more
    runs = []
    for each in (alone, wide):
        run = run_spec(ChartSpec([each]))
        runs.append([row for row in run.walk if (row.subflow or "").startswith("f0~0")])
    assert [r.to_dict() | {"step": 0} for r in runs[0]] == [
        r.to_dict() | {"step": 0} for r in runs[1]
    ]


# -- pages, parts, projections -----------------------------------------------------------------


@given(chart_specs(SURE), st.integers(0, 60), st.integers(0, 20))
@held(80)
def test_a_page_is_that_slice_of_the_rows(spec, start, n):
    walk = run_spec(spec).walk
    rows = list(walk)
    assert walk.page(start, n) == rows[start : start + n]
    assert walk[start : start + n] == rows[start : start + n]
    assert walk[::-2] == rows[::-2]
    if rows:
        assert walk[start % len(rows)] == rows[start % len(rows)]
        assert walk[-1] == rows[-1]


@given(with_fan_out(SURE), st.data())
@held(50)
def test_the_walk_of_one_branch_is_its_part_of_the_whole(spec, data):
    run = run_spec(spec)
    branches = list(run.walk.branches())
    assume(branches)
    fan, index, prefix = data.draw(st.sampled_from(branches))
    path = f"{prefix}{fan.stage.id}~{index}"
    mount = path.rpartition("/")[2]
    whole = [
        row
        for row in run.walk
        if (row.subflow or "") == path
        or (row.subflow or "").startswith(f"{path}/")
        or (row.stage_id == mount and (row.subflow or "") == prefix[:-1])
    ]
    part = run.walk.inside((fan, index, prefix))
    assert [r.to_dict() | {"step": 0} for r in part] == [r.to_dict() | {"step": 0} for r in whole]
    assert len(part) == len(whole)
    assert part.steps_executed == len({r.runtime_stage_id for r in whole} - {None})
    conditions = [row.runtime_stage_id for row in whole if row.type == "condition"]
    assert [made.runtime_stage_id for made in part.decisions] == conditions
    assert part.page(2, 3) == list(part)[2:5]


@given(chart_specs(SURE))
@held(50)
def test_decisions_come_in_the_order_of_their_rows(spec):
    run = run_spec(spec)
    rows = [row for row in run.walk if row.type == "condition"]
    assert [made.runtime_stage_id for made in run.decisions] == [r.runtime_stage_id for r in rows]
    assert [condition_words(made.decision) for made in run.decisions] == [r.text for r in rows]


@given(chart_specs(SURE), st.integers(1, 40))
@held(80)
def test_a_walk_cut_to_a_cap_keeps_its_decisions_first_and_counts_truly(spec, cap):
    walk = run_spec(spec).walk
    rows = list(walk)
    cut = walk.project(cap)
    assert project_walk(rows, cap) == cut
    assert walk.project(cap, counters_only=True) == replace(cut, rows=())
    assert cut.total == len(rows)
    assert cut.shown == len(cut.rows) <= cap
    assert cut.complete == (cut.shown == cut.total)
    assert [row.step for row in cut.rows] == list(range(cut.shown))
    control = [row for row in rows if row.type != "step"]
    conditions = [row for row in rows if row.type == "condition"]
    if len(rows) <= cap:
        assert (cut.projection, list(cut.rows)) == ("full", rows)
        return
    assert cut.projection == "control-flow"
    texts = [(r.type, r.runtime_stage_id, r.text) for r in cut.rows]
    if len(control) <= cap:
        assert texts == [(r.type, r.runtime_stage_id, r.text) for r in control]
        assert not cut.conditions_first
        return
    assert cut.conditions_first
    assert cut.shown == cap
    kept = [row for row in cut.rows if row.type == "condition"]
    assert [r.text for r in kept] == [r.text for r in conditions[:cap]]
    places = [(r.type, r.runtime_stage_id, r.text) for r in control]
    at = -1
    for entry in texts:  # still in their order
        at = places.index(entry, at + 1)


# -- examples the above came from ---------------------------------------------------------------


def test_the_interpreter_itself_can_tell_a_difference():
    expected, _ = interpret(ONE)
    changed, _ = interpret(ChartSpec([FanSpec(4, 2, ONE.stages[0].branch)]))
    assert expected.rows != changed.rows
    assert expected.counts != changed.counts


@pytest.mark.parametrize("kind", ENDING)
def test_every_ending_ends_the_run_from_inside_a_nested_branch(kind):
    inner = ChartSpec([FanSpec(2, 2, ChartSpec([StageSpec([], None, kind, 1)]))])
    run = run_spec(ChartSpec([FanSpec(3, 3, inner), StageSpec([])]))
    assert run.status != "ok"
    assert "s1" not in [commit.stage_id for commit in run.commits]
    hold_the_counting_law(run)


def test_what_a_limit_and_a_stop_raise_is_their_own_error():
    world = World()
    chart = build(ChartSpec([StageSpec([], None, "tick"), StageSpec([])]), world)
    with options(timer=lambda: world.now), pytest.raises(LimitReached) as limit:
        chart.run_sync(limits=Limits(seconds=10))
    assert limit.value.code == "time_limit"
    assert limit.value.run.status == "limited"
