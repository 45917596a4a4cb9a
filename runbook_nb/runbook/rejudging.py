"""Judging an envelope again by other rules, on the facts it recorded: no source is called.

Bridge layer. A fact that was not recorded, or that a policy hides, is not guessed: the subject then
*cannot be re-judged*, and is counted as that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._display import Renderable
from runbook_nb._frozen import Immutable
from runbook_nb._json import to_wire
from runbook_nb._text import MISSING, counted, visible
from runbook_nb._view import Badge, Card, Column, Data, Prose, Section, Table, verdict_role
from runbook_nb.errors import DefinitionError, NotCarried
from runbook_nb.rules import RuleSet
from runbook_nb.rules.known import Again, judge_again
from runbook_nb.rules.silent import Silent, fired, silent_rules
from runbook_nb.runbook.sides import GAP_WORDS, Side, share_a_version, side_of_again

if TYPE_CHECKING:
    import pandas as pd

    from runbook_nb.runbook.comparing import Comparison
    from runbook_nb.runbook.envelope import Envelope

#: How many rows the card carries.
ROWS: Final = 50

REJUDGED_FORMAT: Final = "runbook_nb/rejudged/1"


class Rejudged(Renderable, Immutable):
    """An envelope judged again: every subject with the verdict other rules give it.

    Attributes
    ----------
    rules : RuleSet
        The rules it was judged by now.
    side : Side
        Every subject with what became of it now.
    before : Side
        How it was judged at first.

    Examples
    --------
    >>> from runbook_nb.runbook.triage import triage
    >>> from runbook_nb.rules import Rule
    >>> rows = [{"host": "a", "days": 9}, {"host": "b", "days": 2}]
    >>> rules = RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], "fresh")
    >>> stricter = RuleSet("age", "v2", [Rule({"days": {"gt": 1}}, "old")], "fresh")
    >>> print(triage(rows, rules, subject="host", source="two rows").rejudge(stricter))
    Rejudged age v2 · 2 subjects (2 old), before age v1
      old  a  rule 1, > 1
      old  b  rule 1, > 1
    """

    shown_once_for_all = True

    def __init__(self, rules: RuleSet, again: Again, before: Side, shown: RuleSet) -> None:
        self.rules = rules
        self.before = before
        self._again = again
        self.side = side_of_again(again, before.subjects, shown, before)

    def counts(self) -> dict[str, int]:
        """Count the subjects of each verdict, in declared order; zeros left out."""
        found = self._standing_counts
        order = dict.fromkeys(self.side.words, 0)
        for number, count in found.items():
            word = self.side.standings[number].branch
            if word is not None:
                order[word] += count
        return {word: count for word, count in order.items() if count}

    @cached_property
    def _standing_counts(self) -> Counter[int]:
        return Counter(self.side.numbers)

    def gaps(self) -> dict[str, int]:
        """Count the subjects without a verdict by why, in full words, most first."""
        found: Counter[str] = Counter()
        for number, count in self._standing_counts.items():
            one = self.side.standings[number]
            if not one.decided:
                found[one.reason or GAP_WORDS[one.kind or "undecided"]] += count
        return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))

    @cached_property
    def fired(self) -> tuple[int, ...]:
        """How many subjects each rule decided."""
        return fired(self._again)

    @cached_property
    def silent(self) -> tuple[Silent, ...]:
        """The rules that decided no subject, with what took those that meet them."""
        return silent_rules(self._again)

    def compare(self, other: Any = None) -> Comparison:
        """Compare with how it was judged at first, or with another judgement of it.

        Parameters
        ----------
        other : Envelope or Rejudged, optional
            The later side. Without it this is the later side, and the first judgement the earlier.
        """
        from runbook_nb.runbook.comparing import compare

        return compare(self.before, self) if other is None else compare(self, other)

    def verdict_of(self, row: int) -> str | None:
        """Give the verdict of a subject by its place; None where there is none."""
        return self.side.standing(row).branch

    def rows(self) -> list[dict[str, Any]]:
        """Give one row per subject: its name, verdict, what decided, and why there is none."""
        side = self.side
        return [
            {
                "subject": to_wire(name),
                "verdict": one.branch,
                "decided_by": side.decided_by(one) if one.decided else None,
                "not_judged": None if one.decided else one.reason or GAP_WORDS[one.kind],
            }
            for name, one in zip(side.subjects, map(side.standing, range(len(side))), strict=True)
        ]

    def to_frame(self) -> pd.DataFrame:
        """Give one row per subject as a DataFrame."""
        import pandas as pd

        rows = self.rows()
        names = ("subject", "verdict", "decided_by", "not_judged")
        return pd.DataFrame({name: [row[name] for row in rows] for name in names})

    def to_dict(self) -> dict[str, Any]:
        """Give what became of each subject as JSON values."""
        return {
            "format": REJUDGED_FORMAT,
            "rules": self.side.title,
            "digest": self.side.digest,
            "before": self.before.title,
            "counts": self.counts(),
            "gaps": self.gaps(),
            "subjects": self.rows(),
        }

    def view(self) -> Card:
        """Show how many have which verdict, and the first rows."""
        return _card(self)

    def __len__(self) -> int:
        return len(self.side)


def rejudge(envelope: Envelope, rules: RuleSet | Mapping[str, Any]) -> Rejudged:
    """Judge an envelope again; see `Envelope.rejudge`."""
    if isinstance(rules, Mapping):
        rules = RuleSet.from_dict(rules)
    if not isinstance(rules, RuleSet):
        raise DefinitionError(
            f"an envelope is judged again by a RuleSet, not {type(rules).__name__}",
            where="rules",
            fix='write rb.RuleSet("name", "v2", rules=[…], default=…)',
        )
    before = envelope.side
    if before.facts is None:
        raise NotCarried(
            "the recorded facts are not carried: this copy holds the wire form only",
            fix="ask the live envelope, or write it with to_dict(dossier=True)",
        )
    again = judge_again(rules, before.facts)
    return Rejudged(rules, again, before, envelope.dossier.redactor.rules(rules))


def _card(rejudged: Rejudged) -> Card:
    side, gaps = rejudged.side, rejudged.gaps()
    order = side.words
    badges = [
        Badge(word=visible(word), role=verdict_role(word, order), count=count)
        for word, count in rejudged.counts().items()
    ]
    if gaps:
        badges.append(Badge(word="not judged", role="not_reached", count=sum(gaps.values())))
    rows = tuple(_row(side, row, order) for row in range(min(len(side), ROWS)))
    table = Table(
        columns=(Column(head="verdict"), Column(head="subject"), Column(head="decided by")),
        rows=rows,
        total=len(side),
        rest="rejudged.to_frame()",
    )
    lead = Prose(text="Judged again from the recorded values, no tool called.", tone="dim")
    sections = [Section(label="", parts=(lead,), in_text=False)]
    if share_a_version(rejudged.before, side):
        said = f"Judged under {side.title}, content differs."
        sections.append(Section(label="", parts=(Prose(text=said, tone="warning"),)))
    if rows:
        sections.append(Section(label="Verdicts", parts=(table,)))
    if gaps:
        told: Sequence[Any] = [
            (str(count), Data(value=reason)) for reason, count in list(gaps.items())[:ROWS]
        ]
        why = Table(
            columns=(Column(head="subjects", align="right"), Column(head="why")),
            rows=tuple(told),
            total=len(gaps),
        )
        sections.append(Section(label="Not judged", parts=(why,)))
    return Card(
        kind="Rejudged",
        name=side.title,
        headline=counted(len(side), "subject"),
        badges=tuple(badges),
        tail=f"before {rejudged.before.title}",
        sections=tuple(sections),
    )


def _row(side: Side, row: int, order: tuple[str, ...]) -> tuple[Any, ...]:
    one, name = side.standing(row), side.subjects[row]
    shown = Data(value=None if name is MISSING else name)
    if one.branch is None:
        return (Badge(word="not judged", role="not_reached"), shown, Data(value=one.reason))
    badge = Badge(word=visible(one.branch), role=verdict_role(one.branch, order))
    return (badge, shown, side.decided_by(one))
