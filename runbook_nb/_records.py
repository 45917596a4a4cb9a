"""The standard library's ``dataclass`` for classes with slots, at a third of what defining costs.

Base layer. Where the original compiles up to eight functions for every class, here ``__init__``
alone is compiled, the one whose speed is felt, and the others are closures over the names of the
fields. A session pays for a hundred such classes before its first answer. Instances behave as the
original's, and are made in half the time; type checkers see the original. Not provided:
``InitVar``, ordering, and inheriting from a dataclass of the original's making.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Final

#: What is left alone where a class writes it itself.
_OWN: Final = (
    *("__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__"),
    *("__getstate__", "__setstate__"),
)
_MISSING: Final = dataclasses.MISSING

__all__ = ["dataclass"]


class _Anew:
    """Stands in a signature for a default that is made anew each time."""

    def __repr__(self) -> str:
        return "<factory>"


_ANEW: Final = _Anew()


def _dataclass(
    *,
    slots: bool,
    frozen: bool = False,
    kw_only: bool = False,
    init: bool = True,
    repr: bool = True,
    eq: bool = True,
    weakref_slot: bool = False,
) -> Callable[[type], type]:
    """Make a class with slots a dataclass; see `dataclasses.dataclass`."""
    if not slots:
        raise TypeError("a dataclass without slots is made by dataclasses.dataclass")

    def make(cls: type) -> type:
        own = {name for name in _OWN if name in cls.__dict__}
        if "__eq__" in own and cls.__dict__["__hash__"] is None:  # which was Python's doing
            own.discard("__hash__")
        made: Any = dataclasses.dataclass(
            init=False, repr=False, eq=False, slots=True, kw_only=kw_only, weakref_slot=weakref_slot
        )(cls)
        fields = dataclasses.fields(made)
        functions: dict[str, Any] = {}
        if init and "__init__" not in own:
            functions["__init__"] = _init(made, fields)
        if repr:
            functions["__repr__"] = _repr(fields)
        if eq:
            functions |= _compared(fields, frozen=frozen)
        if frozen:
            functions |= _frozen(made, fields)
        for name in functions.keys() - own:
            function = functions[name]
            setattr(made, name, function)
            if function is not None:
                function.__qualname__ = f"{made.__qualname__}.{name}"
        return made  # type: ignore[no-any-return]

    return make


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _dataclass

_Fields = tuple[dataclasses.Field[Any], ...]


def _init(cls: Any, fields: _Fields) -> Any:
    """Compile ``__init__``, which puts each value straight into its slot."""
    known: dict[str, Any] = {"_anew": _ANEW}
    placed: list[str] = ["self"]
    named: list[str] = []
    body: list[str] = []
    for field in fields:
        name = parameter = value = field.name
        known[f"_put_{name}"] = getattr(cls, name).__set__
        if field.default_factory is not _MISSING:
            known[f"_make_{name}"] = field.default_factory
            parameter = f"{name}=_anew"
            value = f"_make_{name}()"
            if field.init:
                value = f"{value} if {name} is _anew else {name}"
        elif field.default is not _MISSING:
            known[f"_default_{name}"] = field.default
            parameter = f"{name}=_default_{name}"
            value = name if field.init else f"_default_{name}"
        elif not field.init:
            continue
        if field.init:
            (named if field.kw_only else placed).append(parameter)
        body.append(f"  _put_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("  self.__post_init__()")
    parameters = ", ".join([*placed, *(["*", *named] if named else [])])
    text = "\n".join(
        [
            f"def make({', '.join(known)}):",
            f" def __init__({parameters}):",
            *(body or ["  pass"]),
            " return __init__",
        ]
    )
    scope: dict[str, Any] = {}
    # Nothing is in the text but names of fields, which Python has read as names before.
    exec(text, sys.modules[cls.__module__].__dict__, scope)  # noqa: S102
    made = scope["make"](**known)
    made.__annotations__ = {f.name: f.type for f in fields if f.init} | {"return": None}
    return made


def _repr(fields: _Fields) -> Any:
    names = [field.name for field in fields if field.repr]

    @recursive_repr()
    def __repr__(self: Any) -> str:  # noqa: N807
        said = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
        return f"{type(self).__qualname__}({said})"

    return __repr__


def _compared(fields: _Fields, *, frozen: bool) -> dict[str, Any]:
    key = _key([field.name for field in fields if field.compare])

    def __eq__(self: Any, other: object) -> Any:  # noqa: N807
        if other.__class__ is not self.__class__:
            return NotImplemented
        return key(self) == key(other)

    if not frozen:
        return {"__eq__": __eq__, "__hash__": None}
    whole = _key([f.name for f in fields if (f.compare if f.hash is None else f.hash)])

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(whole(self))

    return {"__eq__": __eq__, "__hash__": __hash__}


def _key(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Give a function that reads fields into a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda one: tuple(getattr(one, name) for name in names)


def _frozen(cls: Any, fields: _Fields) -> dict[str, Any]:
    names = tuple(field.name for field in fields)

    def __setattr__(self: Any, name: str, value: Any) -> None:  # noqa: N807
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    def __getstate__(self: Any) -> list[Any]:  # noqa: N807
        return [getattr(self, name) for name in names]

    def __setstate__(self: Any, state: list[Any]) -> None:  # noqa: N807
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return {f.__name__: f for f in (__setattr__, __delattr__, __getstate__, __setstate__)}
