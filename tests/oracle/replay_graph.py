"""The built structure as facts: nodes by key, edges between keys, from either side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from replay_shape import Shape

Departs = Any


@dataclass
class Graph:
    """Nodes by key with what is told of each; edges as (source, target, kind)."""

    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    edges: set[tuple[str, str, str]] = field(default_factory=set)


#: Kinds of edges that both sides draw alike.
EDGE_KINDS = {"default": "branch", "fork": "branch"}


def recorded_graph(spec: Mapping[str, Any], shape: Shape, departs: Departs) -> Graph:
    """Read a recorded nested structure as the graph expected of us."""
    reading = _Reading(shape, departs)
    reading.chain(spec, "")
    return reading.graph


class _Reading:
    def __init__(self, shape: Shape, departs: Departs) -> None:
        self.shape = shape
        self.departs = departs
        self.graph = Graph()

    def chain(self, spec: Mapping[str, Any], path: str) -> tuple[str, list[str]]:
        """Add a chain of nodes; give the key of the first and the keys it ends in."""
        first, ends = "", []
        at: Mapping[str, Any] | None = spec
        while at is not None:
            if at.get("isLoopReference"):
                for end in ends:
                    self.graph.edges.add((end, f"{path}{at['id']}", "loop"))
                return first, []
            key = f"{path}{at['id']}"
            for end in ends:
                self.graph.edges.add((end, key, "next"))
            first = first or key
            ends = self.node(at, path)
            at = at.get("next")
        return first, ends

    def node(self, spec: Mapping[str, Any], path: str) -> list[str]:
        """Add one node and what is inside it; give the keys it ends in."""
        key = f"{path}{spec['id']}"
        children = spec.get("children") or ()
        fork = next((f for f in self.shape.forks if f.hung_on == key), None)
        kind = self.kind(spec, hung=fork is not None)
        self.graph.nodes[key] = self.facts(spec, kind)
        if fork is not None and not (spec.get("hasDecider") or spec.get("hasSelector")):
            self.departs("a-fork-is-a-stage")
            ends = self.inside(spec, key)
            self.graph.nodes[fork.key] = {"kind": "fork"}
            for end in ends:
                self.graph.edges.add((end, fork.key, "next"))
            return self.branches(children, fork.key, path, [])
        if children and (spec.get("hasDecider") or spec.get("hasSelector")):
            skips = [key] if spec.get("hasSelector") else []
            if skips and "next" in spec:
                self.departs("a-selector-may-select-nothing")
            return self.branches(children, key, path, skips)
        return self.inside(spec, key)

    def inside(self, spec: Mapping[str, Any], key: str) -> list[str]:
        """Add what a node's chart holds, where it is known before a run."""
        stage = self.shape.stages.get(key)
        inner = spec.get("subflowStructure")
        branch = None if stage is None else stage.step.get("branch")
        if isinstance(branch, Mapping) and "chart" in branch:
            self.departs("the-structure-shows-the-branch")
            return self.template(branch["chart"], key)
        if inner is None:
            return [key]
        first, ends = self.chain(inner, f"{key}/")
        self.graph.edges.add((key, first, "enter"))
        return ends or [key]

    def template(self, program: Mapping[str, Any], key: str) -> list[str]:
        """Add the stages of a fan-out's branch, which upstream's structure does not show."""
        first, ends = "", []
        chain = [s for s in self.shape.walk() if s.chart == f"{key}/" and s.position is not None]
        for stage in chain:
            self.graph.nodes[stage.key] = {"name": stage.name}
            for end in ends:
                self.graph.edges.add((end, stage.key, "next"))
            first = first or stage.key
            ends = self.drawn(stage.key)
        self.graph.edges.add((key, first, "fan_out"))
        return ends or [key]

    def drawn(self, key: str) -> list[str]:
        owned = [s for s in self.shape.walk() if s.owner == key]
        for one in owned:
            self.graph.nodes[one.key] = {"name": one.name}
            self.graph.edges.add((key, one.key, "branch"))
        stage = self.shape.stages[key]
        if stage.kind == "for_each" and "chart" in (stage.step.get("branch") or {}):
            return self.template(stage.step["branch"]["chart"], key)
        ends = []
        for one in owned:
            inner = [s for s in self.shape.walk() if s.chart == f"{one.key}/"]
            ends += [one.key] if not inner else self.template({}, one.key)
        skips = [key] if stage.kind == "selector" else []
        return skips + ends or [key]

    def branches(self, children: Any, key: str, path: str, ends: list[str]) -> list[str]:
        for child in children:
            child_key = f"{path}{child['id']}"
            self.graph.edges.add((key, child_key, "branch"))
            inner = self.node({**child, "next": None}, path)
            self.graph.nodes[child_key]["kind"] = "branch"
            loop = child.get("next")
            if loop is not None and loop.get("isLoopReference"):
                for end in inner:
                    self.graph.edges.add((end, f"{path}{loop['id']}", "loop"))
            else:
                ends += inner
        return ends

    def kind(self, spec: Mapping[str, Any], *, hung: bool) -> str:
        """Name the kind of a node; what upstream calls its type must agree with its marks."""
        kinds = {
            "isDynamicParallel": ("fan_out", "fork"),
            "hasDecider": ("decider", "decider"),
            "hasSelector": ("selector", "selector"),
            "isSubflowRoot": ("subchart", "stage"),
            "isPausable": ("pausable", "stage"),
            "isStreaming": ("streaming", "streaming"),
        }
        kind, told = next((kinds[mark] for mark in kinds if spec.get(mark)), ("stage", "stage"))
        wanted = {told, "fork"} if hung else {told}
        return kind if spec["type"] in wanted else f"{kind} of type {spec['type']}"

    def facts(self, spec: Mapping[str, Any], kind: str) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "name": spec["name"],
            "kind": kind,
            "description": spec.get("description"),
            "tags": tuple(spec.get("tags") or ()),
            "retry": spec.get("retryAttempts"),
            "form": kind,
        }
        if spec.get("isStreaming"):
            facts["stream"] = spec.get("streamId")
        if spec.get("isSubflowRoot"):
            facts["lazy"] = bool(spec.get("isLazy"))
        if spec.get("branchIds") is not None and kind in ("decider", "selector"):
            facts["branches"] = list(spec["branchIds"])
        return facts


def our_graph(structure: Any) -> Graph:
    """Read our structure as a graph of the same facts."""
    graph = Graph()
    for node in structure.nodes:
        detail = node.detail
        facts = {
            "name": node.name,
            "kind": node.kind,
            "description": node.description,
            "tags": tuple(node.tags),
            "retry": detail.get("retry"),
            "stream": detail.get("stream"),
            "lazy": bool(detail.get("lazy")),
            "form": detail.get("form", "stage" if node.kind == "branch" else node.kind),
        }
        if node.kind in ("decider", "selector"):
            facts["branches"] = [n.branch for n in structure.branches_of(node.key) if not n.added]
        graph.nodes[node.key] = facts
    for edge in structure.edges:
        graph.edges.add((edge.source, edge.target, EDGE_KINDS.get(edge.kind, edge.kind)))
    return graph


def graph_differences(expected: Graph, found: Graph) -> list[str]:
    """Say what two graphs do not agree on."""
    wrong = [f"node {key!r} is missing" for key in sorted(expected.nodes.keys() - found.nodes)]
    wrong += [f"node {key!r} is too much" for key in sorted(found.nodes.keys() - expected.nodes)]
    for key, facts in expected.nodes.items():
        mine = found.nodes.get(key)
        for name, value in facts.items() if mine is not None else ():
            if mine.get(name) != value:
                wrong.append(f"node {key!r}: {name} {value!r} is {mine.get(name)!r}")
    wrong += [f"edge {edge} is missing" for edge in sorted(expected.edges - found.edges)]
    wrong += [f"edge {edge} is too much" for edge in sorted(found.edges - expected.edges)]
    return wrong
