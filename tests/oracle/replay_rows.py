"""The rows of a walk as facts, whoever told them, and the lanes they are compared in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from replay_shape import Shape
from replay_values import ANYTHING, HarnessFailure, decode, same

#: Types of rows, and of their facts what both sides tell.
FACTS = {
    "stage": ("name", "description"),
    "step": ("op", "key", "operation", "summary"),
    "condition": ("decider", "chosen", "evidence"),
    "selector": ("selected", "total", "evidence"),
    "fork": ("children",),
    "subflow": ("name", "direction", "values"),
    "loop": ("target", "iteration"),
    "break": (),
    "error": ("message",),
    "emit": ("name", "summary"),
    "retry": ("attempt", "attempts"),
    "pause": (),
    "resume": (),
}


@dataclass
class Row:
    """One row: its type, its place (path and stage id), its execution, its facts."""

    type: str
    place: str
    n: int | None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def runtime_id(self) -> str:
        """The id of the execution."""
        return self.place if self.n is None else f"{self.place}#{self.n}"

    def __str__(self) -> str:
        facts = ", ".join(f"{name}={value!r}" for name, value in self.facts.items())
        return f"{self.type} {self.runtime_id} ({facts})"


def same_row(expected: Row, found: Row) -> bool:
    """Compare type, id and every fact that is expected."""
    return (
        expected.type == found.type
        and expected.place == found.place
        and (expected.n is None or expected.n == found.n)
        and all(same(value, found.facts.get(name)) for name, value in expected.facts.items())
    )


def in_lanes(rows: Iterable[Row], shape: Shape) -> dict[str, list[Row]]:
    """Sort rows by the lane they belong to, in their order."""
    lanes: dict[str, list[Row]] = {}
    for row in rows:
        lanes.setdefault(shape.lane(row.place), []).append(row)
    return lanes


def differences(expected: list[Row], found: list[Row], shape: Shape) -> list[str]:
    """Compare two walks lane by lane; say what differs."""
    mine, theirs = in_lanes(found, shape), in_lanes(expected, shape)
    wrong = []
    for lane in sorted({*mine, *theirs}):
        a, b = theirs.get(lane, []), mine.get(lane, [])
        place = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if not same_row(x, y)),
                     min(len(a), len(b)))  # fmt: skip
        if place < max(len(a), len(b)):
            wanted = str(a[place]) if place < len(a) else "nothing more"
            got = str(b[place]) if place < len(b) else "nothing more"
            wrong.append(f"lane {lane or 'of the run'!r}, row {place}: {wanted} is {got}")
    return wrong


def split(runtime_id: str) -> tuple[str, int | None]:
    """Split a runtime id into its place and its number."""
    place, _, number = runtime_id.rpartition("#")
    return (place, int(number)) if place and number.isdigit() else (runtime_id, None)


def without_path(name: str, place: str) -> str:
    """Take the path of a stage off its name, where upstream put it in front."""
    path = place.rpartition("/")[0]
    return name[len(path) + 1 :] if path and name.startswith(f"{path}/") else name


def recorded_rows(narrative: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Read the rows of a recorded narrative, with the names taken out of their paths."""
    return [_recorded(entry) for entry in narrative]


def _recorded(entry: Mapping[str, Any]) -> Row:
    kind, told = entry["type"], entry.get("facts") or {}
    place, n = split(entry["runtimeStageId"])
    if kind not in FACTS:
        raise HarnessFailure(f"no row type {kind!r} in the harness")
    read, names = _READERS.get(kind), _Names(place)
    facts = {} if read is None else read(names, told, entry)
    facts["depth"] = entry["depth"]
    if entry.get("stageName") is not None:
        facts["stage"] = names(entry["stageName"])
    return Row(kind, place, n, facts)


class _Names:
    """Takes the path of one place off names."""

    def __init__(self, place: str) -> None:
        self.place = place

    def __call__(self, text: Any) -> Any:
        return without_path(text, self.place) if isinstance(text, str) else ANYTHING

    def all(self, texts: Iterable[Any]) -> list[Any]:
        return [self(text) for text in texts]


def _stage(name: _Names, told: Any, entry: Any) -> dict[str, Any]:
    return {"name": name(entry.get("stageName")), "description": told.get("description")}


def _step(name: _Names, told: Any, entry: Any) -> dict[str, Any]:
    facts = {"op": told["type"], "key": told["key"], "summary": told["valueSummary"]}
    return {**facts, "operation": told.get("operation")}


def _condition(name: _Names, told: Any, entry: Any) -> dict[str, Any]:
    facts = {"decider": name(told["decider"]), "chosen": name(told["chosen"])}
    return {**facts, **_evidence(told)}


def _selector(name: _Names, told: Any, entry: Any) -> dict[str, Any]:
    facts = {"selected": name.all(told["selected"]), "total": told["total"]}
    return {**facts, **_evidence(told)}


def _evidence(told: Any) -> dict[str, Any]:
    return {"evidence": decode(told["evidence"])} if "evidence" in told else {}


def _fork(name: _Names, told: Any, entry: Any) -> dict[str, Any]:
    return {"children": name.all(told["children"])}


def _subflow(name: _Names, told: Any, entry: Any) -> dict[str, Any]:
    values = told.get("mappedInput") if "mappedInput" in told else told.get("outputState")
    return {
        "name": name(told["name"]),
        "direction": told["direction"],
        "values": decode(values) if values is not None else ANYTHING,
    }


def _loop(name: _Names, told: Any, entry: Any) -> dict[str, Any]:
    return {"target": name(told["target"]), "iteration": told["iteration"]}


def _error(name: _Names, told: Any, entry: Any) -> dict[str, Any]:
    return {"message": message_of(told.get("message"))}


def _emit(name: _Names, told: Any, entry: Any) -> dict[str, Any]:
    return {"name": told["name"], "summary": told["payloadSummary"]}


def _retry(name: _Names, told: Any, entry: Any) -> dict[str, Any]:
    return {"attempt": told["attempt"], "attempts": told["maxAttempts"]}


_READERS = {
    "stage": _stage,
    "step": _step,
    "condition": _condition,
    "selector": _selector,
    "fork": _fork,
    "subflow": _subflow,
    "loop": _loop,
    "error": _error,
    "emit": _emit,
    "retry": _retry,
}


def message_of(told: Any) -> Any:
    """Give what an error row says, without the class of the host language before it."""
    if isinstance(told, Mapping):  # wording of theirs, replaced by a category
        return ANYTHING
    if isinstance(told, str):
        head, mark, rest = told.partition(": ")
        return rest if mark and head.isidentifier() else told
    return ANYTHING


def moved(row: Row, **changes: Any) -> Row:
    """Give a row with some of its parts replaced."""
    return replace(row, **changes)
