"""Where the running code stands: inside which run, and inside which call of a tool.

Playbooks layer. What a tool does in its body may call further tools. A context variable says which
plan the body runs under and which call it is, so that a nested call is judged in the same plan and
names the call it was made in; tasks and threads started with a copy of the context inherit it.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any

from runbook_nb._value import frozen
from runbook_nb.playbooks.scopes import Closed, Seat

if TYPE_CHECKING:
    from runbook_nb.playbooks.enforcer import PlaybookEnforcer
    from runbook_nb.playbooks.hook import PlaybookEnforcerHook


@frozen
class Frame:
    """A run that was entered, or a call in one whose body is running.

    Attributes
    ----------
    hook : PlaybookEnforcerHook
        What judges here.
    seat : Seat
        The run, and its plan.
    call_id : str or None
        The call; None between calls.
    """

    hook: PlaybookEnforcerHook
    seat: Seat
    call_id: str | None = None


_HERE: ContextVar[Frame | None] = ContextVar("runbook_nb_playbook_frame", default=None)
_last: list[Any] = [None]


#: What `leave` needs to come back to where `enter` was called.
Within = Token["Frame | None"]


def enter(frame: Frame) -> Within:
    """Stand in a frame until `leave` is called with what this gives."""
    return _HERE.set(frame)


def leave(within: Within) -> None:
    """Stand where one stood before; in the same context."""
    _HERE.reset(within)


@contextmanager
def entered(frame: Frame) -> Iterator[None]:
    """Let the code of the block run inside a frame."""
    within = enter(frame)
    try:
        yield
    finally:
        leave(within)


def here() -> Frame | None:
    """Give the innermost frame of the running code; None outside any."""
    return _HERE.get()


def note_last(plan: PlaybookEnforcer) -> None:
    """Keep in mind, weakly, which plan was made last."""
    _last[0] = weakref.ref(plan)


def current_plan() -> PlaybookEnforcer | None:
    """Give the enforcer whose plan the running code is under; None outside any.

    It is that of the call whose body is running, however deep, or of the run entered by
    `PlaybookEnforcerHook.run`.

    Examples
    --------
    >>> current_plan() is None
    True
    """
    frame = _HERE.get()
    return None if frame is None else plan_of(frame.seat)


def plan_of(seat: Seat | None) -> PlaybookEnforcer | None:
    """Give the enforcer of a run; None where it is not held to a playbook, or is closed."""
    held = None if seat is None else seat.held
    return None if isinstance(held, Closed) else held


def last_plan() -> PlaybookEnforcer | None:
    """Give the enforcer whose plan was begun last in this process, while somebody holds it.

    For a notebook, where a plan may have been begun by an agent that keeps its hook to itself.

    Examples
    --------
    >>> from runbook_nb.playbooks import Playbook, PlaybookEnforcerHook, PlaybookStep
    >>> step = PlaybookStep(id="look", description="Look.", expected_tools=["search"])
    >>> hook = PlaybookEnforcerHook(Playbook(id="ir", name="Response", steps=[step]))
    >>> plan = hook.enforcer
    >>> last_plan() is plan
    True
    """
    found = _last[0]
    return None if found is None else found()
