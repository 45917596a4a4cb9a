"""The input of a run, held to what the chart declares before anything runs.

Chart layer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._arguments import schema_problems, validate_arguments
from runbook_nb._frozen import FrozenDict
from runbook_nb.chart.scope import frozen_args
from runbook_nb.errors import ChartError, Problem
from runbook_nb.record.redact import Redact, Redactor

if TYPE_CHECKING:
    from runbook_nb.chart.model import Chart


_STEP: Final = re.compile(r"[^.\[\]]+")

#: What validates an input, of a pydantic model class, a type adapter, any other validator.
_PARSERS: Final = ("model_validate", "validate_python", "parse")


def parser_of(schema: Any) -> Callable[[Any], Any] | None:
    """Give what validates an input where a model or a validator is declared for it, else None."""
    if isinstance(schema, Mapping):
        return None
    found = (getattr(schema, name, None) for name in _PARSERS)
    return next((parse for parse in found if callable(parse)), None)


def input_problems(schema: Any, name: str = "input_schema") -> Iterator[Problem]:
    """Say what keeps something from being a chart's ``input_schema``, or its ``output_schema``."""
    if schema is None or parser_of(schema) is not None:
        return
    if not isinstance(schema, Mapping):
        yield Problem(
            message=f"it is {type(schema).__name__}, neither a JSON Schema nor a model or an "
            "object with a parse method",
            where=name,
        )
        return
    for problem in schema_problems(schema):
        place = f"{name}.{problem.where}" if problem.where else name
        yield Problem(message=problem.message, where=place, fix=problem.fix)


def checked_input(chart: Chart, args: Any, policy: Redact | None = None) -> FrozenDict:
    """Freeze the input of a run when it fits what the chart declares.

    A model or validator gives the input as it validated it: coerced, with defaults filled in.

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
    parse = parser_of(schema)
    if parse is not None:
        try:
            parsed = parse(args if args is not None else {})
            dump = getattr(parsed, "model_dump", None)
            return frozen_args(dump() if callable(dump) else parsed)
        except Exception as error:  # whatever a validator refuses with
            problems = list(_model_problems(error))
            given = args if isinstance(args, Mapping) else {}
    else:
        given = frozen_args(args)
        if schema is not None:
            problems = validate_arguments(schema, given)
    if not problems:
        return FrozenDict(given)
    raise ChartError(
        f"chart {chart.name!r} cannot run with this input",
        code="invalid_input",
        problems=served_problems(problems, given, policy),
    )


def served_problems(
    problems: Iterable[Problem], given: Mapping[str, Any], policy: Redact | None
) -> list[Problem]:
    """Give what is wrong with an input, with nothing in it that a policy hides.

    Examples
    --------
    >>> wrong = Problem(message="must be one of 'a', and is 'hunter-2'", where="token")
    >>> [str(p) for p in served_problems([wrong], {"token": "hunter-2"}, Redact(keys=("token",)))]
    ['token: does not fit what is declared for it']
    """
    redactor = Redactor(policy)
    redactor = redactor.knowing(redactor.secrets_in(given))
    return [_served(problem, redactor) for problem in problems]


def _model_problems(error: Exception) -> Iterator[Problem]:
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
    steps = _STEP.findall(problem.where or "")
    if any(redactor.hides_key(step) for step in (*steps, problem.where or "")):
        return Problem(message="does not fit what is declared for it", where=problem.where)
    return Problem(
        message=redactor.text(problem.message),
        where=problem.where,
        fix=None if problem.fix is None else redactor.text(problem.fix),
    )
