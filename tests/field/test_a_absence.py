"""Probes A5 to A10: absence and empty ground must not read as "fine"."""

from __future__ import annotations

import pytest

import runbook_nb as rb
from runbook_nb.coverage import Ledger
from runbook_nb.errors import RuleError

GOOD_WORDS = ("ok", "good", "fine", "healthy", "clean", "passed", "success", "all ")


def test_probe_a5_zero_subjects_read_as_nothing_assessed(triage):
    rules = rb.RuleSet("r", "1", [rb.Rule({"days": {"gt": 7}}, "old")], "fresh")
    envelope = triage([], rules)
    result = envelope["result"]
    assert (result["rows_total"], result["rows_complete"], result["verdicts"]) == (0, True, [])
    assert "; 0 row(s) assessed" in envelope["af_coverage"]["sentence"]
    [gap] = envelope["af_coverage"]["not_checked"]
    assert gap["what"].startswith("nothing was assessed")
    assert "verdict_meanings" not in result
    first = str(envelope).split("\n")[0]
    assert first == "Envelope triage · r 1 · 0 subjects, no rule was tried"
    for text in (first, result["table"]):
        assert not [word for word in GOOD_WORDS if word in text.lower()]


def test_probe_a6_an_empty_series_is_declined_and_not_cool(triage):
    def mean(points):
        return sum(points) / len(points) if points else None

    rules = rb.RuleSet("load", "1", [rb.Rule({"mean": {"gt": 90}}, "hot")], "cool")
    rows = [{"host": h, "mean": mean(p)} for h, p in (("a", [95]), ("b", []), ("c", [5]))]
    envelope = triage(rows, rules)
    assert [row["verdict"] for row in envelope.verdicts] == ["hot", "declined", "cool"]
    assert envelope.why("b").sentence == (
        "declined: rule 1 of load 1 could not be read, mean is null"
    )


def test_probe_a7_ground_outside_the_rules_is_never_clean(triage):
    outside = rb.Outside({"os": {"eq": "x"}}, "hosts on x", "the scanner has no data for it")
    rules = rb.RuleSet(
        "cve", "1", [rb.Rule({"findings": {"gt": 0}}, "vulnerable")], "clean", outside=[outside]
    )
    rows = [{"host": "a", "os": "linux", "findings": 0}, {"host": "b", "os": "x", "findings": 0}]
    envelope = triage(rows, rules)
    assert [row["verdict"] for row in envelope.verdicts] == ["clean", "declined"]
    assert envelope["af_coverage"]["cannot_cover"] == [
        {"what": "hosts on x", "why": "the scanner has no data for it"}
    ]
    markdown = envelope.to_markdown()
    assert "hosts on x — the scanner has no data for it" in markdown
    labels = [section.label for section in envelope.view().sections]
    assert labels[:2] == ["Verdicts", "Coverage"]
    assert "hosts on x" in envelope.why("b").sentence


def test_probe_a8_no_rules_at_all_is_an_error_at_once():
    with pytest.raises(RuleError, match="rule"):
        rb.RuleSet("r", "1", [], "fresh")


def test_probe_a8_rules_that_fire_for_nobody_do_not_hide_it(triage):
    rules = rb.RuleSet("r", "1", [rb.Rule({"dayz": {"gt": 7}}, "old")], "fresh")
    envelope = triage([{"host": n, "days": 9} for n in "abc"], rules)
    assert [row["verdict"] for row in envelope.verdicts] == ["declined"] * 3
    assert "no verdict was reached" in str(envelope).split("\n")[0]


def test_probe_a9_empty_things_are_shown_as_plain_sentences(triage, monkeypatch):
    rules = rb.RuleSet("r", "1", [rb.Rule({"days": {"gt": 7}}, "old")], "fresh")
    envelope = triage([], rules)
    assert "no rows: nothing was assessed" in str(envelope.verdicts)
    assert "no coverage is declared" in str(Ledger())
    assert "cannot be shown" not in str(envelope.walk)
    wire = envelope.to_dict()
    for part in ("checked", "not_checked"):
        wire["af_coverage"].pop(part)
    wire["result"]["walk"] = {}
    bare = rb.Envelope.from_dict(wire)
    for text in (str(bare), bare.to_markdown(), str(bare.ledger), str(bare.walk), repr(bare)):
        assert text
        assert "cannot be shown" not in text


def test_probe_a10_reading_no_data_as_something_is_declared_in_words_on_every_run(triage):
    rules = rb.RuleSet(
        "load",
        "1",
        [rb.Rule({"mean": {"gt": 90}}, "hot")],
        "cool",
        unreadable=rb.Unreadable("idle", label="an empty series means idle"),
    )
    for rows in ([{"host": "a", "mean": None}], [{"host": "a", "mean": 1}]):
        envelope = triage(rows, rules)
        said = [item for item in envelope["af_coverage"]["checked"] if "'idle'" in item["what"]]
        assert len(said) == 1
        assert "an empty series means idle" in said[0]["why"]
    assert triage([{"host": "a", "mean": None}], rules).verdicts[0]["verdict"] == "idle"
