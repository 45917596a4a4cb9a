"""The facts a record holds of each subject, as columns, ready to be judged again.

Bridge layer. Rows that were judged as columns are there as they came. Of any other branch the state
its decider read is rebuilt from what the branch wrote before. A copy holds the compared values
alone. What a policy hides stays hidden, and what is not sure is not said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import compress, takewhile
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._text import MISSING
from runbook_nb.record.judged import JudgedFan
from runbook_nb.record.log import FAILED, NOT_REACHED, OK, Event, FanOut, Shape
from runbook_nb.record.shapes import STATE_CODES, ShapeFacts, facts_of, replayed
from runbook_nb.rules import Decision
from runbook_nb.rules.columns import Columns, smallest
from runbook_nb.rules.held import PlainColumn
from runbook_nb.rules.known import Known, KnownFacts
from runbook_nb.rules.plan import DecisionPath, when_of

if TYPE_CHECKING:
    from runbook_nb.record.redact import Redactor
    from runbook_nb.runbook.dossier import Dossier

#: Of a row that was never reached, or not decided, nothing is known.
NOTHING: Final = Known(frozenset())


class FactTable:
    """Facts being gathered, row by row or a whole column of rows at a time.

    Parameters
    ----------
    size : int
        How many rows there will be.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._columns: dict[str, list[Any]] = {}
        self._kinds = [0] * size
        self._table: dict[Known, int] = {NOTHING: 0}

    def know(self, rows: Sequence[int], known: Known) -> None:
        """Say what is known of some rows."""
        number = self._table.setdefault(known, len(self._table))
        for row in rows:
            self._kinds[row] = number

    def put(self, key: str, rows: Sequence[int], values: Sequence[Any]) -> None:
        """Put the values of a key in some rows."""
        column = self._columns.setdefault(key, [MISSING] * self.size)
        for row, value in zip(rows, values, strict=True):
            column[row] = value

    def hide(self, redactor: Redactor) -> None:
        """Take out what a policy hides, and say of which rows it did."""
        hidden = frozenset(key for key in self._columns if hides(redactor, key))
        for key in hidden:
            del self._columns[key]
        changed: dict[int, set[str]] = {}
        for key, column in self._columns.items():
            for row, value in enumerate(column):
                if value is not MISSING and redactor.scrub(value) != value:
                    column[row] = MISSING
                    changed.setdefault(row, set()).add(key)
        known = list(self._table)
        for row, number in enumerate(self._kinds):
            one = known[number]
            more = hidden | changed.get(row, set())
            if one is not NOTHING and more:
                self.know([row], one._replace(hidden=one.hidden | more))

    def facts(self) -> KnownFacts:
        """Give what was gathered."""
        held = {key: PlainColumn(column) for key, column in self._columns.items()}
        return KnownFacts(self._laid_out(held), tuple(self._table), self._kinds)

    def _laid_out(self, held: Mapping[str, PlainColumn]) -> Columns:
        """Make columns of which each row has the keys it has a value for."""
        names = tuple(held)
        if all(type(MISSING) not in column.classes for column in held.values()):
            return Columns(held, self.size, names=names)
        order: dict[tuple[bool, ...], int] = {}
        there = zip(*([v is not MISSING for v in self._columns[n]] for n in names), strict=True)
        numbers = [order.setdefault(row, len(order)) for row in there]
        layouts = tuple(tuple(compress(names, has)) for has in order)
        return Columns(held, self.size, layouts, smallest(numbers, len(order) - 1), names=names)


def hides(redactor: Redactor, key: str) -> bool:
    """Say whether a policy may hide what stands under a key, wherever it says so."""
    return redactor.hides_key(key) or any(key in path for path in redactor.paths)


def facts_of_fans(dossier: Dossier, fans: Sequence[FanOut]) -> KnownFacts:
    """Give the facts of the branches of live fan-outs, one behind the other."""
    redactor = dossier.redactor
    if (
        len(fans) == 1
        and isinstance(fans[0], JudgedFan)
        and not (redactor.active or fans[0].status_count(NOT_REACHED))
    ):
        return KnownFacts(fans[0].items)
    table = FactTable(sum(map(len, fans)))
    start = 0
    for fan in fans:
        if isinstance(fan, JudgedFan):  # a row is its own facts, whether it could be judged or not
            reached = list(fan.ended_as(OK, FAILED))
            rows = [start + index for index in reached]
            table.know(rows, Known())
            for name in fan.items.names:
                table.put(name, rows, fan.items.held(name).many(reached))
        else:
            for (number, status), indices in fan.alike().items():
                if status == NOT_REACHED:  # a stop ended it where it was
                    continue
                shape = fan.log.shapes[number]
                event = dossier.deciding(fan, shape) or _refused(fan, shape)
                if event is not None:
                    _add_branches(table, fan, shape, event, (indices, start))
        start += len(fan)
    if redactor.active:
        table.hide(redactor)
    return table.facts()


def _refused(fan: FanOut, shape: Shape) -> Event | None:
    """Give the failure of a decider, which is where the facts it could not judge were there."""
    last = facts_of(fan.log, shape).events[-1:]
    return next(
        (e for e in last if e.code.kind == "error" and e.code.stage.kind == "decider"), None
    )


def _add_branches(
    table: FactTable,
    fan: FanOut,
    shape: Shape,
    event: Event,
    branches: tuple[Sequence[int], int],
) -> None:
    """Add branches of one shape: the state their decider read, and the values it compared."""
    indices, start = branches
    facts = facts_of(fan.log, shape)
    rows = [start + index for index in indices]
    unsure = _staged(facts, event)
    places = _plain_places(facts, event)
    if places is not None:
        for key, at in places.items():
            table.put(key, rows, fan.column(at, indices))
    else:
        for row, index in zip(rows, indices, strict=True):
            for key, value in _state(fan, shape, event, index).items():
                table.put(key, [row], [value])
    compared = dict(_compared(event))
    for key, at in compared.items():
        table.put(key, rows, fan.column(event.at + at, indices))
    table.know(rows, Known(None, frozenset(), frozenset(unsure - compared.keys())))


def _staged(facts: ShapeFacts, event: Event) -> set[str]:
    """Give the keys the deciding stage wrote: whether before or after it decided is not known."""
    return {
        one.code.key or ""
        for one in facts.events
        if one.code.kind in STATE_CODES and one.execution == event.execution
    }


def _plain_places(facts: ShapeFacts, event: Event) -> dict[str, int] | None:
    """Say where the values stand that were written before a decision; None where it is not plain.

    That is where all of them were written to the branch's own state, and written whole.
    """
    if event.code.stage.path != facts.level:
        return None
    before = [one for one in facts.changes if one.execution < event.execution]
    if any(one.code.kind != "write" for one in before):
        return None
    return {one.code.key or "": one.at for one in before}


def _state(fan: FanOut, shape: Shape, event: Event, index: int) -> Mapping[str, Any]:
    """Rebuild the state that a decision of one branch was made in."""
    values, offset = fan.part(index)
    width = fan.log.width_of(shape.codes)
    told = fan.log.events(shape.codes)
    many = sum(1 for _ in takewhile(lambda one: one.execution != event.execution, told))
    own = list(values[offset : offset + width])
    return replayed(fan.log, shape.codes[:many], own, event.code.stage.path)[0]


def _compared(event: Event) -> Iterator[tuple[str, int]]:
    """Yield the keys that were compared, with the places of their values."""
    path = event.code.path
    return iter(()) if path is None else _places_of(path)  # a failure tells of no values


def _places_of(path: DecisionPath) -> Iterator[tuple[str, int]]:
    for tried in path.tried:
        when = when_of(path.rules, tried)
        if isinstance(when, Mapping):
            keys = [key for key, ops in when.items() for _ in ops]
            yield from ((key, tried.start + n) for n, key in enumerate(keys))


def facts_of_decisions(decisions: Sequence[Any]) -> KnownFacts:
    """Give what decisions disclose: the values they compared, those hidden left out."""
    table = FactTable(len(decisions))
    alike: dict[DecisionPath, list[int]] = {}
    for row, decision in enumerate(decisions):
        if isinstance(decision, Decision):
            alike.setdefault(decision.path, []).append(row)
    for path, rows in alike.items():
        first: Decision = decisions[rows[0]]
        columns = list(zip(*(decisions[row].values for row in rows), strict=True))
        keys = list(_places_of(path))
        hidden = {key for key, _ in keys if first.hides(key)}
        for key, at in keys:
            if key not in hidden:
                table.put(key, rows, columns[at])
        table.know(rows, Known(frozenset(key for key, _ in keys) - hidden, frozenset(hidden)))
    return table.facts()
