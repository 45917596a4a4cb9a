"""Against others doing the same task: goals 9 to 11.

Every peer runs in a process of its own, kept for all rounds; in each round ours and every peer have
a turn. Peers do things this task does not ask for; what each is with and without its recording is
said in its file under ``peers/``.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Any

import ours
import task
from goal import Figure, NotMeasured, Plan, goal
from measure import HERE, growth

#: Another interpreter for the peers, and where footprintjs is installed.
PYTHON = os.environ.get("RUNBOOK_NB_PEERS_PYTHON", sys.executable)
NODE_MODULES = Path(
    os.environ.get(
        "RUNBOOK_NB_NODE_MODULES", HERE.parent / "tests" / "browser" / "viewer" / "node_modules"
    )
)
#: Longest that one turn of a peer may take at the largest size, as foreseen from the size before.
LONGEST = 40.0

WITHOUT = {
    "burr_peer": ("no tracker",),
    "pydantic_peer": ("no walk",),
    "langgraph_peer": ("no saver",),
    "hamilton_peer": ("no hook",),
}
WITH = {
    "burr_peer": ("tracker", "sqlite"),
    "langgraph_peer": ("saver in memory", "saver in memory, async"),
}
#: Told beside them, and held to nothing.
BESIDE = {
    "numpy_columns": ("verdicts", "evidence columns"),
    "polars_columns": ("verdicts", "evidence columns"),
}
BESIDE_WITH = {"pydantic_peer": ("walk kept by hand",), "hamilton_peer": ("hook per node",)}


class Peer:
    """A peer's process."""

    def __init__(self, name: str) -> None:
        if name == "footprintjs":
            node = shutil.which("node")
            if node is None:
                raise NotMeasured("node is not installed")
            script = HERE / "peers" / "footprintjs.mjs"
            options = ["--expose-gc", "--max-old-space-size=4096"]
            command = [node, *options, str(script), str(NODE_MODULES)]
        else:
            command = [PYTHON, str(HERE / "peers" / "worker.py"), name]
        self.name = name
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=HERE,
        )
        said = self._hear()
        if "missing" in said:
            self.close()
            raise NotMeasured(said["missing"])
        self.version = said["version"]

    def _hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.close()
            raise RuntimeError(f"{self.name} ended with {self.process.returncode}")
        told: dict[str, Any] = json.loads(line)
        return told

    def run(self, mode: str, n: int) -> float:
        """Do the task once; gives seconds."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{mode} {n}\n")
        self.process.stdin.flush()
        said = self._hear()
        if "wrong" in said:
            raise AssertionError(f"{self.name}, {mode}: {said['wrong']}")
        return float(said["seconds"])

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def compared(
    plan: Plan, wanted: Mapping[str, tuple[str, ...]], sizes: Mapping[int, int]
) -> Iterator[tuple[str, str, int, float, dict[str, float]]]:
    """Run peers beside ours; gives name, mode, N, seconds, and the ratios of ours to it."""
    peers: dict[str, Peer] = {}
    missing: dict[str, str] = {}
    for name in wanted:
        try:
            peers[name] = Peer(name)
        except NotMeasured as why:
            missing[name] = str(why)
    for name, why in missing.items():
        print(f"not run: {name}: {why}", file=sys.stderr)
    if not peers:
        raise NotMeasured("; ".join(f"{name}: {why}" for name, why in missing.items()))
    seen: dict[tuple[str, str], list[tuple[int, float]]] = {}
    try:
        for n, rounds in sizes.items():
            yield from _at(plan, peers, wanted, n=n, rounds=rounds, seen=seen)
    finally:
        for peer in peers.values():
            peer.close()
    if missing:
        raise NotMeasured("; ".join(f"{name}: {why}" for name, why in missing.items()))


def _at(
    plan: Plan,
    peers: Mapping[str, Peer],
    wanted: Mapping[str, tuple[str, ...]],
    *,
    n: int,
    rounds: int,
    seen: dict[tuple[str, str], list[tuple[int, float]]],
) -> Iterator[tuple[str, str, int, float, dict[str, float]]]:
    mine = works(n)
    turns = {
        (name, mode): peer
        for name, peer in peers.items()
        for mode in wanted[name]
        if _foreseen(seen.get((name, mode), []), n) < LONGEST
    }
    times: dict[Any, list[float]] = {key: [] for key in [*turns, *mine]}
    for work in mine.values():
        work()
    for turn in range(-1, plan.rounds(rounds)):
        for name, work in mine.items():
            taken = interleaved_once(work)
            if turn >= 0:
                times[name].append(taken)
        for (name, mode), peer in turns.items():
            if turn < 0 and (n > 1_000 or rounds == 1):
                continue  # warm from the size before
            taken = peer.run(mode, n)
            if turn >= 0:
                times[name, mode].append(taken)
    for (name, mode), peer in turns.items():
        seconds = statistics.median(times[name, mode])
        seen.setdefault((name, mode), []).append((n, seconds))
        plan.note(f"{peer.version}, {mode}", n, seconds / n * 1e6)
        ratios = {
            kind: statistics.median(
                one / other for one, other in zip(times[kind], times[name, mode], strict=True)
            )
            for kind in mine
        }
        yield peer.version, mode, n, seconds, ratios
    for kind in mine:
        plan.note(kind, n, statistics.median(times[kind]) / n * 1e6)


def _foreseen(before: list[tuple[int, float]], n: int) -> float:
    """Say how long a peer will take, by how it grew from the sizes before."""
    if not before:
        return 0.0
    (size, seconds) = before[-1]
    power = 1.0
    if len(before) > 1:
        power = max(1.0, growth([m for m, _ in before], [taken for _, taken in before]))
    return seconds * (n / size) ** power


def interleaved_once(work: Any) -> float:
    import gc

    gc.collect()
    start = perf_counter()
    made = work()
    taken = perf_counter() - start
    del made
    return taken


def works(n: int) -> dict[str, Any]:
    rows = task.rows_of(n)
    found = {"row-wise": ours.answers(ours.row_wise_chart(rows))}
    with suppress(NotMeasured):
        found["batch, rows in"] = ours.answers(ours.batch_chart(rows, n))
    return found


def over(value: float) -> float:
    """Give how many times as long the other takes."""
    return 1 / value


@goal(9, "a recorded triage, N = 1,000", "footprintjs, full recording", peers=True)
def against_footprintjs(plan: Plan) -> Iterator[Figure]:
    wanted = {"footprintjs": ("full recording", "no recorder")}
    sizes = {50: 9, plan.size(1_000): 5}
    for version, mode, n, seconds, ratios in compared(plan, wanted, sizes):
        yield Figure(f"{version}, {mode}, N = {n:,}", seconds / n * 1e6, "us/subject")
        held = n == 1_000 and mode == "full recording"
        for kind, gate, stretch in (("row-wise", 150, 800), ("batch, rows in", 1_500, 6_000)):
            if kind in ratios:
                bounds = (gate, stretch) if held else (None, None)
                label = f"{kind}, times as fast, N = {n:,}"
                yield Figure(label, over(ratios[kind]), "x", *bounds, at_least=True)
    if "batch, rows in" not in works(1):
        raise NotMeasured("batch: the builder has no add_judge_each yet")


def _fastest(
    plan: Plan, wanted: dict[str, Any], beside: dict[str, Any], gate: float, stretch: float
) -> Iterator[Figure]:
    sizes = {50: 7, plan.size(1_000): 5, plan.size(10_000): 1}
    held: list[float] = []
    for version, mode, n, seconds, ratios in compared(plan, {**wanted, **beside}, sizes):
        yield Figure(f"{version}, {mode}, N = {n:,}", seconds / n * 1e6, "us/subject")
        peer = next((name for name, modes in wanted.items() if mode in modes), None)
        if n == plan.size(1_000) and peer is not None:
            held.append(over(ratios["row-wise"]))
            yield Figure(f"row-wise against it, times as fast, N = {n:,}", held[-1], "x")
    label = "row-wise against the fastest of them, times as fast, N = 1,000"
    yield Figure(label, min(held), "x", gate, stretch, at_least=True)


@goal(10, "against each Python peer without its recording", "the fastest of them", peers=True)
def against_bare_peers(plan: Plan) -> Iterator[Figure]:
    yield from _fastest(plan, WITHOUT, BESIDE, 20, 100)


@goal(11, "against peers with their recording", "the fastest of them", peers=True)
def against_recording_peers(plan: Plan) -> Iterator[Figure]:
    yield from _fastest(plan, WITH, BESIDE_WITH, 200, 1_000)
