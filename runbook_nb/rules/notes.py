"""What a whole run says about its rules: conditions that could never work, limits nobody crosses.

Three mistakes show only over many subjects: a limit of the wrong type, with which nothing can be
compared; a limit in the wrong unit, on one side of which everything lies; and a misspelt key, which
no subject has. All are found in one pass that remembers conditions, not subjects.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from runbook_nb._frozen import Immutable
from runbook_nb._text import MISSING, listed, visible
from runbook_nb.rules.hiding import Hider
from runbook_nb.rules.kinds import (
    ABSENT,
    AWARE,
    DATE,
    KIND_WORDS,
    MISMATCH,
    NAIVE,
    NO,
    NUMBER,
    TEXT,
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


@dataclass(frozen=True, slots=True)
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
    """

    kind: Literal["type_mismatch", "one_side", "never_there"]
    rule_index: int | None
    key: str
    what: str
    why: str


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
    kinds: dict[str, None] = field(default_factory=dict)
    codes: set[int] = field(default_factory=set)
    low: Any = None
    high: Any = None

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

    def name_kind(self, actual: Any) -> None:
        """Take in a value that could not be compared."""
        if len(self.kinds) <= MAX_KINDS:
            self.kinds.setdefault(_kind_words(actual))

    def measure(self, actual: Any) -> None:
        """Take in a number that was compared."""
        value = plain(actual)
        if self.low is None or compare_numbers(operator.lt, value, self.low):
            self.low = value
        if self.high is None or compare_numbers(operator.gt, value, self.high):
            self.high = value

    def note_absence(self, actual: Any) -> None:
        """Take in whether a key was there at all, where the outcome does not say it."""
        self.absent += actual is MISSING

    def looks(self, code: int) -> Callable[[Any], None] | None:
        """Say what has to be done with each value of this outcome; for nearly all, nothing."""
        if code == MISMATCH:
            return self.name_kind
        if self.op in PRESENCE:
            return self.note_absence
        return self.measure if self.unit is not None and code in (YES, NO) else None


def notes_of(
    judged: Iterable[tuple[DecisionPath, tuple[Any, ...]]], hide: Hider | None = None
) -> tuple[Note, ...]:
    """Find what many decisions together say about the conditions of their rules.

    A *type mismatch* note stands for a condition that met a value of another type every single
    time. A *one side* note stands for a limit with a declared unit when all of at least
    `ENOUGH` numbers lie on one side of it, which is how a limit in the wrong unit looks. There is
    none where another limit of that key, in that unit, was crossed: the unit then fits. A *never
    there* note stands for a key that not one of at least `SEVERAL` subjects had, once per rule.

    Parameters
    ----------
    judged : iterable of (DecisionPath, tuple)
        The decisions, as `judge_facts` gives them. Read once.
    hide : Hider, optional
        What must not be seen.

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
    times: dict[DecisionPath, int] = {}
    looks: dict[DecisionPath, list[tuple[int, Callable[[Any], None]]]] = {}
    for path, values in judged:
        if path not in times:
            times[path] = 0
            looks[path] = [
                (place, look)
                for place, code, one in _places(path, seen)
                if (look := one.looks(code)) is not None
            ]
        times[path] += 1
        for place, look in looks[path]:
            look(values[place])
    for path, count in times.items():
        for _, code, one in _places(path, seen):
            one.count(code, count)
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
    return (*_never_there(seen), *(note for note in found if note is not None))


def _never_there(seen: Mapping[_Place, _Seen]) -> Iterable[Note]:
    told: set[tuple[str, str]] = set()
    for place, one in seen.items():
        if one.absent < max(one.total, SEVERAL) or (place.digest, one.key) in told:
            continue
        told.add((place.digest, one.key))
        key = visible(one.key)
        yield Note(
            "never_there",
            None if place.outside else place.position,
            one.key,
            f"{_where(place, one)}: not one of {one.total} subjects has {key}",
            f"check the spelling of {key}; a key nobody has decides nothing",
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
    where = _where(place, one)
    rule_index = None if place.outside else place.position
    if one.mismatches == one.total:
        return Note("type_mismatch", rule_index, one.key, *_mismatch(where, one, hidden))
    readable = one.codes & {YES, NO}
    if one.unit is None or unit_fits or len(readable) != 1 or one.numbers < ENOUGH:
        return None
    side = _SIDES[one.op, readable.pop()]
    range_ = "" if hidden else f" ({value_text(one.low)} … {value_text(one.high)})"
    limit = "" if hidden else f" {limit_text(one.op, one.threshold, one.unit)}"
    what = (
        f"{where}: all {one.numbers} values of {visible(one.key)}{range_} "
        f"lie {side} the limit{limit}"
    )
    unit = visible(one.unit)
    why = f"check that the values are in {unit} as well; a limit nobody crosses decides nothing"
    return Note("one_side", rule_index, one.key, what, why)


def _where(place: _Place, one: _Seen) -> str:
    of = f" of {visible(one.title)}" if one.title else ""
    return f"the ground outside{of}" if place.outside else f"rule {place.position + 1}{of}"


def _mismatch(where: str, one: _Seen, hidden: bool) -> tuple[str, str]:
    held = list(one.kinds)
    needed = needed_words(one.op, one.threshold)
    shown = [*held[:MAX_KINDS], "others"] if len(held) > MAX_KINDS else held
    condition = (
        visible(one.key) if hidden else condition_text(one.key, one.op, one.threshold, one.unit)
    )
    values = f"all {one.total} values are" if one.total > 1 else "its one value is"
    what = f"{where}: {condition} could never be judged, {values} {listed(shown, 'or')}"
    return f"{what}, not {needed}", _fix(held, needed)


def _fix(held: list[str], needed: str) -> str:
    words = {KIND_WORDS[AWARE], KIND_WORDS[NAIVE]}
    if len(held) != 1:
        return f"make every value {needed} before judging"
    if words == {held[0], needed}:
        return "give both sides a zone: a time without one has no fixed place among those with one"
    if {held[0], needed} & words and KIND_WORDS[DATE] in (held[0], needed):
        return f"make both sides {needed}, or give the limit as {held[0]}"
    if held[0] == KIND_WORDS[TEXT] and needed != KIND_WORDS[TEXT]:
        return f"turn the text into {needed} before judging"
    return f"make the values {needed} before judging, or give the limit as {held[0]}"
