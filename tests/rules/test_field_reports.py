"""Mistakes reported in public of other tools, and what happens here instead."""

from __future__ import annotations

import datetime as dt

import pytest

from runbook_nb.errors import RuleError
from runbook_nb.rules import Rule, RuleSet, Unreadable, decide, judge_facts
from runbook_nb.rules.notes import notes_of


def test_an_empty_series_is_declined_not_healthy():
    rules = RuleSet("load", "v1", [Rule({"mean": {"gt": 90}}, "hot")], default="cool")
    for facts in (
        {"points": []},
        {"points": [], "mean": None},
        {"points": [], "mean": float("nan")},
    ):
        assert decide(facts, rules).branch == "declined"


def test_an_unsupported_system_is_declined_not_clean():
    rules = RuleSet(
        "vulnerabilities",
        "v1",
        [Rule({"findings": {"gt": 0}}, "vulnerable")],
        default="clean",
        outside=[{"where": {"os": {"eq": "x"}}, "what": "hosts on x", "why": "no data for it"}],
    )
    assert decide({"os": "x", "findings": 0}, rules).branch == "declined"
    assert decide({"os": "y", "findings": 0}, rules).branch == "clean"


def test_no_rule_at_all_is_a_definition_error():
    with pytest.raises(RuleError, match="holds no rule"):
        RuleSet("filtered to none", "v1", [], default="fine")
    with pytest.raises(RuleError, match="holds no rule"):
        decide({}, [], "fine")


def test_an_author_may_declare_that_empty_means_idle_in_words():
    idle = Unreadable("idle", label="an empty series means the host is idle")
    rules = RuleSet("load", "v1", [Rule({"mean": {"gt": 90}}, "hot")], "cool", idle)
    decision = decide({"points": []}, rules)
    assert decision.branch == "idle"
    assert ("idle", idle.label) in decision.path.meanings


def test_one_incomplete_row_does_not_stop_the_others():
    rules = RuleSet("age", "v1", [Rule({"age_days": {"gt": 7}}, "old")], default="new")
    rows = [{"age_days": n} if n != 3 else {} for n in range(10)]
    verdicts = [decide(row, rules).branch for row in rows]
    assert verdicts == ["new"] * 3 + ["declined"] + ["new"] * 4 + ["old"] * 2


@pytest.mark.parametrize(
    ("rule", "fix"),
    [
        ({"when": {"a": {"gt": 1}}, "then": "x", "lable": "l"}, "did you mean 'label'?"),
        ({"when": {"a": {"ge": 1}}, "then": "x"}, "did you mean 'gte'?"),
        ({"when": {"a": {"equals": 1}}, "then": "x"}, "did you mean 'eq'?"),
        ({"when": {"a": {"startsWith": "1"}}, "then": "x"}, "did you mean 'starts_with'?"),
        ({"when": {"a": {"zz": 1}}, "then": "x"}, "use one of eq, ne, gt, gte, lt, lte, in"),
        ({"if": {"a": {"gt": 1}}, "then": "x"}, "use when, then, label or unit"),
    ],
)
def test_unknown_words_in_a_rule_are_refused_with_the_accepted_ones(rule, fix):
    with pytest.raises(RuleError) as refused:
        RuleSet("r", "1", [rule])
    assert any((problem.fix or "").startswith(fix) for problem in refused.value.problems)


def test_naive_against_aware_times_is_declined_with_that_reason():
    as_of = dt.datetime.fromisoformat("2026-11-29T00:00:00")
    rules = RuleSet(
        "certificates", "v1", [Rule({"valid_until": {"lt": as_of}}, "expired")], "valid"
    )
    aware = dt.datetime.fromisoformat("2026-12-31T00:00:00Z")
    decision = decide({"valid_until": aware}, rules)
    assert decision.branch == "declined"
    assert decision.cause == (
        "valid_until is a datetime with a zone, not a datetime without a zone"
    )
    text = decide({"valid_until": "2026-12-31T00:00:00Z"}, rules)
    assert text.cause == "valid_until is text, not a datetime without a zone"


def test_a_share_judged_against_a_percentage_is_noted():
    rules = RuleSet(
        "disk", "v1", [Rule({"free_pct": {"lt": 5}}, "full", unit="percent")], default="fine"
    )
    rows = [{"free_pct": n / 12} for n in range(13)]
    (note,) = notes_of(judge_facts(rules, row) for row in rows)
    assert "all 13 values of free_pct (0.0 … 1.0) lie below the limit 5 percent" in note.what


def test_deleting_a_condition_does_not_make_a_rule_match_everything():
    with pytest.raises(RuleError, match="make it the default"):
        RuleSet("r", "1", [Rule({}, "ignored")])
    with pytest.raises(RuleError, match="has no operator"):
        RuleSet("r", "1", [Rule({"a": {}}, "ignored")])


def test_two_true_rules_give_one_verdict_and_the_record_says_which():
    rules = RuleSet("r", "1", [Rule({"a": {"gt": 1}}, "x"), Rule({"b": {"gt": 1}}, "y")])
    decision = decide({"a": 5, "b": 5}, rules)
    assert decision.branch == "x"
    assert decision.sentence == "x by rule 1 of r 1: a 5 > 1"
    assert [rule["branch"] for rule in decision.evidence["rules"]] == ["x"]
    rows = decision.view().sections[-1].parts[0].rows
    assert [row[-1].word for row in rows] == ["yes, taken", "not needed"]
