"""Commits of the published engine, folded into what they changed.

Record layer. A published commit holds the values of what was set and the parts of what was
merged, under paths of one or more segments, and the order they came in. What a stage changed is
found by folding it onto the state before, by the rules of the published form: they are not those
of our ``update`` (lists are united there), so a change is told by its outcome.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from runbook_nb._frozen import deep_merge
from runbook_nb._text import MISSING, clip, visible
from runbook_nb.errors import LoadError
from runbook_nb.record.bundles import SEPARATOR, BundleRow, apply_row, rows_of
from runbook_nb.record.masked import Masked
from runbook_nb.record.published_read import bad_part


@dataclass(slots=True)
class FoldedChange:
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
) -> list[FoldedChange]:
    """Fold a commit onto a state, which is changed, and give what it did, key by key.

    A text that the commit says is hidden becomes a `Masked` one.

    Parameters
    ----------
    state : dict
        Of plain JSON values. Values are never changed in place.
    bundle : mapping
        The commit.
    within : sequence of str
        Leading segments of the paths that are of interest; they are taken off.

    Raises
    ------
    LoadError
        It is no commit.

    Examples
    --------
    >>> state = {"n": 1, "who": {"name": "Ada"}}
    >>> commit = {"overwrite": {"n": 2}, "updates": {"who": {"age": 36}},
    ...           "trace": [{"path": "n", "verb": "set"}, {"path": "who", "verb": "merge"}]}
    >>> [(change.key, change.value, change.partial) for change in fold(state, commit)]
    [('n', 2, None), ('who', {'name': 'Ada', 'age': 36}, {'age': 36})]
    """
    before: dict[str, Any] = {}
    partials: dict[str, list[Any]] = {}
    for row in _rows(bundle, tuple(within)):
        key = row.path[0]
        now = state.get(key, MISSING)
        before.setdefault(key, now)
        whole = row.verb == "merge" and len(row.path) == 1
        partials.setdefault(key, []).append(row.value if whole else None)
        after = apply_row(now, row)
        if after is MISSING:
            state.pop(key, None)
        else:
            state[key] = after
    found = []
    for key, old in before.items():
        value = state.get(key, MISSING)
        found.append(FoldedChange(key, value, _update(old, partials[key], value)))
    return found


def _update(old: Any, partials: Sequence[Any], now: Any) -> Mapping[str, Any] | None:
    """Give the one thing that was merged in, if our own update would come to the same."""
    partial = partials[-1]  # a commit holds all that was merged into a key at once
    if not isinstance(partial, Mapping) or not all(isinstance(one, Mapping) for one in partials):
        return None
    merged = deep_merge(None if old is MISSING else old, partial)
    return partial if merged == now else None


def _rows(bundle: Mapping[str, Any], within: tuple[str, ...]) -> Iterator[BundleRow]:
    """Yield the rows under the leading segments, what is hidden in their values marked."""
    if bundle.get("trace") is None:
        bundle = {**bundle, "trace": list(_untraced(bundle))}
    hidden = _hidden_paths(bundle)
    depth = len(within)
    for row in _read(bundle):
        if row.path[:depth] != within or len(row.path) == depth:
            continue
        value = row.value
        for path in hidden.get(row.path[0], ()):
            if path[: len(row.path)] == row.path:
                value = _masked_at(value, path[len(row.path) :])
        yield replace(row, path=row.path[depth:], value=value)


def _read(bundle: Mapping[str, Any]) -> list[BundleRow]:
    where = f"commitLog, {clip(visible(str(bundle.get('runtimeStageId'))), 80)}"
    try:
        return rows_of(bundle, where)
    except LoadError as error:
        raise bad_part(error.message, str(error.where)) from None


def _untraced(bundle: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Give the rows of a commit that kept no order, as the engine's first ones did."""
    for part, verb in (("overwrite", "set"), ("updates", "merge")):
        found = bundle.get(part)
        if isinstance(found, Mapping):
            yield from ({"path": str(key), "verb": verb} for key in found)


def _hidden_paths(bundle: Mapping[str, Any]) -> dict[str, list[tuple[str, ...]]]:
    """Give the paths to what is hidden, by their first segment."""
    told = bundle.get("redactedPaths")
    found: dict[str, list[tuple[str, ...]]] = {}
    for path in told if isinstance(told, list) else ():
        if isinstance(path, str):
            segments = tuple(path.split(SEPARATOR))
            found.setdefault(segments[0], []).append(segments)
    return found


def _masked_at(value: Any, path: Sequence[str]) -> Any:
    """Mark the text at a path inside a value; the value itself where there is none."""
    if not path:
        return Masked(value) if value.__class__ is str else value
    key, *rest = path
    if isinstance(value, Mapping) and key in value:
        return {**value, key: _masked_at(value[key], rest)}
    if isinstance(value, list) and key.isdecimal() and int(key) < len(value):
        items = list(value)
        items[int(key)] = _masked_at(items[int(key)], rest)
        return items
    return value
