"""The bridge's own entries of the ledger: what ran, and every kind of ground that was not reached.

Bridge layer. Counts come from the record (`fan_out_groups`) and the rowset, never from a second
reckoning; each kind of gap is one entry with its count and the first subjects concerned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from runbook_nb._json import REPEATED
from runbook_nb._rows import FrozenRows
from runbook_nb._text import MISSING, clip, counted, listed, show
from runbook_nb.coverage import Item, Ledger
from runbook_nb.record.judgements import judgements_in
from runbook_nb.record.log import FAILED, NOT_REACHED, OK, FanOut
from runbook_nb.record.redact import Redactor
from runbook_nb.record.shapes import facts_of
from runbook_nb.record.slots import reason_of, served_subject
from runbook_nb.rules.columns import Columns
from runbook_nb.rules.held import PlainColumn
from runbook_nb.rules.model import DECLINED_BRANCH, Unreadable
from runbook_nb.rules.notes import Note, notes_of
from runbook_nb.runbook.fans import FanOutGroup, ended_as
from runbook_nb.runbook.verdicts import Rowset

if TYPE_CHECKING:
    from runbook_nb.record.run import Run
    from runbook_nb.rules import RuleSet
    from runbook_nb.runbook.declare import Declaration

#: Subjects a gap names before it says how many more there are.
NAMED_SUBJECTS: Final = 10

#: Items of a fan-out that are looked at for their keys, where they are no columns.
LOOKED_AT: Final = 100

#: Longest reason quoted from a failed branch, in characters.
REASON_LENGTH: Final = 200


def bridge_ledger(
    declaration: Declaration,
    run: Run,
    groups: Sequence[FanOutGroup],
    rowset: Rowset | None,
    *,
    replaced: Mapping[str, int],
    failed_calls: Sequence[str] = (),
    notes: Sequence[Note] = (),
) -> Ledger:
    """Give the bridge's own part of the ledger.

    Parameters
    ----------
    declaration : Declaration
    run : Run
    groups : sequence of FanOutGroup
        The run's fan-outs.
    rowset : Rowset or None
        None for a runbook that gives no verdict rows.
    replaced : mapping
        Type names of values that JSON could not carry, with how often.
    failed_calls : sequence of str
        Tools whose call failed and was survived, one entry per call.
    notes : sequence of Note
        What the decisions together say about the rules; see `rule_notes`.
    """
    return Ledger(
        checked=list(_checked(declaration, run, groups, rowset)),
        not_checked=[
            *_not_checked(declaration, run, groups, rowset),
            *(Item(note.what, note.why) for note in notes),
            *_failed_calls(failed_calls),
            *_replaced(replaced),
        ],
        cannot_cover=list(_cannot_cover(declaration, run)),
    )


def _checked(
    declaration: Declaration, run: Run, groups: Sequence[FanOutGroup], rowset: Rowset | None
) -> Iterator[Item]:
    yield Item(
        f"the declared procedure '{run.name}' — {run.steps_executed} step(s) recorded"
        f"{_under(declaration)}",
        None if rowset is None else _rows_words(run, groups, len(rowset.rows)),
    )
    rules = declaration.rules
    stamped = None if rules is None else (rules.name, rules.version)
    for rule_set in _named_sets(run):
        if (rule_set.name, rule_set.version) != stamped:
            yield Item(f"decisions judged by rule set {rule_set.title}")
    for rule_set in _rule_sets(declaration, run):
        on = rule_set.unreadable
        if isinstance(on, Unreadable) and on.branch != DECLINED_BRANCH:
            of = f"rule set {rule_set.title}" if rule_set.title else "the rules"
            yield Item(
                f"values that could not be read were taken as '{on.branch}'",
                f"declared by {of}: {on.label or 'no reason given'}",
            )


def _rows_words(run: Run, groups: Sequence[FanOutGroup], rows: int) -> str:
    """Say how many rows there are, and that a decider stands behind each where one does."""
    judging = [group.counts.decided for group in groups if group.judges]
    root = run.walk.raw_own.facts.events
    passes = sum(judging) if judging else sum(e.code.kind in _DECIDED for e in root)
    if passes >= rows:
        return f"{rows} row(s), one decider pass per row"
    told = counted(passes, "decider pass", "decider passes")
    return f"{rows} row(s) written by the procedure, {told}"


#: Kinds of event by which a decider chose.
_DECIDED: Final = frozenset({"decision", "choice"})


def _under(declaration: Declaration) -> str:
    rules = declaration.rules
    return "" if rules is None else f" under {rules.name} {rules.version}"


def _named_sets(run: Run) -> list[RuleSet]:
    return [rule_set for rule_set in run.raw_rule_sets() if not rule_set.is_bare]


def _rule_sets(declaration: Declaration, run: Run) -> list[RuleSet]:
    sets = [*run.raw_rule_sets(), *filter(None, [declaration.rule_set])]
    return list(dict.fromkeys(sets))


def _cannot_cover(declaration: Declaration, run: Run) -> Iterator[Item]:
    for rule_set in _rule_sets(declaration, run):
        for outside in rule_set.outside:
            yield Item(outside.what, outside.why)


def _not_checked(
    declaration: Declaration,
    run: Run,
    groups: Sequence[FanOutGroup],
    rowset: Rowset | None,
) -> Iterator[Item]:
    if rowset is not None and rowset.declined:
        yield declined_gap(rowset.declined)
    for group in groups:
        yield from fan_out_gaps(group, run.redactor)
    yield from _failed_branches(run)
    if rowset is not None:
        yield from _row_gaps(rowset, groups)
    yield from _disagreement(declaration, run)


def declined_gap(rows: int) -> Item:
    """Give the entry for rows without a classification.

    Examples
    --------
    >>> declined_gap(2).what
    "2 row(s) that reached NO classification (verdict 'declined')"
    """
    return Item(
        f"{rows} row(s) that reached NO classification (verdict 'declined')",
        "the rules could not be read for them; they stay in the rowset with what is known, and "
        "nothing was guessed",
    )


def rule_notes(run: Run) -> tuple[Note, ...]:
    """Find what the decisions of a run together say about their rules."""
    return notes_of(judgements_in(run.walk), run.redactor, partial(_keys_in, run))


def _keys_in(run: Run) -> set[str]:
    """Give the keys that decisions could have read: of the items, else of the run's own state."""
    fans = [fan for fan, _ in run.walk.fans()]
    found = {key for key in run.raw[1] if isinstance(key, str)} if not fans else set()
    for fan in fans:
        names = getattr(fan.items, "names", None)
        if names is None:
            rows = islice(fan.items, LOOKED_AT)
            names = [key for row in rows if isinstance(row, Mapping) for key in row]
        found.update(name for name in names if isinstance(name, str))
    return found


#: Kinds of notes that say why nothing could be decided.
_BLOCKING: Final = frozenset({"never_there", "type_mismatch"})


def telling_note(notes: Iterable[Note]) -> Note | None:
    """Choose the note that says why most subjects could not be judged; None where none does."""
    blocking = [note for note in notes if note.kind in _BLOCKING and note.unread]
    return max(blocking, key=lambda note: note.unread, default=None)


def _failed_calls(tools: Sequence[str]) -> Iterator[Item]:
    # A source whose failure the procedure caught left no trace in its answer; here it does.
    for tool, times in Counter(tools).items():
        yield Item(
            f"what {show(tool)} would have answered: {counted(times, 'call')} to it failed",
            "the procedure went on without the answer",
        )


def _failed_branches(run: Run) -> Iterator[Item]:
    # A fork goes on without a branch that failed, so nothing but this says that it did.
    if {code.stage.kind for code in run.log.codes if code.kind == "fan_out"} <= {"fan_out"}:
        return
    found: dict[tuple[str, str], list[str]] = {}
    for fan, index, _ in run.walk.tracks():
        if not fan.is_fan_out and fan.status_number(index) == FAILED:
            reasons = found.setdefault((fan.stage.name, str(fan.items[index])), [])
            reasons.append(reason_of(fan, index))
    for (fork, branch), reasons in found.items():
        times = "" if len(reasons) == 1 else f", {len(reasons)} times"
        yield Item(
            f"what branch {show(branch)} of {show(fork)} would have found: it failed{times}",
            clip(run.redactor.text(reasons[0]), REASON_LENGTH),
        )


def _replaced(replaced: Mapping[str, int]) -> Iterator[Item]:
    for name, times in replaced.items():
        if name == REPEATED:
            yield Item(
                f"{times} value(s) whose key the answer writes like another's",
                "names are text in JSON, where 1 and '1' are one; of such values the last stays",
            )
            continue
        yield Item(
            f"{times} value(s) of type {name} that the answer could not carry",
            "JSON has no form for them; their type name stands in their place",
        )


def fan_out_gaps(group: FanOutGroup, redactor: Redactor) -> Iterator[Item]:
    """Yield one entry per kind of gap in a fan-out."""
    name = f"'{show(group.name)}'"
    empty = sum(1 for fan in group.executions if not len(fan))
    if empty:
        of = "" if len(group.executions) == 1 else f" in {empty} of {len(group.executions)} runs"
        yield Item(
            f"nothing was assessed by {name}: it was given no subject{of}",
            "an empty list of subjects is no finding about any of them",
        )
    missed = list(ended_as(group, NOT_REACHED)) if group.counts.not_reached else []
    past = [(fan, index) for fan, index in missed if index >= fan.cap]
    if past:
        yield Item(
            f"{len(past)} subject(s) of {name} not reached",
            f"past the cap of {past[0][0].cap} branches: {_named(past, redactor)}",
        )
    ended = [(fan, index) for fan, index in missed if index < fan.cap]
    if ended:
        yield Item(
            f"{len(ended)} subject(s) of {name} not reached before the run ended",
            f"{_reason(*ended[0], redactor)}: {_named(ended, redactor)}",
        )
    failed = list(ended_as(group, FAILED)) if group.counts.failed else []
    if failed:
        yield Item(
            f"{len(failed)} subject(s) of {name} whose branch failed",
            f"{_named(failed, redactor)}; the first: {_reason(*failed[0], redactor)}",
        )
    unnamed = [
        (fan, index)
        for fan in group.executions
        if fan.subject is not None
        for index in _unnamed_in(fan, fan.subject)
    ]
    if unnamed:
        places = ", ".join(str(index) for _, index in unnamed[:NAMED_SUBJECTS])
        more = len(unnamed) - NAMED_SUBJECTS
        yield Item(
            f"whom {len(unnamed)} subject(s) of {name} are about: they have no name",
            f"nothing stands under {show(unnamed[0][0].subject)!r} in item {places}"
            + (f" and {more} more" if more > 0 else ""),
        )
    if group.counts.undecided and group.decides:
        undecided = [(fan, index) for fan, index in ended_as(group, OK) if not _decided(fan, index)]
        yield Item(
            f"{len(undecided)} subject(s) of {name} that ended before a decision",
            f"their branch came to its end without reaching a decider: "
            f"{_named(undecided, redactor)}",
        )


#: Types of Arrow columns whose nulls are counted: in numbers NaN is one, too.
_TEXTS: Final = frozenset({"string", "large_string", "string_view"})


def _unnamed_in(fan: FanOut, subject: str) -> Iterable[int]:
    """Give the items of a fan-out that nothing names."""
    items = fan.items
    if isinstance(items, FrozenRows):
        told = items.under(subject)
        if type(None) not in set(map(type, told)):
            return ()
        return [index for index, name in enumerate(told) if name is None]
    if not isinstance(items, Columns):
        return [index for index in range(len(fan)) if fan.subject_of(index) is None]
    names = items.held(subject)
    if isinstance(names, PlainColumn) and not {type(None), type(MISSING)} & names.classes:
        return ()
    vector, arrow = names.vector(), names.arrow()
    if vector is not None:
        return () if vector.nulls is None else vector.nulls.nonzero()[0].tolist()
    if arrow is not None and not arrow.null_count and str(arrow.type) in _TEXTS:
        return ()
    return [index for index, name in enumerate(names) if name is None or name is MISSING]


def _decided(fan: FanOut, index: int) -> bool:
    shape = fan.shape(index)
    return shape is not None and facts_of(fan.log, shape).decision is not None


def _reason(fan: FanOut, index: int, redactor: Redactor) -> str:
    return clip(redactor.text(reason_of(fan, index)), REASON_LENGTH)


def _named(places: Sequence[tuple[FanOut, int]], redactor: Redactor) -> str:
    names = []
    for fan, index in islice(places, NAMED_SUBJECTS):
        subject = served_subject(redactor, fan, index)
        names.append(show(subject) if subject is not None else f"item {index}")
    more = len(places) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _row_gaps(rowset: Rowset, groups: Sequence[FanOutGroup]) -> Iterator[Item]:
    if rowset.unreadable is not None:
        yield Item(
            f"the verdict rows: the procedure left a {rowset.unreadable}, not a list of rows",
            "write a list of mappings, each with a text under 'verdict'",
        )
    if rowset.dropped:
        yield Item(
            f"{rowset.dropped} entry(s) of the verdict rows that could not be read",
            "an entry is a mapping with a text under 'verdict'; these were left out",
        )
    judging = [group.counts for group in groups if group.judges]
    decided = sum(c.decided for c in judging)
    # A subject without a decision may have a row that says declined; any other word is no verdict
    # the record knows of.
    told = len(rowset.rows) - rowset.declined
    totals = {counts.decided for counts in judging} | {counts.items for counts in judging}
    totals |= {decided, sum(c.items for c in judging)}
    if judging and (len(rowset.rows) not in totals or told > decided):
        yield Item(
            f"the rows do not match the record: {counted(len(rowset.rows), 'row')}, "
            f"{counted(decided, 'subject')} decided",
            "the rows are the procedure's own; the record says how many subjects a decider judged",
        )
    said = rowset.rows or rowset.dropped or rowset.unreadable is not None
    if not said and not any(group.judges or not group.counts.items for group in groups):
        yield Item(
            "nothing was assessed: the procedure wrote no verdict row",
            "an empty table is no finding",
        )


def _disagreement(declaration: Declaration, run: Run) -> Iterator[Item]:
    rules, declared = declaration.rules, declaration.rule_set
    judged = list(dict.fromkeys(_named_sets(run)))
    if rules is None or not judged:
        return
    alike = [s for s in judged if (s.name, s.version) == (rules.name, rules.version)]
    same = declared in judged if declared is not None else bool(alike)
    others = [rule_set for rule_set in alike if declared is not None and rule_set != declared]
    if same and not others and len(alike) < 2:
        return
    names = listed(rule_set.title for rule_set in (judged if not same else alike))
    differs = " of other content" if others else " of different contents" if alike[1:] else ""
    yield Item(
        f"whether the stamp {rules.name} {rules.version} fits: the decisions were judged by "
        f"{names}{differs}",
        "the stamp on an answer is what the runbook declares; the record says what judged",
    )


def ledger_sentence(
    declaration: Declaration, run: Run, rowset: Rowset | None, not_checked: int
) -> str:
    """Give the ledger's one sentence."""
    parts = [f"Ran '{run.name}'{_under(declaration)} — {run.steps_executed} step(s) recorded"]
    if rowset is not None:
        rows = f"{len(rowset.rows)} row(s) assessed"
        if rowset.declined:
            rows += f", {rowset.declined} declined (no classification reached)"
        parts.append(rows)
    if not_checked:
        parts.append(f"{not_checked} not-checked item(s) declared")
    return "; ".join(parts) + "."
