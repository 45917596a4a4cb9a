r"""Flowcharts as DOT text, the language every layout engine reads.

Names never become identifiers: nodes are ``n1``, ``n2``, … and names stand in labels alone, with
``\`` and ``&`` escaped, since engines expand both. No label is HTML-like and no attribute that
loads or links anything is ever written. Colours are not in it either: classes from a closed set
say what a thing is, and the picture's own stylesheet paints it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from runbook_nb._view import Graph, GraphEdge, GraphNode, Role
from runbook_nb.render.cells import width
from runbook_nb.render.labels import (
    MANY_BRANCHES,
    Line,
    Look,
    edge_lines,
    most_branches,
    node_lines,
)

#: Every class a node or an edge can have; `weights_of` adds how its lines are to be set.
CLASSES: Final = frozenset(
    {"taken", "off", "open", "failed", "a", "b", "c", "d", "declined", "frame", "mark", "plain"}
)

_GRAPH: Final = {
    "bgcolor": "transparent",
    "ranksep": "0.25",
    "pad": "0.03",
    "ordering": "out",
    "splines": "true",
}
_NODE: Final = {
    "shape": "box",
    "style": "rounded,filled",
    "fillcolor": "white",
    "fontname": "Helvetica",
    "fontsize": "9.75",
    "margin": "0.2,0.06",
    "height": "0.34",
    "width": "0.62",
    "penwidth": "1.2",
}
#: Side by side there is less room in a node.
_NARROW: Final = {"margin": "0.09,0.06"}
_EDGE: Final = {"fontname": "Helvetica", "fontsize": "9", "arrowsize": "0.6", "penwidth": "1"}

#: Two no-break spaces at both ends keep a label off its edge.
_GAP: Final = "\u00a0\u00a0"

_WEIGHTS: Final = {"strong": "s", "plain": "p", "dim": "d"}


def render_dot(graph: Graph, look: Look | None = None) -> str:
    """Write a flowchart as DOT.

    Parameters
    ----------
    graph : Graph
        What to draw; fold it before.
    look : Look, optional
        How much is said beside the edges.

    Returns
    -------
    str
        The same bytes for the same chart.

    Examples
    --------
    >>> dot = render_dot(Graph(nodes=(GraphNode(key="a", title="host:443"),)))
    >>> print(dot.splitlines()[-2].strip())
    n1 [label="host:443" class="w-s"]
    """
    from graphviz import Digraph

    look = look or Look()
    many = most_branches(graph) >= MANY_BRANCHES
    drawn = Digraph(
        "flow",
        graph_attr={
            "rankdir": graph.direction,
            "nodesep": "0.16" if many else "0.26",
            **_GRAPH,
        },
        node_attr=_NODE if graph.direction == "TB" else _NODE | _NARROW,
        edge_attr=_EDGE,
    )
    names = {node.key: f"n{place}" for place, node in enumerate(graph.nodes, 1)}
    nodes = {node.key: node for node in graph.nodes}
    homes = {member: group.key for group in graph.groups for member in group.members}
    for node in graph.nodes:
        if node.key not in homes:
            _add_node(drawn, names[node.key], node)
    for place, group in enumerate(graph.groups, 1):
        if not group.parent:
            _add_group(drawn, graph, place, names, nodes)
    number = 0
    for edge in graph.edges:
        number += bool(edge.lines)
        _add_edge(drawn, names, nodes, edge, edge_lines(edge, look, number if edge.lines else None))
        if nodes[edge.target].kind == "note":
            with drawn.subgraph(graph_attr={"rank": "same"}) as beside:
                beside.node(names[edge.source])
                beside.node(names[edge.target])
    return str(drawn.source)


def _add_group(
    drawn: Any, graph: Graph, place: int, names: Mapping[str, str], nodes: Mapping[str, GraphNode]
) -> None:
    group = graph.groups[place - 1]
    attributes = {
        "label": "",
        "style": "rounded,filled",
        "fillcolor": "white",
        "penwidth": "1",
        "margin": "9",
        "class": "frame",
    }
    with drawn.subgraph(name=f"cluster_{place}", graph_attr=attributes) as inner:
        for key in group.members:
            _add_node(inner, names[key], nodes[key])
        for n, nested in enumerate(graph.groups, 1):
            if nested.parent == group.key:
                _add_group(inner, graph, n, names, nodes)


# --- nodes -------------------------------------------------------------------------------------


def _add_node(drawn: Any, name: str, node: GraphNode) -> None:
    lines = node_lines(node)
    attributes = _node_look(node)
    classes = [attributes.pop("class", ""), weights_of(lines)]
    drawn.node(
        name,
        label=_label([_centred(line.text) for line in lines], r"\n"),
        **{**attributes, "class": " ".join(filter(None, classes))},
    )


def _node_look(node: GraphNode) -> dict[str, str]:
    if node.state == "not_taken" or (node.kind == "folded" and node.state == "declared"):
        return {"style": "rounded,filled,dotted", "penwidth": "1", "class": "off"}
    if node.kind == "note":
        return {"shape": "note", "style": "filled"}
    if node.state == "not_reached":
        return {"style": "rounded,filled,dashed", "class": "open"}
    if node.state == "failed":
        return {"penwidth": "1.6", "class": "failed"} | _shape(node)
    if node.role is None:
        return _shape(node)
    look = _role_look(node.role)
    if node.kind != "branch" and node.role == "a":
        look["class"] = "a plain"  # done is the rule; only its outline is coloured
    return look


def _shape(node: GraphNode) -> dict[str, str]:
    if node.kind == "decider":
        return {"shape": "hexagon", "style": "filled", "margin": "0.04,0.05"}
    return {}


def _role_look(role: Role) -> dict[str, str]:
    if role == "b":
        return {"style": "filled", "peripheries": "2", "penwidth": "1.2", "class": role}
    if role == "declined":
        return {"style": "rounded,filled,dashed", "penwidth": "1.5", "class": role}
    if role in ("a", "c", "d"):
        return {"penwidth": "1.7", "class": role}
    return {}


# --- edges -------------------------------------------------------------------------------------


def _add_edge(
    drawn: Any,
    names: Mapping[str, str],
    nodes: Mapping[str, GraphNode],
    edge: GraphEdge,
    lines: list[Line],
) -> None:
    attributes = _edge_look(edge, nodes[edge.target])
    classes = [attributes.pop("class", ""), weights_of(lines)]
    if lines:
        attributes["label"] = _label([_beside(line.text) for line in lines], r"\l", last=True)
    if edge.default:
        attributes |= {"dir": "both", "arrowtail": "odot"}
    named = " ".join(filter(None, classes))
    drawn.edge(names[edge.source], names[edge.target], **attributes, **_if("class", named))


def _edge_look(edge: GraphEdge, target: GraphNode) -> dict[str, str]:
    if target.kind == "note":
        return {"style": "dashed", "arrowhead": "none", "class": "mark"}
    if edge.state == "gap":
        failed = edge.role == "failed"
        return {"penwidth": "1.2", "class": "failed" if failed else "open"} | (
            {} if failed else {"style": "dashed"}
        )
    if edge.state == "not_taken":
        return {"style": "dotted", "class": "off"}
    if edge.state == "declared":
        return {}
    line = {"style": "dashed"} if edge.role == "declined" else {}
    known = edge.role in ("a", "b", "c", "d", "declined")
    return {"penwidth": "1.5", "class": f"taken {edge.role}" if known else "taken"} | line


def _if(name: str, value: str) -> dict[str, str]:
    return {name: value} if value else {}


# --- text --------------------------------------------------------------------------------------


def weights_of(lines: Iterable[Line]) -> str:
    """Say in one class how loud each line is, for the picture that is made from this text.

    Examples
    --------
    >>> weights_of([Line("7 subjects", "strong"), Line("age 9 > 7", "plain")])
    'w-sp'
    """
    weights = "".join(_WEIGHTS[line.weight] for line in lines)
    return f"w-{weights}" if weights else ""


def _label(lines: list[str], between: str, *, last: bool = False) -> Any:
    from graphviz import nohtml

    text = between.join(map(_escaped, lines))
    return nohtml(text + between if last else text)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("&", "&amp;")


def _centred(text: str) -> str:
    room = " " * (_short_by(text) // 2)
    return f"{room}{text}{room}"


def _beside(text: str) -> str:
    return f"{_GAP}{text}{' ' * _short_by(text)}{_GAP}"


def _short_by(text: str) -> int:
    """Count the spaces a line of wide characters lacks.

    The built-in metrics give a character outside Latin the width of a space per byte; three
    bytes are a sixth too narrow for a square one.
    """
    wide = width(text) - len(text)
    return (wide * 5 + 7) // 8 if wide > 0 else 0
