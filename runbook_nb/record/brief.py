"""The brief forms of a written log: what branches hold of their items, and shapes as letters.

Record layer. A branch that loads its item records the item's values again, and its decision those
it compared. In a brief log such a column is the name of the item's key. The shapes of many short
runs are a text with a letter for each branch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import is_, itemgetter
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._rows import FrozenRows
from runbook_nb._text import MISSING
from runbook_nb.errors import LoadError
from runbook_nb.record.tallies import Identities, mapped, picker, run_count
from runbook_nb.rules.columns import Columns
from runbook_nb.rules.held import PlainColumn

if TYPE_CHECKING:
    from runbook_nb.record.tracks import Gathered

#: The first letter: that of a branch that never began. Those of the shapes follow.
_FIRST: Final = 0x20
#: How many letters there are, up to the one before DEL, without the two that JSON escapes.
_LETTERS: Final = "".join(chr(n) for n in range(_FIRST, 0x7F) if chr(n) not in '"\\')


class ItemColumns:
    """The columns of the items of a fan-out, each looked up once.

    Parameters
    ----------
    items : sequence
        As they are written: served, where a policy hides something.

    Examples
    --------
    >>> name = "web-1"
    >>> columns = ItemColumns([{"id": name}, {"id": "web-2"}])
    >>> columns.holds("id", [0], [name]), columns.holds("id", [0], ["web-2"])
    (True, False)
    """

    __slots__ = ("_are_rows", "_columns", "_found", "_items", "_picked")

    def __init__(self, items: Sequence[Any]) -> None:
        self._items = items
        kinds = set(map(type, items)) if isinstance(items, list) else set()
        self._are_rows = bool(kinds) and all(issubclass(kind, dict) for kind in kinds)
        self._columns: dict[str, Sequence[Any] | None] = {}
        self._found: dict[str, Identities] = {}
        self._picked: tuple[Sequence[int], Callable[[Sequence[Any]], Sequence[Any]]] | None = None

    def holds(self, key: str | None, places: Sequence[int], values: Sequence[Any]) -> bool:
        """Say whether these very values stand under a key of the items at these places."""
        if key is None or not values:
            return False
        column = self.column(key)
        if column is None or column[places[0]] is not values[0]:
            return False
        whole = len(places) == len(column)  # branches are in the order of their items
        there = column if whole else self._pick(places)(column)
        return all(map(is_, there, values))

    def holds_all(self, key: str | None, columns: Gathered, at: int) -> bool:
        """Say what `holds` says of one of the columns of a shape, without a list of it."""
        column = None if key is None else self.column(key)
        if column is None or key is None:
            return False
        if key not in self._found:
            self._found[key] = Identities(column)
        return columns.is_same(at, self._found[key])

    def _pick(self, places: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
        """Give what picks these places; the columns of a shape are asked for one by one."""
        if self._picked is None or self._picked[0] is not places:
            self._picked = places, picker(places)
        return self._picked[1]

    def at(self, key: str, places: Sequence[int]) -> Sequence[Any] | None:
        """Give what the items at these places hold under a key; see `column`."""
        column = self.column(key)
        if column is None or len(places) == len(column):
            return column
        return self._pick(places)(column)

    def column(self, key: str) -> Sequence[Any] | None:
        """Give what every item holds under a key; None where one of them has no such key."""
        if key not in self._columns:
            self._columns[key] = self._looked_up(key)
        return self._columns[key]

    def _looked_up(self, key: str) -> Sequence[Any] | None:
        items = self._items
        if isinstance(items, FrozenRows):
            return items.column(key)
        if isinstance(items, Columns):
            column = items.held(key) if key in items.names else PlainColumn([])
            if not isinstance(column, PlainColumn):
                column = PlainColumn(list(column))
            return None if type(MISSING) in column.classes else column.whole() or None
        if not self._are_rows:
            return None
        try:
            return list(map(itemgetter(key), items))
        except KeyError:
            return None


def letters(shapes: Sequence[int], numbers: Mapping[int, int]) -> str | None:
    """Write the numbers that shapes are given as one letter each; None where runs are shorter.

    Examples
    --------
    >>> letters([5, 7, 5, -1, 9, 5], {-1: -1, 5: 0, 7: 1, 9: 2}), letters([5] * 9, {5: 0})
    ('!#! $!', None)
    """
    if not shapes or max(numbers.values()) + 2 > len(_LETTERS):
        return None
    if run_count(shapes) * _RUN <= len(shapes):
        return None
    found = {shape: ord(_LETTERS[number + 1]) for shape, number in numbers.items()}
    return mapped(shapes, found).tobytes().decode("ascii")


#: A run takes about as many characters as so many letters.
_RUN: Final = 4


def read_letters(text: str, count: int, where: str) -> list[int]:
    """Read what `letters` wrote, of so many shapes.

    Raises
    ------
    LoadError
        A letter stands for no shape.

    Examples
    --------
    >>> read_letters("!# ", 2, "shapes")
    [0, 1, -1]
    """
    numbers = {letter: number - 1 for number, letter in enumerate(_LETTERS[: count + 1])}
    try:
        return list(map(numbers.__getitem__, text))
    except KeyError:
        raise LoadError(
            f"the log is damaged: {where} has a letter that stands for no shape",
            where=where,
            fix="read what write_log wrote, unchanged",
            code="bad_log",
        ) from None
