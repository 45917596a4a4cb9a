"""What could have happened: the graph of a procedure, as data.

Record layer. Charts, and later plans and playbooks, all give a `Structure`; drawing needs
nothing else beside the walk. A fan-out carries the template of its branches, so the decider the
verdicts come from is in the picture before anything has run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from runbook_nb._display import Renderable, through
from runbook_nb._frozen import Immutable
from runbook_nb._text import counted, show
from runbook_nb._value import frozen
from runbook_nb._view import Badge, Card, Section, verdict_role
from runbook_nb.errors import LoadError

if TYPE_CHECKING:
    from runbook_nb.render.flowchart import Flowchart
    from runbook_nb.widgets.explorer import Explorer

#: What a node stands for.
NodeKind = Literal[
    "stage",
    "streaming",
    "pausable",
    "decider",
    "selector",
    "fork",
    "fan_out",
    "subchart",
    "branch",
    "step",
]

#: How one node follows another. ``branch`` and ``default`` leave a decider, ``fork`` leads to a
#: branch of a fork or selector, ``fan_out`` into the template of a fan-out's branches, ``enter``
#: into a mounted chart, ``loop`` back to an earlier stage; ``next`` is plain sequence.
EdgeKind = Literal["next", "branch", "default", "fork", "fan_out", "enter", "loop"]


@frozen
class StructureNode(Immutable):
    """One node of a procedure's graph.

    Attributes
    ----------
    key : str
        Unique in the structure: the stage id under the path of its fan-outs
        (``"per-subject/load"``).
    id, name : str
        The builder's id and display name.
    kind : str
        One of `NodeKind`.
    branch : str or None
        For a ``branch`` node, the word that routes to it.
    decider : str or None
        For a ``branch`` node, the key of its decider, selector or fork.
    description : str or None
        The author's words.
    tags : tuple of str
        The author's tags.
    added : bool
        True for a branch that `build` added (``declined``).
    detail : mapping
        More facts by kind: ``{"into", "cap", "max_concurrency", "subject", "template"}`` of a
        fan-out (``template`` is ``"built"``, ``"per_item"`` or ``"unknown"``), ``{"rules"}`` of a
        decider or selector, ``{"template", "lazy", "inputs", "outputs"}`` of a mounted chart (what
        is mapped by a function is left out), ``{"into", "merge"}`` of a fork, ``{"stream"}`` of a
        streaming stage, ``{"form", "loop_to"}`` of a branch (``form`` is the kind of its stage,
        where that is no plain one), ``{"retry"}`` of any. Of a playbook's ``step``: ``{"place",
        "optional", "phase", "tools", "least", "most", "probes", "uses", "unresolved", "form"}``,
        the number it has, what is expected of it and by what skills, and ``manual`` or
        ``approval`` for what a person does.
    """

    key: str
    id: str
    name: str
    kind: NodeKind
    branch: str | None = None
    decider: str | None = None
    description: str | None = None
    tags: tuple[str, ...] = ()
    added: bool = False
    detail: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form; empty facts are left out."""
        out: dict[str, Any] = {
            "key": self.key,
            "id": self.id,
            "name": self.name,
            "kind": self.kind,
        }
        for name in ("branch", "decider", "description"):
            if getattr(self, name) is not None:
                out[name] = getattr(self, name)
        if self.tags:
            out["tags"] = list(self.tags)
        if self.added:
            out["added"] = True
        if self.detail:
            out["detail"] = dict(self.detail)
        return out


@frozen
class StructureEdge(Immutable):
    """An edge between two nodes, by their keys; ``label`` is the branch id of a decider's edge."""

    source: str
    target: str
    kind: EdgeKind
    label: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form."""
        out = {"source": self.source, "target": self.target, "kind": self.kind}
        return out if self.label is None else {**out, "label": self.label}


@dataclass(frozen=True, kw_only=True, eq=True, repr=False)
class Structure(Immutable, Renderable):
    """The graph of a procedure.

    Attributes
    ----------
    name : str
        The procedure's name.
    nodes : tuple of StructureNode
        In declared order; a fan-out's template follows it.
    edges : tuple of StructureEdge
    groups : tuple of (str, tuple of str)
        Key of a stage that holds a chart (a fan-out, a mounted chart, a branch that is one), and
        the keys of that chart's nodes.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> flow_chart("tiny", lambda s: None, id="only").build().structure
    <Structure tiny · 1 node>
    """

    name: str
    nodes: tuple[StructureNode, ...]
    edges: tuple[StructureEdge, ...] = ()
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def node(self, key: str) -> StructureNode | None:
        """Find a node by its key."""
        return self._by_key.get(key)

    def branches_of(self, decider: str) -> tuple[StructureNode, ...]:
        """Give the branches of a decider, by its key, in declared order."""
        return self._branches.get(decider, ())

    def inside(self, head: str | None) -> tuple[StructureNode, ...]:
        """Give the nodes that lie directly in the chart of a stage; at the top for None."""
        return self._inside.get(head, ())

    @cached_property
    def heads(self) -> dict[str, StructureNode]:
        """The stages that hold a chart, by their key."""
        found = ((key, self.node(key)) for key, _ in self.groups)
        return {key: node for key, node in found if node is not None}

    @cached_property
    def _by_key(self) -> dict[str, StructureNode]:
        return {node.key: node for node in reversed(self.nodes)}

    @cached_property
    def _branches(self) -> dict[str | None, tuple[StructureNode, ...]]:
        return _gathered((node.decider, node) for node in self.nodes)

    @cached_property
    def _inside(self) -> dict[str | None, tuple[StructureNode, ...]]:
        frames = self.frames()
        return _gathered((frames.get(node.key), node) for node in self.nodes)

    def out_of(self, key: str) -> Iterator[StructureEdge]:
        """Yield the edges that leave a node."""
        return iter(self._leaving.get(key, ()))

    @cached_property
    def _leaving(self) -> dict[str, list[StructureEdge]]:
        found: dict[str, list[StructureEdge]] = {}
        for edge in self.edges:
            found.setdefault(edge.source, []).append(edge)
        return found

    def frames(self) -> dict[str, str]:
        """Give the stage whose chart each node lies in, the innermost one; others have none."""
        return dict(self._frames)

    @cached_property
    def _frames(self) -> dict[str, str]:
        wide_first = sorted(self.groups, key=lambda group: -len(group[1]))
        return {member: key for key, members in wide_first for member in members}

    def depth(self, key: str, frames: Mapping[str, str]) -> int:
        """Count the charts around a node, by its `frames`."""
        depth, frame = 0, frames.get(key)
        while frame is not None:
            depth, frame = depth + 1, frames.get(frame)
        return depth

    def find(self, id_or_name: str, kind: str | None = None) -> Iterator[StructureNode]:
        """Yield the nodes whose id or name is the given word."""
        nodes = self.nodes if kind is None else self._kinds.get(kind, ())
        return (node for node in nodes if id_or_name in (node.id, node.name))

    @cached_property
    def _kinds(self) -> dict[str | None, tuple[StructureNode, ...]]:
        return _gathered((node.kind, node) for node in self.nodes)

    def fan_out_of(self, key: str) -> str:
        """Give the key of the fan-out a node stands in; empty at the top.

        Charts mounted in the fan-out's branches are part of them.

        Examples
        --------
        >>> from runbook_nb.chart.builder import flow_chart
        >>> one = flow_chart("one", lambda s: 1, id="one").build()
        >>> structure = (flow_chart("c", lambda s: s.set("xs", [1, 2]), id="a")
        ...     .add_parallel_for_each("Each", id="each", items=lambda s: s["xs"], branch=one,
        ...                            max_branches=1, into="out").build()).structure
        >>> structure.fan_out_of("each/one"), structure.fan_out_of("a")
        ('each', '')
        """
        frames, heads = self._frames, self.heads
        frame = frames.get(key)
        while frame is not None and heads[frame].kind != "fan_out":
            frame = frames.get(frame)
        return frame or ""

    @cached_property
    def deciding(self) -> frozenset[str]:
        """The keys of the fan-outs in whose branches a decider stands; empty for the top."""
        return frozenset([self.fan_out_of(node.key) for node in self._kinds.get("decider", ())])

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form of the whole graph.

        Each node is listed once, in the group it lies in directly: charts may lie in one another
        by the hundred.
        """
        frames = self.frames()
        return {
            "name": self.name,
            "nodes": [node.to_dict() for node in self.nodes],
            "edges": [edge.to_dict() for edge in self.edges],
            "groups": [
                {"key": key, "members": [one for one in members if frames[one] == key]}
                for key, members in self.groups
            ],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Structure:
        """Read the JSON form back.

        Raises
        ------
        LoadError
            Its groups lie in one another in a circle.
        """
        listed = [(group["key"], tuple(group["members"])) for group in data.get("groups", ())]
        read = cls(
            name=data["name"],
            nodes=tuple(
                StructureNode(**{**node, "tags": tuple(node.get("tags", ()))})
                for node in data["nodes"]
            ),
            edges=tuple(StructureEdge(**edge) for edge in data.get("edges", ())),
            groups=tuple(listed),
        )
        return replace(read, groups=tuple(_with_all_inside(read)))

    def flowchart(self) -> Flowchart:
        """Draw what could happen; the object has ``.svg``, ``.dot`` and ``.mermaid``."""
        chart: Flowchart = through("flowchart", self.view())
        return chart

    def explore(self) -> Explorer:
        """Go through what could happen, node by node; a widget."""
        explorer: Explorer = through("explore", self)
        return explorer

    def view(self, rules: Mapping[str, Any] | None = None) -> Card:
        """Show the graph as an outline: every stage, every branch, the default named.

        Parameters
        ----------
        rules : mapping, optional
            Decider key -> its rule set, for what stands beside the edges of the picture.
        """
        from runbook_nb.record.outline import structure_flow

        flow = structure_flow(self, rules)
        return Card(
            kind="Structure",
            name=self.name,
            headline=counted(len(self.nodes), "node"),
            sections=(Section(label="Stages", parts=(flow,)),),
        )


def _with_all_inside(structure: Structure) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Give the groups with everything inside, from what lies in them directly."""
    frames = structure.frames()
    inside: dict[str, list[str]] = {key: [] for key, _ in structure.groups}
    for key in dict.fromkeys([*(node.key for node in structure.nodes), *frames]):
        frame, steps = frames.get(key), 0
        while frame is not None:
            inside[frame].append(key)
            frame, steps = frames.get(frame), steps + 1
            if steps > len(inside):
                raise LoadError(
                    f"the chart inside {frame!r} lies in itself",
                    where="structure.groups",
                    fix="load a structure as it was written",
                )
    for key, members in inside.items():
        yield key, tuple(members)


def _gathered(
    pairs: Iterable[tuple[str | None, StructureNode]],
) -> dict[str | None, tuple[StructureNode, ...]]:
    found: dict[str | None, list[StructureNode]] = {}
    for key, node in pairs:
        found.setdefault(key, []).append(node)
    return {key: tuple(nodes) for key, nodes in found.items()}


def branch_badge(structure: Structure, node: StructureNode) -> Badge:
    """Give a branch as a badge whose role follows the order its decider declares."""
    order = tuple(n.branch or "" for n in structure.branches_of(node.decider or ""))
    return Badge(word=show(node.branch), role=verdict_role(node.branch or "", order))
