"""What an envelope looks like: its card, built from the wire form and the dossier.

Bridge layer: views only, no markup. Every count is one the record or the wire already holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._text import clip, counted, listed, show, visible
from runbook_nb._view import (
    Badge,
    Card,
    Cell,
    Column,
    Data,
    Fact,
    Facts,
    Flow,
    Prose,
    Run,
    Section,
    Table,
    verdict_role,
)
from runbook_nb.coverage.ledger import gap_line
from runbook_nb.rules import Decision
from runbook_nb.rules.wording import REDACTED
from runbook_nb.runbook.dossier import SubjectFacts
from runbook_nb.runbook.explain import decided_by, facts_of_rows
from runbook_nb.runbook.fans import FanOutGroup
from runbook_nb.runbook.gaps import declined_gap
from runbook_nb.runbook.names import name_key
from runbook_nb.runbook.report import SPINE_KEYS
from runbook_nb.runbook.tickets import NO_STORE, WALK_NOTE
from runbook_nb.runbook.verdicts import DECLINED_VERDICT, PROJECTION_KEYS, subject_column
from runbook_nb.settings import settings

if TYPE_CHECKING:
    from runbook_nb.runbook.envelope import Envelope
    from runbook_nb.runbook.table import VerdictTable

#: So many rows are looked through for subjects that stand in several of them.
MOST_LOOKED_AT: Final = 10_000

#: So many of these are named.
NAMED_SUBJECTS: Final = 3

#: What the counts of an answer amount to, where they amount to nothing.
NO_RULE_TRIED: Final = "no rule was tried"
NOTHING_REACHED: Final = "no verdict was reached"


def envelope_card(envelope: Envelope) -> Card:
    """Show an envelope: headline and outcomes, verdicts, coverage, rules, report, walk."""
    result = envelope["result"]
    has_rows = "verdicts" in result
    order = verdict_order(envelope)
    badges = outcome_badges(envelope, order) if has_rows else ()
    headline, tail = _headline(envelope, has_rows)
    rule = _rules_words(envelope)
    sections = []
    told = (
        _several_rows(envelope) if has_rows else "",
        visible(envelope.dossier.version_note) if envelope.carries_dossier else "",
    )
    if lead := _lead(envelope, tail, told):
        sections.append(Section(label="", parts=(Prose(text=lead),), in_text=False))
    if has_rows and envelope.verdicts.total:
        sections.append(verdict_section(envelope, order))
    sections.append(envelope.ledger.section(in_text=False))
    if envelope.meanings:
        sections.append(_meanings_section(envelope, order))
    report = report_section(envelope, in_text=not has_rows)
    if report is not None:
        sections.append(report)
    sections.append(walk_section(envelope))
    walk = result.get("walk", {})
    return Card(
        kind="Envelope",
        name=envelope.tool,
        qualifiers=(rule,),
        eyebrow=(rule if rule.startswith("rules") else ("rules", Data(value=rule, tone="code")),),
        headline=headline,
        badges=badges,
        tail=tail,
        sections=tuple(sections),
        closing=(*envelope.ledger.counts, walk_words(walk)),
        remarks=_remarks(envelope, told),
        heading=_heading(envelope) if has_rows else "",
        foot=_foot(envelope, walk),
    )


def _telling(envelope: Envelope) -> tuple[str, ...]:
    """Say why most subjects could not be judged, and what to do, where the evidence is carried."""
    return envelope.dossier.telling if envelope.carries_dossier else ()


def _remarks(envelope: Envelope, told: Sequence[str]) -> tuple[str, ...]:
    """Name the most telling gap and what mends it, then what else is said.

    How many rows were declined stands in the first line already: another gap says more.
    """
    lines: list[str] = []
    gaps = envelope.ledger.not_checked
    if gaps:
        why = declined_gap(0).why
        telling = next((gap for gap in gaps if gap.why != why), gaps[0]).what
        first, *fix = _telling(envelope) or (telling,)
        lines = [gap_line(first, len(gaps) - 1), *(f"fix: {visible(one)}" for one in fix)]
    return (*lines, *filter(None, told))


def _several_rows(envelope: Envelope) -> str:
    """Say which subjects have more than one row; nothing is said of very many rows."""
    rows = envelope.verdicts
    if not 1 < len(rows) <= MOST_LOOKED_AT or not envelope.carries_dossier:
        return ""
    # Only the record knows that a row's first column is what names subjects.
    column, facts = subject_column(rows[0]), envelope.dossier.behind_row(0)
    if column is None or facts is None or facts.subject is None:
        return ""
    if name_key(facts.subject) != name_key(rows[0][column]):
        return ""
    times = [show(name) for name in rows.repeated() if REDACTED not in show(name)]
    if not times:
        return ""
    more = len(times) - NAMED_SUBJECTS
    named = listed([*times[:NAMED_SUBJECTS], *([f"{more} more"] if more > 0 else [])])
    has = "1 subject has" if len(times) == 1 else f"{len(times)} subjects have"
    return f"{has} more than one row: {named}"


def _heading(envelope: Envelope) -> Cell:
    """Say how much was assessed, in subjects where the record counts them."""
    items, total = sum(group.counts.items for group in judging(envelope)), envelope.verdicts.total
    if not total and not items and not envelope.carries_dossier:
        return "0 rows"
    n, noun = (items, "subject") if items >= total else (total, "row")
    return (n, noun if n == 1 else f"{noun}s")


def _lead(envelope: Envelope, tail: str, told: Sequence[str]) -> str:
    """Say in sentences what the counts amount to, where they need it."""
    said = [tail]
    if tail == NOTHING_REACHED:
        total = envelope.verdicts.total
        said = [f"no verdict was reached for any subject: all {total} were declined"]
        said += map(visible, _telling(envelope))
    elif tail == NO_RULE_TRIED:
        said = ["no subject was listed, so no rule was tried"]
    return " ".join(f"{one[:1].upper()}{one[1:]}." for one in [*said, *told] if one)


def _foot(envelope: Envelope, walk: Mapping[str, Any]) -> Cell:
    """Name the tool, and say whether the walk was filed or why it was not."""
    start: tuple[Run, ...] = ("from", Data(value=envelope.tool, tone="code"))
    if not walk:
        return (*start, " · walk not carried")
    if "ref" in walk:
        return (*start, " · walk filed,", walk.get("rows", 0), "rows")
    reason = str(walk.get("note", "")).removeprefix(WALK_NOTE).strip().rstrip(".")
    if NO_STORE in reason:
        reason = "no artifact store"
    return (*start, " · walk not filed" + (f": {clip(visible(reason), 160)}" if reason else ""))


def _rules_words(envelope: Envelope) -> str:
    name, version = envelope.rules
    if version == "undeclared" and name is None:
        return "rules undeclared"
    return f"{name} {version}" if name is not None else f"rules version {version}"


def _headline(envelope: Envelope, has_rows: bool) -> tuple[str, str]:
    if not has_rows:
        walk = envelope["result"].get("walk", {})
        if "steps_executed" not in walk:
            return "how many steps ran is not carried", ""
        return f"ran in {counted(walk.get('steps_executed', 0), 'step')}", ""
    verdicts = envelope.verdicts
    items = sum(group.counts.items for group in judging(envelope))
    if not verdicts.total and not items:
        if envelope.carries_dossier and not envelope.dossier.sources:
            return "0 subjects", NO_RULE_TRIED
        return "0 rows", "nothing was assessed"
    words = counted(items, "subject") if items > verdicts.total else counted(verdicts.total, "row")
    if not verdicts.complete:
        return words, f"{len(verdicts)} of {verdicts.total} rows held here"
    declined = verdicts.counts().get(DECLINED_VERDICT, 0)
    return words, NOTHING_REACHED if verdicts and declined == len(verdicts) else ""


def judging(envelope: Envelope) -> list[FanOutGroup]:
    """Give the fan-outs whose subjects the verdict rows are about; none in a wire-only copy."""
    if not envelope.carries_dossier:
        return []
    return [group for group in envelope.dossier.fan_outs if group.judges]


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
    """Count the outcomes: verdicts in declared order, declined, then what has no row.

    A copy that does not hold every row counts nothing, rather than the rows it happens to hold.
    """
    verdicts = envelope.verdicts
    if not verdicts.complete:
        return ()
    counts = verdicts.counts()
    words = [w for w in order if w != DECLINED_VERDICT] + [DECLINED_VERDICT]
    badges = [
        Badge(word=show(word), role=verdict_role(word, tuple(order)), count=counts[word])
        for word in words
        if counts.get(word)
    ]
    groups = judging(envelope)
    failed = sum(group.counts.failed for group in groups)
    missed = sum(group.counts.not_reached for group in groups)
    rowless = sum(group.counts.items for group in groups) - verdicts.total
    # Where the procedure wrote rows for some of them too, the counts would not add up to the
    # headline's; the ledger tells of these subjects in any case.
    if rowless >= failed + missed:
        others = rowless - failed - missed
        if failed:
            badges.append(Badge(word="failed", role="failed", count=failed))
        if missed:
            badges.append(Badge(word="not reached", role="not_reached", count=missed))
        if others:
            badges.append(Badge(word="without a row", role="not_reached", count=others))
    elif rowless > 0:
        badges.append(Badge(word="without a row", role="not_reached", count=rowless))
    return tuple(badges)


def verdict_section(envelope: Envelope, order: Sequence[str]) -> Section:
    """Show the verdict rows: word first, subject, the author's columns, what decided."""
    shown = range(min(len(envelope.verdicts), settings.max_table_rows))
    reasons: list[Cell] | None = None
    note, units, ranked = "", {}, False
    if envelope.carries_dossier and _is_about_steps(envelope.dossier):
        units = dict(envelope.dossier.units)  # a row says itself what became of its step
    elif envelope.carries_dossier:
        reasons = [decided_cell(facts) for facts, _ in facts_of_rows(envelope, shown)]
        units, ranked = dict(envelope.dossier.units), envelope.dossier.ranked
        note = "worst first" if ranked else ""
    else:
        note = "decided by: not carried"
    table = verdict_rows_table(envelope.verdicts, order, reasons=reasons, units=units)
    return Section(label="Verdicts", parts=(table,), note=note)


def _is_about_steps(dossier: Any) -> bool:
    return any(node.kind == "step" for node in dossier.structure.nodes)


def verdict_rows_table(
    rows: VerdictTable,
    order: Sequence[str],
    *,
    reasons: Sequence[Cell] | None = None,
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
        columns.append(Column(head="decided by", in_text="hidden", equation=True))
    words = {str(row.get("verdict")) for row in shown}
    badges = {w: Badge(word=show(w), role=verdict_role(w, tuple(order))) for w in words}
    return Table(
        columns=tuple(columns),
        rows=tuple(
            (
                *_row_cells(row, subject, others, badges),
                *([] if reasons is None else [reason]),
            )
            for row, reason in zip(shown, reasons or [None] * len(shown), strict=True)
        ),
        total=rows.total,
        # A copy may hold fewer rows than there are, and then so does its frame.
        rest="to_frame()" if rows.complete else f"to_frame() holds {len(rows)} of {rows.total}",
        empty="no rows: nothing was assessed",
    )


def decided_cell(facts: SubjectFacts | None) -> Cell:
    """Say what decided a subject as `decided_by` does, a single comparison taken apart."""
    decision = None if facts is None else facts.decision
    if facts is None or decision is None:
        return Data(value=decided_by(facts))
    if facts.status != "ok" and decided_by(facts) != decision.cause:
        return Data(value=decided_by(facts))
    if decision.via in ("default", "none"):
        return decision.cause  # our own words
    if isinstance(decision, Decision) and decision.deciding is not None:
        conditions = decision.conditions_of(decision.deciding)
        apart = conditions[0].apart if len(conditions) == 1 else None
        if apart is not None:
            key, actual, op, limit = apart
            return (Data(value=key), Data(value=actual), op, Data(value=limit))
    return Data(value=decision.cause, tone="code")


def _row_cells(
    row: Mapping[str, Any],
    subject: str | None,
    others: Sequence[str],
    badges: Mapping[str, Badge],
) -> tuple[Cell, ...]:
    cells: list[Cell] = [badges[str(row.get("verdict"))]]
    if subject is not None:
        cells.append(Data(value=row.get(subject)))
    cells += [Data(value=row.get(name)) for name in others]
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
    named = [*envelope.meanings, *counts]
    words = [w for w in order if w in named and w != DECLINED_VERDICT]
    words += [DECLINED_VERDICT] if DECLINED_VERDICT in named else []
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
    reserved = {*SPINE_KEYS, *(PROJECTION_KEYS if "verdicts" in result else ())}
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


def _walk_note(walk: Mapping[str, Any]) -> Cell:
    if not walk:
        return "not carried"
    steps, shown, total = (walk.get(key, 0) for key in ("steps_executed", "shown", "total"))
    kept: tuple[Run, ...] = (steps, "step," if steps == 1 else "steps,", shown, "of", total, "rows")
    if walk.get("complete"):
        return (*kept, ", complete")
    return (*kept, "kept: control flow only")


def walk_section(envelope: Envelope, flow: Flow | None = None) -> Section:
    """Show the folded walk of a live envelope, the counters of a copy.

    Parameters
    ----------
    envelope : Envelope
    flow : Flow, optional
        The outline of the walk, where it was worked out otherwise.
    """
    walk = envelope["result"].get("walk", {})
    if flow is None and envelope.run is not None:
        from runbook_nb.record.outline import walk_flow

        flow = walk_flow(envelope.run.walk)
    parts: tuple[Any, ...] = (flow,)
    if flow is None:
        parts = (Prose(text="The recorded path is not carried by this copy.", tone="dim"),)
    return Section(label="Walk", parts=parts, note=_walk_note(walk), in_text=False)
