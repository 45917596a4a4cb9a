r"""Flowcharts as DOT text, the language every layout engine reads.

Names never become identifiers: nodes are ``n1``, ``n2``, … and names stand in labels alone, with
``\`` and ``&`` escaped, since engines expand both. No label is HTML-like and no attribute that
loads or links anything is ever written. Colours are not in it either: classes from a closed set
say what a thing is, and the picture's own stylesheet paints it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from runbook_nb._view import Graph, GraphEdge, GraphGroup, GraphNode, Role
from runbook_nb.render.cells import width
from runbook_nb.render.dot_text import DotText
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
    {
        *("taken", "off", "open", "failed", "waits", "stop"),
        *("a", "b", "c", "d", "declined", "plain", "frame", "mark"),
    }
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
_NARROW: Final = {"margin": "0.13,0.06"}
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
    look = look or Look()
    many, aside = most_branches(graph) >= MANY_BRANCHES, graph.direction != "TB"
    drawn = DotText(
        "flow",
        graph={
            "rankdir": graph.direction,
            "nodesep": "0.16" if many or look.lean else "0.26",
            **_GRAPH,
        },
        node=_NODE | _NARROW if aside or (look.lean and look.narrow) else _NODE,
        edge=_EDGE,
    )
    names = {node.key: f"n{place}" for place, node in enumerate(graph.nodes, 1)}
    nodes = {node.key: node for node in graph.nodes}
    homes = {member: group.key for group in graph.groups for member in group.members}
    for node in graph.nodes:
        if node.key not in homes:
            _add_node(drawn, names[node.key], node, look)
    _add_groups(drawn, graph, names, nodes, look)
    weights = _weights(graph, homes)
    number = 0
    for edge in graph.edges:
        number += bool(edge.lines)
        lines = edge_lines(edge, look, number if edge.lines else None)
        layout = weights.get((edge.source, edge.target), {})
        ends = [names[edge.source], names[edge.target]]
        attributes = _edge(edge, nodes[edge.target], lines, layout, lean=look.lean)
        if attributes.get("dir") == "back":
            ends.reverse()
        drawn.edge(ends[0], ends[1], attributes)
        if nodes[edge.target].kind == "note":
            drawn.open("", {"rank": "same"})
            drawn.node(names[edge.source])
            drawn.node(names[edge.target])
            drawn.close()
    return drawn.end()


def _add_groups(
    drawn: DotText,
    graph: Graph,
    names: Mapping[str, str],
    nodes: Mapping[str, GraphNode],
    look: Look,
) -> None:
    """Add the frames with what lies in them, however deep, each behind those before it."""
    inside: dict[str, list[tuple[int, GraphGroup]]] = {}
    for place, group in enumerate(graph.groups, 1):
        inside.setdefault(group.parent, []).append((place, group))
    attributes = {
        "label": "",
        "style": "rounded,filled",
        "fillcolor": "white",
        "penwidth": "1",
        "margin": "9",
        "class": "frame",
    }
    # A stack of our own: frames may lie in one another deeper than Python's stack reaches.
    around = [iter(inside.get("", ()))]
    while around:
        found = next(around[-1], None)
        if found is None:
            around.pop()
            if around:
                drawn.close()
            continue
        place, group = found
        drawn.open(f"cluster_{place}", attributes)
        for key in group.members:
            _add_node(drawn, names[key], nodes[key], look)
        around.append(iter(inside.get(group.key, ())))


def _weights(graph: Graph, homes: Mapping[str, str]) -> dict[tuple[str, str], dict[str, str]]:
    """Say which edges are to be laid out in a way of their own.

    Where one branch of a decider is a chart, the others stay near the decider and not near what
    follows them all. A way back is written the other way round, so that no engine has to guess
    where a ring begins; or it takes no part in ranking, where it goes round plain stages.
    """
    heads = {group.key for group in graph.groups}
    kinds = {node.key: node.kind for node in graph.nodes}
    wide = {e.source for e in graph.edges if e.target in heads and kinds[e.target] != "fan_out"}
    found: dict[tuple[str, str], dict[str, str]] = {}
    for edge in graph.edges:
        if edge.source in wide and kinds[edge.source] in ("decider", "fork", "selector"):
            found[edge.source, edge.target] = {"weight": "2"}
        if edge.back and edge.source != edge.target:
            loose = edge.source not in homes and edge.target not in homes
            aside = loose and kinds[edge.source] != "branch"
            found[edge.source, edge.target] = {"constraint": "false"} if aside else {"dir": "back"}
    return found


# --- nodes -------------------------------------------------------------------------------------


def _add_node(drawn: DotText, name: str, node: GraphNode, look: Look) -> None:
    lines = node_lines(node, look)
    attributes = _node_look(node)
    classes = [attributes.pop("class", ""), weights_of(lines)]
    attributes["label"] = _label([_centred(line.text) for line in lines], r"\n")
    attributes["class"] = " ".join(filter(None, classes))
    drawn.node(name, attributes)


#: What a kind of stage is drawn as, where that is no rounded box.
_SHAPES: Final[Mapping[str, Mapping[str, str]]] = {
    "decider": {"shape": "hexagon", "margin": "0.04,0.05"},
    "selector": {"shape": "octagon", "margin": "0.04,0.05"},
    # A trapezium that widens downwards, flatter than the one engines know by that name.
    "fork": {"shape": "polygon", "sides": "4", "distortion": "-0.2", "margin": "0.02,0"},
    "subchart": {"shape": "tab"},
}
#: How the outline of a state is drawn, and its class.
_STATES: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "not_taken": ("dotted", {"penwidth": "1", "class": "off"}),
    "not_reached": ("dashed", {"class": "open"}),
    "paused": ("dashed", {"penwidth": "2.2", "class": "waits"}),
    "stopped": ("", {"penwidth": "2.2", "class": "stop"}),
    "current": ("", {"penwidth": "2.2", "class": "stop"}),
    "failed": ("", {"penwidth": "1.6", "class": "failed"}),
}


def _node_look(node: GraphNode) -> dict[str, str]:
    if node.kind == "note":
        return {"shape": "note", "style": "filled"}
    state = node.state
    if node.kind == "folded" and state == "declared":
        state = "not_taken"  # it is not known, or not drawn, what it stands for
    shape = dict(_SHAPES.get(node.kind, {}))
    line, look = _STATES.get(state, ("", {}))
    if node.kind == "step" and state == "not_reached":
        look = {"class": "open plain"}  # what is still to come is no less than what is done
    if line or shape:
        style = ["filled"] if shape else ["rounded", "filled"]
        shape["style"] = ",".join([*style, line] if line else style)
    if look or node.role is None:
        return {**shape, **look}
    role = _role_look(node.role)
    if node.kind != "branch" and node.role == "a":
        role["class"] = "a plain"  # done is the rule; only its outline is coloured
    return role


def _role_look(role: Role) -> dict[str, str]:
    if role == "b":
        return {"style": "filled", "peripheries": "2", "penwidth": "1.2", "class": role}
    if role == "declined":
        return {"style": "rounded,filled,dashed", "penwidth": "1.5", "class": role}
    if role in ("a", "c", "d"):
        return {"penwidth": "1.7", "class": role}
    return {}


# --- edges -------------------------------------------------------------------------------------


def _edge(
    edge: GraphEdge,
    target: GraphNode,
    lines: list[Line],
    layout: Mapping[str, str],
    *,
    lean: bool,
) -> dict[str, str]:
    """Give the attributes of an edge; ``layout`` are those of how it is laid out."""
    attributes = {**_edge_look(edge, target), **layout}
    classes = [attributes.pop("class", ""), weights_of(lines)]
    if lines:
        attributes["label"] = _label(
            [_beside(line.text, lean=lean) for line in lines], r"\l", last=True
        )
    if edge.default:
        attributes |= {"dir": "both", "arrowtail": "odot"}
    return attributes | _if("class", " ".join(filter(None, classes)))


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


def _label(lines: list[str], between: str, *, last: bool = False) -> str:
    text = between.join(map(_escaped, lines))
    return text + between if last else text


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("&", "&amp;")


def _centred(text: str) -> str:
    room = " " * (_short_by(text) // 2)
    return f"{room}{text}{room}"


def _beside(text: str, *, lean: bool) -> str:
    return f"{_GAP}{text}{' ' * _short_by(text)}{'' if lean else _GAP}"


def _short_by(text: str) -> int:
    """Count the spaces a line of wide characters lacks.

    The built-in metrics give a character outside Latin the width of a space per byte; three
    bytes are a sixth too narrow for a square one.
    """
    wide = width(text) - len(text)
    return (wide * 5 + 7) // 8 if wide > 0 else 0
