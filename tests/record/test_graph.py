"""Flowchart data: only what was recorded is drawn as taken, and every edge says why."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runbook_nb._view import Badge, Data
from runbook_nb.chart.builder import flow_chart
from runbook_nb.errors import RunbookError
from runbook_nb.record.graph import structure_graph, walk_graph
from runbook_nb.record.outline import walk_flow
from runbook_nb.record.overlay import overlay_of
from runbook_nb.rules import Default, Outside, Rule, RuleSet, Unreadable

SIGNAL = RuleSet(
    "health-signal",
    "v1",
    rules=[
        Rule({"age_known": {"eq": False}}, then="declined", label="cannot be read"),
        Rule({"policy": {"eq": "exempt"}}, then="exempt", label="exempt by policy"),
        Rule({"age_days": {"gt": 7}}, then="old", label="older than 7 days"),
    ],
    default=Default("fresh", label="within 7 days"),
)
ROUTES = ("fresh", "old", "exempt", "declined")


def load(scope):
    item = scope.args["item"]
    if item.get("breaks"):
        raise KeyError("age_days")
    scope.update(item)


def branch(rules=SIGNAL, routes=ROUTES):
    made = flow_chart("subject", load, id="load", stage_name="load").add_decider(
        "Posture", rules=rules, id="posture"
    )
    for route in routes:
        made = made.branch(route, lambda scope: None)
    return made.end().build()


def triage(rows, *, cap=50, rules=SIGNAL, routes=ROUTES):
    return (
        flow_chart("triage", lambda s: s.set("rows", rows), id="inventory", stage_name="Inventory")
        .add_parallel_for_each(
            "Assess each",
            id="each",
            items=lambda s: s["rows"],
            branch=branch(rules, routes),
            max_branches=cap,
            into="out",
            subject="name",
        )
        .add_function("Collect", lambda s: None, id="collect")
        .build()
    )


def row(name, age=1, *, known=True, **more):
    return {"name": name, "age_days": age, "age_known": known, "policy": "std", **more}


THREE = [row("a", 2), row("b", 30), row("c", None, known=False)]


def graph_of(walk):
    return walk_flow(walk).graph


def run(rows, **options):
    return graph_of(triage(rows, **options).run_sync().walk)


def node(graph, key):
    return next(n for n in graph.nodes if n.key == key)


def edge(graph, source, target):
    return next(e for e in graph.edges if (e.source, e.target) == (source, target))


def into(graph, route):
    return edge(graph, "each/posture", f"each/{route}")


def said(cell):
    if isinstance(cell, tuple):
        return " ".join(map(said, cell))
    return str(cell.value) if isinstance(cell, Data) else cell


def lines(found):
    return [(line.kind, said(line.text)) for line in found.lines]


# --- a whole walk ------------------------------------------------------------------------------


def test_a_fan_out_is_drawn_once_with_a_count_per_outcome():
    graph = run(THREE)
    assert [n.key for n in graph.nodes] == [
        "inventory",
        "each",
        "each/load",
        "each/posture",
        "each/declined",
        "each/exempt",
        "each/old",
        "each/fresh",
        "collect",
    ]
    assert node(graph, "each").second == "fan-out, 3 of 3 done, drawn once"
    assert lines(into(graph, "old")) == [
        ("count", "1 subject"),
        ("condition", "age_days 30 > 7"),
        ("label", "older than 7 days"),
    ]


def test_a_condition_tells_the_range_of_values_it_met():
    graph = run([row("a", 8), row("b", 44), row("c", 12)])
    assert ("condition", "age_days 8…44 > 7") in lines(into(graph, "old"))
    assert lines(into(graph, "old"))[0] == ("count", "3 subjects")


def test_a_branch_nobody_took_says_so_and_what_would_lead_there():
    graph = run(THREE)
    found = into(graph, "exempt")
    assert found.state == "not_taken"
    assert lines(found) == [
        ("count", "0 subjects"),
        ("condition", 'policy = "exempt"'),
        ("label", "exempt by policy"),
    ]
    assert node(graph, "each/exempt").state == "not_taken"
    assert node(graph, "each/exempt").second == "not taken"
    assert edge(graph, "each/exempt", "collect").state == "not_taken"


def test_the_default_edge_is_always_there_is_last_and_carries_its_label():
    for rows in (THREE, [row("b", 30)]):
        graph = run(rows)
        found = [e for e in graph.edges if e.source == "each/posture"]
        assert [e.target for e in found][-1] == "each/fresh"
        assert [e.default for e in found] == [False, False, False, True]
        assert any("default" in text for _, text in lines(found[-1]))
        assert ("label", "within 7 days") in lines(found[-1])


def test_verdicts_have_the_role_of_their_declared_place():
    graph = run(THREE)
    roles = {n.key: n.role for n in graph.nodes if n.kind == "branch"}
    assert roles == {
        "each/fresh": "a",
        "each/old": "b",
        "each/exempt": "c",
        "each/declined": "declined",
    }
    assert into(graph, "old").role == "b"
    assert node(graph, "each/old").title == Badge(word="old", role="b")


def test_subjects_past_the_cap_hang_off_the_head_of_the_fan_out():
    graph = run([row(str(n)) for n in range(5)], cap=3)
    assert node(graph, "each").second == "fan-out, 3 of 5 done, drawn once"
    gap = node(graph, "each~not_reached")
    assert (gap.kind, gap.state, gap.title.word) == ("gap", "not_reached", "not reached")
    found = edge(graph, "each", "each~not_reached")
    assert found.state == "gap"
    assert lines(found) == [("count", "2 subjects"), ("condition", "past the cap of 3")]


def test_failed_subjects_hang_off_the_head_and_name_the_stage():
    graph = run([row("a"), row("b", breaks=True), row("c", breaks=True)])
    assert node(graph, "each~failed").state == "failed"
    assert lines(edge(graph, "each", "each~failed")) == [
        ("count", "2 subjects"),
        ("condition", "in load"),
    ]
    assert node(graph, "each/load").state == "ran"
    assert node(graph, "each/load").second == "2 of 3 failed"


def test_where_all_subjects_fail_the_stage_failed_and_the_rest_was_not_reached():
    graph = run([row("a", breaks=True)])
    assert node(graph, "each/load").state == "failed"
    assert node(graph, "each/posture").state == "not_reached"
    assert node(graph, "each/old").state == "not_reached"
    assert into(graph, "old").state == "not_taken"


def test_a_fan_out_over_nothing_has_no_branches_to_show():
    graph = run([])
    assert [n.key for n in graph.nodes] == ["inventory", "each", "collect"]
    assert node(graph, "each").second == "fan-out, 0 subjects"
    assert edge(graph, "each", "collect").state == "taken"
    assert graph.groups == ()


def test_a_run_that_broke_shows_what_failed_and_what_was_not_reached():
    chart = (
        flow_chart("c", lambda s: 1, id="a")
        .add_function("Break", lambda s: 1 / 0, id="b")
        .add_function("Never", lambda s: 1, id="z")
        .build()
    )
    with pytest.raises(ZeroDivisionError) as caught:
        chart.run_sync()
    graph = graph_of(caught.value.run.walk)
    assert [n.state for n in graph.nodes] == ["ran", "failed", "not_reached"]
    assert [e.state for e in graph.edges] == ["taken", "not_taken"]


def test_several_rules_to_one_branch_are_one_edge_that_names_them():
    rules = RuleSet(
        "r",
        "v1",
        rules=[Rule({"age_days": {"gt": 7}}, then="old"), Rule({"size": {"gt": 5}}, then="old")],
        default=Default("fresh"),
    )
    rows = [row("a", 9, size=1), row("b", 1, size=9), row("c", 1, size=1)]
    graph = run(rows, rules=rules, routes=("fresh", "old"))
    assert lines(into(graph, "old")) == [
        ("count", "2 subjects"),
        ("condition", "rules 1, 2"),
        ("condition", "age_days 9 > 7"),
        ("condition", "size 9 > 5"),
    ]


def test_more_than_two_conditions_are_counted():
    rules = RuleSet(
        "r",
        "v1",
        rules=[Rule({"a": {"gt": 1}, "b": {"gt": 1}, "c": {"gt": 1}}, then="old")],
        default=Default("fresh"),
    )
    graph = run([row("x", a=2, b=3, c=4)], rules=rules, routes=("fresh", "old"))
    assert [text for kind, text in lines(into(graph, "old")) if kind == "condition"] == [
        "a 2 > 1",
        "b 3 > 1",
        "+1 more",
    ]


def test_what_could_not_be_read_is_told_apart_by_how():
    rows = [row("a", None), {"name": "b", "age_known": True, "policy": "std"}]
    found = lines(into(run(rows), "declined"))
    assert found[0] == ("count", "2 subjects")
    assert ("condition", "age_days null, > 7") in found
    assert ("condition", "age_days missing, > 7") in found


def test_ground_outside_the_rules_is_told_entry_by_entry():
    rules = RuleSet(
        "r",
        "v1",
        rules=[Rule({"age_days": {"gt": 7}}, then="old")],
        default=Default("fresh"),
        outside=[
            Outside(where={"os": {"eq": "x"}}, what="hosts on x", why="no data"),
            Outside(where={"os": {"eq": "y"}}, what="hosts on y", why="no data"),
        ],
    )
    rows = [row("a", os="x"), row("b", os="y"), row("c", os="z")]
    found = lines(into(run(rows, rules=rules, routes=("fresh", "old", "declined")), "declined"))
    assert ("condition", 'os = "x"') in found
    assert ("condition", 'os = "y"') in found


def test_a_function_rule_is_not_told_with_the_values_of_one_subject_for_many():
    def stale(facts):
        return facts["age_days"] > 7

    rules = RuleSet("r", "v1", rules=[Rule(stale, then="old")], default=Default("fresh"))
    many = lines(
        into(run([row("a", 9), row("b", 10)], rules=rules, routes=("fresh", "old")), "old")
    )
    assert many == [("count", "2 subjects"), ("condition", "stale()")]


def test_the_default_of_a_decider_counts_where_its_rules_have_none():
    rules = RuleSet("r", "v1", rules=[Rule({"age_days": {"gt": 7}}, then="old")])
    made = (
        flow_chart("s", load, id="load")
        .add_decider("Posture", rules=rules, id="posture")
        .branch("old", lambda s: None)
        .branch("fresh", lambda s: None)
        .default("fresh")
        .end()
        .build()
    )
    chart = (
        flow_chart("c", lambda s: s.set("rows", [row("a", 1), row("b", 9)]), id="start")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: s["rows"],
            branch=made,
            max_branches=5,
            into="r",
            subject="name",
        )
        .build()
    )
    walk = chart.run_sync().walk
    assert lines(into(graph_of(walk), "fresh")) == [
        ("count", "1 subject"),
        ("condition", "default: no rule fired"),
    ]
    alone = into(graph_of(walk.of("a")), "fresh")
    assert lines(alone) == [("count", "default: no rule fired")]


def test_nested_fan_outs_give_both_numbers_and_lie_in_each_other():
    inner = flow_chart("job", lambda s: None, id="deep").build()
    outer = (
        flow_chart("subject", lambda s: s.set("jobs", [1, 2]), id="load")
        .add_parallel_for_each(
            "Jobs", id="jobs", items=lambda s: s["jobs"], branch=inner, max_branches=5, into="r"
        )
        .build()
    )
    chart = (
        flow_chart("c", lambda s: s.set("rows", ["a", "b"]), id="start")
        .add_parallel_for_each(
            "Each", id="each", items=lambda s: s["rows"], branch=outer, max_branches=5, into="r"
        )
        .build()
    )
    graph = graph_of(chart.run_sync().walk)
    assert node(graph, "each/jobs").second == "fan-out, 4 of 4 done over 2 runs, drawn once"
    groups = {group.key: group for group in graph.groups}
    assert groups["each"].members == ("each", "each/load")
    assert groups["each/jobs"].members == ("each/jobs", "each/jobs/deep")
    assert groups["each/jobs"].parent == "each"
    flow = walk_flow(chart.run_sync().walk)
    assert [line.depth for line in flow.lines] == [0, 0, 1, 1, 2]


def test_one_branch_of_a_nested_fan_out_is_drawn_from_its_own_template():
    inner = flow_chart("job", lambda s: None, id="deep").build()
    outer = flow_chart("s", lambda s: s.set("jobs", ["x"]), id="load").add_parallel_for_each(
        "Jobs", id="jobs", items=lambda s: s["jobs"], branch=inner, max_branches=5, into="r"
    )
    chart = (
        flow_chart("c", lambda s: s.set("rows", ["a"]), id="start")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: s["rows"],
            branch=outer.build(),
            max_branches=5,
            into="r",
        )
        .build()
    )
    flow = walk_flow(chart.run_sync().walk.of("x", stage="jobs"))
    assert [n.key for n in flow.graph.nodes] == ["each/jobs/deep"]
    assert [(line.key, line.depth, line.state) for line in flow.lines] == [
        ("each/jobs/deep", 0, "ran")
    ]


def test_a_hidden_limit_stays_hidden_beside_edges_taken_and_not():
    rows = [row("a", 30), row("b", 1)]
    graph = graph_of(triage(rows).run_sync(redact={"keys": ["age_days", "policy"]}).walk)
    text = str(graph)
    assert "30" not in text
    assert "exempt by policy" in text
    assert ("condition", "policy = [REDACTED]") in lines(into(graph, "exempt"))


# --- the sentence ------------------------------------------------------------------------------


def test_the_sentence_says_what_happened_in_declared_order():
    rows = [*THREE, row("d", breaks=True), row("e")]
    flow = walk_flow(triage(rows, cap=4).run_sync().walk)
    assert flow.summary == (
        "3 of 5 subjects done: 1 fresh, 1 old, 1 declined, 1 failed, 1 not reached; 17 steps"
    )


def test_the_sentence_of_one_subject_is_that_of_its_decision():
    flow = walk_flow(triage(THREE).run_sync().walk.of("b"))
    assert flow.summary == "old by rule 3 of health-signal v1: age_days 30 > 7; 4 steps"


# --- one subject -------------------------------------------------------------------------------


def test_one_subject_is_told_rule_by_rule():
    graph = graph_of(triage(THREE).run_sync().walk.of("b"))
    assert graph.nodes[0].key == "each/load"
    assert lines(into(graph, "declined")) == [
        ("count", "rule 1: no"),
        ("condition", "age_known = false"),
        ("condition", "was true"),
    ]
    assert lines(into(graph, "old")) == [
        ("count", "rule 3: yes"),
        ("condition", "age_days 30 > 7"),
        ("label", "older than 7 days"),
    ]
    assert lines(into(graph, "fresh")) == [
        ("count", "default: not needed"),
        ("label", "within 7 days"),
    ]


def test_a_rule_that_was_not_tried_shows_no_actual():
    graph = graph_of(triage(THREE).run_sync().walk.of("c"))
    found = lines(into(graph, "old"))
    assert found[0] == ("count", "rule 3: not tried")
    assert ("condition", "age_days > 7") in found
    assert not any("was" in text for _, text in found)


def test_one_unreadable_subject_says_what_was_needed():
    graph = graph_of(triage([row("a", None)]).run_sync().walk.of("a"))
    found = lines(into(graph, "declined"))
    assert found[:2] == [("count", "unreadable"), ("condition", "age_days null, > 7")]
    assert found[-1][0] == "label"


def test_the_default_says_that_no_rule_fired():
    graph = graph_of(triage([row("a", 2)]).run_sync().walk.of("a"))
    assert lines(into(graph, "fresh"))[0] == ("count", "default: no rule fired")


def test_a_decider_of_the_root_is_told_as_one_path():
    chart = flow_chart("c", lambda s: s.update(row("a", 9)), id="load").add_decider(
        "Posture", rules=SIGNAL, id="posture"
    )
    for route in ROUTES:
        chart = chart.branch(route, lambda s: None)
    graph = graph_of(chart.end().build().run_sync().walk)
    assert lines(edge(graph, "posture", "old"))[0] == ("count", "rule 3: yes")


def test_a_skipped_unreadable_rule_says_so_on_the_edge_not_taken():
    rules = RuleSet(
        "r",
        "v1",
        rules=[Rule({"age_days": {"gt": 7}}, then="old")],
        default=Default("fresh"),
        unreadable="skip",
    )
    chart = triage([row("a", None)], rules=rules, routes=("fresh", "old"))
    graph = graph_of(chart.run_sync().walk.of("a"))
    assert lines(into(graph, "old")) == [
        ("count", "rule 1: unreadable"),
        ("condition", "age_days null, > 7"),
    ]


# --- before a run ------------------------------------------------------------------------------


def test_a_structure_alone_is_declared_throughout_with_its_default_named():
    graph = structure_graph(triage(THREE).structure)
    assert {n.state for n in graph.nodes} == {"declared"}
    assert {e.state for e in graph.edges} == {"declared"}
    assert lines(into(graph, "fresh")) == [("condition", "default")]
    assert node(graph, "each").second == "one branch per item, at most 50"


def test_a_chart_also_tells_its_rules_in_their_order():
    graph = triage(THREE).view().sections[0].parts[0].graph
    assert [e.target for e in graph.edges if e.source == "each/posture"] == [
        "each/declined",
        "each/exempt",
        "each/old",
        "each/fresh",
    ]
    assert lines(into(graph, "old")) == [
        ("condition", "age_days > 7"),
        ("label", "older than 7 days"),
    ]


def test_a_fan_out_whose_chart_is_made_per_item_is_one_node_before_the_run():
    chart = (
        flow_chart("c", lambda s: s.set("rows", ["a"]), id="start")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: s["rows"],
            branch=lambda item, index: branch(),
            max_branches=5,
            into="r",
        )
        .build()
    )
    graph = structure_graph(chart.structure)
    assert [n.key for n in graph.nodes] == ["start", "each"]
    assert node(graph, "each").kind == "folded"
    assert node(graph, "each").second == "one chart per item, built when run"


# --- laws --------------------------------------------------------------------------------------

rows_of_any_kind = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.text(max_size=3),
            "age_known": st.booleans(),
            "policy": st.sampled_from(["std", "exempt"]),
        },
        optional={
            "age_days": st.one_of(st.none(), st.integers(0, 20), st.just("x")),
            "breaks": st.booleans(),
        },
    ),
    max_size=6,
)


@st.composite
def charts(draw):
    """Make a procedure of plain stages, deciders and fan-outs in any order."""
    chart = flow_chart("c", lambda s: s.set("n", draw_n), id="s0")
    draw_n = draw(st.integers(0, 3))
    for place in range(1, draw(st.integers(1, 4)) + 1):
        kind = draw(st.sampled_from(["plain", "decider", "fan_out"]))
        if kind == "plain":
            stops = draw(st.booleans()) and draw(st.booleans())
            chart = chart.add_function(
                f"P{place}",
                (lambda s: s.stop("enough")) if stops else (lambda s: None),
                id=f"s{place}",
            )
        elif kind == "decider":
            rules = RuleSet(
                f"r{place}",
                "v1",
                rules=[Rule({"n": {"gt": draw(st.integers(0, 3))}}, then=f"x{place}")],
                default=Default(f"y{place}"),
            )
            chart = (
                chart.add_decider(f"D{place}", rules=rules, id=f"s{place}")
                .branch(f"x{place}", lambda s: None)
                .branch(f"y{place}", lambda s: None)
                .end()
            )
        else:
            rows = draw(rows_of_any_kind)
            chart = chart.add_parallel_for_each(
                f"F{place}",
                id=f"s{place}",
                items=lambda s, rows=rows: rows,
                branch=branch(),
                max_branches=draw(st.integers(1, 6)),
                into=f"out{place}",
                subject="name",
            )
    return chart.build()


@settings(max_examples=60, deadline=None)
@given(charts())
def test_edges_are_drawn_as_taken_exactly_where_a_transition_was_recorded(chart):
    walk = chart.run_sync().walk
    overlay = overlay_of(walk.log, walk.redactor)
    graph = walk_graph(walk, overlay)
    drawn = {(e.source, e.target) for e in graph.edges if e.state == "taken"}
    assert drawn == {pair for pair, times in overlay.edges.items() if times}


@settings(max_examples=60, deadline=None)
@given(charts())
def test_a_graph_is_sound(chart):
    walk = chart.run_sync().walk
    for graph in (
        walk_graph(walk, overlay_of(walk.log, walk.redactor)),
        chart.structure.view().sections[0].parts[0].graph,
    ):
        keys = [n.key for n in graph.nodes]
        assert len(keys) == len(set(keys))
        pairs = [(e.source, e.target) for e in graph.edges]
        assert len(pairs) == len(set(pairs))
        assert {key for pair in pairs for key in pair} <= set(keys)
        members = [m for group in graph.groups for m in group.members]
        assert len(members) == len(set(members))
        assert {g.parent for g in graph.groups if g.parent} <= {g.key for g in graph.groups}
        for decider in (n.key for n in graph.nodes if n.kind == "decider"):
            assert sum(e.default for e in graph.edges if e.source == decider) == 1


@settings(max_examples=40, deadline=None)
@given(rows_of_any_kind, st.integers(1, 6))
def test_the_counts_beside_the_edges_add_up_to_the_items(rows, cap):
    graph = run(rows, cap=cap)
    counts = [
        int(text.split()[0]) for e in graph.edges for kind, text in lines(e) if kind == "count"
    ]
    assert sum(counts) == len(rows)


def test_the_same_walk_gives_the_same_graph():
    assert run(THREE) == run(THREE)


def test_unreadable_outcomes_need_no_declared_label():
    rules = RuleSet(
        "r",
        "v1",
        rules=[Rule({"age_days": {"gt": 7}}, then="old")],
        default=Default("fresh"),
        unreadable=Unreadable("declined"),
    )
    graph = run([row("a", None)], rules=rules, routes=("fresh", "old", "declined"))
    assert lines(into(graph, "declined")) == [
        ("count", "1 subject"),
        ("condition", "age_days null, > 7"),
    ]


def decides(first, rules):
    return (
        flow_chart("c", first, id="load")
        .add_decider("Posture", rules=rules, id="posture")
        .branch("old", lambda scope: None)
        .branch("fresh", lambda scope: None)
        .end()
        .build()
    )


def branch_states(run):
    """The states of the branches: in the outline, and as drawn."""
    flow = walk_flow(run.walk)
    keys = {node.key for node in run.structure.nodes if node.kind == "branch"}
    return (
        {line.state for line in flow.lines if line.key in keys},
        {node.state for node in flow.graph.nodes if node.key in keys},
    )


AGE = [Rule({"x": {"gt": 1}}, "old")]


def test_branches_of_a_decider_that_never_ran_are_not_reached_and_not_called_not_taken():
    run = decides(lambda scope: scope.stop("enough"), RuleSet("r", "1", AGE, "fresh")).run_sync()
    assert branch_states(run) == ({"not_reached"}, {"not_reached"})
    assert "not taken" not in str(run.walk)


def test_a_decider_that_failed_chose_no_other_way():
    rules = RuleSet("r", "1", AGE, "fresh", unreadable="raise")
    with pytest.raises(RunbookError) as failed:
        decides(lambda scope: scope.set("x", None), rules).run_sync()
    assert branch_states(failed.value.run) == ({"not_reached"}, {"not_reached"})
