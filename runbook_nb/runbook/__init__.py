"""Runbooks: a procedure as a tool whose answer carries its evidence."""

from __future__ import annotations

from runbook_nb.errors import NotCarried
from runbook_nb.runbook.declare import (
    DEFAULT_RECORDING_MAX_BYTES,
    RecordingOptions,
    RunbookProcedure,
    RunbookRules,
    WalkOptions,
    resolve_recording_policy,
    runbook_as_tool,
)
from runbook_nb.runbook.dossier import Dossier, SubjectFacts
from runbook_nb.runbook.envelope import Envelope
from runbook_nb.runbook.table import VerdictTable
from runbook_nb.runbook.tickets import WalkDescriptor
from runbook_nb.runbook.triage import triage
from runbook_nb.runbook.verdicts import (
    DECLINED_VERDICT,
    DEFAULT_MAX_ROWS,
    PANEL_RENDER_NOTE,
    VERDICT_RENDER_NOTE,
    VerdictRow,
    Verdicts,
    render_verdict_table,
    verdict_rows_of,
)

__all__ = [
    "DECLINED_VERDICT",
    "DEFAULT_MAX_ROWS",
    "DEFAULT_RECORDING_MAX_BYTES",
    "PANEL_RENDER_NOTE",
    "VERDICT_RENDER_NOTE",
    "Dossier",
    "Envelope",
    "NotCarried",
    "RecordingOptions",
    "RunbookProcedure",
    "RunbookRules",
    "SubjectFacts",
    "VerdictRow",
    "VerdictTable",
    "Verdicts",
    "WalkDescriptor",
    "WalkOptions",
    "render_verdict_table",
    "resolve_recording_policy",
    "runbook_as_tool",
    "triage",
    "verdict_rows_of",
]
