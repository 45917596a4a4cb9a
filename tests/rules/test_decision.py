"""What a decision says: sentences, evidence, hidden values, equality, cards."""

from __future__ import annotations

import copy
import datetime as dt
import json
import pickle
from decimal import Decimal

import numpy as np
import pytest

from runbook_nb._text import MISSING
from runbook_nb.render.text import render_line, render_text
from runbook_nb.rules import (
    Condition,
    Decision,
    Outside,
    Rule,
    RuleSet,
    Unreadable,
    decide,
    judge_facts,
    select,
)

DAY = dt.date.fromisoformat("2026-01-02")
NAIVE = dt.datetime.fromisoformat("2026-01-02T00:00:00")


class Hide:
    """Hides some keys, and one secret text wherever it occurs."""

    def __init__(self, *keys):
        self.keys, self.secret = keys, "hunter22"

    def hides_key(self, key):
        return key in self.keys

    def scrub(self, value):
        if isinstance(value, str):
            return value.replace(self.secret, "[REDACTED]")
        if isinstance(value, list):
            return [self.scrub(item) for item in value]
        return value


def text_of(op, threshold, actual, unit=None):
    rules = [Rule({"k": {op: threshold}}, "x", unit=unit)]
    return decide({} if actual is MISSING else {"k": actual}, rules).conditions[0].text


@pytest.mark.parametrize(
    ("op", "threshold", "actual", "text"),
    [
        ("gt", 7, 30, "k 30 > 7"),
        ("gt", 7, 2, "k > 7, was 2"),
        ("gte", 7, 7.5, "k 7.5 >= 7"),
        ("eq", False, False, "k = false"),
        ("eq", False, True, "k = false, was true"),
        ("eq", "a", "b", 'k = "a", was "b"'),
        ("ne", "a", "b", 'k "b" != "a"'),
        ("in", ["a", "b"], "a", 'k "a" in ["a", "b"]'),
        ("not_in", [1], 2, "k 2 not in [1]"),
        ("in", list(range(40)), 3, "k 3 in [0, 1, 2, 3, 4… of 40 items]"),
        ("between", [1, 5], 3, "k 3 between 1 and 5"),
        ("contains", "b", ["a", "b"], 'k (2 items) contains "b"'),
        ("starts_with", "a", "abc", 'k "abc" starts with "a"'),
        ("matches", "^a", "abc", 'k "abc" matches "^a"'),
        ("exists", True, 1, "k exists"),
        ("exists", True, None, "k exists, was null"),
        ("exists", False, MISSING, "k does not exist"),
        ("missing", True, MISSING, "k is missing"),
        ("missing", False, MISSING, "k is not missing, was missing"),
        ("is_null", True, None, "k is null"),
        ("is_null", False, 1, "k is not null"),
        ("gt", DAY, DAY + dt.timedelta(1), "k 2026-01-03 > 2026-01-02"),
        ("lt", dt.timedelta(days=1), dt.timedelta(hours=1), "k PT1H < P1D"),
        ("eq", {"a": 1}, {"a": 1}, "k = {a}"),
        ("gt", 7, np.int64(30), "k 30 > 7"),
        ("gt", 7, MISSING, "k is missing, needed for k > 7"),
        ("gt", 7, None, "k is null, needed for k > 7"),
        ("gt", 7, float("nan"), "k is NaN, needed for k > 7"),
        ("gt", 7, "30", "k is text, not a number, needed for k > 7"),
        (
            "gt",
            DAY,
            NAIVE,
            "k is a datetime without a zone, not a date, needed for k > 2026-01-02",
        ),
        (
            "in",
            [1, "a"],
            True,
            'k is true or false, not a number or text, needed for k in [1, "a"]',
        ),
        (
            "contains",
            "a",
            7,
            'k is a number, not text or a list of text, needed for k contains "a"',
        ),
        (
            "contains",
            1,
            ["a"],
            "k is a list of text, not a list with a number in it, needed for k contains 1",
        ),
        ("gt", 7, b"", "k is a value of type bytes, not a number, needed for k > 7"),
    ],
)
def test_a_condition_reads_as_a_sentence(op, threshold, actual, text):
    assert text_of(op, threshold, actual) == text


def test_units_follow_the_limit():
    assert text_of("gt", 7, 30, "days") == "k 30 > 7 days"
    assert text_of("between", [1, 5], 9, {"k": "GB"}) == "k between 1 and 5 GB, was 9"
    rules = [Rule({"a": {"gt": 1}, "b": {"gt": 2}}, "x", unit={"b": "days"})]
    assert decide({"a": 3, "b": 4}, rules).cause == "a 3 > 1 and b 4 > 2 days"


def test_control_characters_never_reach_a_sentence():
    rules = RuleSet("r\x1b[31m", "1\u202e", [Rule({"k\x07": {"eq": "a\nb"}}, "x\x00")], "y")
    found = decide({"k\x07": "a\nb"}, rules)
    assert found.sentence == 'x\\x00 by rule 1 of r\\x1b[31m 1\\u202e: k\\x07 = "a\\nb"'
    assert found.sentence.isprintable()


def test_long_values_are_cut_where_that_shows():
    found = decide({"k": "q" * 500}, [Rule({"k": {"ne": "z" * 500}}, "x")])
    assert len(found.sentence) < 300
    assert "..." in found.sentence
    assert found.actuals == ("q" * 500,)


def test_the_sentences_of_all_ways(posture):
    def sentence(**facts):
        return decide(facts, posture).sentence

    assert sentence(age_known=True, age_days=30) == (
        "unprotected by rule 2 of health-signal v1: age_days 30 > 7"
    )
    assert sentence(age_known=False) == "declined by rule 1 of health-signal v1: age_known = false"
    assert sentence(age_known=True, age_days=2) == (
        "protected by default of health-signal v1: no rule fired"
    )
    assert sentence(age_known=True) == (
        "declined: rule 2 of health-signal v1 could not be read, age_days is missing"
    )


def test_labels_come_from_what_decided(posture):
    def label(**facts):
        return decide(facts, posture).label

    assert label(age_known=False) == "the age signal cannot be read"
    assert label(age_known=True, age_days=2) == "last backup within 7 days"
    assert label(age_known=True) == "a value the rules need could not be read"


def test_several_unreadable_conditions_are_named_once_each():
    rules = RuleSet("r", "1", [Rule({"a": {"gt": 1, "lt": 9}, "b": {"gt": 1}}, "x")])
    assert decide({"b": None}, rules).cause == "a is missing and b is null"
    assert decide({"a": 5, "b": None}, rules).cause == "b is null"


def test_evidence_has_its_published_shape(posture):
    assert decide({"age_known": True, "age_days": None}, posture).evidence == {
        "rules": [
            {
                "type": "filter",
                "ruleIndex": 0,
                "branch": "declined",
                "matched": False,
                "label": "the age signal cannot be read",
                "conditions": [
                    {
                        "key": "age_known",
                        "op": "eq",
                        "threshold": False,
                        "actual": True,
                        "actualSummary": "true",
                        "result": False,
                        "redacted": False,
                    }
                ],
            },
            {
                "type": "filter",
                "ruleIndex": 1,
                "branch": "unprotected",
                "matched": False,
                "label": "last backup older than the 7-day threshold",
                "conditions": [
                    {
                        "key": "age_days",
                        "op": "gt",
                        "threshold": 7,
                        "actual": None,
                        "actualSummary": "null",
                        "result": None,
                        "redacted": False,
                        "status": "null",
                    }
                ],
            },
        ],
        "chosen": "declined",
        "default": "protected",
        "defaultLabel": "last backup within 7 days",
        "unreadable": {"ruleIndex": 1, "key": "age_days", "status": "null"},
    }


def test_a_missing_value_has_no_actual_but_a_summary():
    (rule,) = decide({}, [Rule({"a": {"gt": 1}}, "x", unit="days")]).evidence["rules"]
    (condition,) = rule["conditions"]
    assert "actual" not in condition
    assert (condition["actualSummary"], condition["unit"]) == ("undefined", "days")


def test_the_default_label_is_in_every_evidence_and_no_other_default_key(posture):
    assert decide({"age_known": False}, posture).evidence["defaultLabel"]
    bare = decide({"a": 1}, [Rule({"a": {"eq": 1}}, "x")]).evidence
    assert bare["default"] is None
    assert "defaultLabel" not in bare


def test_a_decision_is_json_whatever_it_was_decided_on():
    endless: list = []
    endless.append(endless)
    facts = {"a": {1, 2}, "b": Decimal("0.10"), "c": NAIVE, "d": endless, "e": object(), "f": b"x"}
    rules = [Rule({key: {"ne": 1} for key in facts}, "x"), Rule(lambda f: endless, "y")]
    found = decide(facts, rules).to_dict()
    json.dumps(found, allow_nan=False)
    shown = [c["actualSummary"] for c in found["evidence"]["rules"][0]["conditions"]]
    assert shown == ["(2 items)", "0.10", "2026-01-02T00:00:00", "(1 item)", "<object>", "<bytes>"]


def test_to_dict_stamps_the_rules(posture):
    found = decide({"age_known": False}, posture).to_dict()
    assert found["rules"] == {
        "name": "health-signal",
        "version": "v1",
        "digest": posture.digest,
    }
    assert (found["branch"], found["via"], found["ruleIndex"]) == ("declined", "rule", 0)
    assert "rules" not in decide({"a": 1}, [Rule({"a": {"eq": 1}}, "x")]).to_dict()


# --- hidden values -----------------------------------------------------------------------------


def hidden(facts, rules, *keys):
    path, values = judge_facts(rules, facts)
    return Decision(path, values, Hide(*keys))


SECRETS = RuleSet(
    "r",
    "1",
    [
        Rule({"token": {"eq": "s3cret"}, "age": {"gt": 7}}, "x", label="for hunter22"),
        Rule(lambda facts: facts["token"] + facts["name"], "y"),
    ],
    "z",
)


def test_a_hidden_key_hides_value_and_limit_everywhere():
    found = hidden({"token": "s3cret", "age": 30}, SECRETS, "token")
    condition = found.conditions[0]
    assert (condition.actual, condition.threshold, condition.redacted) == (
        "[REDACTED]",
        "[REDACTED]",
        True,
    )
    assert found.cause == "token = [REDACTED] and age 30 > 7"
    assert found.evidence["rules"][0]["conditions"][0]["actualSummary"] == "[REDACTED]"
    everything = json.dumps(found.to_dict()) + found.sentence + render_text(found.view())
    assert "s3cret" not in everything
    assert "30" in everything


def test_secret_texts_are_scrubbed_from_labels_values_and_errors():
    def judge(facts):
        raise ValueError("bad password hunter22")

    rules = RuleSet(
        "r",
        "1",
        [Rule({"note": {"eq": "x hunter22"}}, "a", label="hunter22"), Rule(judge, "b")],
        unreadable=Unreadable("declined", label="hunter22 not readable"),
        outside=[Outside({"o": {"eq": 1}}, "hunter22 hosts", "hunter22 says so")],
    )
    for facts in ({"note": "hunter22", "o": 0}, {"note": "x hunter22", "o": 0}, {"o": 1}, {"o": 2}):
        found = hidden(facts, rules)
        shown = json.dumps(found.to_dict()) + found.sentence + found.cause + str(found.label)
        assert "hunter22" not in shown + render_text(found.view("host hunter22"))
        assert "[REDACTED]" in shown


def test_inputs_of_functions_and_what_comes_out_of_them_are_hidden():
    found = hidden({"token": "s3cret", "age": 1, "name": "n"}, SECRETS, "token")
    (rule,) = [r for r in found.evidence["rules"] if r["type"] == "function"]
    assert rule["inputs"] == [
        {"key": "token", "valueSummary": "[REDACTED]", "redacted": True},
        {"key": "name", "valueSummary": '"n"', "redacted": False},
    ]
    assert rule["returned"] == "[REDACTED]"
    assert "s3cret" not in json.dumps(found.to_dict()) + found.cause + render_text(found.view())


def test_a_hidden_value_of_another_type_does_not_tell_its_type():
    found = hidden({"token": 5, "age": 30}, SECRETS, "token")
    assert found.cause == "token is of another type than its limit"


def test_limits_of_rules_that_were_not_tried_are_hidden_too():
    rules = RuleSet("r", "1", [Rule({"a": {"eq": 1}}, "x"), Rule({"token": {"eq": "s3cret"}}, "y")])
    assert "s3cret" not in render_text(hidden({"a": 1}, rules, "token").view())


# --- equality and copies -----------------------------------------------------------------------


def test_equal_decisions_are_equal_and_others_are_not(posture):
    facts = {"age_known": True, "age_days": 30}
    one = decide(facts, posture)
    copy_of_rules = RuleSet.from_dict(posture.to_dict())
    assert one == decide(dict(facts), posture) == decide(facts, copy_of_rules)
    assert hash(one) == hash(decide(facts, copy_of_rules))
    assert one != decide({"age_known": True, "age_days": 31}, posture)
    assert one != decide({"age_known": True, "age_days": 2}, posture)
    assert one != one.sentence
    assert decide({"k": 1}, [Rule({"k": {"ne": 2}}, "x")]) != decide(
        {"k": True}, [Rule({"k": {"ne": 2}}, "x")]
    )


def test_nan_and_foreign_values_compare_with_themselves():
    rules = [Rule({"k": {"gt": 1}}, "x"), Rule(lambda facts: float("nan"), "y")]
    assert decide({"k": float("nan")}, rules) == decide({"k": float("nan")}, rules)
    assert decide({"k": b"a"}, rules) != decide({"k": b"b"}, rules)


def test_a_decision_travels(posture):
    found = decide({"age_known": True, "age_days": 30}, posture)
    again = pickle.loads(pickle.dumps(found))  # noqa: S301 - ours
    assert again == found
    assert again.sentence == found.sentence
    assert copy.deepcopy(found.path) is found.path


def test_a_condition_stands_alone():
    condition = Condition("a", "gt", 7, MISSING, None, "missing", False, None)
    assert condition.actual_summary == "undefined"
    assert condition.to_dict()["status"] == "missing"


# --- cards -------------------------------------------------------------------------------------


def shown(facts, rules, **where):
    return render_text(decide(facts, rules).view(**where)).splitlines()


def test_a_rule_that_fired_is_shown_in_the_evidence(posture):
    assert shown(
        {"age_known": True, "age_days": 30}, posture, subject="cluster-b", place="walk row 27 of 46"
    ) == [
        "Decision cluster-b · unprotected by rule 2 of health-signal v1: age_days 30 > 7",
        "  1        declined     age_known  true  =  false  no",
        "  2        unprotected  age_days     30  >  7      yes, taken",
        "  default  protected    no condition               not needed",
        "last backup older than the 7-day threshold · walk row 27 of 46",
    ]


def test_an_unreadable_rule_says_which_key_and_why():
    rules = RuleSet(
        "health-signal",
        "v2",
        [Rule({"age_days": {"gt": 7}}, "unprotected"), Rule({"copies": {"lt": 1}}, "unprotected")],
        default="protected",
    )
    assert shown({}, rules, subject="cluster-c") == [
        "Decision cluster-c · declined: rule 1 of health-signal v2 could not be read, "
        "age_days is missing",
        "  1        unprotected  age_days  —  >  7  unreadable, missing",
        "  2        unprotected  copies       <  1  not tried",
        "  default  protected    no condition       not tried",
        "a value the rules need could not be read",
    ]


def test_the_default_is_shown_as_taken(posture):
    lines = shown({"age_known": True, "age_days": 2}, posture)
    assert lines[0] == "Decision · protected by default of health-signal v1: no rule fired"
    assert lines[3] == "  default  protected    no condition               yes, taken"


def test_rules_of_several_conditions_take_a_line_each():
    rules = RuleSet(
        "r",
        "1",
        [
            Rule({"a": {"exists": True, "gt": 1}, "b": {"in": ["x"]}}, "hit", unit={"a": "GB"}),
            Rule(len, "many"),
        ],
    )
    assert shown({"a": 2, "b": "x"}, rules)[1:] == [
        "  1  hit   a        2  exists         yes, taken",
        "           a        2  >       1 GB   yes",
        '           b      "x"  in      ["x"]  yes',
        "  2  many  len()                      not needed",
    ]


def test_what_a_function_read_is_shown_under_it():
    def is_stale(facts):
        return facts["age"] > 7

    lines = shown({"age": 30}, RuleSet("r", "1", [Rule(is_stale, "stale")]))
    assert lines[1:3] == [
        "  1  stale  is_stale()        yes, taken",
        "            age     30  read",
    ]


def test_ground_outside_is_shown_first():
    rules = RuleSet(
        "r",
        "1",
        [Rule({"findings": {"gt": 0}}, "vulnerable")],
        "clean",
        outside=[Outside({"os": {"eq": "x"}}, "hosts on x", "no data")],
    )
    lines = shown({"os": "x"}, rules)
    assert lines[1:] == [
        '  outside  declined    os      "x"  =  "x"  yes, taken',
        "  1        vulnerable  findings     >  0    not tried",
        "  default  clean       no condition         not tried",
        "hosts on x",
    ]


def test_a_selection_has_a_card():
    chosen = select({"a": 5}, [Rule({"a": {"gt": 1}}, "x"), Rule({"a": {"gt": 9}}, "y")])
    assert render_text(chosen.view("host-1")).splitlines() == [
        "Selection host-1 · selected x: a 5 > 1",
        "  1  x  a  5  >  1  yes, taken",
        "  2  y  a  5  >  9  no",
    ]


def test_a_rule_set_shows_rules_default_unreadable_and_ground_outside(posture):
    assert render_text(posture.view()).splitlines() == [
        "RuleSet health-signal v1 · 2 rules",
        "  1           age_known = false       declined     the age signal cannot be read",
        "  2           age_days > 7            unprotected  "
        "last backup older than the 7-day threshold",
        "  unreadable  a value cannot be read  declined     "
        "a value the rules need could not be read",
        "  default     no rule fires           protected    last backup within 7 days",
    ]
    other = RuleSet(
        "r",
        "1",
        [Rule({"a": {"gt": 1}}, "x", unit="days"), Rule(len, "y")],
        unreadable="raise",
        outside=[Outside({"os": {"eq": "x"}}, "hosts on x", "no data")],
    )
    text = render_text(other.view())
    assert "RuleSet r 1 · 2 rules, no default" in text
    assert "a > 1 days" in text
    assert "len()" in text
    assert "raises an error" in text
    assert 'no data (os = "x")' in text


def test_reprs_are_the_first_line(posture):
    found = decide({"age_known": False}, posture)
    assert repr(posture) == "<RuleSet health-signal v1 · 2 rules>"
    assert repr(found) == f"<{render_line(found.view())}>"
    assert str(found) == render_text(found.view())
    assert "declined by rule 1" in found.to_markdown()


def test_nothing_a_value_does_breaks_a_card():
    class Nasty:
        def __repr__(self):
            raise RuntimeError("no")

        __str__ = __repr__

    found = decide({"k": Nasty()}, [Rule({"k": {"eq": 1}}, "x")], "y")
    assert "<Nasty>" in str(found)
    assert found.evidence["rules"][0]["conditions"][0]["actualSummary"] == "<Nasty>"
