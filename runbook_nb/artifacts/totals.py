"""How a store is shown: counts and bytes by kind, never a reference or any of a payload."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from runbook_nb._text import counted
from runbook_nb._view import Card, Column, Data, Section, Table
from runbook_nb.artifacts.model import Ticket


class KindTotals(NamedTuple):
    """How many artifacts of one kind are held, and their bytes."""

    kind: str
    held: int
    bytes: int


def totals_of(tickets: Iterable[Ticket]) -> tuple[KindTotals, ...]:
    """Add up tickets by kind, in the order of the kinds' names.

    Examples
    --------
    >>> ticket = Ticket(ref="art_" + "a" * 22, kind="k", media_type="m", bytes=2, created_at=0)
    >>> totals_of([ticket, ticket])
    (KindTotals(kind='k', held=2, bytes=4),)
    """
    sizes: dict[str, list[int]] = {}
    for ticket in tickets:
        sizes.setdefault(ticket.kind, []).append(ticket.bytes)
    return tuple(KindTotals(kind, len(sizes[kind]), sum(sizes[kind])) for kind in sorted(sizes))


def totals_card(name: str, totals: Sequence[KindTotals], dropped: int, *, damaged: int = 0) -> Card:
    """Show what a store holds, how many rows left for its budget, and what cannot be read."""
    closing = [counted(sum(total.bytes for total in totals), "byte")]
    if dropped:
        closing.append(f"{dropped} dropped for the budget")
    if damaged:
        closing.append(f"{counted(damaged, 'ticket')} cannot be read")
    table = Table(
        columns=(
            Column(head="kind"),
            Column(head="artifacts", align="right", in_text="labelled"),
            Column(head="bytes", align="right", in_text="labelled"),
        ),
        rows=tuple((Data(value=total.kind), total.held, total.bytes) for total in totals),
        total=len(totals),
        empty="nothing is filed",
    )
    return Card(
        kind="Artifacts",
        name=name,
        headline=counted(sum(total.held for total in totals), "artifact"),
        sections=(Section(label="", parts=(table,)),),
        closing=tuple(closing),
    )
