"""The input of a run, held to what the chart declares before anything runs.

Chart layer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from runbook_nb._arguments import validate_arguments
from runbook_nb._frozen import FrozenDict
from runbook_nb.chart.contract import declared_problems, parsed, parser_of, without_hidden
from runbook_nb.chart.scope import frozen_args
from runbook_nb.errors import ChartError, Problem
from runbook_nb.record.redact import Redact, Redactor

if TYPE_CHECKING:
    from runbook_nb.chart.model import Chart


def input_problems(schema: Any) -> Iterator[Problem]:
    """Say what keeps something from being a chart's ``input_schema``."""
    yield from declared_problems(schema, "input_schema")


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
    parse = parser_of(schema)
    if parse is None:
        given: Any = frozen_args(args)
        problems = [] if schema is None else validate_arguments(schema, given)
        if not problems:
            return given  # type: ignore[no-any-return]
    else:
        made, problems = parsed(parse, args if args is not None else {})
        if not problems:
            return frozen_args(made)
        given = args if isinstance(args, Mapping) else {}
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
    return without_hidden(problems, redactor)
