"""The structure of a run whose charts were made while it ran: known only afterwards.

Chart layer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from runbook_nb.chart.finishing import declined_branch
from runbook_nb.chart.layout import Layout, branch_node
from runbook_nb.chart.model import Chart
from runbook_nb.record.structure import EdgeKind, Structure, StructureEdge

#: Edges that lead on from a stage to what follows it.
_ONWARDS = ("next", "loop")

#: What is said of a stage whose chart was made while running.
_MADE = ("per_item", "per_run")


def structure_with(
    chart: Chart,
    templates: Mapping[str, Mapping[Any, Chart]],
    undeclared: Iterable[tuple[str, str]],
) -> Structure:
    """Give a chart's structure with what the run added: charts made, undeclared branches taken.

    Where charts of different layouts were made for one stage, the template is their union.
    """
    structure = chart.structure
    if templates:
        growing = _Growing(structure)
        # Outer stages first: the inner ones live inside the templates they bring. All in an order
        # of its own, so that who was first to be made does not show.
        for key in sorted(templates, key=lambda key: (key.count("/"), key)):
            layouts = sorted(templates[key].items(), key=lambda pair: repr(pair[0]))
            growing.put(key, [made for _, made in layouts])
        structure = growing.structure()
    for decider, branch_id in undeclared:
        structure = _with_branch(structure, decider, branch_id)
    return structure


class _Growing:
    """A structure that templates are put into.

    What is there is looked at once for all of them: charts that mount themselves may have brought
    hundreds, each inside the one before.
    """

    def __init__(self, structure: Structure) -> None:
        self.name = structure.name
        self.base = [node.key for node in structure.nodes]
        self.nodes = {node.key: node for node in structure.nodes}
        #: What was put behind a stage that holds it.
        self.behind: dict[str, list[str]] = {}
        self.edges: dict[str, dict[StructureEdge, None]] = {}
        self.heads = dict.fromkeys(key for key, _ in structure.groups)
        #: The innermost stage whose chart each node lies in.
        self.frames = structure.frames()
        self.add_edges(structure.edges)

    def add_edges(self, edges: Iterable[StructureEdge]) -> None:
        """Add edges, each once."""
        for edge in edges:
            self.edges.setdefault(edge.source, {})[edge] = None

    def put(self, key: str, made: Iterable[Chart]) -> None:
        """Put the charts that were made for a stage behind it, where there is such a stage."""
        head = self.nodes.get(key)
        if head is None:
            return
        kind: EdgeKind = "fan_out" if head.kind == "fan_out" else "enter"
        template = "per_item" if kind == "fan_out" else "per_run"
        self.nodes[key] = replace(head, detail={**head.detail, "template": template})
        leaving = self.edges.pop(key, {})
        # Only what did not come from a template can follow the stage.
        after = [(edge.target, edge.kind) for edge in leaving if edge.kind in _ONWARDS]
        self.add_edges(edge for edge in leaving if edge.kind not in _ONWARDS)
        layout = Layout()
        for one in made:
            first, ends = layout.add_chart(one, f"{key}/")
            layout.edges.append(StructureEdge(source=key, target=first, kind=kind))
            layout.edges.extend(
                StructureEdge(source=end, target=target, kind=onwards)
                for end in ends
                for target, onwards in after
            )
        fresh = list(dict.fromkeys(node.key for node in layout.nodes))
        inner = layout.structure(self.name)
        self.frames.update({**dict.fromkeys(fresh, key), **inner.frames()})
        self.heads.update(dict.fromkeys([*(group for group, _ in layout.groups), key]))
        for node in reversed(layout.nodes):  # where layouts differ, the first one counts
            self.nodes[node.key] = node
        self.behind[key] = fresh
        self.add_edges(layout.edges)

    def structure(self) -> Structure:
        """Give the structure as it has become."""
        listed: list[str] = []
        coming = list(reversed(self.base))
        while coming:
            key = coming.pop()
            listed.append(key)
            coming.extend(reversed(self.behind.get(key, ())))
        members: dict[str, list[str]] = {head: [] for head in self.heads}
        for key in listed:
            frame = self.frames.get(key)
            while frame is not None:
                members[frame].append(key)
                frame = self.frames.get(frame)
        places = {key: place for place, key in enumerate(listed)}
        sources = sorted(self.edges, key=places.__getitem__)
        return Structure(
            name=self.name,
            nodes=tuple(self.nodes[key] for key in listed),
            edges=tuple(edge for source in sources for edge in self.edges[source]),
            groups=tuple((head, tuple(inside)) for head, inside in members.items()),
        )


def both_structures(first: Structure, second: Structure) -> Structure:
    """Give what two runs of one chart, or two parts of one run, met together.

    Both are the chart's own structure with what was made while running; what one of them alone
    met is in it as that one has it.
    """
    known = {node.key: node for node in first.nodes}
    listed = list(first.nodes)
    heads = {member: key for key, held in second.groups for member in held}
    for node in second.nodes:
        if node.key not in known:
            behind = heads.get(node.key, "")
            inside = [
                place
                for place, one in enumerate(listed)
                if one.key == behind or one.key.startswith(f"{behind}/")
            ]
            listed.insert(max(inside, default=len(listed) - 1) + 1, node)
            known[node.key] = node
        elif known[node.key].detail.get("template") == "unknown":
            listed[listed.index(known[node.key])] = node
            known[node.key] = node
    made = {key for key, node in known.items() if node.detail.get("template") in _MADE}
    edges = [
        edge
        for edge in dict.fromkeys([*first.edges, *second.edges])
        if not (edge.source in made and edge.kind in _ONWARDS)
    ]
    members: dict[str, dict[str, None]] = {}
    for key, held in (*first.groups, *second.groups):
        members.setdefault(key, {}).update(dict.fromkeys(held))
    groups = tuple((key, tuple(held)) for key, held in members.items())
    return Structure(name=first.name, nodes=tuple(listed), edges=tuple(edges), groups=groups)


def _with_branch(structure: Structure, decider: str, branch_id: str) -> Structure:
    owner = structure.node(decider)
    if owner is None:
        return structure
    branch = declined_branch(branch_id)
    key = f"{decider[: len(decider) - len(owner.id)]}{branch.id}"
    if structure.node(key) is not None:  # another layout of the same fan-out declares it
        return structure
    node = branch_node(branch, key, decider)
    siblings = {n.key for n in structure.nodes if n.decider == decider}
    inside = {n for head, held in structure.groups if head in siblings for n in held}
    following = [
        e.target
        for e in structure.edges
        if e.kind == "next" and e.source in siblings | inside and e.target not in inside
    ]
    edges = (
        *structure.edges,
        StructureEdge(source=decider, target=key, kind="branch", label=branch.route),
        *(StructureEdge(source=key, target=t, kind="next") for t in dict.fromkeys(following)),
    )
    place = 1 + max(
        i for i, n in enumerate(structure.nodes) if n.key in (decider, *siblings, *inside)
    )
    groups = tuple(
        (group, (*members, key) if decider in members else members)
        for group, members in structure.groups
    )
    nodes = (*structure.nodes[:place], node, *structure.nodes[place:])
    return Structure(name=structure.name, nodes=nodes, edges=edges, groups=groups)
