"""What has to hold of a CACAO document before it is read."""

import json

import pytest
from cacao_documents import END, action, an_id, document, every_kind, line, start

from runbook_nb.errors import PlaybookLoadError
from runbook_nb.playbooks.cacao import EXTENSION
from runbook_nb.playbooks.cacao_check import decoded, problems_of, reachable
from runbook_nb.playbooks.cacao_export import to_cacao
from runbook_nb.playbooks.cacao_import import from_cacao
from runbook_nb.playbooks.model import Playbook

A = [an_id("action", n) for n in range(6)]
E = [an_id("end", n) for n in range(6)]
CHOICE, LOOP = an_id("if-condition"), an_id("while-condition")
GONE = an_id("action", 99)


def whole():
    return line(action("Look", ""), action("Tell", ""))


def changed(**more):
    return {**whole(), **more}


def with_step(key, **more):
    given = whole()
    given["workflow"][key] = {**given["workflow"].get(key, {}), **more}
    return given


def without(given, *names):
    for name in names:
        del given[name]
    return given


def codes(given):
    return [problem.code for problem in problems_of(given)]


def places(given):
    return [problem.where for problem in problems_of(given)]


def test_documents_that_are_whole_have_no_problems():
    assert problems_of(whole()) == []
    assert problems_of(every_kind()) == []


@pytest.mark.parametrize(
    ("given", "code", "fix"),
    [
        ({}, "not_a_playbook", "the type 'playbook'"),
        ({"type": "bundle"}, "not_a_playbook", "the type 'playbook'"),
        ({"type": "playbook"}, "other_version", "'cacao-2.0'"),
        (changed(spec_version="1.1"), "other_version", "convert it first"),
        (changed(spec_version="cacao-1.0"), "other_version", "convert it first"),
    ],
)
def test_other_documents_are_told_apart_first(given, code, fix):
    (problem,) = problems_of(given)
    assert problem.code == code
    assert fix in problem.fix


@pytest.mark.parametrize(
    ("given", "code", "where"),
    [
        (without(whole(), "created_by"), "missing", "created_by"),
        (without(whole(), "workflow"), "missing", "workflow"),
        (without(whole(), "workflow_start"), "missing", "workflow_start"),
        (changed(id="playbook--1"), "bad_id", "id"),
        (changed(id=an_id("action")), "bad_id", "id"),
        (changed(created_by=an_id("group")), "bad_id", "created_by"),
        (changed(created="2026-11-29"), "bad_time", "created"),
        (changed(modified=7), "bad_time", "modified"),
        (changed(name=7), "wrong_type", "name"),
        (changed(labels="mail"), "wrong_type", "labels"),
        (changed(labels=[7]), "wrong_type", "labels"),
        (changed(workflow=[]), "wrong_type", "workflow"),
        (changed(workflow_start=GONE), "unknown_reference", "workflow_start"),
        (changed(workflow_start=A[0]), "bad_id", "workflow_start"),
        (changed(workflow_start="first"), "bad_id", "workflow_start"),
        (changed(workflow_exception=GONE), "unknown_reference", "workflow_exception"),
        (changed(workflow_exception=7), "bad_id", "workflow_exception"),
        (changed(playbook_extensions={EXTENSION: {}}), "unknown_reference", "playbook_extensions"),
        (with_step(A[0], type="acton"), "unknown_step_type", f"workflow.{A[0]}.type"),
        (with_step(A[0], type=None), "unknown_step_type", f"workflow.{A[0]}.type"),
        (
            with_step(A[0], on_completion=GONE),
            "unknown_reference",
            f"workflow.{A[0]}.on_completion",
        ),
        (with_step(A[0], on_completion="next"), "bad_id", f"workflow.{A[0]}.on_completion"),
        (with_step(A[0], on_completion=7), "bad_id", f"workflow.{A[0]}.on_completion"),
        (with_step(A[0], on_completion=an_id("start")), "circle", f"workflow.{A[0]}.on_completion"),
        (with_step(A[0], on_success=A[1]), "conflict", f"workflow.{A[0]}"),
        (with_step(A[0], on_failure=A[1]), "conflict", f"workflow.{A[0]}"),
        (with_step(an_id("start"), on_failure=A[1]), "conflict", f"workflow.{an_id('start')}"),
        (with_step(E[0], on_completion=A[1]), "missing", f"workflow.{E[0]}"),
        (with_step(A[0], commands=[]), "no_command", f"workflow.{A[0]}.commands"),
        (with_step(A[0], commands="ls"), "wrong_type", f"workflow.{A[0]}.commands"),
        (with_step(A[0], commands=["ls"]), "no_command", f"workflow.{A[0]}.commands[0]"),
        (
            with_step(A[0], commands=[{"type": "bash"}]),
            "no_command",
            f"workflow.{A[0]}.commands[0]",
        ),
        (
            with_step(A[0], commands=[{"type": "bash", "command_b64": "?"}]),
            "bad_base64",
            f"workflow.{A[0]}.commands[0].command_b64",
        ),
        (with_step(A[0], agent="me"), "bad_id", f"workflow.{A[0]}.agent"),
        (with_step(A[0], agent=an_id("group", 9)), "unknown_reference", f"workflow.{A[0]}.agent"),
        (
            with_step(A[0], targets=[an_id("linux")]),
            "unknown_reference",
            f"workflow.{A[0]}.targets",
        ),
        (with_step(A[0], timeout="1"), "bad_time", f"workflow.{A[0]}.timeout"),
        (with_step(A[0], timeout=-1), "bad_time", f"workflow.{A[0]}.timeout"),
        (with_step(A[0], delay=True), "bad_time", f"workflow.{A[0]}.delay"),
        (
            with_step(A[0], step_extensions={EXTENSION: {}}),
            "unknown_reference",
            f"workflow.{A[0]}.step_extensions",
        ),
        (with_step("look", **action("Look", A[1])), "bad_id", "workflow.look"),
        (
            with_step(an_id("end", 7), **action("Look", A[1])),
            "bad_id",
            f"workflow.{an_id('end', 7)}",
        ),
        (with_step(CHOICE, type="if-condition", condition="x"), "missing", f"workflow.{CHOICE}"),
        (
            with_step(an_id("parallel"), type="parallel", next_steps=[]),
            "no_branch",
            f"workflow.{an_id('parallel')}.next_steps",
        ),
        (
            with_step(an_id("switch-condition"), type="switch-condition", switch="x", cases={}),
            "no_branch",
            f"workflow.{an_id('switch-condition')}.cases",
        ),
        (
            with_step(
                an_id("playbook-action"),
                type="playbook-action",
                playbook_id=A[0],
                on_completion=E[0],
            ),
            "bad_id",
            f"workflow.{an_id('playbook-action')}.playbook_id",
        ),
    ],
)
def test_what_is_wrong_is_told_with_a_code_and_its_place(given, code, where):
    assert (code, where) in zip(codes(given), places(given), strict=True)
    with pytest.raises(PlaybookLoadError) as caught:
        from_cacao(given)
    assert caught.value.code == "bad_cacao"
    assert caught.value.problems


def test_a_playbook_begins_in_one_place():
    given = whole()
    given["workflow"][an_id("start", 1)] = start(A[0])
    assert codes(given) == ["several_starts"]
    del given["workflow"][an_id("start")], given["workflow"][an_id("start", 1)]
    assert "several_starts" in codes(given)


@pytest.mark.parametrize("key", [A[1], an_id("start")])
def test_every_step_says_what_follows_it(key):
    given = whole()
    del given["workflow"][key]["on_completion"]
    assert codes(given) == ["no_end"]
    assert places(given) == [f"workflow.{key}"]


def test_a_condition_that_may_not_hold_says_what_follows_then():
    branch = {"type": "if-condition", "condition": "x", "on_true": E[1]}
    given = document({an_id("start"): start(CHOICE), CHOICE: branch, E[1]: END, E[2]: END})
    assert codes(given) == ["no_end"]
    for more in ({"on_false": E[2]}, {"on_completion": E[2]}):
        given["workflow"][CHOICE] = {**branch, **more}
        assert codes(given) == []


def circle(*links):
    workflow = {an_id("start"): start(A[0])}
    for n, to in enumerate(links):
        workflow[A[n]] = action(f"step {n}", to)
    return document({**workflow, E[0]: END})


@pytest.mark.parametrize("given", [circle(A[0]), circle(A[1], A[2], A[0]), circle(A[1], A[1])])
def test_nothing_goes_around_in_a_circle(given):
    (problem,) = problems_of(given)
    assert problem.code == "circle"
    assert "leads back to" in problem.message
    assert "while-condition" in problem.fix


def test_not_on_failure_either():
    given = whole()
    again = given["workflow"][A[1]]
    del again["on_completion"]
    again |= {"on_success": E[0], "on_failure": A[0]}
    assert codes(given) == ["circle"]


def loop(body, then):
    step = {"type": "while-condition", "condition": "x", "on_true": A[1], "on_completion": then}
    return document(
        {
            an_id("start"): start(A[0]),
            A[0]: action("Before", LOOP),
            LOOP: step,
            A[1]: action("Body", body),
            E[0]: END,
            E[1]: END,
        }
    )


def test_only_the_body_of_a_loop_may_lead_back_to_it():
    assert codes(loop(LOOP, E[0])) == []
    assert codes(loop(E[1], E[0])) == []
    assert codes(loop(A[0], E[0])) == ["circle"]
    assert codes(loop(E[1], A[0])) == ["circle"]


def test_a_long_line_is_gone_through_without_end_of_the_stack():
    given = line(*(action(f"step {n}", "") for n in range(3000)))
    assert problems_of(given) == []


def test_everything_wrong_is_told_at_once_with_lines():
    given = whole()
    given["workflow"][A[0]]["agent"] = "me"
    given["workflow"][A[1]]["timeout"] = -1
    given["created"] = "today"
    text = json.dumps(given, indent=1)
    with pytest.raises(PlaybookLoadError) as caught:
        from_cacao(text)
    lines = text.splitlines()
    told = {problem.where: problem.line for problem in caught.value.problems}
    assert [*told] == ["created", f"workflow.{A[0]}.agent", f"workflow.{A[1]}.timeout"]
    for place, number in told.items():
        assert f'"{place.rpartition(".")[2]}"' in lines[number - 1]
    assert len(caught.value.errors) == 3


def test_what_a_later_version_of_our_extension_says_is_not_guessed():
    given = to_cacao(Playbook(id="x", name="y"))
    given["extension_definitions"][EXTENSION]["version"] = "2.0.0"
    assert codes(given) == ["other_version"]
    given["extension_definitions"][EXTENSION]["version"] = "1.9.0"
    assert codes(given) == []


@pytest.mark.parametrize("given", [[], "[]", "7", "{", "", None, 7, b"\xff", "no such file.json"])
def test_what_is_no_mapping_is_refused(given):
    with pytest.raises(PlaybookLoadError) as caught:
        from_cacao(given)
    assert caught.value.code


def test_hostile_names_are_shown_and_do_nothing():
    given = with_step(A[0], type="<img onerror=x>\x1b[31m")
    (problem,) = problems_of(given)
    assert "\x1b" not in str(problem)


def test_ways_on_failure_are_followed_where_asked():
    workflow = {"a": {"on_success": "b", "on_failure": "c"}, "b": {}, "c": {"on_completion": "b"}}
    assert reachable("a", workflow) == {"a", "b"}
    assert reachable("a", workflow, failing=True) == {"a", "b", "c"}


@pytest.mark.parametrize(("text", "held"), [("aGk=", b"hi"), ("", b""), ("aGk", None), (7, None)])
def test_base64_is_read_or_is_none(text, held):
    assert decoded(text) == held
