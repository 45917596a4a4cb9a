"""Loops: from every kind of stage, inside one another, to their limit, and what is told of them."""

from __future__ import annotations

import pytest

from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.model import Limits
from runbook_nb.errors import ChartError, LimitReached

INNER = flow_chart("inner", lambda s: s.set("x", 1), id="in").build()


def counting(most):
    """A stage that counts its passes and stops the chart after so many."""

    def count(scope):
        scope["n"] = scope.get("n", 0) + 1
        if scope["n"] == most:
            scope.stop("enough")

    return count


def add_last(builder, kind):
    """Add a stage of a kind, called ``last``."""
    if kind == "plain":
        return builder.add_function("Last", lambda s: 1, id="last")
    if kind == "streaming":
        return builder.add_streaming("Last", lambda s: s.stream("x"), id="last")
    if kind == "pausable":
        return builder.add_pausable("Last", lambda s: None, lambda s, a: None, id="last")
    if kind == "mount":
        return builder.add_subchart("Last", INNER, id="last")
    if kind == "lazy":
        return builder.add_subchart("Last", lambda: INNER, id="last", lazy=True)
    if kind == "fan-out":
        return builder.add_parallel_for_each(
            "Last", id="last", items=lambda s: [1, 2], branch=INNER, max_branches=2, into="out"
        )
    if kind == "fork":
        fork = builder.add_fork("Last", id="last")
        return fork.branch("a", lambda s: 1).branch("b", INNER).end()
    if kind == "selector":
        selector = builder.add_selector("Last", lambda s: ["a"], id="last")
        return selector.branch("a", lambda s: 1).branch("b", lambda s: 1).end()
    decider = builder.add_decider("Last", lambda s: "a", id="last")
    return decider.branch("a", INNER if kind == "chart branch" else lambda s: 1).end()


KINDS = ("plain", "streaming", "pausable", "mount", "lazy", "fan-out", "fork", "selector")


def stages(run):
    return [row.runtime_stage_id for row in run.walk if row.type == "stage"]


def loops(run):
    return [(row.runtime_stage_id, row.text) for row in run.walk if row.type == "loop"]


def failing(chart, error=LimitReached, **options):
    with pytest.raises(error) as caught:
        chart.run_sync(**options)
    return caught.value


# -- from every kind ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*KINDS, "decider", "chart branch"])
def test_a_chart_may_go_back_from_every_kind_of_stage(kind):
    builder = flow_chart("c", lambda s: None, id="load")
    builder = builder.add_function("Count", counting(3), id="count")
    chart = add_last(builder, kind).loop_to("count").build()
    run = chart.run_sync()
    assert (run.status, run.state["n"]) == ("ok", 3)
    ran = [name.partition("#")[0] for name in stages(run)]
    assert (ran.count("load"), ran.count("count"), ran.count("last")) == (1, 3, 2)
    assert [text for _, text in loops(run)] == [
        "Went back to count, pass 2",
        "Went back to count, pass 3",
    ]
    taken = "a" if kind in ("decider", "chart branch") else "last"
    assert [name.partition("#")[0] for name, _ in loops(run)] == [taken, taken]
    assert len(set(stages(run))) == len(stages(run))


@pytest.mark.parametrize("kind", ["plain", "mount"])
def test_a_branch_of_a_decider_may_go_back_and_the_other_goes_on(kind):
    builder = flow_chart("c", lambda s: None, id="load")
    builder = builder.add_function("Dig", lambda s: s.set("d", s.get("d", 0) + 1), id="dig")
    decider = builder.add_decider("Deep?", lambda s: "yes" if s["d"] > 2 else "no", id="deep")
    again = INNER if kind == "mount" else lambda s: s.set("again", True)
    decider.branch("no", again, loop_to="dig").branch("yes", lambda s: s["d"])
    chart = decider.end().add_function("After", lambda s: "after", id="after").build()
    run = chart.run_sync()
    assert (run.result, run.state["d"]) == ("after", 3)
    assert [text for _, text in loops(run)] == [
        "Went back to dig, pass 2",
        "Went back to dig, pass 3",
    ]


def test_a_branch_may_go_back_to_its_own_decider_and_to_the_first_stage():
    for target, ran in (("d", ["a", "d", "n", "d", "y"]), ("a", ["a", "d", "n", "a", "d", "y"])):
        decider = flow_chart("c", lambda s: None, id="a").add_decider(
            "D", lambda s: "y" if s.get("k") else "n", id="d"
        )
        decider.branch("n", lambda s: s.set("k", 1), loop_to=target).branch("y", lambda s: 1)
        run = decider.end().build().run_sync()
        assert [name.partition("#")[0] for name in stages(run)] == ran


def test_state_is_carried_from_pass_to_pass():
    def work(scope):
        scope.append("seen", len(scope.get("seen", ())))
        if len(scope["seen"]) == 4:
            scope.stop()

    chart = flow_chart("c", work, id="work").loop_to("work").build()
    assert chart.run_sync().state == {"seen": [0, 1, 2, 3]}


def test_the_result_is_that_of_the_stage_that_stopped():
    def work(scope):
        scope["n"] = scope.get("n", 0) + 1
        if scope["n"] == 3:
            scope.stop()
        return scope["n"]

    assert flow_chart("c", work, id="work").loop_to("work").build().run_sync().result == 3


# -- inside one another ------------------------------------------------------------------------


def test_loops_nest_and_each_target_counts_its_own_passes():
    def inner(scope):
        scope["j"] = scope["j"] + 1
        return "again" if scope["j"] < 3 else "done"

    def outer(scope):
        scope["i"] = scope["i"] + 1
        return "again" if scope["i"] < 2 else "done"

    builder = flow_chart("c", lambda s: s.set("i", 0), id="start")
    builder = builder.add_function("Reset", lambda s: s.set("j", 0), id="reset")
    builder = builder.add_function("Body", lambda s: s.append("ran", (s["i"], s["j"])), id="body")
    decider = builder.add_decider("In", inner, id="in")
    decider.branch("again", lambda s: None, loop_to="body").branch("done", lambda s: None)
    decider = decider.end().add_decider("Out", outer, id="out")
    decider.branch("again", lambda s: None, loop_to="reset").branch("done", lambda s: None)
    run = decider.end().build().run_sync()
    assert run.state["ran"] == [(i, j) for i in range(2) for j in range(3)]
    assert [text for _, text in loops(run)] == [
        "Went back to body, pass 2",
        "Went back to body, pass 3",
        "Went back to reset, pass 2",
        "Went back to body, pass 4",  # passes are the run's, as ids are
        "Went back to body, pass 5",
    ]


def test_a_mounted_chart_counts_its_passes_anew_each_time_it_is_entered():
    inner = (
        flow_chart("inner", lambda s: None, id="in")
        .add_function("Count", counting(3), id="count")
        .loop_to("count")
        .build()
    )
    chart = (
        flow_chart("c", lambda s: None, id="load")
        .add_function("Gate", counting(3), id="gate")
        .add_subchart("Sub", inner, id="sub")
        .loop_to("gate")
        .build()
    )
    run = chart.run_sync(limits=Limits(loops=2))
    assert [text for name, text in loops(run) if name.startswith("sub/")] == [
        "Went back to count, pass 2",
        "Went back to count, pass 3",
    ] * 2


def test_each_branch_of_a_fan_out_counts_its_own_passes():
    each = flow_chart("each", counting(3), id="count").loop_to("count").build()
    chart = (
        flow_chart("c", lambda s: None, id="load")
        .add_parallel_for_each(
            "E", id="each", items=lambda s: [1, 2, 3], branch=each, max_branches=3, into="out"
        )
        .build()
    )
    run = chart.run_sync(limits=Limits(loops=2))
    assert [slot.status for slot in run.slots("each")] == ["ok"] * 3
    assert len(loops(run)) == 6


def test_a_fan_out_in_a_loop_numbers_each_branch_on_from_the_visit_before():
    each = flow_chart("each", lambda s: None, id="e").build()
    chart = (
        flow_chart("c", lambda s: None, id="load")
        .add_function("Gate", counting(4), id="gate")
        .add_parallel_for_each(
            "E",
            id="each",
            items=lambda s: list(range(s["n"])),
            branch=each,
            max_branches=9,
            into="out",
        )
        .loop_to("gate")
        .build()
    )
    run = chart.run_sync()
    assert [name for name in stages(run) if "~" in name] == [
        *("each~0/e#0",),
        *("each~0/e#1", "each~1/e#0"),
        *("each~0/e#2", "each~1/e#1", "each~2/e#0"),
    ]
    assert [counts.items for counts in run.fan_outs] == [1, 2, 3]
    assert len(run.slots("each")) == 3  # of the last visit


# -- the limit ---------------------------------------------------------------------------------


def test_a_limit_of_four_runs_the_body_five_times():
    chart = flow_chart("c", lambda s: s.set("n", s.get("n", 0) + 1), id="body").loop_to("body")
    error = failing(chart.build(), limits=Limits(loops=4))
    run = error.run
    assert (error.code, error.where) == ("loop_limit", "body")
    assert "went back to stage 'body' 4 times, which is the limit" in str(error)
    assert "Limits(loops=…)" in error.fix
    assert (run.status, run.state["n"]) == ("limited", 5)
    assert len(loops(run)) == 4
    assert [row.type for row in run.walk][-1] == "error"
    assert run.ended_at == {"stage": "c", "stage_id": "body", "runtime_stage_id": None}


def test_as_many_passes_as_allowed_are_no_error():
    chart = flow_chart("c", counting(5), id="body").loop_to("body").build()
    assert chart.run_sync(limits=Limits(loops=4)).state["n"] == 5


def test_without_limits_a_thousand_passes_are_allowed():
    chart = flow_chart("c", counting(1001), id="body").loop_to("body").build()
    assert chart.run_sync().state["n"] == 1001
    error = failing(flow_chart("c", counting(1002), id="body").loop_to("body").build())
    assert "1000 times" in str(error)


def test_each_target_has_the_limit_for_itself():
    builder = flow_chart("c", counting(9), id="a")
    decider = builder.add_decider("D", lambda s: "x" if s["n"] % 2 else "y", id="d")
    decider.branch("x", lambda s: 1, loop_to="a").branch("y", lambda s: 1, loop_to="d")
    chart = decider.end().build()
    error = failing(chart, limits=Limits(loops=3))
    assert error.where == "d"
    assert [text for _, text in loops(error.run)].count("Went back to d, pass 2") == 1


def test_the_limit_ends_a_whole_run_from_inside_a_branch_and_every_slot_says_so():
    each = flow_chart("each", lambda s: None, id="e").loop_to("e").build()
    chart = (
        flow_chart("c", lambda s: None, id="load")
        .add_parallel_for_each(
            "E", id="each", items=lambda s: [1, 2], branch=each, max_branches=2, into="out"
        )
        .build()
    )
    error = failing(chart, limits=Limits(loops=2))
    assert error.code == "loop_limit"
    assert [slot.reason for slot in error.run.slots("each")] == [
        "a limit ended the run while it ran",
        "the run ended before it was reached",
    ]


@pytest.mark.parametrize("bad", [0, -1, True, 1.5, "3", None])
def test_limits_of_loops_and_depth_are_whole_numbers_from_one(bad):
    for name in ("loops", "depth"):
        with pytest.raises(ChartError, match="whole number from 1") as caught:
            Limits(**{name: bad})
        assert caught.value.where == name


# -- what can be declared ----------------------------------------------------------------------


def problems(builder):
    with pytest.raises(ChartError) as caught:
        builder.build()
    return [(problem.where, problem.message, problem.fix) for problem in caught.value.problems]


@pytest.mark.parametrize("target", ["later", "a-branch", "Count", "nothing", "", None, 5])
def test_a_loop_goes_to_a_stage_before_it(target):
    decider = flow_chart("c", lambda s: 1, id="first").add_decider("D", lambda s: "go", id="d")
    decider.branch("go", lambda s: 1, loop_to=target if target is not None else "None")
    decider.branch("a-branch", lambda s: 1)
    found = problems(decider.end().add_function("L", lambda s: 1, id="later"))
    assert [where for where, _, _ in found] == ["'go'"]
    assert "no stage of the chart before it" in found[0][1]
    assert found[0][2]


def test_a_near_miss_is_named():
    found = problems(flow_chart("c", lambda s: 1, id="first").loop_to("frist"))
    assert found[0][0] == "loop_to('frist')"
    assert "did you mean 'first'" in found[0][2]


def test_nothing_may_follow_a_loop_and_a_chart_loops_once():
    builder = flow_chart("c", lambda s: 1, id="a").loop_to("a")
    found = problems(builder.add_function("B", lambda s: 1, id="b"))
    assert [(where, message) for where, message, _ in found] == [
        ("'b'", "comes after the loop to 'a', and so would never run")
    ]
    assert "branch of a decider" in found[0][2]
    builder = flow_chart("c", lambda s: 1, id="a").loop_to("a").loop_to("a")
    assert "already goes back to 'a'" in problems(builder)[0][1]


@pytest.mark.parametrize("kind", ["add_fork", "add_selector"])
def test_branches_side_by_side_cannot_go_back(kind):
    more = {"judge": lambda s: []} if kind == "add_selector" else {}
    owner = getattr(flow_chart("c", lambda s: 1, id="a"), kind)("F", id="f", **more)
    found = problems(owner.branch("x", lambda s: 1, loop_to="a").end())
    assert found[0][0] == "'x'"
    assert "cannot go back" in found[0][1]


def test_loops_are_edges_of_the_structure_and_lead_on_from_no_stage():
    decider = flow_chart("c", lambda s: 1, id="a").add_decider("D", lambda s: "no", id="d")
    decider.branch("no", lambda s: 1, loop_to="a").branch("yes", lambda s: 1)
    chart = decider.end().add_function("Z", lambda s: 1, id="z").loop_to("d").build()
    edges = {(edge.source, edge.target, edge.kind) for edge in chart.structure.edges}
    assert {("no", "a", "loop"), ("z", "d", "loop"), ("yes", "z", "next")} <= edges
    assert ("no", "z", "next") not in edges
    assert chart.structure.node("no").detail["loop_to"] == "a"


def test_the_outline_tells_how_often_a_run_went_back():
    chart = flow_chart("c", counting(4), id="body").loop_to("body").build()
    assert "went back 3 times" in chart.run_sync().walk.view().sections[0].parts[0].summary
