"""Views as Markdown, for a ticket or a chat message.

Every section is shown, those that plain text leaves out too. Sentences are escaped text. Names
that came from outside stand in code spans, and so does whatever a host might turn into a link or
a mention: nothing in them can become anything else, and all of it reads back as it was. The
source stays readable as it is, for places that show Markdown undrawn.
"""

from __future__ import annotations

import re
from typing import Any, Final

from runbook_nb._text import counted
from runbook_nb._view import Card, Cell, Data, Facts, Flow, Plot, Prose, Run, Section, Table
from runbook_nb.render import cells
from runbook_nb.render.cells import cell_text, dotted, run_text
from runbook_nb.render.text import COLUMNS, flow_lines, plot_lines
from runbook_nb.settings import settings

# Marks that mean something wherever they stand. An underscore between letters or digits does not,
# and names are full of them.
_MARKS: Final = re.compile(r"[\\`*\[\]|~$]|<(?=[A-Za-z/!?])|(?<![^\W_])_|_(?![^\W_])|&(?=[#\w])")
_LINKS: Final = re.compile(r":(?=//)|(?<=www)\.", re.IGNORECASE)
# Marks that begin a heading, a list, a quote or a rule, at the start of a block alone.
_START: Final = re.compile(r"^(\d*)(?=[#>+=.)-])")
_EDGES: Final = re.compile(r"^\s+|\s+$")
_BREAKS: Final = re.compile(r"\r\n|\r|\n")
_TICKS: Final = re.compile(r"`+")
#: What hosts make links and mentions of on their own, whatever is escaped.
_ADDRESSED: Final = re.compile(r"[@#!]\w|:/|www\.", re.IGNORECASE)


def render_markdown(card: Card) -> str:
    r"""Draw a view as Markdown.

    Parameters
    ----------
    card : Card
        The view.

    Examples
    --------
    >>> from runbook_nb._view import Card, Column, Data, Section, Table
    >>> table = Table(
    ...     columns=(Column(head="verdict"), Column(head=Data(value="age"), align="right")),
    ...     rows=(("protected", Data(value=2)), ("declined", Data(value=None))),
    ...     total=2,
    ... )
    >>> print(render_markdown(Card(kind="Envelope", name="nightly*", headline="2 rows",
    ...     sections=(Section(label="Verdicts", parts=(table,)),))))
    **Envelope nightly\* · 2 rows**
    <BLANKLINE>
    **Verdicts** · — means not recorded
    <BLANKLINE>
    | verdict | `age` |
    | --- | ---: |
    | protected | 2 |
    | declined | — |
    """
    head = _plain(
        dotted([cells.title_of(card), *map(cells.words, card.qualifiers), cells.answer_of(card)])
    )
    blocks = [_bold(head)]
    for section in card.sections:
        blocks += _section(section)
    blocks.append(_plain(dotted(map(cells.words, card.closing))))
    blocks += [_plain(cells.words(remark)) for remark in card.remarks]
    return "\n\n".join(block for block in blocks if block)


# --- sections ----------------------------------------------------------------------------------


def _section(section: Section) -> list[str]:
    head = [_bold(_plain(cells.words(section.label))), _plain(cells.words(section.note))]
    blocks: list[str] = []
    for part in section.parts:
        if isinstance(part, Table):
            blocks += [dotted([*head, *_caption(part)]), *_table(part)]
        elif isinstance(part, Flow):
            lines, caps = flow_lines(part, COLUMNS)
            blocks += [dotted([*head, *caps]), *_flow(part, "\n".join(lines))]
        elif isinstance(part, Plot):
            lines, left_out = plot_lines(part, COLUMNS)
            head += [_plain(cells.words(part.note)), left_out]
            blocks += [dotted(head), *_outlined(part.summary, "\n".join(lines))]
        elif isinstance(part, Facts):
            blocks += [dotted(head), *_facts(part)]
        else:
            blocks += [dotted(head), _prose(part)]
        head = []
    return [*blocks, dotted(head)]


def _caption(table: Table) -> list[str]:
    """Say what qualifies a table: how much of it is shown, in which order, what a dash means."""
    rows, total = table.rows[: settings.max_table_rows], cells.all_rows(table)
    dashes = any(cells.is_missing(cell) for row in rows for cell in row)
    return [
        cells.cap(len(rows), total),
        _plain(cells.words(table.note)),
        cells.MISSING_MEANS if dashes else "",
    ]


def _table(table: Table) -> list[str]:
    if not cells.all_rows(table):
        return [_plain(cells.words(table.empty))]
    shown = min(len(table.rows), settings.max_table_rows)
    groups = [group for group in table.groups if group.start < shown]
    # A pipe table has no row across all columns: each group is a table of its own.
    blocks = _rows(table, 0, groups[0].start if groups else shown)
    ends = [*(group.start for group in groups[1:]), shown]
    for group, end in zip(groups, ends, strict=False):
        note = _cell(group.note, table=False)
        head = [_bold(_cell(group.label, table=False)), counted(group.total, "row"), note]
        blocks += [dotted(head), *_rows(table, group.start, end)]
    return [*blocks, _plain(cells.more_rows(table, shown))]


def _rows(table: Table, start: int, end: int) -> list[str]:
    rows = range(max(start, 0), end)
    if not table.columns or not rows:
        return []
    marks = ["---:" if column.align == "right" else "---" for column in table.columns]
    lines = [[_cell(column.head) for column in table.columns], marks]
    for row in (table.rows[n] for n in rows):
        lines.append([_cell(row[n]) if n < len(row) else "" for n in range(len(marks))])
    details = [
        f"- {_at_start(_cell(cell, table=False))}: {_cell(detail.text, table=False)}"
        for detail in table.details
        if detail.row in rows
        for cell in table.rows[detail.row][:1]
    ]
    return ["\n".join(f"| {' | '.join(line)} |" for line in lines), "\n".join(details)]


def _facts(facts: Facts) -> list[str]:
    shown = facts.items[: settings.max_table_rows]
    total = cells.all_facts(facts)
    label = cells.words(facts.label)
    head = dotted(
        [_bold(_plain(f"{label} ({total})")) if label else "", cells.cap(len(shown), total)]
    )
    if not total:
        return [dotted([head, _plain(cells.words(facts.empty))])]
    items = []
    for fact in shown:
        term, said = _cell(fact.term, table=False), _edged(cells.detail_of(fact, _outside_table))
        items.append(f"{term} — {said}" if fact.detail is not None else f"{term} {said}".rstrip())
    return [head, "\n".join(f"- {_at_start(item)}" for item in items)]


def _flow(flow: Flow, outline: str) -> list[str]:
    notes = _plain(dotted(map(cells.words, flow.notes)))
    return [*_outlined(flow.summary if flow.lines else "", outline), notes]


def _outlined(summary: str, outline: str) -> list[str]:
    ticks = _more_ticks(outline, 3)
    return [_plain(cells.words(summary)), f"{ticks}text\n{outline}\n{ticks}"]


def _prose(prose: Prose) -> str:
    text = _at_start(_cell(prose.text, table=False))
    return f"▲ {text}" if prose.tone == "warning" and text else text


# --- runs --------------------------------------------------------------------------------------


def _cell(cell: Cell, *, table: bool = True) -> str:
    return _edged(cell_text(cell, _in_table if table else _outside_table))


def _in_table(run: Run) -> str:
    return _run(run, in_table=True)


def _outside_table(run: Run) -> str:
    return _run(run, in_table=False)


def _run(run: Run, *, in_table: bool) -> str:
    if not isinstance(run, Data):
        return _escaped(run_text(_unbroken(run)))
    if cells.is_missing(run) or cells.is_number(run) or type(run.value) is bool:
        return _escaped(run_text(run))
    text = run_text(Data(value=_unbroken(run.value)))
    unit = "" if run.unit is None else f" {_escaped(run_text(_unbroken(run.unit)))}"
    sentence = " " in text.strip() and not _ADDRESSED.search(text)
    # Readers disagree on what a backslash before a pipe means inside a code span of a table.
    if sentence or not text.strip() or (in_table and "\\|" in text):
        return _escaped(text) + unit
    return (_code(text).replace("|", "\\|") if in_table else _code(text)) + unit


def _unbroken(value: Any) -> Any:
    return _BREAKS.sub(" ", str.__str__(value)) if issubclass(type(value), str) else value


def _code(text: str) -> str:
    ticks = _more_ticks(text, 1)
    # One space is taken off each side where both have one; a tick must not touch the fence.
    spaced = text.startswith("`") or text.endswith("`") or (text[0] == " " == text[-1])
    return f"{ticks} {text} {ticks}" if spaced else f"{ticks}{text}{ticks}"


def _more_ticks(text: str, least: int) -> str:
    """Give a run of backticks longer than any in the text."""
    return "`" * max(least, 1 + max(map(len, _TICKS.findall(text)), default=0))


def _escaped(text: str) -> str:
    return _LINKS.sub(r"\\\g<0>", _MARKS.sub(r"\\\g<0>", text))


def _edged(text: str) -> str:
    """Keep the space at the edges of a cell or line, which a reader would take off."""
    return _EDGES.sub(lambda edge: "".join(f"&#{ord(char)};" for char in edge[0]), text)


def _at_start(text: str) -> str:
    """Escape what would open a block at the start of a line."""
    return _START.sub(r"\1\\", text)


def _plain(text: str) -> str:
    """Escape a text that stands in a line of its own."""
    return _at_start(_edged(_escaped(text)))


def _bold(text: str) -> str:
    return f"**{text}**" if text else ""
