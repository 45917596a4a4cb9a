"""A history of runs: what is added is kept once, opened again whole, and let go when told to."""

import itertools
import json
import multiprocessing
import os
import pickle
import random
import signal
import sqlite3
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

import runbook_nb as rb
from runbook_nb.artifacts.durable import BUSY_SECONDS
from runbook_nb.errors import ArtifactError, DefinitionError, LoadError, NoSuchPart
from runbook_nb.settings import settings
from runbook_nb.share import catalogue as module
from runbook_nb.testing import FrozenClock

NUMBERS = itertools.count()


def rules(version="v1", days=7):
    return rb.RuleSet("age", version, [rb.Rule({"days": {"gt": days}}, "old")], "fresh")


def answer(days=(9, 2), name="triage", judged=None, **more):
    rows = [{"host": f"h{n}", "days": value} for n, value in enumerate(days)]
    judged = rules() if judged is None else judged
    return rb.triage(rows, judged, subject="host", source="some rows", name=name, **more)


@pytest.fixture
def clock():
    clock = FrozenClock()
    with settings(clock=clock):
        yield clock


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.sqlite"


@pytest.fixture
def runs(path):
    with rb.Runs(path) as runs:
        yield runs


def change(path, *statement):
    database = sqlite3.connect(path)
    database.execute(*statement)
    database.commit()
    database.close()


# --- what is kept ------------------------------------------------------------------------------


def test_an_entry_says_what_the_answer_was(runs, clock):
    envelope = answer((9, 2, None))
    entry = runs.add(envelope, session="incident-7")
    assert (entry.id, entry.tool, entry.rules, entry.version) == (1, "triage", "age", "v1")
    assert dict(entry.verdicts) == {"fresh": 1, "old": 1, "declined": 1}
    assert (entry.rows, entry.complete, entry.session) == (3, True, "incident-7")
    assert entry.at == clock.moment
    assert entry.rules_digest == envelope.dossier.sources[0].digest
    assert entry == runs.entry(1) == next(iter(runs))
    assert entry.to_dict()["verdicts"] == {"fresh": 1, "old": 1, "declined": 1}
    assert json.loads(json.dumps(entry.to_dict()))["digest"] == entry.digest


def test_an_answer_is_opened_again_with_everything_it_can_be_asked(path):
    envelope = answer((9, 2))
    with rb.Runs(path) as runs:
        runs.add(envelope)
    with rb.Runs(path) as runs:
        again = runs[1]
        assert again == envelope == runs.open(1)
        assert again.why("h0").sentence == envelope.why("h0").sentence
        # To the byte: the order of keys is that of columns.
        assert again.to_json(dossier=True) == envelope.to_json(dossier=True)
        assert again.verify().ok
        assert list(again.compare(envelope).flips()) == []
        assert again.rejudge(rules("v2", 1)).counts()["old"] == 2


def test_the_same_answer_is_kept_once(runs, clock):
    envelope = answer()
    first = runs.add(envelope)
    clock.advance(hours=1)
    assert runs.add(envelope) == first
    copy = rb.Envelope.from_dict(json.loads(envelope.to_json(dossier=True)))
    assert runs.add(copy) == first
    assert runs.add(runs[1]) == first
    assert len(runs) == 1
    assert runs.add(answer()).id == 2  # the same rows, judged another time


def test_a_copy_with_its_dossier_replaces_one_without_and_never_the_other_way(runs):
    envelope = answer()
    bare = rb.Envelope.from_dict(json.loads(envelope.to_json()))
    entry = runs.add(bare)
    assert entry.complete is False
    assert entry.rules is None
    full = runs.add(envelope)
    assert (full.id, full.complete, full.rules) == (entry.id, True, "age")
    assert runs[1].why("h0").sentence == envelope.why("h0").sentence
    assert runs.add(bare) == full


def test_a_forged_dossier_does_not_replace_the_one_that_was_added(runs):
    envelope = answer((9, 2))
    entry = runs.add(envelope)
    forged = envelope.to_dict(dossier=True)
    for subject in forged["dossier"]["subjects"]:
        subject["decision"]["values"] = [10**40]
    assert runs.add(rb.Envelope.from_dict(forged)) == entry
    assert runs[1].why("h0").sentence == envelope.why("h0").sentence


def test_a_copy_that_does_not_hold_every_row_is_not_counted(runs):
    envelope = answer(range(120), max_rows=5)
    bare = rb.Envelope.from_dict(json.loads(envelope.to_json()))
    entry = runs.add(bare)
    assert entry.verdicts is None
    assert entry.rows == 120
    assert "not every row is carried" in str(runs.history("triage"))
    assert runs.add(envelope).verdicts["old"] == 112


@pytest.mark.parametrize("wrong", [None, {}, "envelope", 5, {"af_coverage": {}, "result": {}}])
def test_what_is_no_envelope_is_refused(runs, wrong):
    with pytest.raises(DefinitionError, match="is no envelope"):
        runs.add(wrong)
    assert len(runs) == 0


def test_a_secret_is_nowhere_in_the_file(path):
    rows = [{"host": "a", "days": 9, "token": "t0p-s3cret-value"}]
    with rb.Runs(path) as runs:
        envelope = rb.triage(
            rows,
            rules(),
            subject="host",
            source="t0p-s3cret-value",
            columns=["token"],
            redact={"keys": ["token"]},
        )
        runs.add(envelope)
        assert "t0p-s3cret" not in json.dumps(runs[1].to_dict(dossier=True))
        assert "t0p-s3cret" not in str(runs.history()) + str(runs.entry(1).to_dict())
    database = sqlite3.connect(path)
    for row in database.execute("SELECT * FROM run").fetchall():
        for value in row:
            text = zlib.decompress(value).decode() if isinstance(value, bytes) else str(value)
            assert "t0p-s3cret" not in text
    database.close()


# --- the doors ---------------------------------------------------------------------------------


def look(name="look"):
    def procedure(tools):
        return rb.flow_chart("look", lambda scope: None, id="look").build()

    return rb.runbook_as_tool(name=name, description="Looks.", procedure=procedure)


def test_a_toolbox_keeps_all_it_answers(runs):
    @rb.tool
    def ages():
        """Give ages."""
        return [2, 30]

    box = rb.Toolbox([look(), ages], middleware=[runs.keep], session=rb.Session("incident-7"))
    envelope = box.call_sync("look", {})
    assert box.call_sync("ages", {}) == [2, 30]
    assert [(entry.tool, entry.session) for entry in runs] == [("look", "incident-7")]
    assert runs[1] == envelope


def test_an_answer_that_cannot_be_kept_is_given_with_a_warning(runs, monkeypatch):
    def full(envelope, session=None):
        raise ArtifactError("the disk is full", code="store_unavailable")

    monkeypatch.setattr(runs, "add", full)
    box = rb.Toolbox([look()], middleware=[runs.keep])
    with pytest.warns(RuntimeWarning, match="the answer of look was not kept: the disk is full"):
        assert box.call_sync("look", {})["result"]["af_provenance"]["tool"] == "look"


def test_the_walk_of_a_run_is_redeemed_where_a_store_is_at_hand(path):
    box = rb.Toolbox([look()])
    with rb.Runs(path, artifacts=box) as runs:
        runs.add(box.call_sync("look", {}))
        assert len(runs[1].walk.rows) > 0
    with rb.Runs(path) as runs:
        with pytest.raises(rb.errors.NotCarried):
            len(runs[1].walk.rows)
        assert len(runs.open(1, artifacts=box).walk.rows) > 0


# --- asking ------------------------------------------------------------------------------------


def test_runs_are_asked_for_by_their_runbook(runs):
    assert runs.history("triage").tool == "triage"  # none of any is no mistake of a name
    for name in ("disks", "hosts", "disks"):
        runs.add(answer(name=name))
    assert runs.tools == ("disks", "hosts")
    assert [entry.id for entry in runs.history("disks")] == [1, 3]
    assert [entry.id for entry in runs.history()] == [1, 2, 3]
    assert runs.latest("disks") == runs[3]
    assert runs.latest("nobody") is None
    assert (2 in runs, 4 in runs, "2" in runs) == (True, False, False)
    with pytest.raises(NoSuchPart, match="did you mean 'disks'"):
        runs.history("disk")


@pytest.mark.parametrize("wrong", [0, 2, -1, 10**30, "1", None, 1.0, True])
def test_a_number_that_is_no_runs_is_said_to_be_none(runs, wrong):
    with pytest.raises(NoSuchPart, match="none is kept yet"):
        runs[wrong]
    runs.add(answer())
    with pytest.raises(NoSuchPart, match="numbered from 1 to 1"):
        runs[wrong]
    with pytest.raises(NoSuchPart):
        runs.entry(wrong)


def test_two_runs_are_compared_by_the_rule_and_the_values_that_differ(runs):
    runs.add(answer((9, 2)))
    runs.add(answer((1, 2)))
    comparison = runs.compare(1, 2)
    assert [(flip.subject, flip.before, flip.after) for flip in comparison.flips()] == [
        ("h0", "old", "fresh")
    ]


# --- letting go --------------------------------------------------------------------------------


def ids(runs):
    return [entry.id for entry in runs]


@pytest.fixture
def filled(runs, clock):
    for n in range(6):
        runs.add(answer((n,), name="disks" if n % 2 else "hosts"))
        clock.advance(days=1)
    return runs


def test_the_newest_of_each_runbook_are_kept(filled):
    gone = filled.forget(keep=1)
    assert gone.ids == (1, 2, 3, 4)
    assert gone.left == 2
    assert ids(filled) == [5, 6]
    assert str(gone).splitlines()[0] == "Forgotten · 4 runs: 1, 2, 3 and 4"
    assert gone.bytes > 1000


def test_what_is_said_must_all_be_met(filled):
    third = datetime(2026, 1, 3, tzinfo=UTC)
    assert filled.forget(before=third, tool="disks").ids == (2,)
    assert filled.forget(ids=[1, 99]).ids == (1,)
    assert filled.forget(tool="nobody").ids == ()
    assert filled.forget(keep=0, tool="hosts").ids == (3, 5)
    assert ids(filled) == [4, 6]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"keep": -1},
        {"keep": True},
        {"keep": "5"},
        {"before": "2026-01-01"},
        {"before": datetime(2026, 1, 1)},  # noqa: DTZ001 - without a zone on purpose
        {"ids": ["1"]},
        {"tool": 5},
    ],
)
def test_what_cannot_be_meant_lets_nothing_go(filled, wrong):
    with pytest.raises(DefinitionError):
        filled.forget(**wrong)
    assert len(filled) == 6


def test_numbers_are_never_given_again_and_nothing_is_left_of_what_went(path):
    with rb.Runs(path) as runs:
        for n in range(3):
            runs.add(answer((n,), name=f"needle-{n}-in-the-file"))
        runs.forget(ids=[3])
        assert runs.add(answer((5,))).id == 4
        left = b"".join(found.read_bytes() for found in path.parent.iterdir())
        assert b"needle-2" not in left
        assert b"needle-1" in left


# --- the file ----------------------------------------------------------------------------------


def refused(path, code="not_a_store"):
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(ArtifactError) as caught:
        rb.Runs(path)
    assert caught.value.code == code
    assert "history of runs" in str(caught.value) or caught.value.where == "path"
    assert (path.read_bytes() if path.is_file() else None) == before
    return str(caught.value)


def test_a_file_that_is_something_else_is_refused_and_left_as_it_is(path, tmp_path):
    path.write_text("these are words " * 90, encoding="utf-8")
    assert "not a database" in refused(path)
    rb.SqliteArtifacts(tmp_path / "walks.sqlite").close()
    assert "another program's" in refused(tmp_path / "walks.sqlite")
    refused(tmp_path / "nowhere" / "runs.sqlite", "store_unavailable")


def test_a_form_from_the_future_is_refused_with_its_number(path):
    rb.Runs(path).close()
    change(path, "PRAGMA user_version = 4")
    assert "form 4" in refused(path)


def test_a_history_travels_to_another_process_as_its_path(path, runs):
    runs.add(answer())
    with pickle.loads(pickle.dumps(runs)) as other:  # noqa: S301
        assert other[1] == runs[1]


@pytest.mark.parametrize(
    "damage",
    [
        ("UPDATE run SET body = ?", (zlib.compress(b"{}"),)),
        ("UPDATE run SET body = ?", (b"no zlib",)),
        ("UPDATE run SET body = 'text'", ()),
        ("UPDATE run SET bytes = 10", ()),
        ("UPDATE run SET sum = 'sha-256:0'", ()),
    ],
)
def test_what_was_changed_behind_its_back_is_told_and_hides_no_other(path, runs, damage):
    runs.add(answer())
    change(path, *damage)
    kept = runs.add(answer())
    with pytest.raises(ArtifactError) as caught:
        runs[1]
    assert caught.value.code == "integrity"
    assert runs[kept.id].tool == "triage"
    assert len(runs.history()) == 2


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("verdicts", "no json"),
        ("origin", "no json"),
        ("verdicts", '[["old",99]]'),
        ("rows", 99),
        ("complete", 0),
        ("version", "v9"),
        ("rules_digest", "sha-256:0"),
        ("tool", "other"),
        ("session", "other"),
        ("at", 0),
    ],
)
def test_an_entry_that_says_other_than_was_added_is_told(path, runs, column, value):
    runs.add(answer())
    change(path, f"UPDATE run SET {column} = ?", (value,))  # noqa: S608 - ours
    with pytest.raises(ArtifactError) as caught:
        runs.history()
    assert caught.value.code == "integrity"
    assert runs.forget(ids=[1]).ids == (1,)


def test_an_answer_of_another_form_is_named(path, runs):
    runs.add(answer())
    text = json.dumps({"format": "runbook_nb/envelope/9", "envelope": {}})
    values = (zlib.compress(text.encode()), len(text), module.digest(text))
    change(path, "UPDATE run SET body = ?, bytes = ?, sum = ?", values)
    with pytest.raises(LoadError, match="envelope/9") as caught:
        runs[1]
    assert caught.value.code == "unknown_format"


# --- side by side ------------------------------------------------------------------------------


def test_threads_share_a_history(runs):
    envelopes = [answer((n, 9)) for n in range(24)]
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(runs.add, envelopes * 2))
    assert len(runs) == 24
    assert {entry.id for entry in made} == set(range(1, 25))
    assert {runs[entry.id]["result"]["table"] for entry in made} == {
        envelope["result"]["table"] for envelope in envelopes
    }


def add_some(path, number, pipe):
    with rb.Runs(path) as runs:
        for n in range(5):
            pipe.send(runs.add(answer((number, n), name=f"p{number}")).digest)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_eight_processes_add_at_once_and_lose_nothing(path):
    context = multiprocessing.get_context("fork")
    pipes = [context.Pipe() for _ in range(8)]
    started = [
        context.Process(target=add_some, args=(path, n, theirs))
        for n, (_, theirs) in enumerate(pipes)
    ]
    for process in started:
        process.start()
    heard = {mine.recv() for mine, _ in pipes for _ in range(5)}
    for process in started:
        process.join(BUSY_SECONDS)
        assert process.exitcode == 0
    with rb.Runs(path) as runs:
        assert {entry.digest for entry in runs} == heard
        assert len(heard) == 40
        assert all(runs[entry.id].tool == entry.tool for entry in runs)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_process_killed_while_it_adds_loses_nothing_it_acknowledged(path):
    dice, acknowledged = random.Random(3), 0
    envelopes = [answer((n, 2)) for n in range(30)]
    rb.Runs(path).close()
    for number in range(20):
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                with rb.Runs(path) as runs:
                    for envelope in envelopes:
                        runs.add(envelope, session=str(number))
                        os.write(writing, b".")
            finally:
                os._exit(0)
        os.close(writing)
        heard = len(os.read(reading, dice.randrange(1, 4)))
        os.kill(child, signal.SIGKILL)
        while more := os.read(reading, 100):
            heard += len(more)
        os.close(reading)
        os.waitpid(child, 0)
        acknowledged = max(acknowledged, heard)
        with rb.Runs(path) as runs:
            assert acknowledged <= len(runs) <= len(envelopes)
            assert [runs[entry.id] for entry in runs] == envelopes[: len(runs)]
    database = sqlite3.connect(path)
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    database.close()


@pytest.mark.parametrize("session", [5, ["a"], b"a", "a\ud800"])
def test_a_session_is_named_by_a_text_that_a_file_can_hold(runs, session):
    with pytest.raises(DefinitionError, match="a session is named by a text"):
        runs.add(answer(), session=session)
    with pytest.raises(DefinitionError, match="a runbook is named by a text"):
        runs.history(session)
    assert len(runs) == 0
