"""Shapes: published names, nothing to change, and displays that tell no secrets."""

import copy
import json
import pickle

import pytest

from runbook_nb._display import through
from runbook_nb._frozen import freeze
from runbook_nb.artifacts import (
    ArtifactPage,
    ArtifactScope,
    PutResult,
    Record,
    Swept,
    Ticket,
)
from runbook_nb.errors import ArtifactError
from runbook_nb.settings import settings

REF = "art_" + "aB3" * 7 + "z"
# --- scopes ------------------------------------------------------------------------------------


def test_scopes_are_equal_only_when_all_three_parts_are():
    assert ArtifactScope("c") == ArtifactScope("c")
    others = {ArtifactScope("c"), ArtifactScope("c", "t"), ArtifactScope("c", None, "t")}
    assert len(others) == 3


@pytest.mark.parametrize(
    "parts", [("",), (" ",), (None,), (5,), ("c", ""), ("c", 5), ("c", "t", " ")]
)
def test_a_scope_has_no_blank_parts(parts):
    with pytest.raises(ArtifactError, match="scope"):
        ArtifactScope(*parts)


# --- tickets and records -----------------------------------------------------------------------

TICKET = Ticket(
    ref=REF,
    kind="recording/run",
    media_type="application/json",
    bytes=7,
    created_at=0,
    label="nightly",
    digest="sha-256:00",
    expires_at=5,
    origin=freeze({"runId": "run-77", "toolCallId": "call-77"}),
    parent_refs=("art_" + "p" * 22,),
)
BARE = Ticket(ref=REF, kind="k", media_type="m", bytes=1, created_at=0)


def test_a_ticket_writes_its_published_names_in_order():
    assert list(TICKET.to_dict()) == [
        *("ref", "kind", "mediaType", "bytes", "createdAt", "label", "digest", "expiresAt"),
        *("origin", "parentRefs"),
    ]
    assert list(BARE.to_dict()) == ["ref", "kind", "mediaType", "bytes", "createdAt"]
    assert json.loads(json.dumps(TICKET.to_dict())) == TICKET.to_dict()


def test_shapes_are_read_by_their_published_names_too():
    record = Record(TICKET, "[1]")
    assert record["meta"] is record.meta is TICKET
    assert record["data"] == record.data == "[1]"
    assert TICKET["mediaType"] == TICKET.media_type
    assert dict(TICKET) == TICKET.to_dict()
    assert dict(ArtifactPage(artifacts=(BARE,))) == {"artifacts": (BARE,)}
    assert ArtifactPage(artifacts=(), cursor="c")["cursor"] == "c"
    gone = Swept.of(TICKET, "ttl")
    assert dict(PutResult(meta=BARE, swept=(gone,))) == {"meta": BARE, "swept": (gone,)}
    assert gone.to_dict() == {"ref": REF, "reason": "ttl", "kind": "recording/run", "bytes": 7}
    with pytest.raises(KeyError):
        BARE["label"]


def test_shapes_cannot_be_changed_and_travel():
    with pytest.raises(AttributeError):
        TICKET.kind = "other"
    with pytest.raises(TypeError):
        TICKET.origin["runId"] = "other"
    record = Record(TICKET, b"x")
    assert pickle.loads(pickle.dumps(record)) == copy.deepcopy(record) == record  # noqa: S301
    assert freeze([record])[0] is record
    assert len({TICKET, copy.copy(TICKET), BARE}) == 2


@pytest.mark.parametrize(
    "shape",
    [
        TICKET,
        Record(TICKET, "secret payload"),
        Record(TICKET, b"secret payload"),
        PutResult(meta=TICKET, swept=(Swept.of(TICKET, "ttl"),)),
        Swept.of(TICKET, "max-bytes"),
        ArtifactPage(artifacts=(TICKET,), cursor="1:" + REF),
    ],
    ids=lambda shape: type(shape).__name__,
)
def test_no_display_tells_references_ids_or_payloads(shape):
    for shown in (repr(shape), str(shape), shape.to_markdown(), repr([shape])):
        for hidden in ("art_", "run-77", "call-77", "secret"):
            assert hidden not in shown
        assert "cannot be shown" not in shown


def test_references_and_ids_are_shown_on_request():
    with settings(show_refs=True):
        shown = TICKET.to_markdown() + ArtifactPage(artifacts=(TICKET,)).to_markdown()
    assert shown.count(REF) == 2
    assert "run-77" in shown
    assert "call-77" in shown
    assert "art_" + "p" * 22 in shown


def test_a_ticket_shows_kind_size_and_label():
    assert repr(TICKET) == "<Ticket nightly · recording/run · 7 bytes>"
    assert repr(BARE) == "<Ticket k · 1 byte>"
    assert "1 artifact" in TICKET.to_markdown()
    assert "1970-01-01T00:00:00.000Z" in TICKET.to_markdown()


def test_an_expiry_past_the_last_year_is_still_shown():
    never = Ticket(ref=REF, kind="k", media_type="m", bytes=1, created_at=0, expires_at=10**18)
    assert "1000000000000000000 ms" in never.to_markdown()


def test_a_page_shows_a_row_per_ticket_and_says_when_more_follow():
    page = ArtifactPage(artifacts=(TICKET, BARE), cursor="x")
    assert str(page).splitlines()[0] == "Artifacts · 2 artifacts, more follow"
    with settings(max_table_rows=1):
        table = ArtifactPage(artifacts=(TICKET, BARE)).view().sections[0].parts[0]
    assert (len(table.rows), table.total) == (1, 2)


def test_hostile_labels_and_kinds_are_shown_as_what_they_are():
    hostile = "\x1b[31m\u202e\n</style><img onerror=x>" + "x" * 300
    ticket = Ticket(ref=REF, kind=hostile, media_type=hostile, bytes=1, created_at=0, label=hostile)
    for shown in (repr(ticket), str(ArtifactPage(artifacts=(ticket,))), ticket.to_markdown()):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    assert len(through("line", ticket.view())) <= 100
