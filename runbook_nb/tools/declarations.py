"""Judges what a tool declares about itself, field by field.

Tools layer. Each function refuses one field's faults by name and gives the field's final form;
the order they are called in is the tool's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from runbook_nb._arguments import schema_problems
from runbook_nb._frozen import freeze
from runbook_nb._text import MISSING, did_you_mean, listed
from runbook_nb.errors import DefinitionError

TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
RESULT_CLASSES: Final = ("triage", "inventory")
#: The schema of a tool that was given none: an object, of which nothing is said.
EMPTY_SCHEMA: Final[dict[str, Any]] = {"type": "object", "properties": {}}

_CEILING: Final = {
    "max_chars": "max_chars",
    "maxChars": "max_chars",
    "narrow_by": "narrow_by",
    "narrowBy": "narrow_by",
}
_OWNER: Final = {"kind": "kind", "id": "id"}
_NEEDS: Final = {"credential": "credential", "scopes": "scopes", "mode": "mode"}


def assert_composed_of(tool: str, composed_of: Any) -> None:
    """Refuse a ``composed_of`` that is not a list of other tools' names; None passes.

    Whether the ingredients exist is not judged here; a toolbox does when it is built.

    Parameters
    ----------
    tool : str
        The name of the tool that declares it.
    composed_of : object
        What was declared.

    Raises
    ------
    DefinitionError

    Examples
    --------
    >>> assert_composed_of("triage", ["inventory"])
    """
    _assert_names(tool, "composed_of", composed_of, "a tool cannot be its own ingredient")


def assert_arguments_from(tool: str, arguments_from: Any) -> None:
    """Refuse an ``arguments_from`` that is not a list of other tools' names; None passes."""
    _assert_names(tool, "arguments_from", arguments_from, "a tool cannot feed itself")


def assert_gates(tool: str, gates: Any) -> None:
    """Refuse a ``gates`` that is not exactly True, False or None.

    False is a declaration ("this never pauses"), None is silence.

    Examples
    --------
    >>> assert_gates("triage", False)
    """
    if gates is not None and type(gates) is not bool:
        refuse_tool(
            tool, "gates", f"must be True or False, not {gates!r}", "leave it out to say nothing"
        )


#: Key under which a declaration travels with a served tool -> its field, and its assert.
_SERVED: Final = {
    "composedOf": ("composed_of", assert_composed_of),
    "gates": ("gates", assert_gates),
}


def served_declarations(tool: Any) -> dict[str, Any]:
    """Give what a tool declares about other tools, under the keys it is served with.

    Examples
    --------
    >>> from runbook_nb.tools.tool import define_tool
    >>> triage = define_tool(name="triage", execute=print, composed_of=["inventory"], gates=False)
    >>> served_declarations(triage)
    {'composedOf': ['inventory'], 'gates': False}
    """
    declared = {key: getattr(tool, name) for key, (name, _) in _SERVED.items()}
    return {key: value for key, value in declared.items() if value is not None}


def read_served_declarations(
    tool: str, served: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Judge the declarations a tool from elsewhere was served with.

    They are held to the same rules as our own; a bad one is dropped and the tool kept.

    Parameters
    ----------
    tool : str
        The served tool's name.
    served : mapping
        Its metadata; other keys are not read.

    Returns
    -------
    tuple of dict
        The fields that hold, for `define_tool`; and why each of the others was dropped.

    Examples
    --------
    >>> read_served_declarations("triage", {"composedOf": ["inventory"], "gates": "no"})[0]
    {'composed_of': ['inventory']}
    """
    kept: dict[str, Any] = {}
    dropped: dict[str, str] = {}
    for key, (name, judge) in _SERVED.items():
        if served.get(key) is None:
            continue
        try:
            judge(tool, served[key])
        except DefinitionError as error:
            dropped[key] = str(error)
        else:
            kept[name] = served[key]
    return kept, dropped


def _assert_names(tool: str, where: str, given: Any, own: str) -> None:
    if given is None:
        return
    if not isinstance(given, list | tuple):
        refuse_tool(
            tool, where, f"must be a list of tool names, not {given!r}", "put the names in a list"
        )
    if not given:
        refuse_tool(tool, where, "is an empty list", "leave it out when there is nothing to name")
    for name in given:
        if not isinstance(name, str) or not name.strip():
            refuse_tool(tool, where, f"holds {name!r}, which is not a tool's name")
        if name == tool:
            refuse_tool(tool, where, f"names the tool itself; {own}")


def checked_name(name: Any) -> str:
    """Refuse a name that providers of models would refuse."""
    rule = "a tool's name is 1 to 64 letters (A-Z, a-z), digits, '_' or '-'"
    if isinstance(name, str) and TOOL_NAME.fullmatch(name):
        return name
    shown = repr(name) if len(repr(name)) <= 100 else f"{repr(name)[:99]}…"
    message = f"a tool cannot be named {shown}; {rule}"
    if isinstance(name, str) and len(name) > 64:
        message += f", and this has {len(name)} characters"
    usable = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:64] if isinstance(name, str) else ""
    fix = f"for example {usable!r}" if usable else "give one with name="
    raise DefinitionError(message, code="bad_tool_name", where="name", fix=fix)


def checked_schema(name: str, schema: Any) -> Any:
    """Give the frozen input schema; a pydantic model class gives its own."""
    if schema is MISSING or schema is None:
        return freeze(EMPTY_SCHEMA)
    if isinstance(schema, type) and hasattr(schema, "model_json_schema"):
        schema = schema.model_json_schema()  # a pydantic model
    problems = schema_problems(schema)
    if problems:
        raise DefinitionError(
            f"tool {name!r}: input_schema cannot be used",
            code="bad_tool",
            where="input_schema",
            problems=problems,
        )
    return freeze(schema, "input_schema")


def checked_ceiling(name: str, given: Any) -> Any:
    """Give the ceiling under our spelling."""
    if given is None:
        return None
    where = "result_ceiling"
    ceiling = _mapping(name, where, given, _CEILING)
    most = ceiling.get("max_chars", MISSING)
    if type(most) is not int or most < 1:
        shown = "is missing" if most is MISSING else f"cannot be {most!r}"
        refuse_tool(name, f"{where}.max_chars", shown, "give a whole number from 1")
    if "narrow_by" in ceiling:
        narrow = ceiling["narrow_by"]
        good = isinstance(narrow, list | tuple) and narrow
        if not good or any(not isinstance(one, str) or not one.strip() for one in narrow):
            fix = "list the arguments that make the answer smaller, or leave it out"
            refuse_tool(name, f"{where}.narrow_by", f"cannot be {narrow!r}", fix)
        ceiling["narrow_by"] = list(narrow)
    return freeze(ceiling)


def check_result_class(name: str, given: Any) -> None:
    """Refuse an unknown result class."""
    if given is None or (isinstance(given, str) and given in RESULT_CLASSES):
        return
    near = did_you_mean(given, RESULT_CLASSES) if isinstance(given, str) else None
    fix = near or f"use {listed(map(repr, RESULT_CLASSES), 'or')}, or leave it out"
    refuse_tool(name, "result_class", f"cannot be {given!r}", fix)


def check_check_in(name: str, given: Any) -> None:
    """Refuse a check-in that is neither ``'always'`` nor callable."""
    if given is None or callable(given) or given == "always":
        return
    fix = "use 'always' or a callable (args, ctx) that says when, or leave it out"
    refuse_tool(name, "check_in", f"cannot be {given!r}", fix)


def checked_owner(name: str, given: Any) -> Any:
    """Give the owner; both of its keys are needed."""
    if given is None:
        return None
    owner = _mapping(name, "owner", given, _OWNER)
    for key in _OWNER:
        check_text(name, f"owner.{key}", owner.get(key))
    return freeze(owner)


def checked_needs(name: str, given: Any) -> Any:
    """Give the need for a credential."""
    if given is None:
        return None
    needs = _mapping(name, "needs", given, _NEEDS)
    check_text(name, "needs.credential", needs.get("credential"))
    if "mode" in needs:
        check_text(name, "needs.mode", needs["mode"])
    if "scopes" in needs:
        scopes = needs["scopes"]
        if not isinstance(scopes, list | tuple) or any(not isinstance(s, str) for s in scopes):
            refuse_tool(name, "needs.scopes", f"must be a list of texts, not {scopes!r}")
        needs["scopes"] = list(scopes)
    return freeze(needs)


def checked_wants(name: str, given: Any, schema: Mapping[str, Any]) -> Any:
    """Give the wanted artifacts; each must be an argument that takes a reference."""
    if given is None:
        return None
    if not isinstance(given, Mapping) or not given:
        fix = "map argument names to artifact kinds, or leave it out"
        refuse_tool(name, "wants", f"cannot be {given!r}", fix)
    properties = schema.get("properties")
    for argument, kind in given.items():
        check_text(name, "wants", argument)
        check_text(name, f"wants.{argument}", kind, "give the artifact kind it takes")
        if properties is None:
            continue
        if argument not in properties:
            near = did_you_mean(argument, properties)
            fix = near or "declare it as a string in input_schema: it arrives as a reference"
            refuse_tool(
                name, f"wants.{argument}", f"{argument!r} is no argument of the schema", fix
            )
        declared = properties[argument]
        typed = declared.get("type") if isinstance(declared, Mapping) else None
        if typed not in (None, "string"):
            fix = 'type it "string": it arrives as a reference'
            refuse_tool(name, f"wants.{argument}", f"{argument!r} is typed {typed!r}", fix)
    return freeze(dict(given))


def _mapping(name: str, where: str, given: Any, known: Mapping[str, str]) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        keys = listed(dict.fromkeys(known.values()))
        refuse_tool(name, where, f"must be a mapping, not {given!r}", f"its keys are {keys}")
    return known_keys(given, known, where, tool=name)


def check_text(name: str, where: str, given: Any, fix: str | None = None) -> None:
    """Refuse what is no text, or blank."""
    if not isinstance(given, str) or not given.strip():
        refuse_tool(name, where, f"cannot be {given!r}", fix or "give a text that is not blank")


def refuse_tool(name: str, where: str, what: str, fix: str | None = None) -> NoReturn:
    """Raise the error that names tool and field."""
    raise DefinitionError(f"tool {name!r}: {where} {what}", code="bad_tool", where=where, fix=fix)


def known_keys(
    given: Mapping[str, Any], known: Mapping[str, str], where: str, *, tool: str
) -> dict[str, Any]:
    """Give a mapping's values under our spelling of its keys; refuse a key nobody knows.

    Parameters
    ----------
    given : mapping
        What an author wrote.
    known : mapping
        Every accepted spelling, with ours.
    where, tool : str
        The option and the tool, for the message.

    Raises
    ------
    DefinitionError
        An unknown key, or two spellings of one key.

    Examples
    --------
    >>> spellings = {"max_chars": "max_chars", "maxChars": "max_chars"}
    >>> known_keys({"maxChars": 5}, spellings, "result_ceiling", tool="t")
    {'max_chars': 5}
    """
    found: dict[str, Any] = {}
    names = list(dict.fromkeys(known.values()))
    for key, value in given.items():
        ours = known.get(str(key))
        if ours is None:
            fix = did_you_mean(str(key), names) or f"its keys are {', '.join(names)}"
            refuse_tool(tool, where, f"has no key {key!r}", fix)
        if ours in found:
            refuse_tool(tool, where, f"says {ours} twice, in two spellings", "keep one")
        found[ours] = value
    return found
