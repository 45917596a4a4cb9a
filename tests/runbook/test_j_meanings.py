"""Cases 102 to 110: what each verdict means, in the words of what ran."""

from __future__ import annotations

import logging

import pytest

import runbook_nb as rb
from runbook_nb.runbook.meanings import compose_meanings, observed_meanings, resolve_decider


def judged(values, rules, default=None, decider="posture"):
    """Decisions over values, as (decider, meanings) pairs."""
    made = rb.RuleSet("r", "1", rules, default=default)
    return [(decider, rb.decide({"n": value}, made).path.meanings) for value in values]


STALE = rb.Rule({"n": {"gt": 5}}, "stale", label="old")


def test_case_102_a_default_speaks_also_when_a_rule_won():
    decisions = judged([9], [STALE], rb.Default("fresh", label="no rule"))
    found = observed_meanings(decisions, frozenset({"posture"}))
    assert found == {"fresh": "no rule", "stale": "old"}
    assert list(found) == ["fresh", "stale"]


def test_case_103_without_a_label_nothing_is_made_up():
    assert observed_meanings(judged([9], [STALE], "fresh"), frozenset({"posture"})) == {
        "stale": "old"
    }
    assert observed_meanings([("posture", [("x", ""), ("y", "  ")])], frozenset({"posture"})) == {}


def test_case_104_a_rule_to_the_default_branch_wins_over_the_default():
    rules = [rb.Rule({"n": {"gt": 5}}, "fresh", label="the rule's")]
    found = observed_meanings(
        judged([9], rules, rb.Default("fresh", label="the default's")), frozenset({"posture"})
    )
    assert found == {"fresh": "the rule's"}


def test_case_105_the_last_part_of_a_deciders_path_is_its_name():
    for name in ("per-subject~0/posture", "a~0/b~1/posture", "posture"):
        found = observed_meanings(judged([9], [STALE], decider=name), frozenset({"posture"}))
        assert found == {"stale": "old"}
    assert observed_meanings(judged([9], [STALE], decider="other"), frozenset({"posture"})) == {}


def test_case_106_observed_over_declared_and_nothing_for_nothing():
    assert compose_meanings({"fresh": "F", "stale": "S"}, {"fresh": "no rule"}) == {
        "fresh": "no rule",
        "stale": "S",
    }
    assert compose_meanings({}, {}) is None


def declared_chart():
    return (
        rb.flow_chart("c", lambda s: None, id="a")
        .add_decider("Posture", lambda s: "x", id="posture")
        .branch("x", lambda s: None, description="all is well")
        .branch("y", lambda s: None, name="Page the owner")
        .branch("z", lambda s: None)
        .end()
        .build()
    )


def test_case_107_a_declared_decider_is_found_by_id_or_name():
    for word in ("posture", "Posture"):
        spellings, declared = resolve_decider(declared_chart().structure, word)
        assert spellings == {"posture", "Posture"}
        assert declared == {"x": "all is well", "y": "Page the owner"}
    assert resolve_decider(declared_chart().structure, "none") == (frozenset({"none"}), {})


def test_case_107_a_branch_named_by_its_word_alone_has_no_meaning():
    _, declared = resolve_decider(declared_chart().structure, "posture")
    assert "z" not in declared


def test_case_108_every_word_of_the_rows_is_explained_when_labelled(call):
    result = call()["result"]
    words = {row["verdict"] for row in result["verdicts"]}
    assert words <= set(result["verdict_meanings"])
    assert result["verdict_meanings"] == {
        "protected": "no rule fired — within 7 days",
        "unprotected": "older than the 7-day threshold",
        "declined": "age unreadable — no classification",
    }
    assert next(iter(result["verdict_meanings"])) == "protected"


def test_case_108_an_unlabelled_default_stays_unexplained(call, kit):
    result = call(rules=kit.posture(default=rb.Default("protected")))["result"]
    assert "protected" not in result["verdict_meanings"]
    assert "protected" in {row["verdict"] for row in result["verdicts"]}


def by_id_and_by_name(call, branch):
    return [
        call(branch=branch, verdicts={"decider": word})["result"]
        for word in ("posture", "Protection posture")
    ]


def test_case_109_inside_branches_made_per_item_only_the_name_is_known(call, kit, caplog):
    chart = kit.subject_chart(kit.posture())
    with caplog.at_level(logging.WARNING, "runbook_nb"):
        by_id, by_name = by_id_and_by_name(call, lambda item, index: chart)
    assert "verdict_meanings" not in by_id
    assert set(by_name["verdict_meanings"]) == {"protected", "unprotected", "declined"}
    [warning] = caplog.records
    assert "'posture'" in warning.getMessage()
    assert "Protection posture" in warning.getMessage()


def test_case_109_in_a_built_branch_both_are_known(call, kit):
    by_id, by_name = by_id_and_by_name(call, kit.subject_chart(kit.posture()))
    assert by_id["verdict_meanings"] == by_name["verdict_meanings"]


def test_case_110_a_decider_without_evidence_has_its_declared_meanings(kit):
    def procedure(tools):
        return (
            rb.flow_chart("c", lambda s: s.set("verdicts", [{"verdict": "x"}]), id="a")
            .add_decider("Posture", lambda s: "x", id="posture")
            .branch("x", lambda s: None, description="all is well")
            .branch("y", lambda s: None)
            .end()
            .build()
        )

    options = {"procedure": procedure, "result_kind": "verdict/x"}
    envelope = kit.ask(None, **options, verdicts={"decider": "posture"})
    assert envelope["result"]["verdict_meanings"] == {"x": "all is well"}


def test_meanings_are_harvested_but_not_shipped_by_another_kind(call):
    assert "verdict_meanings" not in call(result_kind="inventory/x")["result"]


def test_the_label_of_unreadable_values_is_harvested_where_it_fired(call):
    rules = rb.RuleSet("r", "1", [rb.Rule({"age_days": {"gt": 7}}, "unprotected")], "protected")
    rows = [{"subject": "a", "age_days": 1}, {"subject": "b", "age_days": None}]
    meanings = call(rows=rows, rules=rules)["result"]["verdict_meanings"]
    assert meanings == {"declined": "a value the rules need could not be read"}
    assert "verdict_meanings" not in call(rows=rows[:1], rules=rules)["result"]


def test_a_rules_label_wins_over_that_of_unreadable_values(call):
    rows = [{"subject": "a", "age_days": None, "age_known": True}]
    meanings = call(rows=rows)["result"]["verdict_meanings"]
    assert meanings["declined"] == "age unreadable — no classification"


@pytest.mark.parametrize("order", [(9, 1), (1, 9)])
def test_the_order_of_the_map_is_that_of_first_setting(order):
    decisions = judged(order, [STALE], rb.Default("fresh", label="no rule"))
    assert list(observed_meanings(decisions, frozenset({"posture"}))) == ["fresh", "stale"]
