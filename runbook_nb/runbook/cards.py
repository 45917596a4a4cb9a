"""What an envelope looks like: its card, built from the wire form and the dossier.

Bridge layer: views only, no markup. Every count is one the record or the wire already holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from runbook_nb._text import counted, show
from runbook_nb._view import (
    Badge,
    Card,
    Cell,
    Column,
    Data,
    Fact,
    Facts,
    Prose,
    Section,
    Table,
    verdict_role,
)
from runbook_nb.runbook.explain import decided_by, facts_by_subject, subject_column
from runbook_nb.runbook.verdicts import DECLINED_VERDICT, PROJECTION_KEYS
from runbook_nb.settings import settings

if TYPE_CHECKING:
    from runbook_nb.runbook.envelope import Envelope, VerdictTable

_SPINE = frozenset({"af_provenance", "rule_version", "report_note", "walk"})


def envelope_card(envelope: Envelope) -> Card:
    """Show an envelope: headline and outcomes, verdicts, coverage, rules, report, walk."""
    result = envelope["result"]
    has_rows = "verdicts" in result
    order = verdict_order(envelope)
    badges = outcome_badges(envelope, order) if has_rows else ()
    headline, tail = _headline(envelope, has_rows)
    rule = _rules_words(envelope)
    sections = []
    if has_rows:
        sections.append(verdict_section(envelope, order))
    sections.append(envelope.ledger.section(in_text=False))
    if envelope.meanings:
        sections.append(_meanings_section(envelope, order))
    report = report_section(envelope, in_text=not has_rows)
    if report is not None:
        sections.append(report)
    sections.append(walk_section(envelope))
    remark = envelope.ledger.remark
    walk = result.get("walk", {})
    return Card(
        kind="Envelope",
        name=envelope.tool,
        qualifiers=(rule,),
        eyebrow=(f"rules {rule}" if not rule.startswith("rules") else rule,),
        headline=headline,
        badges=badges,
        tail=tail,
        sections=tuple(sections),
        closing=(*envelope.ledger.counts, walk_words(walk)),
        remarks=() if remark is None else (remark,),
    )


def _rules_words(envelope: Envelope) -> str:
    name, version = envelope.rules
    if version == "undeclared" and name is None:
        return "rules undeclared"
    return f"{name} {version}" if name is not None else f"rules version {version}"


def _headline(envelope: Envelope, has_rows: bool) -> tuple[str, str]:
    if not has_rows:
        walk = envelope["result"].get("walk", {})
        return f"ran in {counted(walk.get('steps_executed', 0), 'step')}", ""
    total = envelope["result"]["rows_total"]
    fans = envelope.dossier.fan_outs if envelope.carries_dossier else ()
    items = sum(counts.items for counts in fans if counts.has_decider)
    if not total and not items:
        return "0 subjects", "no rule was tried"
    words = counted(items, "subject") if items > total else counted(total, "row")
    declined = envelope.verdicts.counts().get(DECLINED_VERDICT, 0)
    return words, "no verdict was reached" if total and declined == total else ""


def verdict_order(envelope: Envelope) -> tuple[str, ...]:
    """Give the verdict words in their declared order, then as they first appear."""
    words: list[str] = []
    if envelope.carries_dossier:
        dossier = envelope.dossier
        deciders = [node for node in dossier.structure.nodes if node.kind == "decider"]
        named = [n for n in deciders if dossier.decider in (n.id, n.name)] or deciders
        keys = {node.key for node in named}
        words = [n.branch or "" for n in dossier.structure.nodes if n.decider in keys]
    words += list(envelope.meanings)
    words += list(envelope.verdicts.counts())
    return tuple(dict.fromkeys(words))


def outcome_badges(envelope: Envelope, order: Sequence[str]) -> tuple[Badge, ...]:
    """Count the outcomes: verdicts in declared order, declined, then what was not judged."""
    counts = envelope.verdicts.counts()
    words = [w for w in order if w != DECLINED_VERDICT] + [DECLINED_VERDICT]
    badges = [
        Badge(word=show(word), role=verdict_role(word, tuple(order)), count=counts[word])
        for word in words
        if counts.get(word)
    ]
    fans = envelope.dossier.fan_outs if envelope.carries_dossier else ()
    failed = sum(c.failed for c in fans if c.has_decider)
    missed = sum(c.not_reached for c in fans if c.has_decider)
    if failed:
        badges.append(Badge(word="failed", role="failed", count=failed))
    if missed:
        badges.append(Badge(word="not reached", role="not_reached", count=missed))
    return tuple(badges)


def verdict_section(envelope: Envelope, order: Sequence[str]) -> Section:
    """Show the verdict rows: word first, subject, the author's columns, what decided."""
    facts = facts_by_subject(envelope)
    reasons = None
    if envelope.carries_dossier:
        reasons = {name: decided_by(found) for name, found in facts.items()}
    units = envelope.dossier.units if envelope.carries_dossier else {}
    table = verdict_rows_table(envelope.verdicts, order, reasons=reasons, units=units)
    ranked = envelope.carries_dossier and envelope.dossier.ranked
    note = "worst first" if ranked else ""
    if reasons is None:
        note = ", ".join(filter(None, (note, "decided by: not carried")))
    return Section(label="Verdicts", parts=(table,), note=note)


def verdict_rows_table(
    rows: VerdictTable,
    order: Sequence[str],
    *,
    reasons: Mapping[Any, str | None] | None = None,
    units: Mapping[str, str] | None = None,
) -> Table:
    """Make the table of verdict rows, capped, with how many there are."""
    shown = list(islice(rows, settings.max_table_rows))
    subject = subject_column(shown[0]) if shown else None
    others = [
        name
        for name in dict.fromkeys(key for row in shown for key in row)
        if name not in ("verdict", subject)
    ]
    columns = [Column(head="verdict")]
    if subject is not None:
        columns.append(Column(head=Data(value=subject)))
    for name in others:
        numbers = all(
            isinstance(row.get(name), int | float) and not isinstance(row.get(name), bool)
            for row in shown
            if row.get(name) is not None
        )
        columns.append(
            Column(
                head=Data(value=name, unit=(units or {}).get(name)),
                align="right" if numbers else "left",
                in_text="labelled",
            )
        )
    if reasons is not None:
        columns.append(Column(head="decided by", in_text="hidden"))
    return Table(
        columns=tuple(columns),
        rows=tuple(_row_cells(row, subject, others, order, reasons) for row in shown),
        total=rows.total,
        rest="to_frame()",
        empty="no rows: nothing was assessed",
    )


def _row_cells(
    row: Mapping[str, Any],
    subject: str | None,
    others: Sequence[str],
    order: Sequence[str],
    reasons: Mapping[Any, str | None] | None,
) -> tuple[Cell, ...]:
    word = str(row.get("verdict"))
    cells: list[Cell] = [Badge(word=show(word), role=verdict_role(word, tuple(order)))]
    if subject is not None:
        cells.append(Data(value=row.get(subject)))
    cells += [Data(value=row.get(name)) for name in others]
    if reasons is not None:
        name = row.get(subject) if subject is not None else None
        try:
            reason = reasons.get(name)
        except TypeError:  # a subject that cannot be a key names nobody
            reason = None
        cells.append(Data(value=reason))
    return tuple(cells)


def verdict_table_card(rows: VerdictTable) -> Card:
    """Show verdict rows alone."""
    counts = rows.counts()
    order = tuple(counts)
    badges = tuple(
        Badge(word=show(word), role=verdict_role(word, order), count=n)
        for word, n in counts.items()
    )
    return Card(
        kind="VerdictTable",
        name="",
        headline=counted(rows.total, "row"),
        badges=badges if rows.complete else (),
        tail="" if rows.complete else f"{len(rows)} of {rows.total} held here",
        sections=(Section(label="Verdicts", parts=(verdict_rows_table(rows, order),)),),
    )


def _meanings_section(envelope: Envelope, order: Sequence[str]) -> Section:
    counts = envelope.verdicts.counts()
    defaults = set()
    if envelope.carries_dossier:
        defaults = {r.default.branch for r in envelope.dossier.rule_sets if r.default is not None}
    words = list(dict.fromkeys([*envelope.meanings, *counts]))
    facts = []
    for word in words:
        badges = []
        if word in defaults:
            badges.append(Badge(word="default"))
        if not counts.get(word):
            badges.append(Badge(word="never fired"))
        meaning = envelope.meanings.get(word)
        detail: Cell = Data(value=meaning) if meaning else "no meaning was declared"
        facts.append(
            Fact(
                term=Badge(word=show(word), role=verdict_role(word, tuple(order))),
                detail=detail,
                badges=tuple(badges),
            )
        )
    return Section(
        label="Rules",
        parts=(Facts(label="Meanings", items=tuple(facts), total=len(facts)),),
        note=_rules_words(envelope),
        in_text=False,
    )


def report_section(envelope: Envelope, *, in_text: bool) -> Section | None:
    """Show the procedure's own report fields; None when there is none."""
    result = envelope["result"]
    reserved = _SPINE | (frozenset(PROJECTION_KEYS) if "verdicts" in result else frozenset())
    fields = [(name, value) for name, value in result.items() if name not in reserved]
    note = result.get("report_note")
    if not fields and not note:
        return None
    parts: list[Any] = [Prose(text=Data(value=note), tone="warning")] if note else []
    if fields:
        facts = tuple(
            Fact(term=Data(value=name), detail=Data(value=value)) for name, value in fields
        )
        parts.append(Facts(label="Report", items=facts, total=len(facts)))
    return Section(
        label="Report", parts=tuple(parts), note=counted(len(fields), "field"), in_text=in_text
    )


def walk_words(walk: Mapping[str, Any]) -> str:
    """Say how much of the walk was kept."""
    if not walk:
        return "walk not carried"
    if walk.get("complete"):
        return f"walk {counted(walk['rows'], 'row')}, complete"
    return f"walk {walk.get('shown')} of {counted(walk.get('total', 0), 'row')}"


def walk_section(envelope: Envelope) -> Section:
    """Show the folded walk of a live envelope, the counters of a copy."""
    walk = envelope["result"].get("walk", {})
    note = f"{counted(walk.get('steps_executed', 0), 'step')}, {walk_words(walk)}"
    if envelope.run is not None:
        from runbook_nb.record.outline import walk_flow

        parts: tuple[Any, ...] = (walk_flow(envelope.run.walk),)
    else:
        parts = (Prose(text="The recorded path is not carried by this copy.", tone="dim"),)
    filed = "walk filed" if "ref" in walk else "walk not filed"
    return Section(
        label="Walk",
        parts=(*parts, Prose(text=f"from {envelope.tool}, {filed}", tone="dim")),
        note=note,
        in_text=False,
    )
