"""What a chart takes and what it gives: schemas, the check of an output, the chart as a tool.

Chart layer. A contract's schema is a JSON Schema, a pydantic model class or type adapter, or any
object with a ``parse`` method. All of it is checked, nested parts, enumerations and formats too,
by the validator that judges the arguments of tools. An output that does not fit ends the run as
failed, on the record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._arguments import schema_problems, validate_arguments
from runbook_nb._frozen import freeze
from runbook_nb._json import to_wire
from runbook_nb.errors import ChartError, Problem

if TYPE_CHECKING:
    from runbook_nb.chart.model import Chart
    from runbook_nb.record.redact import Redactor

#: What a tool is called whose chart's first id has no character a name may have.
FALLBACK_NAME: Final = "execute"

#: Longest name of a tool, in characters: the longest that protocols for tools take.
MAX_TOOL_NAME: Final = 128

#: What validates a value, of a pydantic model class, a type adapter, any other validator.
_PARSERS: Final = ("model_validate", "validate_python", "parse")
_WRITERS: Final = ("model_json_schema", "json_schema")

_STEP: Final = r"[^.\[\]]+"
_NOT_IN_NAMES: Final = r"[^A-Za-z0-9_.-]"


def parser_of(schema: Any) -> Callable[[Any], Any] | None:
    """Give what validates a value where a model or a validator is declared for it, else None."""
    if schema is None or isinstance(schema, Mapping):
        return None
    found = (getattr(schema, name, None) for name in _PARSERS)
    return next((parse for parse in found if callable(parse)), None)


def declared_problems(schema: Any, where: str, *, any_type: bool = False) -> Iterator[Problem]:
    """Say what keeps something from being a schema of a chart's contract.

    Parameters
    ----------
    schema : object
        What the author declared; None declares nothing.
    where : str
        The name it was declared under.
    any_type : bool
        Whether other things than objects may be described: an output may be a list.
    """
    if schema is None or parser_of(schema) is not None:
        return
    if not isinstance(schema, Mapping):
        yield Problem(
            message=f"it is {type(schema).__name__}, neither a JSON Schema nor a model or an "
            "object with a parse method",
            where=where,
            fix='write {"type": "object", "properties": {…}}, or leave it out',
        )
        return
    for problem in schema_problems(schema, any_type=any_type):
        place = f"{where}.{problem.where}" if problem.where else where
        yield Problem(message=problem.message, where=place, fix=problem.fix)


def output_problems(schema: Any, output: Any) -> Iterator[Problem]:
    """Say what keeps something from being a chart's ``output_schema`` and ``output``.

    Examples
    --------
    >>> [str(problem) for problem in output_problems({"type": "strin"}, "rows")]
    ["output_schema.type: 'strin' is not a JSON type; did you mean 'string'?",
     'output: it is str, which cannot be called; write output=lambda state: …']
    """
    yield from declared_problems(schema, "output_schema", any_type=True)
    if output is not None and not callable(output):
        yield Problem(
            message=f"it is {type(output).__name__}, which cannot be called",
            where="output",
            fix="write output=lambda state: …",
        )


def parsed(parse: Callable[[Any], Any], value: Any) -> tuple[Any, list[Problem]]:
    """Give what a validator made of a value, and what it found wrong with it."""
    try:
        made = parse(value)
    except Exception as error:  # whatever a validator refuses with
        return None, _model_problems(error)
    dump = getattr(made, "model_dump", None)
    return (dump() if callable(dump) else made), []


def _model_problems(error: Exception) -> list[Problem]:
    details = getattr(error, "errors", None)
    try:
        return [
            Problem(message=str(one["msg"]), where=_place(one["loc"]) or None)
            for one in (details() if callable(details) else ())
        ] or [Problem(message=str(error))]
    except Exception:  # the errors of another package, of another form
        return [Problem(message=str(error))]


def _place(steps: Iterable[Any]) -> str:
    where = ""
    for step in steps:
        where += f"[{step}]" if isinstance(step, int) else f".{step}" if where else str(step)
    return where


def check_output(chart: Chart, state: Mapping[str, Any]) -> Any:
    """Give what a run of a chart gives, when it fits what the chart declares.

    That is what the chart's ``output`` makes of the final state, else the state itself. A model
    or validator gives it as it validated it.

    Parameters
    ----------
    chart : Chart
        The chart that ran.
    state : mapping
        Its final state, frozen.

    Raises
    ------
    ChartError
        ``invalid_output``: it does not fit, every fault is named with its real values; or
        ``bad_output``: ``output`` is async.
    Exception
        What ``output`` itself raised, unchanged.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> rows = {"type": "array", "items": {"type": "object", "required": ["host"]}}
    >>> chart = SimpleNamespace(name="hosts", output_schema=rows, output=lambda s: s["rows"])
    >>> check_output(chart, {"rows": [{"host": "db-1"}]})
    [{'host': 'db-1'}]
    >>> check_output(chart, {"rows": [{"name": "db-1"}]})
    Traceback (most recent call last):
    ...
    runbook_nb.errors.ChartError: chart 'hosts' gave an output that does not fit its schema:
    [0].host: is required
    """
    given: Any = state
    if chart.output is not None:
        given = chart.output(state)
        if hasattr(given, "__await__"):
            getattr(given, "close", lambda: None)()
            raise ChartError(
                f"the output of chart {chart.name!r} is made by an async function",
                code="bad_output",
                where="output",
                fix="make it a plain function of the final state; a stage can do the waiting",
            )
    problems: list[Problem] = []
    parse = parser_of(chart.output_schema)
    if parse is not None:
        given, problems = parsed(parse, given)
    value = None if problems else freeze(given, "output")
    if chart.output_schema is not None and parse is None:
        problems = validate_arguments(chart.output_schema, value)
    if problems:
        raise ChartError(
            f"chart {chart.name!r} gave an output that does not fit its schema",
            code="invalid_output",
            where="output",
            problems=problems,
        )
    return value


def hide_in(error: BaseException, redactor: Redactor) -> None:
    """Take out of an error about an output what the policy of its run hides."""
    if isinstance(error, ChartError) and error.code == "invalid_output":
        error.problems = tuple(without_hidden(error.problems, redactor))


def without_hidden(problems: Iterable[Problem], redactor: Redactor) -> list[Problem]:
    """Give what is wrong with a value, with nothing in it that a policy hides.

    Parameters
    ----------
    problems : iterable of Problem
        What was found, with real values.
    redactor : Redactor
        The policy, knowing the secrets of the value.
    """
    return [_served(problem, redactor) for problem in problems]


def _served(problem: Problem, redactor: Redactor) -> Problem:
    steps = re.findall(_STEP, problem.where or "")
    if any(redactor.hides_key(step) for step in (*steps, problem.where or "")):
        return Problem(message="does not fit what is declared for it", where=problem.where)
    return Problem(
        message=redactor.text(problem.message),
        where=problem.where,
        fix=None if problem.fix is None else redactor.text(problem.fix),
    )


# --- the contract as data ------------------------------------------------------------------------


def json_schema_of(schema: Any, mode: str = "validation") -> dict[str, Any] | None:
    """Give a declared schema as plain JSON; None where a validator cannot say what it takes.

    Parameters
    ----------
    schema : object
        A JSON Schema, a model class, or any other validator.
    mode : str
        For a model: ``"validation"`` says what it takes, ``"serialization"`` what it gives.

    Raises
    ------
    ChartError
        A model holds a type that has no JSON form.

    Examples
    --------
    >>> from pydantic import BaseModel
    >>> class Ask(BaseModel):
    ...     days: int = 7
    >>> json_schema_of(Ask)["properties"]
    {'days': {'default': 7, 'title': 'Days', 'type': 'integer'}}
    """
    if not isinstance(schema, Mapping):
        found = (getattr(schema, name, None) for name in _WRITERS)
        write = next((one for one in found if callable(one)), None)
        if write is None:
            return None
        try:
            schema = write(mode=mode)
        except Exception as error:  # whatever the model's package raises
            raise ChartError(
                f"{getattr(schema, '__name__', type(schema).__name__)} has no JSON Schema: "
                f"{str(error).partition(chr(10))[0]}",
                code="bad_schema",
                fix="give the schema as a mapping, or use types that have a JSON form",
            ) from error
    plain: dict[str, Any] = to_wire(schema)
    return plain


def tool_name_of(chart: Chart) -> str:
    """Name the tool a chart is: the id of its first stage, with what no name may hold replaced.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> tool_name_of(flow_chart("Backups", print, id="read backups!").build())
    'read_backups'
    """
    name = re.sub(_NOT_IN_NAMES, "_", chart.stages[0].id).strip("_")
    return name[:MAX_TOOL_NAME].rstrip("_") or FALLBACK_NAME


def tool_description(chart: Chart) -> dict[str, Any]:
    """Give a chart as models are told of a tool: ``{name, description, inputSchema}``.

    A chart that declares no input takes none; one whose validator cannot say what it takes, takes
    any object. Each call gives a copy of its own.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> tool = tool_description(flow_chart("Backups", print, id="read", description="Age.").build())
    >>> tool["name"], tool["description"].splitlines()
    ('read', ['Backups: Age.', '1. Backups'])
    >>> tool["inputSchema"]
    {'type': 'object', 'properties': {}, 'additionalProperties': False}
    """
    from runbook_nb.chart.describe import describe_chart

    taken = json_schema_of(chart.input_schema)
    if taken is None:
        taken = {"type": "object"}
        if chart.input_schema is None:
            taken |= {"properties": {}, "additionalProperties": False}
    description = describe_chart(chart)
    return {"name": tool_name_of(chart), "description": description, "inputSchema": taken}
