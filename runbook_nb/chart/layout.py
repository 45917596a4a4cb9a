"""The structure of a chart: its stages as nodes and edges, the charts inside it as groups.

Chart layer. A group is headed by the stage whose chart it holds: a fan-out, a mounted chart, or
a branch that is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from runbook_nb.chart.model import (
    Branch,
    Chart,
    DeciderStage,
    FanOutStage,
    ForkStage,
    JudgeEachStage,
    PausableStage,
    SelectorStage,
    Stage,
    StreamingStage,
    SubchartStage,
    branches_of,
    inner_chart,
    rules_of,
)
from runbook_nb.record.structure import EdgeKind, NodeKind, Structure, StructureEdge, StructureNode

if TYPE_CHECKING:
    from runbook_nb.rules import RuleSet


_KINDS: Final[dict[type, NodeKind]] = {
    DeciderStage: "decider",
    SelectorStage: "selector",
    ForkStage: "fork",
    FanOutStage: "fan_out",
    JudgeEachStage: "fan_out",
    SubchartStage: "subchart",
    PausableStage: "pausable",
    StreamingStage: "streaming",
}


def kind_of(stage: Stage) -> NodeKind:
    """Name the kind of a stage.

    Examples
    --------
    >>> from runbook_nb.chart.model import FunctionStage
    >>> kind_of(FunctionStage(id="a", name="A", fn=print))
    'stage'
    """
    return _KINDS.get(type(stage), "stage")


def structure_of(chart: Chart) -> Structure:
    """Lay out a chart.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> chart = flow_chart("c", print, id="a").add_function("B", print, id="b").build()
    >>> [(edge.source, edge.target) for edge in structure_of(chart).edges]
    [('a', 'b')]
    """
    layout = Layout()
    layout.add_chart(chart, "")
    return layout.structure(chart.name)


class Layout:
    """Collects nodes, edges and groups."""

    def __init__(self) -> None:
        self.nodes: list[StructureNode] = []
        self.edges: list[StructureEdge] = []
        self.groups: list[tuple[str, tuple[str, ...]]] = []

    def structure(self, name: str) -> Structure:
        """Give what was collected."""
        return Structure(
            name=name,
            nodes=tuple(self.nodes),
            edges=tuple(self.edges),
            groups=tuple(self.groups),
        )

    def add_chart(self, chart: Chart, path: str) -> tuple[str, list[str]]:
        """Add a chart; give the key of its first stage and the keys it ends in."""
        ends: list[str] = []
        first = ""
        for stage in chart.stages:
            key = f"{path}{stage.id}"
            first = first or key
            self._join(ends, key, "next")
            ends = self._add_stage(stage, path)
        if chart.loop_to is not None:
            self._join(ends, f"{path}{chart.loop_to}", "loop")
            ends = []
        return first, ends

    def add_inside(self, chart: Chart, key: str, kind: EdgeKind) -> list[str]:
        """Add the chart inside the stage of a key, as a group; give the keys it ends in."""
        begin = len(self.nodes)
        first, ends = self.add_chart(chart, f"{key}/")
        self.groups.append((key, tuple(node.key for node in self.nodes[begin:])))
        self.edges.append(StructureEdge(source=key, target=first, kind=kind))
        return ends

    def _join(self, ends: list[str], target: str, kind: EdgeKind) -> None:
        self.edges.extend(StructureEdge(source=end, target=target, kind=kind) for end in ends)

    def _add_stage(self, stage: Stage, path: str) -> list[str]:
        key = f"{path}{stage.id}"
        self.nodes.append(node_of(stage, key, kind_of(stage)))
        if isinstance(stage, DeciderStage | ForkStage):
            return self._add_branches(stage, key, path)
        inner = inner_chart(stage)
        if inner is None:
            return [key]
        kind: EdgeKind = "fan_out" if isinstance(stage, FanOutStage) else "enter"
        return self.add_inside(inner, key, kind)

    def _add_branches(self, owner: Stage, key: str, path: str) -> list[str]:
        # What a selector leads to may be nothing, and then what follows it comes next.
        ends = [key] if isinstance(owner, SelectorStage) else []
        for branch in branches_of(owner):
            branch_key = f"{path}{branch.id}"
            self.nodes.append(branch_node(branch, branch_key, key))
            self.edges.append(
                StructureEdge(
                    source=key,
                    target=branch_key,
                    kind=branch_kind(owner, branch),
                    label=branch.route,
                )
            )
            inner = inner_chart(branch.stage)
            last = [branch_key] if inner is None else self.add_inside(inner, branch_key, "enter")
            if branch.loop_to is None:
                ends += last
            else:
                self._join(last, f"{path}{branch.loop_to}", "loop")
        return ends


def branch_kind(owner: Stage, branch: Branch) -> EdgeKind:
    """Name the kind of the edge that leads to a branch."""
    if not isinstance(owner, DeciderStage):
        return "fork"
    return "default" if branch.route == default_route(owner) else "branch"


def branch_node(branch: Branch, key: str, owner: str) -> StructureNode:
    """Make the node of a branch."""
    form = kind_of(branch.stage)
    more = {} if form == "stage" else {"form": form}
    if branch.loop_to is not None:
        more["loop_to"] = branch.loop_to  # type: ignore[assignment]
    return node_of(
        branch.stage,
        key,
        "branch",
        more,
        branch=branch.route,
        decider=owner,
        added=branch.added,
    )


def node_of(
    stage: Stage, key: str, kind: NodeKind, more: dict[str, Any] | None = None, **facts: Any
) -> StructureNode:
    """Make the node of a stage."""
    return StructureNode(
        key=key,
        id=stage.id,
        name=stage.name,
        kind=kind,
        description=stage.description,
        tags=stage.tags,
        detail={**_detail(stage), **(more or {})},
        **facts,
    )


def _detail(stage: Stage) -> dict[str, Any]:
    detail: dict[str, Any] = {}
    rules = rules_of(stage)
    if rules is not None and not rules.is_bare:
        detail["rules"] = f"{rules.name} {rules.version}"
    into = stage.into if isinstance(stage, FanOutStage | ForkStage) else None
    if into is not None:
        detail["into"] = into
    if isinstance(stage, FanOutStage):
        detail["cap"] = stage.max_branches
        detail["max_concurrency"] = stage.max_concurrency
        if stage.subject is not None:
            detail["subject"] = stage.subject
        detail["template"] = "built" if isinstance(stage.branch, Chart) else "unknown"
    elif isinstance(stage, SubchartStage):
        detail["template"] = "unknown" if stage.lazy else "built"
        if stage.lazy:
            detail["lazy"] = True
        for name, mapped in (("inputs", stage.inputs), ("outputs", stage.outputs)):
            if isinstance(mapped, Mapping):
                detail[name] = dict(mapped)
    elif isinstance(stage, ForkStage):
        if stage.merge is not None:
            detail["merge"] = stage.merge if isinstance(stage.merge, str) else "function"
    elif isinstance(stage, StreamingStage):
        detail["stream"] = stage.stream
    if stage.retry is not None:
        detail["retry"] = stage.retry.attempts
    return detail


def default_route(stage: DeciderStage) -> str | None:
    """Name the branch a decider takes when nothing else matched: its rule set's, else its own."""
    if stage.rules is not None and stage.rules.default is not None:
        return stage.rules.default.branch
    return stage.default


def rules_by_key(chart: Chart, path: str) -> Iterator[tuple[str, RuleSet]]:
    """Yield the rule set of every stage that declares one, by its key in the structure."""
    for stage in chart.stages:
        rules = rules_of(stage)
        if rules is not None:
            yield f"{path}{stage.id}", rules
        for one in (stage, *(branch.stage for branch in branches_of(stage))):
            inner = inner_chart(one)
            if inner is not None:
                yield from rules_by_key(inner, f"{path}{one.id}/")
