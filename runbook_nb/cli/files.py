"""Commands on files that hold answers or documents.

Command line layer. Everything a command needs beyond its options is imported when it runs.
"""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runbook_nb.cli.main import ANSWERED, DIFFERENT

if TYPE_CHECKING:
    from runbook_nb import Envelope


class Form(StrEnum):
    """What an answer can be shown as."""

    TEXT = "text"
    MARKDOWN = "markdown"
    HTML = "html"


def render(
    file: Annotated[
        Path, typer.Argument(help="A notebook (.ipynb), page (.html) or envelope (.json).")
    ],
    to: Annotated[Form, typer.Option("--to", help="What to show it as.")] = Form.TEXT,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Where to write it.")
    ] = None,
    which: Annotated[
        int | None,
        typer.Option(metavar="N", help="Of several answers the one to show, from 0."),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Show an answer that a file holds. Nothing in the file is run."""
    from runbook_nb._files import write_whole
    from runbook_nb.share.hydrate import read_envelope

    text = _shown(read_envelope(file, which=which), to)
    if out is None:
        print(text)
    else:
        say_written(write_whole(out, text))


def _shown(envelope: Envelope, form: Form) -> str:
    if form is Form.MARKDOWN:
        return envelope.to_markdown()
    if form is Form.HTML:
        from runbook_nb.share.report import report_html

        return report_html(envelope)
    return str(envelope)


def notebooks(
    files: Annotated[list[Path], typer.Argument(help="Notebooks (.ipynb).")],
    accept: Annotated[
        bool, typer.Option("--accept", help="Take outputs that say something else than before.")
    ] = False,
    check: Annotated[bool, typer.Option("--check", help="Write nothing.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> int:
    """Run notebooks anew, and write them without what differs from run to run.

    The clock, ids and layout stand still. A cell whose source is as it was must show what it
    showed; otherwise the notebook is left as it is and the exit status is 1. With --check it is 1
    as well where the file would change.
    """
    from runbook_nb.testing.notebooks import refresh

    status = ANSWERED
    for file in files:
        done = refresh(file, accept=accept, save=not check)
        if not done.changed:
            print(f"{file}: as it was")
        elif done.saved:
            print(f"{file}: written")
        else:
            status = DIFFERENT
            print(f"{file}: not written, it would change")
        for difference in done.differences:
            print(difference)
    return status


def say_written(path: Path) -> None:
    """Say that a file was written, and how large it is."""
    print(f"wrote {os.fspath(path)} ({path.stat().st_size / 1000:.0f} kB)")
