"""The checks of a playbook's document, each on its own."""

from __future__ import annotations

import pytest

from runbook_nb.playbooks.checking import (
    HEAD_KEYS,
    OWN_STEP_KEYS,
    PROBE_KEYS,
    STEP_KEYS,
    key_findings,
    structure_findings,
)
from runbook_nb.playbooks.model import Playbook, PlaybookStep, RequiredProbe
from runbook_nb.playbooks.problems import Findings


def test_the_keys_are_those_of_the_models():
    assert set(HEAD_KEYS) == set(Playbook.model_fields)
    assert {*STEP_KEYS, *OWN_STEP_KEYS} == set(PlaybookStep.model_fields)
    assert set(PROBE_KEYS) == set(RequiredProbe.model_fields)


def structure(document, **how):
    found = Findings()
    structure_findings(document, found, strict=how.pop("strict", True), **how)
    return [(problem.code, problem.where) for problem in found.problems]


def test_ids_are_compared_where_they_can_be():
    steps = [{"id": own, "description": ""} for own in ("a", "", "", "a", "a")]
    expected = [("duplicate_step_id", "steps[3].id"), ("duplicate_step_id", "steps[4].id")]
    for strict in (True, False):
        assert structure({"id": "", "name": "", "steps": steps}, strict=strict) == expected
    odd = {"id": "x", "name": "n", "steps": [{"id": ["a"], "description": "d"}]}
    assert structure(odd) == []
    with pytest.raises(TypeError):
        structure(odd, strict=False)


def test_places_are_those_the_steps_were_written_at():
    document = {"id": "x", "name": "n", "steps": [{"id": "a"}]}
    assert structure(document, places=["step_groups[2].steps[5]"]) == [
        ("step_missing_field", "step_groups[2].steps[5].description")
    ]


@pytest.mark.parametrize("steps", [None, {}, (), "text", 3])
def test_steps_are_a_list(steps):
    assert structure({"id": "x", "name": "n", "steps": steps}) == [("steps_not_list", "steps")]
    assert structure({"id": "x", "name": "n"}) == []


def test_own_keys_need_their_prefix():
    found = Findings()
    document = {"x-a": 1, "X-b": 2, "xc": 3, "steps": [{"x-d": 1, "x_e": 2}]}
    key_findings(document, found)
    assert [problem.where for problem in found.problems] == ["X-b", "xc", "steps[0].x_e"]
