"""Finding rules that can never fire, because an earlier rule is true whenever they are.

A rule is shadowed when every condition of an earlier filter rule follows from its own conditions.
What cannot be compared (function rules, different keys, unlike operators) is left alone: a rule
is named only when it is certain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from runbook_nb._text import MISSING
from runbook_nb.rules.kinds import YES, compare_numbers, kind_of, same
from runbook_nb.rules.model import Rule
from runbook_nb.rules.operators import PRESENCE, compile_condition

_NAN: Final = float("nan")


def shadowed(rules: Sequence[Rule]) -> list[tuple[int, int]]:
    """Find the rules that can never fire, each with the first rule that is always true before it.

    Returns
    -------
    list of (int, int)
        Pairs ``(earlier, later)`` of positions.

    Examples
    --------
    >>> older = Rule({"age": {"gt": 7}}, then="old")
    >>> shadowed([older, Rule({"age": {"gte": 30}, "tier": {"eq": 1}}, then="very old")])
    [(0, 1)]
    """
    filters = [
        (n, rule.when, {key: _Known.of(ops) for key, ops in rule.when.items()})
        for n, rule in enumerate(rules)
        if isinstance(rule.when, Mapping)
    ]
    found = []
    for place, (later, _, known) in enumerate(filters):
        for earlier, when, _ in filters[:place]:
            if when.keys() <= known.keys() and all(
                known[key].implies(op, threshold)
                for key, ops in when.items()
                for op, threshold in ops.items()
            ):
                found.append((earlier, later))
                break
    return found


@dataclass(slots=True, eq=False, repr=False)
class _Known:
    """What the true conditions of one key say about its value."""

    ops: Mapping[str, Any]
    #: The only values it can have, when there are finitely many.
    values: list[Any] | None = None
    #: Bounds ``(limit, is included)``.
    low: tuple[Any, bool] | None = None
    high: tuple[Any, bool] | None = None
    #: Values it cannot have, when its kind is sure.
    excluded: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, ops: Mapping[str, Any]) -> _Known:
        known = cls(ops)
        for op, threshold in ops.items():
            known._learn(op, threshold)
        return known

    def _learn(self, op: str, threshold: Any) -> None:
        values = _values_of(op, threshold)
        if values is not None:
            self.values = (
                values
                if self.values is None
                else [v for v in self.values if any(same(v, other) for other in values)]
            )
        elif op in ("gt", "gte"):
            self._raise_low(threshold, op == "gte")
        elif op in ("lt", "lte"):
            self._drop_high(threshold, op == "lte")
        elif op == "between":
            self._raise_low(threshold[0], True)
            self._drop_high(threshold[1], True)
        elif op == "ne":
            self.excluded.append(threshold)
        elif op == "not_in" and len({kind_of(item) for item in threshold}) == 1:
            self.excluded.extend(threshold)

    def _raise_low(self, limit: Any, included: bool) -> None:
        if self.low is None or _inside(limit, self.low, None):
            self.low = (limit, included)

    def _drop_high(self, limit: Any, included: bool) -> None:
        if self.high is None or _inside(limit, None, self.high):
            self.high = (limit, included)

    def implies(self, op: str, threshold: Any) -> bool:
        """Whether a condition on the same key must be true."""
        if op in self.ops and same(self.ops[op], threshold):
            return True
        if self.values:
            test = compile_condition(op, threshold)
            return all(test(value) == YES for value in self.values)
        if op in PRESENCE:
            return self._is_there() and threshold is (op == "exists")
        if op in ("gt", "gte", "lt", "lte", "between"):
            return self._within(op, threshold)
        if op in ("ne", "not_in"):
            return self._avoids([threshold] if op == "ne" else threshold)
        prefix = self.ops.get("starts_with")
        if isinstance(prefix, str) and op in ("starts_with", "contains"):
            return isinstance(threshold, str) and (
                prefix.startswith(threshold) if op == "starts_with" else threshold in prefix
            )
        return False

    def _is_there(self) -> bool:
        if self.ops.get("exists") is True or self.ops.get("missing") is False:
            return True
        return any(op not in PRESENCE for op in self.ops)  # they are true of readable values only

    def _within(self, op: str, threshold: Any) -> bool:
        low = {"gt": (threshold, False), "gte": (threshold, True)}.get(op)
        high = {"lt": (threshold, False), "lte": (threshold, True)}.get(op)
        if op == "between":
            low, high = (threshold[0], True), (threshold[1], True)
        return (low is None or _at_least(self.low, low)) and (
            high is None or _at_most(self.high, high)
        )

    def _avoids(self, values: Iterable[Any]) -> bool:
        sure = [limit[0] for limit in (self.low, self.high) if limit] + self.excluded
        if not sure:
            return False
        kind = kind_of(sure[0])
        of_kind = [value for value in values if kind_of(value) == kind]
        return bool(of_kind) and all(
            any(same(value, other) for other in self.excluded)
            or ((self.low or self.high) and not _inside(value, self.low, self.high))
            for value in of_kind
        )


def _values_of(op: str, threshold: Any) -> list[Any] | None:
    if op == "eq":
        return [threshold]
    if op == "in":
        return list(threshold)
    if op == "is_null" and threshold is True:
        return [None, _NAN]
    if (op, threshold) in (("exists", False), ("missing", True)):
        return [MISSING, None, _NAN]
    return None


def _less(left: Any, right: Any, or_equal: bool) -> bool:
    if kind_of(left) != kind_of(right):
        return False
    return compare_numbers(lambda a, b: a < b or (or_equal and a == b), left, right)


def _inside(value: Any, low: tuple[Any, bool] | None, high: tuple[Any, bool] | None) -> bool:
    """Whether a value satisfies bounds of its own kind."""
    return (low is None or _less(low[0], value, low[1])) and (
        high is None or _less(value, high[0], high[1])
    )


def _at_least(known: tuple[Any, bool] | None, wanted: tuple[Any, bool]) -> bool:
    return known is not None and _less(wanted[0], known[0], wanted[1] or not known[1])


def _at_most(known: tuple[Any, bool] | None, wanted: tuple[Any, bool]) -> bool:
    return known is not None and _less(known[0], wanted[0], wanted[1] or not known[1])
