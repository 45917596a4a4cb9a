"""How recorded values are read in Python, compared, and told apart from what they are not."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence, Set
from datetime import date, datetime
from math import isnan
from typing import Any

from runbook_nb._text import MISSING


class HarnessFailure(AssertionError):
    """The harness met something it does not know; no result may be drawn from such a case."""


class Anything:
    """Equals whatever it is held against: for a fact the recording does not hold."""

    def __repr__(self) -> str:
        return "<anything>"


ANYTHING = Anything()

_WORDS = {
    "undefined": MISSING,
    "missing": MISSING,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
    "-0": -0.0,
}


class Recorded(Exception):
    """An error that was recorded as a value."""


def decode(value: Any) -> Any:
    """Read a recorded value: what JavaScript has and JSON has not is tagged."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$range" in value:
        return list(range(value["$range"]))
    kind = value.get("$js")
    if kind is None:
        return {key: decode(item) for key, item in value.items()}
    if kind in _WORDS:
        return _WORDS[kind]
    if kind == "date":
        return datetime.fromisoformat(value["iso"])
    if kind == "set":
        return set(decode(value["values"]))
    if kind == "map":
        return {decode(key): decode(item) for key, item in value["entries"]}
    if kind == "bigint":
        return int(value["value"])
    if kind == "error":
        return Recorded(value.get("message", value.get("category", "")))
    if kind in ("function", "promise", "symbol"):
        # What stands for it here: a thing of the host language that no record can keep a copy of.
        return threading.Lock()
    if kind == "circular":
        ring: list[Any] = []
        ring.append(ring)
        return ring
    raise HarnessFailure(f"no Python reading of the recorded value {value}")


def plain(value: Any) -> Any:
    """Give a decoded value as Python has it: a key that holds nothing is absent, null in a list."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items() if item is not MISSING}
    if isinstance(value, list | tuple):
        return [None if item is MISSING else plain(item) for item in value]
    return value


def read(value: Any) -> Any:
    """Decode a recorded value and give it as Python has it; nothing at all becomes None."""
    decoded = plain(decode(value))
    return None if decoded is MISSING else decoded


def same(a: Any, b: Any) -> bool:
    """Compare structurally: NaN equals NaN, a list is a tuple, True is not 1, ANYTHING fits."""
    if a is ANYTHING or b is ANYTHING or a is b:
        return True
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a == b or (isnan(a) and isnan(b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, Set) and isinstance(b, Set):
        return a == b
    if isinstance(a, str) or isinstance(b, str):
        return type(a) is type(b) and a == b
    if isinstance(a, Sequence) and isinstance(b, Sequence):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, datetime) and isinstance(b, datetime):
        return a == b
    if type(a) is not type(b):
        return False
    return bool(a == b)


def kind_of(value: Any) -> str:
    """Name the kind of a value as conditions see it; a reading of our own."""
    if value is MISSING:
        return "missing"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "nan" if isinstance(value, float) and isnan(value) else "number"
    for name, classes in (("text", str), ("map", Mapping), ("list", list | tuple)):
        if isinstance(value, classes):
            return name
    return "date" if isinstance(value, date | datetime) else "other"
