"""What a published recording is read into: tracks being written, and the stages they come from.

Record layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from runbook_nb.record.foreign_told import Row
from runbook_nb.record.log import FAILED, NOT_REACHED, OK, Code, Log, StageRef, Track
from runbook_nb.record.narrative import Told
from runbook_nb.record.places import runtime_id
from runbook_nb.record.structure import Structure

#: What stands where a value was not recorded.
NOT_CARRIED: Final = Told("<not carried>")


@dataclass(slots=True)
class Level:
    """The stages of one chart: the root's, those of a branch, those of a mounted chart.

    Attributes
    ----------
    strip : str
        What the ids of its stages begin with in the file.
    path : str
        The mounts around them, inside their own track.
    template : str
        What the keys of their nodes begin with.
    commits : mapping
        The commits of its log, by execution.
    state : dict
        As far as the commits were folded.
    within : tuple of str
        Under which path of its log the stages keep what they write: in a fork, each child has a
        place of its own.
    around : dict or None
        What the stages see beside what they wrote: in a fork, the state of the parent.
    depth : int
        How many mounts and branches lie around it.
    stopped : bool
        Whether a stage of it stopped it on purpose.
    last : str or None
        Key of the stage that ran last.
    """

    strip: str
    path: str
    template: str
    commits: Mapping[str, list[Mapping[str, Any]]]
    state: dict[str, Any]
    within: tuple[str, ...] = ()
    around: dict[str, Any] | None = None
    depth: int = 0
    stopped: bool = False
    last: str | None = None

    @property
    def seen(self) -> Mapping[str, Any]:
        """What a stage sees: the state, over what lies around it."""
        return self.state if self.around is None else {**self.around, **self.state}


class Visit(NamedTuple):
    """One executed stage: its node of the tree, where it stands, what is told of it."""

    node: Mapping[str, Any]
    level: Level
    execution: str
    ref: StageRef
    key: str
    rows: list[Row]

    @property
    def mounts(self) -> bool:
        """Whether a chart is mounted at it."""
        return self.ref.kind == "subchart" or isinstance(self.node.get("subflowId"), str)


class Writer:
    """Appends codes to one track and counts its executions."""

    def __init__(self, log: Log, prefix: str, base: int) -> None:
        self.log = log
        self.track = Track()
        self.prefix = prefix
        self.base = base
        self.count = 0
        self.failed = False
        self.paused = False
        #: What failed or paused in it last: the stage, the id of its execution, what was logged.
        self.ending: tuple[StageRef, str, Any] | None = None

    @property
    def status(self) -> tuple[int, str | None]:
        """How the branch of this track ended, and why it has no value where no row says so."""
        if self.failed:
            return FAILED, None
        return (NOT_REACHED, "the run paused in it") if self.paused else (OK, None)

    def add(
        self, kind: str, ref: StageRef, *values: Any, key: str | None = None, path: Any = None
    ) -> None:
        """Append one code with its values."""
        if kind == "stage":
            self.count += 1
        self.track.add(self.log.number(Code(kind, ref, key, path)), *values)

    def end(self, kind: str, ref: StageRef, value: Any, number: int) -> None:
        """Append a failure or a pause, which may be how the track ends."""
        self.add(kind, ref, value)
        self.failed, self.paused = kind == "error", kind == "pause"
        self.ending = ref, runtime_id(self.prefix, ref.key, self.base + number), value


@dataclass(slots=True)
class Rebuilt:
    """What a recording was read into.

    Attributes
    ----------
    log : Log
    structure : Structure
        The published one, with what ran and was not in it.
    notes : dict of str
        What the recording does not carry, in order; the keys are sentences.
    executions : dict
        The id of each execution here -> its id in the file.
    status : str or None
        How the run ended; None where the recording does not tell.
    ending : (StageRef, str, object) or None
        Where it failed or paused: the stage, the id of its execution, what was logged there.
    hidden : bool
        Whether values were hidden when the run was recorded.
    """

    log: Log
    structure: Structure
    notes: dict[str, None] = field(default_factory=dict)
    executions: dict[str, str] = field(default_factory=dict)
    status: str | None = "ok"
    ending: tuple[StageRef, str, Any] | None = None
    hidden: bool = False
