"""Two versions of a rule set side by side: what is said, and what is not guessed."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb.render.html import render_html
from runbook_nb.render.theme import FILLS
from runbook_nb.rules.changes import rule_changes


def posture(version="v1", days=7, label="older than the limit", **more):
    return rb.RuleSet(
        "health-signal",
        version,
        [
            rb.Rule({"known": {"eq": False}}, then="declined", label="unreadable"),
            rb.Rule({"days": {"gt": days}}, then="unprotected", label=label, unit="days"),
        ],
        default=rb.Default("protected", label="recent"),
        **more,
    )


def test_the_rules_stand_side_by_side_with_what_differs():
    assert str(posture().compare(posture("v2", 14))) == "\n".join(
        [
            "Rules health-signal v1 -> v2 · 1 of 3 differ",
            "  1        known = false  known = false   same",
            "  2        days > 7 days  days > 14 days  limit raised, 7 -> 14",
            "  default  protected      protected       same",
        ]
    )


def test_it_is_a_sequence_of_what_became_of_each_part():
    before, after = posture(), posture("v2", 14)
    made = before.compare(after)
    assert tuple(made) == rule_changes(before, after)
    assert len(made) == 4
    assert made[1] is tuple(made)[1]
    assert made[1:] == tuple(made)[1:]
    assert [change.name for change in made.differing] == ["rule 2"]
    assert (made.before, made.after) == (before, after)


def test_nothing_differs_between_a_set_and_itself():
    made = posture().compare(posture("v2"))
    assert made.differing == ()
    assert not made.decides
    assert repr(made) == "<Rules health-signal v1 -> v2 · nothing differs>"


def test_what_is_only_said_can_change_no_verdict_and_that_is_said():
    made = posture().compare(posture("v2", label="last backup too old"))
    assert not made.decides
    assert "1 of 3 differ, no verdict depends on it" in repr(made)
    assert "(no verdict depends on it)" in str(made)


def test_a_changed_set_under_the_same_version_is_spoken_of():
    text = str(posture().compare(posture(days=14)))
    assert text.splitlines()[0] == "Rules health-signal v1 -> health-signal v1 · 1 of 3 differ"
    assert "! Both are health-signal v1, content differs." in text
    assert "content differs" not in str(posture().compare(posture("v2", 14)))
    assert "content differs" not in str(posture().compare(posture()))


def test_what_came_and_what_went_have_one_side_only():
    longer = rb.RuleSet(
        "health-signal",
        "v2",
        [*posture().rules, rb.Rule({"copies": {"lt": 2}}, then="unprotected")],
        default="protected",
    )
    added = posture().compare(longer)
    assert any(change.kind == "added" for change in added)
    assert "3        none" in str(added)
    removed = longer.compare(posture())
    assert any(change.kind == "removed" for change in removed)
    assert removed.decides


def test_sets_of_other_names_are_named_in_full():
    other = rb.RuleSet("age", "v9", posture().rules, "protected")
    assert repr(posture().compare(other)).startswith("<Rules health-signal v1 -> age v9 · ")


def test_what_leads_to_declined_is_shown_where_it_differs_alone():
    plain = posture().compare(posture("v2", 14))
    assert not any(line.split()[0] == "unreadable" for line in str(plain).splitlines()[1:])
    strict = posture().compare(posture("v2", unreadable="raise"))
    assert strict.decides
    assert any(line.split()[0] == "unreadable" for line in str(strict).splitlines()[1:])


def test_ground_outside_the_rules_is_numbered_for_itself():
    ground = rb.Outside({"tier": {"eq": "lab"}}, what="lab hosts", why="not backed up")
    text = str(posture().compare(posture("v2", outside=[ground])))
    assert "outside 1  none" in text


def test_verdicts_have_the_colours_they_have_in_the_set_they_come_from():
    html = render_html(posture().compare(posture("v2", 14)).view())
    assert html.count(">protected<") == 2
    assert len(re.findall(f"background-color:{FILLS['a']}", html)) == 2  # the default comes first
    assert "what changed" in html


def test_as_json_it_names_both_sides_with_their_digests():
    before, after = posture(), posture("v2", 14)
    told = json.loads(json.dumps(before.compare(after).to_dict()))
    assert told["before"] == {"name": "health-signal", "version": "v1", "digest": before.digest}
    assert told["after"]["digest"] == after.digest
    assert [change["kind"] for change in told["changes"]] == ["same", "changed", "same", "same"]


@given(st.integers(0, 99), st.integers(0, 99))
def test_a_limit_that_moved_is_the_only_change(old, new):
    made = posture(days=old).compare(posture("v2", new))
    assert made.decides == (old != new)
    assert len(made.differing) == (old != new)


@given(st.text(max_size=40))
def test_any_label_is_shown(label):
    made = posture().compare(posture("v2", label=f"so: {label}"))
    assert "\x1b" not in str(made)
    render_html(made.view())


def test_an_answer_judged_by_both_says_the_same_of_the_rules():
    rows = [{"host": "a", "known": True, "days": 9}]
    answer = rb.triage(rows, posture(), subject="host", source="one row")
    again = answer.compare(answer.rejudge(posture("v2", 14)))
    assert tuple(again.rule_changes) == tuple(posture().compare(posture("v2", 14)))


@pytest.mark.parametrize("other", [None, 3, "v2"])
def test_what_is_no_rule_set_is_refused_by_name(other):
    with pytest.raises(rb.errors.DefinitionError, match="no rule set"):
        posture().compare(other)
