"""Function stages, deciders and retries: what runs, what it gives and what is recorded."""

from __future__ import annotations

import asyncio
import types
from functools import partial

import pytest

import runbook_nb as rb
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.model import Retry
from runbook_nb.errors import ChartError, RuleError, ScopeClosed
from runbook_nb.record.narrative import condition_words
from runbook_nb.record.slots import Slots

RULES = rb.RuleSet("size", "v1", [rb.Rule({"n": {"gt": 1}}, "big")], default="small")


def decided(judge=None, n=3, branches=("big", "small"), default=None, **more):
    """A chart that writes n, decides, and writes the word of the branch it took."""
    builder = flow_chart("c", lambda s: s.set("n", n) if n is not None else None, id="load")
    decider = builder.add_decider("Size", judge, id="size", **more)
    for word in branches:
        decider.branch(word, lambda s, word=word: s.set("word", word) or f"took {word}")
    if default is not None:
        decider.default(default)
    return decider.end().build()


def failing(chart, error=ChartError, **more):
    with pytest.raises(error) as caught:
        chart.run_sync(**more)
    return caught.value


# -- functions ---------------------------------------------------------------------------------


def test_stages_run_in_order_and_the_last_one_gives_the_result():
    chart = (
        flow_chart("c", lambda s: "dropped", id="a")
        .add_function("B", lambda s: s.set("seen", "a" in s), id="b")
        .add_function("C", lambda s: [1, 2], id="c")
        .build()
    )
    run = chart.run_sync()
    assert (run.status, run.result, run.state) == ("ok", [1, 2], {"seen": False})
    assert run.steps_executed == 3


def test_sync_and_async_stages_mix_and_awaitables_that_are_returned_are_awaited():
    async def later(scope):
        await asyncio.sleep(0)
        scope["async"] = 1

    @types.coroutine
    def old_style(scope):
        yield from asyncio.sleep(0).__await__()
        scope["old"] = 1
        return "old"

    chart = (
        flow_chart("c", later, id="a")
        .add_function("B", later, id="b")
        .add_function("C", old_style, id="c")
        .build()
    )
    run = chart.run_sync()
    assert (run.state, run.result) == ({"async": 1, "old": 1}, "old")
    assert asyncio.run(chart.run()).state == run.state


def test_a_chart_runs_inside_a_running_loop_and_by_many_at_once():
    chart = decided(rules=RULES)

    async def main():
        runs = await asyncio.gather(*(chart.run() for _ in range(5)))
        return [*runs, chart.run_sync()]

    runs = asyncio.run(main())
    assert {tuple(run.state.items()) for run in runs} == {(("n", 3), ("word", "big"))}
    assert len({str(run.walk) for run in runs}) == 1


def test_a_function_that_only_makes_a_generator_is_found_when_it_is_called():
    def rows(scope):
        yield 1

    async def stream(scope):
        yield 1

    for fn in (partial(rows), partial(stream)):
        error = failing(flow_chart("c", fn, id="a").build())
        assert error.code == "generator_stage"
        assert error.run.status == "failed"


def test_no_task_or_thread_is_made_for_sync_stages():
    counted = []

    def count(scope):
        counted.append(len(asyncio.all_tasks()))

    rule = rb.RuleSet("r", "1", [rb.Rule(lambda f: f["n"] > 1, "big")], default="small")
    each = (
        flow_chart("e", count, id="e")
        .add_function("N", lambda s: s.set("n", 1), id="n")
        .add_decider("D", id="d", rules=rule)
        .branch("big", count)
        .branch("small", count)
        .end()
        .build()
    )
    inner = (
        flow_chart("i", count, id="i")
        .add_parallel_for_each(
            "I",
            id="inner",
            items=lambda s: list(range(300)),
            branch=each,
            max_branches=300,
            into="o",
        )
        .build()
    )
    chart = (
        flow_chart("c", count, id="c")
        .add_parallel_for_each(
            "E", id="each", items=lambda s: [1, 2], branch=inner, max_branches=2, into="o"
        )
        .build()
    )
    assert asyncio.run(chart.run()).fan_outs[0].ok == 2
    assert set(counted) == {1}


# -- deciders ----------------------------------------------------------------------------------


def test_rules_decide_by_the_state_with_evidence_on_the_record():
    run = decided(rules=RULES).run_sync()
    assert run.state["word"] == "big"
    assert run.result == "took big"
    assert [row.text for row in run.walk if row.stage_id == "size"] == [
        "Ran Size",
        "Read n",
        condition_words(rb.decide({"n": 3}, RULES)),
    ]
    made = run.decisions[0]
    assert (made.runtime_stage_id, made.subject, made.item) == ("size#1", None, None)
    assert made.decision.branch == "big"


def test_a_judge_may_return_a_decision_and_its_evidence_is_kept():
    run = decided(lambda s: rb.decide(s, RULES)).run_sync()
    assert run.decisions[0].decision.sentence == "big by rule 1 of size v1: n 3 > 1"
    assert run.rule_sets() == [RULES]


def test_a_judge_may_return_a_word_or_be_async():
    async def judge(scope):
        await asyncio.sleep(0)
        return "small"

    for each in (judge, lambda s: "small"):
        run = decided(each).run_sync()
        assert run.state["word"] == "small"
        assert run.decisions == []
        assert "Chose small without evidence" in [row.text for row in run.walk]


def test_a_word_that_names_no_branch_fails_the_run_and_names_a_near_one():
    error = failing(decided(lambda s: "bgi"))
    assert (error.code, error.where) == ("unknown_branch", "size")
    assert "did you mean 'big'" in str(error)
    assert [row.type for row in error.run.walk][-1] == "error"
    assert "big and small" in str(failing(decided(lambda s: None)))


def test_the_default_takes_words_that_name_no_branch_and_decisions_that_name_none():
    run = decided(lambda s: 5, default="small").run_sync()
    assert "Chose small without evidence, for the answer 5" in [row.text for row in run.walk]
    undecided = rb.RuleSet("none", "1", [rb.Rule({"n": {"gt": 9}}, "big")])
    for chart in (
        decided(rules=undecided, default="small"),
        decided(lambda s: rb.decide(s, undecided), default="small"),
    ):
        run = chart.run_sync()
        assert run.state["word"] == "small"
        assert run.decisions[0].decision.branch is None
        shown = str(run.walk)
        assert "1 small" in shown or "small" in shown
        assert "not taken" in shown.split("big")[1].splitlines()[0]
    error = failing(decided(rules=undecided))
    assert "no rule matched and it has no default" in str(error)


def test_counts_follow_a_decision_that_the_deciders_default_rerouted():
    undecided = rb.RuleSet("none", "1", [rb.Rule({"n": {"gt": 9}}, "big")])
    each = decided(rules=undecided, default="small")
    chart = (
        flow_chart("c", lambda s: None, id="s")
        .add_parallel_for_each(
            "E", id="each", items=lambda s: [1, 2], branch=each, max_branches=2, into="o"
        )
        .build()
    )
    counts = chart.run_sync().fan_outs[0]
    assert (counts.decided, counts.by_branch) == (2, {"small": 2})


def test_a_decision_that_names_an_undeclared_branch_is_not_rerouted():
    chart = decided(lambda s: rb.decide(s, [rb.Rule({"n": {"gt": 1}}, "huge")]), default="small")
    assert "'huge'" in str(failing(chart))


def test_a_missing_declined_branch_is_taken_as_one_that_writes_nothing():
    chart = decided(lambda s: rb.decide(s, RULES), n=None)
    run = chart.run_sync()
    assert run.state == {}
    assert [(row.stage, row.stage_id) for row in run.walk if row.type == "stage"][-1] == (
        "Declined",
        "declined",
    )
    node = run.structure.node("declined")
    assert (node.branch, node.decider, node.added) == ("declined", "size", True)
    assert chart.structure.node("declined") is None
    assert rb.decide({}, RULES).sentence in [
        row.text.partition(" (tried")[0] for row in run.walk if row.type == "condition"
    ]


def test_added_declined_branches_have_ids_of_their_own_whatever_else_is_called_so():
    def judge(scope):
        return rb.decide(scope, RULES)

    builder = flow_chart("c", lambda s: None, id="declined")
    for name in ("one", "two"):
        builder.add_decider(name, judge, id=name).branch("big", print).branch("small", print).end()
    run = builder.build().run_sync()
    stages = [row.stage_id for row in run.walk if row.type == "stage"]
    assert stages == ["declined", "one", "one.declined", "two", "two.declined"]
    assert {n.key for n in run.structure.nodes if n.added} == {"one.declined", "two.declined"}


def test_stopping_in_a_judge_skips_the_branch_and_what_follows():
    def judge(scope):
        scope.stop("nothing to judge")
        return "big"

    run = decided(judge).run_sync()
    assert run.status == "ok"
    assert "word" not in run.state
    assert [row.type for row in run.walk][-1] == "break"


def test_function_rules_of_a_decider_read_through_the_scope_and_async_ones_are_awaited():
    async def later(facts):
        await asyncio.sleep(0)
        return facts["n"] > 1

    for rule in (later, lambda facts: facts["n"] > 1):
        rules = rb.RuleSet("f", "1", [rb.Rule(rule, "big")], default="small", unreadable="skip")
        run = decided(rules=rules).run_sync()
        assert run.state["word"] == "big"
        assert [row.text for row in run.walk if row.stage_id == "size"][1] == "Read n"
        assert run.decisions[0].decision.values[0].inputs == (("n", 3),)


def test_an_async_rule_in_a_sync_judge_is_refused():
    async def later(facts):
        return True

    error = failing(decided(lambda s: rb.decide(s, [rb.Rule(later, "big")], "small")), RuleError)
    assert error.code == "async_rule"
    assert error.run.status == "failed"


def test_an_unreadable_value_that_was_declared_to_raise_fails_its_stage():
    rules = rb.RuleSet("r", "1", RULES.rules, default="small", unreadable="raise")
    for n in (None, 3):
        chart = decided(rules=rules, n=n)
        if n is None:
            error = failing(chart, RuleError)
            assert error.run.ended_at["stage_id"] == "size"
        else:
            assert chart.run_sync().state["word"] == "big"


def test_an_answer_that_cannot_be_recorded_fails_the_decider():
    error = failing(decided(lambda s: (x for x in ()), default="small"))
    assert error.run.ended_at["stage_id"] == "size"


# -- retries -----------------------------------------------------------------------------------


def shaky(times, error=OSError, log=None):
    calls = []

    def stage(scope):
        calls.append(1)
        scope["tries"] = len(calls)
        scope.append("log", len(calls))
        if len(calls) <= times:
            scope.stop("not this one")
            raise error(f"try {len(calls)}")
        return "done"

    return stage


def retried(stage, retry):
    return flow_chart("c", stage, id="a", retry=retry).add_function("B", print, id="b").build()


def test_failed_attempts_leave_nothing_behind_but_the_fact():
    run = retried(shaky(2), Retry(3)).run_sync()
    assert run.status == "ok"
    assert run.state == {"tries": 3, "log": [3]}
    assert [row.text for row in run.walk if row.stage_id == "a"] == [
        "Ran c",
        "Attempt 1 of 3 failed, OSError: try 1; tried again",
        "Attempt 2 of 3 failed, OSError: try 2; tried again",
        "Wrote tries",
        "Appended to log",
    ]


def test_the_last_failure_leaves_with_what_it_wrote():
    error = failing(retried(shaky(9), Retry(2)), OSError)
    assert str(error) == "try 2"
    assert error.run.state == {"tries": 2, "log": [2]}
    assert [row.type for row in error.run.walk] == ["stage", "retry", "step", "step", "error"]


@pytest.mark.parametrize(
    "on",
    [
        (TimeoutError,),
        lambda error: False,
        lambda error: 1 / 0,
    ],
)
def test_errors_that_are_not_worth_it_are_not_tried_again(on):
    error = failing(retried(shaky(9), Retry(3, on=on)), OSError)
    assert str(error) == "try 1"


@pytest.mark.parametrize(
    "backoff", [0, 0.001, lambda n: 0.001 * n, lambda n: -5, lambda n: float("nan"), lambda n: "x"]
)
def test_whatever_backoff_gives_the_stage_is_tried_again(backoff):
    assert retried(shaky(1), Retry(2, backoff=backoff)).run_sync().state["tries"] == 2


def test_a_stop_between_attempts_ends_the_run_in_that_stage():
    from runbook_nb._stop import Stop
    from runbook_nb.errors import RunCancelled

    stop = Stop()

    def stage(scope):
        stop.set("no more")
        raise OSError

    error = failing(retried(stage, Retry(5)), RunCancelled, signal=stop)
    assert "between attempts of stage 'c'" in str(error)
    assert [row.type for row in error.run.walk] == ["stage", "retry", "error"]
    assert error.run.ended_at["runtime_stage_id"] == "a#0"


def test_cancelling_a_wait_between_attempts_is_recorded_in_the_stage():
    async def main():
        task = asyncio.ensure_future(retried(shaky(9), Retry(5, backoff=60)).run())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        return caught.value.run

    run = asyncio.run(main())
    assert run.status == "cancelled"
    assert [row.type for row in run.walk] == ["stage", "retry", "error"]


def test_a_judge_may_be_tried_again():
    judge = shaky(1)
    chart = decided(lambda s: judge(s) and "big", retry=Retry(2))
    assert chart.run_sync().state["word"] == "big"


def test_slots_are_what_a_fan_out_gives_when_it_is_last():
    each = flow_chart("e", lambda s: s.args["item"], id="e").build()
    chart = (
        flow_chart("c", lambda s: None, id="s")
        .add_parallel_for_each(
            "E", id="each", items=lambda s: [1, 2], branch=each, max_branches=2, into="o"
        )
        .build()
    )
    run = chart.run_sync()
    assert isinstance(run.result, Slots)
    assert [slot.value for slot in run.result] == [1, 2]
    assert run.state["o"] == run.result


def test_a_stage_that_is_cancelled_while_it_may_be_tried_again_ends_its_stream_and_its_scope():
    kept = []

    def say(scope):
        kept.append(scope)
        scope.stream("on")
        raise asyncio.CancelledError

    chart = flow_chart("say", say, id="say", stream="said", retry=Retry(3)).build()
    heard = []
    with pytest.raises(asyncio.CancelledError) as caught:
        asyncio.run(chart.run(on_stream=heard.append))
    assert [(event.kind, event.complete) for event in heard] == [
        ("start", True),
        ("token", True),
        ("end", False),
    ]
    assert [row.type for row in caught.value.run.walk] == ["stage", "step", "error"]
    with pytest.raises(ScopeClosed):
        kept[0]["late"] = 1
