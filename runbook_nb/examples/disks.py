"""Which file systems are full or filling up, on the machine this runs on.

Examples layer. Source of the rules: the alerts of the node exporter mixin, ``docs/node-mixin`` in
prometheus/node_exporter, of which the configuration and the runbook pages were read. Almost full:
less than 5 % free is a warning, less than 3 % critical. Filling up: less than 40 % free and
predicted to be full within 24 hours is a warning, less than 20 % and within 4 hours critical; the
prediction is a straight line through the last 6 hours. The same limits hold for files (inodes).
File descriptors: more than 70 % in use is a warning, more than 90 % critical. On Kubernetes, where
image clean-up starts at 85 % used, the mixin advises 14 or 15 % in place of 20 %.

The mixin waits for an alert to hold for a time (30 minutes to an hour) before it fires; one look
cannot do that.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import runbook_nb as rb
from runbook_nb.examples.mounts import load_history, note_history, resource_rows
from runbook_nb.examples.procedure import (
    SECONDS,
    answer_of,
    covered,
    given_rows,
    judged_runbook,
    object_schema,
    packaged_rules,
)

__all__ = ["disks_tool", "note_history", "resource_rows", "rules", "run", "runbook", "toolbox"]

#: The runbook's name as a tool.
NAME: Final = "disk_space"

#: The tool that measures.
SOURCE: Final = "machine_resources"

#: Verdict words, worst first. What could not be judged stands before what is fine.
RANK: Final = ("critical", "warning", "declined", "not-predicted", "ok")

#: What is shown beside the verdict.
SHOWN: Final = ("free_percent", "used_percent", "free_in_24h_percent")

_HISTORY: Final[Mapping[str, Any]] = {
    "history": {
        "type": "string",
        "title": "Earlier measurements",
        "description": "Path of a table of comma-separated values with the columns time "
        "(2026-11-29T08:00:00Z), mount (/), free_bytes and free_files, as note_history writes it. "
        "Without it nothing is predicted, and what is free now is judged alone.",
    }
}


@cache
def rules() -> rb.RuleSet:
    """Load the rule set that ships with the package.

    Examples
    --------
    >>> rules().title
    'disk-space v1'
    """
    return packaged_rules("disks.yaml")


def disks_tool(rows: Any = None) -> rb.Tool:
    """Make the source tool: it measures this machine, and says what it left out.

    Parameters
    ----------
    rows : optional
        What was measured elsewhere, as `mounts.resource_rows` gives it. Nothing is measured then.
    """

    @rb.tool(
        name=SOURCE,
        description="Space, files and file descriptors of this machine, with what is free.",
        input_schema=object_schema({} if rows is not None else _HISTORY),
        blocking=True,
    )
    def measure_machine(history: str | None = None) -> Any:
        left_out: list[rb.Item] = []
        if rows is not None:
            found = [{"problem": ""} | row for row in given_rows(rows)]
        else:
            samples = [] if history is None else load_history(history)
            found, left_out = resource_rows(rb.settings.clock(), history=samples)
        return covered(
            found,
            thing="resource",
            source="this machine" if rows is None else "the rows given",
            checked=[f"history {Path(history).name}"] if history else (),
            not_checked=[
                *left_out,
                rb.Item(
                    "whether a state lasts",
                    why="this is one look; the alerts wait until it has held for a time",
                ),
            ],
            cannot_cover=[
                rb.Item(
                    "what fills a file system", why="it says how much is free, not who wrote there"
                ),
                rb.Item(
                    "limits of a single user or process",
                    why="quotas and limits of processes are kept apart from what is measured",
                ),
            ],
        )

    return measure_machine


def runbook(rows: Any = None, seconds: float | None = SECONDS) -> rb.Tool:
    """Declare the runbook.

    Examples
    --------
    >>> runbook().composed_of
    ['machine_resources']
    """
    return judged_runbook(
        name=NAME,
        title="disk-space",
        description="Which file systems are full or filling up, and whether file descriptors run "
        "out.",
        source=SOURCE,
        rules=rules(),
        subject="resource",
        columns=SHOWN,
        rank=RANK,
        properties={} if rows is not None else _HISTORY,
        seconds=seconds,
    )


def toolbox(rows: Any = None, seconds: float | None = SECONDS) -> rb.Toolbox:
    """Put the runbook and its source under one roof.

    Parameters
    ----------
    rows : optional
        What was measured elsewhere, as `mounts.resource_rows` gives it.
    seconds : float, optional
        Time a run may take.

    Examples
    --------
    >>> [tool.name for tool in toolbox()]
    ['machine_resources', 'disk_space']
    """
    return rb.Toolbox([disks_tool(rows), runbook(rows, seconds)])


def run(rows: Any = None, *, history: str | Path | None = None) -> rb.Envelope:
    """Run the runbook on this machine, or over what was measured elsewhere.

    Raises
    ------
    LoadError
        The mounts cannot be listed here, or the history cannot be read.
    RunbookError
        There is nothing to judge (``absent``).

    Examples
    --------
    >>> answer = run([{"resource": "/ space", "kind": "space", "free_percent": 2.5}])
    >>> answer.why("/ space").sentence
    'critical by rule 3 ... and free_percent 2.5 < 3 %'
    """
    return answer_of(toolbox(rows), NAME, {"history": None if history is None else str(history)})
