"""What a tool gets to work with: a store bound to the scope and the call it runs in.

The scope and the origin are the framework's to say. A tool cannot name another scope, and an
origin it writes itself is thrown away, so that what a ticket says about who filed it is true.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from runbook_nb._display import Renderable
from runbook_nb._sync import asks_for_loop, loop_for
from runbook_nb._view import Card
from runbook_nb.artifacts.base import DEFAULT_PAGE, ArtifactStore, drive
from runbook_nb.artifacts.model import ArtifactPage, ArtifactScope, PutResult, Record, Ticket
from runbook_nb.artifacts.parcel import is_ref, read_origin
from runbook_nb.errors import ArtifactError, DefinitionError

T = TypeVar("T")

#: Hears what happened to artifacts: metadata, never a payload.
Observer = Callable[[Mapping[str, Any]], object]


class BoundArtifacts(Renderable):
    """The five verbs of a store without the scope, with their ``_sync`` twins.

    What happens is told to the observer as metadata: ``artifacts.minted`` (``meta``),
    ``artifacts.resolved`` (``verb``, ``meta``), ``artifacts.expired`` for each row that left for a
    new one (``ref``, ``reason``, ``kind``, ``bytes``) and ``artifacts.refused`` (``verb``,
    ``code``, ``ref`` when it is well-formed).

    Parameters
    ----------
    store : ArtifactStore
        Where artifacts are kept.
    scope : ArtifactScope
        Whose they are.
    origin : mapping, optional
        ``runId`` and ``toolCallId`` stamped on everything filed here; without one, artifacts are
        filed with no origin.
    observer : callable, optional
        Called with each fact; what it raises reaches the caller of the verb.

    Examples
    --------
    >>> from runbook_nb.artifacts.memory import InMemoryArtifacts
    >>> artifacts = BoundArtifacts(InMemoryArtifacts(), ArtifactScope("c1"), {"toolCallId": "t1"})
    >>> filed = artifacts.put_sync({"kind": "note", "mediaType": "text/plain", "data": "x",
    ...                             "origin": {"toolCallId": "somebody else"}})
    >>> filed.meta.origin
    {'toolCallId': 't1'}
    """

    def __init__(
        self,
        store: ArtifactStore,
        scope: ArtifactScope,
        origin: Mapping[str, str | None] | None = None,
        observer: Observer | None = None,
    ) -> None:
        if not isinstance(store, ArtifactStore):
            raise DefinitionError(
                f"{store!r:.80} is no artifact store",
                where="store",
                fix="give InMemoryArtifacts() or your own subclass of ArtifactStore",
            )
        self._store = store
        self._scope = scope
        self._origin = read_origin(origin)
        self._observer = observer

    async def put(self, artifact: Any) -> PutResult:
        """File an artifact; see `ArtifactStore.put`."""
        result = await self._heard("put", None, self._store.put(self._scope, self._mine(artifact)))
        self._tell("minted", meta=result.meta.to_dict())
        for gone in result.swept:
            self._tell("expired", **gone.to_dict())
        return result

    async def head(self, ref: str) -> Ticket | None:
        """Give the ticket, or None; see `ArtifactStore.head`."""
        ticket = await self._heard("head", ref, self._store.head(self._scope, ref))
        self._tell_found("head", ref, ticket)
        return ticket

    async def get(self, ref: str) -> Record | None:
        """Give ticket and payload, or None; see `ArtifactStore.get`."""
        record = await self._heard("get", ref, self._store.get(self._scope, ref))
        self._tell_found("get", ref, None if record is None else record.meta)
        return record

    async def delete(self, ref: str) -> bool:
        """Remove an artifact; see `ArtifactStore.delete`."""
        return await self._heard("delete", ref, self._store.delete(self._scope, ref))

    async def list(self, *, limit: int = DEFAULT_PAGE, cursor: str | None = None) -> ArtifactPage:
        """Give a page of tickets; see `ArtifactStore.list`."""
        page = self._store.list(self._scope, limit=limit, cursor=cursor)
        return await self._heard("list", None, page)

    def put_sync(self, artifact: Any) -> PutResult:
        """Do what `put` does, from code that cannot await."""
        return self._store.settle(lambda: self.put(artifact))

    def head_sync(self, ref: str) -> Ticket | None:
        """Do what `head` does, from code that cannot await."""
        return self._store.settle(lambda: self.head(ref))

    def get_sync(self, ref: str) -> Record | None:
        """Do what `get` does, from code that cannot await."""
        return self._store.settle(lambda: self.get(ref))

    def delete_sync(self, ref: str) -> bool:
        """Do what `delete` does, from code that cannot await."""
        return self._store.settle(lambda: self.delete(ref))

    def list_sync(self, *, limit: int = DEFAULT_PAGE, cursor: str | None = None) -> ArtifactPage:
        """Do what `list` does, from code that cannot await."""
        return self._store.settle(lambda: self.list(limit=limit, cursor=cursor))

    def _mine(self, artifact: Any) -> Any:
        if not isinstance(artifact, Mapping):
            return artifact  # the store refuses it by name
        own = {key: value for key, value in artifact.items() if key != "origin"}
        return own if self._origin is None else {**own, "origin": self._origin}

    async def _heard(self, verb: str, ref: Any, work: Coroutine[Any, Any, T]) -> T:
        try:
            await loop_for(work)
            return await work
        except Exception as error:
            # Codes and class names only: a message may quote what was handed in.
            code = error.code if isinstance(error, ArtifactError) else type(error).__name__
            self._tell_refused(verb, code, ref)
            raise

    def _tell_found(self, verb: str, ref: Any, ticket: Ticket | None) -> None:
        if ticket is None:
            self._tell_refused(verb, "missing_or_expired", ref)
        else:
            self._tell("resolved", verb=verb, meta=ticket.to_dict())

    def _tell_refused(self, verb: str, code: str, ref: Any) -> None:
        self._tell("refused", verb=verb, code=code, **({"ref": ref} if is_ref(ref) else {}))

    def _tell(self, fact: str, **said: Any) -> None:
        if self._observer is not None:
            self._observer({"type": f"artifacts.{fact}", **said})

    def view(self) -> Card:
        """Say what this looks like: what the store holds for this scope."""
        return self._store.view(self._scope)


class NoArtifacts(BoundArtifacts):
    """Stands where no store is: every verb refuses, and says how to get one.

    Parameters
    ----------
    message, fix : str, optional
        What is said; inner calls, which carry no store by design, say something else than a
        toolbox that was made without one.

    Examples
    --------
    >>> NoArtifacts().get_sync("art_" + "a" * 22)
    Traceback (most recent call last):
    ...
    runbook_nb.errors.ArtifactError: no artifact store is attached; make the toolbox with \
artifacts=InMemoryArtifacts(), or with another store
    """

    def __init__(
        self,
        message: str = "no artifact store is attached",
        fix: str = "make the toolbox with artifacts=InMemoryArtifacts(), or with another store",
    ) -> None:
        super().__init__(_NoStore(message, fix), ArtifactScope("none"))


class _NoStore(ArtifactStore):
    def __init__(self, message: str, fix: str) -> None:
        self._message = message
        self._fix = fix

    def _refusal(self) -> ArtifactError:
        return ArtifactError(self._message, code="no_store", where="artifacts", fix=self._fix)

    @asks_for_loop
    async def put(self, scope: ArtifactScope, artifact: Any) -> PutResult:
        raise self._refusal()

    @asks_for_loop
    async def head(self, scope: ArtifactScope, ref: str) -> Ticket | None:
        raise self._refusal()

    @asks_for_loop
    async def get(self, scope: ArtifactScope, ref: str) -> Record | None:
        raise self._refusal()

    @asks_for_loop
    async def delete(self, scope: ArtifactScope, ref: str) -> bool:
        raise self._refusal()

    @asks_for_loop
    async def list(
        self, scope: ArtifactScope, *, limit: int = DEFAULT_PAGE, cursor: str | None = None
    ) -> ArtifactPage:
        raise self._refusal()

    def settle(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return drive(start)

    def view(self, scope: ArtifactScope | None = None) -> Card:
        return Card(kind="Artifacts", name="", headline=self._message)
