"""Views made ready for the HTML templates: what each run is, what opens, what folds, what is cut.

Every text in what is made here is plain ``str``; the templates escape it. The laws kept: what came
from outside is set apart, a cut is stated above what it cuts, what was not checked stays open.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from runbook_nb._view import (
    Badge,
    Break,
    Card,
    Cell,
    Data,
    Fact,
    Facts,
    Flow,
    FlowLine,
    Group,
    Prose,
    Run,
    Section,
    Table,
)
from runbook_nb.render import cells, theme
from runbook_nb.render.cells import dotted, run_text, runs_of, words
from runbook_nb.render.shortening import DEEPEST, shortened
from runbook_nb.settings import settings

#: Rows that stand open; those behind them fold into one line that counts their outcomes.
OPEN_ROWS: Final = 10
#: A list of facts or values up to so long stands open; one of a ledger's, other than the gaps.
OPEN_FACTS: Final = 6
OPEN_ITEMS: Final = 3
#: Pixels that the names in a list of facts take at most.
WIDEST_TERM: Final = 260
#: A value without a gap that is no longer stands on one line: a date, a number, a name.
ONE_LINE: Final = 20
#: So does what is said of a rule, up to so many characters: ``not needed``.
ONE_LINE_SAID: Final = 12
#: From so many subjects on, the outcomes are also drawn as a bar.
BAR_FROM: Final = 10
#: Characters of a cut text that its tooltip still gives.
TITLE_LENGTH: Final = 1000

#: A no-break space in a text of one width, to set numbers right under each other.
_FILL: Final = "\u00a0"
#: Between the thousands of our own counts.
_THIN: Final = "\u202f"
#: Signs that make a text with spaces a condition rather than a sentence.
_CONDITION: Final = re.compile(r"(^|\s)(=|!=|[<>]=?|[\[{\"])")
_ID_SIGNS: Final = re.compile(r"[-/:.]")
_ARROWS: Final = {"->": "→", "<-": "←"}


@dataclass(slots=True, eq=False, repr=False)
class Piece:
    """One run, ready to be drawn.

    ``kind`` is ``ours``, ``data``, ``prose`` (a sentence from outside), ``strong``, ``dim`` or
    ``badge``, ``name`` (data a row is about) or ``break``; ``space`` says whether one goes before
    it, ``role`` whose sign does.
    """

    kind: str
    text: str
    space: bool = False
    title: str = ""
    unit: str = ""
    role: str = ""
    auto: bool = False


# --- runs --------------------------------------------------------------------------------------


def number(value: int) -> str:
    """Write one of our own counts, with thin spaces between its thousands.

    Examples
    --------
    >>> number(303), number(1215).replace("\u202f", " ")
    ('303', '1 215')
    """
    text = run_text(int(value))
    return f"{int(value):,}".replace(",", _THIN) if text.lstrip("-").isdigit() else text


def pieces(cell: Cell, *, code: bool = False) -> list[Piece]:
    """Take a cell apart into pieces; ``code`` sets all data of it in the type of data."""
    runs = runs_of(cell)
    return _pieces(runs, map(run_text, runs), code=code)


def _pieces(runs: Iterable[Run], texts: Iterable[str], *, code: bool) -> list[Piece]:
    """Make pieces of runs that are written already."""
    made: list[Piece] = []
    before: Any = None
    for run, text in zip(runs, texts, strict=True):
        space = bool(made) and cells.spaced(before, run)
        piece = _piece(run, text, space=space, code=code)
        if piece.text:
            made.append(piece)
            before = run
    return made


def _piece(run: Run, text: str, *, space: bool, code: bool) -> Piece:
    if isinstance(run, Badge):
        if run.count is not None:
            text = run_text(run.word)
            if type(run.count) is int:
                text = f"{number(run.count)} {text}"
        return Piece("badge", text, space, "", "", run.role)
    if isinstance(run, Data):
        return _data(run, text, space=space, code=code)
    if isinstance(run, Break):
        return Piece("break", text)
    if type(run) is int:
        return Piece("ours", number(run), space)
    return Piece("ours", _ARROWS.get(text, text), space)


def _data(data: Data, text: str, *, space: bool, code: bool) -> Piece:
    if cells.is_missing(data):
        return Piece("ours", text, space)
    bare = data
    if data.unit is not None:
        bare = Data(value=data.value)
        text = run_text(bare)
    whole = text
    if text.endswith("…") or len(text) > TITLE_LENGTH:  # it may have been cut
        whole = run_text(bare, TITLE_LENGTH)
    kind = "data"
    if data.tone in ("strong", "dim", "name"):
        kind = data.tone
    elif (
        data.tone == "plain"
        and not code
        and not cells.is_number(data)
        and " " in text
        and not _CONDITION.search(text)
    ):
        kind = "prose"
    unit = "" if data.unit is None else run_text(data.unit)
    title = whole if whole != text else ""
    return Piece(kind, text, space, title, unit, data.sign or "", not text.isascii())


def unbroken(made: Iterable[Piece]) -> list[tuple[str, bool]]:
    """Split our words at spaces and tell which of them, being names, must not be broken.

    Examples
    --------
    >>> unbroken(pieces("past the cap: ap-south-1/prod/audit-301"))
    [('past the cap: ', False), ('ap-south-1/prod/audit-301', True)]
    """
    out: list[tuple[str, bool]] = []
    for piece in made:
        text = (" " if piece.space else "") + piece.text + (f" {piece.unit}" if piece.unit else "")
        for word in re.split(r"(?<= )", text):
            core = word.strip(" ,;()'\"")
            kept = 12 <= len(core) <= 46 and bool(_ID_SIGNS.search(core[1:-1]))
            bare = word.rstrip(" ") if kept else ""
            for part, whole in ((bare, True), (word[len(bare) :], False)):
                if part and not whole and out and not out[-1][1]:
                    out[-1] = (out[-1][0] + part, False)
                elif part:
                    out.append((part, whole))
    return out


# --- tables ------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False, repr=False)
class Box:
    """A cell: its pieces, whether it is a heading or set right, and whether it may be broken."""

    made: list[Piece]
    right: bool = False
    head: bool = False
    tight: bool = False
    weight: int = 400
    open: bool = False


@dataclass(slots=True, eq=False, repr=False)
class Line:
    """One row of a table: a group's heading, or cells with what stands under them."""

    boxes: list[Box] = field(default_factory=list)
    under: list[list[Piece]] = field(default_factory=list)
    group: list[Piece] | None = None
    note: str = ""
    note_made: list[Piece] = field(default_factory=list)
    inner: bool = False
    strong: bool = False
    last: bool = False


@dataclass(slots=True, eq=False, repr=False)
class Rows:
    """A table's rows that stand together, in bodies that a host may stripe."""

    bodies: list[list[Line]]
    summary: str = ""
    counts: str = ""


def table_parts(table: Table, note: str = "") -> dict[str, Any]:
    """Make a table ready: heads, rows that stand open, rows that fold, and what is said of it.

    ``note`` is what its section says of it already.
    """
    total = cells.all_rows(table)
    rows = table.rows if table.whole else table.rows[: settings.max_table_rows]
    groups = [group for group in table.groups if group.start < len(rows)]
    width = len(table.columns)
    heads = [Box(pieces(c.head), right=c.align == "right") for c in table.columns]
    names = _naming_column(table, rows)
    made = [_column_cells(table, rows, n, names=n == names) for n in range(width)]
    under: dict[int, list[list[Piece]]] = {}
    for detail in table.details:
        under.setdefault(detail.row, []).append(pieces(detail.text))
    lines = [
        _row(table, place, [column[place] for column, *_ in made], names, under.get(place, []))
        for place in range(len(rows))
    ]
    cut = len(rows) if table.whole or len(rows) <= OPEN_ROWS + 1 else OPEN_ROWS
    focus = OPEN_ROWS // 2 if table.focus is None else table.focus
    first = min(max(focus - OPEN_ROWS // 2, 0), len(rows) - cut)
    shown = [Rows(_bodies(table, lines, groups, first, first + cut))]
    for start, end in ((0, first), (first + cut, len(rows))):
        if start < end:
            folded = _bodies(table, lines, groups, start, end)
            shown.append(Rows(folded, f"Rows {start + 1} to {end}", _outcomes(table, start, end)))
    return {
        "heads": heads,
        "widths": _widths(table, [wide for _, wide, _ in made]) if cut < len(rows) else [],
        "rows": shown,
        "empty": words(table.empty) if not total else "",
        "shown": bool(rows and width),
        "caption": table_note(table, rows, note, dashes=any(dash for *_, dash in made)),
        "more": total - len(rows),
        "total": number(total),
        "rest": words(table.rest),
    }


def table_note(table: Table, rows: Sequence[tuple[Cell, ...]], note: str, *, dashes: bool) -> str:
    """Say what qualifies a table: how much of it is shown, its order, what a dash means."""
    count, shown, total = "", len(rows), cells.all_rows(table)
    if shown < total:
        count = f"{number(shown)} of {number(total)} shown"
    elif shown > 1 and table.rest and not table.whole and any(_is_badge(r[0]) for r in rows if r):
        count = f"all {number(total)} rows shown"
    return dotted([count, note, words(table.note), cells.MISSING_MEANS if dashes else ""])


def _is_badge(cell: Cell) -> bool:
    return any(isinstance(run, Badge) for run in runs_of(cell))


def _naming_column(table: Table, rows: Sequence[tuple[Cell, ...]]) -> int:
    """Find the column whose cells name the rows: the first of words that are no outcomes."""
    if named := [n for n, column in enumerate(table.columns) if column.names]:
        return named[0]
    for n, column in enumerate(table.columns):
        held = [row[n] for row in rows if n < len(row)]
        if column.align == "left" and not any(map(_is_badge, held)):
            return n
    return 0


def _column_cells(
    table: Table, rows: Sequence[tuple[Cell, ...]], n: int, *, names: bool
) -> tuple[list[list[Piece]], int, bool]:
    """Make a column's cells, like ones once; say how wide the widest is, and if one is a dash."""
    column, most = table.columns[n], settings.max_cell
    held: list[Cell] = [row[n] if n < len(row) else "" for row in rows]
    distinct = {id(cell): cell for cell in held}
    runs = list(map(runs_of, distinct.values()))
    written = [[run_text(run, most) for run in some] for some in runs]
    longest = max(map(cells.width, map(cells.joined, runs, written)), default=0)
    dash = any(cells.is_missing(run) for cell in runs for run in cell)
    if column.equation:
        made = _equations(list(distinct.values()), written)
    else:
        code = names or column.align == "right"
        made = [_pieces(*one, code=code) for one in zip(runs, written, strict=True)]
    found = dict(zip(distinct, made, strict=True))
    return [found[id(cell)] for cell in held], longest, dash


def _equations(held: list[Cell], written: list[list[str]]) -> list[list[Piece]]:
    """Set the actuals of one key right under each other, where they are numbers."""
    widest: dict[str, int] = {}
    numbers = list(map(_has_number, held))
    for key, actual, *_ in (texts for found, texts in zip(numbers, written, strict=True) if found):
        widest[key] = max(widest.get(key, 0), len(actual))
    made: list[list[Piece]] = []
    for cell, number_in, texts in zip(held, numbers, written, strict=True):
        runs, kind = runs_of(cell), "data" if isinstance(cell, tuple) else "quiet"
        text = "" if kind == "quiet" and not isinstance(cell, str) else cells.joined(runs, texts)
        if number_in:
            fill = _FILL * (widest[texts[0]] - len(texts[1]))
            text = f"{texts[0]} {fill}{texts[1]} {cells.joined(runs[2:], texts[2:])}"
        made.append([Piece(kind, text)] if text else _pieces(runs, texts, code=False))
    return made


def _has_number(cell: Cell) -> bool:
    """Whether a cell is an equation whose actual is a number."""
    key, actual, *_ = cell if isinstance(cell, tuple) and len(cell) > 3 else ("", "")
    return isinstance(key, Data) and cells.is_number(actual)


def _row(
    table: Table, place: int, made: list[list[Piece]], names: int, under: list[list[Piece]]
) -> Line:
    strong = place in table.strong_rows
    weight = 600 if strong or not table.strong_rows else 400
    boxes = []
    for n, (cell, column) in enumerate(zip(made, table.columns, strict=True)):
        tight = column.equation or _is_tight(cell)
        boxes.append(Box(cell, column.align == "right", n == names, tight, weight, column.names))
    return Line(boxes, under, strong=strong, inner=bool(table.groups))


def _is_tight(cell: list[Piece]) -> bool:
    """Whether a cell must be kept from breaking: it holds an outcome, or one short value.

    A number or a plain word has no place to break at, so nothing need be said of it.
    """
    for piece in cell:
        if piece.kind == "badge":
            tile = piece.role in theme.FILLS or piece.role in theme.OUTLINES
            return tile or len(piece.text) <= ONE_LINE_SAID
    text = cell[0].text if len(cell) == 1 else " "
    whole = text.isascii() and text.replace(".", "").replace("_", "").isalnum()
    return len(text) <= ONE_LINE and " " not in text and not whole


def _bodies(
    table: Table, lines: list[Line], groups: list[Group], start: int, end: int
) -> list[list[Line]]:
    """Put lines into bodies: one per group, one per row where rows have lines under them."""
    bodies: list[list[Line]] = []
    opening = {max(group.start, 0): group for group in groups}
    running = [group for group in groups if group.start < start]
    if running and start not in opening and start < end:
        bodies.append([_heading(running[-1], again=True)])
    apart = bool(table.details)
    for place in range(start, end):
        if place in opening:
            bodies.append([_heading(opening[place])])
        if apart or not bodies:
            bodies.append([])
        bodies[-1].append(lines[place])
    if bodies and bodies[-1]:
        bodies[-1][-1] = replace(bodies[-1][-1], last=True)
    return bodies


def _heading(group: Group, *, again: bool = False) -> Line:
    made = pieces(group.label)
    said = "continued" if again else number(group.total)
    return Line(group=made, note=said, note_made=pieces(group.note))


def _outcomes(table: Table, start: int, end: int) -> str:
    """Count the outcomes in rows that are folded away: ``11 declined, 29 protected``."""
    at = int(bool(table.columns) and table.columns[0].head == "")
    counts = Counter(
        run_text(run.word)
        for row in table.rows[start:end]
        for run in runs_of(row[at] if len(row) > at else "")
        if isinstance(run, Badge)
    )
    return ", ".join(f"{number(n)} {word}" for word, n in counts.items())


def _widths(table: Table, longest: Sequence[int]) -> list[int]:
    """Share a table's width among its columns, so that its folded rows stand under the open."""
    both = zip(longest, (cells.width(words(one.head)) for one in table.columns), strict=True)
    wide = [min(max(cell, head, 3), 46) + 4 for cell, head in both]
    whole = sum(wide) or 1
    return [round(100 * one / whole) for one in wide]


# --- facts, prose, steps -----------------------------------------------------------------------


def facts_parts(facts: Facts, *, labelled: bool) -> dict[str, Any]:
    """Make a list of facts ready: as a ledger's list on its line, or as terms and what is said."""
    total = cells.all_facts(facts)
    items = facts.items[: settings.max_table_rows]
    rail = facts.style if facts.style in theme.LEDGER else ""
    opened = OPEN_ITEMS if rail else OPEN_FACTS
    terms = [cells.width(cells.cell_text(fact.term)) for fact in items]
    wide = max(terms, default=0) * 7 + 12 + (26 if any(_is_badge(f.term) for f in items) else 0)
    width = min(max(wide, 132), WIDEST_TERM)
    # The type of a host may be wider than was reckoned with: a short name is then given its room
    # rather than broken at its hyphen, while long ones wrap at the widest a column may be.
    tight = wide <= WIDEST_TERM
    return {
        "rail": rail,
        "sign": theme.LEDGER[rail][0] if rail else "",
        "label": words(facts.label) if rail or not labelled or total > opened else "",
        "count": number(total),
        "cap": cells.cap(len(items), total),
        "open": facts.style == "not_checked" or total <= opened,
        "fold": bool(rail) or total > opened,
        "empty": words(facts.empty) if not total else "",
        "column": f"minmax({width}px,max-content)" if tight else f"{width}px",
        "place": "term_tight" if tight else "term",
        "items": [_fact(fact, ledger=bool(rail)) for fact in items],
    }


def _fact(fact: Fact, *, ledger: bool) -> dict[str, Any]:
    term, said = pieces(fact.term), [] if fact.detail is None else pieces(fact.detail)
    return {
        "term": term,
        "term_words": unbroken(term) if ledger else [],
        "said": said,
        "said_words": unbroken(said) if ledger else [],
        "badges": [_piece(one, run_text(one), space=True, code=False) for one in fact.badges],
    }


@dataclass(slots=True, eq=False, repr=False)
class Step:
    """One step of an outline with those inside it."""

    name: list[Piece]
    cells: list[list[Piece]]
    state: str
    role: str
    branch: bool
    beside: bool = False
    inner: list[Step] = field(default_factory=list)

    @property
    def listed(self) -> str:
        """Say what list it stands in: of ``branches``, of steps side by side, or counted."""
        return "branches" if self.branch else "sides" if self.beside else "steps"

    @property
    def runs(self) -> Iterator[tuple[str, int, list[Step]]]:
        """Give the steps inside, those that are counted apart from those that are not."""
        return grouped(self.inner)


def grouped(steps: list[Step]) -> Iterator[tuple[str, int, list[Step]]]:
    """Yield runs of like steps: what list they stand in, the number of the first, the steps."""
    counted, start = 1, 0
    for place in range(1, len(steps) + 1):
        if place == len(steps) or steps[place].listed != steps[start].listed:
            run = steps[start:place]
            yield run[0].listed, counted, run
            counted += len(run) if run[0].listed == "steps" else 0
            start = place


def flow_parts(flow: Flow, drawing: Any, *, main: bool) -> dict[str, Any]:
    """Make an outline ready: its picture when there is one, then the same steps as a list."""
    shown, folded = shortened(flow.lines)
    declared = bool(shown) and all(line.state == "declared" for line in shown)
    branches = any(_is_badge(line.cells[0]) for line in flow.lines if line.cells)
    branches = branches and bool(getattr(drawing, "verdicts", True))
    summary = words(flow.summary)
    picture = picture_parts(drawing, summary or "what ran")
    return {
        "picture": picture,
        "key": picture is not None and main and branches and not declared,
        "drawn": dotted(["" if picture else summary, words(drawing.note)]) if drawing else "",
        "label": "Stages as a list" if declared else "Walk as a list",
        "count": f"{number(len(flow.lines))} {'line' if len(flow.lines) == 1 else 'lines'}",
        # Where a picture was asked for, its own text says it, or the caption in its place.
        "summary": "" if drawing else summary,
        "cap": cells.cap_of_steps(len(shown), len(flow.lines), "steps shown", folded),
        "open": main,
        "tree": list(grouped(_tree(shown))),
        "notes": [note for note in map(words, flow.notes) if note],
    }


def picture_parts(drawing: Any, otherwise: str) -> dict[str, Any] | None:
    """Make a picture ready, if there is one, with its sentence or another."""
    if drawing is None or not getattr(drawing, "uri", None):
        return None
    return {
        "uri": _data_uri(drawing.uri),
        "alt": words(drawing.alt) or otherwise,
        "width": max(int(drawing.width), 1),
        "height": max(int(drawing.height), 1),
    }


def _data_uri(uri: Any) -> str:
    text = str(uri)
    if not re.fullmatch(r"data:image/svg\+xml;base64,[A-Za-z0-9+/=]+", text):
        raise ValueError("a picture is carried as base64 of an SVG alone")
    return text


def _tree(lines: Sequence[FlowLine]) -> list[Step]:
    roots: list[Step] = []
    above: list[tuple[int, Step]] = []
    for line in lines:
        depth = min(max(line.depth, 0), DEEPEST)
        name = line.cells[0] if line.cells else ""
        badge = next((run for run in runs_of(name) if isinstance(run, Badge)), None)
        step = Step(
            name=[replace(p, kind="prose") if p.kind == "data" else p for p in pieces(name)],
            cells=[made for cell in line.cells[1:] if (made := pieces(cell))],
            state=cells.state_word(line),
            role=line.state,
            branch=badge is not None or cells.is_blank(name),
            beside=line.beside,
        )
        while above and above[-1][0] >= depth:
            above.pop()
        (above[-1][1].inner if above else roots).append(step)
        above.append((depth, step))
    return roots


def prose_parts(prose: Prose) -> dict[str, Any]:
    """Make a sentence ready."""
    return {"made": pieces(prose.text), "tone": prose.tone}


# --- the card ----------------------------------------------------------------------------------


def bar(card: Card) -> list[tuple[str, float]]:
    """Share the bar among the counted outcomes; empty when there is too little to share."""
    counts = [(b.role, b.count) for b in card.badges if type(b.count) is int and b.count > 0]
    whole = sum(count for _, count in counts)
    judged = any(role in theme.TEXT_LIGHT for role, _ in counts)
    if whole < BAR_FROM or len(counts) < 2 or not judged:
        return []
    return [(role, 100 * count / whole) for role, count in counts]


def eyebrow(card: Card) -> list[list[Piece]]:
    """Say what the card is, what it is called and under which rules, each as its own pieces."""
    kind = words(card.full_kind or card.kind)
    if not cells.is_blank(card.heading) and words(card.state):
        # The heading says it all; here its first word tells at a glance what became of it.
        kind = f"{kind}, {re.split('[ :,]', words(card.state))[0]}"
    made = [pieces(kind)]
    named = {run_text(run) for run in runs_of(card.heading) if isinstance(run, Data)}
    for fact in card.eyebrow[:1]:  # a name with what belongs to it, such as its version
        named.update(run_text(run) for run in runs_of(fact)[:1] if isinstance(run, Data))
    if words(card.name) and words(card.name) not in named:
        made.append([Piece("data", words(card.name))])
    made += [pieces(fact) for fact in card.eyebrow or card.qualifiers]
    return [one for one in made if one]


def heading(card: Card) -> list[Piece]:
    """Say the answer, without the counts that stand beside it as badges."""
    if not cells.is_blank(card.heading) and card.heading is not None:
        return pieces(card.heading, code=True)
    state = words(card.state)
    answer = cells.answer_of(card, counts=False)
    text = ". ".join(part for part in (state[:1].upper() + state[1:], answer) if part)
    return [Piece("ours", text)] if text else []


def foot(card: Card) -> list[list[Piece]]:
    """Give the last facts, each as its own pieces."""
    if card.foot is not None:
        return [made] if (made := pieces(card.foot)) else []
    return [made for text in (*card.closing, *card.remarks) if (made := pieces(text))]


def is_lead(section: Section) -> bool:
    """Tell whether a section is only a sentence or two under the headline."""
    return not words(section.label) and all(isinstance(part, Prose) for part in section.parts)


def first_table(section: Section) -> Table | None:
    """Give the table whose caption is the section's label, when that comes first and has rows."""
    part = section.parts[0] if section.parts else None
    if isinstance(part, Table) and part.rows and part.columns:
        return part
    return None
