"""Facts about using charts and runs that no program can say: each asserted in our own words."""

from __future__ import annotations

import asyncio
import copy
import json
from collections import Counter

import pytest
from replay_seen import plain_value

import runbook_nb as rb
from runbook_nb.errors import ChartError, FrozenError, ScopeClosed


def departs(name):
    """Name the declared departure that explains a difference."""
    return name


def two_stages():
    return (
        rb.flow_chart("Seed", lambda s: s.update({"a": 1, "b": 2}), id="seed")
        .add_function("End", lambda s: s["a"], id="end")
        .build()
    )


def waiting(seconds=0.01):
    async def wait(scope):
        await asyncio.sleep(seconds)
        scope["who"] = scope.args.get("who")

    return rb.flow_chart("Wait", wait, id="wait").build()


def both(first, second):
    async def go():
        return await asyncio.gather(first(), second())

    return asyncio.run(go())


# --- the facts ---------------------------------------------------------------------------------


def one_chart_runs_many_times_at_once(fact):
    # An executor that refuses a second run has nobody to stand for here: a run is its own.
    assert departs("a-run-is-its-own")
    chart = waiting()
    first, second = both(lambda: chart.run({"who": 1}), lambda: chart.run({"who": 2}))
    assert fact["value"]["first_ok"] is (first.status == "ok")
    assert (first.state, second.state) == ({"who": 1}, {"who": 2})


def runs_at_once_do_not_meet(fact):
    chart = two_stages()

    async def go():
        return await asyncio.gather(*(chart.run() for _ in range(fact["value"]["distinct"])))

    runs = asyncio.run(go())
    assert len({id(run.log) for run in runs}) == fact["value"]["distinct"]
    assert len({len(run.walk) for run in runs}) == 1
    assert all(run.state == {"a": 1, "b": 2} for run in runs)


def a_second_run_begins_anew(fact):
    chart = two_stages()
    runs = [chart.run_sync(), chart.run_sync()]
    rows = [len(run.walk) for run in runs]
    assert rows == [rows[0]] * 2
    for run in runs:
        assert run.commits[0].runtime_stage_id == fact["value"]["first"]
        assert len(run.commits) == fact["value"]["commits"]


def a_run_holds_its_own_record_alone(fact):
    chart = two_stages()
    lengths = [len(chart.run_sync().walk) for _ in fact["value"]]
    assert lengths == [lengths[0]] * len(fact["value"])


def a_run_has_one_record_whoever_looks(fact):
    assert departs("listeners-instead-of-recorders")
    run = two_stages().run_sync()
    assert run.walk == run.walk
    assert len(run.walk.rows) > 0


def a_state_is_nobodys_to_change(fact):
    run = two_stages().run_sync()
    with pytest.raises(FrozenError):
        run.state["a"] = 2
    assert run.state["a"] == 1


def commits_cannot_be_changed(fact):
    commits = two_stages().run_sync().commits
    with pytest.raises((AttributeError, TypeError)):
        commits[0] = commits[1]
    with pytest.raises((AttributeError, TypeError)):
        commits[0].index = 5


def counts_come_from_the_record(fact):
    run = two_stages().run_sync()
    steps = Counter(row.text.split()[0] for row in run.walk if row.type == "step")
    assert (steps["Read"], steps["Wrote"]) == (fact["value"]["reads"], fact["value"]["writes"])
    assert len(run.commits) == fact["value"]["commits"]
    assert [row.stage for row in run.walk if row.type == "stage"] == fact["value"]["stages"]


def the_record_is_in_the_recording(fact):
    recorders = two_stages().run_sync().recording().snapshot["recorders"]
    (narrative,) = [one for one in recorders if "narrative" in one["id"].lower()]
    assert narrative["data"]


def rows_ride_the_recording(fact):
    run = two_stages().run_sync()
    recorders = run.recording().snapshot["recorders"]
    (rows,) = [one["data"] for one in recorders if "narrative" in one["id"].lower()]
    (_, count, keys), *_ = fact["value"]
    assert departs("steps-name-keys-and-not-values")
    assert len(rows) == len(run.walk)
    assert count <= len(rows)
    told = {"stageName", "stageId", "runtimeStageId", "depth", "type", "text"} & set(keys)
    ours = {"stage_id", "runtime_stage_id", "depth", "type", "text"} & set(rows[0])
    assert told <= set(rows[0]) or len(ours) >= len(told) - 1


def a_run_gives_state_result_commits_and_walk(fact):
    run = two_stages().run_sync()
    ours = {"state": run.state, "output": run.output, "commitLog": run.commits}
    ours["executionTree"] = run.walk
    assert set(fact["value"]) == set(ours)
    assert all(value is not None for value in ours.values())


def without_a_mapper_the_output_is_the_state(fact):
    run = two_stages().run_sync()
    assert (run.output == run.state) is fact["value"]


def a_mapper_shapes_the_output(fact):
    value = fact["value"]["answer"]
    chart = rb.flow_chart(
        "C", lambda s: s.set("n", value), id="c", output=lambda state: {"answer": state["n"]}
    ).build()
    assert plain_value(chart.run_sync().output) == fact["value"]


def what_the_last_stage_gave_stays_beside_the_output(fact):
    chart = rb.flow_chart(
        "C", lambda s: s.set("n", 1) or "given", id="c", output=lambda state: state["n"]
    ).build()
    run = chart.run_sync()
    assert (run.result, run.output) == ("given", 1)


def an_error_is_told_once(fact):
    def fail(scope):
        raise RuntimeError("boom")

    with pytest.raises(RuntimeError) as raised:
        rb.flow_chart("C", fail, id="c").build().run_sync()
    rows = [row for row in raised.value.run.walk if row.type == "error"]
    assert len(rows) == len(fact["value"])


def children_begin_in_order_and_overlap(fact):
    told = []

    def child(name, seconds):
        async def run(scope):
            told.append(("begin", name))
            await asyncio.sleep(seconds)
            told.append(("end", name))

        return run

    forking = rb.flow_chart("C", lambda s: None, id="c").add_fork("Fork", id="fork")
    forking.branch("x", child("x", 0.03)).branch("y", child("y", 0.001)).end().build().run_sync()
    assert told[:2] == [("begin", "x"), ("begin", "y")]
    assert [name for kind, name in told if kind == "end"] == fact["value"]


def a_scope_ends_with_its_stage(fact):
    kept = []
    rb.flow_chart("C", kept.append, id="c").build().run_sync()
    with pytest.raises(ScopeClosed):
        kept[0]["a"] = 1


def nothing_handed_out_can_be_changed(fact):
    def change(scope):
        for row in scope["rows"]:
            row["n"] = 9

    chart = rb.flow_chart("C", lambda s: s.set("rows", [{"n": 1}]), id="c")
    with pytest.raises(FrozenError) as raised:
        chart.add_function("D", change, id="d").build().run_sync()
    assert raised.value.run.raw[1] == {"rows": [{"n": 1}]}


def rows_are_plain(fact):
    rows = two_stages().run_sync().walk.to_dicts()
    assert (copy.deepcopy(rows) == rows) is fact["value"]
    assert json.loads(json.dumps(rows)) == rows


def a_mounted_chart_is_found_by_its_path(fact):
    (path,) = fact["value"]["paths"]
    inner = rb.flow_chart("In", lambda s: s.set("x", 1), id="in").build()
    chart = rb.flow_chart("C", lambda s: None, id="c").add_subchart("Sub", inner, id=path).build()
    run = chart.run_sync()
    found = run.recording().snapshot["subflowResults"][path]
    assert found["treeContext"]["globalContext"] == {"x": 1}
    assert len(found["treeContext"]["history"]) >= fact["value"]["history"]
    log = run.commits.whole().log(path)
    assert [commit.runtime_stage_id for commit in log] == [f"{path}/in#2"]


def one_read_is_one_row(fact):
    run = (
        rb.flow_chart("C", lambda s: s.set("o", {"a": {"b": 1}}), id="c")
        .add_function("D", lambda s: s["o"]["a"]["b"], id="d")
        .build()
        .run_sync()
    )
    assert sum(row.text.startswith("Read") for row in run.walk) == fact["value"]


def a_stage_has_a_function(fact):
    with pytest.raises(ChartError) as refused:
        rb.flow_chart("C", None, id="c").build()
    assert [problem.where for problem in refused.value.problems] == ["'c'"]


def a_stage_has_an_id(fact):
    with pytest.raises(ChartError):
        rb.flow_chart("C", print).build()
    with pytest.raises(ChartError):
        rb.flow_chart("C", print, id="").build()


def a_description_is_made_for_whoever_asks(fact):
    from runbook_nb.chart.contract import tool_description

    chart = two_stages()
    first, second = tool_description(chart), tool_description(chart)
    first["inputSchema"]["changed"] = True
    assert first != second


FACTS = {
    "A001": one_chart_runs_many_times_at_once,
    "A002": runs_at_once_do_not_meet,
    "A003": a_second_run_begins_anew,
    "A004": a_run_has_one_record_whoever_looks,
    "A005": a_run_has_one_record_whoever_looks,
    "A006": a_state_is_nobodys_to_change,
    "A007": commits_cannot_be_changed,
    "A008": commits_cannot_be_changed,
    "A010": a_run_has_one_record_whoever_looks,
    "A011": a_run_has_one_record_whoever_looks,
    "A012": counts_come_from_the_record,
    "A013": a_run_has_one_record_whoever_looks,
    "A014": a_run_gives_state_result_commits_and_walk,
    "A015": without_a_mapper_the_output_is_the_state,
    "A016": an_error_is_told_once,
    "A017": children_begin_in_order_and_overlap,
    "A018": a_scope_ends_with_its_stage,
    "A019": nothing_handed_out_can_be_changed,
    "A020": a_description_is_made_for_whoever_asks,
    "A021": the_record_is_in_the_recording,
    "A022": rows_ride_the_recording,
    "A023": rows_are_plain,
    "A024": a_mounted_chart_is_found_by_its_path,
    "A026": a_mapper_shapes_the_output,
    "A027": what_the_last_stage_gave_stays_beside_the_output,
    "A028": a_run_holds_its_own_record_alone,
    "A029": one_read_is_one_row,
    "A030": a_stage_has_a_function,
    "A031": a_stage_has_an_id,
}


def test_every_fact_is_asserted_in_our_own_words(fact, unjudged, outcome):
    known = FACTS.get(fact["id"])
    if known is None:
        unjudged(fact)
        outcome({**fact, "family": "api_facts"}, "unjudged")
    else:
        known(fact)
        how = "equal" if fact["verdict"] == "keep" else "judged better"
        outcome({**fact, "family": "api_facts"}, how)
