"""Judging facts again of which not everything is known."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runbook_nb._text import MISSING
from runbook_nb.errors import RuleError
from runbook_nb.rules import Outside, Rule, RuleSet, decide
from runbook_nb.rules.columns import as_columns
from runbook_nb.rules.known import Gap, Known, KnownFacts, _met, judge_again

TWO = RuleSet(
    "r",
    "1",
    [Rule({"a": {"gt": 1}}, "x"), Rule({"b": {"gt": 1}, "c": {"eq": "k"}}, "y")],
    "z",
)


WHOLE = (Known(),)


def again(rows, rules=TWO, table=WHOLE, kinds=None):
    return judge_again(rules, KnownFacts(as_columns(rows), table, kinds))


def told(found):
    ways = [found.ways[number] for number in found.numbers]
    return [way.branch if way.gap is None else way.gap.kind for way in ways]


def test_facts_that_are_known_are_judged_as_rows_are():
    rows = [{"a": 2, "b": 0, "c": "k"}, {"a": 0, "b": 2, "c": "k"}, {"a": 0, "b": 0, "c": "k"}]
    assert told(again(rows)) == ["x", "y", "z"]
    assert told(again(rows)) == [decide(row, TWO).branch for row in rows]


def test_a_key_nobody_recorded_is_not_taken_for_missing():
    known = Known(frozenset({"a"}))
    found = again([{"a": 0}, {"a": 5}], table=[known])
    assert told(found) == ["not_recorded", "x"]
    assert found.ways[0].gap == Gap("not_recorded", 1, ("b", "c"))
    assert found.ways[0].gap.words == "rule 2 needs b and c, which were not recorded"
    # Where everything was recorded, the same row lacks the key, and is declined.
    assert told(again([{"a": 0}, {"a": 5}])) == ["declined", "x"]


def test_a_condition_known_to_be_false_makes_the_others_needless():
    known = Known(frozenset({"a", "b"}))
    assert told(again([{"a": 0, "b": 0}, {"a": 0, "b": 9}], table=[known])) == ["z", "not_recorded"]


def test_what_a_policy_hides_is_told_apart_from_what_was_not_recorded():
    known = Known(None, frozenset({"c"}))
    found = again([{"a": 0, "b": 9}], table=[known])
    assert told(found) == ["hidden"]
    assert found.ways[0].gap.words == "rule 2 needs c, which is hidden"
    assert Known(None, frozenset({"pin"})).lacks("pin.last") == "hidden"
    assert Known(None, frozenset(), frozenset({"n"})).lacks("n") == "not_recorded"


def test_rows_of_several_kinds_are_told_apart_one_by_one():
    rows = [{"a": 0}, {"a": 0}, {"a": 0, "b": 2, "c": "k"}]
    table = [Known(), Known(frozenset({"a"}))]
    assert told(again(rows, table=table, kinds=[0, 1, 0])) == ["declined", "not_recorded", "y"]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), min_size=1, max_size=60))
def test_what_meets_in_a_row_is_told_alike_in_bytes_and_in_wider_numbers(pairs):
    numbers, kinds = (bytes(part) for part in zip(*pairs, strict=True))
    order = list(dict.fromkeys(pairs))
    for some in (
        (numbers, kinds),
        (array("H", [*numbers]), kinds),
        (numbers, array("H", [*kinds])),
    ):
        for most, top in ((41, 10), (max(numbers) + 1, max(kinds) + 1), (6, 42)):
            if max(numbers) < most and max(kinds) < top:
                found, places = _met(*some, most, top)
                assert found == order
                assert [order[place] for place in places] == pairs


def test_presence_is_asked_of_nothing_that_was_not_recorded():
    rules = RuleSet("r", "1", [Rule({"b": {"missing": True}}, "gone")], "there")
    assert told(again([{"a": 0}], rules)) == ["gone"]
    assert told(again([{"a": 0}], rules, [Known(frozenset({"a"}))])) == ["not_recorded"]


def test_a_function_needs_everything():
    rules = RuleSet("r", "1", [Rule(lambda facts: facts["a"] > 1, "x")], "z")
    assert told(again([{"a": 2}, {"a": 0}], rules)) == ["x", "z"]
    partly = again([{"a": 2}], rules, [Known(frozenset({"a"}))])
    assert (
        partly.ways[0].gap.words
        == "rule 1 needs what its function may read, which was not recorded"
    )
    hidden = again([{"a": 2}], rules, [Known(None, frozenset({"q"}))])
    assert hidden.ways[0].gap.kind == "hidden"


def test_ground_outside_is_asked_first():
    outside = [Outside({"os": {"eq": "x"}}, "hosts on x", "no data")]
    rules = RuleSet("r", "1", [Rule({"a": {"gt": 1}}, "x")], "z", outside=outside)
    found = again([{"a": 5, "os": "x"}], rules, [Known(frozenset({"a"}))])
    assert found.ways[0].gap.words == "ground outside needs os, which was not recorded"
    assert told(again([{"a": 5, "os": "x"}, {"a": 5, "os": "y"}], rules)) == ["declined", "x"]


def test_rules_that_refuse_a_value_refuse_the_row_and_no_other():
    rules = RuleSet("r", "1", [Rule({"a": {"gt": 1}}, "x")], "z", unreadable="raise")
    found = again([{"a": 5}, {"a": None}, {"a": 0}], rules)
    assert told(found) == ["x", "refused", "z"]
    assert "rule 1 could not be read, a" in [way.gap.words for way in found.ways if way.gap]


def test_an_asynchronous_function_is_refused():
    async def rule(facts):
        return True

    with pytest.raises(RuleError, match="asynchronous"):
        again([{"a": 1}], RuleSet("r", "1", [Rule(rule, "x")], "z"))


def test_the_keys_of_facts_are_those_some_row_may_be_judged_by():
    facts = KnownFacts(as_columns([{"a": 1, "b": 2}]), [Known(None, frozenset({"b"}))])
    assert facts.keys == ("a",)
    assert not facts.is_whole
    assert KnownFacts(as_columns([])).keys == ()
    assert len(judge_again(TWO, KnownFacts(as_columns([])))) == 0


VALUES = st.sampled_from([0, 2, "k", None, 2.5, MISSING])


@settings(max_examples=150)
@given(
    st.lists(
        st.tuples(
            st.fixed_dictionaries(dict.fromkeys("abc", VALUES)), st.sets(st.sampled_from("abc"))
        ),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from(["skip", "raise", {"branch": "declined"}]),
)
def test_a_verdict_given_on_part_of_the_facts_is_the_one_all_of_them_give(rows, unreadable):
    """Whatever was not recorded: either the verdict is that of the whole row, or there is a gap."""
    rules = RuleSet("r", "1", TWO.rules, "z", unreadable=unreadable)
    whole = [{k: v for k, v in row.items() if v is not MISSING} for row, _ in rows]
    kept = [
        {k: v for k, v in row.items() if k in keys}
        for row, (_, keys) in zip(whole, rows, strict=True)
    ]
    kinds = list(dict.fromkeys(frozenset(keys) for _, keys in rows))
    found = again(
        kept, rules, [Known(keys) for keys in kinds], [kinds.index(frozenset(k)) for _, k in rows]
    )
    full = again(whole, rules)
    for place, (number, other) in enumerate(zip(found.numbers, full.numbers, strict=True)):
        way, truth = found.ways[number], full.ways[other]
        if way.gap is None or way.gap.kind == "refused":
            assert (way.branch, way.gap) == (truth.branch, truth.gap)
        else:
            assert set(way.gap.keys) - rows[place][1]
