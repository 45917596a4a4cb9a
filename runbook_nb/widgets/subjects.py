"""The subjects of a fan-out, page by page: found by a word, filtered by what became of them.

What became of a subject is told by its branch: the way its last decision went, that it failed, that
it was not reached. Counts come from the shapes of branches; only what is shown is looked at, and a
search says how far it looked.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, Final

from runbook_nb._text import show, visible
from runbook_nb._value import frozen
from runbook_nb._view import Role, verdict_role
from runbook_nb.record.log import FAILED, NOT_REACHED, FanOut
from runbook_nb.record.moments import Moments
from runbook_nb.record.rows import Branch
from runbook_nb.record.shapes import facts_of
from runbook_nb.record.slots import decision_of, reason_of, served_subject, subject_reader
from runbook_nb.record.spots import Spot, fan_of
from runbook_nb.record.structure import Structure
from runbook_nb.record.tallies import places_of

#: Subjects given at once, and the most that one search looks at before it says how far it came.
PAGE: Final = 50
AT_ONCE: Final = 100_000
#: Fan-outs that can be chosen from.
MAX_FANS: Final = 100

#: Outcomes that are no verdict: their word and role.
_FAILED: Final[tuple[str, Role]] = ("failed", "failed")
_MISSED: Final[tuple[str, Role]] = ("not reached", "not_reached")
_DONE: Final[tuple[str, Role]] = ("done", "completed")


@frozen(kw_only=False)
class Outcome:
    """What became of some subjects."""

    word: str
    role: str
    count: int


@frozen
class Found:
    """One subject on a page.

    Attributes
    ----------
    index : int
        Position of its item, from 0.
    name, word, role : str
        What it is called, and what became of it.
    why : str
        What decided it, or why there is no verdict.
    step : int or None
        The row to look at; None when its branch never began.
    """

    index: int
    name: str
    word: str
    role: str
    why: str
    step: int | None


@frozen
class Page:
    """Some subjects.

    Attributes
    ----------
    found : tuple of Found
    total : int
        How many there are in all.
    matching : int or None
        How many of them match; None when a search has not looked at all of them.
    searched, among : int
        How many were looked at, and how many there are to look at.
    next : int or None
        Where to go on; None at the end.
    """

    found: tuple[Found, ...]
    total: int
    matching: int | None
    searched: int
    among: int
    next: int | None


def roles_of(structure: Structure) -> dict[str, Role]:
    """Give each verdict word its role, by the order its decider declares.

    Examples
    --------
    >>> roles_of(Structure(name="c", nodes=()))
    {}
    """
    found: dict[str, Role] = {}
    for node in structure.nodes:
        if node.kind == "decider":
            order = tuple(one.branch or "" for one in structure.branches_of(node.key))
            for word in order:
                found.setdefault(word, verdict_role(word, order))
    return found


class Subjects:
    """The subjects of one execution of a fan-out.

    Parameters
    ----------
    moments : Moments
    around : tuple of (FanOut, int, str)
        The branches around it: none, or children of forks.
    branch : (FanOut, str)
        The fan-out, and the path before it.
    roles : mapping
        Verdict word -> role.
    """

    def __init__(
        self,
        moments: Moments,
        around: tuple[Branch, ...],
        branch: tuple[FanOut, str],
        roles: Mapping[str, Role],
    ) -> None:
        self.moments = moments
        self.redactor = moments.redactor
        self.around = around
        self.fan, self.prefix = branch
        self.roles = roles
        self._last: tuple[str, Sequence[int]] | None = None

    @property
    def name(self) -> str:
        """What the fan-out is called."""
        return self.redactor.text(self.fan.stage.name)

    def __len__(self) -> int:
        return len(self.fan)

    # -- what became of them ---------------------------------------------------------------

    def _outcome(self, shape: int, status: int) -> tuple[str, Role]:
        if status == FAILED:
            return _FAILED
        if status == NOT_REACHED or shape < 0:
            return _MISSED
        route = facts_of(self.fan.log, self.fan.log.shapes[shape]).route
        if route is None:
            return _DONE
        word = visible(self.redactor.text(route))
        return word, self.roles.get(route, "d")

    def outcome(self, index: int) -> tuple[str, Role]:
        """Say what became of one."""
        shape = self.fan.shape(index)
        number = -1 if shape is None else shape.number
        return self._outcome(number, self.fan.status_number(index))

    @cached_property
    def outcomes(self) -> tuple[Outcome, ...]:
        """Count what became of them: verdicts as declared, then the rest."""
        counts: dict[tuple[str, Role], int] = {}
        for (shape, status), times in self.fan.alike_counts().items():
            key = self._outcome(shape, status)
            counts[key] = counts.get(key, 0) + times
        left = len(self.fan) - sum(counts.values())
        if left:
            counts[_MISSED] = counts.get(_MISSED, 0) + left
        declared = [*self.roles, *(word for word, _ in (_DONE, _FAILED, _MISSED))]
        place = {word: number for number, word in enumerate(declared)}
        order = sorted(counts, key=lambda key: (key[1] == "declined", place.get(key[0], 0)))
        verdicts = [key for key in order if key not in (_DONE, _FAILED, _MISSED)]
        others = [key for key in order if key in (_DONE, _FAILED, _MISSED)]
        return tuple(Outcome(word, role, counts[word, role]) for word, role in verdicts + others)

    def _with(self, word: str) -> Sequence[int]:
        """Give the positions of those with an outcome, in order; those of the last are kept."""
        if self._last is None or self._last[0] != word:
            self._last = (word, self._places(word))
        return self._last[1]

    def _places(self, word: str) -> Sequence[int]:
        held: list[Sequence[int]] = [
            places
            for (shape, status), places in self.fan.alike().items()
            if self._outcome(shape, status)[0] == word
        ]
        if word == _MISSED[0]:
            held.append(places_of(self.fan.shape_numbers(), -1))
        # What is in order piece by piece is sorted in one pass.
        if len(held) == 1:
            return held[0]
        return array("q", sorted([place for places in held for place in places]))

    # -- pages -----------------------------------------------------------------------------

    def page(self, start: int = 0, *, word: str = "", find: str = "") -> Page:
        """Give some subjects from a place on.

        Parameters
        ----------
        start : int
            Where to begin, as ``next`` of the page before said.
        word : str
            Only those with this outcome; all when empty.
        find : str
            Only those whose name has this text in it, in whatever case; all when empty.
        """
        places = self._with(word) if word else range(len(self.fan))
        start = min(max(start, 0), len(places))
        if not find:
            end = min(start + PAGE, len(places))
            shown: Iterable[int] = (places[at] for at in range(start, end))
            following = end if end < len(places) else None
            matching: int | None = len(places)
            searched = len(places)
        else:
            shown, searched = self._search(places, start, find)
            following = searched if searched < len(places) else None
            matching = None
        return Page(
            found=tuple(map(self._found, shown)),
            total=len(self.fan),
            matching=matching,
            searched=searched,
            among=len(places),
            next=following,
        )

    def _search(self, places: Sequence[int], start: int, find: str) -> tuple[list[int], int]:
        wanted, read = find.casefold(), subject_reader(self.redactor, self.fan)
        found: list[int] = []
        at = start
        for at in range(start, min(start + AT_ONCE, len(places))):
            name = read(places[at])
            if wanted in (name if isinstance(name, str) else show(name)).casefold():
                found.append(places[at])
                if len(found) == PAGE:
                    break
        return found, min(at + 1, len(places))

    def _found(self, index: int) -> Found:
        fan, text = self.fan, self.redactor.text
        word, role = self.outcome(index)
        decision = decision_of(fan, index, self.redactor)
        if word in (_FAILED[0], _MISSED[0]) and role in ("failed", "not_reached"):
            why = text(reason_of(fan, index))
        else:
            why = "" if decision is None else text(decision.cause)
        return Found(
            index=index,
            name=self.called(index),
            word=word,
            role=role,
            why=why,
            step=self.row(index),
        )

    def called(self, index: int) -> str:
        """Say what names a subject; its position where nothing does."""
        name = served_subject(self.redactor, self.fan, index)
        return f"item {index}" if name is None else show(name)

    def row(self, index: int) -> int | None:
        """Give the row to look at: of its last decision, else of its beginning."""
        if self.fan.shape(index) is None:
            return None
        branch = (self.fan, index, self.prefix)
        spots, chain = self.moments.spots, (*self.around, branch)
        part = spots.rows.part_of(*branch)
        for place in reversed(range(len(part.facts.events))):
            if part.facts.events[place] is part.facts.decision:
                return spots.row(Spot(chain, part, place))
        return spots.start(branch, self.around)


def fans_of(moments: Moments) -> list[Subjects]:
    """Give the fan-outs of a walk's own chart, in the order they ran; at most `MAX_FANS`.

    Those inside the branches of another are reached by way of a row.
    """
    rows = moments.spots.rows
    roles = roles_of(moments.walk.structure)

    def inside(part: Any, chain: tuple[Branch, ...]) -> Iterator[Subjects]:
        for event in part.facts.fan_outs:
            fan = fan_of(part, event)
            if fan.is_fan_out:
                yield Subjects(moments, chain, (fan, part.prefix), roles)
            else:
                for index, _ in fan.begun():
                    branch = (fan, index, part.prefix)
                    yield from inside(rows.part_of(*branch), (*chain, branch))

    chain = () if rows.only is None else (rows.only,)
    return list(islice(inside(rows.own(), chain), MAX_FANS))
