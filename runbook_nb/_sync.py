"""The sync door: call async code from anywhere, also from inside a running event loop.

Base layer. A call runs where it is made, in a copy of the caller's context. Only where an event
loop runs already it gets a fresh thread: the caller's loop is never patched. Nothing keeps
running after the call returns.

asyncio is imported when a loop is first wanted. The package's own coroutines go without one, step
by step, until something of the caller's is to be awaited (`loop_for`) or a part of the package
needs a loop itself (`loop_at_hand`); there they go on as a task like any other. What a plain
function finds therefore never depends on who imported asyncio.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from types import CodeType, GeneratorType, coroutine
from typing import TYPE_CHECKING, Any, Final, TypeGuard, TypeVar

if TYPE_CHECKING:
    from asyncio import Task

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

#: Code of the coroutines that ask for a loop themselves, where they want one.
_OURS: Final[dict[int, CodeType]] = {}

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
    >>> @asks_for_loop
    ... async def works():
    ...     before = running_task()
    ...     await loop_at_hand()
    ...     return before, running_task() is not None
    >>> run_sync(works)
    (None, True)
    """
    if _doors.get() is not None and not _in_loop():
        yield _LOOP


def asks_for_loop(fn: F) -> F:
    """Mark a coroutine function that awaits `loop_at_hand` before anything that asks for a loop.

    Whatever is not marked is the caller's, and gets a loop before it begins.

    Examples
    --------
    >>> @asks_for_loop
    ... async def look():
    ...     return running_task()
    >>> run_sync(look) is None
    True
    """
    _OURS[id(fn.__code__)] = fn.__code__
    return fn


@coroutine
def loop_for(awaitable: object) -> Generator[object, None, None]:
    """See to it that an event loop runs this, unless what is to be awaited asks for one itself.

    Examples
    --------
    >>> async def theirs():
    ...     return running_task() is not None
    >>> @asks_for_loop
    ... async def ours():
    ...     waiting = theirs()
    ...     await loop_for(waiting)
    ...     return await waiting
    >>> run_sync(ours)
    True
    """
    if not _asks(awaitable) and _doors.get() is not None and not _in_loop():
        yield _LOOP


def _asks(awaitable: object) -> bool:
    return id(getattr(awaitable, "cr_code", None)) in _OURS


def _in_loop() -> bool:
    if "asyncio" not in sys.modules:
        return False
    from asyncio import _get_running_loop  # waits for another thread that is importing it

    return _get_running_loop() is not None


def run_sync(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end and give its result.

    An interrupt from the keyboard cancels the coroutine, waits until it has ended, and then
    leaves as `KeyboardInterrupt`; a second one waits for nothing but tasks that will not end.

    Parameters
    ----------
    start : callable
        Makes the coroutine. It is called where the coroutine runs.

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
    try:
        interrupt = _run(door)
    finally:
        forget()
    if interrupt is not None:
        # The interrupted run is worth more than the bare interrupt: hand it over.
        interrupt.run = getattr(door.error, "run", None)  # type: ignore[attr-defined]
        raise interrupt
    if door.error is not None:
        try:
            raise door.error
        finally:
            door.error = None  # the frame must not keep the error, which keeps the frame
    result: T = door.result
    return result


class _Presses:
    """Hears interrupts while a call runs in the main thread, in the place of Python itself.

    Python would raise in the midst of whatever runs; the record of a run must not be cut there.
    """

    def __init__(self, door: _Door) -> None:
        self._door = door
        self._process = os.getpid()
        self.interrupt: KeyboardInterrupt | None = None

    @property
    def live(self) -> bool:
        """Whether the call still runs, in this process: who put it back later finds Python's."""
        return not self._door.done and os.getpid() == self._process

    def __call__(self, number: int, frame: object) -> None:
        # Pressed twice: do not wait for a coroutine that will not end.
        if self.interrupt is not None or not self.live:
            raise KeyboardInterrupt
        self.interrupt = KeyboardInterrupt()
        self._door.cancel()


def _run(door: _Door) -> KeyboardInterrupt | None:
    """Run the coroutine to its end, here unless a loop runs; give the interrupt, if any."""
    if _in_loop():
        return _run_beside(door)
    if threading.current_thread() is not threading.main_thread():
        door.run()
        return None
    # What `signal` is made of: itself it looks every handler up among its constants.
    import _signal as signal  # type: ignore[import-not-found]

    before = signal.getsignal(signal.SIGINT)
    if isinstance(before, _Presses):
        if before.live:
            door.run()  # an outer door is told, and tells this one
            return None
        before = signal.default_int_handler
    if before is not signal.default_int_handler:
        return _run_beside(door)  # another hears interrupts in this thread, and may raise
    presses = _Presses(door)
    signal.signal(signal.SIGINT, presses)
    try:
        door.run()
    finally:
        if signal.getsignal(signal.SIGINT) is presses:
            signal.signal(signal.SIGINT, before)
    return presses.interrupt


def _run_beside(door: _Door) -> KeyboardInterrupt | None:
    """Run the coroutine in a fresh thread and wait until it has ended; give the interrupt."""
    thread = threading.Thread(target=door.run, name="runbook_nb-sync", daemon=True)
    interrupt = _wait(door, thread)
    if interrupt is None:
        thread.join()
    return interrupt


def _wait(door: _Door, thread: threading.Thread) -> KeyboardInterrupt | None:
    """Start the thread and wait until its coroutine has ended; give the interrupt, if any."""
    interrupt: KeyboardInterrupt | None = None
    started = False
    door.ended = ended = threading.Event()
    while True:
        try:
            if not started:
                started = True
                thread.start()
            # Not join(): once interrupted, some Pythons take the thread for ended (bpo-45274).
            ended.wait()
            return interrupt
        except KeyboardInterrupt as pressed:
            # Pressed twice: do not wait for a coroutine that will not end.
            if door.pressed:
                raise
            interrupt = pressed
            door.cancel()


class _Door:
    """One call through the door: its context, its loop, its task, what came out."""

    def __init__(self, start: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self._start = start
        self._context = contextvars.copy_context()
        self._context.run(_doors.set, self)
        self._loop: Any = None
        self._task: Any = None
        # Interrupts are heard in the midst of anything, by the thread that may hold it.
        self._lock = threading.RLock()
        #: Whether an end was asked for, and whether the task was told so.
        self.pressed = self._told_task = False
        self.done = False
        #: Set when the coroutine has ended, for who waits in another thread.
        self.ended: threading.Event | None = None
        self._told: dict[object, Callable[[], None]] = {}
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            rest = self._context.run(self._step_by_step)
            if rest is not None:
                self._run_in_loop(rest)
        except BaseException as error:  # handed over to the caller, whatever it is
            self.error = error
        finally:
            # It holds this door, which would keep what came out until the collector finds the two.
            del self._context
            self.done = True
            if self.ended is not None:
                self.ended.set()

    def _step_by_step(self) -> Awaitable[Any] | None:
        """Go on until a loop is wanted; give what is left then."""
        begun = self._start()
        if not _asks(begun):
            return begun
        try:
            # While it only lets others run, and nobody presses for an end, there are no others.
            while begun.send(None) is None and not self.pressed:
                pass
        except StopIteration as done:
            self.result = done.value
            return None
        return _Rest(begun)

    def _run_in_loop(self, rest: Awaitable[Any]) -> None:
        import asyncio

        # With a factory: the loop that the caller has set for this thread stays set.
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            self._loop = runner.get_loop()
            with _waking(self._loop):
                self.result = runner.run(self._main(rest), context=self._context)

    async def _main(self, rest: Awaitable[Any]) -> Any:
        import asyncio

        self._task = asyncio.current_task()
        self._tell_task()  # pressed before there was a task to cancel
        return await rest

    def on_cancel(self, tell: Callable[[], None]) -> Callable[[], None]:
        key = object()
        self._told[key] = tell

        def forget() -> None:
            self._told.pop(key, None)

        return forget

    def cancel(self) -> None:
        self.pressed = True
        for tell in list(self._told.values()):
            tell()
        self._tell_task()

    def _tell_task(self) -> None:
        """Cancel the task, once, when an end was asked for and there is a task."""
        with self._lock:
            if not self.pressed or self._told_task or self._task is None:
                return
            self._told_task = True
        if not self._task.done():
            with contextlib.suppress(RuntimeError):  # the loop was closed in the meantime
                self._loop.call_soon_threadsafe(self._task.cancel)


@contextlib.contextmanager
def _waking(loop: Any) -> Iterator[None]:
    """Wake a loop of the main thread by signals, also by one that comes as it falls asleep.

    Python hears a signal only between two steps of its own; a loop that is just about to wait
    would not hear it until it is woken by something else.
    """
    if os.name == "nt" or threading.current_thread() is not threading.main_thread():
        yield  # elsewhere no signals are heard; on Windows the loop sees to it itself
        return
    import signal

    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    loop.add_reader(reading, os.read, reading, 512)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        loop.remove_reader(reading)
        os.close(reading)
        os.close(writing)


class _Rest:
    """What is left of a coroutine that was begun by hand."""

    def __init__(self, begun: Coroutine[Any, Any, Any]) -> None:
        self._begun = begun

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._begun.__await__()


#: What a coroutine yields that wants a loop.
_LOOP: Final = object()
