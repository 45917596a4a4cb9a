"""Claims about the subjects of a copy: who they are, where they stood, why they have no verdict.

Bridge layer. A live answer needs none of these: its subjects are read off the record itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from runbook_nb._text import clip, show
from runbook_nb.record.claims import (
    CONFIRMED,
    CONTRADICTED,
    HIDDEN,
    NOTHING_ELSE,
    UNCHECKED,
    Claims,
    Outcome,
    Place,
)
from runbook_nb.record.redact import PLACEHOLDER
from runbook_nb.runbook.dossier import SubjectFacts
from runbook_nb.runbook.gaps import NAMED_SUBJECTS, REASON_LENGTH
from runbook_nb.runbook.grounds import Ground
from runbook_nb.runbook.names import name_key

STATUSES: Final = ("ok", "failed", "not_reached")


def claim_subjects(ground: Ground, claims: Claims) -> None:
    """Claim the names, places and reasons of the subjects of a copy."""
    if ground.dossier is None or ground.live or not ground.subjects:
        return
    _places(ground, claims)
    _names(ground, claims)
    _reasons(ground, claims)


def _cover(*inner: Any) -> Any:
    return lambda places: (("dossier", "subjects", places, *inner),)


# --- places -------------------------------------------------------------------------------------


def _places(ground: Ground, claims: Claims) -> None:
    """Claim that each subject is one item of its fan-out, and that no item is told twice."""
    assert ground.dossier is not None  # noqa: S101 - see `claim_subjects`
    groups = {group.key: group for group in ground.dossier.fan_outs}
    subjects = ground.subjects
    times = Counter((one.stage, one.execution, one.index) for one in subjects)
    ends = _ends(subjects)
    own = Counter(one.index for one in subjects if one.stage not in groups)
    good: list[int] = []
    bad: list[int] = []
    open_: list[int] = []
    for place, one in enumerate(subjects):
        group = groups.get(one.stage)
        if group is None:
            known = any(one.stage in (n.id, n.key) for n in ground.dossier.structure.nodes)
            fits = type(one.index) is int and own[one.index] == 1 and one.execution == 0
            if not fits or not known or one.status != "ok" or one.index not in range(len(own)):
                bad.append(place)
            else:
                (good if ground.complete else open_).append(place)
            continue
        fits = (
            type(one.index) is int
            and type(one.execution) is int
            and one.status in STATUSES
            and 0 <= one.index < group.counts.items
            and one.execution >= 0
            and times[one.stage, one.execution, one.index] == 1
        )
        if fits and ground.complete:
            fits = one.index < ends[one.stage, one.execution]
        if not fits:
            bad.append(place)
        else:
            (good if ground.complete else open_).append(place)

    def tell(place: int) -> tuple[Any, Any]:
        one = subjects[place]
        of = groups.get(one.stage)
        expected = f"an item of {one.stage} told once"
        if of is not None:
            expected += f", of {of.counts.items}"
        return expected, f"item {one.index} of {one.stage}, execution {one.execution}, {one.status}"

    claims.many(
        "subject.place",
        "it is one item of its fan-out, told once",
        [
            Outcome(CONTRADICTED, bad, "the counts of the fan-outs", tell),
            Outcome(CONFIRMED, good, "the counts of the fan-outs"),
            Outcome(UNCHECKED, open_, ground.carried_words),
        ],
        ground.subject_name,
        lambda places: tuple(
            ("dossier", "subjects", places, part) for part in ("stage", "index", "status")
        ),
        singly=False,
    )
    again = [place for place, one in enumerate(subjects) if one.execution]
    if again:
        told, cover = "it was met in that execution", ("dossier", "subjects", frozenset(again))
        reason = "how often a fan-out ran is not carried"
        claims.unchecked("subject.execution", told, reason, (*cover, "execution"), count=len(again))


def _ends(subjects: Sequence[SubjectFacts]) -> dict[tuple[str, int], int]:
    """Count the subjects of each execution: items are numbered up to there."""
    return dict(Counter((one.stage, one.execution) for one in subjects))


# --- names --------------------------------------------------------------------------------------


def _names(ground: Ground, claims: Claims) -> None:
    """Claim the names, by the rows that are about them and by the gaps that name them."""
    subjects, side = ground.subjects, ground.side
    assert side is not None  # noqa: S101 - there is one where there is a dossier
    by_row = {place: row for row, place in enumerate(ground.behind) if place is not None}
    named_in_gaps = set(_named_in_gaps(ground))
    strict = ground.rows_name_subjects
    # Each row that is carried has its subject carried, too.
    lone = ground.holds_rows or None in ground.behind
    told_gaps = _quotes(ground)
    unnamed: list[int] = []
    by_rows: list[int] = []
    by_gaps: list[int] = []
    wrong: list[int] = []
    open_: list[int] = []
    hidden: list[int] = []
    for place, one in enumerate(subjects):
        row = by_row.get(place)
        if isinstance(one.subject, str) and PLACEHOLDER in one.subject:
            hidden.append(place)
        elif row is not None and strict:
            column = ground.column
            said = ground.rows[row].get(column) if column is not None else None
            same = said == one.subject and said.__class__ is one.subject.__class__
            same = same or name_key(said) == name_key(one.subject)
            (by_rows if same else wrong).append(place)
        elif place in named_in_gaps:
            called = f"item {one.index}" if one.subject is None else show(one.subject)
            named = called in told_gaps
            unsure = not named and PLACEHOLDER in told_gaps
            (by_gaps if named else hidden if unsure else unnamed).append(place)
        elif strict and one.status == "ok" and one.decision is not None and lone:
            (wrong if _is_judged(ground, one) else open_).append(place)
        else:
            open_.append(place)

    def tell(place: int) -> tuple[Any, Any]:
        where = "an entry of the ledger" if place in named_in_gaps else "a row"
        return f"a name that {where} has", show(subjects[place].subject)

    rows, gaps = "the rows, which name them", "the entries of the ledger, which name them"
    claims.many(
        "subject.name",
        "it is called so",
        [
            Outcome(CONTRADICTED, wrong, rows, tell),
            Outcome(CONTRADICTED, unnamed, gaps, tell),
            Outcome(CONFIRMED, by_rows, rows),
            Outcome(CONFIRMED, by_gaps, gaps),
            Outcome(UNCHECKED, hidden, HIDDEN),
            Outcome(UNCHECKED, open_, f"no row names it, and {NOTHING_ELSE}"),
        ],
        lambda place: f"item {subjects[place].index}",
        _cover("subject"),
        singly=False,
    )


def _is_judged(ground: Ground, one: SubjectFacts) -> bool:
    return any(group.key == one.stage for group in ground.judging)


def _named_in_gaps(ground: Ground) -> list[int]:
    """Give the places of the subjects that entries of the ledger name."""
    assert ground.dossier is not None  # noqa: S101 - see `claim_subjects`
    if not ground.complete:
        return []
    found: list[int] = []
    for group in ground.dossier.fan_outs:
        node = ground.dossier.structure.node(group.key)
        if node is None or not isinstance(node.detail.get("subject"), str):
            continue
        kinds: dict[str, list[tuple[int, int, int]]] = {}
        for place, one in enumerate(ground.subjects):
            if one.stage == group.key and (kind := _gap_kind(group, one)):
                kinds.setdefault(kind, []).append((one.execution, one.index, place))
        for places in kinds.values():
            found += [place for _, _, place in sorted(places)[:NAMED_SUBJECTS]]
    return found


def _gap_kind(group: Any, one: SubjectFacts) -> str:
    if one.status == "failed":
        return "failed"
    if one.status == "not_reached":
        return "past" if is_past_cap(one) else "ended"
    return "undecided" if group.decides and group.counts.undecided and one.decision is None else ""


def is_past_cap(one: SubjectFacts) -> bool:
    """Say whether a subject was not reached as there were more than the cap."""
    return one.status == "not_reached" and str(one.reason or "").startswith("past the cap of ")


# --- reasons ------------------------------------------------------------------------------------


def _reasons(ground: Ground, claims: Claims) -> None:
    """Claim why subjects have no verdict: the cap, or what the ledger quotes."""
    assert ground.dossier is not None  # noqa: S101 - see `claim_subjects`
    structure = ground.dossier.structure
    quotes = _quotes(ground)
    by_cap: list[int] = []
    by_quote: list[int] = []
    wrong: list[int] = []
    open_: list[int] = []
    firsts = _firsts(ground)
    for place, one in enumerate(ground.subjects):
        if one.reason is None:
            if one.status != "ok":
                wrong.append(place)
            continue
        node = structure.node(one.stage)
        cap = None if node is None else node.detail.get("cap")
        if type(cap) is int and one.status == "not_reached" and one.index >= cap:
            (by_cap if one.reason == f"past the cap of {cap}" else wrong).append(place)
        elif one.status == "ok":
            wrong.append(place)
        elif place in firsts:
            quoted = clip(one.reason, REASON_LENGTH) in quotes
            (by_quote if quoted else wrong).append(place)
        else:
            open_.append(place)

    def tell(place: int) -> tuple[Any, Any]:
        one = ground.subjects[place]
        node = structure.node(one.stage)
        cap = None if node is None else node.detail.get("cap")
        if one.status == "ok":
            return "no reason, as it was done", one.reason
        told = f"past the cap of {cap}" if is_past_cap(one) else "what the ledger quotes"
        return told, one.reason

    claims.many(
        "subject.reason",
        "that is why it has no verdict",
        [
            Outcome(CONTRADICTED, wrong, "the cap, or the entry of the ledger", tell),
            Outcome(CONFIRMED, by_cap, "the cap of the structure"),
            Outcome(CONFIRMED, by_quote, "the entry of the ledger, which quotes it"),
            Outcome(UNCHECKED, open_, NOTHING_ELSE),
        ],
        ground.subject_name,
        _cover("reason"),
        singly=False,
    )


def _quotes(ground: Ground) -> str:
    """Give what the ledger says of its gaps, in one text."""
    gaps = ground.coverage.get("not_checked", ())
    return " ".join(str(item.get("why", "")) for item in gaps if isinstance(item, Mapping))


def _firsts(ground: Ground) -> set[int]:
    """Give the subjects whose reason the ledger quotes: the first of each kind."""
    assert ground.dossier is not None  # noqa: S101 - see `claim_subjects`
    if not ground.complete:
        return set()
    found: set[int] = set()
    for group in ground.dossier.fan_outs:
        kinds: dict[str, list[tuple[int, int, int]]] = {}
        for place, one in enumerate(ground.subjects):
            if one.status != "ok" and one.stage == group.key:
                spot = (one.execution, one.index, place)
                kinds.setdefault(_gap_kind(group, one), []).append(spot)
        found |= {min(kinds[kind])[2] for kind in ("failed", "ended") if kind in kinds}
    return found


def gap_kinds(ground: Ground, group: Any) -> dict[str, list[SubjectFacts]]:
    """Give the subjects of a fan-out that have no verdict, by kind of gap and in order."""
    kinds: dict[str, list[SubjectFacts]] = {}
    for one in ground.subjects:
        if one.stage == group.key and (kind := _gap_kind(group, one)):
            kinds.setdefault(kind, []).append(one)
    for found in kinds.values():
        found.sort(key=lambda one: (one.execution, one.index))
    return kinds


__all__ = ["Place", "claim_subjects", "gap_kinds", "is_past_cap"]
