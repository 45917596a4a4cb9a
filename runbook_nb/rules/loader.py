"""Rule sets in files: YAML read as YAML 1.2 core, JSON read strictly, problems told with lines.

A text is parsed into plain values beside the line each stands on. Nothing is guessed: ``yes`` is
a word, ``12:30`` is a text, ``2026-01-02`` is a text (a date is ``{"$date": ...}``). Duplicate
keys, aliases, anchors, tags, several documents, and what is too large or too deep are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from json.decoder import scanstring  # type: ignore[attr-defined]
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._text import clip, did_you_mean, visible
from runbook_nb._value import frozen
from runbook_nb.errors import LoadError, RuleError
from runbook_nb.rules.checks import at

if TYPE_CHECKING:
    from runbook_nb.rules.ruleset import RuleSet

#: Largest text that is read, in characters.
MAX_TEXT: Final = 1_000_000

#: How deep a text may nest.
MAX_DEPTH: Final = 32

# Texts with one of these are written in double quotes, where each has an escape: the plain and
# the single-quoted form fold some of them into spaces.
_BREAKS: Final = re.compile("[\n\r\x85\u2028\u2029\ufeff]")

_FORMATS: Final = {".yaml": "yaml", ".yml": "yaml", ".json": "json"}

# The scalars of the YAML 1.2 core schema.
_NULL: Final = re.compile(r"(?:null|Null|NULL|~|)\Z")
_BOOL: Final = re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")
_INT: Final = re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_SPECIAL: Final = re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")


@dataclass(slots=True)
class Parsed:
    """Plain values, and the line of every place in them (``rules[1].when.age_days``)."""

    value: Any = None
    lines: dict[str, int] = field(default_factory=dict)

    def line_of(self, where: str | None) -> int | None:
        """Give the line of a place, or of the nearest place around it that has one."""
        place = where or ""
        while place and place not in self.lines:
            place = place[: max(place.rfind("."), place.rfind("["), 0)]
        return self.lines.get(place)


def load_file(path: str | Path) -> RuleSet:
    """Build a rule set from a file, read by its ending."""
    place = Path(path)
    kind = _FORMATS.get(place.suffix.lower())
    name = visible(place.name)
    if kind is None:
        raise LoadError(
            f"cannot tell how {name!r} is written",
            where=name,
            fix="give it the ending .yaml, .yml or .json",
        )
    try:
        size = place.stat().st_size
        if size > 4 * MAX_TEXT:
            raise LoadError(f"{name!r} is too large ({size} bytes)", where=name)
        text = place.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LoadError(f"{name!r} is not UTF-8 text", where=name) from error
    except OSError as error:
        raise LoadError(f"cannot read {name!r}: {error.strerror}", where=name) from error
    return load_text(text, kind, name)


def load_text(
    text: str, kind: str, name: str | None = None, *, given: Mapping[str, str] | None = None
) -> RuleSet:
    """Build a rule set from text; problems carry the line they stand on.

    What is ``given`` beside the text, its name say, belongs to it as if it stood there.
    """
    from runbook_nb.rules.ruleset import RuleSet

    parsed = parse(text, kind, name)
    if given and isinstance(parsed.value, dict):
        _refuse_otherwise(parsed, given)
        parsed.value = {**given, **parsed.value}
    try:
        return RuleSet.from_dict(parsed.value)
    except RuleError as error:
        of = f"{name}, " if name else ""
        problems = []
        for problem in error.problems:
            line = parsed.line_of(problem.where)
            where = problem.where if line is None else f"line {line}, {problem.where}"
            problems.append(replace(problem, where=f"{of}{where}"))
        raise RuleError(
            error.message, code=error.code, where=name, fix=error.fix, problems=problems
        ) from None


def _refuse_otherwise(parsed: Parsed, given: Mapping[str, str]) -> None:
    for key, value in given.items():
        said = parsed.value.get(key, value)
        if said != value:
            place = f"line {parsed.line_of(key)}"
            raise LoadError(
                f"{place} says that the {key} is {clip(repr(said), 60)}, "
                f"and {clip(repr(value), 60)} was given",
                where=place,
                fix="say it once",
            )


def parse(text: str, kind: str, name: str | None = None) -> Parsed:
    r"""Parse a text into plain values with their lines.

    Examples
    --------
    >>> parsed = parse("name: r\nrules:\n  - then: yes", "yaml")
    >>> parsed.value, parsed.lines["rules[0].then"]
    ({'name': 'r', 'rules': [{'then': 'yes'}]}, 3)
    """
    if kind not in ("yaml", "json"):
        raise LoadError(
            f"there is no format {kind!r}",
            fix=did_you_mean(str(kind), ("yaml", "json")) or "use 'yaml' or 'json'",
        )
    if not isinstance(text, str):
        raise LoadError(f"rules are read from text, not {type(text).__name__}")
    if len(text) > MAX_TEXT:
        raise LoadError(f"the text is longer than {MAX_TEXT} characters", where=name)
    try:
        return _Yaml(text).parse() if kind == "yaml" else _Json(text).parse()
    except _Bad as bad:
        what = f"{name} cannot be read" if name else f"the {kind.upper()} text cannot be read"
        place = f"line {bad.line}" if bad.line else None
        raise LoadError(
            f"{what}: {f'{place}: ' if place else ''}{bad.message}", where=place, fix=bad.fix
        ) from None


class _Bad(Exception):
    def __init__(self, message: str, line: int | None, fix: str | None = None) -> None:
        super().__init__(message)
        self.message, self.line, self.fix = message, line, fix


class _Builder:
    """Keeps what both formats share: lines, duplicate keys, depth."""

    def __init__(self) -> None:
        self.parsed = Parsed()

    def enter(self, where: str, line: int, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise _Bad(f"nested deeper than {MAX_DEPTH} levels", line)
        self.parsed.lines.setdefault(where, line)

    def put(self, found: dict[str, Any], key: Any, value: Callable[[str], Any], at_: _At) -> None:
        if not isinstance(key, str):
            raise _Bad(f"the key {key!r} is not text", at_.line, "put it in quotes")
        if key in found:
            raise _Bad(f"the key {clip(key, 60)!r} is there twice", at_.line)
        here = at(at_.where, key)
        self.parsed.lines[here] = at_.line
        found[key] = value(here)


@frozen(kw_only=False)
class _At:
    """Where in a file something stands."""

    where: str
    line: int


class _Yaml(_Builder):
    """Builds values from parser events, so that no constructor of the library ever runs."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def parse(self) -> Parsed:
        import yaml

        try:
            self._events: Iterator[Any] = iter(yaml.parse(self._text, Loader=yaml.SafeLoader))
            next(self._events)  # the stream
            first = next(self._events)
            if type(first).__name__ == "StreamEndEvent":
                raise _Bad("it is empty", None)
            self.parsed.value = self._value(next(self._events), "", 0)
            next(self._events)  # the end of the document
            more = next(self._events)
            if type(more).__name__ != "StreamEndEvent":
                raise _Bad("a second document begins", _line(more), "keep one rule set per file")
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            said = " ".join(part for part in (error.context, error.problem) if part)
            raise _Bad(said, mark.line + 1 if mark else None) from None
        except yaml.reader.ReaderError as error:
            line = self._text.count("\n", 0, error.position) + 1
            code = error.character if isinstance(error.character, int) else ord(error.character)
            raise _Bad(f"the character U+{code:04X} is not allowed", line) from None
        return self.parsed

    def _value(self, event: Any, where: str, depth: int) -> Any:
        name, line = type(event).__name__, _line(event)
        self.enter(where, line, depth)
        if name == "AliasEvent" or event.anchor is not None:
            raise _Bad("anchors and aliases are not read", line, "write the value out")
        if name == "MappingStartEvent":
            self._refuse_tag(event, line)
            return self._mapping(where, depth)
        if name == "SequenceStartEvent":
            self._refuse_tag(event, line)
            items: list[Any] = []
            while type(following := next(self._events)).__name__ != "SequenceEndEvent":
                items.append(self._value(following, f"{where}[{len(items)}]", depth + 1))
            return items
        self._refuse_tag(event, line)
        plain = event.implicit[0] and event.tag is None  # "!" says that a plain scalar is text
        return _resolve(event.value, line) if plain else event.value

    def _mapping(self, where: str, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while type(event := next(self._events)).__name__ != "MappingEndEvent":
            line = _line(event)
            if type(event).__name__ != "ScalarEvent":
                raise _Bad("a key is not plain text", line)
            key = self._value(event, at(where, "(key)"), depth)
            self.put(
                found,
                key,
                lambda here: self._value(next(self._events), here, depth + 1),
                _At(where, line),
            )
        return found

    @staticmethod
    def _refuse_tag(event: Any, line: int) -> None:
        if event.tag is not None and event.tag != "!":
            raise _Bad(f"the tag {event.tag!r} is not read", line, "leave the tag out")


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _resolve(text: str, line: int) -> Any:
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
            return _finite(text, line)
    except ValueError:
        raise _Bad("a number has too many digits", line) from None
    return text


def _finite(text: str, line: int) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise _Bad(f"the number {clip(text, 40)} is too large", line)
    return value


class _Json(_Builder):
    """A strict reader that knows where it is; the standard one cannot say the line of a value."""

    _SPACE = re.compile(r"[ \t\n\r]*")
    _NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
    _WORDS: Final = {"true": True, "false": False, "null": None}

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text, self._place = text, 0
        self._counted = (0, 1)  # a place, and the line it is on

    def parse(self) -> Parsed:
        if not self._text.strip():
            raise _Bad("it is empty", None)
        self.parsed.value = self._value("", 0)
        if self._peek():
            raise self._bad("there is more after the end")
        return self.parsed

    def _line(self) -> int:
        place, line = self._counted
        if place <= self._place:  # count on from where the last count ended
            line += self._text.count("\n", place, self._place)
        else:
            line = self._text.count("\n", 0, self._place) + 1
        self._counted = (self._place, line)
        return line

    def _bad(self, message: str) -> _Bad:
        return _Bad(message, self._line())

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
        self.enter(where, self._line(), depth)
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
            return _finite(found.group(), self._line())
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
            place = _At(where, self._line())
            self.put(found, self._string(), lambda here: self._member(here, depth), place)
            if self._take("}"):
                return found
            if not self._take(","):
                raise self._bad("a comma or the end of a mapping is missing")

    def _member(self, where: str, depth: int) -> Any:
        if not self._take(":"):
            raise self._bad("a colon is missing")
        return self._value(where, depth + 1)


def write_yaml(document: dict[str, Any]) -> str:
    """Write plain values as YAML that readers of YAML 1.1 and of YAML 1.2 take alike.

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
    return yaml.dump(document, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100)
