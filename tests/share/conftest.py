"""Answers to hand on: a small one, one of many rows, and one that hides something."""

import sys
from pathlib import Path

import pytest

import runbook_nb as rb
from runbook_nb.testing import reproducible

# The notebooks that hypothesis makes, beside the tests.
sys.path[:0] = [str(Path(__file__).parent)]

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

    @rb.tool
    def inventory():
        """Read the inventory."""
        rows = [{"host": "zeta", "days": 9}, {"host": "alpha", "days": 1}]
        return rb.coverage({"rows": rows}, checked=["the inventory"])

    each = (
        rb.flow_chart("one", lambda s: s.update(s.args["item"]), id="load")
        .add_decider("Age", rules=rules, id="age")
        .branch("old", lambda s: s.set("verdict", "old"))
        .branch("fresh", lambda s: s.set("verdict", "fresh"))
        .end()
        .build()
    )

    def procedure(tools):
        async def load(scope):
            scope["rows"] = (await tools.call("inventory", {}))["result"]["rows"]

        def collect(scope):
            scope["verdicts"] = [{"host": one.item["host"], **one.value} for one in scope["out"]]

        return (
            rb.flow_chart("ages", load, id="load")
            .add_parallel_for_each(
                "Each",
                id="each",
                items=lambda s: s["rows"],
                branch=each,
                max_branches=9,
                into="out",
                subject="host",
            )
            .add_function("Collect", collect, id="collect")
            .build()
        )

    ages = rb.runbook_as_tool(
        name="ages",
        description="Ages.",
        procedure=procedure,
        result_kind="verdict/age",
        rules=rules,
        verdicts={"decider": "Age"},
        composed_of=["inventory"],
        walk={"form": "columns", "recording": {}},
    )
    with reproducible():
        return rb.Toolbox([inventory, ages]).call_sync("ages")
