"""A request to stop, set once from anywhere: another thread, a button, a time limit.

Base layer. A `Stop` does not interrupt anything by itself; whoever works under it asks
``is_set()``, awaits it, or leaves a callback. asyncio is imported only by the coroutine that
awaits, so a stop may be made, set and asked without any event loop.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator
from typing import Any


class Stop:
    """Asks running work to end. Set once; every later `set` changes nothing.

    Awaiting a stop waits until it is set and gives the reason; any number of coroutines on any
    number of event loops may await the same one.

    Examples
    --------
    >>> stop = Stop()
    >>> forget = stop.on_set(lambda: print("told:", stop.reason))
    >>> stop.set("the window was closed")
    told: the window was closed
    >>> stop.is_set()
    True
    """

    __slots__ = ("__weakref__", "_callbacks", "_lock", "_reason", "_set")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._set = False
        self._reason: str | None = None
        self._callbacks: dict[object, Callable[[], Any]] = {}

    def is_set(self) -> bool:
        """Say whether a stop was asked for."""
        return self._set

    @property
    def reason(self) -> str | None:
        """Why, in the words of whoever set it first; None when not set or not said."""
        return self._reason

    def set(self, reason: str | None = None) -> None:
        """Ask for the stop and tell everybody who left a callback, in the order they left it.

        Parameters
        ----------
        reason : str, optional
            Shown where the stopped run is shown. The first reason stands.

        Raises
        ------
        Exception
            The first error a callback raised, after all the others were told too.
        """
        with self._lock:
            if self._set:
                return
            # The reason is there before the flag is: is_set() reads without the lock.
            self._reason = reason
            self._set = True
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
        failed: Exception | None = None
        for tell in callbacks:
            try:
                tell()
            except Exception as error:  # one listener's fault must not keep the others running
                failed = failed or error
        if failed is not None:
            raise failed

    def on_set(self, tell: Callable[[], Any]) -> Callable[[], None]:
        """Have ``tell()`` called when the stop is set, in the thread that sets it.

        On a stop that is already set it is called before this returns.

        Parameters
        ----------
        tell : callable
            Takes no argument and should return at once.

        Returns
        -------
        callable
            Forgets the callback; may be called more than once.

        Examples
        --------
        >>> stop = Stop()
        >>> forget = stop.on_set(lambda: print("told"))
        >>> forget()
        >>> stop.set()
        """
        key = object()
        with self._lock:
            already = self._set
            if not already:
                self._callbacks[key] = tell
        if already:
            tell()

        def forget() -> None:
            with self._lock:
                self._callbacks.pop(key, None)

        return forget

    def __await__(self) -> Generator[Any, None, str | None]:
        import asyncio

        loop = asyncio.get_running_loop()
        told: asyncio.Future[None] = loop.create_future()

        def resolve() -> None:
            if not told.done():
                told.set_result(None)

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # a closed loop has nobody left to wake
                loop.call_soon_threadsafe(resolve)

        forget = self.on_set(wake)
        try:
            yield from told
        finally:
            forget()
        return self._reason

    def __repr__(self) -> str:
        if not self._set:
            return "<Stop, not set>"
        return f"<Stop, set: {self._reason}>" if self._reason else "<Stop, set>"
