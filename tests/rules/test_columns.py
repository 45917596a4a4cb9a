"""Rows kept as columns: what comes in comes out, and no later change shows."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
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
