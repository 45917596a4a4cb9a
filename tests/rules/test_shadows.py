"""Rules that can never fire are named with the rule that stands before them."""

from __future__ import annotations

import datetime as dt

import pytest

from runbook_nb.errors import RuleError
from runbook_nb.rules import Rule, RuleSet
from runbook_nb.rules.shadows import shadowed

DAY = dt.date.fromisoformat("2026-01-02")


def is_shadowed(earlier, later):
    return shadowed([Rule(earlier, "x"), Rule(later, "y")]) == [(0, 1)]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ({"gt": 7}, {"gt": 7}),
        ({"gt": 7}, {"gt": 30}),
        ({"gt": 7}, {"gte": 8}),
        ({"gte": 7}, {"gt": 7}),
        ({"gt": 7}, {"eq": 8}),
        ({"gt": 7}, {"in": [8, 9]}),
        ({"gt": 7}, {"between": [8, 9]}),
        ({"between": [1, 9]}, {"between": [2, 3]}),
        ({"between": [1, 9]}, {"gte": 1, "lt": 9}),
        ({"lt": 7}, {"lte": 6.5}),
        ({"lt": DAY}, {"lt": DAY - dt.timedelta(1)}),
        ({"in": [1, 2, 3]}, {"in": [1, 3]}),
        ({"in": [1, 2]}, {"eq": 1}),
        ({"ne": 5}, {"gt": 5}),
        ({"ne": 5}, {"not_in": [5, 6]}),
        ({"not_in": [5, 6]}, {"ne": 5, "not_in": [6]}),
        ({"not_in": [5]}, {"between": [6, 7]}),
        ({"not_in": [5, "a"]}, {"eq": 6}),
        ({"exists": True}, {"gt": 7}),
        ({"exists": True}, {"not_in": []}),
        ({"missing": False}, {"contains": "a"}),
        ({"is_null": False}, {"exists": True}),
        ({"exists": False}, {"missing": True}),
        ({"missing": True}, {"is_null": True}),
        ({"starts_with": "a"}, {"starts_with": "ab"}),
        ({"contains": "b"}, {"starts_with": "abc"}),
        ({"contains": "b"}, {"eq": "abc"}),
        ({"contains": "b"}, {"contains": "b"}),
        ({"matches": "^a"}, {"eq": "ab"}),
        ({"eq": [1]}, {"eq": [1.0]}),
    ],
)
def test_a_rule_that_follows_from_its_own_conditions_is_shadowed(earlier, later):
    assert is_shadowed({"k": earlier}, {"k": later})
    assert is_shadowed({"k": earlier}, {"k": later, "other": {"eq": 1}})


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ({"gt": 7}, {"gt": 6}),
        ({"gt": 7}, {"gte": 7}),
        ({"gt": 7}, {"gt": "8"}),
        ({"gt": 7}, {"exists": True}),
        ({"between": [1, 9]}, {"gte": 1}),
        ({"in": [1, 2]}, {"in": [2, 3]}),
        ({"ne": 5}, {"ne": 6}),
        ({"ne": 5}, {"gte": 5}),
        ({"ne": 5}, {"not_in": [5, "a"]}),
        ({"ne": 5}, {"eq": "a"}),
        ({"not_in": ["a"]}, {"gt": 5}),
        ({"exists": True}, {"missing": True}),
        ({"exists": True}, {"is_null": False}),
        ({"is_null": True}, {"missing": True}),
        ({"starts_with": "ab"}, {"starts_with": "a"}),
        ({"starts_with": "a"}, {"contains": "a"}),
        ({"contains": "b"}, {"contains": "abc"}),
        ({"matches": "^a"}, {"starts_with": "a"}),
        ({"eq": True}, {"eq": 1}),
    ],
)
def test_a_rule_that_may_still_fire_is_left_alone(earlier, later):
    assert not is_shadowed({"k": earlier}, {"k": later})


def test_a_rule_that_asks_for_less_is_not_shadowed():
    assert not is_shadowed({"k": {"gt": 7}, "other": {"eq": 1}}, {"k": {"gt": 30}})


def test_function_rules_are_left_alone():
    assert shadowed([Rule(bool, "x"), Rule(bool, "y"), Rule({"a": {"eq": 1}}, "z")]) == []


def test_both_rules_are_named():
    with pytest.raises(RuleError) as refused:
        RuleSet(
            "r",
            "1",
            [
                Rule({"age": {"gt": 7}}, "old", unit="days"),
                Rule({"b": {"eq": 1}}, "other"),
                Rule({"age": {"gt": 30}}, "very old"),
            ],
        )
    assert [str(problem) for problem in refused.value.problems] == [
        "rules[2]: can never fire: whenever rule 3 is true, rule 1 (age > 7 days) is true before "
        "it; put it before rule 1, or narrow that one"
    ]
