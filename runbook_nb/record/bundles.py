"""The rules of the published commit log: how a bundle of changes is applied to a state.

Record layer. A bundle is one executed stage's changes as they are written down and exchanged.
These are the rules of that form, whoever wrote it; where ``scope.merge`` of this package differs
from the form's ``merge`` (it replaces lists, the form unites them), the change is written as
``set``, so that every reader arrives at the same state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from runbook_nb._frozen import ATOMS
from runbook_nb._text import MISSING
from runbook_nb._value import frozen
from runbook_nb.errors import LoadError

#: Joins the keys of a path in the written form.
SEPARATOR: Final = "\x1f"

#: What a row of a bundle can do to its path.
VERBS: Final = ("set", "merge", "append", "delete")

#: How values may be written: every change whole, or the tail of a grown list alone.
ENCODINGS: Final = ("full", "delta")


def deep_equal(a: Any, b: Any) -> bool:
    """Compare two values by structure.

    NaN equals NaN, +0 equals -0, numbers compare by value and never equal true or false; the order
    of keys does not count, and a key that holds `MISSING` is as good as absent; lists compare in
    order, dates by instant, sets by members. An object that cannot be compared equals only itself.

    Examples
    --------
    >>> deep_equal({"a": [1, float("nan")]}, {"a": [1.0, float("nan")]}), deep_equal(1, True)
    (True, False)
    """
    try:
        return _equal(a, b)
    except RecursionError:  # too deep to be told
        return False


def _equal(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if isinstance(a, Mapping):
        return isinstance(b, Mapping) and _equal_mappings(a, b)
    if isinstance(a, list | tuple):
        same = isinstance(b, list) if isinstance(a, list) else isinstance(b, tuple)
        return same and len(a) == len(b) and all(map(_equal, a, b))
    if _is_number(a):
        return _is_number(b) and bool(a == b or (a != a and b != b))  # noqa: PLR0124 - NaN
    if isinstance(a, set | frozenset):
        return isinstance(b, set | frozenset) and a == b
    if type(a) is not type(b):
        return False
    try:
        return bool(a == b)
    except Exception:  # arrays and frames do not compare to one truth value
        return False


def _equal_mappings(a: Mapping[Any, Any], b: Mapping[Any, Any]) -> bool:
    if len(a) == len(b) and all(
        other is not MISSING and _equal(value, other)
        for value, other in ((value, b.get(key, MISSING)) for key, value in a.items())
    ):
        return True
    left = {key: value for key, value in a.items() if value is not MISSING}
    right = {key: value for key, value in b.items() if value is not MISSING}
    if len(left) == len(a) and len(right) == len(b):
        return False
    return left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def deep_merge(into: Any, partial: Any) -> Any:
    """Merge a partial value into a value, as the written form's ``merge`` does.

    Mappings merge key by key; a list that is not empty is united with a list, keeping what came
    first; an empty list replaces; a mapping turns a list into a mapping from its positions; an
    empty mapping changes nothing; anything else replaces. Neither argument is changed.

    Examples
    --------
    >>> deep_merge({"a": {"x": 1}, "b": [1, 2]}, {"a": {"y": 2}, "b": [2, 3]})
    {'a': {'x': 1, 'y': 2}, 'b': [1, 2, 3]}
    """
    if isinstance(partial, list | tuple):
        old = into if isinstance(into, list | tuple) else ()
        return list(_united((*old, *partial))) if partial else []
    if not isinstance(partial, Mapping):
        return partial
    if not partial and into is not MISSING and into is not None:
        return into
    if isinstance(into, list | tuple):
        into = {str(place): item for place, item in enumerate(into)}
    merged = dict(into) if isinstance(into, Mapping) else {}
    for key, value in partial.items():
        merged[key] = deep_merge(merged.get(key, MISSING), value)
    return merged


def _united(items: Sequence[Any]) -> Iterator[Any]:
    seen: set[Any] = set()
    for item in items:
        if _is_number(item):
            mark: Any = ("number", "NaN" if item != item else item)  # noqa: PLR0124 - NaN
        elif item.__class__ in ATOMS:
            mark = (item.__class__, item)
        else:
            mark = id(item)  # two objects of equal content are two
        if mark not in seen:
            seen.add(mark)
            yield item


@frozen(kw_only=False)
class BundleRow:
    """One row of a bundle.

    Attributes
    ----------
    path : tuple of str
        The key, and the keys inside its value.
    verb : str
        One of `VERBS`, or whatever else stood there.
    value : object
        What goes with it; `MISSING` when the bundle holds nothing for it.
    reads : tuple of str or None
        The keys read before, where that was recorded.
    """

    path: tuple[str, ...]
    verb: str
    value: Any
    reads: tuple[str, ...] | None = None

    @property
    def can_be_applied(self) -> bool:
        """Whether it says what to do; a ``set`` to nothing takes the key away."""
        return self.verb in ("set", "delete") or (self.verb in VERBS and self.value is not MISSING)


def rows_of(bundle: Mapping[str, Any], where: str = "bundle") -> list[BundleRow]:
    """Read the rows of a bundle, in their order.

    Raises
    ------
    LoadError
        It is no bundle.

    Examples
    --------
    >>> rows_of({"trace": [{"path": "a", "verb": "set"}], "overwrite": {"a": 1}, "updates": {}})
    [BundleRow(path=('a',), verb='set', value=1, reads=None)]
    """
    parts = [bundle.get(name, {}) for name in ("overwrite", "updates")] + [bundle.get("trace", ())]
    if not (
        isinstance(parts[0], Mapping)
        and isinstance(parts[1], Mapping)
        and isinstance(parts[2], list | tuple)
        and all(isinstance(row, Mapping) for row in parts[2])
    ):
        raise LoadError(
            "a commit has the mappings overwrite and updates, and a list of rows under trace",
            where=where,
        )
    return [_row(row, parts[0], parts[1], f"{where}.trace[{n}]") for n, row in enumerate(parts[2])]


def _row(
    row: Mapping[str, Any], overwrite: Mapping[str, Any], updates: Mapping[str, Any], where: str
) -> BundleRow:
    given, verb = row.get("path"), str(row.get("verb"))
    source = updates if verb == "merge" else overwrite
    if isinstance(given, str):
        # A key may hold the separator itself.
        path = (given,) if given in source else tuple(given.split(SEPARATOR))
    elif isinstance(given, list | tuple) and given:
        path = tuple(map(str, given))
    else:
        raise LoadError("a row of a commit has a path", where=where)
    value: Any = source
    for key in path:
        value = value.get(key, MISSING) if isinstance(value, Mapping) else MISSING
    reads = row.get("readKeys")
    return BundleRow(
        path,
        verb,
        value,
        tuple(map(str, reads)) if isinstance(reads, list | tuple) else None,
    )


def apply_row(value: Any, row: BundleRow) -> Any:
    """Apply a row to the value of its first key; `MISSING` stands for a key that is not there.

    Examples
    --------
    >>> apply_row([1], BundleRow(("a",), "append", [2, 3]))
    [1, 2, 3]
    """
    return _apply_in(value, row.path[1:], row) if row.can_be_applied else value


def _apply_in(value: Any, path: Sequence[str], row: BundleRow) -> Any:
    if not path:
        return _apply_here(value, row)
    key, *rest = path
    if isinstance(value, list) and key.isdecimal() and int(key) < len(value):
        items = list(value)
        items[int(key)] = _apply_in(items[int(key)], rest, row)
        return items
    inner = dict(value) if isinstance(value, Mapping) else {}
    found = _apply_in(inner.get(key, MISSING), rest, row)
    if found is MISSING:
        inner.pop(key, None)
    else:
        inner[key] = found
    return inner


def _apply_here(value: Any, row: BundleRow) -> Any:
    if row.verb == "delete":
        return MISSING
    if row.verb == "merge":
        return deep_merge(value, row.value)
    if row.verb == "append" and isinstance(value, list) and isinstance(row.value, list):
        return [*value, *row.value]
    return row.value


def apply_bundle(state: Mapping[str, Any], bundle: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a bundle to a state; the state given is not changed.

    Parameters
    ----------
    state : mapping
        The state before the stage.
    bundle : mapping
        ``{trace, overwrite, updates}``; each row of ``trace`` has a ``path`` and a ``verb``. A
        path is a list of keys, or a text in which U+001F joins them.

    Returns
    -------
    dict
        The state after it. A key set to nothing is not there.

    Examples
    --------
    >>> apply_bundle({"a": 1, "b": 2}, {"trace": [{"path": "a", "verb": "delete"}]})
    {'b': 2}
    """
    after = dict(state)
    for row in rows_of(bundle):
        key = row.path[0]
        value = apply_row(after.get(key, MISSING), row)
        if value is MISSING:
            after.pop(key, None)
        else:
            after[key] = value
    return after


def differing(a: Any, b: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths at which two values of one layout differ, the shortest there are.

    Examples
    --------
    >>> list(differing({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3}}))
    [('b', 'c')]
    """
    if a is b:
        return
    if isinstance(a, Mapping) and isinstance(b, Mapping) and a.keys() == b.keys():
        for key in a:
            yield from differing(a[key], b[key], (*path, str(key)))
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for place, (left, right) in enumerate(zip(a, b, strict=True)):
            yield from differing(left, right, (*path, str(place)))
    elif not deep_equal(a, b):
        yield path


__all__ = [
    "ENCODINGS",
    "SEPARATOR",
    "VERBS",
    "BundleRow",
    "apply_bundle",
    "apply_row",
    "deep_equal",
    "deep_merge",
    "differing",
    "rows_of",
]
