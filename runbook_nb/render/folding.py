"""Which nodes of a flowchart are drawn as one, so that a picture stays readable.

Folding works on the data of a chart and says what it did; the chart itself keeps every node, so a
list or a widget still has them all. Nothing that was taken is folded into something that was not,
but at the very end, and what failed, waits or stopped is the last to go. The same chart is always
folded the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from runbook_nb._text import counted, listed
from runbook_nb._view import (
    Badge,
    Cell,
    Data,
    Graph,
    GraphEdge,
    GraphNode,
    Run,
    State,
)
from runbook_nb.render.cells import runs_of
from runbook_nb.render.merging import (
    LEFT,
    NOTABLE,
    Frames,
    degrees,
    homes_of,
    merged_graph,
    plain_runs,
)

#: Branches of one stage before those alike are drawn as one node.
MAX_BRANCHES: Final = 6
#: Nodes a picture has at most.
MAX_NODES: Final = 60
#: Steps of a playbook drawn one by one.
MAX_STEPS: Final = 40
#: Frames that lie in one another before what is deeper is folded.
MAX_FRAMES: Final = 6


def fold(graph: Graph) -> tuple[Graph, tuple[str, ...]]:
    """Fold a chart that is too large to read, and say how.

    Parameters
    ----------
    graph : Graph
        The whole chart.

    Returns
    -------
    tuple
        The chart to draw, and one note for each way it was folded.

    Examples
    --------
    >>> nodes = tuple(GraphNode(key=str(n), title=str(n), state="ran") for n in range(70))
    >>> edges = tuple(GraphEdge(source=str(n), target=str(n + 1), state="taken") for n in range(69))
    >>> folded, notes = fold(Graph(nodes=nodes, edges=edges))
    >>> [node.title for node in folded.nodes], notes
    (['0', '68 stages', '69'], ('3 of 70 nodes drawn: 68 plain stages as 1 node',))
    """
    folder = _folded(graph)
    return folder.graph, folder.notes


def fold_with_keys(graph: Graph) -> tuple[Graph, tuple[str, ...], Mapping[str, str | None]]:
    """Fold a chart, and say as which node each of its nodes is drawn; None for one left out.

    Examples
    --------
    >>> fold_with_keys(Graph(nodes=(GraphNode(key="a", title="A"),)))[2]
    {'a': 'a'}
    """
    folder = _folded(graph)
    return folder.graph, folder.notes, folder.drawn_as


def _folded(graph: Graph) -> _Folder:
    folder = _Folder(graph)
    folder.fold_branches()
    folder.fold_phases()
    for step in _STEPS:
        step(folder)
    return folder


class _Folder:
    """A chart on its way to fewer nodes, with what was done to it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.total = len(graph.nodes)
        self.said: list[str] = []
        self.apart: list[str] = []
        #: Nodes that took in plain ones between them and others, and how many.
        self.absorbed: Counter[str] = Counter()
        #: Heads of folded frames.
        self.closed: list[str] = []
        #: Nodes that stand for a run: how many stages and charts each is of.
        self.runs: dict[str, tuple[int, int]] = {}
        #: What each node of the whole chart is drawn as; None where it is left out.
        self.drawn_as: dict[str, str | None] = {node.key: node.key for node in graph.nodes}
        #: How many nodes of the whole chart each drawn one stands for, where they are several.
        self.stands_for: Counter[str] = Counter()

    @property
    def too_large(self) -> bool:
        return len(self.graph.nodes) > MAX_NODES

    @property
    def notes(self) -> tuple[str, ...]:
        drawn, heads = {node.key for node in self.graph.nodes}, set(self.closed)
        runs = [self.runs[node.key] for node in self.graph.nodes if node.key in self.runs]
        stages, charts = (sum(counts) for counts in zip(*runs, strict=True)) if runs else (0, 0)
        told = [counted(stages, "plain stage")] if stages else []
        told += [f"{charts} of the charts"] if charts else []
        said = [f"{' and '.join(told)} as {counted(len(runs), 'node')}"] if told else []
        left_out = sum(n for key, n in self.absorbed.items() if key in drawn and key not in heads)
        if left_out:
            said.append(f"control flow only, {counted(left_out, 'plain node')} left out")
        said += self.said
        if not said:
            return tuple(self.apart)
        one = next((key for key in self.closed if key in drawn), None)
        alone = f'; one alone: flowchart().inside("{one}")' if one is not None else ""
        much = f"{len(drawn)} of {self.total} nodes drawn"
        return (*self.apart, f"{much}: {', '.join(said)}{alone}")

    def weight(self, key: str) -> int:
        """Count the nodes that one stands for."""
        return self.stands_for[key] or 1

    def merge(self, merged: Mapping[str, GraphNode], closed: Collection[str] = ()) -> None:
        """Put other nodes in the place of some, and remember how many they were.

        ``closed`` are the frames that are drawn no more.
        """
        gone = {key: node.key for key, node in merged.items() if key != node.key}
        for key, drawn in self.drawn_as.items():
            self.drawn_as[key] = gone.get(drawn, drawn) if drawn is not None else None
        sums: Counter[str] = Counter()
        for key, into in gone.items():
            sums[into] += self.weight(key)
        known = {node.key for node in self.graph.nodes}
        for into, times in sums.items():
            self.stands_for[into] = times + (self.weight(into) if into in known else 0)
        self.graph = merged_graph(self.graph, merged, closed)

    # -- branches side by side -------------------------------------------------------------

    def fold_branches(self) -> None:
        """Draw the branches of one stage that are alike as one, where it has many.

        Of a decider that is those it did not take, never its default; of a fork or selector all
        that came to the same, if there is no more to be seen of them.
        """
        kinds = {node.key: node.kind for node in self.graph.nodes}
        nodes = {node.key: node for node in self.graph.nodes}
        heads = {group.key for group in self.graph.groups}
        homes = homes_of(self.graph)
        choices: dict[str, list[GraphEdge]] = {}
        for edge in self.graph.edges:
            sides = kinds[edge.source] in ("fork", "selector")
            if homes.get(edge.target) == edge.source if sides else kinds[edge.target] == "branch":
                choices.setdefault(edge.source, []).append(edge)
        merged: dict[str, GraphNode] = {}
        for owner, edges in choices.items():
            if len(edges) <= MAX_BRANCHES:
                continue
            alike: dict[State, list[str]] = {}
            sides = kinds[owner] in ("fork", "selector")
            for edge in edges:
                target = nodes[edge.target]
                plain = target.key not in heads and target.state not in ("declared", *NOTABLE)
                if plain if sides else (edge.state == "not_taken" and not edge.default):
                    alike.setdefault(target.state if sides else "not_taken", []).append(target.key)
            for state, keys in alike.items():
                if len(keys) > 1:
                    words = f"{len(keys)} branches {_word(state, kinds[owner])}"
                    key = f"{owner}~{state}" if sides else f"{owner}~not_taken"
                    node = GraphNode(key=key, title=words, kind="folded", state=state)
                    merged.update(dict.fromkeys(keys, node))
                    self.apart.append(f"{words} drawn as 1 node")
        self.merge(merged)

    # -- steps of a playbook ---------------------------------------------------------------

    def fold_phases(self) -> None:
        """Draw the steps of each phase as one node where there are many.

        Of a playbook without phases, steps in a row that came to the same, but for the first and
        the last of all.
        """
        steps = [node for node in self.graph.nodes if node.kind == "step"]
        if len(steps) <= MAX_STEPS:
            return
        phased = any(node.phase for node in steps)
        notes: dict[str, GraphNode] = {}
        nodes = {node.key: node for node in self.graph.nodes}
        for edge in self.graph.edges:
            if nodes[edge.target].kind == "note":
                notes[edge.source] = nodes[edge.target]
        merged: dict[str, GraphNode] = {}
        folded = 0
        for run in _step_runs(steps, phased=phased):
            if len(run) < 2:
                continue
            node = _phase(run, notes)
            for one in run:
                merged[one.key] = node
                if one.key in notes:
                    merged[notes[one.key].key] = node
            folded += len(run)
        made = len({node.key for node in merged.values()})
        left = len(steps) - folded + made
        self.merge(merged)
        what = "phase" if phased else "run of like steps"
        self.apart.append(
            f"{len(steps)} steps are more than {MAX_STEPS}: drawn as {counted(left, 'node')}, "
            f"{counted(made, what, 'runs of like steps' if not phased else None)} as one each"
        )

    # -- charts ----------------------------------------------------------------------------

    def fold_deep(self) -> None:
        """Draw what lies deeper than frames can be told apart as one node."""
        inside = Frames(self.graph, _telling)
        self.fold_groups(
            [key for key, depth in inside.depth.items() if depth > MAX_FRAMES],
            f" deeper than {MAX_FRAMES} levels",
        )

    def fold_plain_charts(self) -> None:
        """Draw charts in which nothing was decided as one node each, until the rest fits."""
        self._fold_charts(least=0, most=1)

    def fold_charts(self) -> None:
        """Draw the other charts as one node each, until the rest fits."""
        self._fold_charts(least=2, most=4)

    def _fold_charts(self, *, least: int, most: int) -> None:
        if not self.too_large:
            return
        frames = Frames(self.graph, _telling)
        order = sorted(
            (key for key, rank in frames.rank.items() if least <= rank <= most),
            # Deep ones first, and of them the large ones; of equals those further down.
            key=lambda k: (frames.rank[k], -frames.depth[k], -frames.size[k], -frames.place[k]),
        )
        left, chosen, last = len(self.graph.nodes), [], None
        for key in order:
            alike = frames.rank[key], frames.depth[key], frames.size[key]
            if left <= MAX_NODES and alike != last:  # what is alike is drawn alike
                break
            left -= frames.close(key)
            chosen.append(key)
            last = alike
        self.fold_groups(chosen, "")

    def fold_groups(self, chosen: Iterable[str], why: str) -> None:
        """Draw each of these frames as its head alone."""
        keys = set(chosen)
        if not keys:
            return
        frames = Frames(self.graph, _telling)
        nodes = {node.key: node for node in self.graph.nodes}
        held: dict[str, list[GraphNode]] = {}
        closed: set[str] = set()
        for group in self.graph.groups:
            around = frames.outermost(group.key, keys)
            if around is not None:
                closed.add(group.key)
                members = (nodes[m] for m in group.members if m != around)
                held.setdefault(around, []).extend(members)
        times: Counter[str] = Counter()
        for edge in self.graph.edges:
            times[edge.target] += edge.times
        merged: dict[str, GraphNode] = {}
        for head, inside in held.items():
            node = self._closed(nodes[head], inside, times)
            merged.update(dict.fromkeys([head, *(n.key for n in inside)], node))
        self.merge(merged, closed)
        self.closed += held
        kinds = Counter(_FRAMED.get(nodes[head].kind, "chart") for head in held)
        words = listed(counted(number, kind) for kind, number in sorted(kinds.items()))
        self.said.append(f"{words}{why} folded")

    def _closed(
        self, head: GraphNode, inside: list[GraphNode], times: Mapping[str, int]
    ) -> GraphNode:
        """Say in the head of a frame what is no longer drawn."""
        said: list[Run] = []
        for node in inside:
            badge = next((run for run in runs_of(node.title) if isinstance(run, Badge)), None)
            if head.kind == "fan_out" and node.kind == "branch" and badge and times[node.key]:
                said += [",", Badge(word=badge.word, count=times[node.key])]
        states = Counter(node.state for node in inside if node.kind != "gap")
        said += [f", {states[s]} {_INSIDE[s]} inside" for s in NOTABLE if states[s]]
        number = sum(self.weight(node.key) for node in inside if node.kind != "gap")
        said.append(f", {counted(number, 'node')} folded")
        before = runs_of(head.second) if head.second else ()
        if not before and isinstance(said[0], str):
            said[0] = said[0].lstrip(", ")
        waits = head.state == "ran" and states["paused"] > 0
        return replace(head, second=(*before, *said), state="paused" if waits else head.state)

    # -- stages ----------------------------------------------------------------------------

    def fold_runs(self) -> None:
        """Draw each run of plain stages, or of folded charts, as one node that counts them."""
        if not self.too_large:
            return
        merged: dict[str, GraphNode] = {}
        for run in plain_runs(self.graph):
            if len(run) < 2:
                continue
            number = mounts = 0
            for member in run:
                if member.key in self.runs:
                    stages, charts = self.runs[member.key]
                elif member.kind in ("stage", "folded"):
                    stages, charts = self.weight(member.key), 0
                else:
                    stages, charts = 0, 1
                number, mounts = number + stages, mounts + charts
            words = [counted(number, "stage")] if number else []
            words += [counted(mounts, "chart")] if mounts else []
            node = GraphNode(
                key=f"{run[0].key}~run",
                title=" and ".join(words),
                kind="folded",
                state=run[0].state,
            )
            merged.update({member.key: node for member in run})
            self.runs[node.key] = number, mounts
        self.merge(merged)

    def keep_control_flow(self) -> None:
        """Leave out plain stages between other nodes: each joins the node it alone follows."""
        if not self.too_large:
            return
        entering, _ = degrees(self.graph)
        before = {edge.target: edge.source for edge in self.graph.edges}
        nodes = {node.key: node for node in self.graph.nodes}
        homes = homes_of(self.graph)
        heads = {group.key for group in self.graph.groups}
        merged: dict[str, GraphNode] = {}
        for node in self.graph.nodes:
            source = before.get(node.key, "")
            plain = node.kind in _PLAIN and node.state not in NOTABLE and node.key not in heads
            if not plain or entering[node.key] != 1 or node.key.endswith("~not_taken"):
                continue
            home = merged.get(source, nodes[source])
            # What became of a stage must not be lost in a node of another fate.
            if home.state == node.state and homes.get(home.key) == homes.get(node.key):
                merged[node.key] = home
        for key, home in merged.items():
            self.absorbed[home.key] += self.weight(key)
        self.merge(merged)

    def leave_untaken(self) -> None:
        """Leave out what the deciders did not take."""
        gone = {node.key for node in self.graph.nodes if node.state == "not_taken"}
        if not self.too_large or not gone:
            return
        number = sum(map(self.weight, gone))
        for key, drawn in self.drawn_as.items():
            self.drawn_as[key] = None if drawn in gone else drawn
        nodes = tuple(node for node in self.graph.nodes if node.key not in gone)
        edges = (e for e in self.graph.edges if e.source not in gone and e.target not in gone)
        groups = (
            replace(group, members=tuple(m for m in group.members if m not in gone))
            for group in self.graph.groups
            if group.key not in gone
        )
        self.graph = replace(self.graph, nodes=nodes, edges=tuple(edges), groups=tuple(groups))
        self.said.append(f"{counted(number, 'node')} not taken left out")

    def cut(self) -> None:
        """Keep the nodes a reader looks for first, and draw all others as one."""
        if not self.too_large:
            return
        order = sorted(enumerate(self.graph.nodes), key=lambda pair: (_rank(pair[1]), pair[0]))
        left = [node for _, node in order[MAX_NODES - 1 :]]
        number = sum(self.weight(node.key) for node in left)
        rest = GraphNode(key="~rest", title=f"{number} more nodes", kind="folded")
        self.merge({node.key: rest for node in left})
        self.said.append(f"{number} as 1 node")


def _step_runs(steps: Sequence[GraphNode], *, phased: bool) -> list[list[GraphNode]]:
    """Part steps into those of one phase, or into those in a row that came to the same."""
    last = len(steps) - 1
    runs: list[list[GraphNode]] = []
    before: object = None
    for place, node in enumerate(steps):
        kind: object = node.phase or node.key
        if not phased:
            here = any(isinstance(r, Badge) and r.role == "current" for r in runs_of(node.second))
            alone = place in (0, last) or here or node.state in NOTABLE
            kind = node.key if alone else (node.state, node.role)
        if kind == before:
            runs[-1].append(node)
        else:
            runs.append([node])
        before = kind
    return runs


def _phase(run: Sequence[GraphNode], notes: Mapping[str, GraphNode]) -> GraphNode:
    """Draw steps as one node: what they are, how many, what became of them."""
    first, last = run[0], run[-1]
    states: Counter[str] = Counter()
    for node in run:
        word = next((r.word for r in runs_of(node.second) if isinstance(r, Badge)), "")
        states[word.partition(",")[0]] += 1
    told = [f"{times} {word}" for word, times in states.items() if word]
    hung = [notes[node.key] for node in run if node.key in notes]
    refused = sum(r.count or 0 for n in hung for r in runs_of(n.title) if isinstance(r, Badge))
    told += [f"{refused} refused"] if refused else []
    loud = next((n for n in run if n.role == "b"), None)
    loud = loud or next((n for n in run if n.state in NOTABLE), None)
    begun = next((n for n in run if n.state not in LEFT), first)
    shown = loud or (begun if all(n.state == first.state for n in run) else None)
    state = shown.state if shown is not None else _mixed(run)
    title: Cell = Data(value=first.phase)
    if not first.phase:
        title = (*runs_of(first.title)[:1], "to", *runs_of(last.title)[:1])
    else:
        title = (Data(value=first.phase), f", {counted(len(run), 'step')}")
    return GraphNode(
        key=f"{first.key}~phase",
        title=title if first.phase else f"{counted(len(run), 'step')}",
        second=", ".join(told),
        kind="step",
        state=state,
        role=None if shown is None else shown.role,
    )


def _mixed(run: Sequence[GraphNode]) -> State:
    """Say what became of steps of which some were done and others not."""
    return "current" if any(node.state not in LEFT for node in run) else "not_reached"


#: What is tried until a chart fits, from what loses least.
_STEPS: Final = (
    _Folder.fold_deep,
    _Folder.fold_runs,
    _Folder.fold_plain_charts,
    _Folder.keep_control_flow,
    _Folder.fold_charts,
    _Folder.fold_runs,
    _Folder.keep_control_flow,
    _Folder.leave_untaken,
    _Folder.fold_runs,
    _Folder.cut,
)
#: Kinds of stages that no path hangs on.
_PLAIN: Final = ("stage", "folded", "streaming", "pausable")
_INSIDE: Final = {
    "failed": "failed",
    "paused": "waiting",
    "stopped": "stopped",
    "current": "in progress",
}
#: What is said to be folded, where that is no chart.
_FRAMED: Final = {"fork": "fork", "selector": "selector", "fan_out": "fan-out"}


def _word(state: State, owner: str) -> str:
    if state == "not_taken":
        return "not selected" if owner == "selector" else "not taken"
    return state.replace("_", " ")


def _rank(node: GraphNode) -> int:
    """Say how soon a reader looks for a node."""
    if node.state in NOTABLE:
        return 0
    return 2 if node.state in LEFT else 1


def _telling(node: GraphNode, head: str) -> int:
    """Say how much a reader loses when a node goes: from one nobody came to, to one that failed."""
    if node.state in NOTABLE:
        return 4
    if node.state in LEFT:
        return 0
    deciding = node.kind in ("decider", "selector", "fan_out") or node.role is not None
    return 2 if deciding and (node.key != head or node.kind == "fan_out") else 1
