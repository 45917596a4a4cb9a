"""Claims about the coverage ledger: its sentence, its counts, and the entries the bridge made.

Bridge layer. Which entries there must be is worked out anew, in the words the bridge itself has for
them. Entries of the author, and those about what no copy carries, cannot be checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from runbook_nb._text import clip, counted, listed
from runbook_nb.coverage import Item
from runbook_nb.coverage.declare import COVERAGE_NOTE
from runbook_nb.record.claims import HIDDEN, NOTHING_ELSE, Claims, Place, agrees
from runbook_nb.record.redact import PLACEHOLDER
from runbook_nb.runbook.claims_subjects import gap_kinds
from runbook_nb.runbook.fans import FanOutGroup
from runbook_nb.runbook.gaps import (
    NAMED_SUBJECTS,
    REASON_LENGTH,
    Ended,
    FanOutGaps,
    declined_gap,
    fan_out_gaps,
    gap_items,
    judged_by,
    names_words,
    procedure_words,
    rows_mismatch,
    rows_words,
    sentence_of,
    stamp_gap,
    taken_as,
    telling_note,
)
from runbook_nb.runbook.grounds import ACCOUNTED, Ground
from runbook_nb.runbook.verdicts import DECLINED_VERDICT

LISTS: Final = ("checked", "not_checked", "cannot_cover")

_SENTENCE: Final = re.compile(
    r"Ran '(?P<name>.*)'(?P<under> under .*?)? — (?P<steps>\d+) step\(s\)"
)
_PROCEDURE: Final = re.compile(
    r"the declared procedure '(?P<name>.*)' — (?P<steps>\d+) step\(s\) recorded"
    r"(?P<under> under .*)?"
)

#: Beginnings of the bridge's own entries -> why a copy cannot work them out where it cannot.
_OWN: Final = (
    (re.compile(r"what .* would have answered: \d+ calls? to it failed"), "calls are not carried"),
    (re.compile(r"whether .* read the input .*: it declares none"), "calls are not carried"),
    (re.compile(r"what branch .* would have found: it failed"), "the record is not carried"),
    (re.compile(r"\d+ value\(s\) of type .* that the answer could not carry"), "they are gone"),
    (re.compile(r"\d+ value\(s\) whose key the answer writes"), "they are gone"),
    (re.compile(r"the verdict rows: the procedure left a "), "it is not carried"),
    (re.compile(r"\d+ entry\(s\) of the verdict rows that could not"), "they are not carried"),
)


class Expected(NamedTuple):
    """An entry there must be.

    Attributes
    ----------
    section : str
        The list it is in.
    what : str
    why : str, tuple of str or None
        Several where a copy does not say which of them it is.
    basis : str
        What it was worked out from.
    whole : bool
        Whether ``why`` is known as well.
    """

    section: str
    what: str
    why: str | tuple[str, ...] | None
    basis: str
    whole: bool = True


def claim_ledger(ground: Ground, claims: Claims) -> None:
    """Claim the ledger's sentence, note, counts and entries."""
    coverage = ground.coverage
    place: Place = ("af_coverage", "note")
    told = "what the three lists say and do not say"
    claims.check(
        "ledger.note", told, coverage.get("note"), COVERAGE_NOTE, "the words of this version", place
    )
    _sentence(ground, claims)
    expected = [*_expected(ground), *_accounted(ground)]
    for section in LISTS:
        _entries(ground, claims, section, [one for one in expected if one.section == section])
    _telling(ground, claims)


def _accounted(ground: Ground) -> Iterator[Expected]:
    """Yield the entries that the record of the procedure asks for."""
    covered = ground.account.get("coverage", {})
    for section in LISTS:
        for item in covered.get(section, ()):
            yield Expected(section, item["what"], item.get("why"), ACCOUNTED)


# --- the sentence -------------------------------------------------------------------------------


def _sentence(ground: Ground, claims: Claims) -> None:
    found, place = ground.coverage.get("sentence"), ("af_coverage", "sentence")
    if found is None:
        return
    name, under = procedure_of(ground)
    if name is None:
        claims.unchecked("ledger.sentence", str(found), NOTHING_ELSE, place)
        return
    rows = None
    if ground.has_rows:
        rows = (_total(ground), _declined(ground))
        if rows[1] is None:
            said = re.search(rf"(\d+) (?:declined|{re.escape(PLACEHOLDER)}) \(", str(found))
            rows = (rows[0], int(said[1]) if said else 0)
    steps = ground.walk.get("steps_executed")
    gaps = len(_list(ground, "not_checked"))
    expected = sentence_of(name, steps if type(steps) is int else -1, under, rows, gaps)  # type: ignore[arg-type]
    basis = "the record" if ground.live else "the counters, the ledger's lists and the walk"
    claims.check("ledger.sentence", str(found), found, expected, basis, place)


def procedure_of(ground: Ground) -> tuple[str | None, str]:
    """Give the procedure's name and `` under …`` its rules, from what is not the sentence."""
    if ground.dossier is not None:
        stamp = ground.dossier.stamp
        return ground.dossier.procedure, "" if stamp is None else f" under {' '.join(stamp)}"
    for item in _list(ground, "checked"):
        said = _PROCEDURE.fullmatch(str(item.get("what", "")))
        if said is not None:
            return said["name"], said["under"] or ""
    return None, ""


def _total(ground: Ground) -> int:
    return ground.total if ground.dossier is None else ground.dossier.rows_total


def _declined(ground: Ground) -> int | None:
    """Count the declined rows, beyond any cap; None where not all are held, or words are hidden."""
    if _hides_words(ground):
        return None
    if ground.holds_rows:
        return ground.word_counts.get(DECLINED_VERDICT, 0)
    groups = ground.judging
    decided = sum(group.counts.decided for group in groups)
    if groups and decided == _total(ground) and ground.speaks_branches:
        return sum(group.counts.by_branch.get(DECLINED_VERDICT, 0) for group in groups)
    return None


def _hides_words(ground: Ground) -> bool:
    return any(PLACEHOLDER in word for word in ground.word_counts)


def _list(ground: Ground, section: str) -> list[Mapping[str, Any]]:
    found = ground.coverage.get(section, ())
    return [item for item in found if isinstance(item, Mapping)]


# --- the entries --------------------------------------------------------------------------------


def _entries(ground: Ground, claims: Claims, section: str, expected: Sequence[Expected]) -> None:
    items = _list(ground, section)
    left = dict(enumerate(items))
    for one in expected:
        at = next((n for n, item in left.items() if agrees(item.get("what"), one.what)), None)
        if at is not None:
            item = left.pop(at)
            _entry(claims, section, at, item, one)
            continue
        near = _nearest(left, one)
        found = None if near is None else left.pop(near).get("what")
        covered = ("af_coverage", section) if near is None else ("af_coverage", section, near)
        claims.settle(
            f"ledger.{section}[{'missing' if near is None else near}]",
            one.what,
            False,
            one.basis,
            covered,
            told=(found, one.what),
        )
    for at, item in left.items():
        _other(ground, claims, section, at, item)


def _entry(claims: Claims, section: str, at: int, item: Mapping[str, Any], one: Expected) -> None:
    base: Place = ("af_coverage", section, at)
    found, id_ = item.get("why"), f"ledger.{section}[{at}]"
    if not one.whole:
        claims.settle(id_, one.what, True, one.basis, (*base, "what"))
        claims.unchecked(
            f"{id_}.why", str(found), "what it rests on is not carried", (*base, "why")
        )
        return
    wanted = one.why if isinstance(one.why, tuple) else (one.why,)
    holds = any(agrees(found, why) for why in wanted)
    claims.settle(id_, one.what, holds, one.basis, base, told=(found, wanted[0]))


def _nearest(left: Mapping[int, Mapping[str, Any]], one: Expected) -> int | None:
    """Give the entry that stands where the expected one should: of like words, else like reason."""
    shape = _shape(one.what)
    for at, item in left.items():
        if _shape(str(item.get("what", ""))) == shape:
            return at
    for at, item in left.items():
        if one.why is not None and item.get("why") == one.why:
            return at
    return None


def _shape(text: str) -> str:
    return re.sub(r"\d+", "0", text)


def _other(ground: Ground, claims: Claims, section: str, at: int, item: Mapping[str, Any]) -> None:
    what = str(item.get("what", ""))
    id_, base = f"ledger.{section}[{at}]", ("af_coverage", section, at)
    for pattern, reason in _OWN:
        if pattern.match(what):
            claims.unchecked(id_, what, reason, base)
            return
    if _hides_words(ground) and _UNCLASSIFIED.match(what):
        claims.unchecked(id_, what, f"the verdicts are {HIDDEN}", base)
        return
    if (ground.live or ground.complete) and _is_own(what) and section == "not_checked":
        claims.settle(
            id_, what, False, "what became of each subject", base, told=(what, "no such entry")
        )
        return
    claims.unchecked(id_, what, f"it is declared by the author or a tool, and {NOTHING_ELSE}", base)


_UNCLASSIFIED: Final = re.compile(r"\d+ row\(s\) that reached NO classification")
#: The bridge's own entries that are worked out anew wherever all subjects are held.
_WORKED_OUT: Final = (
    _UNCLASSIFIED,
    re.compile(
        r"\d+ subject\(s\) of '.*' (not reached|whose branch failed|that ended before a decision)"
    ),
)


def _is_own(what: str) -> bool:
    return any(pattern.match(what) for pattern in _WORKED_OUT)


# --- which there must be ------------------------------------------------------------------------


def _expected(ground: Ground) -> Iterator[Expected]:
    yield from _expected_procedure(ground)
    if ground.has_rows and (declined := _declined(ground)):
        item = declined_gap(declined)
        basis = "the rows" if ground.holds_rows else "the counts of the fan-outs"
        yield Expected("not_checked", item.what, item.why, basis)
    dossier = ground.dossier
    if dossier is None:
        return
    rules_basis = "the rules that judged"
    for source in dossier.sources:
        title = f"{source.name} {source.version}".strip()
        named = bool(source.name) and not (source.judged is not None and source.judged.is_bare)
        if named and (source.name, source.version) != dossier.stamp:
            item = judged_by(title)
            yield Expected("checked", item.what, item.why, rules_basis)
        if source.rules is not None:
            for item in taken_as(source.judged if ground.live and source.judged else source.rules):
                if item.what == f"values that could not be read were taken as '{PLACEHOLDER}'":
                    continue  # whether the word is that of no verdict is hidden
                yield Expected("checked", item.what, item.why, rules_basis)
            for outside in source.rules.outside:
                yield Expected("cannot_cover", outside.what, outside.why, rules_basis)
    yield from _expected_gaps(ground, dossier.fan_outs)


def _expected_procedure(ground: Ground) -> Iterator[Expected]:
    name, under = procedure_of(ground)
    steps = ground.walk.get("steps_executed")
    if ground.dossier is None:
        said = _SENTENCE.match(str(ground.coverage.get("sentence", "")))
        name, under = (None, "") if said is None else (said["name"], said["under"] or "")
    if name is None or type(steps) is not int:
        return
    basis = "the record" if ground.live else "the dossier and the walk's counters"
    what = procedure_words(name, steps, under)
    if not ground.has_rows:
        yield Expected("checked", what, None, basis)
        return
    passes = _passes(ground)
    why = None if passes is None else rows_words(_total(ground), passes)
    yield Expected("checked", what, why, basis, whole=passes is not None)


def _passes(ground: Ground) -> int | None:
    """Count the decisions behind the rows; None where no fan-out judges and no record is held."""
    if ground.judging:
        return sum(group.counts.decided for group in ground.judging)
    run = ground.envelope.run
    if run is not None:
        events = run.walk.raw_own.facts.events
        return sum(one.code.kind in ("decision", "choice") for one in events)
    return None


def _expected_gaps(ground: Ground, groups: Sequence[FanOutGroup]) -> Iterator[Expected]:
    basis = "the record" if ground.live else "what became of each subject"
    dossier, run = ground.dossier, ground.envelope.run
    assert dossier is not None  # noqa: S101 - asked where there is one
    items: list[Item] = []
    if run is not None:
        items += chain.from_iterable(fan_out_gaps(group, run.redactor) for group in groups)
    elif ground.complete:
        for group in groups:
            told = zip(
                *(_carried_gaps(ground, group, named) for named in (True, False)), strict=True
            )
            for one, other in told:
                whys = (str(one.why), str(other.why))
                yield Expected("not_checked", one.what, whys, basis)
    if ground.has_rows and (declined := _declined(ground)) is not None:
        items += rows_mismatch(_total(ground), declined, groups)
    yield from (Expected("not_checked", item.what, item.why, basis) for item in items)
    titles = [(source.name, source.version) for source in dossier.sources if source.name]
    if dossier.stamp is not None and titles and dossier.stamp not in titles:
        item = stamp_gap(" ".join(dossier.stamp), listed(" ".join(title) for title in titles))
        yield Expected("not_checked", item.what, item.why, "the rules that judged")
    for note in ground.notes:
        sure = run is not None or note.kind != "never_there"
        yield Expected("not_checked", note.what, note.why, "the decisions", whole=sure)


def _carried_gaps(ground: Ground, group: FanOutGroup, named: bool) -> Iterable[Item]:
    """Work out what a fan-out left open from the subjects of a copy.

    Where no key is declared, items that are no mappings are their own names, and others have
    none: a copy does not tell which they were.
    """
    assert ground.dossier is not None  # noqa: S101 - asked where there is one
    node = ground.dossier.structure.node(group.key)
    key = None if node is None else node.detail.get("subject")
    kinds = gap_kinds(ground, group)

    def ended(kind: str) -> Ended | None:
        found = kinds.get(kind)
        if not found:
            return None
        own = named or bool(key)
        pairs = [(one.subject if own else None, one.index) for one in found[:NAMED_SUBJECTS]]
        cap = re.search(r"\d+$", found[0].reason or "")
        return Ended(
            len(found),
            names_words(pairs, len(found)),
            clip(found[0].reason or "", REASON_LENGTH),
            int(cap[0]) if cap is not None else 0,
        )

    nameless: list[int] = []
    if key:
        mine = [one for one in ground.subjects if one.stage == group.key and one.subject is None]
        nameless = [one.index for one in sorted(mine, key=lambda one: (one.execution, one.index))]
    return gap_items(
        group.name,
        FanOutGaps(
            past=ended("past"),
            ended=ended("ended"),
            failed=ended("failed"),
            unnamed=(str(key), nameless) if nameless else None,
            undecided=ended("undecided") if _only_rules_decide(group, kinds) else None,
        ),
    )


def _only_rules_decide(group: FanOutGroup, kinds: Mapping[str, Sequence[Any]]) -> bool:
    """Say whether those without a decision by rules are those without any."""
    return len(kinds.get("undecided", ())) == group.counts.undecided


def _telling(ground: Ground, claims: Claims) -> None:
    """Claim why most subjects could not be judged."""
    dossier = ground.dossier
    if dossier is None or not dossier.telling:
        return
    told = " ".join(dossier.telling)
    place: Place = ("dossier", "telling")
    note = telling_note(ground.notes)
    if note is not None:
        whole = ground.live or note.kind != "never_there"
        parts = 2 if whole else 1
        covered = place if whole else (*place, 0)
        expected = [note.short, note.why][:parts]
        found = list(dossier.telling[:parts])
        claims.check("ledger.telling", told, found, expected, "the decisions", covered)
        if whole:
            return
        place = (*place, 1)
    whys = [item.get("why") for item in _list(ground, "not_checked")]
    why = dossier.telling[-1]
    if note is not None:
        claims.settle("ledger.telling.why", why, why in whys, "the entry of the ledger", place)
        return
    claims.settle("ledger.telling.why", why, why in whys, "the entry of the ledger", (*place, 1))
    reason = "of the decisions, not all are carried"
    claims.unchecked("ledger.telling", dossier.telling[0], reason, (*place, 0))


def counts_words(ground: Ground) -> str:
    """Say how many entries there are."""
    return ", ".join(counted(len(_list(ground, name)), "entry", "entries") for name in LISTS)


def steps_told(ground: Ground) -> list[int]:
    """Give the numbers of steps that the ledger says, in its sentence and in its lists."""
    said = [_SENTENCE.match(str(ground.coverage.get("sentence", "")))]
    said += [_PROCEDURE.fullmatch(str(item.get("what", ""))) for item in _list(ground, "checked")]
    return [int(one["steps"]) for one in said if one is not None]
