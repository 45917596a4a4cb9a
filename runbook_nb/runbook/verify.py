"""Verifying an answer: every claim it makes, held against whatever else there is.

Bridge layer. Nothing of an answer is run and no source is called. What can be worked out anew is;
the rest is named with the reason why it cannot be checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from runbook_nb.record.claims import Claim, Claims
from runbook_nb.record.verification import MALFORMED, Verification
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
    from runbook_nb.runbook.envelope import Envelope

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
