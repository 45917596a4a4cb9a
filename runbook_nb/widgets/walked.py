"""A walk over a log as what an explorer pages through: it answers everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from runbook_nb._text import show, visible
from runbook_nb._view import Graph
from runbook_nb.errors import DefinitionError
from runbook_nb.record.graph import branch_graph, walk_graph
from runbook_nb.record.moments import Moments
from runbook_nb.record.projection import WalkRow
from runbook_nb.record.spots import Marks
from runbook_nb.record.walk import Walk
from runbook_nb.rules.decision import Decision
from runbook_nb.widgets.sources import Evidence, Fan, Seen, Source
from runbook_nb.widgets.subjects import Outcome, Page, Subjects, fans_of, roles_of


def brief(decision: Decision) -> str:
    """Say a decision in one short line: what decided, and what it chose.

    Examples
    --------
    >>> from runbook_nb.rules import Rule, RuleSet, decide
    >>> rules = RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], "fresh")
    >>> brief(decide({"days": 9}, rules))
    'rule 1 matched: days 9 > 7, chose old'
    """
    chose = "named no branch" if decision.branch is None else f"chose {visible(decision.branch)}"
    number = (decision.rule_index or 0) + 1
    if decision.via == "rule":
        return f"rule {number} matched: {decision.cause}, {chose}"
    if decision.via == "unreadable":
        return f"rule {number} unreadable: {decision.cause}, {chose}"
    if decision.via == "default":
        return f"{decision.cause}, {chose}"
    return decision.sentence


class WalkSource(Source):
    """A walk over a log: the live record, a walk filed whole, a recording."""

    def __init__(
        self,
        walk: Walk,
        told: str,
        *,
        name: str = "",
        initial: Mapping[str, Any] | None = None,
        lacking: str = "",
    ) -> None:
        self.walk = walk
        self.name = name or walk.name
        self.told = told
        self.lacking = lacking
        self.steps = walk.steps_executed
        self.roles = roles_of(walk.structure)
        self.moments = Moments(walk, initial)

    @cached_property
    def _subjects(self) -> list[Subjects]:
        return fans_of(self.moments)

    def _marks(self, kind: str) -> Marks | None:
        return {"decisions": self.moments.decisions, "writes": self.moments.writes}.get(kind)

    def total(self, kind: str = "all") -> int:
        """Count the rows of a kind."""
        marks = self._marks(kind)
        return len(self.walk) if marks is None else marks.total

    def rows(self, kind: str, start: int, n: int) -> list[WalkRow]:
        """Give rows of a kind from a place on."""
        marks = self._marks(kind)
        if marks is None:
            return list(map(self._short, self.walk.page(start, n)))
        steps = (marks.at(at) for at in range(start, min(start + n, marks.total)))
        return [self._short(self.walk[step]) for step in steps]

    def _short(self, row: WalkRow) -> WalkRow:
        """Say a decision as briefly as a line of a list has room for."""
        if row.type != "condition":
            return row
        made = self.moments.at(row.step).decided
        if made is None or not isinstance(made.decision, Decision):
            return row
        return replace(row, text=self.walk.redactor.text(brief(made.decision)))

    def rank(self, kind: str, step: int) -> int:
        """Count the rows of a kind before a row."""
        marks = self._marks(kind)
        return step if marks is None else marks.before(step)

    def at(self, step: int) -> Seen:
        """Look at a row."""
        moment = self.moments.at(step)
        subject, made = moment.subject, moment.decided
        branch = moment.spot.branch
        name = fan = None
        if branch is not None and subject is not None:
            name = f"item {subject.number - 1}" if subject.name is None else show(subject.name)
            outer = moment.branches[0 if self.walk.only is None else -1]
            fan = next((n for n, one in enumerate(self._subjects) if one.fan is outer[0]), None)
            index = outer[1]
        return Seen(
            step=step,
            row=moment.row,
            subject=name or "",
            fan=fan,
            index=-1 if fan is None else index,
            of="" if subject is None else f"{subject.number} of {subject.total}",
            trail=moment.trail,
            evidence=None
            if made is None
            else Evidence(
                decision=made.decision,
                words=made.words,
                stage=made.stage,
                place=made.runtime_stage_id,
                step=made.step,
                number=made.number,
                total=made.total,
            ),
            around=moment.around,
        )

    def graph(self, step: int | None) -> Graph | None:
        """Draw the chart as it is to be seen at a row."""
        if self.walk.only is not None or step is None:
            return walk_graph(self.walk, self.walk.raw_overlay)
        chain = self.moments.at(step).branches
        if not chain:
            return walk_graph(self.walk, self.walk.raw_overlay)
        return branch_graph(self.walk, chain)

    def row_of(self, step: int, key: str) -> int | None:
        """Find the row of a node of the chart."""
        return self.moments.at(step).row_of(key)

    @cached_property
    def fans(self) -> Sequence[Fan]:
        """The fan-outs whose subjects can be paged through."""
        text = self.walk.redactor.text
        return [
            Fan(name=show(one.name), key=text(one.fan.stage.key), total=len(one))
            for one in self._subjects
        ]

    def outcomes(self, fan: int) -> tuple[Outcome, ...]:
        """Count what became of a fan-out's subjects."""
        return self._subjects[fan].outcomes

    def page(self, fan: int, start: int, word: str, find: str) -> Page:
        """Give some subjects of a fan-out."""
        return self._subjects[fan].page(start, word=word, find=find)

    def find(self, subject: Any) -> int:
        """Find the row to look at of a subject."""
        branch = self.walk.of(subject).only
        assert branch is not None  # noqa: S101 - that is what a subject's walk is of
        for subjects in self._subjects:
            if subjects.fan is branch[0]:
                return subjects.row(branch[1]) or 0
        raise DefinitionError(
            f"{show(subject)} lies inside the branch of another subject",
            where="subject",
            fix="explore the walk, and choose its row there",
        )
