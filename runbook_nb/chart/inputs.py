"""The input of a run, held to what the chart declares before anything runs.

Chart layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from runbook_nb._arguments import schema_problems, validate_arguments
from runbook_nb._frozen import FrozenDict
from runbook_nb.chart.scope import frozen_args
from runbook_nb.errors import ChartError, Problem
from runbook_nb.record.redact import Redact, Redactor

if TYPE_CHECKING:
    from runbook_nb.chart.model import Chart


def is_model(schema: Any) -> bool:
    """Say whether a declared input is a pydantic model class, which validates through itself."""
    return isinstance(schema, type) and callable(getattr(schema, "model_validate", None))


def input_problems(schema: Any) -> Iterator[Problem]:
    """Say what keeps something from being a chart's ``input_schema``."""
    if schema is None or is_model(schema):
        return
    if not isinstance(schema, Mapping):
        yield Problem(
            message=f"it is {type(schema).__name__}, neither a JSON Schema nor a pydantic model",
            where="input_schema",
        )
        return
    for problem in schema_problems(schema):
        place = f"input_schema.{problem.where}" if problem.where else "input_schema"
        yield Problem(message=problem.message, where=place, fix=problem.fix)


def checked_input(chart: Chart, args: Any, policy: Redact | None = None) -> FrozenDict:
    """Freeze the input of a run when it fits what the chart declares.

    A model class gives the input as it validated it: coerced, and with its defaults filled in.

    Raises
    ------
    ChartError
        The input is no mapping, or does not fit; every fault is named, none with a value that
        the policy hides.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> chart = flow_chart("c", print, id="a", input_schema={"type": "object", "properties": {
    ...     "days": {"type": "integer"}}, "required": ["days"]}).build()
    >>> checked_input(chart, {"days": 7})
    {'days': 7}
    """
    schema = chart.input_schema
    problems: list[Problem] = []
    if is_model(schema):
        try:
            model = schema.model_validate(args if args is not None else {})
            return frozen_args(model.model_dump())
        except ValueError as error:  # pydantic's errors are ValueErrors
            problems = list(_model_problems(error))
            given = args if isinstance(args, Mapping) else {}
    else:
        given = frozen_args(args)
        if schema is not None:
            problems = validate_arguments(schema, given)
    if not problems:
        return FrozenDict(given)
    redactor = Redactor(policy)
    redactor = redactor.knowing(redactor.secrets_in(given))
    raise ChartError(
        f"chart {chart.name!r} cannot run with this input",
        code="invalid_input",
        problems=[_served(problem, redactor) for problem in problems],
    )


def _model_problems(error: ValueError) -> Iterator[Problem]:
    details = getattr(error, "errors", None)
    if not callable(details):
        yield Problem(message=str(error))
        return
    for one in details():
        where = ""
        for step in one["loc"]:
            where += f"[{step}]" if isinstance(step, int) else f".{step}" if where else str(step)
        yield Problem(message=str(one["msg"]), where=where or None)


def _served(problem: Problem, redactor: Redactor) -> Problem:
    first = (problem.where or "").partition(".")[0].partition("[")[0]
    if redactor.hides_key(first) or (problem.where and redactor.hides_key(problem.where)):
        return Problem(message="does not fit what is declared for it", where=problem.where)
    return Problem(
        message=redactor.text(problem.message),
        where=problem.where,
        fix=None if problem.fix is None else redactor.text(problem.fix),
    )
