"""Comparing two judgements: what changed, and the rule and values that changed it."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb.errors import DefinitionError, RuleError
from runbook_nb.rules.undoing import with_applied, with_undone

KNOWN = rb.Rule({"known": {"eq": False}}, "declined", label="cannot be read")


def old_after(days, version, *more, default="fresh", name="age", **others):
    rules = [KNOWN, rb.Rule({"days": {"gt": days}}, "old", label=f"older than {days}"), *more]
    return rb.RuleSet(name, version, rules, rb.Default(default), **others)


def row(host, days, known=True, keep=30):
    return {"host": host, "known": known, "days": days, "keep": keep}


ROWS = [
    row("a", 14),
    row("b", 9),
    row("c", 40),
    row("d", 2, keep=3),
    row("e", 1),
    row("f", 5, False),
]
KEEP = rb.Rule({"keep": {"lt": 7}}, "old")


def answer(rules=None, rows=ROWS, **more):
    rules = rules or old_after(7, "v1")
    return rb.triage(rows, rules, subject="host", source="rows", **more)


def again(*args, envelope=None, **more):
    envelope = envelope or answer()
    return envelope.compare(envelope.rejudge(old_after(*args, **more)))


def causes(comparison):
    return [(g.before, g.after, g.cause.words, g.total) for g in comparison.groups]


def test_flips_are_told_by_transition_and_cause_the_most_first():
    found = again(14, "v2", KEEP)
    assert causes(found) == [
        ("old", "fresh", "rule 2 limit raised, 7 -> 14", 2),
        ("fresh", "old", "rule 3 added", 1),
    ]
    first, second, third = found.flips()
    assert first[:8] == ("a", "old", "fresh", "days", 14, 14, "rule 2, > 7", "default")
    assert (second.subject, second.actual) == ("b", 9)
    assert third[:8] == ("d", "fresh", "old", "keep", 3, 3, "default", "rule 3, < 7")


def test_everything_is_counted_from_one_table():
    found = again(14, "v2", KEEP, envelope=answer(max_branches=5))
    assert (found.changed, found.unchanged, found.compared) == (3, 2, 5)
    assert found.counts() == {"fresh": (2, 3), "old": (3, 2), "declined": (0, 0)}
    assert found.matrix == {
        ("old", "fresh"): 2,
        ("fresh", "old"): 1,
        ("old", "old"): 1,
        ("fresh", "fresh"): 1,
    }
    assert [(one.kind, one.reason, one.total) for one in found.not_compared] == [
        ("not_reached", "past the cap of 5", 1)
    ]
    changes = {change.name: found.moved_by(change) for change in found.rule_changes}
    assert changes == {"rule 1": 0, "rule 2": 2, "rule 3": 1, "unreadable": 0, "default": 0}


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (
            old_after(7, "v2", default="new"),
            [("fresh", "new", "default leads to new, was fresh", 2)],
        ),
        (
            rb.RuleSet("age", "v2", [KNOWN], "fresh"),
            [("old", "fresh", "rule 2 removed", 3)],
        ),
        (
            rb.RuleSet("age", "v2", [KNOWN, rb.Rule({"days": {"gt": 7}}, "late")], "fresh"),
            [("old", "late", "rule 2 leads to late, was old", 3)],
        ),
        (
            rb.RuleSet("age", "v2", [rb.Rule({"days": {"gt": 3}}, "old"), KNOWN], "fresh"),
            [("declined", "old", None, 1)],
        ),
        (
            old_after(7, "v2", outside=[rb.Outside({"keep": {"lt": 7}}, "short", "not covered")]),
            [("fresh", "declined", "outside 1 added", 1)],
        ),
    ],
    ids=["default", "removed", "verdict", "several", "outside"],
)
def test_the_part_that_differs_is_the_cause(rules, said):
    envelope = answer()
    found = causes(envelope.compare(envelope.rejudge(rules)))
    assert [(*one[:2], one[3]) for one in found] == [(*one[:2], one[3]) for one in said]
    for one, other in zip(found, said, strict=True):
        assert other[2] in (None, one[2])


def test_a_label_that_changed_is_no_cause():
    envelope = answer()
    relabelled = rb.RuleSet("age", "v2", [KNOWN, rb.Rule({"days": {"gt": 7}}, "old")], "fresh")
    found = envelope.compare(envelope.rejudge(relabelled))
    assert (found.changed, found.groups) == (0, ())
    assert str(found) == "Compare age v1 -> v2 · no verdict changed (6 unchanged)"


def test_values_that_changed_between_two_runs_are_the_cause():
    later = [row("a", 2), *ROWS[1:5], row("g", 1)]
    found = answer().compare(answer(rows=later))
    assert causes(found) == [("old", "fresh", "values changed", 1)]
    (flip,) = found.flips()
    assert (flip.actual, flip.actual_after) == (14, 2)
    assert (found.appeared, found.gone) == (("g",), ("f",))
    assert repr(found) == (
        "<Compare age v1, before -> after · 1 of 5 verdicts changed "
        "(4 unchanged, 1 appeared, 1 gone)>"
    )
    assert "14 -> 2" in found.to_markdown()


def test_rules_and_values_that_both_changed_are_both_said():
    later = answer(old_after(14, "v2"), [row("a", 14), row("b", 1), *ROWS[2:]])
    assert causes(answer().compare(later)) == [
        ("old", "fresh", "rule 2 limit raised, 7 -> 14", 1),
        ("old", "fresh", "rule 2 limit raised, 7 -> 14, and the value changed", 1),
    ]


def test_a_rule_that_would_not_do_it_without_the_value_is_not_the_cause_alone():
    later = answer(old_after(4, "v2"), [row("a", 14), row("b", 5), *ROWS[2:]])
    before = answer(rows=[row("a", 14), row("b", 4), *ROWS[2:]])  # 4 is late by neither limit
    both = "rule 2 limit lowered, 7 -> 4, and the value changed"
    assert [one for one in causes(before.compare(later)) if one[3] == 1] == [
        ("fresh", "old", both, 1)
    ]
    assert [one.subject for one in before.compare(later).flips() if one.cause == both] == ["b"]


def test_subjects_of_one_name_are_compared_in_their_order():
    twins = [row("a", 9), row("a", 2)]
    found = answer(rows=twins).compare(answer(rows=twins[::-1]))
    assert found.changed == 2
    assert found.appeared == found.gone == ()


def test_one_version_with_two_contents_is_spoken():
    found = again(14, "v1")
    assert found.notes == ("both sides are judged under age v1, content differs",)
    assert "content differs" in str(found)
    assert "content differs" in found._repr_mimebundle_()[0]["text/html"]
    assert again(7, "v1").notes == ()


def test_what_a_copy_does_not_carry_is_neither_gone_nor_guessed():
    envelope = answer(max_rows=2)
    wire = rb.Envelope.from_dict(envelope.to_dict())
    found = wire.compare(envelope)
    assert (found.appeared, found.gone, found.changed) == ((), (), 0)
    assert [(one.kind, one.total) for one in found.not_compared] == [("not_carried", 4)]
    copy = rb.Envelope.from_dict(envelope.to_dict(dossier=True))
    assert (copy.compare(envelope).changed, copy.compare(envelope).unchanged) == (0, 6)


def test_causes_of_wire_forms_are_said_to_be_unknown():
    first, second = (rb.Envelope.from_dict(answer(old_after(d, "v1")).to_dict()) for d in (7, 14))
    assert causes(first.compare(second)) == [("old", "fresh", "the rules are not carried", 2)]


def test_facts_that_are_not_known_are_not_compared():
    copy = rb.Envelope.from_dict(answer().to_dict(dossier=True))
    found = copy.compare(copy.rejudge(old_after(7, "v2", KEEP)))
    assert [(one.kind, one.reason, one.total) for one in found.not_compared] == [
        ("not_recorded", "rule 3 needs keep, which was not recorded", 2)
    ]
    assert "2 subjects cannot be re-judged: rule 3" in str(found)


def test_hidden_values_are_in_no_form_of_it():
    pin = rb.Rule({"pin": {"gt": 5000}}, "high")
    rows = [{"host": "a", "pin": 4711}, {"host": "b", "pin": 9999}]
    first = answer(rb.RuleSet("p", "1", [pin], "low"), rows, redact={"keys": ["pin"]})
    second = answer(
        rb.RuleSet("p", "1", [pin], "low"),
        [{"host": "a", "pin": 8888}, rows[1]],
        redact={"keys": ["pin"]},
    )
    found = first.compare(second)
    assert found.changed == 1
    texts = [
        str(found),
        found.to_markdown(),
        found.to_json(),
        found.to_frame().to_string(),
        found._repr_mimebundle_()[0]["text/html"],
    ]
    for text in texts:
        assert not any(secret in text for secret in ("4711", "8888", "5000", "9999"))
    assert "[REDACTED]" in found.to_json()


def test_comparing_with_anything_else_is_refused():
    with pytest.raises(DefinitionError, match="what is compared is an envelope, not int"):
        answer().compare(7)


def test_its_json_and_its_frame_say_the_same():
    found = again(14, "v2", KEEP)
    told = json.loads(found.to_json())
    assert (told["changed"], told["unchanged"], told["compared"]) == (3, 3, 6)
    assert [one["subject"] for one in told["flips"]] == list(found.to_frame()["subject"])
    assert told["groups"][0] == {
        "before": "old",
        "after": "fresh",
        "cause": "rule 2 limit raised, 7 -> 14",
        "subjects": 2,
    }
    assert len(found.to_dict(most=1)["flips"]) == 1
    assert found.to_json() == again(14, "v2", KEEP).to_json()


def test_the_text_reads_like_the_picture():
    assert str(again(14, "v2", KEEP, envelope=answer(max_branches=5))) == (
        "Compare age v1 -> v2 · 3 of 5 verdicts changed (2 unchanged, 1 not compared)\n"
        "  old -> fresh   2  rule 2 limit raised, 7 -> 14\n"
        "    a   days 14\n"
        "    b   days 9\n"
        "  fresh -> old   1  rule 3 added\n"
        "    d   keep 3"
    )


def test_more_flips_than_a_card_shows_are_counted_all_the_same():
    rows = [row(f"h{n:03}", 9) for n in range(80)]
    envelope = answer(rows=rows)
    text = envelope.compare(envelope.rejudge(old_after(14, "v2"))).to_markdown()
    assert "50 of 80 shown" in text
    assert "**old -> fresh** · 80 rows · rule 2 limit raised, 7 -> 14" in text


def test_hostile_names_are_data_in_every_form():
    rows = [row("</style><img src=x onerror=alert(1)>|", 9)]
    found = again(14, "v2", envelope=answer(rows=rows))
    html = found._repr_mimebundle_()[0]["text/html"]
    assert "<img" not in html
    assert "&lt;img" in html


def test_a_comparison_counts_standings_and_not_subjects(calls_of):
    def work(many):
        envelope = answer(rows=[row(f"h{n}", n % 5 + 5) for n in range(many)])
        other = envelope.rejudge(old_after(14, "v2"))
        return calls_of(lambda: envelope.compare(other).groups)

    assert work(2000) < work(200) + 400


AGES = st.one_of(st.none(), st.integers(0, 12))
PARTS = st.lists(
    st.tuples(
        st.sampled_from(["days", "keep"]), st.sampled_from(["gt", "lte"]), st.integers(0, 12)
    ),
    min_size=1,
    max_size=3,
)


def made(version, parts):
    return rb.RuleSet.from_dict(
        {
            "name": "r",
            "version": version,
            "default": {"branch": "none"},
            "rules": [{"when": {k: {op: n}}, "then": f"b{n % 3}"} for k, op, n in parts],
        },
        recorded=True,
    )


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(AGES, AGES), min_size=1, max_size=8), PARTS, PARTS, st.booleans())
def test_all_counts_add_up(ages, first, second, copied):
    rows = [{"host": str(n), "days": days, "keep": keep} for n, (days, keep) in enumerate(ages)]
    envelope = rb.triage(rows, made("1", first), subject="host", source="rows")
    if copied:
        envelope = rb.Envelope.from_dict(envelope.to_dict(dossier=True))
    found = envelope.compare(envelope.rejudge(made("2", second)))
    lost = sum(one.total for one in found.not_compared)
    assert found.changed + found.unchanged == found.compared == len(rows) - lost
    flips = list(found.flips())
    assert len(flips) == found.changed == sum(group.total for group in found.groups)
    assert Counter((f.before, f.after, f.cause) for f in flips) == {
        (g.before, g.after, g.cause.words): g.total for g in found.groups
    }
    counts = found.counts()
    assert sum(before for before, _ in counts.values()) == found.compared
    assert sum(after for _, after in counts.values()) == found.compared
    assert sum(found.moved_by(change) for change in found.rule_changes) <= found.changed
    for flip in flips:
        before = rb.decide(rows[flip.row], made("1", first)).branch
        after = rb.decide(rows[flip.row], made("2", second)).branch
        assert (flip.before, flip.after) == (before, after)


def two(age, tier, version):
    rules = [rb.Rule({"age": {"gt": age}}, "old"), rb.Rule({"tier": {"gt": tier}}, "mid")]
    return rb.RuleSet("r", version, rules, "new")


def aged(age, tier, rules, **more):
    return rb.triage([{"h": "a", "age": age, "tier": tier}], rules, subject="h", source="x", **more)


def test_a_changed_rule_that_decides_now_is_no_cause_when_it_made_no_difference():
    envelope = aged(9, 5, two(7, 1, "1"))
    found = envelope.compare(envelope.rejudge(two(100, 2, "2")))
    assert causes(found) == [("old", "mid", "rule 1 limit raised, 7 -> 100", 1)]
    assert [found.moved_by(one) for one in found.rule_changes] == [1, 0, 0, 0]


def test_changed_values_are_not_put_down_to_a_rule_that_changed_beside_them():
    found = aged(9, 0, two(7, 1, "1")).compare(aged(1, 0, two(7, 2, "2")))
    assert causes(found) == [("old", "new", "values changed", 1)]
    assert not any(found.moved_by(one) for one in found.rule_changes)


def test_a_rule_that_changed_is_the_cause_where_the_values_made_no_difference():
    found = aged(9, 0, two(7, 1, "1")).compare(aged(8, 0, two(50, 1, "2")))
    assert causes(found) == [("old", "new", "rule 1 limit raised, 7 -> 50", 1)]


def test_what_no_change_did_alone_is_put_down_to_several():
    envelope = aged(9, 5, two(7, 4, "1"))
    later = rb.RuleSet(
        "r",
        "2",
        [rb.Rule({"age": {"gt": 20}}, "old"), rb.Rule({"tier": {"gt": 6}}, "mid")],
        rb.Default("fresh"),
    )
    found = envelope.compare(envelope.rejudge(later))
    assert causes(found) == [("old", "fresh", "rule 1 limit raised, 7 -> 20", 1)]
    hidden = aged(9, 0, two(7, 1, "1"), redact={"keys": ["age"]})
    found = hidden.compare(aged(1, 0, two(7, 2, "2"), redact={"keys": ["age"]}))
    assert causes(found) == [("old", "new", "several changes together", 1)]
    assert not any(found.moved_by(one) for one in found.rule_changes)


def test_a_move_is_undone_alone():
    first, second = rb.Rule({"age": {"gt": 7}}, "old"), rb.Rule({"tier": {"gt": 1}}, "mid")
    envelope = aged(9, 5, rb.RuleSet("r", "1", [first, second], "new"))
    found = envelope.compare(envelope.rejudge(rb.RuleSet("r", "2", [second, first], "fresh")))
    (group,) = found.groups
    assert group.cause.change is not None
    assert "moved" in group.cause.words


def test_hidden_names_are_compared_with_nobody():
    hide = {"redact": {"keys": ["host"]}}
    envelope = answer(**hide)
    found = envelope.compare(answer(rows=ROWS[::-1], **hide))
    assert (found.changed, found.compared, found.appeared, found.gone) == (0, 0, (), ())
    assert [(one.kind, one.total) for one in found.not_compared] == [("unnamed", 6)]
    assert "6 subjects not compared: hidden names cannot be told apart" in str(found)
    half = answer().compare(envelope)
    assert (half.appeared, half.gone) == ((), ())
    assert sum(one.total for one in half.not_compared) == 6
    again = envelope.compare(envelope.rejudge(old_after(14, "v2")))
    assert again.compared == 6  # the very same rows need no name


@settings(max_examples=40, deadline=None)
@given(st.tuples(AGES, AGES), st.tuples(AGES, AGES), PARTS, PARTS)
def test_a_named_rule_makes_the_difference_by_itself(was, now, first, second):
    def judged(values, rules):
        rows = [{"host": "a", "days": values[0], "keep": values[1]}]
        return rb.triage(rows, rules, subject="host", source="rows")

    old, new = made("1", first), made("2", second)
    found = judged(was, old).compare(judged(now, new))
    for flip, group in zip(found.flips(), found.groups, strict=True):
        by_values = judged(now, old).side.standing(0).branch
        by_rules = judged(was, new).side.standing(0).branch
        if "value" in flip.cause and found.rule_changes and old.digest != new.digest:
            assert by_values != flip.before or by_rules != flip.after
        elif group.cause.change is not None and old.digest != new.digest:
            assert (by_values, by_rules) == (flip.before, flip.after)
        change = group.cause.change
        if change is None:
            continue
        told = []
        for make, values, wanted in (
            (with_undone, now, flip.before),
            (with_applied, was, flip.after),
        ):
            try:
                rules = make(new, old, found.rule_changes, change)
            except RuleError:  # nothing would be left of the rules
                continue
            told.append(rb.decide({"days": values[0], "keep": values[1]}, rules).branch == wanted)
        assert any(told)
