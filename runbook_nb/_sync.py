"""The sync door: call async code from anywhere, also from inside a running event loop.

Base layer. The outermost call runs its coroutine in a fresh thread with a loop of its own and a
copy of the caller's context; a nested one (a sync stage that calls a sync door) opens another.
The caller's loop is never patched, and nothing keeps running after the call returns.

asyncio is imported when a loop is first wanted. A call of which it is known that nothing of the
caller's runs inside goes without one, step by step, until it says by `loop_at_hand` that it wants
one; there it goes on as a task like any other.
"""

from __future__ import annotations

import contextlib
import contextvars
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from types import GeneratorType, coroutine
from typing import TYPE_CHECKING, Any, Final, TypeGuard, TypeVar

if TYPE_CHECKING:
    from asyncio import Task

T = TypeVar("T")

#: Flag of a generator that was written to be awaited.
_ITERABLE_COROUTINE: Final = 0x100

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


def is_awaitable(value: object) -> TypeGuard[Awaitable[Any]]:
    """Say whether something can be awaited, as ``inspect.isawaitable`` does, without inspect.

    Examples
    --------
    >>> is_awaitable(breath()), is_awaitable(1)
    (True, False)
    """
    return hasattr(type(value), "__await__") or (
        isinstance(value, GeneratorType)
        and value.gi_code.co_flags & _ITERABLE_COROUTINE == _ITERABLE_COROUTINE
    )


def running_task() -> Task[Any] | None:
    """Give the task that runs this; None where no event loop does."""
    if not _in_loop():
        return None
    from asyncio import current_task

    return current_task()


@coroutine
def breath() -> Generator[None, None, None]:
    """Let others run, where there are any; what ``asyncio.sleep(0)`` does, without asyncio."""
    yield


@coroutine
def loop_at_hand() -> Generator[object, None, None]:
    """See to it that an event loop runs this; awaited before anything that asks for one.

    Examples
    --------
    >>> async def works():
    ...     await loop_at_hand()
    ...     return running_task() is not None
    >>> run_sync(works, alone=True)
    True
    """
    door = _doors.get()
    if door is not None and door.by_hand and not _in_loop():
        yield _LOOP


def _in_loop() -> bool:
    if "asyncio" not in sys.modules:
        return False
    from asyncio import _get_running_loop  # waits for another thread that is importing it

    return _get_running_loop() is not None


def run_sync(start: Callable[[], Coroutine[Any, Any, T]], *, alone: bool = False) -> T:
    """Run a coroutine to its end and give its result.

    An interrupt from the keyboard cancels the coroutine, waits until it has ended, and then
    leaves as `KeyboardInterrupt`.

    Parameters
    ----------
    start : callable
        Makes the coroutine. It is called inside the new thread.
    alone : bool
        Whether nothing of the caller's runs inside, which might ask for the running loop: then
        there is one only from the first `loop_at_hand` on.

    Examples
    --------
    >>> async def answer():
    ...     return 42
    >>> run_sync(answer)
    42
    """
    door = _Door(start, by_hand=alone)
    # An outer door that is pressed for an end passes it on to those inside.
    forget = on_interrupt(door.cancel)
    thread = threading.Thread(target=door.run, name="runbook_nb-sync", daemon=True)
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
    """One call through the door: its context, its loop, its task, what came out."""

    def __init__(self, start: Callable[[], Coroutine[Any, Any, Any]], *, by_hand: bool) -> None:
        self._start = start
        #: Whether it goes without a loop as long as none is asked for.
        self.by_hand = by_hand
        self._context = contextvars.copy_context()
        self._context.run(_doors.set, self)
        self._loop: Any = None
        self._task: Any = None
        self._lock = threading.Lock()
        self._pressed = False
        self.done = threading.Event()
        self._told: dict[object, Callable[[], None]] = {}
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            rest: Coroutine[Any, Any, Any] | None = None
            if self.by_hand:
                rest = self._context.run(self._step_by_step)
            if rest is not None or not self.by_hand:
                self._run_in_loop(rest)
        except BaseException as error:  # handed over to the caller's thread, whatever it is
            self.error = error
        finally:
            self.done.set()

    def _step_by_step(self) -> Coroutine[Any, Any, Any] | None:
        """Go on until a loop is wanted; give what is left then."""
        begun = self._start()
        try:
            # While it only lets others run, and nobody presses for an end, there are no others.
            while begun.send(None) is None and not self._pressed:
                pass
        except StopIteration as done:
            self.result = done.value
            return None
        return begun

    def _run_in_loop(self, rest: Coroutine[Any, Any, Any] | None) -> None:
        import asyncio

        with asyncio.Runner() as runner:
            self._loop = runner.get_loop()
            self.result = runner.run(self._main(rest), context=self._context)

    async def _main(self, rest: Coroutine[Any, Any, Any] | None) -> Any:
        import asyncio

        with self._lock:
            self._task = asyncio.current_task()
            pressed = self._pressed
        if pressed:  # before there was a task to cancel
            self._task.cancel()
        return await (self._start() if rest is None else _Rest(rest))

    def on_cancel(self, tell: Callable[[], None]) -> Callable[[], None]:
        key = object()
        self._told[key] = tell

        def forget() -> None:
            self._told.pop(key, None)

        return forget

    def cancel(self) -> None:
        with self._lock:
            self._pressed = True
            task = self._task
        for tell in list(self._told.values()):
            tell()
        if task is not None and not task.done():
            with contextlib.suppress(RuntimeError):  # the loop was closed in the meantime
                self._loop.call_soon_threadsafe(task.cancel)


class _Rest:
    """What is left of a coroutine that was begun by hand."""

    def __init__(self, begun: Coroutine[Any, Any, Any]) -> None:
        self._begun = begun

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._begun.__await__()


#: What a coroutine yields that wants a loop.
_LOOP: Final = object()
