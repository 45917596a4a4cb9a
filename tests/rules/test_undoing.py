"""One change of a rule set undone, or applied alone."""

from __future__ import annotations

import pytest

from runbook_nb.rules import Outside, Rule, RuleSet
from runbook_nb.rules.changes import rule_changes
from runbook_nb.rules.undoing import with_applied, with_undone

A, B, C = (Rule({key: {"gt": 7}}, key) for key in "abc")
LATER = Rule({"a": {"gt": 9}}, "a")
GROUND = [Outside({"d": {"eq": 1}}, "d is one", "not covered")]


def made(*rules, default="z", **more):
    return RuleSet("r", "1", rules, default, **more)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (made(A, B), made(LATER, B)),
        (made(A, B, C), made(A, C)),
        (made(A, C), made(A, B, C)),
        (made(A, B, C), made(C, A, B)),
        (made(A, B), made(A, B, default="other")),
        (made(A, B), made(A, B, outside=GROUND)),
        (made(A, B), made(A, B, unreadable="skip")),
    ],
    ids=["limit", "removed", "added", "moved", "default", "outside", "unreadable"],
)
def test_the_only_change_undone_gives_the_old_rules_and_applied_the_new(old, new):
    changes = rule_changes(old, new)
    (change,) = (one for one in changes if one.decides)
    for found, wanted in (
        (with_undone(new, old, changes, change), old),
        (with_applied(new, old, changes, change), new),
    ):
        assert found.rules == wanted.rules
        assert (found.default, found.unreadable) == (wanted.default, wanted.unreadable)
        assert found.outside == wanted.outside


def test_the_other_changes_are_kept():
    old, new = made(A, B, C), made(C, LATER, default="other")
    changes = {one.name: one for one in rule_changes(old, new) if one.decides}
    every = rule_changes(old, new)
    gone = next(one for one in every if one.kind == "removed")
    assert with_undone(new, old, every, gone).rules == (B, C, LATER)
    assert with_applied(new, old, every, gone).rules == (A, C)
    assert with_undone(new, old, every, changes["default"]).rules == new.rules
