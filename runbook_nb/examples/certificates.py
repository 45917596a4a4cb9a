"""Which root certificates need attention: every certificate of a bundle, judged at a given date.

Examples layer. A runbook written the long way: a source tool that says what it covers, a fan-out
with one decider, a collecting stage, the bridge. The thresholds are data (``certificates.yaml``).
The date is an input, so that an answer of today can be had again next year.
"""

from __future__ import annotations

from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Final

import runbook_nb as rb
from runbook_nb._text import counted
from runbook_nb.examples.bundle import certificate_rows, source_name
from runbook_nb.examples.procedure import AS_OF, answer_of, packaged_rules, read_date

__all__ = ["bundle_tool", "certificate_rows", "rules", "run", "runbook", "toolbox"]

#: The runbook's name as a tool.
NAME: Final = "root_certificates"

#: The tool that reads the bundle.
SOURCE: Final = "certificate_bundle"

#: Certificates that are judged at most; no bundle in use has a third of it.
MAX_CERTIFICATES: Final = 1_000

#: Verdict words, worst first. What could not be judged stands before what is fine.
RANK: Final = ("remove", "weak-key", "plan-removal", "watch", "declined", "note", "keep")


@cache
def rules() -> rb.RuleSet:
    """Load the rule set that ships with the package.

    Examples
    --------
    >>> rules().title
    'root-attention v1'
    """
    return packaged_rules("certificates.yaml")


def bundle_tool(bundle: str | Path | None = None) -> rb.Tool:
    """Make the source tool: it reads a bundle and says what it covers."""

    @rb.tool(
        name=SOURCE,
        description="Root certificates of a bundle: name, dates, key and signature of each.",
        input_schema={
            "type": "object",
            "properties": {"as_of": AS_OF},
            "required": ["as_of"],
            "additionalProperties": False,
        },
    )
    def read_bundle(as_of: str) -> Any:
        rows = certificate_rows(as_of, bundle)
        name = source_name(bundle)
        broken = [row for row in rows if row["problem"]]
        if not rows:
            return rb.absent(
                f"certificates in {name}",
                checked=[f"{name}, which has no PEM block"],
                try_instead="a bundle in PEM form",
            )
        return rb.coverage(
            {"rows": rows},
            checked=[f"{name}, {counted(len(rows) - len(broken), 'certificate')}"],
            not_checked=[
                rb.Item(
                    f"{counted(len(broken), 'block')} of {name} that could not be read",
                    why="each is a declined row whose problem says what is wrong with it",
                )
            ]
            if broken
            else (),
            cannot_cover=[
                rb.Item(
                    "whether anybody uses a root at all",
                    why="a bundle lists what may be trusted; nothing records what is",
                ),
                rb.Item(
                    "distrust that browsers have announced",
                    why="a bundle carries no dates of that kind",
                ),
                rb.Item(
                    "the lifetime limits of server certificates",
                    why="they bind what a root issues, by date of issue; a root is none of those",
                ),
            ],
        )

    return read_bundle


def judge_one() -> rb.Chart:
    """Build the chart that each certificate runs through."""

    def load(scope: Any) -> None:
        scope.update(scope.args["item"])

    def verdict(word: str) -> Any:
        return lambda scope: scope.set("verdict", word)

    decider = rb.flow_chart("certificate", load, id="load").add_decider(
        "Attention", rules=rules(), id="attention"
    )
    for word in RANK:
        decider = decider.branch(word, verdict(word))
    return decider.end().build()


def runbook() -> rb.Tool:
    """Declare the runbook.

    Examples
    --------
    >>> runbook().composed_of
    ['certificate_bundle']
    """
    one = judge_one()

    def fix_date(scope: Any) -> None:
        scope["as_of"] = scope.args.get("as_of") or rb.settings.clock().date().isoformat()

    def procedure(tools: Any) -> rb.Chart:
        async def read(scope: Any) -> None:
            answer = await tools.call(SOURCE, {"as_of": scope["as_of"]})
            scope["certificates"] = answer["result"]["rows"]

        return (
            rb.flow_chart(
                "root-certificates",
                fix_date,
                id="as-of",
                stage_name="Fix the date",
                description="Which root certificates need attention at a date.",
                input_schema={
                    "type": "object",
                    "properties": {"as_of": AS_OF},
                    "additionalProperties": False,
                },
            )
            .add_function("Read the bundle", read, id="read")
            .add_parallel_for_each(
                "Judge each certificate",
                id="each",
                items=lambda scope: scope["certificates"],
                branch=one,
                max_branches=MAX_CERTIFICATES,
                into="results",
                subject="certificate",
            )
            .add_function("Collect", collect, id="collect")
            .build()
        )

    return rb.runbook_as_tool(
        name=NAME,
        description="Which root certificates need attention at a date, with the reason for each.",
        procedure=procedure,
        result_kind="verdict/root-certificates",
        rules=rules(),
        verdicts=rb.Verdicts(decider="attention", rank=RANK),
        composed_of=[SOURCE],
    )


def collect(scope: Any) -> None:
    """Write the verdict rows, soonest end first, and the date they hold for."""
    judged = [slot for slot in scope["results"] if slot.status == "ok"]
    judged.sort(key=lambda slot: (slot.item["expires"] or "", slot.item["certificate"]))
    scope["verdicts"] = [
        {
            "certificate": slot.item["certificate"],
            "verdict": slot.value["verdict"],
            "days_left": slot.item["days_left"],
            "expires": slot.item["expires"],
            "fingerprint": slot.item["fingerprint"],
        }
        | ({"problem": slot.item["problem"]} if slot.item["problem"] else {})
        for slot in judged
    ]
    scope["report"] = {"as_of": scope["as_of"]}


def toolbox(bundle: str | Path | None = None) -> rb.Toolbox:
    """Put the runbook and its source under one roof.

    Examples
    --------
    >>> [tool.name for tool in toolbox()]
    ['certificate_bundle', 'root_certificates']
    """
    return rb.Toolbox([bundle_tool(bundle), runbook()])


def run(as_of: date | str | None = None, bundle: str | Path | None = None) -> rb.Envelope:
    """Run the runbook.

    Parameters
    ----------
    as_of : date or str, optional
        The date to judge at; that of ``settings.clock`` by default.
    bundle : str or Path, optional
        A PEM file; the one of the installed certifi by default.

    Raises
    ------
    ToolRefused
        The date is none; nothing has run.
    RunbookError
        The bundle holds no certificate, so that there is no answer (``absent``).

    Examples
    --------
    >>> run("2026-11-29")["result"]["as_of"]
    '2026-11-29'
    """
    day = read_date(as_of).isoformat() if isinstance(as_of, date) else as_of
    return answer_of(toolbox(bundle), NAME, {"as_of": day})
