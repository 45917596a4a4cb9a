"""What is handed in to a store, read and encoded once: the same law for every store.

A payload is text or bytes. A JSON value is encoded as compact text when it is handed in: later
changes by its owner cannot reach the store, and every reader decodes afresh. What a store cannot
keep is refused by name, never approximated.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from runbook_nb._frozen import FrozenDict
from runbook_nb._json import encode, encode_deep
from runbook_nb._text import MISSING, did_you_mean, summarize, visible
from runbook_nb._value import inner
from runbook_nb.errors import ArtifactError

#: Random characters of a reference.
REF_LENGTH: Final = 22
#: The one digest a store computes.
DIGEST: Final = "sha-256"

_REF: Final = re.compile(rf"art_[A-Za-z0-9]{{{REF_LENGTH}}}")

PayloadForm = Literal["text", "bytes"]


def is_ref(value: Any) -> bool:
    """Whether a value is a well-formed reference; nothing else ever reaches a backend.

    Examples
    --------
    >>> is_ref("art_" + "a" * 22), is_ref("art_../x")
    (True, False)
    """
    return isinstance(value, str) and _REF.fullmatch(value) is not None


def invalid(message: str, where: str, fix: str | None = None) -> ArtifactError:
    """Build the error for an artifact that cannot be accepted."""
    return ArtifactError(message, code="invalid_artifact", where=where, fix=fix)


@inner
class Parcel:
    """What is handed in, read and encoded: everything of a row that the store does not decide."""

    kind: str
    media_type: str
    payload: bytes
    form: PayloadForm
    label: str | None
    expires_at: int | None
    origin: Mapping[str, str] | None
    parent_refs: tuple[str, ...]


#: Key of an artifact handed in -> the other spelling that is accepted for it.
_PUT_KEYS: Final = {
    "kind": "kind",
    "mediaType": "media_type",
    "data": "data",
    "label": "label",
    "digest": "digest",
    "expiresAt": "expires_at",
    "origin": "origin",
    "parentRefs": "parent_refs",
}
_ORIGIN_KEYS: Final = {"runId": "run_id", "toolCallId": "tool_call_id"}


def _both_spellings(keys: Mapping[str, str]) -> dict[str, str]:
    return {**{other: name for name, other in keys.items()}, **{name: name for name in keys}}


_SPELT_PUT: Final = _both_spellings(_PUT_KEYS)
_SPELT_ORIGIN: Final = _both_spellings(_ORIGIN_KEYS)


def read_parcel(artifact: Any, now: int) -> Parcel:
    """Read what is handed in to a store, refusing by name what it cannot keep.

    Parameters
    ----------
    artifact : mapping
        ``kind``, ``mediaType`` and ``data``; optionally ``label``, ``digest``, ``expiresAt``,
        ``origin`` and ``parentRefs``. The snake_case spellings are accepted too.
    now : int
        Milliseconds since the epoch.

    Raises
    ------
    ArtifactError
        ``invalid_artifact``, with the key in ``where``.

    Examples
    --------
    >>> parcel = read_parcel({"kind": "k", "media_type": "application/json", "data": [1, None]}, 0)
    >>> parcel.payload, parcel.form
    (b'[1,null]', 'text')
    """
    if not isinstance(artifact, Mapping):
        raise invalid(
            f"an artifact is handed in as a mapping, not {_quoted(artifact)}",
            "artifact",
            "write {'kind': '…', 'mediaType': '…', 'data': …}",
        )
    given = _spelled(artifact, _SPELT_PUT, "artifact")
    kind = required_text(given.get("kind"), "kind")
    media_type = required_text(given.get("mediaType"), "mediaType")
    label = given.get("label")
    digest = given.get("digest")
    if digest is not None and digest != DIGEST:
        raise invalid(
            f"there is no digest {_quoted(digest)}", "digest", f"the one kept is {DIGEST!r}"
        )
    expires_at = _expiry(given.get("expiresAt"), now)
    origin = read_origin(given.get("origin"))
    payload, form = _payload(given.get("data", MISSING))
    return Parcel(
        kind=kind,
        media_type=media_type,
        payload=payload,
        form=form,
        label=None if label is None else required_text(label, "label"),
        expires_at=expires_at,
        origin=origin,
        parent_refs=_parents(given.get("parentRefs")),
    )


def read_origin(origin: Any) -> Mapping[str, str] | None:
    """Read an origin: the ids that are present, under their wire names; None without any.

    Examples
    --------
    >>> read_origin({"tool_call_id": "c1", "runId": None})
    {'toolCallId': 'c1'}
    """
    if origin is None:
        return None
    if not isinstance(origin, Mapping):
        raise invalid(f"an origin is a mapping, not {_quoted(origin)}", "origin")
    given = _spelled(origin, _SPELT_ORIGIN, "origin")
    present = {
        n: required_text(given[n], f"origin.{n}") for n in _ORIGIN_KEYS if given.get(n) is not None
    }
    return FrozenDict(present) if present else None


def _spelled(given: Mapping[Any, Any], wire: Mapping[str, str], where: str) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for key, value in given.items():
        if key not in wire:
            keys = tuple(dict.fromkeys(wire.values()))
            near = did_you_mean(key, keys) if isinstance(key, str) else None
            fix = near or f"its keys are {', '.join(keys)}"
            raise invalid(f"{where} has the unknown key {_quoted(key)}", where, fix)
        if wire[key] in read:
            raise invalid(f"{where} gives {wire[key]!r} twice, in two spellings", wire[key])
        read[wire[key]] = value
    return read


def required_text(value: Any, where: str) -> str:
    """Give the text, refusing what is not text, is blank, or cannot be written as UTF-8."""
    if not isinstance(value, str) or not value.strip():
        raise invalid(f"{where} must be a text that is not blank, not {_quoted(value)}", where)
    if not value.isascii():
        _encodable(value, where)
    return str.__str__(value)


def _encodable(text: str, where: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise invalid(
            f"{where} holds a lone surrogate, which UTF-8 cannot carry",
            where,
            "replace it, for instance with text.encode('utf-8', 'replace').decode()",
        ) from None


def _expiry(value: Any, now: int) -> int | None:
    if value is None:
        return None
    whole = isinstance(value, int) and not isinstance(value, bool)
    if isinstance(value, float) and value.is_integer():  # a whole number may arrive as 1.7e12
        whole, value = True, int(value)
    if not whole:
        raise invalid(
            f"expiresAt must be a whole number of milliseconds, not {_quoted(value)}",
            "expiresAt",
            "give milliseconds since the epoch",
        )
    if value <= now:
        raise invalid(
            f"expiresAt {value} is not later than now ({now})",
            "expiresAt",
            "give milliseconds, not seconds, since the epoch",
        )
    return int(value)


def _parents(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise invalid(
            f"parentRefs must be a list of references, not {_quoted(value)}", "parentRefs"
        )
    for n, ref in enumerate(value):
        if not is_ref(ref):
            raise unknown_parent(ref, n)
    return tuple(dict.fromkeys(value))


def unknown_parent(ref: Any, place: int) -> ArtifactError:
    """Build the error for a parent that the scope does not hold, for whatever reason."""
    return ArtifactError(
        f"parentRefs[{place}] {_quoted(ref)} is not held in this scope",
        code="unknown_parent",
        where=f"parentRefs[{place}]",
        fix="name only references this conversation can still redeem",
    )


def _payload(data: Any) -> tuple[bytes, PayloadForm]:
    if data is MISSING:
        raise invalid("an artifact needs `data`", "data", "give text, bytes or a JSON value")
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data), "bytes"
    if isinstance(data, str):
        return _encodable(data, "data"), "text"
    return json_text(data).encode(), "text"


def json_text(data: Any, *, deep: bool = False) -> str:
    """Encode a JSON value as compact text, refusing what JSON cannot carry.

    Deep nesting is refused too, unless it is ``deep`` by its form, as a recording is.

    Raises
    ------
    ArtifactError
        ``invalid_artifact``; the message says what stands in the way, and where.
    """
    try:
        return encode_deep(data) if deep else encode(data)
    except ValueError as error:
        raise invalid(
            f"data cannot be stored: {visible(str(error))}",
            "data",
            "store text, bytes, or dicts and lists of texts, finite numbers, booleans and None",
        ) from error


def digest_of(payload: bytes) -> str:
    """Give the digest of a payload, as tickets carry it."""
    return f"{DIGEST}:{hashlib.sha256(payload).hexdigest()}"


def _quoted(value: Any) -> str:
    return visible(summarize(value))
