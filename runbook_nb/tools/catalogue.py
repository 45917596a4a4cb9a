"""What tools are there: names, skills, providers, and what tools declare about each other.

Tools layer. Judged when a toolbox is built and whenever a tool is added, over the complete
catalogue, so the order of registration does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from runbook_nb._text import did_you_mean, listed
from runbook_nb.errors import DefinitionError, Problem, ToolRefused
from runbook_nb.tools.gates import settled
from runbook_nb.tools.tool import Tool


@runtime_checkable
class CarriesTools(Protocol):
    """Something that brings tools along, such as a skill."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def tools(self) -> Iterable[Tool]:
        """The tools it brings."""
        ...


#: Delivers tools when a call is made. May be async.
Provider = Callable[[], Any]


def checked_tool(tool: Any, where: str) -> Tool:
    """Refuse what is not a tool, and say how it becomes one."""
    if isinstance(tool, Tool):
        return tool
    named = getattr(tool, "__name__", None) or repr(tool)
    raise DefinitionError(
        f"{where}: {named} is not a tool",
        code="bad_toolbox",
        where=where,
        fix="decorate the function with @rb.tool, or use rb.define_tool"
        if callable(tool)
        else "give tools made by rb.tool, rb.define_tool or rb.runbook_as_tool",
    )


def read_catalogue(tools: Iterable[Tool], skills: Iterable[CarriesTools]) -> dict[str, Tool]:
    """Put tools and those of skills under their names; refuse two of one name."""
    if isinstance(tools, Tool):
        raise DefinitionError("tools is one tool", where="tools", fix="put it in a list")
    found: dict[str, Tool] = {}
    homes: dict[str, str] = {}
    problems = []
    listings: list[tuple[str, Sequence[Any]]] = [("tools", list(tools))]
    listings += [(f"skill {skill.name!r}", list(skill.tools)) for skill in skills]
    for home, listing in listings:
        for given in listing:
            tool = checked_tool(given, home)
            if found.get(tool.name, tool) is not tool or homes.get(tool.name) == home:
                both = home if homes[tool.name] == home else f"{homes[tool.name]} and {home}"
                problems.append(
                    Problem(
                        where=tool.name,
                        message=f"two tools have the name {tool.name!r} ({both})",
                        fix="rename one; to replace a tool use toolbox.add(tool)",
                    )
                )
            else:
                found[tool.name] = tool
                homes.setdefault(tool.name, home)
    if problems:
        raise DefinitionError("the toolbox cannot be built", code="bad_toolbox", problems=problems)
    return found


def check_catalogue(
    catalogue: Mapping[str, Tool], *, has_providers: bool, has_store: bool
) -> list[str]:
    """Judge what tools declare about each other and about the store.

    Returns
    -------
    list of str
        What is doubtful and worth a warning: an ingredient only a provider could deliver, one
        that an inner call will refuse.

    Raises
    ------
    DefinitionError
        Everything that cannot work.
    """
    problems: list[Problem] = []
    doubts: list[str] = []
    for tool in catalogue.values():
        if tool.wants and not has_store:
            problems.append(
                Problem(
                    where=tool.name,
                    message=f"wants artifacts ({listed(tool.wants)}), and there is no store",
                    fix="give artifacts=InMemoryArtifacts(), or another store",
                )
            )
        for name in tool.composed_of or ():
            if name in catalogue:
                doubts += _inner_doubts(tool, catalogue[name])
                continue
            near = did_you_mean(name, [other for other in catalogue if other != tool.name])
            missing = Problem(
                where=tool.name,
                message=f"composedOf ingredient {name!r} is not in the toolbox",
                fix=near or "register the tool, or correct composed_of",
            )
            if has_providers:
                doubts.append(f"{missing} (if a provider delivers it, an inner call cannot see it)")
            else:
                problems.append(missing)
    if problems:
        raise DefinitionError("the toolbox cannot be built", code="bad_toolbox", problems=problems)
    return doubts


def _inner_doubts(tool: Tool, ingredient: Tool) -> list[str]:
    why = [
        *(["may pause for an answer"] if ingredient.gates else []),
        *(["asks a person first"] if ingredient.check_in is not None else []),
        *(["wants artifacts"] if ingredient.wants else []),
    ]
    if not why:
        return []
    said = f"composedOf ingredient {ingredient.name!r} {listed(why)}"
    return [f"{tool.name}: {said}, which has no place inside another call"]


async def delivered(provider: Provider) -> list[Tool]:
    """Ask a provider for its tools."""
    named = getattr(provider, "__name__", type(provider).__name__)
    try:
        return [checked_tool(tool, f"provider {named}") for tool in await settled(provider())]
    except Exception as error:
        raise ToolRefused(
            f"the tool provider {named} failed: {error}",
            code="provider_failed",
            where=str(named),
            facts={"provider": str(named)},
        ) from error
