"""The command checks journals, with a head that was noted elsewhere and without one."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "playbooks"))

from journals import KINDS, begun, kept

from runbook_nb.cli.main import CONTRADICTED, NO_ANSWER, NOT_CARRIED, main
from runbook_nb.playbooks.journal_sqlite import SqliteJournal


@pytest.fixture
def call(capsys, monkeypatch):
    """Run the command; gives status, what it printed, and what it complained of."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments):
        with pytest.raises(SystemExit) as left:
            main(["verify", *map(str, arguments)])
        out = capsys.readouterr()
        return left.value.code or 0, out.out, out.err

    return call


@pytest.fixture
def journal(tmp_path):
    with KINDS["jsonl"](tmp_path) as journal:
        kept(journal)
    return journal


def test_an_untouched_journal_is_not_contradicted(call, journal):
    status, out, _ = call(journal.path)
    assert status == 0
    assert "ir.jsonl: Incident response in ir.jsonl" in out
    assert "whole lines cut off at the end leave no mark" in out
    assert out.splitlines()[-1] == "nothing is contradicted"


def test_a_changed_line_is_named_with_its_number(call, journal):
    journal.path.write_bytes(journal.path.read_bytes().replace(b"index=auth", b"index=AUTH"))
    status, out, _ = call(journal.path)
    assert status == CONTRADICTED
    assert "contradicted  lines.check[2]" in out
    assert "line 2 was changed" in out
    assert "where     line 2" in out


def test_the_head_that_was_noted_is_taken_from_the_command_line(call, journal):
    status, out, _ = call(journal.path, "--head", journal.head, "--all")
    assert status == 0
    assert "confirmed, by the head that was noted" in out
    status, out, _ = call(journal.path, "--head", "sha-256:00")
    assert status == CONTRADICTED
    assert "none of its 6 lines has that digest" in out


def test_of_several_plans_a_head_is_given_by_its_key(call, tmp_path):
    with SqliteJournal(tmp_path / "runs.sqlite", "a=1") as first:
        kept(first)
        first.of("b").append([begun(key="b")])
        heads = (f"a=1={first.head}", f"b={first.of('b').head}")
    status, out, _ = call(first.path, "--head", heads[0], "--head", heads[1], "--json")
    assert status == 0
    (told,) = json.loads(out)
    assert [one["name"] for one in told["answers"]] == [
        "Incident response in runs.sqlite, a=1",
        "Incident response in runs.sqlite, b",
    ]
    status, _, complained = call(first.path, "--head", "c=sha-256:00")
    assert status == NO_ANSWER
    assert "keeps no plan 'c'" in complained


def test_lines_that_are_no_journal_are_not_carried(call, tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"host":"a"}\n', encoding="utf-8")
    status, out, _ = call(tmp_path / "rows.jsonl")
    assert status == NOT_CARRIED
    assert "not carried" in out
