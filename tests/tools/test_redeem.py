from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from runbook_nb.artifacts import BoundArtifacts, InMemoryArtifacts
from runbook_nb.coverage import read_absence
from runbook_nb.errors import ArtifactError, DefinitionError, ToolRefused
from runbook_nb.settings import settings
from runbook_nb.tools import Session, Toolbox, ToolContext
from runbook_nb.tools.redeem import artifact_tool

NOBODY = "art_" + "a" * 22


def _file(box, data="all quiet", media="text/plain", **more):
    parcel = {"kind": "note", "mediaType": media, "data": data, **more}
    return box.artifacts.put_sync(parcel).meta


def _ask(box, op, **more):
    return box.call_sync("artifacts", {"op": op, **more})


@pytest.fixture
def box():
    return Toolbox([artifact_tool()], session=Session("mine"))


class TestReading:
    def test_gives_the_payload_with_what_the_ticket_says(self, box):
        meta = _file(box, label="a note")
        assert _ask(box, "artifact-get", ref=meta.ref) == {
            "ref": meta.ref,
            "kind": "note",
            "mediaType": "text/plain",
            "bytes": 9,
            "label": "a note",
            "text": "all quiet",
            "offset": 0,
            "shown": 9,
            "total": 9,
            "complete": True,
        }

    def test_json_comes_as_its_text(self, box):
        ref = _file(box, data={"rows": [1]}, media="application/json").ref
        assert json.loads(_ask(box, "artifact-get", ref=ref)["text"]) == {"rows": [1]}

    def test_the_ticket_alone_holds_no_payload(self, box):
        answer = _ask(box, "artifact-head", ref=_file(box).ref)
        assert list(answer) == ["ref", "kind", "mediaType", "bytes"]

    def test_bytes_are_named_not_guessed_at(self, box):
        ref = _file(box, data=b"\x00\x01", media="application/octet-stream").ref
        answer = _ask(box, "artifact-get", ref=ref)
        assert "text" not in answer
        assert "2 bytes that are not text" in answer["note"]

    def test_every_answer_is_strict_json(self, box):
        for ref in (_file(box, data="é\u0000").ref, NOBODY):
            json.dumps(_ask(box, "artifact-get", ref=ref), allow_nan=False)


class TestTheCeiling:
    def test_a_long_payload_comes_in_parts_that_add_up(self):
        box = Toolbox([artifact_tool(max_chars=4)])
        ref = _file(box, data="0123456789").ref
        text, offset, answers = "", 0, []
        while offset is not None:
            answer = _ask(box, "artifact-get", ref=ref, offset=offset)
            answers.append(answer)
            text += answer["text"]
            offset = answer.get("next_offset")
        assert text == "0123456789"
        assert [a["shown"] for a in answers] == [4, 4, 2]
        assert {a["total"] for a in answers} == {10}
        assert not any(a["complete"] for a in answers)
        assert answers[1]["note"] == "These are 4 characters of 10, from 4 on."

    def test_one_that_just_fits_is_complete(self):
        box = Toolbox([artifact_tool(max_chars=10)])
        answer = _ask(box, "artifact-get", ref=_file(box, data="0123456789").ref)
        assert answer["complete"] is True
        assert "next_offset" not in answer
        assert "note" not in answer

    def test_an_offset_past_the_end_shows_nothing_and_says_so(self, box):
        answer = _ask(box, "artifact-get", ref=_file(box).ref, offset=99)
        assert (answer["text"], answer["shown"], answer["total"]) == ("", 0, 9)
        assert answer["complete"] is False

    def test_an_offset_may_be_written_as_a_float(self, box):
        assert _ask(box, "artifact-get", ref=_file(box).ref, offset=4.0)["text"] == "quiet"

    @pytest.mark.parametrize("most", [0, -1, True, 1.5, "10"])
    def test_must_be_a_whole_number_from_one(self, most):
        with pytest.raises(DefinitionError, match="max_chars"):
            artifact_tool(max_chars=most)


class TestNothingThere:
    def test_unknown_expired_malformed_and_foreign_references_get_the_same_words(self):
        store = InMemoryArtifacts()
        box = Toolbox([artifact_tool()], artifacts=store, session=Session("mine"))
        foreign = _file(Toolbox(artifacts=store, session=Session("theirs"))).ref
        now = datetime(2026, 1, 1, tzinfo=UTC)
        with settings(clock=lambda: now):
            expired = _file(box, expiresAt=int(now.timestamp() * 1000) + 1000).ref
        with settings(clock=lambda: now + timedelta(hours=1)):
            answers = [
                _ask(box, op, ref=ref)
                for op in ("artifact-get", "artifact-head")
                for ref in (NOBODY, expired, "art_../x", "", foreign)
            ]
            answers.append(_ask(box, "artifact-get"))
        assert len({json.dumps(answer) for answer in answers}) == 1
        assert read_absence(answers[0]) is not None
        assert foreign not in json.dumps(answers[0])
        assert "artifact-list" in answers[0]["try_instead"]


class TestListing:
    def test_names_what_this_conversation_holds(self, box):
        refs = [_file(box, data=str(n)).ref for n in range(3)]
        answer = _ask(box, "artifact-list")
        assert {ticket["ref"] for ticket in answer["artifacts"]} == set(refs)
        assert (answer["shown"], answer["complete"]) == (3, True)
        assert "cursor" not in answer

    def test_goes_on_page_by_page(self, box):
        refs = {_file(box, data=str(n)).ref for n in range(45)}
        seen, cursor, sizes = set(), {}, []
        while True:
            answer = _ask(box, "artifact-list", **cursor)
            seen |= {ticket["ref"] for ticket in answer["artifacts"]}
            sizes.append(answer["shown"])
            assert answer["complete"] is False
            if "cursor" not in answer:
                break
            cursor = {"cursor": answer["cursor"]}
        assert sizes == [20, 20, 5]
        assert seen == refs


class TestWhereItReads:
    def test_a_given_store_is_read_within_the_session_of_the_call(self):
        store = InMemoryArtifacts()
        ref = _file(Toolbox(artifacts=store, session=Session("mine"))).ref
        reader = artifact_tool(store)
        args = {"op": "artifact-get", "ref": ref}
        mine = reader.execute_sync(args, ToolContext(session=Session("mine")))
        assert mine["text"] == "all quiet"
        theirs = reader.execute_sync(args, ToolContext(session=Session("theirs")))
        assert read_absence(theirs)

    def test_bound_artifacts_are_read_as_they_are(self):
        bound = BoundArtifacts(InMemoryArtifacts(), Session("x").scope)
        filed = bound.put_sync({"kind": "k", "mediaType": "text/plain", "data": "here"})
        reader = artifact_tool(bound, name="archive")
        answer = reader.execute_sync({"op": "artifact-get", "ref": filed.meta.ref})
        assert answer["text"] == "here"
        assert reader.name == "archive"

    def test_without_any_store_it_says_how_to_get_one(self):
        box = Toolbox([artifact_tool()], artifacts=None)
        with pytest.raises(ArtifactError, match="no artifact store"):
            _ask(box, "artifact-list")

    def test_what_is_no_store_is_refused(self):
        with pytest.raises(DefinitionError, match="artifact_tool cannot read"):
            artifact_tool("memory")


class TestArguments:
    @pytest.mark.parametrize(
        "args",
        [
            {},
            {"op": "artifact-delete"},
            {"op": "get"},
            {"op": "artifact-get", "ref": 3},
            {"op": "artifact-get", "offset": -1},
            {"op": "artifact-get", "reff": "x"},
        ],
    )
    def test_other_requests_are_refused_before_anything_is_read(self, box, args):
        with pytest.raises(ToolRefused) as caught:
            box.call_sync("artifacts", args)
        assert caught.value.code == "invalid_arguments"
