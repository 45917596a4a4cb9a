"""Writers that are killed and processes side by side, on every store that outlives its process."""

import itertools
import json
import os
import sqlite3
import tempfile
from pathlib import Path

import pytest

import runbook_nb as rb
from runbook_nb.testing import check_store
from runbook_nb.testing.store_crashes import CLAIMS

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork"),
]

NAMES = [claim.name for claim in CLAIMS]
NUMBERS = itertools.count()


@pytest.fixture
def folder(tmp_path):
    """Give a folder in memory where there is such a place: no machine crashes here."""
    shared = Path("/dev/shm")  # noqa: S108
    if not os.access(shared, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=shared) as made:
        yield Path(made)


def made(folder, kind):
    def make(**dials):
        return kind(folder / f"{next(NUMBERS)}", **dials)

    return make


def test_200_writers_killed_and_8_at_once_on_the_database(folder):
    opened = []

    def make(**dials):
        opened.append(rb.SqliteArtifacts(folder / f"{next(NUMBERS)}", **dials))
        return opened[-1]

    check_store(make, durable=lambda store: rb.SqliteArtifacts(store.path), raising=True)
    for store in opened:
        database = sqlite3.connect(store.path)
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        held = database.execute("SELECT id, held, bytes FROM scope").fetchall()
        for scope, rows, size in held:
            sums = "SELECT count(*), sum(bytes) FROM artifact WHERE scope = ?"
            assert database.execute(sums, (scope,)).fetchone() == (rows, size)
        orphans = "SELECT count(*) FROM payload WHERE id NOT IN (SELECT payload FROM artifact)"
        assert database.execute(orphans).fetchone() == (0,)
        database.close()


def test_200_writers_killed_and_8_at_once_on_the_folder(folder):
    opened = []

    def make(**dials):
        opened.append(rb.FileArtifacts(folder / f"{next(NUMBERS)}", **dials))
        return opened[-1]

    check_store(make, durable=lambda store: rb.FileArtifacts(store.path), raising=True)
    for store in opened:
        tickets = list(store.path.glob("scopes/*/*.json"))
        assert len(list(store.path.glob("payloads/*/*/*"))) == len(tickets)
        assert list(store.path.glob("drafts/*/*")) == []
        assert store.faults() == ()


def test_writers_killed_and_8_at_once_on_a_folder_that_fsspec_reaches(folder):
    def make(**dials):
        return rb.RemoteArtifacts(f"file://{folder}/{next(NUMBERS)}", **dials)

    check_store(make, durable=lambda store: rb.RemoteArtifacts(store.url), rounds=40, raising=True)


# --- stores that lose or spoil something -------------------------------------------------------


class Acknowledges(rb.SqliteArtifacts):
    """Says that something is filed, and files it with the one after it."""

    waiting = None

    def put_sync(self, scope, artifact):
        first, self.waiting = self.waiting, (scope, artifact)
        if first is None:
            return super().put_sync(scope, artifact)
        return super().put_sync(*first)


class Plain(rb.InMemoryArtifacts):
    """Keeps everything in one file that it writes again and again, under its own name."""

    def __init__(self, path, **dials):
        super().__init__(max_count=10_000)
        self.path = path

    def put_sync(self, scope, artifact):
        result = super().put_sync(scope, artifact)
        self._save(scope)
        return result

    def delete_sync(self, scope, ref):
        done = super().delete_sync(scope, ref)
        self._save(scope)
        return done

    def _save(self, scope):
        held = self._shelves.get(scope)
        rows = (
            []
            if held is None
            else [(row.ticket.to_dict(), data.decode()) for row, data in held._held.values()]
        )
        self.path.write_text(json.dumps(rows), encoding="utf-8")

    def load(self, scope):
        from runbook_nb.artifacts.packing import read_wire

        if self.path.exists():
            with self._open(scope) as shelf:
                for wire, data in json.loads(self.path.read_text(encoding="utf-8")):
                    row = rb.artifacts.Row(read_wire(wire["ref"], wire), "text")
                    shelf.add(row, data.encode())
        return self


def again(store):
    from runbook_nb.testing.store_claims import HERE

    return type(store)(store.path).load(HERE)


class Forgets(rb.FileArtifacts):
    """Writes tickets where they are not found again."""

    def _put(self, scope, artifact, options):
        result = super()._put(scope, artifact, options)
        if result.meta.bytes > 10_000:
            self._delete(scope, result.meta.ref, result.meta.created_at)
        return result


def test_one_that_acknowledges_too_early_is_told(folder):
    report = check_store(
        made(folder, Acknowledges),
        durable=lambda store: Acknowledges(store.path),
        only=["killed"],
        rounds=20,
    )
    assert [claim.name for claim in report.broken] == ["killed"]


def test_one_that_loses_now_and_then_is_told(folder):
    report = check_store(
        made(folder, Forgets), durable=lambda store: Forgets(store.path), only=["killed"], rounds=20
    )
    assert [claim.name for claim in report.broken] == ["killed"]
    assert "acknowledged" in report.broken[0].expected


@pytest.mark.parametrize("name", NAMES)
def test_one_that_writes_in_place_is_told(folder, name):
    report = check_store(made(folder, Plain), durable=again, only=[name], rounds=60)
    assert [claim.name for claim in report.broken] == [name]


def test_a_store_that_is_not_said_to_be_durable_is_not_tried():
    report = check_store(rb.InMemoryArtifacts, only=NAMES)
    assert [claim.because for claim in report.claims] == ["no durable= was given"] * 2


def test_the_seed_decides_when_writers_are_killed(folder, monkeypatch):
    from runbook_nb.testing import store_crashes as module

    waits = []
    monkeypatch.setattr(module, "_wait", waits.append)
    for seed in (1, 1, 2):
        check_store(
            made(folder, rb.SqliteArtifacts),
            durable=lambda store: rb.SqliteArtifacts(store.path),
            only=["killed"],
            rounds=3,
            seed=seed,
            raising=True,
        )
    assert waits[:3] == waits[3:6] != waits[6:]


def test_where_nothing_can_be_forked_that_is_said(monkeypatch):
    monkeypatch.delattr(os, "fork")
    report = check_store(rb.InMemoryArtifacts, durable=lambda store: store, only=NAMES)
    assert {claim.because for claim in report.claims} == {"this system cannot fork"}
