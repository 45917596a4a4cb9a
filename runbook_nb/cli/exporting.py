"""The command that writes what a file holds as other files.

Command line layer. Everything it needs beyond its options is imported when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from runbook_nb.cli.files import (
    DEBUG,
    WHICH,
    checked_outputs,
    say_written,
    write_answer,
)
from runbook_nb.cli.main import ANSWERED
from runbook_nb.cli.playbooks import PlaybookForm, export_playbook


def export(
    file: Annotated[
        Path,
        typer.Argument(
            help="A notebook (.ipynb), page (.html) or envelope (.json); with --to a playbook."
        ),
    ],
    *,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="What to write: .json (with the evidence), .md, .html, .ipynb or .csv; with --to "
            "any name; repeatable.",
        ),
    ] = None,
    to: Annotated[
        PlaybookForm | None,
        typer.Option("--to", help="The form to write a playbook in, shown where no FILE is named."),
    ] = None,
    created_by: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Of a CACAO document, the identity of who publishes it."),
    ] = None,
    lossy: Annotated[
        bool, typer.Option("--lossy", help="Read a CACAO document with loops, each gone once.")
    ] = False,
    which: WHICH = None,
    debug: DEBUG = False,
) -> int:
    """Write an answer, or a playbook, that a file holds as other files. Nothing in it is run.

    A playbook is read from its own format or from CACAO, and what is lost is said.

    Exit status: 0 all is written; 3 the file cannot be read, carries no answer or holds no
    playbook, or a file cannot be written.
    """
    from runbook_nb.share.hydrate import read_envelope

    if to is not None:
        return export_playbook(file, to, out or (), created_by, lossy=lossy)
    if not out:
        raise typer.BadParameter(
            "name what to write an answer as; or, of a playbook, its form by --to",
            param_hint="--out",
        )
    targets = checked_outputs(out)
    envelope = read_envelope(file, which=which)
    for path in targets:
        say_written(write_answer(envelope, path))
    return ANSWERED
