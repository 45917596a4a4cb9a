"""What a rule lab looks like where it cannot run: the same counts and rows as a card."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from runbook_nb._text import counted, visible
from runbook_nb._view import Badge, Card, Cell, Column, Data, Prose, Section, Table, verdict_role
from runbook_nb.runbook.comparing_card import (
    comparison_card,
    outcome_badges,
    rules_section,
)
from runbook_nb.widgets import labtold
from runbook_nb.widgets.drafts import DRAFT
from runbook_nb.widgets.labspread import near_rows

if TYPE_CHECKING:
    from runbook_nb.widgets.rulelab import RuleLab


def lab_card(lab: RuleLab) -> Card:
    """Show a lab: what changes, how many of what, the rules, those that never fire, the edge."""
    comparison = lab.comparison
    base = comparison_card(comparison)
    old = visible(lab.rules.title or "rules")
    changed = comparison.changed
    headline = "no verdict changes"
    if changed:
        total = counted(comparison.compared, "verdict")
        headline = f"{changed} of {total} change{'s' if changed == 1 else ''}"
    sections: list[Section] = [*_notes(lab)]
    kept = {"Changed", "Counts"}
    for section in base.sections:
        if section.label in kept or not section.label:
            sections.append(section)
    sections += [rules_section(comparison), *_wrong(lab), *_silent(lab), *_near(lab)]
    return replace(
        base,
        kind="RuleLab",
        name=f"{old} -> {DRAFT}",
        headline=headline,
        heading=labtold.headline(lab),
        badges=outcome_badges(comparison),
        sections=tuple(sections),
    )


def _notes(lab: RuleLab) -> list[Section]:
    parts = tuple(
        Prose(text=f"{note[:1].upper()}{note[1:]}.", tone="warning")
        for note in labtold.notes_of(lab)
    )
    return [Section(label="", parts=parts)] if parts else []


def _wrong(lab: RuleLab) -> list[Section]:
    rows: list[tuple[Cell, ...]] = []
    for each in lab.edited.wrong:
        said = each.wrong.what if each.wrong is not None else ""
        rows.append((str(lab.edited.number_of(each.id)), Data(value=said)))
    if not rows:
        return []
    table = _table((Column(head="rule"), Column(head="why")), rows)
    return [Section(label="Not applied", parts=(table,))]


def _silent(lab: RuleLab) -> list[Section]:
    rows: list[tuple[Cell, ...]] = [
        (str(one.rule_index + 1), one.words.removeprefix("never fired: ")) for one in lab.silent
    ]
    if not rows:
        return []
    table = _table((Column(head="rule"), Column(head="why")), rows)
    return [Section(label="Never fired", parts=(table,), in_text=False)]


def _near(lab: RuleLab) -> list[Section]:
    limit = lab.limit
    found = [] if limit is None else list(near_rows(lab, limit))
    if limit is None or not found:
        return []
    rows: list[tuple[Cell, ...]] = [
        (
            Data(value=one["subject"]),
            Data(value=one["value"]),
            one["distance"],
            Data(value=one["why"])
            if one["branch"] is None
            else Badge(
                word=visible(one["branch"]),
                role=verdict_role(one["branch"], lab.comparison.words),
            ),
        )
        for one in found
    ]
    columns = (
        Column(head="subject"),
        Column(head=Data(value=limit.key)),
        Column(head="from the limit"),
        Column(head="verdict"),
    )
    return [Section(label="On the edge", parts=(_table(columns, rows),), in_text=False)]


def _table(columns: tuple[Any, ...], rows: list[tuple[Cell, ...]]) -> Table:
    return Table(columns=columns, rows=tuple(rows), total=len(rows), whole=True)
