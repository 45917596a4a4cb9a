"""Commits of the published engine, folded into what they changed.

Record layer. A published commit holds the values of what was set and the parts of what was
merged, under paths of one or more segments, and the order they came in. What a stage changed is
found by folding it onto the state before, by the published engine's own rules: they are not those
of our ``update`` (lists are united there), so a change is told by its outcome.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from runbook_nb._frozen import deep_merge
from runbook_nb._text import MISSING

#: What joins the segments of a path in a published commit.
UNIT: Final = "\x1f"


@dataclass(slots=True)
class Change:
    """What one commit did to one key of the state.

    Attributes
    ----------
    key : str
    value : object
        After the commit; `MISSING` when the key is gone, or was never there.
    partial : mapping or None
        What was merged in, where that is the whole change and ``update`` comes to the same.
    """

    key: str
    value: Any
    partial: Mapping[str, Any] | None = None


def fold(
    state: dict[str, Any], bundle: Mapping[str, Any], within: Sequence[str] = ()
) -> list[Change]:
    """Fold a commit onto a state, which is changed, and give what it did, key by key.

    What cannot be read is passed over: a row of the trace that is none, a part that is missing.

    Parameters
    ----------
    state : dict
        Of plain JSON values. Values are never changed in place.
    bundle : mapping
        The commit.
    within : sequence of str
        Leading segments of the paths that are of interest; they are taken off.

    Examples
    --------
    >>> state = {"n": 1, "who": {"name": "Ada"}}
    >>> commit = {"overwrite": {"n": 2}, "updates": {"who": {"age": 36}},
    ...           "trace": [{"path": "n", "verb": "set"}, {"path": "who", "verb": "merge"}]}
    >>> [(change.key, change.value, change.partial) for change in fold(state, commit)]
    [('n', 2, None), ('who', {'name': 'Ada', 'age': 36}, {'age': 36})]
    """
    before: dict[str, Any] = {}
    merged: dict[str, bool] = {}
    for segments, verb, value in _rows(bundle, tuple(within)):
        key = segments[0]
        before.setdefault(key, state.get(key, MISSING))
        merged[key] = merged.get(key, True) and verb == "merge" and len(segments) == 1
        _apply(state, segments, verb, value)
    updates = _inside(bundle.get("updates"), within)
    found = []
    for key, old in before.items():
        now = state.get(key, MISSING)
        partial = updates.get(key) if merged[key] and isinstance(updates, Mapping) else None
        if not isinstance(partial, Mapping) or deep_merge(_plain(old), partial) != now:
            partial = None
        found.append(Change(key, now, partial))
    return found


def _plain(value: Any) -> Any:
    return None if value is MISSING else value


def _inside(tree: Any, segments: Sequence[str]) -> Any:
    """Look up a path; `MISSING` where it leads nowhere."""
    for segment in segments:
        if isinstance(tree, Mapping) and segment in tree:
            tree = tree[segment]
        elif isinstance(tree, list) and segment.isdecimal() and int(segment) < len(tree):
            tree = tree[int(segment)]
        else:
            return MISSING
    return tree


def _rows(
    bundle: Mapping[str, Any], within: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str, Any]]:
    trace = bundle.get("trace")
    for row in trace if isinstance(trace, list) else _untraced(bundle):
        path = row.get("path") if isinstance(row, Mapping) else None
        if not isinstance(path, str):
            continue
        segments = tuple(path.split(UNIT))
        if segments[: len(within)] != within or len(segments) == len(within):
            continue
        verb = str(row.get("verb"))
        home = bundle.get("updates" if verb == "merge" else "overwrite")
        yield segments[len(within) :], verb, _inside(home, segments)


def _untraced(bundle: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Give the rows of a commit that kept no order, as the engine's first ones did."""
    for part, verb in (("overwrite", "set"), ("updates", "merge")):
        found = bundle.get(part)
        if isinstance(found, Mapping):
            yield from ({"path": str(key), "verb": verb} for key in found)


def _apply(state: dict[str, Any], segments: tuple[str, ...], verb: str, value: Any) -> None:
    now = _inside(state, segments)
    if verb == "append":
        both = isinstance(now, list) and isinstance(value, list)
        value = [*now, *value] if both else value
    elif verb == "merge":
        value = _united({} if now is MISSING or now is None else now, value)
    elif verb == "delete":
        value = MISSING
    # A set without a value is how the engine's default encoding writes a deletion.
    key = segments[0]
    changed = value if len(segments) == 1 else _put(state.get(key, MISSING), segments[1:], value)
    if changed is MISSING:
        state.pop(key, None)
    else:
        state[key] = changed


def _put(home: Any, segments: tuple[str, ...], value: Any) -> Any:
    """Give a container with something else at a path inside of it."""
    segment, rest = segments[0], segments[1:]
    if isinstance(home, list) and segment.isdecimal():
        place = int(segment)
        if place < len(home) and value is not MISSING:
            inner = _put(home[place], rest, value) if rest else value
            return [*home[:place], inner, *home[place + 1 :]]
        return home
    old = home if isinstance(home, Mapping) else {}
    if not rest:
        inner = value
    elif value is MISSING and segment not in old:
        return home
    else:
        inner = _put(old.get(segment, MISSING), rest, value)
    kept = {key: member for key, member in old.items() if key != segment or inner is not MISSING}
    return kept if inner is MISSING else {**kept, segment: inner}


def _united(old: Any, new: Any) -> Any:
    """Merge as the published engine does: lists are united, an empty one clears."""
    if isinstance(new, list):
        return _union(old, new) if new and isinstance(old, list) else list(new)
    if isinstance(new, Mapping):
        merged = dict(old) if isinstance(old, Mapping) else {}
        for key, value in new.items():
            merged[key] = _united(merged.get(key), value)
        return merged
    return new


def _union(old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    met: set[tuple[bool, Any]] = set()
    joined = []
    for item in (*old, *new):
        if isinstance(item, list | dict):  # read from a file, each of them is one of its own
            joined.append(item)
        elif (isinstance(item, bool), item) not in met:
            met.add((isinstance(item, bool), item))
            joined.append(item)
    return joined
