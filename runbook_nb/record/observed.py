"""A structure with what ran and was not in it.

Record layer. The published structure says nothing of the charts that were made while running:
the branches of a fan-out, what a lazy mount resolved to. What of them ran is known from the run,
and is drawn; what else they hold is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from runbook_nb.record.log import FanOut
from runbook_nb.record.overlay import Overlay
from runbook_nb.record.structure import Structure, StructureEdge, StructureNode


class Met(NamedTuple):
    """A stage that ran and was not in the structure.

    Attributes
    ----------
    node : StructureNode
    head : str or None
        Key of the stage whose chart it lies in.
    after : str or None
        Key of the stage it came after, or that led to it.
    """

    node: StructureNode
    head: str | None
    after: str | None


def completed(
    structure: Structure, met: Mapping[str, Met], overlay: Overlay, fans: Mapping[str, FanOut]
) -> Structure:
    """Give a structure with the stages that were met, and with how they were reached.

    Parameters
    ----------
    structure : Structure
        As it was published.
    met : mapping
        Key -> a stage that is not in it, in the order they were met.
    overlay : Overlay
        What the run did.
    fans : mapping
        Key -> a fan-out that ran: a published structure does not tell its cap.

    Examples
    --------
    >>> node = StructureNode(key="a", id="a", name="A", kind="stage")
    >>> made = completed(Structure(name="c", nodes=()), {"a": Met(node, None, None)}, Overlay(), {})
    >>> made.nodes[0].id
    'a'
    """
    nodes = _placed(structure, met)
    groups = _grouped(structure, met, nodes)
    made = Structure(
        name=structure.name,
        nodes=tuple(_told(node, structure, groups, fans.get(node.key)) for node in nodes),
        groups=tuple((head, tuple(members)) for head, members in groups.items()),
    )
    return replace(made, edges=tuple(_edges(structure, made, overlay)))


def _placed(structure: Structure, met: Mapping[str, Met]) -> list[StructureNode]:
    """Put each stage behind the one it came after, the last met first."""
    behind: dict[str | None, list[StructureNode]] = {}
    there = {node.key for node in structure.nodes}
    for key, one in met.items():
        before = one.after if one.after in there else one.head
        behind.setdefault(before if before in there else None, []).append(one.node)
        there.add(key)
    placed: list[StructureNode] = []
    todo = [*reversed(structure.nodes), *reversed(behind.get(None, []))]
    while todo:
        node = todo.pop()
        placed.append(node)
        todo += behind.get(node.key, ())
    return placed


def _grouped(
    structure: Structure, met: Mapping[str, Met], nodes: Iterable[StructureNode]
) -> dict[str, dict[str, None]]:
    order = {node.key: place for place, node in enumerate(nodes)}
    groups = {head: dict.fromkeys(members) for head, members in structure.groups}
    frames = structure.frames()
    for key, one in met.items():
        head = one.head
        while head is not None:
            groups.setdefault(head, {}).setdefault(key)
            frames.setdefault(key, head)
            head = frames.get(head)
    return {
        head: dict.fromkeys(sorted(members, key=lambda key: order.get(key, 0)))
        for head, members in groups.items()
    }


def _told(
    node: StructureNode,
    structure: Structure,
    groups: Mapping[str, Any],
    fan: FanOut | None,
) -> StructureNode:
    """Say of a stage how its chart became known, and of a fan-out what bounds it had."""
    detail = dict(node.detail)
    if node.key in groups and node.key not in structure.heads:
        detail["template"] = "per_item" if node.kind == "fan_out" else "per_run"
    if node.kind == "fan_out":
        if fan is not None:
            detail.setdefault("cap", fan.cap)
            detail.setdefault("into", fan.into)
        detail.setdefault("template", "unknown")
    return node if detail == dict(node.detail) else replace(node, detail=detail)


def _edges(structure: Structure, made: Structure, overlay: Overlay) -> Iterable[StructureEdge]:
    known = {(edge.source, edge.target) for edge in structure.edges}
    frames = made.frames()
    fresh: dict[StructureEdge, None] = {}
    for (source, target), times in overlay.edges.items():
        if times and (source, target) not in known:
            edge = _edge(made, frames, source, target)
            if edge is not None:
                fresh.setdefault(edge)
    for (source, target), times in overlay.loops.items():
        if times and (source, target) not in known and made.node(target) is not None:
            fresh.setdefault(StructureEdge(source=source, target=target, kind="loop"))
    # What follows a stage follows the end of its chart, once that is known.
    entered = {edge.source for edge in fresh if edge.kind in ("fan_out", "enter")}
    ends = {(_head_of(edge.source, entered, frames), edge.target) for edge in fresh}
    for edge in structure.edges:
        if edge.kind not in ("next", "loop") or (edge.source, edge.target) not in ends:
            yield edge
    yield from fresh


def _head_of(key: str, heads: set[str], frames: Mapping[str, str]) -> str | None:
    frame = frames.get(key)
    while frame is not None and frame not in heads:
        frame = frames.get(frame)
    return frame


def _edge(
    made: Structure, frames: Mapping[str, str], source: str, target: str
) -> StructureEdge | None:
    begin, end = made.node(source), made.node(target)
    if begin is None or end is None:
        return None
    kind: Any = "next"
    if end.decider == source:
        kind = "branch" if begin.kind == "decider" else "fork"
    elif frames.get(target) == source:
        kind = "fan_out" if begin.kind == "fan_out" else "enter"
    label = end.branch if end.decider == source else None
    return StructureEdge(source=source, target=target, kind=kind, label=label)
