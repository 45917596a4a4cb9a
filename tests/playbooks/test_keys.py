"""Which keys a playbook's file may hold is one law for the model, the reading and the writing."""

from __future__ import annotations

from typing import Any

import pytest

from runbook_nb.playbooks.keys import (
    HEAD_KEYS,
    OWN_STEP_KEYS,
    PROBE_KEYS,
    STEP_KEYS,
    is_extension,
)
from runbook_nb.playbooks.model import Playbook, PlaybookStep, RequiredProbe


def test_the_keys_are_the_fields_of_the_models() -> None:
    assert {*HEAD_KEYS} == {*Playbook.model_fields}
    assert {*STEP_KEYS, *OWN_STEP_KEYS} == {*PlaybookStep.model_fields}
    assert {*PROBE_KEYS} == {*RequiredProbe.model_fields}


@pytest.mark.parametrize("key", ["x-owner", "x-", "xowner", "X-owner", "owner", 7, None])
def test_the_model_keeps_an_unknown_key_exactly_where_it_is_an_extension(key: Any) -> None:
    step = PlaybookStep.model_validate({"id": "look", "description": "Look.", key: 1})
    assert (key in step.extensions) is is_extension(key)
