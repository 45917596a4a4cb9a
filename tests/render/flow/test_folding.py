"""Folding: what is too large to read is drawn as less, and how is always said."""

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from runbook_nb._view import Badge, Graph, GraphEdge, GraphNode
from runbook_nb.chart.builder import flow_chart
from runbook_nb.render.folding import MAX_BRANCHES, MAX_NODES, fold


def stages(n, *, state="ran", prefix="s"):
    nodes = [GraphNode(key=f"{prefix}{i}", title=f"S{i}", state=state) for i in range(n)]
    edges = [GraphEdge(source=a.key, target=b.key, state="taken") for a, b in pairwise(nodes)]
    return nodes, edges


def decider(branches, taken=(0,), default=None):
    nodes = [GraphNode(key="d", title="D", kind="decider", state="ran")]
    edges = []
    for n in range(branches):
        ran = n in taken
        title = Badge(word=f"b{n}", role="d")
        state = "ran" if ran else "not_taken"
        nodes.append(GraphNode(key=f"b{n}", title=title, kind="branch", state=state, role="d"))
        edges.append(
            GraphEdge(
                source="d",
                target=f"b{n}",
                state="taken" if ran else "not_taken",
                role="d",
                default=n == default,
            )
        )
    return Graph(nodes=tuple(nodes), edges=tuple(edges))


def keys(graph):
    return [node.key for node in graph.nodes]


def test_a_small_chart_is_left_alone():
    graph = decider(MAX_BRANCHES)
    assert fold(graph) == (graph, ())


def test_many_branches_not_taken_become_one_dotted_node():
    graph, notes = fold(decider(8, taken=(2, 5)))
    assert keys(graph) == ["d", "d~not_taken", "b2", "b5"]
    folded = graph.nodes[1]
    assert (folded.title, folded.state) == ("6 branches not taken", "not_taken")
    assert notes == ("6 branches not taken drawn as 1 node",)
    assert [(e.target, e.state) for e in graph.edges] == [
        ("d~not_taken", "not_taken"),
        ("b2", "taken"),
        ("b5", "taken"),
    ]


def test_the_default_branch_is_never_folded():
    graph, _ = fold(decider(8, default=7))
    assert "b7" in keys(graph)
    assert [e.default for e in graph.edges if e.target == "b7"] == [True]


def test_branches_nobody_was_asked_about_stay():
    nodes, edges = decider(9).nodes, decider(9).edges
    graph = Graph(
        nodes=tuple(replace(n, state="declared") for n in nodes),
        edges=tuple(replace(e, state="declared") for e in edges),
    )
    assert fold(graph) == (graph, ())


def test_a_long_run_of_stages_becomes_one_that_counts_them():
    nodes, edges = stages(MAX_NODES + 1)
    graph, notes = fold(Graph(nodes=tuple(nodes), edges=tuple(edges)))
    assert [n.title for n in graph.nodes] == ["S0", f"{MAX_NODES - 1} stages", f"S{MAX_NODES}"]
    assert [e.state for e in graph.edges] == ["taken", "taken"]
    assert notes == (f"{MAX_NODES - 1} plain stages drawn as 1 node",)


def test_stages_of_different_fate_are_not_folded_together():
    ran, edges = stages(40)
    missed, more = stages(40, state="not_reached", prefix="m")
    joint = GraphEdge(source="s39", target="m0", state="not_taken")
    graph, _ = fold(Graph(nodes=(*ran, *missed), edges=(*edges, joint, *more)))
    assert {n.state for n in graph.nodes if n.kind == "folded"} == {"ran", "not_reached"}


def test_a_failed_stage_is_always_drawn():
    nodes, edges = stages(80)
    nodes[40] = GraphNode(key="s40", title="broke", state="failed")
    graph, _ = fold(Graph(nodes=tuple(nodes), edges=tuple(edges)))
    assert "s40" in keys(graph)


def test_where_runs_are_not_enough_control_flow_is_kept():
    nodes, edges = [], []
    for n in range(40):
        nodes += [
            GraphNode(key=f"d{n}", title="D", kind="decider", state="ran"),
            GraphNode(key=f"s{n}", title="S", state="ran"),
        ]
        edges.append(GraphEdge(source=f"d{n}", target=f"s{n}", state="taken"))
        if n:
            edges.append(GraphEdge(source=f"s{n - 1}", target=f"d{n}", state="taken"))
    graph, notes = fold(Graph(nodes=tuple(nodes), edges=tuple(edges)))
    assert {n.kind for n in graph.nodes} == {"decider"}
    assert len(graph.nodes) == 40
    assert notes == ("control flow only: 40 plain nodes left out",)


def test_what_is_still_too_large_is_cut_and_counted():
    nodes = tuple(GraphNode(key=f"d{n}", title="D", kind="decider") for n in range(100))
    edges = tuple(GraphEdge(source=f"d{n}", target=f"d{n + 1}") for n in range(99))
    graph, notes = fold(Graph(nodes=nodes, edges=edges))
    assert len(graph.nodes) == MAX_NODES
    assert graph.nodes[-1].title == "41 more nodes, in the list"
    assert notes == ("59 of 100 nodes drawn",)


def test_fifty_subjects_of_fifteen_steps_are_one_drawn_branch():
    steps = flow_chart("subject", lambda s: None, id="s0")
    for n in range(1, 15):
        steps = steps.add_function(f"Step {n}", lambda s: None, id=f"s{n}")
    chart = (
        flow_chart("c", lambda s: s.set("rows", list(range(50))), id="start")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: s["rows"],
            branch=steps.build(),
            max_branches=50,
            into="r",
        )
        .build()
    )
    walk = chart.run_sync().walk
    drawn = walk.flowchart()
    assert len(drawn.graph.nodes) == 17
    assert "50 like branches shown once" in drawn.flow.notes
    assert len(drawn.dot) < 8_000
    alone = walk.of(index=7).flowchart()
    assert len(alone.graph.nodes) == 15


@given(st.integers(1, 90), st.sets(st.integers(0, 89), max_size=20))
def test_folding_keeps_a_sound_chart_of_at_most_the_cap(count, deciders):
    nodes, edges = stages(count)
    nodes = [
        GraphNode(key=n.key, title=n.title, kind="decider", state="ran") if i in deciders else n
        for i, n in enumerate(nodes)
    ]
    graph, notes = fold(Graph(nodes=tuple(nodes), edges=tuple(edges)))
    assert len(graph.nodes) <= MAX_NODES
    known = set(keys(graph))
    assert len(known) == len(graph.nodes)
    assert all({e.source, e.target} <= known for e in graph.edges)
    assert bool(notes) == (len(graph.nodes) < count)
    assert all(e.state == "taken" for e in graph.edges)
