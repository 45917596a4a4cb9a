"""Stores of every kind, a clock that stands still, and ids that come out the same every time."""

import itertools
import os
import sqlite3
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from runbook_nb._ids import SeededIds
from runbook_nb.artifacts import FileArtifacts, InMemoryArtifacts, RemoteArtifacts, SqliteArtifacts
from runbook_nb.settings import settings


class Clock:
    """Gives the time it was set to."""

    def __init__(self):
        self.ms = 1_000_000

    def __call__(self):
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=self.ms)


@pytest.fixture
def clock():
    """Fix the clock and the ids of the whole test."""
    clock = Clock()
    with settings(clock=clock, ids=SeededIds("artifacts")):
        yield clock


@dataclass(frozen=True)
class Memory:
    """Makes stores in memory."""

    folder: Any
    kind = InMemoryArtifacts
    name = "in memory"

    def __call__(self, *args, **dials):
        return InMemoryArtifacts(*args, **dials)

    def of(self, subclass):
        return subclass()

    def tamper(self, store, ref, payload):
        for shelf in store._shelves.values():
            row, _ = shelf._held[ref]
            shelf._held[ref] = (row, payload)

    def is_bare(self, store):
        return store._shelves == {}


@dataclass(frozen=True)
class Sqlite:
    """Makes stores in files, a new one each time."""

    folder: Any
    kind = SqliteArtifacts
    name = "here.sqlite"

    numbers = itertools.count()

    def __call__(self, *args, **dials):
        return SqliteArtifacts(self.path(), *args, **dials)

    def path(self):
        folder = self.folder / str(next(self.numbers))
        folder.mkdir()
        return folder / self.name

    def of(self, subclass):
        return subclass(self.path())

    def tamper(self, store, ref, payload):
        with sqlite3.connect(store.path) as database:
            database.execute("UPDATE payload SET packing = 0, body = ?", (payload,))
        database.close()

    def is_bare(self, store):
        database = sqlite3.connect(store.path)
        counts = [
            database.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608
            for table in ("scope", "artifact", "payload")
        ]
        database.close()
        return counts == [(0,)] * 3


@dataclass(frozen=True)
class Folders:
    """Makes stores in folders, a new one each time."""

    folder: Any
    kind = FileArtifacts
    name = "here"

    numbers = itertools.count()

    def __call__(self, *args, **dials):
        return FileArtifacts(self.path(), *args, **dials)

    def path(self):
        folder = self.folder / f"f{next(self.numbers)}"
        folder.mkdir()
        return folder / self.name

    def of(self, subclass):
        return subclass(self.path())

    def tamper(self, store, ref, payload):
        for found in store.path.glob(f"payloads/*/*/{ref}"):
            found.write_bytes(payload)

    def is_bare(self, store):
        left = [*store.path.glob("scopes/*"), *store.path.glob("payloads/*/*")]
        return left == [] == list(store.path.glob("drafts/*/*"))


@dataclass(frozen=True)
class Remote:
    """Makes stores in the memory of fsspec, a new one each time."""

    folder: Any
    kind = RemoteArtifacts
    name = "here"

    numbers = itertools.count()

    def __call__(self, **dials):
        return RemoteArtifacts(self.path(), **dials)

    def path(self):
        return f"memory://r{os.getpid()}-{next(self.numbers)}/{self.name}"

    def of(self, subclass):
        return subclass(self.path())

    def tamper(self, store, ref, payload):
        system, root = store._files._system, store._files._root
        for found in system.glob(f"{root}/payloads/*/*/{ref}"):
            system.pipe_file(found, payload)

    def is_bare(self, store):
        system, root = store._files._system, store._files._root
        return [name.rpartition("/")[2] for name in system.find(root)] == ["runbook_nb.json"]


class Mounted(Remote):
    """Makes stores in folders that fsspec reaches, a new one each time."""

    def path(self):
        return f"file://{self.folder}/m{next(self.numbers)}/{self.name}"


@pytest.fixture(scope="session")
def folder():
    """Give a folder for hundreds of files, in memory where the system has such a place."""
    shared = Path("/dev/shm")  # noqa: S108
    with tempfile.TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None) as made:
        yield Path(made)


@pytest.fixture(params=[Memory, Sqlite, Folders, Remote, Mounted], scope="session")
def make(request, folder):
    """Give what makes a store, of one kind after the other."""
    return request.param(folder)
