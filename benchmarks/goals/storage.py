"""Ten thousand artifacts of 40 KB in a file: goal 28."""

from __future__ import annotations

import random
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import ours
import task
from goal import Figure, Plan, goal
from measure import median

import runbook_nb as rb
from runbook_nb.artifacts import ArtifactScope

ONE = "one transaction"
SUBJECTS = 16  # whose walk is about 40 KB


def artifacts_of(n: int) -> list[dict[str, Any]]:
    """Give what a store really gets: the walk of a triage, filed under run after run."""
    run = ours.row_wise_chart(task.rows_of(SUBJECTS)).run_sync()
    filed = rb.chart_walk_put_input(run.walk.to_dicts())
    walk = filed["data"]
    return [{**filed, "data": f'{{"run":"run-{k:05}","rows":{walk}}}'} for k in range(n)]


def one_transaction(path: Path, payloads: list[bytes]) -> None:
    """File payloads as they are: write-ahead log, one transaction."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute("CREATE TABLE kept (ref TEXT PRIMARY KEY, body BLOB NOT NULL)")
    database.execute("BEGIN")
    for number, payload in enumerate(payloads):
        database.execute("INSERT INTO kept VALUES (?, ?)", (f"{number:022}", payload))
    database.execute("COMMIT")
    database.close()


def together(path: Path, artifacts: list[dict[str, Any]]) -> list[rb.Ticket]:
    with rb.SqliteArtifacts(path, max_bytes=2**40, max_count=10**6) as store:
        return [put.meta for put in store.put_many_sync(ArtifactScope("c"), artifacts)]


def each_alone(path: Path, artifacts: list[dict[str, Any]]) -> None:
    with rb.SqliteArtifacts(path, max_bytes=2**40, max_count=10**6) as store:
        for artifact in artifacts:
            store.put_sync(ArtifactScope("c"), artifact)


def verify(path: Path, tickets: list[rb.Ticket], artifacts: list[dict[str, Any]]) -> None:
    with rb.SqliteArtifacts(path, max_bytes=2**40, max_count=10**6) as store:
        for place in range(0, len(artifacts), 97):
            kept = store.get_sync(ArtifactScope("c"), tickets[place].ref)
            if kept is None or kept.data != artifacts[place]["data"]:
                raise AssertionError(f"artifact {place} did not come back")


def incompressible(n: int, size: int) -> list[dict[str, Any]]:
    """Give bytes that no packing makes smaller, so that a store keeps them as they are."""
    dice = random.Random(28)
    kind = {"kind": "blob", "mediaType": "application/octet-stream"}
    return [{**kind, "data": dice.randbytes(size)} for _ in range(n)]


@goal(28, "10,000 artifacts of 40 KB in a store in a file", "one WAL transaction, uncompressed")
def artifacts_in_a_file(plan: Plan) -> Iterator[Figure]:
    n = plan.size(10_000)
    artifacts = artifacts_of(n)
    payloads = [artifact["data"].encode() for artifact in artifacts]
    yield Figure("size of an artifact", len(payloads[0]), "B")
    blobs = incompressible(n, len(payloads[0]))
    plain = [blob["data"] for blob in blobs]
    works: dict[str, Callable[[Path], Any]] = {
        ONE: lambda path: one_transaction(path, payloads),
        "put_many, packed": lambda path: together(path, artifacts),
        "put, one by one, packed": lambda path: each_alone(path, artifacts),
        f"{ONE}, of bytes that cannot be packed": lambda path: one_transaction(path, plain),
        "put_many, as they are": lambda path: together(path, blobs),
    }
    times: dict[str, list[float]] = {name: [] for name in works}
    sizes: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(plan.rounds(5)):
            for name, work in works.items():
                path = Path(folder) / f"{turn}.sqlite"
                start = perf_counter()
                made = work(path)
                times[name].append(perf_counter() - start)
                sizes[name] = path.stat().st_size
                if name == "put_many, packed" and turn == 0:
                    verify(path, made, artifacts)
                path.unlink()
    references = {"put_many, as they are": f"{ONE}, of bytes that cannot be packed"}
    for name, gate, stretch in (
        ("put_many, packed", 0.6, 0.4),
        ("put_many, as they are", 1.2, 1.0),
        # A transaction each, where the reference has one for all: told beside, and held to nothing.
        ("put, one by one, packed", None, None),
    ):
        pairs = zip(times[name], times[references.get(name, ONE)], strict=True)
        yield Figure(name, median(one / other for one, other in pairs), "x", gate, stretch)
    yield Figure(f"{ONE}, uncompressed", median(times[ONE]), "s")
    yield Figure("file, of the uncompressed one", sizes["put_many, packed"] / sizes[ONE])
