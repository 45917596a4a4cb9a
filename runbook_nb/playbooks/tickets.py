"""A call that was judged, whichever way it comes: what it may do, and how it is settled.

Playbooks layer. A `Ticket` is what a hook gives for a call before it is made. A refusal is a
structured outcome, `Refusal`, of which the text a model reads is only one part: whatever counts or
shows refusals reads the structure, so that a tool which prints the same words deceives nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from runbook_nb._text import clip, visible
from runbook_nb._value import frozen
from runbook_nb.errors import Paused, RunCancelled, ToolRefused
from runbook_nb.playbooks.admission import PREFIX, Admission, Settlement, refusal_text
from runbook_nb.playbooks.frames import Frame, enter, leave, plan_of
from runbook_nb.playbooks.scopes import Closed

if TYPE_CHECKING:
    from types import TracebackType

    from runbook_nb.playbooks.enforcer import PlaybookEnforcer


@frozen
class Refusal:
    """Why a call was not made.

    Attributes
    ----------
    code : str
        The type of the violation, or ``selector_failed``, ``plan_evicted``.
    text : str
        What a model is told in the place of a result.
    tool, call_id : str
        The call.
    step_id : str or None
        The step it was judged under.
    key : str
        The run.
    hints : tuple of str
        What helps.
    seq : int or None
        The event of the plan that refused it; None where there is no plan.

    Examples
    --------
    >>> refusal = Refusal(code="max_tool_calls", text="…", tool="pay", call_id="c", key="r1")
    >>> refusal.to_dict()["code"], refusal.error().code
    ('max_tool_calls', 'max_tool_calls')
    """

    code: str
    text: str
    tool: str
    call_id: str
    key: str
    step_id: str | None = None
    hints: tuple[str, ...] = ()
    seq: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON carries it."""
        return {
            "outcome": "refused",
            "code": self.code,
            "tool": self.tool,
            "call_id": self.call_id,
            "step_id": self.step_id,
            "key": self.key,
            "hints": list(self.hints),
            "seq": self.seq,
            "text": self.text,
        }

    def error(self) -> ToolRefused:
        """Give it as the error that refuses a call; its ``facts`` are `to_dict`."""
        return ToolRefused(
            self.text.removeprefix(PREFIX),
            code=self.code,
            where=self.tool,
            facts=self.to_dict(),
        )


class Ticket:
    """A call that was judged.

    Attributes
    ----------
    tool, call_id : str
        The call; where an id comes again, the plan tells both apart by a suffix.
    frame : Frame
        Where it is made.
    admission : Admission or None
        What the enforcer said.
    refusal : Refusal or None
        Why it may not be made.
    cause : BaseException or None
        What kept the run from having a plan; for the host, not for the model.

    Examples
    --------
    >>> from runbook_nb.playbooks import Playbook, PlaybookEnforcerHook, PlaybookStep
    >>> step = PlaybookStep(id="look", description="Look.", expected_tools=["search"])
    >>> hook = PlaybookEnforcerHook(Playbook(id="ir", name="Response", steps=[step]))
    >>> ticket = hook.admit("search", {"q": "failed logins"})
    >>> ticket.allowed, ticket.settle("ok").closed
    (True, True)
    """

    __slots__ = (
        "_opened_in",
        "admission",
        "call_id",
        "cause",
        "frame",
        "refusal",
        "settled",
        "tool",
    )

    def __init__(
        self,
        tool: str,
        call_id: str,
        frame: Frame,
        *,
        admission: Admission | None = None,
        refusal: Refusal | None = None,
        cause: BaseException | None = None,
    ) -> None:
        self.tool = tool
        self.call_id = call_id
        self.frame = frame
        self.refusal = refusal
        self.settled = refusal is not None
        self.cause = cause
        self.admission = admission
        if admission is not None and not admission.allowed:
            self._refuse(admission)
        self._opened_in: tuple[dict[str, Ticket], str] | None = None

    def __repr__(self) -> str:
        word = "refused" if self.refusal else "settled" if self.settled else "admitted"
        tool = self.tool if self.admission is None else self.admission.shown
        return f"<Ticket {self.call_id!r}: {clip(visible(tool), 120)} {word}>"

    @property
    def enforcer(self) -> PlaybookEnforcer | None:
        """Whose plan it was judged in; None where there is none."""
        return plan_of(self.frame.seat)

    def _refuse(self, admission: Admission) -> None:
        self.refusal = refusal_of(admission, self.frame.seat.key)
        self.settled = True

    @property
    def allowed(self) -> bool:
        """Whether the call may be made."""
        return self.refusal is None

    @property
    def provisional(self) -> bool:
        """Whether that holds only if earlier calls of its reply succeed; see `confirm`."""
        return self.admission is not None and self.admission.provisional

    def confirm(self) -> bool:
        """Judge a provisional call again, just before it is made; `running` does so by itself.

        Returns
        -------
        bool
            Whether it may be made.
        """
        if self.admission is not None and self.admission.provisional:
            self.admission = self.frame.seat.held.confirm(self.admission)
            if not self.admission.allowed:
                self._refuse(self.admission)
                self._leave()
        return self.allowed

    def settle(
        self,
        outcome: str = "ok",
        *,
        result: Any = None,
        error: Any = None,
        arguments: Any = None,
    ) -> Settlement | None:
        """Say what came of the call; again, or of a refused call, it does nothing.

        Parameters
        ----------
        outcome : {"ok", "error", "cached", "retried", "cancelled"}
            ``cached`` was answered without running the tool, ``retried`` succeeded after attempts
            that did not, ``cancelled`` never came to an end.
        result : object
            What it gave; read by checks on results.
        error : str or BaseException, optional
            What it failed with.
        arguments : object
            What it was really called with, where something changed that on the way.

        Returns
        -------
        Settlement or None
            What it did to the plan; None where it did nothing, or there is none.
        """
        if self.settled:
            return None
        self.settled = True
        self._leave()
        if self.admission is None:
            return None
        settlement: Settlement = self.frame.seat.held.settle(
            self.admission, outcome, result=result, error=error, arguments=arguments
        )
        return settlement

    def running(self, *, ends: bool = True) -> Body:
        """Let the block be the body of the call, and settle the call when it ends.

        Calls made in the block are judged in the same plan and name this one as theirs. An error
        settles it as failed, a cancellation or a pause as cancelled; otherwise it succeeded, with
        the result given to `settle` in the block, or none.

        Parameters
        ----------
        ends : bool
            Whether the call has succeeded when the block is left without an error.

        Raises
        ------
        ToolRefused
            The call may not be made; the block is not entered.
        """
        return Body(lambda: self, ends=ends)

    def open_in(self, waiting: dict[str, Ticket], name: str) -> None:
        """Wait among others to be settled by somebody who knows only the id he gave."""
        self._opened_in = waiting, name
        waiting[name] = self

    def _leave(self) -> None:
        if self._opened_in is not None:
            waiting, name = self._opened_in
            waiting.pop(name, None)


class Body:
    """The body of a call, as a block; see `Ticket.running`.

    Parameters
    ----------
    ask : callable
        Gives the ticket, when the block is about to be entered.
    ends : bool
        Whether the call has succeeded when the block is left without an error.

    Examples
    --------
    >>> from runbook_nb.playbooks import Playbook, PlaybookEnforcerHook, PlaybookStep
    >>> step = PlaybookStep(id="look", description="Look.", expected_tools=["search"])
    >>> hook = PlaybookEnforcerHook(Playbook(id="ir", name="Response", steps=[step]))
    >>> with Body(lambda: hook.admit("search")) as ticket:
    ...     ticket.settled
    False
    >>> ticket.settled
    True
    """

    __slots__ = ("_ask", "_ends", "_ticket", "_within")

    def __init__(self, ask: Callable[[], Ticket], *, ends: bool = True) -> None:
        self._ask = ask
        self._ends = ends

    def __enter__(self) -> Ticket:
        ticket = self._ticket = self._ask()
        ticket.confirm()
        if ticket.refusal is not None:
            raise ticket.refusal.error() from ticket.cause
        self._within = enter(ticket.frame)
        return ticket

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        leave(self._within)
        if error is not None:
            self._ticket.settle(outcome_of(error), error=error)
        elif self._ends:
            self._ticket.settle("ok")


def outcome_of(error: BaseException) -> str:
    """Give the outcome of a call that ended in an error.

    Examples
    --------
    >>> outcome_of(ValueError("no")), outcome_of(KeyboardInterrupt())
    ('error', 'cancelled')
    """
    stopped = isinstance(error, RunCancelled | Paused) or not isinstance(error, Exception)
    return "cancelled" if stopped else "error"


def refusal_of(admission: Admission, key: str) -> Refusal:
    """Give the refusal of a call that an enforcer did not let through."""
    violation = admission.violation
    return Refusal(
        code="refused" if violation is None else violation.violation_type,
        text=admission.refusal or "",
        tool=admission.tool,
        call_id=admission.call_id,
        step_id=admission.step_id,
        key=key,
        hints=admission.hints,
        seq=admission.seq,
    )


def refusal_of_closed(closed: Closed, tool: str, call_id: str, key: str) -> Refusal:
    """Give the refusal of a call in a run all of whose calls are refused."""
    return Refusal(
        code=closed.code,
        text=refusal_text(closed.message, [closed.hint]),
        tool=tool,
        call_id=call_id,
        key=key,
        hints=(closed.hint,),
    )
