"""Finding what has a name among many: an index made at the first question, never before.

Bridge layer. Two names are one when their wire forms are, and a name that is no text is found by
the text it is shown as, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from runbook_nb._json import canonical, to_wire
from runbook_nb._text import show
from runbook_nb.rules.held import Held

#: So many questions are answered by looking through the names, before an index is made.
LOOKED_FOR: Final = 3

#: Names that are joined at a time to see that each is written as it is.
_JOINED: Final = 10_000


def name_key(name: Any) -> Any:
    """Give what two names must share to be one: their wire form; None when nothing is named.

    Examples
    --------
    >>> from datetime import date
    >>> name_key(date(2026, 1, 2)) == name_key("2026-01-02"), name_key(1) == name_key(True)
    (True, False)
    """
    if name.__class__ is str and name.isascii():
        return name
    wire = to_wire(name)
    if isinstance(wire, bool):
        return ("bool", wire)
    return canonical(wire) if isinstance(wire, dict | list) else wire


def is_called(name: Any, asked: Any, key: Any = None) -> bool:
    """Say whether a name is the one asked for, also when it is asked for as it is shown."""
    if name is None or asked is None:
        return False
    if name_key(name) == (name_key(asked) if key is None else key):
        return True
    return isinstance(asked, str) and not isinstance(name, str) and show(name) == asked


class NameIndex:
    """The places of names.

    Parameters
    ----------
    names : callable
        Gives the names in the order of their places; called once for the index, and once more
        when a text is asked for that some name may be shown as.

    Examples
    --------
    >>> index = NameIndex(lambda: ["a", 7, "a", None])
    >>> index.places("a"), index.places("7"), index.places(8), index.of_key(7)
    ([0, 2], [1], [], [1])
    """

    __slots__ = ("_asked", "_first", "_held", "_keys", "_more", "_names", "_only_texts", "_shown")

    def __init__(self, names: Callable[[], Iterable[Any]]) -> None:
        self._names = names
        self._asked = 0
        self._held: tuple[list[Any], set[type]] | None = None
        self._keys: list[Any] | None = None
        self._first: dict[Any, int] | None = None
        self._more: dict[Any, list[int]] = {}
        self._only_texts = False
        self._shown: dict[str, list[int]] | None = None

    def of_key(self, key: Any) -> list[int]:
        """Give the places of the names whose `name_key` is this."""
        if key is None:
            return []
        self._asked += 1
        if self._first is None:
            if self._asked <= LOOKED_FOR:
                return _places_in(self._looked_through(key), key)
            self._first, self._keys, self._held = self._fill(self._key_of_each()), None, None
        if key not in self._first:
            return []
        return self._more.get(key) or [self._first[key]]

    def places(self, asked: Any) -> list[int]:
        """Give the places of every name that is the one asked for."""
        if asked is None:
            return []
        found = self.of_key(name_key(asked))
        if not isinstance(asked, str):
            return found
        if self._only_texts:
            return found
        if self._shown is None:
            self._shown = {}
            for place, name in enumerate(self._names()):
                if name is not None and not isinstance(name, str):
                    self._shown.setdefault(show(name), []).append(place)
        shown = self._shown.get(asked, ())
        return sorted({*found, *shown}) if shown else found

    def _looked_through(self, key: Any) -> list[Any]:
        """Give what a key is looked for among: the names themselves, where that finds the same."""
        names, types = self._given()
        # The wire form of a text is another text only where it has a lone surrogate, which is
        # written with a backslash.
        if types <= {str} and not (key.__class__ is str and "\\" in key):
            return names
        return self._key_of_each()

    # Who asks in another thread lets go of both as soon as there is an index.

    def _key_of_each(self) -> list[Any]:
        keys = self._keys
        if keys is None:
            names, types = self._given()
            plain = types <= {int} or (types <= {str} and _written_as_they_are(names))
            self._keys = keys = names if plain else list(map(name_key, names))
        return keys

    def _given(self) -> tuple[list[Any], set[type]]:
        """Give the names and their types, gathered once for all that is looked for among them."""
        held = self._held
        if held is None:
            names = self._names()
            if isinstance(names, Held):
                names = names.whole()
            elif not isinstance(names, list):
                names = list(names)
            types = set(map(type, names))
            self._only_texts = types <= {str}
            self._held = held = names, types
        return held

    def _fill(self, keys: Sequence[Any]) -> dict[Any, int]:
        first = dict(zip(keys, range(len(keys)), strict=True))
        if len(first) < len(keys):
            first, more = {}, self._more
            for place, key in enumerate(keys):
                if key not in first:
                    first[key] = place
                elif key in more:
                    more[key].append(place)
                elif key is not None:
                    more[key] = [first[key], place]
        return first


def _places_in(keys: list[Any], key: Any) -> list[int]:
    """Look for a key from the start: for a few that is done long before an index is made."""
    found: list[int] = []
    try:
        while True:
            found.append(keys.index(key, found[-1] + 1 if found else 0))
    except ValueError:
        return found


def _written_as_they_are(names: Sequence[str]) -> bool:
    """Say whether the wire form of each text is the text itself: none has a lone surrogate."""
    for start in range(0, len(names), _JOINED):
        joined = "".join(names[start : start + _JOINED])
        if not joined.isascii():
            try:
                joined.encode()
            except UnicodeEncodeError:
                return False
    return True


def row_hint(subject: Any, rows: int) -> str | None:
    """Say how a row is named by its number, to somebody who gave one where a name belongs.

    Examples
    --------
    >>> row_hint(3, 50), row_hint(50, 50), row_hint("3", 50)
    ('for the row of that number, counted from 0, write row=3', None, None)
    """
    if type(subject) is not int or not 0 <= subject < rows:
        return None
    return f"for the row of that number, counted from 0, write row={subject}"
