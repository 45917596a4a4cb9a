"""JSON nested deeper than Python's own reader and writer go.

Base layer. A published execution tree nests each stage in the one before it, so a run of some
thousand stages is a text of some thousand levels, where ``json`` gives up at the depth of the
interpreter's stack. Both doors try ``json`` first, which is fast; only what it gives up on is read
or written here, with a list in place of the stack.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from json.decoder import JSONDecodeError
from typing import Any, Final, NoReturn


def read_json(text: str | bytes) -> Any:
    """Read strict JSON of any depth.

    Raises
    ------
    ValueError
        It is not JSON; ``NaN`` and ``Infinity`` are not.

    Examples
    --------
    >>> read_json('{"a": [1, true]}')
    {'a': [1, True]}
    >>> deep = read_json("[" * 50_000 + "]" * 50_000)
    >>> deep[0][0][0] is not None
    True
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        return _Reader(text if isinstance(text, str) else text.decode("utf-8-sig")).read()


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


_BLANK: Final = re.compile(r"[ \t\n\r]*")
_SCALARS: Final = json.JSONDecoder(parse_constant=_refuse_constant)


class _Reader:
    """Reads one text from its beginning; ``place`` is how far it came."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        #: The containers that are open, outermost first, and the key each mapping waits for.
        self.open: list[Any] = []
        self.keys: list[str | None] = []

    def read(self) -> Any:
        """Read the text as one value."""
        self._skip()
        while True:
            value = self._begun()
            if value is _OPENED:
                continue
            while self.open:  # the value is whole: it may close what is around it
                if not self._put(value):
                    break
                value = self.open.pop()
                self.keys.pop()
            else:
                self._skip()
                if self.place != len(self.text):
                    raise JSONDecodeError("Extra data", self.text, self.place)
                return value

    def _letter(self) -> str:
        return self.text[self.place : self.place + 1]

    def _skip(self, letters: int = 0) -> None:
        found = _BLANK.match(self.text, self.place + letters)
        self.place = len(self.text) if found is None else found.end()

    def _begun(self) -> Any:
        """Read a scalar or an empty container, or open one that is not empty."""
        letter = self._letter()
        if letter not in ("{", "["):
            value, self.place = _SCALARS.raw_decode(self.text, self.place)
            return value
        fresh: Any = {} if letter == "{" else []
        self._skip(1)
        if self._letter() == ("}" if letter == "{" else "]"):
            self.place += 1
            return fresh
        self.open.append(fresh)
        self.keys.append(self._key() if letter == "{" else None)
        return _OPENED

    def _put(self, value: Any) -> bool:
        """Put a value into the innermost container; say whether that ends there."""
        home, key = self.open[-1], self.keys[-1]
        if key is None:
            home.append(value)
        else:
            home[key] = value
        self._skip()
        letter = self._letter()
        if letter == ",":
            self._skip(1)
            if key is not None:
                self.keys[-1] = self._key()
            return False
        if letter != ("]" if key is None else "}"):
            raise JSONDecodeError("Expecting ',' delimiter", self.text, self.place)
        self.place += 1
        return True

    def _key(self) -> str:
        if self._letter() != '"':
            raise JSONDecodeError(
                "Expecting property name enclosed in double quotes", self.text, self.place
            )
        key: str
        key, self.place = _SCALARS.raw_decode(self.text, self.place)
        self._skip()
        if self._letter() != ":":
            raise JSONDecodeError("Expecting ':' delimiter", self.text, self.place)
        self._skip(1)
        return key


#: What was begun is a container that is not empty.
_OPENED: Final = object()


def write_json(value: Any, *, sort_keys: bool = False) -> str:
    """Write plain data (dicts, lists, texts, numbers, true, false, null) of any depth, compactly.

    Nothing is converted: what JSON lacks is refused as ``json.dumps`` refuses it. The value may
    not contain itself.

    Examples
    --------
    >>> write_json({"a": [1, None]})
    '{"a":[1,null]}'
    """
    try:
        return _plain(value, sort_keys=sort_keys)
    except RecursionError:
        return "".join(_pieces(value, sort_keys=sort_keys))


def _plain(value: Any, *, sort_keys: bool) -> str:
    return json.dumps(
        value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=sort_keys
    )


def _pieces(value: Any, *, sort_keys: bool) -> Iterator[str]:
    #: What is still to be written, the next last: an iterator over members, or a text as it is.
    todo: list[Any] = []

    def piece(one: Any) -> str:
        if isinstance(one, dict):
            todo.append("}")
            members = sorted(one.items()) if sort_keys else one.items()
            todo.append(_members(members))
            return "{"
        if isinstance(one, list | tuple):
            todo.append("]")
            todo.append(iter(_items(one)))
            return "["
        return _plain(one, sort_keys=False)

    yield piece(value)
    while todo:
        if isinstance(todo[-1], str):
            yield todo.pop()
            continue
        for before, one in todo[-1]:
            yield before
            yield piece(one)
            break
        else:
            todo.pop()


def _members(members: Any) -> Iterator[tuple[str, Any]]:
    comma = ""
    for key, member in members:
        if not isinstance(key, str):
            raise TypeError(f"keys must be texts, not {type(key).__name__}")
        yield f"{comma}{_plain(key, sort_keys=False)}:", member
        comma = ","


def _items(items: Any) -> Iterator[tuple[str, Any]]:
    comma = ""
    for item in items:
        yield comma, item
        comma = ","


def copied(value: Any) -> Any:
    """Copy plain data of any depth: dicts and lists anew, tuples as lists, all else as it is.

    Examples
    --------
    >>> before = {"a": [1]}
    >>> after = copied(before); after["a"].append(2); before
    {'a': [1]}
    """
    top: list[Any] = []
    todo: list[tuple[Any, Any]] = [(top, [value])]
    while todo:
        into, source = todo.pop()
        pairs = source.items() if isinstance(source, dict) else enumerate(source)
        for key, member in pairs:
            fresh: Any = member
            if isinstance(member, dict):
                fresh = {}
                todo.append((fresh, member))
            elif isinstance(member, list | tuple):
                fresh = []
                todo.append((fresh, member))
            if isinstance(into, dict):
                into[key] = fresh
            else:
                into.append(fresh)
    return top[0]


def depth_of(value: Any, most: int) -> int:
    """Say how deep plain data is nested, or ``most + 1`` where it is deeper than ``most``.

    Examples
    --------
    >>> depth_of(1, 9), depth_of([{"a": []}], 9), depth_of([[[[]]]], 2)
    (0, 3, 3)
    """
    depth, level = 0, [value]
    while True:
        level = [one for one in level if isinstance(one, dict | list | tuple)]
        if not level or depth > most:
            return depth
        depth += 1
        level = [
            member for one in level for member in (one.values() if isinstance(one, dict) else one)
        ]
