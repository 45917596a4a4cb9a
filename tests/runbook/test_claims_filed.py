"""What a filed walk says is held against the dossier, whoever signed it last."""

import json
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from forging import ANSWERS, ROWS, answer, changed, judging, long_way, triaged, written

import runbook_nb as rb
from runbook_nb.artifacts import Record
from runbook_nb.runbook.claims_filed import conditions_of

REFS = {"walk": "ref", "columns": "columns_ref"}


class Beside:
    """What a file carries of a store, some of it written anew."""

    def __init__(self, envelope, **anew):
        walk, self.beside = envelope["result"]["walk"], {}
        for name, key in {**REFS, "recording": "recording_ref"}.items():
            record = envelope.artifacts.get_sync(walk[key]) if key in walk else None
            if record is not None:
                self.beside[walk[key]] = anew.get(name, lambda one: one)(record)

    def get_sync(self, ref):
        return self.beside.get(ref)


def signed(change):
    """Give what changes the rows of a walk and writes their size anew."""

    def anew(record):
        rows = json.loads(record.data)
        change(rows)
        data = json.dumps(rows)
        return Record(replace(record.meta, bytes=len(data.encode())), data)

    return anew


def copy_of(envelope, **anew):
    return rb.Envelope.from_dict(written(envelope), Beside(envelope, **anew))


@cache
def filing(form="json"):
    return long_way(ROWS, walk={"form": form})


def condition(rows, number):
    return [row for row in rows if row["type"] == "condition"][number]


def contradicted(envelope):
    return [claim.id for claim in envelope.verify().contradicted]


@pytest.mark.parametrize("name", ANSWERS)
def test_the_walk_that_was_filed_bears_out_every_decision(name):
    envelope = answer(name)
    checked = copy_of(envelope).verify()
    assert [claim.sentence for claim in checked.contradicted] == []
    made = [one for one in envelope.dossier.subjects() if one.decision is not None]
    claims = [claim for claim in checked if claim.id.startswith("ticket.walk.decision")]
    assert sum(claim.count for claim in claims) == len(made)
    hidden = {claim.because for claim in claims if claim.status != "confirmed"}
    assert hidden == ({"some of it is hidden"} if name == "hidden" else set())


@pytest.mark.parametrize("word", ["fresh", "2", "tier"])
def test_a_decision_told_otherwise_in_a_walk_signed_again_is_found_out(word):
    """Its row still has the number, the kind and the size that the answer says."""

    def tell(rows):
        row = condition(rows, 0)
        assert word in row["text"]
        row["text"] = row["text"].replace(word, "x" * len(word), 1)

    [id_] = contradicted(copy_of(filing(), walk=signed(tell)))
    assert id_ == "ticket.walk.decision[host=web-1]"


def test_decisions_that_changed_places_are_found_out():
    def swap(rows):
        one, other = condition(rows, 0), condition(rows, 2)
        one["text"], other["text"] = other["text"], one["text"]

    found = contradicted(copy_of(filing(), walk=signed(swap)))
    assert found == [f"ticket.walk.decision[host=web-{n}]" for n in (1, 3)]


def test_a_decision_that_a_whole_walk_lacks_is_found_out():
    def lose(rows):
        condition(rows, 1)["type"] = "step"

    checked = copy_of(filing(), walk=signed(lose)).verify()
    claim = checked["ticket.walk.decision[host=web-2]"]
    assert (claim.status, claim.found) == ("contradicted", None)


def test_a_decision_past_the_cap_of_the_walk_cannot_be_checked():
    envelope = long_way(ROWS, walk={"cap": 3})
    checked = copy_of(envelope).verify()
    assert checked.ok
    found = {c.status: c for c in checked if c.id.startswith("ticket.walk.decision")}
    assert found["cannot be checked"].because == "its row is past the cap of the filed walk"
    assert sum(claim.count for claim in found.values()) == len(ROWS)


def test_what_the_rows_say_besides_is_named_as_unchecked():
    claim = copy_of(filing()).verify()["ticket.walk.text"]
    assert claim.sentence == (
        "ticket.walk.text cannot be checked, because nothing independent is carried"
    )
    document = written(filing())
    del document["dossier"]
    bare = rb.Envelope.from_dict(document, Beside(filing())).verify()
    assert bare["ticket.walk.decision"].status == "cannot be checked"


def test_stages_are_called_as_in_the_walk_that_was_filed():
    place = ("dossier", "structure", "nodes", 0, "name")
    document = changed(written(filing()), place, "another")
    assert rb.Envelope.from_dict(document).verify().ok
    found = contradicted(rb.Envelope.from_dict(document, Beside(filing())))
    assert found == ["structure.name[read]"]


@pytest.mark.parametrize("form", ["columns", "arrow"])
def test_a_whole_walk_of_another_run_is_found_out(form):
    other = long_way([*ROWS[:4], {**ROWS[4], "days": 1}], walk={"form": form})
    stolen = other.artifacts.get_sync(other["result"]["walk"]["columns_ref"])
    envelope = filing(form)
    assert copy_of(envelope).verify().ok
    forged = written(envelope)
    lying = {"columns": lambda record: Record(record.meta, stolen.data)}
    for name in ("columns_bytes", "columns_rows", "columns_total"):
        forged["result"]["walk"][name] = other["result"]["walk"][name]
    checked = rb.Envelope.from_dict(forged, Beside(envelope, **lying)).verify()
    found = {claim.id for claim in checked.contradicted}
    assert "ticket.columns.rows" in found
    assert "ticket.columns.decision[host=web-5]" in found


def test_a_digest_in_the_descriptor_is_held_to_what_was_filed():
    envelope = triaged()
    document = changed(written(envelope), ("result", "walk", "digest"), "sha-256:0")
    checked = rb.Envelope.from_dict(document, Beside(envelope)).verify()
    assert checked["ticket.walk.digest"].basis == "what the store holds"
    assert "ticket.walk.digest" in [claim.id for claim in checked.contradicted]


@pytest.mark.parametrize("part", REFS)
def test_a_ticket_of_nothing_that_is_carried_is_found_out(part):
    envelope = filing("columns")
    document = changed(written(envelope), ("result", "walk", REFS[part]), "art_another")
    claim = rb.Envelope.from_dict(document, Beside(envelope)).verify()[f"ticket.{part}"]
    assert claim.status == "contradicted"
    assert claim.said.endswith("filed beside it stands under another ticket")


def test_decisions_are_told_by_where_they_were_made():
    fork = {"type": "fork", "subflow": None, "runtime_stage_id": "each#1"}
    inner = {"type": "fork", "subflow": "each~1", "runtime_stage_id": "each~1/in#4"}
    rows = [
        fork,
        {"type": "condition", "subflow": "each~0", "text": "a"},
        {"type": "condition", "subflow": "each~0", "text": "b"},
        {**fork, "runtime_stage_id": "each#9"},
        {"type": "condition", "subflow": "each~0", "text": "c"},
        inner,
        {"type": "condition", "subflow": "each~1/in~7", "text": "d"},
        {"type": "condition", "subflow": None, "text": "e"},
    ]
    assert conditions_of(rows, ["each", "each/in"]) == {
        ("each", 0, 0): ("a", "b"),
        ("each", 1, 0): ("c",),
        ("each/in", 0, 7): ("d",),
        ("", 0, 0): ("e",),
    }


def test_a_function_is_told_by_the_beginning_of_its_row():
    def old(facts):
        return facts["days"] > 7

    rules = rb.RuleSet("by-function", "1", [rb.Rule(old, "old", label="o")], "fresh")
    envelope = long_way(ROWS[:1], branch=judging(rules), rules=rules)
    assert copy_of(envelope).verify()["ticket.walk.decision"].status == "confirmed"

    def tell(rows):
        condition(rows, 0)["text"] = "old by rule 1 of by-function 1"

    assert contradicted(copy_of(envelope, walk=signed(tell))) == [
        "ticket.walk.decision[host=web-1]"
    ]


# --- the order of rows --------------------------------------------------------------------------


def ranked(**more):
    return long_way(ROWS, verdicts={"decider": "Posture", "rank": ["old", "fresh"]}, **more)


def test_the_rank_is_carried_and_the_rows_stand_in_it():
    envelope = ranked()
    assert envelope.dossier.rank == ("old", "fresh")
    document = written(envelope)
    copy = rb.Envelope.from_dict(document)
    assert copy.dossier.rank == ("old", "fresh")
    checked = copy.verify()
    assert checked["rows.ranked"].basis == "the rank that is carried"
    assert checked["rows.rank.words"].status == "cannot be checked"
    assert "rank" not in written(long_way(ROWS))["dossier"]


@pytest.mark.parametrize("place", [("dossier", "rank", 0), ("dossier", "ranked"), None])
def test_rows_that_left_their_rank_are_found_out(place):
    document = written(ranked())
    if place is None:  # the worst row goes last, in the answer and in its dossier
        for held in (document["result"]["verdicts"], document["dossier"]["rows"]):
            held.append(held.pop(0))
    else:
        document = changed(document, place, "declined" if place[-1] == 0 else False)
    found = contradicted(rb.Envelope.from_dict(document))
    assert ("rows.ranked" if place and place[-1] == "ranked" else "rows.rank") in found


def test_a_rank_of_which_a_word_is_hidden_cannot_be_checked():
    checked = rb.Envelope.from_dict(written(ranked(redact={"values": ["fresh"]}))).verify()
    assert checked.ok
    assert checked["rows.rank.words"].because == "some of it is hidden"
