"""Verdict rows as a sequence that knows how many there are in all.

Bridge layer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, overload

from runbook_nb._display import Renderable
from runbook_nb._view import Card
from runbook_nb.rules.held import Held
from runbook_nb.runbook.names import NameIndex, name_key
from runbook_nb.runbook.verdicts import subject_column
from runbook_nb.runbook.wire_rows import WireRows

if TYPE_CHECKING:
    import pandas as pd


#: Types of names that are each other's if they are equal.
_PLAIN: Final = ({str}, {int})


class VerdictTable(Sequence[Mapping[str, Any]], Renderable):
    """Verdict rows, with how many there are in all.

    Parameters
    ----------
    rows : sequence of mapping
        Those held here.
    total : int
        How many there are.
    told : mapping, optional
        How many of all rows have each verdict, where that is known of more than are held.

    Attributes
    ----------
    total : int
        Rows there are.
    complete : bool
        Whether all of them are held here, or told of.
    """

    __slots__ = ("_counts", "_index", "_rows", "_told", "total")

    def __init__(
        self,
        rows: Sequence[Mapping[str, Any]],
        total: int,
        told: Mapping[str, int] | None = None,
    ) -> None:
        self._rows = rows if isinstance(rows, WireRows) else tuple(rows)
        self._counts: dict[str, int] | None = None if told is None else dict(told)
        self._told = told is not None
        self._index: NameIndex | None = None
        self.total = total

    @property
    def complete(self) -> bool:
        """Whether every row is held here, or told of."""
        return self._told or len(self._rows) == self.total

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Mapping[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self._rows[index]

    def counts(self) -> dict[str, int]:
        """How many of the held rows have each verdict, in order of first appearance."""
        if self._counts is None:
            if isinstance(self._rows, WireRows):
                self._counts = self._rows.counts()
            else:
                self._counts = dict(Counter(str(row.get("verdict")) for row in self._rows))
        return dict(self._counts)

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """The held rows as they are kept."""
        return self._rows

    def named(self, subject: Any) -> list[int]:
        """Give the places of the held rows that are about a subject."""
        if self._index is None:
            self._index = NameIndex(self._subjects)
        return self._index.places(subject)

    def repeated(self) -> list[Any]:
        """Give the subjects that several held rows are about, in order of first appearance.

        Examples
        --------
        >>> rows = [{"host": name, "verdict": "ok"} for name in ("a", "b", "a")]
        >>> VerdictTable(rows, 3).repeated()
        ['a']
        """
        names = self._subjects()
        names = names.whole() if isinstance(names, Held) else names
        if set(map(type, names)) in _PLAIN and len(set(names)) == len(names):
            return []
        times: dict[Any, list[Any]] = {}
        for name in names:
            key = None if name is None else name_key(name)
            if key is not None:
                times.setdefault(key, []).append(name)
        return [names[0] for names in times.values() if len(names) > 1]

    def _subjects(self) -> Sequence[Any]:
        rows = self._rows
        column = subject_column(rows[0]) if rows else None
        if column is not None and isinstance(rows, WireRows):
            held = rows.column(column)
            if held is not None:
                return held
        return [None if (name := subject_column(row)) is None else row[name] for row in rows]

    def to_frame(self) -> pd.DataFrame:
        """Give the held rows as a DataFrame."""
        import pandas as pd

        columns = list(dict.fromkeys(key for row in self._rows for key in row))
        return pd.DataFrame([dict(row) for row in self._rows], columns=columns, dtype=object)

    def view(self) -> Card:
        """Show the rows."""
        from runbook_nb.runbook.cards import verdict_table_card

        return verdict_table_card(self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, VerdictTable):
            return self.total == other.total and list(self._rows) == list(other._rows)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]
