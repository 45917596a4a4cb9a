"""Departures are declared once, with a reason, and every one of them is used."""

from __future__ import annotations

import re
from pathlib import Path

FIELDS = {"id", "rule", "reason", "effect"}


def test_every_departure_says_rule_reason_and_effect(oracle):
    for entry in oracle.departures.values():
        assert set(entry) == FIELDS
        assert all(entry[field].strip() for field in FIELDS)


def test_every_departure_is_used_by_a_test_and_every_used_one_is_declared(oracle):
    used = {
        name
        for path in Path(__file__).parent.glob("*.py")
        for name in re.findall(r'departs\(\s*"([a-z-]+)"\s*\)', path.read_text("utf-8"))
    }
    assert used == set(oracle.departures)
