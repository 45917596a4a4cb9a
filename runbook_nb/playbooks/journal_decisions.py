"""Claims of a journal about its events: what was decided is judged again, what was asked is told.

What a plan was asked, and what came of the calls it let through, is the journal's own word: it
cannot be checked without a head that was noted elsewhere. Everything that was decided from it can.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from runbook_nb._text import clip, counted, listed, visible
from runbook_nb.playbooks.events import replay
from runbook_nb.playbooks.journal_judged import MOST, Judged, Part, asked_in, judge_again, parts_of
from runbook_nb.playbooks.journal_lines import WRITER, Line, Reading
from runbook_nb.playbooks.state import PlanState
from runbook_nb.record.claims import (
    CONFIRMED,
    CONTRADICTED,
    NOTHING_ELSE,
    UNCHECKED,
    Claims,
    Outcome,
    Place,
    Status,
)
from runbook_nb.record.verification import MALFORMED

#: By kind, what the claims about its events are called, and what is claimed of each.
_CLAIMS: Final[dict[str, tuple[str, str]]] = {
    "admitted": ("admission", "the call was let through, under that step"),
    "refused": ("refusal", "the call was refused, for that reason"),
    "settled": ("settlement", "what came of the call counts that much"),
    "closed": ("closing", "the step closes then, with that noted"),
    "skipped": ("skip", "the step is passed over then"),
    "failed": ("failure", "the step fails then"),
    "approved": ("approval", "the step may be approved then"),
    "declined": ("refused approval", "the step may be declined then"),
    "violation": ("violation", "that goes against the playbook"),
    "timed_out": ("timeout", "the step took longer than it may"),
    "stuck": ("stuck", "no call can bring the plan on"),
    "reset": ("reset", "the plan is set back"),
    "resumed": ("resumption", "those calls were still open"),
    "finished": ("finish", "the run comes to that"),
}

#: What is claimed of the other parts of lines.
_PARTS: Final[dict[Part, tuple[str, str]]] = {
    "evidence": ("evidence", "the call proves that much and no more"),
    "words": ("words", "what was said about it is said so"),
}

#: What is the journal's own word: what that is, and the kinds of events that tell it.
_WORD: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "asked.calls": (
        "which calls were asked for, with what, and that these are all",
        ("admitted", "refused", "violation"),
    ),
    "asked.outcomes": ("what came of the calls", ("settled",)),
    "asked.steps": (
        "who closed, passed over, failed, approved and declined steps, and what was said",
        ("closed", "skipped", "failed", "approved", "declined", "reset"),
    ),
    "asked.torn": ("what was broken off when the plan was left", ("resumed",)),
}

_STOPPED: Final = f"{MOST} decisions before it differ"
_BASIS: Final = "the playbook, its policy and what was asked, judged again"
_HIDDEN: Final = "what the call was given, or gave, is not kept as it was"
_WORDED: Final = "it was written by another version, with other words"


def line_place(number: int, *inside: Any) -> Place:
    """Give the place of a line, told by its number from 1, or of something in it.

    Examples
    --------
    >>> line_place(4, "event", "tool")
    ('lines', 3, 'event', 'tool')
    """
    return ("lines", number - 1, *inside)


# --- what was decided -----------------------------------------------------------------------------


def claim_decisions(found: Reading, claims: Claims) -> None:
    """Claim that everything was decided as the policy has it, and that the counts add up.

    Parameters
    ----------
    found : Reading
        A journal in whose lines nothing is wrong.
    claims : Claims
        Takes the claims.
    """
    lines = found.lines
    state = _replayed(lines, claims)
    if state is None:
        return
    judged: dict[Part, dict[int, Judged]] = {"decision": {}, "evidence": {}, "words": {}}
    stopped = ""
    try:
        for one in judge_again(lines):
            judged[one.part][one.number] = one
    except MALFORMED as error:
        stopped = clip(visible(f"{type(error).__name__}: {error}"), 200)
        if not judged["decision"]:
            told = "calls can be held to the playbook in the header"
            basis = "the rules of its policy"
            claims.settle("decisions", told, False, basis, line_place(1), said=stopped)
    by_kind: dict[str, list[Line]] = {}
    for line in lines[1:]:
        by_kind.setdefault(line.event.kind, []).append(line)
    for kind, of_kind in by_kind.items():
        _Told(*_CLAIMS[kind], "decision", judged["decision"]).claim(of_kind, claims, stopped)
    for part, (id_, told) in _PARTS.items():
        of_part = [line for line in lines if line.number in judged[part]]
        _Told(id_, told, part, judged[part], own=found.writer == WRITER).claim(of_part, claims)
    _claim_counts(lines, state, claims)


def _replayed(lines: Sequence[Line], claims: Claims) -> PlanState | None:
    """Claim that the events can have happened one after another; give what they lead to."""
    told = f"its {counted(len(lines), 'event')} can have happened one after another"
    basis = "the plan, replayed"
    try:
        state = replay(line.event for line in lines)
    except MALFORMED as error:
        number = _first_that_cannot(lines)
        said = f"line {number:,}: {clip(visible(str(error)), 200)}"
        claims.settle("replay", told, False, basis, line_place(number), said=said)
        rest = "what it decided follows from what was asked"
        claims.unchecked("decisions", rest, "it cannot be replayed", ("lines",))
        return None
    claims.settle("replay", told, True, basis)
    return state


def _first_that_cannot(lines: Sequence[Line]) -> int:
    from runbook_nb.playbooks.events import apply

    state: PlanState | None = None
    for line in lines:
        try:
            state = apply(state, line.event)
        except MALFORMED:
            return line.number
    return len(lines)


class _Told:
    """Claims about one part of lines: what they are called, and what became of each.

    Parameters
    ----------
    id_, told : str
        What the claims are called, and what is claimed.
    part : str
        The part of the lines.
    judged : mapping
        What became of judging each line again.
    own : bool
        Whether the journal was written by this version, and in its words.
    """

    def __init__(
        self, id_: str, told: str, part: Part, judged: Mapping[int, Judged], *, own: bool = True
    ) -> None:
        self.id, self.told, self.part, self.judged = id_, told, part, judged
        self._worded = part == "words" and not own

    def claim(self, lines: Sequence[Line], claims: Claims, stopped: str = "") -> None:
        """Claim it of lines: of each by its name where they are few, else together."""
        by: dict[tuple[Status, str], list[int]] = {}
        for line in lines:
            one = self.judged.get(line.number)
            became = self._status(one) if one is not None else (UNCHECKED, stopped or _STOPPED)
            by.setdefault(became, []).append(line.number)
        names = {line.number: _name(line) for line in lines}
        twice = {name for name, times in Counter(names.values()).items() if times > 1}
        told = {line.number: line.event.to_dict() for line in lines}
        against = frozenset(by.get((CONTRADICTED, _BASIS), ()))

        def name_of(number: int) -> str:
            name = names[number]
            return f"{name}, line {number}" if name in twice else name

        def cover_of(numbers: Any) -> tuple[Place, ...]:
            several = [numbers] if isinstance(numbers, int) else sorted(numbers)
            if against.intersection(several):
                return tuple(line_place(number) for number in several)
            return tuple(
                line_place(number, "event", name)
                for number in several
                for name in sorted(parts_of(told[number])[self.part])
            )

        outcomes = [
            Outcome(status, numbers, why, self._difference) for (status, why), numbers in by.items()
        ]
        singly = self.part != "words"
        claims.many(self.id, self.told, outcomes, name_of, cover_of, singly=singly)

    def _status(self, one: Judged) -> tuple[Status, str]:
        if self._worded:
            return UNCHECKED, _WORDED
        if one.hidden:
            return UNCHECKED, _HIDDEN
        return (CONFIRMED if one.holds else CONTRADICTED), _BASIS

    def _difference(self, number: int) -> tuple[Any, Any]:
        one = self.judged[number]
        return (None, one.said) if one.said else ({one.field: one.expected}, {one.field: one.found})


def _name(line: Line) -> str:
    """Name an event in a few words: by its call or its step, else by its line."""
    event: Any = line.event
    for name in ("call_id", "step_id"):
        value = getattr(event, name, None)
        if value:
            return clip(visible(str(value)), 40)
    return f"line {line.number}"


def _claim_counts(lines: Sequence[Line], state: PlanState, claims: Claims) -> None:
    """Claim that the plan that is replayed has as many calls as there are lines of each kind."""
    since = max((n for n, line in enumerate(lines) if line.event.kind == "reset"), default=0)
    begun: Any = lines[0].event
    if begun.plan is not None:
        return  # its calls before the journal are counted nowhere
    events: list[Any] = [line.event for line in lines[since:]]
    filed = sum(one.filed and not one.again for one in events if one.kind == "settled")
    claims.check(
        "counts.calls",
        f"{counted(state.plan.total_tool_calls, 'call')} made",
        state.plan.total_tool_calls,
        filed,
        "the settlements, counted",
    )
    refused = sum(one.kind == "refused" for one in events)
    claims.check(
        "counts.refused",
        f"{counted(refused, 'call')} refused",
        sum(call.outcome == "refused" for call in state.calls.values()),
        refused,
        "the refusals, counted",
    )
    still = [call for call in state.calls.values() if call.outcome is None]
    if still:
        names = [clip(visible(call.call_id), 40) for call in still[:10]]
        more = [f"{len(still) - 10:,} more"] if len(still) > 10 else []
        told = f"what came of {listed([*names, *more])}"
        why = "nobody has told: they were let through and are open at the end"
        claims.unchecked("calls.open", told, why, count=len(still))


# --- what was asked -------------------------------------------------------------------------------


def claim_asked(found: Reading, claims: Claims) -> None:
    """Name what is the journal's own word: what was asked, by whom and when, and what came of it.

    Parameters
    ----------
    found : Reading
        A journal in whose lines nothing is wrong.
    claims : Claims
        Takes the claims.
    """
    lines = found.lines
    for id_, (told, kinds) in _WORD.items():
        asked = {
            line.number: names
            for line in lines
            if line.event.kind in kinds and (names := asked_in(line.event.to_dict()))
        }
        covers = tuple(
            line_place(number, "event", name)
            for number, names in asked.items()
            for name in sorted(names)
        )
        if asked:
            claims.unchecked(id_, told, NOTHING_ELSE, *covers, count=len(asked))
    back = next((two.number for one, two in pairwise(lines) if _earlier(two, one)), None)
    times = "when all of that happened"
    why = NOTHING_ELSE if back is None else f"the clock went back at line {back:,}"
    covers = tuple(line_place(line.number, "event", "at") for line in lines)
    claims.unchecked("asked.times", times, why, *covers, count=len(lines))


def _earlier(one: Line, other: Line) -> bool:
    try:
        return one.event.at < other.event.at
    except TypeError:  # one of a zone, one of none
        return True
