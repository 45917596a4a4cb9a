"""The published, nested form of a structure read back, and our own written one checked.

Record layer. A form may have been made elsewhere: ids may be odd, parts may be missing, and
nothing of it is believed that the graph does not need.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, get_args

from runbook_nb._frozen import freeze
from runbook_nb._text import show
from runbook_nb.errors import LoadError
from runbook_nb.record.published import OWNERS
from runbook_nb.record.structure import (
    EdgeKind,
    NodeKind,
    Structure,
    StructureEdge,
    StructureNode,
)

#: Most stages a structure is read with, and most levels of mounts, fan-outs and branches.
MAX_STAGES: Final = 100_000
MAX_LEVELS: Final = 64


def structure_of(published: Any, name: str | None = None) -> Structure:
    """Read the published form of a structure, ours or one made by the published engine.

    Parameters
    ----------
    published : mapping
        The root of the nested form.
    name : str, optional
        The procedure's name; the root's own unless given.

    Raises
    ------
    LoadError
        It is no such form: a part has the wrong type, it contains itself, it is too large.

    Examples
    --------
    >>> root = {"name": "A", "id": "a", "next": {"name": "B", "id": "b", "type": "stage"}}
    >>> [(edge.source, edge.target) for edge in structure_of(root).edges]
    [('a', 'b')]
    """
    reader = _Reader()
    if published:
        root = reader.mapping(published, "structure")
        own = root.get("stageName")
        reader.chain(root if own is None else {**root, "name": own}, "", 0)
        name = name or text_at(root, "name", "structure")
    return Structure(
        name=name or "",
        nodes=tuple(reader.nodes.values()),
        edges=tuple(reader.edges),
        groups=tuple(reader.groups),
    )


def text_at(mapping: Mapping[str, Any], key: str, where: str) -> str | None:
    """Give the text under a key, None where there is none.

    Raises
    ------
    LoadError
        There is something else.
    """
    value = mapping.get(key)
    if value is None or isinstance(value, str):
        return value
    raise bad_part(f"{key} is {_kind(value)}, not a text", f"{where}.{key}")


def bad_part(message: str, where: str) -> LoadError:
    """Make the error for a part of a recording that is not what its place asks for."""
    return LoadError(
        message,
        code="bad_recording",
        where=where,
        fix="give a recording as it was written: {snapshot, events, structure}",
    )


def _kind(value: Any) -> str:
    names = {dict: "a mapping", list: "a list", bool: "true or false", int: "a number"}
    return names.get(type(value), f"a {type(value).__name__}")


@dataclass(slots=True)
class _Reader:
    """Collects the nodes, edges and groups of one published structure."""

    nodes: dict[str, StructureNode] = field(default_factory=dict)
    edges: dict[StructureEdge, None] = field(default_factory=dict)
    groups: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    met: int = 0

    def mapping(self, value: Any, where: str) -> Mapping[str, Any]:
        """Give a part that must be a mapping."""
        if isinstance(value, Mapping):
            return value
        raise bad_part(f"a stage is {_kind(value)}, not a mapping", where)

    def chain(
        self, root: Any, prefix: str, level: int, ends: Sequence[str] = ()
    ) -> tuple[str, list[str]]:
        """Read a stage and all that follow; give the key of the first and those they end in.

        The stages before it are its ``ends``.
        """
        if level > MAX_LEVELS:
            raise LoadError(
                f"the structure is nested more than {MAX_LEVELS} levels deep",
                code="too_deep",
                where=f"structure, at {show(prefix)}",
                fix="record the procedure without what it mounts at that depth",
            )
        first = ""
        spec: Any = root
        while spec is not None:
            before = ends[0] if ends else prefix
            where = f"structure, after {show(before)}" if before else "structure"
            here = self.mapping(spec, where)
            key = f"{prefix}{self._id(here, where)}"
            if here.get("isLoopReference") or here.get("type") == "loop":
                self._edge(ends, key, "loop")
                return first or key, []
            self.met += 1
            if self.met > MAX_STAGES:
                raise LoadError(
                    f"the structure has more than {MAX_STAGES} stages, or contains itself",
                    code="too_large",
                    where="structure",
                    fix="record a smaller procedure",
                )
            self._edge(ends, key, "next")
            ends = self._stage(here, key, prefix, level)
            first = first or key
            spec = here.get("next")
        return first, list(ends)

    def _id(self, here: Mapping[str, Any], where: str) -> str:
        found = text_at(here, "id", where)
        if found is None:
            found = text_at(here, "name", where)
        if found is None:
            raise bad_part("a stage has neither id nor name", where)
        return found

    def _edge(self, sources: Iterable[str], target: str, kind: Any, label: Any = None) -> None:
        for source in sources:
            edge = StructureEdge(source=source, target=target, kind=kind, label=label)
            self.edges.setdefault(edge)

    def _stage(self, here: Mapping[str, Any], key: str, prefix: str, level: int) -> list[str]:
        kind = kind_of(here)
        self._add(here, key, kind)
        if kind in OWNERS:
            return self._branches(here, key, kind, prefix, level)
        return self._inside(here, key, "fan_out" if kind == "fan_out" else "enter", level)

    def _add(self, here: Mapping[str, Any], key: str, kind: str, **more: Any) -> None:
        where = f"structure, stage {show(key)}"
        tags = here.get("tags")
        identity = self._id(here, where)
        any_kind: Any = kind
        node = StructureNode(
            key=key,
            id=identity,
            name=text_at(here, "name", where) or identity,
            kind=any_kind,
            description=text_at(here, "description", where),
            tags=tuple(t for t in tags if isinstance(t, str)) if isinstance(tags, list) else (),
            detail={**_detail(here, kind), **more.pop("detail", {})},
            **more,
        )
        self.nodes.setdefault(key, node)

    def _branches(
        self, here: Mapping[str, Any], key: str, kind: str, prefix: str, level: int
    ) -> list[str]:
        children = here.get("children")
        default = here.get("defaultBranch")
        # Where nothing is selected, what follows a selector is next.
        ends = [key] if kind == "selector" or not children else []
        if children is not None and not isinstance(children, list):
            raise bad_part(f"children is {_kind(children)}, not a list", f"structure, {show(key)}")
        for child in children or ():
            where = f"structure, a child of {show(key)}"
            one = self.mapping(child, where)
            identity = self._id(one, where)
            route = text_at(one, "branchId", f"structure, stage {show(identity)}") or identity
            child_key = f"{prefix}{identity}"
            form = kind_of(one)
            more = {} if form == "stage" else {"form": form}
            self._add(one, child_key, "branch", branch=route, decider=key, detail=more)
            edge = "fork"
            if kind == "decider":
                edge = "default" if route == default else "branch"
            self._edge([key], child_key, edge, route)
            ends += self._after_branch(one, child_key, prefix, level)
        return list(dict.fromkeys(ends))

    def _after_branch(self, one: Mapping[str, Any], key: str, prefix: str, level: int) -> list[str]:
        ends = self._inside(one, key, "enter", level)
        target = text_at(one, "loopTarget", f"structure, stage {show(key)}")
        if one.get("next") is not None:
            return self.chain(one["next"], prefix, level + 1, ends)[1]
        if target is not None:
            self._edge(ends, f"{prefix}{target}", "loop")
            return []
        return ends

    def _inside(self, here: Mapping[str, Any], key: str, edge: str, level: int) -> list[str]:
        """Read what a stage mounts, as a group of its own; give the keys it ends in."""
        inner = here.get("subflowStructure")
        if inner is None:
            return [key]
        before = len(self.nodes)
        first, ends = self.chain(inner, f"{key}/", level + 1)
        self._edge([key], first, edge)
        self.groups.append((key, tuple(list(self.nodes)[before:])))
        return ends or [key]


def kind_of(here: Mapping[str, Any]) -> str:
    """Name the kind of node a published stage is."""
    kind = here.get("type")
    if here.get("isDynamicParallel"):
        return "fan_out"
    if here.get("hasDecider") or kind == "decider":
        return "decider"
    if here.get("hasSelector") or kind == "selector":
        return "selector"
    if here.get("isSubflowRoot") or kind == "subflow" or "subflowStructure" in here:
        return "subchart"
    if here.get("children"):
        return "fork"
    if here.get("isPausable"):
        return "pausable"
    return "streaming" if here.get("isStreaming") or kind == "streaming" else "stage"


def _detail(here: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Give what else is said of a stage, by its kind."""
    detail: dict[str, Any] = {}
    known = here.get("subflowStructure") is not None
    if kind in ("subchart", "branch") and kind_of(here) == "subchart":
        detail["template"] = "built" if known else "unknown"
        if here.get("isLazy"):
            detail["lazy"] = True
    elif kind == "fan_out":
        detail["template"] = "built" if known else "unknown"
    if here.get("isStreaming") and isinstance(here.get("streamId"), str):
        detail["stream"] = here["streamId"]
    if here.get("isPausable") and kind not in ("pausable", "branch"):
        detail["pausable"] = True
    attempts = here.get("retryAttempts")
    if isinstance(attempts, int) and not isinstance(attempts, bool):
        detail["retry"] = attempts
    if kind == "branch" and isinstance(here.get("loopTarget"), str):
        detail["loop_to"] = here["loopTarget"]
    if isinstance(here.get("convergeAt"), str):
        detail["converge_at"] = here["convergeAt"]
    return detail


def structure_as_written(written: Any, where: str) -> Structure:
    """Read `Structure.to_dict` back from somebody who may have changed it.

    Raises
    ------
    LoadError
        A part is not as it is written, or does not fit the others.

    Examples
    --------
    >>> tiny = structure_of({"id": "a", "name": "A"})
    >>> structure_as_written(tiny.to_dict(), "here") == tiny
    True
    """
    try:
        made = Structure.from_dict(freeze(written, "structure"))
    except (TypeError, KeyError, AttributeError, ValueError):
        raise bad_part("it is not as Structure.to_dict gives it", where) from None
    problem = next(_problems(made), None)
    if problem is not None:
        raise bad_part(problem, where)
    return made


def _problems(made: Structure) -> Iterator[str]:
    # What its annotations promise is what somebody else's file may not keep.
    nodes: Sequence[Any] = made.nodes
    edges: Sequence[Any] = made.edges
    if not _texts([made.name]):
        yield "its name is no text"
    for node in nodes:
        told = [one for one in (node.branch, node.decider, node.description) if one is not None]
        if not _texts([node.key, node.id, node.name, *node.tags, *told]):
            yield "a node is named by something that is no text"
        elif node.kind not in get_args(NodeKind) or not isinstance(node.detail, Mapping):
            yield f"node {show(node.key)} is of no known kind"
    keys = {node.key for node in nodes}
    if len(keys) < len(nodes):
        yield "two nodes have one key"
    for edge in edges:
        if not _texts([edge.source, edge.target]) or not {edge.source, edge.target} <= keys:
            yield "an edge joins nodes that are not there"
        elif edge.kind not in get_args(EdgeKind) or not isinstance(edge.label, str | None):
            yield "an edge is of no known kind"
    for head, members in made.groups:
        named = [head, *members]
        if not _texts(named) or not set(named) <= keys:
            yield "a group is of nodes that are not there"
    yield from _circles(made)


def _texts(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _circles(made: Structure) -> Iterator[str]:
    """Find charts that would lie inside themselves."""
    frames = made.frames()
    for key in frames:
        met, frame = {key}, frames.get(key)
        while frame is not None and frame not in met:
            met.add(frame)
            frame = frames.get(frame)
        if frame is not None or len(met) > 2 * MAX_LEVELS:
            yield f"the chart of {show(key)} would lie inside itself"
            return
