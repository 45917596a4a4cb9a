"""Blocking stages: a plain function in a thread of its own, on a scope that is safe there.

Chart layer. Nobody can stop a thread, so a run that was stopped does not wait for one: its scope
is closed, and whatever the function still tries to read or write is refused.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Final

from runbook_nb._sync import loop_at_hand
from runbook_nb.chart.endings import STRAY
from runbook_nb.chart.scope import Scope

#: Said of a function that was not waited for any longer.
LEFT_RUNNING: Final = "still running when the run was stopped; its thread was left behind"


class ThreadScope(Scope):
    """A scope used in a thread while the engine may close it: each use is whole or refused."""

    __slots__ = ("lock",)

    def __init__(self, frame: Any, plan: Any) -> None:
        self.lock = threading.RLock()
        super().__init__(frame, plan)

    @property
    def args(self) -> Mapping[str, Any]:
        """The input of the run; see `Scope.args`."""
        with self.lock:
            return super().args


def _locked(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def locked(self: ThreadScope, *args: Any, **kwargs: Any) -> Any:
        with self.lock:
            return method(self, *args, **kwargs)

    return locked


for _name in (
    *("__getitem__", "get", "__contains__", "__iter__", "__len__", "facts_for_rules"),
    *("_note_reads", "__setitem__", "set", "merge", "append", "delete", "__delitem__", "emit"),
    *("read", "update", "stream", "stop", "close"),
):
    setattr(ThreadScope, _name, _locked(getattr(Scope, _name)))


async def in_thread(fn: Callable[..., Any], *args: Any) -> Any:
    """Run a function in a thread with a copy of the context, and await what it gives.

    Examples
    --------
    >>> import asyncio
    >>> asyncio.run(in_thread(str.upper, "ops"))
    'OPS'
    """
    await loop_at_hand()
    import asyncio

    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if future.done():  # nobody waits any more
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def work() -> None:
        value: Any = None
        error: BaseException | None = None
        try:
            value = context.run(fn, *args)
        except StopIteration as stray:  # a future cannot carry one
            error = RuntimeError(STRAY)
            error.__cause__ = stray
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, value, error)

    # A daemon: one that never comes back keeps no process alive.
    thread = threading.Thread(target=work, name="runbook_nb-blocking", daemon=True)
    thread.start()
    try:
        value = await future
    except asyncio.CancelledError:
        if future.cancelled():  # what the function itself raised comes out as it is
            raise asyncio.CancelledError(LEFT_RUNNING) from None
        raise
    return await value if hasattr(value, "__await__") else value
