"""Judging a whole frame: the branch of every row, with evidence made when somebody asks."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runbook_nb._display import Renderable
from runbook_nb._frozen import Immutable
from runbook_nb._text import MISSING
from runbook_nb._view import Card
from runbook_nb.errors import ENDS_RUN, RuleError
from runbook_nb.rules.columns import Columns, Numbers, as_columns
from runbook_nb.rules.decision import Decision
from runbook_nb.rules.held import Held, PlainColumn
from runbook_nb.rules.judging import Found, Records, Refused, judge, read
from runbook_nb.rules.plan import DecisionPath, path_for, when_of
from runbook_nb.rules.ruleset import RuleSet, deciding
from runbook_nb.rules.wording import REDACTED


class Judged(Renderable, Sequence[Decision], Immutable):
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
        """Count the rows of each branch, in declared order; branches nobody took are left out.

        Examples
        --------
        >>> from runbook_nb.rules import Rule, RuleSet
        >>> rules = RuleSet("r", "1", [Rule({"age": {"gt": 7}}, then="old")], default="new")
        >>> judge_frame({"age": [30, 2, 9]}, rules).counts()
        {'new': 1, 'old': 2}
        """
        found: dict[str | None, int] = {}
        times = tally(self.numbers, len(self.paths))
        for path, count in zip(self.paths, times, strict=True):
            found[path.branch] = found.get(path.branch, 0) + count
        order = (*self.rules.branches, None)
        return {branch: found[branch] for branch in order if branch in found}

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys the conditions of the rules read, in order of first reading."""
        whens = [entry.where for entry in self.rules.outside]
        filters = [*whens, *(r.when for r in self.rules.rules if isinstance(r.when, Mapping))]
        return tuple(dict.fromkeys(key for when in filters for key in when))

    def to_frame(self) -> Any:
        """Give a DataFrame: verdict, deciding rule, how it came about, and the values read.

        The index is that of the DataFrame that was judged. ``verdict`` is categorical, in the
        declared order of the branches; ``rule`` is the number of the rule that decided, as
        sentences count it, and NA where none did; ``via`` says how: ``rule``, ``default``,
        ``unreadable``, ``outside`` or ``none``. Then come the values of the keys the rules read,
        in nullable types: whole numbers never become floats.

        Examples
        --------
        >>> from runbook_nb.rules import Rule, RuleSet
        >>> rules = RuleSet("r", "1", [Rule({"age": {"gt": 7}}, then="old")], default="new")
        >>> judge_frame({"age": [30, 2, None]}, rules).to_frame()
            verdict  rule         via   age
        0       old     1        rule    30
        1       new  <NA>     default     2
        2  declined     1  unreadable  <NA>
        """
        import numpy as np
        import pandas as pd

        from runbook_nb.rules.dataframes import typed_series

        numbers: Any = self.numbers
        places = np.frombuffer(numbers, "u1" if isinstance(numbers, bytes) else numbers.typecode)
        index = self.columns.labels
        if index is None:
            index = pd.RangeIndex(len(self))

        def words(found: list[str | None], order: Sequence[str]) -> Any:
            codes: Any = np.array([-1 if w is None else order.index(w) for w in found], "i4")
            taken = codes[places] if found else codes
            return pd.Series(pd.Categorical.from_codes(taken, pd.Index(order)), index=index)

        deciding = [-1 if path.rule_index is None else path.rule_index for path in self.paths]
        rule = np.array(deciding, "i8")[places] if deciding else np.array([], "i8")
        frame: dict[str, Any] = {
            "verdict": words([path.branch for path in self.paths], self.rules.branches),
            "rule": pd.Series(pd.arrays.IntegerArray(rule + 1, rule < 0), index=index),
            "via": words(
                [path.via for path in self.paths],
                ("rule", "default", "unreadable", "outside", "none"),
            ),
        }
        for key in self.keys:
            name = f"{key} (read)" if key in frame else key
            if key in self.rules.hidden:
                frame[name] = pd.Series([REDACTED] * len(self), index=index, dtype="string")
            else:
                frame[name] = typed_series(self._read(key), index)
        return pd.DataFrame(frame, index=index)

    def _read(self, key: str) -> Held:
        """Give the values a key reads, a path followed where there is no such column."""
        if "." not in key or (key in self.columns.names and self.columns.is_full(key)):
            return self.columns.held(key)
        return PlainColumn([_read_one(self.columns, row, key) for row in range(len(self))])

    def view(self) -> Card:
        """Show how many rows went which way, and the first rows with what the rules read."""
        from runbook_nb.rules.cards import judged_card

        return judged_card(self)

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
            values += [_read_one(columns, row, key)] * len(ops)
    return tuple(values)


def _read_one(columns: Columns, row: int, key: str) -> Any:
    try:
        return read(columns, row, key)
    except ENDS_RUN:
        raise
    except Exception:  # the value itself could not be looked into
        return MISSING


def tally(numbers: Numbers, most: int) -> list[int]:
    r"""Count how often each number up to so many occurs.

    Examples
    --------
    >>> tally(b"\x02\x00\x02", 3)
    [1, 0, 2]
    """
    numpy: Any = sys.modules.get("numpy")
    if numpy is None:
        counted = Counter(numbers)
        return [counted[number] for number in range(most)]
    kind = "u1" if isinstance(numbers, bytes) else numbers.typecode
    found: list[int] = numpy.bincount(numpy.frombuffer(numbers, kind), minlength=most).tolist()
    return found


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


def judge_all(rules: RuleSet, columns: Columns) -> Judged:
    """Judge every row as `judge_columns` does, those too that the rules refuse to decide.

    What becomes of such a row is its reader's affair: its path says that it ``refuses``.

    Examples
    --------
    >>> from runbook_nb.rules import Rule
    >>> rules = RuleSet("r", "1", [Rule({"a": {"gt": 1}}, "x")], "y", unreadable="raise")
    >>> judged = judge_all(rules, as_columns([{"a": 2}, {"a": None}, {"a": 5}]))
    >>> [(path.branch, path.refuses) for path in judged.paths], list(judged.numbers)
    ([('x', False), (None, True)], [0, 1, 0])
    """
    if rules.unreadable != "raise":
        return judge_columns(rules, columns)
    # Judging ends at a value that cannot be read whether it then refuses or names a branch.
    judged = judge_columns(deciding(rules), columns)
    paths = tuple(path_for(rules, path.codes) for path in judged.paths)
    found = Found(paths, judged.numbers, judged._records, judged.fallbacks)
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
