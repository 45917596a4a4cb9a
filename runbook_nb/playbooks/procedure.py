"""A playbook as the procedure of a runbook: somebody calls tools under it, the record answers.

What drives is an author's function, with a model behind it or without. However it ends, what it
left undone is in the record of the run, and so in the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from runbook_nb._frozen import FrozenDict, freeze
from runbook_nb._sync import is_awaitable
from runbook_nb._value import frozen
from runbook_nb.errors import PlaybookDefinitionError, ToolRefused, describe_error
from runbook_nb.playbooks.account import joined_account
from runbook_nb.playbooks.model import Playbook
from runbook_nb.playbooks.outline import structure_of
from runbook_nb.playbooks.policy import EnforcementPolicy
from runbook_nb.playbooks.run import PlaybookRun, run_of
from runbook_nb.record.redact import as_redact
from runbook_nb.record.steps import STEP_DECIDER

if TYPE_CHECKING:
    from runbook_nb.playbooks.enforcer import PlaybookEnforcer
    from runbook_nb.record.structure import Structure

#: Makes the calls of a run; what it gives is said in `PlaybookProcedure`.
Driver = Callable[["Turn"], Any]


@frozen(kw_only=True)
class Turn:
    """What a driver is given: one run under a playbook.

    Attributes
    ----------
    enforcer : PlaybookEnforcer
        What holds the calls to the playbook; `guard(turn.enforcer)` holds a function to it.
    args : mapping
        The input of the run.
    tools : object or None
        The door to other tools, where the procedure was made with one.

    Examples
    --------
    >>> step = {"id": "look", "description": "Look.", "expected_tools": ["scan"]}
    >>> from runbook_nb.playbooks import PlaybookEnforcer
    >>> enforcer = PlaybookEnforcer.from_playbook({"id": "ir", "name": "IR", "steps": [step]})
    >>> Turn(enforcer=enforcer, args={"host": "web-1"}).enforcer.admit("scan").allowed
    True
    """

    enforcer: PlaybookEnforcer
    args: Mapping[str, Any]
    tools: Any = None

    async def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """Call another tool as a call of the plan.

        Raises
        ------
        ToolRefused
            The plan does not let it be made; ``code`` is the type of the violation.
        """
        if self.tools is None:
            raise PlaybookDefinitionError(
                f"the procedure of {self.enforcer.plan.playbook.id!r} has no tools to call",
                code="no_tools",
                where="tools",
                fix="make it with playbook.procedure(drive, tools=tools)",
            )
        given = dict(arguments or {})
        asked = self.enforcer.admit(tool, given)
        if not asked.allowed:
            found = asked.violation
            raise ToolRefused(
                asked.refusal or f"{tool} was refused",
                code=None if found is None else found.violation_type,
                where=tool,
                facts={"step": asked.step_id, "call_id": asked.call_id},
            )
        try:
            result = await self.tools.call(tool, given)
        except BaseException as error:
            described = describe_error(error)
            outcome = "error" if isinstance(error, Exception) else "cancelled"
            said = f"{described['type']}: {described['message']}".rstrip(": ")
            self.enforcer.settle(asked, outcome, error=said)
            raise
        self.enforcer.settle(asked, "ok", result=result)
        return result


class PlaybookProcedure:
    """A playbook with what drives a run under it; made by ``playbook.procedure(drive)``.

    Parameters
    ----------
    playbook : Playbook
    drive : callable
        Makes the calls: called with a `Turn`, plain or async. What it gives joins the answer: a
        mapping of ``report``, ``coverage`` and ``verdicts``, or anything else as the report's
        ``answer``.
    tools : object, optional
        The door to other tools, as a runbook's factory gets it.
    input_schema : mapping or pydantic model, optional
        What the input must look like.
    **options
        Those of `PlaybookEnforcer.from_playbook`: ``policy``, ``skills``, ``journal`` and more.

    Attributes
    ----------
    name : str
        The playbook's id.
    structure : Structure
        Its steps as a graph.
    verdicts : mapping
        How an answer's rows are read, unless a runbook says so itself.
    result_kind : str
        The kind of answer it gives, likewise.

    Examples
    --------
    >>> import asyncio
    >>> step = {"id": "look", "description": "Look.", "expected_tools": ["scan"]}
    >>> book = Playbook(id="ir", name="Response", steps=[step])
    >>> def drive(turn):
    ...     turn.enforcer.settle(turn.enforcer.admit("scan", turn.args))
    >>> asyncio.run(PlaybookProcedure(book, drive).run({"host": "web-1"})).verdict
    'pass'
    """

    verdicts: Mapping[str, Any] = FrozenDict(decider=STEP_DECIDER)
    result_kind = "verdict/playbook"

    def __init__(
        self,
        playbook: Playbook,
        drive: Driver,
        *,
        tools: Any = None,
        input_schema: Any = None,
        **options: Any,
    ) -> None:
        if not callable(drive):
            raise PlaybookDefinitionError(
                f"drive is {type(drive).__name__}, not a function",
                code="bad_procedure",
                where="drive",
                fix="give a function of one argument, the turn",
            )
        self.playbook = playbook
        self.name = playbook.id
        self.input_schema = input_schema
        self._drive: Driver | None = drive
        self._enforcer: PlaybookEnforcer | None = None
        self._tools = tools
        self._options = options
        policy = EnforcementPolicy.of(options.get("policy"))
        self.structure: Structure = structure_of(playbook, options.get("skills") or {}, policy)

    @classmethod
    def of(cls, enforcer: Any) -> PlaybookProcedure:
        """Make a procedure of an enforcer that was driven elsewhere; running it drives nothing."""
        made = cls(enforcer.plan.playbook, print)
        made._drive, made._enforcer = None, enforcer
        made.structure = enforcer.structure
        return made

    def __repr__(self) -> str:
        return f"<PlaybookProcedure {self.name}>"

    async def run(
        self,
        args: Mapping[str, Any] | None = None,
        *,
        limits: Any = None,
        redact: Any = None,
        signal: Any = None,
    ) -> PlaybookRun:
        """Run it once, and give the record.

        Parameters
        ----------
        args : mapping, optional
            The input.
        limits : Limits, optional
            Time the run may take.
        redact : Redact or mapping, optional
            What must not be seen in any view of the record.
        signal : Stop, optional
            Ends the run when it is set.

        Raises
        ------
        Exception
            What the driver raised, with the record so far as ``error.run``.
        """
        enforcer = self._begun()
        given: list[Any] = []
        turn = Turn(enforcer=enforcer, args=freeze(dict(args or {})), tools=self._tools)

        async def driven(scope: Any) -> None:
            made = None if self._drive is None else self._drive(turn)
            given.append(await made if is_awaitable(made) else made)

        from runbook_nb.chart.builder import flow_chart

        # Limits, signals and what becomes of an error are as for any chart of one stage.
        chart = flow_chart(self.name, driven, id="drive").build()
        try:
            await chart.run(args, limits=limits, redact=redact, signal=signal)
        except BaseException as error:
            ended = getattr(error, "run", None)
            if ended is not None:
                failed = run_of(
                    enforcer.events,
                    redact=as_redact(redact) or as_redact(enforcer.redact),
                    args=args,
                )
                failed.end_as(ended.status, freeze(describe_error(error)))
                error.run = failed  # type: ignore[attr-defined]
            raise
        if self._drive is not None or enforcer.state.verdict is None:
            enforcer.finish()
        # A plan that has a policy of its own keeps it in the answer, where the runbook names none.
        policy = as_redact(redact) or as_redact(enforcer.redact)
        account = joined_account(run_of(enforcer.events, args=args).account, given[0])
        return run_of(enforcer.events, redact=policy, args=args, also=account)

    def _begun(self) -> PlaybookEnforcer:
        if self._enforcer is not None:
            return self._enforcer
        from runbook_nb.playbooks.enforcer import PlaybookEnforcer

        return PlaybookEnforcer.from_playbook(self.playbook, **self._options)
