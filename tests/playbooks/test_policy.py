"""The rules a plan is held to: two profiles, overrides, and what is refused."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import pytest

from runbook_nb.errors import PlaybookDefinitionError
from runbook_nb.playbooks import EnforcementPolicy
from runbook_nb.playbooks.policy import _FLAGS, PROFILES


def test_safe_is_the_default():
    assert EnforcementPolicy() == EnforcementPolicy("safe") == EnforcementPolicy.of(None)
    assert EnforcementPolicy() != EnforcementPolicy("compat")


def test_every_rule_is_a_field_and_every_value_of_a_profile_is_allowed():
    assert [one.name for one in fields(EnforcementPolicy)][1:] == list(_FLAGS)
    for compat, safe, choices in _FLAGS.values():
        assert not choices or {compat, safe} <= set(choices)


@pytest.mark.parametrize(
    ("rule", "compat", "safe"),
    [
        ("credit", "pointer", "admitted"),
        ("seen", "attempted", "successful"),
        ("cap_counts", "all", "successful"),
        ("on_cap", "close", "hold"),
        ("on_stuck", "none", "ask"),
        ("floor", "record", "hold"),
        ("optional", "blocking", "passable"),
        ("empty_step", "open", "manual"),
        ("unresolved_skills", "ignore", "error"),
        ("always_allowed", (), ("skills", "task_complete")),
        ("allow_duplicate_ids", True, False),
        ("score_scope", "reached", "required"),
    ],
)
def test_what_a_rule_is_in_each_profile(rule, compat, safe):
    assert getattr(EnforcementPolicy("compat"), rule) == compat
    assert getattr(EnforcementPolicy("safe"), rule) == safe


@pytest.mark.parametrize("profile", PROFILES)
def test_overrides_are_what_differs_from_the_profile(profile):
    same = EnforcementPolicy(profile).on_cap
    assert EnforcementPolicy(profile, on_cap=same).overrides == {}
    policy = EnforcementPolicy(profile, on_cap="fail", on_timeout="block")
    assert policy.overrides == {"on_cap": "fail", "on_timeout": "block"}
    assert policy.label == f"{profile}, 2 changes"
    assert EnforcementPolicy(profile, on_cap="fail").label == f"{profile}, 1 change"
    assert EnforcementPolicy(profile).label == profile


@pytest.mark.parametrize("profile", PROFILES)
def test_a_policy_is_read_back_from_what_it_writes(profile):
    policy = EnforcementPolicy(profile, always_allowed=["read_*", "skills"], seen="successful")
    assert EnforcementPolicy.of(policy.to_dict()) == policy
    assert policy.to_dict()["always_allowed"] == ["read_*", "skills"]


def test_a_policy_is_taken_in_any_form():
    policy = EnforcementPolicy("compat")
    assert EnforcementPolicy.of(policy) is policy
    assert EnforcementPolicy.of("compat") == policy
    assert EnforcementPolicy.of({"profile": "compat"}) == policy
    assert EnforcementPolicy.of({"floor": "record"}).profile == "safe"


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        ({"flor": "hold"}, "unknown_rule", "did you mean 'floor'?"),
        ({"floor": "holds"}, "bad_rule_value", "did you mean 'hold'?"),
        ({"evidence": "holds"}, "bad_rule_value", "did you mean 'hold'?"),
        ({"lookahead": 1}, "bad_rule_value", "use False or True"),
        ({"lookahead": "yes"}, "bad_rule_value", "use False or True"),
        ({"always_allowed": 7}, "bad_rule_value", "names of tools"),
        ({"always_allowed": [""]}, "bad_rule_value", "names of tools"),
        ({"profile": "saef"}, "unknown_profile", "safe"),
        ("compatible", "unknown_profile", "compat"),
        (7, "bad_policy", "EnforcementPolicy"),
    ],
)
def test_what_does_not_exist_is_refused_with_what_was_meant(given, code, says):
    with pytest.raises(PlaybookDefinitionError, match=r".") as raised:
        EnforcementPolicy.of(given)
    assert raised.value.code == code
    assert raised.value.where
    assert says in str(raised.value)


def test_one_name_is_a_list_of_one_and_a_set_has_an_order():
    assert EnforcementPolicy(always_allowed="skills").always_allowed == ("skills",)
    assert EnforcementPolicy(always_allowed={"b", "a"}).always_allowed == ("a", "b")


def test_a_policy_never_changes():
    with pytest.raises(FrozenInstanceError):
        EnforcementPolicy().seen = "attempted"
    assert hash(EnforcementPolicy()) == hash(EnforcementPolicy("safe"))
