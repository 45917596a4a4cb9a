"""Records behave as the standard library's dataclasses do, field by field."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import field

import pytest

from runbook_nb._records import record

MADE = {"ours": record, "original": dataclasses.dataclass}


@pytest.fixture(params=MADE)
def make(request):
    """Either decorator; a test that takes it holds for both."""
    return MADE[request.param]


class Base:
    __slots__ = ()

    def __repr__(self):
        return "of the base"


def point(make, **options):
    @make(**{"frozen": True, "slots": True, **options})
    class Point(Base):
        """A point."""

        x: int
        y: int = 2
        marks: list[str] = field(default_factory=list)

    return Point


@record(frozen=True, slots=True)
class Kept:
    """Of this module, so that it can be pickled."""

    name: str
    parts: tuple[int, ...] = ()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"kw_only": True},
        {"frozen": False},
        {"repr": False},
        {"eq": False},
        {"weakref_slot": True},
        {"frozen": False, "kw_only": True, "repr": False, "eq": False},
    ],
)
def test_what_a_class_looks_like_is_the_same(options):
    ours, original = (point(make, **options) for make in MADE.values())
    assert str(inspect.signature(ours)) == str(inspect.signature(original))
    assert ours.__slots__ == original.__slots__
    assert ours.__match_args__ == original.__match_args__
    assert [f.name for f in dataclasses.fields(ours)] == ["x", "y", "marks"]
    assert (ours.__hash__ is None) == (original.__hash__ is None)
    assert repr(ours(x=1)).rpartition(".")[2] == repr(original(x=1)).rpartition(".")[2]
    assert set(vars(ours)) == {*vars(original), "__signature__"}


def test_values_defaults_and_what_is_made_anew(make):
    kind = point(make)
    one, other = kind(1), kind(1, 2, [])
    assert (one.x, one.y, one.marks) == (1, 2, [])
    assert one.marks is not kind(1).marks
    assert one == other
    assert one != kind(3)
    assert one != (1, 2, [])
    assert not hasattr(one, "__dict__")


@pytest.mark.parametrize(
    ("args", "named", "said"),
    [
        ((), {}, "missing .* argument: 'x'"),
        ((1, 2, [], 4), {}, "positional arguments"),
        ((1,), {"x": 1}, "multiple values for argument 'x'"),
        ((1,), {"z": 1}, "unexpected keyword argument 'z'"),
    ],
)
def test_wrong_arguments_are_refused(make, args, named, said):
    with pytest.raises(TypeError, match=rf"Point.__init__\(\) .*{said}"):
        point(make)(*args, **named)


def test_fields_given_by_name_only_are_not_taken_by_place(make):
    with pytest.raises(TypeError):
        point(make, kw_only=True)(1)


def test_nothing_of_a_frozen_one_changes(make):
    shown = point(make)(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        shown.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del shown.x
    assert shown.x == 1


def test_one_that_is_not_frozen_changes_and_has_no_hash(make):
    shown = point(make, frozen=False)(1)
    shown.x = 5
    assert shown.x == 5
    with pytest.raises(TypeError, match="unhashable"):
        hash(shown)


def test_equal_ones_have_one_hash_and_fields_left_out_do_not_count(make):
    @make(frozen=True, slots=True)
    class Named:
        name: str
        seen: list[int] = field(default_factory=list, compare=False, repr=False)

    assert Named("a", [1]) == Named("a", [2])
    assert hash(Named("a", [1])) == hash(Named("a", [2])) == hash(("a",))
    assert repr(Named("a")).endswith("Named(name='a')")


def test_a_field_that_is_not_given_gets_its_default(make):
    @make(frozen=True, slots=True)
    class Counted:
        name: str
        seen: int = field(init=False, default=3)
        made: list[int] = field(init=False, default_factory=list)

    assert (Counted("a").seen, Counted("a").made) == (3, [])
    with pytest.raises(TypeError):
        Counted("a", 4)


def test_what_a_class_writes_itself_stays(make):
    @make(frozen=True, slots=True)
    class Own:
        name: str
        wide: int = 0

        def __post_init__(self):
            object.__setattr__(self, "wide", len(self.name))

        def __repr__(self):
            return "own words"

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 7

    shown = Own("abc")
    assert (shown.wide, repr(shown), shown == 1, hash(shown)) == (3, "own words", True, 7)


def test_an_equality_alone_leaves_the_hash_to_the_fields(make):
    @make(frozen=True, slots=True)
    class Own:  # noqa: PLW1641 - the decorator makes it
        name: str

        def __eq__(self, other):
            return True

    assert hash(Own("a")) == hash(("a",))


def test_a_class_with_no_fields_is_one_as_well(make):
    @make(frozen=True, slots=True)
    class Empty:
        pass

    assert Empty() == Empty()
    assert repr(Empty()).endswith("Empty()")
    assert hash(Empty()) == hash(())


def test_subclasses_that_add_fields(make):
    parent = point(make)

    @make(frozen=True, slots=True)
    class Wider(parent):
        z: int = 9

    assert (Wider(1, z=3).x, Wider(1, z=3).z) == (1, 3)
    assert Wider(1) != parent(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Wider(1).x = 2


def test_a_frozen_one_takes_nothing_new_and_a_plain_subclass_only_what_is_its_own():
    """The original says the wrong thing here, as its class is not the one with the slots."""
    parent = point(record)

    class Loose(parent):
        pass

    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'new'"):
        parent(1).new = 2
    loose = Loose(1)
    loose.more = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        loose.x = 2


def test_a_record_inside_itself_is_shown(make):
    shown = point(make)(1)
    shown.marks.append(shown)
    assert repr(shown).endswith("Point(x=1, y=2, marks=[...])")


def test_copies_and_replacements():
    kept = Kept("a", (1,))
    assert pickle.loads(pickle.dumps(kept)) == kept  # noqa: S301 - written a moment ago
    assert copy.deepcopy(kept) == copy.copy(kept) == kept
    assert dataclasses.replace(kept, name="b") == Kept("b", (1,))


def test_a_class_without_slots_is_refused():
    with pytest.raises(TypeError, match="has slots"):
        record(slots=False)
