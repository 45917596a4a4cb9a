"""What a verification looks like: the counts, then every claim, what speaks against it first.

Record layer: views only, no markup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from runbook_nb._text import counted, visible
from runbook_nb._view import Badge, Card, Cell, Column, Data, Prose, Role, Section, Table
from runbook_nb.record.claims import CONFIRMED, CONTRADICTED, UNCHECKED, Claim, quoted
from runbook_nb.settings import settings

if TYPE_CHECKING:
    from runbook_nb.record.verification import Verification

#: Status -> the role of its badge.
ROLES: Final[dict[str, Role]] = {
    CONTRADICTED: "failed",
    CONFIRMED: "yes",
    UNCHECKED: "unreadable",
}


def verification_card(verification: Verification) -> Card:
    """Show a verification: how many claims have which status, and each of them."""
    counts = verification.counts
    badges = tuple(
        Badge(word=status, role=ROLES[status], count=count)
        for status, count in counts.items()
        if count
    )
    lead = (
        "Nothing is contradicted."
        if verification.ok
        else f"{counted(counts[CONTRADICTED], 'claim')} of it "
        f"{'is' if counts[CONTRADICTED] == 1 else 'are'} contradicted."
    )
    shown = verification.claims[: settings.max_table_rows]
    table = Table(
        columns=(
            Column(head="status"),
            Column(head="claim"),
            Column(head="what is claimed", in_text="hidden"),
            Column(head="by, or why not", in_text="whole"),
        ),
        rows=tuple(map(_row, shown)),
        total=len(verification.claims),
        rest="verification.to_frame()",
        empty="no claim was made",
    )
    return Card(
        kind="Verification",
        name=visible(verification.name),
        headline=counted(len(verification.claims), "claim"),
        badges=badges,
        sections=(
            Section(label="", parts=(Prose(text=lead),), in_text=False),
            Section(label="Claims", parts=(table,)),
        ),
    )


def _row(claim: Claim) -> tuple[Cell, ...]:
    badge = Badge(word=claim.status, role=ROLES[claim.status])
    return (badge, Data(value=claim.id, tone="code"), Data(value=claim.claimed), _why(claim))


def _why(claim: Claim) -> Cell:
    if claim.status == UNCHECKED:
        return ("because", Data(value=claim.because))
    if claim.status == CONFIRMED:
        return ("by", Data(value=claim.basis))
    if claim.said:
        return (Data(value=claim.said), "by", Data(value=claim.basis))
    return (
        Data(value=quoted(claim.found)),
        "found,",
        Data(value=quoted(claim.expected)),
        "expected, by",
        Data(value=claim.basis),
    )


def claim_card(claim: Claim) -> Card:
    """Show one claim."""
    return Card(
        kind="Claim",
        name=visible(claim.id),
        headline=claim.status,
        closing=(claim.sentence,),
    )
