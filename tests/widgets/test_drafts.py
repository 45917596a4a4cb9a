"""Rules being changed by hand: what is applied, what is wrong, what may be kept."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runbook_nb.errors import DefinitionError, RuleError
from runbook_nb.rules import Default, Rule, RuleSet
from runbook_nb.widgets.drafts import Draft, Wrong, fitted

OLD = Rule({"days": {"gt": 7}}, "old", unit={"days": "days"})
FLAG = Rule({"known": {"eq": False}}, "declined")
TIER = Rule({"tier": {"in": ["a", "b"]}, "size": {"gte": 1}}, "vip")


def draft(*rules, check=lambda key: None):
    return Draft(
        RuleSet("age", "v1", list(rules) or [OLD, FLAG, TIER], Default("new", "in time")), check
    )


def test_a_limit_is_changed_and_nothing_else():
    one = draft()
    one.set_limit(1, "days", "gt", 14)
    assert one.applied.rules[0] == Rule({"days": {"gt": 14}}, "old", unit={"days": "days"})
    assert one.applied.rules[1:] == (FLAG, TIER)
    assert one.applied.title == "age draft"
    assert one.is_changed
    assert one.base.rules == (OLD, FLAG, TIER)


def test_an_operator_takes_the_limit_along_where_it_fits():
    one = draft()
    one.set_operator(1, "days", "gt", "gte")
    one.set_operator(3, "tier", "in", "eq")
    assert dict(one.applied.rules[0].when["days"]) == {"gte": 7}
    assert dict(one.applied.rules[2].when["tier"]) == {"eq": "a"}
    one.set_operator(1, "days", "gte", "exists")
    assert dict(one.applied.rules[0].when["days"]) == {"exists": True}


@pytest.mark.parametrize(
    ("old", "new", "limit", "becomes"),
    [
        ("gt", "lt", 7, 7),
        ("eq", "in", "a", ["a"]),
        ("in", "not_in", ["a"], ["a"]),
        ("in", "eq", [], ""),
        ("between", "gt", [1, 5], 1),
        ("in", "between", [], [0, 0]),
        ("exists", "missing", False, False),
        ("exists", "eq", True, ""),
    ],
)
def test_limits_are_put_in_the_form_of_another_operator(old, new, limit, becomes):
    assert fitted(old, new, limit) == becomes


def test_a_key_is_renamed_with_its_unit():
    one = draft()
    one.set_key(1, "days", "age")
    assert one.applied.rules[0] == Rule({"age": {"gt": 7}}, "old", unit={"age": "days"})
    with pytest.raises(DefinitionError, match="has conditions on 'size' already"):
        one.set_key(3, "tier", "size")


def test_what_cannot_be_used_is_not_applied_and_says_why():
    one = draft()
    one.set_limit(1, "days", "gt", True)
    (wrong,) = one.wrong
    assert wrong.rule.when["days"]["gt"] is True
    assert "order" in wrong.wrong.what or "compare" in wrong.wrong.what or wrong.wrong.what
    assert one.applied.rules[0] == OLD
    one.set_limit(1, "days", "gt", 9)
    assert one.wrong == ()
    assert one.applied.rules[0].when["days"]["gt"] == 9


def test_a_key_nobody_has_is_wrong_in_what_was_typed_and_not_in_what_judged():
    one = draft(check=lambda key: Wrong(f"no {key}", key, "days"))
    assert one.wrong == ()
    one.set_limit(1, "days", "gt", 9)
    assert one.wrong == ()
    one.set_key(1, "days", "dayz")
    assert one.wrong[0].wrong == Wrong("no dayz", "dayz", "days")
    number = one.add({"dayz": {"gt": 1}}, "old")
    assert one.rules[number - 1].good is None
    assert len(one.applied.rules) == 3
    assert one.places() == {0: 0, 1: 1, 2: 2}


def test_rules_are_moved_added_and_removed():
    one = draft()
    one.move(3, 1)
    assert one.applied.rules == (TIER, OLD, FLAG)
    one.remove(2)
    assert one.applied.rules == (TIER, FLAG)
    assert one.add({"x": {"eq": 1}}, "old", "because") == 3
    assert one.applied.rules[2] == Rule({"x": {"eq": 1}}, "old", "because")
    one.reset()
    assert not one.is_changed
    assert one.applied.rules == (OLD, FLAG, TIER)


def test_an_added_rule_has_the_units_its_keys_have_in_others():
    both = Rule({"size": {"gt": 1}, "kind": {"eq": "x"}}, "big", unit="GB")
    one = draft(OLD, both, Rule(lambda row: True, "old"))
    assert one.rules[one.add({"days": {"gt": 30}}, "old") - 1].rule.unit == "days"
    # Of two keys the unit is not known to be this one's.
    assert one.rules[one.add({"size": {"gt": 9}}, "big") - 1].rule.unit is None
    added = one.add({"days": {"gt": 30}, "size": {"gt": 9}}, "old")
    assert one.rules[added - 1].rule.unit == {"days": "days"}
    assert one.rules[one.add({"tier": {"eq": "a"}}, "vip") - 1].rule.unit is None


def test_the_last_rule_stays():
    one = draft(OLD)
    with pytest.raises(DefinitionError, match="cannot be removed"):
        one.remove(1)


def test_the_default_is_changed_and_cannot_be_moved():
    one = draft()
    one.set_default("fresh")
    assert one.applied.default == Default("fresh", "in time")
    one.set_default(label="")
    assert one.applied.default == Default("fresh", None)
    with pytest.raises(RuleError):
        one.set_default(" ")
    assert one.applied.default == Default("fresh", None)
    with pytest.raises(DefinitionError, match="there is no rule 4"):
        one.move(4, 1)


def test_what_is_not_there_is_named():
    one = draft()
    with pytest.raises(DefinitionError, match="numbered from 1 to 3"):
        one.set_limit(0, "days", "gt", 1)
    with pytest.raises(DefinitionError, match="did you mean 'days'"):
        one.set_limit(1, "day", "gt", 1)
    with pytest.raises(DefinitionError, match="no condition on 'days lt'"):
        one.set_limit(1, "days", "lt", 1)
    with pytest.raises(DefinitionError, match="is a function"):
        draft(Rule(lambda facts: True, "x")).set_limit(1, "days", "gt", 1)


def test_a_rule_that_can_never_fire_may_be_looked_at_and_not_kept():
    one = draft(Rule({"days": {"gt": 30}}, "older"), OLD)
    one.move(2, 1)
    assert one.applied.rules[0] == OLD
    with pytest.raises(RuleError, match="can never fire"):
        one.keep("v2")


def test_a_draft_is_kept_under_a_version_of_its_own():
    one = draft()
    one.set_limit(1, "days", "gt", 14)
    with pytest.raises(RuleError, match="already the version of other content") as refused:
        one.keep("v1")
    assert refused.value.code == "same_version"
    assert one.next_version == "v2"
    kept = one.keep("v2")
    assert kept.title == "age v2"
    assert one.kept is kept
    assert one.next_version == "v3"
    one.set_limit(1, "days", "gt", 20)
    with pytest.raises(RuleError, match="age v2 is already the version of other content"):
        one.keep("v2")


def test_a_draft_with_a_rule_that_is_not_applied_is_not_kept():
    one = draft()
    one.set_limit(1, "days", "gt", None)
    with pytest.raises(RuleError, match="rule 1 is not applied") as refused:
        one.keep("v2")
    assert refused.value.code == "not_applied"


EDITS = st.one_of(
    st.tuples(st.just("move"), st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.just("set_limit"), st.just(1), st.just("days"), st.just("gt"), st.integers(-9, 9)),
    st.tuples(st.just("set_verdict"), st.integers(1, 3), st.sampled_from(["old", "new", " "])),
    st.tuples(st.just("set_label"), st.integers(1, 3), st.sampled_from(["", "why", "x"])),
    st.tuples(st.just("set_default"), st.sampled_from(["new", "fresh"])),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(EDITS, max_size=8))
def test_a_draft_always_has_rules_that_can_judge(edits):
    one = draft(OLD, FLAG, TIER)
    for name, *args in edits:
        if name == "set_limit" and "days" not in one.rules[0].rule.when:
            continue
        getattr(one, name)(*args)
        assert len(one.rules) == 3
        assert sorted(each.id for each in one.rules) == [0, 1, 2]
        assert len(one.applied.rules) == 3
        assert [one.number_of(each.id) for each in one.rules] == [1, 2, 3]
        for each in one.rules:
            assert each.wrong is not None or each.good == each.rule
    one.reset()
    assert one.applied.rules == one.base.rules


def test_limits_are_checked_but_for_those_it_began_with():
    asked = []

    def check(key, op, limit, old):
        asked.append((key, op, limit, dict(old)))
        return Wrong("no", key) if limit == 0 else None

    rules = RuleSet("r", "1", [Rule({"a": {"gt": 0}, "b": {"lt": 5, "exists": True}}, "x")], "y")
    one = Draft(rules, check_limit=check)
    one.set_label(1, "said")
    assert asked == []
    one.set_limit(1, "b", "lt", 7)
    assert asked == [("b", "lt", 7, {"lt": 5, "exists": True})]
    one.set_limit(1, "b", "lt", 0)
    assert one.wrong[0].wrong == Wrong("no", "b")
    assert one.applied.rules[0].when["b"]["lt"] == 7
    with pytest.raises(RuleError, match="rule 1 is not applied: no"):
        one.keep("2")


def test_a_limit_that_is_none_is_refused_before_its_type_is_asked():
    def check(*_):
        raise AssertionError("it is no limit")

    rules = RuleSet("r", "1", [Rule({"a": {"gt": 1}}, "x")], "y")
    one = Draft(rules, check_limit=check)
    one.set_limit(1, "a", "gt", None)
    assert one.wrong


def test_a_version_whose_writing_failed_is_not_taken():
    def full(made):
        raise OSError(f"no room for {made.title}")

    draft = Draft(RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], "fresh"))
    draft.set_limit(1, "days", "gt", 14)
    with pytest.raises(OSError, match="no room for age v2"):
        draft.keep("v2", full)
    assert (draft.kept, draft.next_version) == (None, "v2")
    draft.set_limit(1, "days", "gt", 20)
    written = []
    assert draft.keep("v2", written.append).rules[0].when["days"]["gt"] == 20
    assert written == [draft.kept]
