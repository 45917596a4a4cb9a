"""What a store holds and gives back: scopes, tickets, records, pages.

Displays of these shapes never show any of a payload, nor, unless asked to, what differs from run
to run: references and the ids of calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from runbook_nb._display import Renderable
from runbook_nb._frozen import Immutable
from runbook_nb._text import clip, counted, visible
from runbook_nb._value import frozen
from runbook_nb._view import Card, Cell, Column, Data, Fact, Facts, Section, Table
from runbook_nb.artifacts.parcel import required_text
from runbook_nb.settings import settings

#: Why a row left a store.
SweepReason = Literal["ttl", "max-bytes", "max-count"]


@frozen(kw_only=False)
class ArtifactScope(Immutable):
    """Whose artifacts they are. What is filed under one scope does not exist under another.

    Examples
    --------
    >>> ArtifactScope("c1", tenant="acme")
    ArtifactScope(conversation_id='c1', tenant='acme', principal=None)
    """

    conversation_id: str
    tenant: str | None = None
    principal: str | None = None

    def __post_init__(self) -> None:
        required_text(self.conversation_id, "scope.conversation_id")
        for name in ("tenant", "principal"):
            if getattr(self, name) is not None:
                required_text(getattr(self, name), f"scope.{name}")


class _Named(Renderable, Immutable):
    """Lets a shape be read by its published names, as the mapping it would be elsewhere."""

    __slots__ = ()

    def _named(self) -> dict[str, Any]:
        raise NotImplementedError

    def __getitem__(self, name: str) -> Any:
        return self._named()[name]

    def keys(self) -> tuple[str, ...]:
        """Give the published names that are present."""
        return tuple(self._named())


@frozen(repr=False)
class Ticket(_Named):
    """The metadata of an artifact, and its reference.

    Displays leave out the reference and the ids of ``origin`` unless ``settings.show_refs`` is
    on, since they differ from run to run.

    Attributes
    ----------
    ref : str
        The reference: ``art_`` and 22 letters and digits, never derived from the content.
    kind, media_type : str
        What it is and how it is written.
    bytes : int
        Size of the payload.
    created_at : int
        Milliseconds since the epoch.
    label : str or None
        A name for people.
    digest : str or None
        ``sha-256:`` and the hexadecimal digest of the payload.
    expires_at : int or None
        From when on it is gone, in milliseconds since the epoch.
    origin : mapping or None
        ``runId`` and ``toolCallId`` of the call that filed it.
    parent_refs : tuple of str
        What it was made from.

    Examples
    --------
    >>> ticket = Ticket(ref="art_" + "a" * 22, kind="k", media_type="text/plain", bytes=2,
    ...                 created_at=0)
    >>> ticket.media_type, ticket["mediaType"], list(ticket.to_dict())
    ('text/plain', 'text/plain', ['ref', 'kind', 'mediaType', 'bytes', 'createdAt'])
    """

    ref: str
    kind: str
    media_type: str
    bytes: int
    created_at: int
    label: str | None = None
    digest: str | None = None
    expires_at: int | None = None
    origin: Mapping[str, str] | None = None
    parent_refs: tuple[str, ...] = ()

    def __hash__(self) -> int:
        return hash(self.ref)

    def to_dict(self) -> dict[str, Any]:
        """Give the wire form; what is not there is left out."""
        wire: dict[str, Any] = {
            "ref": self.ref,
            "kind": self.kind,
            "mediaType": self.media_type,
            "bytes": self.bytes,
            "createdAt": self.created_at,
        }
        for name, value in (
            ("label", self.label),
            ("digest", self.digest),
            ("expiresAt", self.expires_at),
        ):
            if value is not None:
                wire[name] = value
        if self.origin:
            wire["origin"] = dict(self.origin)
        if self.parent_refs:
            wire["parentRefs"] = list(self.parent_refs)
        return wire

    def _named(self) -> dict[str, Any]:
        return self.to_dict()

    def expired(self, now: int) -> bool:
        """Whether it is gone at ``now``, in milliseconds since the epoch."""
        return self.expires_at is not None and self.expires_at <= now

    def facts(self) -> Facts:
        """Give the metadata as a list of facts."""
        rows: list[tuple[str, Cell]] = [
            ("kind", Data(value=self.kind)),
            ("media type", Data(value=self.media_type)),
            ("size", counted(self.bytes, "byte")),
            ("created", Data(value=_moment(self.created_at))),
        ]
        if self.label is not None:
            rows.insert(0, ("label", Data(value=self.label)))
        if self.expires_at is not None:
            rows.append(("expires", Data(value=_moment(self.expires_at))))
        if self.digest is not None:
            rows.append(("digest", Data(value=self.digest)))
        if settings.show_refs:
            rows.append(("ref", Data(value=self.ref)))
            rows += [(name, Data(value=value)) for name, value in (self.origin or {}).items()]
            rows += [("parent", Data(value=ref)) for ref in self.parent_refs]
        elif self.parent_refs:
            rows.append(("made from", counted(len(self.parent_refs), "artifact")))
        items = tuple(Fact(term=term, detail=detail) for term, detail in rows)
        return Facts(label="", items=items, total=len(items))

    def view(self) -> Card:
        """Say what this looks like: kind and size, never the reference by default."""
        qualifiers = (visible(self.kind),) if self.label is not None else ()
        return Card(
            kind="Ticket",
            name=clip(visible(self.label or self.kind), 50),
            qualifiers=qualifiers,
            headline=counted(self.bytes, "byte"),
            sections=(Section(label="", parts=(self.facts(),), in_text=False),),
        )


@frozen(kw_only=False, repr=False)
class Record(_Named):
    """A ticket with its payload: text (JSON included) or bytes.

    Examples
    --------
    >>> ticket = Ticket(ref="art_" + "a" * 22, kind="k", media_type="application/json", bytes=7,
    ...                 created_at=0)
    >>> record = Record(ticket, '{"a":1}')
    >>> record.data, record["meta"].kind
    ('{"a":1}', 'k')
    """

    meta: Ticket
    data: str | bytes

    def _named(self) -> dict[str, Any]:
        return {"meta": self.meta, "data": self.data}

    def view(self) -> Card:
        """Say what this looks like: the ticket; a payload may be of any size."""
        view = self.meta.view()
        form = "text" if isinstance(self.data, str) else "bytes"
        return Card(
            kind="Record",
            name=view.name,
            qualifiers=(*view.qualifiers, form),
            headline=view.headline,
            sections=view.sections,
        )


@frozen(repr=False)
class Swept(_Named):
    """A row that left the store, and on what ground."""

    ref: str
    reason: SweepReason
    kind: str
    bytes: int

    @classmethod
    def of(cls, ticket: Ticket, reason: SweepReason) -> Swept:
        """Say why a ticket's row left."""
        return cls(ref=ticket.ref, reason=reason, kind=ticket.kind, bytes=ticket.bytes)

    def to_dict(self) -> dict[str, Any]:
        """Give the wire form."""
        return {"ref": self.ref, "reason": self.reason, "kind": self.kind, "bytes": self.bytes}

    def _named(self) -> dict[str, Any]:
        return self.to_dict()

    def view(self) -> Card:
        """Say what this looks like."""
        return Card(
            kind="Swept",
            name=clip(visible(self.kind), 50),
            qualifiers=(self.reason,),
            headline=counted(self.bytes, "byte"),
        )


@frozen(repr=False)
class PutResult(_Named):
    """What filing gave: the new ticket, and every row that had to leave for it."""

    meta: Ticket
    swept: tuple[Swept, ...] = ()

    def _named(self) -> dict[str, Any]:
        return {"meta": self.meta, "swept": self.swept}

    def view(self) -> Card:
        """Say what this looks like: the ticket, and how many rows left."""
        view = self.meta.view()
        return Card(
            kind="Filed",
            name=view.name,
            qualifiers=view.qualifiers,
            headline=view.headline,
            sections=view.sections,
            closing=(f"{counted(len(self.swept), 'artifact')} swept",) if self.swept else (),
        )


@frozen(repr=False)
class ArtifactPage(_Named):
    """One page of tickets, newest first; ``cursor`` asks for the next page, None at the end."""

    artifacts: tuple[Ticket, ...]
    cursor: str | None = None

    def _named(self) -> dict[str, Any]:
        named: dict[str, Any] = {"artifacts": self.artifacts}
        return named if self.cursor is None else {**named, "cursor": self.cursor}

    def view(self) -> Card:
        """Say what this looks like: one row per ticket."""
        headline = counted(len(self.artifacts), "artifact")
        return Card(
            kind="Artifacts",
            name="",
            headline=headline if self.cursor is None else f"{headline}, more follow",
            sections=(Section(label="", parts=(tickets_table(self.artifacts),)),),
        )


def tickets_table(tickets: tuple[Ticket, ...]) -> Table:
    """Give tickets as the rows of a table."""
    shown = tickets[: settings.max_table_rows]
    refs = settings.show_refs
    columns = [Column(head="kind"), Column(head="label"), Column(head="bytes", align="right")]
    rows = [(Data(value=t.kind), Data(value=t.label), t.bytes) for t in shown]
    if not refs:
        return Table(columns=tuple(columns), rows=tuple(rows), total=len(tickets))
    return Table(
        columns=(*columns, Column(head="ref")),
        rows=tuple((*row, Data(value=t.ref)) for row, t in zip(rows, shown, strict=True)),
        total=len(tickets),
    )


def _moment(milliseconds: int) -> str:
    from datetime import UTC, datetime, timedelta

    try:
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:  # "never", as some callers write it, lies past the last year
        return f"{milliseconds} ms"
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
