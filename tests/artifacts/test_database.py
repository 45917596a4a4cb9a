"""A file of tables of one's own form: whole transactions, one form, nobody else's file touched."""

import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest

from runbook_nb.artifacts.database import Database, Form
from runbook_nb.errors import ArtifactError

FORM = Form(
    application=0x7465_7374,
    version=3,
    schema=("CREATE TABLE note (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL)",),
    what="notebook of notes",
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "notes.sqlite"


@pytest.fixture
def notes(path):
    database = Database(path, FORM)
    yield database
    database.close()


def add(notes, text):
    with notes.transaction() as database:
        database.execute("INSERT INTO note (text) VALUES (?)", (text,))


def texts(notes):
    with notes.opened() as database:
        return [text for (text,) in database.execute("SELECT text FROM note ORDER BY id")]


def test_what_a_transaction_did_is_there_and_what_was_broken_off_never_was(notes, path):
    add(notes, "a")

    def break_off():
        with notes.transaction() as database:
            database.execute("INSERT INTO note (text) VALUES ('b')")
            raise KeyError("b")

    with pytest.raises(KeyError):
        break_off()
    add(notes, "c")
    assert texts(notes) == texts(Database(path, FORM)) == ["a", "c"]


def test_it_is_opened_again_when_it_was_let_go(notes, path):
    add(notes, "a")
    notes.close()
    assert notes.connection is None
    assert [found.name for found in path.parent.iterdir()] == ["notes.sqlite"]
    assert texts(notes) == ["a"]


def test_threads_take_turns(notes):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: add(notes, str(n)), range(80)))
    assert sorted(map(int, texts(notes))) == list(range(80))


def test_the_file_says_what_it_is(notes, path):
    add(notes, "a")
    other = sqlite3.connect(path)
    asked = ("PRAGMA application_id", "PRAGMA user_version", "PRAGMA journal_mode")
    assert [other.execute(question).fetchone()[0] for question in asked] == [0x7465_7374, 3, "wal"]
    other.close()


@pytest.mark.parametrize(
    ("form", "said"),
    [
        (Form(application=1, version=3, schema=FORM.schema, what="x"), "another program's"),
        (Form(application=FORM.application, version=4, schema=FORM.schema, what="x"), "form 3"),
        (
            Form(application=FORM.application, version=3, schema=("CREATE TABLE a (b)",), what="x"),
            "not those of a x",
        ),
    ],
)
def test_a_file_of_another_form_is_refused_by_what_was_wanted_and_left_alone(path, form, said):
    notes = Database(path, FORM)
    add(notes, "a")
    notes.close()
    before = path.read_bytes()
    with pytest.raises(ArtifactError, match=f"is no x: .*{said}") as caught:
        Database(path, form)
    assert caught.value.code == "not_a_store"
    assert path.read_bytes() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_has_a_connection_and_a_lock_of_its_own(notes, path):
    add(notes, "from the parent")
    with notes._lock:  # as another thread would hold it at that moment
        child = os.fork()
        if child == 0:
            try:
                mine = notes.connection
                add(notes, "from the child")
                os._exit(0 if notes.connection is not mine else 1)
            finally:
                os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    add(notes, "from the parent again")
    assert texts(notes) == ["from the parent", "from the child", "from the parent again"]


def test_a_question_that_is_none_is_said_to_be(notes):
    with (
        pytest.raises(ArtifactError, match="notebook of notes") as caught,
        notes.opened() as database,
    ):
        database.execute("SELECT nothing FROM nowhere")
    assert caught.value.code == "store_unavailable"
