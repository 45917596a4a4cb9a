"""Work that a person does under a step: asked for like any call, and filed with who did it.

A person in a notebook goes through the door that everybody goes through: what is about to be done
is admitted as a call of one of the step's tools, and settled when it ended. A step that lists no
tools and is closed by a person has no calls; there the turn is asked for, and the person closes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal

from runbook_nb._display import Renderable
from runbook_nb._text import listed
from runbook_nb.errors import PlaybookError, ToolRefused
from runbook_nb.playbooks.admission import Settlement
from runbook_nb.playbooks.judging import quoted
from runbook_nb.playbooks.tickets import Ticket
from runbook_nb.playbooks.unmet import unmet_evidence

if TYPE_CHECKING:
    from runbook_nb._view import Card
    from runbook_nb.playbooks.enforcer import PlaybookEnforcer
    from runbook_nb.playbooks.terms import StepTerms

#: How a piece of work stands: not begun, refused, of a step that is closed, begun, ended.
Word = Literal[
    "ready",
    "refused",
    "closed",
    "running",
    "done",
    "failed",
    "cancelled",
    "again",
    "skipped",
    "declined",
]

#: What says by whom, and what else, among the arguments of the call.
WHO: Final = "by"
NOTE: Final = "note"


class StepByHand(Renderable):
    """A piece of work under a step; made by ``enforcer.step(…)``, and entered by ``with``.

    Attributes
    ----------
    step_id, by, note : str
        The step, the person, what there is to say.
    tool : str or None
        The tool whose call the work is; None where the step is closed by a person alone.
    word : str
        ``ready``, ``running``, ``done``, ``failed``, ``cancelled``, or ``refused`` and ``closed``
        for work that was not begun: the plan does not let it be done, or the step is closed.
        ``again`` is work under a closed step that was done once more, outside the plan; under
        ``skipped`` and ``declined`` none was done: a person passed over the step, or declined it.
    refusal : ToolRefused or None
        What entering it raises where it may not be done.
    why : str
        The same in a sentence.
    hints : tuple of str
        What helps then.
    result : object
        What came of it, for checks on results; set it inside the block.
    settlement : Settlement or None
        What its end did to the plan.

    Examples
    --------
    >>> from runbook_nb.playbooks import Playbook, PlaybookEnforcer, PlaybookStep
    >>> step = PlaybookStep(id="look", description="Look.", expected_tools=["search"])
    >>> book = Playbook(id="ir", name="Response", steps=[step])
    >>> plan = PlaybookEnforcer.from_playbook(book)
    >>> with plan.step("look", by="R. Ito") as work:
    ...     work.result = ["web-01"]
    >>> work.word, work.settlement.closed
    ('done', True)
    """

    def __init__(
        self,
        enforcer: PlaybookEnforcer,
        step: str,
        by: str,
        *,
        tool: str | None = None,
        note: str = "",
        arguments: Mapping[str, Any] | None = None,
        done: bool = False,
    ) -> None:
        self.enforcer = enforcer
        self.step_id = step
        self.by = by
        self.note = note
        self.word: Word = "ready"
        self.refusal: ToolRefused | None = None
        self.result: Any = None
        self.settlement: Settlement | None = None
        self.error: BaseException | None = None
        self.why = ""
        self.hints: tuple[str, ...] = ()
        self.done = done
        self.terms = self._terms()
        self.tool = self._tool_of(tool)
        self._given = {WHO: by, **(arguments or {}), **({NOTE: note} if note else {})}
        self._asked = False
        self._ticket: Ticket | None = None
        self._stack = ExitStack()

    def _terms(self) -> StepTerms:
        """Give the terms of the step, of several that share the id the first that is open."""
        found = self.enforcer._named(self.step_id, self.by)
        closed = self.enforcer.state.closed
        return next((one for one in found if one.index not in closed), found[-1])

    def _tool_of(self, asked: str | None) -> str | None:
        known = tuple(dict.fromkeys(self.terms.tools))
        if asked is not None or not known:
            return asked
        if len(known) == 1:
            return known[0]
        raise PlaybookError(
            f"step {quoted(self.step_id)} expects {listed(map(quoted, known))}",
            code="which_tool",
            where="tool",
            fix=f"say which of them this is: tool={known[0]!r}",
        )

    # -- asking ----------------------------------------------------------------------------

    @property
    def is_closed(self) -> bool:
        """Whether the step is closed."""
        return self.terms.index in self.enforcer.state.closed

    def ask(self) -> bool:
        """Ask whether the work may be begun; asked again, the answer stays."""
        if not self._asked:
            self._asked = True
            if self.is_closed or self.tool is None:
                self.ask_for_turn()
            else:
                self._ask_for_call(self.tool)
        return self.refusal is None

    def ask_for_turn(self) -> None:
        """Ask whether a person may close the step now; `refusal` says why not."""
        if self._refuse_closed():
            return
        try:
            self.enforcer._refuse_declined(self.enforcer._step_of(self.step_id, self.by))
        except PlaybookError as error:
            self._refuse(error.message, error.code or "not_its_turn")

    def _refuse_closed(self) -> bool:
        """Refuse what is to be done to a step that is closed; say whether it is."""
        if self.is_closed:
            self._refuse(f"step {quoted(self.step_id)} is closed", "step_closed")
            self.word = "closed"
        return self.is_closed

    def _ask_for_call(self, tool: str) -> None:
        from runbook_nb.playbooks.hook import as_hook

        plan = self.enforcer
        ticket = as_hook(plan).admit(tool, self._given)
        found, refusal = ticket.admission, ticket.refusal
        if refusal is not None:
            told = None if found is None else found.violation
            self.hints = refusal.hints
            self.refusal = refusal.error()
            self.word = "refused"
            self.why = str(told.message) if told is not None else self.refusal.message
            return
        free = plan.plan.playbook.allow_extra_tools or not plan.block_violations
        if found is not None and found.step_id != self.step_id and not free:
            ticket.settle("cancelled")  # it would be filed as the work of another step
            now = f"now a call of {quoted(tool)} belongs to step {quoted(found.step_id or '')}"
            self._refuse(f"it is not the turn of step {quoted(self.step_id)}: {now}")
            return
        self._ticket = ticket

    def _refuse(
        self, message: str, code: str = "not_its_turn", fix: str = "act on the current step"
    ) -> None:
        self.word, self.why = "refused", message
        self.refusal = ToolRefused(
            message,
            code=code,
            where=self.step_id,
            fix=fix,
            facts={"step_id": self.step_id},
        )

    # -- doing -----------------------------------------------------------------------------

    def __enter__(self) -> StepByHand:
        if not self.ask() and self.refusal is not None:
            raise self.refusal
        if self.word != "ready":
            raise PlaybookError(
                f"the work under step {quoted(self.step_id)} was done already",
                code="done_already",
                where=self.step_id,
                fix="ask for a new piece of work: enforcer.step(…)",
            )
        self.word = "running"
        if self._ticket is not None:
            self._stack.enter_context(self._ticket.running(ends=False))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)
        if error is not None:
            self.word = "failed" if isinstance(error, Exception) else "cancelled"
            self.error = error
            return
        self.word = "done"
        if self._ticket is not None:
            self.settlement = self._ticket.settle("ok", result=self.result)
        if self.done and not self.is_closed:
            self.close()

    def close(self) -> None:
        """Close the step as a person, or approve one that is approved.

        Raises
        ------
        PlaybookError
            It is not its turn.
        """
        if self.word == "ready":
            self.word = "done"
        if self.terms.step.kind == "approval" and not self._approved:
            self.enforcer.approve(self.step_id, self.by, self.note)
        else:
            self.enforcer.complete(self.step_id, self.by, self.note)

    def decline(self) -> None:
        """Decline to approve the step, as a person, if it is its turn; `refusal` says why not."""
        self.ask_for_turn()
        if self.refusal is not None:
            return
        try:
            self.enforcer.decline(self.step_id, self.by, self.note)
        except PlaybookError as error:
            self._refuse(error.message, error.code or "not_its_turn", error.fix or "")
        else:
            self.word = "declined"

    def skip(self, reason: str) -> None:
        """Pass over the step, as a person, if it is the current one; `refusal` says why not.

        Parameters
        ----------
        reason : str
            Why.
        """
        if self._refuse_closed():
            return
        current = self.enforcer.current_step
        if current is None or current.id != self.step_id:
            now = "the playbook is complete" if current is None else f"now is {quoted(current.id)}"
            self._refuse(f"it is not the turn of step {quoted(self.step_id)}: {now}")
        elif not self.enforcer.skip_current_step(reason, by=self.by):
            self._refuse(
                f"step {quoted(self.step_id)} is required, and cannot be passed over",
                "step_required",
                "do the step, or give it `required: false` in the playbook",
            )
        else:
            self.word, self.note = "skipped", reason

    @property
    def _approved(self) -> bool:
        facts = self.enforcer.state.steps.get(self.step_id)
        return facts is not None and bool(facts.approvals)

    @property
    def called(self) -> bool:
        """Whether it was let through as a call."""
        return self._ticket is not None

    @property
    def unmet(self) -> list[str]:
        """The evidence its step asks for that is not there."""
        return unmet_evidence(self.terms, self.enforcer.state)

    # -- showing ---------------------------------------------------------------------------

    def view(self) -> Card:
        """Show what became of it, and what the plan asks for now."""
        from runbook_nb.playbooks.byhand_card import work_card

        return work_card(self)
