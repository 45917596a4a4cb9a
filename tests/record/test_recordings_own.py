"""Our own recordings: the published shape, made truthfully, and read back exactly."""

from __future__ import annotations

import copy
import enum
import json
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb._deep import read_json
from runbook_nb._json import to_wire
from runbook_nb.record.recording import OWN_ID
from runbook_nb.record.secrets import PLACEHOLDER

sys.path.insert(0, str(Path(__file__).parent))

from recorded_charts import (
    asking,
    count_up,
    everything,
    failing,
    inner,
    run_of,
    stopping,
    triage,
)


def resumed():
    chart = asking()
    paused = chart.run_sync()
    return chart.resume_sync(paused.checkpoint, True)


RUNS = {
    "triage": lambda: run_of(triage(), args={"who": "ops"}),
    "triage_hidden": lambda: run_of(triage(), redact={"keys": ["token"]}),
    "triage_hidden_ages": lambda: run_of(triage(), redact={"paths": ["rows[*].age", "age"]}),
    "everything": lambda: run_of(everything()),
    "everything_hidden": lambda: run_of(everything(), redact={"keys": ["v", "res"]}),
    "stopping": lambda: run_of(stopping()),
    "paused": lambda: run_of(asking()),
    "resumed": resumed,
    "failing": lambda: run_of(failing()),
    "with_an_output": lambda: run_of(
        rb.flow_chart(
            "o", lambda s: s.set("n", 3), id="a", output=lambda state: {"double": state["n"] * 2}
        ).build()
    ),
    "begun_with": lambda: run_of(stopping(), state={"before": [1, {"a": None}]}),
}


@pytest.fixture(scope="module")
def made():
    kept = {}

    def made(name):
        if name not in kept:
            run = RUNS[name]()
            kept[name] = (run, run.recording())
        return kept[name]

    return made


def without_own(recording):
    document = recording.to_dict()
    rows = document["snapshot"]["recorders"]
    document["snapshot"] = {
        **document["snapshot"],
        "recorders": [row for row in rows if row["id"] != OWN_ID],
    }
    return document


class Odd(enum.Enum):
    RED = "red"


def own_row(recording):
    (row,) = [row for row in recording.snapshot["recorders"] if row["id"] == OWN_ID]
    return row["data"]


def open_part(commit, hidden):
    """Give a commit without the hidden keys, and without what it says of them.

    Whether a hidden value was written over an equal one cannot be known from a copy, nor what
    was hidden inside slots.
    """
    facts = commit.to_dict()
    for name in ("overwrite", "updates"):
        facts[name] = {k: v for k, v in facts[name].items() if k not in hidden}
    facts["trace"] = [row for row in facts["trace"] if row["path"] not in hidden]
    del facts["redactedPaths"]
    return facts


def same_run(copy, run, hidden=()):
    """Every view of a copy is that of the run."""
    assert copy.walk == run.walk
    assert copy.structure.to_dict() == run.structure.to_dict()
    assert (copy.name, copy.status) == (run.name, run.status)
    assert copy.state == run.state
    assert copy.args == run.args
    assert copy.result == run.result
    assert copy.output == run.output
    assert (copy.error, copy.pause, copy.ended_at) == (run.error, run.pause, run.ended_at)
    if hidden:
        whole = [[open_part(c, hidden) for c in one.commits.whole()] for one in (copy, run)]
        assert whole[0] == whole[1]
    else:
        assert list(copy.commits.whole()) == list(run.commits.whole())
    theirs = [made.decision.to_dict() for made in copy.decisions]
    assert theirs == [made.decision.to_dict() for made in run.decisions]
    assert [d[1:] for d in copy.decisions] == [d[1:] for d in run.decisions]
    assert copy.walk.flowchart().svg == run.walk.flowchart().svg
    assert str(copy.walk) == str(run.walk)
    assert copy.fan_outs == run.fan_outs


@pytest.mark.parametrize("name", RUNS)
def test_what_was_recorded_is_read_back_exactly(made, name):
    run, recording = made(name)
    read = rb.load_recording(recording.to_json())
    same_run(read, run)
    assert read.source == "runbook_nb"
    assert read.not_carried == ()
    assert read.to_dict() == recording.to_dict()
    assert str(read).startswith("Recording ")


@pytest.mark.parametrize("name", RUNS)
def test_a_copy_of_a_copy_is_the_copy(made, name):
    _, recording = made(name)
    read = rb.load_recording(recording)
    assert read.recording().to_dict() == recording.to_dict()
    assert rb.Recording.of(read).snapshot["executionTree"] == recording.snapshot["executionTree"]


@pytest.mark.parametrize("name", RUNS)
def test_what_is_written_is_strict_json_and_the_same_again(made, name):
    run, recording = made(name)
    text = recording.to_json()
    assert json.loads(text) == read_json(text) == recording.to_dict()
    assert run.recording().to_json() == text
    assert RUNS[name]().recording().to_json() == text


def test_a_log_that_cannot_be_written_costs_the_log_alone():
    chart = (
        rb.flow_chart("c", lambda s: s.set("odd", frozenset({Odd("red"), "red"})), id="a")
        .add_function("B", lambda s: s.set("n", 1), id="b")
        .build()
    )
    recording = chart.run_sync().recording()
    own = own_row(recording)
    assert "log" not in own
    assert "written alike" in own["missing"]
    read = rb.load_recording(recording.to_json())
    assert (read.source, read.status, read.steps_executed) == ("runbook_nb", "ok", 2)
    assert read.state["n"] == 1
    assert read.not_carried[0].startswith("The record itself is not carried: ")


# -- the published shape -------------------------------------------------------------------------


def nodes_of(tree):
    todo, found = [tree], []
    while todo:
        node = todo.pop()
        found.append(node)
        todo += [node["next"]] if "next" in node else []
        todo += reversed(node.get("children", []))
    return found


def all_nodes(snapshot):
    found = nodes_of(snapshot["executionTree"])
    for result in snapshot.get("subflowResults", {}).values():
        tree = result["treeContext"].get("stageContexts")
        found += [] if tree is None else nodes_of(tree)
    return found


@pytest.mark.parametrize("name", RUNS)
def test_every_executed_step_is_one_node_of_the_tree(made, name):
    run, recording = made(name)
    nodes = all_nodes(recording.snapshot)
    ids = [node["runtimeStageId"] for node in nodes]
    assert len(ids) == run.steps_executed == len(set(ids))
    rows = [row.runtime_stage_id for row in run.walk if row.type == "stage"]
    assert set(rows) <= set(ids)
    for node in nodes:
        assert node["id"] == node["runtimeStageId"].rpartition("#")[0]
        assert isinstance(node["name"], str)
        assert all(name in node for name in ("logs", "errors", "metrics", "evals"))


@pytest.mark.parametrize("name", RUNS)
def test_every_step_has_a_commit_or_is_the_child_of_a_fork(made, name):
    _, recording = made(name)
    snapshot = recording.snapshot
    logs = [snapshot["commitLog"]]
    logs += [r["treeContext"]["history"] for r in snapshot.get("subflowResults", {}).values()]
    commits = {commit["runtimeStageId"] for log in logs for commit in log}
    for node in all_nodes(snapshot):
        if node["runtimeStageId"] not in commits:
            generated = node["id"].rpartition("~")[2].isdecimal()
            assert generated or node["id"] in ("x", "y", "z", "p")
    for log in logs:
        assert [commit["idx"] for commit in log] == list(range(len(log)))


def folded(commits, base):
    """Fold commits as the published engine does, `set` and `delete` alone."""
    state = dict(base)
    for commit in commits:
        for row in commit["trace"]:
            key = row["path"]
            if row["verb"] == "delete":
                state.pop(key, None)
            elif row["verb"] == "merge":
                state[key] = {**state.get(key, {}), **commit["updates"][key]}
            else:
                assert row["verb"] == "set"
                state[key] = commit["overwrite"][key]
            assert isinstance(row["readKeys"], list)
    return state


@pytest.mark.parametrize("name", RUNS)
def test_the_commits_lead_to_the_state(made, name):
    _, recording = made(name)
    snapshot = recording.snapshot
    base = snapshot.get("initialState", {})
    assert folded(snapshot["commitLog"], base) == snapshot["sharedState"]
    for result in snapshot.get("subflowResults", {}).values():
        context = result["treeContext"]
        reached = folded(context["history"], context["initialState"])
        assert reached == context["globalContext"]


@pytest.mark.parametrize("name", RUNS)
def test_the_narrative_tells_every_row_under_published_names(made, name):
    run, recording = made(name)
    (told,) = [r["data"] for r in recording.snapshot["recorders"] if r["name"] == "Narrative"]
    assert [row["text"] for row in told] == [row.text for row in run.walk]
    assert [row.get("runtimeStageId") for row in told] == [row.runtime_stage_id for row in run.walk]
    for row in told:
        assert {"type", "text", "depth", "stageId"} <= set(row)
        if row["type"] == "subflow":
            assert row["direction"] in ("entry", "exit")
        if row.get("subflowId") and row["type"] == "stage":
            assert row["stageName"].startswith(f"{row['subflowId']}/")


def test_the_parts_stand_in_their_published_order(made):
    _, recording = made("triage")
    assert list(recording.to_dict()) == ["snapshot", "events", "structure"]
    assert list(recording.snapshot) == [
        "sharedState",
        "executionTree",
        "initialState",
        "commitLog",
        "commitValues",
        "writeProvenance",
        "subflowResults",
        "recorders",
    ]
    assert recording.events == []


def test_what_a_mount_did_in_each_pass_of_a_loop_is_kept(made):
    run, recording = made("everything")
    results = recording.snapshot["subflowResults"]
    passes = [row.runtime_stage_id for row in run.walk if row.type == "subflow"]
    late = [name for name in dict.fromkeys(passes) if name.startswith("late#")]
    assert len(late) == 3
    assert {key for key in results if key.startswith("late")} == {"late", *late[:2]}
    for key in ("late", *late[:2]):
        assert results[key]["subflowId"] == "late"


def test_a_fan_out_says_what_it_left_out(made):
    _, recording = made("triage")
    node = recording.snapshot["executionTree"]["next"]
    assert node["logs"]["parallelForEach"] == {
        "items": 4,
        "branches": 3,
        "maxBranches": 3,
        "truncated": True,
        "into": "found",
    }
    assert [child["subflowId"] for child in node["children"]] == ["each~0", "each~1", "each~2"]
    assert node["children"][2]["errors"]["subflowError"].startswith("ZeroDivisionError")
    assert recording.snapshot["subflowResults"]["each~2"]["status"] == "failed"


def test_a_loop_and_a_choice_are_told_in_the_tree(made):
    _, recording = made("everything")
    nodes = {n["runtimeStageId"]: n for n in all_nodes(recording.snapshot)}
    again = [n for n in nodes.values() if n["id"] == "no"]
    assert [n["flowMessages"][0]["iteration"] for n in again] == [1, 2]
    assert {n["logs"]["dynamicNextTarget"] for n in again} == {"late"}
    chosen = [n["flowMessages"][0] for n in nodes.values() if n["isDecider"]]
    assert [m["rationale"] for m in chosen] == [
        "returned branchId: no",
        "returned branchId: no",
        "returned branchId: yes",
    ]


def test_the_child_of_a_fork_has_what_it_wrote_in_the_tree(made):
    _, recording = made("everything")
    (child,) = [n for n in all_nodes(recording.snapshot) if n["id"] == "x"]
    assert child["stageWrites"] == {"k": 1, "v": 9}
    (first,) = [n for n in all_nodes(recording.snapshot) if n["id"] == "a"]
    assert first["stageWrites"]["v"] == {"__writeSummary": True, "type": "number", "preview": "4"}


# -- hidden values -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["triage_hidden", "triage_hidden_ages"])
def test_nothing_hidden_is_in_a_recording_nor_in_a_copy_of_it(made, name):
    run, recording = made(name)
    text = recording.to_json()
    read = rb.load_recording(text)
    shown = text + str(read) + str(list(read.walk)) + read._repr_mimebundle_()[0]["text/html"]
    hidden = ["s3cr3t"] if name == "triage_hidden" else ['"age": 30', "age 30"]
    for word in hidden:
        assert word not in shown
    assert PLACEHOLDER in text
    assert "initialState" not in recording.snapshot
    assert [str(d.decision) for d in read.decisions] == [str(d.decision) for d in run.decisions]


# -- read as anybody's ---------------------------------------------------------------------------


UNTOLD = ("condition", "pause", "resume", "selector", "retry", "emit", "break", "error")


@pytest.mark.parametrize("name", [n for n in RUNS if "hidden" not in n])
def test_without_our_own_record_the_published_parts_tell_the_same_steps(made, name):
    run, recording = made(name)
    read = rb.load_recording(without_own(recording))
    assert read.source == "footprintjs"

    def rows(walk):
        return [
            (row.type, row.depth, row.runtime_stage_id, row.stage_id, row.subflow, row.text)
            for row in walk
            if row.type not in UNTOLD and not row.text.startswith("Streamed")
        ]

    assert rows(read.walk) == rows(run.walk)
    assert read.status == run.status
    assert read.executions == {name: name for name in read.executions}
    known = {(n.key, n.kind) for n in read.structure.nodes}
    assert known == {(n.key, n.kind) for n in run.structure.nodes}


# -- long runs -----------------------------------------------------------------------------------


def test_a_chain_of_two_thousand_five_hundred_stages_is_written_filed_and_read():
    builder = rb.flow_chart("long", lambda s: s.set("n", 0), id="s0")
    for n in range(1, 2500):
        builder = builder.add_function(f"S{n}", lambda s: s.set("n", s["n"] + 1), id=f"s{n}")
    run = builder.build().run_sync()
    recording = run.recording()
    text = recording.to_json()
    read = rb.load_recording(text)
    assert read.steps_executed == 2500
    assert read.walk == run.walk
    assert read.state == {"n": 2499}
    assert rb.load_recording(without_own(recording)).walk == run.walk
    put = rb.recording_put_input(recording.to_dict())
    assert put["data"] == text
    box = rb.Toolbox([])
    filed = box.artifacts.put_sync(put)
    again = rb.load_recording(box.artifacts.get_sync(filed.meta.ref).data)
    assert again.steps_executed == 2500


def test_a_loop_of_a_thousand_passes_is_written_and_read():
    chart = (
        rb.flow_chart("spin", count_up, id="tick")
        .add_decider("More", lambda s: "yes" if s["n"] < 900 else "no", id="more")
        .branch("yes", lambda s: None, loop_to="tick")
        .branch("no", lambda s: None)
        .end()
        .build()
    )
    run = chart.run_sync()
    read = rb.load_recording(run.recording().to_json())
    assert read.walk == run.walk
    assert read.steps_executed == 2700
    assert rb.load_recording(without_own(run.recording())).steps_executed == 2700


def test_charts_mounted_deep_inside_one_another_are_written():
    chart = inner()
    for n in range(48):
        chart = (
            rb.flow_chart(f"c{n}", lambda s: s.set("n", 1), id="s")
            .add_subchart("M", chart, id="m")
            .build()
        )
    run = chart.run_sync()
    read = rb.load_recording(run.recording().to_json())
    assert read.walk == run.walk
    assert len(run.recording().snapshot["subflowResults"]) == 48


# -- any chart -----------------------------------------------------------------------------------


class Charts:
    """Makes charts by drawing their stages."""

    def __init__(self, draw):
        self.draw = draw
        self.made = 0

    def name(self):
        self.made += 1
        return f"s{self.made}"

    def stage(self):
        key = self.draw(st.sampled_from(["a", "b", "c"]))
        what = self.draw(st.sampled_from(["set", "append", "update", "delete", "read", "emit"]))
        value = self.draw(st.sampled_from([1, "x", None, [1], {"k": [2]}]))

        def stage(scope):
            if what == "set":
                scope[key] = value
            elif what == "append":
                scope.append(f"{key}s", value)
            elif what == "update":
                scope.update({key: value, "m": 1})
            elif what == "delete" and key in scope:
                scope.delete(key)
            elif what == "read":
                scope.get(key)
                scope["r"] = scope.get("r", 0) + 1
            else:
                scope.emit("seen", {"key": key})

        return stage

    def chart(self, depth):
        builder = rb.flow_chart(self.name(), self.stage(), id=self.name())
        for _ in range(self.draw(st.integers(0, 3))):
            builder = self.add(builder, depth)
        return builder.build()

    def add(self, builder, depth):
        kinds = ["stage", "decider", "fork", "selector", "mount", "each"]
        kind = self.draw(st.sampled_from(kinds if depth else kinds[:1]))
        name = self.name()
        if kind == "stage":
            return builder.add_function(name, self.stage(), id=name)
        if kind == "mount":
            return builder.add_subchart(name, self.chart(depth - 1), id=name, inputs={"b": "r"})
        if kind == "each":
            items = self.draw(st.lists(st.integers(0, 3), max_size=3))
            return builder.add_parallel_for_each(
                name,
                id=name,
                items=lambda s: items,
                branch=self.chart(depth - 1),
                max_branches=2,
                into=f"{name}_out",
            )
        branches = [self.name() for _ in range(2)]
        if kind == "decider":
            adding = builder.add_decider(name, lambda s: branches[0], id=name)
        elif kind == "fork":
            adding = builder.add_fork(name, id=name)
        else:
            adding = builder.add_selector(name, lambda s: branches[1:], id=name)
        adding = adding.branch(branches[0], self.stage())
        return adding.branch(branches[1], self.chart(depth - 1)).end()


@st.composite
def charts(draw):
    return Charts(draw).chart(2)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking charts takes minutes
)
@given(charts(), st.booleans())
def test_any_run_is_read_back_exactly_and_its_published_parts_say_the_same(chart, hide):
    run = run_of(chart, redact={"keys": ["b"]} if hide else None)
    recording = run.recording()
    same_run(rb.load_recording(recording.to_json()), run, ("b",) if hide else ())
    read = rb.load_recording(copy.deepcopy(without_own(recording)))
    assert read.steps_executed == run.steps_executed
    assert [r.runtime_stage_id for r in read.walk if r.type == "stage"] == [
        r.runtime_stage_id for r in run.walk if r.type == "stage"
    ]
    assert read.state == to_wire(run.state)
