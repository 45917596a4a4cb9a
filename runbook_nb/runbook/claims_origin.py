"""Claims about where an answer is from: tool, call, sources, the author's own report.

Bridge layer. Most of it is the word of whoever said it, and is told as that.
"""

from __future__ import annotations

from typing import Final

from runbook_nb._json import to_wire
from runbook_nb._text import clip, show
from runbook_nb.record.claims import NOTHING_ELSE, Claims, Place
from runbook_nb.runbook.grounds import ACCOUNTED, Ground
from runbook_nb.runbook.report import SPINE_KEYS, names_refused, refusal_note, reserved_names
from runbook_nb.runbook.verdicts import PROJECTION_KEYS

AUTHOR: Final = f"it is the procedure's own word, and {NOTHING_ELSE}"


def claim_origin(ground: Ground, claims: Claims) -> None:
    """Claim provenance and the procedure's report."""
    _provenance(ground, claims)
    known = ground.account.get("report", {})
    reserved = {*SPINE_KEYS, *(PROJECTION_KEYS if ground.has_rows else ())}
    for name, value in ground.result.items():
        if name in reserved:
            continue
        told, place = clip(show(value), 80), ("result", name)
        if name in known:
            wanted = to_wire(known[name])
            claims.check(f"report[{name}]", told, value, wanted, ACCOUNTED, place)
        else:
            claims.unchecked(f"report[{name}]", told, AUTHOR, place)
    _refused(ground, claims)


def _provenance(ground: Ground, claims: Claims) -> None:
    stamp = ground.result.get("af_provenance", {})
    base: Place = ("result", "af_provenance")
    record = ground.redeem("ref").record
    call = None if record is None else (record.meta.origin or {}).get("toolCallId")
    for name, value in stamp.items():
        told, place = f"{name} {show(value)}", (*base, name)
        if name == "toolCallId" and call is not None:
            claims.check(f"provenance.{name}", told, value, call, "the ticket of the walk", place)
        else:
            claims.unchecked(f"provenance.{name}", told, NOTHING_ELSE, place)


def _refused(ground: Ground, claims: Claims) -> None:
    note, place = ground.result.get("report_note"), ("result", "report_note")
    if note is None:
        return
    names = names_refused(str(note))
    expected = refusal_note(names)
    known = set(names) <= reserved_names(ground.has_rows)
    told = "which fields of the report were refused"
    claims.settle(
        "report.note",
        told,
        known and note == expected,
        "the reserved names",
        place,
        told=(note, expected),
    )
