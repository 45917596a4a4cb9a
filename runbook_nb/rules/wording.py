"""The words for conditions and rules, used by every sentence, table and edge alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from runbook_nb._text import MISSING, clip, summarize, visible
from runbook_nb.rules.kinds import kind_words, plain
from runbook_nb.rules.operators import PRESENCE

#: What stands in place of a hidden value.
REDACTED: Final = "[REDACTED]"

#: Longest list of a limit that is spelt out, in characters and in items.
LIMIT_LENGTH: Final = 60
LIMIT_ITEMS: Final = 5

SYMBOLS: Final = {
    "eq": "=",
    "ne": "!=",
    "gt": ">",
    "gte": ">=",
    "lt": "<",
    "lte": "<=",
    "in": "in",
    "not_in": "not in",
    "between": "between",
    "contains": "contains",
    "starts_with": "starts with",
    "matches": "matches",
}

_PRESENCE_WORDS: Final = {
    ("exists", True): "exists",
    ("exists", False): "does not exist",
    ("missing", True): "is missing",
    ("missing", False): "is not missing",
    ("is_null", True): "is null",
    ("is_null", False): "is not null",
}


def op_words(op: str, threshold: Any) -> str:
    """Give the operator as a sign or word: ``>``, ``not in``, ``exists``.

    Examples
    --------
    >>> op_words("gte", 7), op_words("exists", False)
    ('>=', 'does not exist')
    """
    return SYMBOLS[op] if op in SYMBOLS else _PRESENCE_WORDS[op, threshold is True]


def summary_of(value: Any) -> str:
    """Summarise a value for evidence, whatever it does when it is looked at.

    Examples
    --------
    >>> summary_of([1, 2]), summary_of(MISSING)
    ('(2 items)', 'undefined')
    """
    try:
        return summarize(plain(value))
    except Exception:
        return f"<{type(value).__name__}>"


def value_text(value: Any) -> str:
    """Write an actual value in a sentence; texts are quoted, what is not there is named.

    Examples
    --------
    >>> value_text(30), value_text("x"), value_text(None), value_text(MISSING)
    ('30', '"x"', 'null', 'missing')
    """
    if value is MISSING:
        return "missing"
    if isinstance(value, str) and value == REDACTED:
        return value
    return visible(summary_of(value))


def limit_text(op: str, threshold: Any, unit: str | None = None) -> str:
    """Write the limit of a condition with its unit; empty for the operators that have none.

    Examples
    --------
    >>> limit_text("gt", 7, "days"), limit_text("in", ["a", "b"]), limit_text("between", [1, 5])
    ('7 days', '["a", "b"]', '1 and 5')
    """
    if op in PRESENCE:
        return ""
    if isinstance(threshold, list | tuple):
        text = " and ".join(map(value_text, threshold)) if op == "between" else _items(threshold)
    else:
        text = value_text(threshold)
    return f"{text} {visible(unit)}" if unit else text


def _items(items: list[Any] | tuple[Any, ...]) -> str:
    text = "[" + ", ".join(map(value_text, items[:LIMIT_ITEMS])) + "]"
    if len(items) <= LIMIT_ITEMS and len(text) <= LIMIT_LENGTH:
        return text
    shown = clip(text[:-1], LIMIT_LENGTH - 10).rstrip("…")
    return f"{shown}… of {len(items)} items]"


def condition_text(key: str, op: str, threshold: Any, unit: str | None = None) -> str:
    """Write a condition as the author declared it.

    Examples
    --------
    >>> condition_text("age_days", "gt", 7, "days"), condition_text("score", "exists", True)
    ('age_days > 7 days', 'score exists')
    """
    words = [visible(key), op_words(op, threshold), limit_text(op, threshold, unit)]
    return " ".join(word for word in words if word)


def unreadable_text(key: str, op: str, threshold: Any, actual: Any, status: str | None) -> str:
    """Say why a key could not be compared.

    Examples
    --------
    >>> unreadable_text("age_days", "gt", 7, MISSING, "missing")
    'age_days is missing'
    >>> unreadable_text("age_days", "gt", 7, "30", "type_mismatch")
    'age_days is text, not a number'
    """
    name = visible(key)
    if status == "nan":
        return f"{name} is NaN"
    if status == "type_mismatch":
        if isinstance(actual, str) and actual == REDACTED:
            return f"{name} is of another type than its limit"
        return f"{name} is {_held_words(op, actual)}, not {needed_words(op, threshold)}"
    return f"{name} could not be read" if status == "rule_error" else f"{name} is {status}"


def _held_words(op: str, actual: Any) -> str:
    if op == "contains" and isinstance(actual, list | tuple):
        return f"a list of {_kinds(actual)}"
    return kind_words(actual)


def needed_words(op: str, threshold: Any) -> str:
    """Name the kinds of value a condition can compare.

    Examples
    --------
    >>> needed_words("gt", 7), needed_words("in", [1, "a"]), needed_words("contains", "a")
    ('a number', 'a number or text', 'text or a list of text')
    """
    if op in ("in", "not_in", "between"):
        return _kinds(threshold)
    if op == "contains":
        held = kind_words(threshold)
        return f"text or a list of {held}" if held == "text" else f"a list with {held} in it"
    return kind_words(threshold)


def _kinds(items: Iterable[Any]) -> str:
    return " or ".join(dict.fromkeys(map(kind_words, items)))


def when_text(
    when: Mapping[str, Mapping[str, Any]] | Callable[..., Any],
    unit_of: Callable[[str], str | None] = lambda key: None,
) -> str:
    """Write all conditions of a rule in one line, or name its function.

    Examples
    --------
    >>> when_text({"age_days": {"gt": 7}, "known": {"eq": True}})
    'age_days > 7 and known = true'
    """
    if not isinstance(when, Mapping):
        return function_name(when)
    return " and ".join(
        condition_text(key, op, threshold, unit_of(key))
        for key, ops in when.items()
        for op, threshold in ops.items()
    )


def function_name(when: Callable[..., Any]) -> str:
    """Name a function rule in a sentence.

    Examples
    --------
    >>> function_name(len), function_name(lambda facts: True)
    ('len()', 'a function')
    """
    name = getattr(when, "__name__", None) or type(when).__name__
    return "a function" if name == "<lambda>" else f"{visible(str(name))}()"
