"""A plan that is shown in a cell and kept up to date there: one display, told of every event.

Render layer. There is no thread: what happened is drawn when the plan tells of it, five times a
second at most, and what was left out is drawn when the cell that is running has ended. A step that
ends is drawn at once, since after the last call of a run nothing else may come.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol
from weakref import WeakKeyDictionary, ref

from runbook_nb.render.live import PERIOD, shell_of_a_notebook
from runbook_nb.settings import settings

#: After these nothing may come for a long time.
AT_ONCE: Final = frozenset(
    {"closed", "skipped", "failed", "stuck", "approved", "declined", "finished"}
)


class Changing(Protocol):
    """What shows itself and tells of its changes."""

    def on_change(self, observer: Callable[[Any], object], /) -> Callable[[], None]:
        """Let somebody hear of every event; what is given back ends it."""
        ...


#: The one view of each plan.
_VIEWS: Final[WeakKeyDictionary[Any, LivePlan]] = WeakKeyDictionary()


def show_live(plan: Changing) -> None:
    """Show a plan in this cell, and keep it up to date as it changes.

    Parameters
    ----------
    plan : PlaybookEnforcer
        The plan. Where there is no IPython nothing is shown.

    Examples
    --------
    >>> from runbook_nb.playbooks import Playbook, PlaybookEnforcer
    >>> show_live(PlaybookEnforcer.from_playbook(Playbook(id="ir", name="Response")))
    """
    import sys

    before = _VIEWS.pop(plan, None)
    if before is not None:
        before.stop()
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None:
        return
    from IPython import display

    show: Any = display.display
    if settings.static or shell_of_a_notebook() is None:
        show(plan)
        return
    handle = show(plan, display_id=True)
    if handle is not None:
        _VIEWS[plan] = LivePlan(plan, handle, shell.events, settings.timer)


class LivePlan:
    """One display of a plan, drawn anew as the plan changes.

    Parameters
    ----------
    plan : PlaybookEnforcer
        The plan; it is not kept alive.
    handle : DisplayHandle
        The display.
    events : EventManager
        The shell's, which tells when a cell has ended.
    timer : callable
        Gives seconds that only grow.
    """

    def __init__(
        self, plan: Changing, handle: Any, events: Any, timer: Callable[[], float]
    ) -> None:
        self._plan, self._handle, self._events, self._timer = ref(plan), handle, events, timer
        self._drawn_at = timer()
        self._waiting = False
        self._end = plan.on_change(self.hear)
        events.register("post_run_cell", self.settle)

    def hear(self, event: Any) -> None:
        """Draw the plan, unless it was drawn just now."""
        soon = self._timer() - self._drawn_at < PERIOD
        if soon and event.kind not in AT_ONCE:
            self._waiting = True
        else:
            self.draw()

    def settle(self, _result: Any = None) -> None:
        """Draw what was left out, when a cell has ended."""
        if self._waiting:
            self.draw()

    def draw(self) -> None:
        """Draw the plan as it stands."""
        plan = self._plan()
        if plan is None:
            self.stop()
            return
        self._handle.update(plan)
        self._drawn_at, self._waiting = self._timer(), False

    def stop(self) -> None:
        """Draw what was left out, and hear no more."""
        self._end()
        if self._plan() is not None:
            self.settle()
        try:
            self._events.unregister("post_run_cell", self.settle)
        except ValueError:  # it was taken out by somebody else
            return
