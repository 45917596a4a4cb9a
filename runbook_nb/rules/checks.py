"""Checks of a rule set: everything wrong with it is found in one pass and told together.

The checks also bring what was written into its one kept form: rules as `Rule`, thresholds as
plain frozen values, operators under their one name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from runbook_nb._frozen import FrozenDict, FrozenList
from runbook_nb._text import at, clip, did_you_mean, listed
from runbook_nb.errors import Problem
from runbook_nb.rules.kinds import (
    KIND_WORDS,
    LIST,
    MAP,
    NAN,
    ORDERED,
    OTHER,
    UNREADABLE_CODES,
    compare_numbers,
    kind_of,
    kind_words,
    plain,
)
from runbook_nb.rules.model import Default, OnUnreadable, Outside, Rule, Unreadable
from runbook_nb.rules.operators import ALIASES, ELSEWHERE, OPERATORS, PRESENCE, compile_pattern
from runbook_nb.rules.written import BROKEN

#: Longest list a threshold may be, or hold.
MAX_LIST: Final = 1000

#: How deep a list or mapping threshold may nest.
MAX_DEPTH: Final = 20

#: Widest whole number a threshold may be, in bits; wider ones cannot be written as text.
MAX_BITS: Final = 12_000

#: Longest pattern of ``matches``, in characters.
MAX_PATTERN: Final = 1000

_RULE_KEYS: Final = ("when", "then", "label", "unit")
_BRANCH_KEYS: Final = ("branch", "label")
_OUTSIDE_KEYS: Final = ("where", "what", "why")

_INSTALL: Final = (
    "install the engine with: pip install 'runbook_nb[regex]' "
    "(conda: conda install -c conda-forge google-re2)"
)


class Report:
    """Collects problems while a definition is checked.

    Examples
    --------
    >>> report = Report()
    >>> report.add("has no rules", "rules", "give at least one rule")
    >>> [str(problem) for problem in report.problems]
    ['rules: has no rules; give at least one rule']
    """

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def add(self, message: str, where: str, fix: str | None = None) -> None:
        """Note one problem."""
        self.problems.append(Problem(message=message, where=where, fix=fix))


def check_text(value: Any, where: str, report: Report, *, optional: bool = False) -> Any:
    """Check a name, branch or label: text that is not blank and that files can hold."""
    if value is None and optional:
        return None
    if not isinstance(value, str):
        fix = "put it in quotes" if isinstance(value, int | float) else "give text"
        report.add("is missing" if value is None else f"is {kind_words(value)}", where, fix)
    elif not value.strip():
        report.add("is blank", where, "leave it out" if optional else "give it words")
    elif not _encodable(value):
        report.add("holds a lone surrogate, which no file can hold", where)
    else:
        return str(value)
    return None


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def check_keys(
    entry: Mapping[Any, Any], known: Iterable[str], where: str, report: Report
) -> dict[str, Any]:
    """Check a mapping for unknown keys, and give those it may have."""
    names = tuple(known)
    for key in entry:
        if key not in names:
            fix = did_you_mean(key, names) if isinstance(key, str) else None
            report.add("is not a key here", at(where, key), fix or f"use {listed(names, 'or')}")
    return {name: entry[name] for name in names if name in entry}


def check_rules(rules: Any, report: Report) -> tuple[Rule, ...]:
    """Check the list of rules and give them in kept form."""
    if isinstance(rules, Rule | Mapping | str) or not isinstance(rules, Iterable):
        what = "one rule" if isinstance(rules, Rule | Mapping) else kind_words(rules)
        report.add(f"is {what}, not a list", "rules", "put the rules in a list")
        return ()
    entries = list(rules)
    if not entries:
        report.add(
            "holds no rule, so every subject would get the default unjudged",
            "rules",
            "give at least one rule",
        )
    checked = (_rule(entry, f"rules[{n}]", report) for n, entry in enumerate(entries))
    return tuple(rule for rule in checked if rule is not None)


def _rule(entry: Any, where: str, report: Report) -> Rule | None:
    before = len(report.problems)
    if isinstance(entry, Rule):
        fields: dict[str, Any] = {name: getattr(entry, name) for name in _RULE_KEYS}
    elif isinstance(entry, Mapping):
        fields = check_keys(entry, _RULE_KEYS, where, report)
    else:
        report.add(f"is {kind_words(entry)}, not a rule", where, "write Rule({...}, then=...)")
        return None
    when: Any = None
    if fields.get("when") is None:
        report.add("is missing", at(where, "when"), "say when the rule holds")
    else:
        when = _when(fields["when"], at(where, "when"), report)
    then = check_text(fields.get("then"), at(where, "then"), report)
    label = check_text(fields.get("label"), at(where, "label"), report, optional=True)
    unit = _unit(fields.get("unit"), when, at(where, "unit"), report)
    return Rule(when, then, label, unit) if len(report.problems) == before else None


def _unit(unit: Any, when: Any, where: str, report: Report) -> Any:
    if unit is None:
        return None
    if callable(when):
        report.add("has no limit to stand beside", where, "leave the unit of a function rule out")
        return None
    if not isinstance(unit, Mapping):
        return check_text(unit, where, report)
    keys = tuple(when) if isinstance(when, Mapping) else ()
    for key in unit:
        if when is not None and key not in keys:
            fix = did_you_mean(key, keys) if isinstance(key, str) else None
            report.add("is not a key of this rule", at(where, key), fix)
    return FrozenDict({key: check_text(text, at(where, key), report) for key, text in unit.items()})


def _when(when: Any, where: str, report: Report) -> Any:
    if callable(when):
        return when
    if not isinstance(when, Mapping):
        report.add(
            f"is {kind_words(when)}, not conditions",
            where,
            'write {"key": {"operator": threshold}} or give a function',
        )
        return None
    if not when:
        report.add(
            "is empty, and a rule without a condition would hold for everything",
            where,
            "give it a condition, or make it the default",
        )
        return None
    return FrozenDict({key: _ops(key, ops, at(where, key), report) for key, ops in when.items()})


def _ops(key: Any, ops: Any, where: str, report: Report) -> Any:
    if check_text(key, where, report) is None:
        return None
    if not isinstance(ops, Mapping):
        shown = "null" if ops is None else kind_words(ops)
        fix = 'write {"is_null": true}' if ops is None else 'write {"eq": ...} for equality'
        report.add(f"is {shown}, not operators", where, fix)
        return None
    if not ops:
        report.add("has no operator", where, f"use one of {listed(OPERATORS, 'or')}")
        return None
    checked: dict[str, Any] = {}
    for written, threshold in ops.items():
        op = ALIASES.get(written, written) if isinstance(written, str) else written
        here = at(where, written)
        if op not in OPERATORS:
            report.add("is not an operator", here, _operator_fix(op))
        elif op in checked:
            report.add("is there twice", here, "keep one of the two spellings")
        else:
            checked[op] = check_threshold(op, threshold, here, report)
    return FrozenDict(checked)


def _operator_fix(op: Any) -> str:
    near = None
    if isinstance(op, str):
        meant = ELSEWHERE.get(op.lower())
        near = f"did you mean {meant!r}?" if meant else did_you_mean(op, (*OPERATORS, *ALIASES))
    return near or f"use one of {listed(OPERATORS, 'or')}"


def check_threshold(op: str, threshold: Any, where: str, report: Report) -> Any:
    """Check one threshold against its operator, and give it in kept form."""
    if threshold is BROKEN:
        return None
    if op in PRESENCE:
        if not isinstance(threshold, bool):
            report.add(f"is {kind_words(threshold)}, not true or false", where, "use true or false")
        return threshold
    before = len(report.problems)
    value = _kept(threshold, where, report, 0, top=True)
    if len(report.problems) == before:
        _CHECKS.get(op, _any)(op, value, where, report)
    return value


def _kept(value: Any, where: str, report: Report, depth: int, *, top: bool = False) -> Any:
    try:
        value = plain(value)
        kind = kind_of(value)
    except Exception:  # a foreign scalar that cannot even be made plain
        kind = OTHER
    if kind in UNREADABLE_CODES:
        if UNREADABLE_CODES[kind] == NAN or top:
            _refuse_unreadable(kind, where, report)
        return None
    if kind == OTHER:
        fix = "write a list" if isinstance(value, set | frozenset) else None
        report.add(f"is {kind_words(value)}, which no rule can compare", where, fix)
        return None
    if kind == LIST:
        return _kept_list(value, where, report, depth)
    if kind == MAP:
        return _kept_map(value, where, report, depth)
    return _kept_scalar(value, where, report)


def _refuse_unreadable(kind: str, where: str, report: Report) -> None:
    what = {"null": "null", "nan": "NaN"}.get(kind, "no value")
    report.add(
        f"is {what}, which equals nothing and has no order",
        where,
        "use is_null: true for null or NaN, missing: true when the key may also be absent",
    )


def _kept_list(items: Sequence[Any], where: str, report: Report, depth: int) -> Any:
    if len(items) > MAX_LIST:
        report.add(
            f"holds {len(items)} items, more than {MAX_LIST}",
            where,
            "look the value up in a stage before, and judge the answer",
        )
        return None
    if depth >= MAX_DEPTH:
        report.add(f"nests deeper than {MAX_DEPTH} levels", where)
        return None
    return FrozenList(
        [_kept(item, f"{where}[{n}]", report, depth + 1) for n, item in enumerate(items)]
    )


def _kept_map(items: Mapping[Any, Any], where: str, report: Report, depth: int) -> Any:
    if depth >= MAX_DEPTH:
        report.add(f"nests deeper than {MAX_DEPTH} levels", where)
        return None
    kept = {}
    for key, item in items.items():
        if not isinstance(key, str) or not _encodable(key):
            report.add("is a key that is not text", at(where, key), "use text keys")
        else:
            kept[str(key)] = _kept(item, at(where, key), report, depth + 1)
    return FrozenDict(kept)


def _kept_scalar(value: Any, where: str, report: Report) -> Any:
    if isinstance(value, str):
        if not _encodable(value):
            report.add("holds a lone surrogate, which no file can hold", where)
        return str.__str__(value)
    if isinstance(value, bool | Decimal):
        return value
    if isinstance(value, int):
        if value.bit_length() > MAX_BITS:
            report.add(f"is a number wider than {MAX_BITS} bits", where)
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, datetime):
        clock = (value.hour, value.minute, value.second, value.microsecond)
        return datetime(
            value.year, value.month, value.day, *clock, tzinfo=value.tzinfo, fold=value.fold
        )
    if isinstance(value, date):
        return date(value.year, value.month, value.day)
    return timedelta(days=value.days, seconds=value.seconds, microseconds=value.microseconds)


def _any(op: str, value: Any, where: str, report: Report) -> None:
    pass


def _ordered(op: str, value: Any, where: str, report: Report) -> None:
    kind = kind_of(value)
    if kind not in ORDERED:
        report.add(
            f"is {KIND_WORDS[kind]}, which has no order",
            where,
            "use eq, or in for a list" if kind == LIST else "use eq",
        )


def _list(op: str, value: Any, where: str, report: Report) -> None:
    kind = kind_of(value)
    if kind != LIST:
        report.add(
            f"is {KIND_WORDS[kind]}, and {op} needs a list",
            where,
            f"write [...], or use {'eq' if op == 'in' else 'ne'} for one value",
        )
        return
    for n, item in enumerate(value):
        if kind_of(item) in UNREADABLE_CODES:
            _refuse_unreadable(kind_of(item), f"{where}[{n}]", report)


def _pair(op: str, value: Any, where: str, report: Report) -> None:
    fix = "write [lowest, highest]; both ends belong to it"
    if kind_of(value) != LIST or len(value) != 2:
        report.add("is not a list of two limits", where, fix)
        return
    low, high = value
    kind = kind_of(low)
    if kind not in ORDERED or kind_of(high) != kind:
        report.add(f"has limits that are {kind_words(low)} and {kind_words(high)}", where, fix)
    elif not compare_numbers(lambda a, b: a <= b, low, high):
        report.add("has its lower limit above its upper one", where, fix)


def _some_text(op: str, value: Any, where: str, report: Report) -> None:
    if op != "contains" and not isinstance(value, str):
        report.add(f"is {kind_words(value)}, and {op} needs text", where)
    elif isinstance(value, str) and not value:
        report.add("is empty, and every text would do", where, "use exists: true for any value")


def _pattern(op: str, value: Any, where: str, report: Report) -> None:
    before = len(report.problems)
    _some_text(op, value, where, report)
    if len(report.problems) > before:
        return
    if len(value) > MAX_PATTERN:
        report.add(f"is longer than {MAX_PATTERN} characters", where)
        return
    try:
        compile_pattern(value)
    except ImportError:
        report.add("needs a regular-expression engine that is not installed", where, _INSTALL)
    except Exception as error:
        said = error.args[0] if error.args else ""
        said = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        report.add(
            f"is not a pattern the engine takes ({clip(said, 120)})",
            where,
            "it is RE2's language: no look-around and no back-references",
        )


_CHECKS: Final[dict[str, Callable[[str, Any, str, Report], None]]] = {
    "gt": _ordered,
    "gte": _ordered,
    "lt": _ordered,
    "lte": _ordered,
    "in": _list,
    "not_in": _list,
    "between": _pair,
    "contains": _some_text,
    "starts_with": _some_text,
    "matches": _pattern,
}


def check_default(default: Any, report: Report) -> Default | None:
    """Check the default: a `Default`, a branch name or a mapping."""
    if default is None:
        return None
    if isinstance(default, str):
        branch = check_text(default, "default", report)
        return Default(branch) if branch is not None else None
    found = _branch(default, Default, "default", report)
    return Default(*found) if found else None


def check_unreadable(unreadable: Any, report: Report) -> OnUnreadable:
    """Check what an unreadable decision does."""
    if unreadable == "skip":
        return "skip"
    if unreadable == "raise":
        return "raise"
    if isinstance(unreadable, str) or unreadable is None:
        near = did_you_mean(unreadable, ("skip", "raise")) if unreadable else None
        report.add(
            "is neither 'skip' nor 'raise'",
            "unreadable",
            near or "for a branch write Unreadable(branch, label=...)",
        )
        return "skip"
    found = _branch(unreadable, Unreadable, "unreadable", report)
    return Unreadable(*found) if found else "skip"


def _branch(
    entry: Any, kind: type[Default | Unreadable], where: str, report: Report
) -> tuple[str, str | None] | None:
    if isinstance(entry, kind):
        fields: dict[str, Any] = {"branch": entry.branch, "label": entry.label}
    elif isinstance(entry, Mapping):
        fields = check_keys(entry, _BRANCH_KEYS, where, report)
    else:
        report.add(f"is {kind_words(entry)}", where, f"write {kind.__name__}(branch, label=...)")
        return None
    branch = check_text(fields.get("branch"), at(where, "branch"), report)
    label = check_text(fields.get("label"), at(where, "label"), report, optional=True)
    return (branch, label) if branch is not None else None


def check_outside(outside: Any, report: Report) -> tuple[Outside, ...]:
    """Check the ground outside the rules."""
    if isinstance(outside, Outside | Mapping | str) or not isinstance(outside, Iterable):
        report.add("is not a list", "outside", "put the entries in a list")
        return ()
    checked = (_outside(entry, f"outside[{n}]", report) for n, entry in enumerate(outside))
    return tuple(entry for entry in checked if entry is not None)


def _outside(entry: Any, where: str, report: Report) -> Outside | None:
    before = len(report.problems)
    if isinstance(entry, Outside):
        fields: dict[str, Any] = {name: getattr(entry, name) for name in _OUTSIDE_KEYS}
    elif isinstance(entry, Mapping):
        fields = check_keys(entry, _OUTSIDE_KEYS, where, report)
    else:
        report.add(f"is {kind_words(entry)}", where, "write Outside(where=..., what=..., why=...)")
        return None
    conditions: Any = fields.get("where")
    if callable(conditions):
        report.add("is a function", at(where, "where"), "write conditions as in a rule")
    else:
        conditions = _when({} if conditions is None else conditions, at(where, "where"), report)
    what = check_text(fields.get("what"), at(where, "what"), report)
    why = check_text(fields.get("why"), at(where, "why"), report)
    return Outside(conditions, what, why) if len(report.problems) == before else None
