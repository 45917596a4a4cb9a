"""Every way a run can end, and that nothing a stage does keeps it from ending."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import sys
import textwrap
import threading

import pytest

import runbook_nb as rb
from runbook_nb._stop import Stop
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.endings import ending_of, status_of, why_not_reached
from runbook_nb.chart.model import Limits, Retry
from runbook_nb.chart.scope import interrupt
from runbook_nb.errors import LimitReached, Paused, RunCancelled, RunSignal, ScopeClosed
from runbook_nb.settings import settings


class Absent(RunSignal):
    run_status = "absent"


class Clock:
    """A timer that only moves when told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def chart_of(*stages, **more):
    """A chart of functions called s0, s1, …"""
    builder = flow_chart("c", stages[0], id="s0", **more)
    for place, stage in enumerate(stages[1:], 1):
        builder.add_function(f"S{place}", stage, id=f"s{place}")
    return builder.build()


def fan_over(items, *stages, **more):
    """A chart that fans out over items, each through the stages."""
    options = {"max_branches": 10, "into": "out"} | more
    return (
        flow_chart("c", lambda s: None, id="start")
        .add_parallel_for_each(
            "Each", id="each", items=lambda s: items, branch=chart_of(*stages), **options
        )
        .add_function("After", lambda s: s.set("after", True), id="after")
        .build()
    )


def ended(chart, error=BaseException, **options):
    """Run a chart that ends with an error; give the error and the run so far."""
    with pytest.raises(error) as caught:
        asyncio.run(chart.run(**options))
    return caught.value, caught.value.run


def fail_with(error):
    def stage(scope):
        raise error

    return stage


async def forever(scope):
    await asyncio.Event().wait()


# -- words -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ValueError(), "failed"),
        (Absent(), "absent"),
        (LimitReached(), "limited"),
        (RunCancelled(), "cancelled"),
        (Paused(), "paused"),
        (asyncio.CancelledError(), "cancelled"),
        (KeyboardInterrupt(), "cancelled"),
        (SystemExit(), "cancelled"),
        (ExceptionGroup("g", [ValueError(), ExceptionGroup("h", [LimitReached()])]), "limited"),
        (ExceptionGroup("g", [ValueError()]), "failed"),
    ],
)
def test_the_status_a_run_ends_with(error, status):
    assert status_of(error) == status
    assert (ending_of(error) is None) == (status == "failed")


def test_a_branch_says_what_ended_the_run_around_it():
    said = {why_not_reached(e) for e in (LimitReached(), Paused(), Absent(), RunCancelled())}
    assert len(said) == 4
    assert why_not_reached(KeyboardInterrupt()) == why_not_reached(RunCancelled())


# -- errors ------------------------------------------------------------------------------------


def test_the_authors_error_leaves_unchanged_with_the_run_so_far_and_a_note():
    error = ValueError("boom")
    caught, run = ended(chart_of(lambda s: s.set("n", 1), fail_with(error)))
    assert caught is error
    assert run.status == "failed"
    assert run.state == {"n": 1}
    assert run.error == {"type": "ValueError", "message": "boom"}
    assert run.ended_at == {"stage": "S1", "stage_id": "s1", "runtime_stage_id": "s1#1"}
    assert error.__notes__ == [
        "raised in stage 'S1' of chart 'c'; error.run holds what happened",
    ]


def test_what_a_failing_stage_wrote_is_kept():
    def half(scope):
        scope["half"] = 1
        raise ValueError

    _, run = ended(chart_of(half))
    assert run.state == {"half": 1}
    assert run.commits[0].status == "failed"


def test_the_note_names_the_stage_that_ended_the_run_not_one_that_failed_before_in_a_branch():
    chart = (
        flow_chart("c", lambda s: None, id="start")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: [1, 2],
            branch=chart_of(fail_with(KeyError("x"))),
            max_branches=2,
            into="out",
        )
        .add_function("Collect", fail_with(ValueError("late")), id="collect")
        .build()
    )
    error, run = ended(chart, ValueError)
    assert "'Collect'" in error.__notes__[0]
    assert run.ended_at["stage_id"] == "collect"


def test_an_error_that_takes_no_attribute_still_leaves():
    class Closed(Exception):
        def __setattr__(self, name, value):
            raise TypeError(name)

    with pytest.raises(Closed):
        chart_of(fail_with(Closed())).run_sync()


def test_the_place_of_an_error_inside_a_branch_has_the_path_of_its_branch():
    _error, run = ended(fan_over([1, 2], lambda s: None, fail_with(ValueError()), fail_fast=True))
    assert run.ended_at["runtime_stage_id"] == "each~0/s1#1"
    assert [slot.status for slot in run.slots("each")] == ["failed", "not_reached"]
    assert [row.stage_id for row in run.walk if row.type == "error"] == ["s1", "each"]


def test_stop_iteration_is_an_error_of_its_stage():
    async def later(scope):
        raise StopIteration(1)

    async def deeper(scope):
        await later(scope)

    blocking = flow_chart("c", fail_with(StopIteration(1)), id="s0", blocking=True).build()
    charts = [chart_of(stage) for stage in (fail_with(StopIteration(1)), later, deeper)]
    told = [ended(chart, rb.errors.ChartError) for chart in (*charts, blocking)]
    for error, run in told:
        assert isinstance(error.__cause__, StopIteration)
        assert run.error["message"].endswith("raised StopIteration")
    # One wording, however the stage was run.
    assert len({re.sub("'.*?'", "it", str(error)) for error, _run in told}) == 1


def test_an_error_of_ones_own_about_stop_iteration_is_left_alone():
    def stage(scope):
        try:
            next(iter(()))
        except StopIteration as end:
            raise RuntimeError("nothing left") from end

    error, _run = ended(chart_of(stage), RuntimeError)
    assert str(error) == "nothing left"


def test_a_result_that_cannot_be_recorded_fails_the_run_with_its_record():
    error, run = ended(chart_of(lambda s: threading.Lock()))
    assert "cannot be copied" in str(error)
    assert run.status == "failed"
    assert [row.type for row in run.walk] == ["stage", "error"]


def test_a_branch_result_that_cannot_be_recorded_fails_its_branch_alone():
    run = fan_over([1, 2], lambda s: threading.Lock() if s.args["item"] == 1 else 5).run_sync()
    assert [slot.status for slot in run.slots("each")] == ["failed", "ok"]
    assert "cannot be copied" in run.slots("each")[0].reason


# -- signals, pauses, limits inside fan-outs ---------------------------------------------------


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Absent("nothing"), "absent"),
        (Paused("inner asks"), "paused"),
        (LimitReached("inner"), "limited"),
        (RunCancelled("inner"), "cancelled"),
        (KeyboardInterrupt(), "cancelled"),
        (SystemExit(3), "cancelled"),
        (ExceptionGroup("tasks", [Absent("nothing")]), "absent"),
    ],
)
@pytest.mark.parametrize("kind", ["sync", "async", "nested", "retried", "blocking"])
def test_what_ends_a_run_ends_it_from_inside_a_best_effort_branch(error, status, kind):
    def stage(scope):
        if scope.args["index"] == 1:
            raise error

    async def stage_async(scope):
        await asyncio.sleep(0)
        stage(scope)

    if kind == "nested":
        inner = fan_over([1, 2, 3], stage)
        chart = (
            flow_chart("c", lambda s: None, id="start")
            .add_parallel_for_each(
                "Each",
                id="each",
                items=lambda s: [1, 2, 3],
                branch=inner,
                max_branches=3,
                into="out",
            )
            .add_function("After", lambda s: s.set("after", 1), id="after")
            .build()
        )
    elif kind in ("retried", "blocking"):
        more = {"retry": Retry(3)} if kind == "retried" else {"blocking": True}
        branch = flow_chart("b", stage, id="s0", **more).build()
        chart = (
            flow_chart("c", lambda s: None, id="start")
            .add_parallel_for_each(
                "Each",
                id="each",
                items=lambda s: [1, 2, 3],
                branch=branch,
                max_branches=3,
                into="out",
            )
            .add_function("After", lambda s: s.set("after", 1), id="after")
            .build()
        )
    else:
        chart = fan_over([1, 2, 3], stage if kind == "sync" else stage_async)
    caught, run = ended(chart, type(error))
    assert caught is error
    assert run.status == status
    assert "after" not in run.state
    assert "failed" not in {slot.status for slot in run.slots("each")}
    assert not any(row.type == "retry" for row in run.walk)


def test_an_interrupt_inside_a_branch_pauses_the_run_and_names_the_branch():
    def ask(scope):
        if scope.args["item"] == "b":
            interrupt(scope, "restart it?", {"yes": True})

    run = fan_over(["a", "b", "c"], ask).run_sync()
    assert run.status == "paused"
    assert run.pause == {"reason": "restart it?", "expects": {"yes": True}, "data": None}
    assert run.error is None
    # The branch that asks waits; the others do not wait for it.
    assert [slot.status for slot in run.slots("each")] == ["ok", "not_reached", "ok"]
    assert run.slots("each")[1].reason == "the run paused while it ran"
    assert run.checkpoint["paused_at"] == {
        "stage": "c",
        "stage_id": "s0",
        "runtime_stage_id": "each~1/s0#0",
    }


@pytest.mark.parametrize("form", ["passed", "wrapped", "grouped"])
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_an_interrupt_that_a_stage_catches_still_pauses(form, mode):
    def ask(scope):
        try:
            interrupt(scope, "sure?")
        except Exception as error:
            if form == "wrapped":
                raise ValueError("mine") from error
            if form == "grouped":
                raise ExceptionGroup("g", [ValueError()]) from error

    async def ask_async(scope):
        ask(scope)

    run = chart_of(ask if mode == "sync" else ask_async, lambda s: s.set("after", 1)).run_sync()
    assert run.status == "paused"
    assert run.state == {}
    assert [row.type for row in run.walk] == ["stage", "pause"]


def ask_and_go_on(scope):
    for key in ("restart", "delete"):
        with contextlib.suppress(Exception):
            scope[key] = interrupt(scope, f"{key}?")


async def ask_in_a_group(scope):
    async def ask(key):
        scope[key] = interrupt(scope, f"{key}?")

    async with asyncio.TaskGroup() as group:
        for key in ("restart", "delete"):
            group.create_task(ask(key))


@pytest.mark.parametrize("stage", [ask_and_go_on, ask_in_a_group])
def test_an_answer_goes_to_the_question_that_was_shown(stage):
    chart = chart_of(stage)
    run = chart.run_sync()
    answers = {"restart?": "yes", "delete?": "no"}
    asked = []
    while run.status == "paused":
        asked.append(run.pause["reason"])
        run = chart.resume_sync(run.checkpoint, answers[asked[-1]])
    assert asked == ["restart?", "delete?"]
    assert run.state == {"restart": "yes", "delete": "no"}


def test_a_pause_of_an_inner_procedure_pauses_the_outer_run_and_leaves_as_itself():
    inner = Paused("approve?", checkpoint={"x": 1})
    caught, run = ended(chart_of(fail_with(inner)), Paused)
    assert caught.checkpoint == {"x": 1}
    assert run.status == "paused"
    assert run.pause == {"reason": "approve?", "expects": None, "data": None}
    assert [row.type for row in run.walk] == ["stage", "pause"]


# -- the stop signal ---------------------------------------------------------------------------


def test_a_stop_set_before_the_run_lets_no_stage_begin():
    stop = Stop()
    stop.set("closed")
    error, run = ended(chart_of(lambda s: s.set("n", 1)), RunCancelled, signal=stop)
    assert str(error) == "chart 'c' was stopped before stage 'c': closed"
    assert run.status == "cancelled"
    assert run.state == {}
    assert [(row.type, row.stage_id, row.runtime_stage_id) for row in run.walk] == [
        ("error", "s0", None)
    ]
    assert run.steps_executed == 0
    assert run.ended_at == {"stage": "c", "stage_id": "s0", "runtime_stage_id": None}


def test_a_stop_set_by_a_sync_stage_ends_the_run_before_the_next_and_never_after_it():
    stop = Stop()

    async def main():
        with pytest.raises(RunCancelled) as caught:
            await chart_of(lambda s: stop.set(), lambda s: s.set("n", 1)).run(signal=stop)
        await asyncio.sleep(0)  # the run is over: this task is nobody's to cancel
        await asyncio.sleep(0)
        assert asyncio.current_task().cancelling() == 0
        return caught.value.run

    run = asyncio.run(main())
    assert [row.text for row in run.walk] == [
        "Ran c",
        "Ended before stage S1: RunCancelled: chart 'c' was stopped before stage 'S1'",
    ]


def test_a_stop_set_during_the_last_stage_is_no_success():
    stop = Stop()
    error, run = ended(chart_of(lambda s: stop.set()), RunCancelled, signal=stop)
    assert "after stage 'c'" in str(error)
    assert run.status == "cancelled"


def test_a_stop_set_from_another_thread_ends_a_waiting_stage():
    stop = Stop()

    async def wait(scope):
        threading.Thread(target=stop.set, args=("button",)).start()
        await forever(scope)

    error, run = ended(chart_of(wait), RunCancelled, signal=stop)
    assert str(error) == "chart 'c' was stopped during stage 'c': button"
    assert run.ended_at["stage_id"] == "s0"


def test_a_task_whose_run_was_stopped_or_timed_out_is_not_left_cancelled():
    async def main():
        stop = Stop()

        async def wait(scope):
            asyncio.get_running_loop().call_soon(stop.set)
            await forever(scope)

        for chart, options, error in (
            (chart_of(wait), {"signal": stop}, RunCancelled),
            (chart_of(forever), {"limits": Limits(seconds=0.01)}, LimitReached),
        ):
            with pytest.raises(error):
                await chart.run(**options)
            assert asyncio.current_task().cancelling() == 0
            await asyncio.sleep(0)

    asyncio.run(main())


def test_a_stop_that_is_never_set_changes_nothing_and_is_forgotten():
    stop = Stop()
    assert chart_of(lambda s: 5).run_sync(signal=stop).result == 5
    assert stop._callbacks == {}


# -- cancellation ------------------------------------------------------------------------------


def cancelled_run(chart, after=3, **options):
    """Cancel the task of a run; give what it came to."""

    async def main():
        task = asyncio.ensure_future(chart.run(**options))
        for _ in range(after):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        return caught.value

    return asyncio.run(main())


async def swallow(scope):
    try:
        await forever(scope)
    except asyncio.CancelledError:
        return "done anyway"


async def convert(scope):
    try:
        await forever(scope)
    except asyncio.CancelledError:
        raise ValueError("mine") from None


@pytest.mark.parametrize("stage", [forever, swallow, convert])
@pytest.mark.parametrize("inside", [False, True])
def test_a_cancelled_task_cancels_the_run_whatever_its_stage_makes_of_it(stage, inside):
    after = []
    chart = fan_over([1, 2], stage) if inside else chart_of(stage, lambda s: after.append(1))
    error = cancelled_run(chart, after=6)
    assert after == []
    if hasattr(error, "run"):
        assert error.run.status == "cancelled"
        assert "ok" not in {s.status for s in error.run.slots("each")} if inside else True


@pytest.mark.parametrize("stage", [swallow, convert])
def test_a_stop_is_not_swallowed_either(stage):
    stop = Stop()

    async def wait(scope):
        asyncio.get_running_loop().call_soon(stop.set)
        return await stage(scope)

    _error, run = ended(chart_of(wait, lambda s: s.set("after", 1)), RunCancelled, signal=stop)
    assert run.state == {}


def test_a_stages_own_timeout_and_task_group_are_its_own_affair():
    async def patient(scope):
        try:
            async with asyncio.timeout(0.001):
                await forever(scope)
        except TimeoutError:
            scope["timed_out"] = True
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(forever(scope))
                raise KeyError("x")
        except* KeyError:
            scope["grouped"] = True

    run = chart_of(patient, lambda s: s.set("after", 1)).run_sync()
    assert run.state == {"timed_out": True, "grouped": True, "after": 1}


def test_a_timeout_around_the_run_is_the_callers():
    async def main():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await chart_of(swallow).run(limits=Limits(seconds=100))
        assert asyncio.current_task().cancelling() == 0

    asyncio.run(main())


def test_a_run_inside_a_task_that_is_being_cancelled_can_do_its_work():
    async def last_words(scope):
        await asyncio.sleep(0)
        scope["said"] = True

    async def main():
        try:
            await asyncio.Event().wait()
        finally:
            runs.append(await chart_of(last_words).run(limits=Limits(seconds=100)))

    async def outer():
        task = asyncio.ensure_future(main())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    runs = []
    asyncio.run(outer())
    assert runs[0].state == {"said": True}


def test_cancelling_a_fan_out_leaves_nobody_working_behind():
    async def main():
        task = asyncio.ensure_future(fan_over(list(range(8)), forever).run())
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 2 + 8
        task.cancel()
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return caught.value.run

    run = asyncio.run(main())
    assert {slot.reason for slot in run.slots("each")} == {"the run was stopped while it ran"}


def test_fail_fast_ends_the_branches_that_are_under_way():
    async def stage(scope):
        if scope.args["item"] == 2:
            raise ValueError("two")
        await forever(scope)

    _error, run = ended(fan_over([1, 2, 3], stage, fail_fast=True), ValueError)
    assert [slot.status for slot in run.slots("each")] == ["not_reached", "failed", "not_reached"]


# -- limits ------------------------------------------------------------------------------------


def test_a_time_limit_acts_between_stages_and_names_the_one_that_overran():
    clock = Clock()

    def slow(scope):
        clock.now += 50

    with settings(timer=clock):
        error, run = ended(
            chart_of(slow, lambda s: s.set("n", 1)), LimitReached, limits=Limits(seconds=10)
        )
    assert (error.code, error.where) == ("time_limit", "c")
    assert run.status == "limited"
    assert run.state == {}


def test_a_time_limit_passed_in_the_last_stage_is_no_success():
    clock = Clock()
    with settings(timer=clock):
        _error, run = ended(
            chart_of(lambda s: setattr(clock, "now", 50)), LimitReached, limits=Limits(seconds=10)
        )
    assert run.status == "limited"


def test_a_time_limit_ends_a_waiting_stage():
    error, run = ended(chart_of(forever), LimitReached, limits=Limits(seconds=0.01))
    assert error.code == "time_limit"
    assert run.ended_at["stage_id"] == "s0"


@pytest.mark.parametrize("stage", [forever, swallow, convert])
def test_a_stage_limit_ends_a_stage_whatever_it_makes_of_it(stage):
    error, run = ended(
        chart_of(stage, lambda s: s.set("after", 1)),
        LimitReached,
        limits=Limits(stage_seconds=0.01),
    )
    assert (error.code, error.where) == ("stage_time_limit", "s0")
    assert run.state == {}


def test_a_stage_limit_is_held_against_sync_stages_and_rules_afterwards():
    clock = Clock()

    def slow(facts):
        clock.now += 5
        return True

    decide = (
        flow_chart("c", lambda s: None, id="s0")
        .add_decider("D", id="d", rules=rb.RuleSet("r", "1", [rb.Rule(slow, "a")], default="a"))
        .branch("a", lambda s: None)
        .end()
        .build()
    )
    with settings(timer=clock):
        for chart, where in ((chart_of(slow), "s0"), (decide, "d")):
            error, _ = ended(chart, LimitReached, limits=Limits(stage_seconds=1))
            assert error.where == where


def test_a_stage_limit_ends_a_rule_that_waits():
    async def rule(facts):
        await asyncio.Event().wait()

    chart = (
        flow_chart("c", lambda s: None, id="s0")
        .add_decider("D", id="d", rules=rb.RuleSet("r", "1", [rb.Rule(rule, "a")], default="a"))
        .branch("a", lambda s: None)
        .end()
        .build()
    )
    error, run = ended(chart, LimitReached, limits=Limits(stage_seconds=0.01))
    assert error.where == "d"
    assert run.status == "limited"


@pytest.mark.parametrize("bad", [0, -1, True, float("nan"), "3"])
def test_limits_are_positive_numbers(bad):
    with pytest.raises(rb.errors.ChartError):
        Limits(seconds=bad)


def test_limits_of_another_type_are_refused():
    with pytest.raises(rb.errors.ChartError, match="not Limits"):
        chart_of(lambda s: None).run_sync(limits={"seconds": 1})


# -- blocking stages ---------------------------------------------------------------------------


def test_a_blocking_stage_runs_in_another_thread_with_the_settings_of_the_run():
    def where(scope):
        scope["thread"] = threading.current_thread().name
        scope["theme"] = settings.theme

    chart = flow_chart("c", where, id="s0", blocking=True).build()
    with settings(theme="dark"):
        state = chart.run_sync().state
    assert state == {"thread": "runbook_nb-blocking", "theme": "dark"}


def test_a_blocking_stage_that_overran_is_left_behind_and_can_write_no_more():
    go_on, refused = threading.Event(), []

    def slow(scope):
        scope["before"] = 1
        go_on.wait(10)
        for use in (
            lambda: scope.set("late", 1),
            lambda: scope.get("before"),
            lambda: scope.emit("e"),
        ):
            try:
                use()
            except ScopeClosed:
                refused.append(1)

    chart = flow_chart("c", slow, id="s0", blocking=True).build()
    threads = set(threading.enumerate())
    _error, run = ended(chart, LimitReached, limits=Limits(stage_seconds=0.05))
    before = list(run.walk)
    assert run.state == {"before": 1}
    left = [t for t in threading.enumerate() if t not in threads]
    go_on.set()
    for thread in left:
        thread.join(10)
    assert refused == [1, 1, 1]
    assert list(run.walk) == before


def test_a_run_that_was_stopped_says_which_stage_was_still_running():
    stop, go_on, threads = Stop(), threading.Event(), []

    def slow(scope):
        threads.append(threading.current_thread())
        stop.set("enough")
        go_on.wait(10)

    chart = flow_chart("c", slow, id="s0", stage_name="Slow", blocking=True).build()
    error, run = ended(chart, RunCancelled, signal=stop)
    assert "during stage 'Slow'" in str(error)
    assert [row.text for row in run.walk if row.type == "error"] == [
        "Failed: CancelledError: still running when the run was stopped; its thread was left behind"
    ]
    (thread,) = threads
    assert thread.is_alive()
    assert thread.daemon  # it keeps no process alive
    go_on.set()
    thread.join(10)


def test_an_async_function_may_be_marked_blocking():
    async def stage(scope):
        await asyncio.sleep(0)
        scope["n"] = 1

    assert flow_chart("c", stage, id="s0", blocking=True).build().run_sync().state == {"n": 1}


def test_what_a_blocking_stage_raises_is_raised():
    chart = flow_chart("c", fail_with(ValueError("x")), id="s0", blocking=True).build()
    _caught, run = ended(chart, ValueError)
    assert run.status == "failed"


# -- the keyboard ------------------------------------------------------------------------------

PRESSED = """
import os, signal, sys, threading, time
from runbook_nb.chart.builder import flow_chart

def press():
    os.kill(os.getpid(), signal.SIGINT)

{stages}

builder = flow_chart("c", first, id="first")
builder.add_function("Second", lambda s: print("second ran", flush=True), id="second")
try:
    builder.build().run_sync()
except KeyboardInterrupt as error:
    run = error.run
    print("interrupted", run.status, dict(run.state), run.error["type"], flush=True)
    sys.exit(3)
"""

SYNC = """
def first(scope):
    scope["first"] = 1
    press()
    time.sleep(0.3)
"""
ASYNC = """
async def first(scope):
    import asyncio
    scope["first"] = 1
    threading.Timer(0.1, press).start()
    await asyncio.Event().wait()
"""
NESTED = """
def first(scope):
    scope["first"] = 1
    def inner(s):
        press()
        time.sleep(0.3)
    flow_chart("i", inner, id="i").add_function(
        "J", lambda s: print("inner went on", flush=True), id="j").build().run_sync()
"""
SWALLOWED = """
async def first(scope):
    import asyncio
    scope["first"] = 1
    threading.Timer(0.1, press).start()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        pass
"""


@pytest.mark.skipif(os.name == "nt", reason="signals are sent another way there")
@pytest.mark.parametrize(
    "stages", [SYNC, ASYNC, NESTED, SWALLOWED], ids=["sync", "async", "nested", "swallowed"]
)
def test_pressing_ctrl_c_at_the_sync_door_ends_the_run_before_its_next_stage(stages):
    done = subprocess.run(
        [sys.executable, "-c", PRESSED.format(stages=textwrap.dedent(stages))],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "ran" not in done.stdout
    assert "went on" not in done.stdout
    assert "interrupted cancelled {'first': 1}" in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="signals are sent another way there")
def test_system_exit_in_a_branch_leaves_the_process_with_its_code():
    code = """
import asyncio, sys
from runbook_nb.chart.builder import flow_chart
async def leave(scope):
    await asyncio.sleep(0)
    sys.exit(7)
each = flow_chart("e", leave, id="e").build()
flow_chart("c", lambda s: None, id="s").add_parallel_for_each(
    "E", id="each", items=lambda s: [1, 2], branch=each, max_branches=2, into="o"
).build().run_sync()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 7
