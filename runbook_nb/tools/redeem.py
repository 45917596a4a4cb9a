"""A tool with which a model reads what tickets stand for.

Tools layer. A model asks for an artifact by its reference, looks at a ticket, or lists what the
conversation holds. A reference that is unknown, expired or of another conversation gives one and
the same answer, so that asking tells nothing about what others filed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from runbook_nb._text import counted
from runbook_nb.artifacts import ArtifactStore, BoundArtifacts, NoArtifacts, Ticket
from runbook_nb.coverage import absent
from runbook_nb.errors import DefinitionError
from runbook_nb.tools.context import ToolContext
from runbook_nb.tools.tool import Tool, define_tool

#: Characters of a payload one answer holds at most, unless told otherwise.
DEFAULT_MAX_CHARS: Final = 20_000
#: Tickets on one page of an answer.
PAGE: Final = 20

_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "op": {
            "type": "string",
            "enum": ["artifact-get", "artifact-head", "artifact-list"],
            "description": (
                "artifact-get reads the payload, artifact-head the ticket alone, artifact-list "
                "what the conversation holds, newest first."
            ),
        },
        "ref": {
            "type": "string",
            "description": "The reference; needed by artifact-get and artifact-head.",
        },
        "offset": {
            "type": "integer",
            "minimum": 0,
            "description": "First character wanted of a long payload; 0 when left out.",
        },
        "cursor": {
            "type": "string",
            "description": "Where artifact-list goes on, as the page before said.",
        },
    },
    "required": ["op"],
    "additionalProperties": False,
}


def artifact_tool(
    store: ArtifactStore | BoundArtifacts | None = None,
    *,
    name: str = "artifacts",
    max_chars: int = DEFAULT_MAX_CHARS,
) -> Tool:
    """Make the tool a model redeems references with.

    JSON payloads come as their text. A payload longer than ``max_chars`` comes in parts: every
    answer says how many characters it shows of how many, and where the next part begins.

    Parameters
    ----------
    store : ArtifactStore or BoundArtifacts, optional
        Where to read. A store is read within the session of the call; by default the store of the
        toolbox that calls the tool is.
    name : str
        The tool's name.
    max_chars : int
        Ceiling of one answer's payload.

    Returns
    -------
    Tool
        Takes ``{"op": "artifact-get", "ref": …}``, ``artifact-head`` or ``artifact-list``.

    Examples
    --------
    >>> from runbook_nb.tools.toolbox import Toolbox
    >>> box = Toolbox([artifact_tool(max_chars=4)])
    >>> note = {"kind": "note", "mediaType": "text/plain", "data": "all quiet"}
    >>> filed = box.artifacts.put_sync(note)
    >>> got = box.call_sync("artifacts", {"op": "artifact-get", "ref": filed.meta.ref})
    >>> got["text"], got["shown"], got["total"], got["complete"], got["next_offset"]
    ('all ', 4, 9, False, 4)
    """
    if not (store is None or isinstance(store, ArtifactStore | BoundArtifacts)):
        raise DefinitionError(
            f"artifact_tool cannot read {store!r:.80}",
            where="store",
            fix="give a store, box.artifacts, or nothing for the store of the call",
        )
    if type(max_chars) is not int or max_chars < 1:
        raise DefinitionError(
            f"max_chars cannot be {max_chars!r}",
            where="max_chars",
            fix="give a whole number from 1",
        )

    async def redeem(args: Mapping[str, Any], ctx: ToolContext) -> dict[str, Any]:
        artifacts = _bound(store, ctx)
        if args["op"] == "artifact-list":
            return await _listed(artifacts, args.get("cursor"))
        ref = args.get("ref", "")
        if args["op"] == "artifact-head":
            ticket = await artifacts.head(ref)
            return _nothing() if ticket is None else _ticket(ticket)
        record = await artifacts.get(ref)
        if record is None:
            return _nothing()
        return {
            **_ticket(record.meta),
            **_part(record.data, args.get("offset", 0), max_chars),
        }

    return define_tool(
        name=name,
        description=(
            "Read what an earlier answer filed under a reference (art_…): the payload in parts, "
            "its ticket, or a list of what this conversation holds."
        ),
        input_schema=_SCHEMA,
        execute=redeem,
    )


def _bound(store: ArtifactStore | BoundArtifacts | None, ctx: ToolContext) -> BoundArtifacts:
    if store is None:
        return ctx.artifacts if isinstance(ctx.artifacts, BoundArtifacts) else NoArtifacts()
    if isinstance(store, ArtifactStore):
        return BoundArtifacts(store, ctx.session.scope)
    return store


def _nothing() -> dict[str, Any]:
    # The words may not depend on which of the reasons holds, nor repeat what was asked for.
    return absent(
        "an artifact under the reference that was given",
        checked=["the artifacts this conversation could read when it was asked"],
        try_instead="op artifact-list names the references that can be read",
    )


def _ticket(ticket: Ticket) -> dict[str, Any]:
    wire = ticket.to_dict()
    kept = ("ref", "kind", "mediaType", "bytes", "label")
    return {key: wire[key] for key in kept if key in wire}


def _part(data: str | bytes, offset: int, most: int) -> dict[str, Any]:
    if isinstance(data, bytes):
        return {"note": f"The payload is {counted(len(data), 'byte')} that are not text."}
    offset = math.floor(offset)  # JSON makes no difference between 4 and 4.0
    text = data[offset : offset + most]
    end = offset + len(text)
    part: dict[str, Any] = {
        "text": text,
        "offset": offset,
        "shown": len(text),
        "total": len(data),
        "complete": len(text) == len(data),
    }
    if end < len(data):
        part["next_offset"] = end
    if not part["complete"]:
        part["note"] = (
            f"These are {counted(len(text), 'character')} of {len(data)}, from {offset} on."
        )
    return part


async def _listed(artifacts: BoundArtifacts, cursor: str | None) -> dict[str, Any]:
    page = await artifacts.list(limit=PAGE, cursor=cursor)
    found: dict[str, Any] = {
        "artifacts": [_ticket(ticket) for ticket in page.artifacts],
        "shown": len(page.artifacts),
        "complete": cursor is None and page.cursor is None,
    }
    return found if page.cursor is None else {**found, "cursor": page.cursor}
