"""What differs between two versions of a rule set."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb.rules import Default, Outside, Rule, RuleSet, Unreadable
from runbook_nb.rules.changes import differing, rule_changes


def rules(*given_rules, version="1", default="new", **more):
    return RuleSet("r", version, list(given_rules), default, **more)


def words(old, new):
    return [change.words for change in differing(rule_changes(old, new))]


OLD = Rule({"age": {"gt": 7}}, "old")
FLAG = Rule({"flag": {"eq": True}}, "declined")
TIER = Rule({"tier": {"in": ["a", "b"]}}, "vip", label="by tier")


def test_nothing_differs_between_equal_sets():
    same = rules(OLD, FLAG, TIER)
    assert words(same, rules(OLD, FLAG, TIER, version="2")) == []
    assert all(not change.decides for change in rule_changes(same, same))


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (Rule({"age": {"gt": 14}}, "old"), "rule 1 limit raised, 7 -> 14"),
        (Rule({"age": {"gt": 3}}, "old"), "rule 1 limit lowered, 7 -> 3"),
        (Rule({"age": {"gte": 7}}, "old"), "rule 1 age > 7 -> >= 7"),
        (Rule({"age": {"gt": 7}}, "older"), "rule 1 leads to older, was old"),
        (Rule({"age": {"gt": 7}}, "old", label="x"), "rule 1 label added"),
        (Rule({"age": {"gt": 7}}, "old", unit="days"), "rule 1 unit changed"),
        (Rule({"age": {"gt": 7}, "tier": {"eq": 1}}, "old"), "rule 1 with tier = 1"),
        (Rule({"age": {"gt": 7.0}}, "old"), None),
    ],
)
def test_a_field_that_differs_is_named(new, said):
    assert words(rules(OLD), rules(new)) == ([] if said is None else [said])


def test_lists_say_what_came_in_and_went():
    more = Rule({"tier": {"in": ["b", "c", "d"]}}, "vip", label="by tier")
    assert words(rules(TIER), rules(more)) == ['rule 1 list with "c", "d" and without "a"']
    turned = Rule({"tier": {"in": ["b", "a"]}}, "vip", label="by tier")
    assert words(rules(TIER), rules(turned)) == ["rule 1 list in another order"]


def test_true_and_one_are_not_the_same_limit():
    one = Rule({"flag": {"eq": 1}}, "declined")
    assert words(rules(FLAG), rules(one)) == ["rule 1 limit changed, true -> 1"]


def test_rules_that_come_go_and_move_are_told_apart():
    assert words(rules(OLD), rules(OLD, TIER)) == ["rule 2 added"]
    assert words(rules(OLD, TIER), rules(TIER)) == ["rule 1 removed"]
    moved = rule_changes(rules(OLD, FLAG, TIER), rules(TIER, OLD, FLAG))
    assert [change.words for change in differing(moved)] == ["rule 1 moved, 3 -> 1"]
    assert all(change.decides for change in differing(moved))


def test_a_changed_rule_keeps_its_identity_behind_an_added_one():
    new = rules(FLAG, Rule({"age": {"gt": 14}}, "old"))
    assert words(rules(OLD), new) == ["rule 1 added", "rule 2 limit raised, 7 -> 14"]


def test_default_unreadable_and_ground_outside_are_compared_too():
    old = rules(
        OLD, default=Default("new", "in time"), outside=[Outside({"os": {"eq": "x"}}, "x", "y")]
    )
    new = rules(
        OLD,
        default=Default("fresh", "in time"),
        unreadable=Unreadable("idle"),
        outside=[Outside({"os": {"eq": "z"}}, "x", "y")],
    )
    assert words(old, new) == [
        'outside 1 limit changed, "x" -> "z"',
        "unreadable leads to idle, was declined; label removed",
        "default leads to fresh, was new",
    ]
    assert words(rules(OLD), rules(OLD, default=None)) == ["default removed"]
    assert words(rules(OLD), rules(OLD, unreadable="skip")) == [
        "unreadable now not true, was declined"
    ]


def test_what_is_only_spoken_decides_nothing():
    (change,) = differing(rule_changes(rules(OLD), rules(Rule(OLD.when, "old", label="x"))))
    assert not change.decides
    both = Rule({"age": {"gt": 14}}, "old", label="x")
    (change,) = differing(rule_changes(rules(OLD), rules(both)))
    assert (change.words, change.cause, change.short) == (
        "rule 1 limit raised, 7 -> 14; label added",
        "rule 1 limit raised, 7 -> 14",
        "limit, label",
    )


def test_functions_are_compared_by_identity():
    def one(facts):
        return True

    def two(facts):
        return True

    assert words(rules(Rule(one, "x")), rules(Rule(one, "x"))) == []
    assert words(rules(Rule(one, "x")), rules(Rule(two, "x"))) == ["rule 1 one() -> two()"]


def test_a_change_is_written_as_json_values():
    change = differing(rule_changes(rules(OLD), rules(Rule({"age": {"gt": 14}}, "old"))))[0]
    assert change.to_dict() == {
        "part": "rule",
        "kind": "changed",
        "old": 1,
        "new": 1,
        "fields": [
            {"field": "limit", "key": "age", "old": 7, "new": 14, "words": "limit raised, 7 -> 14"}
        ],
        "old_text": "age > 7",
        "new_text": "age > 14",
        "words": "rule 1 limit raised, 7 -> 14",
    }


POOL = [Rule({"n": {"eq": n}}, f"b{n % 3}") for n in range(6)]


@given(
    st.permutations(POOL),
    st.sets(st.integers(0, 5), min_size=1),
    st.sets(st.integers(0, 5), min_size=1),
)
def test_every_rule_of_either_side_is_told_exactly_once(order, mine, theirs):
    old = [rule for n, rule in enumerate(POOL) if n in mine]
    new = [rule for rule in order if POOL.index(rule) in theirs]
    changes = [c for c in rule_changes(rules(*old), rules(*new)) if c.part == "rule"]
    assert sorted(c.old for c in changes if c.old is not None) == list(range(len(old)))
    assert sorted(c.new for c in changes if c.new is not None) == list(range(len(new)))
    for change in changes:
        if change.is_same:
            assert old[change.old] == new[change.new]
