"""Claims about numbers: rows shown and in all, and the counting law of every fan-out.

Bridge layer.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Final

from runbook_nb._text import counted
from runbook_nb.record.claims import ANY, HIDDEN, NOTHING_ELSE, Claims, Place
from runbook_nb.record.redact import PLACEHOLDER
from runbook_nb.runbook.fans import FanOutGroup
from runbook_nb.runbook.grounds import Ground
from runbook_nb.runbook.verdicts import DECLINED_VERDICT

SUBJECTS: Final = "what became of each subject"
LAW: Final = "the counting law"

_PARTS: Final = ("ok", "failed", "not_reached")


def claim_counts(ground: Ground, claims: Claims) -> None:
    """Claim every counter of an answer."""
    if ground.has_rows:
        _rows(ground, claims)
    if ground.dossier is None:
        return
    for number, group in enumerate(ground.dossier.fan_outs):
        _fan_out(ground, claims, number, group)
    _totals(ground, claims)


def _rows(ground: Ground, claims: Claims) -> None:
    result, shown = ground.result, len(ground.shown)
    found, total = result.get("rows_shown"), ground.total
    place = ("result", "rows_shown")
    claims.check("counts.rows_shown", f"{found} rows shown", found, shown, "the rows shown", place)
    complete = result.get("rows_complete")
    told = "all rows shown" if complete else "not all rows shown"
    place = ("result", "rows_complete")
    claims.check(
        "counts.rows_complete", told, complete, shown == total, "the two counts of rows", place
    )
    if ground.holds_rows:
        _declined(ground, claims)
    told, place = f"{total} rows in all", ("result", "rows_total")
    if ground.dossier is not None:
        known = ground.dossier.rows_total
        basis = "the rows of the record" if ground.live else "the dossier's own count of its rows"
        claims.check("counts.rows_total", told, total, known, basis, place)
        return
    if shown == total:
        claims.check("counts.rows_total", told, total, shown, "the rows shown", place)
        return
    # The sentence and the table state it too, and are held against it.
    stated = f"{total} row(s) assessed" in str(ground.coverage.get("sentence", ""))
    if "sentence" in ground.coverage:
        claims.settle("counts.rows_total", told, stated, "the sentence of the ledger", place)
    else:
        claims.unchecked("counts.rows_total", told, "not all rows are carried", place)


def _fan_out(ground: Ground, claims: Claims, number: int, group: FanOutGroup) -> None:
    """Claim the counts of one fan-out: by their law, and by its subjects where all are held."""
    counts, key = group.counts, group.key
    base: Place = ("dossier", "fan_outs", number, "counts")
    told = f"{counted(counts.items, 'subject')} of {key}: " + ", ".join(
        f"{getattr(counts, part)} {part.replace('_', ' ')}" for part in _PARTS
    )
    found = {name: value for name, value in counts.to_dict().items() if name in _SUMMED}
    expected, basis = dict(found), LAW
    expected.update(_by_law(group))
    if not ground.live and ground.complete:
        basis = f"{SUBJECTS}, and {LAW}"
        expected.update(_recounted(ground, group))
    elif ground.live and group.judges:
        basis = f"the standing of each subject, and {LAW}"
        expected.update(_standing(ground, group))
    covered = [(*base, name) for name in found]
    places = [*covered, ("dossier", "subjects", ANY, "status")] if ground.complete else covered
    claims.settle(
        f"counts[{key}]",
        told,
        _well_formed(group) and found == expected,
        basis,
        *places,
        told=_differing(found, expected),
    )
    if not ground.live:
        _past_cap(ground, claims, group, (*base, "past_cap"))
        _names(ground, claims, number, group)


#: The counts that add up.
_SUMMED: Final = ("items", *_PARTS, "decided", "undecided", "has_decider", "by_branch")


def _differing(found: dict[str, Any], expected: dict[str, Any]) -> tuple[Any, Any]:
    names = [name for name in expected if found.get(name) != expected[name]] or list(found)
    return {name: found.get(name) for name in names}, {name: expected[name] for name in names}


def _well_formed(group: FanOutGroup) -> bool:
    counts = group.counts
    numbers = [getattr(counts, n) for n in ("items", *_PARTS, "past_cap", "decided", "undecided")]
    numbers += counts.by_branch.values()
    return all(type(one) is int and one >= 0 for one in numbers)


def _by_law(group: FanOutGroup) -> dict[str, Any]:
    counts = group.counts
    try:
        return {
            "items": sum(getattr(counts, part) for part in _PARTS),
            "decided": sum(counts.by_branch.values()),
            "undecided": counts.ok - sum(counts.by_branch.values()),
            "has_decider": counts.decided > 0,
        }
    except TypeError:
        return {}


def _recounted(ground: Ground, group: FanOutGroup) -> dict[str, Any]:
    """Count the subjects of a copy anew; what they do not tell is left out."""
    mine = [one for one in ground.subjects if one.stage == group.key]
    statuses = Counter(one.status for one in mine)
    found: dict[str, Any] = {"items": len(mine), **{part: statuses[part] for part in _PARTS}}
    decisions = [one.decision for one in mine if one.status == "ok" and one.decision is not None]
    branches = Counter(one.branch for one in decisions if one.branch is not None)
    if _deciders_in(ground, group) == 1 and sum(branches.values()) == group.counts.decided:
        found["by_branch"] = dict(branches)
    return found


def _standing(ground: Ground, group: FanOutGroup) -> dict[str, Any]:
    """Count the subjects of a live answer by where they stand, if one fan-out has them all."""
    side = ground.side
    if side is None or len(ground.judging) != 1:
        return {}
    times = Counter(side.numbers)
    found: Counter[str] = Counter()
    for number, one in enumerate(side.standings):
        found[one.kind if one.kind in ("failed", "not_reached") else "ok"] += times[number]
    return {"items": len(side), **{part: found[part] for part in _PARTS}}


def _deciders_in(ground: Ground, group: FanOutGroup) -> int:
    assert ground.dossier is not None  # noqa: S101 - asked where there is one
    structure = ground.dossier.structure
    kinds = ("decider", "selector")
    return sum(
        1 for n in structure.nodes if n.kind in kinds and structure.fan_out_of(n.key) == group.key
    )


def _past_cap(ground: Ground, claims: Claims, group: FanOutGroup, place: Place) -> None:
    counts, told = group.counts, f"{group.counts.past_cap} past the cap of {group.key}"
    id_ = f"counts[{group.key}].past_cap"
    cap = _cap_of(ground, group)
    if cap is None:
        reason = "it ran several times, or its cap is not carried"
        claims.unchecked(id_, told, reason, place)
        return
    basis = "the cap of the structure"
    claims.check(id_, told, counts.past_cap, max(counts.items - cap, 0), basis, place)


def _cap_of(ground: Ground, group: FanOutGroup) -> int | None:
    """Give the cap of a fan-out that ran once, so far as that is known."""
    assert ground.dossier is not None  # noqa: S101 - asked where there is one
    structure = ground.dossier.structure
    node = structure.node(group.key)
    loops = any(edge.kind == "loop" for edge in structure.edges)
    again = any(one.execution for one in ground.subjects if one.stage == group.key)
    cap = None if node is None else node.detail.get("cap")
    once = not structure.fan_out_of(group.key) and not again and (not loops or ground.complete)
    return cap if type(cap) is int and once else None


def _names(ground: Ground, claims: Claims, number: int, group: FanOutGroup) -> None:
    """Claim that a fan-out is the one of the structure, and what stands in it."""
    assert ground.dossier is not None  # noqa: S101 - asked where there is one
    base: Place = ("dossier", "fan_outs", number)
    counts, structure = group.counts, ground.dossier.structure
    node = structure.node(group.key)
    told = f"the fan-out {group.key} is called {counts.stage_name}"
    found = [group.key, counts.stage_id, counts.stage_name]
    expected = None if node is None else [node.key, node.id, node.name]
    places = [(*base, "key"), (*base, "counts", "stage_id"), (*base, "counts", "stage_name")]
    id_ = f"structure.fan_out[{group.key}]"
    holds = node is not None and node.kind == "fan_out" and found == expected
    claims.settle(id_, told, holds, "the structure", *places, told=(found, expected))
    deciders = structure.deciding
    told = f"{group.key} {'decides' if group.decides else 'does not decide'}"
    decides = group.key in deciders or counts.has_decider
    places = [(*base, "decides")]
    claims.check(
        f"counts[{group.key}].decides", told, group.decides, decides, "the structure", *places
    )
    _judges(ground, claims, group, (*base, "judges"), decides)


def _judges(
    ground: Ground, claims: Claims, group: FanOutGroup, place: Place, decides: bool
) -> None:
    assert ground.dossier is not None  # noqa: S101 - asked where there is one
    dossier, counts = ground.dossier, group.counts
    word = "are" if group.judges else "are not"
    told = f"the rows {word} about the subjects of {group.key}"
    named = {
        dossier.structure.fan_out_of(node.key)
        for node in dossier.structure.find(dossier.decider or "", "decider")
    }
    others = [one for one in dossier.fan_outs if one is not group]
    if named:
        expected, basis = group.key in named, "the place of the decider"
    elif decides or any(one.decides for one in others):
        expected, basis = decides, "the structure"
    else:
        expected, basis = not counts.ok and counts.items > 0, "the structure"
    claims.check(f"counts[{group.key}].judges", told, group.judges, expected, basis, place)


def _totals(ground: Ground, claims: Claims) -> None:
    """Claim how many subjects and rows the dossier says there are."""
    dossier = ground.dossier
    assert dossier is not None  # noqa: S101 - asked where there is one
    items = sum(group.counts.items for group in dossier.fan_outs)
    found, place = dossier.subjects_total, ("dossier", "subjects_total")
    told = f"{counted(found, 'subject')} in all"
    own = any(group.judges for group in dossier.fan_outs)
    if ground.live:
        return
    id_ = "counts.subjects_total"
    if own:
        claims.check(id_, told, found, items, "the counts of the fan-outs", place)
    else:
        least = max(items, len(ground.subjects))
        if type(found) is int and found >= least:
            claims.unchecked(id_, told, NOTHING_ELSE, place)
        else:
            claims.settle(id_, told, False, SUBJECTS, place, told=(found, f"{least} or more"))
    found, place = dossier.rows_total, ("dossier", "rows_total")
    told = f"{found} rows in the dossier"
    expected, basis = ground.result.get("rows_total", 0), "the answer's count of rows"
    claims.check(
        "counts.dossier_rows", told, found, expected if ground.has_rows else 0, basis, place
    )


def _declined(ground: Ground, claims: Claims) -> None:
    """Claim how many rows were declined, as the ledger's sentence has it."""
    sentence = ground.coverage.get("sentence")
    if not isinstance(sentence, str):
        return
    said = re.search(r"; \d+ row\(s\) assessed(?:, (\d+) declined )?", sentence)
    found = None if said is None else int(said[1] or 0)
    declined = ground.word_counts.get(DECLINED_VERDICT, 0)
    told = f"{counted(declined, 'row')} declined"
    place = ("af_coverage", "sentence")
    if said is None and PLACEHOLDER in sentence:
        claims.unchecked("counts.declined", told, HIDDEN, place)
        return
    claims.check("counts.declined", told, found, declined, "the rows", place)
