"""The commands on files: showing an answer a file holds, running notebooks anew."""

import json
from pathlib import Path

import nbformat
import pytest

import runbook_nb as rb
from runbook_nb.testing import reproducible


@pytest.fixture(scope="module")
def envelope():
    rules = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], rb.Default("fresh"))
    rows = [{"host": "zeta", "days": 9}, {"host": "alpha", "days": 1}]
    with reproducible():
        return rb.triage(rows, rules, subject="host", source="two rows")


# --- export ------------------------------------------------------------------------------------


def test_one_answer_is_written_as_every_kind_of_file_and_reads_back_the_same(call, envelope):
    Path("a.json").write_text(envelope.to_json(dossier=True))
    names = ("b/a.ipynb", "b/a.html", "b/a.md", "b/a.json", "b/a.csv")
    options = [word for name in names for word in ("--out", name)]
    status, out, err = call("export", "a.json", *options)
    assert (status, err) == (0, "")
    assert [line.split(" (")[0] for line in out.splitlines()] == [f"wrote {name}" for name in names]
    for name in ("b/a.ipynb", "b/a.html", "b/a.json"):
        assert call("render", name)[1] == f"{envelope}\n"
    copy = rb.Envelope.from_dict(json.loads(Path("a.json").read_text()))
    assert Path("b/a.md").read_text() == f"{copy.to_markdown()}\n"
    assert Path("b/a.csv").read_bytes().count(b"\r\n") == 3


def test_a_name_that_says_nothing_is_refused_before_anything_is_written(call, envelope):
    Path("a.json").write_text(envelope.to_json())
    status, out, err = call("export", "a.json", "--out", "b.md", "--out", "b.xlsx")
    assert (status, out) == (2, "")
    assert "'b.xlsx' does not say what to write; end it in .json, .md, .html, .ipynb or .csv" in err
    assert not Path("b.md").exists()


def test_what_a_table_of_values_cannot_say_is_said_beside_it(call):
    rules = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], rb.Default("fresh"))
    rows = [{"host": "=cmd()", "days": 9}, {"host": "b", "days": 1}, {"host": "c", "days": 1}]
    answer = rb.triage(rows, rules, subject="host", source="three rows", max_rows=2)
    Path("a.json").write_text(answer.to_json())
    status, _, err = call("export", "a.json", "--out", "a.csv")
    assert status == 0
    assert "a.csv holds 2 of 3 rows" in err
    assert "1 text like a formula written behind an apostrophe" in err


# --- render ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.json", "a.html", "a.ipynb"])
def test_an_answer_reads_the_same_from_every_file(call, envelope, name):
    Path("a.json").write_text(envelope.to_json(dossier=True))
    envelope.to_html("a.html")
    envelope.to_notebook("a.ipynb")
    status, out, err = call("render", name)
    assert (status, err) == (0, "")
    assert out == f"{envelope}\n"


def test_it_is_shown_as_markdown_for_a_ticket(call, envelope):
    envelope.to_notebook("a.ipynb")
    _, out, _ = call("render", "a.ipynb", "--to", "markdown")
    assert out.startswith("**Envelope triage · age v1 · 2 rows (1 fresh, 1 old)**\n")
    assert "| old | zeta | 9 |" in out.replace("`", "")


def test_it_is_written_as_a_page_where_told(call, envelope):
    envelope.to_notebook("a.ipynb")
    status, out, _ = call("render", "a.ipynb", "--to", "html", "--out", "b.html")
    assert status == 0
    assert out.startswith("wrote b.html (")
    assert Path("b.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert call("render", "b.html")[1] == f"{envelope}\n"


def test_of_several_answers_one_is_named(call, envelope):
    (rules,) = envelope.dossier.rule_sets
    cells = []
    for host in "ab":
        one = rb.triage([{"host": host, "days": 9}], rules, subject="host", source="a row")
        shown = nbformat.v4.new_output("display_data", data=one._repr_mimebundle_()[0])
        cells.append(nbformat.v4.new_code_cell("one", outputs=[shown]))
    nbformat.write(nbformat.v4.new_notebook(cells=cells), "a.ipynb")
    status, _, err = call("render", "a.ipynb")
    assert status == 3
    assert "a.ipynb carries 2 answers: 0: triage in output 1 of cell 1; 1: triage in" in err
    assert "old  b" in call("render", "a.ipynb", "--which", "1")[1]


@pytest.mark.parametrize(
    ("arguments", "words", "left"),
    [
        (["gone.ipynb"], "gone.ipynb cannot be read: No such file or directory", 3),
        (["a.txt"], "give a notebook (.ipynb), a page (.html) or an envelope (.json)", 3),
        (["empty.ipynb"], "empty.ipynb is not JSON", 3),
        (["a.ipynb", "--to", "pdf"], "--to", 2),
        ([], "'file'", 2),
    ],
)
def test_what_cannot_be_shown_is_one_line(call, arguments, words, left):
    Path("empty.ipynb").write_text("")
    status, out, err = call("render", *arguments)
    assert (status, out) == (left, "")
    assert err.count("\n") == 1
    assert words in err


# --- notebooks ---------------------------------------------------------------------------------


@pytest.fixture
def notebook(tmp_path):
    cells = [nbformat.v4.new_code_cell("1 + 1")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "one.ipynb")
    return tmp_path / "one.ipynb"


def test_notebooks_are_written_then_left_as_they_are(call, notebook):
    assert call("notebooks", "one.ipynb") == (0, "one.ipynb: written\n", "")
    assert call("notebooks", "one.ipynb") == (0, "one.ipynb: as it was\n", "")


def test_an_output_that_changed_is_refused_with_status_1_until_it_is_accepted(call, notebook):
    call("notebooks", "one.ipynb")
    notebook.write_text(notebook.read_text().replace('"2"', '"3"'))
    refused = "one.ipynb: not written, it would change\ncell 1 (1 + 1), text/plain:\n  -3\n  +2\n"
    assert call("notebooks", "one.ipynb") == (1, refused, "")
    status, out, _ = call("notebooks", "one.ipynb", "--accept")
    assert status == 0
    assert out.startswith("one.ipynb: written\n")


def test_checking_writes_nothing(call, notebook):
    before = notebook.read_bytes()
    assert call("notebooks", "--check", "one.ipynb")[0] == 1
    assert notebook.read_bytes() == before


def test_a_cell_that_fails_is_one_line_and_status_3(call, notebook):
    notebook.write_text(notebook.read_text().replace("1 + 1", "1 / 0"))
    status, _, err = call("notebooks", "one.ipynb")
    assert status == 3
    assert err == "runbook-nb: cell 1 (1 / 0) raised ZeroDivisionError: division by zero\n"
