"""Where the command line finds runbooks: by the name they are installed under, or by their module.

Command line layer. ``package.module:name`` is imported with the present folder first on the path,
as ``python -m`` has it. What stands there is a toolbox, a function without arguments that makes
one, or a tool.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Final

from runbook_nb._frozen import Immutable
from runbook_nb._text import did_you_mean, listed
from runbook_nb._value import frozen
from runbook_nb.errors import DefinitionError, LoadError, RunbookError
from runbook_nb.examples import GROUP, shipped
from runbook_nb.tools.tool import Tool
from runbook_nb.tools.toolbox import Toolbox

#: How a runbook is named that is not installed under a name.
FORM: Final = "package.module:name"


@frozen
class Book(Immutable):
    """A place where a runbook is said to be.

    Attributes
    ----------
    name : str
        What it is asked for by.
    place : str
        The module and the name in it.
    package : str
        Who says so; empty for what was named by its module.
    """

    name: str
    place: str
    package: str


def installed_books() -> list[Book]:
    """List what is installed: what comes with the package, then what others add to the group.

    A name that stands twice is listed twice, and cannot be asked for by that name alone.

    Examples
    --------
    >>> installed_books()[0].place
    'runbook_nb.examples.certificates:toolbox'
    """
    own = [
        Book(name=book.name, place=f"{book.module}:toolbox", package="runbook-nb")
        for book in shipped()
    ]
    others = {
        (point.name, point.value): Book(
            name=point.name,
            place=point.value,
            package="" if point.dist is None else str(point.dist.metadata["Name"]),
        )
        for point in entry_points(group=GROUP)
    }
    for book in own:
        others.pop((book.name, book.place), None)
    return own + [others[key] for key in sorted(others)]


def find_book(name: str) -> Book:
    """Find a runbook by its installed name, or by where it is.

    Parameters
    ----------
    name : str
        As ``list`` shows it, or ``package.module:name``.

    Raises
    ------
    DefinitionError
        ``unknown_runbook`` or ``several_runbooks``.

    Examples
    --------
    >>> find_book("certificates").place
    'runbook_nb.examples.certificates:toolbox'
    >>> find_book("certificate")
    Traceback (most recent call last):
        ...
    runbook_nb.errors.DefinitionError: no runbook is installed under the name 'certificate'; \
did you mean 'certificates'?
    """
    if ":" in name:
        return Book(name=name, place=name, package="")
    books = installed_books()
    found = [book for book in books if book.name == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise DefinitionError(
            f"{name!r} is the name of {len(found)} installed runbooks",
            where="NAME",
            code="several_runbooks",
            fix=f"name one by its module: {listed([book.place for book in found])}",
        )
    near = did_you_mean(name, [book.name for book in books])
    raise DefinitionError(
        f"no runbook is installed under the name {name!r}",
        where="NAME",
        code="unknown_runbook",
        fix=near or f"write it as {FORM}, or see the list command",
    )


def open_book(book: Book) -> Toolbox:
    """Import what a book names, and give its toolbox.

    Raises
    ------
    LoadError
        It cannot be imported, with the reason.
    DefinitionError
        What stands there is neither a toolbox nor gives one.

    Examples
    --------
    >>> [tool.name for tool in open_book(find_book("certificates"))]
    ['certificate_bundle', 'root_certificates']
    """
    return _toolbox(_imported(book), book)


def _imported(book: Book) -> Any:
    module, _, path = book.place.partition(":")
    path = path.partition("[")[0].strip()  # the extras of an entry point
    if not path or not all(part.isidentifier() for part in (*module.split("."), *path.split("."))):
        raise DefinitionError(
            f"{book.place!r} names no runbook",
            where="NAME",
            code="unknown_runbook",
            fix=f"write it as {FORM}",
        )
    if "" not in sys.path:  # a file beside the caller is as good as an installed one
        sys.path.insert(0, "")
    try:
        value: Any = import_module(module)
    except RunbookError:
        raise  # the module was found and says itself what is wrong with it
    except (Exception, SystemExit) as error:  # a script that leaves has given nothing
        raise LoadError(
            f"{module!r} cannot be imported: {_words(error)}",
            code="not_imported",
            where=book.name,
        ) from error
    for part in path.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            near = did_you_mean(part, [name for name in vars(value) if not name.startswith("_")])
            raise LoadError(
                f"{module!r} has nothing called {part!r}",
                code="not_imported",
                where=book.name,
                fix=near,
            ) from None
    return value


def _toolbox(given: Any, book: Book) -> Toolbox:
    value = given
    if not isinstance(value, (Toolbox, Tool)) and callable(value):
        value = _made(value, book)
    if isinstance(value, Toolbox):
        return value
    if isinstance(value, Tool):
        return _alone(value, book)
    said = "is" if value is given else "gave"
    raise DefinitionError(
        f"{book.place!r} {said} {type(value).__name__}",
        where=book.name,
        code="no_toolbox",
        fix="name a Toolbox, a function without arguments that makes one, or a tool; "
        "@rb.tool above a function makes it one",
    )


def _alone(tool: Tool, book: Book) -> Toolbox:
    try:
        return Toolbox([tool])
    except DefinitionError as error:
        raise DefinitionError(
            f"{book.place!r} cannot be called alone: {error.message}",
            where=book.name,
            code=error.code,
            fix="name the toolbox that holds it with what it is composed of",
            problems=error.problems,
        ) from None


def _made(make: Any, book: Book) -> Any:
    try:
        return make()
    except RunbookError:
        raise
    except (Exception, SystemExit) as error:
        raise LoadError(
            f"{book.place!r} made no toolbox: {_words(error)}",
            code="no_toolbox",
            where=book.name,
            fix="it is called without arguments",
        ) from error


def _words(error: BaseException) -> str:
    return ": ".join(filter(None, (type(error).__name__, str(error))))


def runbooks_in(box: Toolbox) -> Iterator[Tool]:
    """Give the runbooks of a toolbox, without the tools they are composed of."""
    return (tool for tool in box if "runbook" in tool.carried)


def callable_in(box: Toolbox) -> list[Tool]:
    """Give what is meant by a toolbox: its runbooks, or all of its tools where it has none."""
    return list(runbooks_in(box)) or list(box)


def runbook_of(box: Toolbox, name: str | None, book: Book) -> Tool:
    """Choose the runbook of a toolbox; where there is none, the only tool.

    Parameters
    ----------
    box : Toolbox
    name : str or None
        Its name; None takes the only one there is.
    book : Book
        Where the toolbox is from.

    Raises
    ------
    DefinitionError
        ``unknown_tool`` or ``several_runbooks``.
    """
    if name is not None:
        if name in box:
            return box[name]
        known = [tool.name for tool in box]
        raise DefinitionError(
            f"{book.name!r} has no tool {name!r}",
            where="--tool",
            code="unknown_tool",
            fix=did_you_mean(name, known) or f"it has {listed(known) if known else 'none'}",
        )
    found = callable_in(box)
    if len(found) == 1:
        return found[0]
    kind = "runbooks" if "runbook" in (found[0].carried if found else ()) else "tools"
    raise DefinitionError(
        f"{book.name!r} holds {len(found) or 'no'} {kind}",
        where=book.name,
        code="several_runbooks" if found else "unknown_tool",
        fix=f"say which: --tool {found[0].name}; it has {listed([tool.name for tool in found])}"
        if found
        else None,
    )
