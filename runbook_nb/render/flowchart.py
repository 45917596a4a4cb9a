"""A flowchart as an object: what ``walk.flowchart()`` gives to a cell."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from runbook_nb._display import Renderable
from runbook_nb._view import Card, Flow, Graph
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

    def view(self) -> Card:
        """Show what it was made of; without a picture, with a line on how to get one."""
        drawing = self.drawing
        if drawing.svg is not None or not drawing.note:
            return self._card
        return replace(self._card, remarks=(*self._card.remarks, drawing.note))
