"""The gates a call passes before a tool's body is entered, each with its refusal.

Tools layer. Permission, arguments, consent and credentials are judged here, for top-level calls
and, where they apply, for inner ones; artifact references have a module of their own. A gate that
cannot be judged (a callback that raises or answers neither yes nor no) is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._arguments import validate_arguments
from runbook_nb._sync import is_awaitable, loop_for
from runbook_nb._text import clip, counted, listed, visible
from runbook_nb.chart.inputs import served_problems
from runbook_nb.errors import Problem, RunbookError, RunSignal, ToolRefused

if TYPE_CHECKING:
    from runbook_nb.tools.context import ToolContext
    from runbook_nb.tools.tool import Tool

#: Answers ``(tool, args)``: True for yes; a text says why not. May be async.
Judge = Callable[["Tool", Mapping[str, Any]], Any]
#: Answers a tool's ``needs`` with ``{"status", "credential"}``. May be async.
Credentials = Callable[[Mapping[str, Any]], Any]

#: Words of a schema that ask for nothing of who gives nothing.
_ASKS_NOTHING: Final = frozenset(
    {"type", "properties", "additionalProperties", "title", "description"}
)

#: Faults of one call's arguments that a refusal spells out.
MAX_PROBLEMS: Final = 20


async def settled(answer: Any) -> Any:
    """Await what may be awaited, and pass on the rest.

    Examples
    --------
    >>> from runbook_nb._sync import run_sync
    >>> run_sync(lambda: settled(1))
    1
    """
    if not is_awaitable(answer):
        return answer
    await loop_for(answer)
    return await answer


def check_arguments(tool: Tool, args: Mapping[str, Any]) -> None:
    """Refuse arguments that do not fit the tool's schema, naming every fault, not what is hidden.

    Raises
    ------
    ToolRefused
        ``invalid_arguments``.
    """
    if not args and tool.input_schema.keys() <= _ASKS_NOTHING:
        return
    problems = validate_arguments(tool.input_schema, args)
    if not problems:
        return
    policy = getattr(tool.carried.get("runbook"), "redact", None)
    problems = served_problems(problems, args, policy)
    shown = problems[:MAX_PROBLEMS]
    if len(shown) < len(problems):
        more = f"and more: {len(shown)} of {counted(len(problems), 'problem')} are shown"
        shown = [*shown, Problem(message=more)]
    raise ToolRefused(
        f"tool {tool.name!r} cannot take these arguments",
        code="invalid_arguments",
        where=tool.name,
        problems=shown,
        facts={
            "tool": tool.name,
            "arguments": [problem.where for problem in problems[:MAX_PROBLEMS]],
            "problems": len(problems),
        },
    )


async def ask_permit(permit: Judge | None, tool: Tool, args: Mapping[str, Any]) -> None:
    """Refuse a call the host does not permit.

    Raises
    ------
    ToolRefused
        ``not_permitted``.
    """
    if permit is not None:
        await _judged(
            permit, tool, args, "not_permitted", f"the call of {tool.name!r} is not permitted"
        )


async def ask_consent(
    consent: Judge | None, tool: Tool, args: Mapping[str, Any], ctx: ToolContext
) -> None:
    """Ask a person, when the tool says one must agree.

    Raises
    ------
    ToolRefused
        ``consent_required`` when nobody can be asked, ``consent_declined`` when the answer was
        not yes.
    """
    if tool.check_in is None:
        return
    if tool.check_in != "always":
        try:
            applies = await settled(tool.check_in(dict(args), ctx))
        except Exception as error:
            raise ToolRefused(
                f"whether {tool.name!r} needs consent could not be judged ({type(error).__name__})",
                code="consent_required",
                where=tool.name,
                fix="mend the tool's check_in",
                facts={"tool": tool.name},
            ) from error
        if applies is not None and not applies:  # a predicate that forgot to answer asks
            return
    if consent is None:
        raise ToolRefused(
            f"tool {tool.name!r} asks a person first, and there is nobody to ask",
            code="consent_required",
            where=tool.name,
            fix="make the toolbox with consent=, a callable (tool, args) that asks",
            facts={"tool": tool.name},
        )
    await _judged(
        consent, tool, args, "consent_declined", f"consent to {tool.name!r} was not given"
    )


async def issue_credential(tool: Tool, provider: Credentials | None) -> Any:
    """Get the credential a tool declares; only the status ``issued`` is good enough.

    Parameters
    ----------
    tool : Tool
        The tool.
    provider : callable or None
        Given the tool's ``needs``, answers ``{"status": "issued", "credential": …}``, or another
        status.

    Returns
    -------
    object
        The answer's ``credential``, or the whole answer when it has no such key; None for a tool
        that needs nothing.

    Raises
    ------
    ToolRefused
        ``credential_not_issued``, naming tool, credential and status.
    """
    if tool.needs is None:
        return None
    name = tool.needs["credential"]
    status: Any = "no provider"
    answer: Any = None
    cause: Exception | None = None
    if provider is not None:
        try:
            answer = await settled(provider(tool.needs))
            status = answer.get("status") if isinstance(answer, Mapping) else None
            status = getattr(answer, "status", None) if status is None else status
        except Exception as error:
            # The message of a provider's error may quote the secret, so only its class is said.
            status, cause = f"the provider failed ({type(error).__name__})", error
    if status == "issued" and cause is None:
        if isinstance(answer, Mapping):
            return answer.get("credential", answer)
        return getattr(answer, "credential", answer)
    said = status if isinstance(status, str) else "no status"
    raise ToolRefused(
        f"tool {tool.name!r} needs the credential {name!r}, and its status is {_short(said)!r}",
        code="credential_not_issued",
        where=tool.name,
        fix="make the toolbox with credentials=, which must answer {'status': 'issued', …}",
        facts={"tool": tool.name, "credential": name, "status": said},
    ) from cause


async def _judged(
    judge: Judge, tool: Tool, args: Mapping[str, Any], code: str, message: str
) -> None:
    """Let a judge speak; anything but True is a no, a text says why."""
    cause: Exception | None = None
    try:
        answer = await settled(judge(tool, dict(args)))
    except (RunbookError, RunSignal):
        raise  # a refusal, a cancellation or a pause of the judge's own stays what it is
    except Exception as error:
        cause = error
        why = f"asking failed with {type(error).__name__}: {_short(str(error))}"
    else:
        if answer is True:
            return
        why = "" if answer is False else f"the answer was {type(answer).__name__}, not True"
        if isinstance(answer, str) and answer.strip():
            why = _short(answer)
    raise ToolRefused(
        f"{message}: {why}" if why else message,
        code=code,
        where=tool.name,
        facts={"tool": tool.name, **({"reason": why} if why else {})},
    ) from cause


def _short(text: str) -> str:
    return clip(visible(text), 200)


def unknown_tool(name: Any, known: list[str], near: str | None) -> ToolRefused:
    """Build the refusal of a name no tool has."""
    shown = listed(known[:10]) + (f" … ({len(known)} in all)" if len(known) > 10 else "")
    return ToolRefused(
        f"there is no tool {name!r}",
        code="unknown_tool",
        where=str(name),
        fix=near or (f"the tools are {shown}" if known else "the toolbox is empty"),
        facts={"tool": name},
    )
