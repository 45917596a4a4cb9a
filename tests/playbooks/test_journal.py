"""Journals: what is kept is there again, in one order, from one writer, whatever happens to it."""

import json
import os
import pickle
import re
import subprocess
import sys
import warnings
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from journals import KINDS, at, begun, events, kept, reset

from runbook_nb._ids import digest
from runbook_nb.errors import JournalError
from runbook_nb.playbooks.events import Admitted
from runbook_nb.playbooks.journal_jsonl import JsonlJournal
from runbook_nb.playbooks.journal_lines import SCHEMA, read_bytes, sealed, write_lines
from runbook_nb.playbooks.journal_sqlite import SqliteJournal


@pytest.fixture(params=list(KINDS))
def make(request, tmp_path):
    """Give what makes a journal of one place, anew each time, and closes all of them at the end."""
    made = []

    def one():
        made.append(KINDS[request.param](tmp_path))
        return made[-1]

    yield one
    for journal in made:
        journal.close()


@pytest.fixture
def path(tmp_path):
    """Give the path of a file of lines in which a run is kept."""
    with JsonlJournal(tmp_path / "ir.jsonl") as journal:
        kept(journal)
    return tmp_path / "ir.jsonl"


def refused(work, code):
    with pytest.raises(JournalError) as caught:
        work()
    assert caught.value.code == code
    assert caught.value.fix
    return str(caught.value)


# --- what is kept --------------------------------------------------------------------------------


def test_what_is_kept_is_there_again(make):
    journal = kept(make())
    assert len(journal) == 6
    again = make()
    assert again.events() == tuple(events())
    assert (len(again), again.head, again.torn) == (6, journal.head, "")


def test_a_journal_that_was_closed_goes_on_where_it_was(make):
    first = kept(make())
    first.close()
    first.append([reset(7)])
    first.close()
    with make() as other:
        other.append([reset(8)])
        assert [event.seq for event in other.events()] == list(range(1, 9))


def test_nothing_is_written_for_no_event(make):
    journal = make()
    journal.append([])
    assert (len(journal), journal.head) == (0, None)
    assert journal  # one that holds nothing yet is a journal


def test_the_head_is_the_digest_of_the_last_line(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert JsonlJournal(path).head == digest(lines[-1])
    bodies = [json.loads(line) for line in lines]
    assert [body["prev"] for body in bodies] == [None, *map(digest, lines[:-1])]


def test_the_first_line_says_what_is_held_to_what(path):
    first, second, *_ = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert first["schema"] == SCHEMA
    assert "schema" not in second
    header = first["event"]
    assert header["playbook"]["steps"][0]["id"] == "detect"
    assert header["policy"]["credit"] == "admitted"
    assert len(header["policy"]) > 30  # every rule, not only what differs
    assert header["digest"].startswith("sha-256:")


def test_arguments_keep_the_order_of_their_keys(path):
    assert '"arguments":{"b":"index=auth","a":[1,2.5,null,true,"Zürich"]}' in path.read_text(
        "utf-8"
    )
    assert list(JsonlJournal(path).events()[1].arguments) == ["b", "a"]


def test_both_kinds_write_the_same_lines(tmp_path):
    with KINDS["jsonl"](tmp_path) as lines, KINDS["sqlite"](tmp_path) as table:
        assert kept(lines).head == kept(table).head
        assert lines.read().lines == table.read().lines


def test_events_that_happened_together_say_how_many_follow(path):
    bodies = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [body.get("more") for body in bodies] == [None, None, 1, None, None, None]


def test_it_shows_what_it_holds(make):
    journal = kept(make())
    card = journal.view()
    assert (card.kind, card.headline) == ("Journal", "6 events")
    assert re.search(rf"head +{journal.head}\n", f"{journal}\n")
    assert "Incident response" in journal.to_markdown()


def test_it_shows_what_is_wrong_with_it(path):
    path.write_bytes(path.read_bytes().replace(b"index=auth", b"index=AUTH"))
    (said,) = [line for line in JsonlJournal(path).view().closing if "was changed" in line]
    assert said.startswith("Line 2 ")


def test_an_empty_journal_has_no_events(make):
    refused(make().events, "journal_empty")
    assert make().view().headline == "0 events"


def test_it_travels_as_its_place(make):
    journal = kept(make())
    with closing(pickle.loads(pickle.dumps(journal))) as again:  # noqa: S301 - our own
        assert (type(again), again.name, again.head) == (type(journal), journal.name, journal.head)


# --- what is refused -----------------------------------------------------------------------------


def test_a_plan_cannot_begin_in_a_journal_that_holds_one(make):
    kept(make()).close()
    said = refused(lambda: make().append([begun()]), "journal_not_empty")
    assert "resume" in said
    assert make().events() == tuple(events())


def test_an_event_that_does_not_follow_is_refused(make):
    journal = kept(make())
    for wrong in (reset(6), reset(8), reset(70)):
        refused(lambda one=wrong: journal.append([one]), "journal_behind")
    refused(lambda: journal.append([reset(7), reset(9)]), "journal_behind")
    journal.append([reset(7)])
    assert len(make().events()) == 7


def test_nothing_is_made_for_an_event_that_begins_nothing(tmp_path):
    refused(lambda: JsonlJournal(tmp_path / "new.jsonl").append([reset(7)]), "journal_behind")
    assert not (tmp_path / "new.jsonl").exists()


def test_what_json_cannot_carry_is_refused_and_the_journal_goes_on(make):
    journal = kept(make())
    deep = []
    for _ in range(400):
        deep = [deep]
    call = Admitted(seq=7, at=at(7), call_id="c9", tool="t", step_id="contain", arguments=deep)
    assert "arguments" in refused(lambda: journal.append([call]), "journal_cannot_carry")
    journal.append([reset(7)])
    assert len(make().events()) == 7


def test_two_writers_are_refused(make):
    first = kept(make())
    second = make()
    said = []
    for journal in (second, first, second, first):
        try:
            journal.append([reset(len(journal.read().lines) + 1)])
        except JournalError as error:
            said.append((journal is first, error.code))
    # Whichever came first goes on; the other never writes between.
    assert {code for _, code in said} <= {"journal_in_use", "journal_behind"}
    assert len({who for who, _ in said}) == 1
    assert len(said) == 2
    assert len(make().events()) == 8


def test_a_file_of_lines_is_refused_while_another_writes_it(path):
    with JsonlJournal(path) as first:
        first.append([reset(7)])
        second = JsonlJournal(path)
        refused(lambda: second.append([reset(8)]), "journal_in_use")
        assert second.events() == first.events()  # to read it is nobody's privilege
        first.close()
        second.append([reset(8)])
        second.close()


def test_it_is_free_again_when_its_process_has_ended(path):
    code = (
        "import sys\n"
        "sys.path.insert(0, sys.argv[2])\n"
        "from journals import reset\n"
        "from runbook_nb.playbooks.journal_jsonl import JsonlJournal\n"
        "journal = JsonlJournal(sys.argv[1])\n"
        "journal.append([reset(7)])\n"
        "import os; os._exit(9)\n"
    )
    beside = str(Path(__file__).parent)
    done = subprocess.run([sys.executable, "-c", code, str(path), beside], check=False)
    assert done.returncode == 9
    with JsonlJournal(path) as journal:
        journal.append([reset(8)])
        assert len(journal.events()) == 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_does_not_write_its_parents_journal(path):
    journal = JsonlJournal(path)
    journal.append([reset(7)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads do nothing here
        child = os.fork()
    if child == 0:
        try:
            journal.append([reset(8)])
        except JournalError as error:
            os._exit(3 if error.code == "journal_in_use" else 4)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    journal.append([reset(8)])  # which is not lost by what the child did
    refused(lambda: JsonlJournal(path).append([reset(9)]), "journal_in_use")
    journal.close()


@pytest.mark.parametrize("key", ["", None, 7])
def test_a_key_that_names_nothing_is_refused(tmp_path, key):
    refused(lambda: SqliteJournal(tmp_path / "runs.sqlite", key), "bad_key")


@pytest.mark.parametrize("kind", [JsonlJournal, SqliteJournal])
def test_a_path_that_names_no_file_is_refused(kind):
    refused(lambda: kind(":memory:"), "journal_unavailable")


def test_a_folder_that_is_not_there_is_told(tmp_path):
    journal = JsonlJournal(tmp_path / "nowhere" / "ir.jsonl")
    assert journal.head is None
    refused(lambda: journal.append([begun()]), "journal_unavailable")


def test_another_programs_database_is_refused_and_left_as_it_is(path):
    before = path.read_bytes()
    refused(lambda: SqliteJournal(path, "run-1"), "not_a_journal")
    assert path.read_bytes() == before


# --- several plans in one file -------------------------------------------------------------------


def test_plans_of_one_file_are_kept_apart(tmp_path):
    with SqliteJournal(tmp_path / "runs.sqlite", "a") as first:
        second = first.of("b")
        kept(first)
        second.append([begun(key="b")])
        kept(first.of("c"))
        assert first.keys() == ("a", "b", "c")
        second.append([reset(2)])
        assert (len(first), len(second)) == (6, 2)
        assert [event.kind for event in second.events()] == ["begun", "reset"]
        assert first.head == first.of("c").head != second.head


def test_a_row_that_was_taken_out_or_renumbered_is_found(tmp_path):
    with kept(SqliteJournal(tmp_path / "runs.sqlite", "a")) as journal:
        with journal._database.transaction() as database:
            database.execute("UPDATE line SET number = 9 WHERE number = 6")
        assert "line 6 stands under the number 9" in refused(journal.events, "journal_damaged")
        with journal._database.transaction() as database:
            database.execute("DELETE FROM line WHERE number = 2")
        assert "line 2" in refused(journal.events, "journal_damaged")


# --- a writer that could not ---------------------------------------------------------------------


def test_a_line_that_could_not_be_written_whole_is_taken_back(path, monkeypatch):
    before = path.read_bytes()
    journal = JsonlJournal(path)
    write = os.write

    def full(file, data):
        write(file, bytes(data)[:20])
        raise OSError(28, "No space left on device")

    journal.append([reset(7)])
    monkeypatch.setattr(os, "write", full)
    said = refused(lambda: journal.append([reset(8)]), "journal_unavailable")
    assert "No space left" in said
    monkeypatch.undo()
    # What is on the disk is not known, so that it has to be read again by another.
    refused(lambda: journal.append([reset(8)]), "journal_unavailable")
    assert path.read_bytes().startswith(before)
    with JsonlJournal(path) as again:
        again.append([reset(8)])
        assert len(again.events()) == 8


def test_a_file_is_on_the_disk_when_append_returns(path, monkeypatch):
    done = []
    monkeypatch.setattr(os, "fsync", lambda file: done.append(os.fstat(file).st_size))
    with JsonlJournal(path) as journal:
        journal.append([reset(7)])
        assert done == [path.stat().st_size]


def test_a_database_waits_for_the_disk(tmp_path):
    journal = SqliteJournal(tmp_path / "runs.sqlite", "a")
    with journal, journal._database.opened() as database:
        assert database.execute("PRAGMA synchronous").fetchone() == (2,)


# --- an end that was broken off ------------------------------------------------------------------


def test_wherever_a_file_is_cut_all_whole_events_are_there(path):
    data = path.read_bytes()
    ends = [n + 1 for n, byte in enumerate(data) if byte == 10]
    #: Event 3 counts when event 4, which happened with it, is there.
    counts = {0: 0, 1: 1, 2: 2, 3: 2, 4: 4, 5: 5, 6: 6}
    near = {end + n for end in (0, *ends) for n in range(-3, 60)}
    for cut in sorted({*range(0, len(data), 23), *near} & set(range(len(data) + 1))):
        found = read_bytes(data[:cut])
        whole = sum(end <= cut or end == cut + 1 for end in ends)
        assert not found.faults, cut
        assert [line.event for line in found.lines] == events()[: counts[whole]]
        assert bool(found.torn) == (
            counts[whole] != whole or (cut > 0 and cut not in ends and cut + 1 not in ends)
        )
        assert data[:cut][: found.size].count(b"\n") + found.unended == counts[whole]


@pytest.mark.parametrize("cut", [1, 2, 30, 700])
def test_what_was_broken_off_is_told_and_cut_away_by_who_goes_on(path, cut):
    data = path.read_bytes()
    path.write_bytes(data[:-cut])
    journal = JsonlJournal(path)
    count = len(journal.events())
    torn = journal.torn
    assert ("never acknowledged" in torn) == (cut > 1)
    assert torn == "" or torn in journal.view().closing[-1]
    journal.append([reset(count + 1)])
    journal.close()
    again = JsonlJournal(path)
    assert (len(again.events()), again.torn) == (count + 1, "")


def test_a_journal_of_which_only_the_beginning_of_a_line_is_there_begins(path):
    path.write_bytes(path.read_bytes()[:40])
    with JsonlJournal(path) as journal:
        assert "line 1 breaks off after 40 bytes" in journal.torn
        kept(journal)
    assert JsonlJournal(path).events() == tuple(events())


def test_blocks_that_the_disk_lost_are_an_end_that_was_broken_off(path):
    path.write_bytes(path.read_bytes() + b'{"check":"sha' + b"\0" * 500)
    with JsonlJournal(path) as journal:
        assert journal.torn
        journal.append([reset(7)])
        assert len(journal.events()) == 7


@pytest.mark.parametrize("tail", [b"x", b"{}", b'{"event":', b'{"check":"md5:', b"\xff"])
def test_an_end_that_no_line_begins_with_is_no_broken_one(path, tail):
    path.write_bytes(path.read_bytes() + tail)
    said = refused(JsonlJournal(path).events, "journal_damaged")
    assert "line 7 is not written as the lines of a journal are" in said
    before = path.read_bytes()
    refused(lambda: JsonlJournal(path).append([reset(7)]), "journal_damaged")
    assert path.read_bytes() == before


def test_the_beginning_of_what_happened_together_says_what_it_lacks(path):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]))
    journal = JsonlJournal(path)
    assert "1 event of 2 that belong together" in journal.torn
    assert len(journal.events()) == 2
    path.write_bytes(b"".join(lines[:3]) + lines[3][:50])
    assert "line 4 breaks off after 50 bytes" in JsonlJournal(path).torn


# --- what was changed ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda lines: [*lines[:2], *lines[3:]], "line 3 does not follow the line before it"),
        (lambda lines: lines[1:], "line 1 does not begin a journal"),
        (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], "line 2 does not follow"),
        (lambda lines: [*lines, lines[-1]], "line 7 does not follow the line before it"),
        (lambda lines: [*lines[:4], b"", *lines[4:]], "line 5 is not written as"),
        (lambda lines: [*lines[:5], lines[5].replace(b"c3", b"c4")], "line 6 was changed"),
        (lambda lines: [lines[0].replace(b":", b": ", 1), *lines[1:]], "line 1 is not written as"),
        (lambda lines: [lines[0].replace(b"journal/1", b"journal/2"), *lines[1:]], "line 1 "),
        (lambda lines: [b"\xff" + lines[0], *lines[1:]], "line 1 is not written as"),
    ],
)
def test_whatever_was_changed_is_named_and_refused(path, change, said):
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"".join(line + b"\n" for line in change(lines)))
    assert said in refused(JsonlJournal(path).events, "journal_damaged")
    before = path.read_bytes()
    refused(lambda: JsonlJournal(path).append([reset(7)]), "journal_damaged")
    assert path.read_bytes() == before


def test_a_form_that_is_not_known_is_named(path):
    head, texts = None, []
    for event in events():
        (text,) = write_lines([event], head)
        texts.append(text)
        head = digest(text)
    body = json.loads(texts[0])
    assert body["schema"] == SCHEMA
    other = sealed(
        texts[0]
        .replace(SCHEMA, "runbook_nb/playbook-journal/9")
        .replace(f'"check":"{body["check"]}",', "")
    )
    path.write_text(other + "\n", encoding="utf-8")
    said = refused(JsonlJournal(path).events, "journal_damaged")
    assert "'runbook_nb/playbook-journal/9'" in said
    assert SCHEMA in said


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_byte_that_was_changed_is_always_found(data):
    texts = write_lines(events()[:1], None)
    texts += write_lines(events()[1:], digest(texts[0]))
    whole = "".join(f"{text}\n" for text in texts).encode()
    place = data.draw(st.integers(0, len(whole) - 2))
    byte = data.draw(st.integers(0, 255).filter(lambda one: one != whole[place]))
    changed = whole[:place] + bytes([byte]) + whole[place + 1 :]
    assert read_bytes(changed).faults


@given(st.binary(max_size=80))
@settings(max_examples=60, deadline=None)
def test_whatever_is_read_never_raises(data):
    found = read_bytes(data)
    assert not found.lines
    assert found.faults or found.torn or not data
