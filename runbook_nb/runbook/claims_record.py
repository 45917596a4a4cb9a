"""Claims held against a recording of the run: what a copy says, and what the record has.

Bridge layer. A recording is the whole record in a file of its own; with it a copy is checked as a
live answer is, and beyond: what it carries is what was recorded.
"""

from __future__ import annotations

from typing import Any, Final

from runbook_nb._json import to_wire
from runbook_nb._text import counted, show
from runbook_nb.record.claims import (
    CONFIRMED,
    CONTRADICTED,
    HIDDEN,
    UNCHECKED,
    Claims,
    Outcome,
    Place,
    agrees,
)
from runbook_nb.record.redact import PLACEHOLDER
from runbook_nb.rules import Decision
from runbook_nb.runbook.dossier import SubjectFacts
from runbook_nb.runbook.envelope import Envelope
from runbook_nb.runbook.grounds import Ground
from runbook_nb.runbook.told import ToldDecision

BASE: Final[Place] = ("dossier",)


def claim_record(ground: Ground, claims: Claims) -> None:
    """Claim that the dossier of a copy is what a recording of the run has."""
    if ground.live or ground.dossier is None:
        return
    witness = ground.witness
    run, words = ground.recorded
    if witness is None:
        if run is not None:
            claims.unchecked(
                "record", "the run that was recorded", f"{words} does not carry all of it"
            )
        return
    dossier = ground.dossier
    told = f"{counted(len(dossier.structure.nodes), 'node')} of {dossier.structure.name}"
    there = to_wire(witness.dossier.structure.to_dict())
    drawn = dossier.structure.to_dict()
    claims.check("record.structure", told, drawn, there, words, (*BASE, "structure"))
    counts = [group.to_dict() for group in dossier.fan_outs]
    expected = [group.to_dict() for group in witness.dossier.fan_outs]
    told = f"the counts of {counted(len(counts), 'fan-out')}"
    claims.check("record.counts", told, counts, expected, words, (*BASE, "fan_outs"))
    digests = [source.digest for source in witness.dossier.sources]
    found = [source.digest for source in dossier.sources]
    told = f"{counted(len(found), 'rule set')} judged"
    places = [(*BASE, "rule_sets", number, "digest") for number in range(len(found))]
    if any(source.hidden for source in dossier.sources):
        claims.unchecked(
            "record.rules", told, f"limits are {HIDDEN} in the recording, too", *places
        )
    else:
        claims.check("record.rules", told, found, digests, words, *places)
    _subjects(ground, witness, words, claims)


def _subjects(ground: Ground, witness: Envelope, words: str, claims: Claims) -> None:
    """Claim that each subject is the one of the record, with its values."""
    recorded = {(one.stage, one.execution, one.index): one for one in witness.dossier.subjects()}
    alike: list[int] = []
    other: list[int] = []
    hidden: list[int] = []
    for place, one in enumerate(ground.subjects):
        there = recorded.get((one.stage, one.execution, one.index))
        if there is None or not agrees(_told(one), _told(there)):
            other.append(place)
        else:
            (hidden if PLACEHOLDER in str(_told(one)) else alike).append(place)

    def tell(place: int) -> tuple[Any, Any]:
        one = ground.subjects[place]
        there = recorded.get((one.stage, one.execution, one.index))
        if there is None:
            return "no such item", show(one.subject)
        found, expected = _told(one), _told(there)
        names = [name for name in expected if not agrees(found.get(name), expected[name])]
        return {n: expected[n] for n in names}, {n: found.get(n) for n in names}

    claims.many(
        "record.subject",
        "it is the subject of the record, with the values that were compared",
        [
            Outcome(CONTRADICTED, other, words, tell),
            Outcome(CONFIRMED, alike, words),
            Outcome(UNCHECKED, hidden, f"some of it is {HIDDEN} in the recording, too"),
        ],
        ground.subject_name,
        lambda places: (("dossier", "subjects", places),),
    )


def _told(one: SubjectFacts) -> dict[str, Any]:
    """Give what is compared of a subject."""
    told = {"subject": to_wire(one.subject), "status": one.status, "reason": one.reason}
    decision = one.decision
    if isinstance(decision, Decision):
        told["outcomes"] = list(decision.path.codes)
        told["values"] = [to_wire(value) for value in decision.actuals]
        told["branch"] = decision.branch
    elif isinstance(decision, ToldDecision):
        told["sentence"] = decision.sentence
    return told
