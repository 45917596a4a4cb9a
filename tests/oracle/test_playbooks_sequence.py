"""Recorded sequences under a playbook: as recorded under ``compat``, better under ``safe``."""

from __future__ import annotations

import json

import pytest
from playbook_sequence import Replay, all_differences
from playbook_values import folder


def recorded():
    """Give the sequences that were recorded; another folder need not have any."""
    cases = [json.loads(path.read_text("utf-8")) for path in sorted(folder().glob("*.json"))]
    return [pytest.param(case, id=case["id"]) for case in cases if case["kind"] == "sequence"]


@pytest.mark.parametrize("case", recorded())
def test_under_compat_all_is_as_recorded(case, outcome):
    replay = Replay(case, "compat")
    assert all_differences(case, replay) == []
    outcome({"family": "playbooks sequence compat", **case}, "equal")
