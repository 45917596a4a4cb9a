"""The rows of an answer as CSV, for a spreadsheet that would run what looks like a formula.

Sharing layer. A text is data here and must stay data there: one that a spreadsheet would take for
a formula is written behind an apostrophe, which spreadsheets take for "this is text", and the
count of those is told. Numbers, ids and dates are written exactly.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from runbook_nb._files import write_whole
from runbook_nb._json import canonical, to_wire
from runbook_nb._value import frozen
from runbook_nb.runbook import Envelope
from runbook_nb.share.exported import redactor_of

#: What a text begins with that a spreadsheet takes for a formula.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


@frozen
class Sheet:
    """Rows as CSV.

    Attributes
    ----------
    text : str
        Lines ended as RFC 4180 has them; the first one names the columns.
    rows, total : int
        How many rows it holds, and how many the answer has.
    guarded : int
        Texts that were written behind an apostrophe.
    """

    text: str
    rows: int
    total: int
    guarded: int


def sheet_of(envelope: Envelope) -> Sheet:
    r"""Give the verdict rows of an answer as CSV, with what decided each.

    Examples
    --------
    >>> import runbook_nb as rb
    >>> rules = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], rb.Default("fresh"))
    >>> rows = [{"host": "=1+1", "days": 9}]
    >>> sheet = sheet_of(rb.triage(rows, rules, subject="host", source="one row"))
    >>> sheet.text
    "host,verdict,days,decided_by,rule\r\n'=1+1,old,9,days 9 > 7,1\r\n"
    >>> sheet.guarded
    1
    """
    frame = envelope.to_frame(typed=False)
    columns = [frame[name].tolist() for name in frame.columns]
    text, guarded = csv_of(frame.columns, zip(*columns, strict=True), redactor_of(envelope).text)
    table = envelope.verdicts
    return Sheet(text=text, rows=len(frame), total=table.total, guarded=guarded)


def csv_of(
    columns: Iterable[Any], rows: Iterable[Iterable[Any]], hidden: Callable[[str], str] = str
) -> tuple[str, int]:
    r"""Give rows as CSV, and how many texts in it were written behind an apostrophe.

    Parameters
    ----------
    columns : iterable
        What they are called.
    rows : iterable of iterable
        A value for each column.
    hidden : callable, optional
        Takes out of a text what must not be seen.

    Examples
    --------
    >>> csv_of(["host", "days"], [["=1+1", 9], ["web", None]])
    ("host,days\r\n'=1+1,9\r\nweb,\r\n", 1)
    """
    guarded = 0
    out = io.StringIO()
    lines = csv.writer(out)

    def cell(value: Any) -> str:
        nonlocal guarded
        plain = to_wire(value)
        if not isinstance(plain, str):
            return "" if plain is None else canonical(plain)
        text = hidden(plain)
        if not text.lstrip(" ").startswith(_FORMULA) and not _shown(text).startswith(_FORMULA):
            return text
        guarded += 1
        return f"'{text}"

    lines.writerow([cell(str(name)) for name in columns])
    lines.writerows([cell(value) for value in row] for row in rows)
    return out.getvalue(), guarded


def write_sheet(envelope: Envelope, path: str | os.PathLike[str]) -> Path:
    """Write the verdict rows of an answer as a CSV file; see `Envelope.to_csv`."""
    return write_whole(path, sheet_of(envelope).text)


def write_table(
    path: str | os.PathLike[str], columns: Iterable[Any], rows: Iterable[Iterable[Any]]
) -> Path:
    """Write rows as a CSV file; see `csv_of`."""
    return write_whole(path, csv_of(columns, rows)[0])


def _shown(text: str) -> str:
    """Give a text from the first character on that shows; each program skips blanks of its own."""
    first = next((n for n, one in enumerate(text) if one.isprintable() and one != " "), len(text))
    return text[first:]
