"""Events made by hand, and the journals they are kept in."""

from datetime import UTC, datetime, timedelta

from runbook_nb._ids import digest
from runbook_nb._json import canonical
from runbook_nb.playbooks.events import (
    Admitted,
    Begun,
    Closed,
    Refused,
    Reset,
    Settled,
)
from runbook_nb.playbooks.journal_jsonl import JsonlJournal
from runbook_nb.playbooks.journal_sqlite import SqliteJournal
from runbook_nb.playbooks.model import Playbook
from runbook_nb.playbooks.policy import EnforcementPolicy

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
    told = book.model_dump(mode="json")
    policy = EnforcementPolicy("safe").to_dict()
    given = {"digest": digest(canonical(told)), "policy": policy, "skills": {}, **more}
    return Begun(seq=1, at=at(0), playbook=book, **given)


def events():
    """Give a short run: a call that is made, one that is refused, one that is still under way."""
    return [
        begun(),
        Admitted(
            seq=2,
            at=at(1),
            call_id="c1",
            tool="query_siem",
            step_id="detect",
            arguments={"b": "index=auth", "a": [1, 2.5, None, True, "Zürich"]},
        ),
        Settled(seq=3, at=at(2), call_id="c1", step_id="detect"),
        Closed(seq=4, at=at(2), step_id="detect", index=0, pointer=1),
        Refused(
            seq=5,
            at=at(3),
            call_id="c2",
            tool="pay",
            step_id="contain",
            arguments={"sum": 10},
            violation="unexpected_tool",
            message="not now",
            hints=("isolate first",),
        ),
        Admitted(seq=6, at=at(4), call_id="c3", tool="isolate_host", step_id="contain"),
    ]


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
