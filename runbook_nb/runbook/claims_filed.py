"""Claims about what the rows of a filed walk say, held against the dossier and one another.

Bridge layer. A digest tells that a walk was changed after it was filed, and not that its rows are
those of the run: whoever changes both says so of another walk. A decision stands in the dossier
too, with its values, and its row must say what these say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from runbook_nb._text import counted
from runbook_nb.record.claims import (
    CONFIRMED,
    CONTRADICTED,
    HIDDEN,
    NOTHING_ELSE,
    UNCHECKED,
    Claims,
    Outcome,
    Place,
    agrees,
)
from runbook_nb.record.narrative import condition_words
from runbook_nb.record.redact import PLACEHOLDER
from runbook_nb.rules import Decision
from runbook_nb.runbook.dossier import SubjectFacts
from runbook_nb.runbook.grounds import Ground

#: Rows of a walk that are gone through at most.
MAX_ROWS: Final = 100_000

#: Where a decision was made: the fan-out or, outside of any, nothing; its execution and the item.
Spot = tuple[str, int, int]
OUTSIDE: Final[Spot] = ("", 0, 0)

_ITEM: Final = re.compile(r"~(\d+)(?=/|$)")


def claim_filed(
    ground: Ground, claims: Claims, part: str, rows: Iterable[Mapping[str, Any]], *, whole: bool
) -> None:
    """Claim that the decisions in the rows of a filed walk are those of the dossier.

    Parameters
    ----------
    ground : Ground
    claims : Claims
    part : {"walk", "columns"}
        Which of the filed walks it is.
    rows : iterable of mapping
        Its rows.
    whole : bool
        Whether these are all of them, so that no decision may be missing.
    """
    ref: Place = ("result", "walk", "ref" if part == "walk" else "columns_ref")
    rest = "what its rows say besides: which stages ran, what was read and written"
    dossier = ground.dossier
    if dossier is None:
        claims.unchecked(f"ticket.{part}.decision", "its decisions", NOTHING_ELSE, ref)
        claims.unchecked(f"ticket.{part}.text", rest, NOTHING_ELSE, ref)
        return
    told = conditions_of(rows, {group.key for group in dossier.fan_outs})
    alike: list[int] = []
    other: list[int] = []
    hidden: list[int] = []
    absent: list[int] = []
    for number, one in enumerate(ground.subjects):
        wanted = _words_of(one)
        if wanted is None:
            continue
        found = told.get(_spot_of(one, told), ())
        if PLACEHOLDER in wanted or any(PLACEHOLDER in text for text in found):
            held = any(agrees(text, wanted) or agrees(wanted, text) for text in found)
            (hidden if held or not found else other).append(number)
        elif any(_says(text, one, wanted) for text in found):
            alike.append(number)
        else:
            (other if found or whole else absent).append(number)

    def tell(number: int) -> tuple[Any, Any]:
        one = ground.subjects[number]
        found = told.get(_spot_of(one, told), ())
        return _words_of(one), found[0] if len(found) == 1 else list(found) or None

    def name(number: int) -> str:
        return ground.subject_name(number)

    claims.many(
        f"ticket.{part}.decision",
        "the filed walk tells the decision that the dossier carries",
        [
            Outcome(CONTRADICTED, other, "the dossier", tell),
            Outcome(CONFIRMED, alike, "the dossier"),
            Outcome(UNCHECKED, hidden, f"some of it is {HIDDEN}"),
            Outcome(UNCHECKED, absent, "its row is past the cap of the filed walk"),
        ],
        name,
        lambda numbers: (ref,),
        singly=False,
    )
    claims.unchecked(f"ticket.{part}.text", rest, NOTHING_ELSE, ref)


def conditions_of(
    rows: Iterable[Mapping[str, Any]], fan_outs: Iterable[str]
) -> dict[Spot, tuple[str, ...]]:
    """Give what the decisions in the rows of a walk say, by where they were made.

    Examples
    --------
    >>> rows = [{"type": "fork", "subflow": None, "runtime_stage_id": "each#1"},
    ...         {"type": "condition", "subflow": "each~3", "text": "old by rule 1"}]
    >>> conditions_of(rows, ["each"])
    {('each', 0, 3): ('old by rule 1',)}
    """
    known, times = set(fan_outs), Counter[str]()
    found: dict[Spot, tuple[str, ...]] = {}
    for row in rows:
        kind, within = row.get("type"), str(row.get("subflow") or "")
        if kind == "fork":
            stage, _, _ = str(row.get("runtime_stage_id")).rpartition("#")
            times[_ITEM.sub("", stage)] += 1
        elif kind == "condition":
            key, items = _ITEM.sub("", within), _ITEM.findall(within)
            inside = key in known and items
            spot = (key, max(times[key] - 1, 0), int(items[-1])) if inside else OUTSIDE
            found[spot] = (*found.get(spot, ()), str(row.get("text")))
    return found


def _spot_of(one: SubjectFacts, told: Mapping[Spot, Sequence[str]]) -> Spot:
    spot = (one.stage, one.execution, one.index)
    return OUTSIDE if one.subject is None and spot not in told else spot


def _words_of(one: SubjectFacts) -> str | None:
    """Give what a walk says of a subject's decision; of one that is only told, the beginning."""
    if one.decision is None:
        return None
    return (
        condition_words(one.decision)
        if isinstance(one.decision, Decision)
        else (one.decision.sentence)
    )


def _says(text: str, one: SubjectFacts, wanted: str) -> bool:
    if isinstance(one.decision, Decision):
        return text == wanted
    return text == wanted or text.startswith(f"{wanted} (tried: ")


def claim_whole(ground: Ground, claims: Claims, walk: Sequence[Any], run: Any, words: str) -> None:
    """Claim that the rows of a whole walk are those of the record, else those filed beside it."""
    ref: Place = ("result", "walk", "columns_ref")
    told = f"the {counted(len(walk), 'row')} of the whole walk are those of the run"
    if len(walk) > MAX_ROWS:
        reason = f"more than {MAX_ROWS:,} rows are not gone through"
        claims.unchecked("ticket.columns.rows", told, reason, ref)
        return
    if run is not None:
        pair = _first_other(walk, run.walk)
        claims.settle("ticket.columns.rows", told, pair is None, words, ref, told=pair or ("", ""))
        return
    filed, shown = ground.filed, ground.walk.get("shown")
    if filed is None or type(shown) is not int or shown < 1:
        claims.unchecked("ticket.columns.rows", told, NOTHING_ELSE, ref)
    else:
        cut = [row.to_dict() for row in walk.project(shown).rows]  # type: ignore[attr-defined]
        pair = _first_other(cut, filed)
        basis = "the rows that were filed beside it"
        claims.settle("ticket.columns.rows", told, pair is None, basis, ref, told=pair or ("", ""))
    rows = (row.to_dict() for row in walk)
    claim_filed(ground, claims, "columns", rows, whole=True)


def _first_other(found: Sequence[Any], expected: Sequence[Any]) -> tuple[Any, Any] | None:
    """Give the first row that differs, and the one that should stand there."""
    for row, wanted in zip(found, expected, strict=False):
        if row != wanted:
            return row, wanted
    if len(found) != len(expected):
        return counted(len(found), "row"), counted(len(expected), "row")
    return None
