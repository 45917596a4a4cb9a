"""The tags of values JSON lacks: how each is written and read.

Base layer. A tag is a mapping of one key that begins with ``$``; a mapping that merely looks like
one has its key written with one more ``$``. Rule sets and recorded values share this law; rule
sets use four of the tags.
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple

from runbook_nb._json import WireReport
from runbook_nb._text import clip, did_you_mean

#: Largest whole number every reader of JSON keeps; larger ones are written as text.
SAFE_INTEGER: Final = 2**53 - 1

#: Texts and bytes of at least this many characters are written once.
LONG: Final = 64

#: How many values may be nested in one another before what lies deeper is written beforehand.
DEEPEST: Final = 32

#: How many levels of JSON a reader follows; nothing that was written here has more.
MOST_LEVELS: Final = 4 * DEEPEST

#: How many parts one value may have when everything it refers to is spelt out.
MOST_PARTS: Final = 50_000_000

_MICRO: Final = timedelta(microseconds=1)

#: Bits up to which a whole number is spelt in decimal digits; Python may refuse longer ones.
_DECIMAL_BITS: Final = 2000

#: The way lone surrogates get through.
_LONE: Final = "surrogatepass"


class TagError(ValueError):
    """A tagged value cannot be read; the first argument says why, the second what to write."""

    @property
    def fix(self) -> str:
        """What to write instead."""
        return str(self.args[1])


def tagged(value: Any) -> dict[str, str] | None:
    """Write a date, datetime, decimal or duration as its tag; None for anything else.

    Examples
    --------
    >>> tagged(date(2026, 1, 2)), tagged(timedelta(hours=1)), tagged("2026-01-02")
    ({'$date': '2026-01-02'}, {'$seconds': '3600'}, None)
    """
    if isinstance(value, Decimal):
        return {"$decimal": str(value)}
    if isinstance(value, datetime):
        return {"$datetime": value.isoformat()}
    if isinstance(value, date):
        return {"$date": value.isoformat()}
    if isinstance(value, timedelta):
        return {"$seconds": _seconds_text(value)}
    return None


def escaped(size: int, key: str) -> str:
    """Give a key of a mapping of that size as it is written, so that it is not read as a tag.

    Examples
    --------
    >>> escaped(1, "$date"), escaped(2, "$date"), escaped(1, "a")
    ('$$date', '$date', 'a')
    """
    return f"${key}" if size == 1 and key.startswith("$") else key


def _seconds_text(span: timedelta) -> str:
    seconds, micros = divmod(abs(span) // _MICRO, 1_000_000)
    sign = "-" if span < timedelta(0) else ""
    return f"{sign}{seconds}" + (f".{micros:06d}".rstrip("0") if micros else "")


def _datetime(text: str) -> datetime:
    if "T" not in text and " " not in text:
        raise ValueError("it has no time of day")
    return datetime.fromisoformat(text)


def _seconds(text: str) -> timedelta:
    exact = Decimal(text) * 1_000_000
    if exact.adjusted() > 30:  # spelling such a number out would take long
        raise ValueError("it is longer than any duration")
    if exact != exact.to_integral_value():
        raise ValueError("it is finer than a microsecond")
    return timedelta(microseconds=int(exact))


class TagReader(NamedTuple):
    """How the text of a tag is read, and what such a text looks like."""

    read: Callable[[str], Any]
    sample: str


#: The tags of rule sets.
RULE_TAGS: Final[dict[str, TagReader]] = {
    "$date": TagReader(date.fromisoformat, "2026-12-31"),
    "$datetime": TagReader(_datetime, "2026-12-31T23:59:00+00:00"),
    "$decimal": TagReader(Decimal, "0.95"),
    "$seconds": TagReader(_seconds, "3600"),
}


def read_tag(tag: str, text: Any, readers: Mapping[str, TagReader]) -> Any:
    """Read the text of a tag.

    Raises
    ------
    TagError
        The tag is unknown, or its text cannot be read.
    """
    if tag not in readers:
        raise unknown_tag(tag, readers)
    reader, sample = readers[tag]
    fix = f'write it like {{"{tag}": "{sample}"}}'
    if not isinstance(text, str):
        raise TagError(f"the value of {tag!r} is not text", fix)
    try:
        return reader(text)
    except (ValueError, ArithmeticError):
        raise TagError(f"{clip(text, 60)!r} cannot be read as {tag[1:]}", fix) from None


def unknown_tag(tag: str, known: Iterable[str]) -> TagError:
    """Make the error for a tag that does not exist."""
    fix = did_you_mean(tag, known) or f"for a mapping with that key write '${clip(tag, 60)}'"
    return TagError(f"there is no tag {clip(tag, 60)!r}", fix)


# -- the other scalars ---------------------------------------------------------------------


def base64_text(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def text_tag(text: str) -> Any:
    """Give a text as it is written: itself unless it has lone surrogates."""
    return text if is_clean(text) else {"$text": base64_text(text.encode("utf-8", _LONE))}


def is_clean(text: str) -> bool:
    """Say whether a text can be written as UTF-8: whether it is without lone surrogates."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def is_nan(tag: str, text: str) -> bool:
    """Say whether a tag is that of a number that is none; such a one is kept by its identity."""
    return "NaN" in text and tag in ("$float", "$decimal")


def int_text(value: int) -> str:
    return str(value) if value.bit_length() <= _DECIMAL_BITS else hex(value)


def float_text(value: float) -> str:
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def scalar_tag(value: Any, report: WireReport) -> tuple[Any] | tuple[str, str] | None:
    """Give the plain value of an instance of a subclass, or tag and text, or None."""
    if isinstance(value, str | int | float):
        report.replace(value)
        if isinstance(value, str):
            return (str.__str__(value),)
        return (int(value),) if isinstance(value, int) else (float(value),)
    if isinstance(value, bytearray):
        return "$bytearray", base64_text(bytes(value))
    if isinstance(value, complex):
        return "$complex", repr(complex(value))
    if isinstance(value, datetime):
        value = _plain_datetime(value, report)
    elif isinstance(value, timedelta):
        value = _plain_span(value, report)
    if isinstance(value, datetime | time):
        if value.tzinfo is not None and value.utcoffset() is None:
            return None  # its zone cannot be said without a day
        if value.fold and value.tzinfo is None:
            return "$fold", value.isoformat()
    if isinstance(value, time):
        return "$time", value.isoformat()
    found = tagged(value)
    return None if found is None else next(iter(found.items()))


def _is_of_pandas(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "pandas"


def _plain_datetime(value: datetime, report: WireReport) -> datetime:
    if type(value) is datetime:
        return value
    if getattr(value, "nanosecond", 0) or not _is_of_pandas(value):
        report.replace(value)
    return datetime.combine(_day(value), value.timetz()).replace(fold=value.fold)


def _day(value: datetime) -> date:
    return date(value.year, value.month, value.day)


def _plain_span(value: timedelta, report: WireReport) -> timedelta:
    if type(value) is timedelta:
        return value
    if getattr(value, "nanoseconds", 0) or not _is_of_pandas(value):
        report.replace(value)
    return timedelta(value.days, value.seconds, value.microseconds)


def _int(text: str) -> int:
    return int(text, 16) if "x" in text else int(text)


def _float(text: str) -> float:
    if text not in ("NaN", "Infinity", "-Infinity"):
        raise ValueError("it is no such number")
    return float(text)


def _data(text: str) -> bytes:
    return b64decode(text, validate=True)


def _fold(text: str) -> datetime | time:
    if "T" in text:
        return _datetime(text).replace(fold=1)
    return time.fromisoformat(text).replace(fold=1)


#: The tags of scalars.
SCALAR_TAGS: Final[dict[str, TagReader]] = {
    **RULE_TAGS,
    "$time": TagReader(time.fromisoformat, "23:59:00"),
    "$fold": TagReader(_fold, "2026-10-25T02:30:00"),
    "$int": TagReader(_int, "9007199254740993"),
    "$float": TagReader(_float, "NaN"),
    "$complex": TagReader(complex, "(1+2j)"),
    "$bytearray": TagReader(lambda text: bytearray(_data(text)), "AAE="),
}

#: Texts and bytes: a long one is referred to by its number.
TEXT_TAGS: Final[dict[str, TagReader]] = {
    "$bytes": TagReader(_data, "AAE="),
    "$text": TagReader(lambda text: _data(text).decode("utf-8", _LONE), "7aCA"),
}


class Sizes:
    """How many parts values have, with all they refer to spelt out.

    What is taken later may refer to what was taken before, so that each is looked at once.

    Parameters
    ----------
    parts_of : callable
        Gives what lies directly in a value.
    """

    __slots__ = ("_most", "_parts_of", "_sizes", "_taken")

    def __init__(self, parts_of: Callable[[Any], Iterable[Any]]) -> None:
        self._parts_of = parts_of
        self._sizes: dict[int, int] = {}
        self._taken = 0
        self._most = 0

    def too_large(self, kept: Sequence[Any]) -> bool:
        """Say whether one of several values has too many parts; each lies behind all of its own."""
        for value in kept[self._taken :]:
            if value is not None:  # a row that nobody needed
                self.take(value)
        self._taken = len(kept)
        return self._most > MOST_PARTS

    def take(self, value: Any) -> None:
        """Count the parts of a value, all of whose own were counted."""
        size, sizes = 0, self._sizes
        for part in self._parts_of(value):
            size += 1 + sizes.get(id(part), 0)
        sizes.setdefault(id(value), size)
        self._most = max(self._most, size)

    def forget(self, dropped: Sequence[Any], mark: int) -> None:
        """Forget values that are not kept, the first of which was at a mark."""
        if self._taken > mark:
            for value in dropped:
                self._sizes.pop(id(value), None)
            self._taken = mark
            self._most = 0  # what was kept before had been found small enough
