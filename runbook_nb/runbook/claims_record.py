"""Claims held against a recording of the run: what a copy says, and what the record has.

Bridge layer. A recording is the whole record in a file of its own; with it a copy is checked as a
live answer is, and beyond: what it carries is what was recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from runbook_nb._json import WireReport, to_wire
from runbook_nb._text import counted, listed, show
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
from runbook_nb.record.recorded import RecordedRun
from runbook_nb.record.recording import OWN_ID, recording_of
from runbook_nb.record.redact import PLACEHOLDER
from runbook_nb.record.run import Run
from runbook_nb.rules import Decision
from runbook_nb.runbook.differing import NAMED, differences
from runbook_nb.runbook.dossier import SubjectFacts
from runbook_nb.runbook.envelope import Envelope
from runbook_nb.runbook.grounds import Ground
from runbook_nb.runbook.told import ToldDecision

BASE: Final[Place] = ("dossier",)


def claim_record(ground: Ground, claims: Claims) -> None:
    """Claim that the dossier of a copy is what a recording of the run has."""
    if ground.live:
        return
    run, words = ground.recorded
    if run is not None:
        _itself(run, words, claims)
    if ground.dossier is None:
        return
    witness = ground.witness
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


def _itself(run: Run, words: str, claims: Claims) -> None:
    """Claim that a recording agrees with itself: what it publishes is what its record gives.

    One of ours tells the run twice, as everybody can read it and as the record it was made from.
    """
    told = "what it tells of the run is what its record gives"
    if not isinstance(run, RecordedRun):
        return
    if run.source != OWN_ID:
        claims.unchecked("record.told", told, "it carries no record to hold it against")
        return
    found = run.to_dict()
    again = recording_of(run, WireReport()).to_dict()
    hidden = run.hidden
    for name, (one, other) in _parts(found, again, hidden=hidden).items():
        wrong = list(islice(differences(one, other), NAMED + 1))
        more = ["more"] if len(wrong) > NAMED else []
        said = f"it differs from its record at {listed([*wrong[:NAMED], *more])}"
        what, basis = f"{told}: {name}", f"the record inside {words}, written again"
        claims.settle(f"record.told[{name}]", what, not wrong, basis, said=said)
    what, name = f"it is of {run.name}", run.structure.name
    claims.check("record.told[name]", what, run.name, name, "the structure inside it")
    if hidden:
        reason = "what a policy hid in it is not carried"
        claims.unchecked("record.told[redactedPaths]", "which values were hidden", reason)


def _parts(
    found: Mapping[str, Any], again: Mapping[str, Any], *, hidden: bool
) -> dict[str, tuple[Any, Any]]:
    """Give the parts of a recording, each as it is and as it is written again."""
    pairs = []
    for one in (found, again):
        snapshot = dict(one["snapshot"])
        if hidden:  # said of a commit by its policy, which no recording has
            snapshot["commitLog"] = [
                {key: held for key, held in each.items() if key != "redactedPaths"}
                for each in snapshot["commitLog"]
            ]
        recorders = {str(each.get("id")): each for each in snapshot.pop("recorders")}
        pairs.append(
            {**snapshot, **recorders, "events": one["events"], "structure": one["structure"]}
        )
    mine, its = pairs
    return {name: (mine.get(name), its.get(name)) for name in dict.fromkeys([*its, *mine])}


def _subjects(ground: Ground, witness: Envelope, words: str, claims: Claims) -> None:
    """Claim that each subject is the one of the record, with its values."""
    recorded = {(one.stage, one.execution, one.index): one for one in witness.dossier.subjects()}
    alike: list[int] = []
    other: list[int] = []
    hidden: list[int] = []
    for place, one in enumerate(ground.subjects):
        there = recorded.get((one.stage, one.execution, one.index))
        if there is None or not agrees(_told(one), _told(there, like=one)):
            other.append(place)
        else:
            (hidden if PLACEHOLDER in str(_told(one)) else alike).append(place)

    def tell(place: int) -> tuple[Any, Any]:
        one = ground.subjects[place]
        there = recorded.get((one.stage, one.execution, one.index))
        if there is None:
            return "no such item", show(one.subject)
        found, expected = _told(one), _told(there, like=one)
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


def _told(one: SubjectFacts, like: SubjectFacts | None = None) -> dict[str, Any]:
    """Give what is compared of a subject: no more of its decision than another has."""
    told = {"subject": to_wire(one.subject), "status": one.status, "reason": one.reason}
    decision = one.decision
    if isinstance(decision, Decision) and like and isinstance(like.decision, ToldDecision):
        told["sentence"] = decision.sentence  # rules that are functions are not carried
    elif isinstance(decision, Decision):
        told["outcomes"] = list(decision.path.codes)
        told["values"] = [to_wire(value) for value in decision.actuals]
        told["branch"] = decision.branch
    elif isinstance(decision, ToldDecision):
        told["sentence"] = decision.sentence
    return told
