"""The sync door: calls from anywhere, context, errors, and nothing left running."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from types import SimpleNamespace

import pytest

from runbook_nb._sync import breath, loop_at_hand, on_interrupt, run_sync, running_task
from runbook_nb.chart.endings import drive
from runbook_nb.settings import settings

VAR = contextvars.ContextVar("var", default="unset")


async def answer(value=42):
    await asyncio.sleep(0)
    return value


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


def test_it_runs_in_a_thread_of_its_own_each_time():
    async def who():
        return threading.get_ident()

    assert run_sync(who) != threading.get_ident()


def test_an_interrupt_is_passed_on_to_doors_inside_and_to_those_who_asked(monkeypatch):
    told = []
    pressed = threading.Event()

    class Pressed(threading.Event):
        """An event whose first wait is interrupted, as by the keyboard."""

        def wait(self, timeout=None):
            if threading.current_thread() is threading.main_thread() and not pressed.is_set():
                ready.wait(5)
                pressed.set()
                raise KeyboardInterrupt
            return super().wait(timeout)

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

    ours = SimpleNamespace(Event=Pressed, Thread=threading.Thread, Lock=threading.Lock)
    monkeypatch.setattr("runbook_nb._sync.threading", ours)
    with pytest.raises(KeyboardInterrupt) as caught:
        run_sync(outer)
    assert sorted(told) == ["inner", "outer"]
    assert caught.value.run is None


def test_outside_any_door_there_is_nobody_to_be_told():
    forget = on_interrupt(lambda: None)
    forget()


# -- without a loop ------------------------------------------------------------------------


def test_what_runs_alone_has_no_loop_until_it_wants_one():
    seen = []

    async def work():
        seen.append(running_task())
        await breath()
        seen.append(running_task())
        await loop_at_hand()
        seen.append(running_task() is asyncio.current_task())
        await loop_at_hand()
        return await answer()

    assert run_sync(work, alone=True) == 42
    assert seen == [None, None, True]


def test_where_a_loop_runs_it_is_at_hand():
    async def work():
        await loop_at_hand()
        return running_task() is asyncio.current_task()

    assert asyncio.run(work())
    assert run_sync(work)


def test_a_loop_of_ones_own_inside_is_the_one_at_hand():
    async def inside():
        await loop_at_hand()
        return await answer()

    async def work():
        return asyncio.run(inside())

    assert run_sync(work, alone=True) == 42


@pytest.mark.parametrize("wants", [True, False])
def test_context_thread_and_errors_are_those_of_any_call(wants):
    threads = []

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
            run_sync(work, alone=True)
    finally:
        VAR.reset(token)
    assert threads[0] == threads[1] != threading.get_ident()


def test_what_catches_an_error_goes_on_after_it_in_the_loop():
    async def fails():
        await loop_at_hand()
        await asyncio.sleep(0)
        raise KeyError("k")

    async def work():
        try:
            await fails()
        except KeyError:
            return await answer()

    assert run_sync(work, alone=True) == 42


def pressing(monkeypatch, ready):
    """Have the one who waits at the door press for an end as soon as it is ready."""
    pressed = threading.Event()

    class Pressed(threading.Event):
        def wait(self, timeout=None):
            if threading.current_thread() is threading.main_thread() and not pressed.is_set():
                ready.wait(5)
                pressed.set()
                raise KeyboardInterrupt
            return super().wait(timeout)

    ours = SimpleNamespace(Event=Pressed, Thread=threading.Thread, Lock=threading.Lock)
    monkeypatch.setattr("runbook_nb._sync.threading", ours)
    return pressed


@pytest.mark.parametrize("alone", [True, False])
def test_an_interrupt_ends_what_only_lets_others_run(monkeypatch, alone):
    ready, ended = threading.Event(), []
    pressing(monkeypatch, ready)

    async def work():
        ready.set()
        try:
            while True:
                await breath()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    with pytest.raises(KeyboardInterrupt):
        run_sync(work, alone=alone)
    assert ended == ["cancelled"]


@pytest.mark.parametrize("alone", [True, False])
def test_an_interrupt_reaches_what_waits(monkeypatch, alone):
    ready, ended = threading.Event(), []
    pressing(monkeypatch, ready)

    async def work():
        await loop_at_hand()
        ready.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(asyncio.current_task().cancelling())

    with pytest.raises(KeyboardInterrupt):
        run_sync(work, alone=alone)
    assert ended == [1]


@pytest.mark.parametrize("alone", [True, False])
def test_an_interrupt_is_told_to_what_awaits_nothing(monkeypatch, alone):
    ready, told = threading.Event(), threading.Event()
    pressing(monkeypatch, ready)

    async def work():
        on_interrupt(told.set)
        ready.set()
        assert told.wait(5)

    with pytest.raises(KeyboardInterrupt):
        run_sync(work, alone=alone)
    assert told.is_set()


@pytest.mark.parametrize("alone", [True, False])
def test_a_stage_that_swallows_a_cancellation_does_not_keep_the_engine_going(alone):
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

    with pytest.raises(asyncio.CancelledError):
        run_sync(lambda: drive(steps()), alone=alone)
    assert seen == ["told"]
