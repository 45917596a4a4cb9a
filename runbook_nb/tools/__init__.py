"""Tools: declared, checked together in a toolbox, called through one door.

`tool` and `define_tool` make a `Tool`, a `Toolbox` calls it, and `recording_dispatch` lets a
procedure call other tools on the record.
"""

from __future__ import annotations

from runbook_nb._arguments import schema_problems, unchecked_keywords, validate_arguments
from runbook_nb.errors import ToolRefused
from runbook_nb.tools.catalogue import CarriesTools
from runbook_nb.tools.context import Session, ToolContext, new_call_id
from runbook_nb.tools.declarations import (
    assert_composed_of,
    assert_gates,
    read_served_declarations,
    served_declarations,
)
from runbook_nb.tools.dispatch import (
    InnerCallRecord,
    InnerDispatch,
    RecordedDispatch,
    RunbookAbsenceSignal,
    ToolDispatch,
    absence_signal_of,
    probe_dispatch,
    recording_dispatch,
)
from runbook_nb.tools.middleware import ToolCall
from runbook_nb.tools.tool import Tool, ToolSchema, define_tool, tool
from runbook_nb.tools.toolbox import Toolbox

__all__ = [
    "CarriesTools",
    "InnerCallRecord",
    "InnerDispatch",
    "RecordedDispatch",
    "RunbookAbsenceSignal",
    "Session",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolDispatch",
    "ToolRefused",
    "ToolSchema",
    "Toolbox",
    "absence_signal_of",
    "assert_composed_of",
    "assert_gates",
    "define_tool",
    "new_call_id",
    "probe_dispatch",
    "read_served_declarations",
    "recording_dispatch",
    "schema_problems",
    "served_declarations",
    "tool",
    "unchecked_keywords",
    "validate_arguments",
]
