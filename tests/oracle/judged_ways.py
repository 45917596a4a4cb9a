"""Better behaviours of deciders, selectors, forks and loops."""

from __future__ import annotations

from judging import Judged, better
from replay_seen import plain_value

from runbook_nb.errors import ChartError


@better("B002")
def a_decider_that_names_no_branch_is_told_of(case: Judged) -> None:
    assert case.error.code == "unknown_branch"
    assert case.error.where == "route"
    assert [row.place for row in case.rows("stage")] == ["seed", "route"]
    (error,) = case.rows("error")
    assert error.place == "route"


@better("B003", "H031")
def an_unknown_answer_goes_to_the_default_under_its_own_id(case: Judged) -> None:
    assert case.state == {"went": "y"}
    assert [row.place for row in case.rows("stage")] == ["seed", "route", "y"]
    (row,) = case.rows("condition")
    assert row.facts["chosen"] == "Y"
    assert any("nope" in row.text for row in case.run.walk if row.type == "condition")
    assert all(case.run.structure.node(row.place) for row in case.rows("stage"))


@better("B004")
def a_default_must_be_a_branch(case: Judged) -> None:
    assert isinstance(case.replay.refused, ChartError)
    assert any("route" in one and "ghost" in one for one in case.problems())


@better("B005")
def a_decision_for_no_branch_fails(case: Judged) -> None:
    # What the evidence names must be what runs.
    assert case.error.code == "unknown_branch"
    assert "went" not in case.state
    assert case.rows("error", of="route")


@better("B008")
def the_default_is_no_branch_of_its_own(case: Judged) -> None:
    assert case.state == {"went": "x"}
    assert [row.place for row in case.rows("stage")] == ["seed", "route", "x"]


@better("B009")
def a_stop_in_a_decider_is_told_with_its_reason(case: Judged) -> None:
    assert case.run.status == "ok"
    assert case.state == {}
    assert [row.place for row in case.rows("stage")] == ["seed", "route"]
    (row,) = case.rows("break")
    assert (row.place, row.facts["reason"]) == ("route", "stop")


@better("B013")
def a_decider_may_follow_a_decider(case: Judged) -> None:
    assert case.state == {"a": 1, "p": 1, "q": 1}
    assert [row.place for row in case.rows("stage")] == ["seed", "r1", "x", "r2", "w"]


@better("H004")
def a_selector_may_follow_a_decider(case: Judged) -> None:
    assert case.run.status == "ok"
    assert case.state == {"went": "x"}
    assert [row.place for row in case.rows("stage")] == ["seed", "route", "x", "pick", "p"]


@better("X006")
def a_selected_branch_that_fails_is_named(case: Judged) -> None:
    assert case.run.status == "ok"
    assert case.state == {"end": 1}
    (fan,) = case.seen.fans
    assert dict(zip(fan.items, map(fan.status, range(len(fan))), strict=True)) == {
        "p": "failed",
        "q": "ok",
    }
    (error,) = case.rows("error", of="p")
    assert error.facts["message"] == "bad p"
    assert set(case.writes("p")) == {"p"}
    assert case.rows("stage", of="pick")


@better("H019")
def a_selector_is_told_like_any_stage(case: Judged) -> None:
    assert case.reads("pick") == ["a"]
    assert case.writes("pick") == {"note": '"x"'}
    (commit,) = case.commits("pick")
    assert commit.values == {"note": "x"}


@better("K001")
def children_of_a_fork_write_views_of_their_own(case: Judged) -> None:
    assert case.state == {"base": 1}
    assert case.seen.written == {"c1": {"x": "one"}, "c2": {"x": "two"}}
    assert case.reads("c1") == ["base"]
    assert case.reads("end") == ["x", "base"]
    assert [len(case.commits(child)) for child in ("c1", "c2")] == [1, 1]


@better("K003")
def a_child_that_fails_is_named_in_what_the_fork_gives(case: Judged) -> None:
    assert case.run.status == "ok"
    slots = {slot.item: slot for slot in case.run.raw[2]}
    assert (slots["c1"].status, slots["c2"].status) == ("failed", "ok")
    assert "bad c1" in slots["c1"].reason
    assert slots["c2"].value == 2
    assert case.rows("stage", of="c1")
    assert case.writes("c1") == {"w": "1"}


@better("H012")
def no_key_of_the_author_is_taken(case: Judged) -> None:
    assert case.state == {"runs": "mine", "seen": "mine"}


@better("H001", "H002", "H003")
def a_fork_runs_after_whatever_stands_before_it(case: Judged) -> None:
    assert case.run.status == "ok"
    ran = [row.place for row in case.rows("stage")]
    assert ran.count("f1") == ran.count("f2") == ran.count("end") == 1
    assert case.seen.written == {"f1": {"f1": 1}, "f2": {"f2": 1}}
    places = [row.place for row in case.rows("stage") if "~" not in row.place]
    fork = next(place for place in places if place == "fork")
    assert places.index(fork) < places.index("f1") < places.index("f2") < places.index("end")
    for before in {"route", "each", "sf"} & set(places):
        assert places.index(before) < places.index(fork)


@better("O001")
def every_pass_has_the_name_of_its_stage(case: Judged) -> None:
    assert case.state == {"n": 3}
    assert [row.runtime_id for row in case.rows("stage", of="body")] == [
        "body#1",
        "body#2",
        "body#3",
    ]
    assert {commit.name for commit in case.commits("body")} == {"Body"}
    assert [row.facts["iteration"] for row in case.rows("loop")] == [1, 2]


@better("H007", "N022")
def a_loop_after_any_stage_loops(case: Judged) -> None:
    assert case.run.status == "ok"
    target = case.case["program"]["steps"][-1]["target"]
    assert case.rows("break", of=target)
    passes = case.rows("stage", of=target)
    assert len(case.rows("loop")) == len(passes) - 1
    assert case.state["n"] == len(passes)
    assert case.state["n"] > 2
    ids = [row.runtime_id for row in case.rows("stage")]
    assert len(ids) == len(set(ids))
    assert plain_value(case.state)
