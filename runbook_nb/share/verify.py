"""Verifying files: every claim of the answers they carry, and that what they show is these answers.

Sharing layer. Nothing in a file is run or fetched. A file is read as what somebody says, and each
thing it says is held against whatever else it carries, or the checker has.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from runbook_nb._text import clip, counted, listed, visible
from runbook_nb.errors import LoadError
from runbook_nb.playbooks.journal_files import is_journal_name, verify_journals
from runbook_nb.record.claims import NAMED, Claims, Place, place_words
from runbook_nb.record.verification import MALFORMED, Verification
from runbook_nb.runbook import Envelope
from runbook_nb.runbook.grounds import Ground
from runbook_nb.runbook.verify import claims_about
from runbook_nb.share.celltexts import claim_cells
from runbook_nb.share.damage import CARRIERS, damage_of
from runbook_nb.share.explained import claim_explanation
from runbook_nb.share.hydrate import (
    Found,
    document_in,
    envelope_of,
    explained_in,
    found_in,
    outputs_in,
)
from runbook_nb.share.outputs import (
    HTML,
    TEXT,
    Output,
    Redrawn,
    claim_output,
    claim_twin,
    joined,
)


def verify_file(
    path: str | os.PathLike[str],
    *,
    artifacts: Any = None,
    rules: Any = (),
    recording: Any = None,
    head: str | Mapping[str, str] | None = None,
) -> tuple[Verification, ...]:
    """Check the answers a notebook, a page or a JSON file carries, and what it shows of them.

    A journal of a playbook is checked too: that nothing in it was changed, and each decision
    judged again.

    Parameters
    ----------
    path : path
        ``….ipynb``, ``….html`` or ``….json``; a journal ``….jsonl`` or ``….sqlite``.
    artifacts : BoundArtifacts or Toolbox, optional
        Where tickets are redeemed; what the file carries beside them is used as well.
    rules : RuleSet, mapping, or several, optional
        Rule sets from elsewhere, for the digest of those that judged.
    recording : path, mapping or Recording, optional
        A recording of the run from elsewhere.
    head : str or mapping, optional
        The digest of a journal's last line, noted elsewhere; by key where it keeps several plans.

    Returns
    -------
    tuple of Verification
        One per answer or plan, in the order of the file; none where the file carries none.

    Raises
    ------
    LoadError
        The file cannot be read, or is none of these.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import runbook_nb as rb
    >>> rules = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], rb.Default("fresh"))
    >>> envelope = rb.triage([{"host": "a", "days": 9}], rules, subject="host", source="one row")
    >>> with TemporaryDirectory() as folder:
    ...     file = envelope.to_notebook(f"{folder}/answer.ipynb")
    ...     before = verify_file(file)
    ...     _ = file.write_text(file.read_text().replace("days 9 &gt; 7", "days 8 &gt; 7"))
    ...     after = verify_file(file)
    >>> before[0].ok, [claim.id for claim in after[0].contradicted][:2]
    (True, ['output[2].text/html.Verdicts', 'output[2].walk'])
    """
    path = Path(path)
    if is_journal_name(path):
        return verify_journals(path, head=head)
    found = [one for one in found_in(path) if _is_answer(one)]
    more = {"artifacts": artifacts, "rules": rules, "recording": recording}
    answers = [list(forms) for _, forms in groupby(found, key=lambda one: (one.output, one.place))]
    made = [_verified(path, forms, more) for forms in answers]
    if path.suffix.lower() == ".ipynb" and made:
        first = [forms[0] for forms in answers]
        made[0] = _with_others(path, made[0], first, more)
        made[0] = _with_texts(path, made[0], first, more)
    return tuple(made)


def _is_answer(one: Found) -> bool:
    if one.carrier == "file":
        payload = one.payload
        return isinstance(payload, Mapping) and bool({"af_coverage", "envelope"} & payload.keys())
    return one.is_answer


def _verified(path: Path, forms: Sequence[Found], more: Mapping[str, Any]) -> Verification:
    """Check one answer, in whatever forms it is carried."""
    claims = Claims()
    place = forms[0].place
    for one in forms:
        if one.carrier == "file":
            continue
        told = f"the answer in {CARRIERS[one.carrier]} is whole"
        basis, id_ = "the digest beside it", f"form.{one.carrier}"
        copy = next((other for other in forms if other.payload is not None), None)
        whole = one.payload is not None
        claims.settle(id_, told, whole, basis, said="" if whole else damage_of(one, copy))
    read = [one for one in forms if one.payload is not None]
    if not read:
        return Verification(place, claims.made)
    first = read[0]
    try:
        envelope = envelope_of(path, first, more["artifacts"])
    except LoadError as error:
        told = "the answer can be read"
        said = clip(visible(error.message), 300)
        claims.settle("form", told, False, "the form of answers", told=(said, "an answer"))
        return Verification(place, claims.made)
    ground = Ground(
        envelope, artifacts=envelope.artifacts, rules=more["rules"], recording=more["recording"]
    )
    _carried(first, ground, claims)
    for other in read[1:]:
        wire = other.payload.get("envelope") if other.payload is not None else None
        told = f"{CARRIERS[first.carrier]} and {CARRIERS[other.carrier]} carry the same answer"
        claim_twin("form.same", told, ground, wire, ("forms", other.carrier), claims)
    claims.made += claims_about(ground)
    output = _output_of(path, first)
    if output is not None:
        try:
            claim_output(Redrawn(ground), output, claims)
        except MALFORMED as error:
            told, said = "it can be drawn anew", f"{type(error).__name__}: {error}"
            basis = "the form of answers"
            claims.settle(output.name, told, False, basis, output.place, told=(said, None))
    named = f"{envelope.tool} in {place}" if first.carrier != "file" else envelope.tool
    return Verification(named, claims.made)


def _carried(one: Found, ground: Ground, claims: Claims) -> None:
    """Claim how many rows and subjects are carried, of how many."""
    said = one.payload.get("carried") if one.payload is not None else None
    if not isinstance(said, Mapping) or ground.dossier is None:
        return
    dossier = ground.dossier
    expected = {
        "rows": [len(dossier.rows), dossier.rows_total],
        "subjects": [len(ground.subjects), dossier.subjects_total],
    }
    told = f"carried: {dict(said)}"
    claims.check("form.carried", told, dict(said), expected, "the dossier", ("carried",))


# --- outputs --------------------------------------------------------------------------------------


def _output_of(path: Path, one: Found) -> Output | None:
    """Give the output that shows an answer; None where the file is the answer alone."""
    if one.carrier == "file":
        return None
    if one.output is None:
        data = {HTML: one.card or path.read_text(encoding="utf-8")}
        which = one.place.removeprefix("answer ").partition(" ")[0]
        name = f"page[{which}]" if which.isdecimal() else "page"
        return Output(name, data, ("page",), page=True, export=not one.card)
    data = next((found for at, found in outputs_in(path) if at == one.output), {})
    cell, number = one.output
    place: Place = ("cells", cell, "outputs", number, "data")
    return Output(output_name(one.output), data, place, export=one.carrier == "metadata")


def output_name(at: tuple[int, int]) -> str:
    """Name an output: by its cell, and its number where it is not the cell's first.

    Examples
    --------
    >>> output_name((1, 0)), output_name((1, 2))
    ('output[2]', 'output[2.3]')
    """
    cell, number = at
    return f"output[{cell + 1}]" if not number else f"output[{cell + 1}.{number + 1}]"


def _with_others(
    path: Path, first: Verification, answers: Sequence[Found], more: Mapping[str, Any]
) -> Verification:
    """Add claims about the outputs that carry no answer: explanations of rows, and others."""
    claims = Claims()
    shown = {one.output for one in answers}
    others: list[Place] = []
    explained: list[Envelope] | None = None
    own: set[int] = set()
    for at, data in outputs_in(path):
        text = joined(data.get(TEXT))
        if at in shown:
            continue
        if not text.startswith("Decision "):
            others.append(("cells", at[0], "outputs", at[1]))
            continue
        if explained is None:
            explained = list(_envelopes(path, answers, more))
            own = explained_in(path)
        claim_explanation(explained, output_name(at), at, data, claims, own=at[0] in own)
    if others:
        rest = [f"{len(others) - NAMED} more"] if len(others) > NAMED else []
        named = listed([*map(place_words, others[:NAMED]), *rest])
        told = f"{counted(len(others), 'other output')}: {named}"
        claims.unchecked("outputs", told, "they carry no answer", *others, count=len(others))
    return Verification(first.name, [*first.claims, *claims.made]) if claims.made else first


def _with_texts(
    path: Path, first: Verification, answers: Sequence[Found], more: Mapping[str, Any]
) -> Verification:
    """Add claims about the texts between the outputs."""
    claims = Claims()
    drawn = (Redrawn(Ground(envelope)) for envelope in _envelopes(path, answers, more))
    try:
        claim_cells(document_in(path), drawn, claims)
    except MALFORMED as error:
        told, said = "the texts can be drawn anew", f"{type(error).__name__}: {error}"
        claims.settle("cells", told, False, "the form of answers", told=(said, None))
    return Verification(first.name, [*first.claims, *claims.made]) if claims.made else first


def _envelopes(path: Path, answers: Sequence[Found], more: Mapping[str, Any]) -> Iterator[Envelope]:
    for one in answers:
        try:
            yield envelope_of(path, one, more["artifacts"])
        except LoadError:
            continue
