"""What a watched step came to: its calls, what was refused and what was noted, counted once.

Record layer. The table of a plan, its picture, its rows and its ledger say the same because all of
them read these counts; the words for a refusal and for a deviation are here too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from runbook_nb._text import clip, counted, listed, number_text, show
from runbook_nb._view import Cell, Data, Run

#: What can become of a step, in the order it is counted out.
STEP_STATES: Final = (
    "completed",
    "stuck",
    "failed",
    "declined",
    "skipped",
    "in progress",
    "pending",
)

#: What becomes of a step that a person declined to approve, and what it is given up by.
DECLINED: Final = "declined"

#: Outcomes of a call that count as a success; any other but an open one is a failure.
SUCCEEDED: Final = ("ok", "cached", "retried")

#: Arguments of a call that its row names, and characters of each.
MAX_ARGUMENTS: Final = 4
MAX_ARGUMENT: Final = 60

#: Where calls are filed that came when no step was left.
AFTER: Final = "after the last step"

#: How the outcome of a call is told of it in a row.
_ANSWERED: Final = {
    "ok": "answered",
    "cached": "was answered from what is kept",
    "error": "failed",
    "retried": "answered when it was tried again",
    "cancelled": "was cancelled",
    "unknown": "was called, nothing is known of how it ended",
}

#: Why a call was refused, by the kind of violation; what is in braces comes with it.
_REFUSALS: Final = {
    "unexpected_tool": "not expected in this step",
    "tool_outside_skill": "outside what the skills of this step allow",
    "max_tool_calls": "over the limit of {limit}",
    "playbook_complete": "the playbook is complete",
    "plan_budget": "over the budget of the playbook",
    "approval_declined": "of a step that was declined",
    "approval_missing": "not approved yet",
    "prerequisite_missing": "due after what its step requires",
    "step_timeout": "of a step that took too long",
}


@dataclass(slots=True)
class StepFacts:
    """What was recorded of one step.

    Attributes
    ----------
    status : str
        One of `STEP_STATES`.
    tools : Counter
        (tool, outcome) -> how often; ``open`` for a call that has not settled.
    aside : Counter
        Housekeeping tools that were let through without being calls of the step.
    refused : Counter
        (tool, kind of violation, limit) -> how often.
    deviations : list of mapping
        What was noted, each with its ``kind``.
    matched, checks : dict
        Names of the probes that calls matched and of the checks they met, in the order of first
        meeting.
    counted : int
        How many of its calls count towards its floor and its cap.
    early : Counter
        Tools of its own that were called with success before it was current.
    ended : mapping
        ``{by, who, note}`` of how it was closed, skipped or given up; empty while it is open.
    approvals : list of mapping
        Who approved it.
    declined : mapping
        ``{who, note}`` of who declined to approve it, also where it was passed over then.
    why : str
        Why nothing can close it, where it is stuck.
    """

    status: str = "pending"
    tools: Counter[tuple[str, str]] = field(default_factory=Counter)
    aside: Counter[str] = field(default_factory=Counter)
    refused: Counter[tuple[str, str, Any]] = field(default_factory=Counter)
    deviations: list[Mapping[str, Any]] = field(default_factory=list)
    matched: dict[str, None] = field(default_factory=dict)
    checks: dict[str, None] = field(default_factory=dict)
    counted: int = 0
    early: Counter[str] = field(default_factory=Counter)
    ended: Mapping[str, Any] = field(default_factory=dict)
    approvals: list[Mapping[str, Any]] = field(default_factory=list)
    declined: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""

    @property
    def calls(self) -> int:
        """How many calls were made in it."""
        return self.tools.total()

    def let_go(self, tool: str) -> None:
        """Take back a call that was admitted here and is filed under another step."""
        if self.tools[tool, "open"] > 1:
            self.tools[tool, "open"] -= 1
        else:  # also of a call whose beginning was not recorded here
            del self.tools[tool, "open"]

    @property
    def unsettled(self) -> int:
        """How many of its calls nobody has said the outcome of."""
        return sum(times for (_, outcome), times in self.tools.items() if outcome == "open")

    def of_tool(self, tool: str) -> tuple[int, int, int]:
        """Count how often a tool succeeded, failed, and is still to answer."""
        sums = [0, 0, 0]
        for (name, outcome), times in self.tools.items():
            if name == tool:
                place = 2 if outcome == "open" else 0 if outcome in SUCCEEDED else 1
                sums[place] += times
        return sums[0], sums[1], sums[2]

    @property
    def passed_over(self) -> bool:
        """Whether a call for a later step went past it."""
        return self.status == "skipped" and self.ended.get("by") == "calls"

    # -- taking in what happened -------------------------------------------------------------

    def take(self, kind: str, key: str, value: Mapping[str, Any]) -> None:
        """Take in one recorded event."""
        _TAKEN[kind](self, key, value)

    def _admitted(self, tool: str, value: Mapping[str, Any]) -> None:
        if value.get("aside"):
            self.aside[tool] += 1
            return
        self.tools[tool, "open"] += 1
        if self.status in ("pending", "stuck"):
            self.status, self.why = "in progress", ""

    def _settled(self, tool: str, value: Mapping[str, Any]) -> None:
        if not value.get("under"):
            self.let_go(tool)
        if not value.get("aside"):
            self.tools[tool, str(value.get("outcome"))] += 1
            self.counted += bool(value.get("counted"))
        self.matched.update(dict.fromkeys(value.get("matched") or ()))
        self.checks.update(dict.fromkeys(value.get("checks") or ()))

    def _refused(self, tool: str, value: Mapping[str, Any]) -> None:
        self.refused[tool, str(value.get("type")), value.get("limit")] += 1

    def _deviated(self, kind: str, value: Mapping[str, Any]) -> None:
        self.deviations.append({**value, "kind": kind})

    def _approved(self, _: str, value: Mapping[str, Any]) -> None:
        self.approvals.append(value)

    def _closed(self, by: str, value: Mapping[str, Any]) -> None:
        self.status, self.ended = "completed", {**value, "by": by}

    def _skipped(self, by: str, value: Mapping[str, Any]) -> None:
        self.status, self.ended = "skipped", {**value, "by": by}

    def _given_up(self, by: str, value: Mapping[str, Any]) -> None:
        self.status, self.ended = "failed", {**value, "by": by}
        if by == DECLINED:
            self.status, self.declined = DECLINED, value

    def _stuck(self, _: str, value: Mapping[str, Any]) -> None:
        self.status, self.why = "stuck", str(value.get("why") or "")

    def served(self, text: Callable[[str], str], texts: Callable[[Any], Any]) -> StepFacts:
        """Give the same counts under names as a policy lets them be seen."""
        return StepFacts(
            status=self.status,
            tools=_renamed(self.tools, lambda key: (text(key[0]), key[1])),
            aside=_renamed(self.aside, text),
            refused=_renamed(self.refused, lambda key: (text(key[0]), *key[1:])),
            deviations=list(map(texts, self.deviations)),
            matched=dict.fromkeys(map(text, self.matched)),
            checks=dict.fromkeys(map(text, self.checks)),
            counted=self.counted,
            early=_renamed(self.early, text),
            ended=texts(self.ended),
            approvals=list(map(texts, self.approvals)),
            declined=texts(self.declined),
            why=text(self.why),
        )


_TAKEN: Final[Mapping[str, Callable[[StepFacts, str, Mapping[str, Any]], None]]] = {
    "admitted": StepFacts._admitted,
    "settled": StepFacts._settled,
    "refused": StepFacts._refused,
    "deviation": StepFacts._deviated,
    "approved": StepFacts._approved,
    "closed": StepFacts._closed,
    "skipped": StepFacts._skipped,
    "given_up": StepFacts._given_up,
    "stuck": StepFacts._stuck,
}


def _renamed(counts: Counter[Any], name: Callable[[Any], Any]) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for key, times in counts.items():
        found[name(key)] += times
    return found


# -- verdicts ------------------------------------------------------------------------------------

#: Under which word the rows about steps name what decided: what was recorded of each.
STEP_DECIDER: Final = "steps"

#: What the verdict on a step means, in the order they are told.
STEP_VERDICTS: Final = {
    "completed": "its calls were made and it was closed",
    "closed short": "it was closed without all the calls or evidence it asks for",
    "skipped": "optional, and passed by",
    "stuck": "no call could close it any more",
    "failed": "it was marked as failed",
    "not finished": "it was begun and is not closed",
    "not reached": "nobody came to it",
    "approval declined": "a person declined to approve it",
}
_VERDICTS: Final = {
    "in progress": "not finished",
    "pending": "not reached",
    # `declined` alone is the word for a subject that could not be judged.
    DECLINED: "approval declined",
}


def verdict_of(facts: StepFacts, short: bool) -> str:
    """Give the verdict on a step; ``short`` says whether it lacks anything it asks for.

    Examples
    --------
    >>> verdict_of(StepFacts(status="completed"), True), verdict_of(StepFacts(), False)
    ('closed short', 'not reached')
    """
    if facts.status == "completed" and short:
        return "closed short"
    return _VERDICTS.get(facts.status, facts.status)


# -- words ---------------------------------------------------------------------------------------


def refusal_reason(kind: str, limit: Any = None, why: str = "") -> str:
    """Say why a call was refused, in a few words.

    Examples
    --------
    >>> refusal_reason("max_tool_calls", 3), refusal_reason("odd_kind", why="for a reason")
    ('over the limit of 3', 'for a reason')
    """
    words = _REFUSALS.get(kind)
    if words is None or ("{limit}" in words and limit is None):
        return why or kind.replace("_", " ")
    return words.format(limit=limit)


def deviation_words(noted: Mapping[str, Any]) -> Cell:
    """Say what was noted without refusing anything.

    Examples
    --------
    >>> deviation_words({"kind": "evidence_incomplete", "names": ["whois"]})
    ('evidence incomplete: probe', Data(value='whois', unit=None, tone='plain'), 'matched no call')
    """
    kind, names = str(noted.get("kind")), [str(name) for name in noted.get("names") or ()]
    if kind == "evidence_incomplete" and names:
        probes = "probe" if len(names) == 1 else "probes"
        return (f"evidence incomplete: {probes}", *named_runs(names), "matched no call")
    if kind == "tools_missing" and names:
        return ("closed without", *named_runs(names))
    if kind == "insufficient_effort" and noted.get("limit") is not None:
        return f"fewer calls than the {noted['limit']} required"
    if kind == "step_timeout" and noted.get("limit") is not None:
        return f"took longer than the {number_text(noted['limit'])} s it may"
    if kind in _REFUSALS:  # where calls outside the plan are noted and let through
        tool = (Data(value=noted["tool"]),) if noted.get("tool") else ("a call",)
        return (*tool, "went through,", refusal_reason(kind, noted.get("limit"), ""))
    why = noted.get("why")
    words = kind.replace("_", " ")
    return (f"{words}:", Data(value=why)) if why else words


def named_runs(names: Iterable[str]) -> Iterator[Run]:
    """Yield names of data one after the other, with commas between."""
    for place, name in enumerate(names):
        if place:
            yield ","
        yield Data(value=name)


def step_words(kind: str, key: str, value: Mapping[str, Any]) -> str:
    """Say one recorded event of a step, its values as a policy lets them be seen.

    Examples
    --------
    >>> step_words("admitted", "query", {"arguments": {"index": "auth", "days": 2}})
    'Called query with index=auth, days=2'
    >>> step_words("settled", "query", {"outcome": "ok", "matched": ["siem"]})
    'query answered; it matched probe siem'
    >>> step_words("closed", "person", {"who": "ana", "note": "seen on the console"})
    'Closed by ana: seen on the console'
    """
    if kind == "admitted":
        given = _arguments(value.get("arguments"))
        return f"Called {key} with {given}" if given else f"Called {key}"
    if kind == "settled":
        outcome = str(value.get("outcome"))
        words = f"{key} {_ANSWERED.get(outcome, outcome)}"
        error = f": {show(value['error'])}" if value.get("error") else ""
        matched = [show(name) for name in value.get("matched") or ()]
        probes = f"; it matched {'probe' if len(matched) == 1 else 'probes'} {listed(matched)}"
        return f"{words}{error}{probes if matched else ''}"
    if kind == "refused":
        why = refusal_reason(str(value.get("type")), value.get("limit"), value.get("why") or "")
        return f"Refused {key}: {why}"
    if kind == "deviation":
        words = _said(deviation_words({**value, "kind": key}))
        return words[:1].upper() + words[1:]
    who, note = value.get("who"), value.get("note") or value.get("result")
    by = f" by {show(who)}" if who else _BY.get(key, "")
    if kind == "skipped" and key == "calls":
        by = "" if note else ", passed over"
    words = {
        "approved": f"Approved{by}",
        "closed": f"Closed{by}",
        "skipped": f"Skipped{by}",
        "given_up": f"Declined{by}" if key == DECLINED else f"Failed{by}",
        "stuck": "Stuck",
    }[kind]
    said = value.get("why") if kind == "stuck" else note
    return f"{words}: {show(said)}" if said else words


def _arguments(given: Any) -> str:
    """Write what a call was given, name by name; a row is no place for all of a long one."""
    if isinstance(given, Mapping):
        parts = [f"{show(name)}={clip(show(value), MAX_ARGUMENT)}" for name, value in given.items()]
        more = len(parts) - MAX_ARGUMENTS
        return ", ".join(parts[:MAX_ARGUMENTS]) + (f" and {more} more" if more > 0 else "")
    return "" if given is None else clip(show(given), MAX_ARGUMENT)


def _said(cell: Cell) -> str:
    """Write our words and names of data in a row."""
    words = ""
    for run in cell if isinstance(cell, tuple) else (cell,):
        text = run.value if isinstance(run, Data) else run
        words += f"{' ' if words and text != ',' else ''}{show(text)}"
    return words


_BY: Final = {
    "calls": " by its calls",
    "cap": " by its cap",
    "host": " by the host",
    "person": " by hand",
    "timeout": " by its time limit",
    "earlier": " before anybody enforced it",
}


def states_counted(facts: Iterable[StepFacts]) -> list[tuple[str, int]]:
    """Count steps by what became of them, in one order; those that are none are left out."""
    counts = Counter(one.status for one in facts)
    return [(state, counts[state]) for state in STEP_STATES if counts[state]]


def steps_sentence(facts: Sequence[StepFacts]) -> str:
    """Say what became of all steps, and how many calls there were.

    Examples
    --------
    >>> steps_sentence([StepFacts(status="completed"), StepFacts()])
    '2 steps: 1 completed, 1 pending; 0 calls recorded'
    """
    states = ", ".join(f"{times} {state}" for state, times in states_counted(facts))
    made = sum(one.calls for one in facts)
    calls = calls_words(made, sum(one.refused.total() for one in facts))
    return f"{counted(len(facts), 'step')}: {states}; {calls}"


def calls_words(made: int, refused: int) -> str:
    """Say how many calls there were.

    Examples
    --------
    >>> calls_words(8, 3), calls_words(1, 0)
    ('8 calls recorded, 3 refused', '1 call recorded')
    """
    said = f"{counted(made, 'call')} recorded"
    return f"{said}, {refused} refused" if refused else said
