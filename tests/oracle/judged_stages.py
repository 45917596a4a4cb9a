"""Better behaviours of plain stages: what is written, refused, left when a stage fails."""

from __future__ import annotations

from judging import Judged, better


@better("L004")
def a_write_that_changes_nothing_is_a_row_and_no_change(case: Judged) -> None:
    assert case.writes("again") == {"a": "1"}
    (commit,) = case.commits("again")
    assert not commit.values
    assert not commit.deleted


@better("L007")
def a_deleted_key_is_gone(case: Judged) -> None:
    assert case.state == {"b": 2, "hasA": False, "ks": ["b", "hasA"]}
    (commit,) = case.commits("del")
    assert commit.deleted == {"a"}
    assert not commit.values
    (row,) = case.rows("step", of="del")
    assert row.facts["operation"] == "delete"


@better("L019")
def input_and_state_are_apart(case: Judged) -> None:
    assert case.run.status == "ok"
    assert case.state == {"who": "bob"}
    assert dict(case.run.raw[0]) == {"who": "ann"}


@better("L030")
def what_cannot_be_kept_is_refused_where_it_is_written(case: Judged) -> None:
    assert case.error.code == "frozen_value"
    assert case.error.where == "f"
    # What the stage had written before stays, in state and record alike: there is no rollback.
    assert case.state == {"ok": 1}
    (commit,) = case.commits("seed")
    assert commit.values == {"ok": 1}
    assert case.rows("error", of="seed")


@better("E001", "H020")
def a_failing_stage_has_a_row_and_its_writes_too(case: Judged) -> None:
    (stage,) = case.rows("stage", of="boom")
    (error,) = case.rows("error", of="boom")
    assert error.facts["message"] == "boom"
    assert stage.n == error.n
    (commit,) = case.commits("boom")
    assert set(case.writes("boom")) == set(commit.values)
    assert commit.values.items() <= case.state.items()
    assert [row.place for row in case.rows("stage")] == ["seed", "boom"]


@better("T003")
def a_stream_that_breaks_off_ends_and_says_so(case: Judged) -> None:
    kinds = [(event.kind, event.text) for event in case.replay.events]
    assert kinds == [("start", ""), ("token", "a"), ("end", "a")]
    assert case.replay.events[-1].complete is False
    (row,) = case.rows("streamed", of="talk")
    assert (row.facts["tokens"], row.facts["complete"]) == (1, False)


@better("H029")
def returned_data_is_data(case: Judged) -> None:
    assert case.run.status == "ok"
    assert case.state == {"end": 1}
    assert [row.place for row in case.rows("stage")] == ["seed", "tree", "end"]
