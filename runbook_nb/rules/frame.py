"""Judging a whole frame: the branch of every row, with evidence made when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runbook_nb._frozen import Immutable
from runbook_nb._text import MISSING
from runbook_nb.errors import ENDS_RUN, RuleError
from runbook_nb.rules.columns import Columns, as_columns
from runbook_nb.rules.decision import Decision
from runbook_nb.rules.judging import Found, Records, Refused, judge, read
from runbook_nb.rules.plan import DecisionPath, when_of
from runbook_nb.rules.ruleset import RuleSet


class Judged(Sequence[Decision], Immutable):
    """The decisions about all rows of a frame; each is made when it is looked at.

    Attributes
    ----------
    rules : RuleSet
        The rules that judged.
    columns : Columns
        The rows they judged.
    paths : tuple of DecisionPath
        The distinct outcomes, in order of their first row.
    numbers : bytes or array
        Per row the place of its outcome among the ``paths``.
    fallbacks : tuple of Fallback
        The conditions that were judged value by value, and why.
    """

    __slots__ = ("_records", "columns", "fallbacks", "numbers", "paths", "rules")

    def __init__(self, rules: RuleSet, columns: Columns, found: Found) -> None:
        self.rules = rules
        self.columns = columns
        self.paths = found.paths
        self.numbers = found.numbers
        self.fallbacks = found.fallbacks
        self._records = found.records

    def decision(self, index: int) -> Decision:
        """Give the decision about one row, as `decide` gives it for that row."""
        place = index + len(self.numbers) if index < 0 else index
        if not 0 <= place < len(self.numbers):
            raise IndexError(f"row {index} of {len(self.numbers)}")
        path = self.paths[self.numbers[place]]
        return Decision(path, _values(path, self.columns, self._records, place))

    def values(self, index: int) -> tuple[Any, ...]:
        """Give the values one row was decided on, as they are; not served."""
        path = self.paths[self.numbers[index]]
        return _values(path, self.columns, self._records, index)

    @property
    def branches(self) -> Sequence[str | None]:
        """The branch of every row."""
        words = [path.branch for path in self.paths]
        return tuple(map(words.__getitem__, self.numbers))

    def counts(self) -> dict[str | None, int]:
        """Count the rows of each branch, in declared order; branches nobody took are left out."""
        found: dict[str | None, int] = {}
        for number, path in enumerate(self.paths):
            found[path.branch] = found.get(path.branch, 0) + self.numbers.count(number)
        order = (*self.rules.branches, None)
        return {branch: found[branch] for branch in order if branch in found}

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self.decision(n) for n in range(*index.indices(len(self)))]
        return self.decision(index)

    def __iter__(self) -> Iterator[Decision]:
        return map(self.decision, range(len(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        found = Found(self.paths, self.numbers, self._records, self.fallbacks)
        return (Judged, (self.rules, self.columns, found))


def _values(path: DecisionPath, columns: Columns, records: Records, row: int) -> tuple[Any, ...]:
    values: list[Any] = []
    for tried in path.tried:
        when = when_of(path.rules, tried)
        if not isinstance(when, Mapping):
            values.append(records[tried.start][row])
            continue
        for key, ops in when.items():
            try:
                value = read(columns, row, key)
            except ENDS_RUN:
                raise
            except Exception:
                value = MISSING
            values += [value] * len(ops)
    return tuple(values)


def judge_columns(rules: RuleSet, columns: Columns) -> Judged:
    """Judge every row of columns, condition by condition.

    The decisions are those of `decide`, row by row.

    Raises
    ------
    RuleError
        A function rule is asynchronous, or a value is unreadable under ``unreadable="raise"``;
        the row is named.

    Examples
    --------
    >>> from runbook_nb.rules import Rule, RuleSet
    >>> rules = RuleSet("r", "1", [Rule({"age": {"gt": 7}}, then="old")], default="new")
    >>> judged = judge_columns(rules, as_columns({"age": [30, 2, None]}))
    >>> judged.branches, judged.decision(2).cause
    (('old', 'new', 'declined'), 'age is null')
    """
    try:
        found = judge(rules, columns)
    except Refused as refused:
        raise _error_of(refused, columns) from None
    return Judged(rules, columns, found)


def _error_of(refused: Refused, columns: Columns) -> RuleError:
    if refused.error is not None:
        return refused.error
    path = refused.path
    assert path is not None  # noqa: S101 - one of the two is there
    decision = Decision(path, _values(path, columns, refused.records, refused.row))
    place = f"rules[{path.rule_index}], row {refused.row}"
    title = path.rules.title
    return RuleError(
        f"a rule could not be read: {decision.cause}",
        where=f"{title}, {place}" if title else place,
        fix="make sure the value is there, or declare what unreadable values mean",
        code="unreadable",
    )


def judge_frame(frame: Any, rules: RuleSet) -> Judged:
    """Judge every row of a frame by rules.

    Parameters
    ----------
    frame : DataFrame, mapping of columns, list of mappings, Arrow table
        One row per subject.
    rules : RuleSet
        The rules.

    Returns
    -------
    Judged
        The decisions, each made when it is looked at.

    Raises
    ------
    RuleError
        The frame cannot be read, a function rule is asynchronous, or a value is unreadable under
        ``unreadable="raise"``.

    Examples
    --------
    >>> from runbook_nb.rules import Rule, RuleSet
    >>> rules = RuleSet("r", "1", [Rule({"age": {"gt": 7}}, then="old")], default="new")
    >>> judged = judge_frame([{"age": 30}, {"age": 2}], rules)
    >>> judged.counts(), judged[0].sentence
    ({'new': 1, 'old': 1}, 'old by rule 1 of r 1: age 30 > 7')
    """
    return judge_columns(rules, as_columns(frame))
