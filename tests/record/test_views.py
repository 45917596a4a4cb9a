"""Runs, slots, counts, commits, recordings, checkpoints and kept records: what each says."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError

import pytest

import runbook_nb as rb
from runbook_nb._json import encode
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.scope import interrupt
from runbook_nb.errors import CheckpointError, DefinitionError, NoSuchFanOut
from runbook_nb.record.checkpoint import CHECKPOINT_FORMAT, structure_digest
from runbook_nb.record.kept import KeptRecords, inner_runs_of
from runbook_nb.record.published import published_structure
from runbook_nb.record.run import RUN_STATUSES
from runbook_nb.record.slots import Slot, error_words
from runbook_nb.record.structure import Structure

RULES = rb.RuleSet(
    "age", "v1", [rb.Rule({"age": {"gt": 7}}, "old", label="too old")], default="new"
)


def work(scope):
    scope.update(scope.args["item"])
    if scope["age"] == 13:
        raise ValueError("unlucky")


def chart(ages=(3, 9, 13, 20), cap=3, last=lambda s: s.set("done", True)):
    each = (
        flow_chart("subject", work, id="load", description="Load it.")
        .add_decider("Age", id="age", rules=RULES)
        .branch("old", lambda s: s.set("verdict", "old"), description="needs work")
        .branch("new", lambda s: s.set("verdict", "new"))
        .end()
        .build()
    )
    return (
        flow_chart("c", lambda s: s.set("n", 1), id="start")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: [{"age": age} for age in ages],
            branch=each,
            max_branches=cap,
            into="out",
            subject="age",
        )
        .add_function("Last", last, id="last")
        .build()
    )


@pytest.fixture
def run():
    return chart().run_sync({"x": 1})


# -- runs --------------------------------------------------------------------------------------


def test_a_run_says_how_it_ended_and_gives_every_view(run):
    assert run.status == "ok"
    assert run.status in RUN_STATUSES
    assert (run.error, run.pause, run.ended_at, run.checkpoint) == (None, None, None, None)
    assert run.args == {"x": 1}
    assert run.state["done"] is True
    assert (run.name, run.steps_executed) == ("c", len({r.runtime_stage_id for r in run.walk}))
    assert run.summary() == f"ok, {run.steps_executed} steps"
    assert run.raw[0] == {"x": 1}


def test_views_cannot_change_the_record(run):
    with pytest.raises(TypeError):
        run.state["n"] = 5
    with pytest.raises(TypeError):
        run.args["x"] = 5
    with pytest.raises(FrozenInstanceError):
        run.slots("each")[0].status = "ok"
    with pytest.raises(AttributeError):
        run.commits[0].index = 5


def test_a_run_shows_where_it_ended():
    with pytest.raises(ZeroDivisionError) as caught:
        chart(last=lambda s: 1 / 0).run_sync()
    run = caught.value.run
    assert "ZeroDivisionError: division by zero" in str(run)
    assert "last" in repr(run)
    assert "No coverage is claimed" in str(run)


# -- slots -------------------------------------------------------------------------------------


def test_there_is_one_slot_per_item(run):
    slots = run.slots("each")
    assert [slot.to_dict() for slot in slots] == [
        {
            "index": 0,
            "item": {"age": 3},
            "status": "ok",
            "value": {"age": 3, "verdict": "new"},
            "sentence": "new by default of age v1: no rule fired",
            "branch": "new",
        },
        {
            "index": 1,
            "item": {"age": 9},
            "status": "ok",
            "value": {"age": 9, "verdict": "old"},
            "sentence": "old by rule 1 of age v1: age 9 > 7",
            "branch": "old",
        },
        {
            "index": 2,
            "item": {"age": 13},
            "status": "failed",
            "reason": "ValueError: unlucky in stage 'subject'",
        },
        {
            "index": 3,
            "item": {"age": 20},
            "status": "not_reached",
            "reason": "past the cap of 3",
        },
    ]


def test_slots_are_a_sequence(run):
    slots = run.slots("each")
    assert len(slots) == 4
    assert slots[-1] == slots[3]
    assert slots[1:3] == [slots[1], slots[2]]
    assert slots == list(slots)
    assert slots != [1]
    assert slots != "abcd"
    with pytest.raises(IndexError, match="no slot 9; the fan-out had 4 items"):
        slots[9]
    with pytest.raises(TypeError):
        hash(slots)
    assert repr(slots) == "<Slots of 'Each': 4 items, 2 ok, 1 failed, 1 not reached>"
    assert run.state["out"] == slots
    assert isinstance(slots[0], Slot)


def test_slots_of_a_fan_out_that_did_not_run_are_an_error(run):
    with pytest.raises(NoSuchFanOut, match="did you mean 'each'"):
        run.slots("eahc")
    assert issubclass(NoSuchFanOut, LookupError)


@pytest.mark.parametrize(
    ("described", "stage", "said"),
    [
        ({"type": "E", "message": "m"}, None, "E: m"),
        ({"type": "E", "message": ""}, "S", "E in stage 'S'"),
        ({"type": "E", "message": "a\nb\x1b"}, None, "E: a\\nb\\x1b"),
    ],
)
def test_an_error_in_one_line(described, stage, said):
    assert error_words(described, stage) == said


# -- counts ------------------------------------------------------------------------------------


def test_counts_of_a_fan_out(run):
    assert run.fan_outs[0].to_dict() == {
        "stage_id": "each",
        "stage_name": "Each",
        "items": 4,
        "ok": 2,
        "failed": 1,
        "not_reached": 1,
        "past_cap": 1,
        "decided": 2,
        "undecided": 0,
        "has_decider": True,
        "by_branch": {"new": 1, "old": 1},
    }


# -- recordings --------------------------------------------------------------------------------


def test_a_recording_has_the_published_keys_and_is_strict_json(run):
    data = run.recording().to_dict()
    assert list(data) == ["snapshot", "events", "structure"]
    assert data["events"] == []
    assert list(data["snapshot"]) == [
        "sharedState",
        "executionTree",
        "initialState",
        "commitLog",
        "commitValues",
        "writeProvenance",
        "subflowResults",
        "recorders",
    ]
    assert json.loads(encode(data)) == json.loads(json.dumps(data, allow_nan=False))
    results = data["snapshot"]["subflowResults"]
    assert list(results) == ["each~0", "each~1", "each~2"]
    assert results["each~1"]["treeContext"]["globalContext"] == {"age": 9, "verdict": "old"}
    assert [c["stageId"] for c in results["each~1"]["treeContext"]["history"]] == [
        "load",
        "age",
        "old",
    ]
    assert results["each~2"]["status"] == "failed"
    assert repr(run.recording()) == "<Recording c · 3 commits>"


def test_the_published_structure_nests_and_holds_the_branch_template(run):
    root = published_structure(run.structure)
    assert (root["name"], root["id"]) == ("c", "start")
    fork = root["next"]
    assert fork["isDynamicParallel"] is True
    assert fork["next"]["id"] == "last"
    template = fork["subflowStructure"]
    assert (template["id"], template["description"]) == ("load", "Load it.")
    decider = template["next"]
    assert (decider["type"], decider["branchIds"]) == ("decider", ["old", "new", "declined"])
    assert decider["children"][0]["description"] == "needs work"


def test_a_nested_template_is_published_once_inside_its_own_fan_out():
    outer = (
        flow_chart("o", lambda s: None, id="o")
        .add_parallel_for_each(
            "Outer", id="outer", items=lambda s: [1], branch=chart(), max_branches=1, into="x"
        )
        .build()
    )
    text = json.dumps(published_structure(outer.structure))
    assert text.count('"id": "age"') == 1
    inner = published_structure(outer.structure)["next"]["subflowStructure"]
    assert inner["next"]["subflowStructure"]["id"] == "load"


def test_a_structure_reads_back_from_its_written_form(run):
    written = json.loads(json.dumps(run.structure.to_dict()))
    assert Structure.from_dict(written).to_dict() == written
    structure = run.structure
    assert structure.node("each/age").kind == "decider"
    assert structure.node("nope") is None
    assert [n.branch for n in structure.branches_of("each/age")] == ["old", "new", "declined"]
    assert [n.key for n in structure.inside(None)] == ["start", "each", "last"]
    assert [n.key for n in structure.find("Age")] == ["each/age"]
    assert [e.target for e in structure.out_of("start")] == ["each"]


# -- checkpoints -------------------------------------------------------------------------------


def paused(expects=None, state=None):
    def ask(scope):
        scope["token"] = state if state is not None else "real-value"
        interrupt(scope, "restart?", expects)

    return (
        flow_chart("gate", ask, id="ask")
        .build()
        .run_sync({"host": "a"}, redact={"keys": ["token"]})
    )


def test_a_checkpoint_holds_real_values_and_where_it_paused():
    run = paused({"yes": True})
    # The stage will run again from its top, so what it wrote before it asked is not kept.
    assert run.state == {}
    checkpoint = json.loads(json.dumps(run.checkpoint))
    record = checkpoint.pop("record")
    assert checkpoint == {
        "format": CHECKPOINT_FORMAT,
        "procedure": "gate",
        "structure": structure_digest(run.structure),
        "paused_at": {"stage": "gate", "stage_id": "ask", "runtime_stage_id": "ask#0"},
        "pause": {"reason": "restart?", "expects": {"yes": True}, "data": None},
        "args": {"host": "a"},
        "state": {},
        "steps_executed": 1,
        "fan_outs": [],
        "place": {
            "levels": [[0, None]],
            "kind": "ask",
            "answers": [],
            "loops": [{}],
            "question": {"reason": "restart?", "expects": {"yes": True}, "data": None},
            "pending": {},
        },
        "undeclared": [],
        "met": None,
        "taken_back": [["token", "real-value"]],
        "redact": {"keys": ["token"]},
    }
    assert "real-value" not in json.dumps(record)


def test_a_question_json_cannot_carry_fails_the_stage_and_is_named():
    with pytest.raises(CheckpointError, match="interrupt was given expects") as caught:
        paused({1, 2})
    assert caught.value.run.status == "failed"


def test_state_json_cannot_carry_is_named():
    run = paused(state=object())
    assert run.checkpoint["place"]["kind"] == "ask"  # what was taken back does not count
    chart = (
        rb.flow_chart("c", lambda s: s.set("door", object()), id="a")
        .add_function("Ask", lambda s: rb.interrupt(s, "go?"), id="ask")
        .build()
    )
    with pytest.raises(CheckpointError, match="door"):
        _ = chart.run_sync().checkpoint


def test_a_paused_run_shows_its_question():
    assert "restart?" in str(paused())
    assert "incomplete answer" in repr(paused())


# -- kept records ------------------------------------------------------------------------------


def test_records_are_kept_up_to_a_limit_the_least_recently_read_leaving_first(run):
    kept = KeptRecords(2)
    for call in ("a", "b"):
        kept.keep(run, tool="t", call_id=call, session_id="s")
    assert kept.get("a", "s")["toolCallId"] == "a"
    kept.keep(run, tool="t", call_id="c", session_id="s")
    assert kept.get("b", "s") is None
    assert (kept.call_ids("s"), len(kept), kept.dropped) == (["a", "c"], 2, 1)
    assert repr(kept) == "<KeptRecords · 2 records of at most 2>"


def test_a_record_is_served_to_its_own_session_and_the_later_one_stands(run):
    kept = KeptRecords()
    kept.keep(run, tool="t", call_id="a", session_id="s")
    assert kept.get("a", "other") is None
    with pytest.raises(ZeroDivisionError) as caught:
        chart(last=lambda s: 1 / 0).run_sync()
    kept.keep(caught.value.run, tool="t", call_id="a", session_id="s")
    record = kept.get("a", "s")
    assert (len(kept), record["outcome"], record["steps"]) == (1, "error", 3)
    assert set(record["recording"]) == {"snapshot", "structure"}
    assert record["narrative"]


@pytest.mark.parametrize(("status", "word"), [("paused", "paused"), ("absent", "error")])
def test_the_word_of_a_record_for_how_its_run_ended(run, status, word):
    run.status = status
    kept = KeptRecords()
    kept.keep(run, tool="t", call_id="a", session_id="s")
    assert kept.get("a", "s")["outcome"] == word


def test_a_record_that_cannot_be_made_says_why_and_fails_nothing(run, monkeypatch):
    def broken():
        raise ValueError("no disk")

    monkeypatch.setattr(run, "recording", broken)
    kept = KeptRecords()
    kept.keep(run, tool="t", call_id="a", session_id="s")
    record = kept.get("a", "s")
    assert (record["steps"], record["problem"]) == (0, "ValueError: no disk")
    assert "recording" not in record


def test_only_a_tool_that_keeps_records_has_them():
    with pytest.raises(DefinitionError, match="keep_record=True"):
        inner_runs_of(object())


# -- the words of rows -------------------------------------------------------------------------


def test_every_kind_of_row_says_what_happened():
    def stage(scope):
        scope.emit("note", {"a": 1})
        scope.emit("word", "x")
        scope.emit("bare")
        scope.stop("why")

    texts = [row.text for row in flow_chart("c\n", stage, id="a").build().run_sync().walk]
    assert texts == [
        "Ran c\\n",
        "Emitted note: {a}",
        "Emitted word: x",
        "Emitted bare: —",
        "Stopped here: why",
    ]
    stopped = flow_chart("c", lambda s: s.stop(), id="a").build().run_sync()
    assert stopped.walk[-1].text == "Stopped here"


def test_reads_and_writes_never_show_values(run):
    for row in run.walk:
        if row.type == "step":
            assert not any(digit in row.text for digit in "0123456789"), row.text


# -- recordings and kept records, as they show themselves ---------------------------------------


def test_a_recording_says_what_it_holds_and_that_it_can_be_read_back(run):
    lines = str(run.recording()).splitlines()
    assert lines[0] == repr(run.recording())[1:-1]
    told = {line.strip().split("  ")[0]: line.split("  ")[-1].strip() for line in lines[1:]}
    assert told["state at the end"] == f"{len(run.state)} keys"
    assert told["what happened"] == f"{len(run.walk)} rows"
    assert told["whole record"] == "carried, for rb.load_recording"
    assert "hidden" not in told


def test_a_recording_under_a_policy_says_that_something_is_hidden():
    hidden = chart().run_sync(redact={"keys": ["n"]}).recording()
    assert "what the policy of the run hides is not in it" in str(hidden)


@pytest.mark.parametrize(
    ("recorders", "said"),
    [
        ([], "not carried; walk and commits are what was published"),
        ("odd", "not carried; walk and commits are what was published"),
        ([3, {"id": "narrative", "data": None}], "not carried; walk"),
        ([{"id": "runbook_nb", "data": {"missing": "too deep"}}], "not carried: too deep"),
    ],
)
def test_a_recording_from_elsewhere_says_what_it_lacks(recorders, said):
    from runbook_nb.record.recording import OWN_ID

    if isinstance(recorders, list) and recorders and isinstance(recorders[0], dict):
        recorders = [recorders[0] | {"id": OWN_ID}]
    made = rb.Recording({"recorders": recorders, "commitLog": None}, [], {"name": "x"})
    assert str(made).splitlines()[0] == "Recording x · 0 commits"
    assert said in str(made)
    assert made._repr_mimebundle_()[0]["text/html"]


def test_kept_records_are_listed_with_how_each_run_ended_and_without_ids(run):
    kept = KeptRecords()
    kept.keep(run, tool="ages", call_id="call_secret", session_id="s")
    with pytest.raises(ZeroDivisionError) as caught:
        chart(last=lambda s: 1 / 0).run_sync()
    kept.keep(caught.value.run, tool="sizes", call_id="b", session_id="s")
    lines = str(kept).splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["ages", "ok"], ["sizes", "error"]]
    assert "call_secret" not in str(kept)
    assert "call_secret" not in kept._repr_mimebundle_()[0]["text/html"]


def test_a_record_that_could_not_be_made_is_listed_with_the_reason(run, monkeypatch):
    monkeypatch.setattr(run, "recording", lambda: 1 / 0)
    kept = KeptRecords()
    kept.keep(run, tool="ages", call_id="a", session_id="s")
    assert "could not be made: ZeroDivisionError" in str(kept)


def test_nothing_kept_is_said():
    assert str(KeptRecords()).splitlines() == [
        "KeptRecords · 0 records of at most 20",
        "  no run was kept yet",
    ]


def test_a_recorded_run_is_called_what_its_card_calls_it(run):
    read = rb.load_recording(run.recording().to_dict())
    assert repr(read) == f"<{str(read).splitlines()[0]}>"
    assert repr(read).startswith("<Recording c ")


def test_a_page_of_a_walk_prints_as_it_is_shown(run):
    page = run.walk.page(1, 2)
    assert repr(page) == f"<Walk · rows 1 to 2 of {len(run.walk)} rows>"
    assert list(page) == list(run.walk[1:3])
