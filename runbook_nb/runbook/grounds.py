"""What there is to hold an answer's claims against: dossier, record, filed walk, rule sets.

Bridge layer. A ground only gathers; it compares nothing. What is not at hand is None, with the
reason in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from runbook_nb._deep import read_json
from runbook_nb._text import MISSING_CELL, show
from runbook_nb.errors import DefinitionError, LoadError, RunbookError
from runbook_nb.record.redact import PLACEHOLDER
from runbook_nb.record.run import Run
from runbook_nb.rules import Decision, RuleSet
from runbook_nb.rules.notes import Note, notes_of
from runbook_nb.runbook.dossier import Dossier, RuleSource, SubjectFacts, narrowed
from runbook_nb.runbook.envelope import Envelope
from runbook_nb.runbook.fans import FanOutGroup, fan_out_groups
from runbook_nb.runbook.gaps import rows_mismatch, rule_notes
from runbook_nb.runbook.names import name_key
from runbook_nb.runbook.sides import Side, side_of, side_of_facts
from runbook_nb.runbook.tickets import FILED, TICKETS
from runbook_nb.runbook.verdicts import DECLINED_VERDICT, subject_column

if TYPE_CHECKING:
    from runbook_nb.artifacts import Record

#: Why nothing can be said of what a ticket stands for.
NO_STORE: Final = "no store is at hand to redeem its ticket"
NOT_FILED: Final = "it was not filed"


class Redeemed(NamedTuple):
    """What a ticket gave.

    Attributes
    ----------
    record : Record or None
        What the store holds.
    gap : str
        Why there is nothing; empty where there is.
    damage : str
        What is wrong with what a file carries of it, or a store; empty where nothing is.
    """

    record: Record | None
    gap: str
    damage: str = ""


#: What the entries of an account are held against.
ACCOUNTED: Final = "what was recorded of the procedure, accounted for anew"


class Ground:
    """What there is to hold the claims of one answer against.

    Parameters
    ----------
    envelope : Envelope
    artifacts : BoundArtifacts or Toolbox, optional
        Where tickets are redeemed; by default what the envelope came with.
    rules : RuleSet, mapping or several of them
        Rule sets that the checker has from elsewhere.
    recording : path, mapping, Recording or RecordedRun, optional
        A recording of the run that the checker has from elsewhere.
    """

    def __init__(
        self, envelope: Envelope, *, artifacts: Any = None, rules: Any = (), recording: Any = None
    ) -> None:
        self.envelope = envelope
        self.result: Mapping[str, Any] = envelope["result"]
        self.coverage: Mapping[str, Any] = envelope["af_coverage"]
        self.dossier: Dossier | None = envelope.dossier if envelope.carries_dossier else None
        self.artifacts = getattr(artifacts, "artifacts", artifacts) or envelope.artifacts
        self.rules = _rule_sets(rules)
        self.live = envelope.run is not None
        self.has_rows = {"verdicts", "rows_shown", "rows_total"} <= self.result.keys()
        self._recording = recording

    @cached_property
    def account(self) -> Mapping[str, Any]:
        """What the record of a live answer says that it has to say; empty where it cannot."""
        run = self.envelope.run
        return {} if run is None else run.account or {}

    @cached_property
    def accounted_verdicts(self) -> dict[int, str]:
        """The verdict that the account has for each row held that is about one of its subjects."""
        told = {}
        for row in self.account.get("verdicts", ()):
            column = subject_column(row)
            told[column, show(row.get(column))] = str(row["verdict"])
        column = self.column
        named = ((n, (column, show(row.get(str(column))))) for n, row in enumerate(self.rows))
        return {n: told[name] for n, name in named if name in told} if told else {}

    # -- the rows ------------------------------------------------------------------------------

    @cached_property
    def shown(self) -> Sequence[Mapping[str, Any]]:
        """The rows the answer shows."""
        rows: Sequence[Mapping[str, Any]] = self.result.get("verdicts", ())
        return rows

    @cached_property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Every row known: those of the dossier, else those shown."""
        return self.shown if self.dossier is None else self.dossier.rows

    @property
    def total(self) -> int:
        """How many rows the answer says there are."""
        return int(self.result.get("rows_total", len(self.shown)))

    @property
    def holds_rows(self) -> bool:
        """Whether every row is held, by the word of the dossier or of the answer."""
        total = self.total if self.dossier is None else self.dossier.rows_total
        return len(self.rows) == total

    @cached_property
    def words(self) -> Sequence[str]:
        """The verdict of every row known."""
        column = getattr(self.rows, "column", None)
        held = column("verdict") if column is not None else None
        if held is not None:
            return [str(word) for word in held]
        return [str(row.get("verdict")) for row in self.rows]

    @cached_property
    def word_counts(self) -> dict[str, int]:
        """How many of the rows known have each verdict."""
        found: dict[str, int] = {}
        for word in self.words:
            found[word] = found.get(word, 0) + 1
        return found

    @property
    def column(self) -> str | None:
        """The column that says whom a row is about."""
        return subject_column(self.rows[0]) if len(self.rows) else None

    def row_name(self, place: int) -> str:
        """Name a row in a few words: ``cluster=prod-3``, else its number."""
        row = self.rows[place]
        column = subject_column(row)
        if column is None or show(row[column]) == MISSING_CELL:
            return f"row {place + 1}"
        return f"{column}={show(row[column])}"

    # -- the subjects --------------------------------------------------------------------------

    @cached_property
    def side(self) -> Side | None:
        """Every subject held here with what became of it; None without a dossier."""
        if self.dossier is None:
            return None
        if self.live and any(group.judges for group in self.dossier.fan_outs):
            return side_of(self.envelope)
        return side_of_facts(self.envelope, self.subjects)

    @cached_property
    def subjects(self) -> Sequence[SubjectFacts]:
        """What became of each subject of a copy, or of a run's own decisions."""
        return [] if self.dossier is None else list(self.dossier.subjects())

    @cached_property
    def complete(self) -> bool:
        """Whether every subject is held."""
        return self.dossier is not None and self.dossier.complete

    @property
    def carried_words(self) -> str:
        """Say how many subjects of how many are held."""
        assert self.dossier is not None  # noqa: S101 - asked where there is one
        held = self.dossier.subjects_total if self.live else len(self.subjects)
        return f"{held:,} of {self.dossier.subjects_total:,} subjects carried"

    def subject_name(self, place: int) -> str:
        """Name a subject in a few words, as rows do."""
        assert self.side is not None  # noqa: S101 - asked where there is one
        name = self.side.subjects[place]
        key = self.naming or "subject"
        return f"item {place}" if name is None else f"{key}={show(name)}"

    @cached_property
    def naming(self) -> str | None:
        """The key that names the subjects the rows are about."""
        if self.dossier is None:
            return None
        for group in self.judging:
            node = self.dossier.structure.node(group.key)
            key = None if node is None else node.detail.get("subject")
            if isinstance(key, str):
                return key
        return self.column

    @cached_property
    def rows_name_subjects(self) -> bool:
        """Whether each decided subject must have a row of its name, and each row a subject."""
        if not self.judging or self.column is None or self.column != self.naming:
            return False
        declined = self.word_counts.get(DECLINED_VERDICT, 0)
        if self.holds_rows and any(rows_mismatch(len(self.rows), declined, self.judging)):
            return False
        if any(PLACEHOLDER in str(row.get(self.column)) for row in self.rows):
            return False  # a name that is hidden names nobody
        return not any(PLACEHOLDER in str(one.subject) for one in self.subjects[:1])

    @cached_property
    def judging(self) -> list[FanOutGroup]:
        """The fan-outs whose subjects the rows are about."""
        return [] if self.dossier is None else [g for g in self.dossier.fan_outs if g.judges]

    @cached_property
    def behind(self) -> Sequence[int | None]:
        """Give the place of the subject behind each row known; None where that is not recorded."""
        if self.dossier is None or self.side is None:
            return [None] * len(self.rows)
        if self.live and self.dossier.items is not None and self.judging:
            return self._behind_live()
        return self._behind_carried()

    @cached_property
    def speaks_branches(self) -> bool:
        """Whether the rows held say the very words of the decisions behind them."""
        side = self.side
        if side is None or not self.behind or None in self.behind:
            return False
        pairs = {(word, side.numbers[n]) for word, n in zip(self.words, self.behind, strict=True)}  # type: ignore[index]
        return all(word == side.standings[number].branch for word, number in pairs)

    def _behind_live(self) -> Sequence[int | None]:
        assert self.dossier is not None  # noqa: S101 - see `behind`
        origin = self.dossier.origin
        items = self.dossier.items
        assert origin is not None  # noqa: S101 - see `behind`
        assert items is not None  # noqa: S101 - see `behind`
        start = 0
        for group in self.judging:
            for fan in group.executions:
                if fan is origin:
                    return [start + item for item in items]
                start += len(fan)
        return self._behind_carried()

    def _behind_carried(self) -> Sequence[int | None]:
        assert self.dossier is not None  # noqa: S101 - see `behind`
        assert self.side is not None  # noqa: S101 - see `behind`
        held = {} if self.live else self._by_place
        told = None if self.live else self.dossier.items_of_rows(len(self.rows))
        by_name: dict[Any, list[int]] = {}
        for place, name in enumerate(self.side.subjects):
            key = None if name is None else name_key(name)
            if key is not None:
                by_name.setdefault(key, []).append(place)
        found: list[int | None] = []
        items = () if told is None else told["items"]
        for number, row in enumerate(self.rows):
            if number < len(items) and told is not None:
                found.append(held.get((told["stage"], told["execution"], items[number])))
                continue
            column = subject_column(row)
            key = None if column is None else name_key(row[column])
            places = by_name.get(key, ())
            found.append(places[0] if len(places) == 1 else self._one_of(places, row))
        if len(found) == 1 and found[0] is None and not self.judging:
            own = [n for n, one in enumerate(self.subjects) if one.subject is None and one.decision]
            found[0] = own[-1] if own else None
        return found

    def _one_of(self, places: Sequence[int], row: Mapping[str, Any]) -> int | None:
        if len(places) < 2:
            return places[0] if places else None
        if self.live:
            return None
        few = narrowed([self.subjects[place] for place in places], row)
        if len(few) != 1:
            return None
        return next(place for place in places if self.subjects[place] is few[0])

    @cached_property
    def _by_place(self) -> dict[tuple[str, int, int], int]:
        return {(one.stage, one.execution, one.index): n for n, one in enumerate(self.subjects)}

    def decision(self, place: int) -> Any:
        """Give the decision about a subject; None where there is none by rules."""
        return None if self.side is None else self.side.decision(place)

    def source_of(self, decision: Any) -> RuleSource | None:
        """Give the rule set that made a decision, as it is held."""
        if self.dossier is None or not isinstance(decision, Decision):
            return None
        rules = decision.path.rules
        return next((s for s in self.dossier.sources if s.judged == rules), None)

    @cached_property
    def notes(self) -> Sequence[Note]:
        """What the decisions say about their rules, where every decision is held."""
        dossier, run = self.dossier, self.envelope.run
        if run is not None:
            return rule_notes(run)
        if dossier is None:
            return ()
        structure = dossier.structure
        deciders = sum(node.kind in ("decider", "selector") for node in structure.nodes)
        loops = any(edge.kind == "loop" for edge in structure.edges)
        decisions = [one.decision for one in self.subjects if one.decision is not None]
        whole = all(isinstance(one, Decision) and one.hide is None for one in decisions)
        failed = any(one.status == "failed" for one in self.subjects)
        if not self.complete or deciders != 1 or loops or failed or not whole:
            return ()
        ordered = sorted(self.subjects, key=lambda one: (one.execution, one.index))
        made = [one.decision for one in ordered if isinstance(one.decision, Decision)]
        return notes_of((one.path, one.raw_values) for one in made)

    # -- beside the dossier --------------------------------------------------------------------

    @property
    def walk(self) -> Mapping[str, Any]:
        """The descriptor of the walk."""
        found: Mapping[str, Any] = self.result.get("walk", {})
        return found

    def redeem(self, key: str) -> Redeemed:
        """Give what stands behind a ticket of the walk's descriptor."""
        ref = self.walk.get(key)
        if ref is None:
            return Redeemed(None, NOT_FILED)
        if self.artifacts is None:
            return Redeemed(None, NO_STORE)
        place = getattr(self.artifacts, "damaged", {}).get(ref)
        if place is not None:
            damage = f"the {TICKETS[key]} filed in {place} is not what its digest is of"
            return Redeemed(None, damage, damage)
        try:
            record = self.artifacts.get_sync(ref)
        except RunbookError as error:
            gap = f"the store did not give it: {error.message}"
            changed = f"the {TICKETS[key]} in the store is not what was filed: {error.message}"
            return Redeemed(None, gap, changed if error.code == "integrity" else "")
        if record is None:
            if self._is_beside_another(key):
                damage = f"the {TICKETS[key]} filed beside it stands under another ticket"
                return Redeemed(None, damage, damage)
            return Redeemed(None, "the store does not hold it")
        return Redeemed(record, "")

    def _is_beside_another(self, key: str) -> bool:
        """Say whether what a ticket stands for is carried under a name that no ticket has."""
        beside: Mapping[str, Record] = getattr(self.artifacts, "beside", {})
        named = {self.walk.get(one) for one in TICKETS}
        return any(
            FILED.get(record.meta.kind) == TICKETS[key] and ref not in named
            for ref, record in beside.items()
        )

    @cached_property
    def filed(self) -> list[Mapping[str, Any]] | None:
        """The rows of the walk that was filed; None where they cannot be had here."""
        record = self.redeem("ref").record
        if record is None:
            return None
        try:
            rows = read_json(record.data)
        except (ValueError, TypeError, RecursionError):
            return None
        known = isinstance(rows, list) and all(isinstance(row, Mapping) for row in rows)
        return rows if known else None

    @cached_property
    def filed_names(self) -> Mapping[str, set[str]]:
        """The names that stages have in the filed walk, by their id."""
        found: dict[str, set[str]] = {}
        for row in self.filed or ():
            if row.get("stage") is not None:  # a fork stands for a stage that has a row of its own
                found.setdefault(str(row.get("stage_id")), set()).add(str(row["stage"]))
        return found

    @cached_property
    def recorded(self) -> tuple[Run | None, str]:
        """The run that a recording tells of, and why there is none or where it is from."""
        from runbook_nb.record.loading import load_recording

        source, words = self._recording, "the recording given"
        if source is None:
            found = self.redeem("recording_ref")
            if found.record is None:
                return None, found.gap
            source, words = found.record.data, "the recording that was filed"
        if isinstance(source, Run):
            return source, words
        try:
            return load_recording(source), words
        except LoadError as error:
            if self._recording is not None:
                raise
            return None, error.message

    @cached_property
    def witness(self) -> Envelope | None:
        """The same answer with the recording for its record; None without one of a whole run."""
        run, _ = self.recorded
        if run is None or self.dossier is None or is_partial(run):
            return None
        dossier = Dossier(
            procedure=run.name,
            sources=[RuleSource.of(one, run.redactor) for one in run.raw_rule_sets()],
            structure=run.structure,
            decider=self.dossier.decider,
            fan_outs=fan_out_groups(run, self.dossier.decider),
            rows=self.dossier.rows,
            units=self.dossier.units,
            ranked=self.dossier.ranked,
            rank=self.dossier.rank,
            stamp=self.dossier.stamp,
            run=run,
        )
        return Envelope.live(self.envelope, dossier=dossier, run=run, artifacts=None)


def is_partial(run: Run) -> bool:
    """Say whether a recording does not carry all of its run."""
    return bool(getattr(run, "not_carried", None))


def _rule_sets(given: Any) -> tuple[RuleSet, ...]:
    if given is None:
        return ()
    one_by_one: Iterable[Any] = [given] if isinstance(given, RuleSet | Mapping) else given
    found = []
    for one in one_by_one:
        made = RuleSet.from_dict(one) if isinstance(one, Mapping) else one
        if not isinstance(made, RuleSet):
            raise DefinitionError(
                f"rules to check an answer by are rule sets, not {type(made).__name__}",
                where="rules",
                fix="give rb.RuleSet.load(path)",
            )
        found.append(made)
    return tuple(found)
