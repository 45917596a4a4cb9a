"""What tests of every folder share."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from runbook_nb.rules.versions import forget_judged

_TURNS = pytest.StashKey[TemporaryDirectory[str]]()


def _calls_of(work: Callable[[], Any]) -> int:
    """Count the calls that a piece of work makes, in Python and in C: its cost on any machine."""
    count = 0

    def seen(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    # What collecting garbage calls is no cost of the work, and comes when it comes.
    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()
    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return count


def pytest_configure(config: pytest.Config) -> None:
    """Let an interrupt arrive in a worker, which is started with interrupts ignored.

    Tests send themselves one, to see that it gets through.
    """
    if hasattr(config, "workerinput"):
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker the folder by which the workers of this run take turns."""
    stash = node.config.stash
    if _TURNS not in stash:
        stash[_TURNS] = TemporaryDirectory(prefix="runbook_nb-turns-")
    node.workerinput["turns"] = stash[_TURNS].name


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave nothing of the turns behind."""
    if _TURNS in config.stash:
        config.stash[_TURNS].cleanup()


@contextmanager
def _turn(folder: Path, *, alone: bool) -> Iterator[None]:
    """Hold what lets tests run side by side, or one of them with none beside it.

    Who comes takes the door first. One that is to be alone stays in it until all others have left,
    so that it is not passed by for ever.
    """
    import fcntl

    with (folder / "door").open("w") as door, (folder / "room").open("w") as room:
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(door, fcntl.LOCK_UN)
        try:
            yield
        finally:  # said aloud: a process that a test forked has it, too
            fcntl.flock(room, fcntl.LOCK_UN)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Run no test beside one that is marked to be alone."""
    folder = getattr(item.config, "workerinput", {}).get("turns")
    if folder is None or sys.platform == "win32":
        return (yield)
    with _turn(Path(folder), alone=item.get_closest_marker("alone") is not None):
        return (yield)


@pytest.fixture(autouse=True)
def new_session():
    """Begin each test as a session of its own, in which no rules have judged yet."""
    forget_judged()


@pytest.fixture
def calls_of() -> Callable[[Callable[[], Any]], int]:
    """Give what counts the calls of a piece of work; tests never look at a clock."""
    return _calls_of


@pytest.fixture
def left_by():
    """Give what counts the tracked objects that a piece of work leaves, and full collections.

    Others in this process make and drop objects meanwhile (the loop of a cluster, say), so the
    middle one of some counts is taken.
    """

    def count(work):
        found = []
        for _ in range(5):
            kept = None  # what the turn before left is none of this turn's
            gc.collect()
            before, turns = len(gc.get_objects()), gc.get_stats()[2]["collections"]
            kept = work()
            turns = gc.get_stats()[2]["collections"] - turns
            gc.collect()
            found.append((len(gc.get_objects()) - before, turns))
        return kept, *sorted(found)[len(found) // 2]

    return count
