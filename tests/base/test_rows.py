"""Rows of atoms frozen together: the same values, and each row one object however it is got."""

from __future__ import annotations

import copy
import gc
import operator
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb._frozen import FrozenDict, FrozenList, freeze, thaw
from runbook_nb._rows import FrozenRows, frozen_rows
from runbook_nb.errors import CycleError, FrozenError

ATOMS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary()
) | st.sampled_from([date(2026, 1, 2), Decimal("1.5")])
ROWS = st.lists(st.dictionaries(st.text(max_size=3) | st.integers(), ATOMS, max_size=4), max_size=5)
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=2), inner, max_size=3),
    ),
    max_leaves=12,
)


def frozen_through(value: Any) -> bool:
    """Whether a value and all in it is frozen."""
    if isinstance(value, dict):
        return type(value) is FrozenDict and all(map(frozen_through, value.values()))
    if isinstance(value, list):
        return type(value) is FrozenList and all(map(frozen_through, value))
    return not isinstance(value, tuple) or all(map(frozen_through, value))


@given(VALUES)
def test_freezing_changes_no_value_and_leaves_nothing_open(value):
    frozen = freeze(value)
    assert frozen == value
    assert thaw(frozen) == value
    assert frozen_through(frozen)
    assert freeze(frozen) is frozen or type(frozen) is tuple


@given(ROWS)
def test_rows_are_the_frozen_list_of_them(rows):
    made = frozen_rows(rows)
    assert made == freeze(rows) == rows
    assert list(made) == rows
    assert [made[n] for n in range(len(rows))] == rows
    assert all(type(row) is FrozenDict for row in made)
    assert pickle.loads(pickle.dumps(made)) == rows  # noqa: S301
    assert repr(made) == repr(rows)


def test_what_the_owner_does_later_does_not_show():
    rows = [{"n": 1}, {"n": 2}]
    for make in (freeze, frozen_rows):
        made = make(rows)
        rows[0]["n"] = 9
        rows.append({"n": 3})
        assert made == [{"n": 1}, {"n": 2}]
        with pytest.raises(FrozenError):
            made[0]["n"] = 5
        rows[:] = [{"n": 1}, {"n": 2}]


def test_a_row_that_was_looked_at_stays_the_same_object():
    made = frozen_rows([{"n": n} for n in range(5)])
    (fresh,) = made.fresh(3, 4)
    assert made.fresh(3, 4)[0] is not fresh
    made.keep(3, fresh)
    assert made[3] is fresh is made.fresh(3, 4)[0]
    first = made[0]
    assert first is made[0] is made[0:2][0] is next(iter(made)) is made.fresh(0, 1)[0]
    assert made[-1] is made[4]
    assert made.under("n") == [0, 1, 2, 3, 4]
    assert made.under("m") == [None] * 5
    with pytest.raises(IndexError):
        made[5]


@pytest.mark.parametrize(
    "rows", [[], [1, 2], [{"n": [1]}], [{"n": 1}, 2], ({"n": 1},), [FrozenDict(n=1)], {"n": 1}]
)
def test_anything_else_is_frozen_as_ever(rows):
    made = frozen_rows(rows)
    assert not isinstance(made, FrozenRows)
    assert made == freeze(rows)


def test_rows_of_atoms_leave_the_collector_nothing():
    rows = [{"n": n, "name": str(n)} for n in range(1000)]
    gc.collect()
    before = len(gc.get_objects())
    made = frozen_rows(rows)
    gc.collect()
    assert len(gc.get_objects()) - before < 20
    assert len(made) == 1000


def test_a_copy_is_the_rows_again():
    made = frozen_rows([{"n": 1}])
    assert copy.copy(made) == made == copy.deepcopy(made)
    assert made != [{"n": 2}]
    assert made != "rows"
    with pytest.raises(TypeError):
        hash(made)


def test_rows_that_contain_themselves_are_refused_as_ever():
    row: dict[str, Any] = {}
    row["row"] = row
    with pytest.raises(CycleError):
        frozen_rows([row])


def test_rows_of_several_layouts_are_kept_by_layout():
    rows = [{"a": 1, "b": 2}, {"b": 3}, {"b": 4, "a": 5}, {}, {"a": None, "b": 6}]
    made = frozen_rows(rows)
    assert isinstance(made, FrozenRows)
    assert [list(row) for row in made.each()] == [list(row) for row in rows]
    assert list(made.each()) == made.fresh(0, 5) == rows
    assert made.kept == {}
    assert made.under("a") == [1, None, 5, None, None]
    assert made.under("b") == [2, 3, 4, None, 6]
    assert made.column("b") is None
    assert made.table is None
    assert made[2] is made[2]
    assert list(made.kept) == [2]
    assert made == rows
    assert made != rows[:4]


def test_a_column_is_given_only_where_every_row_has_it():
    made = frozen_rows([{"a": n, "b": str(n)} for n in range(3)])
    assert made.column("a") == [0, 1, 2]
    assert made.column("c") is None
    assert made.table == (("a", "b"), [[0, 1, 2], ["0", "1", "2"]])
    both = frozen_rows([{"a": 1, "b": 2}, {"b": 3, "a": 4}])
    assert both.column("a") == [1, 4]


def test_keys_that_only_equal_each_other_stay_what_they_are():
    class Name(str):
        __slots__ = ()

    for rows in ([{1: "a"}, {True: "b"}], [{"k": 1}, {Name("k"): 2}]):
        made = frozen_rows(rows)
        assert [list(map(type, row)) for row in made] == [list(map(type, row)) for row in rows]


def test_rows_that_share_too_little_are_frozen_as_they_are():
    rows = [{f"k{n}": n} for n in range(300)]
    made = frozen_rows(rows)
    assert type(made) is FrozenList
    assert made == rows


def test_going_over_all_rows_keeps_each_as_it_was_given():
    made = frozen_rows([{"n": n} for n in range(600)])
    first = list(made)
    assert all(map(operator.is_, first, made))
    assert all(map(operator.is_, first, made.each()))
    assert len(made.kept) == 600
    assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301


def test_rows_that_all_were_looked_at_are_not_made_again(calls_of):
    rows = frozen_rows([{"n": n, "m": n} for n in range(400)])
    first = list(rows)
    assert all(one is other for one, other in zip(first, rows, strict=True))
    assert calls_of(lambda: list(rows)) <= 40
    some = frozen_rows([{"n": n} for n in range(300)])
    one = some[7]
    assert list(some)[7] is one
    assert list(some) == [{"n": n} for n in range(300)]


def test_a_row_two_threads_look_at_first_is_one_object_for_both(monkeypatch):
    rows = frozen_rows([{"a": n} for n in range(5)])
    both, made = threading.Barrier(2), FrozenRows._made

    def meet(self, index):
        row = made(self, index)
        both.wait(10)
        return row

    monkeypatch.setattr(FrozenRows, "_made", meet)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(rows.__getitem__, (3, 3))
    assert first is second is rows[3]


def test_whoever_keeps_a_row_is_given_the_one_that_is_kept():
    rows = frozen_rows([{"a": 1}, {"a": 2}])
    (one,), (other,) = rows.fresh(0, 1), rows.fresh(0, 1)
    assert rows.keep(0, one) is rows.keep(0, other) is one
