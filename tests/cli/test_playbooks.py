"""Writing a playbook in another form."""

import json
from pathlib import Path

import pytest

import runbook_nb as rb
from runbook_nb.playbooks.cacao import EXTENSION, PLACEHOLDER_IDENTITY

AUTHOR = "identity--11111111-1111-4111-8111-111111111111"
WHEN = "2026-11-29T00:00:00+00:00"
BOOK = """\
id: refund
name: Refund
steps:
- id: triage
  description: Look the order up.
  expected_tools: [lookup_order]
- id: pay
  description: Pay.
  x-owner: é
"""


@pytest.fixture(autouse=True)
def given(call):
    Path("a.yaml").write_text(BOOK, encoding="utf-8")


def test_what_is_written_as_cacao_is_read_natively_as_it_was(call):
    status, out, err = call("export", "a.yaml", "--to", "cacao", "--created-by", AUTHOR)
    assert (status, err) == (0, "")
    document = json.loads(out)
    assert document["created_by"] == AUTHOR
    Path("b.json").write_text(out, encoding="utf-8")
    status, out, err = call("export", "b.json", "--to", "native")
    assert (status, err) == (0, "")
    assert rb.load_playbook(out) == rb.load_playbook("a.yaml")


def test_files_are_written_where_they_are_named(call):
    names = ("x/a.json", "x/a.yaml")
    options = [word for name in names for word in ("--out", name)]
    status, out, err = call("export", "a.yaml", "--to", "native", *options)
    assert (status, err) == (0, "")
    assert [line.split(" (")[0] for line in out.splitlines()] == [f"wrote {name}" for name in names]
    books = [rb.load_playbook(name) for name in names]
    assert books == [rb.load_playbook("a.yaml")] * 2
    assert Path("x/a.json").read_text(encoding="utf-8").startswith("{")


def test_a_placeholder_is_said(call):
    status, out, err = call("export", "a.yaml", "--to", "cacao")
    assert status == 0
    assert json.loads(out)["created_by"] == PLACEHOLDER_IDENTITY
    assert "--created-by" in err


def test_who_is_no_identity_is_wrong_usage(call):
    status, out, err = call("export", "a.yaml", "--to", "cacao", "--created-by", "me")
    assert (status, out) == (2, "")
    assert "--created-by" in err
    assert "identity--<uuid>" in err


def test_it_is_drawn_as_mermaid(call):
    status, out, err = call("export", "a.yaml", "--to", "mermaid")
    assert (status, err) == (0, "")
    assert out == f"{rb.load_playbook('a.yaml').flowchart().mermaid}\n"
    assert out.startswith("flowchart")
    assert "triage" in out


def foreign(*kinds):
    """A document of somebody else, with steps of some kinds."""
    document = rb.load_playbook("a.yaml").to_cacao(created_by=AUTHOR, created=WHEN[:19] + ".000Z")
    for step in document["workflow"].values():
        step.pop("step_extensions", None)
    first = next(step for step in document["workflow"].values() if step["type"] == "action")
    first["delay"] = 5
    if "while" in kinds:
        key = "while-condition--22222222-2222-4222-8222-222222222222"
        end = "end--33333333-3333-4333-8333-333333333333"
        document["workflow"][end] = {"type": "end"}
        document["workflow"][key] = {
            "type": "while-condition",
            "condition": "x",
            "on_true": end,
            "on_completion": first["on_completion"],
        }
        first["on_completion"] = key
    del document["extension_definitions"], document["playbook_extensions"]
    assert EXTENSION not in json.dumps(document)
    Path("c.json").write_text(json.dumps(document), encoding="utf-8")


def test_what_is_lost_is_said_beside_it(call):
    foreign()
    status, out, err = call("export", "c.json", "--to", "native")
    assert status == 0
    assert [step.id for step in rb.load_playbook(out).steps] == ["triage", "pay"]
    assert err.startswith("CacaoLosses Refund · 2 steps")
    assert "delay" in err


def test_a_loop_is_read_only_when_told(call):
    foreign("while")
    status, out, err = call("export", "c.json", "--to", "native")
    assert (status, out) == (3, "")
    assert "has no loops" in err
    status, out, err = call("export", "c.json", "--to", "native", "--lossy")
    assert status == 0
    assert "while-condition" in err


@pytest.mark.parametrize(
    ("arguments", "status", "word"),
    [
        (("a.yaml",), 2, "--to"),
        (("a.yaml", "--to", "xml"), 2, "xml"),
        (("gone.yaml", "--to", "cacao"), 3, "gone.yaml"),
        (("a.txt", "--to", "cacao"), 3, "a.txt"),
        (("bad.json", "--to", "cacao"), 3, "bad.json"),
        (("a.yaml", "--to", "cacao", "--out", "a.yaml/b.json"), 3, "cannot be written"),
    ],
)
def test_what_cannot_be_done_is_said_with_its_status(call, arguments, status, word):
    Path("a.txt").write_text(BOOK, encoding="utf-8")
    Path("bad.json").write_text("{", encoding="utf-8")
    found, out, err = call("export", *arguments)
    assert (found, out) == (status, "")
    assert word in err
