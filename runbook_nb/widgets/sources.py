"""What an explorer pages through, whichever record it is: rows, subjects, one row looked at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from runbook_nb._value import frozen
from runbook_nb._view import Graph, Role
from runbook_nb.record.moments import Around, Trail
from runbook_nb.record.projection import WalkRow
from runbook_nb.rules.decision import Decision, Selection
from runbook_nb.widgets.subjects import Outcome, Page

#: Which rows are listed.
KINDS: Final = ("all", "decisions", "writes")


@frozen
class Evidence:
    """The decision nearest to a row.

    Attributes
    ----------
    decision : Decision, Selection or None
        None where only words of it are carried.
    words, stage, place : str
        What was decided, by which decider, in which execution.
    step : int
        The row that tells it.
    number, total : int
        Which of how many, from 1.
    """

    decision: Decision | Selection | None
    words: str
    stage: str
    place: str
    step: int
    number: int
    total: int


@frozen
class Seen:
    """One row with what is known around it.

    Attributes
    ----------
    step : int
    row : WalkRow
    subject : str
        Whose branch it is in; empty outside any.
    fan : int or None
        Which of the source's fan-outs that branch is of.
    index : int
        The branch's number in it, from 0.
    of : str
        ``2 of 3``.
    trail : Trail
    evidence : Evidence or None
    around : Around or None
        None where the state is not carried.
    """

    step: int
    row: WalkRow
    subject: str = ""
    fan: int | None = None
    index: int = -1
    of: str = ""
    trail: Trail = field(default_factory=lambda: Trail(done=(), now=None, next=None, later=()))
    evidence: Evidence | None = None
    around: Around | None = None


@frozen
class Fan:
    """A fan-out whose subjects can be paged through."""

    name: str
    key: str
    total: int


class Source(ABC):
    """What an explorer looks at.

    Attributes
    ----------
    name : str
        What is explored.
    told : str
        Which record it is: ``from the live record``.
    steps : int or None
        How many stages were executed; None when that is not carried.
    lacking : str
        What this record does not carry, in a sentence; empty when it carries all.
    roles : mapping
        Verdict word -> its role, the same wherever it is shown.
    """

    name: str
    told: str
    steps: int | None
    lacking: str = ""
    roles: Mapping[str, Role] = {}

    @abstractmethod
    def total(self, kind: str = "all") -> int:
        """Count the rows of a kind."""

    @abstractmethod
    def rows(self, kind: str, start: int, n: int) -> list[WalkRow]:
        """Give rows of a kind from a place on; each says its step among all."""

    @abstractmethod
    def rank(self, kind: str, step: int) -> int:
        """Count the rows of a kind before a row."""

    @abstractmethod
    def at(self, step: int) -> Seen:
        """Look at a row."""

    @abstractmethod
    def graph(self, step: int | None) -> Graph | None:
        """Draw the chart as it is to be seen at a row; None where there is none to draw."""

    @abstractmethod
    def row_of(self, step: int, key: str) -> int | None:
        """Find the row of a node of the chart, on the way to a row and on from it."""

    @property
    @abstractmethod
    def fans(self) -> Sequence[Fan]:
        """The fan-outs whose subjects can be paged through."""

    @abstractmethod
    def outcomes(self, fan: int) -> tuple[Outcome, ...]:
        """Count what became of a fan-out's subjects."""

    @abstractmethod
    def page(self, fan: int, start: int, word: str, find: str) -> Page:
        """Give some subjects of a fan-out."""

    @abstractmethod
    def find(self, subject: Any) -> int:
        """Find the row to look at of a subject.

        Raises
        ------
        RunbookError
            Nothing has that name, several have, or its branch never began.
        """
