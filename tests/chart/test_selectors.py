"""Selectors: what is selected, in which order, what the selected leave, and how they fail."""

from __future__ import annotations

import asyncio

import pytest

import runbook_nb as rb
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.model import Retry
from runbook_nb.chart.scope import interrupt
from runbook_nb.errors import ChartError
from runbook_nb.record.narrative import condition_words
from runbook_nb.record.slots import Slots

CHECKS = [
    rb.Rule({"n": {"gt": 9}}, "huge", label="beyond nine"),
    rb.Rule({"n": {"gt": 1}}, "big", label="more than one"),
    rb.Rule({"n": {"lt": 5}}, "small"),
]


def chart_of(judge=None, *, n=3, branches=("small", "big", "huge"), after=True, **more):
    """A chart that writes n, selects, and notes in each branch that it ran."""
    builder = flow_chart("c", lambda s: s.set("n", n), id="load")
    selector = builder.add_selector("Checks", judge, id="checks", **more)
    for word in branches:
        selector.branch(word, lambda s, word=word: s.set(word, s["n"]) or f"{word} done")
    builder = selector.end()
    if after:
        builder.add_function("After", lambda s: s.set("after", True), id="after")
    return builder.build()


def failing(chart, error=ChartError, **options):
    with pytest.raises(error) as caught:
        chart.run_sync(**options)
    return caught.value


def ran(run):
    return [row.stage_id for row in run.walk if row.type == "stage"]


def texts(run, *types):
    return [row.text for row in run.walk if row.type in types]


# -- what is selected --------------------------------------------------------------------------


def test_all_rules_that_are_true_count_and_their_branches_run_in_declared_order():
    run = chart_of(rules=CHECKS).run_sync()
    assert ran(run) == ["load", "checks", "small", "big", "after"]
    assert texts(run, "fork") == ["Forked into small, big"]
    assert "after" in run.state


def test_the_evidence_of_a_selection_is_on_the_record_with_every_rule_that_was_tried():
    run = chart_of(rules=CHECKS).run_sync()
    row = next(row for row in run.walk if row.type == "selector")
    assert row.text == condition_words(rb.select({"n": 3}, CHECKS))
    assert (row.stage_id, row.runtime_stage_id, row.depth) == ("checks", "checks#1", 0)
    assert "n > 9, was 3" in row.text
    assert run.decisions == []  # a selection is no verdict


def test_a_rule_set_selects_as_a_list_of_rules_does():
    rules = rb.RuleSet("checks", "v2", CHECKS[1:], default="small")
    run = chart_of(rules=rules, n=9).run_sync()
    assert ran(run) == ["load", "checks", "big", "after"]
    assert texts(run, "selector") == [condition_words(rb.select({"n": 9}, rules))]


def test_two_rules_for_one_branch_select_it_once():
    rules = [rb.Rule({"n": {"gt": 1}}, "big"), rb.Rule({"n": {"gt": 2}}, "big")]
    assert ran(chart_of(rules=rules).run_sync()) == ["load", "checks", "big", "after"]


@pytest.mark.parametrize(
    ("answer", "selected"),
    [
        (["huge", "small"], ["small", "huge"]),
        (("big",), ["big"]),
        ({"huge", "small", "big"}, ["small", "big", "huge"]),
        (frozenset({"big"}), ["big"]),
        ("huge", ["huge"]),
        (["big", "big"], ["big"]),
        ([], []),
        (None, []),
        (set(), []),
    ],
)
def test_a_function_names_branches_in_any_order_each_counting_once(answer, selected):
    run = chart_of(lambda s: answer, merge="keys").run_sync()
    assert ran(run) == ["load", "checks", *selected, "after"]
    assert {word for word in ("small", "big", "huge") if word in run.state} == set(selected)


def test_words_without_evidence_are_told_as_they_were_named_once_each():
    run = chart_of(lambda s: ["huge", "small", "huge"]).run_sync()
    assert texts(run, "selector") == ["Selected huge, small without evidence"]
    run = chart_of(lambda s: {"huge", "small"}).run_sync()  # a set has no order of its own
    assert texts(run, "selector") == ["Selected small, huge without evidence"]


def test_a_function_may_return_a_selection_and_its_evidence_is_kept():
    run = chart_of(lambda s: rb.select(s, CHECKS)).run_sync()
    assert ran(run) == ["load", "checks", "small", "big", "after"]
    assert texts(run, "selector") == [condition_words(rb.select({"n": 3}, CHECKS))]
    assert texts(run, "step")[1:4] == ["Read n"] * 3


def test_nothing_selected_runs_nothing_and_the_chart_goes_on():
    run = chart_of(lambda s: [], into="found").run_sync()
    assert run.status == "ok"
    assert list(run.state["found"]) == []
    assert run.state["after"]
    assert texts(run, "selector", "fork") == ["Selected nothing without evidence"]


def test_nothing_selected_in_the_last_stage_gives_no_slots():
    run = chart_of(lambda s: None, after=False).run_sync()
    assert isinstance(run.result, Slots)
    assert list(run.result) == []


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (["small", "sma11"], "unknown_branch", "did you mean 'small'"),
        ("bigger", "unknown_branch", "'bigger', which is none of its branches"),
        (5, "bad_selection", "gave int, not a list"),
        ({"small": 1}, "bad_selection", "gave dict, not a list"),
        ([1], "bad_selection", "gave 1 as a branch"),
        ([["small"]], "bad_selection", "their ids are texts"),
    ],
)
def test_what_names_no_branch_fails_the_selector_before_any_branch_runs(answer, code, words):
    error = failing(chart_of(lambda s: answer))
    assert (error.code, error.where) == (code, "checks")
    assert words in str(error)
    assert error.fix
    assert ran(error.run) == ["load", "checks"]
    assert error.run.ended_at["runtime_stage_id"] == "checks#1"
    assert [row.type for row in error.run.walk][-1] == "error"


def test_a_selection_that_names_an_undeclared_branch_fails_with_its_evidence_on_the_record():
    error = failing(chart_of(lambda s: rb.select(s, [rb.Rule({"n": {"gt": 1}}, "bigg")])))
    assert "did you mean 'big'" in str(error)
    assert [row.type for row in error.run.walk][-2:] == ["selector", "error"]


def test_a_judge_may_be_async_blocking_or_tried_again():
    async def later(scope):
        await asyncio.sleep(0)
        return "big"

    calls = []

    def shaky(scope):
        calls.append(1)
        scope["tries"] = len(calls)
        if len(calls) < 2:
            raise OSError
        return ["big"]

    assert ran(chart_of(later).run_sync())[2] == "big"
    assert ran(chart_of(lambda s: "big", blocking=True).run_sync())[2] == "big"
    run = chart_of(shaky, retry=Retry(2)).run_sync()
    assert run.state["tries"] == 2
    assert [row.type for row in run.walk if row.stage_id == "checks"] == [
        *("stage", "retry", "step", "selector", "fork")
    ]


def test_function_rules_of_a_selector_read_through_the_scope_and_may_be_async():
    async def big(facts):
        await asyncio.sleep(0)
        return facts["n"] > 1

    rules = [rb.Rule(big, "big"), rb.Rule(lambda f: f["n"] < 2, "small")]
    assert ran(chart_of(rules=rules).run_sync()) == ["load", "checks", "big", "after"]


def test_stopping_in_the_judge_runs_no_branch_and_nothing_after_it():
    def judge(scope):
        scope.stop("nothing to check")
        return ["big"]

    run = chart_of(judge).run_sync()
    assert (run.status, ran(run)) == ("ok", ["load", "checks"])
    assert texts(run, "break") == ["Stopped here: nothing to check"]


# -- what the selected leave -------------------------------------------------------------------


def test_without_into_and_merge_nothing_reaches_the_chart():
    run = chart_of(lambda s: ["small", "big"]).run_sync()
    assert run.state == {"n": 3, "after": True}


def test_into_holds_a_slot_for_each_selected_branch_in_declared_order():
    run = chart_of(lambda s: ["big", "small"], into="found", after=False).run_sync()
    slots = run.state["found"]
    assert [(slot.index, slot.item, slot.status, slot.value) for slot in slots] == [
        (0, "small", "ok", "small done"),
        (1, "big", "ok", "big done"),
    ]
    assert run.result == slots


def test_the_value_of_a_branch_that_returns_nothing_is_what_it_wrote():
    builder = flow_chart("c", lambda s: s.set("n", 1), id="load").add_selector(
        "S", lambda s: ["a", "b"], id="s", into="found"
    )
    chart = builder.branch("a", lambda s: s.set("x", s["n"])).branch("b", lambda s: None).end()
    assert [slot.value for slot in chart.build().run_sync().state["found"]] == [{"x": 1}, {}]


def test_merged_keys_are_what_the_selected_branches_wrote():
    run = chart_of(lambda s: ["big", "small"], merge="keys").run_sync()
    assert run.state == {"n": 3, "small": 3, "big": 3, "after": True}
    assert [row.text for row in run.walk if row.stage_id == "checks" and row.type == "step"] == [
        "Wrote small",
        "Wrote big",
    ]


def test_one_key_from_two_branches_is_an_error_that_names_both():
    builder = flow_chart("c", lambda s: None, id="load").add_selector(
        "S", lambda s: ["a", "b"], id="s", merge="keys"
    )
    chart = builder.branch("a", lambda s: s.set("x", 1)).branch("b", lambda s: s.set("x", 1)).end()
    error = failing(chart.build())
    assert (error.code, error.where) == ("merge_conflict", "s")
    assert "branches 'a' and 'b' of 'S' both changed 'x'" in str(error)
    assert "x" not in error.run.state


def test_a_merge_function_takes_the_scope_and_the_slots_and_may_be_async():
    async def merge(scope, slots):
        await asyncio.sleep(0)
        scope["words"] = [slot.value for slot in slots]
        scope["before"] = scope["n"]

    run = chart_of(lambda s: ["big", "small"], merge=merge).run_sync()
    assert run.state["words"] == ["small done", "big done"]
    assert run.state["before"] == 3


def test_a_merge_function_may_stop_the_chart_fail_it_and_ask_nothing():
    run = chart_of(lambda s: "big", merge=lambda s, slots: s.stop("found it")).run_sync()
    assert (run.status, "after" in run.state) == ("ok", False)
    assert texts(run, "break") == ["Stopped here: found it"]

    def broken(scope, slots):
        raise KeyError("no such word")

    error = failing(chart_of(lambda s: "big", merge=broken, into="found"), KeyError)
    assert error.run.ended_at["stage_id"] == "checks"
    assert [slot.status for slot in error.run.state["found"]] == ["ok"]  # it was written before
    error = failing(chart_of(lambda s: "big", merge=lambda s, slots: interrupt(s, "which?")))
    assert (error.code, error.where) == ("question_in_merge", "checks")


# -- failing -----------------------------------------------------------------------------------


def broken_chart(**more):
    def broken(scope):
        scope["half"] = 1
        raise ValueError("no route")

    selector = flow_chart("c", lambda s: None, id="load").add_selector(
        "S", lambda s: ["a", "b", "c"], id="s", into="found", **more
    )
    selector.branch("a", lambda s: "fine").branch("b", broken).branch("c", lambda s: "late")
    return selector.end().build()


def test_a_failed_branch_is_a_failed_slot_with_its_reason_and_the_rest_goes_on():
    run = broken_chart().run_sync()
    slots = run.state["found"]
    assert [slot.status for slot in slots] == ["ok", "failed", "ok"]
    assert slots[1].reason == "ValueError: no route in stage 'b'"
    assert run.status == "ok"


def test_what_a_failed_branch_wrote_is_not_merged():
    assert "half" not in broken_chart(merge="keys").run_sync().state


def test_fail_fast_ends_the_chart_with_the_first_failure_and_reaches_no_later_branch():
    error = failing(broken_chart(fail_fast=True), ValueError)
    assert str(error) == "no route"
    assert ran(error.run) == ["load", "s", "a", "b"]
    assert texts(error.run, "fork") == ["Forked into a, b, c; 2 of 3 began"]
    assert [row.stage_id for row in error.run.walk if row.type == "error"] == ["b", "s"]
    assert "found" not in error.run.state


# -- at once -----------------------------------------------------------------------------------


def test_async_branches_run_at_once_at_most_so_many_as_allowed():
    present, most = set(), []

    def branch(word):
        async def work(scope):
            present.add(word)
            most.append(len(present))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            present.discard(word)

        return work

    words = "abcdef"
    for allowed in (1, 2, 6):
        most.clear()
        selector = flow_chart("c", lambda s: None, id="load").add_selector(
            "S", lambda s: list(words), id="s", max_concurrency=allowed
        )
        for word in words:
            selector.branch(word, branch(word))
        assert selector.end().build().run_sync().status == "ok"
        assert max(most) == allowed


def test_branches_that_wait_for_one_another_meet():
    async def main():
        barrier = asyncio.Barrier(3)

        async def meet(scope):
            await barrier.wait()
            return "met"

        selector = flow_chart("c", lambda s: None, id="load").add_selector(
            "S", lambda s: list("abc"), id="s"
        )
        for word in "abc":
            selector.branch(word, meet)
        return await selector.end().build().run()

    run = asyncio.run(asyncio.wait_for(main(), 5))
    assert [slot.value for slot in run.result] == ["met"] * 3


def test_who_finishes_first_does_not_show_in_the_record():
    def work(turns):
        async def stage(scope):
            for _ in range(turns):
                await asyncio.sleep(0)
            scope["turns"] = turns

        return stage

    runs = []
    for turns in ((0, 3, 1), (4, 0, 0)):
        selector = flow_chart("c", lambda s: None, id="load").add_selector(
            "S", lambda s: list("abc"), id="s", into="found"
        )
        for word, count in zip("abc", turns, strict=True):
            selector.branch(word, work(count))
        run = selector.end().build().run_sync()
        runs.append([row.to_dict() for row in run.walk])
    assert runs[0] == runs[1]


# -- as a part of a chart ----------------------------------------------------------------------


def test_a_selector_may_be_the_first_stage_and_the_only_one():
    selector = flow_chart("c").add_selector("S", lambda s: ["a"], id="s", merge="keys")
    chart = selector.branch("a", lambda s: s.set("x", s.args["n"])).end().build()
    assert chart.run_sync({"n": 4}).state == {"x": 4}


def test_branches_may_be_charts_pausable_or_streaming():
    inner = (
        flow_chart("inner", lambda s: s.set("twice", s["n"] * 2), id="twice")
        .add_function("More", lambda s: s.set("more", True), id="more")
        .build()
    )
    heard = []
    chart = (
        flow_chart("c", lambda s: s.set("n", 2), id="load")
        .add_selector("S", lambda s: ["chart", "ask", "say"], id="s", merge="keys", into="found")
        .branch("chart", inner, inputs={"n": "n"}, outputs={"result": "twice"})
        .branch("ask", lambda s: "go on?", resume=lambda s, answer: s.set("said", answer))
        .branch("say", lambda s: s.stream("word"), stream="words")
        .end()
        .build()
    )
    run = chart.run_sync(on_stream=lambda event: heard.append(event.kind))
    assert (run.status, run.pause["reason"]) == ("paused", "go on?")
    assert heard == ["start", "token", "end"]
    done = chart.resume_sync(run.checkpoint, "yes")
    assert done.state["said"] == "yes"
    assert done.state["result"] == 4
    assert [slot.status for slot in done.state["found"]] == ["ok", "ok", "ok"]
    assert "chart/more#2" in [row.runtime_stage_id for row in done.walk]


def test_the_selector_leads_to_its_branches_and_past_them():
    structure = chart_of(rules=CHECKS).structure
    edges = {(edge.source, edge.target, edge.kind) for edge in structure.edges}
    assert {("checks", word, "fork") for word in ("small", "big", "huge")} <= edges
    assert {(word, "after", "next") for word in ("checks", "small", "big", "huge")} <= edges
    node = structure.node("small")
    assert (node.kind, node.branch, node.decider) == ("branch", "small", "checks")
