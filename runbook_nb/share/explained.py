"""Claims about explanations of rows: that each is what the answer gives, its path included.

Sharing layer. Nothing is explained by what an output says of itself: the rows of the answer are
explained anew, and the path of a subject is told again from the structure and its decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Final

from runbook_nb._text import clip
from runbook_nb._view import Card, Section
from runbook_nb.record.claims import Claims, Place
from runbook_nb.record.redact import PLACEHOLDER
from runbook_nb.render.html import render_html
from runbook_nb.render.text import render_text
from runbook_nb.runbook import Envelope
from runbook_nb.runbook.explanation import Explanation
from runbook_nb.runbook.grounds import Ground
from runbook_nb.runbook.retold import retold_path
from runbook_nb.settings import settings
from runbook_nb.share.outputs import (
    FUNCTIONS,
    HTML,
    TEXT,
    claim_picture,
    joined,
    without_notes,
)
from runbook_nb.share.shown import blocks_of, card_in

#: Rows whose explanations are looked through for one that a file shows.
MOST_EXPLAINED: Final = 1_000


def claim_explanation(
    envelopes: Sequence[Envelope],
    name: str,
    at: tuple[int, int],
    data: Mapping[str, Any],
    claims: Claims,
    *,
    own: bool,
) -> None:
    """Claim that the explanation of a row is what the answer gives for it.

    Whether it must be that of an answer carried here is known only of ``own`` ones: a reader may
    explain any other answer, or decide about a row of theirs.
    """
    text = joined(data.get(TEXT)).rstrip("\n")
    head = text.split("\n", 1)[0]
    told = clip(head, 80)
    place: Place = ("cells", at[0], "outputs", at[1], "data")
    near: tuple[str, str] | None = None
    for envelope in envelopes:
        for row in range(min(len(envelope.verdicts), MOST_EXPLAINED)):
            try:
                explanation = envelope.why(row=row)
                card = explanation.view()
            except Exception:  # noqa: S112 - a forged answer may hold what cannot be explained
                continue
            expected = render_text(card)
            if expected == text:
                _explained_html(name, told, data, render_html(card), place, claims)
                _path(explanation, card, name, told, data, place, claims)
                return
            if near is None or _shared_lines(text, expected) > _shared_lines(text, near[0]):
                near = expected, expected
    if near is None:
        claims.unchecked(name, told, "no row of an answer here can be explained", place)
        return
    if any(_lacks_rules(envelope) for envelope in envelopes):
        claims.unchecked(name, told, FUNCTIONS, place)
        return
    if not own:
        reason = "no answer here explains it so; it may be of one that is not carried"
        claims.unchecked(name, told, reason, place)
        return
    wanted = near[0].split("\n")
    lines = text.split("\n")
    pair = next(((a, b) for a, b in zip(lines, wanted, strict=False) if a != b), (text, near[0]))
    basis = "the rows of the answer, explained anew"
    claims.settle(name, told, False, basis, place, told=pair)


def _lacks_rules(envelope: Envelope) -> bool:
    if not envelope.carries_dossier:
        return True
    return len(envelope.dossier.rule_sets) < len(envelope.dossier.sources)


def _shared_lines(one: str, other: str) -> int:
    return len(set(one.split("\n")) & set(other.split("\n")))


def _explained_html(  # noqa: PLR0917 - what it is, where it is, what it should be
    name: str, told: str, data: Mapping[str, Any], drawn: str, place: Place, claims: Claims
) -> None:
    basis = "the row of the answer, explained anew"
    shown = blocks_of(card_in(joined(data.get(HTML))) or "")
    found = [row for block in shown for row in block.rows if block.label != "Path"]
    wanted = [row for block in blocks_of(card_in(drawn) or "") for row in block.rows]
    if shown and found != wanted:
        rows = zip(found, wanted, strict=False)
        pair = next(((" ".join(a), " ".join(b)) for a, b in rows if a != b), (told, "more"))
        claims.settle(name, told, False, basis, place, told=pair)
    else:
        claims.settle(name, told, True, basis, (*place, TEXT), (*place, HTML))


def _path(  # noqa: PLR0917 - as above
    explanation: Explanation,
    card: Card,
    name: str,
    told: str,
    data: Mapping[str, Any],
    place: Place,
    claims: Claims,
) -> None:
    """Claim the path of the subject: which stages ran, what decided, and what was not taken."""
    shown = blocks_of(card_in(joined(data.get(HTML))) or "")
    found = [block for block in shown if block.label == "Path"]
    if not found:
        return
    id_, within = f"{name}.path", (*place, HTML, "Path")
    facts = explanation.facts
    flow = None if facts is None else retold_path(Ground(explanation.envelope), facts)
    if flow is None or PLACEHOLDER in str(found[0].rows):
        claims.unchecked(id_, told, "the path of one subject is not carried", within)
        return
    with settings(layout="pure" if found[0].pictures else "none"):
        path = Section(label="Path", parts=(flow,))
        drawn = render_html(replace(card, sections=(*card.sections, path)))
    [wanted] = [one for one in blocks_of(card_in(drawn) or "") if one.label == "Path"]
    basis = "the structure, and the decision of the dossier"
    rows = [row for block in found for row in block.rows]
    one, other = without_notes(rows, wanted.rows)
    pair = next(((a, b) for a, b in zip_longest(one, other, fillvalue=()) if a != b), ((), ()))
    pair_told = (" ".join(pair[0]), " ".join(pair[1]))
    claims.settle(id_, told, one == other, basis, within, told=pair_told)
    pictures = [picture for block in found for picture in block.pictures]
    claim_picture(id_, pictures, wanted.pictures, (*within, "picture"), claims)
