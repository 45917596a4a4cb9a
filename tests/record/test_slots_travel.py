"""Slots that leave a run: copied or pickled they are the slots, without the record behind them."""

from __future__ import annotations

import copy
import pickle

from runbook_nb.chart.builder import flow_chart


def fanned():
    one = flow_chart("one", lambda scope: scope.args["item"]["n"] + 1, id="one").build()
    chart = (
        flow_chart("c", lambda scope: None, id="a")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: [{"n": 1}, {"n": 2}],
            branch=one,
            max_branches=1,
            into="out",
        )
        .build()
    )
    return chart.run_sync().state["out"]


def test_copied_and_pickled_slots_say_the_same():
    slots = fanned()
    for twin in (copy.deepcopy(slots), pickle.loads(pickle.dumps(slots))):  # noqa: S301
        assert [(s.index, s.status, s.value) for s in twin] == [
            (0, "ok", 2),
            (1, "not_reached", None),
        ]
        assert slots == twin
