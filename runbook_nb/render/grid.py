"""Sets cells in aligned columns within a number of columns of text.

A cell flows over the blank cells behind it, as in a spreadsheet, so that one long remark does not
push the columns of all other rows apart; names in the first column keep to it. When the rows do
not fit, the widest columns give way first; columns that would become too narrow to read are left
out, and the caller is told.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from runbook_nb._value import inner
from runbook_nb.render.cells import fit, pad, width

#: Between two columns.
GAP: Final = 2
#: Behind the first column of an outline, whose names are indented by depth.
OUTLINE_GAP: Final = 3
#: No column that holds more than this is made narrower.
NARROWEST: Final = 6


@inner(kw_only=False)
class Grid:
    """Rows set in columns.

    Attributes
    ----------
    lines : list of str
        One per row.
    starts : list of int
        Where each column begins.
    columns : int
        How many columns are shown.
    """

    lines: list[str]
    starts: list[int]
    columns: int


def grid(
    rows: Sequence[Sequence[str]],
    columns: int,
    *,
    right: Collection[int] = (),
    indents: Sequence[int] = (),
    first_gap: int = GAP,
) -> Grid:
    """Set rows of cells in aligned columns.

    Parameters
    ----------
    rows : sequence of sequences of str
        The cells; ``""`` is a blank one.
    columns : int
        Width of a line.
    right : collection of int
        Columns whose cells are set to the right.
    indents : sequence of int
        How far the first cell of each row is moved in.
    first_gap : int
        Spaces behind the first column.

    Examples
    --------
    >>> for line in grid([["1", "30", "no"], ["default", "no condition", ""]], 40).lines:
    ...     print(line)
    1        30  no
    default  no condition
    """
    indents = indents or [0] * len(rows)
    count = max((len(row) for row in rows), default=0)
    cells = [
        [" " * indent + (row[0] if row else ""), *row[1:], *[""] * (count - len(row))]
        for row, indent in zip(rows, indents, strict=True)
    ]
    widths = _wanted(cells, indents, right)
    deepest = max((i for i, row in zip(indents, rows, strict=True) if row and row[0]), default=0)
    widths = _squeezed(widths, columns, deepest, first_gap)
    starts, place = [], 0
    for n, wide in enumerate(widths):
        starts.append(place)
        if wide:  # a column that is blank throughout takes no room
            place += wide + (first_gap if n == 0 else GAP)
    lines = [_line(row[: len(widths)], starts, widths, columns, right) for row in cells]
    return Grid(lines, starts, len(widths))


def _wanted(cells: list[list[str]], indents: Sequence[int], right: Collection[int]) -> list[int]:
    """Give the widths at which nothing is cut."""
    widths = [0] * (len(cells[0]) if cells else 0)
    stopped: list[tuple[int, int, int]] = []  # (from, to, columns needed) of cells that flow over
    for row, indent in zip(cells, indents, strict=True):
        for n, text in enumerate(row):
            if not text or (n == 0 and len(text) == indent):
                continue
            need = width(text)
            end = _next_filled(row, n)
            # A name keeps to its column unless it stands alone; other cells flow over blank ones.
            if n not in right and n + 1 < len(row) and (end is None or 0 < n < end - 1):
                if end is not None:
                    stopped.append((n, end, need))
                need = min(need, NARROWEST if n else indent + 1)
            widths[n] = max(widths[n], need)
    for start, end, need in stopped:
        room = sum(wide + GAP for wide in widths[start:end]) - GAP
        widths[end - 1] += max(need - room, 0)
    return widths


def _squeezed(widths: list[int], columns: int, indent: int, first_gap: int) -> list[int]:
    """Narrow the widest columns until all fit; leave out last ones that would be too narrow."""
    # What the deepest step is moved in by is not up for squeezing: its name stands behind it.
    wanted = [wide - (indent if n == 0 else 0) for n, wide in enumerate(widths)]
    while wanted:
        gaps = sum(first_gap if n == 0 else GAP for n, wide in enumerate(wanted[:-1]) if wide)
        room = columns - indent - gaps
        if len(wanted) == 1 or sum(min(wide, NARROWEST) for wide in wanted) <= room:
            most = _level(wanted, room)
            return [min(wide, most) + (indent if n == 0 else 0) for n, wide in enumerate(wanted)]
        wanted.pop()
    return []


def _level(widths: list[int], room: int) -> int:
    """Give the width above which columns are cut so that all take no more than ``room``."""
    for n, wide in enumerate(sorted(widths)):
        share = room // (len(widths) - n)
        if wide > share:
            return share
        room -= wide
    return max(widths)


def _next_filled(row: list[str], n: int) -> int | None:
    return next((later for later in range(n + 1, len(row)) if row[later]), None)


def _line(
    row: list[str], starts: list[int], widths: list[int], columns: int, right: Collection[int]
) -> str:
    line = ""
    for n, text in enumerate(row):
        if not text:
            continue
        if n in right:
            piece = pad(fit(text, widths[n]), widths[n], right=True)
        else:
            end = _next_filled(row, n)
            piece = fit(text, (columns if end is None else starts[end] - GAP) - starts[n])
        line = pad(line, starts[n]) + piece
    return line.rstrip()
