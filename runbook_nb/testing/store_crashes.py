"""What a store that outlives its process promises of processes that die, and of several at once.

Testing layer. Writers are forked, acknowledge each verb over a pipe, and are killed with a signal
that nobody can catch; then a store is opened anew and everything that was acknowledged is looked
for.
"""

from __future__ import annotations

import hashlib
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from runbook_nb._sync import run_sync
from runbook_nb.artifacts import ArtifactStore, Ticket
from runbook_nb.testing.store_claims import HERE, NOBODY, note
from runbook_nb.testing.stores import Broken, Claim, Trial, Unchecked, expect, said

#: Rows that are left in the store before those of older rounds, checked by then, are deleted.
_KEPT: Final = 120
#: Verbs after which a writer that nobody killed stops by itself.
_MOST: Final = 400
#: Acknowledgements that are waited for at most, and microseconds after the last of them.
_HEARD: Final = 7
_LATER: Final = 3_000
#: Rounds from one look at everything that is stored to the next.
_AUDITED: Final = 10
#: Seconds without a word after which a process is taken for stuck.
_STUCK: Final = 60.0


def _killed(trial: Trial) -> None:
    """Kill writers at moments that the seed decides, and look for all they acknowledged."""
    store = _durable(trial)
    dice = _Dice(trial.seed)
    held: dict[str, str] = {}
    for number in range(trial.rounds):
        done = _Heard()
        with _forked(lambda tell, n=number: _write(trial, store, n, tell)) as (child, words):  # type: ignore[misc]
            for _ in range(dice.below(_HEARD + 1)):
                done.hear(next(words, ""))
            _wait(dice.below(_LATER))
            os.kill(child, signal.SIGKILL)
            for word in words:
                done.hear(word)
        done.failed()
        held.update(done.held)
        _look(trial, store, held, done, number)
        if len(held) > _KEPT:
            _let_go(trial, store, held)
    _let_go(trial, store, held)


class _Heard:
    """What a writer said before it was killed."""

    def __init__(self) -> None:
        #: Reference -> payload, of what was acknowledged and not deleted again.
        self.held: dict[str, str] = {}
        #: What may or may not be there: a delete was under way.
        self.either: dict[str, str] = {}
        self.gone: list[str] = []
        self.error = ""

    def hear(self, word: str) -> None:
        act, _, rest = word.partition(" ")
        ref, _, text = rest.partition(" ")
        if act == "put":
            self.held[ref] = text
        elif act == "deleting":
            self.either[ref] = self.held.pop(ref)
        elif act == "deleted":
            del self.either[ref]
            self.gone.append(ref)
        elif act == "failed":
            self.error = rest

    def failed(self) -> None:
        if self.error:
            raise Broken("a writer that works until it is killed", self.error)


def _write(trial: Trial, store: ArtifactStore, number: int, tell: Callable[[str], None]) -> None:
    """File and delete, telling each step, until the end."""
    mine = run_sync(lambda: trial.reopened(store))
    dice = _Dice(f"writer {number}")
    for n in range(_MOST):
        text = f"{number}/{n}/{1 + dice.below(4000)}"
        ref = mine.put_sync(HERE, note(_grown(text))).meta.ref
        tell(f"put {ref} {text}")
        if n % 4 == 3:
            tell(f"deleting {ref}")
            mine.delete_sync(HERE, ref)
            tell(f"deleted {ref}")


def _grown(text: str) -> str:
    return f"{text} " * int(text.rpartition("/")[2])


def _look(
    trial: Trial, store: ArtifactStore, held: dict[str, str], done: _Heard, number: int
) -> None:
    """Look for everything that was acknowledged, in a store that is opened anew."""
    again = run_sync(lambda: trial.reopened(store))
    for ref, text in {**done.held, **done.either}.items():
        record = again.get_sync(HERE, ref)
        if record is None and ref in done.either:
            continue
        if record is None:
            raise Broken(f"in round {number} what was acknowledged", "nothing")
        if record.data != _grown(text):
            raise Broken(f"in round {number} the payload that was filed", "another")
    for ref in done.gone:
        expect(again.get_sync(HERE, ref), None, f"in round {number} what was deleted")
    there = {ticket.ref for ticket in _all(again)}
    expect(set(held) - there, set(), f"in round {number} what was acknowledged, in the list")
    for ref in there - set(held):
        # Filed and never acknowledged: it may be there, whole, or not at all.
        record = again.get_sync(HERE, ref)
        if record is None or not str(record.data).startswith(f"{number}/"):
            raise Broken(f"in round {number} a whole payload or none", said(record))
        again.delete_sync(HERE, ref)
    if number % _AUDITED == 0:
        _audited(again, number)
    run_sync(lambda: trial.closed(again))


def _audited(store: ArtifactStore, number: int) -> None:
    """Ask a store that can say it whether anything in it is damaged."""
    faults = getattr(store, "faults", None)
    if faults is not None:
        expect(tuple(map(str, faults())), (), f"in round {number} what is damaged")


def _let_go(trial: Trial, store: ArtifactStore, held: dict[str, str]) -> None:
    """Look once more for all that was ever acknowledged, then make room."""
    again = run_sync(lambda: trial.reopened(store))
    for ref, text in held.items():
        record = again.get_sync(HERE, ref)
        if record is None or record.data != _grown(text):
            raise Broken("what was acknowledged some rounds ago", said(record))
        expect(again.delete_sync(HERE, ref), True, "delete of it")
    held.clear()
    expect([ticket.ref for ticket in _all(again)], [], "what is left when all was deleted")
    run_sync(lambda: trial.closed(again))


def _side_by_side(trial: Trial) -> None:
    """Let processes file, read and delete at once, and look for what they kept."""
    store = _durable(trial)
    each = max(1, 200 // trial.processes)
    heard: list[_Heard] = []
    children = [
        _forked(lambda tell, n=number: _share(trial, store, n, each, tell))  # type: ignore[misc]
        for number in range(trial.processes)
    ]
    started = [child.__enter__() for child in children]
    try:
        for _, words in started:
            heard.append(_Heard())
            for word in words:
                heard[-1].hear(word)
    finally:
        for child in children:
            child.__exit__(None, None, None)
    for one in heard:
        one.failed()
    again = run_sync(lambda: trial.reopened(store))
    kept = {ref: text for one in heard for ref, text in one.held.items()}
    expect(len(kept), trial.processes * (each - len(range(2, each, 5))), "rows acknowledged")
    for ref, text in kept.items():
        record = again.get_sync(HERE, ref)
        expect(record and record.data, _grown(text), "what a process filed")
    expect(sorted(ticket.ref for ticket in _all(again)), sorted(kept), "what is listed")
    _audited(again, trial.processes)


def _share(
    trial: Trial, store: ArtifactStore, number: int, each: int, tell: Callable[[str], None]
) -> None:
    """File and delete one's own, and read what others file and delete meanwhile."""
    mine = run_sync(lambda: trial.reopened(store))
    for n in range(each):
        text = f"{number}/{n}/{50 + n}"
        ref = mine.put_sync(HERE, note(_grown(text))).meta.ref
        tell(f"put {ref} {text}")
        record = mine.get_sync(HERE, ref)
        expect(record and record.data, _grown(text), "what a process has just filed")
        for ticket in mine.list_sync(HERE, limit=3).artifacts:
            other = mine.get_sync(HERE, ticket.ref)  # gone meanwhile, or whole
            if other is not None and len(other.data) != ticket.bytes:
                raise Broken("another's payload, whole", said(other))
        if n % 5 == 2:
            tell(f"deleting {ref}")
            expect(mine.delete_sync(HERE, ref), True, "delete of one's own")
            tell(f"deleted {ref}")
    expect(mine.head_sync(HERE, NOBODY), None, "head of a reference nobody gave out")


# -- processes -----------------------------------------------------------------------------------


def _durable(trial: Trial) -> ArtifactStore:
    if not hasattr(os, "fork"):
        raise Unchecked("this system cannot fork")
    store = run_sync(trial.store)
    run_sync(lambda: trial.reopened(store))  # says so when it cannot be
    return store


@contextmanager
def _forked(work: Callable[[Callable[[str], None]], None]) -> Iterator[tuple[int, Iterator[str]]]:
    """Fork a process that does some work; give its number and what it tells, line by line."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Other threads may hold something at that moment: the store must not mind.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            work(lambda word: _told(writing, word))
        except Broken as broken:
            _told(writing, f"failed {broken.expected}, not {broken.found}")
        except BaseException as error:
            _told(writing, f"failed {said(error)}")
        finally:
            os._exit(0)
    os.close(writing)
    try:
        yield child, _lines(reading)
    finally:
        os.close(reading)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _told(writing: int, word: str) -> None:
    os.write(writing, f"{word}\n".encode("utf-8", "replace"))


def _lines(reading: int) -> Iterator[str]:
    import select

    rest = b""
    while True:
        if not select.select([reading], [], [], _STUCK)[0]:
            raise Broken("a word of a process within a minute", "none")
        heard = os.read(reading, 65_536)
        if not heard:  # the last word of one that was killed may be half of one
            return
        *lines, rest = (rest + heard).split(b"\n")
        for line in lines:
            yield line.decode()


def _wait(microseconds: int) -> None:
    from time import sleep

    sleep(microseconds / 1_000_000)


class _Dice:
    """Throws the same numbers for the same seed, on every Python."""

    def __init__(self, seed: object) -> None:
        self._seed, self._thrown = seed, 0

    def below(self, most: int) -> int:
        self._thrown += 1
        told = hashlib.sha256(f"{self._seed}/{self._thrown}".encode()).digest()
        return int.from_bytes(told[:8], "big") % most


def _all(store: ArtifactStore) -> list[Ticket]:
    found: list[Ticket] = []
    cursor = None
    while True:
        page = store.list_sync(HERE, limit=200, cursor=cursor)
        found += page.artifacts
        cursor = page.cursor
        if cursor is None:
            return found


CLAIMS: Final = (
    Claim(
        "killed",
        "a process killed in the midst of a verb loses nothing that was acknowledged",
        _killed,
        forks=True,
    ),
    Claim(
        "processes",
        "processes that write, read and delete at once lose nothing of each other",
        _side_by_side,
        forks=True,
    ),
)
