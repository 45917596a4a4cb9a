"""One small procedure for each kind of stage, and how to run it."""

from __future__ import annotations

from typing import Any

import runbook_nb as rb
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.model import Retry


def nothing(scope: Any, answer: Any = None) -> None:
    """Do nothing."""


def breaks(scope: Any) -> None:
    raise TimeoutError("no answer")


def says(*words: str) -> Any:
    """Make a stage that streams words."""

    def say(scope: Any) -> None:
        for word in words:
            scope.stream(word)

    return say


def forked():
    """Three looks side by side, one of which fails."""
    return (
        flow_chart("health-check", nothing, id="start", stage_name="Pick host")
        .add_fork("Look at three things", id="look", merge="keys")
        .branch("disk", lambda s: s.set("disk", 81), name="Read disk usage")
        .branch("backup", lambda s: s.set("age", 3), name="Read last backup")
        .branch("ping", breaks, name="Ping")
        .end()
        .add_function("Write report", nothing, id="report")
        .build()
    )


FOLLOW_UPS = [
    rb.Rule({"disk": {"gt": 80}}, then="grow", label="disk over 80 %"),
    rb.Rule({"age": {"gt": 7}}, then="rerun", label="backup older than a week"),
    rb.Rule({"cpu": {"gt": 90}}, then="scale", label="cpu over 90 %"),
]


def selected(rules: Any = FOLLOW_UPS, **metrics: Any):
    """Any of three follow-ups, by rules; two of them hold."""
    found = {"disk": 91, "age": 9, "cpu": 3} | metrics
    return (
        flow_chart("follow-up", lambda s: s.update(found), id="start", stage_name="Read metrics")
        .add_selector("Which follow-ups", id="pick", merge="keys", rules=rules)
        .branch("grow", nothing, name="Grow disk")
        .branch("rerun", nothing, name="Run backup again")
        .branch("scale", nothing, name="Scale out")
        .end()
        .add_function("Report", nothing, id="report")
        .build()
    )


def restore():
    """A chart of three stages with a decider by word."""
    return (
        flow_chart("restore", nothing, id="mount", stage_name="Mount snapshot")
        .add_decider("Is it whole?", lambda s: "whole", id="whole?")
        .branch("whole", nothing, name="Copy back")
        .branch("torn", nothing, name="Fetch older")
        .end()
        .add_function("Unmount", nothing, id="unmount")
        .build()
    )


def mounted():
    """One chart in another, and one that is made when run; tags."""
    return (
        flow_chart("recover", nothing, id="start", stage_name="Find snapshot")
        .add_subchart("Restore one volume", restore(), id="restore")
        .add_subchart("Check it", restore, id="check", lazy=True)
        .add_function("Tell owner", nothing, id="tell", tags=("notify", "pager"))
        .build()
    )


def looped():
    """Polls four times."""

    def poll(scope: Any) -> None:
        scope["n"] = scope.get("n", 0) + 1

    return (
        flow_chart("wait-for-job", nothing, id="start", stage_name="Start job")
        .add_function("Poll job", poll, id="poll")
        .add_decider("Done?", lambda s: "yes" if s["n"] >= 4 else "no", id="done")
        .branch("no", nothing, name="Wait a minute", loop_to="poll")
        .branch("yes", nothing, name="Collect result")
        .end()
        .add_function("Report", nothing, id="report")
        .build()
    )


def rounds():
    """Goes back from its last stage until one says stop."""

    def work(scope: Any) -> None:
        scope["n"] = scope.get("n", 0) + 1
        if scope["n"] == 3:
            scope.stop("enough rounds")

    return (
        flow_chart("rounds", nothing, id="start", stage_name="Start")
        .add_function("Work", work, id="work")
        .add_function("Rest", nothing, id="rest")
        .loop_to("work")
        .build()
    )


def asking():
    """Asks before it goes on."""
    return (
        flow_chart("change", nothing, id="start", stage_name="Draft change")
        .add_pausable("Approve change", lambda s: "May it go out?", nothing, id="approve")
        .add_function("Roll out", nothing, id="roll")
        .build()
    )


def streaming():
    """Tries thrice, then streams."""
    tries: list[int] = []

    def flaky(scope: Any) -> None:
        tries.append(1)
        if len(tries) % 3:
            raise OSError("busy")

    return (
        flow_chart("write", flaky, id="start", stage_name="Fetch facts", retry=Retry(3))
        .add_streaming(
            "Write summary",
            says("the", "job", "is", "done"),
            id="say",
            stream="summary",
            tags=("llm",),
        )
        .add_function("File it", nothing, id="file")
        .build()
    )


def stopped():
    """Is stopped on purpose inside a chart, which hands the stop on."""
    gate = flow_chart(
        "gate", lambda s: s.stop("nothing to do"), id="check", stage_name="Check queue"
    )
    return (
        flow_chart("nightly", nothing, id="start", stage_name="Begin")
        .add_subchart(
            "Queue gate",
            gate.add_function("Drain", nothing, id="drain").build(),
            id="gate",
            propagate_stop=True,
        )
        .add_function("Never", nothing, id="never")
        .build()
    )


SEVERITY = rb.RuleSet(
    "severity",
    "v1",
    [rb.Rule({"level": {"gt": 2}}, then="bad", label="severity over 2")],
    default=rb.Default("fine"),
)


def branching(level: int = 3):
    """A decider one branch of which is a chart."""
    fix = flow_chart("fix", nothing, id="plan", stage_name="Plan fix")
    return (
        flow_chart("triage", lambda s: s.set("level", level), id="start", stage_name="Read ticket")
        .add_decider("How bad?", id="severity", rules=SEVERITY)
        .branch("bad", fix.add_function("Apply fix", nothing, id="apply").build(), name="Fix it")
        .branch("fine", nothing, name="Close")
        .end()
        .add_function("Report", nothing, id="report")
        .build()
    )


HEALTH = rb.RuleSet(
    "health", "v1", [rb.Rule({"n": {"gt": 2}}, then="sick")], default=rb.Default("well")
)


def fleet():
    """A fan-out with a fork, a chart and a decider in its branch."""
    scan = flow_chart("deep", nothing, id="scan", stage_name="Scan").build()
    host = (
        flow_chart("host", lambda s: s.set("n", s.args["item"]), id="load", stage_name="Load")
        .add_fork("Probe", id="probe", merge="keys")
        .branch("ssh", lambda s: s.set("a", 1))
        .branch("http", lambda s: s.set("b", 2))
        .end()
        .add_subchart("Deep scan", scan, id="deep")
        .add_decider("Healthy?", id="healthy", rules=HEALTH)
        .branch("sick", nothing)
        .branch("well", nothing)
        .end()
        .build()
    )
    return (
        flow_chart("fleet", lambda s: s.set("hosts", [1, 2, 3, 4]), id="start", stage_name="List")
        .add_parallel_for_each(
            "Each host",
            id="each",
            items=lambda s: s["hosts"],
            branch=host,
            max_branches=10,
            into="out",
        )
        .add_function("Report", nothing, id="report")
        .build()
    )


def incident():
    """A fork of charts, one that asks, one made when run; a selector that selects nothing."""
    probe = (
        flow_chart("probe", nothing, id="open", stage_name="Open session")
        .add_streaming("Stream log", says(*"abcd"), id="log")
        .build()
    )
    return (
        flow_chart("incident", nothing, id="start", stage_name="Open ticket")
        .add_fork("Gather evidence", id="gather", into="found")
        .branch("logs", probe, name="Read logs")
        .branch(
            "disk",
            lambda s: "Is the disk full?",
            resume=nothing,
            name="Ask the owner",
            tags=("human",),
        )
        .branch("cache", lambda: probe, lazy=True, name="Warm cache")
        .end()
        .add_selector("Repairs", lambda s: [], id="repairs")
        .branch("restart", nothing)
        .branch("rotate", nothing)
        .end()
        .add_function("Close", nothing, id="close")
        .build()
    )


KINDS = {
    made.__name__: made
    for made in (
        *(forked, selected, mounted, looped, rounds, asking, streaming, stopped, branching),
        *(fleet, incident),
    )
}


def run(chart: Any, *answers: Any) -> Any:
    """Run a chart, with as many answers as it is given; give the run whichever way it ended."""
    try:
        made = chart.run_sync()
        for answer in answers:
            made = chart.resume_sync(made.checkpoint, answer)
    except Exception as error:
        return error.run
    return made
