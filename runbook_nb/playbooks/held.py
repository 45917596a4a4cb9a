"""A plan that is held: alone to whoever changes it, kept before it is told of, looked at by all.

The part of an enforcer that judges nothing. Every change goes through one re-entrant lock; what
happened is written to the journal before anybody hears of it, and told to observers outside the
lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from runbook_nb._text import MISSING
from runbook_nb.playbooks.brief import brief_of
from runbook_nb.playbooks.closing import stuck_reason
from runbook_nb.playbooks.eventkinds import Admitted, Event
from runbook_nb.playbooks.judging import due_past, judge, waits_for_person
from runbook_nb.playbooks.keeper import Keeper
from runbook_nb.playbooks.model import (
    EnforcementViolation,
    Playbook,
    PlaybookPlan,
    PlaybookStep,
    RequiredProbe,
)
from runbook_nb.playbooks.policy import EnforcementPolicy
from runbook_nb.playbooks.report import PlaybookReport, report_of, score_of, served_report
from runbook_nb.playbooks.shown import follow
from runbook_nb.playbooks.skills import effective_probes
from runbook_nb.playbooks.state import Call, PlanState
from runbook_nb.playbooks.summary import summary_of
from runbook_nb.playbooks.telling import Observer, Observers
from runbook_nb.playbooks.terms import StepTerms, Terms
from runbook_nb.playbooks.values import Kept
from runbook_nb.settings import settings

#: What `HeldPlan.dump` says it is.
SCHEMA: Final = "runbook_nb/playbook-run/1"


class Journal(Protocol):
    """What is asked of a journal."""

    def append(self, events: Sequence[Event], /) -> object:
        """Write events that happened together, all or none."""
        ...


class HeldPlan:
    """A plan that can be looked at, listened to and kept; see `PlaybookEnforcer`."""

    def _set_up(
        self,
        state: PlanState,
        skills: Mapping[str, Any],
        around: Any,
        playbook: Playbook | None = None,
    ) -> None:
        journal, observers, redact = around
        self.redact = redact
        follow(state.plan, self)
        self._skills = dict(skills)
        terms = Terms(playbook or state.playbook, self._skills, state.policy)
        self._keeper = Keeper(terms, state, Kept(redact))
        self._events: list[Event] = []
        self._journal: Journal | None = journal
        self._unkept: list[Event] = []
        self._observers = Observers(observers)
        self._lock = threading.RLock()
        self._depth = 0
        #: Calls that are admitted if earlier calls of their batch succeed, by id.
        self._provisional: dict[str, tuple[str, Any, str | None, str | None]] = {}

    # -- looking ---------------------------------------------------------------------------

    @property
    def plan(self) -> PlaybookPlan:
        """The plan."""
        return self._keeper.state.plan

    @property
    def policy(self) -> EnforcementPolicy:
        """The rules it is held to."""
        return self._keeper.state.policy

    @property
    def state(self) -> PlanState:
        """Everything that is known of the plan; to be read, never changed."""
        return self._keeper.state

    @property
    def terms(self) -> Terms:
        """What each step asks for under the policy."""
        return self._keeper.terms

    @property
    def key(self) -> str | None:
        """The run."""
        return self._keeper.state.key

    @property
    def skills(self) -> dict[str, Any]:
        """The skills it was made with; a copy."""
        return dict(self._skills)

    @property
    def block_violations(self) -> bool:
        """Whether calls that go against the playbook are refused."""
        return self._keeper.state.block

    @property
    def record_violations(self) -> bool:
        """Whether what goes against it is recorded."""
        return self._keeper.state.record

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that happened, in order."""
        with self._lock:
            return tuple(self._events)

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every call that was asked for, refused ones too, in order."""
        with self._lock:
            return tuple(self._keeper.state.calls.values())

    @property
    def violations(self) -> list[EnforcementViolation]:
        """What went against the playbook, in order; a copy."""
        with self._lock:
            found, kept = self._keeper.state.violations, self._keeper.kept
            if not kept.hides:
                return found
            return [
                one.model_copy(update={"tool_name": kept.text(one.tool_name)})
                if one.tool_name
                else one
                for one in found
            ]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the policy let pass when the enforcer was made, in sentences."""
        return self._keeper.terms.warnings

    @property
    def dropped_observers(self) -> tuple[str, ...]:
        """Observers that raised and hear nothing more, each with what it raised."""
        return tuple(self._observers.dropped)

    @property
    def current_step(self) -> PlaybookStep | None:
        """The step at the pointer."""
        return self.plan.current_step

    @property
    def current_step_hints(self) -> list[str]:
        """The hints of the step at the pointer; a copy."""
        step = self.current_step
        return [] if step is None else list(step.hints)

    def get_next_step_hints(self) -> list[str]:
        """Give the hints of the step after the pointer; a copy."""
        place = self.plan.current_step_index + 1
        steps = self.plan.playbook.steps
        return list(steps[place].hints) if 0 <= place < len(steps) else []

    @property
    def progress(self) -> float:
        """The share of completed steps."""
        return self.plan.progress

    @property
    def is_complete(self) -> bool:
        """Whether the pointer passed the last step."""
        return self.plan.completed

    @property
    def stuck_reason(self) -> str | None:
        """Why no call can bring the plan on any more; None where one can, or a person is due."""
        with self._lock:
            return stuck_reason(self._keeper.terms, self._keeper.state)

    @property
    def is_stuck(self) -> bool:
        """Whether no call can bring the plan on any more."""
        return self.stuck_reason is not None

    @property
    def waits_for_person(self) -> bool:
        """Whether the current step is one that a person has to close or to approve first.

        Where steps interleave, whether some open step is. Also whether a person may close or
        approve one now by passing over optional steps before it; calls of those may still come.
        """
        with self._lock:
            terms, state = self._keeper.terms, self._keeper.state
            step = self._current()
            here = [] if step is None else [step]
            if terms.interleaved:
                here = [one for one in terms.steps if one.index not in state.closed]
            if any(waits_for_person(one, state) for one in here):
                return True
            return due_past(terms, state) is not None

    def early_calls(self, step: str | PlaybookStep | None = None) -> tuple[Call, ...]:
        """Give the calls of a step's tools that were made before it was current.

        They count as its own where a person, or a host, closes the step.

        Parameters
        ----------
        step : str or PlaybookStep, optional
            The step; the current one otherwise.
        """
        with self._lock:
            found = step if step is not None else self.current_step
            if found is None:
                return ()
            state = self._keeper.state
            facts = state.facts_of(found if isinstance(found, str) else found.id)
            return tuple(state.calls[one] for one in facts.early if one in state.calls)

    def effective_probes(self, step: PlaybookStep) -> list[RequiredProbe]:
        """Give the probes of a step: its own, then those of its skills; of one name the first."""
        return effective_probes(step, self._skills)

    def allowed_tools_for(self, step: PlaybookStep) -> set[str] | None:
        """Give what the skills of a step allow together; None where they say nothing."""
        entries = self._keeper.terms.of(step).entries
        return None if entries is None else set(entries)

    def may(self, tool: str, arguments: Any = MISSING) -> bool:
        """Say whether a call would be let through now; nothing is recorded.

        Parameters
        ----------
        tool : str
            The tool.
        arguments : object, optional
            What it would be called with; left out, its name alone is judged.
        """
        with self._lock:
            return judge(self._keeper.terms, self._keeper.state, tool, arguments).allowed

    def get_step_summary(self) -> dict[str, Any]:
        """Give counts of steps by where they stand.

        Under another profile than ``compat`` with ``in_progress``, ``not_started``,
        ``resolved_fraction`` and ``stuck`` beside the published keys.
        """
        with self._lock:
            return summary_of(self._keeper)

    def adherence_score(
        self, scope: str | None = None, count: Iterable[str] | None = None
    ) -> float:
        """Give the mean share of evidence that was left; 1.0 where none is asked for.

        Parameters
        ----------
        scope : {"reached", "required", "all"}, optional
            Over which steps; the policy says otherwise.
        count : iterable of str, optional
            Only records of these statuses count.
        """
        with self._lock:
            return score_of(self._keeper, scope, count)

    def brief(self, mode: str = "plan") -> str:
        """Give the text that tells a model, or a person, what is asked for now.

        Parameters
        ----------
        mode : {"plan", "step", "hand"}
            All steps, or the current one; ``hand`` tells of that to a person who does it.
        """
        with self._lock:
            return brief_of(self._keeper, mode)

    # -- keeping ---------------------------------------------------------------------------

    def on_change(self, observer: Observer) -> Callable[[], None]:
        """Let somebody hear of every event from now on; what is given back ends it.

        An observer that raises is dropped and named in `dropped_observers`.

        Parameters
        ----------
        observer : callable
            Is called with each event.

        Examples
        --------
        >>> from runbook_nb.playbooks import Playbook, PlaybookEnforcer
        >>> step = PlaybookStep(id="look", description="Look.", expected_tools=["scan"])
        >>> enforcer = PlaybookEnforcer.from_playbook(Playbook(id="ir", name="R", steps=[step]))
        >>> heard = []
        >>> stop = enforcer.on_change(lambda event: heard.append(event.kind))
        >>> _ = enforcer.admit("scan"); stop(); enforcer.reset(); heard
        ['admitted']
        """
        return self._observers.add(observer)

    def live(self) -> None:
        """Show the plan in this cell, and keep it up to date there as calls come.

        There is one such view of a plan: shown in another cell, it goes on there, and what stands
        here stays as it was. Without a notebook, and under ``settings.static``, nothing is updated.
        """
        from runbook_nb._display import through

        through("live", self)

    def report(self) -> PlaybookReport:
        """Say what the run has come to by now; nothing is recorded."""
        with self._lock:
            return served_report(report_of(self._keeper), self._keeper.kept.text)

    def dump(self) -> dict[str, Any]:
        """Give everything that is known of the plan as JSON carries it; `load` reads it back."""
        with self._lock:
            return {"schema": SCHEMA, "events": [event.to_dict() for event in self._events]}

    # -- inside ----------------------------------------------------------------------------

    def _doing(self) -> _Doing:
        """Do something to the plan: alone, kept when it is done, told of when it is kept."""
        return _Doing(self)

    def _asking(self) -> _Doing:
        """Ask whether calls may be made; where the answer cannot be kept, they may not."""
        return _Doing(self, asking=True)

    def _take_back(self, events: Iterable[Event]) -> None:
        """Cancel the calls that were let through for somebody who gets no answer."""
        keeper = self._keeper
        for event in tuple(events):
            call = keeper.state.calls.get(getattr(event, "call_id", ""))
            if isinstance(event, Admitted) and call is not None and call.outcome is None:
                keeper.settle(event.call_id, "cancelled")

    def _done(self) -> None:
        """Keep what was done, before anybody hears of it; under the lock."""
        self._set_aside()
        self._keep()

    def _set_aside(self) -> None:
        """Take what was done among the events, to be kept with the next that are."""
        keeper = self._keeper
        made, keeper.made = keeper.made, []
        self._events.extend(made)
        self._unkept.extend(made)

    def _keep(self) -> None:
        """Write to the journal and leave to be told; what it does not take waits for the next."""
        if self._journal is not None:
            self._journal.append(tuple(self._unkept))
        self._observers.push(self._unkept)
        self._unkept = []

    def _current(self) -> StepTerms | None:
        place = self.plan.current_step_index
        steps = self._keeper.terms.steps
        return steps[place] if 0 <= place < len(steps) else None


class _Doing:
    """A ``with`` block in which something is done to a plan; a generator would cost more."""

    __slots__ = ("_asking", "_plan")

    def __init__(self, plan: HeldPlan, *, asking: bool = False) -> None:
        self._plan = plan
        self._asking = asking

    def __enter__(self) -> Keeper:
        plan = self._plan
        plan._lock.acquire()
        if not plan._depth:
            try:
                plan._keeper.now = settings.clock()
            except BaseException:
                plan._lock.release()
                raise
        plan._depth += 1
        return plan._keeper

    def __exit__(self, *raised: object) -> None:
        plan = self._plan
        plan._depth -= 1
        outermost = not plan._depth
        own = len(plan._events)
        made: Sequence[Event] = ()
        try:
            if outermost and plan._keeper.made:
                if self._asking and raised[0] is not None:
                    plan._take_back(plan._keeper.made)
                try:
                    plan._done()
                except BaseException:
                    if self._asking:
                        plan._take_back(plan._unkept)
                        plan._set_aside()
                    raise
                made = plan._events[own:] if self._asking else ()
        finally:
            if outermost:
                plan._keeper.now = None
            plan._lock.release()
        if outermost:
            self._tell(made)

    def _tell(self, made: Sequence[Event]) -> None:
        plan = self._plan
        try:
            plan._observers.tell()
        except BaseException:  # somebody stops the work while an observer draws
            if made:
                with plan._doing():
                    plan._take_back(made)
            raise
