"""What stands in a row of a file: a ticket as JSON, a payload packed where that makes it smaller.

Reading trusts neither: what is not what was filed is refused.
"""

from __future__ import annotations

import json
import threading
import zlib
from typing import Any, Final

from runbook_nb._frozen import FrozenDict
from runbook_nb.artifacts.base import tampered
from runbook_nb.artifacts.model import Ticket
from runbook_nb.artifacts.parcel import PayloadForm

_PLAIN: Final = 0
_DEFLATED: Final = 1
#: Of the quick levels the one that makes walks smaller; and no header, no checksum of zlib's own,
#: as every payload has a digest.
_LEVEL: Final = 2
_BARE: Final = -15
#: Made once: `json.dumps` makes an encoder for each call that is not the plainest.
_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
#: What is tried on a payload before the whole of it is compressed.
_SAMPLE: Final = 1024
#: What is looked at before anything is tried, and of how many different bytes it is noise: of 128
#: that are drawn 101 differ, give or take 5.
_LOOK: Final = 128
_NOISE: Final = 85
_WANTED: Final = {"ref": str, "kind": str, "mediaType": str, "bytes": int, "createdAt": int}


def write_ticket(ticket: Ticket) -> str:
    """Write the wire form of a ticket."""
    return _encode(ticket.to_dict())


def read_ticket(ref: str, text: str) -> Ticket:
    """Read the ticket that stands under a reference.

    Raises
    ------
    ArtifactError
        ``integrity``: it is not what was filed.
    """
    try:
        return read_wire(ref, json.loads(text))
    except (ValueError, TypeError, KeyError) as error:
        raise tampered("a stored ticket is not what was filed") from error


def read_wire(ref: str, wire: Any) -> Ticket:
    """Read the wire form of the ticket that stands under a reference.

    Raises
    ------
    ValueError, TypeError, KeyError
        It is not what was filed.
    """
    known = all(type(wire[name]) is kind for name, kind in _WANTED.items())
    if not known or wire["ref"] != ref:
        raise ValueError("another ticket")
    origin, parents = wire.get("origin"), wire.get("parentRefs", ())
    return Ticket(
        ref=ref,
        kind=wire["kind"],
        media_type=wire["mediaType"],
        bytes=wire["bytes"],
        created_at=wire["createdAt"],
        label=wire.get("label"),
        digest=wire["digest"],
        expires_at=wire.get("expiresAt"),
        origin=None if origin is None else FrozenDict(origin),
        parent_refs=tuple(parents),
    )


def form_of(form: Any) -> PayloadForm:
    """Say whether a payload is read as text or as bytes."""
    return "text" if form == "text" else "bytes"


def pack(payload: bytes) -> tuple[int, bytes]:
    """Compress what gets smaller by it; compressing costs less than writing what it saves.

    Examples
    --------
    >>> packing, body = pack(b"abc" * 100)
    >>> len(body) < 30, unpack(300, packing, body) == b"abc" * 100
    (True, True)
    """
    # A text in ASCII leaves one bit of eight unused, so that a whole one always gets smaller.
    if len(payload) <= _SAMPLE or not payload.isascii():
        sample = payload[:_SAMPLE]
        if len(set(sample[:_LOOK])) > _NOISE or len(_deflated(sample)) > 0.9 * len(sample):
            return _PLAIN, payload
    return _DEFLATED, _deflated(payload)


class _Packer(threading.local):
    """Compresses one payload after another, in each thread with what it keeps for that.

    What it keeps is a quarter of a megabyte, which the system has to clear for each that is new.
    """

    def __init__(self) -> None:
        self._kept: Any = None

    def deflated(self, payload: bytes) -> bytes:
        packer, self._kept = self._kept, None
        if packer is None:
            packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _BARE)
        # A full flush ends what may be referred to: what comes out is read by itself.
        packed: bytes = packer.compress(payload) + packer.flush(zlib.Z_FULL_FLUSH)
        self._kept = packer  # unless it failed half-way
        return packed


_deflated: Final = _Packer().deflated


def unpack(size: int, packing: int | None, body: Any) -> bytes:
    """Give the payload that `pack` packed.

    Raises
    ------
    ArtifactError
        ``integrity``: it cannot be read, or has not the bytes that were filed.
    """
    if packing == _PLAIN and isinstance(body, bytes):
        return body
    try:
        opened = zlib.decompressobj(_BARE)
        payload = opened.decompress(body, size + 1)  # never more than was filed, whatever it says
    except (zlib.error, TypeError) as error:
        raise tampered("a stored payload cannot be read") from error
    if packing != _DEFLATED or len(payload) != size:
        raise tampered("a stored payload is not as long as what was filed")
    return payload
