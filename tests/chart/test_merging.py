"""What ``merge="keys"`` brings from the branches of a fork into the chart."""

from __future__ import annotations

import json

import pytest

from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.scope import interrupt
from runbook_nb.errors import ChartError, CheckpointError


def forked(*branches, into=None, state=None):
    building = flow_chart("c", lambda scope: scope.update(state or {"k": 1}), id="a").add_fork(
        "Fork", id="f", merge="keys", into=into
    )
    for number, work in enumerate(branches):
        building = building.branch(f"b{number}", work)
    return building.end().build()


def test_a_key_that_a_branch_took_away_is_gone():
    chart = forked(lambda s: s.delete("k"), lambda s: s.set("other", 2))
    assert chart.run_sync().state == {"other": 2}


def test_two_branches_may_take_away_the_same_key():
    assert forked(lambda s: s.delete("k"), lambda s: s.delete("k")).run_sync().state == {}


def test_what_a_branch_wrote_and_took_away_again_leaves_nothing():
    def passing(scope):
        scope["note"] = 1
        scope.delete("note")

    assert forked(passing, lambda s: s.set("note", 2)).run_sync().state == {"k": 1, "note": 2}


@pytest.mark.parametrize("order", [1, -1])
def test_writing_and_taking_away_one_key_is_a_conflict(order):
    works = [lambda s: s.delete("k"), lambda s: s.set("k", 2)][::order]
    with pytest.raises(ChartError, match="both changed 'k'") as caught:
        forked(*works).run_sync()
    assert caught.value.code == "merge_conflict"


def test_writing_where_the_slots_go_is_a_conflict():
    with pytest.raises(ChartError, match="where its slots go") as caught:
        forked(lambda s: s.set("found", 1), into="found").run_sync()
    assert caught.value.code == "merge_conflict"
    assert caught.value.where == "f"


def test_every_branch_that_waits_has_to_be_in_the_checkpoint():
    def ask(scope):
        scope.set("said", interrupt(scope, "sure?"))

    chart = forked(ask, lambda s: s.set("too", interrupt(s, "sure too?")))
    checkpoint = json.loads(json.dumps(chart.run_sync().checkpoint))
    assert set(checkpoint["place"]["pending"]) == {"0", "1"}
    del checkpoint["place"]["pending"]["1"]
    with pytest.raises(CheckpointError) as caught:
        chart.resume_sync(checkpoint, "yes")
    assert caught.value.code == "bad_checkpoint"


def test_a_branch_that_waits_twice_goes_on_when_its_turn_comes():
    def ask(scope):
        scope["said"] = [interrupt(scope, "one?"), interrupt(scope, "two?")]

    chart = forked(ask, lambda s: s.set("too", interrupt(s, "three?")))
    run = chart.run_sync()
    for answer in (1, 2, 3):
        run = chart.resume_sync(json.loads(json.dumps(run.checkpoint)), answer)
    assert run.state == {"k": 1, "said": [1, 2], "too": 3}
