"""A short run, event by event, and the journals it is kept in."""

from datetime import UTC, datetime, timedelta
from functools import cache

from runbook_nb.playbooks.begun import digest_of
from runbook_nb.playbooks.enforcer import PlaybookEnforcer
from runbook_nb.playbooks.events import Begun, Reset
from runbook_nb.playbooks.journal_jsonl import JsonlJournal
from runbook_nb.playbooks.journal_sqlite import SqliteJournal
from runbook_nb.playbooks.model import Playbook
from runbook_nb.playbooks.policy import EnforcementPolicy
from runbook_nb.settings import settings

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
BOOK = Playbook(
    id="ir",
    name="Incident response",
    steps=[
        {"id": "detect", "description": "Look.", "expected_tools": ["query_siem"]},
        {"id": "contain", "description": "Stop it.", "expected_tools": ["isolate_host"]},
    ],
)


def at(seconds):
    return START + timedelta(seconds=seconds)


def begun(book=BOOK, **more):
    policy = EnforcementPolicy("safe").to_dict()
    given = {"digest": digest_of(book), "policy": policy, "skills": {}, **more}
    return Begun(seq=1, at=at(0), playbook=book, **given)


class Clock:
    """A clock that goes on by a second each time it is looked at."""

    def __init__(self):
        self.seconds = -1

    def __call__(self):
        self.seconds += 1
        return at(self.seconds)


@cache
def _events():
    with settings(clock=Clock()):
        enforcer = PlaybookEnforcer.from_playbook(BOOK)
        arguments = {"b": "index=auth", "a": [1, 2.5, None, True, "Zürich"]}
        enforcer.admit("query_siem", arguments, call_id="c1")
        enforcer.settle("c1")
        enforcer.admit("pay", {"sum": 10}, call_id="c2")
        enforcer.admit("isolate_host", call_id="c3")
    return enforcer.events


def events():
    """Give a short run: a call that is made, one that is refused, one that is still under way."""
    return list(_events())


def reset(seq):
    return Reset(seq=seq, at=at(seq))


#: The kinds of journals, each made for a folder; two of one folder are of one plan.
KINDS = {
    "jsonl": lambda folder: JsonlJournal(folder / "ir.jsonl"),
    "sqlite": lambda folder: SqliteJournal(folder / "runs.sqlite", "run-1"),
}


def kept(journal, told=None):
    """Write events as they are written live: the two that happen together in one go."""
    told = events() if told is None else told
    for group in (told[:1], told[1:2], told[2:4], *([one] for one in told[4:])):
        if group:
            journal.append(group)
    return journal
