"""The page about playbook files names every key there is, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from runbook_nb.playbooks import grouped
from runbook_nb.playbooks.keys import HEAD_KEYS, OWN_STEP_KEYS, STEP_KEYS
from runbook_nb.playbooks.model import Playbook, PlaybookStep

PAGE = (Path(__file__).parents[2] / "docs" / "playbook-files.md").read_text("utf-8")


def rows(heading):
    """Give the rows of the table under a heading, each as its cells."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    table = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def keys(heading, where=None):
    return {
        key
        for row in rows(heading)
        if where in (None, row[1])
        for key in re.findall(r"`([^`]+)`", row[0])
    }


def test_every_key_of_a_playbook_and_a_step_is_told():
    assert keys("The playbook") == set(HEAD_KEYS)
    assert keys("A step") == {*STEP_KEYS, *OWN_STEP_KEYS}


def test_every_key_of_a_grouped_file_is_told():
    assert keys("Grouped files", "playbook") == set(grouped.HEAD_KEYS) - {"step_groups"}
    assert keys("Grouped files", "step") == set(grouped.STEP_KEYS)
    assert keys("Grouped files", "group") == set(grouped.GROUP_KEYS) - {"id", "steps"}


def test_the_defaults_are_those_of_the_models():
    for heading, model in (("The playbook", Playbook), ("A step", PlaybookStep)):
        for row in rows(heading):
            field = model.model_fields[row[0].strip("`")]
            told = row[2].strip("`")
            if told == "required":
                assert field.is_required()
            else:
                read = {"none": None, "true": True, "false": False, "[]": [], "{}": {}}
                assert field.get_default() == read.get(told, told.strip('"'))
