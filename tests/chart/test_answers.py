"""An answer belongs to the words of its question."""

from __future__ import annotations

import asyncio
import json

from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.scope import interrupt


def go(chart, answers):
    """Answer every question by its words, through JSON; give the run and what was asked."""
    asked = []
    run = chart.run_sync()
    while run.status == "paused":
        asked.append(run.pause["reason"])
        checkpoint = json.loads(json.dumps(run.checkpoint))
        run = chart.resume_sync(checkpoint, answers[run.pause["reason"]])
    return run, asked


def test_a_question_whose_words_changed_is_asked_anew():
    hosts = iter([5, 6, 6])

    def restart(scope):
        return interrupt(scope, f"restart {next(hosts)} hosts?")

    chart = flow_chart("c", restart, id="a").build()
    run, asked = go(chart, {"restart 5 hosts?": "yes", "restart 6 hosts?": "no"})
    assert asked == ["restart 5 hosts?", "restart 6 hosts?"]
    assert run.result == "no"


def test_questions_asked_in_another_order_get_their_own_answers():
    turns = iter([("restart?", "delete?"), ("delete?", "restart?"), ("restart?", "delete?")])

    async def both(scope):
        said = {}

        async def ask(question):
            said[question] = interrupt(scope, question)

        await asyncio.gather(*(ask(question) for question in next(turns)))
        return said

    chart = flow_chart("c", both, id="a").build()
    run, asked = go(chart, {"restart?": "yes", "delete?": "never"})
    assert sorted(asked) == ["delete?", "restart?"]
    assert run.result == {"restart?": "yes", "delete?": "never"}


def test_the_same_question_may_be_asked_twice():
    chart = flow_chart(
        "c", lambda scope: [interrupt(scope, "more?"), interrupt(scope, "more?")], id="a"
    ).build()
    run = chart.resume_sync(chart.run_sync().checkpoint, "yes")
    assert run.status == "paused"
    assert chart.resume_sync(run.checkpoint, "no").result == ["yes", "no"]


def test_the_second_half_of_a_pausable_stage_may_ask_too():
    def second(scope, answer):
        return [answer, interrupt(scope, "really?")]

    chart = flow_chart("c", lambda scope: "sure?", id="a", resume=second).build()
    run, asked = go(chart, {"sure?": 1, "really?": 2})
    assert asked == ["sure?", "really?"]
    assert run.result == [1, 2]
