"""Engines: wherever the branches of a fan-out run, the record is the one of running them here."""

from __future__ import annotations

import asyncio
import contextvars
import json
import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from drawn_charts import ENDING, ORDINARY, World, answer_to, build, charts, ended, run_chart
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as held_to
from hypothesis import strategies as st
from strange_executors import Backwards, Immediate

import runbook_nb as rb
from runbook_nb.chart import spreading
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.engines import as_engine, shared
from runbook_nb.chart.scope import interrupt
from runbook_nb.errors import DefinitionError
from runbook_nb.record.written import write_log
from runbook_nb.settings import settings


def held(examples: int) -> Any:
    """How often a law is tried; a busy machine is no fault of it."""
    return held_to(
        max_examples=examples,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
    )


def told(run: Any) -> dict[str, Any]:
    """Give everything a run says of itself, as it would be written down."""
    return {
        "status": run.status,
        "rows": [row.to_dict() for row in run.walk],
        "state": repr(run.state),
        "result": repr(run.result),
        "error": repr(run.error),
        "pause": repr(run.pause),
        "ended_at": repr(run.ended_at),
        "structure": json.dumps(run.structure.to_dict()),
        "log": json.dumps(write_log(run.log, strict=False)),
        "checkpoint": json.dumps(run.checkpoint, default=repr),
        "recording": json.dumps(run.recording().to_dict(), default=repr),
        "taken back": repr(run.log.taken_back),
    }


#: What says the same however the steps of branches fall in between one another.
SAID = ("status", "rows", "state", "result", "structure")


def world(**facts: Any) -> World:
    """Make a world that can be sent to another process."""
    return World(stop=None, **facts)  # type: ignore[arg-type]


def same(here: Any, there: Any, parts: Any = None) -> None:
    """Hold one run to what another says of itself."""
    expected, found = told(here), told(there)
    for part in expected if parts is None else parts:
        assert found[part] == expected[part], part


ANY = charts((*ORDINARY, *ENDING), asks=2)
#: Whatever the order in which things come to pass, the same comes of them.
SURE = charts(ORDINARY, asks=2, fail_fast=False)


# -- the same record ---------------------------------------------------------------------------


@given(ANY)
@held(70)
def test_threads_leave_the_record_that_running_in_place_leaves(spec):
    same(run_chart(spec), run_chart(spec, engine="threads"))


@given(spec=ANY)
@held(40)
def test_processes_leave_the_record_that_running_in_place_leaves(processes, spec):
    same(run_chart(spec, world()), run_chart(spec, world(), engine=processes))


@given(spec=ANY)
@held(20)
def test_a_cluster_leaves_the_record_that_running_in_place_leaves(cluster, spec):
    same(run_chart(spec, world()), run_chart(spec, world(), engine=cluster))


@given(ANY)
@held(30)
def test_an_executor_that_runs_things_in_its_callers_thread_leaves_the_same_record(spec):
    same(run_chart(spec, world()), run_chart(spec, world(), engine=Immediate()))


@pytest.mark.parametrize("engine", [Immediate(), "threads"])
def test_what_fails_after_branches_that_failed_on_an_engine_has_no_error_behind_it(engine):
    def fail(words):
        def stage(scope):
            raise ValueError(words)

        return stage

    each = flow_chart("each", fail("in a branch"), id="x").build()
    first = (
        flow_chart("first", lambda s: None, id="a")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: [1, 2],
            branch=each,
            max_branches=9,
            into="out",
            fail_fast=True,
        )
        .build()
    )
    chart = (
        flow_chart("c", lambda s: None, id="s")
        .add_subchart("First", first, id="first", parallel=True)
        .add_subchart(
            "Second", flow_chart("n", fail("after"), id="b").build(), id="n", parallel=True
        )
        .build()
    )
    here = chart.run_sync()
    assert "causes" not in json.dumps(write_log(here.log, strict=False))
    same(here, chart.run_sync(engine=engine))


@given(spec=SURE, form=st.sampled_from(["async", "thread"]), turns=st.integers(1, 3))
@held(40)
def test_stages_that_wait_leave_the_same_rows_on_threads(spec, form, turns):
    facts = {"form": form, "turns": (turns, 0)}
    there = run_chart(spec, World(**facts), engine="threads")
    same(run_chart(spec, World(**facts)), there, SAID)


@given(spec=SURE, form=st.sampled_from(["async", "thread"]))
@held(15)
def test_stages_that_wait_leave_the_same_rows_in_processes(processes, spec, form):
    there = run_chart(spec, world(form=form), engine=processes)
    same(run_chart(spec, world(form=form)), there, SAID)


def through(spec: Any, engine: Any) -> Any:
    """Run a chart to its end, each question answered in another chart."""
    run = run_chart(spec, world(), engine=engine)
    while run.status == "paused":
        checkpoint = json.loads(json.dumps(run.checkpoint))
        chart, answer = build(spec, world()), answer_to(run.pause["reason"])
        run = ended(
            lambda c=chart, k=checkpoint, a=answer: asyncio.run(c.resume(k, a, engine=engine))
        )
    return run


@given(charts((*ORDINARY, *ENDING), asks=3))
@held(40)
def test_a_run_that_pauses_and_goes_on_with_an_engine_gets_to_the_same_end(spec):
    same(through(spec, None), through(spec, "threads"))


@given(spec=charts(ORDINARY, asks=3))
@held(10)
def test_a_run_goes_on_after_a_pause_in_processes(processes, spec):
    same(through(spec, None), through(spec, processes))


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_the_size_of_the_chunks_is_nowhere_on_the_record(monkeypatch, size):
    monkeypatch.setattr(spreading.Spread, "_size", lambda self: size)
    chart = fan(range(40), judged)
    same(chart.run_sync(), chart.run_sync(engine="threads"))
    same(chart.run_sync(), chart.run_sync(engine=Immediate()))


def test_an_executor_may_run_things_in_any_order():
    pool = Backwards()
    try:
        chart = fan(range(60), judged)
        same(chart.run_sync(), chart.run_sync(engine=pool))
        assert pool.order != sorted(pool.order)
    finally:
        pool.shutdown()


# -- charts for the rest -----------------------------------------------------------------------

RULES = rb.RuleSet(
    "size",
    "v1",
    [rb.Rule({"n": {"gt": 5}}, "big"), rb.Rule(lambda facts: facts["n"] == 3, "three")],
    default="small",
)


def judged(scope: Any) -> None:
    scope["n"] = scope.args["item"]
    if scope["n"] == 7:
        raise ValueError("seven")


def fan(items: Any, first: Any, **more: Any) -> Any:
    """Make a chart that runs a function, then rules, per item."""
    each = first
    if not hasattr(first, "stages"):
        builder = flow_chart("b", first, id="load").add_decider("Judge", rules=RULES, id="judge")
        for word in RULES.branches:
            builder.branch(word, lambda scope, word=word: scope.set("verdict", word))
        each = builder.end().build()
    options = {"max_branches": 100_000, "into": "out"} | more
    items = list(items)
    return (
        flow_chart("c", lambda s: None, id="start")
        .add_parallel_for_each("Each", id="each", items=lambda s: items, branch=each, **options)
        .build()
    )


def alone(fn: Any, **more: Any) -> Any:
    """Make a chart of one stage."""
    return flow_chart("b", fn, id="b", **more).build()


def values(run: Any) -> list[Any]:
    return [slot.value for slot in run.slots("each")]


def test_what_is_sent_and_comes_back_is_the_same_object():
    run = fan(range(10), judged).run_sync(engine=Immediate())
    assert run.raw_rule_sets() == [RULES]
    assert run.raw_rule_sets()[0] is RULES


def test_slots_of_one_fan_out_are_items_of_another_on_any_engine(processes):
    def again(scope: Any) -> Any:
        scope["before"] = scope.args["item"]["all"]
        return scope.args["item"]["one"].value * 2

    chart = (
        flow_chart("c", lambda s: None, id="s")
        .add_parallel_for_each(
            "A",
            id="a",
            items=lambda s: [1, 2],
            branch=alone(lambda s: s.args["item"]),
            max_branches=2,
            into="first",
        )
        .add_parallel_for_each(
            "B",
            id="b",
            items=lambda s: [{"one": one, "all": s["first"]} for one in s["first"]],
            branch=alone(again),
            max_branches=2,
            into="second",
        )
        .build()
    )
    here = chart.run_sync()
    same(here, chart.run_sync(engine=processes))
    same(here, chart.run_sync(engine="threads"))
    assert [slot.value for slot in here.slots("b")] == [2, 4]


# -- what an engine is -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "fix"),
    [("thread", "did you mean 'threads'?"), (7, "use one of"), (ThreadPoolExecutor, "use one of")],
)
def test_what_is_no_engine_is_refused_before_anything_runs(given, fix):
    ran = []
    chart = fan([1], alone(ran.append))
    with pytest.raises(DefinitionError, match="engine cannot be") as caught:
        chart.run_sync(engine=given)
    assert (caught.value.code, ran) == ("bad_engine", [])
    assert fix in str(caught.value)
    with pytest.raises(DefinitionError, match="engine cannot be"):
        rb.Toolbox(engine=given)


def test_inline_is_no_engine():
    assert as_engine(None) is as_engine("inline") is None
    run = fan([1], alone(lambda s: threading.get_ident())).run_sync(engine="inline")
    assert run.status == "ok"


def test_a_run_inside_a_branch_runs_in_place():
    """Its branches would wait for the workers that wait for it."""
    inner = fan([1, 2], alone(lambda s: threading.current_thread().name))

    def outer(scope: Any) -> Any:
        run = inner.run_sync(engine=pool)
        return [slot.value for slot in run.slots("each")]

    with ThreadPoolExecutor(1) as pool:
        run = fan(["a", "b"], alone(outer)).run_sync(engine=pool)
    assert [len(found) for found in values(run)] == [2, 2]


@pytest.mark.parametrize("bound", [1, 2, 5])
@pytest.mark.parametrize("form", ["sync", "async"])
def test_no_more_branches_run_at_once_than_the_bound(bound, form):
    lock, running, most = threading.Lock(), set(), []

    def begin(item: int) -> None:
        with lock:
            running.add(item)
            most.append(len(running))

    def end(item: int) -> None:
        with lock:
            running.discard(item)

    def work(scope: Any) -> None:
        begin(scope.args["item"])
        sum(range(2000))
        end(scope.args["item"])

    async def later(scope: Any) -> None:
        begin(scope.args["item"])
        await asyncio.sleep(0.001)
        end(scope.args["item"])

    chart = fan(range(60), alone(work if form == "sync" else later), max_concurrency=bound)
    with ThreadPoolExecutor(8) as pool:
        for engine in ("threads", pool):
            most.clear()
            assert chart.run_sync(engine=engine).fan_outs[0].ok == 60
            assert max(most) <= bound


@pytest.mark.parametrize("size", [None, 1, 2, 3, 64])
def test_a_bound_is_shared_so_that_it_is_never_passed(size):
    for bound in range(1, 70):
        window, width = shared(bound, size)
        assert 1 <= window <= bound
        assert min(window, window if size is None else size) * width <= bound


def test_async_branches_of_a_chunk_wait_side_by_side():
    met = []

    async def later(scope: Any) -> None:
        met.append(len([1 for task in asyncio.all_tasks() if not task.done()]))
        await asyncio.sleep(0)

    with ThreadPoolExecutor(1) as pool:
        run = fan(range(40), alone(later), max_concurrency=8).run_sync(engine=pool)
    assert run.fan_outs[0].ok == 40
    assert max(met) > 4  # the chunk's own tasks, all in one thread


# -- what goes along ---------------------------------------------------------------------------

asked_by = contextvars.ContextVar("asked_by", default="nobody")


def test_the_context_goes_along_to_threads():
    asked_by.set("ops")
    with ThreadPoolExecutor(2) as pool:
        for engine in ("threads", pool):
            run = fan([1, 2], alone(lambda s: asked_by.get())).run_sync(engine=engine)
            assert values(run) == ["ops", "ops"]
    asked_by.set("nobody")


def test_clock_and_options_go_along_to_processes(processes):
    def told_there(scope: Any) -> Any:
        return settings.clock(), settings.max_cell

    moment = datetime(2026, 11, 29, tzinfo=UTC)
    with settings(clock=lambda: moment, max_cell=77):
        for engine in (None, "threads", processes):
            run = fan([1], alone(told_there)).run_sync(engine=engine)
            assert values(run) == [(moment, 77)]


def test_what_a_policy_hides_stays_hidden_wherever_it_was_written(processes):
    def work(scope: Any) -> None:
        scope["token"] = f"tk-{scope.args['item']}-48151623"
        scope.set("pin", "pn-99887766", secret=True)
        raise ValueError(f"no entry with tk-{scope.args['item']}-48151623 and pn-99887766")

    for engine in (None, "threads", processes):
        run = fan([1, 2], alone(work)).run_sync(redact={"keys": ["token"]}, engine=engine)
        text = json.dumps([row.to_dict() for row in run.walk]) + repr(list(run.slots("each")))
        assert "48151623" not in text
        assert "99887766" not in text
        assert "no entry with [REDACTED]" in text


def test_what_a_question_took_back_is_still_known_as_a_secret(processes):
    def work(scope: Any) -> None:
        scope["token"] = "tk-48151623"
        interrupt(scope, "go on with tk-48151623?")

    for engine in (None, "threads", processes):
        run = fan([1], alone(work)).run_sync(redact={"keys": ["token"]}, engine=engine)
        assert run.pause["reason"] == "go on with [REDACTED]?"


def test_streams_are_heard_in_every_engine_and_in_item_order_from_afar(processes):
    def speak(scope: Any) -> None:
        for word in ("on", "ly"):
            scope.stream(f"{word}{scope.args['item']}")

    each = flow_chart("b", lambda s: None, id="b").add_streaming("Say", speak, id="say").build()

    def heard(engine: Any) -> list[Any]:
        events: list[Any] = []
        threads = set()

        def hear(event: Any) -> None:
            events.append(event)
            threads.add(threading.get_ident())

        fan(range(9), each).run_sync(engine=engine, on_stream=hear)
        assert len(threads) == 1
        return events

    assert heard(processes) == heard(None)
    assert heard(Immediate()) == heard(None)
    assert sorted(heard("threads")) == sorted(heard(None))


def test_a_listener_that_fails_changes_nothing(processes, caplog):
    each = flow_chart("b", lambda s: None, id="b")
    each = each.add_streaming("Say", lambda s: s.stream("x"), id="say").build()

    def deaf(event: Any) -> None:
        raise ValueError("deaf")

    for engine in ("threads", processes):
        assert fan([1], each).run_sync(engine=engine, on_stream=deaf).fan_outs[0].ok == 1


def test_it_works_in_a_running_loop_and_by_the_sync_door_inside_one(processes):
    chart = fan(range(20), judged)
    here = chart.run_sync()

    async def both(engine: Any) -> None:
        same(here, await chart.run(engine=engine))
        same(here, chart.run_sync(engine=engine))

    for engine in ("threads", processes):
        asyncio.run(both(engine))


def test_the_loop_goes_on_while_branches_are_out():
    beats = []
    done = threading.Event()

    async def beat() -> None:
        while len(beats) < 3:
            beats.append(1)
            await asyncio.sleep(0)
        done.set()

    async def both() -> Any:
        other = asyncio.ensure_future(beat())
        run = await fan([1], alone(lambda s: done.wait(10))).run(engine="threads")
        await other
        return run

    assert values(asyncio.run(both())) == [True]


# -- nothing is left ---------------------------------------------------------------------------


def test_pools_that_are_made_end_with_their_run_and_given_ones_stay(processes):
    def branches() -> list[str]:
        return [t.name for t in threading.enumerate() if t.name.startswith("runbook_nb-branch")]

    before = set(multiprocessing.active_children())
    chart = fan(range(30), judged)
    same(chart.run_sync(), chart.run_sync(engine="processes"))
    chart.run_sync(engine="threads")
    with pytest.raises(ValueError, match="seven"):
        fan(range(30), judged, fail_fast=True).run_sync(engine="threads")
    assert branches() == []
    assert set(multiprocessing.active_children()) <= before
    assert processes.submit(len, "abc").result() == 3
    with ThreadPoolExecutor(2) as pool:
        chart.run_sync(engine=pool)
        assert pool.submit(len, "abc").result() == 3


def test_two_fan_outs_of_a_run_share_its_processes():
    def pid(scope: Any) -> int:
        import os

        return os.getpid()

    chart = (
        flow_chart("c", lambda s: None, id="s")
        .add_parallel_for_each(
            "A", id="a", items=lambda s: [1], branch=alone(pid), max_branches=9, into="x"
        )
        .add_parallel_for_each(
            "B", id="b", items=lambda s: [1], branch=alone(pid), max_branches=9, into="y"
        )
        .build()
    )
    import os

    run = chart.run_sync(engine="processes")
    found = {slot.value for name in "ab" for slot in run.slots(name)}
    assert os.getpid() not in found
    assert len(found) <= os.cpu_count()  # type: ignore[operator]


# -- tasks -------------------------------------------------------------------------------------


def tasks_of(chart: Any, **options: Any) -> int:
    """Run a chart; count the tasks that were made beside the run's own."""
    made = []

    def count(loop: Any, coroutine: Any, **more: Any) -> Any:
        made.append(coroutine)
        return asyncio.Task(coroutine, loop=loop, **more)

    async def both() -> None:
        asyncio.get_running_loop().set_task_factory(count)
        run = await chart.run(**options)
        asyncio.get_running_loop().set_task_factory(None)
        assert run.fan_outs[0].ok == len(run.slots("each"))

    asyncio.run(both())
    return len(made)


@pytest.mark.parametrize("bound", [1, 16, 50])
def test_plain_stages_make_no_task_and_stages_that_wait_at_most_as_many_as_the_bound(bound):
    async def later(scope: Any) -> None:
        await asyncio.sleep(0)

    assert tasks_of(fan(range(300), alone(lambda s: None), max_concurrency=bound)) == 0
    assert tasks_of(fan(range(300), alone(later), max_concurrency=bound)) <= bound
    assert tasks_of(fan(range(300), alone(later), max_concurrency=bound), engine="threads") == 0
