"""Everything a run recorded is listed with its place, so that no policy can miss it."""

from __future__ import annotations

import json

import runbook_nb as rb
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.model import Retry
from runbook_nb.chart.scope import interrupt
from runbook_nb.record.contents import PLACES, contents_of, marked_keys, names_in
from runbook_nb.record.log import WIDTHS


def places(run):
    found = {}
    for held in contents_of(run):
        assert held.place in PLACES
        found.setdefault(held.place, []).append(held.value)
    return found


def whole_run():
    """A run that meets every kind of value, paused and gone on with."""
    calls = []

    def shaky(scope):
        if not calls:
            calls.append(1)
            scope["taken"] = "back"
            raise OSError("once")
        scope.append("list", "item")
        scope.merge("conn", {"pin": 1})
        scope.emit("event", "payload")
        scope.set("secret", "marked", secret=True)

    inner = flow_chart("inner", lambda s: "inner result", id="in").build()
    each = flow_chart("look", lambda s: "branch result", id="look").build()
    rules = rb.RuleSet("r", "1", [rb.Rule({"judged": {"gt": 1}}, "a")], default="a")
    chart = (
        flow_chart("c", shaky, id="shaky", retry=Retry(2))
        .add_streaming("Say", lambda s: s.stream("token"), id="say")
        .add_subchart("Sub", inner, id="sub", inputs=lambda s: {"mapped": "in"})
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: [{"item key": 1}, "plain item"],
            branch=each,
            max_branches=2,
            into="out",
        )
        .add_decider("D", id="d", rules=rules)
        .branch("a", lambda s: None)
        .end()
        .add_decider("W", lambda s: "word", id="w")
        .branch("b", lambda s: None)
        .default("b")
        .end()
        .add_selector("S", lambda s: ["x"], id="s")
        .branch("x", lambda s: None)
        .end()
        .add_pausable("Ask", lambda s: "question?", lambda s, a: s.stop("reason"), id="ask")
        .build()
    )
    paused = chart.run_sync({"given": "input"}, state={"judged": 5, "first": "state"})
    return chart.resume_sync(json.loads(json.dumps(paused.checkpoint)), {"answer": 1})


def test_every_place_is_met_in_a_run_of_everything():
    found = places(whole_run())
    assert set(found) == set(PLACES) - {"names", "calls"}  # those are of a playbook's run
    assert {"given": "input"} in found["input"]
    assert {"mapped": "in"} in found["input"]
    assert {"judged": 5, "first": "state"} in found["state"]
    assert {"list": ("item",)} in found["state"]
    assert {"conn": {"pin": 1}} in found["state"]
    assert {"taken": "back"} in found["state"]
    assert {"item": "plain item"} in found["items"]
    assert {"item key": 1} in found["items"]
    assert found["events"] == [{"event": "payload"}]
    assert found["streams"][0]["text"] == "token"
    assert found["evidence"] == [{"judged": 5}]
    assert found["questions"][0]["reason"] == "question?"
    assert found["answers"] == [{"answer": 1}]
    assert found["choices"] == ["word", ["x"]]
    assert "branch result" in found["results"]
    assert found["errors"][0]["error"]["message"] == "once"
    assert found["reasons"] == ["reason"]


def test_every_kind_of_code_that_has_a_value_is_listed():
    """A kind added to the log has to be given a place here."""
    from runbook_nb.record import contents

    listed = {*contents._WRITES, *contents._ERRORS, *contents._LOOSE, *contents.CALLS}
    listed |= {"append", "emit", "enter", "fan_out", "decision", "selection"}
    assert {kind for kind, width in WIDTHS.items() if width} - listed == {"loop"}


def test_marked_keys_are_those_of_every_track_in_the_order_of_marking():
    each = flow_chart("look", lambda s: s.set("inside", 1, secret=True), id="look").build()
    chart = flow_chart("c", lambda s: s.set("first", 1, secret=True), id="a")
    run = (
        chart.add_parallel_for_each(
            "Each", id="each", items=lambda s: [1, 2], branch=each, max_branches=2, into="out"
        )
        .build()
        .run_sync()
    )
    assert marked_keys(run.log) == ("first", "inside")


def test_a_key_marked_in_an_attempt_that_failed_stays_marked():
    calls = []

    def shaky(scope):
        if not calls:
            calls.append(1)
            scope.set("token", "s3cr3t-1", secret=True)
            raise OSError("refused s3cr3t-1")

    run = flow_chart("c", shaky, id="a", retry=Retry(2)).build().run_sync()
    assert marked_keys(run.log) == ("token",)
    assert "s3cr3t-1" not in str(run.walk.to_dicts())


def test_a_mark_goes_with_the_checkpoint():
    def ask(scope):
        scope.set("token", "s3cr3t-1", secret=True)
        return interrupt(scope, "use s3cr3t-1?")

    chart = flow_chart("c", ask, id="a").build()
    paused = chart.run_sync()
    assert paused.pause["reason"] == "use [REDACTED]?"
    run = chart.resume_sync(json.loads(json.dumps(paused.checkpoint)), "yes")
    assert marked_keys(run.log) == ("token",)
    assert run.state == {"token": "[REDACTED]"}
    assert "s3cr3t-1" not in str(run.walk.to_dicts())


def test_the_names_of_a_record_are_its_stages_keys_and_events():
    chart = flow_chart("Load it", lambda s: s.set("key", 1) or s.emit("event"), id="load")
    names = list(names_in(chart.build().run_sync().log))
    assert {"key", "event", "load", "Load it"} <= set(names)
