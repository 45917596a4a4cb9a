"""Values around a limit, and how the values of a key are spread."""

from __future__ import annotations

import datetime as dt
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runbook_nb.rules import Rule
from runbook_nb.rules.columns import as_columns
from runbook_nb.rules.edges import (
    Limit,
    Measures,
    histogram,
    limits_of,
    measure,
    measured_back,
    nearest_rows,
)
from runbook_nb.rules.kinds import NUMBER, kind_of
from runbook_nb.rules.known import KnownFacts


def measures(rows):
    return Measures(KnownFacts(as_columns(rows)))


AGES = [1, 7, 8, 30, None, "9", 7]


def near(limit, rows=AGES, many=2):
    return nearest_rows(measures({"age": rows}), limit, many)


def test_the_nearest_rows_of_either_side_are_found_in_order_of_value():
    assert [(n.row, n.value, n.distance, n.meets) for n in near(Limit(0, "age", "gt", 7))] == [
        (1, 7, 0.0, False),
        (6, 7, 0.0, False),
        (2, 8, 1.0, True),
        (3, 30, 23.0, True),
    ]


def test_a_value_on_the_limit_is_on_the_side_the_operator_puts_it():
    assert [(n.row, n.meets) for n in near(Limit(0, "age", "gte", 7), many=1)] == [
        (0, False),
        (1, True),
    ]
    assert [(n.row, n.meets) for n in near(Limit(0, "age", "lt", 7), many=1)] == [
        (0, True),
        (1, False),
    ]
    assert [(n.row, n.meets) for n in near(Limit(0, "age", "lte", 7), many=1)] == [
        (1, True),
        (2, False),
    ]


def test_there_may_be_nobody_near():
    assert near(Limit(0, "age", "gt", 7), rows=[None, "x"]) == ()
    assert near(Limit(0, "nowhere", "gt", 7)) == ()


def test_only_limits_values_lie_on_one_side_of_are_measured_from():
    when = {
        "age": {"gt": 7, "lte": 90},
        "tier": {"eq": 3},
        "score": {"between": [1, 5]},
        "name": {"gt": "m"},
        "since": {"lt": dt.date(2026, 1, 1)},
    }
    found = limits_of([Rule(when, "x"), Rule(lambda facts: True, "y")])
    assert [(one.key, one.op, one.value) for one in found] == [
        ("age", "gt", 7),
        ("age", "lte", 90),
        ("score", "between", 1),
        ("score", "between", 5),
        ("since", "lt", dt.date(2026, 1, 1)),
    ]


@pytest.mark.parametrize(
    "value",
    [
        7,
        7.5,
        dt.date(2026, 11, 30),
        dt.datetime(2026, 11, 30, 8, 5),  # noqa: DTZ001 - both kinds are meant
        dt.datetime(2026, 11, 30, 8, 5, tzinfo=dt.UTC),
        dt.timedelta(days=2, seconds=3),
    ],
)
def test_what_is_measured_is_given_back(value):
    kind = kind_of(value)
    assert measured_back(measure(value, kind), kind) == value


def test_a_dotted_key_is_followed():
    rows = [{"conn": {"age": 3}}, {"conn": {"age": 9}}, {"conn": None}]
    found = nearest_rows(measures(rows), Limit(0, "conn.age", "gt", 7))
    assert [(one.row, one.value, one.meets) for one in found] == [(0, 3, False), (1, 9, True)]


def test_frames_are_measured_as_rows_are():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"age": pd.array([1, 7, 8, 30, None], dtype="Int64")})
    limit = Limit(0, "age", "gt", 7)
    of_frame = nearest_rows(Measures(KnownFacts(as_columns(frame))), limit)
    assert of_frame == near(limit, rows=[1, 7, 8, 30, None], many=3)


def test_a_column_is_made_into_numbers_once(calls_of):
    held = measures({"age": list(range(500))})
    limit = Limit(0, "age", "gt", 7)
    first = calls_of(lambda: nearest_rows(held, limit))
    assert calls_of(lambda: nearest_rows(held, limit)) < first


def test_whole_numbers_get_bars_that_begin_on_them():
    found = histogram(measures({"age": [0, 1, 1, 3, None]}), "age", "number", marks=(7.0,))
    assert found.edges == tuple(map(float, range(9)))
    assert found.counts == (1, 2, 0, 1, 0, 0, 0, 0)
    assert (found.total, found.unread, found.open_end) == (4, 1, False)


def test_a_long_tail_is_in_the_last_bar():
    found = histogram(measures({"age": [*range(20), 5000]}), "age", "number")
    assert found.open_end
    assert found.edges[-1] < 200
    assert found.counts[-1] == 1


def test_there_may_be_nothing_to_count():
    found = histogram(measures({"age": [None, "x"]}), "age", "number")
    assert (found.counts, found.total, found.unread) == ((), 0, 2)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.integers(-1000, 1000), st.floats(-1e6, 1e6)), max_size=40),
    st.floats(-1e3, 1e3),
)
def test_every_value_is_in_one_bar(values, mark):
    found = histogram(measures({"a": values}) if values else measures([]), "a", "number", (mark,))
    numbers = [v for v in values if v is not None]
    assert sum(found.counts) == found.total == len(numbers)
    assert found.unread == len(values) - len(numbers)
    if numbers:
        assert len(found.edges) == len(found.counts) + 1
        assert found.edges[0] <= min(*numbers, mark)
        assert found.open_end or found.edges[-1] > max(numbers)
        assert len(found.counts) <= 62


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(-9, 9), min_size=1, max_size=30),
    st.integers(-9, 9),
    st.sampled_from(["gt", "gte", "lt", "lte"]),
)
def test_nobody_is_nearer_than_the_nearest(values, limit, op):
    found = near(Limit(0, "age", op, limit), rows=values, many=2)
    for side in (True, False):
        here = [n for n in found if n.meets is side]
        others = [v for row, v in enumerate(values) if row not in {n.row for n in here}]
        test = {"gt": limit.__lt__, "gte": limit.__le__, "lt": limit.__gt__, "lte": limit.__ge__}[
            op
        ]
        mine = [v for v in others if test(v) is side]
        if mine and here:
            assert max(abs(n.distance) for n in here) <= min(abs(v - limit) for v in mine)
        assert len(here) == min(2, sum(test(v) is side for v in values))
    assert not any(math.isnan(n.distance) for n in found)


@pytest.mark.parametrize(
    ("values", "samples"),
    [
        ([None, 2, 3, 2.5], (2,)),
        ([float("nan"), 2.5, "x", "y", True], (2.5, "x", True)),
        ([None, None], ()),
    ],
)
def test_there_is_one_sample_of_each_kind(values, samples):
    assert measures([{"age": value} for value in values]).samples("age") == samples


def test_samples_of_instants_tell_zones_apart():
    naive = dt.datetime.fromisoformat("2026-01-02T00:00:00")
    aware = naive.replace(tzinfo=dt.UTC)
    assert measures({"age": [naive, naive, aware]}).samples("age") == (naive, aware)


def test_samples_are_found_along_a_path_and_of_no_key():
    rows = [{"a": {"b": 3}}, {"a": {}}]
    assert measures(rows).samples("a.b") == (3,)
    assert measures(rows).samples("c") == ()


def test_a_key_is_looked_through_once(calls_of):
    found = measures({"age": list(range(500))})
    first, again = (calls_of(lambda: found.samples("age")) for _ in range(2))
    assert again < first


@pytest.mark.parametrize("far", [float("inf"), 1.7e308, 1e301])
def test_what_no_axis_reaches_is_counted_and_in_no_bar(far):
    measures = Measures(KnownFacts(as_columns({"a": [1, 2, far, -far, None]})))
    found = histogram(measures, "a", NUMBER, [far, 3.0])
    assert (sum(found.counts), found.total, found.beyond, found.unread) == (2, 2, 2, 1)
    assert found.edges[-1] <= 5


@pytest.mark.parametrize(("value", "mark"), [(-5e-324, 31.0), (5e-324, 0.0), (-5e-324, 0.5)])
def test_the_smallest_numbers_are_in_a_bar(value, mark):
    found = histogram(Measures(KnownFacts(as_columns({"a": [value]}))), "a", NUMBER, [mark])
    assert (sum(found.counts), found.edges[0] <= value) == (1, True)


def test_the_widest_axis_can_be_drawn():
    found = histogram(Measures(KnownFacts(as_columns({"a": [-1e300, 0, 1e300]}))), "a", NUMBER)
    assert (sum(found.counts), found.beyond) == (3, 0)
