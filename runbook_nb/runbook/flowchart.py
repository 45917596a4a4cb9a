"""`flowchart_as_tool`: the thin bridge, whose answer is a text and carries no evidence.

Bridge layer. For charts whose outcome is the whole answer. Nothing of an answer says what was
checked or by which rules; `runbook_as_tool` is for that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from runbook_nb._frozen import FrozenDict, Immutable
from runbook_nb._json import encode, to_wire
from runbook_nb._sync import asks_for_loop, is_awaitable, loop_for
from runbook_nb._value import frozen
from runbook_nb.chart.validate import is_text
from runbook_nb.errors import DefinitionError, describe_error
from runbook_nb.record.kept import KeptRecords
from runbook_nb.record.procedure import Procedure, is_procedure
from runbook_nb.record.redact import Redact, as_redact
from runbook_nb.record.run import Run
from runbook_nb.record.slots import error_words
from runbook_nb.runbook.declare import as_kept, as_recorders, input_schema_of
from runbook_nb.tools import Tool, ToolContext, define_tool
from runbook_nb.tools.dispatch import read_calls


@frozen
class _Declaration(Immutable):
    """A checked declaration: whose runs are kept and watched, and how."""

    name: str
    flowchart: Procedure
    mapper: Callable[[Any], Any] | None
    redact: Redact | None
    recorders: tuple[Any, ...]
    kept: KeptRecords | None


def flowchart_as_tool(
    *,
    name: str = "",
    description: str = "",
    flowchart: Procedure | None = None,
    result_mapper: Callable[[Any], Any] | None = None,
    redact: Redact | Mapping[str, Any] | None = None,
    recorders: Any = (),
    keep_record: bool = False,
    keep_record_limit: int | None = None,
    input_schema: Any = None,
    **tool_options: Any,
) -> Tool:
    """Declare a chart as a tool that answers with a text.

    Parameters
    ----------
    name, description : str
        What a model calls it and reads about it.
    flowchart : Chart
        The built chart that each call runs.
    result_mapper : callable, optional
        Takes the final state and gives the text; may be async. When it raises, or gives no text,
        the answer is ``[mapper-error: …]``. By default the answer is what the chart gives,
        `Run.output`, as JSON: the final state unless it declares something else.
    redact : Redact or mapping, optional
        What must not be seen in the state the answer is made of, or in a kept record.
    recorders : iterable of callable, optional
        Each is called with the finished `Run`.
    keep_record : bool
        Keep the last runs on the tool for `inner_runs_of`.
    keep_record_limit : int, optional
        How many; 20 by default.
    input_schema : mapping or pydantic model, optional
        Overrides what the chart declares.
    **tool_options
        Passed to the tool as they are.

    Returns
    -------
    Tool
        Its body answers with a text; errors of the chart leave as they are, and a chart that
        pauses raises `Paused` with its checkpoint.

    Raises
    ------
    DefinitionError
        The first thing wrong with the declaration, naming the option.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> chart = flow_chart("count", lambda s: s.set("n", 3), id="count").build()
    >>> flowchart_as_tool(name="count", description="Counts.", flowchart=chart).execute_sync()
    '{"n":3}'
    """
    if not is_text(name):
        raise DefinitionError(
            f"a flowchart tool needs a name, not {name!r}", where="name", code="bad_flowchart_tool"
        )
    where = f"flowchart_as_tool({name})"
    if not is_text(description):
        raise DefinitionError(
            f"{where}: the description is {description!r}; a tool without one is invisible to a "
            "model",
            where="description",
            code="bad_flowchart_tool",
        )
    if not is_procedure(flowchart):
        raise DefinitionError(
            f"{where}: flowchart is {type(flowchart).__name__}, not a built chart",
            where="flowchart",
            code="bad_flowchart_tool",
            fix="call .build() at the end" if hasattr(flowchart, "build") else None,
        )
    if result_mapper is not None and not callable(result_mapper):
        raise DefinitionError(
            f"{where}: result_mapper is {result_mapper!r}, which cannot be called",
            where="result_mapper",
            code="bad_flowchart_tool",
        )
    declaration = _Declaration(
        name=name,
        flowchart=flowchart,
        mapper=result_mapper,
        redact=as_redact(redact),
        recorders=as_recorders(recorders, where),
        kept=as_kept(keep_record, keep_record_limit, where),
    )

    @asks_for_loop
    async def answer(args: Mapping[str, Any], ctx: ToolContext) -> str:
        return await _run(declaration, args, ctx)

    @asks_for_loop
    async def resume(checkpoint: Any, given: Any, ctx: ToolContext) -> str:
        return await _resume(declaration, checkpoint, given, ctx)

    return define_tool(
        name=name,
        description=description,
        input_schema=input_schema_of(input_schema, flowchart),
        execute=answer,
        **{"resume": resume, **tool_options},
        carried=FrozenDict(runbook=declaration),
    )


async def _run(declaration: _Declaration, args: Mapping[str, Any], ctx: ToolContext) -> str:
    from runbook_nb.runbook.bridge import engine_of

    run = declaration.flowchart.run
    engine = engine_of(ctx, run)
    running = run(dict(args), redact=declaration.redact, signal=ctx.signal, **engine)
    return await _answered(declaration, running, ctx)


async def _resume(declaration: _Declaration, checkpoint: Any, given: Any, ctx: ToolContext) -> str:
    read_calls(checkpoint, declaration.name)
    resume = getattr(declaration.flowchart, "resume", None)
    if not callable(resume):
        raise DefinitionError(
            f"flowchart_as_tool({declaration.name}): its flowchart cannot be resumed",
            where="flowchart",
            code="not_resumable",
        )
    from runbook_nb.runbook.bridge import engine_of

    engine = engine_of(ctx, resume)
    running = resume(checkpoint, given, redact=declaration.redact, signal=ctx.signal, **engine)
    return await _answered(declaration, running, ctx)


async def _answered(declaration: _Declaration, running: Awaitable[Run], ctx: ToolContext) -> str:
    from runbook_nb.runbook.bridge import note_run, paused_error

    try:
        await loop_for(running)
        run = await running
    except BaseException as error:
        note_run(declaration, getattr(error, "run", None), ctx)
        raise
    note_run(declaration, run, ctx)
    if run.status == "paused":
        raise paused_error("flowchart_as_tool", declaration.name, run)
    if declaration.mapper is None:
        return encode(to_wire(run.output))
    try:
        text = declaration.mapper(run.state)
        if is_awaitable(text):
            await loop_for(text)
            text = await text
    except Exception as error:  # the run happened; what went wrong with its telling is told
        reason = error_words(describe_error(error))
        return f"[mapper-error: {run.redactor.text(reason)}]"
    if not isinstance(text, str):
        return f"[mapper-error: it gave {type(text).__name__}, not a text]"
    return text
