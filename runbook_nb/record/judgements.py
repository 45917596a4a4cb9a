"""The decisions of a run in groups of those that came about alike, for what is told of them all.

Record layer. A million decisions have a handful of outcomes; what is said of their values is worked
out outcome by outcome, from whole columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from runbook_nb.record.log import FanOut, Log
from runbook_nb.record.shapes import ShapeFacts, facts_of
from runbook_nb.rules.notes import Judgements

if TYPE_CHECKING:
    from runbook_nb.record.walk import Walk


def judgements_in(walk: Walk) -> Iterator[Judgements]:
    """Yield the decisions by rules of a walk; those of like branches together.

    Groups come in the order in which the first of each was made.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> from runbook_nb.rules import Rule, RuleSet
    >>> old = RuleSet("age", "1", [Rule({"age": {"gt": 7}}, "old")], "new")
    >>> one = flow_chart("one", lambda s: s.set("age", s.args["item"]), id="one").add_decider(
    ...     "Age", rules=old, id="age")
    >>> one = one.branch("old", lambda s: None).branch("new", lambda s: None).end().build()
    >>> chart = (flow_chart("c", lambda s: None, id="a")
    ...     .add_parallel_for_each("Each", id="each", items=lambda s: [9, 2, 8], branch=one,
    ...                            max_branches=9, into="out").build())
    >>> [(each.path.branch, each.column(0)) for each in judgements_in(chart.run_sync().walk)]
    [('old', [9, 8]), ('new', [2])]
    """
    facts, values, offset, *_ = walk.raw_own
    return _Gathered(walk.log).inside(facts, values, offset)


class _Gathered:
    def __init__(self, log: Log) -> None:
        self.log = log
        #: How many tracks there were before the one looked at.
        self.passed = 0

    def inside(self, facts: ShapeFacts, values: Sequence[Any], offset: int) -> Iterator[Judgements]:
        for event in facts.events:
            code = event.code
            if code.kind == "decision" and code.path is not None:
                start = offset + event.at
                yield Judgements(code.path, [self.passed], partial(_value, values, start))
            elif code.kind == "fan_out":
                yield from self.spread(values[offset + event.at])

    def spread(self, fan: FanOut) -> Iterator[Judgements]:
        shapes = {n: facts_of(self.log, self.log.shapes[n]) for n in fan.shape_counts()}
        if any(facts.fan_outs for facts in shapes.values()):
            for index, shape in fan.begun():
                self.passed += 1
                yield from self.inside(shapes[shape.number], *fan.part(index))
            return
        if not any(facts.judged for facts in shapes.values()):
            return
        base, self.passed = self.passed, self.passed + len(fan)
        for number, indices in fan.of_shapes().items():
            for event in shapes[number].judged:
                column = partial(_column, fan, indices, event.at)
                yield Judgements(event.code.path, indices, column, base)  # type: ignore[arg-type]


def _value(values: Sequence[Any], start: int, place: int) -> Sequence[Any]:
    return [values[start + place]]


def _column(fan: FanOut, indices: Sequence[int], at: int, place: int) -> Sequence[Any]:
    return fan.column(at + place, indices)
