"""Dataclasses whose classes cost little to declare.

Base layer. The standard decorator writes and compiles five or six functions for every class, which
is a quarter of what a first answer costs where a package has a hundred of them. Here nothing is
written: all classes share their making, comparing, hashing, showing and refusing. To everybody else
they are dataclasses: `dataclasses.fields`, ``replace``, ``asdict``, pickling, signatures, errors
and text are those of the standard library, which is imported when somebody asks and is then told of
the same class.

To a type checker the names here are those of `dataclasses` themselves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from dataclasses import dataclass, field, fields, is_dataclass, replace

#: Where a class keeps its fields, and where the standard library looks for them.
_OURS: Final = "__runbook_nb_fields__"
_THEIRS: Final = "__dataclass_fields__"
#: Where a class keeps how it was declared.
_HOW: Final = "__runbook_nb_how__"

_MISSING: Final = object()
_set: Final = object.__setattr__


class _Factory:
    """Stands in a signature for a default that is made anew each time."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY: Final = _Factory()


class _Field:
    """One field, as it was declared."""

    __slots__ = ("annotation", "compare", "default", "factory", "init", "kw_only", "name", "repr")

    def __init__(
        self,
        *,
        default: Any = _MISSING,
        default_factory: Any = _MISSING,
        init: bool = True,
        repr: bool = True,
        compare: bool = True,
    ) -> None:
        self.name = ""
        self.annotation: Any = None
        self.default = default
        self.factory = default_factory
        self.init = init
        self.repr = repr
        self.compare = compare
        self.kw_only = False

    @property
    def start(self) -> Any:
        """What a field is where nothing is given for it, or the mark of what makes that."""
        return self.default if self.factory is _MISSING else _FACTORY

    def standard(self) -> Any:
        """Give the field as the standard library describes it."""
        from dataclasses import MISSING
        from dataclasses import field as described

        given: Callable[..., Any] = described
        return given(
            default=MISSING if self.default is _MISSING else self.default,
            default_factory=MISSING if self.factory is _MISSING else self.factory,
            init=self.init,
            repr=self.repr,
            compare=self.compare,
            kw_only=self.kw_only,
        )


class _Later:
    """An attribute of a class that is made, once, when it is first asked for."""

    __slots__ = ("cls", "make", "name")
    cls: type

    def __init__(self, name: str, make: Callable[[type], Any]) -> None:
        self.name = name
        self.make = make

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        made = self.make(self.cls)
        setattr(self.cls, self.name, made)
        bind = getattr(made, "__get__", None)
        return made if instance is None or bind is None else bind(instance, owner)


def _decorate(cls: type | None = None, /, **options: bool) -> Any:
    """Make a dataclass; takes what `dataclasses.dataclass` takes, except ``order``."""
    return _made(cls, **options) if cls is not None else lambda given: _made(given, **options)


def _made(
    cls: type,
    *,
    kw_only: bool = False,
    slots: bool = False,
    weakref_slot: bool = False,
    **how: bool,
) -> type:
    own = {one.name: one for one in _declared(cls, kw_only=kw_only)}
    every: dict[str, _Field] = {}
    for base in cls.__mro__[-1:0:-1]:
        every.update(vars(base).get(_OURS, {}))
    every.update(own)
    params = {"init": True, "repr": True, "eq": True, "frozen": False, **how}
    final = _Cell()
    held = {_OURS: every, _HOW: params, **_methods(vars(cls), every, final, slots=slots, **params)}
    if slots:
        made = _slotted(cls, held, own, weakref_slot=weakref_slot)
    else:
        made = cls
        for name, one in own.items():
            if one.default is not _MISSING:
                setattr(cls, name, one.default)
            elif name in vars(cls):
                delattr(cls, name)
        for name, what in held.items():
            setattr(cls, name, what)
    final.cls = made
    for what in held.values():
        if isinstance(what, _Later | _Signature):
            what.cls = made
    return made


def _methods(
    given: Mapping[str, Any],
    every: Mapping[str, _Field],
    final: _Cell,
    *,
    init: bool,
    repr: bool,
    eq: bool,
    frozen: bool,
    slots: bool,
) -> dict[str, Any]:
    """Give what a class gets that does not bring it itself."""
    names = tuple(every)
    key = _key_of(tuple(name for name, one in every.items() if one.compare))
    held: dict[str, Any] = {
        "__match_args__": _positional(every),
        "__dataclass_params__": _Later("__dataclass_params__", _params_of),
        _THEIRS: _Later(_THEIRS, _fields_of),
    }
    if init and "__init__" not in given:
        held["__init__"] = _Later("__init__", _init_of)
        held["__signature__"] = _Signature()
    if repr:
        held["__repr__"] = _repr_of(tuple(name for name, one in every.items() if one.repr))
    if eq:
        held["__eq__"] = _eq_of(key)
    if slots and frozen:
        held["__getstate__"], held["__setstate__"] = _states_of(names)
    held = {name: what for name, what in held.items() if name not in given}
    # A class that only says how it compares is given a hash of None by Python itself.
    if eq and given.get("__hash__") is None and ("__hash__" not in given or "__eq__" in given):
        held["__hash__"] = _hash_of(key) if frozen else None
    if frozen:
        held["__setattr__"], held["__delattr__"] = _refusals(final, frozenset(names))
    if sys.version_info >= (3, 13):
        held["__replace__"] = _replace
    return held


class _Cell:
    """Holds the class that its methods belong to, which is made after them."""

    __slots__ = ("cls",)
    cls: type


def _declared(cls: type, *, kw_only: bool) -> Iterator[_Field]:
    """Give the fields that a class declares itself, in order."""
    given = vars(cls)
    for name, annotation in cls.__annotations__.items():
        if str(annotation).removeprefix("typing.").startswith("ClassVar"):
            continue
        default = given.get(name, _MISSING)
        one = default if default.__class__ is _Field else _Field(default=default)
        if one.default.__class__.__hash__ is None:
            raise ValueError(f"the default of {name} could be changed: use default_factory")
        one.name, one.annotation, one.kw_only = name, annotation, kw_only
        yield one


def _positional(every: Mapping[str, _Field]) -> tuple[str, ...]:
    return tuple(name for name, one in every.items() if one.init and not one.kw_only)


def _slotted(
    cls: type, held: Mapping[str, Any], own: Mapping[str, _Field], *, weakref_slot: bool
) -> type:
    """Make a class again with a slot for each of its fields."""
    taken: set[str] = set()
    for base in cls.__mro__[1:-1]:
        slots = vars(base).get("__slots__", ())
        taken.update((slots,) if isinstance(slots, str) else slots)
    names = [*own, *(["__weakref__"] if weakref_slot else [])]
    space = {n: v for n, v in vars(cls).items() if n not in own}
    space.update(held, __slots__=tuple(n for n in names if n not in taken))
    for name in ("__dict__", "__weakref__"):
        space.pop(name, None)
    made: type = type(cls)(cls.__name__, cls.__bases__, space)
    made.__qualname__ = cls.__qualname__
    return made


# -- the methods that all share ------------------------------------------------------------


def _key_of(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda one: tuple([getattr(one, name) for name in names])


def _eq_of(key: Callable[[Any], tuple[Any, ...]]) -> Any:
    def equal(self: Any, other: object) -> Any:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


def _hash_of(key: Callable[[Any], tuple[Any, ...]]) -> Any:
    def hashed(self: Any) -> int:
        return hash(key(self))

    return hashed


def _repr_of(names: tuple[str, ...]) -> Any:
    @recursive_repr()
    def shown(self: Any) -> str:
        told = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
        return f"{self.__class__.__qualname__}({told})"

    return shown


def _states_of(names: tuple[str, ...]) -> tuple[Any, Any]:
    def state_of(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def restore(self: Any, state: list[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            _set(self, name, value)

    return state_of, restore


def _refusals(final: _Cell, names: frozenset[str]) -> tuple[Any, Any]:
    def assign(self: Any, name: str, value: Any) -> None:
        if self.__class__ is final.cls or name in names:
            _refuse(f"cannot assign to field {name!r}")
        owner: Any = final.cls
        super(owner, self).__setattr__(name, value)

    def delete(self: Any, name: str) -> None:
        if self.__class__ is final.cls or name in names:
            _refuse(f"cannot delete field {name!r}")
        owner: Any = final.cls
        super(owner, self).__delattr__(name)

    return assign, delete


def _refuse(why: str) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(why)


# -- what is made when it is asked for -----------------------------------------------------


def _init_of(cls: type) -> Any:
    """Make ``__init__``; the standard library's says what is wrong with arguments."""
    every: dict[str, _Field] = getattr(cls, _OURS)
    taken = [name for name, one in every.items() if one.init]
    count, positional = len(taken), _positional(every)
    known = {name: one.start for name, one in every.items() if one.start is not _MISSING}
    defaults = {name: value for name, value in known.items() if every[name].init}
    fixed = {name: value for name, value in known.items() if not every[name].init}
    factories = [(name, every[name].factory) for name, at in known.items() if at is _FACTORY]
    puts = [(name, _put_of(cls, name)) for name in every if name in known or name in taken]
    finishes = hasattr(cls, "__post_init__")

    def init(self: Any, /, *args: Any, **given: Any) -> None:
        if args:
            placed = dict(zip(positional, args, strict=False))
            if len(placed) < len(args) or not placed.keys().isdisjoint(given):
                _complain(cls, args, given)
            given.update(placed)
        values = {**defaults, **given}
        if len(values) != count:
            _complain(cls, args, given)
        if fixed:
            if not fixed.keys().isdisjoint(given):
                _complain(cls, args, given)
            values.update(fixed)
        for name, factory in factories:
            if values[name] is _FACTORY:
                values[name] = factory()
        try:
            for name, put in puts:
                put(self, values[name])
        except KeyError:  # as many as there should be, but others
            _complain(cls, args, given)
        if finishes:
            self.__post_init__()

    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__module__ = cls.__module__
    return init


def _put_of(cls: type, name: str) -> Callable[[Any, Any], None]:
    """Give what writes a field, whether or not the class is frozen."""
    slot = getattr(cls, name, None)
    if isinstance(slot, MemberDescriptorType):
        return slot.__set__
    return lambda self, value: _set(self, name, value)


def _complain(cls: type, args: tuple[Any, ...], given: Mapping[str, Any]) -> NoReturn:
    """Raise what the standard library raises for arguments that do not fit."""
    names = [name for name, one in getattr(cls, _OURS).items() if one.init]
    _twin_of(cls).__init__(None, *args, **given)
    raise TypeError(f"{cls.__qualname__} takes {', '.join(names)}")


def _twin_of(cls: type) -> Any:
    """Declare a class again, to the standard library."""
    from dataclasses import make_dataclass

    every: dict[str, _Field] = getattr(cls, _OURS)
    told = [(name, one.annotation, one.standard()) for name, one in every.items()]
    how: dict[str, Any] = getattr(cls, _HOW)
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
    return make_dataclass(cls.__name__, told, namespace=names, **how)


def _fields_of(cls: type) -> Any:
    return getattr(_twin_of(cls), _THEIRS)


def _params_of(cls: type) -> Any:
    return _twin_of(cls).__dataclass_params__


class _Signature:
    """How a class is called; instances that can be called say so themselves."""

    __slots__ = ("cls",)
    cls: type

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        makes = next(base for base in type.mro(owner) if "__init__" in vars(base))
        if instance is not None or makes is not self.cls:
            raise AttributeError("__signature__")
        from inspect import signature

        return signature(_twin_of(self.cls))


# -- what is asked of dataclasses, ours and those of others --------------------------------


def _fields(of: Any) -> tuple[Any, ...]:
    cls = of if isinstance(of, type) else type(of)
    every = getattr(cls, _OURS, None)
    if every is not None and (every is vars(cls).get(_OURS) or _THEIRS not in vars(cls)):
        return tuple(every.values())
    from dataclasses import fields as described

    return described(of)


def _is_dataclass(of: Any) -> bool:
    cls = of if isinstance(of, type) else type(of)
    return any(_THEIRS in vars(base) for base in cls.__mro__)


def _replace(self: Any, /, **changes: Any) -> Any:
    for one in _fields(self):
        if one.init:
            changes.setdefault(one.name, getattr(self, one.name))
        elif one.name in changes:
            raise ValueError(f"field {one.name} is not given when {type(self).__name__} is made")
    return type(self)(**changes)


if not TYPE_CHECKING:
    dataclass, field, fields = _decorate, _Field, _fields
    is_dataclass, replace = _is_dataclass, _replace

__all__ = ["dataclass", "field", "fields", "is_dataclass", "replace"]
