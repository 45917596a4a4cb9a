"""Streaming stages: who hears the tokens, what is recorded, and that listeners change nothing."""

from __future__ import annotations

import asyncio
import threading

import pytest

from runbook_nb._stop import Stop
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.model import Retry
from runbook_nb.chart.scope import interrupt
from runbook_nb.chart.streaming import Stream, StreamEvent
from runbook_nb.errors import ChartError, RunCancelled, ScopeClosed


def say(*words, result=None):
    def stage(scope):
        for word in words:
            scope.stream(word)
        return result

    return stage


def streaming(fn, *, stream="words", **more):
    return (
        flow_chart("c", lambda s: None, id="load")
        .add_streaming("Say", fn, id="say", stream=stream, **more)
        .build()
    )


def heard_by(chart, error=None, **options):
    heard = []
    if error is None:
        return heard, chart.run_sync(on_stream=heard.append, **options)
    with pytest.raises(error) as caught:
        chart.run_sync(on_stream=heard.append, **options)
    return heard, caught.value.run


def texts(run, stage_id="say"):
    return [row.text for row in run.walk if row.stage_id == stage_id]


START, END = StreamEvent("start", "words"), StreamEvent("end", "words", "on and on")
TOKENS = [StreamEvent("token", "words", token) for token in ("on", " and", " on")]


# -- hearing -----------------------------------------------------------------------------------


def test_a_listener_hears_the_start_every_token_and_the_end_with_the_whole_text():
    heard, run = heard_by(streaming(say("on", " and", " on", result="done")))
    assert heard == [START, *TOKENS, END]
    assert run.result == "done"


def test_the_record_keeps_how_many_tokens_there_were_and_the_whole_text():
    _, run = heard_by(streaming(say("on", " and", " on")))
    assert texts(run) == ["Ran Say", "Streamed 3 tokens to words"]
    codes = [event for event in run.log.events(run.log.root.codes) if event.code.kind == "streamed"]
    assert [run.log.root.values[event.at] for event in codes] == [
        {"stream": "words", "tokens": 3, "text": "on and on", "complete": True}
    ]


def test_without_a_listener_the_record_is_the_same():
    chart = streaming(say("on", " and", " on"))
    assert chart.run_sync().walk == heard_by(chart)[1].walk


def test_a_stream_without_tokens_has_a_start_and_an_end():
    heard, run = heard_by(streaming(say()))
    assert heard == [START, StreamEvent("end", "words")]
    assert texts(run)[-1] == "Streamed 0 tokens to words"


def test_the_id_of_a_stream_is_the_stages_name_unless_given():
    heard, _ = heard_by(streaming(say("x"), stream=None))
    assert {event.stream for event in heard} == {"Say"}


def test_async_and_blocking_stages_stream_too():
    async def later(scope):
        for word in ("on", " and", " on"):
            await asyncio.sleep(0)
            scope.stream(word)

    threads = []

    def elsewhere(scope):
        threads.append(threading.current_thread())
        say("on", " and", " on")(scope)

    for chart in (streaming(later), streaming(elsewhere, blocking=True)):
        assert heard_by(chart)[0] == [START, *TOKENS, END]
    assert threads[0] is not threading.main_thread()


def test_the_first_stage_a_branch_and_a_child_may_stream():
    first = flow_chart("first", say("x"), id="say", stream="words").build()
    assert [event.kind for event in heard_by(first)[0]] == ["start", "token", "end"]
    decider = flow_chart("c", lambda s: None, id="a").add_decider("D", lambda s: "say", id="d")
    heard, run = heard_by(decider.branch("say", say("x"), stream="s").end().build())
    assert [event.stream for event in heard] == ["s"] * 3
    assert texts(run) == ["Ran say", "Streamed 1 token to s"]
    fork = flow_chart("c", lambda s: None, id="a").add_fork("F", id="f")
    fork.branch("one", say("1"), stream="1").branch("two", say("2"), stream="2")
    assert [event.text for event in heard_by(fork.end().build())[0]] == ["", "1", "1", "", "2", "2"]


def test_each_branch_of_a_fan_out_has_a_stream_of_its_own():
    each = flow_chart("each", lambda s: s.stream(str(s.args["item"])), id="e", stream="s").build()
    chart = (
        flow_chart("c", lambda s: None, id="a")
        .add_parallel_for_each(
            "E", id="each", items=lambda s: [1, 2], branch=each, max_branches=2, into="o"
        )
        .build()
    )
    heard, run = heard_by(chart)
    assert [(event.kind, event.text) for event in heard if event.kind != "start"] == [
        *(("token", "1"), ("end", "1"), ("token", "2"), ("end", "2")),
    ]
    assert [row.runtime_stage_id for row in run.walk if row.text.startswith("Streamed")] == [
        "each~0/e#0",
        "each~1/e#0",
    ]


# -- listeners ---------------------------------------------------------------------------------


def test_what_a_listener_raises_changes_nothing_and_is_logged(caplog):
    def broken(event):
        raise ValueError("cannot draw")

    run = streaming(say("on", " and", " on")).run_sync(on_stream=broken)
    assert run.status == "ok"
    assert texts(run)[-1] == "Streamed 3 tokens to words"
    assert "a listener of stream 'words' failed" in caplog.text


def test_a_resumed_run_may_have_another_listener():
    def ask(scope):
        scope.stream("before")
        answer = interrupt(scope, "go on?")
        scope.stream(answer)

    chart = streaming(ask)
    heard, run = heard_by(chart)
    assert [(e.kind, e.text, e.complete) for e in heard] == [
        ("start", "", True),
        ("token", "before", True),
        ("end", "before", False),
    ]
    later = []
    done = chart.resume_sync(run.checkpoint, "yes", on_stream=later.append)
    assert [e.text for e in later] == ["", "before", "yes", "beforeyes"]
    assert texts(done) == [
        *("Ran Say", "Streamed 1 token to words, cut short", "Paused: go on?"),
        *("Went on with the answer yes", "Ran Say", "Streamed 2 tokens to words"),
    ]


# -- cut short ---------------------------------------------------------------------------------


def test_a_stream_whose_stage_fails_is_cut_short_and_ends_all_the_same():
    def broken(scope):
        scope.stream("on")
        raise OSError("line dropped")

    heard, run = heard_by(streaming(broken), OSError)
    assert heard[-1] == StreamEvent("end", "words", "on", complete=False)
    assert texts(run) == [
        "Ran Say",
        "Streamed 1 token to words, cut short",
        "Failed: OSError: line dropped",
    ]


def test_every_attempt_has_a_stream_of_its_own_and_only_the_last_is_on_the_record():
    calls = []

    def shaky(scope):
        calls.append(1)
        scope.stream(f"try {len(calls)}")
        if len(calls) < 3:
            raise OSError

    heard, run = heard_by(streaming(shaky, retry=Retry(3)))
    assert [(e.text, e.complete) for e in heard if e.kind == "end"] == [
        ("try 1", False),
        ("try 2", False),
        ("try 3", True),
    ]
    assert [text for text in texts(run) if text.startswith("Streamed")] == [
        "Streamed 1 token to words"
    ]


def test_a_stream_that_a_stop_from_outside_ends_is_cut_short():
    stop = Stop()

    async def slow(scope):
        scope.stream("on")
        stop.set("window closed")
        await asyncio.Event().wait()

    heard, run = heard_by(streaming(slow), RunCancelled, signal=stop)
    assert heard[-1].complete is False
    assert "Streamed 1 token to words, cut short" in texts(run)


def test_stopping_the_chart_is_no_cut():
    def stage(scope):
        scope.stream("on")
        scope.stop("enough")

    heard, run = heard_by(streaming(stage))
    assert heard[-1].complete
    assert texts(run)[-2:] == ["Streamed 1 token to words", "Stopped here: enough"]


# -- misuse ------------------------------------------------------------------------------------


def test_a_stage_that_is_no_streaming_one_cannot_stream():
    with pytest.raises(ChartError, match="streams, and is no streaming stage") as caught:
        flow_chart("c", say("x"), id="a").build().run_sync()
    assert caught.value.where == "a"
    assert "add_streaming" in caught.value.fix


@pytest.mark.parametrize("token", [None, 5, b"x", ["x"]])
def test_a_token_is_a_text(token):
    heard, run = heard_by(streaming(say("on", token)), ChartError)
    assert [event.kind for event in heard] == ["start", "token", "end"]
    assert "a streamed token is a text" in run.error["message"]


def test_a_stage_that_has_ended_streams_no_more():
    kept = []
    heard, _ = heard_by(streaming(kept.append))
    with pytest.raises(ScopeClosed):
        kept[0].stream("late")
    assert [event.kind for event in heard] == ["start", "end"]


@pytest.mark.parametrize("bad", ["", "  ", 5])
def test_a_stream_needs_a_name(bad):
    with pytest.raises(ChartError, match="stream is"):
        streaming(say(), stream=bad)


def test_a_stream_by_itself():
    heard = []
    stream = Stream("s", heard.append)
    stream.token("a")
    assert stream.end(complete=False) == {
        "stream": "s",
        "tokens": 1,
        "text": "a",
        "complete": False,
    }
    assert [event.kind for event in heard] == ["start", "token", "end"]
    assert Stream("s", None).end(complete=True)["tokens"] == 0


def test_the_structure_names_the_stream():
    node = streaming(say()).structure.node("say")
    assert (node.kind, node.detail) == ("streaming", {"stream": "words"})
