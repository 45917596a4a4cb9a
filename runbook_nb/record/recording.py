"""A run as one bundle that can be filed and drawn elsewhere: ``{snapshot, events, structure}``.

Record layer. The bundle is served: a policy that scrubs the walk scrubs it by the same rule. Its
``events`` list is empty by construction, because no agent turn took place; the run's own story
is in ``snapshot``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._display import Renderable
from runbook_nb._frozen import Immutable
from runbook_nb._json import WireReport, to_wire
from runbook_nb._text import counted
from runbook_nb._view import Card
from runbook_nb.record.published import published_structure

if TYPE_CHECKING:
    from runbook_nb.record.run import Run

#: The three keys of a recording, in order.
RECORDING_KEYS: Final = ("snapshot", "events", "structure")


@dataclass(frozen=True, slots=True, repr=False)
class Recording(Immutable, Renderable):
    """A recorded run in its published shape.

    Attributes
    ----------
    snapshot : mapping
        ``sharedState``, ``commitLog``, ``subflowResults`` and the narrative under ``recorders``.
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

    def view(self) -> Card:
        """Show what the bundle holds."""
        return Card(
            kind="Recording",
            name=str(self.structure.get("name", "")),
            headline=counted(len(self.snapshot.get("commitLog", ())), "commit"),
        )


def recording_of(run: Run, report: WireReport) -> Recording:
    """Record a run, and count the values JSON cannot carry, whose type names stand for them."""
    snapshot: dict[str, Any] = {"sharedState": to_wire(run.state, report)}
    if not run.redactor.active:
        # The state before anything ran; left out under a policy, which cannot vouch for it.
        snapshot["initialState"] = {}
    snapshot["commitLog"] = to_wire([commit.to_dict() for commit in run.commits], report)
    snapshot["commitValues"] = "full"
    subflows = subflow_results(run, report)
    if subflows:
        snapshot["subflowResults"] = subflows
    snapshot["recorders"] = [
        {"id": "narrative", "name": "Narrative", "data": to_wire(run.walk.to_dicts(), report)}
    ]
    return Recording(snapshot, [], published_structure(run.structure))


def subflow_results(run: Run, report: WireReport) -> dict[str, Any]:
    """Give each branch's final state and commits under its path, served."""
    from runbook_nb.record.commits import commits_of
    from runbook_nb.record.shapes import facts_of, state_after

    out: dict[str, Any] = {}
    for fan, index, prefix in run.walk.branches():
        shape = fan.shape(index)
        if shape is None:
            continue
        path = fan.path(prefix, index)[:-1]
        facts, offset = facts_of(run.log, shape), fan.offsets[index]
        text = run.redactor.text
        state = run.redactor.served(state_after(facts, fan.values, offset))
        out[text(path)] = {
            "subflowId": text(path),
            "subflowName": text(f"{fan.stage.name} [{index}]"),
            "parentStageId": text(f"{prefix}{fan.stage.key}"),
            "status": fan.status(index),
            "treeContext": {
                "globalContext": to_wire(state, report),
                "history": to_wire(
                    [
                        commit.to_dict()
                        for commit in commits_of(
                            run.log,
                            shape.codes,
                            fan.values,
                            run.redactor,
                            f"{path}/",
                            offset=offset,
                        )
                    ],
                    report,
                ),
            },
        }
    return out
