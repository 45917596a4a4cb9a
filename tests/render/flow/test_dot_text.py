"""Our DOT against that of the graphviz package: the same bytes for all that we write."""

from __future__ import annotations

import graphviz
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb.render.dot_text import DotText, quoted

#: As labels come: on one line, and every backslash escaped.
TEXTS = st.one_of(
    st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=8),
    st.text('<>"\\ a1-.{}[];=', max_size=8),
    st.sampled_from(["graph", "Node", "STRICT", "-4.2", ".5", "1.", "-", "", "<b>x</b>", "é"]),
).map(lambda text: text.replace("\\", "\\\\"))
NAMES = st.sampled_from(["label", "class", "margin", "shape", "style", "edge"])
LISTS = st.dictionaries(NAMES, TEXTS, max_size=4)


def theirs(attributes):
    """Give what the package takes to be text and not its own kind of HTML."""
    return {name: graphviz.nohtml(value) for name, value in attributes.items()}


@given(text=TEXTS)
def test_a_text_is_quoted_as_the_package_does(text):
    assert quoted(text) == graphviz.quoting.quote(graphviz.nohtml(text))


@given(text=TEXTS, between=st.sampled_from([r"\n", r"\l"]), more=TEXTS)
def test_so_are_lines_that_are_joined(text, between, more):
    label = text + between + more
    assert quoted(label) == graphviz.quoting.quote(graphviz.nohtml(label))


@given(head=LISTS, node=LISTS, edge=LISTS, frame=LISTS, depth=st.integers(0, 4))
def test_a_graph_is_written_as_the_package_does(head, node, edge, frame, depth):
    ours = DotText("flow", **{k: v for k, v in (("graph", head), ("node", node)) if v})
    other = graphviz.Digraph("flow", graph_attr=theirs(head), node_attr=theirs(node))
    ours.node("n1", node)
    other.node("n1", **theirs(node))
    ours.edge("n1", "n2", edge)
    other.edge("n1", "n2", **theirs(edge))
    frame = {"label": "", **frame}
    inner = [other]
    for level in range(depth):
        ours.open(f"cluster_{level}", frame)
        ours.node("n2")
        inner.append(graphviz.Digraph(f"cluster_{level}", graph_attr=theirs(frame)))
        inner[-1].node("n2")
    for _ in range(depth):
        ours.close()
        within = inner.pop()
        inner[-1].subgraph(within)
    ours.open("", {"rank": "same"})
    ours.close()
    with other.subgraph(graph_attr={"rank": "same"}):
        pass
    assert ours.end() == other.source


@pytest.mark.parametrize("text", ["<b>bold</b>", "<>", "< a >"])
def test_nothing_is_read_as_markup(text):
    assert quoted(text) == f'"{text}"'
    drawn = DotText("flow")
    drawn.node("n1", {"label": text})
    assert f'label="{text}"' in drawn.end()
