"""A structure in the published, nested form that flow viewers mount.

Record layer. The published form hangs each stage under the one before it (``next``), branches
under their decider (``children``) and what a mount or a fan-out holds under
``subflowStructure``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from runbook_nb.record.structure import Structure, StructureNode

#: How each kind of node is called in the published form; what is missing is a plain stage.
_TYPES: Final = {
    "streaming": "streaming",
    "decider": "decider",
    "selector": "selector",
    "fork": "fork",
    "fan_out": "fork",
}
#: Kinds of stage that branches belong to.
OWNERS: Final = ("decider", "selector", "fork")


def published_structure(structure: Structure) -> dict[str, Any]:
    """Give the published nested form that flow viewers mount.

    The root carries the procedure's name, and its own under ``stageName`` where that is another.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> chart = flow_chart("tiny", print, id="a").add_function("B", print, id="b").build()
    >>> published_structure(chart.structure)["next"]
    {'name': 'B', 'id': 'b', 'type': 'stage'}
    """
    writer = _Writer(structure)
    # A group holds all that lies in the groups inside of it, so the smallest are the innermost.
    for key, _ in sorted(structure.groups, key=lambda group: len(group[1])):
        writer.inner[key] = writer.chain(structure.inside(key))
    root = writer.chain(structure.inside(None))
    if root and root["name"] != structure.name:
        root = {**root, "name": structure.name, "stageName": root["name"]}
    return root


class _Writer:
    """Writes the chains of one structure, the inner ones before those that hold them."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.inner: dict[str, dict[str, Any]] = {}
        self.loops = dict(_loops(structure))
        self.defaults = {e.source: e.label for e in structure.edges if e.kind == "default"}

    def chain(self, nodes: Sequence[StructureNode]) -> dict[str, Any]:
        """Write the stages of one level, each under the one before."""
        following: dict[str, Any] = {}
        for node in reversed([n for n in nodes if n.decider is None]):
            here = self.node(node)
            if following:
                here["next"] = following
            following = here
        return following

    def node(self, node: StructureNode) -> dict[str, Any]:
        """Write one stage, with its branches and what it mounts."""
        form = str(node.detail.get("form", "stage")) if node.decider is not None else node.kind
        here: dict[str, Any] = {
            "name": node.name,
            "id": node.id,
            "type": _TYPES.get(form, "stage"),
            **self._marks(node, form),
        }
        branches = self.structure.branches_of(node.key)
        if branches:
            here["children"] = [self._branch(node, form, branch) for branch in branches]
        if self.inner.get(node.key):
            here["subflowStructure"] = self.inner[node.key]
        looped = self.loops.get(node.key)
        if looped is not None:
            here["loopTarget"] = looped
            here["next"] = {"name": looped, "id": looped, "type": "loop", "isLoopReference": True}
        return here

    def _marks(self, node: StructureNode, form: str) -> dict[str, Any]:
        marks: dict[str, Any] = {}
        detail = node.detail
        if node.description is not None:
            marks["description"] = node.description
        if form in ("decider", "selector"):
            marks["hasDecider" if form == "decider" else "hasSelector"] = True
            marks["branchIds"] = [n.branch for n in self.structure.branches_of(node.key)]
            if node.key in self.defaults:
                marks["defaultBranch"] = self.defaults[node.key]
        elif form == "streaming":
            marks |= {"isStreaming": True, "streamId": detail.get("stream") or node.name}
        elif form == "fan_out":
            marks["isDynamicParallel"] = True
        elif form == "subchart" or node.key in self.inner:
            marks |= {"isSubflowRoot": True, "subflowId": node.id, "subflowName": node.name}
        if form == "pausable" or detail.get("pausable"):
            marks["isPausable"] = True
        if detail.get("lazy"):
            marks["isLazy"] = True
        if detail.get("retry") is not None:
            marks["retryAttempts"] = detail["retry"]
        if detail.get("converge_at") is not None:
            marks["convergeAt"] = detail["converge_at"]
        if node.tags:
            marks["tags"] = list(node.tags)
        return marks

    def _branch(self, owner: StructureNode, form: str, branch: StructureNode) -> dict[str, Any]:
        here = self.node(branch)
        if form == "fork":
            return here | {"isParallelChild": True, "parallelGroupId": owner.id}
        # The id of a branch is its name for routing, unless another branch of the chart has it.
        return here if branch.branch == branch.id else here | {"branchId": branch.branch}


def _loops(structure: Structure) -> Iterator[tuple[str, str]]:
    """Give who loops, and the id of where to; a mount loops for the stages it ends in."""
    frames = structure.frames()
    for edge in structure.edges:
        target = structure.node(edge.target)
        if edge.kind == "loop" and target is not None:
            source: str | None = edge.source
            while source is not None and frames.get(source) != frames.get(edge.target):
                source = frames.get(source)
            yield source or edge.source, target.id
