"""Every kind of stage in picture data, list and sentence: the same facts in all of them."""

import pytest
from kind_charts import (
    FOLLOW_UPS,
    KINDS,
    asking,
    branching,
    breaks,
    fleet,
    forked,
    incident,
    looped,
    mounted,
    nothing,
    restore,
    rounds,
    run,
    says,
    selected,
    stopped,
    streaming,
)

import runbook_nb as rb
from runbook_nb._view import Badge, Data
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.model import Retry
from runbook_nb.record.graph import structure_graph
from runbook_nb.record.outline import walk_flow
from runbook_nb.record.overlay import overlay_of
from runbook_nb.record.phrases import MARKS, Teller, joined
from runbook_nb.render.cells import cell_text
from runbook_nb.render.text import render_text


def flow(chart, *answers):
    return walk_flow(run(chart, *answers).walk)


def nodes(graph):
    return {node.key: node for node in graph.nodes}


def second(graph):
    return {node.key: cell_text(node.second) for node in graph.nodes if node.second}


def said(lines):
    return {line.key: " · ".join(filter(None, map(cell_text, line.cells[1:]))) for line in lines}


def states(graph):
    return {node.key: node.state for node in graph.nodes}


def edge(graph, source, target):
    return next(e for e in graph.edges if (e.source, e.target) == (source, target))


def beside(found):
    return [cell_text(line.text) for line in found.lines]


def declared(chart):
    return chart.view().sections[0].parts[0]


# --- forks --------------------------------------------------------------------------------------


def test_a_fork_says_how_many_run_side_by_side_and_how_they_ended():
    before, after = declared(forked()), flow(forked())
    assert nodes(before.graph)["look"].kind == "fork"
    assert second(before.graph)["look"] == "fork, 3 side by side"
    assert second(after.graph)["look"] == "fork, 2 of 3 done, 1 failed"
    assert said(after.lines)["look"] == "fork, 2 of 3 done, 1 failed"
    assert states(after.graph)["ping"] == "failed"


def test_children_of_a_fork_are_stages_by_name_with_the_word_that_leads_there():
    graph = flow(forked()).graph
    child = nodes(graph)["disk"]
    assert (child.kind, child.role, child.title) == ("stage", None, Data(value="Read disk usage"))
    assert second(graph)["disk"] == "disk"
    assert "ping" not in cell_text(nodes(graph)["ping"].title)
    assert edge(graph, "look", "disk").lines == ()
    assert edge(graph, "look", "disk").role is None


def test_a_fork_and_its_children_stand_in_one_frame():
    graph = flow(forked()).graph
    (frame,) = graph.groups
    assert (frame.key, frame.members) == ("look", ("look", "disk", "backup", "ping"))


def test_children_are_told_side_by_side_and_stages_in_order():
    lines = flow(forked()).lines
    assert [(line.key, line.depth, line.beside) for line in lines] == [
        ("start", 0, False),
        ("look", 0, False),
        ("disk", 1, True),
        ("backup", 1, True),
        ("ping", 1, True),
        ("report", 0, False),
    ]


def test_what_joins_behind_a_fork_follows_the_children_that_ended_well():
    graph = flow(forked()).graph
    assert {e.source: e.state for e in graph.edges if e.target == "report"} == {
        "disk": "taken",
        "backup": "taken",
        "ping": "not_taken",
    }


def test_where_all_children_fail_the_run_goes_on_from_the_fork_itself():
    chart = (
        flow_chart("c", nothing, id="a")
        .add_fork("Both", id="both")
        .branch("x", breaks)
        .branch("y", breaks)
        .end()
        .add_function("End", nothing, id="end")
        .build()
    )
    graph = flow(chart).graph
    assert edge(graph, "both", "end").state == "taken"
    assert edge(graph, "x", "end").state == edge(graph, "y", "end").state == "not_taken"


def test_a_child_that_never_began_was_reached_by_nobody_and_left_aside_by_nobody():
    chart = (
        flow_chart("c", nothing, id="a")
        .add_fork("Both", id="both", fail_fast=True)
        .branch("x", breaks)
        .branch("y", nothing)
        .end()
        .build()
    )
    graph = flow(chart).graph
    assert states(graph)["y"] == "not_reached"
    assert states(graph)["both"] == "failed"
    assert second(graph)["both"] == "fork, 0 of 2 done, 1 failed, 1 not reached, failed"


def test_a_fork_in_a_fan_out_sums_over_its_runs():
    after = flow(fleet())
    assert second(after.graph)["each/probe"] == "fork, 8 of 8 done over 4 runs"
    assert said(after.lines)["each/probe"] == "fork, 8 of 8 done over 4 runs"
    assert said(after.lines)["each/ssh"] == "4 times"
    assert "each/ssh" not in second(after.graph)  # as often as its fork, which says so


# --- selectors ----------------------------------------------------------------------------------


def test_a_selector_says_how_many_it_selected():
    before, after = declared(selected()), flow(selected())
    assert nodes(before.graph)["pick"].kind == "selector"
    assert second(before.graph)["pick"] == "selects any or none"
    assert second(after.graph)["pick"] == "2 of 3 selected"
    assert said(after.lines)["pick"] == "2 of 3 selected"


def test_a_selector_by_named_rules_names_them():
    rules = rb.RuleSet("follow-ups", "v2", FOLLOW_UPS)
    assert second(declared(selected(rules)).graph)["pick"] == (
        "selects any or none by follow-ups v2"
    )


def test_each_branch_of_a_selector_says_which_rule_selected_it_or_did_not():
    graph = flow(selected()).graph
    assert beside(edge(graph, "pick", "grow")) == ["rule 1: yes", "disk 91 > 80", "disk over 80 %"]
    assert beside(edge(graph, "pick", "scale")) == ["rule 3: no", "cpu > 90", "was 3"]
    assert edge(graph, "pick", "scale").state == "not_taken"
    assert states(graph)["scale"] == "not_taken"
    assert second(graph)["scale"] == "not selected"


def test_a_rule_of_a_selector_that_could_not_be_read_says_so():
    graph = flow(selected(rb.RuleSet("f", "1", FOLLOW_UPS, unreadable="skip"), cpu=None)).graph
    assert beside(edge(graph, "pick", "scale")) == ["rule 3: unreadable", "cpu null, > 90"]


def test_before_a_run_the_branches_of_a_selector_show_their_rules():
    graph = declared(selected()).graph
    assert beside(edge(graph, "pick", "grow")) == ["disk > 80", "disk over 80 %"]


def test_the_list_says_of_each_branch_which_rule_it_was():
    told = said(flow(selected()).lines)
    assert told["grow"] == "grow, rule 1 disk 91 > 80, disk over 80 %"
    assert told["scale"] == "scale, rule 3 cpu > 90, not selected"


def test_two_rules_for_one_branch_are_told_as_one_and_how_many_more():
    rules = [*FOLLOW_UPS, rb.Rule({"disk": {"gt": 85}}, then="grow")]
    graph = flow(selected(rules)).graph
    assert beside(edge(graph, "pick", "grow")) == [
        *("rule 1: yes", "disk 91 > 80", "+1 more rule", "disk over 80 %")
    ]


def test_a_function_that_selects_needs_no_evidence():
    chart = (
        flow_chart("c", nothing, id="a")
        .add_selector("Some", lambda s: ["x"], id="some")
        .branch("x", nothing)
        .branch("y", nothing)
        .end()
        .build()
    )
    graph = flow(chart).graph
    assert [e.state for e in graph.edges if e.source == "some"] == ["taken", "not_taken"]
    assert not any(e.lines for e in graph.edges)


def chosen_by(picks):
    """A fan-out in which each item selects for itself."""
    branch = (
        flow_chart("one", nothing, id="load")
        .add_selector("Pick", lambda s: picks[s.args["item"]], id="pick")
        .branch("x", nothing)
        .branch("y", nothing)
        .end()
        .add_function("After", nothing, id="after")
        .build()
    )
    return (
        flow_chart("c", lambda s: s.set("rows", list(range(len(picks)))), id="start")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: s["rows"],
            branch=branch,
            max_branches=9,
            into="r",
        )
        .build()
    )


def test_what_one_item_selected_says_nothing_of_another():
    """They have one shape in the record, and each its own way on."""
    walk = run(chosen_by([["x"], [], ["x", "y"]])).walk
    overlay = overlay_of(walk.log, walk.redactor)
    assert overlay.edges["each/pick", "each/after"] == 1  # the second, which selected nothing
    assert overlay.edges["each/x", "each/after"] == 2
    assert overlay.edges["each/y", "each/after"] == 1
    assert overlay.nothing["each/pick"] == 1
    graph = walk_flow(walk).graph
    assert second(graph)["each/pick"] == "3 selected over 3 runs, nothing 1 time"
    assert beside(edge(graph, "each/pick", "each/x")) == ["2 subjects"]
    assert edge(graph, "each/pick", "each/after").state == "taken"


def test_where_nothing_is_selected_the_selector_says_so():
    after = flow(chosen_by([[], []]))
    assert second(after.graph)["each/pick"] == "nothing selected over 2 runs"
    assert states(after.graph)["each/x"] == "not_taken"


def test_ground_outside_the_rules_selects_nothing_and_says_why():
    outside = rb.Outside(where={"disk": {"gt": 90}}, what="full disks", why="by hand")
    graph = flow(selected(rb.RuleSet("f", "1", FOLLOW_UPS, outside=[outside]))).graph
    assert beside(edge(graph, "pick", "grow")) == ["outside the rules"]


# --- charts in charts ---------------------------------------------------------------------------


def test_a_mounted_chart_is_a_frame_whose_head_says_how_large_it_is():
    graph = flow(mounted()).graph
    assert nodes(graph)["restore"].kind == "subchart"
    assert second(graph)["restore"] == "chart of 3 stages"
    frame = next(group for group in graph.groups if group.key == "restore")
    assert frame.members[:2] == ("restore", "restore/mount")
    assert edge(graph, "restore", "restore/mount").state == "taken"
    assert edge(graph, "restore/unmount", "check").state == "taken"


def test_a_lazy_chart_is_made_when_run_and_known_afterwards():
    before, after = declared(mounted()), flow(mounted())
    assert second(before.graph)["check"] == "chart made when run"
    assert second(after.graph)["check"] == "chart of 3 stages, made when run"
    assert "check/mount" in nodes(after.graph)


def test_stages_in_a_chart_outside_any_fan_out_are_no_subjects():
    graph = flow(mounted()).graph
    text = " ".join(line for e in graph.edges for line in beside(e))
    assert "subject" not in text


def test_two_charts_whose_deciders_share_an_id_have_their_own_rules_each():
    def judged(limit):
        rules = rb.RuleSet(f"r{limit}", "1", [rb.Rule({"n": {"gt": limit}}, "hi")], default="lo")
        return (
            flow_chart("inner", lambda s: s.set("n", 5), id="load")
            .add_decider("Size", rules=rules, id="size")
            .branch("hi", nothing)
            .branch("lo", nothing)
            .end()
            .build()
        )

    chart = (
        flow_chart("c", nothing, id="a")
        .add_subchart("One", judged(3), id="one")
        .add_subchart("Two", judged(9), id="two")
        .build()
    )
    graph = flow(chart).graph
    assert beside(edge(graph, "one/size", "one/hi")) == ["rule 1: yes", "n 5 > 3"]
    assert beside(edge(graph, "two/size", "two/hi")) == ["rule 1: no", "n > 9", "was 5"]


def test_a_branch_that_is_a_chart_is_followed_by_what_lies_in_it():
    after = flow(branching())
    assert [(line.key, line.depth) for line in after.lines] == [
        *(("start", 0), ("severity", 0), ("bad", 1), ("bad/plan", 2), ("bad/apply", 2)),
        *(("declined", 1), ("fine", 1), ("report", 0)),
    ]
    assert nodes(after.graph)["bad"].title == Badge(word="bad", role="a")
    assert second(after.graph)["bad"] == "Fix it, chart of 2 stages"


def test_what_lies_in_a_branch_nobody_took_was_not_taken():
    after = flow(branching(1))
    assert states(after.graph)["bad"] == states(after.graph)["bad/plan"] == "not_taken"
    by_key = {line.key: line.state for line in after.lines}
    assert by_key["bad/apply"] == "not_taken"


def test_a_chart_inside_a_chart_that_failed_failed_where_its_stage_did():
    inner = flow_chart("inner", nothing, id="a").add_function("Break", breaks, id="b").build()
    chart = flow_chart("c", nothing, id="s").add_subchart("Sub", inner, id="sub").build()
    after = flow(chart)
    assert states(after.graph) == {
        "s": "ran",
        "sub": "failed",
        "sub/a": "ran",
        "sub/b": "failed",
    }
    assert after.summary == "4 of 4 stages ran; 4 steps; failed at Break"


# --- loops --------------------------------------------------------------------------------------


def test_a_way_back_says_how_often_it_was_gone_and_stages_how_often_they_ran():
    after = flow(looped())
    found = edge(after.graph, "no", "poll")
    assert (found.back, found.state, found.times, beside(found)) == (
        True,
        "taken",
        3,
        ["back 3 times"],
    )
    assert second(after.graph)["poll"] == "ran 4 times"
    assert second(after.graph)["no"] == "Wait a minute, ran 3 times"
    assert said(after.lines)["no"] == "3 · back 3 times to Poll job"
    assert said(after.lines)["poll"] == "4 times"
    assert beside(edge(after.graph, "done", "no")) == ["3 times"]


def test_the_branch_that_goes_back_is_drawn_last():
    graph = flow(looped()).graph
    assert [e.target for e in graph.edges if e.source == "done"] == ["yes", "no"]


def test_before_a_run_a_way_back_is_called_that():
    before = declared(looped())
    assert beside(edge(before.graph, "no", "poll")) == ["back"]
    assert said(before.lines)["no"] == "then back to Poll job"


def test_a_chart_that_goes_back_from_its_end():
    after = flow(rounds())
    assert beside(edge(after.graph, "rest", "work")) == ["back 2 times"]
    assert said(after.lines)["rest"] == "2 times, back 2 times to Work"
    assert said(after.lines)["work"] == "3 times, stopped here: enough rounds"
    assert after.summary == (
        "3 of 3 stages ran; 6 steps; went back 2 times; stopped on purpose at Work: enough rounds"
    )


def test_a_stage_that_goes_back_to_itself():
    def count(scope):
        scope["n"] = scope.get("n", 0) + 1
        if scope["n"] == 3:
            scope.stop()

    graph = flow(flow_chart("c", count, id="count").loop_to("count").build()).graph
    (found,) = graph.edges
    assert (found.source, found.target, found.times, found.back) == ("count", "count", 2, True)


def test_a_stop_in_a_branch_that_is_a_chart_still_goes_back():
    inner = (
        flow_chart("inner", lambda s: s.stop(), id="x").add_function("Y", nothing, id="y").build()
    )

    def count(scope):
        scope["n"] = scope.get("n", 0) + 1

    chart = (
        flow_chart("c", count, id="a")
        .add_decider("D", lambda s: "again" if s["n"] < 3 else "done", id="d")
        .branch("again", inner, loop_to="a")
        .branch("done", nothing)
        .end()
        .build()
    )
    graph = flow(chart).graph
    found = edge(graph, "again/x", "a")  # not declared: the chart's end is y
    assert (found.back, found.times, beside(found)) == (True, 2, ["back 2 times"])
    assert edge(graph, "again/y", "a").state == "not_taken"


# --- questions ----------------------------------------------------------------------------------


def test_a_stage_that_may_ask_says_so_before_a_run():
    assert second(declared(asking()).graph)["approve"] == "? may ask"
    assert said(declared(asking()).lines)["approve"] == "may ask"


def test_a_paused_stage_waits_for_an_answer():
    after = flow(asking())
    assert states(after.graph) == {"start": "ran", "approve": "paused", "roll": "not_reached"}
    assert second(after.graph)["approve"] == "? waits for an answer"
    assert said(after.lines)["approve"] == "waits for an answer"
    assert after.summary == ("2 of 3 stages ran; 2 steps; waits for an answer at Approve change")


def test_a_resumed_stage_was_answered_and_came_from_where_it_came_from():
    after = flow(asking(), "yes")
    assert states(after.graph)["approve"] == "ran"
    assert second(after.graph)["approve"] == "? answered"  # and no word of two executions
    assert [(e.source, e.target, e.times) for e in after.graph.edges] == [
        ("start", "approve", 1),
        ("approve", "roll", 1),
    ]


def test_a_pausable_stage_that_asked_nothing_says_so():
    chart = flow_chart("c", nothing, id="a").add_pausable("Ask", nothing, nothing, id="b").build()
    assert second(flow(chart).graph)["b"] == "? did not ask"


def asked_each(asks):
    branch = (
        flow_chart("one", nothing, id="load")
        .add_pausable(
            "Ask owner", lambda s: "fine?" if s.args["item"] in asks else None, nothing, id="ask"
        )
        .add_function("Note", nothing, id="note")
        .build()
    )
    return (
        flow_chart("c", lambda s: s.set("rows", [1, 2, 3]), id="start")
        .add_parallel_for_each(
            "Each", id="each", items=lambda s: s["rows"], branch=branch, max_branches=2, into="r"
        )
        .build()
    )


def test_branches_that_wait_are_counted_apart_from_those_not_reached():
    after = flow(asked_each([2]))
    assert second(after.graph)["each"] == (
        "fan-out, 1 of 3 done, 1 waits for an answer, drawn once"
    )
    assert said(after.lines)["each"] == (
        "1 of 3 done, 1 waits for an answer, 1 not reached: past the cap of 2 branches"
    )
    gap = edge(after.graph, "each", "each~not_reached")
    assert beside(gap) == ["1 subject", "past the cap of 2"]
    assert second(after.graph)["each/ask"] == "? 1 waits for an answer"
    assert after.summary.startswith("1 of 3 subjects done: 1 waiting, 1 not reached; ")


def test_where_several_wait_the_card_says_how_many_are_behind():
    text = render_text(run(asked_each([1, 2])).view())
    assert "paused" in text.splitlines()[0]
    card = run(asked_each([1, 2])).view()
    assert cell_text(card.sections[0].parts[0].text) == (
        "It waits for an answer: fine? (1 more question waits behind it)"
    )


def test_a_run_that_waits_for_a_second_answer_says_where():
    made = run(asked_each([1, 2]), "yes")
    assert cell_text(made.view().heading[0]) == "Waiting at Ask owner"
    assert second(walk_flow(made.walk).graph)["each/ask"] == ("? 1 waits for an answer, 1 answered")


def test_a_fork_waits_with_its_child():
    after = flow(incident())
    assert second(after.graph)["gather"] == "fork, 2 of 3 done, 1 waits for an answer"
    assert states(after.graph)["disk"] == "paused"
    done = flow(incident(), "no")
    assert second(done.graph)["gather"] == "fork, 3 of 3 done"
    assert second(done.graph)["repairs"] == "nothing selected"


# --- streams, attempts, tags, stops -------------------------------------------------------------


def test_a_streaming_stage_says_where_to_and_how_much():
    assert second(declared(streaming()).graph)["say"] == "» streams text to summary"
    assert second(flow(streaming()).graph)["say"] == "» streamed 4 tokens"
    assert said(flow(streaming()).lines)["say"] == "streamed 4 tokens, tagged llm"


def test_a_stream_of_the_stages_own_name_is_not_named_again():
    chart = flow_chart("c", nothing, id="a").add_streaming("Say", says("x"), id="b").build()
    assert second(declared(chart).graph)["b"] == "» streams text"
    assert second(flow(chart).graph)["b"] == "» streamed 1 token"


def test_a_stream_that_was_cut_short_says_so():
    def say(scope):
        scope.stream("x")
        raise ValueError("no more")

    chart = flow_chart("c", nothing, id="a").add_streaming("Say", say, id="b").build()
    assert second(flow(chart).graph)["b"] == "» streamed 1 token, cut short, failed"


def test_attempts_are_told_as_declared_and_as_made():
    assert second(declared(streaming()).graph)["start"] == "up to 3 attempts"
    assert second(flow(streaming()).graph)["start"] == "2 retries"
    assert said(flow(streaming()).lines)["start"] == "2 retries"


def test_one_attempt_is_no_matter():
    chart = flow_chart("c", nothing, id="a", retry=Retry(1)).build()
    assert second(declared(chart).graph) == {}


def test_tags_stand_under_everything_else():
    graph = flow(mounted()).graph
    assert cell_text(nodes(graph)["tell"].third) == "tagged notify, pager"
    many = flow_chart("c", nothing, id="a", tags=tuple("abcdef")).build()
    assert cell_text(nodes(declared(many).graph)["a"].third) == "tagged a, b, c, d, +2 more"


def test_a_stop_is_told_where_it_was_made_and_handed_on():
    after = flow(stopped())
    assert states(after.graph) == {
        "start": "ran",
        "gate": "ran",
        "gate/check": "stopped",
        "gate/drain": "not_reached",
        "never": "not_reached",
    }
    assert second(after.graph)["gate/check"] == "stopped here: nothing to do"
    assert second(after.graph)["gate"] == "chart of 2 stages, hands the stop on"
    assert after.summary == (
        "3 of 5 stages ran; 3 steps; stopped on purpose at Check queue: nothing to do"
    )


def test_a_stop_that_is_not_handed_on_leads_to_what_follows():
    gate = flow_chart("gate", lambda s: s.stop(), id="check")
    chart = (
        flow_chart("c", nothing, id="a")
        .add_subchart("Gate", gate.add_function("Drain", nothing, id="drain").build(), id="gate")
        .add_function("Next", nothing, id="next")
        .build()
    )
    graph = flow(chart).graph
    assert edge(graph, "gate/check", "next").state == "taken"
    assert edge(graph, "gate/drain", "next").state == "not_taken"
    assert second(graph)["gate/check"] == "stopped here"


def test_a_run_that_was_stopped_on_purpose_did_not_simply_run_through():
    card = run(stopped()).view()
    assert card.heading == "Stopped on purpose at Check queue"
    assert card.state == "ok, stopped on purpose at check: nothing to do"
    assert cell_text(card.sections[0].parts[0].text) == "The reason given: nothing to do"
    assert run(forked()).view().heading == "Ran through"


def test_a_stop_inside_that_ended_only_its_chart_ran_through():
    gate = flow_chart("gate", lambda s: s.stop("x"), id="check").build()
    chart = flow_chart("c", nothing, id="a").add_subchart("Gate", gate, id="gate").build()
    assert run(chart).view().heading == "Ran through"


# --- all of them --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
def test_picture_and_list_tell_the_same_of_every_node(name):
    """But for counts that the picture has beside its edges, and marks."""
    made = run(KINDS[name]())
    told = walk_flow(made.walk)
    listed = said(told.lines)
    for key, node in nodes(told.graph).items():
        if node.kind == "gap" or node.role is not None or node.kind in ("fan_out", "decider"):
            continue
        for phrase in cell_text(node.second).split(", "):
            bare = phrase.lstrip("»? ").removeprefix("ran ").removeprefix("fan-out, ")
            shown = listed[key] + " " + node.state.replace("_", " ")
            assert bare in shown or bare == "drawn once", (key, phrase, shown)


@pytest.mark.parametrize("name", KINDS)
def test_verdicts_alone_have_colours(name):
    for graph in (
        structure_graph(KINDS[name]().structure),
        walk_flow(run(KINDS[name]()).walk).graph,
    ):
        kinds = {node.key: node.kind for node in graph.nodes}
        for node in graph.nodes:
            assert (node.role in ("a", "b", "c", "d", "declined")) == (kinds[node.key] == "branch")
        for found in graph.edges:
            assert found.role is None or kinds[found.target] in ("branch", "gap")


@pytest.mark.parametrize("name", KINDS)
def test_before_a_run_nothing_is_said_to_have_happened(name):
    before = declared(KINDS[name]())
    assert {line.state for line in before.lines} == {"declared"}
    text = " ".join([*second(before.graph).values(), *said(before.lines).values()])
    for word in ("ran ", "done", "selected", "streamed", "answered", "retr", "stopped", "failed"):
        assert word not in text


def test_the_heading_counts_each_verdict_in_the_colour_of_its_own_decider():
    card = run(fleet()).view()
    assert [(b.word, b.role, b.count) for b in card.heading[1:]] == [
        ("sick", "a", 2),
        ("well", "b", 2),
    ]
    roles = {node.key: node.role for node in walk_flow(run(fleet()).walk).graph.nodes}
    assert (roles["each/sick"], roles["each/well"]) == ("a", "b")


def test_a_walk_of_many_rule_sets_names_the_first_and_counts_the_rest():
    chart = flow_chart("c", lambda s: s.set("n", 1), id="a")
    for number in range(8):
        rules = rb.RuleSet(f"r{number}", "1", [rb.Rule({"n": {"gt": 5}}, "hi")], default="lo")
        chart = (
            chart.add_decider(f"D{number}", rules=rules, id=f"d{number}")
            .branch("hi", nothing)
            .branch("lo", nothing)
            .end()
        )
    card = run(chart.build()).walk.view()
    assert card.qualifiers == ("r0 1", "r1 1", "r2 1", "r3 1", "+4 more rule sets")


def test_a_secret_in_a_reason_a_tag_or_a_stream_is_never_told():
    def stop(scope):
        scope["token"] = "hunter2-xyz"
        scope.stop("because of hunter2-xyz")

    chart = flow_chart("c", nothing, id="a", tags=("hunter2-xyz",)).add_function(
        "Stop", stop, id="b"
    )
    made = chart.build().run_sync(redact={"keys": ["token"]})
    told = walk_flow(made.walk)
    for text in (str(told), str(made.view()), told.summary, str(made)):
        assert "hunter2" not in text


def test_phrases_are_joined_as_a_sentence_joins_them():
    assert joined([]) == joined(["", ()]) == ""
    assert joined(["one"]) == "one"
    assert cell_text(joined(["one", ("two", Data(value="x")), "? three"])) == "one, two x, ? three"


def test_marks_stand_in_pictures_alone():
    teller = Teller(asking().structure, None)
    node = asking().structure.node("approve")
    assert (teller.kind(node), teller.marked(node)) == ("may ask", "? may ask")
    assert set(MARKS) == {"streaming", "pausable"}


def test_a_chart_inside_counts_its_own_stages_and_no_branches():
    chart = flow_chart("c", nothing, id="a").add_subchart("Sub", restore(), id="sub").build()
    assert second(declared(chart).graph)["sub"] == "chart of 3 stages"
