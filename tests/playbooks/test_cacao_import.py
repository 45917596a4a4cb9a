"""CACAO documents as playbooks: every kind of step, and what each loses."""

import json
from collections import Counter

import pytest
from cacao_documents import (
    AUTHOR,
    END,
    SOC,
    action,
    an_id,
    document,
    every_kind,
    line,
    notebook,
    start,
)
from cacao_schemas import WHY_NOT, faults, folder

from runbook_nb.errors import PlaybookDefinitionError, PlaybookLoadError
from runbook_nb.playbooks import Playbook, PlaybookStep
from runbook_nb.playbooks.cacao import EXTENSION
from runbook_nb.playbooks.cacao_export import to_cacao
from runbook_nb.playbooks.cacao_import import from_cacao
from runbook_nb.playbooks.cacao_layout import MAX_NESTING

WHEN = "2026-11-29T00:00:00.000Z"
A = [an_id("action", n) for n in range(20)]
E = [an_id("end", n) for n in range(20)]


def told(losses, effect):
    return {(item.what, item.places) for item in losses.of(effect)}


def one_action(*commands, **more):
    book, losses = from_cacao(line(action("Do it", "", *commands, **more)))
    return book.steps[0], losses


def branching(kind, heads, *more, after=None, **fields):
    """A document that begins with a step of a kind, which leads to branches."""
    key = an_id(kind)
    workflow = {an_id("start"): start(key), key: {"type": kind, **heads, **fields}}
    if after:
        workflow[key]["on_completion"] = after
    return document({**workflow, **dict(more), **dict.fromkeys(E, END)})


# --- one step after the other -------------------------------------------------------------------


def test_a_line_of_actions_is_a_line_of_steps():
    book, losses = from_cacao(line(action("Look", ""), action("Block it", ""), action("Tell", "")))
    assert [step.id for step in book.steps] == ["look", "block-it", "tell"]
    assert all(step.required and step.kind == "manual" for step in book.steps)
    assert losses.of("changed") == losses.of("left_out") == ()


def test_what_a_document_says_of_itself_is_kept():
    book, losses = from_cacao(
        line(action("Look", ""), description="What to do.", labels=["mail", "soc"])
    )
    assert (book.id, book.name) == (an_id("playbook"), "Phishing mail")
    assert (book.description, book.tags) == ("What to do.", ["mail", "soc"])
    assert book.version == "2026-11-30T00:00:00.000Z"
    assert book.metadata["cacao"]["created_by"] == AUTHOR
    assert losses.source == {
        "id": an_id("playbook"),
        "created_by": AUTHOR,
        "created": "2026-11-29T00:00:00.000Z",
        "modified": "2026-11-30T00:00:00.000Z",
    }


@pytest.mark.parametrize(
    ("said", "description"),
    [
        ({"name": "Look"}, "Look"),
        ({"name": "Look", "description": "At it."}, "Look\n\nAt it."),
        ({"name": "Look", "description": "Look"}, "Look"),
        ({"description": "At it."}, "At it."),
        ({}, ""),
    ],
)
def test_name_and_description_of_a_step_are_its_description(said, description):
    step = {key: it for key, it in action("x", "").items() if key != "name"}
    book, _ = from_cacao(line({**step, **said}))
    assert book.steps[0].description == description


def test_ids_are_made_of_names_and_never_twice():
    names = ["Block it!", "block-it", "Über", "ber", "", "   ", "x" * 99]
    book, _ = from_cacao(line(*(action(name, "") for name in names)))
    ids = [step.id for step in book.steps]
    assert len(set(ids)) == len(ids)
    assert ids[:4] == ["block-it", "block-it-2", "ber", "ber-2"]
    assert ids[4:] == [A[4], A[5], "x" * 60]
    assert [step.metadata["cacao"]["id"] for step in book.steps] == A[: len(ids)]


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ({"type": "manual", "command": "Ring them"}, "Ring them"),
        ({"type": "manual", "command_b64": "UmluZyB0aGVt"}, "Ring them"),
        ({"type": "manual", "command": "now", "description": "Ring"}, "Ring: now"),
        ({"type": "bash", "command": "ls -l"}, "bash: ls -l"),
        ({"type": "http-api", "command": "GET / HTTP/1.1"}, "http-api: GET / HTTP/1.1"),
        ({"type": "jupyter", "command_b64": notebook()}, "jupyter: notebook of 1 cell"),
        ({"type": "jupyter", "command_b64": "AAAA"}, "jupyter: 3 bytes"),
        ({"type": "jupyter", "command_b64": "W10="}, "jupyter: 2 bytes"),
        ({"type": "sigma", "command_b64": "/w=="}, "sigma: \ufffd"),
        ({"type": "bash", "command": "x" * 3000}, "bash: " + "x" * 993 + "…"),
    ],
)
def test_commands_become_hints_and_are_kept_whole(command, hint):
    step, losses = one_action(command)
    assert step.hints == [hint]
    assert step.expected_tools == []
    assert step.kind == "manual"
    assert step.metadata["cacao"]["commands"] == [command]
    kind = command["type"]
    lost = set() if kind == "manual" else {(f"{kind} command", ("Do it",))}
    assert told(losses, "changed") == lost


def test_nothing_of_a_document_is_run_or_fetched(monkeypatch):
    def never(*_, **__):
        raise AssertionError("it was run")

    monkeypatch.setattr("subprocess.Popen.__init__", never)
    monkeypatch.setattr("os.system", never)
    monkeypatch.setattr("socket.socket.connect", never)
    monkeypatch.setattr("builtins.eval", never)
    monkeypatch.setattr("builtins.exec", never)
    book, _ = from_cacao(every_kind(), lossy=True)
    assert book.steps


def test_a_timeout_is_one_in_seconds():
    assert one_action(timeout=1500)[0].timeout_seconds == 1.5
    assert one_action(timeout=0)[0].timeout_seconds == 0
    assert one_action()[0].timeout_seconds is None


def test_what_has_no_effect_is_kept_and_told():
    extension = an_id("extension-definition")
    more = {
        "delay": 5,
        "owner": AUTHOR,
        "external_references": [{"name": "x"}],
        "step_extensions": {extension: {"colour": "red"}},
    }
    book, losses = from_cacao(
        line(
            action("Do it", "", **more),
            priority=3,
            extension_definitions={
                extension: {
                    "type": "extension-definition",
                    "name": "colours",
                    "created_by": AUTHOR,
                    "schema": "x",
                    "version": "1.0.0",
                }
            },
        )
    )
    kept = book.steps[0].metadata["cacao"]
    assert {name: kept[name] for name in more} == more
    assert book.metadata["cacao"]["priority"] == 3
    assert told(losses, "kept") == {
        *((name, ("Do it",)) for name in (*more, "agent")),
        ("priority", ()),
        ("agent_definitions", ()),
        ("extension_definitions", ()),
    }


# --- tools --------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", [A[0], "Do it", "ls -l", "bash"])
def test_a_mapping_names_the_tools_of_a_step_or_command(word):
    given = line(action("Do it", "", {"type": "bash", "command": "ls -l"}))
    book, losses = from_cacao(given, tool_for={word: "shell"})
    assert book.steps[0].expected_tools == ["shell"]
    assert book.steps[0].kind is None
    assert losses.of("changed") == ()


def test_the_nearest_word_counts_and_several_tools_may_be_named():
    two = [{"type": "bash", "command": one} for one in ("a", "b")]
    given = line(action("Do it", "", *two), action("Then", "", *two))
    words = {"Do it": ("x", "y"), "a": "z", "bash": "shell"}
    book, _ = from_cacao(given, tool_for=words)
    assert [step.expected_tools for step in book.steps] == [["x", "y"], ["z", "shell"]]


def test_a_function_is_given_the_command_and_its_step():
    seen = []

    def tool_for(command, step):
        seen.append((command["command"], step["name"]))
        return [command["command"]] * 2 if step["name"] == "One" else None

    given = line(*(action(n, "", {"type": "bash", "command": "ls"}) for n in ("One", "Two")))
    book, losses = from_cacao(given, tool_for=tool_for)
    assert seen == [("ls", "One"), ("ls", "Two")]
    assert [step.expected_tools for step in book.steps] == [["ls"], []]
    assert told(losses, "changed") == {("bash command", ("Two",))}


def test_a_word_that_names_nothing_is_told():
    _, losses = from_cacao(line(action("Do it", "")), tool_for={"Do is": "x"})
    (loss,) = [item for item in losses if item.what == "tool_for"]
    assert "'Do is'" in loss.note


@pytest.mark.parametrize("given", [7, "shell", {"Do it": 7}, {"Do it": [7]}, lambda *_: [None]])
def test_what_names_no_tools_is_refused(given):
    with pytest.raises(PlaybookDefinitionError) as caught:
        from_cacao(line(action("Do it", "")), tool_for=given)
    assert caught.value.code == "bad_tool_for"


def test_what_our_extension_says_of_tools_stands():
    book = Playbook(id="x", name="y", steps=[PlaybookStep(id="Do it", description="z")])
    same, _ = from_cacao(to_cacao(book, created=WHEN), tool_for={"Do it": "other"})
    assert same == book


# --- branches -----------------------------------------------------------------------------------


def test_steps_of_the_branches_of_a_condition_are_optional():
    given = branching(
        "if-condition",
        {"condition": "x = 1", "on_true": A[0], "on_false": A[1], "name": "Known?"},
        (A[0], action("Yes", E[0])),
        (A[1], action("No", E[1])),
        (A[2], action("Then", E[2])),
        after=A[2],
    )
    book, losses = from_cacao(given)
    assert [(step.id, step.required) for step in book.steps] == [
        ("yes", False),
        ("no", False),
        ("then", True),
    ]
    assert book.steps[0].metadata["cacao"]["within"] == [
        {
            "type": "if-condition",
            "id": an_id("if-condition"),
            "branch": "on_true",
            "name": "Known?",
            "condition": "x = 1",
        }
    ]
    assert "within" not in book.steps[2].metadata["cacao"]
    assert told(losses, "changed") == {("if-condition", ("Known?",))}
    kept = book.metadata["cacao"]["workflow"]
    assert kept == {an_id("if-condition"): given["workflow"][an_id("if-condition")]}


def test_of_a_condition_alone_that_holds_nothing_follows_otherwise():
    given = branching(
        "if-condition",
        {"condition": "x", "on_true": A[0]},
        (A[0], action("Yes", E[0])),
        after=E[1],
    )
    book, _ = from_cacao(given)
    assert [(step.id, step.required) for step in book.steps] == [("yes", False)]


def test_every_case_of_a_switch_is_a_branch():
    given = branching(
        "switch-condition",
        {"switch": "__level__", "cases": {"high": A[0], "default": A[1]}},
        (A[0], action("Ring", A[2])),
        (A[2], action("Wait", E[0])),
        (A[1], action("Write", E[1])),
        (A[3], action("Then", E[2])),
        after=A[3],
    )
    book, _ = from_cacao(given)
    assert [(step.id, step.required) for step in book.steps] == [
        ("ring", False),
        ("wait", False),
        ("write", False),
        ("then", True),
    ]
    assert [one.metadata["cacao"]["within"][0]["branch"] for one in book.steps[:3]] == [
        "cases.high",
        "cases.high",
        "cases.default",
    ]


@pytest.mark.parametrize("after", [None, A[2]])
def test_where_branches_meet_again_what_follows_is_not_optional(after):
    given = branching(
        "if-condition",
        {"condition": "x", "on_true": A[0], "on_false": A[1]},
        (A[0], action("Yes", A[2])),
        (A[1], action("No", A[2])),
        (A[2], action("Then", E[0])),
        after=after,
    )
    book, losses = from_cacao(given)
    assert [(step.id, step.required) for step in book.steps] == [
        ("yes", False),
        ("no", False),
        ("then", True),
    ]
    assert len(losses.of("changed")) == 1


def test_a_branch_that_skips_forward_makes_nothing_optional():
    given = branching(
        "if-condition",
        {"condition": "x", "on_true": A[0]},
        (A[0], action("Yes", A[2])),
        (A[1], action("Between", A[2])),
        (A[2], action("Last", E[0])),
        after=A[1],
    )
    book, losses = from_cacao(given)
    assert [(step.id, step.required) for step in book.steps] == [
        ("yes", False),
        ("between", True),
        ("last", True),
    ]
    assert ("join", ("Last",)) in told(losses, "changed")


def test_branches_lie_in_branches():
    inner = an_id("if-condition", 1)
    given = branching(
        "if-condition",
        {"condition": "x", "on_true": inner, "on_false": A[2]},
        (
            inner,
            {"type": "if-condition", "condition": "y", "on_true": A[0], "on_completion": A[1]},
        ),
        (A[0], action("Both", E[0])),
        (A[1], action("One", E[1])),
        (A[2], action("None", E[2])),
        after=E[3],
    )
    book, _ = from_cacao(given)
    assert [len(step.metadata["cacao"]["within"]) for step in book.steps] == [2, 1, 1]


def test_they_do_not_lie_in_one_another_for_ever():
    deep = [an_id("if-condition", n) for n in range(MAX_NESTING + 2)]
    workflow = {an_id("start"): start(deep[0])}
    for key, inner in zip(deep, [*deep[1:], A[0]], strict=True):
        workflow[key] = {
            "type": "if-condition",
            "condition": "x",
            "on_true": inner,
            "on_completion": E[0],
        }
    workflow |= {A[0]: action("Deep", E[1]), E[0]: END, E[1]: END}
    with pytest.raises(PlaybookLoadError, match="deeper than 50 levels"):
        from_cacao(document(workflow))


def test_many_conditions_after_each_other_lie_in_none():
    workflow = {an_id("start"): start(an_id("if-condition"))}
    for n in range(80):
        here, then = an_id("if-condition", n), an_id("if-condition", n + 1)
        yes, no = an_id("action", 2 * n), an_id("action", 2 * n + 1)
        workflow[here] = {"type": "if-condition", "condition": "x", "on_true": yes, "on_false": no}
        workflow |= {yes: action("Yes", then), no: action("No", then)}
    last = an_id("if-condition", 80)
    workflow[last] = {
        "type": "if-condition",
        "condition": "x",
        "on_true": E[0],
        "on_completion": E[1],
    }
    book, _ = from_cacao(document({**workflow, E[0]: END, E[1]: END}))
    assert {len(step.metadata["cacao"]["within"]) for step in book.steps} == {1}
    assert len(book.steps) == 160


# --- at once ------------------------------------------------------------------------------------


def parallel(*names, before=None, after=None):
    members = [(A[n], action(name, E[n])) for n, name in enumerate(names)]
    more = [(A[10], action("Then", E[10]))] if after else []
    return branching(
        "parallel",
        {"next_steps": A[: len(names)], "name": "At once"},
        *members,
        *more,
        after=A[10] if after else E[11],
    )


def test_what_may_be_done_at_once_stands_in_an_order():
    book, losses = from_cacao(parallel("One", "Two", after=True))
    assert [(step.id, step.required) for step in book.steps] == [
        ("one", True),
        ("two", True),
        ("then", True),
    ]
    assert book.strict_sequence
    assert told(losses, "changed") == {("parallel", ("At once",))}


def test_where_there_is_nothing_else_no_order_is_asked_for():
    book, losses = from_cacao(parallel("One", "Two"))
    assert not book.strict_sequence
    assert losses.of("changed") == ()


# --- loops --------------------------------------------------------------------------------------


def loop(back=None):
    key = an_id("while-condition")
    return branching(
        "while-condition",
        {"condition": "more", "on_true": A[0], "name": "As long as"},
        (A[0], action("Pull", key if back else E[0])),
        (A[1], action("Then", E[1])),
        after=A[1],
    )


@pytest.mark.parametrize("back", [False, True])
def test_a_loop_is_refused_unless_its_body_may_stand_once(back):
    with pytest.raises(PlaybookLoadError, match="'As long as' is gone through again") as caught:
        from_cacao(loop(back))
    assert caught.value.code == "has_loops"
    assert "lossy=True" in caught.value.fix
    book, losses = from_cacao(loop(back), lossy=True)
    assert [(step.id, step.required) for step in book.steps] == [("pull", False), ("then", True)]
    assert told(losses, "changed") == {("while-condition", ("As long as",))}


def test_a_loop_that_is_never_come_to_refuses_nothing():
    given = line(action("Look", ""))
    given["workflow"] |= {
        an_id("while-condition"): {
            "type": "while-condition",
            "condition": "x",
            "on_true": E[1],
            "on_completion": E[2],
        },
        E[1]: END,
        E[2]: END,
    }
    _, losses = from_cacao(given)
    assert told(losses, "left_out") == {("while-condition", (an_id("while-condition"),))}


# --- other ways ---------------------------------------------------------------------------------


def test_another_playbook_is_a_step_for_a_person():
    key = an_id("playbook-action")
    other = an_id("playbook", 9)
    step = {"type": "playbook-action", "name": "Recover", "playbook_id": other}
    book, losses = from_cacao(line(step))
    (made,) = book.steps
    assert (made.id, made.kind, made.required) == ("recover", "manual", True)
    assert made.hints == [f"work through the playbook {other}"]
    assert made.metadata["cacao"] == {"id": key, "playbook_id": other, "type": "playbook-action"}
    assert told(losses, "changed") == {("playbook-action", ("Recover",))}


def test_ways_on_failure_are_kept_and_not_followed():
    failing = action("Try", "", agent=SOC)
    del failing["on_completion"]
    workflow = {
        an_id("start"): start(A[0]),
        A[0]: {**failing, "on_success": A[1], "on_failure": A[2]},
        A[1]: action("Good", E[0]),
        A[2]: action("Bad", A[3]),
        A[3]: action("Worse", E[1]),
        A[4]: action("Never", E[2]),
        A[5]: action("Exception", E[3]),
        **dict.fromkeys(E[:4], END),
    }
    book, losses = from_cacao(document(workflow, workflow_exception=A[5]))
    assert [step.id for step in book.steps] == ["try", "good"]
    assert book.steps[0].metadata["cacao"]["on_failure"] == A[2]
    assert book.metadata["cacao"]["workflow_exception"] == A[5]
    assert book.metadata["cacao"]["workflow"] == {key: workflow[key] for key in A[2:6]}
    assert {(item.places, item.note) for item in losses.of("left_out")} == {
        (("Bad", "Worse", "Exception"), "it is come to on a failure only"),
        (("Never",), "nothing leads to it"),
    }
    assert {"on_failure", "workflow_exception"} <= {item.what for item in losses.of("kept")}


# --- the whole ----------------------------------------------------------------------------------


def test_nothing_of_a_document_with_everything_is_dropped():
    given = every_kind()
    book, losses = from_cacao(given, lossy=True)
    text = json.dumps(book.model_dump())
    missing = [
        key
        for key, step in given["workflow"].items()
        if key not in text and step["type"] not in ("start", "end")
    ]
    assert missing == []
    said = {item.what for item in losses}
    for key, value in given.items():
        if key not in ("type", "spec_version", "name", "description", "labels", "workflow_start"):
            assert key == "workflow" or json.dumps(value) in text, key
    assert {"if-condition", "switch-condition", "while-condition", "parallel"} <= said
    assert Counter(item.effect for item in losses)["left_out"] == 2
    left = {place for item in losses.of("left_out") for place in item.places}
    assert left == {"Ask for help", "Write down the exception", "Nobody comes here"}
    assert len(book.steps) + len(left) == sum(
        step["type"] in ("action", "playbook-action") for step in given["workflow"].values()
    )


def test_what_was_made_of_it_is_written_and_read_without_more_loss():
    book, _ = from_cacao(every_kind(), lossy=True)
    same, losses = from_cacao(to_cacao(book, created_by=AUTHOR, created=WHEN))
    assert same == book
    assert not losses


@pytest.mark.skipif(folder() is None, reason=WHY_NOT)
def test_the_schemas_have_nothing_against_these_documents():
    book, _ = from_cacao(every_kind(), lossy=True)
    documents = [every_kind(), parallel("One", "Two"), line(action("Look", ""))]
    documents.append(to_cacao(book, created_by=AUTHOR, created=WHEN))
    assert [faults(one) for one in documents] == [[], [], [], []]
    assert faults(loop()) == faults(loop(back=True)) == []


def test_the_document_is_as_it_was():
    given = every_kind()
    before = json.dumps(given)
    book, _ = from_cacao(given, lossy=True)
    book.steps[0].metadata["cacao"]["commands"].clear()
    assert json.dumps(given) == before


# --- documents that others changed --------------------------------------------------------------


def ours():
    steps = [PlaybookStep(id=name, description=name, expected_tools=[name]) for name in "ab"]
    return to_cacao(Playbook(id="ir", name="IR", steps=steps), created=WHEN)


def test_what_was_changed_in_a_document_of_ours_counts():
    given = ours()
    first = next(step for step in given["workflow"].values() if step.get("name") == "a")
    first |= {"description": "Other words.", "timeout": 2000, "delay": 5, "name": "A first one"}
    given["name"] = "Renamed"
    given["labels"] = ["new"]
    book, losses = from_cacao(given)
    assert (book.id, book.name, book.tags) == ("ir", "Renamed", ["new"])
    assert (book.steps[0].description, book.steps[0].timeout_seconds) == ("Other words.", 2.0)
    assert book.steps[0].id == "a"
    assert told(losses, "kept") == {("delay", ("A first one",)), ("name", ("A first one",))}


def test_an_action_that_was_put_in_is_a_step_for_a_person():
    given = ours()
    first = next(step for step in given["workflow"].values() if step.get("name") == "a")
    agent = first["agent"]
    given["workflow"][A[0]] = action("Between", first["on_completion"], agent=agent)
    first["on_completion"] = A[0]
    book, losses = from_cacao(given)
    assert [(step.id, step.kind) for step in book.steps] == [
        ("a", None),
        ("between", "manual"),
        ("b", None),
    ]
    assert told(losses, "kept") == {("agent", ("Between",))}


def test_what_our_extension_does_not_know_is_kept():
    given = ours()
    first = next(step for step in given["workflow"].values() if step.get("name") == "a")
    first["step_extensions"][EXTENSION] |= {"colour": "red", "more": {"x-a": 1, "odd": 2}}
    given["playbook_extensions"][EXTENSION]["mood"] = "calm"
    book, losses = from_cacao(given)
    assert book.steps[0].extensions == {"x-a": 1}
    assert book.steps[0].metadata["cacao"]["colour"] == "red"
    assert book.steps[0].metadata["cacao"]["odd"] == 2
    assert book.metadata["cacao"]["mood"] == "calm"
    assert {item.what for item in losses} == {"colour", "odd", "mood"}


def test_what_our_extension_says_wrongly_is_refused_with_its_place():
    given = ours()
    key, first = next(
        (key, step) for key, step in given["workflow"].items() if step.get("name") == "a"
    )
    first["step_extensions"][EXTENSION]["min_tool_calls"] = -1
    with pytest.raises(PlaybookLoadError, match="min_tool_calls") as caught:
        from_cacao(given)
    (problem,) = caught.value.problems
    assert problem.where.startswith(f"workflow.{key}.step_extensions")
    assert problem.code == "bad_extension"
