"""Claims of a journal: that it is whole, that its header is its own, and what follows from both.

Nothing is run. What a journal decided is judged again from what it says was asked; what was asked,
and what came of it, nobody but the journal tells, unless its head was noted elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from runbook_nb._json import to_wire
from runbook_nb._text import clip, counted, visible
from runbook_nb.errors import RunbookError
from runbook_nb.playbooks.begun import skill_digest
from runbook_nb.playbooks.eventkinds import content_digest
from runbook_nb.playbooks.events import Begun
from runbook_nb.playbooks.journal_decisions import claim_asked, claim_decisions, line_place
from runbook_nb.playbooks.journal_lines import Reading
from runbook_nb.playbooks.policy import EnforcementPolicy
from runbook_nb.record.claims import ANY, NOTHING_ELSE, Claims, Place
from runbook_nb.record.verification import Verification

#: What is claimed of the lines: how, what it is held against, the kinds of faults that contradict
#: it, and the leaves of a line that it is about where nothing is wrong.
_LINES: Final[tuple[tuple[str, str, str, tuple[str, ...], tuple[Place, ...]], ...]] = (
    (
        "lines.form",
        "each line is written as the lines of a journal are, and holds an event",
        "the form of journals",
        ("form", "schema", "event", "group"),
        (("schema",), ("more",), ("event", "kind"), ("event", "args_digest")),
    ),
    (
        "lines.check",
        "no line was changed",
        "the check in each line",
        ("check",),
        (("check",),),
    ),
    (
        "lines.chain",
        "no line was taken out, put in or moved",
        "the digest of the line before, in each line",
        ("chain",),
        (("prev",),),
    ),
    (
        "lines.order",
        "the events are numbered as they stand, and the first alone begins the plan",
        "the places of the lines",
        ("order",),
        (("event", "seq"),),
    ),
)

#: Faults of one kind that are told line by line.
_EACH: Final = 20


def verify_reading(found: Reading, name: str, *, head: str | None = None) -> Verification:
    """Check everything that a journal claims.

    Parameters
    ----------
    found : Reading
        What was read.
    name : str
        What the journal is called.
    head : str, optional
        The digest of a line, noted elsewhere when it was the last.
    """
    claims = Claims()
    _claim_lines(found, claims)
    _claim_end(found, head, claims)
    begun = found.lines[0].event if found.lines else None
    if found.faults or not isinstance(begun, Begun):
        if found.lines:
            told, why = "what it decided follows from what was asked", "its lines were changed"
            claims.unchecked("decisions", told, why, ("lines",))
        return Verification(name, claims.made)
    _claim_header(begun, found.writer, claims)
    claim_decisions(found, claims)
    claim_asked(found, claims)
    return Verification(f"{begun.playbook.name} in {name}", claims.made)


# --- the lines ------------------------------------------------------------------------------------


def _claim_lines(found: Reading, claims: Claims) -> None:
    for id_, told, basis, kinds, about in _LINES:
        faults = [fault for fault in found.faults if fault.code in kinds]
        if not faults:
            if found.lines:
                claims.settle(id_, told, True, basis, *(("lines", ANY, *one) for one in about))
            continue
        for fault in faults[:_EACH]:
            where = f"{id_}[{fault.line}]"
            said = f"line {fault.line:,} {fault.said}"
            # Where a line does not go with the one before it, either may be the changed one.
            apart = fault.code in ("chain", "group") and fault.line > 1
            places = [line_place(fault.line), *([line_place(fault.line - 1)] if apart else [])]
            claims.settle(where, told, False, basis, *places, said=said)
        if more := faults[_EACH:]:
            others = ("lines", frozenset(fault.line - 1 for fault in more))
            said = f"{counted(len(more), 'more line')} alike"
            claims.settle(id_, told, False, basis, others, said=said)


def _claim_end(found: Reading, head: str | None, claims: Claims) -> None:
    """Claim that nothing is missing at the end: the one change that leaves no mark in a chain."""
    count = len(found.lines)
    told = "nothing is missing at its end"
    if found.torn:
        claims.unchecked("end.broken", "its last line is whole", found.torn)
    if head is None:
        why = "whole lines cut off at the end leave no mark, and no head that was noted is given"
        claims.unchecked("end", told, why, count=max(count, 1))
        return
    place = next((line.number for line in found.lines if line.digest == head), None)
    noted = f"it holds the line whose digest is {clip(visible(head), 80)}"
    basis = "the head that was noted"
    if place is None:
        said = f"none of its {counted(count, 'line')} has that digest: it was changed, or cut off"
        claims.settle("head", noted, False, basis, ("lines",), said=said)
        return
    claims.settle("head", noted, True, basis, ("lines", range(place)))
    if place == count:
        claims.settle("end", told, True, basis)
    else:
        why = f"the head that was noted is that of line {place:,} of {count:,}"
        claims.unchecked("end", told, why, count=count - place)


# --- the header -----------------------------------------------------------------------------------


def _claim_header(begun: Begun, writer: str, claims: Claims) -> None:
    told = begun.to_dict()
    book = told["playbook"]
    claims.check(
        "header.playbook",
        f"the playbook is {clip(visible(begun.playbook.name), 60)!r}, "
        f"version {clip(visible(begun.playbook.version), 20)}",
        begun.digest,
        content_digest(book),
        "the playbook in the header",
        line_place(1, "event", "playbook"),
        line_place(1, "event", "digest"),
    )
    _claim_policy(begun, claims)
    for key, skill in told["skills"].items():
        place = line_place(1, "event", "skills", key)
        said = f"the skill {clip(visible(key), 60)!r}"
        given = skill.get("digest") if isinstance(skill, Mapping) else None
        expected = skill_digest(skill) if isinstance(skill, Mapping) else None
        id_ = f"header.skill[{clip(visible(key), 60)}]"
        claims.check(id_, said, given, expected, "the skill in the header", place)
    told_of = f"it was written by {clip(visible(writer), 60)}"
    claims.unchecked("header.writer", told_of, NOTHING_ELSE, line_place(1, "writer"))
    claims.unchecked(
        "header.choices",
        "that playbook, policy and those skills were the ones to be held to",
        NOTHING_ELSE,
        line_place(1, "event", "block"),
        line_place(1, "event", "record"),
        line_place(1, "event", "key"),
        line_place(1, "event", "plan"),
        line_place(1, "event", "hides"),
    )


def _claim_policy(begun: Begun, claims: Claims) -> None:
    given = to_wire(begun.policy)
    place = line_place(1, "event", "policy")
    try:
        policy = EnforcementPolicy.of(begun.policy)
    except (RunbookError, TypeError) as error:
        said = clip(visible(str(error)), 300)
        told, basis = "the policy is one", "the rules a policy has"
        claims.settle("header.policy", told, False, basis, place, said=said)
        return
    told = f"the policy is {policy.label}, every rule of it told"
    whole = policy.to_dict()
    if given.keys() != whole.keys():
        basis = "the rules a policy has"
        pair = sorted(given), sorted(whole)
        claims.settle("header.policy", told, False, basis, place, told=pair)
    else:
        claims.unchecked("header.policy", told, NOTHING_ELSE, place)
