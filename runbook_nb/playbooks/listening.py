"""What a hook makes of the events a framework tells: before a call, and after it.

Playbooks layer. The calls themselves are judged and settled by the hook; here is only how an event
is read and what is written on it.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from runbook_nb.errors import PlaybookDefinitionError, PlaybookError
from runbook_nb.playbooks.frames import Frame
from runbook_nb.playbooks.keeper import checked_outcome
from runbook_nb.playbooks.scopes import Closed, Plans, Seat, key_of
from runbook_nb.playbooks.tickets import Refusal, Ticket
from runbook_nb.playbooks.toolevent import first_of, tell, where_of
from runbook_nb.tools.context import new_call_id

if TYPE_CHECKING:
    from runbook_nb.playbooks.admission import Admission, Settlement
    from runbook_nb.playbooks.hook import PlaybookEnforcerHook
    from runbook_nb.playbooks.policy import EnforcementPolicy


#: What names the run of an event.
_RUN: Final = ("run_id", "thread_id", "metadata", "agent_name")


#: Which hook judges the calls of a session: an agent, a toolbox.
_ATTACHED: weakref.WeakKeyDictionary[Any, Listening] = weakref.WeakKeyDictionary()


class Listening(ABC):
    """The part of a hook that hears events; see `PlaybookEnforcerHook`."""

    block_violations: bool
    policy: EnforcementPolicy
    _plans: Plans
    _scope: str

    admit: Callable[..., Ticket]
    _seat: Callable[..., Seat]

    @abstractmethod
    def _frame(self) -> Frame | None: ...

    def _parent_in(self, seat: Seat) -> str | None:
        frame = self._frame()
        return frame.call_id if frame is not None and frame.seat.key == seat.key else None

    def _frame_of(self, seat: Seat, call_id: str) -> Frame:
        return Frame(hook=cast("PlaybookEnforcerHook", self), seat=seat, call_id=call_id)

    def _ticket(self, seat: Seat, admission: Admission) -> Ticket:
        frame = self._frame_of(seat, admission.call_id)
        return Ticket(admission.tool, admission.call_id, frame, admission=admission)

    def attach(self, session: Any) -> None:
        """Note that this hook judges the calls of a session; refuse a second one that does.

        Two hooks that both refuse calls must both allow each, and easily refuse each other's for
        ever. Under the profile ``compat`` that is let be.

        Raises
        ------
        PlaybookError
            ``two_enforcers``.
        """
        try:
            other = _ATTACHED.get(session)
            if other is not None:
                self.alone_with(other)
            _ATTACHED[session] = self
        except TypeError as error:
            raise PlaybookDefinitionError(
                f"a hook cannot be attached to a {type(session).__name__}, which is a mere value",
                code="bad_session",
                where="session",
                fix="give the object that makes the calls: an agent, a toolbox",
            ) from error

    def alone_with(self, other: Any) -> None:
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
            f"two hooks ({_named(self)}; {_named(other)}) would both refuse the calls of one "
            "session, and each those that the other asks for",
            code="two_enforcers",
            where="hooks",
            fix="put the steps into one playbook, or give one of them block_violations=False",
        )

    def before(self, event: Any) -> Ticket:
        """Judge the call an event tells of; where it is refused, say so on the event.

        Sets ``event.cancel`` to what the model is to be told, ``event.refusal`` to the same as
        structure and, where it had none, ``event.call_id``. A call that was let through waits for
        `after`, or for the settling of the ticket; one that is not made after all has to be told
        of, too. One that another has cancelled already is not judged, except under ``compat``.

        Raises
        ------
        PlaybookError
            ``two_enforcers``: another hook that refuses calls has judged it. ``bad_event``.
        """
        self._look_at(event)
        if self._cancelled_by_another(event):
            return self._not_judged(event)
        arguments = getattr(event, "arguments", None)
        ticket = self.admit(event.tool_name, arguments, **where_of(event))
        self._told(event, ticket)
        return ticket

    def before_all(self, events: Sequence[Any]) -> list[Ticket]:
        """Judge the calls of one reply together, before any of them is made.

        Under a policy that looks ahead, a call which may be made if the earlier ones succeed is
        let through provisionally. Make such calls one after another, and ask `again` of each just
        before it is made.

        Parameters
        ----------
        events : sequence
            The events of one reply of one run, in order.
        """
        for event in events:
            self._look_at(event)
        first, *_ = [where_of(event) for event in events] or [{}]
        seat = self._seat(**{name: first.get(name) for name in _RUN})
        alone = seat.held is None or isinstance(seat.held, Closed)
        if not events or alone or any(map(self._cancelled_by_another, events)):
            return [self.before(event) for event in events]
        calls = [
            {
                "tool": event.tool_name,
                "arguments": getattr(event, "arguments", None),
                "call_id": getattr(event, "call_id", None) or new_call_id(),
            }
            for event in events
        ]
        parent = first["parent"] or self._parent_in(seat)
        found = seat.held.admit_batch(calls, parent=parent, batch=first["batch"])
        tickets = [self._ticket(seat, admission) for admission in found]
        for event, ticket in zip(events, tickets, strict=True):
            self._told(event, ticket)
        return tickets

    def again(self, event: Any) -> bool:
        """Judge a call of `before_all` again just before it is made, where that was provisional.

        Returns
        -------
        bool
            Whether it may be made; if not, the event now says so.
        """
        ticket = self._ticket_of(event)
        if ticket is None and _cancelled(event):
            return False
        if ticket is not None and not ticket.confirm():
            self._told(event, ticket)
        return ticket is None or ticket.allowed

    def _cancelled_by_another(self, event: Any) -> bool:
        own = getattr(event, "judged_by", None) is self
        return _cancelled(event) and not own and self.policy.profile != "compat"

    def _not_judged(self, event: Any) -> Ticket:
        where = where_of(event)
        seat = self._seat(**{name: where[name] for name in _RUN})
        call_id = where["call_id"] or new_call_id()
        refusal = Refusal(
            code="cancelled",
            text=str(event.cancel),
            tool=event.tool_name,
            call_id=call_id,
            key=seat.key,
        )
        frame = self._frame_of(seat, call_id)
        return Ticket(event.tool_name, call_id, frame, refusal=refusal)

    def _look_at(self, event: Any) -> None:
        if not isinstance(getattr(event, "tool_name", None), str):
            raise PlaybookError(
                f"an event names its tool as tool_name; this {type(event).__name__} does not",
                code="bad_event",
                where="event",
                fix="tell a ToolEvent, or an object with its attributes",
            )
        other = getattr(event, "judged_by", None)
        if isinstance(other, Listening):
            self.alone_with(other)

    def _told(self, event: Any, ticket: Ticket) -> None:
        tell(event, "judged_by", self)
        given = getattr(event, "call_id", None)
        if given is None:
            tell(event, "call_id", ticket.call_id)
        if ticket.refusal is not None:
            tell(event, "refusal", ticket.refusal)
            event.cancel = ticket.refusal.text
        else:
            if _cancelled(event) and getattr(event, "refusal", None) is not None:
                tell(event, "refusal", None)  # it was refused before, and is asked about again
                event.cancel = None
            ticket.open_in(ticket.frame.seat.waiting, given or ticket.call_id)

    def after(self, event: Any) -> Settlement | None:
        """Settle the call an event tells of; of one that was refused, nothing.

        ``event.outcome`` says what came of it where it is set; otherwise a call that somebody
        cancelled is ``"cancelled"``, and an ``error`` makes it a failure. An answer that came from
        a cache is ``"cached"``; one that came after attempts which failed is ``"retried"``, and
        only its last attempt is told of.

        Returns
        -------
        Settlement or None
            What it did to the plan.

        Raises
        ------
        PlaybookError
            ``unknown_call``: `before` was not told of it; ``bad_outcome``.
        """
        ticket = self._ticket_of(event)
        if ticket is None:
            return None
        error = getattr(event, "error", None)
        outcome = getattr(event, "outcome", None)
        if outcome is None:
            outcome = "cancelled" if _cancelled(event) else "ok" if error is None else "error"
        return ticket.settle(
            checked_outcome(outcome),
            result=getattr(event, "result", None),
            error=error,
            arguments=getattr(event, "arguments", None),
        )

    def _ticket_of(self, event: Any) -> Ticket | None:
        """Find the call of an event; None where there is nothing more to do about it."""
        key = self._key(getattr(event, "run_id", None), getattr(event, "thread_id", None))
        seat = self._plans.peek(key)
        if seat is None:  # the plan was dropped while the call ran: there is nothing to tell
            return None
        waiting = seat.waiting
        call_id = getattr(event, "call_id", None)
        ticket = waiting.get(call_id) if call_id is not None else first_of(waiting, event.tool_name)
        if ticket is None and not _cancelled(event) and not _was_refused(seat.held, call_id):
            raise PlaybookError(
                f"after() was told of call {call_id!r} of {event.tool_name!r} in run {key!r}, "
                "which before() has not judged, or which is settled",
                code="unknown_call",
                where="call_id",
                fix="hand each call to before(event) first, with the same ids, and once to after",
            )
        return ticket

    def _key(self, run_id: str | None, thread_id: str | None) -> str:
        """Give the key of a run; of none that is named, that of the code that is running."""
        frame = self._frame()
        if run_id is None and thread_id is None and frame is not None:
            return frame.seat.key
        return key_of(self._scope, run_id, thread_id)


def _cancelled(event: Any) -> bool:
    return getattr(event, "cancel", None) is not None


def _named(hook: Any) -> str:
    playbook = hook.playbook
    return "by a selector" if playbook is None else f"over {playbook.id!r}"


def _was_refused(held: Any, call_id: str | None) -> bool:
    if held is None or isinstance(held, Closed):
        return held is not None
    again = f"{call_id}~"  # what the plan puts after an id that comes again
    return any(
        one.outcome == "refused" and (one.call_id == call_id or one.call_id.startswith(again))
        for one in held.calls
    )
