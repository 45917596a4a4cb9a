"""Journals whose writers are killed, and one file that many processes write at once."""

import os
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from journals import KINDS, at, begun

from runbook_nb.errors import JournalError
from runbook_nb.playbooks.events import Admitted, Settled
from runbook_nb.playbooks.journal_claims import verify_reading
from runbook_nb.playbooks.journal_sqlite import SqliteJournal
from runbook_nb.testing.store_crashes import _Dice, _forked, _wait

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

#: Appends after which a writer that nobody killed stops by itself.
MOST = 300


def some(seq, dice):
    """Give one to three events that happen together, of very different lengths."""
    told = []
    for n in range(seq, seq + 1 + dice.below(3)):
        one = {"text": f"{n} " * dice.below(3_000)}
        told.append(
            Admitted(
                seq=n,
                at=at(n),
                call_id=f"c{n}",
                tool="query_siem",
                step_id="detect",
                index=0,
                arguments=one,
            )
        )
    return told


def write(journal, seed, tell):
    """Go on with a journal, telling after each append what is acknowledged."""
    dice = _Dice(seed)
    count = len(journal.read().lines)
    if not count:
        journal.append([begun()])
        count = 1
        tell(f"1 {journal.head}")
    for _ in range(MOST):
        told = some(count + 1, dice)
        journal.append(told)
        count += len(told)
        tell(f"{count} {journal.head}")


def killed(make, rounds, seed=0):
    """Kill one writer after another, and look each time for all that was acknowledged.

    Gives how many events were acknowledged, and how often an end was found broken off.
    """
    dice = _Dice(f"{seed}")
    count, head, torn = 0, None, 0
    for number in range(rounds):
        with _forked(lambda tell, n=number: write(make(), f"{seed}/{n}", tell)) as (child, words):
            for _ in range(dice.below(7)):
                word = next(words, "")
                assert not word.startswith("failed"), word
                if word:
                    count, head = int(word.split()[0]), word.split()[1]
            _wait(dice.below(3_000))
            os.kill(child, signal.SIGKILL)
            for word in words:
                assert not word.startswith("failed"), word
                count, head = int(word.split()[0]), word.split()[1]
        found = make().read()
        assert not found.faults, number
        assert len(found.lines) >= count, number
        if count:
            assert found.lines[count - 1].digest == head, number
        torn += bool(found.torn)
        # What was written and not acknowledged may be there, whole; it counts from now on.
        count, head = len(found.lines), found.head
    checked = verify_reading(make().read(), "killed", head=head)
    assert checked.ok
    assert checked["head"].status == "confirmed"
    return count, torn


@pytest.mark.parametrize("kind", list(KINDS))
def test_nothing_acknowledged_is_lost_and_nothing_is_corrupt_however_writers_die(kind, tmp_path):
    count, _ = killed(lambda: KINDS[kind](tmp_path), 12)
    assert count > 12


def share(path, key, each, tell):
    """Keep a plan of one's own, among others in one file."""
    with SqliteJournal(path, key) as journal:
        journal.append([begun(key=key)])
        for n in range(each):
            seq = 2 + 2 * n
            call = {"call_id": f"{key}/{n}", "step_id": "detect"}
            journal.append([Admitted(seq=seq, at=at(n), tool="t", **call)])
            journal.append([Settled(seq=seq + 1, at=at(n), **call)])
        tell(f"{key} {journal.head}")


def test_eight_processes_keep_their_plans_in_one_file(tmp_path):
    path, each = tmp_path / "runs.sqlite", 25
    work = [lambda tell, n=n: share(path, f"run-{n}", each, tell) for n in range(8)]
    children = [_forked(one) for one in work]
    started = [child.__enter__() for child in children]
    try:
        heads = dict(next(words).split() for _, words in started)
    finally:
        for child in children:
            child.__exit__(None, None, None)
    with SqliteJournal(path) as first:
        assert sorted(first.keys()) == sorted(heads) == [f"run-{n}" for n in range(8)]
        for key, head in heads.items():
            journal = first.of(key)
            assert journal.head == head
            told = journal.events()
            assert len(told) == 1 + 2 * each
            assert {event.call_id for event in told[1:]} == {f"{key}/{n}" for n in range(each)}


def contend(path, number, each, tell):
    """Write to one plan that others write to as well, taking it up again when behind."""
    won = 0
    while won < each:
        with SqliteJournal(path, "one") as journal:
            try:
                while won < each:
                    seq = len(journal) + 1
                    call = Admitted(seq=seq, at=at(seq), call_id=f"{number}/{won}", tool="t")
                    journal.append([call])
                    won += 1
            except JournalError as error:
                if error.code not in {"journal_in_use", "journal_behind"}:
                    raise
    tell("done")


def test_of_those_that_write_one_plan_none_overwrites_another(tmp_path):
    path = tmp_path / "runs.sqlite"
    with SqliteJournal(path, "one") as journal:
        journal.append([begun()])
    children = [_forked(lambda tell, n=number: contend(path, n, 12, tell)) for number in range(4)]
    started = [child.__enter__() for child in children]
    try:
        assert [next(words) for _, words in started] == ["done"] * 4
    finally:
        for child in children:
            child.__exit__(None, None, None)
    told = SqliteJournal(path, "one").events()
    calls = [event.call_id for event in told[1:]]
    assert sorted(calls) == sorted(f"{n}/{won}" for n in range(4) for won in range(12))
