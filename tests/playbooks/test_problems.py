"""Problems of a playbook's text: told once, with the place and line they stand at."""

from __future__ import annotations

import pickle

import pytest

from runbook_nb._parsed import read
from runbook_nb.errors import PlaybookLoadError
from runbook_nb.playbooks import load_playbook
from runbook_nb.playbooks.problems import FileProblem, Findings, place_of, refused, told
from runbook_nb.playbooks.sources import BOUNDS


def test_a_problem_says_where_it_stands_and_what_to_write():
    problem = FileProblem(
        code="c", message="is odd", where="steps[0].id", line=3, column=5, fix="write it"
    )
    assert str(problem) == "line 3, column 5, steps[0].id: is odd; write it"
    assert str(FileProblem(message="is odd")) == "is odd"
    assert str(FileProblem(message="is odd", line=2)) == "line 2: is odd"


def test_findings_take_lines_from_the_text():
    parsed = read("id: x\nsteps:\n  - id: a\n", "yaml", BOUNDS)
    found = Findings(parsed)
    assert not found
    found.add("c", "steps[0].hints", "is missing")
    assert (found.problems[0].line, found.problems[0].column) == (3, 5)


def test_what_is_wrong_as_a_whole_is_not_told_again_of_its_parts():
    found = Findings()
    found.add("a", "steps[1]", "is not a mapping")
    found.add("b", "steps[1]", "again")
    found.add("b", "steps[1].id", "a part")
    found.add("b", "steps[1][0]", "a part")
    found.add("c", "steps[10]", "another")
    assert [problem.code for problem in found.problems] == ["a", "c"]


def test_a_file_of_nothing_but_wrong_keys_is_read_in_time_that_grows_with_it(calls_of):
    def work(many):
        keys = ",".join(f'"namf{n}":1' for n in range(many))
        with pytest.raises(PlaybookLoadError) as refusal:
            load_playbook('{"id":"a","name":"n","steps":[],' + keys + "}", strict=True)
        assert len(refusal.value.errors) == many
        assert "name" in refusal.value.errors[0]

    assert calls_of(lambda: work(1200)) < 2.5 * calls_of(lambda: work(600))


def test_an_error_carries_all_of_it_and_travels():
    problem = FileProblem(code="c", message="m", where="id")
    error = refused(
        "cannot be read", "structure", path="ir.yaml", name="ir.yaml", problems=[problem]
    )
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own error
    for one in (error, again):
        assert (one.code, one.path, one.where) == ("structure", "ir.yaml", "ir.yaml")
        assert one.errors == ["id: m"]
        assert one.problems == (problem,)


def test_places_and_names_are_safe_to_show():
    assert place_of(("steps", 3, "a\nb")) == "steps[3].a\\nb"
    assert place_of(()) == ""
    assert len(told("x" * 500)) <= 60
    assert "\x1b" not in told("\x1b[31m")
