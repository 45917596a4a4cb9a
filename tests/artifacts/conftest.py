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
from runbook_nb.artifacts import InMemoryArtifacts, SqliteArtifacts
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


@pytest.fixture(scope="session")
def folder():
    """Give a folder for hundreds of files, in memory where the system has such a place."""
    shared = Path("/dev/shm")  # noqa: S108
    with tempfile.TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None) as made:
        yield Path(made)


@pytest.fixture(params=[Memory, Sqlite], scope="session")
def make(request, folder):
    """Give what makes a store, of one kind after the other."""
    return request.param(folder)
