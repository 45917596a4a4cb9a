"""Judging a journal again: each thing that was asked of the plan is asked once more.

An enforcer is made of the header alone and asked, in order and at the recorded times, what the
journal says was asked: to let calls through, to take in what came of them, to close and to pass
over steps. What it makes of that is held against what the journal says was made of it. After a
difference it goes on from what the journal says, so that each difference is told once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from runbook_nb._text import clip, visible
from runbook_nb.errors import RunbookError
from runbook_nb.playbooks.enforcer import PlaybookEnforcer
from runbook_nb.playbooks.events import Event, replay
from runbook_nb.playbooks.journal_lines import Line
from runbook_nb.record.claims import agrees
from runbook_nb.settings import settings

#: Differences after which the rest is not judged any more: each costs a replay of what was before.
MOST: Final = 200

#: What was made of the arguments and results of a call.
_EVIDENCE: Final = frozenset({"matched", "checks"})

#: Asks a plan for something.
Ask = Callable[[PlaybookEnforcer], object]


class Judged(NamedTuple):
    """What became of judging one line again.

    Attributes
    ----------
    number : int
        The line.
    field : str
        Where it differs; empty where it does not.
    found, expected : object
        What the journal says there, and what judging again gave.
    said : str
        What is wrong, where that is no matter of two values.
    hidden : bool
        Whether that hangs on arguments or results which are not kept as they were given.
    """

    number: int
    field: str = ""
    found: Any = None
    expected: Any = None
    said: str = ""
    hidden: bool = False

    @property
    def holds(self) -> bool:
        """Whether judging again gave the same."""
        return not (self.field or self.said)


def judge_again(lines: Sequence[Line]) -> Iterator[Judged]:
    """Judge every line after the first again, and yield what became of each, in order.

    Parameters
    ----------
    lines : sequence of Line
        All lines of a journal in which nothing is wrong, and which can be replayed.

    Raises
    ------
    RunbookError
        No enforcer can be made of the header.
    """
    judge = _Judge([line.event for line in lines])
    place, differences = 1, 0
    while place < len(lines) and differences < MOST:
        end = place + 1 + lines[place].more
        for one in judge.together(place, end):
            differences += not one.holds
            yield one
        place = end


class _Judge:
    """An enforcer that is asked again what a journal says was asked."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._enforcer, self._heard = self._standing(1)

    def _standing(self, place: int) -> tuple[PlaybookEnforcer, list[Event]]:
        """Give an enforcer that stands where the journal says the plan stood, and what it tells."""
        heard: list[Event] = []
        state = replay(self._events[:place])
        return PlaybookEnforcer._of_state(state, None, (None, (heard.append,), None)), heard

    def together(self, place: int, end: int) -> Iterator[Judged]:
        """Judge events that happened together, one thing that was asked after another."""
        while place < end:
            asked = next((n for n in range(place, end) if _was_asked(self._events[n])), None)
            judged: list[Judged] = []
            for number, ask in enumerate(_asks(self._events, place, asked)):
                if number:
                    self._enforcer, self._heard = self._standing(place)
                told = self._answers(place, end, asked, ask)
                if not judged or _all_hold(told):
                    judged = told
                if _all_hold(told):
                    break
            yield from judged
            place += len(judged)
            if not _all_hold(judged) and place < len(self._events):
                self._enforcer, self._heard = self._standing(place)

    def _answers(self, place: int, end: int, asked: int | None, ask: Ask) -> list[Judged]:
        """Ask, and hold what comes of it against the lines from a place on."""
        least = (end if asked is None else asked + 1) - place
        at = self._events[place if asked is None else asked].at
        self._heard.clear()
        try:
            with settings(clock=lambda: at):
                ask(self._enforcer)
        except RunbookError as error:
            said = f"cannot be asked: {clip(visible(error.message), 200)}"
            return [Judged(place + n + 1, said=said) for n in range(least)]
        made = list(self._heard)
        judged = [
            self._against(place + n, made[n] if n < len(made) else None)
            for n in range(min(max(least, len(made)), end - place))
        ]
        if len(made) > end - place and _all_hold(judged):
            lacking = made[end - place]
            about = _step_or_call(lacking)
            said = f"is not followed by {lacking.kind!r}{about}, which comes of it"
            judged[-1] = Judged(end, said=said)
        if any(one.hidden for one in judged):
            judged = [one if one.holds else one._replace(hidden=True) for one in judged]
        return judged

    def _against(self, place: int, made: Event | None) -> Judged:
        """Hold one event against what judging again made."""
        event, number = self._events[place], place + 1
        if made is None:
            return Judged(number, said="does not come of what was asked")
        hidden = self._is_hidden(event)
        if event.kind != made.kind:
            barred = "tool_outside_skill"
            hangs = barred in (getattr(event, "violation", ""), getattr(made, "violation", ""))
            found, expected = event.kind, f"{made.kind}{_step_or_call(made)}"
            return Judged(number, "kind", found, expected, hidden=hidden and hangs)
        told, again = event.to_dict(), made.to_dict()
        for name, value in told.items():
            if name != "at" and not agrees(value, again[name]):
                depends = hidden and name in _EVIDENCE
                return Judged(number, name, value, again[name], hidden=depends)
        return Judged(number)

    def _is_hidden(self, event: Any) -> bool:
        """Say whether what a call was given, or gave, is not kept as it was."""
        if not getattr(event, "exact", True):
            return True
        call = self._enforcer.state.calls.get(getattr(event, "call_id", None) or "")
        return call is not None and not call.exact


def _all_hold(judged: Sequence[Judged]) -> bool:
    return all(one.holds for one in judged)


def _step_or_call(event: Any) -> str:
    for name in ("violation", "step_id", "call_id"):
        value = getattr(event, name, None)
        if value:
            return f" ({clip(visible(str(value)), 60)})"
    return ""


def _was_asked(event: Any) -> bool:
    """Say whether an event tells what was asked of the plan, and not only what came of it."""
    if event.kind in ("closed", "skipped", "failed"):
        return event.by in ("host", "person")
    return event.kind not in ("violation", "timed_out", "stuck")


def _asks(events: Sequence[Event], place: int, asked: int | None) -> list[Ask]:
    """Give what may have been asked where a journal says what came of it; the likeliest first."""
    if asked is None:
        first: Any = events[place]
        if first.kind == "violation" and first.tool is not None:
            return [lambda one: one.validate_tool_call(first.tool)]
        return [PlaybookEnforcer.check_time]
    event = events[asked]
    return _ASKS[event.kind](event)


def _admission(event: Any) -> list[Ask]:
    def admit(one: PlaybookEnforcer) -> object:
        return one.admit(
            event.tool,
            event.arguments,
            call_id=event.call_id,
            parent=event.parent,
            batch=event.batch,
        )

    if not getattr(event, "judged", True):
        return [lambda one: one.record_tool_call(event.tool, arguments=event.arguments)]
    if event.kind == "refused" and event.arguments is None:
        return [admit, lambda one: one.validate_tool_call(event.tool)]
    return [admit]


def _settlement(event: Any) -> list[Ask]:
    return [
        lambda one: one.settle(
            event.call_id,
            event.outcome,
            event.result,
            event.error,
            arguments=event.arguments,
        )
    ]


def _closing(event: Any) -> list[Ask]:
    if event.by == "host":
        return [lambda one: one.complete_current_step(event.result)]
    return [lambda one: one.complete(event.step_id, by=event.who, note=event.note)]


#: By kind, what may have been asked.
_ASKS: Final[dict[str, Callable[[Any], list[Ask]]]] = {
    "admitted": _admission,
    "refused": _admission,
    "settled": _settlement,
    "closed": _closing,
    "skipped": lambda event: [lambda one: one.skip_current_step(event.reason)],
    "failed": lambda event: [lambda one: one.fail_current_step(event.error)],
    "approved": lambda event: [
        lambda one: one.approve(event.step_id, by=event.who, note=event.note)
    ],
    "reset": lambda event: [PlaybookEnforcer.reset],
    "resumed": lambda event: [lambda one: one._take_up(event.torn)],
    "finished": lambda event: [PlaybookEnforcer.finish],
}
