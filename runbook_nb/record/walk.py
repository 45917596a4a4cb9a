"""The walk: the recorded rows of a run, made when asked for, and the law that caps them.

Record layer. A walk is a sequence of `WalkRow`; its length, its counters and any page of it are
found without making the other rows. Ids follow one rule (`runtime_id`): the path of the fan-out
branches, the stage, and the position of the execution counted from the start of its own track, so
an id never depends on what siblings did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, overload

from runbook_nb._display import Renderable, through
from runbook_nb._json import to_wire
from runbook_nb._tags import is_clean
from runbook_nb._text import MISSING, counted, did_you_mean, show
from runbook_nb._view import Card
from runbook_nb.errors import SubjectNotFound
from runbook_nb.record.log import FanOut, Log, StageRef
from runbook_nb.record.overlay import Overlay, overlay_of
from runbook_nb.record.places import Entry, Part, RecordedDecision, runtime_id
from runbook_nb.record.projection import COLUMNS, ProjectedWalk, WalkPage, WalkRow, page_bounds
from runbook_nb.record.redact import Redactor
from runbook_nb.record.rows import Rows
from runbook_nb.record.shapes import ShapeFacts, facts_of
from runbook_nb.record.slots import served_subject
from runbook_nb.record.structure import Structure
from runbook_nb.rules.evaluate import Decision, DecisionPath

if TYPE_CHECKING:
    import pandas as pd

    from runbook_nb.record.counts import FanOutCounts
    from runbook_nb.record.spots import Marks, Spots
    from runbook_nb.record.subjects import SubjectIndex
    from runbook_nb.render.flowchart import Flowchart
    from runbook_nb.widgets.explorer import Explorer

#: So many rows are made together where all of them are asked for.
_AT_ONCE: Final = 4096
#: A walk of no more is made whole for whoever asks for its first row: as that of one subject is.
_FEW: Final = 64

#: Places of branches that a message names.
_NAMED: Final = 10


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
        "_found",
        "_log",
        "_overlay",
        "_paths",
        "_redactor",
        "_rows",
        "_rules",
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
        rows: Rows | None = None,
    ) -> None:
        self._log = log
        self.name = name
        self.structure = structure
        self._redactor = redactor
        self._rows = Rows(log, redactor) if rows is None else rows
        self._found: SubjectIndex | None = None
        self._rules: dict[str, tuple[Any, ...]] | None = None
        self._overlay: Overlay | None = None
        self._paths: tuple[list[Any], list[Any]] | None = None

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
        return self._rows.only

    @property
    def raw_overlay(self) -> Overlay:
        """What the run did to its structure, unserved; counted when first asked for."""
        if self._overlay is None:
            self._overlay = overlay_of(self._log, self._redactor, self.only)
        return self._overlay

    @property
    def raw_own(self) -> Part:
        """The track the walk is of, worked out once; not served."""
        return self._rows.own()

    # -- counting --------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._rows.count()

    @property
    def steps_executed(self) -> int:
        """How many stage executions there were, entering a branch included."""
        return self._rows.steps()

    @property
    def total(self) -> int:
        """How many rows there are."""
        return len(self)

    # -- rows ------------------------------------------------------------------------------

    def entries(self, skip: int = 0) -> Iterator[Entry]:
        """Yield the rows before their texts are made, from a position on."""
        return self._rows.entries(skip)

    def __iter__(self) -> Iterator[WalkRow]:
        total, at = len(self), 0
        size = total if total <= _FEW else 1
        while at < total:
            yield from self._rows.made(at, size)
            at += size
            size = min(2 * size, _AT_ONCE)

    @overload
    def __getitem__(self, index: int) -> WalkRow: ...
    @overload
    def __getitem__(self, index: slice) -> list[WalkRow]: ...
    def __getitem__(self, index: int | slice) -> WalkRow | list[WalkRow]:
        places = range(len(self))[index]
        if isinstance(places, range):
            if places.step == 1:
                return self._rows.made(places.start, len(places))
            return [self[place] for place in places]
        return self._rows.made(places, 1)[0]

    @property
    def rows(self) -> Walk:
        """The rows, as this sequence itself."""
        return self

    def page(self, start: int, n: int) -> WalkPage:
        """Give ``n`` rows from position ``start``, without making those before.

        A start before the first row is the first; one behind the last gives no row. What the page
        holds is said by its own ``start``, ``shown``, ``total`` and ``complete``.

        Examples
        --------
        >>> from runbook_nb.chart.builder import flow_chart
        >>> walk = flow_chart("c", lambda s: s.set("n", 1), id="a").build().run_sync().walk
        >>> page = walk.page(1, 1)
        >>> [row.text for row in page], page.shown, page.total, page.complete
        (['Wrote n'], 1, 2, False)
        """
        start, n = page_bounds(start, n)
        total = len(self)
        return WalkPage(self._rows.made(start, min(n, max(total - start, 0))), start, total)

    def project(self, cap: int, *, counters_only: bool = False) -> ProjectedWalk:
        """Cut the walk to a cap; see `project_walk`.

        Parameters
        ----------
        cap : int
            Most rows to keep, from 1.
        counters_only : bool
            Leave the rows themselves out: no sentence is made for who asks how many there are.
        """
        total = len(self)
        if total <= cap:
            rows = () if counters_only else tuple(self)
            return ProjectedWalk(rows, "full", total, total, True)
        if counters_only:
            found = self._rows.control(cap + 1)
            return ProjectedWalk((), "control-flow", min(found, cap), total, False, found > cap)
        control = self._rows.control(cap + 1)
        # Decisions come first where there is not room for all; without a limit each has the cap.
        conditions = self._rows.conditions(cap) if control > cap else cap
        others = cap - conditions if control > cap else cap
        rows = tuple(self._rows.made_of_control(conditions, others))
        return ProjectedWalk(rows, "control-flow", len(rows), total, False, control > cap)

    @property
    def spots(self) -> Spots:
        """What finds the place of a row in the record; see `record.spots`."""
        from runbook_nb.record.spots import Spots

        return Spots(self._rows)

    def marks(self, kinds: frozenset[str]) -> Marks:
        """Give what finds the rows of some kinds among all; see `record.spots`."""
        from runbook_nb.record.spots import Marks

        return Marks(self._log, self._rows, kinds)

    # -- one subject, all decisions ----------------------------------------------------------

    def branches(self) -> Iterator[tuple[FanOut, int, str]]:
        """Yield every branch of a fan-out that began, with the path before it, outer ones first.

        Of one subject's walk, those inside its own branch.
        """
        return (found for found in self.tracks() if found[0].is_fan_out)

    def tracks(self) -> Iterator[tuple[FanOut, int, str]]:
        """Yield every track that began beside the walk's own, the children of forks included."""
        yield from self._branches_in(self._rows.own())

    def _branches_in(self, part: Part) -> Iterator[tuple[FanOut, int, str]]:
        facts, values, offset, prefix, _ = part
        for event in facts.fan_outs:
            fan: FanOut = values[offset + event.at]
            for index, shape in fan.begun():
                yield fan, index, prefix
                if facts_of(self._log, shape).fan_outs:
                    yield from self._branches_in(self._rows.part_of(fan, index, prefix))

    def fans(self) -> Iterator[tuple[FanOut, str]]:
        """Yield every fan-out, with the path before it, outer ones first; forks are none."""
        return (found for found in self._fans_in(self._rows.own()) if found[0].is_fan_out)

    def _fans_in(self, part: Part) -> Iterator[tuple[FanOut, str]]:
        facts, values, offset, prefix, _ = part
        for event in facts.fan_outs:
            fan: FanOut = values[offset + event.at]
            yield fan, prefix
            shapes = self._log.shapes
            spread = {n for n in fan.shape_counts() if facts_of(self._log, shapes[n]).fan_outs}
            for index, shape in fan.begun() if spread else ():
                if shape.number in spread:
                    yield from self._fans_in(self._rows.part_of(fan, index, prefix))

    def fan_out_counts(self) -> list[FanOutCounts]:
        """Count how the items of each fan-out ended, as a policy lets its names be seen."""
        from runbook_nb.record.counts import count_fan_out

        redactor = self._redactor
        return [count_fan_out(fan).served_by(redactor) for fan in self.log.fan_outs()]

    def of(
        self, subject: Any = MISSING, *, index: int | None = None, stage: str | None = None
    ) -> Walk:
        """Give the walk of one subject alone.

        The first asking looks at every subject once; those after it look at theirs alone.

        Parameters
        ----------
        subject : object, optional
            The value under the fan-out's ``subject=`` key (or the item itself when it is a plain
            value). None is that of an item nothing names.
        index : int, optional
            The item's position instead, or beside a subject that occurs more than once.
        stage : str, optional
            Id of the fan-out, where there are several.

        Raises
        ------
        LookupError
            No such subject went through a branch, or several did.

        Examples
        --------
        >>> from runbook_nb.chart.builder import flow_chart
        >>> look = flow_chart("look", lambda s: s.set("seen", s.args["item"]), id="look").build()
        >>> walk = (flow_chart("c", lambda s: None, id="a")
        ...     .add_parallel_for_each("Each", id="each", items=lambda s: ["x", "y"], branch=look,
        ...                            max_branches=9, into="out").build().run_sync().walk)
        >>> part = walk.of("y")
        >>> part.total, part[0].text
        (6, 'Entered Each [1]')
        """
        if subject is None and index is not None:
            subject = MISSING
        places = self._index()
        found = list(islice(places.find(subject, index, stage), _NAMED + 1))
        if len(found) != 1:
            more = sum(1 for _ in places.find(subject, index, stage)) if found else 0
            raise SubjectNotFound(*self._lookup_words(subject, index, found, more))
        return self.inside(found[0])

    def inside(self, branch: tuple[FanOut, int, str]) -> Walk:
        """Give the walk of one branch alone, as `branches` yields them."""
        return Walk(
            self._log,
            name=self.name,
            structure=self.structure,
            redactor=self._redactor,
            rows=Rows(self._log, self._redactor, branch, self._rows),
        )

    def _index(self) -> SubjectIndex:
        from runbook_nb.record.subjects import SubjectIndex

        if self._found is None:
            self._found = SubjectIndex(self.fans())
        return self._found

    def _lookup_words(
        self, subject: Any, index: int | None, found: list[Any], times: int
    ) -> tuple[str, str | None]:
        places = ", ".join(str(i) for _, i, _ in found[:_NAMED])
        if subject is MISSING and index is None:
            what = f"{counted(times, 'branch', 'branches')} began: {places}" if found else ""
            return f"no subject was named; {what or 'no branch began'}", (
                "name one: walk.of(subject), or walk.of(index=0)"
            )
        asked = show(subject) if index is None else f"number {index}"
        if found:
            return f"{times} branches have subject {asked}: {places}", "add index="
        some = islice(self.branches(), 1000)
        known = {show(served_subject(self._redactor, fan, i)) for fan, i, _ in some}
        return f"no branch has subject {asked}", did_you_mean(asked, known - {"—"})

    @property
    def decisions(self) -> list[RecordedDecision]:
        """Every decision made by rules, with its place, in the order of the walk."""
        return list(self.iter_decisions())

    def iter_decisions(self) -> Iterator[RecordedDecision]:
        """Yield every decision made by rules, one at a time."""
        return self._decisions_in(self._rows.own(), *self._of(self._rows.only), deep=True)

    def own_decisions(self) -> Iterator[RecordedDecision]:
        """Yield the decisions of the walk's own stages, without those inside its fan-outs."""
        return self._decisions_in(self._rows.own(), *self._of(self._rows.only), deep=False)

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
                        inside = self._rows.part_of(*branch)
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
        if self._paths is not None:
            return self._paths
        first: dict[tuple[StageRef, DecisionPath], None] = {}
        last: dict[tuple[StageRef, DecisionPath], None] = {}
        for pair in self._paths_in(self._rows.root_facts(), self._log.root.values, 0):
            first.setdefault(pair)
            last.pop(pair, None)
            last[pair] = None
        self._paths = list(first), list(last)
        return self._paths

    def _paths_in(
        self, facts: ShapeFacts, values: Sequence[Any], offset: int
    ) -> Iterator[tuple[StageRef, DecisionPath]]:
        for event in facts.events if facts.fan_outs else facts.judged:
            if event.code.path is not None:
                if event.code.kind == "decision":
                    yield event.code.stage, event.code.path
            elif event.code.kind == "fan_out":
                fan: FanOut = values[offset + event.at]
                ends = fan.shape_ends()
                shapes = {number: facts_of(self._log, self._log.shapes[number]) for number in ends}
                # Only the first and the last branch of a shape can be a first or a last.
                some = {(index, number) for number, pair in ends.items() for index in pair}
                wanted = {number for number, inner in shapes.items() if inner.fan_outs}
                places: Iterable[tuple[int, int]] = sorted(some)
                if wanted:
                    begun = ((index, shape.number) for index, shape in fan.begun())
                    places = [one for one in begun if one[1] in wanted or one in some]
                for index, number in places:
                    inner = shapes[number]
                    if inner.fan_outs:  # its values hold what fanned out in it
                        yield from self._paths_in(inner, *fan.part(index))
                    else:
                        codes = [event.code for event in inner.judged]
                        yield from [(c.stage, c.path) for c in codes if c.path is not None]

    # -- forms -----------------------------------------------------------------------------

    def to_frame(self) -> pd.DataFrame:
        """Give all rows as a DataFrame with the eight columns.

        A lone surrogate in the name of a stage is shown as an escape: no column of texts holds one.
        """
        import pandas as pd

        rows = [row.to_dict() for row in self]
        names = {self.name, *(part for code in self.log.codes for part in code.stage)}
        if not is_clean("".join(filter(None, names))):
            rows = [to_wire(row) for row in rows]
        return pd.DataFrame(rows, columns=list(COLUMNS))

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

    def explore(self, subject: Any = None) -> Explorer:
        """Go through the rows one by one, beside the flowchart; a widget.

        Parameters
        ----------
        subject : object, optional
            Whose decision to begin at; by default that of the first subject.
        """
        explorer: Explorer = through("explore", self, subject)
        return explorer

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
