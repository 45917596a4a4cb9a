"""The commands themselves.

Command line layer. Everything a command needs beyond its options is imported when it runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from runbook_nb._version import __version__
from runbook_nb.cli.books import list_books, run
from runbook_nb.cli.checking import check
from runbook_nb.cli.comparing import compare
from runbook_nb.cli.exporting import export
from runbook_nb.cli.files import notebooks, render, say_written
from runbook_nb.cli.main import (
    ANSWERED,
    INTERRUPTED,
    NO_ANSWER,
    PROGRAM,
    USAGE,
    one_line,
    say_error,
)
from runbook_nb.cli.share import share
from runbook_nb.cli.verify import verify
from runbook_nb.errors import DefinitionError

if TYPE_CHECKING:
    from runbook_nb import Toolbox

#: What wrong usage raises. Typer has it from one package or another, and names its child only.
_USAGE_ERROR: Final = cast(
    "type[typer.BadParameter]",
    next(cls for cls in typer.BadParameter.__mro__ if cls.__name__ == "UsageError"),
)

#: Where the demonstration writes unless told otherwise.
DEMO_FOLDER: Final = Path("runbook-nb-demo")

app = typer.Typer(
    name=PROGRAM,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Triage runbooks whose answers can be checked.",
    epilog="Exit status: 0 as it should be; 1 what was asked for does not hold, as each command "
    "says; 2 wrong usage, nothing has run; 3 no answer, because the run failed or there was "
    "nothing to judge; 4 a file carries no answer to be checked.",
)


def invoke(arguments: Sequence[str]) -> int:
    """Run a command with the arguments given, and give its exit status."""
    command = typer.main.get_command(app)
    try:
        status = command.main(list(arguments), prog_name=PROGRAM, standalone_mode=False)
    except _USAGE_ERROR as error:
        words = " ".join(error.format_message().split()).rstrip(".")
        say_error(f"{words}; see {PROGRAM} --help")
        return USAGE
    if status == INTERRUPTED:  # typer's silent translation of an interrupt
        raise KeyboardInterrupt
    return status if isinstance(status, int) else ANSWERED


def _say_version(asked: bool) -> None:
    if asked:
        print(f"{PROGRAM} {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Show the help when no command is named."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def _read_as_of(text: str | None) -> date | None:
    from runbook_nb.examples.procedure import read_date

    if text is None:
        return None
    try:
        return read_date(text)
    except DefinitionError as error:
        raise typer.BadParameter(one_line(error), param_hint="--as-of") from None


def demo(
    as_of: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="The date to judge at, as 2026-11-29; today by default."),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", file_okay=False, help="The folder to write to.")
    ] = DEMO_FOLDER,
    bundle: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A PEM file; that of the installed certifi by default."),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Judge the root certificates of this machine, and show the answer with its evidence.

    Writes the answer as envelope.json (with the evidence behind it), certificates.md (for a
    ticket), certificates.html (a page) and certificates.ipynb (a notebook). The same date and the
    same bundle give the same bytes.

    Exit status: 0 the answer is written; 3 the bundle cannot be read, or holds no certificates.
    """
    from runbook_nb import Envelope, settings
    from runbook_nb._files import write_whole
    from runbook_nb._ids import SeededIds
    from runbook_nb.coverage.views import absence_view
    from runbook_nb.examples import certificates

    day = _read_as_of(as_of) or settings.clock().date()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(
            f"the folder {str(out)!r} cannot be made: {error.strerror}", param_hint="--out"
        ) from None
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    with settings(clock=lambda: midnight, ids=SeededIds(f"demo {day}")):
        answer = _call(certificates.toolbox(bundle), certificates.NAME, day)
        if not isinstance(answer, Envelope):
            say_error(absence_view(answer, certificates.NAME).headline)
            raise typer.Exit(NO_ANSWER)
        written = [
            write_whole(out / "envelope.json", answer.to_json(dossier=True, indent=1)),
            write_whole(out / "certificates.md", answer.to_markdown()),
            answer.to_html(out / "certificates.html"),
            answer.to_notebook(out / "certificates.ipynb"),
        ]
        print(f"{answer}\n")
        with settings(max_text_rows=20):  # every rule that was tried
            print(f"{answer.why(row=0)}\n")
    for path in written:
        say_written(path)


def _call(box: Toolbox, name: str, day: date) -> Any:
    try:
        return box.call_sync(name, {"as_of": day.isoformat()})
    except Exception as error:
        run = getattr(error, "run", None)
        if run is not None:  # how far it came is worth more than nothing
            print(str(run))
        raise


def _help_of(command: Callable[..., Any]) -> str:
    """Give what a command says of itself, each paragraph a line of its own, to be broken anew."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


app.command("demo", help=_help_of(demo))(demo)
app.command("list", help=_help_of(list_books))(list_books)
for command in (run, render, export, share, compare, check, verify, notebooks):
    app.command(help=_help_of(command))(command)
