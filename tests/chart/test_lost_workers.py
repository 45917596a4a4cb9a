"""Engines that fail: what was lost is a slot that says why, the rest is right, all adds up."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections import Counter
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest
import strange_executors
from strange_executors import Failing, Immediate

import runbook_nb as rb
from runbook_nb._stop import Stop
from runbook_nb.chart.builder import flow_chart
from runbook_nb.errors import EngineError, LimitReached, RunCancelled, RunSignal

pytestmark = pytest.mark.alone


def fan(items: Any, fn: Any, **more: Any) -> Any:
    """Make a chart that runs a function per item."""
    each = fn if hasattr(fn, "stages") else flow_chart("b", fn, id="b").build()
    options = {"max_branches": 100_000, "into": "out"} | more
    items = list(items)
    return (
        flow_chart("c", lambda s: None, id="start")
        .add_parallel_for_each("Each", id="each", items=lambda s: items, branch=each, **options)
        .build()
    )


def double(scope: Any) -> int:
    found: int = scope.args["item"] * 2
    return found


def words(run: Any) -> Counter[str]:
    """Count the slots by how they ended: the code in their reason, where there is one."""
    found: Counter[str] = Counter()
    for slot in run.slots("each"):
        code = re.search(r"\((\w+)\)", slot.reason or "")
        found[code[1] if code else slot.status] += 1
        if slot.status == "ok":
            assert slot.reason is None
    counts = run.fan_outs[0]
    assert counts.items == counts.ok + counts.failed + counts.not_reached
    return found


def lost(run: Any) -> list[int]:
    return [slot.index for slot in run.slots("each") if slot.status == "failed"]


# -- workers that die --------------------------------------------------------------------------


def die_at(*items: int) -> Any:
    def work(scope: Any) -> int:
        import os

        if scope.args["item"] in items:
            os._exit(3)
        found: int = scope.args["item"] * 2
        return found

    return work


def test_only_the_branch_that_kills_its_worker_is_lost():
    run = fan(range(120), die_at(77)).run_sync(engine="processes")
    assert words(run) == {"ok": 119, "worker_lost": 1}
    assert lost(run) == [77]
    assert [s.value for s in run.slots("each") if s.status == "ok"] == [
        2 * item for item in range(120) if item != 77
    ]
    row = next(row for row in run.walk if row.type == "error")
    assert row.subflow == "each~77"
    assert "EngineError: the worker that ran it was lost" in row.text
    assert "77" not in run.slots("each")[77].reason  # nothing made up on the way


def test_neighbours_that_both_kill_their_workers_are_both_lost():
    run = fan(range(12), die_at(0, 1, 11)).run_sync(engine="processes")
    assert (words(run), lost(run)) == ({"ok": 9, "worker_lost": 3}, [0, 1, 11])


@pytest.mark.parametrize(("broken", "expected"), [(3, {"ok": 6}), (4, {"engine_gone": 6})])
def test_pools_that_break_before_they_take_work_are_replaced_a_few_times(
    monkeypatch, broken, expected
):
    submit = ProcessPoolExecutor.submit
    refused = []

    def breaks(pool: Any, fn: Any, /, *args: Any) -> Any:
        if len(refused) < broken:
            refused.append(pool)
            raise BrokenExecutor("not usable anymore")
        return submit(pool, fn, *args)

    monkeypatch.setattr(ProcessPoolExecutor, "submit", breaks)
    run = fan(range(6), double).run_sync(engine="processes")
    assert words(run) == expected
    assert len(set(map(id, refused))) == broken  # each was another


def test_an_engine_whose_workers_only_die_is_given_up():
    run = fan(range(200), die_at(*range(200))).run_sync(engine="processes")
    assert set(words(run)) <= {"worker_lost", "engine_gone"}
    assert len(lost(run)) == 200


def test_a_branch_that_dies_once_is_run_again(tmp_path):
    mark = str(tmp_path / "died")

    def work(scope: Any) -> int:
        import os
        from pathlib import Path

        if scope.args["item"] == 5 and not Path(mark).exists():
            Path(mark).touch()
            os._exit(3)
        found: int = scope.args["item"] * 2
        return found

    run = fan(range(20), work).run_sync(engine="processes")
    assert words(run) == {"ok": 20}


def test_with_fail_fast_a_lost_branch_ends_the_run():
    with pytest.raises(EngineError, match="worker_lost") as caught:
        fan(range(9), die_at(4), fail_fast=True).run_sync(engine="processes")
    run = caught.value.run
    assert (run.status, caught.value.code) == ("failed", "worker_lost")
    assert [slot.status for slot in run.slots("each")] == ["ok"] * 4 + ["failed"] + [
        "not_reached"
    ] * 4
    assert run.ended_at["stage_id"] == "each"


def test_a_pool_that_was_given_and_breaks_is_gone_for_the_rest():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        run = fan(range(60), die_at(30), max_concurrency=1).run_sync(engine=pool)
    found = words(run)
    assert sum(found.values()) == 60
    assert found["worker_lost"] >= 1
    assert set(found) <= {"ok", "worker_lost", "engine_gone"}
    assert 30 in lost(run)
    assert [s.value for s in run.slots("each") if s.status == "ok"] == list(
        range(0, 2 * found["ok"], 2)
    )


# -- executors that do what none should ----------------------------------------------------------


def refuse(future: Any) -> None:
    raise RuntimeError("cannot schedule new futures after shutdown")


@pytest.mark.parametrize(
    ("instead", "code"),
    [
        (refuse, "engine_gone"),
        (lambda future: future.cancel(), "dropped"),
        (lambda future: future.set_exception(MemoryError("no room")), "worker_failed"),
        (lambda future: future.set_exception(BrokenExecutor("broke")), "engine_gone"),
        (lambda future: future.set_result(None), "cannot_come_back"),
        (lambda future: future.set_result(b"not what was made"), "cannot_come_back"),
    ],
)
def test_what_an_executor_does_instead_is_said_of_the_branches_concerned(instead, code):
    run = fan(range(40), double).run_sync(engine=Failing(3, instead))
    found = words(run)
    assert sum(found.values()) == 40
    assert found["ok"] >= 3
    assert found[code] >= 1
    assert set(found) <= {"ok", code, "worker_lost"}
    assert run.status == "ok"
    for slot in run.slots("each"):
        assert slot.value == (2 * slot.item if slot.status == "ok" else None)


def test_a_pool_that_was_shut_down_before_says_so_of_every_branch():
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    run = fan(range(10), double).run_sync(engine=pool)
    assert words(run) == {"engine_gone": 10}
    assert "cannot schedule new futures after shutdown" in run.slots("each")[0].reason


def test_a_long_reason_is_cut_and_its_code_is_not():
    def complain(future: Any) -> None:
        raise RuntimeError("no room\n  for\tthis " + "and that " * 200)

    run = fan(range(3), double).run_sync(engine=Failing(0, complain))
    assert words(run) == {"engine_gone": 3}
    reason = run.slots("each")[0].reason
    assert "no room for this and that" in reason
    assert len(reason) < 500


def test_a_stop_does_not_wait_for_an_executor_that_never_runs_anything():
    stop = Stop()
    asked = []

    class Lazy:
        def submit(self, fn: Any, *args: Any) -> Any:
            from concurrent.futures import Future

            asked.append(Future())
            threading.Thread(target=stop.set, args=("enough",)).start()
            return asked[-1]

    with pytest.raises(RunCancelled, match="enough") as caught:
        fan(range(10), double).run_sync(engine=Lazy(), signal=stop)
    assert words(caught.value.run) == {"not_reached": 10}
    assert all(future.cancelled() for future in asked)


# -- what cannot travel --------------------------------------------------------------------------


class Stays:
    """Can be copied, and cannot leave its process."""

    def __deepcopy__(self, memo: Any) -> Stays:
        return self

    def __reduce__(self) -> Any:
        raise TypeError("this stays here")


@pytest.mark.parametrize("at", [[0], [5], [19], [3, 4, 11]])
def test_items_that_cannot_be_sent_are_failed_slots_and_the_others_run(at):
    items = [Stays() if place in at else place for place in range(20)]
    run = fan(items, lambda s: 1).run_sync(engine=Immediate())
    assert (words(run), lost(run)) == ({"ok": 20 - len(at), "cannot_be_sent": len(at)}, at)
    assert "TypeError: this stays here" in run.slots("each")[at[0]].reason
    assert words(fan(items, lambda s: 1).run_sync(engine="threads")) == {"ok": 20}


class Unreadable:
    """Can be sent, and cannot be read where it arrives."""

    def __reduce__(self) -> Any:
        return int, ("not a number",)


def test_items_that_cannot_be_read_there_are_failed_slots_and_the_others_run():
    class Kept(Unreadable):
        def __deepcopy__(self, memo: Any) -> Kept:
            return self

    items = [Kept() if place == 7 else place for place in range(20)]
    run = fan(items, lambda s: 1).run_sync(engine=Immediate())
    assert (words(run), lost(run)) == ({"ok": 19, "cannot_be_sent": 1}, [7])


def test_a_chart_that_cannot_be_sent_names_the_stage_that_stays():
    lock = threading.Lock()
    each = (
        flow_chart("b", lambda s: 1, id="b")
        .add_function("Guarded", lambda s: lock.locked(), id="guarded")
        .build()
    )
    run = fan(range(3), each).run_sync(engine=Immediate())
    assert words(run) == {"cannot_be_sent": 3}
    assert "stage 'Guarded': TypeError: cannot pickle '_thread.lock'" in run.slots("each")[0].reason


def test_a_factory_that_cannot_be_sent_says_so():
    lock = threading.Lock()
    each = flow_chart("b", lambda s: 1, id="b").build()

    def factory(item: Any, index: int) -> Any:
        return each if not lock.locked() else None

    chart = (
        flow_chart("c", lambda s: None, id="start")
        .add_parallel_for_each(
            "Each", id="each", items=lambda s: [1, 2], branch=factory, max_branches=9, into="out"
        )
        .build()
    )
    run = chart.run_sync(engine=Immediate())
    assert words(run) == {"cannot_be_sent": 2}
    assert "its factory: TypeError: cannot pickle" in run.slots("each")[0].reason


def test_a_record_that_cannot_come_back_is_that_branchs_alone():
    def work(scope: Any) -> None:
        scope["kept"] = Stays() if scope.args["item"] == 6 else scope.args["item"]
        scope["more"] = 1

    run = fan(range(20), work).run_sync(engine=Immediate())
    assert (words(run), lost(run)) == ({"ok": 19, "cannot_come_back": 1}, [6])
    assert run.slots("each")[19].value == {"kept": 19, "more": 1}
    assert words(fan(range(20), work).run_sync(engine="threads")) == {"ok": 20}


class Picky(Exception):
    """Cannot be made again out of what its base class keeps."""

    def __init__(self, code: int, *, where: str) -> None:
        super().__init__(f"{code} at {where}")


class Ended(RunSignal):
    run_status = "absent"

    def __init__(self, *, why: str) -> None:
        super().__init__(why)


def test_an_error_that_cannot_come_back_is_told_by_one_that_can():
    def work(scope: Any) -> None:
        if scope.args["item"] == 2:
            raise Picky(7, where="the door")

    with pytest.raises(EngineError, match="Picky: 7 at the door") as caught:
        fan(range(5), work, fail_fast=True).run_sync(engine=Immediate())
    assert caught.value.code == "cannot_come_back"
    assert caught.value.run.status == "failed"


def test_a_signal_that_cannot_come_back_ends_the_run_as_it_would_have():
    def work(scope: Any) -> None:
        raise Ended(why="nothing there")

    for engine in (None, Immediate()):
        with pytest.raises(RunSignal, match="nothing there") as caught:
            fan(range(5), work).run_sync(engine=engine)
        assert caught.value.run.status == "absent"


def test_an_error_comes_back_whole_with_what_it_came_from(processes):
    def work(scope: Any) -> None:
        try:
            {}["age"]
        except KeyError as error:
            raise ValueError("bad row") from error

    here = there = None
    for engine in (None, processes):
        with pytest.raises(ValueError, match="bad row") as caught:
            fan([1], work, fail_fast=True).run_sync(engine=engine)
        here, there = there, caught.value
    assert isinstance(there.__cause__, KeyError)
    assert there.run.error == here.run.error
    assert "raised by a worker" in "".join(there.__notes__)


def test_what_a_branch_left_behind_an_ending_is_not_on_the_record():
    """As in place: what comes behind the branch that ended the run never began."""
    done = threading.Event()

    def work(scope: Any) -> None:
        if scope.args["item"] == 0:
            done.wait(10)
            raise ValueError("the first")
        if scope.args["item"] == 1:
            done.set()

    with pytest.raises(ValueError, match="the first") as caught:
        fan(range(3), work, fail_fast=True).run_sync(engine="threads")
    assert [slot.status for slot in caught.value.run.slots("each")] == [
        "failed",
        "not_reached",
        "not_reached",
    ]


# -- ends --------------------------------------------------------------------------------------


def test_a_stop_ends_threads_between_stages_and_keeps_what_was_done():
    stop = Stop()

    def work(scope: Any) -> None:
        if scope.args["item"] == 20:
            stop.set("enough")
        if scope.args["item"] > 100:
            threading.Event().wait(0.01)  # else all may be over before anybody hears of it

    with pytest.raises(RunCancelled, match="enough") as caught:
        fan(range(2000), work).run_sync(engine="threads", signal=stop)
    run = caught.value.run
    found = words(run)
    assert run.status == "cancelled"
    assert 0 < found["ok"] < 2000
    assert found["ok"] + found["not_reached"] == 2000


def test_a_stop_ends_a_stage_that_waits_on_a_thread():
    stop = Stop()

    async def work(scope: Any) -> None:
        stop.set("enough")
        await asyncio.sleep(60)

    with pytest.raises(RunCancelled) as caught:
        fan([1, 2], work).run_sync(engine="threads", signal=stop)
    assert words(caught.value.run) == {"not_reached": 2}
    assert "the run was stopped" in caught.value.run.slots("each")[0].reason


def test_a_stop_reaches_processes_between_stages(tmp_path):
    stop, begun, mark = Stop(), tmp_path / "begun", str(tmp_path / "begun")

    def first(scope: Any) -> None:
        from pathlib import Path

        Path(mark).touch()

    async def forever(scope: Any) -> None:
        await asyncio.sleep(600)

    def press() -> None:
        while not begun.exists():
            threading.Event().wait(0.01)
        stop.set("enough")

    each = flow_chart("b", first, id="b").add_function("On", forever, id="on").build()
    presser = threading.Thread(target=press)
    presser.start()
    with pytest.raises(RunCancelled, match="enough") as caught:
        fan(range(4), each).run_sync(engine="processes", signal=stop)
    presser.join()
    assert words(caught.value.run) == {"not_reached": 4}


@pytest.mark.parametrize("engine", ["threads", "processes"])
def test_a_limit_of_time_ends_stages_that_wait_on_workers(engine):
    async def work(scope: Any) -> None:
        await asyncio.sleep(600)

    with pytest.raises(LimitReached) as caught:
        fan(range(4), work).run_sync(engine=engine, limits=rb.Limits(seconds=0.5))
    run = caught.value.run
    assert (run.status, words(run)) == ("limited", {"not_reached": 4})


def test_a_limit_of_a_stage_holds_on_workers(processes):
    async def work(scope: Any) -> None:
        await asyncio.sleep(600)

    for engine in (None, "threads", processes):
        with pytest.raises(LimitReached, match="stage 'b' ran longer") as caught:
            fan([1], work).run_sync(engine=engine, limits=rb.Limits(stage_seconds=0.05))
        assert caught.value.code == "stage_time_limit"
        assert caught.value.run.ended_at["runtime_stage_id"] == "each~0/b#0"


@pytest.mark.parametrize("engine", ["threads", "processes"])
def test_a_cancelled_task_ends_its_workers(engine, tmp_path):
    mark = str(tmp_path / "begun")

    async def work(scope: Any) -> None:
        from pathlib import Path

        Path(mark).touch()
        await asyncio.sleep(600)

    async def both() -> Any:
        task = asyncio.ensure_future(fan(range(3), work).run(engine=engine))
        while not os.path.exists(mark):  # noqa: PTH110
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        return caught.value

    assert words(asyncio.run(both()).run) == {"not_reached": 3}
    assert not [t for t in threading.enumerate() if t.name.startswith("runbook_nb-branch")]


# -- a cluster -----------------------------------------------------------------------------------


def test_ten_thousand_branches_with_workers_that_die_in_the_middle(cluster, tmp_path):
    mark = str(tmp_path / "died")

    def work(scope: Any) -> dict[str, Any]:
        import os
        from pathlib import Path

        item = scope.args["item"]
        if item["host"] == 3333:
            os._exit(3)
        if item["host"] == 6666 and not Path(mark).exists():
            Path(mark).touch()
            os._exit(3)
        scope["load"] = item["host"] % 7
        return {"load": scope["load"]}

    each = flow_chart("One host", work, id="load").build()

    def procedure(tools: Any) -> Any:
        return (
            flow_chart(
                "Hosts",
                lambda s: s.set("hosts", [{"host": n} for n in range(10_000)]),
                id="hosts",
            )
            .add_parallel_for_each(
                "Each host",
                id="each",
                items=lambda s: s["hosts"],
                branch=each,
                max_branches=10_000,
                into="slots",
                subject="host",
            )
            .add_function("Report", lambda s: s.set("report", {"hosts": 10_000}), id="report")
            .build()
        )

    tool = rb.runbook_as_tool(name="hosts", description="Loads of hosts.", procedure=procedure)
    box = rb.Toolbox([tool], engine=cluster)
    envelope = box.call_sync("hosts")
    run = box.last_run
    assert words(run) == {"ok": 9_999, "worker_lost": 1}
    assert lost(run) == [3333]
    assert all(
        slot.value == {"load": slot.index % 7} for slot in run.slots("each") if slot.status == "ok"
    )
    gaps = json_of(envelope)
    assert "1 subject(s) of 'Each host' whose branch failed" in gaps
    assert "3333; the first: EngineError: the worker that ran it was lost" in gaps


def json_of(envelope: Any) -> str:
    import json

    return json.dumps(envelope["af_coverage"])


@pytest.fixture
def passing():
    """Give the client of a small cluster that a test may close."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as workers,
        Client(workers) as client,
    ):
        yield client


def test_a_cluster_that_is_closed_takes_no_more_work(passing):
    assert words(fan(range(300), double).run_sync(engine=passing)) == {"ok": 300}
    passing.close()
    run = fan(range(300), double).run_sync(engine=passing)
    assert words(run) == {"engine_gone": 300}
    assert "ClosedClientError" in run.slots("each")[0].reason


def test_a_cluster_that_goes_away_is_said_of_what_it_had_not_done(passing):
    closed = threading.Event()

    def close() -> None:
        passing.close()
        closed.set()

    def press() -> None:
        threading.Thread(target=close).start()
        closed.wait(10)

    def work(scope: Any) -> int:
        if scope.args["item"] == 50:
            strange_executors.PRESSED()  # its thread is of this process
        found: int = scope.args["item"] * 2
        return found

    strange_executors.PRESSED = press
    run = fan(range(300), work).run_sync(engine=passing)
    found = words(run)
    assert sum(found.values()) == 300
    assert set(found) <= {"ok", "engine_gone", "dropped"}
    assert found["ok"] >= 1
    assert found["engine_gone"] >= 1
    assert all(s.value == 2 * s.item for s in run.slots("each") if s.status == "ok")
