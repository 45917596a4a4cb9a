"""What to write instead of a limit that no value could be compared with, in words to be typed.

Judging turns nothing into anything: a date is no datetime, and a text that looks like one is a
text. So what is said here is only ever advice.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from runbook_nb.rules.kinds import AWARE, DATE, KIND_WORDS, NAIVE, NUMBER, TEXT, kind_of, plain
from runbook_nb.rules.passes import COMPARISONS

#: Words of a kind -> the kind.
_KINDS: Final = {words: kind for kind, words in KIND_WORDS.items()}

#: Kinds of values that stand for a moment or a day.
_TIMES: Final = frozenset({DATE, NAIVE, AWARE})

#: Operators whose limit may be of any kind.
_COMPARING: Final = frozenset({*COMPARISONS, "in", "not_in", "between"})

#: Longest text that is looked at for a number or a date in it, in characters.
_LONGEST: Final = 40


def fix_words(
    held: Sequence[str], needed: str, op: str, limit: Any, *, hidden: bool = False
) -> str:
    """Say what to do about values that are all of other kinds than their limit.

    Parameters
    ----------
    held : sequence of str
        The kinds of the values, in words.
    needed : str
        The kinds that could be compared, in words.
    op, limit : str, object
        How, and with what, they were compared.
    hidden : bool
        Whether the limit must not be seen.

    Examples
    --------
    >>> fix_words(["a datetime without a zone"], "a date", "lt", date(2026, 9, 1))
    'write datetime(2026, 9, 1) as the limit'
    >>> fix_words(["a number"], "text", "gt", "90")
    'write 90 as the limit, without quotes'
    """
    if len(held) != 1:
        return f"make every value {needed} before judging"
    kind, given = _KINDS.get(held[0]), _KINDS.get(needed)
    if {kind, given} == {NAIVE, AWARE}:
        return "give both sides a zone: a time without one has no fixed place among those with one"
    if not hidden and kind is not None and op in _COMPARING:
        typed = _in_kind(limit, kind)
        if typed is not None:
            return _advice(typed, given)
        if kind in _TIMES and given in (TEXT, NUMBER):
            name = "date" if kind == DATE else "datetime"
            return (
                f"write {name}(year, month, day) as the limit; for an age, judge a column of "
                "days since then"
            )
    if {kind, given} <= _TIMES:
        return f"make both sides {needed}, or give the limit as {held[0]}"
    if kind == TEXT and given != TEXT:
        return f"turn the text into {needed} before judging"
    return f"make the values {needed} before judging, or give the limit as {held[0]}"


def _advice(typed: Any, given: str | None) -> str:
    said = f"write {literal(typed)} as the limit"
    if given == TEXT:
        said += ", without quotes"
    if isinstance(typed, datetime) and typed.tzinfo is UTC and given in (DATE, TEXT):
        said += ", or the zone that is meant"
    return said


def _in_kind(limit: Any, kind: str) -> Any:
    """Give a limit as a value of another kind that means the same; None where none does."""
    if isinstance(limit, list | tuple):
        found = [_in_kind(each, kind) for each in limit]
        return None if not found or any(each is None for each in found) else found
    limit = plain(limit)
    if isinstance(limit, str):
        return _out_of_text(limit.strip(), kind)
    if isinstance(limit, datetime):
        whole = limit.utcoffset() is None and limit == datetime.combine(limit, _MIDNIGHT)
        return limit.date() if kind == DATE and whole else None
    if isinstance(limit, date) and kind in (NAIVE, AWARE):
        return datetime.combine(limit, _MIDNIGHT, UTC if kind == AWARE else None)
    return None


_MIDNIGHT: Final = datetime.min.time()


def _out_of_text(text: str, kind: str) -> Any:
    if len(text) > _LONGEST:
        return None
    try:
        if kind == NUMBER:
            number = int(text) if text.lstrip("+-").isdigit() else float(Decimal(text))
            return number if kind_of(number) == NUMBER else None
        if kind in _TIMES:
            found = datetime.fromisoformat(text)
    except (ValueError, InvalidOperation, OverflowError):
        return None
    if kind not in _TIMES:
        return None
    if kind == AWARE:
        return found if found.utcoffset() is not None else found.replace(tzinfo=UTC)
    if found.utcoffset() is not None:
        return None
    return found if kind == NAIVE else _in_kind(found, DATE)


def literal(value: Any) -> str:
    """Write a number, a date or a datetime as it is typed in Python, a list item by item.

    Examples
    --------
    >>> literal(datetime(2026, 9, 1, 8, 30, tzinfo=UTC)), literal(date(2026, 9, 1)), literal(90)
    ('datetime(2026, 9, 1, 8, 30, tzinfo=UTC)', 'date(2026, 9, 1)', '90')
    """
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, datetime):
        parts = [*value.timetuple()[:6], value.microsecond]
        while len(parts) > 3 and not parts[-1]:
            parts.pop()
        words = [*map(str, parts), *_zone(value)]
        return f"datetime({', '.join(words)})"
    if isinstance(value, date):
        return f"date({value.year}, {value.month}, {value.day})"
    return repr(value)


def _zone(value: datetime) -> list[str]:
    offset = value.utcoffset()
    if offset is None:
        return []
    if not offset:
        return ["tzinfo=UTC"]
    minutes = int(offset / timedelta(minutes=1))
    return [f"tzinfo=timezone(timedelta(minutes={minutes}))"]


__all__ = ["fix_words", "literal"]
