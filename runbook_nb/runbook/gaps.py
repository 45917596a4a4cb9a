"""The bridge's own entries of the ledger: what ran, and every kind of ground that was not reached.

Bridge layer. Counts come from the record (`fan_out_groups`) and the rowset, never from a second
reckoning; each kind of gap is one entry with its count and the first subjects concerned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from runbook_nb._json import REPEATED
from runbook_nb._rows import FrozenRows
from runbook_nb._text import MISSING, clip, counted, listed, show
from runbook_nb.coverage import Item, Ledger
from runbook_nb.record.log import FAILED, NOT_REACHED, OK, FanOut
from runbook_nb.record.redact import Redactor
from runbook_nb.record.shapes import facts_of
from runbook_nb.record.slots import reason_of, served_subject
from runbook_nb.rules.columns import Columns
from runbook_nb.rules.held import PlainColumn
from runbook_nb.rules.model import DECLINED_BRANCH, Unreadable
from runbook_nb.runbook.fans import FanOutGroup, ended_as
from runbook_nb.runbook.verdicts import Rowset

if TYPE_CHECKING:
    from runbook_nb.record.run import Run
    from runbook_nb.rules import RuleSet
    from runbook_nb.rules.notes import Note
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
    misspelt: Iterable[tuple[str, str, str]] = (),
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
    misspelt : iterable of (str, str, str)
        Inputs a call was given and its tool does not declare: the tool, the input, and which one
        was likely meant.
    notes : sequence of Note
        What the decisions together say about the rules; see `rule_notes`.
    """
    return Ledger(
        checked=list(_checked(declaration, run, groups, rowset)),
        not_checked=[
            *_not_checked(declaration, run, groups, rowset),
            *(Item(note.what, note.why) for note in notes),
            *_failed_calls(failed_calls),
            *_misspelt(misspelt, run.redactor),
            *_replaced(replaced),
        ],
        cannot_cover=list(_cannot_cover(declaration, run)),
    )


def _checked(
    declaration: Declaration, run: Run, groups: Sequence[FanOutGroup], rowset: Rowset | None
) -> Iterator[Item]:
    passes = None if rowset is None else _passes(run, groups)
    yield Item(
        procedure_words(run.name, run.steps_executed, _under(declaration)),
        None if rowset is None else rows_words(len(rowset.rows), passes or 0),
    )
    rules = declaration.rules
    stamped = None if rules is None else (rules.name, rules.version)
    for rule_set in _named_sets(run):
        if (rule_set.name, rule_set.version) != stamped:
            yield judged_by(rule_set.title)
    for rule_set in _rule_sets(declaration, run):
        yield from taken_as(rule_set)


def procedure_words(name: str, steps: int, under: str) -> str:
    """Say which procedure ran, as the ledger lists it."""
    return f"the declared procedure '{name}' — {steps} step(s) recorded{under}"


def judged_by(title: str) -> Item:
    """Give the entry for a rule set that judged and is not the declared one."""
    return Item(f"decisions judged by rule set {title}")


def taken_as(rules: RuleSet) -> Iterator[Item]:
    """Give the entry for rules that take what cannot be read as a verdict of theirs."""
    on = rules.unreadable
    if isinstance(on, Unreadable) and on.branch != DECLINED_BRANCH:
        of = f"rule set {rules.title}" if rules.title else "the rules"
        yield Item(
            f"values that could not be read were taken as '{on.branch}'",
            f"declared by {of}: {on.label or 'no reason given'}",
        )


def _passes(run: Run, groups: Sequence[FanOutGroup]) -> int:
    """Count the decisions behind the rows."""
    judging = [group.counts.decided for group in groups if group.judges]
    root = run.walk.raw_own.facts.events
    return sum(judging) if judging else sum(e.code.kind in _DECIDED for e in root)


def rows_words(rows: int, passes: int) -> str:
    """Say how many rows there are, and that a decider stands behind each where one does."""
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
    judged, declared = run.raw_rule_sets(), declaration.rule_set
    return judged if declared is None or declared in judged else [*judged, declared]


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
    if all(path.plain for _, path in run.walk.decision_paths()[0]):
        return ()
    from runbook_nb.record.judgements import judgements_in
    from runbook_nb.rules.notes import notes_of

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
    for tool, times in Counter(tools).items() if tools else ():
        yield Item(
            f"what {show(tool)} would have answered: {counted(times, 'call')} to it failed",
            "the procedure went on without the answer",
        )


def _misspelt(inputs: Iterable[tuple[str, str, str]], redactor: Redactor) -> Iterator[Item]:
    for tool, name, meant in dict.fromkeys(inputs):
        yield Item(
            f"whether {show(tool)} read the input {show(redactor.text(name))!r}: it declares none "
            "of that name",
            f"did you mean {show(meant)!r}? A schema that says additionalProperties: false "
            "refuses such an input",
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


class Ended(NamedTuple):
    """Subjects of a fan-out that ended alike.

    Attributes
    ----------
    subjects : int
    names : str
        The first of them by name, and how many more.
    reason : str
        Why the first did.
    cap : int
        Of subjects past a cap, what it is.
    """

    subjects: int
    names: str
    reason: str = ""
    cap: int = 0


class FanOutGaps(NamedTuple):
    """What a fan-out left open; None for a kind of gap there is not.

    Attributes
    ----------
    empty : tuple of (int, int) or None
        How many of how many executions were given no subject.
    past, ended, failed, undecided : Ended or None
    unnamed : tuple of (str, tuple of int) or None
        The key that names subjects, and the items that have nothing under it.
    """

    empty: tuple[int, int] | None = None
    past: Ended | None = None
    ended: Ended | None = None
    failed: Ended | None = None
    unnamed: tuple[str, Sequence[int]] | None = None
    undecided: Ended | None = None


def fan_out_gaps(group: FanOutGroup, redactor: Redactor) -> Iterator[Item]:
    """Yield one entry per kind of gap in a fan-out."""
    return gap_items(group.name, _gaps_in(group, redactor))


def gap_items(fan_out: str, gaps: FanOutGaps) -> Iterator[Item]:
    """Write one entry per kind of gap.

    Examples
    --------
    >>> [item.what for item in gap_items("Each", FanOutGaps(past=Ended(2, "a, b", cap=1)))]
    ["2 subject(s) of 'Each' not reached"]
    """
    name = f"'{show(fan_out)}'"
    if gaps.empty is not None:
        empty, executions = gaps.empty
        of = "" if executions == 1 else f" in {empty} of {executions} runs"
        yield Item(
            f"nothing was assessed by {name}: it was given no subject{of}",
            "an empty list of subjects is no finding about any of them",
        )
    if (past := gaps.past) is not None:
        yield Item(
            f"{past.subjects} subject(s) of {name} not reached",
            f"past the cap of {past.cap} branches: {past.names}",
        )
    if (ended := gaps.ended) is not None:
        yield Item(
            f"{ended.subjects} subject(s) of {name} not reached before the run ended",
            f"{ended.reason}: {ended.names}",
        )
    if (failed := gaps.failed) is not None:
        yield Item(
            f"{failed.subjects} subject(s) of {name} whose branch failed",
            f"{failed.names}; the first: {failed.reason}",
        )
    if gaps.unnamed is not None:
        key, items = gaps.unnamed
        places = ", ".join(map(str, items[:NAMED_SUBJECTS]))
        more = len(items) - NAMED_SUBJECTS
        yield Item(
            f"whom {len(items)} subject(s) of {name} are about: they have no name",
            f"nothing stands under {show(key)!r} in item {places}"
            + (f" and {more} more" if more > 0 else ""),
        )
    if (undecided := gaps.undecided) is not None:
        yield Item(
            f"{undecided.subjects} subject(s) of {name} that ended before a decision",
            f"their branch came to its end without reaching a decider: {undecided.names}",
        )


def _gaps_in(group: FanOutGroup, redactor: Redactor) -> FanOutGaps:
    def alike(found: Sequence[tuple[FanOut, int]]) -> Ended | None:
        if not found:
            return None
        names, reason = _named(found, redactor), _reason(*found[0], redactor)
        return Ended(len(found), names, reason, found[0][0].cap)

    empty = sum(1 for fan in group.executions if not len(fan))
    missed = list(ended_as(group, NOT_REACHED)) if group.counts.not_reached else []
    unnamed = [
        (fan.subject, index)
        for fan in group.executions
        if fan.subject is not None
        for index in _unnamed_in(fan, fan.subject)
    ]
    undecided: list[tuple[FanOut, int]] = []
    if group.counts.undecided and group.decides:
        undecided = [(fan, index) for fan, index in ended_as(group, OK) if not _decided(fan, index)]
    return FanOutGaps(
        empty=(empty, len(group.executions)) if empty else None,
        past=alike([(fan, index) for fan, index in missed if index >= fan.cap]),
        ended=alike([(fan, index) for fan, index in missed if index < fan.cap]),
        failed=alike(list(ended_as(group, FAILED)) if group.counts.failed else []),
        unnamed=(unnamed[0][0], [index for _, index in unnamed]) if unnamed else None,
        undecided=None if not undecided else Ended(len(undecided), _named(undecided, redactor)),
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
    first = islice(places, NAMED_SUBJECTS)
    named = [(served_subject(redactor, fan, index), index) for fan, index in first]
    return names_words(named, len(places))


def names_words(first: Sequence[tuple[Any, int]], total: int) -> str:
    """Name the first of some subjects, or number them where they have no name.

    Examples
    --------
    >>> names_words([("a", 0), (None, 1)], 3)
    'a, item 1 and 1 more'
    """
    names = [show(subject) if subject is not None else f"item {n}" for subject, n in first]
    more = total - len(names)
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
    yield from rows_mismatch(len(rowset.rows), rowset.declined, groups)
    said = rowset.rows or rowset.dropped or rowset.unreadable is not None
    if not said and not any(group.judges or not group.counts.items for group in groups):
        yield Item(
            "nothing was assessed: the procedure wrote no verdict row",
            "an empty table is no finding",
        )


def rows_mismatch(rows: int, declined: int, groups: Sequence[FanOutGroup]) -> Iterator[Item]:
    """Give the entry for rows that are not as many as the record says, where they are not."""
    judging = [group.counts for group in groups if group.judges]
    decided = sum(c.decided for c in judging)
    # A subject without a decision may have a row that says declined; any other word is no verdict
    # the record knows of.
    told = rows - declined
    totals = {counts.decided for counts in judging} | {counts.items for counts in judging}
    totals |= {decided, sum(c.items for c in judging)}
    if judging and (rows not in totals or told > decided):
        yield Item(
            f"the rows do not match the record: {counted(rows, 'row')}, "
            f"{counted(decided, 'subject')} decided",
            "the rows are the procedure's own; the record says how many subjects a decider judged",
        )


def _disagreement(declaration: Declaration, run: Run) -> Iterator[Item]:
    rules, declared = declaration.rules, declaration.rule_set
    judged = _named_sets(run)
    if rules is None or not judged:
        return
    alike = [s for s in judged if (s.name, s.version) == (rules.name, rules.version)]
    same = declared in judged if declared is not None else bool(alike)
    others = [rule_set for rule_set in alike if declared is not None and rule_set != declared]
    if same and not others and len(alike) < 2:
        return
    names = listed(rule_set.title for rule_set in (judged if not same else alike))
    differs = " of other content" if others else " of different contents" if alike[1:] else ""
    yield stamp_gap(f"{rules.name} {rules.version}", f"{names}{differs}")


def stamp_gap(stamp: str, judged: str) -> Item:
    """Give the entry for a stamp that is not that of the rules which judged."""
    return Item(
        f"whether the stamp {stamp} fits: the decisions were judged by {judged}",
        "the stamp on an answer is what the runbook declares; the record says what judged",
    )


def ledger_sentence(
    declaration: Declaration, run: Run, rowset: Rowset | None, not_checked: int
) -> str:
    """Give the ledger's one sentence."""
    rows = None if rowset is None else (len(rowset.rows), rowset.declined)
    return sentence_of(run.name, run.steps_executed, _under(declaration), rows, not_checked)


def sentence_of(
    name: str, steps: int, under: str, rows: tuple[int, int] | None, not_checked: int
) -> str:
    """Write the ledger's sentence.

    Parameters
    ----------
    name : str
        The procedure.
    steps : int
        Stage executions.
    under : str
        ``" under …"`` the declared rules; empty without any.
    rows : tuple of (int, int) or None
        How many rows there are, and how many of them were declined; None for no rowset.
    not_checked : int
        Entries of the list.

    Examples
    --------
    >>> sentence_of("triage", 5, " under age v1", (1, 0), 0)
    "Ran 'triage' under age v1 — 5 step(s) recorded; 1 row(s) assessed."
    """
    parts = [f"Ran '{name}'{under} — {steps} step(s) recorded"]
    if rows is not None:
        told = f"{rows[0]} row(s) assessed"
        if rows[1]:
            told += f", {rows[1]} declined (no classification reached)"
        parts.append(told)
    if not_checked:
        parts.append(f"{not_checked} not-checked item(s) declared")
    return "; ".join(parts) + "."
