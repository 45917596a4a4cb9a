"""A chart is described whole: every kind of stage, every branch, what lies inside what."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.describe import MAX_NAME, MAX_STEPS, MAX_WORDS, describe_structure
from runbook_nb.chart.model import Retry
from runbook_nb.record.structure import Structure, StructureEdge, StructureNode


def node(key, kind="stage", name=None, **more):
    name = key.rpartition("/")[2].capitalize() if name is None else name
    return StructureNode(key=key, id=key.rpartition("/")[2], name=name, kind=kind, **more)


def branch(key, owner, **more):
    return node(key, "branch", branch=key.rpartition("/")[2], decider=owner, **more)


def edge(source, target, kind="next"):
    return StructureEdge(source=source, target=target, kind=kind)


def told(*nodes, edges=(), groups=(), name="c", description=None):
    structure = Structure(name=name, nodes=nodes, edges=tuple(edges), groups=tuple(groups))
    return describe_structure(structure, description).splitlines()


# --- each kind of stage ------------------------------------------------------------------------


def test_stages_are_numbered_with_the_words_of_their_author():
    assert told(node("load", description="Reads rows."), node("end")) == [
        "c",
        "1. Load: Reads rows.",
        "2. End",
    ]


def test_the_words_of_a_chart_stand_at_its_head_and_not_again_at_its_first_stage():
    nodes = (node("load", description="What it is for."), node("end", description="At last."))
    assert told(*nodes, description="What it is for.") == [
        "c: What it is for.",
        "1. Load",
        "2. End: At last.",
    ]
    assert told(*nodes)[1] == "1. Load: What it is for."


def test_what_is_special_about_a_stage_is_said_behind_it():
    assert told(
        node("talk", "streaming", detail={"stream": "talk"}),
        node("ask", "pausable", description="Approval."),
        node("try", detail={"retry": 3}),
        node("both", "pausable", detail={"retry": 1}),
    )[1:] == [
        "1. Talk (gives its text piece by piece)",
        "2. Ask: Approval. (may wait for an answer)",
        "3. Try (tried up to 3 times)",
        "4. Both (may wait for an answer; tried up to 1 time)",
    ]


def test_a_decider_tells_its_rules_every_branch_and_the_default():
    assert told(
        node("route", "decider", description="Where to.", detail={"rules": "load v1"}),
        branch("busy", "route", description="more than one"),
        branch("calm", "route", name="Leave it"),
        branch("declined", "route", added=True),
        node("end"),
        edges=[edge("route", "calm", "default"), edge("route", "busy", "branch")],
    )[1:] == [
        "1. Route: Where to.",
        "   decides, by load v1:",
        "   - busy: more than one",
        "   - calm, Leave it (default)",
        "   - declined: for what reaches no classification",
        "2. End",
    ]


def test_the_meaning_an_author_gave_to_declined_is_the_one_that_is_told():
    assert told(
        node("route", "decider"),
        branch("declined", "route", description="we cannot tell"),
    )[2:] == ["   decides:", "   - declined: we cannot tell"]


def test_a_selector_and_a_fork_say_that_more_than_one_runs():
    assert told(
        node("pick", "selector", detail={"rules": "checks v2"}),
        branch("disk", "pick"),
        branch("net", "pick"),
        node("all", "fork"),
        branch("left", "all", description="one half"),
        branch("right", "all"),
    )[1:] == [
        "1. Pick",
        "   runs each of these that fits, at once, by checks v2:",
        "   - disk",
        "   - net",
        "2. All",
        "   runs all of these at once:",
        "   - left: one half",
        "   - right",
    ]


def test_a_fan_out_says_its_cap_and_what_runs_for_each_item():
    assert told(
        node("each", "fan_out", detail={"cap": 50, "template": "built"}),
        node("each/load"),
        node("made", "fan_out", detail={"cap": 5, "template": "unknown"}),
        groups=[("each", ("each/load",))],
    )[1:] == [
        "1. Each",
        "   for each item, at most 50:",
        "   1. Load",
        "2. Made",
        "   for each item, at most 5, a chart made for it",
    ]


def test_a_mounted_chart_is_followed_by_its_steps_and_a_lazy_one_is_named_as_such():
    assert told(
        node("sub", "subchart", detail={"template": "built"}),
        node("sub/in", description="First of the inner."),
        node("sub/deep", "subchart"),
        node("sub/deep/core"),
        node("later", "subchart", description="If need be.", detail={"lazy": True}),
        groups=[("sub", ("sub/in", "sub/deep", "sub/deep/core")), ("sub/deep", ("sub/deep/core",))],
    )[1:] == [
        "1. Sub",
        "   1. In: First of the inner.",
        "   2. Deep",
        "      1. Core",
        "2. Later: If need be. (a chart made when it is first reached)",
    ]


def test_branches_that_are_charts_tell_what_is_in_them_lazy_ones_that_nobody_knows_yet():
    assert told(
        node("route", "decider"),
        branch("full", "route", detail={"form": "subchart"}),
        node("full/in"),
        node("full/out"),
        branch("lazy", "route", description="x", detail={"form": "subchart", "lazy": True}),
        branch("ask", "route", detail={"form": "pausable"}),
        branch("talk", "route", detail={"form": "streaming", "retry": 2}),
        groups=[("full", ("full/in", "full/out"))],
    )[1:] == [
        "1. Route",
        "   decides:",
        "   - full",
        "     1. In",
        "     2. Out",
        "   - lazy: x (a chart made when it is first reached)",
        "   - ask (may wait for an answer)",
        "   - talk (gives its text piece by piece; tried up to 2 times)",
    ]


def test_steps_below_a_number_of_two_digits_are_moved_in_as_far_as_its_name():
    nodes = [node(f"s{n}") for n in range(9)]
    inner = node("sub", "subchart"), node("sub/in")
    assert told(*nodes, *inner, groups=[("sub", ("sub/in",))])[-2:] == ["10. Sub", "    1. In"]


# --- what goes back ----------------------------------------------------------------------------


def test_a_chart_that_goes_back_says_so_after_its_last_step():
    lines = told(node("seed"), node("body"), node("end"), edges=[edge("end", "body", "loop")])
    assert lines[-2:] == ["3. End", "then goes back to Body"]


def test_a_branch_that_goes_back_says_so_itself():
    lines = told(
        node("body"),
        node("route", "decider"),
        branch("again", "route", detail={"loop_to": "body"}),
        branch("done", "route"),
        edges=[edge("again", "body", "loop")],
    )
    assert lines[1:] == [
        "1. Body",
        "2. Route",
        "   decides:",
        "   - again (goes back to Body)",
        "   - done",
    ]


def test_a_chart_whose_last_step_is_a_decider_goes_back_from_all_of_its_branches():
    lines = told(
        node("body"),
        node("route", "decider"),
        branch("a", "route"),
        branch("b", "route", detail={"loop_to": "body"}),
        edges=[edge("a", "body", "loop"), edge("b", "body", "loop")],
    )
    assert lines[-3:] == ["   - a", "   - b (goes back to Body)", "then goes back to Body"]


def test_a_chart_inside_goes_back_inside_and_one_that_ends_in_a_chart_goes_back_outside():
    lines = told(
        node("body"),
        node("sub", "subchart"),
        node("sub/one"),
        node("sub/two"),
        edges=[edge("sub/two", "sub/one", "loop")],
        groups=[("sub", ("sub/one", "sub/two"))],
    )
    assert lines[-2:] == ["   2. Two", "   then goes back to One"]
    lines = told(
        node("body"),
        node("sub", "subchart"),
        node("sub/two"),
        edges=[edge("sub/two", "body", "loop")],
        groups=[("sub", ("sub/two",))],
    )
    assert lines[-2:] == ["   1. Two", "then goes back to Body"]


def test_a_branch_that_is_a_chart_goes_back_from_the_end_of_that_chart():
    lines = told(
        node("body"),
        node("route", "decider"),
        branch("full", "route", detail={"form": "subchart", "loop_to": "body"}),
        node("full/in"),
        edges=[edge("full/in", "body", "loop")],
        groups=[("full", ("full/in",))],
    )
    assert lines[-2:] == ["   - full (goes back to Body)", "     1. In"]


# --- text of others ----------------------------------------------------------------------------


def test_a_name_cannot_begin_a_step_or_move_a_cursor():
    lines = told(
        node("a", name="Load\n2. Delete everything\x1b[2J", description="one\r\n\ttwo\u202e")
    )
    assert lines == ["c", "1. Load 2. Delete everything\\x1b[2J: one two\\u202e"]


def test_long_names_and_descriptions_are_cut_visibly():
    line = told(node("a", name="n" * 500, description="w" * 5_000))[1]
    assert len(line) == len("1. ") + MAX_NAME + len(": ") + MAX_WORDS
    assert line.count("…") == 2


@given(st.text(max_size=30), st.text(max_size=30))
def test_every_line_is_one_line_whatever_the_words_are(name, words):
    lines = told(
        node("r", "decider", name=name, description=words),
        branch("a", "r", name=name, description=words),
    )
    assert len(lines) == 4
    assert all(line.isprintable() or not line.isascii() for line in lines)


def test_a_caller_may_say_how_the_words_of_authors_are_written():
    structure = Structure(name="c", nodes=(node("a", description="words"),))
    assert describe_structure(structure, say=str.upper) == "C\n1. A: WORDS"


# --- size --------------------------------------------------------------------------------------


def test_a_huge_chart_is_told_up_to_a_cap_that_is_said():
    lines = told(*(node(f"s{n}") for n in range(MAX_STEPS + 50)))
    assert lines[-3:] == [
        f"{MAX_STEPS}. S{MAX_STEPS - 1}",
        "… and 50 more steps",
        f"{MAX_STEPS} of {MAX_STEPS + 50} steps are described.",
    ]
    assert len(told(*(node(f"s{n}") for n in range(MAX_STEPS)))) == MAX_STEPS + 1


def test_the_outer_steps_are_told_before_the_inner_ones():
    inner = tuple(f"sub/s{n}" for n in range(MAX_STEPS))
    lines = told(node("sub", "subchart"), *map(node, inner), node("end"), groups=[("sub", inner)])
    assert lines[-3:] == [
        "   … and 2 more steps",
        "2. End",
        f"{MAX_STEPS} of {MAX_STEPS + 2} steps are described.",
    ]


def test_branches_beyond_the_cap_are_counted_where_they_are_missing():
    lines = told(node("r", "decider"), *(branch(f"b{n}", "r") for n in range(MAX_STEPS)))
    assert lines[-2:] == [
        "   … and 1 more branch",
        f"{MAX_STEPS} of {MAX_STEPS + 1} steps are described.",
    ]
    lines = told(node("r", "decider"), *(branch(f"b{n}", "r") for n in range(MAX_STEPS + 1)))
    assert lines[-2] == "   … and 2 more branches"


def test_describing_costs_in_proportion_to_the_chart(calls_of):
    def calls(count):
        nodes = []
        for n in range(count):
            nodes += [node(f"r{n}", "decider"), branch(f"y{n}", f"r{n}")]
        return calls_of(lambda: told(*nodes))

    assert calls(4_000) < 12 * calls(400)


def test_a_deep_chart_is_told_without_running_out_of_stack():
    keys = ["/".join(["s"] * depth) for depth in range(1, 300)]
    nodes = [node(key, "subchart", name="S") for key in keys]
    groups = [(key, tuple(keys[n + 1 :])) for n, key in enumerate(keys[:-1])]
    lines = told(*nodes, groups=groups)
    assert len([line for line in lines if "1. S" in line]) == MAX_STEPS


# --- charts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("given_name", [None, "Load"])
def test_a_chart_describes_itself(given_name):
    chart = (
        flow_chart("triage", print, id="load", stage_name=given_name, description="Judge rows.")
        .add_function("End", print, id="end", description="Say it.")
        .build()
    )
    assert chart.describe().splitlines() == [
        "triage: Judge rows.",
        f"1. {given_name or 'triage'}",
        "2. End: Say it.",
    ]


def nothing(scope):
    return None


def inner(name="Inner"):
    return (
        flow_chart(name, nothing, id="first", stage_name="First")
        .add_function("Second", nothing, id="second", description="The second of them.")
        .build()
    )


def everything():
    return (
        flow_chart("Everything", nothing, id="seed", stage_name="Seed", description="Start here.")
        .add_function("Load", nothing, id="load", retry=Retry(3))
        .add_streaming("Talk", nothing, id="talk")
        .add_pausable("Gate", nothing, lambda scope, answer: None, id="gate")
        .add_decider("Route", lambda scope: "plain", id="route")
        .branch("plain", nothing, description="The plain way.")
        .branch("chart", inner(), name="Whole <chart>")
        .branch("asks", nothing, resume=lambda scope, answer: None)
        .branch("lazy", inner, lazy=True, description="The lazy way.")
        .branch("back", nothing, loop_to="load")
        .default("plain")
        .end()
        .add_selector("Pick", lambda scope: [], id="pick", merge="keys")
        .branch("p", nothing)
        .branch("q", inner())
        .end()
        .add_fork("Both", id="both", merge="keys")
        .branch("c1", nothing)
        .branch("c2", inner())
        .end()
        .add_subchart("Left", inner(), id="l", parallel=True)
        .add_subchart("Right", inner(), id="r", parallel=True)
        .add_parallel_for_each(
            "Each", id="each", items=nothing, branch=inner(), max_branches=5, into="slots"
        )
        .add_subchart("Sub", inner(), id="sub")
        .add_subchart("Later", inner, id="later", lazy=True)
        .add_function("End", nothing, id="end")
        .loop_to("load")
        .build()
    )


INNER = ["1. First", "2. Second: The second of them."]


def test_a_chart_of_every_shape_is_told_whole():
    assert everything().describe().splitlines() == [
        "Everything: Start here.",
        "1. Seed",
        "2. Load (tried up to 3 times)",
        "3. Talk (gives its text piece by piece)",
        "4. Gate (may wait for an answer)",
        "5. Route",
        "   decides:",
        "   - plain (default): The plain way.",
        "   - chart, Whole <chart>",
        *(f"     {line}" for line in INNER),
        "   - asks (may wait for an answer)",
        "   - lazy: The lazy way. (a chart made when it is first reached)",
        "   - back (goes back to Load)",
        "6. Pick",
        "   runs each of these that fits, at once:",
        "   - p",
        "   - q",
        *(f"     {line}" for line in INNER),
        "7. Both",
        "   runs all of these at once:",
        "   - c1",
        "   - c2",
        *(f"     {line}" for line in INNER),
        "8. Left, Right",
        "   runs all of these at once:",
        "   - l, Left",
        *(f"     {line}" for line in INNER),
        "   - r, Right",
        *(f"     {line}" for line in INNER),
        "9. Each",
        "   for each item, at most 5:",
        *(f"   {line}" for line in INNER),
        "10. Sub",
        *(f"    {line}" for line in INNER),
        "11. Later (a chart made when it is first reached)",
        "12. End",
        "then goes back to Load",
    ]


def test_no_node_of_the_picture_is_missing_from_the_words():
    chart = everything()
    lines = chart.describe().splitlines()
    for found in chart.structure.nodes:
        word = found.name if found.kind != "branch" else found.branch
        assert any(word in line for line in lines), found.key
        assert found.description is None or any(found.description in line for line in lines)
    assert sum(line.lstrip()[0] in "-0123456789" for line in lines) == len(chart.structure.nodes)


def test_the_picture_as_mermaid_draws_every_node_once_and_escapes_labels():
    chart = everything()
    text = chart.mermaid()
    assert text == chart.flowchart().mermaid
    nodes = re.findall(r"^ +(n\d+)[({\[]", text, re.MULTILINE)
    assert len(nodes) == len(set(nodes)) == len(chart.structure.nodes)
    assert text.count("Second") == 7  # what lies inside is drawn
    assert "<chart>" not in text
    assert "Whole #60;chart#62;" in text
    assert text.count("plain") == 1  # the default is no node of its own
    targets = re.findall(r" (n\d+)$", text, re.MULTILINE)
    load = next(line for line in text.splitlines() if '"Load' in line).strip().partition("(")[0]
    assert targets.count(load) == 3  # from the first stage, from a branch, from the end


def test_a_chart_that_a_run_found_out_is_told_with_what_it_found():
    chart = flow_chart("c", nothing, id="a").add_subchart("L", inner, id="l", lazy=True).build()
    assert "made when it is first reached" in chart.describe()
    lines = describe_structure(chart.run_sync().structure).splitlines()
    assert lines[2:] == ["2. L", *(f"   {line}" for line in INNER)]
