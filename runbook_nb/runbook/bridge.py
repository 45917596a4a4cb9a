"""One call of a runbook: run the procedure, read what it left, compose the answer.

Bridge layer. It knows procedures and records, never how anything is drawn. Failing to file
something never fails the call; an absence an inner tool declared is the answer, unchanged.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from runbook_nb._arguments import misspelt_names
from runbook_nb._json import WireReport, to_wire, wire_key
from runbook_nb._sync import loop_for
from runbook_nb._text import MISSING, show
from runbook_nb.coverage import (
    compose_ledger,
    read_declared_coverage,
    stamp,
)
from runbook_nb.errors import DefinitionError, LimitReached, Paused, RunCancelled, describe_error
from runbook_nb.record.kept import KeptRecords
from runbook_nb.record.procedure import Procedure, is_procedure, procedure_of
from runbook_nb.record.run import Run
from runbook_nb.record.slots import error_words
from runbook_nb.rules.versions import judged_otherwise, next_version
from runbook_nb.runbook.carried import scrubbed_texts
from runbook_nb.runbook.dossier import Dossier
from runbook_nb.runbook.envelope import Envelope
from runbook_nb.runbook.fans import fan_out_groups
from runbook_nb.runbook.gaps import bridge_ledger, ledger_sentence, rule_notes, telling_note
from runbook_nb.runbook.meanings import meanings_of
from runbook_nb.runbook.report import admit_report, fit, refusal_note, reserved_names
from runbook_nb.runbook.tickets import describe_walk
from runbook_nb.runbook.verdicts import DEFAULT_MAX_ROWS, projection_of, read_rowset
from runbook_nb.tools import (
    RecordedDispatch,
    RunbookAbsenceSignal,
    ToolContext,
    absence_signal_of,
    recording_dispatch,
)
from runbook_nb.tools.dispatch import declared_by, read_calls, stamp_carried, written_calls

if TYPE_CHECKING:
    from runbook_nb.runbook.declare import Declaration

#: Version word of an answer whose runbook declared no rules.
UNDECLARED: Final = "undeclared"


class Observed(Protocol):
    """What says who keeps and who watches the runs of a tool."""

    @property
    def name(self) -> str:
        """The tool."""
        ...

    @property
    def kept(self) -> KeptRecords | None:
        """Where its runs are kept."""
        ...

    @property
    def recorders(self) -> tuple[Any, ...]:
        """Who is called with each finished run."""
        ...


async def run_call(declaration: Declaration, args: Mapping[str, Any], ctx: ToolContext) -> Any:
    """Answer one call.

    Returns
    -------
    Envelope or mapping
        The envelope; or the absence of an inner tool, exactly as that tool returned it.

    Raises
    ------
    Paused
        The procedure asked for an answer; ``checkpoint`` holds what it waits for, and
        `resume_call` goes on from it.
    Exception
        What the procedure raised, unchanged, with the run so far as ``error.run``.
    """
    recorded = recording_dispatch(ctx.tools, declaration.name)
    procedure = _procedure(declaration, recorded)
    running = procedure.run(
        dict(args),
        redact=declaration.redact,
        signal=ctx.signal,
        **_options(declaration, ctx, procedure.run),
    )
    return await _answer(declaration, procedure, running, recorded, ctx)


async def resume_call(
    declaration: Declaration, checkpoint: Any, answer: Any, ctx: ToolContext
) -> Any:
    """Go on with a call that paused, in this process or another.

    Calls of inner tools made before the pause are not made again: what they answered and declared
    is part of the answer as it would have been without a pause. A stage that asked in its middle
    runs again from its top, and so do its own calls.

    Returns
    -------
    Envelope or mapping
        As for `run_call`; its walk covers both parts.

    Raises
    ------
    CheckpointError
        The checkpoint is damaged, or is of another tool or procedure; nothing has run.
    Paused
        The procedure asked again.
    """
    calls = read_calls(checkpoint, declaration.name)
    recorded = recording_dispatch(ctx.tools, declaration.name, calls)
    procedure = _procedure(declaration, recorded)
    resume = getattr(procedure, "resume", None)
    if not callable(resume):
        raise DefinitionError(
            f"runbook_as_tool({declaration.name}): its procedure, a {type(procedure).__name__}, "
            "cannot be resumed",
            where="procedure",
            code="not_resumable",
        )
    running = resume(
        checkpoint,
        answer,
        redact=declaration.redact,
        signal=ctx.signal,
        **_options(declaration, ctx, resume),
    )
    return await _answer(declaration, procedure, running, recorded, ctx)


def _procedure(declaration: Declaration, recorded: RecordedDispatch) -> Procedure:
    procedure = procedure_of(declaration.procedure(recorded.tools))
    if not is_procedure(procedure):
        raise DefinitionError(
            f"runbook_as_tool({declaration.name}): the procedure's factory gave "
            f"{type(procedure).__name__} for this call, not a built chart",
            where="procedure",
            code="bad_runbook",
        )
    return procedure


def _options(
    declaration: Declaration, ctx: ToolContext, begin: Callable[..., Any]
) -> dict[str, Any]:
    limits = {} if declaration.limits is None else {"limits": declaration.limits}
    return {**limits, **engine_of(ctx, begin)}


def engine_of(ctx: ToolContext, begin: Callable[..., Any]) -> dict[str, Any]:
    """Give the engine of a call as an option, to a procedure that knows of engines."""
    if ctx.engine is None:
        return {}
    from inspect import signature

    return {"engine": ctx.engine} if "engine" in signature(begin).parameters else {}


async def _answer(
    declaration: Declaration,
    procedure: Procedure,
    running: Awaitable[Run],
    recorded: RecordedDispatch,
    ctx: ToolContext,
) -> Any:
    try:
        await loop_for(running)
        run = await running
    except BaseException as error:
        absence = _absence_behind(error, recorded)
        note_run(declaration, getattr(error, "run", None), ctx, recorded, absence)
        if absence is not None:
            return absence.absence
        raise
    # A signal caught inside a stage still is the answer: concluding anything would be concluding
    # from nothing.
    absence = recorded.remembered
    note_run(declaration, run, ctx, recorded, absence)
    if absence is not None:
        return absence.absence
    if run.status == "paused":
        raise paused_error("runbook_as_tool", declaration.name, run, recorded)
    return await compose_envelope(declaration, procedure, run, recorded, ctx)


def _absence_behind(
    error: BaseException, recorded: RecordedDispatch
) -> RunbookAbsenceSignal | None:
    if not isinstance(error, Exception) or isinstance(error, RunCancelled | LimitReached):
        return None
    return absence_signal_of(error) or recorded.remembered


def note_run(
    declaration: Observed,
    run: Any,
    ctx: ToolContext,
    recorded: RecordedDispatch | None = None,
    absence: Any = None,
) -> None:
    """Show a run that ended, in whatever way, to those who keep or watch runs.

    Parameters
    ----------
    declaration : Observed
        Whose run it is.
    run : object
        The run; anything else is nothing to note.
    ctx : ToolContext
    recorded : RecordedDispatch, optional
        The inner calls; secrets that only their answers held are made known to the run's policy.
    absence : object, optional
        The absence that is the answer instead of the run's own.
    """
    if not isinstance(run, Run):
        return
    if recorded is not None and run.redactor.active:
        _learn_from_calls(run, recorded)
    if absence is not None:
        run.status = RunbookAbsenceSignal.run_status
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
        except Exception as error:  # an observer never affects what it observes
            _warn(run, f"a recorder of {declaration.name} failed", error)


def _learn_from_calls(run: Run, recorded: RecordedDispatch) -> None:
    """Make what inner calls were given and answered known to the policy of a run."""
    lesson = run.redactor.lesson()
    for value in (*args_of(recorded), *results_of(recorded)):
        try:
            lesson.take(value, ())
        except Exception as error:  # what cannot be looked through cannot be written to state
            _warn(run, "an inner call could not be searched for secrets", error)
    run.learn(lesson)


def _warn(run: Run, what: str, error: Exception) -> None:
    """Log what went wrong beside a run; a traceback quotes values, so a policy leaves it out."""
    from logging import getLogger  # dear to import, and most runs have nothing to warn of

    log = getLogger("runbook_nb")
    if run.redactor.active:
        log.warning("%s: %s", what, run.redactor.text(error_words(describe_error(error))))
    else:
        log.warning("%s", what, exc_info=error)


def args_of(recorded: RecordedDispatch) -> list[Any]:
    """Give what the inner calls were given, in the order they were started."""
    return [record.args for record in recorded.records]


def results_of(recorded: RecordedDispatch) -> list[Any]:
    """Give what the inner calls returned, in the order they were started."""
    return [record.result for record in recorded.records if record.result is not MISSING]


def paused_error(
    maker: str, name: str, run: Run, recorded: RecordedDispatch | None = None
) -> Paused:
    """Make the error of a procedure that paused, with all that is needed to go on."""
    asked = "" if run.pause is None else show(run.redactor.scrub(run.pause)["reason"])
    checkpoint = run.checkpoint
    fix = None
    if checkpoint is not None:
        checkpoint = {**checkpoint, "tool": name, "calls": written_calls(recorded)}
        fix = "answer with toolbox.resume(error.checkpoint, answer)"
    error = Paused(
        f"{maker}({name}): the procedure paused for an answer: {asked}; the error's checkpoint "
        "holds what it waits for",
        checkpoint=checkpoint,
        where=name,
        fix=fix,
    )
    error.run = run
    return error


def _version_note(run: Run) -> str:
    """Say that a version which judged here stood for other content before, in this session."""
    for rules in run.raw_rule_sets():
        if judged_otherwise(rules):
            other = next_version(rules.version)
            said = f"judged under {rules.title}, content differs from what judged before"
            return f"{said}; write version {other!r}"
    return ""


def _misspelt(
    declaration: Declaration, run: Run, recorded: RecordedDispatch, ctx: ToolContext
) -> Iterator[tuple[str, str, str]]:
    """Yield the inputs of this call and its inner ones that look like others' misspelt names."""
    schema_of: Callable[[str], Mapping[str, Any]]
    schema_of = getattr(ctx.tools, "schema_of", lambda name: {})
    given: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]]
    given = [(declaration.name, declaration.inputs, run.raw[0])]
    given += [(call.tool, schema_of(call.tool), call.args) for call in recorded.records]
    for tool, schema, args in given:
        for name, near in misspelt_names(schema, args).items() if args else ():
            yield tool, name, near


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
        options=declaration.walk,
        ctx=ctx,
        tool_name=declaration.name,
    )
    verdicts = declaration.verdicts
    groups = fan_out_groups(run, None if verdicts is None else verdicts.decider)
    wire = WireReport()
    rowset = None
    projection: dict[str, Any] = {}
    if declaration.verdict_kind:
        rowset = read_rowset(state.get("verdicts"), verdicts.rank if verdicts else (), wire)
        projection = projection_of(
            rowset,
            max_rows=verdicts.max_rows if verdicts else DEFAULT_MAX_ROWS,
            presentation=declaration.presentation,
            meanings=None
            if verdicts is None
            else meanings_of(run, procedure.structure, verdicts.decider),
        )
    report, refused = admit_report(
        state.get("report"), reserved_names(declaration.verdict_kind), wire
    )
    carried = _served_provenance(run, stamp_carried(recorded), wire)
    provenance = stamp(carried, declaration.name, ctx.call_id)
    notes = rule_notes(run)
    ledger = compose_ledger(
        declared_by(recorded),
        read_declared_coverage(state.get("coverage")),
        bridge_ledger(
            declaration,
            run,
            groups,
            rowset,
            replaced=wire.replaced,
            failed_calls=[r.tool for r in recorded.records if r.outcome == "error"],
            misspelt=_misspelt(declaration, run, recorded, ctx),
            notes=notes,
        ),
    )
    sentence = ledger_sentence(declaration, run, rowset, len(ledger.not_checked))
    rules = declaration.rules
    result: dict[str, Any] = {
        "af_provenance": provenance,
        "rule_version": UNDECLARED if rules is None else run.redactor.text(rules.version),
        **report,
        **projection,
    }
    note = refusal_note(refused)
    if note is not None:
        result["report_note"] = note
    result["walk"] = walk
    covered = ledger.with_sentence(sentence).to_dict()
    telling = telling_note(notes)
    return Envelope.live(
        {"af_coverage": scrubbed_texts(to_wire(covered), run.redactor), "result": result},
        dossier=partial(
            Dossier.of_run,
            declaration,
            run,
            groups,
            rowset,
            telling=() if telling is None else (telling.short, telling.why),
            version_note=_version_note(run),
        ),
        run=run,
        artifacts=ctx.artifacts if ctx.has_artifacts else None,
    )


def _served_provenance(run: Run, carried: Mapping[str, Any], wire: WireReport) -> dict[str, Any]:
    try:
        served = run.redactor.scrub(carried)
    except Exception:  # what cannot be looked through is hidden whole
        served = None
    if not isinstance(served, Mapping):
        return {}
    return {wire_key(key, wire): fit(value, wire) for key, value in served.items()}
