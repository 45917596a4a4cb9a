"""Checks and validations: three answers over the calls of a step, by the law of rules."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb._text import MISSING
from runbook_nb.playbooks.checks import evaluate_checks, evaluate_validation
from runbook_nb.playbooks.vocabulary import read_step


def call(tool="query", *, arguments=None, result=None, outcome="ok", error=None, name="call-1"):
    return SimpleNamespace(
        call_id=name,
        tool=tool,
        arguments=arguments,
        result=result,
        outcome=outcome,
        error=error,
        succeeded=outcome in ("ok", "cached", "retried"),
    )


def read(*checks, **validation):
    return read_step(SimpleNamespace(checks=list(checks), validation=validation))


def check(**fields):
    return {"name": "c", "path": "index", "op": "eq", "value": "auth", **fields}


def come_to(fields, *calls, **how):
    (found,) = evaluate_checks(read(check(**fields)).checks, calls, **how)
    return found


def validated(validation, *calls, **how):
    return evaluate_validation(read(**validation).validation, calls, **how)


# --- one check --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "arguments", "outcome"),
    [
        ({}, {"index": "auth"}, "met"),
        ({}, {"index": "web"}, "unmet"),
        ({}, {}, "unreadable"),
        ({}, None, "unreadable"),
        ({}, {"index": None}, "unreadable"),
        ({}, {"index": 7}, "unreadable"),
        ({"op": "ne"}, {"index": "web"}, "met"),
        ({"op": "ne"}, {}, "unreadable"),
        ({"op": "contains", "value": "ut"}, {"index": "auth"}, "met"),
        ({"op": "contains", "value": "auth"}, {"index": ["web", "auth"]}, "met"),
        ({"op": "regex", "value": "^a.*h$"}, {"index": "auth"}, "met"),
        ({"op": "matches", "value": "^x"}, {"index": "auth"}, "unmet"),
        ({"op": "in", "value": ["a", "auth"]}, {"index": "auth"}, "met"),
        ({"op": "exists", "value": True}, {"index": "auth"}, "met"),
        ({"op": "exists", "value": True}, {}, "unmet"),
        ({"op": "exists", "value": False}, {}, "met"),
        ({"op": "ge", "value": 3}, {"index": 3}, "met"),
        ({"op": "le", "value": 3}, {"index": 4}, "unmet"),
        ({"op": "lt", "value": 3}, {"index": "2"}, "unreadable"),
        ({"op": "gte", "value": 3}, {"index": 3}, "met"),
        ({"path": ""}, "auth", "met"),
        ({"path": "a[0].b"}, {"a": [{"b": "auth"}]}, "met"),
    ],
)
def test_a_check_judges_one_field_as_a_rule_does(fields, arguments, outcome):
    found = come_to(fields, call(arguments=arguments))
    assert found.outcome == outcome
    assert found.is_met is (outcome == "met")
    assert found.call_id == ("call-1" if outcome == "met" else None)


def test_some_call_has_to_meet_it_and_the_first_that_does_is_named():
    calls = [
        call(arguments={"index": "web"}),
        call(arguments={}, name="call-2"),
        call(arguments={"index": "auth"}, name="call-3"),
        call(arguments={"index": "auth"}, name="call-4"),
    ]
    assert come_to({}, *calls).call_id == "call-3"
    assert come_to({}, *calls[:2]).outcome == "unreadable"
    assert come_to({}, *calls[:1]).outcome == "unmet"
    assert come_to({}).reason == "no successful call"


def test_a_check_looks_at_the_calls_of_its_tool():
    found = come_to({"tool": "query"}, call(tool="note", arguments={"index": "auth"}))
    assert (found.outcome, found.reason) == ("unmet", "no successful call of query")
    assert come_to({"tool": "query"}, call(arguments={"index": "auth"})).is_met


def test_failed_calls_count_only_where_attempts_do():
    failed = call(arguments={"index": "auth"}, outcome="error")
    assert come_to({}, failed).outcome == "unmet"
    assert come_to({}, failed, evidence_from="attempted").is_met


def test_a_check_can_look_at_results_and_at_the_call_itself():
    answered = call(result={"index": "auth"})
    assert come_to({"source": "result"}, answered).is_met
    assert come_to({"source": "result"}, call()).outcome == "unreadable"
    assert come_to({"source": "result"}, call(result=MISSING)).outcome == "unreadable"
    failed = call(outcome="error", error="denied by policy")
    asked = {"source": "call", "path": "error", "op": "contains", "value": "denied"}
    assert come_to(asked, failed).is_met
    assert come_to({"source": "call", "path": "arguments.index"}, call(arguments={"index": "auth"}))


def test_what_was_met_when_it_ran_stays_met_though_the_record_hides_it():
    hidden = call(arguments={"index": "[REDACTED]"})
    assert come_to({}, hidden).outcome == "unreadable"
    assert come_to({"op": "ne"}, hidden).outcome == "unreadable"
    assert come_to({"op": "exists", "value": True}, hidden).is_met
    assert come_to({}, hidden, met=["c"]).is_met


@given(st.text(min_size=6).filter(lambda text: text not in "arguments.index auth successful"))
def test_no_reason_tells_a_value_that_was_found(secret):
    for arguments in ({"index": secret}, {"index": [secret]}, {"index": {secret: 1}}, secret):
        assert secret not in come_to({}, call(arguments=arguments)).reason


# --- by the call ------------------------------------------------------------------------------


def test_one_call_says_which_checks_it_meets_those_of_the_validation_too():
    found = read(
        check(),
        check(name="d", value="web"),
        all=[check(name="inner"), {"any": [check(value="x")]}],
    )
    assert found.met_by(call(arguments={"index": "auth"})) == ("c", "validation.all[0]")
    assert found.met_by(call(arguments={"index": "x"})) == ("validation.all[1].any[0]",)
    assert found.met_by(call(outcome="error", arguments={"index": "auth"})) == ()
    assert not found.reads_results
    assert read(check(source="result")).reads_results
    assert read(**{"not": {"source": "call", "op": "exists"}}).reads_results
    assert not read(check(source="call", path="outcome")).reads_results


# --- validation -------------------------------------------------------------------------------

MET, UNMET = call(arguments={"index": "auth"}), call(arguments={"index": "web"})
YES, NO = check(), check(value="never")
ODD = check(path="gone")


@pytest.mark.parametrize(
    ("validation", "outcome"),
    [
        ({"all": [YES, YES]}, "met"),
        ({"all": [YES, NO]}, "unmet"),
        ({"all": [YES, ODD]}, "unreadable"),
        ({"all": [NO, ODD]}, "unmet"),
        ({"any": [NO, YES]}, "met"),
        ({"any": [NO, NO]}, "unmet"),
        ({"any": [NO, ODD]}, "unreadable"),
        ({"any": [YES, ODD]}, "met"),
        ({"not": YES}, "unmet"),
        ({"not": NO}, "met"),
        ({"not": ODD}, "unreadable"),
        ({"not": {"all": [YES, NO]}}, "met"),
        ({"all": [{"any": [NO, {"not": NO}]}], "any": [YES]}, "met"),
        ({"min_success": 1}, "met"),
        ({"min_success": 2}, "unmet"),
        ({"calls": {"query": 1}}, "met"),
        ({"calls": {"query": 2}}, "unmet"),
        ({"calls": {"note": 1}}, "unmet"),
        ({"min_success": 1, "calls": {"query": 1}, "all": [YES]}, "met"),
        ({"min_success": 0, "all": [NO]}, "unmet"),
    ],
)
def test_a_validation_has_three_answers(validation, outcome):
    found = validated(validation, MET)
    assert found.outcome == outcome
    assert found.reason


def test_counts_are_of_calls_that_succeeded():
    failed = call(outcome="error")
    assert validated({"min_success": 1}, failed).reason == "0 of 1 successful call"
    found = validated({"calls": {"query": 2}}, MET, failed)
    assert (found.outcome, found.reason) == ("unmet", "1 of 2 successful calls of query")


def test_every_reason_that_stands_in_the_way_is_told():
    found = validated({"all": [NO, check(value="also")], "min_success": 3}, UNMET)
    assert found.reason.count(";") == 2


def test_what_was_met_when_it_ran_counts_in_a_validation():
    hidden = call(arguments={"index": "[REDACTED]"})
    assert validated({"all": [YES]}, hidden).outcome == "unreadable"
    assert validated({"all": [YES]}, hidden, met=["validation.all[0]"]).is_met


# --- laws -------------------------------------------------------------------------------------

LEAVES = st.sampled_from([YES, NO, ODD])
PARTS = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(lambda parts: {"all": parts}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(lambda parts: {"any": parts}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(lambda part: {"not": part}, inner)
    ),
    max_leaves=6,
)


def come_of(validation):
    return validated(validation, MET).outcome


@given(PARTS, PARTS)
def test_all_and_any_turn_into_each_other_under_not(left, right):
    assert come_of({"not": {"all": [left, right]}}) == come_of(
        {"any": [{"not": left}, {"not": right}]}
    )
    assert come_of({"not": {"not": left}}) == come_of({"all": [left]}) == come_of({"any": [left]})


@given(st.lists(PARTS, min_size=1, max_size=3), PARTS)
def test_what_is_unreadable_never_decides_what_something_else_decides(parts, more):
    if come_of({"all": parts}) == "unmet":
        assert come_of({"all": [*parts, more, ODD]}) == "unmet"
    if come_of({"any": parts}) == "met":
        assert come_of({"any": [*parts, more, ODD]}) == "met"


@given(PARTS)
def test_a_validation_that_is_not_met_says_why(part):
    found = validated({"all": [part]}, MET)
    assert found.reason
    assert "auth" not in found.reason.replace('"auth"', "")
