"""One view of each kind and state, and a page of its own for each.

The page of an envelope is the report that `Envelope.to_html` writes. The other views are put into
a page that brings nothing but a language, a title and the report's stylesheet.
"""

from __future__ import annotations

import sys
from functools import partial
from html import escape
from importlib.resources import files
from pathlib import Path

import states

import runbook_nb as rb
from runbook_nb.render.html import render_html
from runbook_nb.share.report import report_html

# One object of every class that shows itself stands beside the tests of drawing.
sys.path.insert(0, str(Path(__file__).parents[1] / "render"))

from displayables import SAMPLES, USUAL, shown_classes

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{css}</style>
</head>
<body>
<main>
<h1>{title}</h1>
{card}
</main>
</body>
</html>
"""


def run_absent():
    """A run that ended with the absence its source reported."""

    @rb.tool(description="Backup subjects with the age of their last backup.")
    async def backup_inventory():
        return rb.absent(
            "backup jobs of tenant acme",
            checked=[rb.Item("the backup inventory", why="0 of 312 jobs carry this tenant")],
            not_checked=[rb.Item("archived tenants", why="closed before 2026-01")],
        )

    rules = states.posture_v1()
    triage = rb.runbook_as_tool(
        name="backup_triage",
        description="Protection posture of every backup subject.",
        procedure=states.procedure_of(rules, states.THREE),
        result_kind="verdict/backup-posture",
        rules=rules,
        verdicts={"decider": "Protection posture"},
        composed_of=["backup_inventory"],
    )
    box = rb.Toolbox([backup_inventory, triage])
    box.call_sync("backup_triage", {})
    return box.last_run


def run_cancelled():
    """A run that somebody stopped in the middle of a fan-out."""
    stop = rb.Stop()

    def load(scope):
        if scope.args["item"]["subject"] == "cluster-b":
            stop.set()

    chart = (
        rb.flow_chart(
            "look around",
            lambda scope: scope.set("subjects", states.three_rows()),
            id="inventory",
            stage_name="inventory",
        )
        .add_parallel_for_each(
            "Look at each subject",
            id="per-subject",
            items=lambda scope: scope["subjects"],
            branch=rb.flow_chart("subject", load, id="load", stage_name="load").build(),
            max_branches=50,
            into="looks",
            subject="subject",
        )
        .build()
    )
    try:
        chart.run_sync(signal=stop)
    except rb.errors.RunCancelled as error:
        return error.run
    raise AssertionError("the run was to be stopped")


def _filed():
    box = states.box_of(states.three_rows(), states.posture_v1(), states.THREE)
    envelope = box.call_sync("backup_triage", {})
    return box.artifacts, box.artifacts.get_sync(envelope["result"]["walk"]["ref"])


#: Classes that are met in a state of their own below, or are drawn as what they stand for.
MET = {
    *("Chart", "Envelope", "Explanation", "Ledger", "Run", "RuleSet", "Structure", "Tool"),
    *("Toolbox", "VerdictTable", "Walk", "InMemoryArtifacts", "Record", "Ticket", "Recording"),
    *("Explorer", "RuleLab", "RunForm"),
}
OTHERS = {
    f"shown_{name}": partial(SAMPLES[one], USUAL)
    for name, one in sorted(shown_classes().items())
    if name not in MET
}

CARDS = {
    **OTHERS,
    **states.STATES,
    "run_absent": run_absent,
    "run_cancelled": run_cancelled,
    "record": lambda: _filed()[1],
    "ticket": lambda: _filed()[1].meta,
    "artifacts": lambda: _filed()[0],
}


def page_of(name):
    """Draw one view as a page of its own."""
    with states.frozen():
        shown = CARDS[name]()
        if isinstance(shown, rb.Envelope):
            return report_html(shown)
        card = render_html(shown.view(), page=True)
    css = files("runbook_nb.share").joinpath("static", "page.css").read_text("utf-8")
    return PAGE.format(title=escape(name.replace("_", " ")), css=css, card=card)
