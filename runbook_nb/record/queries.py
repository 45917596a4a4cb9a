"""Questions to a commit log, and their answers as data.

Record layer. Every answer is found from the timelines of the keys: nothing copies a state for each
commit, and a question costs at most one pass over what it is about.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from runbook_nb._frozen import FrozenDict, Immutable, handed_out
from runbook_nb._text import MISSING
from runbook_nb._value import frozen
from runbook_nb.record.bundles import deep_equal
from runbook_nb.record.replay import Prefix, value_of_held
from runbook_nb.record.sources import Source

#: What a state was put together from.
BASES: Final = ("initial+log", "log")


@frozen
class StateAt(Immutable):
    """The state after a commit.

    Attributes
    ----------
    state : mapping
        Every key with its value, served.
    through : int
        The last commit in it; -1 for the base alone.
    basis : {"initial+log", "log"}
        Whether the state before the first commit was known.
    redacted : bool
        Whether anything in it is hidden.
    redacted_paths : tuple of tuple of str
        Where.
    skipped : int
        Rows of the log that could not be applied.
    """

    state: Mapping[str, Any]
    through: int
    basis: str
    redacted: bool = False
    redacted_paths: tuple[tuple[str, ...], ...] = ()
    skipped: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Give the answer in the published shape."""
        out: dict[str, Any] = {
            "state": self.state,
            "basis": self.basis,
            "redacted": self.redacted,
            "redactedPaths": [list(path) for path in self.redacted_paths],
            "throughCommitIdx": self.through,
        }
        return out | {"skipped": self.skipped} if self.skipped else out


@frozen
class Birth(Immutable):
    """Since when an item stands where it stands in a list.

    Attributes
    ----------
    index : int
        The position in the list.
    commit_index : int
        The commit since which the list up to this item has been as it is; -1 when it began so.
    runtime_stage_id, stage_id, stage : str
        The step that made that commit; empty for the base.
    verb : str
        What the step did to the list.
    basis : {"recorded", "prefix-inference"}
        Whether appending was recorded, or told from the items before staying the same.
    value : object
        The item, served.
    """

    index: int
    commit_index: int
    runtime_stage_id: str
    stage_id: str
    stage: str
    verb: str
    basis: str
    value: Any

    def to_dict(self) -> dict[str, Any]:
        """Give the answer in the published shape."""
        return {
            "index": self.index,
            "commitIdx": self.commit_index,
            "runtimeStageId": self.runtime_stage_id,
            "stageId": self.stage_id,
            "stageName": self.stage,
            "verb": self.verb,
            "basis": self.basis,
            "value": self.value,
        }


@frozen
class Births(Immutable):
    """Where the items of a list come from.

    Attributes
    ----------
    key : str
    at : int
        The commit after which the list is looked at.
    births : tuple of Birth
        One per item.
    """

    key: str
    at: int
    births: tuple[Birth, ...] = ()

    def __len__(self) -> int:
        return len(self.births)

    def to_dict(self) -> dict[str, Any]:
        """Give the answer in the published shape."""
        return {
            "key": self.key,
            "atIdx": self.at,
            "length": len(self.births),
            "births": [birth.to_dict() for birth in self.births],
        }


@frozen
class Stop(Immutable):
    """A place where somebody going through a run may stop.

    Attributes
    ----------
    step : int
        Its place on the axis.
    kind : {"start", "commit", "end"}
    id : str
        The execution; empty at both ends.
    commit_index : int
        The commit whose state is to be seen there; -1 for the base.
    """

    step: int
    kind: str
    id: str
    commit_index: int

    def to_dict(self) -> dict[str, Any]:
        """Give the place in the published shape."""
        return {
            "step": self.step,
            "kind": self.kind,
            "id": self.id,
            "commitIdx": self.commit_index,
            "last": self.commit_index,
        }


@frozen
class SliceNode(Immutable):
    """A commit that another one rests on.

    Attributes
    ----------
    id : str
        The execution.
    commit_index, depth : int
        Its place in the log; how many links away from the commit asked about.
    linked_by : str
        The key it was met by first; empty for the commit asked about.
    keys_written, parents : tuple of str
        Every key it changed; the executions whose values it read.
    """

    id: str
    commit_index: int
    depth: int
    linked_by: str
    keys_written: tuple[str, ...]
    parents: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Give the node in the published shape."""
        return {
            "id": self.id,
            "depth": self.depth,
            "linkedBy": self.linked_by,
            "keysWritten": list(self.keys_written),
            "parents": list(self.parents),
        }


@frozen
class CommitSlice(Immutable):
    """The commits that one commit rests on, nearest first.

    Attributes
    ----------
    root : str or None
        The execution asked about.
    nodes : tuple of SliceNode
        Itself first.
    missing : str or None
        Why there is none: ``"never-written"``, ``"no-such-step"``.
    """

    root: str | None
    nodes: tuple[SliceNode, ...] = field(default=())
    missing: str | None = None

    def __len__(self) -> int:
        return len(self.nodes)

    def to_dict(self) -> dict[str, Any]:
        """Give the slice as plain data."""
        out: dict[str, Any] = {"root": self.root, "nodes": [node.to_dict() for node in self.nodes]}
        return out if self.missing is None else {**out, "missing": self.missing}


# -- finding -----------------------------------------------------------------------------------


def clamped(source: Source, index: int) -> int:
    """Give a commit's place, the last one for what lies past it.

    Raises
    ------
    IndexError
        Before the base there is nothing.
    """
    if index < -1:
        raise IndexError(f"there is no commit {index}; -1 is the state before the first one")
    return min(index, len(source) - 1)


def value_at(source: Source, key: str, index: int) -> Any:
    """Give what a key held after a commit, served; `MISSING` where it was not there."""
    held = source.timeline.at(key, source.end(clamped(source, index)))
    if held is MISSING:
        return MISSING
    return source.redactor.value(key, handed_out(value_of_held(held)))


def state_at(source: Source, index: int) -> StateAt:
    """Give the state after a commit."""
    through = clamped(source, index)
    held = source.timeline.state(source.end(through))
    raw = FrozenDict({key: handed_out(value_of_held(one)) for key, one in held.items()})
    hidden = source.hidden(through, raw)
    return StateAt(
        state=source.redactor.served(raw),
        through=through,
        basis=BASES[0] if source.knows_base else BASES[1],
        redacted=bool(hidden),
        redacted_paths=tuple(hidden),
        skipped=source.skipped(through),
    )


def last_writer(source: Source, key: str, before: int | None = None) -> int:
    """Give the last commit that changed a key, of those before an index; -1 when none did."""
    end = len(source) if before is None else min(before, len(source))
    if end <= 0:
        return -1
    version = source.timeline.version(key, source.end(end - 1))
    origin = source.origins.origin(key, (), version)
    return -1 if origin < 0 else source.index_at(source.timeline.time(key, origin))


def writers(source: Source, key: str) -> Iterator[int]:
    """Yield every commit that changed a key, in order."""
    line, origins = source.timeline, source.origins
    for version in range(line.versions(key)):
        if origins.origin(key, (), version) == version:
            index = source.index_at(line.time(key, version))
            later = version + 1
            # Of the versions one step made only its last one counts.
            if later >= line.versions(key) or source.index_at(line.time(key, later)) != index:
                yield index


def births_of(source: Source, key: str, index: int) -> Births:
    """Give where the items of a list come from; nothing where the key holds no list."""
    through = clamped(source, index)
    line, end = source.timeline, source.end(through)
    items, born = _items(line.first(key)), []
    born = [(-1, "set", "recorded")] * len(items)
    for commit in writers(source, key):
        if commit > through:
            break
        after = line.at(key, source.end(commit))
        if not _is_list(after):
            items, born = (), []
            continue
        before = line.at(key, source.end(commit - 1))
        kept = _kept(before, after)
        verbs = source.verbs(commit, key)
        recorded = verbs == {"append"}
        del born[kept:]
        told = ("append" if recorded else "set", "recorded" if recorded else "prefix-inference")
        born.extend([(commit, *told)] * (_size(after) - kept))
    held = line.at(key, end)
    if not _is_list(held):
        return Births(key=key, at=through)
    served = source.redactor.value(key, handed_out(value_of_held(held)))
    whole = served if isinstance(served, list) else [served] * len(born)
    return Births(
        key=source.redactor.text(key),
        at=through,
        births=tuple(
            Birth(
                index=place,
                commit_index=commit,
                runtime_stage_id=source.runtime_id(commit) if commit >= 0 else "",
                stage_id=source.stage_id(commit) if commit >= 0 else "",
                stage=source.stage(commit) if commit >= 0 else "",
                verb=verb,
                basis=basis,
                value=whole[place],
            )
            for place, (commit, verb, basis) in enumerate(born)
        ),
    )


def _is_list(held: Any) -> bool:
    return held.__class__ is Prefix or isinstance(held, list)


def _size(held: Any) -> int:
    return int(held.length) if held.__class__ is Prefix else len(held)


def _items(held: Any) -> Sequence[Any]:
    if held.__class__ is Prefix:
        found: Sequence[Any] = held.items[: held.length]
        return found
    return held if isinstance(held, list) else ()


def _kept(before: Any, after: Any) -> int:
    """Count the first items that two lists have in common."""
    if before.__class__ is Prefix and after.__class__ is Prefix and before.items is after.items:
        return min(before.length, after.length)
    count = 0
    for left, right in zip(_items(before), _items(after), strict=False):
        if not deep_equal(left, right):
            break
        count += 1
    return count


def stops_of(source: Source) -> tuple[Stop, ...]:
    """Give the axis: the start, one place per executed stage, the end."""
    last = len(source) - 1
    middle = (
        Stop(step=index + 1, kind="commit", id=source.runtime_id(index), commit_index=index)
        for index in range(len(source))
    )
    return (
        Stop(step=0, kind="start", id="", commit_index=-1),
        *middle,
        Stop(step=last + 2, kind="end", id="", commit_index=last),
    )


def parents_of(source: Source, index: int) -> dict[int, str]:
    """Give the commits whose values the step of a commit read, each with the first such key.

    What a step read of its own writing has no parent.
    """
    found: dict[int, str] = {}
    for key, time in source.reads(index):
        version = source.timeline.version(key, time)
        if version < 0 or source.index_at(source.timeline.time(key, version)) == index:
            continue
        origin = source.origins.origin(key, (), version)
        if origin >= 0:
            found.setdefault(source.index_at(source.timeline.time(key, origin)), key)
    return found


def slice_from(source: Source, index: int) -> CommitSlice:
    """Give the commits that one commit rests on, breadth first."""
    text = source.redactor.text
    depths, linked = {index: 0}, {index: ""}
    waiting = deque([index])
    nodes = []
    while waiting:
        here = waiting.popleft()
        parents = parents_of(source, here)
        for parent, key in parents.items():
            if parent not in depths:
                depths[parent] = depths[here] + 1
                linked[parent] = key
                waiting.append(parent)
        nodes.append(
            SliceNode(
                id=source.runtime_id(here),
                commit_index=here,
                depth=depths[here],
                linked_by=text(linked[here]),
                keys_written=tuple(change.key for change in source.commit(here).changes),
                parents=tuple(map(source.runtime_id, parents)),
            )
        )
    return CommitSlice(root=source.runtime_id(index), nodes=tuple(nodes))
