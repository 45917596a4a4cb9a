"""The store of a process: everything in memory, always bounded."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from runbook_nb._view import Card
from runbook_nb.artifacts.base import (
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_COUNT,
    Row,
    Shelf,
    ShelfStore,
    drive,
    now_ms,
)
from runbook_nb.artifacts.model import ArtifactScope
from runbook_nb.settings import settings

T = TypeVar("T")


class _MemoryShelf:
    """A mapping whose order is that of last use."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, tuple[Row, bytes]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def rows(self) -> Iterable[Row]:
        return [row for row, _ in self._held.values()]

    def find(self, ref: str) -> Row | None:
        held = self._held.get(ref)
        return None if held is None else held[0]

    def payload(self, ref: str) -> bytes:
        return self._held[ref][1]

    def use(self, ref: str) -> None:
        self._held.move_to_end(ref)

    def add(self, row: Row, payload: bytes) -> None:
        self._held[row.ticket.ref] = (row, payload)

    def remove(self, ref: str) -> None:
        del self._held[ref]


class InMemoryArtifacts(ShelfStore):
    """Keeps artifacts in this process, each scope within a budget of bytes and rows.

    Safe to use from several threads. Its work never waits, so the ``_sync`` twins answer without
    a thread.

    Parameters
    ----------
    max_bytes, max_count : int
        Budget of one scope; the least recently used rows leave when it is reached, and ``put``
        says which.
    ttl_ms : int, optional
        How long a row is kept at most, in milliseconds.

    Examples
    --------
    >>> store, scope = InMemoryArtifacts(), ArtifactScope("c1")
    >>> filed = store.put_sync(scope, {"kind": "note", "mediaType": "text/plain", "data": "é"})
    >>> filed.meta.bytes, store.get_sync(scope, filed.meta.ref).data
    (2, 'é')
    """

    def __init__(
        self,
        max_bytes: int = DEFAULT_MAX_BYTES,
        max_count: int = DEFAULT_MAX_COUNT,
        ttl_ms: int | None = None,
    ) -> None:
        super().__init__(max_bytes, max_count, ttl_ms)
        self._lock = threading.Lock()
        self._shelves: dict[ArtifactScope, _MemoryShelf] = {}

    @contextmanager
    def _open(self, scope: ArtifactScope) -> Iterator[Shelf]:
        with self._lock:
            shelf = self._shelves.setdefault(scope, _MemoryShelf())
            try:
                yield shelf
            finally:
                if not len(shelf):  # a scope that was only asked about leaves no trace
                    del self._shelves[scope]

    async def _work(self, act: Callable[[], T]) -> T:
        return act()

    def settle(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a verb without a thread, unless a subclass has put another in its place."""
        own = all(getattr(type(self), n) is getattr(InMemoryArtifacts, n) for n in _MAY_WAIT)
        return drive(start) if own else super().settle(start)

    def view(self, scope: ArtifactScope | None = None) -> Card:
        """Say what this looks like: counts and bytes by kind, for one scope or for all."""
        now = now_ms(settings.current)
        with self._lock:
            shelves = [shelf for key, shelf in self._shelves.items() if scope in (None, key)]
            tickets = [row.ticket for shelf in shelves for row in shelf.rows()]
        from runbook_nb.artifacts.totals import totals_card, totals_of

        live = totals_of(ticket for ticket in tickets if not ticket.expired(now))
        return totals_card("in memory", live, self.dropped if scope is None else 0)


#: What a subclass may replace by something that waits.
_MAY_WAIT = ("put", "head", "get", "delete", "list", "_work")
