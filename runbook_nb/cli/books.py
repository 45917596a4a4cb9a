"""Commands on runbooks: listing them, and running one.

Command line layer. The answer is on the standard output stream and nothing else is; progress and
what was written are said on the other. Everything a command needs beyond its options is imported
when it runs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from runbook_nb._arguments import misspelt_names
from runbook_nb._text import clip, show, visible_json
from runbook_nb.cli.files import AS_JSON, DEBUG, Form, say_written, shown, write_answer
from runbook_nb.cli.main import ANSWERED, DIFFERENT, NO_ANSWER, USAGE, one_line, say_error
from runbook_nb.errors import DefinitionError, ToolRefused

if TYPE_CHECKING:
    from runbook_nb import Envelope, Tool
    from runbook_nb._view import Card
    from runbook_nb.cli.finding import Book

#: The form of the list as JSON values.
LIST_FORMAT: Final = "runbook_nb/runbooks/1"


def list_books(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Installed names, or package.module:name."),
    ] = None,
    as_json: AS_JSON = False,
    debug: DEBUG = False,
) -> int:
    """List the runbooks there are; with names, what each of those asks for.

    What cannot be opened is listed with the reason.

    Exit status: 0 all can be opened; 2 nothing has a name that was given; 3 one cannot be opened.
    """
    from runbook_nb._display import through
    from runbook_nb.cli.finding import callable_in, find_book, installed_books, open_book

    try:
        books = [find_book(name) for name in names] if names else installed_books()
    except DefinitionError as error:
        raise typer.BadParameter(one_line(error), param_hint="NAME") from None
    found: list[tuple[Book, list[Tool], str | None]] = []
    for book in books:
        try:
            tools = callable_in(open_book(book))
            found.append((book, tools, None if tools else "it holds no tool"))
        except Exception as error:  # one that is broken hides none of the others
            found.append((book, [], one_line(error)))
    if as_json:
        told = {"format": LIST_FORMAT, "runbooks": [_told(*one) for one in found]}
        print(visible_json(json.dumps(told, ensure_ascii=False, indent=1)))
    elif names:
        cards = [str(tool) for _, tools, _ in found for tool in tools]
        print("\n\n".join(cards)) if cards else None
    else:
        print(through("text", _listing(found)))
    broken = [(book, reason) for book, _, reason in found if reason is not None]
    for book, reason in broken:
        say_error(f"{book.name}: {reason}")
    return NO_ANSWER if broken else ANSWERED


def _told(book: Book, tools: list[Tool], reason: str | None) -> dict[str, Any]:
    return {
        "name": book.name,
        "place": book.place,
        "package": book.package or None,
        "error": reason,
        "tools": [
            {"name": one.name, "description": one.description, "input_schema": one.input_schema}
            for one in tools
        ],
    }


def _listing(found: list[tuple[Book, list[Tool], str | None]]) -> Card:
    from runbook_nb._text import counted
    from runbook_nb._view import Card, Column, Data, Section, Table

    rows = tuple(
        (Data(value=book.name), Data(value=tool), Data(value=words), Data(value=book.package))
        for book, tools, reason in found
        for tool, words in (
            [(one.name, one.description) for one in tools]
            if reason is None
            else [("cannot be opened", reason)]
        )
    )
    heads = ("name", "tool", "what it is for", "from")
    table = Table(
        columns=tuple(Column(head=head) for head in heads), rows=rows, total=len(rows), whole=True
    )
    return Card(
        kind="Runbooks",
        name="",
        headline=counted(len(found), "installed name"),
        sections=(Section(label="", parts=(table,)),),
    )


def run(
    name: Annotated[
        str, typer.Argument(help="An installed name, as list shows it, or package.module:name.")
    ],
    *,
    arg: Annotated[
        list[str] | None,
        typer.Option(metavar="K=V", help="An argument: a text or JSON, as declared; repeatable."),
    ] = None,
    args: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Arguments as a JSON object; - reads standard input."),
    ] = None,
    tool: Annotated[
        str | None, typer.Option(metavar="TOOL", help="Which, where NAME holds several.")
    ] = None,
    to: Annotated[Form, typer.Option("--to", help="What to show it as.")] = Form.TEXT,
    as_json: AS_JSON = False,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="Also write it: .json (with the evidence), .md, .html, .ipynb, .csv; repeatable.",
        ),
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VERDICT", help="Exit with 1 if a row has it, or no row can; repeatable."
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    debug: DEBUG = False,
) -> int:
    """Run a runbook and show its answer.

    Arguments are checked against its declared inputs before anything runs. A run that fails or
    stops shows how far it came.

    Exit status: 0 there is an answer; 1 --fail-on met a verdict, or a word no row can have; 2 wrong
    usage or arguments, nothing has run; 3 the run failed, or there was nothing to judge.
    """
    from runbook_nb import Envelope
    from runbook_nb.cli.files import checked_outputs
    from runbook_nb.cli.finding import find_book, open_book, runbook_of
    from runbook_nb.settings import settings

    targets = checked_outputs(out or ())
    try:
        book = find_book(name)
        box = open_book(book)
        chosen = runbook_of(box, tool, book)
    except DefinitionError as error:
        raise typer.BadParameter(one_line(error), param_hint="NAME") from None
    given = _arguments(chosen, arg or (), args)
    with settings(progress="off" if quiet else settings.progress):
        answer = _answered(lambda: box.call_sync(chosen.name, given), name)
    if answer is None:
        return USAGE
    form = Form.JSON if as_json else to
    if not isinstance(answer, Envelope):
        needs = {"--out": targets, "--fail-on": fail_on, "--to": form in (Form.MARKDOWN, Form.HTML)}
        return _other(answer, form, chosen.name, [option for option, it in needs.items() if it])
    text = shown(answer, form)
    print(visible_json(text) if form is Form.JSON else text)
    for path in targets:
        say_written(write_answer(answer, path), sys.stderr)
    return _judged(answer, chosen, fail_on or ())


def _arguments(tool: Tool, written: list[str] | tuple[()], file: str | None) -> dict[str, Any]:
    from runbook_nb.tools.written import read_value, split_argument

    given: dict[str, Any] = {}
    if file is not None:
        try:
            text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
            read = json.loads(text, object_pairs_hook=_once_each)
        except (OSError, ValueError) as error:
            raise typer.BadParameter(one_line(error), param_hint="--args") from None
        if not isinstance(read, dict):
            raise typer.BadParameter("it holds no JSON object", param_hint="--args")
        given.update(read)
    seen = set()
    for each in written:
        try:
            name, text = split_argument(each)
        except DefinitionError as error:
            raise typer.BadParameter(one_line(error), param_hint="--arg") from None
        if name in seen:  # which of them was meant is not for us to say
            raise typer.BadParameter(
                f"{name!r} is given twice; several values are a list, as JSON", param_hint="--arg"
            )
        seen.add(name)
        given[name] = read_value(tool, name, text)
    # A schema may let any name stand; who writes one by hand meant the one beside it.
    for name, near in misspelt_names(tool.input_schema, given).items():
        raise typer.BadParameter(
            f"{tool.name!r} declares no input {name!r}; did you mean {near!r}?", param_hint="--arg"
        )
    return given


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object; refuse a key that is there twice, as nobody can say which was meant."""
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise ValueError(f"the key {clip(show(key), 60)!r} is there twice")
        made[key] = value
    return made


def _answered(call: Callable[[], Any], name: str) -> Any:
    """Call, and give the answer; None where the arguments were refused, which was said."""
    try:
        return call()
    except BaseException as error:
        partial = getattr(error, "run", None)
        if partial is not None:  # how far it came is worth more than nothing
            print(str(partial), file=sys.stderr)
        elif isinstance(error, ToolRefused) and error.code == "invalid_arguments":
            say_error(f"{one_line(error)}; see runbook-nb list {name}")
            return None
        raise


def _other(answer: Any, form: Form, name: str, needing: list[str]) -> int:
    """Show what is no envelope: an absence, or what a tool that is no runbook gives."""
    from runbook_nb._json import to_wire
    from runbook_nb.coverage import read_absence
    from runbook_nb.coverage.views import absence_view

    absence = read_absence(answer)
    if absence is None and needing:
        options = " and ".join(needing)
        say_error(f"{name!r} gave no answer of a runbook, so {options} has nothing to go by")
        return NO_ANSWER
    if form is Form.JSON or absence is None:
        print(visible_json(json.dumps(to_wire(answer), ensure_ascii=False, indent=1)))
    if absence is None:
        return ANSWERED
    say_error(absence_view(absence, "the run").headline)
    return NO_ANSWER


def _judged(answer: Envelope, tool: Tool, fail_on: list[str] | tuple[()]) -> int:
    """Say which rows must not be there; a word that no row can have asks for nothing."""
    from runbook_nb._text import did_you_mean, listed
    from runbook_nb.runbook.cards import verdict_order
    from runbook_nb.runbook.verdicts import DECLINED_VERDICT

    counts: Mapping[str, int] = answer.verdicts.counts()
    declared = getattr(tool.carried.get("runbook"), "verdicts", None)
    known = {DECLINED_VERDICT, *verdict_order(answer), *(declared.rank if declared else ())}
    status = ANSWERED
    for word in fail_on:
        if word not in known:
            fix = did_you_mean(word, known) or f"it knows {listed(sorted(known))}"
            say_error(f"no row can be {word!r} by what this runbook declares; {fix}")
        elif counts.get(word):
            say_error(f"{counts[word]} of {len(answer.verdicts)} rows: {word}")
        else:
            continue
        status = DIFFERENT
    return status
