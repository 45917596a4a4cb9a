"""What a run as a whole says about its limits."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from runbook_nb.errors import RuleError
from runbook_nb.rules import Outside, Rule, RuleSet, judge_facts
from runbook_nb.rules.notes import notes_of

DAY = dt.date.fromisoformat("2026-01-02")
NAIVE = dt.datetime.fromisoformat("2026-01-02T00:00:00")
AWARE = NAIVE.replace(tzinfo=dt.UTC)


def rule_set(when, unit=None, **more):
    return RuleSet("r", "1", [Rule(when, "x", unit=unit)], "y", **more)


def notes(rules, values, hide=None):
    return notes_of((judge_facts(rules, {"k": value}) for value in values), hide)


def only(*args, **kwargs):
    (note,) = notes(*args, **kwargs)
    return note


def test_a_limit_of_the_wrong_type_is_noted_with_both_types():
    note = only(rule_set({"k": {"gt": 7}}), ["1", "2", "3"])
    assert (note.kind, note.rule_index, note.key) == ("type_mismatch", 0, "k")
    assert note.what == (
        "rule 1 of r 1: k > 7 could never be judged, all 3 values are text, not a number"
    )
    assert note.why == "turn the text into a number before judging"


@pytest.mark.parametrize(
    ("limit", "value", "fix"),
    [
        (NAIVE, DAY, "write date(2026, 1, 2) as the limit"),
        (DAY, NAIVE, "write datetime(2026, 1, 2) as the limit"),
        (
            AWARE,
            NAIVE,
            "give both sides a zone: a time without one has no fixed place among those with one",
        ),
        (7, True, "make the values a number before judging, or give the limit as true or false"),
        ("7", 7, "write 7 as the limit, without quotes"),
    ],
)
def test_the_fix_fits_the_pair_of_types(limit, value, fix):
    assert only(rule_set({"k": {"eq": limit}}), [value]).why == fix


def test_one_value_that_could_be_compared_is_enough_for_silence():
    assert notes(rule_set({"k": {"gt": 7}}), ["1", "2", 3]) == ()
    assert notes(rule_set({"k": {"gt": 7}}), ["1", None, 3]) == ()


@pytest.mark.parametrize(
    ("values", "said", "short"),
    [
        (["1", None], "its one value is text, not a number; 1 more is missing", "1; 1 more is"),
        (
            ["1", "2", None, float("nan")],
            "all 2 values are text, not a number; 2 more are missing",
            "all 2; 2 more are",
        ),
    ],
)
def test_those_without_a_value_are_counted_apart(values, said, short):
    note = only(rule_set({"k": {"gt": 7}}), values)
    assert (note.kind, note.unread) == ("type_mismatch", len(values))
    assert note.what == f"rule 1 of r 1: k > 7 could never be judged, {said}"
    assert note.short == f"rule 1: k is text, not a number ({short} missing)"
    rows = notes_of(judge_facts(rule_set({"k": {"gt": 7}}), row) for row in [{"k": "1"}, {}])
    assert [one.what for one in rows] == [
        "rule 1 of r 1: k > 7 could never be judged, its one value is text, not a number; 1 more "
        "is missing"
    ]


def test_missing_values_are_not_of_the_wrong_type():
    assert notes(rule_set({"k": {"gt": 7}}), [None, float("nan")]) == ()


def test_several_wrong_types_are_listed_and_capped():
    note = only(rule_set({"k": {"gt": 7}}), ["1", True, [1], {"a": 1}, b""])
    assert "all 5 values are text, true or false, a list or others, not a number" in note.what
    assert note.why == "make every value a number before judging"


def test_elements_and_containers_are_named():
    assert "not a number or text" in only(rule_set({"k": {"in": [1, "a"]}}), [True]).what
    assert "not text or a list of text" in only(rule_set({"k": {"contains": "a"}}), [5]).what


def test_a_rule_that_was_never_tried_gets_no_note():
    rules = RuleSet("r", "1", [Rule({"a": {"eq": 1}}, "x"), Rule({"k": {"gt": 7}}, "y")], "z")
    assert notes_of(judge_facts(rules, {"a": 1, "k": "1"}) for _ in range(20)) == ()


def test_ground_outside_is_watched_too():
    rules = rule_set(
        {"k": {"gt": 7}}, outside=[Outside({"os": {"eq": 1}}, "hosts on x", "no data")]
    )
    (note,) = notes_of(judge_facts(rules, {"os": "1", "k": 1}) for _ in range(3))
    assert note.rule_index is None
    assert note.what.startswith("the ground outside of r 1: os = 1 could never be judged")


@pytest.mark.parametrize(
    ("op", "limit", "values", "side"),
    [
        ("lt", 5, [n / 20 for n in range(12)], "below"),
        ("lt", 5, range(5, 17), "at or above"),
        ("lte", 5, range(6, 18), "above"),
        ("lte", 16, range(5, 17), "at or below"),
        ("gt", 95, [n / 20 for n in range(12)], "at or below"),
        ("gt", 1, range(5, 17), "above"),
        ("gte", 5, range(5, 17), "at or above"),
        ("gte", 95, [n / 20 for n in range(12)], "below"),
    ],
)
def test_a_limit_nobody_crosses_is_noted(op, limit, values, side):
    values = list(values)
    note = only(rule_set({"k": {op: limit}}, unit="percent"), values)
    assert note.kind == "one_side"
    assert note.what == (
        f"rule 1 of r 1: all 12 values of k ({values[0]} … {values[-1]}) lie {side} "
        f"the limit {limit} percent"
    )
    assert "percent" in note.why


def test_one_value_on_the_other_side_is_enough_for_silence():
    assert notes(rule_set({"k": {"lt": 5}}, unit="percent"), [*range(5), *range(5, 15)]) == ()


def test_fewer_than_ten_numbers_prove_nothing():
    nine = [n / 20 for n in range(9)]
    rules = rule_set({"k": {"lt": 5}}, unit="percent")
    assert notes(rules, [*nine, None, None, "x"]) == ()
    assert len(notes(rules, [*nine, None, 0.1])) == 1


def test_only_limits_with_a_unit_are_watched():
    values = [n / 20 for n in range(12)]
    assert notes(rule_set({"k": {"lt": 5}}), values) == ()
    assert notes(rule_set({"k": {"lt": 5}}, unit={"k": "%"}), values) != ()
    assert notes(rule_set({"k": {"eq": 5}}, unit="%"), values) == ()
    assert notes(rule_set({"k": {"gt": DAY}}, unit="day"), [DAY] * 12) == ()


def test_numbers_of_all_types_are_measured_together():
    values = [Decimal("0.5"), 0.25, 1, 10**30, *[2] * 8]
    note = only(rule_set({"k": {"gt": 0}}, unit="s"), values)
    assert f"(0.25 … {10**30})" in note.what


def test_hidden_keys_keep_values_and_limits_hidden():
    class Hide:
        def hides_key(self, key):
            return key == "k"

        def scrub(self, value):
            return value

    values = [n / 20 for n in range(12)]
    note = only(rule_set({"k": {"lt": 5}}, unit="percent"), values, Hide())
    assert note.what == "rule 1 of r 1: all 12 values of k lie below the limit"
    assert "7" not in only(rule_set({"k": {"gt": 7}}), ["a"], Hide()).what.replace("rule 1", "")


def test_copies_of_a_rule_set_are_counted_as_one():
    rules = rule_set({"k": {"lt": 5}}, unit="percent")
    copy = RuleSet.from_dict(rules.to_dict())
    judged = [judge_facts(one, {"k": n / 20}) for one in (rules, copy) for n in range(6)]
    (note,) = notes_of(judged)
    assert "all 12 values" in note.what


def test_memory_is_bounded_by_conditions_not_by_subjects():
    rules = rule_set({"k": {"lt": 5}}, unit="percent")
    seen = 0

    def judged():
        nonlocal seen
        for n in range(5000):
            seen += 1
            yield judge_facts(rules, {"k": n / 5000})

    (note,) = notes_of(judged())
    assert seen == 5000
    assert "all 5000 values of k (0.0 … 0.9998)" in note.what


def test_notes_come_in_the_order_in_which_conditions_were_met():
    rules = RuleSet("r", "1", [Rule({"b": {"gt": 1}, "a": {"gt": 1}}, "x")], unreadable="skip")
    found = notes_of([judge_facts(rules, {"a": "x", "b": "x"})])
    assert [note.key for note in found] == ["b", "a"]


def test_no_side_is_noted_where_another_limit_of_the_key_was_crossed():
    rules = RuleSet(
        "disk",
        "v1",
        [
            Rule({"free": {"lt": 3}}, "critical", unit="percent"),
            Rule({"free": {"lt": 50}}, "low", unit="percent"),
        ],
        default="fine",
    )
    near = [judge_facts(rules, {"free": 40 + n}) for n in range(20)]
    assert notes_of(near) == ()
    far = [judge_facts(rules, {"free": n / 20}) for n in range(20)]
    assert [note.kind for note in notes_of(far)] == ["one_side"]


@pytest.mark.parametrize(
    "when",
    [
        {"agee": {"gt": 7}},
        {"agee": {"exists": True, "gt": 7}},
        {"agee": {"missing": True}},
        {"agee": {"is_null": True}},
    ],
)
def test_a_key_no_subject_has_is_noted_once(when):
    rules = RuleSet("r", "1", [Rule(when, "x")], "y", unreadable="skip")
    judged = [judge_facts(rules, {"age": n}) for n in range(3)]
    (note,) = notes_of(judged)
    assert (note.kind, note.key, note.rule_index) == ("never_there", "agee", 0)
    assert "not one of 3 subjects has agee" in note.what


def test_a_key_somebody_has_is_not_noted_however_rarely():
    rules = RuleSet("r", "1", [Rule({"age": {"exists": True}}, "x")], "y")
    judged = [judge_facts(rules, row) for row in ({}, {"age": None}, {})]
    assert notes_of(judged) == ()


def test_one_subject_is_too_few_to_say_that_nobody_has_a_key():
    rules = RuleSet("r", "1", [Rule({"agee": {"gt": 7}}, "x")], "y")
    assert notes_of([judge_facts(rules, {"age": 1})]) == ()


def test_the_key_that_was_meant_is_named_among_those_that_subjects_have():
    rules = RuleSet("r", "1", [Rule({"disk_pc": {"gt": 7}}, "x")], "y")
    judged = [judge_facts(rules, {"disk_pct": n}) for n in range(3)]
    (note,) = notes_of(judged, None, lambda: ["disk_pct", "owner"])
    assert note.why == "did you mean 'disk_pct'? a key nobody has decides nothing"
    assert (note.short, note.unread) == ("rule 1: not one of 3 subjects has disk_pc", 3)
    (far,) = notes_of(judged, None, lambda: ["owner"])
    assert far.why == "check the spelling of disk_pc; a key nobody has decides nothing"


def test_a_key_that_another_rule_read_is_meant_too():
    rules = RuleSet("r", "1", [Rule({"age": {"gt": 7}}, "x"), Rule({"agee": {"gt": 1}}, "x")], "y")
    (note,) = notes_of([judge_facts(rules, {"age": n}) for n in range(3)])
    assert note.why.startswith("did you mean 'age'?")


def test_a_hidden_key_is_never_offered():
    class Hide:
        def hides_key(self, key):
            return key == "disk_pct"

        def scrub(self, value):
            return value

    rules = RuleSet("r", "1", [Rule({"disk_pc": {"gt": 7}}, "x")], "y")
    judged = [judge_facts(rules, {"disk_pct": n}) for n in range(3)]
    (note,) = notes_of(judged, Hide(), lambda: ["disk_pct"])
    assert "disk_pct" not in note.why


def test_keys_are_asked_for_only_where_one_is_missing():
    def refuse():
        raise AssertionError("nobody had to look")

    rules = rule_set({"k": {"gt": 7}})
    judged = [judge_facts(rules, {"k": value}) for value in ("1", "2")]
    assert [note.kind for note in notes_of(judged, None, refuse)] == ["type_mismatch"]


def test_a_note_has_a_short_form_and_says_how_many_it_left_undecided():
    note = only(rule_set({"k": {"gt": 7}}), ["1", "2", "3"])
    assert (note.short, note.unread) == ("rule 1: k is text, not a number (all 3)", 3)
    assert only(rule_set({"k": {"gt": 7}}), ["1"]).short == "rule 1: k is text, not a number"
    rules = rule_set({"kk": {"missing": True}})
    (there,) = notes_of(judge_facts(rules, {"k": n}) for n in range(3))
    assert there.unread == 0


def test_a_secret_limit_is_not_told_in_other_words():
    class Hide:
        def hides_key(self, key):
            return False

        def scrub(self, value):
            return "[REDACTED]" if value == "2026-01-02" else value

    note = only(rule_set({"k": {"lt": "2026-01-02"}}), [NAIVE], Hide())
    assert "datetime(2026" not in note.why


CONDITIONS = st.dictionaries(
    st.sampled_from("abc"),
    st.dictionaries(
        st.sampled_from(["gt", "lte", "eq"]), st.integers(-1, 3), min_size=1, max_size=2
    )
    | st.just({"exists": True}),
    min_size=1,
    max_size=2,
)


@st.composite
def rule_sets(draw):
    rules = [
        Rule(when, f"b{n}", unit=draw(st.sampled_from([None, None, {"a": "days"}])))
        for n, when in enumerate(draw(st.lists(CONDITIONS, min_size=1, max_size=3)))
    ]
    more = draw(st.sampled_from([{}, {"unreadable": "skip"}]))
    try:
        return RuleSet("r", "1", rules, "y", **more)
    except RuleError:  # one rule stands in the shadow of another
        reject()


ROWS = st.lists(
    st.dictionaries(st.sampled_from("abc"), st.sampled_from([0, 1, 2, 3, None, "x"])),
    max_size=16,
)


@given(rule_sets(), ROWS)
def test_plain_decisions_come_to_no_note(rules, rows):
    judged = [judge_facts(rules, row) for row in rows]
    assert notes_of([one for one in judged if one[0].plain]) == ()
    if all(path.plain for path, _ in judged):
        assert notes_of(judged) == ()


def test_what_could_be_noted_is_never_plain():
    for when, unit, row in (
        ({"k": {"gt": 1}}, "days", {"k": 2}),
        ({"k": {"exists": True}}, None, {"k": 2}),
        ({"k": {"gt": 1}}, None, {"k": "x"}),
        ({"k": {"gt": 1}}, None, {}),
    ):
        assert not judge_facts(rule_set(when, unit), row)[0].plain
    assert judge_facts(rule_set({"k": {"gt": 1}}), {"k": 2})[0].plain
    assert judge_facts(rule_set(lambda facts: facts["k"] > 1), {"k": 2})[0].plain
