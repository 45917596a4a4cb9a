"""From a structure and what a run did to it to a flowchart, as plain data.

Record layer. This is the one place where it is decided what is drawn as taken: exactly the
transitions the overlay counted. Branches of a fan-out are drawn once, with counts beside the
edges; a decider that ran once is told as one subject's path is. Whatever has a `Structure` and an
`Overlay` is drawn by this code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._text import counted, show
from runbook_nb._view import (
    Badge,
    Cell,
    Data,
    Graph,
    GraphEdge,
    GraphGroup,
    GraphLine,
    GraphNode,
    Role,
    verdict_role,
)
from runbook_nb.record.overlay import (
    Cause,
    Declared,
    Overlay,
    declared_ways,
    template_path,
    unread_condition,
)
from runbook_nb.record.redact import Redactor
from runbook_nb.record.structure import Structure, StructureEdge, StructureNode
from runbook_nb.rules.decision import Condition, Decision
from runbook_nb.rules.wording import condition_text, limit_text, op_words, value_text

if TYPE_CHECKING:
    from runbook_nb.record.walk import Walk

#: Conditions told beside an edge before the rest is only counted.
MAX_CONDITIONS: Final = 2

#: Gives the rule sets of a decider.
RulesOf = Callable[[StructureNode], Iterable[Any]]

Lines = tuple[GraphLine, ...]


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
        lambda node: walk.rules_at(node.id),
        walk.redactor,
        within=within,
        decisions=decisions,
    ).graph()


def drawn_order(structure: Structure, rules_of: RulesOf) -> Iterator[StructureNode]:
    """Yield the nodes as declared, but a decider's branches in the order its rules name them.

    Branches no rule names come behind those; the default branch comes last.
    """
    defaults = {edge.target for edge in structure.edges if edge.kind == "default"}
    deciders = {node.key for node in structure.nodes if node.kind == "decider"}
    for node in structure.nodes:
        if node.decider not in deciders:
            yield node
        if node.key in deciders:
            first: dict[str | None, int] = {}
            for rules in rules_of(node):
                for rule in rules.rules:
                    first.setdefault(rule.then, len(first))
            branches = list(structure.branches_of(node.key))
            branches.sort(key=lambda n: (n.key in defaults, first.get(n.branch, len(first))))
            yield from branches


@dataclass(slots=True)
class _Drawer:
    """Draws one structure with, or without, what happened to it."""

    structure: Structure
    overlay: Overlay | None
    rules_of: RulesOf
    redactor: Redactor
    within: str = ""
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    frames: dict[str, str] = field(default_factory=dict)
    roles: dict[str, Role] = field(default_factory=dict)

    def graph(self) -> Graph:
        self.frames = self.structure.frames()
        self.roles = dict(self._roles())
        shown = [node for node in drawn_order(self.structure, self.rules_of) if self._drawn(node)]
        nodes = [self._node(node) for node in shown]
        keys = {node.key: place for place, node in enumerate(nodes)}
        edges = [*self._declared_edges(keys), *self._other_edges(keys)]
        # A picture orders what leaves a node by the order of its edges.
        edges.sort(key=lambda edge: (keys[edge.source], keys[edge.target]))
        for fan in shown:
            for node, edge in self._gaps(fan):
                nodes.append(node)
                edges.append(edge)
        return Graph(nodes=tuple(nodes), edges=tuple(edges), groups=tuple(self._groups(nodes)))

    def _drawn(self, node: StructureNode) -> bool:
        if not node.key.startswith(self.within):
            return False
        frame = self.frames.get(node.key)
        while frame is not None and frame.startswith(self.within):
            # A fan-out over nothing has no branches to show.
            if self.overlay is not None and self.overlay.fan_outs.get(frame, (1,))[0] == 0:
                return False
            frame = self.frames.get(frame)
        return True

    def _roles(self) -> Iterator[tuple[str, Role]]:
        for decider in self.structure.nodes:
            branches = self.structure.branches_of(decider.key)
            order = tuple(n.branch or "" for n in branches)
            for node in branches:
                yield node.key, verdict_role(node.branch or "", order)

    def _groups(self, nodes: list[GraphNode]) -> Iterator[GraphGroup]:
        heads = {self._frame_of(node.key) for node in nodes}
        drawn = {node.key for node in nodes}
        members: dict[str, list[str]] = {}
        for node in nodes:
            # The head of a fan-out stands in its own frame, at the top.
            home = node.key if node.key in heads else self._frame_of(node.key)
            if home is not None and home in drawn:
                members.setdefault(home, []).append(node.key)
        for key, inside in members.items():
            around = self.frames.get(key, "")
            yield GraphGroup(
                key=key, members=tuple(inside), parent=around if around in members else ""
            )

    def _frame_of(self, key: str) -> str | None:
        head, mark, _ = key.partition("~")  # a gap lies in the frame of its fan-out
        return head if mark else self.frames.get(key)

    # -- nodes -----------------------------------------------------------------------------

    def _node(self, node: StructureNode) -> GraphNode:
        state = self._state(node)
        role = self.roles.get(node.key)
        title: Cell = Data(value=node.name)
        second: Cell = ""
        if node.kind == "branch" and node.branch is not None and role is not None:
            title = Badge(word=show(node.branch), role=role)
            if node.name.casefold() != node.branch.casefold():
                second = Data(value=node.name)
        elif node.kind == "fan_out":
            second = self._fan_out_words(node)
        if state in ("not_taken", "not_reached", "failed"):
            second = state.replace("_", " ")
        elif self.overlay is not None and self.overlay.failed[node.key]:
            second = f"{self.overlay.failed[node.key]} of {self.overlay.runs[node.key]} failed"
        kind: Any = node.kind
        if kind == "fan_out" and state == "declared" and node.detail.get("template") == "unknown":
            kind = "folded"  # its chart is not known before a run
        return GraphNode(
            key=node.key, title=title, second=second, kind=kind, state=state, role=role
        )

    def _state(self, node: StructureNode) -> Any:
        if self.overlay is None:
            return "declared"
        runs = self.overlay.runs[node.key]
        if runs:
            return "failed" if self.overlay.failed[node.key] == runs else "ran"
        return self.overlay.state_of_untaken(node)

    def _fan_out_words(self, node: StructureNode) -> str:
        if self.overlay is None or node.key not in self.overlay.fan_outs:
            if node.detail.get("template") == "unknown":
                return "one chart per item, built when run"
            cap = node.detail.get("cap")
            return "one branch per item" if cap is None else f"one branch per item, at most {cap}"
        items, ok, bad, _, _ = self.overlay.fan_outs[node.key]
        if not items:
            return "fan-out, 0 subjects"
        words = [f"fan-out, {ok} of {items} done"]
        if self.overlay.runs[node.key] > 1:
            words[0] += f" over {self.overlay.runs[node.key]} runs"
        if ok + bad > 1:
            words.append("drawn once")
        return ", ".join(words)

    # -- edges -----------------------------------------------------------------------------

    def _declared_edges(self, keys: Mapping[str, int]) -> Iterator[GraphEdge]:
        for edge in self.structure.edges:
            if edge.source in keys and edge.target in keys:
                yield GraphEdge(
                    source=edge.source,
                    target=edge.target,
                    state=self._taken(edge.source, edge.target),
                    role=self.roles.get(edge.target) if edge.kind in _CHOICES else None,
                    lines=self._lines(edge) if edge.kind in _CHOICES else (),
                    default=edge.kind == "default",
                )

    def _taken(self, source: str, target: str) -> Any:
        if self.overlay is None:
            return "declared"
        return "taken" if self.overlay.edges[source, target] else "not_taken"

    def _other_edges(self, keys: Mapping[str, int]) -> Iterator[GraphEdge]:
        """Yield what was not declared but happened, and the ways around an empty fan-out."""
        overlay = self.overlay
        if overlay is None:
            return
        known = {(edge.source, edge.target) for edge in self.structure.edges}
        for (source, target), times in overlay.edges.items():
            if times and (source, target) not in known and source in keys and target in keys:
                yield GraphEdge(source=source, target=target, state="taken")
        for fan, sums in overlay.fan_outs.items():
            if sums[0] == 0 and fan in keys:
                leaving = (
                    e.target
                    for e in self.structure.edges
                    if e.source.startswith(f"{fan}/") and not e.target.startswith(f"{fan}/")
                )
                for target in dict.fromkeys(leaving):
                    if target in keys and not overlay.edges[fan, target]:
                        yield GraphEdge(source=fan, target=target, state="not_taken")

    def _gaps(self, fan: StructureNode) -> Iterator[tuple[GraphNode, GraphEdge]]:
        """Hang what ended without an outcome on the head of its fan-out."""
        if self.overlay is None or fan.key not in self.overlay.fan_outs:
            return
        _, _, bad, missed, past = self.overlay.fan_outs[fan.key]
        if bad:
            yield self._gap(fan, "failed", bad, self._failed_in(fan))
        if missed:
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
        title = Badge(word=state.replace("_", " "), role=state)
        lines = (_count(counted(times, "subject")), *(_condition(text) for text in why))
        return (
            GraphNode(key=key, title=title, kind="gap", state=state, role=state),
            GraphEdge(source=fan.key, target=key, state="gap", role=state, lines=lines),
        )

    def _failed_in(self, fan: StructureNode) -> list[Cell]:
        assert self.overlay is not None  # noqa: S101 - asked only where something failed
        names = [
            (node.name, self.overlay.failed[node.key])
            for node in self.structure.nodes
            if self.frames.get(node.key) == fan.key and self.overlay.failed[node.key]
        ]
        if len(names) == 1:
            return [("in", Data(value=names[0][0]))]
        told: list[Cell] = [(f"{n} in", Data(value=name)) for name, n in names[:MAX_CONDITIONS]]
        more = len(names) - MAX_CONDITIONS
        return [*told, f"+{more} more"] if more > 0 else told

    # -- what is said beside an edge ---------------------------------------------------------

    def _lines(self, edge: StructureEdge) -> Lines:
        decider = self.structure.node(edge.source)
        assert decider is not None  # noqa: S101 - an edge joins nodes of its own structure
        ways = [
            way
            for rules in self.rules_of(decider)
            for way in declared_ways(rules, edge.label, self.redactor)
        ]
        default = edge.kind == "default"
        if self.overlay is None:
            return _declared_lines(ways, default=default)
        decision = self.decisions.get(edge.source)
        if decision is not None and self.overlay.runs[edge.source] == 1:
            return _one_decision(decision, edge.label, ways, default=default)
        times = self.overlay.routes[edge.source, edge.label or ""]
        causes = self.overlay.causes.get((edge.source, edge.label or ""), [])
        noun = "subject" if self.within or edge.source in self.frames else "time"
        head = _count(counted(times, noun))
        if not times:
            return (head, *_declared_lines(ways, default=default))
        return (head, *_taken_lines(causes, default=default))


_CHOICES: Final = ("branch", "default")
#: No rule was true: the rules have a default, or the decider has one of its own.
_FELL: Final = ("default", "none")


def _count(text: str) -> GraphLine:
    return GraphLine(kind="count", text=text)


def _condition(text: Cell) -> GraphLine:
    return GraphLine(kind="condition", text=text)


def _label(text: str | None) -> Lines:
    return (GraphLine(kind="label", text=Data(value=text)),) if text else ()


def _conditions(parts: Iterable[str]) -> Lines:
    texts = list(parts)
    more = len(texts) - MAX_CONDITIONS
    shown = [_condition(Data(value=text)) for text in texts[:MAX_CONDITIONS]]
    return (*shown, _condition(f"+{more} more")) if more > 0 else tuple(shown)


def _declared_lines(ways: list[Declared], *, default: bool) -> Lines:
    """Say what leads down an edge nobody took: the first rule to it, or that it is the default."""
    ruled = [way for way in ways if way.conditions]
    falling = next((way for way in ways if way.word == "default"), None)
    words = () if not default else (_condition("default"),)
    if not ruled:
        return (*words, *_label(falling.label if falling is not None else None))
    if len(ruled) > 1:
        words = (_condition(_rule_words([way.word for way in ruled])), *words)
    return (*words, *_conditions(ruled[0].conditions), *_label(ruled[0].label))


def _taken_lines(causes: list[Cause], *, default: bool) -> Lines:
    """Say why an edge was taken, for however many took it."""
    fell = default and any(cause.path.via in _FELL for cause in causes)
    if len(causes) == 1:
        parts = _cause_parts(causes[0])
        if fell:
            return (_condition("default: no rule fired"), *_label(causes[0].label))
        also = (_condition("also the default"),) if default else ()
        return (*_conditions(parts), *also, *_label(causes[0].label))
    words = ["default" if cause.path.via in _FELL else cause.word for cause in causes]
    if default and not fell:
        words.append("also the default")
    if not causes:
        return (_condition("default"),) if default else ()
    parts = tuple(p for c in causes if c.path.via not in _FELL for p in _cause_parts(c))
    labels = {cause.label for cause in causes}
    common = labels.pop() if len(labels) == 1 else None
    return (_condition(_rule_words(words)), *_conditions(parts), *_label(common))


def _rule_words(words: Iterable[str]) -> str:
    """Join the words for several causes: ``rules 2, 5``, ``rule 1, unreadable``."""
    told = list(dict.fromkeys(words))
    numbers = [word.removeprefix("rule ") for word in told if word.startswith("rule ")]
    others = [word for word in told if not word.startswith("rule ")]
    ruled = [f"rule{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"] if numbers else []
    return ", ".join([*ruled, *others])


def _cause_parts(cause: Cause) -> tuple[str, ...]:
    return cause.parts if cause.unread is None else (_unread_text(cause.unread),)


def _unread_text(condition: Condition) -> str:
    """Say in few words what could not be read: ``age_days missing, > 7``."""
    if condition.status not in ("missing", "null", "nan"):
        return condition.unreadable_text
    limit = limit_text(condition.op, condition.threshold, condition.unit)
    words = op_words(condition.op, condition.threshold)
    name = {"nan": "NaN"}.get(condition.status, condition.status)
    return f"{condition.key} {name}, {words} {limit}"


def _one_decision(
    decision: Decision, branch: str | None, ways: list[Declared], *, default: bool
) -> Lines:
    """Say what one decision has to do with an edge: why it was taken, or why not."""
    if decision.branch == branch or (decision.branch is None and default):
        return _why_taken(decision, default=default)
    ruled = [way for way in ways if way.rule is not None]
    if not ruled:
        return (_count("default: not needed" if default else "not needed"), *_label_of(ways))
    way = ruled[0]
    tried = {t.position: t for t in decision.path.tried if not t.outside}
    found = tried.get(way.rule if way.rule is not None else -1)
    more = (_condition(f"+{counted(len(ruled) - 1, 'more rule')}"),) if len(ruled) > 1 else ()
    also = (_condition("also the default"),) if default else ()
    if found is None:
        parts = _conditions(way.conditions)
        return (_count(f"{way.word}: not tried"), *parts, *more, *also, *_label(way.label))
    judged = decision.conditions_of(found)
    if found.result is None:
        unread = next((c for c in judged if c.result is None), None)
        text = decision.text_of(found) if unread is None else _unread_text(unread)
        return (_count(f"{way.word}: unreadable"), *_conditions([text]), *more, *also)
    failed = next((c for c in judged if c.result is False), None)
    told = [decision.text_of(found)] if failed is None else _unmet(failed)
    return (_count(f"{way.word}: no"), *_conditions(told), *more, *also)


def _why_taken(decision: Decision, *, default: bool) -> Lines:
    label = _label(decision.label)
    deciding = decision.deciding
    if deciding is None:
        return (_count("default: no rule fired"), *label)
    also = (_condition("also the default"),) if default else ()
    if decision.via == "outside":
        return (_count("outside the rules"), *_conditions([decision.cause]), *also, *label)
    unread = unread_condition(decision)
    if decision.via == "unreadable":
        text = decision.cause if unread is None else _unread_text(unread)
        return (_count("unreadable"), *_conditions([text]), *also, *label)
    met = [condition.text for condition in decision.conditions_of(deciding)]
    number = (decision.rule_index or 0) + 1
    parts = _conditions(met or [decision.cause])
    return (_count(f"rule {number}: yes"), *parts, *also, *label)


def _unmet(condition: Condition) -> list[str]:
    declared = condition_text(condition.key, condition.op, condition.threshold, condition.unit)
    return [declared, f"was {value_text(condition.actual)}"]


def _label_of(ways: list[Declared]) -> Lines:
    return _label(next((way.label for way in ways if way.label), None))
