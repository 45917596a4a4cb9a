"""Engines through the toolbox: the same envelope, the order of calls, what needs the dispatch."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest

import runbook_nb as rb
from runbook_nb._ids import SeededIds
from runbook_nb.chart.builder import flow_chart
from runbook_nb.errors import EngineError

POSTURE = rb.RuleSet(
    "age",
    "v1",
    [rb.Rule({"age": {"gt": 7}}, "old", label="older than 7 days", unit="days")],
    default=rb.Default("new", label="within 7 days"),
)


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, mp_context=get_context("forkserver")) as pool:
        yield pool


def load(scope: Any) -> None:
    item = scope.args["item"]
    if item["host"] == "web-5":
        raise ValueError("no such host")
    scope.update(item)


def judging(name: str = "ages") -> Any:
    """Make a runbook that judges hosts, a few of which fail, are declined or past the cap."""
    builder = flow_chart("One host", load, id="load").add_decider("Age", rules=POSTURE, id="age")
    for word in POSTURE.branches:
        builder.branch(word, lambda scope, word=word: scope.set("verdict", word))
    each = builder.end().build()
    hosts = [{"host": f"web-{n}", "age": None if n == 8 else n} for n in range(40)]

    def collect(scope: Any) -> None:
        scope["verdicts"] = [
            {"subject": slot.item["host"], "verdict": slot.value["verdict"]}
            for slot in scope["slots"]
            if slot.status == "ok"
        ]

    def procedure(tools: Any) -> Any:
        return (
            flow_chart("Hosts", lambda scope: scope.set("hosts", hosts), id="hosts")
            .add_parallel_for_each(
                "Each",
                id="each",
                items=lambda scope: scope["hosts"],
                branch=each,
                max_branches=35,
                into="slots",
                subject="host",
            )
            .add_function("Collect", collect, id="collect")
            .build()
        )

    return rb.runbook_as_tool(
        name=name,
        description="Ages of hosts.",
        procedure=procedure,
        result_kind="verdict/age",
        rules=POSTURE,
        verdicts=rb.Verdicts(decider="Age"),
    )


def answered(engine: Any, tool: Any) -> tuple[str, str, str]:
    """Call a tool; give its envelope as JSON, as text and as HTML."""
    with rb.settings(ids=SeededIds("engines")):
        envelope = rb.Toolbox([tool], engine=engine).call_sync(tool.name, call_id="call-1")
    return (
        json.dumps(envelope, default=repr),
        repr(envelope),
        envelope._repr_mimebundle_()[0]["text/html"],
    )


def test_an_envelope_is_the_same_bytes_on_every_engine(processes):
    here = answered(None, judging())
    assert "no such host" in here[0]
    for engine in ("inline", "threads", processes):
        assert answered(engine, judging()) == here


def test_a_flowchart_as_a_tool_takes_the_engine_too():
    names = []
    each = flow_chart("b", lambda s: names.append(threading.current_thread().name), id="b").build()
    chart = (
        flow_chart("c", lambda s: None, id="s")
        .add_parallel_for_each(
            "Each", id="each", items=lambda s: [1, 2], branch=each, max_branches=2, into="out"
        )
        .build()
    )
    tool = rb.flowchart_as_tool(flowchart=chart, name="chart", description="A chart.")
    rb.Toolbox([tool], engine="threads").call_sync("chart")
    assert [name.startswith("runbook_nb-branch") for name in names] == [True, True]


def test_a_procedure_that_knows_of_no_engine_is_run_without_one():
    chart = flow_chart("c", lambda s: s.set("report", {"n": 1}), id="a").build()

    class Other:
        name, structure, input_schema = chart.name, chart.structure, None

        def run(
            self, args: Any = None, *, limits: Any = None, redact: Any = None, signal: Any = None
        ) -> Any:
            return chart.run(args, limits=limits, redact=redact, signal=signal)

    tool = rb.runbook_as_tool(name="other", description="x", procedure=lambda tools: Other())
    assert rb.Toolbox([tool], engine="threads").call_sync("other")["result"]["n"] == 1


# -- calls of tools inside branches ------------------------------------------------------------


def probing(survive: bool = False) -> Any:
    """Make a runbook each branch of which asks a tool, the later ones being quicker."""

    def procedure(tools: Any) -> Any:
        async def probe(scope: Any) -> None:
            item = scope.args["item"]
            if not item % 3:
                scope["skipped"] = True
                return
            try:
                answer = await tools.call("load", {"host": item})
                scope["load"] = answer["result"]["load"]
            except EngineError:
                if not survive:
                    raise
                scope["load"] = 0

        each = flow_chart("One", probe, id="probe").build()
        return (
            flow_chart("Hosts", lambda scope: None, id="hosts")
            .add_parallel_for_each(
                "Each",
                id="each",
                items=lambda scope: list(range(12)),
                branch=each,
                max_branches=100,
                into="slots",
            )
            .build()
        )

    return rb.runbook_as_tool(
        name="probe", description="Loads.", procedure=procedure, composed_of=["load"]
    )


def loads(gates: Any = None) -> Any:
    @rb.tool(name="load", description="The load of a host.")
    def load_of(host: int) -> Any:
        if gates is not None:  # the first to ask is the last to be answered
            gates[host].wait(5)
            for other in gates:
                if other < host and all(gates[n].is_set() for n in gates if n > other):
                    gates[other].set()
        return rb.coverage({"load": host * 10}, checked=[f"the load of host {host}"])

    return load_of


def test_calls_from_threads_are_kept_in_the_order_of_the_items():
    gates = {n: threading.Event() for n in range(12) if n % 3}
    gates[max(gates)].set()
    box = rb.Toolbox([loads(gates), probing()], engine="threads")
    there = box.call_sync("probe", call_id="call-1")
    here = rb.Toolbox([loads(), probing()]).call_sync("probe", call_id="call-1")
    assert there["af_coverage"] == here["af_coverage"]
    checked = json.dumps(there["af_coverage"])
    assert checked.index("host 1") < checked.index("host 2") < checked.index("host 4")
    assert [slot.value for slot in box.last_run.slots("each")][:3] == [
        {"skipped": True},
        {"load": 10},
        {"load": 20},
    ]


@pytest.mark.parametrize("survive", [False, True])
def test_a_branch_that_needs_the_dispatch_cannot_leave_the_process(processes, survive):
    box = rb.Toolbox([loads(), probing(survive)], engine=processes)
    envelope = box.call_sync("probe")
    slots = box.last_run.slots("each")
    assert [slot.status for slot in slots] == ["failed" if n % 3 else "ok" for n in range(12)]
    for slot in slots:
        if slot.status == "failed":
            assert "EngineError: the branch needs the dispatch of its run" in slot.reason
            assert "(needs_dispatch)" in slot.reason
            assert "engine='threads'" in slot.reason
    gaps = json.dumps(envelope["af_coverage"])
    assert "8 subject(s) of 'Each' whose branch failed" in gaps
    assert "needs_dispatch" in gaps


def test_a_plain_stage_that_swallows_the_refusal_is_found_out_too(processes):
    def procedure(tools: Any) -> Any:
        def ask(scope: Any) -> int:
            if scope.args["item"] == 3:
                try:
                    tools.has("load")
                except EngineError:
                    return 0
            return 1

        each = flow_chart("One", ask, id="ask").build()
        return (
            flow_chart("Hosts", lambda scope: None, id="hosts")
            .add_parallel_for_each(
                "Each",
                id="each",
                items=lambda scope: list(range(6)),
                branch=each,
                max_branches=100,
                into="slots",
            )
            .build()
        )

    tool = rb.runbook_as_tool(name="ask", description="x", procedure=procedure)
    box = rb.Toolbox([loads(), tool], engine=processes)
    box.call_sync("ask")
    slots = box.last_run.slots("each")
    assert [slot.status for slot in slots] == ["ok", "ok", "ok", "failed", "ok", "ok"]
    assert "needs_dispatch" in slots[3].reason


def test_an_absence_met_on_a_thread_is_the_answer_of_the_first_that_met_it():
    @rb.tool(name="load", description="The load of a host.")
    def load_of(host: int) -> Any:
        return rb.absent(f"no load of host {host}", checked=["the hosts"])

    box = rb.Toolbox([load_of, probing()], engine="threads")
    here = rb.Toolbox([load_of, probing()])
    assert box.call_sync("probe") == here.call_sync("probe")
    assert box.last_run.status == here.last_run.status == "absent"


# -- pauses ------------------------------------------------------------------------------------


def test_a_runbook_that_paused_goes_on_with_the_engine(processes):
    def ask(scope: Any) -> Any:
        return rb.interrupt(scope, f"host {scope.args['item']}?")

    each = flow_chart("One", ask, id="ask").build()

    def procedure(tools: Any) -> Any:
        return (
            flow_chart("Hosts", lambda scope: None, id="hosts")
            .add_parallel_for_each(
                "Each",
                id="each",
                items=lambda scope: [1, 2],
                branch=each,
                max_branches=9,
                into="slots",
            )
            .add_function("End", lambda s: s.set("report", {"n": len(s["slots"])}), id="end")
            .build()
        )

    tool = rb.runbook_as_tool(name="ask", description="x", procedure=procedure)
    for engine in (None, "threads", processes):
        box = rb.Toolbox([tool], engine=engine)
        with pytest.raises(rb.errors.Paused, match=r"host 1\?") as first:
            box.call_sync("ask")
        with pytest.raises(rb.errors.Paused, match=r"host 2\?") as second:
            box.resume_sync(first.value.checkpoint, "yes")
        assert box.resume_sync(second.value.checkpoint, "no")["result"]["n"] == 2
        assert [slot.value for slot in box.last_run.slots("each")] == ["yes", "no"]
