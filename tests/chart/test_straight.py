"""Branches that run straight through: the record is the engine's, whatever a stage does.

Whatever is run here is run twice, with the loop and without it, and everything that is served of
the two runs has to be the same bytes.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from typing import Any

import pytest
from drawn_charts import (
    ENDING,
    ORDINARY,
    ChartSpec,
    Decider,
    Fan,
    Work,
    charts,
    run_chart,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from served_runs import ANY, everything, fans_of, held, plain

import runbook_nb as rb
from runbook_nb._frozen import FrozenDict, freeze
from runbook_nb._stop import Stop
from runbook_nb.chart import fanout
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.fanout import BREATH
from runbook_nb.chart.model import Limits
from runbook_nb.chart.scope import ScopeClosed, interrupt
from runbook_nb.chart.straight import Straight, leading
from runbook_nb.record.slots import Slot, Slots
from runbook_nb.record.subjects import subjects_of

SIZES = rb.RuleSet(
    "sizes",
    "v1",
    [rb.Rule({"n": {"eq": 0}}, "none"), rb.Rule({"n": {"gt": 5}, "kind": {"ne": "x"}}, "big")],
    default=rb.Default("small", label="no more than five"),
)


@contextmanager
def by_the_engine():
    """Leave every branch to the engine."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fanout, "straight_through", lambda items: None)
        yield


@contextmanager
def handed_over():
    """Note which branches are handed over, and whether a stage of theirs had begun."""
    noted: list[tuple[int, bool]] = []
    run = Straight.run

    def noting(self, index, end):
        at, begun = run(self, index, end)
        if begun is not None:
            noted.append((at, begun.taken is not None))
        return at, begun

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Straight, "run", noting)
        yield noted


def branch(work, *, judge=None, rules=SIZES, big=None, after=None, **more):
    built = flow_chart("one", work, id="work", **more)
    if judge is None:
        built = built.add_decider("Size", id="size", rules=rules)
    else:
        built = built.add_decider("Size", judge, id="size")
    built = built.branch("big", big or (lambda s: s.set("word", "big")))
    built = built.branch("small", lambda s: s.set("word", "small"))
    built = built.branch("none", lambda s: {"word": "none"}).end()
    if after is not None:
        built = built.add_function("After", after, id="after")
    return built.build()


def fan(one, items=20, **more):
    rows = (
        [{"n": n, "kind": "xy"[n % 2]} for n in range(items)] if isinstance(items, int) else items
    )
    return (
        flow_chart("c", lambda s: None, id="start")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: rows,
            branch=one,
            max_branches=more.pop("max_branches", 10_000),
            into="out",
            **more,
        )
        .add_function("End", lambda s: s.set("seen", len(s["out"])), id="end")
        .build()
    )


class Odd(Enum):
    """What a stage may give that is no plain value."""

    ONE = 1


def take(scope):
    scope.update(scope.args["item"])


def ran(make, **options):
    """Run a chart, whatever comes of it."""
    try:
        return make().run_sync(**options)
    except BaseException as error:
        if not hasattr(error, "run"):
            raise
        return error.run


def same_both_ways(make, **options):
    """Run a chart both ways; give the run, and what was handed over in it."""
    with handed_over() as noted:
        run = ran(make, **options)
    with by_the_engine():
        other = ran(make, **options)
    assert everything(run) == everything(other)
    assert [plain(Slots(f)) for f in fans_of(run)] == [plain(Slots(f)) for f in fans_of(other)]
    for one, two in zip(fans_of(run), fans_of(other), strict=True):
        assert list(one.statuses) == list(two.statuses)
        assert [one.shapes[n] < 0 for n in range(len(one))] == [n < 0 for n in two.shapes]
    return run, noted


# -- the law -----------------------------------------------------------------------------------


@given(ANY)
@held(150)
def test_random_charts_leave_the_bytes_that_the_engine_leaves(spec):
    run = run_chart(spec)
    with by_the_engine():
        other = run_chart(spec)
    assert everything(run) == everything(other)


def flat(spec: ChartSpec) -> ChartSpec:
    """Leave a chart only what may run straight through, stages that ask and fail included."""
    kept = [stage for stage in spec.stages if isinstance(stage, Work | Decider)]
    stages = [
        replace(stage, rounds=0) if isinstance(stage, Decider) and stage.rounds else stage
        for stage in kept
    ]
    return ChartSpec(tuple(stages))


#: Fan-outs whose branches are mostly functions and rules.
FANS = st.builds(
    lambda inner, count, fail_fast: ChartSpec((Fan(count, 5, inner, fail_fast=fail_fast),)),
    st.lists(charts((*ORDINARY, *ENDING), asks=1, depth=1), min_size=1, max_size=3).map(
        lambda drawn: flat(ChartSpec(tuple(s for spec in drawn for s in spec.stages)))
    ),
    st.integers(1, 6),
    st.booleans(),
)


@given(FANS)
@held(150)
def test_random_branches_leave_the_bytes_that_the_engine_leaves(spec):
    run = run_chart(spec)
    with by_the_engine():
        other = run_chart(spec)
    assert everything(run) == everything(other)
    told = [Counter(repr(plain(Slots(one))) for one in fans_of(each)) for each in (run, other)]
    assert told[0] == told[1]


def test_random_branches_run_straight_through_and_are_handed_over():
    found: Counter[str] = Counter()
    runs = Straight.run

    def counted(self, index, end):
        at, begun = runs(self, index, end)
        found["through"] += at - index
        if begun is not None:
            found["begun" if begun.taken is not None else "before"] += 1
            found["failed"] += begun.error is not None
        return at, begun

    @given(FANS)
    @settings(held(200), database=None, derandomize=True)
    def count(spec):
        run_chart(spec)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Straight, "run", counted)
        count()
    assert all(found[kind] > 10 for kind in ("through", "begun", "failed")), found


# -- whatever a stage does ---------------------------------------------------------------------


def at(number, then, otherwise=take):
    """Make a stage that does something else for one item."""

    def work(scope):
        return (then if scope.args["index"] == number else otherwise)(scope)

    return work


def fails(scope):
    scope["before"] = 1
    raise ValueError("no route")


def asks(scope):
    scope["before"] = 1
    scope["n"] = interrupt(scope, "go on?")


def stops(scope):
    take(scope)
    scope.stop("enough")


def writes_everything(scope):
    take(scope)
    scope.append("list", 1)
    scope.append("list", {"deep": [1]})
    scope.merge("map", {"a": {"b": 1}})
    scope.merge("map", {"a": {"c": 2}})
    scope["gone"] = 1
    scope.delete("gone")
    scope.emit("event", [1])
    scope.set("hidden", "s3cret", secret=True)
    assert sorted(scope) == ["hidden", "kind", "list", "map", "n"]
    assert "kind" in scope
    return scope.read("map.a.b")


def grows(scope):
    take(scope)
    scope.append("kind_list", "a")


WORK = {
    "fails": fails,
    "asks": asks,
    "stops": stops,
    "writes": writes_everything,
    "grows": grows,
    "generator": lambda s: (n for n in "ab"),
    "stop iteration": lambda s: next(iter(())),
    "odd value": lambda s: take(s) or Odd.ONE,
    "bad key": lambda s: s.update({"a": 1, 2: 3}),
    "no mapping": lambda s: s.update([1]),
    "nested": lambda s: s.update({"n": 7, "kind": {"deep": [1, {"a": 2}]}}),
    "missing": lambda s: s["nothing"],
    "signal": lambda s: (_ for _ in ()).throw(rb.RunCancelled("stop that")),
    "keyboard": lambda s: (_ for _ in ()).throw(KeyboardInterrupt()),
}


@pytest.mark.parametrize("kind", WORK)
def test_one_stage_that_does_something_else(kind):
    run, noted = same_both_ways(lambda: fan(branch(at(7, WORK[kind]))))
    ordinary = {"writes", "grows", "nested"}
    assert noted == ([] if kind in ordinary else [(7, True)])
    assert run.fan_outs[0].ok >= 7


@pytest.mark.parametrize("kind", WORK)
def test_every_stage_does_something_else(kind):
    same_both_ways(lambda: fan(branch(WORK[kind])))


@pytest.mark.parametrize("kind", ["fails", "asks", "stops", "grows", "odd value", "keyboard"])
def test_the_stage_of_a_branch_and_one_after_it_do_something_else(kind):
    _, noted = same_both_ways(lambda: fan(branch(take, big=at(13, WORK[kind]))))
    assert noted == ([] if kind == "grows" else [(13, True)])
    same_both_ways(lambda: fan(branch(take, after=at(13, WORK[kind]))))


@pytest.mark.parametrize("kind", ["fails", "asks", "keyboard"])
def test_failing_fast(kind):
    run, _ = same_both_ways(lambda: fan(branch(at(7, WORK[kind])), fail_fast=True))
    assert run.fan_outs[0].not_reached + run.fan_outs[0].failed > 0


@pytest.mark.parametrize("value", [0, "", False, [1, [2]], {"a": {"b": 1}}, (1, [2]), {1, 2}, b"x"])
def test_what_a_branch_gives_is_its_value(value):
    run, noted = same_both_ways(lambda: fan(branch(take, after=lambda s: value)))
    assert noted == []
    assert {repr(slot.value) for slot in run.slots("each")} == {repr(freeze(value))}


def test_a_result_that_cannot_be_recorded_is_a_failed_branch():
    knot: list[Any] = []
    knot.append(knot)
    run, noted = same_both_ways(lambda: fan(branch(take, after=at(3, lambda s: knot))))
    assert noted == [(3, True)]
    assert "contains itself" in run.slots("each")[3].reason


@pytest.mark.parametrize("made", ["decision", "word", "other", "none", "fails", "stops", "selects"])
def test_a_decider_of_its_own_judging(made):
    def judge(scope):
        if made == "decision":
            return rb.decide(scope, SIZES)
        if made == "fails" and scope["n"] == 4:
            raise ValueError("cannot tell")
        if made == "stops" and scope["n"] == 4:
            scope.stop("no need")
        if made == "selects":
            return ["big"]
        word = "big" if scope["n"] > 5 else "small"
        return {"other": "huge", "none": None}.get(made, word) if scope["n"] == 4 else word

    _, noted = same_both_ways(lambda: fan(branch(take, judge=judge)))
    few = {"decision": [], "word": [], "selects": [(n, True) for n in range(20)]}
    assert noted == few.get(made, [(4, True)])


def test_rules_of_every_outcome():
    rows = [
        *({"n": n, "kind": kind} for n in (0, 3, 9, 2.5, float("nan"), None, "9") for kind in "xy"),
        {"kind": "y"},
        {"n": [1], "kind": None},
        {"n": True, "kind": 1},
    ]
    rules = [
        SIZES,
        rb.RuleSet("s", "v1", [rb.Rule({"n": {"gt": 5}}, "big")]),  # no default
        rb.RuleSet("s", "v1", [rb.Rule({"n": {"gt": 5}}, "big")], "small", unreadable="raise"),
        rb.RuleSet(
            "s", "v1", [rb.Rule({"n": {"gt": 5}}, "big")], "small", unreadable={"branch": "none"}
        ),
        rb.RuleSet("s", "v1", [rb.Rule({"kind.deep": {"exists": True}}, "big")], "small"),
        rb.RuleSet("s", "v1", [rb.Rule(lambda facts: facts["n"], "big")], "small"),
    ]
    for one in rules:
        same_both_ways(lambda one=one: fan(branch(take, rules=one), rows))


def test_outcomes_are_plain_numbers_however_they_were_found():
    rules = rb.RuleSet("t", "v1", [rb.Rule({"n": {"gt": 5}}, "big")], "small")
    run = fan(branch(take, rules=rules)).run_sync()
    assert {type(code) for made in run.decisions for code in made.decision.path.codes} == {int}


def test_stages_of_other_kinds_further_on_are_left_to_the_engine():
    inner = flow_chart("inner", lambda s: s.set("x", 1), id="in").build()

    def make():
        one = (
            flow_chart("one", take, id="work")
            .add_subchart("M", inner, id="m", inputs={"n": "n"}, outputs={"x": "x"})
            .add_function("Then", lambda s: s.set("y", s["x"]), id="then")
        )
        return fan(one.build())

    run, noted = same_both_ways(make)
    assert noted == [(n, False) for n in range(20)]
    assert run.slots("each")[5].value == {"n": 5, "kind": "y", "x": 1, "y": 1}


def test_a_chart_that_begins_otherwise_or_goes_back_is_none_of_its_business():
    def stages_of(chart):
        run = []
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(
                fanout, "straight_through", lambda items: run.append(leading(items.chart))
            )
            fan(chart, 1).run_sync()
        return [plan.stage.id for plan in run[0]]

    assert stages_of(branch(take)) == ["work", "size"]
    assert stages_of(branch(take, blocking=True)) == []
    assert stages_of(flow_chart("l", stops, id="a").loop_to("a").build()) == []


def test_an_async_stage_is_handed_over_once_and_shared():
    async def later(scope):
        await asyncio.sleep(0)
        take(scope)

    _, noted = same_both_ways(lambda: fan(branch(at(5, later))))
    assert noted == [(5, True)]


def test_pausing_in_the_middle_and_going_on():
    def chart():
        return fan(branch(at(7, asks)))

    run = ran(chart)
    assert run.status == "paused"
    done = chart().resume_sync(run.checkpoint, 9)
    with by_the_engine():
        other = chart().resume_sync(ran(chart).checkpoint, 9)
    assert everything(done) == everything(other)
    assert done.slots("each")[7].value == {"before": 1, "n": 9}


def test_a_fan_out_visited_again_goes_on_counting():
    def make():
        def gate(scope):
            scope["turn"] = scope.get("turn", 0) + 1
            if scope["turn"] > 2:
                scope.stop("done")

        return (
            flow_chart("c", gate, id="gate")
            .add_parallel_for_each(
                "Each",
                id="each",
                items=lambda s: [{"n": n} for n in range(4)],
                branch=branch(at(2, fails)),
                max_branches=4,
                into="out",
            )
            .loop_to("gate")
            .build()
        )

    run, _ = same_both_ways(make)
    assert len({row.runtime_stage_id for row in run.walk if row.type == "stage"}) > 20


@pytest.mark.parametrize("stage", ["work", "size", "big"])
def test_a_run_told_to_stop_stops_before_the_next_stage(stage):
    def make():
        stop = Stop()

        def tell(scope):
            take(scope)
            stop.set("enough")

        work = at(9, tell) if stage == "work" else take
        big = at(9, lambda s: stop.set("enough"), lambda s: None) if stage == "big" else None

        def judge(scope):
            if scope["n"] == 9:
                stop.set("enough")
            return "big" if scope["n"] > 5 else "small"

        one = branch(work, big=big, judge=judge if stage == "size" else None)
        chart = fan(one)
        return type("Bound", (), {"run_sync": lambda self: chart.run_sync(signal=stop)})()

    run, noted = same_both_ways(make)
    assert run.status == "cancelled"
    assert len(noted) == 1
    assert [slot.status for slot in run.slots("each")[:9]] == ["ok"] * 9


def test_limits_that_are_kept_change_nothing():
    same_both_ways(lambda: fan(branch(take)), limits=Limits(seconds=1000))
    same_both_ways(lambda: fan(branch(take)), limits=Limits(stage_seconds=1000))


def test_others_run_meanwhile():
    turns = []

    async def main():
        async def other():
            while True:
                turns.append(len(done))
                await asyncio.sleep(0)

        done: list[int] = []
        task = asyncio.ensure_future(other())
        await fan(branch(lambda s: take(s) or done.append(1)), 4 * BREATH).run()
        task.cancel()

    asyncio.run(main())
    assert {BREATH, 2 * BREATH, 3 * BREATH} <= set(turns)


# -- scopes ------------------------------------------------------------------------------------


def uses(scope):
    """Try every use of a scope; give those that were not refused."""
    tried = {
        "read": lambda: scope["n"],
        "get": lambda: scope.get("n"),
        "write": lambda: scope.__setitem__("n", 1),
        "set": lambda: scope.set("n", 1),
        "update": lambda: scope.update({"n": 1}),
        "append": lambda: scope.append("list", 1),
        "merge": lambda: scope.merge("map", {"a": 1}),
        "delete": lambda: scope.delete("n"),
        "emit": lambda: scope.emit("event"),
        "keys": lambda: list(scope),
        "stop": scope.stop,
        "decide": lambda: rb.decide(scope, SIZES),
    }
    allowed = []
    for name, use in tried.items():
        try:
            use()
        except ScopeClosed:
            continue
        allowed.append(name)
    return allowed


@pytest.mark.parametrize("stage", ["work", "size", "big", "after"])
def test_a_scope_kept_beyond_its_stage_refuses_every_use(stage):
    kept = []

    def keeps(scope):
        kept.append(scope)
        return "big"

    def both(scope):
        take(scope)
        kept.append(scope)

    plain_chart = branch(take, after=lambda s: None)
    made = {
        "work": lambda: branch(both),
        "size": lambda: branch(take, judge=keeps),
        "big": lambda: branch(take, judge=lambda s: "big", big=kept.append),
        "after": lambda: branch(take, after=kept.append),
    }
    run = fan(made[stage]()).run_sync()
    assert len({id(scope) for scope in kept}) == len(kept) == 20
    before = everything(run)
    assert [uses(scope) for scope in kept] == [[]] * 20
    assert everything(run) == before
    assert fan(plain_chart).run_sync().fan_outs[0].ok == 20


@pytest.mark.parametrize("hold", ["method", "closure", "generator", "error", "frame", "container"])
def test_a_scope_is_kept_by_whatever_holds_it(hold):
    kept: list[Any] = []

    def holds(scope):
        take(scope)
        if hold == "method":
            kept.append(scope.set)
        elif hold == "closure":
            kept.append(lambda key, value: scope.set(value=value, key=key))
        elif hold == "generator":
            kept.append((scope.set(k, 1) for k in "ab").send)
        elif hold == "error":
            try:
                raise ValueError("kept")
            except ValueError as error:
                kept.append(error.__traceback__.tb_frame.f_locals["scope"].set)
        elif hold == "frame":
            kept.append(sys._getframe())
        else:
            kept.append({"deep": [(scope,)]})

    run = fan(branch(holds)).run_sync()
    before = everything(run)
    for one in kept:
        use = {
            "frame": lambda one=one: one.f_locals["scope"].set("n", 1),
            "container": lambda one=one: one["deep"][0][0].set("n", 1),
            "generator": lambda one=one: one(None),
        }.get(hold, lambda one=one: one("n", 1))
        with pytest.raises(ScopeClosed):
            use()
    assert everything(run) == before


def test_a_scope_in_another_thread_is_refused_there_once_its_stage_has_ended():
    ended, refused = threading.Event(), []

    def wait(scope):
        ended.wait()
        refused.append(uses(scope))

    threads = []

    def hands_on(scope):
        take(scope)
        threads.append(threading.Thread(target=wait, args=(scope,)))
        threads[-1].start()

    run = fan(branch(hands_on)).run_sync()
    before = everything(run)
    ended.set()
    for thread in threads:
        thread.join()
    assert refused == [[]] * 20
    assert everything(run) == before


def test_input_and_items_kept_by_a_stage_stay_as_they_were():
    kept = []

    def keeps(scope):
        take(scope)
        kept.append(scope.args)

    fan(branch(keeps)).run_sync()
    assert kept == [{"item": {"n": n, "kind": "xy"[n % 2]}, "index": n} for n in range(20)]


# -- slots -------------------------------------------------------------------------------------


def test_a_slot_made_late_is_the_slot_made_at_once():
    slots = fan(branch(take)).run_sync().state["out"]
    for made in slots:
        names = ("index", "item", "status", "value", "reason", "sentence", "branch")
        at_once = Slot(*(getattr(made, name) for name in names))
        late = slots[made.index]
        assert (late, repr(late), late.to_dict()) == (at_once, repr(at_once), at_once.to_dict())
        assert isinstance(late.value, FrozenDict)
        assert not hasattr(late, "other")
    assert slots[7].sentence == slots[7].to_dict()["sentence"] is not None
    assert slots[0].value == {"word": "none"}


def test_an_item_that_a_stage_keeps_is_the_item_of_the_record():
    """What is shared in the record is told by which object it is, so the rows must be the same."""
    kept = []

    def keeps(scope):
        take(scope)
        number = scope.args["index"]
        if number % 5 == 1:
            scope["row"] = scope.args["item"]
        elif number % 5 == 2:
            scope["all"] = scope.args
        elif number % 5 == 3:
            kept.append(scope.args)
        elif number == 4:
            raise ValueError("no route")

    run, _ = same_both_ways(lambda: fan(branch(keeps)))
    (made,) = run.log.fan_outs()
    for slot in run.state["out"]:
        item = made.items[slot.index]
        assert item is slot.item
        if slot.status == "ok":
            assert slot.value.get("row", item) is item
            assert slot.value.get("all", {"item": item})["item"] is item


@pytest.mark.parametrize("subject", ["n", "kind", "nothing", None])
def test_subjects_are_read_without_making_rows(subject):
    run = fan(branch(take), subject=subject).run_sync()
    (made,) = run.log.fan_outs()
    assert made.items.kept == {}
    found = list(subjects_of(made))
    assert made.items.kept == {}
    assert found == [made.subject_of(index) for index in range(len(made))]


# -- counts ------------------------------------------------------------------------------------


def through(items, *, collecting=False):
    """Make the chart that all figures are of: three writes, two conditions, a verdict."""

    def collect(scope):
        scope["words"] = [{"n": s.item["n"], "word": s.value["word"]} for s in scope["out"]]

    one = (
        flow_chart("one", take, id="work")
        .add_decider("Size", id="size", rules=SIZES)
        .branch("big", lambda s: s.set("word", "big"))
        .branch("small", lambda s: s.set("word", "small"))
        .branch("none", lambda s: s.set("word", "none"))
        .end()
        .build()
    )
    chart = flow_chart("c", lambda s: None, id="start").add_parallel_for_each(
        "Each", id="each", items=lambda s: items, branch=one, max_branches=10**6, into="out"
    )
    return (chart.add_function("Collect", collect, id="collect") if collecting else chart).build()


def rows(count):
    return [{"n": n % 9, "kind": "y", "name": f"row-{n}"} for n in range(count)]


@pytest.mark.parametrize(("collecting", "most"), [(False, 38), (True, 46)])
def test_calls_per_subject(calls_of, collecting, most):
    few, many = (through(rows(n), collecting=collecting) for n in (1000, 2000))
    for chart in (few, many):
        asyncio.run(chart.run())
    costs = [calls_of(lambda chart=chart: asyncio.run(chart.run())) for chart in (few, many)]
    assert (costs[1] - costs[0]) / 1000 <= most


@pytest.mark.parametrize("frozen", [True, False])
def test_bytes_and_tracked_objects_per_subject(frozen):
    count = 5000
    chart = through((freeze if frozen else list)(rows(count)))
    chart.run_sync()
    gc.collect()
    before, turns = len(gc.get_objects()), gc.get_stats()[2]["collections"]
    run = chart.run_sync()
    assert gc.get_stats()[2]["collections"] - turns <= 1
    gc.collect()
    assert (len(gc.get_objects()) - before) / count <= 0.1
    (made,) = run.log.fan_outs()
    columns = (made.values, made.offsets, made.shapes, made.statuses)
    assert sum(map(sys.getsizeof, columns)) / count <= 80
    assert len(run.log.shapes) == 3


def test_no_task_is_made_for_plain_stages(monkeypatch):
    made = []

    async def main():
        loop = asyncio.get_running_loop()
        create = loop.create_task
        monkeypatch.setattr(loop, "create_task", lambda *a, **k: made.append(a) or create(*a, **k))
        await through(rows(1000), collecting=True).run()
        assert made == []
        assert loop.create_task(asyncio.sleep(0)).cancel()
        assert len(made) == 1

    asyncio.run(main())
