"""The shipped playbooks: read strictly, lint clean, and their exercises work to the end."""

from __future__ import annotations

import re

import pytest

from runbook_nb.errors import DefinitionError
from runbook_nb.examples.playbooks import shipped_playbook, shipped_playbooks
from runbook_nb.playbooks.lint import lint_playbook
from runbook_nb.playbooks.loader import load_playbook

BOOKS = [pytest.param(book, id=book.name) for book in shipped_playbooks()]


@pytest.mark.parametrize("shipped", BOOKS)
def test_it_is_the_playbook_it_is_called(shipped):
    book = shipped.load()
    assert book.id == shipped.name
    assert re.fullmatch(r"\d+\.\d+\.\d+", book.version)
    assert book.metadata["source"]
    assert shipped.path.read_text("utf-8").startswith("# "), "a file says where it comes from"


@pytest.mark.parametrize("shipped", BOOKS)
def test_it_lints_clean_with_the_tools_of_its_exercise(shipped):
    found = lint_playbook(shipped.load(), tools=shipped.toolbox(), skills={})
    assert list(found) == []


@pytest.mark.parametrize("shipped", BOOKS)
def test_under_compat_it_goes_too_and_says_what_is_not_acted_on(shipped):
    found = lint_playbook(shipped.load(), tools=shipped.toolbox(), skills={}, policy="compat")
    assert found.errors == ()
    assert load_playbook(shipped.path, profile="compat").id == shipped.name


@pytest.mark.parametrize("shipped", BOOKS)
def test_every_tool_of_its_exercise_is_asked_for_once(shipped):
    expected = [tool for step in shipped.load().steps for tool in step.expected_tools]
    assert sorted(expected) == sorted(tool.name for tool in shipped.toolbox())
    assert all(tool.description for tool in shipped.toolbox())


@pytest.mark.parametrize("shipped", BOOKS)
def test_written_anew_it_is_the_same(shipped, tmp_path):
    book = shipped.load()
    assert load_playbook(book.to_yaml()) == book
    assert load_playbook(book.to_json()) == book


def test_the_incident_has_the_steps_that_are_shown_of_it():
    book = shipped_playbook("nist-800-61-ir").load()
    shown = {step.id: (step.required, step.max_tool_calls) for step in book.steps}
    assert shown == {
        "detection": (True, None),
        "analysis": (True, 5),
        "notify": (False, None),
        "containment": (True, 3),
        "recovery": (True, None),
        "lessons": (False, None),
    }
    phases = [step.metadata["group"]["id"] for step in book.steps]
    assert phases == sorted(phases, key=phases.index), "a phase is in one piece"


def test_a_name_nobody_has_is_refused_with_the_nearest():
    with pytest.raises(DefinitionError, match="did you mean 'refund-escalation'"):
        shipped_playbook("refund-escalations")
    with pytest.raises(DefinitionError, match="there is nist-800-61-ir"):
        shipped_playbook("zzz")
