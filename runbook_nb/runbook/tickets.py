"""Filing the walk and the recording of a run, and the descriptor that says what became of them.

Bridge layer. A ticket that cannot be had costs the ticket, never the answer; the descriptor keeps
its counters and says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._json import REPEATED, WireReport, byte_size
from runbook_nb._text import clip, listed
from runbook_nb.artifacts import (
    CHART_WALK_ARTIFACT_KIND,
    CHART_WALK_COLUMNS_ARTIFACT_KIND,
    RECORDING_ARTIFACT_KIND,
    chart_walk_columns_put_input,
    chart_walk_put_input,
    recording_put_input,
)
from runbook_nb.errors import ArtifactError, describe_error
from runbook_nb.record.projection import ProjectedWalk
from runbook_nb.record.slots import error_words

if TYPE_CHECKING:
    from runbook_nb.record.run import Run
    from runbook_nb.runbook.declare import RecordingOptions, WalkOptions
    from runbook_nb.tools import ToolContext

#: What the tickets of an answer stand for, by their names in the walk's descriptor.
TICKETS: Final = {"ref": "walk", "columns_ref": "whole walk", "recording_ref": "recording"}

#: The same, by the kind of what was filed.
FILED: Final = {
    CHART_WALK_ARTIFACT_KIND: "walk",
    CHART_WALK_COLUMNS_ARTIFACT_KIND: "whole walk",
    RECORDING_ARTIFACT_KIND: "recording",
}

#: What every walk note says first.
WALK_NOTE: Final = (
    "The walk of the run itself, one row per recorded step. The `condition` rows hold the rule, "
    "the values it compared and the branch it chose: check a verdict there."
)

#: What every recording note says first.
RECORDING_NOTE: Final = (
    "The run's own recording, `{snapshot, events, structure}`. Beyond the walk it holds the "
    "procedure's structure, its state, its commit log and its recorder's data; of all that, only "
    "the redaction policy scrubbed anything. `events` is empty by construction: no agent turn took "
    "place in the run."
)

#: What every note of a whole walk says first.
WHOLE_NOTE: Final = (
    "The whole walk, in columns, for rb.read_walk: every row, its decisions and the structure, as "
    "the redaction policy lets them be seen."
)

NO_STORE: Final = (
    "no artifact store was attached (give the toolbox artifacts=InMemoryArtifacts(), or another "
    "store)"
)

WalkDescriptor = Mapping[str, Any]


async def mint_walk(
    run: Run, projected: ProjectedWalk, ctx: ToolContext, tool_name: str
) -> dict[str, Any]:
    """File a run's walk and give its descriptor.

    Parameters
    ----------
    run : Run
    projected : ProjectedWalk
        The rows to file; their counters are enough where there is no store.
    ctx : ToolContext
        Whose store, and whose call id goes on the ticket.
    tool_name : str
        For the label.

    Returns
    -------
    dict
        ``ref`` and ``kind`` only when filed; counters and ``note`` always.
    """
    ticket: dict[str, Any] = {}
    reason: str | None = None
    if not projected.shown:
        reason = "There was no narrative to file: the run recorded no row."
    elif not ctx.has_artifacts:
        reason = f"The rows were recorded but not filed: {NO_STORE}."
    else:
        try:
            put = chart_walk_put_input(
                [row.to_dict() for row in projected.rows],
                tool_name=tool_name,
                tool_call_id=ctx.call_id,
            )
            filed = await ctx.artifacts.put(put)
            ticket = {"ref": filed.meta.ref, "kind": CHART_WALK_ARTIFACT_KIND}
        except Exception as error:  # whatever a store does, the answer stands
            reason = (
                f"Filing the rows failed: {failure_words(run, error)}. Only the ticket was lost."
            )
    return {
        **ticket,
        "rows": projected.shown,
        "steps_executed": run.steps_executed,
        "projection": projected.projection,
        "shown": projected.shown,
        "total": projected.total,
        "complete": projected.complete,
        "walk_segment": "full",
        "note": walk_note(projected, reason),
    }


def walk_note(projected: ProjectedWalk, reason: str | None) -> str:
    """Say what the rows are, what was dropped from them, and why there is no ticket."""
    parts = [WALK_NOTE]
    if projected.projection == "control-flow":
        kept = (
            "decisions were kept first, then other control flow"
            if projected.conditions_first
            else "stages, forks, branches and every decision were kept"
        )
        parts.append(
            f"This is the CONTROL-FLOW projection: {kept}, reads and writes were dropped, "
            f"{projected.shown} of {projected.total} rows remain."
        )
    if reason is not None:
        parts.append(reason)
    return " ".join(parts)


def failure_words(run: Run, error: BaseException) -> str:
    """Say a store's error as name and message, with what the policy hides left out."""
    return clip(run.redactor.text(error_words(describe_error(error))), 300)


async def mint_chart_recording(
    run: Run, policy: RecordingOptions, ctx: ToolContext, tool_name: str
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """File a run's recording.

    Returns
    -------
    fields : dict
        The ``recording_…`` fields of the descriptor, ``recording_note`` always among them.
    swept : tuple of str
        References the store gave up to make room.
    """
    if not ctx.has_artifacts:
        return {"recording_note": f"{RECORDING_NOTE} It was not filed: {NO_STORE}."}, ()
    from runbook_nb.record.recording import recording_of

    report = WireReport()
    try:
        put = recording_put_input(
            recording_of(run, report).to_dict(),
            tool_call_id=ctx.call_id,
            label=policy.label or f"{tool_name} recording",
        )
    except Exception as error:  # an unserialisable state, or a view of it that failed
        return {
            "recording_note": f"{RECORDING_NOTE} It could not be serialised and was not filed: "
            f"{_reason(run, error)}. Only the reference was lost, never the answer."
        }, ()
    measured = byte_size(put["data"])
    if measured > policy.max_bytes:
        return {
            "recording_bytes": measured,
            "recording_note": f"{RECORDING_NOTE} It was NOT filed: it measured {measured} bytes "
            f"and the ceiling is {policy.max_bytes}. Raise walk.recording.max_bytes to file it. It "
            "was not truncated, because half a commit log under a whole structure draws a picture "
            "nobody can check.",
        }, ()
    try:
        filed = await ctx.artifacts.put(put)
        ref, stored = filed.meta.ref, filed.meta.bytes
        swept = tuple(gone.ref for gone in filed.swept)
    except Exception as error:  # whatever a store does, the answer stands
        return {
            "recording_bytes": measured,
            "recording_note": f"{RECORDING_NOTE} Filing it failed: {failure_words(run, error)}. "
            "Only the reference was lost; the answer is unaffected.",
        }, ()
    return {
        "recording_ref": ref,
        "recording_kind": RECORDING_ARTIFACT_KIND,
        "recording_bytes": stored,
        "recording_note": RECORDING_NOTE + _replaced_words(report),
    }, swept


def _replaced_words(report: WireReport) -> str:
    types = [name for name in report.replaced if name != REPEATED]
    words = ""
    if types:
        words += f" JSON cannot carry values of type {listed(types)}: type names stand for them."
    if REPEATED in report.replaced:
        words += " Of values whose keys JSON writes alike, the last stands."
    return words


def _reason(run: Run, error: Exception) -> str:
    return str(error) if isinstance(error, ArtifactError) else failure_words(run, error)


async def mint_whole_walk(
    run: Run, form: str, ctx: ToolContext, tool_name: str
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """File every row of a run's walk, in columns.

    Returns
    -------
    fields : dict
        The ``columns_…`` fields of the descriptor; ``columns_ref``, ``columns_kind`` and
        ``columns_bytes`` only when filed.
    swept : tuple of str
        References the store gave up to make room.
    """
    from runbook_nb.record.walk_file import write_walk

    total = len(run.walk)
    counters = {
        "columns_form": form,
        "columns_rows": 0,
        "columns_total": total,
        "columns_complete": False,
    }
    if not total:
        reason = "There was no row to file."
        return {**counters, "columns_complete": True, "columns_note": reason}, ()
    if not ctx.has_artifacts:
        return {**counters, "columns_note": f"{WHOLE_NOTE} It was not filed: {NO_STORE}."}, ()
    report = WireReport()
    try:
        written = write_walk(run, form, report=report)  # type: ignore[arg-type]
    except Exception as error:  # a state no JSON carries, or a view of it that failed
        return {
            **counters,
            "columns_note": f"{WHOLE_NOTE} It could not be written and was not filed: "
            f"{_reason(run, error)}. Only the ticket was lost, never the answer.",
        }, ()
    try:
        put = chart_walk_columns_put_input(
            written, form=form, tool_name=tool_name, tool_call_id=ctx.call_id
        )
        filed = await ctx.artifacts.put(put)
        ref, stored = filed.meta.ref, filed.meta.bytes
        swept = tuple(gone.ref for gone in filed.swept)
    except Exception as error:  # whatever a store does, the answer stands
        return {
            **counters,
            "columns_bytes": len(written),
            "columns_note": f"{WHOLE_NOTE} Filing it failed: {failure_words(run, error)}. Only "
            "the ticket was lost, never the answer.",
        }, ()
    return {
        "columns_ref": ref,
        "columns_kind": CHART_WALK_COLUMNS_ARTIFACT_KIND,
        **counters,
        "columns_rows": total,
        "columns_complete": True,
        "columns_bytes": stored,
        "columns_note": WHOLE_NOTE + _replaced_words(report),
    }, swept


async def describe_walk(
    run: Run, *, options: WalkOptions, ctx: ToolContext, tool_name: str
) -> dict[str, Any]:
    """File what a run leaves and give the whole descriptor, in its wire order."""
    projected = run.walk.project(options.cap, counters_only=not ctx.has_artifacts)
    walk = await mint_walk(run, projected, ctx, tool_name)
    given_up: dict[str, str] = {}
    whole: dict[str, Any] = {}
    if options.form != "json":
        whole, swept = await mint_whole_walk(run, options.form, ctx, tool_name)
        given_up.update(dict.fromkeys(swept, "the whole walk"))
    fields: dict[str, Any] = {}
    if options.recording is not None:
        fields, swept = await mint_chart_recording(run, options.recording, ctx, tool_name)
        given_up.update(dict.fromkeys(swept, "the recording"))
    # A ticket for something the store no longer has would be a promise nobody can redeem.
    made_room = given_up.get(walk.get("ref", ""))
    if made_room is not None:
        walk = {key: value for key, value in walk.items() if key not in ("ref", "kind")}
        reason = (
            f"The rows were filed, and given up again by the store to make room for {made_room}."
        )
        walk["note"] = walk_note(projected, reason)
    made_room = given_up.get(whole.get("columns_ref", ""))
    if made_room is not None:
        lost = ("columns_ref", "columns_kind")
        whole = {key: value for key, value in whole.items() if key not in lost}
        whole |= {"columns_rows": 0, "columns_complete": False}
        whole["columns_note"] = (
            f"{WHOLE_NOTE} It was filed, and given up again by the store to make room for "
            f"{made_room}."
        )
    return {**walk, **whole, **fields}
