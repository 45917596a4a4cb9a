"""What a version stands for: the following one, and the content that judged first under it."""

import pytest

from runbook_nb.rules import Rule, RuleSet, versions
from runbook_nb.rules.versions import forget_judged, judged_otherwise, next_version


def limit(days, version="v1"):
    return RuleSet("age", version, [Rule({"days": {"gt": days}}, "old")], "new")


@pytest.mark.parametrize(
    ("version", "following"),
    [
        ("v3", "v4"),
        ("v9", "v10"),
        ("1.2.9", "1.2.10"),
        ("2026.09", "2026.10"),
        ("v1-rc2", "v1-rc3"),
        ("first", "first-2"),
    ],
)
def test_the_last_number_of_a_version_is_counted_up(version, following):
    assert next_version(version) == following


def test_what_judged_first_stays_the_content_of_its_version():
    assert [judged_otherwise(limit(days)) for days in (7, 14, 7, 14)] == [False, True, False, True]
    assert judged_otherwise(limit(14, "v2")) is False
    forget_judged()
    assert judged_otherwise(limit(14)) is False


def test_rules_without_a_name_have_no_version_to_keep():
    bare = [RuleSet.bare([Rule({"days": {"gt": days}}, "old")], "new") for days in (7, 14)]
    assert [judged_otherwise(one) for one in bare] == [False, False]


def test_only_so_many_versions_are_remembered(monkeypatch):
    monkeypatch.setattr(versions, "MOST_VERSIONS", 2)
    told = [judged_otherwise(limit(days, name)) for name in "abc" for days in (7, 14)]
    assert told == [False, True, False, True, False, False]
