"""Frozen mappings and lists: real ``dict`` and ``list`` storage that cannot be changed.

Base layer. What a stage reads, and what an envelope holds, must not be a handle through which
the record can be rewritten. Values are frozen once, when written; reading hands out the same
object. ``json.dumps``, ``isinstance(x, dict)`` and shipping to a worker work; ``copy`` and
``deepcopy`` give ordinary, changeable objects.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from itertools import chain
from typing import Any, Final, NoReturn, TypeVar

from runbook_nb.errors import CycleError, FrozenError

#: Exact types that cannot change and are kept by reference.
ATOMS: Final[frozenset[type]] = frozenset(
    {type(None), bool, int, float, complex, str, bytes, date, datetime, time, timedelta, Decimal}
)


#: What a sequence gives.
Entry_co = TypeVar("Entry_co", covariant=True)


def _refuse(self: Any, *_: Any, **__: Any) -> NoReturn:
    kind = "mapping" if isinstance(self, dict) else "list"
    raise FrozenError(
        f"this {kind} is part of a record and cannot be changed",
        fix="change a copy (copy.deepcopy gives an ordinary one) and write that back",
    )


class FrozenDict(dict[Any, Any]):
    """A ``dict`` that cannot be changed. Its values are frozen too."""

    # Rows made of columns are told apart by who they are as long as somebody has them.
    __slots__ = ("__weakref__",)

    __setitem__ = _refuse
    __delitem__ = _refuse
    __ior__ = _refuse
    clear = _refuse
    pop = _refuse
    popitem = _refuse
    setdefault = _refuse
    update = _refuse

    def __copy__(self) -> dict[Any, Any]:
        return dict(self)

    def copy(self) -> dict[Any, Any]:
        """Give an ordinary, shallow copy."""
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[Any, Any]:
        return {key: thaw(value) for key, value in self.items()}

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return (FrozenDict, (dict(self),))

    def __hash__(self) -> int:  # type: ignore[override]
        raise TypeError("unhashable type: 'FrozenDict'")


class FrozenList(list[Any]):
    """A ``list`` that cannot be changed. Its items are frozen too."""

    __slots__ = ()

    __setitem__ = _refuse
    __delitem__ = _refuse
    __iadd__ = _refuse
    __imul__ = _refuse
    append = _refuse
    clear = _refuse
    extend = _refuse
    insert = _refuse
    pop = _refuse
    remove = _refuse
    reverse = _refuse
    sort = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    def copy(self) -> list[Any]:
        """Give an ordinary, shallow copy."""
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [thaw(value) for value in self]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return (FrozenList, (list(self),))

    def __hash__(self) -> int:  # type: ignore[override]
        raise TypeError("unhashable type: 'FrozenList'")


def classes_of(values: list[Any]) -> frozenset[type]:
    """Give the exact classes of many values; nearly always it is one, which is quickly seen.

    Examples
    --------
    >>> classes_of([1, 2, 3]) == {int}, sorted(each.__name__ for each in classes_of([1, "a"]))
    (True, ['int', 'str'])
    """
    found = list(map(type, values))
    first = found[:1]
    return frozenset(first if first * len(found) == found else found)


#: Classes whose instances are frozen as they are; the classes of rows that are to be frozen.
_DONE: Final[frozenset[type]] = ATOMS | {FrozenDict, FrozenList}
_ROWS: Final[set[type]] = {dict}


class Immutable:
    """Marker for the package's own value classes that never change after they are made."""

    __slots__ = ()


def freeze(value: Any, key: str = "value") -> Any:
    """Give the frozen form of a value: itself when it cannot change, else a snapshot.

    Dicts and lists become `FrozenDict` and `FrozenList`, tuples stay tuples, sets become
    frozensets; any other object (a frame, an array, a dataclass) is deep-copied, so that later
    changes by its owner do not rewrite the record.

    Parameters
    ----------
    value : object
        What is being written.
    key : str
        The name it is written under, for the message when it cannot be kept.

    Raises
    ------
    CycleError
        The value contains itself.
    FrozenError
        The value cannot be copied (an open file, a connection), or is nested too deeply.

    Examples
    --------
    >>> rows = freeze([{"age": 2}], "rows")
    >>> isinstance(rows, list), rows == [{"age": 2}]
    (True, True)
    """
    cls = value.__class__
    if cls in ATOMS or cls is FrozenDict or cls is FrozenList:
        return value
    try:
        return _freeze(value, key, [])
    except RecursionError:
        raise FrozenError(
            f"the value of {key!r} is nested too deeply to be recorded",
            where=key,
            fix="flatten it, or keep it in a variable of the procedure",
        ) from None


#: What may hold further values; looked for in this order, the most frequent first.
_HOLDS_MORE: Final = (dict, list, tuple, Mapping, Set)


def _freeze(value: Any, key: str, path: list[int]) -> Any:
    cls = value.__class__
    if cls in ATOMS or cls is FrozenDict or cls is FrozenList:
        return value
    if cls is dict or cls is list:
        flat = _flat(value)
        if flat is not None:
            return flat
    elif isinstance(value, Immutable | Enum):
        return value
    if isinstance(value, _HOLDS_MORE):
        if id(value) in path:
            raise CycleError(f"the value of {key!r} contains itself", where=key)
        path.append(id(value))
        try:
            return _freeze_container(value, key, path)
        finally:
            path.pop()
    try:
        return copy.deepcopy(value)
    except Exception as error:
        raise FrozenError(
            f"the value of {key!r} ({cls.__name__}) cannot be copied, so it cannot be recorded",
            where=key,
            fix="keep clients and handles in variables of the procedure and write plain data",
        ) from error


def _flat(value: Any) -> Any:
    """Freeze a dict or list of atoms, or a list of dicts of atoms, at once; None for others.

    Rows are nearly always that, and looking at the classes of all values together takes a fraction
    of looking at one value after another.
    """
    if value.__class__ is dict:
        return FrozenDict(value) if ATOMS.issuperset(map(type, value.values())) else None
    classes = set(map(type, value))
    if classes <= _DONE:
        return FrozenList(value)
    if classes == _ROWS and is_flat(value):
        return FrozenList(map(FrozenDict, value))
    return None


def is_flat(rows: list[Any]) -> bool:
    """Say whether a list is of plain dicts of atoms."""
    return set(map(type, rows)) == _ROWS and ATOMS.issuperset(
        map(type, chain.from_iterable(map(dict.values, rows)))
    )


def _freeze_container(value: Any, key: str, path: list[int]) -> Any:
    if isinstance(value, dict | Mapping):
        return FrozenDict({k: _freeze(v, key, path) for k, v in value.items()})
    if isinstance(value, list):
        return FrozenList([_freeze(v, key, path) for v in value])
    if isinstance(value, tuple):
        items = [_freeze(v, key, path) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return frozenset(value)


#: Exact types whose instances are handed out as they are: nothing in them can be changed.
KEPT: Final = ATOMS | {FrozenDict, FrozenList, tuple, frozenset}


class MadeOnDemand(Sequence[Entry_co], Immutable):
    """A sequence whose entries are made when looked at: it equals whatever holds the same ones.

    Copies, and what travels to a worker, are the entries in a list, without what makes them.

    Examples
    --------
    >>> class Squares(MadeOnDemand[int]):
    ...     def __len__(self): return 3
    ...     def __getitem__(self, index): return [0, 1, 4][index]
    >>> squares = Squares()
    >>> squares == [0, 1, 4], squares == "014", copy.copy(squares)
    (True, False, [0, 1, 4])
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return len(self) == len(other) and all(
            a is b or a == b for a, b in zip(self, other, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return (list, (list(self),))


def handed_out(value: Any) -> Any:
    """Give a recorded value to somebody who might change it.

    What cannot be changed is handed out as it is. A frame, an array or any other object that was
    snapshotted when it was written is copied again, so that changing it in place does not rewrite
    the record.

    Examples
    --------
    >>> kept = freeze(bytearray(b"a"), "raw"); given = handed_out(kept); given += b"b"; kept
    bytearray(b'a')
    """
    if value.__class__ in KEPT or isinstance(value, Immutable | Enum | dict | list | tuple):
        return value
    return copy.deepcopy(value)


def thaw(value: Any) -> Any:
    """Give an ordinary, changeable deep copy of a frozen value.

    Examples
    --------
    >>> rows = thaw(freeze([{"age": 2}])); rows[0]["age"] = 3; rows
    [{'age': 3}]
    """
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list):
        return [thaw(item) for item in value]
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(thaw(item) for item in value)
    if value.__class__ in ATOMS or isinstance(value, Immutable | Enum | frozenset):
        return value
    return copy.deepcopy(value)


def deep_merge(into: Any, partial: Any) -> Any:
    """Merge a partial value into a value: mappings merge key by key, anything else replaces.

    Returns a new value; neither argument is changed.

    Examples
    --------
    >>> deep_merge({"a": {"x": 1}, "b": [1]}, {"a": {"y": 2}, "b": [2]})
    {'a': {'x': 1, 'y': 2}, 'b': [2]}
    """
    if not (isinstance(into, Mapping) and isinstance(partial, Mapping)):
        return partial
    merged = dict(into)
    for key, value in partial.items():
        merged[key] = deep_merge(merged[key], value) if key in merged else value
    return merged


def walk_values(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every leaf of a value with its path (``rows[0].age``)."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from walk_values(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from walk_values(item, f"{path}[{index}]")
    else:
        yield path, value
