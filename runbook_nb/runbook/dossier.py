"""What views of an envelope need beyond the wire: every subject's fate and the facts that decided.

Bridge layer. The wire holds capped rows, text and a ticket. A `Dossier` holds the rule sets that
judged, the structure, and per subject its key, status, decision and compared values: what
condition rows already disclose, nothing more, redacted by the same policy. A live dossier reads
the run's log; a carried one holds what was written down, and says how much of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._frozen import Immutable
from runbook_nb._json import to_wire
from runbook_nb._text import MISSING, did_you_mean, show
from runbook_nb.errors import LoadError, RunbookError
from runbook_nb.record.counts import FanOutCounts
from runbook_nb.record.log import FanOut
from runbook_nb.record.redact import PLACEHOLDER
from runbook_nb.record.slots import decision_of, reason_of
from runbook_nb.record.structure import Structure
from runbook_nb.rules import Decision, RuleSet, path_for
from runbook_nb.rules.written import read as read_tagged
from runbook_nb.rules.written import write as write_tagged

if TYPE_CHECKING:
    from runbook_nb.record.run import Run
    from runbook_nb.runbook.declare import Declaration
    from runbook_nb.runbook.verdicts import Rowset

#: Written into every carried dossier.
DOSSIER_FORMAT: Final = "runbook_nb/dossier/1"


class NotCarried(RunbookError, LookupError):
    """Something was asked for that this copy of an answer does not hold."""

    code = "not_carried"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectFacts(Immutable):
    """What became of one subject.

    Attributes
    ----------
    subject : object
        What names it; None for the run's own decisions outside any fan-out.
    stage : str
        Id of its fan-out, or of the decider outside any.
    index : int
        Position of its item.
    status : {"ok", "failed", "not_reached"}
    reason : str or None
        Why there is no verdict.
    decision : Decision or None
        The last decision of its branch, redacted.
    """

    subject: Any
    stage: str
    index: int
    status: str
    reason: str | None = None
    decision: Decision | None = None


class _Hidden:
    """Keys whose values were taken out before a dossier was written."""

    __slots__ = ("_keys",)

    def __init__(self, keys: frozenset[str]) -> None:
        self._keys = keys

    def hides_key(self, key: str) -> bool:
        return key in self._keys

    def scrub(self, value: Any) -> Any:
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        return (_Hidden, (self._keys,))


class Dossier:
    """The evidence behind an envelope.

    Attributes
    ----------
    procedure : str
        The procedure's name.
    rule_sets : tuple of RuleSet
        Those that judged, in order of first judging.
    structure : Structure
    decider : str or None
        The configured decider.
    fan_outs : tuple of FanOutCounts
    rows : tuple of mapping
        Every verdict row, also past the cap of the wire.
    units : mapping
        Column -> unit.
    ranked : bool
        Whether the rows are sorted by a declared rank.
    """

    def __init__(
        self,
        *,
        procedure: str,
        rule_sets: Sequence[RuleSet],
        structure: Structure,
        decider: str | None,
        fan_outs: Sequence[FanOutCounts],
        rows: Sequence[Mapping[str, Any]],
        units: Mapping[str, str],
        ranked: bool,
        stamp: tuple[str, str] | None,
        run: Run | None = None,
        carried: Sequence[SubjectFacts] = (),
        subjects_total: int | None = None,
    ) -> None:
        self.procedure = procedure
        self.rule_sets = tuple(rule_sets)
        self.structure = structure
        self.decider = decider
        self.fan_outs = tuple(fan_outs)
        self.rows = tuple(rows)
        self.units = units
        self.ranked = ranked
        self.stamp = stamp
        self._run = run
        self._carried = tuple(carried)
        self._total = subjects_total

    @classmethod
    def of_run(cls, declaration: Declaration, run: Run, rowset: Rowset | None) -> Dossier:
        """Make the dossier of a run that answered."""
        verdicts = declaration.verdicts
        rules = declaration.rules
        return cls(
            procedure=run.name,
            rule_sets=run.rule_sets(),
            structure=run.structure,
            decider=None if verdicts is None else verdicts.decider,
            fan_outs=run.fan_outs,
            rows=() if rowset is None else rowset.rows,
            units={} if verdicts is None else verdicts.units,
            ranked=bool(verdicts is not None and verdicts.rank),
            stamp=None if rules is None else (rules.name, rules.version),
            run=run,
        )

    # -- subjects --------------------------------------------------------------------------

    @property
    def subjects_total(self) -> int:
        """How many subjects there were."""
        if self._total is not None:
            return self._total
        if self._run is None:
            return len(self._carried)
        total = sum(len(fan) for fan in self._run.log.fan_outs())
        return total if total else sum(1 for _ in self._own_decisions())

    @property
    def complete(self) -> bool:
        """Whether every subject is held here."""
        return self._run is not None or len(self._carried) == self.subjects_total

    def subjects(self) -> Iterator[SubjectFacts]:
        """Yield what became of each subject, in item order."""
        if self._run is None:
            yield from self._carried
            return
        fans = list(self._run.log.fan_outs())
        if not fans:
            yield from self._own_decisions()
        for fan in fans:
            for index in range(len(fan)):
                yield self._facts(fan, index)

    def named_subjects(self, column: str | None = None) -> Iterator[tuple[Any, SubjectFacts]]:
        """Yield each subject with its name; see `find` for ``column``."""
        if self._run is None:
            yield from ((facts.subject, facts) for facts in self._carried)
            return
        for fan in self._run.log.fan_outs():
            for index in range(len(fan)):
                yield self._name(fan, index, column), self._facts(fan, index)

    def _facts(self, fan: FanOut, index: int) -> SubjectFacts:
        assert self._run is not None  # noqa: S101 - only live dossiers read fan-outs
        redactor = self._run.redactor
        status = fan.status(index)
        return SubjectFacts(
            subject=redactor.scrub(fan.subject_of(index)),
            stage=fan.stage.id,
            index=index,
            status=status,
            reason=None if status == "ok" else redactor.text(reason_of(fan, index)),
            decision=decision_of(fan, index, redactor),
        )

    def _own_decisions(self) -> Iterator[SubjectFacts]:
        assert self._run is not None  # noqa: S101 - only live dossiers read the log
        for place, recorded in enumerate(self._run.walk.iter_decisions()):
            yield SubjectFacts(
                subject=None,
                stage=recorded.stage.id,
                index=place,
                status="ok",
                decision=recorded.decision,
            )

    def find(self, subject: Any, *, column: str | None = None) -> SubjectFacts:
        """Find one subject by what names it.

        Parameters
        ----------
        subject : object
            Its name.
        column : str, optional
            Key of the items to look under where the fan-out declared no subject key.

        Raises
        ------
        NotCarried
            This copy does not hold it, or several subjects have that name.
        """
        found = list(self._candidates(subject, column))
        if len(found) == 1:
            return found[0]
        if found:
            places = ", ".join(str(facts.index) for facts in found[:10])
            raise NotCarried(
                f"{len(found)} subjects are called {show(subject)}: items {places}",
                code="ambiguous_subject",
                fix="name the row instead: why(row=…)",
            )
        raise self._unknown(subject)

    def _candidates(self, subject: Any, column: str | None) -> Iterator[SubjectFacts]:
        if self._run is None:
            yield from (f for f in self._carried if _names(f.subject, subject))
            return
        for fan in self._run.log.fan_outs():
            for index in range(len(fan)):
                if _names(self._name(fan, index, column), subject):
                    yield self._facts(fan, index)

    def _name(self, fan: FanOut, index: int, column: str | None) -> Any:
        assert self._run is not None  # noqa: S101 - only live dossiers read fan-outs
        name = fan.subject_of(index)
        item = fan.items[index]
        if (
            name is None
            and fan.subject is None
            and column is not None
            and isinstance(item, Mapping)
        ):
            name = item.get(column)
        return self._run.redactor.scrub(name)

    def _unknown(self, subject: Any) -> NotCarried:
        if not self.complete:
            return NotCarried(
                f"subject {show(subject)} is not carried: this copy holds {len(self._carried)} of "
                f"{self.subjects_total} subjects",
                fix="ask the live envelope, or an export with more of its dossier",
            )
        known: list[str] = []
        for facts in self.subjects():
            if facts.subject is not None:
                known.append(show(facts.subject))
            if len(known) == 1000:
                break
        return NotCarried(
            f"no subject is called {show(subject)}",
            code="unknown_subject",
            fix=did_you_mean(show(subject), known)
            or (None if known else "the fan-out names no subject key; ask by row="),
        )

    # -- written form ----------------------------------------------------------------------

    def to_dict(self, cap: int | None = None) -> dict[str, Any]:
        """Write the dossier down, at most ``cap`` subjects of it, with how many there are.

        Rule sets with function rules are written by name and digest only; their decisions are
        then written as sentences.
        """
        written = {id(rules): _written_rules(rules) for rules in self.rule_sets}
        numbers = {id(rules): place for place, rules in enumerate(self.rule_sets)}
        subjects: list[dict[str, Any]] = []
        for facts in self.subjects():
            if cap is not None and len(subjects) == cap:
                break
            subjects.append(_written_subject(facts, numbers, written))
        return {
            "format": DOSSIER_FORMAT,
            "procedure": self.procedure,
            "stamp": None if self.stamp is None else list(self.stamp),
            "decider": self.decider,
            "rule_sets": [written[id(rules)] for rules in self.rule_sets],
            "structure": to_wire(self.structure.to_dict()),
            "fan_outs": [counts.to_dict() for counts in self.fan_outs],
            "units": dict(self.units),
            "ranked": self.ranked,
            "rows": to_wire(list(self.rows if cap is None else self.rows[:cap])),
            "rows_total": len(self.rows),
            "subjects": subjects,
            "subjects_total": self.subjects_total,
        }

    @classmethod
    def from_dict(cls, data: Any) -> Dossier:
        """Read a written dossier.

        Raises
        ------
        LoadError
            It is no dossier of a format this version knows.
        """
        if not isinstance(data, Mapping) or data.get("format") != DOSSIER_FORMAT:
            raise LoadError(
                "this is no dossier this version can read",
                where="dossier",
                fix=f"its format should be {DOSSIER_FORMAT!r}",
            )
        try:
            return cls._read(data)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise LoadError(f"the dossier is damaged: {error}", where="dossier") from error

    @classmethod
    def _read(cls, data: Mapping[str, Any]) -> Dossier:
        rule_sets = [
            RuleSet.from_dict(entry["content"]) if entry.get("content") else None
            for entry in data["rule_sets"]
        ]
        stamp = data.get("stamp")
        return cls(
            procedure=data["procedure"],
            rule_sets=[rules for rules in rule_sets if rules is not None],
            structure=Structure.from_dict(data["structure"]),
            decider=data.get("decider"),
            fan_outs=[FanOutCounts(**counts) for counts in data["fan_outs"]],
            rows=data["rows"],
            units=data.get("units", {}),
            ranked=bool(data.get("ranked")),
            stamp=None if stamp is None else (stamp[0], stamp[1]),
            carried=[_read_subject(entry, rule_sets) for entry in data["subjects"]],
            subjects_total=data["subjects_total"],
        )


def _names(name: Any, asked: Any) -> bool:
    if name is None:
        return False
    return bool(name == asked and type(name) is type(asked)) or (
        isinstance(asked, str) and not isinstance(name, str) and show(name) == asked
    )


def _written_rules(rules: RuleSet) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": rules.name, "version": rules.version, "digest": rules.digest}
    try:
        entry["content"] = rules.to_dict()
    except RunbookError:  # a function rule has no written form
        entry["content"] = None
    return entry


def _written_subject(
    facts: SubjectFacts, numbers: Mapping[int, int], written: Mapping[int, Mapping[str, Any]]
) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "subject": to_wire(facts.subject),
        "stage": facts.stage,
        "index": facts.index,
        "status": facts.status,
    }
    if facts.reason is not None:
        entry["reason"] = facts.reason
    decision = facts.decision
    if decision is None:
        return entry
    number = numbers.get(id(decision.rules))
    if number is None or written[id(decision.rules)]["content"] is None:
        entry["decided"] = {"branch": decision.branch, "sentence": decision.sentence}
        return entry
    conditions = decision.conditions
    entry["decision"] = {
        "rules": number,
        "codes": list(decision.path.codes),
        "values": [
            PLACEHOLDER if condition.redacted else _written_value(condition.actual)
            for condition in conditions
        ],
    }
    hidden = sorted({condition.key for condition in conditions if condition.redacted})
    if hidden:
        entry["decision"]["hidden"] = hidden
    return entry


def _written_value(value: Any) -> Any:
    if value is MISSING:
        return {"$missing": True}
    if isinstance(value, float) and isnan(value):
        return {"$decimal": "NaN"}
    try:
        return to_wire(write_tagged(value))
    except Exception:  # a value no rule can compare is carried by its type name
        return f"<{type(value).__name__}>"


def _read_value(value: Any) -> Any:
    if isinstance(value, Mapping) and value.get("$missing") is True:
        return MISSING
    return read_tagged(value)


def _read_subject(entry: Mapping[str, Any], rule_sets: Sequence[RuleSet | None]) -> SubjectFacts:
    decision = None
    said = entry.get("decision")
    if said is not None:
        rules = rule_sets[said["rules"]]
        if rules is not None:
            hidden = frozenset(said.get("hidden", ()))
            path = path_for(rules, [int(code) for code in said["codes"]])
            values = tuple(_read_value(value) for value in said["values"])
            if len(values) != len(path.codes):
                raise ValueError(f"subject {entry.get('subject')!r} has {len(values)} values")
            decision = Decision(path, values, _Hidden(hidden) if hidden else None)
    return SubjectFacts(
        subject=entry.get("subject"),
        stage=entry["stage"],
        index=entry["index"],
        status=entry["status"],
        reason=entry.get("reason"),
        decision=decision,
    )


__all__ = ["Dossier", "NotCarried", "SubjectFacts"]
