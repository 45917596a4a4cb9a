"""A tool: something a model, a procedure or a person calls by name with JSON arguments.

Tools layer. Every declaration is judged when the tool is made, in a fixed order, so that nothing
about a tool can first fail in the middle of a call. What a tool declares about other tools
(``composed_of``, ``arguments_from``, ``gates``) never changes how it runs; the toolbox judges it
against its catalogue.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from types import FunctionType
from typing import Any, Final, overload

from runbook_nb._arguments import unchecked_keywords
from runbook_nb._display import Renderable
from runbook_nb._frozen import FrozenDict, freeze
from runbook_nb._sync import asks_for_loop, is_awaitable, loop_for, run_sync
from runbook_nb._text import MISSING, did_you_mean, listed
from runbook_nb._value import frozen
from runbook_nb._view import Card, Data, Fact, Facts, Prose, Section
from runbook_nb.errors import ToolRefused
from runbook_nb.tools.context import ToolContext
from runbook_nb.tools.declarations import (
    assert_arguments_from,
    assert_composed_of,
    assert_gates,
    check_check_in,
    check_result_class,
    check_text,
    checked_ceiling,
    checked_name,
    checked_needs,
    checked_owner,
    checked_schema,
    checked_wants,
    refuse_tool,
)

#: Takes the arguments and, if it has a second parameter, the context.
Body = Callable[..., Any]


@frozen
class ToolSchema:
    """What a model is told of a tool."""

    name: str
    description: str
    input_schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True, eq=False, repr=False)
class Tool(Renderable):
    """A named, described callable with declared input, output and needs.

    Made by `tool` or `define_tool`. A tool made from a function can still be called as that
    function.

    Attributes
    ----------
    name : str
        Letters, digits, ``_`` and ``-``, at most 64; what providers of models accept.
    description : str
        By what a model picks it.
    input_schema : mapping
        JSON Schema of the arguments, an object at the top.
    body : callable
        What runs: ``body(args, ctx)``.
    blocking : bool
        Run a plain ``def`` body in a thread, so that a slow one does not hold the event loop.
    result_kind : str or None
        What kind of answer it gives; also the artifact kind it is filed under when it is too
        large to be read whole.
    result_class : {"triage", "inventory"} or None
        The shape of its answer, for adapters.
    result_ceiling : mapping or None
        ``max_chars``, and ``narrow_by``: which arguments make the answer smaller. Adapters that
        write answers as text keep it.
    owner : mapping or None
        ``kind`` and ``id`` of who answers for the tool.
    wants : mapping or None
        Arguments that arrive as artifact references, with the wanted kind.
    needs : mapping or None
        ``credential``, with ``scopes`` and ``mode`` if any, to be issued before the body runs.
    check_in : "always" or callable or None
        When a person must agree first; a callable judges ``(args, ctx)``.
    arguments_from : list of str or None
        Tools whose answers this one's arguments come from.
    composed_of : list of str or None
        Tools this one calls.
    gates : bool or None
        Whether it may pause for an answer; None says nothing.
    resume : callable or None
        ``resume(checkpoint, answer, ctx)``: goes on with a paused call.
    carried : mapping
        What the maker of the tool keeps with it; not read here.

    Examples
    --------
    >>> echo = define_tool(name="echo", description="Says it back.", execute=lambda args: args)
    >>> echo.execute_sync({"a": 1})
    {'a': 1}
    """

    name: str
    body: Body
    description: str = ""
    input_schema: Any = MISSING
    blocking: bool = False
    result_kind: str | None = None
    result_class: str | None = None
    result_ceiling: Mapping[str, Any] | None = None
    owner: Mapping[str, str] | None = None
    wants: Mapping[str, str] | None = None
    needs: Mapping[str, Any] | None = None
    check_in: Any = None
    arguments_from: list[str] | None = None
    composed_of: list[str] | None = None
    gates: bool | None = None
    resume: Callable[..., Any] | None = None
    carried: Mapping[str, Any] = field(default_factory=FrozenDict)

    def __post_init__(self) -> None:
        # The order is part of the contract: a declaration with several faults always names the
        # same one first.
        name = checked_name(self.name)
        if not isinstance(self.description, str):
            refuse_tool(name, "description", f"must be text, not {self.description!r}")
        if not callable(self.body):
            refuse_tool(name, "execute", f"must be callable, not {self.body!r}")
        if type(self.blocking) is not bool:
            refuse_tool(name, "blocking", f"must be True or False, not {self.blocking!r}")
        self._set("input_schema", checked_schema(name, self.input_schema))
        self._set("result_ceiling", checked_ceiling(name, self.result_ceiling))
        check_result_class(name, self.result_class)
        if self.result_kind is not None:
            check_text(name, "result_kind", self.result_kind, "leave it out for the default kind")
        check_check_in(name, self.check_in)
        self._set("wants", checked_wants(name, self.wants, self.input_schema))
        self._set("needs", checked_needs(name, self.needs))
        self._set("owner", checked_owner(name, self.owner))
        assert_arguments_from(name, self.arguments_from)
        self._set("arguments_from", freeze(_as_list(self.arguments_from)))
        assert_composed_of(name, self.composed_of)
        self._set("composed_of", freeze(_as_list(self.composed_of)))
        assert_gates(name, self.gates)
        if self.resume is not None and not callable(self.resume):
            refuse_tool(name, "resume", f"must be callable, not {self.resume!r}")

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property
    def schema(self) -> ToolSchema:
        """What a model is told: name, description, input schema."""
        return ToolSchema(
            name=self.name, description=self.description, input_schema=self.input_schema
        )

    @property
    def placed_kind(self) -> str:
        """The artifact kind a large answer of this tool is filed under."""
        return self.result_kind or f"tool-result/{self.name}"

    @property
    def unchecked(self) -> list[str]:
        """Keywords of the input schema that are not checked before the body runs."""
        return unchecked_keywords(self.input_schema)

    @property
    def function(self) -> Callable[..., Any]:
        """The function the tool was made from."""
        from runbook_nb.tools.functions import FunctionBody

        return self.body.function if isinstance(self.body, FunctionBody) else self.body

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function the tool was made from, as if it had not been made a tool."""
        return self.function(*args, **kwargs)

    @asks_for_loop
    async def execute(
        self, args: Mapping[str, Any] | None = None, ctx: ToolContext | None = None
    ) -> Any:
        """Run the body: the raw door, behind every check a toolbox makes.

        Parameters
        ----------
        args : mapping, optional
            The arguments, by name.
        ctx : ToolContext, optional
            The surroundings; without one there is no store and no other tool.

        Returns
        -------
        object
            Whatever the body returned.
        """
        given = as_arguments(args, self.name)
        context = ToolContext() if ctx is None else ctx
        if self.blocking:
            # Not the loop's own pool: it is waited for, and a body that hangs would hold up the end
            # of a run that has reached its limit.
            from runbook_nb.chart.threads import in_thread

            return await in_thread(self.body, given, context)
        result = self.body(given, context)
        if not is_awaitable(result):
            return result
        await loop_for(result)
        return await result

    def execute_sync(
        self, args: Mapping[str, Any] | None = None, ctx: ToolContext | None = None
    ) -> Any:
        """Run the body and wait, also inside a running event loop; see `execute`."""
        return run_sync(lambda: self.execute(args, ctx))

    def view(self) -> Card:
        """Show what the tool declares."""
        facts = tuple(
            Fact(term=term, detail=detail) for term, detail in _facts(self) if detail is not None
        )
        parts = (Facts(label="Declares", items=facts, total=len(facts)),) if facts else ()
        sections = [Section(label="", parts=(_arguments_part(self), *parts))]
        unchecked = self.unchecked
        remarks = (f"not checked of its schema: {listed(unchecked)}",) if unchecked else ()
        return Card(
            kind="Tool",
            name=self.name,
            headline=self.description or "no description",
            sections=tuple(sections),
            remarks=remarks,
        )


_FIELDS: Final = tuple("execute" if f.name == "body" else f.name for f in fields(Tool))


def define_tool(**declared: Any) -> Tool:
    """Make a tool from its declared parts.

    Parameters
    ----------
    **declared
        The attributes of `Tool`; ``execute`` is the body, a plain or async callable of
        ``(args, ctx)``, or of ``(args)`` alone.

    Returns
    -------
    Tool

    Raises
    ------
    DefinitionError
        A declaration that cannot be kept; the message names the tool and the field.

    Examples
    --------
    >>> ages = define_tool(
    ...     name="ages", description="Backup ages.", execute=lambda args, ctx: {"rows": []},
    ...     result_ceiling={"maxChars": 50_000},
    ... )
    >>> ages.result_ceiling
    {'max_chars': 50000}
    """
    name = declared.get("name", MISSING)
    label = name if isinstance(name, str) else "?"
    for key in declared:
        if key not in _FIELDS:
            fix = did_you_mean(key, _FIELDS) or f"those are {listed(_FIELDS)}"
            refuse_tool(label, key, "is not a field of a tool", fix)
    if name is MISSING:
        refuse_tool(label, "name", "is required")
    checked_name(name)
    if "execute" not in declared:
        refuse_tool(label, "execute", "is required", "give the callable that does the work")
    parts = dict(declared)
    execute = parts.pop("execute")
    return Tool(body=_with_context(execute) if callable(execute) else execute, **parts)


def _is_plain(function: Any) -> bool:
    """Say whether its code alone tells what a function takes; inspect is dear to import."""
    return (
        isinstance(function, FunctionType) and function.__defaults__ is None and not vars(function)
    )


def _with_context(execute: Callable[..., Any]) -> Body:
    """Let a body leave out the context parameter, or both."""
    if _is_plain(execute) and execute.__code__.co_argcount == len(("args", "ctx")):
        return execute
    from inspect import signature

    try:
        parameters = signature(execute).parameters.values()
    except (TypeError, ValueError):  # written in C, without a signature
        return execute
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return execute
    plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    # `lambda args, n=n: …` keeps a value, it does not ask for a context.
    asks = plain[1:2] and (
        plain[1].default is plain[1].empty or plain[1].name in ("ctx", "context")
    )
    if asks:
        return execute
    return lambda args, ctx: execute(*(args,)[: len(plain)])


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(**declared: Any) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None, /, **declared: Any
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool from a function; use it bare or with arguments.

    The name is the function's and the description the first paragraph of its docstring, unless
    given. The input schema is read from the signature, descriptions of parameters from a numpy
    docstring. A parameter annotated `ToolContext` receives the context. Arguments named in
    ``wants`` are annotated with what the body receives: the artifact's data.

    Parameters
    ----------
    function : callable
        Plain or async.
    **declared
        Any attribute of `Tool`.

    Returns
    -------
    Tool
        Still callable as the function.

    Raises
    ------
    DefinitionError
        A name a model's provider would refuse, a signature without a schema, or any other
        declaration that cannot be kept.

    Examples
    --------
    >>> @tool
    ... def stale(days: int = 7) -> list:
    ...     "Backups older than some days."
    ...     return [f"older than {days}"]
    >>> stale.description, stale.execute_sync({"days": 3}), stale(2)
    ('Backups older than some days.', ['older than 3'], ['older than 2'])
    """
    names = sys._getframe(1).f_locals

    def make(function: Callable[..., Any]) -> Tool:
        from runbook_nb.tools.functions import tool_of

        return tool_of(function, declared, names)

    return make if function is None else make(function)


def as_arguments(args: Any, tool: str) -> dict[str, Any]:
    """Give the arguments of a call as a dict of its own; refuse what is no mapping.

    Examples
    --------
    >>> as_arguments(None, "ages")
    {}
    """
    if args is None:
        return {}
    if isinstance(args, Mapping):
        return dict(args)
    raise ToolRefused(
        f"the arguments of {tool!r} are a {type(args).__name__}",
        code="invalid_arguments",
        where=tool,
        fix="give a mapping of names to values",
        facts={"tool": tool},
    )


def _as_list(given: Any) -> list[Any] | None:
    return None if given is None else list(given)


def _facts(one: Tool) -> list[tuple[str, Any]]:
    listing: list[tuple[str, list[str] | None]] = [
        ("composed of", one.composed_of),
        ("arguments from", one.arguments_from),
    ]
    found: list[tuple[str, Any]] = [
        ("result kind", one.result_kind and Data(value=one.result_kind)),
        ("result class", one.result_class),
        *((term, names and Data(value=listed(names))) for term, names in listing),
    ]
    if one.wants:
        said = listed(f"{argument}: {kind}" for argument, kind in one.wants.items())
        found.append(("wants artifacts", Data(value=said)))
    if one.needs:
        found.append(("needs a credential", Data(value=one.needs["credential"])))
    if one.check_in is not None:
        found.append(("asks a person", "always" if one.check_in == "always" else "when it applies"))
    if one.gates is not None:
        found.append(("may pause", "yes" if one.gates else "no"))
    if one.owner:
        found.append(("owner", Data(value=f"{one.owner['kind']} {one.owner['id']}")))
    return found


def _arguments_part(one: Tool) -> Facts | Prose:
    properties: Mapping[str, Any] = one.input_schema.get("properties", {})
    if not properties:
        return Prose(text="takes no declared arguments", tone="dim")
    required = one.input_schema.get("required", ())
    items = tuple(
        Fact(
            term=Data(value=name),
            detail=(
                _type_words(sub),
                ", required" if name in required else "",
                *(
                    (": ", Data(value=sub["description"]))
                    if isinstance(sub, Mapping) and "description" in sub
                    else ()
                ),
            ),
        )
        for name, sub in properties.items()
    )
    return Facts(label="Arguments", items=items, total=len(items))


def _type_words(schema: Any) -> str | Data:
    """Say in a word or two what a schema takes; a definition is called by its name."""
    if not isinstance(schema, Mapping):
        return "any value"
    if "$ref" in schema:
        return Data(value=str(schema["$ref"]).rpartition("/")[2])
    if "enum" in schema:
        return f"one of {len(schema['enum'])} values"
    words = schema.get("type", "one of several forms" if "anyOf" in schema else "any value")
    return words if isinstance(words, str) else listed(words, "or")
