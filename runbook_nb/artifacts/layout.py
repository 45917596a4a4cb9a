"""How a store lies in folders: one layout, whoever writes it.

::

    runbook_nb.json                     what the folder is, and which form its files have
    scopes/<digest of scope>/<ref>.json a ticket: there when it is whole, and only then
    scopes/<digest of scope>/uses       references, the one used last at the end
    payloads/<aa>/<digest>/<ref>        the payload of that ticket, compressed where that helps

A payload stands in the folder of its digest under the reference of each ticket that holds it, so
nothing has to be counted and no ticket can lose a payload to another. `Files` is what a place must
be able to do; everything in it is read as if somebody else had written it.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, Protocol

from runbook_nb._json import canonical
from runbook_nb._text import clip, visible
from runbook_nb._view import Card
from runbook_nb.artifacts.base import Row, now_ms, tampered
from runbook_nb.artifacts.durable import DurableStore, not_a_store
from runbook_nb.artifacts.model import ArtifactScope, Record, Ticket
from runbook_nb.artifacts.packing import form_of, pack, read_wire, unpack
from runbook_nb.artifacts.parcel import DIGEST, digest_of, is_ref
from runbook_nb.artifacts.totals import totals_card, totals_of
from runbook_nb.errors import ArtifactError
from runbook_nb.settings import settings

#: The file that says what a folder is, and what stands in it.
MARK: Final = "runbook_nb.json"
FORMAT: Final = "runbook_nb/artifacts/1"
SCOPES: Final = "scopes"
PAYLOADS: Final = "payloads"
#: Folders of a place's own, in which no artifact stands.
ASIDE: Final = frozenset({"locks", "drafts"})

_TICKET: Final = ".json"
_USES: Final = "uses"
_HEX: Final = re.compile(r"[0-9a-f]{64}")
_CHECK: Final = "sha-256"
#: The list of uses is written anew when it has so many lines for each row, and some more.
_SPARE: Final = (4, 256)
_LINE: Final = len("art_") + 22 + 1


class Files(Protocol):
    """What a place can do. Paths are relative, with ``/`` between their parts."""

    name: str
    where: str

    def read(self, path: str, most: int | None = None) -> bytes | None:
        """Give a file's bytes, no more than ``most``; None when there is no such file."""

    def read_each(self, paths: Sequence[str]) -> Iterable[bytes | None]:
        """Give the bytes of several files."""

    def write(self, path: str, data: bytes) -> None:
        """Write a file so that nobody ever sees a part of it."""

    def share(self, path: str, data: bytes) -> None:
        """Write a file as `write`, or let it stand for an equal one of the same folder."""

    def append(self, path: str, data: bytes) -> int:
        """Add to the end of a file; gives how long it is then."""

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""

    def names(self, folder: str) -> list[str]:
        """Give the names in a folder; none when there is no such folder."""

    def prune(self, folder: str) -> None:
        """Remove a folder if there is nothing in it."""

    def holding(self, key: str) -> AbstractContextManager[None]:
        """Keep others from writing under a key."""

    def doing(self, *task: str) -> AbstractContextManager[None]:
        """Note what is being done until it is done, so that it can be seen if it never was."""

    def undone(self, key: str) -> Iterable[tuple[str, ...]]:
        """Give what was noted and never done, by whoever held the key before."""

    def forget(self, *task: str) -> None:
        """Let go of a note."""

    def noted(self) -> set[str]:
        """Give the references of everything that is being done, by anybody."""

    def clear(self) -> int:
        """Remove drafts that nobody goes on with; says how many."""


def key_of(scope: ArtifactScope) -> str:
    """Give the name of a scope's folder, whatever is in its parts.

    Examples
    --------
    >>> len(key_of(ArtifactScope("../..")))
    64
    >>> key_of(ArtifactScope("a")) == key_of(ArtifactScope("A"))
    False
    """
    return hashlib.sha256(canonical(_wire(scope)).encode()).hexdigest()


def ticket_path(key: str, ref: str) -> str:
    """Give where a ticket stands."""
    return f"{SCOPES}/{key}/{ref}{_TICKET}"


def payload_path(digest: str, ref: str) -> str:
    """Give where a payload stands."""
    return f"{PAYLOADS}/{digest[:2]}/{digest}/{ref}"


def write_ticket_file(key: str, row: Row, packing: int) -> bytes:
    """Give the bytes of a ticket's file, which say of themselves whether they are whole."""
    about = {"scope": key, "form": row.form, "packing": packing, "ticket": row.ticket.to_dict()}
    return json.dumps({**about, _CHECK: _check(about)}, ensure_ascii=False, indent=1).encode()


def read_ticket_file(key: str, ref: str, data: bytes) -> tuple[Row, int]:
    """Read a ticket's file, and how its payload is packed.

    Raises
    ------
    ArtifactError
        ``integrity``: it is not what was filed there.
    """
    try:
        about = json.loads(data)
        check = about.pop(_CHECK)
        if check != _check(about) or about["scope"] != key or type(about["packing"]) is not int:
            raise ValueError("another file")
        ticket = read_wire(ref, about["ticket"])
        _digest(ticket)
        return Row(ticket, form_of(about["form"])), about["packing"]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise tampered("a stored ticket is not what was filed") from error


def _check(about: dict[str, Any]) -> str:
    return hashlib.sha256(canonical(about).encode()).hexdigest()


def _digest(ticket: Ticket) -> str:
    name, _, digest = (ticket.digest or "").partition(":")
    if name != DIGEST or not _HEX.fullmatch(digest):
        raise ValueError("no digest")
    return digest


def _wire(scope: ArtifactScope) -> list[str | None]:
    return [scope.conversation_id, scope.tenant, scope.principal]


class FolderStore(DurableStore, plain=True):
    """The verbs over a place that can keep files.

    Parameters
    ----------
    files : Files
        The place.
    max_bytes, max_count, ttl_ms : int, optional
        See `Retention`.
    """

    def __init__(self, files: Files, max_bytes: int, max_count: int, ttl_ms: int | None) -> None:
        super().__init__(max_bytes, max_count, ttl_ms)
        self._files = files
        #: Tickets that were read, by scope: what is filed under a reference never changes.
        self._read: dict[str, dict[str, Row]] = {}
        _settle_in(files)

    @abstractmethod
    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as what says where the files are, and as the budget."""

    @contextmanager
    def _open(self, scope: ArtifactScope) -> Iterator[_FolderShelf]:
        key = key_of(scope)
        with self._lock, self._files.holding(key):
            for task in self._files.undone(key):
                self._finish(*task)
            shelf = _FolderShelf(self._files, key, self._read.setdefault(key, {}))
            try:
                yield shelf
                shelf.settle()
            finally:
                if not self._read[key]:
                    del self._read[key]

    def _finish(self, key: str, digest: str, ref: str) -> None:
        # A payload comes before its ticket and goes after it.
        if self._files.read(ticket_path(key, ref)) is None:
            _remove_payload(self._files, digest, ref)
        self._files.forget(key, digest, ref)

    def _get(self, scope: ArtifactScope, ref: Any, now: int) -> Record | None:
        try:
            return super()._get(scope, ref, now)
        except _Gone:
            return None

    def faults(self) -> tuple[ArtifactError, ...]:
        """Read everything that is kept, and give what is wrong with it; changes nothing.

        Returns
        -------
        tuple of ArtifactError
            With the file in ``where``. ``integrity``: a ticket or a payload is not what was
            filed. ``foreign_file``: something stands there that no store put there.
        """
        files = self._files
        found: list[ArtifactError] = []
        with self._lock:
            for key in sorted(files.names(SCOPES)):
                if not _HEX.fullmatch(key):
                    found.append(_foreign(key, f"{files.where}/{SCOPES}/{key}"))
                    continue
                with files.holding(key):
                    for name in sorted(files.names(f"{SCOPES}/{key}")):
                        found += _faults(files, key, name)
        return tuple(found)

    def tidy(self) -> int:
        """Remove what no ticket holds, left behind by processes that were killed.

        In a folder that happens by itself at the next verb, and this may be called at any time. In
        a bucket nobody can know who is at work: call it when nobody files anything.

        Returns
        -------
        int
            How many files went.
        """
        files = self._files
        with self._lock:
            # In this order: what is being filed is noted before its payload is there, and until
            # its ticket is.
            payloads = [
                (digest, ref)
                for shard in files.names(PAYLOADS)
                for digest in files.names(f"{PAYLOADS}/{shard}")
                for ref in files.names(f"{PAYLOADS}/{shard}/{digest}")
            ]
            held = files.noted()
            for key in files.names(SCOPES):
                held.update(map(str, map(_ref_of, files.names(f"{SCOPES}/{key}"))))
            stray = [(digest, ref) for digest, ref in payloads if ref not in held]
            for digest, ref in stray:
                _remove_payload(files, digest, ref)
            return len(stray) + files.clear()

    def view(self, scope: ArtifactScope | None = None) -> Card:
        """Say what this looks like: counts and bytes by kind, for one scope or for all."""
        now, files = now_ms(settings.current), self._files
        with self._lock:
            keys = files.names(SCOPES) if scope is None else [key_of(scope)]
            shelves = [_FolderShelf(files, key, dict(self._read.get(key, {}))) for key in keys]
            tickets = [row.ticket for shelf in shelves for row in shelf.known().values()]
        live = totals_of(ticket for ticket in tickets if not ticket.expired(now))
        return totals_card(
            clip(visible(files.name), 50),
            live,
            self.dropped if scope is None else 0,
            damaged=sum(len(shelf.damaged) for shelf in shelves),
        )


class _Gone(Exception):
    """An artifact was deleted while it was read."""


class _FolderShelf:
    """The rows of one scope while nobody else writes them."""

    def __init__(self, files: Files, key: str, read: dict[str, Row]) -> None:
        self._files = files
        self._key = key
        self._folder = f"{SCOPES}/{key}"
        self._read = read
        self._packing: dict[str, int] = {}
        #: Rows that leave for another, which is written first: nothing leaves for nothing.
        self._leaving: dict[str, Ticket] = {}
        self._known: dict[str, Row] | None = None
        self._lines = 0
        self.damaged: list[str] = []

    def known(self) -> dict[str, Row]:
        """Give every row that can be read, in no order; those that cannot hide none that can."""
        if self._known is not None:
            return self._known
        read, self.damaged = self._read, []
        there = {ref for ref in map(_ref_of, self._files.names(self._folder)) if ref is not None}
        for ref in read.keys() - there:
            del read[ref]
        new = sorted(there - read.keys())
        paths = [ticket_path(self._key, ref) for ref in new]
        for ref, data in zip(new, self._files.read_each(paths), strict=True):
            if data is None:  # gone since it was listed
                continue
            try:
                read[ref] = read_ticket_file(self._key, ref, data)[0]
            except ArtifactError:
                self.damaged.append(ref)
        self._known = read
        return read

    def rows(self) -> Iterable[Row]:
        known = self.known()
        uses = {ref: place for place, ref in enumerate(self._uses())}
        rows = [row for ref, row in known.items() if ref not in self._leaving]
        rows.sort(key=lambda row: (uses.get(row.ticket.ref, -1), row.ticket.created_at))
        return rows

    def find(self, ref: str) -> Row | None:
        if ref in self._leaving:
            return None
        data = self._files.read(ticket_path(self._key, ref))
        if data is None:
            return None
        row, self._packing[ref] = read_ticket_file(self._key, ref, data)
        self._read[ref] = row
        return row

    def payload(self, ref: str) -> bytes:
        ticket = self._read[ref].ticket
        # Compressing may make it longer by a little, and nothing else may.
        most = ticket.bytes + ticket.bytes // 100 + 1024
        body = self._files.read(payload_path(_digest(ticket), ref), most + 1)
        if body is None and self._files.read(ticket_path(self._key, ref)) is None:
            raise _Gone  # deleted since its ticket was read, where nothing keeps others out
        return unpack(ticket.bytes, self._packing[ref], body)

    def use(self, ref: str) -> None:
        # Begun on a line of its own, also where the last writer was killed in the midst of his.
        line = f"\n{ref}".encode()
        self._lines = self._files.append(f"{self._folder}/{_USES}", line) // _LINE

    def add(self, row: Row, payload: bytes) -> None:
        ref, digest = row.ticket.ref, _digest(row.ticket)
        packing, body = pack(payload)
        with self._files.doing(self._key, digest, ref):
            self._files.share(payload_path(digest, ref), body)
            self.use(ref)
            data = write_ticket_file(self._key, row, packing)
            self._files.write(ticket_path(self._key, ref), data)
        self.known()[ref] = row

    def remove(self, ref: str) -> None:
        self._leaving[ref] = self._read[ref].ticket

    def discard(self, ref: str) -> bool:
        """Remove a ticket that cannot be read, and its payload, wherever it is."""
        path = ticket_path(self._key, ref)
        there = self._files.read(path) is not None
        self._files.remove(path)
        for shard in self._files.names(PAYLOADS):
            for digest in self._files.names(f"{PAYLOADS}/{shard}"):
                if ref in self._files.names(f"{PAYLOADS}/{shard}/{digest}"):
                    _remove_payload(self._files, digest, ref)
        self._tidy()
        return there

    def held(self) -> tuple[int, int]:
        rows = [row for ref, row in self.known().items() if ref not in self._leaving]
        return len(rows), sum(row.ticket.bytes for row in rows)

    def expired(self, now: int) -> Iterable[Ticket]:
        # Asked first of the rows in no order: as a rule there is none.
        if not any(row.ticket.expired(now) for row in self.known().values()):
            return ()
        return [row.ticket for row in self.rows() if row.ticket.expired(now)]

    def oldest(self) -> Iterable[Ticket]:
        for row in self.rows():  # nothing is put in order before somebody has to leave
            yield row.ticket

    def newest(self, after: tuple[int, str] | None, limit: int) -> Iterable[Ticket]:
        rows = (row for ref, row in self.known().items() if ref not in self._leaving)
        places = sorted((-row.ticket.created_at, row.ticket.ref) for row in rows)
        wanted = [place for place in places if after is None or place > after]
        return [self.known()[ref].ticket for _, ref in wanted[:limit]]

    def settle(self) -> None:
        """Let go of what leaves, and of the folder of a scope that holds nothing."""
        for ref, ticket in self._leaving.items():
            digest = _digest(ticket)
            with self._files.doing(self._key, digest, ref):
                self._files.remove(ticket_path(self._key, ref))
                _remove_payload(self._files, digest, ref)
            self._read.pop(ref, None)
        if self._leaving:
            self._tidy()
        elif self._lines:
            each, more = _SPARE
            if self._lines > more and self._lines > each * len(self.known()) + more:
                uses = "".join(f"\n{row.ticket.ref}" for row in self.rows())
                self._files.write(f"{self._folder}/{_USES}", uses.encode())

    def _tidy(self) -> None:
        if set(self._files.names(self._folder)) <= {_USES}:
            self._files.remove(f"{self._folder}/{_USES}")
            self._files.prune(self._folder)

    def _uses(self) -> list[str]:
        said = self._files.read(f"{self._folder}/{_USES}") or b""
        return [line for line in said.decode("ascii", "replace").split("\n") if is_ref(line)]


def _ref_of(name: str) -> str | None:
    ref = name.removesuffix(_TICKET)
    return ref if name != ref and is_ref(ref) else None


def _remove_payload(files: Files, digest: str, ref: str) -> None:
    path = payload_path(digest, ref)
    files.remove(path)
    files.prune(path.rpartition("/")[0])


def _faults(files: Files, key: str, name: str) -> Iterator[ArtifactError]:
    """Say what is wrong with one file of a scope, its payload included."""
    where, ref = f"{files.where}/{SCOPES}/{key}/{name}", _ref_of(name)
    if ref is None:
        if name != _USES:
            yield _foreign(name, where)
        return
    shelf = _FolderShelf(files, key, {})
    try:
        row = shelf.find(ref)
        if row is not None and digest_of(shelf.payload(ref)) != row.ticket.digest:
            raise tampered(f"the stored {row.ticket.kind!r} is not what was filed")
    except _Gone:
        return
    except ArtifactError as error:
        error.where = where
        yield error


def _foreign(name: str, where: str) -> ArtifactError:
    return ArtifactError(
        f"{visible(name)!r} is not a file of this store",
        code="foreign_file",
        where=where,
        fix="move it elsewhere",
    )


def _settle_in(files: Files) -> None:
    """Make a store where there is nothing; refuse a place that holds something else."""
    mark = files.read(MARK)
    if mark is None:
        others = sorted(set(files.names("")) - ASIDE)
        if others and MARK not in others:
            raise not_a_store(files.name, files.where, "it holds other files")
        with files.holding(MARK):
            mark = files.read(MARK)
            if mark is None:  # unless another process was quicker
                mark = f"{canonical({'format': FORMAT})}\n".encode()
                files.write(MARK, mark)
    try:
        form = json.loads(mark)["format"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise not_a_store(files.name, files.where, f"its {MARK} cannot be read") from None
    if form != FORMAT:
        raise not_a_store(
            files.name,
            files.where,
            f"its files have form {clip(visible(str(form)), 60)!r}, and this reads {FORMAT!r}",
        )
