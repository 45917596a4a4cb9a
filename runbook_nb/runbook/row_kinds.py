"""Verdict rows by kind of branch: what is read once for all rows whose branches went the same way.

Bridge layer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from runbook_nb.record.log import FanOut

if TYPE_CHECKING:
    from runbook_nb.runbook.dossier import SubjectFacts


class KindOfRows(NamedTuple):
    """Rows about branches that went the same way.

    Attributes
    ----------
    first : SubjectFacts
        What became of the first of them, and but for the values of all.
    rows : sequence of int
        Which rows.
    compared : tuple of (str, bool)
        The key of each value the decision was made on, and whether it is hidden.
    column : callable
        Gives the values at one place of those, one per row.
    """

    first: SubjectFacts
    rows: Sequence[int]
    compared: tuple[tuple[str, bool], ...]
    column: Callable[[int], Sequence[Any]]


def column_of(fan: FanOut, indices: Sequence[int], at: int, place: int) -> Sequence[Any]:
    """Give the values at a place behind another, of some branches of one shape."""
    return fan.column(at + place, indices)
