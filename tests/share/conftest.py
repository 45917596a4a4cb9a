"""Answers to hand on: a small one, one of many rows, and one that hides something."""

import sys
from pathlib import Path

import pytest

# The notebooks that hypothesis makes, beside the tests, and the runbooks of their neighbours.
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "runbook"))

from host_runbooks import inventory_of, judging, runbook_over

import runbook_nb as rb
from runbook_nb.testing import reproducible

RULES = {
    "name": "age",
    "version": "v1",
    "rules": [{"when": {"days": {"gt": 7}}, "then": "old", "label": "older than a week"}],
    "default": {"branch": "fresh", "label": "within a week"},
}


@pytest.fixture(scope="session")
def answer():
    """Judge rows with their host and its age in days."""

    def answer(rows, **more):
        rules, source = rb.RuleSet.from_dict(RULES), f"{len(rows)} rows"
        with reproducible():
            return rb.triage(rows, rules, subject="host", source=source, **more)

    return answer


@pytest.fixture(scope="session")
def envelope(answer):
    return answer([{"host": "zeta", "days": 9}, {"host": "alpha", "days": 1}])


@pytest.fixture(scope="session")
def many(answer):
    return answer([{"host": f"host-{n:04}", "days": n % 20} for n in range(1_200)], max_rows=50)


@pytest.fixture(scope="session")
def filed():
    """The answer of a runbook that files its recording and its whole walk."""
    rules = rb.RuleSet.from_dict(RULES)
    rows = [{"host": "zeta", "days": 9}, {"host": "alpha", "days": 1}]
    each = judging(rules, decider="Age", branches=("old", "fresh"))
    walk = {"form": "columns", "recording": {}}
    ages = runbook_over(each, rules, name="ages", chart="ages", decider="Age", walk=walk)
    with reproducible():
        return rb.Toolbox([inventory_of(rows), ages]).call_sync("ages")
