"""The store in a file: it outlives its process, is shared, and is never more than a database."""

import asyncio
import json
import multiprocessing
import os
import pickle
import random
import signal
import sqlite3
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from runbook_nb.artifacts import ArtifactScope, InMemoryArtifacts, SqliteArtifacts
from runbook_nb.artifacts import database as tables
from runbook_nb.artifacts import durable as waiting
from runbook_nb.artifacts import sqlite as module
from runbook_nb.errors import ArtifactError
from runbook_nb.settings import settings

HERE, THERE = ArtifactScope("c1"), ArtifactScope("c1", "t", "p")
NOBODY = "art_" + "a" * 22


def note(data="x", **more):
    return {"kind": "k", "mediaType": "m", "data": data, **more}


def rows_in(path, question, *values):
    database = sqlite3.connect(path)
    try:
        return database.execute(question, values).fetchall()
    finally:
        database.close()


def change(path, *statements):
    database = sqlite3.connect(path)
    for statement in statements:
        database.execute(*statement) if isinstance(statement, tuple) else database.execute(
            statement
        )
    database.commit()
    database.close()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "walks.sqlite"


# --- the file ----------------------------------------------------------------------------------


def test_what_was_filed_is_there_for_the_next_process(path):
    with SqliteArtifacts(path) as store:
        meta = store.put_sync(HERE, note({"é": [1]}, label="a", origin={"runId": "r"})).meta
        child = store.put_sync(THERE, note(b"\xff\x00")).meta
    program = (
        "import sys, runbook_nb as rb\n"
        "from runbook_nb.artifacts import ArtifactScope\n"
        "store = rb.SqliteArtifacts(sys.argv[1])\n"
        "here, there = ArtifactScope('c1'), ArtifactScope('c1', 't', 'p')\n"
        "print(store.get_sync(here, sys.argv[2]).data, store.get_sync(there, sys.argv[3]).data,\n"
        "      store.get_sync(here, sys.argv[3]))\n"
    )
    command = [sys.executable, "-c", program, str(path), meta.ref, child.ref]
    said = subprocess.run(command, capture_output=True, check=True, encoding="utf-8", env=utf8())
    assert said.stdout == "{\"é\":[1]} b'\\xff\\x00' None\n"
    with SqliteArtifacts(path) as store:
        assert store.head_sync(HERE, meta.ref) == meta


def utf8():
    return os.environ | {"PYTHONIOENCODING": "utf-8"}


def test_the_file_is_a_write_ahead_database_and_is_let_go_of(path):
    store = SqliteArtifacts(path)
    store.put_sync(HERE, note())
    assert rows_in(path, "PRAGMA journal_mode") == [("wal",)]
    assert rows_in(path, "PRAGMA application_id") == [(0x72626E41,)]
    store.close()
    assert [found.name for found in path.parent.iterdir()] == ["walks.sqlite"]
    store.close()
    assert len(store.list_sync(HERE).artifacts) == 1  # a verb opens it again
    del store
    assert [found.name for found in path.parent.iterdir()] == ["walks.sqlite"]


def test_every_payload_is_kept_once_whoever_holds_it(path):
    with SqliteArtifacts(path) as store:
        a, b = (store.put_sync(scope, note("the same")).meta.ref for scope in (HERE, THERE))
        assert rows_in(path, "SELECT holders FROM payload") == [(2,)]
        assert store.delete_sync(HERE, a)
        assert store.get_sync(THERE, b).data == "the same"
        assert store.delete_sync(THERE, b)
        assert rows_in(path, "SELECT * FROM payload") == []
        assert rows_in(path, "SELECT * FROM scope") == []


def test_what_gets_smaller_is_compressed_and_what_does_not_is_kept_as_it_is(path):
    text, noise = json.dumps(list(range(9000))), random.Random(1).randbytes(40_000)
    with SqliteArtifacts(path) as store:
        refs = [store.put_sync(HERE, note(data)).meta.ref for data in (text, noise, "", b"x")]
        found = rows_in(path, "SELECT packing, length(body) FROM payload ORDER BY id")
        assert found[0][0] == 1
        assert found[0][1] < len(text) / 2
        assert found[1:] == [(0, 40_000), (0, 0), (0, 1)]
        assert [store.get_sync(HERE, ref).data for ref in refs] == [text, noise, "", b"x"]


def test_nothing_of_it_is_pickled(path):
    with SqliteArtifacts(path) as store:
        ticket = store.put_sync(HERE, note("words", label="é", origin={"runId": "r"})).meta
    ((text,),) = rows_in(path, "SELECT ticket FROM artifact")
    assert json.loads(text) == ticket.to_dict()
    ((body,),) = rows_in(path, "SELECT body FROM payload")
    assert body == b"words"


def test_an_expiry_past_every_number_of_the_database_never_comes(path, clock):
    with SqliteArtifacts(path) as store:
        meta = store.put_sync(HERE, note(expiresAt=10**30)).meta
        clock.ms += 10**9
        assert store.head_sync(HERE, meta.ref) == meta
        assert meta.expires_at == 10**30


# --- what it costs, in statements ----------------------------------------------------------------


def statements_of(store, act):
    said = []
    store._database.connection.set_trace_callback(said.append)
    act()
    store._database.connection.set_trace_callback(None)
    return said


@pytest.mark.parametrize(
    ("verb", "most"),
    [
        (lambda store, ref: store.put_sync(HERE, note("more")), 6),
        (lambda store, ref: store.get_sync(HERE, ref), 7),
        (lambda store, ref: store.head_sync(HERE, ref), 6),
        (lambda store, ref: store.list_sync(HERE, limit=3), 6),
        (lambda store, ref: store.delete_sync(HERE, ref), 8),
    ],
)
def test_a_verb_is_one_transaction_of_few_statements_however_much_is_held(path, verb, most):
    counts = []
    for held in (5, 200):
        with SqliteArtifacts(path.with_name(f"{held}.sqlite"), max_count=1000) as store:
            made = store.put_many_sync(HERE, [note(str(n)) for n in range(held)])
            said = statements_of(store, lambda s=store, r=made[0].meta.ref: verb(s, r))
        assert said[0] == "BEGIN IMMEDIATE"
        assert said[-1] == "COMMIT"
        assert sum(line in ("COMMIT", "BEGIN IMMEDIATE") for line in said) == 2
        counts.append(len(said))
    assert counts[0] == counts[1] <= most


def test_no_question_reads_every_row(path):
    with SqliteArtifacts(path) as store:
        store.put_sync(HERE, note())
        for question, values in (
            (module._FIND, 2),
            (module._EXPIRED, 2),
            (module._NEWEST, 2),
            (module._AFTER, 5),
            (module._BY_USE, 1),
        ):
            plan = rows_in(path, f"EXPLAIN QUERY PLAN {question}", *[1] * values)
            told = " ".join(step[3] for step in plan)
            assert "SCAN" not in told, question
            assert "TEMP B-TREE" not in told, question
            assert "scope=?" in told, question


def pages_of(path, act):
    """Count the pages that a verb writes to the log."""
    log = path.with_name(f"{path.name}-wal")
    (page,) = rows_in(path, "PRAGMA page_size")[0]
    before = log.stat().st_size
    act()
    return (log.stat().st_size - before) / (page + 24)


def test_a_verb_on_its_own_writes_few_pages_however_much_is_held(path, monkeypatch):
    monkeypatch.setattr(tables, "LOGGED", 1_000_000)
    with SqliteArtifacts(path, max_count=10_000) as store:
        dice = random.Random(1)
        store.put_many_sync(HERE, [note(dice.randbytes(3_000)) for _ in range(2_000)])
        more = [note(dice.randbytes(3_000)) for _ in range(60)]

        def one_by_one():
            for one in more:
                store.put_sync(HERE, one)

        assert pages_of(path, one_by_one) <= 8.5 * len(more)


def test_payloads_lie_in_pages_of_eight_kilobytes(path):
    SqliteArtifacts(path).close()
    assert rows_in(path, "PRAGMA page_size") == [(8192,)]


def test_who_has_expired_is_asked_only_where_somebody_may(path, clock):
    with SqliteArtifacts(path) as store:
        store.put_sync(HERE, note("stays"))
        leaves = note("leaves", expiresAt=clock.ms + 5)
        refs = [store.put_sync(HERE, leaves).meta.ref for _ in range(2)]
        asked = "INDEXED BY artifact_expires"
        assert rows_in(path, "SELECT expiring FROM scope") == [(2,)]
        assert asked in " ".join(statements_of(store, lambda: store.put_sync(HERE, note())))
        assert store.delete_sync(HERE, refs[0])
        clock.ms += 5
        assert [gone.reason for gone in store.put_sync(HERE, note()).swept] == ["ttl"]
        assert rows_in(path, "SELECT expiring FROM scope") == [(0,)]
        assert asked not in " ".join(statements_of(store, lambda: store.put_sync(HERE, note())))


def test_what_is_filed_one_after_another_stands_so(path):
    with SqliteArtifacts(path) as store:
        refs = [store.put_sync(HERE, note(str(n))).meta.ref for n in range(20)]
    assert rows_in(path, "SELECT ref FROM artifact ORDER BY id") == [(ref,) for ref in refs]


def test_many_are_one_transaction(path):
    with SqliteArtifacts(path, max_count=500) as store:
        many = [note(str(n)) for n in range(300)]
        said = statements_of(store, lambda: store.put_many_sync(HERE, many))
    assert [line for line in said if line in ("COMMIT", "BEGIN IMMEDIATE")] == [
        "BEGIN IMMEDIATE",
        "COMMIT",
    ]
    assert len(said) <= 2 * len(many) + 10
    written = [line[:24] for line in said if line.startswith("INSERT INTO")]
    first = written.index("INSERT INTO artifact VALU"[:24])
    assert set(written[first:]) == {"INSERT INTO artifact VALU"[:24]}  # after every payload


# --- many at once --------------------------------------------------------------------------------


def test_many_are_filed_as_one_after_another(path):
    texts = [f"number {n}" for n in range(333)]
    with SqliteArtifacts(path, max_count=300) as store:
        results = store.put_many_sync(HERE, (note(text) for text in texts))
        refs = [result.meta.ref for result in results]
        assert [gone.ref for result in results for gone in result.swept] == refs[:33]
        assert store.dropped == 33
        assert [store.get_sync(HERE, ref).data for ref in refs[33:]] == texts[33:]
        assert store.put_sync(HERE, note()).swept[0].ref == refs[33]
    assert store.put_many_sync(HERE, []) == ()


def test_many_of_which_some_are_the_same_and_none_refers_to_what_is_gone(path):
    with SqliteArtifacts(path) as store:
        mother = store.put_sync(HERE, note("same")).meta.ref
        child = note("other", parentRefs=[mother])
        kept = store.put_many_sync(HERE, [note("same"), child, note("same"), note("other")])
        assert sorted(rows_in(path, "SELECT holders FROM payload")) == [(2,), (3,)]
        for put in kept:
            assert store.delete_sync(HERE, put.meta.ref)
        assert rows_in(path, "SELECT holders FROM payload") == [(1,)]
        assert store.get_sync(HERE, mother).data == "same"


def test_a_reference_that_comes_twice_in_one_transaction_is_drawn_again(path):
    drawn = iter(["a" * 22, "a" * 22, "b" * 22])
    with SqliteArtifacts(path) as store, settings(ids=lambda length: next(drawn)):
        puts = store.put_many_sync(HERE, [note("one"), note("two")])
    assert [put.meta.ref[4] for put in puts] == ["a", "b"]


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (note("x" * 101), "too_large"),
        (note({1, 2}), "invalid_artifact"),
        (note(parentRefs=[NOBODY]), "unknown_parent"),
        ("no artifact", "invalid_artifact"),
    ],
)
def test_one_that_is_refused_refuses_all_of_them(path, wrong, code):
    with SqliteArtifacts(path, max_bytes=100, max_count=3) as store:
        kept = store.put_sync(HERE, note("kept")).meta
        with pytest.raises(ArtifactError) as caught:
            store.put_many_sync(HERE, [*(note(str(n)) for n in range(70)), wrong, note()])
        assert caught.value.code == code
        assert store.list_sync(HERE).artifacts == (kept,)
        assert store.dropped == 0
        assert rows_in(path, "SELECT count(*) FROM payload") == [(1,)]


def test_of_several_that_are_refused_the_first_is_told(path):
    wrong = [note(), *(note({n}) for n in range(module.CHUNK * 3)), "no artifact"]
    with SqliteArtifacts(path) as store, pytest.raises(ArtifactError, match="set") as caught:
        store.put_many_sync(HERE, wrong)
    assert caught.value.where == "data"


@pytest.mark.parametrize("cores", [None, 1, 3, 500])
def test_many_are_filed_in_their_order_on_any_number_of_cores(path, monkeypatch, cores):
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    texts = [f"number {n} " * (n % 7) for n in range(module.CHUNK * 2 + 1)]
    with SqliteArtifacts(path, max_count=1000) as store:
        puts = store.put_many_sync(HERE, [note(text) for text in texts])
        assert [store.get_sync(HERE, put.meta.ref).data for put in puts] == texts
        used = rows_in(path, "SELECT ref FROM artifact ORDER BY used")
        assert used == [(put.meta.ref,) for put in puts]


def test_a_failure_in_the_middle_of_a_verb_takes_all_of_it_back(path, monkeypatch):
    with SqliteArtifacts(path, max_count=1) as store:
        ref = store.put_sync(HERE, note("kept")).meta.ref
        monkeypatch.setattr(module, "write_ticket", lambda ticket: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            store.put_sync(HERE, note("lost"))
        monkeypatch.undo()
        assert store.get_sync(HERE, ref).data == "kept"
        assert store.dropped == 0
        assert rows_in(path, "SELECT count(*) FROM payload") == [(1,)]


def test_the_twins_answer_inside_a_running_loop_too(path):
    async def inside():
        with SqliteArtifacts(path) as store:
            one = store.put_sync(HERE, note("a")).meta.ref
            two = (await store.put(HERE, note("b"))).meta.ref
            (three,) = await store.put_many(HERE, [note("c")])
            return [store.get_sync(HERE, ref).data for ref in (one, two, three.meta.ref)]

    assert asyncio.run(inside()) == ["a", "b", "c"]


def test_threads_share_a_store(path):
    with SqliteArtifacts(path, max_count=1000) as store:

        def work(worker):
            refs = [store.put_sync(HERE, note(f"{worker}/{n}")).meta.ref for n in range(20)]
            return [store.get_sync(HERE, ref).data for ref in refs]

        with ThreadPoolExecutor(6) as pool:
            made = list(pool.map(work, range(6)))
        assert made == [[f"{worker}/{n}" for n in range(20)] for worker in range(6)]
        assert len(store.list_sync(HERE, limit=1000).artifacts) == 120


# --- processes ---------------------------------------------------------------------------------

WRITER = """
import sys
import runbook_nb as rb
from runbook_nb.artifacts import ArtifactScope
path, worker, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
store, scope = rb.SqliteArtifacts(path, max_count=100_000), ArtifactScope("c1")
size = 20_000
for n in range(number):
    data = (f"{worker}/{n} " * size)[:size]
    filed = store.put_sync(scope, {"kind": "k", "mediaType": "m", "data": data})
    assert store.get_sync(scope, filed.meta.ref).data == data
    print(filed.meta.ref, worker, n, flush=True)
"""


def writer(path, worker, number):
    command = [sys.executable, "-c", WRITER, str(path), worker, str(number)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_that_write_at_once_lose_nothing_of_each_other(path):
    started = [writer(path, f"w{n}", 30) for n in range(3)]
    heard = [process.communicate(timeout=120) for process in started]
    assert [process.returncode for process in started] == [0] * 3
    acknowledged = [line.split() for told, _ in heard for line in told.splitlines()]
    assert len(acknowledged) == 90
    with SqliteArtifacts(path, max_count=100_000) as store:
        for ref, worker, n in acknowledged:
            assert store.get_sync(HERE, ref).data.startswith(f"{worker}/{n} ")
        assert len(store.list_sync(HERE, limit=1000).artifacts) == 90


@pytest.mark.parametrize("after", [1, 7, 23])
def test_a_process_killed_while_it_writes_loses_nothing_it_acknowledged(path, after):
    process = writer(path, "w", 1_000_000)
    acknowledged = [process.stdout.readline().split() for _ in range(after)]
    os.kill(process.pid, signal.SIGKILL)
    with process.stdout:
        acknowledged += [line.split() for line in process.stdout]
    assert process.wait(60) == -signal.SIGKILL
    with SqliteArtifacts(path, max_count=100_000) as store:
        for ref, worker, n in acknowledged:
            assert store.get_sync(HERE, ref).data.startswith(f"{worker}/{n} ")
        held = store.list_sync(HERE, limit=100_000).artifacts
        assert len(acknowledged) <= len(held) <= len(acknowledged) + 1
        sums = "SELECT count(*), sum(bytes) FROM artifact"
        assert rows_in(path, "SELECT held, bytes FROM scope") == rows_in(path, sums)
        assert rows_in(path, "PRAGMA integrity_check") == [("ok",)]
        assert store.put_sync(HERE, note()).meta.ref


MANY = """
import sys
import runbook_nb as rb
from runbook_nb.artifacts import ArtifactScope
store, scope = rb.SqliteArtifacts(sys.argv[1], max_count=100_000), ArtifactScope("c1")
round = 0
while True:
    many = [{"kind": "k", "mediaType": "m", "data": f"{round}/{n} " * 900} for n in range(200)]
    store.put_many_sync(scope, many)
    print(round, flush=True)
    round += 1
"""


def test_many_at_once_are_there_whole_or_not_at_all_when_the_process_is_killed(path):
    command = [sys.executable, "-c", MANY, str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    rounds = [process.stdout.readline() for _ in range(2)]
    os.kill(process.pid, signal.SIGKILL)
    with process.stdout:
        rounds += process.stdout.readlines()
    process.wait(60)
    with SqliteArtifacts(path, max_count=100_000) as store:
        held = store.list_sync(HERE, limit=100_000).artifacts
    assert len(held) in (200 * len(rounds), 200 * (len(rounds) + 1))


def test_a_store_travels_to_another_process_as_its_path_and_budget(path):
    with SqliteArtifacts(path, max_bytes=50, max_count=7, ttl_ms=9) as store:
        meta = store.put_sync(HERE, note("words")).meta
        with pickle.loads(pickle.dumps(store)) as other:  # noqa: S301
            assert other.retention == store.retention
            assert other.path == store.path
            assert other.head_sync(HERE, meta.ref) == meta


def from_a_child(store, ref, pipe):
    pipe.send(store.get_sync(HERE, ref).data)
    pipe.send(store.put_sync(HERE, note("from the child")).meta.ref)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_opens_the_file_for_itself(path):
    with SqliteArtifacts(path) as store:
        ref = store.put_sync(HERE, note("from the parent")).meta.ref
        mine, theirs = multiprocessing.Pipe()
        child = multiprocessing.get_context("fork").Process(
            target=from_a_child, args=(store, ref, theirs)
        )
        with store._database._lock, store._counting:  # as another thread would at that moment
            child.start()
        assert mine.recv() == "from the parent"
        other = mine.recv()
        child.join(30)
        assert child.exitcode == 0
        assert store.get_sync(HERE, other).data == "from the child"
        assert store.get_sync(HERE, ref).data == "from the parent"


# --- files that are something else ---------------------------------------------------------------


def refused(path, code="not_a_store"):
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(ArtifactError) as caught:
        SqliteArtifacts(path)
    assert caught.value.code == code
    assert caught.value.fix
    assert path.name in str(caught.value) or caught.value.where == "path"
    assert (path.read_bytes() if path.is_file() else None) == before
    return str(caught.value)


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(path):
    path.write_text("these are words, and no database " * 40, encoding="utf-8")
    assert "not a database" in refused(path)


def test_another_programs_database_is_refused_and_left_as_it_is(path):
    change(path, "CREATE TABLE mine (a)", "INSERT INTO mine VALUES (1)")
    assert "another program's" in refused(path)
    assert rows_in(path, "PRAGMA journal_mode") == [("delete",)]
    assert rows_in(path, "SELECT a FROM mine") == [(1,)]


def test_a_form_from_the_future_is_refused_with_its_number(path):
    SqliteArtifacts(path).close()
    change(path, "PRAGMA user_version = 7")
    assert "form 7" in refused(path)


@pytest.mark.parametrize(
    "planted",
    [
        "CREATE TRIGGER t AFTER INSERT ON artifact BEGIN DELETE FROM payload; END",
        "CREATE VIEW v AS SELECT 1",
        "DROP INDEX artifact_used",
        "CREATE TABLE more (a)",
    ],
)
def test_a_file_whose_tables_were_changed_is_refused(path, planted):
    SqliteArtifacts(path).close()
    change(path, planted)
    assert "not those of a store" in refused(path)


def test_a_damaged_file_is_said_to_be_one(path):
    with SqliteArtifacts(path, max_count=1000) as store:
        store.put_many_sync(HERE, [note(random.Random(n).randbytes(5000)) for n in range(60)])
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xa5" * (len(whole) - 4096))
    with pytest.raises(ArtifactError) as caught, SqliteArtifacts(path) as store:
        store.list_sync(HERE)
    assert caught.value.code == "not_a_store"


@pytest.mark.parametrize("wrong", [":memory:", "", None, 5, b"x.sqlite", "/", "a\0b", "a\ud900b"])
def test_a_path_that_is_none_is_refused(wrong):
    with pytest.raises(ArtifactError, match="cannot be kept in") as caught:
        SqliteArtifacts(wrong)
    assert caught.value.code == "store_unavailable"


def test_a_folder_that_is_not_there_and_one_that_is_in_the_way_are_said(tmp_path):
    assert "folder" in refused(tmp_path / "nowhere" / "walks.sqlite", "store_unavailable")
    refused(tmp_path, "store_unavailable")


def test_a_file_kept_locked_is_said_to_be_busy(path, monkeypatch):
    monkeypatch.setattr(waiting, "BUSY_SECONDS", 0.01)
    with SqliteArtifacts(path) as store:
        store.put_sync(HERE, note())
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ArtifactError) as caught:
            store.put_sync(HERE, note())
        assert caught.value.code == "store_busy"
        other.execute("COMMIT")
        other.close()
        assert store.put_sync(HERE, note("b")).meta


# --- rows that somebody else wrote ---------------------------------------------------------------


@pytest.mark.parametrize(
    "ticket",
    [
        "no json",
        "[]",
        "{}",
        '{"ref":"art_other","kind":"k","mediaType":"m","bytes":1,"createdAt":0,"digest":"d"}',
        '{"ref":5,"kind":"k","mediaType":"m","bytes":1,"createdAt":0,"digest":"d"}',
    ],
)
def test_a_ticket_that_was_rewritten_is_an_integrity_error(path, ticket):
    with SqliteArtifacts(path) as store:
        ref = store.put_sync(HERE, note()).meta.ref
        change(path, ("UPDATE artifact SET ticket = ?", (ticket,)))
        with pytest.raises(ArtifactError) as caught:
            store.get_sync(HERE, ref)
    assert caught.value.code == "integrity"


@pytest.mark.parametrize(
    ("packing", "body"),
    [
        (1, zlib.compress(b"y" * 10_000_000)),
        (1, zlib.compress(b"y")[:-3]),
        (1, b"no zlib"),
        (0, b"y"),
        (0, "text"),
        (7, zlib.compress(b"x")),
    ],
)
def test_a_payload_that_was_rewritten_is_an_integrity_error(path, packing, body):
    with SqliteArtifacts(path) as store:
        ref = store.put_sync(HERE, note("x" * 900)).meta.ref
        change(path, ("UPDATE payload SET packing = ?, body = ?", (packing, body)))
        with pytest.raises(ArtifactError) as caught:
            store.get_sync(HERE, ref)
        assert caught.value.code == "integrity"
        assert store.head_sync(HERE, ref) is not None


def test_a_payload_that_is_gone_is_an_integrity_error(path):
    with SqliteArtifacts(path) as store:
        ref = store.put_sync(HERE, note()).meta.ref
        change(path, "DELETE FROM payload")
        with pytest.raises(ArtifactError) as caught:
            store.get_sync(HERE, ref)
    assert caught.value.code == "integrity"


def test_one_that_cannot_be_read_hides_no_other_and_can_be_thrown_away(path):
    with SqliteArtifacts(path, max_count=9) as store:
        made = [store.put_sync(HERE, note(str(n), expiresAt=10**15)).meta.ref for n in range(9)]
        bad = store.list_sync(HERE, limit=1).artifacts[0].ref
        others = set(made) - {bad}
        change(path, ("UPDATE artifact SET ticket = '{}' WHERE ref = ?", (bad,)))
        first = store.list_sync(HERE, limit=4)
        rest = store.list_sync(HERE, limit=4, cursor=first.cursor)
        assert {ticket.ref for ticket in (*first.artifacts, *rest.artifacts)} == others
        assert rest.cursor is None
        assert store.put_sync(HERE, note("more")).swept[0].ref in others
        assert [(error.code, error.where) for error in store.faults()] == [("integrity", bad)]
        with pytest.raises(ArtifactError):
            store.get_sync(HERE, bad)
        assert store.delete_sync(HERE, bad) is True
        assert store.delete_sync(HERE, bad) is False
        assert store.faults() == ()
        sums = "SELECT count(*), sum(bytes) FROM artifact"
        assert rows_in(path, "SELECT held, bytes FROM scope") == rows_in(path, sums)


def test_a_damaged_payload_is_named_among_what_is_wrong(path):
    with SqliteArtifacts(path) as store:
        ref = store.put_sync(HERE, note("x" * 900)).meta.ref
        assert store.faults() == ()
        change(path, ("UPDATE payload SET packing = 0, body = ?", (b"y" * 900,)))
        assert [error.where for error in store.faults()] == [ref]


# --- the same as in memory -----------------------------------------------------------------------


def test_the_same_verbs_give_the_same_answers_as_in_memory(path, clock):
    from runbook_nb._ids import SeededIds

    def lives(store):
        told, refs, dice = [], [], random.Random(5)
        with settings(ids=SeededIds("twins")):
            for _ in range(400):
                clock.ms += dice.randrange(3)
                act = dice.randrange(6)
                scope = dice.choice([HERE, THERE])
                if act <= 2:
                    life = {"expiresAt": clock.ms + dice.randrange(1, 60)} if act == 2 else {}
                    filed = store.put_sync(scope, note("é" * dice.randrange(9), **life))
                    refs.append(filed.meta.ref)
                    told.append(filed)
                elif refs:
                    ref = dice.choice(refs)
                    verb = (store.get_sync, store.head_sync, store.delete_sync)[act - 3]
                    told.append(verb(scope, ref))
                page = store.list_sync(scope, limit=3)
                told += [page, store.list_sync(scope, limit=3, cursor=page.cursor), store.dropped]
        return told

    start = clock.ms
    memory = lives(InMemoryArtifacts(max_count=9, max_bytes=90))
    clock.ms = start
    with SqliteArtifacts(path, max_count=9, max_bytes=90) as store:
        assert lives(store) == memory
