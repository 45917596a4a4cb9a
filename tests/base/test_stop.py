from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from runbook_nb._stop import Stop


def test_a_new_stop_is_not_set_and_gives_no_reason():
    stop = Stop()
    assert not stop.is_set()
    assert stop.reason is None
    assert repr(stop) == "<Stop, not set>"


def test_the_first_reason_stands():
    stop = Stop()
    stop.set("first")
    stop.set("second")
    assert (stop.is_set(), stop.reason) == (True, "first")
    assert repr(stop) == "<Stop, set: first>"


def test_callbacks_hear_once_in_the_order_they_were_left():
    stop, heard = Stop(), []
    stop.on_set(lambda: heard.append("a"))
    stop.on_set(lambda: heard.append("b"))
    stop.set()
    stop.set()
    assert heard == ["a", "b"]


def test_a_callback_left_after_the_set_is_called_at_once():
    stop, heard = Stop(), []
    stop.set("gone")
    forget = stop.on_set(lambda: heard.append(stop.reason))
    forget()
    assert heard == ["gone"]


def test_a_forgotten_callback_stays_silent_and_may_be_forgotten_twice():
    stop, heard = Stop(), []
    forget = stop.on_set(lambda: heard.append("a"))
    forget()
    forget()
    stop.set()
    assert heard == []


def test_a_callback_may_ask_and_leave_another_without_a_deadlock():
    stop, heard = Stop(), []
    stop.on_set(lambda: stop.on_set(lambda: heard.append(stop.is_set())))
    stop.set()
    assert heard == [True]


def test_one_failing_callback_does_not_keep_the_others_from_hearing():
    stop, heard = Stop(), []

    def broken():
        raise ValueError("broken listener")

    stop.on_set(broken)
    stop.on_set(lambda: heard.append("b"))
    with pytest.raises(ValueError, match="broken listener"):
        stop.set()
    assert heard == ["b"]
    assert stop.is_set()


def test_awaiting_gives_the_reason_when_another_thread_sets_it():
    stop = Stop()

    async def main():
        waiting = [asyncio.ensure_future(_wait(stop)) for _ in range(3)]
        await asyncio.sleep(0)
        threading.Thread(target=stop.set, args=("button",)).start()
        return await asyncio.gather(*waiting)

    assert asyncio.run(main()) == ["button"] * 3


def test_awaiting_a_stop_that_is_set_returns():
    stop = Stop()
    stop.set("before")
    assert asyncio.run(_wait(stop)) == "before"
    assert asyncio.run(_wait(stop)) == "before"  # on another loop as well


def test_two_loops_may_wait_for_the_same_stop():
    stop, ready, reasons = Stop(), threading.Barrier(3), []

    async def main():
        waiting = asyncio.ensure_future(_wait(stop))
        await asyncio.sleep(0)
        await asyncio.to_thread(ready.wait)
        reasons.append(await waiting)

    threads = [threading.Thread(target=asyncio.run, args=(main(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    ready.wait()
    stop.set("both")
    for thread in threads:
        thread.join()
    assert reasons == ["both", "both"]


def test_a_cancelled_wait_leaves_no_callback_behind():
    stop = Stop()

    async def main():
        waiting = asyncio.ensure_future(_wait(stop))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())
    assert stop._callbacks == {}
    stop.set()


def test_a_wait_abandoned_with_its_loop_does_not_break_the_setter():
    stop = Stop()
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(_wait(stop))
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    stop.set("late")
    assert stop.is_set()
    waiting._log_destroy_pending = False


def test_making_and_setting_a_stop_imports_no_event_loop():
    code = (
        "import sys; from runbook_nb._stop import Stop; s = Stop(); s.set(); "
        "sys.exit('asyncio' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def _wait(stop):
    return await stop
