"""The rows of a log: how many there are, and any of them without those before.

Record layer. Rows are counted by shape and summed branch by branch, so a page costs its own rows
and a search in the sums. A row is an `Entry` first; its texts are made last.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from runbook_nb._text import show
from runbook_nb.record.log import ROW_TYPES, FanOut, Log, StageRef
from runbook_nb.record.narrative import fork_words, row_words
from runbook_nb.record.places import CONTROL_FRAME, FRAME, HEAD, Entry, Part, runtime_id
from runbook_nb.record.projection import WalkRow
from runbook_nb.record.redact import Redactor
from runbook_nb.record.shapes import ShapeFacts, facts_of, work_out
from runbook_nb.record.tallies import RunningSums

if TYPE_CHECKING:
    from runbook_nb.record.row_forms import RowForms

#: Types of rows that are left out where reads and writes are, and where all but decisions are.
_NO_STEPS: Final = frozenset({"step"})
_NO_CONTROL: Final = frozenset({row_type for row_type, _ in ROW_TYPES.values()} - {"condition"})

#: One branch of a fan-out: the fan-out, the branch's number, and the path before it.
Branch = tuple[FanOut, int, str]


class Block(NamedTuple):
    """All rows of a branch in which nothing fanned out, before they are made."""

    fan: FanOut
    place: int
    prefix: str
    facts: ShapeFacts


class Rows:
    """The rows of a log, or of one branch of it alone.

    Parameters
    ----------
    log : Log
    redactor : Redactor
        What keeps hidden values out of them.
    only : (FanOut, int, str), optional
        The one branch.
    among : Rows, optional
        The rows of the whole log, which know the forms of its branches already.
    """

    __slots__ = (
        *("_among", "_ends", "_forms", "_log", "_redactor", "_root", "_steps", "_sums", "_total"),
        "only",
    )

    def __init__(
        self,
        log: Log,
        redactor: Redactor,
        only: Branch | None = None,
        among: Rows | None = None,
    ) -> None:
        self._log = log
        self._redactor = redactor
        self.only = only
        self._among = among
        self._sums: dict[int, RunningSums] = {}
        self._root: ShapeFacts | None = None
        self._steps: int | None = None
        self._total: int | None = None
        self._ends: array[int] | None = None
        self._forms: RowForms | None = None

    # -- counting --------------------------------------------------------------------------

    def count(self) -> int:
        """Say how many rows there are."""
        if self.only is not None:
            fan, index, _ = self.only
            return self.branch_rows(fan, index)
        if self._total is None:
            self._total = self._rows_in(self.root_facts(), self._log.root.values, 0)
        return self._total

    def steps(self) -> int:
        """Say how many stage executions there were, entering a branch included."""
        if self.only is not None:
            fan, index, _ = self.only
            return self._branch_steps(fan, index)
        if self._steps is None:
            root = self._log.root
            if self._root is None and not self._log.have_fan_outs(root.codes):
                self._steps = self._log.executions_in(root.codes)
            else:
                self._steps = self._steps_in(self.root_facts(), root.values, 0)
        return self._steps

    def conditions(self, most: int) -> int:
        """Count the rows that tell of decisions, those past ``most`` left out."""
        return self._counted(self.own(), most, "conditions")

    def control(self, most: int) -> int:
        """Count the rows that are no reads or writes, those past ``most`` left out."""
        found = self._counted(self.own(), most, "control")
        entered = self.only is not None and self.only[0].is_fan_out
        return min(found + CONTROL_FRAME, most) if entered else found

    def _counted(self, part: Part, most: int, what: Literal["control", "conditions"]) -> int:
        """Count rows of a kind shape by shape; branches in which more fanned out one by one."""
        found: int = getattr(part.facts, what)
        for event in part.facts.fan_outs:
            fan = part.values[part.offset + event.at]
            if found >= most or not isinstance(fan, FanOut) or not len(fan):
                continue
            framed = what == "control" and fan.is_fan_out
            frame = CONTROL_FRAME if framed else 0
            found += what == "control"  # the row that says that it fanned out
            nested: set[int] = set()
            for number, times in fan.shape_counts().items():
                inner = facts_of(self._log, self._log.shapes[number])
                found += times * frame
                if inner.fan_outs:
                    nested.add(number)
                else:
                    found += times * getattr(inner, what)
            for index, shape in fan.begun() if nested else ():
                if found >= most:
                    break
                if shape.number in nested:
                    found += self._counted(self.part_of(fan, index, ""), most - found, what)
        return min(found, most)

    def root_facts(self) -> ShapeFacts:
        """Give the facts of the root track."""
        if self._root is None:
            self._root = work_out(self._log, self._log.root.codes)
        return self._root

    def root_ends(self) -> array[int]:
        """Sum the rows of the root's events from the first on: where each event ends."""
        if self._ends is None:
            values = self._log.root.values
            self._ends = array(
                "q",
                accumulate(
                    self.rows_of(values[event.at])
                    if event.code.kind == "fan_out"
                    else event.code.kind in ROW_TYPES
                    for event in self.root_facts().events
                ),
            )
        return self._ends

    def _rows_in(self, facts: ShapeFacts, values: Sequence[object], offset: int) -> int:
        inside = (values[offset + event.at] for event in facts.fan_outs)
        return facts.rows + sum(self.rows_of(fan) for fan in inside if isinstance(fan, FanOut))

    def rows_of(self, fan: FanOut) -> int:
        """Say how many rows tell of what spread: of its branches, and one more."""
        if not len(fan):
            return 0
        plain = {} if id(fan) in self._sums else self._plain_rows(fan)
        counts = fan.shape_counts()
        if len(plain) == len(counts):  # nothing is summed up before a place is looked for
            return 1 + sum([plain[number] * times for number, times in counts.items()])
        return 1 + self.sums_of(fan).total

    def _plain_rows(self, fan: FanOut) -> dict[int, int]:
        """Give the rows of a branch by its shape, of the shapes in which nothing fans out."""
        frame = FRAME if fan.is_fan_out else 0
        log, found = self._log, {}
        for number in fan.shape_counts():
            facts = facts_of(log, log.shapes[number])
            if not facts.fan_outs:
                found[number] = frame + facts.rows
        return found

    def branch_rows(self, fan: FanOut, index: int) -> int:
        """Say how many rows a branch has, those around it included."""
        shape = fan.shape(index)
        if shape is None:
            return 0
        facts = facts_of(self._log, shape)
        frame = FRAME if fan.is_fan_out else 0
        if not facts.fan_outs:  # so that no value need be looked at
            return frame + facts.rows
        return frame + self._rows_in(facts, *fan.part(index))

    def sums_of(self, fan: FanOut) -> RunningSums:
        """Sum the rows of a fan-out's branches from the first on."""
        found = self._sums.get(id(fan))
        if found is None:
            plain = {-1: 0, **self._plain_rows(fan)}
            shapes = fan.shape_counts()
            numbers = fan.shape_numbers()
            if len(plain) <= len(shapes):
                # In some the number of rows depends on what fanned out inside.
                numbers = array(
                    "q",
                    (
                        self.branch_rows(fan, index) if number not in plain else plain[number]
                        for index, number in enumerate(numbers)
                    ),
                )
                plain = {rows: rows for rows in set(numbers)}
            found = self._sums[id(fan)] = RunningSums(numbers, plain)
        return found

    def _steps_in(self, facts: ShapeFacts, values: Sequence[object], offset: int) -> int:
        steps = facts.executions
        for event in facts.fan_outs:
            fan = values[offset + event.at]
            if not isinstance(fan, FanOut):
                continue
            entering = int(fan.is_fan_out)
            nested: set[int] = set()
            for number, times in fan.shape_counts().items():
                inner = facts_of(self._log, self._log.shapes[number])
                if inner.fan_outs:
                    nested.add(number)
                else:
                    steps += times * (entering + inner.executions)
            for index, shape in fan.begun() if nested else ():
                if shape.number in nested:
                    steps += self._branch_steps(fan, index)
        return steps

    def _branch_steps(self, fan: FanOut, index: int) -> int:
        shape = fan.shape(index)
        if shape is None:
            return 0
        facts = facts_of(self._log, shape)
        return int(fan.is_fan_out) + self._steps_in(facts, *fan.part(index))

    # -- tracks ----------------------------------------------------------------------------

    def own(self) -> Part:
        """Give the track the rows are of."""
        if self.only is None:
            return Part(self.root_facts(), self._log.root.values, 0, "")
        return self.part_of(*self.only)

    def part_of(self, fan: FanOut, index: int, prefix: str) -> Part:
        """Give the track of a branch."""
        shape = fan.shape(index)
        facts = work_out(self._log, ()) if shape is None else facts_of(self._log, shape)
        path = fan.path(prefix, index)
        return Part(facts, *fan.part(index), path, fan.base(index))

    # -- rows ------------------------------------------------------------------------------

    def entries(self, skip: int = 0) -> Iterator[Entry]:
        """Yield the rows before their texts are made, from a position on."""
        for piece in self._pieces(skip):
            if isinstance(piece, Block):
                yield from self._entries_of(piece.fan, piece.place, piece.prefix)
            else:
                yield piece

    def made(self, start: int, n: int) -> list[WalkRow]:
        """Make ``n`` rows from a position on."""
        rows: list[WalkRow] = []
        end = start + n
        step = start
        # Where there are secret texts to look for, each name is looked through in place.
        branch = None if self._redactor.knows_secrets else self._made_from().branch
        for piece in self._pieces(start) if n > 0 else ():
            if isinstance(piece, Entry):
                rows.append(self.make(piece, step))
            elif branch is None or step + FRAME + piece.facts.rows > end:
                inside = islice(self._entries_of(*piece[:3]), end - step)
                rows += [self.make(entry, at) for at, entry in enumerate(inside, step)]
            else:
                branch(*piece, step, rows)
            step = start + len(rows)
            if step >= end:
                break
        return rows

    def made_of_control(self, conditions: int, others: int) -> list[WalkRow]:
        """Make the first rows that tell of decisions, and the first others but reads and writes."""
        rows: list[WalkRow] = []
        forms = self._made_from()
        for piece in self._pieces(0):
            if not conditions and not others:
                break
            entries: Iterator[Entry] | tuple[Entry, ...]
            if isinstance(piece, Block):
                told = piece.facts.conditions
                rest = CONTROL_FRAME + piece.facts.control - told
                fits = told <= conditions and (rest <= others or not others)
                if fits and not self._redactor.knows_secrets:
                    without = _NO_STEPS if others else _NO_CONTROL
                    forms.branch(*piece, len(rows), rows, without=without)
                    conditions, others = conditions - told, others and others - rest
                    continue
                entries = self._entries_of(*piece[:3])
            else:
                entries = (piece,)
            for entry in entries:
                if entry.type == "condition" and conditions:
                    conditions -= 1
                elif entry.type not in ("step", "condition") and others:
                    others -= 1
                else:
                    continue
                rows.append(self.make(entry, len(rows)))
        return rows

    def _made_from(self) -> RowForms:
        if self._forms is None:
            from runbook_nb.record.row_forms import RowForms

            among = self._among
            self._forms = RowForms(self._redactor) if among is None else among._made_from()
        return self._forms

    def _pieces(self, skip: int) -> Iterator[Entry | Block]:
        if self.only is not None:
            yield from self._branch(*self.only, skip)
            return
        ends = self.root_ends()
        first = bisect_right(ends, skip)
        before = ends[first - 1] if first else 0
        yield from self._track(self.own(), skip - before, first)

    def _track(self, part: Part, skip: int, first: int = 0) -> Iterator[Entry | Block]:
        _, values, offset, prefix, base = part
        for event in islice(part.facts.events, first, None):
            kind = event.code.kind
            if kind == "fan_out":
                fan: FanOut = values[offset + event.at]
                rows = self.rows_of(fan)
                if skip < rows:
                    yield from self._fan_out(fan, prefix, skip)
                skip = max(skip - rows, 0)
            elif kind in ROW_TYPES:
                if skip:
                    skip -= 1
                    continue
                row_type, depth = ROW_TYPES[kind]
                yield Entry(
                    row_type,
                    depth,
                    event.code.stage,
                    prefix,
                    base + event.execution,
                    event,
                    values,
                    offset,
                )

    def _fan_out(self, fan: FanOut, prefix: str, skip: int) -> Iterator[Entry | Block]:
        if skip == 0:
            yield Entry("fork", 0, fan.stage, prefix, fan.execution, note=fork_words(fan))
        else:
            skip -= 1
        sums = self.sums_of(fan)
        first, before = sums.at(skip)
        skip -= before
        for index in range(first, len(fan)):
            shape = fan.shape(index)
            if shape is None:
                continue
            facts = facts_of(self._log, shape)
            if self._is_block(fan, index, facts, skip):
                yield Block(fan, index, prefix, facts)
            else:
                yield from self._branch(fan, index, prefix, skip)
            skip = 0

    @staticmethod
    def _is_block(fan: FanOut, index: int, facts: ShapeFacts, skip: int) -> bool:
        """Say whether a branch can be told as a whole."""
        return not skip and fan.is_fan_out and not facts.fan_outs and not fan.base(index)

    def _branch(
        self, fan: FanOut, index: int, prefix: str, skip: int = 0
    ) -> Iterator[Entry | Block]:
        shape = fan.shape(index)
        if shape is None:
            return
        facts = facts_of(self._log, shape)
        if self._is_block(fan, index, facts, skip):
            yield Block(fan, index, prefix, facts)
        elif not fan.is_fan_out:  # the child of a fork is a stage like any; nothing is entered
            yield from self._track(self.part_of(fan, index, prefix), skip)
        else:
            yield from self._framed(fan, index, prefix, skip)

    def _entries_of(self, fan: FanOut, index: int, prefix: str) -> Iterator[Entry]:
        framed = self._framed(fan, index, prefix, 0)
        return (piece for piece in framed if isinstance(piece, Entry))

    def _framed(self, fan: FanOut, index: int, prefix: str, skip: int) -> Iterator[Entry | Block]:
        part = self.part_of(fan, index, prefix)
        rows = self._rows_in(part.facts, part.values, part.offset)
        name = f"{fan.stage.name} [{index}]"
        mount = StageRef(f"{fan.stage.id}~{index}", name, "branch", fan.stage.path)
        frame = (mount, prefix, fan.execution)
        yield from islice(
            (
                Entry("subflow", 0, *frame, note=f"Entered {show(name)}"),
                Entry("step", 1, *frame, note="Received item"),
                Entry("step", 1, *frame, note="Received index"),
            ),
            skip,
            None,
        )
        skip = max(skip - HEAD, 0)
        if skip < rows:
            yield from self._track(part, skip)
        if skip <= rows:
            status = fan.status(index).replace("_", " ")
            yield Entry("subflow", 0, *frame, note=f"Left {show(name)}: {status}")

    def make(self, entry: Entry, step: int) -> WalkRow:
        """Make one row."""
        ref, text = entry.stage, self._redactor.text
        # What the run ended before, or what came before the first stage, was never executed.
        between = entry.event is not None and entry.event.code.kind == "ended"
        executed = entry.execution >= 0 and not between
        name = runtime_id(entry.prefix, ref.key, entry.execution) if executed else None
        return WalkRow(
            step,
            entry.type,
            entry.depth,
            # A fork is told of the paths, not of a stage: the row before it names the stage.
            None if entry.type == "fork" else text(ref.name),
            text(ref.id),
            None if name is None else text(name),
            text(f"{entry.prefix}{ref.path}"[:-1]) or None,
            text(entry.note) or row_words(entry.event, entry.values, entry.offset, self._redactor),
        )


__all__ = ["Block", "Branch", "Rows"]
