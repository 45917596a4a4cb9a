"""Other formats are told apart by what marks them, and no playbook is taken for one."""

from __future__ import annotations

import pytest

from runbook_nb.playbooks.foreign import foreign_format


@pytest.mark.parametrize(
    ("document", "what"),
    [
        ({"version": "playbook.v2"}, "graph playbook"),
        ({"spec_version": "cacao-2.0", "type": "playbook"}, "CACAO"),
        ({"type": "playbook", "workflow": {}}, "CACAO"),
        ({"arazzo": "1.0.1", "workflows": []}, "Arazzo"),
        ([{"hosts": "all", "tasks": []}], "Ansible"),
    ],
)
def test_a_format_is_known_by_its_mark(document, what):
    name, fix = foreign_format(document)
    assert what in name
    assert fix


@pytest.mark.parametrize(
    "document",
    [
        None,
        "text",
        [],
        [{"id": "a"}],
        {},
        {"id": "x", "version": "2.0"},
        {"id": "x", "type": "playbook"},
        {"spec_version": 2},
    ],
)
def test_anything_else_is_of_no_other_format(document):
    assert foreign_format(document) is None
