"""Cases 88 to 97: verdict rows, their counters, the table for models."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum

import numpy as np
import pandas as pd
import pytest

import runbook_nb as rb
from runbook_nb.runbook.verdicts import NO_ROWS_TABLE, read_rowset

PROJECTION = {"verdicts", "rows_shown", "rows_total", "rows_complete", "table", "render_note"}


def verdict_run(kit, rows, result_kind="verdict/x", **more):
    return kit.ask(lambda s: s.set("verdicts", rows), result_kind=result_kind, **more)


def test_case_88_another_kind_of_answer_ships_no_rows(kit):
    def stage(scope):
        scope["verdicts"] = [{"verdict": "ok"}]
        scope["report"] = {"restarted": True}

    result = kit.ask(stage, result_kind="actions/restart")["result"]
    assert not PROJECTION & set(result)
    assert result["restarted"] is True
    assert "ref" in result["walk"]
    assert result["rule_version"] == "undeclared"


def test_case_89_the_worked_example(call):
    result = call()["result"]
    assert [row["verdict"] for row in result["verdicts"]] == [
        "protected",
        "unprotected",
        "declined",
    ]
    counters = [result[key] for key in ("rows_shown", "rows_total", "rows_complete")]
    assert counters == [3, 3, True]
    assert "cluster-a" in result["table"]
    assert "VERBATIM" in result["render_note"]


def test_case_90_one_cap_for_list_and_table(kit):
    rows = [{"subject": f"s{n}", "verdict": "ok"} for n in range(5)]
    envelope = verdict_run(kit, rows, verdicts={"decider": "d", "max_rows": 2})
    result = envelope["result"]
    counters = [result[key] for key in ("rows_shown", "rows_total", "rows_complete")]
    assert counters == [2, 5, False]
    assert result["verdicts"] == rows[:2]
    body = result["table"].split("\n")[2:4]
    assert body == ["| s0 | ok |", "| s1 | ok |"]
    assert result["table"].split("\n")[4:] == ["", "2 of 5 rows shown; 3 not in this table."]
    assert envelope.verdicts.complete
    assert len(envelope.verdicts) == 5


def test_case_91_malformed_rows_are_dropped_and_counted_in_the_ledger(kit):
    rows = [{"verdict": "ok"}, {"x": 1}, "s", None, {"verdict": 3}]
    envelope = verdict_run(kit, rows)
    assert envelope["result"]["verdicts"] == [{"verdict": "ok"}]
    assert envelope["result"]["rows_total"] == 1
    said = [item["what"] for item in envelope["af_coverage"]["not_checked"]]
    assert said == ["4 entry(s) of the verdict rows that could not be read"]


@pytest.mark.parametrize("value", [{"a": {"verdict": "ok"}}, "verdicts", 7, {"x", "y"}])
def test_case_92_what_is_no_list_gives_an_empty_rowset_and_says_its_type(kit, value):
    envelope = verdict_run(kit, value)
    result = envelope["result"]
    assert set(result) >= PROJECTION
    assert (result["verdicts"], result["rows_total"], result["rows_complete"]) == ([], 0, True)
    assert result["table"] == NO_ROWS_TABLE
    assert "|" not in result["table"]
    [item] = envelope["af_coverage"]["not_checked"]
    kind = {dict: "dict", str: "str", int: "int", set: "frozenset"}[type(value)]
    assert f"left a {kind}," in item["what"]


def test_case_93_the_layout_of_the_table():
    assert rb.render_verdict_table([{"a": 1, "verdict": "x"}]) == (
        "| a | verdict |\n|---|---|\n| 1 | x |"
    )


def test_case_94_the_first_row_names_the_columns():
    table = rb.render_verdict_table([{"a": 1, "verdict": "x"}, {"b": 2, "verdict": "y"}])
    assert table.split("\n")[2:] == ["| 1 | x |", "| — | y |"]
    assert "b" not in table


class Colour(Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (None, "—"),
        ("", "—"),
        (True, "yes"),
        (False, "no"),
        (0, "0"),
        (0.0, "0.0"),
        (2.0, "2.0"),
        ("a|b", "a\\|b"),
        ("a\nb", "a b"),
        ("a\r\nb\rc", "a b c"),
        ("a\u2028b\x0bc\x85d", "a b c d"),
        ([1, {"x": "a|b"}], '[1,{"x":"a\\|b"}]'),
        ({"k": None}, '{"k":null}'),
        ({3, 1}, "[1,3]"),
        (math.nan, "—"),
        (pd.NaT, "—"),
        (pd.NA, "—"),
        (Decimal("NaN"), "—"),
        (math.inf, "Infinity"),
        (date(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        (pd.Timestamp("2026-01-02"), "2026-01-02T00:00:00"),
        (timedelta(hours=3), "PT3H"),
        (Decimal("1.10"), "1.10"),
        (np.bool_(True), "yes"),
        (np.int64(0), "0"),
        (np.float64("nan"), "—"),
        (Colour.RED, "red"),
        (b"x", "\\<bytes>"),
    ],
)
def test_case_95_cells(value, cell):
    table = rb.render_verdict_table([{"v": value, "verdict": "x"}])
    assert table.split("\n")[2] == f"| {cell} | x |"


def test_case_95_headers_are_escaped_like_cells():
    assert rb.render_verdict_table([{"a|b\nc": 1}]).split("\n")[0] == "| a\\|b c |"


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\u202eb\u2066", "a\\u202eb\\u2066"),
        ("\ud800", "\\ud800"),
        ("a\tb\x00", "a\\tb\\x00"),
        ("<img src=x onerror=alert(1)>", "\\<img src=x onerror=alert(1)>"),
        ("é </b><!--<?x", "é \\</b>\\<!--\\<?x"),
        ("\\<b> \\\\<b>", "\\\\\\<b> \\\\\\\\\\<b>"),
        (["<b>"], '["\\<b>"]'),
        ("a < b, a <3, x<=y, <<", "a < b, a <3, x<=y, <<"),
        ("![x](http://evil.example/?q=1)", "![x]\\(http://evil.example/?q=1)"),
        ("[[a](b)](c) \\]\\(d)", "[[a]\\(b)]\\(c) \\]\\(d)"),
        ("[1] (a), f[0], a]b(c", "[1] (a), f[0], a]b(c"),
    ],
)
def test_a_cell_shows_what_would_act_on_who_reads_it(value, cell):
    for beside in ([], [{"v": "plain", "verdict": "x"}]):  # alone, and among ordinary cells
        table = rb.render_verdict_table([*beside, {"v": value, "verdict": "x"}])
        assert table.split("\n")[-1] == f"| {cell} | x |"


def test_headers_show_it_as_cells_do():
    table = rb.render_verdict_table([{"<b>\x1b": 1}])
    assert table.split("\n")[0] == "| \\<b>\\x1b |"


def test_case_96_the_prefix_of_the_kind_is_exact(kit):
    rows = [{"verdict": "ok"}]
    assert "verdicts" in verdict_run(kit, rows, "verdict/")["result"]
    for kind in ("verdicts/x", "Verdict/x", "xverdict/", "verdict"):
        assert "verdicts" not in verdict_run(kit, rows, kind)["result"]


def test_case_97_no_state_no_rows():
    assert rb.verdict_rows_of({}) == []


def test_rows_may_come_as_a_frame_a_tuple_or_slots(kit):
    rows = [{"s": "a", "verdict": "ok"}, {"s": "b", "verdict": "bad"}]
    for given in (tuple(rows), pd.DataFrame(rows)):
        assert verdict_run(kit, given)["result"]["verdicts"] == rows


@pytest.mark.parametrize("redact", [None, {"keys": ["none"]}])
def test_the_slots_of_a_fan_out_are_rows_and_gaps_are_not_malformed_rows(kit, redact):
    def row(scope):
        item = scope.args["item"]
        if item == "c":
            raise KeyError(item)
        return {"subject": item, "verdict": "ok"}

    def procedure(tools):
        each = rb.flow_chart("one", row, id="row").build()
        return (
            rb.flow_chart("c", lambda s: s.set("xs", list("abcd")), id="a")
            .add_parallel_for_each(
                "Each", id="e", items=lambda s: s["xs"], branch=each, max_branches=3, into="out"
            )
            .add_function("Collect", lambda s: s.set("verdicts", s["out"]), id="z")
            .build()
        )

    envelope = kit.ask(None, procedure=procedure, result_kind="verdict/x", redact=redact)
    assert [row["subject"] for row in envelope["result"]["verdicts"]] == ["a", "b"]
    said = [item["what"] for item in envelope["af_coverage"]["not_checked"]]
    assert said == [
        "1 subject(s) of 'Each' not reached",
        "1 subject(s) of 'Each' whose branch failed",
    ]


def test_a_rank_sorts_the_worst_first_before_the_cap(kit):
    rows = [{"n": n, "verdict": word} for n, word in enumerate(["ok", "bad", "odd", "bad", "ok"])]
    options = {"decider": "d", "max_rows": 3, "rank": ["bad", "ok"]}
    envelope = verdict_run(kit, rows, verdicts=options)
    assert [row["n"] for row in envelope["result"]["verdicts"]] == [1, 3, 0]
    assert [row["n"] for row in envelope.verdicts] == [1, 3, 0, 4, 2]


def test_values_json_cannot_carry_are_replaced_and_counted_once(kit):
    def stage(scope):
        scope["verdicts"] = [{"verdict": "ok", "raw": b"1", "big": 10**5000}]
        scope["report"] = {"raw": b"2", "at": date(2026, 1, 2)}

    envelope = kit.ask(stage, result_kind="verdict/x")
    assert envelope["result"]["verdicts"] == [{"verdict": "ok", "raw": "<bytes>", "big": "<int>"}]
    assert envelope["result"]["at"] == "2026-01-02"
    said = [item["what"] for item in envelope["af_coverage"]["not_checked"]]
    assert said == [
        "2 value(s) of type bytes that the answer could not carry",
        "1 value(s) of type int that the answer could not carry",
    ]


def test_a_row_that_cannot_be_looked_at_is_no_row():
    class Broken(dict):
        def items(self):
            raise RuntimeError("no")

    rowset = read_rowset([Broken(verdict="ok"), {"verdict": "ok"}])
    assert (len(rowset.rows), rowset.dropped) == (1, 1)


class Odd(Sequence):
    """A sequence that cannot be looked at."""

    def __len__(self):
        return 1

    def __getitem__(self, index):
        raise RuntimeError("no")


def test_whatever_a_procedure_leaves_the_answer_stands(kit):
    def stage(scope):
        scope["verdicts"] = [{"verdict": "ok", "odd": Odd()}, {"verdict": "ok"}]
        scope["report"] = {"odd": Odd(), "n": 1}
        scope["coverage"] = {"checked": [Odd()]}

    envelope = kit.ask(stage, result_kind="verdict/x", walk={"recording": True})
    result = envelope["result"]
    assert result["verdicts"] == [{"verdict": "ok"}]
    assert (result["odd"], result["n"]) == ("<Odd>", 1)
    assert "recording_note" in result["walk"]
    whats = [item["what"] for item in envelope["af_coverage"]["not_checked"]]
    assert whats == [
        "1 entry(s) of the verdict rows that could not be read",
        "1 value(s) of type Odd that the answer could not carry",
    ]
    json.dumps(envelope, allow_nan=False)


def test_rows_that_only_look_like_slots_are_counted_as_malformed():
    rowset = read_rowset(
        [
            {"index": 1, "item": "a", "status": "broken"},
            {"index": 2, "item": "b", "status": "failed", "owner": "x"},
        ]
    )
    assert (rowset.rows, rowset.dropped) == ((), 2)
