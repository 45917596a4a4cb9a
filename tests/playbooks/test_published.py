"""The published reading beyond what is recorded: order of checks, and what is never read."""

from __future__ import annotations

import pytest

from runbook_nb.errors import PlaybookLoadError
from runbook_nb.playbooks import published


def code(call, *args):
    with pytest.raises(PlaybookLoadError) as error:
        call(*args)
    return error.value.code


def test_existence_comes_before_the_ending_and_the_ending_before_reading(tmp_path):
    assert code(published.load_file, tmp_path / "no.txt") == "not_found"
    (tmp_path / "x.txt").write_bytes(b"\xff")
    assert code(published.load_file, tmp_path / "x.txt") == "unsupported_suffix"
    (tmp_path / "x.yaml").write_bytes(b"\xff")
    assert code(published.load_file, tmp_path / "x.yaml") == "read_failed"


def test_old_yaml_has_its_types():
    text = "id: x\nname: n\nmetadata: {on: 1.5, day: 2026-01-02, time: 1:30}\n"
    metadata = published.load_text(text.replace("on:", "'on':"), "yaml").metadata
    assert str(metadata["day"]) == "2026-01-02"
    assert metadata["time"] == 90
    assert code(published.load_text, "id: no\nname: n\n", "yaml") == "validation"


def test_repeated_keys_overwrite():
    assert published.load_text("id: a\nname: n\nid: b\n", "yaml").id == "b"
    assert published.load_text('{"id": "a", "name": "n", "id": "b"}', "json").id == "b"


def test_objects_of_python_are_not_made():
    text = "id: !!python/object/apply:os.getcwd []\nname: n\n"
    assert code(published.load_text, text, "yaml") == "bad_yaml"


def test_a_date_there_is_not_is_no_crash(tmp_path):
    (tmp_path / "d.yaml").write_text("id: 2026-13-45\nname: n\n")
    assert code(published.load_file, tmp_path / "d.yaml") == "read_failed"


def test_what_is_no_mapping_is_raised_as_python_raises_it(tmp_path):
    for document in ([1], None, "text"):
        with pytest.raises(AttributeError):
            published.load_document(document)
    (tmp_path / "l.yaml").write_text("- 1\n")
    assert code(published.load_file, tmp_path / "l.yaml") == "read_failed"


def test_an_empty_text_is_the_folder_one_is_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert code(published.load_any, "") == "unsupported_suffix"
    assert code(published.load_any, None) == "not_found"
    assert code(published.load_any, "a\0b") == "not_found"
