"""The laws of running, over random charts of every kind of stage in every other."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from drawn_charts import ENDING, ORDINARY, ChartSpec, World, charts, run_chart
from eager_charts import Commit, Eager
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runbook_nb.record.counts import count_fan_out
from runbook_nb.record.slots import Slots


def held(examples: int) -> settings:
    """How often a law is tried; a busy machine is no fault of it."""
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=examples, deadline=None, suppress_health_check=checks)


def told(rows: Any) -> list[tuple[Any, ...]]:
    """What rows say, of errors their kind alone."""
    return [
        (
            row.type,
            row.depth,
            row.stage,
            row.stage_id,
            row.runtime_stage_id,
            row.subflow,
            brief(row.text),
        )
        for row in rows
    ]


def brief(text: str) -> str:
    return text.partition(": ")[0] + ": " + text.split(": ")[1] if text[:8] == "Failed: " else text


def plain(value: Any) -> Any:
    """Give a value with slots as lists of what became of each branch."""
    if isinstance(value, Slots) or (isinstance(value, list) and value and hasattr(value[0], "item")):
        return [(slot.item, slot.status, plain(slot.value), slot.branch) for slot in value]
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


@given(charts((*ORDINARY, *ENDING), asks=2))
@held(300)
def test_rows_states_and_results_are_those_an_eager_recorder_would_have_written(spec):
    expected = Eager(spec)
    run = run_chart(spec)
    assert told(run.walk) == expected.rows
    assert run.status == expected.status
    assert plain(run.state) == plain(expected.state)
    assert plain(run.result) == plain(expected.result)
