"""What a value says of itself: the texts by which it is told, its named parts, its form as data.

Record layer. Foreign objects are asked carefully: whatever one does when it is looked at, asking
it never raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any

from runbook_nb._frozen import ATOMS
from runbook_nb._json import plain_scalar
from runbook_nb._text import duration_text, number_text


def told(value: Any) -> tuple[str, ...]:
    """Give the texts by which a single value is told; none for a truth value or a container.

    Examples
    --------
    >>> told("pin"), told(4711), told(b"pin"), told(date(1984, 3, 7)), told(True)
    (('pin',), ('4711',), ('pin',), ('1984-03-07',), ())
    """
    if isinstance(value, Enum):
        return told(value.value)
    if isinstance(value, str):
        return (str.__str__(value),)
    if value is None or isinstance(value, bool):
        return ()
    if isinstance(value, int | float | Decimal):
        return (number_text(value),)
    if isinstance(value, bytes | bytearray):
        try:
            return (bytes(value).decode("utf-8"),)
        except UnicodeDecodeError:
            return ()
    if isinstance(value, date | time):
        return tuple(dict.fromkeys((value.isoformat(), str(value))))
    if isinstance(value, timedelta):
        return (duration_text(value), str(value))
    plain = plain_scalar(value)
    return told(plain) if plain is not value else _spelt(value)


def _spelt(value: Any) -> tuple[str, ...]:
    """Give what an object of another kind is written as, where that says anything of it."""
    if value.__class__ in ATOMS:
        return (str(value),)
    if all(_inherited(type(value), name) for name in ("__str__", "__repr__")):
        return ()  # its address
    try:
        return (str(value),)
    except Exception:
        return ()


def _inherited(kind: type, name: str) -> bool:
    return getattr(kind, name) is getattr(object, name)


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text in a value, names included, as far as it can be looked into.

    Examples
    --------
    >>> list(texts_in({"a": [1, ("b",)]}))
    ['a', '1', 'b']
    """
    entries = entries_of(value)
    if entries is not None:
        for key, item in entries:
            yield from texts_in(key)
            yield from texts_in(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from texts_in(item)
    else:
        data = None if value.__class__ in ATOMS else as_data(value)
        if data is None:
            yield from told(value)
        else:
            yield from texts_in(data[0])


def entries_of(value: Any) -> Iterable[tuple[Any, Any]] | None:
    """Give the named parts of a mapping or a named tuple; None for anything else."""
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return zip(value._fields, value, strict=True)
    return None


def as_data(value: Any) -> tuple[Any] | None:
    """Have an object say itself as data, in a tuple; None when it cannot.

    Asked are ``to_dict``, the fields of a dataclass, and ``model_dump``.

    Examples
    --------
    >>> from runbook_nb.rules import Rule
    >>> as_data(Rule({"a": {"gt": 1}}, "x"))[0]["then"], as_data(object())
    ('x', None)
    """
    if isinstance(value, type):
        return None
    try:
        to_dict = getattr(value, "to_dict", None)
        if callable(to_dict):
            return (to_dict("records") if hasattr(value, "columns") else to_dict(),)
        if is_dataclass(value):
            return ({one.name: getattr(value, one.name) for one in fields(value)},)
        dump = getattr(value, "model_dump", None)
        return (dump(),) if callable(dump) else None
    except Exception:  # whatever a foreign object does
        return None
