"""The written form of thresholds: JSON values, and tags for what JSON lacks.

A date, datetime, decimal or duration is written ``{"$date": text}``, ``{"$datetime": text}``,
``{"$decimal": text}``, ``{"$seconds": text}``. A mapping that itself looks like a tag has its key
written with one more ``$``. Reading gives back what was written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from runbook_nb._text import did_you_mean

_MICRO: Final = timedelta(microseconds=1)

#: Stands for a threshold that could not be read and was reported, so that it is not told twice.
BROKEN: Final = object()


class TagError(ValueError):
    """A tagged value cannot be read; the first argument says why, the second what to write."""

    @property
    def fix(self) -> str:
        """What to write instead."""
        return str(self.args[1])


def write(value: Any) -> Any:
    """Write a checked, plain threshold as JSON values.

    Examples
    --------
    >>> write([date(2026, 1, 2), timedelta(hours=1)])
    [{'$date': '2026-01-02'}, {'$seconds': '3600'}]
    >>> write({"$date": "x"})
    {'$$date': 'x'}
    """
    if isinstance(value, Decimal):
        return {"$decimal": str(value)}
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return {"$decimal": "Infinity" if value > 0 else "-Infinity"}
    if isinstance(value, datetime):
        return {"$datetime": value.isoformat()}
    if isinstance(value, date):
        return {"$date": value.isoformat()}
    if isinstance(value, timedelta):
        return {"$seconds": _seconds_text(value)}
    if isinstance(value, Mapping):
        return {_escaped(value, key): write(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [write(item) for item in value]
    return value


def _escaped(mapping: Mapping[str, Any], key: str) -> str:
    return f"${key}" if len(mapping) == 1 and key.startswith("$") else key


def _seconds_text(span: timedelta) -> str:
    seconds, micros = divmod(abs(span) // _MICRO, 1_000_000)
    sign = "-" if span < timedelta(0) else ""
    return f"{sign}{seconds}" + (f".{micros:06d}".rstrip("0") if micros else "")


def read(value: Any) -> Any:
    """Read a threshold from its written form.

    Raises
    ------
    TagError
        A tag is unknown, or its text cannot be read.

    Examples
    --------
    >>> read({"$date": "2026-01-02"}), read({"$$date": "x"})
    (datetime.date(2026, 1, 2), {'$date': 'x'})
    """
    if isinstance(value, list):
        return [read(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    if len(value) == 1:
        ((key, item),) = value.items()
        if isinstance(key, str) and key.startswith("$$"):
            return {key[1:]: read(item)}
        if isinstance(key, str) and key.startswith("$"):
            return _tagged(key, item)
    return {key: read(item) for key, item in value.items()}


def _date(text: str) -> date:
    return date.fromisoformat(text)


def _datetime(text: str) -> datetime:
    if "T" not in text and " " not in text:
        raise ValueError("it has no time of day")
    return datetime.fromisoformat(text)


def _seconds(text: str) -> timedelta:
    exact = Decimal(text) * 1_000_000
    if exact != exact.to_integral_value():
        raise ValueError("it is finer than a microsecond")
    return timedelta(microseconds=int(exact))


_READERS: Final[dict[str, tuple[Callable[[str], Any], str]]] = {
    "$date": (_date, "2026-12-31"),
    "$datetime": (_datetime, "2026-12-31T23:59:00+00:00"),
    "$decimal": (Decimal, "0.95"),
    "$seconds": (_seconds, "3600"),
}


def _tagged(tag: str, text: Any) -> Any:
    if tag not in _READERS:
        fix = did_you_mean(tag, _READERS) or f"for a mapping with that key write '${tag}'"
        raise TagError(f"there is no tag {tag!r}", fix)
    reader, sample = _READERS[tag]
    fix = f'write it like {{"{tag}": "{sample}"}}'
    if not isinstance(text, str):
        raise TagError(f"the value of {tag!r} is not text", fix)
    try:
        return reader(text)
    except (ValueError, InvalidOperation, OverflowError):
        raise TagError(f"{text!r} cannot be read as {tag[1:]}", fix) from None


def write_when(when: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Write the conditions of a filter."""
    return {key: {op: write(item) for op, item in ops.items()} for key, ops in when.items()}


def read_when(
    when: Mapping[str, Any], where: str, report: Callable[[str, str, str | None], Any]
) -> dict[str, Any]:
    """Read the conditions of a filter, reporting every tag that cannot be read.

    Examples
    --------
    >>> read_when({"at": {"lt": {"$seconds": "60"}}}, "when", print)
    {'at': {'lt': datetime.timedelta(seconds=60)}}
    """
    found: dict[str, Any] = {}
    for key, ops in when.items():
        found[key] = ops
        if not isinstance(ops, Mapping):
            continue
        found[key] = {}
        for op, threshold in ops.items():
            try:
                found[key][op] = read(threshold)
            except TagError as error:
                found[key][op] = BROKEN
                report(str(error.args[0]), f"{where}.{key}.{op}", error.fix)
    return found
