"""The exercises of a class: three breaks give three kind messages, and none of them a green row."""

import re
from pathlib import Path

import pytest

import runbook_nb as rb

PAGE = (Path(__file__).parents[2] / "docs" / "teaching.md").read_text(encoding="utf-8")
ROWS = [
    {"cluster": "orders", "age_days": 2},
    {"cluster": "ledger", "age_days": 30},
    {"cluster": "billing", "age_days": 9},
]


def posture(key="age_days", operator="gt"):
    return rb.RuleSet(
        "health-signal",
        "v1",
        rules=[rb.Rule({key: {operator: 7}}, then="unprotected", unit="days")],
        default="protected",
    )


def judge(rows, rules):
    return rb.triage(rows, rules, subject="cluster", source=f"inventory, {len(rows)} rows")


def a_field_is_removed():
    answer = judge([ROWS[0], ROWS[1], {"cluster": "billing"}], posture())
    assert answer.verdicts.counts() == {"protected": 1, "unprotected": 1, "declined": 1}
    return answer.why("billing").sentence


def the_source_is_empty():
    answer = judge([], posture())
    assert answer.verdicts.counts() == {}
    return answer.ledger.not_checked[0].what


def an_operator_is_misspelt():
    with pytest.raises(rb.errors.RuleError) as refused:
        posture(operator="gtt")
    return str(refused.value)


def a_field_is_misspelt():
    answer = judge(ROWS, posture(key="age_day"))
    assert answer.verdicts.counts() == {"declined": 3}
    told = answer.ledger.not_checked[1]
    return f"{told.what} {told.why}"


BREAKS = [a_field_is_removed, the_source_is_empty, an_operator_is_misspelt, a_field_is_misspelt]


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (a_field_is_removed, ("age_days is missing", "rule 1")),
        (the_source_is_empty, ("nothing was assessed", "no subject")),
        (an_operator_is_misspelt, ("gtt", "is not an operator", "did you mean 'gt'?")),
        (a_field_is_misspelt, ("age_day", "did you mean 'age_days'?")),
    ],
)
def test_a_break_says_what_broke(broken, says):
    message = broken()
    assert all(words in message for words in says), message
    assert "Traceback" not in message


def test_each_break_says_something_else():
    messages = [broken() for broken in BREAKS]
    assert len(set(messages)) == len(BREAKS)


def test_an_exercise_has_an_answer_that_is_run_and_something_to_talk_about():
    exercises = re.split(r"^### \d+\. ", PAGE, flags=re.MULTILINE)[1:]
    assert len(exercises) == 6
    for exercise in exercises:
        question, _, answer = exercise.partition("```python\n")
        assert question.count("?") or "Find\nout" in question
        assert re.search(r"```\n\n```text\n.+?```", answer, re.DOTALL)
        assert "*What to talk about.*" in answer


def test_the_page_names_notebooks_that_are_there():
    named = re.findall(r"\(notebooks/([\w.]+)\)", PAGE)
    assert len(named) >= 3
    folder = Path(__file__).parents[2] / "notebooks"
    assert all((folder / name).is_file() for name in named)


def test_a_rule_behind_a_wider_one_is_refused_and_fires_in_front_of_it():
    lost = rb.Rule({"age_days": {"gt": 20}}, then="lost")
    with pytest.raises(rb.errors.RuleError, match="can never fire"):
        rb.RuleSet("health-signal", "v3", [*posture().rules, lost], default="protected")
    first = rb.RuleSet("health-signal", "v3", [lost, *posture().rules], default="protected")
    assert judge(ROWS, posture()).rejudge(first).fired == (1, 1)


def test_a_word_that_was_changed_is_found_and_its_subject_named():
    payload = judge(ROWS, posture()).to_dict(dossier=True)
    row = next(row for row in payload["result"]["verdicts"] if row["cluster"] == "ledger")
    row["verdict"] = "protected"
    checked = rb.Envelope.from_dict(payload).verify()
    assert "row[cluster=ledger]" in [claim.id for claim in checked.contradicted]
