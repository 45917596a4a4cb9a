"""A store in one file: artifacts that outlive the process, shared by several at once.

The file is a SQLite database in write-ahead mode, one transaction per verb. Payloads are kept by
their digest, once each and compressed; tickets stand beside them, apart for each scope. Nothing
is pickled, and a file that is no such database, or another's, is refused and left as it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Final

from runbook_nb._text import clip, visible
from runbook_nb._view import Card
from runbook_nb.artifacts.base import (
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_COUNT,
    Row,
    now_ms,
    scope_of,
    tampered,
)
from runbook_nb.artifacts.database import Database, Form
from runbook_nb.artifacts.durable import ARTIFACTS, DurableStore, path_of
from runbook_nb.artifacts.model import ArtifactScope, PutResult, Ticket
from runbook_nb.artifacts.packing import form_of, pack, read_ticket, unpack, write_ticket
from runbook_nb.artifacts.parcel import Parcel, digest_of
from runbook_nb.artifacts.totals import KindTotals, totals_card
from runbook_nb.errors import ArtifactError
from runbook_nb.settings import Options, settings

if TYPE_CHECKING:
    import sqlite3

#: Artifacts that all threads read and compress before one writes them.
CHUNK: Final = 128

_SCHEMA: Final = (
    "CREATE TABLE scope (id INTEGER PRIMARY KEY, conversation TEXT NOT NULL, tenant TEXT NOT NULL, "
    "principal TEXT NOT NULL, uses INTEGER NOT NULL, held INTEGER NOT NULL, "
    "bytes INTEGER NOT NULL, expiring INTEGER NOT NULL)",
    "CREATE UNIQUE INDEX scope_named ON scope (conversation, tenant, principal)",
    # One behind the other: among others by its reference each would touch a page of its own.
    "CREATE TABLE artifact (id INTEGER PRIMARY KEY, scope INTEGER NOT NULL, ref TEXT NOT NULL, "
    "used INTEGER NOT NULL, created INTEGER NOT NULL, expires INTEGER, kind TEXT NOT NULL, "
    "bytes INTEGER NOT NULL, form TEXT NOT NULL, payload INTEGER NOT NULL, ticket TEXT NOT NULL)",
    "CREATE UNIQUE INDEX artifact_ref ON artifact (scope, ref)",
    "CREATE INDEX artifact_used ON artifact (scope, used)",
    # Read from its end, so that what comes goes to the end of it too.
    "CREATE INDEX artifact_newest ON artifact (scope, created, ref DESC)",
    "CREATE INDEX artifact_expires ON artifact (scope, expires) WHERE expires IS NOT NULL",
    "CREATE TABLE payload (id INTEGER PRIMARY KEY, digest BLOB NOT NULL, holders INTEGER NOT NULL, "
    "packing INTEGER NOT NULL, body BLOB NOT NULL)",
    "CREATE UNIQUE INDEX payload_digest ON payload (digest)",
)
#: Marks the file as a store of artifacts ("rbnA"), and says which form its tables have.
FORM: Final = Form(
    application=0x72626E41,
    version=2,
    schema=_SCHEMA,
    what=ARTIFACTS,
    page=8192,  # payloads take fewer of them, and a verb on its own hardly more in bytes
)
_ROW: Final = "SELECT ref, form, ticket FROM artifact WHERE scope = ?"
_FIND: Final = f"{_ROW} AND ref = ?"
_BY_USE: Final = f"{_ROW} ORDER BY used"
_EXPIRED: Final = (
    # By its own index: in the order of use, which the planner would take, it reads every row.
    "SELECT ref, form, ticket, used FROM artifact INDEXED BY artifact_expires "
    "WHERE scope = ? AND expires IS NOT NULL AND expires <= ?"
)
_NEWEST: Final = f"{_ROW} ORDER BY created DESC, ref LIMIT ?"
_AFTER: Final = (
    f"{_ROW} AND created <= ? AND (created < ? OR ref > ?) ORDER BY created DESC, ref LIMIT ?"
)
_TOTALS: Final = (
    "SELECT kind, count(*), sum(artifact.bytes) FROM artifact JOIN scope "
    "ON scope.id = artifact.scope WHERE (expires IS NULL OR expires > ?)"
)
_INSERT: Final = "INSERT INTO artifact VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ALL: Final = (
    "SELECT ref, ticket, artifact.bytes, packing, body FROM artifact "
    "LEFT JOIN payload ON payload.id = artifact.payload ORDER BY scope, ref"
)
_LARGEST: Final = 2**63 - 1


class SqliteArtifacts(DurableStore, plain=True):
    """Keeps artifacts in a file, each scope within a budget of bytes and rows.

    Several threads and processes may use one file at once, each through a store of its own. What
    a verb has acknowledged survives the end of the process, however it ends; only a crash of the
    machine, or a loss of its power, may take the last verbs with it, never a part of one: those not
    yet moved from the log into the file, as the last store on it does when it is closed. A store
    travels to another process as its path and its budget.

    Parameters
    ----------
    path : str or path
        The database; made when it is not there. Beside it stand ``-wal`` and ``-shm`` while it is
        in use.
    max_bytes, max_count : int
        Budget of one scope, in bytes before compression; the least recently used rows leave when
        it is reached, and ``put`` says which.
    ttl_ms : int, optional
        How long a row is kept at most, in milliseconds.

    Raises
    ------
    ArtifactError
        ``not_a_store``: the file is something else, or damaged. ``store_busy``: others kept it
        locked for half a minute. ``store_unavailable``: it cannot be opened or written.

    Examples
    --------
    >>> import tempfile
    >>> from runbook_nb.artifacts import ArtifactScope
    >>> folder, scope = tempfile.TemporaryDirectory(), ArtifactScope("c1")
    >>> with SqliteArtifacts(f"{folder.name}/walks.sqlite") as store:
    ...     ref = store.put_sync(scope, {"kind": "note", "mediaType": "text/plain",
    ...                                  "data": "é"}).meta.ref
    >>> with SqliteArtifacts(f"{folder.name}/walks.sqlite") as store:
    ...     store.get_sync(scope, ref).data
    'é'
    >>> folder.cleanup()
    """

    _may_wait: ClassVar = (*DurableStore._may_wait, "put_many")

    def __init__(
        self,
        path: str | os.PathLike[str],
        max_bytes: int = DEFAULT_MAX_BYTES,
        max_count: int = DEFAULT_MAX_COUNT,
        ttl_ms: int | None = None,
    ) -> None:
        super().__init__(max_bytes, max_count, ttl_ms)
        self.path = path_of(path)
        self._database = Database(self.path, FORM)

    def __reduce__(self) -> tuple[Any, ...]:
        kept = self.retention
        return (type(self), (str(self.path), kept.max_bytes, kept.max_count, kept.ttl_ms))

    def close(self) -> None:
        """Let the file go; a verb after it opens the file again."""
        self._database.close()

    async def put_many(
        self, scope: ArtifactScope, artifacts: Iterable[Any]
    ) -> tuple[PutResult, ...]:
        """File several artifacts in one transaction: as `put`, one after another, all or none.

        Other processes wait until it is done, and it compresses several at a time.

        Raises
        ------
        ArtifactError
            As `put`. Nothing is filed then.
        """
        options, given = settings.current, tuple(artifacts)
        return await self._work(lambda: self._put_many(scope_of(scope), given, options))

    def put_many_sync(
        self, scope: ArtifactScope, artifacts: Iterable[Any]
    ) -> tuple[PutResult, ...]:
        """Do what `put_many` does, from code that cannot await."""
        return self.settle(lambda: self.put_many(scope, artifacts))

    def _put(self, scope: ArtifactScope, artifact: Any, options: Options) -> PutResult:
        now = now_ms(options)
        (ready,) = _compressed([self._parcel(artifact, now)])  # while nobody has to wait
        with self._open(scope) as shelf:
            result = self._add(shelf, ready, options, now)
        self._count_dropped(result)
        return result

    def _put_many(
        self, scope: ArtifactScope, artifacts: tuple[Any, ...], options: Options
    ) -> tuple[PutResult, ...]:
        from concurrent.futures import ThreadPoolExecutor

        now, workers = now_ms(options), os.cpu_count() or 1
        results: list[PutResult] = []

        # Compressed by all, then written by one: those that compress need the interpreter so often
        # that whoever does more than that beside them waits longer for it than for what they do.
        with ThreadPoolExecutor(workers, "artifacts") as pool, self._open(scope) as shelf:
            for start in range(0, len(artifacts), CHUNK):
                some = [self._parcel(one, now) for one in artifacts[start : start + CHUNK]]
                share = -(-len(some) // workers)
                mine, *parts = (some[at : at + share] for at in range(0, len(some), share))
                others = [pool.submit(_compressed, part) for part in parts]
                for done in (_compressed(mine), *(other.result() for other in others)):
                    results += [self._add(shelf, ready, options, now) for ready in done]
        self._count_dropped(*results)
        return tuple(results)

    def _add(self, shelf: _SqliteShelf, ready: _Ready, options: Options, now: int) -> PutResult:
        shelf.packed = ready.packed
        return self._file(shelf, ready.parcel, ready.digest, options, now)

    @contextmanager
    def _open(self, scope: ArtifactScope) -> Iterator[_SqliteShelf]:
        with self._database.transaction() as database:
            shelf = _SqliteShelf(database, scope)
            yield shelf
            shelf.settle()

    def faults(self) -> tuple[ArtifactError, ...]:
        """Read everything that is kept, and give what is wrong with it; changes nothing.

        Returns
        -------
        tuple of ArtifactError
            ``integrity``, with the reference in ``where``: a ticket or a payload is not what was
            filed.
        """
        with self._database.opened() as database:
            return tuple(_faults(database.execute(_ALL)))

    def view(self, scope: ArtifactScope | None = None) -> Card:
        """Say what this looks like: counts and bytes by kind, for one scope or for all."""
        now = now_ms(settings.current)
        question = _TOTALS
        asked: tuple[Any, ...] = (now,)
        if scope is not None:
            question += " AND conversation = ? AND tenant = ? AND principal = ?"
            asked += _named(scope)
        with self._database.opened() as database:
            found = database.execute(f"{question} GROUP BY kind ORDER BY kind", asked)
            totals = [KindTotals(*row) for row in found]
        return totals_card(
            clip(visible(self.path.name), 50), totals, self.dropped if scope is None else 0
        )


class _Ready:
    """An artifact read and compressed, before the file is locked for it."""

    __slots__ = ("digest", "packed", "parcel")

    def __init__(self, parcel: Parcel, digest: str, packed: tuple[int, bytes]) -> None:
        self.parcel, self.digest, self.packed = parcel, digest, packed


def _compressed(parcels: Iterable[Parcel]) -> list[_Ready]:
    return [_Ready(one, digest_of(one.payload), pack(one.payload)) for one in parcels]


class _SqliteShelf:
    """The rows of one scope within one transaction."""

    def __init__(self, database: sqlite3.Connection, scope: ArtifactScope) -> None:
        self._ask = database.execute
        self._ask_each = database.executemany
        #: Rows of artifacts to be written, by reference: they are all written before any is read.
        self._coming: dict[str, tuple[Any, ...]] = {}
        self._scope = scope
        self.packed: tuple[int, bytes] | None = None
        found = self._ask(
            "SELECT id, uses, held, bytes, expiring FROM scope "
            "WHERE conversation = ? AND tenant = ? AND principal = ?",
            _named(scope),
        ).fetchone()
        self._id: int | None
        self._uses: int
        self._held: int
        self._bytes: int
        self._expiring: int
        self._id, self._uses, self._held, self._bytes, self._expiring = found or (None, 0, 0, 0, 0)
        self._changed = False
        #: When it was last asked who had expired; in a verb they leave as soon as they are known.
        self._swept_at: int | None = None

    def rows(self) -> Iterable[Row]:
        return self._rows(_BY_USE)

    def find(self, ref: str) -> Row | None:
        if ref in self._coming:
            self._write()
        elif self._held == len(self._coming):  # nothing of the scope stands in the file
            return None
        found = self._ask(_FIND, (self._id, ref)).fetchone()
        return None if found is None else _row(*found)

    def payload(self, ref: str) -> bytes:
        self._write()
        found = self._ask(
            "SELECT artifact.bytes, packing, body FROM artifact "
            "LEFT JOIN payload ON payload.id = artifact.payload WHERE scope = ? AND ref = ?",
            (self._id, ref),
        ).fetchone()
        return unpack(*found)

    def use(self, ref: str) -> None:
        self._uses, self._changed = self._uses + 1, True
        self._write()
        self._ask(
            "UPDATE artifact SET used = ? WHERE scope = ? AND ref = ?", (self._uses, self._id, ref)
        )

    def add(self, row: Row, payload: bytes) -> None:
        packing, body = self.packed or pack(payload)
        self.packed = None
        if self._id is None:
            made = self._ask(
                "INSERT INTO scope (conversation, tenant, principal, uses, held, bytes, expiring) "
                "VALUES (?, ?, ?, 0, 0, 0, 0)",
                _named(self._scope),
            )
            self._id = made.lastrowid
        ticket = row.ticket
        expires = None if ticket.expires_at is None else min(ticket.expires_at, _LARGEST)
        self._uses, self._changed = self._uses + 1, True
        self._held, self._bytes = self._held + 1, self._bytes + ticket.bytes
        self._expiring += expires is not None
        key = _key(ticket)
        made = self._ask(
            "INSERT INTO payload (digest, holders, packing, body) VALUES (?, 1, ?, ?) "
            "ON CONFLICT (digest) DO NOTHING",  # what returns columns copies the body first
            (key, packing, body),
        )
        held_as = made.lastrowid
        if not made.rowcount:
            (held_as,) = self._ask(
                "UPDATE payload SET holders = holders + 1 WHERE digest = ? RETURNING id", (key,)
            ).fetchone()
        self._coming[ticket.ref] = (
            *(self._id, ticket.ref, self._uses, ticket.created_at, expires, ticket.kind),
            *(ticket.bytes, row.form, held_as, write_ticket(ticket)),
        )

    def _write(self) -> None:
        """Write the rows that are coming, in the order of their references, as indexes have them.

        Between payloads they would fall on pages that left memory meanwhile.
        """
        if self._coming:
            coming = [self._coming[ref] for ref in sorted(self._coming)]
            self._coming.clear()
            self._ask_each(_INSERT, coming)

    def remove(self, ref: str) -> None:
        self._write()
        size, held_as, expires = self._ask(
            "DELETE FROM artifact WHERE scope = ? AND ref = ? RETURNING bytes, payload, expires",
            (self._id, ref),
        ).fetchone()
        self._held, self._bytes, self._changed = self._held - 1, self._bytes - size, True
        self._expiring -= expires is not None
        self._ask("UPDATE payload SET holders = holders - 1 WHERE id = ?", (held_as,))
        self._ask("DELETE FROM payload WHERE id = ? AND holders < 1", (held_as,))

    def discard(self, ref: str) -> bool:
        self.remove(ref)
        return True

    def expired(self, now: int) -> Iterable[Ticket]:
        # Once they were told of, what came since has yet to expire.
        if not self._expiring or self._swept_at == now:
            return ()
        self._swept_at = now
        self._write()
        found = self._ask(_EXPIRED, (self._id, now)).fetchall()
        found.sort(key=lambda row: row[3])
        return [row.ticket for row in _readable(row[:3] for row in found)]

    def oldest(self) -> Iterable[Ticket]:
        for row in self._rows(_BY_USE):  # nothing is asked before somebody has to leave
            yield row.ticket

    def held(self) -> tuple[int, int]:
        return self._held, self._bytes

    def newest(self, after: tuple[int, str] | None, limit: int) -> Iterable[Ticket]:
        # Without a limit of its own: one that cannot be read does not count.
        if after is None:
            rows = self._rows(_NEWEST, _LARGEST)
        else:
            created, ref = -after[0], after[1]
            rows = self._rows(_AFTER, created, created, ref, _LARGEST)
        return [row.ticket for row in islice(rows, limit)]

    def _rows(self, question: str, *values: Any) -> Iterator[Row]:
        self._write()
        return _readable(self._ask(question, (self._id, *values)))

    def settle(self) -> None:
        """Write what is known of the scope as a whole; one that holds nothing leaves no trace."""
        self._write()
        if not self._changed or self._id is None:
            return
        if self._held:
            self._ask(
                "UPDATE scope SET uses = ?, held = ?, bytes = ?, expiring = ? WHERE id = ?",
                (self._uses, self._held, self._bytes, self._expiring, self._id),
            )
        else:
            self._ask("DELETE FROM scope WHERE id = ?", (self._id,))


# -- what stands in a row ------------------------------------------------------------------------


def _named(scope: ArtifactScope) -> tuple[str, str, str]:
    # No part of a scope is ever blank, so nothing can stand for one that is not there.
    return scope.conversation_id, scope.tenant or "", scope.principal or ""


def _row(ref: str, form: Any, text: str) -> Row:
    return Row(read_ticket(ref, text), form_of(form))


def _readable(found: Iterable[tuple[Any, ...]]) -> Iterator[Row]:
    """Give the rows that can be read; those that cannot hide none that can."""
    for row in found:
        with suppress(ArtifactError):
            yield _row(*row)


def _faults(found: Iterable[tuple[Any, ...]]) -> Iterator[ArtifactError]:
    for ref, text, size, packing, body in found:
        try:
            if digest_of(unpack(size, packing, body)) != read_ticket(ref, text).digest:
                raise tampered("a stored payload is not what was filed")
        except ArtifactError as error:
            error.where = ref
            yield error


def _key(ticket: Ticket) -> bytes:
    return bytes.fromhex((ticket.digest or "").partition(":")[2])
