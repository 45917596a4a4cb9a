"""Deciding and selecting, by example: order, policies, nested keys, ground outside, bare lists."""

from __future__ import annotations

import asyncio
import threading
from collections import UserDict, defaultdict
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest

from runbook_nb._text import MISSING
from runbook_nb.errors import RuleError, RunCancelled
from runbook_nb.rules import (
    Default,
    Outside,
    Rule,
    RuleSet,
    Unreadable,
    decide,
    evaluate,
    judge_facts,
    judge_facts_async,
    path_for,
    plan_of,
    select,
    select_facts_async,
)

OLD = Rule({"age": {"gt": 7}}, "old", label="older than 7 days")
LARGE = Rule({"size": {"gt": 100}}, "large")


def test_the_first_true_rule_decides_and_later_ones_are_not_tried():
    decision = decide({"age": 8, "size": 500}, RuleSet("r", "1", [OLD, LARGE], "fine"))
    assert (decision.branch, decision.via, decision.rule_index) == ("old", "rule", 0)
    assert [rule["ruleIndex"] for rule in decision.evidence["rules"]] == [0]


def test_the_default_holds_when_no_rule_is_true():
    decision = decide({"age": 1, "size": 1}, RuleSet("r", "1", [OLD, LARGE], "fine"))
    assert (decision.branch, decision.via, decision.rule) == ("fine", "default", None)
    assert len(decision.conditions) == 2


def test_an_unreadable_rule_stops_judging():
    decision = decide({"size": 500}, RuleSet("r", "1", [OLD, LARGE], "fine"))
    assert (decision.branch, decision.via, decision.status) == ("declined", "unreadable", "missing")
    assert decision.evidence["unreadable"] == {"ruleIndex": 0, "key": "age", "status": "missing"}
    assert len(decision.evidence["rules"]) == 1
    assert decision.label == "a value the rules need could not be read"


def test_skip_goes_on_as_if_the_rule_were_not_true():
    rules = RuleSet("r", "1", [OLD, LARGE], "fine", "skip")
    decision = decide({"size": 500}, rules)
    assert (decision.branch, decision.status) == ("large", None)
    assert decision.conditions[0].status == "missing"
    assert "unreadable" not in decision.evidence
    assert decide({}, rules).branch == "fine"


def test_raise_raises_naming_rule_key_and_reason():
    rules = RuleSet("age", "v2", [LARGE, OLD], "fine", "raise")
    with pytest.raises(RuleError, match="age is text, not a number") as refused:
        decide({"size": 1, "age": "8"}, rules)
    assert refused.value.code == "unreadable"
    assert refused.value.where == "age v2, rules[1]"
    assert decide({"size": 500}, rules).branch == "large"


def test_the_author_may_say_what_unreadable_means():
    idle = Unreadable("idle", label="an empty series means the host is idle")
    decision = decide({}, RuleSet("r", "1", [OLD], "fine", idle))
    assert (decision.branch, decision.label) == ("idle", idle.label)


def test_false_beats_unreadable_so_exists_says_optional():
    rules = RuleSet("r", "1", [Rule({"score": {"exists": True, "gt": 80}}, "high")], "normal")
    assert decide({}, rules).branch == "normal"
    assert decide({"score": 90}, rules).branch == "high"
    assert decide({"score": "90"}, rules).branch == "declined"


def test_without_default_nothing_is_decided_and_that_is_said():
    decision = decide({"age": 1}, RuleSet("r", "1", [OLD]))
    assert (decision.branch, decision.via, decision.label) == (None, "none", None)
    assert decision.sentence == "no branch: no rule of r 1 fired, and there is no default"


# --- keys --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "actual"),
    [
        ({"a.b": 1}, 1),
        ({"a": {"b": 2}}, 2),
        ({"a.b": 1, "a": {"b": 2}}, 1),
        ({"a": {"b": None}}, None),
        ({"a": None}, MISSING),
        ({"a": {}}, MISSING),
        ({"a": 7}, MISSING),
        ({"a": "b"}, MISSING),
        ({}, MISSING),
        ({"a": UserDict(b=3)}, 3),
        ({"a.b": None, "a": {"b": 2}}, None),
    ],
)
def test_a_flat_name_comes_before_a_path(facts, actual):
    decision = decide(facts, [Rule({"a.b": {"eq": 1}}, "x")])
    assert decision.actuals == (actual,)


@pytest.mark.parametrize(
    ("key", "actual"),
    [
        ("disks.0.free", 3),
        ("disks.1.free", 4),
        ("disks.2.free", MISSING),
        ("disks.-1.free", MISSING),
        ("disks.x.free", MISSING),
        ("disks.99999999999999999999.free", MISSING),
        ("disks.٠.free", MISSING),
        (f"disks.{'1' * 5000}.free", MISSING),
        ("disks..free", MISSING),
        ("pair.1", "b"),
        (".", MISSING),
    ],
)
def test_digits_lead_into_lists(key, actual):
    facts = {"disks": [{"free": 3}, {"free": 4}], "pair": ("a", "b")}
    assert decide(facts, [Rule({key: {"eq": 1}}, "x")]).actuals == (actual,)


def test_presence_follows_paths_too():
    rules = [Rule({"a.b": {"exists": True}}, "there")]
    assert decide({"a": {"b": 1}}, rules, "gone").branch == "there"
    assert decide({"a": {}}, rules, "gone").branch == "gone"


def test_nested_and_flat_facts_with_one_outcome_share_a_path():
    rules = RuleSet("r", "1", [Rule({"a.b": {"gt": 1}}, "x")])
    assert judge_facts(rules, {"a.b": 5})[0] is judge_facts(rules, {"a": {"b": 6}})[0]


# --- facts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "facts",
    [
        {"age": 8},
        MappingProxyType({"age": 8}),
        UserDict(age=8),
        pd.Series({"age": 8}),
        {"age": np.int64(8)},
        pd.DataFrame({"age": [8]}).iloc[0],
    ],
    ids=lambda facts: type(facts).__name__,
)
def test_anything_that_reads_like_a_mapping_will_do(facts):
    assert decide(facts, [OLD]).branch == "old"


@pytest.mark.parametrize("facts", [None, 5, "text", [("age", 8)], dict])
def test_what_cannot_be_read_is_refused(facts):
    with pytest.raises(RuleError, match="give a mapping from key to value") as refused:
        decide(facts, [OLD])
    assert refused.value.code == "bad_facts"


def test_reading_creates_nothing():
    facts = defaultdict(list)
    decide(facts, [OLD])
    assert facts == {}


class Broken(UserDict):
    """Facts whose reading raises."""

    error: BaseException = RuntimeError("the disk is gone")

    def get(self, key, default=None):
        raise self.error


def test_facts_that_raise_make_a_rule_unreadable():
    decision = decide(Broken(), RuleSet("r", "1", [OLD], "fine"))
    assert (decision.branch, decision.status) == ("declined", "rule_error")
    assert decision.sentence.endswith("age could not be read")
    nested = decide({"a": Broken()}, RuleSet("r", "1", [Rule({"a.b": {"exists": True}}, "x")]))
    assert nested.status == "rule_error"


def test_what_ends_the_run_is_not_an_outcome():
    facts = Broken()
    facts.error = RunCancelled("stopped")
    with pytest.raises(RunCancelled):
        decide(facts, RuleSet("r", "1", [OLD], "fine"))


def test_evidence_keeps_values_as_they_were():
    tags = ["a"]
    decision = decide({"tags": tags}, [Rule({"tags": {"contains": "a"}}, "x")])
    tags.append("b")
    assert decision.actuals == (["a"],)


class FakeScope:
    """A scope as stages have it: raw state, and somebody to tell what was read."""

    def __init__(self, state):
        self.state, self.noted = state, []

    def facts_for_rules(self):
        return self.state, self.noted.extend


def test_a_scope_is_told_every_key_in_the_order_it_was_read():
    scope = FakeScope({"a": 1, "b": 2, "c": 3})
    rules = [
        Rule({"a": {"gt": 5, "lt": 9}, "b": {"eq": 2}}, "x"),
        Rule(lambda facts: facts["c"] > 5 or facts.get("d"), "y"),
        Rule({"a": {"eq": 1}}, "z"),
        Rule({"never": {"eq": 1}}, "w"),
    ]
    assert decide(scope, rules).branch == "z"
    assert scope.noted == ["a", "b", "c", "d", "a"]


def test_a_scope_keeps_its_values_by_reference():
    state = {"tags": ["a"]}
    decision = decide(FakeScope(state), [Rule({"tags": {"contains": "a"}}, "x")])
    assert decision.values[0] is state["tags"]


# --- ground outside ----------------------------------------------------------------------------

OUTSIDE = RuleSet(
    "vulnerabilities",
    "v1",
    [Rule({"findings": {"gt": 0}}, "vulnerable")],
    default=Default("clean", label="no finding"),
    outside=[
        Outside({"os": {"eq": "x"}}, "hosts on x", "the scanner has no data for it"),
        Outside({"os": {"eq": "y"}, "age": {"gt": 9}}, "old hosts on y", "support has ended"),
    ],
)


def test_ground_outside_is_declined_before_any_rule():
    decision = decide({"os": "x", "findings": 0}, OUTSIDE)
    assert (decision.branch, decision.via) == ("declined", "outside")
    assert decision.rule is None
    assert decision.outside.what == decision.label == "hosts on x"
    assert decision.sentence == (
        'declined: outside vulnerabilities v1, hosts on x (os = "x"): '
        "the scanner has no data for it"
    )
    assert decision.evidence["rules"] == []
    assert decision.evidence["outside"][0]["matched"] is True


def test_ground_that_does_not_match_or_cannot_be_read_goes_on_to_the_rules():
    inside = decide({"os": "z", "findings": 0}, OUTSIDE)
    unknown = decide({"findings": 0}, OUTSIDE)
    assert (inside.branch, unknown.branch) == ("clean", "clean")
    assert [c.status for c in unknown.conditions] == ["missing", "missing", "missing", None]
    assert inside.path.keys == ("os", "os", "age", "findings")
    assert "outside" in unknown.evidence


def test_the_second_ground_is_named_when_it_matches():
    decision = decide({"os": "y", "age": 10}, OUTSIDE)
    assert decision.outside.what == "old hosts on y"
    assert decision.cause == 'os = "y" and age 10 > 9'


def test_a_selection_outside_selects_nothing():
    chosen = select({"os": "x", "findings": 5}, OUTSIDE)
    assert chosen.branches == ()
    assert chosen.sentence == "selected nothing: outside the rules, hosts on x"
    assert select({"os": "z", "findings": 5}, OUTSIDE).branches == ("vulnerable",)


# --- selecting ---------------------------------------------------------------------------------


def test_a_selection_takes_every_true_branch_once_in_rule_order():
    rules = [LARGE, OLD, Rule({"age": {"gt": 1}}, "large")]
    chosen = select({"age": 8, "size": 500}, rules)
    assert chosen.branches == ("large", "old")
    assert chosen.sentence == "selected large, old: size 500 > 100; age 8 > 7; age 8 > 1"
    assert chosen.evidence["selected"] == ["large", "old"]


def test_an_unreadable_rule_selects_nothing_and_is_recorded():
    for policy in ("skip", "raise", Unreadable("declined")):
        chosen = select({"size": 500}, RuleSet("r", "1", [OLD, LARGE], unreadable=policy))
        assert chosen.branches == ("large",)
        assert chosen.conditions[0].status == "missing"


def test_a_selection_of_nothing_says_so():
    assert select({"age": 1, "size": 1}, [OLD, LARGE]).sentence == (
        "selected nothing: no rule fired"
    )


def test_the_async_selector_is_the_same_law():
    path, _ = asyncio.run(select_facts_async(RuleSet("r", "1", [OLD, LARGE]), {"age": 8}))
    assert (path.via, path.selected) == ("select", (0,))


# --- bare lists --------------------------------------------------------------------------------


def test_a_bare_list_skips_what_is_unreadable_unless_told():
    assert decide({}, [OLD], "fine").branch == "fine"
    assert decide({}, [OLD], "fine", unreadable=Unreadable("declined")).branch == "declined"
    with pytest.raises(RuleError, match="age is missing"):
        decide({}, [OLD], "fine", unreadable="raise")


def test_a_rule_set_brings_its_own_default_and_policy():
    with pytest.raises(RuleError, match="brings its own default"):
        decide({}, RuleSet("r", "1", [OLD]), "fine")
    with pytest.raises(RuleError, match="brings its own unreadable"):
        decide({}, RuleSet("r", "1", [OLD]), unreadable="skip")


def test_a_bare_sentence_needs_no_name():
    assert decide({"age": 8}, [OLD]).sentence == "old by rule 1: age 8 > 7"
    assert decide({"age": 1}, [OLD], "fine").sentence == "fine by default: no rule fired"


def test_a_bare_list_is_compiled_once_by_content():
    rules = [{"when": {"age": {"gt": 7}}, "then": "old"}]
    first = decide({"age": 8}, rules, "fine")
    same = decide({"age": 9}, [{"when": {"age": {"gt": 7}}, "then": "old"}], "fine")
    assert same.path is first.path
    assert decide({"age": 8}, [OLD], "a").path is decide({"age": 9}, [OLD], "a").path


def test_the_cache_sees_types_and_changes():
    rules = [{"when": {"k": {"eq": 1}}, "then": "x"}]
    assert decide({"k": 1}, rules).branch == "x"
    rules[0]["when"]["k"]["eq"] = True
    assert decide({"k": 1}, rules).branch is None
    assert decide({"k": True}, rules).branch == "x"
    rules.append({"when": {"k": {"eq": 1}}, "then": "y"})
    assert decide({"k": 1}, rules).branch == "y"


def test_the_cache_stays_small():
    for n in range(3 * evaluate.MAX_BARE_SETS):
        decide({"k": n}, [Rule({"k": {"eq": n}}, "x")])
    assert len(evaluate._bare_sets) <= evaluate.MAX_BARE_SETS


def test_a_rule_that_cannot_be_a_cache_key_is_refused_all_the_same():
    with pytest.raises(RuleError, match="which no rule can compare"):
        decide({}, [{"when": {"k": {"eq": {1}}}, "then": "x"}])


# --- paths -------------------------------------------------------------------------------------


def test_threads_intern_one_path_for_one_outcome():
    rules = RuleSet("r", "1", [Rule({f"k{n}": {"gt": 0}}, f"b{n}") for n in range(12)], "fine")
    ready, found = threading.Barrier(8), []

    def judge():
        ready.wait()
        for n in range(13):
            found.append(judge_facts(rules, {f"k{m}": int(m == n) for m in range(12)})[0])

    threads = [threading.Thread(target=judge) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(path) for path in found}) == len({path.codes for path in found}) == 13


def test_a_path_can_be_had_from_its_outcomes_alone(posture):
    path, _ = judge_facts(posture, {"age_known": True, "age_days": 30})
    assert path_for(posture, path.codes) is path
    with pytest.raises(ValueError, match="end before the decision"):
        path_for(posture, ())


def test_a_plan_shows_keys_operators_thresholds_and_tests(posture):
    plan = plan_of(posture)
    assert plan is plan_of(posture)
    assert not plan.has_functions
    ((first,), (second,)) = plan.conditions
    assert (second.key, second.op, second.threshold, second.path) == ("age_days", "gt", 7, None)
    assert (first.test(False), second.test(3)) == (1, 0)
    assert len(plan_of(OUTSIDE).outside) == 2


def test_a_decision_calls_little(posture):
    """Count Python calls instead of timing: per decision a handful, however many went before."""
    import sys

    facts = [{"age_known": True, "age_days": n % 14} for n in range(100)]
    judge_facts(posture, facts[0])
    judge_facts(posture, facts[13])
    calls = 0

    def count(frame, event, arg):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        for row in facts:
            judge_facts(posture, row)
    finally:
        sys.setprofile(None)
    assert calls <= 4 * len(facts) + 2  # the judge, its loop, and one test per condition


def test_the_async_judge_gives_the_same_objects(posture):
    facts = {"age_known": True, "age_days": 30}
    path, values = asyncio.run(judge_facts_async(posture, facts))
    assert (path, values) == judge_facts(posture, facts)
