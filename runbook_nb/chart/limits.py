"""How often a stage is tried, and what a run may use.

Chart layer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runbook_nb._value import frozen
from runbook_nb.errors import ChartError


@frozen(kw_only=False)
class Retry:
    """How often a stage is tried, and when again.

    Attributes
    ----------
    attempts : int
        Total number of runs, at least 1.
    backoff : float or callable
        Seconds to wait before the next attempt, or a function of the number of failed attempts.
    on : tuple of exception types, or callable
        Which errors are worth another attempt. Cancellation, limits and pauses never are.

    Examples
    --------
    >>> Retry(3, backoff=0.5, on=(TimeoutError,)).attempts
    3
    """

    attempts: int
    backoff: float | Callable[[int], float] = 0.0
    on: tuple[type[Exception], ...] | Callable[[Exception], bool] = (Exception,)

    def __post_init__(self) -> None:
        if type(self.attempts) is not int or self.attempts < 1:
            raise ChartError(
                f"Retry(attempts={self.attempts!r}) is not a whole number from 1",
                where="retry.attempts",
                fix="attempts counts every run of the stage, the first included",
            )
        backoff: Any = self.backoff
        if not callable(backoff) and not (
            isinstance(backoff, int | float) and 0 <= backoff < float("inf")
        ):
            raise ChartError(
                f"Retry(backoff={self.backoff!r}) is neither seconds nor a function",
                where="retry.backoff",
            )


@frozen
class Limits:
    """What a run may use.

    Limits act between stages, and end an awaited stage in the middle; the error names the stage
    that was running. They count anew when a paused run goes on.

    Attributes
    ----------
    seconds : float or None
        For the whole run.
    stage_seconds : float or None
        For one execution of one stage.
    loops : int
        How often the run may go back to one and the same stage. 1000 is upstream's number.
    depth : int
        How many charts may lie inside one another. 500 is upstream's number.

    Examples
    --------
    >>> Limits(seconds=30).seconds
    30
    """

    seconds: float | None = None
    stage_seconds: float | None = None
    loops: int = 1000
    depth: int = 500

    def __post_init__(self) -> None:
        for name in ("loops", "depth"):
            number: Any = getattr(self, name)
            if type(number) is not int or number < 1:
                raise ChartError(
                    f"Limits({name}={number!r}) is not a whole number from 1", where=name
                )
        for name in ("seconds", "stage_seconds"):
            value: Any = getattr(self, name)
            if value is not None and not (
                isinstance(value, int | float) and not isinstance(value, bool) and value > 0
            ):
                raise ChartError(
                    f"Limits({name}={value!r}) is not a positive number of seconds", where=name
                )
