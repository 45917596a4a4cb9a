"""Comparing from the command line: two answers, two rule sets, an answer under other rules."""

import json
from pathlib import Path

import pytest

import runbook_nb as rb

ROWS = [{"host": "a", "days": 9}, {"host": "b", "days": 1}, {"host": "c", "days": 20}]


def rules(limit, version):
    return rb.RuleSet("age", version, [rb.Rule({"days": {"gt": limit}}, "old")], "fresh")


@pytest.fixture
def files(call):
    """Two answers and the rules of each, in the caller's folder."""
    for limit, version in ((7, "v1"), (14, "v2")):
        made = rules(limit, version)
        made.save(f"{version}.yaml")
        answer = rb.triage(ROWS, made, subject="host", source="three rows")
        Path(f"{version}.json").write_text(answer.to_json(dossier=True))
        answer.to_notebook(f"{version}.ipynb")
    return call


def test_two_answers_show_what_changed_and_the_rule_that_changed_it(files):
    status, out, err = files("compare", "v1.json", "v2.ipynb")
    assert (status, err) == (0, "")
    assert out.startswith("Compare age v1 -> v2 · 1 of 3 verdicts changed (2 unchanged)\n")
    assert "days 9" in out


def test_it_is_json_or_markdown_when_asked(files):
    told = json.loads(files("compare", "v1.json", "v2.json", "--json")[1])
    assert (told["format"], told["changed"]) == ("runbook_nb/comparison/1", 1)
    assert [flip["subject"] for flip in told["flips"]] == ["a"]
    assert (
        files("compare", "v1.json", "v2.json", "--to", "json")[1]
        == (files("compare", "v1.json", "v2.json", "--json")[1])
    )
    assert files("compare", "v1.json", "v2.json", "--to", "markdown")[1].startswith("**Compare")


def test_rules_after_an_answer_judge_its_facts_again(files):
    again = files("compare", "v1.json", "v2.yaml", "--json")
    told = json.loads(again[1])
    assert (told["changed"], told["after"]["judged_again"]) == (1, True)


def test_two_rule_sets_are_compared_rule_by_rule(files):
    status, out, _ = files("compare", "v1.yaml", "v2.yaml")
    assert status == 0
    assert "limit raised, 7 -> 14" in out
    told = json.loads(files("compare", "v1.yaml", "v2.yaml", "--json")[1])
    assert told["after"]["version"] == "v2"


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ("v1.json", "v2.json", 1),
        ("v1.json", "v1.ipynb", 0),
        ("v1.json", "v1.yaml", 0),
        ("v1.json", "v2.yaml", 1),
        ("v1.yaml", "v2.yaml", 1),
        ("v1.yaml", "v1.yaml", 0),
    ],
)
def test_a_difference_is_status_1_only_when_asked(files, before, after, status):
    assert files("compare", before, after)[0] == 0
    assert files("compare", before, after, "--exit-code")[0] == status


def test_rules_before_an_answer_are_wrong_usage(files):
    status, out, err = files("compare", "v1.yaml", "v1.json")
    assert (status, out) == (2, "")
    assert "rules come after the answer they judge again" in err


def both(first, second, name):
    """Put the outputs of two notebooks into one."""
    held, other = (json.loads(Path(one).read_text()) for one in (first, second))
    held["cells"] += [{**cell, "id": f"more-{n}"} for n, cell in enumerate(other["cells"])]
    Path(name).write_text(json.dumps(held))


def test_of_several_answers_each_side_says_which(files):
    both("v1.ipynb", "v2.ipynb", "both.ipynb")
    one = files("compare", "v1.json", "v2.json")
    assert files("compare", "both.ipynb", "both.ipynb", "--which", "0", "--which-after", "1") == one
    assert files("compare", "both.ipynb", "v2.json", "--which", "0") == one
    assert files("compare", "both.ipynb", "v2.yaml", "--which", "0")[0] == 0
    status, _, err = files("compare", "both.ipynb", "v2.json")
    assert status == 3
    assert err.endswith("; say --which, from 0\n")
    assert files("compare", "v1.json", "both.ipynb")[2].endswith("; say --which-after, from 0\n")
    assert files("render", "both.ipynb")[2].endswith("; say --which, from 0\n")
    status, _, err = files("compare", "v1.json", "v2.yaml", "--which-after", "0")
    assert status == 2
    assert "--which-after: rules hold no answers" in err


def test_a_file_that_cannot_be_read_is_status_3(files):
    status, out, err = files("compare", "v1.json", "gone.json")
    assert (status, out) == (3, "")
    assert "gone.json cannot be read" in err
