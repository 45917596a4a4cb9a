"""What a chart may be, that every fault is found at once, and what an author may leave out."""

from __future__ import annotations

import copy
import pickle

import pytest

import runbook_nb as rb
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.model import MAX_NESTING, FanOutStage, Retry
from runbook_nb.chart.validate import check_chart
from runbook_nb.errors import ChartError

RULES = rb.RuleSet("size", "v1", [rb.Rule({"n": {"gt": 1}}, "big")], default="small")


def nothing(scope):
    return None


def problems(builder):
    with pytest.raises(ChartError) as caught:
        builder.build()
    return {(p.where, p.message) for p in caught.value.problems}


def messages(builder):
    return [message for _, message in problems(builder)]


def test_all_faults_of_a_chart_are_told_together_with_where_they_are():
    chart = (
        flow_chart("", nothing, id="a/b")
        .add_function("", 5, id="x")
        .add_function("X", nothing, id="x")
        .add_parallel_for_each(
            "E", id="e", items=[1], branch=nothing, max_branches=0, into=" ", subject=""
        )
    )
    found = problems(chart)
    assert {where for where, _ in found} == {"name", "'a/b'", "'x'", "'e'"}
    assert len(found) >= 8


@pytest.mark.parametrize("bad", ["", "  ", "a/b", "a#1", "a~2", " a", "a ", "a\nb", None, 5])
def test_ids_are_texts_without_the_marks_of_runtime_ids(bad):
    assert any(
        "an id may not be" in message for message in messages(flow_chart("c", nothing, id=bad))
    )


@pytest.mark.parametrize("good", ["a", "a b", "Ärger", "a::b", "host:443", 'it\'s "x"', "a.b"])
def test_ids_may_hold_anything_else(good):
    assert flow_chart("c", nothing, id=good).build().run_sync().walk[0].stage_id == good


def test_two_stages_with_one_id_are_refused_with_both_names():
    chart = flow_chart("First", nothing, id="a").add_function("Second", nothing, id="a")
    assert messages(chart) == ["two stages have this id ('First' and 'Second')"]


@pytest.mark.parametrize(
    ("tags", "fault"),
    [(("a", "a"), "given twice"), (("",), "non-blank"), (("a~b",), "non-blank"), (5, "non-blank")],
)
def test_tags_are_different_texts(tags, fault):
    assert fault in messages(flow_chart("c", nothing, id="a", tags=tags))[0]


def test_one_text_is_one_tag():
    assert flow_chart("c", nothing, id="a", tags="slow").build().stages[0].tags == ("slow",)


def test_a_description_is_a_text():
    assert "not a text" in messages(flow_chart("c", nothing, id="a", description=5))[0]


def test_generators_are_refused_as_stages_judges_and_items():
    def rows(scope):
        yield 1

    async def stream(scope):
        yield 1

    for fn in (rows, stream):
        assert "generator" in messages(flow_chart("c", fn, id="a"))[0]
        judged = flow_chart("c", nothing, id="a").add_decider("D", fn, id="d").branch("x", nothing)
        assert "generator" in messages(judged.end())[0]
        fanned = flow_chart("c", nothing, id="a").add_parallel_for_each(
            "E", id="e", items=fn, branch=lambda i, n: None, max_branches=1, into="o"
        )
        assert "generator" in messages(fanned)[0]


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"attempts": 0}, "attempts"),
        ({"attempts": True}, "attempts"),
        ({"attempts": 2, "backoff": -1}, "backoff"),
        ({"attempts": 2, "backoff": float("nan")}, "backoff"),
        ({"attempts": 2, "backoff": "1"}, "backoff"),
    ],
)
def test_a_retry_counts_from_one_and_waits_seconds(more, fault):
    with pytest.raises(ChartError) as caught:
        Retry(**more)
    assert caught.value.where == f"retry.{fault}"


def test_a_retry_that_is_none_is_refused():
    assert "retry is 3" in messages(flow_chart("c", nothing, id="a", retry=3))[0]


# -- deciders ----------------------------------------------------------------------------------


def decider(*args, branches=("big", "small"), **more):
    builder = flow_chart("c", nothing, id="a").add_decider("D", *args, id="d", **more)
    for word in branches:
        builder.branch(word, nothing)
    return builder.end()


def test_a_decider_judges_by_exactly_one_thing():
    assert "exactly one" in messages(decider())[0]
    assert "exactly one" in messages(decider(nothing, rules=RULES))[0]
    assert "cannot be called" in messages(decider(5))[0]
    assert "not a RuleSet" in " ".join(messages(decider(rules=[{"when": {}}])))


def test_a_decider_has_branches_each_once_and_a_default_among_them():
    assert "at least one branch" in messages(decider(nothing, branches=()))[0]
    assert "declared twice" in " ".join(messages(decider(nothing, branches=("a", "a"))))
    builder = flow_chart("c", nothing, id="a").add_decider("D", nothing, id="d")
    builder.branch("big", nothing).default("bgi").end()
    with pytest.raises(ChartError, match="did you mean 'big'"):
        builder.end().build()


def test_rules_may_only_lead_to_declared_branches():
    with pytest.raises(ChartError, match="the chart's branch is 'smal'"):
        decider(rules=RULES, branches=("big", "smal")).build()


def test_the_declined_branch_is_added_when_rules_can_lead_there_and_it_is_missing():
    chart = decider(rules=RULES).build()
    assert [(b.route, b.name, b.added) for b in chart.stages[1].branches] == [
        ("big", "big", False),
        ("small", "small", False),
        ("declined", "Declined", True),
    ]
    own = decider(rules=RULES, branches=("big", "small", "declined")).build()
    assert not any(branch.added for branch in own.stages[1].branches)
    skipping = rb.RuleSet("s", "1", RULES.rules, default="small", unreadable="skip")
    assert len(decider(rules=skipping).build().stages[1].branches) == 2


def test_deciders_that_share_branch_words_get_stages_of_their_own():
    builder = decider(rules=RULES)
    builder.add_decider("E", id="e", rules=RULES).branch("big", nothing).branch(
        "small", nothing
    ).end()
    chart = builder.add_function("F", lambda s: s.set("n", 1), id="f").build()
    ids = [branch.id for stage in chart.stages[1:3] for branch in stage.branches]
    assert ids == ["big", "small", "declined", "e.big", "e.small", "e.declined"]


# -- fan-outs ----------------------------------------------------------------------------------


def test_a_branch_is_a_built_chart_or_a_function_and_a_builder_is_told_to_build():
    builder = flow_chart("c", nothing, id="a")
    builder.add_parallel_for_each(
        "E",
        id="e",
        items=nothing,
        branch=flow_chart("b", nothing, id="b"),
        max_branches=1,
        into="o",
    )
    with pytest.raises(ChartError, match=r"call \.build\(\) on it"):
        builder.build()


@pytest.mark.parametrize("bad", [0, -1, True, 1.5, "3", None])
def test_caps_are_whole_numbers_from_one(bad):
    for name in ("max_branches", "max_concurrency"):
        options = {"max_branches": 1, "max_concurrency": 1} | {name: bad}
        builder = flow_chart("c", nothing, id="a").add_parallel_for_each(
            "E", id="e", items=nothing, branch=lambda i, n: None, into="o", **options
        )
        assert any(name in message for message in messages(builder))


def nested(depth):
    chart = flow_chart("leaf", lambda s: 1, id="leaf").build()
    for _ in range(depth):
        chart = (
            flow_chart("c", nothing, id="a")
            .add_parallel_for_each(
                "E", id="e", items=lambda s: [1], branch=chart, max_branches=1, into="out"
            )
            .build()
        )
    return chart


def test_fan_outs_nest_to_a_stated_depth_and_every_view_follows():
    run = nested(MAX_NESTING).run_sync()
    assert run.status == "ok"
    assert len(list(run.walk)) == len(run.walk)
    assert str(run)
    assert run.recording().to_dict()
    with pytest.raises(ChartError, match="the most is 50"):
        nested(MAX_NESTING + 1)


def test_a_factory_that_never_ends_is_ended():
    def again(item, index):
        return (
            flow_chart("c", nothing, id="a")
            .add_parallel_for_each(
                "E", id="e", items=lambda s: [1], branch=again, max_branches=1, into="out"
            )
            .build()
        )

    with pytest.raises(rb.errors.LimitReached) as caught:
        again(0, 0).run_sync()
    assert caught.value.code == "depth_limit"
    assert caught.value.run.status == "limited"


# -- charts as values --------------------------------------------------------------------------


def test_a_chart_cannot_be_changed_and_may_be_copied():
    chart = decider(rules=RULES).build()
    with pytest.raises(AttributeError):
        chart.name = "x"
    assert copy.copy(chart).stages == chart.stages
    assert pickle.loads(pickle.dumps(flow_chart("c", print, id="a").build())).name == "c"  # noqa: S301


def test_a_builder_may_be_built_twice_and_the_charts_are_apart():
    builder = flow_chart("c", nothing, id="a")
    first = builder.build()
    second = builder.add_function("B", nothing, id="b").build()
    assert (len(first.stages), len(second.stages)) == (1, 2)


def test_the_first_stage_is_named_like_the_chart_unless_told_otherwise():
    assert flow_chart("c", nothing, id="a").build().stages[0].name == "c"
    assert flow_chart("c", nothing, id="a", stage_name="Load").build().stages[0].name == "Load"


def test_a_chart_shows_and_describes_itself():
    each = flow_chart("one", nothing, id="one", description="Look at it.").build()
    chart = (
        flow_chart("c", nothing, id="a", description="What it is for.")
        .add_decider("D", id="d", rules=RULES)
        .branch("big", nothing, description="more than one")
        .branch("small", nothing)
        .end()
        .add_parallel_for_each(
            "Each", id="each", items=nothing, branch=each, max_branches=3, into="out"
        )
        .add_parallel_for_each(
            "Made", id="made", items=nothing, branch=lambda i, n: each, max_branches=2, into="o2"
        )
        .build()
    )
    assert chart.describe().splitlines() == [
        "c: What it is for.",
        "1. c",
        "2. D",
        "   decides, by size v1:",
        "   - big: more than one",
        "   - small (default)",
        "   - declined: for what reaches no classification",
        "3. Each",
        "   for each item, at most 3:",
        "   1. one: Look at it.",
        "4. Made",
        "   for each item, at most 2, a chart made for it",
    ]
    assert repr(chart) == "<Chart c · 4 stages>"
    assert "Each" in str(chart)


def test_a_stage_that_no_builder_makes_can_be_checked_too():
    stage = FanOutStage(id="e", name="E", items=nothing, branch=nested(1), max_branches=1, into="o")
    assert check_chart("c", [stage]) == []


# -- every kind of stage -----------------------------------------------------------------------

INNER = flow_chart("inner", nothing, id="in").build()


def one_of_each():
    facts = {"description": "What it is for.", "tags": ["slow", "network"]}
    builder = (
        flow_chart("c", nothing, id="first", **facts)
        .add_function("Function", nothing, id="function", **facts)
        .add_streaming("Streaming", nothing, id="streaming", **facts)
        .add_pausable("Pausable", nothing, lambda s, a: None, id="pausable", **facts)
    )
    for add, more in (
        ("add_decider", {"judge": lambda s: "x"}),
        ("add_selector", {"judge": lambda s: ["x"]}),
        ("add_fork", {}),
    ):
        kind = add.removeprefix("add_")
        owner = getattr(builder, add)(kind.title(), id=kind, **more, **facts)
        builder = owner.branch("x", nothing, name="Branch", **facts).end()
    builder.add_subchart("Subchart", INNER, id="subchart", **facts)
    builder.add_parallel_for_each(
        "Fan_Out", id="fan_out", items=nothing, branch=INNER, max_branches=1, into="o", **facts
    )
    return builder


def test_every_kind_of_stage_keeps_the_authors_words_in_the_structure():
    structure = one_of_each().build().structure
    kinds = {node.key: node.kind for node in structure.nodes if "/" not in node.key}
    assert kinds == {
        **{"first": "stage", "function": "stage", "streaming": "streaming"},
        **{"pausable": "pausable", "decider": "decider", "selector": "selector", "fork": "fork"},
        **{"subchart": "subchart", "fan_out": "fan_out"},
        **{"x": "branch", "selector.x": "branch", "fork.x": "branch"},
    }
    for node in structure.nodes:
        if "/" not in node.key:
            assert node.description == "What it is for."
            assert node.tags == ("slow", "network")
        assert node.name in ("c", "inner", "Branch") or node.name.lower() == node.id


def test_every_method_gives_the_builder_back_and_a_builder_may_be_built_again_and_again():
    builder = one_of_each()
    first = builder.build()
    assert builder.build().structure == first.structure
    assert first.run_sync().status == "ok"
    longer = builder.add_function("Last", nothing, id="last").build()
    assert (len(first.stages), len(longer.stages)) == (9, 10)


def test_a_chart_of_every_kind_may_be_copied_and_goes_on_looping():
    chart = one_of_each().loop_to("function").build()
    again = copy.copy(chart)
    assert (again.loop_to, again.structure) == ("function", chart.structure)
    assert copy.copy(flow_chart("c", nothing, id="a", output=len).build()).output is len


def test_a_branch_is_called_by_its_word_unless_named():
    fork = flow_chart("c", nothing, id="a").add_fork("F", id="f").branch("x", nothing)
    chart = fork.branch("y", nothing, name="Why").end().build()
    assert [branch.name for branch in chart.stages[1].branches] == ["x", "Why"]


def test_charts_beside_one_another_do_not_join_a_fork_of_the_authors():
    fork = flow_chart("c", nothing, id="a").add_fork("Mine", id="mine.fork")
    builder = fork.branch("x", INNER).end()
    builder.add_subchart("One", INNER, id="one", parallel=True)
    builder.add_subchart("Two", INNER, id="two", parallel=True)
    builder.add_function("F", nothing, id="f")
    builder.add_subchart("Three", INNER, id="three", parallel=True)
    chart = builder.build()
    assert [stage.id for stage in chart.stages] == [
        *("a", "mine.fork", "one.fork", "f", "three.fork"),
    ]
    assert [stage.name for stage in chart.stages][2] == "One, Two"


def test_the_first_stage_may_be_of_any_kind():
    for add in (
        lambda b: b.add_function("F", nothing, id="f"),
        lambda b: b.add_subchart("S", INNER, id="f"),
        lambda b: b.add_decider("D", lambda s: "x", id="f").branch("x", nothing).end(),
        lambda b: b.add_parallel_for_each(
            "E", id="f", items=lambda s: [], branch=INNER, max_branches=1, into="o"
        ),
    ):
        run = add(flow_chart("c")).build().run_sync()
        assert run.walk[0].runtime_stage_id == "f#0"


# --- what a cell shows of a chart that is not finished ------------------------------------------


def test_a_builder_says_how_far_it_is_and_what_makes_the_chart():
    builder = flow_chart("c", nothing, id="a").add_function("B", nothing, id="b")
    assert repr(builder) == "<FlowChartBuilder c · 2 stages; .build() makes the chart>"
    assert repr(flow_chart("c\n")) == "<FlowChartBuilder c\\n · 0 stages; .build() makes the chart>"


def test_branches_that_were_not_ended_say_how_to_go_on():
    branches = flow_chart("c", nothing, id="a").add_decider("D", rules=RULES, id="d")
    assert repr(branches) == "<BranchesBuilder D · 0 branches; .end() goes on with the chart>"
    branches = branches.branch("big", nothing)
    assert repr(branches) == "<BranchesBuilder D · 1 branch; .end() goes on with the chart>"
