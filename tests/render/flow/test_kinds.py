"""Pictures of every kind of stage: agreed bytes, the same structure from every engine, any size."""

import os
import re
import sys
from html import unescape
from pathlib import Path

import pytest
from kind_charts import (
    KINDS,
    fleet,
    incident,
    looped,
    mounted,
    nothing,
    run,
    says,
    selected,
    stopped,
)

import runbook_nb as rb
from runbook_nb._view import GraphEdge, GraphNode
from runbook_nb.chart.builder import flow_chart
from runbook_nb.errors import NoSuchStage
from runbook_nb.render.dot import render_dot
from runbook_nb.render.html import render_html
from runbook_nb.render.labels import Look, node_lines
from runbook_nb.render.markdown import render_markdown
from runbook_nb.render.mermaid import render_mermaid
from runbook_nb.render.svg import COLUMN, MAX_BYTES, draw
from runbook_nb.render.text import render_text
from runbook_nb.settings import settings

sys.path.insert(0, str(Path(__file__).parents[1] / "html"))

from untrusted import sanitized

GOLDEN = Path(__file__).parent / "golden"
ANSWERED = {"asking_answered": ("asking", "yes"), "incident_answered": ("incident", "no")}
WALKS = [*KINDS, *ANSWERED]


def walk_of(name):
    kind, *answers = ANSWERED.get(name, (name,))
    return run(KINDS[kind](), *answers).walk


def agreed(name, text):
    path = GOLDEN / name
    if os.environ.get("RUNBOOK_NB_WRITE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


# --- agreed bytes -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WALKS)
def test_the_picture_of_a_run_has_the_agreed_bytes(pure, name):
    with settings(theme="light"):
        agreed(f"kind_{name}.svg", walk_of(name).flowchart().svg)


@pytest.mark.parametrize("name", ["forked", "selected", "mounted", "looped", "incident"])
def test_the_picture_of_what_could_happen_has_the_agreed_bytes(pure, name):
    with settings(theme="light"):
        agreed(f"kind_{name}_declared.svg", KINDS[name]().flowchart().svg)


@pytest.mark.parametrize("name", WALKS)
def test_the_mermaid_text_of_a_run_is_the_agreed_one(name):
    agreed(f"kind_{name}.mmd", walk_of(name).flowchart().mermaid)


@pytest.mark.parametrize("name", WALKS)
def test_the_list_of_a_run_is_the_agreed_one(name):
    agreed(f"kind_{name}.txt", render_text(walk_of(name).view()))


# --- the same from every engine -----------------------------------------------------------------


@pytest.mark.parametrize("name", WALKS)
def test_every_engine_draws_every_node_and_edge(engine, name, tools):
    chart = walk_of(name).flowchart()
    found = tools.texts(chart.drawing)
    nodes = sorted(lines for kinds, lines in found if "node" in kinds)
    narrow = Look(narrow=True)
    expected = [
        sorted([line.text for line in node_lines(node, look)] for node in chart.graph.nodes)
        for look in (None, narrow)
    ]
    assert nodes in expected
    edges = [kinds for kinds, _ in found if "edge" in kinds]
    assert len(edges) == len(chart.graph.edges)
    assert sum("taken" in kinds for kinds in edges) == sum(
        edge.state == "taken" for edge in chart.graph.edges
    )


@pytest.mark.parametrize("theme", ["light", "dark", "auto"])
@pytest.mark.parametrize("name", ["asking", "stopped"])
def test_what_waits_or_stopped_is_outlined_as_dark_as_text_in_every_theme(pure, name, theme):
    with settings(theme=theme):
        svg = walk_of(name).flowchart().svg
    assert re.search(r"\.waits \[stroke=\"black\"\],\.rb-\w+ \.stop \[stroke=\"black\"\]", svg)
    with settings(theme=theme):
        assert ".waits" not in walk_of("forked").flowchart().svg


# --- shapes -------------------------------------------------------------------------------------


def shape_of(kind, state="ran", role=None):
    node = GraphNode(key="a", title="A", kind=kind, state=state, role=role)
    return re.search(r"n1 \[(.*)\]", render_dot(_alone(node))).group(1)


def _alone(*nodes):
    from runbook_nb._view import Graph

    return Graph(nodes=nodes)


def test_each_kind_has_a_shape_of_its_own():
    assert "shape=hexagon" in shape_of("decider")
    assert "shape=octagon" in shape_of("selector")
    assert "shape=polygon" in shape_of("fork")
    assert "sides=4" in shape_of("fork")
    assert "shape=tab" in shape_of("subchart")
    for kind in ("stage", "streaming", "pausable", "fan_out"):
        assert "shape" not in shape_of(kind)


@pytest.mark.parametrize("kind", ["decider", "selector", "fork", "subchart"])
@pytest.mark.parametrize(
    ("state", "line"), [("not_taken", "dotted"), ("not_reached", "dashed"), ("paused", "dashed")]
)
def test_a_kind_keeps_its_shape_whatever_became_of_it(kind, state, line):
    drawn = shape_of(kind, state)
    assert "shape=" in drawn
    assert f'style="filled,{line}"' in drawn


def test_each_kind_has_brackets_of_its_own_in_mermaid():
    def bracketed(kind):
        text = render_mermaid(_alone(GraphNode(key="a", title="A", kind=kind, state="ran")))
        return text.splitlines()[1].strip()

    found = {
        kind: bracketed(kind)
        for kind in ("stage", "decider", "selector", "fork", "subchart", "streaming", "pausable")
    }
    assert found == {
        "stage": 'n1("A")',
        "decider": 'n1{{"A"}}',
        "selector": 'n1[/"A"/]',
        "fork": 'n1[/"A"\\]',
        "subchart": 'n1["A"]',
        "streaming": 'n1[\\"A"\\]',
        "pausable": 'n1(["A"])',
    }


def test_states_have_classes_in_mermaid():
    text = walk_of("asking").flowchart().mermaid
    assert "classDef waits stroke-width:3px,stroke-dasharray:5 3" in text
    assert "class n2 waits" in text
    assert "class n3 stop" in walk_of("stopped").flowchart().mermaid


def test_an_edge_that_goes_back_is_written_the_other_way_round():
    dot = run(looped()).walk.flowchart().dot
    (back,) = [text for text in dot.splitlines() if "back 3 times" in text]
    assert "n2 -> n4" in back  # from the stage it leads to
    assert "dir=back" in back


def test_a_way_back_round_plain_stages_takes_no_part_in_ranking():
    dot = walk_of("rounds").flowchart().dot
    (back,) = [text for text in dot.splitlines() if "back 2 times" in text]
    assert "n3 -> n2" in back
    assert "constraint=false" in back


def test_a_stage_that_goes_back_to_itself_is_written_as_it_is():
    node = GraphNode(key="a", title="A")
    edge = GraphEdge(source="a", target="a", back=True)
    from runbook_nb._view import Graph

    assert "n1 -> n1\n" in render_dot(Graph(nodes=(node,), edges=(edge,)))


def test_branches_beside_a_chart_stay_near_their_decider():
    dot = walk_of("branching").flowchart().dot
    weighted = [text for text in dot.splitlines() if "weight=2" in text]
    assert len(weighted) == 3


def test_what_stands_under_a_name_is_wrapped_sooner_where_a_picture_is_too_wide(pure):
    chart = run(incident()).walk.flowchart()
    assert chart.drawing.width <= COLUMN
    assert chart.drawing.note == ""
    wide = GraphNode(key="a", title="A", second="cache, chart of 2 stages, made when run")
    assert [line.text for line in node_lines(wide, Look(narrow=True))] == [
        *("A", "cache, chart of 2", "stages, made when", "run")
    ]
    assert len(node_lines(wide)) == 2


# --- what is inside one stage -------------------------------------------------------------------


def test_the_inside_of_one_stage_is_drawn_alone():
    whole = run(mounted()).walk.flowchart()
    inner = whole.inside("restore")
    assert [node.key for node in inner.graph.nodes] == [
        *("restore/mount", "restore/whole?", "restore/whole", "restore/torn", "restore/unmount")
    ]
    assert [edge.state for edge in inner.graph.edges].count("taken") == 3
    assert inner.graph.groups == ()
    assert [(line.key, line.depth) for line in inner.flow.lines] == [
        *(("restore/mount", 0), ("restore/whole?", 0), ("restore/whole", 1)),
        *(("restore/torn", 1), ("restore/unmount", 0)),
    ]
    assert str(inner).startswith("Walk recover, Restore one volume · 5 lines")
    assert inner.drawing.alt == "inside Restore one volume"


def test_a_stage_is_meant_by_its_key_its_id_or_its_name():
    whole = run(fleet()).walk.flowchart()
    by_key = whole.inside("each/probe").graph
    assert by_key == whole.inside("probe").graph == whole.inside("Probe").graph
    assert [node.key for node in by_key.nodes] == ["each/ssh", "each/http"]
    each = whole.inside("each").graph
    assert {group.key for group in each.groups} == {"each/probe", "each/deep"}
    assert {group.parent for group in each.groups} == {""}


def test_the_inside_of_the_inside_can_be_drawn_too():
    whole = run(fleet()).walk.flowchart()
    assert whole.inside("each").inside("deep").graph.nodes[0].key == "each/deep/scan"


def test_a_stage_that_holds_nothing_is_an_error_that_names_a_near_one():
    with pytest.raises(NoSuchStage, match="no stage 'restor' holds others") as caught:
        run(mounted()).walk.flowchart().inside("restor")
    assert caught.value.where == "restor"
    assert "restore" in caught.value.fix
    assert issubclass(NoSuchStage, LookupError)
    with pytest.raises(NoSuchStage):
        run(mounted()).walk.flowchart().inside("tell")


def test_a_name_that_several_have_is_an_error_that_lists_their_keys():
    inner = flow_chart("i", nothing, id="x").build()
    chart = (
        flow_chart("c", nothing, id="a")
        .add_subchart("Same", inner, id="one")
        .add_subchart("Same", inner, id="two")
        .build()
    )
    with pytest.raises(NoSuchStage, match="2 stages are called 'Same' and hold others") as caught:
        chart.flowchart().inside("Same")
    assert caught.value.fix == "give its key"
    assert [n.key for n in chart.flowchart().inside("two").graph.nodes] == ["two/x"]


# --- size ---------------------------------------------------------------------------------------


def chain(length):
    chart = flow_chart("chain", nothing, id="s0", stage_name="Stage 0")
    for number in range(1, length):
        chart.add_function(f"Stage {number}", nothing, id=f"s{number}")
    return chart.build()


def test_a_chain_of_a_thousand_stages_is_three_nodes_and_says_so(pure):
    walk = run(chain(1000)).walk
    drawing = walk.flowchart().drawing
    assert drawing.note == "3 of 1000 nodes drawn: 998 plain stages as 1 node"
    assert drawing.alt == "1000 of 1000 stages ran; 1000 steps"
    assert "998 stages" in drawing.svg
    html = render_html(walk.view())
    assert "3 of 1000 nodes drawn: 998 plain stages as 1 node" in html
    assert "3 of 1000 steps shown: 998 plain stages as 1 line" in html


def test_hundreds_of_decisions_stay_within_every_cap(pure):
    chart = flow_chart("many", lambda s: s.set("n", 0), id="a")
    for number in range(300):
        rules = rb.RuleSet(f"r{number}", "1", [rb.Rule({"n": {"gt": 1}}, "hi")], default="lo")
        chart = (
            chart.add_decider(f"Decide {number}", rules=rules, id=f"d{number}")
            .branch("hi", nothing)
            .branch("lo", nothing)
            .end()
        )
    walk = run(chart.build()).walk
    flowchart = walk.flowchart()
    assert len(flowchart.graph.nodes) == 60
    assert len(flowchart.svg) < MAX_BYTES
    assert flowchart.drawing.note.startswith(
        "60 of 1201 nodes drawn: 600 nodes not taken left out, 542 as 1 node"
    )
    assert len(render_text(walk.view()).splitlines()) < 70
    assert len(render_html(walk.view())) < 512 * 1024


def nested(depth):
    """Charts in one another, each made when run, so that only the engine's limit ends it."""
    chart = flow_chart(f"level{depth}", nothing, id="a", stage_name=f"Before {depth}")
    if depth:
        chart.add_subchart(f"Level {depth}", lambda: nested(depth - 1), id="sub", lazy=True)
    return chart.add_function(f"After {depth}", nothing, id="z").build()


def test_charts_in_one_another_are_told_and_drawn_however_deep(pure):
    """Deeper than Python's stack would reach with a call or two per chart."""
    made = nested(350).run_sync(limits=rb.Limits(depth=1000))
    assert len(made.structure.nodes) == 1052
    card = made.view()
    flowchart = made.walk.flowchart()
    assert flowchart.drawing.note.startswith(
        "21 of 1052 nodes drawn: 1 chart deeper than 6 levels folded"
    )
    for text in (render_text(card), render_markdown(card), render_html(card)):
        assert "folded" in text
    whole = flowchart.flow.graph
    assert render_dot(whole).count("subgraph") == 350
    assert render_mermaid(whole).count("subgraph") == 350
    assert len(flowchart.inside("sub/sub/sub").flow.lines) == 1052 - 9


def test_fifty_charts_in_one_another_known_before_the_run():
    chart = flow_chart("deepest", nothing, id="x").build()
    for level in range(50):
        chart = (
            flow_chart(f"l{level}", nothing, id="a").add_subchart("Sub", chart, id="sub").build()
        )
    for made in (chart, run(chart).walk):
        drawn = made.flowchart()
        assert len(drawn.graph.nodes) == 14
        assert "folded" in drawn.drawing.note or drawn.svg is None


def test_wide_forks_in_charts_in_fan_outs_are_folded_alike(pure):
    probe = flow_chart("probe", nothing, id="open").add_function("Look", nothing, id="look").build()
    host = flow_chart("host", nothing, id="load").add_fork("Probe", id="probe")
    for number in range(4):
        host = host.branch(f"p{number}", probe)
    region = flow_chart(
        "region", lambda s: s.set("hosts", [1, 2]), id="list"
    ).add_parallel_for_each(
        "Each host",
        id="each",
        items=lambda s: s["hosts"],
        branch=host.end().build(),
        max_branches=5,
        into="o",
    )
    chart = flow_chart("regions", nothing, id="a")
    for number in range(20):
        chart.add_subchart(f"Region {number}", region.build(), id=f"r{number}")
    flowchart = run(chart.build()).walk.flowchart()
    assert len(flowchart.graph.nodes) <= 60
    folded = {
        key.partition("/")[2]
        for key in (node.key for node in flowchart.graph.nodes if node.key.startswith("r"))
    }
    for number in range(20):
        inside = {
            node.key.partition("/")[2]
            for node in flowchart.graph.nodes
            if node.key.partition("/")[0] == f"r{number}"
        }
        assert inside in ({""}, folded - {""}, folded, set())
    assert flowchart.drawing.svg is not None


def test_a_picture_that_is_too_large_gives_way_to_list_and_mermaid(pure, monkeypatch):
    from runbook_nb.render import svg

    monkeypatch.setattr(svg, "MAX_BYTES", 4096)
    flowchart = run(selected()).walk.flowchart()
    assert flowchart.svg is None
    assert flowchart.drawing.note.endswith(
        "more than 4 kB; the list tells the same, and .mermaid can be drawn elsewhere"
    )
    assert render_text(flowchart.view()).splitlines()[-1].startswith("no picture: it has ")
    assert "Grow disk" in flowchart.mermaid


def test_drawing_never_depends_on_who_asks(pure):
    one, two = (run(stopped()).walk for _ in range(2))
    assert draw(one.flowchart().flow).svg == draw(two.flowchart().flow).svg


def test_a_chain_four_times_as_long_costs_no_more_than_its_share(pure, calls_of):
    """Linear would be four; what grows with the square would be sixteen."""

    def calls(length):
        walk = run(chain(length)).walk
        return calls_of(
            lambda: (walk.flowchart().drawing, render_text(walk.view()), render_html(walk.view()))
        )

    calls(100)  # what is loaded once
    assert calls(2000) < 6 * calls(500)


# --- nothing foreign ----------------------------------------------------------------------------


def test_what_authors_write_into_tags_reasons_streams_and_words_stays_text(engine, tools):
    for name in tools.HOSTILE:
        if not name.strip():
            continue
        word = re.sub(r"[/#~\n\r\t]", "_", name).strip()
        chart = (
            flow_chart(name, nothing, id="a", tags=(name,))
            .add_streaming(name, says("x"), id="b", stream=name)
            .add_fork(name, id="f")
            .branch(word, nothing, name="child", tags=(name,))
            .end()
            .add_function("Stop", lambda s, n=name: s.stop(n), id="z")
            .build()
        )
        for made in (chart, run(chart).walk):
            flowchart = made.flowchart()
            assert flowchart.svg is not None, name
            tools.root(flowchart.svg)
            html = render_html(made.view())
            for text in (flowchart.svg, html):
                assert "<script" not in text
                assert "\x1b" not in text
                assert "\u202e" not in text
            for line in flowchart.mermaid.splitlines()[1:]:
                assert line.count('"') in (0, 2), line
            render_markdown(made.view())


@pytest.mark.parametrize("name", WALKS)
def test_a_card_of_any_kind_says_the_same_where_a_host_takes_its_style_out(name):
    html = render_html(walk_of(name).view())
    clean = sanitized(html)

    def words(text):
        bare = re.sub(r"<style.*?</style>|<[^>]*>", " ", text, flags=re.DOTALL)
        return unescape(bare).split()

    assert words(clean) == words(html)
    assert html.count("list-style:disc") == clean.count("list-style: disc") + clean.count(
        "list-style:disc"
    )
