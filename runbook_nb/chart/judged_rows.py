"""Running a stage that judges each row: by columns, and as a branch where that is not enough.

Chart layer. Rows are judged by columns first, which says which of them go the same way. What a
branch of each kind appends is what all of its kind have: of a row that is decided it is known, and
of any other the first runs through the stage's chart as a branch of a fan-out does. So the record
is that of a fan-out, and no other row costs a call. Where rows have to be run one by one (a rule
is a function, a loop counts their visits, they share no keys) they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._frozen import FrozenList
from runbook_nb.chart.endings import Steps
from runbook_nb.chart.fanout import FanOutBranches, _collected, _failed, _fan_of
from runbook_nb.chart.judging import appended_by
from runbook_nb.chart.model import JudgeEachStage
from runbook_nb.chart.plan import StagePlan
from runbook_nb.chart.scope import Frame
from runbook_nb.errors import ChartError, RuleError
from runbook_nb.record.judged import Cell, Constant, JudgedFan, compared
from runbook_nb.record.tracks import OK
from runbook_nb.rules.columns import Columns, as_columns
from runbook_nb.rules.frame import judge_all
from runbook_nb.rules.plan import DecisionPath
from runbook_nb.rules.ruleset import RuleSet

if TYPE_CHECKING:
    from runbook_nb.chart.executor import Execution

#: Rows judged between two looks at what may end the run, where anything may.
CHUNK: Final = 1 << 18

#: More layouts of keys than this, and rows are run one by one: too few of them are alike.
MAX_LAYOUTS: Final = 256


def run_judge_each(
    execution: Execution, plan: StagePlan, stage: JudgeEachStage, frame: Frame
) -> Steps:
    """Run a stage that judges each row; give (False, the slots)."""
    stopped, found = yield from execution.call(plan, stage.items, frame)
    frame.answers = None
    if stopped:
        return True, None
    try:
        rows = rows_from(found, stage)
        facts: dict[str, Any] = {
            "cap": stage.max_branches,
            "into": stage.into,
            "subject": stage.subject,
        }
        if _one_by_one(stage.rules, rows, frame):
            fan = _fan_of(execution, plan, frame, FrozenList(rows), **facts)
            yield from FanOutBranches(execution, plan, fan, frame).run()
        else:
            facts.update(made=JudgedFan, rules=stage.rules)
            fan = _fan_of(execution, plan, frame, rows, **facts)
            yield from _Rows(execution, plan, fan, frame).run()
    except BaseException as error:
        _failed(execution, error, plan, frame)
        raise
    return _collected(execution, plan, frame, fan)


def rows_from(found: Any, stage: JudgeEachStage) -> Columns:
    """Read what a stage's ``items`` gave: whatever `as_columns` takes; None is no rows.

    Raises
    ------
    ChartError
        Anything else, naming the stage.
    """
    try:
        return as_columns(() if found is None else found)
    except RuleError as error:
        raise ChartError(
            f"items of {stage.name!r} gave what are no rows: {error.message}",
            where=stage.id,
            code="bad_items",
            fix=error.fix,
        ) from error


def _one_by_one(rules: RuleSet, rows: Columns, frame: Frame) -> bool:
    return (
        frame.looping
        or len(rows.layouts) > MAX_LAYOUTS
        or not all(rule.is_filter for rule in rules.rules)
    )


def judged_outcomes(
    rules: RuleSet, rows: Columns
) -> tuple[tuple[DecisionPath, ...], Sequence[int]]:
    """Judge rows; give the distinct outcomes, and per row which it has.

    Outcomes that refuse to decide are given too: what becomes of such a row is its branch's
    affair.

    Examples
    --------
    >>> from runbook_nb.rules import Rule
    >>> rules = RuleSet("r", "1", [Rule({"a": {"gt": 1}}, "x")], "y", unreadable="raise")
    >>> paths, numbers = judged_outcomes(rules, as_columns([{"a": 2}, {"a": None}, {"a": 5}]))
    >>> [(path.branch, path.refuses) for path in paths], list(numbers)
    ([('x', False), (None, True)], [0, 1, 0])
    """
    judged = judge_all(rules, rows)
    return judged.paths, judged.numbers


class _Rows(FanOutBranches):
    """The branches of rows that are judged by columns."""

    fan: JudgedFan

    @property
    def opening(self) -> StagePlan:
        """The stage every branch begins with."""
        assert self.chart is not None  # noqa: S101 - the chart was built with the stage
        return self.chart.stages[0]

    @property
    def ordinary(self) -> bool:
        """Whether nobody could tell whether a branch ran."""
        return self.execution.untimed and not self.execution.watched

    def goes(self, layout: tuple[str, ...], path: DecisionPath) -> bool:
        """File a kind of rows by what its branch would append; say whether that is known."""
        assert self.chart is not None  # noqa: S101 - the chart was built with the stage
        appended = appended_by(self.chart, layout, path)
        if appended is None:
            return False
        self.fan.keep(appended, OK, (*map(Cell, layout), *compared(path), Constant(path.branch)))
        return True

    def run(self) -> Steps:
        """Judge the rows up to the cap, and run the first branch of each kind."""
        fan, rows = self.fan, self.fan.items
        rules = fan.rules
        count = min(len(fan), fan.cap)
        size = CHUNK if self.execution.watched else max(count, 1)
        known: dict[Any, int] = {}
        numbers: Any = b""
        try:
            for start in range(0, count, size):
                part = range(start, min(start + size, count))
                whole = len(part) == len(rows)
                paths, ways = judged_outcomes(rules, rows if whole else rows.part(part))
                found, firsts = _told_apart(rows, part, ways, len(paths))
                table: list[int] = []
                if self.execution.asked_to_end(self.opening, "before") is not None:
                    firsts = [((-1, 0), start)]  # the branch that was to begin ends the run
                for (layout, way), first in firsts:
                    kind = known.get((layout, paths[way])) if layout >= 0 else None
                    if kind is None:
                        kind = known[layout, paths[way]] = len(known)
                        if self.ordinary and self.goes(rows.layouts[layout], paths[way]):
                            table.append(kind)
                            continue
                        try:
                            yield from self.branch(first)
                        except BaseException:
                            # Those before it have been judged; it ended the run.
                            numbers = _joined(numbers, found[: first - start], table)
                            numbers = _joined(numbers, b"\0", [kind])
                            raise
                    table.append(kind)
                numbers = _joined(numbers, found, table)
                if part.stop < count:
                    yield None
        finally:
            fan.file(numbers)


def _told_apart(
    rows: Columns, part: range, ways: Any, count: int
) -> tuple[Any, list[tuple[tuple[int, int], int]]]:
    """Tell rows apart by what keys they have and which way they went.

    Gives per row of the part which of the pairs it has, and the pairs with their first rows.
    """
    if len(rows.layouts) == 1:
        firsts = [((0, way), part.start + ways.index(way)) for way in range(count)]
        return ways, firsts
    pairs = list(zip(map(rows.layout_of, part), ways, strict=True))
    order: dict[tuple[int, int], int] = {}
    found = [order.setdefault(pair, len(order)) for pair in pairs]
    return found, [(pair, part.start + found.index(n)) for pair, n in order.items()]


def _joined(numbers: Any, more: Any, table: list[int]) -> Any:
    """Put numbers behind others, in the numbering of a table."""
    if not len(numbers) and table == list(range(len(table))):
        return more
    return [*numbers, *map(table.__getitem__, more)]
