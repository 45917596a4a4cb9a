"""Policies over words and numbers that are also names of our own forms."""

from __future__ import annotations

import json

import pytest

import runbook_nb as rb

RULES = rb.RuleSet(
    "r", "v1", [rb.Rule({"age": {"gt": 7}}, "old", label="the name is old")], rb.Default("new")
)
ROWS = [
    {"cluster": "a", "age": 9, "acct": 987654321, "note": "see 987654321"},
    {"cluster": "b", "age": 1, "acct": 5, "note": "none"},
]


def answer(**policy):
    return rb.triage(
        ROWS, RULES, subject="cluster", source="s", columns=["acct", "note"], redact=policy
    )


@pytest.mark.parametrize(
    "word",
    ["name", "kind", "stage", "key", "what", "rules", "verdict", "status", "a", "subject", "id"],
)
def test_a_secret_spelt_like_a_name_of_ours_leaves_every_form_readable(word, tmp_path):
    envelope = answer(values=[word])
    assert list(envelope) == ["af_coverage", "result"]
    copy = rb.Envelope.from_dict(json.loads(envelope.to_json(dossier=True)))
    assert copy["result"]["rows_total"] == 2
    envelope.to_notebook(tmp_path / "x.ipynb")
    assert rb.Envelope.from_notebook(tmp_path / "x.ipynb")["result"]["rows_total"] == 2
    for shown in (envelope, envelope.walk, envelope.run.structure, envelope.run.recording()):
        assert "cannot be shown" not in str(shown)
        assert "cannot be shown" not in repr(shown)


def test_a_number_whose_digits_are_a_secret_is_hidden_as_its_text_is():
    rows = answer(values=["987654321"])["result"]["verdicts"]
    assert rows[0]["acct"] == "[REDACTED]"
    assert rows[0]["note"] == "see [REDACTED]"
    assert rows[1]["acct"] == 5


def test_digits_under_a_hidden_name_are_hidden_wherever_they_reappear():
    envelope = answer(keys=["acct"])
    assert envelope["result"]["verdicts"][0]["note"] == "see [REDACTED]"
    assert "987654321" not in envelope.to_json(dossier=True)
    assert "987654321" not in envelope._repr_mimebundle_()[0]["text/html"]
