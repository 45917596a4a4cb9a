"""Time, ids and layout held still, for this process and for the kernels it starts.

Testing layer. Both ways set the same options to the same values, so an answer computed in a test
and one computed in a notebook can be compared byte by byte.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from runbook_nb._ids import SeededIds
from runbook_nb.errors import DefinitionError
from runbook_nb.settings import Settings, settings

#: The moment at which clocks stand unless told otherwise.
MOMENT: Final = datetime(2026, 1, 1, tzinfo=UTC)

#: The seed of ids unless told otherwise.
SEED: Final = "runbook_nb"


class FrozenClock:
    """A clock that moves only when it is told to.

    Parameters
    ----------
    moment : datetime
        An aware time.

    Attributes
    ----------
    moment : datetime
        The time it gives.

    Raises
    ------
    DefinitionError
        The time has no zone.

    Examples
    --------
    >>> clock = FrozenClock()
    >>> clock.advance(days=1, hours=2)
    >>> clock()
    datetime.datetime(2026, 1, 2, 2, 0, tzinfo=datetime.timezone.utc)
    """

    def __init__(self, moment: datetime = MOMENT) -> None:
        self.set(moment)

    def __call__(self) -> datetime:
        """Give the time at which it stands."""
        return self.moment

    def set(self, moment: datetime) -> None:
        """Let it stand at another time."""
        if moment.tzinfo is None:
            raise DefinitionError(
                f"the time {moment.isoformat()} has no zone",
                where="clock",
                fix="write datetime(…, tzinfo=UTC)",
            )
        self.moment = moment

    def advance(self, **by: float) -> None:
        """Move it on by what ``timedelta`` takes (``days``, ``hours``, ``seconds``)."""
        self.moment += timedelta(**by)


def reproducible(
    *, clock: datetime = MOMENT, seed: str | int = SEED, **options: Any
) -> AbstractContextManager[Settings]:
    """Hold time, ids and layout still for a ``with`` block.

    Parameters
    ----------
    clock : datetime
        The moment at which the clock stands.
    seed : str or int
        Seed of the ids.
    **options
        More of `runbook_nb.settings`.

    Examples
    --------
    >>> with reproducible() as one:
    ...     first = one.ids(8), one.clock()
    >>> with reproducible() as another:
    ...     (another.ids(8), another.clock()) == first
    True
    """
    fixed: dict[str, Any] = {
        "static": True,
        "layout": "pure",
        "clock": FrozenClock(clock),
        "ids": SeededIds(seed),
    }
    return settings(**{**fixed, **options})


def environment(*, clock: datetime = MOMENT, seed: str | int = SEED) -> dict[str, str]:
    """Give the environment variables that hold the same still in another process.

    Parameters
    ----------
    clock : datetime
        The moment at which the clock stands.
    seed : str or int
        Seed of the ids.

    Examples
    --------
    >>> environment()["RUNBOOK_NB_CLOCK"]
    '2026-01-01T00:00:00+00:00'
    """
    return {
        "RUNBOOK_NB_STATIC": "1",
        "RUNBOOK_NB_LAYOUT": "pure",
        "RUNBOOK_NB_CLOCK": FrozenClock(clock)().isoformat(),
        "RUNBOOK_NB_IDS": str(seed),
    }


def sanitize_file() -> Path:
    """Name the file for ``pytest --nbval-sanitize-with``.

    It is needed where another layout engine, or none, draws the flowcharts than the one that drew
    the stored ones. Nothing else of the package's own output has to be left out of a comparison.

    Examples
    --------
    >>> sanitize_file().name
    'sanitize.cfg'
    """
    return Path(str(files("runbook_nb.testing").joinpath("sanitize.cfg")))
