"""Rules that never fired, and what took the subjects they would have fired on."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from runbook_nb.rules.frame import tally
from runbook_nb.rules.known import Again, judge_again
from runbook_nb.rules.model import Rule
from runbook_nb.rules.ruleset import RuleSet

#: By the identity of a rule: the rule, and the facts judged by it alone.
Alone = dict[int, tuple[Rule, Again]]


class Taker(NamedTuple):
    """What decided subjects that a later rule would have fired on.

    Attributes
    ----------
    via : str
        ``rule``, ``unreadable`` or ``outside``.
    place : int
        Which rule, or entry of the ground outside.
    subjects : int
        How many of them.
    """

    via: str
    place: int
    subjects: int

    @property
    def words(self) -> str:
        """Say what it was: ``rule 1``, ``rule 1, unreadable``, ``ground outside 1``."""
        if self.via == "outside":
            return f"ground outside {self.place + 1}"
        return f"rule {self.place + 1}" + (", unreadable" if self.via == "unreadable" else "")


class Silent(NamedTuple):
    """A rule that decided no subject.

    Attributes
    ----------
    rule_index : int
    meeting : int
        How many subjects meet its conditions all the same.
    takers : tuple of Taker
        What decided those, most first.
    unknown : int
        Of how many subjects what it needs is not known.
    unjudged : int
        How many of those meeting it have no verdict, as an earlier rule cannot be judged.
    """

    rule_index: int
    meeting: int
    takers: tuple[Taker, ...]
    unknown: int = 0
    unjudged: int = 0

    @property
    def words(self) -> str:
        """Say why it never fired.

        Examples
        --------
        >>> Silent(2, 12, (Taker("rule", 0, 12),)).words
        'never fired: rule 1 takes the 12 subjects that meet it'
        >>> Silent(2, 0, ()).words
        'never fired: no subject meets it'
        >>> Silent(1, 2, (Taker("rule", 0, 1),), unjudged=1).words
        'never fired: of the 2 subjects that meet it, rule 1 takes 1, and 1 cannot be judged'
        """
        unknown = f"; of {self.unknown} it is not known" if self.unknown else ""
        if not self.meeting:
            return f"never fired: no subject meets it{unknown}"
        those = (
            "the subject that meets it"
            if self.meeting == 1
            else f"the {self.meeting} subjects that meet it"
        )
        if self.unjudged:
            who = "".join(f"{one.words} takes {one.subjects}, and " for one in self.takers)
            return f"never fired: of {those}, {who}{self.unjudged} cannot be judged{unknown}"
        if len(self.takers) == 1:
            return f"never fired: {self.takers[0].words} takes {those}{unknown}"
        takers = ", ".join(f"{taker.words} {taker.subjects}" for taker in self.takers)
        return f"never fired: {those} are taken before: {takers}{unknown}"


def fired(again: Again) -> tuple[int, ...]:
    """Count the subjects each rule decided by being true.

    Examples
    --------
    >>> from runbook_nb.rules.columns import as_columns
    >>> from runbook_nb.rules.known import KnownFacts
    >>> from runbook_nb.rules.model import Rule
    >>> rules = RuleSet("r", "1", [Rule({"a": {"gt": 7}}, "x"), Rule({"a": {"lt": 0}}, "y")], "z")
    >>> fired(judge_again(rules, KnownFacts(as_columns({"a": [9, 8, 1]}))))
    (2, 0)
    """
    found = [0] * len(again.rules.rules)
    times = tally(again.numbers, len(again.ways))
    for way, count in zip(again.ways, times, strict=True):
        if way.gap is None and way.path.via == "rule" and way.path.rule_index is not None:
            found[way.path.rule_index] += count
    return tuple(found)


def silent_rules(again: Again, alone: Alone | None = None) -> tuple[Silent, ...]:
    """Find the rules that decided no subject, and say of each why.

    Parameters
    ----------
    again : Again
    alone : dict, optional
        Keeps, by the identity of a rule, who meets it: for whoever asks of the same facts again.

    Examples
    --------
    >>> from runbook_nb.rules.columns import as_columns
    >>> from runbook_nb.rules.known import KnownFacts
    >>> from runbook_nb.rules.model import Rule
    >>> rules = RuleSet("r", "1", [Rule({"a": {"gt": 7}}, "x"), Rule({"b": {"eq": 1}}, "y")], "z")
    >>> facts = KnownFacts(as_columns({"a": [9, 8, 1], "b": [1, 1, 0]}))
    >>> [silent.words for silent in silent_rules(judge_again(rules, facts))]
    ['never fired: rule 1 takes the 2 subjects that meet it']
    """
    kept = {} if alone is None else alone
    return tuple(
        _silent(again, index, kept)
        for index, count in enumerate(fired(again))
        if not count and len(again) and again.rules.rules[index].is_filter
    )


def _silent(again: Again, index: int, alone: Alone) -> Silent:
    rule = again.rules.rules[index]
    known = alone.get(id(rule))
    if known is None or known[0] is not rule:
        known = alone[id(rule)] = (rule, judge_again(RuleSet.bare([rule]), again.facts))
    tried = known[1]
    meets = [way.gap is None and way.path.via == "rule" for way in tried.ways]
    unknown = [way.gap is not None for way in tried.ways]
    if not any(meets) and not any(unknown):
        return Silent(index, 0, ())
    pairs = Counter(zip(tried.numbers, again.numbers, strict=True))
    takers: Counter[tuple[str, int]] = Counter()
    meeting = unjudged = 0
    for (one, other), count in pairs.items():
        if not meets[one]:
            continue
        meeting += count
        way = again.ways[other]
        if way.gap is None:
            takers[_taker(way.path)] += count
        else:
            unjudged += count
    order = sorted(takers.items(), key=lambda pair: (-pair[1], pair[0]))
    missing = sum(count for (one, _), count in pairs.items() if unknown[one])
    told = tuple(Taker(*who, count) for who, count in order)
    return Silent(index, meeting, told, missing, unjudged)


def _taker(path: Any) -> tuple[str, int]:
    if path.via == "outside":
        return "outside", int(path.outside_index)
    return str(path.via), int(path.rule_index)
