"""The lines a newcomer reads first: why nothing was decided, and what to write instead."""

from __future__ import annotations

import datetime as dt
import json
import pickle

import pandas as pd
import pytest

import runbook_nb as rb
from runbook_nb.render.bundle import HTML
from runbook_nb.rules.notes import Note
from runbook_nb.runbook.gaps import declined_gap, telling_note

ROWS = [{"host": f"web-{n:02}", "disk_pct": 20 + n, "owner": "ann"} for n in range(50)]
DAY = dt.date.fromisoformat("2026-09-01")
STAMPS = pd.DataFrame(
    {
        "host": [f"web-{n:02}" for n in range(50)],
        "patched": pd.to_datetime([f"2026-0{1 + n % 9}-11" for n in range(50)]),
    }
)
DECLINED = "50 row(s) that reached NO classification (verdict 'declined')"


def judged(when, rows=ROWS, **more):
    rules = rb.RuleSet("disk", "v1", [rb.Rule(when, "full")], "ok")
    return rb.triage(rows, rules, subject="host", source="hosts, 50 rows", **more)


def lines(envelope):
    """Give the last lines of the text: those about what was not checked."""
    text = str(envelope).splitlines()
    assert max(map(len, text)) <= 100
    return text[next(n for n, line in enumerate(text) if line.startswith("not checked")) :]


@pytest.mark.parametrize(
    ("when", "rows", "said", "fix"),
    [
        (
            {"disk_pc": {"gt": 90}},
            ROWS,
            "rule 1: not one of 50 subjects has disk_pc",
            "did you mean 'disk_pct'? a key nobody has decides nothing",
        ),
        (
            {"disk_pct": {"gt": "90"}},
            ROWS,
            "rule 1: disk_pct is a number, not text (all 50)",
            "write 90 as the limit, without quotes",
        ),
        (
            {"disk_pct": {"gt": 90}},
            [{**row, "disk_pct": f"{row['disk_pct']}%"} for row in ROWS],
            "rule 1: disk_pct is text, not a number (all 50)",
            "turn the text into a number before judging",
        ),
        (
            {"patched": {"lt": DAY}},
            STAMPS,
            "rule 1: patched is a datetime without a zone, not a date (all 50)",
            "write datetime(2026, 9, 1) as the limit",
        ),
        (
            {"patched": {"lt": "2026-09-01"}},
            STAMPS,
            "rule 1: patched is a datetime without a zone, not text (all 50)",
            "write datetime(2026, 9, 1) as the limit, without quotes",
        ),
    ],
)
def test_the_text_says_why_everything_was_declined_and_what_to_write(when, rows, said, fix):
    envelope = judged(when, rows)
    assert lines(envelope) == [f"not checked: {said}; and 1 more", f"fix: {fix}"]
    page = envelope._repr_mimebundle_()[0][HTML]
    lead = f"{said[:1].upper()}{said[1:]}."
    assert page.index(lead) < page.index("50 row(s) that reached NO classification")


def test_the_ledger_keeps_its_order_on_the_wire():
    envelope = judged({"disk_pc": {"gt": 90}})
    whats = [item["what"] for item in envelope["af_coverage"]["not_checked"]]
    assert whats == [DECLINED, "rule 1 of disk v1: not one of 50 subjects has disk_pc"]


def test_what_a_source_did_not_check_does_not_stand_before_why_nothing_was_decided():
    envelope = judged({"disk_pc": {"gt": 90}}, not_checked=["the tapes"])
    assert lines(envelope)[0] == (
        "not checked: rule 1: not one of 50 subjects has disk_pc; and 2 more"
    )


@pytest.mark.parametrize(
    "copied",
    [
        lambda envelope: rb.Envelope.from_dict(json.loads(envelope.to_json(dossier=True))),
        lambda envelope: pickle.loads(pickle.dumps(envelope)),  # noqa: S301 - made a moment ago
    ],
)
def test_a_copy_with_its_dossier_says_the_same(copied):
    envelope = judged({"disk_pc": {"gt": 90}})
    assert str(copied(envelope)) == str(envelope)


def test_a_copy_of_the_wire_knows_no_kinds_and_still_tells_more_than_how_many_were_declined():
    copy = rb.Envelope.from_dict(json.loads(judged({"disk_pc": {"gt": 90}}).to_json()))
    assert lines(copy) == [
        "not checked: rule 1 of disk v1: not one of 50 subjects has disk_pc; and 1 more"
    ]


def test_a_dossier_of_rules_that_work_is_written_as_it_was():
    assert "telling" not in judged({"disk_pct": {"gt": 90}}).dossier.to_dict()


def test_a_declined_row_alone_is_told_as_it_was():
    rows = [{**row, "disk_pct": None} if n == 3 else row for n, row in enumerate(ROWS)]
    assert lines(judged({"disk_pct": {"gt": 90}}, rows)) == [
        "not checked: 1 row(s) that reached NO classification (verdict 'declined')"
    ]


def test_a_rule_nobody_needed_to_read_is_not_the_reason():
    """Whose owner is nowhere recorded is decided by that: the key is noted, and nothing failed."""
    envelope = judged({"owned_by": {"missing": True}})
    assert envelope.dossier.telling == ()
    assert lines(envelope) == [
        "not checked: rule 1 of disk v1: not one of 50 subjects has owned_by"
    ]


def test_of_several_reasons_the_one_of_most_subjects_is_told():
    notes = [
        Note("one_side", 0, "a", "a", "a", "a", 99),
        Note("type_mismatch", 1, "b", "b", "b", "b", 3),
        Note("never_there", 2, "c", "c", "c", "c", 7),
        Note("type_mismatch", 3, "d", "d", "d", "d", 7),
    ]
    assert telling_note(notes) is notes[2]
    assert telling_note(notes[:1]) is None


def test_the_entry_for_declined_rows_is_known_by_its_reason():
    assert declined_gap(1).why == declined_gap(50).why


def test_a_secret_stays_out_of_the_first_lines():
    envelope = judged(
        {"disk_pct": {"gt": "90-secret"}}, redact={"values": ["90-secret"], "keys": ["disk_pct"]}
    )
    assert "90-secret" not in str(envelope)
    assert "90-secret" not in " ".join(envelope.dossier.telling)


# -- subjects with several rows -------------------------------------------------------------------


def repeated(*places):
    return [*ROWS, *(ROWS[place] for place in places)]


def test_subjects_with_several_rows_are_named():
    envelope = judged({"disk_pct": {"gt": 90}}, repeated(0, 1, 1))
    assert str(envelope).splitlines()[-1] == "2 subjects have more than one row: web-00 and web-01"
    assert (
        "2 subjects have more than one row: web-00 and web-01."
        in (envelope._repr_mimebundle_()[0][HTML])
    )
    assert str(judged({"disk_pct": {"gt": 90}}, repeated(4))).endswith(
        "1 subject has more than one row: web-04"
    )
    many = judged({"disk_pct": {"gt": 90}}, repeated(*range(7)))
    assert str(many).endswith("more than one row: web-00, web-01, web-02 and 4 more")


def test_nothing_is_said_where_every_subject_has_one_row():
    assert "more than one row" not in str(judged({"disk_pct": {"gt": 90}}))


def test_the_wire_does_not_change_by_it():
    assert "more than one row" not in judged({"disk_pct": {"gt": 90}}, repeated(0)).to_json()


def test_hidden_subjects_are_not_taken_for_one():
    envelope = judged({"disk_pct": {"gt": 90}}, redact={"keys": ["host"]})
    assert "more than one row" not in str(envelope)


def test_a_column_that_names_no_subject_is_not_taken_for_one(call):
    """A copy of the wire alone does not know what its first column is."""
    wire = json.loads(judged({"disk_pct": {"gt": 90}}, repeated(0)).to_json())
    assert "more than one row" not in str(rb.Envelope.from_dict(wire))


def test_very_many_rows_are_not_looked_through(calls_of, monkeypatch):
    from runbook_nb.runbook import cards

    monkeypatch.setattr(cards, "MOST_LOOKED_AT", 50)
    assert "more than one row" not in str(judged({"disk_pct": {"gt": 90}}, repeated(0)))
