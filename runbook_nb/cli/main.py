"""Where the ``runbook-nb`` command begins: what it exits with, and how it says what went wrong.

Command line layer. Exit statuses:

=  ==========================================================================
0  as it should be; of a run, an answer was given
1  what was asked for does not hold: a file is wrong, a document would change, a claim is
   contradicted, a verdict is there that must not be; each command says what it asks
2  the command was called in a way it does not know; nothing has run
3  there is no answer: the run failed, or there was nothing to judge
4  a file that was to be checked carries no answer
=  ==========================================================================

An error is one line on the standard error stream. ``--debug`` adds the traceback.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NoReturn

from runbook_nb._version import __version__

if TYPE_CHECKING:
    from io import TextIOWrapper

PROGRAM: Final = "runbook-nb"

ANSWERED: Final = 0
DIFFERENT: Final = 1
CONTRADICTED: Final = 1
USAGE: Final = 2
NO_ANSWER: Final = 3
NOT_CARRIED: Final = 4

#: An argument of Python, where a message says to give one.
_ARGUMENT: Final = re.compile(
    r"\b((?:give|say|pass) )(which|which_after|tools|skills|lossy|in_place)="
    r"(?:True\b)?"
)

#: Status of a command that was interrupted from the keyboard, as shells have it.
INTERRUPTED: Final = 130


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command, and leave with its exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the process by default.

    Examples
    --------
    >>> main(["--version"])
    Traceback (most recent call last):
      ...
    SystemExit: 0
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        _never_fail_on_a_character(stream)  # type: ignore[arg-type]
    if given == ["--version"]:  # worth no more than the interpreter's own start
        print(f"{PROGRAM} {__version__}")
        raise SystemExit(ANSWERED)
    debug = "--debug" in given
    try:
        from runbook_nb.cli.app import invoke

        status = invoke(given)
    except KeyboardInterrupt:
        if debug:
            raise
        say_error("interrupted")
        status = INTERRUPTED
    except Exception as error:
        if debug:
            raise
        say_error(one_line(error))
        status = NO_ANSWER
    raise SystemExit(status)


def say_error(message: str) -> None:
    """Write one line to the standard error stream, in the words of the command line."""
    from runbook_nb._text import visible

    print(f"{PROGRAM}: {visible(in_options(message))}", file=sys.stderr)


def in_options(words: str) -> str:
    """Write what an argument of Python is called as the option of that name.

    Examples
    --------
    >>> in_options("say which=, from 0")
    'say --which, from 0'
    """
    return _ARGUMENT.sub(lambda found: f"{found[1]}--{found[2].replace('_', '-')}", words)


def one_line(error: BaseException) -> str:
    r"""Give what an error says, on one line; an error without words gives its name.

    Examples
    --------
    >>> one_line(ValueError("two\nlines")), one_line(KeyError())
    ('ValueError: two lines', 'KeyError')
    """
    from runbook_nb._text import visible
    from runbook_nb.errors import RunbookError

    words = visible(" ".join(str(error).split()))
    if isinstance(error, RunbookError) and words:
        return words
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _never_fail_on_a_character(stream: TextIOWrapper) -> None:
    # A terminal that knows few characters shows the others as their numbers.
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
