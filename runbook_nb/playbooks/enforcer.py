"""Holding calls to a playbook: who may call what now, what closes a step, and what came of it.

A `PlaybookEnforcer` is the door to one plan. Every question and every report of a call goes through
one re-entrant lock; what happens is written to the journal before anybody hears of it, and told to
observers outside the lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from runbook_nb.errors import PlaybookError
from runbook_nb.playbooks.admission import Admission, Settlement
from runbook_nb.playbooks.batch import Ahead, BatchCall, read_batch
from runbook_nb.playbooks.begun import digest_of, refuse_other_skills, skill_facts, skills_from
from runbook_nb.playbooks.eventkinds import Begun, Event
from runbook_nb.playbooks.events import apply, from_dict, replay
from runbook_nb.playbooks.held import SCHEMA, Journal
from runbook_nb.playbooks.judging import Judgement, judge
from runbook_nb.playbooks.keeper import checked_outcome
from runbook_nb.playbooks.model import (
    EnforcementResult,
    Playbook,
    PlaybookPlan,
)
from runbook_nb.playbooks.policy import EnforcementPolicy
from runbook_nb.playbooks.shown import Followed
from runbook_nb.playbooks.state import PlanState
from runbook_nb.playbooks.stepping import HeldSteps
from runbook_nb.playbooks.telling import Observer
from runbook_nb.playbooks.values import Kept
from runbook_nb.settings import settings

if TYPE_CHECKING:
    from runbook_nb.record.redact import Redact


class PlaybookEnforcer(HeldSteps, Followed):
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
    >>> from runbook_nb.playbooks import PlaybookStep
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
        begun = Begun(
            seq=1,
            at=plan.started_at if fresh else settings.clock(),
            # A copy: what is held to stays as it was begun, whatever becomes of the caller's lists.
            playbook=plan.playbook.model_copy(deep=True),
            digest=digest_of(plan.playbook),
            policy=EnforcementPolicy.of(policy).to_dict(),
            skills=skill_facts(skills or {}),
            block=bool(block_violations),
            record=bool(record_violations),
            key=key if key is not None else getattr(journal, "key", None),
            hides=Kept(redact).hides,
            plan=None if fresh else plan.model_copy(deep=True),
        )
        state = apply(None, begun)
        state.plan = plan  # the caller's own, so that it is seen to move
        self._set_up(state, skills or {}, (journal, observers, redact), begun.playbook)
        with self._doing() as keeper:
            keeper.made.append(begun)

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
        >>> from runbook_nb.playbooks import PlaybookStep
        >>> step = PlaybookStep(id="look", description="Look.", expected_tools=["scan"])
        >>> book = Playbook(id="ir", name="Response", steps=[step])
        >>> PlaybookEnforcer.from_playbook(book).admit("scan").step_id
        'look'
        """
        with self._asking() as keeper:
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
        waiting = set(self._provisional)
        try:
            with self._asking() as keeper:
                name = batch or f"batch-{keeper.state.seq + 1}"
                ahead = Ahead(keeper)
                return [
                    self._one_of_batch(ahead, tool, arguments, self._call_id(given), (parent, name))
                    for tool, arguments, given in read_batch(calls)
                ]
        except BaseException:  # nobody has an answer, so none of them waits for confirmation
            for one in self._provisional.keys() - waiting:
                del self._provisional[one]
            raise

    def _one_of_batch(
        self, ahead: Ahead, tool: str, arguments: Any, name: str, where: Any
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

        Raises
        ------
        PlaybookError
            ``unknown_call``: no such call waits for it.
        """
        if isinstance(admission, Admission) and not admission.provisional:
            return admission
        name = admission if isinstance(admission, str) else admission.call_id
        with self._asking() as keeper:
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
        checked_outcome(outcome)
        name = call if isinstance(call, str) else call.call_id
        with self._doing() as keeper:
            if not isinstance(call, str):
                self._refuse_other(call)
            if name in self._provisional:
                self._settle_unconfirmed(name)
            noted = len(keeper.state.noted)
            closed = keeper.settle(name, outcome, result, error, arguments)
            filed = keeper.state.calls[name].step_id
            told = tuple(one.violation for one in keeper.state.noted[noted:])
            return Settlement(closed=closed, step_id=filed, violations=told)

    def _refuse_other(self, admission: Admission) -> None:
        """Refuse an admission that is not of this plan, or of before it was set back."""
        call = self._keeper.state.calls.get(admission.call_id)
        if call is None or admission.provisional or admission.is_of(call):
            return
        raise PlaybookError(
            f"the call {admission.call_id!r} of this plan is another than the one admitted as that",
            code="other_call",
            where=admission.call_id,
            fix="settle an admission in the plan that gave it, and before that is set back",
        )

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

    # -- keeping ---------------------------------------------------------------------------

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

        Calls that were running then are open: what came of them is not known; see `resume`.

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
            It is no such dump, a skill is not what it was, or nothing would be hidden any more.

        Examples
        --------
        >>> from runbook_nb.playbooks import PlaybookStep
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
        return cls._again(events, skills, (journal, observers, redact), None)

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

        The plan, the violations and what acted of the skills are what they were. Calls that were
        running when the journal was left are open, and named by the event ``resumed``: what came
        of them is not known, so that they still take their places under a cap. Whoever finds out
        tells it by `settle`, ``"cancelled"`` where it never happened. Was the end of the journal
        broken off, the event says so.

        Parameters
        ----------
        journal : PlaybookJournal
            What kept the plan; anything whose ``events()`` gives its events.
        skills, observers, redact
            As for `load`.

        Raises
        ------
        PlaybookError
            It holds no plan, is damaged, or kept by another (`JournalError`); a skill is not what
            it was; nothing would be hidden any more.
        """
        events = list(journal.events())
        torn = str(getattr(journal, "torn", ""))
        return cls._again(events, skills, (journal, observers, redact), torn)

    @classmethod
    def _again(
        cls, events: list[Event], skills: Mapping[str, Any] | None, around: Any, torn: str | None
    ) -> PlaybookEnforcer:
        state = replay(events)
        if getattr(events[0], "hides", False) and not Kept(around[2]).hides:
            raise PlaybookError(
                "something was hidden in what was kept of the plan, and nothing would be from now",
                code="redaction_missing",
                where="redact",
                fix="give redact= as when the plan was begun",
            )
        if skills is not None:
            refuse_other_skills(state.skills, skill_facts(skills))
        enforcer = cls._of_state(state, skills, around)
        enforcer._events.extend(events)
        if torn is not None or any(call.outcome is None for call in state.calls.values()):
            enforcer._take_up(torn or "")
        return enforcer

    @classmethod
    def _of_state(
        cls, state: PlanState, skills: Mapping[str, Any] | None = None, around: Any = None
    ) -> PlaybookEnforcer:
        """Give an enforcer of a plan as it stands; nothing is noted."""
        enforcer = cls.__new__(cls)
        known = skills_from(state.skills) if skills is None else skills
        enforcer._set_up(state, known, around or (None, (), None))
        return enforcer

    def _take_up(self, torn: str) -> None:
        """Note that the plan is taken up again."""
        with self._doing() as keeper:
            keeper.resume(torn)

    # -- inside ----------------------------------------------------------------------------

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
        first, place = name, 2
        while name in calls or name in self._provisional:
            name, place = f"{first}~{place}", place + 1
        return name

    def _admission(
        self, name: str, tool: str, found: Judgement, *, provisional: bool = False
    ) -> Admission:
        terms = self._keeper.terms.at(found.index)
        state = self._keeper.state
        call = state.calls.get(name)
        kept, shown = self._keeper.kept, None
        if kept.hides:  # what is told of a refusal stands in notebooks
            hints = tuple(map(kept.text, found.hints))
            found = replace(found, message=kept.text(found.message), hints=hints)
            shown = kept.text(tool)
        return Admission(
            name,
            tool,
            found,
            None if terms is None else terms.step,
            shown=shown,
            at=self._keeper.moment(),
            told=state.record,
            seq=call.seq if call is not None and not provisional else None,
            provisional=provisional,
        )
