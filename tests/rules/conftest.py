"""The rule set that the tests of this folder share."""

from __future__ import annotations

import pytest

from runbook_nb.rules import Default, Rule, RuleSet


@pytest.fixture(scope="session")
def posture():
    return RuleSet(
        "health-signal",
        "v1",
        rules=[
            Rule({"age_known": {"eq": False}}, "declined", label="the age signal cannot be read"),
            Rule(
                {"age_days": {"gt": 7}},
                "unprotected",
                label="last backup older than the 7-day threshold",
            ),
        ],
        default=Default("protected", label="last backup within 7 days"),
    )
