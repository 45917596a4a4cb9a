"""What the options of a hook may be, each refused with what to write instead.

Playbooks layer.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from runbook_nb._text import did_you_mean, listed
from runbook_nb.errors import PlaybookDefinitionError


def checked_word(name: str, word: Any, known: tuple[str, ...]) -> str:
    """Give an option's word back; refuse one that it does not know, with the near one.

    Raises
    ------
    PlaybookDefinitionError
        ``bad_<name>``.

    Examples
    --------
    >>> checked_word("scope", "thread", ("run", "thread"))
    'thread'
    """
    if word in known:
        return str(word)
    raise PlaybookDefinitionError(
        f"{name} cannot be {word!r}",
        code=f"bad_{name}",
        where=name,
        fix=did_you_mean(str(word), known) or f"use {listed(known, 'or')}",
    )


def checked_number(name: str, value: Any, least: int | None) -> int:
    """Give an option's number back; refuse what is no whole number, or too small.

    Raises
    ------
    PlaybookDefinitionError
        ``bad_number``.

    Examples
    --------
    >>> checked_number("max_runs", 8, 1)
    8
    """
    if isinstance(value, int) and not isinstance(value, bool) and (least is None or value >= least):
        return value
    raise PlaybookDefinitionError(
        f"{name} cannot be {value!r}",
        code="bad_number",
        where=name,
        fix="give a whole number" + ("" if least is None else f" of at least {least}"),
    )


def discard(answer: Any) -> None:
    """Let go of a coroutine that nobody will await."""
    with suppress(AttributeError):
        answer.close()
