"""What can be said of a sequence of codes without its values, worked out once per shape.

Record layer. A run of a million like branches has a handful of shapes; everything here is
computed for those and shared by all branches that have them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from runbook_nb._frozen import FrozenDict, FrozenList, deep_merge, freeze
from runbook_nb.record.log import MOST_KNOWN, ROW_TYPES, Code, Event, Shape, Tables

#: Kinds of code that change state.
STATE_CODES: Final = frozenset({"write", "update", "append", "delete"})

#: Kinds of code by which a decider chose, or fell back on its own default.
_WAYS: Final = frozenset({"decision", "choice", "route"})


class ShapeFacts(NamedTuple):
    """The facts of one shape.

    Attributes
    ----------
    events : tuple of Event
        Every code with the position of its values and the executed stage it belongs to.
    executions : int
        How many stages were executed.
    rows : int
        How many rows of a walk it makes, fan-outs left out.
    level : str
        The path of the mounts around the track's own stages; what lies deeper is mounted in it.
    changes : tuple of Event
        The events that change the track's own state, in order.
    plain_writes : mapping or None
        When every change is a plain write: key -> position of its last value, in first-write
        order. None when the state must be replayed.
    decision : Event or None
        The last decision or choice of a branch.
    judged : tuple of Event
        Every decision by rules.
    route : str or None
        The way it went.
    result, stop, error : Event or None
        What the last stage returned; that the chart was stopped on purpose; what failed last.
    fan_outs : tuple of Event
        Fan-outs run inside.
    control, conditions : int
        How many of the rows are no reads or writes, and tell of a decision.
    """

    events: tuple[Event, ...]
    executions: int
    rows: int
    level: str
    changes: tuple[Event, ...]
    plain_writes: dict[str, int] | None
    decision: Event | None
    judged: tuple[Event, ...]
    route: str | None
    result: Event | None
    stop: Event | None
    error: Event | None
    fan_outs: tuple[Event, ...]
    control: int
    conditions: int


def facts_of(log: Tables, shape: Shape) -> ShapeFacts:
    """Give the facts of an interned shape, worked out at the first asking."""
    found: ShapeFacts | None = shape.__dict__.get("facts")
    if found is None:
        found = shape.__dict__["facts"] = work_out(log, shape.codes)
    return found


def work_out(log: Tables, codes: Sequence[int]) -> ShapeFacts:
    """Work out the facts of a sequence of codes, or give those that another run has found."""
    # In this order: a number that the log gave after it had left the others is looked for nowhere.
    told = tuple(codes)
    known = log.known
    if known is None:
        return _worked_out(log, told)
    found: ShapeFacts | None = known.facts.get(told)
    if found is None:
        found = _worked_out(log, told)
        if len(known.facts) < MOST_KNOWN:
            known.facts[told] = found
    return found


def _worked_out(log: Tables, codes: tuple[int, ...]) -> ShapeFacts:
    events = tuple(log.events(codes))
    level = next((e.code.stage.path for e in events if e.code.kind == "stage"), "")
    changes, fan_outs, judged, types = [], [], [], []
    last: dict[str, Event] = {}  # of each kind
    decision: Event | None = None
    way: Code | None = None
    written = True
    for event in events:
        code = event.code
        kind = code.kind
        last[kind] = event
        if kind in ROW_TYPES:
            types.append(ROW_TYPES[kind][0])
        if kind in STATE_CODES:
            if code.stage.path == level:
                changes.append(event)
                written = written and kind == "write"
        elif kind == "fan_out":
            fan_outs.append(event)
        elif kind in _WAYS:  # what a selector selects is no verdict
            way = code
            if kind != "route":
                decision = event
            if kind == "decision" and code.path is not None:
                judged.append(event)
    plain = {event.code.key or "": event.at for event in changes} if written else None
    route = None
    if way is not None:
        route = way.key if way.path is None else way.path.branch
    return ShapeFacts(
        events=events,
        executions=types.count("stage"),
        rows=len(types),
        level=level,
        changes=tuple(changes),
        plain_writes=plain,
        decision=decision,
        judged=tuple(judged),
        route=route,
        result=last.get("result"),
        stop=last.get("stop"),
        error=last.get("error"),
        fan_outs=tuple(fan_outs),
        control=len(types) - types.count("step"),
        conditions=types.count("condition"),
    )


def apply_change(
    state: dict[str, Any], code: Code, value: Any, growing: set[str] | None = None
) -> None:
    """Apply one recorded change to a state: the law of every replay.

    Parameters
    ----------
    state : dict
        Changed in place.
    code : Code
    value : object
        What goes with it.
    growing : set of str, optional
        Keys whose list nobody has seen yet: appending to it needs no copy. Empty it whenever the
        state is looked at.

    Examples
    --------
    >>> from runbook_nb.record.log import StageRef
    >>> state = {"a": {"x": 1}}
    >>> apply_change(state, Code("update", StageRef("s", "S", "stage"), "a"), {"y": 2}); state
    {'a': {'x': 1, 'y': 2}}
    """
    key = code.key or ""
    if code.kind == "append":
        if growing is not None and key in growing:
            list.append(state[key], value)
            return
        before = state.get(key)
        # A log that was read may append to what is no list; replaying it must not break.
        state[key] = FrozenList([*before, value] if isinstance(before, list | tuple) else [value])
        if growing is not None:
            growing.add(key)
        return
    if growing is not None:
        growing.discard(key)
    if code.kind == "write":
        state[key] = value
    elif code.kind == "update":
        state[key] = freeze(deep_merge(state.get(key), value), key)
    else:
        state.pop(key, None)


def state_after(
    facts: ShapeFacts,
    values: Sequence[Any],
    offset: int = 0,
    base: Mapping[str, Any] | None = None,
) -> FrozenDict:
    """Rebuild the final state of a track from its recorded changes, and what it began with."""
    if facts.plain_writes is not None and not base:
        return FrozenDict({key: values[offset + at] for key, at in facts.plain_writes.items()})
    state = dict(base or {})
    growing: set[str] = set()
    for event in facts.changes:
        value = None if event.code.kind == "delete" else values[offset + event.at]
        apply_change(state, event.code, value, growing)
    return FrozenDict(state)


class Level(NamedTuple):
    """One chart of a track as it stands: its state, and what was last mapped into it.

    Nothing is mapped into the track's own chart.
    """

    state: dict[str, Any]
    entered: Mapping[str, Any] | None
    growing: set[str]


def replayed_levels(
    log: Tables,
    codes: Sequence[int],
    values: Sequence[Any],
    path: str,
    base: Mapping[str, Any] | None = None,
) -> dict[str, Level]:
    """Rebuild the states of a track: of its own chart, and of each chart mounted in it.

    Parameters
    ----------
    log : Tables
    codes, values : sequence
        The track.
    path : str
        The path of the track's own chart.
    base : mapping, optional
        What that one began with.

    Returns
    -------
    dict
        The levels by their paths; of a chart that was entered more than once, the last.
    """
    levels = {path: Level(dict(base or {}), None, set())}
    for event in log.events(codes):
        code = event.code
        if code.kind == "enter":
            entered = values[event.at]
            levels[f"{code.stage.key}/"] = Level(dict(entered), entered, set())
        elif code.kind in STATE_CODES:
            level = levels.get(code.stage.path)
            if level is None:  # a damaged log: it changes a chart that was never entered
                level = levels[code.stage.path] = Level({}, None, set())
            value = None if code.kind == "delete" else values[event.at]
            apply_change(level.state, code, value, level.growing)
    return levels


def replayed(
    log: Tables,
    codes: Sequence[int],
    values: Sequence[Any],
    path: str,
    base: Mapping[str, Any] | None = None,
) -> tuple[dict[str, Any], Mapping[str, Any] | None]:
    """Rebuild one level of a track: its state, and what was last mapped in; see above."""
    level = replayed_levels(log, codes, values, path, base)[path]
    return level.state, level.entered
