"""What a store is, and the laws every store shares.

`ArtifactStore` is the interface: five async verbs that take a scope first, with ``_sync`` twins.
`ShelfStore` keeps all the laws (reading what is handed in, references, retention, expiry, paging,
digests) over a *shelf*: the rows of one scope, held exclusively while a verb works. A new store
over a file, a table or a bucket therefore says only how a shelf is opened and what its six
operations do.
"""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol, TypeGuard, TypeVar

from runbook_nb._display import Renderable
from runbook_nb._ids import random_id
from runbook_nb._sync import asks_for_loop, loop_at_hand, run_sync
from runbook_nb._text import counted
from runbook_nb._value import frozen
from runbook_nb._view import Card
from runbook_nb.artifacts.model import (
    ArtifactPage,
    ArtifactScope,
    PutResult,
    Record,
    SweepReason,
    Swept,
    Ticket,
)
from runbook_nb.artifacts.parcel import (
    REF_LENGTH,
    Parcel,
    PayloadForm,
    digest_of,
    invalid,
    is_ref,
    read_parcel,
    unknown_parent,
)
from runbook_nb.errors import ArtifactError, DefinitionError
from runbook_nb.settings import Options, settings

T = TypeVar("T")

#: Budget of a scope in bytes and in rows, unless told otherwise.
DEFAULT_MAX_BYTES: Final = 32 * 1024 * 1024
DEFAULT_MAX_COUNT: Final = 256
#: Tickets on a page of ``list``.
DEFAULT_PAGE: Final = 50

_MILLISECOND: Final = timedelta(milliseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CURSOR: Final = r"(-?[0-9]{1,18}):(art_[A-Za-z0-9]+)"
#: How often a reference already in use is drawn again before the source of ids is blamed.
_DRAWS: Final = 16


class ArtifactStore(Renderable, ABC):
    """Keeps payloads under references, apart for each scope.

    Subclass it for a store that is asynchronous by nature; subclass `ShelfStore` for one whose
    rows can be held in a transaction.
    """

    @abstractmethod
    async def put(self, scope: ArtifactScope, artifact: Any) -> PutResult:
        """File an artifact: ``{"kind", "mediaType", "data", …}`` (see `read_parcel`).

        Raises
        ------
        ArtifactError
            ``invalid_artifact``, ``unknown_parent`` or ``too_large``. Nothing is filed then, and
            no reference is used up.
        """

    @abstractmethod
    async def head(self, scope: ArtifactScope, ref: str) -> Ticket | None:
        """Give the ticket, or None.

        A reference that is malformed, unknown, expired or another scope's gives the same answer
        on purpose.
        """

    @abstractmethod
    async def get(self, scope: ArtifactScope, ref: str) -> Record | None:
        """Give ticket and payload, or None as `head` does.

        Raises
        ------
        ArtifactError
            ``integrity``: the payload is no longer the one that was filed.
        """

    @abstractmethod
    async def delete(self, scope: ArtifactScope, ref: str) -> bool:
        """Remove an artifact; says whether there was one, and never fails for want of it."""

    @abstractmethod
    async def list(
        self, scope: ArtifactScope, *, limit: int = DEFAULT_PAGE, cursor: str | None = None
    ) -> ArtifactPage:
        """Give a page of tickets, newest first; a cursor nobody gave out starts from the first."""

    def put_sync(self, scope: ArtifactScope, artifact: Any) -> PutResult:
        """Do what `put` does, from code that cannot await."""
        return self.settle(lambda: self.put(scope, artifact))

    def head_sync(self, scope: ArtifactScope, ref: str) -> Ticket | None:
        """Do what `head` does, from code that cannot await."""
        return self.settle(lambda: self.head(scope, ref))

    def get_sync(self, scope: ArtifactScope, ref: str) -> Record | None:
        """Do what `get` does, from code that cannot await."""
        return self.settle(lambda: self.get(scope, ref))

    def delete_sync(self, scope: ArtifactScope, ref: str) -> bool:
        """Do what `delete` does, from code that cannot await."""
        return self.settle(lambda: self.delete(scope, ref))

    def list_sync(
        self, scope: ArtifactScope, *, limit: int = DEFAULT_PAGE, cursor: str | None = None
    ) -> ArtifactPage:
        """Do what `list` does, from code that cannot await."""
        return self.settle(lambda: self.list(scope, limit=limit, cursor=cursor))

    def settle(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a verb's coroutine to its end; the one way every ``_sync`` twin goes."""
        return run_sync(start)

    def view(self, scope: ArtifactScope | None = None) -> Card:
        """Say what this looks like, for one scope or for all."""
        return Card(kind=type(self).__name__, name="")


def drive(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine that never waits for anything, here and now and without a loop."""
    coroutine = start()
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    coroutine.close()
    raise RuntimeError("a coroutine that was said never to wait has waited")


@frozen(kw_only=False)
class Row:
    """A row of a shelf: a ticket, and whether its payload is read as text or as bytes."""

    ticket: Ticket
    form: PayloadForm


class Shelf(Protocol):
    """The rows of one scope, held exclusively from opening to closing."""

    def rows(self) -> Iterable[Row]:
        """Give every row, the least recently used first."""

    def find(self, ref: str) -> Row | None:
        """Give a row, without using it."""

    def payload(self, ref: str) -> bytes:
        """Give the payload of a row that is there."""

    def use(self, ref: str) -> None:
        """Make a row that is there the most recently used one."""

    def add(self, row: Row, payload: bytes) -> None:
        """Add a row as the most recently used one."""

    def remove(self, ref: str) -> None:
        """Remove a row that is there."""


class IndexedShelf(Shelf, Protocol):
    """A shelf that finds rows by age and use itself, so that no verb goes through all of them."""

    def expired(self, now: int) -> Iterable[Ticket]:
        """Give the tickets that are gone at ``now``, the least recently used first."""

    def oldest(self) -> Iterable[Ticket]:
        """Give tickets one after another, the least recently used first."""

    def held(self) -> tuple[int, int]:
        """Give how many rows there are, and their payloads' bytes in all."""

    def newest(self, after: tuple[int, str] | None, limit: int) -> Iterable[Ticket]:
        """Give at most ``limit`` tickets behind a place, by (-created_at, ref)."""


@frozen
class Retention:
    """How much a scope may hold.

    Attributes
    ----------
    max_bytes, max_count : int
        Budgets. The least recently used rows leave for the rows first, then for the bytes.
    ttl_ms : int or None
        How long a row is kept at most.

    Examples
    --------
    >>> Retention(max_bytes=0, max_count=1)
    Traceback (most recent call last):
    ...
    runbook_nb.errors.DefinitionError: max_bytes cannot be 0; give a whole number from 1
    """

    max_bytes: int = DEFAULT_MAX_BYTES
    max_count: int = DEFAULT_MAX_COUNT
    ttl_ms: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_bytes", "max_count", "ttl_ms"):
            value = getattr(self, name)
            if (name, value) != ("ttl_ms", None) and (type(value) is not int or value < 1):
                raise DefinitionError(
                    f"{name} cannot be {value!r}", where=name, fix="give a whole number from 1"
                )

    def expiry(self, wanted: int | None, now: int) -> int | None:
        """Give the sooner of the caller's expiry and this store's."""
        if self.ttl_ms is None:
            return wanted
        return now + self.ttl_ms if wanted is None else min(wanted, now + self.ttl_ms)

    def has_room(self, held: int, size: int, incoming: int) -> bool:
        """Say whether one more payload of ``incoming`` bytes finds room as it is."""
        return held < self.max_count and size + incoming <= self.max_bytes

    def sweep(self, tickets: Iterable[Ticket], incoming: int, now: int) -> tuple[Swept, ...]:
        """Say which rows leave for a payload of ``incoming`` bytes, in the order they leave.

        Parameters
        ----------
        tickets : iterable of Ticket
            Those held, the least recently used first.
        incoming : int
            Bytes of the payload to be added.
        now : int
            Milliseconds since the epoch.
        """
        live: list[Ticket] = []
        expired: list[Ticket] = []
        for ticket in tickets:
            (expired if ticket.expired(now) else live).append(ticket)
        gone = (Swept.of(ticket, "ttl") for ticket in expired)
        held, size = len(live), sum(ticket.bytes for ticket in live)
        return (*gone, *self.leaving(live, held, size, incoming))

    def leaving(
        self, live: Iterable[Ticket], held: int, size: int, incoming: int
    ) -> Iterator[Swept]:
        """Say which of the rows that have not expired leave; no more of them is read than needed.

        Parameters
        ----------
        live : iterable of Ticket
            Those that have not expired, the least recently used first.
        held, size : int
            How many they are, and their bytes in all.
        incoming : int
            Bytes of the payload to be added.
        """
        tickets = iter(live)
        while not self.has_room(held, size, incoming):
            reason: SweepReason = "max-count" if held >= self.max_count else "max-bytes"
            ticket = next(tickets, None)
            if ticket is None:
                return
            yield Swept.of(ticket, reason)
            held, size = held - 1, size - ticket.bytes


class ShelfStore(ArtifactStore):
    """The five verbs and their laws, over shelves that a subclass opens.

    Parameters
    ----------
    max_bytes, max_count, ttl_ms : int, optional
        See `Retention`.
    """

    def __init__(
        self,
        max_bytes: int = DEFAULT_MAX_BYTES,
        max_count: int = DEFAULT_MAX_COUNT,
        ttl_ms: int | None = None,
    ) -> None:
        self.retention = Retention(max_bytes=max_bytes, max_count=max_count, ttl_ms=ttl_ms)
        self._dropped = 0
        self._counting = threading.Lock()

    @abstractmethod
    def _open(self, scope: ArtifactScope) -> AbstractContextManager[Shelf]:
        """Open the shelf of a scope; nobody else works on it until it is closed."""

    async def _work(self, act: Callable[[], T]) -> T:
        """Do what touches the shelf. Shelves that wait for a disk are kept off the loop."""
        await loop_at_hand()
        import asyncio

        return await asyncio.to_thread(act)

    @property
    def dropped(self) -> int:
        """How many rows this object let go for its budgets; expired ones do not count."""
        return self._dropped

    @asks_for_loop
    async def put(self, scope: ArtifactScope, artifact: Any) -> PutResult:
        """File an artifact; see `ArtifactStore.put`."""
        options = settings.current
        return await self._work(lambda: self._put(scope_of(scope), artifact, options))

    @asks_for_loop
    async def head(self, scope: ArtifactScope, ref: str) -> Ticket | None:
        """Give the ticket, or None; see `ArtifactStore.head`."""
        now = now_ms(settings.current)
        row = await self._work(lambda: self._find(scope_of(scope), ref, now))
        return None if row is None else row.ticket

    @asks_for_loop
    async def get(self, scope: ArtifactScope, ref: str) -> Record | None:
        """Give ticket and payload, or None; see `ArtifactStore.get`."""
        now = now_ms(settings.current)
        return await self._work(lambda: self._get(scope_of(scope), ref, now))

    @asks_for_loop
    async def delete(self, scope: ArtifactScope, ref: str) -> bool:
        """Remove an artifact; see `ArtifactStore.delete`."""
        now = now_ms(settings.current)
        return await self._work(lambda: self._delete(scope_of(scope), ref, now))

    @asks_for_loop
    async def list(
        self, scope: ArtifactScope, *, limit: int = DEFAULT_PAGE, cursor: str | None = None
    ) -> ArtifactPage:
        """Give a page of tickets; see `ArtifactStore.list`."""
        if type(limit) is not int or limit < 1:
            raise ArtifactError(
                f"a page cannot have {limit!r} rows",
                code="invalid_limit",
                where="limit",
                fix="give a whole number from 1",
            )
        now = now_ms(settings.current)
        return await self._work(lambda: self._list(scope_of(scope), limit, cursor, now))

    def _put(self, scope: ArtifactScope, artifact: Any, options: Options) -> PutResult:
        now = now_ms(options)
        parcel = self._parcel(artifact, now)
        digest = digest_of(parcel.payload)
        with self._open(scope) as shelf:
            result = self._file(shelf, parcel, digest, options, now)
        self._count_dropped(result)
        return result

    def _parcel(self, artifact: Any, now: int) -> Parcel:
        parcel = read_parcel(artifact, now)
        size, allowed = len(parcel.payload), self.retention.max_bytes
        if size > allowed:
            raise ArtifactError(
                f"the payload has {counted(size, 'byte')} and this store holds {allowed} in all",
                code="too_large",
                where="data",
                fix="store less, or make the store with a larger max_bytes",
            )
        return parcel

    def _file(
        self, shelf: Shelf, parcel: Parcel, digest: str, options: Options, now: int
    ) -> PutResult:
        self._check_parents(shelf, parcel, now)
        swept = self._swept(shelf, len(parcel.payload), now)
        ticket = self._ticket(parcel, digest, _fresh_ref(shelf, options), now)
        for gone in swept:
            shelf.remove(gone.ref)
        shelf.add(Row(ticket, parcel.form), parcel.payload)
        return PutResult(meta=ticket, swept=swept)

    def _count_dropped(self, *results: PutResult) -> None:
        # After the shelf is closed: what a transaction takes back was never let go.
        if not any(result.swept for result in results):
            return
        with self._counting:
            self._dropped += sum(gone.reason != "ttl" for r in results for gone in r.swept)

    def _swept(self, shelf: Shelf, incoming: int, now: int) -> tuple[Swept, ...]:
        if not _is_indexed(shelf):
            return self.retention.sweep((row.ticket for row in shelf.rows()), incoming, now)
        expired = tuple(shelf.expired(now))
        held, size = shelf.held()
        if expired:
            held, size = held - len(expired), size - sum(ticket.bytes for ticket in expired)
        elif self.retention.has_room(held, size, incoming):
            return ()
        live = (ticket for ticket in shelf.oldest() if not ticket.expired(now))
        gone = (Swept.of(ticket, "ttl") for ticket in expired)
        return (*gone, *self.retention.leaving(live, held, size, incoming))

    def _ticket(self, parcel: Parcel, digest: str, ref: str, now: int) -> Ticket:
        return Ticket(
            ref=ref,
            kind=parcel.kind,
            media_type=parcel.media_type,
            bytes=len(parcel.payload),
            created_at=now,
            label=parcel.label,
            digest=digest,
            expires_at=self.retention.expiry(parcel.expires_at, now),
            origin=parcel.origin,
            parent_refs=parcel.parent_refs,
        )

    @staticmethod
    def _check_parents(shelf: Shelf, parcel: Parcel, now: int) -> None:
        for place, ref in enumerate(parcel.parent_refs):
            row = shelf.find(ref)
            if row is None or row.ticket.expired(now):
                raise unknown_parent(ref, place)

    def _find(self, scope: ArtifactScope, ref: Any, now: int) -> Row | None:
        if not is_ref(ref):
            return None
        with self._open(scope) as shelf:
            return _use(shelf, ref, now)

    def _get(self, scope: ArtifactScope, ref: Any, now: int) -> Record | None:
        if not is_ref(ref):
            return None
        with self._open(scope) as shelf:
            row = _use(shelf, ref, now)
            if row is None:
                return None
            payload = shelf.payload(ref)
        if row.ticket.digest is not None and digest_of(payload) != row.ticket.digest:
            raise tampered(
                f"the stored {row.ticket.kind!r} is not what was filed: its digest differs"
            )
        return Record(row.ticket, payload.decode() if row.form == "text" else payload)

    def _delete(self, scope: ArtifactScope, ref: Any, now: int) -> bool:
        if not is_ref(ref):
            return False
        with self._open(scope) as shelf:
            row = shelf.find(ref)
            if row is not None:
                shelf.remove(ref)
            return row is not None and not row.ticket.expired(now)

    def _list(self, scope: ArtifactScope, limit: int, cursor: Any, now: int) -> ArtifactPage:
        # A cursor names the last ticket shown and not a position, so rows that come or go between
        # two pages make nobody see a row twice.
        after = _read_cursor(cursor)
        with self._open(scope) as shelf:
            if _is_indexed(shelf):
                for ticket in tuple(shelf.expired(now)):
                    shelf.remove(ticket.ref)
                following = list(shelf.newest(after, limit + 1))
            else:
                tickets = [row.ticket for row in shelf.rows()]
                for ticket in tickets:
                    if ticket.expired(now):
                        shelf.remove(ticket.ref)
                live = sorted((t for t in tickets if not t.expired(now)), key=_place)
                following = [t for t in live if after is None or _place(t) > after]
        shown = tuple(following[:limit])
        last = shown[-1] if len(following) > limit else None
        return ArtifactPage(
            artifacts=shown, cursor=None if last is None else f"{last.created_at}:{last.ref}"
        )


def tampered(message: str) -> ArtifactError:
    """Build the error for what is stored and is not what was filed."""
    return ArtifactError(
        message,
        code="integrity",
        where="digest",
        fix="file it again; what is stored now cannot be trusted",
    )


def _is_indexed(shelf: Shelf) -> TypeGuard[IndexedShelf]:
    # By what it has, as any class may be a shelf; asking the protocol takes longer than a row.
    return hasattr(shelf, "newest")


def _use(shelf: Shelf, ref: str, now: int) -> Row | None:
    row = shelf.find(ref)
    if row is None:
        return None
    if row.ticket.expired(now):
        shelf.remove(ref)
        return None
    shelf.use(ref)
    return row


def _place(ticket: Ticket) -> tuple[int, str]:
    return (-ticket.created_at, ticket.ref)


def _read_cursor(cursor: Any) -> tuple[int, str] | None:
    found = re.fullmatch(_CURSOR, cursor) if isinstance(cursor, str) else None
    return None if found is None else (-int(found[1]), found[2])


def _fresh_ref(shelf: Shelf, options: Options) -> str:
    if options.ids is random_id:  # of 131 bits from the system no two are ever the same
        return f"art_{random_id(REF_LENGTH)}"
    for _ in range(_DRAWS):
        ref = f"art_{options.ids(REF_LENGTH)}"
        if not is_ref(ref):
            break
        if shelf.find(ref) is None:
            return ref
    raise ArtifactError(
        "the source of ids gives no new reference",
        code="no_new_ref",
        where="settings.ids",
        fix=f"it must give {REF_LENGTH} letters and digits, new ones each time",
    )


def scope_of(scope: Any) -> ArtifactScope:
    """Give the scope, refusing what is none."""
    if not isinstance(scope, ArtifactScope):
        raise invalid(
            f"the first argument of a store's verb is an ArtifactScope, not {scope!r:.80}", "scope"
        )
    return scope


def now_ms(options: Options) -> int:
    """Give the present moment in whole milliseconds since the epoch."""
    return (options.clock() - _EPOCH) // _MILLISECOND
