"""A chart as an OpenAPI document: one path that runs it, what it takes, what it gives.

Chart layer. The document is plain JSON, the same for the same chart, and valid OpenAPI 3.1. The
definitions inside a schema become components, because a reference in an OpenAPI document is read
from the top of the document and not from the top of the schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._arguments import validate_arguments
from runbook_nb._text import visible
from runbook_nb.chart.contract import FALLBACK_NAME, json_schema_of, tool_name_of
from runbook_nb.chart.describe import describe_structure
from runbook_nb.errors import DefinitionError

if TYPE_CHECKING:
    from runbook_nb.chart.model import Chart

#: The version of OpenAPI that is written.
VERSION: Final = "3.1.0"

_JSON: Final = "application/json"
_ERROR: Final = "RunError"

_ONE_SCHEMA: Final = frozenset(
    {"items", "additionalProperties", "propertyNames", "not", "if", "then", "else", "contains"}
    | {"unevaluatedItems", "unevaluatedProperties", "contentSchema"}
)
_SCHEMA_LISTS: Final = frozenset({"prefixItems", "anyOf", "oneOf", "allOf"})
_DEFINITIONS: Final = ("$defs", "definitions")
_SCHEMA_MAPS: Final = frozenset(
    {"properties", "patternProperties", "dependentSchemas", *_DEFINITIONS}
)

#: What a path may be: it starts at the root, and has no part that a caller would fill in.
_PATH: Final = re.compile(r"/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*")
_NOT_IN_SLUGS: Final = re.compile(r"[^a-z0-9]+")
_NOT_IN_COMPONENTS: Final = re.compile(r"[^A-Za-z0-9._-]")

# Marks that CommonMark, which descriptions are written in, would read as more than text: wherever
# they stand, at the start of a line, and what is made a link of.
_MARKS: Final = re.compile(r"[\\`*_\[\]<>|~$]|&(?=[#\w])|:(?=//)|(?<=www)\.")
_START: Final = re.compile(r"^(\d*)([#+=.)-])")


def openapi(
    chart: Chart,
    *,
    title: str | None = None,
    version: str = "1.0.0",
    description: str | None = None,
    path: str | None = None,
) -> dict[str, Any]:
    """Give the OpenAPI 3.1 document of a chart.

    Parameters
    ----------
    chart : Chart
        The chart; its ``input_schema`` is the request, its ``output_schema`` the answer.
    title : str, optional
        By default the chart's name.
    version : str
        The version of what is described.
    description : str, optional
        What it is for; by default the chart's own description. It is text, not Markdown.
    path : str, optional
        By default made of the id of the first stage.

    Raises
    ------
    DefinitionError
        The path does not begin with a slash, or has a part to be filled in; another option is no
        text.
    ChartError
        A model of the contract has no JSON Schema.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> chart = flow_chart("Backups", print, id="read backups",
    ...     input_schema={"type": "object", "properties": {"days": {"type": "integer"}}}).build()
    >>> document = openapi(chart)
    >>> list(document["paths"]), list(document["paths"]["/read-backups"]["post"]["responses"])
    (['/read-backups'], ['200', '400', '500'])
    """
    options: dict[str, Any] = {
        "title": title,
        "version": version,
        "description": description,
        "path": path,
    }
    for name, value in options.items():
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise DefinitionError(
                f"openapi({name}={value!r}) is no text", where=name, code="bad_openapi"
            )
    if path is not None and not _PATH.fullmatch(path):
        raise DefinitionError(
            f"openapi(path={path!r}) is no path of a server",
            where="path",
            code="bad_openapi",
            fix='begin it with a slash, and keep to letters, digits and dashes: "/backups"',
        )
    place = path if path is not None else f"/{_slug(chart.stages[0].id)}"
    about = description if description is not None else chart.description
    document = _Document(place)
    return {
        "openapi": VERSION,
        "info": {
            "title": _on_one_line(title if title is not None else chart.name),
            "version": _on_one_line(version),
            "description": as_commonmark(about if about is not None else chart.name),
        },
        "paths": {place: {"post": document.operation(chart)}},
        "components": {"schemas": document.components},
    }


def as_commonmark(text: str) -> str:
    r"""Write a text so that CommonMark shows it as it is.

    Examples
    --------
    >>> print(as_commonmark("1) see [this](javascript:x) <b>"))
    1\) see \[this\](javascript:x) \<b\>
    """
    escaped = _MARKS.sub(lambda found: f"\\{found[0]}", _on_one_line(text))
    return _START.sub(r"\1\\\2", escaped)


def _on_one_line(text: str) -> str:
    return visible(" ".join(text.split()))


def _slug(text: str) -> str:
    return _NOT_IN_SLUGS.sub("-", text.lower()).strip("-") or FALLBACK_NAME


class _Document:
    """One document while it is written: its path, and the schemas it shares."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.components: dict[str, Any] = {_ERROR: _error_schema()}

    def operation(self, chart: Chart) -> dict[str, Any]:
        """Write the one operation: run the chart."""
        post: dict[str, Any] = {
            "operationId": tool_name_of(chart),
            "summary": _on_one_line(chart.name),
            "description": describe_structure(
                chart.structure, chart.description, say=as_commonmark
            ),
        }
        taken = json_schema_of(chart.input_schema, "validation")
        if chart.input_schema is not None:
            body = self._placed(taken or {"type": "object"}, "requestBody")
            post["requestBody"] = {"content": {_JSON: {"schema": body}}}
            if taken is not None and validate_arguments(taken, {}):
                post["requestBody"]["required"] = True
        given: dict[str, Any] = {"description": "The chart ran to its end."}
        answer = json_schema_of(chart.output_schema, "serialization")
        if answer is not None:
            placed = self._placed(answer, "responses", "200")
            given["content"] = {_JSON: {"schema": placed}}
        responses = {"200": given}
        if chart.input_schema is not None:
            responses["400"] = _failure("The input does not fit; nothing has run.")
        responses["500"] = _failure("The run did not come to its end.")
        post["responses"] = responses
        return post

    def _placed(self, schema: dict[str, Any], *where: str) -> dict[str, Any]:
        """Give a schema as it reads at its place in the document."""
        steps = ("paths", self._path, "post", *where, "content", _JSON, "schema")
        top = "#/" + "/".join(map(_pointer_step, steps))
        names: dict[tuple[str, str], str] = {}
        for word in _DEFINITIONS:
            for name in _mapping(schema.get(word)):
                names[word, name] = self._free(name)
                self.components[names[word, name]] = {}

        def moved(ref: Any) -> Any:
            if not isinstance(ref, str) or not ref.startswith("#"):
                return ref
            word, name, rest = _split(ref)
            if (word, name) in names:
                return f"#/components/schemas/{names[word, name]}{rest}"
            return top + ref.removeprefix("#")

        for (word, name), free in names.items():
            self.components[free] = _rewritten(schema[word][name], moved)
        own = {word: value for word, value in schema.items() if word not in _DEFINITIONS}
        placed: dict[str, Any] = _rewritten(own, moved)
        return placed

    def _free(self, name: str) -> str:
        wanted = _NOT_IN_COMPONENTS.sub("_", name) or "_"
        free, n = wanted, 2
        while free in self.components:
            free, n = f"{wanted}_{n}", n + 1
        return free


def _rewritten(schema: Any, moved: Callable[[Any], Any]) -> Any:
    """Give a schema with its references moved; what is data in it (an example, say) stays."""
    if not isinstance(schema, Mapping):
        return schema
    out: dict[str, Any] = {}
    for word, value in schema.items():
        if word in ("$id", "$schema"):
            continue  # either would say that references are read from somewhere else
        if word in ("$ref", "$dynamicRef"):
            out[word] = moved(value)
        elif word == "discriminator":
            out[word] = _discriminator(value, moved)
        elif word in _ONE_SCHEMA:
            out[word] = _rewritten(value, moved)
        elif word in _SCHEMA_LISTS and isinstance(value, list):
            out[word] = [_rewritten(one, moved) for one in value]
        elif word in _SCHEMA_MAPS and isinstance(value, Mapping):
            out[word] = {name: _rewritten(one, moved) for name, one in value.items()}
        else:
            out[word] = value
    return out


def _discriminator(value: Any, moved: Callable[[Any], Any]) -> Any:
    if not isinstance(value, Mapping) or not isinstance(value.get("mapping"), Mapping):
        return value
    return {**value, "mapping": {word: moved(ref) for word, ref in value["mapping"].items()}}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _pointer_step(name: str) -> str:
    from urllib.parse import quote  # only here; it would be loaded by every import otherwise

    return quote(name.replace("~", "~0").replace("/", "~1"), safe="~!$&'()*+,;=:@")


def _split(ref: str) -> tuple[str, str, str]:
    """Split a reference into the word it begins with, the name under it, and the rest."""
    _, _, path = ref.partition("/")
    word, _, rest = path.partition("/")
    name, slash, rest = rest.partition("/")
    return word, name.replace("~1", "/").replace("~0", "~"), slash + rest


def _failure(description: str) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{_ERROR}"}
    return {"description": description, "content": {_JSON: {"schema": schema}}}


def _error_schema() -> dict[str, Any]:
    text = {"type": "string"}
    problem = {
        "type": "object",
        "properties": {"message": text, "where": text, "fix": text},
        "required": ["message"],
    }
    return {
        "type": "object",
        "description": "What went wrong; code does not change from version to version.",
        "properties": {
            "code": text,
            "message": text,
            "problems": {"type": "array", "items": problem},
        },
        "required": ["code", "message"],
    }
