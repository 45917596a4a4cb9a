"""Which branch a subject went through: an index over the fan-outs of a walk, built once.

Record layer. One place per item, however deep its fan-out lies in the branches of others, so that
asking for one subject of a million looks at that one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from runbook_nb._rows import FrozenRows
from runbook_nb._text import MISSING, show
from runbook_nb.record.log import FanOut
from runbook_nb.record.places import same_subject

#: The exact classes of items that are subjects themselves.
_PLAIN: Final = frozenset({str, int, float})

#: A fan-out, and the path before its branches.
Fan = tuple[FanOut, str]


class SubjectIndex:
    """Finds the branches of a subject.

    Parameters
    ----------
    fans : iterable of (FanOut, str)
        The fan-outs, outer ones first, each with the path before it.

    Examples
    --------
    >>> from runbook_nb.record.log import OK, Log, StageRef, Track
    >>> fan = FanOut(Log(), StageRef("e", "E", "fan_out"), ["a", "b"], cap=9, into=None)
    >>> fan.close(1, Track(), OK)
    >>> index = SubjectIndex([(fan, "")])
    >>> [place for _, place, _ in index.find("b")], list(index.find("a"))
    ([1], [])
    """

    __slots__ = ("_bases", "_built", "_fans", "_odd", "_places", "_texts")

    def __init__(self, fans: Iterable[Fan]) -> None:
        self._fans: list[Fan] = [fan for fan in fans if len(fan[0])]
        #: The number of the first item of each fan-out, all items counted through.
        self._bases: list[int] = []
        #: What names an item -> its number, or several.
        self._places: dict[Any, int | list[int]] = {}
        #: Numbers of items whose names no mapping can hold; of others that are no texts.
        self._odd: list[int] = []
        self._texts: dict[str, list[int]] | None = None
        #: Who asks by positions alone has no name looked up.
        self._built = False

    def _build(self) -> None:
        total = 0
        for fan, _ in self._fans:
            self._bases.append(total)
            self._add(subjects_of(fan), total)
            total += len(fan)
        self._built = True

    def _add(self, subjects: Sequence[Any], base: int) -> None:
        places = self._places
        if set(map(type, subjects)) == {str}:
            found = dict(zip(subjects, range(base, base + len(subjects)), strict=True))
            if len(found) == len(subjects) and (not places or places.keys().isdisjoint(found)):
                places.update(found)
                return
        for number, subject in enumerate(subjects, base):
            key = subject if subject.__class__ is str else (subject.__class__, subject)
            try:
                known = places.get(key)
            except TypeError:
                self._odd.append(number)
                continue
            if known is None:
                places[key] = number
            elif isinstance(known, list):
                known.append(number)
            else:
                places[key] = [known, number]

    def find(
        self, subject: Any = MISSING, index: int | None = None, stage: str | None = None
    ) -> Iterator[tuple[FanOut, int, str]]:
        """Yield the branches that began for a subject, or at a position, or in a fan-out."""
        if subject is MISSING:
            yield from self._all(index, stage)
            return
        if not self._built:
            self._build()
        for number in self._numbers(subject):
            at = bisect_right(self._bases, number) - 1
            (fan, prefix), place = self._fans[at], number - self._bases[at]
            if (
                (index is None or place == index)
                and (stage is None or fan.stage.id == stage)
                and fan.shape(place) is not None
                and same_subject(fan.subject_of(place), subject)
            ):
                yield fan, place, prefix

    def _all(self, index: int | None, stage: str | None) -> Iterator[tuple[FanOut, int, str]]:
        for fan, prefix in self._fans:
            if stage is not None and fan.stage.id != stage:
                continue
            for place in range(len(fan)) if index is None else (index,):
                if 0 <= place < len(fan) and fan.shape(place) is not None:
                    yield fan, place, prefix

    def _numbers(self, subject: Any) -> Sequence[int]:
        """Give the numbers of all items that may be of a subject, in order."""
        key = subject if subject.__class__ is str else (subject.__class__, subject)
        try:
            known = self._places.get(key, [])
        except TypeError:
            return self._odd
        numbers = {*(known if isinstance(known, list) else (known,)), *self._odd}
        if isinstance(subject, str):
            numbers.update(self._by_text().get(subject, ()))
        return sorted(numbers)

    def _by_text(self) -> dict[str, list[int]]:
        """Give the numbers of items by the text of a name that is none itself."""
        if self._texts is None:
            self._texts = {}
            for key, known in self._places.items():
                if key.__class__ is tuple:
                    numbers = known if isinstance(known, list) else [known]
                    self._texts.setdefault(show(key[1]), []).extend(numbers)
        return self._texts


def subjects_of(fan: FanOut) -> Sequence[Any]:
    """Give what names each item of a fan-out, None where nothing does; see `FanOut.subject_of`.

    Examples
    --------
    >>> from runbook_nb.record.log import Log, StageRef
    >>> fan = FanOut(Log(), StageRef("e", "E", "fan_out"), [{"id": "a"}, {}], cap=9, into=None,
    ...              subject="id")
    >>> subjects_of(fan)
    ['a', None]
    """
    items, key = fan.items, fan.subject
    if isinstance(items, FrozenRows):
        return [None] * len(items) if key is None else items.under(key)
    column = getattr(items, "column", None)
    if callable(column):  # rows that are kept as columns need not be made for that
        found = column(key) if key is not None and key in getattr(items, "names", ()) else ()
        held = [None if value is MISSING else value for value in found]
        return held or [None] * len(items)
    if _PLAIN.issuperset(map(type, items)):
        return items
    return [fan.subject_of(index) for index in range(len(fan))]


__all__ = ["SubjectIndex", "subjects_of"]
