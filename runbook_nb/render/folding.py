"""Which nodes of a flowchart are drawn as one, so that a picture stays readable.

Folding works on the data of a chart and says what it did; the chart itself keeps every node, so a
list or a widget still has them all. Nothing that was taken is folded into something that was not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from runbook_nb._text import counted
from runbook_nb._view import Graph, GraphEdge, GraphNode

#: Branches of one decider before those not taken are drawn as one node.
MAX_BRANCHES: Final = 6
#: Nodes a picture has at most.
MAX_NODES: Final = 60


def fold(graph: Graph) -> tuple[Graph, tuple[str, ...]]:
    """Fold a chart that is too large to read, and say how.

    Parameters
    ----------
    graph : Graph
        The whole chart.

    Returns
    -------
    tuple
        The chart to draw, and one note for each way it was folded.

    Examples
    --------
    >>> nodes = tuple(GraphNode(key=str(n), title=str(n), state="ran") for n in range(70))
    >>> edges = tuple(GraphEdge(source=str(n), target=str(n + 1), state="taken") for n in range(69))
    >>> folded, notes = fold(Graph(nodes=nodes, edges=edges))
    >>> [node.title for node in folded.nodes], notes
    (['0', '68 stages', '69'], ('68 plain stages drawn as 1 node',))
    """
    notes: list[str] = []
    graph = _fold_branches(graph, notes)
    if len(graph.nodes) > MAX_NODES:
        graph = _fold_runs(graph, notes)
    if len(graph.nodes) > MAX_NODES:
        graph = _keep_control_flow(graph, notes)
    if len(graph.nodes) > MAX_NODES:
        graph = _cut(graph, notes)
    return graph, tuple(notes)


def _fold_branches(graph: Graph, notes: list[str]) -> Graph:
    """Draw the branches a decider did not take as one, where it has many; never its default."""
    branches = {node.key for node in graph.nodes if node.kind == "branch"}
    choices: dict[str, list[GraphEdge]] = {}
    for edge in graph.edges:
        if edge.target in branches:
            choices.setdefault(edge.source, []).append(edge)
    merged: dict[str, GraphNode] = {}
    for decider, edges in choices.items():
        left = [e.target for e in edges if e.state == "not_taken" and not e.default]
        if len(edges) > MAX_BRANCHES and len(left) > 1:
            words = f"{len(left)} branches not taken"
            node = GraphNode(
                key=f"{decider}~not_taken", title=words, kind="folded", state="not_taken"
            )
            merged.update(dict.fromkeys(left, node))
            notes.append(f"{words} drawn as 1 node")
    return _merge(graph, merged)


def _fold_runs(graph: Graph, notes: list[str]) -> Graph:
    """Draw each run of plain stages as one node that counts them."""
    merged: dict[str, GraphNode] = {}
    folded = 0
    for run in _runs(graph):
        if len(run) > 1:
            node = GraphNode(
                key=f"{run[0].key}~run",
                title=counted(len(run), "stage"),
                kind="folded",
                state=run[0].state,
            )
            merged.update({member.key: node for member in run})
            folded += len(run)
    if merged:
        drawn = counted(len({node.key for node in merged.values()}), "node")
        notes.append(f"{folded} plain stages drawn as {drawn}")
    return _merge(graph, merged)


def _runs(graph: Graph) -> Iterator[list[GraphNode]]:
    """Yield the longest runs of stages of one state that follow each other alone."""
    nodes = {node.key: node for node in graph.nodes}
    entering, leaving = _degrees(graph)
    after = {edge.source: edge.target for edge in graph.edges}
    frame = {member: group.key for group in graph.groups for member in group.members}

    def plain(key: str) -> bool:
        return nodes[key].kind == "stage" and nodes[key].state != "failed" and entering[key] == 1

    def joined(key: str, following: str) -> bool:
        return (
            plain(key)
            and plain(following)
            and leaving[key] == 1
            and leaving[following] == 1
            and nodes[key].state == nodes[following].state
            and frame.get(key) == frame.get(following)
        )

    begun: set[str] = set()
    before = {edge.target: edge.source for edge in graph.edges}
    for node in graph.nodes:
        key = node.key
        if key in begun or not plain(key) or leaving[key] != 1:
            continue
        if joined(before[key], key):
            continue  # met again from where its run begins
        run = [node]
        while after[key] not in begun and joined(key, after[key]):
            key = after[key]
            run.append(nodes[key])
        begun.update(member.key for member in run)
        yield run


def _degrees(graph: Graph) -> tuple[Counter[str], Counter[str]]:
    entering = Counter(edge.target for edge in graph.edges)
    leaving = Counter(edge.source for edge in graph.edges)
    return entering, leaving


def _keep_control_flow(graph: Graph, notes: list[str]) -> Graph:
    """Leave out plain stages between other nodes: each joins the node it alone follows."""
    entering, _ = _degrees(graph)
    before = {edge.target: edge.source for edge in graph.edges}
    nodes = {node.key: node for node in graph.nodes}
    frame = {member: group.key for group in graph.groups for member in group.members}
    merged: dict[str, GraphNode] = {}
    for node in graph.nodes:
        source = before.get(node.key, "")
        plain = node.kind in ("stage", "folded") and node.state != "failed"
        if not plain or entering[node.key] != 1 or node.key.endswith("~not_taken"):
            continue
        home = merged.get(source, nodes[source])
        # What became of a stage must not be lost in a node of another fate.
        if home.state == node.state and frame.get(home.key) == frame.get(node.key):
            merged[node.key] = home
    if merged:
        notes.append(f"control flow only: {counted(len(merged), 'plain node')} left out")
    return _merge(graph, merged)


def _cut(graph: Graph, notes: list[str]) -> Graph:
    """Keep the first nodes and draw all others as one that says how many they are."""
    left = graph.nodes[MAX_NODES - 1 :]
    words = f"{len(left)} more nodes, in the list"
    rest = GraphNode(key="~rest", title=words, kind="folded", state="declared")
    notes.append(f"{MAX_NODES - 1} of {len(graph.nodes)} nodes drawn")
    return _merge(graph, {node.key: rest for node in left})


def _merge(graph: Graph, merged: Mapping[str, GraphNode]) -> Graph:
    """Put other nodes in the place of some; edges between merged nodes go, doubled ones join."""
    if not merged:
        return graph
    nodes: dict[str, GraphNode] = {}
    for node in graph.nodes:
        kept = merged.get(node.key, node)
        nodes.setdefault(kept.key, kept)
    edges: dict[tuple[str, str], GraphEdge] = {}
    for edge in graph.edges:
        source = merged[edge.source].key if edge.source in merged else edge.source
        target = merged[edge.target].key if edge.target in merged else edge.target
        moved = (source, target) != (edge.source, edge.target)
        if moved and source == target:
            continue
        known = edges.get((source, target))
        if known is None or (known.state != "taken" and edge.state == "taken"):
            into = target != edge.target
            fresh = replace(edge, source=source, target=target)
            edges[source, target] = replace(fresh, lines=(), role=None) if into else fresh
    seen: set[str] = set()
    groups = []
    for group in graph.groups:
        renamed = (merged[m].key if m in merged else m for m in group.members)
        members = tuple(m for m in dict.fromkeys(renamed) if m not in seen)
        seen.update(members)
        groups.append(replace(group, members=members))
    return replace(
        graph, nodes=tuple(nodes.values()), edges=tuple(edges.values()), groups=tuple(groups)
    )
