"""Counting small numbers: with numpy and without it the same."""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb.record import tallies
from runbook_nb.record.tallies import (
    Identities,
    RunningSums,
    first_and_last,
    gathered,
    gathered_pairs,
    mapped,
    places_of,
    run_count,
    runs,
    standing,
    tally,
    tally_pairs,
)

FEW = st.integers(-1, 3)
MANY = st.integers(-1, 100_000)
LISTS = st.one_of(st.lists(FEW, max_size=60), st.lists(MANY, max_size=200), st.just([7] * 30))


@pytest.fixture(params=["python", "numpy"], autouse=True)
def way(request, monkeypatch):
    """Count with numpy whatever the length, or without it."""
    import numpy

    use = (lambda length: numpy if length else None) if request.param == "numpy" else lambda _: None
    monkeypatch.setattr(tallies, "numpy_for", use)
    monkeypatch.setattr(tallies, "BLOCK", 4)
    return request.param


def held(numbers):
    """Yield the numbers in each form that they are kept in."""
    yield array("i", numbers)
    yield array("q", numbers)
    if all(0 <= number < 256 for number in numbers):
        yield bytes(numbers)
        yield bytearray(numbers)
        yield array("B", numbers)
    yield tuple(numbers)


def in_order(found):
    return list(found.items())


@given(LISTS)
def test_runs_say_the_numbers_again_and_none_follows_its_like(numbers):
    for form in held(numbers):
        told = runs(form)
        pairs = list(zip(told[::2], told[1::2], strict=True))
        assert [number for number, times in pairs for _ in range(times)] == numbers
        assert all(one[0] != other[0] for one, other in pairwise(pairs))
        assert run_count(form) == len(pairs)
        assert set(map(type, told)) <= {int}


def test_identities_tell_equal_objects_apart_and_keep_them():
    one, other = [1.5], [1.5]
    found = Identities([one, other, one, None])
    assert (found.numbers[0], found.numbers[1]) == (found.numbers[2], id(other))
    assert found.numbers[0] != found.numbers[1]
    assert found.held[1] is other


@given(LISTS)
def test_each_number_is_counted_in_order_of_first_standing(numbers):
    for form in held(numbers):
        assert in_order(tally(form)) == in_order(Counter(numbers))


@given(LISTS, st.data())
def test_pairs_are_counted_in_order_of_first_standing(numbers, data):
    size = len(numbers)
    statuses = data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    pairs = list(zip(numbers, statuses, strict=True))
    for form in held(numbers):
        assert in_order(tally_pairs(form, bytearray(statuses))) == in_order(Counter(pairs))
        found = gathered_pairs(form, bytearray(statuses))
        assert list(found) == list(dict.fromkeys(pairs))
        for pair, places in found.items():
            assert list(places) == [place for place, one in enumerate(pairs) if one == pair]


def test_pairs_of_wide_numbers_are_counted_too():
    ones, others = array("H", [300, 2, 300]), array("H", [700, 256, 700])
    assert list(tally_pairs(ones, others).items()) == [((300, 700), 2), ((2, 256), 1)]


@given(LISTS)
def test_places_are_found_in_order(numbers):
    for form in held(numbers):
        found = gathered(form)
        ends = first_and_last(form)
        assert list(found) == list(ends) == list(dict.fromkeys(numbers))
        for number, places in found.items():
            where = [place for place, one in enumerate(numbers) if one == number]
            assert list(places) == list(places_of(form, number)) == where
            assert list(standing(form, number)) == where
            assert ends[number] == (where[0], where[-1])
        assert list(standing(form, -9)) == [] if not isinstance(form, bytes | bytearray) else True


@given(LISTS)
def test_a_table_maps_every_number(numbers):
    for tops in (200, 70_000):
        table = {number: place % tops for place, number in enumerate(dict.fromkeys(numbers))}
        for form in held(numbers):
            found = mapped(form, table)
            assert list(found) == [table[number] for number in numbers]
            assert found.itemsize == (1 if all(n < 256 for n in table.values()) else 8)


@given(LISTS, st.data())
def test_running_sums_lead_to_the_place_a_sum_lies_in(numbers, data):
    weights = {n: data.draw(st.integers(0, 5)) for n in dict.fromkeys(numbers)}
    for form in held(numbers):
        sums = RunningSums(form, weights)
        assert sums.total == sum(weights[number] for number in numbers)
        before = 0
        for place, number in enumerate(numbers):
            for inside in range(weights[number]):
                assert sums.at(before + inside) == (place, before)
            before += weights[number]
        assert sums.at(before) == (len(numbers), before)


def test_running_sums_keep_one_sum_per_block(way):
    sums = RunningSums(array("i", [0]) * 1_000, {0: 3})
    assert len(sums._ends) == 250
    assert sums.at(1_499) == (499, 1_497)


def test_numpy_is_not_imported_for_little(monkeypatch):
    monkeypatch.undo()
    monkeypatch.delitem(sys.modules, "numpy", raising=False)
    assert tallies.numpy_for(99_999) is None
    assert "numpy" not in sys.modules


def test_numbers_below_nothing_are_mapped_beside_small_ones():
    many = array("B", [3] * 100_001)
    assert mapped(many, {-1: 0, 3: 300}) == array("H", [300]) * 100_001
