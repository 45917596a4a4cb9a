"""Artifact references in arguments: redeemed before the body runs, or refused all together.

Tools layer. A tool that ``wants`` an artifact receives its data where the caller wrote a
reference. Every wanted argument is judged before anything is answered, so that one refusal says
all there is to mend, and names references that would have done.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._text import MISSING, clip, counted, listed, visible
from runbook_nb._value import frozen
from runbook_nb.artifacts import NoArtifacts
from runbook_nb.errors import ArtifactError, Problem, ToolRefused

if TYPE_CHECKING:
    from runbook_nb.artifacts import BoundArtifacts, Ticket
    from runbook_nb.tools.tool import Tool

#: References a refusal names, and how far a store is searched for them.
MAX_LIVE_REFS: Final = 10
MAX_ROWS: Final = 200
MAX_PAGES: Final = 50


@frozen
class _Fault:
    """Why one argument cannot be redeemed. ``reason`` is a published word."""

    argument: str
    kind: str
    reason: str
    message: str
    found: str | None = None

    def facts(self) -> dict[str, Any]:
        found = {} if self.found is None else {"found": self.found}
        return {"reason": self.reason, "kind": self.kind, **found}


async def redeem_wanted(
    tool: Tool, args: Mapping[str, Any], artifacts: BoundArtifacts
) -> tuple[dict[str, Any], dict[str, Ticket]]:
    """Put the data of the wanted artifacts in the place of their references.

    JSON payloads are decoded; any other stays the text or bytes it is.

    Parameters
    ----------
    tool : Tool
        Declares ``wants``.
    args : mapping
        The arguments; not changed.
    artifacts : BoundArtifacts
        The store of the call.

    Returns
    -------
    tuple of dict
        The arguments with the data, and the ticket of each one redeemed.

    Raises
    ------
    ToolRefused
        ``no_artifact_store``, or ``unusable_reference`` with every fault:
        ``facts["arguments"][name]["reason"]`` is ``invalid-input``, ``missing-or-expired``,
        ``kind-mismatch`` or ``digest-mismatch``.
    """
    given = dict(args)
    tickets: dict[str, Ticket] = {}
    if not tool.wants:
        return given, tickets
    if isinstance(artifacts, NoArtifacts):
        raise ToolRefused(
            f"tool {tool.name!r} wants artifacts ({listed(tool.wants)}), "
            "and no artifact store is attached",
            code="no_artifact_store",
            where=tool.name,
            fix="make the toolbox with artifacts=InMemoryArtifacts(), or with another store",
            facts={"tool": tool.name, "wants": dict(tool.wants)},
        )
    required = tool.input_schema.get("required", ())
    faults = []
    for argument, kind in tool.wants.items():
        ref = given.get(argument, MISSING)
        if ref is MISSING and argument not in required:
            continue
        outcome = await _redeem(argument, kind, ref, artifacts)
        if isinstance(outcome, _Fault):
            faults.append(outcome)
        else:
            tickets[argument], given[argument] = outcome
    if faults:
        raise await _refusal(tool, faults, artifacts)
    return given, tickets


async def _redeem(
    argument: str, kind: str, ref: Any, artifacts: BoundArtifacts
) -> _Fault | tuple[Ticket, Any]:
    def fault(reason: str, message: str, found: str | None = None) -> _Fault:
        return _Fault(argument=argument, kind=kind, reason=reason, message=message, found=found)

    if ref is MISSING:
        return fault("invalid-input", f"is required: a reference of kind {kind!r}")
    if not isinstance(ref, str) or not ref.strip():
        return fault("invalid-input", f"must be a reference of kind {kind!r}, as text")
    try:
        record = await artifacts.get(ref)
    except ArtifactError as error:
        if error.code != "integrity":
            raise
        return fault(
            "digest-mismatch", "names an artifact whose content is no longer what was filed"
        )
    if record is None:
        # One answer for unknown, expired and somebody else's, so that it tells nothing.
        return fault("missing-or-expired", "names no artifact this session can read")
    if record.meta.kind != kind:
        message = f"names an artifact of kind {_said(record.meta.kind)}, and {kind!r} is wanted"
        return fault("kind-mismatch", message, record.meta.kind)
    try:
        return record.meta, _decoded(record.meta.media_type, record.data)
    except ValueError:
        return fault("digest-mismatch", "names an artifact that says it is JSON, and is not")


def _decoded(media_type: str, data: str | bytes) -> Any:
    kind = media_type.partition(";")[0].strip().lower()
    if isinstance(data, str) and (kind == "application/json" or kind.endswith("+json")):
        return json.loads(data)
    return data


async def _refusal(tool: Tool, faults: list[_Fault], artifacts: BoundArtifacts) -> ToolRefused:
    live: dict[str, list[str]] = {}
    said = []
    for kind in dict.fromkeys(fault.kind for fault in faults):
        live[kind], sentence = await _live_refs(kind, artifacts)
        said.append(sentence)
    reasons = {fault.reason for fault in faults}
    return ToolRefused(
        f"tool {tool.name!r} was not run: "
        f"{counted(len(faults), 'wanted artifact')} could not be used",
        code="unusable_reference",
        where=tool.name,
        fix=" ".join(said),
        problems=[Problem(where=fault.argument, message=fault.message) for fault in faults],
        facts={
            "tool": tool.name,
            "reason": reasons.pop() if len(reasons) == 1 else "several",
            "arguments": {fault.argument: fault.facts() for fault in faults},
            "live": live,
        },
    )


async def _live_refs(kind: str, artifacts: BoundArtifacts) -> tuple[list[str], str]:
    """Find references of a kind, and say it in the past tense: the text is read again later."""
    found: list[str] = []
    seen = 0
    cursor: str | None = None
    complete = False
    try:
        for _ in range(MAX_PAGES):
            page = await artifacts.list(limit=min(50, MAX_ROWS - seen), cursor=cursor)
            seen += len(page.artifacts)
            found += [ticket.ref for ticket in page.artifacts if ticket.kind == kind]
            stuck = page.cursor is not None and page.cursor == cursor
            cursor = page.cursor
            complete = cursor is None
            if complete or stuck or seen >= MAX_ROWS:
                break
    except Exception as error:  # the refusal itself matters more than this help
        return [], f"references of kind {kind!r} could not be listed ({type(error).__name__})."
    shown = found[:MAX_LIVE_REFS]
    scanned = "" if complete else f" among the first {seen} artifacts"
    if not shown:
        return [], f"no reference of kind {kind!r} was live{scanned} when the call was judged."
    of = "" if len(shown) == len(found) else f" ({len(shown)} of {len(found)})"
    return shown, (
        f"live references of kind {kind!r}{scanned} when the call was judged{of}: "
        f"{', '.join(shown)}."
    )


def _said(kind: str) -> str:
    return repr(clip(visible(kind), 80))
