"""Where in a run something is: the ids of executions and branches, rows before their text is made.

Record layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from runbook_nb._text import show
from runbook_nb.record.log import Event, StageRef
from runbook_nb.record.shapes import ShapeFacts
from runbook_nb.rules.decision import Decision

#: Rows around those of a branch's own track: entering and the two inputs; with leaving.
HEAD: Final = 3
FRAME: Final = 4

#: Of those, the ones that are no step: entering and leaving.
CONTROL_FRAME: Final = 2


def runtime_id(prefix: str, stage_id: str, execution: int) -> str:
    """Name one execution of a stage: ``[path/]stage#n``.

    Examples
    --------
    >>> runtime_id("per-subject~3/", "load", 0)
    'per-subject~3/load#0'
    """
    return f"{prefix}{stage_id}#{execution}"


class Entry(NamedTuple):
    """A row before its text is made."""

    type: str
    depth: int
    stage: StageRef
    prefix: str
    execution: int
    event: Event | None = None
    values: Sequence[Any] = ()
    offset: int = 0
    note: str = ""


class Part(NamedTuple):
    """A track: its facts, its values and where they begin, its rows' path and first number."""

    facts: ShapeFacts
    values: Sequence[Any]
    offset: int
    prefix: str
    base: int = 0


class RecordedDecision(NamedTuple):
    """A decision with its place: the stage, the execution, and the subject of its branch."""

    decision: Decision
    stage: StageRef
    runtime_stage_id: str
    subject: Any
    item: int | None


def same_subject(a: Any, b: Any) -> bool:
    """Say whether a subject is the one asked for; a number may be asked for by its text."""
    if type(a) is type(b):
        return bool(a == b)
    return isinstance(b, str) and not isinstance(a, str) and show(a) == b
