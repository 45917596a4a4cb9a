"""Triage runbooks whose answers can be checked: declare a procedure, run it, show the evidence.

The public names are looked up when first used, so that importing the package costs little; see
``__all__``.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from runbook_nb._version import __version__

if TYPE_CHECKING:
    from runbook_nb import errors as errors
    from runbook_nb._stop import (
        Stop as Stop,
    )
    from runbook_nb.artifacts import (
        CHART_WALK_ARTIFACT_KIND as CHART_WALK_ARTIFACT_KIND,
    )
    from runbook_nb.artifacts import (
        CHART_WALK_COLUMNS_ARTIFACT_KIND as CHART_WALK_COLUMNS_ARTIFACT_KIND,
    )
    from runbook_nb.artifacts import (
        RECORDING_ARTIFACT_KIND as RECORDING_ARTIFACT_KIND,
    )
    from runbook_nb.artifacts import (
        ArtifactStore as ArtifactStore,
    )
    from runbook_nb.artifacts import (
        FileArtifacts as FileArtifacts,
    )
    from runbook_nb.artifacts import (
        InMemoryArtifacts as InMemoryArtifacts,
    )
    from runbook_nb.artifacts import (
        Record as Record,
    )
    from runbook_nb.artifacts import (
        RemoteArtifacts as RemoteArtifacts,
    )
    from runbook_nb.artifacts import (
        SqliteArtifacts as SqliteArtifacts,
    )
    from runbook_nb.artifacts import (
        Ticket as Ticket,
    )
    from runbook_nb.artifacts import (
        chart_walk_columns_put_input as chart_walk_columns_put_input,
    )
    from runbook_nb.artifacts import (
        chart_walk_put_input as chart_walk_put_input,
    )
    from runbook_nb.artifacts import (
        recording_put_input as recording_put_input,
    )
    from runbook_nb.chart.branches import (
        BranchesBuilder as BranchesBuilder,
    )
    from runbook_nb.chart.builder import (
        FlowChartBuilder as FlowChartBuilder,
    )
    from runbook_nb.chart.builder import (
        flow_chart as flow_chart,
    )
    from runbook_nb.chart.model import (
        Chart as Chart,
    )
    from runbook_nb.chart.model import (
        Limits as Limits,
    )
    from runbook_nb.chart.model import (
        Retry as Retry,
    )
    from runbook_nb.chart.scope import (
        Scope as Scope,
    )
    from runbook_nb.chart.scope import (
        interrupt as interrupt,
    )
    from runbook_nb.chart.streaming import (
        StreamEvent as StreamEvent,
    )
    from runbook_nb.coverage import (
        ABSENCE_NOTE as ABSENCE_NOTE,
    )
    from runbook_nb.coverage import (
        COVERAGE_NOTE as COVERAGE_NOTE,
    )
    from runbook_nb.coverage import (
        Item as Item,
    )
    from runbook_nb.coverage import (
        Ledger as Ledger,
    )
    from runbook_nb.coverage import (
        absent as absent,
    )
    from runbook_nb.coverage import (
        coverage as coverage,
    )
    from runbook_nb.coverage import (
        read_absence as read_absence,
    )
    from runbook_nb.coverage import (
        read_coverage_ledger as read_coverage_ledger,
    )
    from runbook_nb.coverage import (
        read_coverage_result as read_coverage_result,
    )
    from runbook_nb.playbooks import (
        EnforcementPolicy as EnforcementPolicy,
    )
    from runbook_nb.playbooks import (
        EnforcementResult as EnforcementResult,
    )
    from runbook_nb.playbooks import (
        EnforcementViolation as EnforcementViolation,
    )
    from runbook_nb.playbooks import (
        JsonlJournal as JsonlJournal,
    )
    from runbook_nb.playbooks import (
        Playbook as Playbook,
    )
    from runbook_nb.playbooks import (
        PlaybookEnforcer as PlaybookEnforcer,
    )
    from runbook_nb.playbooks import (
        PlaybookEnforcerHook as PlaybookEnforcerHook,
    )
    from runbook_nb.playbooks import (
        PlaybookJournal as PlaybookJournal,
    )
    from runbook_nb.playbooks import (
        PlaybookLoader as PlaybookLoader,
    )
    from runbook_nb.playbooks import (
        PlaybookLoadError as PlaybookLoadError,
    )
    from runbook_nb.playbooks import (
        PlaybookMiddleware as PlaybookMiddleware,
    )
    from runbook_nb.playbooks import (
        PlaybookPlan as PlaybookPlan,
    )
    from runbook_nb.playbooks import (
        PlaybookStep as PlaybookStep,
    )
    from runbook_nb.playbooks import (
        RequiredProbe as RequiredProbe,
    )
    from runbook_nb.playbooks import (
        Skill as Skill,
    )
    from runbook_nb.playbooks import (
        SqliteJournal as SqliteJournal,
    )
    from runbook_nb.playbooks import (
        StepExecution as StepExecution,
    )
    from runbook_nb.playbooks import (
        StepStatus as StepStatus,
    )
    from runbook_nb.playbooks import (
        ToolEvent as ToolEvent,
    )
    from runbook_nb.playbooks import (
        current_plan as current_plan,
    )
    from runbook_nb.playbooks import (
        declare_rules as declare_rules,
    )
    from runbook_nb.playbooks import (
        event_log as event_log,
    )
    from runbook_nb.playbooks import (
        from_cacao as from_cacao,
    )
    from runbook_nb.playbooks import (
        guard as guard,
    )
    from runbook_nb.playbooks import (
        last_plan as last_plan,
    )
    from runbook_nb.playbooks import (
        load_playbook as load_playbook,
    )
    from runbook_nb.playbooks import (
        write_playbook as write_playbook,
    )
    from runbook_nb.record.claims import Claim as Claim
    from runbook_nb.record.commit import (
        Commit as Commit,
    )
    from runbook_nb.record.commits import (
        CommitLog as CommitLog,
    )
    from runbook_nb.record.kept import (
        inner_runs_of as inner_runs_of,
    )
    from runbook_nb.record.loading import (
        load_recording as load_recording,
    )
    from runbook_nb.record.projection import (
        DEFAULT_WALK_CAP as DEFAULT_WALK_CAP,
    )
    from runbook_nb.record.projection import (
        ProjectedWalk as ProjectedWalk,
    )
    from runbook_nb.record.projection import (
        WalkPage as WalkPage,
    )
    from runbook_nb.record.projection import (
        WalkRow as WalkRow,
    )
    from runbook_nb.record.projection import (
        project_walk as project_walk,
    )
    from runbook_nb.record.recorded import (
        RecordedRun as RecordedRun,
    )
    from runbook_nb.record.recording import (
        Recording as Recording,
    )
    from runbook_nb.record.redact import (
        Redact as Redact,
    )
    from runbook_nb.record.redaction import (
        RedactionReport as RedactionReport,
    )
    from runbook_nb.record.run import (
        Run as Run,
    )
    from runbook_nb.record.slots import (
        Slot as Slot,
    )
    from runbook_nb.record.structure import (
        Structure as Structure,
    )
    from runbook_nb.record.verification import Verification as Verification
    from runbook_nb.record.walk import (
        Walk as Walk,
    )
    from runbook_nb.record.walk_file import read_walk as read_walk
    from runbook_nb.record.walk_file import write_walk as write_walk
    from runbook_nb.record.why import (
        Why as Why,
    )
    from runbook_nb.rules import (
        Condition as Condition,
    )
    from runbook_nb.rules import (
        Decision as Decision,
    )
    from runbook_nb.rules import (
        Default as Default,
    )
    from runbook_nb.rules import (
        Outside as Outside,
    )
    from runbook_nb.rules import (
        Rule as Rule,
    )
    from runbook_nb.rules import (
        RuleSet as RuleSet,
    )
    from runbook_nb.rules import (
        Unreadable as Unreadable,
    )
    from runbook_nb.rules import (
        decide as decide,
    )
    from runbook_nb.rules import (
        select as select,
    )
    from runbook_nb.rules.frame import (
        Judged as Judged,
    )
    from runbook_nb.rules.frame import (
        judge_frame as judge_frame,
    )
    from runbook_nb.runbook import (
        DECLINED_VERDICT as DECLINED_VERDICT,
    )
    from runbook_nb.runbook import (
        DEFAULT_MAX_ROWS as DEFAULT_MAX_ROWS,
    )
    from runbook_nb.runbook import (
        DEFAULT_RECORDING_MAX_BYTES as DEFAULT_RECORDING_MAX_BYTES,
    )
    from runbook_nb.runbook import (
        PANEL_RENDER_NOTE as PANEL_RENDER_NOTE,
    )
    from runbook_nb.runbook import (
        VERDICT_RENDER_NOTE as VERDICT_RENDER_NOTE,
    )
    from runbook_nb.runbook import (
        Envelope as Envelope,
    )
    from runbook_nb.runbook import (
        RecordingOptions as RecordingOptions,
    )
    from runbook_nb.runbook import (
        RunbookRules as RunbookRules,
    )
    from runbook_nb.runbook import (
        VerdictRow as VerdictRow,
    )
    from runbook_nb.runbook import (
        Verdicts as Verdicts,
    )
    from runbook_nb.runbook import (
        WalkDescriptor as WalkDescriptor,
    )
    from runbook_nb.runbook import (
        WalkOptions as WalkOptions,
    )
    from runbook_nb.runbook import (
        render_verdict_table as render_verdict_table,
    )
    from runbook_nb.runbook import (
        runbook_as_tool as runbook_as_tool,
    )
    from runbook_nb.runbook import (
        triage as triage,
    )
    from runbook_nb.runbook import (
        verdict_rows_of as verdict_rows_of,
    )
    from runbook_nb.runbook.flowchart import (
        flowchart_as_tool as flowchart_as_tool,
    )
    from runbook_nb.settings import (
        settings as settings,
    )
    from runbook_nb.share.catalogue import (
        Runs as Runs,
    )
    from runbook_nb.share.sharing import (
        share_notebook as share_notebook,
    )
    from runbook_nb.share.verify import verify_file as verify_file
    from runbook_nb.tools import (
        InnerCallRecord as InnerCallRecord,
    )
    from runbook_nb.tools import (
        RecordedDispatch as RecordedDispatch,
    )
    from runbook_nb.tools import (
        RunbookAbsenceSignal as RunbookAbsenceSignal,
    )
    from runbook_nb.tools import (
        Session as Session,
    )
    from runbook_nb.tools import (
        Tool as Tool,
    )
    from runbook_nb.tools import (
        Toolbox as Toolbox,
    )
    from runbook_nb.tools import (
        ToolContext as ToolContext,
    )
    from runbook_nb.tools import (
        ToolDispatch as ToolDispatch,
    )
    from runbook_nb.tools import (
        ToolRefused as ToolRefused,
    )
    from runbook_nb.tools import (
        absence_signal_of as absence_signal_of,
    )
    from runbook_nb.tools import (
        assert_composed_of as assert_composed_of,
    )
    from runbook_nb.tools import (
        assert_gates as assert_gates,
    )
    from runbook_nb.tools import (
        define_tool as define_tool,
    )
    from runbook_nb.tools import (
        probe_dispatch as probe_dispatch,
    )
    from runbook_nb.tools import (
        recording_dispatch as recording_dispatch,
    )
    from runbook_nb.tools import (
        tool as tool,
    )
    from runbook_nb.tools.redeem import (
        artifact_tool as artifact_tool,
    )
    from runbook_nb.widgets.form import (
        RunForm as RunForm,
    )
    from runbook_nb.widgets.playbookform import (
        PlaybookForm as PlaybookForm,
    )
    from runbook_nb.widgets.rulelab import (
        RuleLab as RuleLab,
    )

#: public name -> module it lives in. ``errors`` is the module itself.
_HOMES: dict[str, str] = {
    "settings": "settings",
    "Stop": "_stop",
    "Rule": "rules",
    "Default": "rules",
    "Unreadable": "rules",
    "Outside": "rules",
    "RuleSet": "rules",
    "decide": "rules",
    "select": "rules",
    "judge_frame": "rules.frame",
    "Judged": "rules.frame",
    "Decision": "rules",
    "Condition": "rules",
    "flow_chart": "chart.builder",
    "FlowChartBuilder": "chart.builder",
    "BranchesBuilder": "chart.branches",
    "Chart": "chart.model",
    "Limits": "chart.model",
    "Retry": "chart.model",
    "Scope": "chart.scope",
    "interrupt": "chart.scope",
    "StreamEvent": "chart.streaming",
    "Slot": "record.slots",
    "Run": "record.run",
    "Walk": "record.walk",
    "WalkPage": "record.projection",
    "WalkRow": "record.projection",
    "read_walk": "record.walk_file",
    "write_walk": "record.walk_file",
    "ProjectedWalk": "record.projection",
    "project_walk": "record.projection",
    "DEFAULT_WALK_CAP": "record.projection",
    "Commit": "record.commit",
    "CommitLog": "record.commits",
    "Why": "record.why",
    "Structure": "record.structure",
    "Recording": "record.recording",
    "RecordedRun": "record.recorded",
    "load_recording": "record.loading",
    "Redact": "record.redact",
    "RedactionReport": "record.redaction",
    "inner_runs_of": "record.kept",
    "coverage": "coverage",
    "absent": "coverage",
    "Item": "coverage",
    "Ledger": "coverage",
    "read_absence": "coverage",
    "read_coverage_ledger": "coverage",
    "read_coverage_result": "coverage",
    "COVERAGE_NOTE": "coverage",
    "ABSENCE_NOTE": "coverage",
    "tool": "tools",
    "define_tool": "tools",
    "Tool": "tools",
    "ToolContext": "tools",
    "Session": "tools",
    "Toolbox": "tools",
    "ToolRefused": "tools",
    "ToolDispatch": "tools",
    "recording_dispatch": "tools",
    "RecordedDispatch": "tools",
    "InnerCallRecord": "tools",
    "probe_dispatch": "tools",
    "RunbookAbsenceSignal": "tools",
    "absence_signal_of": "tools",
    "assert_composed_of": "tools",
    "assert_gates": "tools",
    "artifact_tool": "tools.redeem",
    "ArtifactStore": "artifacts",
    "Record": "artifacts",
    "Ticket": "artifacts",
    "InMemoryArtifacts": "artifacts",
    "FileArtifacts": "artifacts",
    "RemoteArtifacts": "artifacts",
    "SqliteArtifacts": "artifacts",
    "CHART_WALK_ARTIFACT_KIND": "artifacts",
    "CHART_WALK_COLUMNS_ARTIFACT_KIND": "artifacts",
    "RECORDING_ARTIFACT_KIND": "artifacts",
    "chart_walk_columns_put_input": "artifacts",
    "chart_walk_put_input": "artifacts",
    "recording_put_input": "artifacts",
    "runbook_as_tool": "runbook",
    "flowchart_as_tool": "runbook.flowchart",
    "triage": "runbook",
    "RunbookRules": "runbook",
    "Verdicts": "runbook",
    "WalkOptions": "runbook",
    "RecordingOptions": "runbook",
    "Envelope": "runbook",
    "Verification": "record.verification",
    "Claim": "record.claims",
    "verify_file": "share.verify",
    "WalkDescriptor": "runbook",
    "VerdictRow": "runbook",
    "DECLINED_VERDICT": "runbook",
    "DEFAULT_MAX_ROWS": "runbook",
    "DEFAULT_RECORDING_MAX_BYTES": "runbook",
    "VERDICT_RENDER_NOTE": "runbook",
    "PANEL_RENDER_NOTE": "runbook",
    "verdict_rows_of": "runbook",
    "render_verdict_table": "runbook",
    "Playbook": "playbooks",
    "PlaybookStep": "playbooks",
    "RequiredProbe": "playbooks",
    "Skill": "playbooks",
    "PlaybookPlan": "playbooks",
    "PlaybookJournal": "playbooks",
    "JsonlJournal": "playbooks",
    "SqliteJournal": "playbooks",
    "StepExecution": "playbooks",
    "StepStatus": "playbooks",
    "PlaybookEnforcer": "playbooks",
    "EnforcementPolicy": "playbooks",
    "EnforcementResult": "playbooks",
    "EnforcementViolation": "playbooks",
    "PlaybookEnforcerHook": "playbooks",
    "PlaybookMiddleware": "playbooks",
    "ToolEvent": "playbooks",
    "guard": "playbooks",
    "current_plan": "playbooks",
    "last_plan": "playbooks",
    "PlaybookLoader": "playbooks",
    "PlaybookLoadError": "playbooks",
    "load_playbook": "playbooks",
    "write_playbook": "playbooks",
    "from_cacao": "playbooks",
    "event_log": "playbooks",
    "declare_rules": "playbooks",
    "RunForm": "widgets.form",
    "PlaybookForm": "widgets.playbookform",
    "RuleLab": "widgets.rulelab",
    "share_notebook": "share.sharing",
    "Runs": "share.catalogue",
}

__all__ = ["__version__", "errors", *_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    elif name == "errors":
        value = import_module(f"{__name__}.errors")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(shell: Any) -> None:
    """Add the magics to a session: ``%load_ext runbook_nb``."""
    import_module(f"{__name__}.magics").register(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Take them out again: ``%unload_ext runbook_nb``."""
    import_module(f"{__name__}.magics").unregister(shell)


class _Package(ModuleType):
    """Keeps a public name from being hidden by the submodule of the same name.

    Importing ``runbook_nb.settings`` makes the import system bind that module on the package,
    where ``rb.settings`` must stay the settings object whoever imported what first.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        # A function that says `rb` travels with the package's name, as with any module's.
        return __import__, (self.__name__,)


sys.modules[__name__].__class__ = _Package
