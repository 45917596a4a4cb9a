"""Checking files: what each is said to hold, what is wrong with it, and the exit status."""

import json
from pathlib import Path

import nbformat
import pytest

import runbook_nb as rb

RULES = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], "fresh")


@pytest.fixture(scope="module")
def envelope():
    return rb.triage([{"host": "a", "days": 9}], RULES, subject="host", source="one row")


def test_rules_are_named_with_their_digest(call):
    RULES.save("a.yaml")
    Path("a.json").write_text(RULES.to_json())
    status, out, err = call("check", "a.yaml", "a.json")
    assert (status, err) == (0, "")
    said = f"rules age v1, 1 rule, digest {RULES.digest}"
    assert out == f"a.yaml: {said}\na.json: {said}\n"


def test_everything_wrong_with_rules_is_named_with_its_line(call):
    Path("a.yaml").write_text(
        "name: age\nversion: v1\nrules:\n- when: {days: {gte: 7, ge: 8}}\n  then: old\n"
        "- when: {}\n  then: older\ndefault: fresh\n"
    )
    status, out, _ = call("check", "a.yaml")
    assert status == 1
    assert out.startswith("a.yaml: wrong\n")
    assert "line 4" in out
    assert "line 6" in out
    assert "did you mean" in out


@pytest.mark.parametrize("name", ["a.ipynb", "a.html", "a.json"])
def test_answers_are_counted(call, envelope, name):
    envelope.to_notebook("a.ipynb")
    envelope.to_html("a.html")
    Path("a.json").write_text(envelope.to_json(dossier=True))
    assert call("check", name) == (0, f"{name}: 1 answer\n", "")


def test_a_damaged_answer_is_wrong(call, envelope):
    envelope.to_html("a.html")
    page = Path("a.html").read_text()
    begin = page.index("<!--") + 60
    Path("a.html").write_text(page[:begin] + page[begin + 4 :])
    status, out, _ = call("check", "a.html")
    assert status == 1
    assert "damaged" in out


def test_every_answer_of_a_notebook_is_read(call, envelope):
    envelope.to_notebook("a.ipynb")
    first = nbformat.read("a.ipynb", 4)
    other = rb.triage([{"host": "b", "days": 1}], RULES, subject="host", source="one row")
    other.to_notebook("b.ipynb")
    first.cells += nbformat.read("b.ipynb", 4).cells
    for number, cell in enumerate(first.cells):
        cell.id = f"cell-{number}"
    nbformat.write(first, "both.ipynb")
    assert call("check", "both.ipynb")[1] == "both.ipynb: 2 answers\n"


def test_a_notebook_is_held_to_its_format(call):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1") for _ in range(2)])
    for cell in notebook.cells:
        cell.id = "same"
    Path("a.ipynb").write_text(json.dumps(notebook))
    status, out, _ = call("check", "a.ipynb")
    assert status == 1
    assert out.startswith("a.ipynb: 0 answers\n  not valid: ")
    del notebook.cells[0]["id"], notebook.cells[1]["id"]
    Path("b.ipynb").write_text(json.dumps(notebook))
    assert call("check", "b.ipynb")[0] == 1


def test_a_file_that_is_none_of_these_is_wrong(call):
    Path("a.txt").write_text("hello")
    Path("b.json").write_text("{")
    status, out, _ = call("check", "a.txt", "b.json", "gone.ipynb")
    assert status == 1
    assert [line for line in out.splitlines() if not line.startswith(" ")] == [
        "a.txt: wrong",
        "b.json: wrong",
        "gone.ipynb: cannot be read",
    ]


@pytest.mark.parametrize("name", ["gone.ipynb", "gone.yaml", "gone.json", "SKILL.md", ".", "there"])
def test_what_cannot_be_read_is_neither_right_nor_wrong(call, name):
    Path("there").mkdir()
    RULES.save("a.yaml")
    status, out, _ = call("check", "a.yaml", name)
    assert status == 3
    head, words = out.splitlines()[1:]
    assert head == f"{name}: cannot be read"
    assert "folder" in words if name in (".", "there") else "No such file" in words
    assert not words.startswith("   ")


def test_foreign_words_cannot_act_on_the_terminal(call):
    names = ["e\x1b[31m\nv.yaml", "p\u202e.yaml", "w\x9b.yaml"]
    texts = [
        'name: "b\\e[31m"\nversion: v1\n"k\\e[31mX": 1\nrules:\n- when: {a: {gt: 1}}\n  then: b\n',
        'id: a\nname: "N\\e[31m"\n"k\\e]0;X": 1\nsteps: []\n',
        'name: "b\\e[31m"\nversion: "v\\u202e"\nrules: [{when: {a: 1}, then: b}]\ndefault: c\n',
    ]
    for name, text in zip(names, texts, strict=True):
        Path(name).write_text(text, "utf-8")
    status, out, _ = call("check", *names, "gone\x1b.yaml", "gone\x1b.json")
    assert status == 1
    assert out.replace("\n", "").isprintable()
    assert "e\\x1b[31m\\nv.yaml: wrong" in out
    assert "k\\x1b[31mX: is not a key here" in out


def test_a_parser_s_own_words_are_not_shown(call):
    Path("a.yaml").write_text("name: x\nrules:\n  - when: {a: {gt: 1}\n    then: b\n")
    _, out, _ = call("check", "a.yaml")
    assert "line 4: while parsing a flow mapping, expected ',' or '}', but got a text" in out


def test_what_was_found_is_json_when_asked(call):
    RULES.save("a.yaml")
    status, out, _ = call("check", "a.yaml", "gone.html", "--json")
    told = json.loads(out)
    assert (status, told["format"]) == (3, "runbook_nb/check/1")
    assert [(one["file"], len(one["problems"])) for one in told["files"]] == [
        ("a.yaml", 0),
        ("gone.html", 1),
    ]


def test_json_on_the_standard_output_acts_on_no_terminal(call):
    name = "e\x9b31m\u202ev\x7f.html"
    out = call("check", name, "--json")[1]
    assert out.replace("\n", "").isprintable()
    assert json.loads(out)["files"][0]["file"] == name
    assert "\\u009b31m\\u202ev\\u007f" in out


def test_each_problem_is_told_in_parts(call):
    Path("a.yaml").write_text(
        "name: age\nversion: v1\nrules:\n- when: {days: {less: 7}}\n  then: old\n- then: x\n"
    )
    Path("b.yaml").write_text("name: [\n")
    Path("c.yaml").write_text("id: a\nname: A\nsteps:\n- {id: a, description: b, max_calls: 1}\n")
    Path("d.json").write_text("[]")
    told = json.loads(call("check", "a.yaml", "b.yaml", "c.yaml", "d.json", "--json")[1])["files"]
    assert told[0]["problems"][0] == {
        "code": "bad_rules",
        "where": "rules[0].when.days.less",
        "line": 4,
        "column": 17,
        "message": "is not an operator",
        "fix": "did you mean 'lt'?",
    }
    assert [one["line"] for one in told[0]["problems"]] == [4, 6]
    assert [(one["code"], one["line"]) for one in told[1]["problems"]] == [("cannot_load", 2)]
    assert [(one["code"], one["where"], one["line"]) for one in told[2]["problems"]] == [
        ("unknown_key", "steps[0].max_calls", 4)
    ]
    assert all(
        list(one) == list(told[0]["problems"][0]) for file in told for one in file["problems"]
    )
