"""Our dataclasses against those of the standard library: the same to whoever uses them."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError
from itertools import product
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runbook_nb import _dataclass as ours
from runbook_nb.rules.model import Rule

DOORS = {"ours": ours, "theirs": dataclasses}


def declared(door: Any, **options: bool) -> type:
    """Declare the same class to one of both."""

    class Reading:
        """What was read."""

        kinds: ClassVar[tuple[str, ...]] = ("a", "b")
        host: str
        days: int = 3
        tags: list[str] = door.field(default_factory=list)
        secret: str = door.field(default="x", repr=False, compare=False)
        seen: int = door.field(default=0, init=False)

        def older(self) -> bool:
            return self.days > 7

    Reading.__module__ = __name__
    Reading.__qualname__ = "Reading"
    return door.dataclass(Reading, **options)


OPTIONS = [
    {
        **{"frozen": frozen, "slots": slots, "eq": eq},
        **{"kw_only": frozen == slots, "repr": slots or eq},
    }
    for frozen, slots, eq in product((True, False), repeat=3)
]
READINGS = st.fixed_dictionaries(
    {"host": st.text(max_size=3)},
    optional={
        "days": st.integers(0, 2),
        "tags": st.lists(st.sampled_from("ab"), max_size=2),
        "secret": st.sampled_from("xy"),
    },
)


@pytest.fixture(scope="module", params=OPTIONS, ids=str)
def both(request):
    return [declared(door, **request.param) for door in DOORS.values()]


def outcome(act, *given_to, **named):
    """Give what came of something: a value, or the class of an error and its words."""
    try:
        return act(*given_to, **named)
    except Exception as error:
        return error.__class__, str(error)


@settings(deadline=None)
@given(one=READINGS, other=READINGS)
def test_comparing_hashing_and_showing_are_those_of_the_standard_library(both, one, other):
    told = []
    for cls in both:
        a, b, text = cls(**one), cls(**other), object.__repr__
        shown = repr(a) if cls.__repr__ is not text else "plain"
        hashed = outcome(lambda a=a: hash(a)) if cls.__eq__ is not object.__eq__ else "plain"
        told.append((a == b, a != b, a == 1, shown, hashed, a.older()))
    assert told[0] == told[1]


@settings(deadline=None)
@given(one=READINGS)
def test_writing_and_deleting_end_as_in_the_standard_library(both, one):
    def attempts(cls):
        made = cls(**one)
        yield outcome(lambda: setattr(made, "days", 9))
        yield made.days
        yield outcome(lambda: delattr(made, "host"))
        yield outcome(lambda: getattr(made, "host", None))

    assert list(attempts(both[0])) == list(attempts(both[1]))


def test_the_class_looks_the_same_from_outside(both):
    for look in (
        inspect.signature,
        lambda cls: cls.__init__.__qualname__,
        lambda cls: cls.__init__.__module__,
        lambda cls: cls.__match_args__,
        lambda cls: getattr(cls, "__slots__", None),
        lambda cls: (cls.__name__, cls.__qualname__, cls.__module__, cls.__doc__),
        lambda cls: [f.name for f in dataclasses.fields(cls)],
        lambda cls: list(map(str, dataclasses.fields(cls))),
        lambda cls: [f.name for f in ours.fields(cls)],
        lambda cls: repr(cls.__dataclass_params__),
        lambda cls: cls.kinds,
        dataclasses.is_dataclass,
        ours.is_dataclass,
    ):
        assert str(look(both[0])) == str(look(both[1]))


@settings(deadline=None)
@given(one=READINGS, changes=READINGS)
def test_the_tools_of_the_standard_library_take_them(both, one, changes):
    told = []
    for cls in both:
        made = cls(**one)
        for replace in (dataclasses.replace, ours.replace):
            other = replace(made, **changes)
            told.append(
                (other.__class__ is cls, dataclasses.asdict(other), dataclasses.astuple(other))
            )
        told[-1] += outcome(ours.replace, made, nobody=1)
        told[-2] += outcome(dataclasses.replace, made, nobody=1)
    assert told[0] == told[1] == told[2] == told[3]


def test_what_init_does_not_take_is_not_replaced(both):
    for replace in (dataclasses.replace, ours.replace):
        for cls in both:
            with pytest.raises((ValueError, TypeError), match="seen"):
                replace(cls(host="a"), seen=3)


@settings(deadline=None)
@given(one=READINGS)
def test_copies_are_equal_and_of_the_class(both, one):
    for cls in both:
        made = cls(**one)
        for copied in (copy.copy(made), copy.deepcopy(made)):
            assert copied.__class__ is cls
            assert dataclasses.astuple(copied) == dataclasses.astuple(made)


def test_missing_and_unknown_arguments_are_told_in_the_same_words(both):
    wrong = (
        {},
        {"nobody": 1},
        {"host": "a", "nobody": 1},
        {"host": "a", "seen": 1},
        {"seen": 1},
        {"days": 1, "tags": [], "secret": "s", "nobody": 1},
    )
    for named in wrong:
        assert outcome(both[0], **named) == outcome(both[1], **named)
        assert outcome(both[0], **named)[0] is TypeError
    for given_to in (("a",) * 5, ("a", 1, [], "s", 0)):
        assert outcome(both[0], *given_to) == outcome(both[1], *given_to)
    for named in ({"host": "b"}, {"nobody": 1}):
        assert outcome(both[0], "a", **named) == outcome(both[1], "a", **named)


def test_arguments_may_be_given_by_place(both):
    days = [getattr(outcome(cls, "a", 4), "days", None) for cls in both]
    assert days[0] == days[1]


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_a_class_inherits_fields_and_sets_to_rights_what_was_given(door):
    @door.dataclass(frozen=True, slots=True)
    class Base:
        a: int = 1

    @door.dataclass(frozen=True, slots=True, kw_only=True)
    class More(Base):
        b: int = 2

        def __post_init__(self) -> None:
            object.__setattr__(self, "b", self.b * 10)

    made = More(5, b=3)
    assert (made.a, made.b, More.__slots__) == (5, 30, ("b",))
    assert str(inspect.signature(More)) == "(a: 'int' = 1, *, b: 'int' = 2) -> None"
    assert repr(made).endswith("More(a=5, b=30)")
    assert Base(1) != More(1)
    assert len({Base(1), Base(1), Base(2)}) == 2
    assert [f.name for f in ours.fields(made)] == ["a", "b"]


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_methods_that_are_written_stay(door):
    @door.dataclass(frozen=True, slots=True, weakref_slot=True)
    class Written:
        a: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

        def __getstate__(self) -> tuple[int]:
            return (self.a,)

    assert (repr(Written(1)), Written(1) == 5, hash(Written(1))) == ("own", True, 7)
    assert Written(1).__getstate__() == (1,)
    assert "__weakref__" in Written.__slots__


def test_another_class_may_be_made_of_ours_by_the_standard_decorator():
    @dataclasses.dataclass(frozen=True)
    class Further(declared(ours, frozen=True)):
        further: int = 4

    made = Further("h", further=5)
    assert (made.host, made.days, made.further) == ("h", 3, 5)
    assert [f.name for f in ours.fields(made)][-1] == "further"
    with pytest.raises(TypeError, match="non-frozen"):
        dataclasses.dataclass(type("Open", (declared(ours, frozen=True),), {}))


def test_a_plain_subclass_has_attributes_of_its_own():
    class Plain(declared(ours, frozen=True)):
        pass

    made = Plain("h")
    made.other = 1
    assert made.other == 1
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'host'"):
        made.host = "b"


def test_one_that_holds_itself_is_shown():
    made = declared(ours)("h")
    made.tags.append(made)
    assert "tags=[...]" in repr(made)


def test_a_default_that_could_be_changed_is_refused():
    for door in DOORS.values():
        with pytest.raises(ValueError, match="default_factory"):
            door.dataclass(type("Bad", (), {"__annotations__": {"a": "list"}, "a": []}))


def test_the_tools_take_those_of_others_too():
    other = declared(dataclasses)
    assert [f.name for f in ours.fields(other)] == [f.name for f in dataclasses.fields(other)]
    assert ours.replace(other("a"), host="b").host == "b"
    assert ours.is_dataclass(other)
    assert not ours.is_dataclass(object)
    with pytest.raises(TypeError):
        ours.fields(object)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_class_of_the_package_travels(protocol):
    rule = Rule({"days": {"gt": 7}}, then="old")
    back = pickle.loads(pickle.dumps(rule, protocol))  # noqa: S301 - our own bytes
    assert back == rule
    assert repr(back) == repr(rule)


def test_a_class_that_says_itself_how_it_is_made_has_its_own_signature():
    class Own(declared(ours, frozen=True)):
        def __init__(self, only: int) -> None:
            super().__init__(str(only))

    class Called(declared(ours, frozen=True)):
        def __call__(self, there: int) -> None:
            """Do nothing."""

    assert Own(3).host == "3"
    assert str(inspect.signature(Own)) == "(only: 'int') -> 'None'"
    assert str(inspect.signature(Called("h"))) == "(there: 'int') -> 'None'"


def test_declaring_and_making_imports_nothing():
    script = """
import sys
from runbook_nb._dataclass import dataclass, fields, is_dataclass, replace
@dataclass(frozen=True, slots=True)
class A:
    a: int = 1
assert repr(replace(A(), a=2)) == "A(a=2)" and A() == A() and is_dataclass(A) and fields(A)
print("dataclasses" in sys.modules, "inspect" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False"]
