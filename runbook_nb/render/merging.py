"""The graph work behind folding: frames in one another, runs of stages, nodes put together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Final

from runbook_nb._text import counted
from runbook_nb._view import Graph, GraphEdge, GraphGroup, GraphLine, GraphNode, State

#: States a reader looks for first, and those of what nobody came to.
NOTABLE: Final[tuple[State, ...]] = ("failed", "paused", "stopped", "current")
LEFT: Final[tuple[State, ...]] = ("not_taken", "not_reached")


class Frames:
    """The frames of a chart: how they lie in one another, how large and how telling they are.

    Parameters
    ----------
    graph : Graph
    telling : callable
        Takes a node and the key of its frame and says how much a reader loses when it goes.
    """

    def __init__(self, graph: Graph, telling: Callable[[GraphNode, str], int]) -> None:
        self.parent = {group.key: group.parent for group in graph.groups}
        self.place = {group.key: n for n, group in enumerate(graph.groups)}
        self.depth: dict[str, int] = {}
        nodes = {node.key: node for node in graph.nodes}
        own: dict[str, int] = {}
        self.size: dict[str, int] = {}
        for group in graph.groups:
            self._depth_of(group.key)
            own[group.key] = max(telling(nodes[m], group.key) for m in group.members)
            self.size[group.key] = len(group.members)
        self.rank = dict(own)
        # From the inside out, so that a frame knows what is in those inside it.
        for key in sorted(self.depth, key=lambda key: -self.depth[key]):
            around = self.parent[key]
            if around in self.rank:
                self.rank[around] = max(self.rank[around], self.rank[key])
                self.size[around] += self.size[key]
        self._open = dict(self.size)

    def _depth_of(self, key: str) -> None:
        chain: list[str] = []
        while key and key not in self.depth:
            chain.append(key)
            key = self.parent.get(key, "")
        depth = self.depth.get(key, 0)
        for place, link in enumerate(reversed(chain), 1):
            self.depth[link] = depth + place

    def close(self, key: str) -> int:
        """Fold a frame; give how many nodes fewer are drawn."""
        fewer = self._open[key] - 1
        around = key
        while around:
            self._open[around] -= fewer
            around = self.parent.get(around, "")
        return fewer

    def outermost(self, key: str, keys: set[str]) -> str | None:
        """Give the outermost of some frames that a frame lies in, itself included."""
        found: str | None = None
        while key:
            if key in keys:
                found = key
            key = self.parent.get(key, "")
        return found


def plain_runs(graph: Graph) -> Iterator[list[GraphNode]]:
    """Yield the longest runs of stages of one state that follow each other alone."""
    nodes = {node.key: node for node in graph.nodes}
    entering, leaving = degrees(graph)
    after = {edge.source: edge.target for edge in graph.edges}
    before = {edge.target: edge.source for edge in graph.edges}
    homes = homes_of(graph)
    heads = {group.key for group in graph.groups}

    def plain(key: str) -> bool:
        node = nodes[key]
        closed = node.kind in ("subchart", "fork") and key not in heads
        return (
            (node.kind in ("stage", "folded") or closed)
            and node.state not in NOTABLE
            and "~" not in key.removesuffix("~run")
            and entering[key] == 1
        )

    def joined(key: str, following: str) -> bool:
        return (
            plain(key)
            and plain(following)
            and leaving[key] == 1
            and leaving[following] == 1
            and nodes[key].state == nodes[following].state
            and homes.get(key) == homes.get(following)
        )

    begun: set[str] = set()
    for node in graph.nodes:
        key = node.key
        if key in begun or not plain(key) or leaving[key] != 1:
            continue
        if joined(before[key], key):
            continue  # met again from where its run begins; a ring has no beginning and stays
        run = [node]
        begun.add(key)
        while after[key] not in begun and joined(key, after[key]):
            key = after[key]
            run.append(nodes[key])
            begun.add(key)
        yield run


def degrees(graph: Graph) -> tuple[Counter[str], Counter[str]]:
    """Count the edges that enter and that leave each node."""
    entering = Counter(edge.target for edge in graph.edges)
    leaving = Counter(edge.source for edge in graph.edges)
    return entering, leaving


def homes_of(graph: Graph) -> dict[str, str]:
    """Give the frame each node stands in; the head of a frame stands in its own."""
    return {member: group.key for group in graph.groups for member in group.members}


def merged_graph(graph: Graph, merged: Mapping[str, GraphNode], closed: Collection[str]) -> Graph:
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
        fresh = replace(edge, source=source, target=target)
        if moved and not edge.back:  # what is said beside it was of other nodes
            fresh = replace(fresh, lines=(), role=None)
        known = edges.get((source, target))
        edges[source, target] = fresh if known is None else _joined(known, fresh)
    return replace(
        graph,
        nodes=tuple(nodes.values()),
        edges=tuple(edges.values()),
        groups=tuple(_merged_groups(graph, merged, closed, nodes)),
    )


def _joined(one: GraphEdge, other: GraphEdge) -> GraphEdge:
    """Make one edge of two between the same nodes: taken where either was."""
    loud = other if one.state != "taken" and other.state == "taken" else one
    times, back = one.times + other.times, one.back and other.back
    lines = loud.lines if one.lines == other.lines or not (one.lines and other.lines) else ()
    if back and times:
        lines = (GraphLine(kind="count", text=f"back {counted(times, 'time')}"),)
    return replace(loud, times=times, back=back, lines=lines)


def _merged_groups(
    graph: Graph,
    merged: Mapping[str, GraphNode],
    closed: Collection[str],
    nodes: Mapping[str, GraphNode],
) -> Iterator[GraphGroup]:
    """Yield the frames that are left; the head of one that was closed stands in that around it."""
    places = {key: place for place, key in enumerate(nodes)}
    parent = {group.key: group.parent for group in graph.groups}
    renamed = {
        group.key: dict.fromkeys(merged[m].key if m in merged else m for m in group.members)
        for group in graph.groups
    }
    holding = {group.parent for group in graph.groups}
    gone = {
        key
        for key, members in renamed.items()
        # Nothing but its head is left of it, or not even that.
        if key in closed or key not in members or (len(members) < 2 and key not in holding)
    }

    def left(key: str) -> str:
        while key in gone:
            key = parent[key]
        return key

    held: dict[str, dict[str, None]] = {}
    seen: set[str] = set()
    for key, members in renamed.items():
        for member in members:
            if member not in seen and left(key):
                held.setdefault(left(key), {})[member] = None
            seen.add(member)
    for group in graph.groups:
        if group.key not in gone and group.key in held:
            inside = sorted(held[group.key], key=places.__getitem__)
            yield replace(group, members=tuple(inside), parent=left(group.parent))
