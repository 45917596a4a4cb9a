"""Pausing and going on: what is asked, what is kept, and that nothing behind the pause is lost."""

from __future__ import annotations

import json

import pytest

import runbook_nb as rb
from runbook_nb._stop import Stop
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.model import Limits, Retry
from runbook_nb.chart.scope import interrupt
from runbook_nb.errors import CheckpointError, LimitReached, RunCancelled, ScopeClosed


def asking(question="go on?", *, execute=None, resume=None, **more):
    """A chart with a pausable stage in its middle."""
    return (
        flow_chart("c", lambda s: s.set("n", 1), id="load")
        .add_pausable(
            "Ask",
            execute or (lambda s: s.set("asked", True) or question),
            resume or (lambda s, answer: s.set("answer", answer) or answer),
            id="ask",
            **more,
        )
        .add_function("After", lambda s: s.set("after", dict(s)), id="after")
        .build()
    )


def paused(chart, *args, **options):
    run = chart.run_sync(*args, **options)
    assert run.status == "paused"
    return run


def through_json(run):
    return json.loads(json.dumps(run.checkpoint))


def go_on(chart, run, answer=None, **options):
    return chart.resume_sync(through_json(run), answer, **options)


def ids(run):
    return [row.runtime_stage_id for row in run.walk if row.type == "stage"]


def told(run, *types):
    return [(row.type, row.runtime_stage_id) for row in run.walk if row.type in types]


# -- pausable stages ---------------------------------------------------------------------------


def test_a_question_pauses_the_run_and_the_answer_goes_to_the_second_half():
    chart = asking()
    run = paused(chart)
    assert run.pause == {"reason": "go on?", "expects": None, "data": "go on?"}
    assert run.state == {"n": 1, "asked": True}  # what the first half wrote stays
    assert run.result is None
    assert run.error is None
    assert run.ended_at == {"stage": "Ask", "stage_id": "ask", "runtime_stage_id": "ask#1"}
    done = go_on(chart, run, "yes")
    assert done.status == "ok"
    assert done.state["answer"] == "yes"
    assert done.state["after"] == {"n": 1, "asked": True, "answer": "yes"}


def test_the_walk_of_a_resumed_run_begins_where_the_first_one_began():
    chart = asking()
    run = paused(chart)
    done = go_on(chart, run, "yes")
    rows = [(row.type, row.runtime_stage_id, row.text) for row in done.walk]
    assert rows[: len(run.walk)] == [(r.type, r.runtime_stage_id, r.text) for r in run.walk]
    assert rows[len(run.walk) :][:3] == [
        ("resume", "ask#2", "Went on with the answer yes"),
        ("stage", "ask#2", "Ran Ask"),
        ("step", "ask#2", "Wrote answer"),
    ]
    assert ids(done) == ["load#0", "ask#1", "ask#2", "after#3"]
    assert [commit.status for commit in done.commits] == ["ok", "paused", "ok", "ok"]


@pytest.mark.parametrize("question", ["", 0, False, [], {}, {"x": 1}, ["a", "b"], 5])
def test_anything_but_nothing_is_a_question(question):
    run = paused(asking(execute=lambda s: question))
    assert run.pause["data"] == question
    assert run.pause["reason"]


def test_a_mapping_may_name_its_reason_and_what_it_expects():
    question = {"reason": "restart the node?", "expects": ["yes", "no"], "host": "a"}
    run = paused(asking(execute=lambda s: question))
    assert run.pause["reason"] == "restart the node?"
    assert run.pause["expects"] == ["yes", "no"]
    assert run.pause["data"]["host"] == "a"
    run = paused(asking(execute=lambda s: {"host": "a"}))
    assert run.pause["reason"] == "stage 'Ask' waits for an answer"


def test_nothing_goes_on_at_once_and_the_second_half_does_not_run():
    run = asking(execute=lambda s: s.set("asked", False)).run_sync()
    assert (run.status, run.state["after"]) == ("ok", {"n": 1, "asked": False})
    assert "answer" not in run.state


def test_stopping_in_the_first_half_is_no_question():
    def execute(scope):
        scope.stop("nothing to ask")
        return "go on?"

    run = asking(execute=execute).run_sync()
    assert (run.status, ids(run)) == ("ok", ["load#0", "ask#1"])


def test_a_question_that_json_cannot_carry_fails_the_stage_and_says_which_part():
    with pytest.raises(CheckpointError, match="data that JSON cannot carry") as caught:
        asking(execute=lambda s: {"x": object}).run_sync()
    assert caught.value.run.ended_at["stage_id"] == "ask"


def test_the_first_stage_and_a_branch_may_be_pausable():
    chart = flow_chart("c", lambda s: "a?", id="a", resume=lambda s, answer: answer).build()
    assert go_on(chart, paused(chart), 5).result == 5
    decider = flow_chart("c", lambda s: None, id="a").add_decider("D", lambda s: "ask", id="d")
    decider.branch("ask", lambda s: "b?", resume=lambda s, answer: answer)
    chart = decider.end().add_function("After", lambda s: "after", id="z").build()
    done = go_on(chart, paused(chart), 5)
    assert (done.result, ids(done)) == ("after", ["a#0", "d#1", "ask#2", "ask#3", "z#4"])


def test_the_second_half_may_ask_in_its_middle_as_often_as_it_likes():
    def resume(scope, answer):
        first = interrupt(scope, "sure?")
        second = interrupt(scope, "really?")
        return [answer, first, second]

    chart = asking(resume=resume)
    run, asked = paused(chart), []
    for answer in ("yes", "sure", "really"):
        asked.append(run.pause["reason"])
        run = go_on(chart, run, answer)
    assert asked == ["go on?", "sure?", "really?"]
    assert run.status == "ok"
    assert ids(run) == ["load#0", "ask#1", "ask#2", "ask#3", "ask#4", "after#5"]


def test_halves_may_be_async_blocking_and_tried_again():
    calls = []

    def shaky(scope, answer):
        calls.append(1)
        scope["tries"] = len(calls)
        if len(calls) < 2:
            raise OSError
        return answer

    async def later(scope):
        return "go on?"

    chart = asking(execute=later, resume=shaky, retry=Retry(3), blocking=True)
    done = go_on(chart, paused(chart), "yes")
    assert done.state["tries"] == 2
    assert [row.type for row in done.walk].count("retry") == 1


def test_a_second_half_that_fails_fails_the_run_with_the_whole_walk():
    def resume(scope, answer):
        raise OSError(f"cannot {answer}")

    chart = asking(resume=resume)
    run = paused(chart)
    with pytest.raises(OSError, match="cannot yes") as caught:
        go_on(chart, run, "yes")
    assert caught.value.run.status == "failed"
    assert ids(caught.value.run) == ["load#0", "ask#1", "ask#2"]
    assert caught.value.run.ended_at["runtime_stage_id"] == "ask#2"


# -- asking in the middle ----------------------------------------------------------------------


def middle(*questions, before=lambda s: None):
    """A chart whose stage asks in its middle."""

    def stage(scope):
        before(scope)
        scope["wrote"] = True
        return [interrupt(scope, question) for question in questions]

    return (
        flow_chart("c", lambda s: s.set("n", 1), id="load")
        .add_function("Stage", stage, id="stage")
        .add_function("After", lambda s: s.set("after", True), id="after")
        .build()
    )


def test_a_stage_runs_again_from_its_top_with_the_answer():
    calls = []
    chart = middle("go on?", before=lambda s: calls.append(sorted(s)))
    run = paused(chart)
    assert run.state == {"n": 1}  # what it had written was not kept
    done = go_on(chart, run, "yes")
    assert calls == [["n"], ["n"]]
    assert done.state == {"n": 1, "wrote": True, "after": True}
    assert ids(done) == ["load#0", "stage#1", "stage#2", "after#3"]


def test_a_stage_with_two_questions_finishes_after_two_answers():
    chart = middle("first?", "second?", "third?")
    run, answers = paused(chart), ["a", "b", "c"]
    for question, answer in zip(("first?", "second?", "third?"), answers, strict=True):
        assert run.pause["reason"] == question
        run = go_on(chart, run, answer)
    assert run.status == "ok"
    assert run.state["after"]


def test_the_same_question_twice_takes_two_answers_in_their_order():
    chart = middle("again?", "again?")
    run = go_on(chart, go_on(chart, paused(chart), 1), 2)
    assert run.status == "ok"
    assert [r.text for r in run.walk if r.type == "resume"] == [
        "Went on with the answer 1",
        "Went on with the answer 2",
    ]


def test_what_a_stage_read_and_emitted_before_its_question_stays_on_the_record():
    def before(scope):
        scope.get("n")
        scope.emit("seen", 1)
        scope["gone"] = 1
        scope.append("gone too", 1)
        scope.merge("and this", {"x": 1})
        scope.delete("n")

    run = paused(middle("go on?", before=before))
    assert run.state == {"n": 1}
    rows = [row.text for row in run.walk if row.stage_id == "stage"]
    assert rows == ["Ran Stage", "Read n", "Emitted seen: 1", "Paused: go on?"]
    assert run.commits[1].values == {}


@pytest.mark.parametrize("answer", [None, 0, "", False, [], {"a": [1, None]}, "yes"])
def test_any_plain_value_is_an_answer(answer):
    chart = flow_chart("c", lambda s: [interrupt(s, "which?")], id="a").build()
    assert go_on(chart, paused(chart), answer).result == [answer]


def test_what_a_question_expects_and_was_given_goes_with_it():
    def stage(scope):
        return interrupt(scope, "which?", expects=["a", "b"], data={"rows": [1, 2]})

    run = paused(flow_chart("c", stage, id="a").build())
    assert run.pause == {"reason": "which?", "expects": ["a", "b"], "data": {"rows": [1, 2]}}
    assert run.checkpoint["pause"]["data"] == {"rows": [1, 2]}


def test_a_scope_that_has_ended_asks_nothing():
    kept = []
    chart = flow_chart("c", kept.append, id="a")
    chart = chart.add_function("B", lambda s: interrupt(kept[0], "late?"), id="b").build()
    with pytest.raises(ScopeClosed) as caught:
        chart.run_sync()
    assert caught.value.run.status == "failed"


# -- wherever it happens -----------------------------------------------------------------------


def ask(scope):
    return interrupt(scope, "go on?")


def keep(scope):
    scope["said"] = interrupt(scope, "go on?")


KEEPS = (
    flow_chart("keeps", lambda s: s.set("before", 1), id="k0")
    .add_function("K", keep, id="k1")
    .add_function("More", lambda s: s.set("more", s["said"]), id="k2")
    .build()
)


def start():
    return flow_chart("c", lambda s: s.set("n", 1), id="load")


def finished(builder):
    return builder.add_function("After", lambda s: s.set("after", True), id="after").build()


def in_a_judge():
    decider = start().add_decider("D", ask, id="d")
    decider.branch("yes", lambda s: s.set("said", "yes")).branch("no", lambda s: None)
    return finished(decider.end())


def in_a_selectors_judge():
    selector = start().add_selector("S", lambda s: [ask(s)], id="s", merge="keys")
    return finished(selector.branch("yes", lambda s: s.set("said", "yes")).end())


def in_items():
    each = flow_chart("each", lambda s: s.args["item"], id="e").build()

    def items(scope):
        return [ask(scope)]

    return finished(
        start()
        .add_parallel_for_each("E", id="each", items=items, branch=each, max_branches=2, into="out")
        .add_function("Keep", lambda s: s.set("said", s["out"][0].value), id="keep")
    )


def in_a_mount():
    return finished(start().add_subchart("M", KEEPS, id="m", outputs={"said": "more"}))


def in_a_mount_in_a_mount():
    inner = flow_chart("inner", lambda s: s.set("x", 1), id="i0").add_subchart(
        "M", KEEPS, id="m", outputs={"said": "more"}
    )
    inner = inner.add_function("Z", lambda s: s.set("z", s["said"]), id="i1").build()
    return finished(start().add_subchart("N", inner, id="n", outputs={"said": "z"}))


def in_a_lazy_mount():
    return finished(
        start().add_subchart("M", lambda: KEEPS, id="m", lazy=True, outputs={"said": "more"})
    )


def in_a_chart_branch():
    decider = start().add_decider("D", lambda s: "chart", id="d")
    return finished(decider.branch("chart", KEEPS, outputs={"said": "more"}).end())


def in_a_fork():
    fork = start().add_fork("F", id="f", merge="keys")
    fork.branch("a", keep).branch("b", lambda s: s.set("b", 1))
    return finished(fork.end())


def in_a_chart_in_a_fork():
    fork = start().add_fork("F", id="f", merge="keys")
    fork.branch("b", lambda s: s.set("b", 1)).branch("a", KEEPS, outputs={"said": "more"})
    return finished(fork.end())


def in_a_selected_branch():
    selector = start().add_selector("S", lambda s: ["a", "b"], id="s", merge="keys")
    return finished(selector.branch("a", keep).branch("b", lambda s: s.set("b", 1)).end())


def in_a_fan_out():
    return finished(
        start()
        .add_parallel_for_each(
            "E", id="each", items=lambda s: [1], branch=KEEPS, max_branches=2, into="out"
        )
        .add_function("Keep", lambda s: s.set("said", s["out"][0].value["more"]), id="keep")
    )


def in_a_fan_out_in_a_fan_out():
    inner = (
        flow_chart("inner", lambda s: None, id="i")
        .add_parallel_for_each(
            "E", id="each", items=lambda s: [1, 2], branch=KEEPS, max_branches=1, into="out"
        )
        .add_function("Out", lambda s: s["out"][0].value["more"], id="o")
        .build()
    )
    return finished(
        start()
        .add_parallel_for_each(
            "O", id="outer", items=lambda s: [1], branch=inner, max_branches=2, into="out"
        )
        .add_function("Keep", lambda s: s.set("said", s["out"][0].value), id="keep")
    )


def in_a_loop():
    def body(scope):
        scope["i"] = scope.get("i", 0) + 1
        if scope["i"] == 2:
            scope["said"] = interrupt(scope, "go on?")
        if scope["i"] == 4:
            scope["after"] = True
            scope.stop()

    return start().add_function("Body", body, id="body").loop_to("body").build()


def in_a_stage_that_is_tried_again():
    return finished(start().add_function("R", keep, id="r", retry=Retry(3)))


PLACES = [
    *(in_a_judge, in_a_selectors_judge, in_items, in_a_mount, in_a_mount_in_a_mount),
    *(in_a_lazy_mount, in_a_chart_branch, in_a_fork, in_a_chart_in_a_fork, in_a_selected_branch),
    *(in_a_fan_out, in_a_fan_out_in_a_fan_out, in_a_loop, in_a_stage_that_is_tried_again),
]


@pytest.mark.parametrize("make", PLACES, ids=lambda make: make.__name__)
def test_wherever_a_run_pauses_it_goes_on_there_and_runs_to_its_end(make):
    run = paused(make(), {"given": 1}, state={"initial": 2})
    assert run.pause["reason"] == "go on?"
    done = go_on(make(), run, "yes")  # in a chart made anew
    assert done.status == "ok"
    assert done.state["said"] == "yes"
    assert done.state["after"] is True
    assert done.state["initial"] == 2
    assert done.args == {"given": 1}
    assert len(set(ids(done))) == len(ids(done))
    assert len(done.commits.whole()) == done.steps_executed
    assert told(done, "pause") == told(run, "pause")
    assert len(told(done, "resume")) == 1


def test_what_came_before_the_pause_does_not_run_again():
    calls = []
    chart = (
        flow_chart("c", lambda s: calls.append("load"), id="load")
        .add_subchart("M", KEEPS, id="m", inputs=lambda s: calls.append("inputs"))
        .build()
    )
    go_on(chart, paused(chart), "yes")
    assert calls == ["load", "inputs"]


def test_an_answer_may_be_given_twice_and_each_run_stands_alone():
    chart = in_a_mount()
    run = paused(chart)
    one, other = go_on(chart, run, "one"), go_on(chart, run, "other")
    assert (one.state["said"], other.state["said"]) == ("one", "other")
    assert run.state == {"n": 1}
    assert len(run.walk) < len(one.walk) == len(other.walk)


def test_loops_count_on_across_a_pause():
    chart = in_a_loop()
    run = paused(chart, limits=Limits(loops=3))
    assert go_on(chart, run, "yes", limits=Limits(loops=3)).state["i"] == 4
    with pytest.raises(LimitReached):
        go_on(chart, run, "yes", limits=Limits(loops=2))


def test_a_fork_in_a_loop_counts_its_branches_on_across_a_pause():
    def gate(scope):
        scope["i"] = scope.get("i", 0) + 1
        if scope["i"] == 4:
            scope.stop()

    def a(scope):
        return interrupt(scope, "go on?") if scope["i"] == 2 else None

    fork = flow_chart("c", gate, id="gate").add_fork("F", id="f")
    chart = fork.branch("a", a).branch("b", lambda s: None).end().loop_to("gate").build()
    done = go_on(chart, paused(chart), "yes")
    names = ids(done)
    assert [name for name in names if name[0] == "a"] == ["a#0", "a#1", "a#2", "a#3"]
    assert [name for name in names if name[0] == "b"] == ["b#0", "b#1", "b#2"]


# -- several at once ---------------------------------------------------------------------------


def asking_branches(items=(0, 1, 2, 3)):
    def stage(scope):
        if scope.args["item"] % 2:
            scope["said"] = interrupt(scope, f"item {scope.args['item']}?")
        return scope.args["item"]

    each = (
        flow_chart("each", stage, id="e")
        .add_function("More", lambda s: s.set("more", 1) or s.get("said", "unasked"), id="more")
        .build()
    )
    return finished(
        start().add_parallel_for_each(
            "E", id="each", items=lambda s: list(items), branch=each, max_branches=9, into="out"
        )
    )


def test_siblings_finish_before_the_run_pauses_and_the_first_question_is_asked():
    run = paused(asking_branches())
    assert run.pause["reason"] == "item 1?"
    assert [slot.status for slot in run.slots("each")] == [
        *("ok", "not_reached", "ok", "not_reached"),
    ]
    assert run.slots("each")[1].reason == "the run paused while it ran"
    assert run.ended_at["runtime_stage_id"] == "each~1/e#0"


def test_each_answer_goes_to_the_first_branch_that_waits():
    chart = asking_branches()
    second = go_on(chart, paused(chart), "one")
    assert (second.status, second.pause["reason"]) == ("paused", "item 3?")
    assert [slot.status for slot in second.slots("each")] == ["ok", "ok", "ok", "not_reached"]
    done = go_on(chart, second, "three")
    assert done.status == "ok"
    assert [slot.value for slot in done.state["out"]] == ["unasked", "one", "unasked", "three"]
    assert done.state["after"]


def test_a_branch_that_asks_again_is_asked_before_the_next_one():
    def stage(scope):
        index = scope.args["index"]
        return [interrupt(scope, f"{index} first?"), interrupt(scope, f"{index} second?")]

    each = flow_chart("each", stage, id="e").build()
    chart = finished(
        start().add_parallel_for_each(
            "E", id="each", items=lambda s: ["a", "b"], branch=each, max_branches=9, into="out"
        )
    )
    run, asked = paused(chart), []
    while run.status == "paused":
        asked.append(run.pause["reason"])
        run = go_on(chart, run, len(asked))
    assert asked == ["0 first?", "0 second?", "1 first?", "1 second?"]
    assert [slot.value for slot in run.state["out"]] == [[1, 2], [3, 4]]


def test_a_branch_that_fails_after_its_answer_is_a_failed_slot():
    def stage(scope):
        raise OSError(f"cannot {interrupt(scope, 'go on?')}")

    each = flow_chart("each", stage, id="e").build()
    chart = finished(
        start().add_parallel_for_each(
            "E", id="each", items=lambda s: [1], branch=each, max_branches=9, into="out"
        )
    )
    done = go_on(chart, paused(chart), "restart")
    assert done.status == "ok"
    assert done.state["out"][0].reason == "OSError: cannot restart in stage 'each'"


def test_children_of_a_fork_that_wait_are_asked_one_after_the_other_and_then_merged():
    fork = start().add_fork("F", id="f", merge="keys", into="out")
    for word in "abc":
        fork.branch(word, lambda s, word=word: s.set(word, interrupt(s, f"{word}?")))
    chart = finished(fork.end())
    run, asked = paused(chart), []
    while run.status == "paused":
        assert "after" not in run.state
        asked.append(run.pause["reason"])
        run = go_on(chart, run, asked[-1].upper())
    assert asked == ["a?", "b?", "c?"]
    assert [run.state[word] for word in "abc"] == ["A?", "B?", "C?"]


# -- what a checkpoint is ----------------------------------------------------------------------


def test_a_checkpoint_is_plain_json_that_says_what_is_asked_and_where():
    run = paused(in_a_mount())
    checkpoint = through_json(run)
    assert checkpoint == run.checkpoint
    assert checkpoint["pause"]["reason"] == "go on?"
    assert checkpoint["paused_at"] == {
        "stage": "K",
        "stage_id": "k1",
        "runtime_stage_id": "m/k1#3",
    }
    assert checkpoint["procedure"] == "c"
    assert checkpoint["steps_executed"] == 4
    assert checkpoint["state"] == {"n": 1}


def test_only_a_paused_run_has_a_checkpoint():
    chart = asking(execute=lambda s: None)
    assert chart.run_sync().checkpoint is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda c: None,
        lambda c: [],
        lambda c: {},
        lambda c: c | {"format": "other"},
        lambda c: c | {"place": None},
        lambda c: c | {"place": c["place"] | {"kind": "other"}},
        lambda c: c | {"place": c["place"] | {"levels": [[9, None]]}},
        lambda c: c | {"place": c["place"] | {"levels": [[0, "x"]]}},
        lambda c: c | {"place": c["place"] | {"levels": [[0, None], [0, None]]}},
        lambda c: c | {"place": c["place"] | {"kind": "branches", "pending": {"0": c["place"]}}},
        lambda c: c | {"record": {}},
    ],
)
def test_a_damaged_checkpoint_is_refused_before_anything_runs(damage):
    calls = []
    chart = asking(resume=lambda s, answer: calls.append(answer))
    checkpoint = damage(through_json(paused(chart)))
    with pytest.raises(CheckpointError) as caught:
        chart.resume_sync(checkpoint, "yes")
    assert caught.value.fix
    assert calls == []


def test_a_checkpoint_of_another_chart_is_refused_with_both_names():
    with pytest.raises(CheckpointError, match="other stages") as caught:
        in_a_mount().resume_sync(through_json(paused(asking())), "yes")
    assert caught.value.code == "other_chart"


def test_limits_and_signals_are_those_of_the_second_run():
    chart, stop = asking(), Stop()
    run = paused(chart)
    stop.set("window closed")
    with pytest.raises(RunCancelled):
        go_on(chart, run, "yes", signal=stop)
    assert go_on(chart, run, "yes").status == "ok"


def test_a_branch_nobody_declared_is_known_after_a_pause():
    rules = rb.RuleSet("r", "1", [rb.Rule({"missing": {"gt": 1}}, "x")], default="x")
    decider = flow_chart("c", lambda s: None, id="load").add_decider(
        "D", lambda s: rb.decide(s, rules), id="d"
    )
    chart = decider.branch("x", lambda s: None).end().add_function("Ask", keep, id="ask").build()
    run = paused(chart)
    assert run.structure.node("declined") is not None
    done = go_on(chart, run, "yes")
    assert done.structure.node("declined") is not None
    assert [row.stage_id for row in done.walk if row.type == "stage"][2] == "declined"
