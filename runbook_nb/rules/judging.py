"""Judging columns: each condition is put to all rows that still need it, before the next one.

The outcomes of judging form a tree, and all rows that are still undecided after as many
conditions have the same condition before them; only what they have been through differs. So one
pass over one column answers a condition for all of them, and a small table says where each goes
from there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeGuard

from runbook_nb._text import MISSING
from runbook_nb.errors import ENDS_RUN, RuleError, describe_error
from runbook_nb.rules.answering import Answering
from runbook_nb.rules.columns import Columns, Numbers, smallest
from runbook_nb.rules.evaluate import drop
from runbook_nb.rules.facts import FunctionRecord, RecordedFacts, follow, snapshot
from runbook_nb.rules.kinds import ERROR, NO, YES
from runbook_nb.rules.outcomes import NARROW, Outcomes
from runbook_nb.rules.plan import (
    CompiledCondition,
    DecisionPath,
    FilterStep,
    FunctionStep,
    Plan,
    Step,
    plan_of,
)
from runbook_nb.rules.ruleset import RuleSet

#: Place of a function rule among the conditions -> row -> what it read and gave.
Records = dict[int, dict[int, FunctionRecord]]

BY_FUNCTION: Final = "a function rule is called row by row"
BY_PATH: Final = "a dotted path is followed value by value"


class Fallback(NamedTuple):
    """A condition that was judged value by value, and why.

    Attributes
    ----------
    position : int
        The rule, or the entry of the ground outside, by its place.
    outside : bool
        Whether it is an entry of the ground outside.
    key, op : str or None
        What was asked; None for a function rule.
    why : str
        Why there was no quicker way.
    """

    position: int
    outside: bool
    key: str | None
    op: str | None
    why: str


class Found(NamedTuple):
    """What judging columns comes to."""

    paths: tuple[DecisionPath, ...]
    numbers: Numbers
    records: Records
    fallbacks: tuple[Fallback, ...]


class Refused(Exception):
    """A row may not be decided: the path refuses, or the error is given."""

    def __init__(
        self,
        row: int,
        error: RuleError | None = None,
        path: DecisionPath | None = None,
        records: Records | None = None,
    ) -> None:
        self.row = row
        self.error = error
        self.path = path
        self.records = records or {}


def judge(rules: RuleSet, columns: Columns) -> Found:
    """Judge every row; see `judge_columns`."""
    return _Judge(plan_of(rules), columns).run()


class _Judge:
    """One pass through the conditions."""

    def __init__(self, plan: Plan, columns: Columns) -> None:
        self.plan = plan
        self.columns = columns
        self.records: Records = {}
        self.fallbacks: list[Fallback] = []
        self.asked = _asked(plan)
        self.outcomes = Outcomes(plan, len(columns))
        self.answering: dict[str, Answering] = {}

    def run(self) -> Found:
        outcomes = self.outcomes
        depth = 0
        while (step := outcomes.step) is not None:
            if isinstance(step, FunctionStep):
                self.note(depth, BY_FUNCTION)
                codes = self.called(step, depth)
            else:
                codes = self.codes(step, depth)
            outcomes.answer(codes)
            depth += 1
        return self.found()

    def found(self) -> Found:
        outcomes = self.outcomes
        firsts = sorted((row, place) for place, row in outcomes.first_rows())
        paths = tuple(filter(_ended, (outcomes.nodes[place] for _, place in firsts)))
        for (row, _), path in zip(firsts, paths, strict=True):
            if path.refuses:
                raise Refused(row, None, path, self.records)
        table = {place: number for number, (_, place) in enumerate(firsts)}
        numbers: Any = outcomes.numbers
        if isinstance(numbers, bytes):
            if any(place != number for place, number in table.items()):
                told = bytearray(NARROW)
                for place, number in table.items():
                    told[place] = number
                numbers = numbers.translate(told)
        else:
            numbers = smallest([*map(table.__getitem__, numbers)], len(paths) - 1)
        return Found(paths, numbers, self.records, tuple(self.fallbacks))

    def codes(self, step: FilterStep, depth: int) -> bytes:
        """Put one condition to the rows that need it; the others' codes mean nothing."""
        key, path, test, *_ = step
        columns, size = self.columns, len(self.columns)
        condition = self.asked[depth][2]
        assert condition is not None  # noqa: S101 - a filter step has one
        known = key in columns.names
        if path is not None and not (known and columns.is_full(key)):
            if not known and path[0] not in columns.names:
                return bytes([test(MISSING)]) * size
            self.note(depth, BY_PATH)
            return self.scattered(lambda rows: self.followed(step, rows))
        if not known:
            return bytes([test(MISSING)]) * size
        answering = self.answering.get(key)
        if answering is None:
            answering = self.answering[key] = Answering(columns.held(key))
        codes = answering.codes(condition.op, condition.threshold, test)
        if codes is not None:
            return codes
        self.note(depth, answering.why(condition.op))
        return self.scattered(lambda rows: list(map(test, columns.values(key, rows))))

    def scattered(self, judge_rows: Callable[[Sequence[int]], Sequence[int]]) -> bytes:
        """Judge the rows that are not decided, and put their codes in their places."""
        rows = self.outcomes.alive()
        codes = judge_rows(rows)
        if len(rows) == self.outcomes.size:
            return bytes(codes)
        found = bytearray(self.outcomes.size)
        for row, code in zip(rows, codes, strict=True):
            found[row] = code
        return bytes(found)

    def note(self, depth: int, why: str) -> None:
        """Say that a condition is judged value by value."""
        position, outside, condition = self.asked[depth]
        key = None if condition is None else condition.key
        op = None if condition is None else condition.op
        self.fallbacks.append(Fallback(position, outside, key, op, why))

    def followed(self, step: FilterStep, rows: Sequence[int]) -> list[int]:
        """Judge a dotted key: a flat name first, else a path."""
        key, path, test, *_ = step
        assert path is not None  # noqa: S101 - or nobody had to follow it
        flat = self.columns.values(key, rows)
        bases = self.columns.values(path[0], rows)
        codes = []
        for value, base in zip(flat, bases, strict=True):
            try:
                found = follow({path[0]: base}.get, path) if value is MISSING else value
                code = test(found)
            except ENDS_RUN:
                raise
            except Exception:
                code = ERROR
            codes.append(code)
        return codes

    def called(self, step: FunctionStep, depth: int) -> bytes:
        """Call a function rule for every row that comes to it."""
        alive = self.outcomes.alive()
        records = self.records[depth] = {}
        found = bytearray(self.outcomes.size)
        for row, facts in zip(alive, self.columns.rows(alive), strict=True):
            reading = RecordedFacts(facts)
            try:
                returned = step.when(reading)
                if hasattr(returned, "__await__"):
                    drop(returned)
                    self.refuse_async(row)
                found[row] = YES if returned else NO
                records[row] = FunctionRecord(tuple(reading.inputs), snapshot(returned))
            except (*ENDS_RUN, Refused):
                raise
            except Exception as error:
                found[row] = ERROR
                said = describe_error(error)
                records[row] = FunctionRecord(
                    tuple(reading.inputs), error=said["message"], error_type=said["type"]
                )
        return bytes(found)

    def refuse_async(self, row: int) -> None:
        for place, first in self.outcomes.first_rows():
            end = self.outcomes.nodes[place]
            if first < row and isinstance(end, DecisionPath) and end.refuses:
                # Row by row, an earlier row would have been refused before.
                raise Refused(first, None, end, self.records)
        error = RuleError(
            "an asynchronous function rule cannot be awaited here",
            where=f"{self.plan.title}, row {row}" if self.plan.title else f"row {row}",
            fix="judge in an async stage, or make the rule an ordinary function",
            code="async_rule",
        )
        raise Refused(row, error)


def _ended(step: Step) -> TypeGuard[DecisionPath]:
    return isinstance(step, DecisionPath)


def _asked(plan: Plan) -> list[tuple[int, bool, CompiledCondition | None]]:
    """Give, per place among the conditions, whose it is and what it asks; None of a function."""
    asked: list[tuple[int, bool, CompiledCondition | None]] = []
    for n, entry in enumerate(plan.outside):
        asked += [(n, True, condition) for condition in entry]
    for n, conditions in enumerate(plan.conditions):
        if callable(conditions):
            asked.append((n, False, None))
        else:
            asked += [(n, False, condition) for condition in conditions]
    return asked


def read(columns: Columns, row: int, key: str) -> Any:
    """Read a key of one row as judging does: a flat name first, else a path.

    Raises whatever a strange mapping raises when it is looked into.
    """
    if key in columns.names:
        value = columns.values(key, (row,))[0]
        if value is not MISSING:
            return value
    if "." not in key:
        return MISSING
    path = key.split(".")

    def get(name: str, default: Any) -> Any:
        return columns.values(name, (row,))[0] if name in columns.names else default

    return follow(get, tuple(path))


__all__ = ["Fallback", "Found", "Records", "Refused", "judge", "read"]
