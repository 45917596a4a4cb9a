"""A chart that was drawn is found again without being folded or written down."""

from __future__ import annotations

import pytest

from runbook_nb._view import Data, Flow, Graph, GraphEdge, GraphLine, GraphNode
from runbook_nb.render import svg
from runbook_nb.render.inline import draw_inline
from runbook_nb.render.svg import COLUMN
from runbook_nb.settings import settings


def flow_of(title):
    return Flow(lines=(), graph=Graph(nodes=(GraphNode(key="a", title=title),)))


def drawn(flow):
    with settings(layout="pure"):
        return svg.draw(flow)


def test_the_same_chart_is_drawn_once(monkeypatch):
    first = drawn(flow_of("Only here"))
    assert first.svg is not None
    monkeypatch.setattr(svg, "fold", lambda graph: (_ for _ in ()).throw(AssertionError(graph)))
    assert drawn(flow_of("Only here")) is first


def test_what_is_given_to_many_cannot_be_changed_by_one():
    first = drawn(flow_of("Shared"))
    with pytest.raises(AttributeError):
        first.svg = "<svg/>"
    assert "Shared" in drawn(flow_of("Shared")).svg


def test_a_chart_is_found_again_without_reading_it(calls_of):
    nodes = tuple(GraphNode(key=f"n{n}", title=f"Stage {n}") for n in range(40))
    edges = tuple(GraphEdge(source=f"n{n}", target=f"n{n + 1}") for n in range(39))
    flow = Flow(lines=(), summary="forty stages", graph=Graph(nodes=nodes, edges=edges))
    first = drawn(flow)
    assert calls_of(lambda: drawn(flow)) <= 60
    other = Graph(nodes=(*nodes[:-1], GraphNode(key="n39", title="Another")), edges=edges)
    assert drawn(Flow(lines=(), summary="forty stages", graph=other)) != first
    assert drawn(Flow(lines=(), summary="forty stages", graph=Graph(nodes=nodes, edges=edges))) is (
        first
    )


def test_another_chart_or_theme_is_drawn_anew():
    first = drawn(flow_of("One of two"))
    assert "One of two" in first.svg
    assert "The other" in drawn(flow_of("The other")).svg
    with settings(theme="dark"):
        dark = drawn(flow_of("One of two"))
    assert dark.svg != first.svg
    assert drawn(flow_of("One of two")) == first


def test_a_chart_whose_values_were_cut_is_drawn_anew_where_they_are_not():
    line = GraphLine(text=Data(value="a value of some length"), kind="label")
    nodes = GraphNode(key="a", title="A"), GraphNode(key="b", title="B")
    edge = GraphEdge(source="a", target="b", lines=(line,))
    flow = Flow(lines=(), graph=Graph(nodes=nodes, edges=(edge,)))
    with settings(max_cell=10):
        cut = drawn(flow)
    assert "some length" not in cut.svg
    assert "some length" in drawn(flow).svg


def test_names_that_are_equal_and_look_different_are_drawn_as_they_look():
    for name, said in ((1, "1"), (True, "true"), (1.0, "1.0")):
        nodes = (GraphNode(key="a", title="Each", second=(Data(value=name), ", 1 of 2")),)
        graph = Graph(nodes=nodes)
        with settings(layout="pure"):
            assert f">{said}, 1 of 2<" in svg.draw(Flow(lines=(), graph=graph)).svg
            assert f">{said}, 1 of 2<" in draw_inline(graph, "", COLUMN).svg


def test_what_could_not_be_drawn_is_tried_again(monkeypatch):
    from runbook_nb.render.layouts import Laid

    flow = flow_of("Not at first")
    with monkeypatch.context() as patched:
        patched.setattr(svg, "lay_out", lambda dot: Laid(svg=None, note="no engine", tried=False))
        assert drawn(flow).svg is None
    assert drawn(flow).svg is not None


def test_few_drawings_are_kept():
    for number in range(svg.KEPT + 5):
        drawn(flow_of(f"chart {number}"))
    assert len(svg._drawings) <= svg.KEPT
