"""Trying again: in every kind of stage, with nothing left of an attempt but that it failed."""

from __future__ import annotations

import asyncio

import pytest

import runbook_nb as rb
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.model import Limits, Retry
from runbook_nb.chart.scope import interrupt
from runbook_nb.errors import LimitReached, RunSignal
from runbook_nb.settings import settings

INNER = flow_chart("inner", lambda s: None, id="in").build()


def shaky(times=1, result=None, error=OSError):
    """A function that fails so many times, having done all that a stage can do."""
    calls = []

    def work(scope, *answer):
        calls.append(len(calls) + 1)
        scope["tries"] = calls[-1]
        scope.append("log", calls[-1])
        scope.merge("map", {str(calls[-1]): 1})
        scope.get("tries")
        scope.emit("tried", calls[-1])
        scope.set("secret", calls[-1], secret=True)
        if "n" in scope:
            scope.delete("n")
        if len(calls) <= times:
            scope.stop("not this one")
            raise error(f"try {calls[-1]}")
        return result

    work.calls = calls
    return work


def start():
    return flow_chart("c", lambda s: s.set("n", 1), id="load")


TWICE = Retry(2)


def plain(fn):
    return start().add_function("S", fn, id="s", retry=TWICE).build()


def streaming(fn):
    return start().add_streaming("S", fn, id="s", retry=TWICE).build()


def first_half(fn):
    return start().add_pausable("S", fn, lambda s, a: None, id="s", retry=TWICE).build()


def judge(fn):
    decider = start().add_decider("S", lambda s: fn(s) or "a", id="s", retry=TWICE)
    return decider.branch("a", lambda s: None).end().build()


def selectors_judge(fn):
    selector = start().add_selector("S", lambda s: fn(s) or [], id="s", retry=TWICE)
    return selector.branch("a", lambda s: None).end().build()


def branch(fn):
    decider = start().add_decider("D", lambda s: "s", id="d")
    return decider.branch("s", fn, retry=TWICE).end().build()


def selected(fn):
    selector = start().add_selector("D", lambda s: ["s"], id="d", merge="keys")
    return selector.branch("s", fn, retry=TWICE).end().build()


def child(fn):
    fork = start().add_fork("F", id="f", merge="keys")
    return fork.branch("s", fn, retry=TWICE).branch("t", lambda s: None).end().build()


def blocking(fn):
    return start().add_function("S", fn, id="s", retry=TWICE, blocking=True).build()


def mounted(fn):
    inner = flow_chart("inner", fn, id="s", retry=TWICE).build()
    outputs = {name: name for name in ("tries", "log", "map", "secret")}
    mount = start().add_subchart("M", inner, id="m", inputs={"n": "n"}, outputs=outputs)
    return mount.add_function("D", lambda s: s.delete("n"), id="d").build()


KINDS = [plain, streaming, first_half, judge, selectors_judge, branch, selected, child, blocking]


@pytest.mark.parametrize("make", [*KINDS, mounted], ids=lambda make: make.__name__)
def test_a_failed_attempt_leaves_nothing_but_the_fact_in_every_kind_of_stage(make):
    fn = shaky()
    run = make(fn).run_sync()
    assert fn.calls == [1, 2]
    assert run.status == "ok"
    assert {key: run.state[key] for key in ("tries", "log", "map")} == {
        "tries": 2,
        "log": [2],
        "map": {"2": 1},
    }
    assert "n" not in run.state
    rows = [row for row in run.walk if row.stage_id == "s" and "Received" not in row.text]
    told = [row.text for row in rows if row.type in ("retry", "emit", "break", "error")]
    assert told == ["Attempt 1 of 2 failed, OSError: try 1; tried again", "Emitted tried: 2"]
    assert [row.type for row in rows].count("stage") == 1
    assert len({row.runtime_stage_id for row in rows}) == 1
    assert len(run.commits.whole()) == run.steps_executed


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_the_last_failure_leaves_with_what_its_attempt_did(make):
    fn = shaky(times=9)
    if make in (child, selected):
        run = make(fn).run_sync()
    else:
        with pytest.raises(OSError, match="try 2") as caught:
            make(fn).run_sync()
        run = caught.value.run
    assert fn.calls == [1, 2]
    rows = [row for row in run.walk if row.stage_id == "s"]
    assert [row.type for row in rows if row.type in ("retry", "error")] == ["retry", "error"]
    assert rows[-1].text == "Failed: OSError: try 2"
    if make not in (child, selected):
        assert run.state["log"] == [2]


def test_the_second_half_of_a_pausable_stage_is_tried_again_too():
    fn = shaky(result="done")
    chart = start().add_pausable("S", lambda s: "go on?", fn, id="s", retry=TWICE).build()
    run = chart.resume_sync(chart.run_sync().checkpoint, "yes")
    assert (run.result, run.state["log"]) == ("done", [2])


def test_a_child_of_a_fork_finds_the_parents_values_again():
    seen = []

    def work(scope):
        seen.append(scope["rows"])
        scope.append("rows", len(seen))
        scope.delete("n")
        if len(seen) < 2:
            raise OSError
        return scope["rows"]

    fork = flow_chart("c", lambda s: s.update({"rows": [0], "n": 1}), id="load").add_fork(
        "F", id="f", into="out"
    )
    run = fork.branch("s", work, retry=TWICE).end().build().run_sync()
    assert seen == [[0], [0]]
    assert run.state["out"][0].value == [0, 2]
    assert run.state["rows"] == [0]


def test_lists_that_grow_are_as_they_were_when_an_attempt_began():
    calls = []

    def work(scope):
        calls.append(1)
        for item in range(3):
            scope.append("rows", item)
        if len(calls) < 3:
            raise OSError

    builder = flow_chart("c", lambda s: s.append("rows", "first"), id="load")
    run = builder.add_function("S", work, id="s", retry=Retry(3)).build().run_sync()
    assert run.state["rows"] == ["first", 0, 1, 2]


def test_questions_are_never_tried_again():
    calls = []

    def work(scope):
        calls.append(1)
        return interrupt(scope, "go on?")

    chart = start().add_function("S", work, id="s", retry=Retry(5)).build()
    run = chart.run_sync()
    assert (run.status, len(calls)) == ("paused", 1)
    assert chart.resume_sync(run.checkpoint, "yes").result == "yes"
    assert len(calls) == 2


def test_what_ends_the_run_is_never_tried_again():
    class Absent(RunSignal):
        run_status = "absent"

    for error in (Absent("none"), LimitReached("inner"), KeyboardInterrupt()):
        calls = []

        def work(scope, error=error, calls=calls):
            calls.append(1)
            raise error

        with pytest.raises(type(error)):
            asyncio.run(start().add_function("S", work, id="s", retry=Retry(5)).build().run())
        assert len(calls) == 1


def test_a_group_of_errors_that_holds_an_ending_is_not_tried_again():
    class Absent(RunSignal):
        run_status = "absent"

    calls = []

    def work(scope):
        calls.append(1)
        raise ExceptionGroup("tasks", [OSError(), Absent("none")])

    with pytest.raises(ExceptionGroup):
        start().add_function("S", work, id="s", retry=Retry(5)).build().run_sync()
    assert len(calls) == 1


def test_waits_follow_the_number_of_failed_attempts():
    waited = []

    def backoff(failed):
        waited.append(failed)
        return 0.0

    fn = shaky(times=3)
    chart = start().add_function("S", fn, id="s", retry=Retry(4, backoff=backoff)).build()
    assert chart.run_sync().state["tries"] == 4
    assert waited == [1, 2, 3]


def test_attempts_count_against_the_time_of_the_run():
    class Clock:
        now = 0.0

        def __call__(self):
            return self.now

    clock = Clock()

    def work(scope):
        clock.now += 6
        raise OSError

    chart = start().add_function("S", work, id="s", retry=Retry(9)).build()
    with settings(timer=clock), pytest.raises(LimitReached) as caught:
        chart.run_sync(limits=Limits(seconds=10))
    assert [row.type for row in caught.value.run.walk].count("retry") == 2
    assert caught.value.code == "time_limit"


def test_only_the_errors_named_are_worth_it():
    for on, calls in (((OSError,), 3), ((KeyError,), 1), (lambda e: "1" in str(e), 2)):
        fn = shaky(times=9)
        chart = start().add_function("S", fn, id="s", retry=Retry(3, on=on)).build()
        with pytest.raises(OSError, match="try"):
            chart.run_sync()
        assert len(fn.calls) == calls


def test_a_decision_of_a_failed_attempt_is_not_on_the_record():
    calls = []
    rules = [rb.Rule({"n": {"gt": 0}}, "a")]

    def work(scope):
        calls.append(1)
        decision = rb.decide(scope, rules, "b")
        if len(calls) < 2:
            raise OSError
        return decision

    decider = start().add_decider("D", work, id="s", retry=TWICE).branch("a", lambda s: None)
    run = decider.branch("b", lambda s: None).branch("declined", lambda s: None).end().build()
    run = run.run_sync()
    assert len(run.decisions) == 1
    assert [row.text for row in run.walk if row.text == "Read n"] == ["Read n"]


def test_the_structure_says_how_often_a_stage_is_tried():
    chart = plain(shaky())
    assert chart.structure.node("s").detail == {"retry": 2}
    assert chart.structure.node("load").detail == {}
