"""What the shipped procedures have in common: rows are read, judged by rules, and collected.

Examples layer. A procedure is a source that says what it covers, and a rule set in a file. What
stands here is the way from the one to the other, and the three answers of a source that has
nothing to give: a column that is missing declines what rests on it, an empty source is an absence,
and one that does not answer in time ends the run without an answer.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from importlib import resources
from pathlib import Path
from typing import Any, Final

import runbook_nb as rb
from runbook_nb._text import counted, did_you_mean, listed
from runbook_nb.errors import DefinitionError, LoadError, RunbookError
from runbook_nb.runbook.triage import read_rows

#: The input of procedures whose answer depends on the day.
AS_OF: Final[Mapping[str, Any]] = {
    "type": "string",
    "format": "date",
    "description": "The date to judge at, as 2026-11-29; today when left out.",
}

#: Tables of exercises, by what a row is about.
EXERCISES: Final = {"finding": "patches.csv", "incident": "incidents.csv"}

#: Seconds that a procedure may take, its source included.
SECONDS: Final = 120.0


def read_date(value: date | str) -> date:
    """Read a date, given as one or as ISO text.

    Raises
    ------
    DefinitionError
        It is no date of the calendar, or written another way.

    Examples
    --------
    >>> read_date("2026-11-29")
    datetime.date(2026, 11, 29)
    """
    if isinstance(value, date):
        # A moment counts as its day; `datetime` is a kind of `date`.
        return date(value.year, value.month, value.day)
    try:
        day = date.fromisoformat(value)
    except (TypeError, ValueError):
        day = None
    if day is None or day.isoformat() != value:
        raise DefinitionError(
            f"{value!r} is not a date", code="bad_date", where="as_of", fix="write it as 2026-11-29"
        )
    return day


def read_moment(value: date | str) -> datetime:
    """Read a moment, given as one or as ISO text; a date is its first second, UTC.

    Raises
    ------
    DefinitionError
        It is neither a date nor a moment, or a moment without a zone.

    Examples
    --------
    >>> read_moment("2026-11-29T15:00:00Z").hour, read_moment("2026-11-29").hour
    (15, 0)
    """
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        moment = None
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        return moment
    if isinstance(value, str) and "T" in value:
        raise DefinitionError(
            f"{value!r} is not a moment with a zone",
            code="bad_date",
            where="as_of",
            fix="write it as 2026-11-29T15:00:00Z",
        )
    day = read_date(value)
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def packaged_rules(file: str) -> rb.RuleSet:
    """Load a rule set from a file beside the procedures.

    Examples
    --------
    >>> packaged_rules("certificates.yaml").title
    'root-attention v1'
    """
    with resources.as_file(resources.files(__package__) / file) as path:
        return rb.RuleSet.load(path)


def object_schema(properties: Mapping[str, Any], required: Sequence[str] = ()) -> dict[str, Any]:
    """Write the schema of arguments: these and no others.

    Examples
    --------
    >>> object_schema({"as_of": AS_OF})["additionalProperties"]
    False
    """
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties)}
    if required:
        schema["required"] = list(required)
    return schema | {"additionalProperties": False}


def given_rows(rows: Any) -> list[dict[str, Any]]:
    """Take rows in any form `triage` takes, as dicts.

    Examples
    --------
    >>> given_rows({"host": ["a", "b"], "days": [1, None]})
    [{'host': 'a', 'days': 1}, {'host': 'b', 'days': None}]
    """
    return [dict(row) for row in read_rows(rows)]


def table_rows(path: str | Path, columns: Sequence[str]) -> list[dict[str, str | None]]:
    """Read a table of comma-separated values: text, and None for an empty cell.

    Parameters
    ----------
    path : str or Path
        UTF-8, with the names of the columns in its first line.
    columns : sequence of str
        The columns that are read. One that the table does not have is in no row.

    Raises
    ------
    LoadError
        The file cannot be read, has none of the columns or one of them twice, or a line of it has
        too many cells.
    """
    path = Path(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            names = [name.strip().lower() for name in next(reader, ())]
            read = [name for name in names if name in columns]
            twice = next((name for name in read if read.count(name) > 1), None)
            if twice is not None:  # one of them would be lost, and nobody knows which holds
                raise csv.Error(f"the column {twice!r} stands in it twice")
            rows = []
            for cells in filter(None, reader):
                if any(map(_cell, cells[len(names) :])):  # they may stand under wrong names
                    raise csv.Error(f"line {reader.line_num} has more cells than columns")
                found = dict(zip(names, map(_cell, cells), strict=False))
                rows.append({name: found.get(name) for name in read})
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        told = error.strerror if isinstance(error, OSError) else str(error)
        raise LoadError(
            f"the table {path.name!r} cannot be read: {told}",
            where=str(path),
            fix="give the path of a UTF-8 file of comma-separated values",
        ) from error
    if names and not read:
        raise LoadError(
            f"the table {path.name!r} has none of the columns {listed(columns)}",
            code="missing_column",
            where=str(path),
            fix=did_you_mean(names[0], columns) or "name the columns in its first line",
        )
    return rows


def _cell(text: str) -> str | None:
    return text.strip() or None


def chosen_rows(
    rows: Any,
    file: str | Path | None,
    columns: Sequence[str],
    read: Callable[[Any], list[dict[str, Any]]],
    thing: str,
) -> tuple[list[dict[str, Any]], str]:
    """Read the rows that are given, or those of a file, and name where they come from.

    Without either, those of the exercise that ships are read.

    Examples
    --------
    >>> chosen_rows([{"a": 1}], None, ["a"], given_rows, "finding")
    ([{'a': 1}], 'the rows given')
    """
    if rows is not None:
        return read(rows), "the rows given"
    if file is not None:
        return read(table_rows(file, columns)), f"file {Path(file).name}"
    with resources.as_file(resources.files(__package__) / EXERCISES[thing]) as path:
        return read(table_rows(path, columns)), "an exercise"


def covered(
    rows: Sequence[Mapping[str, Any]] | Any,
    *,
    thing: str,
    source: str,
    checked: Iterable[Any] = (),
    not_checked: Iterable[Any] = (),
    cannot_cover: Iterable[Any] = (),
    report: Mapping[str, Any] | None = None,
    try_instead: str | None = None,
) -> Any:
    """Give rows as a source does, with what they cover; no rows are an absence.

    Parameters
    ----------
    rows : sequence of mappings, or Columns
    thing : str
        What a row is about, in the singular.
    source : str
        What the rows come from.
    checked, not_checked, cannot_cover : iterable of text or Item
        More of the source's ground.
    report : mapping, optional
        Fields of the answer, beside its rows.
    try_instead : str, optional
        What to do where there are no rows.

    Examples
    --------
    >>> covered([{"host": "a"}], thing="host", source="a list")["af_coverage"]["checked"]
    [{'what': 'a list, 1 host'}]
    >>> covered([], thing="host", source="a list")["outcome"]
    'nothing_found'
    """
    if not len(rows):
        return rb.absent(
            f"{thing}s in {source}", checked=[f"{source}, empty"], try_instead=try_instead
        )
    return rb.coverage(
        {"rows": rows, "report": dict(report or {})},
        checked=[f"{source}, {counted(len(rows), thing)}", *checked],
        not_checked=[*not_checked],
        cannot_cover=[*cannot_cover],
    )


def judged_runbook(
    *,
    name: str,
    title: str,
    description: str,
    source: str,
    rules: rb.RuleSet,
    subject: str,
    columns: Sequence[str],
    rank: Sequence[str],
    properties: Mapping[str, Any] | None = None,
    required: Sequence[str] = (),
    units: Mapping[str, str] | None = None,
    declared: bool = True,
    seconds: float | None = SECONDS,
) -> rb.Tool:
    """Declare a runbook that judges each row of a source by rules.

    Parameters
    ----------
    name, title, description : str
        What it is called, as a tool and as a chart, and what it decides.
    source : str
        The tool that gives ``{"rows": …, "report": …}``; it is called with the runbook's arguments.
    rules : RuleSet
        What judges a row.
    subject : str
        The column that names a row.
    columns : sequence of str
        What is shown beside the verdict.
    rank : sequence of str
        Verdict words, worst first.
    properties, required
        The inputs, as JSON Schema has them. One called ``as_of`` is taken from the clock in the
        settings where it is left out (its date, if a date is asked for), and told in the answer.
    units : mapping, optional
        Units of shown columns.
    declared : bool
        Whether the rules are somebody's declared rules. Where not, the answer says ``undeclared``.
    seconds : float, optional
        Time the whole run may take; without an answer by then there is none.

    Examples
    --------
    >>> rules = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], default="fresh")
    >>> book = judged_runbook(name="ages", title="ages", description="Which are old.",
    ...     source="hosts", rules=rules, subject="host", columns=["days"], rank=["old", "fresh"])
    >>> book.composed_of
    ['hosts']
    """
    inputs = dict(properties or {})

    def procedure(tools: Any) -> rb.Chart:
        async def read(scope: Any) -> None:
            args = dict(scope.args)
            if "as_of" in inputs:
                now = rb.settings.clock()
                today = now.date() if inputs["as_of"].get("format") == "date" else now
                args["as_of"] = args.get("as_of") or today.isoformat()
                scope["as_of"] = args["as_of"]
            answer = await tools.call(source, args)
            scope["rows"] = answer["result"]["rows"]
            scope["told"] = answer["result"]["report"]

        def collect(scope: Any) -> None:
            scope["verdicts"] = scope["results"].verdict_rows(*columns)
            day = {"as_of": scope["as_of"]} if "as_of" in inputs else {}
            scope["report"] = day | dict(scope["told"])

        return (
            rb.flow_chart(
                title,
                read,
                id="read",
                stage_name="Read the source",
                description=description,
                input_schema=object_schema(inputs, required),
            )
            .add_judge_each(
                "Judge each row",
                id="each",
                items=lambda scope: scope["rows"],
                rules=rules,
                decider="Verdict",
                into="results",
                subject=subject,
            )
            .add_function("Collect", collect, id="collect")
            .build()
        )

    return rb.runbook_as_tool(
        name=name,
        description=description,
        procedure=procedure,
        result_kind=f"verdict/{title}",
        rules=rules if declared else None,
        verdicts=rb.Verdicts(decider="Verdict", rank=tuple(rank), units=dict(units or {})),
        composed_of=[source],
        limits={"seconds": seconds} if seconds is not None else None,
    )


def answer_of(box: rb.Toolbox, name: str, args: Mapping[str, Any]) -> rb.Envelope:
    """Call a runbook, leaving out what is None, and give its answer.

    Raises
    ------
    RunbookError
        The source is empty, so that there is no answer (``absent``).
    """
    answer = box.call_sync(name, {key: value for key, value in args.items() if value is not None})
    if not isinstance(answer, rb.Envelope):
        raise RunbookError(f"nothing found for: {answer['looked_for']}", code="absent", where=name)
    return answer
