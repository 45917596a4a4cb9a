"""Faults people have met elsewhere, held against charts."""

from __future__ import annotations

import pytest

import runbook_nb as rb
from runbook_nb.chart.builder import flow_chart
from runbook_nb.record.narrative import condition_words


def triage(items, cap=50, rule=7):
    rules = rb.RuleSet(
        "age", "v1", [rb.Rule({"age": {"gt": rule}}, "old", label="too old")], default="new"
    )
    each = (
        flow_chart("subject", lambda s: s.update(s.args["item"]), id="load")
        .add_decider("Age", id="age", rules=rules)
        .branch("old", lambda s: s.set("verdict", "old"))
        .branch("new", lambda s: s.set("verdict", "new"))
        .end()
        .build()
    )
    return (
        flow_chart("ages", lambda s: s.set("rows", items), id="inventory")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: s["rows"],
            branch=each,
            max_branches=cap,
            into="out",
            subject="name",
        )
        .add_function("Collect", lambda s: s.set("n", len(s["out"])), id="collect")
        .build()
    )


def rows_of(n):
    return [{"name": f"host-{i}", "age": i} for i in range(n)]


@pytest.mark.parametrize("n", [0, 1, 50, 51])
def test_c5_every_count_a_reader_sees_agrees(n):
    run = triage(rows_of(n)).run_sync()
    counts = run.fan_outs[0]
    assert counts.items == n
    done = min(n, 50)
    assert counts.ok == counts.decided == done
    assert sum(counts.by_branch.values()) == done
    assert len(run.decisions) == done
    assert [slot.status for slot in run.slots("each")].count("ok") == done
    assert run.steps_executed == 3 + 4 * done
    assert sum(row.type == "condition" for row in run.walk) == done
    if n:
        noun = "subject" if n == 1 else "subjects"
        assert f"{done} of {n} {noun} done" in str(run)
        assert f"{done} of {n} items began a branch" in " ".join(row.text for row in run.walk)


def test_c6_ran_not_taken_not_reached_and_failed_are_told_apart():
    def load(scope):
        scope.update(scope.args["item"])
        if scope["name"] == "broken":
            raise OSError("no route")

    each = (
        flow_chart("subject", load, id="load")
        .add_decider("Age", lambda s: "new", id="age")
        .branch("old", lambda s: None)
        .branch("new", lambda s: None)
        .end()
        .build()
    )
    chart = (
        flow_chart("c", lambda s: None, id="start")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: [{"name": "fine"}, {"name": "broken"}, {"name": "late"}],
            branch=each,
            max_branches=2,
            into="out",
        )
        .add_function("Break", lambda s: 1 / 0, id="break")
        .add_function("Never", lambda s: None, id="never")
        .build()
    )
    with pytest.raises(ZeroDivisionError) as caught:
        chart.run_sync()
    run = caught.value.run
    flow = run.walk.view().sections[0].parts[0]
    states = {line.key: line.state for line in flow.lines}
    assert states["start"] == states["each"] == states["each/load"] == "ran"
    assert states["each/old"] == "not_taken"
    assert states["each/new"] == "ran"
    assert states["break"] == "failed"
    assert states["never"] == "not_reached"
    assert [s.status for s in run.slots("each")] == ["ok", "failed", "not_reached"]
    assert "never" not in {row.stage_id for row in run.walk}


def test_c7_chained_fan_outs_over_nothing_complete_and_collect_sees_an_empty_list():
    each = flow_chart("b", lambda s: 1, id="b").build()
    seen = []
    chart = (
        flow_chart("c", lambda s: None, id="s")
        .add_parallel_for_each(
            "A", id="a", items=lambda s: [], branch=each, max_branches=5, into="first"
        )
        .add_parallel_for_each(
            "B", id="b2", items=lambda s: s["first"], branch=each, max_branches=5, into="second"
        )
        .add_function("Collect", lambda s: seen.append((s["first"], s["second"])), id="collect")
        .build()
    )
    run = chart.run_sync()
    assert run.status == "ok"
    assert [list(slots) for slots in seen[0]] == [[], []]
    assert [counts.items for counts in run.fan_outs] == [0, 0]


def test_c8_one_call_shows_control_flow_and_another_one_subjects_path_with_its_values():
    run = triage(rows_of(20)).run_sync()
    control = run.walk.project(100)
    assert control.projection == "control-flow"
    assert not any(row.type == "step" for row in control.rows)
    path = run.walk.of("host-9")
    assert [row.text for row in path if row.type != "step"] == [
        "Entered Each [9]",
        "Ran subject",
        "Ran Age",
        condition_words(run.decisions[9].decision),
        "Ran old",
        "Left Each [9]: ok",
    ]
    assert len(path) < 20
    assert len(run.walk) > 200


def test_h4_running_a_defining_cell_again_counts_the_last_definition_and_doubles_nothing():
    for threshold, old in ((7, 2), (7, 2), (3, 6)):
        chart = triage(rows_of(10), rule=threshold)
        run = chart.run_sync()
        assert run.fan_outs[0].by_branch.get("old") == old
        assert len(chart.stages) == 3
        assert len(run.rule_sets()) == 1
        assert len(run.rule_sets()[0].rules) == 1
        assert run.decisions[0].decision.conditions[0].threshold == threshold
