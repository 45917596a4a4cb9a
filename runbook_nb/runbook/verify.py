"""Verifying an answer: every claim it makes, held against whatever else there is.

Bridge layer. Nothing of an answer is run and no source is called. What can be worked out anew is;
the rest is named with the reason why it cannot be checked.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._display import Renderable
from runbook_nb._frozen import Immutable
from runbook_nb._text import counted
from runbook_nb._view import Card
from runbook_nb.errors import RunbookError
from runbook_nb.runbook.claims import (
    CONFIRMED,
    CONTRADICTED,
    STATUSES,
    UNCHECKED,
    Claim,
    Claims,
    covers,
)
from runbook_nb.runbook.claims_counts import claim_counts
from runbook_nb.runbook.claims_ledger import claim_ledger
from runbook_nb.runbook.claims_origin import claim_origin
from runbook_nb.runbook.claims_record import claim_record
from runbook_nb.runbook.claims_rows import claim_rows
from runbook_nb.runbook.claims_rules import claim_meanings, claim_rules
from runbook_nb.runbook.claims_structure import claim_structure
from runbook_nb.runbook.claims_subjects import claim_subjects
from runbook_nb.runbook.claims_verdicts import claim_verdicts
from runbook_nb.runbook.claims_walk import claim_walk
from runbook_nb.runbook.grounds import Ground

if TYPE_CHECKING:
    import pandas as pd

    from runbook_nb.runbook.envelope import Envelope

VERIFICATION_FORMAT: Final = "runbook_nb/verification/1"

#: What reading an answer that follows no form may raise.
MALFORMED: Final = (
    RunbookError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)

_MAKERS: Final[tuple[Callable[[Ground, Claims], None], ...]] = (
    claim_counts,
    claim_rows,
    claim_verdicts,
    claim_subjects,
    claim_meanings,
    claim_rules,
    claim_ledger,
    claim_structure,
    claim_walk,
    claim_origin,
    claim_record,
)


class Verification(Renderable, Immutable):
    """What became of checking an answer, claim by claim.

    Attributes
    ----------
    name : str
        What was checked: the runbook, or the answer's place in a file.
    claims : tuple of Claim
        Contradicted ones first, then confirmed ones, then those that cannot be checked.

    Examples
    --------
    >>> from runbook_nb.runbook.triage import triage
    >>> from runbook_nb.rules import Rule, RuleSet
    >>> rules = RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], "fresh")
    >>> checked = triage([{"host": "a", "days": 9}], rules, subject="host", source="s").verify()
    >>> checked.ok, checked["row.verdict[host=a]"].status
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
        >>> from runbook_nb.runbook.triage import triage
        >>> from runbook_nb.rules import Rule, RuleSet
        >>> rules = RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], "fresh")
        >>> checked = triage([{"host": "a", "days": 9}], rules, subject="host", source="s").verify()
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
        from runbook_nb.runbook.verification_card import verification_card

        return verification_card(self)


def verify(
    envelope: Envelope, *, artifacts: Any = None, rules: Any = (), recording: Any = None
) -> Verification:
    """Check an answer; see `Envelope.verify`."""
    ground = Ground(envelope, artifacts=artifacts, rules=rules, recording=recording)
    return Verification(envelope.tool, claims_about(ground))


def claims_about(ground: Ground) -> Sequence[Claim]:
    """Make every claim of an answer.

    A claim that cannot even be made of what the answer says is contradicted: it was written by
    nobody who follows the form.
    """
    claims = Claims()
    for maker in _MAKERS:
        try:
            maker(ground, claims)
        except MALFORMED as error:
            if ground.live:
                raise
            part = maker.__name__.removeprefix("claim_")
            said = f"{type(error).__name__}: {error}"
            claims.settle(
                f"form.{part}",
                f"{part} can be read",
                False,
                "the form of answers",
                told=(said, None),
            )
    return claims.made
