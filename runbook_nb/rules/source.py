"""A rule set as Python text: what its author would have written, ready for a cell or a module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from runbook_nb.rules.model import DECLINED, Default, Outside, Rule, Unreadable

if TYPE_CHECKING:
    from runbook_nb.rules.ruleset import RuleSet

#: Longest line written on one line.
WIDTH: Final = 96

_STEP: Final = "    "


def write_python(rules: RuleSet, name: str = "rules") -> str:
    """Write a rule set as Python that builds an equal one.

    Parameters
    ----------
    rules : RuleSet
    name : str
        The variable it is assigned to.

    Raises
    ------
    RuleError
        A rule is a function, whose text is not known.

    Examples
    --------
    >>> from runbook_nb.rules.ruleset import RuleSet
    >>> print(write_python(RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], "new")), end="")
    import runbook_nb as rb
    <BLANKLINE>
    rules = rb.RuleSet(
        'age',
        'v1',
        rules=[
            rb.Rule({'days': {'gt': 7}}, then='old'),
        ],
        default=rb.Default('new'),
    )
    """
    rules.to_dict()  # refuses functions, with their places
    lines = [f"{name} = rb.RuleSet(", *_arguments(rules), ")"]
    text = "\n".join(lines) + "\n"
    imports = [f"import {module}" for module in ("datetime", "decimal") if f"{module}." in text]
    return "\n".join([*imports, *([""] if imports else []), "import runbook_nb as rb", "", text])


def _arguments(rules: RuleSet) -> list[str]:
    lines = [f"{_STEP}{rules.name!r},", f"{_STEP}{rules.version!r},", f"{_STEP}rules=["]
    lines += [line for rule in rules.rules for line in _called("rb.Rule", _rule(rule), 2)]
    lines.append(f"{_STEP}],")
    if rules.default is not None:
        lines += _named("default", "rb.Default", _branch(rules.default))
    if isinstance(rules.unreadable, str):
        lines.append(f"{_STEP}unreadable={rules.unreadable!r},")
    elif rules.unreadable != DECLINED:
        lines += _named("unreadable", "rb.Unreadable", _branch(rules.unreadable))
    if rules.outside:
        lines.append(f"{_STEP}outside=[")
        lines += [line for o in rules.outside for line in _called("rb.Outside", _outside(o), 2)]
        lines.append(f"{_STEP}],")
    return lines


def _rule(rule: Rule) -> list[str]:
    parts = [_value(rule.when), f"then={rule.then!r}"]
    if rule.label is not None:
        parts.append(f"label={rule.label!r}")
    if rule.unit is not None:
        parts.append(f"unit={_value(rule.unit)}")
    return parts


def _branch(branch: Default | Unreadable) -> list[str]:
    return [repr(branch.branch), *([f"label={branch.label!r}"] if branch.label is not None else [])]


def _outside(entry: Outside) -> list[str]:
    return [_value(entry.where), f"what={entry.what!r}", f"why={entry.why!r}"]


def _named(keyword: str, call: str, parts: Sequence[str]) -> list[str]:
    first, *rest = _called(call, parts, 1)
    return [f"{_STEP}{keyword}={first.lstrip()}", *rest]


def _called(call: str, parts: Sequence[str], depth: int) -> list[str]:
    indent = _STEP * depth
    line = f"{indent}{call}({', '.join(parts)}),"
    if len(line) <= WIDTH:
        return [line]
    return [f"{indent}{call}(", *(f"{indent}{_STEP}{part}," for part in parts), f"{indent}),"]


def _value(value: Any) -> str:
    """Write a limit, which is of one of the kinds a rule set takes."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {_value(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, float) and not isfinite(value):
        return f"float({str(value)!r})"
    if isinstance(value, datetime):
        return f"datetime.datetime.fromisoformat({value.isoformat()!r})"
    if isinstance(value, date):
        return f"datetime.date({value.year}, {value.month}, {value.day})"
    if isinstance(value, timedelta):
        names = ("days", "seconds", "microseconds")
        parts = (f"{name}={each}" for name in names if (each := getattr(value, name)))
        return f"datetime.timedelta({', '.join(parts)})"
    if isinstance(value, Decimal):
        return f"decimal.Decimal({str(value)!r})"
    return repr(value)
