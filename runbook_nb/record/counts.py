"""The counting law: one place where the branches of a fan-out are counted.

Record layer. Items = ok + failed + not reached, and ok = decided + undecided, for every way a
run can stop. Every number a reader sees about a fan-out comes from here.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from runbook_nb._frozen import Immutable
from runbook_nb._value import frozen
from runbook_nb.record.log import FAILED, NOT_REACHED, OK, FanOut
from runbook_nb.record.shapes import facts_of

if TYPE_CHECKING:
    from runbook_nb.record.redact import Redactor


@frozen
class FanOutCounts(Immutable):
    """How the items of one execution of a fan-out ended.

    Attributes
    ----------
    stage_id, stage_name : str
        The fan-out.
    items : int
        All of them.
    ok, failed, not_reached : int
        They add up to ``items``.
    past_cap : int
        Those of ``not_reached`` that lie past the cap.
    decided, undecided : int
        They add up to ``ok``: whether a decider of the branch chose.
    has_decider : bool
        Whether any branch decided at all.
    by_branch : mapping
        Branch id -> how many decided branches took it, in order of first taking.
    """

    stage_id: str
    stage_name: str
    items: int
    ok: int
    failed: int
    not_reached: int
    past_cap: int
    decided: int
    undecided: int
    has_decider: bool
    by_branch: dict[str, int]

    def served_by(self, redactor: Redactor, paths: Any = ()) -> FanOutCounts:
        """Give the same counts under names as a policy lets them be seen."""
        if not redactor.knows_secrets:
            return self
        text = redactor.text
        by_branch: dict[str, int] = {}
        for word, times in self.by_branch.items():
            by_branch[text(word)] = by_branch.get(text(word), 0) + times
        return replace(
            self,
            stage_id=text(self.stage_id),
            stage_name=text(self.stage_name),
            by_branch=by_branch,
        )

    def to_dict(self) -> dict[str, Any]:
        """Give the counts as a mapping."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


def count_fan_out(fan: FanOut) -> FanOutCounts:
    """Count how the items of a fan-out ended."""
    counts = fan.alike_counts()
    shapes = {number: times for (number, status), times in counts.items() if status == OK}
    by_branch: dict[str, int] = {}
    decided = 0
    for number, times in shapes.items():
        facts = facts_of(fan.log, fan.log.shapes[number])
        if facts.decision is None:
            continue
        decided += times
        route = facts.route or ""
        by_branch[route] = by_branch.get(route, 0) + times
    ok = fan.status_count(OK)
    cap = min(fan.cap, len(fan))
    return FanOutCounts(
        stage_id=fan.stage.id,
        stage_name=fan.stage.name,
        items=len(fan),
        ok=ok,
        failed=fan.status_count(FAILED),
        not_reached=fan.status_count(NOT_REACHED),
        past_cap=len(fan) - cap,
        decided=decided,
        undecided=ok - decided,
        has_decider=decided > 0,
        by_branch=by_branch,
    )
