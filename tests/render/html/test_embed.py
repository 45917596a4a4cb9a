"""The machine-readable form inside an output: what it holds, what fits, what is refused."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import pytest

import runbook_nb as rb
from runbook_nb._ids import SeededIds
from runbook_nb._json import byte_size, canonical, encode
from runbook_nb.render.embed import MAX_EMBEDDED, comment_of, embed, read_embedded
from runbook_nb.render.html import render_html
from runbook_nb.settings import settings

COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def rules():
    return rb.RuleSet(
        "age", "v1", [rb.Rule({"days": {"gt": 7}}, "old", label="older")], rb.Default("fresh")
    )


def envelope(n=3, seed="one", **more):
    with settings(ids=SeededIds(seed)):
        rows = [{"host": f"host-{k}", "days": k % 20} for k in range(n)]
        return rb.triage(rows, rules(), subject="host", source="rows made here", **more)


def comment(value):
    text = value if isinstance(value, bytes) else canonical(value).encode()
    packed = base64.b64encode(text).decode()
    return f"<!--runbook_nb:payload/1 sha-256:{hashlib.sha256(text).hexdigest()} {packed}-->"


def test_an_envelopes_html_carries_it_in_one_comment():
    html = render_html(envelope().view())
    assert len(COMMENT.findall(html)) == 1
    read = read_embedded(html)
    assert read["format"] == "runbook_nb/envelope/1"
    assert read["carried"] == {"rows": [3, 3], "subjects": [3, 3]}


def test_what_was_carried_makes_an_envelope_that_explains_itself():
    shown = envelope(20)
    copy = rb.Envelope.from_dict(read_embedded(render_html(shown.view()))["envelope"])
    assert copy.verdicts == shown.verdicts
    assert copy.ledger == shown.ledger
    assert copy.why("host-9").sentence == shown.why("host-9").sentence


def test_nothing_that_differs_from_run_to_run_is_carried():
    one, other = envelope(seed="one"), envelope(seed="other")
    assert one["result"]["walk"]["ref"] != other["result"]["walk"]["ref"]
    assert embed(one) == embed(other)
    carried = canonical(read_embedded(embed(one)))
    assert "art_" not in carried
    assert one["result"]["af_provenance"]["toolCallId"] not in carried


def test_a_digest_of_what_was_filed_stands_for_the_ticket():
    shown = envelope()
    walk = read_embedded(embed(shown))["envelope"]["result"]["walk"]
    assert walk["digest"].startswith("sha-256:")
    assert "ref" not in walk
    rows = [row.to_dict() for row in shown.walk.project(walk["shown"]).rows]
    filed = rb.chart_walk_put_input(rows)["data"]
    assert walk["digest"] == "sha-256:" + hashlib.sha256(filed.encode()).hexdigest()


def test_references_in_the_authors_own_fields_are_left_out_as_well():
    shown = envelope()
    wire = shown.to_dict()
    wire["result"]["evidence"] = "see art_" + "a" * 22
    carried = read_embedded(embed(rb.Envelope.from_dict(wire)))
    assert carried["envelope"]["result"]["evidence"] == "see [reference]"


def test_a_copy_without_its_dossier_carries_the_wire_form():
    copy = rb.Envelope.from_dict(envelope().to_dict())
    read = read_embedded(embed(copy))
    assert read["carried"] == {}
    assert "dossier" not in read["envelope"]
    assert read["envelope"]["result"]["verdicts"] == envelope().to_dict()["result"]["verdicts"]


def test_the_switch_turns_it_off():
    with settings(embed=False):
        assert COMMENT.findall(render_html(envelope().view())) == []


def test_other_cards_carry_nothing():
    assert embed(rules()) == ""
    assert read_embedded(render_html(rules().view())) is None


def test_a_large_answer_is_carried_up_to_its_cap_in_the_order_it_is_shown():
    shown = envelope(5000)
    packed = embed(shown)
    assert MAX_EMBEDDED * 0.9 < len(packed) <= MAX_EMBEDDED
    read = read_embedded(packed)
    kept, total = read["carried"]["rows"]
    assert 0 < kept < total == 5000
    dossier = read["envelope"]["dossier"]
    assert [row["host"] for row in dossier["rows"]] == [f"host-{k}" for k in range(kept)]
    assert len(dossier["subjects"]) == read["carried"]["subjects"][0] == kept


def test_an_export_carries_all_of_it():
    read = read_embedded(embed(envelope(600), most=None))
    assert read["carried"] == {"rows": [600, 600], "subjects": [600, 600]}


@pytest.mark.parametrize("most", [3_000, 6_000, 9_000, 20_000])
def test_any_cap_is_kept_to(most):
    packed = embed(envelope(100), most=most)
    assert byte_size(packed) <= most
    read = read_embedded(packed)
    assert read is None or read["format"] == "runbook_nb/envelope/1"


def test_ranked_rows_bring_the_subjects_they_are_about():
    from states import box_of, many_rows, posture_v3

    box = box_of(
        list(reversed(many_rows(400))),
        posture_v3(),
        ("protected", "unprotected", "exempt", "declined"),
        rank=["unprotected", "declined", "protected"],
        cap=400,
    )
    shown = box.call_sync("backup_triage", {})
    dossier = read_embedded(embed(shown, most=40_000))["envelope"]["dossier"]
    first = [row["subject"] for row in dossier["rows"][:7]]
    assert [s["subject"] for s in dossier["subjects"][:7]] == first
    assert {row["verdict"] for row in dossier["rows"][:7]} == {"unprotected"}


def test_what_a_policy_hides_is_not_carried():
    with settings(ids=SeededIds("x")):
        rows = [{"host": "a", "days": 9, "token": "s3cr3t-t0ken"}]
        shown = rb.triage(rows, rules(), subject="host", source="a row", redact={"keys": ["token"]})
    assert "s3cr3t" not in canonical(read_embedded(embed(shown)))


def test_the_form_is_compact_json():
    packed = COMMENT.search(render_html(envelope().view()))[0].split(" ")[2][:-3]
    text = base64.b64decode(packed).decode()
    assert text == encode(json.loads(text))


def test_rows_keep_the_order_of_their_columns_whose_first_names_the_subject():
    rows = [{"zone": "z1", "age": 9}, {"zone": "z2", "age": 1}]
    by_age = rb.RuleSet("age", "v1", [rb.Rule({"age": {"gt": 7}}, "old")], rb.Default("new"))
    shown = rb.triage(rows, by_age, subject="zone", source="rows made here")
    copy = rb.Envelope.from_dict(read_embedded(embed(shown))["envelope"])
    assert [list(row) for row in copy.verdicts] == [list(row) for row in shown.verdicts]
    assert copy.why("z1").sentence == shown.why("z1").sentence
    assert str(copy).splitlines()[1] == str(shown).splitlines()[1]


# --- reading what anybody may have written -----------------------------------------------------


def test_a_whole_comment_is_read():
    assert read_embedded(f"<p>{comment({'a': 1})}</p>") == {"a": 1}


@pytest.mark.parametrize(
    "html",
    [
        "",
        "<p>nothing</p>",
        comment({"a": 1}) + comment({"a": 2}),
        comment({"a": 1}).replace("sha-256:", "sha-256:0", 1),
        comment([1, 2]),
        comment(b"not json"),
        comment(b'{"a": NaN}'),
        comment(b"\xff\xfe"),
        comment(b"[" * 100_000),
        comment(b'{"a":' + b"9" * 10_000 + b"}"),
        comment({"a": 1}).replace("-->", "=-->"),
        comment({"a": 1}).replace("-->", ""),
    ],
    ids=range(12),
)
def test_anything_else_reads_as_nothing(html):
    assert read_embedded(html) is None


def test_one_changed_letter_is_noticed():
    whole = comment({"rows": 3, "verdict": "protected"})
    start = whole.index(" ") + 1
    for place in range(start, start + 20):
        changed = whole[:place] + ("A" if whole[place] != "A" else "B") + whole[place + 1 :]
        assert read_embedded(changed) is None


def test_more_than_can_be_meant_is_not_read(monkeypatch):
    monkeypatch.setattr("runbook_nb.render.embed.MAX_READ", 50)
    assert read_embedded(comment({"a": "x" * 100})) is None


def test_text_in_a_view_cannot_pass_for_the_comment():
    forged = comment({"forged": True})
    shown = rb.triage(
        [{"host": forged, "days": 1}], rules(), subject="host", source=forged, name="t"
    )
    assert read_embedded(render_html(shown.view()))["format"] == "runbook_nb/envelope/1"
    with settings(embed=False):
        assert read_embedded(render_html(shown.view())) is None


def test_a_payload_that_cannot_be_made_is_named_and_the_answer_still_shown():
    from dataclasses import replace

    def broken(most):
        raise RuntimeError("no payload")

    card = replace(envelope().view(), payload=broken)
    html = render_html(card)
    assert "no machine-readable form is carried: RuntimeError" in html
    assert "host-1" in html


def test_a_payload_that_does_not_fit_at_all_leaves_no_comment():
    assert comment_of(lambda most: None) == ""
