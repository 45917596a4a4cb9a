"""Events of a plan written by hand, for whatever reads them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from runbook_nb.playbooks.events import (
    Admitted,
    Begun,
    Closed,
    Refused,
    Settled,
    Skipped,
    Stuck,
    ViolationNoted,
)
from runbook_nb.playbooks.model import Playbook
from runbook_nb.playbooks.policy import EnforcementPolicy

AT = datetime(2026, 1, 1, tzinfo=UTC)


def step(name, description="", tools=(), **more):
    return {
        "id": name,
        "description": description or f"Do {name}.",
        "expected_tools": list(tools),
        **more,
    }


def probes(*names):
    return [{"name": name, "match": name} for name in names]


def book(*steps, **more):
    head = {"id": "ir", "name": "Incident response", "version": "1.0.0"}
    return Playbook.model_validate({**head, **more, "steps": list(steps)})


NIST = book(
    step(
        "detection",
        "Pull the alert and its events from the SIEM.",
        ["query_siem"],
        required_probes=probes("alert"),
    ),
    step(
        "analysis",
        "Enrich every indicator, confirm it is malicious.",
        ["enrich_indicator"],
        max_tool_calls=5,
        required_probes=probes("indicator", "whois"),
    ),
    step("notify", "Tell the service owner.", ["page_owner"], required=False),
    step(
        "containment",
        "Isolate the affected host from the network.",
        ["isolate_host"],
        max_tool_calls=3,
        required_probes=probes("host"),
    ),
    step("recovery", "Restore the host and watch it for a day.", ["restore_host", "watch_host"]),
    step("lessons", "Write the one-page review.", ["write_review"], required=False),
    id="nist-800-61-ir",
    name="NIST incident response",
    version="1.2.0",
)

WHY_STUCK = "all 3 calls allowed were used and none succeeded, so no call can close the step"


class Plan:
    """A plan as its events, each a second (or ``tick`` seconds) after the one before."""

    def __init__(self, playbook=NIST, policy="safe", skills=None, tick=0, **more):
        told = EnforcementPolicy.of(policy).to_dict()
        self.tick = tick
        self.calls = 0
        self.events = []
        self.add(Begun, playbook=playbook, digest="", policy=told, skills=skills or {}, **more)

    def add(self, kind, **fields):
        number = len(self.events) + 1
        at = AT + timedelta(seconds=self.tick * number)
        self.events.append(kind(seq=number, at=at, **fields))

    def admit(self, step_id, tool, arguments=None, **more):
        self.calls += 1
        name = f"call-{self.calls}"
        self.add(Admitted, call_id=name, tool=tool, step_id=step_id, arguments=arguments, **more)
        return name

    def call(self, step_id, tool, outcome="ok", arguments=None, **more):
        name = self.admit(step_id, tool, arguments)
        self.add(Settled, call_id=name, outcome=outcome, step_id=step_id, **more)

    def refuse(self, step_id, tool, violation="unexpected_tool", arguments=None, message=""):
        self.calls += 1
        self.add(
            Refused,
            call_id=f"call-{self.calls}",
            tool=tool,
            step_id=step_id,
            violation=violation,
            message=message,
            arguments=arguments,
        )

    def note(self, step_id, violation, message="", **more):
        self.add(ViolationNoted, violation=violation, message=message, step_id=step_id, **more)

    def close(self, index, step_id, by="calls", **more):
        self.add(Closed, step_id=step_id, index=index, pointer=index + 1, by=by, **more)


def stuck(word="isolate_host", **more):
    """The plan of the picture: two steps done, one passed by, one stuck, two to come."""
    plan = Plan(**more)
    plan.call("detection", "query_siem", matched=("alert",), arguments={"index": "alert"})
    plan.call("detection", "query_siem", arguments={"index": "dns"})
    plan.close(0, "detection")
    for number in range(3):
        plan.call("analysis", "enrich_indicator", matched=() if number else ("indicator",))
    plan.note("analysis", "evidence_incomplete")
    plan.close(1, "analysis", violations=("evidence_incomplete",))
    plan.add(Skipped, step_id="notify", index=2, pointer=3)
    for number in range(3):
        failed = {"error": "TimeoutError: no answer", "outcome": "error"}
        plan.call("containment", word, matched=() if number else ("host",), **failed)
    for _ in range(2):
        plan.refuse("containment", "delete_mailbox")
    plan.refuse("containment", word, "max_tool_calls")
    plan.add(Stuck, step_id="containment", reason=WHY_STUCK)
    return plan
