"""The worked example, contexts and stores the cases are told with."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

import runbook_nb as rb
from runbook_nb._ids import SeededIds
from runbook_nb.settings import settings

ROWS = [
    {"subject": "cluster-a", "age_days": 2, "age_known": True},
    {"subject": "cluster-b", "age_days": 30, "age_known": True},
    {"subject": "cluster-c", "age_days": None, "age_known": False},
]


@pytest.fixture(autouse=True)
def fixed():
    """A clock that stands still, ids that repeat."""
    with settings(clock=lambda: datetime(2026, 1, 2, tzinfo=UTC), ids=SeededIds("runbook")):
        yield


def make_posture(version="v1", days=7, default=None):
    return rb.RuleSet(
        "health-signal",
        version,
        rules=[
            rb.Rule(
                {"age_known": {"eq": False}},
                then="declined",
                label="age unreadable — no classification",
            ),
            rb.Rule(
                {"age_days": {"gt": days}},
                then="unprotected",
                label=f"older than the {days}-day threshold",
            ),
        ],
        default=default or rb.Default("protected", label=f"no rule fired — within {days} days"),
    )


def word(verdict):
    return lambda scope: scope.set("verdict", verdict)


def subject_chart(rules, load=None):
    return (
        rb.flow_chart(
            "subject", load or (lambda s: s.update(s.args["item"])), id="load", stage_name="Load"
        )
        .add_decider("Protection posture", rules=rules, id="posture")
        .branch("protected", word("protected"))
        .branch("unprotected", word("unprotected"))
        .branch("declined", word("declined"))
        .end()
        .build()
    )


def make_inventory(rows=ROWS, name="backup_inventory", answer=None):
    return rb.define_tool(
        name=name,
        description="Backup subjects with the age of their last backup.",
        execute=lambda args: (
            answer
            if answer is not None
            else rb.coverage(
                {"af_provenance": {"source": "LOCAL SEED"}, "rows": rows},
                checked=["the seeded inventory"],
                cannot_cover=[{"what": "WHY paused", "why": "no change record"}],
            )
        ),
    )


def make_triage(*, rules=None, branch=None, gaps=True, load=None, cap=50, stamp=..., **more):
    """Make the backup triage of the worked example, written the long way.

    ``rules`` judge; ``stamp`` is what the runbook declares.
    """
    rules = rules or make_posture()
    built = branch if branch is not None else subject_chart(rules, load)

    def procedure(tools):
        async def inventory(scope):
            answer = await tools.call("backup_inventory", {})
            scope["subjects"] = answer["result"]["rows"]

        def gather(scope):
            scope["verdicts"] = [
                {
                    "subject": slot.item["subject"],
                    "verdict": slot.value["verdict"],
                    "age": slot.item["age_days"],
                }
                for slot in scope["subject_results"]
                if slot.status == "ok"
            ]
            if gaps:
                scope["coverage"] = {"not_checked": ["clusters that report to nobody"]}
            scope["report"] = {
                "stale_after_days": 7,
                "subjects_total": len(scope["subject_results"]),
            }

        return (
            rb.flow_chart(
                "backup-protection-triage", inventory, id="inventory", stage_name="Inventory"
            )
            .add_parallel_for_each(
                "Assess each subject",
                id="per-subject",
                items=lambda s: s["subjects"],
                branch=built,
                max_branches=cap,
                into="subject_results",
                subject="subject",
            )
            .add_function("Collect", gather, id="collect")
            .build()
        )

    options = {
        "name": "backup_triage",
        "description": "Protection posture of every backup subject.",
        "procedure": procedure,
        "result_kind": "verdict/backup-posture",
        "rules": {"name": "health-signal", "version": "v1"} if stamp is ... else stamp,
        "verdicts": {"decider": "Protection posture"},
        "composed_of": ["backup_inventory"],
    }
    return rb.runbook_as_tool(**{**options, **more})


@pytest.fixture
def call():
    """Call the worked example through a toolbox."""

    def call(rows=ROWS, call_id="tc-1", artifacts=..., answer=None, observer=None, **more):
        box_options = {} if artifacts is ... else {"artifacts": artifacts}
        box = rb.Toolbox(
            [make_inventory(rows, answer=answer), make_triage(**more)],
            observer=observer,
            **box_options,
        )
        call.box = box
        return box.call_sync("backup_triage", {}, call_id=call_id)

    return call


def one_stage(fn, name="c"):
    """A procedure of one stage."""
    return lambda tools: rb.flow_chart(name, fn, id="only", stage_name="Only").build()


def define(fn=lambda s: s.set("done", True), **more):
    """A runbook of one stage."""
    options = {"name": "restart_probe", "description": "d", "procedure": one_stage(fn)}
    return rb.runbook_as_tool(**{**options, **more})


def ask(fn, args=None, *, artifacts=..., call_id="tc-1", tools=(), **more):
    """Run a one-stage runbook through a toolbox; gives the answer."""
    tool = define(fn, **more)
    options = {} if artifacts is ... else {"artifacts": artifacts}
    box = rb.Toolbox([*tools, tool], **options)
    return box.call_sync(tool.name, args or {}, call_id=call_id)


def calling(body, **more):
    """A runbook whose only stage is an async function of (scope, tools)."""

    def procedure(tools):
        async def stage(scope):
            await body(scope, tools)

        return rb.flow_chart("c", stage, id="only", stage_name="Only").build()

    options = {"name": "asker", "description": "d", "procedure": procedure}
    return rb.runbook_as_tool(**{**options, **more})


def parcel(box, envelope, key="ref"):
    """Redeem a ticket of the walk descriptor as JSON."""
    return json.loads(box.artifacts.get_sync(envelope["result"]["walk"][key]).data)


class Refusing(rb.InMemoryArtifacts):
    """A store that refuses to keep some kinds."""

    def __init__(self, error, kinds=None):
        super().__init__()
        self.error, self.kinds, self.asked = error, kinds, []

    async def put(self, scope, given):
        self.asked.append(given["kind"])
        if self.kinds is None or given["kind"] in self.kinds:
            raise self.error
        return await super().put(scope, given)


@pytest.fixture
def kit():
    """Everything above by name, since a test module cannot import a conftest."""
    return SimpleNamespace(
        ROWS=ROWS,
        Refusing=Refusing,
        ask=ask,
        calling=calling,
        define=define,
        inventory=make_inventory,
        one_stage=one_stage,
        parcel=parcel,
        posture=make_posture,
        subject_chart=subject_chart,
        triage=make_triage,
        word=word,
    )
