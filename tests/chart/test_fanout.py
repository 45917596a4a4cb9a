"""Fan-outs: which items run, how many at once, what each leaves, and what stays apart."""

from __future__ import annotations

import asyncio

import pytest

import runbook_nb as rb
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.fanout import BREATH, layout_of
from runbook_nb.errors import ChartError


def branch(fn, **more):
    return flow_chart("b", fn, id="b", **more).build()


def fan(items, each, *, first=lambda s: None, **more):
    options = {"max_branches": 1000, "into": "out"} | more
    return (
        flow_chart("c", first, id="start")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=items if callable(items) else lambda s: items,
            branch=each,
            **options,
        )
        .add_function("After", lambda s: s.set("got", len(s["out"])), id="after")
        .build()
    )


def statuses(run):
    return [slot.status for slot in run.slots("each")]


def test_each_item_runs_apart_and_slots_come_in_item_order():
    def work(scope):
        scope["seen"] = sorted(scope)
        scope["n"] = scope.args["item"] * 10

    run = fan([3, 1, 2], branch(work), first=lambda s: s.set("outer", 1)).run_sync()
    assert [(s.index, s.item, s.value) for s in run.slots("each")] == [
        (0, 3, {"seen": [], "n": 30}),
        (1, 1, {"seen": [], "n": 10}),
        (2, 2, {"seen": [], "n": 20}),
    ]
    assert run.state["got"] == 3


@pytest.mark.parametrize("value", [0, False, "", [], {}])
def test_what_a_branch_returns_is_its_value_even_when_it_is_empty(value):
    run = fan([1], branch(lambda s: s.set("n", 1) or value)).run_sync()
    assert run.slots("each")[0].value == value


def test_items_past_the_cap_keep_a_slot_that_says_so():
    run = fan([1, 2, 3], branch(lambda s: 1), max_branches=2).run_sync()
    assert statuses(run) == ["ok", "ok", "not_reached"]
    assert run.slots("each")[2].reason == "past the cap of 2"
    assert "2 of 3 items began a branch; 1 past the cap of 2 did not" in str(
        [row.text for row in run.walk]
    )
    assert run.fan_outs[0].past_cap == 1


@pytest.mark.parametrize("items", [[], (), None])
def test_no_item_is_no_branch_and_no_fork_row(items):
    run = fan(items, branch(lambda s: 1)).run_sync()
    assert list(run.state["out"]) == []
    assert run.state["got"] == 0
    assert "fork" not in [row.type for row in run.walk]


def test_slots_of_one_fan_out_may_be_the_items_of_another():
    chart = (
        flow_chart("c", lambda s: None, id="s")
        .add_parallel_for_each(
            "A",
            id="a",
            items=lambda s: [1, 2],
            branch=branch(lambda s: s.args["item"]),
            max_branches=2,
            into="first",
        )
        .add_parallel_for_each(
            "B",
            id="b",
            items=lambda s: s["first"],
            branch=branch(lambda s: s.args["item"].value * 2),
            max_branches=2,
            into="second",
        )
        .build()
    )
    assert [slot.value for slot in chart.run_sync().slots("b")] == [2, 4]


@pytest.mark.parametrize("items", ["abc", {"a": 1}, {1, 2}, 5, iter([1])])
def test_items_are_a_list(items):
    with pytest.raises(ChartError, match="not a list") as caught:
        fan(items, branch(lambda s: 1)).run_sync()
    assert caught.value.code == "bad_items"
    assert caught.value.run.ended_at["stage_id"] == "each"


def test_items_may_be_async_and_its_reads_are_recorded():
    async def items(scope):
        await asyncio.sleep(0)
        return scope["rows"]

    run = fan(items, branch(lambda s: 1), first=lambda s: s.set("rows", [1])).run_sync()
    assert statuses(run) == ["ok"]
    assert "Read rows" in [row.text for row in run.walk if row.stage_id == "each"]


def test_stopping_in_items_ends_the_chart():
    run = fan(lambda s: s.stop("nothing to do"), branch(lambda s: 1)).run_sync()
    assert (run.status, run.state) == ("ok", {})


def test_a_failed_branch_is_a_failed_slot_with_its_reason():
    def work(scope):
        scope["half"] = 1
        if scope.args["item"] == 2:
            raise ValueError("two")

    run = fan([1, 2, 3], branch(work)).run_sync()
    assert statuses(run) == ["ok", "failed", "ok"]
    slot = run.slots("each")[1]
    assert (slot.value, slot.reason) == (None, "ValueError: two in stage 'b'")
    assert run.status == "ok"


def test_fail_fast_fails_the_run_with_the_branchs_own_error():
    def work(scope):
        if scope.args["item"] == 2:
            raise ValueError("two")

    with pytest.raises(ValueError, match="two") as caught:
        fan([1, 2, 3], branch(work), fail_fast=True).run_sync()
    assert statuses(caught.value.run) == ["ok", "failed", "not_reached"]
    assert caught.value.run.slots("each")[2].reason == "the run ended before it was reached"


# -- how many at once --------------------------------------------------------------------------


@pytest.mark.parametrize("bound", [1, 3, 16])
def test_the_bound_on_concurrent_branches_is_reached_and_never_passed(bound):
    now, most, tasks = 0, 0, 0

    async def work(scope):
        nonlocal now, most, tasks
        now += 1
        most, tasks = max(most, now), max(tasks, len(asyncio.all_tasks()))
        for _ in range(scope.args["item"] % 4):
            await asyncio.sleep(0)
        now -= 1

    asyncio.run(fan(list(range(40)), branch(work), max_concurrency=bound).run())
    assert most == bound
    assert tasks == 1 + bound


def test_sync_branches_let_others_run_now_and_then():
    turns = []

    async def main():
        async def other():
            while True:
                turns.append(1)
                await asyncio.sleep(0)

        task = asyncio.ensure_future(other())
        await fan(list(range(4 * BREATH)), branch(lambda s: None), max_branches=9999).run()
        task.cancel()

    asyncio.run(main())
    assert len(turns) >= 4


def test_a_few_async_branches_among_many_do_not_starve_the_others():
    async def wait():
        await asyncio.sleep(0)

    turns = []

    async def main():
        async def other():
            while True:
                turns.append(1)
                await asyncio.sleep(0)

        task = asyncio.ensure_future(other())
        work = branch(lambda s: wait() if s.args["item"] == 0 else None)
        run = await fan(list(range(4 * BREATH)), work, max_branches=9999).run()
        task.cancel()
        return run

    assert asyncio.run(main()).fan_outs[0].ok == 4 * BREATH
    assert len(turns) >= 4


def test_the_sum_over_nested_fan_outs_is_each_ones_own():
    inner = fan(lambda s: list(range(s.args["item"])), branch(lambda s: s.args["item"]))
    run = fan([0, 1, 3], inner).run_sync()
    assert [slot.value["got"] for slot in run.slots("each")] == [0, 1, 3]
    ids = [row.runtime_stage_id for row in run.walk if row.stage_id == "b"]
    assert [i for i in ids if i.endswith("b#0")][:1] == ["each~1/each~0/b#0"]
    assert len([row for row in run.walk if row.type == "stage" and row.stage_id == "b"]) == 4


# -- charts made per item ----------------------------------------------------------------------


def test_closures_over_the_item_keep_working():
    run = fan(["a", "b"], lambda item, index: branch(lambda s: f"{item}{index}")).run_sync()
    assert [slot.value for slot in run.slots("each")] == ["a0", "b1"]


def test_charts_made_alike_share_their_shape_also_with_rules_of_their_own():
    def make(item, index):
        rules = rb.RuleSet("r", "1", [rb.Rule({"n": {"gt": 1}}, "big")], default="small")
        return (
            flow_chart("b", lambda s: s.set("n", item), id="b")
            .add_decider("D", id="d", rules=rules)
            .branch("big", lambda s: None)
            .branch("small", lambda s: None)
            .end()
            .build()
        )

    run = fan([0, 5, 0, 5], make).run_sync()
    assert len(run.log.shapes) == 2
    assert len(run.rule_sets()) == 1
    assert run.fan_outs[0].by_branch == {"small": 2, "big": 2}


def test_rules_that_differ_per_item_stay_apart():
    def make(item, index):
        return (
            flow_chart("b", lambda s: s.set("n", 3), id="b")
            .add_decider(
                "D",
                id="d",
                rules=rb.RuleSet("r", "1", [rb.Rule({"n": {"gt": item}}, "big")], default="small"),
            )
            .branch("big", lambda s: None)
            .branch("small", lambda s: None)
            .end()
            .build()
        )

    run = fan([1, 2, 1], make).run_sync()
    assert [made.decision.cause for made in run.decisions] == ["n 3 > 1", "n 3 > 2", "n 3 > 1"]
    assert len(run.rule_sets()) == 2


def test_functions_that_only_share_a_name_are_not_taken_for_one_another():
    def make(item, index):
        def rule(facts):
            return facts["n"] == item

        return (
            flow_chart("b", lambda s: s.set("n", 1), id="b")
            .add_decider("D", id="d", rules=rb.RuleSet("r", "1", [rb.Rule(rule, "x")], default="x"))
            .branch("x", lambda s: None)
            .end()
            .build()
        )

    run = fan([1, 2], make).run_sync()
    assert len(run.rule_sets()) == 2


@pytest.mark.parametrize("made", [None, 5, flow_chart("b", print, id="b")])
def test_a_factory_that_gives_no_chart_fails_that_item(made):
    run = fan([1, 2], lambda item, index: made if item == 1 else branch(lambda s: 1)).run_sync()
    assert statuses(run) == ["failed", "ok"]
    assert "not a built chart" in run.slots("each")[0].reason


def test_a_factory_that_raises_or_is_async_fails_that_item():
    async def later(item, index):
        return branch(lambda s: 1)

    run = fan([1], later).run_sync()
    assert "gave coroutine" in run.slots("each")[0].reason

    def broken(item, index):
        raise KeyError("no such chart")

    run = fan([1], broken).run_sync()
    assert statuses(run) == ["failed"]
    row = next(row for row in run.walk if row.type == "error")
    assert (row.stage_id, row.runtime_stage_id, row.subflow) == ("each", None, "each~0")


def test_layouts_differ_by_ids_names_branches_and_what_lies_inside():
    plain = branch(lambda s: 1)
    assert layout_of(plain) == layout_of(branch(lambda s: 2))
    others = [
        flow_chart("b", print, id="x").build(),
        flow_chart("x", print, id="b").build(),
        fan([1], plain),
        fan([1], flow_chart("b", print, id="y").build()),
        fan([1], lambda i, n: plain),
    ]
    layouts = [layout_of(chart) for chart in (plain, *others)]
    assert len(set(layouts)) == len(layouts)


def test_a_slot_names_the_way_its_branch_took():
    def route(scope):
        return "big" if scope.args["item"] > 2 else "small"

    each = (
        flow_chart("one", lambda scope: None, id="look")
        .add_decider("Size", route, id="size")
        .branch("big", lambda scope: None)
        .branch("small", lambda scope: None)
        .end()
        .build()
    )
    chart = (
        flow_chart("c", lambda scope: scope.set("ns", [1, 3]), id="ns")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda scope: scope["ns"],
            branch=each,
            max_branches=9,
            into="o",
        )
        .build()
    )
    run = chart.run_sync()
    assert [slot.branch for slot in run.slots("each")] == ["small", "big"]
    assert run.slots("each")[0].to_dict()["branch"] == "small"


def test_an_item_for_which_no_chart_could_be_made_is_told_in_its_branch_also_inside_a_mount():
    def broken(item, index):
        raise KeyError("no such chart")

    outer = (
        flow_chart("outer", lambda s: None, id="a")
        .add_subchart("Inner", fan([1], broken), id="sub")
        .build()
    )
    row = next(row for row in outer.run_sync().walk if row.type == "error")
    assert (row.stage_id, row.runtime_stage_id, row.subflow) == ("each", None, "sub/each~0")


def test_the_place_of_an_error_is_where_it_arose_also_when_siblings_are_ended_with_it():
    async def work(scope):
        await asyncio.sleep(0)
        if scope.args["item"] == 2:
            raise OSError("no route")
        await asyncio.Event().wait()

    with pytest.raises(OSError, match="no route") as caught:
        fan([1, 2, 3], branch(work), fail_fast=True).run_sync()
    assert caught.value.run.ended_at["runtime_stage_id"] == "each~1/b#0"
