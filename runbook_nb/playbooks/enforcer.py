"""Holding calls to a playbook: who may call what now, what closes a step, and what came of it.

A `PlaybookEnforcer` is the door to one plan. Every question and every report of a call goes through
one re-entrant lock; what happens is written to the journal before anybody hears of it, and told to
observers outside the lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from runbook_nb._ids import digest
from runbook_nb._json import canonical, to_wire
from runbook_nb._text import MISSING, did_you_mean, listed
from runbook_nb.errors import PlaybookError
from runbook_nb.playbooks.admission import Admission, Settlement
from runbook_nb.playbooks.brief import brief_of
from runbook_nb.playbooks.closing import stuck_reason
from runbook_nb.playbooks.eventkinds import Begun, Event, Finished, Resumed
from runbook_nb.playbooks.events import apply, from_dict, replay
from runbook_nb.playbooks.judging import Judgement, judge, quoted
from runbook_nb.playbooks.keeper import OUTCOMES, BatchCall, Keeper, read_batch
from runbook_nb.playbooks.model import (
    EnforcementResult,
    EnforcementViolation,
    Playbook,
    PlaybookPlan,
    PlaybookStep,
    RequiredProbe,
)
from runbook_nb.playbooks.policy import EnforcementPolicy
from runbook_nb.playbooks.report import PlaybookReport, report_of, score_of, unresolved_steps
from runbook_nb.playbooks.skills import effective_probes
from runbook_nb.playbooks.state import Call, PlanState
from runbook_nb.playbooks.summary import summary_of
from runbook_nb.playbooks.telling import Observer, Observers
from runbook_nb.playbooks.terms import StepTerms, Terms
from runbook_nb.playbooks.values import Kept
from runbook_nb.settings import settings

if TYPE_CHECKING:
    from runbook_nb.record.redact import Redact

#: What `PlaybookEnforcer.dump` says it is.
SCHEMA: Final = "runbook_nb/playbook-run/1"

Given = TypeVar("Given")


class Journal(Protocol):
    """What is asked of a journal."""

    def append(self, events: Sequence[Event], /) -> object:
        """Write events that happened together, all or none."""
        ...


class PlaybookEnforcer:
    """Holds calls to a playbook, and keeps the plan.

    Parameters
    ----------
    plan : PlaybookPlan
        The plan; `from_playbook` makes a new one.
    block_violations : bool
        Whether calls that go against the playbook are refused.
    record_violations : bool
        Whether what goes against it is recorded.
    skills : mapping of str to Skill, optional
        The skills, by the key steps name them by.
    policy : EnforcementPolicy, mapping or str, optional
        The rules; ``safe`` unless told otherwise.
    journal : PlaybookJournal, optional
        Keeps every event before anybody hears of it.
    observers : iterable of callable
        Each is called with every event.
    redact : Redact or mapping, optional
        What must not be seen in anything that is kept.
    key : str, optional
        The run it belongs to.

    Raises
    ------
    PlaybookDefinitionError
        The policy refuses something of the playbook.

    Examples
    --------
    >>> steps = [PlaybookStep(id="look", description="Look.", expected_tools=["scan"]),
    ...          PlaybookStep(id="act", description="Act.", expected_tools=["isolate"])]
    >>> book = Playbook(id="ir", name="Response", steps=steps)
    >>> enforcer = PlaybookEnforcer.from_playbook(book)
    >>> enforcer.admit("isolate", {"host": "web-1"}).allowed
    False
    >>> call = enforcer.admit("scan", {"host": "web-1"})
    >>> enforcer.settle(call, "ok").closed, enforcer.current_step.id
    (True, 'act')
    >>> enforcer.finish().verdict
    'incomplete'
    """

    def __init__(
        self,
        plan: PlaybookPlan,
        block_violations: bool = True,
        record_violations: bool = True,
        skills: Mapping[str, Any] | None = None,
        *,
        policy: EnforcementPolicy | Mapping[str, Any] | str | None = None,
        journal: Journal | None = None,
        observers: Iterable[Observer] = (),
        redact: Redact | Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> None:
        fresh = not plan.step_executions and plan.current_step_index == 0 and not plan.completed
        self._begin(
            plan,
            Begun(
                seq=1,
                at=plan.started_at if fresh else settings.clock(),
                playbook=plan.playbook,
                digest=digest_of(plan.playbook),
                policy=EnforcementPolicy.of(policy).to_dict(),
                skills=skill_facts(skills or {}),
                block=bool(block_violations),
                record=bool(record_violations),
                key=key,
                plan=None if fresh else plan.model_copy(deep=True),
            ),
            skills or {},
            (journal, observers, redact),
        )

    def _begin(
        self, plan: PlaybookPlan | None, begun: Begun, skills: Mapping[str, Any], around: Any
    ) -> None:
        state = apply(None, begun)
        if plan is not None:
            state.plan = plan  # the caller's own, so that it is seen to move
        self._set_up(state, skills, around)
        self._events.append(begun)
        self._keep([begun])
        self._observers.push([begun])
        self._observers.tell()

    def _set_up(self, state: PlanState, skills: Mapping[str, Any], around: Any) -> None:
        journal, observers, redact = around
        self._skills = dict(skills)
        terms = Terms(state.playbook, self._skills, state.policy)
        self._keeper = Keeper(terms, state, Kept(redact))
        self._events: list[Event] = []
        self._journal: Journal | None = journal
        self._unkept: list[Event] = []
        self._observers = Observers(observers)
        self._lock = threading.RLock()
        self._depth = 0
        #: Calls that are admitted if earlier calls of their batch succeed, by id.
        self._provisional: dict[str, tuple[str, Any, str | None, str | None]] = {}

    @classmethod
    def from_playbook(
        cls,
        playbook: Playbook | Mapping[str, Any],
        block_violations: bool = True,
        record_violations: bool = True,
        skills: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> PlaybookEnforcer:
        """Make a new plan of a playbook, and what holds calls to it.

        Parameters
        ----------
        playbook : Playbook or mapping
            The playbook.
        block_violations, record_violations, skills, **more
            As for the class.

        Examples
        --------
        >>> book = Playbook(id="ir", name="Response")
        >>> PlaybookEnforcer.from_playbook(book, policy="compat").policy.label
        'compat'
        """
        book = playbook if isinstance(playbook, Playbook) else Playbook.model_validate(playbook)
        plan = PlaybookPlan(playbook=book)
        return cls(plan, block_violations, record_violations, skills, **more)

    def __repr__(self) -> str:
        step = self.current_step
        where = f"at {step.id!r}" if step else "complete" if self.is_complete else "nowhere"
        return f"<PlaybookEnforcer {self.plan.playbook.id!r} {where}, {self.policy.label}>"

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
            return self._keeper.state.violations

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
        """Whether the current step is one that a person closes or approves."""
        step = self._current()
        return step is not None and step.person

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
        mode : {"plan", "step"}
            All steps, or the current one.
        """
        with self._lock:
            return brief_of(self._keeper, mode)

    # -- calls -----------------------------------------------------------------------------

    def admit(
        self,
        tool: str,
        arguments: Any = None,
        *,
        call_id: str | None = None,
        parent: str | None = None,
        batch: str | None = None,
    ) -> Admission:
        """Ask whether a call may be made; one that may has to be settled when it ended.

        Parameters
        ----------
        tool : str
            The tool.
        arguments : object
            What it is called with.
        call_id : str, optional
            What the call is named by; drawn otherwise.
        parent, batch : str, optional
            The call inside which it is made, and the reply it came in.

        Examples
        --------
        >>> step = PlaybookStep(id="look", description="Look.", expected_tools=["scan"])
        >>> book = Playbook(id="ir", name="Response", steps=[step])
        >>> PlaybookEnforcer.from_playbook(book).admit("scan").step_id
        'look'
        """
        with self._doing() as keeper:
            name = self._call_id(call_id)
            found = keeper.admit(name, tool, arguments, parent=parent, batch=batch)
            return self._admission(name, tool, found)

    def admit_batch(
        self,
        calls: Sequence[BatchCall],
        *,
        parent: str | None = None,
        batch: str | None = None,
    ) -> list[Admission]:
        """Ask about all calls of one reply, in order, before any of them is made.

        Under a policy that looks ahead, a call which could be made if the earlier ones succeed is
        let through provisionally: make such calls one after another, and ask `confirm` of each
        just before it is made.

        Parameters
        ----------
        calls : sequence of str, tuple or mapping
            Tools' names, ``(tool, arguments)``, or mappings with ``tool``, ``arguments`` and
            ``call_id``.
        parent : str, optional
            The call inside which they are made.
        batch : str, optional
            What the reply is named by.
        """
        with self._doing() as keeper:
            name = batch or f"batch-{keeper.state.seq + 1}"
            return [
                self._one_of_batch(ahead, tool, arguments, self._call_id(given), (parent, name))
                for ahead in [_Ahead(keeper)]
                for tool, arguments, given in read_batch(calls)
            ]

    def _one_of_batch(
        self, ahead: _Ahead, tool: str, arguments: Any, name: str, where: Any
    ) -> Admission:
        keeper, (parent, batch) = self._keeper, where
        found = judge(keeper.terms, keeper.state, tool, arguments)
        clean = found.allowed and found.violation is None
        if not clean and keeper.state.policy.lookahead and ahead.waiting:
            later = ahead.judge(name, tool, arguments)
            if later.allowed and later.violation is None:
                self._provisional[name] = (tool, arguments, parent, batch)
                ahead.waiting.append(name)
                return self._admission(name, tool, later, provisional=True)
        found = keeper.admit(name, tool, arguments, parent=parent, batch=batch)
        if found.allowed:
            ahead.admitted(name, tool, arguments)
        return self._admission(name, tool, found)

    def confirm(self, admission: Admission | str) -> Admission:
        """Ask again about a call of a batch just before it is made.

        Parameters
        ----------
        admission : Admission or str
            What `admit_batch` gave, or the id of the call. One that is not provisional is given
            back as it is.
        """
        if isinstance(admission, Admission) and not admission.provisional:
            return admission
        name = admission if isinstance(admission, str) else admission.call_id
        with self._doing() as keeper:
            waiting = self._provisional.pop(name, None)
            if waiting is None:
                raise PlaybookError(
                    f"the call {name!r} waits for no confirmation",
                    code="unknown_call",
                    where=name,
                    fix="confirm a provisional admission of admit_batch() once",
                )
            tool, arguments, parent, batch = waiting
            found = keeper.admit(name, tool, arguments, parent=parent, batch=batch)
            return self._admission(name, tool, found)

    def settle(
        self,
        call: Admission | str,
        outcome: str = "ok",
        result: Any = None,
        error: Any = None,
        *,
        arguments: Any = None,
    ) -> Settlement:
        """Tell what came of a call that was let through.

        Parameters
        ----------
        call : Admission or str
            What `admit` gave, or the id of the call.
        outcome : {"ok", "error", "cached", "retried", "cancelled"}
            ``retried`` is a success after attempts that failed; it may also follow a failure that
            was told of already.
        result : object
            What it gave; read by checks on results.
        error : str or BaseException, optional
            What it failed with.
        arguments : object
            What it was really called with, where that changed on the way.

        Raises
        ------
        PlaybookError
            The call was never let through, or is settled; there is no such outcome.
        """
        if outcome not in OUTCOMES:
            raise PlaybookError(
                f"a call cannot come to {outcome!r}",
                code="bad_outcome",
                where="outcome",
                fix=did_you_mean(str(outcome), OUTCOMES) or f"use {listed(OUTCOMES, 'or')}",
            )
        name = call if isinstance(call, str) else call.call_id
        with self._doing() as keeper:
            if name in self._provisional:
                self._settle_unconfirmed(name)
            noted = len(keeper.state.noted)
            closed = keeper.settle(name, outcome, result, error, arguments)
            filed = keeper.state.calls[name].step_id
            told = tuple(one.violation for one in keeper.state.noted[noted:])
            return Settlement(closed=closed, step_id=filed, violations=told)

    def _settle_unconfirmed(self, name: str) -> None:
        """Take in a provisional call that was made without asking again."""
        admission = self.confirm(name)
        if not admission.allowed:
            raise PlaybookError(
                f"the call {name!r} was let through only if earlier calls of its batch succeed, "
                f"and was made without asking again: {admission.hints or admission.step_id}",
                code="not_confirmed",
                where=name,
                fix="ask confirm() of a provisional admission just before the call is made",
            )

    def validate_tool_call(self, tool_name: str) -> EnforcementResult:
        """Judge the name of a call; what it goes against is recorded, and nothing else happens.

        Parameters
        ----------
        tool_name : str
            The tool.
        """
        with self._doing() as keeper:
            name = self._call_id(None)
            return self._admission(name, tool_name, keeper.check(name, tool_name)).result

    def record_tool_call(
        self, tool_name: str, *, arguments: Any = None, result: Any = None
    ) -> None:
        """File a call that was made under the current step; it is not judged and closes nothing.

        Parameters
        ----------
        tool_name : str
            The tool.
        arguments : object
            What it was called with.
        result : object
            Accepted, and never evidence.
        """
        with self._doing() as keeper:
            keeper.record(self._call_id(None), tool_name, arguments)

    # -- steps -----------------------------------------------------------------------------

    def complete_current_step(self, result: str | None = None) -> bool:
        """Close the step at the pointer; say whether a further step is current now.

        Parameters
        ----------
        result : str, optional
            What it is closed with.
        """
        with self._doing() as keeper:
            step = self._current()
            if step is None:
                return False
            keeper.close(step, by="host", result=result)
            return self._current() is not None

    def skip_current_step(self, reason: str | None = None) -> bool:
        """Pass over the step at the pointer, if it is optional; say whether that was done.

        Parameters
        ----------
        reason : str, optional
            Why.
        """
        with self._doing() as keeper:
            step = self._current()
            if step is None or step.step.required:
                return False
            keeper.skip(step, reason, by="host")
            return True

    def fail_current_step(self, error: str) -> None:
        """Mark the step at the pointer as failed; it stays current.

        Parameters
        ----------
        error : str
            What it failed with.
        """
        with self._doing() as keeper:
            step = self._current()
            if step is not None:
                keeper.fail(step, error, by="host")

    def complete(self, step: str | PlaybookStep, by: str, note: str = "") -> None:
        """Close a step as a person.

        Calls of its tools that were made too early count as its own.

        Parameters
        ----------
        step : str or PlaybookStep
            The step: the current one or, where steps interleave, any that is open.
        by : str
            Who closes it.
        note : str
            What there is to say.

        Raises
        ------
        PlaybookError
            There is no such step, it is not its turn, nobody is named, or it has to be approved.
        """
        with self._doing() as keeper:
            found = self._step_of(step, by)
            facts = keeper.state.facts_of(found.id)
            if found.step.kind == "approval" and not facts.approvals:
                raise PlaybookError(
                    f"step {quoted(found.id)} has to be approved before it can be closed",
                    code="approval_missing",
                    where=found.id,
                    fix=f"call approve({found.id!r}, by=…)",
                )
            keeper.close(found, by="person", who=by, note=note, result=note or None)

    def approve(self, step: str | PlaybookStep, by: str, note: str = "") -> None:
        """Approve a step of kind ``approval`` as a person; one without tools closes with it.

        Parameters
        ----------
        step : str or PlaybookStep
            The step.
        by : str
            Who approves it.
        note : str
            What there is to say.

        Raises
        ------
        PlaybookError
            There is no such step, it is not its turn, nobody is named, or it needs no approval.
        """
        with self._doing() as keeper:
            found = self._step_of(step, by)
            if found.step.kind != "approval":
                raise PlaybookError(
                    f"step {quoted(found.id)} is not one that is approved",
                    code="not_an_approval",
                    where=found.id,
                    fix="close it with complete(), or give it kind: approval",
                )
            keeper.approve(found, by, note)

    def reset(self) -> None:
        """Set the plan back to its beginning."""
        with self._doing() as keeper:
            self._provisional.clear()
            keeper.reset()

    def check_time(self) -> None:
        """Look whether a step has taken longer than it may: what a timer calls."""
        with self._doing() as keeper:
            keeper.watch_time()

    def finish(self) -> PlaybookReport:
        """End the run, note every required step that is not done, and say what it comes to.

        Optional steps that are all that is left are passed over under a policy that lets them be.
        A plan that goes on afterwards can be finished again.
        """
        with self._doing() as keeper:
            keeper.watch_time()
            terms, state = keeper.terms, keeper.state
            left = [one for one in terms.steps if one.index not in state.closed]
            if state.policy.optional == "passable" and not any(o.step.required for o in left):
                for one in left:
                    keeper.skip(one, "passed over: the run ended", by="calls")
            for one in unresolved_steps(keeper):
                keeper.note_unresolved(one)
            report = report_of(keeper)
            event = Finished(
                seq=state.seq + 1,
                at=settings.clock(),
                verdict=report.verdict,
                unresolved=report.unresolved,
                unmatched=report.unmatched,
            )
            apply(state, event)
            keeper.made.append(event)
            return report

    def report(self) -> PlaybookReport:
        """Say what the run has come to by now; nothing is recorded."""
        with self._lock:
            return report_of(self._keeper)

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
        >>> step = PlaybookStep(id="look", description="Look.", expected_tools=["scan"])
        >>> enforcer = PlaybookEnforcer.from_playbook(Playbook(id="ir", name="R", steps=[step]))
        >>> heard = []
        >>> stop = enforcer.on_change(lambda event: heard.append(event.kind))
        >>> _ = enforcer.admit("scan"); stop(); enforcer.reset(); heard
        ['admitted']
        """
        return self._observers.add(observer)

    def dump(self) -> dict[str, Any]:
        """Give everything that is known of the plan as JSON carries it; `load` reads it back."""
        with self._lock:
            return {"schema": SCHEMA, "events": [event.to_dict() for event in self._events]}

    @classmethod
    def load(
        cls,
        dumped: Mapping[str, Any],
        skills: Mapping[str, Any] | None = None,
        *,
        journal: Journal | None = None,
        observers: Iterable[Observer] = (),
        redact: Redact | Mapping[str, Any] | None = None,
    ) -> PlaybookEnforcer:
        """Take a plan up again from what `dump` gave.

        Calls that were running then are cancelled: what came of them is not known.

        Parameters
        ----------
        dumped : mapping
            What `dump` gave.
        skills : mapping of str to Skill, optional
            The skills; what acted of them is in the dump, and has to be the same.
        journal, observers, redact
            As for the class; they are not dumped.

        Raises
        ------
        PlaybookError
            It is no such dump, or a skill is not what it was.

        Examples
        --------
        >>> step = PlaybookStep(id="look", description="Look.", expected_tools=["scan"])
        >>> enforcer = PlaybookEnforcer.from_playbook(Playbook(id="ir", name="R", steps=[step]))
        >>> enforcer.admit("format_disk").allowed
        False
        >>> again = PlaybookEnforcer.load(enforcer.dump())
        >>> again.plan == enforcer.plan, again.violations == enforcer.violations
        (True, True)
        """
        if dumped.get("schema") != SCHEMA or not isinstance(dumped.get("events"), list):
            raise PlaybookError(
                "this is no dump of a plan",
                code="bad_dump",
                where="schema",
                fix=f"give what PlaybookEnforcer.dump() gave, of schema {SCHEMA!r}",
            )
        events = [from_dict(one) for one in dumped["events"]]
        return cls._again(events, skills, (journal, observers, redact), always=False)

    @classmethod
    def resume(
        cls,
        journal: Any,
        skills: Mapping[str, Any] | None = None,
        *,
        observers: Iterable[Observer] = (),
        redact: Redact | Mapping[str, Any] | None = None,
    ) -> PlaybookEnforcer:
        """Take a plan up again from its journal, and go on writing to it.

        Parameters
        ----------
        journal : PlaybookJournal
            What kept the plan; anything whose ``events()`` gives its events.
        skills, observers, redact
            As for `load`.

        Raises
        ------
        PlaybookError
            It holds no plan, or a skill is not what it was.
        """
        events = list(journal.events())
        return cls._again(events, skills, (journal, observers, redact), always=True)

    @classmethod
    def _again(
        cls, events: list[Event], skills: Mapping[str, Any] | None, around: Any, *, always: bool
    ) -> PlaybookEnforcer:
        state = replay(events)
        begun = events[0]
        facts = begun.skills if isinstance(begun, Begun) else {}
        enforcer = cls.__new__(cls)
        enforcer._set_up(state, skills_from(facts) if skills is None else skills, around)
        if skills is not None:
            _same_skills(facts, skill_facts(skills))
        enforcer._events.extend(events)
        running = tuple(call.call_id for call in state.calls.values() if call.outcome is None)
        if always or running:
            with enforcer._doing() as keeper:
                event = Resumed(
                    seq=state.seq + 1, at=settings.clock(), after=state.seq, cancelled=running
                )
                apply(state, event)
                keeper.made.append(event)
        return enforcer

    # -- inside ----------------------------------------------------------------------------

    @contextmanager
    def _doing(self) -> Iterator[Keeper]:
        """Do something to the plan: alone, kept when it is done, told of when it is kept."""
        keeper = self._keeper
        try:
            with self._lock:
                self._depth += 1
                try:
                    yield keeper
                finally:
                    self._depth -= 1
                    if not self._depth and keeper.made:
                        made, keeper.made = keeper.made, []
                        self._events.extend(made)
                        self._observers.push(made)
                        self._keep(made)
        finally:
            if not self._depth:
                self._observers.tell()

    def _keep(self, events: list[Event]) -> None:
        """Write to the journal; what it does not take waits, and is written before what follows."""
        if self._journal is None:
            return
        self._unkept.extend(events)
        self._journal.append(list(self._unkept))
        self._unkept.clear()

    def _call_id(self, given: str | None) -> str:
        calls = self._keeper.state.calls
        if given is None:
            name = f"call-{self._keeper.state.seq + 1}"
        elif given in self._provisional or (given in calls and calls[given].outcome is None):
            raise PlaybookError(
                f"there is a call {given!r} that has not ended",
                code="call_id_taken",
                where=given,
                fix="give each call an id of its own, or settle the first",
            )
        else:
            name = given
        place = 2
        while name in calls or (given is None and name in self._provisional):
            name, place = f"{given or 'call'}~{place}", place + 1
        return name

    def _admission(
        self, name: str, tool: str, found: Judgement, *, provisional: bool = False
    ) -> Admission:
        step = None if found.index is None else self._keeper.terms.steps[found.index].step
        state = self._keeper.state
        return Admission(
            name,
            tool,
            found,
            step,
            at=settings.clock() if found.violation is not None else self.plan.started_at,
            told=state.record,
            seq=None if provisional else state.seq,
            provisional=provisional,
        )

    def _current(self) -> StepTerms | None:
        place = self.plan.current_step_index
        steps = self._keeper.terms.steps
        return steps[place] if 0 <= place < len(steps) else None

    def _step_of(self, step: str | PlaybookStep, by: str) -> StepTerms:
        """Give the terms of a step that a person acts on."""
        name = step if isinstance(step, str) else step.id
        terms, state = self._keeper.terms, self._keeper.state
        if not isinstance(by, str) or not by.strip():
            raise PlaybookError(
                f"nobody is named who acts on step {quoted(name)}",
                code="nobody_named",
                where="by",
                fix="give by= the name of the person",
            )
        found = [one for one in terms.steps if one.id == name]
        if not found:
            raise PlaybookError(
                f"the playbook has no step {quoted(name)}",
                code="no_such_step",
                where=name,
                fix=did_you_mean(name, terms.by_id) or "give the id of a step",
            )
        current = self._current()
        here = [one for one in found if one is current] or [
            one for one in found if terms.interleaved and one.index not in state.closed
        ]
        if not here:
            now = "the playbook is complete" if current is None else f"now is {quoted(current.id)}"
            raise PlaybookError(
                f"it is not the turn of step {quoted(name)}: {now}",
                code="not_its_turn",
                where=name,
                fix="act on the current step",
            )
        return here[0]


class _Ahead:
    """A batch as it would be if its calls succeeded."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._fork: Keeper | None = None
        #: The calls let through so far that the copy has not seen succeed.
        self.waiting: list[str] = []

    def admitted(self, name: str, tool: str, arguments: Any) -> None:
        """Take in a call that was let through."""
        self.waiting.append(name)
        if self._fork is not None:
            self._fork.admit(name, tool, arguments)

    def judge(self, name: str, tool: str, arguments: Any) -> Judgement:
        """Judge a call as if those before it had succeeded; one let through counts as made."""
        if self._fork is None:
            self._fork = self._keeper.fork()
        fork = self._fork
        for one in self.waiting:
            if fork.state.calls[one].outcome is None:
                fork.settle(one)
        found = judge(fork.terms, fork.state, tool, arguments)
        if found.allowed and found.violation is None:
            fork.admit(name, tool, arguments)
        return found


def digest_of(playbook: Playbook) -> str:
    """Give a digest of a playbook's content.

    Examples
    --------
    >>> len(digest_of(Playbook(id="ir", name="Response")))
    72
    """
    return digest(canonical(to_wire(playbook.model_dump())))


def skill_facts(skills: Mapping[str, Any]) -> dict[str, Any]:
    """Give what acts of each skill, with a digest of it.

    Examples
    --------
    >>> from runbook_nb.playbooks.skills import Skill
    >>> skill_facts({"siem": Skill("siem", "Logs.", allowed_tools=["scan"])})["siem"]["allowed_tools"]
    ['scan']
    """
    facts: dict[str, Any] = {}
    for name, skill in skills.items():
        if skill is None:
            continue
        allowed = getattr(skill, "allowed_tools", None)
        told = {
            "allowed_tools": None if allowed is None else [str(one) for one in allowed],
            "required_probes": [
                {
                    "name": probe.name,
                    "match": probe.match,
                    "description": getattr(probe, "description", ""),
                }
                for probe in getattr(skill, "required_probes", None) or ()
            ],
            "min_tool_calls": getattr(skill, "min_tool_calls", None),
            "max_tool_calls": getattr(skill, "max_tool_calls", None),
        }
        facts[str(name)] = {**told, "digest": digest(canonical(to_wire(told)))}
    return facts


def skills_from(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Make skills again of what acted of them.

    Examples
    --------
    >>> from runbook_nb.playbooks.skills import Skill
    >>> facts = skill_facts({"siem": Skill("siem", "Logs.", allowed_tools=["scan"])})
    >>> skills_from(facts)["siem"].allowed_tools
    ['scan']
    """
    return {
        name: SimpleNamespace(
            name=name,
            allowed_tools=told["allowed_tools"],
            required_probes=[
                RequiredProbe.model_construct(**one) for one in told["required_probes"]
            ],
            min_tool_calls=told["min_tool_calls"],
            max_tool_calls=told["max_tool_calls"],
        )
        for name, told in facts.items()
    }


def _same_skills(kept: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    other = sorted(
        name
        for name in kept.keys() | given.keys()
        if kept.get(name, {}).get("digest") != given.get(name, {}).get("digest")
    )
    if other:
        raise PlaybookError(
            f"what {listed(map(quoted, other))} allows and asks for is not what it was",
            code="skill_changed",
            where="skills",
            fix="give the skills the plan was begun with, or none",
        )
