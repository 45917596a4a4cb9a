"""The fan-outs of a run, those inside branches included, gathered by their place in the chart.

Bridge layer. A fan-out may run many times, once per branch of another; what a reader is told is
about all of them together. Every count is one of `count_fan_out`'s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._frozen import Immutable
from runbook_nb._value import frozen
from runbook_nb.record.counts import FanOutCounts, count_fan_out
from runbook_nb.record.log import FanOut, Log
from runbook_nb.record.shapes import ShapeFacts, facts_of

if TYPE_CHECKING:
    from runbook_nb.record.run import Run
    from runbook_nb.record.walk import Walk

_SUMMED: Final = ("items", "ok", "failed", "not_reached", "past_cap", "decided", "undecided")


@frozen
class FanOutGroup(Immutable):
    """All executions of one fan-out.

    Attributes
    ----------
    key : str
        Its place: the ids of the fan-outs around it, then its own (``"per-site/per-host"``).
    counts : FanOutCounts
        Summed over its executions.
    decides : bool
        Whether a decider stands in its branches.
    judges : bool
        Whether the verdict rows are about its subjects.
    executions : tuple of FanOut
        Empty in a copy that carries no record.
    """

    key: str
    counts: FanOutCounts
    decides: bool
    judges: bool
    executions: tuple[FanOut, ...] = ()

    @property
    def name(self) -> str:
        """What it is called."""
        return self.counts.stage_name

    def to_dict(self) -> dict[str, Any]:
        """Give the group as JSON values, its executions left out."""
        return {
            "key": self.key,
            "decides": self.decides,
            "judges": self.judges,
            "counts": self.counts.to_dict(),
        }


def fan_out_groups(run: Run, decider: str | None = None) -> tuple[FanOutGroup, ...]:
    """Gather the fan-outs of a run, outer ones first.

    Parameters
    ----------
    run : Run
    decider : str, optional
        Id or name of the decider whose branches name the verdicts. The fan-out it stands in is
        the one that judges; without it, every one with a decider does.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> each = flow_chart("one", lambda s: 1, id="one").build()
    >>> chart = (flow_chart("c", lambda s: s.set("xs", [1, 2]), id="a")
    ...     .add_parallel_for_each("Each", id="each", items=lambda s: s["xs"], branch=each,
    ...                            max_branches=1, into="out").build())
    >>> [(group.key, group.counts.ok, group.decides) for group in fan_out_groups(chart.run_sync())]
    [('each', 1, False)]
    """
    found: dict[str, list[FanOut]] = {}
    text = run.redactor.text
    for key, fan in _executions(run.walk):
        found.setdefault(text(key), []).append(fan)
    structure = run.structure
    counted = {key: _summed([count_fan_out(fan) for fan in fans]) for key, fans in found.items()}
    deciding = structure.deciding
    deciders = () if decider is None else structure.find(decider, "decider")
    named = {structure.fan_out_of(node.key) for node in deciders}
    decides = {key: key in deciding or counts.has_decider for key, counts in counted.items()}
    if named:
        judges = {key: key in named for key in counted}
    elif any(decides.values()):
        judges = decides
    else:
        # Charts made per item that all failed leave no decider to be seen, and subjects none the
        # less.
        judges = {key: not counts.ok and counts.items > 0 for key, counts in counted.items()}
    return tuple(
        FanOutGroup(
            key=key,
            counts=counts.served_by(run.redactor),
            decides=decides[key],
            judges=judges[key],
            executions=tuple(found[key]),
        )
        for key, counts in counted.items()
    )


def _executions(walk: Walk) -> Iterator[tuple[str, FanOut]]:
    """Yield every fan-out that ran with its key, each before those inside its branches."""
    return _inside(walk.log, *walk.raw_own[:4])


def _inside(
    log: Log, facts: ShapeFacts, values: Sequence[Any], offset: int, prefix: str
) -> Iterator[tuple[str, FanOut]]:
    for event in facts.fan_outs:
        fan: FanOut = values[offset + event.at]
        if fan.is_fan_out:
            yield f"{prefix}{fan.stage.key}", fan
        numbers = fan.shape_counts()
        nested = {number for number in numbers if facts_of(log, log.shapes[number]).fan_outs}
        for index, shape in fan.begun() if nested else ():
            if shape.number in nested:
                inner = facts_of(log, shape)
                yield from _inside(log, inner, *fan.part(index), fan.template(prefix))


def _summed(counts: Sequence[FanOutCounts]) -> FanOutCounts:
    if len(counts) == 1:
        return counts[0]
    by_branch: Counter[str] = Counter()
    for each in counts:
        by_branch.update(each.by_branch)
    return FanOutCounts(
        stage_id=counts[0].stage_id,
        stage_name=counts[0].stage_name,
        has_decider=any(each.has_decider for each in counts),
        by_branch=dict(by_branch),
        **{name: sum(getattr(each, name) for each in counts) for name in _SUMMED},
    )


def ended_as(group: FanOutGroup, *statuses: int) -> Iterator[tuple[FanOut, int]]:
    """Yield the items of a group that ended in one of these ways, in order."""
    for fan in group.executions:
        for index in fan.ended_as(*statuses):
            yield fan, index
