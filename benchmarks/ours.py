"""The task with this package: a chart judged row by row, and one judged as columns."""

from __future__ import annotations

from collections.abc import Callable
from tempfile import NamedTemporaryFile
from typing import Any

from goal import NotMeasured
from task import MEANINGS, SHOWN, Rows, bare_loop, written_walk

import runbook_nb as rb
from runbook_nb.rules.frame import judge_frame


def posture(conditions: int = 0) -> rb.RuleSet:
    """Give the rules; ``conditions`` more, tried first, hold for nobody."""
    more = [
        rb.Rule({"age_days": {"gt": 2000 - n}}, then="never", label="never")
        for n in range(conditions)
    ]
    return rb.RuleSet(
        "health-signal",
        "v1",
        rules=[
            *more,
            rb.Rule({"age_known": {"eq": False}}, then="declined", label=MEANINGS["declined"]),
            rb.Rule({"age_days": {"gt": 7}}, then="unprotected", label=MEANINGS["unprotected"]),
        ],
        default=rb.Default("protected", label=MEANINGS["protected"]),
    )


POSTURE = posture()


def _load(scope: Any) -> None:
    scope.update(scope.args["item"])


def _more(n: int) -> Callable[[Any], None]:
    key = f"more{n}"

    def stage(scope: Any) -> None:
        scope[key] = scope["age_days"]

    return stage


def _verdict(word: str) -> Callable[[Any], None]:
    def stage(scope: Any) -> None:
        scope["verdict"] = word

    return stage


def subject_chart(rules: rb.RuleSet = POSTURE, stages: int = 0) -> rb.Chart:
    """Give the chart of one subject: load, more stages, decide, a branch per verdict."""
    chart = rb.flow_chart("subject", _load, id="load")
    for n in range(stages):
        chart = chart.add_function(f"more{n}", _more(n), id=f"more{n}")
    decider = chart.add_decider("Posture", rules=rules, id="posture")
    for word in rules.branches:
        decider = decider.branch(word, _verdict(word))
    return decider.end().build()


def _collect(scope: Any) -> None:
    scope["verdicts"] = scope["results"].verdict_rows()


def row_wise_chart(
    rows: Rows, *, collecting: bool = True, stages: int = 0, conditions: int = 0
) -> rb.Chart:
    """Give the chart that runs every subject through a chart of its own."""
    rules = posture(conditions) if conditions else POSTURE
    chart = rb.flow_chart("triage", lambda scope: None, id="start").add_parallel_for_each(
        "Each",
        id="each",
        items=lambda scope: rows,
        branch=subject_chart(rules, stages),
        max_branches=max(len(rows), 1),
        into="results",
        subject="subject",
    )
    if collecting:
        chart = chart.add_function("Collect", _collect, id="collect")
    return chart.build()


def batch_chart(source: Any, n: int, *, collecting: bool = True) -> rb.Chart:
    """Give the chart that judges all subjects as columns."""
    builder = rb.flow_chart("triage", lambda scope: None, id="start")
    if not hasattr(builder, "add_judge_each"):
        raise NotMeasured("the builder has no add_judge_each yet")
    chart = builder.add_judge_each(
        "Each",
        id="each",
        items=lambda scope: source,
        rules=POSTURE,
        max_branches=max(n, 1),
        into="results",
        subject="subject",
        decider="Posture",
    )
    if collecting:
        chart = chart.add_function("Collect", _collect, id="collect")
    return chart.build()


def answers(chart: rb.Chart, decider: str = "Posture") -> Callable[[], str]:
    """Give what runs a chart to the JSON of its envelope."""
    called = caller(chart, decider)
    return lambda: called().to_json()


def caller(chart: rb.Chart, decider: str = "Posture") -> Callable[[], rb.Envelope]:
    """Give what runs a chart to its envelope: through the bridge and a toolbox, no walk filed."""
    box = rb.Toolbox([_tool(chart, decider)], artifacts=None)
    return lambda: box.call_sync("triage")


def filing(chart: rb.Chart) -> Callable[[], str]:
    """Give what runs a chart to the JSON of its envelope and writes its whole walk to a file."""
    called = caller(chart)

    def answer() -> str:
        envelope = called()
        with NamedTemporaryFile() as file:
            file.write(rb.write_walk(envelope.run.walk))
        return envelope.to_json()

    return answer


def _tool(chart: rb.Chart, decider: str = "Posture") -> Any:
    return rb.runbook_as_tool(
        name="triage",
        description="Judges rows.",
        procedure=lambda tools: chart,
        result_kind="verdict/triage",
        rules=POSTURE,
        verdicts={"decider": decider, "max_rows": SHOWN},
    )


def verify(rows: Rows, envelope: rb.Envelope) -> None:
    """See that an answer is right: its counts are those of the bare loop."""
    words = bare_loop(rows)
    expected = {word: words.count(word) for word in set(words)}
    found: dict[Any, int] = {}
    for decided in envelope.run.walk.iter_decisions():
        branch = decided.decision.branch
        found[branch] = found.get(branch, 0) + 1
    if found != expected:
        raise AssertionError(f"the counts are {found}, not {expected}")


def facts_of(run: rb.Run) -> list[tuple[Any, ...]]:
    """Give the facts a record holds about every subject, in the form of the walk by hand."""
    decisions = {row.runtime_stage_id: row.decision for row in run.walk.iter_decisions()}
    facts: list[tuple[Any, ...]] = []
    for commit in run.commits.whole():
        said = commit.to_dict()
        step = said["runtimeStageId"]
        if "/" not in step:
            continue
        facts.append(("stage", step))
        facts += [("write", step, key, value) for key, value in said["overwrite"].items()]
        decision = decisions.get(step)
        if decision is None:
            continue
        for rule in decision.to_dict()["evidence"]["rules"]:
            facts += [
                ("condition", step, rule["ruleIndex"], *(said[name] for name in _CONDITION))
                for said in rule["conditions"]
            ]
        facts.append(("decision", step, decision.branch, decision.label))
    return facts


_CONDITION = ("key", "op", "threshold", "actual", "result")
_NONE: dict[str, list[Any]] = {"rules": []}


def written_facts(rows: Rows, *, flat: bool = False) -> list[tuple[Any, ...]]:
    """Give the facts of the walk by hand."""
    facts: list[tuple[Any, ...]] = []
    for row in written_walk(rows, flat=flat)[1]:
        step = row["id"]
        if row["type"] == "stage":
            facts.append(("stage", step))
        elif row["type"] == "write":
            facts.append(("write", step, row["key"], row["value"]))
        elif row["type"] == "condition":
            facts.append(("condition", step, row["rule"], *(row[name] for name in _CONDITION)))
        else:
            facts += [
                ("condition", step, rule["ruleIndex"], *(said[name] for name in _CONDITION))
                for rule in row.get("evidence", _NONE)["rules"]
                for said in rule["conditions"]
            ]
            facts.append(("decision", step, row["branch"], row["label"]))
    return facts


def same_facts(run: rb.Run, rows: Rows) -> int:
    """Compare a record with the walk by hand, fact by fact; gives how many there are."""
    ours, theirs = facts_of(run), written_facts(rows)
    if written_facts(rows, flat=True) != theirs:
        raise AssertionError("the walk by hand says other things in flat rows")
    if ours != theirs:
        for one, other in zip(ours, theirs, strict=False):
            if one != other:
                raise AssertionError(f"the record says {one}, the walk by hand {other}")
        raise AssertionError(f"the record has {len(ours)} facts, the walk by hand {len(theirs)}")
    return len(ours)


__all__ = [
    "POSTURE",
    "answers",
    "batch_chart",
    "caller",
    "filing",
    "judge_frame",
    "posture",
    "row_wise_chart",
    "same_facts",
    "subject_chart",
    "verify",
]


def chart_loading(rows: Rows, stage: Any, *, max_concurrency: int) -> rb.Chart:
    """Make the task's chart without its collecting stage, with a loading stage of one's own."""
    decider = rb.flow_chart("subject", stage, id="load").add_decider(
        "Posture", rules=POSTURE, id="posture"
    )
    for word in POSTURE.branches:
        decider = decider.branch(word, lambda scope, word=word: scope.set("verdict", word))
    return (
        rb.flow_chart("triage", lambda scope: None, id="start")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda scope: rows,
            branch=decider.end().build(),
            max_branches=len(rows),
            max_concurrency=max_concurrency,
            into="results",
            subject="subject",
        )
        .build()
    )
