"""The standard library's ``dataclass`` for classes with slots, at a ninth of what defining costs.

Base layer. The original compiles up to eight functions for every class, half a millisecond; here
nothing is compiled, and the functions are closures over the fields. A session pays for a hundred
such classes before its first answer, and makes few of most of them. Instances behave as the
original's but take half as long again to make, so what is made by the thousand stays a
``dataclass``. Type checkers see the original. Not provided: ``InitVar``, ordering, and inheriting
from a class of the original's making.
"""

from __future__ import annotations

import dataclasses
import inspect
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

__all__ = ["record"]


class _Anew:
    """Stands in a signature for a default that is made anew each time."""

    def __repr__(self) -> str:
        return "<factory>"


_ANEW: Final = _Anew()


def _record(
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
        raise TypeError("a record has slots; without them it is a dataclasses.dataclass")

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
            made.__signature__ = _Signature()
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
    from dataclasses import dataclass as record
else:
    record = _record

_Fields = tuple[dataclasses.Field[Any], ...]


def _init(cls: Any, fields: _Fields) -> Any:
    """Make ``__init__``, which puts each value straight into its slot."""
    given = [field for field in fields if field.init]
    by_place = [field for field in given if not field.kw_only]
    ordered = [*by_place, *(field for field in given if field.kw_only)]
    puts = tuple(getattr(cls, field.name).__set__ for field in by_place)
    wanted = tuple((f.name, getattr(cls, f.name).__set__, *_default(f)) for f in ordered)
    #: What is left to be found by name or default when so many values came by place.
    left = tuple(wanted[taken:] for taken in range(len(puts) + 1))
    own = tuple(
        (getattr(cls, f.name).__set__, *default)
        for f in fields
        if not f.init and (default := _default(f)) != (_MISSING, None)
    )
    afterwards = hasattr(cls, "__post_init__")

    def __init__(self: Any, *args: Any, **words: Any) -> None:  # noqa: N807
        taken = len(args)
        if taken > len(puts):
            raise _refusal(cls, args, words)
        for put, value in zip(puts, args, strict=False):
            put(self, value)
        used = 0
        for name, put, default, anew in left[taken]:
            if name in words:
                put(self, words[name])
                used += 1
            elif anew is not None:
                put(self, anew())
            elif default is not _MISSING:
                put(self, default)
            else:
                raise _refusal(cls, args, words)
        if used != len(words):
            raise _refusal(cls, args, words)
        for put, default, anew in own:
            put(self, default if anew is None else anew())
        if afterwards:
            self.__post_init__()

    return __init__


def _default(field: dataclasses.Field[Any]) -> tuple[Any, Any]:
    """Give what a field holds when nothing is given, and what makes it anew each time."""
    anew = field.default_factory
    return field.default, None if anew is _MISSING else anew


def _refusal(cls: Any, args: tuple[Any, ...], words: dict[str, Any]) -> TypeError:
    """Say what is wrong with arguments, as Python does."""
    try:
        inspect.signature(cls).bind(*args, **words)
    except TypeError as error:
        return TypeError(f"{cls.__qualname__}.__init__() {error}")
    return TypeError(f"{cls.__qualname__}.__init__() cannot take these arguments")


class _Signature:
    """Gives the signature of a class when somebody asks; few do."""

    def __get__(self, one: object, cls: Any) -> inspect.Signature:
        by_place: list[inspect.Parameter] = []
        by_name: list[inspect.Parameter] = []
        for field in dataclasses.fields(cls):
            if not field.init:
                continue
            default, anew = _default(field)
            if anew is not None:
                default = _ANEW
            parameter = inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY
                if field.kw_only
                else inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=inspect.Parameter.empty if default is _MISSING else default,
                annotation=field.type,
            )
            (by_name if field.kw_only else by_place).append(parameter)
        return inspect.Signature([*by_place, *by_name], return_annotation=None)


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
