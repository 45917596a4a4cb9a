"""Verdict rows: reading them off a procedure's state, counting, capping, and the table for models.

Bridge layer. Rows are the author's own; they are read leniently, because the run already
happened, and what could not be read as a row is counted and said. One cap serves the structured
list and the rendered table, and every number comes from the same `Rowset`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final, NoReturn

from runbook_nb._frozen import FrozenDict, Immutable, classes_of
from runbook_nb._json import WireReport, encode, to_wire
from runbook_nb._text import MISSING_CELL, visible
from runbook_nb._value import frozen, inner
from runbook_nb.errors import DefinitionError
from runbook_nb.record.slots import Slot, Slots
from runbook_nb.rules.columns import Columns, as_columns
from runbook_nb.runbook.wire_rows import WireRows, is_columnar, read_rows

#: The reserved verdict word: no classification was reached.
DECLINED_VERDICT: Final = "declined"

#: Rows an answer shows at most, unless told otherwise.
DEFAULT_MAX_ROWS: Final = 50

#: Prefix of a result kind that asks for the verdict projection.
VERDICT_KIND_PREFIX: Final = "verdict/"

#: Goes with a rendered table: the model's words are the only place the rows appear.
VERDICT_RENDER_NOTE: Final = (
    "The table above was rendered from the very rows in `verdicts`. Put it into the answer "
    "VERBATIM. Never retype an identifier: one that only looks right matches nothing."
)

#: Goes with rows that the host draws itself, in place of a table.
PANEL_RENDER_NOTE: Final = (
    "The reader already has the rows of `verdicts` on screen. Do not repeat them in the answer in "
    "any form: no table, no bullets, no one sentence per row. Where the answer names a row, quote "
    "the evidence sentence that row carries VERBATIM. Cite only values that carry the finding, "
    "copied byte-for-byte."
)

#: Stands for the table of a rowset without rows.
NO_ROWS_TABLE: Final = "There are no rows: nothing was assessed."

PRESENTATIONS: Final = ("prose", "panel")

_SLOT_KEYS: Final = frozenset({"index", "item", "status"})
_SLOT_FIELDS: Final = _SLOT_KEYS | {"value", "reason", "sentence"}
_SLOT_STATUSES: Final = ("ok", "failed", "not_reached")

_LINE_END: Final = re.compile(r"\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
#: What Markdown takes for the beginning of HTML or of a link, with the backslashes before it.
_TAG: Final = re.compile(r"(\\*)<(?=[A-Za-z/!?])")
#: Of printable ASCII text, what may not be written as it is.
_MARKS: Final = frozenset("|<]")

VerdictRow = Mapping[str, Any]


@frozen
class Verdicts(Immutable):
    """How a runbook's verdict rows are projected.

    Attributes
    ----------
    decider : str
        Id or name of the decider whose branches name the verdicts.
    max_rows : int
        One cap for the list and the table.
    rank : tuple of str
        Verdict words, worst first; rows are sorted by it before the cap. Empty: the procedure's
        own order.
    units : mapping
        Column -> unit, shown in headings.

    Examples
    --------
    >>> Verdicts(decider="Protection posture", rank=("unprotected",)).max_rows
    50
    """

    decider: str
    max_rows: int = DEFAULT_MAX_ROWS
    rank: tuple[str, ...] = ()
    units: Mapping[str, str] = field(default_factory=FrozenDict)


@inner
class Rowset(Immutable):
    """All the rows a procedure wrote that can be read, with what could not.

    Attributes
    ----------
    rows : WireRows
        Every valid row in the order shown, converted for JSON when looked at.
    dropped : int
        Entries that were no rows.
    unreadable : str or None
        Type name of a ``verdicts`` value that was no list at all.
    """

    rows: WireRows = field(default_factory=lambda: WireRows(()))
    dropped: int = 0
    unreadable: str | None = None

    @property
    def declined(self) -> int:
        """How many rows reached no classification, also beyond any cap."""
        return self.rows.counts().get(DECLINED_VERDICT, 0)


def read_rowset(value: Any, rank: Sequence[str] = (), wire: WireReport | None = None) -> Rowset:
    """Read what a procedure left under ``verdicts``.

    Parameters
    ----------
    value : object
        A list or tuple of mappings, a DataFrame, rows kept as columns, or the slots of a fan-out,
        whose values are the rows; None is no rows.
    rank : sequence of str
        Verdict words, worst first; unranked words come after, in their order.
    wire : WireReport, optional
        Collects the cell values that had to be replaced.

    Returns
    -------
    Rowset
        Entries without a text ``verdict`` are dropped and counted; a value that is no list of
        rows gives no rows and its type name.

    Examples
    --------
    >>> rowset = read_rowset([{"verdict": "ok"}, {"x": 1}, "s"])
    >>> len(rowset.rows), rowset.dropped
    (1, 2)
    """
    if value is None:
        return Rowset()
    entries = _entries(value)
    if entries is None:
        name = str if isinstance(value, str) else dict if isinstance(value, dict) else type(value)
        return Rowset(unreadable=name.__name__)
    rows, dropped = read_rows(entries, rank, WireReport() if wire is None else wire)
    return Rowset(rows=rows, dropped=dropped)


def _entries(value: Any) -> Sequence[Any] | None:
    """Give what may be rows; None when it is nothing of the kind."""
    if is_columnar(value):
        return value
    if not isinstance(value, list | tuple | Slots):
        return frame_columns(value)
    slots = [_as_slot(entry) for entry in value]
    if not slots or None in slots:
        return value
    # A slot without a value is a gap the record tells of, and no malformed row.
    return [slot["value"] for slot in slots if slot is not None and slot["status"] == "ok"]


def _as_slot(entry: Any) -> Mapping[str, Any] | None:
    """Read a slot, also in the form a policy gave it; None when it is none."""
    if isinstance(entry, Slot):
        return {"status": entry.status, "value": entry.value}
    if not isinstance(entry, Mapping) or not entry.keys() >= _SLOT_KEYS or "verdict" in entry:
        return None
    if entry["status"] in _SLOT_STATUSES and entry.keys() <= _SLOT_FIELDS:
        return {"status": entry["status"], "value": entry.get("value")}
    return None


def frame_columns(value: Any) -> Columns | None:
    """Give a DataFrame or an Arrow table as columns, without importing what it comes from.

    None for anything else, and for a frame that cannot be read.

    Examples
    --------
    >>> import pandas as pd
    >>> list(frame_columns(pd.DataFrame({"a": [1, 2]}))), frame_columns({"a": 1})
    ([{'a': 1}, {'a': 2}], None)
    """
    if isinstance(value, Mapping) or type(value).__module__.partition(".")[0] not in _FRAMES:
        return None
    try:
        return as_columns(value)
    except Exception:  # a frame that cannot be read is no rows
        return None


#: Packages whose frames are read.
_FRAMES: Final = ("pandas", "polars", "pyarrow")


def subject_column(row: Mapping[str, Any]) -> str | None:
    """Name the column that says whom a row is about: its first, the verdict apart.

    Examples
    --------
    >>> subject_column({"verdict": "ok", "cluster": "a"})
    'cluster'
    """
    return next((name for name in row if name != "verdict"), None)


def verdict_rows_of(state: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Read the verdict rows off a final state.

    Examples
    --------
    >>> verdict_rows_of({"verdicts": [{"verdict": "ok", "subject": "a"}]})
    [{'verdict': 'ok', 'subject': 'a'}]
    >>> verdict_rows_of({})
    []
    """
    return [dict(row) for row in read_rowset(state.get("verdicts")).rows]


def render_verdict_table(rows: Sequence[Mapping[str, Any]], total: int | None = None) -> str:
    r"""Render rows as the Markdown table that goes to a model.

    The first row names the columns. Missing values show as a dash, zero as zero. Cells stay text:
    the end of a line is a space, other control characters and bidirectional overrides are shown
    as escapes, and what would open an HTML tag is written ``\<``, a link or an image ``]\(``.

    Parameters
    ----------
    rows : sequence of mappings
        Exactly the rows shown.
    total : int, optional
        How many there are in all; when more, a last line says so.

    Examples
    --------
    >>> print(render_verdict_table([{"a": 1, "verdict": "x"}], total=2))
    | a | verdict |
    |---|---|
    | 1 | x |
    <BLANKLINE>
    1 of 2 rows shown; 1 not in this table.
    """
    if not rows:
        return NO_ROWS_TABLE
    columns = list(rows[0])
    heads = columns if _are_as_written(columns) else [_escaped(str(name)) for name in columns]
    cells = [_cells([row.get(column) for row in rows]) for column in columns]
    told = zip(*cells, strict=True) if cells else [()] * len(rows)
    lines = [
        "| " + " | ".join(heads) + " |",
        "|" + "---|" * len(columns),
        "| " + " |\n| ".join(map(" | ".join, told)) + " |",
    ]
    if total is not None and total > len(rows):
        left = total - len(rows)
        lines += ["", f"{len(rows)} of {total} rows shown; {left} not in this table."]
    return "\n".join(lines)


def cell_text(value: Any) -> str:
    r"""Write one cell of the verdict table.

    Examples
    --------
    >>> [cell_text(v) for v in (None, "", True, 0, 2.0, "a|b", [1, {"x": 2}])]
    ['—', '—', 'yes', '0', '2.0', 'a\\|b', '[1,{"x":2}]']
    >>> print(cell_text("<b>web\x1b[31m < db"))
    \<b>web\x1b[31m < db
    """
    plain = to_wire(value)
    if plain is None or plain == "":
        return MISSING_CELL
    if isinstance(plain, bool):
        return "yes" if plain else "no"
    return _escaped(encode(plain) if isinstance(plain, dict | list) else str(plain))


def _cells(column: list[Any]) -> list[str]:
    """Write the cells of a column; looked at together, most need no writing at all."""
    if _are_as_written(column) and "" not in column:
        return column
    return list(map(cell_text, column))


def _are_as_written(texts: list[Any]) -> bool:
    """Say whether all are texts in which nothing is to be escaped."""
    if classes_of(texts) != {str}:
        return False
    whole = "".join(texts)
    return whole.isascii() and whole.isprintable() and _MARKS.isdisjoint(whole)


def _escaped(text: str) -> str:
    # Every character some reader may take for the end of a line, so that a row stays one line.
    line = visible(_LINE_END.sub(" ", text))
    # A backslash keeps the "<" text; those before it are doubled, or they would take it away.
    # One between "]" and "(" keeps both text, where a drawn image would fetch what data names.
    return _TAG.sub(r"\1\1\\<", line).replace("](", "]\\(").replace("|", "\\|")


def projection_of(
    rowset: Rowset, *, max_rows: int, presentation: str, meanings: Mapping[str, str] | None
) -> dict[str, Any]:
    """Give the projection's keys of an answer, in their order.

    Parameters
    ----------
    rowset : Rowset
    max_rows : int
        One cap for list and table.
    presentation : {"prose", "panel"}
        Who draws the rows: the model's words, or the host.
    meanings : mapping or None
        Verdict -> meaning; left out when there is none.
    """
    shown = rowset.rows[:max_rows]
    total = len(rowset.rows)
    projection: dict[str, Any] = {
        "verdicts": shown,
        "rows_shown": len(shown),
        "rows_total": total,
        "rows_complete": len(shown) == total,
    }
    if presentation == "prose":
        projection["table"] = render_verdict_table(shown, total)
        projection["render_note"] = VERDICT_RENDER_NOTE
    else:
        projection["render_note"] = PANEL_RENDER_NOTE
    if meanings:
        projection["verdict_meanings"] = dict(meanings)
    return projection


#: Every key a verdict-kind answer may hold; all are reserved in such a run.
PROJECTION_KEYS: Final = (
    "verdicts",
    "rows_shown",
    "rows_total",
    "rows_complete",
    "table",
    "render_note",
    "verdict_meanings",
)


def as_verdicts(given: Verdicts | Mapping[str, Any] | None, where: str) -> Verdicts | None:
    """Read and check the ``verdicts`` option.

    Raises
    ------
    DefinitionError
        Naming ``verdicts.decider``, ``verdicts.max_rows`` or the misspelt key.
    """
    from runbook_nb.runbook.declare import read_options

    if given is None:
        return None
    options = read_options(
        given, Verdicts, ("decider", "max_rows", "rank", "units"), f"{where}: verdicts"
    )

    def refuse(option: str, value: Any, wanted: str) -> NoReturn:
        raise DefinitionError(
            f"{where}: verdicts.{option} is {value!r}, not {wanted}",
            where=f"verdicts.{option}",
            code="bad_runbook",
        )

    decider = options.get("decider")
    if not isinstance(decider, str) or not decider.strip():
        refuse("decider", decider, "the id or name of a decider")
    max_rows = options.get("max_rows", DEFAULT_MAX_ROWS)
    if type(max_rows) is not int or max_rows < 1:
        refuse("max_rows", max_rows, "a whole number from 1")
    rank = options.get("rank", ())
    if not isinstance(rank, list | tuple) or any(not isinstance(word, str) for word in rank):
        refuse("rank", rank, "a list of verdict words")
    units = options.get("units", {})
    if not isinstance(units, Mapping) or any(
        not isinstance(text, str) for pair in units.items() for text in pair
    ):
        refuse("units", units, "a mapping of columns to units")
    return Verdicts(decider=decider, max_rows=max_rows, rank=tuple(rank), units=FrozenDict(units))
