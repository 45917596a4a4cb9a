"""A playbook held over a toolbox: every call of it is judged, those inside calls too.

Playbooks layer. Given as middleware, it stands between permission and the tool's own gates. What a
runbook's stages call is judged in the plan of the call that runs the runbook, and names it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from runbook_nb.playbooks.frames import Frame, entered, here
from runbook_nb.playbooks.hook import as_hook
from runbook_nb.tools.middleware import ToolCall

Next = Callable[[ToolCall], Awaitable[Any]]


class PlaybookMiddleware:
    """Judges the calls of a toolbox by a playbook; a refused one raises `ToolRefused`.

    Put it last, where no other middleware changes what the tools are called with. The error's
    ``code`` is the type of the violation, its ``facts`` tell the step, the call and the hints.

    Parameters
    ----------
    plan : PlaybookEnforcerHook, PlaybookEnforcer or Playbook
        What the calls are held to. A hook with ``scope="thread"`` takes the conversation of the
        toolbox's session as the thread; the run is that entered by ``with hook.run(…):``.

    Attributes
    ----------
    hook : PlaybookEnforcerHook
        What judges, and where the plans are.

    Examples
    --------
    >>> from runbook_nb.playbooks import Playbook, PlaybookStep
    >>> from runbook_nb.tools import Toolbox, define_tool
    >>> steps = [
    ...     PlaybookStep(id="look", description="Look.", expected_tools=["search"]),
    ...     PlaybookStep(id="act", description="Act.", expected_tools=["isolate"]),
    ... ]
    >>> held = PlaybookMiddleware(Playbook(id="ir", name="Response", steps=steps))
    >>> search = define_tool(name="search", execute=lambda args: ["web-01"])
    >>> isolate = define_tool(name="isolate", execute=lambda args: "done")
    >>> box = Toolbox([search, isolate], middleware=[held])
    >>> box.call_sync("search"), box.call_sync("isolate")
    (['web-01'], 'done')
    >>> held.hook.enforcer.is_complete
    True
    """

    def __init__(self, plan: Any) -> None:
        self.hook = as_hook(plan)
        self._running: dict[str, Frame] = {}

    def __repr__(self) -> str:
        return f"<PlaybookMiddleware {self.hook!r}>"

    async def __call__(self, call: ToolCall, next: Next) -> Any:
        """Judge a call, make it if it may be made, and settle it."""
        return await self._judged(call, next)

    async def inner(self, call: ToolCall, next: Next) -> Any:
        """Judge a call that another makes, in the plan of that one."""
        frame = here()
        if call.parent is not None and (frame is None or frame.call_id != call.parent):
            frame = self._running.get(call.parent)  # made in a thread with a context of its own
        if frame is None or frame.hook is not self.hook:
            return await self._judged(call, next)
        with entered(frame):
            return await self._judged(call, next)

    async def _judged(self, call: ToolCall, next: Next) -> Any:
        frame = here()
        if frame is not None and frame.call_id == call.call_id:
            self.hook.alone_with(frame.hook)  # another stands around this very call
        where: dict[str, Any] = {}
        if frame is None or frame.hook is not self.hook:
            session = call.session
            told = {"tenant": session.tenant, "principal": session.principal}
            where = {"thread_id": session.conversation, "metadata": told, "parent": call.parent}
        ticket = self.hook.admit(call.tool.name, dict(call.args), call_id=call.call_id, **where)
        self._running[call.call_id] = ticket.frame
        try:
            with ticket.running():
                result = await next(call)
                ticket.settle("ok", result=result)
            return result
        finally:
            self._running.pop(call.call_id, None)
