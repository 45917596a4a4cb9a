"""Published evidence, read back as decisions: what was recorded is told, and nothing more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import runbook_nb as rb
from runbook_nb._text import MISSING
from runbook_nb.record.evidence import evidence_of, judged_by
from runbook_nb.record.narrative import Told
from runbook_nb.rules.evaluate import Decision, Selection
from runbook_nb.rules.wording import REDACTED, summary_of

FOREIGN = Path(__file__).with_name("foreign")


def condition(key="age", op="gt", threshold=7, actual="30", result=True, **more):
    return {
        "key": key,
        "op": op,
        "threshold": threshold,
        "actualSummary": actual,
        "result": result,
        "redacted": False,
        **more,
    }


def rule(*conditions, branch="old", matched=None, **more):
    if matched is None:
        matched = all(one["result"] for one in conditions)
    return {
        "type": "filter",
        "branch": branch,
        "matched": matched,
        "conditions": list(conditions),
        **more,
    }


def deciding(*rules, chosen="old", **more):
    return {"rules": list(rules), "chosen": chosen, "default": "new", **more}


def decision(evidence, state=None):
    made = judged_by(evidence, {"age": 30} if state is None else state)
    return None if made is None else Decision(made.path, made.values)


# -- what was decided ----------------------------------------------------------------------------


def test_the_rule_that_matched_is_told_with_its_values():
    made = decision(deciding(rule(condition(), label="too old")))
    assert made.branch == "old"
    assert "age 30 > 7" in made.sentence
    assert "too old" in json.dumps(made.to_dict())


def test_rules_that_were_tried_before_are_told():
    first = rule(condition(threshold=90, result=False), branch="ancient")
    made = decision(deciding(first, rule(condition())))
    assert made.branch == "old"
    assert "90" in json.dumps(made.to_dict())


def test_the_default_is_told():
    made = decision(deciding(rule(condition(threshold=90, result=False)), chosen="new"))
    assert made.branch == "new"
    labelled = decision(
        deciding(rule(condition(result=False)), chosen="new", defaultLabel="nothing fired")
    )
    assert "nothing fired" in json.dumps(labelled.to_dict())


def test_every_condition_of_a_rule_is_told():
    both = rule(condition(), condition("name", "eq", "db", '"db"'))
    made = decision(deciding(both), {"age": 30, "name": "db"})
    assert "age 30 > 7" in made.sentence
    assert "db" in made.sentence


def test_two_operators_on_one_key_are_one_condition_each():
    between = rule(condition(), condition(op="lt", threshold=90))
    assert len(judged_by(deciding(between), {"age": 30}).values) == 2


def test_a_selection_is_told():
    evidence = {
        "rules": [
            rule(condition("cpu", "gt", 80, "93"), branch="cpu"),
            rule(condition("mem", "gt", 80, "10", result=False), branch="mem"),
        ],
        "selected": ["cpu"],
    }
    made = judged_by(evidence, {"cpu": 93, "mem": 10})
    assert Selection(made.path, made.values).path.selected == (0,)


def test_a_function_rule_is_told_by_what_it_read_and_never_called():
    function = {
        "type": "function",
        "branch": "old",
        "matched": True,
        "inputs": [{"key": "age", "valueSummary": "30"}],
    }
    made = decision(deciding(function))
    assert made.branch == "old"
    (found,) = made.path.rules.rules
    with pytest.raises(NotImplementedError):
        found.when({})
    failing = {**function, "matched": False, "matchError": "boom"}
    assert "boom" in json.dumps(decision(deciding(failing, chosen="new")).to_dict())


# -- the values ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "state", "value"),
    [
        ("30", {"age": 30}, 30),
        ("30", {"age": 99}, 30),
        ("30", {}, 30),
        ("-1.5e-7", {}, -1.5e-7),
        ("true", {}, True),
        ("null", {}, None),
        ("undefined", {}, MISSING),
        ("[]", {}, []),
        ("{}", {}, {}),
        ('"db"', {}, "db"),
        ('"say "hi""', {}, 'say "hi"'),
        ('"a long te..."', {}, Told('"a long te..."')),
        ("[1, 2, …]", {}, Told("[1, 2, …]")),
    ],
)
def test_a_value_is_what_the_stage_saw_or_what_its_summary_gives_whole(told, state, value):
    (found,) = judged_by(deciding(rule(condition(actual=told))), state).values
    assert found == value
    assert type(found) is type(value) or isinstance(found, list | dict)


def test_a_value_of_which_there_is_a_beginning_only_is_taken_from_what_the_stage_saw():
    long = "x" * 500
    told = summary_of(long)
    assert told != f'"{long}"'
    (found,) = judged_by(deciding(rule(condition(actual=told))), {"age": long}).values
    assert found == long


def test_a_hidden_value_stays_hidden():
    (found,) = judged_by(
        deciding(rule(condition(redacted=True, actual="[REDACTED]"))), {"age": 30}
    ).values
    assert found is REDACTED or found == REDACTED


# -- what cannot be told -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "evidence",
    [
        {},
        {"rules": 3, "chosen": "old"},
        {"rules": [3], "chosen": "old"},
        {"rules": [{}], "chosen": "old"},
        deciding(rule(condition(op="no such operator"))),
        deciding(rule(condition(), condition())),
        deciding(rule(), chosen="old"),
        deciding(rule(condition(result=False), matched=True)),
        deciding(rule(condition()), chosen="another"),
        deciding(rule(condition(), branch=[])),
        deciding(rule(condition(key=3))),
        deciding(rule(condition(actual=3))),
        {"rules": [rule(condition())], "selected": ["another"]},
        {"rules": [rule(condition())], "selected": 3},
    ],
    ids=lambda value: repr(value)[:50],
)
def test_what_does_not_add_up_is_no_decision(evidence):
    assert judged_by(evidence, {"age": 30}) is None


# -- where it is found ---------------------------------------------------------------------------


def test_evidence_is_found_with_any_observer_that_kept_it():
    one, two = {"rules": [], "chosen": "a"}, {"rules": [], "chosen": "b"}
    snapshot = {
        "recorders": [
            {"id": "x", "data": [{"runtimeStageId": "d#1", "evidence": one}]},
            {"id": "y", "data": [{"deciderRuntimeStageId": "d#2", "evidence": two}]},
            {"id": "z", "data": [{"runtimeStageId": "d#1", "evidence": two}, {"evidence": one}]},
        ]
    }
    assert evidence_of(snapshot) == {"d#1": one, "d#2": two}


@pytest.mark.parametrize(
    "recorders", [None, 3, {}, [3], [{}], [{"data": 3}], [{"data": [3]}], [{"data": [{}]}]]
)
def test_there_may_be_none(recorders):
    assert evidence_of({"recorders": recorders}) == {}


@pytest.mark.parametrize("name", ["decider_evidence", "triage_evidence", "every_kind"])
def test_the_engines_own_evidence_is_read(name):
    run = rb.load_recording(FOREIGN / f"{name}.json")
    kept = evidence_of(
        json.loads((FOREIGN / f"{name}.json").read_text(encoding="utf-8"))["snapshot"]
    )
    there = {run.executions[made.runtime_stage_id] for made in run.decisions}
    assert there == set(kept)
