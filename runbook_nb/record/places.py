"""Where in a run something is: the ids of executions and branches, rows before their text is made.

Record layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from runbook_nb._text import show
from runbook_nb.record.log import Event, StageRef
from runbook_nb.record.shapes import ShapeFacts
from runbook_nb.rules.decision import Decision


def runtime_id(prefix: str, stage_id: str, execution: int) -> str:
    """Name one execution of a stage: ``[path/]stage#n``.

    Examples
    --------
    >>> runtime_id("per-subject~3/", "load", 0)
    'per-subject~3/load#0'
    """
    return f"{prefix}{stage_id}#{execution}"


def branch_path(prefix: str, stage_id: str, index: int) -> str:
    """Name a branch of a fan-out: ``[path/]stage~n``."""
    return f"{prefix}{stage_id}~{index}"


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
    """A track or a branch: its facts, its values and where they begin, the path of its rows."""

    facts: ShapeFacts
    values: Sequence[Any]
    offset: int
    prefix: str


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
