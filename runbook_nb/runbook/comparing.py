"""Comparing two judgements of subjects: what changed, and the rule and values that changed it.

Bridge layer. Everything is counted from one table, the pairs of standings: so many subjects that
stood like this stand like that now. Totals, matrix, groups and the share of each changed rule are
sums over it, and add up because of that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from runbook_nb._display import Renderable
from runbook_nb._frozen import Immutable
from runbook_nb._json import to_wire
from runbook_nb._view import Card
from runbook_nb.errors import DefinitionError
from runbook_nb.record.tallies import tally_pairs
from runbook_nb.rules import Decision
from runbook_nb.rules.changes import RuleChange, rule_changes
from runbook_nb.rules.columns import Numbers, smallest
from runbook_nb.rules.wording import REDACTED
from runbook_nb.runbook.causes import Cause, Causes
from runbook_nb.runbook.names import name_key
from runbook_nb.runbook.sides import GAP_WORDS, Side, Standing, declined_last, share_a_version

if TYPE_CHECKING:
    import pandas as pd

#: The form of a comparison as JSON values.
COMPARISON_FORMAT: Final = "runbook_nb/comparison/1"


class Flip(NamedTuple):
    """A subject whose verdict changed.

    Attributes
    ----------
    subject : object
    before, after : str
        The verdicts.
    key : str or None
        The key that made the difference, as far as one did.
    actual, actual_after : object
        Its value on either side; `MISSING` where it was not there.
    decided_before, decided_after : str
        What decided.
    cause : str
        What made the difference.
    row, row_after : int
        The subject's place on either side.
    """

    subject: Any
    before: str
    after: str
    key: str | None
    actual: Any
    actual_after: Any
    decided_before: str
    decided_after: str
    cause: str
    row: int
    row_after: int

    def to_dict(self) -> dict[str, Any]:
        """Give the flip as JSON values."""
        told = zip(self._fields, self, strict=True)
        return {
            name: v if v.__class__ is str and v.isascii() else to_wire(v)
            for name, v in told
            if name not in ("row", "row_after")
        }


class FlipGroup(NamedTuple):
    """The flips of one transition that have one cause.

    Attributes
    ----------
    before, after : str
        The verdicts.
    cause : Cause
    total : int
        How many there are.
    """

    before: str
    after: str
    cause: Cause
    total: int


class Uncompared(NamedTuple):
    """Subjects without a verdict on one side or on both.

    Attributes
    ----------
    kind : str
        ``not_reached``, ``failed``, ``undecided``, ``not_recorded``, ``hidden``, ``refused``,
        ``not_carried`` or ``unnamed``.
    reason : str
        Why, in full; of several the first.
    total : int
    """

    kind: str
    reason: str
    total: int


class Comparison(Renderable, Immutable):
    """Two judgements of the same or partly the same subjects, side by side.

    Parameters
    ----------
    before, after : Side

    Examples
    --------
    >>> from runbook_nb.runbook.triage import triage
    >>> from runbook_nb.rules import Rule, RuleSet
    >>> def limit(days, version):
    ...     return RuleSet("age", version, [Rule({"days": {"gt": days}}, "old")], "fresh")
    >>> rows = [{"host": "a", "days": 9}, {"host": "b", "days": 2}]
    >>> envelope = triage(rows, limit(7, "v1"), subject="host", source="two rows")
    >>> print(envelope.compare(envelope.rejudge(limit(14, "v2"))))
    Compare age v1 -> v2 · 1 of 2 verdicts changed (1 unchanged)
      old -> fresh   1  rule 1 limit raised, 7 -> 14
        a   days 9
    """

    shown_once_for_all = True

    def __init__(self, before: Side, after: Side) -> None:
        self.before = before
        self.after = after
        self._deciding: dict[int, dict[Standing, str]] = {}
        self._causes = Causes(before, after, self.rule_changes, same_facts=self.same_facts)

    # -- who is compared with whom -------------------------------------------------------------

    @cached_property
    def same_facts(self) -> bool:
        """Whether both sides were judged on the very same facts."""
        return self.after.subjects is self.before.subjects

    @cached_property
    def _aligned(self) -> tuple[Sequence[int], Sequence[int]] | None:
        """The places of the subjects both sides have; None where they are the same places."""
        if self.same_facts:
            return None
        mine, found = self._named
        if mine == found and None not in mine:
            return None
        theirs = {key: place for place, key in enumerate(found) if key is not None}
        shared = [(place, theirs[key]) for place, key in enumerate(mine) if key in theirs]
        return [one for one, _ in shared], [other for _, other in shared]

    @cached_property
    def _named(self) -> tuple[list[Any], list[Any]]:
        return _keys(self.before.subjects), _keys(self.after.subjects)

    @cached_property
    def _unnamed(self) -> int:
        """How many subjects are not paired, where a hidden name keeps from saying who is who."""
        if self._aligned is None or not any(None in keys for keys in self._named):
            return 0
        return max(map(len, self._alone))

    @cached_property
    def appeared(self) -> tuple[Any, ...]:
        """The subjects that only the later side has; none where the earlier does not hold all."""
        return self._alone[1] if self.before.complete and not self._unnamed else ()

    @cached_property
    def gone(self) -> tuple[Any, ...]:
        """The subjects that only the earlier side has; none where the later does not hold all."""
        return self._alone[0] if self.after.complete and not self._unnamed else ()

    @cached_property
    def _alone(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The subjects that only one side holds: the earlier's, the later's."""
        if self._aligned is None:
            return (), ()
        one, other = map(frozenset, self._aligned)
        return (
            tuple(s for n, s in enumerate(self.before.subjects) if n not in one),
            tuple(s for n, s in enumerate(self.after.subjects) if n not in other),
        )

    # -- the one table everything is counted from ----------------------------------------------

    @cached_property
    def _numbers(self) -> tuple[Numbers, Numbers]:
        """How each compared subject stood and stands, by the numbers of the sides' standings."""
        before, after = self.before.numbers, self.after.numbers
        if self._aligned is None:
            return before, after
        mine, theirs = self._aligned
        return (
            smallest([before[one] for one in mine], len(self.before.standings) - 1),
            smallest([after[other] for other in theirs], len(self.after.standings) - 1),
        )

    @cached_property
    def _counted(self) -> Mapping[tuple[int, int], int]:
        return tally_pairs(*self._numbers)

    @cached_property
    def pairs(self) -> Mapping[tuple[Standing, Standing], int]:
        """How many subjects stood like the first and stand like the second."""
        return {self._standings(pair): count for pair, count in self._counted.items()}

    def _standings(self, pair: tuple[int, int]) -> tuple[Standing, Standing]:
        return self.before.standings[pair[0]], self.after.standings[pair[1]]

    @cached_property
    def matrix(self) -> Mapping[tuple[str, str], int]:
        """How many subjects had the first verdict and have the second; zeros left out."""
        found: Counter[tuple[str, str]] = Counter()
        for (old, new), count in self.pairs.items():
            if old.branch is not None and new.branch is not None:
                found[old.branch, new.branch] += count
        return dict(found)

    @property
    def compared(self) -> int:
        """How many subjects have a verdict on both sides."""
        return sum(self.matrix.values())

    @property
    def changed(self) -> int:
        """How many verdicts changed."""
        return sum(count for (old, new), count in self.matrix.items() if old != new)

    @property
    def unchanged(self) -> int:
        """How many verdicts did not."""
        return sum(count for (old, new), count in self.matrix.items() if old == new)

    @cached_property
    def not_compared(self) -> tuple[Uncompared, ...]:
        """The subjects that one side or both have no verdict for, or do not hold; most first."""
        found: dict[str, Uncompared] = {}
        for (old, new), count in self.pairs.items():
            if old.decided and new.decided:
                continue
            gap = new if old.decided else old
            kind = gap.kind or "undecided"
            known = found.get(kind, Uncompared(kind, gap.reason or GAP_WORDS[kind], 0))
            found[kind] = known._replace(total=known.total + count)
        lost = [
            len(alone)
            for alone, side in zip(self._alone, (self.after, self.before), strict=True)
            if not side.complete and not self._unnamed
        ]
        if self._unnamed:
            found["unnamed"] = Uncompared("unnamed", GAP_WORDS["unnamed"], self._unnamed)
        if sum(lost):
            found["not_carried"] = Uncompared("not_carried", GAP_WORDS["not_carried"], sum(lost))
        return tuple(sorted(found.values(), key=lambda one: (-one.total, one.kind)))

    @property
    def words(self) -> tuple[str, ...]:
        """Every verdict of either side, in declared order."""
        return declined_last((*self.before.words, *self.after.words))

    def counts(self) -> dict[str, tuple[int, int]]:
        """Count the compared subjects of each verdict, before and after."""
        found = dict.fromkeys(self.words, (0, 0))
        for (old, new), count in self.matrix.items():
            found[old] = (found[old][0] + count, found[old][1])
            found[new] = (found[new][0], found[new][1] + count)
        return found

    # -- why -----------------------------------------------------------------------------------

    @cached_property
    def rule_changes(self) -> tuple[RuleChange, ...]:
        """What differs between the rules, rule by rule; empty where a side does not carry them."""
        if self.before.rules is None or self.after.rules is None:
            return ()
        return rule_changes(self.before.rules, self.after.rules)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What must be said before anything else: one version that stands for two contents."""
        if not share_a_version(self.before, self.after):
            return ()
        return (f"both sides are judged under {self.before.title}, content differs",)

    @cached_property
    def _by_cause(self) -> dict[tuple[str, str, Cause], int]:
        found: Counter[tuple[str, str, Cause]] = Counter()
        if self._causes.by_pair:
            for (old, new), count in self.pairs.items():
                if old.decided and new.decided and old.branch != new.branch:
                    found[str(old.branch), str(new.branch), self._causes.of_pair(old, new)] += count
        else:  # values may have changed, too: each flip is looked at
            for one, other in self._flipped():
                old, new = self.before.standing(one), self.after.standing(other)
                cause = self._causes.of_rows(one, other)
                found[str(old.branch), str(new.branch), cause] += 1
        return found

    @cached_property
    def groups(self) -> tuple[FlipGroup, ...]:
        """The flips by transition and cause, most first."""
        order = {word: place for place, word in enumerate(self.words)}
        found = [FlipGroup(*key, total) for key, total in self._by_cause.items()]
        return tuple(
            sorted(
                found,
                key=lambda g: (-g.total, order[g.before], order[g.after], g.cause.words),
            )
        )

    def moved_by(self, change: RuleChange) -> int:
        """Count the verdicts that a changed rule moved."""
        return sum(group.total for group in self.groups if group.cause.change is change)

    def _flipped(self) -> Iterator[tuple[int, int]]:
        """Yield the places of the subjects whose verdict changed, on either side."""
        flips = {
            pair: old.decided and new.decided and old.branch != new.branch
            for pair in self._counted
            for old, new in [self._standings(pair)]
        }
        for place, pair in enumerate(zip(*self._numbers, strict=True)):
            if flips[pair]:
                if self._aligned is None:
                    yield place, place
                else:
                    yield self._aligned[0][place], self._aligned[1][place]

    def flips(self, group: FlipGroup | None = None) -> Iterator[Flip]:
        """Yield the subjects whose verdict changed, all or those of a group, in their order."""
        for one, other in self._flipped():
            old, new = self.before.standing(one), self.after.standing(other)
            if group is not None and (old.branch, new.branch) != (group.before, group.after):
                continue
            cause = self._causes.of_rows(one, other)
            if group is None or cause == group.cause:
                yield self._flip(one, other, cause)

    def _flip(self, one: int, other: int, cause: Cause) -> Flip:
        old, new = self.before.standing(one), self.after.standing(other)
        return Flip(
            subject=self.after.subjects[other],
            before=str(old.branch),
            after=str(new.branch),
            key=cause.key,
            actual=self._causes.actual(one, None, cause.key),
            actual_after=self._causes.actual(None, other, cause.key),
            decided_before=self._decided_by(self.before, old),
            decided_after=self._decided_by(self.after, new),
            cause=cause.words,
            row=one,
            row_after=other,
        )

    def _decided_by(self, side: Side, standing: Standing) -> str:
        known = self._deciding.setdefault(id(side), {})
        if standing not in known:
            known[standing] = side.decided_by(standing)
        return known[standing]

    # -- forms ---------------------------------------------------------------------------------

    def to_dict(self, most: int | None = None) -> dict[str, Any]:
        """Give the comparison as JSON values, with so many flips (None: all)."""
        return {
            "format": COMPARISON_FORMAT,
            "before": _side_dict(self.before),
            "after": _side_dict(self.after),
            "notes": list(self.notes),
            "compared": self.compared,
            "changed": self.changed,
            "unchanged": self.unchanged,
            "not_compared": [one._asdict() for one in self.not_compared],
            "appeared": [to_wire(name) for name in self.appeared],
            "gone": [to_wire(name) for name in self.gone],
            "counts": [
                {"verdict": word, "before": old, "after": new}
                for word, (old, new) in self.counts().items()
            ],
            "matrix": [
                {"before": old, "after": new, "subjects": count}
                for (old, new), count in self.matrix.items()
            ],
            "groups": [
                {
                    "before": group.before,
                    "after": group.after,
                    "cause": group.cause.words,
                    "subjects": group.total,
                }
                for group in self.groups
            ],
            "flips": [flip.to_dict() for flip in islice(self.flips(), most)],
            "rules": [change.to_dict() for change in self.rule_changes],
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """Give the comparison as JSON, for a ticket or another program."""
        import json

        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=indent)

    def to_frame(self) -> pd.DataFrame:
        """Give the flips as a DataFrame, one row each."""
        import pandas as pd

        names = [name for name in Flip._fields if name not in ("row", "row_after")]
        rows = [flip.to_dict() for flip in self.flips()]
        return pd.DataFrame({name: [row[name] for row in rows] for name in names})

    def view(self) -> Card:
        """Show what changed, how many of what, and which rules differ."""
        from runbook_nb.runbook.comparing_card import comparison_card

        return comparison_card(self)

    def __reduce__(self) -> Any:
        raise TypeError("a comparison is not copied; send its to_dict()")


def _side_dict(side: Side) -> dict[str, Any]:
    return {
        "rules": side.title,
        "digest": side.digest,
        "subjects": len(side),
        "judged_again": side.again,
    }


def _keys(subjects: Sequence[Any]) -> list[Any]:
    """Give what two subjects must share to be one: the name, and the how-manieth of it it is.

    A hidden name names nobody: there None is given.
    """
    names = list(subjects)
    if set(map(type, names)) == {str} and len(set(names)) == len(names):
        said = "\n".join(names)
        if said.isascii() and REDACTED not in said:
            return names
    times: Counter[Any] = Counter()
    found: list[Any] = []
    for name in names:
        key = name_key(name)
        if isinstance(key, str) and REDACTED in key:  # also a part of it, or a value inside it
            found.append(None)
            continue
        times[key] += 1
        first = times[key] == 1 and key is not None
        found.append(key if first else (key, times[key]))
    return found


def compare(before: Any, after: Any) -> Comparison:
    """Compare two envelopes, or an envelope with itself judged again.

    Parameters
    ----------
    before, after : Envelope or Rejudged

    Returns
    -------
    Comparison

    Raises
    ------
    DefinitionError
        One of them is something else.
    """
    return Comparison(_side(before, "before"), _side(after, "after"))


def _side(one: Any, where: str) -> Side:
    from runbook_nb.runbook.envelope import Envelope
    from runbook_nb.runbook.rejudging import Rejudged

    if isinstance(one, Side):
        return one
    if isinstance(one, Rejudged):
        return one.side
    if isinstance(one, Envelope):
        return one.side
    raise DefinitionError(
        f"what is compared is an envelope, not {type(one).__name__}",
        where=where,
        fix="write a.compare(b), or a.compare(a.rejudge(rules))",
    )


__all__ = ["Comparison", "Decision", "Flip", "FlipGroup", "Uncompared", "compare"]
