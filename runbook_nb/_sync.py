"""The sync door: call async code from anywhere, also from inside a running event loop.

Base layer. The outermost call runs its coroutine in a fresh thread with a loop of its own and a
copy of the caller's context; a nested one (a sync stage that calls a sync door) opens another.
The caller's loop is never patched, and nothing keeps running after the call returns. asyncio is
imported when the door is first used.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

#: The innermost door the present code runs behind.
_doors: contextvars.ContextVar[_Door | None] = contextvars.ContextVar(
    "runbook_nb_door", default=None
)


def on_interrupt(tell: Callable[[], None]) -> Callable[[], None]:
    """Have ``tell()`` called when the caller of the sync door presses for an end.

    For work that may go on without awaiting anything, so that cancelling it does not reach it.
    Outside any door nothing is ever told.

    Parameters
    ----------
    tell : callable
        Called in the thread that waits at the door; it should return at once.

    Returns
    -------
    callable
        Forgets it.
    """
    door = _doors.get()
    if door is None:
        return lambda: None
    return door.on_cancel(tell)


def run_sync(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end and give its result.

    An interrupt from the keyboard cancels the coroutine, waits until it has ended, and then
    leaves as `KeyboardInterrupt`.

    Parameters
    ----------
    start : callable
        Makes the coroutine. It is called inside the new thread.

    Examples
    --------
    >>> async def answer():
    ...     return 42
    >>> run_sync(answer)
    42
    """
    door = _Door(start)
    # An outer door that is pressed for an end passes it on to those inside.
    forget = on_interrupt(door.cancel)
    context = contextvars.copy_context()
    context.run(_doors.set, door)
    thread = threading.Thread(
        target=context.run, args=(door.run,), name="runbook_nb-sync", daemon=True
    )
    interrupt = _wait(door, thread)
    forget()
    if interrupt is not None:
        # The interrupted run is worth more than the bare interrupt: hand it over.
        interrupt.run = getattr(door.error, "run", None)  # type: ignore[attr-defined]
        raise interrupt
    thread.join()
    if door.error is not None:
        try:
            raise door.error
        finally:
            door.error = None  # the frame must not keep the error, which keeps the frame
    result: T = door.result
    return result


def _wait(door: _Door, thread: threading.Thread) -> KeyboardInterrupt | None:
    """Start the thread and wait until its coroutine has ended; give the interrupt, if any."""
    interrupt: KeyboardInterrupt | None = None
    started = False
    while True:
        try:
            if not started:
                started = True
                thread.start()
            # Not join(): once interrupted, some Pythons take the thread for ended (bpo-45274).
            door.done.wait()
            return interrupt
        except KeyboardInterrupt as pressed:
            # Pressed twice: do not wait for a coroutine that will not end.
            if interrupt is not None:
                raise
            interrupt = pressed
            door.cancel()


class _Door:
    """One call through the door: its loop, its task, what came out."""

    def __init__(self, start: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self._start = start
        self._loop: Any = None
        self._task: Any = None
        self._ready = threading.Event()
        self.done = threading.Event()
        self._told: dict[object, Callable[[], None]] = {}
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        import asyncio

        try:
            with asyncio.Runner() as runner:
                self._loop = runner.get_loop()
                self.result = runner.run(self._main())
        except BaseException as error:  # handed over to the caller's thread, whatever it is
            self.error = error
        finally:
            self._ready.set()
            self.done.set()

    async def _main(self) -> Any:
        import asyncio

        self._task = asyncio.current_task()
        self._ready.set()
        return await self._start()

    def on_cancel(self, tell: Callable[[], None]) -> Callable[[], None]:
        key = object()
        self._told[key] = tell

        def forget() -> None:
            self._told.pop(key, None)

        return forget

    def cancel(self) -> None:
        self._ready.wait(5)
        for tell in list(self._told.values()):
            tell()
        if self._task is not None and not self._task.done():
            with contextlib.suppress(RuntimeError):  # the loop was closed in the meantime
                self._loop.call_soon_threadsafe(self._task.cancel)
