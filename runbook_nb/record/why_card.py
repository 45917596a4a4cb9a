"""How a traced value looks: its steps as a list and as a small graph, like ones once.

Record layer: views only. Executions of one stage are told together, so a loop of a hundred
thousand passes and a fan-out of ten thousand items are as small as the chart that made them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from runbook_nb._text import clip, counted, listed, show
from runbook_nb._view import (
    Card,
    Cell,
    Data,
    Fact,
    Facts,
    Flow,
    FlowLine,
    Graph,
    GraphEdge,
    GraphLine,
    GraphNode,
    Section,
)
from runbook_nb.record.why import ENDS, Why, WhyEdge, WhyNode, WhySource
from runbook_nb.rules.decision import Decision

#: Paths named together before the rest is only counted.
_NAMED: Final = 2
#: Sources of one kind that are named before the rest is only counted.
_SOURCES: Final = 50

#: Places named at one end before the rest is only counted.
_ENDS_NAMED: Final = 6

#: What no trace can see, said under every one.
UNSEEN: Final = "what a tool or a stage's own code gave leaves no read"

#: How a link is called beside an edge, where the keys do not say it.
_WORDS: Final = {
    "decided": "decided",
    "selected": "selected",
    "looped": "went back",
    "item": "the item",
    "output": "mapped out",
    "merged": "merged",
    "kept": "built on",
    "branch": "branch",
    "input": "input",
    "answer": "answer",
}


_BECAUSE: Final = {
    "read": "read",
    "kept": "built on",
    "item": "was given",
    "input": "took from its input",
    "branch": "collected from",
    "output": "mapped out",
    "merged": "merged from",
}

#: Links that say why a step ran, not what it read.
_CONTROL: Final = ("decided", "selected", "looped")


class _Group:
    """The executions of one stage that did one kind of thing."""

    def __init__(self, key: str, first: WhyNode) -> None:
        self.key = key
        self.first = first
        self.nodes: list[WhyNode] = []
        self.runs: set[str] = set()

    def add(self, node: WhyNode) -> None:
        """Take in an execution."""
        self.nodes.append(node)
        self.runs.add(node.runtime_stage_id)

    @property
    def words(self) -> Cell:
        """What they did."""
        first = self.first
        if first.decision is not None and len(self.nodes) == 1:
            return Data(value=first.sentence)
        times = len(self.runs)
        if times > 1:
            places = _some([_alike(node.place) for node in self.nodes if node.place])
            return (_DID[first.what], Data(value=places) if places else "", f"{times} times")
        if first.what not in ("write", "delete", "item", "input"):
            return Data(value=first.sentence)
        told = _some([_told(node) for node in self.nodes])
        return (_DID[first.what] if first.what in ("item", "input") else "", Data(value=told))


def _told(node: WhyNode) -> str:
    return f"{node.place} {'deleted' if node.what == 'delete' else f'= {node.summary}'}"


def _alike(place: str) -> str:
    return re.sub(r"\[\d+\]", "[*]", place)


_DID: Final = {
    "decision": "decided",
    "selection": "selected",
    "result": "returned something",
    "loop": "went back",
    "write": "wrote",
    "delete": "deleted",
    "item": "handed on",
    "input": "mapped in",
}


def _kind(node: WhyNode) -> str:
    return "write" if node.what == "delete" else node.what


class _Picture:
    """A traced value, folded."""

    def __init__(self, why: Why) -> None:
        self.why = why
        self.groups: dict[str, _Group] = {}
        self.group_of: dict[str, str] = {}
        for node in why.nodes:
            key = f"{node.node}|{_kind(node)}"
            group = self.groups.setdefault(key, _Group(key, node))
            group.add(node)
            self.group_of[node.id] = key
        self.ends: dict[str, list[WhySource]] = {}
        for source in why.sources:
            key = f"|{_end(source)}"
            self.ends.setdefault(key, []).append(source)
            self.group_of[source.id] = key
        self.edges: dict[tuple[str, str], dict[str, list[WhyEdge]]] = {}
        for edge in why.edges:
            ends = (self.group_of[edge.origin], self.group_of[edge.reader])
            kinds = self.edges.setdefault(ends, {})
            kinds.setdefault(edge.kind, []).append(edge)

    # -- the list ----------------------------------------------------------------------------

    def lines(self) -> Iterator[FlowLine]:
        """Yield one line per group, nearest first."""
        because: dict[str, dict[tuple[str, str], list[WhyEdge]]] = {}
        for (origin, reader), kinds in self.edges.items():
            for kind, edges in kinds.items():
                # Of a read the keys are told, of a decision who made it.
                named = origin if kind in _CONTROL or kind == "own" else ""
                because.setdefault(reader, {}).setdefault((kind, named), []).extend(edges)
        for key, group in self.groups.items():
            single = len(group.runs) == 1
            name = group.first.stage if single else _stage(group.first)
            yield FlowLine(depth=0, cells=(Data(value=name), group.words), key=key)
            told = [self._because(*how, edges) for how, edges in because.get(key, {}).items()]
            if told:
                yield FlowLine(depth=1, cells=(Data(value=", ".join(told), tone="dim"),), key=key)

    def _because(self, kind: str, origin: str, edges: list[WhyEdge]) -> str:
        if kind == "own":
            return "a value of its own" if origin == "|own" else ENDS["unrecorded"]
        keys = _keys(edges)
        if kind == "looped":
            return f"ran again because {self._named(origin)} went back"
        if kind in _CONTROL:
            return f"ran because {self._named(origin)} {kind}"
        if kind == "answer":
            return "got an answer"
        if kind == "input" and not keys:
            return "looked at its input"
        return f"{_BECAUSE[kind]} {keys}".rstrip()

    def _named(self, origin: str) -> str:
        group = self.groups.get(origin)
        return show(group.first.stage) if group is not None else ""

    # -- the graph ---------------------------------------------------------------------------

    def graph(self) -> Graph:
        """Draw what led to the value, from its sources down to it."""
        nodes = [self._source_node(key, ends) for key, ends in self.ends.items()]
        nodes += [self._node(key, group) for key, group in reversed(self.groups.items())]
        order = {node.key: place for place, node in enumerate(nodes)}
        edges = [
            GraphEdge(
                source=origin,
                target=reader,
                state="taken",
                lines=tuple(self._edge_lines(origin, kinds)),
            )
            for (origin, reader), kinds in self.edges.items()
            if origin != reader
        ]
        edges.sort(key=lambda edge: (order[edge.source], order[edge.target]))
        return Graph(nodes=tuple(nodes), edges=tuple(edges))

    def _node(self, key: str, group: _Group) -> GraphNode:
        first = group.first
        title = first.stage if len(group.runs) == 1 else _stage(first)
        second: Cell = group.words
        if first.decision is not None:
            # Why it went which way stands beside the edge.
            second = counted(len(group.runs), "decision") if len(group.runs) > 1 else ""
        return GraphNode(
            key=key,
            title=Data(value=title),
            second=second,
            kind="decider" if first.what in ("decision", "selection") else "stage",
            state="ran",
        )

    def _source_node(self, key: str, ends: list[WhySource]) -> GraphNode:
        kind = ends[0].kind
        title = {
            "args": "the run's input",
            "initial": "the first state",
            "answer": "an answer",
            "absent": "not written",
            "own": "no read",
            "unrecorded": "reads not recorded",
        }[kind]
        second: Cell = ""
        if kind in ("args", "initial", "absent"):
            second = Data(value=_some([source.place for source in ends if source.place]))
        elif kind == "own":
            second = "from a tool, or the stage's own code"
        return GraphNode(key=key, title=title, second=second, kind="note", state="ran")

    def _edge_lines(self, origin: str, kinds: dict[str, list[WhyEdge]]) -> Iterator[GraphLine]:
        group = self.groups.get(origin)
        for kind, edges in kinds.items():
            if kind == "own" or (kind == "input" and origin.startswith("|")):
                continue
            if kind == "decided" and group is not None:
                yield from _decision_lines(group, len(edges))
                continue
            times = f"{len(edges)} times" if len(edges) > 1 and len(group_runs(edges)) > 1 else ""
            word = "" if kind == "read" else _WORDS.get(kind, kind)
            if word:
                yield GraphLine(kind="count", text=word)
            keys = _keys(edges)
            if keys:
                yield GraphLine(kind="condition", text=Data(value=keys))
            if times and not keys:
                yield GraphLine(kind="condition", text=times)


def group_runs(edges: list[WhyEdge]) -> set[str]:
    """Give the nodes that edges lead to."""
    return {edge.reader for edge in edges}


def _decision_lines(group: _Group, times: int) -> Iterator[GraphLine]:
    decision = group.first.decision
    if times > 1 or len(group.nodes) > 1:
        yield GraphLine(kind="count", text=f"decided, {counted(times, 'time')}")
        return
    yield GraphLine(kind="count", text="decided")
    if isinstance(decision, Decision):
        yield GraphLine(kind="condition", text=Data(value=decision.cause))
        if decision.label:
            yield GraphLine(kind="label", text=Data(value=decision.label))


def _keys(edges: list[WhyEdge]) -> str:
    """Name the paths of edges, those of like items once."""
    keys = [edge.key for edge in edges if edge.key]
    alike = list(dict.fromkeys(keys))
    if len(alike) > _NAMED:
        alike = list(dict.fromkeys(map(_alike, alike)))
    return _some(alike)


def _some(names: list[str]) -> str:
    names = list(dict.fromkeys(names))
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" +{more} more" if more > 0 else "")


def _stage(node: WhyNode) -> str:
    """Name a stage whose branches have been folded."""
    return re.sub(r" \[\d+\]$", "", node.stage) if node.what == "item" else node.stage


def _end(source: WhySource) -> str:
    return source.kind


def why_card(why: Why) -> Card:
    """Show a traced value."""
    picture = _Picture(why)
    steps = len({node.runtime_stage_id for node in why.nodes})
    notes = []
    folded = steps - sum(1 for group in picture.groups.values() if group.runs)
    if folded > 0 and any(len(group.runs) > 1 for group in picture.groups.values()):
        notes.append("like steps told once")
    notes.append(UNSEEN)
    value = clip(show(why.value), 60)
    told = f"{counted(steps, 'step')}, {counted(len(why.sources), 'source')}"
    sections: list[Section] = []
    if why.nodes:
        flow = Flow(
            lines=tuple(picture.lines()),
            summary=f"{show(why.path)} is {value}; {_ends(why)}",
            notes=tuple(notes),
            graph=picture.graph(),
        )
        sections.append(Section(label="Led to it, nearest first", parts=(flow,)))
    facts = tuple(_facts(picture))
    ends = Facts(label="Where it ends", items=facts[:_SOURCES], total=len(facts))
    sections.append(Section(label="", parts=(ends,)))
    return Card(
        kind="Why",
        name=why.path,
        qualifiers=(why.name,) if why.name else (),
        headline=f"{value}, from {told}" if why.nodes else f"{value}, written by no step",
        sections=tuple(sections),
        heading=(Data(value=why.path, tone="code"), "is", Data(value=value)),
        foot=told,
    )


def _facts(picture: _Picture) -> Iterator[Fact]:
    for ends in picture.ends.values():
        kind = ends[0].kind
        if kind in ("own", "unrecorded"):
            said = _many([source.stage for source in ends])
        elif kind == "answer":
            said = _many([show(source.value) for source in ends])
        else:
            said = _many([source.place for source in ends])
        yield Fact(term=ENDS[kind], detail=Data(value=said) if said else None)


def _many(names: list[str]) -> str:
    names = list(dict.fromkeys(filter(None, names)))
    if len(names) > _ENDS_NAMED:
        names = list(dict.fromkeys(map(_alike, names)))
    shown = names[:_ENDS_NAMED]
    more = len(names) - len(shown)
    return listed(shown) + (f" and {more} more" if more else "") if shown else ""


def _ends(why: Why) -> str:
    kinds = dict.fromkeys(source.kind for source in why.sources)
    words = {
        "args": "the run's input",
        "initial": "the state it began with",
        "answer": "an answer",
        "absent": "a key nobody wrote",
        "own": "values no read tells of",
        "unrecorded": "reads nobody recorded",
    }
    return f"it ends at {listed(words[kind] for kind in kinds)}" if kinds else "it ends nowhere"
