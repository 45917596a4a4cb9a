"""Canonical JSON, sizes in bytes, and the one rule for values JSON cannot carry.

Base layer. Two doors: `encode` refuses what JSON cannot carry (stores, checkpoints); `to_wire`
converts it by a stated rule and counts what it had to replace (answers). Nothing is approximated
in silence.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from itertools import chain
from typing import Any, Final

from runbook_nb._deep import write_json
from runbook_nb._frozen import FrozenDict, FrozenList
from runbook_nb._text import duration_text
from runbook_nb.errors import CycleError, JsonError

#: Widest integer that is written, in bits: 4300 digits is the longest text Python makes of one.
MAX_BITS: Final = 12_000

#: Deepest nesting `encode` writes: what readers elsewhere, and Python's own, are sure to follow.
MAX_NESTING: Final = 300

#: Counted in place of a type name: a key that is written like one the mapping already had.
REPEATED: Final = "repeated key"


def encode(value: Any) -> str:
    """Write a value as compact JSON, in its own key order, refusing what JSON cannot carry.

    Raises
    ------
    JsonError
        A set, a date, a NaN, a key that is not text, a lone surrogate, a cycle; the message
        names the path. Or something nested too deeply to be read back by everybody.

    Examples
    --------
    >>> encode({"a": [1, None], "é": "x"})
    '{"a":[1,null],"é":"x"}'
    """
    return _encoded(value, sort_keys=False)


def encode_deep(value: Any) -> str:
    """Write a value as `encode` does, at whatever depth.

    For what is nested by its form and read back by `_deep.read_json`: the tree of a recording.

    Raises
    ------
    JsonError
        JSON cannot carry it.
    """
    return _encoded(value, sort_keys=False, most=None)


def canonical(value: Any) -> str:
    """Write a value as compact JSON with sorted keys: equal values give equal bytes.

    Examples
    --------
    >>> canonical({"b": 1, "a": 2})
    '{"a":2,"b":1}'
    """
    return _encoded(value, sort_keys=True)


def _encoded(value: Any, *, sort_keys: bool, most: int | None = MAX_NESTING) -> str:
    problem = None if _is_fine(value) else _first_problem(value, most)
    if problem is not None:
        raise JsonError(f"JSON cannot carry this value: {problem}")
    return write_json(value, sort_keys=sort_keys)


def byte_size(text: str) -> int:
    """Count the UTF-8 bytes of a text.

    Examples
    --------
    >>> byte_size("é")
    2
    """
    return len(text.encode("utf-8"))


#: Classes of which nothing has to be looked at but what lies in them, and of which nothing at all.
_CONTAINERS: Final = frozenset({dict, list, tuple, FrozenDict, FrozenList})
_SIMPLE: Final = frozenset({type(None), bool, str, int, float})

#: Values looked at together, at most.
_MOST_AT_ONCE: Final = 1_000_000


def _is_fine(top: Any) -> bool:
    """Say whether JSON surely carries a value: one level after another, each looked at as a whole.

    False is no answer yet: whoever wants to know what is wrong with a value has to go through it.
    """
    level = [top]
    for _ in range(MAX_NESTING):
        classes = set(map(type, level))
        if not classes <= _CONTAINERS | _SIMPLE:
            return False
        texts: list[Any] = [*{value for value in level if value.__class__ is str}]
        numbers = {value for value in level if value.__class__ is int}
        if max(map(int.bit_length, numbers), default=0) > MAX_BITS:
            return False
        if float in classes and not all(
            map(math.isfinite, (value for value in level if value.__class__ is float))
        ):
            return False
        inner: list[Any] = []
        for value in level if classes & _CONTAINERS else ():
            if isinstance(value, dict):
                texts += value
                inner += value.values()
            elif isinstance(value, list | tuple):
                inner += value
        try:
            if _text_problem("".join(texts)) is not None:
                return False
        except TypeError:  # a key that is no text
            return False
        if not inner:
            return True
        if len(inner) > _MOST_AT_ONCE:
            return False
        level = inner
    return False  # nested deeply, or around in a circle


def are_plain(rows: Sequence[Any]) -> bool:
    """Say whether rows are mappings that `to_wire` would give back as they are.

    Looked at together, which takes a fraction of converting one after another.

    Examples
    --------
    >>> are_plain([{"a": 1}, {"a": None}]), are_plain([{"a": date(2026, 1, 2)}])
    (True, False)
    """
    if not {dict, FrozenDict}.issuperset(map(type, rows)):
        return False
    return are_plain_parts(
        [*chain.from_iterable(rows)], [*chain.from_iterable(map(dict.values, rows))]
    )


def are_plain_parts(texts: list[Any], values: list[Any]) -> bool:
    """Say whether `are_plain` holds of rows with these keys, and these values under them."""
    classes = set(map(type, values))
    if not {str}.issuperset(map(type, texts)) or not classes <= _SIMPLE:
        return False
    if {int, float} & classes:
        return _is_fine(texts + values)
    if str in classes:
        texts += [value for value in values if value.__class__ is str]
    return _text_problem("".join(texts)) is None


def _first_problem(top: Any, most: int | None) -> str | None:
    """Find what JSON cannot carry, at whatever depth; None where it carries everything."""
    #: The containers around what is looked at, outermost first: each with its members still to
    #: come. The one looked at is told by the last of the labels.
    around: list[tuple[Any, Iterator[tuple[Any, Any]]]] = []
    labels: list[str] = []
    inside: set[int] = set()
    value = top
    while True:
        if isinstance(value, dict | list | tuple):
            if id(value) in inside:
                return f"{_place(labels)} contains itself"
            inside.add(id(value))
            if most is not None and len(inside) > most:
                return "it is nested too deeply"
            members = value.items() if isinstance(value, dict) else enumerate(value)
            around.append((value, iter(members)))
            labels.append("")
        else:
            problem = _scalar_problem(value)
            if problem is not None:
                return f"{problem} at {_place(labels)}"
        while around:
            home, coming = around[-1]
            try:
                key, value = next(coming)
            except StopIteration:
                around.pop()
                labels.pop()
                inside.discard(id(home))
                continue
            if not isinstance(home, dict):
                labels[-1] = f"[{key}]"
                break
            if not isinstance(key, str):
                return f"the key {key!r} at {_place(labels[:-1])} is not text"
            labels[-1] = f".{key}"
            problem = _text_problem(key)
            if problem is not None:
                return f"{problem} at {_place(labels)}"
            break
        else:
            return None


def _place(labels: Sequence[str]) -> str:
    return "".join(labels).removeprefix(".") or "the top"


def _scalar_problem(value: Any) -> str | None:
    cls = value.__class__
    if value is None or cls is bool:
        return None
    if cls is int:
        # Python refuses to spell such a number out.
        bits = value.bit_length()
        return f"an integer of {bits} bits" if bits > MAX_BITS else None
    if cls is str:
        return _text_problem(value)
    if cls is float:
        return None if math.isfinite(value) else f"{value}"
    if isinstance(value, str | int | float) and not isinstance(value, Enum):
        return _scalar_problem(_plain_scalar(value))
    return f"a {cls.__name__}"


def _text_problem(text: str) -> str | None:
    if text.isascii():
        return None
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "a lone surrogate in the text"
    return None


def _plain_scalar(value: Any) -> Any:
    if isinstance(value, str):
        return str.__str__(value)
    return int(value) if isinstance(value, int) else float(value)


@dataclass(slots=True, repr=False)
class WireReport:
    """What `to_wire` had to replace: type names with how often each was met."""

    replaced: dict[str, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many values were replaced by their type name."""
        return sum(self.replaced.values())

    def replace(self, value: Any) -> str:
        """Count a value that cannot be carried, and give what stands in its place."""
        name = type(value).__name__
        self.replaced[name] = self.replaced.get(name, 0) + 1
        return f"<{name}>"


def to_wire(value: Any, report: WireReport | None = None) -> Any:
    """Convert any value to what strict JSON carries, keeping its meaning.

    Dates and times become ISO text, durations ISO 8601 durations, decimals exact text, sets
    sorted lists, enumerations their value, numpy and pandas scalars the Python scalar, NaN and
    the pandas nulls null, infinities the words ``Infinity`` and ``-Infinity``. Anything else is
    replaced by its type name in angle brackets and counted in ``report``.

    Parameters
    ----------
    value : object
        Any value. Mappings and sequences are converted deeply into new dicts and lists.
    report : WireReport, optional
        Collects what had to be replaced.

    Raises
    ------
    CycleError
        The value contains itself.

    Examples
    --------
    >>> to_wire({"at": date(2026, 1, 2), "share": Decimal("0.10"), "tags": {"b", "a"}})
    {'at': '2026-01-02', 'share': '0.10', 'tags': ['a', 'b']}
    """
    return _wire(value, report if report is not None else WireReport(), [])


#: What may hold further values; looked for in this order, the most frequent first.
_HOLDS_MORE: Final = (dict, list, tuple, Mapping, Set)


def _wire(value: Any, report: WireReport, path: list[int]) -> Any:
    cls = value.__class__
    if value is None or cls is bool:
        return value
    if cls is int:
        # Writers of JSON refuse an integer whose text would be longer than Python makes.
        return value if value.bit_length() <= MAX_BITS else report.replace(value)
    if cls is str:
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if cls is float:
        return _wire_float(value)
    if isinstance(value, _HOLDS_MORE) or _is_sequence(value):
        if id(value) in path:
            raise CycleError("a value contains itself, so it cannot be written as JSON")
        path.append(id(value))
        try:
            return _wire_container(value, report, path)
        finally:
            path.pop()
    return _wire_scalar(value, report, path)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _wire_float(value: float) -> float | str | None:
    if math.isfinite(value):
        return value
    return None if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def _wire_container(value: Any, report: WireReport, path: list[int]) -> Any:
    if isinstance(value, list | tuple):
        if value and are_plain(value):
            return list(map(dict, value))
    elif isinstance(value, dict | Mapping):
        wire = {wire_key(k, report): _wire(v, report, path) for k, v in value.items()}
        lost = len(value) - len(wire)
        if lost > 0:  # 1 and "1" are one key in JSON: the last stays, the loss is counted
            report.replaced[REPEATED] = report.replaced.get(REPEATED, 0) + lost
        return wire
    elif isinstance(value, Set):
        items = [_wire(item, report, path) for item in value]
        return sorted(items, key=lambda item: (type(item).__name__, canonical(item)))
    return [_wire(item, report, path) for item in value]


def wire_key(key: Any, report: WireReport | None = None) -> str:
    """Convert a mapping key as JSON writers do: true, false, null and numbers as their text.

    Examples
    --------
    >>> wire_key(1), wire_key(None), wire_key("a")
    ('1', 'null', 'a')
    """
    if isinstance(key, str) and not isinstance(key, Enum):
        return key if key.isascii() else key.encode("utf-8", "backslashreplace").decode()
    plain = _wire(key, report or WireReport(), []) if not isinstance(key, tuple) else str(key)
    return plain if isinstance(plain, str) else json.dumps(plain)


def _wire_scalar(value: Any, report: WireReport, path: list[int]) -> Any:
    if isinstance(value, Enum):
        return _wire(value.value, report, path)
    plain = plain_scalar(value)
    if plain is not value:
        return _wire(plain, report, path)
    if isinstance(value, str | bool | int | float):
        return _wire(_plain_scalar(value), report, path)
    if isinstance(value, Decimal):
        return None if value.is_nan() else str(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return duration_text(value)
    to_dict = getattr(value, "to_dict", None)
    if getattr(type(value), "__module__", "").startswith("runbook_nb.") and callable(to_dict):
        return _wire(to_dict(), report, path)
    return report.replace(value)


def plain_scalar(value: Any) -> Any:
    """Give the plain Python value of a numpy or pandas scalar, by its shape and with no import.

    NaT and NA become None, ``datetime64`` a datetime, any other numpy scalar its ``item()``; a
    value that is none of these comes back as it is, and so does a date or a span no datetime can
    hold: as the bare integer numpy makes of it, it would be compared with numbers.
    """
    cls = type(value)
    module = cls.__module__
    if module.partition(".")[0] not in ("numpy", "pandas"):
        return value
    name = cls.__name__
    if name in ("NaTType", "NAType"):
        return None
    if module.startswith("numpy") and hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        if name == "ndarray":  # of no dimension: the scalar it holds
            return plain_scalar(value[()])
        if name in ("datetime64", "timedelta64"):
            # .item() of a nanosecond value is a bare integer; microseconds give a real datetime.
            unit = "datetime64[us]" if name == "datetime64" else "timedelta64[us]"
            item = value.astype(unit).item()
            return value if isinstance(item, int) else item
        item = value.item()
        if type(item) is cls:  # the extended numbers are their own item
            return float(item) if name == "longdouble" else value
        return item
    return value
