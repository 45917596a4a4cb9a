"""Judges arguments against a JSON Schema, before a tool's body or a chart's first stage runs.

Base layer. The validator covers the keywords that signatures and pydantic write, by the meaning
draft 2020-12 gives them. A keyword it does not know is never counted as checked:
`unchecked_keywords` names each one with its place, and the toolbox says so on every call.

One thing is stricter than the draft: a NaN or an infinity is no number, because JSON cannot
carry it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from functools import lru_cache
from typing import Any, Final

from runbook_nb._json import WireReport, to_wire
from runbook_nb._text import clip, counted, did_you_mean, listed, meant, summarize, visible
from runbook_nb.errors import Problem

#: Levels of nesting that are followed; deeper values are refused rather than left unjudged.
MAX_DEPTH: Final = 60
#: So many of the values that can be given are named in a message.
MOST_NAMED: Final = 50

_TYPES: Final = ("string", "integer", "number", "boolean", "null", "array", "object")

#: Keywords that only describe.
_SILENT: Final = frozenset(
    {"$schema", "$id", "$comment", "title", "description", "default", "examples", "deprecated"}
    | {"readOnly", "writeOnly", "discriminator"}
)
_ONE_SCHEMA: Final = ("items", "additionalProperties", "propertyNames", "not")
_SCHEMA_LISTS: Final = ("prefixItems", "anyOf", "oneOf", "allOf")
_SCHEMA_MAPS: Final = ("properties", "patternProperties", "$defs", "definitions")
_NUMBER_WORDS: Final = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
)
_CHECKED: Final = frozenset(
    {"type", "enum", "const", "required", "pattern", "uniqueItems", "$ref", "format"}
    | {*_ONE_SCHEMA, *_SCHEMA_LISTS, *_SCHEMA_MAPS, *_NUMBER_WORDS}
)


def validate_arguments(schema: Mapping[str, Any], args: Any) -> list[Problem]:
    """Say everything that is wrong with the arguments of a call; nothing when all is well.

    Values JSON does not have are judged as what they are written as: a date as its ISO text, a
    set or tuple as a list, a numpy number as the number.

    Parameters
    ----------
    schema : mapping
        The input schema of a tool or a chart.
    args : mapping
        The arguments by name.

    Returns
    -------
    list of Problem
        In the order of the schema; ``where`` is the path (``"subjects[0].name"``).

    Examples
    --------
    >>> schema = {"type": "object", "properties": {"days": {"type": "integer", "minimum": 0}},
    ...           "required": ["days"], "additionalProperties": False}
    >>> [str(problem) for problem in validate_arguments(schema, {"days": -1})]
    ['days: must be at least 0, and is -1']
    >>> [str(problem) for problem in validate_arguments(schema, {"day": 1})]
    ["days: is required; did you write 'day' for it?",
     "day: is not among the names that can be given; did you mean 'days'?"]
    """
    return list(_Judge(schema).judge(schema, args, "", 0))


def unchecked_keywords(schema: Mapping[str, Any]) -> list[str]:
    """Name the keywords of a schema that `validate_arguments` does not check, with their places.

    Names starting with ``x-`` are notes by custom and are not listed.

    Examples
    --------
    >>> unchecked_keywords({"type": "object", "properties": {"to": {"format": "email"}},
    ...                     "if": {}, "x-order": 1})
    ['if', 'properties.to.format=email']
    """
    found = []
    for where, sub in _subschemas(schema, ""):
        for word, value in sub.items():
            place = f"{where}.{word}" if where else str(word)
            unread = word == "format" and value not in _FORMATS
            if unread or (word == "$ref" and not str(value).startswith("#")):
                found.append(f"{place}={value}")
            elif word not in _CHECKED | _SILENT and not str(word).startswith("x-"):
                found.append(place)
    return sorted(found)


#: What says of names that ``properties`` does not tell, or tells of more.
_OF_OTHER_NAMES: Final = frozenset(
    {"additionalProperties", "unevaluatedProperties", "patternProperties", "$ref", "if"}
    | {"anyOf", "oneOf", "allOf"}
)


def misspelt_names(schema: Mapping[str, Any], args: Mapping[Any, Any]) -> dict[str, str]:
    """Name the arguments that a schema lets through untold, by what each was likely meant to be.

    Examples
    --------
    >>> schema = {"type": "object", "properties": {"limit": {"type": "integer"}}}
    >>> misspelt_names(schema, {"lmit": 5, "region": "eu"})
    {'lmit': 'limit'}
    """
    known = schema.get("properties", {})
    if not known or not _OF_OTHER_NAMES.isdisjoint(schema):
        return {}
    found = {name: meant(name, known) for name in args if isinstance(name, str)}
    return {name: near for name, near in found.items() if near is not None and name not in known}


def schema_problems(schema: Any, *, any_type: bool = False) -> list[Problem]:
    """Say what keeps a mapping from being the input schema of a tool or a chart.

    Parameters
    ----------
    schema : object
        What an author gave.
    any_type : bool
        Whether other things than objects may be described, as for what a chart gives.

    Returns
    -------
    list of Problem
        Empty for a usable schema. Unknown keywords are no problem here; see
        `unchecked_keywords`.

    Examples
    --------
    >>> [str(p) for p in schema_problems({"type": "object", "properties": {"n": {"type": "int"}}})]
    ["properties.n.type: 'int' is not a JSON type; did you mean 'integer'?"]
    """
    if not isinstance(schema, Mapping):
        return [Problem(message=f"a schema is a mapping, not {type(schema).__name__}")]
    if schema.get("type") != "object" and not any_type:
        return [Problem(message="arguments are an object", fix='write "type": "object" at the top')]
    problems: list[Problem] = []
    for where, sub in _subschemas(schema, ""):
        for word, value in sub.items():
            check = _SHAPES.get(word)
            message = check(value) if check else None
            if word == "$ref" and isinstance(value, str) and value.startswith("#"):
                message = None if _pointed(schema, value) is not None else "points at nothing"
            if message:
                text, _, fix = message.partition("; ")
                place = f"{where}.{word}" if where else str(word)
                problems.append(Problem(message=text, where=place, fix=fix or None))
    return problems


def resolved(root: Mapping[str, Any], schema: Any) -> Mapping[str, Any]:
    """Give what a schema's reference points at, with what stands beside it; a copy where it has.

    Examples
    --------
    >>> resolved({"$defs": {"n": {"type": "integer"}}}, {"$ref": "#/$defs/n", "default": 3})
    {'type': 'integer', 'default': 3}
    """
    found = schema if isinstance(schema, Mapping) else {}
    for _ in range(MAX_DEPTH):
        ref = found.get("$ref")
        if not isinstance(ref, str) or not ref.startswith("#"):
            break
        pointed = _pointed(root, ref)
        beside = {word: value for word, value in found.items() if word != "$ref"}
        found = {**(pointed if isinstance(pointed, Mapping) else {}), **beside}
    return found


def _subschemas(schema: Any, where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not isinstance(schema, Mapping):
        return
    yield where, schema
    for word, value in schema.items():
        place = f"{where}.{word}" if where else str(word)
        if word in _ONE_SCHEMA:
            yield from _subschemas(value, place)
        elif word in _SCHEMA_LISTS and isinstance(value, list | tuple):
            for index, one in enumerate(value):
                yield from _subschemas(one, f"{place}[{index}]")
        elif word in _SCHEMA_MAPS and isinstance(value, Mapping):
            for name, one in value.items():
                yield from _subschemas(one, f"{place}.{name}")


def _type_shape(value: Any) -> str | None:
    words = value if isinstance(value, list | tuple) else [value]
    for word in words:
        if word not in _TYPES:
            near = did_you_mean(word, _TYPES) if isinstance(word, str) else None
            return f"{word!r} is not a JSON type; {near or 'use one of ' + listed(_TYPES)}"
    return None if words else "no type is named"


def _pattern_shape(value: Any) -> str | None:
    try:
        _pattern(value)
    except (re.error, TypeError) as error:
        return f"this pattern cannot be read: {error}"
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _names_shape(value: Any) -> str | None:
    good = isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)
    return None if good else "must be a list of names"


def _schema_shape(value: Any) -> str | None:
    return None if isinstance(value, Mapping | bool) else "must be a schema"


def _list_shape(value: Any) -> str | None:
    good = isinstance(value, list | tuple) and value and not any(map(_schema_shape, value))
    return None if good else "must be a list of schemas"


def _map_shape(value: Any) -> str | None:
    good = isinstance(value, Mapping) and not any(map(_schema_shape, value.values()))
    return None if good else "must map names to schemas"


def _limit_shape(value: Any) -> str | None:
    return None if _is_number(value) else "must be a number"


_SHAPES: Final[dict[str, Callable[[Any], str | None]]] = {
    "type": _type_shape,
    "required": _names_shape,
    "enum": lambda v: None if isinstance(v, list | tuple) and v else "must list the values",
    "pattern": _pattern_shape,
    "$ref": lambda v: None if isinstance(v, str) else "must be text",
    **dict.fromkeys(_ONE_SCHEMA, _schema_shape),
    **dict.fromkeys(_SCHEMA_LISTS, _list_shape),
    **dict.fromkeys(_SCHEMA_MAPS, _map_shape),
    **dict.fromkeys(_NUMBER_WORDS, _limit_shape),
}


def _pointed(root: Any, ref: str) -> Any:
    here = root
    for part in [p for p in ref.removeprefix("#").split("/") if p]:
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(here, Mapping) or name not in here:
            return None
        here = here[name]
    return here


@lru_cache(maxsize=256)
def _pattern(text: str) -> re.Pattern[str]:
    # JSON Schema means ECMA's classes and ECMA's "$", which never matches before a final newline.
    out, in_class, escaped = [], False, False
    for char in text:
        if escaped or char == "\\":
            escaped = not escaped
        elif char in "[]":
            in_class = char == "["
        elif char == "$" and not in_class:
            char = r"\Z"  # noqa: PLW2901
        out.append(char)
    return re.compile("".join(out), re.ASCII)


def _reads(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    def reads(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return reads


def _uuid(text: str) -> Any:
    from uuid import UUID  # only when a schema asks for one

    return UUID(text)


_DATE: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_DURATION: Final = (
    r"[+-]?P(?!\Z)(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(?!\Z)(\d+H)?(\d+M)?(\d+([.,]\d+)?S)?)?)"
)
_FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "date": lambda text: re.fullmatch(_DATE, text) is not None and _reads(date.fromisoformat)(text),
    "date-time": lambda text: len(text) > 10 and _reads(datetime.fromisoformat)(text),
    "time": _reads(time.fromisoformat),
    "duration": lambda text: re.fullmatch(_DURATION, text) is not None,
    "uuid": _reads(_uuid),
    "password": lambda text: True,  # says how it is to be asked for, not what it is
}


def _carried(value: Any) -> Any:
    """Give the value as JSON would carry it, one level deep."""
    cls = type(value)
    if value is None or cls in (str, bool, int, float, dict, list):
        return value
    if isinstance(value, Mapping | list | tuple):
        return value
    if cls.__module__ == "uuid":
        return str(value)
    report = WireReport()
    carried = to_wire(value, report)
    return _Foreign(cls.__name__) if report.count else carried


class _Foreign:
    """A value JSON has no form for. It fits a schema that asks for nothing, and no other."""

    def __init__(self, name: str) -> None:
        self.name = name


def _type_of(value: Any) -> str:
    if isinstance(value, _Foreign):
        return f"a value of type {value.name}"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, Mapping) else "array"


def _is_type(word: str, value: Any) -> bool:
    found = _type_of(value)
    if word == "number":
        return found in ("integer", "number")
    if word == "integer" and found == "number":
        return bool(value.is_integer())
    return word == found


def _key(value: Any) -> Any:
    """Give a hashable stand-in: equal exactly when JSON calls the two values equal."""
    value = _carried(value)
    kind = _type_of(value)
    if kind == "array":
        return ("array", tuple(_key(item) for item in value))
    if kind == "object":
        return ("object", frozenset((name, _key(item)) for name, item in value.items()))
    return ("number" if kind == "integer" else kind, value)


class _Judge:
    """One judging: the root schema that references point into."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root

    def judge(self, schema: Any, value: Any, where: str, depth: int) -> Iterator[Problem]:
        """Yield what is wrong with a value under a schema."""
        if depth > MAX_DEPTH:
            yield Problem(where=where, message=f"is nested deeper than {MAX_DEPTH} levels")
            return
        if not isinstance(schema, Mapping):
            if schema is False:
                yield Problem(where=where, message="nothing may be given here")
            return
        value = _carried(value)
        wrong = self._own(schema, value)
        if wrong:
            yield Problem(where=where, message=wrong)
            return
        ref = schema.get("$ref")
        if isinstance(ref, str) and ref.startswith("#"):
            yield from self.judge(_pointed(self._root, ref), value, where, depth + 1)
        if isinstance(value, Mapping):
            yield from self._object(schema, value, where, depth + 1)
        elif isinstance(value, list | tuple):
            yield from self._array(schema, value, where, depth + 1)
        yield from self._combined(schema, value, where, depth + 1)

    def _own(self, schema: Mapping[str, Any], value: Any) -> str | None:
        """Judge what needs no look at the parts; give the first fault."""
        words = schema.get("type")
        if words is not None:
            allowed = [words] if isinstance(words, str) else list(words)
            if not any(_is_type(word, value) for word in allowed):
                return f"must be {listed(allowed, 'or')}, not {_type_of(value)}"
        if "const" in schema and _key(value) != _key(schema["const"]):
            return f"must be {_shown(schema['const'])}, and is {_shown(value)}"
        if "enum" in schema and _key(value) not in {_key(one) for one in schema["enum"]}:
            texts = [c for c in schema["enum"] if isinstance(c, str)]
            near = did_you_mean(value, texts) if isinstance(value, str) else None
            said = f"must be {_any_of(schema['enum'])}, and is {_shown(value)}"
            return f"{said}; {near}" if near else said
        if isinstance(value, str):
            return _text_fault(schema, value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _number_fault(schema, value)
        return None

    def _object(
        self, schema: Mapping[str, Any], value: Mapping[Any, Any], where: str, depth: int
    ) -> Iterator[Problem]:
        known: Mapping[str, Any] = schema.get("properties", {})
        bad = [name for name in value if not isinstance(name, str)]
        for name in bad:
            yield Problem(where=where, message=f"the name {_shown(name)} is not text")
        yield from _required(schema, value, known, where)
        for name, sub in known.items():
            if name in value:
                yield from self.judge(sub, value[name], _at(where, name), depth)
        patterns: Mapping[str, Any] = schema.get("patternProperties", {})
        rest = schema.get("additionalProperties", True)
        for name, item in value.items():
            if name in bad:
                continue
            place = _at(where, name)
            matching = [sub for text, sub in patterns.items() if _pattern(text).search(name)]
            for sub in matching:
                yield from self.judge(sub, item, place, depth)
            if name in known or matching:
                pass
            elif rest is False:
                yield _unknown(name, place, known)
            else:
                yield from self.judge(rest, item, place, depth)
            if "propertyNames" in schema:
                for problem in self.judge(schema["propertyNames"], name, "", depth):
                    yield Problem(where=place, message=f"as a name, {problem.message}")
        yield from _size(schema, len(value), where, "Properties", "name")

    def _array(
        self, schema: Mapping[str, Any], value: Sequence[Any], where: str, depth: int
    ) -> Iterator[Problem]:
        first = schema.get("prefixItems", ())
        for index, item in enumerate(value):
            sub = first[index] if index < len(first) else schema.get("items", True)
            yield from self.judge(sub, item, f"{where}[{index}]", depth)
        yield from _size(schema, len(value), where, "Items", "item")
        if schema.get("uniqueItems") is True and len({_key(item) for item in value}) < len(value):
            yield Problem(where=where, message="must not hold the same item twice")

    def _combined(
        self, schema: Mapping[str, Any], value: Any, where: str, depth: int
    ) -> Iterator[Problem]:
        for sub in schema.get("allOf", ()):
            yield from self.judge(sub, value, where, depth)
        for word in ("anyOf", "oneOf"):
            if word not in schema:
                continue
            found = [(sub, list(self.judge(sub, value, where, depth))) for sub in schema[word]]
            fitting = sum(1 for _, problems in found if not problems)
            if fitting == 0:
                yield from self._none_fits(found, value, where)
            elif fitting > 1 and word == "oneOf":
                yield Problem(where=where, message=f"must fit one of the forms, and fits {fitting}")
        if "not" in schema and not any(
            True for _ in self.judge(schema["not"], value, where, depth)
        ):
            yield Problem(where=where, message="has a form that is excluded")

    def _none_fits(
        self, found: Sequence[tuple[Any, list[Problem]]], value: Any, where: str
    ) -> Iterator[Problem]:
        # The form whose type was met is the one that was meant, and its faults are worth saying.
        meant = [problems for sub, problems in found if self._meant(sub, value)]
        if len(meant) == 1:
            yield from meant[0]
            return
        forms = listed([self._form(sub) for sub, _ in found], "or")
        yield Problem(where=where, message=f"must be {forms}, and is {_shown(value)}")

    def _resolved(self, schema: Any) -> Mapping[str, Any]:
        for _ in range(MAX_DEPTH):
            if not isinstance(schema, Mapping):
                return {}
            if not str(schema.get("$ref", "")).startswith("#"):
                return schema
            schema = _pointed(self._root, schema["$ref"])
        return {}

    def _meant(self, schema: Any, value: Any) -> bool:
        words = self._resolved(schema).get("type", ())
        return any(_is_type(word, value) for word in ([words] if isinstance(words, str) else words))

    def _form(self, schema: Any) -> str:
        plain = self._resolved(schema)
        if "const" in plain:
            return _shown(plain["const"])
        if "enum" in plain:
            return _any_of(plain["enum"])
        words = plain.get("type", "another form")
        text = words if isinstance(words, str) else listed(words, "or")
        return f"{text} ({plain['format']})" if "format" in plain else text


def _required(
    schema: Mapping[str, Any], value: Mapping[Any, Any], known: Mapping[str, Any], where: str
) -> Iterator[Problem]:
    for name in schema.get("required", ()):
        if name in value:
            continue
        strays = [given for given in value if isinstance(given, str) and given not in known]
        near = did_you_mean(name, strays)
        fix = near and f"did you write {near.removeprefix('did you mean ').rstrip('?')} for it?"
        yield Problem(where=_at(where, name), message="is required", fix=fix)


def _unknown(name: str, place: str, known: Mapping[str, Any]) -> Problem:
    others = f"those are {listed(known)}" if known else "none can be"
    return Problem(
        where=place,
        message="is not among the names that can be given",
        fix=did_you_mean(name, known) or others,
    )


def _size(
    schema: Mapping[str, Any], size: int, where: str, word: str, noun: str
) -> Iterator[Problem]:
    least, most = schema.get(f"min{word}"), schema.get(f"max{word}")
    if least is not None and size < least:
        yield Problem(
            where=where, message=f"must hold at least {counted(least, noun)}, and holds {size}"
        )
    if most is not None and size > most:
        yield Problem(
            where=where, message=f"must hold at most {counted(most, noun)}, and holds {size}"
        )


def _text_fault(schema: Mapping[str, Any], value: str) -> str | None:
    least, most = schema.get("minLength"), schema.get("maxLength")
    if least is not None and len(value) < least:
        return f"must have at least {counted(least, 'character')}, and has {len(value)}"
    if most is not None and len(value) > most:
        return f"must have at most {counted(most, 'character')}, and has {len(value)}"
    if "pattern" in schema and not _pattern(schema["pattern"]).search(value):
        return f"must match the pattern {schema['pattern']}, and is {_shown(value)}"
    reads = _FORMATS.get(schema.get("format", ""))
    if reads is not None and not reads(value):
        return f"must be a {schema['format']}, and is {_shown(value)}"
    return None


def _number_fault(schema: Mapping[str, Any], value: float) -> str | None:
    if not _is_number(value):
        return f"must be a number JSON can carry, and is {_shown(value)}"
    for word, wrong, said in _NUMBER_LIMITS:
        limit = schema.get(word)
        if limit is not None and wrong(value, limit):
            return f"must be {said} {_shown(limit)}, and is {_shown(value)}"
    return None


def _not_multiple(value: float, of: float) -> bool:
    from fractions import Fraction  # exact, where a float remainder is not

    return Fraction(str(value)) % Fraction(str(of)) != 0


_NUMBER_LIMITS: Final[tuple[tuple[str, Callable[[Any, Any], bool], str], ...]] = (
    ("minimum", lambda value, limit: value < limit, "at least"),
    ("maximum", lambda value, limit: value > limit, "at most"),
    ("exclusiveMinimum", lambda value, limit: value <= limit, "more than"),
    ("exclusiveMaximum", lambda value, limit: value >= limit, "less than"),
    ("multipleOf", _not_multiple, "a multiple of"),
)


def _at(where: str, name: str) -> str:
    shown = clip(visible(name), 80)
    return f"{where}.{shown}" if where else shown


def _any_of(values: Sequence[Any]) -> str:
    rest = [f"{len(values) - MOST_NAMED} others"] if len(values) > MOST_NAMED else []
    return listed([*map(_shown, values[:MOST_NAMED]), *rest], "or")


def _shown(value: Any) -> str:
    return visible(summarize(value, 60))
