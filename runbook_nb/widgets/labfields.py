"""Limits as fields of a form: how each is shown, read back from what was typed, and slid."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeVar

from runbook_nb._text import clip, show, visible
from runbook_nb.rules import Rule
from runbook_nb.rules.edges import SIDED, Limit, histogram, measure, measured_back
from runbook_nb.rules.kinds import AWARE, BOOL, DATE, LIST, NAIVE, NUMBER, SPAN, TEXT, kind_of
from runbook_nb.rules.operators import PRESENCE
from runbook_nb.rules.wording import REDACTED, value_text
from runbook_nb.widgets.drafts import DraftRule

if TYPE_CHECKING:
    from runbook_nb.widgets.rulelab import RuleLab

#: Elements of a list that can be changed, at most.
ELEMENTS: Final = 100
#: Characters of one text.
LENGTH: Final = 200
#: How many elements are named of a list that is too long to be changed.
_NAMED: Final = 20

_MICROSECOND: Final = timedelta(microseconds=1)
_Number = TypeVar("_Number", int, float, Decimal)

#: Kinds of limit that are typed into a field of their own.
_FIELDS: Final = {
    NUMBER: "number",
    BOOL: "bool",
    TEXT: "text",
    DATE: "date",
    AWARE: "datetime",
    NAIVE: "datetime",
    SPAN: "span",
    LIST: "list",
}


def short(text: Any) -> str:
    """Give a text as it is shown, of one length at most."""
    return clip(visible(str(text)), LENGTH)


def conditions_of(rule: Rule) -> Mapping[str, Any]:
    """Give the conditions of a rule; none where it is a function."""
    return rule.when if isinstance(rule.when, Mapping) else {}


def _field(value: Any) -> str:
    """Name the field a value is typed into; a decimal is read back as one."""
    return "decimal" if isinstance(value, Decimal) else _FIELDS.get(kind_of(value), "fixed")


def _fits(value: Any, elements: int, length: int) -> bool:
    """Say whether a limit is small enough to be sent whole."""
    if isinstance(value, list | tuple):
        return len(value) <= elements and all(_fits(one, elements, length) for one in value)
    return len(value if isinstance(value, str) else value_text(value)) <= length


def _shortened(value: Any) -> str:
    """Say of a limit that is not sent whole what it begins with: ``1, 2 … (2 of 100 shown)``."""
    if not isinstance(value, list | tuple):
        text = value if isinstance(value, str) else value_text(value)
        return f"{text[:LENGTH]}… ({LENGTH} of {len(text)} characters shown)"
    named = [short(value_text(one)) for one in value[:_NAMED]]
    while len(named) > 1 and sum(map(len, named)) > LENGTH:
        named.pop()
    return f"{', '.join(named)} … ({len(named)} of {len(value)} shown)"


def condition(
    lab: RuleLab, each: DraftRule, limit: Limit, elements: int, length: int
) -> dict[str, Any]:
    """Show a condition of a rule, with what its limit is typed or drawn into."""
    seen = field_of(lab, limit, elements, length)
    if seen["kind"] == "fixed":
        number = lab.edited.number_of(each.id)
        seen["instead"] = short(
            f"change it by lab.set_limit({number}, {limit.key!r}, {limit.op!r}, …)"
        )
    seen["unit"] = short(each.rule.unit_of(limit.key) or "")
    if seen["kind"] in ("number", "decimal") and limit.op in SIDED:
        seen["slider"] = _slider(lab, each, limit)
    return seen


def field_of(lab: RuleLab, limit: Limit, elements: int, length: int) -> dict[str, Any]:
    """Show a limit: the kind of its field, and what stands in it."""
    key, op, value = limit.key, limit.op, limit.value
    hidden = lab.hides(key)
    kind = _field(value)
    if op in PRESENCE:
        kind = "presence"
    elif op == "between":
        kind = f"between_{_field(value[0])}"
    elif op in ("in", "not_in"):
        kind = "list"
    whole = hidden or kind == "presence" or _fits(value, max(elements, 2), length)
    if not whole:
        kind = "fixed"
    return {
        "key": key,
        "op": op,
        "kind": "hidden" if hidden else kind,
        "value": REDACTED if hidden else typed_text(value) if whole else _shortened(value),
        "unit": "",
        "slider": None,
        "instead": "",
    }


def typed_text(value: Any) -> Any:
    """Give a limit as a field holds it.

    Examples
    --------
    >>> typed_text(7), typed_text(True), typed_text(date(2026, 1, 2)), typed_text([1, "a"])
    ('7', True, '2026-01-02', [{'kind': 'number', 'value': '1'}, {'kind': 'text', 'value': 'a'}])
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, list | tuple):
        return [{"kind": _field(one), "value": typed_text(one)} for one in value[:ELEMENTS]]
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, timedelta):
        seconds = Decimal(value // _MICROSECOND).scaleb(-6)
        return f"{seconds.normalize():f}"
    if isinstance(value, int | float | Decimal):
        return str(value)
    return value if isinstance(value, str) else value_text(value)


def limit_of(kind: str, typed: Any) -> Any:
    """Read what was typed into a field.

    Raises
    ------
    ValueError
        It is not of that kind, in words.

    Examples
    --------
    >>> limit_of("number", "14"), limit_of("number", "1.5"), limit_of("date", "2026-01-02")
    (14, 1.5, datetime.date(2026, 1, 2))
    >>> limit_of("list", [{"kind": "text", "value": "a"}, {"kind": "number", "value": "7"}])
    ['a', 7]
    """
    if kind == "list" or kind.startswith("between_"):
        return [limit_of(str(one["kind"]), one["value"]) for one in typed]
    if kind in ("bool", "presence"):
        return bool(typed)
    if kind == "text":
        return str(typed)
    text = str(typed).strip()
    try:
        if kind == "date":
            return date.fromisoformat(text)
        if kind == "datetime":
            return datetime.fromisoformat(text)
        if kind == "span":
            return _span(text)
        if kind == "number":
            return _number(text)
        if kind == "decimal":
            return _finite(Decimal(text))
    except (ValueError, ArithmeticError):
        wanted = {
            "span": "a number of seconds",
            "datetime": "a date with a time",
            "decimal": "a number",
        }
        said = wanted.get(kind, f"a {kind}")
        raise ValueError(
            f"{visible(text)!r} is not {said}" if text else f"{said} is missing"
        ) from None
    raise ValueError("a limit of this kind cannot be typed")


def _finite(number: _Number) -> _Number:
    """Give a number that can be measured; what has no end, and what is no number, is refused."""
    if not isfinite(float(number)):
        raise ValueError
    return number


def _number(text: str) -> int | float:
    try:
        return _finite(int(text))
    except ValueError:
        return _finite(float(text))


def _span(text: str) -> timedelta:
    # Refuses what is too long; a float alone would round the microseconds of a long span.
    timedelta(seconds=float(text))
    return int((Decimal(text) * 1_000_000).to_integral_value()) * _MICROSECOND


def _slider(lab: RuleLab, each: DraftRule, limit: Limit) -> dict[str, Any] | None:
    """Say between which numbers a limit can be drawn; None where no subject has such a number.

    None, too, where the limit itself has no place between any two.

    It reaches as far as the bulk of the values does, or nobody could draw it; how far the others
    lie is said.
    """
    before = old_condition(lab, each, limit.key, limit.op)
    now, old = (measure(one, NUMBER) for one in (limit.value, before and before[1]))
    marks = [one for one in (now, old) if isfinite(one)]
    spread = histogram(lab.measures, limit.key, NUMBER, marks)
    if not spread.total or not isfinite(now):
        return None
    low, high = spread.edges[0], spread.edges[-1]
    whole = all(edge.is_integer() for edge in spread.edges)
    step = 1.0 if whole and high - low >= 2 else (high - low) / 100
    top = max(high - step if whole else high, *marks)
    column = lab.measures.column(limit.key, NUMBER)
    beyond = column[column > top]
    return {
        "min": measured_back(low, NUMBER),
        "max": measured_back(top, NUMBER),
        "step": measured_back(step, NUMBER),
        "old": measured_back(old, NUMBER) if isfinite(old) else None,
        "beyond": _beyond(beyond.tolist()),
    }


def _beyond(values: list[float]) -> str:
    return f"{len(values)} above, to {show(measured_back(max(values), NUMBER))}" if values else ""


def old_condition(lab: RuleLab, each: DraftRule, key: str, op: str) -> tuple[str, Any] | None:
    """Give the operator and the limit that a condition began with; None when it is a new one."""
    if each.origin is None:
        return None
    ops = conditions_of(lab.rules.rules[each.origin]).get(key, {})
    found = op if op in ops else next((one for one in ops if one in SIDED), None)
    return None if found is None else (found, ops[found])
