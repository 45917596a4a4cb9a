"""Judging columns: each condition is put to all rows that still need it, before the next one.

The outcomes of judging form a tree, and all rows that are still undecided after as many
conditions have the same condition before them; only what they have been through differs. So one
pass over one column answers a condition for all of them, and a small table says where each goes
from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeGuard

from runbook_nb._text import MISSING
from runbook_nb.errors import ENDS_RUN, RuleError, describe_error
from runbook_nb.rules.columns import Columns, Numbers, smallest
from runbook_nb.rules.facts import FunctionRecord, RecordedFacts, follow, snapshot
from runbook_nb.rules.kinds import CODES, ERROR, NO, YES
from runbook_nb.rules.plan import DecisionPath, FilterStep, FunctionStep, Plan, Step, plan_of
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

    def run(self) -> Found:
        size = len(self.columns)
        nodes: list[Step] = [self.plan.start]
        state: list[int] = [0] * size
        alive: list[int] = [] if isinstance(self.plan.start, DecisionPath) else list(range(size))
        depth = 0
        while alive:
            step = nodes[state[alive[0]]]
            assert not isinstance(step, DecisionPath)  # noqa: S101 - for the type checker
            codes = self.codes(step, depth, alive, state, nodes)
            known: dict[tuple[int, int], int] = {}
            for row, code in zip(alive, codes, strict=True):
                pair = (state[row], code)
                node = known.get(pair)
                if node is None:
                    before: Any = nodes[pair[0]]
                    node = known[pair] = len(nodes)
                    nodes.append(self.plan.after(before, code))
                state[row] = node
            alive = [row for row in alive if not isinstance(nodes[state[row]], DecisionPath)]
            depth += 1
        return self.found(nodes, state)

    def found(self, nodes: list[Step], state: list[int]) -> Found:
        order: dict[int, int] = {}
        for node in state:
            if node not in order:
                order[node] = len(order)
        paths = tuple(path for path in map(nodes.__getitem__, order) if _ended(path))
        refusing = [n for n, path in enumerate(paths) if path.refuses]
        numbers = [order[node] for node in state]
        if refusing:
            row = min(map(numbers.index, refusing))
            raise Refused(row, None, paths[numbers[row]], self.records)
        return Found(paths, smallest(numbers, len(paths) - 1), self.records, tuple(self.fallbacks))

    def codes(
        self,
        step: FilterStep | FunctionStep,
        depth: int,
        alive: list[int],
        state: list[int],
        nodes: list[Step],
    ) -> Sequence[int]:
        if isinstance(step, FunctionStep):
            self.note(depth, BY_FUNCTION)
            return self.called(step, depth, alive, state, nodes)
        key, path, test, *_ = step
        if path is None:
            return list(map(test, self.columns.values(key, alive)))
        self.note(depth, BY_PATH)
        return self.followed(step, alive)

    def note(self, depth: int, why: str) -> None:
        """Say that a condition is judged value by value."""
        self.fallbacks.append(Fallback(*self.asked[depth], why))

    def followed(self, step: FilterStep, alive: list[int]) -> list[int]:
        key, _, test, *_ = step
        codes = []
        for row in alive:
            try:
                code = test(read(self.columns, row, key))
            except ENDS_RUN:
                raise
            except Exception:
                code = ERROR
            codes.append(code)
        return codes

    def called(
        self,
        step: FunctionStep,
        depth: int,
        alive: list[int],
        state: list[int],
        nodes: list[Step],
    ) -> list[int]:
        codes = []
        records = self.records[depth] = {}
        for row in alive:
            reading = RecordedFacts(self.columns[row])
            try:
                returned = step.when(reading)
                if hasattr(returned, "__await__"):
                    _drop(returned)
                    self.refuse_async(row, state, nodes)
                code = YES if returned else NO
                records[row] = FunctionRecord(tuple(reading.inputs), snapshot(returned))
            except (*ENDS_RUN, Refused):
                raise
            except Exception as error:
                code = ERROR
                said = describe_error(error)
                records[row] = FunctionRecord(
                    tuple(reading.inputs), error=said["message"], error_type=said["type"]
                )
            codes.append(code)
        return codes

    def refuse_async(self, row: int, state: list[int], nodes: list[Step]) -> None:
        for earlier in range(row):  # judged row by row, an earlier row would have refused first
            end = nodes[state[earlier]]
            if isinstance(end, DecisionPath) and end.refuses:
                raise Refused(earlier, None, end, self.records)
        error = RuleError(
            "an asynchronous function rule cannot be awaited here",
            where=f"{self.plan.title}, row {row}" if self.plan.title else f"row {row}",
            fix="judge in an async stage, or make the rule an ordinary function",
            code="async_rule",
        )
        raise Refused(row, error)


def _ended(step: Step) -> TypeGuard[DecisionPath]:
    return isinstance(step, DecisionPath)


def _drop(awaitable: Any) -> None:
    close = getattr(awaitable, "close", None)
    if callable(close):
        close()  # else the coroutine warns that nobody awaited it


def _asked(plan: Plan) -> list[tuple[int, bool, str | None, str | None]]:
    """Give, per place among the conditions, whose it is and what it asks."""
    asked: list[tuple[int, bool, str | None, str | None]] = []
    for n, entry in enumerate(plan.outside):
        asked += [(n, True, condition.key, condition.op) for condition in entry]
    for n, conditions in enumerate(plan.conditions):
        if callable(conditions):
            asked.append((n, False, None, None))
        else:
            asked += [(n, False, condition.key, condition.op) for condition in conditions]
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


__all__ = ["CODES", "Fallback", "Found", "Records", "Refused", "judge", "read"]
