"""One playbook, or a choice of them, held over every run of an agent.

Playbooks layer. A hook turns what any agent framework tells before and after a tool call into
admissions and settlements of the plan that the call belongs to. It knows no framework: events are
objects with a few attributes, and code that needs no events calls `admit`, or enters `calling`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal
from warnings import warn

from runbook_nb._display import Renderable
from runbook_nb._sync import is_awaitable
from runbook_nb.errors import NoPlan, PlaybookDefinitionError, PlaybookError
from runbook_nb.playbooks.frames import Frame, entered, here, note_last, plan_of
from runbook_nb.playbooks.listening import Listening
from runbook_nb.playbooks.loader import load_playbook
from runbook_nb.playbooks.options import checked_number, checked_word, discard
from runbook_nb.playbooks.problems import PlaybookWarning
from runbook_nb.playbooks.scopes import NO_RUN, SCOPES, Closed, Plans, RunInfo, Seat, key_of
from runbook_nb.playbooks.tickets import Body, Ticket, refusal_of_closed
from runbook_nb.settings import settings
from runbook_nb.tools.context import new_call_id

if TYPE_CHECKING:
    from runbook_nb._view import Card
    from runbook_nb.playbooks.enforcer import PlaybookEnforcer
    from runbook_nb.playbooks.model import Playbook
    from runbook_nb.playbooks.policy import EnforcementPolicy
    from runbook_nb.playbooks.report import PlaybookReport

#: Chooses the playbook of a run; None leaves the run alone.
Select = Callable[[RunInfo], "Playbook | None"]

#: What is told to a model of the playbook.
INJECTED: Final = ("none", "step", "plan")

#: What is done about a playbook that cannot come to its end.
LINTS: Final = ("warn", "raise", "off")


class PlaybookEnforcerHook(Listening, Renderable):
    """Holds the tool calls of an agent's runs to a playbook.

    Parameters
    ----------
    playbook : Playbook or mapping, optional
        The playbook of every run.
    select : callable, optional
        ``(RunInfo)``: chooses the playbook of a run, once; None leaves the run alone. When it
        raises, every call of that run is refused. Exactly one of both must be given.
    block_violations, record_violations : bool
        Whether violations refuse calls, and whether they are noted.
    skills : mapping, optional
        Skills by the names that steps use.
    scope : {"run", "thread", "agent"}
        What shares a plan.
    max_runs : int
        How many plans are kept; what happens beyond is the policy's rule ``eviction``.
    priority : int
        Where it stands among other hooks, for frameworks that order by it.
    policy : EnforcementPolicy, mapping or str, optional
        The rules a plan is held to; ``"safe"`` by default.
    journal : callable, optional
        ``(key)``: gives the journal of a run's plan. A plan that it holds already is taken up
        again, so that a run outlives its process, and a plan that had to make room comes back.
    observers : iterable of callable
        Hear every event of every plan.
    redact : Redact, optional
        What may not be recorded.
    inject : {"none", "step", "plan"}
        What `brief` gives for the prompt.
    tools : Toolbox or iterable of tools or names, optional
        The tools that exist, for the lint.
    lint : {"warn", "raise", "off"}
        What is done about a playbook that cannot come to its end as written: `PlaybookWarning`,
        an error, or nothing, as under the profile ``compat``.

    Raises
    ------
    PlaybookDefinitionError
        One of these cannot be as given.

    Examples
    --------
    >>> from runbook_nb.playbooks import Playbook, PlaybookStep, ToolEvent
    >>> step = PlaybookStep(id="look", description="Look.", expected_tools=["search"])
    >>> hook = PlaybookEnforcerHook(Playbook(id="ir", name="Response", steps=[step]))
    >>> event = ToolEvent(tool_name="delete_host", run_id="r1")
    >>> hook.before(event).allowed, event.refusal.code
    (False, 'unexpected_tool')
    >>> event.cancel[:26]
    'PlaybookEnforcer blocked: '
    """

    name: Final = "PlaybookEnforcerHook"

    def __init__(
        self,
        playbook: Playbook | Mapping[str, Any] | None = None,
        *,
        select: Select | None = None,
        block_violations: bool = True,
        record_violations: bool = True,
        skills: Mapping[str, Any] | None = None,
        scope: str = "run",
        max_runs: int = 1024,
        priority: int = 50,
        policy: EnforcementPolicy | Mapping[str, Any] | str | None = None,
        journal: Callable[[str], Any] | None = None,
        observers: Iterable[Callable[[Any], object]] = (),
        redact: Any = None,
        inject: str = "none",
        tools: Any = None,
        lint: str = "warn",
    ) -> None:
        from runbook_nb.playbooks.policy import EnforcementPolicy

        if (playbook is None) == (select is None):
            given = "neither" if playbook is None else "both"
            raise PlaybookDefinitionError(
                f"a hook takes a playbook or a selector; {given} was given",
                code="playbook_or_select",
                where="playbook",
                fix="give playbook= for all runs, or select= to choose one for each",
            )
        if select is not None and not callable(select):
            raise PlaybookDefinitionError(
                f"select cannot be {select!r}", where="select", fix="give a function of RunInfo"
            )
        self._scope = checked_word("scope", scope, SCOPES)
        self.inject = checked_word("inject", inject, INJECTED)
        self._lint = checked_word("lint", lint, LINTS)
        self.block_violations = bool(block_violations)
        self.record_violations = bool(record_violations)
        self.max_runs = checked_number("max_runs", max_runs, 1)
        self.priority = checked_number("priority", priority, None)
        self.policy = EnforcementPolicy.of(policy)
        self._select = select
        self._skills = skills
        self._journal = journal
        self._observers = tuple(observers)
        self._redact = redact
        self._tools = tools
        self._journals: weakref.WeakKeyDictionary[PlaybookEnforcer, Any] = (
            weakref.WeakKeyDictionary()
        )
        # Plans that had to go and may still be written to, by a call that was running then.
        self._lent: weakref.WeakValueDictionary[str, PlaybookEnforcer] = (
            weakref.WeakValueDictionary()
        )
        self._looked_over: set[tuple[str, str]] = set()
        refuse = self.policy.eviction == "refuse"
        self._plans = Plans(
            self._make,
            most=self.max_runs,
            spare_live=refuse,
            refuse_evicted=refuse and journal is None,
            dropped=self._let_go,
        )
        self._playbook = None if playbook is None else load_playbook(playbook)
        if self._playbook is not None:  # what is wrong with it is said here, not later
            self._new(self._playbook)
            self._look_over(self._playbook)

    @classmethod
    def over(cls, enforcer: PlaybookEnforcer) -> PlaybookEnforcerHook:
        """Give a hook over one plan that is there already; every call belongs to it.

        Parameters
        ----------
        enforcer : PlaybookEnforcer
            The plan, and what holds calls to it.
        """
        hook = cls.__new__(cls)
        hook._scope, hook.inject = "agent", "none"
        hook.block_violations = enforcer.block_violations
        hook.record_violations = enforcer.record_violations
        hook.max_runs, hook.priority = 1, 50
        hook.policy = enforcer.policy
        hook._select = hook._skills = hook._journal = hook._redact = hook._tools = None
        hook._observers = ()
        hook._journals, hook._lent = weakref.WeakKeyDictionary(), weakref.WeakValueDictionary()
        hook._lint, hook._looked_over = "off", set()
        hook._playbook = enforcer.plan.playbook
        hook._plans = Plans(hook._make, most=1)
        hook._plans.put(NO_RUN, enforcer)
        return hook

    # -- plans -----------------------------------------------------------------------------

    @property
    def scope(self) -> str:
        """What shares a plan: ``run``, ``thread`` or ``agent``."""
        return self._scope

    @property
    def playbook(self) -> Playbook | None:
        """The playbook of every run; None where one is chosen for each."""
        return self._playbook

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the runs that are kept, the least recently used first."""
        return tuple(self._plans)

    @property
    def evicted(self) -> int:
        """How many runs are refused because their unfinished plan had to be dropped."""
        return self._plans.evicted

    @property
    def enforcer(self) -> PlaybookEnforcer:
        """The enforcer of the run that was heard of last.

        Raises
        ------
        NoPlan
            Nothing is enforced there; it is a `LookupError`.
        """
        key = self._plans.latest
        if key is None and self._select is None:
            key = NO_RUN
            self._plans.of(key, RunInfo)
        found = None if key is None else self.enforcer_for(key)
        if found is None:
            raise NoPlan(
                "no call was heard of yet"
                if key is None
                else f"run {key!r}, heard of last, is not held to a playbook",
                where="enforcer",
                fix="ask enforcer_for(key) with one of .keys",
            )
        return found

    def enforcer_for(self, key: str) -> PlaybookEnforcer | None:
        """Give the enforcer of a run, a ``"thread:<id>"`` or ``"__no_run__"``; None without one."""
        return plan_of(self._plans.peek(key))

    def finish(self, key: str | None = None) -> PlaybookReport | None:
        """Say that a run has ended: its plan is concluded, and leaves before others.

        Parameters
        ----------
        key : str, optional
            Which; by default the one heard of last.

        Returns
        -------
        PlaybookReport or None
            What the plan comes to; None where the run was not held to one.
        """
        key = self._plans.latest if key is None else key
        if key is None:
            return None
        found = self.enforcer_for(key)
        report = None if found is None else found.finish()
        self._plans.end(key)
        if found is not None and found in self._journals:
            self._journals[found].close()
        return report

    def release(self, key: str) -> None:
        """Forget a run, its plan and whether it was dropped.

        Its next call begins anew, or where its journal ends.
        """
        self._plans.release(key)
        self._lent.pop(key, None)

    def brief(self, key: str | None = None) -> str:
        """Give what is to be told to the model about the playbook; as ``inject`` says."""
        found = self.enforcer_for(key) if key is not None else None
        if self.inject == "none" or found is None:
            return ""
        text: str = found.brief(mode=self.inject)
        return text

    def view(self) -> Card:
        """Show the runs that are kept."""
        from runbook_nb.playbooks.hook_card import hook_card

        return hook_card(self, self._plans.seats())

    def _make(self, run: RunInfo) -> Any:
        key = key_of(self._scope, run.run_id, run.thread_id)
        try:
            chosen = self._playbook if self._select is None else self._select(run)
            if is_awaitable(chosen):
                discard(chosen)
                raise TypeError("the selector is async, and is asked where nothing can be awaited")
            playbook = None if chosen is None else load_playbook(chosen)
        except Exception as error:
            hint = "A person has to mend the selector and start the run again."
            return _closed("selector_failed", "playbook", "chosen", hint, error)
        if playbook is None:
            return None
        try:
            if self._select is not None:
                self._look_over(playbook)
            enforcer = self._begun(playbook, key)
        except Exception as error:
            hint = "A person has to see to what keeps it, and start the run again."
            return _closed("plan_failed", "plan", "begun", hint, error)
        note_last(enforcer)
        return enforcer

    def _begun(self, playbook: Playbook, key: str) -> PlaybookEnforcer:
        if self._journal is None:
            return self._new(playbook, key, observers=self._observers)
        lent = self._lent.pop(key, None)
        if lent is not None:  # its journal has one writer, and that is this one
            return lent
        journal = self._journal(key)
        try:
            if len(journal):
                plan = self._again(playbook, key, journal)
            else:
                plan = self._new(playbook, key, observers=self._observers, journal=journal)
        except BaseException:
            journal.close()  # for whoever mends it
            raise
        self._journals[plan] = journal
        return plan

    def _again(self, playbook: Playbook, key: str, journal: Any) -> PlaybookEnforcer:
        """Take up a plan that was kept, of this very playbook and under these very rules."""
        from runbook_nb.playbooks.enforcer import PlaybookEnforcer
        from runbook_nb.playbooks.policy import EnforcementPolicy

        begun = journal.events()[0]
        kept, policy = load_playbook(begun.playbook), EnforcementPolicy.of(begun.policy)
        if (kept, policy) != (playbook, self.policy):
            raise PlaybookError(
                f"the journal of run {key!r} holds a plan of {kept.id!r} under the policy "
                f"{policy.label}, and not of {playbook.id!r} under {self.policy.label} as they are "
                "now",
                code="other_plan",
                where=key,
                fix="hold the run to what it began with, or give it a journal of its own",
            )
        return PlaybookEnforcer.resume(
            journal, self._skills, observers=self._observers, redact=self._redact
        )

    def _new(self, playbook: Playbook, key: str | None = None, **more: Any) -> PlaybookEnforcer:
        from runbook_nb.playbooks.enforcer import PlaybookEnforcer

        return PlaybookEnforcer.from_playbook(
            playbook,
            block_violations=self.block_violations,
            record_violations=self.record_violations,
            skills=self._skills,
            policy=self.policy,
            redact=self._redact,
            key=key,
            **more,
        )

    def _look_over(self, playbook: Playbook) -> None:
        """Say once what keeps a playbook from coming to its end."""
        named = (playbook.id, playbook.version)
        if self._lint == "off" or self.policy.profile == "compat" or named in self._looked_over:
            return
        self._looked_over.add(named)
        found = playbook.lint(tools=self._tools, skills=self._skills or {}, policy=self.policy)
        if found.ok:
            return
        if self._lint == "raise":
            raise PlaybookDefinitionError(
                f"the playbook {playbook.id!r} cannot come to its end as written",
                code="cannot_end",
                where="playbook",
                problems=[one.problem for one in found.errors],
            )
        for one in found.errors:
            warn(f"playbook {playbook.id!r}, {one}", PlaybookWarning, stacklevel=2)

    def _let_go(self, seat: Seat) -> None:
        plan = plan_of(seat)
        if plan is not None and plan in self._journals:
            self._journals[plan].close()  # what is told of the run later opens it again
            self._lent[seat.key] = plan

    # -- calls -----------------------------------------------------------------------------

    def admit(
        self,
        tool: str,
        arguments: Any = None,
        *,
        call_id: str | None = None,
        run_id: str | None = None,
        thread_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        agent_name: str | None = None,
        parent: str | None = None,
        batch: str | None = None,
    ) -> Ticket:
        """Judge a call before it is made.

        Parameters
        ----------
        tool : str
            Which tool.
        arguments : object
            What it is to be called with.
        call_id : str, optional
            The caller's id of it; drawn from ``settings.ids`` otherwise.
        run_id, thread_id, metadata, agent_name
            The run; where none is named, that in which the running code stands.
        parent : str, optional
            The call inside which it is made; by default that whose body is running here.
        batch : str, optional
            The reply it came in.

        Returns
        -------
        Ticket
            Whether it may be made, and what to `settle` afterwards.
        """
        seat = self._seat(run_id, thread_id, metadata, agent_name)
        held = seat.held
        call_id = call_id or new_call_id()
        if held is not None and not isinstance(held, Closed):
            parent = parent or self._parent_in(seat)
            return self._ticket(
                seat, held.admit(tool, arguments, call_id=call_id, parent=parent, batch=batch)
            )
        frame = self._frame_of(seat, call_id)
        if held is None:
            return Ticket(tool, call_id, frame)
        refusal = refusal_of_closed(held, tool, call_id, seat.key)
        return Ticket(tool, call_id, frame, refusal=refusal, cause=held.error)

    def _seat(
        self,
        run_id: str | None = None,
        thread_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        agent_name: str | None = None,
    ) -> Seat:
        return self._plans.of(
            self._key(run_id, thread_id),
            lambda: RunInfo(
                run_id=run_id, thread_id=thread_id, metadata=metadata or {}, agent_name=agent_name
            ),
        )

    def _frame(self) -> Frame | None:
        """Give where the running code stands, as far as this hook judges there."""
        frame = here()
        return frame if frame is not None and frame.hook is self else None

    def calling(self, tool: str, arguments: Any = None, **where: Any) -> Body:
        """Let the block be the body of a call: judged on entering, settled on leaving.

        Parameters
        ----------
        tool, arguments, **where
            As for `admit`.

        Raises
        ------
        ToolRefused
            The call may not be made; the block is not entered.

        Examples
        --------
        >>> from runbook_nb.playbooks import Playbook, PlaybookStep
        >>> step = PlaybookStep(id="look", description="Look.", expected_tools=["search"])
        >>> hook = PlaybookEnforcerHook(Playbook(id="ir", name="Response", steps=[step]))
        >>> with hook.calling("search", {"q": "failed logins"}):
        ...     pass
        >>> hook.enforcer.is_complete
        True
        """
        return Body(lambda: self.admit(tool, arguments, **where))

    @contextmanager
    def run(
        self,
        run_id: str | None = None,
        *,
        thread_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        agent_name: str | None = None,
    ) -> Iterator[PlaybookEnforcer | None]:
        """Let the block be a run: calls made in it that name no run belong to it.

        Under ``scope="run"`` its plan is concluded when the block is left.

        Parameters
        ----------
        run_id : str, optional
            The run; one is drawn otherwise.
        thread_id, metadata, agent_name
            See `RunInfo`.

        Yields
        ------
        PlaybookEnforcer or None
            The plan's; None where the run is not held to one.
        """
        run = RunInfo(
            run_id=run_id or f"run-{settings.ids(10)}",
            thread_id=thread_id,
            metadata=metadata or {},
            agent_name=agent_name,
        )
        key = key_of(self._scope, run.run_id, run.thread_id)
        seat = self._plans.of(key, lambda: run)
        try:
            with entered(Frame(hook=self, seat=seat)):
                yield plan_of(seat)
        finally:
            if self._scope == "run":
                self.finish(key)


def _closed(
    code: Literal["selector_failed", "plan_failed"],
    what: str,
    done: str,
    hint: str,
    error: Exception,
) -> Closed:
    """Say why no call of a run is let through."""
    return Closed(
        code=code,
        message=(
            f"the {what} of this run could not be {done} ({type(error).__name__}), "
            "so that none of its calls is let through"
        ),
        hint=hint,
        error=error,
    )


def as_hook(plan: Any) -> PlaybookEnforcerHook:
    """Take a hook as it is, and put one over an enforcer or a playbook.

    Parameters
    ----------
    plan : PlaybookEnforcerHook, PlaybookEnforcer or Playbook
        What calls are held to.

    Raises
    ------
    PlaybookDefinitionError
        ``bad_plan``: it is none of these.
    """
    from runbook_nb.playbooks.enforcer import PlaybookEnforcer
    from runbook_nb.playbooks.model import Playbook

    if isinstance(plan, PlaybookEnforcerHook):
        return plan
    if isinstance(plan, PlaybookEnforcer):
        return PlaybookEnforcerHook.over(plan)
    if isinstance(plan, Playbook):
        return PlaybookEnforcerHook(plan)
    raise PlaybookDefinitionError(
        f"calls cannot be held to a {type(plan).__name__}",
        code="bad_plan",
        where="plan",
        fix="give a PlaybookEnforcerHook, a PlaybookEnforcer or a Playbook",
    )
