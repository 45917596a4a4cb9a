"""One call of a runbook: run the procedure, read what it left, compose the answer.

Bridge layer. It knows procedures and records, never how anything is drawn. Failing to file
something never fails the call; an absence an inner tool declared is the answer, unchanged.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._json import WireReport
from runbook_nb._text import MISSING
from runbook_nb.coverage import (
    carried_provenance,
    compose_ledger,
    fold_declared,
    read_declared_coverage,
    stamp,
)
from runbook_nb.errors import LimitReached, Paused, RunCancelled
from runbook_nb.record.procedure import Procedure
from runbook_nb.runbook.dossier import Dossier
from runbook_nb.runbook.envelope import Envelope
from runbook_nb.runbook.gaps import bridge_ledger, ledger_sentence
from runbook_nb.runbook.meanings import meanings_of
from runbook_nb.runbook.report import admit_report, refusal_note, reserved_names
from runbook_nb.runbook.tickets import describe_walk
from runbook_nb.runbook.verdicts import DEFAULT_MAX_ROWS, projection_of, read_rowset
from runbook_nb.tools import RecordedDispatch, ToolContext, absence_signal_of, recording_dispatch

if TYPE_CHECKING:
    from runbook_nb.record.run import Run
    from runbook_nb.runbook.declare import Declaration

#: Version word of an answer whose runbook declared no rules.
UNDECLARED: Final = "undeclared"

_log = logging.getLogger("runbook_nb")


async def run_call(declaration: Declaration, args: Mapping[str, Any], ctx: ToolContext) -> Any:
    """Answer one call.

    Returns
    -------
    Envelope or mapping
        The envelope; or the absence of an inner tool, exactly as that tool returned it.

    Raises
    ------
    Paused
        The procedure asked for an answer; ``checkpoint`` holds what it waits for.
    Exception
        What the procedure raised, unchanged, with the run so far as ``error.run``.
    """
    recorded = recording_dispatch(ctx.tools, declaration.name)
    procedure = declaration.procedure(recorded.tools)
    try:
        run = await procedure.run(dict(args), redact=declaration.redact, signal=ctx.signal)
    except BaseException as error:
        _note_run(declaration, getattr(error, "run", None), ctx)
        absence = _absence_behind(error, recorded)
        if absence is not None:
            return absence
        raise
    _note_run(declaration, run, ctx)
    if run.status == "paused":
        raise _paused(declaration, run)
    if recorded.remembered is not None:
        # The signal was caught inside a stage; concluding anything would be concluding from
        # nothing.
        return recorded.remembered.absence
    return await compose_envelope(declaration, procedure, run, recorded, ctx)


def _absence_behind(error: BaseException, recorded: RecordedDispatch) -> Any:
    if not isinstance(error, Exception) or isinstance(error, RunCancelled | LimitReached):
        return None
    signal = absence_signal_of(error) or recorded.remembered
    return None if signal is None else signal.absence


def _note_run(declaration: Declaration, run: Run | None, ctx: ToolContext) -> None:
    if run is None:
        return
    ctx.run_sink(run)
    if declaration.kept is not None:
        declaration.kept.keep(
            run,
            tool=declaration.name,
            call_id=ctx.call_id,
            session_id=ctx.session.conversation,
        )
    for recorder in declaration.recorders:
        try:
            recorder(run)
        except Exception:  # an observer never affects what it observes
            _log.warning("a recorder of %s failed", declaration.name, exc_info=True)


def _paused(declaration: Declaration, run: Run) -> Paused:
    asked = None if run.pause is None else run.pause["reason"]
    error = Paused(
        f"runbook_as_tool({declaration.name}): the procedure paused for an answer: "
        f"{asked}; a paused procedure is not resumed through the tool boundary, the "
        "error's checkpoint holds what it waits for",
        checkpoint=run.checkpoint,
        where=declaration.name,
    )
    error.run = run
    return error


async def compose_envelope(
    declaration: Declaration,
    procedure: Procedure,
    run: Run,
    recorded: RecordedDispatch,
    ctx: ToolContext,
) -> Envelope:
    """Compose the answer out of a run that came to its end."""
    state = run.state if isinstance(run.state, Mapping) else {}
    walk = await describe_walk(
        run,
        cap=declaration.walk.cap,
        recording=declaration.walk.recording,
        ctx=ctx,
        tool_name=declaration.name,
    )
    verdicts = declaration.verdicts
    rowset = None
    projection: dict[str, Any] = {}
    if declaration.verdict_kind:
        rowset = read_rowset(state.get("verdicts"), verdicts.rank if verdicts else ())
        projection = projection_of(
            rowset,
            max_rows=verdicts.max_rows if verdicts else DEFAULT_MAX_ROWS,
            presentation=declaration.presentation,
            meanings=None
            if verdicts is None
            else meanings_of(run, procedure.structure, verdicts.decider),
        )
    wire = WireReport()
    report, refused = admit_report(
        state.get("report"), reserved_names(declaration.verdict_kind), wire
    )
    results = [r.result for r in recorded.records if r.result is not MISSING]
    inner = run.redactor.scrub([*results])
    bridge = bridge_ledger(declaration, run, rowset, wire.replaced)
    ledger = compose_ledger(
        fold_declared(inner), read_declared_coverage(state.get("coverage")), bridge
    )
    ledger = ledger.with_sentence(
        ledger_sentence(declaration, run, rowset, len(ledger.not_checked))
    )
    rules = declaration.rules
    result: dict[str, Any] = {
        "af_provenance": stamp(carried_provenance(inner), declaration.name, ctx.call_id),
        "rule_version": UNDECLARED if rules is None else rules.version,
        **report,
        **projection,
    }
    note = refusal_note(refused)
    if note is not None:
        result["report_note"] = note
    result["walk"] = walk
    return Envelope.live(
        {"af_coverage": ledger.to_dict(), "result": result},
        dossier=Dossier.of_run(declaration, run, rowset),
        run=run,
        artifacts=ctx.artifacts if ctx.has_artifacts else None,
    )
