"""Tools made of functions: the signature is the schema, the docstring says what they do.

Tools layer. Apart from `runbook_nb.tools.tool`, since a procedure is a tool that is no function:
it has no signature to read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from inspect import getdoc, signature
from typing import Any

from runbook_nb._text import MISSING
from runbook_nb._value import frozen
from runbook_nb.errors import DefinitionError, RunCancelled, ToolRefused
from runbook_nb.tools.context import ToolContext
from runbook_nb.tools.declarations import checked_name, refuse_tool
from runbook_nb.tools.schema import Signature, read_signature, summary_of
from runbook_nb.tools.tool import Tool, define_tool


@frozen
class FunctionBody:
    """Runs a function with named arguments in place of one mapping."""

    name: str
    function: Callable[..., Any]
    signature: Signature

    def __call__(self, args: Mapping[str, Any], ctx: ToolContext) -> Any | Awaitable[Any]:
        """Run it; refuse what it cannot take."""
        if ctx.signal is not None and ctx.signal.is_set():
            reason = f": {ctx.signal.reason}" if ctx.signal.reason else ""
            raise RunCancelled(f"tool {self.name!r} was not started{reason}", where=self.name)
        positional, named = self.signature.bind(args, ctx, tool=self.name)
        try:
            signature(self.function).bind(*positional, **named)
        except TypeError as error:  # only the raw door comes here with arguments nobody judged
            raise ToolRefused(
                f"tool {self.name!r} cannot take these arguments: {error}",
                code="invalid_arguments",
                where=self.name,
                facts={"tool": self.name},
            ) from None
        return self.function(*positional, **named)


def tool_of(
    function: Callable[..., Any], declared: Mapping[str, Any], names: Mapping[str, Any]
) -> Tool:
    """Make a tool of a function; see `runbook_nb.tools.tool.tool`.

    Parameters
    ----------
    function : callable
        Plain or async.
    declared : mapping
        What is said of the tool beside its function.
    names : mapping
        The names where the function was defined, which its annotations may use.

    Examples
    --------
    >>> def stale(days: int = 7) -> list:
    ...     "Backups older than some days."
    ...     return [f"older than {days}"]
    >>> tool_of(stale, {"owner": None}, {}).description
    'Backups older than some days.'
    """
    if isinstance(function, Tool):
        refuse_tool(function.name, "function", "is a tool already", "give the plain function")
    if isinstance(function, type) or not callable(function):
        raise DefinitionError(
            f"@tool cannot make a tool of {function!r}",
            code="bad_tool",
            fix="decorate a function; give the name by keyword: @tool(name=...)",
        )
    name = declared.get("name", getattr(function, "__name__", MISSING))
    if name is MISSING:
        refuse_tool("?", "name", "this callable has none of its own", "give name=")
    checked_name(name)
    wants = declared.get("wants")
    refs = wants if isinstance(wants, Mapping) else {}
    parts = {"description": summary_of(getdoc(function) or ""), **declared, "name": name}
    if "execute" in parts:
        refuse_tool(name, "execute", "is the decorated function itself", "leave it out")
    read = read_signature(function, tool=name, refs=refs, names=names)
    parts.setdefault("input_schema", read.schema)
    body = FunctionBody(name=name, function=function, signature=read)
    return define_tool(execute=body, **parts)
