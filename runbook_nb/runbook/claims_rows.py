"""Claims about the rows an answer shows: that they are the record's, and that the table is theirs.

Bridge layer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from runbook_nb._frozen import thaw
from runbook_nb._text import counted, listed
from runbook_nb.record.claims import (
    CONFIRMED,
    CONTRADICTED,
    HIDDEN,
    NOTHING_ELSE,
    UNCHECKED,
    Claims,
    Outcome,
    Place,
    same,
)
from runbook_nb.record.redact import PLACEHOLDER
from runbook_nb.runbook.grounds import Ground
from runbook_nb.runbook.names import name_key
from runbook_nb.runbook.verdicts import (
    PANEL_RENDER_NOTE,
    VERDICT_RENDER_NOTE,
    render_verdict_table,
)
from runbook_nb.runbook.wire_rows import rank_of


def claim_rows(ground: Ground, claims: Claims) -> None:
    """Claim the rows shown, the table for models, and the rows of the dossier."""
    if not ground.has_rows:
        if ground.dossier is not None:
            told = "no verdict row was written"
            places: list[Place] = [("dossier", "ranked"), ("dossier", "rank")]
            claims.unchecked("rows.ranked", told, "there are no rows", *places)
        return
    _table(ground, claims)
    if ground.dossier is None:
        if ground.shown and "table" not in ground.result:
            told = f"{counted(len(ground.shown), 'row')} shown"
            claims.unchecked("rows", told, NOTHING_ELSE, ("result", "verdicts"))
        return
    _shown(ground, claims)
    _ranked(ground, claims)
    _items(ground, claims)
    if ground.dossier.units:
        told = f"units: {thaw(ground.dossier.units)}"
        claims.unchecked("units", told, "they are the author's words", ("dossier", "units"))


def _table(ground: Ground, claims: Claims) -> None:
    result, place = ground.result, ("result", "render_note")
    note, prose = result.get("render_note"), "table" in result
    expected = VERDICT_RENDER_NOTE if prose else PANEL_RENDER_NOTE
    told = "how the rows are to be given back"
    claims.check("table.note", told, note, expected, "the words of this version", place)
    if not prose:
        return
    found, expected = result["table"], render_verdict_table(ground.shown, ground.total)
    told = f"the table says what the {counted(len(ground.shown), 'row')} shown say"
    different = _first_difference(found, expected)
    claims.settle(
        "table.text",
        told,
        found == expected,
        "the rows shown, written again",
        ("result", "table"),
        ("result", "verdicts"),
        told=different,
    )


def _first_difference(found: Any, expected: str) -> tuple[Any, Any]:
    """Give the first line that differs."""
    lines, wanted = str(found).split("\n"), expected.split("\n")
    for line, want in zip(lines, wanted, strict=False):
        if line != want:
            return line, want
    return counted(len(lines), "line"), counted(len(wanted), "line")


def _shown(ground: Ground, claims: Claims) -> None:
    """Claim that the rows shown are the first of all rows."""
    shown, rows = ground.shown, ground.rows
    known = rows[: len(shown)]
    alike: list[int] = []
    other: list[int] = []
    for place, row in enumerate(shown):
        held = place < len(known) and _same_row(row, known[place])
        (alike if held else other).append(place)
    basis = "the rows of the record" if ground.live else "the rows of the dossier"
    beyond = [place for place in other if place >= len(known)]
    other = [place for place in other if place < len(known)]

    def tell(place: int) -> tuple[Any, Any]:
        expected, found = thaw(known[place]), thaw(shown[place])
        names = [n for n in expected if not same(found.get(n), expected[n])] or list(expected)
        return {n: expected[n] for n in names}, {n: found.get(n) for n in names}

    def name(place: int) -> str:
        return ground.row_name(place) if place < len(known) else f"row {place + 1}"

    def covered(places: Any) -> tuple[Place, ...]:
        return (("result", "verdicts", places), ("dossier", "rows", places))

    claims.many(
        "row",
        "the row shown is the row of the record",
        [
            Outcome(CONTRADICTED, other, basis, tell),
            Outcome(CONFIRMED, alike, basis),
            Outcome(UNCHECKED, beyond, f"{len(known)} of {len(shown)} rows shown are carried"),
        ],
        name,
        covered,
    )
    rest = range(len(shown), len(rows))
    if rest:
        told = f"{counted(len(rest), 'row')} beyond those shown"
        reason = f"{NOTHING_ELSE}; their verdicts are claims of their own"
        beyond_place: Place = ("dossier", "rows", rest)
        claims.unchecked("rows.beyond", told, reason, beyond_place, count=len(rest))


def _same_row(found: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    return list(found) == list(expected) and same(found, expected)


def _ranked(ground: Ground, claims: Claims) -> None:
    """Claim the order of the rows, by the rank they stand in where that is carried."""
    dossier = ground.dossier
    assert dossier is not None  # noqa: S101 - asked where there is one
    words, place, order = ground.words, ("dossier", "ranked"), "the order of the rows"
    told = "the rows stand worst first" if dossier.ranked else "the rows stand as they were written"
    rank = dossier.rank
    if rank:
        _by_rank(words, dossier.ranked, rank, claims)
        return
    runs = sum(1 for _ in groupby(words))
    if runs != len(set(words)):
        held = not dossier.ranked
        claims.settle("rows.ranked", told, held, order, place, told=(True, False))
    elif dossier.ranked:
        claims.unchecked("rows.ranked", told, "the declared rank is not carried", place)
    else:
        reason = "rows that stand together by verdict may stand so by chance"
        claims.unchecked("rows.ranked", told, reason, place)


def _by_rank(words: Sequence[str], ranked: bool, rank: Sequence[str], claims: Claims) -> None:
    """Claim that rows stand in the rank that is carried; which words it has is their author's."""
    told = f"the rows stand worst first: {listed(rank)}"
    basis = "the rank that is carried"
    claims.settle("rows.ranked", told, ranked, basis, ("dossier", "ranked"), told=(False, True))
    if any(PLACEHOLDER in word for word in (*rank, *set(words))):
        claims.unchecked("rows.rank.words", told, f"some of it is {HIDDEN}", ("dossier", "rank"))
        return
    found = list(map(rank_of(rank), words))
    late = next((n for n in range(1, len(found)) if found[n - 1] > found[n]), None)
    if late is not None:
        pair = (f"{words[late]} in row {late + 1}, after {words[late - 1]}", told)
        places: tuple[Place, ...] = (("dossier", "rank"), ("dossier", "rows"))
        claims.settle("rows.rank", told, False, basis, *places, told=pair)
        return
    claims.settle("rows.rank", told, True, basis)
    reason = "they are the author's words; the rows stand in this order"
    claims.unchecked("rows.rank.words", listed(rank), reason, ("dossier", "rank"))


def _items(ground: Ground, claims: Claims) -> None:
    """Claim which item each row of a copy is about, where names alone do not tell."""
    dossier = ground.dossier
    assert dossier is not None  # noqa: S101 - see `claim_rows`
    told = None if ground.live else dossier.items_of_rows(len(ground.rows))
    if told is None:
        return
    items: Sequence[int] = told["items"]
    times = Counter(items)
    good, wrong = list[int](), list[int]()
    for row, item in enumerate(items):
        place = ground.behind[row] if row < len(ground.behind) else None
        fits = place is not None and times[item] == 1 and _named_alike(ground, row, place)
        (good if fits else wrong).append(row)

    def tell(row: int) -> tuple[Any, Any]:
        return "an item of its own, of the row's name", f"item {items[row]} of {told['stage']}"

    if not items:
        claims.unchecked("row.item", "no row", "there are no rows", ("dossier", "rows_of"))
        return
    basis = "the subjects carried, and their names"
    base: Place = ("dossier", "rows_of")
    claims.many(
        "row.item",
        "the row is about this item",
        [Outcome(CONTRADICTED, wrong, basis, tell), Outcome(CONFIRMED, good, basis)],
        ground.row_name,
        lambda rows: ((*base, "items", rows), (*base, "stage"), (*base, "execution")),
        singly=False,
    )


def _named_alike(ground: Ground, row: int, place: int) -> bool:
    """Say whether a row may be about a subject by its name; one without a name may be any."""
    name, column = ground.subjects[place].subject, ground.column
    if name is None or column is None or column != ground.naming:
        return True
    said = ground.rows[row].get(column)
    return bool(name_key(said) == name_key(name))
