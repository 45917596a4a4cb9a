"""A tool call as agent frameworks tell of it: one thing before it is made, one after.

Playbooks layer. Nothing here belongs to a framework. Whatever has these attributes can be told to a
hook, and what a foreign event has no room for is left unsaid.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runbook_nb.playbooks.tickets import Refusal, Ticket


@dataclass(slots=True, kw_only=True, eq=False)
class ToolEvent:
    """A tool call as a framework tells of it, before and after; any object like it does as well.

    Attributes
    ----------
    tool_name : str
        Which tool.
    arguments : object
        What it is called with; after the call, what it was really called with.
    call_id : str or None
        The framework's id of the call; one is drawn otherwise.
    run_id, thread_id, metadata, agent_name
        The run it is made in; see `RunInfo`.
    parent_call_id, batch : str or None
        The call inside which it is made, and the reply it came in.
    result, error : object
        What came of it.
    outcome : str or None
        Said where ``error`` does not tell: ``cached``, ``retried`` or ``cancelled``.
    cancel : str or None
        Set by `PlaybookEnforcerHook.before`: what to tell the model in the place of a result.
    refusal : Refusal or None
        Set beside it: the same as structure.
    judged_by : object
        Set by the hook that judged it.

    Examples
    --------
    >>> ToolEvent(tool_name="search", arguments={"q": "x"}, run_id="r1").cancel is None
    True
    """

    tool_name: str
    arguments: Any = None
    call_id: str | None = None
    run_id: str | None = None
    thread_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    agent_name: str | None = None
    parent_call_id: str | None = None
    batch: str | None = None
    result: Any = None
    error: Any = None
    outcome: str | None = None
    cancel: str | None = None
    refusal: Refusal | None = None
    judged_by: Any = None


def where_of(event: Any) -> dict[str, Any]:
    """Give where an event's call is made, by the names that a hook's ``admit`` takes.

    Examples
    --------
    >>> where_of(ToolEvent(tool_name="search", run_id="r1"))["run_id"]
    'r1'
    """
    return {name: getattr(event, told, None) for name, told in _WHERE}


_WHERE = (
    ("call_id", "call_id"),
    ("run_id", "run_id"),
    ("thread_id", "thread_id"),
    ("metadata", "metadata"),
    ("agent_name", "agent_name"),
    ("parent", "parent_call_id"),
    ("batch", "batch"),
)


def first_of(waiting: Mapping[str, Ticket], tool: str) -> Ticket | None:
    """Give the call of a tool that has waited longest; for events that carry no id."""
    return next((one for one in list(waiting.values()) if one.tool == tool), None)


def tell(event: Any, name: str, value: Any) -> None:
    """Set what an event may have no room for; what it must have is set without this."""
    with suppress(AttributeError, TypeError):
        setattr(event, name, value)
