"""The fields of a form, read off an input schema: how each is asked for, and what was typed.

Widgets layer, without any widget. A field turns what stands in it (text, or a switch) into the
value a tool takes, and back. Whether that value will do is not judged here: the tool's own check
says so, and what it says is put beside the field it is about.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from runbook_nb._arguments import resolved, validate_arguments
from runbook_nb._frozen import thaw
from runbook_nb._json import WireReport, to_wire
from runbook_nb._secrets import holds_secret, takes_any_name
from runbook_nb._text import MISSING, clip, did_you_mean, listed, show, visible
from runbook_nb._value import frozen
from runbook_nb.chart.inputs import served_problems
from runbook_nb.errors import DefinitionError, Problem
from runbook_nb.record.redact import Redact

Kind = Literal["text", "number", "switch", "choice", "date", "json", "secret"]
#: What stands in a field: text, or for a switch whether it is on.
Raw = str | bool

#: Characters of a choice that are shown.
MAX_CHOICE: Final = 80
#: Of more values than this nobody looks for his own in a list: they are typed.
MOST_CHOICES: Final = 1000
#: What the choices of all fields may take of a form's state, in bytes.
CHOICES_ROOM: Final = 96 * 1024
#: So many values are named where they are typed.
NAMED_CHOICES: Final = 3
#: What a choice holds while nothing is chosen.
NOTHING: Final = ""

#: Choices that a refusal names.
MOST_NAMED: Final = 20


@frozen(kw_only=False)
class Field:
    """One input of a tool, as it is asked for.

    Attributes
    ----------
    name : str
        The input's name.
    kind : str
        How it is asked for.
    required : bool
        Whether there has to be a value.
    title, description, hint : str
        What it is called, the author's sentence, and what its values have to be.
    default : object
        What is there at first; MISSING where nothing is.
    choices : tuple of (str, object)
        What can be chosen: labels and values.
    empty : object
        What an empty field stands for: MISSING, or None where the input has to be there and may
        be null.
    texts : bool
        Whether what was typed is taken as it is, where it could be something else too.
    typed : str
        How what was typed is read, where it is a secret.
    """

    name: str
    kind: Kind
    required: bool
    title: str
    description: str = ""
    hint: str = ""
    default: Any = MISSING
    choices: tuple[tuple[str, Any], ...] = ()
    empty: Any = MISSING
    texts: bool = False
    typed: Kind = "text"

    @property
    def _read_as(self) -> Kind:
        return self.typed if self.kind == "secret" else self.kind

    @property
    def blank(self) -> Raw:
        """What stands in it at first."""
        return self.write(self.default)

    def write(self, value: Any) -> Raw:
        """Give what stands in the field for a value.

        Examples
        --------
        >>> Field("days", "number", True, "days").write(7)
        '7'
        """
        if self.kind == "switch":
            return value is True
        if value is MISSING or (value is None and self.kind != "choice"):
            return ""
        if self.kind == "choice":
            found = [str(n) for n, (_, one) in enumerate(self.choices) if _same(one, value)]
            return found[0] if found else NOTHING
        plain = self._read_as != "json" or (self.kind == "secret" and self.texts)
        if isinstance(value, str) and plain:
            return value
        wire = to_wire(thaw(value), WireReport())
        if isinstance(wire, str) and plain:
            return wire
        return json.dumps(wire, ensure_ascii=False, indent=2 if self.kind == "json" else None)

    def check(self, value: Any) -> None:
        """Refuse a value that the field cannot even show; one that is merely wrong stands in it.

        Raises
        ------
        DefinitionError
            ``no_choice``.

        Examples
        --------
        >>> Field("sure", "switch", True, "sure").check("yes")
        Traceback (most recent call last):
            ...
        runbook_nb.errors.DefinitionError: 'sure' cannot be 'yes'; it is True or False
        """
        if value is None or value is MISSING:
            return
        if self.kind == "choice" and self.write(value) == NOTHING:
            labels = [label for label, _ in self.choices]
            near = did_you_mean(value, labels) if isinstance(value, str) else None
            more = f", and {len(labels) - MOST_NAMED} more" if len(labels) > MOST_NAMED else ""
            fix = near or f"it is one of {listed(labels[:MOST_NAMED], 'or')}{more}"
        elif self.kind == "switch" and not isinstance(value, bool):
            fix = "it is True or False"
        else:
            return
        said = clip(visible(repr(value)), 80)
        raise DefinitionError(
            f"{self.name!r} cannot be {said}", where=self.name, code="no_choice", fix=fix
        )

    def read(self, raw: Raw) -> Any:
        """Give the value of what stands in the field; MISSING for nothing.

        Raises
        ------
        ValueError
            It is to be JSON and is none.

        Examples
        --------
        >>> field = Field("days", "number", True, "days")
        >>> field.read("7"), field.read("seven")
        (7, 'seven')
        """
        if self.kind == "switch":
            return bool(raw)
        text = str(raw)
        if self.kind == "choice":
            chosen = text.isdecimal() and int(text) < len(self.choices)
            return self.choices[int(text)][1] if chosen else self.empty
        secret = self.kind == "secret"
        if not (text if secret else text.strip()):
            return self.empty
        if self._read_as in ("text", "date"):
            return text
        try:
            found = json.loads(text.strip(), parse_constant=_refused)
        except ValueError as error:
            if self._read_as == "number" or self.texts:
                # Of a number the check says that it is none; a secret text is left as it is.
                return text if secret and self.texts else text.strip()
            raise ValueError(f"is no JSON: {_at(error)}") from None
        # A secret that can be a text is one, however much it looks like a number.
        return text if secret and self.texts and not isinstance(found, dict | list) else found

    def told(self) -> dict[str, Any]:
        """Give what a front end draws it from."""
        return {
            "name": self.name,
            "kind": self.kind,
            "required": self.required,
            "title": self.title,
            "description": self.description,
            "hint": self.hint,
            "choices": [label for label, _ in self.choices],
        }


def _refused(word: str) -> Any:
    raise ValueError(f"{word} is no JSON value")


def _at(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg[:1].lower()}{error.msg[1:]}, line {error.lineno}, column {error.colno}"
    return str(error)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


# -- reading the schema ----------------------------------------------------------------------


def fields_of(schema: Mapping[str, Any], hidden: Iterable[str] = ()) -> tuple[Field, ...]:
    """Read the fields off the input schema of a tool, in its order.

    Parameters
    ----------
    schema : mapping
        JSON Schema of an object.
    hidden : iterable of str
        Inputs that are secrets besides those the schema says are.

    Examples
    --------
    >>> schema = {"type": "object", "required": ["cluster"], "properties": {
    ...     "cluster": {"enum": ["eu", "us"]}, "days": {"type": "integer", "minimum": 1}}}
    >>> [(one.name, one.kind, one.required, one.hint) for one in fields_of(schema)]
    [('cluster', 'choice', True, ''), ('days', 'number', False, 'whole number, at least 1')]
    """
    needed = set(schema.get("required", ()))
    secret = set(hidden)
    found, room = [], CHOICES_ROOM
    for name, sub in schema.get("properties", {}).items():
        field = _field(
            schema,
            name,
            sub,
            required=name in needed,
            secret=name in secret or holds_secret(schema, sub),
            room=room,
        )
        room -= _size(field.choices)
        found.append(field)
    return tuple(found)


def _size(choices: Sequence[tuple[str, Any]]) -> int:
    return len(json.dumps([label for label, _ in choices])) if choices else 0


def _field(
    root: Mapping[str, Any], name: str, schema: Any, *, required: bool, secret: bool, room: int
) -> Field:
    outer = resolved(root, schema)
    inner, nullable = _without_null(root, outer)
    default = outer.get("default", inner.get("default", MISSING))
    choices = _choices(root, inner)
    kind = _kind(inner, bool(choices))
    hint = "" if choices else _hint(inner)
    typed = _typed(inner, kind, choices)
    if kind == "switch" and default is MISSING and not required:
        kind, choices = "choice", (("yes", True), ("no", False))
    given = bool(choices) or kind == "switch"
    texts = kind == "json" and not given and _takes_text(inner)
    if secret:
        texts = typed == "json" and not given and _takes_text(inner)
        kind, choices, default = "secret", (), MISSING
    elif len(choices) > MOST_CHOICES or _size(choices) > room:
        named = ", ".join(label for label, _ in choices[:NAMED_CHOICES])
        hint = f"one of {len(choices)}: {named}, …"
        texts = any(isinstance(value, str) for _, value in choices)
        kind, choices = typed, ()
    title = outer.get("title") or inner.get("title")
    return Field(
        name=name,
        kind=kind,
        required=required,
        title=title if isinstance(title, str) else name,
        description=str(outer.get("description") or inner.get("description") or ""),
        hint=hint,
        default=default,
        choices=choices,
        empty=None if nullable and required else MISSING,
        texts=texts,
        typed=typed if secret else "text",
    )


def _typed(schema: Mapping[str, Any], kind: Kind, choices: Sequence[tuple[str, Any]]) -> Kind:
    """Say how a secret is read, for which there is no switch and nothing to choose from."""
    if kind == "choice":
        return "text" if all(isinstance(value, str) for _, value in choices) else "json"
    if kind == "json" and schema.get("type") is None and "format" in schema:
        return "text"
    return "json" if kind == "switch" else kind


def _without_null(
    root: Mapping[str, Any], schema: Mapping[str, Any]
) -> tuple[Mapping[str, Any], bool]:
    """Take null out of what a schema allows; say whether it was there."""
    words = schema.get("type")
    if isinstance(words, list | tuple) and "null" in words:
        rest = [word for word in words if word != "null"]
        return {**schema, "type": rest[0] if len(rest) == 1 else rest}, True
    for key in ("anyOf", "oneOf"):
        forms = [resolved(root, form) for form in schema.get(key, ())]
        rest_forms = [form for form in forms if form.get("type") != "null"]
        if len(rest_forms) < len(forms) and len(rest_forms) == 1:
            return rest_forms[0], True
    return schema, False


def _kind(schema: Mapping[str, Any], chosen: bool) -> Kind:
    word = schema.get("type")
    if chosen:
        return "choice"
    if word == "boolean":
        return "switch"
    if word in ("integer", "number"):
        return "number"
    if word == "string":
        return "date" if schema.get("format") == "date" else "text"
    return "json"


def _takes_text(schema: Mapping[str, Any]) -> bool:
    """Say whether what is no JSON can be meant as a text."""
    word = schema.get("type")
    if isinstance(word, list | tuple):
        return "string" in word
    if word is not None:
        return False
    forms = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    return (
        not forms
        or any(isinstance(f, Mapping) and _takes_text(f) for f in forms)
        or any(isinstance(f, Mapping) and f.get("type") == "string" for f in forms)
    )


def _choices(root: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Give labels and values of a schema that lists what can be given."""
    for key in ("oneOf", "anyOf"):
        forms = [resolved(root, form) for form in schema.get(key, ())]
        if forms and all("const" in form for form in forms):
            return tuple(
                (_label(form.get("title"), form["const"]), form["const"]) for form in forms
            )
    if "const" in schema:
        return ((_label(schema.get("title"), schema["const"]), schema["const"]),)
    values = schema.get("enum", ())
    labels = schema.get("x-enum-labels", ())
    if not isinstance(labels, list | tuple) or len(labels) != len(values):
        labels = [None] * len(values)
    return tuple((_label(label, one), one) for label, one in zip(labels, values, strict=True))


def _label(label: Any, value: Any) -> str:
    return clip(label if isinstance(label, str) else show(value), MAX_CHOICE)


_WORDS: Final = {"integer": "whole number", "array": "list, as JSON", "object": "mapping, as JSON"}
_LIMITS: Final = (
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "more than {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "less than {}"),
    ("multipleOf", "a multiple of {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minItems", "at least {} items"),
    ("maxItems", "at most {} items"),
    ("pattern", "like {}"),
)
_FORMS: Final = {
    "date-time": "time with its date, 2026-11-29T03:10:00Z",
    "time": "time of day, 03:10:00",
    "duration": "duration, PT30M",
    "uuid": "UUID",
}


def _hint(schema: Mapping[str, Any]) -> str:
    """Say what the values have to be."""
    word = schema.get("type")
    said = [_WORDS[word]] if isinstance(word, str) and word in _WORDS else []
    if word is None or isinstance(word, list | tuple):
        said.append("as JSON")
    if schema.get("format") in _FORMS and word == "string":
        said.append(_FORMS[schema["format"]])
    limits = dict(_LIMITS)
    if "minimum" in schema and "maximum" in schema:
        said.append(f"{show(schema['minimum'])} to {show(schema['maximum'])}")
        del limits["minimum"], limits["maximum"]
    said.extend(text.format(show(schema[key])) for key, text in limits.items() if key in schema)
    return ", ".join(said)


# -- what was typed --------------------------------------------------------------------------


class Entries:
    """What stands in the fields of a form.

    Parameters
    ----------
    schema : mapping
        The tool's input schema.
    policy : Redact or None
        What the tool hides: inputs it names, whole or in part, are secrets, and no problem quotes
        one.

    Examples
    --------
    >>> entries = Entries({"type": "object", "required": ["days"], "properties": {
    ...     "days": {"type": "integer", "minimum": 1}}}, None)
    >>> entries.problems({"days": ""}), entries.problems({"days": "0"})
    ({'days': 'is required'}, {'days': 'must be at least 1, and is 0'})
    >>> entries.values({"days": "7"})
    {'days': 7}
    """

    def __init__(self, schema: Mapping[str, Any], policy: Redact | None) -> None:
        from runbook_nb.record.redact import Redactor

        redactor = Redactor(policy)
        names = policy is not None and bool(policy.keys or policy.patterns)
        known = schema.get("properties", {})
        hidden = [
            name
            for name, sub in known.items()
            if redactor.hides_key(name)
            or (redactor.active and holds_secret(schema, sub, redactor.names))
            # What the policy names may be typed there under its name.
            or (names and takes_any_name(schema, sub))
        ]
        self.schema = schema
        self.fields = fields_of(schema, hidden)
        self.by_name = {field.name: field for field in self.fields}
        secret = tuple(field.name for field in self.fields if field.kind == "secret")
        self.secret = frozenset(secret)
        self._policy = policy if not secret else _hiding(policy, secret)

    def checked(self, name: str) -> Field:
        """Give the field of an input.

        Raises
        ------
        DefinitionError
            There is none of that name.
        """
        if name in self.by_name:
            return self.by_name[name]
        fix = did_you_mean(name, self.by_name)
        if fix is None:
            fix = f"the fields are {listed(self.by_name)}" if self.by_name else "it has none"
        raise DefinitionError(
            f"the form has no field {name!r}", where=name, code="unknown_field", fix=fix
        )

    def values(self, raw: Mapping[str, Raw]) -> dict[str, Any]:
        """Give the arguments of a call; what cannot be read is left out."""
        return self._read(raw)[0]

    def problems(self, raw: Mapping[str, Raw]) -> dict[str, str]:
        """Say what is wrong, by field; what is about no field alone stands under ``""``."""
        args, unread = self._read(raw)
        judged = [
            problem
            for problem in validate_arguments(self.schema, args)
            if self._about(problem) not in unread
        ]
        found: dict[str, list[str]] = {name: [text] for name, text in unread.items()}
        for problem in served_problems(judged, args, self._policy):
            known = self._about(problem)
            found.setdefault(known, []).append(_beside(problem, known))
        order = [*self.by_name, ""]
        return {name: "; ".join(found[name]) for name in order if name in found}

    def secrets_in(self, raw: Mapping[str, Raw]) -> set[str]:
        """Give every text that must not be seen: of the secrets typed, and of the policy."""
        from runbook_nb.record.redact import Redactor

        typed = {str(raw[name]) for name in self.secret if raw.get(name)}
        literal = () if self._policy is None else self._policy.values
        return {*typed, *literal, *Redactor(self._policy).secrets_in(self.values(raw))}

    def _about(self, problem: Problem) -> str:
        """Give the field a problem is about; the empty text for none."""
        where = problem.where or ""
        name = where if where in self.by_name else _head(where)
        return name if name in self.by_name else ""

    def _read(self, raw: Mapping[str, Raw]) -> tuple[dict[str, Any], dict[str, str]]:
        args: dict[str, Any] = {}
        unread: dict[str, str] = {}
        for field in self.fields:
            try:
                value = field.read(raw.get(field.name, field.blank))
            except ValueError as error:
                unread[field.name] = str(error)
                continue
            if value is not MISSING:
                args[field.name] = value
        return args, unread


def _hiding(policy: Redact | None, names: Sequence[str]) -> Redact | None:
    from runbook_nb.record.redact import joined_policies

    return joined_policies(policy, Redact(keys=tuple(names)))


def _head(where: str) -> str:
    """Give the input a place lies in: ``hosts`` of ``hosts[2].name``."""
    ends = [at for at in (where.find("."), where.find("[")) if at >= 0]
    return where[: min(ends)] if ends else where


def _beside(problem: Problem, name: str) -> str:
    """Say a problem beside the field it is about, whose name is already there."""
    rest = (problem.where or "")[len(name) :].lstrip(".")
    text = f"{rest}: {problem.message}" if rest else problem.message
    return f"{text}; {problem.fix}" if problem.fix else text
