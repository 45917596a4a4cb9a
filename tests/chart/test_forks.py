"""Forks: each branch on a view of its own, what comes out, and everywhere they may stand."""

from __future__ import annotations

import asyncio

import pytest

from runbook_nb._stop import Stop
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.model import MAX_NESTING
from runbook_nb.errors import ChartError, LimitReached, MissingKey, RunCancelled, RunSignal
from runbook_nb.record.slots import Slots


def forked(*branches, first=lambda s: s.set("n", 1), **more):
    """A chart with a fork of functions called a, b, c, …"""
    fork = flow_chart("c", first, id="load").add_fork("Fork", id="fork", **more)
    for word, fn in zip("abcdefgh", branches, strict=False):
        fork.branch(word, fn)
    return fork.end().add_function("After", lambda s: s.set("after", True), id="after").build()


def failing(chart, error=ChartError, **options):
    with pytest.raises(error) as caught:
        chart.run_sync(**options)
    return caught.value


def ids(run):
    return [row.runtime_stage_id for row in run.walk if row.type == "stage"]


def texts(run, stage_id):
    return [row.text for row in run.walk if row.stage_id == stage_id and row.type == "step"]


# -- views of their own ------------------------------------------------------------------------


def test_siblings_do_not_see_one_another_whoever_runs_first():
    def write(scope):
        scope["mine"] = "a"

    def look(scope):
        return dict(scope)

    for branches in ((write, look), (look, write)):
        run = forked(*branches, into="out").run_sync()
        values = [slot.value for slot in run.state["out"]]
        assert {"n": 1} in values


def test_async_siblings_do_not_see_one_another_either():
    async def main():
        written = asyncio.Event()

        async def write(scope):
            scope["n"] = 2
            scope["mine"] = 1
            written.set()

        async def look(scope):
            await written.wait()
            return dict(scope)

        return await forked(write, look, into="out").run()

    run = asyncio.run(asyncio.wait_for(main(), 5))
    assert [slot.value for slot in run.state["out"]] == [{"n": 2, "mine": 1}, {"n": 1}]


def test_a_branch_sees_the_parents_value_first_and_then_its_own():
    def work(scope):
        seen = [scope["n"]]
        scope["n"] = scope["n"] + 1
        seen.append(scope["n"])
        return seen

    run = forked(work, work, into="out").run_sync()
    assert [slot.value for slot in run.state["out"]] == [[1, 2], [1, 2]]
    assert run.state["n"] == 1  # the chart's own is as it was


def test_the_view_is_of_the_state_when_the_fork_began_the_input_is_the_charts():
    run = forked(lambda s: [s.args["x"], s["n"]], into="out").run_sync({"x": 7})
    assert run.state["out"][0].value == [7, 1]


def test_appending_to_an_inherited_list_leaves_the_parents_alone():
    def work(scope):
        scope.append("rows", 3)
        scope.append("rows", 4)
        return scope["rows"]

    run = forked(work, lambda s: s["rows"], first=lambda s: s.set("rows", [1, 2]), into="out")
    run = run.run_sync()
    assert [slot.value for slot in run.state["out"]] == [[1, 2, 3, 4], [1, 2]]
    assert run.state["rows"] == [1, 2]
    # The first is told as a write of it all: an append could not be replayed without the parent.
    assert texts(run, "a") == ["Wrote rows", "Appended to rows", "Read rows"]


def test_merging_into_an_inherited_mapping_starts_from_the_parents_value():
    def work(scope):
        scope.merge("plan", {"y": 2})
        scope.merge("plan", {"z": 3})

    run = forked(work, first=lambda s: s.set("plan", {"x": 1}), into="out").run_sync()
    assert run.state["out"][0].value == {"plan": {"x": 1, "y": 2, "z": 3}}
    assert run.state["plan"] == {"x": 1}
    assert texts(run, "a") == ["Wrote plan", "Merged into plan"]


def test_deleting_an_inherited_key_takes_it_away_from_that_branch_alone():
    def work(scope):
        scope.delete("n")
        return "n" in scope

    run = forked(work, lambda s: "n" in s, into="out").run_sync()
    assert [slot.value for slot in run.state["out"]] == [False, True]
    assert run.state["n"] == 1
    error = failing(forked(lambda s: (s.delete("n"), s["n"]), fail_fast=True), MissingKey)
    assert error.where == "n"


def test_a_list_the_chart_had_been_appending_to_is_not_shared_with_it():
    def load(scope):
        scope.append("rows", 1)

    chart = (
        flow_chart("c", load, id="load")
        .add_fork("F", id="fork", into="out")
        .branch("a", lambda s: s.append("rows", 2) or s["rows"])
        .branch("b", lambda s: s["rows"])
        .end()
        .add_function("More", lambda s: s.append("rows", 9), id="more")
        .build()
    )
    run = chart.run_sync()
    assert [slot.value for slot in run.state["out"]] == [[1, 2], [1]]
    assert run.state["rows"] == [1, 9]


def test_no_name_is_special_in_the_state():
    def work(scope):
        scope["runs"] = [*scope["runs"], "x"]

    run = forked(work, first=lambda s: s.set("runs", ["kept"]), merge="keys").run_sync()
    assert run.state["runs"] == ["kept", "x"]


# -- what comes out ----------------------------------------------------------------------------


def test_without_into_and_merge_only_the_result_can_tell():
    fork = flow_chart("c", lambda s: None, id="load").add_fork("F", id="fork")
    chart = fork.branch("a", lambda s: s.set("x", 1)).branch("b", lambda s: 5).end().build()
    run = chart.run_sync()
    assert run.state == {}
    assert isinstance(run.result, Slots)
    assert [(slot.item, slot.value) for slot in run.result] == [("a", {"x": 1}), ("b", 5)]


@pytest.mark.parametrize("value", [0, False, "", [], {}])
def test_what_a_branch_returns_is_its_value_even_when_it_is_empty(value):
    run = forked(lambda s: s.set("x", 1) or value, into="out").run_sync()
    assert run.state["out"][0].value == value


def test_merged_keys_come_in_declared_order_and_replace_what_was_there():
    run = forked(
        lambda s: s.set("b", 1), lambda s: s.set("n", s["n"] + 1), lambda s: None, merge="keys"
    ).run_sync()
    assert list(run.state.items()) == [("n", 2), ("b", 1), ("after", True)]
    assert texts(run, "fork") == ["Wrote b", "Wrote n"]


def test_keys_that_a_branch_takes_away_are_taken_from_the_chart_too():
    run = forked(lambda s: s.delete("n"), lambda s: s.set("x", 1), merge="keys").run_sync()
    assert run.state == {"x": 1, "after": True}
    both = forked(lambda s: s.delete("n"), lambda s: s.delete("n"), merge="keys").run_sync()
    assert both.state == {"after": True}
    error = failing(forked(lambda s: s.delete("n"), lambda s: s.set("n", 2), merge="keys"))
    assert (error.code, error.where) == ("merge_conflict", "fork")


def test_a_branch_may_not_write_the_key_its_slots_go_to():
    error = failing(forked(lambda s: s.set("out", 1), merge="keys", into="out"))
    assert error.code == "merge_conflict"
    assert "'out'" in str(error)


def test_a_branch_that_stops_ends_alone_and_well():
    def work(scope):
        scope["x"] = 1
        scope.stop("mine is done")

    run = forked(work, lambda s: s.set("y", 2), merge="keys", into="out").run_sync()
    assert (run.state["x"], run.state["y"]) == (1, 2)
    assert run.state["after"]
    assert [slot.status for slot in run.state["out"]] == ["ok", "ok"]
    assert [row.stage_id for row in run.walk if row.type == "break"] == ["a"]


def test_even_when_all_branches_stop_the_chart_goes_on():
    assert forked(lambda s: s.stop(), lambda s: s.stop()).run_sync().state["after"]


def test_a_failed_branch_is_a_failed_slot_and_the_chart_goes_on():
    def broken(scope):
        scope["half"] = 1
        raise OSError("no route")

    run = forked(broken, lambda s: s.set("x", 1), into="out", merge="keys").run_sync()
    assert [(slot.status, slot.reason) for slot in run.state["out"]] == [
        ("failed", "OSError: no route in stage 'a'"),
        ("ok", None),
    ]
    assert run.state["x"] == 1
    assert "half" not in run.state
    assert run.status == "ok"


def test_fail_fast_fails_the_chart_and_ends_siblings_that_are_under_way():
    ended = []

    async def slow(scope):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("slow")

    async def broken(scope):
        await asyncio.sleep(0)
        raise OSError("no route")

    error = failing(forked(slow, broken, fail_fast=True, into="out"), OSError)
    assert ended == ["slow"]
    assert error.run.ended_at["runtime_stage_id"] == "b#0"
    assert "out" not in error.run.state
    fan = next(fan for fan, _, _ in error.run.walk.tracks())
    assert [fan.status(index) for index in range(2)] == ["not_reached", "failed"]


def test_what_ends_a_run_is_no_failed_branch():
    class Absent(RunSignal):
        run_status = "absent"

    def nothing(scope):
        raise Absent("no such host")

    error = failing(forked(nothing, lambda s: 1, into="out"), Absent)
    assert error.run.status == "absent"
    assert "after" not in error.run.state


def test_a_stop_from_outside_is_no_failed_branch_either():
    stop = Stop()

    def press(scope):
        stop.set("window closed")

    error = failing(forked(press, lambda s: 1, into="out"), RunCancelled, signal=stop)
    assert error.run.status == "cancelled"


# -- charts as branches ------------------------------------------------------------------------

DOUBLE = (
    flow_chart("double", lambda s: s.set("twice", s["n"] * 2), id="twice")
    .add_function("More", lambda s: s.set("seen", sorted(s)), id="more")
    .build()
)


def test_a_chart_as_a_branch_has_a_state_of_its_own_and_gives_what_is_mapped():
    fork = flow_chart("c", lambda s: s.update({"n": 3, "other": 1}), id="load").add_fork(
        "F", id="fork", merge="keys", into="out"
    )
    chart = (
        fork.branch("chart", DOUBLE, inputs={"n": "n"}, outputs={"result": "twice"})
        .branch("fn", lambda s: s.set("fn", s["other"]))
        .end()
        .build()
    )
    run = chart.run_sync()
    assert run.state["result"] == 6
    assert run.state["fn"] == 1
    assert "twice" not in run.state
    assert ids(run) == ["load#0", "fork#1", "chart#0", "chart/twice#1", "chart/more#2", "fn#0"]


def test_charts_side_by_side_make_one_fork_that_merges_their_keys():
    chart = (
        flow_chart("c", lambda s: s.set("n", 3), id="load")
        .add_subchart(
            "One", DOUBLE, id="one", inputs={"n": "n"}, outputs={"a": "twice"}, parallel=True
        )
        .add_subchart(
            "Two", DOUBLE, id="two", inputs={"n": "n"}, outputs={"b": "twice"}, parallel=True
        )
        .add_function("After", lambda s: s["a"] + s["b"], id="after")
        .build()
    )
    assert [stage.id for stage in chart.stages] == ["load", "one.fork", "after"]
    run = chart.run_sync()
    assert run.result == 12
    assert [row.text for row in run.walk if row.type == "fork"] == ["Forked into one, two"]


def test_a_failed_chart_beside_others_is_told_and_its_keys_are_not_there():
    def broken(scope):
        raise ValueError("no data")

    bad = flow_chart("bad", broken, id="bad").build()
    chart = (
        flow_chart("c", lambda s: s.set("n", 3), id="load")
        .add_subchart("One", bad, id="one", parallel=True)
        .add_subchart(
            "Two", DOUBLE, id="two", inputs={"n": "n"}, outputs={"b": "twice"}, parallel=True
        )
        .build()
    )
    run = chart.run_sync()
    assert [(slot.item, slot.status) for slot in run.result] == [("one", "failed"), ("two", "ok")]
    assert run.state["b"] == 6


# -- everywhere --------------------------------------------------------------------------------


def add_fork(builder, name="F", id="fork"):
    fork = builder.add_fork(name, id=id, merge="keys")
    fork.branch(f"{id}-a", lambda s: s.set(f"{id}-a", sorted(s)))
    return fork.branch(f"{id}-b", lambda s: s.set(f"{id}-b", 1)).end()


def test_a_fork_may_stand_behind_a_decider_and_runs_whichever_branch_was_taken():
    for word in ("left", "right"):
        builder = flow_chart("c", lambda s: None, id="load").add_decider(
            "D", lambda s, word=word: word, id="d"
        )
        builder.branch("left", lambda s: s.set("way", "left"))
        builder = builder.branch("right", lambda s: s.set("way", "right")).end()
        run = add_fork(builder).build().run_sync()
        assert run.state == {"way": word, "fork-a": ["way"], "fork-b": 1}


def test_a_fork_may_stand_behind_a_fan_out_a_mount_and_another_fork():
    each = flow_chart("each", lambda s: 1, id="e").build()
    builder = flow_chart("c", lambda s: s.set("n", 2), id="load").add_parallel_for_each(
        "E", id="each", items=lambda s: [1, 2], branch=each, max_branches=2, into="out"
    )
    builder = add_fork(builder, id="f1").add_subchart(
        "M", DOUBLE, id="mount", inputs={"n": "n"}, outputs={"twice": "twice"}
    )
    run = add_fork(add_fork(builder, id="f2"), id="f3").build().run_sync()
    assert run.state["f1-a"] == ["n", "out"]
    assert run.state["f2-a"] == ["f1-a", "f1-b", "n", "out", "twice"]
    assert run.state["f3-a"] == ["f1-a", "f1-b", "f2-a", "f2-b", "n", "out", "twice"]
    assert ids(run) == [
        *("load#0", "each#1", "each~0/e#0", "each~1/e#0", "f1#2", "f1-a#0", "f1-b#0"),
        *("mount#3", "mount/twice#4", "mount/more#5"),
        *("f2#6", "f2-a#0", "f2-b#0", "f3#7", "f3-a#0", "f3-b#0"),
    ]


def test_a_fork_may_be_the_first_stage_and_the_only_one():
    fork = flow_chart("c").add_fork("F", id="fork", merge="keys")
    chart = fork.branch("a", lambda s: s.set("x", s.args["n"])).end().build()
    assert chart.run_sync({"n": 4}).state == {"x": 4}


def test_forks_nest_in_charts_and_every_view_is_of_the_one_around_it():
    inner = flow_chart("inner", lambda s: s.set("deep", s["n"]), id="start").add_fork(
        "G", id="inner", merge="keys"
    )
    inner = inner.branch("x", lambda s: s.set("x", s["deep"] + 1)).end().build()
    fork = flow_chart("c", lambda s: s.set("n", 1), id="load").add_fork(
        "F", id="outer", merge="keys"
    )
    for word in "ab":
        fork.branch(word, inner, inputs={"n": "n"}, outputs={f"from {word}": "x"})
    run = fork.end().build().run_sync()
    assert run.state == {"n": 1, "from a": 2, "from b": 2}
    assert ids(run)[2:5] == ["a#0", "a/start#1", "a/inner#2"]
    assert ids(run)[5] == "a/x#0"


def nested(depth):
    chart = flow_chart("leaf", lambda s: s.set("x", 1), id="leaf").build()
    for _ in range(depth):
        fork = flow_chart("c", lambda s: None, id="s").add_fork("F", id="f")
        chart = fork.branch("a", chart).end().build()
    return chart


def test_forks_nest_to_a_stated_depth():
    assert nested(MAX_NESTING - 1).run_sync().status == "ok"
    with pytest.raises((ChartError, LimitReached), match="50"):
        nested(MAX_NESTING + 1).run_sync()


def test_a_fork_in_a_loop_numbers_its_branches_on_from_the_visit_before():
    def count(scope):
        scope["n"] = scope["n"] + 1
        if scope["n"] == 3:
            scope.stop()

    fork = flow_chart("c", lambda s: s.set("n", 0), id="load").add_function("N", count, id="count")
    fork = fork.add_fork("F", id="fork", merge="keys")
    fork.branch("a", lambda s: s.set("a", s["n"]))
    chart = fork.branch("b", DOUBLE, inputs={"n": "n"}).end().loop_to("count").build()
    run = chart.run_sync()
    assert [name for name in ids(run) if name[0] in "ab"] == [
        *("a#0", "b#0", "b/twice#1", "b/more#2"),
        *("a#1", "b#3", "b/twice#4", "b/more#5"),
    ]
    assert len(set(ids(run))) == len(ids(run))
    assert run.state["a"] == 2


def test_the_ids_of_branches_do_not_depend_on_their_siblings():
    one = forked(lambda s: 1).run_sync()
    many = forked(*[lambda s: 1] * 5).run_sync()
    assert [row.to_dict() for row in one.walk if row.stage_id == "a"] == [
        row.to_dict() for row in many.walk if row.stage_id == "a"
    ]


def test_the_branches_of_a_fork_are_in_its_structure_and_in_its_outline():
    chart = forked(lambda s: 1, lambda s: 2, into="out", merge="keys")
    structure = chart.structure
    node = structure.node("fork")
    assert (node.kind, node.detail) == ("fork", {"into": "out", "merge": "keys"})
    edges = {(edge.source, edge.target, edge.kind) for edge in structure.edges}
    assert edges == {
        ("load", "fork", "next"),
        ("fork", "a", "fork"),
        ("fork", "b", "fork"),
        ("a", "after", "next"),
        ("b", "after", "next"),
    }
    assert "Fork" in str(chart.run_sync())
