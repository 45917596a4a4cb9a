"""Journals as files somebody was handed: found by name, refused where they are none, checked."""

import sqlite3
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from journals import KINDS, begun, kept

import runbook_nb as rb
from runbook_nb.errors import LoadError
from runbook_nb.playbooks.journal_files import is_journal_name, verify_journals
from runbook_nb.playbooks.journal_jsonl import JsonlJournal
from runbook_nb.playbooks.journal_sqlite import SqliteJournal


@pytest.fixture(params=list(KINDS))
def journal(request, tmp_path):
    with KINDS[request.param](tmp_path) as journal:
        kept(journal)
    return KINDS[request.param](tmp_path)


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("ir.jsonl", True),
        ("IR.JSONL", True),
        ("runs.sqlite", True),
        ("runs.db", True),
        ("answer.json", False),
        ("answer.ipynb", False),
        ("jsonl", False),
    ],
)
def test_a_journal_is_told_by_its_name(name, is_one):
    assert is_journal_name(Path(name)) is is_one


def test_a_journal_is_checked_by_the_door_for_all_files(journal):
    (checked,) = rb.verify_file(journal.path)
    assert checked.ok
    assert checked["lines.chain"].status == "confirmed"
    assert checked["end"].status == "cannot be checked"
    assert checked.name == f"Incident response in {journal.name}"
    assert checked.to_dict() == journal.verify().to_dict()


def test_the_end_can_be_checked_where_the_head_was_noted(journal):
    (checked,) = rb.verify_file(journal.path, head=journal.head)
    assert (checked["head"].status, checked["end"].status) == ("confirmed", "confirmed")


def test_a_head_that_was_noted_before_more_happened_says_how_far_it_reaches(journal):
    noted = journal.read().lines[3].digest
    (checked,) = rb.verify_file(journal.path, head=noted)
    assert checked["head"].status == "confirmed"
    assert checked["end"].because == "the head that was noted is that of line 4 of 6"
    assert checked["end"].count == 2


def test_lines_cut_off_at_the_end_are_found_where_the_head_is_known_and_only_there(tmp_path):
    path = tmp_path / "ir.jsonl"
    with kept(JsonlJournal(path)) as journal:
        head = journal.head
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    (blind,) = rb.verify_file(path)
    assert blind.ok
    assert "leave no mark" in blind["end"].because
    (seeing,) = rb.verify_file(path, head=head)
    assert not seeing.ok
    assert "none of its 5 lines has that digest" in seeing["head"].difference


def test_an_end_that_was_broken_off_is_told(tmp_path):
    path = tmp_path / "ir.jsonl"
    with kept(JsonlJournal(path)):
        pass
    path.write_bytes(path.read_bytes()[:-9])
    (checked,) = rb.verify_file(path)
    assert checked.ok
    assert "breaks off after" in checked["end.broken"].because


def test_each_plan_of_a_file_is_checked(tmp_path):
    path = tmp_path / "runs.sqlite"
    with SqliteJournal(path, "a") as first:
        kept(first)
        first.of("b").append([begun(key="b")])
        heads = {"a": first.head, "b": first.of("b").head}
    checked = verify_journals(path)
    assert [one.name for one in checked] == [
        "Incident response in runs.sqlite, a",
        "Incident response in runs.sqlite, b",
    ]
    assert all(one["end"].status == "confirmed" for one in verify_journals(path, head=heads))
    one, other = verify_journals(path, head={"b": heads["a"]})
    assert one.ok
    assert not other.ok


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("sha-256:00", "keeps 2 plans, and one head is given for all"),
        ({"aa": "sha-256:00"}, "keeps no plan 'aa'; did you mean 'a'"),
    ],
)
def test_a_head_of_no_plan_is_refused(tmp_path, head, said):
    with SqliteJournal(tmp_path / "runs.sqlite", "a") as first:
        kept(first)
        first.of("b").append([begun(key="b")])
    with pytest.raises(LoadError, match=said):
        verify_journals(tmp_path / "runs.sqlite", head=head)


@pytest.mark.parametrize("name", ["none.jsonl", "none.sqlite"])
def test_a_file_that_is_not_there_is_not_made(tmp_path, name):
    with pytest.raises(LoadError, match="is not there"):
        rb.verify_file(tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["none.jsonl", "none.sqlite"])
def test_an_empty_file_stays_one(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(LoadError, match="is empty"):
        rb.verify_file(tmp_path / name)
    assert (tmp_path / name).stat().st_size == 0


def test_a_journal_that_was_emptied_is_found_where_the_head_is_known(tmp_path):
    (tmp_path / "ir.jsonl").touch()
    (checked,) = rb.verify_file(tmp_path / "ir.jsonl", head="sha-256:00")
    assert not checked.ok
    assert "none of its 0 lines" in checked["head"].difference


def test_rows_that_were_never_lines_of_a_journal_carry_none(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"host":"a"}\n{"host":"b"}\n', encoding="utf-8")
    assert rb.verify_file(tmp_path / "rows.jsonl") == ()


def test_another_programs_database_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE t (x)")
    database.close()
    before = path.read_bytes()
    with pytest.raises(LoadError, match="another program's database") as caught:
        rb.verify_file(path)
    assert caught.value.code == "not_a_journal"
    assert path.read_bytes() == before
