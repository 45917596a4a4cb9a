"""Charts mounted in charts: what goes in and comes out, how they end, how deep they may lie."""

from __future__ import annotations

import asyncio
import threading

import pytest

import runbook_nb as rb
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.model import Limits
from runbook_nb.chart.mounts import joined
from runbook_nb.chart.scope import interrupt
from runbook_nb.errors import ChartError, FrozenError, LimitReached, MissingKey


def inner_chart(fn=lambda s: s.set("twice", s["n"] * 2), **more):
    return (
        flow_chart("inner", fn, id="in", **more)
        .add_function("More", lambda s: s.set("more", True), id="more")
        .build()
    )


def mounted(chart=None, *, first=lambda s: s.set("n", 3), **more):
    """A chart that writes n, runs a chart, and notes that it went on."""
    options = {"inputs": {"n": "n"}} | more
    return (
        flow_chart("outer", first, id="load")
        .add_subchart("Sub", inner_chart() if chart is None else chart, id="sub", **options)
        .add_function("After", lambda s: s.set("after", True), id="after")
        .build()
    )


def failing(chart, error=ChartError, **options):
    with pytest.raises(error) as caught:
        chart.run_sync(**options)
    return caught.value


def told(run):
    return [(row.type, row.runtime_stage_id, row.subflow, row.text) for row in run.walk]


def ids(run):
    return [row.runtime_stage_id for row in run.walk if row.type == "stage"]


# -- in and out --------------------------------------------------------------------------------


def test_a_mounted_chart_runs_in_its_parents_track_under_its_path():
    run = mounted(outputs={"result": "twice"}).run_sync()
    assert told(run) == [
        ("stage", "load#0", None, "Ran outer"),
        ("step", "load#0", None, "Wrote n"),
        ("stage", "sub#1", None, "Ran Sub"),
        ("step", "sub#1", None, "Read n"),
        ("subflow", "sub#1", None, "Entered Sub"),
        ("step", "sub#1", None, "Received n"),
        ("stage", "sub/in#2", "sub", "Ran inner"),
        ("step", "sub/in#2", "sub", "Read n"),
        ("step", "sub/in#2", "sub", "Wrote twice"),
        ("stage", "sub/more#3", "sub", "Ran More"),
        ("step", "sub/more#3", "sub", "Wrote more"),
        ("subflow", "sub#1", None, "Left Sub: ok"),
        ("step", "sub#1", None, "Wrote result"),
        ("stage", "after#4", None, "Ran After"),
        ("step", "after#4", None, "Wrote after"),
    ]
    assert run.state == {"n": 3, "result": 6, "after": True}


def test_without_mappings_nothing_goes_in_or_out():
    seen = []
    chart = inner_chart(lambda s: seen.append((dict(s), dict(s.args))))
    run = mounted(chart, inputs=None).run_sync({"x": 1})
    assert seen == [({}, {})]
    assert run.state == {"n": 3, "after": True}


def test_what_goes_in_is_both_the_input_and_ordinary_writable_state():
    def work(scope):
        scope["n"] = scope["n"] + scope.args["n"]
        scope.delete("rows")
        return [dict(scope), dict(scope.args)]

    run = mounted(
        flow_chart("inner", work, id="in").build(),
        first=lambda s: s.update({"n": 3, "rows": [1]}),
        inputs=lambda s: {"n": s["n"], "rows": s["rows"]},
        outputs=lambda result, s: {"inside": result},
    ).run_sync()
    assert run.state["inside"] == [{"n": 6}, {"n": 3, "rows": [1]}]
    assert (run.state["n"], run.state["rows"]) == (3, [1])


def test_inputs_may_be_an_async_function_and_its_reads_are_the_mounts():
    async def inputs(scope):
        await asyncio.sleep(0)
        return {"n": scope["n"] + scope.args["add"]}

    run = mounted(inputs=inputs, outputs={"result": "twice"}).run_sync({"add": 1})
    assert run.state["result"] == 8
    assert ("step", "sub#1", None, "Read n") in told(run)


def test_outputs_take_what_the_chart_returned_else_its_final_state():
    for last, expected in (
        (lambda s: [s["twice"]], [6]),
        (lambda s: None, {"n": 3, "twice": 6}),
        (lambda s: 0, 0),
    ):
        chart = flow_chart("inner", lambda s: s.set("twice", s["n"] * 2), id="in")
        chart = chart.add_function("Last", last, id="last").build()
        run = mounted(chart, outputs=lambda result, s: {"got": result}).run_sync()
        assert run.state["got"] == expected


def test_outputs_may_read_the_chart_they_go_to():
    run = mounted(outputs=lambda result, s: {"sum": s["n"] + result["twice"]}).run_sync()
    assert run.state["sum"] == 9


def test_named_outputs_come_from_the_final_state_and_a_missing_one_is_an_error():
    assert mounted(outputs={"a": "twice", "b": "more"}).run_sync().state["b"] is True
    error = failing(mounted(outputs={"a": "twise"}), MissingKey)
    assert error.where == "twise"
    assert "did you mean 'twice'" in str(error)
    assert error.run.ended_at["runtime_stage_id"] == "sub#1"
    assert told(error.run)[-2:] == [
        ("subflow", "sub#1", None, "Left Sub: ok"),
        ("error", "sub#1", None, f"Failed: MissingKey: {error}"),
    ]


def test_a_chart_that_stopped_may_leave_named_outputs_out():
    chart = inner_chart(lambda s: s.stop("nothing to do"))
    run = mounted(chart, outputs={"a": "twice", "n2": "n"}).run_sync()
    assert run.state == {"n": 3, "n2": 3, "after": True}


def test_a_missing_input_is_an_error_of_the_mount_and_nothing_inside_runs():
    error = failing(mounted(inputs={"m": "missing"}), MissingKey)
    assert error.where == "missing"
    assert ids(error.run) == ["load#0", "sub#1"]
    assert [row.type for row in error.run.walk][-1] == "error"


@pytest.mark.parametrize("which", ["inputs", "outputs"])
def test_a_mapping_function_that_fails_fails_the_run_with_a_row_of_its_own(which):
    def broken(*_):
        raise OSError("no mapping")

    error = failing(mounted(**{which: broken}), OSError)
    assert error.run.status == "failed"
    assert error.run.ended_at["runtime_stage_id"] == "sub#1"
    assert told(error.run)[-1] == ("error", "sub#1", None, "Failed: OSError: no mapping")
    assert error.run.commits[1].status == "failed"


@pytest.mark.parametrize("which", ["inputs", "outputs"])
@pytest.mark.parametrize("given", [5, [1], "text"])
def test_mapping_functions_give_mappings(which, given):
    error = failing(mounted(**{which: lambda *_: given}))
    assert (error.code, error.where) == ("bad_mapping", "sub")
    assert f"{which} of chart 'Sub'" in str(error)
    assert error.fix


@pytest.mark.parametrize("which", ["inputs", "outputs"])
def test_mapping_functions_may_give_nothing_and_ask_nothing(which):
    chart = inner_chart(lambda s: s.get("n"))
    assert mounted(chart, **{which: lambda *_: None}).run_sync().state == {"n": 3, "after": True}

    def ask(*given):
        interrupt(given[-1], "which?")

    error = failing(mounted(chart, **{which: ask}))
    assert (error.code, error.where) == ("question_in_mapping", "sub")


def test_the_input_schema_of_the_inner_chart_is_held():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    chart = inner_chart(input_schema=schema)
    assert mounted(chart, outputs={"r": "twice"}).run_sync().state["r"] == 6
    error = failing(mounted(chart, inputs=lambda s: {"n": "three"}))
    assert error.code == "invalid_input"
    assert "n" in str(error)
    assert ids(error.run) == ["load#0", "sub#1"]
    assert error.run.ended_at["stage_id"] == "sub"


def test_an_inner_chart_may_give_what_it_was_not_told_to_write():
    run = mounted(outputs=lambda result, s: {"whole": result}).run_sync()
    assert run.state["whole"] == {"n": 3, "twice": 6, "more": True}


def test_a_result_that_cannot_be_recorded_fails_the_mount():
    chart = flow_chart("inner", lambda s: threading.Lock(), id="in").build()
    error = failing(mounted(chart), FrozenError)
    assert error.run.ended_at["stage_id"] == "sub"


# -- joining -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "result"),
    [
        ([1], [2, 3], [1, 2, 3]),
        ([1], [], [1]),
        (None, [2], [2]),
        ("text", [2], [2]),
        ([1], 5, 5),
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": [1]}, {"a": [2]}, {"a": [1, 2]}),
        ({"a": {"x": 1, "y": [1]}}, {"a": {"y": [2]}}, {"a": {"x": 1, "y": [2]}}),
        ({"a": 1}, {}, {"a": 1}),
        ({"a": 1}, None, None),
    ],
)
def test_what_comes_out_joins_what_is_there(old, new, result):
    def first(scope):
        scope["n"] = 3
        if old is not None:
            scope["k"] = old

    run = mounted(first=first, outputs=lambda *_: {"k": new}).run_sync()
    assert run.state["k"] == result


def test_lists_may_replace_what_is_there_those_in_mappings_never_do():
    run = mounted(
        first=lambda s: s.update({"n": 3, "rows": [1], "plan": {"rows": [1]}}),
        outputs=lambda *_: {"rows": [2], "plan": {"rows": [2]}},
        array_merge="replace",
    ).run_sync()
    assert run.state["rows"] == [2]
    assert run.state["plan"] == {"rows": [1, 2]}


def test_slots_are_put_behind_slots():
    each = flow_chart("each", lambda s: s.args["item"] * 10, id="e").build()
    inner = (
        flow_chart("inner", lambda s: None, id="in")
        .add_parallel_for_each(
            "E", id="each", items=lambda s: [1, 2], branch=each, max_branches=2, into="out"
        )
        .build()
    )
    chart = (
        flow_chart("outer", lambda s: None, id="load")
        .add_subchart("One", inner, id="one", outputs={"all": "out"})
        .add_subchart("Two", inner, id="two", outputs={"all": "out"})
        .build()
    )
    assert [slot.value for slot in chart.run_sync().state["all"]] == [10, 20, 10, 20]


def test_joining_is_pure():
    old, new = [1], [2]
    assert joined(old, new) == [1, 2]
    assert (old, new) == ([1], [2])


# -- ending ------------------------------------------------------------------------------------


def test_an_error_inside_leaves_each_chart_around_it_failed():
    def broken(scope):
        raise OSError("no route")

    deep = mounted(inner_chart(broken), inputs=None)
    error = failing(mounted(deep, inputs=None, outputs={"x": "y"}), OSError)
    run = error.run
    assert run.ended_at == {
        "stage": "inner",
        "stage_id": "in",
        "runtime_stage_id": "sub/sub/in#4",
    }
    assert told(run)[-3:] == [
        ("error", "sub/sub/in#4", "sub/sub", "Failed: OSError: no route"),
        ("subflow", "sub/sub#3", "sub", "Left Sub: failed"),
        ("subflow", "sub#1", None, "Left Sub: failed"),
    ]
    assert "x" not in run.state


@pytest.mark.parametrize("propagate", [False, True])
def test_stopping_inside_stops_the_chart_around_it_only_where_that_is_said(propagate):
    chart = inner_chart(lambda s: s.set("twice", 1) or s.stop("enough"))
    run = mounted(chart, outputs={"r": "twice"}, propagate_stop=propagate).run_sync()
    assert run.status == "ok"
    assert run.state["r"] == 1  # what it had is mapped out before
    assert ("after" in run.state) is not propagate
    breaks = [(row.runtime_stage_id, row.text) for row in run.walk if row.type == "break"]
    inside, around = ("sub/in#2", "Stopped here: enough"), ("sub#1", "Stopped here: enough")
    assert breaks == ([inside, around] if propagate else [inside])
    assert [row.text for row in run.walk if row.text.startswith("Left")] == ["Left Sub: stopped"]


@pytest.mark.parametrize(
    ("inner", "outer", "last"),
    [
        (True, True, "sub/sub/in"),
        (True, False, "after"),
        (False, True, "after"),
        (False, False, "after"),
    ],
)
def test_a_stop_goes_up_as_far_as_each_chart_lets_it(inner, outer, last):
    chart = inner_chart(lambda s: s.stop("enough"))
    deep = mounted(chart, inputs=None, propagate_stop=inner)
    run = mounted(deep, inputs=None, propagate_stop=outer).run_sync()
    assert ids(run)[-1].partition("#")[0] == last
    assert ("sub/after" in {name.partition("#")[0] for name in ids(run)}) is not inner


def test_a_signal_inside_ends_the_run_and_says_so_on_the_way_out():
    class Absent(rb.errors.RunSignal):
        run_status = "absent"

    def nothing(scope):
        raise Absent("no such host")

    error = failing(mounted(inner_chart(nothing)), Absent)
    assert error.run.status == "absent"
    assert told(error.run)[-1] == ("subflow", "sub#1", None, "Left Sub: absent")


def test_the_result_of_a_chart_that_ends_in_a_mount_is_the_inner_result():
    inner = flow_chart("inner", lambda s: [1, 2], id="in").build()
    chart = flow_chart("c", lambda s: 5, id="a").add_subchart("Sub", inner, id="sub").build()
    assert chart.run_sync().result == [1, 2]


# -- the same chart more than once -------------------------------------------------------------


def test_one_chart_may_be_mounted_many_times_each_with_a_state_of_its_own():
    inner = inner_chart(lambda s: s.append("rows", s["n"]))
    builder = flow_chart("outer", lambda s: s.set("n", 1), id="load")
    for number in range(3):
        builder.add_subchart(
            f"S{number}", inner, id=f"s{number}", inputs={"n": "n"}, outputs={"rows": "rows"}
        )
    run = builder.build().run_sync()
    assert run.state["rows"] == [1, 1, 1]
    assert len(set(ids(run))) == len(ids(run))
    whole = run.commits.whole()
    assert [log.path for log in whole.logs] == ["", "s0", "s1", "s2"]


def test_a_mount_visited_again_begins_with_what_goes_in_then():
    seen = []
    inner = inner_chart(lambda s: (seen.append(dict(s)), s.set("left", s["n"])))

    def count(scope):
        scope["n"] = scope["n"] + 1
        if scope["n"] > 2:
            scope.stop()

    chart = (
        flow_chart("outer", lambda s: s.set("n", 0), id="load")
        .add_function("Count", count, id="count")
        .add_subchart("Sub", inner, id="sub", inputs={"n": "n"})
        .loop_to("count")
        .build()
    )
    chart.run_sync()
    assert seen == [{"n": 1}, {"n": 2}]


# -- lazy --------------------------------------------------------------------------------------


def test_a_lazy_chart_is_asked_for_once_per_run_when_it_is_first_reached():
    made = []

    def make():
        made.append(1)
        return inner_chart()

    def count(scope):
        scope["i"] = scope.get("i", 0) + 1
        if scope["i"] > 3:
            scope.stop()

    chart = (
        flow_chart("outer", lambda s: s.set("n", 1), id="load")
        .add_function("Count", count, id="count")
        .add_subchart("Sub", make, id="sub", lazy=True, inputs={"n": "n"})
        .loop_to("count")
        .build()
    )
    assert made == []
    run = chart.run_sync()
    assert [name for name in ids(run) if "/in" in name] == ["sub/in#3", "sub/in#7", "sub/in#11"]
    assert len(made) == 1
    chart.run_sync()
    assert len(made) == 2


def test_a_lazy_chart_that_is_not_reached_is_not_asked_for():
    def make():
        raise AssertionError

    builder = flow_chart("c", lambda s: None, id="a").add_decider("D", lambda s: "plain", id="d")
    chart = builder.branch("plain", lambda s: 1).branch("lazy", make, lazy=True).end().build()
    assert chart.run_sync().result == 1


def test_the_structure_knows_a_lazy_chart_once_a_run_has_met_it():
    chart = mounted(lambda: inner_chart(lambda s: None), lazy=True, inputs=None)
    assert [node.key for node in chart.structure.nodes] == ["load", "sub", "after"]
    assert chart.structure.node("sub").detail == {"template": "unknown", "lazy": True}
    structure = chart.run_sync().structure
    assert [node.key for node in structure.nodes] == ["load", "sub", "sub/in", "sub/more", "after"]
    assert structure.node("sub").detail["template"] == "per_run"
    assert dict(structure.groups)["sub"] == ("sub/in", "sub/more")
    edges = {(edge.source, edge.target, edge.kind) for edge in structure.edges}
    assert ("sub", "sub/in", "enter") in edges
    assert ("sub/more", "after", "next") in edges
    assert ("sub", "after", "next") not in edges


@pytest.mark.parametrize("made", [None, 5, flow_chart("b", print, id="b")])
def test_a_lazy_mount_that_gives_no_chart_fails_the_run(made):
    error = failing(mounted(lambda: made, lazy=True, inputs=None))
    assert (error.code, error.where) == ("bad_chart", "sub")
    assert error.run.ended_at["stage_id"] == "sub"

    async def later():
        return inner_chart()

    error = failing(mounted(later, lazy=True, inputs=None))
    assert "gave coroutine" in str(error)


def test_a_lazy_mount_that_raises_fails_the_run():
    def make():
        raise OSError("no definition")

    error = failing(mounted(make, lazy=True, inputs=None), OSError)
    assert [row.type for row in error.run.walk][-1] == "error"


# -- depth -------------------------------------------------------------------------------------


def counting_down():
    """A chart that mounts itself until nothing is left."""

    def make():
        return (
            flow_chart("down", lambda s: s.set("left", s["left"] - 1), id="count")
            .add_decider("More?", lambda s: "down" if s["left"] > 0 else "done", id="more")
            .branch("down", make, lazy=True, inputs={"left": "left"}, outputs={"deep": "deep"})
            .branch("done", lambda s: s.set("deep", "reached"))
            .end()
            .build()
        )

    return make()


def test_a_chart_may_mount_itself_and_ends_when_it_says_so():
    run = counting_down().run_sync(state={"left": 4})
    assert run.status == "ok"
    assert run.state["deep"] == "reached"
    assert ids(run)[-1] == "down/down/down/done#11"
    assert len(run.commits.whole().logs) == 4


def test_a_chart_mounted_in_ever_new_places_keeps_no_more_of_them():
    shared, kept = inner_chart(lambda s: s.set("n", 1)), set()
    for number in range(200):
        builder = flow_chart("outer", lambda s: None, id="a")
        run = builder.add_subchart("Sub", shared, id=f"s{number}").build().run_sync()
        assert ids(run)[-1] == f"s{number}/more#3"
        kept.add(len(shared._forms))
    assert max(kept) < 100


def test_a_chart_that_mounts_itself_for_ever_is_ended_by_the_limit_of_depth():
    error = failing(counting_down(), LimitReached, state={"left": 100}, limits=Limits(depth=10))
    assert (error.code, error.run.status) == ("depth_limit", "limited")
    assert "10" in str(error)
    assert "Limits(depth=…)" in error.fix
    assert error.run.ended_at["runtime_stage_id"].count("/") == 10
    assert [row.text for row in error.run.walk if row.text.startswith("Left")] == [
        "Left down: limited"
    ] * 10


def test_depth_counts_charts_and_not_stages_or_siblings():
    builder = flow_chart("c", lambda s: None, id="a")
    for number in range(20):
        builder.add_subchart(f"S{number}", inner_chart(lambda s: None), id=f"s{number}")
    assert builder.build().run_sync(limits=Limits(depth=1)).status == "ok"


# -- branches that are charts ------------------------------------------------------------------


def test_a_branch_of_a_decider_may_be_a_chart():
    inner = inner_chart()
    builder = flow_chart("c", lambda s: s.set("n", 2), id="load").add_decider(
        "D", lambda s: "double", id="d"
    )
    builder.branch("double", inner, inputs={"n": "n"}, outputs={"result": "twice"})
    chart = builder.branch("skip", lambda s: None).end().build()
    run = chart.run_sync()
    assert run.state == {"n": 2, "result": 4}
    assert ids(run) == ["load#0", "d#1", "double#2", "double/in#3", "double/more#4"]
    assert run.structure.node("double").detail["form"] == "subchart"
