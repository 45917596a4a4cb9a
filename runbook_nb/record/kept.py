"""Runs kept on a tool: a bounded store of the last ones, found by call id.

Record layer. What is kept is served, so a policy that scrubs the walk scrubs a kept record too.
Keeping never fails a call.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._display import Renderable
from runbook_nb._text import counted
from runbook_nb._view import Badge, Card, Cell, Column, Data, Role, Section, Table
from runbook_nb.errors import DefinitionError, describe_error
from runbook_nb.record.slots import error_words
from runbook_nb.settings import settings

if TYPE_CHECKING:
    from runbook_nb.record.run import Run

#: Records kept unless told otherwise.
DEFAULT_KEPT: Final = 20

#: Run statuses that have a word of their own in a kept record; all others are ``error``.
_OUTCOMES: Final = {"ok": "ok", "paused": "paused"}
_ROLES: Final[Mapping[str, Role]] = {"ok": "completed", "paused": "pending"}


class KeptRecords(Renderable):
    """The last runs of a tool, least recently read out first.

    Parameters
    ----------
    limit : int
        How many are kept.

    Attributes
    ----------
    dropped : int
        How many had to leave.
    """

    def __init__(self, limit: int = DEFAULT_KEPT) -> None:
        self.limit = limit
        self.dropped = 0
        self._records: OrderedDict[tuple[str, str], dict[str, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, run: Run, *, tool: str, call_id: str, session_id: str) -> None:
        """Keep a run; one kept under the same call and session is replaced."""
        record: dict[str, Any] = {
            "toolCallId": call_id,
            "sessionId": session_id,
            "toolName": tool,
            "outcome": _OUTCOMES.get(run.status, "error"),
        }
        try:
            recording = run.recording()
            record["steps"] = len(run.commits)
            record["recording"] = {
                "snapshot": recording.snapshot,
                "structure": recording.structure,
            }
            record["narrative"] = [row.text for row in run.walk if row.text]
        except Exception as error:  # a record that cannot be made must not cost the answer
            record["steps"] = 0
            record["problem"] = run.redactor.text(error_words(describe_error(error)))
        with self._lock:
            key = (session_id, call_id)
            self._records.pop(key, None)
            self._records[key] = record
            while len(self._records) > self.limit:
                self._records.popitem(last=False)
                self.dropped += 1

    def get(self, call_id: str, session_id: str = "local") -> Mapping[str, Any] | None:
        """Read one record, which makes it the last to leave; None when it is not kept.

        A record is served only to the session whose call it was.
        """
        with self._lock:
            record = self._records.get((session_id, call_id))
            if record is not None:
                self._records.move_to_end((session_id, call_id))
            return record

    def call_ids(self, session_id: str = "local") -> list[str]:
        """List the calls kept for a session, the next to leave first."""
        return [call for session, call in self._records if session == session_id]

    def __len__(self) -> int:
        return len(self._records)

    def view(self) -> Card:
        """Show how many are kept, and how each of the runs ended."""
        with self._lock:
            kept = [*self._records.values()]
        rows = tuple(
            (Data(value=one["toolName"]), _badge(one["outcome"]), one["steps"], _problem(one))
            for one in kept[: settings.max_table_rows]
        )
        columns = (
            Column(head="tool"),
            Column(head="ended"),
            Column(head="steps", align="right", in_text="labelled"),
            Column(head="record"),
        )
        table = Table(
            columns=columns,
            rows=rows,
            total=len(kept),
            rest="call_ids(session)",
            empty="no run was kept yet",
        )
        return Card(
            kind="KeptRecords",
            name="",
            headline=f"{counted(len(kept), 'record')} of at most {self.limit}",
            sections=(Section(label="Runs", note="the next to leave first", parts=(table,)),),
            closing=(f"{self.dropped} dropped",) if self.dropped else (),
        )


def _badge(outcome: str) -> Badge:
    return Badge(word=outcome, role=_ROLES.get(outcome, "failed"))


def _problem(record: Mapping[str, Any]) -> Cell:
    said = record.get("problem")
    return "kept whole" if said is None else ("could not be made:", Data(value=said))


def inner_runs_of(tool: Any) -> KeptRecords:
    """Find the runs a tool keeps.

    Raises
    ------
    DefinitionError
        The tool was made without ``keep_record=True``.
    """
    carried = getattr(tool, "carried", {})
    kept = getattr(carried.get("runbook"), "kept", None)
    if not isinstance(kept, KeptRecords):
        raise DefinitionError(
            f"tool {getattr(tool, 'name', tool)!r} keeps no records",
            where="keep_record",
            fix="declare it with keep_record=True",
        )
    return kept
