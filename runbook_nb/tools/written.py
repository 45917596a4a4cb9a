"""Arguments as people write them on a line: ``name=value``, the value read as the tool declares it.

Tools layer. Nothing written is evaluated: a value is a text or JSON, and the schema says which.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from runbook_nb._arguments import validate_arguments
from runbook_nb._text import show
from runbook_nb.errors import DefinitionError
from runbook_nb.tools.tool import Tool


def split_argument(written: str) -> tuple[str, str]:
    """Take ``name=value`` apart.

    Raises
    ------
    DefinitionError
        It is not written like that.

    Examples
    --------
    >>> split_argument("filter=a=b")
    ('filter', 'a=b')
    """
    name, equals, text = written.partition("=")
    if not equals or not name:
        raise DefinitionError(
            f"{show(written)} is no argument", where="arg", fix="write it as name=value"
        )
    return name, text


def read_value(tool: Tool, name: str, text: str) -> Any:
    """Read the text of an argument as the tool declares that argument.

    What reads as JSON and fits the declaration is that value; anything else is the text itself, to
    be refused with the others where it does not fit.

    Parameters
    ----------
    tool : Tool
    name : str
        The argument's name.
    text : str
        What was written for it.

    Examples
    --------
    >>> from runbook_nb.tools import define_tool
    >>> declared = {"days": {"type": "integer"}, "host": {"type": "string"}}
    >>> schema = {"type": "object", "properties": declared}
    >>> tool = define_tool(name="ages", execute=lambda args: [], input_schema=schema)
    >>> read_value(tool, "days", "7"), read_value(tool, "host", "7")
    (7, '7')
    """
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text
    schema = tool.input_schema
    told = {**schema, "required": (), "properties": _only(schema, name)}
    return text if validate_arguments(told, {name: value}) else value


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"JSON has no {name}")


def _only(schema: Mapping[str, Any], name: str) -> dict[str, Any]:
    known = schema.get("properties", {})
    return {name: known[name]} if name in known else {}
