"""Where the branches of a fan-out run: in place, in threads, in processes, on a cluster.

Chart layer. Whatever it is, it takes chunks of branches and gives back what came of them; how
they are cut and joined is `spreading`'s affair, and the record is the same for all of them. Pools
that are made here end with their run. An executor or client that was given is used and left as it
was found. Nothing is imported before the first fan-out needs it.
"""

from __future__ import annotations

import contextvars
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._stop import Stop
from runbook_nb._text import did_you_mean
from runbook_nb.chart.standing import standing
from runbook_nb.errors import DefinitionError

if TYPE_CHECKING:
    from concurrent.futures import Executor

#: Chunks that may wait in a pool for one that runs, so that no worker waits for its next.
AHEAD: Final = 2
#: Pools of processes that may break, one after the other, before work is given up.
BREAKS: Final = 3

#: The engines that are named by a word.
WORDS: Final = ("inline", "threads", "processes")


def as_engine(given: Any) -> Engine | None:
    """Read what was given for ``engine``; None where branches run in place.

    A run inside a branch that is itself on a worker runs in place, whatever it was given: its
    work would wait for the very workers that wait for it.

    Raises
    ------
    DefinitionError
        It is no engine.

    Examples
    --------
    >>> as_engine(None) is as_engine("inline") is None
    True
    >>> as_engine("thread")
    Traceback (most recent call last):
        ...
    runbook_nb.errors.DefinitionError: engine cannot be 'thread'; did you mean 'threads'?
    """
    made: Engine | None
    if given is None or (isinstance(given, str) and given == "inline"):
        return None
    if isinstance(given, str) and given in WORDS:
        made = Threads() if given == "threads" else Processes()
    elif callable(getattr(given, "submit", None)) and not isinstance(given, type):
        made = Lent(given)
    else:
        near = did_you_mean(given, WORDS) if isinstance(given, str) else None
        raise DefinitionError(
            f"engine cannot be {given!r}",
            code="bad_engine",
            where="engine",
            fix=near or f"use one of {', '.join(map(repr, WORDS))}, an executor, or a dask client",
        )
    return None if standing.get() is not None else made


class Crew:
    """The workers of one execution of a fan-out.

    Attributes
    ----------
    direct : bool
        Whether they see the same objects; else work is sent to them.
    window : int
        How many chunks may be out at once.
    abreast : int
        How many of them run at once, as far as it is known.
    width : int
        How many branches that wait may be under way at once in each chunk.
    signal : Stop or None
        Tells those who see it to end between stages.
    keeps_word : bool
        Whether what they call cancelled never began.
    """

    keeps_word = True

    def __init__(
        self, submit: Callable[..., Any], *, direct: bool, window: int, width: int
    ) -> None:
        self.submit = submit
        self.direct = direct
        self.window = window
        self.abreast = window if direct else -(-window // AHEAD)
        self.width = width
        self.signal = Stop() if direct else None

    @property
    def told(self) -> bool:
        """Whether the workers were told to end."""
        return self.signal is not None and self.signal.is_set()

    def renew(self) -> bool:
        """Have new workers in the place of lost ones; say whether there are any."""
        return False

    def is_gone(self) -> bool:
        """Say whether nothing more can come of it, as far as it can be asked."""
        return False

    def halt(self) -> None:
        """Tell the workers to end what they do, as soon as they can."""
        if self.signal is not None:
            self.signal.set("the run was stopped")

    async def close(self) -> None:
        """Let go of what was made for this fan-out alone."""


class Engine:
    """Gives crews."""

    def crew(self, bound: int, count: int) -> Crew:
        """Give the workers for a fan-out.

        Parameters
        ----------
        bound : int
            How many branches may run at once, over all of them.
        count : int
            How many there are.
        """
        raise NotImplementedError

    async def close(self) -> None:
        """End what was made for the run."""


class Threads(Engine):
    """A thread per branch that runs at once, for work that waits for others."""

    def crew(self, bound: int, count: int) -> Crew:
        """Give threads of its own to each fan-out."""
        from concurrent.futures import ThreadPoolExecutor

        size = max(min(bound, count), 1)
        pool = ThreadPoolExecutor(size, thread_name_prefix="runbook_nb-branch")
        return _ThreadCrew(pool, size)


class _ThreadCrew(Crew):
    def __init__(self, pool: Executor, size: int) -> None:
        super().__init__(in_context(pool.submit), direct=True, window=size, width=1)
        self._pool = pool

    async def close(self) -> None:
        from runbook_nb.chart.threads import in_thread

        await in_thread(lambda: self._pool.shutdown(wait=True, cancel_futures=True))


class Processes(Engine):
    """As many processes as there are cores, for work that computes; they end with the run."""

    def __init__(self) -> None:
        self.size = cores()
        self._pool: Executor | None = None
        self._ending: Any = None

    def crew(self, bound: int, count: int) -> Crew:
        """Give the processes of the run, which all fan-outs share."""
        return _ProcessCrew(self, *shared(bound, self.size))

    @property
    def pool(self) -> Executor:
        """The pool, made when it is first needed."""
        if self._pool is None:
            from concurrent.futures import ProcessPoolExecutor
            from multiprocessing import get_all_start_methods, get_context

            from runbook_nb.chart.worker import begin_process

            # Never by forking: a kernel has threads, and what they hold would be held for ever.
            known = get_all_start_methods()
            context = get_context("forkserver" if "forkserver" in known else "spawn")
            self._ending = context.Event()
            self._pool = ProcessPoolExecutor(
                self.size, mp_context=context, initializer=begin_process, initargs=(self._ending,)
            )
        return self._pool

    def drop(self, pool: Executor | None) -> None:
        """Do without a pool that is broken or was told to end."""
        if self._pool is pool and pool is not None:
            self._pool = None
            pool.shutdown(wait=False, cancel_futures=True)

    @property
    def told(self) -> bool:
        """Whether the processes were told that the run ends."""
        return self._ending is not None and bool(self._ending.is_set())

    def tell(self) -> None:
        """Tell the processes that the run ends."""
        if self._pool is not None:
            self._ending.set()

    async def close(self) -> None:
        """End the processes."""
        pool, self._pool = self._pool, None
        if pool is not None:
            from runbook_nb.chart.threads import in_thread

            await in_thread(lambda: pool.shutdown(wait=True, cancel_futures=True))


class _ProcessCrew(Crew):
    def __init__(self, engine: Processes, window: int, width: int) -> None:
        super().__init__(self._submit, direct=False, window=window, width=width)
        self._engine = engine
        self._used: Executor | None = None

    def _submit(self, fn: Callable[..., Any], *args: Any) -> Any:
        # A pool may have broken before anybody was told, and so may the next: the server that
        # starts the processes can go down with those it had started.
        for _ in range(BREAKS):
            self._used = self._engine.pool
            try:
                return self._used.submit(fn, *args)
            except (RuntimeError, OSError, EOFError):
                self.renew()
        self._used = self._engine.pool
        return self._used.submit(fn, *args)

    def renew(self) -> bool:
        self._engine.drop(self._used)
        return True

    @property
    def told(self) -> bool:
        return self._engine.told

    def halt(self) -> None:
        self._engine.tell()

    async def close(self) -> None:
        if self.told:  # they would end whatever they are given
            self._engine.drop(self._used)


class Lent(Engine):
    """An executor, or the client of a cluster, that the caller made and keeps."""

    def __init__(self, given: Any) -> None:
        self.given = given

    def crew(self, bound: int, count: int) -> Crew:
        """Give what there is."""
        futures: Any = sys.modules.get("concurrent.futures")
        given = self.given
        if is_client(given):
            return _ClusterCrew(given, *shared(bound, _threads_of(given)))
        window, width = shared(bound, _size_of(given))
        if futures is not None and isinstance(given, futures.ThreadPoolExecutor):
            return Crew(in_context(given.submit), direct=True, window=window, width=width)
        return Crew(given.submit, direct=False, window=window, width=width)


class _ClusterCrew(Crew):
    keeps_word = False

    def __init__(self, client: Any, window: int, width: int) -> None:
        super().__init__(self._submit, direct=False, window=window, width=width)
        self._client = client

    def _submit(self, fn: Callable[..., Any], *args: Any) -> Any:
        # Equal work is done again: its functions are the author's, and may not be pure.
        return self._client.submit(fn, *args, pure=False)

    def is_gone(self) -> bool:
        return getattr(self._client, "status", None) in ("closing", "closed")


def in_context(submit: Callable[..., Any]) -> Callable[..., Any]:
    """Submit work that runs in a copy of the context it is submitted in."""

    def submitted(fn: Callable[..., Any], *args: Any) -> Any:
        return submit(contextvars.copy_context().run, fn, *args)

    return submitted


def cores() -> int:
    """Say how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(len(os.sched_getaffinity(0)), 1)
    return os.cpu_count() or 1


def shared(bound: int, size: int | None) -> tuple[int, int]:
    """Share a bound between workers: how many chunks are out, how many branches at once in each.

    Parameters
    ----------
    bound : int
        Branches that may run at once.
    size : int or None
        How many chunks can run at once; None when nobody can say.

    Examples
    --------
    >>> shared(16, 2), shared(3, 8), shared(16, None)
    ((4, 8), (3, 1), (16, 1))
    """
    if size is None:
        return bound, 1
    window = max(min(bound, size * AHEAD), 1)
    return window, max(bound // min(window, size), 1)


def _size_of(given: Any) -> int | None:
    size = getattr(given, "_max_workers", None)
    return size if type(size) is int and size > 0 else None


def is_client(given: Any) -> bool:
    """Say whether something is the client of a dask cluster, without importing anything."""
    distributed: Any = sys.modules.get("distributed")
    return distributed is not None and isinstance(given, distributed.Client)


def _threads_of(client: Any) -> int | None:
    """Say how many threads the workers of a cluster have, as its client knows by itself."""
    try:
        told = client.scheduler_info()
        threads = sum(worker["nthreads"] for worker in told["workers"].values())
        return threads or told.get("total_threads") or None
    except Exception:  # an older client, or a cluster that is gone: that shows when work is sent
        return None


def is_lost(error: BaseException) -> bool:
    """Say whether an error of an executor means that a worker died."""
    futures: Any = sys.modules.get("concurrent.futures")
    if futures is not None and isinstance(error, futures.BrokenExecutor):
        return True
    return any(one.__name__ in _DEATHS for one in type(error).__mro__)


#: What dask and loky call it.
_DEATHS: Final = ("KilledWorker", "TerminatedWorkerError", "ShutdownExecutorError")
