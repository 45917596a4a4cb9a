"""What a policy learns of a run: the secret texts it met, and the objects that carry secrets.

Record layer. A text that stood under a hidden name is a secret wherever it reappears. An object
that did is one too, whatever name it is handed on under: recorded values are shared and never
change, so that a copy of the whole, or of a part, is the very same object, however short the
texts in it are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from runbook_nb._frozen import ATOMS, Immutable
from runbook_nb.record.paths import Path, followed, in_branch, into_items, item_paths
from runbook_nb.record.secrets import MIN_SECRET
from runbook_nb.record.told import as_data, entries_of, told
from runbook_nb.rules.decision import Decision, Selection, judged_values

#: Where a policy hides something in an object: paths from it, the empty one for all of it.
Carried = Mapping[int, tuple[Any, tuple[Path, ...]]]


class Lesson:
    """Collects what one policy learns.

    Parameters
    ----------
    named : callable
        Says whether a policy names something.
    top : sequence of tuple
        The paths of the policy, from the top of a state.

    Attributes
    ----------
    top : tuple of tuple
        The same, and where branches have what a name led to in the items of a list.
    texts : set of str
        Secret texts, of at least `MIN_SECRET` characters.
    carried : dict
        By the ``id`` of an object: itself, so that the id stays its own, and where it hides
        something.
    """

    __slots__ = ("_named", "carried", "texts", "top")

    def __init__(self, named: Callable[[str], bool], top: Sequence[Path] = ()) -> None:
        self._named = named
        self.top = tuple(top)
        self.texts: set[str] = set()
        self.carried: dict[int, tuple[Any, tuple[Path, ...]]] = {}

    def take(self, value: Any, paths: Sequence[Path], *, any_item: bool = False) -> None:
        """Look through a value; ``paths`` lead from it to what is hidden."""
        with suppress(RecursionError):  # such a value is hidden whole when served
            self._take(value, paths, False, any_item)

    def hide(self, value: Any) -> None:
        """Learn a value that is hidden as a whole."""
        with suppress(RecursionError):
            self._take(value, (), True, False)

    def _take(self, value: Any, paths: Sequence[Path], hidden: bool, any_item: bool) -> None:
        if isinstance(value, str | bytes | bytearray) or value.__class__ in ATOMS:
            if hidden:
                self._tell(value)
        elif (entries := entries_of(value)) is not None:
            if value.__class__ is not dict:  # what is recorded is frozen; this was made to be read
                self._carry(value, paths, hidden)
            self._entries(entries, paths, hidden, any_item)
        elif isinstance(value, Decision | Selection):
            self._carry(value, (), hidden)
            for judged in judged_values(value.path, value.raw_values):
                self._entries((judged,), self.top, hidden, False)
        elif isinstance(value, Sequence | set | frozenset):
            self._listed(value, paths, hidden, any_item)
        else:
            self._object(value, paths, hidden, any_item)

    def _entries(
        self,
        entries: Iterable[tuple[Any, Any]],
        paths: Sequence[Path],
        hidden: bool,
        any_item: bool,
    ) -> None:
        for key, item in entries:
            word = str(key)
            now, rest = followed(paths, word)
            if self._named(word):
                now = True
                self._met(word)
            elif now:
                self._met(None)
            self._take(item, rest, hidden or now, any_item)

    def _listed(self, value: Any, paths: Sequence[Path], hidden: bool, any_item: bool) -> None:
        if isinstance(value, Immutable):
            # Slots: what they hold was recorded when it came about; only a name hides more.
            if hidden or paths:
                made: Any = value
                made = [one.to_dict() if hasattr(one, "to_dict") else one for one in made]
                self._items(made, paths, hidden, any_item)
            return
        if not any_item:
            self._carry(value, paths, hidden)
        self._items(value, paths, hidden, any_item)

    def _items(self, items: Any, paths: Sequence[Path], hidden: bool, any_item: bool) -> None:
        for path in into_items(paths):
            # As if it were written with [*]: an item may be loaded into the state of a branch.
            self.top = tuple(dict.fromkeys((*self.top, *in_branch(path))))
        for index, item in enumerate(items):
            now, rest = item_paths(paths, index, any_item=any_item)
            if now:
                self._met(None)
            self._take(item, rest, hidden or now, any_item)

    def _object(self, value: Any, paths: Sequence[Path], hidden: bool, any_item: bool) -> None:
        self._carry(value, paths, hidden)
        data = as_data(value)
        if data is not None:
            self._take(data[0], paths, hidden, any_item)
        elif hidden:
            listed = getattr(value, "tolist", None)
            if callable(listed) and getattr(value, "ndim", None):
                with suppress(Exception):  # whatever a foreign object does
                    self._take(listed(), paths, hidden, any_item)
            else:
                self._tell(value)

    def _met(self, name: str | None) -> None:
        """Hear of a name that is hidden, or of the end of a path; for who counts."""

    def _tell(self, value: Any) -> None:
        self.texts.update(text for text in told(value) if len(text) >= MIN_SECRET)

    def _carry(self, value: Any, paths: Sequence[Path], hidden: bool) -> None:
        if not hidden and not paths:
            return
        try:
            if not len(value):
                return  # all empty tuples are one
        except TypeError:
            pass
        before = self.carried.get(id(value), (value, ()))[1]
        here: tuple[Path, ...] = ((),) if hidden else tuple(paths)
        self.carried[id(value)] = (value, tuple(dict.fromkeys((*before, *here))))
