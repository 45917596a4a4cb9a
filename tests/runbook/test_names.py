"""A name finds every place that a look at each name finds."""

from __future__ import annotations

import math
from datetime import date

from hypothesis import given, settings
from hypothesis import strategies as st

from runbook_nb.runbook.names import NameIndex, is_called, name_key

quick = settings(max_examples=200, deadline=None, derandomize=True)

NAMES = st.one_of(
    st.sampled_from(["a", "7", "True", "é", "e\u0301", "\ud800", "\\ud800", "2026-01-02", "[1]"]),
    st.sampled_from([None, 7, 7.0, True, False, 1, 0, 2**70, math.inf, date(2026, 1, 2), (1,)]),
)
LISTS = st.one_of(
    st.lists(NAMES, max_size=8),
    st.lists(st.sampled_from(["a", "b", "c"]), max_size=8),
    st.lists(st.sampled_from(["a", "\ud800", "\\ud800"]), max_size=8),
    st.lists(st.integers(0, 4), max_size=8),
)


@given(LISTS, NAMES)
@quick
def test_the_index_finds_what_a_look_at_each_name_finds(names, asked):
    index = NameIndex(lambda: names)
    expected = [place for place, name in enumerate(names) if is_called(name, asked)]
    assert index.places(asked) == expected
    assert NameIndex(lambda: iter(names)).places(asked) == expected
    key = name_key(asked)
    same = [p for p, name in enumerate(names) if name is not None and name_key(name) == key]
    assert index.of_key(key) == (same if key is not None else [])


@given(LISTS)
@quick
def test_every_name_finds_its_own_places(names):
    index = NameIndex(lambda: names)
    for place, name in enumerate(names):
        assert (place in index.places(name)) == (name is not None)


def test_nothing_is_named_before_it_is_asked_for():
    asked = []
    index = NameIndex(lambda: asked.append(1) or ["a", 7])
    assert asked == []
    index.places("a")
    index.places("b")
    index.places("a")
    assert len(asked) == 2  # once for the index, once for what names are shown as


def test_what_another_thread_lets_go_of_meanwhile_is_not_missed():
    class Left(NameIndex):
        """One whose names and keys are gone whenever they are looked at."""

        _held = _keys = property(lambda self: None, lambda self, value: None)

    index = Left(lambda: ["a", 7, "a"])
    assert [index.places(name) for name in ("a", 7, "b", "a")] == [[0, 2], [1], [], [0, 2]]


def test_texts_and_numbers_are_kept_apart_but_for_how_they_are_shown():
    index = NameIndex(lambda: ["7", 7, True, 1])
    assert index.places(7) == [1]
    assert index.places("7") == [0, 1]
    assert index.places(True) == [2]
    assert index.places(1) == [3]
    assert index.places(None) == []
