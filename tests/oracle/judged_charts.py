"""Better behaviours of fan-outs, mounted charts, pauses and cancelled runs."""

from __future__ import annotations

import json

from judging import Judged, better


@better("N023")
def a_branch_that_is_no_chart_fails_its_slot_and_says_so(case: Judged) -> None:
    assert case.run.status == "ok"
    (slot,) = case.run.slots("each")
    assert slot.status == "failed"
    assert "dict" in slot.reason
    assert case.state["out"] == [None]


@better("N005")
def a_fan_out_that_cannot_begin_is_told_of(case: Judged) -> None:
    assert case.error.code == "bad_items"
    assert [row.place for row in case.rows("stage")] == ["seed", "each"]
    assert case.rows("error")[-1].place == "each"
    assert "out" not in case.state


@better("N007")
def what_is_past_the_cap_is_said_everywhere(case: Judged) -> None:
    slots = list(case.run.slots("each"))
    assert [slot.status for slot in slots] == ["ok", "ok", *["not_reached"] * 3]
    assert all(slot.reason for slot in slots[2:])
    (fork,) = case.rows("fork")
    assert (fork.facts["of"], fork.facts["cap"]) == (5, 2)
    (told,) = (row.text for row in case.run.walk if row.type == "fork")
    assert "3" in told
    (counts,) = case.run.fan_outs
    assert counts.not_reached == 3


@better("N009")
def a_failed_slot_says_why(case: Judged) -> None:
    slots = list(case.run.slots("each"))
    assert [slot.status for slot in slots] == ["ok", "failed", "ok"]
    assert "bad item" in slots[1].reason
    assert [row.facts["status"] for row in case.rows("subflow") if "status" in row.facts] == [
        "ok",
        "failed",
        "ok",
    ]
    assert case.rows("error", of="each~1/load")


@better("N025", "H017")
def width_is_no_depth(case: Judged) -> None:
    slots = list(case.run.slots("each"))
    assert {slot.status for slot in slots} == {"ok"}
    assert len(slots) == len(case.state["items"])
    assert None not in case.state["out"]
    assert not case.rows("error")


@better("N027")
def a_fan_out_tells_what_it_reads_and_writes(case: Judged) -> None:
    assert case.reads("each") == ["items"]
    assert set(case.writes("each")) == {"out"}
    (commit,) = case.commits("each")
    assert set(commit.values) == {"out"}


@better("H025")
def a_cancelled_run_is_cancelled(case: Judged) -> None:
    assert case.error.code == "cancelled"
    assert "user abort" in str(case.error)
    assert case.run.status == "cancelled"
    assert not case.rows("stage", of="again")
    assert "late" not in case.state


@better("G004")
def the_structure_shows_what_a_branch_does(case: Judged) -> None:
    structure = case.replay.chart.structure
    assert structure.node("each/load").name == "Load"
    assert ("each", ("each/load",)) in structure.groups
    assert any((e.source, e.target) == ("each", "each/load") for e in structure.edges)


@better("U003")
def what_is_mapped_in_is_ordinary_state(case: Judged) -> None:
    assert case.run.status == "ok"
    assert case.state == {"a": 1}
    assert case.seen.levels["sf/"] == {"v": 2}


@better("U008", "U009")
def a_mapper_that_fails_fails_the_run(case: Judged) -> None:
    assert str(case.error) == "mapper broke"
    assert case.run.status == "failed"
    (error,) = case.rows("error")
    assert error.place == "sf"
    assert not case.rows("stage", of="end")
    assert case.state == {"a": 1}


@better("U010")
def a_mounted_chart_that_fails_is_left_as_failed(case: Judged) -> None:
    assert str(case.error) == "inner boom"
    assert case.rows("error")[0].place == "sf/boom"
    left = [row.facts["status"] for row in case.rows("subflow", of="sf") if "status" in row.facts]
    assert left == ["failed"]
    assert case.seen.levels["sf/"] == {"x": 1, "y": 2}
    assert case.state == {"a": 1}


@better("R008")
def a_pause_says_its_whole_path(case: Judged) -> None:
    first, last = case.replay.runs
    assert first.checkpoint["paused_at"]["runtime_stage_id"] == "sf/gate#3"
    assert [row.place for row in case.rows("pause")] == ["sf/gate"]
    assert last.status == "ok"
    assert case.state == {"a": 1, "r": "yes"}
    assert case.reads("end") == ["r"]


@better("R011")
def a_paused_branch_goes_on(case: Judged) -> None:
    first, last = case.replay.runs
    assert first.status == "paused"
    assert json.loads(json.dumps(first.checkpoint)) == first.checkpoint
    assert last.status == "ok"
    (answer,) = [one["input"] for one in case.case["run"]["resume"]]
    (slot,) = last.slots("each")
    assert (slot.status, slot.value) == ("ok", {"ans": answer})
    assert case.rows("stage", of="end")


@better("H032")
def a_description_names_every_branch(case: Judged) -> None:
    text = case.replay.chart.describe()
    for branch in ("plain", "subbranch", "lazybranch"):
        assert branch in text


@better("C007")
def a_whole_number_is_an_integer(case: Judged) -> None:
    assert case.error is None
    assert case.run.status == "ok"


@better("C009")
def schemas_are_checked_all_the_way_down(case: Judged) -> None:
    assert case.error.code == "invalid_input"
    assert {problem.where for problem in case.error.problems} == {"o.x", "e"}
    assert case.replay.run is None


@better("C011")
def a_missing_input_is_checked_too(case: Judged) -> None:
    assert case.error.code == "invalid_input"
    assert [problem.where for problem in case.error.problems] == ["id"]


@better("V007")
def nothing_follows_a_loop(case: Judged) -> None:
    assert any("a" in one or "b" in one for one in case.problems())


@better("V009")
def an_id_is_given_once(case: Judged) -> None:
    assert any(one.startswith("'a'") for one in case.problems())


@better("V015", "V042")
def ids_hold_no_mark_of_runtime_ids(case: Judged) -> None:
    id = case.case["program"]["steps"][0]["id"]
    assert any(repr(id) in one for one in case.problems())
