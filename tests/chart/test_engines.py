"""Engines: wherever the branches of a fan-out run, the record is the one of running them here."""

from __future__ import annotations

import json
import multiprocessing
import threading
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import pytest
from drawn_charts import ENDING, ORDINARY, World, charts, run_chart
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from runbook_nb.record.written import write_log


def held(examples: int) -> settings:
    """How often a law is tried; a busy machine is no fault of it."""
    return settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
    )


def told(run: Any) -> dict[str, Any]:
    """Give everything a run says of itself, as it would be written down."""
    return {
        "status": run.status,
        "log": json.dumps(write_log(run.log, strict=False)),
        "rows": [tuple(row) if isinstance(row, tuple) else row.to_dict() for row in run.walk],
        "state": repr(run.state),
        "result": repr(run.result),
        "error": repr(run.error),
        "pause": repr(run.pause),
        "ended_at": repr(run.ended_at),
        "structure": json.dumps(run.structure.to_dict()),
        "checkpoint": json.dumps(run.checkpoint, default=repr),
        "recording": json.dumps(run.recording().to_dict(), default=repr),
        "taken back": repr(run.log.taken_back),
    }


def world(**facts: Any) -> World:
    """Make a world that can be sent to another process."""
    return World(stop=None, **facts)


def same(spec: Any, engine: Any, form: str = "sync") -> None:
    here = told(run_chart(spec, world(form=form)))
    there = told(run_chart(spec, world(form=form), engine=engine))
    for part, said in here.items():
        assert there[part] == said, part


#: A chart in which every branch of a run is sure to come to the same, whoever comes first.
ANY = charts((*ORDINARY, *ENDING), asks=2)


@given(ANY)
@held(150)
def test_threads_leave_the_record_that_running_in_place_leaves(spec):
    same(spec, "threads")


@pytest.fixture(scope="module")
def processes():
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        yield pool


@given(spec=ANY)
@held(40)
def test_processes_leave_the_record_that_running_in_place_leaves(processes, spec):
    same(spec, processes)
