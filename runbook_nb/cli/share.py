"""The command that makes notebooks safe to hand on.

Command line layer. Everything a command needs beyond its options is imported when it runs.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from runbook_nb._text import visible_json
from runbook_nb.cli.files import say_written
from runbook_nb.cli.main import ANSWERED, DIFFERENT, one_line
from runbook_nb.errors import DefinitionError

#: Rows of each list that the report shows.
MAX_ROWS = 1_000


def share(
    file: Annotated[Path, typer.Argument(help="A notebook (.ipynb). It is not run.")],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            dir_okay=False,
            help="Where to write it; by default beside it, as NAME.shared.ipynb.",
        ),
    ] = None,
    redact: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="A name whose values are hidden; may be repeated."),
    ] = None,
    value_from_env: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="An environment variable that holds a secret to be hidden; may be repeated.",
        ),
    ] = None,
    keep_widgets: Annotated[
        bool, typer.Option("--keep-widgets", help="Keep widgets whose saved state is complete.")
    ] = False,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Let --out be the notebook itself, overwriting it.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit 1 where something has to go.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write the report as JSON to standard output.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> int:
    """Write a notebook so that it can be handed on, and say what that took.

    Widgets fall back to their static views; timing, folders and secrets are taken out of
    everything that can be looked into; what cannot is said. Answers in it stay readable. The
    report goes to the standard error stream. Nothing in the notebook is run.

    Exit status: 0 it is written, or with --check nothing would have to go; 1 with --check something
    would; 2 wrong usage, also where FILE itself would be overwritten; 3 it cannot be read.
    """
    from runbook_nb.settings import settings
    from runbook_nb.share.sharing import share_notebook

    values = [_value_of(name) for name in value_from_env or ()]
    try:
        shared = share_notebook(
            file,
            out,
            redact={"keys": redact or []},
            values=values,
            keep_widgets=keep_widgets,
            dry=check,
            in_place=in_place,
        )
    except DefinitionError as error:
        if error.code != "would_overwrite":
            raise
        raise typer.BadParameter(one_line(error), param_hint="--out") from None
    with settings(max_text_rows=MAX_ROWS):
        print(str(shared), file=sys.stderr)
    if as_json:
        import json

        print(visible_json(json.dumps(shared.to_dict(), ensure_ascii=False, indent=1)))
    if shared.written is not None:
        say_written(shared.written, sys.stderr)
    return ANSWERED if shared.clean or not check else DIFFERENT


def _value_of(name: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        raise typer.BadParameter(
            f"the environment variable {name!r} is not set, or is empty",
            param_hint="--value-from-env",
        )
    return value
