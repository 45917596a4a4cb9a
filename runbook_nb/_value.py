"""Dataclasses that cost less to declare: what they compare by and look like is shared.

Base layer. The standard decorator writes and compiles a function for each method of each class. A
first answer loads about a hundred classes, so that those for comparing, hashing and showing are not
compiled here but made of the fields. All the rest is that of `dataclasses` itself.

`frozen` is for what users hold: it refuses to be changed. `inner` is for what the package keeps to
itself, between its own functions: that nothing changes it is seen to by the type checker, which
knows both as frozen. Half of what a frozen class costs to declare are two functions that refuse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, dataclass_transform, overload

Value = TypeVar("Value")


@overload
def frozen(cls: type[Value], /) -> type[Value]: ...


@overload
def frozen(
    *, kw_only: bool = ..., init: bool = ..., repr: bool = ...
) -> Callable[[type[Value]], type[Value]]: ...


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def frozen(
    cls: type | None = None, /, *, kw_only: bool = True, init: bool = True, repr: bool = True
) -> Any:
    """Make a dataclass that is frozen, has slots and, unless told otherwise, takes names only.

    What the class writes itself stays: ``__eq__``, ``__hash__`` (None too), ``__repr__``.

    Examples
    --------
    >>> @frozen
    ... class Reading:
    ...     host: str
    ...     days: int = 0
    >>> Reading(host="a"), Reading(host="a") == Reading(host="a", days=0)
    (Reading(host='a', days=0), True)
    """
    how = dataclass(frozen=True, slots=True, eq=False, repr=False, init=init, kw_only=kw_only)

    def made(given: type) -> type:
        return _shared(given, how(given), repr)

    return made if cls is None else made(cls)


@overload
def inner(cls: type[Value], /) -> type[Value]: ...


@overload
def inner(*, kw_only: bool = ...) -> Callable[[type[Value]], type[Value]]: ...


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def inner(cls: type | None = None, /, *, kw_only: bool = True) -> Any:
    """Make a dataclass with slots for the package's own use, frozen to the type checker alone.

    Examples
    --------
    >>> @inner(kw_only=False)
    ... class Place:
    ...     row: int
    ...     column: int = 0
    >>> {Place(3): "here"}[Place(3, 0)]
    'here'
    """
    how = dataclass(slots=True, eq=False, repr=False, kw_only=kw_only)

    def made(given: type) -> type:
        return _shared(given, how(given), True)

    return made if cls is None else made(cls)


def _shared(given: type, done: type, repr: bool) -> type:
    """Give a class what it is compared by and looks like, except what it writes itself."""
    own = vars(given)
    if repr and "__repr__" not in own:
        _show(done)
    # A class that writes `__eq__` alone is given None for `__hash__` by the interpreter.
    asked = own.get("__hash__", own) is None and "__eq__" not in own
    hashed = own.get("__hash__") is None and not asked
    _compare(done, equal="__eq__" not in own, hashed=hashed)
    return done


def _show(cls: Any) -> None:
    names = [one.name for one in fields(cls) if one.repr]

    @recursive_repr()
    def shown(self: Any) -> str:
        told = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
        return f"{self.__class__.__qualname__}({told})"

    cls.__repr__ = shown


def _compare(cls: Any, *, equal: bool, hashed: bool) -> None:
    names = [one.name for one in fields(cls) if one.compare]
    key: Callable[[Any], tuple[Any, ...]]
    if len(names) > 1:
        key = attrgetter(*names)
    else:  # of one name `attrgetter` gives the value itself, and it takes no fewer

        def key(one: Any) -> tuple[Any, ...]:
            return tuple([getattr(one, name) for name in names])

    def same(self: Any, other: object) -> Any:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    def hash_of(self: Any) -> int:
        return hash(key(self))

    if equal:
        cls.__eq__ = same
    if hashed:
        cls.__hash__ = hash_of
