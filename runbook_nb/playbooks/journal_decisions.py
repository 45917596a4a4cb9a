"""Claims of a journal about its events: what was decided is judged again, what was asked is told.

What a plan was asked, and what came of the calls it let through, is the journal's own word: it
cannot be checked without a head that was noted elsewhere. Everything that was decided from it can.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from runbook_nb._text import clip, counted, listed, visible
from runbook_nb.errors import RunbookError
from runbook_nb.playbooks.events import replay
from runbook_nb.playbooks.journal_judged import MOST, Judged, judge_again
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
)

#: By kind, what the claims about its events are called, and what is claimed of each.
_CLAIMS: Final[dict[str, tuple[str, str]]] = {
    "admitted": ("admission", "the call was let through, under that step"),
    "refused": ("refusal", "the call was refused, for that reason"),
    "settled": ("settlement", "what came of the call counts and proves that much"),
    "closed": ("closing", "the step closes then, with that noted"),
    "skipped": ("skip", "the step is passed over then"),
    "failed": ("failure", "the step fails then"),
    "approved": ("approval", "the step may be approved then"),
    "violation": ("violation", "that goes against the playbook"),
    "timed_out": ("timeout", "the step took longer than it may"),
    "stuck": ("stuck", "no call can bring the plan on"),
    "reset": ("reset", "the plan is set back"),
    "resumed": ("resumption", "those calls were still open"),
    "finished": ("finish", "the run comes to that"),
}

#: By kind, the fields that tell what was asked and what came of a call; all others are decided.
_ASKED: Final[dict[str, frozenset[str]]] = {
    "admitted": frozenset({"call_id", "tool", "arguments", "parent", "batch", "judged", "exact"}),
    "refused": frozenset({"call_id", "tool", "arguments", "parent", "batch", "exact"}),
    "settled": frozenset({"call_id", "outcome", "error", "result", "arguments", "exact"}),
    "closed": frozenset({"who", "note", "result"}),
    "skipped": frozenset({"who", "reason"}),
    "failed": frozenset({"who", "error"}),
    "approved": frozenset({"step_id", "who", "note"}),
    "resumed": frozenset({"torn"}),
}

#: Fields in which something is said about a decision, in the words of a version.
_WORDS: Final = frozenset({"message", "hints", "reason", "error"})

#: What every line has besides, which claims about lines and times are about.
_OF_LINES: Final = frozenset({"seq", "at", "kind", "args_digest"})

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
    judged: dict[int, Judged] = {}
    stopped = ""
    try:
        for one in judge_again(lines):
            judged[one.number] = one
    except RunbookError as error:
        stopped = clip(visible(error.message), 200)
        if not judged:
            told = "calls can be held to the playbook in the header"
            basis = "the rules of its policy"
            claims.settle("decisions", told, False, basis, line_place(1), said=stopped)
    others = {line.number for line in lines[1:]} - judged.keys()
    if others and not stopped:
        stopped = f"{MOST} decisions before it differ"
    by_kind: dict[str, list[Line]] = {}
    for line in lines[1:]:
        by_kind.setdefault(line.event.kind, []).append(line)
    for kind, of_kind in by_kind.items():
        _claim_kind(kind, of_kind, judged, stopped, found.writer == WRITER, claims)
    _claim_counts(lines, state, claims)


def _replayed(lines: Sequence[Line], claims: Claims) -> PlanState | None:
    """Claim that the events can have happened one after another; give what they lead to."""
    told = f"its {counted(len(lines), 'event')} can have happened one after another"
    basis = "the plan, replayed"
    try:
        state = replay(line.event for line in lines)
    except (RunbookError, LookupError, TypeError, ValueError, AttributeError) as error:
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
        except (RunbookError, LookupError, TypeError, ValueError, AttributeError):
            return line.number
    return len(lines)


def _claim_kind(  # noqa: PLR0917 - what was judged, and how that is told
    kind: str,
    lines: Sequence[Line],
    judged: Mapping[int, Judged],
    stopped: str,
    own_words: bool,
    claims: Claims,
) -> None:
    id_, told = _CLAIMS[kind]
    by: dict[tuple[str, str], list[int]] = {}
    for line in lines:
        by.setdefault(_status(judged.get(line.number), stopped, own_words), []).append(line.number)

    def tell(number: int) -> tuple[Any, Any]:
        one = judged[number]
        return (None, one.said) if one.said else ({one.field: one.expected}, {one.field: one.found})

    names = {line.number: _name(line) for line in lines}
    twice = {name for name, times in Counter(names.values()).items() if times > 1}
    contradicted = frozenset(by.get((CONTRADICTED, _BASIS), ()))

    def name_of(number: int) -> str:
        name = names[number]
        return f"{name}, line {number}" if name in twice else name

    def cover_of(numbers: Any) -> tuple[Place, ...]:
        several = [numbers] if isinstance(numbers, int) else sorted(numbers)
        if contradicted.intersection(several):
            return tuple(line_place(number) for number in several)
        decided = sorted(_decided(kind, lines[0]))
        return tuple(line_place(number, "event", name) for number in several for name in decided)

    outcomes = [
        Outcome(status, numbers, why, tell)  # type: ignore[arg-type]
        for (status, why), numbers in by.items()
    ]
    claims.many(id_, told, outcomes, name_of, cover_of)


def _status(one: Judged | None, stopped: str, own_words: bool) -> tuple[str, str]:
    if one is None:
        return UNCHECKED, stopped
    if one.holds:
        return CONFIRMED, _BASIS
    if one.hidden:
        return UNCHECKED, _HIDDEN
    if one.field in _WORDS and not own_words:
        return UNCHECKED, _WORDED
    return CONTRADICTED, _BASIS


def _decided(kind: str, line: Line) -> set[str]:
    return set(line.event.to_dict()) - _OF_LINES - _ASKED.get(kind, frozenset())


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
    kinds: dict[str, list[int]] = {}
    for line in lines:
        kinds.setdefault(line.event.kind, []).append(line.number)
    _claim_word("asked.calls", "which calls were asked for, and with what", kinds, _CALLS, claims)
    _claim_word("asked.outcomes", "what came of the calls", kinds, ("settled",), claims)
    told = "who closed, passed over, failed and approved steps, and what was said"
    _claim_word("asked.people", told, kinds, _PEOPLE, claims)
    back = next((two.number for one, two in pairwise(lines) if _earlier(two, one)), None)
    times = "when all of that happened"
    why = NOTHING_ELSE if back is None else f"the clock went back at line {back:,}"
    covers = tuple(line_place(line.number, "event", "at") for line in lines)
    claims.unchecked("asked.times", times, why, *covers, count=len(lines))


_CALLS: Final = ("admitted", "refused")
_PEOPLE: Final = ("closed", "skipped", "failed", "approved")


def _claim_word(
    id_: str,
    told: str,
    kinds: Mapping[str, Sequence[int]],
    wanted: Iterable[str],
    claims: Claims,
) -> None:
    covers = tuple(
        line_place(number, "event", name)
        for kind in wanted
        for number in kinds.get(kind, ())
        for name in sorted(_ASKED[kind])
    )
    count = sum(len(kinds.get(kind, ())) for kind in wanted)
    if count:
        claims.unchecked(id_, told, NOTHING_ELSE, *covers, count=count)


def _earlier(one: Line, other: Line) -> bool:
    try:
        return one.event.at < other.event.at
    except TypeError:  # one of a zone, one of none
        return True
