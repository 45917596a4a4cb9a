"""Claims about the walk and what was filed of it: counters, notes, tickets, the record behind it.

Bridge layer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from runbook_nb._ids import digest
from runbook_nb._json import byte_size
from runbook_nb._text import counted
from runbook_nb.artifacts import (
    CHART_WALK_ARTIFACT_KIND,
    CHART_WALK_COLUMNS_ARTIFACT_KIND,
    RECORDING_ARTIFACT_KIND,
)
from runbook_nb.errors import RunbookError
from runbook_nb.record.claims import NOTHING_ELSE, Claims, Place
from runbook_nb.record.projection import COLUMNS, ProjectedWalk
from runbook_nb.runbook.claims_filed import claim_filed, claim_whole
from runbook_nb.runbook.claims_ledger import steps_told
from runbook_nb.runbook.grounds import Ground, Redeemed, is_partial
from runbook_nb.runbook.tickets import NO_STORE, RECORDING_NOTE, WALK_NOTE, WHOLE_NOTE, walk_note

BASE: Final[Place] = ("result", "walk")
STORED: Final = "the digest it was filed under"
ITSELF: Final = "the other counters of the walk"


def claim_walk(ground: Ground, claims: Claims) -> None:
    """Claim the walk's counters, its notes and its tickets."""
    if not ground.walk:
        claims.unchecked("walk", "the walk", "it is not carried", BASE)
        return
    _counters(ground, claims)
    _note(ground, claims)
    _ticket(ground, claims)
    _columns(ground, claims)
    _recording(ground, claims)


def _counters(ground: Ground, claims: Claims) -> None:
    walk = ground.walk
    rows, shown, total = (walk.get(name) for name in ("rows", "shown", "total"))
    told = f"{shown} of {total} rows of the walk"
    run, words = _record(ground)
    complete = walk.get("complete") is (shown == total)
    whole = walk.get("projection") == ("full" if walk.get("complete") else "control-flow")
    claims.settle(
        "walk.counters",
        told,
        _are_counts(rows, shown, total) and rows == shown <= total and complete and whole,  # type: ignore[operator]
        ITSELF,
        *((*BASE, name) for name in ("rows", "shown", "complete", "projection")),
        told=(dict(_counts(walk)), "counters that agree"),
    )
    told, place = f"{total} rows in all", (*BASE, "total")
    filed = ground.filed
    if run is not None:
        claims.check("walk.total", told, total, len(run.walk), words, place)
    elif filed is not None and walk.get("complete"):
        claims.check("walk.total", told, total, len(filed), "the walk that was filed", place)
    elif walk.get("complete"):
        claims.check("walk.total", told, total, rows, ITSELF, place)
    else:
        claims.unchecked("walk.total", told, "the rest of the walk is not carried", place)
    _steps(ground, claims)
    told, place = "the walk begins where the run did", (*BASE, "walk_segment")
    segment = walk.get("walk_segment")
    claims.check("walk.segment", told, segment, "full", "the words of this version", place)


def _counts(walk: Mapping[str, Any]) -> list[tuple[str, Any]]:
    names = ("rows", "shown", "total", "complete", "projection")
    return [(name, walk.get(name)) for name in names]


def _are_counts(*numbers: Any) -> bool:
    return all(type(one) is int and one >= 0 for one in numbers)


def _record(ground: Ground) -> tuple[Any, str]:
    """Give the run behind the answer, the live one or a recording of it, and where it is from."""
    if ground.envelope.run is not None:
        return ground.envelope.run, "the record"
    run, words = ground.recorded
    if run is None or is_partial(run):
        return None, words
    return run, words


def _steps(ground: Ground, claims: Claims) -> None:
    steps, place = ground.walk.get("steps_executed"), (*BASE, "steps_executed")
    told = f"{steps} steps executed"
    run, words = _record(ground)
    said = steps_told(ground)
    if run is not None:
        claims.check("walk.steps_executed", told, steps, run.steps_executed, words, place)
    elif said:
        basis = "the ledger, which says it too"
        expected = said[0] if len(set(said)) == 1 else said
        claims.check("walk.steps_executed", told, steps, expected, basis, place)
    else:
        claims.unchecked("walk.steps_executed", told, NOTHING_ELSE, place)


def _note(ground: Ground, claims: Claims) -> None:
    walk, note, place = ground.walk, str(ground.walk.get("note", "")), (*BASE, "note")
    told = "what the walk is, and what was left out of it"
    if not _are_counts(walk.get("shown"), walk.get("total")):
        return
    reasons = [None] if "kind" in walk else [f"The rows were recorded but not filed: {NO_STORE}."]
    if not walk.get("shown"):
        reasons = ["There was no narrative to file: the run recorded no row."]
    wanted = [
        walk_note(_projected(walk, first), reason) for first in (False, True) for reason in reasons
    ]
    if note in wanted:
        claims.settle("walk.note", told, True, "the words of this version, and the counters", place)
        return
    starts = (walk_note(_projected(walk, first), None) for first in (False, True))
    failed = ("Filing the rows failed: ", "The rows were filed, and given up again by the store")
    if "kind" not in walk and any(
        note.startswith(f"{start} {words}") for start in starts for words in failed
    ):
        claims.unchecked("walk.note", note, "why a store failed is not carried", place)
        return
    basis = "the words of this version, and the counters"
    claims.settle("walk.note", told, False, basis, place, told=(note, wanted[0]))


def _projected(walk: Mapping[str, Any], first: bool) -> ProjectedWalk:
    projection = str(walk.get("projection"))
    shown, total = walk["shown"], walk["total"]
    return ProjectedWalk((), projection, shown, total, shown == total, first)


# --- tickets ------------------------------------------------------------------------------------


def _kind(claims: Claims, ground: Ground, key: str, expected: str) -> None:
    found = ground.walk.get(key)
    if found is not None:
        told, basis = f"{key} is {found}", "the kinds there are"
        claims.check(f"ticket.{key}", told, found, expected, basis, (*BASE, key))


def _ticket(ground: Ground, claims: Claims) -> None:
    walk = ground.walk
    _kind(claims, ground, "kind", CHART_WALK_ARTIFACT_KIND)
    carried = walk.get("digest")
    ref = walk.get("ref")
    if ref is None and carried is None:
        return
    found = ground.redeem("ref")
    filed, record = ground.filed, found.record
    places: list[Place] = [(*BASE, name) for name in ("ref", "digest") if name in walk]
    told = "the walk that was filed is that of this run"
    run, words = _record(ground)
    if _is_damaged(found, "ticket.walk", told, claims, *places):
        return
    if record is None and run is None:
        gap = found.gap if ref is not None else "its ticket is not carried"
        claims.unchecked("ticket.walk", told, gap, *places)
        return
    if record is not None:
        count = None if filed is None else len(filed)
        told = f"{counted(walk.get('rows', 0), 'row')} were filed"
        basis = "what the store holds"
        claims.check("ticket.walk.rows", told, walk.get("rows"), count, basis, (*BASE, "rows"))
        told, kind = f"it is {record.meta.kind}", CHART_WALK_ARTIFACT_KIND
        claims.check("ticket.walk", told, record.meta.kind, kind, basis, *places)
        size = byte_size(record.data) if isinstance(record.data, str) else len(record.data)
        told = f"{record.meta.bytes} bytes were filed"
        claims.check("ticket.walk.bytes", told, record.meta.bytes, size, "the bytes that are there")
        if carried is not None:
            told, place = f"the walk has the digest {carried}", (*BASE, "digest")
            data = record.data if isinstance(record.data, str) else record.data.decode()
            claims.check("ticket.walk.digest", told, carried, digest(data), basis, place)
    if run is not None:
        _walk_of(ground, claims, run, words, record)
    elif filed is not None:
        claim_filed(ground, claims, "walk", filed, whole=walk.get("complete") is True)


def _walk_of(ground: Ground, claims: Claims, run: Any, words: str, record: Any) -> None:
    """Claim that what was filed of the walk is what the record gives."""
    shown = ground.walk.get("shown")
    if type(shown) is not int or shown < 1:
        return
    rows = [row.to_dict() for row in run.walk.project(shown).rows]
    from runbook_nb.artifacts import chart_walk_put_input

    told = chart_walk_put_input(rows, tool_name="")["data"]
    carried = ground.walk.get("digest")
    if carried is not None and record is None:
        place = (*BASE, "digest")
        what = f"the walk has the digest {carried}"
        claims.check("ticket.walk.digest", what, carried, digest(told), words, place)
    if record is None:
        claims.unchecked("ticket.walk", "what was filed", ground.redeem("ref").gap, (*BASE, "ref"))
    else:
        what = "the rows that were filed are those of the record"
        found, expected = digest(record.data), digest(told)
        claims.check("ticket.walk.digest", what, found, expected, words, (*BASE, "ref"))


def _columns(ground: Ground, claims: Claims) -> None:
    walk = ground.walk
    names = [name for name in walk if name.startswith("columns_")]
    if not names:
        return
    _kind(claims, ground, "columns_kind", CHART_WALK_COLUMNS_ARTIFACT_KIND)
    total, rows = walk.get("columns_total"), walk.get("columns_rows")
    told = f"{rows} of {total} rows of the whole walk were filed"
    whole = rows == total
    agree = walk.get("columns_complete") is whole and total == walk.get("total")
    held = agree and _are_counts(rows, total) and (whole or not rows)
    places: list[Place] = [(*BASE, f"columns_{n}") for n in ("total", "rows", "complete")]
    found = {name: walk.get(name) for name in names[:5]}
    basis, pair = "the walk's own counters", (found, walk.get("total"))
    claims.settle("walk.columns", told, held, basis, *places, told=pair)
    note, form = str(walk.get("columns_note", "")), walk.get("columns_form")
    told, place = "what the whole walk is", (*BASE, "columns_note")
    if note == WHOLE_NOTE or not note.startswith(WHOLE_NOTE):
        holds = note == WHOLE_NOTE if total else note == "There was no row to file."
        basis = "the words of this version"
        claims.settle("walk.columns.note", told, holds, basis, place, told=(note, WHOLE_NOTE))
    else:
        reason = "why it was not filed, or what JSON could not carry, is not carried"
        claims.unchecked("walk.columns.note", note, reason, place)
    place = (*BASE, "columns_form")
    claims.unchecked("walk.columns.form", f"written as {form}", NOTHING_ELSE, place)
    if "columns_ref" not in walk and "columns_bytes" not in walk:
        return
    places = [(*BASE, n) for n in ("columns_ref", "columns_bytes") if n in walk]
    found_there = ground.redeem("columns_ref")
    told = "the whole walk that was filed is that of this run"
    if _is_damaged(found_there, "ticket.columns", told, claims, *places):
        return
    if found_there.record is None:
        claims.unchecked("ticket.columns", told, found_there.gap, *places)
        return
    from runbook_nb.record.walk_file import read_walk

    said = [walk.get("columns_rows"), walk.get("columns_bytes")]
    basis = "what the store holds"
    try:
        filed = read_walk(found_there.record)
    except RunbookError as error:
        claims.check("ticket.columns", told, said, error.message, basis, *places)
        return
    expected = [len(filed), len(found_there.record.data)]
    claims.check("ticket.columns", told, said, expected, basis, *places)
    claim_whole(ground, claims, filed, *_record(ground))


def _recording(ground: Ground, claims: Claims) -> None:
    walk = ground.walk
    _kind(claims, ground, "recording_kind", RECORDING_ARTIFACT_KIND)
    note = walk.get("recording_note")
    if note is not None:
        told, place = "what the recording is", (*BASE, "recording_note")
        if note == RECORDING_NOTE and "recording_kind" in walk:
            claims.settle("walk.recording", told, True, "the words of this version", place)
        elif str(note).startswith(RECORDING_NOTE) and "recording_kind" not in walk:
            claims.unchecked("walk.recording", str(note), "why is not carried", place)
        elif str(note).startswith(f"{RECORDING_NOTE} "):
            reason = "the values that JSON could not carry are gone"
            claims.unchecked("walk.recording", str(note), reason, place)
        else:
            basis = "the words of this version"
            claims.settle("walk.recording", told, False, basis, place, told=(note, RECORDING_NOTE))
    places = [(*BASE, n) for n in ("recording_ref", "recording_bytes") if n in walk]
    if not places:
        return
    told = "the recording that was filed is that of this run"
    found = ground.redeem("recording_ref")
    if _is_damaged(found, "ticket.recording", told, claims, *places):
        return
    if found.record is None:
        claims.unchecked("ticket.recording", told, found.gap, *places)
        return
    data = found.record.data
    size = byte_size(data) if isinstance(data, str) else len(data)
    bytes_, basis = walk.get("recording_bytes"), "what the store holds"
    claims.check("ticket.recording.bytes", f"{bytes_} bytes", bytes_, size, basis, *places[1:])
    kind = found.record.meta.kind
    claims.check("ticket.recording", told, kind, RECORDING_ARTIFACT_KIND, basis, places[0])


def _is_damaged(found: Redeemed, id_: str, told: str, claims: Claims, *places: Place) -> bool:
    """Say whether what was filed was changed where it is carried, and claim it then."""
    if found.damage:
        beside = "the digest beside it" if not found.gap.startswith("the store") else STORED
        claims.settle(id_, told, False, beside, *places, said=found.damage)
    return bool(found.damage)


def stages_of(rows: list[Mapping[str, Any]]) -> Counter[str]:
    """Count the rows of a walk by their kind."""
    return Counter(str(row.get("type")) for row in rows)


__all__ = ["COLUMNS", "WALK_NOTE", "claim_walk", "stages_of"]
