"""A playbook held over an agent of pydantic-ai.

Agents layer. A capability judges every function-tool call of every run of the agent, tools of MCP
servers and other toolsets included. The framework runs the calls of one reply side by side; under
a policy that looks ahead they run one after the other, each judged just before it does, so that a
reply with the right calls in the right order passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from runbook_nb._text import listed
from runbook_nb.errors import PlaybookError
from runbook_nb.playbooks.frames import here
from runbook_nb.playbooks.hook import PlaybookEnforcerHook, as_hook
from runbook_nb.playbooks.scopes import key_of
from runbook_nb.playbooks.tickets import Ticket, outcome_of

try:
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import (
        ApprovalRequired,
        CallDeferred,
        ModelRetry,
        SkipToolExecution,
        ToolFailed,
    )
    from pydantic_ai.toolsets import WrapperToolset
except ImportError as error:
    raise ImportError(
        "the adapter for pydantic-ai needs its capabilities, and this environment has none; "
        "pip install 'runbook-nb[pydantic-ai]'"
    ) from error


@dataclass
class PlaybookCapability(AbstractCapability[Any]):
    """Holds the tool calls of an agent to a playbook: ``Agent(model, capabilities=[…])``.

    A refused call fails with the refusal's text, and its tool is not run; it takes nothing from the
    tool's retries. What a call was really called with is what its evidence is read from, and one
    that another capability answers without running the tool is settled as ``cached``.

    Parameters
    ----------
    plan : PlaybookEnforcerHook, PlaybookEnforcer or Playbook
        What the calls are held to; for a playbook each run has a plan of its own. A run that goes
        on after an approval is another run: hold such agents by a hook with ``scope="thread"``.
    nudges : int
        How often a final answer is sent back while required steps are open; the agent needs as
        many output retries. Afterwards the run ends, and the plan says what was left.
    sequential : bool, optional
        Whether calls of one reply run one after the other; by default as the policy looks ahead.
    hide : bool
        Whether the model is shown only tools that would be let through by their name. A reply then
        cannot hold the calls of two steps, and prompts are cached less.
    id : str
        Two capabilities of one name are refused: give one that only records a name of its own.

    Attributes
    ----------
    hook : PlaybookEnforcerHook
        What judges, and where the plans are, by run.

    Notes
    -----
    Give it last, so that other capabilities have changed what they change. A name that no tool has
    is turned back by the framework before anything is judged, and output tools are no tool calls.

    Examples
    --------
    >>> import asyncio
    >>> from pydantic_ai import Agent
    >>> from pydantic_ai.models.test import TestModel
    >>> from runbook_nb.playbooks import Playbook, PlaybookStep
    >>> step = PlaybookStep(id="look", description="Look.", expected_tools=["search"])
    >>> capability = PlaybookCapability(Playbook(id="ir", name="Response", steps=[step]))
    >>> agent = Agent(TestModel(), capabilities=[capability])
    >>> @agent.tool_plain
    ... def search() -> str:
    ...     return "web-01"
    >>> result = asyncio.run(agent.run("Failed logins."))
    >>> capability.hook.enforcer_for(result.run_id).is_complete
    True
    """

    plan: Any
    nudges: int = 0
    sequential: bool | None = None
    hide: bool = False
    id: str | None = field(default="playbook", kw_only=True)
    hook: PlaybookEnforcerHook = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.hook = as_hook(self.plan)
        if self.sequential is None:
            self.sequential = self.hook.policy.lookahead
        self._running: dict[tuple[str | None, str], _Running] = {}
        self._nudged: dict[str, int] = {}

    @classmethod
    def combine(cls, capabilities: Sequence[Any]) -> Any:
        """Refuse two playbooks under one name."""
        raise PlaybookError(
            f"an agent was given {len(capabilities)} playbook capabilities of one name",
            code="two_enforcers",
            where="capabilities",
            fix="put the steps into one playbook; or give one of them block_violations=False, and "
            "an id of its own",
        )

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """Give None: what it holds cannot be written in the spec of an agent."""
        return None

    def get_instructions(self) -> Any:
        """Tell the model what the hook is told to tell it of the playbook."""
        return None if self.hook.inject == "none" else self._brief

    def get_wrapper_toolset(self, toolset: Any) -> Any:
        """Stand next to the tools, where the arguments are those they run with."""
        return _Watched(toolset, self)

    async def prepare_tools(self, ctx: Any, tool_defs: list[Any]) -> list[Any]:
        """Leave out what would be refused, and have tools run in turn, where that is asked for."""
        if self.hide and (plan := self.hook.enforcer_for(self._key(ctx))) is not None:
            tool_defs = [one for one in tool_defs if plan.may(one.name)]
        if not self.sequential:
            return tool_defs
        return [replace(one, sequential=True) for one in tool_defs]

    async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
        """Enter the run, and conclude its plan when it ends."""
        where = _where(ctx)
        with self.hook.run(where.pop("run_id"), **where):
            try:
                return await handler()
            finally:
                self._nudged.pop(ctx.run_id, None)

    async def wrap_tool_execute(
        self, ctx: Any, *, call: Any, tool_def: Any, args: Mapping[str, Any], handler: Any
    ) -> Any:
        """Judge a call, let it run if it may, and settle it."""
        frame = here()
        if frame is not None and frame.call_id == call.tool_call_id:
            self.hook.alone_with(frame.hook)  # another stands around this very call
        ticket = self.hook.admit(
            call.tool_name, dict(args), call_id=call.tool_call_id, **_where(ctx)
        )
        if ticket.refusal is not None:
            raise ToolFailed(ticket.refusal.text) from ticket.refusal.error()
        place = (ctx.run_id, call.tool_call_id)
        running = self._running[place] = _Running(ticket)
        try:
            with ticket.running():
                try:
                    result = await handler(args)
                except SkipToolExecution as skipped:
                    ticket.settle("cached", result=skipped.result)
                    raise
                except (CallDeferred, ApprovalRequired):
                    ticket.settle("cancelled")
                    raise
                except BaseException as error:
                    ticket.settle(outcome_of(error), error=error, arguments=running.arguments)
                    raise
                outcome = "ok" if running.ran else "cached"
                ticket.settle(outcome, result=result, arguments=running.arguments)
                return result
        finally:
            self._running.pop(place, None)

    async def after_output_validate(self, ctx: Any, *, output_context: Any, output: Any) -> Any:
        """Send a final answer back while required steps are open, as often as asked."""
        return output if ctx.partial_output else self._answer(ctx, output)

    async def after_output_process(self, ctx: Any, *, output_context: Any, output: Any) -> Any:
        """Do so for answers that are plain text, too, which are not validated."""
        return output if ctx.partial_output else self._answer(ctx, output)

    def _answer(self, ctx: Any, output: Any) -> Any:
        key = self._key(ctx)
        enforcer = self.hook.enforcer_for(key)
        used = self._nudged.get(ctx.run_id, 0)
        if enforcer is None or used >= self.nudges:
            return output
        left = enforcer.plan.unresolved_required_steps()
        if not left:
            return output
        self._nudged[ctx.run_id] = used + 1
        raise ModelRetry(
            f"The playbook {enforcer.plan.playbook.name!r} is not finished: {listed(left)} "
            f"{'is' if len(left) == 1 else 'are'} open. {enforcer.brief(mode='step')}"
        )

    def _brief(self, ctx: Any) -> str:
        return self.hook.brief(self._key(ctx))

    def _key(self, ctx: Any) -> str:
        return key_of(self.hook.scope, ctx.run_id, ctx.conversation_id)


@dataclass
class _Running:
    """A call whose tool may be running: whether it did, and with what."""

    ticket: Ticket
    ran: bool = False
    arguments: Any = None


@dataclass
class _Watched(WrapperToolset[Any]):
    """The agent's tools, which say when one of them really runs."""

    capability: PlaybookCapability

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        running = self.capability._running.get((ctx.run_id, ctx.tool_call_id))
        if running is not None:
            running.ran, running.arguments = True, dict(tool_args)
        return await super().call_tool(name, tool_args, ctx, tool)


def _where(ctx: Any) -> dict[str, Any]:
    agent = ctx.agent
    return {
        "run_id": ctx.run_id,
        "thread_id": ctx.conversation_id,
        "metadata": ctx.metadata,
        "agent_name": None if agent is None else agent.name,
    }
