"""What travels in a notebook's metadata is read as what it says, and damage is told apart."""

import copy
import json

import nbformat
import pytest

from runbook_nb import Envelope
from runbook_nb.errors import ArtifactError, LoadError
from runbook_nb.runbook.payload import exported_payload
from runbook_nb.share.hydrate import found_in
from runbook_nb.share.travelling import (
    MAX_FILED,
    NAME,
    NOTEBOOK_FORMAT,
    carries,
    read_travelling,
    travelling_form,
)


@pytest.fixture
def form(filed):
    return travelling_form(filed, exported_payload(filed))


def document_of(envelope, path):
    return json.loads(envelope.to_notebook(path).read_text(encoding="utf-8"))


def shown(document):
    return document["cells"][1]["outputs"][0]


def test_it_stands_in_the_metadata_of_the_output_that_shows_the_answer(filed, tmp_path):
    document = document_of(filed, tmp_path / "a.ipynb")
    assert document["metadata"][NAME]["format"] == NOTEBOOK_FORMAT
    entry = shown(document)["metadata"][NAME]
    assert entry["format"] == NOTEBOOK_FORMAT
    assert json.loads(entry["payload"])["envelope"] == filed.to_dict(dossier=True)
    assert len(entry["filed"]) == 3


def test_it_keeps_the_order_of_columns_that_nbformat_would_sort(filed, tmp_path):
    path = filed.to_notebook(tmp_path / "a.ipynb")
    nbformat.write(nbformat.read(path, as_version=4), path)
    read = found_in(path)[0].payload["envelope"]
    assert list(read["result"]["verdicts"][0]) == list(filed["result"]["verdicts"][0])


def test_it_is_what_is_left_when_another_tool_sanitised_the_html(filed, tmp_path):
    path = filed.to_notebook(tmp_path / "a.ipynb")
    document = nbformat.read(path, as_version=4)
    for cell in document.cells:
        for output in cell.get("outputs", ()):
            output.data["text/html"] = "<p>sanitised</p>"
    nbformat.write(document, path)
    copy = Envelope.from_notebook(path)
    assert copy == filed
    assert len(copy.walk.rows) == len(filed.walk.rows)


def test_found_in_gives_both_carriers_of_one_output(filed, tmp_path):
    found = found_in(filed.to_notebook(tmp_path / "a.ipynb"))
    assert [(one.carrier, one.output) for one in found] == [
        ("metadata", (1, 0)),
        ("comment", (1, 0)),
    ]
    assert found[0].payload == found[1].payload
    assert len(found[0].filed) == 3


def test_what_is_too_large_is_named_and_not_carried(filed, monkeypatch):
    monkeypatch.setattr("runbook_nb.share.travelling.MAX_FILED", 100)
    made = travelling_form(filed, {"format": "x"})
    assert "filed" not in made
    assert set(made["not_filed"]) == {"walk", "whole walk", "recording"}
    assert "100 at most" in made["not_filed"]["recording"]
    assert MAX_FILED == 5_000_000


def test_a_store_that_lost_it_or_refuses_is_named(filed):
    class Empty:
        def get_sync(self, ref):
            return None

    class Closed:
        def get_sync(self, ref):
            raise ArtifactError("shut", code="closed")

    lost = Envelope.from_dict(filed.to_dict(), Empty())
    assert travelling_form(lost, {})["not_filed"]["walk"] == "the store does not hold it any more"
    shut = Envelope.from_dict(filed.to_dict(), Closed())
    assert travelling_form(shut, {})["not_filed"]["walk"] == "the store refused it: closed"


@pytest.mark.parametrize(
    "spoil",
    [
        {"payload": "{}"},
        {"payload": 5},
        {"payload": None},
        {"format": "runbook_nb/notebook/9"},
        {"sha-256": "0" * 64},
    ],
)
def test_a_damaged_one_is_damaged_and_not_absent(form, spoil):
    entry = {**form, **spoil}
    assert carries({NAME: entry})
    assert read_travelling(entry).payload is None


def test_damaged_metadata_leaves_the_comment_to_be_read(filed, tmp_path):
    path = tmp_path / "a.ipynb"
    document = document_of(filed, path)
    shown(document)["metadata"][NAME]["sha-256"] = "0"
    path.write_text(json.dumps(document), encoding="utf-8")
    assert Envelope.from_notebook(path) == filed
    shown(document)["data"].pop("text/html")
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(LoadError) as caught:
        Envelope.from_notebook(path)
    assert caught.value.code == "damaged"


@pytest.mark.parametrize("data", ["x", 5, None])
def test_a_filed_thing_that_was_changed_is_not_given_back(form, data):
    entry = copy.deepcopy(form)
    for one in entry["filed"].values():
        one["data"] = data
    assert read_travelling(entry).filed == {}
    assert read_travelling({**entry, "filed": [1]}).filed == {}


def test_an_envelope_whose_machine_readable_form_is_off_carries_none(filed, tmp_path):
    from runbook_nb.settings import settings

    with settings(embed=False):
        document = document_of(filed, tmp_path / "a.ipynb")
    assert shown(document)["metadata"] == {}
