"""What a paused run leaves behind: JSON that says what is asked and where the run stands.

Record layer. A checkpoint holds real values, because the run must be able to go on from it; it is
for the one who answers, never a served view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from runbook_nb._frozen import FrozenDict, thaw
from runbook_nb._json import WireReport, encode, to_wire
from runbook_nb.errors import CheckpointError, JsonError

if TYPE_CHECKING:
    from runbook_nb.record.run import Run

#: Written into every checkpoint.
CHECKPOINT_FORMAT: Final = "runbook_nb/checkpoint/1"


def make_checkpoint(run: Run) -> dict[str, Any]:
    """Make the checkpoint of a paused run.

    Parameters
    ----------
    run : Run
        With status ``paused``.

    Returns
    -------
    dict
        ``{format, procedure, paused_at, pause, args, state, steps_executed, fan_outs}``; plain
        JSON. Dates, sets and the like in the state are written as JSON text; ``converted`` lists
        the type names of values that could not be carried at all, with how often.

    Raises
    ------
    CheckpointError
        When the question itself cannot be written as JSON.
    """
    args, state, _ = run.raw
    pause = thaw(run.raw_pause)
    for name, value in pause.items():
        try:
            encode(value)
        except JsonError as error:
            raise CheckpointError(
                f"interrupt was given a {name} that JSON cannot carry: {error}",
                where=f"interrupt {name}",
                fix="pass plain texts, numbers, lists and mappings",
            ) from error
    place = run.raw_ended_at or FrozenDict()
    report = WireReport()
    return {
        "format": CHECKPOINT_FORMAT,
        "procedure": run.name,
        "paused_at": {name: place.get(name) for name in ("stage", "stage_id", "runtime_stage_id")},
        "pause": pause,
        "args": to_wire(args, report),
        "state": to_wire(state, report),
        "steps_executed": run.steps_executed,
        "fan_outs": [counts.to_dict() for counts in run.fan_outs],
        "converted": dict(report.replaced),
    }
