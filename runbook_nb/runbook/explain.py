"""Explaining rows: from a verdict row to the subject it is about and the decision behind it.

Bridge layer. A row and a subject belong together when they have the same name; nothing is matched
by position, which would be a guess.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from runbook_nb._text import MISSING_CELL, did_you_mean, show
from runbook_nb._view import Card, Data, Prose, Section
from runbook_nb.runbook.dossier import NotCarried, SubjectFacts
from runbook_nb.runbook.envelope import Envelope, Explanation

if TYPE_CHECKING:
    import pandas as pd


def subject_column(row: Mapping[str, Any]) -> str | None:
    """Name the column that says whom a row is about: its first, the verdict apart.

    Examples
    --------
    >>> subject_column({"verdict": "ok", "cluster": "a"})
    'cluster'
    """
    return next((name for name in row if name != "verdict"), None)


def explain(envelope: Envelope, subject: Any, row: int | None) -> Explanation:
    """Explain one row or subject; see `Envelope.why`."""
    if row is not None:
        return _explain_row(envelope, row)
    if subject is None:
        return _explain_run(envelope)
    rows = envelope.verdicts
    named = [
        place
        for place, found in enumerate(rows)
        if (column := subject_column(found)) is not None and _is(found[column], subject)
    ]
    if len(named) == 1:
        return _explain_row(envelope, named[0])
    if named:
        places = ", ".join(map(str, named[:10]))
        raise NotCarried(
            f"{len(named)} rows are about {show(subject)}: {places}",
            code="ambiguous_subject",
            fix="name the row instead: why(row=…)",
        )
    if envelope.carries_dossier:
        facts = envelope.dossier.find(subject)
        return Explanation(envelope, subject=facts.subject, row=None, place=None, facts=facts)
    known = [show(found[column]) for found in rows if (column := subject_column(found))]
    raise NotCarried(
        f"no row held here is about {show(subject)}",
        code="unknown_subject",
        fix=did_you_mean(show(subject), known[:1000]),
    )


def _is(value: Any, asked: Any) -> bool:
    return bool(value == asked and isinstance(value, bool) == isinstance(asked, bool)) or (
        isinstance(asked, str) and not isinstance(value, str) and show(value) == asked
    )


def _explain_row(envelope: Envelope, place: int) -> Explanation:
    rows = envelope.verdicts
    try:
        row = rows[place]
    except IndexError:
        raise NotCarried(
            f"there is no row {place}; {len(rows)} of {rows.total} rows are held here",
            fix="rows are numbered from 0",
        ) from None
    place = range(len(rows))[place]
    column = subject_column(row)
    subject = None if column is None else row[column]
    facts = None
    if envelope.carries_dossier:
        if subject is not None:
            try:
                facts = envelope.dossier.find(subject, column=column)
            except NotCarried:
                facts = None
        if facts is None and len(rows) == 1 and not envelope.dossier.fan_outs:
            facts = next(iter(envelope.dossier.subjects()), None)
    return Explanation(envelope, subject=subject, row=row, place=place, facts=facts)


def _explain_run(envelope: Envelope) -> Explanation:
    facts = list(envelope.dossier.subjects())
    if len(facts) != 1:
        raise NotCarried(
            f"this answer is about {len(facts)} subjects",
            code="ambiguous_subject",
            fix="name one: why(subject) or why(row=0)",
        )
    return Explanation(envelope, subject=facts[0].subject, row=None, place=None, facts=facts[0])


def facts_by_subject(envelope: Envelope) -> dict[Hashable, SubjectFacts | None]:
    """Index what became of each subject by its name; a name that occurs twice gives None."""
    index: dict[Hashable, SubjectFacts | None] = {}
    if not envelope.carries_dossier:
        return index
    column = next((subject_column(row) for row in envelope.verdicts), None)
    for name, facts in envelope.dossier.named_subjects(column):
        if isinstance(name, Hashable) and name is not None:
            index[name] = None if name in index else facts
    return index


def decided_by(facts: SubjectFacts | None) -> str | None:
    """Say what decided a subject: the condition with its value and limit, or why none did."""
    if facts is None:
        return None
    if facts.decision is not None:
        return facts.decision.cause
    return facts.reason


def rule_word(facts: SubjectFacts | None) -> str | None:
    """Name the rule that decided: its number from 1, or the way it was decided without one."""
    decision = None if facts is None else facts.decision
    if decision is None:
        return None
    return str((decision.rule_index or 0) + 1) if decision.via == "rule" else str(decision.via)


def verdict_frame(envelope: Envelope) -> pd.DataFrame:
    """Give the verdict rows as a DataFrame; see `Envelope.to_frame`."""
    frame = envelope.verdicts.to_frame()
    index = facts_by_subject(envelope)
    found = [
        index.get(row[column])
        if (column := subject_column(row)) is not None and isinstance(row[column], Hashable)
        else None
        for row in envelope.verdicts
    ]
    for name, read in (("decided_by", decided_by), ("rule", rule_word)):
        # The author's own column of that name stays his.
        taken = name if name not in frame.columns else f"{name} (record)"
        frame[taken] = [read(facts) for facts in found]
    return frame


def explanation_card(explanation: Explanation) -> Card:
    """Show why a row has its verdict."""
    envelope, subject = explanation.envelope, show(explanation.subject)
    total = envelope.verdicts.total
    place = None
    if explanation.place is not None:
        place = f"row {explanation.place + 1} of {total}"
    decision = explanation.decision
    if decision is not None:
        card: Card = decision.view(None if subject == MISSING_CELL else subject, place)
        if explanation.verdict is not None and explanation.verdict != decision.branch:
            said = Prose(
                text=(
                    "The row says",
                    Data(value=explanation.verdict),
                    "where the record decided",
                    Data(value=decision.branch),
                    ".",
                ),
                tone="warning",
            )
            card = replace(card, sections=(Section(label="", parts=(said,)), *card.sections))
        return card
    return Card(
        kind="Decision",
        name=subject,
        headline=explanation.sentence,
        closing=(place,) if place else (),
    )
