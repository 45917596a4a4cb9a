"""What a rule lab shows, as JSON values: the form on the left, what it comes to on the right.

Every count is the comparison's. Texts are made for showing, lists are capped and say so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeVar

from runbook_nb._text import MISSING, clip, counted, show, visible
from runbook_nb._view import Role, verdict_role
from runbook_nb.render.theme import FILLS, SIGNS
from runbook_nb.rules import Rule
from runbook_nb.rules.changes import RuleChange, rule_changes
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
from runbook_nb.rules.kinds import AWARE, BOOL, DATE, LIST, NAIVE, NUMBER, SPAN, TEXT, kind_of
from runbook_nb.rules.operators import PRESENCE
from runbook_nb.rules.wording import REDACTED, SYMBOLS, function_name, value_text
from runbook_nb.runbook.comparing import Flip
from runbook_nb.runbook.sides import GAP_WORDS
from runbook_nb.widgets.base import MAX_STATE
from runbook_nb.widgets.drafts import DraftRule

if TYPE_CHECKING:
    from runbook_nb.widgets.rulelab import RuleLab

#: How many rules, changed subjects, elements of a list, known keys and rows on the edge are sent.
RULES: Final = 100
FLIPS: Final = 20
ELEMENTS: Final = 100
KEYS: Final = 200
NEAR: Final = 3
#: Characters of one text.
LENGTH: Final = 200

#: How many rules, elements of a list that can be changed and characters of a text that can be
#: changed are sent: the first that the state has room for.
_SIZES: Final = (
    (RULES, ELEMENTS, 10_000),
    (RULES, 20, 1_000),
    *((RULES >> halved, 20, LENGTH) for halved in range(7)),
    (0, 0, 0),
)
#: How many elements are named of a list that is too long to be changed.
_NAMED: Final = 20
#: Room that is left for what a widget holds beside what it tells.
_SPARE: Final = 8 * 1024

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

_OPS: Final[dict[str, str]] = {
    **SYMBOLS,
    "exists": "exists",
    "missing": "is missing",
    "is_null": "is null",
}


def told(lab: RuleLab) -> dict[str, Any]:
    """Say what a lab shows."""
    comparison = lab.comparison
    limit = lab.limit
    spread = None if limit is None else _histogram(lab, limit)
    seen = {
        "title": _clip(lab.rules.name or "rules"),
        "before": _clip(lab.before.version or "before"),
        "notes": [_clip(note) for note in lab.notes],
        "judged": comparison.compared,
        "words": [_word(lab, word) for word in lab.comparison.words],
        "keys": [_clip(key) for key in lab.facts.keys[:KEYS]],
        "ops": [[op, text] for op, text in _OPS.items()],
        "default": _default(lab),
        "headline": headline(lab),
        "changed": comparison.changed,
        "unchanged": comparison.unchanged,
        "not_compared": [
            {"total": one.total, "words": GAP_WORDS[one.kind], "why": _clip(one.reason)}
            for one in comparison.not_compared
        ],
        "counts": [
            {"word": _clip(word), "old": old, "new": new}
            for word, (old, new) in comparison.counts().items()
            if old or new
        ],
        "histogram": spread,
        "flips": [_flip(flip) for flip in islice(comparison.flips(), FLIPS)],
        "transitions": _transitions(lab),
        "near": [] if limit is None else list(_near(lab, limit)),
        "is_changed": lab.edited.is_changed,
        "not_applied": len(lab.edited.wrong),
        "next": _clip(lab.edited.next_version),
        "kept": "" if lab.kept is None else _clip(lab.kept.version),
        "can_keep": lab.edited.is_changed and not lab.edited.wrong,
    }
    return seen | _rules(lab, MAX_STATE - _SPARE - _size(seen))


def _size(seen: Any) -> int:
    return len(json.dumps(seen).encode())


def _rules(lab: RuleLab, room: int) -> dict[str, Any]:
    """Tell the rules, as much of them as there is room for."""
    silent = {one.rule_index: one.words for one in lab.silent}
    found: dict[str, Any] = {}
    for rules, elements, length in _SIZES:
        shown = lab.edited.rules[:rules]
        found = {
            "rules": [_rule(lab, each, silent, elements, length) for each in shown],
            "more": len(lab.edited.rules) - len(shown),
        }
        if _size(found) <= room:
            break
    return found


def headline(lab: RuleLab) -> str:
    """Say how many verdicts change: ``4 verdicts change``."""
    changed = lab.comparison.changed
    if not changed:
        return "No verdict changes"
    return f"{changed} verdict{'' if changed == 1 else 's'} change{'s' if changed == 1 else ''}"


def _clip(text: Any) -> str:
    return clip(visible(str(text)), LENGTH)


def _word(lab: RuleLab, word: str) -> dict[str, Any]:
    role: Role = verdict_role(word, lab.comparison.words)
    sign = SIGNS[role]
    return {
        "value": word,
        "word": _clip(word),
        "fill": FILLS[role],
        "glyph": sign.glyph,
        "size": sign.size,
    }


# --- the form ----------------------------------------------------------------------------------


def _rule(
    lab: RuleLab, each: DraftRule, silent: Mapping[int, str], elements: int, length: int
) -> dict[str, Any]:
    rule = each.rule
    place = lab.edited.places().get(each.id)
    before = None if each.origin is None else lab.fired_before[each.origin]
    change = _change_of(lab, each)
    seen: dict[str, Any] = {
        "id": each.id,
        "then": rule.then,
        "label": _text(lab, rule.label),
        "fired": None if place is None else lab.fired[place],
        "before": before,
        "changed": "" if change is None or change.is_same else _fields(lab, change, each),
        "touched": change is None or not change.is_same or each.wrong is not None,
        "silent": "" if place is None else silent.get(place, ""),
        "wrong": None,
        "function": None,
        "conditions": [],
    }
    if each.wrong is not None:
        seen["wrong"] = {
            "what": _clip(each.wrong.what),
            "key": each.wrong.key,
            "instead": each.wrong.instead,
            "kept": each.good is not None,
        }
    if not isinstance(rule.when, Mapping):
        seen["function"] = function_name(rule.when)
        return seen
    seen["conditions"] = [
        _condition(lab, each, Limit(0, key, op, value), elements, length)
        for key, ops in rule.when.items()
        for op, value in ops.items()
    ]
    return seen


def _text(lab: RuleLab, text: str | None) -> str:
    return _clip(lab._served(text or ""))


def _change_of(lab: RuleLab, each: DraftRule) -> RuleChange | None:
    """Say what of a rule differs from what the lab began with; None for an added rule."""
    if each.origin is None:
        return None
    base = lab.rules
    alone = [type(base).bare([rule]) for rule in (base.rules[each.origin], each.good or each.rule)]
    return next(c for c in rule_changes(*alone) if c.part == "rule")


def _fields(lab: RuleLab, change: RuleChange, each: DraftRule) -> str:
    keys = each.rule.when if isinstance(each.rule.when, Mapping) else ()
    if any(map(lab.hides, keys)):
        return ", ".join(dict.fromkeys(field.field for field in change.fields))
    words = (
        field.words.replace("limit raised,", "limit").replace("limit lowered,", "limit")
        for field in change.fields
    )
    return _clip(" · ".join(words))


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
    named = [_clip(value_text(one)) for one in value[:_NAMED]]
    while len(named) > 1 and sum(map(len, named)) > LENGTH:
        named.pop()
    return f"{', '.join(named)} … ({len(named)} of {len(value)} shown)"


def _condition(
    lab: RuleLab, each: DraftRule, limit: Limit, elements: int, length: int
) -> dict[str, Any]:
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
    seen = {
        "key": key,
        "op": op,
        "kind": "hidden" if hidden else kind,
        "value": REDACTED if hidden else typed_text(value) if whole else _shortened(value),
        "unit": _clip(each.rule.unit_of(key) or ""),
        "slider": None,
    }
    if kind in ("number", "decimal") and op in SIDED and not hidden:
        seen["slider"] = _slider(lab, each, limit)
    return seen


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
    """Say between which numbers a limit can be drawn; None where no subject has such a number."""
    old = _old_limit(lab, each, limit.key, limit.op)
    marks = [float(one) for one in (limit.value, old) if one is not None]
    spread = histogram(lab.measures, limit.key, NUMBER, marks)
    if not spread.total:
        return None
    low, high = spread.edges[0], spread.edges[-1]
    whole = all(edge.is_integer() for edge in spread.edges)
    step = 1.0 if whole and high - low >= 2 else (high - low) / 100
    top = high - step if whole else high
    return {
        "min": measured_back(low, NUMBER),
        "max": measured_back(max(top, *marks), NUMBER),
        "step": measured_back(step, NUMBER),
        "old": None if old is None else measured_back(float(old), NUMBER),
    }


def _old_limit(lab: RuleLab, each: DraftRule, key: str, op: str) -> Any:
    """Give the limit a condition began with; None when it had none that can be measured."""
    if each.origin is None:
        return None
    when = lab.rules.rules[each.origin].when
    ops = when.get(key, {}) if isinstance(when, Mapping) else {}
    found = ops.get(op) if op in ops else next((v for o, v in ops.items() if o in SIDED), None)
    return found if kind_of(found) in MEASURED else None


def _default(lab: RuleLab) -> dict[str, Any] | None:
    default = lab.edited.default
    if default is None:
        return None
    return {
        "then": default.branch,
        "label": _text(lab, default.label),
        "fired": _by_default(lab.after),
        "before": _by_default(lab.before),
    }


def _by_default(side: Any) -> int:
    places = [n for n, one in enumerate(side.standings) if one.via == "default"]
    return sum(side.numbers.count(n) for n in places)


def first_condition(lab: RuleLab) -> dict[str, dict[str, Any]]:
    """Give a condition on a recorded key that nobody meets yet."""
    used = {key for each in lab.edited.rules for key in _when(each.rule)}
    keys = [key for key in lab.facts.keys if not lab.hides(key)]
    for key in sorted(keys, key=lambda one: one in used):
        spread = histogram(lab.measures, key, NUMBER)
        if spread.total:
            column = lab.measures.column(key, NUMBER)
            most = max(float(one) for one in column if one == one)  # noqa: PLR0124 - NaN
            return {key: {"gt": measured_back(most, NUMBER)}}
    return {keys[0] if keys else "": {"exists": False}}


def _when(rule: Rule) -> Mapping[str, Any]:
    return rule.when if isinstance(rule.when, Mapping) else {}


# --- what it comes to --------------------------------------------------------------------------


def _flip(flip: Flip) -> dict[str, Any]:
    return {
        "subject": _clip(show(flip.subject)),
        "before": flip.before,
        "after": flip.after,
        "key": None if flip.key is None else _clip(flip.key),
        "actual": "" if flip.actual is MISSING else _clip(show(flip.actual)),
        "number": isinstance(flip.actual, int | float) and not isinstance(flip.actual, bool),
        "decided": _clip(flip.decided_before),
        "decides": _clip(flip.decided_after),
    }


def _transitions(lab: RuleLab) -> str:
    """Say which verdicts become which, when it is one sort of change."""
    found = {(group.before, group.after) for group in lab.comparison.groups}
    if len(found) != 1:
        return f"{len(found)} transitions" if found else ""
    ((old, new),) = found
    return f"all {_clip(old)} → {_clip(new)}"


def limit_looked_at(lab: RuleLab) -> Limit | None:
    """Give the limit that was changed last, else the first that values can be measured from."""
    if lab.looked_at is not None:
        id_, key, op = lab.looked_at
        for each in lab.edited.rules:
            good = None if each.good is None else _when(each.good)
            if each.id == id_ and good and op in SIDED and op in good.get(key, {}):
                value = good[key][op]
                end = value[0] if op == "between" else value
                if kind_of(end) in MEASURED and not lab.hides(key):
                    return Limit(lab.edited.places()[id_], key, op, end)
    found = (one for one in limits_of(lab.draft.rules) if not lab.hides(one.key))
    return next(found, None)


def _rule_at(lab: RuleLab, place: int) -> DraftRule:
    return next(each for each in lab.edited.rules if lab.edited.places().get(each.id) == place)


def _histogram(lab: RuleLab, limit: Limit) -> dict[str, Any] | None:
    each = _rule_at(lab, limit.rule_index)
    old = _old_limit(lab, each, limit.key, limit.op)
    if kind_of(old) != limit.kind:
        old = None
    marks = [measure(one, limit.kind) for one in (limit.value, old) if one is not None]
    spread = histogram(lab.measures, limit.key, limit.kind, marks)
    if not spread.total:
        return None
    rule = each.good or each.rule
    unit = rule.unit_of(limit.key)
    return {
        "key": _clip(limit.key),
        "unit": _clip(unit or ""),
        "edges": list(spread.edges),
        "labels": [_edge(edge, limit.kind) for edge in spread.edges],
        "counts": list(spread.counts),
        "total": spread.total,
        "unread": spread.unread,
        "open": spread.open_end,
        "new": {"at": marks[0], "text": _edge(marks[0], limit.kind)},
        "old": None if old is None else {"at": marks[1], "text": _edge(marks[1], limit.kind)},
        "between": _between(lab, limit, marks),
        "right": limit.op in ("gt", "gte"),
        "then": rule.then,
        "words": histogram_words(spread, limit, rule.then, unit),
    }


def histogram_words(spread: Histogram, limit: Limit, then: str, unit: str | None) -> str:
    """Say what a histogram shows, for its caption and for those who cannot see it."""
    side = {"gt": "right", "gte": "right", "lt": "left", "lte": "left"}.get(limit.op)
    parts = [counted(spread.total, "subject") + (f" by {visible(unit)}" if unit else "")]
    if spread.unread:
        parts.append(f"{spread.unread} not recorded")
    said = ", ".join(parts)
    return _clip(f"{said}; {side} of the limit is {visible(then)}" if side else said)


def _edge(number: float, kind: str) -> str:
    return show(measured_back(round(number, 6), kind))


def _between(lab: RuleLab, limit: Limit, marks: list[float]) -> int:
    """Count the values between the old limit and the new one, which the two judge otherwise."""
    if len(marks) < 2 or marks[0] == marks[1]:
        return 0
    column = lab.measures.column(limit.key, limit.kind)
    low, high = min(marks), max(marks)
    if limit.op in ("gt", "lte"):
        return int(((column > low) & (column <= high)).sum())
    return int(((column >= low) & (column < high)).sum())


def _near(lab: RuleLab, limit: Limit) -> Iterator[dict[str, Any]]:
    for near in nearest_rows(lab.measures, limit, NEAR):
        one = lab.after.standing(near.row)
        yield {
            "subject": _clip(show(lab.before.subjects[near.row])),
            "value": _clip(show(near.value)),
            "distance": _distance(near.distance, limit),
            "branch": one.branch,
            "why": "" if one.decided else _clip(one.reason),
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
