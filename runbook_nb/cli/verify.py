"""The command that checks answers in files.

Command line layer. Everything the command needs beyond its options is imported when it runs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runbook_nb.cli.main import ANSWERED, CONTRADICTED, NO_ANSWER, NOT_CARRIED, one_line, say_error
from runbook_nb.errors import LoadError

if TYPE_CHECKING:
    from runbook_nb.runbook.claims import Claim
    from runbook_nb.runbook.verify import Verification


def verify(  # noqa: PLR0917 - options of a command
    files: Annotated[
        list[Path], typer.Argument(help="Notebooks (.ipynb), pages (.html), envelopes (.json).")
    ],
    rules: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Rules you have from elsewhere (.yaml, .json)."),
    ] = None,
    recording: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A recording of the run you have from elsewhere."),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="List the confirmed claims, too, not only their number.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> int:
    """Check every claim of the answers in files. Nothing in a file is run.

    What can be worked out anew from what a file carries is: counters, table, ledger, verdicts,
    meanings, digests, and what is shown of them. Exit status: 0 nothing is contradicted; 1 a claim
    is contradicted; 3 a file cannot be read; 4 a file carries no answer. Of several, 1 comes
    before 3, and 3 before 4.
    """
    from runbook_nb.rules import RuleSet
    from runbook_nb.share.verify import verify_file

    given = [RuleSet.load(path) for path in rules or ()]
    told: list[dict[str, Any]] = []
    statuses = set()
    for file in files:
        try:
            found = verify_file(file, rules=given, recording=recording)
        except LoadError as error:
            if debug:
                raise
            say_error(one_line(error))
            statuses.add(NO_ANSWER)
            told.append({"file": str(file), "status": "unreadable", "message": one_line(error)})
            continue
        status = _status(found)
        statuses.add(status)
        if as_json:
            told.append(_as_json(file, found))
        else:
            _print(file, found, every=every)
    if as_json:
        print(json.dumps(told, indent=1, ensure_ascii=False))
    return next(
        (one for one in (CONTRADICTED, NO_ANSWER, NOT_CARRIED) if one in statuses), ANSWERED
    )


def _status(found: Sequence[Verification]) -> int:
    if not found:
        return NOT_CARRIED
    return ANSWERED if all(one.ok for one in found) else CONTRADICTED


def _as_json(file: Path, found: Sequence[Verification]) -> dict[str, Any]:
    words = {ANSWERED: "not contradicted", CONTRADICTED: "contradicted", NOT_CARRIED: "not carried"}
    return {
        "file": str(file),
        "status": words[_status(found)],
        "answers": [one.to_dict() for one in found],
    }


def _print(file: Path, found: Sequence[Verification], *, every: bool) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=False)
    if not found:
        console.print(Text(f"{file}: not carried, the file holds no answer that can be checked"))
        return
    for one in found:
        console.print(Text(f"{file}: {one.name}"))
        console.print(Text(one.sentence, style="bold"))
        shown = [claim for claim in one if every or claim.status != "confirmed"]
        if not shown:
            continue
        table = Table(box=None, pad_edge=False, show_header=False)
        for claim in shown:
            table.add_row(*(Text(cell, style=_style(claim)) for cell in _cells(claim)))
        console.print(table)


def _style(claim: Claim) -> str:
    return {"contradicted": "bold red", "confirmed": "green"}.get(claim.status, "dim")


def _cells(claim: Claim) -> tuple[str, str, str]:
    from runbook_nb._text import visible

    said = {
        "confirmed": f"by {claim.basis}",
        "contradicted": f"{claim.difference}, by {claim.basis}",
    }.get(claim.status, f"because {claim.because}")
    return claim.status, visible(claim.id), visible(said)
