"""`triage`: a runbook made on the spot for rows one already has.

Bridge layer. It is the long way written out: a source with its coverage, a fan-out with a decider
per row, a collecting stage, the same bridge. Its walk, ledger and envelope are those of any
runbook.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from runbook_nb._frozen import FrozenDict
from runbook_nb._sync import asks_for_loop
from runbook_nb._text import did_you_mean, listed
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.judging import VERDICT, judged_chart
from runbook_nb.chart.model import Chart
from runbook_nb.chart.validate import is_text
from runbook_nb.coverage import Items, coverage
from runbook_nb.errors import DefinitionError, RuleError
from runbook_nb.rules import RuleSet
from runbook_nb.rules.columns import Columns, as_columns
from runbook_nb.runbook.declare import runbook_as_tool
from runbook_nb.runbook.envelope import Envelope
from runbook_nb.runbook.verdicts import DEFAULT_MAX_ROWS
from runbook_nb.tools import Tool, Toolbox, define_tool

#: Name of the tool that hands over the rows.
SOURCE_TOOL: Final = "rows"


def triage(
    rows: Any,
    rules: RuleSet,
    *,
    subject: str,
    source: str,
    name: str = "triage",
    description: str | None = None,
    checked: Items = (),
    not_checked: Items = (),
    cannot_cover: Items = (),
    max_rows: int = DEFAULT_MAX_ROWS,
    max_branches: int | None = None,
    rank: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    report: Mapping[str, Any] | None = None,
    presentation: str = "prose",
    redact: Any = None,
    limits: Any = None,
    toolbox: Toolbox | None = None,
) -> Envelope:
    """Judge rows by a rule set and answer with an envelope.

    Works in a script, in a notebook cell and inside a running event loop.

    Parameters
    ----------
    rows : list of mappings, DataFrame, mapping of columns, or Arrow table
        One row per subject. Frames cannot tell a null from a NaN: any NA is null.
    rules : RuleSet
        What judges them; its branches are the verdicts.
    subject : str
        Column that names the subject.
    source : str
        What the rows are and how many, for the ledger: ``"backup inventory, 3 rows"``.
    name, description : str
        The runbook's name, as a tool may be called.
    checked, not_checked, cannot_cover : list, optional
        More of the source's ground; what cannot be covered says why.
    max_rows : int
        Verdict rows on the answer; `Envelope.to_frame` has all.
    max_branches : int, optional
        How many rows are judged; all by default.
    rank : sequence of str
        Verdict words, worst first.
    columns : sequence of str, optional
        Columns shown beside the verdict; those the rules read by default.
    report : mapping, optional
        The answer's own fields.
    presentation : {"prose", "panel"}
    redact : Redact or mapping, optional
    limits : Limits or mapping, optional
    toolbox : Toolbox, optional
        Whose store keeps the walk; one in memory by default. The runbook and its source are
        added to it, or take the place of those an earlier triage added.

    Returns
    -------
    Envelope

    Raises
    ------
    DefinitionError
        The rows are no rows, the subject is no column of them, or an option cannot be kept.

    Examples
    --------
    >>> from runbook_nb.rules import Default, Rule
    >>> posture = RuleSet("health-signal", "v1",
    ...     [Rule({"age_days": {"gt": 7}}, then="unprotected", label="older than 7 days")],
    ...     Default("protected", label="within 7 days"))
    >>> rows = [{"cluster": "a", "age_days": 2}, {"cluster": "b", "age_days": 30}]
    >>> envelope = triage(rows, posture, subject="cluster", source="inventory, 2 rows")
    >>> print(envelope)
    Envelope triage · health-signal v1 · 2 rows (1 protected, 1 unprotected)
      protected    a  age_days  2
      unprotected  b  age_days 30
    checked 2 · not checked 0 · cannot cover 0 · walk 33 rows, complete
    """
    if not isinstance(rules, RuleSet):
        raise DefinitionError(
            f"triage judges by a RuleSet, not {type(rules).__name__}",
            where="rules",
            fix='write rb.RuleSet("name", "v1", rules=[…], default=…)',
        )
    if not is_text(source):
        raise DefinitionError(
            f"source is {source!r}; it says what the rows are",
            where="source",
            fix='write source="backup inventory, 3 rows"',
        )
    if report is not None and not isinstance(report, Mapping):
        raise DefinitionError(f"report is {report!r}, not a mapping of fields", where="report")
    if not isinstance(rank, list | tuple):
        raise DefinitionError(
            f"rank is {rank!r}, not a list of verdict words",
            where="rank",
            fix="write rank=[worst, …]",
        )
    for word in rank:
        if word not in rules.branches:
            raise DefinitionError(
                f"rank names {word!r}, which is no verdict of rule set {rules.name!r}",
                where="rank",
                fix=did_you_mean(str(word), rules.branches)
                or f"its verdicts are {listed(rules.branches)}",
            )
    items = read_rows(rows)
    _check_subject(items, subject)
    shown = _shown_columns(items, columns, rules)
    ground = [source, *([checked] if isinstance(checked, str) else checked or ())]
    source_name = SOURCE_TOOL if name != SOURCE_TOOL else f"{SOURCE_TOOL}_source"
    source_tool = define_tool(
        name=source_name,
        description=f"Hands over the rows: {source}",
        execute=lambda args, ctx: coverage(
            {"rows": items},
            checked=ground,
            not_checked=not_checked,
            cannot_cover=cannot_cover,
        ),
        carried=FrozenDict(made_by="triage"),
    )
    judged_chart(rules)  # refuses verdicts that can name no branch, before anything is declared

    def procedure(tools: Any) -> Chart:
        @asks_for_loop
        async def load(scope: Any) -> None:
            answer = await tools.call(source_name, {})
            scope["rows"] = answer["result"]["rows"]

        def collect(scope: Any) -> None:
            scope["verdicts"] = scope["results"].verdict_rows(*shown)
            if report:
                scope["report"] = dict(report)

        return (
            flow_chart(name, load, id="rows", stage_name="Take the rows")
            .add_judge_each(
                "Judge each row",
                id="each",
                items=lambda scope: scope["rows"],
                rules=rules,
                max_branches=max_branches if max_branches is not None else max(len(items), 1),
                into="results",
                subject=subject,
            )
            .add_function("Collect", collect, id="collect")
            .build()
        )

    runbook = runbook_as_tool(
        name=name,
        description=description or f"Judges {source} by {rules.name} {rules.version}.",
        procedure=procedure,
        result_kind="verdict/triage",
        rules=rules,
        verdicts={"decider": "Verdict", "max_rows": max_rows, "rank": list(rank)},
        presentation=presentation,
        redact=redact,
        limits=limits,
        composed_of=[source_name],
    )
    if toolbox is None:
        box = Toolbox([source_tool, runbook])
    else:
        box = toolbox
        for tool in (source_tool, runbook):
            _refuse_taken(box, tool)
            box.add(tool)
    answer = box.call_sync(name)
    if not isinstance(answer, Envelope):  # only an absence comes back unwrapped, and rows are rows
        raise DefinitionError(f"triage gave {type(answer).__name__}, not an envelope")
    return answer


def _refuse_taken(box: Toolbox, tool: Tool) -> None:
    """Refuse to put a tool in the place of one that `triage` did not make."""
    if tool.name not in box:
        return
    held = box[tool.name].carried
    made = (
        held.get("made_by") == "triage"
        or getattr(held.get("runbook"), "result_kind", None) == "verdict/triage"
    )
    if not made:
        raise DefinitionError(
            f"the toolbox has a tool {tool.name!r} of its own",
            where="toolbox",
            fix="give triage another name=, or a toolbox without that tool",
        )


def read_rows(rows: Any) -> Columns:
    """Read rows given as a list of mappings, a DataFrame, columns by name or an Arrow table.

    Raises
    ------
    DefinitionError
        Anything else; a generator in particular.

    Examples
    --------
    >>> list(read_rows(({"host": "a"},)))
    [{'host': 'a'}]
    """
    if isinstance(rows, Sequence) and not isinstance(rows, str | bytes | list | tuple | Columns):
        rows = list(rows)
    try:
        return as_columns(rows)
    except RuleError as error:
        where = error.where or ""
        raise DefinitionError(
            error.message, where=where.replace("frame", "rows", 1) or "rows", fix=error.fix
        ) from None


def _shown_columns(rows: Columns, columns: Sequence[str] | None, rules: RuleSet) -> list[str]:
    known = rows.names
    if columns is None:
        return [column for column in columns_read(rules, known) if column != VERDICT]
    if isinstance(columns, str):
        raise DefinitionError(
            f"columns is {columns!r}, not a list of names", where="columns", fix="write [name]"
        )
    for column in columns:
        if column == VERDICT:
            raise DefinitionError(
                f"a column called {VERDICT!r} cannot be shown beside the verdict",
                where="columns",
                fix="rename it",
            )
        if known and column not in known:
            raise DefinitionError(
                f"no row has a column {column!r}",
                where="columns",
                fix=did_you_mean(str(column), known) or f"the columns are {listed(known)}",
            )
    return list(columns)


def _check_subject(rows: Columns, subject: str) -> None:
    if not is_text(subject):
        raise DefinitionError(f"subject is {subject!r}, not the name of a column", where="subject")
    if subject == VERDICT:
        raise DefinitionError(
            f"the subject cannot be the column {VERDICT!r}, which holds the answer",
            where="subject",
            fix="rename the column",
        )
    if not len(rows) or all(subject in layout for layout in rows.layouts):
        return
    for place, row in enumerate(rows):
        if subject not in row:
            raise DefinitionError(
                f"row {place} has no column {subject!r}, which should name the subject",
                where="subject",
                fix=index_fix(rows, subject)
                or did_you_mean(subject, row)
                or f"its columns are {listed(row)}",
            )


def index_fix(rows: Columns, name: str) -> str | None:
    """Say how the index of a frame becomes a column, where it has the name asked for.

    Examples
    --------
    >>> from pandas import DataFrame
    >>> from runbook_nb.rules.columns import as_columns
    >>> frame = DataFrame({"age": [9]}, index=["a"]).rename_axis("host")
    >>> index_fix(as_columns(frame), "host")
    "'host' is the frame's index, not a column: give frame.reset_index()"
    """
    if name not in getattr(rows.labels, "names", ()):
        return None
    return f"{name!r} is the frame's index, not a column: give frame.reset_index()"


def columns_read(rules: RuleSet, known: Collection[str] = ()) -> list[str]:
    """Name the columns the filters of a rule set read, in order of first reading.

    A key that is no column as it stands is a path, and its first part the column.

    Examples
    --------
    >>> from runbook_nb.rules import Rule
    >>> rules = RuleSet("r", "1", [Rule({"a": {"gt": 1}}, "x"), Rule({"b.c": {"eq": 2}}, "y")])
    >>> columns_read(rules), columns_read(rules, {"a", "b.c"})
    (['a', 'b'], ['a', 'b.c'])
    """
    keys: dict[str, None] = {}
    for when in [o.where for o in rules.outside] + [rule.when for rule in rules.rules]:
        if isinstance(when, Mapping):
            keys.update(dict.fromkeys(when))
    return list(dict.fromkeys(k if k in known else k.partition(".")[0] for k in keys))
