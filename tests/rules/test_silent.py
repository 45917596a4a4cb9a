"""Rules that never fired, and what took their subjects."""

from __future__ import annotations

from runbook_nb.rules import Outside, Rule, RuleSet
from runbook_nb.rules.columns import as_columns
from runbook_nb.rules.known import Known, KnownFacts, judge_again
from runbook_nb.rules.silent import Taker, fired, silent_rules

ROWS = [{"a": 9, "b": 1}, {"a": 8, "b": 1}, {"a": None, "b": 1}, {"a": 1, "b": 0}]
FIRST, SECOND = Rule({"a": {"gt": 7}}, "x"), Rule({"b": {"eq": 1}}, "y")


WHOLE = (Known(),)


def judged(*rules, rows=ROWS, table=WHOLE, **more):
    facts = KnownFacts(as_columns(rows), table)
    return judge_again(RuleSet("r", "1", list(rules), "z", **more), facts)


def test_a_rule_whose_subjects_were_all_taken_says_by_which():
    found = judged(FIRST, SECOND)
    assert fired(found) == (2, 0)
    (silent,) = silent_rules(found)
    assert silent.meeting == 3
    assert silent.takers == (Taker("rule", 0, 2), Taker("unreadable", 0, 1))
    assert silent.words == (
        "never fired: the 3 subjects that meet it are taken before: rule 1 2, rule 1, unreadable 1"
    )


def test_one_taker_is_named_in_a_sentence():
    (silent,) = silent_rules(judged(FIRST, SECOND, rows=ROWS[:2]))
    assert silent.words == "never fired: rule 1 takes the 2 subjects that meet it"
    (silent,) = silent_rules(judged(FIRST, SECOND, rows=ROWS[:1]))
    assert silent.words == "never fired: rule 1 takes the subject that meets it"


def test_a_rule_nobody_meets_says_so():
    (silent,) = silent_rules(judged(FIRST, Rule({"b": {"eq": 7}}, "w")))
    assert (silent.meeting, silent.words) == (0, "never fired: no subject meets it")


def test_a_rule_that_fired_is_not_among_them():
    assert silent_rules(judged(SECOND)) == ()
    assert silent_rules(judged(SECOND, rows=[])) == ()


def test_ground_outside_may_take_them():
    outside = [Outside({"b": {"eq": 1}}, "b is one", "not covered")]
    silent = {s.rule_index: s for s in silent_rules(judged(FIRST, SECOND, outside=outside))}
    assert silent[1].takers == (Taker("outside", 0, 3),)
    assert silent[1].words == "never fired: ground outside 1 takes the 3 subjects that meet it"


def test_what_is_not_known_is_said():
    (_, silent) = silent_rules(
        judged(FIRST, SECOND, rows=[{"a": 1}], table=[Known(frozenset("a"))])
    )
    assert (silent.meeting, silent.unknown) == (0, 1)
    assert silent.words == "never fired: no subject meets it; of 1 it is not known"


def test_counts_add_up_with_those_the_default_took():
    found = judged(FIRST, Rule({"b": {"eq": 0}}, "y"))
    default = sum(1 for n in found.numbers if found.ways[n].path.via == "default")
    unreadable = sum(1 for n in found.numbers if found.ways[n].path.via == "unreadable")
    assert sum(fired(found)) + default + unreadable == len(ROWS)


def test_who_meets_a_rule_is_found_once(calls_of):
    found = judged(FIRST, SECOND)
    alone = {}
    first = calls_of(lambda: silent_rules(found, alone))
    assert calls_of(lambda: silent_rules(found, alone)) < first / 2
    assert silent_rules(found, alone) == silent_rules(found)


def test_those_that_meet_it_and_have_no_verdict_are_said_apart():
    facts = KnownFacts(
        as_columns([{"age": 9, "tier": 1}, {"age": 9}]),
        [Known(), Known(frozenset({"age"}))],
        [0, 1],
    )
    rules = RuleSet(
        "r", "1", [Rule({"age": {"gt": 7}, "tier": {"eq": 1}}, "x"), Rule({"age": {"gt": 7}}, "y")]
    )
    (silent,) = silent_rules(judge_again(rules, facts))
    assert (silent.meeting, silent.takers, silent.unjudged) == (2, (Taker("rule", 0, 1),), 1)
    assert silent.words == (
        "never fired: of the 2 subjects that meet it, rule 1 takes 1, and 1 cannot be judged"
    )
