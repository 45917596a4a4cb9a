"""Where playbooks come from: a text is never looked up, a name is never parsed."""

from __future__ import annotations

import io
from types import MappingProxyType

import pytest

from runbook_nb.errors import PlaybookLoadError
from runbook_nb.playbooks.sources import BOUNDS, exists, plain_copy, source_of, source_of_text


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ('{"id": 1}', "json"),
        ("  \n [1]", "json"),
        ("id: x\n", "yaml"),
        ("\ufeffid: x\n", "yaml"),
        (b"id: x", "yaml"),
        (b'\xef\xbb\xbf{"a": 1}', "json"),
        (memoryview(b"{}"), "json"),
        (io.StringIO("{}"), "json"),
    ],
)
def test_a_text_is_told_by_how_it_begins(given, kind):
    source = source_of(given)
    assert (source.kind, source.path, source.name) == (kind, None, None)
    assert not source.text.startswith("\ufeff")


def test_a_file_is_told_by_its_ending(tmp_path):
    (tmp_path / "a.yaml").write_text('{"id": "x"}')
    source = source_of(tmp_path / "a.yaml")
    assert (source.kind, source.name, source.parsed().value) == ("yaml", "a.yaml", {"id": "x"})
    with (tmp_path / "a.yaml").open() as file:
        assert source_of(file).kind == "yaml"


def test_any_mapping_is_copied():
    given = MappingProxyType({"steps": [MappingProxyType({"id": "a"})]})
    copy = source_of(given).parsed().value
    assert copy == {"steps": [{"id": "a"}]}
    assert type(copy["steps"][0]) is dict
    shared = {"a": []}
    assert plain_copy([shared, shared])[0]["a"] is not shared["a"]


def test_what_cannot_be_a_name_is_no_file(tmp_path):
    assert exists(tmp_path)
    assert not any(map(exists, ("a\0b", "n" * 5000, tmp_path / "no")))


def test_a_file_that_may_not_be_read_is_not_said_to_be_missing(tmp_path, monkeypatch):
    path = tmp_path / "a.yaml"
    path.write_text("id: x\n")

    def denied(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr("pathlib.Path.stat", denied)
    monkeypatch.setattr("pathlib.Path.open", denied)
    with pytest.raises(PlaybookLoadError, match="Permission denied") as error:
        source_of(path)
    assert error.value.code == "read_failed"


def test_a_broken_text_tells_its_place_and_how_it_was_read(tmp_path):
    with pytest.raises(PlaybookLoadError) as error:
        source_of_text("a: [", "yaml", tmp_path / "x.yaml").parsed()
    assert (error.value.code, error.value.where) == ("bad_yaml", "x.yaml")
    assert error.value.problems[0].line == 1
    with pytest.raises(PlaybookLoadError) as error:
        source_of('{"a": ').parsed()
    assert (error.value.code, error.value.problems[0].code) == ("bad_json", "syntax")


def test_bytes_are_bounded():
    with pytest.raises(PlaybookLoadError) as error:
        source_of(b"x" * (BOUNDS.characters + 1))
    assert error.value.code == "too_large"
