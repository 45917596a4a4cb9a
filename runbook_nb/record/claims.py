"""Claims: what an answer says, whether that was confirmed, and by what.

Record layer. A claim is held against something that does not come from it. Where there is nothing
of the kind it *cannot be checked*, and says why; it is never confirmed by itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple

from runbook_nb._display import Renderable
from runbook_nb._frozen import Immutable
from runbook_nb._json import canonical, encode, to_wire
from runbook_nb._text import clip, listed, show, visible
from runbook_nb._value import frozen
from runbook_nb._view import Card
from runbook_nb.record.redact import PLACEHOLDER

Status = Literal["confirmed", "contradicted", "cannot be checked"]

CONFIRMED: Final = "confirmed"
CONTRADICTED: Final = "contradicted"
UNCHECKED: Final = "cannot be checked"

#: The order in which statuses are told: what matters most first.
STATUSES: Final[tuple[Status, ...]] = (CONTRADICTED, CONFIRMED, UNCHECKED)

#: Of more things of one kind there is one claim for all that fared alike.
EACH: Final = 20

#: So many of them are named then.
NAMED: Final = 10

#: Said where the only thing to hold a claim against is the claim.
NOTHING_ELSE: Final = "nothing independent is carried"
HIDDEN: Final = "hidden"

#: Characters of a value that a claim quotes.
QUOTED: Final = 200

#: A place in an answer: the keys and positions that lead to it.
Place = tuple[Any, ...]


class Anywhere:
    """Stands in a place for any position of a list.

    Examples
    --------
    >>> 7 in Anywhere()
    True
    """

    def __contains__(self, position: object) -> bool:
        return True


ANY: Final = Anywhere()


def covers(cover: Place, place: Place) -> bool:
    """Say whether a place is the covered one, or inside it.

    Examples
    --------
    >>> covers(("rows", range(3)), ("rows", 2, "verdict")), covers(("rows", 3), ("rows", 2))
    (True, False)
    """
    return len(cover) <= len(place) and all(map(_fits, cover, place))


def _fits(one: Any, step: Any) -> bool:
    if isinstance(one, str | int):
        return bool(one == step)
    held: Container[Any] = one
    return isinstance(step, int) and step in held


def place_text(place: Place) -> str:
    """Write a place as a path: ``result.verdicts[3].verdict``.

    Examples
    --------
    >>> place_text(("result", "verdicts", 3, "verdict")), place_text(("rows", ANY))
    ('result.verdicts[3].verdict', 'rows[*]')
    """
    text = ""
    for step in place:
        if isinstance(step, str):
            text += f".{step}" if text else step
        else:
            text += f"[{step}]" if isinstance(step, int) else "[*]"
    return text


def place_words(place: Place) -> str:
    """Name a place as people look for it: an output, a cell and a line by their numbers, from 1.

    Examples
    --------
    >>> place_words(("cells", 1, "outputs", 0, "data", "text/html")), place_words(("cells", 0))
    ('output 1 of cell 2', 'cell 1')
    >>> place_words(("result", "rows_total")), place_words(("lines", 3, "event", "tool"))
    ('result.rows_total', 'event.tool of line 4')
    """
    if place[:1] == ("cells",) and len(place) > 1 and isinstance(place[1], int):
        cell = f"cell {place[1] + 1}"
        return f"output {place[3] + 1} of {cell}" if place[2:3] == ("outputs",) else cell
    if place[:1] == ("lines",) and len(place) > 1 and isinstance(place[1], int):
        line = f"line {place[1] + 1}"
        return f"{place_text(place[2:])} of {line}" if len(place) > 2 else line
    return "the page" if place[:1] == ("page",) else place_text(place)


@frozen(repr=False)
class Claim(Renderable, Immutable):
    """Something an answer says, and what became of checking it.

    Attributes
    ----------
    id : str
        The same for the same claim in any answer: ``counts.rows_total``, ``meaning[old]``.
    claimed : str
        What is said.
    status : {"confirmed", "contradicted", "cannot be checked"}
    because : str
        Why it cannot be checked; empty where it was.
    basis : str
        What it was held against; empty where it was not.
    expected, found : object
        What should stand there, and what does, where they differ.
    said : str
        What is wrong, where that is no matter of two values.
    count : int
        How many things the claim is about; more than one where many fared alike.
    covers : tuple
        The places in the answer whose change this claim is about.

    Examples
    --------
    >>> claim = Claim(id="counts.rows_total", claimed="3 rows in all", status="contradicted",
    ...               basis="the rows of the dossier", expected=3, found=4)
    >>> claim.sentence
    'counts.rows_total is contradicted by the rows of the dossier: 4 was found, 3 expected'
    """

    id: str
    claimed: str
    status: Status
    because: str = ""
    basis: str = ""
    expected: Any = None
    found: Any = None
    said: str = ""
    count: int = 1
    covers: tuple[Place, ...] = ()

    @property
    def sentence(self) -> str:
        """The claim in one sentence."""
        name = visible(self.id)
        if self.status == UNCHECKED:
            return f"{name} cannot be checked, because {visible(self.because)}"
        if self.status == CONFIRMED:
            return f"{name} is confirmed by {self.basis}"
        return f"{name} is contradicted by {self.basis}: {self.difference}"

    @property
    def difference(self) -> str:
        """What was found and what was expected; empty where nothing differs."""
        if self.status != CONTRADICTED:
            return ""
        if self.said:
            return visible(self.said)
        return f"{quoted(self.found)} was found, {quoted(self.expected)} expected"

    @property
    def where(self) -> str:
        """Where that stands, in words; empty where it is about no place."""
        words = list(dict.fromkeys(place_words(place) for place in self.covers))
        more = [f"{len(words) - NAMED} more"] if len(words) > NAMED else []
        return listed([*words[:NAMED], *more])

    def to_dict(self) -> dict[str, Any]:
        """Give the claim as JSON values; what does not apply is left out."""
        told: dict[str, Any] = {"id": self.id, "claimed": self.claimed, "status": self.status}
        if self.because:
            told["because"] = self.because
        if self.basis:
            told["basis"] = self.basis
        if self.status == CONTRADICTED:
            told["expected"] = to_wire(self.expected)
            told["found"] = to_wire(self.found)
            if self.said:
                told["said"] = self.said
        if self.count != 1:
            told["count"] = self.count
        told["covers"] = [place_text(place) for place in self.covers]
        return told

    def view(self) -> Card:
        """Show the claim."""
        from runbook_nb.record.verification_card import claim_card

        return claim_card(self)


def quoted(value: Any) -> str:
    """Write a value as a sentence quotes it.

    Examples
    --------
    >>> quoted("old"), quoted(None), quoted({"a": 1})
    ('old', 'nothing', '{"a":1}')
    """
    if value is None:
        return "nothing"
    told = to_wire(value)
    text = encode(told) if isinstance(told, dict | list) else told
    text = text if isinstance(text, str) else show(text)
    return clip(visible(text), QUOTED) or "an empty text"


def agrees(found: Any, expected: Any) -> bool:
    """Say whether what was found is what was expected, what is hidden in it apart.

    Examples
    --------
    >>> agrees("of [REDACTED], 3 rows", "of web-1, 3 rows"), agrees(1, True)
    (True, False)
    """
    if isinstance(found, list | tuple | dict):
        return _same_json(to_wire(found), to_wire(expected))
    if isinstance(found, bool) is not isinstance(expected, bool):
        return False
    if found == expected:
        return True
    if not isinstance(found, str) or PLACEHOLDER not in found:
        return False
    pattern = ".*".join(map(re.escape, found.split(PLACEHOLDER)))
    return re.fullmatch(pattern, str(expected), re.DOTALL) is not None


def same(found: Any, expected: Any) -> bool:
    """Say whether two values are one as JSON, where ``true`` is no number.

    Examples
    --------
    >>> same({"a": 1}, {"a": True}), same([1, 2], (1, 2))
    (False, True)
    """
    one, other = to_wire(found), to_wire(expected)
    return bool(one == other) and canonical(one) == canonical(other)


def _same_json(found: Any, expected: Any) -> bool:
    if isinstance(found, dict) and isinstance(expected, dict):
        return found.keys() == expected.keys() and all(
            _same_json(found[key], expected[key]) for key in found
        )
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(_same_json, found, expected))
    return agrees(found, expected)


class Outcome(NamedTuple):
    """How some of many like things fared.

    Attributes
    ----------
    status : str
    places : sequence of int
        Which of them.
    why : str
        The basis, or why they cannot be checked.
    tell : callable or None
        Gives what was expected of one, and what was found.
    """

    status: Status
    places: Sequence[int]
    why: str
    tell: Callable[[int], tuple[Any, Any]] | None = None


class Claims:
    """Claims being made.

    Examples
    --------
    >>> claims = Claims()
    >>> claims.check("counts.rows_shown", "2 rows shown", 3, 2, "the rows listed")
    False
    >>> [claim.status for claim in claims.made]
    ['contradicted']
    """

    def __init__(self) -> None:
        self.made: list[Claim] = []
        self._times: Counter[str] = Counter()

    def _add(self, claim: Claim) -> None:
        """Take a claim in; of several with one id the later ones are numbered."""
        self._times[claim.id] += 1
        times = self._times[claim.id]
        self.made.append(claim if times == 1 else replace(claim, id=f"{claim.id}#{times}"))

    def check(
        self,
        id: str,
        claimed: str,
        found: Any,
        expected: Any,
        basis: str,
        *places: Place,
    ) -> bool:
        """Claim that what was found is what was expected; say whether it is."""
        return self.settle(
            id, claimed, agrees(found, expected), basis, *places, told=(found, expected)
        )

    def settle(
        self,
        id: str,
        claimed: str,
        holds: bool,
        basis: str,
        *places: Place,
        told: tuple[Any, Any] = (None, None),
        said: str = "",
    ) -> bool:
        """Claim what was held against a basis.

        ``told`` is what was found and expected, or ``said`` is what is wrong.
        """
        status: Status = CONFIRMED if holds else CONTRADICTED
        found, expected = (None, None) if holds else told
        self._add(
            Claim(
                id=id,
                claimed=claimed,
                status=status,
                basis=basis,
                expected=expected,
                found=found,
                said="" if holds else said,
                covers=places,
            )
        )
        return holds

    def unchecked(
        self, id: str, claimed: str, because: str, *places: Place, count: int = 1
    ) -> None:
        """Claim what cannot be checked."""
        self._add(
            Claim(
                id=id,
                claimed=claimed,
                status=UNCHECKED,
                because=because,
                count=count,
                covers=places,
            )
        )

    def many(
        self,
        kind: str,
        claimed: str,
        outcomes: Iterable[Outcome],
        name_of: Callable[[int], str],
        cover_of: Callable[[Any], tuple[Place, ...]],
        *,
        singly: bool = True,
    ) -> None:
        """Claim the same of many things: each by its name where they are few, else together.

        Parameters
        ----------
        kind : str
            What they are; an id reads ``kind[name]``.
        claimed : str
            What is said of each.
        outcomes : iterable of Outcome
            How they fared; those without places are left out.
        name_of : callable
            Names one, in a few words.
        cover_of : callable
            Gives the places that one of them, or a collection of them, covers.
        singly : bool
            Whether few are told each by its name also where nothing speaks against them.
        """
        told = [one for one in outcomes if len(one.places)]
        told.sort(key=lambda one: STATUSES.index(one.status))
        few = sum(len(one.places) for one in told) <= EACH
        for one in told:
            if few and (singly or one.status == CONTRADICTED):
                for place in one.places:
                    self._one(f"{kind}[{name_of(place)}]", claimed, one, place, cover_of(place))
            else:
                self._together(kind, claimed, one, name_of, cover_of)

    def _one(
        self, id: str, claimed: str, one: Outcome, place: int, covered: tuple[Place, ...]
    ) -> None:
        if one.status == UNCHECKED:
            self.unchecked(id, claimed, one.why, *covered)
            return
        expected, found = (None, None) if one.tell is None else one.tell(place)
        self.settle(id, claimed, one.status == CONFIRMED, one.why, *covered, told=(found, expected))

    def _together(
        self,
        kind: str,
        claimed: str,
        one: Outcome,
        name_of: Callable[[int], str],
        cover_of: Callable[[Any], tuple[Place, ...]],
    ) -> None:
        count = len(one.places)
        first = [name_of(place) for place in one.places[:NAMED]]
        more = [f"{count - NAMED:,} more"] if count > NAMED else []
        claimed = f"{claimed}: {count:,}, {listed([*first, *more])}"
        expected = found = None
        if one.status == CONTRADICTED and one.tell is not None:
            pairs = [one.tell(place) for place in one.places[:NAMED]]
            expected = dict(zip(first, (pair[0] for pair in pairs), strict=True))
            found = dict(zip(first, (pair[1] for pair in pairs), strict=True))
        self._add(
            Claim(
                id=kind,
                claimed=claimed,
                status=one.status,
                because=one.why if one.status == UNCHECKED else "",
                basis="" if one.status == UNCHECKED else one.why,
                expected=expected,
                found=found,
                count=count,
                covers=cover_of(frozenset(one.places)),
            )
        )
