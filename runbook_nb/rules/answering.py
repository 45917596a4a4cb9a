"""The quickest exact way to put a condition to a whole column, whatever holds the column."""

from __future__ import annotations

from typing import Any

from runbook_nb.rules.held import (
    ArrowColumn,
    CategoryColumn,
    Held,
    PlainColumn,
    SeriesColumn,
    Vector,
)
from runbook_nb.rules.operators import Test
from runbook_nb.rules.passes import codes_by_class

#: How many distinct values are still looked at once each; else rows are looked at one by one.
MOST_WORDS = 0.5


class Answering:
    """One column while it is judged: what was found out about it once is kept for the next.

    Parameters
    ----------
    column : Held
        The column.
    """

    def __init__(self, column: Held) -> None:
        self.column = column.made() if isinstance(column, SeriesColumn) else column
        self._vector: Vector | None = None
        self._looked = False
        self._words: Any = None
        self._encoded = False

    def codes(self, op: str, limit: Any, test: Test) -> bytes | None:
        """Give the outcome code of every row; None when each value must be tested by itself."""
        column = self.column
        if not len(column):
            return b""
        if column.__class__ is PlainColumn:
            return self._by_class(op, limit)
        if isinstance(column, CategoryColumn):
            from runbook_nb.rules.arrows import codes_by_word

            return codes_by_word(column.codes, column.words.whole(), test)
        found = None
        vector = self.vector()
        if vector is not None:
            from runbook_nb.rules.vectors import codes_by_vector

            found = codes_by_vector(op, limit, vector)
        elif isinstance(column, ArrowColumn):
            from runbook_nb.rules.arrows import codes_by_arrow, codes_by_word

            found = codes_by_arrow(op, limit, column.arrow())
            words = self.words() if found is None else None
            if words is not None:
                return codes_by_word(words[0], words[1], test)
        else:
            found = self._by_class(op, limit)
        return found

    def _by_class(self, op: str, limit: Any) -> bytes | None:
        column = self.column
        if column.classes is None:
            return None
        try:
            return codes_by_class(op, limit, column.whole(), column.classes)
        except Exception:  # a comparison that raised: each value is asked by itself
            return None

    def vector(self) -> Vector | None:
        """Give the column as a numpy array, made once."""
        if not self._looked:
            self._looked = True
            self._vector = self.column.vector()
            if self._vector is None and isinstance(self.column, ArrowColumn):
                from runbook_nb.rules.arrows import vector_of

                self._vector = vector_of(self.column.arrow())
        return self._vector

    def words(self) -> Any:
        """Give which of few values each row of Arrow data holds; None when they are not few."""
        if not self._encoded:
            self._encoded = True
            from runbook_nb.rules.arrows import words_of

            words = words_of(self.column.arrow())
            few = words is not None and len(words[1]) <= MOST_WORDS * len(self.column)
            self._words = words if few else None
        return self._words

    def why(self, op: str) -> str:
        """Say why a condition was put to each value by itself."""
        if op == "matches":
            return "a pattern is put to each text"
        arrow = self.column.arrow()
        if arrow is not None:
            return f"a column of {arrow.type} has no vector form for {op}"
        classes = self.column.classes
        if classes is None:
            return f"a column of {self.column.vector_type} has no vector form for {op}"
        names = sorted({cls.__name__.strip("_") for cls in classes} - {"NoneType", "Missing"})
        if len(names) == 1:
            return f"a column of {names[0]} has no vector form for {op}"
        return f"a column of mixed values ({', '.join(names)})"
