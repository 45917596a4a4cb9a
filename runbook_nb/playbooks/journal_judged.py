"""Judging a journal again: each thing that was asked of the plan is asked once more.

An enforcer is made of the header alone and asked, in order and at the recorded times, what the
journal says was asked: to let calls through, to take in what came of them, to close and to pass
over steps. What it makes of that is held against what the journal says was made of it. After a
difference it goes on from what the journal says, so that each difference is told once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from runbook_nb._text import clip, visible
from runbook_nb.playbooks.enforcer import PlaybookEnforcer
from runbook_nb.playbooks.events import Event, replay
from runbook_nb.playbooks.journal_lines import Line
from runbook_nb.playbooks.keeper import Keeper
from runbook_nb.playbooks.values import Kept
from runbook_nb.record.claims import agrees
from runbook_nb.record.verification import MALFORMED
from runbook_nb.settings import settings

#: Differences after which the rest is not judged any more: each costs a replay of what was before.
MOST: Final = 200

#: By kind, the fields that tell what was asked and what came of a call; all others are decided.
_ASKED: Final[dict[str, frozenset[str]]] = {
    "admitted": frozenset({"call_id", "tool", "arguments", "parent", "batch", "judged", "exact"}),
    "refused": frozenset({"call_id", "tool", "arguments", "parent", "batch", "exact"}),
    "settled": frozenset({"call_id", "outcome", "error", "result", "arguments", "exact"}),
    "closed": frozenset({"who", "note", "result"}),
    "skipped": frozenset({"who", "reason"}),
    "failed": frozenset({"who", "error"}),
    "approved": frozenset({"step_id", "who", "note"}),
    "declined": frozenset({"step_id", "who", "note"}),
    "resumed": frozenset({"torn"}),
}

#: What every event has besides, which is not for a plan to decide.
_OF_ALL: Final = frozenset({"seq", "at", "kind", "args_digest"})

#: What was made of the arguments and results of a call.
_EVIDENCE: Final = frozenset({"matched", "checks"})
#: What was said about a decision, in the words of a version.
_WORDS: Final = frozenset({"message", "hints", "reason", "error", "result"})

#: The parts of a line that are held apart: what was decided, what it proves, what was said.
Part = Literal["decision", "evidence", "words"]

#: Asks a plan for something.
Ask = Callable[[PlaybookEnforcer], object]


def asked_in(told: Mapping[str, Any]) -> frozenset[str]:
    """Name the fields of an event that tell what was asked, and what came of a call.

    Parameters
    ----------
    told : mapping
        The event, as a journal has it.

    Examples
    --------
    >>> sorted(asked_in({"kind": "skipped", "by": "host"}))
    ['reason', 'who']
    >>> sorted(asked_in({"kind": "skipped", "by": "calls"}))
    []
    """
    if "by" in told and told["by"] not in ("host", "person"):
        return frozenset()
    if told["kind"] == "violation" and told["tool"] and not told["call_id"]:
        return frozenset({"tool"})  # of a name that was judged, and not called
    if told["kind"] == "reset":
        return frozenset({"who"} & told.keys())  # told only where a person is named
    return _ASKED.get(told["kind"], frozenset())


def parts_of(told: Mapping[str, Any]) -> dict[Part, frozenset[str]]:
    """Give the fields of an event that were decided, by what they are.

    Parameters
    ----------
    told : mapping
        The event, as a journal has it.

    Examples
    --------
    >>> parts_of({"seq": 2, "kind": "settled", "call_id": "c1", "filed": True})["decision"]
    frozenset({'filed'})
    """
    decided = frozenset(told.keys() - _OF_ALL - asked_in(told))
    return {
        "decision": decided - _EVIDENCE - _WORDS,
        "evidence": decided & _EVIDENCE,
        "words": decided & _WORDS,
    }


class Judged(NamedTuple):
    """What became of judging a part of a line again.

    Attributes
    ----------
    number : int
        The line.
    part : {"decision", "evidence", "words"}
        The part of it.
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
    part: Part = "decision"
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
    """Judge every line after the first again, and yield what became of each part, in order.

    Parameters
    ----------
    lines : sequence of Line
        All lines of a journal in which nothing is wrong, and which can be replayed.

    Raises
    ------
    Exception
        No enforcer can be made of the header.
    """
    judge = _Judge([line.event for line in lines])
    place, differences = 1, 0
    while place < len(lines) and differences < MOST:
        end = place + 1 + lines[place].more
        for one in judge.together(place, end):
            differences += not (one.holds or one.part == "words")
            yield one
        place = end


class _Keeper(Keeper):
    """Decides as any, but takes what a call proves from the journal where it cannot be known.

    Attributes
    ----------
    proven : dict of str to (matched, checks)
        By call, where arguments or results are not kept as they were given.
    """

    __slots__ = ("proven",)

    proven: Mapping[str, tuple[Any, Any]]

    def _matched(self, step: Any, call: Any, *given: Any) -> tuple[str, ...]:
        told = self.proven.get(call.call_id)
        return super()._matched(step, call, *given) if told is None else told[0]

    def _checks(self, step: Any, call: Any, *given: Any) -> tuple[str, ...]:
        told = self.proven.get(call.call_id)
        return super()._checks(step, call, *given) if told is None else told[1]


class _Judge:
    """An enforcer that is asked again what a journal says was asked."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        #: Calls of which something is not kept as it was given.
        self._hidden = {one.call_id for one in _calls(events) if not one.exact}
        self._proven: dict[str, tuple[Any, Any]] = {}
        self._enforcer, self._heard = self._standing(1)

    def _standing(self, place: int) -> tuple[PlaybookEnforcer, list[Event]]:
        """Give an enforcer that stands where the journal says the plan stood, and what it tells."""
        heard: list[Event] = []
        state = replay(self._events[:place])
        enforcer = PlaybookEnforcer._of_state(state, None, (None, (heard.append,), None))
        enforcer._keeper = keeper = _Keeper(enforcer.terms, state, Kept(None))
        keeper.proven = self._proven
        return enforcer, heard

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
            place = judged[-1].number
            if not _all_hold(judged) and place < len(self._events):
                self._enforcer, self._heard = self._standing(place)

    def _answers(self, place: int, end: int, asked: int | None, ask: Ask) -> list[Judged]:
        """Ask, and hold what comes of it against the lines from a place on."""
        least = (end if asked is None else asked + 1) - place
        at = self._events[place if asked is None else asked].at
        self._heard.clear()
        self._proven.clear()
        for one in _calls(self._events[place:end]):
            if one.kind == "settled" and one.call_id in self._hidden:
                self._proven[one.call_id] = one.matched, one.checks
        try:
            with settings(clock=lambda: at):
                ask(self._enforcer)
        except MALFORMED as error:
            said = f"cannot be asked: {clip(visible(f'{type(error).__name__}: {error}'), 200)}"
            return [Judged(place + n + 1, said=said) for n in range(least)]
        made = list(self._heard)
        judged = [
            one
            for n in range(min(max(least, len(made)), end - place))
            for one in self._against(place + n, made[n] if n < len(made) else None)
        ]
        if len(made) > end - place and _all_hold(judged):
            lacking = made[end - place]
            said = f"is not followed by {lacking.kind!r}{_about(lacking)}, which comes of it"
            judged[-1] = Judged(end, said=said)
        return judged

    def _against(self, place: int, made: Event | None) -> Iterator[Judged]:
        """Hold one event, part by part, against what judging again made."""
        event, number = self._events[place], place + 1
        if made is None:
            yield Judged(number, said="does not come of what was asked")
            return
        hidden = getattr(event, "call_id", None) in self._hidden
        if event.kind != made.kind:
            barred = "tool_outside_skill"
            hangs = barred in (getattr(event, "violation", ""), getattr(made, "violation", ""))
            found, expected = event.kind, f"{made.kind}{_about(made)}"
            yield Judged(number, "decision", "kind", found, expected, hidden=hidden and hangs)
            return
        told, again = event.to_dict(), made.to_dict()
        for part, names in parts_of(told).items():
            if part == "evidence" and not self._asks_evidence(told, again):
                continue
            held = names | {"tool"} if event.kind == "violation" and part == "decision" else names
            other = next((n for n in sorted(held) if not agrees(told[n], again[n])), None)
            unsure = hidden and part == "evidence"
            if other is not None:
                yield Judged(number, part, other, told[other], again[other], hidden=unsure)
            elif names or part == "decision":
                yield Judged(number, part, hidden=unsure)

    def _asks_evidence(self, told: Mapping[str, Any], again: Mapping[str, Any]) -> bool:
        """Say whether the step of a call asks for evidence, or any is told of."""
        terms = self._enforcer.terms.by_id.get(again.get("step_id") or "")
        asks = terms is not None and bool(terms.probes or terms.checks is not None)
        return asks or any(told.get(name) for name in _EVIDENCE)


def _calls(events: Iterable[Any]) -> Iterator[Any]:
    """Yield the events in which something of a call is kept."""
    return (one for one in events if one.kind in ("admitted", "refused", "settled"))


def _all_hold(judged: Sequence[Judged]) -> bool:
    return all(one.holds for one in judged)


def _about(event: Any) -> str:
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


def _person(event: Any) -> str | None:
    """Give the person who did something; None where the host did."""
    return event.who if event.by == "person" else None


#: By kind, what may have been asked.
_ASKS: Final[dict[str, Callable[[Any], list[Ask]]]] = {
    "admitted": _admission,
    "refused": _admission,
    "settled": _settlement,
    "closed": _closing,
    "skipped": lambda event: [lambda one: one.skip_current_step(event.reason, by=_person(event))],
    "failed": lambda event: [lambda one: one.fail_current_step(event.error, by=_person(event))],
    "approved": lambda event: [
        lambda one: one.approve(event.step_id, by=event.who, note=event.note)
    ],
    "declined": lambda event: [
        lambda one: one.decline(event.step_id, by=event.who, note=event.note)
    ],
    "reset": lambda event: [lambda one: one.reset(by=event.who)],
    "resumed": lambda event: [lambda one: one._take_up(event.torn)],
    "finished": lambda event: [PlaybookEnforcer.finish],
}
