"""Blocking stages: a thread of their own, a scope that is safe there, and runs that do not wait."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

import runbook_nb as rb
from runbook_nb._stop import Stop
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.model import Limits, Retry
from runbook_nb.chart.scope import interrupt
from runbook_nb.chart.threads import in_thread
from runbook_nb.errors import LimitReached, RunCancelled, ScopeClosed


def blocking(fn, **more):
    return flow_chart("c", fn, id="work", blocking=True, **more).build()


def name_of_thread(scope):
    scope["thread"] = threading.current_thread().name
    return scope["thread"]


def test_every_kind_of_stage_that_calls_a_function_may_run_in_a_thread():
    rules = [rb.Rule({"thread": {"exists": True}}, "a")]
    builder = (
        flow_chart("c", name_of_thread, id="first", blocking=True)
        .add_function("F", name_of_thread, id="f", blocking=True)
        .add_streaming("S", lambda s: s.stream(name_of_thread(s)), id="s", blocking=True)
        .add_pausable("P", lambda s: None, lambda s, a: None, id="p", blocking=True)
    )
    decider = builder.add_decider("D", lambda s: name_of_thread(s) and "x", id="d", blocking=True)
    selector = (
        decider.branch("x", name_of_thread, blocking=True)
        .end()
        .add_selector("E", lambda s: rb.select(s, rules), id="e", blocking=True)
    )
    fork = selector.branch("a", name_of_thread, blocking=True).end().add_fork("G", id="g", into="o")
    run = fork.branch("b", name_of_thread, blocking=True).end().build().run_sync()
    assert run.status == "ok"
    assert run.state["thread"] == "runbook_nb-blocking"
    assert run.state["o"][0].value == "runbook_nb-blocking"


def test_stages_in_threads_do_not_hold_up_the_loop():
    async def main():
        release = threading.Event()
        turns = []

        async def other():
            for _ in range(5):
                turns.append(1)
                await asyncio.sleep(0)
            release.set()

        other_task = asyncio.ensure_future(other())
        run = await blocking(lambda s: release.wait(5)).run()
        await other_task
        return run, turns

    run, turns = asyncio.run(main())
    assert (run.result, len(turns)) == (True, 5)


def test_stages_of_branches_run_side_by_side_in_threads():
    barrier = threading.Barrier(3, timeout=5)
    each = flow_chart("each", lambda s: barrier.wait() >= 0, id="e", blocking=True).build()
    chart = (
        flow_chart("c", lambda s: None, id="a")
        .add_parallel_for_each(
            "E", id="each", items=lambda s: [1, 2, 3], branch=each, max_branches=3, into="o"
        )
        .build()
    )
    assert [slot.value for slot in chart.run_sync().state["o"]] == [True] * 3


def test_what_a_stage_in_a_thread_reads_and_writes_is_on_the_record():
    def work(scope):
        scope.update({"a": 1, "b": [1]})
        scope.append("b", scope.read("a"))
        scope.merge("m", {"x": scope.args["n"]})
        scope.emit("done", len(scope))
        return scope.get("a")

    threaded, plain = blocking(work), flow_chart("c", work, id="work").build()
    one, other = threaded.run_sync({"n": 5}), plain.run_sync({"n": 5})
    assert one.walk == other.walk
    assert one.state == other.state == {"a": 1, "b": [1, 1], "m": {"x": 5}}


def test_context_variables_reach_the_thread():
    variable = contextvars.ContextVar("variable", default="unset")

    async def main():
        variable.set("set")
        return await blocking(lambda s: variable.get()).run()

    assert asyncio.run(main()).result == "set"


def test_a_stage_in_a_thread_may_fail_be_tried_again_stop_and_ask():
    calls = []

    def shaky(scope):
        calls.append(1)
        scope["tries"] = len(calls)
        if len(calls) < 2:
            raise OSError("no route")

    assert blocking(shaky, retry=Retry(2)).run_sync().state == {"tries": 2}
    chart = flow_chart("c", lambda s: s.stop("enough"), id="a", blocking=True)
    run = chart.add_function("B", lambda s: s.set("b", 1), id="b").build().run_sync()
    assert (run.status, run.state) == ("ok", {})
    chart = blocking(lambda s: interrupt(s, "go on?"))
    run = chart.run_sync()
    assert run.pause["reason"] == "go on?"
    assert chart.resume_sync(run.checkpoint, "yes").result == "yes"


@pytest.mark.parametrize(
    "use",
    [
        lambda s: s.set("late", 1),
        lambda s: s.update({"late": 1, "later": 2}),
        lambda s: s["first"],
        lambda s: s.read("first"),
        lambda s: s.append("late", 1),
        lambda s: s.stream("late"),
        lambda s: s.emit("late"),
        lambda s: s.stop(),
        lambda s: interrupt(s, "late?"),
    ],
)
@pytest.mark.parametrize("how", ["signal", "limit"])
def test_a_thread_that_is_left_behind_can_do_nothing_more(use, how):
    release, refused = threading.Event(), threading.Event()
    stop = Stop()

    def work(scope):
        scope["first"] = 1
        if how == "signal":
            stop.set("window closed")
        release.wait(5)
        try:
            use(scope)
        except ScopeClosed:
            refused.set()

    chart = (
        flow_chart("c", lambda s: None, id="a")
        .add_streaming("Work", work, id="work", blocking=True)
        .build()
    )
    options = {"signal": stop} if how == "signal" else {"limits": Limits(stage_seconds=0.05)}
    with pytest.raises((RunCancelled, LimitReached)) as caught:
        chart.run_sync(**options)
    before = caught.value.run.walk.to_dicts()
    release.set()
    assert refused.wait(5)
    assert caught.value.run.walk.to_dicts() == before
    assert caught.value.run.state == {"first": 1}


def test_scopes_used_by_several_threads_of_one_stage_lose_nothing():
    def work(scope):
        def write(number):
            for turn in range(200):
                scope[f"k{number}"] = turn
                scope.append("all", number)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    run = blocking(work).run_sync()
    assert sorted(run.state["all"]) == sorted([0, 1, 2, 3] * 200)
    assert len(run.walk) == 1 + 4 * 200 * 2
    assert [run.state[f"k{number}"] for number in range(4)] == [199] * 4


def test_a_function_in_a_thread_gives_what_it_gives_and_raises_what_it_raises():
    async def later(value):
        return value

    assert asyncio.run(in_thread(later, 3)) == 3

    def stray():
        raise StopIteration(1)

    with pytest.raises(RuntimeError, match="raised StopIteration"):
        asyncio.run(in_thread(stray))
    with pytest.raises(ZeroDivisionError):
        asyncio.run(in_thread(lambda: 1 / 0))
