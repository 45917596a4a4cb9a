"""The line a widget puts before the text of the answer it shows, and what it says of it.

Sharing layer. Where an explorer was left is nothing an answer says, so which row that was cannot be
checked; what the line tells of a row that decided is in the dossier.
"""

from __future__ import annotations

import re
from typing import Final

from runbook_nb._text import show, visible
from runbook_nb.record.claims import Claims, Place
from runbook_nb.runbook.grounds import Ground

#: Widgets whose static view is the card of an answer.
_EXPLORER: Final = "Explorer "
_ROW: Final = re.compile(r"row (\d{1,12}) of (\d{1,12}) · (.*)")
_WALK: Final = "the walk of the answer"


def parted(found: str, begins: str) -> tuple[str, str]:
    r"""Part the line of a widget from the text of the card below it.

    Parameters
    ----------
    found : str
        The plain text of an output.
    begins : str
        The first line of the card.

    Examples
    --------
    >>> parted("Explorer a · row 1 of 3 ·\nRan Take\nEnvelope a\n  old", "Envelope a")
    ('Explorer a · row 1 of 3 · Ran Take', 'Envelope a\n  old')
    >>> parted("Envelope a\n  old", "Envelope a")
    ('', 'Envelope a\n  old')
    """
    if not found.startswith(_EXPLORER):
        return "", found
    lines = found.split("\n")
    kind = begins.partition(" ")[0] + " "
    at = next(
        (n for n, line in enumerate(lines) if n and line == begins),
        next((n for n, line in enumerate(lines) if n and line.startswith(kind)), 1),
    )
    return " ".join(lines[:at]), "\n".join(lines[at:])


def claim_line(ground: Ground, name: str, line: str, place: Place, claims: Claims) -> None:
    """Claim what the line of an explorer says of the answer below it."""
    begins = f"{_EXPLORER}{visible(ground.envelope.tool)} · "
    told = "the explorer's line says what the answer says"
    if not line.startswith(begins):
        claims.settle(name, told, False, "the tool of the answer", place, told=(line, begins))
        return
    read = _ROW.fullmatch(line.removeprefix(begins))
    if read is None:
        claims.unchecked(name, told, "which source it was drawn from is not carried", place)
        return
    total, row = str(ground.walk.get("total", ground.walk.get("rows"))), f"row {read[1]}"
    if read[2] != total or int(read[1]) >= int(read[2]):
        wanted = f"a row of {total}, numbered from 0"
        said = f"{row} of {read[2]}"
        claims.settle(f"{name}.row", told, False, _WALK, place, told=(said, wanted))
    else:
        claims.unchecked(f"{name}.row", row, "where an explorer was left is carried nowhere", place)
    _decided(ground, name, read[3], place, claims)


def _decided(ground: Ground, name: str, said: str, place: Place, claims: Claims) -> None:
    """Claim that the decision in the line is one of the dossier's."""
    told = "the explorer's line tells a decision as the answer has it"
    expected = _decisions(ground)
    basis = "the decisions in the dossier"
    if any(said in words for words in expected.values()):
        claims.settle(name, told, True, basis, place)
        return
    begins = next((one for one in expected if said.startswith(one)), None)
    if begins is None or not _one_decider(ground):
        claims.unchecked(name, said, "the row it tells is not in the dossier", place)
        return
    claims.settle(name, told, False, basis, place, told=(said, expected[begins][0]))


def _decisions(ground: Ground) -> dict[str, list[str]]:
    """Give the lines that may tell the decisions of the dossier, by how they begin."""
    dossier = ground.dossier
    if dossier is None:
        return {}
    deciders = [str(one.name) for one in dossier.structure.nodes if one.kind == "decider"]
    found: dict[str, list[str]] = {}
    for one in ground.subjects:
        if one.decision is None:
            continue
        whose = "" if one.subject is None else f" of {visible(show(one.subject))}"
        for stage in dict.fromkeys(deciders):
            begins = f"{visible(stage)}{whose}: "
            words = visible(one.decision.sentence)
            found.setdefault(begins, []).append(f"{begins}{words}")
    return found


def _one_decider(ground: Ground) -> bool:
    assert ground.dossier is not None  # noqa: S101 - asked where there is one
    nodes = ground.dossier.structure.nodes
    return ground.complete and sum(one.kind == "decider" for one in nodes) == 1
