"""Probes B5 to B10: rules mean what is written, row by row."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import runbook_nb as rb
from runbook_nb.errors import RuleError


def test_probe_b5_one_incomplete_row_costs_that_row_only(triage):
    rules = rb.RuleSet("r", "1", [rb.Rule({"age_days": {"gt": 7}}, "old")], "fresh")
    rows = [{"host": f"h{n}", **({} if n == 3 else {"age_days": n})} for n in range(10)]
    envelope = triage(rows, rules)
    words = [row["verdict"] for row in envelope.verdicts]
    assert words == ["fresh"] * 3 + ["declined"] + ["fresh"] * 4 + ["old"] * 2
    assert [row["host"] for row in envelope.verdicts] == [f"h{n}" for n in range(10)]
    assert envelope.why("h3").sentence.endswith("age_days is missing")


@pytest.mark.parametrize(
    ("rule", "accepted"),
    [
        ({"when": {"a": {"gt": 7}}, "then": "x", "lable": "y"}, "label"),
        ({"when": {"a": {"ge": 7}}, "then": "x"}, "gte"),
        ({"when": {"a": {"greater": 7}}, "then": "x"}, "is not an operator"),
    ],
)
def test_probe_b6_unknown_words_in_a_rule_are_refused_with_the_accepted_ones(rule, accepted):
    with pytest.raises(RuleError, match=accepted):
        rb.RuleSet("r", "1", [rule], "z")


def test_probe_b7_a_time_without_a_zone_against_one_with_is_declined_with_the_reason(triage):
    now = datetime(2026, 1, 1, tzinfo=UTC)
    rules = rb.RuleSet("cert", "1", [rb.Rule({"valid_until": {"lt": now}}, "expired")], "valid")
    rows = [
        {"host": "a", "valid_until": datetime(2026, 12, 31, tzinfo=UTC)},
        {"host": "b", "valid_until": datetime(2026, 12, 31)},  # noqa: DTZ001 - the probe
        {"host": "c", "valid_until": "2026-12-31T00:00:00Z"},
    ]
    envelope = triage(rows, rules)
    assert [row["verdict"] for row in envelope.verdicts] == ["valid", "declined", "declined"]
    assert "zone" in envelope.why("b").sentence
    assert "text" in envelope.why("c").sentence
    every = triage(rows[1:2], rules)
    [note] = [i for i in every["af_coverage"]["not_checked"] if "never be judged" in i["what"]]
    assert "zone" in note["why"]


def test_probe_b8_a_limit_in_another_unit_is_noted(triage):
    rules = rb.RuleSet(
        "disk", "1", [rb.Rule({"free_pct": {"lt": 5}}, "full", unit="percent")], "roomy"
    )
    envelope = triage([{"host": f"h{n}", "free_pct": n / 20} for n in range(12)], rules)
    [note] = [i for i in envelope["af_coverage"]["not_checked"] if "free_pct" in i["what"]]
    assert "all 12 values of free_pct (0.0 … 0.55) lie below the limit 5 percent" in note["what"]
    assert "percent" in note["why"]


def test_probe_b9_a_rule_without_conditions_is_refused_towards_the_default():
    with pytest.raises(RuleError, match="make it the default"):
        rb.RuleSet("r", "1", [rb.Rule({}, "x")], "z")
    with pytest.raises(RuleError, match="has no operator"):
        rb.RuleSet("r", "1", [rb.Rule({"a": {}}, "x")], "z")


def test_probe_b10_the_first_true_rule_decides_alone_and_the_walk_shows_it(triage):
    rules = rb.RuleSet(
        "r", "1", [rb.Rule({"n": {"gt": 1}}, "first"), rb.Rule({"m": {"gt": 2}}, "second")], "z"
    )
    envelope = triage([{"host": "a", "n": 9, "m": 9}], rules)
    assert [row["verdict"] for row in envelope.verdicts] == ["first"]
    [row] = [row for row in envelope.walk if row.type == "condition"]
    assert "first by rule 1 of r 1: n 9 > 1" in row.text
    assert "m" not in row.text.partition("tried:")[2]
    card = str(envelope.why("a"))
    assert "yes, taken" in card
    assert "not needed" in card
