"""Troubles that flow engines are known for, each named by what happens here instead."""

from __future__ import annotations

import asyncio
import json

import pytest

import runbook_nb as rb
from runbook_nb.chart.builder import flow_chart
from runbook_nb.errors import ChartError, FrozenError, RuleError, RunCancelled

AGE = rb.RuleSet(
    "age",
    "v1",
    rules=[rb.Rule({"age": {"gt": 7}}, then="old", label="older than 7")],
    default=rb.Default("fresh", label="within 7"),
)


def one(fn=lambda scope: scope.args["item"], **options):
    return flow_chart("one", fn, id="one", **options).build()


def start(**state):
    return flow_chart("c", lambda scope: scope.update(state), id="start")


def each(building, branch, **options):
    options = {"max_branches": 1000, "into": "out", **options}
    return building.add_parallel_for_each(
        "Each", id="each", items=lambda scope: scope["items"], branch=branch, **options
    )


def counted(scope):
    scope["n"] = scope.get("n", 0) + 1


def three_times(scope):
    return "on" if scope.get("n", 0) >= 3 else "again"


def around(building, back_to):
    """Close a loop that goes three times."""
    return (
        building.add_function("Count", counted, id="count")
        .add_decider("Enough?", three_times, id="enough")
        .branch("again", lambda scope: None, loop_to=back_to)
        .branch("on", lambda scope: "done")
        .end()
        .build()
    )


def ran(run, stage_id):
    return sum(row.type == "stage" and row.stage_id == stage_id for row in run.walk)


def test_a_fan_out_wider_than_five_hundred_loses_no_branch():
    run = each(start(items=list(range(700))), one()).build().run_sync()
    assert [slot.value for slot in run.slots("each")] == list(range(700))


@pytest.mark.parametrize("kind", ["mount", "fan_out", "selector", "fork"])
def test_a_loop_goes_round_whatever_kind_of_stage_it_goes_back_to(kind):
    building = start(items=[1, 2])
    if kind == "mount":
        building = building.add_subchart("Mid", one(lambda scope: None), id="mid")
    elif kind == "fan_out":
        building = each(building, one())
    elif kind == "selector":
        building = building.add_selector("Mid", lambda scope: ["x"], id="mid")
        building = building.branch("x", lambda scope: 1).end()
    else:
        building = building.add_fork("Mid", id="mid").branch("x", lambda scope: 1).end()
    back_to = "each" if kind == "fan_out" else "mid"
    run = around(building, back_to).run_sync()
    assert (run.status, run.result) == ("ok", "done")
    assert ran(run, back_to) == 3
    assert [row.type for row in run.walk].count("loop") == 2


@pytest.mark.parametrize("kind", ["mount", "fan_out", "decider", "selector"])
def test_a_fork_runs_once_behind_whatever_stage_it_stands(kind):
    building = start(items=[1])
    if kind == "mount":
        building = building.add_subchart("Mid", one(lambda scope: None), id="mid")
    elif kind == "fan_out":
        building = each(building, one())
    elif kind == "decider":
        building = building.add_decider("Mid", lambda scope: "x", id="mid")
        building = building.branch("x", lambda scope: None).end()
    else:
        building = building.add_selector("Mid", lambda scope: [], id="mid")
        building = building.branch("x", lambda scope: None).end()
    chart = (
        building.add_fork("Fork", id="fork", merge="keys")
        .branch("left", lambda scope: scope.set("left", 1))
        .branch("right", lambda scope: scope.set("right", 2))
        .end()
        .add_function("End", counted, id="end")
        .build()
    )
    run = chart.run_sync()
    assert (run.state["left"], run.state["right"], run.state["n"]) == (1, 2, 1)
    assert [ran(run, name) for name in ("left", "right", "end")] == [1, 1, 1]


def test_a_cancellation_never_ends_as_branches_that_failed():
    stop = rb.Stop()

    async def look(scope):
        if scope.args["item"] == 1:
            stop.set("enough")
        await asyncio.sleep(5)

    chart = each(start(items=[1, 2, 3]), one(look)).build()
    with pytest.raises(RunCancelled) as caught:
        chart.run_sync(signal=stop)
    run = caught.value.run
    assert run.status == "cancelled"
    assert {slot.status for slot in run.slots("each")} == {"not_reached"}


def test_an_output_mapping_that_fails_fails_the_run_and_is_told():
    def outputs(result, scope):
        raise ValueError("no such thing")

    chart = start().add_subchart("Sub", one(lambda s: 1), id="sub", outputs=outputs).build()
    with pytest.raises(ValueError, match="no such thing") as caught:
        chart.run_sync()
    run = caught.value.run
    assert [row.text for row in run.walk if row.type == "error"] == [
        "Failed: ValueError: no such thing"
    ]
    assert [c.status for c in run.commits if c.stage_id == "sub"] == ["failed"]


def test_a_failed_slot_says_why():
    run = each(start(items=[0]), one(lambda s: 1 // s.args["item"])).build().run_sync()
    (slot,) = run.slots("each")
    assert slot.status == "failed"
    assert slot.reason.startswith("ZeroDivisionError")


def test_a_pause_in_a_branch_is_answered_and_what_follows_still_runs():
    asking = one(lambda s: rb.interrupt(s, f"take {s.args['item']}?"))
    building = each(start(items=["a", "b"]), asking)
    building = building.add_fork("Fork", id="fork", merge="keys")
    building = building.branch("ask", lambda s: s.set("sure", rb.interrupt(s, "sure?"))).end()
    chart = building.add_function("End", counted, id="end").build()
    run = chart.run_sync()
    for answer in ("yes", "no", "certainly"):
        run = chart.resume_sync(json.loads(json.dumps(run.checkpoint)), answer)
    assert run.status == "ok"
    assert [slot.value for slot in run.slots("each")] == ["yes", "no"]
    assert (run.state["sure"], run.state["n"]) == ("certainly", 1)


def test_a_stage_that_asks_twice_comes_to_its_end():
    chart = flow_chart(
        "c", lambda s: [rb.interrupt(s, "one?"), rb.interrupt(s, "two?")], id="a"
    ).build()
    run = chart.resume_sync(chart.run_sync().checkpoint, 1)
    assert run.pause["reason"] == "two?"
    assert chart.resume_sync(run.checkpoint, 2).result == [1, 2]


@pytest.mark.parametrize("kind", ["decider", "selector"])
def test_a_stop_while_judging_stops_there_and_says_why(kind):
    def judge(scope):
        scope.stop("nothing to judge")
        return "x"

    adding = getattr(start(), f"add_{kind}")("Judge", judge, id="judge")
    chart = adding.branch("x", counted).end().add_function("End", counted, id="end").build()
    run = chart.run_sync()
    assert run.state == {}
    assert [row.text for row in run.walk if row.type == "break"] == [
        "Stopped here: nothing to judge"
    ]


def test_a_branch_named_twice_is_selected_once():
    chart = start().add_selector("S", lambda s: ["x", "x"], id="s", into="out")
    run = chart.branch("x", lambda s: 1).end().build().run_sync()
    assert [slot.value for slot in run.state["out"]] == [1]


def test_an_async_rule_is_awaited_and_its_answer_counts():
    async def never(facts):
        return False

    rules = rb.RuleSet("r", "1", [rb.Rule(never, "x")], default="y")
    chart = start().add_decider("D", rules=rules, id="d")
    chart = chart.branch("x", lambda s: "x").branch("y", lambda s: "y")
    chart = chart.branch("declined", lambda s: "declined").end().build()
    assert chart.run_sync().result == "y"


def test_a_malformed_condition_is_refused_when_the_rules_are_built():
    with pytest.raises(RuleError):
        rb.RuleSet("r", "1", [rb.Rule({"a": {"gt": 1, "above": None}}, "x")], default="y")


def test_the_default_branch_runs_under_its_own_id():
    building = start().add_decider("D", lambda s: "nobody", id="d")
    chart = building.branch("x", lambda s: 1).branch("y", lambda s: 2).default("y").end().build()
    run = chart.run_sync()
    assert [r.stage_id for r in run.walk if r.type == "stage"] == ["start", "d", "y"]
    assert all(run.structure.node(r.stage_id) for r in run.walk if r.type == "stage")


def test_a_default_that_is_no_branch_is_refused_at_build():
    building = start().add_decider("D", lambda s: "x", id="d").branch("x", lambda s: 1)
    with pytest.raises(ChartError, match="default"):
        building.default("why").end().build()


def test_a_decision_for_an_undeclared_branch_is_an_error_and_takes_no_other():
    chart = start(age=9).add_decider(
        "D", lambda s: rb.decide(s, [rb.Rule({"age": {"gt": 7}}, "old")], "x"), id="d"
    )
    chart = chart.branch("x", counted).default("x").end().build()
    with pytest.raises(ChartError) as caught:
        chart.run_sync()
    assert caught.value.code == "unknown_branch"
    assert "n" not in caught.value.run.state


def test_data_that_looks_like_a_stage_is_data():
    looks = {"name": "more", "children": [], "next": {"name": "evil", "id": "evil"}}
    run = flow_chart("c", lambda s: looks, id="a").build().run_sync()
    assert (run.result, run.steps_executed) == (looks, 1)


def test_recorded_state_cannot_be_changed_behind_the_record():
    def change(scope):
        for row in scope["rows"]:
            row["n"] = 9

    chart = start(rows=[{"n": 1}]).add_function("Change", change, id="change").build()
    with pytest.raises(FrozenError) as caught:
        chart.run_sync()
    run = caught.value.run
    assert run.state == {"rows": [{"n": 1}]}
    with pytest.raises(FrozenError):
        run.state["rows"].append(1)


def test_a_key_called_runs_is_a_key_like_any():
    building = start(runs=5).add_fork("F", id="f", merge="keys")
    chart = building.branch("x", lambda s: s.set("x", s["runs"] + 1)).end().build()
    assert chart.run_sync().state == {"runs": 5, "x": 6}


@pytest.mark.parametrize("age", [None, float("nan"), "9", []])
def test_a_signal_that_cannot_be_read_is_declined_and_not_the_default(age):
    building = start(age=age).add_decider("D", rules=AGE, id="d")
    chart = building.branch("old", lambda s: "old").branch("fresh", lambda s: "fresh").end()
    run = chart.build().run_sync()
    assert [made.decision.branch for made in run.decisions] == ["declined"]


def test_secrets_are_hidden_in_lists_of_records_and_in_the_input():
    policy = {"paths": ["rows[*].token"], "keys": ["key"]}
    chart = start(rows=[{"id": 1, "token": "t0ken-one"}]).build()
    run = chart.run_sync({"key": "k3y-of-all"}, redact=policy)
    assert run.state == {"rows": [{"id": 1, "token": "[REDACTED]"}]}
    assert run.args == {"key": "[REDACTED]"}
    assert "t0ken-one" not in run.recording().to_json()


def test_the_walk_tells_of_the_stage_that_failed_and_of_what_it_wrote():
    def broken(scope):
        scope["half"] = 1
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken") as caught:
        start().add_function("Broken", broken, id="broken").build().run_sync()
    run = caught.value.run
    assert [r.text for r in run.walk if r.stage_id == "broken"] == [
        "Ran Broken",
        "Wrote half",
        "Failed: ValueError: broken",
    ]
    assert run.state == {"half": 1}


def test_what_lies_past_the_cap_is_in_the_walk_the_slots_and_the_counts():
    run = each(start(items=[1, 2, 3]), one(), max_branches=2).build().run_sync()
    (fork,) = (row for row in run.walk if row.type == "fork")
    assert "1 past the cap of 2" in fork.text
    assert run.slots("each")[2].reason == "past the cap of 2"
    assert run.fan_outs[0].past_cap == 1


def test_the_structure_of_a_fan_out_holds_its_branches():
    chart = each(start(items=[]), one()).build()
    assert [node.key for node in chart.structure.inside("each")] == ["each/one"]


def test_names_are_the_authors_own_wherever_they_stand():
    inner = flow_chart("inner", lambda s: None, id="look", stage_name="Look").build()
    chart = start().add_subchart("Sub", inner, id="sub").build()
    rows = [(r.stage, r.stage_id, r.subflow) for r in chart.run_sync().walk if r.type == "stage"]
    assert rows == [("c", "start", None), ("Sub", "sub", None), ("Look", "look", "sub")]


def test_evidence_keeps_the_value_beside_its_summary():
    building = start(age=30).add_decider("D", rules=AGE, id="d")
    chart = building.branch("old", lambda s: 1).branch("fresh", lambda s: 2).end().build()
    (made,) = chart.run_sync().decisions
    (condition,) = made.decision.conditions
    assert (condition.actual, condition.actual_summary, condition.result) == (30, "30", True)


def test_facts_are_data_and_no_text_has_to_be_read_for_them():
    run = each(start(items=[1, 0]), one(lambda s: 1 // s.args["item"])).build().run_sync()
    assert [(slot.item, slot.status) for slot in run.slots("each")] == [(1, "ok"), (0, "failed")]
    assert [commit.status for commit in run.commits] == ["ok", "ok"]
