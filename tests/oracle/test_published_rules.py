"""The engine under ``compat`` against the published rules, and these against the recordings."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from playbook_drawn import sequences
from playbook_sequence import Replay, all_differences
from playbook_values import recorded
from published_rules import recorded_by_rule


@given(sequences)
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_under_compat_any_sequence_comes_out_by_the_published_rules(sequence):
    case = {"input": sequence, "expect": recorded_by_rule(sequence)}
    assert all_differences(case, Replay(case, "compat")) == []


#: What is compared otherwise, or not at all, as far as it is a matter of wording.
TEXTS = ("message_mentions", "author_hints_shown", "calls")


@pytest.mark.parametrize("case", recorded("sequence"))
def test_the_rules_written_out_give_what_was_recorded(case):
    expected, found = dict(case["expect"]), recorded_by_rule(case["input"])
    for one, other in zip(expected.pop("events"), found["events"], strict=True):
        assert unlike(one, other) == []
    assert {key: found[key] for key in expected} == expected


def unlike(recorded, ours):
    """Name what was recorded of an event and is not said by the rules; of texts, nothing is."""
    pairs = [(recorded, ours), *zip(recorded.get("calls", ()), ours.get("calls", ()), strict=True)]
    wrong = []
    for one, other in pairs:
        shown = other.get("author_hints_shown", [])
        wrong += [hint for hint in one.get("author_hints_shown", ()) if hint not in shown]
        told = {key: one[key] for key in one if key not in TEXTS}
        wrong += [key for key, value in told.items() if other[key] != value]
    return wrong
