"""DOT text: names stay in labels, everything else comes from closed sets, bytes never change."""

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb._view import Data, Graph, GraphNode
from runbook_nb.render.dot import CLASSES, render_dot, weights_of
from runbook_nb.render.labels import Line, Look

GOLDEN = Path(__file__).parent / "golden"
QUOTED = r'"(?:[^"\\]|\\.)*"'


def check(name, text):
    path = GOLDEN / name
    if os.environ.get("RUNBOOK_NB_WRITE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_the_backup_triage_is_written_as_agreed(small):
    check("backup_triage.dot", small.flowchart().dot)


def test_a_large_run_is_written_as_agreed(large):
    check("backup_triage_312.dot", large.flowchart().dot)


def test_the_same_chart_gives_the_same_bytes(small):
    assert small.flowchart().dot == small.flowchart().dot


def test_nodes_are_numbered_and_names_stand_in_labels_alone(tools):
    dot = render_dot(tools.chain(*tools.HOSTILE).graph)
    bare = re.sub(QUOTED, '""', dot)
    names = set(re.findall(r"^\t+(\S+) (?:\[|->)", bare, re.MULTILINE)) - {"graph", "node", "edge"}
    assert names == {f"n{n}" for n in range(1, len(tools.HOSTILE) + 1)}


def test_nothing_that_loads_or_links_is_ever_written(tools, large):
    for dot in (render_dot(tools.chain(*tools.HOSTILE).graph), large.flowchart().dot):
        bare = re.sub(QUOTED, '""', dot)
        written = set(re.findall(r"(\w+)=", bare))
        assert written <= {
            *("arrowhead", "arrowsize", "arrowtail", "bgcolor", "class", "dir", "fillcolor"),
            *("fontname", "fontsize", "height", "label", "margin", "nodesep", "ordering", "pad"),
            *("penwidth", "peripheries", "rank", "rankdir", "ranksep", "shape", "splines"),
            *("style", "width"),
        }


def test_no_label_is_read_as_html(tools):
    for name in tools.HOSTILE:
        dot = render_dot(Graph(nodes=(GraphNode(key="a", title=Data(value=name)),)))
        assert "label=<" not in dot


def test_no_label_can_be_read_as_more_than_text():
    dot = render_dot(Graph(nodes=(GraphNode(key="a", title=Data(value=r'\N "x\" &lt;')),)))
    assert r'label="\\N \"x\\\" &amp;lt;"' in dot


def test_classes_come_from_a_closed_set(large, tools):
    for dot in (large.flowchart().dot, render_dot(tools.chain(*tools.HOSTILE).graph)):
        named = re.findall(r'class=(?:"([^"]*)"|([\w-]+))', re.sub(rf"label={QUOTED}", "", dot))
        for word in " ".join(map(" ".join, named)).split():
            assert word in CLASSES or re.fullmatch(r"w-[spd]+", word)


def test_one_font_is_named_so_that_every_engine_measures_with_it(small):
    assert set(re.findall(r"fontname=(\S+?)[\s\]]", small.flowchart().dot)) == {"Helvetica"}


def test_a_decider_is_a_hexagon_and_a_second_verdict_has_a_double_border(small):
    dot = small.flowchart().dot
    assert re.search(r"Protection posture.*shape=hexagon", dot)
    assert re.search(r"unprotected.*peripheries=2", dot)
    assert re.search(r"◌ declined.*dashed", dot)


def test_the_default_edge_starts_with_a_ring(large):
    ringed = [line for line in large.flowchart().dot.splitlines() if "odot" in line]
    assert len(ringed) == 1
    assert "default: no rule fired" in ringed[0]


def test_what_was_not_taken_is_dotted(large):
    dotted = [line for line in large.flowchart().dot.splitlines() if "dotted" in line]
    assert len(dotted) == 3
    assert sum("exempt" in line for line in dotted) == 2


def test_each_label_line_has_room_on_both_sides(small):
    (line,) = [t for t in small.flowchart().dot.splitlines() if "age_days 30" in t]
    label = re.search(r'label="(.*?)"', line).group(1)
    pieces = label.split(r"\l")
    assert pieces.pop() == ""
    assert all(p.startswith("\u00a0\u00a0") and p.endswith("\u00a0\u00a0") for p in pieces)


def test_wide_characters_get_the_room_the_metrics_leave_out():
    dot = render_dot(Graph(nodes=(GraphNode(key="a", title=Data(value="備份資料庫叢集")),)))
    assert 'label="  備份資料庫叢集  "' in dot


def test_frames_lie_in_each_other(tools):
    graph = Graph(
        nodes=tuple(tools.node(key, key) for key in "abc"),
        groups=(
            tools.group(key="a", members=("a",)),
            tools.group(key="b", members=("b",), parent="a"),
        ),
    )
    lines = [line for line in render_dot(graph).splitlines() if "subgraph" in line]
    assert [line.count("\t") for line in lines] == [1, 2]


def test_a_note_stands_beside_its_node(tools):
    graph = Graph(
        nodes=(tools.node("a", "A"), tools.node("n", "3 refused", kind="note")),
        edges=(tools.edge(source="a", target="n", state="gap"),),
    )
    dot = render_dot(graph)
    assert "rank=same" in dot
    assert "shape=note" in dot
    assert "arrowhead=none" in dot


def test_less_is_said_when_asked(small):
    graph = small.flowchart().graph
    assert "threshold" not in render_dot(graph, Look(sentences=False))
    numbered = render_dot(graph, Look(numbered=True))
    assert "age_days" not in numbered
    assert "② 1 subject" in numbered


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_a_node_always_has_a_label(text):
    assert re.search(r"n1 \[label=\S", render_dot(Graph(nodes=(GraphNode(key="a", title=text),))))


def test_weights_say_how_each_line_is_set():
    assert weights_of([]) == ""
    assert weights_of([Line("a", "strong"), Line("b", "dim")]) == "w-sd"


@given(st.text(max_size=60))
def test_any_name_leaves_the_text_balanced(name):
    dot = render_dot(Graph(nodes=(GraphNode(key="a", title=Data(value=name)),)))
    bare = re.sub(QUOTED, "", dot)
    assert '"' not in bare
    assert bare.count("{") == bare.count("}") == 1
