"""Runs of many kinds, kept as the lines of journals, and one leaf of them changed as forgers do."""

from datetime import date
from functools import cache

from journals import Clock

from runbook_nb._deep import read_json
from runbook_nb._ids import digest
from runbook_nb._json import encode
from runbook_nb.playbooks.enforcer import PlaybookEnforcer
from runbook_nb.playbooks.journal import PlaybookJournal
from runbook_nb.playbooks.journal_claims import verify_reading
from runbook_nb.playbooks.journal_lines import read_bytes, sealed
from runbook_nb.playbooks.model import Playbook
from runbook_nb.playbooks.skills import Skill
from runbook_nb.settings import settings

SMALL = {"name": "small", "tool": "find_order", "path": "sum", "op": "lt", "value": 9}
BOOK = Playbook(
    id="refund",
    name="Refund escalation",
    tags=["money"],
    metadata={"owner": "support"},
    steps=[
        {
            "id": "look",
            "description": "Look the order up.",
            "expected_tools": ["find_order"],
            "hints": ["The order first."],
            "required_probes": [
                {"name": "order", "match": "order_id"},
                {"name": "customer", "match": "customer"},
            ],
            "uses": ["orders"],
            "max_tool_calls": 3,
        },
        {
            "id": "ask",
            "description": "Ask for more.",
            "expected_tools": ["ask_customer"],
            "required": False,
        },
        {
            "id": "approve",
            "description": "Have it approved.",
            "kind": "approval",
            "checks": [
                {"name": "small", "tool": "find_order", "path": "sum", "op": "lt", "value": 9}
            ],
        },
        {
            "id": "pay",
            "description": "Pay it back.",
            "expected_tools": ["refund"],
            "min_tool_calls": 1,
            "timeout_seconds": 20.0,
            "checks": [
                {"name": "paid", "source": "result", "path": "status", "op": "eq", "value": "paid"}
            ],
        },
        {"id": "tell", "description": "Tell the customer.", "kind": "manual"},
    ],
)
SKILLS = {"orders": Skill("orders", "Orders.", allowed_tools=["find_order", "Bash(git:*)"])}


class Memory(PlaybookJournal):
    """Keeps lines in memory, and gives what a file would hold."""

    def __init__(self, data=b""):
        super().__init__("memory.jsonl")
        self.data = data

    def _begin(self, first):
        found = self._read()
        return len(found.lines), found.head

    def _write(self, texts, count, head):
        self.data += "".join(f"{text}\n" for text in texts).encode()

    def _read(self):
        return read_bytes(self.data)


def short(journal, **more):
    """A run that comes to nothing: refused calls, a failure, a cap that is full."""
    run = PlaybookEnforcer.from_playbook(BOOK, skills=SKILLS, journal=journal, **more)
    run.admit("refund", {"sum": 8}, call_id="early", batch="b1")
    run.validate_tool_call("other")
    run.settle(run.admit("find_order", {"order_id": 7}, call_id="o1"), "error", error="no such")
    run.fail_current_step("the shop is closed")
    run.admit("find_order", {"order_id": 7, "sum": 5}, call_id="o2", parent="o1")
    return run


def whole(journal, **more):
    """A run from end to end, with people, a step passed over, a timeout, a restart and a report."""
    run = short(journal, **more)
    again = PlaybookEnforcer.resume(journal, redact=more.get("redact"))
    again.settle("o2", result={"status": "found"}, arguments={"order_id": 7, "customer": "é"})
    again.admit("find_order", {"order_id": 8})
    again.skip_current_step("she was clear")
    again.approve("approve", by="ana", note="it is small")
    settings.clock.seconds += 4
    call = again.admit("refund", {"order_id": 7, "sum": 5})
    settings.clock.seconds += 30
    again.check_time()
    again.settle(call, result={"status": "paid", "at": date(2026, 1, 2)})
    again.complete("tell", by="bo", note="told her")
    again.settle(again.admit("skills", {"name": "orders"}))
    again.admit("find_order", {"order_id": 9})
    again.finish()
    return run


def lenient(journal):
    """A run in which nothing is refused, everything noted, and the plan set back."""
    book = BOOK.model_copy(update={"allow_extra_tools": True, "strict_sequence": False})
    more = {"policy": {"profile": "compat", "on_cap": "fail"}, "block_violations": False}
    run = PlaybookEnforcer.from_playbook(book, skills=SKILLS, journal=journal, **more)
    for tool in ("refund", "find_order", "find_order", "other"):
        run.settle(run.admit(tool, {"order_id": 1, "customer": "b"}))
    run.record_tool_call("ask_customer", arguments="a text")
    run.complete_current_step("done by hand")
    run.reset()
    run.admit("find_order")
    run.finish()
    return run


def past(journal):
    """A run in which people do what a host may do, and pass over a step to approve the next."""
    run = PlaybookEnforcer.from_playbook(BOOK, skills=SKILLS, journal=journal)
    run.fail_current_step("no order is named", by="ana")
    run.reset(by="bo")
    run.settle(run.admit("find_order", {"order_id": 7, "sum": 5, "customer": "é"}))
    run.admit("refund", {"order_id": 7})
    run.approve("approve", by="ana", note="it is small")
    run.reset()
    run.settle(run.admit("find_order", {"order_id": 8, "sum": 5, "customer": "b"}))
    run.skip_current_step("she was clear", by="bo")
    run.approve("approve", by="ana")
    return run


def declined(journal):
    """A run that ends at a step which a person declined to approve."""
    run = PlaybookEnforcer.from_playbook(BOOK, skills=SKILLS, journal=journal)
    run.settle(run.admit("find_order", {"order_id": 7, "sum": 5, "customer": "é"}))
    run.decline("approve", by="eve", note="it is large")
    run.admit("refund", {"order_id": 7})
    run.finish()
    return run


#: By name, what makes a run in a journal.
RUNS = {
    "whole": whole,
    "short": short,
    "compat": lambda journal: short(journal, policy="compat"),
    "hidden": lambda journal: whole(journal, redact={"keys": ["customer", "order_id"]}),
    "lenient": lenient,
    "past": past,
    "declined": declined,
    "noted": lambda journal: short(journal, block_violations=False),
    "unrecorded": lambda journal: whole(journal, record_violations=False),
}


@cache
def lines_of(name):
    """Give what a run wrote."""
    journal = Memory()
    with settings(clock=Clock()):
        RUNS[name](journal)
    return journal.data


def document_of(data):
    """Give the lines of a journal as one document."""
    return {"lines": [read_json(line) for line in data.decode().splitlines()]}


def as_it_is(document):
    """Write lines as they are: whoever changed one did not know of checks."""
    return "".join(f"{encode(body)}\n" for body in document["lines"]).encode()


def chained(document):
    """Write lines with checks and digests taken anew, as a forger who knows how does."""
    texts, head = [], None
    for body in document["lines"]:
        told = {key: value for key, value in body.items() if key != "check"}
        texts.append(sealed(encode({**told, "prev": head})))
        head = digest(texts[-1])
    return "".join(f"{text}\n" for text in texts).encode()


def verified(data, head=None):
    return verify_reading(read_bytes(data), "forged.jsonl", head=head)
