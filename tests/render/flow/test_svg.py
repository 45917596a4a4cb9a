"""Pictures: the same structure from every engine, nothing foreign in them, never a failure."""

import base64
import os
import re
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from runbook_nb._view import Data, Flow, Graph, GraphEdge, GraphLine, GraphNode
from runbook_nb.render import layouts, svg
from runbook_nb.render.dot import CLASSES
from runbook_nb.render.layouts import HOW_TO_GET, Laid
from runbook_nb.render.sanitize import NotAPicture, take_apart
from runbook_nb.render.svg import COLUMN, draw, picture_of
from runbook_nb.render.text import render_text
from runbook_nb.settings import settings

SVG = "{http://www.w3.org/2000/svg}"
ALLOWED = {
    "svg": {"class", "role", "width", "height", "viewBox"},
    "title": set(),
    "desc": set(),
    "style": set(),
    "g": {"class", "transform"},
    "path": {"d", "fill", "stroke", "stroke-width", "stroke-dasharray"},
    "polygon": {"points", "fill", "stroke", "stroke-width", "stroke-dasharray"},
    "polyline": {"points", "fill", "stroke", "stroke-width", "stroke-dasharray"},
    "ellipse": {"cx", "cy", "rx", "ry", "fill", "stroke", "stroke-width", "stroke-dasharray"},
    "text": {"class", "x", "y", "text-anchor", "font-size"},
}


def all_engines_gone(monkeypatch):
    for engine in layouts.ENGINES.values():
        monkeypatch.setattr(type(engine), "available", lambda self: False)


# --- structure, whoever laid it out ------------------------------------------------------------


def test_every_engine_draws_the_same_nodes_edges_and_labels(engine, large, tools):
    drawing = draw(tools.flow(large))
    assert drawing.note == ""
    found = tools.texts(drawing)
    nodes = sorted(lines for kinds, lines in found if "node" in kinds)
    assert nodes == sorted(
        [
            ["inventory"],
            ["Assess each subject", "fan-out, 303 of 312 done, drawn once"],
            ["load"],
            ["⋯ not reached"],
            ["Protection posture"],
            ["◌ declined"],
            ["■ exempt", "not taken"],
            ["▲ unprotected"],
            ["● protected"],
            ["Collect"],
        ]
    )
    edges = [kinds for kinds, _ in found if "edge" in kinds]
    assert len(edges) == 12
    assert sum("taken" in kinds for kinds in edges) == 9
    assert sum("off" in kinds for kinds in edges) == 2
    assert sum("open" in kinds for kinds in edges) == 1
    labels = [lines for kinds, lines in found if "edge" in kinds and lines]
    assert ["7 subjects", "age_days 8…44 > 7"] in [lines[:2] for lines in labels]


def test_hostile_names_are_text_in_every_engine(engine, tools):
    drawing = draw(tools.chain(*tools.HOSTILE[:6]))
    assert drawing.svg is not None
    for name in tools.HOSTILE:
        flow = Flow(lines=(), graph=Graph(nodes=(GraphNode(key="a", title=Data(value=name)),)))
        drawing = draw(flow)
        assert drawing.svg is not None, name
        (lines,) = [lines for kinds, lines in tools.texts(drawing) if "node" in kinds]
        shown = " ".join(lines)
        if len(name) < 25 and name.isprintable() and name.strip():
            assert shown == name
        tools.root(drawing.svg)
        assert "<script" not in drawing.svg
        assert "\u202e" not in drawing.svg
        assert "\x1b" not in drawing.svg


@pytest.mark.parametrize("names", [("a::b", "host:443", 'it\'s "x"')])
def test_colons_and_quotes_in_names_make_no_ports(engine, names, tools):
    found = tools.texts(draw(tools.chain(*names)))
    assert [lines for kinds, lines in found if "node" in kinds] == [[name] for name in names]


# --- what is in it -----------------------------------------------------------------------------


def test_only_listed_elements_and_attributes_are_in_it(engine, large, tools):
    for flow in (tools.flow(large), tools.chain(*tools.HOSTILE)):
        root = tools.root(draw(flow).svg)
        for element in root.iter():
            tag = element.tag.removeprefix(SVG)
            assert tag in ALLOWED
            assert set(element.attrib) <= ALLOWED[tag]


def test_classes_of_groups_come_from_a_closed_set(engine, large, tools):
    root = tools.root(draw(tools.flow(large)).svg)
    named = {c for g in root.iter(f"{SVG}g") for c in (g.get("class") or "").split()}
    assert named <= CLASSES | {"node", "edge"}
    assert {t.get("class") for t in root.iter(f"{SVG}text")} <= {None, "h", "q"}


def test_it_says_what_it_is_first(pure, small, tools):
    root = tools.root(draw(tools.flow(small)).svg)
    assert root.get("role") == "img"
    assert [child.tag.removeprefix(SVG) for child in root][:3] == ["title", "desc", "style"]
    assert root.find(f"{SVG}desc").text == (
        "3 of 3 subjects done: 1 protected, 1 unprotected, 1 declined; 15 steps"
    )


def test_the_sentence_says_what_happened(pure, small, tools):
    assert draw(tools.flow(small)).alt.startswith("3 of 3 subjects done: 1 protected")
    alone = draw(tools.flow(small.of("cluster-b")))
    assert alone.alt.startswith("unprotected by rule 2 of health-signal v1: age_days 30 > 7")


def test_the_size_is_in_pixels_and_the_box_in_points(pure, small, tools):
    drawing = draw(tools.flow(small))
    root = tools.root(drawing.svg)
    assert (root.get("width"), root.get("height")) == (str(drawing.width), str(drawing.height))
    box = [float(n) for n in root.get("viewBox").split()]
    assert drawing.width == pytest.approx(box[2] * 4 / 3, abs=1)
    assert drawing.height == pytest.approx(box[3] * 4 / 3, abs=1)


def test_no_text_is_smaller_than_twelve_pixels(engine, large, tools):
    root = tools.root(draw(tools.flow(large)).svg)
    assert min(float(t.get("font-size")) for t in root.iter(f"{SVG}text")) * 4 / 3 >= 12


def test_the_address_is_the_picture(pure, small, tools):
    drawing = draw(tools.flow(small))
    kind, _, encoded = drawing.uri.partition(",")
    assert kind == "data:image/svg+xml;base64"
    assert base64.b64decode(encoded).decode() == drawing.svg


def test_a_usual_picture_is_small(pure, large, tools):
    assert len(draw(tools.flow(large)).svg) < 15_000


def test_first_lines_are_strong_and_sentences_quiet(pure, small, tools):
    root = tools.root(draw(tools.flow(small)).svg)
    weights = {
        "".join(t.itertext()).replace("\u00a0", " ").strip(): t.get("class")
        for t in root.iter(f"{SVG}text")
    }
    assert weights["1 subject"] == "h"
    assert weights["age_days 30 > 7"] is None
    assert weights["the 7-day threshold"] == "q"
    assert weights["fan-out, 3 of 3 done, drawn once"] == "q"


def test_the_ring_of_the_default_hides_what_it_lies_on(engine, small, tools):
    root = tools.root(draw(tools.flow(small)).svg)
    assert [e.get("fill") for e in root.iter(f"{SVG}ellipse")] == ["white"]


# --- two on one page ---------------------------------------------------------------------------


def test_two_pictures_share_no_name_that_matters(pure, small, large, tools):
    pictures = [draw(tools.flow(walk)).svg for walk in (small, large, small.of("cluster-b"))]
    roots = [tools.root(text) for text in pictures]
    assert len({root.get("class") for root in roots}) == 3
    for text, root in zip(pictures, roots, strict=True):
        assert re.fullmatch(r"rb-[0-9a-f]{8}", root.get("class"))
        assert not re.search(r"\bid=|url\(|#(?![0-9a-f]{3})|gradient|<defs|<use", text)
        style = root.find(f"{SVG}style").text
        rules = re.sub(r"@media\([^)]*\)\{|\}\}", "}", style)
        for selectors in re.findall(r"([^{}]+)\{", rules):
            for selector in selectors.split(","):
                assert selector.strip().startswith(f".{root.get('class')}")


def test_the_same_walk_gives_the_same_bytes(pure, small, tools):
    first = draw(tools.flow(small)).svg
    svg._kept.clear()
    assert draw(tools.flow(small)).svg == first


def test_the_backup_triage_has_the_agreed_bytes(pure, small, tools):
    drawn = draw(tools.flow(small)).svg
    path = Path(__file__).parent / "golden" / "backup_triage.svg"
    if os.environ.get("RUNBOOK_NB_WRITE_GOLDEN"):
        path.write_text(drawn, encoding="utf-8")
    assert drawn == path.read_text(encoding="utf-8")


def test_another_process_gives_the_same_bytes(pure):
    script = (
        "from runbook_nb.chart.builder import flow_chart as f\n"
        "import hashlib, sys\n"
        "c = f('c', print, id='a', stage_name='A').add_function('B', print, id='b').build()\n"
        "print(hashlib.sha256(c.flowchart().svg.encode()).hexdigest())\n"
    )
    given = {
        subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env={
                "PYTHONHASHSEED": seed,
                "RUNBOOK_NB_LAYOUT": "pure",
                "PYTHONPATH": ":".join(sys.path),
            },
        ).stdout
        for seed in ("1", "2")
    }
    assert len(given) == 1


# --- themes ------------------------------------------------------------------------------------


def test_a_picture_follows_what_it_is_embedded_in_unless_told(pure, small, tools):
    by_theme = {}
    for theme in ("auto", "light", "dark"):
        with settings(theme=theme):
            by_theme[theme] = draw(tools.flow(small)).svg
    assert "prefers-color-scheme:dark" in by_theme["auto"]
    assert "prefers-color-scheme" not in by_theme["light"] + by_theme["dark"]
    assert "#212121" in by_theme["dark"]
    assert "#212121" not in by_theme["light"]


# --- too wide, too large -----------------------------------------------------------------------


def deciding(branches, label, key="some_long_key"):
    nodes = [GraphNode(key="d", title="D", kind="decider", state="ran")]
    edges = []
    for n in range(branches):
        nodes.append(GraphNode(key=f"b{n}", title=f"b{n}", kind="branch", state="ran", role="d"))
        lines = (
            GraphLine(kind="count", text=f"{n} subjects"),
            GraphLine(kind="condition", text=f"{key} {n} > 7"),
            GraphLine(kind="label", text=label),
        )
        edges.append(GraphEdge(source="d", target=f"b{n}", state="taken", lines=lines))
    return Flow(lines=(), graph=Graph(nodes=tuple(nodes), edges=tuple(edges)))


def test_a_picture_that_fits_says_everything(pure):
    drawing = draw(deciding(2, "a sentence of the author"))
    assert drawing.note == ""
    assert drawing.width <= COLUMN


def test_a_wide_picture_first_breaks_its_lines_earlier(pure, tools):
    drawing = draw(deciding(3, "a sentence of some length that goes on and on"))
    assert (drawing.note, drawing.width <= COLUMN) == ("", True)


def test_then_it_leaves_out_sentences_then_it_numbers_its_edges(pure, tools):
    wide = "MMMMMMMMMMMMMMM MMMMMMMMMMMMMMM"
    assert draw(deciding(3, wide, key="n")).note == ""
    without = draw(deciding(5, wide, key="n"))
    assert without.note == "too wide for the author's sentences, which are left out"
    assert "MMM" not in without.svg
    assert "n 3 &gt; 7" in without.svg
    drawing = draw(deciding(9, wide))
    assert drawing.note == "numbered edges are told in the list, in order"
    labels = [lines for kinds, lines in tools.texts(drawing) if "edge" in kinds]
    assert ["③ 2 subjects"] in labels


def test_a_sideways_chain_that_does_not_fit_runs_down(pure, tools):
    def sideways(n):
        flow = tools.chain(*(f"step number {i}" for i in range(n)))
        return replace(flow, graph=replace(flow.graph, direction="LR"))

    short, long = draw(sideways(2)), draw(sideways(9))
    assert short.width > short.height
    assert long.width < long.height
    assert long.width <= COLUMN


def test_a_picture_over_the_size_is_not_given_and_that_is_said(pure, small, tools, monkeypatch):
    monkeypatch.setattr(svg, "MAX_BYTES", 2048)
    drawing = draw(tools.flow(small))
    assert drawing.uri is None
    assert drawing.svg is None
    told = "the list tells the same, and .mermaid can be drawn elsewhere"
    assert re.fullmatch(rf"no picture: it has \d+ kB, more than 2 kB; {told}", drawing.note)
    assert drawing.alt


def test_folding_is_said_beside_the_picture(pure, tools):
    drawing = draw(tools.chain(*(f"s{n}" for n in range(80))))
    assert drawing.note == "3 of 80 nodes drawn: 78 plain stages as 1 node"
    assert len(drawing.svg) < 8_000


# --- without a picture -------------------------------------------------------------------------


def test_without_an_engine_there_is_an_outline_and_how_to_get_the_picture(
    small, tools, monkeypatch
):
    all_engines_gone(monkeypatch)
    chart = small.flowchart()
    assert chart.drawing.note == HOW_TO_GET
    assert (chart.drawing.uri, chart.svg) == (None, None)
    assert chart.drawing.alt.startswith("3 of 3 subjects done")
    outline = render_text(chart.view())
    assert outline.splitlines()[-1] == HOW_TO_GET
    assert "unprotected" in outline
    assert "age_days 30 > 7" in outline
    assert chart.mermaid.startswith("flowchart TB")
    assert chart.dot.startswith("digraph")
    assert "text/plain" in chart._repr_mimebundle_()[0]


def test_with_a_picture_nothing_is_added(pure, small):
    assert str(small.flowchart()) == str(small)


def test_dot_off_the_path_and_no_wheel_is_no_error(small, tools, monkeypatch):
    from runbook_nb.render.layouts import engines

    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(engines, "_shipped_program", lambda: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert draw(tools.flow(small)).note == HOW_TO_GET


def test_an_engine_installed_later_is_used_then(pure, small, tools, monkeypatch):
    with monkeypatch.context() as gone:
        all_engines_gone(gone)
        assert draw(tools.flow(small)).svg is None
    assert draw(tools.flow(small)).svg is not None


def test_everything_draws_with_sockets_blocked(engine, small, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    chart = small.flowchart()
    assert chart.svg
    assert chart._repr_mimebundle_()[0]["text/plain"]


def test_a_failure_while_drawing_is_a_note(small, tools, monkeypatch):
    def broken(*args):
        raise RuntimeError("no")

    monkeypatch.setattr(svg, "render_dot", broken)
    drawing = draw(tools.flow(small))
    assert drawing.svg is None
    assert drawing.note == "no picture: RuntimeError while drawing"


def test_a_flow_without_a_graph_is_an_empty_drawing():
    assert draw(Flow(lines=(), summary="nothing ran")).alt == "nothing ran"
    assert draw(Flow(lines=(), graph=Graph(nodes=()))).svg is None


def test_a_picture_is_laid_out_once(small, tools, monkeypatch):
    asked = []

    def count(dot):
        asked.append(dot)
        return Laid(None, note="x", tried=True)

    monkeypatch.setattr(svg, "lay_out", count)
    draw(tools.flow(small))
    draw(tools.flow(small))
    assert len(asked) == 1


def test_the_store_of_pictures_is_bounded(monkeypatch):
    monkeypatch.setattr(svg, "lay_out", lambda dot: Laid(None, note="x", tried=True))
    for n in range(svg.KEPT + 10):
        picture_of(f"digraph {{ n{n} }}", "")
    assert len(svg._kept) == svg.KEPT


# --- what an engine may not hand us ------------------------------------------------------------

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" width="10pt" height="10pt" viewBox="0 0 10 10">'


def body(inside):
    return take_apart(f'{HEAD}<g class="graph"><g class="node">{inside}</g></g></svg>').body


@pytest.mark.parametrize(
    "foreign",
    [
        "<script>alert(1)</script>",
        '<image href="file:///etc/passwd"/>',
        '<a href="javascript:alert(1)"><path d="M0,0" fill="none" stroke="black"/></a>',
        "<foreignObject><p>x</p></foreignObject>",
        "<style>*{fill:red}</style>",
        '<use href="#x"/>',
    ],
)
def test_foreign_elements_are_left_out(foreign):
    found = body(foreign)
    assert not re.search(r"script|image|href|foreign|style|use", found)


@pytest.mark.parametrize(
    "shape",
    [
        '<path d="M0,0" fill="url(#x)" stroke="black"/>',
        '<path d="M0,0" fill="red" stroke="black"/>',
        '<path d="M0,0&quot; onload=&quot;x" fill="none"/>',
        '<polygon points="0,0 x" fill="none"/>',
        '<text x="javascript:" y="0" text-anchor="middle" font-size="9">a</text>',
    ],
)
def test_attributes_of_another_form_are_refused(shape):
    with pytest.raises(NotAPicture):
        body(shape)


def test_attributes_that_are_not_listed_are_left_out():
    shape = '<path d="M0,0C1,2 3,4 5,6" onclick="x" id="i" style="fill:red" fill="none"/>'
    assert '<path d="M0,0C1,2 3,4 5,6" fill="none"/>' in body(shape)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing",
        "<svg",
        HEAD,
        f"{HEAD}<!DOCTYPE x></svg>",
        f'{HEAD}<!ENTITY a "b"></svg>',
        f"{HEAD}<g>&a;</g></svg>",
        f"{HEAD}<![CDATA[x]]></svg>",
        HEAD.replace('width="10pt"', 'width="wide"') + "</svg>",
        HEAD.replace(' xmlns="http://www.w3.org/2000/svg"', "") + "</svg>",
    ],
)
def test_what_is_no_picture_is_refused(text):
    with pytest.raises(NotAPicture):
        take_apart(text)


def test_entities_before_the_picture_are_never_read():
    bomb = '<!DOCTYPE svg [<!ENTITY a "x"><!ENTITY b "&a;&a;">]>'
    assert take_apart(f"{bomb}{HEAD}</svg>").width == 10
    with pytest.raises(NotAPicture):
        take_apart(f'{bomb}{HEAD}<g class="graph"><g class="node">&b;</g></g></svg>')


def test_a_layout_that_cannot_be_shown_is_a_note(small, tools, monkeypatch):
    monkeypatch.setattr(svg, "lay_out", lambda dot: Laid("<svg>", "dot", tried=True))
    assert draw(tools.flow(small)).note == (
        "no picture: the layout cannot be shown, it is not well formed"
    )
