"""The machine-readable form that travels inside what a notebook shows of an envelope.

Bridge layer. The wire form comes first, then as much of the dossier as fits, its rows and
subjects in the order they are shown. References, call ids and what depends on a clock are left
out, so that running again gives the same bytes; the digest of a filed walk stands for its ticket.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._frozen import FrozenDict, thaw
from runbook_nb._ids import digest
from runbook_nb._json import byte_size, canonical
from runbook_nb.artifacts import chart_walk_put_input
from runbook_nb.runbook.carried import write_dossier
from runbook_nb.runbook.explain import facts_of_rows

if TYPE_CHECKING:
    from runbook_nb.runbook.dossier import SubjectFacts
    from runbook_nb.runbook.envelope import Envelope

#: Names the form, so that a reader of another version knows better than to guess.
PAYLOAD_FORMAT: Final = "runbook_nb/envelope/1"

#: Rows and subjects a file carries at most: a reader of it takes 64 MB, and a million take more.
EXPORTED_SUBJECTS: Final = 100_000

#: Parts of a walk's descriptor that differ from run to run.
_VOLATILE: Final = ("ref", "recording_ref", "recording_bytes", "columns_ref", "columns_bytes")
_REF: Final = re.compile(r"\bart_[A-Za-z0-9]{22}\b")
#: No subject or row takes fewer bytes than this, so no more of them are written than could fit.
_SMALLEST: Final = 40


def envelope_payload(envelope: Envelope, most: int | None = None) -> dict[str, Any] | None:
    """Give the form of an envelope that is carried by what shows it.

    Parameters
    ----------
    envelope : Envelope
    most : int, optional
        Bytes of canonical JSON it may take; None for all of it.

    Returns
    -------
    dict or None
        ``{"format", "envelope", "carried"}``; ``envelope`` is what `Envelope.from_dict` reads and
        ``carried`` says how many rows and subjects of how many are in it. None when even the wire
        form does not fit.

    Examples
    --------
    >>> from runbook_nb.runbook.triage import triage
    >>> from runbook_nb.rules import Rule, RuleSet
    >>> rules = RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], "fresh")
    >>> envelope = triage([{"host": "a", "days": 9}], rules, subject="host", source="one row")
    >>> envelope_payload(envelope)["carried"]
    {'rows': [1, 1], 'subjects': [1, 1]}
    """
    wire = stable_wire(envelope)
    bare: dict[str, Any] = {"format": PAYLOAD_FORMAT, "envelope": wire, "carried": {}}
    if most is not None and byte_size(canonical(bare)) > most:
        return None
    if not envelope.carries_dossier:
        return bare
    dossier = envelope.dossier
    cap = None if most is None else most // _SMALLEST
    written = write_dossier(dossier, cap, _in_shown_order(envelope, cap))
    rows, subjects = written["rows"], written["subjects"]
    items = written.get("rows_of", {}).get("items")
    full = {**bare, "envelope": {**wire, "dossier": written}, "carried": _carried(written)}
    if most is not None:
        written["rows"], written["subjects"] = [], []
        if items is not None:
            written["rows_of"] = {**written["rows_of"], "items": []}
        room = most - byte_size(canonical(full))
        if room < 0:
            return bare
        kept = _fitting([rows, subjects, items or []], room)
        written["rows"], written["subjects"] = rows[:kept], subjects[:kept]
        if items is not None:
            written["rows_of"]["items"] = items[:kept]
        full["carried"] = _carried(written)
    return full


def exported_payload(envelope: Envelope) -> dict[str, Any]:
    """Give the form of an envelope that files carry: all of it, references and call id too.

    Of more rows than `EXPORTED_SUBJECTS` the first are carried, as they are shown, each with its
    subject; ``carried`` says of how many.

    Examples
    --------
    >>> from runbook_nb.runbook.triage import triage
    >>> from runbook_nb.rules import Rule, RuleSet
    >>> rules = RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], "fresh")
    >>> envelope = triage([{"host": "a", "days": 9}], rules, subject="host", source="one row")
    >>> exported_payload(envelope)["envelope"] == envelope.to_dict(dossier=True)
    True
    """
    many = envelope.carries_dossier and envelope.dossier.subjects_total > EXPORTED_SUBJECTS
    whole = envelope.to_dict(dossier=envelope.carries_dossier and not many)
    if many:
        shown = _in_shown_order(envelope, EXPORTED_SUBJECTS)
        whole["dossier"] = write_dossier(envelope.dossier, EXPORTED_SUBJECTS, shown)
    carried = _carried(whole["dossier"]) if envelope.carries_dossier else {}
    return {"format": PAYLOAD_FORMAT, "envelope": whole, "carried": carried}


def _carried(written: Mapping[str, Any]) -> dict[str, list[int]]:
    return {name: [len(written[name]), written[f"{name}_total"]] for name in ("rows", "subjects")}


def _fitting(lists: Sequence[list[Any]], room: int) -> int:
    """Count the leading entries, each with those beside it, that fit into so many bytes."""
    most = max(map(len, lists))
    for kept in range(most):
        for entries in lists:
            if kept < len(entries):
                room -= byte_size(canonical(entries[kept])) + 1
        if room < 0:
            return kept
    return most


def _in_shown_order(envelope: Envelope, cap: int | None) -> Iterator[SubjectFacts]:
    """Yield what became of each subject, those of the rows that are shown first."""
    rows = range(len(envelope.verdicts) if cap is None else min(cap, len(envelope.verdicts)))
    shown = (facts for facts, _ in facts_of_rows(envelope, rows) if facts is not None)
    met: set[tuple[str, int, int]] = set()
    for facts in chain(shown, envelope.dossier.subjects()):
        key = (facts.stage, facts.execution, facts.index)
        if key not in met:
            met.add(key)
            yield facts


def stable_wire(envelope: Envelope) -> dict[str, Any]:
    """Give the wire form without what differs from run to run."""
    wire: dict[str, Any] = thaw(FrozenDict(envelope))
    result = wire["result"]
    stamp = result.get("af_provenance")
    call = stamp.pop("toolCallId", None) if isinstance(stamp, dict) else None
    walk = result.get("walk")
    if isinstance(walk, dict):
        if "ref" in walk and envelope.run is not None:
            walk["digest"] = _walk_digest(envelope, int(walk.get("shown", 0)))
        for name in _VOLATILE:
            walk.pop(name, None)
    stable: dict[str, Any] = _without_names(wire, str(call) if call else None)
    return stable


def _walk_digest(envelope: Envelope, shown: int) -> str:
    """Give the digest of the payload the walk was filed as."""
    assert envelope.run is not None  # noqa: S101 - only live envelopes file again
    projected = envelope.run.walk.project(max(shown, 1))
    put = chart_walk_put_input([row.to_dict() for row in projected.rows], tool_name="")
    return digest(put["data"])


def _without_names(value: Any, call: str | None) -> Any:
    """Take references and the call's id out of every text."""
    if isinstance(value, str):
        text = _REF.sub("[reference]", value)
        return text.replace(call, "[call]") if call else text
    if isinstance(value, dict):
        return {key: _without_names(item, call) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_names(item, call) for item in value]
    return value
