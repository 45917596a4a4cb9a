"""Why a verdict changed: which difference of the rules, or of the values, made it.

Bridge layer. A cause is said only as far as it is sure: of one changed rule where what decided on
either side is that rule, and of changed values where the rules are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runbook_nb._frozen import Immutable
from runbook_nb._json import to_wire
from runbook_nb._text import MISSING
from runbook_nb._value import frozen
from runbook_nb.rules import Decision
from runbook_nb.rules.changes import RuleChange
from runbook_nb.runbook.sides import Side, Standing


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
        self._old = {c.old: c for c in changes if c.part == "rule" and c.old is not None}
        self._new = {c.new: c for c in changes if c.part == "rule" and c.new is not None}
        self._outside = [c for c in self.differing if c.part == "outside"]
        self._branches = {c.part: c for c in changes if c.part in ("default", "unreadable")}
        self._known: dict[tuple[Standing, Standing], Cause] = {}

    @property
    def by_pair(self) -> bool:
        """Whether the cause of a change depends on nothing but the two standings."""
        return self.same_facts

    def of_pair(self, old: Standing, new: Standing) -> Cause:
        """Say what made one standing the other, as far as the rules did."""
        found = self._known.get((old, new))
        if found is None:
            found = self._known[old, new] = self._of_pair(old, new)
        return found

    def of_rows(self, row: int, other: int) -> Cause:
        """Say what made the change of one subject."""
        cause = self.of_pair(self.before.standing(row), self.after.standing(other))
        if self.same_facts:
            return cause
        if not self.differing:
            return cause
        if cause.change is None or not self._values_differ(row, other, cause.key):
            return cause
        return Cause(f"{cause.words}, and the value changed", cause.key, cause.change)

    def _values_differ(self, row: int, other: int, key: str | None) -> bool:
        if key is None:
            return True
        old, new = self.actual(row, None, key), self.actual(None, other, key)
        if MISSING in (old, new):  # one side did not look at it, so it says nothing
            return False
        return bool(to_wire(old) != to_wire(new))

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
        found: dict[str, Cause] = {}
        for side, standing, of_index in (
            (self.after, new, self._new),
            (self.before, old, self._old),
        ):
            change = self._deciding_change(standing, of_index)
            if change is not None and change.decides:
                key = _key_of_change(change, side, standing)
                found.setdefault(change.cause, Cause(change.cause, key, change))
        if found:
            first, *_ = found.values()
            return Cause("; ".join(found), first.key, first.change)
        if len(self.differing) == 1:
            only = self.differing[0]
            return Cause(only.cause, self._key_of(old, new), only)
        words = "several rules changed" if self.same_facts else "rules and values changed"
        return Cause(words, self._key_of(old, new))

    def _deciding_change(
        self, standing: Standing, of_index: Mapping[int, RuleChange]
    ) -> RuleChange | None:
        """Give the change of what decided; None where nothing did or it is not known which."""
        if standing.via == "outside":
            return self._outside[0] if len(self._outside) == 1 else None
        if standing.via in ("rule", "unreadable") and standing.rule_index is not None:
            change = of_index.get(standing.rule_index)
            if standing.via == "unreadable" and (change is None or not change.decides):
                return self._branches.get("unreadable")
            return change
        return None if standing.via != "default" else self._branches.get("default")

    def _key_of(self, old: Standing, new: Standing) -> str | None:
        for side, standing in ((self.after, new), (self.before, old)):
            keys = _keys_of(side, standing)
            if keys:
                return keys[0]
        return None


def _keys_of(side: Side, standing: Standing) -> list[str]:
    """Give the keys of what decided."""
    rules, index = side.rules, standing.rule_index
    if rules is None or index is None or index >= len(rules.rules):
        return []
    when = rules.rules[index].when
    return list(when) if isinstance(when, Mapping) else []


def _key_of_change(change: RuleChange, side: Side, standing: Standing) -> str | None:
    named = [field.key for field in change.fields if field.key is not None]
    return (named or _keys_of(side, standing) or [None])[0]  # type: ignore[list-item]


def _compared(decision: Any, key: str) -> Any:
    if not isinstance(decision, Decision):
        return MISSING
    return next((c.actual for c in decision.conditions if c.key == key), MISSING)
