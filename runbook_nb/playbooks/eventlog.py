"""What happened under playbooks as an event log for process mining: one row for each happening.

The names of the columns, and the words for what happens to an activity, are those of the XES
standard, so that tools which read such logs take them as they are. A row holds names, times and
outcomes; arguments, results and what was said in words are not in it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from runbook_nb._display import Renderable, through
from runbook_nb._frozen import FrozenDict, Immutable
from runbook_nb._text import counted, did_you_mean, visible
from runbook_nb._view import Card, Column, Data, Section, Table
from runbook_nb.errors import PlaybookDefinitionError
from runbook_nb.playbooks.events import (
    Admitted,
    Approved,
    Begun,
    Closed,
    Declined,
    Event,
    Failed,
    Finished,
    Refused,
    Reset,
    Settled,
    Skipped,
    Stuck,
)
from runbook_nb.playbooks.policy import EnforcementPolicy
from runbook_nb.record.redact import Redactor, as_redact

if TYPE_CHECKING:
    import pandas as pd

#: What a row can be about.
Activity = Literal["step", "tool"]

#: The columns of a row, in order: those of the standard, then those of playbooks.
COLUMNS: Final = (
    "case:concept:name",
    "concept:name",
    "time:timestamp",
    "lifecycle:transition",
    "org:resource",
    "step",
    "tool",
    "outcome",
    "by",
    "deviations",
    "call",
    "case:playbook",
    "case:version",
    "case:policy",
    "case:verdict",
)

#: What the standard calls what became of a call.
_ENDED: Final[Mapping[str, str]] = {"error": "ate_abort", "cancelled": "pi_abort"}


@dataclass(frozen=True, kw_only=True, repr=False)
class EventLog(Immutable, Renderable):
    """What happened under playbooks, row by row.

    Attributes
    ----------
    activity : {"step", "tool"}
        What ``concept:name`` names.
    cases : int
        How many runs it tells of.
    records : tuple of mapping
        The rows, run by run, each in the order in which things happened. Times are datetimes; what
        is not known is None.

    Examples
    --------
    >>> EventLog(activity="step", cases=0, records=())
    <EventLog of steps · 0 runs · 0 rows>
    """

    activity: Activity
    cases: int
    records: tuple[Mapping[str, Any], ...]

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self.records)

    def to_frame(self) -> pd.DataFrame:
        """Give the rows as a DataFrame, as readers of event logs take it."""
        import pandas as pd

        frame = pd.DataFrame([dict(row) for row in self.records], columns=list(COLUMNS))
        frame["time:timestamp"] = pd.to_datetime(frame["time:timestamp"], utc=True)
        return frame

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write the rows as CSV.

        A text that a spreadsheet would take for a formula is written behind an apostrophe.
        """
        rows = [[row[name] for name in COLUMNS] for row in self.records]
        written: Path = through("table", path, COLUMNS, rows)
        return written

    def view(self) -> Card:
        """Show the rows as far as a view shows any."""
        heads = ("run", self.activity, "at", "transition", "outcome", "by")
        named = ("case:concept:name", "concept:name", "time:timestamp", "lifecycle:transition")
        rows = tuple(
            tuple(Data(value=row[name]) for name in (*named, "outcome", "by"))
            for row in self.records
        )
        table = Table(
            columns=tuple(Column(head=head) for head in heads),
            rows=rows,
            total=len(rows),
            rest="log.to_frame()",
            empty="nothing happened",
        )
        return Card(
            kind="EventLog",
            name=f"of {self.activity}s",
            qualifiers=(counted(self.cases, "run"),),
            headline=counted(len(rows), "row"),
            sections=(Section(label="", parts=(table,)),),
        )


def event_log(sources: Any, *, activity: Activity = "step") -> EventLog:
    """Tell what happened under playbooks as an event log for process mining.

    Parameters
    ----------
    sources : object or iterable of object
        What has events: enforcers, runs, journals; or the events of one run.
    activity : {"step", "tool"}
        Whether the rows tell when steps began and ended, or when tools were called and came back.

    Returns
    -------
    EventLog

    Raises
    ------
    PlaybookDefinitionError
        There is no such activity, or something has no events of a playbook.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> from runbook_nb.playbooks.model import Playbook
    >>> at = datetime(2026, 11, 29, tzinfo=UTC)
    >>> book = Playbook(id="ir", name="Incident response")
    >>> begun = Begun(seq=1, at=at, playbook=book, digest="", policy={}, skills={}, key="run-7")
    >>> call = Admitted(seq=2, at=at, call_id="c1", tool="siem", step_id="detect")
    >>> row = event_log([begun, call]).records[0]
    >>> row["case:concept:name"], row["concept:name"], row["lifecycle:transition"]
    ('run-7', 'detect', 'start')
    """
    if activity not in ("step", "tool"):
        raise PlaybookDefinitionError(
            f"an event log is not about {activity!r}",
            code="unknown_activity",
            where="activity",
            fix=did_you_mean(str(activity), ("step", "tool")) or "use 'step' or 'tool'",
        )
    rows: list[Mapping[str, Any]] = []
    names: Counter[str] = Counter()
    runs = list(_runs(sources))
    for n, (events, text) in enumerate(runs, 1):
        begun = events[0]
        if not isinstance(begun, Begun):
            raise _no_events(events, "its first event does not say what was begun")
        name = begun.key or f"{begun.playbook.id}-{n}"
        names[name] += 1
        case = name if names[name] == 1 else f"{name} ({names[name]})"
        rows += [_served(row, text) for row in _of_run(begun, events[1:], case, activity)]
    return EventLog(activity=activity, cases=len(runs), records=tuple(rows))


def _served(row: Mapping[str, Any], text: Callable[[str], str]) -> Mapping[str, Any]:
    """Give a row with its names as the policy of its run lets them be seen."""
    return FrozenDict(
        {name: text(said) if isinstance(said, str) else said for name, said in row.items()}
    )


def _runs(sources: Any) -> Iterator[tuple[Sequence[Event], Callable[[str], str]]]:
    """Yield the events of each run, whatever they were given as, and what hides its secrets."""
    found = getattr(sources, "events", None)
    if found is not None:
        redactor = getattr(sources, "redactor", None)
        if redactor is None:
            redactor = Redactor(as_redact(getattr(sources, "redact", None)))
        yield tuple(found() if callable(found) else found), redactor.text
        return
    if isinstance(sources, str | bytes | Mapping) or not isinstance(sources, Iterable):
        raise _no_events(sources, "it has no events")
    held = [*sources]
    if held and isinstance(held[0], Event):
        yield held, Redactor(None).text
        return
    for source in held:
        yield from _runs(source)


def _no_events(given: Any, why: str) -> PlaybookDefinitionError:
    return PlaybookDefinitionError(
        f"no event log can be made of a value of type {type(given).__name__}: {why}",
        code="no_events",
        where="sources",
        fix="give enforcers, runs, journals, or the events of one run",
    )


def _of_run(
    begun: Begun, events: Sequence[Event], case: str, activity: Activity
) -> Iterator[Mapping[str, Any]]:
    last = next((one for one in reversed(events) if isinstance(one, Finished | Reset)), None)
    told = {
        "case:concept:name": visible(case),
        "case:playbook": begun.playbook.id,
        "case:version": begun.playbook.version,
        "case:policy": EnforcementPolicy.of(begun.policy).label if begun.policy else None,
        "case:verdict": last.verdict if isinstance(last, Finished) else None,
    }
    happened = _of_steps(events) if activity == "step" else _of_tools(events)
    for event, found in happened:
        row = {**told, "time:timestamp": event.at, **found}
        yield FrozenDict({name: row.get(name) for name in COLUMNS})


def _of_steps(events: Iterable[Event]) -> Iterator[tuple[Event, dict[str, Any]]]:
    begun: set[str] = set()  # and not ended yet
    met: set[str] = set()
    for event in events:
        step_id = getattr(event, "step_id", None)
        if isinstance(event, Reset):
            begun.clear()
            met.clear()
            continue
        if step_id is None:
            continue
        starts = isinstance(event, Admitted) and not event.housekeeping and step_id not in begun
        # A call may be filed under a step that was not current when it was let through.
        starts |= isinstance(event, Settled) and event.filed and step_id not in met
        if starts:
            begun.add(step_id)
            met.add(step_id)
            yield event, _step(step_id, "start")
        ended = _ended(event)
        if ended is not None:
            if ended["outcome"] in ("completed", "skipped"):
                begun.discard(step_id)
                met.add(step_id)
            yield event, _step(step_id, **ended)


def _step(step_id: str, transition: str, **more: Any) -> dict[str, Any]:
    return {"concept:name": step_id, "step": step_id, "lifecycle:transition": transition, **more}


def _ended(event: Event) -> dict[str, Any] | None:
    """Say what an event did to a step, in the words of the standard; None for nothing."""
    if isinstance(event, Closed):
        told = {"transition": "complete", "outcome": "completed", "by": event.by}
        return {**told, "org:resource": event.who, "deviations": ", ".join(event.violations)}
    if isinstance(event, Skipped):
        word = "autoskip" if event.by == "calls" else "manualskip"
        told = {"transition": word, "outcome": "skipped", "by": event.by}
        return {**told, "org:resource": event.who}
    if isinstance(event, Failed):
        told = {"transition": "ate_abort", "outcome": "failed", "by": event.by}
        return {**told, "org:resource": event.who}
    if isinstance(event, Declined):
        told = {"transition": "ate_abort", "outcome": "declined"}
        return {**told, "org:resource": event.who}
    if isinstance(event, Stuck):
        return {"transition": "suspend", "outcome": "stuck"}
    if isinstance(event, Approved):
        return {"transition": "unknown", "outcome": "approved", "org:resource": event.who}
    return None


def _of_tools(events: Iterable[Event]) -> Iterator[tuple[Event, dict[str, Any]]]:
    called: dict[str, Admitted] = {}
    for event in events:
        if isinstance(event, Admitted):
            called[event.call_id] = event
            yield event, _call(event.tool, event.call_id, event.step_id, "start")
        elif isinstance(event, Settled):
            before = called.get(event.call_id)
            if before is not None:
                word = _ENDED.get(event.outcome, "complete")
                more = {"outcome": event.outcome}
                step_id = event.step_id or before.step_id
                yield event, _call(before.tool, event.call_id, step_id, word, **more)
        elif isinstance(event, Refused):
            more = {"outcome": "refused", "deviations": event.violation}
            yield event, _call(event.tool, event.call_id, event.step_id, "withdraw", **more)


def _call(
    tool: str, call_id: str, step_id: str | None, transition: str, **more: Any
) -> dict[str, Any]:
    told = {"concept:name": tool, "tool": tool, "step": step_id, "call": call_id}
    return {**told, "lifecycle:transition": transition, **more}
