"""The objects whose pictures are looked at: one per state, built the way a user would.

Clock and ids are fixed, so every build of a state gives the same object.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

# The charts of every kind stand beside the tests of the record.
sys.path.insert(0, str(Path(__file__).parents[1] / "record"))

import kind_charts

import runbook_nb as rb
from runbook_nb._ids import SeededIds
from runbook_nb.settings import settings

DECLINED = "the age signal is unreadable — no classification"


def frozen():
    """Fix the clock and the ids for a block."""
    return settings(clock=lambda: datetime(2026, 11, 29, tzinfo=UTC), ids=SeededIds("states"))


def posture_v1():
    return rb.RuleSet(
        "health-signal",
        "v1",
        rules=[
            rb.Rule({"age_known": {"eq": False}}, then="declined", label=DECLINED),
            rb.Rule(
                {"age_days": {"gt": 7}},
                then="unprotected",
                label="last backup older than the 7-day threshold",
            ),
        ],
        default=rb.Default(
            "protected", label="no rule fired — last backup within the 7-day threshold"
        ),
    )


def posture_v3():
    return rb.RuleSet(
        "health-signal",
        "v3",
        rules=[
            rb.Rule({"age_known": {"eq": False}}, then="declined", label=DECLINED),
            rb.Rule({"policy": {"eq": "exempt"}}, then="exempt", label="exempt by written policy"),
            rb.Rule(
                {"age_days": {"gt": 7}},
                then="unprotected",
                label="last backup older than the 7-day threshold",
            ),
        ],
        default=rb.Default(
            "protected", label="no rule fired — last backup within the 7-day threshold"
        ),
    )


def posture_unreadable():
    return rb.RuleSet(
        "health-signal",
        "v2",
        rules=[
            rb.Rule({"age_days": {"gt": 7}}, then="unprotected", label="older than 7 days"),
            rb.Rule({"copies": {"lt": 1}}, then="unprotected", label="no copy is kept"),
        ],
        default=rb.Default("protected", label="recent and copied"),
    )


def load(scope):
    item = scope.args["item"]
    if item.get("broken"):
        raise TimeoutError("the signal service did not answer")
    scope.update(item)


def verdict(word):
    return lambda scope: scope.set("verdict", word)


def procedure_of(rules, branches, *, cap=50, fail=False):
    chart = rb.flow_chart("subject", load, id="load", stage_name="load").add_decider(
        "Protection posture", rules=rules, id="posture"
    )
    for word in branches:
        chart = chart.branch(word, verdict(word))
    branch = chart.end().build()

    def procedure(tools):
        async def inventory(scope):
            answer = await tools.call("backup_inventory", {})
            scope["subjects"] = answer["result"]["rows"]

        def collect(scope):
            done = [slot for slot in scope["subject_results"] if slot.status == "ok"]
            if fail:
                raise KeyError("age_days")
            scope["verdicts"] = [
                {
                    "subject": slot.item["subject"],
                    "verdict": slot.value["verdict"],
                    "age": slot.item["age_days"],
                }
                for slot in done
            ]
            scope["report"] = {"stale_after_days": 7}

        return (
            rb.flow_chart(
                "backup-protection-triage", inventory, id="inventory", stage_name="inventory"
            )
            .add_parallel_for_each(
                "Assess each subject",
                id="per-subject",
                items=lambda scope: scope["subjects"],
                branch=branch,
                max_branches=cap,
                into="subject_results",
                subject="subject",
            )
            .add_function("Collect", collect, id="collect")
            .build()
        )

    return procedure


def box_of(rows, rules, branches, *, rank=None, cap=50, fail=False, gaps=()):
    @rb.tool(description="Backup subjects with the age of their last backup.")
    async def backup_inventory():
        return rb.coverage(
            {"rows": rows},
            checked=[rb.Item("the backup inventory, one row per job")],
            not_checked=list(gaps),
            cannot_cover=[
                rb.Item("WHY a protection was paused", why="no change record is collected here")
            ],
        )

    triage = rb.runbook_as_tool(
        name="backup_triage",
        description="Protection posture of every backup subject.",
        procedure=procedure_of(rules, branches, cap=cap, fail=fail),
        result_kind="verdict/backup-posture",
        rules=rules,
        verdicts={"decider": "Protection posture", **({"rank": rank} if rank else {})},
        composed_of=["backup_inventory"],
        walk={"recording": True},
    )
    return rb.Toolbox([backup_inventory, triage])


THREE = ("protected", "unprotected", "declined")


def three_rows():
    return [
        {"subject": "cluster-a", "age_days": 2, "age_known": True},
        {"subject": "cluster-b", "age_days": 30, "age_known": True},
        {"subject": "cluster-c", "age_days": None, "age_known": False},
    ]


def envelope():
    return box_of(three_rows(), posture_v1(), THREE).call_sync("backup_triage", {})


def envelope_one_row():
    return box_of(three_rows()[1:2], posture_v1(), THREE).call_sync("backup_triage", {})


WORST = {
    "ap-south-1/prod/billing-766": 44,
    "eu-west-1/prod/identity-648": 30,
    "arn:aws:rds:us-east-2:310042817756:db:ord-7f3a": 21,
    "us-east-2/prod/orders-544": 14,
    "eu-central-1/prod/ledger-192": 12,
    "eu-central-1/prod/identity-679": 9,
    "eu-west-1/prod/catalog-742": 8,
}
REGIONS = ("eu-west-1", "us-east-2", "ap-south-1", "eu-central-1")
SERVICES = ("orders", "billing", "identity", "ledger", "catalog", "search", "audit")


def many_rows(n=312):
    rows = [{"subject": name, "age_days": age} for name, age in WORST.items()]
    for place in range(n - len(rows)):
        name = f"{REGIONS[place % 4]}/prod/{SERVICES[place % 7]}-{100 + place}"
        rows.append({"subject": name, "age_days": None if place < 14 else place % 8})
    for row in rows:
        row |= {"age_known": row["age_days"] is not None, "policy": "standard"}
    return rows


def envelope_312():
    gaps = (
        rb.Item("backup jobs of tenant 'legacy-eu'", why="the inventory token cannot read there"),
        rb.Item("whether a backup can be restored", why="only the age of the last one was read"),
    )
    box = box_of(
        many_rows(),
        posture_v3(),
        ("protected", "unprotected", "exempt", "declined"),
        rank=["unprotected", "declined", "protected"],
        cap=303,
        gaps=gaps,
    )
    return box.call_sync("backup_triage", {})


def envelope_empty():
    return box_of([], posture_v1(), THREE).call_sync("backup_triage", {})


def envelope_all_declined():
    rows = [{"subject": f"cluster-{x}", "age_days": None, "age_known": False} for x in "abc"]
    return box_of(rows, posture_v1(), THREE).call_sync("backup_triage", {})


def envelope_failed_rows():
    rows = three_rows()
    rows[2]["broken"] = True
    rows.append({"subject": "cluster-d", "age_days": 1, "age_known": True})
    return box_of(rows, posture_v1(), THREE, cap=3).call_sync("backup_triage", {})


def envelope_copy():
    return rb.Envelope.from_dict(envelope().to_dict())


def why_fired():
    return envelope().why("cluster-b")


def why_default():
    return envelope().why("cluster-a")


def why_unreadable():
    rows = [
        {"subject": f"cluster-{x}", "age_days": 1, "age_known": True, "copies": 2} for x in "ab"
    ]
    rows.append({"subject": "cluster-c", "age_known": False, "copies": 1})

    def unaged(rows):
        return [{"age_days": None, **row} for row in rows]

    box = box_of(rows, posture_unreadable(), THREE)
    try:
        return box.call_sync("backup_triage", {}).why("cluster-c")
    except KeyError:
        return (
            box_of(unaged(rows), posture_unreadable(), THREE)
            .call_sync("backup_triage", {})
            .why("cluster-c")
        )


def run_failed():
    box = box_of(three_rows(), posture_v1(), THREE, fail=True)
    try:
        box.call_sync("backup_triage", {})
    except KeyError:
        return box.last_run
    raise AssertionError("the run was to fail")


def run_paused():
    def ask(scope):
        rb.interrupt(scope, "is the pager owner informed?")

    chart = (
        rb.flow_chart(
            "containment", lambda scope: scope.set("host", "web-1"), id="prepare"
        ).add_pausable_function("Ask the owner", ask, id="ask")
        if hasattr(rb.FlowChartBuilder, "add_pausable_function")
        else rb.flow_chart(
            "containment", lambda scope: scope.set("host", "web-1"), id="prepare"
        ).add_function("Ask the owner", ask, id="ask")
    ).build()
    return chart.run_sync()


def absence():
    from runbook_nb.coverage import absence_view

    gone = rb.absent(
        "backup jobs of tenant acme",
        checked=[rb.Item("the backup inventory", why="0 of 312 jobs carry this tenant")],
        not_checked=[rb.Item("archived tenants", why="closed before 2026-01")],
        try_instead_tool={"tool": "tenant_list", "why": "tenant names are listed there"},
    )
    return Shown(absence_view(gone, "backup_inventory"))


class Shown:
    """A bare view, as something that can be shown."""

    def __init__(self, card):
        self.card = card

    def view(self):
        return self.card


def chart():
    return procedure_of(posture_v1(), THREE)(None)


def run_of(kind, *answers):
    return kind_charts.run(kind_charts.KINDS[kind](), *answers)


def charts_in_charts():
    """More stages than a picture has room for."""
    made = rb.flow_chart("recover-all", kind_charts.nothing, id="start", stage_name="Begin")
    for number in range(200):
        made.add_subchart(f"Recover {number}", kind_charts.restore(), id=f"r{number}")
    return made.build().run_sync()


STATES = {
    **{f"kind_{kind}": partial(run_of, kind) for kind in kind_charts.KINDS},
    "kind_incident_answered": partial(run_of, "incident", "no"),
    "kind_incident_declared": kind_charts.incident,
    "kind_many": charts_in_charts,
    "envelope": envelope,
    "envelope_one_row": envelope_one_row,
    "envelope_312": envelope_312,
    "envelope_empty": envelope_empty,
    "envelope_all_declined": envelope_all_declined,
    "envelope_failed_rows": envelope_failed_rows,
    "envelope_copy": envelope_copy,
    "ledger": lambda: envelope().ledger,
    "verdicts": lambda: envelope().verdicts,
    "why_fired": why_fired,
    "why_default": why_default,
    "why_unreadable": why_unreadable,
    "walk": lambda: envelope_312().walk,
    "walk_of_subject": lambda: envelope().walk.of("cluster-b"),
    "structure": lambda: chart().structure,
    "chart": chart,
    "toolbox": lambda: box_of(three_rows(), posture_v1(), THREE),
    "tool": lambda: box_of(three_rows(), posture_v1(), THREE)["backup_triage"],
    "rule_set": posture_v3,
    "run_failed": run_failed,
    "run_paused": run_paused,
    "recording": lambda: envelope().recording(),
    "absence": absence,
}
