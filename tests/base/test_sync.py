"""The sync door: calls from anywhere, context, errors, and nothing left running."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import signal
import threading
import time

import pytest

from runbook_nb._sync import (
    asks_for_loop,
    breath,
    loop_at_hand,
    loop_for,
    on_interrupt,
    run_sync,
    running_task,
)
from runbook_nb.chart.endings import drive
from runbook_nb.settings import settings

VAR = contextvars.ContextVar("var", default="unset")


async def answer(value=42):
    await asyncio.sleep(0)
    return value


def known(fn):
    """Have a function known to ask for a loop itself."""

    @asks_for_loop
    async def ours():
        return await fn()

    return ours


def unknown(fn):
    """Have a function that nobody knows."""

    async def theirs():
        return await fn()

    return theirs


MARKED = pytest.mark.parametrize("mark", [known, unknown])


def test_it_gives_what_the_coroutine_gives():
    assert run_sync(answer) == 42


def test_it_works_inside_a_running_loop_and_inside_itself():
    async def main():
        return run_sync(nested)

    async def nested():
        return run_sync(answer) + await answer(1)

    assert asyncio.run(main()) == 43


def test_the_callers_context_is_seen_and_not_changed():
    async def look():
        seen = (VAR.get(), settings.theme)
        VAR.set("inside")
        return seen

    token = VAR.set("outside")
    try:
        with settings(theme="dark"):
            assert run_sync(look) == ("outside", "dark")
        assert VAR.get() == "outside"
    finally:
        VAR.reset(token)


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3), KeyboardInterrupt("y")])
def test_what_is_raised_inside_is_raised_outside_as_it_is(error):
    async def fail():
        raise error

    with pytest.raises(type(error)) as caught:
        run_sync(fail)
    assert caught.value is error


def test_a_coroutine_that_cannot_be_made_is_an_error_of_the_caller():
    def start():
        raise KeyError("no coroutine")

    with pytest.raises(KeyError):
        run_sync(start)


def test_nothing_is_left_running():
    before = set(threading.enumerate())

    async def leave_one():
        asyncio.ensure_future(asyncio.Event().wait())  # noqa: RUF006 - left on purpose

    run_sync(leave_one)
    assert set(threading.enumerate()) <= before


def test_what_is_left_in_the_loop_is_ended():
    ended = []

    async def waits():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("task")

    async def gives():
        try:
            yield 1
        finally:
            ended.append("generator")

    async def leave():
        task = asyncio.ensure_future(waits())
        generator = gives()
        await anext(generator)
        await asyncio.to_thread(lambda: None)
        kept.extend((task, generator))  # so that none of them is ended for want of a holder

    kept = []
    run_sync(leave)
    assert ended == ["task", "generator"]
    assert not [one for one in threading.enumerate() if one.name.startswith("asyncio_")]


async def who():
    return threading.get_ident()


def test_it_runs_where_it_is_called():
    assert run_sync(known(who)) == run_sync(unknown(who)) == threading.get_ident()


def test_where_a_loop_runs_it_has_a_thread_of_its_own_each_time():
    async def main():
        return run_sync(who)

    assert asyncio.run(main()) != threading.get_ident()


def test_where_interrupts_are_heard_by_another_it_has_a_thread_of_its_own():
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        assert run_sync(who) != threading.get_ident()
    finally:
        signal.signal(signal.SIGINT, before)


def test_in_another_thread_it_runs_there():
    found = []
    thread = threading.Thread(target=lambda: found.append(run_sync(who)))
    thread.start()
    thread.join()
    assert found == [thread.ident]


@MARKED
def test_the_callers_thread_is_left_as_it_was(mark):
    async def work():
        await loop_at_hand()
        return await answer()

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    heard = signal.getsignal(signal.SIGINT)
    try:
        assert run_sync(mark(work)) == 42
        assert asyncio.get_event_loop() is loop
        assert signal.getsignal(signal.SIGINT) is heard
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def test_a_handler_set_inside_stays():
    def mine(number, frame):
        raise AssertionError

    async def work():
        signal.signal(signal.SIGINT, mine)

    before = signal.getsignal(signal.SIGINT)
    try:
        run_sync(work)
        assert signal.getsignal(signal.SIGINT) is mine
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_heard_interrupts_for_a_call_that_has_ended_leaves_them_to_python():
    """Whoever sets a handler inside and puts the one before back later, as debuggers do."""
    held = []

    async def work():
        held.append(signal.signal(signal.SIGINT, signal.SIG_IGN))

    async def well():
        return 1

    before = signal.getsignal(signal.SIGINT)
    try:
        run_sync(work)
        signal.signal(signal.SIGINT, held[0])
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert run_sync(well) == 1
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("caller", ["plain", "loop"])
def test_an_interrupt_is_passed_on_to_doors_inside_and_to_those_who_asked(caller):
    told = []
    ready = threading.Event()

    async def inner():
        forget = on_interrupt(lambda: told.append("inner"))
        ready.set()
        try:
            await asyncio.Event().wait()
        finally:
            forget()

    async def outer():
        gone = on_interrupt(lambda: told.append("forgotten"))
        gone()
        on_interrupt(lambda: told.append("outer"))
        run_sync(inner)

    with pressed_when(ready), pytest.raises(KeyboardInterrupt) as caught:
        called_from(caller, outer)
    assert sorted(told) == ["inner", "outer"]
    assert caught.value.run is None


def test_outside_any_door_there_is_nobody_to_be_told():
    forget = on_interrupt(lambda: None)
    forget()


# -- without a loop ------------------------------------------------------------------------


def test_what_asks_for_a_loop_has_none_until_then():
    seen = []

    @asks_for_loop
    async def work():
        seen.append(running_task())
        await breath()
        seen.append(running_task())
        await loop_at_hand()
        seen.append(running_task() is asyncio.current_task())
        await loop_at_hand()
        return await answer()

    assert run_sync(work) == 42
    assert seen == [None, None, True]


def test_what_is_not_known_to_ask_has_a_loop_from_the_start():
    async def work():
        return running_task() is asyncio.current_task()

    assert run_sync(work)


@MARKED
def test_a_loop_is_there_for_what_does_not_ask_itself(mark):
    async def inside():
        return running_task() is not None

    @asks_for_loop
    async def work():
        waiting = mark(inside)()
        await loop_for(waiting)
        return await waiting

    assert run_sync(work) is (mark is unknown)


def test_a_future_of_the_callers_is_waited_for_in_a_loop():
    class Later:
        def __await__(self):
            return answer(running_task() is not None).__await__()

    @asks_for_loop
    async def work():
        await loop_for(Later())
        return await Later()

    assert run_sync(work) is True


def test_where_a_loop_runs_it_is_at_hand():
    async def work():
        await loop_at_hand()
        await loop_for(1)
        return running_task() is asyncio.current_task()

    assert asyncio.run(work())
    assert run_sync(work)


def test_a_loop_of_ones_own_inside_is_the_one_at_hand():
    async def inside():
        await loop_at_hand()
        return await answer()

    @asks_for_loop
    async def work():
        return asyncio.run(inside())

    assert run_sync(work) == 42


@pytest.mark.parametrize("caller", ["plain", "loop"])
@pytest.mark.parametrize("wants", [True, False])
def test_context_thread_and_errors_are_those_of_any_call(wants, caller):
    threads = []

    @asks_for_loop
    async def work():
        token = VAR.set("inside")
        threads.append(threading.get_ident())
        if wants:
            await loop_at_hand()
            await asyncio.sleep(0)
        threads.append(threading.get_ident())
        VAR.reset(token)  # only in the context it was set in
        raise ValueError(VAR.get())

    token = VAR.set("outside")
    try:
        with pytest.raises(ValueError, match="outside"):
            called_from(caller, work)
    finally:
        VAR.reset(token)
    assert threads[0] == threads[1]
    assert (threads[0] == threading.get_ident()) is (caller == "plain")


@pytest.mark.parametrize("wants", [True, False])
def test_what_is_set_inside_does_not_leak(wants):
    @asks_for_loop
    async def work():
        if wants:
            await loop_at_hand()
        VAR.set("inside")

    run_sync(work)
    assert VAR.get() == "unset"


def test_what_catches_an_error_goes_on_after_it_in_the_loop():
    async def fails():
        await loop_at_hand()
        await asyncio.sleep(0)
        raise KeyError("k")

    @asks_for_loop
    async def work():
        try:
            await fails()
        except KeyError:
            return await answer()

    assert run_sync(work) == 42


# -- the keyboard --------------------------------------------------------------------------


def called_from(caller, start):
    """Go through the door from plain code, or from inside a running loop."""
    if caller == "plain":
        return run_sync(start)

    async def main():
        return run_sync(start)

    # Not asyncio.run, which hears interrupts itself; a notebook's loop does not either.
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(main())
    finally:
        loop.close()


@contextlib.contextmanager
def pressed_when(ready):
    """Press for an end as soon as something is ready."""

    def press():
        if ready.wait(10):
            time.sleep(0.05)  # until it waits: Python may miss a signal that comes just before
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    try:
        yield
    finally:
        ready.set()
        thread.join()


CALLERS = pytest.mark.parametrize("caller", ["plain", "loop"])


@CALLERS
@MARKED
def test_an_interrupt_ends_what_only_lets_others_run(caller, mark):
    ready, ended = threading.Event(), []

    @mark
    async def work():
        ready.set()
        try:
            while True:
                await breath()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    with pressed_when(ready), pytest.raises(KeyboardInterrupt):
        called_from(caller, work)
    assert ended == ["cancelled"]


@CALLERS
@MARKED
def test_an_interrupt_reaches_what_waits(caller, mark):
    ready, ended = threading.Event(), []

    @mark
    async def work():
        await loop_at_hand()
        ready.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(asyncio.current_task().cancelling())

    with pressed_when(ready), pytest.raises(KeyboardInterrupt):
        called_from(caller, work)
    assert ended == [1]


@CALLERS
@MARKED
def test_an_interrupt_is_told_to_what_awaits_nothing(caller, mark):
    ready, told = threading.Event(), threading.Event()

    @mark
    async def work():
        on_interrupt(told.set)
        ready.set()
        assert told.wait(5)

    with pressed_when(ready), pytest.raises(KeyboardInterrupt):
        called_from(caller, work)
    assert told.is_set()


@MARKED
def test_a_second_interrupt_leaves_at_once(mark):
    seen = []

    @mark
    async def work():
        signal.raise_signal(signal.SIGINT)
        seen.append("went on after the first")
        signal.raise_signal(signal.SIGINT)
        seen.append("went on after the second")

    with pytest.raises(KeyboardInterrupt):
        run_sync(work)
    assert seen == ["went on after the first"]


@MARKED
def test_an_interrupt_is_raised_though_the_work_ended_well(mark):
    @mark
    async def work():
        signal.raise_signal(signal.SIGINT)
        return 42

    with pytest.raises(KeyboardInterrupt) as caught:
        run_sync(work)
    assert caught.value.run is None


@MARKED
def test_a_stage_that_swallows_a_cancellation_does_not_keep_the_engine_going(mark):
    seen = []

    async def stage():
        await loop_at_hand()
        asyncio.current_task().cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(5)

    def steps():
        yield None
        try:
            yield stage()
        except asyncio.CancelledError:
            seen.append("told")
            raise
        seen.append("went on")

    @mark
    async def work():
        await drive(steps())

    with pytest.raises(asyncio.CancelledError):
        run_sync(work)
    assert seen == ["told"]
