"""What is recorded around the limit looked at: how values are spread, and who is on the edge."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from runbook_nb._text import counted, show, visible
from runbook_nb.rules.edges import (
    MEASURED,
    SIDED,
    Histogram,
    Limit,
    histogram,
    limits_of,
    measure,
    measured_back,
    nearest_rows,
)
from runbook_nb.rules.kinds import DATE, NUMBER, kind_of
from runbook_nb.widgets.drafts import DraftRule
from runbook_nb.widgets.labfields import conditions_of, old_condition, short

if TYPE_CHECKING:
    from runbook_nb.widgets.rulelab import RuleLab

#: Rows shown on either side of a limit.
NEAR: Final = 3


def first_condition(lab: RuleLab) -> dict[str, dict[str, Any]]:
    """Give a condition on a recorded key that nobody meets yet."""
    used = {key for each in lab.edited.rules for key in conditions_of(each.rule)}
    keys = [key for key in lab.facts.keys if not lab.hides(key)]
    for key in sorted(keys, key=lambda one: one in used):
        spread = histogram(lab.measures, key, NUMBER)
        if spread.total:
            column = lab.measures.column(key, NUMBER)
            most = max(float(one) for one in column if one == one)  # noqa: PLR0124 - NaN
            return {key: {"gt": measured_back(most, NUMBER)}}
    return {keys[0] if keys else "": {"exists": False}}


def limit_looked_at(lab: RuleLab) -> Limit | None:
    """Give the limit that was changed last, else the first that values can be measured from."""
    if lab.looked_at is not None:
        id_, key, op = lab.looked_at
        for each in lab.edited.rules:
            good = None if each.good is None else conditions_of(each.good)
            if each.id == id_ and good and op in SIDED and op in good.get(key, {}):
                end = _ends(good[key][op])[_end_changed(lab, each, key, op, good[key][op])]
                if kind_of(end) in MEASURED and not lab.hides(key):
                    return Limit(lab.edited.places()[id_], key, op, end)
    found = (one for one in limits_of(lab.draft.rules) if not lab.hides(one.key))
    return next(found, None)


def _ends(limit: Any) -> tuple[Any, ...]:
    return tuple(limit) if isinstance(limit, list | tuple) else (limit,)


def _end_changed(lab: RuleLab, each: DraftRule, key: str, op: str, limit: Any) -> int:
    """Say which end of a ``between`` is looked at: the upper one where it alone was changed."""
    old = old_condition(lab, each, key, op)
    if op != "between" or old is None or old[0] != "between":
        return 0
    (low, high), (old_low, old_high) = limit, old[1]
    return int(low == old_low and high != old_high)


def _rule_at(lab: RuleLab, place: int) -> DraftRule:
    return next(each for each in lab.edited.rules if lab.edited.places().get(each.id) == place)


class _Side(NamedTuple):
    """A limit as a place on the axis: what lies above it, or below it, meets the condition."""

    above: bool
    #: Whether a value on the limit lies above.
    upper: bool
    mark: float
    kind: str

    def met(self, values: Any) -> Any:
        over = values >= self.mark if self.upper else values > self.mark
        return over if self.above else ~over

    def place(self, width: float | None) -> float:
        """Where the line stands: between bars of single numbers, the one of the limit aside."""
        return self.mark if width is None or self.upper else self.mark + width


#: Of each operator, and of the ends of ``between``: whether what is above meets it, and whether a
#: value on the limit counts as above.
_SIDES: Final = {
    "gt": (True, False),
    "gte": (True, True),
    "lt": (False, True),
    "lte": (False, False),
    "between": (True, True),
    "to": (False, False),
}


def _side(op: str, limit: Any, end: int, kind: str) -> _Side | None:
    """Give one end of a condition; None where it has no such end, or one of another kind."""
    ends = _ends(limit)
    if op not in _SIDES or end >= len(ends) or kind_of(ends[end]) != kind:
        return None
    above, upper = _SIDES["to" if op == "between" and end else op]
    return _Side(above, upper, measure(ends[end], kind), kind)


def spread_of(lab: RuleLab, limit: Limit) -> dict[str, Any] | None:
    """Show how the values of a key lie about its limit, and about the one there was before."""
    each = _rule_at(lab, limit.rule_index)
    rule = each.good or each.rule
    op, kind, whole = limit.op, limit.kind, conditions_of(rule)[limit.key][limit.op]
    end = _ends(whole).index(limit.value)
    new = _side(op, whole, end, kind)
    assert new is not None  # noqa: S101 - the limit is of this kind
    further = _side(op, whole, 1 - end, kind) if op == "between" else None
    before = old_condition(lab, each, limit.key, op)
    # Of a pair and a single limit, no end of the one stands for the other.
    alike = before is not None and (before[0] == "between") == (op == "between")
    old = _side(*before, end, kind) if before is not None and alike else None
    sides = [one for one in (new, old, further) if one is not None]
    if not all(math.isfinite(one.mark) for one in sides):
        return None  # it has no place on an axis
    spread = histogram(lab.measures, limit.key, kind, [one.mark for one in sides])
    if not spread.total:
        return None
    first, second = spread.edges[:2]
    width = second - first if kind == NUMBER and second - first == 1 and first % 1 == 0 else None
    middles = [edge if width is not None else edge + (second - first) / 2 for edge in spread.edges]
    inside = [all(one.met(at) for one in (new, further) if one) for at in _array(middles[:-1])]
    unit = rule.unit_of(limit.key)

    def drawn(side: _Side | None) -> dict[str, Any] | None:
        if side is None:
            return None
        return {"at": side.place(width), "text": _edge(side.mark, kind)}

    return {
        "key": short(limit.key),
        "unit": short(unit or ""),
        "edges": list(spread.edges),
        "labels": [_edge(edge, kind) for edge in spread.edges],
        "centred": width is not None,
        "counts": list(spread.counts),
        "inside": [bool(one) for one in inside],
        "total": spread.total,
        "unread": spread.unread,
        "open": spread.open_end,
        "new": drawn(new),
        "old": drawn(old),
        "further": drawn(further),
        "between": 0 if old is None else _between(lab, limit.key, new, old),
        "then": rule.then,
        "words": histogram_words(spread, limit, rule.then, unit),
    }


def _array(values: list[float]) -> Any:
    import numpy as np

    return np.array(values, "f8")


def _between(lab: RuleLab, key: str, new: _Side, old: _Side) -> int:
    """Count the values that the old limit and the new one judge otherwise.

    Where they have their ground on different sides these are not between the two, and none is
    counted.
    """
    if new.above != old.above:
        return 0
    column = lab.measures.column(key, new.kind)
    column = column[column == column]  # noqa: PLR0124 - NaN is no value
    return int((new.met(column) != old.met(column)).sum())


def histogram_words(spread: Histogram, limit: Limit, then: str, unit: str | None) -> str:
    """Say what a histogram shows, for its caption and for those who cannot see it."""
    side = {"gt": "right", "gte": "right", "lt": "left", "lte": "left"}.get(limit.op)
    where = "between the limits" if limit.op == "between" else f"{side} of the limit"
    parts = [counted(spread.total, "subject") + (f" by {visible(unit)}" if unit else "")]
    if spread.unread:
        parts.append(f"{spread.unread} not recorded")
    if spread.beyond:
        parts.append(f"{spread.beyond} too far out to be drawn")
    said = ", ".join(parts)
    return short(f"{said}; {where} is {visible(then)}")


def _edge(number: float, kind: str) -> str:
    return show(measured_back(round(number, 6), kind))


def near_rows(lab: RuleLab, limit: Limit) -> Iterator[dict[str, Any]]:
    """Give the subjects nearest to a limit, those below it first."""
    for near in nearest_rows(lab.measures, limit, NEAR):
        one = lab.after.standing(near.row)
        yield {
            "subject": short(show(lab.before.subjects[near.row])),
            "value": short(show(near.value)),
            "distance": _distance(near.distance, limit),
            "branch": one.branch,
            "why": "" if one.decided else short(one.reason),
        }


def _distance(distance: float, limit: Limit) -> str:
    if not distance:
        return "on the limit"
    side = "above" if distance > 0 else "below"
    if limit.kind == NUMBER:
        return f"{show(measured_back(round(abs(distance), 6), NUMBER))} {side}"
    if limit.kind == DATE:
        return f"{counted(round(abs(distance)), 'day')} {side}"
    return f"{show(timedelta(seconds=abs(distance)))} {side}"
