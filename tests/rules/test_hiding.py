"""Rule sets as they may be shown: both sides of a comparison hidden, every word scrubbed."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb.rules import Default, Outside, Rule, RuleSet, Unreadable, decide, select
from runbook_nb.rules.decision import judged_values
from runbook_nb.rules.hiding import HiddenKeys, hidden_limit, shown_rules


class Hide:
    """Hides one key, and one word wherever it stands."""

    active = True

    def hides_key(self, key):
        return key == "pin"

    def scrub(self, value):
        if isinstance(value, str):
            return value.replace("secret", "[REDACTED]")
        if isinstance(value, list | tuple):
            return [self.scrub(item) for item in value]
        return value


def is_secret(facts):
    return facts["pin"] == 1


RULES = RuleSet(
    "set secret",
    "v-secret",
    [
        Rule({"pin": {"gt": 5}, "n": {"lt": 3}}, "go-secret", label="it is secret", unit="secret"),
        Rule({"word": {"eq": "a secret", "ne": "x"}}, "b", unit={"word": "secret units"}),
        Rule(is_secret, "b"),
    ],
    default=Default("b", label="no secret"),
    unreadable=Unreadable("b", label="a secret is missing"),
    outside=[Outside({"pin": {"in": [1, 2]}}, "what secret", "why secret")],
)


@pytest.mark.parametrize(
    ("op", "limit", "hidden"),
    [
        ("gt", 5, "[REDACTED]"),
        ("eq", None, "[REDACTED]"),
        ("between", [1, 2], ["[REDACTED]", "[REDACTED]"]),
        ("in", [1, 2, 3], ["[REDACTED]"]),
        ("not_in", [1], ["[REDACTED]"]),
        ("exists", True, True),
        ("missing", False, False),
        ("is_null", True, True),
        ("matches", "a+", "[REDACTED]"),
    ],
)
def test_a_hidden_limit_has_the_shape_its_operator_takes(op, limit, hidden):
    assert hidden_limit(op, limit) == hidden


def test_every_word_of_a_rule_set_is_scrubbed():
    shown = shown_rules(RULES, Hide())
    assert "secret" not in repr(shown._document(by_name=True)) + str(shown)
    assert shown.title == "set [REDACTED] v-[REDACTED]"
    assert shown.branches == ("b", "go-[REDACTED]", "declined")


def test_limits_of_hidden_keys_are_replaced_and_others_are_not():
    shown = shown_rules(RULES, Hide())
    assert shown.rules[0].when == {"pin": {"gt": "[REDACTED]"}, "n": {"lt": 3}}
    assert shown.rules[1].when == {"word": {"eq": "a [REDACTED]", "ne": "x"}}
    assert shown.outside[0].where == {"pin": {"in": ["[REDACTED]"]}}


def test_a_set_in_which_nothing_is_hidden_is_given_as_it_is():
    plain = RuleSet("r", "1", [Rule({"n": {"gt": 1}}, "x"), Rule(len, "x")], "x")
    assert shown_rules(plain, Hide()) is plain
    assert shown_rules(plain, HiddenKeys(frozenset())) is plain


def test_a_function_is_shown_under_a_name_that_holds_no_secret():
    shown = shown_rules(RULES, Hide())
    assert shown.rules[2].when.__name__ == "is_[REDACTED]"
    with pytest.raises(TypeError, match="cannot judge"):
        shown.rules[2].when({})


def test_keys_that_differ_in_a_secret_alone_stay_several():
    class Alike(Hide):
        def scrub(self, value):
            return "k" if isinstance(value, str) and value.startswith("k-") else value

    rules = RuleSet("r", "1", [Rule({"k-1": {"gt": 1}, "k-2": {"gt": 2}}, "x")])
    assert shown_rules(rules, Alike()).rules[0].when == {"k": {"gt": 1}, "k'": {"gt": 2}}


@pytest.mark.parametrize(
    ("op", "limit", "shown"),
    [
        ("matches", "secret.*", "[REDACTED]"),
        ("between", ["a secret", "z"], ["[REDACTED]", "[REDACTED]"]),
        ("starts_with", "secret-", "[REDACTED]-"),
        ("in", ["secret", "b"], ["[REDACTED]", "b"]),
    ],
)
def test_half_a_limit_is_hidden_whole(op, limit, shown):
    rules = RuleSet("r", "1", [Rule({"word": {op: limit}}, "x")])
    seen = shown_rules(rules, Hide())
    assert seen.rules[0].when["word"][op] == shown
    assert RuleSet.from_dict(seen.to_dict(), recorded=True) == seen


def test_what_is_shown_can_be_written_and_read_again():
    rules = RuleSet("r", "1", [Rule({"pin": {"between": [1, 5]}}, "x")], "y")
    shown = shown_rules(rules, Hide())
    assert RuleSet.from_dict(shown.to_dict(), recorded=True) == shown


# -- decisions -----------------------------------------------------------------------------------


def served(facts, rules=RULES, judge=decide):
    made = judge(facts, rules)
    return type(made)(made.path, made.raw_values, Hide())


def test_a_served_decision_has_served_rules_words_and_values():
    made = served({"pin": 9, "n": 1, "word": "w"})
    assert made.branch == "go-[REDACTED]"
    assert made.rules.title == "set [REDACTED] v-[REDACTED]"
    assert made.rule.label == "it is [REDACTED]"
    assert "[REDACTED]" in made.values
    assert 9 not in made.values
    assert 9 in made.raw_values
    shown = f"{made.to_dict()}{made.sentence}{made}{made.evidence}{made.values}"
    assert "secret" not in shown
    assert made.to_dict()["rules"]["digest"] == RULES.digest


def test_a_decision_under_no_policy_is_as_it_was():
    made = decide({"pin": 9, "n": 1, "word": "w"}, RULES)
    assert made.values is made.raw_values
    assert made.rules is RULES


def test_a_policy_that_hides_nothing_is_not_asked():
    class Idle(Hide):
        active = False

    made = decide({"pin": 9, "n": 1, "word": "w"}, RULES)
    assert type(made)(made.path, made.raw_values, Idle()).hide is None


def test_what_a_function_read_is_hidden_among_the_values():
    facts = {"pin": 1, "n": 9, "word": "w"}
    made = served(facts, RuleSet("r", "1", [Rule(is_secret, "x")], "y"))
    [record] = made.values
    assert record.inputs == (("pin", "[REDACTED]"),)
    assert record.returned is True


def test_a_selection_is_served_as_a_decision_is():
    made = served({"pin": 9, "n": 1, "word": "a secret"}, judge=select)
    assert "secret" not in f"{made.to_dict()}{made.sentence}{made}{made.branches}"


def test_a_copy_of_a_served_decision_holds_no_hidden_value():
    rules = RuleSet("r", "1", [Rule({"pin": {"gt": 5}, "n": {"lt": 3}}, "x")], "b")
    made = served({"pin": 987654, "n": 1, "word": "w"}, rules)
    copy = pickle.loads(pickle.dumps(made))  # noqa: S301 - our own bytes
    assert "987654" not in f"{copy.raw_values}{copy}"
    assert copy.conditions[0].redacted
    assert copy.sentence == made.sentence


def test_what_was_judged_is_told_key_by_key():
    rules = RuleSet("r", "1", RULES.rules, "b")
    made = decide({"pin": 6, "n": 9, "word": "w"}, rules)
    assert list(judged_values(made.path, made.raw_values)) == [
        ("pin", 6),
        ("n", 9),
        ("word", "w"),
        ("word", "w"),
        ("pin", 6),
    ]


@given(
    st.dictionaries(st.sampled_from(["pin", "n", "word"]), st.integers(100, 999), max_size=3),
    st.integers(100, 999),
)
def test_a_served_decision_never_shows_the_value_or_the_limit_of_a_hidden_key(facts, limit):
    rules = RuleSet.bare([Rule({"pin": {"gt": limit}}, "x"), Rule({"n": {"gt": 0}}, "x")], "y")
    made = decide(facts, rules)
    shown = type(made)(made.path, made.raw_values, Hide())
    others = {str(value) for key, value in facts.items() if key != "pin"}
    told = f"{shown.to_dict()}{shown.values}{shown.sentence}{shown}"
    for hidden in {str(facts.get("pin", limit)), str(limit)} - others:
        assert hidden not in told.replace(rules.digest, "")
