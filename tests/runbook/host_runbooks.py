"""A runbook that reads hosts from an inventory, judges each, and writes a row for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import runbook_nb as rb


def word(verdict: str) -> Callable[[Any], None]:
    """Give what a branch does: it writes the verdict down."""
    return lambda scope: scope.set("verdict", verdict)


def judging(
    rules: rb.RuleSet,
    load: Callable[[Any], None] | None = None,
    *,
    decider: str = "Posture",
    branches: Sequence[str] = ("old", "fresh", "declined"),
) -> Any:
    """Give the chart that judges one host."""
    read = load or (lambda scope: scope.update(scope.args["item"]))
    made = rb.flow_chart("subject", read, id="load", stage_name="Load").add_decider(
        decider, rules=rules, id=decider.lower()
    )
    for branch in branches:
        made = made.branch(branch, word(branch))
    return made.end().build()


def inventory_of(rows: Sequence[Any], **coverage: Any) -> Any:
    """Give the tool that is the source."""
    return rb.define_tool(
        name="inventory",
        description="Read the inventory.",
        execute=lambda args: rb.coverage({"rows": rows}, checked=["the inventory"], **coverage),
    )


def row_of_each(scope: Any) -> None:
    """Write a row with the verdict for every host that has one."""
    scope["verdicts"] = [
        {"host": slot.item["host"], **slot.value}
        for slot in scope["results"]
        if slot.status == "ok" and "verdict" in slot.value
    ]


def runbook_over(
    branch: Any,
    rules: Any,
    *,
    name: str = "hosts",
    chart: str = "long-way",
    collect: Callable[[Any], None] = row_of_each,
    cap: int = 50,
    decider: str = "Posture",
    **more: Any,
) -> Any:
    """Give the runbook: it reads the hosts, judges each by ``branch``, and collects the rows."""

    def procedure(tools: Any) -> Any:
        async def read(scope: Any) -> None:
            scope["rows"] = (await tools.call("inventory", {}))["result"]["rows"]

        return (
            rb.flow_chart(chart, read, id="read", stage_name="Read")
            .add_parallel_for_each(
                "Each host",
                id="each",
                items=lambda s: s["rows"],
                branch=branch,
                max_branches=cap,
                into="results",
                subject="host",
            )
            .add_function("Collect", collect, id="collect")
            .build()
        )

    options = {
        "name": name,
        "description": "Judge every host of the inventory.",
        "procedure": procedure,
        "result_kind": "verdict/age",
        "rules": rules,
        "verdicts": {"decider": decider},
        "composed_of": ["inventory"],
    }
    return rb.runbook_as_tool(**{**options, **more})
