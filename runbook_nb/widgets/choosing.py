"""Which record an explorer looks at: the fullest there is.

A live record, a walk filed whole and a recording all give a walk over a log, which answers
everything. Where none can be had, the dossier tells what became of each subject, and the filed
rows what happened within a cap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from runbook_nb._text import counted
from runbook_nb.chart.layout import rules_by_key
from runbook_nb.chart.model import Chart
from runbook_nb.errors import DefinitionError, RunbookError
from runbook_nb.record.projection import WalkRow
from runbook_nb.record.run import Run
from runbook_nb.record.structure import Structure
from runbook_nb.record.walk import Walk
from runbook_nb.runbook.dossier import Dossier
from runbook_nb.runbook.envelope import Envelope
from runbook_nb.runbook.filed import FiledWalk
from runbook_nb.widgets.sources import Source
from runbook_nb.widgets.told import ToldSource
from runbook_nb.widgets.walked import WalkSource

NOTHING_RAN: Final = "nothing has run"


def source_of(shown: Any) -> Source:
    """Give the fullest record of what is to be explored.

    Parameters
    ----------
    shown : Envelope, Run, Walk, FiledWalk, Chart or Structure
        Or anything with a ``walk`` over a log, or a ``structure``.

    Raises
    ------
    DefinitionError
        It has neither.
    """
    if isinstance(shown, Envelope):
        return _of_envelope(shown)
    if isinstance(shown, Run):
        return _of_run(shown)
    if isinstance(shown, Walk):
        return WalkSource(shown, "from its record")
    if isinstance(shown, FiledWalk):
        return _of_filed(shown, None, "", None)
    if isinstance(shown, Chart):
        rules = dict(rules_by_key(shown, ""))
        return ToldSource(shown.name, NOTHING_RAN, structure=shown.structure, rules=rules)
    if isinstance(shown, Structure):
        return ToldSource(shown.name, NOTHING_RAN, structure=shown)
    walk = getattr(shown, "walk", None)
    if isinstance(walk, Walk):
        return WalkSource(walk, "from its record", name=str(getattr(shown, "name", "")))
    structure = getattr(shown, "structure", None)
    if isinstance(structure, Structure):
        return ToldSource(structure.name, NOTHING_RAN, structure=structure)
    raise DefinitionError(
        f"a {type(shown).__name__} has neither a walk nor a structure to explore",
        where="explore",
        fix="explore an envelope, a run, a walk or a chart",
    )


def _of_run(run: Run) -> Source:
    from runbook_nb.record.recorded import RecordedRun

    recorded = isinstance(run, RecordedRun)
    lacking = "; ".join(run.not_carried) if isinstance(run, RecordedRun) else ""
    return WalkSource(
        run.walk,
        "from the recording" if recorded else "from the live record",
        name=run.name,
        initial=run.raw_initial,
        lacking=lacking,
    )


def _of_envelope(envelope: Envelope) -> Source:
    run = envelope.run
    name = envelope.tool
    if run is not None:
        return WalkSource(
            run.walk, "from the live record", name=name or run.name, initial=run.raw_initial
        )
    walk = envelope.walk
    dossier = envelope.dossier if envelope.carries_dossier else None
    assert isinstance(walk, FiledWalk)  # noqa: S101 - only a live envelope has any other
    if _whole(walk) is None and (recorded := _recording(envelope)) is not None:
        return recorded
    return _of_filed(walk, dossier, name, envelope)


def _whole(walk: FiledWalk) -> Walk | None:
    try:
        return walk.whole
    except RunbookError:
        return None


def _recording(envelope: Envelope) -> Source | None:
    from runbook_nb.record.loading import load_recording

    try:
        run = load_recording(envelope.recording())
    except RunbookError:
        return None
    return WalkSource(
        run.walk,
        "from the recording",
        name=envelope.tool or run.name,
        initial=run.raw_initial,
        lacking="; ".join(run.not_carried),
    )


def _of_filed(
    walk: FiledWalk, dossier: Dossier | None, name: str, envelope: Envelope | None
) -> Source:
    whole = _whole(walk)
    if whole is not None:
        return WalkSource(whole, "from the walk filed whole", name=name or whole.name)
    try:
        rows: Sequence[WalkRow] | None = tuple(walk.rows)
        missing = ""
    except RunbookError as error:
        rows, missing = None, error.message
    steps = walk.descriptor.get("steps_executed")
    lacking = "the state and the edges taken are not carried"
    if rows is not None:
        capped = f"the filed rows, {len(rows)} of {walk.total}"
        told = f"from {capped}" if dossier is None else f"from the dossier, and {capped}"
    elif dossier is not None:
        held = "" if dossier.complete else f", some of {counted(dossier.subjects_total, 'subject')}"
        told, lacking = f"from the dossier{held}", f"{missing}; {lacking}"
    else:
        told = "nothing of the walk is carried"
        lacking = missing
    numbered = None if rows is None else [_numbered(row, step) for step, row in enumerate(rows)]
    return ToldSource(
        name,
        told,
        structure=None if dossier is None else dossier.structure,
        dossier=dossier,
        rows=numbered if rows is not None else (None if dossier is not None else []),
        steps=steps if isinstance(steps, int) else None,
        lacking=lacking,
    )


def _numbered(row: WalkRow, step: int) -> WalkRow:
    return row if row.step == step else replace(row, step=step)
