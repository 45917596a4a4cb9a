"""Everything a run recorded, value by value, each with its place: what a policy is held to.

Record layer. What a policy learns, and what is reported of it, both come from this one list, so
that a place which is recorded cannot be forgotten by either. Nothing here is served.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from runbook_nb._text import MISSING
from runbook_nb.record.log import FanOut, Log, StageRef, Track
from runbook_nb.rules.decision import judged_values

if TYPE_CHECKING:
    from runbook_nb.record.run import Run

#: Where in a run values stand, in the order they are told of.
PLACES: Final = (
    *("input", "state", "items", "events", "streams", "evidence", "questions", "answers"),
    *("choices", "results", "errors", "reasons", "calls", "names"),
)

#: Kinds of code whose value stands in the state under the key of the code.
_WRITES: Final = frozenset({"write", "update"})

#: Kinds of code whose value says what went wrong.
_ERRORS: Final = frozenset({"error", "ended", "retry"})

#: Kinds of code whose value tells of a call, with what it was given.
CALLS: Final = frozenset({"admitted", "settled", "refused"})

#: Kinds of code with a loose value, and its place.
_LOOSE: Final = {
    "result": "results",
    "choice": "choices",
    "choices": "choices",
    "pause": "questions",
    "resume": "answers",
    "streamed": "streams",
    "stop": "reasons",
    **dict.fromkeys(
        ("reset", "deviation", "approved", "closed", "skipped", "given_up", "stuck"), "reasons"
    ),
}


class Held(NamedTuple):
    """A value a run recorded.

    Attributes
    ----------
    place : str
        One of `PLACES`.
    value : object
        A mapping of names to values, or a loose value.
    top : bool
        Whether the paths of a policy begin here: it is a state, an input or a part of one.
    any_item : bool
        Whether it is one item of a list that stands for all of them.
    derived : bool
        Whether it came about from values that are told of too, so that counting leaves it out.
    """

    place: str
    value: Any
    top: bool = True
    any_item: bool = False
    derived: bool = False


def marked_keys(log: Log) -> tuple[str, ...]:
    """Give the keys that stages marked as secret, in the order of first marking."""
    marked = [code.key for code in log.codes if code.kind == "secret" and code.key]
    return tuple(dict.fromkeys(marked))


def contents_of(run: Run) -> Iterator[Held]:
    """Yield everything a run recorded, its input and its end included."""
    args, state, result = run.raw
    yield Held("input", args)
    yield Held("state", run.raw_initial)
    yield Held("state", state, derived=True)
    if result is not None:
        yield Held("results", result)
    if run.raw_output is not MISSING:
        yield Held("results", run.raw_output, derived=True)
    if run.raw_pause is not None:
        yield Held("questions", run.raw_pause, top=False, derived=True)
    yield from recorded_in(run.log)


def recorded_in(log: Log) -> Iterator[Held]:
    """Yield every value that was written, emitted, given or asked, and every item of a fan-out."""
    tracks: list[Track | FanOut] = [log.root]
    for taken, value in log.taken_back:
        yield Held("state", {taken: value})
    while tracks:
        track = tracks.pop()
        if isinstance(track, Track):
            yield from _values_in(log, track.codes, track.values, 0, tracks)
            continue
        if track.is_fan_out:
            for item in map(track.item, range(len(track))):
                yield Held("items", {"item": item})
                if isinstance(item, Mapping):
                    yield Held("items", item, derived=True)
        for index, shape in track.begun():
            yield from _values_in(log, shape.codes, *track.part(index), tracks)


def _values_in(
    log: Log,
    codes: Sequence[int],
    values: Sequence[Any],
    offset: int,
    tracks: list[Track | FanOut],
) -> Iterator[Held]:
    for event in log.events(codes):
        kind, key, path, at = event.code.kind, event.code.key, event.code.path, offset + event.at
        if path is not None:
            for one, value in judged_values(path, values[at : at + len(path.codes)]):
                yield Held("evidence", {one: value})
        elif kind == "fan_out":
            tracks.append(values[at])
        elif kind in _WRITES:
            yield Held("state", {key: values[at]})
        elif kind == "append":
            yield Held("state", {key: (values[at],)}, any_item=True)
        elif kind == "emit":
            yield Held("events", {key: values[at]})
        elif kind == "enter":
            yield Held("input", values[at])
        elif kind in _ERRORS:
            yield Held("errors", values[at], top=False)
        elif kind in CALLS:
            told = values[at]
            given = told.get("arguments")
            if isinstance(given, Mapping):
                yield Held("calls", given)
            yield Held("calls", told, top=False, derived=isinstance(given, Mapping))
        elif kind in _LOOSE:
            yield Held(_LOOSE[kind], values[at], top=kind in ("result", "resume"))


def names_in(log: Log) -> Iterator[str]:
    """Yield the words a run's record names things by: stages, keys, events, branches."""
    seen: dict[StageRef, None] = {}
    for code in log.codes:
        seen.setdefault(code.stage)
        if code.key is not None:
            yield code.key
    for ref in seen:
        yield ref.id
        yield ref.name
