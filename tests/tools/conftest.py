from __future__ import annotations

import itertools

import pytest

from runbook_nb.coverage import coverage
from runbook_nb.settings import settings
from runbook_nb.tools import define_tool


@pytest.fixture
def make():
    """Make a tool from a name, a body and whatever else it declares."""

    def make(name="t", execute=lambda args, ctx: {"from": ctx.call_id}, **more):
        return define_tool(name=name, description="d", execute=execute, **more)

    return make


@pytest.fixture
def counted_ids():
    """Ids that count: ``0000000001``, ``0000000002``, …"""
    numbers = itertools.count(1)
    with settings(ids=lambda length: str(next(numbers)).zfill(length)):
        yield


@pytest.fixture
def inventory(make):
    """The inventory of the worked example: three rows, a provenance stamp, a ledger."""
    return make(
        "inventory",
        lambda args: coverage(
            {"af_provenance": {"source": "LOCAL SEED"}, "rows": [{"subject": "a", "age": 2}]},
            checked=["the seeded inventory"],
            cannot_cover=[{"what": "WHY paused", "why": "no change record"}],
        ),
    )
