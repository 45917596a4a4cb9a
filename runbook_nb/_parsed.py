"""YAML and JSON texts as plain values, each beside the line and column it stands on; and YAML out.

Base layer. YAML is read as YAML 1.2 core, JSON strictly. Nothing is guessed: ``yes`` is a word,
``12:30`` is a text, ``2026-01-02`` is a text. Duplicate keys, tags and several documents are
refused, and so is what is larger or deeper than its `Bounds`, or repeats more by aliases.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, Final

from runbook_nb._deep import copied, depth_of
from runbook_nb._text import at, clip
from runbook_nb._value import frozen

#: How a file is written, by its ending.
FORMATS: Final = {".yaml": "yaml", ".yml": "yaml", ".json": "json"}

# Texts with one of these are written in double quotes, where each has an escape: the plain and
# the single-quoted form fold some of them into spaces, and bidirectional overrides make a file
# look like another.
_OVERRIDES: Final = "[\u202a-\u202e\u2066-\u2069]"
_BREAKS: Final = re.compile("[\n\r\x85\u2028\u2029\ufeff]|" + _OVERRIDES)


# The scalars of the YAML 1.2 core schema.
_NULL: Final = re.compile(r"(?:null|Null|NULL|~|)\Z")
_BOOL: Final = re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")
_INT: Final = re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_SPECIAL: Final = re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")


#: What the parser calls the parts of a text, and what people do.
_TOKEN: Final = re.compile(r"'?<([a-z ]+)>'?")
_TOKENS: Final = {
    "scalar": "a text",
    "alias": "an alias",
    "anchor": "an anchor",
    "tag": "a tag",
    "directive": "a directive",
    "block end": "the end of the indented part",
    "block mapping start": "a key with a value",
    "block sequence start": "a list",
    "document start": "a document",
    "document end": "the end of the document",
    "stream start": "the text",
    "stream end": "the end of the text",
}

#: A line and a column, each counted from 1.
Mark = tuple[int, int]


@frozen
class Bounds:
    """What is read at most, and what one text is called when it holds too much.

    Attributes
    ----------
    characters : int
    depth : int
        How many levels may lie in one another.
    repeats : int
        How many values aliases and merge keys may add. With 0, anchors are refused altogether.
    what : str
        What one document holds (``"rule set"``).
    """

    characters: int
    depth: int
    repeats: int
    what: str


@dataclass(slots=True)
class Parsed:
    """Plain values, and where every place in them stands (``rules[1].when.age_days``)."""

    value: Any = None
    lines: dict[str, int] = field(default_factory=dict)
    columns: dict[str, int] = field(default_factory=dict)

    def line_of(self, where: str | None) -> int | None:
        """Give the line of a place, or of the nearest place around it that has one."""
        return self.lines.get(self._known(where))

    def column_of(self, where: str | None) -> int | None:
        """Give the column of a place, or of the nearest place around it that has one."""
        return self.columns.get(self._known(where))

    def _known(self, where: str | None) -> str:
        place = where or ""
        while place and place not in self.lines:
            place = place[: max(place.rfind("."), place.rfind("["), 0)]
        return place


class Malformed(Exception):
    """A text is not what it was to be, or holds more than is read; ``line`` and ``column``."""

    def __init__(
        self, message: str, mark: Mark | None = None, fix: str | None = None, code: str = "syntax"
    ) -> None:
        super().__init__(message)
        self.message, self.fix, self.code = message, fix, code
        self.line: int | None = mark[0] if mark else None
        self.column: int | None = mark[1] if mark else None


def read(text: str, kind: str, bounds: Bounds) -> Parsed:
    r"""Read a text as plain values and where they stand.

    Parameters
    ----------
    text : str
    kind : {"yaml", "json"}
    bounds : Bounds

    Raises
    ------
    Malformed

    Examples
    --------
    >>> found = read("a:\n- b: yes", "yaml", Bounds(characters=99, depth=9, repeats=0, what="x"))
    >>> found.value, found.lines["a[0].b"], found.columns["a[0].b"]
    ({'a': [{'b': 'yes'}]}, 2, 3)
    """
    if len(text) > bounds.characters:
        raise Malformed(f"it is longer than {bounds.characters} characters", code="too_large")
    return _Yaml(text, bounds).parse() if kind == "yaml" else _Json(text, bounds).parse()


class _Builder:
    """Keeps what both formats share: places, duplicate keys, depth."""

    def __init__(self, text: str, bounds: Bounds) -> None:
        self.parsed = Parsed()
        self._text, self._bounds = text, bounds

    def enter(self, where: str, mark: Mark, depth: int) -> None:
        if depth > self._bounds.depth:
            raise Malformed(
                f"nested deeper than {self._bounds.depth} levels", mark, code="too_deep"
            )
        if where not in self.parsed.lines:
            self.stands(where, mark)

    def stands(self, where: str, mark: Mark) -> None:
        self.parsed.lines[where], self.parsed.columns[where] = mark

    def put(self, found: dict[str, Any], key: Any, value: Callable[[str], Any], at_: _At) -> None:
        if not isinstance(key, str):
            raise Malformed(f"the key {key!r} is not text", at_.mark, "put it in quotes")
        if key in found:
            raise Malformed(
                f"the key {clip(key, 60)!r} is there twice", at_.mark, code="duplicate_key"
            )
        here = at(at_.where, key)
        self.stands(here, at_.mark)
        found[key] = value(here)


@frozen(kw_only=False)
class _At:
    """Where in a file something stands."""

    where: str
    mark: Mark


@frozen(kw_only=False)
class _Anchored:
    """A value that aliases may repeat: how many values it counts as, and how deep it is."""

    value: Any
    size: int
    depth: int


class _Yaml(_Builder):
    """Builds values from parser events, so that no constructor of the library ever runs."""

    def __init__(self, text: str, bounds: Bounds) -> None:
        super().__init__(text, bounds)
        self._anchors: dict[str, _Anchored | None] = {}
        self._read = 0  # values so far
        self._repeated = 0  # values that aliases added

    def parse(self) -> Parsed:
        import yaml

        try:
            self._events: Iterator[Any] = iter(yaml.parse(self._text, Loader=yaml.SafeLoader))
            next(self._events)  # the stream
            first = next(self._events)
            if type(first).__name__ == "StreamEndEvent":
                raise Malformed("it is empty", code="empty")
            self.parsed.value = self._value(next(self._events), "", 0)
            next(self._events)  # the end of the document
            more = next(self._events)
            if type(more).__name__ != "StreamEndEvent":
                fix = f"keep one {self._bounds.what} per file"
                raise Malformed("a second document begins", _mark(more), fix)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            said = ", ".join(part for part in (error.context, error.problem) if part)
            said = _TOKEN.sub(lambda found: _TOKENS.get(found[1], found[1]), said)
            place = (mark.line + 1, mark.column + 1) if mark else None
            raise Malformed(said, place) from None
        except yaml.reader.ReaderError as error:
            before = self._text[: error.position]
            place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
            code = error.character if isinstance(error.character, int) else ord(error.character)
            raise Malformed(f"the character U+{code:04X} is not allowed", place) from None
        return self.parsed

    def _value(self, event: Any, where: str, depth: int) -> Any:
        mark = _mark(event)
        self.enter(where, mark, depth)
        anchor = event.anchor
        if type(event).__name__ == "AliasEvent":
            return self._repeat(anchor, mark, depth)
        if anchor is None:
            return self._plain(event, mark, where, depth)
        self._may_repeat(mark)
        self._anchors[anchor] = None  # not to be repeated inside itself
        before = self._read + self._repeated
        value = self._plain(event, mark, where, depth)
        size = self._read + self._repeated - before
        self._anchors[anchor] = _Anchored(value, size, depth_of(value, self._bounds.depth))
        return value

    def _plain(self, event: Any, mark: Mark, where: str, depth: int) -> Any:
        name = type(event).__name__
        self._read += 1
        if event.tag is not None and event.tag != "!":
            raise Malformed(f"the tag {event.tag!r} is not read", mark, "leave the tag out")
        if name == "MappingStartEvent":
            return self._mapping(where, depth)
        if name == "SequenceStartEvent":
            items: list[Any] = []
            while type(following := next(self._events)).__name__ != "SequenceEndEvent":
                items.append(self._value(following, f"{where}[{len(items)}]", depth + 1))
            return items
        plain = event.implicit[0] and event.tag is None  # "!" says that a plain scalar is text
        return _resolve(event.value, mark) if plain else event.value

    def _may_repeat(self, mark: Mark) -> None:
        if not self._bounds.repeats:
            raise Malformed("anchors and aliases are not read", mark, "write the value out")

    def _repeat(self, anchor: str, mark: Mark, depth: int) -> Any:
        self._may_repeat(mark)
        kept = self._anchors.get(anchor)
        if kept is None:
            raise Malformed(f"the alias *{clip(anchor, 60)} has no value before it", mark)
        self._repeated += kept.size
        if self._repeated > self._bounds.repeats:
            raise Malformed(
                f"aliases repeat more than {self._bounds.repeats} values", mark, code="too_large"
            )
        self.enter("", mark, depth + kept.depth)
        return copied(kept.value)

    def _mapping(self, where: str, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        while type(event := next(self._events)).__name__ != "MappingEndEvent":
            mark = _mark(event)
            if type(event).__name__ != "ScalarEvent":
                raise Malformed("a key is not plain text", mark)
            if event.value == "<<" and event.implicit[0] and self._bounds.repeats:
                merged = {**self._merged(mark, depth), **merged}
                continue
            key = self._value(event, at(where, "(key)"), depth)
            self.put(
                found,
                key,
                lambda here: self._value(next(self._events), here, depth + 1),
                _At(where, mark),
            )
        return {**merged, **found} if merged else found

    def _merged(self, mark: Mark, depth: int) -> dict[str, Any]:
        given = self._value(next(self._events), "<<", depth + 1)
        parts = given if isinstance(given, list) else [given]
        if not all(isinstance(part, dict) for part in parts):
            raise Malformed("'<<' takes a mapping, or a list of them", mark)
        return {key: value for part in reversed(parts) for key, value in part.items()}


def _mark(event: Any) -> Mark:
    return int(event.start_mark.line) + 1, int(event.start_mark.column) + 1


def _resolve(text: str, mark: Mark) -> Any:
    """Give the value of a plain scalar by the YAML 1.2 core schema."""
    if _NULL.match(text):
        return None
    if _BOOL.match(text):
        return text.lower() == "true"
    if _SPECIAL.match(text):
        return float(text.replace(".", "").lower())
    try:
        if _INT.match(text):
            return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
        if _FLOAT.match(text):
            return _finite(text, mark)
    except ValueError:
        raise Malformed("a number has too many digits", mark) from None
    return text


def _finite(text: str, mark: Mark) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise Malformed(f"the number {clip(text, 40)} is too large", mark)
    return value


class _Json(_Builder):
    """A strict reader that knows where it is; the standard one cannot say the line of a value."""

    _SPACE = re.compile(r"[ \t\n\r]*")
    _NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
    _WORDS: Final = {"true": True, "false": False, "null": None}

    def __init__(self, text: str, bounds: Bounds) -> None:
        super().__init__(text, bounds)
        self._place = 0
        self._counted = (0, 1)  # a place, and the line it is on

    def parse(self) -> Parsed:
        if not self._text.strip():
            raise Malformed("it is empty", code="empty")
        self.parsed.value = self._value("", 0)
        if self._peek():
            raise self._bad("there is more after the end")
        return self.parsed

    def _mark(self) -> Mark:
        place, line = self._counted
        if place <= self._place:  # count on from where the last count ended
            line += self._text.count("\n", place, self._place)
        else:
            line = self._text.count("\n", 0, self._place) + 1
        self._counted = (self._place, line)
        return line, self._place - self._text.rfind("\n", 0, self._place)

    def _bad(self, message: str) -> Malformed:
        return Malformed(message, self._mark())

    def _peek(self) -> str:
        found = self._SPACE.match(self._text, self._place)
        self._place = found.end() if found else self._place
        return self._text[self._place : self._place + 1]

    def _take(self, sign: str) -> bool:
        if self._peek() != sign:
            return False
        self._place += 1
        return True

    def _value(self, where: str, depth: int) -> Any:
        sign = self._peek()
        self.enter(where, self._mark(), depth)
        if sign == "{":
            return self._object(where, depth)
        if sign == "[":
            return self._array(where, depth)
        if sign == '"':
            return self._string()
        return self._literal()

    def _literal(self) -> Any:
        for word, value in self._WORDS.items():
            if self._text.startswith(word, self._place):
                self._place += len(word)
                return value
        found = self._NUMBER.match(self._text, self._place)
        if found is None:
            raise self._bad("a value is missing, or is not JSON")
        self._place = found.end()
        if found.group(1) or found.group(2):
            return _finite(found.group(), self._mark())
        try:
            return int(found.group())
        except ValueError:
            raise self._bad("a number has too many digits") from None

    def _string(self) -> str:
        try:
            text, self._place = scanstring(self._text, self._place + 1, True)
        except json.JSONDecodeError as error:
            self._place = error.pos
            raise self._bad(error.msg) from None
        return str(text)

    def _array(self, where: str, depth: int) -> list[Any]:
        self._place += 1
        items: list[Any] = []
        if self._take("]"):
            return items
        while True:
            items.append(self._value(f"{where}[{len(items)}]", depth + 1))
            if self._take("]"):
                return items
            if not self._take(","):
                raise self._bad("a comma or the end of a list is missing")

    def _object(self, where: str, depth: int) -> dict[str, Any]:
        self._place += 1
        found: dict[str, Any] = {}
        if self._take("}"):
            return found
        while True:
            if self._peek() != '"':
                raise self._bad("a key in double quotes is missing")
            place = _At(where, self._mark())
            self.put(found, self._string(), lambda here: self._member(here, depth), place)
            if self._take("}"):
                return found
            if not self._take(","):
                raise self._bad("a comma or the end of a mapping is missing")

    def _member(self, where: str, depth: int) -> Any:
        if not self._take(":"):
            raise self._bad("a colon is missing")
        return self._value(where, depth + 1)


def write_yaml(document: dict[str, Any], *, blocks: bool = False) -> str:
    """Write plain values as YAML that readers of YAML 1.1 and of YAML 1.2 take alike.

    Parameters
    ----------
    document : dict
    blocks : bool
        Whether texts of several lines are written over several lines.

    Examples
    --------
    >>> print(write_yaml({"a": ["yes", "1e3", 7]}), end="")
    a:
    - 'yes'
    - '1e3'
    - 7
    """
    import yaml

    class Dumper(yaml.SafeDumper):
        """Quotes a text that either version of YAML would read as something else."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

        def represent_str(self, data: str) -> Any:
            style = '"' if _BREAKS.search(data) else None
            if blocks and "\n" in data and not _BREAKS.search(data.replace("\n", "")):
                style = "|"
            return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)

    Dumper.add_representer(str, Dumper.represent_str)

    for tag, pattern, first in (
        ("tag:yaml.org,2002:null", _NULL, ["n", "N", "~", ""]),
        ("tag:yaml.org,2002:bool", _BOOL, list("tTfF")),
        ("tag:yaml.org,2002:int", _INT, list("-+0123456789")),
        ("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789.")),
        ("tag:yaml.org,2002:float", _SPECIAL, list("-+.")),
    ):
        Dumper.add_implicit_resolver(tag, pattern, first)
    text = yaml.dump(document, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100)
    # Whatever has one of these is in double quotes.
    return re.sub(_OVERRIDES, lambda found: f"\\u{ord(found[0]):04x}", text)
