"""What the laws of running are told with: the charts they are tried on, and all a run serves."""

from __future__ import annotations

import json
from typing import Any

from drawn_charts import ENDING, ORDINARY, charts
from hypothesis import HealthCheck, Phase, settings

from runbook_nb.record.log import FanOut
from runbook_nb.record.slots import Slots

ANY = charts((*ORDINARY, *ENDING), asks=2)
#: Whatever the order in which things come to pass, the same comes of them.
SURE = charts(ORDINARY, asks=2, fail_fast=False)


def held(examples: int) -> settings:
    """How often a law is tried; a busy machine is no fault of it."""
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    # Shrinking charts takes minutes; what is drawn is readable as it is.
    return settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=checks,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
    )


def plain(value: Any) -> Any:
    """Give a value with slots as lists of what became of each branch."""
    if isinstance(value, Slots) or (isinstance(value, list) and hasattr(value[:1] or 0, "item")):
        value = list(value)
    if hasattr(value, "status"):
        return (value.item, value.status, plain(value.value), value.branch)
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list | Slots) else value


def tracks_of(run: Any) -> list[tuple[Any, Any, int, str]]:
    """Give every track that began: its codes, values, where they begin, the path of its ids."""
    root = run.log.root
    found = [(root.codes, root.values, 0, "")]
    for fan, index, prefix in run.walk.tracks():
        shape = fan.shape(index)
        found.append((shape.codes, *fan.part(index), fan.path(prefix, index)))
    return found


def fans_of(run: Any) -> list[FanOut]:
    """Give every execution of a fan-out, a fork or a selector, in no order."""
    found = []
    for codes, values, offset, _ in tracks_of(run):
        for event in run.log.events(codes):
            if event.code.kind == "fan_out":
                found.append(values[offset + event.at])
    return found


def everything(run: Any) -> str:
    """Give all that is served of a run, and what it goes on from, as one text."""
    checkpoint = run.checkpoint
    parts = [
        run.status,
        run.walk.to_dicts(),
        [commit.to_dict() for commit in run.commits],
        [made.decision.to_dict() for made in run.decisions],
        run.recording().to_dict(),
        run.structure.to_dict(),
        [counts.to_dict() for counts in run.fan_outs],
        [run.error, run.ended_at, run.pause, checkpoint],
        str(run),
    ]
    return json.dumps(parts, sort_keys=True, default=str)
