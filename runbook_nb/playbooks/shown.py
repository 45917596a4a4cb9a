"""What follows a playbook shows itself: its run, its card, its flowchart, its explorer.

A plan is the published model and carries no more than its fields; as long as whoever enforces it
is there, it is asked for the rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from runbook_nb._display import Renderable, through

if TYPE_CHECKING:
    from runbook_nb._view import Card
    from runbook_nb.playbooks.eventkinds import Event
    from runbook_nb.playbooks.model import PlaybookPlan
    from runbook_nb.playbooks.procedure import PlaybookProcedure
    from runbook_nb.playbooks.run import PlaybookRun
    from runbook_nb.record.structure import Structure
    from runbook_nb.render.flowchart import Flowchart
    from runbook_nb.widgets.explorer import Explorer


class Followed(Renderable, ABC):
    """Gives whoever has the events of a plan its record and every view of that."""

    @property
    @abstractmethod
    def events(self) -> tuple[Event, ...]:
        """Everything that happened, in order."""

    #: What must not be seen in any view; None hides nothing.
    redact: Any = None

    @property
    def run(self) -> PlaybookRun:
        """The record so far, as charts leave one: rows, state, commits, recording."""
        from runbook_nb.playbooks.run import run_of

        events = self.events
        known = self.__dict__.get("_run")
        if known is not None and known[0] == len(events):
            made: PlaybookRun = known[1]
            return made
        run = run_of(events, redact=self.redact)
        self.__dict__["_run"] = (len(events), run)
        return run

    @property
    def structure(self) -> Structure:
        """The steps as a graph."""
        return self.run.structure

    def flowchart(self) -> Flowchart:
        """Draw the steps with what became of them."""
        chart: Flowchart = through("flowchart", self.view())
        return chart

    def explore(self) -> Explorer:
        """Go through what happened row by row, beside the flowchart; a widget."""
        return self.run.explore()

    def procedure(self) -> PlaybookProcedure:
        """Give the record as a procedure of a runbook: the answer is what it came to."""
        from runbook_nb.playbooks.procedure import PlaybookProcedure

        return PlaybookProcedure.of(self)

    def view(self) -> Card:
        """Show how far the plan came, step by step."""
        return self.run.view()

    def _head(self) -> Card:
        from runbook_nb.playbooks.cards import run_head

        return run_head(self.run)


#: Who enforces which plan, as long as both are there.
_LIVE: Final[WeakValueDictionary[int, Any]] = WeakValueDictionary()


def follow(plan: PlaybookPlan, followed: Any) -> None:
    """Say who has the events of a plan."""
    _LIVE[id(plan)] = followed


def followed_by(plan: PlaybookPlan) -> Followed | None:
    """Give who has the events of a plan; None for one that was read from somewhere."""
    found = _LIVE.get(id(plan))
    # Another object may have come to stand where a plan stood.
    return found if found is not None and found.plan is plan else None
