"""The machine-readable form inside an output: one HTML comment of base64 JSON.

A comment survives saving, trusting and converting a notebook, is shown by no host and run by
none. Keys keep their order, since the first column of a row says whom it is about; equal answers
have one order, and so one text. It is data of whoever wrote the file: the digest tells damage
from a whole one, not a friend from a stranger, and what is read is never more than JSON values.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from runbook_nb._json import encode
from runbook_nb._view import Viewable

#: Bytes of the whole comment in a cell's output; an export may carry more.
MAX_EMBEDDED: Final = 128 * 1024
#: Bytes of comment that are read at most.
MAX_READ: Final = 64 * 1024 * 1024

#: What every such comment begins with, of whatever version.
MARK: Final = "<!--runbook_nb:payload/"
_START: Final = f"{MARK}1 sha-256:"
_END: Final = "-->"
COMMENT: Final = rf"{re.escape(_START)}([0-9a-f]{{64}}) ([A-Za-z0-9+/]*={{0,2}}){re.escape(_END)}"
#: What stands around the base64 text.
_AROUND: Final = len(_START) + 64 + 1 + len(_END)

PayloadOf = Callable[[int | None], Mapping[str, Any] | None]


def comment_of(payload: PayloadOf, most: int | None = MAX_EMBEDDED) -> str:
    """Write a payload as a comment of at most ``most`` bytes; empty when nothing fits.

    Parameters
    ----------
    payload : callable
        As `Card.payload` has it.
    most : int, optional
        None for a comment of any size, as exports carry it.

    Examples
    --------
    >>> comment = comment_of(lambda most: {"format": "x/1", "rows": 3})
    >>> read_embedded(f"<div>3 rows{comment}</div>")
    {'format': 'x/1', 'rows': 3}
    """
    made = payload(None if most is None else (most - _AROUND) // 4 * 3)
    if made is None:
        return ""
    text = encode(made).encode("utf-8")
    checked = hashlib.sha256(text).hexdigest()
    return f"{_START}{checked} {base64.b64encode(text).decode('ascii')}{_END}"


def embed(shown: Viewable, most: int | None = MAX_EMBEDDED) -> str:
    """Give the comment that carries an envelope, or whatever else has a payload; else nothing."""
    payload = shown.view().payload
    return "" if payload is None else comment_of(payload, most)


def read_embedded(html: str) -> dict[str, Any] | None:
    """Read the payload back from an output.

    Parameters
    ----------
    html : str
        The output, or a page with it. It may come from anybody.

    Returns
    -------
    dict or None
        None when there is no such comment, more than one, or one that is damaged, too large, or
        no JSON object.
    """
    return _read(html, damaged=False)


def read_damaged(html: str) -> dict[str, Any] | None:
    """Read what is left of a payload whose digest speaks against it, to tell what was changed.

    Parameters
    ----------
    html : str
        As `read_embedded` takes it.

    Returns
    -------
    dict or None
        None where no JSON object is left of it.
    """
    return _read(html, damaged=True)


def _read(html: str, *, damaged: bool) -> dict[str, Any] | None:
    found = re.findall(COMMENT, html) if html.count(_START) == 1 else []
    if len(found) != 1 or len(found[0][1]) > MAX_READ:
        return None
    checked, packed = found[0]
    try:
        text = base64.b64decode(packed, validate=True)
        if not damaged and hashlib.sha256(text).hexdigest() != checked:
            return None
        value = json.loads(text.decode("utf-8"), parse_constant=_refuse)
    except (binascii.Error, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"JSON has no {name}")
