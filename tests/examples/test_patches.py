"""The published table row by row, the directive before it, and what the change of rules flips."""

import csv
from collections import Counter
from itertools import product
from pathlib import Path

import pandas as pd
import pytest

import runbook_nb as rb
from runbook_nb import decide
from runbook_nb.errors import DefinitionError, LoadError, RunbookError
from runbook_nb.examples import patches as shipped

TABLE = Path(__file__).parent / "data" / "bod_26_04.csv"

#: The outcomes in the words of the published table.
PUBLISHED = {
    "next-upgrade": "fix on system upgrade",
    "60-days": "60 days",
    "14-days": "14 days",
    "3-days": "3 days",
    "3-days-forensic": "3 days & forensic investigation",
}


def published():
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def finding(year=2022, **facts):
    known = {"exploited": "no", "exposed": "no", "automatable": "no", "impact": "partial"}
    return {"vulnerability": f"CVE-{year}-1234", "asset": "a", **known, **facts}


def word(row, version="bod-26-04"):
    (ready,) = shipped.finding_rows([row])
    return decide(ready, shipped.rules(version)).branch


# -- the truth table -----------------------------------------------------------------------------


def test_the_table_is_whole():
    rows = published()
    combinations = {tuple(row[fact] for fact in shipped.FACTS) for row in rows}
    yes_no = ("yes", "no")
    assert combinations == set(product(yes_no, yes_no, yes_no, ("partial", "total")))
    assert len(rows) == 16


@pytest.mark.parametrize("row", published(), ids=lambda row: f"row {row['row']}")
def test_each_row_gives_the_published_outcome(row):
    facts = {fact: row[fact] for fact in shipped.FACTS}
    decision = decide(facts, shipped.rules())
    assert PUBLISHED[decision.branch] == row["outcome"]
    # One rule a row, in the table's own order: the number of the rule is that of the row.
    assert f"by rule {int(row['row']) + 1} of" in decision.sentence


def test_the_outcomes_are_as_many_as_published():
    words = [decide(row, shipped.rules()).branch for row in published()]
    assert Counter(words) == {
        "next-upgrade": 2,
        "60-days": 3,
        "14-days": 6,
        "3-days": 2,
        "3-days-forensic": 3,
    }


@pytest.mark.parametrize("unknown", [None, "unknown", "", "YES?", 1])
def test_a_fact_nobody_knows_is_never_taken_for_no(unknown):
    for row, fact in product(published(), shipped.FACTS):
        facts = {name: row[name] for name in shipped.FACTS} | {fact: unknown}
        assert word(finding(**facts)) == "declined", (row, fact)


def test_unknown_automatability_is_declined_and_says_so():
    answer = shipped.run([finding(exposed="yes", automatable=None)])
    assert answer.verdicts.counts() == {"declined": 1}
    assert "automatable is null" in answer.why(row=0).sentence


# -- the directive before ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("year", "exploited", "wanted"),
    [
        (2020, "yes", "six-months"),
        (2021, "yes", "14-days"),
        (2014, "yes", "six-months"),
        (2026, "yes", "14-days"),
        (2014, "no", "no-deadline"),
        (2026, "no", "no-deadline"),
        (2026, None, "declined"),
        (2026, "unknown", "declined"),
    ],
)
def test_the_directive_before_asks_for_the_year_of_the_identifier(year, exploited, wanted):
    assert word(finding(year, exploited=exploited), "bod-22-01") == wanted


def test_an_entry_without_a_year_is_declined_by_the_directive_before():
    row = finding(exploited="yes") | {"vulnerability": "GHSA-jfh8-c2jp-5v3q"}
    assert word(row, "bod-22-01") == "declined"
    assert word(row | {"exploited": "no"}, "bod-22-01") == "no-deadline"
    assert word(row) == "14-days"


def test_nothing_else_makes_a_difference_before():
    for row in published():
        facts = {name: row[name] for name in shipped.FACTS} | {"exploited": "yes"}
        assert word(finding(**facts), "bod-22-01") == "14-days"


# -- two versions over the same rows -------------------------------------------------------------


@pytest.fixture(scope="module")
def before():
    return shipped.run(version="bod-22-01")


@pytest.fixture(scope="module")
def after(before):
    return before.rejudge(shipped.rules())


def test_judged_again_is_judged_afresh(after):
    assert after.gaps() == {}
    assert after.counts() == shipped.run().verdicts.counts()


def test_every_flip_is_listed_with_its_direction(before, after):
    flips = before.compare(after).to_frame()
    moves = Counter(zip(flips["before"], flips["after"], strict=True))
    assert moves == {
        ("six-months", "14-days"): 2,
        ("six-months", "3-days-forensic"): 2,
        ("six-months", "3-days"): 1,
        ("six-months", "declined"): 1,
        ("14-days", "3-days-forensic"): 2,
        ("14-days", "3-days"): 1,
        ("no-deadline", "next-upgrade"): 2,
        ("no-deadline", "60-days"): 2,
        ("no-deadline", "14-days"): 1,
        ("no-deadline", "3-days"): 1,
        ("no-deadline", "declined"): 1,
    }
    assert "16 of 17 verdicts changed" in str(before.compare(after))


def test_what_stays_is_no_flip(before, after):
    assert "CVE-2021-34527 on print-1" not in set(before.compare(after).to_frame()["subject"])
    assert before.why("CVE-2021-34527 on print-1").verdict == "14-days"


def test_nobody_gets_more_time_by_the_new_rules_when_it_is_listed(before, after):
    days = {"3-days-forensic": 3, "3-days": 3, "14-days": 14, "60-days": 60, "six-months": 183}
    flips = before.compare(after).to_frame()
    for old, new in zip(flips["before"], flips["after"], strict=True):
        if old in days and new in days:
            assert days[new] < days[old]


def test_the_other_way_asks_for_a_fact_that_was_recorded():
    back = shipped.run().rejudge(shipped.rules("bod-22-01"))
    assert back.counts() == {"six-months": 6, "14-days": 4, "no-deadline": 7}


def test_a_copy_that_carries_only_what_was_compared_cannot_be_judged_by_more(before):
    copy = rb.Envelope.from_dict(before.to_dict(dossier=True))
    again = copy.rejudge(shipped.rules())
    assert sum(again.gaps().values()) == 17
    assert all("exposed and automatable and impact" in reason for reason in again.gaps())


def test_the_answer_is_stamped_with_the_version(before):
    assert before["result"]["rule_version"] == "bod-22-01"
    assert shipped.run()["result"]["rule_version"] == "bod-26-04"


def test_a_version_that_is_none_is_refused():
    with pytest.raises(DefinitionError, match="'bod-22-01' or 'bod-26-04'"):
        shipped.rules("bod-19-02")


# -- the exercise, and rows in other forms ---------------------------------------------------------


def test_the_exercise_shows_every_outcome_and_is_called_one():
    answer = shipped.run()
    assert answer.verdicts.counts() == {
        "3-days-forensic": 4,
        "3-days": 3,
        "14-days": 4,
        "60-days": 2,
        "declined": 2,
        "next-upgrade": 2,
    }
    assert answer.ledger.checked[0].what == "an exercise, 17 findings"


def test_identifiers_that_are_made_up_cannot_be_taken_for_real_ones():
    names = {row["vulnerability"] for row in shipped.sample()}
    assert all(name.startswith(("CVE-", "EXERCISE-")) for name in names)
    listed = {r["vulnerability"] for r in shipped.sample() if r["exploited"] == "yes"}
    assert listed == {name for name in names if name.startswith("CVE-")}


def test_truth_values_and_capitals_are_read():
    (row,) = shipped.finding_rows(
        [finding(exploited=True, exposed=False, automatable=" Yes ", impact="TOTAL")]
    )
    assert [row[fact] for fact in shipped.FACTS] == ["yes", "no", "yes", "total"]
    assert word(row) == "3-days-forensic"


def test_a_frame_with_gaps_is_read():
    frame = pd.DataFrame([finding(), finding(2023, automatable=None)])
    assert shipped.run(frame).verdicts.counts() == {"declined": 1, "next-upgrade": 1}


@pytest.mark.parametrize(
    ("name", "year"),
    [
        ("CVE-2021-44228", 2021),
        ("cve-1999-0001", 1999),
        ("CVE-2021-4", None),
        ("CVE-21-44228", None),
        ("see CVE-2021-44228", None),
        (None, None),
    ],
)
def test_the_year_is_that_of_a_whole_identifier(name, year):
    (row,) = shipped.finding_rows([finding() | {"vulnerability": name}])
    assert row["identifier_year"] == year


def test_a_file_is_read_and_named(tmp_path):
    path = tmp_path / "found.csv"
    path.write_text(
        "vulnerability,asset,exploited,exposed,automatable,impact\n"
        "CVE-2021-44228,shop,yes,yes,yes,total\n"
        "CVE-2022-0001,shop,no,yes,,total\n",
        encoding="utf-8",
    )
    answer = shipped.run(file=path)
    assert answer.verdicts.counts() == {"3-days-forensic": 1, "declined": 1}
    assert answer.ledger.checked[0].what == "file found.csv, 2 findings"
    assert "2021-44228 on shop" in answer.verdicts[0]["finding"]


def test_a_file_that_is_not_there_fails_the_run(tmp_path):
    with pytest.raises(LoadError, match=r"'gone\.csv' cannot be read") as told:
        shipped.run(file=tmp_path / "gone.csv")
    assert told.value.run.status == "failed"


def test_no_findings_are_no_all_clear(tmp_path):
    path = tmp_path / "empty.csv"
    path.write_text("vulnerability,asset,exploited\n", encoding="utf-8")
    with pytest.raises(RunbookError, match=r"findings in file empty\.csv"):
        shipped.run(file=path)


def test_the_ledger_says_what_the_rows_cannot_know():
    ledger = shipped.run().ledger
    cannot = [item.what for item in ledger.cannot_cover]
    assert "a date that the catalogue itself sets for an entry" in cannot
    assert all(item.why for item in ledger.cannot_cover)
    assert ledger.not_checked[0].what == "the day each finding became known"


def test_the_worst_stands_first():
    found = [shipped.RANK.index(row["verdict"]) for row in shipped.run().verdicts]
    assert found == sorted(found)


def test_hostile_text_in_a_finding_is_shown_as_text():
    answer = shipped.run([finding() | {"asset": "<script>|x\x1b[31m"}])
    assert "\x1b" not in str(answer)
    assert "<script>" not in answer.to_markdown().replace("\\<script>", "")
