"""The append-only log: what happened, as numbers and values, with no text made while running.

Record layer. One thing that can happen, without its value, is a `Code`; a run interns each code
once and then appends small integers. A *track* is one sequence of codes with the values that go
with them: the root chart has one, and so has each branch of a fan-out while it runs. When a
branch ends, its codes are interned whole as a `Shape` and its values join one flat list, so a
branch costs a number and its values, however many stages it has, and nothing per branch grows
with the number of branches. Rows, ids, sentences, commits and state are views made when asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from runbook_nb.record.tracks import (
    FAILED,
    FORMS,
    NOT_REACHED,
    OK,
    STATUS_WORDS,
    FanOut,
    Track,
)

if TYPE_CHECKING:
    from runbook_nb.rules.evaluate import DecisionPath

__all__ = [
    "FAILED",
    "FORMS",
    "NOT_REACHED",
    "OK",
    "ROW_TYPES",
    "STATUS_WORDS",
    "STEP_KINDS",
    "WIDTHS",
    "Code",
    "Event",
    "FanOut",
    "Known",
    "Log",
    "Shape",
    "StageRef",
    "Tables",
    "Track",
    "code_of",
]


class StageRef(NamedTuple):
    """Which stage something happened in.

    Attributes
    ----------
    id, name : str
        The builder's id and display name.
    kind : str
        One of the node kinds of a structure.
    path : str
        The mounts around the stage inside its own track, each ending in a slash; empty at the
        track's own level.
    """

    id: str
    name: str
    kind: str
    path: str = ""

    @property
    def key(self) -> str:
        """The id under the path of its mounts."""
        return f"{self.path}{self.id}"


class Code(NamedTuple):
    """One thing that can happen in a stage, without its value.

    ``kind`` is one of `WIDTHS`; ``key`` the state key, event name or branch id concerned;
    ``path`` the decision path of a ``decision``.
    """

    kind: str
    stage: StageRef
    key: str | None = None
    path: DecisionPath | None = None


#: Makes a code of its parts, without the call that its class takes for it.
code_of: Final[Callable[[tuple[str, StageRef, str | None, DecisionPath | None]], Code]] = partial(
    tuple.__new__, Code
)

#: How many values go with a code of each kind. A decision has as many as its path recorded.
WIDTHS: Final[dict[str, int]] = {
    "stage": 0,  # a stage began
    "read": 0,
    "delete": 0,
    "write": 1,  # the new value
    "update": 1,  # the partial value merged in
    "append": 1,  # the item appended
    "emit": 1,  # the payload
    "decision": -1,  # the actual values of the conditions tried
    "selection": -1,  # likewise, of a selector
    "choice": 1,  # what a decider answered that named a branch without evidence
    "choices": 1,  # the ids a selector answered that named branches without evidence
    "route": 0,  # the decider's own default, taken because the decision before it named none
    "fan_out": 1,  # the FanOut: of a fan-out, of a fork, or of what a selector selected
    "enter": 1,  # a mounted chart begins; what was mapped into it is its input and first state
    "received": 0,  # one key of what was mapped in
    "leave": 0,  # a mounted chart ended; the key says how
    "loop": 1,  # back to the stage named by the key, for which pass beyond the first
    "stop": 1,  # the reason, or None
    "pause": 1,  # {reason, expects, data}
    "resume": 1,  # the answer; the execution that follows goes on with it
    "streamed": 1,  # {stream, tokens, text, complete}
    "args": 0,  # the stage looked at the run's input
    "secret": 0,  # the key is secret from here on
    "retry": 1,  # {attempt, attempts, error}
    "error": 1,  # the described error
    "ended": 1,  # the described error that ended the run between stages; the stage is the next
    "result": 1,  # what the last stage returned
    # What is watched over a step of a playbook; the key of the first three is the tool.
    "admitted": 1,  # a call that may be made: {call_id, arguments}
    "settled": 1,  # what came of it: {call_id, outcome, matched, error}
    "refused": 1,  # a call that may not be made: {type, why, arguments}
    "deviation": 1,  # noted without refusing: {tool, why, names}; the key says of what kind
    "approved": 1,  # {who, note}
    "closed": 1,  # {who, note}; the key says by what: its calls, the cap, the host, a person
    "skipped": 1,  # {who, note}; the key likewise
    "given_up": 1,  # the step failed: {who, note}; the key likewise
    "stuck": 1,  # why nothing can close the step: {why}
    "reset": 1,  # all steps are to be done again, what came before no longer counts: {}
}

#: Type and depth of the row a code of each kind makes; a fan-out makes more than one.
ROW_TYPES: Final[dict[str, tuple[str, int]]] = {
    "stage": ("stage", 0),
    "read": ("step", 1),
    "write": ("step", 1),
    "update": ("step", 1),
    "append": ("step", 1),
    "delete": ("step", 1),
    "emit": ("emit", 1),
    "decision": ("condition", 1),
    "choice": ("condition", 1),
    "selection": ("selector", 0),
    "choices": ("selector", 0),
    "enter": ("subflow", 0),
    "received": ("step", 1),
    "leave": ("subflow", 0),
    "loop": ("loop", 0),
    "stop": ("break", 0),
    "pause": ("pause", 0),
    "resume": ("resume", 0),
    "streamed": ("step", 1),
    "retry": ("retry", 1),
    "error": ("error", 0),
    "ended": ("error", 0),
    "admitted": ("call", 1),
    "settled": ("call", 1),
    "refused": ("refusal", 1),
    "deviation": ("deviation", 1),
    "approved": ("approval", 1),
    "closed": ("close", 1),
    "skipped": ("close", 1),
    "given_up": ("close", 1),
    "stuck": ("deviation", 1),
    "reset": ("loop", 0),
}


#: Kinds of code that tell of a watched step, each with a mapping; `record.steps` takes them in.
STEP_KINDS: Final = frozenset(
    {
        *("admitted", "settled", "refused", "deviation", "approved"),
        *("closed", "skipped", "given_up", "stuck"),
    }
)


class Shape:
    """An interned sequence of codes, with what can be said of it without any value."""

    __slots__ = ("__dict__", "codes", "number")

    def __init__(self, number: int, codes: tuple[int, ...]) -> None:
        self.number = number
        self.codes = codes


class Event(NamedTuple):
    """A code met while walking a track: its value position and which execution it belongs to.

    Attributes
    ----------
    code : Code
    at : int
        Position of its first value.
    execution : int
        Index of the executed stage it belongs to, from 0, within its track.
    """

    code: Code
    at: int
    execution: int


#: Says of a code that it begins an execution, or is told of the one that follows.
_BEGINS: Final = 1
_FOLLOWS: Final = 2
_BEGINNING: Final = {"stage": _BEGINS, "resume": _FOLLOWS}

#: Makes a tuple with names without the call that its class takes for it.
_new: Final = tuple.__new__


#: So many codes, and sequences of them, are known of a chart; runs that meet more go their own way.
MOST_KNOWN: Final = 256


class Known:
    """What runs of one chart share as long as they meet the same codes in the same order.

    Their numbers then mean the same, and so do sequences of them: what can be said of those without
    any value is worked out once. No run is told what another met: one that meets anything else
    leaves, and finds no number here that it did not give itself.
    """

    __slots__ = ("_lock", "codes", "count", "facts")

    def __init__(self) -> None:
        self.codes: list[Code] = []
        self.count = 0
        #: By sequences of numbers what `work_out` says of them.
        self.facts: dict[tuple[int, ...], Any] = {}
        self._lock = threading.Lock()

    def take(self, number: int, code: Code) -> bool:
        """Give a code that no run has met before its number; say whether it has it now."""
        with self._lock:
            if number == self.count < MOST_KNOWN:
                self.codes.append(code)
                self.count += 1
            return number < self.count and self.codes[number] == code


class Tables:
    """What can happen in a run, by number: its codes, and the shapes that are sequences of them.

    It is all a fan-out needs of the log it stands in. What was recorded holds the fan-outs, so that
    one which held the whole log would keep itself alive.

    Parameters
    ----------
    known : Known, optional
        What other runs of the chart have worked out.
    """

    __slots__ = (
        "_alike",
        "_lock",
        "_numbers",
        "_paths",
        "_shared",
        "_specs",
        "_stages",
        "codes",
        "shape_numbers",
        "shapes",
    )

    def __init__(self, known: Known | None = None) -> None:
        #: Empty as soon as the run has met something else than the others did.
        self._shared = [] if known is None else [known]
        self.codes: list[Code] = []
        self._numbers: dict[Code, int] = {}
        #: Of each code: itself, its width, the number of its stage, whether it begins an execution.
        self._specs: list[tuple[Code, int, int, int]] = []
        self._stages: dict[StageRef, int] = {}
        self.shapes: list[Shape] = []
        self.shape_numbers: dict[tuple[int, ...], int] = {}
        #: The decision paths met of the first rule set; once there is another, paths by content.
        self._paths: dict[DecisionPath, DecisionPath] = {}
        self._alike: dict[Any, DecisionPath] = {}
        # Stages moved to threads intern codes too; only the first meeting of a code takes it.
        self._lock = threading.Lock()

    @property
    def tables(self) -> Tables:
        """The tables alone."""
        return self

    @property
    def known(self) -> Known | None:
        """What other runs of the chart have worked out, while this one goes their way."""
        return self._shared[0] if self._shared else None

    def number(self, code: Code) -> int:
        """Intern a code."""
        found = self._numbers.get(code)
        if found is None:
            with self._lock:
                found = self._numbers.get(code)
                if found is None:
                    found = len(self.codes)
                    self.codes.append(code)
                    known = self.known
                    if known is not None and not (
                        code == known.codes[found]
                        if found < known.count
                        else known.take(found, code)
                    ):
                        self._shared.clear()
                    # Last: who finds the number looks without the lock at what goes with it.
                    self._numbers[code] = found
        return found

    def same_path(self, path: DecisionPath) -> DecisionPath:
        """Give the path already met that says the same of equal rules, or the path itself.

        Charts made per item may bring a copy of the rules each; their branches are alike all the
        same.
        """
        if path in self._paths:
            return path
        if not self._alike:
            first = next(iter(self._paths), path)
            if path.rules is first.rules:
                self._paths[path] = path
                return path
            self._alike.update({_path_key(known): known for known in self._paths})
        return self._alike.setdefault(_path_key(path), path)

    def shape_number(self, codes: tuple[int, ...]) -> int:
        """Intern a sequence of codes."""
        found = self.shape_numbers.get(codes)
        if found is None:
            with self._lock:
                found = self.shape_numbers.get(codes)
                if found is None:
                    found = len(self.shapes)
                    self.shapes.append(Shape(found, codes))
                    self.shape_numbers[codes] = found
        return found

    def width(self, code: Code) -> int:
        """Say how many values go with a code."""
        return width_of(code)

    def events(self, codes: Sequence[int]) -> Iterator[Event]:
        """Walk a sequence of codes.

        Each event says where the code's values start and which executed stage it belongs to: the
        last execution of its own stage, which is an earlier one where a mounted chart ran in
        between.
        """
        specs = self._all_specs()
        at, count = 0, -1
        latest: dict[int, int] = {}
        for number in codes:
            code, width, stage, begins = specs[number]
            if begins == _BEGINS:
                latest[stage] = execution = count = count + 1
            elif begins:  # told of the execution that follows
                execution = count + 1
            else:
                execution = latest.get(stage, count)
            yield _new(Event, (code, at, execution))
            at += width

    def _all_specs(self) -> list[tuple[Code, int, int, int]]:
        """Give what `events` needs to know of each code, looked up once per code."""
        specs = self._specs
        if len(specs) < len(self.codes):
            with self._lock:
                stages = self._stages
                for code in self.codes[len(specs) :]:
                    stage = stages.setdefault(code.stage, len(stages))
                    specs.append((code, width_of(code), stage, _BEGINNING.get(code.kind, 0)))
        return specs

    def width_of(self, codes: Sequence[int]) -> int:
        """Say how many values go with a sequence of codes."""
        specs = self._all_specs()
        return sum([specs[number][1] for number in codes])

    def executed(self, track: Track) -> int:
        """Count the stages executed on a track, looking at no code twice."""
        at, count = track.counted
        codes, table = track.codes, self.codes
        count += sum(1 for place in range(at, len(codes)) if table[codes[place]].kind == "stage")
        track.counted = (len(codes), count)
        return count

    def executions_in(self, codes: Sequence[int]) -> int:
        """Count the stages executed in a sequence of codes, at once and by numbers alone."""
        return sum(map(self._of_kind("stage").__contains__, codes))

    def have_fan_outs(self, codes: Sequence[int]) -> bool:
        """Say whether anything ran side by side in a sequence of codes."""
        return not self._of_kind("fan_out").isdisjoint(codes)

    def _of_kind(self, kind: str) -> set[int]:
        return {number for number, code in enumerate(self.codes) if code.kind == kind}


class Log(Tables):
    """The log of one run: its tables, and the root track.

    Parameters
    ----------
    known : Known, optional
        What other runs of the chart have worked out.
    """

    __slots__ = ("_tables", "root", "taken_back")

    def __init__(self, known: Known | None = None) -> None:
        self._tables = tables = Tables(known)
        for name in Tables.__slots__:  # the same objects
            setattr(self, name, getattr(tables, name))
        self.root = Track()
        #: What stages wrote that was taken back, by key: no longer part of the record, and still
        #: something that a text on it may quote.
        self.taken_back: list[tuple[str, Any]] = []

    @property
    def tables(self) -> Tables:
        """The tables alone, shared with this log."""
        return self._tables

    def take_back(self, track: Track, start: int, kinds: frozenset[str] | None = None) -> None:
        """Remove codes from the end of a track, of these kinds or all, and their values.

        Parameters
        ----------
        track : Track
        start : int
            The first code looked at.
        kinds : frozenset of str, optional
            Codes of other kinds stay.
        """
        tail = track.codes[start:]
        at = len(track.values) - self.width_of(tail)
        del track.codes[start:]
        values = track.values[at:]
        del track.values[at:]
        place = 0
        for number in tail:
            code = self.codes[number]
            width = self.width(code)
            held = values[place : place + width]
            place += width
            if kinds is not None and code.kind not in kinds:
                track.codes.append(number)
                track.values.extend(held)
            else:
                self.taken_back.extend((code.key or "", value) for value in held)

    def fan_outs(self) -> Iterator[FanOut]:
        """Yield the fan-outs of the root chart, in the order they ran.

        Those in mounted charts and in the children of forks are of the root chart too; those
        inside the branches of another fan-out are not.
        """
        fanning = self._of_kind("fan_out")
        return self._fan_outs_in(self.root.codes, self.root.values, 0, fanning)

    def _fan_outs_in(
        self, codes: Sequence[int], values: Sequence[Any], offset: int, fanning: set[int]
    ) -> Iterator[FanOut]:
        if fanning.isdisjoint(codes):
            return
        for event in self.events(codes):
            if event.code.kind == "fan_out":
                fan: FanOut = values[offset + event.at]
                if fan.is_fan_out:
                    yield fan
                else:
                    for index, shape in fan.begun():
                        yield from self._fan_outs_in(shape.codes, *fan.part(index), fanning)


def width_of(code: Code) -> int:
    """Say how many values go with a code."""
    return len(code.path.codes) if code.path is not None else WIDTHS[code.kind]


def _path_key(path: DecisionPath) -> Any:
    rules = path.rules
    try:
        content: Any = rules.digest
    except Exception:  # rules without a written form are like no others
        content = id(rules)
    # A digest knows functions by name only, and no order of the conditions of a rule, which is
    # that of the outcomes.
    whens = [rule.when for rule in rules.rules] + [entry.where for entry in rules.outside]
    asked = tuple(
        tuple((key, *ops) for key, ops in when.items()) if isinstance(when, Mapping) else when
        for when in whens
    )
    return content, asked, path.codes, path.via, path.selected
