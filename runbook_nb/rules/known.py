"""Facts that were written down once and are judged again: values, and what of each row is known.

A record need not hold everything a new rule asks for. Of a row it may hold every key there was
(then what is not there was not there), or only the values that were compared; and a policy may
hide some. What is not known is never taken for missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from runbook_nb._frozen import Immutable
from runbook_nb._text import visible
from runbook_nb.rules.columns import Columns, Numbers, smallest
from runbook_nb.rules.frame import Judged, judge_all
from runbook_nb.rules.kinds import NO
from runbook_nb.rules.outcomes import NARROW, paired
from runbook_nb.rules.plan import DecisionPath, Tried, when_of
from runbook_nb.rules.ruleset import RuleSet


class Known(NamedTuple):
    """What is known of rows of one kind.

    Attributes
    ----------
    keys : frozenset of str or None
        The keys whose values are known; None when all are, also those a row does not have.
    hidden : frozenset of str
        Keys whose values a policy hides.
    unsure : frozenset of str
        Keys of which it is not recorded what they held.
    """

    keys: frozenset[str] | None = None
    hidden: frozenset[str] = frozenset()
    unsure: frozenset[str] = frozenset()

    def lacks(self, key: str) -> Literal["hidden", "not_recorded"] | None:
        """Say why the value of a key is not known; None when it is.

        Examples
        --------
        >>> Known(frozenset({"age"})).lacks("tier"), Known(None, frozenset({"pin"})).lacks("pin")
        ('not_recorded', 'hidden')
        """
        names = {key, key.partition(".")[0]}
        if not names.isdisjoint(self.hidden):
            return "hidden"
        if not names.isdisjoint(self.unsure):
            return "not_recorded"
        return None if self.keys is None or key in self.keys else "not_recorded"

    @property
    def is_whole(self) -> bool:
        """Whether everything is known."""
        return self.keys is None and not self.hidden and not self.unsure


class KnownFacts(Immutable):
    """Rows to be judged again.

    Attributes
    ----------
    columns : Columns
        Their values; what is not known is `MISSING` there.
    table : tuple of Known
        The kinds of rows.
    kinds : bytes or array
        Per row the place of its kind in the table.
    """

    __slots__ = ("columns", "kinds", "table")

    def __init__(
        self,
        columns: Columns,
        table: Sequence[Known] = (Known(),),
        kinds: Sequence[int] | None = None,
    ) -> None:
        self.columns = columns
        self.table = tuple(table)
        self.kinds: Numbers = (
            bytes(len(columns)) if kinds is None else smallest(kinds, len(table) - 1)
        )

    @property
    def is_whole(self) -> bool:
        """Whether everything is known of every row."""
        return all(known.is_whole for known in self.table)

    def knows(self, key: str) -> bool:
        """Say whether the value of a key is known of some row."""
        return any(known.lacks(key) is None for known in self.table)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that some row has, hidden ones left out."""
        return tuple(name for name in self.columns.names if self.knows(name))

    def __len__(self) -> int:
        return len(self.columns)


class Gap(NamedTuple):
    """Why a row cannot be judged again.

    Attributes
    ----------
    kind : {"hidden", "not_recorded", "refused"}
        Whether a policy hides what a rule needs, it was not recorded, or the rules refuse to
        decide on a value that cannot be read.
    rule_index : int or None
        The rule that needs it; None for the ground outside.
    keys : tuple of str
        The keys that are needed; empty for a function, which may read any.
    """

    kind: Literal["hidden", "not_recorded", "refused"]
    rule_index: int | None
    keys: tuple[str, ...]

    @property
    def words(self) -> str:
        """Say what is needed, and why it is not there.

        Examples
        --------
        >>> Gap("not_recorded", 3, ("tier",)).words
        'rule 4 needs tier, which was not recorded'
        """
        who = "ground outside" if self.rule_index is None else f"rule {self.rule_index + 1}"
        keys = " and ".join(map(visible, self.keys))
        if self.kind == "refused":
            return f"{who} could not be read" + (f", {keys}" if keys else "")
        verb = ("are", "were") if len(self.keys) > 1 else ("is", "was")
        why = f"{verb[0]} hidden" if self.kind == "hidden" else f"{verb[1]} not recorded"
        return f"{who} needs {keys or 'what its function may read'}, which {why}"


class Way(NamedTuple):
    """What became of rows that were judged again.

    Attributes
    ----------
    path : DecisionPath
        The outcomes; where there is a gap they mean nothing.
    gap : Gap or None
        Why there is no verdict.
    """

    path: DecisionPath
    gap: Gap | None

    @property
    def branch(self) -> str | None:
        """The branch; None where there is a gap, or nothing was true and there is no default."""
        return None if self.gap is not None else self.path.branch


class Again(Immutable):
    """Rows that were judged again.

    Attributes
    ----------
    rules : RuleSet
    facts : KnownFacts
    ways : tuple of Way
        What became of them, in order of the first row.
    numbers : bytes or array
        Per row the place of its way.
    judged : Judged
        The decisions; those of rows with a gap mean nothing.
    """

    __slots__ = ("facts", "judged", "numbers", "rules", "ways")

    def __init__(
        self,
        rules: RuleSet,
        facts: KnownFacts,
        judged: Judged,
        ways: Sequence[Way],
        numbers: Numbers,
    ) -> None:
        self.rules = rules
        self.facts = facts
        self.judged = judged
        self.ways = tuple(ways)
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)


def judge_again(rules: RuleSet, facts: KnownFacts) -> Again:
    """Judge rows again by their known values; where a rule needs another, there is a gap.

    A rule with a condition that is known to be false is false whatever the others are; then
    nothing is needed that is not known.

    Raises
    ------
    RuleError
        A function rule is asynchronous.

    Examples
    --------
    >>> from runbook_nb.rules import Rule
    >>> from runbook_nb.rules.columns import as_columns
    >>> rules = RuleSet("r", "2", [Rule({"age": {"gt": 7}, "tier": {"eq": 1}}, "old")], "new")
    >>> facts = KnownFacts(as_columns([{"age": 9}, {"age": 2}]), [Known(frozenset({"age"}))])
    >>> again = judge_again(rules, facts)
    >>> [(way.branch, way.gap and way.gap.words) for way in again.ways]
    [(None, 'rule 1 needs tier, which was not recorded'), ('new', None)]
    """
    judged = judge_all(rules, facts.columns)
    paths, numbers = judged.paths, judged.numbers
    if len(facts.table) == 1:
        ways = [_way(path, facts.table[0]) for path in paths]
        return Again(rules, facts, judged, ways, numbers)
    order, places = _met(numbers, facts.kinds, len(paths), len(facts.table))
    ways = [_way(paths[number], facts.table[kind]) for number, kind in order]
    return Again(rules, facts, judged, ways, places)


def _met(
    numbers: Numbers, kinds: Numbers, most: int, top: int
) -> tuple[list[tuple[int, int]], Numbers]:
    """Give the pairs that meet in some row, in order of the first, and per row the place of its."""
    if isinstance(numbers, bytes) and isinstance(kinds, bytes) and most * top <= NARROW:
        pairs = paired(numbers, top, kinds)
        found = [pair for pair in range(most * top) if pair in pairs]
        found.sort(key=pairs.index)
        table = bytearray(NARROW)
        for place, pair in enumerate(found):
            table[pair] = place
        return [divmod(pair, top) for pair in found], pairs.translate(bytes(table))
    order: dict[tuple[int, int], int] = {}
    places = [order.setdefault(pair, len(order)) for pair in zip(numbers, kinds, strict=True)]
    return list(order), smallest(places, len(order) - 1)


def _way(path: DecisionPath, known: Known) -> Way:
    for tried in path.tried:
        gap = None if known.is_whole else _gap(path, tried, known)
        if gap is not None:
            return Way(path, gap)
    return Way(path, _refusal(path))


def _refusal(path: DecisionPath) -> Gap | None:
    if not path.refuses:
        return None
    key = (path.unreadable or {}).get("key")
    return Gap("refused", path.rule_index, (key,) if isinstance(key, str) else ())


def _gap(path: DecisionPath, tried: Tried, known: Known) -> Gap | None:
    """Say what was needed to try a rule and is not known; None when its outcome is sure."""
    place = None if tried.outside else tried.position
    when = when_of(path.rules, tried)
    if not isinstance(when, Mapping):
        return Gap("hidden" if known.hidden else "not_recorded", place, ())
    keys = [key for key, ops in when.items() for _ in ops]
    lacking = [known.lacks(key) for key in keys]
    if any(
        code == NO and why is None for code, why in zip(tried.codes, lacking, strict=True)
    ) or not any(lacking):
        return None
    kind: Any = "hidden" if "hidden" in lacking else "not_recorded"
    needed = dict.fromkeys(key for key, why in zip(keys, lacking, strict=True) if why == kind)
    return Gap(kind, place, tuple(needed))


__all__ = ["Again", "Gap", "Known", "KnownFacts", "Way", "judge_again"]
