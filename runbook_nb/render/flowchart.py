"""A flowchart as an object: what ``walk.flowchart()`` gives to a cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from runbook_nb._display import Renderable
from runbook_nb._text import counted, did_you_mean, listed
from runbook_nb._view import Card, Flow, FlowLine, Graph, Section
from runbook_nb.errors import NoSuchStage
from runbook_nb.render.cells import cell_text
from runbook_nb.render.dot import render_dot
from runbook_nb.render.folding import fold
from runbook_nb.render.mermaid import render_mermaid
from runbook_nb.render.svg import Drawing, draw


class Flowchart(Renderable):
    """The flowchart of a walk, a structure or a chart.

    Shown in a cell it is the picture with the list beside it; where nothing can draw, the list
    and Mermaid text remain.

    Parameters
    ----------
    card : Card
        The view whose flow is drawn.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> chart = flow_chart("tiny", print, id="a", stage_name="Say").build()
    >>> print(chart.flowchart().mermaid)
    flowchart TB
      n1("Say")
    """

    def __init__(self, card: Card) -> None:
        self._card = card

    @cached_property
    def flow(self) -> Flow:
        """The flow that is drawn: outline and graph."""
        parts = (part for section in self._card.sections for part in section.parts)
        return next((part for part in parts if isinstance(part, Flow)), Flow(lines=()))

    @cached_property
    def graph(self) -> Graph:
        """The graph that is drawn, folded where it is too large to read."""
        return fold(self.flow.graph or Graph(nodes=()))[0]

    @property
    def dot(self) -> str:
        """The chart as DOT text, for tools that read it."""
        return render_dot(self.graph)

    @property
    def mermaid(self) -> str:
        """The chart as Mermaid text, for Markdown that draws it."""
        return render_mermaid(self.graph)

    @property
    def drawing(self) -> Drawing:
        """The picture with its size and sentence, or the reason there is none."""
        return draw(self.flow)

    @property
    def svg(self) -> str | None:
        """The picture as SVG text; None when no layout engine is here."""
        return self.drawing.svg

    def inside(self, stage: str) -> Flowchart:
        """Draw only what lies inside one stage: a mounted chart, a fan-out, a fork.

        Parameters
        ----------
        stage : str
            Its name, its id, or its key (``"region/each"``) where several share those.

        Raises
        ------
        LookupError
            No stage of that name holds others, or several do.

        Examples
        --------
        >>> from runbook_nb.chart.builder import flow_chart
        >>> inner = flow_chart("inner", print, id="x", stage_name="Deep").build()
        >>> chart = flow_chart("outer", print, id="a").add_subchart("Sub", inner, id="sub").build()
        >>> print(chart.flowchart().inside("sub").mermaid)
        flowchart TB
          n1("Deep")
        """
        whole = self.flow.graph or Graph(nodes=())
        titles = {node.key: cell_text(node.title) for node in whole.nodes}
        head = _head_of(stage, {group.key: titles[group.key] for group in whole.groups})
        flow = Flow(
            lines=tuple(_lines_inside(self.flow.lines, head)),
            summary=f"inside {titles[head]}",
            graph=_graph_inside(whole, head),
        )
        name = f"{self._card.name}, {titles[head]}"
        section = Section(label="", parts=(flow,))
        return Flowchart(
            Card(
                kind=self._card.kind,
                name=name,
                headline=f"{counted(len(flow.lines), 'line')}",
                sections=(section,),
            )
        )

    def view(self) -> Card:
        """Show what it was made of; without a picture, with a line on how to get one."""
        drawing = self.drawing
        if drawing.svg is not None or not drawing.note:
            return self._card
        return replace(self._card, remarks=(*self._card.remarks, drawing.note))


def _head_of(stage: str, heads: Mapping[str, str]) -> str:
    """Find the stage that is meant, by its key, else by its id or name."""
    if stage in heads:
        return stage
    found = [key for key, title in heads.items() if stage in (title, key.rpartition("/")[2])]
    if len(found) == 1:
        return found[0]
    if found:
        message = f"{len(found)} stages are called {stage!r} and hold others: {listed(found)}"
        raise NoSuchStage(message, where=stage, fix="give its key")
    raise NoSuchStage(
        f"no stage {stage!r} holds others", where=stage, fix=did_you_mean(stage, heads)
    )


def _lines_inside(lines: Iterable[FlowLine], head: str) -> Iterator[FlowLine]:
    """Yield the lines below the last one of a stage, moved out."""
    around: int | None = None
    for line in lines:
        if around is not None and line.depth <= around:
            around = None
        if around is not None:
            yield replace(line, depth=line.depth - around - 1)
        elif line.key == head:
            around = line.depth


def _graph_inside(whole: Graph, head: str) -> Graph:
    parents = {group.key: group.parent for group in whole.groups}

    def lies_inside(key: str) -> bool:
        while key and key != head:
            key = parents.get(key, "")
        return bool(key)

    groups = [group for group in whole.groups if lies_inside(group.key)]
    kept = {member for group in groups for member in group.members} - {head}
    return replace(
        whole,
        nodes=tuple(node for node in whole.nodes if node.key in kept),
        edges=tuple(e for e in whole.edges if e.source in kept and e.target in kept),
        groups=tuple(
            replace(group, parent="" if group.parent == head else group.parent)
            for group in groups
            if group.key != head
        ),
    )
