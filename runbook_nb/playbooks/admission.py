"""What asking to make a call gives, and what telling of its end gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from runbook_nb._text import clip, visible
from runbook_nb._value import frozen
from runbook_nb.playbooks.model import EnforcementResult, EnforcementViolation, PlaybookStep

if TYPE_CHECKING:
    from datetime import datetime

    from runbook_nb.playbooks.judging import Judgement
    from runbook_nb.playbooks.state import Call

#: What every refusal text begins with, as published.
PREFIX: Final = "PlaybookEnforcer blocked: "


def refusal_text(message: str | None, hints: Sequence[str]) -> str:
    """Give the text that a model reads in place of a result.

    Parameters
    ----------
    message : str or None
        What the call goes against, where that is told.
    hints : sequence of str
        What helps.

    Examples
    --------
    >>> refusal_text("not now", ["Scan first.", "Then pay."])
    'PlaybookEnforcer blocked: not now | Hints: Scan first. Then pay.'
    """
    text = PREFIX + (message or "")
    return f"{text} | Hints: {' '.join(hints)}" if hints else text


class Admission:
    """The answer to asking whether a call may be made.

    Attributes
    ----------
    call_id, tool : str
        The call.
    shown : str
        The tool as the policy of the plan lets it be seen.
    step_id : str or None
        The step it was judged under.
    allowed : bool
        Whether it may be made.
    provisional : bool
        Whether that holds only if earlier calls of its batch succeed: ask
        `PlaybookEnforcer.confirm` just before making it.
    seq : int or None
        The event that says so; None for one that is provisional.

    Examples
    --------
    >>> from runbook_nb.playbooks import Playbook, PlaybookEnforcer, PlaybookStep
    >>> step = PlaybookStep(id="look", description="Look.", expected_tools=["scan"])
    >>> book = Playbook(id="ir", name="Response", steps=[step])
    >>> refused = PlaybookEnforcer.from_playbook(book).admit("format_disk")
    >>> refused.allowed, refused.violation.violation_type
    (False, 'unexpected_tool')
    """

    __slots__ = (
        *("_at", "_found", "_step", "_told"),
        *("call_id", "provisional", "seq", "shown", "tool"),
    )

    def __init__(
        self,
        call_id: str,
        tool: str,
        found: Judgement,
        step: PlaybookStep | None,
        *,
        at: datetime,
        told: bool,
        seq: int | None,
        provisional: bool = False,
        shown: str | None = None,
    ) -> None:
        self.call_id = call_id
        self.tool = tool
        self.seq = seq
        self.provisional = provisional
        self._found = found
        self._step = step
        self._at = at
        self._told = told
        self.shown = tool if shown is None else shown

    def __repr__(self) -> str:
        word = "provisional" if self.provisional else "allowed" if self.allowed else "refused"
        return f"<Admission {self.call_id!r}: {clip(visible(self.shown), 120)} {word}>"

    @property
    def allowed(self) -> bool:
        """Whether the call may be made."""
        return self._found.allowed

    @property
    def step_id(self) -> str | None:
        """The step it was judged under."""
        return None if self._step is None else self._step.id

    @property
    def housekeeping(self) -> bool:
        """Whether the tool is always allowed and the call belongs to no step."""
        return self._found.housekeeping

    @property
    def violation(self) -> EnforcementViolation | None:
        """What the call goes against; None also where violations are not recorded."""
        if self._found.violation is None or not self._told:
            return None
        return EnforcementViolation(
            violation_type=self._found.violation,
            step_id=self.step_id,
            tool_name=self.shown,
            message=self._found.message,
            timestamp=self._at,
            blocked=self._found.blocked,
        )

    def is_of(self, call: Call) -> bool:
        """Say whether a plan's record of a call is that of this very call."""
        return (call.tool, call.seq, call.started) == (self.tool, self.seq, self._at)

    @property
    def hints(self) -> tuple[str, ...]:
        """What helps whoever made the call."""
        return self._found.hints

    @property
    def result(self) -> EnforcementResult:
        """The same in the published form."""
        return EnforcementResult(
            allowed=self.allowed,
            violation=self.violation,
            hints=list(self.hints),
            current_step=self._step,
        )

    @property
    def refusal(self) -> str | None:
        """What a model reads in place of a result; None where the call may be made."""
        if self.allowed:
            return None
        return refusal_text(self._found.message if self._told else None, self.hints)


@frozen
class Settlement:
    """What the end of a call did to the plan.

    Attributes
    ----------
    closed : bool
        Whether a step closed with it.
    step_id : str or None
        The step the call is filed under.
    violations : tuple of EnforcementViolation
        What was noted with it.

    Examples
    --------
    >>> Settlement(closed=True, step_id="look").violations
    ()
    """

    closed: bool
    step_id: str | None = None
    violations: tuple[EnforcementViolation, ...] = ()
