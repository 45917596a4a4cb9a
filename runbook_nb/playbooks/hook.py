"""One playbook, or a choice of them, held over every run of an agent.

Playbooks layer. A hook turns what any agent framework tells before and after a tool call into
admissions and settlements of the plan that the call belongs to. It knows no framework: events are
objects with a few attributes, and code that needs no events calls `admit`, or enters `calling`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._sync import is_awaitable
from runbook_nb._text import counted, did_you_mean
from runbook_nb.errors import NoPlan, PlaybookDefinitionError, PlaybookError
from runbook_nb.playbooks.frames import Frame, entered, here, note_last, plan_of
from runbook_nb.playbooks.listening import Listening
from runbook_nb.playbooks.scopes import NO_RUN, Closed, Plans, RunInfo, Seat, checked_scope, key_of
from runbook_nb.playbooks.tickets import Ticket, refusal_of_closed
from runbook_nb.settings import settings
from runbook_nb.tools.context import new_call_id

if TYPE_CHECKING:
    from runbook_nb.playbooks.enforcer import PlaybookEnforcer
    from runbook_nb.playbooks.model import Playbook
    from runbook_nb.playbooks.policy import EnforcementPolicy
    from runbook_nb.playbooks.report import PlaybookReport

#: Chooses the playbook of a run; None leaves the run alone.
Select = Callable[[RunInfo], "Playbook | None"]

#: What is told to a model of the playbook.
INJECTED: Final = ("none", "step", "plan")

#: Which hook judges the calls of a session: an agent, a toolbox.
_ATTACHED: weakref.WeakKeyDictionary[Any, PlaybookEnforcerHook] = weakref.WeakKeyDictionary()


class PlaybookEnforcerHook(Listening):
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
        ``(key)``: gives the journal of a run's plan.
    observers : iterable of callable
        Hear every event of every plan.
    redact : Redact, optional
        What may not be recorded.
    inject : {"none", "step", "plan"}
        What `brief` gives for the prompt.

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
        self._scope = checked_scope(scope)
        self.inject = _checked_inject(inject)
        self.block_violations = bool(block_violations)
        self.record_violations = bool(record_violations)
        self.max_runs = _checked_number("max_runs", max_runs, 1)
        self.priority = _checked_number("priority", priority, None)
        self.policy = EnforcementPolicy.of(policy)
        self._select = select
        self._skills = skills
        self._journal = journal
        self._observers = tuple(observers)
        self._redact = redact
        refuse = self.policy.eviction == "refuse"
        self._plans = Plans(self._make, most=self.max_runs, refuse_evicted=refuse)
        self._playbook = None if playbook is None else as_playbook(playbook)
        if self._playbook is not None:
            self._enforcer(self._playbook, None)  # what is wrong with it is said here, not later

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
        hook._select = hook._skills = hook._journal = hook._redact = None
        hook._observers = ()
        hook._playbook = enforcer.plan.playbook
        hook._plans = Plans(hook._make, most=1)
        hook._plans.put(NO_RUN, enforcer)
        return hook

    def __repr__(self) -> str:
        what = "by a selector" if self._playbook is None else repr(self._playbook.id)
        runs = counted(len(self._plans), "run")
        return f"<PlaybookEnforcerHook {what}, {self.policy.label}, {runs}>"

    # -- plans -----------------------------------------------------------------------------

    @property
    def scope(self) -> str:
        """What shares a plan: ``run``, ``thread`` or ``agent``."""
        return self._scope

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
        return report

    def release(self, key: str) -> None:
        """Forget a run, its plan and whether it was dropped; its next call begins anew."""
        self._plans.release(key)

    def brief(self, key: str | None = None) -> str:
        """Give what is to be told to the model about the playbook; as ``inject`` says."""
        found = self.enforcer_for(key) if key is not None else None
        if self.inject == "none" or found is None:
            return ""
        text: str = found.brief(mode=self.inject)
        return text

    def attach(self, session: Any) -> None:
        """Note that this hook judges the calls of a session; refuse a second one that does.

        Two hooks that both refuse calls must both allow each, and easily refuse each other's for
        ever. Under the profile ``compat`` that is let be.

        Raises
        ------
        PlaybookError
            ``two_enforcers``.
        """
        other = _ATTACHED.get(session)
        if other is not None:
            self.alone_with(other)
        _ATTACHED[session] = self

    def alone_with(self, other: PlaybookEnforcerHook) -> None:
        """Refuse to judge what another hook judges too, where both refuse calls.

        Raises
        ------
        PlaybookError
            ``two_enforcers``.
        """
        both = (self, other)
        if other is self or not all(
            hook.block_violations and hook.policy.profile != "compat" for hook in both
        ):
            return
        raise PlaybookError(
            f"{self!r} and {other!r} would both refuse the calls of one session, and each those "
            "that the other asks for",
            code="two_enforcers",
            where="hooks",
            fix="put the steps into one playbook, or give one of them block_violations=False",
        )

    def _make(self, run: RunInfo) -> Any:
        key = key_of(self._scope, run.run_id, run.thread_id)
        if self._playbook is not None:
            return self._began(self._playbook, key)
        try:
            chosen = self._select(run)  # type: ignore[misc]
            if is_awaitable(chosen):
                _close(chosen)
                raise TypeError("the selector is async, and is asked where nothing can be awaited")
            return None if chosen is None else self._began(as_playbook(chosen), key)
        except Exception as error:
            return Closed(
                code="selector_failed",
                message=(
                    f"the playbook of this run could not be chosen ({type(error).__name__}), "
                    "so that none of its calls is let through"
                ),
                hint="A person has to mend the selector and start the run again.",
                error=error,
            )

    def _began(self, playbook: Playbook, key: str) -> PlaybookEnforcer:
        enforcer = self._enforcer(playbook, key)
        note_last(enforcer)
        return enforcer

    def _enforcer(self, playbook: Playbook, key: str | None) -> PlaybookEnforcer:
        from runbook_nb.playbooks.enforcer import PlaybookEnforcer

        kept = key is not None and self._journal is not None
        return PlaybookEnforcer.from_playbook(
            playbook,
            block_violations=self.block_violations,
            record_violations=self.record_violations,
            skills=self._skills,
            policy=self.policy,
            journal=self._journal(key) if kept else None,  # type: ignore[misc, arg-type]
            observers=self._observers if key is not None else (),
            redact=self._redact,
            key=key,
        )

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
        made = Frame(hook=self, seat=seat, call_id=call_id)
        if held is None:
            return Ticket(tool, call_id, made)
        if isinstance(held, Closed):
            refusal = refusal_of_closed(held, tool, call_id, seat.key)
            return Ticket(tool, call_id, made, refusal=refusal, cause=held.error)
        parent = parent or self._parent_in(seat)
        admission = held.admit(tool, arguments, call_id=call_id, parent=parent, batch=batch)
        return Ticket(tool, call_id, made, admission=admission)

    def _seat(
        self,
        run_id: str | None = None,
        thread_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        agent_name: str | None = None,
    ) -> Seat:
        frame = self._frame()
        if frame is not None and run_id is None and thread_id is None:
            key = frame.seat.key
        else:
            key = key_of(self._scope, run_id, thread_id)
        return self._plans.of(
            key,
            lambda: RunInfo(
                run_id=run_id, thread_id=thread_id, metadata=metadata or {}, agent_name=agent_name
            ),
        )

    def _frame(self) -> Frame | None:
        """Give where the running code stands, as far as this hook judges there."""
        frame = here()
        return frame if frame is not None and frame.hook is self else None

    @contextmanager
    def calling(self, tool: str, arguments: Any = None, **where: Any) -> Iterator[Ticket]:
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
        with self.admit(tool, arguments, **where).running() as ticket:
            yield ticket

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


def as_playbook(given: Playbook | Mapping[str, Any]) -> Playbook:
    """Take a playbook as it is, or read one out of a mapping, or a file or text that holds one.

    Examples
    --------
    >>> as_playbook({"id": "ir", "name": "Response", "steps": []}).name
    'Response'
    """
    from runbook_nb.playbooks.model import Playbook

    if isinstance(given, Playbook):
        return given
    from runbook_nb.playbooks.loader import load_playbook

    return load_playbook(given)


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


def _close(answer: Any) -> None:
    with suppress(AttributeError):
        answer.close()


def _checked_inject(word: Any) -> str:
    if word in INJECTED:
        return str(word)
    raise PlaybookDefinitionError(
        f"inject cannot be {word!r}",
        code="bad_inject",
        where="inject",
        fix=did_you_mean(str(word), INJECTED) or "use 'none', 'step' or 'plan'",
    )


def _checked_number(name: str, value: Any, least: int | None) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and (least is None or value >= least):
        return value
    raise PlaybookDefinitionError(
        f"{name} cannot be {value!r}",
        code="bad_number",
        where=name,
        fix="give a whole number" + ("" if least is None else f" of at least {least}"),
    )
