"""Flowcharts as Mermaid text, for where a host draws it and no layout engine is here.

Labels are always quoted, with everything Mermaid or HTML would read as more than text written as
a character reference. There are no links, no clicks and no directives.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from runbook_nb._view import Graph, GraphEdge, GraphGroup, GraphNode
from runbook_nb.render.labels import Line, Look, edge_lines, node_lines

_CLASSES: Final = {
    "a": "stroke-width:2px",
    "b": "stroke-width:2px",
    "c": "stroke-width:2px",
    "d": "stroke-width:2px",
    "declined": "stroke-dasharray:5 3",
    "open": "stroke-dasharray:5 3",
    "off": "stroke-dasharray:1 3",
    "waits": "stroke-width:3px,stroke-dasharray:5 3",
    "stop": "stroke-width:3px",
}

#: Frames nested deeper than this are not moved in any further.
DEEPEST: Final = 12

_REFERENCES: Final = {ord(char): f"#{ord(char)};" for char in "#<>&`\\"} | {ord('"'): "#quot;"}


def render_mermaid(graph: Graph, look: Look | None = None) -> str:
    """Write a flowchart as Mermaid text.

    Parameters
    ----------
    graph : Graph
        What to draw; fold it before.
    look : Look, optional
        How much is said beside the edges.

    Examples
    --------
    >>> print(render_mermaid(Graph(nodes=(GraphNode(key="a", title='say "x"'),))))
    flowchart TB
      n1("say #quot;x#quot;")
    """
    names = {node.key: f"n{place}" for place, node in enumerate(graph.nodes, 1)}
    homes = {member: group.key for group in graph.groups for member in group.members}
    nodes = {node.key: node for node in graph.nodes}
    lines = [f"flowchart {graph.direction}"]
    lines += [_node(names[n.key], n) for n in graph.nodes if n.key not in homes]
    lines += _groups(graph, names, nodes)
    lines += [_edge(names, edge, look or Look()) for edge in graph.edges]
    used: dict[str, list[str]] = {}
    for node in graph.nodes:
        if name := _class(node):
            used.setdefault(name, []).append(names[node.key])
    for name, members in used.items():
        lines.append(f"classDef {name} {_CLASSES[name]}")
        lines.append(f"class {','.join(members)} {name}")
    return "\n".join([lines[0], *(f"  {line}" for line in lines[1:])])


def _groups(graph: Graph, names: dict[str, str], nodes: dict[str, GraphNode]) -> Iterator[str]:
    inside: dict[str, list[tuple[int, GraphGroup]]] = {}
    for place, group in enumerate(graph.groups, 1):
        inside.setdefault(group.parent, []).append((place, group))
    # A stack of our own: frames may lie in one another deeper than Python's stack reaches.
    around = [iter(inside.get("", ()))]
    while around:
        moved = "  " * min(len(around) - 1, DEEPEST)
        found = next(around[-1], None)
        if found is None:
            around.pop()
            if around:
                yield f"{'  ' * min(len(around) - 1, DEEPEST)}end"
            continue
        place, group = found
        yield f'{moved}subgraph g{place}[" "]'
        for key in group.members:
            yield f"{moved}  {_node(names[key], nodes[key])}"
        around.append(iter(inside.get(group.key, ())))


#: What a kind of stage stands between, where that is no rounded box.
_BRACKETS: Final = {
    "decider": ("{{", "}}"),
    "selector": ("[/", "/]"),
    "fork": ("[/", "\\]"),
    "subchart": ("[", "]"),
    "streaming": ("[\\", "\\]"),
    "pausable": ("([", "])"),
}


def _node(name: str, node: GraphNode) -> str:
    left, right = _BRACKETS.get(node.kind, ("(", ")"))
    if node.role == "b" and node.state in ("ran", "declared"):
        left, right = "[[", "]]"
    return f'{name}{left}"{_text(node_lines(node))}"{right}'


def _class(node: GraphNode) -> str:
    if node.state == "not_taken" or (node.kind == "folded" and node.state == "declared"):
        return "off"
    if node.state in _STATES:
        return _STATES[node.state]
    return node.role if node.role in _CLASSES else ""


#: The class of a state, where it has one.
_STATES: Final = {"not_reached": "open", "paused": "waits", "stopped": "stop", "current": "stop"}


def _edge(names: dict[str, str], edge: GraphEdge, look: Look) -> str:
    arrow = {"taken": "==>", "declared": "-->"}.get(edge.state, "-.->")
    if edge.state == "gap" and edge.role == "failed":
        arrow = "-->"
    lines = edge_lines(edge, look)
    label = f'|"{_text(lines)}"|' if lines else ""
    return f"{names[edge.source]} {arrow}{label} {names[edge.target]}"


def _text(lines: list[Line]) -> str:
    return "<br/>".join(_escaped(line.text) for line in lines)


def _escaped(text: str) -> str:
    while "%%{" in text:  # taking one out may join the next
        text = text.replace("%%{", "")
    return text.translate(_REFERENCES)
