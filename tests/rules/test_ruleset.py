"""Building a rule set: what is refused, how it is told, and what the set is afterwards."""

from __future__ import annotations

import copy
import datetime as dt
import pickle
import sys
from dataclasses import FrozenInstanceError
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from runbook_nb._frozen import freeze
from runbook_nb.errors import FrozenError, RuleError
from runbook_nb.rules import Default, Outside, Rule, RuleSet, Unreadable, decide

GOOD = Rule({"a": {"gt": 1}}, "x")


def problems(*args, **kwargs):
    """Give what is said when a set with these rules cannot be built."""
    with pytest.raises(RuleError) as refused:
        RuleSet("r", "1", *args, **kwargs)
    return [str(problem) for problem in refused.value.problems]


def only(when, **rule):
    """Give the one problem of a rule with these conditions."""
    (said,) = problems([{"when": when, "then": "x", **rule}])
    return said


def test_everything_wrong_is_told_together_with_place_and_fix():
    with pytest.raises(RuleError) as refused:
        RuleSet(
            " ",
            3,
            rules=[
                {"when": {"age_days": {"ge": 7}}, "then": "old", "lable": "old"},
                Rule({}, then="x"),
                {"when": {"a": {"eq": None}}, "then": ""},
                {"then": "x"},
                7,
            ],
            default={"branch": "x", "lable": "y"},
            unreadable="skp",
            outside=[{"where": {"os": {"eq": "x"}}, "what": "hosts on x"}],
        )
    assert [(p.where, p.fix) for p in refused.value.problems] == [
        ("name", "give it words"),
        ("version", "put it in quotes"),
        ("rules[0].lable", "did you mean 'label'?"),
        ("rules[0].when.age_days.ge", "did you mean 'gte'?"),
        ("rules[1].when", "give it a condition, or make it the default"),
        (
            "rules[2].when.a.eq",
            "use is_null: true for null or NaN, missing: true when the key may also be absent",
        ),
        ("rules[2].then", "give it words"),
        ("rules[3].when", "say when the rule holds"),
        ("rules[4]", "write Rule({...}, then=...)"),
        ("default.lable", "did you mean 'label'?"),
        ("unreadable", "did you mean 'skip'?"),
        ("outside[0].why", "give text"),
    ]
    assert "12 problems" in str(refused.value)


@pytest.mark.parametrize(
    ("threshold", "said"),
    [
        ({"gt": None}, "is null, which equals nothing"),
        ({"eq": float("nan")}, "is NaN, which equals nothing"),
        ({"eq": Decimal("sNaN")}, "is NaN"),
        ({"eq": pd.NaT}, "is null"),
        ({"in": [1, None]}, "rules[0].when.k.in[1]: is null"),
        ({"not_in": [float("nan")]}, "rules[0].when.k.not_in[0]: is NaN"),
        ({"eq": [1, [float("nan")]]}, "rules[0].when.k.eq[1][0]: is NaN"),
        ({"in": "abc"}, "is text, and in needs a list; write [...], or use eq for one value"),
        ({"notIn": 5}, "rules[0].when.k.notIn: is a number, and not_in needs a list"),
        ({"in": {1, 2}}, "is a value of type set, which no rule can compare; write a list"),
        ({"in": list(range(1001))}, "holds 1001 items, more than 1000"),
        ({"gt": True}, "is true or false, which has no order; use eq"),
        ({"lt": [1]}, "is a list, which has no order; use eq, or in for a list"),
        ({"gte": {"a": 1}}, "is a mapping, which has no order; use eq"),
        ({"eq": object()}, "is a value of type object, which no rule can compare"),
        ({"eq": b"x"}, "is a value of type bytes, which no rule can compare"),
        ({"eq": np.zeros(2)}, "is a value of type ndarray"),
        ({"eq": {1: 2}}, "is a key that is not text"),
        ({"eq": "\ud800"}, "holds a lone surrogate"),
        ({"eq": 1 << 20_000}, "is a number wider than"),
        ({"exists": 1}, "is a number, not true or false; use true or false"),
        ({"missing": "yes"}, "is text, not true or false"),
        ({"is_null": None}, "is null, not true or false"),
        ({"between": [1]}, "is not a list of two limits; write [lowest, highest]"),
        ({"between": 5}, "is not a list of two limits"),
        ({"between": [5, 1]}, "has its lower limit above its upper one"),
        ({"between": [1, "5"]}, "has limits that are a number and text"),
        ({"between": [None, 5]}, "has limits that are null and a number"),
        ({"contains": ""}, "is empty, and every text would do; use exists: true"),
        ({"starts_with": 5}, "is a number, and starts_with needs text"),
        ({"matches": "(?=a)"}, "is not a pattern the engine takes (invalid perl operator: (?=)"),
        ({"matches": "a" * 1001}, "is longer than 1000 characters"),
        ({"matches": 5}, "is a number, and matches needs text"),
        ({"isNull": True}, "is not an operator; did you mean 'is_null'?"),
        ({"": 1}, "is not an operator; use one of eq, ne"),
        ({5: 1}, "is not an operator"),
        ({"not_in": [1], "notIn": [1]}, "is there twice"),
        ({}, "has no operator; use one of eq, ne"),
        (None, 'is null, not operators; write {"is_null": true}'),
        (5, 'is a number, not operators; write {"eq": ...} for equality'),
        ([1], "is a list, not operators"),
    ],
)
def test_a_condition_that_makes_no_sense_is_refused(threshold, said):
    assert said in only({"k": threshold})


def test_a_threshold_that_nests_too_deep_is_refused():
    deep: object = 1
    for _ in range(30):
        deep = [deep]
    assert "nests deeper than 20 levels" in only({"k": {"eq": deep}})


def test_a_threshold_that_contains_itself_is_refused():
    endless: list = []
    endless.append(endless)
    assert "nests deeper than 20 levels" in only({"k": {"eq": endless}})


def test_null_inside_a_list_or_mapping_may_be_compared():
    rules = RuleSet("r", "1", [Rule({"k": {"eq": {"a": [None]}}}, "x")])
    assert decide({"k": {"a": [None]}}, rules).branch == "x"


@pytest.mark.parametrize("key", ["", " ", "\ud800"])
def test_a_key_must_be_usable_text(key):
    assert "rules[0].when." in only({key: {"eq": 1}})


def test_a_key_that_is_not_text_is_refused():
    assert "rules[0].when.5: is a number; put it in quotes" in only({5: {"eq": 1}})


@pytest.mark.parametrize("rules", [[], (), iter([])])
def test_no_rule_at_all_is_refused(rules):
    (said,) = problems(rules, default="fine")
    assert "holds no rule, so every subject would get the default unjudged" in said


def test_one_rule_or_a_text_is_not_a_list_of_rules():
    assert "is one rule, not a list; put the rules in a list" in problems(GOOD)[0]
    assert "is text, not a list" in problems("x")[0]
    assert "is a number, not a list" in problems(5)[0]


def test_an_empty_filter_points_to_the_default():
    assert only({}) == (
        "rules[0].when: is empty, and a rule without a condition would hold for everything; "
        "give it a condition, or make it the default"
    )


@pytest.mark.parametrize("blank", ["", "  ", "\n"])
def test_blank_words_are_refused(blank):
    assert "rules[0].label: is blank; leave it out" in only({"a": {"eq": 1}}, label=blank)
    assert "rules[0].unit: is blank" in only({"a": {"eq": 1}}, unit=blank)
    assert "default: is blank" in problems([GOOD], blank)[0]
    assert "default.label: is blank" in problems([GOOD], Default("x", label=blank))[0]
    assert "unreadable.branch: is blank" in problems([GOOD], None, Unreadable(blank))[0]


def test_units_belong_to_keys_of_their_rule():
    assert "rules[0].unit.age: is not a key of this rule; did you mean 'age_days'?" in only(
        {"age_days": {"gt": 1}}, unit={"age": "days"}
    )
    (said,) = problems([Rule(bool, "x", unit="days")])
    assert "rules[0].unit: has no limit to stand beside" in said


def test_an_unknown_word_for_unreadable_values_is_refused():
    assert "did you mean 'raise'?" in problems([GOOD], None, "rais")[0]
    assert "write Unreadable(branch, label=...)" in problems([GOOD], None, "idle")[0]
    assert "is neither 'skip' nor 'raise'" in problems([GOOD], None, None)[0]


def test_patterns_without_the_engine_are_refused_with_the_install_lines(monkeypatch):
    monkeypatch.setitem(sys.modules, "re2", None)
    said = only({"k": {"matches": "a"}})
    assert "pip install 'runbook_nb[regex]'" in said
    assert "conda install -c conda-forge google-re2" in said


def test_rules_default_unreadable_and_outside_may_be_mappings():
    written = RuleSet(
        "r",
        "1",
        rules=[{"when": {"a": {"gt": 1}}, "then": "x", "label": "l", "unit": "days"}],
        default={"branch": "y", "label": "d"},
        unreadable={"branch": "z"},
        outside=[{"where": {"b": {"eq": 1}}, "what": "w", "why": "because"}],
    )
    assert written == RuleSet(
        "r",
        "1",
        [Rule({"a": {"gt": 1}}, "x", "l", "days")],
        Default("y", "d"),
        Unreadable("z"),
        [Outside({"b": {"eq": 1}}, "w", "because")],
    )


def test_branches_come_in_declared_order_each_once():
    rules = RuleSet(
        "r",
        "1",
        [Rule({"a": {"gt": 1}}, "x"), Rule({"b": {"gt": 1}}, "y"), Rule({"c": {"gt": 1}}, "x")],
        default="fine",
        unreadable=Unreadable("idle"),
        outside=[Outside({"os": {"eq": "x"}}, "hosts on x", "no data")],
    )
    assert rules.branches == ("fine", "x", "y", "idle", "declined")
    assert RuleSet("r", "1", [GOOD]).branches == ("x", "declined")
    assert RuleSet("r", "1", [GOOD], unreadable="raise").branches == ("x",)


def test_both_spellings_of_not_in_are_one():
    one = RuleSet("r", "1", [Rule({"a": {"notIn": [1]}}, "x")])
    other = RuleSet("r", "1", [Rule({"a": {"not_in": [1]}}, "x")])
    assert one == other
    assert one.digest == other.digest
    assert decide({"a": 2}, one).evidence["rules"][0]["conditions"][0]["op"] == "notIn"


def test_foreign_thresholds_are_kept_plain():
    stamp = pd.Timestamp("2026-01-02", tz="UTC")
    rules = RuleSet(
        "r",
        "1",
        [
            Rule({"a": {"gt": np.int64(7)}, "b": {"in": (1, 2)}}, "x"),
            Rule({"t": {"lt": stamp}, "s": {"gt": pd.Timedelta("1h")}}, "y"),
        ],
    )
    first, second = rules.rules
    assert type(first.when["a"]["gt"]) is int
    assert first.when["b"]["in"] == [1, 2]
    assert type(second.when["t"]["lt"]) is dt.datetime
    assert type(second.when["s"]["gt"]) is dt.timedelta


def test_a_set_does_not_follow_what_it_was_made_of():
    when = {"a": {"in": [1]}}
    entries = [Rule(when, "x")]
    rules = RuleSet("r", "1", entries)
    when["a"]["in"].append(2)
    entries.append(GOOD)
    assert len(rules.rules) == 1
    assert decide({"a": 2}, rules).branch is None
    with pytest.raises(FrozenError):
        rules.rules[0].when["a"]["in"] = []
    with pytest.raises(FrozenInstanceError):
        rules.name = "other"


def test_equality_sees_types_order_and_functions():
    def build(when):
        return RuleSet("r", "1", [Rule(when, "x")])

    assert build({"a": {"eq": 1}}) != build({"a": {"eq": True}})
    assert build({"a": {"eq": 1}, "b": {"eq": 1}}) != build({"b": {"eq": 1}, "a": {"eq": 1}})
    assert build({"a": {"eq": 1}, "b": {"eq": 1}}).digest == (
        build({"b": {"eq": 1}, "a": {"eq": 1}}).digest
    )
    assert build(lambda facts: True) != build(lambda facts: True)
    assert build(bool) == build(bool)
    assert build({"a": {"eq": 1}}) != "r"
    assert len({build({"a": {"eq": 1}}), build({"a": {"eq": 1}})}) == 1


def test_the_digest_changes_with_every_part():
    variants = [
        RuleSet("r", "1", [GOOD]),
        RuleSet("s", "1", [GOOD]),
        RuleSet("r", "2", [GOOD]),
        RuleSet("r", "1", [Rule({"a": {"gt": 2}}, "x")]),
        RuleSet("r", "1", [Rule({"a": {"gt": 1}}, "y")]),
        RuleSet("r", "1", [Rule({"a": {"gt": 1}}, "x", "l")]),
        RuleSet("r", "1", [Rule({"a": {"gt": 1}}, "x", unit="days")]),
        RuleSet("r", "1", [GOOD], "d"),
        RuleSet("r", "1", [GOOD], unreadable="skip"),
        RuleSet("r", "1", [GOOD], outside=[Outside({"o": {"eq": 1}}, "w", "y")]),
        RuleSet("r", "1", [Rule({"a": {"gt": Decimal(1)}}, "x")]),
    ]
    assert len({variant.digest for variant in variants}) == len(variants)
    assert variants[0].digest == "sha-256:" + variants[0].digest.removeprefix("sha-256:")


def named_rule(facts):
    return facts["a"] > 1


def test_function_rules_have_a_digest_by_name_and_no_written_form():
    rules = RuleSet("r", "1", [GOOD, Rule(named_rule, "y")])
    assert rules.digest.startswith("sha-256:")
    assert rules.digest != RuleSet("r", "1", [GOOD, Rule(len, "y")]).digest
    with pytest.raises(RuleError) as refused:
        rules.to_dict()
    (problem,) = refused.value.problems
    assert problem.where == "rules[1].when"
    assert "named_rule" in problem.message
    assert refused.value.code == "function_rule"


def test_copies_are_the_set_itself_and_pickles_are_equal(posture):
    assert copy.copy(posture) is copy.deepcopy(posture) is freeze(posture) is posture
    again = pickle.loads(pickle.dumps(posture))  # noqa: S301 - ours
    assert again == posture
    assert again is not posture
    assert copy.deepcopy(posture.rules[0]) is posture.rules[0]
    functions = RuleSet("r", "1", [Rule(len, "y")])
    assert pickle.loads(pickle.dumps(functions)) == functions  # noqa: S301 - ours
    bare = RuleSet.bare([GOOD], "y")
    assert pickle.loads(pickle.dumps(bare)) == bare  # noqa: S301 - ours


def test_an_error_of_a_worker_comes_home_whole():
    with pytest.raises(RuleError) as refused:
        RuleSet("r", "1", [])
    again = pickle.loads(pickle.dumps(refused.value))  # noqa: S301 - ours
    assert str(again) == str(refused.value)
    assert again.problems == refused.value.problems


def test_a_document_with_unknown_keys_or_none_is_refused():
    with pytest.raises(RuleError, match="did you mean 'rules'"):
        RuleSet.from_dict({"name": "r", "version": "1", "rulse": []})
    with pytest.raises(RuleError, match="a rule set is a mapping, not a list"):
        RuleSet.from_dict([])
    with pytest.raises(RuleError) as refused:
        RuleSet.from_dict({})
    assert [p.where for p in refused.value.problems] == ["name", "version", "rules"]


def test_a_bare_list_is_checked_too_but_may_overlap():
    overlapping = [Rule({"a": {"gt": 1}}, "x"), Rule({"a": {"gt": 2}}, "y")]
    assert RuleSet.bare(overlapping).is_bare
    with pytest.raises(RuleError, match="the rules cannot be used"):
        RuleSet.bare([Rule({}, "x")])
    with pytest.raises(RuleError, match="can never fire"):
        RuleSet("r", "1", overlapping)


def test_titles_name_set_and_version(posture):
    assert posture.title == "health-signal v1"
    assert RuleSet.bare([GOOD]).title == ""
