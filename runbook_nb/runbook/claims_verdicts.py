"""Claims about verdicts: each judged anew from its recorded values by the rules that are held.

Bridge layer. The judge is the ordinary one, the facts those that `Envelope.rejudge` judges. What is
compared is compared by kind of decision, so a hundred thousand subjects cost what a handful of
kinds do, and what cannot be known is not guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from math import isnan
from typing import Any, Final

from runbook_nb._json import to_wire
from runbook_nb._text import MISSING, listed, show, visible
from runbook_nb.record.claims import (
    CONFIRMED,
    CONTRADICTED,
    HIDDEN,
    UNCHECKED,
    Claims,
    Outcome,
    Place,
)
from runbook_nb.record.redact import PLACEHOLDER
from runbook_nb.rules import Decision, RuleSet
from runbook_nb.rules.kinds import kind_of
from runbook_nb.rules.known import Again, Known, Way, judge_again
from runbook_nb.rules.plan import DecisionPath, plan_of, when_of
from runbook_nb.runbook.grounds import ACCOUNTED, Ground
from runbook_nb.runbook.names import name_key
from runbook_nb.runbook.sides import Side, Standing
from runbook_nb.runbook.told import ToldDecision

SHOWN: Final = "the rows, which show them"
JUDGED: Final = "the rules, which judged its recorded values anew"

FUNCTION: Final = "a rule is a function, which is not run to check an answer"
TOLD: Final = "only the words of its decision are carried"
FAILED: Final = "its branch failed, and the decision before that stands for nothing"
UNKNOWN: Final = "its rules are not carried"
NO_VERDICT: Final = "no decision by rules was recorded for it"


def claim_verdicts(ground: Ground, claims: Claims) -> None:
    """Claim what each subject was judged, and what each row says of it."""
    side = ground.side
    if side is None or ground.dossier is None:
        if ground.has_rows and ground.shown:
            reason = "no decision is carried: this copy holds the wire form only"
            place = ("result", "verdicts")
            claims.unchecked(
                "verdict", "the verdicts of the rows", reason, place, count=len(ground.shown)
            )
        return
    _judged_again(ground, side, claims)
    if ground.has_rows:
        _of_rows(ground, side, claims)
        _facts(ground, side, claims)


# --- judging again ------------------------------------------------------------------------------


def _judged_again(ground: Ground, side: Side, claims: Claims) -> None:
    """Claim each decision: its rule, its conditions and its branch."""
    verdicts = _Found()
    for rules, numbers in _by_rules(side).items():
        judge = _judge_of(ground, rules)
        wanted = [place for place, number in enumerate(side.numbers) if number in numbers]
        if isinstance(judge, str):
            verdicts.add(UNCHECKED, judge, wanted)
            continue
        again = judge_again(judge, side.facts) if side.facts is not None else None
        if again is None:
            verdicts.add(UNCHECKED, UNKNOWN, wanted)
            continue
        told = _fates(side, again, wanted)
        by_fate: dict[tuple[Any, str], list[int]] = {}
        for place in wanted:
            fate = told[side.numbers[place], again.numbers[place]]
            by_fate.setdefault(fate, []).append(place)
        for fate, places in by_fate.items():
            verdicts.add(*fate, places)
        verdicts.tell = _teller(side, again)
    if not ground.live:
        _not_judged(ground, side, verdicts, claims)

    def covered(places: Any) -> tuple[Place, ...]:
        base: Place = ("dossier", "subjects", places)
        return ((*base, "decision", "rules"), (*base, "decision", "codes"), (*base, "told"))

    claims.many(
        "verdict",
        "the rules give this verdict on the recorded values",
        verdicts.outcomes(),
        ground.subject_name,
        covered,
    )
    _inconsistent(ground, side, claims)


def _not_judged(ground: Ground, side: Side, verdicts: _Found, claims: Claims) -> None:
    """Gather the decisions of a copy that cannot be judged anew."""
    failed: list[int] = []
    for place, one in enumerate(ground.subjects):
        if isinstance(one.decision, ToldDecision):
            verdicts.add(UNCHECKED, TOLD, (place,))
        elif one.decision is not None and side.standing(place).path is None:
            verdicts.add(UNCHECKED, FAILED, (place,))
            failed.append(place)
    if failed:
        told = f"{len(failed):,} values compared by decisions that stand for nothing"
        cover = ("dossier", "subjects", frozenset(failed), "decision", "values")
        claims.unchecked("facts.failed", told, FAILED, cover, count=len(failed))


class _Found:
    """Places gathered by how they fared."""

    def __init__(self) -> None:
        self.tell: Callable[[int], tuple[Any, Any]] | None = None
        self._places: dict[tuple[Any, str], list[int]] = {}
        self._tellers: dict[int, Callable[[int], tuple[Any, Any]]] = {}

    def add(self, status: Any, why: str, places: Sequence[int]) -> None:
        """Take in places that fared alike."""
        self._places.setdefault((status, why), []).extend(places)

    def outcomes(self) -> list[Outcome]:
        """Give what was gathered, contradictions first."""
        order = {CONTRADICTED: 0, CONFIRMED: 1, UNCHECKED: 2}
        pairs = sorted(self._places.items(), key=lambda pair: order[pair[0][0]])
        return [Outcome(status, sorted(held), why, self.tell) for (status, why), held in pairs]


def _by_rules(side: Side) -> dict[RuleSet, set[int]]:
    found: dict[RuleSet, set[int]] = {}
    for number, one in enumerate(side.standings):
        if one.path is not None:
            found.setdefault(one.path.rules, set()).add(number)
    return found


def _judge_of(ground: Ground, rules: RuleSet) -> RuleSet | str:
    """Give the rules that can judge again what these judged, or why none can."""
    if plan_of(rules).has_functions:
        return FUNCTION
    return rules


def _fates(
    side: Side, again: Again, wanted: Sequence[int]
) -> dict[tuple[int, int], tuple[Any, str]]:
    kinds = {
        (side.numbers[place], again.numbers[place]): again.facts.kinds[place] for place in wanted
    }
    return {
        pair: _fate(side.standings[pair[0]], again.ways[pair[1]], again.facts.table[kind])
        for pair, kind in kinds.items()
    }


def _fate(was: Standing, now: Way, known: Known) -> tuple[Any, str]:
    if now.gap is not None and now.gap.kind != "refused":
        word = "hidden" if now.gap.kind == "hidden" else "not recorded"
        return UNCHECKED, f"{word}: {now.gap.words}"
    assert was.path is not None  # noqa: S101 - asked of those that have one
    lacks = _lacking(was.path, known)
    codes = [
        [code for place, code in enumerate(path.codes) if place not in lacks]
        for path in (was.path, now.path)
    ]
    same = codes[0] == codes[1] and _branch(was.path) == _branch(now.path)
    if same and lacks:
        # A condition beside it was false, so it decides nothing, and nobody knows how it came out.
        keys = sorted(set(lacks.values()))
        word = "hidden" if known.lacks(keys[0]) == "hidden" else "not recorded"
        told = visible(listed(keys))
        return UNCHECKED, f"{word}: {told}, whatever that is, the rules give this verdict"
    return (CONFIRMED if same else CONTRADICTED), JUDGED


def _lacking(path: DecisionPath, known: Known) -> dict[int, str]:
    """Give the conditions that were tried on a value that is not known, by place, with its key."""
    if known.is_whole:
        return {}
    return {place: key for place, key in _keys_of(path) if known.lacks(key) is not None}


def _branch(path: DecisionPath) -> str | None:
    return path.branch


def _teller(side: Side, again: Again) -> Callable[[int], tuple[Any, Any]]:
    def tell(place: int) -> tuple[Any, Any]:
        was, now = side.standing(place), again.ways[again.numbers[place]].path
        expected = f"{now.branch} by {_decided(now)}, outcomes {list(now.codes)}"
        path = was.path
        codes = [] if path is None else list(path.codes)
        by = "" if path is None else f" by {_decided(path)}"
        return expected, f"{was.branch}{by}, outcomes {codes}"

    return tell


def _decided(path: DecisionPath) -> str:
    if path.via in ("rule", "unreadable"):
        number = f"rule {(path.rule_index or 0) + 1}"
        return number if path.via == "rule" else f"{number}, which cannot be read"
    return "the ground outside" if path.via == "outside" else path.via


def _inconsistent(ground: Ground, side: Side, claims: Claims) -> None:
    """Claim that a key compared several times held one value throughout."""
    if ground.live:
        return
    found: list[int] = []
    held: list[int] = []
    places_of = {path: _repeated(path) for one in side.standings if (path := one.path) is not None}
    several = {
        number: again
        for number, one in enumerate(side.standings)
        if one.path is not None and (again := places_of[one.path])
    }
    for place, number in enumerate(side.numbers if several else ()):
        if number not in several:
            continue
        again = several[number]
        decision = side.decision(place)
        values = decision.raw_values if isinstance(decision, Decision) else ()
        same = all(_alike(values[one], values[other]) for _, one, other in again)
        (held if same else found).append(place)

    def tell(place: int) -> tuple[Any, Any]:
        path, decision = side.standing(place).path, side.decision(place)
        assert path is not None  # noqa: S101 - see above
        assert isinstance(decision, Decision)  # noqa: S101 - see above
        for key, one, other in places_of[path]:
            first, second = decision.raw_values[one], decision.raw_values[other]
            if not _alike(first, second):
                return f"{key} {show(first)}", f"{key} {show(second)}"
        return None, None

    basis = "the same key, compared by another condition"
    claims.many(
        "facts.repeated",
        "a key compared several times has one value",
        [Outcome(CONTRADICTED, found, basis, tell), Outcome(CONFIRMED, held, basis)],
        ground.subject_name,
        lambda places: tuple(
            ("dossier", "subjects", places, "decision", "values", at)
            for at in _repeated_places(places, side, places_of)
        ),
    )


def _repeated(path: DecisionPath) -> tuple[tuple[str, int, int], ...]:
    """Give the keys a decision compared several times, with two places of their values each."""
    first: dict[str, int] = {}
    found = []
    for at, key in _keys_of(path):
        if key in first:
            found.append((key, first[key], at))
        first.setdefault(key, at)
    return tuple(found)


def _keys_of(path: DecisionPath) -> Iterator[tuple[int, str]]:
    """Yield the key of every condition that was tried, with the place of its value."""
    for tried in path.tried:
        when = when_of(path.rules, tried)
        if isinstance(when, Mapping):
            keys = (key for key, ops in when.items() for _ in ops)
            yield from enumerate(keys, tried.start)


def _repeated_places(places: Any, side: Side, places_of: Mapping[Any, Any]) -> set[int]:
    some = [places] if isinstance(places, int) else places
    found: set[int] = set()
    for path in {side.standing(place).path for place in some}:
        for _, one, other in places_of.get(path, ()):
            found |= {one, other}
    return found


def _alike(one: Any, other: Any) -> bool:
    if one is other or (one == other and kind_of(one) == kind_of(other)):
        return True
    try:
        return isnan(one) and isnan(other)
    except (TypeError, ValueError, OverflowError):
        return False


# --- rows ---------------------------------------------------------------------------------------


def _of_rows(ground: Ground, side: Side, claims: Claims) -> None:
    """Claim that each row says the verdict its subject was decided as."""
    words, behind = ground.words, ground.behind
    known = _branches(ground, side)
    renamed = _renamed(words, behind, side, known)
    found = _Found()
    fates: dict[tuple[str, int], tuple[Any, str]] = {}
    by_pair: dict[tuple[str, int], list[int]] = {}
    accounted = ground.accounted_verdicts
    for row, (word, place) in enumerate(zip(words, behind, strict=True)):
        if place is None:
            # Rows are carried with their subjects: where one lacks its own, it was taken out.
            lone = ground.rows_name_subjects and not ground.complete and not ground.live
            if row in accounted:
                fits = accounted[row] == word
                found.add(CONFIRMED if fits else CONTRADICTED, ACCOUNTED, (row,))
            elif lone:
                found.add(CONTRADICTED, "the subjects carried, of which none is its own", (row,))
            else:
                found.add(UNCHECKED, _why_none(ground), (row,))
            continue
        number = side.numbers[place]
        pair = word, number
        if pair not in fates:
            fates[pair] = _row_fate(word, side.standings[number], known, renamed)
        by_pair.setdefault(pair, []).append(row)
    for pair, rows in by_pair.items():
        found.add(*fates[pair], rows)

    def tell(row: int) -> tuple[Any, Any]:
        place = behind[row]
        decided = accounted.get(row) if place is None else side.standing(place).branch
        return decided, words[row]

    found.tell = tell
    shown = len(ground.shown)

    def covered(rows: Any) -> tuple[Place, ...]:
        own: tuple[Place, ...] = (("dossier", "rows", rows, "verdict"),)
        if isinstance(rows, int):
            more: tuple[Place, ...] = (
                (("result", "verdicts", rows, "verdict"),) if rows < shown else ()
            )
            return own + more
        return (*own, ("result", "verdicts", rows, "verdict"))

    claims.many(
        "row.verdict",
        "the row says what was decided",
        found.outcomes(),
        ground.row_name,
        covered,
    )


def _why_none(ground: Ground) -> str:
    if ground.complete:
        return NO_VERDICT
    return f"of the decisions, {ground.carried_words}"


def _branches(ground: Ground, side: Side) -> set[str]:
    """Give the words that the rules and the chart have for verdicts."""
    dossier = ground.dossier
    assert dossier is not None  # noqa: S101 - asked where there is one
    words = {word for rules in dossier.rule_sets for word in rules.branches}
    words |= {one.branch for one in side.standings if one.branch is not None}
    return words | {node.branch for node in dossier.structure.nodes if node.branch is not None}


def _renamed(
    words: Sequence[str], behind: Sequence[int | None], side: Side, known: set[str]
) -> set[tuple[str, str]]:
    """Give the branches for which the procedure wrote one word of its own in every row."""
    used: dict[str, set[str]] = {}
    pairs = {
        (word, side.numbers[place])
        for word, place in zip(words, behind, strict=True)
        if place is not None
    }
    for word, number in pairs:
        branch = side.standings[number].branch
        if branch is not None:
            used.setdefault(branch, set()).add(word)
    return {
        (branch, word)
        for branch, said in used.items()
        if len(said) == 1
        for word in said
        if word not in known
    }


def _row_fate(
    word: str, standing: Standing, known: set[str], renamed: set[tuple[str, str]]
) -> tuple[Any, str]:
    branch = standing.branch
    if branch is None:
        return UNCHECKED, NO_VERDICT
    if branch == word:
        return CONFIRMED, "the decision"
    if PLACEHOLDER in word or PLACEHOLDER in branch:
        return UNCHECKED, HIDDEN
    if (branch, word) in renamed:
        return UNCHECKED, f"the procedure calls {branch} by a word of its own"
    return CONTRADICTED, "the decision"


# --- values -------------------------------------------------------------------------------------


def _facts(ground: Ground, side: Side, claims: Claims) -> None:
    """Claim, key by key, that what was compared is what the rows show."""
    facts = side.facts
    if facts is None:
        return
    row_of: list[int | None] = [None] * len(side)
    for row, place in enumerate(ground.behind):
        if place is not None:
            row_of[place] = row
    for key in _compared_keys(side):
        found, places = _Found(), _with_key(side, key)
        if not facts.knows(key) or key not in facts.columns.names:
            found.add(UNCHECKED, HIDDEN, places)
        else:
            _of_key(facts.columns.held(key).whole(), _cells(ground, key), row_of, places, found)
        _claim_key(ground, side, claims, key, found)


def _of_key(
    values: Sequence[Any],
    cells: Sequence[Any] | None,
    row_of: Sequence[int | None],
    places: Sequence[int],
    found: _Found,
) -> None:
    """Hold the values of one key against the cells of its column."""
    if cells is None:
        found.add(UNCHECKED, "no column of the rows shows them", places)
        return
    alike: list[int] = []
    for place in places:
        row, value = row_of[place], values[place]
        if row is None:
            found.add(UNCHECKED, "the rows that show them are not carried", (place,))
            continue
        cell = cells[row]
        if value.__class__ is cell.__class__ and value == cell:
            alike.append(place)
        else:
            found.add(*_value_fate(value, cell), (place,))
    if alike:
        found.add(CONFIRMED, SHOWN, alike)

    def tell(place: int) -> tuple[Any, Any]:
        row = row_of[place]
        return None if row is None else show(cells[row]), show(values[place])

    found.tell = tell


def _claim_key(ground: Ground, side: Side, claims: Claims, key: str, found: _Found) -> None:
    spots = [() if one.path is None else _spots(one.path, key) for one in side.standings]
    for one in found.outcomes():
        by_number: dict[int, list[int]] = {}
        for place in one.places:
            by_number.setdefault(side.numbers[place], []).append(place)
        covered: list[Place] = []
        for at in sorted({at for number in by_number for at in spots[number]}):
            lists = (held for number, held in by_number.items() if at in spots[number])
            held = frozenset(chain.from_iterable(lists))
            covered.append(("dossier", "subjects", held, "decision", "values", at))
        told, id_ = f"{len(one.places):,} values of {key} that were compared", f"facts[{key}]"
        if one.status == UNCHECKED:
            claims.unchecked(id_, told, one.why, *covered, count=len(one.places))
            continue
        pair: tuple[Any, Any] = (None, None)
        if one.status == CONTRADICTED and one.tell is not None:
            first = one.places[0]
            expected, value = one.tell(first)
            name = ground.subject_name(first)
            pair = (f"{value} for {name}", f"{expected}, as its row shows")
        claims.settle(id_, told, one.status == CONFIRMED, one.why, *covered, told=pair)


def _compared_keys(side: Side) -> list[str]:
    keys: dict[str, None] = {}
    for one in side.standings:
        if one.path is not None:
            keys.update(dict.fromkeys(one.path.keys))
    return list(keys)


def _spots(path: DecisionPath, key: str) -> tuple[int, ...]:
    """Give the places of a key's values in a decision."""
    return tuple(place for place, name in _keys_of(path) if name == key)


def _with_key(side: Side, key: str) -> list[int]:
    numbers = {
        n for n, one in enumerate(side.standings) if one.path is not None and key in one.path.keys
    }
    return [place for place, number in enumerate(side.numbers) if number in numbers]


def _cells(ground: Ground, key: str) -> Sequence[Any] | None:
    """Give what the rows show under a key; None where they have no such column."""
    if not len(ground.rows) or key == "verdict":
        return None
    column = getattr(ground.rows, "column", None)
    held = column(key) if column is not None else None
    if held is not None:
        return list(held)
    if key not in ground.rows[0]:
        return None
    return [row.get(key, MISSING) for row in ground.rows]


def _value_fate(value: Any, cell: Any) -> tuple[Any, str]:
    shown = None if value is MISSING or (value != value) else to_wire(value)  # noqa: PLR0124 - NaN
    said = None if cell is MISSING else to_wire(cell)
    if name_key(shown) == name_key(said) or shown == said:
        return CONFIRMED, SHOWN
    if said is None and shown == "":  # a column has one look for both
        return UNCHECKED, "the rows show them in another form"
    told = shown is not None and said is not None
    if told and type(shown) is not type(said) and not _numbers(shown, said):
        return UNCHECKED, "the rows show them in another form"
    return CONTRADICTED, "the rows, which show another value"


def _numbers(one: Any, other: Any) -> bool:
    return all(isinstance(n, int | float) and not isinstance(n, bool) for n in (one, other))
