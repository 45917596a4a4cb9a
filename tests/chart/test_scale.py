"""Large charts and long runs: nothing is lost, nothing recurses, and what is kept grows in step.

Counts only: of branches, rows, codes and calls. A cost that grows with the square of the size shows
as calls of Python functions, which are the same on every machine.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

import runbook_nb as rb
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.model import Limits
from runbook_nb.chart.scope import interrupt

RULES = rb.RuleSet("r", "v1", [rb.Rule({"n": {"gt": 5}}, "big")], default="small")


def chain(length):
    builder = flow_chart("chain", lambda s: s.set("n", 0), id="s0")
    for number in range(1, length):
        builder.add_function(f"S{number}", lambda s: s.set("n", s["n"] + 1), id=f"s{number}")
    return builder.build()


def loop(passes, kind="plain"):
    def count(scope):
        scope["n"] = scope["n"] + 1
        if scope["n"] > passes:
            scope.stop("enough")

    inner = flow_chart("inner", lambda s: s.set("x", s.get("n")), id="in").build()
    builder = flow_chart("loop", lambda s: s.set("n", 0), id="load")
    builder.add_function("Count", count, id="count")
    if kind == "append":
        builder.add_function("Keep", lambda s: s.append("rows", s["n"]), id="keep")
    elif kind == "mount":
        builder.add_subchart("M", inner, id="m", inputs={"n": "n"}, outputs={"x": "x"})
    elif kind == "fork":
        builder.add_fork("F", id="f", merge="keys").branch("a", lambda s: s.set("a", 1)).branch(
            "b", inner, inputs={"n": "n"}
        ).end()
    elif kind == "selector":
        builder.add_selector("S", lambda s: ["a"], id="e").branch("a", lambda s: 1).end()
    elif kind == "decider":
        decider = builder.add_decider("D", id="d", rules=RULES)
        decider.branch("big", lambda s: 1).branch("small", lambda s: 2).end()
    elif kind == "fan-out":
        builder.add_parallel_for_each(
            "E", id="each", items=lambda s: [1, 2], branch=inner, max_branches=2, into="out"
        )
    return builder.loop_to("count").build()


def fan(items, *, fails=0):
    def work(scope):
        if fails and scope.args["item"] % fails == 0:
            raise ValueError("no route")
        scope["n"] = scope.args["item"]

    each = (
        flow_chart("each", work, id="work")
        .add_decider("D", id="d", rules=RULES)
        .branch("big", lambda s: s["n"])
        .branch("small", lambda s: s["n"])
        .end()
        .build()
    )
    return (
        flow_chart("fan", lambda s: None, id="load")
        .add_parallel_for_each(
            "E",
            id="each",
            items=lambda s: list(range(items)),
            branch=each,
            max_branches=items,
            into="out",
        )
        .build()
    )


def fork(children, **more):
    owner = flow_chart("fork", lambda s: s.set("n", 1), id="load").add_fork(
        "F", id="f", merge="keys", into="out", **more
    )
    for number in range(children):
        owner.branch(f"c{number}", lambda s, k=number: s.set(f"k{k}", s["n"] + k))
    return owner.end().build()


def deep(levels):
    def make():
        return (
            flow_chart("deep", lambda s: s.set("left", s["left"] - 1), id="a")
            .add_decider("More?", lambda s: "down" if s["left"] > 0 else "up", id="m")
            .branch("down", make, lazy=True, inputs={"left": "left"}, outputs={"end": "end"})
            .branch("up", lambda s: s.set("end", "reached"))
            .end()
            .build()
        )

    return make(), {"left": levels}


def calls_of(work: Callable[[], Any]) -> int:
    """Count the calls of Python functions that something makes."""
    count = 0

    def note(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def grows_in_step(make: Callable[[int], Callable[[], Any]], size: int, most: float = 2.4) -> None:
    """Hold something to costing about twice as much for twice as many."""
    make(2)()  # what is made once is made
    small, large = (calls_of(make(n)) for n in (size, 2 * size))
    assert large <= most * small, f"{small} calls for {size}, {large} for {2 * size}"


def run_in_thread_of_its_own(chart, **options):
    """Run a chart where `calls_of` sees it: not behind another thread."""
    import asyncio

    return asyncio.run(chart.run(**options))


def look_at(run: Any) -> None:
    """Look at a run in every way a reader can."""
    walk = run.walk
    assert len(walk) == sum(1 for _ in walk)
    assert walk.page(len(walk) // 2, 5) == walk[len(walk) // 2 : len(walk) // 2 + 5]
    assert walk[-1].step == len(walk) - 1
    assert len(run.commits.whole()) == run.steps_executed
    assert str(run)
    assert repr(run)
    assert walk.project(100).shown <= 100
    assert run.structure.to_dict()["nodes"]
    assert walk.flowchart().mermaid
    assert run.recording().to_dict()["snapshot"]


# -- nothing is lost ---------------------------------------------------------------------------


def test_a_thousand_stages_in_a_row():
    run = chain(1000).run_sync()
    assert (run.state["n"], run.steps_executed) == (999, 1000)
    look_at(run)


def test_ten_thousand_branches_lose_none():
    run = fan(10_000, fails=100).run_sync()
    (counts,) = run.fan_outs
    assert (counts.items, counts.ok, counts.failed, counts.not_reached) == (10_000, 9900, 100, 0)
    assert counts.by_branch == {"small": 5, "big": 9895}
    assert run.steps_executed == 2 + 10_000 + 3 * 9900 + 100
    assert [slot.index for slot in run.slots("each")] == list(range(10_000))
    assert len(run.decisions) == 9900
    assert len(run.log.shapes) == 3
    assert run.walk[-1].text == "Wrote out"


def test_five_hundred_items_at_the_limits_that_hold_without_any():
    run = fan(500).run_sync()
    assert run.fan_outs[0].ok == 500
    look_at(run)


def test_a_fork_of_five_hundred_children():
    chart = fork(500)
    run = chart.run_sync()
    assert [run.state[f"k{number}"] for number in (0, 1, 499)] == [1, 2, 500]
    assert [slot.status for slot in run.state["out"]] == ["ok"] * 500
    assert run.steps_executed == 502
    look_at(run)


def test_a_selector_that_selects_five_hundred():
    owner = flow_chart("s", lambda s: None, id="load").add_selector(
        "S", lambda s: [f"c{n}" for n in reversed(range(500))], id="s", into="out"
    )
    for number in range(500):
        owner.branch(f"c{number}", lambda s, k=number: k)
    run = owner.end().build().run_sync()
    assert [slot.value for slot in run.state["out"]] == list(range(500))


def test_async_children_by_the_hundred_lose_none_either():
    import asyncio

    async def work(scope):
        await asyncio.sleep(0)
        return 1

    owner = flow_chart("s", lambda s: None, id="load").add_fork("F", id="f", max_concurrency=50)
    for number in range(500):
        owner.branch(f"c{number}", work)
    run = owner.end().build().run_sync()
    assert [slot.value for slot in run.result] == [1] * 500


@pytest.mark.parametrize(
    "kind", ["plain", "append", "mount", "fork", "selector", "decider", "fan-out"]
)
def test_long_loops_of_every_kind_run_flat(kind):
    passes = 3_000
    run = loop(passes, kind).run_sync(limits=Limits(loops=passes))
    assert (run.status, run.state["n"]) == ("ok", passes + 1)
    stages = [row.runtime_stage_id for row in run.walk if row.type == "stage"]
    assert len(stages) == len(set(stages))
    assert len(run.walk) == sum(1 for _ in run.walk)
    assert str(run)


def test_a_hundred_thousand_passes():
    passes = 100_000
    run = loop(passes, "append").run_sync(limits=Limits(loops=passes))
    assert run.state["rows"] == list(range(1, passes + 1))
    # A pass is two stages, three reads and writes, an append, and the way back.
    assert len(run.log.root.codes) == 2 + passes * 8 + 5
    assert len(run.log.codes) < 20
    assert len(run.walk) == len(run.log.root.codes)
    assert run.walk.page(400_000, 3)[0].step == 400_000
    assert run.steps_executed == 2 + 2 * passes
    assert run.commits[passes].index == passes


def test_four_hundred_charts_in_one_another():
    chart, state = deep(400)
    run = chart.run_sync(state=state)
    assert (run.status, run.state["end"]) == ("ok", "reached")
    assert run.steps_executed == 3 * 400
    assert max(row.runtime_stage_id.count("/") for row in run.walk) == 399
    look_at(run)


def test_a_pause_four_hundred_charts_down():
    def make():
        return (
            flow_chart("deep", lambda s: s.set("left", s["left"] - 1), id="a")
            .add_decider("More?", lambda s: "down" if s["left"] > 0 else "up", id="m")
            .branch("down", make, lazy=True, inputs={"left": "left"}, outputs={"end": "end"})
            .branch("up", lambda s: s.set("end", interrupt(s, "deep enough?")))
            .end()
            .build()
        )

    run = make().run_sync(state={"left": 400})
    checkpoint = json.loads(json.dumps(run.checkpoint))
    done = make().resume_sync(checkpoint, "yes")
    assert (done.status, done.state["end"]) == ("ok", "yes")
    assert done.structure == run.structure
    assert len(json.dumps(checkpoint)) < 20_000_000  # ids are paths: 4,800 of them, 1 KB on average


def test_a_pause_in_a_long_loop():
    def body(scope):
        scope["n"] = scope.get("n", 0) + 1
        if scope["n"] == 5_000:
            scope["said"] = interrupt(scope, "go on?")
        if scope["n"] == 9_000:
            scope.stop()

    chart = flow_chart("c", body, id="body").loop_to("body").build()
    run = chart.run_sync(limits=Limits(loops=9_000))
    done = chart.resume_sync(
        json.loads(json.dumps(run.checkpoint)), "yes", limits=Limits(loops=9_000)
    )
    assert (done.state["n"], done.state["said"]) == (9_000, "yes")


# -- what is kept grows in step ----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["plain", "append", "mount", "fork", "decider", "fan-out"])
def test_the_log_of_a_loop_grows_by_the_pass(kind):
    sizes = []
    for passes in (50, 100):
        run = loop(passes, kind).run_sync()
        root = run.log.root
        fans = [fan for fan, _, _ in run.walk.tracks()]
        inside = sum(len(fan.values) for fan in {id(fan): fan for fan in fans}.values())
        sizes.append((len(root.codes), len(root.values) + inside, len(run.log.codes)))
    (codes, values, table), (more_codes, more_values, more_table) = sizes
    assert more_codes <= 2 * codes
    assert more_values <= 2 * values
    assert more_table == table


def test_like_branches_add_their_values_and_nothing_else():
    sizes = []
    for items in (100, 200):
        run = fan(items).run_sync()
        (made,) = run.log.fan_outs()
        sizes.append((len(made.values), len(run.log.codes), len(run.log.shapes)))
    assert sizes[1][0] == 2 * sizes[0][0]
    assert sizes[1][1:] == sizes[0][1:]


@pytest.mark.parametrize(
    "kind", ["plain", "append", "mount", "fork", "selector", "decider", "fan-out"]
)
def test_running_a_loop_costs_in_step(kind):
    limits = Limits(loops=10**6)
    grows_in_step(lambda n: lambda: run_in_thread_of_its_own(loop(n, kind), limits=limits), 100)


def test_running_everything_else_costs_in_step():
    grows_in_step(lambda n: lambda: run_in_thread_of_its_own(chain(n)), 100)
    grows_in_step(lambda n: lambda: run_in_thread_of_its_own(fan(n)), 100)
    grows_in_step(lambda n: lambda: run_in_thread_of_its_own(fork(n)), 100)


def run_deep(levels):
    chart, state = deep(levels)
    return run_in_thread_of_its_own(chart, state=state)


def test_charts_in_charts_cost_in_step():
    grows_in_step(lambda n: lambda: run_deep(n), 60)


VIEWS = {
    "length": lambda run: len(run.walk),
    "rows": lambda run: list(run.walk),
    "a page": lambda run: run.walk.page(len(run.walk) // 2, 10),
    "steps": lambda run: run.steps_executed,
    "state": lambda run: run.state,
    "commits": lambda run: list(run.commits),
    "all commits": lambda run: list(run.commits.whole()),
    "text": str,
    "first line": repr,
    "decisions": lambda run: run.decisions,
    "projection": lambda run: run.walk.project(50),
    "fan-outs": lambda run: run.fan_outs,
    "picture": lambda run: run.walk.flowchart().mermaid,
    "recording": lambda run: run.recording().to_dict(),
}

RUNS = {
    "chain": lambda n: chain(n).run_sync(),
    "loop": lambda n: loop(n).run_sync(limits=Limits(loops=10**6)),
    "loop that appends": lambda n: loop(n, "append").run_sync(limits=Limits(loops=10**6)),
    "loop over a mount": lambda n: loop(n, "mount").run_sync(limits=Limits(loops=10**6)),
    "loop over a fork": lambda n: loop(n, "fork").run_sync(limits=Limits(loops=10**6)),
    "fan-out": lambda n: fan(n).run_sync(),
    "fork": lambda n: fork(n).run_sync(),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("made", RUNS)
def test_every_view_costs_in_step(made, view):
    def look(n):
        run = RUNS[made](n)
        return lambda: VIEWS[view](run)

    grows_in_step(look, 80)


@pytest.mark.parametrize("view", ["first line", "steps", "state"])
def test_what_is_asked_of_a_long_run_first_does_not_go_through_its_log_step_by_step(view):
    VIEWS[view](chain(2).run_sync())  # what is imported once is imported
    run = loop(2_000).run_sync(limits=Limits(loops=10**6))
    assert calls_of(lambda: VIEWS[view](run)) < 2_000


def test_the_first_line_of_a_run_is_told_without_drawing_the_run(monkeypatch):
    from runbook_nb.record import walk

    def drawn(*_):
        raise AssertionError("the first line needs no picture")

    for run in (chain(3).run_sync(), fan(3).run_sync()):
        with monkeypatch.context() as patched:
            patched.setattr(walk, "overlay_of", drawn)
            first = repr(run)
        assert first.strip("<>") in str(run)
        assert "cannot be shown" not in first


def test_a_checkpoint_costs_in_step():
    def paused(n):
        def body(scope):
            scope["n"] = scope.get("n", 0) + 1
            if scope["n"] == n:
                interrupt(scope, "go on?")

        chart = flow_chart("c", body, id="body").loop_to("body").build()
        run = chart.run_sync(limits=Limits(loops=10**6))
        assert run.status == "paused"
        return lambda: json.dumps(run.checkpoint)

    grows_in_step(paused, 100)
