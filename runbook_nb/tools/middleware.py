"""What stands around a call: the call as middleware sees it, and the chain it passes through.

Tools layer. The first middleware is outermost; results pass back through the chain in reverse.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from runbook_nb._stop import Stop
from runbook_nb._value import frozen
from runbook_nb.errors import DefinitionError
from runbook_nb.tools.context import Session
from runbook_nb.tools.gates import settled
from runbook_nb.tools.tool import Tool, as_arguments


@frozen
class ToolCall:
    """A call as middleware sees it: a top-level one, or one that a call makes to another tool.

    Attributes
    ----------
    tool : Tool
        What is called.
    args : mapping
        The arguments. Middleware may pass on others: ``next(replace(call, args=…))``.
    call_id : str
        Identifies the call.
    session : Session
        Whose call it is.
    signal : Stop or None
        Set when the caller wants it to end.
    checkpoint : object
        What a paused call is resumed from, its ``args`` then being ``{"answer": …}``; None for a
        call from the start.
    parent : str or None
        The call that made it; None for a top-level one. Only middleware with a method ``inner``
        sees others.
    """

    tool: Tool
    args: Mapping[str, Any]
    call_id: str
    session: Session
    signal: Stop | None = None
    checkpoint: Any = None
    parent: str | None = None


#: ``(call, next)``: passes the call on with ``next(call)`` and returns a result. May be async.
Middleware = Callable[[ToolCall, Callable[..., Awaitable[Any]]], Any]


def inner_of(chain: Sequence[Middleware]) -> tuple[Middleware, ...]:
    """Give what stands around the calls that calls make: each middleware's method ``inner``.

    Examples
    --------
    >>> inner_of([lambda call, next: next(call)])
    ()
    """
    found = (getattr(one, "inner", None) for one in chain)
    return tuple(one for one in found if callable(one))


async def pass_through(
    chain: Sequence[Middleware], call: ToolCall, enter: Callable[[ToolCall], Awaitable[Any]]
) -> Any:
    """Send a call through a chain and into ``enter``, and give the result that comes out.

    Only the arguments are middleware's to change: permission was given for this tool and this
    call, and whatever else a middleware passes on is ignored.

    Examples
    --------
    >>> from runbook_nb._sync import run_sync
    >>> from runbook_nb.tools.tool import define_tool
    >>> echo = define_tool(name="echo", execute=lambda args: args)
    >>> call = ToolCall(tool=echo, args={"n": 1}, call_id="c", session=Session("s"))
    >>> async def enter(call):
    ...     return call.args["n"]
    >>> async def twice(call, next):
    ...     return 2 * await next(call)
    >>> run_sync(lambda: pass_through([twice, twice], call, enter))
    4
    """
    if not chain:
        return await enter(call)

    async def following(passed: ToolCall = call) -> Any:
        if not isinstance(passed, ToolCall):
            raise DefinitionError(
                f"middleware passed on {passed!r}", where="middleware", fix="pass on the call"
            )
        args = as_arguments(passed.args, call.tool.name)
        return await pass_through(chain[1:], replace(call, args=args), enter)

    return await settled(chain[0](call, following))
