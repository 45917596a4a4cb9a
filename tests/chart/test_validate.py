"""What keeps a chart from being built: each fault by itself, told with its place and a remedy."""

from __future__ import annotations

import pytest

import runbook_nb as rb
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.model import MAX_NESTING, Retry
from runbook_nb.chart.validate import check_chart, is_id, nesting, yields
from runbook_nb.errors import ChartError


def nothing(scope):
    return None


def rows(scope):
    yield 1


async def stream(scope):
    yield 1


INNER = flow_chart("inner", nothing, id="in").build()
RULES = [rb.Rule({"n": {"gt": 1}}, "big")]


def start():
    return flow_chart("c", nothing, id="a")


def problems(builder):
    with pytest.raises(ChartError) as caught:
        builder.build()
    return caught.value.problems


def only(builder):
    """Give the one problem a builder has."""
    (found,) = problems(builder)
    return found


def function(name="F", **more):
    return start().add_function(name, **{"fn": nothing, "id": "x"} | more)


def subchart(**more):
    return start().add_subchart("S", **{"chart": INNER, "id": "x"} | more)


def fork(*branches, **more):
    owner = start().add_fork("F", id="x", **more)
    for word, fn, options in branches:
        owner.branch(word, fn, **options)
    return owner.end()


def selector(*args, **more):
    owner = start().add_selector("S", *args, id="x", **more)
    return owner.branch("big", nothing).end()


def decider(*args, default=None, **more):
    owner = start().add_decider("D", *args, id="x", **more).branch("big", nothing)
    return (owner if default is None else owner.default(default)).end()


def fan(**more):
    options = {"items": nothing, "branch": INNER, "max_branches": 1, "into": "o"} | more
    return start().add_parallel_for_each("E", id="x", **options)


FAULTS = [
    # stages of every kind
    (lambda: function(fn=None), "which cannot be called"),
    (lambda: function(fn=rows), "is a generator"),
    (lambda: function(fn=stream), "is a generator"),
    (lambda: function(name=" "), "a stage needs a name"),
    (lambda: function(retry=3), "retry is 3"),
    (lambda: function(description=3), "the description is 3"),
    (lambda: function(tags=["~"]), "non-blank texts without ~"),
    (lambda: function(tags=["a", "a"]), "a tag is given twice"),
    (lambda: start().add_streaming("S", nothing, id="x", stream=" "), "stream is ' '"),
    (lambda: start().add_pausable("P", nothing, None, id="x"), "resume is None"),
    (lambda: start().add_pausable("P", nothing, rows, id="x"), "resume is a generator"),
    (lambda: start().add_pausable("P", None, nothing, id="x"), "function is None"),
    # charts in charts
    (lambda: subchart(chart=nothing), "the chart is function, not a built chart"),
    (lambda: subchart(chart=start()), "the chart is FlowChartBuilder"),
    (lambda: subchart(lazy=True), "a lazy chart is a function that gives it"),
    (lambda: subchart(lazy=True, chart=5), "a lazy chart is a function that gives it"),
    (lambda: subchart(inputs=5), "inputs is 5, neither a function nor a mapping"),
    (lambda: subchart(inputs={"a": 1}), "inputs is {'a': 1}"),
    (lambda: subchart(outputs={"": "a"}), "outputs is {'': 'a'}"),
    (lambda: subchart(inputs=rows), "inputs is a generator"),
    (lambda: subchart(outputs=rows), "outputs is a generator"),
    (lambda: subchart(array_merge="join"), "array_merge is 'join'"),
    (lambda: subchart(tags=5), "non-blank texts"),
    # side by side
    (fork, "a fork needs at least one branch"),
    (lambda: fork(("b", nothing, {}), into=" "), "into is ' ', not a state key"),
    (lambda: fork(("b", nothing, {}), merge="list"), "merge is 'list'"),
    (lambda: fork(("b", nothing, {}), merge=rows), "merge is a generator"),
    (lambda: fork(("b", nothing, {}), max_concurrency=0), "max_concurrency is 0"),
    (lambda: fork(("b", nothing, {}), max_concurrency=True), "max_concurrency is True"),
    (selector, "a selector judges by exactly one"),
    (lambda: selector(nothing, rules=RULES), "a selector judges by exactly one"),
    (lambda: selector(5), "judge is 5, which cannot be called"),
    (lambda: selector(rows), "judge is a generator"),
    (lambda: selector(rules=[rb.Rule({"n": {"gt": 1}}, "bgi")]), "a rule routes to 'bgi'"),
    (lambda: selector(rules=5), "rules is int, not a RuleSet"),
    # deciders
    (decider, "a decider judges by exactly one"),
    (lambda: decider(nothing, default="bgi"), "the default 'bgi' is no branch"),
    (lambda: start().add_decider("D", nothing, id="x").end(), "needs at least one branch"),
    (
        lambda: decider(
            rules=rb.RuleSet(
                "r", "1", [rb.Rule({"n": {"gt": 1}}, "b")], default="b", unreadable="skip"
            )
        ),
        "rule set 'r' routes to 'b'",
    ),
    # fan-outs
    (lambda: fan(items=[1]), "items is list, which cannot be called"),
    (lambda: fan(items=rows), "items is a generator"),
    (lambda: fan(branch=5), "branch is int"),
    (lambda: fan(branch=start()), "branch is FlowChartBuilder"),
    (lambda: fan(max_branches=0), "max_branches is 0"),
    (lambda: fan(max_concurrency=1.5), "max_concurrency is 1.5"),
    (lambda: fan(into=""), "into is ''"),
    (lambda: fan(subject=" "), "subject is ' '"),
]


@pytest.mark.parametrize(("make", "words"), FAULTS)
def test_each_fault_is_told_with_the_stage_it_is_in_and_what_to_write(make, words):
    found = only(make())
    assert words in found.message
    assert found.where == "'x'"
    assert found.fix
    assert found.fix not in found.message


BRANCH_FAULTS = [
    (("b", None, {}), "which cannot be called"),
    (("b", rows, {}), "is a generator"),
    (("b", nothing, {"resume": 5}), "resume is 5"),
    (("b", nothing, {"stream": ""}), "stream is ''"),
    (("b", nothing, {"resume": nothing, "stream": "s"}), "either asks or streams"),
    (("b", nothing, {"inputs": {"a": "b"}}), "are for a branch that is a chart"),
    (("b", nothing, {"propagate_stop": True}), "are for a branch that is a chart"),
    (("b", INNER, {"resume": nothing}), "are for a branch that is a function"),
    (("b", INNER, {"stream": "s"}), "are for a branch that is a function"),
    (("b", INNER, {"retry": Retry(2)}), "not tried again as a whole"),
    (("b", INNER, {"blocking": True}), "not blocking as a whole"),
    (("b", INNER, {"lazy": True}), "a lazy chart is a function"),
    (("b", nothing, {"tags": [""]}), "non-blank texts"),
    (("b", nothing, {"loop_to": "a"}), "cannot go back to a stage"),
]


@pytest.mark.parametrize(("branch", "words"), BRANCH_FAULTS)
def test_each_fault_of_a_branch_is_told_with_its_word(branch, words):
    found = only(fork(branch))
    assert words in found.message
    assert found.where == "'b'"
    assert found.fix


@pytest.mark.parametrize("word", ["a/b", "a#0", "a~1", " a", "", None])
def test_the_word_of_a_branch_is_an_id(word):
    found = problems(fork((word, nothing, {})))
    assert any("an id may not be blank" in problem.message for problem in found)
    assert all(problem.fix for problem in found)


def test_a_branch_is_declared_once():
    found = problems(fork(("b", nothing, {}), ("b", nothing, {})))
    assert [(p.where, p.message) for p in found] == [("'x'", "branch 'b' is declared twice")]


def test_a_default_is_for_deciders():
    owner = start().add_selector("S", nothing, id="x").branch("b", nothing).default("b")
    found = only(owner.end())
    assert (found.where, found.message) == ("'x'", "only a decider has a default")
    assert found.fix


def test_a_list_of_branches_that_was_never_ended_is_not_left_out_in_silence():
    builder = start()
    builder.add_decider("D", nothing, id="x").branch("b", nothing)
    found = only(builder)
    assert "its branches were never ended" in found.message
    assert (found.where, found.fix) == ("'x'", "write .end() behind its last branch")
    assert start().add_fork("F", id="f").branch("b", nothing).end().build().stages


def test_the_first_stage_asks_or_streams_or_neither():
    found = only(flow_chart("c", nothing, id="x", resume=nothing, stream="s"))
    assert (found.where, found.message) == ("'x'", "a stage either asks or streams")


def test_one_id_names_one_stage_in_all_of_a_chart():
    found = only(start().add_subchart("S", INNER, id="a"))
    assert (found.where, found.message) == ("'a'", "two stages have this id ('c' and 'S')")
    # Inside a mounted chart the same ids are others, and branches step aside.
    builder = start().add_subchart("S", flow_chart("i", nothing, id="a").build(), id="s")
    chart = builder.add_fork("F", id="f").branch("a", nothing).branch("f", nothing).end().build()
    assert [branch.id for branch in chart.stages[2].branches] == ["f.a", "f.f"]


def test_a_chart_needs_a_stage_and_the_first_one_a_function():
    found = only(flow_chart("c"))
    assert (found.where, found.message) == ("stages", "a chart needs at least one stage")
    assert "which cannot be called" in only(flow_chart("c", id="a")).message
    assert "an id may not be blank" in only(flow_chart("c", nothing)).message


def test_every_fault_of_a_chart_is_told_at_once():
    builder = (
        flow_chart("", None, id="a/b", output=5, input_schema=3)
        .add_subchart("S", 5, id="s", inputs=3, array_merge="x")
        .add_fork("F", id="f", merge="x", into="")
        .branch("b", nothing, loop_to="a", inputs={"a": "b"})
        .end()
        .add_selector("S", id="e")
        .branch("b", nothing)
        .end()
        .loop_to("nowhere")
    )
    builder.add_fork("G", id="g")
    found = problems(builder.add_function("L", nothing, id="l"))
    wheres = {problem.where for problem in found}
    assert {"name", "'a/b'", "'s'", "'f'", "'b'", "'e'", "'g'", "'l'", "output"} <= wheres
    assert "loop_to('nowhere')" in wheres
    assert len(found) >= 14
    with pytest.raises(ChartError) as caught:
        builder.build()
    assert all(problem.message in str(caught.value) for problem in found)


# -- depth -------------------------------------------------------------------------------------


def mounted(depth):
    chart = INNER
    for number in range(depth):
        chart = start().add_subchart("S", chart, id=f"s{number}").build()
    return chart


def test_charts_nest_to_a_stated_depth():
    assert nesting(mounted(3)) == 3
    assert nesting(start().add_subchart("L", lambda: INNER, id="l", lazy=True).build()) == 1
    chart = mounted(MAX_NESTING)
    assert chart.run_sync().status == "ok"
    found = only(start().add_subchart("S", chart, id="x"))
    assert f"the most is {MAX_NESTING}" in found.message
    assert found.fix
    assert "the most is" in only(fan(branch=chart)).message


# -- the parts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("good", ["a", "a b", "Ä", "a.b", "a:b", "1", "-"])
def test_what_can_be_an_id(good):
    assert is_id(good)


@pytest.mark.parametrize("bad", ["", " ", " a", "a ", "a/b", "a#", "~", "a\nb", "a\tb", None, 1])
def test_what_cannot_be_an_id(bad):
    assert not is_id(bad)


def test_what_only_makes_a_generator():
    import types

    @types.coroutine
    def old_style(scope):
        yield from ()

    async def later(scope):
        return None

    assert [yields(fn) for fn in (rows, stream, old_style, later, print, None)] == [
        *(True, True, False, False, False, False),
    ]


def test_a_sound_chart_has_no_problem():
    assert check_chart("c", mounted(2).stages) == []


def test_a_rule_and_a_branch_that_nearly_agree_are_both_named():
    """Which of the two is misspelt is not known: the branch may be."""
    with pytest.raises(ChartError) as caught:
        (
            rb.flow_chart("h", lambda s: None, id="a")
            .add_decider("D", rules=rb.RuleSet("disk", "v1", [FULL], "ok"), id="disk")
            .branch("ful", lambda s: None)
            .branch("ok", lambda s: None)
            .end()
            .build()
        )
    assert str(caught.value).endswith(
        "rule set 'disk' routes to 'full', which is no branch of this decider; "
        "the chart's branch is 'ful': make them the same"
    )


def test_a_branch_that_another_rule_leads_to_is_not_the_misspelt_one():
    rules = rb.RuleSet("disk", "v1", [FULL, rb.Rule({"n": {"gt": 2}}, "ful")], "ok")
    with pytest.raises(ChartError, match=r"routes to 'full'.*did you mean 'ful'"):
        (
            rb.flow_chart("h", lambda s: None, id="a")
            .add_decider("D", rules=rules, id="disk")
            .branch("ful", lambda s: None)
            .branch("ok", lambda s: None)
            .end()
            .build()
        )


FULL = rb.Rule({"n": {"gt": 9}}, "full")
