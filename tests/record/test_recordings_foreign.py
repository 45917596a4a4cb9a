"""Recordings made with the published engine: what of them is read, and what is said to be missing.

The files in ``foreign/`` were written by ``foreign/make.mjs``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import runbook_nb as rb
from runbook_nb.record.redact import Redactor
from runbook_nb.record.shapes import replayed

sys.path.insert(0, str(Path(__file__).parent))

from recorded_charts import CLUSTERS, backup_triage

FOREIGN = Path(__file__).with_name("foreign")
NAMES = sorted(path.stem for path in FOREIGN.glob("*.json"))


@pytest.fixture(scope="module")
def read():
    """Read one of the files, once."""
    kept = {}

    def read(name):
        if name not in kept:
            kept[name] = rb.load_recording(FOREIGN / f"{name}.json")
        return kept[name]

    return read


def raw(name):
    return json.loads((FOREIGN / f"{name}.json").read_text(encoding="utf-8"))


def told(run, *types):
    """The rows of the given types, as execution and text."""
    return [(row.runtime_stage_id, row.text) for row in run.walk if row.type in types]


def html(shown):
    data, _ = shown._repr_mimebundle_()
    return data["text/html"]


def executed(tree):
    """Every executed stage of a tree, its charts left out, by hand."""
    todo, found = [tree], []
    while todo:
        node = todo.pop()
        found.append(node)
        todo += [node[key] for key in ("next",) if key in node]
        todo += reversed(node.get("children", []))
    return found


def all_executed(snapshot):
    found = executed(snapshot["executionTree"])
    for key, result in snapshot.get("subflowResults", {}).items():
        if "#" in key:
            found += executed(result["treeContext"]["stageContexts"])
    return found


# -- every file --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_executed_stage_has_one_row_and_one_step(read, name):
    run, nodes = read(name), all_executed(raw(name)["snapshot"])
    assert run.steps_executed == len(nodes)
    assert sorted(run.executions.values()) == sorted(n["runtimeStageId"] for n in nodes)
    rows = [row.runtime_stage_id for row in run.walk if row.type == "stage"]
    assert len(rows) == len(set(rows))
    generated = {n["id"] for n in nodes if n["id"].rpartition("~")[2].isdecimal()}
    assert len(rows) == len(nodes) - len(generated)


@pytest.mark.parametrize("name", NAMES)
def test_the_log_leads_to_the_state_of_the_file(read, name):
    run, snapshot = read(name), raw(name)["snapshot"]
    root = run.log.root
    state, _ = replayed(run.log, root.codes, root.values, "", run.raw_initial)
    expected = {key: value for key, value in snapshot["sharedState"].items() if key != "runs"}
    assert state == expected
    assert run.state == snapshot["sharedState"]


@pytest.mark.parametrize("name", NAMES)
def test_the_file_comes_back_without_loss(read, name):
    document = raw(name)
    assert read(name).to_dict() == document
    assert read(name).recording().to_dict() == document
    again = rb.load_recording(read(name).recording().to_json())
    assert again.walk == read(name).walk
    changed = read(name).to_dict()
    changed["snapshot"].clear()
    assert read(name).to_dict() == document


@pytest.mark.parametrize("name", NAMES)
def test_it_draws_and_shows_itself(read, name):
    run = read(name)
    assert "<svg" in run.walk.flowchart().svg
    assert "flowchart" in run.walk.flowchart().mermaid
    assert "<svg" in run.structure.flowchart().svg
    for shown in (run, run.walk, run.structure, run.recording()):
        assert html(shown)
        assert str(shown)
    assert str(run).startswith("Recording ")
    assert "recorded by" in html(run)


@pytest.mark.parametrize("name", NAMES)
def test_every_stage_that_ran_is_in_the_structure_and_drawn_as_run(read, name):
    run = read(name)
    for code in run.log.codes:
        if code.kind == "stage":
            assert any(node.id == code.stage.id for node in run.structure.nodes), code.stage
    pairs = {(edge.source, edge.target) for edge in run.structure.edges}
    keys = {node.key for node in run.structure.nodes}
    assert all(source in keys and target in keys for source, target in pairs)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_file_gives_the_same_views(name):
    one, two = (rb.load_recording(FOREIGN / f"{name}.json") for _ in range(2))
    assert list(one.walk) == list(two.walk)
    assert str(one) == str(two)
    assert one.structure.to_dict() == two.structure.to_dict()


def test_every_view_of_a_run_is_there(read):
    run = read("triage")
    assert isinstance(run, rb.Run)
    assert isinstance(run.walk, rb.Walk)
    assert isinstance(run.structure, rb.Structure)
    assert run.source == "footprintjs"
    assert run.name == "Inventory"
    assert len(run.commits) == 3
    assert run.commits[-1].values["report"] == {"stale_after_days": 7, "subjects_total": 3}
    assert [counts.items for counts in run.fan_outs] == [3]
    assert len(run.walk.to_frame()) == len(run.walk) == 53
    assert run.checkpoint is None or run.status == "paused"
    assert run.redactor.active is Redactor(None).active


# -- the worked example, run here and there ------------------------------------------------------


def ours():
    return backup_triage().run_sync()


@pytest.mark.parametrize("name", ["triage", "triage_evidence"])
def test_the_triage_walks_alike_here_and_there(read, name):
    theirs, mine = read(name), ours()
    assert theirs.steps_executed == mine.steps_executed == 15

    def stages(run):
        return [
            (row.type, row.depth, row.stage, row.stage_id, row.runtime_stage_id, row.subflow)
            for row in run.walk
            if row.type != "step"
        ]

    assert stages(theirs) == stages(mine)
    for index in range(3):
        assert stages_of(theirs, index) == stages_of(mine, index)

    def decisions(run):
        routes = [
            (event.code.path.branch if event.code.path else event.code.key)
            for fan, _, _ in run.walk.branches()
            for _, shape in fan.begun()
            for event in run.log.events(shape.codes)
            if event.code.kind in ("decision", "choice")
        ]
        return routes[:3]

    assert decisions(theirs) == decisions(mine) == ["protected", "unprotected", "declined"]
    for key in ("verdicts", "coverage", "report"):
        assert theirs.state[key] == mine.state[key]


def stages_of(run, index):
    return [row.stage for row in run.walk.of(index=index) if row.type == "stage"]


def test_the_steps_of_the_triage_are_the_same_steps(read):
    def steps(run, index):
        return [
            (row.runtime_stage_id, row.text)
            for row in run.walk.of(index=index)
            if row.type == "step"
        ]

    mine, theirs = ours(), read("triage")
    for index in range(3):
        # There a rule that matched keeps the reads of all its keys; a third key is never read.
        assert steps(theirs, index) == steps(mine, index)


def test_evidence_that_was_kept_gives_the_same_decisions(read):
    theirs, mine = read("triage_evidence").decisions, ours().decisions
    assert [d.decision.branch for d in theirs] == [d.decision.branch for d in mine]
    assert [d.runtime_stage_id for d in theirs] == [d.runtime_stage_id for d in mine]
    for there, here in zip(theirs, mine, strict=True):
        told_there = [c.text for c in there.decision.conditions]
        assert told_there == [c.text for c in here.decision.conditions]
        assert there.decision.actuals == here.decision.actuals
        assert there.decision.label == here.decision.label


def test_evidence_that_was_told_in_words_only_is_no_evidence(read):
    run = read("triage")
    assert run.decisions == []
    assert told(run, "condition")[1] == (
        "per-subject~1/posture#1",
        "Chose unprotected, as told: It evaluated Rule 1 "
        '"older than the 7-day threshold": age_days 30 gt 7 ✓, and chose '
        "per-subject~1/unprotected.",
    )
    assert "The evidence of decisions is carried in words only." in run.not_carried


def test_the_slots_of_a_fan_out_are_there(read):
    slots = read("triage").slots("per-subject")
    assert [slot.status for slot in slots] == ["ok"] * 3
    assert [slot.item for slot in slots] == CLUSTERS
    assert [slot.value["verdict"] for slot in slots] == ["protected", "unprotected", "declined"]
    assert [slot.branch for slot in slots] == ["protected", "unprotected", "declined"]


# -- kind by kind --------------------------------------------------------------------------------


def test_a_linear_run_reads_writes_merges_deletes_and_emits(read):
    run = read("linear")
    assert told(run, "step", "emit")[4:] == [
        ("work#1", "Read n"),
        ("work#1", "Wrote n"),
        ("work#1", "Read person"),
        ("work#1", "Merged into person"),
        ("work#1", "Read tags"),
        ("work#1", "Wrote tags"),
        ("work#1", "Deleted gone"),
        ("work#1", "Read same"),
        ("work#1", "Deleted same"),
        ("work#1", "Emitted log.debug.note: {key, value, level}"),
        ("work#1", "Emitted metric.latency: {name, value}"),
        ("work#1", "Read n"),
        ("work#1", "Emitted work.done: {n}"),
        ("end#2", "Read n"),
    ]
    node = run.structure.node("begin")
    assert (node.description, node.tags) == ("Write down the input", ("first",))
    assert run.commits[1].deleted == ("gone",)
    assert run.status == "ok"
    assert run.result is None
    assert "The run's input and what its last stage returned are not carried." in run.not_carried


def test_the_delta_encoding_leads_to_the_same_run(read):
    assert list(read("linear_delta").walk) == list(read("linear").walk)
    assert read("linear_delta").commits[1].values == read("linear").commits[1].values


def test_without_narrative_and_reads_only_changes_are_told(read):
    run = read("bare")
    assert told(run, "step")[-4:] == [
        ("work#1", "Wrote n"),
        ("work#1", "Merged into person"),
        ("work#1", "Wrote tags"),
        ("work#1", "Deleted gone"),
    ]
    assert not any("Read" in row.text for row in run.walk)
    assert any(note.startswith("No narrative was kept") for note in run.not_carried)


def test_a_plain_decider_names_its_branch(read):
    run = read("decider")
    assert told(run, "condition") == [
        ("route#1", "Chose fast, as told: It picks a way and chose Fast.")
    ]
    assert [row.stage for row in run.walk if row.type == "stage"] == [
        "Score",
        "Route",
        "Fast",
        "After",
    ]


def test_the_hidden_copy_of_a_default_is_the_branch_it_is_a_copy_of(read):
    run = read("decider_default")
    assert run.executions["slow#2"] == "default#2"
    assert run.structure.node("default") is None
    chart = run.walk.flowchart().mermaid
    assert "slow" in chart


def test_kept_evidence_tells_rules_conditions_and_values(read):
    (made,) = read("decider_evidence").decisions
    assert made.decision.branch == "fast"
    assert made.decision.rule_index == 1
    assert [(c.key, c.op, c.threshold, c.actual, c.result) for c in made.decision.conditions] == [
        ("score", "gt", 700, 750, True),
        ("tier", "in", ["gold"], "gold", True),
    ]
    evidence = made.decision.to_dict()["evidence"]["rules"]
    assert evidence[0]["type"] == "function"
    assert evidence[0]["inputs"] == [{"key": "tier", "valueSummary": '"gold"', "redacted": False}]
    assert len(evidence) == 2  # the rules behind the deciding one were never recorded


def test_a_decider_that_named_no_branch_failed(read):
    run = read("decider_lost")
    assert run.status == "failed"
    assert run.error["message"].startswith("Scope-based decider 'Route' returned branch ID")
    assert run.ended_at["runtime_stage_id"] == "route#1"
    assert told(run, "error")[0][0] == "route#1"


def test_selections_with_without_evidence_and_of_nothing(read):
    assert told(read("selector"), "selector", "fork") == [
        (
            "pick#0",
            "selected cpu, mem: cpu 90 > 80; mem 95 > 80 (tried: cpu 90 > 80; mem 95 > 80)",
        ),
        ("pick#0", "Forked into cpu, mem"),
    ]
    assert told(read("selector_named"), "selector", "fork") == [
        ("pick#0", "Selected net, cpu without evidence"),
        ("pick#0", "Forked into cpu, net"),
    ]
    assert told(read("selector_none"), "selector", "fork") == [
        ("pick#0", "Selected nothing without evidence")
    ]


def test_the_children_of_a_fork_write_into_views_of_their_own(read):
    run = read("fork")
    assert run.structure.node("base").kind == "fork"
    assert told(run, "fork") == [("base#0", "Forked into disk, net, dns")]
    assert told(run, "error") == [("dns#0", "Failed: Error: no answer")]
    assert run.status == "ok"  # the engine goes on without a child that failed
    assert [c.stage_id for c in run.commits] == ["base", "join"]
    fan = next(fan for fan, _, _ in run.walk.tracks())
    assert [fan.status(i) for i in range(3)] == ["ok", "ok", "failed"]
    assert run.state["runs"] == {"disk": {"free": 10}, "net": {"rtt": 42}, "dns": {"tried": True}}


def test_a_fan_out_tells_what_failed_and_what_it_left_out(read):
    run = read("fan_out")
    slots = run.slots("per-subject")
    assert [slot.status for slot in slots] == ["ok", "failed", "ok", "not_reached"]
    assert slots[1].reason == "Error: cannot load in stage 'Load'"
    assert slots[3].reason == "past the cap of 3"
    assert slots[3].item == "<not carried>"
    assert "The items of a fan-out that began no branch are not carried." in run.not_carried
    node = run.structure.node("per-subject")
    assert (node.detail["cap"], node.detail["into"]) == (3, "subject_results")
    assert node.detail["template"] == "per_item"
    inside = [n.key for n in run.structure.inside("per-subject")]
    assert inside[:2] == ["per-subject/load", "per-subject/posture"]


def test_a_fan_out_inside_another_and_one_over_nothing(read):
    run = read("fan_out_nested")
    assert run.walk.of(index=1, stage="per-site").steps_executed == 6
    assert "per-site~0/per-host~1/probe#0" in {row.runtime_stage_id for row in run.walk}
    assert run.structure.node("per-site/per-host/probe") is not None
    assert len(read("fan_out_empty").slots("per-subject")) == 0


def test_mounted_charts_are_entered_and_left(read):
    run = read("subflow")
    assert told(run, "subflow") == [
        ("sub#1", "Entered The sub"),
        ("sub/deep#3", "Entered Deep"),
        ("sub/deep#3", "Left Deep: ok"),
        ("sub#1", "Left The sub: ok"),
        ("late#7", "Entered Late one"),
        ("late#7", "Left Late one: ok"),
    ]
    assert ("sub/deep#3", "Received row") in told(run, "step")
    assert dict(run.executions) == {id: id for id in run.executions}
    late = run.structure.node("late")
    assert late.detail == {"lazy": True, "template": "per_run"}
    assert [n.id for n in run.structure.inside("late")] == ["in", "out"]


def test_loops_go_back_and_say_how_often(read):
    assert told(read("loop"), "loop") == [
        ("again#3", "Went back to body, pass 2"),
        ("again#6", "Went back to body, pass 3"),
    ]
    run = read("loop_break")
    assert [text for _, text in told(run, "loop")] == [
        "Went back to tick, pass 2",
        "Went back to tick, pass 3",
    ]
    assert told(run, "break") == [("tock#5", "Stopped here")]
    assert run.status == "ok"
    assert {row.stage for row in run.walk if row.type == "stage"} == {"Tick", "Tock"}


def test_pauses_and_answers_are_told_and_not_carried(read):
    run = read("pause")
    assert run.status == "paused"
    assert run.ended_at["stage"] == "Approval"
    assert told(run, "pause") == [("approval#1", "Paused: <not carried>")]
    assert "What a pause asked is not carried." in run.not_carried
    for name in ("pause_resumed", "interrupted"):
        run = read(name)
        assert run.status == "ok"
        assert told(run, "resume")[0][1] == "Went on with the answer <not carried>"
        assert "The answers a run went on with are not carried." in run.not_carried


def test_a_failing_run_tells_its_retries_and_its_error(read):
    run = read("failing")
    assert run.status == "failed"
    assert run.error == {"type": "TypeError", "message": "it broke"}
    assert run.ended_at == {
        "stage": "Breaks",
        "stage_id": "breaks",
        "runtime_stage_id": "breaks#2",
    }
    assert told(run, "retry") == [
        ("flaky#1", "Attempt 1 of 3 failed, Error: attempt 1 broke; tried again"),
        ("flaky#1", "Attempt 2 of 3 failed, Error: attempt 2 broke; tried again"),
    ]
    assert run.commits[-1].status == "failed"
    assert run.commits[-1].values == {"half": "written"}


def test_what_was_hidden_stays_hidden(read):
    run = read("redacted")
    assert run.state["apiKey"] == "REDACTED"
    assert run.state["patient"]["ssn"] == "REDACTED"
    shown = json.dumps([run.to_dict(), str(run)]) + html(run)
    assert "sk-1234567890" not in shown
    assert "123-45-6789" not in shown
    assert "Some values were hidden when the run was recorded." in run.not_carried


def test_streams_are_said_to_be_missing(read):
    run = read("streaming")
    assert run.structure.node("answer").kind == "streaming"
    assert run.structure.node("answer").detail == {"stream": "tokens"}
    assert "What streaming stages streamed is not carried." in run.not_carried


def test_every_kind_of_stage_is_read(read):
    kinds = {node.kind for node in read("every_kind").structure.nodes}
    assert kinds == {
        "stage",
        "streaming",
        "fork",
        "branch",
        "subchart",
        "fan_out",
        "selector",
        "decider",
    }
