"""Where codes and their values stand: in one track, or in the branches of a fan-out.

Record layer. A `Track` is open for appending; a `FanOut` holds branches that ended, each as the
number of its shape and its values. Who reads a fan-out asks it, and never looks at the arrays, so
that branches may be held in another way.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain, repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from runbook_nb.record.tallies import (
    Identities,
    first_and_last,
    gathered,
    gathered_pairs,
    numpy_for,
    standing,
    tally,
    tally_pairs,
    vector_of,
)

if TYPE_CHECKING:
    from runbook_nb.record.log import Shape, StageRef, Tables


class Track:
    """One sequence of codes with its values, open for appending while its chart runs."""

    __slots__ = ("codes", "counted", "values")

    def __init__(self) -> None:
        self.codes: list[int] = []
        self.values: list[Any] = []
        #: How many codes were looked through for executed stages, and how many there were.
        self.counted = (0, 0)

    def add(self, code: int, *values: Any) -> None:
        """Append one code with the values that go with it."""
        self.codes.append(code)
        self.values.extend(values)


NOT_REACHED: Final = 0
OK: Final = 1
FAILED: Final = 2
STATUS_WORDS: Final = ("not_reached", "ok", "failed")

#: What branches are of: the items of a fan-out, the children of a fork, what was selected.
FORMS: Final = ("fan_out", "fork", "selection")


class Filed(NamedTuple):
    """What became of branches: shapes and where their values begin, values, statuses, notes."""

    shapes: array[int]
    offsets: array[int]
    values: list[Any]
    statuses: bytes
    notes: dict[int, str]


class Gathered:
    """The columns of the branches of one shape, each made a list when it is asked for."""

    __slots__ = ("_found", "_places", "_starts")

    def __init__(self, found: Identities, starts: Any, places: Any) -> None:
        self._found = found
        self._starts = starts
        self._places = places

    def __getitem__(self, at: int) -> list[Any]:
        column: list[Any] = self._found.held[self._starts + at].tolist()
        return column

    def is_same(self, at: int, others: Identities) -> bool:
        """Say whether a column is what another, of all branches, holds at their places."""
        there, starts, places = others.numbers, self._starts, self._places
        mine = self._found.numbers
        if not len(places) or mine[starts[0] + at] != there[places[0]]:
            return False
        if len(places) < len(there):  # branches are in the order of their items
            there = there[places]
        return bool((mine[starts + at] == there).all())


#: Gives the columns, so many, of branches of one shape.
Table = Callable[[int, Sequence[int]], Sequence[Sequence[Any]] | Gathered | None]


class FanOut:
    """The branches of one execution of a fan-out, in item order.

    The branches of a fork, and those a selector selected, are kept the same way; their items are
    the words of the branches.

    Attributes
    ----------
    stage : StageRef
        The fan-out stage.
    items : sequence
        Every item, those past the cap included.
    cap : int
        How many of them could be judged.
    into, subject : str or None
        State key the slots went to; key of an item that names its subject.
    execution : int
        Which executed stage of its track it is, counted as in that stage's id.
    form : str
        One of `FORMS`.
    bases : array of int or None
        Where the executions of each branch begin to count: on a later visit in a loop they go on
        from the visit before.
    statuses : bytearray
        One of `NOT_REACHED`, `OK`, `FAILED` per item.
    """

    __slots__ = (
        "_counts",
        "bases",
        "cap",
        "execution",
        "form",
        "into",
        "items",
        "log",
        "notes",
        "offsets",
        "shapes",
        "stage",
        "statuses",
        "subject",
        "values",
    )

    def __init__(
        self,
        log: Tables,
        stage: StageRef,
        items: Sequence[Any],
        *,
        cap: int,
        into: str | None,
        subject: str | None = None,
        execution: int = 0,
        form: str = "fan_out",
        bases: array[int] | None = None,
        room: bool = True,
    ) -> None:
        self.form = form
        self.bases = bases
        self.execution = execution
        self.log = log.tables
        self.stage = stage
        self.items = items
        self.cap = cap
        self.into = into
        self.subject = subject
        size = len(items) if room else 0
        self.statuses = bytearray(size)
        self.shapes = array("i", [-1]) * size
        self.offsets = array("q", [0]) * size
        self.values: list[Any] = []
        #: Why a branch has no value of its own, where its track does not say it (index -> text).
        self.notes: dict[int, str] = {}
        self.changed()

    def changed(self) -> None:
        """Forget what was counted: branches are filed after it."""
        self._counts: dict[int, int] | None = None

    def close(self, index: int, track: Track, status: int, note: str | None = None) -> None:
        """File a branch that ended, under its item's index."""
        self.changed()
        self.shapes[index] = self.log.shape_number(tuple(track.codes))
        self.offsets[index] = len(self.values)
        self.values.extend(track.values)
        self.statuses[index] = status
        if note is not None:
            self.notes[index] = note

    def refile(self, statuses: Iterable[int], shapes: Iterable[int]) -> None:
        """File all branches at once, under the numbers of their shapes; see `fill`."""
        self.changed()
        self.statuses = bytearray(statuses)
        self.shapes = array("i", shapes)
        if self.shapes:
            widths = {number: self._width(number) for number in tally(self.shapes)}
            begins = accumulate(map(widths.__getitem__, self.shapes[:-1]), initial=0)
            self.offsets = array("q", begins)

    def _width(self, number: int) -> int:
        """Say how many values a branch of a shape has."""
        return 0 if number < 0 else self.log.width_of(self.log.shapes[number].codes)

    def fill(self, columns: Iterable[tuple[int, Sequence[int], Sequence[Any]]]) -> None:
        """Give all branches their values: the arguments of `put`, for every place of each."""
        found: dict[int, list[Sequence[Any]]] = {number: [] for number in tally(self.shapes)}
        for _, indices, values in columns:
            found[self.shapes[indices[0]]].append(values)
        parts = {
            number: zip(*some, strict=True) if some else repeat(())
            for number, some in found.items()
        }
        # Each branch takes the next values of its shape.
        each = map(next, map(parts.__getitem__, self.shapes))
        self.values = list(chain.from_iterable(each))

    @property
    def value_count(self) -> int:
        """How many values the branches recorded."""
        return len(self.values)

    def put(self, at: int, indices: Iterable[int], values: Iterable[Any]) -> None:
        """Put values in the places of a `column`."""
        held, offsets = self.values, self.offsets
        for index, value in zip(indices, values, strict=True):
            held[offsets[index] + at] = value

    def reopen(self, index: int) -> Track:
        """Take a branch that paused out again, to go on with it."""
        track = Track()
        shape = self.shape(index)
        if shape is not None:
            values, start = self.part(index)
            track.codes.extend(shape.codes)
            track.values.extend(values[start : start + self.log.width_of(shape.codes)])
        self.notes.pop(index, None)
        return track

    def filed(self) -> Filed:
        """Give what became of all branches, to be filed in another fan-out."""
        return Filed(self.shapes, self.offsets, self.values, bytes(self.statuses), self.notes)

    def take(self, first: int, filed: Filed) -> None:
        """File branches that ended elsewhere: those of the items from ``first`` on.

        Their shapes are numbered as in this one's log.
        """
        self.changed()
        start, last = len(self.values), first + len(filed.shapes)
        self.shapes[first:last] = filed.shapes
        self.offsets[first:last] = array("q", [start + offset for offset in filed.offsets])
        self.statuses[first:last] = filed.statuses
        self.values.extend(filed.values)
        self.notes.update((first + index, note) for index, note in filed.notes.items())

    def deny(self, index: int, why: str) -> None:
        """Say of a branch that ended well that it failed all the same."""
        if self.statuses[index] == OK:
            self.statuses[index] = FAILED
            self.notes[index] = why

    def move(self, log: Tables, numbers: Sequence[int]) -> None:
        """Belong to another log from now on, where its shapes have these numbers."""
        self.log = log.tables
        self.changed()
        self.shapes = array("i", [n if n < 0 else numbers[n] for n in self.shapes])

    def __len__(self) -> int:
        return len(self.items)

    @property
    def is_fan_out(self) -> bool:
        """Whether its branches are of items, each in a chart of its own."""
        return self.form == "fan_out"

    def base(self, index: int) -> int:
        """Give the number that the executions of a branch begin with."""
        return 0 if self.bases is None else self.bases[index]

    def path(self, prefix: str, index: int) -> str:
        """Give the path that the ids inside a branch begin with.

        The children of a fork are stages of the chart the fork is in, so they add nothing to it.
        """
        return f"{prefix}{self.stage.key}~{index}/" if self.is_fan_out else prefix

    def template(self, prefix: str) -> str:
        """Give what the structure's keys inside a branch begin with."""
        return f"{prefix}{self.stage.key}/" if self.is_fan_out else prefix

    # -- what became of the branches; nothing else looks at the arrays --

    def item(self, index: int) -> Any:
        """Give an item: the same object as long as somebody has it."""
        return self.items[index]

    def each_item(self) -> Iterator[Any]:
        """Give what `item` gives of every branch, in item order."""
        if type(self).item is not FanOut.item:
            return map(self.item, range(len(self)))
        return iter(self.items)

    def part(self, index: int) -> tuple[Sequence[Any], int]:
        """Give the values of a branch: the sequence they stand in, and where they begin there."""
        return self.values, self.offsets[index]

    def parts(self) -> Iterator[tuple[Sequence[Any], int]]:
        """Give what `part` gives of every branch, in item order."""
        if type(self).part is not FanOut.part:
            return map(self.part, range(len(self)))
        return zip(repeat(self.values), self.offsets)

    def column(self, at: int, indices: Iterable[int]) -> Sequence[Any]:
        """Give the values at one place, counted from their beginnings, of branches of one shape."""
        values, offsets = self.values, self.offsets
        return [values[offsets[index] + at] for index in indices]

    def tables(self) -> Table:
        """Give what gives all columns, so many, of branches of one shape, had together.

        It gives None where a `column` is as quickly had alone.
        """
        values, offsets = self.values, self.offsets
        numpy = numpy_for(len(values))
        if numpy is not None:
            found = Identities(values)
            begins = vector_of(offsets, numpy)

            def taken(width: int, indices: Sequence[int]) -> Gathered:
                places = vector_of(indices, numpy)
                return Gathered(found, begins[places], places)

            return taken

        def gathered(width: int, indices: Sequence[int]) -> Sequence[Sequence[Any]]:
            starts = [offsets[index] for index in indices]
            return [[values[start + at] for start in starts] for at in range(width)]

        return gathered

    def item_key(self, at: int, indices: Sequence[int]) -> str | None:
        """Give the key under which a `column` stands in the items, where that is how it is kept."""
        return None

    def shape(self, index: int) -> Shape | None:
        """Give the shape of a branch, or None when it never began."""
        number = self.shapes[index]
        return None if number < 0 else self.log.shapes[number]

    def shape_numbers(self) -> Sequence[int]:
        """Give the number of the shape of every branch; -1 where one never began."""
        return self.shapes

    def shape_counts(self) -> dict[int, int]:
        """Count the branches that began by the number of their shape, in order of first branch."""
        counts = self._counts
        if counts is None:
            counts = tally(self.shape_numbers())
            counts.pop(-1, None)
            self._counts = counts
        return dict(counts)

    def shape_ends(self) -> dict[int, tuple[int, int]]:
        """Give the first and the last branch of each shape, in order of first branch."""
        ends = first_and_last(self.shape_numbers())
        ends.pop(-1, None)
        return ends

    def of_shapes(self) -> dict[int, Sequence[int]]:
        """Give the branches that began by the number of their shape, in order of first branch."""
        numbers = self.shape_numbers()
        found = gathered(numbers)
        found.pop(-1, None)
        return found

    def alike(self) -> dict[tuple[int, int], Sequence[int]]:
        """Give the branches that began by shape and status, in order of first branch."""
        numbers, statuses = self.shape_numbers(), self.status_numbers()
        if statuses and statuses.count(statuses[0]) == len(statuses):
            status = statuses[0]
            return {(number, status): places for number, places in self.of_shapes().items()}
        found = gathered_pairs(numbers, statuses)
        return {key: places for key, places in found.items() if key[0] >= 0}

    def alike_counts(self) -> dict[tuple[int, int], int]:
        """Count the branches that began by shape and status, in order of first branch."""
        numbers, statuses = self.shape_numbers(), self.status_numbers()
        if statuses and statuses.count(statuses[0]) == len(statuses):
            status = statuses[0]
            return {(number, status): times for number, times in self.shape_counts().items()}
        counts = tally_pairs(numbers, statuses)
        return {key: times for key, times in counts.items() if key[0] >= 0}

    @property
    def begun_count(self) -> int:
        """How many branches began."""
        return len(self) - self.shapes.count(-1)

    def status_number(self, index: int) -> int:
        """Say what became of a branch: `NOT_REACHED`, `OK` or `FAILED`."""
        return self.statuses[index]

    def status_numbers(self) -> Sequence[int]:
        """Give what became of every branch, in item order."""
        return self.statuses

    def status_count(self, status: int) -> int:
        """Count the branches that ended like this."""
        return self.statuses.count(status)

    def ended_as(self, *statuses: int) -> Iterator[int]:
        """Yield the branches that ended in one of these ways, in item order."""
        if len(statuses) != 1:
            numbers = enumerate(self.status_numbers())
            return (index for index, status in numbers if status in statuses)
        return standing(self.status_numbers(), statuses[0])

    def status(self, index: int) -> str:
        """Give the status word of a branch."""
        return STATUS_WORDS[self.status_number(index)]

    def subject_of(self, index: int) -> Any:
        """Give the value that names an item, or None.

        That is what stands under its subject key, or the item itself when it is a plain value.
        """
        item = self.item(index)
        if isinstance(item, dict):
            return item.get(self.subject) if self.subject is not None else None
        return item if isinstance(item, str | int | float) else None

    def begun(self) -> Iterator[tuple[int, Shape]]:
        """Yield index and shape of every branch that began, in item order."""
        shapes = self.log.shapes
        for index, number in enumerate(self.shape_numbers()):
            if number >= 0:
                yield index, shapes[number]
