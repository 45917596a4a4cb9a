"""What one executed stage of a published recording did: its reads, its changes, its events.

Record layer. The narrative gives the order, the commits the values. Of a key that one stage
changed several times only the outcome was recorded, so the earlier changes carry that too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from runbook_nb._frozen import freeze
from runbook_nb._text import MISSING
from runbook_nb.record.changes import FoldedChange
from runbook_nb.record.foreign_parts import mapping_of
from runbook_nb.record.foreign_told import Row
from runbook_nb.record.foreign_tracks import Visit, Writer

_STEPS: Final = ("step", "emit", "retry")
_CHANGES: Final = ("write", "update", "delete")
#: Rows that tell of the branches of a stage.
_SPREADS: Final = ("fork", "selector")


def changes_late(visit: Visit) -> bool:
    """Say whether a stage with branches made its changes when these had ended.

    The engine's forks are stages that write before; ours collect what the branches gave.
    """
    told = [row for row in visit.rows if row.type in ("step", *_SPREADS)]
    spread = next((place for place, row in enumerate(told) if row.type in _SPREADS), None)
    if spread is None:
        return False
    before = any(row.operation in _CHANGES for row in told[:spread])
    after = any(row.operation in _CHANGES for row in told[spread:])
    return after and not before


def whole_writes(visit: Visit) -> list[FoldedChange]:
    """Give what the tree itself says a stage wrote, where its log has no commit of it.

    A summary of a value is not the value.
    """
    found = []
    for key, value in mapping_of(visit.node.get("stageWrites")).items():
        if not (isinstance(value, Mapping) and "__writeSummary" in value):
            visit.level.state[str(key)] = value
            found.append(FoldedChange(str(key), value))
    return found


def write_steps(
    visit: Visit, changes: Iterable[FoldedChange], writer: Writer, note: Callable[[str], None]
) -> None:
    """Write what a stage did in the order it was told, else what it read and then what it wrote.

    Parameters
    ----------
    visit : Visit
    changes : iterable of FoldedChange
        What it changed before anything inside of it ran.
    writer : Writer
    note : callable
        Is told what cannot be known.
    """
    steps = _Steps(visit, changes, writer, note)
    rows = [row for row in visit.rows if row.type in _STEPS]
    if not any(row.type == "step" for row in rows):
        for key in mapping_of(visit.node.get("stageReads")):
            writer.add("read", visit.ref, key=str(key))
    steps.coming = [row.key for row in rows if row.operation in _CHANGES]
    for row in rows:
        steps.row(row)
    for change in steps.left.values():
        write_change(visit, change, writer)


def write_change(
    visit: Visit, change: FoldedChange, writer: Writer, *, again: bool = False
) -> None:
    """Write one change; ``again`` where the same stage changes the key once more."""
    key, value = change.key, change.value
    if value is MISSING:
        writer.add("delete", visit.ref, key=key)
    elif change.partial is not None:
        writer.add("update", visit.ref, freeze({} if again else change.partial, key), key=key)
    else:
        writer.add("write", visit.ref, freeze(value, key), key=key)


class _Steps:
    """The steps of one stage on their way into a track."""

    def __init__(
        self,
        visit: Visit,
        changes: Iterable[FoldedChange],
        writer: Writer,
        note: Callable[[str], None],
    ) -> None:
        self.visit = visit
        self.writer = writer
        self.note = note
        #: Changes that no row told of yet, and the keys of rows still to come.
        self.left = {change.key: change for change in changes}
        self.coming: list[str | None] = []
        #: Whether a stage's changes come behind what is inside of it.
        self.later = visit.mounts or visit.ref.kind == "fan_out" or changes_late(visit)

    def row(self, row: Row) -> None:
        if row.type == "emit":
            name, payload = row.emitted
            self.writer.add("emit", self.visit.ref, payload, key=name)
        elif row.type == "retry":
            self._retried(row)
        elif row.key is not None:
            self._step(row.key, row.operation)

    def _step(self, key: str, done: str | None) -> None:
        if done is None:
            self.note(
                "What some steps did is told in words of their author; whether they read or wrote "
                "is told by their effect."
            )
            done = "write" if key in self.left else "read"
        if done == "read":
            self.writer.add("read", self.visit.ref, key=key)
        if done not in _CHANGES or self.later:
            return
        if key in self.coming:
            self.coming.remove(key)
        again = key in self.coming
        # A write that changed nothing is in no commit: the key holds what it held.
        change = self.left.get(key) or FoldedChange(key, self.visit.level.seen.get(key, MISSING))
        write_change(self.visit, change, self.writer, again=again)
        if not again:
            self.left.pop(key, None)

    def _retried(self, row: Row) -> None:
        attempt, attempts, message = row.retried
        error: dict[str, Any] = {"type": "Error", "message": message}
        told = {"attempt": attempt or 1, "attempts": attempts or 1, "error": error}
        self.writer.add("retry", self.visit.ref, freeze(told))
