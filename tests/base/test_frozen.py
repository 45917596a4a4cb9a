"""Frozen values: what they refuse, what they still are, and that freezing loses nothing."""

from __future__ import annotations

import copy
import json
import pickle
from collections import OrderedDict, namedtuple
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb._frozen import (
    FrozenDict,
    FrozenList,
    Immutable,
    deep_merge,
    freeze,
    thaw,
    walk_values,
)
from runbook_nb.errors import CycleError, FrozenError

Pair = namedtuple("Pair", "a b")
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=3), inner, max_size=4)
        | st.tuples(inner, inner)
        | st.builds(Pair, inner, inner)
    ),
    max_leaves=12,
)


@given(PLAIN)
def test_freezing_keeps_the_value_and_thawing_gives_an_ordinary_one(value):
    frozen = freeze(value)
    assert frozen == value
    assert thaw(frozen) == value
    assert freeze(frozen) == frozen
    assert type(thaw(frozen)) is type(value)
    assert copy.deepcopy(frozen) == value
    assert pickle.loads(pickle.dumps(frozen)) == value  # noqa: S301 - what a worker is sent


@given(PLAIN)
def test_nothing_of_a_thawed_value_is_shared_with_the_frozen_one(value):
    frozen, loose = freeze(value), thaw(freeze(value))

    def spoil(part):
        if isinstance(part, dict):
            for item in part.values():
                spoil(item)
            part["new"] = 1
        elif isinstance(part, list):
            for item in part:
                spoil(item)
            part.append(1)
        elif isinstance(part, tuple):
            for item in part:
                spoil(item)

    spoil(loose)
    assert frozen == value


@given(PLAIN)
def test_later_changes_by_the_owner_do_not_reach_the_frozen_value(value):
    mine = copy.deepcopy(value)
    frozen = freeze(mine)
    if isinstance(mine, dict):
        mine["new"] = 1
    elif isinstance(mine, list):
        mine.append(1)
    assert frozen == value


CHANGES = {
    "set": lambda d: d.__setitem__("a", 1),
    "del": lambda d: d.__delitem__("a"),
    "ior": lambda d: d.__ior__({}),
    "clear": lambda d: d.clear(),
    "pop": lambda d: d.pop("a"),
    "popitem": lambda d: d.popitem(),
    "setdefault": lambda d: d.setdefault("b"),
    "update": lambda d: d.update({}),
}
LIST_CHANGES = {
    "set": lambda v: v.__setitem__(0, 1),
    "del": lambda v: v.__delitem__(0),
    "iadd": lambda v: v.__iadd__([]),
    "imul": lambda v: v.__imul__(2),
    "append": lambda v: v.append(1),
    "clear": lambda v: v.clear(),
    "extend": lambda v: v.extend([]),
    "insert": lambda v: v.insert(0, 1),
    "pop": lambda v: v.pop(),
    "remove": lambda v: v.remove(1),
    "reverse": lambda v: v.reverse(),
    "sort": lambda v: v.sort(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_frozen_mapping_refuses_every_change(change):
    frozen = freeze({"a": 1})
    with pytest.raises(FrozenError, match="mapping is part of a record") as caught:
        CHANGES[change](frozen)
    assert isinstance(caught.value, TypeError)
    assert frozen == {"a": 1}


@pytest.mark.parametrize("change", LIST_CHANGES)
def test_a_frozen_list_refuses_every_change(change):
    frozen = freeze([1, 2])
    with pytest.raises(FrozenError, match="list is part of a record"):
        LIST_CHANGES[change](frozen)
    assert frozen == [1, 2]


def test_frozen_values_are_real_dicts_and_lists():
    frozen = freeze({"rows": [{"a": 1}]})
    assert isinstance(frozen, dict)
    assert isinstance(frozen["rows"], list)
    assert json.loads(json.dumps(frozen)) == {"rows": [{"a": 1}]}
    assert type(copy.copy(frozen)) is type(frozen.copy()) is dict
    assert type(frozen["rows"].copy()) is list
    assert type(copy.copy(frozen["rows"])) is list
    assert {**frozen} == frozen
    for value in (frozen, frozen["rows"]):
        with pytest.raises(TypeError):
            hash(value)


@pytest.mark.parametrize(
    "atom",
    [
        None,
        True,
        1,
        1.5,
        1j,
        "x",
        b"x",
        date(2026, 1, 1),
        datetime.now(UTC),
        timedelta(1),
        Decimal(1),
    ],
)
def test_what_cannot_change_is_kept_as_it_is(atom):
    assert freeze(atom) is atom
    assert thaw(atom) is atom


def test_other_mappings_sets_and_objects_are_snapshotted():
    class Box:
        def __init__(self):
            self.items = [1]

    class Word(Enum):
        A = 1

    class Own(Immutable):
        pass

    box, own = Box(), Own()
    frozen = freeze(
        {"box": box, "set": {1, 2}, "od": OrderedDict(a=[1]), "word": Word.A, "own": own}
    )
    box.items.append(2)
    assert frozen["box"].items == [1]
    assert frozen["set"] == frozenset({1, 2})
    assert type(frozen["od"]) is FrozenDict
    assert type(frozen["od"]["a"]) is FrozenList
    assert frozen["word"] is Word.A
    assert frozen["own"] is own
    assert thaw(frozen)["word"] is Word.A


def test_named_tuples_stay_named_tuples_of_frozen_parts():
    frozen = freeze(Pair([1], {"a": 1}))
    assert type(frozen) is Pair
    assert type(frozen.a) is FrozenList


def test_what_contains_itself_is_refused_by_name_and_what_occurs_twice_is_not():
    own = {}
    own["own"] = [own]
    with pytest.raises(CycleError, match="'rows' contains itself"):
        freeze(own, "rows")
    twice = [1]
    assert freeze([twice, twice, (twice,)]) == [[1], [1], ([1],)]


def test_what_cannot_be_copied_is_refused_by_name():
    with pytest.raises(FrozenError, match="'client'") as caught:
        freeze({"x": (n for n in ())}, "client")
    assert caught.value.where == "client"


@given(
    st.dictionaries(st.sampled_from("abc"), PLAIN), st.dictionaries(st.sampled_from("abc"), PLAIN)
)
def test_merging_keeps_what_is_not_named_and_replaces_what_is_no_mapping(into, partial):
    before = copy.deepcopy((into, partial))
    merged = deep_merge(into, partial)
    assert (into, partial) == before
    assert set(merged) == set(into) | set(partial)
    for key, value in merged.items():
        if key not in partial:
            assert value == into[key]
        elif not (isinstance(partial[key], dict) and isinstance(into.get(key), dict)):
            assert value == partial[key]
    assert deep_merge(merged, partial) == merged


def test_leaves_are_named_by_their_paths():
    assert dict(walk_values({"rows": [{"age": 1}], "n": (2,)})) == {"rows[0].age": 1, "n[0]": 2}
    assert list(walk_values(5)) == [("", 5)]
