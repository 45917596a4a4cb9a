"""What a whole run says about its rules: conditions that could never work, limits nobody crosses.

Three mistakes show only over many subjects: a limit of the wrong type, with which nothing can be
compared; a limit in the wrong unit, on one side of which everything lies; and a misspelt key, which
no subject has. All are found in one pass that remembers conditions, not subjects.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import chain
from typing import Any, Final, Literal, NamedTuple

from runbook_nb._frozen import Immutable
from runbook_nb._text import MISSING, did_you_mean, listed, visible
from runbook_nb._value import frozen
from runbook_nb.rules.hiding import Hider
from runbook_nb.rules.kinds import (
    ABSENT,
    MISMATCH,
    NO,
    NUMBER,
    YES,
    compare_numbers,
    kind_of,
    kind_words,
    plain,
)
from runbook_nb.rules.operators import PRESENCE
from runbook_nb.rules.plan import DecisionPath, Tried, when_of
from runbook_nb.rules.wording import condition_text, limit_text, needed_words, value_text

#: So many values on one side of a limit are worth a note.
ENOUGH: Final = 10

#: So many subjects without a key are worth a note.
SEVERAL: Final = 2

#: So many kinds of value are named in a note.
MAX_KINDS: Final = 3

_SIDES: Final = {
    ("gt", YES): "above",
    ("gt", NO): "at or below",
    ("gte", YES): "at or above",
    ("gte", NO): "below",
    ("lt", YES): "below",
    ("lt", NO): "at or above",
    ("lte", YES): "at or below",
    ("lte", NO): "above",
}


@frozen(kw_only=False)
class Note(Immutable):
    """Something a run shows about one condition.

    Attributes
    ----------
    kind : {"type_mismatch", "one_side", "never_there"}
        Which of them it is.
    rule_index : int or None
        The rule; None for the ground outside.
    key : str
        The key it is about.
    what, why : str
        The sentence, and what to do about it.
    short : str
        The sentence in few words, for a line that has no room.
    unread : int
        How many subjects its condition could not be read for.
    """

    kind: Literal["type_mismatch", "one_side", "never_there"]
    rule_index: int | None
    key: str
    what: str
    why: str
    short: str = ""
    unread: int = 0


class _Place(NamedTuple):
    """One condition of one rule set, the same for every copy of it."""

    digest: str
    outside: bool
    position: int
    number: int


@dataclass(slots=True)
class _Seen:
    """What was seen of one condition so far."""

    key: str
    op: str
    threshold: Any
    unit: str | None
    title: str
    total: int = 0
    mismatches: int = 0
    absent: int = 0
    numbers: int = 0
    #: Words of the kinds met that could not be compared, with where each was met first.
    kinds: dict[str, int] = field(default_factory=dict)
    codes: set[int] = field(default_factory=set)
    #: The smallest and the largest number, each with where it was met first.
    low: tuple[Any, int] | None = None
    high: tuple[Any, int] | None = None

    def count(self, code: int, times: int) -> None:
        """Take in how often an outcome was met."""
        self.total += times
        self.codes.add(code)
        if code == MISMATCH:
            self.mismatches += times
        elif code == ABSENT:
            self.absent += times
        elif code in (YES, NO):
            self.numbers += times

    def name_kinds(self, column: Sequence[Any], where: Sequence[int], base: int) -> None:
        """Take in values that could not be compared."""
        settled: set[type] = set()
        for place, actual in enumerate(column):
            cls = actual.__class__
            if cls in settled:
                continue
            if cls in _ONE_KIND:
                settled.add(cls)
            words, met = _kind_words(actual), base + where[place]
            self.kinds[words] = min(self.kinds.get(words, met), met)

    def measure(self, column: Sequence[Any], where: Sequence[int], base: int) -> None:
        """Take in numbers that were compared."""
        if set(map(type, column)) <= {int, float}:
            low, high = min(column), max(column)
        else:
            low = high = plain(column[0])
            for value in map(plain, column):
                low = value if compare_numbers(operator.lt, value, low) else low
                high = value if compare_numbers(operator.gt, value, high) else high
        found: list[tuple[Any, int]] = []
        for known, value, differs in ((self.low, low, operator.lt), (self.high, high, operator.gt)):
            met = value, base + where[_place_of(column, value)]
            if known is not None and not compare_numbers(differs, value, known[0]):
                same = not compare_numbers(operator.ne, value, known[0])
                met = met if same and met[1] < known[1] else known
            found.append(met)
        self.low, self.high = found

    def note_absences(self, column: Sequence[Any], where: Sequence[int], base: int) -> None:
        """Take in whether a key was there at all, where the outcome does not say it."""
        if type(MISSING) in set(map(type, column)):
            self.absent += sum(actual is MISSING for actual in column)

    def looks(self, code: int) -> Callable[[Sequence[Any], Sequence[int], int], None] | None:
        """Say what has to be done with the values of this outcome; for nearly all, nothing."""
        if code == MISMATCH:
            return self.name_kinds
        if self.op in PRESENCE:
            return self.note_absences
        return self.measure if self.unit is not None and code in (YES, NO) else None


#: Classes all of whose values are of one kind.
_ONE_KIND: Final = frozenset({bool, int, str, date, timedelta, dict, list, tuple})


def _place_of(column: Sequence[Any], value: Any) -> int:
    return next(place for place, one in enumerate(column) if one is value or plain(one) is value)


class Judgements(NamedTuple):
    """Decisions that came about alike.

    Attributes
    ----------
    path : DecisionPath
        How.
    where : sequence of int
        Where in the order of all decisions each of them stands, counted from ``base``.
    column : callable
        Gives the values each was made on, by their place in the path.
    base : int
    """

    path: DecisionPath
    where: Sequence[int]
    column: Callable[[int], Sequence[Any]]
    base: int = 0


def _alone(judged: Iterable[tuple[DecisionPath, tuple[Any, ...]]]) -> Iterator[Judgements]:
    """Group decisions given one by one."""
    values: dict[DecisionPath, list[tuple[Any, ...]]] = {}
    places: dict[DecisionPath, list[int]] = {}
    for place, (path, actuals) in enumerate(judged):
        values.setdefault(path, []).append(actuals)
        places.setdefault(path, []).append(place)
    for path, where in places.items():
        yield Judgements(path, where, lambda at, held=values[path]: [one[at] for one in held])  # type: ignore[misc]


def notes_of(
    judged: Iterable[tuple[DecisionPath, tuple[Any, ...]] | Judgements],
    hide: Hider | None = None,
    keys: Callable[[], Iterable[str]] = tuple,
) -> tuple[Note, ...]:
    """Find what many decisions together say about the conditions of their rules.

    A *type mismatch* note stands for a condition that no subject could be compared by, where it met
    values of another type; how many had none is said apart. A *one side* note stands for a limit
    with a declared unit when all of at least `ENOUGH` numbers lie on one side of it, which is how a
    limit in the wrong unit looks. There is none where another limit of that key, in that unit, was
    crossed: the unit then fits. A *never there* note stands for a key that not one of at least
    `SEVERAL` subjects had, once per rule.

    Parameters
    ----------
    judged : iterable of (DecisionPath, tuple), or of Judgements
        The decisions, as `judge_facts` gives them, or in groups. Read once.
    hide : Hider, optional
        What must not be seen.
    keys : callable, optional
        Gives the keys that the subjects have; asked only where one was read that nobody has.

    Returns
    -------
    tuple of Note
        Keys nobody has first, then the others, in the order the conditions were first met.

    Examples
    --------
    >>> from runbook_nb.rules import Rule, RuleSet, judge_facts
    >>> rules = RuleSet("disk", "v1", [Rule({"free": {"lt": 5}}, "full", unit="percent")])
    >>> notes_of(judge_facts(rules, {"free": n / 20}) for n in range(12))[0].what
    'rule 1 of disk v1: all 12 values of free (0.0 … 0.55) lie below the limit 5 percent'
    """
    seen: dict[_Place, _Seen] = {}
    coming = iter(judged)
    first = next(coming, None)
    if first is None:
        return ()
    all_ = chain((first,), coming)
    groups: Any = all_ if isinstance(first, Judgements) else _alone(all_)  # type: ignore[arg-type]
    for group in groups:
        times = len(group.where)
        for place, code, one in _places(group.path, seen):
            one.count(code, times)
            look = one.looks(code)
            if look is not None and times:
                look(group.column(place), group.where, group.base)
    # Values that cross one limit of a key are in that limit's unit, and so in any like it.
    crossed = {
        (place.digest, one.key, one.unit)
        for place, one in seen.items()
        if one.codes >= {YES, NO} and one.unit is not None
    }
    found = [
        _note(place, one, hide, (place.digest, one.key, one.unit) in crossed)
        for place, one in seen.items()
    ]
    return (*_never_there(seen, hide, keys), *(note for note in found if note is not None))


def _never_there(
    seen: Mapping[_Place, _Seen], hide: Hider | None, keys: Callable[[], Iterable[str]]
) -> Iterable[Note]:
    told: set[tuple[str, str]] = set()
    there: list[str] | None = None
    for place, one in seen.items():
        if one.absent < max(one.total, SEVERAL) or (place.digest, one.key) in told:
            continue
        told.add((place.digest, one.key))
        if there is None:
            read = (other.key for other in seen.values() if other.absent < other.total)
            there = [k for k in chain(keys(), read) if hide is None or not hide.hides_key(k)]
        key, near = visible(one.key), did_you_mean(one.key, {*there} - {one.key})
        nobody = f"not one of {one.total} subjects has {key}"
        yield Note(
            "never_there",
            None if place.outside else place.position,
            one.key,
            f"{_where(place, one)}: {nobody}",
            f"{visible(near) if near else f'check the spelling of {key};'} a key nobody has "
            "decides nothing",
            f"{_number(place)}: {nobody}",
            0 if one.op in PRESENCE else one.total,
        )


def _places(path: DecisionPath, seen: dict[_Place, _Seen]) -> Iterable[tuple[int, int, _Seen]]:
    """List the conditions of a path: where their value stands, their outcome, what was seen."""
    for tried in path.tried:
        for number, key, op, threshold in _conditions(path, tried):
            if key in path.rules.hidden:  # neither the values nor the limit are there
                continue
            place = _Place(path.rules.digest, tried.outside, tried.position, number)
            if place not in seen:
                unit = None if tried.outside else path.rules.rules[tried.position].unit_of(key)
                numeric = (op, YES) in _SIDES and kind_of(threshold) == NUMBER
                seen[place] = _Seen(key, op, threshold, unit if numeric else None, path.rules.title)
            yield tried.start + number, tried.codes[number], seen[place]


def _conditions(path: DecisionPath, tried: Tried) -> Iterable[tuple[int, str, str, Any]]:
    when = when_of(path.rules, tried)
    if not isinstance(when, Mapping):
        return
    number = 0
    for key, ops in when.items():
        for op, threshold in ops.items():
            yield number, key, op, threshold
            number += 1


def _kind_words(actual: Any) -> str:
    try:
        return kind_words(actual)
    except Exception:
        return f"a value of type {type(actual).__name__}"


def _note(place: _Place, one: _Seen, hide: Hider | None, unit_fits: bool) -> Note | None:
    hidden = hide is not None and hide.hides_key(one.key)
    rule_index = None if place.outside else place.position
    if one.mismatches and not one.numbers:
        return Note("type_mismatch", rule_index, one.key, *_mismatch(place, one, hide), one.total)
    readable = one.codes & {YES, NO}
    if one.unit is None or unit_fits or len(readable) != 1 or one.numbers < ENOUGH:
        return None
    side = _SIDES[one.op, readable.pop()]
    low, high = (value_text(None if met is None else met[0]) for met in (one.low, one.high))
    range_ = "" if hidden else f" ({low} … {high})"
    limit = "" if hidden else f" {limit_text(one.op, one.threshold, one.unit)}"
    what = (
        f"{_where(place, one)}: all {one.numbers} values of {visible(one.key)}{range_} "
        f"lie {side} the limit{limit}"
    )
    unit = visible(one.unit)
    why = f"check that the values are in {unit} as well; a limit nobody crosses decides nothing"
    return Note("one_side", rule_index, one.key, what, why)


def _where(place: _Place, one: _Seen) -> str:
    return f"{_number(place)} of {visible(one.title)}" if one.title else _number(place)


def _number(place: _Place) -> str:
    return "the ground outside" if place.outside else f"rule {place.position + 1}"


def _mismatch(place: _Place, one: _Seen, hide: Hider | None) -> tuple[str, str, str]:
    """Give the sentence, what to do about it, and the sentence in few words."""
    from runbook_nb.rules.fixes import fix_words  # rarely needed

    hidden = hide is not None and hide.hides_key(one.key)
    held = sorted(one.kinds, key=one.kinds.__getitem__)[: MAX_KINDS + 1]
    needed = needed_words(one.op, one.threshold)
    shown = listed([*held[:MAX_KINDS], "others"] if len(held) > MAX_KINDS else held, "or")
    key = visible(one.key)
    condition = key if hidden else condition_text(one.key, one.op, one.threshold, one.unit)
    many = one.mismatches > 1
    values = f"all {one.mismatches} values are" if many else "its one value is"
    none = one.total - one.mismatches
    rest = f"; {none} more {'is' if none == 1 else 'are'} missing" if none else ""
    what = f"{_where(place, one)}: {condition} could never be judged, {values} {shown}"
    short = f"{_number(place)}: {key} is {shown}, not {needed}"
    # What is secret in a limit would not be known again in other words.
    secret = hidden or (hide is not None and hide.scrub(one.threshold) != one.threshold)
    return (
        f"{what}, not {needed}{rest}",
        fix_words(held, needed, one.op, one.threshold, hidden=secret),
        f"{short} ({'all ' if many else ''}{one.mismatches}{rest})" if many or none else short,
    )
