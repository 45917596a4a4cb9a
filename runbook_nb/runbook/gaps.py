"""The bridge's own entries of the ledger: what ran, and every kind of ground that was not reached.

Bridge layer. Counts come from the record (`count_fan_out`) and the rowset, never from a second
reckoning; each gap is one entry with its count and the first subjects concerned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._text import counted, listed, show
from runbook_nb.coverage import Item, Ledger
from runbook_nb.record.counts import FanOutCounts, count_fan_out
from runbook_nb.record.log import FAILED, NOT_REACHED, OK, FanOut
from runbook_nb.record.shapes import facts_of
from runbook_nb.record.slots import reason_of
from runbook_nb.rules.model import DECLINED_BRANCH, Unreadable
from runbook_nb.rules.notes import notes_of
from runbook_nb.runbook.verdicts import Rowset

if TYPE_CHECKING:
    from runbook_nb.record.run import Run
    from runbook_nb.runbook.declare import Declaration

#: Subjects a gap names before it says how many more there are.
NAMED_SUBJECTS: Final = 10


def bridge_ledger(
    declaration: Declaration, run: Run, rowset: Rowset | None, replaced: Mapping[str, int]
) -> Ledger:
    """Give the bridge's own part of the ledger.

    Parameters
    ----------
    declaration : Declaration
    run : Run
    rowset : Rowset or None
        None for a runbook that gives no verdict rows.
    replaced : mapping
        Type names of report values that JSON could not carry, with how often.
    """
    return Ledger(
        checked=list(_checked(declaration, run, rowset)),
        not_checked=list(_not_checked(declaration, run, rowset, replaced)),
        cannot_cover=list(_cannot_cover(declaration, run)),
    )


def _checked(declaration: Declaration, run: Run, rowset: Rowset | None) -> Iterator[Item]:
    rules = declaration.rules
    under = f" under {rules.name} {rules.version}" if rules is not None else ""
    steps = run.steps_executed
    yield Item(
        f"the declared procedure '{run.name}' — {steps} step(s) recorded{under}",
        None if rowset is None else f"{len(rowset.rows)} row(s), one decider pass per row",
    )
    stamped = None if rules is None else (rules.name, rules.version)
    for rule_set in run.rule_sets():
        if not rule_set.is_bare and (rule_set.name, rule_set.version) != stamped:
            yield Item(f"decisions judged by rule set {rule_set.name} {rule_set.version}")
    for rule_set in _rule_sets(declaration, run):
        on = rule_set.unreadable
        if isinstance(on, Unreadable) and on.branch != DECLINED_BRANCH:
            yield Item(
                f"values that could not be read were taken as '{on.branch}'",
                f"declared by rule set {rule_set.title}: {on.label or 'no reason given'}",
            )


def _rule_sets(declaration: Declaration, run: Run) -> list[Any]:
    sets = list(run.rule_sets())
    if declaration.rule_set is not None and declaration.rule_set not in sets:
        sets.append(declaration.rule_set)
    return sets


def _cannot_cover(declaration: Declaration, run: Run) -> Iterator[Item]:
    for rule_set in _rule_sets(declaration, run):
        for outside in rule_set.outside:
            yield Item(outside.what, outside.why)


def _not_checked(
    declaration: Declaration, run: Run, rowset: Rowset | None, replaced: Mapping[str, int]
) -> Iterator[Item]:
    if rowset is not None:
        yield from _declined(rowset)
    fans = list(run.log.fan_outs())
    for fan in fans:
        yield from fan_out_gaps(run, fan)
    if rowset is not None:
        yield from _row_gaps(run, rowset)
    yield from _disagreement(declaration, run)
    for note in notes_of(_judgements(run), run.redactor):
        yield Item(note.what, note.why)
    for name, times in {**(rowset.replaced if rowset else {}), **replaced}.items():
        yield Item(
            f"{times} value(s) of type {name} that the answer could not carry",
            "JSON has no form for them; their type name stands in their place",
        )


def _declined(rowset: Rowset) -> Iterator[Item]:
    if rowset.declined:
        yield Item(
            f"{rowset.declined} row(s) that reached NO classification (verdict 'declined')",
            "the rules could not be read for them; they stay in the rowset with what is known, and "
            "nothing was guessed",
        )


def fan_out_gaps(run: Run, fan: FanOut) -> Iterator[Item]:
    """Yield one entry per kind of gap in a fan-out."""
    counts = count_fan_out(fan)
    name = f"'{show(fan.stage.name)}'"
    if not counts.items:
        yield Item(
            f"nothing was assessed by {name}: it was given no subject",
            "an empty list of subjects is no finding about any of them",
        )
    past = range(min(fan.cap, len(fan)), len(fan))
    if past:
        yield Item(
            f"{len(past)} subject(s) of {name} not reached",
            f"past the cap of {fan.cap} branches: {_named(run, fan, past)}",
        )
    ended = [i for i in range(min(fan.cap, len(fan))) if fan.statuses[i] == NOT_REACHED]
    if ended:
        yield Item(
            f"{len(ended)} subject(s) of {name} not reached before the run ended",
            f"{run.redactor.text(reason_of(fan, ended[0]))}: {_named(run, fan, ended)}",
        )
    failed = [i for i in range(len(fan)) if fan.statuses[i] == FAILED]
    if failed:
        yield Item(
            f"{len(failed)} subject(s) of {name} whose branch failed",
            f"{_named(run, fan, failed)}; the first: "
            f"{run.redactor.text(reason_of(fan, failed[0]))}",
        )
    if counts.undecided and _has_decider(run, fan, counts):
        undecided = [i for i in range(len(fan)) if fan.statuses[i] == OK and not _decided(fan, i)]
        yield Item(
            f"{len(undecided)} subject(s) of {name} that ended before a decision",
            f"their branch ran to its end without reaching a decider: "
            f"{_named(run, fan, undecided)}",
        )


def _decided(fan: FanOut, index: int) -> bool:
    shape = fan.shape(index)
    return shape is not None and facts_of(fan.log, shape).decision is not None


def _has_decider(run: Run, fan: FanOut, counts: FanOutCounts) -> bool:
    inside = f"{fan.stage.id}/"
    return counts.has_decider or any(
        node.kind == "decider" and node.key.startswith(inside) for node in run.structure.nodes
    )


def _named(run: Run, fan: FanOut, indices: Sequence[int]) -> str:
    names = []
    for index in indices[:NAMED_SUBJECTS]:
        subject = run.redactor.scrub(fan.subject_of(index))
        names.append(show(subject) if subject is not None else f"item {index}")
    more = len(indices) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _row_gaps(run: Run, rowset: Rowset) -> Iterator[Item]:
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
    fans = [count_fan_out(fan) for fan in run.log.fan_outs()]
    fans = [counts for counts in fans if counts.has_decider]
    recorded = sum(counts.decided for counts in fans)
    everything = sum(counts.items for counts in fans)
    if fans and len(rowset.rows) not in (recorded, everything):
        yield Item(
            f"the rows do not match the record: {len(rowset.rows)} row(s), "
            f"{counted(recorded, 'subject')} decided",
            "the rows are the procedure's own; the record says how many subjects a decider judged",
        )
    if not rowset.rows and not fans and not rowset.dropped and rowset.unreadable is None:
        yield Item(
            "nothing was assessed: the procedure wrote no verdict row",
            "an empty table is no finding",
        )


def _disagreement(declaration: Declaration, run: Run) -> Iterator[Item]:
    rules = declaration.rules
    judged = [s for s in run.rule_sets() if not s.is_bare]
    if rules is None or not judged:
        return
    if declaration.rule_set is not None:
        same = declaration.rule_set in judged
        others = [s for s in judged if s != declaration.rule_set]
    else:
        same = any((s.name, s.version) == (rules.name, rules.version) for s in judged)
        others = []
    if not same:
        names = listed(f"{s.name} {s.version}" for s in judged)
        differs = any((s.name, s.version) == (rules.name, rules.version) for s in others)
        yield Item(
            f"whether the stamp {rules.name} {rules.version} fits: the decisions were judged by "
            f"{names}" + (" of other content" if differs else ""),
            "the stamp on an answer is what the runbook declares; the record says what judged",
        )


def _judgements(run: Run) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    for recorded in run.walk.iter_decisions():
        yield recorded.decision.path, recorded.decision.values


def ledger_sentence(
    declaration: Declaration, run: Run, rowset: Rowset | None, not_checked: int
) -> str:
    """Give the ledger's one sentence."""
    rules = declaration.rules
    under = f" under {rules.name} {rules.version}" if rules is not None else ""
    parts = [f"Ran '{run.name}'{under} — {run.steps_executed} step(s) recorded"]
    if rowset is not None:
        rows = f"{len(rowset.rows)} row(s) assessed"
        if rowset.declined:
            rows += f", {rowset.declined} declined (no classification reached)"
        parts.append(rows)
    if not_checked:
        parts.append(f"{not_checked} not-checked item(s) declared")
    return "; ".join(parts) + "."
