"""From a structure and what a run did to it to a flowchart, as plain data.

Record layer. This is the one place where it is decided what is drawn as taken: exactly the
transitions the overlay counted. Branches of a fan-out are drawn once, with counts beside the
edges; a decider that ran once is told as one subject's path is. Whatever has a `Structure` and an
`Overlay` is drawn by this code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._text import counted, show
from runbook_nb._view import (
    Badge,
    Cell,
    Data,
    Graph,
    GraphEdge,
    GraphGroup,
    GraphNode,
    Role,
    Run,
    verdict_role,
)
from runbook_nb.record.beside import (
    MAX_CONDITIONS,
    Lines,
    condition_line,
    count_line,
    decision_lines,
    declared_lines,
    selection_lines,
    taken_lines,
)
from runbook_nb.record.causes import Declared, declared_ways
from runbook_nb.record.order import RulesOf, judging_rules, shown_order
from runbook_nb.record.overlay import Overlay, overlay_along, template_path
from runbook_nb.record.phrases import COUNTED, Teller, joined, state_words
from runbook_nb.record.redact import Redactor
from runbook_nb.record.slots import served_subject
from runbook_nb.record.structure import Structure, StructureEdge, StructureNode
from runbook_nb.rules.decision import Decision

if TYPE_CHECKING:
    from runbook_nb.record.log import FanOut
    from runbook_nb.record.walk import Walk


def structure_graph(structure: Structure, rules: Mapping[str, Any] | None = None) -> Graph:
    """Draw what could happen.

    Parameters
    ----------
    structure : Structure
        The graph of a procedure.
    rules : mapping, optional
        Decider key -> its rule set, where that is known before a run.

    Returns
    -------
    Graph
        With every node and edge ``declared``.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> chart = flow_chart("tiny", print, id="a").add_function("B", print, id="b").build()
    >>> [(edge.source, edge.target, edge.state) for edge in structure_graph(chart.structure).edges]
    [('a', 'b', 'declared')]
    """
    known = rules or {}

    def rules_of(node: StructureNode) -> Iterable[Any]:
        return (known[node.key],) if node.key in known else ()

    return _Drawer(structure, None, rules_of, Redactor(None)).graph()


def walk_graph(walk: Walk, overlay: Overlay) -> Graph:
    """Draw what happened on a walk, or on one subject's part of it.

    Parameters
    ----------
    walk : Walk
    overlay : Overlay
        Its counts.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> from runbook_nb.record.overlay import overlay_of
    >>> chart = flow_chart("tiny", lambda s: 1, id="a").add_function("B", id="b", fn=len).build()
    >>> walk = flow_chart("tiny", lambda s: 1, id="a").build().run_sync().walk
    >>> [node.state for node in walk_graph(walk, overlay_of(walk.log, walk.redactor)).nodes]
    ['ran']
    """
    within = walk.redactor.text(template_path(walk.only))
    text = walk.redactor.text
    decisions = {f"{within}{text(m.stage.key)}": m.decision for m in walk.own_decisions()}
    return _Drawer(
        walk.structure,
        overlay,
        partial(judging_rules, walk, overlay),
        walk.redactor,
        within=within,
        decisions=decisions,
    ).graph()


def steps_graph(structure: Structure, overlay: Overlay | None, pointer: str | None) -> Graph:
    """Draw the steps of a playbook, with what became of them or as they were declared.

    Parameters
    ----------
    structure : Structure
    overlay : Overlay or None
        None before a run.
    pointer : str or None
        Key of the current step, where that is known better than from the states of the steps.
    """
    drawer = _Drawer(structure, overlay, lambda node: (), Redactor(None))
    if pointer is not None:
        drawer.teller.pointer = pointer
    return drawer.graph()


def branch_graph(walk: Walk, chain: Sequence[tuple[FanOut, int, str]]) -> Graph:
    """Draw the whole chart, and of its fan-outs what one branch alone did.

    Parameters
    ----------
    walk : Walk
        Of a whole run.
    chain : sequence of (FanOut, int, str)
        The branch, behind the branches around it, as a spot's chain has them.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> look = flow_chart("look", lambda s: None, id="look").build()
    >>> walk = (flow_chart("c", lambda s: None, id="a")
    ...     .add_parallel_for_each("Each", id="each", items=lambda s: ["x", "y"], branch=look,
    ...                            max_branches=9, into="out").build().run_sync().walk)
    >>> drawn = branch_graph(walk, walk.spots.at(4).chain)
    >>> next(node.second for node in drawn.nodes if node.key == "each")
    (Data(value='x', unit=None, tone='plain'), ', 1 of 2')
    """
    redactor = walk.redactor
    text = redactor.text
    overlay = overlay_along(walk.log, redactor, walk.raw_overlay, chain)
    decisions = {text(made.stage.key): made.decision for made in walk.own_decisions()}
    said: dict[str, Cell] = {}
    for fan, index, before in chain:
        inside = template_path((fan, index, before))
        alone = walk.inside((fan, index, before))
        decisions |= {text(f"{inside}{m.stage.key}"): m.decision for m in alone.own_decisions()}
        name = served_subject(redactor, fan, index)
        called: Run = f"item {index}" if name is None else Data(value=name)
        said[text(inside[:-1])] = (called, f", {index + 1} of {len(fan)}")
    rules_of = partial(judging_rules, walk, overlay)
    drawn = _Drawer(walk.structure, overlay, rules_of, redactor, decisions=decisions).graph()
    nodes = (replace(n, second=said[n.key]) if n.key in said else n for n in drawn.nodes)
    return replace(drawn, nodes=tuple(nodes))


#: Steps of a playbook that may stand side by side.
MAX_ASIDE: Final = 6

#: What marks a watched step: done is the rule, stuck is to be seen.
_STEP_ROLES: Final[Mapping[str, Role]] = {"completed": "a", "stuck": "b"}

#: Edges that lead to one of several ways.
_CHOICES: Final = ("branch", "default")


class _Drawer:
    """Draws one structure with, or without, what happened to it."""

    def __init__(
        self,
        structure: Structure,
        overlay: Overlay | None,
        rules_of: RulesOf,
        redactor: Redactor,
        *,
        within: str = "",
        decisions: Mapping[str, Decision] | None = None,
    ) -> None:
        self.structure = structure
        self.overlay = overlay
        self.rules_of = rules_of
        self.redactor = redactor
        self.within = within
        self.decisions = decisions or {}
        self.teller = Teller(structure, overlay)
        self.frames = self.teller.frames
        self.kinds = {node.key: node.kind for node in structure.nodes}
        #: The frame each node is drawn in: of a chart, or of a fork with its branches.
        self.homes = {
            node.key: node.decider if self._is_child(node) else self.frames.get(node.key)
            for node in structure.nodes
        }

    def graph(self) -> Graph:
        head = self.within[:-1] or None
        order = shown_order(self.structure, self.rules_of, self.overlay, head)
        shown = [drawn.node for drawn in order]
        places = {node.key: place for place, node in enumerate(shown)}
        edges = [*self._declared_edges(places), *self._other_edges(places)]
        # A picture orders what leaves a node by the order of its edges.
        # What goes back stands on the right, where its way up crosses nothing.
        back = {edge.source for edge in edges if edge.back}
        edges.sort(key=lambda e: (places[e.source], e.target in back, places[e.target]))
        nodes = [self._node(node) for node in shown]
        for one in shown:
            hung = self._refused(one) if one.kind == "step" else self._gaps(one)
            for node, edge in hung:
                nodes.append(node)
                edges.append(edge)
        aside = len(shown) <= MAX_ASIDE and all(node.kind == "step" for node in shown)
        return Graph(
            nodes=tuple(nodes),
            edges=tuple(edges),
            groups=tuple(self._groups(nodes)),
            direction="LR" if aside else "TB",
        )

    def _is_child(self, node: StructureNode) -> bool:
        """Tell whether a node is one of those that run side by side in a fork."""
        return node.kind == "branch" and self.kinds.get(node.decider or "") in ("fork", "selector")

    def _groups(self, nodes: list[GraphNode]) -> Iterator[GraphGroup]:
        drawn = {node.key for node in nodes}
        heads = {self._home_of(node.key) for node in nodes} & drawn
        members: dict[str, list[str]] = {}
        for node in nodes:
            # The head of a frame stands in it, at the top.
            home = node.key if node.key in heads else self._home_of(node.key)
            if home in heads:
                members.setdefault(home or "", []).append(node.key)
        for key, inside in members.items():
            around = self.homes.get(key) or ""
            yield GraphGroup(
                key=key, members=tuple(inside), parent=around if around in members else ""
            )

    def _home_of(self, key: str) -> str | None:
        head, mark, _ = key.partition("~")  # a gap lies in the frame of its fan-out
        return head if mark and self.kinds.get(head) == "fan_out" else self.homes.get(key)

    # -- nodes -----------------------------------------------------------------------------

    def _step(self, node: StructureNode) -> GraphNode:
        """Draw a watched step, with the number it has in its playbook."""
        place = node.detail.get("place")
        state = self.teller.state(node)
        role: Role | None = None
        if self.overlay is None and node.detail.get("optional"):
            state = "not_reached"  # as it stays where nobody comes to it
        if self.overlay is not None:
            role = _STEP_ROLES.get(self.overlay.step(node.key).status)
        return GraphNode(
            key=node.key,
            title=Data(value=node.name) if place is None else (str(place), Data(value=node.name)),
            second=self.teller.step_mark(node),
            kind="step",
            state=state,
            role=role,
            phase=str(node.detail.get("phase") or ""),
        )

    def _refused(self, node: StructureNode) -> Iterator[tuple[GraphNode, GraphEdge]]:
        """Hang the calls that were refused in a step on it, the most frequent tools named."""
        times: Counter[str] = Counter()
        if self.overlay is not None:
            for (tool, _, _), number in self.overlay.step(node.key).refused.items():
                times[tool] += number
        if not times:
            return
        named = sorted(times.items(), key=lambda pair: -pair[1])
        lines: list[Cell] = [(str(number), Data(value=tool)) for tool, number in named[:2]]
        more = sum(number for _, number in named[1:])
        if len(named) > 2:
            lines[1] = f"{more} of other tools"
        key = f"{node.key}~refused"
        yield (
            GraphNode(
                key=key,
                title=Badge(word="refused", role="refused", count=times.total()),
                second=lines[0],
                third=lines[1] if len(lines) > 1 else "",
                kind="note",
            ),
            GraphEdge(source=node.key, target=key, state="gap"),
        )

    def _node(self, node: StructureNode) -> GraphNode:
        if node.kind == "step":
            return self._step(node)
        state = self.teller.state(node)
        title: Cell = Data(value=node.name)
        named: Cell = ""
        kind: Any = node.kind
        role: Role | None = None
        if node.kind == "branch":
            kind = self.teller.form(node)
            word = node.branch or ""
            named = Data(value=word) if node.name.casefold() != word.casefold() else ""
            if not self._is_child(node):
                kind, role = "branch", self.roles.get(node.key)
                title, named = Badge(word=show(word), role=role or "plain"), (named and title)
        elif kind == "fan_out" and state == "declared" and _is_unknown(node):
            kind = "folded"  # its chart is not known before a run
        return GraphNode(
            key=node.key,
            title=title,
            second=self._second(node, state, named),
            third=self.teller.tags(node),
            kind=kind,
            state=state,
            role=role,
        )

    @cached_property
    def roles(self) -> dict[str, Role]:
        """The roles of verdicts: of the branches of deciders alone."""
        found: dict[str, Role] = {}
        for decider in self.structure.nodes:
            if decider.kind == "decider":
                branches = self.structure.branches_of(decider.key)
                order = tuple(n.branch or "" for n in branches)
                found.update((n.key, verdict_role(n.branch or "", order)) for n in branches)
        return found

    def _second(self, node: StructureNode, state: str, named: Cell) -> Cell:
        """Say what stands under a name."""
        kind = self._fan_out_words(node) if node.kind == "fan_out" else self.teller.marked(node)
        if state in ("not_taken", "not_reached"):
            left = "not selected" if state == "not_taken" and self._is_child(node) else ""
            return joined([kind, left or state_words(state)])
        phrases = [named, kind, *self.teller.more(node, listed=False)]
        if self.overlay is not None:
            visits, failed = self.teller.visits(node), self.overlay.failed[node.key]
            if state == "failed":
                phrases.append("failed")
            elif failed:
                phrases.append(f"{failed} of {visits} failed")
            counts = self.teller.form(node) in COUNTED
            if not counts and visits > self._expected(node):
                phrases.insert(2 if kind else 1, f"ran {visits} times")
        return joined(phrases)

    def _expected(self, node: StructureNode) -> int:
        """Count the visits that need no word: one, or one per branch of the fan-out around."""
        fan = self.teller.fan_out_around(node.key)
        spread = self.overlay.fan_outs.get(fan) if self.overlay is not None and fan else None
        if self.overlay is not None and self._is_child(node):
            return max(self.overlay.visits(node.decider or ""), 1)
        return max(spread.begun, 1) if spread is not None else 1

    def _fan_out_words(self, node: StructureNode) -> str:
        spread = None if self.overlay is None else self.overlay.fan_outs.get(node.key)
        if spread is None or self.overlay is None:
            if _is_unknown(node):
                return "one chart per item, built when run"
            return self.teller.fan_out(node)
        if not spread.items:
            return "fan-out, 0 subjects"
        words = [f"fan-out, {spread.ok} of {spread.items} done"]
        if self.overlay.runs[node.key] > 1:
            words[0] += f" over {self.overlay.runs[node.key]} runs"
        if spread.waiting:
            words.append(f"{spread.waiting} wait{'s' * (spread.waiting == 1)} for an answer")
        if spread.begun > 1:
            words.append("drawn once")
        return ", ".join(words)

    # -- edges -----------------------------------------------------------------------------

    def _declared_edges(self, places: Mapping[str, int]) -> Iterator[GraphEdge]:
        for edge in self.structure.edges:
            if edge.source in places and edge.target in places:
                pair, choice = (edge.source, edge.target), edge.kind in _CHOICES
                yield GraphEdge(
                    source=edge.source,
                    target=edge.target,
                    state=self._taken(*pair),
                    role=self.roles.get(edge.target) if choice else None,
                    lines=self._lines(edge, choice=choice),
                    default=edge.kind == "default",
                    back=edge.kind == "loop",
                    times=0 if self.overlay is None else self.overlay.edges[pair],
                )

    def _taken(self, source: str, target: str) -> Any:
        if self.overlay is None:
            return "declared"
        return "taken" if self.overlay.edges[source, target] else "not_taken"

    def _other_edges(self, places: Mapping[str, int]) -> Iterator[GraphEdge]:
        """Yield what was not declared but happened, and the ways around an empty fan-out."""
        overlay = self.overlay
        if overlay is None:
            return
        known = {(edge.source, edge.target) for edge in self.structure.edges}
        for (source, target), times in overlay.edges.items():
            if times and (source, target) not in known and source in places and target in places:
                went_back = overlay.back[source, target]
                lines = self._back_lines(went_back) if went_back else ()
                yield GraphEdge(
                    source=source,
                    target=target,
                    state="taken",
                    lines=lines,
                    back=bool(went_back),
                    times=times,
                )
        empty = {key for key, spread in overlay.fan_outs.items() if not spread.items}
        around = [
            (fan, edge.target)
            for edge in self.structure.edges
            for fan in self._empty_around(edge.source, empty)
            if not edge.target.startswith(f"{fan}/")
        ]
        for fan, target in dict.fromkeys(around):
            if fan in places and target in places and not overlay.edges[fan, target]:
                yield GraphEdge(source=fan, target=target, state="not_taken")

    def _empty_around(self, key: str, empty: set[str]) -> Iterator[str]:
        frame = self.frames.get(key) if empty else None
        while frame is not None:
            if frame in empty:
                yield frame
            frame = self.frames.get(frame)

    def _gaps(self, fan: StructureNode) -> Iterator[tuple[GraphNode, GraphEdge]]:
        """Hang what ended without an outcome on the head of its fan-out."""
        spread = None if self.overlay is None else self.overlay.fan_outs.get(fan.key)
        if spread is None:
            return
        if spread.failed:
            yield self._gap(fan, "failed", spread.failed, self._failed_in(fan))
        missed, past = spread.not_reached - spread.waiting, spread.past_cap
        if missed > 0:
            why = [f"past the cap of {fan.detail.get('cap')}"] if past else []
            if past < missed:
                why.append("the run ended first")
            if len(why) == 2:
                why = [f"{past} {why[0]}", f"{missed - past}: {why[1]}"]
            yield self._gap(fan, "not_reached", missed, why)

    def _gap(
        self, fan: StructureNode, state: Any, times: int, why: Iterable[Cell]
    ) -> tuple[GraphNode, GraphEdge]:
        key = f"{fan.key}~{state}"
        title = Badge(word=state_words(state), role=state)
        lines = (count_line(counted(times, "subject")), *map(condition_line, why))
        return (
            GraphNode(key=key, title=title, kind="gap", state=state, role=state),
            GraphEdge(source=fan.key, target=key, state="gap", role=state, lines=lines),
        )

    def _failed_in(self, fan: StructureNode) -> list[Cell]:
        assert self.overlay is not None  # noqa: S101 - asked only where something failed
        failed = self.overlay.failed
        names = [
            (node.name, failed[node.key])
            for node in self.structure.inside(fan.key)
            if failed[node.key]
        ]
        if len(names) == 1:
            return [("in", Data(value=names[0][0]))]
        told: list[Cell] = [(f"{n} in", Data(value=name)) for name, n in names[:MAX_CONDITIONS]]
        more = len(names) - MAX_CONDITIONS
        return [*told, f"+{more} more"] if more > 0 else told

    # -- what is said beside an edge -------------------------------------------------------

    def _lines(self, edge: StructureEdge, *, choice: bool) -> Lines:
        owner = self.structure.node(edge.source)
        if owner is None:
            return ()
        if choice:
            return self._decider_lines(owner, edge)
        if edge.kind == "loop":
            pair = edge.source, edge.target
            return self._back_lines(None if self.overlay is None else self.overlay.back[pair])
        if owner.kind != "selector":
            return ()
        # That a selector was left with nothing to do is said in it.
        return self._branch_lines(owner, edge) if edge.kind == "fork" else ()

    @staticmethod
    def _back_lines(times: int | None) -> Lines:
        return (count_line("back" if times is None else f"back {counted(times, 'time')}"),)

    def _decider_lines(self, decider: StructureNode, edge: StructureEdge) -> Lines:
        ways = self._ways(decider, edge)
        default = edge.kind == "default"
        if self.overlay is None:
            return declared_lines(ways, default=default)
        decision, visits = self.decisions.get(edge.source), self.overlay.visits(edge.source)
        if decision is not None and visits == 1:
            return decision_lines(decision, edge.label, ways, default=default)
        times = self.overlay.routes[edge.source, edge.label or ""]
        causes = self.overlay.causes.get((edge.source, edge.label or ""), [])
        if not times:
            told = declared_lines(ways, default=default)
        else:
            told = taken_lines(causes, default=default)
        return (*self._how_often(edge.source, times), *told)

    def _branch_lines(self, selector: StructureNode, edge: StructureEdge) -> Lines:
        ways = self._ways(selector, edge)
        if self.overlay is None:
            return declared_lines(ways, default=False)
        selection = self.overlay.selections.get(selector.key)
        visits = self.overlay.visits(selector.key)
        if selection is not None and visits == 1:
            return selection_lines(selection, edge.label, ways)
        times = self.overlay.chosen[edge.source, edge.label or ""]
        causes = self.overlay.causes.get((edge.source, edge.label or ""), [])
        told = taken_lines(causes, default=False) if times else declared_lines(ways, default=False)
        return (*self._how_often(edge.source, times), *told)

    def _ways(self, owner: StructureNode, edge: StructureEdge) -> list[Declared]:
        return [
            way
            for rules in self.rules_of(owner)
            for way in declared_ways(rules, edge.label, self.redactor)
        ]

    def _how_often(self, owner: str, times: int) -> Lines:
        """Count a way out of several visits; of a single one its line says enough."""
        inside = bool(self.within) or self.teller.fan_out_around(owner) is not None
        if self.overlay is not None and self.overlay.visits(owner) < 2 and not inside:
            return ()
        return (count_line(counted(times, "subject" if inside else "time")),)


def _is_unknown(node: StructureNode) -> bool:
    return node.detail.get("template") == "unknown"
