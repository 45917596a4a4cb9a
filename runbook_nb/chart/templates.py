"""The structure of a run whose branch charts were made per item: known only afterwards.

Chart layer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from runbook_nb.chart.builder import declined_branch
from runbook_nb.chart.model import Chart, add_structure
from runbook_nb.record.structure import Structure, StructureEdge, StructureNode


def structure_with(
    chart: Chart,
    templates: Mapping[str, Mapping[Any, Chart]],
    undeclared: Iterable[tuple[str, str]],
) -> Structure:
    """Give a chart's structure with what the run added: templates met, undeclared branches taken.

    Where a factory gave charts of different layouts, the template is their union.
    """
    structure = chart.structure
    # Outer fan-outs first: the inner ones live inside the templates they bring.
    for key in sorted(templates, key=lambda key: key.count("/")):
        for made in templates[key].values():
            structure = _with_template(structure, key, made)
    for decider, route in dict.fromkeys(undeclared):
        structure = _with_branch(structure, decider, route)
    return structure


def _with_template(structure: Structure, key: str, made: Chart) -> Structure:
    owner = structure.node(key)
    if owner is None:
        return structure
    nodes: list[StructureNode] = []
    edges: list[StructureEdge] = []
    groups: list[tuple[str, tuple[str, ...]]] = []
    first, ends = add_structure(made, f"{key}/", nodes, edges, groups)
    known = {node.key for node in structure.nodes}
    fresh = [node for node in nodes if node.key not in known]
    edges.append(StructureEdge(source=key, target=first, kind="fan_out"))
    following = [e.target for e in structure.edges if e.source == key and e.kind == "next"]
    following += [
        e.target
        for e in structure.edges
        if e.kind == "next"
        and e.source.startswith(f"{key}/")
        and not e.target.startswith(f"{key}/")
    ]
    edges += [
        StructureEdge(source=end, target=target, kind="next")
        for end in ends
        for target in dict.fromkeys(following)
    ]
    kept = tuple(e for e in structure.edges if not (e.source == key and e.kind == "next"))
    members = dict(structure.groups)
    members[key] = (*members.get(key, ()), *(node.key for node in fresh))
    members.update({inner: keys for inner, keys in groups if inner not in members})
    place = 1 + max(
        i for i, node in enumerate(structure.nodes) if node.key == key or node.key in members[key]
    )
    owner = replace(owner, detail={**owner.detail, "template": "per_item"})
    all_nodes = [*structure.nodes[:place], *fresh, *structure.nodes[place:]]
    return Structure(
        name=structure.name,
        nodes=tuple(owner if node.key == key else node for node in all_nodes),
        edges=tuple(dict.fromkeys((*kept, *edges))),
        groups=tuple(members.items()),
    )


def _with_branch(structure: Structure, decider: str, route: str) -> Structure:
    owner = structure.node(decider)
    if owner is None:
        return structure
    branch = declined_branch()
    path = decider[: len(decider) - len(owner.id)]
    key = f"{path}{branch.id}"
    if structure.node(key) is not None:
        return structure
    node = StructureNode(
        key=key,
        id=branch.id,
        name=branch.name,
        kind="branch",
        branch=route,
        decider=decider,
        added=True,
    )
    siblings = [n.key for n in structure.nodes if n.decider == decider]
    following = {e.target for e in structure.edges if e.source in siblings and e.kind == "next"}
    edges = (
        *structure.edges,
        StructureEdge(source=decider, target=key, kind="branch", label=route),
        *(StructureEdge(source=key, target=target, kind="next") for target in sorted(following)),
    )
    place = 1 + max(i for i, n in enumerate(structure.nodes) if n.key in (decider, *siblings))
    groups = tuple(
        (group, (*members, key) if decider in members else members)
        for group, members in structure.groups
    )
    nodes = (*structure.nodes[:place], node, *structure.nodes[place:])
    return Structure(name=structure.name, nodes=nodes, edges=edges, groups=groups)
