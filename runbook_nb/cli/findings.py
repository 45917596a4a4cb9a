"""What the check command says of a file, as text and as JSON values.

Command line layer. What is told of one file is a list of findings; each has its text and the parts
that the text is made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from runbook_nb._frozen import Immutable
from runbook_nb._text import visible
from runbook_nb._value import frozen
from runbook_nb.errors import Problem, RunbookError

Line = TypeVar("Line")


@frozen
class Finding(Immutable):
    """One thing that is told of a file.

    Attributes
    ----------
    code : str
        A stable word for its kind.
    where : str or None
        The place in what the file holds: ``rules[1].then``.
    line, column : int or None
        Where that stands in the text, counted from 1.
    message : str
        What it is.
    fix : str or None
        What to write instead.
    text : str
        All of it in a sentence; made of the others where it is not given.
    """

    code: str
    message: str
    where: str | None = None
    line: int | None = None
    column: int | None = None
    fix: str | None = None
    text: str = ""

    def __str__(self) -> str:
        return self.text or str(Problem(message=self.message, where=self.where, fix=self.fix))

    def to_dict(self) -> dict[str, Any]:
        """Give its parts as JSON values."""
        return {
            "code": self.code,
            "where": self.where,
            "line": self.line,
            "column": self.column,
            "message": self.message,
            "fix": self.fix,
        }


@frozen
class Found(Immutable):
    """What came of looking at a file.

    Attributes
    ----------
    said : str
        What it holds.
    problems, warnings : tuple of Finding
        What is wrong with it, and what to look at again.
    not_checked : tuple of str
        What could not be judged for want of being told.
    text : str
        What is said of the problems together, where that is not a line for each.
    read : bool
        Whether there was anything to be read.
    """

    said: str
    problems: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    not_checked: tuple[str, ...] = ()
    text: str = ""
    read: bool = True

    def lines(self) -> Iterator[str]:
        """Yield what is told below what the file holds."""
        told = [self.text] if self.text else map(str, self.problems)
        unknown = [f"not checked: {one}" for one in self.not_checked]
        for words in (*told, *map(str, self.warnings), *unknown):
            yield from map(visible, words.split("\n"))

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON values."""
        told: dict[str, Any] = {
            "holds": self.said,
            "problems": [one.to_dict() for one in self.problems],
        }
        if self.warnings:
            told["warnings"] = [one.to_dict() for one in self.warnings]
        return {**told, "not_checked": list(self.not_checked)} if self.not_checked else told


def by_line(found: Iterable[Line]) -> tuple[Line, ...]:
    """Give what was found line by line, and on one line by its code; what has none comes first.

    Examples
    --------
    >>> told = [Finding(code=code, message="", line=line) for code, line in (("b", 4), ("a", 4))]
    >>> [one.code for one in by_line([*told, Finding(code="c", message="")])]
    ['c', 'a', 'b']
    """

    def place(one: object) -> tuple[int, str]:
        line = getattr(one, "line", None)
        return (0, "") if line is None else (line, str(getattr(one, "code", "")))

    return tuple(sorted(found, key=place))


def refused(error: RunbookError, *, read: bool = True) -> Found:
    """Say that a file is wrong, or cannot be read, as the error tells it, line by line.

    Examples
    --------
    >>> refused(RunbookError("no rules", fix="give one")).problems[0].to_dict()["fix"]
    'give one'
    """
    read = read and not isinstance(error.__cause__, OSError)
    error.problems = by_line(error.problems)
    return Found(
        said="wrong" if read else "cannot be read",
        problems=findings_of(error),
        text=str(error),
        read=read,
    )


def findings_of(error: RunbookError) -> tuple[Finding, ...]:
    """Give each thing that an error tells of."""
    if not error.problems:
        return (
            Finding(
                code=error.code,
                message=error.message,
                where=error.where,
                fix=error.fix,
                text=str(error),
            ),
        )
    return tuple(
        Finding(
            code=getattr(one, "code", error.code),
            message=one.message,
            where=getattr(one, "place", one.where),
            line=getattr(one, "line", None),
            column=getattr(one, "column", None),
            fix=one.fix,
            text=str(one),
        )
        for one in error.problems
    )
