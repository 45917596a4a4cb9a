"""What the stores that outlive their process have in common: where they work, and how they fork.

Their verbs wait for a disk, so they are kept off a running loop; a caller that cannot await has
nothing to gain from another thread, so for him they run where he stands.
"""

from __future__ import annotations

import os
import threading
import weakref
from abc import abstractmethod
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol, Self, TypeVar

from runbook_nb._text import visible
from runbook_nb.artifacts.base import Shelf, ShelfStore, drive
from runbook_nb.artifacts.model import ArtifactScope
from runbook_nb.errors import ArtifactError

T = TypeVar("T")

#: How long a verb waits for another process that is writing.
BUSY_SECONDS: Final = 30.0

#: Whether the verb runs for a caller that cannot await, so that it need not leave his thread.
_in_place: ContextVar[bool] = ContextVar("in_place", default=False)


class DurableShelf(Shelf, Protocol):
    """A shelf of which a row may have been spoilt."""

    def discard(self, ref: str) -> bool:
        """Remove a row that cannot be read; says whether there was one."""


class DurableStore(ShelfStore):
    """A store whose shelves lie outside the process, one verb at a time in each store object.

    Parameters
    ----------
    max_bytes, max_count, ttl_ms : int, optional
        See `Retention`.
    """

    #: What a subclass may replace by something that waits.
    _may_wait: ClassVar[tuple[str, ...]] = ("put", "head", "get", "delete", "list", "_work")
    #: The nearest class above whose verbs are known not to await anything.
    _plain: ClassVar[type[DurableStore]]
    #: Whether one of them was put in the place of another here.
    _waits: ClassVar[bool]

    def __init_subclass__(cls, *, plain: bool = False, **more: Any) -> None:
        super().__init_subclass__(**more)
        if plain:
            cls._plain = cls
        own = getattr(cls, "_plain", cls)
        cls._waits = any(getattr(cls, n) is not getattr(own, n) for n in cls._may_wait)

    def __init__(self, max_bytes: int, max_count: int, ttl_ms: int | None) -> None:
        super().__init__(max_bytes, max_count, ttl_ms)
        self._lock = threading.Lock()
        renew_in_children(self)

    def close(self) -> None:
        """Let go of what is held open; a verb after it opens it again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    async def _work(self, act: Callable[[], T]) -> T:
        return act() if _in_place.get() else await super()._work(act)

    def settle(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a verb here and now, unless a subclass has put another in its place."""
        if self._waits:
            return super().settle(start)
        token = _in_place.set(True)
        try:
            return drive(start)
        finally:
            _in_place.reset(token)

    def _delete(self, scope: ArtifactScope, ref: Any, now: int) -> bool:
        try:
            return super()._delete(scope, ref, now)
        except ArtifactError as error:
            if error.code != "integrity":
                raise
        with self._open(scope) as shelf:  # what cannot be read can be thrown away
            return shelf.discard(ref)

    @abstractmethod
    def _open(self, scope: ArtifactScope) -> AbstractContextManager[DurableShelf]:
        """Open the shelf of a scope; nobody else works on it until it is closed."""

    @abstractmethod
    def faults(self) -> tuple[ArtifactError, ...]:
        """Read everything that is kept, and give what is wrong with it; changes nothing."""

    def forked(self) -> None:
        """Begin anew in a forked child, where no other thread holds anything."""
        self._lock, self._counting = threading.Lock(), threading.Lock()


class _Forks(Protocol):
    def forked(self) -> None: ...


#: What has locks that a forked child makes anew.
_open_here: weakref.WeakSet[_Forks] = weakref.WeakSet()


def renew_in_children(one: _Forks) -> None:
    """Have ``one.forked()`` called in every child that is forked."""
    _open_here.add(one)


def _renew() -> None:
    for one in list(_open_here):
        one.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def path_of(path: Any) -> Path:
    """Give the absolute path of a store, refusing what names none.

    Raises
    ------
    ArtifactError
        ``store_unavailable``.
    """
    try:
        read = Path(path)
    except TypeError:
        read = None
    if read is None or str(path) == ":memory:" or not read.name or not _can_name(read):
        raise ArtifactError(
            f"a store cannot be kept in {path!r:.80}",
            code="store_unavailable",
            where="path",
            fix="give the path of a file; InMemoryArtifacts() is the store without one",
        )
    return read.absolute()


def _can_name(path: Path) -> bool:
    """Say whether a path can name a file: one of a NUL or a lone surrogate cannot."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


#: What is kept in a place, unless another word is given.
ARTIFACTS: Final = "store of artifacts"


def not_a_store(name: str, where: str, why: str, what: str = ARTIFACTS) -> ArtifactError:
    """Build the error for a place that holds something else, or something damaged."""
    return ArtifactError(
        f"{visible(name)!r} is no {what}: {why}",
        code="not_a_store",
        where=where,
        fix="give the path of one, or one at which there is nothing yet",
    )


def unavailable(
    name: str, where: str, why: str, what: str = ARTIFACTS, *, busy: bool = False
) -> ArtifactError:
    """Build the error for a store that cannot be used at present."""
    return ArtifactError(
        f"the {what} {visible(name)!r} cannot be used: {visible(why)}",
        code="store_busy" if busy else "store_unavailable",
        where=where,
        fix="try again, or see which process keeps it locked"
        if busy
        else "see that the folder is there, may be written to and has room",
    )
