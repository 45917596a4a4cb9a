"""Keeping a changed rule set under a new version."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from runbook_nb.errors import LoadError, RuleError
from runbook_nb.rules import Rule, RuleSet
from runbook_nb.rules.keeping import check_version, has_other_content, versioned


def limit(days, version="v1", name="age"):
    return RuleSet(name, version, [Rule({"days": {"gt": days}}, "old")], "new")


def test_other_content_under_one_version_is_refused_with_what_differs():
    with pytest.raises(RuleError) as refused:
        check_version(limit(14), [limit(7)])
    assert refused.value.code == "same_version"
    assert "age v1 is already the version of other content" in str(refused.value)
    assert "rule 1 limit raised, 7 -> 14" in str(refused.value)
    assert "'v2'" in refused.value.fix


@pytest.mark.parametrize(
    "other", [limit(14, "v2"), limit(14, name="another"), limit(7)], ids=["version", "name", "same"]
)
def test_anything_else_may_be_kept(other):
    assert check_version(other, [limit(7)]) is other


def test_bare_rules_have_no_version_to_clash():
    bare = RuleSet.bare([Rule({"a": {"gt": 1}}, "x")])
    assert not has_other_content(bare, RuleSet.bare([Rule({"a": {"gt": 2}}, "x")]))


def test_only_the_version_differs():
    again = versioned(limit(7), "v2")
    assert again.rules == limit(7).rules
    assert again.title == "age v2"


@pytest.mark.parametrize("name", ["rules.yaml", "rules.yml", "rules.json"])
def test_a_saved_set_comes_back_equal(tmp_path, name):
    path = limit(7).save(tmp_path / name)
    assert RuleSet.load(path) == limit(7)
    assert [one.name for one in tmp_path.iterdir()] == [name]


def test_a_file_is_not_overwritten_by_other_content_of_its_version(tmp_path):
    path = limit(7).save(tmp_path / "rules.yaml")
    with pytest.raises(RuleError, match="already the version of other content"):
        limit(14).save(path)
    assert RuleSet.load(path) == limit(7)
    limit(14, "v2").save(path)
    assert RuleSet.load(path).version == "v2"


def test_a_file_that_holds_no_rules_is_left_alone(tmp_path):
    path = tmp_path / "rules.yaml"
    path.write_text("{", encoding="utf-8")
    with pytest.raises(LoadError):
        limit(7).save(path)
    assert path.read_text(encoding="utf-8") == "{"


def test_an_ending_nobody_reads_is_refused(tmp_path):
    with pytest.raises(LoadError, match=r"\.txt"):
        limit(7).save(tmp_path / "rules.txt")


def test_a_file_of_another_rule_set_is_not_overwritten(tmp_path):
    path = limit(7).save(tmp_path / "rules.yaml")
    with pytest.raises(
        RuleError, match="holds the rules age v1, not the rules another v2"
    ) as found:
        limit(14, "v2", name="another").save(path)
    assert found.value.code == "other_rules"
    assert "another file" in found.value.fix
    with pytest.raises(RuleError, match="not rules without a name"):
        RuleSet.bare([Rule({"a": {"gt": 1}}, "x")]).save(path)
    assert RuleSet.load(path) == limit(7)


def test_threads_that_save_one_file_do_not_meet(tmp_path, monkeypatch):
    path = tmp_path / "rules.yaml"
    sets = [RuleSet("r", "v1", [Rule({"a": {"gt": n}}, "x")]) for n in range(8)]

    def attempt(rules):
        try:
            return rules.save(path)
        except RuleError as refused:
            return refused.code

    with ThreadPoolExecutor(8) as pool:
        ends = list(pool.map(attempt, sets))
    assert ends.count("same_version") == 7
    (kept,) = [rules for rules, end in zip(sets, ends, strict=True) if end == path]
    assert RuleSet.load(path) == kept
    assert [one.name for one in tmp_path.iterdir()] == ["rules.yaml"]
