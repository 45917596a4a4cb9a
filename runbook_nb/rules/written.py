"""The written form of thresholds: JSON values, and tags for what JSON lacks.

A date, datetime, decimal or duration is written ``{"$date": text}``, ``{"$datetime": text}``,
``{"$decimal": text}``, ``{"$seconds": text}``. A mapping that itself looks like a tag has its key
written with one more ``$``. Reading gives back what was written. The law is that of every written
value; rule sets use these four tags of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from runbook_nb._tags import RULE_TAGS, TagError, escaped, read_tag, tagged

#: Stands for a threshold that could not be read and was reported, so that it is not told twice.
BROKEN: Final = object()


def write(value: Any) -> Any:
    """Write a checked, plain threshold as JSON values.

    Examples
    --------
    >>> from datetime import date, timedelta
    >>> write([date(2026, 1, 2), timedelta(hours=1)])
    [{'$date': '2026-01-02'}, {'$seconds': '3600'}]
    >>> write({"$date": "x"})
    {'$$date': 'x'}
    """
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return {"$decimal": "Infinity" if value > 0 else "-Infinity"}
    found = tagged(value)
    if found is not None:
        return found
    if isinstance(value, Mapping):
        return {escaped(len(value), key): write(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [write(item) for item in value]
    return value


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
            return read_tag(key, item, RULE_TAGS)
    return {key: read(item) for key, item in value.items()}


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
