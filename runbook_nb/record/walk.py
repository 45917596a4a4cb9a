"""The walk: the recorded rows of a run, made when asked for, and the law that caps them.

Record layer. A walk is a sequence of `WalkRow`; its length, its counters and any page of it are
found without making the other rows. Ids follow one rule (`runtime_id`): the path of the fan-out
branches, the stage, and the position of the execution counted from the start of its own track, so
an id never depends on what siblings did.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, overload

from runbook_nb._display import Renderable, through
from runbook_nb._text import did_you_mean, show
from runbook_nb._view import Card
from runbook_nb.errors import SubjectNotFound
from runbook_nb.record.log import ROW_TYPES, FanOut, Log, StageRef
from runbook_nb.record.narrative import fork_words, row_words
from runbook_nb.record.places import (
    Entry,
    Part,
    RecordedDecision,
    runtime_id,
    same_subject,
)
from runbook_nb.record.projection import COLUMNS, ProjectedWalk, WalkRow
from runbook_nb.record.redact import Redactor
from runbook_nb.record.shapes import ShapeFacts, facts_of, work_out
from runbook_nb.record.slots import served_subject
from runbook_nb.record.structure import Structure
from runbook_nb.rules.evaluate import Decision, DecisionPath

if TYPE_CHECKING:
    import pandas as pd

    from runbook_nb.render.flowchart import Flowchart

#: Rows around those of a branch's own track: entering, the two inputs, leaving.
_HEAD, _FRAME = 3, 4


class Walk(Sequence[WalkRow], Renderable):
    """The rows of a run, in order.

    ``len``, `steps_executed` and `page` make no row that is not asked for.

    Attributes
    ----------
    name : str
        The procedure's name.
    structure : Structure
        What could have happened.
    """

    __slots__ = (
        "_ends",
        "_log",
        "_only",
        "_redactor",
        "_root",
        "_rules",
        "_sums",
        "name",
        "structure",
    )

    def __init__(
        self,
        log: Log,
        *,
        name: str,
        structure: Structure,
        redactor: Redactor,
        only: tuple[FanOut, int, str] | None = None,
    ) -> None:
        self._log = log
        self.name = name
        self.structure = structure
        self._redactor = redactor
        self._only = only
        self._sums: dict[int, array[int]] = {}
        self._root: ShapeFacts | None = None
        self._ends: array[int] | None = None
        self._rules: dict[str, tuple[Any, ...]] | None = None

    @property
    def log(self) -> Log:
        """The log behind the rows; not served."""
        return self._log

    @property
    def redactor(self) -> Redactor:
        """What keeps hidden values out of every view."""
        return self._redactor

    @property
    def only(self) -> tuple[FanOut, int, str] | None:
        """The one branch this walk is about, with its index and the path before it."""
        return self._only

    # -- counting --------------------------------------------------------------------------

    def __len__(self) -> int:
        if self._only is not None:
            fan, index, _ = self._only
            return self._branch_rows(fan, index)
        ends = self._root_ends()
        return ends[-1] if ends else 0

    @property
    def steps_executed(self) -> int:
        """How many stage executions there were, entering a branch included."""
        if self._only is not None:
            fan, index, _ = self._only
            return self._branch_steps(fan, index)
        root = self._log.root
        if self._root is None and not self._log.have_fan_outs(root.codes):
            return self._log.executions_in(root.codes)
        return self._steps_in(self._root_facts(), root.values, 0)

    @property
    def total(self) -> int:
        """How many rows there are."""
        return len(self)

    def _root_facts(self) -> ShapeFacts:
        if self._root is None:
            self._root = work_out(self._log, self._log.root.codes)
        return self._root

    def _root_ends(self) -> array[int]:
        """Rows of the root's events, summed from the first: where each event ends."""
        if self._ends is None:
            values = self._log.root.values
            self._ends = array(
                "q",
                accumulate(
                    self._rows_of(values[event.at])
                    if event.code.kind == "fan_out"
                    else event.code.kind in ROW_TYPES
                    for event in self._root_facts().events
                ),
            )
        return self._ends

    def _rows_in(self, facts: ShapeFacts, values: Sequence[Any], offset: int) -> int:
        return facts.rows + sum(self._rows_of(values[offset + e.at]) for e in facts.fan_outs)

    def _rows_of(self, fan: FanOut) -> int:
        return 1 + self._sums_of(fan)[-1] if len(fan) else 0

    def _branch_rows(self, fan: FanOut, index: int) -> int:
        shape = fan.shape(index)
        if shape is None:
            return 0
        facts = facts_of(self._log, shape)
        frame = _FRAME if fan.is_fan_out else 0
        return frame + self._rows_in(facts, *fan.part(index))

    def _sums_of(self, fan: FanOut) -> array[int]:
        """Rows of a fan-out's branches, summed from the first: where each branch ends."""
        found = self._sums.get(id(fan))
        if found is None:
            plain: dict[int, int] = {-1: 0}
            counts = array("q")
            for index, number in enumerate(fan.shape_numbers()):
                rows = plain.get(number)
                if rows is None:
                    rows = self._branch_rows(fan, index)
                    if not facts_of(self._log, self._log.shapes[number]).fan_outs:
                        plain[number] = rows
                counts.append(rows)
            found = self._sums[id(fan)] = array("q", accumulate(counts))
        return found

    def _steps_in(self, facts: ShapeFacts, values: Sequence[Any], offset: int) -> int:
        steps = facts.executions
        for event in facts.fan_outs:
            fan: FanOut = values[offset + event.at]
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

    # -- rows ------------------------------------------------------------------------------

    def entries(self, skip: int = 0) -> Iterator[Entry]:
        """Yield the rows before their texts are made, from a position on."""
        if self._only is not None:
            return self._branch(*self._only, skip)
        ends = self._root_ends()
        first = bisect_right(ends, skip)
        before = ends[first - 1] if first else 0
        root = self._log.root.values
        return self._track(Part(self._root_facts(), root, 0, ""), skip - before, first)

    def _track(self, part: Part, skip: int, first: int = 0) -> Iterator[Entry]:
        _, values, offset, prefix, base = part
        for event in islice(part.facts.events, first, None):
            kind = event.code.kind
            if kind == "fan_out":
                fan: FanOut = values[offset + event.at]
                rows = self._rows_of(fan)
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

    def _fan_out(self, fan: FanOut, prefix: str, skip: int) -> Iterator[Entry]:
        if skip == 0:
            yield Entry("fork", 0, fan.stage, prefix, fan.execution, note=fork_words(fan))
        else:
            skip -= 1
        sums = self._sums_of(fan)
        first = bisect_right(sums, skip)
        skip -= sums[first - 1] if first else 0
        for index in range(first, len(fan)):
            if fan.shape(index) is not None:
                yield from self._branch(fan, index, prefix, skip)
                skip = 0

    def _branch(self, fan: FanOut, index: int, prefix: str, skip: int = 0) -> Iterator[Entry]:
        shape = fan.shape(index)
        if shape is None:
            return
        part = self._part_of(fan, index, prefix)
        rows = self._rows_in(part.facts, part.values, part.offset)
        if not fan.is_fan_out:  # the child of a fork is a stage like any; nothing is entered
            yield from self._track(part, skip)
            return
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
        skip = max(skip - _HEAD, 0)
        if skip < rows:
            yield from self._track(part, skip)
        if skip <= rows:
            status = fan.status(index).replace("_", " ")
            yield Entry("subflow", 0, *frame, note=f"Left {show(name)}: {status}")

    def _make(self, entry: Entry, step: int) -> WalkRow:
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

    def __iter__(self) -> Iterator[WalkRow]:
        return (self._make(entry, step) for step, entry in enumerate(self.entries()))

    @overload
    def __getitem__(self, index: int) -> WalkRow: ...
    @overload
    def __getitem__(self, index: slice) -> list[WalkRow]: ...
    def __getitem__(self, index: int | slice) -> WalkRow | list[WalkRow]:
        places = range(len(self))[index]
        if isinstance(places, range):
            if places.step == 1:
                return self.page(places.start, len(places))
            return [self[place] for place in places]
        return self.page(places, 1)[0]

    @property
    def rows(self) -> Walk:
        """The rows, as this sequence itself."""
        return self

    def page(self, start: int, n: int) -> list[WalkRow]:
        """Give ``n`` rows from position ``start``, without making those before.

        Examples
        --------
        >>> from runbook_nb.chart.builder import flow_chart
        >>> walk = flow_chart("c", lambda s: s.set("n", 1), id="a").build().run_sync().walk
        >>> [row.text for row in walk.page(1, 1)]
        ['Wrote n']
        """
        start = max(start, 0)
        asked = islice(self.entries(start), max(n, 0))
        return [self._make(entry, step) for step, entry in enumerate(asked, start)]

    def project(self, cap: int) -> ProjectedWalk:
        """Cut the walk to a cap; see `project_walk`."""
        total = len(self)
        if total <= cap:
            return ProjectedWalk(tuple(self), "full", total, total, True)
        control, conditions = 0, 0
        kept: list[Entry] = []
        later: list[Entry] = []
        for entry in self.entries():
            if entry.type == "step":
                continue
            control += 1
            conditions += entry.type == "condition"
            if control <= cap:
                kept.append(entry)
            elif entry.type == "condition":
                later.append(entry)
            if control > cap and conditions >= cap:
                break
        if control > cap:
            wanted = [e for e in kept if e.type == "condition"] + later
            wanted = wanted[:cap]
            room = cap - len(wanted)
            others = [e for e in kept if e.type != "condition"][:room]
            chosen = {id(entry) for entry in (*wanted, *others)}
            kept = [e for e in (*kept, *later) if id(e) in chosen]
        rows = tuple(self._make(entry, step) for step, entry in enumerate(kept))
        return ProjectedWalk(rows, "control-flow", len(rows), total, False, control > cap)

    # -- one subject, all decisions ----------------------------------------------------------

    def branches(self) -> Iterator[tuple[FanOut, int, str]]:
        """Yield every branch of a fan-out that began, with the path before it, outer ones first.

        Of one subject's walk, those inside its own branch.
        """
        return (found for found in self.tracks() if found[0].is_fan_out)

    def tracks(self) -> Iterator[tuple[FanOut, int, str]]:
        """Yield every track that began beside the walk's own, the children of forks included."""
        yield from self._branches_in(self._own())

    def _own(self) -> Part:
        if self._only is None:
            return Part(self._root_facts(), self._log.root.values, 0, "")
        return self._part_of(*self._only)

    def _part_of(self, fan: FanOut, index: int, prefix: str) -> Part:
        shape = fan.shape(index)
        facts = work_out(self._log, ()) if shape is None else facts_of(self._log, shape)
        path = fan.path(prefix, index)
        return Part(facts, *fan.part(index), path, fan.base(index))

    def _branches_in(self, part: Part) -> Iterator[tuple[FanOut, int, str]]:
        facts, values, offset, prefix, _ = part
        for event in facts.fan_outs:
            fan: FanOut = values[offset + event.at]
            for index, shape in fan.begun():
                yield fan, index, prefix
                if facts_of(self._log, shape).fan_outs:
                    yield from self._branches_in(self._part_of(fan, index, prefix))

    def of(
        self, subject: Any = None, *, index: int | None = None, stage: str | None = None
    ) -> Walk:
        """Give the walk of one subject alone.

        Parameters
        ----------
        subject : object, optional
            The value under the fan-out's ``subject=`` key (or the item itself when it is a plain
            value).
        index : int, optional
            The item's position instead, or beside a subject that occurs more than once.
        stage : str, optional
            Id of the fan-out, where there are several.

        Raises
        ------
        LookupError
            No such subject went through a branch, or several did.
        """
        found = [
            (fan, i, prefix)
            for fan, i, prefix in self.branches()
            if (index is None or i == index)
            and (stage is None or fan.stage.id == stage)
            and (subject is None or same_subject(fan.subject_of(i), subject))
        ]
        if len(found) != 1:
            raise SubjectNotFound(*self._lookup_words(subject, index, found))
        return Walk(
            self._log,
            name=self.name,
            structure=self.structure,
            redactor=self._redactor,
            only=found[0],
        )

    def _lookup_words(
        self, subject: Any, index: int | None, found: list[Any]
    ) -> tuple[str, str | None]:
        asked = show(subject) if index is None else f"number {index}"
        if found:
            places = ", ".join(str(i) for _, i, _ in found[:10])
            return f"{len(found)} branches have subject {asked}: {places}", "add index="
        some = islice(self.branches(), 1000)
        known = {show(served_subject(self._redactor, fan, i)) for fan, i, _ in some}
        return f"no branch has subject {asked}", did_you_mean(asked, known - {"—"})

    @property
    def decisions(self) -> list[RecordedDecision]:
        """Every decision made by rules, with its place, in the order of the walk."""
        return list(self.iter_decisions())

    def iter_decisions(self) -> Iterator[RecordedDecision]:
        """Yield every decision made by rules, one at a time."""
        return self._decisions_in(self._own(), *self._of(self._only), deep=True)

    def own_decisions(self) -> Iterator[RecordedDecision]:
        """Yield the decisions of the walk's own stages, without those inside its fan-outs."""
        return self._decisions_in(self._own(), *self._of(self._only), deep=False)

    def _of(self, branch: tuple[FanOut, int, str] | None) -> tuple[Any, int | None]:
        if branch is None:
            return None, None
        return served_subject(self._redactor, branch[0], branch[1]), branch[1]

    def _decisions_in(
        self, part: Part, subject: Any, item: int | None, *, deep: bool
    ) -> Iterator[RecordedDecision]:
        facts, values, offset, prefix, base = part
        for event in facts.events:
            path = event.code.path
            if event.code.kind == "decision" and path is not None:
                start = offset + event.at
                decision = Decision(
                    path, tuple(values[start : start + len(path.codes)]), self._redactor
                )
                ref, text = event.code.stage, self._redactor.text
                number = base + event.execution
                name = text(runtime_id(prefix, ref.key, number))
                yield RecordedDecision(decision, _served_ref(ref, text), name, subject, item)
            elif event.code.kind == "fan_out":
                fan: FanOut = values[offset + event.at]
                if not deep and fan.is_fan_out:
                    continue
                for index, shape in fan.begun():
                    inner = facts_of(self._log, shape)
                    if inner.fan_outs or inner.decision is not None:
                        branch = (fan, index, prefix)
                        inside = self._part_of(*branch)
                        whose = self._of(branch) if fan.is_fan_out else (subject, item)
                        yield from self._decisions_in(inside, *whose, deep=deep)

    def rules_at(self, decider: str) -> tuple[Any, ...]:
        """Give the rule sets that judged at a decider, by its stage id, in order; served."""
        if self._rules is None:
            found: dict[str, dict[Any, None]] = {}
            for ref, path in self.decision_paths()[0]:
                found.setdefault(self._redactor.text(ref.id), {})[path.rules] = None
            self._rules = {
                key: tuple(map(self._redactor.rules, rules)) for key, rules in found.items()
            }
        return self._rules.get(decider, ())

    def decision_paths(
        self,
    ) -> tuple[list[tuple[StageRef, DecisionPath]], list[tuple[StageRef, DecisionPath]]]:
        """Give the distinct decisions by rules, by their first and last making; not served."""
        first: dict[tuple[StageRef, DecisionPath], None] = {}
        last: dict[tuple[StageRef, DecisionPath], None] = {}
        for pair in self._paths_in(self._root_facts(), self._log.root.values, 0):
            first.setdefault(pair)
            last.pop(pair, None)
            last[pair] = None
        return list(first), list(last)

    def _paths_in(
        self, facts: ShapeFacts, values: Sequence[Any], offset: int
    ) -> Iterator[tuple[StageRef, DecisionPath]]:
        for event in facts.events:
            if event.code.path is not None:
                if event.code.kind == "decision":
                    yield event.code.stage, event.code.path
            elif event.code.kind == "fan_out":
                fan: FanOut = values[offset + event.at]
                ends = fan.shape_ends()
                shapes = {number: facts_of(self._log, self._log.shapes[number]) for number in ends}
                # Only the first and the last branch of a shape can be a first or a last.
                places: Iterable[int] = sorted({index for pair in ends.values() for index in pair})
                if any(inner.fan_outs for inner in shapes.values()):
                    wanted = {number for number, inner in shapes.items() if inner.fan_outs}
                    some = set(places)
                    places = [i for i, s in fan.begun() if s.number in wanted or i in some]
                for index in places:
                    shape = fan.shape(index)
                    if shape is not None:
                        yield from self._paths_in(shapes[shape.number], *fan.part(index))

    # -- forms -----------------------------------------------------------------------------

    def to_frame(self) -> pd.DataFrame:
        """Give all rows as a DataFrame with the eight columns."""
        import pandas as pd

        return pd.DataFrame([row.to_dict() for row in self], columns=list(COLUMNS))

    def to_dicts(self) -> list[dict[str, Any]]:
        """Give all rows as mappings with the eight columns."""
        return [row.to_dict() for row in self]

    def flowchart(self) -> Flowchart:
        """Draw the walk: each stage once, with counts on what was taken.

        The object shows itself in a cell, and has ``.svg``, ``.dot`` and ``.mermaid``. One
        subject alone is drawn by ``walk.of(subject).flowchart()``.
        """
        chart: Flowchart = through("flowchart", self.view())
        return chart

    def _head(self) -> Card:
        from runbook_nb.record.outline import walk_head

        return walk_head(self)

    def view(self) -> Card:
        """Show the walk folded: each stage once, with how often it ran and what was chosen."""
        from runbook_nb.record.outline import walk_card

        return walk_card(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Walk):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]


def _served_ref(ref: StageRef, text: Callable[[str], str]) -> StageRef:
    return ref._replace(id=text(ref.id), name=text(ref.name), path=text(ref.path))


__all__ = ["RecordedDecision", "SubjectNotFound", "Walk", "runtime_id"]
