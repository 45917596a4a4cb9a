"""What a cell, a count and a headline say, the same in every format, and how wide text is.

The renderers share these laws: nothing recorded is a dash and zero is ``0``; whatever came from
outside passes `runbook_nb._text.visible`; a cut ends in an ellipsis and every cap names both
numbers. Nothing here raises, whatever a value does when it is looked at.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, Final

from runbook_nb._text import MISSING, MISSING_CELL, clip, counted, show, visible
from runbook_nb._view import Badge, Break, Card, Cell, Data, Fact, Facts, FlowLine, Run, Table
from runbook_nb.settings import settings

#: Steps of an outline that are shown; a longer one says how many more there are.
MAX_STEPS: Final = 60

#: How a step that did not simply run is called where its cells do not say so themselves.
STATE_WORDS: Final = {
    "not_taken": "not taken",
    "not_reached": "not reached",
    "failed": "failed",
    "paused": "waits for an answer",
    "stopped": "stopped here",
    "current": "in progress",
}
#: Words that say such a state as well.
_SAYS_TOO: Final = {
    "not_taken": ("not selected", "skipped", "passed over"),
    "not_reached": ("pending",),
    "failed": ("declined",),
    "stopped": ("the stop",),
}

#: Said once beside a table that holds such a cell.
MISSING_MEANS: Final = f"{MISSING_CELL} means not recorded"

_NO_SPACE_BEFORE = (" ", ",", ".", ";", ":", ")", "!", "?", "%")
_NO_SPACE_AFTER = (" ", "(")


def run_text(run: Run, longest: int | None = None) -> str:
    """Write one run of a cell; what cannot be written is named by its type.

    Data longer than ``longest`` characters, by default the setting ``max_cell``, is cut.

    Examples
    --------
    >>> run_text(Data(value=30, unit="days")), run_text(0), run_text(None)
    ('30 days', '0', '—')
    >>> run_text(Badge(word="declined", count=3))
    '3 declined'
    """
    if type(run) is str:
        return visible(run)
    try:
        if isinstance(run, Data):
            return _data_text(run, settings.max_cell if longest is None else longest)
        if isinstance(run, Break):
            return "·"
        if isinstance(run, Badge):
            word = run_text(run.word)
            return word if run.count is None else f"{run_text(run.count)} {word}"
        return visible(str.__str__(run)) if isinstance(run, str) else show(run)
    except Exception:  # a value may do anything when it is looked at
        return f"<{type(run).__name__}>"


def _data_text(data: Data, longest: int) -> str:
    value = data.value
    if is_missing(data):
        return MISSING_CELL
    try:
        # `str.__str__` drops a subclass together with whatever it overrides.
        text = visible(str.__str__(value)) if isinstance(value, str) else show(value)
    except Exception:
        text = f"<{visible(type(value).__name__)}>"
    text = text if len(text) <= longest else clip(text, longest)
    return text if data.unit is None else f"{text} {run_text(data.unit)}"


def cell_text(cell: Cell, write: Callable[[Run], str] = run_text) -> str:
    """Write a cell: its runs in a row, with one space between them.

    No space goes where our words bring their own or begin with punctuation.

    Parameters
    ----------
    cell : Cell
        What to write.
    write : callable
        How one run is written.

    Examples
    --------
    >>> cell_text((Data(value="age_days"), Data(value=30), ">", Data(value=7), ", taken"))
    'age_days 30 > 7, taken'
    """
    return joined(cell, list(map(write, cell))) if isinstance(cell, tuple) else write(cell)


def joined(runs: Sequence[Run], texts: Sequence[str]) -> str:
    """Set runs that are written already next to each other, as `cell_text` does.

    Examples
    --------
    >>> joined(("rule", 2, ", taken"), ("rule", "2", ", taken"))
    'rule 2, taken'
    """
    if len(texts) == 1:  # as most cells have
        return texts[0]
    text, before = "", None
    for run, written in zip(runs, texts, strict=True):
        if written:
            text += f" {written}" if text and spaced(before, run) else written
            before = run
    return text


def spaced(before: Any, after: Any) -> bool:
    """Tell whether a space goes between two runs of a cell.

    Examples
    --------
    >>> spaced("rule", Data(value=2)), spaced(Data(value=2), ", taken"), spaced("a", "!=")
    (True, False, True)
    """
    ours_before = type(before) is str and before.endswith(_NO_SPACE_AFTER)
    ours_after = type(after) is str and after.startswith(_NO_SPACE_BEFORE) and after[:2] != "!="
    return not (ours_before or ours_after)


def runs_of(cell: Cell) -> tuple[Run, ...]:
    """Give the runs of a cell, which may be a single one."""
    return cell if isinstance(cell, tuple) else (cell,)


def is_missing(cell: Cell) -> bool:
    """Tell whether a cell shows as "not recorded".

    Examples
    --------
    >>> is_missing(None), is_missing(Data(value="")), is_missing(Data(value=0)), is_missing("")
    (True, True, False, False)
    """
    if isinstance(cell, Data):
        value = cell.value
        return value is None or value is MISSING or (type(value) is str and not value)
    return cell is None or cell is MISSING  # type: ignore[comparison-overlap]


def is_number(cell: Cell) -> bool:
    """Tell whether a cell is one number; truth values are not.

    Examples
    --------
    >>> is_number(7), is_number(Data(value=2.5)), is_number(Data(value=True)), is_number("7")
    (True, True, False, False)
    """
    kind = type(cell.value if isinstance(cell, Data) else cell)  # the type cannot lie or raise
    return kind is not bool and issubclass(kind, int | float | Decimal)


def is_blank(cell: Cell) -> bool:
    """Tell whether a cell shows nothing at all."""
    return type(cell) is str and not cell


def words(text: Any) -> str:
    """Write a text field of a view; one that is not there says nothing."""
    return "" if text is None else cell_text(text)


def dotted(parts: Iterable[str]) -> str:
    """Join facts with the middle dot that stands between them everywhere."""
    return " · ".join(part for part in parts if part)


# --- headline, caps, steps ---------------------------------------------------------------------


def title_of(card: Card, name: str | None = None) -> str:
    """Say what the card is about; ``name`` replaces its name where that had to be cut."""
    parts = (words(card.kind), words(card.name) if name is None else name, words(card.state))
    return " ".join(part for part in parts if part)


def answer_of(card: Card, *, counts: bool = True) -> str:
    """Say the card's answer with its counts, or without them where they stand elsewhere.

    Examples
    --------
    >>> badges = (Badge(word="declined", count=3),)
    >>> answer_of(Card(kind="Envelope", name="x", headline="3 rows", badges=badges))
    '3 rows (3 declined)'
    """
    answer, in_brackets = words(card.headline), counts_of(card) if counts else ""
    if answer and in_brackets:
        answer += f" ({in_brackets})"
    return ", ".join(part for part in (answer or in_brackets, words(card.tail)) if part)


def counts_of(card: Card) -> str:
    """List the counted outcomes: ``1 protected, 2 declined``."""
    return ", ".join(run_text(badge) for badge in card.badges)


def cap(shown: int, total: int, what: str = "shown") -> str:
    """Say that a part is shown of something larger; nothing when all of it is.

    Examples
    --------
    >>> cap(50, 312), cap(3, 3)
    ('50 of 312 shown', '')
    """
    return f"{shown} of {total} {what}" if shown < total else ""


def cap_of_steps(shown: int, total: int, what: str, folded: str) -> str:
    """Say how much of an outline is shown, and how it was made shorter.

    Examples
    --------
    >>> cap_of_steps(3, 70, "steps", "68 plain stages as 1 line")
    '3 of 70 steps: 68 plain stages as 1 line'
    """
    capped = cap(shown, total, what)
    return f"{capped}: {folded}" if capped and folded else capped


def more_rows(table: Table, shown: int) -> str:
    """Say how many rows are not shown and where they are; nothing when all are.

    Examples
    --------
    >>> more_rows(Table(columns=(), rows=((), ()), total=303, rest="to_frame()"), 2)
    '301 more rows: to_frame()'
    """
    rest, more = words(table.rest), all_rows(table) - shown
    return "" if more <= 0 else counted(more, "more row") + (f": {rest}" if rest else "")


def all_rows(table: Table) -> int:
    """Count the rows there are, which are never fewer than those carried."""
    return max(table.total, len(table.rows))


def all_facts(facts: Facts) -> int:
    """Count the facts there are, which are never fewer than those carried."""
    return max(facts.total, len(facts.items))


def detail_of(fact: Fact, write: Callable[[Run], str] = run_text) -> str:
    """Say what is said of a term, badges in brackets behind it; nothing may be said of it.

    Examples
    --------
    >>> detail_of(Fact(term="protected", detail="no rule fired", badges=(Badge(word="default"),)))
    'no rule fired (default)'
    """
    said = "" if fact.detail is None else cell_text(fact.detail, write)
    badges = [f"({write(badge)})" for badge in fact.badges]
    return " ".join(part for part in (said, *badges) if part)


def state_word(line: FlowLine) -> str:
    """Name the state of a step that did not simply run, unless our words in it do already.

    Data never counts as having said it: a stage may be called anything.

    Examples
    --------
    >>> state_word(FlowLine(depth=0, cells=("load",), state="failed"))
    'failed'
    >>> state_word(FlowLine(depth=0, cells=("load", "failed: KeyError"), state="failed"))
    ''
    """
    word = STATE_WORDS.get(line.state, "")
    said = (word, *_SAYS_TOO.get(line.state, ()))
    ours = (run for cell in line.cells[1:] for run in runs_of(cell) if isinstance(run, str))
    return "" if any(one in run for run in ours for one in said) else word


# --- display width -----------------------------------------------------------------------------


def width(text: str) -> int:
    """Count the columns a text takes on a terminal.

    Wide characters take two; combining marks and invisible format characters none.

    Examples
    --------
    >>> width("cluster-a"), width("備份"), width("e\u0301")
    (9, 4, 1)
    """
    return len(text) if text.isascii() else sum(map(_char_width, text))


def _char_width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf") and char != "\u00ad":
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def fit(text: str, columns: int) -> str:
    """Cut a text to so many columns, ending in an ellipsis when anything was cut.

    Examples
    --------
    >>> fit("last backup older than 7 days", 12), fit("備份備份", 5)
    ('last backup…', '備份…')
    """
    if width(text) <= columns:
        return text
    kept, taken = 0, 0
    for char in text:
        taken += _char_width(char)
        if taken > columns - 1:
            break
        kept += 1
    return text[:kept].rstrip() + "…" if columns > 0 else ""


def pad(text: str, columns: int, *, right: bool = False) -> str:
    """Fill a text with spaces to so many columns, on its left when it is set to the right."""
    spaces = " " * (columns - width(text))
    return spaces + text if right else text + spaces


def wrap(text: str, columns: int) -> list[str]:
    """Break a text into lines between words; a word wider than a line is cut visibly.

    Examples
    --------
    >>> wrap("the inventory answered and listed no subject", 22)
    ['the inventory answered', 'and listed no subject']
    """
    lines: list[str] = []
    for word in text.split(" ") if text else ():
        if not _append(lines, word, columns, " "):
            lines.append(fit(word, columns))
    return lines


def packed(parts: Iterable[str], columns: int) -> list[str]:
    """Set facts on as few lines as hold them, with the middle dot between those on one line.

    Examples
    --------
    >>> packed(["checked 2", "not checked 1", "walk 46 rows"], 26)
    ['checked 2 · not checked 1', 'walk 46 rows']
    """
    lines: list[str] = []
    for part in parts:
        if part and not _append(lines, part, columns, " · "):
            lines += wrap(part, columns)
    return lines


def _append(lines: list[str], text: str, columns: int, between: str) -> bool:
    """Put a text behind the last line when both fit there."""
    longer = f"{lines[-1]}{between}{text}" if lines else ""
    fits = bool(lines) and width(longer) <= columns
    if fits:
        lines[-1] = longer
    return fits
