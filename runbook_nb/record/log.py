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
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from runbook_nb.rules.evaluate import DecisionPath


class StageRef(NamedTuple):
    """Which stage something happened in: its builder id, its name, its kind."""

    id: str
    name: str
    kind: str


class Code(NamedTuple):
    """One thing that can happen in a stage, without its value.

    ``kind`` is one of `WIDTHS`; ``key`` the state key, event name or branch id concerned;
    ``path`` the decision path of a ``decision``.
    """

    kind: str
    stage: StageRef
    key: str | None = None
    path: DecisionPath | None = None


#: How many values go with a code of each kind. A decision has as many as its path recorded.
WIDTHS: Final[dict[str, int]] = {
    "stage": 0,  # a stage began
    "read": 0,
    "secret": 0,  # the key is secret from here on
    "delete": 0,
    "write": 1,  # the new value
    "update": 1,  # the partial value merged in
    "append": 1,  # the item appended
    "emit": 1,  # the payload
    "decision": -1,  # the actual values of the conditions tried
    "choice": 1,  # what a decider answered that named a branch without evidence
    "route": 0,  # the decider's own default, taken because the decision before it named none
    "fan_out": 1,  # the FanOut
    "stop": 1,  # the reason, or None
    "pause": 1,  # {reason, expects}
    "retry": 1,  # {attempt, attempts, error}
    "error": 1,  # the described error
    "ended": 1,  # the described error that ended the run between stages; the stage is the next
    "result": 1,  # what the last stage returned
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
    "stop": ("break", 0),
    "pause": ("pause", 0),
    "retry": ("retry", 1),
    "error": ("error", 0),
    "ended": ("error", 0),
}


class Shape:
    """An interned sequence of codes, with what can be said of it without any value."""

    __slots__ = ("__dict__", "codes", "number")

    def __init__(self, number: int, codes: tuple[int, ...]) -> None:
        self.number = number
        self.codes = codes


class Track:
    """One sequence of codes with its values, open for appending while its chart runs."""

    __slots__ = ("codes", "values")

    def __init__(self) -> None:
        self.codes: list[int] = []
        self.values: list[Any] = []

    def add(self, code: int, *values: Any) -> None:
        """Append one code with the values that go with it."""
        self.codes.append(code)
        self.values.extend(values)


NOT_REACHED: Final = 0
OK: Final = 1
FAILED: Final = 2
STATUS_WORDS: Final = ("not_reached", "ok", "failed")


class FanOut:
    """The branches of one execution of a fan-out, in item order.

    Attributes
    ----------
    stage : StageRef
        The fan-out stage.
    items : sequence
        Every item, those past the cap included.
    cap : int
        How many of them could be judged.
    into, subject : str or None
        State key the slots went to; key of an item that names its subject.
    execution : int
        Which executed stage of its track it is, from 0.
    statuses : bytearray
        One of `NOT_REACHED`, `OK`, `FAILED` per item.
    """

    __slots__ = (
        "cap",
        "execution",
        "into",
        "items",
        "log",
        "notes",
        "offsets",
        "shapes",
        "stage",
        "statuses",
        "subject",
        "values",
    )

    def __init__(
        self,
        log: Log,
        stage: StageRef,
        items: Sequence[Any],
        *,
        cap: int,
        into: str,
        subject: str | None,
        execution: int = 0,
    ) -> None:
        self.execution = execution
        self.log = log
        self.stage = stage
        self.items = items
        self.cap = cap
        self.into = into
        self.subject = subject
        self.statuses = bytearray(len(items))
        self.shapes = array("i", [-1]) * len(items)
        self.offsets = array("q", [0]) * len(items)
        self.values: list[Any] = []
        #: Why a branch has no value of its own, where its track does not say it (index -> text).
        self.notes: dict[int, str] = {}

    def close(self, index: int, track: Track, status: int, note: str | None = None) -> None:
        """File a branch that ended, under its item's index."""
        self.shapes[index] = self.log.shape_number(tuple(track.codes))
        self.offsets[index] = len(self.values)
        self.values.extend(track.values)
        self.statuses[index] = status
        if note is not None:
            self.notes[index] = note

    def __len__(self) -> int:
        return len(self.items)

    def shape(self, index: int) -> Shape | None:
        """Give the shape of a branch, or None when it never began."""
        number = self.shapes[index]
        return None if number < 0 else self.log.shapes[number]

    def status(self, index: int) -> str:
        """Give the status word of a branch."""
        return STATUS_WORDS[self.statuses[index]]

    def subject_of(self, index: int) -> Any:
        """Give the value that names an item, or None.

        That is what stands under its subject key, or the item itself when it is a plain value.
        """
        item = self.items[index]
        if isinstance(item, dict):
            return item.get(self.subject) if self.subject is not None else None
        return item if isinstance(item, str | int | float) else None

    def begun(self) -> Iterator[tuple[int, Shape]]:
        """Yield index and shape of every branch that began, in item order."""
        shapes = self.log.shapes
        for index, number in enumerate(self.shapes):
            if number >= 0:
                yield index, shapes[number]


@dataclass(frozen=True, slots=True)
class Event:
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


class Log:
    """The log of one run: the code table, the shapes, the root track."""

    __slots__ = (
        "_alike",
        "_lock",
        "_numbers",
        "_paths",
        "_shape_numbers",
        "codes",
        "root",
        "shapes",
    )

    def __init__(self) -> None:
        self.codes: list[Code] = []
        self._numbers: dict[Code, int] = {}
        self.shapes: list[Shape] = []
        self._shape_numbers: dict[tuple[int, ...], int] = {}
        self.root = Track()
        #: The decision paths met of the first rule set; once there is another, paths by content.
        self._paths: dict[DecisionPath, DecisionPath] = {}
        self._alike: dict[Any, DecisionPath] | None = None
        # Stages moved to threads intern codes too; only the first meeting of a code takes it.
        self._lock = threading.Lock()

    def number(self, code: Code) -> int:
        """Intern a code."""
        found = self._numbers.get(code)
        if found is not None:
            return found
        with self._lock:
            found = self._numbers.get(code)
            if found is None:
                found = len(self.codes)
                self.codes.append(code)
                self._numbers[code] = found
            return found

    def same_path(self, path: DecisionPath) -> DecisionPath:
        """Give the path already met that says the same of equal rules, or the path itself.

        Charts made per item may bring a copy of the rules each; their branches are alike all the
        same.
        """
        if path in self._paths:
            return path
        if self._alike is None:
            first = next(iter(self._paths), path)
            if path.rules is first.rules:
                self._paths[path] = path
                return path
            self._alike = {_path_key(known): known for known in self._paths}
        return self._alike.setdefault(_path_key(path), path)

    def shape_number(self, codes: tuple[int, ...]) -> int:
        """Intern a sequence of codes."""
        found = self._shape_numbers.get(codes)
        if found is None:
            with self._lock:
                found = self._shape_numbers.get(codes)
                if found is None:
                    found = len(self.shapes)
                    self.shapes.append(Shape(found, codes))
                    self._shape_numbers[codes] = found
        return found

    def width(self, code: Code) -> int:
        """Say how many values go with a code."""
        return len(code.path.codes) if code.path is not None else WIDTHS[code.kind]

    def events(self, codes: Sequence[int]) -> Iterator[Event]:
        """Walk a sequence of codes.

        Each event says where the code's values start and which executed stage it belongs to.
        """
        at, execution, table = 0, -1, self.codes
        for number in codes:
            code = table[number]
            if code.kind == "stage":
                execution += 1
            yield Event(code, at, execution)
            at += self.width(code)

    def executions(self, codes: Sequence[int]) -> int:
        """Count the stages executed in a sequence of codes."""
        table = self.codes
        return sum(1 for number in codes if table[number].kind == "stage")

    def fan_outs(self) -> Iterator[FanOut]:
        """Yield the fan-outs of the root chart, in the order they ran."""
        for event in self.events(self.root.codes):
            if event.code.kind == "fan_out":
                yield self.root.values[event.at]


def _path_key(path: DecisionPath) -> Any:
    rules = path.rules
    try:
        content: Any = rules.digest
    except Exception:  # rules without a written form are like no others
        content = id(rules)
    # A digest knows functions by name only.
    functions = tuple(rule.when for rule in rules.rules if not rule.is_filter)
    return content, functions, path.codes, path.via, path.selected
