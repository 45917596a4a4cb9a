"""What a chart does, in words, step by step.

Chart layer. The words are made from a structure alone, so they say what the picture shows: every
branch with its meaning, the charts inside charts, what runs at once, what goes back, what may
wait. The text is for a model's tool description or a reader. At most `MAX_STEPS` steps are told,
those further out first, and what is left out is said where it is missing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._text import clip, counted, visible

if TYPE_CHECKING:
    from runbook_nb.chart.model import Chart
    from runbook_nb.record.structure import Structure, StructureNode

#: Steps that are told; a branch counts as one.
MAX_STEPS: Final = 200

#: Longest name and longest description that are told, in characters.
MAX_NAME: Final = 120
MAX_WORDS: Final = 500

#: How a text of the author's is put into the words around it.
Say = Callable[[str], str]


def describe_chart(chart: Chart) -> str:
    """Describe a chart.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> chart = (flow_chart("restart", print, id="look", description="Look at the node.")
    ...     .add_function("Report", print, id="report").build())
    >>> print(describe_chart(chart))
    restart: Look at the node.
    1. restart
    2. Report
    """
    return describe_structure(chart.structure, chart.description)


def describe_structure(
    structure: Structure, description: str | None = None, *, say: Say | None = None
) -> str:
    """Describe the graph of a procedure.

    Parameters
    ----------
    structure : Structure
        Its graph.
    description : str, optional
        What it is for.
    say : callable, optional
        Gives a name or a description of the author's as it may stand in the text; by default as
        it is, less what would move a cursor or turn the reading direction.

    Examples
    --------
    >>> from runbook_nb.record.structure import Structure, StructureNode
    >>> ask = StructureNode(key="ask", id="ask", name="Ask", kind="pausable")
    >>> print(describe_structure(Structure(name="gate", nodes=(ask,)), "Ask before it is done."))
    gate: Ask before it is done.
    1. Ask (may wait for an answer)
    """
    return "\n".join(_Telling(structure, description, say or _as_it_is).lines())


def _as_it_is(text: str) -> str:
    return text


class _Telling:
    """One description: the structure, and which of its nodes are told."""

    def __init__(self, structure: Structure, description: str | None, say: Say) -> None:
        self._structure = structure
        self._description = description
        self._say = say
        self._told = self._told_keys()
        self._branch_goes, self._chart_goes = self._back_edges()
        self._defaults = {edge.target for edge in structure.edges if edge.kind == "default"}

    def _steps(self, head: str | None) -> list[StructureNode]:
        """Give the steps of the chart in a stage; branches belong to what they leave."""
        return [node for node in self._structure.inside(head) if node.decider is None]

    def _below(self, node: StructureNode) -> list[StructureNode]:
        return [*self._structure.branches_of(node.key), *self._steps(node.key)]

    def _told_keys(self) -> set[str]:
        # The outer steps first: a reader who sees the whole frame misses less than one who sees
        # every detail of its beginning.
        told: set[str] = set()
        queue = deque(self._steps(None))
        while queue and len(told) < MAX_STEPS:
            node = queue.popleft()
            told.add(node.key)
            queue.extend(self._below(node))
        return told

    def _back_edges(self) -> tuple[Mapping[str, str], Mapping[str | None, str]]:
        """Find where each branch goes back to, and each chart when it has ended."""
        frames = self._structure.frames()
        branches: dict[str, str] = {}
        charts: dict[str | None, str] = {}
        for edge in self._structure.edges:
            if edge.kind != "loop":
                continue
            home, source = frames.get(edge.target), edge.source
            while source in frames and frames[source] != home:
                source = frames[source]
            node = self._structure.node(source)
            if node is not None and "loop_to" in node.detail:
                branches[source] = edge.target
            else:
                charts[home] = edge.target
        return branches, charts

    # -- lines -------------------------------------------------------------------------------

    def lines(self) -> Iterator[str]:
        """Yield the lines of the whole description."""
        yield self._with_words(self._name(self._structure.name), self._description)
        yield from self._chart(None, "")
        total = len(self._structure.nodes)
        if len(self._told) < total:
            yield f"{len(self._told)} of {counted(total, 'step')} are described."

    def _chart(self, head: str | None, indent: str) -> Iterator[str]:
        steps = self._steps(head)
        told = [node for node in steps if node.key in self._told]
        for number, node in enumerate(told, 1):
            # The description of a chart is that of its first stage.
            first = head is None and number == 1 and node.description == self._description
            mark = f"{number}. "
            line = self._with_words(self._name(node.name), None if first else node.description)
            yield f"{indent}{mark}{line}{_noted(self._notes(node))}"
            yield from self._inside(node, indent + " " * len(mark))
        yield from _left_out(len(steps) - len(told), "step", indent)
        if head in self._chart_goes:
            yield f"{indent}then goes back to {self._name_of(self._chart_goes[head])}"

    def _inside(self, node: StructureNode, indent: str) -> Iterator[str]:
        """Yield what is below the line of a step: its branches, or the chart inside it."""
        head = self._heading(node)
        if head:
            yield f"{indent}{head}{':' if self._below(node) else ''}"
        branches = self._structure.branches_of(node.key)
        told = [branch for branch in branches if branch.key in self._told]
        for branch in told:
            yield f"{indent}- {self._branch(branch)}"
            yield from self._chart(branch.key, indent + "  ")
        yield from _left_out(len(branches) - len(told), "branch", indent)
        yield from self._chart(node.key, indent)

    def _heading(self, node: StructureNode) -> str:
        by = f", by {self._name(node.detail['rules'])}" if "rules" in node.detail else ""
        if node.kind == "decider":
            return f"decides{by}"
        if node.kind == "selector":
            return f"runs each of these that fits, at once{by}"
        if node.kind == "fork":
            return "runs all of these at once"
        if node.kind == "fan_out":
            made = ", a chart made for it" if node.detail.get("template") == "unknown" else ""
            return f"for each item, at most {node.detail['cap']}{made}"
        return ""

    def _branch(self, node: StructureNode) -> str:
        route = node.branch or node.id
        words = self._name(route)
        if node.name.casefold() != route.casefold():
            words += f", {self._name(node.name)}"
        if node.key in self._defaults:
            words += " (default)"
        if node.added and node.description is None:
            return f"{words}: for what reaches no classification"
        return f"{self._with_words(words, node.description)}{_noted(self._notes(node))}"

    def _notes(self, node: StructureNode) -> Iterator[str]:
        form = node.detail.get("form", node.kind)
        if form == "streaming":
            yield "gives its text piece by piece"
        elif form == "pausable":
            yield "may wait for an answer"
        elif form == "subchart" and not self._steps(node.key):
            yield _lazily(node.detail)
        if "retry" in node.detail:
            yield f"tried up to {counted(node.detail['retry'], 'time')}"
        if node.key in self._branch_goes:
            yield f"goes back to {self._name_of(self._branch_goes[node.key])}"

    # -- words -------------------------------------------------------------------------------

    def _name(self, text: Any) -> str:
        return self._say(clip(_on_one_line(text), MAX_NAME))

    def _name_of(self, key: str) -> str:
        node = self._structure.node(key)
        return self._name(key if node is None else node.name)

    def _with_words(self, name: str, description: str | None) -> str:
        words = clip(_on_one_line(description or ""), MAX_WORDS)
        return f"{name}: {self._say(words)}" if words else name


def _on_one_line(text: Any) -> str:
    # A line break in a name would read as the beginning of the next step.
    return visible(" ".join(str(text).split()))


def _lazily(detail: Mapping[str, Any]) -> str:
    return "a chart made when it is first reached" if detail.get("lazy") else "a chart of its own"


def _noted(notes: Iterator[str]) -> str:
    words = "; ".join(notes)
    return f" ({words})" if words else ""


def _left_out(count: int, noun: str, indent: str) -> Iterator[str]:
    if count:
        many = "branches" if noun == "branch" else None
        yield f"{indent}… and {counted(count, f'more {noun}', many and f'more {many}')}"
