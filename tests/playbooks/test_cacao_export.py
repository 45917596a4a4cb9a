"""Playbooks as CACAO documents."""

import base64
import json
from datetime import UTC, date, datetime

import pytest
from cacao_documents import AUTHOR
from cacao_schemas import WHY_NOT, faults, folder
from hypothesis import given, settings
from made_playbooks import playbooks

import runbook_nb as rb
from runbook_nb.errors import PlaybookDefinitionError
from runbook_nb.playbooks import Playbook, PlaybookStep
from runbook_nb.playbooks.cacao import EXTENSION, PLACEHOLDER_IDENTITY, kind_of
from runbook_nb.playbooks.cacao_check import problems_of
from runbook_nb.playbooks.cacao_export import milliseconds, to_cacao

WHEN = "2026-11-29T00:00:00.000Z"
SCHEMAS = pytest.mark.skipif(folder() is None, reason=WHY_NOT)
BOOK = Playbook(
    id="ir",
    name="Incident response",
    description="What to do.",
    tags=["soc"],
    steps=[
        PlaybookStep(
            id="detect",
            description="Look.",
            expected_tools=["query_siem", "query_siem", "enrich"],
            timeout_seconds=1.5,
            required_probes=[{"name": "auth", "match": "index=auth"}],
            **{"x-owner": "soc"},
        ),
        PlaybookStep(id="sign", description="Sign it off.", kind="approval"),
    ],
)


def written(book=BOOK, **more):
    return to_cacao(book, **{"created_by": AUTHOR, "created": WHEN, **more})


def actions(document):
    return [step for step in document["workflow"].values() if step["type"] == "action"]


def test_it_is_a_chain_from_the_start_to_the_end():
    document = written()
    workflow = document["workflow"]
    walked, key = [], document["workflow_start"]
    while key is not None:
        walked.append(workflow[key].get("name", workflow[key]["type"]))
        key = workflow[key].get("on_completion")
    assert walked == ["start", "detect", "sign", "end"]
    assert len(walked) == len(workflow)


def test_what_cacao_has_a_word_for_stands_under_it():
    document = written()
    assert document["name"] == "Incident response"
    assert document["description"] == "What to do."
    assert document["labels"] == ["soc"]
    detect, sign = actions(document)
    assert (detect["name"], detect["description"], detect["timeout"]) == ("detect", "Look.", 1500)
    assert [command["command"] for command in detect["commands"]] == ["query_siem", "enrich"]
    assert sign["commands"] == [{"type": "manual", "command": "Sign it off."}]
    assert "timeout" not in sign
    assert document["playbook_processing_summary"] == {
        "manual_playbook": True,
        "temporal_logic": True,
        "extensions": True,
    }


def test_the_rest_stands_in_one_extension_without_what_is_as_by_default():
    document = written()
    detect, sign = actions(document)
    assert detect["step_extensions"] == {
        EXTENSION: {
            "step_id": "detect",
            "expected_tools": ["query_siem", "query_siem", "enrich"],
            "timeout_seconds": 1.5,
            "required_probes": [{"name": "auth", "match": "index=auth", "description": ""}],
            "more": {"x-owner": "soc"},
        }
    }
    assert sign["step_extensions"] == {EXTENSION: {"step_id": "sign", "kind": "approval"}}
    assert document["playbook_extensions"] == {EXTENSION: {"playbook_id": "ir"}}
    assert [*document["extension_definitions"]] == [EXTENSION]


def test_names_of_the_extension_are_as_cacao_asks():
    told = {name for step in actions(written()) for name in step["step_extensions"][EXTENSION]}
    assert all(len(name) >= 3 and name.replace("_", "a").isalnum() for name in told)
    assert told == {name.lower() for name in told}


def test_the_same_gives_the_same_bytes_and_others_give_others():
    assert json.dumps(written()) == json.dumps(written())
    other = BOOK.model_copy(update={"id": "other"})
    assert not {*written()["workflow"]} & {*written(other)["workflow"]}
    assert written()["id"] != written(other)["id"]


def test_all_ids_are_ids_and_no_uuid_stands_for_two_things():
    document = written()
    ids = [
        document["id"],
        *document["workflow"],
        *document["agent_definitions"],
        *document["extension_definitions"],
        document["extension_definitions"][EXTENSION]["created_by"],
    ]
    assert all(kind_of(one) for one in ids)
    assert len({one.rpartition("--")[2] for one in ids}) == len(ids)


def test_two_steps_of_one_id_are_two_actions():
    twice = BOOK.model_copy(update={"steps": [BOOK.steps[1], BOOK.steps[1]]})
    assert len(actions(written(twice))) == 2


def test_a_playbook_without_steps_has_one_action_that_stands_for_none():
    document = written(Playbook(id="x", name="y"))
    (action,) = actions(document)
    assert action["step_extensions"] == {EXTENSION: {"placeholder": True}}


def test_who_is_not_named_is_a_placeholder_that_says_so():
    document = written(created_by=None)
    assert document["created_by"] == PLACEHOLDER_IDENTITY
    assert document["playbook_extensions"][EXTENSION]["created_by_placeholder"] is True


@pytest.mark.parametrize("author", ["me", AUTHOR.replace("identity", "group"), "", 7])
def test_who_is_no_identity_is_refused(author):
    with pytest.raises(PlaybookDefinitionError, match="created_by is no STIX identity") as caught:
        written(created_by=author)
    assert caught.value.code == "bad_identity"
    assert "identity--<uuid>" in caught.value.fix


def test_times_are_told_or_are_now():
    moment = datetime(2026, 11, 29, 5, tzinfo=UTC)
    with rb.settings(clock=lambda: moment):
        document = to_cacao(BOOK)
    assert document["created"] == document["modified"] == "2026-11-29T05:00:00.000Z"
    assert written(modified=moment)["modified"] == "2026-11-29T05:00:00.000Z"


def test_nothing_is_changed_before_it_is_made():
    with pytest.raises(PlaybookDefinitionError, match=r"modified .* is before created"):
        written(modified="2026-11-28T23:59:59.999Z")


def test_a_playbook_that_came_from_a_document_names_it():
    before = "playbook--22222222-2222-4222-8222-222222222222"
    book = BOOK.model_copy(update={"metadata": {"cacao": {"id": before}}})
    assert written(book)["derived_from"] == [before]
    assert "derived_from" not in written()
    odd = BOOK.model_copy(update={"metadata": {"cacao": {"id": "x"}}})
    assert "derived_from" not in written(odd)


def test_a_notebook_is_carried_whole_as_a_command():
    held = {"cells": [{"cell_type": "code", "source": "look()"}], "nbformat": 4}
    for notebook in (held, json.dumps(held)):
        document = written(notebooks={"detect": notebook})
        command = actions(document)[0]["commands"][-1]
        assert command["type"] == "jupyter"
        assert json.loads(base64.b64decode(command["command_b64"])) == held
        assert document["playbook_processing_summary"]["manual_playbook"] is False


def test_a_notebook_for_no_step_or_that_is_none_is_refused():
    with pytest.raises(PlaybookDefinitionError, match="did you mean 'detect'") as caught:
        written(notebooks={"detcet": {"cells": []}})
    assert caught.value.code == "unknown_step"
    for notebook in ("print(1)", {"a": 1}, "[]", 7):
        with pytest.raises(PlaybookDefinitionError, match="'detect' is no notebook") as caught:
            written(notebooks={"detect": notebook})
        assert caught.value.code == "bad_notebook"


@pytest.mark.parametrize(
    "value", [date(2026, 11, 29), {1, 2}, float("nan"), float("inf"), {1: "x"}, (1, 2), "\ud800"]
)
def test_what_json_would_change_is_refused(value):
    book = BOOK.model_copy(update={"metadata": {"found": value}})
    with pytest.raises(PlaybookDefinitionError) as caught:
        written(book)
    assert caught.value.code == "not_json"


def test_the_playbook_is_not_shared_with_its_document():
    book = BOOK.model_copy(update={"metadata": {"a": {"b": [1]}}})
    written(book)["playbook_extensions"][EXTENSION]["metadata"]["a"]["b"].append(2)
    assert book.metadata == {"a": {"b": [1]}}


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0, 0), (0.0004, 0), (0.0005, 0), (2, 2000), (1e308, None), (float("nan"), None), (-1, None)],
)
def test_times_are_whole_milliseconds_or_are_not_told(seconds, told):
    assert milliseconds(seconds) == told


@settings(max_examples=60, deadline=None)
@given(playbooks)
def test_whatever_the_playbook_its_document_can_be_read(book):
    assert problems_of(written(book)) == []


@SCHEMAS
def test_the_schemas_have_nothing_against_it():
    held = {"cells": [], "nbformat": 4}
    for document in (
        written(),
        written(created_by=None),
        written(Playbook(id="", name="")),
        written(notebooks={"sign": held}),
    ):
        assert faults(document) == []


@SCHEMAS
@settings(max_examples=25, deadline=None)
@given(playbooks)
def test_nor_against_that_of_any_playbook(book):
    assert faults(written(book)) == []


@SCHEMAS
def test_they_have_something_against_what_is_wrong():
    document = written()
    assert faults({**document, "created": "today"})
    assert faults({**document, "colour": "red"}) == [": playbook knows no 'colour'"]
    workflow = {**document["workflow"]}
    key = next(key for key in workflow if key.startswith("action"))
    for change in ({"agent": "me"}, {"commands": []}, {"colour": "red"}, {"timeout": "1"}):
        assert faults({**document, "workflow": {**workflow, key: {**workflow[key], **change}}})
