"""The laws of running, over random charts of every kind of stage in every other.

What an eager interpreter wrote down is what the record of the engine's run must say; every form of
the functions gives the same record; and where a run pauses makes no difference to where it gets.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from drawn_charts import (
    ENDING,
    ORDINARY,
    ChartSpec,
    Fork,
    Mount,
    Work,
    World,
    build,
    charts,
    kinds_in,
    run_chart,
    run_through,
)
from eager_charts import Eager, same
from hypothesis import given, settings
from hypothesis import strategies as st
from served_runs import ANY, SURE, everything, fans_of, held, plain

from runbook_nb._frozen import deep_merge
from runbook_nb.record.counts import count_fan_out
from runbook_nb.record.log import FanOut
from runbook_nb.record.narrative import condition_words
from runbook_nb.record.slots import Slots, slot_of


def told(rows: Any) -> list[tuple[Any, ...]]:
    """What rows say; of errors their kind alone."""

    def brief(text: str) -> str:
        parts = text.split(": ")
        return ": ".join(parts[:2]) if parts[0] == "Failed" else text

    return [
        (*(r.type, r.depth, r.stage, r.stage_id), r.runtime_stage_id, r.subflow, brief(r.text))
        for r in rows
    ]


# -- what an eager recorder would have written -------------------------------------------------


@given(ANY)
@held(120)
def test_rows_states_and_results_are_those_an_eager_recorder_would_have_written(spec):
    expected = Eager(spec)
    run = run_chart(spec)
    assert told(run.walk) == expected.rows
    assert run.status == expected.status
    assert plain(run.state) == plain(expected.state)
    assert plain(run.result) == plain(expected.result)


@given(ANY)
@held(50)
def test_the_branches_of_every_fan_out_fork_and_selector_are_told_as_they_ended(spec):
    expected = Counter(repr(plain(slots)) for _, slots in Eager(spec).fans)
    run = run_chart(spec)
    assert Counter(repr(plain(Slots(fan))) for fan in fans_of(run)) == expected


# -- counting ----------------------------------------------------------------------------------


@given(ANY)
@held(60)
def test_every_executed_step_has_one_stage_row_and_an_id_of_its_own(spec):
    world = World()
    run = run_chart(spec, world)
    rows = list(run.walk)
    assert len(run.walk) == len(rows)
    stages = [row.runtime_stage_id for row in rows if row.type == "stage"]
    entered = [row.runtime_stage_id for row in rows if row.text.startswith("Entered X")]
    executed = {row.runtime_stage_id for row in rows} - {None}
    branches = {name for name in entered if "~" in name.rpartition("/")[2]}
    assert len(stages) == len(set(stages))
    assert executed == set(stages) | branches
    assert run.steps_executed == len(stages) + len(branches)
    # Counted apart: every function that runs once per execution says so itself.
    by_key = Counter(key_of(name) for name in stages)
    assert {key: by_key[key] for key in world.calls} == dict(world.calls)
    assert set(by_key) <= {node.key for node in run.structure.nodes}


def key_of(runtime_id: str) -> str:
    """Give the structure's key of an executed stage."""
    path = runtime_id.rpartition("#")[0].split("/")
    return "/".join([*(part.partition("~")[0] for part in path[:-1]), path[-1]])


@given(ANY)
@held(60)
def test_the_counts_add_up_whatever_ended_the_run(spec):
    run = run_chart(spec)
    for fan in fans_of(run):
        counts = count_fan_out(fan)
        assert counts.items == counts.ok + counts.failed + counts.not_reached == len(fan)
        assert counts.ok == counts.decided + counts.undecided
        assert sum(counts.by_branch.values()) == counts.decided
        slots = [slot_of(fan, index) for index in range(len(fan))]
        assert [slot.status for slot in slots].count("ok") == counts.ok
        assert all((slot.reason is None) == (slot.status == "ok") for slot in slots)
    if run.status == "ok":
        # Nothing is left half done: what is not reached lies past a cap, or behind a failure
        # that was to end its stage.
        for fan in fans_of(run):
            failed = count_fan_out(fan).failed
            assert failed or fan.status_count(0) == max(len(fan) - fan.cap, 0)


@given(ANY)
@held(40)
def test_decisions_come_in_the_order_of_their_rows(spec):
    run = run_chart(spec)
    rows = [row for row in run.walk if row.type == "condition" and "without" not in row.text]
    assert [made.runtime_stage_id for made in run.decisions] == [r.runtime_stage_id for r in rows]
    assert [condition_words(made.decision) for made in run.decisions] == [r.text for r in rows]


# -- replaying ---------------------------------------------------------------------------------


def applied(state: dict[str, Any], kind: str, key: str, value: Any) -> None:
    """Apply a recorded change, the plain way."""
    if kind == "write":
        state[key] = value
    elif kind == "update":
        state[key] = deep_merge(state.get(key), value)
    elif kind == "append":
        state[key] = [*state.get(key, []), value]
    else:
        del state[key]  # whatever was deleted was there


def ends_of(run: Any) -> tuple[list[tuple[str, Any]], dict[str, Any]]:
    """Replay the log: the state of every chart that ended, by its path, and the final state."""
    ends: list[tuple[str, Any]] = []
    root: dict[str, Any] = {}

    def track(codes: Any, values: Any, offset: int, prefix: str, levels: dict[str, Any]) -> None:
        """``levels`` holds the state of each chart of the track, its own before all others."""
        for event in run.log.events(codes):
            code = event.code
            path, value = code.stage.path, values[offset + event.at : offset + event.at + 1]
            if code.kind == "enter":
                levels[f"{code.stage.key}/"] = dict(value[0])
            elif code.kind == "leave":
                state = levels[f"{code.stage.key}/"]
                if code.key in ("ok", "stopped"):
                    ends.append((f"{prefix}{code.stage.key}/", dict(state)))
            elif code.kind in ("write", "update", "append", "delete"):
                applied(levels[path], code.kind, code.key or "", value[0] if value else None)
            elif code.kind == "fan_out":
                branches(value[0], prefix, levels)

    def branches(fan: FanOut, prefix: str, levels: dict[str, Any]) -> None:
        for index, shape in fan.begun():
            inner, path = fan.path(prefix, index), fan.stage.path
            state = {"": {}} if fan.is_fan_out else {path: dict(levels[path])}
            track(shape.codes, *fan.part(index), inner, state)
            if fan.is_fan_out and fan.status_number(index) == 1:
                ends.append((inner, state[""]))

    track(run.log.root.codes, run.log.root.values, 0, "", {"": root})
    if run.status == "ok":
        ends.append(("", root))
    return ends, root


@given(ANY)
@held(60)
def test_what_was_logged_replays_to_the_final_state_of_every_chart(spec):
    run = run_chart(spec)
    ends, root = ends_of(run)
    assert plain(root) == plain(run.state)
    expected = Counter((path, repr(plain(state))) for path, state in Eager(spec).ends)
    found = Counter((path, repr(plain(state))) for path, state in ends)
    assert found == expected


@given(ANY)
@held(60)
def test_every_executed_step_has_one_commit_of_what_it_changed(spec):
    expected = Counter(
        (made.id, repr(sorted(plain(made.values).items())), made.deleted)
        for made in Eager(spec).commits
    )
    whole = run_chart(spec).commits.whole()
    entered = [made for made in whole if "~" in made.runtime_stage_id.rpartition("/")[2]]
    found = Counter(
        (
            made.runtime_stage_id,
            repr(sorted(plain(dict(made.values)).items())),
            frozenset(made.deleted),
        )
        for made in whole
        if made not in entered
    )
    assert found == expected
    assert not any(made.changes for made in entered)


@given(ANY)
@held(40)
def test_commits_replay_to_the_state_at_each_of_them(spec):
    run = run_chart(spec)
    for log in run.commits.whole().logs:
        state = dict(log.state_at(-1).state)
        for index, commit in enumerate(log):
            state.update(commit.values)
            for key in commit.deleted:
                del state[key]
            assert plain(state) == plain(dict(log.state_at(index).state))
        if not log.path:
            assert plain(state) == plain(run.state)


@given(ANY)
@held(60)
def test_what_a_stage_was_handed_never_changes_afterwards(spec):
    world = World()
    run_chart(spec, world)
    assert all(same(plain(now), plain(then)) for now, then in world.handed)


# -- the same bytes ----------------------------------------------------------------------------


@given(SURE, st.lists(st.integers(0, 4), min_size=1, max_size=6).map(tuple))
@held(60)
def test_async_functions_in_any_order_leave_the_bytes_of_plain_ones(spec, turns):
    assert everything(run_chart(spec, World("async", turns))) == everything(run_chart(spec))


@given(SURE)
@held(40)
def test_blocking_functions_in_threads_leave_the_bytes_of_plain_ones(spec):
    assert everything(run_chart(spec, World("thread"))) == everything(run_chart(spec))


@given(ANY)
@held(60)
def test_a_second_run_leaves_the_same_bytes(spec):
    assert everything(run_chart(spec)) == everything(run_chart(spec))


@given(SURE)
@held(40)
def test_one_chart_may_run_again_and_by_many_at_once(spec):
    assume_no_attempts(spec)
    import asyncio

    chart = build(spec, World())

    async def main() -> list[Any]:
        runs = await asyncio.gather(*(chart.run() for _ in range(3)), return_exceptions=True)
        return [getattr(run, "run", run) for run in runs]

    assert len({everything(run) for run in asyncio.run(main())}) == 1


def assume_no_attempts(spec: ChartSpec) -> None:
    """Leave out stages that fail first: how often is counted once for all runs of a world."""
    from hypothesis import assume

    assume("fails=1" not in repr(spec) and "fails=2" not in repr(spec))


# -- pausing anywhere --------------------------------------------------------------------------


def hold_the_law_of_pausing(spec: ChartSpec, **options: Any) -> int:
    """Hold a run that paused against one whose questions were answered; give the pauses."""
    expected = Eager(spec, "resume")
    run, pauses = run_through(spec, **options)
    once = run_chart(spec, World(told=True))
    assert pauses == expected.pauses
    assert told(run.walk) == expected.rows
    for each in (run, once):
        assert each.status == expected.status
        assert plain(each.state) == plain(expected.state)
        assert plain(each.result) == plain(expected.result)
    assert [made.decision.to_dict() for made in run.decisions] == [
        made.decision.to_dict() for made in once.decisions
    ]
    assert slots_of(run) == slots_of(once)
    assert (run.error or {}).get("type") == (once.error or {}).get("type")
    return pauses


def slots_of(run: Any) -> Counter[str]:
    return Counter(repr((fan.stage, plain(Slots(fan)))) for fan in fans_of(run))


@given(charts(asks=2))
@held(80)
def test_pausing_anywhere_and_going_on_elsewhere_comes_to_the_same(spec):
    hold_the_law_of_pausing(spec)


@given(SURE)
@held(80)
def test_pausing_comes_to_the_same_also_where_stages_fail_and_stop(spec):
    hold_the_law_of_pausing(spec)


@given(charts(asks=1, retries=False), st.lists(st.integers(0, 3), min_size=1, max_size=4))
@held(40)
def test_pausing_comes_to_the_same_in_whatever_form_the_functions_are(spec, turns):
    hold_the_law_of_pausing(spec, worlds=lambda: World("async", tuple(turns)))
    hold_the_law_of_pausing(spec, worlds=lambda: World("thread"))


#: Stages that ask, in every place: around, inside and beside one another, and in a loop.
EVERYWHERE = ChartSpec(
    (
        Work((("write", "n", 2),), None, None, None, 1, "pausable"),
        Fork(
            (
                Work((("append", "list", 1),), 7, None, None, 2),
                Mount(
                    ChartSpec((Work((), 5, None, None, 1), Work((), 6, None, None, 1))), "mapping"
                ),
                Work((("merge", "map", {"x": 1}),), None, None, None, 1, "stream"),
            ),
            into=True,
        ),
        Mount(
            ChartSpec((Mount(ChartSpec((Work((), None, None, None, 1, "pausable"),))),), 1),
            outputs="function",
        ),
    ),
    1,
)


def test_a_run_may_go_on_in_another_process_each_time(tmp_path):
    expected = Eager(EVERYWHERE, "resume")
    run, pauses = run_chart(EVERYWHERE), 0
    assert run.status == "paused"
    checkpoint = tmp_path / "checkpoint.json"
    checkpoint.write_text(json.dumps(run.checkpoint))
    here = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here), *sys.path])}
    program = """if True:
        import json, sys
        from pathlib import Path
        from drawn_charts import World, answer_to, build
        from test_laws import EVERYWHERE, everything, told

        path = Path(sys.argv[1])
        checkpoint = json.loads(path.read_text())
        reason = checkpoint["pause"]["reason"]
        run = build(EVERYWHERE, World()).resume_sync(checkpoint, answer_to(reason))
        if run.status == "paused":
            path.write_text(json.dumps(run.checkpoint))
        print(json.dumps([run.status, told(run.walk), run.state], default=str))
    """
    while run is not None:
        pauses += 1
        done = subprocess.run(
            [sys.executable, "-c", program, str(checkpoint)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        status, rows, state = json.loads(done.stdout)
        if status != "paused":
            break
    assert (status, pauses) == ("ok", expected.pauses)
    assert [tuple(row) for row in rows] == expected.rows
    assert {key: state[key] for key in ("n", "passes", "item", "said")} == {
        key: expected.state[key] for key in ("n", "passes", "item", "said")
    }


def test_the_charts_that_are_drawn_hold_what_the_laws_are_about():
    found: Counter[str] = Counter()

    @given(ANY)
    @settings(held(60), database=None)
    def count(spec: ChartSpec) -> None:
        found.update(kinds_in(spec))

    count()
    wanted = {
        "Work",
        "Decider",
        "Fork",
        "Mount",
        "Fan",
        "ask",
        *ORDINARY,
        *ENDING,
        "fail_fast",
        "rows",
    }
    assert {name for name in wanted if not found[name]} == set()


@pytest.mark.parametrize("change", ["row", "state"])
def test_the_interpreter_itself_can_tell_a_difference(change):
    other = ChartSpec((Work((("write", "n", 3),) if change == "state" else ()),), 1)
    spec = ChartSpec((Work((("write", "n", 2),)),), 1)
    assert Eager(spec).rows != Eager(other).rows or not same(Eager(spec).state, Eager(other).state)
