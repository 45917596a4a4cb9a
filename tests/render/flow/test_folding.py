"""Folding: what is too large to read is drawn as less, and how is always said."""

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from runbook_nb._view import Badge, Graph, GraphEdge, GraphGroup, GraphLine, GraphNode
from runbook_nb.chart.builder import flow_chart
from runbook_nb.render.cells import cell_text
from runbook_nb.render.dot import render_dot
from runbook_nb.render.folding import MAX_BRANCHES, MAX_FRAMES, MAX_NODES, fold
from runbook_nb.render.mermaid import render_mermaid


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
    assert notes == (f"3 of {MAX_NODES + 1} nodes drawn: {MAX_NODES - 1} plain stages as 1 node",)


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
    assert notes == ("40 of 80 nodes drawn: control flow only, 40 plain nodes left out",)


def test_what_is_still_too_large_is_cut_and_counted():
    nodes = tuple(GraphNode(key=f"d{n}", title="D", kind="decider") for n in range(100))
    edges = tuple(GraphEdge(source=f"d{n}", target=f"d{n + 1}") for n in range(99))
    graph, notes = fold(Graph(nodes=nodes, edges=edges))
    assert len(graph.nodes) == MAX_NODES
    assert graph.nodes[-1].title == "41 more nodes"
    assert notes == ("60 of 100 nodes drawn: 41 as 1 node",)


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


# --- side by side -------------------------------------------------------------------------------


def fork(children, states=None, kind="fork", **more):
    states = states or {}
    nodes = [
        GraphNode(key="a", title="A", state="ran"),
        GraphNode(key="f", title="F", kind=kind, state="ran"),
    ]
    edges = [GraphEdge(source="a", target="f", state="taken", times=1)]
    for n in range(children):
        state = states.get(n, "ran")
        taken = "not_taken" if state == "not_taken" else "taken"
        nodes.append(GraphNode(key=f"c{n}", title=f"C{n}", state=state))
        edges.append(GraphEdge(source="f", target=f"c{n}", state=taken, times=taken == "taken"))
        edges.append(GraphEdge(source=f"c{n}", target="z", state=taken, times=taken == "taken"))
    nodes.append(GraphNode(key="z", title="Z", state="ran"))
    members = ("f", *(f"c{n}" for n in range(children)))
    return Graph(
        nodes=tuple(nodes),
        edges=tuple(edges),
        groups=(GraphGroup(key="f", members=members), *more.get("groups", ())),
    )


def test_many_children_that_came_to_the_same_become_one_node():
    graph, notes = fold(fork(30, {3: "failed", 9: "paused", 12: "not_reached", 13: "not_reached"}))
    assert keys(graph) == ["a", "f", "f~ran", "c3", "c9", "f~not_reached", "z"]
    assert [n.title for n in graph.nodes if n.kind == "folded"] == [
        "26 branches ran",
        "2 branches not reached",
    ]
    assert notes == (
        "26 branches ran drawn as 1 node",
        "2 branches not reached drawn as 1 node",
    )
    assert next(e for e in graph.edges if e.target == "f~ran").times == 26
    (frame,) = graph.groups
    assert frame.members == ("f", "f~ran", "c3", "c9", "f~not_reached")


def test_what_a_selector_left_aside_is_called_that():
    graph, notes = fold(fork(9, dict.fromkeys(range(2, 9), "not_taken"), kind="selector"))
    assert notes == (
        "2 branches ran drawn as 1 node",
        "7 branches not selected drawn as 1 node",
    )
    assert [e.state for e in graph.edges if e.target.startswith("f~")] == ["taken", "not_taken"]


def test_a_few_children_stay_and_so_do_many_before_a_run():
    for graph in (fork(MAX_BRANCHES), fork(20, dict.fromkeys(range(20), "declared"))):
        assert fold(graph) == (graph, ())


def test_a_child_that_is_a_chart_is_no_branch_like_any():
    inner = GraphNode(key="c0/x", title="X", state="ran")
    whole = fork(9, groups=(GraphGroup(key="c0", members=("c0", "c0/x"), parent="f"),))
    members = tuple(m for m in whole.groups[0].members if m != "c0")
    whole = replace(
        whole,
        nodes=(*whole.nodes, inner),
        groups=(replace(whole.groups[0], members=members), whole.groups[1]),
    )
    graph, _ = fold(whole)
    assert "c0" in keys(graph)
    assert "8 branches ran" in [n.title for n in graph.nodes]


# --- charts in charts ---------------------------------------------------------------------------


def chart(key, size, *, state="ran", kind="subchart", second="", inside=(), of="stage"):
    """A mounted chart of plain stages, or of the given nodes; its nodes, edges and frame."""
    head = GraphNode(key=key, title=key, kind=kind, state=state, second=second)
    nodes = [head, *(inside or _plain(key, size, state, of))]
    taken = "taken" if state == "ran" else "not_taken"
    edges = [
        GraphEdge(source=a.key, target=b.key, state=taken, times=taken == "taken")
        for a, b in pairwise(nodes)
    ]
    return nodes, edges, GraphGroup(key=key, members=tuple(n.key for n in nodes))


def _plain(key, size, state, kind):
    keys_ = (f"{key}/s{n}" for n in range(size))
    return [GraphNode(key=one, title="S", kind=kind, state=state) for one in keys_]


def in_a_row(*charts):
    nodes, edges, groups = [], [], []
    for inner, joints, group in charts:
        if nodes:
            state = "taken" if inner[0].state == "ran" else "not_taken"
            edges.append(GraphEdge(source=nodes[-1].key, target=inner[0].key, state=state, times=1))
        nodes += inner
        edges += joints
        groups.append(group)
    return Graph(nodes=tuple(nodes), edges=tuple(edges), groups=tuple(groups))


def judging(key, **more):
    """A chart in which something is decided."""
    inside = [
        GraphNode(key=f"{key}/d", title="D", kind="decider", state="ran"),
        *(
            GraphNode(
                key=f"{key}/{word}", title=Badge(word=word), kind="branch", role="a", state="ran"
            )
            for word in ("old", "new")
        ),
    ]
    return chart(key, 0, inside=inside, **more)


def test_a_chart_is_folded_into_its_head_with_how_much_it_held():
    charts = [chart(f"m{n}", 4, second="chart of 4 stages", of="streaming") for n in range(13)]
    graph, notes = fold(in_a_row(*charts))
    assert keys(graph) == [f"m{n}" for n in range(13)]
    assert {cell_text(n.second) for n in graph.nodes} == {"chart of 4 stages, 4 nodes folded"}
    assert graph.groups == ()
    assert notes == ('13 of 65 nodes drawn: 13 charts folded; one alone: flowchart().inside("m0")',)


def test_charts_nobody_came_to_go_first_and_those_in_which_something_was_decided_last():
    def of(judged, ran, left):
        return in_a_row(
            *(judging(f"j{n}") for n in range(judged)),
            *(chart(f"m{n}", 3, of="streaming") for n in range(ran)),
            *(chart(f"u{n}", 3, state="not_reached", of="streaming") for n in range(left)),
        )

    def left_open(graph):
        return {group.key[0] for group in graph.groups}

    assert left_open(fold(of(6, 6, 6))[0]) == {"j", "m"}
    assert left_open(fold(of(10, 6, 3))[0]) == {"j"}
    assert left_open(fold(of(20, 1, 1))[0]) == set()
    assert fold(of(6, 6, 6))[1][0].startswith("54 of 72 nodes drawn: 6 charts folded; ")


def test_a_chart_that_holds_what_failed_is_the_last_to_be_folded():
    broken = chart(
        "b",
        0,
        inside=[
            GraphNode(key="b/x", title="X", state="failed"),
            GraphNode(key="b/y", title="Y", kind="decider", state="not_reached"),
        ],
    )
    graph, _ = fold(in_a_row(*(judging(f"j{n}") for n in range(40)), broken))
    assert "b/x" in keys(graph)
    assert "j0/d" not in keys(graph)


def test_a_folded_chart_says_what_failed_or_waits_inside_it():
    def holding(key, state):
        first = GraphNode(key=f"{key}/d", title="D", kind="decider", state="ran")
        last = GraphNode(key=f"{key}/x", title="X", kind="decider", state=state)
        return chart(key, 0, second="chart of 2 stages", inside=[first, last])

    states = ("failed", "paused", "stopped")
    graph, _ = fold(in_a_row(*(holding(f"h{n}", states[n % 3]) for n in range(45))))
    told = {cell_text(n.second) for n in graph.nodes if n.kind == "subchart"}
    assert told == {
        "chart of 2 stages, 1 failed inside, 2 nodes folded",
        "chart of 2 stages, 1 waiting inside, 2 nodes folded",
        "chart of 2 stages, 1 stopped inside, 2 nodes folded",
    }
    assert {n.state for n in graph.nodes if "waiting" in cell_text(n.second)} == {"paused"}


def test_a_folded_fan_out_keeps_the_counts_of_its_verdicts():
    fans = [judging(f"f{n}", kind="fan_out", second="fan-out, 4 of 4 done") for n in range(20)]
    for nodes, edges, _ in fans:
        edges[-1] = replace(edges[-1], source=nodes[1].key, times=1)
        edges[-2] = replace(edges[-2], times=3)
    graph, notes = fold(in_a_row(*fans))
    assert cell_text(graph.nodes[0].second) == (
        "fan-out, 4 of 4 done, 3 old, 1 new, 3 nodes folded"
    )
    assert "20 fan-outs folded" in notes[0]


def test_what_is_alike_is_folded_alike():
    graph, _ = fold(in_a_row(*(judging(f"j{n}") for n in range(20))))
    assert not any(key.endswith("/d") for key in keys(graph))


def test_frames_deeper_than_can_be_told_apart_are_folded():
    deep = flow_chart("deepest", print, id="x").build()
    for level in range(12):
        deep = flow_chart(f"l{level}", print, id="a").add_subchart("Sub", deep, id="sub").build()
    drawn = deep.flowchart()
    assert max(_depths(drawn.graph)) == MAX_FRAMES
    assert drawn.drawing.note.startswith(
        "14 of 25 nodes drawn: 1 chart deeper than 6 levels folded"
    )
    last = next(n for n in drawn.graph.nodes if "folded" in cell_text(n.second))
    assert cell_text(last.second) == "chart of 2 stages, 11 nodes folded"


def _depths(graph):
    parents = {group.key: group.parent for group in graph.groups}
    for head in parents:
        key, depth = head, 0
        while key:
            key, depth = parents[key], depth + 1
        yield depth


def test_the_note_says_how_to_see_one_that_was_folded():
    whole = in_a_row(*(judging(f"j{n}") for n in range(20)))
    _, notes = fold(whole)
    assert notes[-1].endswith('; one alone: flowchart().inside("j0")')


def test_folded_charts_that_follow_each_other_become_one_node_too():
    graph, notes = fold(in_a_row(*(chart(f"m{n}", 2) for n in range(200))))
    assert [n.title for n in graph.nodes][1:2] == ["198 charts"]
    assert notes == (
        "3 of 600 nodes drawn: 198 of the charts as 1 node, 200 charts folded; "
        'one alone: flowchart().inside("m0")',
    )


def test_frames_are_folded_the_same_way_every_time():
    whole = in_a_row(*(judging(f"j{n}") for n in range(30)), *(chart(f"m{n}", 3) for n in range(9)))
    assert fold(whole) == fold(whole)


def test_a_frame_of_which_only_the_head_is_left_is_no_frame():
    """Control flow alone takes the stages out of a chart, and then there is nothing around it."""
    nodes, edges = [], []
    groups = []
    for n in range(50):
        head = GraphNode(key=f"d{n}", title="D", kind="decider", state="ran")
        mount = GraphNode(key=f"m{n}", title="M", kind="fan_out", state="ran")
        inner = GraphNode(key=f"m{n}/s", title="S", state="ran")
        if nodes:
            edges.append(GraphEdge(source=nodes[-1].key, target=head.key, state="taken"))
        nodes += [head, mount, inner]
        edges.append(GraphEdge(source=head.key, target=mount.key, state="taken"))
        edges.append(GraphEdge(source=mount.key, target=inner.key, state="taken"))
        groups.append(GraphGroup(key=mount.key, members=(mount.key, inner.key)))
    graph, _ = fold(Graph(nodes=tuple(nodes), edges=tuple(edges), groups=tuple(groups)))
    assert all(len(group.members) > 1 for group in graph.groups)
    assert len(graph.nodes) <= MAX_NODES


# --- what was taken first -----------------------------------------------------------------------


def decisions(count):
    nodes, edges, before = [], [], []
    for n in range(count):
        nodes.append(GraphNode(key=f"d{n}", title="D", kind="decider", state="ran"))
        edges += [GraphEdge(source=b, target=f"d{n}", state=s) for b, s in before]
        before = []
        for word, state in (("hi", "not_taken"), ("lo", "ran")):
            taken = "taken" if state == "ran" else "not_taken"
            key = f"{word}{n}"
            nodes.append(
                GraphNode(
                    key=key, title=Badge(word=key, role="a"), kind="branch", role="a", state=state
                )
            )
            edges.append(GraphEdge(source=f"d{n}", target=key, state=taken))
            before.append((key, taken))
    return Graph(nodes=tuple(nodes), edges=tuple(edges))


def test_what_was_not_taken_is_left_out_before_anything_taken_is():
    graph, notes = fold(decisions(25))
    assert {n.state for n in graph.nodes} == {"ran"}
    assert {e.state for e in graph.edges} == {"taken"}
    assert len(graph.nodes) == 50
    assert notes == ("50 of 75 nodes drawn: 25 nodes not taken left out",)


def test_of_what_is_still_too_much_the_beginning_and_what_failed_are_kept():
    whole = decisions(60)
    broken = replace(whole.nodes[-1], state="failed", key="lo59")
    graph, notes = fold(replace(whole, nodes=(*whole.nodes[:-1], broken)))
    assert len(graph.nodes) == MAX_NODES
    assert keys(graph)[0] == "d0"
    assert "lo59" in keys(graph)
    assert notes == ("60 of 180 nodes drawn: 60 nodes not taken left out, 61 as 1 node",)
    rest = next(n for n in graph.nodes if n.key == "~rest")
    assert rest.title == "61 more nodes"


def test_ways_back_between_folded_nodes_are_counted_together():
    nodes, edges = stages(70)
    nodes[30] = GraphNode(key="s30", title="D", kind="decider", state="ran")
    back = [
        GraphEdge(source="s30", target=f"s{n}", state="taken", back=True, times=2, lines=LINES)
        for n in (3, 4)
    ]
    graph, _ = fold(Graph(nodes=tuple(nodes), edges=(*edges, *back)))
    found = [e for e in graph.edges if e.back]
    assert sum(e.times for e in found) == 4
    for edge in found:
        assert [line.text for line in edge.lines] == [f"back {edge.times} times"]


LINES = (GraphLine(kind="count", text="back 2 times"),)


# --- size ---------------------------------------------------------------------------------------


def test_thousands_of_stages_in_charts_fold_at_a_cost_in_proportion(calls_of):
    def whole(times):
        return in_a_row(
            *(judging(f"j{n}") for n in range(70 * times)),
            *(chart(f"m{n}", 4) for n in range(50 * times)),
        )

    graph, notes = fold(whole(10))
    assert len(graph.nodes) <= MAX_NODES
    assert notes[0].startswith(f"{len(graph.nodes)} of 5300 nodes drawn: ")
    few, many = whole(2), whole(8)
    assert calls_of(lambda: fold(many)) < 6 * calls_of(lambda: fold(few))


def test_frames_may_lie_in_each_other_deeper_than_the_stack():
    depth = 3000
    nodes = [GraphNode(key=f"m{n}", title="M", kind="subchart", state="ran") for n in range(depth)]
    edges = [GraphEdge(source=a.key, target=b.key, state="taken") for a, b in pairwise(nodes)]
    groups = [
        GraphGroup(key=f"m{n}", members=(f"m{n}",), parent=f"m{n - 1}" if n else "")
        for n in range(depth)
    ]
    whole = Graph(nodes=tuple(nodes), edges=tuple(edges), groups=tuple(groups))
    graph, notes = fold(whole)
    assert len(graph.nodes) == MAX_FRAMES + 1
    assert f"{MAX_FRAMES + 1} of {depth} nodes drawn" in notes[0]
    render_dot(graph)
    render_mermaid(whole)
