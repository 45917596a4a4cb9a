"""Explaining rows: from a verdict row to the subject it is about and the decision behind it.

Bridge layer. A row collected from slots knows which item it is about. Any other and a subject
belong together when they have the same name, and where several subjects share one, the same verdict
and compared values too. Nothing is matched by position, which would be a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from runbook_nb._text import MISSING_CELL, did_you_mean, show
from runbook_nb._view import (
    VERDICT_ROLES,
    Badge,
    Card,
    Cell,
    Data,
    Part,
    Prose,
    Run,
    Section,
    Table,
    verdict_role,
)
from runbook_nb.errors import NotCarried, SubjectNotFound
from runbook_nb.runbook.dossier import SubjectFacts, narrowed
from runbook_nb.runbook.envelope import Envelope
from runbook_nb.runbook.names import name_key, row_hint
from runbook_nb.runbook.verdicts import subject_column

if TYPE_CHECKING:
    import pandas as pd

    from runbook_nb.runbook.explanation import Explanation

#: Said of a row where the record has nothing to say.
NO_DECISION = "no decision by rules was recorded for it"


def explain(envelope: Envelope, subject: Any, row: int | None) -> Explanation:
    """Explain one row or subject; see `Envelope.why`."""
    from runbook_nb.runbook.explanation import Explanation

    if row is not None:
        return _explain_row(envelope, row)
    if subject is None:
        return _explain_run(envelope)
    rows = envelope.verdicts
    named = rows.named(subject)
    if len(named) == 1:
        return _explain_row(envelope, named[0])
    if named:
        places = ", ".join(map(str, named[:10]))
        raise SubjectNotFound(
            f"{len(named)} rows are about {show(subject)}: {places}",
            code="ambiguous_subject",
            fix=f"name the row instead, counted from 0: why(row={named[0]})",
        )
    if envelope.carries_dossier:
        facts = envelope.dossier.find(subject)
        return Explanation(envelope, subject=facts.subject, row=None, place=None, facts=facts)
    known = [show(found[column]) for found in rows if (column := subject_column(found))]
    raise SubjectNotFound(
        f"no row held here is about {show(subject)}",
        code="unknown_subject",
        fix=row_hint(subject, rows.total) or did_you_mean(show(subject), known[:1000]),
    )


def _explain_row(envelope: Envelope, place: int) -> Explanation:
    from runbook_nb.runbook.explanation import Explanation

    rows = envelope.verdicts
    try:
        row = rows[place]
    except IndexError:
        raise NotCarried(
            f"there is no row {place}; {len(rows)} of {rows.total} rows are held here",
            fix="row= counts from 0: 'row 1' of a card is row=0",
        ) from None
    place = range(len(rows))[place]
    column = subject_column(row)
    facts, gap = None, "the decision is not carried by this copy"
    if envelope.carries_dossier:
        [(facts, gap)] = facts_of_rows(envelope, [place])
    return Explanation(
        envelope,
        subject=None if column is None else row[column],
        row=row,
        place=place,
        facts=facts,
        gap=gap,
    )


def _explain_run(envelope: Envelope) -> Explanation:
    from runbook_nb.runbook.explanation import Explanation

    facts = list(envelope.dossier.subjects())
    if len(facts) != 1:
        raise NotCarried(
            f"this answer is about {len(facts)} subjects",
            code="ambiguous_subject",
            fix="name one: why(subject) or why(row=0)",
        )
    return Explanation(envelope, subject=facts[0].subject, row=None, place=None, facts=facts[0])


def facts_of_rows(
    envelope: Envelope, places: Sequence[int]
) -> list[tuple[SubjectFacts | None, str]]:
    """Find the subject each row is about, by the rows' places; where there is none, say why.

    Raises
    ------
    NotCarried
        The envelope carries no dossier.
    """
    dossier = envelope.dossier
    recorded = {place: dossier.behind_row(place) for place in places}
    missing = [place for place in places if recorded[place] is None]
    told = dict(zip(missing, _facts_by_name(envelope, missing), strict=True)) if missing else {}
    return [told[place] if (facts := recorded[place]) is None else (facts, "") for place in places]


def _facts_by_name(
    envelope: Envelope, places: Sequence[int]
) -> list[tuple[SubjectFacts | None, str]]:
    dossier = envelope.dossier
    rows = [envelope.verdicts[place] for place in places]
    keys = [None if (c := subject_column(row)) is None else name_key(row[c]) for row in rows]
    found = dossier.named(frozenset(key for key in keys if key is not None))
    answers: list[tuple[SubjectFacts | None, str]] = []
    for row, key in zip(rows, keys, strict=True):
        few = narrowed(found.get(key, ()), row) if key is not None else ()
        if len(few) == 1:
            answers.append((few[0], ""))
        elif few:
            items = ", ".join(str(facts.index) for facts in few[:10])
            gap = f"{len(few)} subjects have its name (items {items}), so which one is not recorded"
            answers.append((None, gap))
        elif len(envelope.verdicts) == 1 and not any(g.judges for g in dossier.fan_outs):
            # One row about the run as a whole: its own decision is the one, the last of several.
            own = [f for f in dossier.subjects() if f.subject is None and f.decision is not None]
            answers.append((own[-1], "") if own else (None, NO_DECISION))
        elif key is None and dossier.subjects_total:
            answers.append((None, "the row names no subject, so whom it is about is not recorded"))
        elif not dossier.complete:
            answers.append((None, "the decision is not carried by this copy"))
        else:
            answers.append((None, NO_DECISION))
    return answers


def decided_by(facts: SubjectFacts | None) -> str | None:
    """Say what decided a subject: the condition with its value and limit, or why none did."""
    if facts is None:
        return None
    if facts.decision is not None and facts.status == "ok":
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
    rows = list(envelope.verdicts)
    found: list[SubjectFacts | None] = [None] * len(rows)
    if envelope.carries_dossier:
        found = [facts for facts, _ in facts_of_rows(envelope, range(len(rows)))]
    for name, read in (("decided_by", decided_by), ("rule", rule_word)):
        # The author's own column of that name stays his.
        taken = name if name not in frame.columns else f"{name} (record)"
        frame[taken] = [read(facts) for facts in found]
    return frame


def _as_in(envelope: Envelope, card: Card) -> Card:
    """Give verdict words the roles they have in the envelope, whose order is the chart's."""
    from runbook_nb.runbook.cards import verdict_order

    order = verdict_order(envelope)
    words = frozenset(map(show, order))

    def again(cell: Cell) -> Cell:
        if isinstance(cell, tuple):
            return tuple(run(one) for one in cell)
        return run(cell)

    def run(one: Run) -> Run:
        if not isinstance(one, Badge) or one.word not in words or one.role not in VERDICT_ROLES:
            return one
        return replace(one, role=verdict_role(one.word, order))

    def part(one: Part) -> Part:
        if not isinstance(one, Table):
            return one
        return replace(one, rows=tuple(tuple(map(again, row)) for row in one.rows))

    sections = (replace(s, parts=tuple(map(part, s.parts))) for s in card.sections)
    return replace(card, heading=again(card.heading), sections=tuple(sections))


def explanation_card(explanation: Explanation) -> Card:
    """Show why a row has its verdict."""
    subject = show(explanation.subject)
    name = "" if subject == MISSING_CELL else subject
    total = explanation.envelope.verdicts.total
    place = None
    if explanation.place is not None:
        place = f"row {explanation.place + 1} of {total} (row={explanation.place})"
    decision, facts = explanation.decision, explanation.facts
    if decision is None or facts is None or facts.status != "ok":
        return Card(
            kind="Decision",
            name=name,
            headline=explanation.sentence,
            closing=(place,) if place else (),
        )
    card = _as_in(explanation.envelope, decision.view(name or None, place))
    decider = explanation.envelope.dossier.decider
    if decider:
        card = replace(card, eyebrow=(Data(value=decider), *card.eyebrow))
    if explanation.envelope.run is not None:
        from runbook_nb.record.outline import walk_flow

        path = Section(label="Path", parts=(walk_flow(explanation.walk()),), in_text=False)
        card = replace(card, sections=(*card.sections, path))
    if explanation.verdict is None or explanation.verdict == decision.branch:
        return card
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
    return replace(card, sections=(Section(label="", parts=(said,)), *card.sections))
