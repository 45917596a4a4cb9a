"""Commands on files that hold answers or documents.

Command line layer. Everything a command needs beyond its options is imported when it runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TextIO

import typer

from runbook_nb._text import listed, visible, visible_json
from runbook_nb.cli.main import ANSWERED, DIFFERENT, say_error
from runbook_nb.errors import RunbookError

if TYPE_CHECKING:
    from runbook_nb import Envelope


class Form(StrEnum):
    """What an answer can be shown as."""

    TEXT = "text"
    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"


#: Options that several commands have.
AS_JSON = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DEBUG = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
WHICH = Annotated[
    int | None, typer.Option(metavar="N", help="Of several answers the one to take, from 0.")
]
ANSWER_FILE = Annotated[
    Path, typer.Argument(help="A notebook (.ipynb), page (.html) or envelope (.json).")
]


def render(
    file: ANSWER_FILE,
    to: Annotated[Form, typer.Option("--to", help="What to show it as.")] = Form.TEXT,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Where to write it.")
    ] = None,
    which: WHICH = None,
    debug: DEBUG = False,
) -> None:
    """Show an answer that a file holds. Nothing in the file is run.

    Exit status: 0 it is shown; 3 the file cannot be read, or carries no answer.
    """
    from runbook_nb._files import write_whole
    from runbook_nb.share.hydrate import read_envelope

    text = shown(read_envelope(file, which=which), to)
    if out is None:
        print(visible_json(text) if to is Form.JSON else text)
    else:
        say_written(write_whole(out, text))


def shown(envelope: Envelope, form: Form) -> str:
    """Give an answer in a form, as the standard output stream carries it."""
    if form is Form.JSON:
        return envelope.to_json(dossier=True, indent=1)
    if form is Form.MARKDOWN:
        return envelope.to_markdown()
    if form is Form.HTML:
        from runbook_nb.share.report import report_html

        return report_html(envelope)
    return str(envelope)


def checked_outputs(paths: Iterable[Path]) -> list[Path]:
    """Refuse, before anything runs, a file whose name does not say what to write."""
    targets = list(paths)
    for path in targets:
        if path.suffix.lower() not in _WRITERS:
            raise typer.BadParameter(
                f"{path.name!r} does not say what to write; end it in {listed(_WRITERS, 'or')}",
                param_hint="--out",
            )
    return targets


def write_answer(envelope: Envelope, path: Path) -> Path:
    """Write an answer as what the name of the file says, making its folder."""
    return placed(path, lambda: _WRITERS[path.suffix.lower()](envelope, path))


def placed(path: Path, write: Callable[[], Path]) -> Path:
    """Write a file, making its folder."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return write()
    except OSError as error:  # which may name a file of ours, and not the one that was asked for
        raise RunbookError(
            f"{os.fspath(path)!r} cannot be written: {error.strerror or error}",
            code="cannot_write",
            where=str(path),
            fix="see that the folder is there, may be written to and has room",
        ) from error


def _write_json(envelope: Envelope, path: Path) -> Path:
    from runbook_nb._files import write_whole

    return write_whole(path, shown(envelope, Form.JSON))


def _write_markdown(envelope: Envelope, path: Path) -> Path:
    from runbook_nb._files import write_whole

    return write_whole(path, envelope.to_markdown())


def _write_csv(envelope: Envelope, path: Path) -> Path:
    from runbook_nb._files import write_whole
    from runbook_nb._text import counted
    from runbook_nb.share.spreadsheet import sheet_of

    sheet = sheet_of(envelope)
    written = write_whole(path, sheet.text)
    if sheet.rows < sheet.total:  # a table of values has no place to say so
        say_error(f"{path.name} holds {sheet.rows} of {counted(sheet.total, 'row')}")
    if sheet.guarded:
        texts = counted(sheet.guarded, "text")
        say_error(f"{path.name}: {texts} like a formula written behind an apostrophe")
    return written


_WRITERS: Final[Mapping[str, Callable[[Envelope, Path], Path]]] = {
    ".json": _write_json,
    ".md": _write_markdown,
    ".html": lambda envelope, path: envelope.to_html(path),
    ".ipynb": lambda envelope, path: envelope.to_notebook(path),
    ".csv": _write_csv,
}


def notebooks(
    files: Annotated[list[Path], typer.Argument(help="Notebooks (.ipynb).")],
    accept: Annotated[
        bool, typer.Option("--accept", help="Take outputs that say something else than before.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option("--check/--execute", help="Only say what would change, or write it."),
    ] = False,
    debug: DEBUG = False,
) -> int:
    """Run notebooks anew, and write them without what differs from run to run.

    The clock, ids and layout stand still. A cell whose source is as it was must show what it
    showed; otherwise the notebook is left as it is.

    Exit status: 0 all are as they should be; 1 one is left as it is, or with --check would change;
    3 one cannot be read, or a cell of it failed.
    """
    from runbook_nb.testing.notebooks import refresh

    status = ANSWERED
    for file in files:
        done = refresh(file, accept=accept, save=not check)
        name = visible(str(file))
        if not done.changed:
            print(f"{name}: as it was")
        elif done.saved:
            print(f"{name}: written")
        else:
            status = DIFFERENT
            print(f"{name}: not written, it would change")
        for difference in done.differences:
            print("\n".join(map(visible, difference.split("\n"))))
    return status


def say_written(path: Path, stream: TextIO | None = None) -> None:
    """Say that a file was written, and how large it is."""
    print(f"wrote {visible(os.fspath(path))} ({path.stat().st_size / 1000:.0f} kB)", file=stream)
