"""The command that compares two answers, or two rule sets.

Command line layer.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from runbook_nb._text import visible_json
from runbook_nb.cli.files import AS_JSON, DEBUG
from runbook_nb.cli.main import ANSWERED, DIFFERENT
from runbook_nb.errors import LoadError

if TYPE_CHECKING:
    from runbook_nb import Envelope

#: What rule sets are written in.
RULE_FILES: Final = (".yaml", ".yml")


class ComparedForm(StrEnum):
    """What a comparison can be shown as."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


def compare(
    before: Annotated[
        Path, typer.Argument(help="An answer (.ipynb, .html, .json), or rules (.yaml).")
    ],
    after: Annotated[
        Path, typer.Argument(help="The later one; rules after an answer judge it again.")
    ],
    *,
    to: Annotated[
        ComparedForm, typer.Option("--to", help="What to show it as.")
    ] = ComparedForm.TEXT,
    as_json: AS_JSON = False,
    which: Annotated[
        int | None,
        typer.Option(metavar="N", help="Of several answers in BEFORE the one to take, from 0."),
    ] = None,
    which_after: Annotated[
        int | None,
        typer.Option(metavar="N", help="Of several answers in AFTER the one to take, from 0."),
    ] = None,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 1 if a verdict or a rule differs.")
    ] = False,
    debug: DEBUG = False,
) -> int:
    """Compare two answers, two rule sets, or an answer with itself under other rules.

    No source is called: what is judged again is judged on the values it was judged on.

    Exit status: 0 compared; 1 something differs, where --exit-code asks for that; 3 a file cannot
    be read, or carries no answer.
    """
    compared, differs = _compared(before, after, which, which_after)
    form = ComparedForm.JSON if as_json else to
    if form is ComparedForm.JSON:
        print(visible_json(compared.to_json(indent=1)))
    elif form is ComparedForm.MARKDOWN:
        print(compared.to_markdown())
    else:
        print(compared)
    return DIFFERENT if exit_code and differs else ANSWERED


def _compared(
    before: Path, after: Path, which: int | None, which_after: int | None
) -> tuple[Any, bool]:
    from runbook_nb.rules import RuleSet
    from runbook_nb.rules.changes import differing

    old, new = (path.suffix.lower() in RULE_FILES for path in (before, after))
    for rules, chosen, option in ((old, which, "--which"), (new, which_after, "--which-after")):
        if rules and chosen is not None:
            raise typer.BadParameter("rules hold no answers to choose of", param_hint=option)
    if old and new:
        revision = RuleSet.load(before).compare(RuleSet.load(after))
        return revision, bool(revision.differing)
    if old:
        raise typer.BadParameter(
            "rules come after the answer they judge again", param_hint="BEFORE"
        )
    answer = _read(before, which, "which=")
    other: Any = (
        answer.rejudge(RuleSet.load(after)) if new else _read(after, which_after, "which_after=")
    )
    comparison = answer.compare(other)
    moved = comparison.changed or comparison.appeared or comparison.gone
    return comparison, bool(moved or comparison.not_compared or differing(comparison.rule_changes))


def _read(file: Path, which: int | None, option: str) -> Envelope:
    """Read the answer of one side, for which an option of its own says which of several."""
    from runbook_nb.share.hydrate import read_envelope

    try:
        return read_envelope(file, which=which)
    except LoadError as error:
        error.fix = error.fix and error.fix.replace("which=", option)
        raise
