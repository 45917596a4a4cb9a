"""The command that makes a notebook safe to hand on: report, statuses, nothing run."""

import json
from pathlib import Path

import nbformat
import pytest

from runbook_nb.cli.main import main


@pytest.fixture
def call(capsys, tmp_path, monkeypatch):
    """Call the command in a folder of its own; gives status, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main(arguments)
        return left.value.code, *capsys.readouterr()

    return run


@pytest.fixture
def notebook(tmp_path):
    path = tmp_path / "mine.ipynb"
    cells = [
        nbformat.v4.new_code_cell("open('ran', 'w'); password = 'hunter-2x'; stash = 'eichel-77'"),
        nbformat.v4.new_markdown_cell("It was eichel-77 and kranich-5."),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def test_it_writes_beside_and_reports_on_the_error_stream(call, notebook):
    before = notebook.read_bytes()
    status, out, err = call("share", "mine.ipynb")
    assert (status, out) == (0, "")
    assert err.startswith(
        "SharedNotebook mine.ipynb · 0 removed, 1 replaced, 0 kept, 0 not checked\n"
    )
    assert "the source of cell 1" in err
    assert err.splitlines()[-1].startswith("wrote mine.shared.ipynb (")
    assert "hunter" not in Path("mine.shared.ipynb").read_text()
    assert notebook.read_bytes() == before
    assert not Path("ran").exists()


def test_names_and_values_are_taken_from_options(call, notebook, monkeypatch):
    monkeypatch.setenv("BIRD", "kranich-5")
    options = ("--redact", "stash", "--value-from-env", "BIRD", "-o", "out.ipynb")
    assert call("share", "mine.ipynb", *options)[0] == 0
    text = Path("out.ipynb").read_text()
    assert "eichel" not in text
    assert "kranich" not in text
    assert not Path("mine.shared.ipynb").exists()


def test_checking_writes_nothing_and_says_by_its_status_what_there_is(call, notebook):
    status, out, err = call("share", "mine.ipynb", "--check")
    assert (status, out) == (1, "")
    assert "wrote" not in err
    assert [path.name for path in Path().iterdir()] == ["mine.ipynb"]
    call("share", "mine.ipynb")
    assert call("share", "mine.shared.ipynb", "--check")[0] == 0


def test_the_report_is_given_as_json_when_asked(call, notebook):
    _, out, _ = call("share", "mine.ipynb", "--json")
    report = json.loads(out)
    assert report["counts"] == {"removed": 0, "replaced": 1, "kept": 0, "not checked": 0}
    assert report["findings"][0]["place"] == "the source of cell 1"
    assert not report["clean"]


def test_a_name_that_met_nothing_is_said(call, notebook):
    names = ("--redact", "stash", "--redact", "stach")
    _, out, err = call("share", "mine.ipynb", *names, "--json")
    assert json.loads(out)["never"] == ["stach"]
    assert "Nothing was met by stach: a misspelt name hides nothing." in " ".join(err.split())
    again = call("share", "mine.shared.ipynb", "--check", "--redact", "stash", "--json")
    assert json.loads(again[1])["never"] == []
    assert "Nothing was met" not in again[2]


def test_one_that_was_shared_is_not_written_again_unasked(call, notebook):
    assert call("share", "mine.ipynb")[0] == 0
    shared = Path("mine.shared.ipynb")
    before = shared.read_bytes()
    status, _, said = call("share", str(shared))
    assert status == 2
    assert "--out" in said
    assert shared.read_bytes() == before
    assert call("share", str(shared), "--in-place")[0] == 0
    assert call("share", str(shared), "--out", "x.shared.shared.ipynb")[0] == 0


@pytest.mark.parametrize("name", ["mine.ipynb", "./mine.ipynb", "link.ipynb"])
def test_the_notebook_itself_is_not_overwritten_unasked(call, notebook, name):
    before = notebook.read_bytes()
    Path("link.ipynb").symlink_to(notebook)
    status, out, err = call("share", "mine.ipynb", "-o", name)
    assert (status, out) == (2, "")
    assert "--out: " in err
    assert "or say --in-place where that is meant" in err
    assert notebook.read_bytes() == before
    assert call("share", "mine.ipynb", "-o", "mine.ipynb", "--in-place")[0] == 0
    assert b"hunter" not in notebook.read_bytes()


@pytest.mark.parametrize(
    ("held", "why"),
    [
        ("{}", "it does not say its nbformat"),
        ("[]", "it holds a list"),
        ("3", "it holds a number"),
        ('{"nbformat": "x"}', "its nbformat is no whole number"),
        ('{"nbformat": 4, "cells": 1}', "its cells are not those of a notebook"),
    ],
)
def test_what_is_no_notebook_is_said_with_what_to_give(call, held, why):
    Path("a.ipynb").write_text(held)
    status, _, err = call("share", "a.ipynb")
    assert status == 3
    assert err.startswith(f"runbook-nb: a.ipynb cannot be read as a notebook: {why}")
    assert "runbook-nb export --out NAME.ipynb" in err


@pytest.mark.parametrize(
    ("arguments", "words", "left"),
    [
        (["gone.ipynb"], "gone.ipynb cannot be read: No such file or directory", 3),
        (["mine.ipynb", "--value-from-env", "NOT_SET"], "'NOT_SET' is not set", 2),
        ([], "'file'", 2),
    ],
)
def test_what_cannot_be_done_is_one_line(call, notebook, arguments, words, left):
    status, out, err = call("share", *arguments)
    assert (status, out) == (left, "")
    assert err.count("\n") == 1
    assert words in err
