"""Views as plain text: what a terminal, a diff, a model and a screen reader meet first.

The first line is one sentence that stands alone. Below it come the parts that plain text shows,
then one line of closing facts, then remarks. No line is wider than `COLUMNS`, nothing is drawn
with lines or colour, and the same view always gives the same bytes.
"""

from __future__ import annotations

from typing import Final

from runbook_nb._view import Card, Cell, Facts, Flow, Part, Plot, Prose, Section, Table
from runbook_nb.render import cells
from runbook_nb.render.cells import cell_text, dotted, fit, packed, pad, width, words, wrap
from runbook_nb.render.grid import GAP, OUTLINE_GAP, Grid, grid
from runbook_nb.render.shortening import DEEPEST, shortened
from runbook_nb.settings import settings

#: Width of every line.
COLUMNS: Final = 100
#: How far the content of a part, a group's rows and a step inside another are moved in.
INDENT: Final = 2
#: A name that has to be cut on the first line keeps at least so many columns.
NAME_COLUMNS: Final = 48
#: Terms wider than this stand on a line of their own, above what is said of them.
TERM_COLUMNS: Final = 34


def render_text(card: Card) -> str:
    """Draw a view as plain text.

    Parameters
    ----------
    card : Card
        The view.

    Examples
    --------
    >>> from runbook_nb._view import Card, Column, Data, Section, Table
    >>> table = Table(
    ...     columns=(Column(head="verdict"), Column(head=Data(value="age"), in_text="labelled")),
    ...     rows=(("protected", Data(value=2)), ("declined", Data(value=None))),
    ...     total=2,
    ... )
    >>> print(render_text(Card(kind="Envelope", name="backups", headline="2 rows",
    ...     sections=(Section(label="Verdicts", parts=(table,)),), closing=("checked 1",))))
    Envelope backups · 2 rows
      protected  age 2
      declined   age —
    checked 1
    """
    first, below, moved = _first_line(card)
    body = _Body(moved)
    shown = [section for section in card.sections if section.in_text]
    # A lone section needs no label: the headline says what it is.
    labelled = sum(bool(words(section.label) and section.parts) for section in shown) > 1
    for section in shown:
        body.add(section, labelled=labelled)
    lines = [first, *below, *body.finished()]
    lines += packed([*body.closing, *map(words, card.closing)], COLUMNS)
    lines += [fit(remark, COLUMNS) for remark in map(words, card.remarks) if remark]
    return "\n".join(line.rstrip() for line in lines)


def render_line(card: Card) -> str:
    """Draw the first line of a view's text, which stands alone.

    Examples
    --------
    >>> from runbook_nb._view import Badge, Card
    >>> render_line(Card(kind="Envelope", name="backups", qualifiers=("health-signal v1",),
    ...     headline="3 rows", badges=(Badge(word="declined", count=3),)))
    'Envelope backups · health-signal v1 · 3 rows (3 declined)'
    """
    return _first_line(card)[0].rstrip()


def _first_line(card: Card) -> tuple[str, list[str], list[str]]:
    """Give the first line, the whole answer where that had to be cut, and the facts moved down.

    The qualifiers give way first, then the end of a long name, then the counts.
    """
    title, answer = cells.title_of(card), cells.answer_of(card)
    line = dotted([title, *map(words, card.qualifiers), answer])
    if width(line) <= COLUMNS:
        return line, [], []
    moved = [words(fact) for fact in card.eyebrow or card.qualifiers]
    if width(line := dotted([title, answer])) > COLUMNS:
        name = words(card.name)
        spare = COLUMNS - (width(line) - width(name))
        title = cells.title_of(card, fit(name, max(spare, NAME_COLUMNS)))
        line = dotted([title, answer])
    if width(line) > COLUMNS and card.badges:
        moved[:0] = map(cells.run_text, card.badges)
        answer = cells.answer_of(card, counts=False)
        line = dotted([title, answer])
    if width(line) > COLUMNS:
        return fit(line, COLUMNS), wrap(dotted([words(card.state), answer]), COLUMNS), moved
    return line, [], moved


class _Body:
    """Collects the lines under the first one, and what joins the closing line."""

    def __init__(self, moved: list[str]) -> None:
        self.closing: list[str] = []
        self._lines: list[str] = []
        self._lead = moved  # facts waiting for the line above the next part

    def add(self, section: Section, *, labelled: bool) -> None:
        inner = 0
        if labelled and words(section.label):
            self._put_lead()
            self._lead = [words(section.label), words(section.note)]
            inner = INDENT
        for part in section.parts:
            self._draw(part, inner)

    def finished(self) -> list[str]:
        self._put_lead()
        return self._lines

    def _draw(self, part: Part, inner: int) -> None:
        if isinstance(part, Table):
            self._table(part, inner)
        elif isinstance(part, Facts):
            self._put_lead()
            self._put_facts(label_of(part), inner)
            self._put(fact_lines(part, COLUMNS - INDENT - inner), INDENT + inner)
        elif isinstance(part, Flow):
            lines, caps = flow_lines(part, COLUMNS - INDENT)
            self._join_lead(caps, inner)
            self._put(lines, INDENT)
            self.closing += map(words, part.notes)
        elif isinstance(part, Plot):
            lines, left_out = plot_lines(part, COLUMNS - INDENT)
            self._join_lead([words(part.note), left_out], inner)
            self._put(lines, INDENT)
        else:
            self._put_lead()
            self._put(prose_lines(part, COLUMNS - INDENT), INDENT)

    def _table(self, table: Table, inner: int) -> None:
        table = table.plain or table
        rows = table.rows if table.whole else table.rows[: settings.max_text_rows]
        lines, columns_left_out = table_lines(table, len(rows), COLUMNS - INDENT)
        caps = [words(table.note)] if inner else []
        caps.append(cells.cap(len(rows), cells.all_rows(table), "rows"))
        self._join_lead([*caps, columns_left_out], inner)
        self._put(lines, INDENT)
        self.closing.append(cells.more_rows(table, len(rows)))

    def _join_lead(self, facts: list[str], inner: int) -> None:
        """Put facts on the line that waits, or on one of their own."""
        if self._lead:
            self._lead += facts
            self._put_lead()
        else:
            self._put_facts(facts, inner)

    def _put_lead(self) -> None:
        self._put_facts(self._lead, 0)
        self._lead = []

    def _put_facts(self, facts: list[str], indent: int) -> None:
        self._put(packed(facts, COLUMNS - indent), indent)

    def _put(self, lines: list[str], indent: int) -> None:
        self._lines += [" " * indent + line for line in lines]


# --- parts -------------------------------------------------------------------------------------


def table_lines(table: Table, shown: int, columns: int) -> tuple[list[str], str]:
    """Set the first ``shown`` rows of a table; say which columns had no room, if any."""
    if not cells.all_rows(table):
        return wrap(words(table.empty), columns), ""
    places = _text_columns(table)
    inner = INDENT if table.groups else 0
    rows = [[_text_of(table, row, place) for place in places] for row in table.rows[:shown]]

    def lay() -> Grid:
        return grid(
            rows,
            columns - inner,
            right=[n for n, place in enumerate(places) if _stands_right(table, place)],
            first_gap=OUTLINE_GAP if table.groups else GAP,
        )

    laid, moved = lay(), dict[int, str]()
    if places and table.columns[places[-1][0]].in_text == "whole":
        moved = {n: rows[n][-1] for n in range(shown) if not laid.lines[n].endswith(rows[n][-1])}
        for n in moved:
            rows[n][-1] = ""
        laid = lay() if moved else laid
    heads = _group_lines(table, shown, columns)
    under = laid.starts[1] if laid.columns > 1 else INDENT
    lines: list[str] = []
    for n, line in enumerate(laid.lines):
        lines += heads.get(n, [])
        lines.append(" " * inner + line)
        told = [cell_text(detail.text) for detail in table.details if detail.row == n]
        for text in (*([moved[n]] if n in moved else ()), *told):
            lines += [
                " " * (inner + under) + piece for piece in wrap(text, columns - inner - under)
            ]
    return lines, cells.cap(laid.columns, len(places), "columns") if laid.lines else ""


def _text_columns(table: Table) -> list[list[int]]:
    """Give the places of the columns that stand together as one in plain text."""
    places: list[list[int]] = []
    for n, column in enumerate(table.columns):
        if column.in_text == "joined" and places:
            places[-1].append(n)
        elif column.in_text != "hidden":
            places.append([n])
    return places


def _stands_right(table: Table, place: list[int]) -> bool:
    column = table.columns[place[0]]
    return column.align == "right" and column.in_text == "bare" and len(place) == 1


def _text_of(table: Table, row: tuple[Cell, ...], place: list[int]) -> str:
    texts = [cell_text(row[n]) for n in place if n < len(row)]
    text = " ".join(text for text in texts if text)
    column = table.columns[place[0]]
    return f"{words(column.head)} {text}" if text and column.in_text == "labelled" else text


def _group_lines(table: Table, shown: int, columns: int) -> dict[int, list[str]]:
    opened = [group for group in table.groups if group.start < shown]
    laid = grid(
        [[cell_text(g.label), cells.run_text(g.total), cell_text(g.note)] for g in opened],
        columns,
        right=[1],
        first_gap=OUTLINE_GAP,
    )
    lines: dict[int, list[str]] = {}
    for group, line in zip(opened, laid.lines, strict=True):
        lines.setdefault(max(group.start, 0), []).append(line)
    return lines


def flow_lines(flow: Flow, columns: int) -> tuple[list[str], list[str]]:
    """Set an outline: names moved in by depth, and behind them cells in shared columns.

    With the lines comes what says how much of the outline they show, when that is not all.
    """
    if not flow.lines:
        return wrap(words(flow.summary) or "no steps", columns), []
    shown, folded = shortened(flow.lines)
    right = _number_columns([line.cells for line in shown])
    rows = [list(map(cell_text, line.cells)) for line in shown]
    for row, line in zip(rows, shown, strict=True):
        # Behind the counts, so that a step without one is not widening their column.
        if word := cells.state_word(line):
            row.extend([""] * (max(right, default=0) + 1 - len(row)))
            row.append(word)
    laid = grid(
        rows,
        columns,
        right=right,
        indents=[min(max(line.depth, 0), DEEPEST) * INDENT for line in shown],
        first_gap=OUTLINE_GAP,
    )
    return laid.lines, [
        cells.cap_of_steps(len(shown), len(flow.lines), "steps", folded),
        cells.cap(laid.columns, max(map(len, rows)), "columns"),
    ]


def _number_columns(rows: list[tuple[Cell, ...]]) -> list[int]:
    """Find the columns behind the first that hold numbers alone."""
    found = []
    for n in range(1, max(map(len, rows), default=0)):
        filled = [row[n] for row in rows if n < len(row) and not cells.is_blank(row[n])]
        numbers = [cells.is_number(cell) for cell in filled if not cells.is_missing(cell)]
        if numbers and all(numbers):
            found.append(n)
    return found


def plot_lines(plot: Plot, columns: int) -> tuple[list[str], str]:
    """Set counts over time as rows, the newest last; say how many are left out, if any."""
    shown = min(len(plot.places), settings.max_text_rows)
    if not shown:
        return wrap(words(plot.summary), columns), ""
    values = [[words(one.word), *map(cells.cell_text, one.values[-shown:])] for one in plot.series]
    heads = ["run", *map(words, plot.places[-shown:])]
    laid = grid([heads, *values], columns, right=range(1, shown + 1))
    return laid.lines, cells.cap(shown, len(plot.places), "runs, the last ones")


def label_of(facts: Facts) -> list[str]:
    """Say what a list of facts is, how many there are, and how many of them plain text shows."""
    shown, total = min(len(facts.items), settings.max_text_rows), cells.all_facts(facts)
    label = f"{words(facts.label)} ({total})" if words(facts.label) else ""
    if not total:
        return [label, words(facts.empty)] if label else []
    return [label, cells.cap(shown, total)]


def fact_lines(facts: Facts, columns: int) -> list[str]:
    """Set facts as terms with what is said of them, wrapped and never cut."""
    if not cells.all_facts(facts):
        return [] if words(facts.label) else wrap(words(facts.empty), columns)
    pairs = [(cell_text(f.term), cells.detail_of(f)) for f in facts.items[: settings.max_text_rows]]
    beside = max((width(term) for term, detail in pairs if detail), default=0)
    stacked = beside > TERM_COLUMNS
    indent = INDENT if stacked else beside + GAP
    lines: list[str] = []
    for term, detail in pairs:
        said = wrap(detail, columns - indent)
        if stacked or not said:
            lines += wrap(term, columns)
        else:
            lines.append(pad(term, indent) + said.pop(0))
        lines += [" " * indent + line for line in said]
    return lines


def prose_lines(prose: Prose, columns: int) -> list[str]:
    """Wrap a sentence; one that warns is marked."""
    mark = "! " if prose.tone == "warning" else ""
    lines = wrap(cell_text(prose.text), columns - len(mark))
    return [(" " * len(mark) if n else mark) + line for n, line in enumerate(lines)]
