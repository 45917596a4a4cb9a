"""What every magic does with its line: declare it, read it, look variables up."""

from __future__ import annotations

import re
import shlex
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from IPython.core import magic_arguments
from IPython.core.error import UsageError
from IPython.core.magic import Magics

from runbook_nb._text import did_you_mean
from runbook_nb.errors import DefinitionError
from runbook_nb.tools.tool import Tool
from runbook_nb.tools.written import read_value, split_argument

#: A value that stands for a variable; anything else in braces is JSON.
_VARIABLE: Final = re.compile(r"\{\s*([^\W\d]\w*)\s*\}")

_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])
argument: Any = magic_arguments.argument


def takes(*arguments: Callable[[_F], _F]) -> Callable[[_F], _F]:
    """Declare what the line of a magic has; its help says so."""

    def decorate(function: _F) -> _F:
        for argument in reversed(arguments):
            function = argument(function)
        declare: Any = magic_arguments.magic_arguments
        declared: _F = declare()(function)
        return declared

    return decorate


class SessionMagics(Magics):
    """Magics that know the variables of their session."""

    @property
    def names(self) -> dict[str, Any]:
        """The variables of the session."""
        return {} if self.shell is None else self.shell.user_ns

    def kept(self, variable: str | None, value: _T) -> _T:
        """Keep a value in a variable, where one is named, and give it."""
        if variable is not None:
            self.names[variable] = value
        return value


def read_line(magic: Any, line: str) -> Namespace:
    """Read a line by the parser of its magic, with quotes as a shell has them."""
    try:
        words = shlex.split(line.strip().rstrip(";"))
    except ValueError as error:
        raise UsageError(f"{str(error)[:1].lower()}{str(error)[1:]}") from None
    found: Namespace = magic.parser.parse_args(words)
    return found


def checked_variable(name: str | None) -> str | None:
    """Refuse what no variable can be called."""
    from keyword import iskeyword

    if name is None or (name.isidentifier() and not iskeyword(name)):
        return name
    raise UsageError(f"--as {name}: a variable cannot be called that")


def argument_split(written: str) -> tuple[str, str]:
    """Take ``k=v`` apart."""
    try:
        return split_argument(written)
    except DefinitionError as error:
        raise UsageError(f"--arg {written}: {error.fix}") from None


def argument_of(tool: Tool, written: str, names: Mapping[str, Any]) -> tuple[str, Any]:
    """Read ``k=v``: a variable where one is named, else as the tool declares it."""
    name, text = argument_split(written)
    if _VARIABLE.fullmatch(text):
        return name, value_of(text, names)
    return name, read_value(tool, name, text)


def value_of(text: str, names: Mapping[str, Any]) -> Any:
    """Give the variable that a text in braces names, or the text as it is."""
    variable = _VARIABLE.fullmatch(text)
    return text if variable is None else looked_up(variable[1], names)


def looked_up(name: str, names: Mapping[str, Any]) -> Any:
    """Give a variable of the session."""
    if name in names:
        return names[name]
    near = did_you_mean(name, [one for one in names if not one.startswith("_")])
    raise DefinitionError(f"there is no variable {name!r}", where=name, fix=near)


def words_before(event: Any) -> list[str]:
    """Give the words of a magic's line that stand whole before the one being completed.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> words_before(SimpleNamespace(text_until_cursor="%step look --to"))
    ['look']
    """
    words: list[str] = event.text_until_cursor.split()
    if event.text_until_cursor[-1:].isspace():
        words.append("")
    return words[1:-1]
