"""A log as JSON and back: the same views, the same bytes, and nothing of it trusted."""

from __future__ import annotations

import json

import runbook_nb as rb
from runbook_nb._json import canonical, encode
from runbook_nb.chart.builder import flow_chart
from runbook_nb.record.run import Run
from runbook_nb.record.slots import Slots
from runbook_nb.record.written import LogReader, write_log

RULES = rb.RuleSet(
    "health",
    "v1",
    # Not in sorted order: the order of conditions is that of the outcomes.
    [rb.Rule({"known": {"eq": True}, "age": {"gt": 7}}, "old", label="older than a week")],
    default="new",
)


def load(scope):
    item = scope.args["item"]
    scope["row"] = item
    scope["age"] = item["age"]
    if item["known"] is not None:
        scope["known"] = item["known"]


def triage(rules=RULES, hosts=12):
    branch = flow_chart("load", load, id="load").add_decider("age", rules=rules, id="posture")
    for word in ("old", "new", "declined"):
        branch.branch(word, lambda s: s.set("done", True))
    rows = [
        {"id": f"h{n}", "age": n, "known": [True, False, None][n % 3], "token": f"s3cr3t-{n}"}
        for n in range(hosts)
    ]
    return (
        flow_chart("triage", lambda s: s.set("rows", rows), id="rows")
        .add_parallel_for_each(
            "hosts",
            branch=branch.end().build(),
            items=lambda s: s["rows"],
            into="hosts",
            id="hosts",
            subject="id",
            max_branches=hosts - 1,
        )
        .add_function("report", lambda s: s.set("worst", s["hosts"][0]), id="report")
        .build()
    )


def through_json(run, **more):
    """Write a run's log to text and read it back, with the run's state beside it."""
    args, state, _ = run.raw
    data = write_log(run.log, beside={"state": state, "args": args}, **more)
    text = canonical(data)
    assert encode(json.loads(encode(data))) == encode(data)
    written = json.loads(text)
    reader = LogReader(written)
    beside = {name: reader.value(value, name) for name, value in written["beside"].items()}
    assert canonical(write_log(reader.log, beside=beside)) == text
    return reader.log, beside


def again(run, log, beside):
    """The run as it would be with the log that was read back."""
    return Run(
        name=run._name,
        status=run.status,
        args=beside["args"],
        log=log,
        raw_state=dict(beside["state"]),
        raw_result=run.raw[2],
        structure=run._structure,
        policy=run.policy,
    )


def assert_alike(run, other):
    assert other.walk == run.walk
    assert other.decisions == run.decisions
    assert [d.decision.to_dict() for d in other.decisions] == [
        d.decision.to_dict() for d in run.decisions
    ]
    assert other.commits == run.commits
    assert other.fan_outs == run.fan_outs
    assert other.steps_executed == run.steps_executed
    assert other.state == run.state
    assert [rules.digest for rules in other.rule_sets()] == [
        rules.digest for rules in run.rule_sets()
    ]


def test_a_log_read_back_shows_what_the_run_shows():
    run = triage().run_sync()
    log, beside = through_json(run)
    assert_alike(run, again(run, log, beside))
    assert isinstance(beside["state"]["hosts"], Slots)
    assert beside["state"]["hosts"].fan_out is next(log.fan_outs())
    assert log.fan_outs is not run.log.fan_outs
    assert [rules == RULES for rules in again(run, log, beside).rule_sets()] == [True]
