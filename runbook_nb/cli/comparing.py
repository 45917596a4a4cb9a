"""The command that compares two answers, or two rule sets.

Command line layer.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from runbook_nb.cli.files import AS_JSON, DEBUG
from runbook_nb.cli.main import ANSWERED, DIFFERENT

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
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 1 if a verdict or a rule differs.")
    ] = False,
    debug: DEBUG = False,
) -> int:
    """Compare two answers, two rule sets, or an answer with itself under other rules.

    No source is called: what is judged again is judged on the values it was judged on.
    """
    compared, differs = _compared(before, after)
    form = ComparedForm.JSON if as_json else to
    if form is ComparedForm.JSON:
        print(compared.to_json(indent=1))
    elif form is ComparedForm.MARKDOWN:
        print(compared.to_markdown())
    else:
        print(compared)
    return DIFFERENT if exit_code and differs else ANSWERED


def _compared(before: Path, after: Path) -> tuple[Any, bool]:
    from runbook_nb.rules import RuleSet
    from runbook_nb.rules.changes import differing
    from runbook_nb.share.hydrate import read_envelope

    old, new = (path.suffix.lower() in RULE_FILES for path in (before, after))
    if old and new:
        revision = RuleSet.load(before).compare(RuleSet.load(after))
        return revision, bool(revision.differing)
    if old:
        raise typer.BadParameter(
            "rules come after the answer they judge again", param_hint="BEFORE"
        )
    answer = read_envelope(before)
    other: Any = answer.rejudge(RuleSet.load(after)) if new else read_envelope(after)
    comparison = answer.compare(other)
    moved = comparison.changed or comparison.appeared or comparison.gone
    return comparison, bool(moved or comparison.not_compared or differing(comparison.rule_changes))
