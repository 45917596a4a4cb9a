"""`triage`: rows one already has, judged by the long way's own machinery."""

from __future__ import annotations

import asyncio
import json
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest

import runbook_nb as rb
from runbook_nb.errors import DefinitionError
from runbook_nb.runbook.payload import exported_payload

AGE = rb.RuleSet(
    "age", "v1", [rb.Rule({"days": {"gt": 7}}, "old", label="over a week")], rb.Default("fresh")
)


def triage(rows, rules=AGE, **more):
    options = {"subject": "host", "source": "inventory"}
    return rb.triage(rows, rules, **{**options, **more})


def words(envelope):
    return [row["verdict"] for row in envelope.verdicts]


def test_the_answer_is_that_of_the_long_way():
    envelope = triage([{"host": "a", "days": 9}, {"host": "b", "days": 1}, {"host": "c"}])
    assert words(envelope) == ["old", "fresh", "declined"]
    assert list(envelope["result"]) == [
        "af_provenance",
        "rule_version",
        "verdicts",
        "rows_shown",
        "rows_total",
        "rows_complete",
        "table",
        "render_note",
        "verdict_meanings",
        "walk",
    ]
    assert envelope["result"]["walk"]["steps_executed"] == 15
    assert envelope.ledger.checked[0].what == "inventory"
    assert "age v1" in envelope["af_coverage"]["sentence"]
    assert envelope.why("a").sentence == "old by rule 1 of age v1: days 9 > 7"


def test_a_frame_with_missing_values_of_every_kind():
    frame = pd.DataFrame(
        {
            "host": pd.Categorical(["a", "b", "c", "d"]),
            "days": pd.array([9, None, 1, 30], dtype="Int64"),
            "share": [0.5, math.nan, np.inf, 1.0],
            "seen": pd.to_datetime(["2026-01-01", None, "2026-01-03", "2026-01-04"], utc=True),
            "kept": pd.array([True, None, False, True], dtype="boolean"),
            "note": [None, "x", pd.NA, pd.NaT],
        }
    )
    envelope = triage(frame, columns=["days", "share", "seen", "kept", "note"])
    assert words(envelope) == ["old", "declined", "fresh", "old"]
    first, second, third, _ = envelope.verdicts
    assert dict(first) == {
        "host": "a",
        "verdict": "old",
        "days": 9,
        "share": 0.5,
        "seen": "2026-01-01T00:00:00+00:00",
        "kept": True,
        "note": None,
    }
    assert (second["days"], second["share"], second["seen"], second["kept"]) == (None,) * 4
    assert third["share"] == "Infinity"
    assert envelope.why("b").decision.status == "null"
    json.dumps(envelope, allow_nan=False)
    assert type(first["days"]) is int


def test_numpy_scalars_in_plain_rows():
    rows = [
        {"host": np.str_("a"), "days": np.int64(9)},
        {"host": "b", "days": np.float32(1.5)},
        {"host": "c", "days": np.float64("nan")},
        {"host": "d", "days": np.datetime64("NaT")},
    ]
    envelope = triage(rows)
    assert words(envelope) == ["old", "fresh", "declined", "declined"]
    json.dumps(envelope, allow_nan=False)
    assert envelope.why("c").decision.status == "nan"


def test_times_with_zones_are_compared_across_zones():
    limit = datetime(2026, 1, 2, tzinfo=UTC)
    rules = rb.RuleSet("t", "1", [rb.Rule({"at": {"lt": limit}}, "late")], "in time")
    frame = pd.DataFrame(
        {
            "host": ["a", "b", "c"],
            "at": pd.to_datetime(
                ["2026-01-02T00:30+01:00", "2026-01-02T01:30+01:00", None], utc=True
            ).tz_convert("Europe/Berlin"),
        }
    )
    envelope = triage(frame, rules)
    assert words(envelope) == ["late", "in time", "declined"]
    naive = triage([{"host": "a", "at": datetime(2026, 1, 1)}], rules)  # noqa: DTZ001 - the case
    assert words(naive) == ["declined"]


def test_frames_of_odd_shape():
    indexed = pd.DataFrame({"days": [9]}, index=pd.Index(["a"], name="host"))
    with pytest.raises(DefinitionError, match="no column 'host'"):
        triage(indexed)
    assert words(triage(indexed.reset_index())) == ["old"]
    double = pd.DataFrame([["a", 1, 2]], columns=["host", "days", "days"])
    with pytest.raises(DefinitionError, match="two columns written 'days'"):
        triage(double)
    numbered = pd.DataFrame([["a", 9]])
    rules = rb.RuleSet("n", "1", [rb.Rule({"1": {"gt": 7}}, "old")], "fresh")
    envelope = triage(numbered, rules, subject="0")
    assert dict(envelope.verdicts[0]) == {"0": "a", "verdict": "old", "1": 9}


@pytest.mark.parametrize("rows", [[], (), pd.DataFrame({"host": [], "days": []})])
def test_no_rows_is_an_answer_that_says_so(rows):
    envelope = triage(rows)
    assert envelope["result"]["rows_total"] == 0
    assert "nothing was assessed" in str(envelope)


def test_what_is_no_rows_is_refused_kindly():
    with pytest.raises(DefinitionError, match=r"generator.*list\(rows\)"):
        triage(row for row in [{"host": "a"}])
    with pytest.raises(DefinitionError, match=r"list_iterator.*list\(rows\)"):
        triage(iter([{"host": "a"}]))
    for rows in ("host", {1}, 7, None, pd.Series([1])):
        with pytest.raises(DefinitionError, match="pass a DataFrame, a mapping of columns, a list"):
            triage(rows)
    with pytest.raises(DefinitionError, match="row 1 is str"):
        triage([{"host": "a"}, "b"])


def test_rows_may_be_any_mappings_and_are_left_alone():
    row = {"host": "a", "days": 9, "tags": ["x"]}
    envelope = triage((MappingProxyType(row), {"host": "b", "days": 1}), columns=["tags"])
    row["tags"].append("y")
    assert envelope.verdicts[0]["tags"] == ["x"]
    assert row == {"host": "a", "days": 9, "tags": ["x", "y"]}


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"subject": "hots"}, "subject"),
        ({"subject": ""}, "subject"),
        ({"subject": "verdict"}, "subject"),
        ({"source": " "}, "source"),
        ({"columns": "days"}, "columns"),
        ({"columns": ["verdict"]}, "columns"),
        ({"columns": ["dayz"]}, "columns"),
        ({"report": ["x"]}, "report"),
        ({"presentation": "table"}, "presentation"),
        ({"max_rows": 0}, "verdicts.max_rows"),
        ({"redact": {"key": []}}, "redact"),
        ({"rules": [{"days": {"gt": 7}}]}, "rules"),
    ],
)
def test_options_that_cannot_be_kept_are_named(options, where):
    with pytest.raises(DefinitionError) as caught:
        triage([{"host": "a", "days": 9, "verdict": "x"}], **options)
    assert caught.value.where == where


def test_a_column_called_verdict_never_takes_the_place_of_the_answer():
    rules = rb.RuleSet("v", "1", [rb.Rule({"verdict": {"eq": "bad"}}, "worse")], "fine")
    envelope = triage([{"host": "a", "verdict": "bad"}], rules)
    assert words(envelope) == ["worse"]
    assert envelope.why("a").sentence == 'worse by rule 1 of v 1: verdict = "bad"'


def test_keys_with_dots_are_columns_first_and_paths_second():
    rules = rb.RuleSet(
        "d", "1", [rb.Rule({"a.b": {"gt": 1}}, "x"), rb.Rule({"c.d": {"gt": 1}}, "y")], "z"
    )
    envelope = triage([{"host": "h", "a.b": 1, "c": {"d": 2}}], rules)
    assert dict(envelope.verdicts[0]) == {"host": "h", "verdict": "y", "a.b": 1, "c": {"d": 2}}


def test_caps_ranks_reports_and_ground():
    rows = [{"host": f"h{n}", "days": n} for n in range(12)]
    envelope = triage(
        rows,
        max_branches=10,
        max_rows=3,
        rank=["old"],
        report={"week": 7},
        checked=["the jobs"],
        not_checked=["tapes"],
        cannot_cover=[rb.Item("why", "no record")],
    )
    assert [row["host"] for row in envelope["result"]["verdicts"]] == ["h8", "h9", "h0"]
    assert envelope["result"]["rows_total"] == 10
    assert envelope["result"]["week"] == 7
    assert [item.what for item in envelope.ledger.checked[:2]] == ["inventory", "the jobs"]
    assert [item.what for item in envelope.ledger.not_checked] == [
        "tapes",
        "2 subject(s) of 'Judge each row' not reached",
    ]
    assert envelope.ledger.cannot_cover[0].why == "no record"
    assert "12 subjects (8 fresh, 2 old, 2 not reached)" in repr(envelope)


def test_each_row_is_explained_by_its_own_item_also_where_names_are_alike():
    rows = [{"host": "a", "days": n} for n in (1, 9, 2, 9)] + [{"host": None, "days": 3}]
    envelope = triage(rows)
    copy = rb.Envelope.from_dict(json.loads(envelope.to_json(dossier=True)))
    for each in (envelope, copy):
        sentences = [each.why(row=n).sentence for n in range(5)]
        assert sentences[0] == "fresh by default of age v1: no rule fired"
        assert sentences[1] == sentences[3] == "old by rule 1 of age v1: days 9 > 7"
        assert sentences[4] == sentences[0]
        assert [each.why(row=n).facts.index for n in range(5)] == [0, 1, 2, 3, 4]
        with pytest.raises(LookupError, match="4 rows"):
            each.why("a")
    hidden = triage(rows, columns=[])
    copy = rb.Envelope.from_dict(json.loads(hidden.to_json(dossier=True)))
    for each in (hidden, copy):
        assert [each.why(row=n).facts.index for n in range(5)] == [0, 1, 2, 3, 4]
    assert str(copy) == str(hidden)


def test_subjects_that_are_no_texts_are_found_as_they_are_shown():
    at = datetime(2026, 1, 2, tzinfo=UTC)
    rows = [{"host": name, "days": 9} for name in (at, 7, Decimal("1.50"), date(2026, 1, 3))]
    envelope = triage(rows)
    assert list(envelope.to_frame()["decided_by"]) == ["days 9 > 7"] * 4
    for asked in (at, at.isoformat(), 7, "7", Decimal("1.50"), "1.50", date(2026, 1, 3)):
        assert envelope.why(asked).verdict == "old"


def test_five_thousand_rows():
    rows = [{"host": f"h{n}", "days": n % 40} for n in range(5000)]
    envelope = triage(rows)
    assert envelope["result"]["rows_total"] == len(envelope.verdicts) == 5000
    assert envelope["result"]["rows_shown"] == 50
    assert "10 of 5000 rows" in str(envelope)
    assert envelope.why("h4999").decision.branch == "old"
    assert len(envelope.to_frame()) == 5000
    assert envelope.verdicts.counts() == {"fresh": 1000, "old": 4000}
    walk = envelope["result"]["walk"]
    assert (walk["shown"], walk["projection"]) == (500, "control-flow")
    copy = rb.Envelope.from_dict(envelope.to_dict(dossier=True))
    assert str(copy) == str(envelope)
    assert str(copy.why("h4999")) == str(envelope.why("h4999"))


def test_thousands_of_rows_of_one_name_are_each_explained():
    envelope = triage([{"host": "same", "days": n % 9} for n in range(3000)])
    assert list(envelope.to_frame()["decided_by"][7:9]) == ["default: no rule fired", "days 8 > 7"]
    assert envelope.why(row=8).sentence == "old by rule 1 of age v1: days 8 > 7"
    with pytest.raises(LookupError, match="3000 rows"):
        envelope.why("same")


def test_a_file_carries_the_first_of_very_many_and_says_of_how_many(monkeypatch, tmp_path):
    monkeypatch.setattr("runbook_nb.runbook.payload.EXPORTED_SUBJECTS", 20)
    envelope = triage([{"host": f"h{n}", "days": n % 9} for n in range(90)], rank=["old"])
    assert exported_payload(envelope)["carried"] == {"rows": [20, 90], "subjects": [20, 90]}
    copy = rb.Envelope.from_notebook(envelope.to_notebook(tmp_path / "a.ipynb"))
    assert (copy.verdicts.total, copy.verdicts.complete) == (90, False)
    assert copy.why(row=3).sentence == envelope.why(row=3).sentence


def test_inside_a_running_loop():
    async def main():
        return triage([{"host": "a", "days": 9}])

    assert words(asyncio.run(main())) == ["old"]


def test_a_toolbox_of_ones_own_keeps_the_walk_and_its_tools():
    box = rb.Toolbox([])
    for days in (9, 1):
        envelope = triage([{"host": "a", "days": days}], toolbox=box)
        assert box.artifacts.get_sync(envelope["result"]["walk"]["ref"]) is not None
    assert sorted(tool.name for tool in box) == ["rows", "triage"]
    mine = rb.define_tool(name="rows", description="mine", execute=lambda args: 1)
    with pytest.raises(DefinitionError, match="'rows' of its own"):
        triage([], toolbox=rb.Toolbox([mine]))
    assert words(triage([{"host": "a", "days": 9}], name="rows")) == ["old"]


def test_durations_and_units_read_as_they_were_declared():
    rules = rb.RuleSet(
        "d", "1", [rb.Rule({"age": {"gt": timedelta(days=7)}}, "old", unit=None)], "fresh"
    )
    envelope = triage([{"host": "a", "age": timedelta(days=8)}], rules)
    assert envelope.verdicts[0]["age"] == "P8D"
    assert envelope.why("a").sentence == "old by rule 1 of d 1: age P8D > P7D"


@pytest.mark.parametrize(
    "rows",
    [
        [{"host": "a", "days": 9, 1: "x", "1": "y"}],
        pd.DataFrame({"host": ["a"], "days": [9], 1: ["x"], "1": ["y"]}),
    ],
)
def test_columns_that_are_written_alike_are_refused(rows):
    with pytest.raises(DefinitionError, match="of which only one would be read"):
        triage(rows)


def test_a_subject_whose_name_json_has_to_spell_is_found_again():
    envelope = triage([{"host": "bad \ud800 name", "days": 9}])
    assert envelope.why(row=0).sentence == "old by rule 1 of age v1: days 9 > 7"


@pytest.mark.parametrize("word", ["n/a", " padded", "two\nlines", "no#1"])
def test_a_verdict_that_cannot_name_a_branch_is_refused_as_a_verdict(word):
    rules = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, word)], "fresh")
    with pytest.raises(DefinitionError, match=r"the verdict .* cannot name a branch"):
        triage([{"host": "a", "days": 9}], rules)


@pytest.mark.parametrize("rank", ["old", None, {"old": 1}])
def test_a_rank_is_a_list_of_verdict_words(rank):
    with pytest.raises(DefinitionError, match=r"rank is .* not a list of verdict words"):
        triage([{"host": "a", "days": 9}], rank=rank)


@pytest.mark.parametrize("names", ["host", ["host", "site"]])
def test_a_subject_that_is_the_index_is_pointed_at(names):
    frame = pd.DataFrame({"host": ["a", "b"], "site": ["x", "y"], "days": [9, 1]}).set_index(names)
    with pytest.raises(DefinitionError, match=r"'host' is the frame's index.*reset_index\(\)"):
        triage(frame)
    assert words(triage(frame.reset_index())) == ["old", "fresh"]
    with pytest.raises(DefinitionError, match="did you mean 'days'"):
        triage(frame, subject="day")
