"""Rows that are converted when looked at are the rows that a list of them would be."""

from __future__ import annotations

import json
import pickle
import sys
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from alike import (
    FORMS,
    KEYS,
    MADE,
    PLAIN,
    SUBJECT,
    known_to,
    long,
    options,
    rows_of,
    short,
    tables,
    told,
)

import runbook_nb as rb
from runbook_nb._json import WireReport, to_wire
from runbook_nb.rules import decide
from runbook_nb.rules.columns import as_columns
from runbook_nb.runbook.verdicts import read_rowset
from runbook_nb.runbook.wire_rows import WireRows, is_carried, is_columnar, read_rows

UNITS = ("s", "ms", "us", "ns")

drawn_few = settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],  # what is told is long, and not worth shrinking
)
drawn_many = settings(drawn_few, max_examples=150)


def alike(one, other):
    assert sorted(name for name in one | other if one.get(name) != other.get(name)) == []


#: What is told of the rows alone, and never of the item that a row is about.
OF_ROWS = ("bare", "counts", "table", "run", "refused")


def alike_but_for_items(one, other, rows):
    """Hold an answer that knows the item of each row to one that must find it by its name."""
    names = [row[SUBJECT] for row in rows]
    if len(set(names)) == len(names) and set(map(type, names)) <= {str}:
        alike(one, other)
    else:
        alike(*({name: answer.get(name) for name in OF_ROWS} for answer in (one, other)))


# -- the answer, whichever way it came about -------------------------------------------------------


@given(MADE, tables(), st.sampled_from(sorted(FORMS)), options())
@drawn_few
def test_the_answer_to_a_frame_is_the_answer_to_its_rows_and_that_of_the_long_way(
    rules, table, form, drawn
):
    frame = FORMS[form](table)
    rows = rows_of(frame)
    drawn = known_to(rules, [table], drawn)
    given_whole = told(short, frame, rules, drawn)
    alike(given_whole, told(short, rows, rules, drawn))
    alike_but_for_items(given_whole, told(long, rows, rules, drawn), rows)


@given(MADE, PLAIN, options())
@drawn_few
def test_the_answer_to_rows_that_lack_names_is_that_of_the_long_way(rules, rows, drawn):
    drawn = known_to(rules, rows, drawn)
    alike_but_for_items(told(short, rows, rules, drawn), told(long, rows, rules, drawn), rows)


@given(MADE, PLAIN, options())
@drawn_few
def test_the_counts_are_those_of_the_rules_asked_row_by_row(rules, rows, drawn):
    drawn = {**known_to(rules, rows, drawn), "redact": None}
    words = []
    for row in rows[: drawn["cap"]]:
        try:
            words.append(decide(row, rules).branch)
        except rb.errors.RunbookError:
            words.append(None)
    try:
        answer = short(rows, rules, drawn)
    except rb.errors.RunbookError:
        assert None in words
        return
    reached = [word for word in words if word is not None]
    result = answer["result"]
    assert result["rows_total"] == len(answer.verdicts) == len(reached)
    assert dict(answer.verdicts.counts()) == dict(Counter(reached))
    assert result["rows_shown"] == len(result["verdicts"]) == min(drawn["max_rows"], len(reached))
    ranks = {word: place for place, word in enumerate(drawn["rank"])}
    assert [row["verdict"] for row in answer.verdicts] == sorted(
        reached, key=lambda word: ranks.get(word, len(ranks))
    )


def test_the_two_ways_are_told_apart_where_the_data_differ():
    rules = rb.RuleSet("age", "v1", [rb.Rule({"age": {"gt": 7}}, "old")], "fresh")
    drawn = {"max_rows": 50, "cap": 50, "rank": [], "columns": ["age"], "presentation": "prose",
             "redact": None}  # fmt: skip
    one = told(short, [{"host": "a", "age": 9}], rules, drawn)
    other = told(long, [{"host": "a", "age": 8}], rules, drawn)
    assert {name for name in one if one[name] != other[name]} >= {"json", "text", "frame", "whys"}
    assert one["counts"] == other["counts"]


# -- reading rows --------------------------------------------------------------------------------

CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=3),
    st.sampled_from(
        ["\ud800", Decimal("1.50"), date(2026, 1, 2), datetime(2026, 1, 2, tzinfo=UTC)]
    ),
    st.sampled_from([1j, b"raw", object, {1: 2}, {"a": float("nan")}, (1, 2), 1 << 20_000]),
)
VERDICTS = st.sampled_from(["ok", "bad", "declined", "\ud800", ""])


@given(
    st.lists(
        st.one_of(
            st.fixed_dictionaries({"verdict": VERDICTS}, optional={"a": CELLS, "b": CELLS}),
            st.sampled_from([None, 7, {"a": 1}, {"verdict": 3}, "ok"]),
        ),
        max_size=6,
    ),
    st.lists(VERDICTS, unique=True, max_size=3),
)
@drawn_many
def test_rows_are_kept_counted_ranked_and_converted_as_one_by_one(entries, rank):
    report, expected = WireReport(), WireReport()
    rows, dropped = read_rows(entries, rank, report)
    kept = [e for e in entries if isinstance(e, dict) and isinstance(e.get("verdict"), str)]
    plain = [to_wire(entry, expected) for entry in kept]
    order = {word: place for place, word in enumerate(rank)}
    if rank:
        plain.sort(key=lambda row: order.get(row["verdict"], len(order)))
    assert repr([dict(row) for row in rows]) == repr(plain)
    assert dropped == len(entries) - len(kept)
    assert rows.counts() == Counter(row["verdict"] for row in plain)
    assert report == expected
    assert repr(rows[1:3]) == repr(list(rows)[1:3])


@given(st.lists(st.fixed_dictionaries({"verdict": VERDICTS, "a": CELLS}), max_size=6))
@drawn_many
def test_rows_kept_as_columns_are_read_like_a_list_of_them(entries):
    reports = WireReport(), WireReport()
    ways = [
        read_rowset(held, ["bad"], report)
        for held, report in zip((as_columns(entries), entries), reports, strict=True)
    ]
    assert is_columnar(ways[0].rows.source)
    assert repr(list(ways[0].rows)) == repr(list(ways[1].rows))
    assert list(ways[0].rows.counts().items()) == list(ways[1].rows.counts().items())
    assert ways[0].declined == ways[1].declined
    assert ways[0].dropped == ways[1].dropped == 0


@given(st.lists(CELLS, max_size=5))
@drawn_many
def test_a_column_proven_by_its_types_has_nothing_that_json_cannot_carry(column):
    for held in (column, as_columns({"a": column}).held("a")):
        if is_carried(held):
            report = WireReport()
            for value in column:
                to_wire(value, report)
            assert report == WireReport()


#: Instants of every resolution and kind pandas has, none of them and a null among them.
TIMES = {
    **{unit: pd.Series(["2026-01-02T03:04:05", None]).astype(f"M8[{unit}]") for unit in UNITS},
    "ns beyond us": pd.Series([pd.Timestamp("2026-01-02T03:04:05.123456789"), None]),
    "zone": pd.Series(pd.to_datetime(["2026-03-29T01:30Z", None])).dt.tz_convert("Europe/Berlin"),
    "last": pd.Series(["9999-12-31T23:59:59.999999", "0001-01-01"]).astype("M8[us]"),
    "span": pd.Series([pd.Timedelta(days=3), None]).astype("m8[s]"),
    "arrow": pd.Series(["2026-01-02", None]).astype("M8[us]").astype("timestamp[us][pyarrow]"),
    "arrow span": pd.Series([pd.Timedelta(1), None]).astype("duration[ns][pyarrow]"),
}


@pytest.mark.parametrize("series", TIMES.values(), ids=TIMES)
def test_times_are_proven_by_their_range_and_written_as_row_by_row(series):
    rows = as_columns(pd.DataFrame({"verdict": ["x"] * 2, "at": series}))
    assert is_carried(rows.held("at"))
    one_by_one = [{"verdict": "x", "at": value} for value in rows.column("at")]
    kept, _ = read_rows(rows, [], WireReport())
    assert list(kept) == list(read_rows(one_by_one, [], WireReport())[0])


@pytest.mark.parametrize("form", ["M8[s]", "timestamp[s][pyarrow]"])
def test_a_time_no_datetime_can_hold_is_looked_at(form):
    series = pd.Series([2**40, 0]).astype("M8[s]").astype(form)
    rows = as_columns(pd.DataFrame({"verdict": ["x"] * 2, "at": series}))
    assert not is_carried(rows.held("at"))


def test_judging_by_a_time_makes_nothing_of_each_row(calls_of):
    """A column of times costs as many calls as one of numbers, however many rows there are."""
    rules = rb.RuleSet(
        "r",
        "1",
        [rb.Rule({"at": {"lt": datetime.fromisoformat("2026-02-01T00:00")}}, "old")],
        "new",
    )

    def frame(size):
        at = pd.date_range("2026-01-01", periods=size, freq="min", unit="us")
        return pd.DataFrame({"host": range(size), "at": at})

    small, large = frame(1_000), frame(20_000)
    for each in (small, large):
        rb.triage(each, rules, subject="host", source="s")
    counted = [
        calls_of(lambda each=each: rb.triage(each, rules, subject="host", source="s"))
        for each in (small, large)
    ]
    assert counted[1] < counted[0] + 2_000


def test_what_is_no_row_is_dropped_also_where_rows_are_ranked():
    entries = [{"verdict": "ok"}, {"a": 1}, None, {"verdict": 3}, {"verdict": "bad", "a": 2}]
    rows, dropped = read_rows(entries, ["bad", "ok"], WireReport())
    assert [dict(row) for row in rows] == [{"verdict": "bad", "a": 2}, {"verdict": "ok"}]
    assert dropped == 3
    columns = as_columns([{"verdict": "ok"}, {"a": 1}, {"verdict": 3}, {"verdict": "bad"}])
    rows, dropped = read_rows(columns, ["bad", "ok"], WireReport())
    assert ([row["verdict"] for row in rows], dropped) == (["bad", "ok"], 2)


def test_what_a_row_lacks_is_told_as_none_by_column():
    rows = WireRows(as_columns([{"verdict": "x", "a": 1}, {"verdict": "y"}]), [1, 0])
    assert list(rows.column("a")) == [None, 1]
    assert rows.column("b") is None
    assert WireRows([{"verdict": "x"}]).column("verdict") is None
    assert [rows.place_of(0), rows.place_of(1)] == [1, 0]


def test_rows_copy_as_plain_rows_and_compare_with_lists():
    rows = WireRows([{"verdict": "x", "a": date(2026, 1, 2)}])
    assert rows == [{"verdict": "x", "a": "2026-01-02"}]
    assert rows not in ([], [{"verdict": "y"}], "x")
    assert pickle.loads(pickle.dumps(rows)) == tuple(rows)  # noqa: S301 - made a moment ago
    with pytest.raises(IndexError):
        rows[1]


def test_a_row_is_converted_only_when_looked_at(calls_of):
    small, large = (
        as_columns({"verdict": ["x"] * size, "a": list(range(size))}) for size in (2_000, 20_000)
    )
    counted = [
        calls_of(lambda held=held: read_rows(held, [], WireReport())) for held in (small, large)
    ]
    assert counted[1] < counted[0] + 200
    assert json.dumps(to_wire(read_rows(large, [], WireReport())[0][-1]))


def test_a_frame_of_verdicts_is_a_rowset():
    frame = pd.DataFrame({"host": ["a", "b"], "verdict": ["x", None], "n": [2**53 + 1, 1]})
    rowset = read_rowset(frame)
    assert (len(rowset.rows), rowset.dropped) == (1, 1)
    assert rowset.rows[0]["n"] == 2**53 + 1
    assert not set(KEYS) & set(rowset.rows[0])
