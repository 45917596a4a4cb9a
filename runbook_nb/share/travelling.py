"""The machine-readable form in a notebook's metadata, with what was filed beside it.

Sharing layer. It stands in the metadata of the output that shows the answer: there it is copied,
moved and cleared together with what it is about, a notebook may hold many, and a tool that
sanitises HTML leaves it alone. It is kept as text, because nbformat sorts the keys of whatever it
writes, and the first column of a row says whom it is about.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NoReturn

from runbook_nb._deep import read_json
from runbook_nb._ids import digest
from runbook_nb._json import encode, encode_deep
from runbook_nb._text import clip, counted, visible
from runbook_nb._value import frozen
from runbook_nb.artifacts import Record, Ticket
from runbook_nb.errors import RunbookError
from runbook_nb.runbook import Envelope
from runbook_nb.runbook.carried import scrubbed_texts
from runbook_nb.runbook.tickets import FILED, TICKETS
from runbook_nb.share.exported import redactor_of

#: Under this name stands, in any metadata, what is ours.
NAME: Final = "runbook_nb"

#: How the form of a notebook that this package wrote begins, of whatever version.
WRITTEN: Final = "runbook_nb/notebook/"
#: Names the form of what stands there; 1 carried no answer.
NOTEBOOK_FORMAT: Final = f"{WRITTEN}2"

#: The cell of a notebook written for an answer that explains its first row.
EXPLAINED: Final = "envelope.why(row=0)"

#: Bytes of one filed thing (a walk, a recording) that a notebook carries at most.
MAX_FILED: Final = 5_000_000


@frozen
class Carried:
    """What an output's metadata carries.

    Attributes
    ----------
    payload : mapping or None
        None where it is there and cannot be read.
    filed : mapping of str to Record
        What the tickets of the answer stand for, by reference.
    damaged : frozenset of str
        The references of what is there and is not what its digest is of.
    left : mapping or None
        What can still be read of a payload whose digest speaks against it.
    """

    payload: Mapping[str, Any] | None
    filed: Mapping[str, Record]
    damaged: frozenset[str] = frozenset()
    left: Mapping[str, Any] | None = None


class FiledBeside:
    """Redeems tickets with what a file carries, and where that is not enough with a store.

    Parameters
    ----------
    filed : mapping of str to Record
    store : BoundArtifacts or None
        It is asked first.
    damaged : mapping of str to str
        By reference, where something stands that was filed and then changed.
    """

    def __init__(
        self,
        filed: Mapping[str, Record],
        store: Any = None,
        damaged: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.beside = filed
        self.damaged = damaged
        self._store = store

    def get_sync(self, ref: str) -> Record | None:
        """Give what a ticket stands for; None where nobody has it."""
        found: Record | None = None if self._store is None else self._store.get_sync(ref)
        return self.beside.get(ref) if found is None else found


# -- writing ---------------------------------------------------------------------------------


def travelling_form(envelope: Envelope, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Give what stands in the metadata of the output that shows an answer.

    Parameters
    ----------
    envelope : Envelope
    payload : mapping
        Its machine-readable form.

    Returns
    -------
    dict
        What was filed is carried too, up to `MAX_FILED` bytes each; ``not_filed`` says of the
        rest why it is not.

    Examples
    --------
    >>> from runbook_nb import Default, Rule, RuleSet, triage
    >>> rules = RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], Default("fresh"))
    >>> envelope = triage([{"host": "a", "days": 9}], rules, subject="host", source="one row")
    >>> made = travelling_form(envelope, {"format": "runbook_nb/envelope/1"})
    >>> made["payload"], read_travelling(made).payload
    ('{"format":"runbook_nb/envelope/1"}', {'format': 'runbook_nb/envelope/1'})
    """
    filed: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for name, ref, found in _records(envelope):
        if isinstance(found, str):
            missing[name] = found
        else:
            filed[ref] = written_record(_rechecked(envelope, found))
    return written_form(payload, filed, missing)


def written_form(
    payload: Mapping[str, Any], filed: Mapping[str, Any], missing: Mapping[str, str]
) -> dict[str, Any]:
    """Write the parts of the form, each left out where there is none."""
    text = encode(payload)
    made: dict[str, Any] = {"format": NOTEBOOK_FORMAT, "payload": text, "sha-256": _digest(text)}
    if filed:
        made["filed"] = dict(filed)
    if missing:
        made["not_filed"] = dict(missing)
    return made


def written_record(record: Record) -> dict[str, Any]:
    """Write what was filed: its ticket, its digest, and its content as text."""
    packed = not isinstance(record.data, str)
    data = record.data if isinstance(record.data, str) else base64.b64encode(record.data).decode()
    made = {"ticket": record.meta.to_dict(), "sha-256": _digest(data), "data": data}
    return {**made, "packed": True} if packed else made


def _records(envelope: Envelope) -> Iterator[tuple[str, str, Record | str]]:
    """Yield what stands behind each ticket, or why that is not carried."""
    walk = envelope["result"].get("walk", {})
    for key, name in TICKETS.items():
        ref = walk.get(key)
        if not isinstance(ref, str) or envelope.artifacts is None:
            continue
        try:
            record = envelope.artifacts.get_sync(ref)
        except RunbookError as error:
            yield name, ref, f"the store refused it: {error.code}"
            continue
        if record is None:
            yield name, ref, "the store does not hold it any more"
        elif record.meta.bytes > MAX_FILED:
            size = counted(record.meta.bytes, "byte")
            yield name, ref, f"it is too large: {size}, {MAX_FILED} at most"
        else:
            yield name, ref, record


def _rechecked(envelope: Envelope, record: Record) -> Record:
    redactor = redactor_of(envelope)
    if not redactor.active or not isinstance(record.data, str):
        return record  # what is packed was served by the same policy
    try:
        data = read_json(record.data)
        scrubbed = scrubbed_texts(data, redactor)
    except (ValueError, RecursionError):
        return Record(record.meta, redactor.text(record.data))
    return record if scrubbed == data else Record(record.meta, encode_deep(scrubbed))


def _digest(text: str) -> str:
    return digest(text).removeprefix("sha-256:")


def _digest_of(content: str | bytes) -> str:
    return _digest(content) if isinstance(content, str) else hashlib.sha256(content).hexdigest()


# -- reading ---------------------------------------------------------------------------------


def carries(metadata: Any) -> bool:
    """Say whether some metadata of an output is meant to carry an answer, of whatever version."""
    entry = metadata.get(NAME) if isinstance(metadata, Mapping) else None
    return isinstance(entry, Mapping) and "payload" in entry


def about_written(document: Any) -> Mapping[str, Any] | None:
    """Give what a notebook says of who wrote it; None where it was not written by this package.

    Examples
    --------
    >>> about_written({"metadata": {NAME: {"format": NOTEBOOK_FORMAT}}})
    {'format': 'runbook_nb/notebook/2'}
    """
    metadata = document.get("metadata") if isinstance(document, Mapping) else None
    about = metadata.get(NAME) if isinstance(metadata, Mapping) else None
    known = isinstance(about, Mapping) and str(about.get("format")).startswith(WRITTEN)
    return about if known else None


def read_travelling(entry: Any) -> Carried:
    """Read what stands in the metadata of an output; never raises.

    Parameters
    ----------
    entry : object
        What stands under `NAME`. It may come from anybody.

    Returns
    -------
    Carried
        Its payload is None when the form is damaged or unknown.
    """
    payload = None
    text = entry.get("payload") if isinstance(entry, Mapping) else None
    if isinstance(text, str) and entry.get("format") == NOTEBOOK_FORMAT:
        payload = _parsed(text)
    if not isinstance(payload, dict) or not isinstance(text, str):
        return Carried(payload=None, filed={})
    if entry.get("sha-256") != _digest(text):
        return Carried(payload=None, filed={}, left=payload)
    filed = entry.get("filed")
    filed = filed if isinstance(filed, Mapping) else {}
    read = {ref: read_record(ref, written) for ref, written in filed.items()}
    return Carried(
        payload=payload,
        filed={ref: record for ref, record in read.items() if record is not None},
        damaged=frozenset(ref for ref, record in read.items() if record is None),
    )


def filed_name(written: Any) -> str:
    """Name what was filed in a few words.

    Examples
    --------
    >>> filed_name({"ticket": {"kind": "recording/run"}}), filed_name({})
    ('the recording', 'what was')
    """
    ticket = written.get("ticket") if isinstance(written, Mapping) else None
    kind = ticket.get("kind") if isinstance(ticket, Mapping) else None
    name = FILED.get(kind) if isinstance(kind, str) else None
    return "what was" if name is None else f"the {name}"


def read_record(ref: str, written: Any) -> Record | None:
    """Read what was filed; None when it is damaged, or its ticket is another's."""
    try:
        data, ticket = written["data"], written["ticket"]
        if written["sha-256"] != _digest(data) or ticket.get("ref", ref) != ref:
            return None
        content = base64.b64decode(data, validate=True) if written.get("packed") else data
        if ticket.get("digest", "").removeprefix("sha-256:") not in ("", _digest_of(content)):
            return None
        meta = Ticket(
            ref=ref,
            kind=str(ticket["kind"]),
            media_type=str(ticket["mediaType"]),
            bytes=int(ticket["bytes"]),
            created_at=int(ticket.get("createdAt", 0)),
        )
    except (KeyError, TypeError, ValueError, AttributeError, binascii.Error):
        return None
    return Record(meta, content)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return None


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its pairs, where each key stands once: of two, readers differ in theirs.

    Raises
    ------
    ValueError
        A key stands twice.

    Examples
    --------
    >>> once([("rows", 3)])
    {'rows': 3}
    """
    made = dict(pairs)
    if len(made) != len(pairs):
        twice = next(key for n, (key, _) in enumerate(pairs) if key in dict(pairs[:n]))
        raise ValueError(f"the key {clip(visible(twice), 60)!r} stands twice in one object")
    return made


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"JSON has no {name}")
