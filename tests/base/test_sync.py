"""The sync door: calls from anywhere, context, errors, and nothing left running."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from types import SimpleNamespace

import pytest

from runbook_nb._sync import on_interrupt, run_sync
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

    ours = SimpleNamespace(Event=Pressed, Thread=threading.Thread)
    monkeypatch.setattr("runbook_nb._sync.threading", ours)
    with pytest.raises(KeyboardInterrupt) as caught:
        run_sync(outer)
    assert sorted(told) == ["inner", "outer"]
    assert caught.value.run is None


def test_outside_any_door_there_is_nobody_to_be_told():
    forget = on_interrupt(lambda: None)
    forget()
