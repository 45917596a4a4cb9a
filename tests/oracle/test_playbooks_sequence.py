"""Recorded sequences under a playbook: as recorded under ``compat``, better under ``safe``."""

from __future__ import annotations

import pytest
from plan_laws import broken_laws
from playbook_safe import BETTER, is_plain, reasons_to_refuse, refusal_of, unlike_compat
from playbook_sequence import Replay, all_differences
from playbook_values import cases, recorded

#: The kinds of cases that are replayed, here and beside.
KINDS = {
    *("sequence", "scope", "hook_constructor", "agent", "loader", "skill_file", "probe"),
    "round_trip",
}


def test_every_case_is_of_a_kind_that_is_replayed():
    assert {case["kind"] for case in cases()} <= KINDS


@pytest.mark.parametrize("case", recorded("sequence"))
def test_under_compat_all_is_as_recorded(case, outcome):
    replay = Replay(case, "compat")
    assert all_differences(case, replay) == []
    assert broken_laws(replay.enforcer) == []
    outcome({"family": "playbooks sequence compat", **case}, "equal")


@pytest.mark.parametrize("case", recorded("sequence"))
def test_under_safe_the_better_behaviour_of_each_quirk_is_seen(case, outcome, unjudged):
    family = {"family": "playbooks sequence safe", **case}
    quirk, reasons, refusal = case["quirk"], reasons_to_refuse(case), refusal_of(case)
    if refusal is not None:
        assert reasons
        assert all(reason in str(refusal) for reason in reasons)
        assert refusal.problems
        assert all(problem.fix and problem.where for problem in refusal.problems)
        outcome(family, "refused")
        return
    assert reasons == []
    replay = Replay(case, "safe")
    assert broken_laws(replay.enforcer) == []
    if quirk is None and is_plain(case):
        assert unlike_compat(case, replay) == []
        outcome(family, "as recorded")
    elif quirk is None:
        outcome(family, "lawful")
    elif quirk in BETTER and (wrong := BETTER[quirk](case, replay)) is not None:
        assert wrong == []
        assert broken_laws(replay.enforcer) == []
        outcome(family, "better")
    else:
        unjudged(case)
        outcome(family, "unjudged")
