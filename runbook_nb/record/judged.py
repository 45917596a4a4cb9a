"""Branches that were judged by columns: per subject one small number, everything else by kind.

Record layer. The branches of rows that have the same keys and went the same way are of one kind:
the first of them ran, and its codes are those of all. What differs between them stands in the
columns the rows came in, so that their values are views: one branch's are gathered when somebody
looks at it, those of many are read off a column.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, overload
from weakref import WeakValueDictionary

from runbook_nb._frozen import FrozenDict, freeze
from runbook_nb._text import MISSING
from runbook_nb.errors import ENDS_RUN, RuleError, describe_error
from runbook_nb.record.log import WIDTHS
from runbook_nb.record.shapes import facts_of
from runbook_nb.record.tallies import mapped, places_of
from runbook_nb.record.tracks import NOT_REACHED, STATUS_WORDS, FanOut, Track
from runbook_nb.rules.columns import Columns, smallest
from runbook_nb.rules.evaluate import judge_facts
from runbook_nb.rules.held import CHUNK
from runbook_nb.rules.judging import read
from runbook_nb.rules.plan import DecisionPath

if TYPE_CHECKING:
    from runbook_nb.record.log import Event, Shape, Tables
    from runbook_nb.rules.ruleset import RuleSet

#: Per branch the number of its kind.
Numbers = bytes | array  # type: ignore[type-arg]


class Constant(NamedTuple):
    """A value that all branches of a kind recorded."""

    value: Any

    def one(self, items: Columns, index: int) -> Any:
        """Give the value of one branch."""
        return self.value

    def many(self, items: Columns, indices: Iterable[int]) -> Sequence[Any]:
        """Give the values of some branches."""
        return [self.value for _ in indices]


class Told(NamedTuple):
    """What went wrong alike in all branches of a kind: each has a mapping of its own that says so.

    Who writes a record down tells one object from an equal one.
    """

    value: Any

    def one(self, items: Columns, index: int) -> Any:
        """Give the value of one branch."""
        return FrozenDict(self.value)

    def many(self, items: Columns, indices: Iterable[int]) -> Sequence[Any]:
        """Give the values of some branches."""
        return [FrozenDict(self.value) for _ in indices]


class Cell(NamedTuple):
    """A value that stands in the row itself, under a key that a column has."""

    key: str

    def one(self, items: Columns, index: int) -> Any:
        """Give the value of one branch."""
        return items.values(self.key, (index,))[0]

    def many(self, items: Columns, indices: Iterable[int]) -> Sequence[Any]:
        """Give the values of some branches."""
        return items.values(self.key, indices)


class Followed(NamedTuple):
    """A value that a condition found by following a dotted key."""

    key: str

    def one(self, items: Columns, index: int) -> Any:
        """Give the value of one branch."""
        try:
            return read(items, index, self.key)
        except ENDS_RUN:
            raise
        except Exception:  # the condition found nothing either
            return MISSING

    def many(self, items: Columns, indices: Iterable[int]) -> Sequence[Any]:
        """Give the values of some branches."""
        return [self.one(items, index) for index in indices]


class Refusal(NamedTuple):
    """What went wrong where rules refuse to decide; it tells of the value that was read."""

    rules: RuleSet

    def one(self, items: Columns, index: int) -> Any:
        """Give the value of one branch."""
        try:
            judge_facts(self.rules, items[index])
        except RuleError as error:
            return freeze(describe_error(error))
        return None

    def many(self, items: Columns, indices: Iterable[int]) -> Sequence[Any]:
        """Give the values of some branches."""
        return [self.one(items, index) for index in indices]


Source = Constant | Told | Cell | Followed | Refusal


class Kind(NamedTuple):
    """What branches that went the same way have in common.

    Attributes
    ----------
    shape : int
        The number of their shape.
    status : int
        What became of them.
    sources : tuple
        Where each of their values is found.
    """

    shape: int
    status: int
    sources: tuple[Source, ...]


class Alike(Sequence[int]):
    """The branches of some kinds, in item order; counted without being listed.

    Examples
    --------
    >>> some = Alike(bytes([0, 1, 0, 0]), (0,))
    >>> len(some), some[0], list(some), some[1:]
    (3, 0, [0, 2, 3], [2, 3])
    """

    __slots__ = ("_kinds", "_length", "_numbers", "_places")

    def __init__(
        self, numbers: Sequence[int], kinds: tuple[int, ...], length: int | None = None
    ) -> None:
        self._numbers = numbers
        self._kinds = kinds
        self._length = sum(map(numbers.count, kinds)) if length is None else length
        #: All of them, once one of them was looked up.
        self._places: Sequence[int] | None = None

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[int]:
        return iter(self._found())

    def _found(self) -> Sequence[int] | compress[int]:
        size = len(self._numbers)
        if self._length == size:
            return range(size)
        if len(self._kinds) == 1:
            return places_of(self._numbers, self._kinds[0])
        return compress(range(size), map(set(self._kinds).__contains__, self._numbers))

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        if index == 0 and self._length:
            return min(map(self._numbers.index, self._kinds))
        if isinstance(index, slice):
            return list(self)[index]
        if self._places is None:
            found = self._found()
            self._places = list(found) if isinstance(found, compress) else found
        return self._places[index]


_TAKES: Final = "write"

#: So many are made ahead at first.
FIRST: Final = 4


class Ahead:
    """Makes many things at a time for who looks at one after the other.

    Examples
    --------
    >>> ahead, tens = Ahead(), lambda places: [place * 10 for place in places]
    >>> [ahead.get(place, 4, tens) for place in (0, 1, 2, 0)]
    [None, 10, 20, None]
    """

    __slots__ = ("_made", "_next", "_size")

    def __init__(self) -> None:
        self._next = -1
        self._size = FIRST
        self._made: tuple[int, list[Any]] = (0, [])

    def get(self, place: int, end: int, make: Callable[[range], list[Any]]) -> Any:
        """Give a thing that was made ahead, or is now; None to whoever looks here and there.

        ``make`` makes those of a range.
        """
        start, made = self._made
        if start <= place < start + len(made):
            return made[place - start]
        if place != self._next:
            self._next, self._size = place + 1, FIRST
            return None
        made = make(range(place, min(place + self._size, end)))
        self._made = place, made
        # Two neighbours may be all that is wanted: the further somebody goes, the more are made.
        self._size = min(2 * self._size, CHUNK)
        self._next = place + len(made)
        return made[0]


class JudgedFan(FanOut):
    """The branches of one execution of a stage that judges each row of columns.

    Attributes
    ----------
    items : Columns
        Every row, those past the cap included.
    rules : RuleSet
        What judged them.
    kinds : list of Kind
        What is told of the branches, in order of the first of each kind.
    numbers : bytes or array
        The kind of each branch that began. They begin in item order, so whatever is past them
        never did.
    """

    __slots__ = ("_counted", "_handed", "_parts", "_rows", "_tally", "kinds", "numbers", "rules")

    items: Columns

    def __init__(self, log: Tables, *args: Any, rules: RuleSet, **facts: Any) -> None:
        super().__init__(log, *args, room=False, **facts)
        self.rules = rules
        self.kinds: list[Kind] = []
        self.numbers: Numbers = b""
        self._forget()

    def _forget(self) -> None:
        #: How many branches are of each kind, once that was asked.
        self._tally: list[int] = []
        #: How many are of each shape, and the numbers that were counted.
        self._counted: tuple[Any, int, dict[int, int]] | None = None
        #: Rows that somebody has, so that each is one object and no other.
        self._handed: WeakValueDictionary[int, FrozenDict] | None = None
        self._rows = Ahead()
        self._parts = Ahead()

    # -- filing ----------------------------------------------------------------------------

    def close(self, index: int, track: Track, status: int, note: str | None = None) -> None:
        """Take the branch that ran as the first of its kind; `file` says which others are."""
        codes = tuple(track.codes)
        events = facts_of(self.log, self.log.shapes[self.log.shape_number(codes)]).events
        self.keep(codes, status, self._sources(track, events))
        if note is not None:
            self.notes[index] = note

    def keep(self, codes: tuple[int, ...], status: int, sources: tuple[Source, ...]) -> None:
        """Take what all branches of a kind appended, and where each of their values is found."""
        self.kinds.append(Kind(self.log.shape_number(codes), status, sources))

    def file(self, numbers: Sequence[int]) -> None:
        """Say of which kind each branch is that began."""
        # Whatever a refusal says differs by row: ways that were told apart may be of one kind.
        first: dict[tuple[int, int], int] = {}
        same = [first.setdefault(kind[:2], n) for n, kind in enumerate(self.kinds)]
        if len(first) < len(same):
            order = {n: place for place, n in enumerate(first.values())}
            table = [order[n] for n in same]
            self.kinds = [self.kinds[n] for n in first.values()]
            numbers = list(map(table.__getitem__, numbers))
        most = len(self.kinds) - 1
        kept = isinstance(numbers, bytes | array)
        self.numbers = numbers if kept else smallest(numbers, most)  # type: ignore[assignment]
        self._tally = []

    def _sources(self, track: Track, events: Iterable[Event]) -> tuple[Source, ...]:
        """Say where each value of a branch is found."""
        found: list[Source] = []
        values = track.values
        rows: Any = None
        for (kind, stage, key, path), at, _ in events:
            if rows is None:
                rows = stage
            if path is not None:
                found += compared(path)
            elif kind == _TAKES and stage == rows:
                found.append(Cell(key or ""))
            elif kind == "error":
                found.append(Refusal(self.rules) if self._refused(track) else Told(values[at]))
            elif WIDTHS[kind]:
                found += map(Constant, values[at : at + WIDTHS[kind]])
        return tuple(found)

    def _refused(self, track: Track) -> bool:
        return all(self.log.codes[number].path is None for number in track.codes)

    def move(self, log: Tables, numbers: Sequence[int]) -> None:
        """Belong to another log from now on, where its shapes have these numbers."""
        self.log = log.tables
        self.kinds = [kind._replace(shape=numbers[kind.shape]) for kind in self.kinds]
        self._counted = None

    def __getstate__(self) -> dict[str, Any]:
        kept = (name for cls in (FanOut, JudgedFan) for name in cls.__slots__)
        return {name: getattr(self, name) for name in kept if not name.startswith("_")}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._forget()

    def refile(self, statuses: Iterable[int], shapes: Iterable[int]) -> None:
        """Not to be done: what is read back is filed branch by branch."""
        raise NotImplementedError

    fill = put = refile  # type: ignore[assignment]

    # -- asking ----------------------------------------------------------------------------

    def item(self, index: int) -> Any:
        """Give a row: the same object as long as somebody has it."""
        if self._handed is None:
            self._handed = WeakValueDictionary()
        row = self._handed.get(index)
        if row is None:
            row = self._rows.get(index, len(self), self._read)
            row = self._handed.setdefault(index, self.items[index] if row is None else row)
        return row

    def _read(self, indices: range) -> list[Any]:
        return list(self.items[indices.start : indices.stop])

    def part(self, index: int) -> tuple[Sequence[Any], int]:
        """Gather the values of a branch."""
        if index >= len(self.numbers):
            return (), 0
        part = self._parts.get(index, len(self.numbers), self._gathered)
        if part is not None:
            return part, 0
        items = self.items
        sources = self.kinds[self.numbers[index]].sources
        return tuple([source.one(items, index) for source in sources]), 0

    def _gathered(self, indices: range) -> list[tuple[Any, ...]]:
        """Gather the values of neighbouring branches, each column read once."""
        items = self.items
        numbers = self.numbers[indices.start : indices.stop]
        kinds = [self.kinds[number].sources for number in range(len(self.kinds))]
        columns: dict[Source, Sequence[Any]] = {}
        for number in set(numbers):
            for source in kinds[number]:
                if isinstance(source, Cell) and source not in columns:
                    columns[source] = source.many(items, indices)
        return [
            tuple(
                [
                    columns[source][place]
                    if source.__class__ is Cell
                    else source.one(items, indices.start + place)
                    for source in kinds[number]
                ]
            )
            for place, number in enumerate(numbers)
        ]

    def column(self, at: int, indices: Iterable[int]) -> Sequence[Any]:
        """Read the values at one place off the column they stand in."""
        some: Sequence[int] = indices if isinstance(indices, range) else list(indices)
        if len(some) == len(self.numbers) and isinstance(indices, Alike):
            some = range(len(some))  # all of them: columns are read off whole
        if not some:
            return []
        return self.kinds[self.numbers[some[0]]].sources[at].many(self.items, some)

    def tables(self) -> Callable[[int, Sequence[int]], None]:
        """Give what gives nothing: each column is read off where it stands."""
        return lambda width, indices: None

    def item_key(self, at: int, indices: Sequence[int]) -> str | None:
        """Give the key of the items' column that a column of the branches is."""
        if not indices:
            return None
        source = self.kinds[self.numbers[indices[0]]].sources[at]
        return source.key if isinstance(source, Cell) else None

    def shape(self, index: int) -> Shape | None:
        """Give the shape of a branch, or None when it never began."""
        if index >= len(self.numbers):
            return None
        return self.log.shapes[self.kinds[self.numbers[index]].shape]

    def shape_numbers(self) -> Sequence[int]:
        """Give the number of the shape of every branch; -1 where one never began."""
        found = mapped(self.numbers, {n: kind.shape for n, kind in enumerate(self.kinds)})
        left = len(self) - len(found)
        return found if not left else array("i", found) + array("i", [-1]) * left

    def status_number(self, index: int) -> int:
        """Say what became of a branch."""
        if index >= len(self.numbers):
            return NOT_REACHED
        return self.kinds[self.numbers[index]].status

    def status_numbers(self) -> Sequence[int]:
        """Give what became of every branch, in item order."""
        found = mapped(self.numbers, {n: kind.status for n, kind in enumerate(self.kinds)})
        return found.tobytes() + bytes([NOT_REACHED]) * (len(self) - len(found))

    def status(self, index: int) -> str:
        """Give the status word of a branch."""
        return STATUS_WORDS[self.status_number(index)]

    def status_count(self, status: int) -> int:
        """Count the branches that ended like this."""
        counted = zip(self.kinds, self._times(), strict=True)
        found = sum([times for kind, times in counted if kind.status == status])
        return found + (len(self) - len(self.numbers) if status == NOT_REACHED else 0)

    def ended_as(self, *statuses: int) -> Iterator[int]:
        """Yield the branches that ended in one of these ways, in item order."""
        kinds = tuple(n for n, kind in enumerate(self.kinds) if kind.status in statuses)
        yield from self._alike(kinds)
        if NOT_REACHED in statuses:
            yield from range(len(self.numbers), len(self))

    @property
    def begun_count(self) -> int:
        """How many branches began."""
        return len(self.numbers)

    def _times(self) -> list[int]:
        """Count the branches of each kind; what was filed is counted once."""
        if len(self._tally) != len(self.kinds):
            numbers = self.numbers
            tally = list(map(numbers.count, range(len(self.kinds))))
            if self.numbers is not numbers:  # filed meanwhile, while somebody looks on
                return tally
            self._tally = tally
        return self._tally

    def _alike(self, kinds: tuple[int, ...]) -> Alike:
        return Alike(self.numbers, kinds, sum(map(self._times().__getitem__, kinds)))

    def _by(self, wide: int) -> dict[Any, tuple[int, ...]]:
        """Give the kinds by the first facts of each, in order of first branch."""
        found: dict[Any, tuple[int, ...]] = {}
        for number, kind in enumerate(self.kinds):
            key = kind[:wide] if wide > 1 else kind.shape
            found[key] = (*found.get(key, ()), number)
        return found

    def shape_counts(self) -> dict[int, int]:
        """Count the branches that began by the number of their shape."""
        numbers, many, known = self.numbers, len(self.kinds), self._counted
        if known is None or known[0] is not numbers or known[1] != many:
            count = self._times().__getitem__
            counts = {shape: sum(map(count, kinds)) for shape, kinds in self._by(1).items()}
            self._counted = known = numbers, many, counts
        return dict(known[2])

    def shape_ends(self) -> dict[int, tuple[int, int]]:
        """Give the first and the last branch of each shape, in order of first branch."""
        found: dict[int, tuple[int, int]] = {}
        for shape, kinds in self._by(1).items():
            first = min(map(self.numbers.index, kinds))
            found[shape] = first, max(map(self._last, kinds))
        return found

    def _last(self, kind: int) -> int:
        numbers = self.numbers
        if isinstance(numbers, bytes):
            return numbers.rindex(kind)
        return next(at for at in range(len(numbers) - 1, -1, -1) if numbers[at] == kind)

    def of_shapes(self) -> dict[int, Sequence[int]]:
        """Give the branches that began by the number of their shape, in order of first branch."""
        return {shape: self._alike(kinds) for shape, kinds in self._by(1).items()}

    def alike(self) -> dict[tuple[int, int], Sequence[int]]:
        """Give the branches that began by shape and status, in order of first branch."""
        return {key: self._alike(kinds) for key, kinds in self._by(2).items()}

    def alike_counts(self) -> dict[tuple[int, int], int]:
        """Count the branches that began by shape and status, in order of first branch."""
        count = self._times().__getitem__
        return {key: sum(map(count, kinds)) for key, kinds in self._by(2).items()}

    @property
    def value_count(self) -> int:
        """How many values the branches recorded."""
        counted = zip(self.kinds, self._times(), strict=True)
        return sum(times * len(kind.sources) for kind, times in counted)

    def subject_of(self, index: int) -> Any:
        """Give the value that names an item, or None."""
        if self.subject is None:
            return None
        found = self.items.values(self.subject, (index,))[0]
        return None if found is MISSING else found


def compared(path: DecisionPath) -> Iterator[Source]:
    """Say where the values of a decision are found."""
    for key in path.compared:
        yield Followed(key) if "." in key else Cell(key)
