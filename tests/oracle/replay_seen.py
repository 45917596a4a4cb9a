"""What one of our runs recorded, as the facts a recorded observation holds.

The log is read by itself here, with a replay of its state, and not through the rows of the walk:
that the walk tells the same rows is a law of its own (`replay_laws`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from replay_evidence import ours
from replay_rows import Row
from replay_shape import key_of

from runbook_nb._frozen import deep_merge
from runbook_nb._text import MISSING, summarize
from runbook_nb.record.log import ROW_TYPES
from runbook_nb.record.slots import Slots
from runbook_nb.rules.decision import Decision, Selection

#: How the ops of a scope are called in a recorded row.
OPERATIONS = {"write": "set", "update": "update", "append": "append", "delete": "delete"}


def plain_value(value: Any) -> Any:
    """Give a value of ours as plain data: of slots what stands in them."""
    if isinstance(value, Slots):
        return [plain_value(slot.value) if slot.status == "ok" else None for slot in value]
    if isinstance(value, Mapping):
        return {key: plain_value(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(one) for one in value]
    return value


@dataclass
class Track:
    """One track as it is read: where it stands, the states of its levels so far."""

    codes: Sequence[int]
    values: Sequence[Any]
    offset: int
    prefix: str
    first: int
    level: str
    states: dict[str, dict[str, Any]]
    #: Keys changed at its own level; the stages the next one may follow.
    touched: dict[Any, None] = field(default_factory=dict)
    ends: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.states.setdefault(self.level, {})


@dataclass
class Here:
    """One event as it is told: its track, its code, its place, its number, its values."""

    at: Track
    code: Any
    place: str
    n: int | None
    values: Sequence[Any]

    @property
    def runtime_id(self) -> str:
        return f"{self.place}#{self.n}"

    @property
    def value(self) -> Any:
        return self.values[0] if len(self.values) else None

    @property
    def state(self) -> dict[str, Any]:
        """The state of the level the event stands in."""
        return self.at.states.setdefault(self.code.stage.path, {})

    @property
    def inside(self) -> str:
        """The level of the chart mounted here."""
        return f"{self.code.stage.key}/"

    @property
    def inner(self) -> dict[str, Any]:
        """The state of the chart mounted here."""
        return self.at.states[self.inside]

    def row(self, kind: str, /, **facts: Any) -> Row:
        """Make a row of this place."""
        _, depth = ROW_TYPES.get(self.code.kind, (kind, 0))
        facts |= {"depth": depth, "stage": self.code.stage.name}
        return Row(kind, self.place, self.n, facts)


class Seen:
    """The record of one run, read from its log."""

    def __init__(self, run: Any, chart: Any) -> None:
        self.run = run
        self.chart = chart
        self.log = run.log
        self.structure = run.structure
        self.redactor = run.redactor
        #: Executed stages, in order: (runtime id, lane prefix, kind).
        self.executed: list[str] = []
        #: Which stage ran after, or because of, which: pairs of keys in the structure.
        self.transitions: set[tuple[str, str]] = set()
        self._ends: list[str] = []
        #: Every fan-out, fork and selection met.
        self.fans: list[Any] = []
        #: Final state of each track: by the place of its branch or child.
        self.views: dict[str, dict[str, Any]] = {}
        #: What each fork child wrote; the state of each mounted chart when last seen.
        self.written: dict[str, dict[str, Any]] = {}
        self.levels: dict[str, dict[str, Any]] = {}
        #: Keys each execution changed, in order, with the verb.
        self.changed: dict[str, list[tuple[str, str]]] = {}
        self.rows: list[Row] = list(self._rows())

    # -- values as they are told ----------------------------------------------------------------

    def served(self, key: Any, value: Any) -> Any:
        """Give a value under a key as views show it."""
        return value if value is MISSING else self.redactor.value(key, value)

    def summary(self, key: Any, value: Any) -> str:
        """Summarise a value as rows do."""
        return str(summarize(plain_value(self.served(key, value)), 80))

    def node(self, place: str) -> Any:
        """Find the structure's node of a place."""
        return self.structure.node(key_of(place))

    def name(self, place: str) -> Any:
        """Give the name the structure has for a place."""
        node = self.node(place)
        return None if node is None else node.name

    # -- rows -------------------------------------------------------------------------------

    def _rows(self) -> Iterator[Row]:
        root = self.log.root
        states = {"": dict(self.run.raw_initial)}
        yield from self._track(Track(root.codes, root.values, 0, "", 0, "", states))

    def _track(self, at: Track) -> Iterator[Row]:
        for event in self.log.events(at.codes):
            code = event.code
            here = Here(
                at,
                code,
                f"{at.prefix}{code.stage.key}",
                at.first + event.execution if event.execution >= 0 else None,
                at.values[at.offset + event.at : at.offset + event.at + self.log.width(code)],
            )
            tell = getattr(self, f"_tell_{code.kind}", None)
            if tell is not None:
                yield from tell(here)
        self._close(at)

    def _close(self, at: Track) -> None:
        self._ends = at.ends
        for path, state in at.states.items():
            if path != at.level:
                self.levels[f"{at.prefix}{path}"] = dict(state)
        self._last = at.states[at.level]
        self.views[at.prefix or ""] = dict(self._last)
        self._touched = {key: self._last[key] for key in at.touched if key in self._last}

    # -- one kind of event each -------------------------------------------------------------

    def _tell_stage(self, here: Here) -> Iterator[Row]:
        key = key_of(here.place)
        self.executed.append(here.runtime_id)
        self.transitions.update((end, key) for end in here.at.ends)
        here.at.ends = [key]
        node = self.node(here.place)
        described = None if node is None else node.description
        yield here.row("stage", name=here.code.stage.name, description=described)

    def _tell_change(self, here: Here) -> Iterator[Row]:
        kind, key, state = here.code.kind, here.code.key, here.state
        self._change(state, kind, key, here.value)
        if here.code.stage.path == here.at.level:
            here.at.touched[key] = None
        self.changed.setdefault(here.runtime_id, []).append((key, kind))
        shown = here.value if kind in ("write", "update") else state.get(key, MISSING)
        yield here.row(
            "step",
            op="write",
            key=key,
            operation=OPERATIONS[kind],
            summary=self.summary(key, shown),
        )

    _tell_write = _tell_update = _tell_append = _tell_delete = _tell_change

    def _tell_read(self, here: Here) -> Iterator[Row]:
        key = here.code.key
        summary = self.summary(key, here.state.get(key, MISSING))
        yield here.row("step", op="read", key=key, summary=summary)

    def _tell_received(self, here: Here) -> Iterator[Row]:
        key = here.code.key
        summary = self.summary(key, here.inner.get(key, MISSING))
        yield here.row("step", op="received", key=key, operation="set", summary=summary)

    def _tell_emit(self, here: Here) -> Iterator[Row]:
        name = here.code.key
        hidden = self.redactor.hides_emit(name)
        payload = "[REDACTED]" if hidden else self.redactor.scrub(here.value)
        yield here.row("emit", name=name, summary=str(summarize(plain_value(payload), 80)))

    def _tell_decision(self, here: Here) -> Iterator[Row]:
        decision = Decision(here.code.path, tuple(here.values), self.redactor)
        yield here.row(
            "condition",
            decider=self.name(here.place),
            chosen=self._branch_name(here.place, decision.branch),
            evidence=ours(decision.evidence),
        )

    def _tell_selection(self, here: Here) -> Iterator[Row]:
        selection = Selection(here.code.path, tuple(here.values), self.redactor)
        facts = self._selected(here, selection.branches)
        yield here.row("selector", **facts, evidence=ours(selection.evidence))

    def _tell_choices(self, here: Here) -> Iterator[Row]:
        yield here.row("selector", **self._selected(here, here.value))

    def _selected(self, here: Here, routes: Any) -> dict[str, Any]:
        names = [self._branch_name(here.place, one) for one in self._in_order(here.place, routes)]
        return {"selected": names, "total": len(self._branches(here.place))}

    def _tell_choice(self, here: Here) -> Iterator[Row]:
        chosen = self._branch_name(here.place, here.code.key)
        yield here.row("condition", decider=here.code.stage.name, chosen=chosen)

    def _tell_route(self, here: Here) -> Iterator[Row]:
        yield here.row("route", chosen=self._branch_name(here.place, here.code.key))

    def _tell_fan_out(self, here: Here) -> Iterator[Row]:
        fan = here.value
        self.fans.append(fan)
        self._ends = here.at.ends
        if len(fan):
            yield from self._fan_out(fan, here)
        here.at.ends = list(self._ends)

    def _tell_enter(self, here: Here) -> Iterator[Row]:
        here.at.states[here.inside] = dict(here.value)
        yield self._carried(here, "entry")

    def _tell_leave(self, here: Here) -> Iterator[Row]:
        row = self._carried(here, "exit")
        row.facts["status"] = here.code.key
        yield row
        self.views[here.runtime_id] = dict(here.inner)

    def _carried(self, here: Here, direction: str) -> Row:
        carried = {key: self.served(key, one) for key, one in here.inner.items()}
        name = here.code.stage.name
        return here.row("subflow", name=name, direction=direction, values=plain_value(carried))

    def _tell_loop(self, here: Here) -> Iterator[Row]:
        path = here.place.rpartition("/")[0]
        target = f"{path}/{here.code.key}" if path else here.code.key
        yield here.row("loop", target=self.name(target), iteration=here.value)

    def _tell_stop(self, here: Here) -> Iterator[Row]:
        yield here.row("break", reason=here.value)

    def _tell_error(self, here: Here) -> Iterator[Row]:
        yield here.row("error", message=here.value["message"], kind=here.code.kind)

    _tell_ended = _tell_error

    def _tell_retry(self, here: Here) -> Iterator[Row]:
        told = here.value
        yield here.row("retry", attempt=told["attempt"], attempts=told["attempts"])

    def _tell_pause(self, here: Here) -> Iterator[Row]:
        yield here.row(here.code.kind, value=plain_value(here.value))

    _tell_resume = _tell_pause

    def _tell_streamed(self, here: Here) -> Iterator[Row]:
        yield here.row("streamed", **dict(here.value))

    # -- what they share --------------------------------------------------------------------

    def _change(self, state: dict[str, Any], kind: str, key: Any, value: Any) -> None:
        if kind == "write":
            state[key] = value
        elif kind == "update":
            state[key] = deep_merge(state.get(key), value)
        elif kind == "append":
            state[key] = [*state.get(key, ()), value]
        else:
            state.pop(key, None)

    def _branches(self, place: str) -> tuple[Any, ...]:
        return tuple(self.structure.branches_of(key_of(place)))

    def _branch_name(self, place: str, route: Any) -> Any:
        return next((n.name for n in self._branches(place) if n.branch == route), route)

    def _in_order(self, place: str, routes: Any) -> list[Any]:
        chosen = [routes] if isinstance(routes, str) else list(routes)
        declared = [node.branch for node in self._branches(place) if node.branch in chosen]
        return declared + [one for one in chosen if one not in declared]

    def _fan_out(self, fan: Any, here: Here) -> Iterator[Row]:
        begun = [index for index, _ in fan.begun()]
        if fan.form == "fan_out":
            names = [f"{fan.stage.name} [{index}]" for index in begun]
            yield here.row("fork", children=names, cap=fan.cap, of=len(fan))
        else:
            parent = here.place.rpartition("/")[0]
            places = [f"{parent}/{fan.items[i]}" if parent else fan.items[i] for i in begun]
            yield here.row("fork", children=[self.name(one) for one in places])
        seen = dict(here.state)
        after = list(self._ends)
        for index, shape in fan.begun():
            prefix = fan.path(here.at.prefix, index)
            first = next((c for c in map(self._code, shape.codes) if c.kind == "stage"), None)
            if first is not None:
                inner = key_of(f"{prefix}{first.stage.key}")
                self.transitions.add((key_of(here.place), inner))
            at = Track(shape.codes, fan.values, fan.offsets[index], prefix, fan.base(index), "", {})
            if fan.form == "fan_out":
                yield from self._branch(fan, index, here, at)
            else:
                at.level = fan.stage.path
                at.states = {at.level: dict(seen)}
                yield from self._track(at)
                child = f"{prefix}{fan.stage.path}{fan.items[index]}"
                self.views[child] = self._last
                self.written[child] = self._touched
            after += self._ends
        self._ends = after

    def _branch(self, fan: Any, index: int, here: Here, at: Track) -> Iterator[Row]:
        entry = f"{here.place}~{index}"
        name = f"{fan.stage.name} [{index}]"
        item = self.redactor.value("item", fan.items[index])
        given = {"item": plain_value(item), "index": index}
        mount = {"stage": name, "depth": 0}
        facts = {"name": name, "direction": "entry", "values": given}
        yield Row("subflow", entry, here.n, {**facts, **mount})
        for key, value in given.items():
            summary = str(summarize(value, 80))
            facts = {"op": "received", "key": key, "operation": "set", "summary": summary}
            yield Row("step", entry, here.n, {**facts, "stage": name, "depth": 1})
        yield from self._track(at)
        carried = {key: self.served(key, one) for key, one in self._last.items()}
        facts = {"name": name, "direction": "exit", "values": plain_value(carried)}
        yield Row("subflow", entry, here.n, {**facts, **mount, "status": fan.status(index)})
        self.views[entry] = dict(self._last)

    def _code(self, number: int) -> Any:
        return self.log.codes[number]
