"""What is wrong with the text of a playbook: a code, a place, a line, what to write instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from runbook_nb._parsed import Parsed
from runbook_nb._text import clip, visible
from runbook_nb._value import frozen
from runbook_nb.errors import PlaybookLoadError, Problem


class PlaybookWarning(UserWarning):
    """A playbook was read, and something in it was passed over."""


@frozen
class FileProblem(Problem):
    """One thing that is wrong with what a playbook was to be read from.

    Attributes
    ----------
    message, where, fix : str
        What is wrong, the place (``steps[0].expected_tools``), and what to write instead.
    code : str
        A stable word: ``unknown_key``, ``step_missing_field``, ``duplicate_step_id``, …
    line, column : int or None
        Where that stands in the text, counted from 1.

    Examples
    --------
    >>> print(FileProblem(code="empty_id", message="is empty", where="steps[0].id", line=4))
    line 4, steps[0].id: is empty
    """

    code: str = "invalid"
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        parts = [f"line {self.line}"] if self.line else []
        if self.column:
            parts.append(f"column {self.column}")
        place = ", ".join([*parts, *([self.where] if self.where else [])])
        text = f"{place}: {self.message}" if place else self.message
        return visible(f"{text}; {self.fix}" if self.fix else text)


class Findings:
    """Collects problems, so that all are told together and each place is told once."""

    def __init__(self, parsed: Parsed | None = None) -> None:
        self.problems: list[FileProblem] = []
        self._parsed = parsed or Parsed()
        self._places: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self.problems)

    def add(self, code: str, where: str, message: str, fix: str | None = None) -> None:
        """Note what is wrong at a place, unless it, or what it is in, is known to be wrong."""
        around = (where[:end] for end, mark in enumerate(where) if mark in ".[" and end)
        if where in self._places or not self._places.isdisjoint(around):
            return
        self._places.add(where)
        line, column = self._parsed.line_of(where), self._parsed.column_of(where)
        problem = FileProblem(
            code=code, where=where or None, message=message, fix=fix, line=line, column=column
        )
        self.problems.append(problem)


def refused(
    message: str,
    code: str,
    *,
    path: Any = None,
    name: str | None = None,
    fix: str | None = None,
    problems: Sequence[FileProblem] = (),
) -> PlaybookLoadError:
    """Make the error that tells why a playbook was not read.

    Examples
    --------
    >>> error = refused("there is no file 'ir.yaml'", "not_found", path="ir.yaml")
    >>> error.code, error.path, error.errors
    ('not_found', 'ir.yaml', [])
    """
    return PlaybookLoadError(
        message,
        path=path,
        errors=[str(problem) for problem in problems],
        code=code,
        where=name,
        fix=fix,
        problems=problems,
    )


def told(value: Any) -> str:
    """Write a key or an id for a message.

    Examples
    --------
    >>> told("contain"), told(3)
    ("'contain'", '3')
    """
    return visible(clip(repr(value), 60))


def place_of(loc: Iterable[int | str]) -> str:
    """Write the place that a validator gives as keys and positions.

    Examples
    --------
    >>> place_of(("steps", 0, "required_probes", 1, "match"))
    'steps[0].required_probes[1].match'
    """
    place = ""
    for part in loc:
        shown = visible(clip(str(part), 60))
        place += f"[{part}]" if isinstance(part, int) else f".{shown}" if place else shown
    return place
