"""Playbooks: an order of steps, held over whoever calls tools, with a record of how it went.

The names are looked up when first used, so that importing the package loads no validation.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runbook_nb.errors import JournalError as JournalError
    from runbook_nb.errors import PlaybookError as PlaybookError
    from runbook_nb.errors import PlaybookLoadError as PlaybookLoadError
    from runbook_nb.playbooks.admission import Admission as Admission
    from runbook_nb.playbooks.admission import Settlement as Settlement
    from runbook_nb.playbooks.cacao_import import from_cacao as from_cacao
    from runbook_nb.playbooks.cacao_losses import CacaoLoss as CacaoLoss
    from runbook_nb.playbooks.cacao_losses import CacaoLosses as CacaoLosses
    from runbook_nb.playbooks.declared import DeclareRule as DeclareRule
    from runbook_nb.playbooks.declared import declare_rules as declare_rules
    from runbook_nb.playbooks.enforcer import PlaybookEnforcer as PlaybookEnforcer
    from runbook_nb.playbooks.eventlog import EventLog as EventLog
    from runbook_nb.playbooks.eventlog import event_log as event_log
    from runbook_nb.playbooks.frames import current_plan as current_plan
    from runbook_nb.playbooks.frames import last_plan as last_plan
    from runbook_nb.playbooks.guards import guard as guard
    from runbook_nb.playbooks.hook import PlaybookEnforcerHook as PlaybookEnforcerHook
    from runbook_nb.playbooks.journal import PlaybookJournal as PlaybookJournal
    from runbook_nb.playbooks.journal_jsonl import JsonlJournal as JsonlJournal
    from runbook_nb.playbooks.journal_sqlite import SqliteJournal as SqliteJournal
    from runbook_nb.playbooks.lint import LintFinding as LintFinding
    from runbook_nb.playbooks.lint import PlaybookLint as PlaybookLint
    from runbook_nb.playbooks.loader import PlaybookLoader as PlaybookLoader
    from runbook_nb.playbooks.loader import load_playbook as load_playbook
    from runbook_nb.playbooks.model import (
        EnforcementResult as EnforcementResult,
    )
    from runbook_nb.playbooks.model import (
        EnforcementViolation as EnforcementViolation,
    )
    from runbook_nb.playbooks.model import (
        Playbook as Playbook,
    )
    from runbook_nb.playbooks.model import (
        PlaybookPlan as PlaybookPlan,
    )
    from runbook_nb.playbooks.model import (
        PlaybookStep as PlaybookStep,
    )
    from runbook_nb.playbooks.model import (
        RequiredProbe as RequiredProbe,
    )
    from runbook_nb.playbooks.model import (
        StepExecution as StepExecution,
    )
    from runbook_nb.playbooks.model import (
        StepStatus as StepStatus,
    )
    from runbook_nb.playbooks.policy import EnforcementPolicy as EnforcementPolicy
    from runbook_nb.playbooks.problems import FileProblem as FileProblem
    from runbook_nb.playbooks.problems import PlaybookWarning as PlaybookWarning
    from runbook_nb.playbooks.procedure import (
        PlaybookProcedure as PlaybookProcedure,
    )
    from runbook_nb.playbooks.procedure import (
        Turn as Turn,
    )
    from runbook_nb.playbooks.report import PlaybookReport as PlaybookReport
    from runbook_nb.playbooks.run import PlaybookRun as PlaybookRun
    from runbook_nb.playbooks.scopes import RunInfo as RunInfo
    from runbook_nb.playbooks.skills import Skill as Skill
    from runbook_nb.playbooks.tickets import Refusal as Refusal
    from runbook_nb.playbooks.tickets import Ticket as Ticket
    from runbook_nb.playbooks.toolbox import PlaybookMiddleware as PlaybookMiddleware
    from runbook_nb.playbooks.toolevent import ToolEvent as ToolEvent
    from runbook_nb.playbooks.writing import write_playbook as write_playbook

#: Where each name lives. A module that is added beside these adds its public names here, and above
#: for type checkers.
_HOMES = {
    "Playbook": "playbooks.model",
    "PlaybookStep": "playbooks.model",
    "RequiredProbe": "playbooks.model",
    "PlaybookPlan": "playbooks.model",
    "StepExecution": "playbooks.model",
    "StepStatus": "playbooks.model",
    "EnforcementResult": "playbooks.model",
    "EnforcementViolation": "playbooks.model",
    "EnforcementPolicy": "playbooks.policy",
    "PlaybookEnforcer": "playbooks.enforcer",
    "PlaybookReport": "playbooks.report",
    "PlaybookRun": "playbooks.run",
    "PlaybookProcedure": "playbooks.procedure",
    "Turn": "playbooks.procedure",
    "Admission": "playbooks.admission",
    "Settlement": "playbooks.admission",
    "PlaybookJournal": "playbooks.journal",
    "JsonlJournal": "playbooks.journal_jsonl",
    "SqliteJournal": "playbooks.journal_sqlite",
    "JournalError": "errors",
    "Skill": "playbooks.skills",
    "PlaybookLint": "playbooks.lint",
    "LintFinding": "playbooks.lint",
    "PlaybookLoader": "playbooks.loader",
    "load_playbook": "playbooks.loader",
    "write_playbook": "playbooks.writing",
    "FileProblem": "playbooks.problems",
    "PlaybookWarning": "playbooks.problems",
    "PlaybookEnforcerHook": "playbooks.hook",
    "PlaybookMiddleware": "playbooks.toolbox",
    "RunInfo": "playbooks.scopes",
    "ToolEvent": "playbooks.toolevent",
    "Ticket": "playbooks.tickets",
    "Refusal": "playbooks.tickets",
    "guard": "playbooks.guards",
    "current_plan": "playbooks.frames",
    "last_plan": "playbooks.frames",
    "from_cacao": "playbooks.cacao_import",
    "CacaoLoss": "playbooks.cacao_losses",
    "CacaoLosses": "playbooks.cacao_losses",
    "event_log": "playbooks.eventlog",
    "EventLog": "playbooks.eventlog",
    "declare_rules": "playbooks.declared",
    "DeclareRule": "playbooks.declared",
    "PlaybookError": "errors",
    "PlaybookLoadError": "errors",
}

__all__ = [*_HOMES]  # noqa: PLE0604 - every key is a text


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"runbook_nb.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
