"""Frozen classes against the standard library's own: the same to whoever uses them."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runbook_nb._value import frozen, inner
from runbook_nb.rules.model import Rule


def declared(decorate: Any) -> type:
    """Declare the same class with one of the decorators."""

    class Reading:
        """What was read."""

        kinds: ClassVar[tuple[str, ...]] = ("a", "b")
        host: str
        days: float = 3
        tags: tuple[Any, ...] = ()
        notes: list[Any] = field(default_factory=list, compare=False)
        secret: str = field(default="x", repr=False, compare=False)
        seen: int = field(default=0, init=False)

        def older(self) -> bool:
            return self.days > 7

    Reading.__module__ = __name__
    Reading.__qualname__ = "Reading"
    return decorate(Reading)


def made_alike(*, kw_only: bool) -> tuple[type, ...]:
    theirs = dataclasses.dataclass(frozen=True, slots=True, kw_only=kw_only)
    return tuple(map(declared, (frozen(kw_only=kw_only), theirs, inner(kw_only=kw_only))))


BY_NAME, BY_PLACE = made_alike(kw_only=True), made_alike(kw_only=False)
NAN = float("nan")


@inner
class Line:
    depth: int
    cells: tuple[str, ...] = ()


READINGS = st.fixed_dictionaries(
    {"host": st.text(max_size=2)},
    optional={
        "days": st.sampled_from([0, 1, 1.0, NAN]),
        "tags": st.lists(st.sampled_from(["a", 1, [], NAN]), max_size=2).map(tuple),
        "secret": st.sampled_from("xy"),
    },
)


def outcome(act, *given_to, **named):
    """Give what came of something: a value, or the class of an error and its words."""
    try:
        return act(*given_to, **named)
    except Exception as error:
        return error.__class__, str(error)


@settings(deadline=None)
@given(one=READINGS, other=READINGS)
def test_comparing_hashing_and_showing_are_those_of_the_standard_library(one, other):
    told = []
    for cls in BY_NAME:
        a, b = cls(**one), cls(**other)
        hashed = outcome(hash, a)
        told.append((a == b, a != b, a == 1, a == a, repr(a), hashed, a.older()))  # noqa: PLR0124
    assert told[0] == told[1] == told[2]


@settings(deadline=None)
@given(one=READINGS, changes=READINGS)
def test_the_tools_of_the_standard_library_take_them(one, changes):
    told = []
    for cls in BY_NAME:
        other = dataclasses.replace(cls(**one), **changes)
        assert other.__class__ is cls
        asked = (dataclasses.asdict, dataclasses.astuple, copy.copy, copy.deepcopy)
        told.append([repr(ask(other)) for ask in asked])
        told[-1].append(outcome(dataclasses.replace, other, nobody=1))
        told[-1].append(outcome(dataclasses.replace, other, seen=1))
    assert told[0] == told[1] == told[2]


@pytest.mark.parametrize("both", [BY_NAME, BY_PLACE], ids=["by name", "by place"])
def test_the_class_looks_the_same_from_outside(both):
    for look in (
        inspect.signature,
        lambda cls: cls.__match_args__,
        lambda cls: cls.__slots__,
        lambda cls: (cls.__name__, cls.__qualname__, cls.__module__, cls.__doc__),
        lambda cls: list(map(str, dataclasses.fields(cls))),
        lambda cls: cls.kinds,
        dataclasses.is_dataclass,
    ):
        assert len({str(look(cls)) for cls in both}) == 1


@pytest.mark.parametrize("both", [BY_NAME, BY_PLACE], ids=["by name", "by place"])
def test_wrong_arguments_are_told_in_the_same_words(both):
    for given_to in ((), ("a",), ("a", 1, (), [], "s", 0)):
        for named in ({}, {"nobody": 1}, {"host": "a"}, {"host": "a", "seen": 1}):
            assert len({repr(outcome(cls, *given_to, **named)) for cls in both}) == 1


def test_writing_and_deleting_are_refused():
    made = BY_NAME[0](host="a")
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'days'"):
        made.days = 9
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'host'"):
        del made.host
    assert (made.days, made.host) == (3, "a")


def test_what_the_package_keeps_to_itself_travels_and_takes_no_other_names():
    made = Line(cells=("a",), depth=1)
    back = pickle.loads(pickle.dumps(copy.copy(made)))  # noqa: S301 - our own bytes
    assert (back, hash(back), repr(back)) == (made, hash(made), repr(made))
    with pytest.raises(AttributeError):
        made.colour = "red"


def test_names_only_is_the_rule_and_place_the_exception():
    assert BY_PLACE[0]("a", 4).days == 4
    with pytest.raises(TypeError, match="positional"):
        BY_NAME[0]("a")


def test_a_class_inherits_fields_and_sets_to_rights_what_was_given():
    @frozen(kw_only=False)
    class Base:
        a: int = 1

    @frozen
    class More(Base):
        b: int = 2

        def __post_init__(self) -> None:
            object.__setattr__(self, "b", self.b * 10)

    made = More(5, b=3)
    assert (made.a, made.b, More.__slots__) == (5, 30, ("b",))
    assert str(inspect.signature(More)) == "(a: 'int' = 1, *, b: 'int' = 2) -> None"
    assert repr(made).endswith("More(a=5, b=30)")
    assert Base(1) != More(1)
    assert More(1) != More(1, b=3)
    assert len({Base(1), Base(1), Base(2)}) == 2


def test_methods_that_are_written_stay():
    @frozen
    class Written:
        a: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

    assert (repr(Written(a=1)), Written(a=1) == 5, hash(Written(a=1))) == ("own", True, 7)


def test_one_that_only_says_how_it_compares_is_hashed_by_its_fields():
    def equal(self: Any, other: object) -> bool:
        return True

    for decorate in (frozen, dataclasses.dataclass(frozen=True, slots=True)):
        cls = decorate(type("Some", (), {"__annotations__": {"a": "int"}, "__eq__": equal}))
        assert hash(cls(a=3)) == hash((3,))
        assert cls(a=3) == cls(a=4)


def test_what_shows_itself_may_inherit_that():
    class Shown:
        __slots__ = ()

        def __repr__(self) -> str:
            return "shown"

    @frozen(repr=False)
    class Inherits(Shown):
        a: int

    @frozen
    class Replaces(Shown):
        a: int

    assert repr(Inherits(a=1)) == "shown"
    assert repr(Replaces(a=1)).endswith("Replaces(a=1)")


def test_one_may_be_made_by_a_method_of_its_own():
    @frozen(init=False)
    class Made:
        a: int

        def __init__(self, text: str) -> None:
            object.__setattr__(self, "a", int(text))

    assert Made("3") == Made(" 3")
    assert str(inspect.signature(Made)) == "(text: 'str') -> 'None'"


@pytest.mark.parametrize("names", [(), ("a",), ("a", "b")], ids=len)
def test_any_number_of_fields_compares_as_a_tuple_does(names):
    cls = frozen(type("Some", (), {"__annotations__": dict.fromkeys(names, "float")}))
    given_to = dict.fromkeys(names, NAN)
    assert cls(**given_to) == cls(**given_to)
    assert hash(cls(**given_to)) == hash((NAN,) * len(names))


def test_one_that_holds_itself_is_shown():
    made = BY_NAME[0](host="h")
    made.notes.append(made)
    assert "notes=[...]" in repr(made)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_class_of_the_package_travels(protocol):
    rule = Rule({"days": {"gt": 7}}, then="old")
    back = pickle.loads(pickle.dumps(rule, protocol))  # noqa: S301 - our own bytes
    assert back == rule
    assert repr(back) == repr(rule)


def test_a_hash_that_is_taken_away_stays_away():
    @frozen
    class Unhashed:
        n: int
        __hash__ = None

    @frozen
    class Compared:  # noqa: PLW1641 - the decorator gives it one
        n: int

        def __eq__(self, other):
            return self.n == other.n

    with pytest.raises(TypeError, match="unhashable"):
        hash(Unhashed(n=1))
    assert Unhashed(n=1) == Unhashed(n=1)
    assert hash(Compared(n=1)) == hash(Compared(n=1))
