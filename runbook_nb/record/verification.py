"""A verification: every claim that something kept makes, and what became of each.

Record layer. What makes claims lies above; here they are ordered, counted, asked for and shown.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._display import Renderable
from runbook_nb._frozen import Immutable
from runbook_nb._text import counted
from runbook_nb._view import Card
from runbook_nb.errors import RunbookError
from runbook_nb.record.claims import CONFIRMED, CONTRADICTED, STATUSES, UNCHECKED, Claim, covers

if TYPE_CHECKING:
    import pandas as pd

VERIFICATION_FORMAT: Final = "runbook_nb/verification/1"

#: What reading something that follows no form may raise.
MALFORMED: Final = (
    RunbookError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)


class Verification(Renderable, Immutable):
    """What became of checking an answer or a journal, claim by claim.

    Attributes
    ----------
    name : str
        What was checked: the runbook or the playbook, or the answer's place in a file.
    claims : tuple of Claim
        Contradicted ones first, then confirmed ones, then those that cannot be checked.

    Examples
    --------
    >>> from runbook_nb.record.claims import Claims
    >>> claims = Claims()
    >>> claims.check("counts.rows_shown", "2 rows shown", 2, 2, "the rows listed")
    True
    >>> checked = Verification("stale_backups", claims.made)
    >>> checked.ok, checked["counts.rows_shown"].status
    (True, 'confirmed')
    """

    shown_once_for_all = True

    def __init__(self, name: str, claims: Iterable[Claim]) -> None:
        self.name = name
        order = {status: number for number, status in enumerate(STATUSES)}
        self.claims = tuple(sorted(claims, key=lambda claim: order[claim.status]))

    @property
    def ok(self) -> bool:
        """Whether nothing is contradicted."""
        return not self.contradicted

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many claims have each status."""
        found = Counter(claim.status for claim in self.claims)
        return {status: found[status] for status in STATUSES}

    @property
    def contradicted(self) -> tuple[Claim, ...]:
        """The claims that something speaks against."""
        return self._with(CONTRADICTED)

    @property
    def confirmed(self) -> tuple[Claim, ...]:
        """The claims that something else bears out."""
        return self._with(CONFIRMED)

    @property
    def unchecked(self) -> tuple[Claim, ...]:
        """The claims that cannot be checked with what is at hand."""
        return self._with(UNCHECKED)

    def _with(self, status: str) -> tuple[Claim, ...]:
        return tuple(claim for claim in self.claims if claim.status == status)

    def covering(self, *place: Any) -> tuple[Claim, ...]:
        """Give the claims about a place in the answer.

        Parameters
        ----------
        *place : str or int
            The keys and positions that lead there: ``"result", "verdicts", 0, "verdict"``.

        Examples
        --------
        >>> from runbook_nb.record.claims import Claims
        >>> claims, place = Claims(), ("result", "rows_total")
        >>> claims.check("counts.rows_total", "3 rows", 3, 3, "the rows of the dossier", place)
        True
        >>> checked = Verification("stale_backups", claims.made)
        >>> [claim.id for claim in checked.covering("result", "rows_total")]
        ['counts.rows_total']
        """
        return tuple(
            claim for claim in self.claims if any(covers(cover, place) for cover in claim.covers)
        )

    @property
    def sentence(self) -> str:
        """How many claims there are, and what became of them."""
        counts = self.counts
        return (
            f"{counted(len(self.claims), 'claim')}: {counts[CONFIRMED]} confirmed, "
            f"{counts[CONTRADICTED]} contradicted, {counts[UNCHECKED]} cannot be checked"
        )

    def __getitem__(self, id_: str) -> Claim:
        for claim in self.claims:
            if claim.id == id_:
                return claim
        from runbook_nb._text import did_you_mean
        from runbook_nb.errors import NoSuchPart

        raise NoSuchPart(
            f"there is no claim {id_!r}",
            where="verification",
            fix=did_you_mean(str(id_), [claim.id for claim in self.claims]),
        )

    def __iter__(self) -> Iterator[Claim]:
        return iter(self.claims)

    def __len__(self) -> int:
        return len(self.claims)

    def to_dict(self) -> dict[str, Any]:
        """Give all claims as JSON values."""
        return {
            "format": VERIFICATION_FORMAT,
            "name": self.name,
            "sentence": self.sentence,
            "counts": dict(self.counts),
            "claims": [claim.to_dict() for claim in self.claims],
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """Give all claims as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def to_frame(self) -> pd.DataFrame:
        """Give one row per claim as a DataFrame."""
        import pandas as pd

        names = ("id", "status", "claimed", "basis", "because", "difference", "count")
        return pd.DataFrame(
            {name: [getattr(claim, name) for claim in self.claims] for name in names}
        )

    def view(self) -> Card:
        """Show the claims, contradicted ones first."""
        from runbook_nb.record.verification_card import verification_card

        return verification_card(self)
