"""Rows kept as columns: what comes in comes out, and no later change shows."""

from __future__ import annotations

import datetime as dt
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from runbook_nb._frozen import FrozenDict
from runbook_nb._text import MISSING
from runbook_nb.errors import RuleError
from runbook_nb.rules.columns import as_columns, rows_of


def test_rows_come_out_with_the_keys_they_had_in_their_order():
    rows = [{"a": 1, "b": 2}, {"b": 1, "a": 2}, {"a": 1}, {}, {"c": [1]}]
    columns = as_columns(rows)
    assert columns == rows
    assert [list(row) for row in columns] == [list(row) for row in rows]
    assert columns.names == ("a", "b", "c")
    assert [columns.layouts[columns.layout_of(n)] for n in range(5)] == [tuple(r) for r in rows]
    assert list(columns.column("b")) == [2, 1, MISSING, MISSING, MISSING]
    assert columns.values("nowhere", [0, 1]) == [MISSING, MISSING]
    assert isinstance(columns[-1], FrozenDict)
    assert columns[1:3] == rows[1:3]


def test_rows_that_share_too_little_are_kept_as_they_are():
    rows = [{f"k{n}": n, "id": n} for n in range(1000)]
    columns = as_columns(rows)
    assert columns == rows
    assert list(columns.column("k7"))[6:9] == [MISSING, 7, MISSING]
    assert pickle.loads(pickle.dumps(columns)) == rows  # noqa: S301 - ours


def test_a_later_change_by_the_owner_does_not_show():
    rows = [{"a": [1]}, {"a": [2]}]
    array = np.arange(3)
    frame = pd.DataFrame({"n": [1, 2], "o": [[1], {"x": 1}]})
    kept = [as_columns(rows), as_columns({"a": array}), as_columns(frame)]
    before = [list(columns) for columns in kept]
    rows[0]["a"].append(9)
    rows[1]["b"] = 1
    array[0] = 99
    frame.loc[0, "n"] = 77
    frame["o"][0].append(5)
    assert [list(columns) for columns in kept] == before


def test_of_a_frame_every_na_is_null_and_integers_stay_integers():
    frame = pd.DataFrame(
        {"id": pd.array([2**60 + 1, None], dtype="Int64"), "f": [1.5, float("nan")]}
    )
    assert rows_of(frame) == [{"id": 2**60 + 1, "f": 1.5}, {"id": None, "f": None}]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (iter([{}]), "list_iterator"),
        (7, "int"),
        ([1], "row 0 is int"),
        ({"a": [1], "b": [1, 2]}, "not equally long"),
        ({"a": "text"}, "'a' is 'str'"),
        ({1: [1], "1": [1]}, "written '1'"),
        ([{1: 1, "1": 1}], "row 0 has two columns"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "written 'a'"),
        (pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([(1, 2), (1, 3)])), "2 levels"),
    ],
)
def test_what_is_no_frame_is_refused_with_a_remedy(source, said):
    with pytest.raises(RuleError, match=said) as refused:
        as_columns(source)
    assert refused.value.code == "bad_frame"
    assert refused.value.fix


@pytest.fixture(scope="module")
def large():
    """A frame of every usual type, of which nothing per row should be made when it is taken."""
    size = 20_000
    numbers = np.arange(size)
    frame = pd.DataFrame(
        {
            "id": numbers,
            "share": numbers / 7,
            "known": numbers % 2 == 0,
            "name": [f"host-{n}" for n in range(size)],
            "kind": pd.Categorical.from_codes(numbers % 3, ["a", "b", "c"]),
            "at": pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(numbers, unit="s"),
            "old": pd.Series(["x"] * size, dtype=object),
        }
    )
    frame["maybe"] = frame["id"].astype("Int64")
    return frame


@pytest.mark.parametrize("form", [lambda f: f, pa.Table.from_pandas], ids=["pandas", "arrow"])
def test_nothing_per_row_is_made_of_a_frame_before_it_is_looked_at(form, large, calls_of):
    source = form(large)
    as_columns(source)  # what is made once is made
    tracemalloc.start()
    columns = as_columns(source)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken / len(large) < 10
    assert calls_of(lambda: as_columns(source)) < 5_000
    assert columns[19_999]["name"] == "host-19999"
    assert columns[3]["kind"] == "a"


def test_empty_frames_have_no_rows_and_frames_without_columns_empty_ones():
    assert list(as_columns(pd.DataFrame())) == list(as_columns({})) == list(as_columns([])) == []
    assert list(as_columns(pd.DataFrame(index=[1, 2]))) == [{}, {}]
    assert list(as_columns([{}, {}])) == [{}, {}]


def test_names_are_text_whatever_labelled_the_columns():
    frame = pd.DataFrame([[1, 2]], columns=[7, pd.Timestamp("2026-01-01")])
    assert as_columns(frame).names == ("7", "2026-01-01 00:00:00")
    assert as_columns([{7: 1}]).names == as_columns({7: [1]}).names == ("7",)


def test_times_keep_their_zone_and_every_nanosecond():
    at = pd.Series(pd.to_datetime(["2026-07-01", None]).tz_localize("Europe/Berlin"))
    fine = pd.Series([pd.Timestamp("2026-01-01 00:00:00.000000001"), pd.Timestamp("2026-01-01")])
    row, other = as_columns({"at": at, "fine": fine})
    assert row["at"].isoformat() == "2026-07-01T00:00:00+02:00"
    assert type(row["at"]) is dt.datetime
    assert other["at"] is None
    assert row["fine"] == pd.Timestamp("2026-01-01 00:00:00.000000001")
    assert type(other["fine"]) is dt.datetime


def test_a_part_has_the_rows_of_its_range(large):
    columns = as_columns(large)
    assert columns.part(range(5, 9)) == columns[5:9]


# -- some cells of a column ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        ["a", None, "é", "d"] * 40,
        [1, None, 3, 4] * 40,
        [1.5, float("nan"), None, -0.0] * 40,
        [dt.date(2026, 1, 2), None] * 80,
    ],
)
def test_few_cells_of_arrow_data_are_those_of_many_wherever_they_lie(values):
    chunks = pa.chunked_array([values[:3], values[3:90], values[90:]])
    held = as_columns(pa.table({"x": chunks})).held("x")
    whole = held.whole()
    places = [0, 2, 3, 89, 90, 159, 4, 4]
    expected = [whole[place] for place in places]
    assert held.many(places) == held.many(tuple(places)) == held.many(iter(places)) == expected
    assert [held[place] for place in places] == expected
    assert held.many(places * 20) == expected * 20  # more than are read one by one


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean", "float64", "datetime64[ns]"])
def test_one_cell_of_an_array_is_that_of_the_whole(dtype):
    series = pd.Series([1, None, 0, 1], dtype="Float64").astype(dtype)
    held = as_columns(pd.DataFrame({"x": series})).held("x")
    whole = held.whole()
    assert [held.many((place,))[0] for place in range(4)] == whole
    assert whole[1] is None
    assert [type(held[place]) for place in range(4)] == list(map(type, whole))
