"""What is wrong with checks is found when they are read, all of it, with what to write instead."""

from __future__ import annotations

from types import SimpleNamespace
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb.errors import PlaybookDefinitionError
from runbook_nb.playbooks.vocabulary import MAX_CHECKS, problems_in, read_all, read_step


def step(checks=(), **validation):
    return SimpleNamespace(checks=list(checks), validation=validation)


def check(**fields):
    return {"name": "c", "path": "index", "op": "eq", "value": "auth", **fields}


def without(key):
    fields = check()
    del fields[key]
    return fields


def told(one):
    return [str(problem) for problem in problems_in(one, "steps[0]")]


@pytest.mark.parametrize(
    ("entry", "place", "words"),
    [
        ("text", "checks[0]", "not a check"),
        (without("name"), "checks[0].name", "is missing"),
        (check(name=" "), "checks[0].name", "blank"),
        (check(tool=7), "checks[0].tool", "a number"),
        (check(source="argument"), "checks[0].source", "did you mean 'arguments'"),
        (check(path="a..b"), "checks[0].path", "not a path"),
        (check(path=["a"]), "checks[0].path", "a list"),
        (check(source="call", path="tol"), "checks[0].path", "did you mean 'tool'"),
        (without("op"), "checks[0].op", "is missing"),
        (check(op="=="), "checks[0].op", "did you mean 'eq'"),
        (check(op="contain"), "checks[0].op", "did you mean 'contains'"),
        (check(op=1), "checks[0].op", "use one of"),
        (without("value"), "checks[0].value", "is missing"),
        (check(value=None), "checks[0].value", "null"),
        (check(op="lt", value=[1]), "checks[0].value", "no order"),
        (check(op="in", value="a"), "checks[0].value", "needs a list"),
        (check(op="regex", value="("), "checks[0].value", "not a pattern"),
        (check(op="regex", value="(?=a)"), "checks[0].value", "RE2"),
        (check(op="regex", value="a" * 1001), "checks[0].value", "longer than"),
        (check(op="exists", value="yes"), "checks[0].value", "true or false"),
        (check(valu="x"), "checks[0].valu", "did you mean 'value'"),
    ],
)
def test_what_is_wrong_with_a_check_is_told_with_place_and_fix(entry, place, words):
    (problem,) = told(step([entry]))
    assert problem.startswith(f"steps[0].{place}: ")
    assert words in problem


@pytest.mark.parametrize(
    ("validation", "place", "words"),
    [
        ({"al": [check()]}, "al", "did you mean 'all'"),
        ({"all": check()}, "all", "not a list"),
        ({"all": []}, "all", "empty"),
        ({"any": [{"all": [check(op="eqq")]}]}, "any[0].all[0].op", "did you mean 'eq'"),
        ({"not": 7}, "not", "not a check"),
        ({"min_success": -1}, "min_success", "number of calls"),
        ({"min_success": True}, "min_success", "number of calls"),
        ({"calls": ["a"]}, "calls", "not a mapping"),
        ({"calls": {"a": 0}}, "calls.a", "write 1 or more"),
        ({"expression": "1 == 1"}, "expression", "use all, any, not, min_success or calls"),
    ],
)
def test_what_is_wrong_with_a_validation_is_told_with_place_and_fix(validation, place, words):
    (problem,) = told(step(**validation))
    assert problem.startswith(f"steps[0].validation.{place}: ")
    assert words in problem


def test_everything_wrong_in_all_steps_is_told_together():
    with pytest.raises(PlaybookDefinitionError) as caught:
        read_all([step([check(op="eqq")]), step(), step([check(), check()], all=[])])
    assert caught.value.code == "bad_checks"
    assert [problem.where for problem in caught.value.problems] == [
        "steps[0].checks[0].op",
        "steps[2].checks[1].name",
        "steps[2].validation.all",
    ]


def test_steps_without_checks_have_none():
    (found,) = read_all([step()])
    assert (found.checks, found.validation, found.all) == ((), None, ())


def test_keys_of_others_are_left_alone():
    assert told(step([check(**{"x-owner": "me"})], **{"x-note": 1, "min_success": 1})) == []


def test_checks_and_nesting_are_bounded():
    many = [check(name=str(n)) for n in range(MAX_CHECKS + 3)]
    assert told(step(many)) == [
        f"steps[0].checks[{MAX_CHECKS}]: is one of more than 200 checks of a step"
    ]
    deep = {"all": [check()]}
    for _ in range(20):
        deep = {"all": [deep]}
    (problem,) = told(step(**deep))
    assert "deeper than" in problem


def test_without_the_engine_the_line_that_installs_it_is_told():
    with mock.patch.dict("sys.modules", {"re2": None}):
        (problem,) = told(step([check(op="regex", value="a")]))
    assert "pip install 'runbook_nb[regex]'" in problem


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["all", "any", "not", "op", "value", "calls"]), inner)
    ),
    max_leaves=6,
)


@given(ANY, ANY)
def test_whatever_is_written_is_read_or_refused(checks, validation):
    one = SimpleNamespace(checks=checks, validation=validation)
    if problems_in(one):
        with pytest.raises(PlaybookDefinitionError):
            read_step(one)
    else:
        assert all(check.text for check in read_step(one).all)
