"""A clock that stands still until it is moved, and ids that come out the same every time."""

from datetime import UTC, datetime, timedelta

import pytest

from runbook_nb._ids import SeededIds
from runbook_nb.settings import settings


class Clock:
    """Gives the time it was set to."""

    def __init__(self):
        self.ms = 1_000_000

    def __call__(self):
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=self.ms)


@pytest.fixture
def clock():
    """Fix the clock and the ids of the whole test."""
    clock = Clock()
    with settings(clock=clock, ids=SeededIds("artifacts")):
        yield clock
