"""Function rules: what they see, what is kept of them, and what happens when they fail."""

from __future__ import annotations

import asyncio
import warnings

import numpy as np
import pytest

from runbook_nb._text import MISSING
from runbook_nb.errors import LimitReached, Paused, RuleError, RunCancelled, RunSignal
from runbook_nb.rules import (
    Rule,
    RuleSet,
    Unreadable,
    decide,
    judge_facts,
    judge_facts_async,
    keys_read,
    select,
)
from runbook_nb.rules.facts import RecordedFacts


def is_stale(facts):
    return facts["age"] > 7


STALE = Rule(is_stale, "stale", label="older than 7 days")


def test_truth_decides_and_reads_become_inputs_in_order():
    def judge(facts):
        return facts["b"] and facts.get("gone", 0) == 0 and "a" in facts and facts["b"]

    decision = decide({"a": 1, "b": 2}, [Rule(judge, "x", label="l")])
    assert decision.branch == "x"
    assert decision.evidence["rules"] == [
        {
            "type": "function",
            "ruleIndex": 0,
            "branch": "x",
            "matched": True,
            "label": "l",
            "inputs": [
                {"key": "b", "valueSummary": "2", "redacted": False},
                {"key": "gone", "valueSummary": "undefined", "redacted": False},
                {"key": "a", "valueSummary": "1", "redacted": False},
                {"key": "b", "valueSummary": "2", "redacted": False},
            ],
            "returned": 2,
        }
    ]
    assert keys_read(decision.path, decision.values) == ("b", "gone", "a", "b")


def test_the_causes_name_the_function_and_what_it_read():
    rules = RuleSet("r", "1", [STALE], "fresh")
    assert decide({"age": 30}, rules).sentence == (
        "stale by rule 1 of r 1: is_stale() is true of age 30"
    )
    assert decide({"age": 1}, rules).sentence == "fresh by default of r 1: no rule fired"
    assert decide({}, [Rule(lambda facts: True, "x")]).cause == "a function is true"


@pytest.mark.parametrize("returned", [1, "yes", [0], 0.5])
def test_the_raw_return_value_is_kept(returned):
    decision = decide({}, [Rule(lambda facts: returned, "x")])
    assert decision.branch == "x"
    assert decision.values[0].returned == returned
    assert decision.evidence["rules"][0]["returned"] == returned


@pytest.mark.parametrize("returned", [0, "", None, []])
def test_a_false_value_is_no_match(returned):
    assert decide({}, [Rule(lambda facts: returned, "x")], "y").branch == "y"


def test_a_return_value_that_has_no_truth_is_an_error():
    decision = decide({}, RuleSet("r", "1", [Rule(lambda facts: np.zeros(2), "x")]))
    assert (decision.branch, decision.status) == ("declined", "rule_error")


def test_a_rule_that_raises_is_unreadable_under_a_rule_set():
    decision = decide({"age": "old"}, RuleSet("r", "1", [STALE], "fresh"))
    assert (decision.branch, decision.via, decision.status) == (
        "declined",
        "unreadable",
        "rule_error",
    )
    (rule,) = decision.evidence["rules"]
    assert "not supported between instances of 'str' and 'int'" in rule["matchError"]
    assert rule["inputs"] == [{"key": "age", "valueSummary": '"old"', "redacted": False}]
    assert decision.cause.startswith("is_stale() raised TypeError: '>' not supported")
    assert decision.evidence["unreadable"] == {
        "ruleIndex": 0,
        "key": None,
        "status": "rule_error",
    }


def test_a_rule_that_raises_is_no_match_in_a_bare_list():
    decision = decide({}, [STALE, Rule({"b": {"missing": True}}, "x")])
    assert decision.branch == "x"
    assert decision.evidence["rules"][0]["matched"] is False
    assert decision.evidence["rules"][0]["matchError"] == "'age'"


def test_a_rule_that_raises_selects_nothing():
    assert select({"b": 1}, [STALE, Rule({"b": {"eq": 1}}, "x")]).branches == ("x",)


@pytest.mark.parametrize("signal", [RunSignal, RunCancelled, LimitReached, Paused])
def test_what_ends_the_run_passes_through(signal):
    def judge(facts):
        raise signal("enough")

    with pytest.raises(signal):
        decide({}, [Rule(judge, "x")], "y")
    with pytest.raises(signal):
        asyncio.run(judge_facts_async(RuleSet("r", "1", [Rule(judge, "x")]), {}))


def test_interrupts_pass_through():
    def judge(facts):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        decide({}, [Rule(judge, "x")], "y")


def test_stop_iteration_is_an_error_like_any_other():
    def judge(facts):
        return next(iter(()))

    assert decide({}, RuleSet("r", "1", [Rule(judge, "x")])).status == "rule_error"


def test_the_facts_cannot_be_changed_through_a_rule():
    def judge(facts):
        facts["a"] = 2

    decision = decide({"a": 1}, RuleSet("r", "1", [Rule(judge, "x")]))
    assert decision.status == "rule_error"
    facts = RecordedFacts({"a": 1})
    assert (list(facts), len(facts), dict(facts)) == (["a"], 1, {"a": 1})
    assert (5 in facts) is False
    assert facts.inputs == [("a", 1)]


def test_inputs_are_kept_as_they_were_read():
    def judge(facts):
        facts["tags"].append("changed")
        return True

    tags = ["a"]
    decision = decide({"tags": tags}, [Rule(judge, "x")])
    assert decision.values[0].inputs == (("tags", ["a"]),)


def test_filters_and_functions_mix_in_any_order():
    rules = [
        Rule({"a": {"gt": 5}}, "x"),
        Rule(lambda facts: facts["b"] > 5, "y"),
        Rule({"a": {"eq": 1}, "c": {"exists": True}}, "z"),
        Rule(lambda facts: True, "w"),
    ]
    decision = decide({"a": 1, "b": 2, "c": 3}, rules)
    assert decision.branch == "z"
    assert [(c.key, c.actual) for c in decision.conditions] == [("a", 1), ("a", 1), ("c", 3)]
    assert decision.path.keys == ("a", "a", "c")
    assert keys_read(decision.path, decision.values) == ("a", "b", "a", "c")
    assert decide({"a": 1, "b": 2}, rules).branch == "w"


def test_paths_of_function_rules_are_interned_by_outcome_not_by_value():
    rules = RuleSet("r", "1", [STALE], "fresh")
    one, other = judge_facts(rules, {"age": 8}), judge_facts(rules, {"age": 9})
    assert one[0] is other[0]
    assert one[1] != other[1]


def test_function_rules_may_be_given_other_facts_than_filters():
    rules = RuleSet("r", "1", [Rule({"a": {"gt": 5}}, "x"), Rule(lambda f: f["a"] > 5, "y")])
    assert judge_facts(rules, {"a": 1}, {"a": 9})[0].branch == "y"


# --- asynchronous rules ------------------------------------------------------------------------


async def slow_stale(facts):
    await asyncio.sleep(0)
    return facts["age"] > 7


def test_an_async_rule_is_awaited_by_the_async_judge():
    rules = RuleSet("r", "1", [Rule({"b": {"eq": 1}}, "b"), Rule(slow_stale, "stale")], "fresh")
    path, values = asyncio.run(judge_facts_async(rules, {"age": 30, "b": 2}))
    assert path.branch == "stale"
    assert values[1].inputs == (("age", 30),)
    assert asyncio.run(judge_facts_async(rules, {"age": 1, "b": 2}))[0].branch == "fresh"


def test_an_async_rule_that_raises_is_unreadable():
    rules = RuleSet("r", "1", [Rule(slow_stale, "stale")], "fresh")
    path, values = asyncio.run(judge_facts_async(rules, {}))
    assert path.unreadable == {"ruleIndex": 0, "key": None, "status": "rule_error"}
    assert (values[0].error_type, values[0].inputs) == ("KeyError", (("age", MISSING),))


def test_an_async_rule_that_is_cancelled_ends_the_judging():
    async def judge(facts):
        raise asyncio.CancelledError

    async def main():
        await judge_facts_async(RuleSet("r", "1", [Rule(judge, "x")], "y"), {})

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())


def test_an_async_rule_is_refused_by_the_sync_judge_without_a_trace():
    rules = RuleSet("r", "1", [Rule(slow_stale, "stale")], "fresh", Unreadable("declined"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for judge in (judge_facts, decide):
            facts = (rules, {"age": 1}) if judge is judge_facts else ({"age": 1}, rules)
            with pytest.raises(RuleError, match="judge in an async stage") as refused:
                judge(*facts)
            assert refused.value.code == "async_rule"
            assert refused.value.where == "r 1"


def test_several_async_rules_are_awaited_in_turn():
    seen = []

    def rule(name, answer):
        async def judge(facts):
            await asyncio.sleep(0)
            seen.append(name)
            return answer

        return Rule(judge, name)

    rules = RuleSet("r", "1", [rule("a", False), rule("b", True), rule("c", True)])
    assert asyncio.run(judge_facts_async(rules, {}))[0].branch == "b"
    assert seen == ["a", "b"]
