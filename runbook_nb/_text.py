"""Text for people: shortening, neutralising control characters, near matches, value summaries.

Base layer. Nothing here knows what is being shown; the law that a cut is visible is kept by
`clip` alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

#: Longest value summary kept in evidence, in characters.
SUMMARY_LENGTH: Final = 80

#: How much alike two words are at least that do not begin alike, where one may mean the other.
_OTHER_START: Final = 0.7

#: Shown where nothing was recorded.
MISSING_CELL: Final = "—"

#: Bidirectional overrides, halves of characters, and what ends a line or a paragraph.
_ODD: Final = r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"

#: The control characters that have a name.
_NAMED: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


class _Missing:
    """The value of a key that is not there; not None, which is a value somebody wrote."""

    __slots__ = ()
    _one: _Missing | None = None

    def __new__(cls) -> _Missing:
        if cls._one is None:
            cls._one = super().__new__(cls)
        return cls._one

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> tuple[Any, ...]:
        return (_Missing, ())


MISSING: Final = _Missing()


def clip(text: str, length: int) -> str:
    """Cut text to ``length`` characters, ending in an ellipsis when anything was cut.

    Examples
    --------
    >>> clip("last backup older than 7 days", 12)
    'last backup…'
    """
    return text if len(text) <= length else text[: max(length - 1, 0)].rstrip() + "…"


def visible(text: str) -> str:
    r"""Show control characters and bidirectional overrides as escapes; keep all else.

    Examples
    --------
    >>> visible("web\x1b[31m\u202e01")
    'web\\x1b[31m\\u202e01'
    """
    if text.isprintable():  # none of those is
        return text
    return re.sub(_ODD, _escape, text)


def visible_json(text: str) -> str:
    r"""Write JSON text so that nothing in it acts on a terminal: the same value, spelt otherwise.

    What `visible` shows as escapes stands inside of strings alone, but for the ends of lines, and
    is written as JSON escapes it.

    Examples
    --------
    >>> print(visible_json('{"host": "web\u202e\x9b1m"}'))
    {"host": "web\u202e\u009b1m"}
    """
    if text.isascii():
        return text.replace("\x7f", "\\u007f")
    return re.sub(_ODD, _escape_json, text)


def _escape_json(found: re.Match[str]) -> str:
    char = found[0]
    return char if char in "\n\r\t" else f"\\u{ord(char):04x}"


def _escape(found: re.Match[str]) -> str:
    char = found[0]
    point = ord(char)
    return _NAMED.get(char, f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}")


def nearest(word: str, choices: Iterable[str], alike: float = 0.6) -> str | None:
    """Find the choice a misspelt word most likely meant, or None.

    Case, ``-``, ``_`` and spaces are ignored first, then similarity decides. Who misspells a word
    rarely begins it wrongly: another first letter has to be made good by the rest.

    Examples
    --------
    >>> nearest("notChecked", ["checked", "not_checked"])
    'not_checked'
    >>> nearest("lable", ["when", "then", "label"])
    'label'
    >>> nearest("less", ["exists", "lt"]), nearest("tirage", ["triage"], alike=0.9)
    (None, None)
    """
    options = list(choices)
    plain = {_squash(option): option for option in reversed(options)}
    if _squash(word) in plain:
        return plain[_squash(word)]
    from difflib import get_close_matches  # rarely needed; keeps the import light

    meant = _squash(word)
    same = [option for option in plain if option[:1] == meant[:1]]
    found = get_close_matches(meant, same, n=1, cutoff=alike)
    found = found or get_close_matches(meant, list(plain), n=1, cutoff=max(alike, _OTHER_START))
    return plain[found[0]] if found else None


def did_you_mean(word: str, choices: Iterable[str]) -> str | None:
    """Phrase a near match as a fix, or None when nothing is near.

    Examples
    --------
    >>> did_you_mean("ge", ["gt", "gte", "lt"])
    "did you mean 'gte'?"
    """
    near = meant(word, choices)
    return f"did you mean {near!r}?" if near else None


def meant(word: str, choices: Iterable[str]) -> str | None:
    """Find the choice a word stands for that is misspelt, cut short or lacks letters, or None.

    Examples
    --------
    >>> meant("ge", ["gt", "gte", "lt"]), meant("full", ["ful", "ok"])
    ('gte', 'ful')
    """
    options = sorted(choices)
    near = next((o for o in options if o.startswith(word) and len(word) > 1), None)
    return near or nearest(word, options) or _subsequence(word, options)


def _subsequence(word: str, options: Sequence[str]) -> str | None:
    # "ge" is "gte" with a letter left out: too short for a similarity score to find.
    for option in sorted(options, key=len):
        letters = iter(option)
        if len(word) > 1 and all(letter in letters for letter in word):
            return option
    return None


def _squash(word: str) -> str:
    return "".join(c for c in word.lower() if c not in "-_ ")


def at(where: str, key: object) -> str:
    """Extend a place by a key: ``rules[1].when`` by ``age_days``.

    Examples
    --------
    >>> at("rules[1].when", "age_days"), at("", "rules")
    ('rules[1].when.age_days', 'rules')
    """
    name = clip(key if isinstance(key, str) else repr(key), 60)
    return f"{where}.{name}" if where else name


def listed(words: Iterable[str], last: str = "and") -> str:
    """Join words as a sentence does.

    Examples
    --------
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    items = list(words)
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def counted(n: int, one: str, many: str | None = None) -> str:
    """Say a count with its noun.

    Examples
    --------
    >>> counted(1, "row"), counted(3, "row"), counted(0, "entry", "entries")
    ('1 row', '3 rows', '0 entries')
    """
    return f"{n} {one if n == 1 else (many or one + 's')}"


def summarize(value: Any, length: int = SUMMARY_LENGTH) -> str:
    """Summarise a value for evidence, in at most ``length`` characters.

    Texts are cut to that length and then quoted, lists say how many items they hold, mappings
    preview up to four keys, a missing value reads ``undefined`` and None ``null``.

    Examples
    --------
    >>> summarize(30), summarize("x" * 5), summarize([1, 2]), summarize({"a": 1})
    ('30', '"xxxxx"', '(2 items)', '{a}')
    """
    text = _summary(value, length)
    return text if len(text) <= length or isinstance(value, str) else text[: length - 3] + "..."


def _summary(value: Any, length: int) -> str:
    if value is MISSING:
        return "undefined"
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return f'"{value[: length - 3]}..."' if len(value) > length else f'"{value}"'
    if isinstance(value, int | float | Decimal):
        return number_text(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return duration_text(value)
    if isinstance(value, Mapping):
        return _mapping_summary(value, length)
    if isinstance(value, Sequence | Set) and not isinstance(value, bytes | bytearray):
        return "[]" if len(value) == 0 else f"({counted(len(value), 'item')})"
    return f"<{type(value).__name__}>"


def _mapping_summary(value: Mapping[Any, Any], length: int) -> str:
    keys = [str(key) for key in value]
    if not keys:
        return "{}"
    text = "{" + ", ".join(keys[:4]) + (f", ... ({len(keys)} keys)" if len(keys) > 4 else "") + "}"
    return text if len(text) <= length else "{" + f"{len(keys)} keys" + "}"


def number_text(value: int | float | Decimal) -> str:
    """Write a number without losing digits, ``NaN`` and ``Infinity`` in words.

    Examples
    --------
    >>> number_text(2.0), number_text(float("nan"))
    ('2.0', 'NaN')
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, int) and value.bit_length() > 1000:
        return f"<integer of {value.bit_length()} bits>"  # int-to-text conversion is limited
    return str(value)


def duration_text(value: timedelta) -> str:
    """Write a timedelta as an ISO 8601 duration.

    Examples
    --------
    >>> duration_text(timedelta(days=1, hours=2))
    'P1DT2H'
    """
    micros = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    sign, micros = ("-" if micros < 0 else ""), abs(micros)
    seconds, micros = divmod(micros, 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    fraction = f".{micros:06d}".rstrip("0") if micros else ""
    clock = (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "")
    clock += f"{seconds}{fraction}S" if seconds or micros else ""
    body = (f"{days}D" if days else "") + (f"T{clock}" if clock else "")
    return f"{sign}P{body or 'T0S'}"


def show(value: Any) -> str:
    """Write a value for a table cell or a sentence: text bare, the rest as `summarize` has it.

    Examples
    --------
    >>> show("cluster-a"), show(None), show(True), show(30)
    ('cluster-a', '—', 'true', '30')
    """
    if value is None or value is MISSING:
        return MISSING_CELL
    if isinstance(value, str):
        return visible(value)
    return visible(_summary(value, SUMMARY_LENGTH))
