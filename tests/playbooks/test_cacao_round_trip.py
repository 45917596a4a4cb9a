"""A playbook that is written as CACAO and read again is the playbook that it was."""

import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
from cacao_documents import AUTHOR
from hypothesis import given, settings
from made_playbooks import playbooks
from pydantic import ValidationError

from runbook_nb.playbooks import Playbook, PlaybookStep
from runbook_nb.playbooks.cacao_export import to_cacao
from runbook_nb.playbooks.cacao_import import from_cacao

HERE = Path(__file__).parents[1] / "oracle" / "data"
CASES = sorted(Path(os.environ.get("RUNBOOK_NB_ORACLE") or HERE).glob("playbooks/*.json"))
WHEN = "2026-11-29T00:00:00.000Z"


def playbooks_in(value):
    """Every playbook that stands anywhere in a case, as far as it is one."""
    if isinstance(value, dict):
        if "name" in value and isinstance(value.get("steps"), list):
            with suppress(ValidationError):  # what a case of the loader gives on purpose
                yield Playbook.model_validate(value)
        for member in value.values():
            yield from playbooks_in(member)
    elif isinstance(value, list):
        for member in value:
            yield from playbooks_in(member)


def there_and_back(book, **how):
    document = to_cacao(book, **{"created_by": AUTHOR, "created": WHEN, **how})
    before = json.dumps(document)
    found = from_cacao(document)
    assert json.dumps(document) == before
    return found


def assert_same(book):
    same, losses = there_and_back(book)
    assert same == book
    assert same.model_dump() == book.model_dump()
    assert losses.to_dict()["items"] == []
    assert not losses


def test_every_recorded_playbook_comes_back():
    found = [book for case in CASES for book in playbooks_in(json.loads(case.read_text("utf-8")))]
    assert found
    for book in found:
        assert_same(book)


@settings(max_examples=100, deadline=None)
@given(playbooks)
def test_any_playbook_comes_back(book):
    assert_same(book)


@pytest.mark.parametrize("how", [{}, {"indent": 1}, {"ensure_ascii": False}])
def test_through_text_and_files_too(how, tmp_path):
    book = Playbook(id="ir", name="é", steps=[PlaybookStep(id="a", description="\u2028")])
    text = json.dumps(to_cacao(book, created=WHEN), **how)
    file = tmp_path / "ir.json"
    file.write_text(text, encoding="utf-8")
    for given_as in (text, text.encode(), f"\ufeff{text}".encode(), file, str(file)):
        same, losses = from_cacao(given_as)
        assert (same, len(losses)) == (book, 0)


def test_a_document_is_written_from_what_came_back_as_it_was_before():
    book = Playbook(id="ir", name="IR", steps=[PlaybookStep(id="a", description="b")] * 2)
    document = to_cacao(book, created_by=AUTHOR, created=WHEN)
    same, _ = from_cacao(document)
    assert to_cacao(same, created_by=AUTHOR, created=WHEN) == document


def test_what_else_stands_in_a_step_is_kept_beside_it_and_told():
    book = Playbook(id="ir", name="IR", steps=[PlaybookStep(id="a", description="b")])
    same, losses = there_and_back(book, notebooks={"a": {"cells": []}})
    (step,) = same.steps
    assert [command["type"] for command in step.metadata["cacao"]["commands"]] == ["jupyter"]
    assert [(item.effect, item.what, item.places) for item in losses] == [
        ("kept", "commands", ("a",))
    ]
    assert step.model_copy(update={"metadata": {}}) == book.steps[0]
