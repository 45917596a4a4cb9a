"""Why a verdict changed: which difference of the rules, or of the values, made it.

Bridge layer. A cause is said only as far as it is sure. A changed rule is one when judging the
facts with that change alone undone gives the old verdict, or with it alone applied the new one;
changed facts are one when judging them by the old rules gives another verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from runbook_nb._frozen import Immutable
from runbook_nb._text import MISSING
from runbook_nb._value import frozen
from runbook_nb.errors import RuleError
from runbook_nb.rules import Decision, RuleSet
from runbook_nb.rules.changes import RuleChange
from runbook_nb.rules.columns import Numbers
from runbook_nb.rules.known import Again, judge_again
from runbook_nb.rules.undoing import with_applied, with_undone
from runbook_nb.runbook.sides import Side, Standing

#: So many changes are tried one by one; of more no single one is named.
TRIED: Final = 12


@frozen(kw_only=False)
class Cause(Immutable):
    """What made verdicts change.

    Attributes
    ----------
    words : str
        ``rule 3 limit raised, 7 -> 14``, ``values changed``.
    key : str or None
        The key whose value decided.
    change : RuleChange or None
        The changed rule, where one did it.
    """

    words: str
    key: str | None = None
    change: RuleChange | None = None

    def __hash__(self) -> int:
        return hash((self.words, self.key))


class Causes:
    """Says what made each change between two sides.

    Parameters
    ----------
    before, after : Side
    changes : sequence of RuleChange
    same_facts : bool
        Whether both sides were judged on the very same facts, so that rules alone made changes.
    """

    def __init__(
        self, before: Side, after: Side, changes: Sequence[RuleChange], *, same_facts: bool
    ) -> None:
        self.before = before
        self.after = after
        self.same_facts = same_facts
        self.differing = tuple(change for change in changes if change.decides)
        self.rules_known = bool(changes)
        self._changes = tuple(changes)
        self._known: dict[Any, Cause] = {}
        self._by_ways: dict[tuple[int, ...], Cause] = {}
        self._judgings: dict[tuple[RuleSet, bool], Again] = {}
        self._trials: dict[tuple[str, int, bool], Again | None] = {}

    @property
    def by_pair(self) -> bool:
        """Whether the cause of a change depends on nothing but the two standings.

        It does where one thing changed: then that one made every difference.
        """
        if not self.rules_known or not self.differing:
            return True
        return self.same_facts and len(self.differing) == 1

    def of_pair(self, old: Standing, new: Standing) -> Cause:
        """Say what made one standing the other, where one thing alone changed."""
        if (old, new) not in self._known:
            self._known[old, new] = self._of_pair(old, new)
        return self._known[old, new]

    def of_rows(self, row: int, other: int) -> Cause:
        """Say what made the change of one subject."""
        old, new = self.before.standing(row), self.after.standing(other)
        if self.by_pair:
            return self.of_pair(old, new)
        # Whatever went the same ways in all trials has the same cause.
        later, earlier = self._trial_numbers
        ways = (
            self.before.numbers[row],
            self.after.numbers[other],
            *[numbers[other] for numbers in later],
            *[numbers[row] for numbers in earlier],
        )
        cause = self._by_ways.get(ways)
        if cause is None:
            cause = self._by_ways[ways] = self._of_trials(row, other)
        return cause

    @cached_property
    def _trial_numbers(self) -> tuple[list[Numbers], list[Numbers]]:
        """Give the ways all subjects went in each trial: of the later side, of the earlier one."""
        numbers = range(len(self.differing))
        later = [self._trial("undone", number) for number in numbers]
        if not self.same_facts:
            later.append(self._trial("old", 0))
        earlier = [self._trial("applied", number, later=False) for number in numbers]
        if not self.same_facts:
            earlier.append(self._trial("new", 0, later=False))
        return (
            [again.numbers for again in later if again is not None],
            [again.numbers for again in earlier if again is not None],
        )

    def _of_trials(self, row: int, other: int) -> Cause:
        old, new = self.before.standing(row), self.after.standing(other)
        values = not self.same_facts and self._verdict("old", 0, other)
        # Values took part where they alone change the verdict, and where rules alone do not.
        rules = not self.same_facts and self._verdict("new", 0, row, later=False)
        by_values = bool(values) and values != old.branch
        by_values = by_values or (bool(rules) and rules != new.branch)
        named = tuple(
            number
            for number in range(len(self.differing))
            if self._verdict("undone", number, other) == old.branch
            or self._verdict("applied", number, row, later=False) == new.branch
        )
        key = (old, new, by_values, values == new.branch, named)
        if key not in self._known:
            self._known[key] = self._of_several(key)
        return self._known[key]

    def _of_several(self, tried: tuple[Standing, Standing, bool, bool, tuple[int, ...]]) -> Cause:
        """Say what the trials found: rules, values, both, or none of them alone."""
        old, new, by_values, values_alone, named = tried
        found = [self.differing[number] for number in named]
        if found:
            words = "; ".join(change.cause for change in found)
            words += ", and the value changed" if by_values else ""
            key = self._key_of_change(found[0], old, new)
            return Cause(words, key, found[0] if len(found) == 1 else None)
        words = "values changed" if by_values and values_alone else "several changes together"
        return Cause(words, self._key_of(old, new))

    def _verdict(self, trial: str, number: int, row: int, *, later: bool = True) -> str | None:
        """Give the verdict of a subject of one side under other rules; None where not known."""
        again = self._trial(trial, number, later=later)
        return None if again is None else again.ways[again.numbers[row]].branch

    def _trial(self, trial: str, number: int, *, later: bool = True) -> Again | None:
        asked = (trial, number, later or self.same_facts)
        if asked not in self._trials:
            self._trials[asked] = self._judged(*asked)
        return self._trials[asked]

    def _judged(self, trial: str, number: int, later: bool) -> Again | None:
        """Judge all facts of a side by the old or the new rules, or with one change made."""
        old, new = self.before.rules, self.after.rules
        facts = (self.after if later else self.before).facts
        if old is None or new is None or facts is None or len(self.differing) > TRIED:
            return None
        if not (_judged_all(self.before, old) and _judged_all(self.after, new)):
            return None
        made = {"undone": with_undone, "applied": with_applied}
        try:
            rules = {"old": old, "new": new}.get(trial)
            if rules is None:
                rules = made[trial](new, old, self._changes, self.differing[number])
            if (rules, later) not in self._judgings:  # of two changes, one undone is one applied
                self._judgings[rules, later] = judge_again(rules, facts)
            return self._judgings[rules, later]
        except RuleError:  # no rules are left of it, or they cannot be judged here
            return None

    def actual(self, row: int | None, other: int | None, key: str | None) -> Any:
        """Give the value a subject had under a key on one side; `MISSING` where it is not known."""
        if key is None:
            return MISSING
        side = self.before if row is not None else self.after
        place = row if row is not None else other
        assert place is not None  # noqa: S101 - one of the two is given
        found = _compared(side.decision(place), key)
        if found is MISSING and self.same_facts:
            # The very same facts: what the other side looked at is this side's value, too.
            twin = self.after if side is self.before else self.before
            found = _compared(twin.decision(place), key)
        return found

    def _of_pair(self, old: Standing, new: Standing) -> Cause:
        if not self.rules_known:
            return Cause("the rules are not carried", self._key_of(old, new))
        if not self.differing:
            return Cause("values changed", self._key_of(old, new))
        only = self.differing[0]
        return Cause(only.cause, self._key_of_change(only, old, new), only)

    def _key_of_change(self, change: RuleChange, old: Standing, new: Standing) -> str | None:
        """Give the key a change is about: that of its limit, else the first of its rule."""
        named = [field.key for field in change.fields if field.key is not None]
        if named:
            return named[0]
        if change.part == "rule":
            gone = change.new is None
            keys = _keys_of(self.before if gone else self.after, change.old if gone else change.new)
            if keys:
                return keys[0]
        return self._key_of(old, new)

    def _key_of(self, old: Standing, new: Standing) -> str | None:
        for side, standing in ((self.after, new), (self.before, old)):
            keys = _keys_of(side, standing.rule_index)
            if keys:
                return keys[0]
        return None


def _keys_of(side: Side, index: int | None) -> list[str]:
    """Give the keys of a rule."""
    rules = side.rules
    if rules is None or index is None or index >= len(rules.rules):
        return []
    when = rules.rules[index].when
    return list(when) if isinstance(when, Mapping) else []


def _judged_all(side: Side, rules: RuleSet) -> bool:
    """Whether it is these rules that judged: no limit is hidden in them, and no others did."""
    judged = {one.path.rules for one in side.standings if one.path is not None}
    return rules.digest == side.digest and all(one.digest == side.digest for one in judged)


def _compared(decision: Any, key: str) -> Any:
    return decision.actual_of(key) if isinstance(decision, Decision) else MISSING
