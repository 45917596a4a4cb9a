"""Reads a function's signature: the JSON Schema a model fills in, and the way back to Python.

Tools layer. Text, numbers, booleans, null, lists, mappings, literals, their unions and typed
dictionaries are written here. Everything richer (dates, decimals, enumerations, dataclasses,
sets, tuples, constrained types, pydantic models) is pydantic's work, imported only when a
signature names such a type; pydantic then also turns what arrives into the annotated type.
"""

from __future__ import annotations

import re
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from types import MethodType, UnionType
from typing import TYPE_CHECKING, Any, Final, NoReturn

from runbook_nb._json import WireReport, to_wire
from runbook_nb._value import frozen
from runbook_nb.errors import DefinitionError, Problem, ToolRefused
from runbook_nb.tools.context import ToolContext

if TYPE_CHECKING:
    import inspect

_WORDS: Final[dict[Any, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}


@frozen
class Signature:
    """What a signature says: the schema, where the context goes, how arguments become Python.

    Attributes
    ----------
    schema : dict
        JSON Schema, draft 2020-12.
    context : str or None
        The parameter annotated `ToolContext`.
    positional : tuple of str
        Parameters that cannot be passed by name, in their order.
    readers : mapping
        For each parameter that needs it: what makes the annotated type from its JSON form.
    """

    schema: dict[str, Any]
    context: str | None = None
    positional: tuple[str, ...] = ()
    readers: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)

    def bind(
        self, args: Mapping[str, Any], ctx: ToolContext, *, tool: str
    ) -> tuple[list[Any], dict[str, Any]]:
        """Give the positional and named values to call the function with.

        Raises
        ------
        ToolRefused
            A value cannot become the annotated type; every such value is named.
        """
        values: dict[str, Any] = {}
        problems: list[Problem] = []
        for name, value in args.items():
            try:
                values[name] = self.readers[name](value) if name in self.readers else value
            except ValueError as error:  # pydantic's errors are ValueErrors
                problems.extend(_read_problems(name, error))
        if problems:
            raise ToolRefused(
                f"tool {tool!r} cannot take these arguments",
                code="invalid_arguments",
                where=tool,
                problems=problems,
                facts={"tool": tool, "arguments": [problem.where for problem in problems]},
            )
        if self.context is not None:
            values[self.context] = ctx
        first = [values.pop(name) for name in self.positional if name in values]
        return first, values


def read_signature(
    function: Callable[..., Any],
    *,
    tool: str,
    refs: Mapping[str, str] | None = None,
    names: Mapping[str, Any] | None = None,
) -> Signature:
    """Read a function's signature.

    Parameters
    ----------
    function : callable
        A function, method or callable object.
    tool : str
        The tool's name, for messages.
    refs : mapping, optional
        Arguments that arrive as artifact references, with the wanted kind: their schema asks for
        the reference, whatever the annotation says of the data.
    names : mapping, optional
        Where else to look for a name an annotation mentions, as inside a function.

    Returns
    -------
    Signature
        The schema, and how arguments that fit it are passed on.

    Raises
    ------
    DefinitionError
        ``*args``, an annotation nobody can describe, two context parameters.

    Examples
    --------
    >>> def ages(cluster: str, days: int = 7):
    ...     '''Read ages.
    ...
    ...     Parameters
    ...     ----------
    ...     cluster : str
    ...         Where to look.
    ...     '''
    >>> read_signature(ages, tool="ages").schema["properties"]
    {'cluster': {'type': 'string', 'description': 'Where to look.'},
     'days': {'type': 'integer', 'default': 7}}
    """
    from inspect import getdoc

    docs = parameter_docs(getdoc(function) or "")
    reading = _Reading(tool)
    for parameter in _signature(function).parameters.values():
        reading.add(parameter, _annotation(function, parameter, names or {}, tool), refs or {})
    return reading.finish(docs)


class _Reading:
    """The parts of a schema while the parameters are gone through."""

    def __init__(self, tool: str) -> None:
        self._tool = tool
        self._properties: dict[str, dict[str, Any]] = {}
        self._rich: dict[str, Any] = {}
        self._required: list[str] = []
        self._positional: list[str] = []
        self._context: str | None = None
        self._open: Any = False

    def add(self, parameter: inspect.Parameter, annotation: Any, refs: Mapping[str, str]) -> None:
        name = parameter.name
        if parameter.kind is parameter.VAR_POSITIONAL:
            _refuse(self._tool, name, f"*{name} has no names to fill in", "name each parameter")
        if parameter.kind is parameter.VAR_KEYWORD:
            self._open = self._described(f"**{name}", annotation) or True
            return
        if parameter.kind is parameter.POSITIONAL_ONLY:
            self._positional.append(name)
        if _is_context(annotation):
            if self._context is not None:
                _refuse(self._tool, name, "a second context parameter", f"keep {self._context!r}")
            self._context = name
            return
        if name in refs:
            text = f"Reference of an artifact of kind {refs[name]}."
            self._properties[name] = {"type": "string", "description": text}
        else:
            self._properties[name] = self._described(name, annotation)
        if parameter.default is parameter.empty:
            self._required.append(name)
        elif name not in refs:
            report = WireReport()
            default = to_wire(parameter.default, report)
            if not report.count:
                self._properties[name]["default"] = default

    def _described(self, name: str, annotation: Any) -> dict[str, Any]:
        try:
            plain = _plain_schema(annotation)
        except NameError as error:  # a TypedDict whose own annotations cannot be read
            fix = "define the TypedDict, and what it names, at the top of a module"
            _refuse(self._tool, name, str(error), fix, cause=error)
        if plain is None:
            self._rich[name] = annotation
            return {}
        return plain

    def finish(self, docs: Mapping[str, str]) -> Signature:
        readers: dict[str, Callable[[Any], Any]] = {}
        defs: dict[str, Any] = {}
        if self._rich:
            schemas, defs, readers = _rich_schemas(self._rich, self._tool)
            for name, found in schemas.items():
                if name.startswith("**"):
                    self._open = found
                else:
                    text = _description(self._rich[name])
                    described = {**found, "description": text} if text else found
                    self._properties[name] = {**described, **self._properties[name]}
        for name, text in docs.items():
            if name in self._properties:
                self._properties[name].setdefault("description", text)
        schema: dict[str, Any] = {"type": "object", "properties": self._properties}
        if self._required:
            schema["required"] = self._required
        schema["additionalProperties"] = self._open
        if defs:
            schema["$defs"] = defs
        readers.update(
            {n: _whole for n, s in self._properties.items() if s.get("type") == "integer"}
        )
        return Signature(
            schema=schema,
            context=self._context,
            positional=tuple(self._positional),
            readers={name: read for name, read in readers.items() if name in self._properties},
        )


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    from inspect import signature

    if sys.version_info >= (3, 14):
        import annotationlib

        # Names imported for type checkers only must not keep a signature from being read.
        forward = annotationlib.Format.FORWARDREF
        return signature(function, annotation_format=forward)
    return signature(function)


def _annotation(
    function: Callable[..., Any],
    parameter: inspect.Parameter,
    names: Mapping[str, Any],
    tool: str,
) -> Any:
    found = parameter.annotation
    if found is parameter.empty:
        return Any
    from inspect import unwrap

    plain = unwrap(function)
    if not hasattr(plain, "__globals__") and not isinstance(plain, MethodType):
        plain = type(plain).__call__  # a callable object
    plain = getattr(plain, "__func__", plain)

    def holder() -> None:
        """Carry one annotation, so that one that cannot be read spoils no other."""

    holder.__annotations__ = {"it": getattr(found, "__forward_arg__", found)}
    scope = {**names, **_closed_over(plain)}
    try:
        return typing.get_type_hints(
            holder, getattr(plain, "__globals__", {}), scope, include_extras=True
        )["it"]
    except Exception as error:
        written = getattr(found, "__forward_arg__", found)
        if isinstance(written, str) and re.search(r"\bToolContext\b", written):
            return ToolContext  # imported for type checkers only
        _refuse(
            tool,
            parameter.name,
            f"its annotation {written!r} cannot be read ({error})",
            "import the name where the function is defined",
            cause=error,
        )


def _closed_over(function: Any) -> dict[str, Any]:
    found = {}
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # a name bound later
            continue
    return found


def _is_context(annotation: Any) -> bool:
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _is_context(typing.get_args(annotation)[0])
    if origin in (typing.Union, UnionType):
        return any(_is_context(one) for one in typing.get_args(annotation))
    return isinstance(annotation, type) and issubclass(annotation, ToolContext)


def _plain_schema(annotation: Any) -> dict[str, Any] | None:
    """Give the schema of an annotation whose values need no conversion; None for any other."""
    if annotation is Any or annotation is object:
        return {}
    if annotation is None:
        return {"type": "null"}
    if isinstance(annotation, type) and annotation in _WORDS:
        return {"type": _WORDS[annotation]}
    if typing.is_typeddict(annotation):
        return _typed_dict_schema(annotation)
    origin = typing.get_origin(annotation) or annotation
    parts = typing.get_args(annotation)
    if origin is typing.Annotated:
        inner = _plain_schema(parts[0])
        text = _description(annotation)
        if inner is None or not all(_says(note) for note in parts[1:]):
            return None
        return {**inner, "description": text} if text else inner
    if origin is typing.Literal:
        return _literal_schema(parts)
    if origin in (typing.Union, UnionType):
        return _any_of([_plain_schema(one) for one in parts])
    if origin in (list, Sequence):
        items = _plain_schema(parts[0]) if parts else {}
        return None if items is None else {"type": "array", "items": items}
    if origin in (dict, Mapping) and (not parts or parts[0] is str):
        values = _plain_schema(parts[1]) if parts else {}
        if values is None:
            return None
        return {"type": "object", "additionalProperties": values or True}
    return None


def _any_of(forms: Sequence[dict[str, Any] | None]) -> dict[str, Any] | None:
    if any(form is None for form in forms):
        return None
    return {"anyOf": [form for form in forms if form is not None]}


def _literal_schema(values: Sequence[Any]) -> dict[str, Any] | None:
    if any(type(value) not in _WORDS for value in values):
        return None
    words = {_WORDS[type(value)] for value in values}
    schema: dict[str, Any] = {"const": values[0]} if len(values) == 1 else {"enum": list(values)}
    return {**schema, "type": words.pop()} if len(words) == 1 else schema


def _typed_dict_schema(cls: Any) -> dict[str, Any] | None:
    properties: dict[str, Any] = {}
    required = []
    for name, annotation in typing.get_type_hints(cls, include_extras=True).items():
        needed = name in cls.__required_keys__
        # Under postponed annotations the class itself did not see these words.
        while typing.get_origin(annotation) in (typing.Required, typing.NotRequired):
            needed = typing.get_origin(annotation) is typing.Required
            annotation = typing.get_args(annotation)[0]  # noqa: PLW2901
        schema = _plain_schema(annotation)
        if schema is None:
            return None
        properties[name] = schema
        if needed:
            required.append(name)
    found: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        found["required"] = required
    return {**found, "additionalProperties": False}


def _says(note: Any) -> bool:
    return isinstance(note, str) or isinstance(getattr(note, "documentation", None), str)


def _description(annotation: Any) -> str | None:
    if typing.get_origin(annotation) is not typing.Annotated:
        return None
    for note in typing.get_args(annotation)[1:]:
        if _says(note):
            return note if isinstance(note, str) else str(note.documentation)
    return None


def _rich_schemas(
    annotations: Mapping[str, Any], tool: str
) -> tuple[dict[str, dict[str, Any]], dict[str, Any], dict[str, Callable[[Any], Any]]]:
    """Have pydantic describe annotations: their schemas, the shared definitions, the readers."""
    from pydantic import TypeAdapter
    from pydantic.json_schema import GenerateJsonSchema

    class Writer(GenerateJsonSchema):
        """Leaves out titles made from names, and closes what has a declared set of keys."""

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

        def dataclass_schema(self, schema: Any) -> Any:
            return _closed(super().dataclass_schema(schema))

        def typed_dict_schema(self, schema: Any) -> Any:
            return _closed(super().typed_dict_schema(schema))

    adapters: dict[str, Any] = {}
    for name, annotation in annotations.items():
        try:
            adapters[name] = TypeAdapter(_for_pydantic(annotation))
            adapters[name].json_schema()
        except Exception as error:
            shown = getattr(annotation, "__name__", None) or str(annotation)
            _refuse(
                tool,
                name,
                f"{shown} has no JSON form",
                "use plain types, a dataclass, a TypedDict or a pydantic model",
                cause=error,
            )
    inputs: list[Any] = [(name, "validation", adapter) for name, adapter in adapters.items()]
    found, shared = TypeAdapter.json_schemas(inputs, schema_generator=Writer)
    schemas = {name: found[(name, "validation")] for name in adapters}
    readers = {name: adapter.validate_python for name, adapter in adapters.items()}
    return schemas, dict(shared.get("$defs", {})), readers


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    if "properties" in schema:
        schema.setdefault("additionalProperties", False)
    return schema


def _for_pydantic(annotation: Any) -> Any:
    """Replace the TypedDicts of `typing`, which pydantic takes only from Python 3.12 on."""
    if typing.is_typeddict(annotation):
        import typing_extensions  # comes with pydantic

        hints = typing.get_type_hints(annotation, include_extras=True)
        needed = annotation.__required_keys__
        fields = {}
        for name, hint in hints.items():
            marked = typing.get_origin(hint) in (typing.Required, typing.NotRequired)
            inner = _for_pydantic(typing.get_args(hint)[0] if marked else hint)
            is_needed = typing.get_origin(hint) is typing.Required if marked else name in needed
            word = typing_extensions.Required if is_needed else typing_extensions.NotRequired
            fields[name] = word[inner]
        make: Any = typing_extensions.TypedDict
        return make(annotation.__name__, fields)
    parts = typing.get_args(annotation)
    if not parts or typing.get_origin(annotation) in (typing.Literal, None):
        return annotation
    if typing.get_origin(annotation) is typing.Annotated:
        return typing.Annotated[(_for_pydantic(parts[0]), *parts[1:])]
    changed = tuple(_for_pydantic(part) for part in parts)
    if changed == parts:
        return annotation
    if isinstance(annotation, UnionType):
        return typing.Union[changed]  # noqa: UP007
    if hasattr(annotation, "copy_with"):
        return annotation.copy_with(changed)
    origin: Any = typing.get_origin(annotation)
    return origin[changed]


def _read_problems(name: str, error: ValueError) -> list[Problem]:
    details = getattr(error, "errors", None)
    if not callable(details):
        return [Problem(where=name, message=str(error))]
    found = []
    for one in details(include_url=False, include_context=False, include_input=False):
        path = "".join(f"[{at}]" if isinstance(at, int) else f".{at}" for at in one["loc"])
        found.append(Problem(where=name + path, message=one["msg"]))
    return found


def _whole(value: Any) -> Any:
    # JSON makes no difference between 2 and 2.0; a body that was promised an int does.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _refuse(
    tool: str, where: str, what: str, fix: str, *, cause: BaseException | None = None
) -> NoReturn:
    raise DefinitionError(
        f"tool {tool!r}: parameter {where!r}: {what}", code="bad_tool", where=where, fix=fix
    ) from cause


def summary_of(doc: str) -> str:
    r"""Give the first paragraph of a docstring, on one line.

    Examples
    --------
    >>> summary_of("Read ages\nof backups.\n\nSlow.")
    'Read ages of backups.'
    """
    from inspect import cleandoc

    return " ".join(cleandoc(doc).partition("\n\n")[0].split())


_SECTION = re.compile(r"^(?P<name>\S.*)\n-{3,}\s*$", re.MULTILINE)


def parameter_docs(doc: str) -> dict[str, str]:
    r"""Read the descriptions of parameters from a numpy docstring.

    Examples
    --------
    >>> parameter_docs("Do.\n\nParameters\n----------\na, b : int\n    Both\n    of them.")
    {'a': 'Both of them.', 'b': 'Both of them.'}
    """
    from inspect import cleandoc

    text = cleandoc(doc)
    sections = list(_SECTION.finditer(text))
    found: dict[str, str] = {}
    for at, section in enumerate(sections):
        if section["name"].strip() not in ("Parameters", "Other Parameters"):
            continue
        end = sections[at + 1].start() if at + 1 < len(sections) else len(text)
        names: list[str] = []
        for line in text[section.end() : end].splitlines():
            if line and not line[0].isspace():
                heads = line.partition(":")[0].split(",")
                names = [head.strip().lstrip("*") for head in heads]
            elif line.strip():
                for name in names:
                    found[name] = f"{found[name]} {line.strip()}" if name in found else line.strip()
    return found
