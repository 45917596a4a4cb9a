"""A run as one bundle that can be filed and drawn elsewhere: ``{snapshot, events, structure}``.

Record layer. The bundle is served: a policy that scrubs the walk scrubs it by the same rule. Its
``events`` list is empty by construction, because no agent turn took place; the run's own story
is in ``snapshot``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._display import Renderable
from runbook_nb._frozen import Immutable
from runbook_nb._json import WireReport, encode_deep, to_wire
from runbook_nb._text import MISSING, counted
from runbook_nb._value import frozen
from runbook_nb._view import Card, Cell, Data, Fact, Facts, Section
from runbook_nb.errors import RunbookError
from runbook_nb.record.published import published_structure
from runbook_nb.record.served import served_by

if TYPE_CHECKING:
    from runbook_nb.record.run import Run

#: The three keys of a recording, in order.
RECORDING_KEYS: Final = ("snapshot", "events", "structure")

#: Under which id our own record stands among what observers keep, and what it begins with.
OWN_ID: Final = "runbook_nb"
OWN_FORMAT: Final = "runbook_nb/recording/1"


@frozen(kw_only=False, repr=False)
class Recording(Immutable, Renderable):
    """A recorded run in its published shape.

    Attributes
    ----------
    snapshot : mapping
        ``sharedState``, ``executionTree``, ``commitLog``, ``subflowResults``, and under
        ``recorders`` the narrative and our own record.
    events : list
        Empty for a chart's own run.
    structure : mapping
        The procedure's graph in its published, nested form.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> recording = flow_chart("c", lambda s: s.set("n", 1), id="a").build().run_sync().recording()
    >>> list(recording.to_dict()), recording.snapshot["sharedState"]
    (['snapshot', 'events', 'structure'], {'n': 1})
    """

    snapshot: Mapping[str, Any]
    events: list[Any]
    structure: Mapping[str, Any]

    @classmethod
    def of(cls, run: Run) -> Recording:
        """Record a run."""
        return recording_of(run, WireReport())

    def to_dict(self) -> dict[str, Any]:
        """Give exactly the three published keys."""
        return {name: getattr(self, name) for name in RECORDING_KEYS}

    def to_json(self) -> str:
        """Give the recording as JSON text, however long the run was; see `load_recording`."""
        return encode_deep(self.to_dict())

    def view(self) -> Card:
        """Show what the bundle holds, and whether the whole run can be read back from it."""
        held = tuple(Fact(term=term, detail=told) for term, told in self._held())
        facts = Facts(label="", items=held, total=len(held))
        return Card(
            kind="Recording",
            name=str(self.structure.get("name", "")),
            headline=counted(_size(self.snapshot.get("commitLog")), "commit"),
            sections=(Section(label="Holds", parts=(facts,)),),
        )

    def _held(self) -> Iterator[tuple[str, Cell]]:
        yield "state at the end", counted(_size(self.snapshot.get("sharedState")), "key")
        kept = self.snapshot.get("recorders")
        data = {
            one.get("id"): one.get("data")
            for one in (kept if isinstance(kept, list | tuple) else ())
            if isinstance(one, Mapping)
        }
        if "narrative" in data:
            yield "what happened", counted(_size(data["narrative"]), "row")
        own = data.get(OWN_ID)
        if not isinstance(own, Mapping):
            yield "whole record", "not carried; walk and commits are what was published"
        elif "log" in own:
            yield "whole record", ("carried, for", Data(value="rb.load_recording", tone="code"))
        else:
            yield "whole record", ("not carried:", Data(value=own.get("missing")))
        if isinstance(own, Mapping) and own.get("hidden"):
            yield "hidden", "what the policy of the run hides is not in it"


def _size(part: Any) -> int:
    """Count what a part of a bundle holds, whatever a bundle from elsewhere has there."""
    return len(part) if isinstance(part, Mapping | list | tuple) else 0


def recording_of(run: Run, report: WireReport) -> Recording:
    """Record a run, and count the values JSON cannot carry, whose type names stand for them."""
    from runbook_nb.record.publishing import published_narrative, published_snapshot

    snapshot = published_snapshot(run, report)
    snapshot["recorders"] = [
        {
            "id": "narrative",
            "name": "Narrative",
            "description": "What happened, row by row",
            "data": published_narrative(run),
        },
        {
            "id": OWN_ID,
            "name": "Record",
            "description": "The whole record, for rb.load_recording",
            "data": own_record(run, report),
        },
    ]
    return Recording(snapshot, [], published_structure(run.structure))


def own_record(run: Run, report: WireReport) -> dict[str, Any]:
    """Give all of a run's record that can be seen, in our own written form.

    A log that cannot be written costs the log, not the recording: what is published of it is
    there all the same, and ``missing`` says why.
    """
    args, state, result = run.raw
    beside = {"args": args, "initial": run.raw_initial, "state": state, "result": result}
    if run.raw_output is not MISSING:
        beside["output"] = run.raw_output
    from runbook_nb.record.written import write_log  # of which no answer without one has a use

    own = {
        "format": OWN_FORMAT,
        "name": run.name,
        "status": run.status,
        "hidden": run.redactor.active,
        "error": to_wire(run.error, report),
        "pause": to_wire(run.pause, report),
        "ended_at": to_wire(run.ended_at, report),
        "structure": to_wire(run.structure.to_dict(), report),
    }
    try:
        served = served_by(run.redactor)
        own["log"] = write_log(run.log, served, beside=beside, report=report, strict=False)
    except RunbookError as error:
        own["missing"] = run.redactor.text(error.message)
    return own
