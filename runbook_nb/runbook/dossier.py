"""What views of an envelope need beyond the wire: every subject's fate and the facts that decided.

Bridge layer. The wire holds capped rows, text and a ticket. A `Dossier` holds the rule sets that
judged, the structure, and per subject its key, status, decision and compared values: what
condition rows already disclose, nothing more, redacted by the same policy. A live dossier reads
the run's log; a carried one holds what was written down, and says how much of it.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._frozen import Immutable
from runbook_nb._json import to_wire
from runbook_nb._text import MISSING, counted, did_you_mean, show, visible
from runbook_nb._value import frozen
from runbook_nb.errors import NotCarried, SubjectNotFound
from runbook_nb.record.collected import VerdictRows
from runbook_nb.record.log import Event, FanOut, Shape
from runbook_nb.record.redact import Redactor
from runbook_nb.record.shapes import facts_of
from runbook_nb.record.slots import reason_of, served_subject, served_subjects
from runbook_nb.record.structure import Structure
from runbook_nb.record.tallies import gathered, mapped
from runbook_nb.rules import Decision, RuleSet
from runbook_nb.rules.columns import Columns
from runbook_nb.runbook.fans import FanOutGroup
from runbook_nb.runbook.names import NameIndex, row_hint
from runbook_nb.runbook.verdicts import subject_column
from runbook_nb.runbook.wire_rows import WireRows

if TYPE_CHECKING:
    from runbook_nb.record.run import Run
    from runbook_nb.runbook.declare import Declaration
    from runbook_nb.runbook.row_kinds import KindOfRows
    from runbook_nb.runbook.told import ToldDecision
    from runbook_nb.runbook.verdicts import Rowset

#: Of more subjects with one name than this, none is taken for the one a row is about.
MAX_NAMESAKES: Final = 20


@frozen
class SubjectFacts(Immutable):
    """What became of one subject.

    Attributes
    ----------
    subject : object
        What names it; None when nothing does, as for the run's decisions outside any fan-out.
    stage : str
        Key of its fan-out, or id of the decider outside any.
    index : int
        Position of its item.
    execution : int
        Which execution of the fan-out, from 0, where it ran more than once.
    status : {"ok", "failed", "not_reached"}
    reason : str or None
        Why there is no verdict.
    decision : Decision, ToldDecision or None
        That of the configured decider in its branch, else the last one; redacted.
    """

    subject: Any
    stage: str
    index: int
    execution: int = 0
    status: str
    reason: str | None = None
    decision: Decision | ToldDecision | None = None


@frozen
class RuleSource(Immutable):
    """A rule set that judged, as far as it is held.

    Attributes
    ----------
    name, version, digest : str
        Of the set that judged.
    rules : RuleSet or None
        Its content, with what a policy hides replaced. None when it could not be written.
    judged : RuleSet or None
        The set by which decisions name it: in a live dossier the one that judged, not served; in
        a copy the same as ``rules``.
    hidden : frozenset of str
        Keys whose values and limits must not be seen.
    """

    name: str
    version: str
    digest: str
    rules: RuleSet | None
    judged: RuleSet | None = field(default=None, repr=False)
    hidden: frozenset[str] = frozenset()

    @classmethod
    def of(cls, rules: RuleSet, redactor: Redactor) -> RuleSource:
        """Make the source of a set that judged under a policy."""
        whens = [rule.when for rule in rules.rules] + [entry.where for entry in rules.outside]
        keys = {key for when in whens if isinstance(when, Mapping) for key in when}
        shown = redactor.rules(rules)
        return cls(
            name=shown.name,
            version=shown.version,
            digest=rules.digest,
            rules=shown,
            judged=rules,
            hidden=frozenset(key for key in keys if redactor.hides_key(key)),
        )


class Dossier:
    """The evidence behind an envelope.

    Attributes
    ----------
    procedure : str
        The procedure's name.
    sources : tuple of RuleSource
        The rule sets that judged, in order of first judging.
    structure : Structure
    decider : str or None
        The configured decider.
    fan_outs : tuple of FanOutGroup
    rows : sequence of mapping
        Every verdict row, also past the cap of the wire; a copy may hold fewer.
    rows_total : int
        How many there are.
    units : mapping
        Column -> unit.
    ranked : bool
        Whether the rows are sorted by a declared rank.
    rank : tuple of str
        That rank, worst first; empty where there is none, or a copy does not carry it.
    stamp : tuple of (str, str) or None
        Name and version of the declared rules.
    telling : tuple of str
        Why most subjects could not be judged, and what to do about it; empty where rules are fine.
    version_note : str
        That a version which judged stood for other content before in the session.
    """

    def __init__(
        self,
        *,
        procedure: str,
        sources: Sequence[RuleSource],
        structure: Structure,
        decider: str | None,
        fan_outs: Sequence[FanOutGroup],
        rows: Sequence[Mapping[str, Any]],
        units: Mapping[str, str],
        ranked: bool,
        stamp: tuple[str, str] | None,
        run: Run | None = None,
        carried: Sequence[SubjectFacts] = (),
        subjects_total: int | None = None,
        collected: VerdictRows | None = None,
        items_of_rows: Mapping[str, Any] | None = None,
        telling: Sequence[str] = (),
        rows_total: int | None = None,
        version_note: str = "",
        rank: Sequence[str] = (),
    ) -> None:
        self.rank = tuple(rank)
        self.telling, self.version_note = tuple(telling), version_note
        self.procedure, self.structure, self.decider = procedure, structure, decider
        self.sources = tuple(sources)
        self.fan_outs = tuple(fan_outs)
        self.rows = rows if isinstance(rows, WireRows) else tuple(rows)
        self.rows_total = len(self.rows) if rows_total is None else rows_total
        self.units, self.ranked, self.stamp = units, ranked, stamp
        self._run = run
        self._carried, self._total = tuple(carried), subjects_total
        self._collected, self._items_of_rows = collected, items_of_rows
        self._redactor = Redactor(None) if run is None else run.redactor
        self._places: dict[int, Event | None] = {}

    @cached_property
    def _column(self) -> str | None:
        return subject_column(self.rows[0]) if self.rows else None

    def __repr__(self) -> str:
        return f"<Dossier of {visible(self.procedure)} · {counted(len(self.rows), 'row')}>"

    @classmethod
    def of_run(
        cls,
        declaration: Declaration,
        run: Run,
        groups: Sequence[FanOutGroup],
        rowset: Rowset | None,
        *,
        telling: Sequence[str] = (),
        version_note: str = "",
    ) -> Dossier:
        """Make the dossier of a run that answered."""
        verdicts, rules = declaration.verdicts, declaration.rules
        judged, text = run.raw_rule_sets(), run.redactor.text
        units: Mapping[str, str] = {} if verdicts is None else verdicts.units
        return cls(
            procedure=run.name,
            sources=[RuleSource.of(rule_set, run.redactor) for rule_set in judged],
            structure=run.structure,
            decider=None if verdicts is None else text(verdicts.decider),
            fan_outs=groups,
            rows=() if rowset is None else rowset.rows,
            units={text(key): text(unit) for key, unit in units.items()},
            ranked=bool(verdicts is not None and verdicts.rank),
            rank=() if verdicts is None else [text(word) for word in verdicts.rank],
            stamp=None if rules is None else (text(rules.name), text(rules.version)),
            run=run,
            collected=_collected(run, rowset),
            telling=[text(words) for words in telling],
            version_note=text(version_note),
        )

    @property
    def rule_sets(self) -> tuple[RuleSet, ...]:
        """The rule sets held here, in order of first judging."""
        return tuple(source.rules for source in self.sources if source.rules is not None)

    def digest_of(self, rules: RuleSet) -> str:
        """Give the digest of the set that judged, for the form of it that is held here."""
        return next((s.digest for s in self.sources if s.judged == rules), rules.digest)

    @property
    def redactor(self) -> Redactor:
        """What keeps hidden values out of what is written; a copy holds none of them."""
        return self._redactor

    # -- subjects --------------------------------------------------------------------------

    @property
    def subjects_total(self) -> int:
        """How many subjects there were."""
        if self._total is not None:
            return self._total
        if self._run is None:
            return len(self._carried)
        return sum(g.counts.items for g in self.fan_outs) + len(list(self._own_decisions()))

    @property
    def complete(self) -> bool:
        """Whether every subject is held here."""
        return self._run is not None or len(self._carried) == self.subjects_total

    def subjects(self) -> Iterator[SubjectFacts]:
        """Yield what became of each subject, in item order; then decisions outside any fan-out."""
        if self._run is None:
            yield from self._carried
            return
        for group in self.fan_outs:
            for execution, fan in enumerate(group.executions):
                for index in range(len(fan)):
                    yield self._facts(group, execution, index)
        yield from self._own_decisions()

    def naming(self, fan: FanOut) -> str | None:
        """Give the key of an item that names its subject: as declared, else that of the rows."""
        return fan.subject if fan.subject is not None else self._column

    def _name(self, group: FanOutGroup, execution: int, index: int) -> Any:
        fan = group.executions[execution]
        return served_subject(self._redactor, fan, index, self._column)

    def _facts(self, group: FanOutGroup, execution: int, index: int) -> SubjectFacts:
        fan = group.executions[execution]
        status = fan.status(index)
        return SubjectFacts(
            subject=self._name(group, execution, index),
            stage=group.key,
            index=index,
            execution=execution,
            status=status,
            reason=None if status == "ok" else self._redactor.text(reason_of(fan, index)),
            decision=self.decision_of(fan, index),
        )

    def decision_of(self, fan: FanOut, index: int) -> Decision | None:
        """Give the decision of the configured decider in a branch, else the branch's last."""
        shape = fan.shape(index)
        if shape is None:
            return None
        event = self.deciding(fan, shape)
        if event is None or event.code.path is None:
            return None
        values, offset = fan.part(index)
        start = offset + event.at
        actuals = tuple(values[start : start + len(event.code.path.codes)])
        return Decision(event.code.path, actuals, self._redactor)

    def deciding(self, fan: FanOut, shape: Shape) -> Event | None:
        """Give what decided branches of a shape: by the configured decider, else their last."""
        if shape.number not in self._places:
            facts = facts_of(fan.log, shape)
            configured = (
                event
                for event in reversed(facts.events)
                if event.code.path is not None and self._is_decider(event.code.stage)
            )
            self._places[shape.number] = next(configured, facts.decision)
        return self._places[shape.number]

    def _is_decider(self, stage: Any) -> bool:
        text = self._redactor.text
        id_ = text(stage.id)
        if self.decider in (id_, text(stage.name)):
            return True
        return any(id_ == node.id for node in self.structure.find(self.decider or "", "decider"))

    def _own_decisions(self) -> Iterator[SubjectFacts]:
        """Yield the run's own decisions, where no fan-out is what the verdicts are about."""
        if self._run is None or any(group.judges for group in self.fan_outs):
            return
        own = [one for one in self._run.walk.iter_decisions() if one.item is None]
        configured = [one for one in own if self._is_decider(one.stage)]
        for place, recorded in enumerate(configured or own):
            yield SubjectFacts(
                subject=None,
                stage=recorded.stage.id,
                index=place,
                status="ok",
                decision=recorded.decision,
            )

    def named(self, keys: Collection[Any]) -> dict[Any, list[SubjectFacts]]:
        """Find the subjects of several names at once.

        Parameters
        ----------
        keys : collection
            What `name_key` gives for each name.
        """
        index, found = self._name_index, {}
        for key in keys:
            if places := index.of_key(key):
                found[key] = [self._at(place) for place in places]
        return found

    def find(self, subject: Any) -> SubjectFacts:
        """Find one subject by what names it.

        Parameters
        ----------
        subject : object
            Its name.

        Raises
        ------
        NotCarried
            This copy does not hold it; `SubjectNotFound` where none or several have that name.
        """
        found = narrowed([self._at(place) for place in self._name_index.places(subject)])
        if len(found) == 1:
            return found[0]
        if found:
            places = ", ".join(str(facts.index) for facts in found[:10])
            raise SubjectNotFound(
                f"{len(found)} subjects are called {show(subject)}: items {places}",
                code="ambiguous_subject",
                fix="name the row instead: why(row=…)",
            )
        raise self._unknown(subject)

    @cached_property
    def _name_index(self) -> NameIndex:
        return NameIndex(self._names)

    def _names(self) -> Iterator[Any]:
        """Yield what names each subject, as `_at` numbers them."""
        if self._run is None:
            yield from (facts.subject for facts in self._carried)
        for group in self.fan_outs:
            for fan in group.executions:
                yield from served_subjects(self._redactor, fan, self._column)

    def _at(self, place: int) -> SubjectFacts:
        """Say what became of a subject by its number among all of them."""
        if self._run is None:
            return self._carried[place]
        for group in self.fan_outs:
            for execution, fan in enumerate(group.executions):
                if place < len(fan):
                    return self._facts(group, execution, place)
                place -= len(fan)
        raise IndexError(place)

    # -- rows ------------------------------------------------------------------------------

    def behind_row(self, row: int) -> SubjectFacts | None:
        """Say what became of the subject a row is about, where the record says which that is.

        Rows collected from slots know their item. Of rows somebody wrote only the name is known,
        and then the answer is None.
        """
        if self._origin is None or self._run is None:
            return self._carried_behind(row)
        rows, (group, execution) = self._origin
        place = self.rows.place_of(row) if isinstance(self.rows, WireRows) else row
        return self._facts(group, execution, rows.item_of(place))

    def kinds_of_rows(self) -> tuple[Sequence[int], list[KindOfRows]] | None:
        """Give the number of each row's kind of branch, and the kinds.

        None where the record does not say which item each row is about.
        """
        items = self.items
        if items is None or self._origin is None:
            return None
        from runbook_nb.runbook.row_kinds import KindOfRows, column_of

        collected, (group, execution) = self._origin
        fan = collected.fan_out
        shapes = fan.shape_numbers()
        if not isinstance(items, range):
            shapes = array("q", map(shapes.__getitem__, items))
        gathered_rows = gathered(shapes)
        kinds = []
        for rows in gathered_rows.values():
            indices = rows if isinstance(items, range) else array("q", map(items.__getitem__, rows))
            first = self._facts(group, execution, indices[0])
            at, decision = self._place_of(fan, indices[0]), first.decision
            compared: tuple[tuple[str, bool], ...] = ()
            if isinstance(decision, Decision) and at is not None:
                compared = tuple((c.key, c.redacted) for c in decision.conditions)
            kinds.append(
                KindOfRows(first, rows, compared, partial(column_of, fan, indices, at or 0))
            )
        return mapped(shapes, {shape: n for n, shape in enumerate(gathered_rows)}), kinds

    @cached_property
    def items(self) -> Sequence[int] | None:
        """The item each row is about; None where the record does not say."""
        if self._origin is None or self._run is None:
            return None
        of_rows, order = self._origin[0].places, getattr(self.rows, "order", None)
        if of_rows is None:
            return range(len(self.rows)) if order is None else order
        return of_rows if order is None else array("q", map(of_rows.__getitem__, order))

    @property
    def origin(self) -> FanOut | None:
        """The fan-out whose slots the rows were collected from; None where that is not known."""
        return None if self._origin is None else self._origin[0].fan_out

    @property
    def item_columns(self) -> Columns | None:
        """The columns of the items that `items` are of; None where they are not kept as such."""
        held = None if self._origin is None else self._origin[0].fan_out.items
        return held if isinstance(held, Columns) else None

    def _place_of(self, fan: FanOut, index: int) -> int | None:
        """Say where the values of a branch's decision begin."""
        shape = fan.shape(index)
        event = None if shape is None else self.deciding(fan, shape)
        return None if event is None else event.at

    def _carried_behind(self, row: int) -> SubjectFacts | None:
        if self._items_of_rows is None or row >= len(self._items_of_rows["items"]):
            return None
        stage, execution, items = (self._items_of_rows[k] for k in ("stage", "execution", "items"))
        return self._by_place.get((stage, execution, items[row]))

    @cached_property
    def _by_place(self) -> dict[tuple[str, int, int], SubjectFacts]:
        return {(facts.stage, facts.execution, facts.index): facts for facts in self._carried}

    def items_of_rows(self, most: int) -> dict[str, Any] | None:
        """Give which item each of the first rows is about, where the record says so."""
        if self._origin is None or self._run is None:
            held = self._items_of_rows
            return None if held is None else {**held, "items": list(held["items"][:most])}
        rows, (group, execution) = self._origin
        many = range(min(most, len(self.rows)))
        place_of = self.rows.place_of if isinstance(self.rows, WireRows) else int
        items = [rows.item_of(place_of(row)) for row in many]
        return {"stage": group.key, "execution": execution, "items": items}

    @cached_property
    def _origin(self) -> tuple[VerdictRows, tuple[FanOutGroup, int]] | None:
        """The rows as they were collected, with the fan-out they were collected from."""
        for group in self.fan_outs if self._collected is not None else ():
            for execution, fan in enumerate(group.executions):
                if self._collected is not None and fan is self._collected.fan_out:
                    return self._collected, (group, execution)
        return None

    def _unknown(self, subject: Any) -> NotCarried:
        if not self.complete:
            return NotCarried(
                f"subject {show(subject)} is not carried: this copy holds {len(self._carried)} of "
                f"{self.subjects_total} subjects",
                fix="ask the live envelope, or an export with more of its dossier",
            )
        names = (show(facts.subject) for facts in self.subjects() if facts.subject is not None)
        known = list(islice(names, 1000))
        return SubjectNotFound(
            f"no subject is called {show(subject)}",
            code="unknown_subject",
            fix=row_hint(subject, len(self.rows))
            or did_you_mean(show(subject), known)
            or (None if known else "the fan-out names no subject key; ask by row="),
        )

    # -- written form ----------------------------------------------------------------------

    def to_dict(self, cap: int | None = None) -> dict[str, Any]:
        """Write the dossier down, at most ``cap`` subjects and rows of it, with how many there are.

        Rule sets with function rules are written by name and digest only; their decisions are
        then written as words.
        """
        from runbook_nb.runbook.carried import write_dossier

        return write_dossier(self, cap)

    @classmethod
    def from_dict(cls, data: Any) -> Dossier:
        """Read a written dossier.

        Raises
        ------
        LoadError
            It is no dossier of a format this version knows.
        """
        from runbook_nb.runbook.carried import read_dossier

        return read_dossier(data)


def _collected(run: Run, rowset: Rowset | None) -> VerdictRows | None:
    """Give the verdict rows as they were collected from slots, if that is where they are from."""
    written = run.raw[1].get("verdicts")
    if rowset is None or not isinstance(written, VerdictRows):
        return None
    # A policy may have had each row served; they stand in the same order.
    return written if len(rowset.rows.source) == len(written) else None


def narrowed(
    found: Sequence[SubjectFacts], row: Mapping[str, Any] | None = None
) -> Sequence[SubjectFacts]:
    """Narrow several subjects of one name down to those a row can be about.

    Those that were decided come before those that were not; then the row's verdict and the values
    it shows must be those of the decision. Where the decisions that are left are all alike, any of
    them explains the row.
    """
    if not 1 < len(found) <= MAX_NAMESAKES:
        return found
    left = [facts for facts in found if facts.decision is not None] or list(found)
    if row is not None:
        left = [facts for facts in left if _agrees(facts, row)]
    # As they may be seen: values that a policy hides make no difference a reader could name.
    seen = [facts.decision.to_dict() for facts in left if facts.decision is not None]
    if seen and row is not None and all(one == seen[0] for one in seen):
        return left[:1]
    return left or found


def _agrees(facts: SubjectFacts, row: Mapping[str, Any]) -> bool:
    decision = facts.decision
    if decision is None or decision.branch != row.get("verdict"):
        return False
    return not isinstance(decision, Decision) or all(
        condition.redacted or to_wire(condition.actual) == row[condition.key]
        for condition in decision.conditions
        if condition.key in row and condition.actual is not MISSING
    )
