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
from dataclasses import dataclass
from operator import truediv
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Any

import ours
import task
from goal import BESIDE, Figure, NotMeasured, Plan, goal
from measure import HERE, growth

#: Another interpreter for the peers, and where footprintjs is installed.
PYTHON = os.environ.get("RUNBOOK_NB_PEERS_PYTHON", sys.executable)
NODE_MODULES = Path(
    os.environ.get(
        "RUNBOOK_NB_NODE_MODULES", HERE.parent / "tests" / "browser" / "viewer" / "node_modules"
    )
)
#: Longest that one turn may take, as foreseen from the size before: of those held to a gate, and of
#: those told beside.
LONGEST, LONGEST_BESIDE = 40.0, 10.0
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
MORE = {
    "burr_peer": ("no tracker, one's own loop",),
    "pydantic_peer": ("no walk, one's own loop",),
    "langgraph_peer": ("no saver, async", "no saver, batch of the subject's graph"),
    "hamilton_peer": ("no hook, threads", "no hook, one's own loop", "columns"),
    "numpy_columns": ("verdicts", "evidence columns"),
    "polars_columns": ("verdicts", "evidence columns"),
}
MORE_WITH = {
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
    """What one mode of a peer took at one size.

    Attributes
    ----------
    name, mode, said : str
        Which, and how it is written.
    n : int
    seconds : float
    over : mapping of str to float
        How many times as long as ours, in the same rounds, for each way of ours.
    """

    name: str
    mode: str
    said: str
    n: int
    seconds: float
    over: Mapping[str, float]


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
    plan: Plan,
    held: Modes,
    sizes: Mapping[int, int],
    *,
    beside: Modes = MappingProxyType({}),
    filed: bool = False,
) -> Iterator[Turn]:
    """Run peers, held to a gate and told beside, in rounds with ours: so many at each size."""
    wanted = {
        (name, mode): mark
        for modes, mark in ((held, ""), (beside, BESIDE))
        for name in modes
        for mode in modes[name]
    }
    peers: dict[str, Peer] = {}
    missing: dict[str, str] = {}
    for name in dict.fromkeys(name for name, _ in wanted):
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
            mine = works(n, filed=filed)
            keys = [
                key
                for key, mark in wanted.items()
                if key[0] in peers
                and _foreseen(seen.get(key, []), n) < (LONGEST_BESIDE if mark else LONGEST)
            ]
            times = _in_rounds(plan, peers, mine, keys, n=n, rounds=rounds)
            for name, mode in keys:
                taken = times[name, mode]
                seconds = statistics.median(taken)
                seen.setdefault((name, mode), []).append((n, seconds))
                over = {kind: statistics.median(map(truediv, taken, times[kind])) for kind in mine}
                said = f"{wanted[name, mode]}{peers[name].version}, {mode}"
                plan.note(said, n, seconds / n * 1e6)
                yield Turn(name, mode, said, n, seconds, over)
            for kind in mine:
                plan.note(kind, n, statistics.median(times[kind]) / n * 1e6)
    finally:
        for peer in peers.values():
            peer.close()
    if absent:
        raise NotMeasured(absent)


def _in_rounds(
    plan: Plan,
    peers: Mapping[str, Peer],
    mine: Mapping[str, Callable[[], Any]],
    others: Sequence[tuple[str, str]],
    *,
    n: int,
    rounds: int,
) -> dict[Any, list[float]]:
    """Give everybody a turn in every round; gives seconds of a run, turn by turn."""
    least = 0.0 if plan.quick else LEAST

    def turn_of(key: Any) -> float:
        if key in mine:
            return mean_of(mine[key], least)
        name, mode = key
        return peers[name].run(mode, n, least)

    keys: list[Any] = [*mine, *others]
    if n <= 1_000:  # at a larger size all are warm from the one before
        for key in keys:
            turn_of(key)
    times: dict[Any, list[float]] = {key: [] for key in keys}
    for turn in range(plan.rounds(rounds)):
        first = turn % len(keys)
        for key in keys[first:] + keys[:first]:
            times[key].append(turn_of(key))
    return times


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
    """Have a turn at our own work, after a collection; gives seconds of a run.

    One before every run would time the caches that it has just emptied, and spare each run what it
    leaves to the collector.
    """
    taken: list[float] = []
    gc.collect()
    while sum(taken) < least or not taken:
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
    for turn in compared(plan, wanted, {50: 9, n: 5}):
        if turn.n != n:
            continue
        if turn.mode == "full recording":
            for kind, gate, stretch in (("row-wise", 150, 800), ("batch, rows in", 1_500, 6_000)):
                label = f"ours {kind}, times as fast"
                yield Figure(label, turn.over[kind], "x", gate, stretch, at_least=True)
        yield from told(turn, "row-wise", "batch, rows in")


def _fastest(
    plan: Plan, held: Modes, beside: Modes, gate: float, stretch: float, *, filed: bool = False
) -> Iterator[Figure]:
    n = plan.size(1_000)
    sizes = {50: 7, n: 5, plan.size(10_000): 1}
    turns = [t for t in compared(plan, held, sizes, beside=beside, filed=filed) if t.n == n]
    fastest = min(
        (turn for turn in turns if turn.mode in held.get(turn.name, ())),
        key=lambda turn: turn.over["row-wise"],
    )
    label = f"ours row-wise, times as fast as {fastest.said}"
    yield Figure(label, fastest.over["row-wise"], "x", gate, stretch, at_least=True)
    rows = ("row-wise", "row-wise, walk in a file") if filed else ("row-wise",)
    for turn in turns:
        as_columns = (turn.name, turn.mode) in AS_COLUMNS
        yield from told(turn, *(("batch, rows in",) if as_columns else rows))


@goal(10, "against each Python peer without its recording", "the fastest of them", peers=True)
def against_bare_peers(plan: Plan) -> Iterator[Figure]:
    yield from _fastest(plan, WITHOUT, MORE, 20, 100)


@goal(11, "against peers with their recording", "the fastest of them", peers=True)
def against_recording_peers(plan: Plan) -> Iterator[Figure]:
    yield from _fastest(plan, WITH, MORE_WITH, 200, 1_000, filed=True)
