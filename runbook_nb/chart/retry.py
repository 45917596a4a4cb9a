"""Trying a stage again: a failed attempt leaves nothing behind but the fact that it failed.

Chart layer.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from runbook_nb._frozen import FrozenDict, freeze
from runbook_nb.chart.endings import Steps, ending_of
from runbook_nb.errors import describe_error

if TYPE_CHECKING:
    from runbook_nb.chart.executor import Execution
    from runbook_nb.chart.model import Retry
    from runbook_nb.chart.plan import StagePlan
    from runbook_nb.chart.scope import Frame


def run_again(execution: Execution, plan: StagePlan, retry: Retry, fn: Any, frame: Frame) -> Steps:
    """Run a stage's function until it succeeds or is worth no other attempt.

    Gives the scope it succeeded with, and its value.
    """
    state, track = frame.state, frame.track
    attempt = 1
    inherited = frame.inherited
    while True:
        frame.growing.clear()
        before, codes = dict(state), len(track.codes)
        if inherited is not None:
            frame.inherited = set(inherited)
        scope = execution.scope(plan, frame)
        try:
            value = yield from execution.once(plan, fn, scope)
            return scope, value
        except BaseException as error:
            scope.close()  # first of all: a thread may still be writing
            execution.end_stream(scope, plan, track, complete=False)
            if attempt >= retry.attempts or not _worth_it(retry, error):
                raise
            state.clear()
            state.update(before)
            execution.log.take_back(track, codes)
            described = freeze(describe_error(error))
            fact = FrozenDict(attempt=attempt, attempts=retry.attempts, error=described)
            track.add(plan.code("retry"), fact)
        seconds = _delay(retry, attempt)
        if seconds > 0:
            from asyncio import sleep

            yield sleep(seconds)
        attempt += 1
        ending = execution.asked_to_end(plan, "between attempts of")
        if ending is not None:
            raise ending


def _worth_it(retry: Retry, error: BaseException) -> bool:
    if ending_of(error) is not None or not isinstance(error, Exception):
        return False
    if isinstance(retry.on, tuple):
        return isinstance(error, retry.on)
    try:
        return bool(retry.on(error))
    except Exception:  # a question that cannot be answered is answered with no
        return False


def _delay(retry: Retry, failed: int) -> float:
    """Give the seconds to wait; anything but a finite number of them is no wait."""
    try:
        found: Any = retry.backoff(failed) if callable(retry.backoff) else retry.backoff
        return float(found) if isfinite(found) else 0.0
    except Exception:
        return 0.0
