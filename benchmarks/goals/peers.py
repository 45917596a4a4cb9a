"""Against others doing the same task: goals 9 to 11.

Every peer runs in a process of its own, kept for all rounds; in each round ours and every peer have
a turn, in an order that rotates. A turn is as many runs as add up to ``LEAST`` seconds and gives
their mean, for ours as for the others: a run of ours takes milliseconds after a second in which
others had the machine, and alone would be little but the cold and the noise of it.

Held to a gate is each peer's way of running one procedure per row with every stage a step of its
own, mapped over the rows by its own means. Other ways its users go, quicker ones too, are told
beside them. Peers do things this task does not ask for; what each is with and without its recording
is said in its file under ``peers/``.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import truediv
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
#: Shortest that a turn may take, in seconds.
LEAST = 0.3

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
#: Told beside them, and held to nothing: other ways of theirs, and columns.
BESIDE = {
    "burr_peer": ("no tracker, one's own loop",),
    "pydantic_peer": ("no walk, one's own loop",),
    "langgraph_peer": ("no saver, async", "no saver, batch of the subject's graph"),
    "hamilton_peer": ("no hook, threads", "no hook, one's own loop", "columns"),
    "numpy_columns": ("verdicts", "evidence columns"),
    "polars_columns": ("verdicts", "evidence columns"),
}
BESIDE_WITH = {
    "burr_peer": ("states in memory",),
    "pydantic_peer": ("walk kept by hand",),
    "hamilton_peer": ("hook per node",),
}
#: Ways in which columns are judged and nothing is run per row: held beside ours as columns.
AS_COLUMNS = {
    ("hamilton_peer", "columns"),
    ("numpy_columns", "verdicts"),
    ("numpy_columns", "evidence columns"),
    ("polars_columns", "verdicts"),
    ("polars_columns", "evidence columns"),
}
Modes = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Turn:
    """What one mode of a peer took at one size, and how ours compared in the same rounds."""

    name: str
    mode: str
    version: str
    n: int
    seconds: float
    over: Mapping[str, float]
    """How many times as long as ours it took, for each way of ours."""

    @property
    def said(self) -> str:
        return f"{self.version}, {self.mode}"


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

    def run(self, mode: str, n: int, least: float) -> float:
        """Have a turn at the task; gives seconds of a run."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{mode} {n} {least}\n")
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
    plan: Plan, wanted: Modes, sizes: Mapping[int, int], *, filed: bool = False
) -> Iterator[Turn]:
    """Run peers beside ours: so many rounds at each size."""
    peers: dict[str, Peer] = {}
    missing: dict[str, str] = {}
    for name in wanted:
        try:
            peers[name] = Peer(name)
        except NotMeasured as why:
            missing[name] = str(why)
    absent = "; ".join(f"{name}: {why}" for name, why in missing.items())
    if absent:
        print(f"not run: {absent}", file=sys.stderr)
    if not peers:
        raise NotMeasured(absent)
    seen: dict[tuple[str, str], list[tuple[int, float]]] = {}
    try:
        for n, rounds in sizes.items():
            turns = [
                (name, mode)
                for name in peers
                for mode in wanted[name]
                if _foreseen(seen.get((name, mode), []), n) < LONGEST
            ]
            for turn in _at(plan, peers, turns, n=n, rounds=rounds, filed=filed):
                seen.setdefault((turn.name, turn.mode), []).append((n, turn.seconds))
                yield turn
    finally:
        for peer in peers.values():
            peer.close()
    if absent:
        raise NotMeasured(absent)


def _at(
    plan: Plan,
    peers: Mapping[str, Peer],
    turns: Sequence[tuple[str, str]],
    *,
    n: int,
    rounds: int,
    filed: bool,
) -> Iterator[Turn]:
    mine = works(n, filed=filed)
    least = 0.0 if plan.quick else LEAST

    def turn_of(key: Any) -> float:
        if key in mine:
            return mean_of(mine[key], least)
        name, mode = key
        return peers[name].run(mode, n, least)

    keys: list[Any] = [*mine, *turns]
    if n <= 1_000:  # at a larger size all are warm from the one before
        for key in keys:
            turn_of(key)
    times: dict[Any, list[float]] = {key: [] for key in keys}
    for turn in range(plan.rounds(rounds)):
        first = turn % len(keys)
        for key in keys[first:] + keys[:first]:
            times[key].append(turn_of(key))
    for name, mode in turns:
        taken = times[name, mode]
        found = Turn(
            name,
            mode,
            peers[name].version,
            n,
            statistics.median(taken),
            {kind: statistics.median(map(truediv, taken, times[kind])) for kind in mine},
        )
        plan.note(found.said, n, found.seconds / n * 1e6)
        yield found
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


def mean_of(work: Callable[[], Any], least: float) -> float:
    """Have a turn at our own work; gives seconds of a run."""
    taken: list[float] = []
    while sum(taken) < least or not taken:
        gc.collect()
        start = perf_counter()
        made = work()
        taken.append(perf_counter() - start)
        del made
    return sum(taken) / len(taken)


def works(n: int, *, filed: bool = False) -> dict[str, Callable[[], Any]]:
    """Give our ways of doing the task; ``filed``: the whole walk written to a file as well."""
    rows = task.rows_of(n)
    chart = ours.row_wise_chart(rows)
    found: dict[str, Callable[[], Any]] = {"row-wise": ours.answers(chart)}
    if filed:
        found["row-wise, walk in a file"] = ours.filing(chart)
    found["batch, rows in"] = ours.answers(ours.batch_chart(rows, n))
    return found


def told(turn: Turn, *kinds: str) -> Iterator[Figure]:
    """Tell what a mode of a peer took, and how ours compared; held to nothing."""
    yield Figure(turn.said, turn.seconds / turn.n * 1e6, "us/subject")
    for kind in kinds:
        yield Figure(f"ours {kind}, times as fast as that", turn.over[kind], "x")


@goal(9, "a recorded triage, N = 1,000", "footprintjs, full recording", peers=True)
def against_footprintjs(plan: Plan) -> Iterator[Figure]:
    wanted = {"footprintjs": ("full recording", "no recorder")}
    n = plan.size(1_000)
    kinds = (("row-wise", 150, 800), ("batch, rows in", 1_500, 6_000))
    for turn in compared(plan, wanted, {50: 9, n: 5}):
        if turn.n != n:
            continue
        held = turn.mode == "full recording"
        yield from told(turn)
        for kind, *bounds in kinds:
            label = f"ours {kind}, times as fast as that"
            yield Figure(label, turn.over[kind], "x", *(bounds if held else ()), at_least=held)


def _fastest(
    plan: Plan, wanted: Modes, beside: Modes, gate: float, stretch: float, *, filed: bool = False
) -> Iterator[Figure]:
    n = plan.size(1_000)
    names = dict.fromkeys([*wanted, *beside])
    every = {name: (*wanted.get(name, ()), *beside.get(name, ())) for name in names}
    held: list[Turn] = []
    more: list[Turn] = []
    for turn in compared(plan, every, {50: 7, n: 5, plan.size(10_000): 1}, filed=filed):
        if turn.n == n:
            (held if turn.mode in wanted.get(turn.name, ()) else more).append(turn)
    fastest = min(held, key=lambda turn: turn.over["row-wise"])
    label = f"ours row-wise, times as fast as the fastest of them, {fastest.said}"
    yield Figure(label, fastest.over["row-wise"], "x", gate, stretch, at_least=True)
    kinds = ("row-wise", *(("row-wise, walk in a file",) if filed else ()))
    for turn in held:
        yield from told(turn, *kinds)
    for turn in more:
        as_columns = (turn.name, turn.mode) in AS_COLUMNS
        for figure in told(turn, *(("batch, rows in",) if as_columns else kinds)):
            yield replace(figure, label=f"beside: {figure.label}")


@goal(10, "against each Python peer without its recording", "the fastest of them", peers=True)
def against_bare_peers(plan: Plan) -> Iterator[Figure]:
    yield from _fastest(plan, WITHOUT, BESIDE, 20, 100)


@goal(11, "against peers with their recording", "the fastest of them", peers=True)
def against_recording_peers(plan: Plan) -> Iterator[Figure]:
    yield from _fastest(plan, WITH, BESIDE_WITH, 200, 1_000, filed=True)
