"""Flowcharts as part of a page: the same picture, whose nodes and edges a script can find.

Inside a widget a picture is no image but elements of the page. It goes through the same sanitiser,
hangs all its rules on a class made from its content, follows the colour scheme around it, and
numbers its nodes; what each number stands for is said beside it.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Final

from runbook_nb._value import inner
from runbook_nb._view import Badge, Graph, GraphEdge, GraphLine, GraphNode
from runbook_nb.render.cells import cell_text
from runbook_nb.render.dot import render_dot
from runbook_nb.render.folding import fold_with_keys
from runbook_nb.render.labels import WRAPS, Look
from runbook_nb.render.layouts import lay_out
from runbook_nb.render.markup import character_data
from runbook_nb.render.paint import style_for
from runbook_nb.render.sanitize import NotAPicture, take_apart
from runbook_nb.render.svg import MAX_BYTES, PX
from runbook_nb.settings import settings

#: Pictures kept for the next time they are asked for.
KEPT: Final = 64
#: How much is said, the narrower the later; one still too wide is scrolled.
_LOOKS: Final = (
    Look(sentences=False, lean=True),
    Look(wrap=WRAPS[-1], sentences=False, narrow=True, lean=True),
)


@inner
class Inline:
    """A picture for a page, or the reason there is none.

    Attributes
    ----------
    id : str
        The class it hangs on, made from its content; empty without a picture.
    svg : str or None
    width, height : int
        In CSS pixels.
    names : tuple of str
        What each node is called, by its number less one.
    places : mapping
        Key of the chart's node -> number of the node it is drawn as.
    note : str
        What was folded or left out, or why there is no picture.
    """

    id: str = ""
    svg: str | None = None
    width: int = 0
    height: int = 0
    names: tuple[str, ...] = ()
    places: Mapping[str, int] = field(default_factory=dict)
    note: str = ""


def draw_inline(graph: Graph, alt: str, column: int) -> Inline:
    """Draw a chart to stand in a page; never raises.

    Parameters
    ----------
    graph : Graph
    alt : str
        What happened, for who cannot see it.
    column : int
        Width, in CSS pixels, it should not pass; what does is told more briefly, never shrunk.

    Examples
    --------
    >>> from runbook_nb._view import GraphNode
    >>> with settings(layout="none"):
    ...     draw_inline(Graph(nodes=(GraphNode(key="a", title="A"),)), "a stage", 300).note
    "no picture: layout='none' is set"
    """
    key = (graph, alt, column, settings.layout, settings.max_cell)
    with _lock:
        if (known := _drawn.get(key)) is not None:
            _drawn.move_to_end(key)
            return known
    try:
        made = _narrowest(graph, alt, column)
    except Exception as error:  # a view must not fail for want of its picture
        return Inline(note=f"no picture: {type(error).__name__} while drawing")
    if made.svg is not None:
        with _lock:
            _drawn[key] = made
            while len(_drawn) > KEPT:
                _drawn.popitem(last=False)
    return made


_drawn: OrderedDict[tuple[Graph, str, int, str, int], Inline] = OrderedDict()
_lock = threading.Lock()


def _narrowest(whole: Graph, alt: str, column: int) -> Inline:
    graph, folded, drawn_as = fold_with_keys(whole)
    graph = replace(graph, direction="TB", edges=tuple(map(_spare_edge, graph.edges)))
    graph = replace(graph, nodes=tuple(map(_spare_node, graph.nodes)))
    made = Inline()
    for look in _LOOKS:
        made = _made(graph, look, alt)
        if made.svg is None or made.width <= column:
            break
    numbers = {node.key: number for number, node in enumerate(graph.nodes, 1)}
    places = {k: numbers[d] for k, d in drawn_as.items() if d is not None and d in numbers}
    return Inline(
        id=made.id,
        svg=made.svg,
        width=made.width,
        height=made.height,
        names=tuple(cell_text(node.title) for node in graph.nodes),
        places=places,
        note="; ".join(filter(None, [*folded, made.note])),
    )


def _spare_edge(edge: GraphEdge) -> GraphEdge:
    """Leave out what is told beside the picture: the author's sentences, what did not hold."""
    if edge.state != "not_taken":
        return replace(edge, lines=tuple(line for line in edge.lines if line.kind != "label"))
    if edge.default:
        return replace(edge, lines=(GraphLine(kind="count", text="default"),))
    return replace(edge, lines=tuple(line for line in edge.lines if line.kind == "count")[:1])


def _spare_node(node: GraphNode) -> GraphNode:
    """Leave out what the line around a node says already."""
    if node.state != "not_taken" or node.kind == "step":
        return node
    title = node.title.word if isinstance(node.title, Badge) else node.title
    return replace(node, title=title, second="", third="")


def _made(graph: Graph, look: Look, alt: str) -> Inline:
    dot = render_dot(graph, look)
    laid = lay_out(dot)
    if laid.svg is None:
        return Inline(note=laid.note)
    try:
        parts = take_apart(laid.svg, numbered=True)
    except NotAPicture as error:
        return Inline(note=f"no picture: the layout cannot be shown, {error}")
    width, height = (round(size * PX) for size in (parts.width, parts.height))
    content = hashlib.sha256(f"{dot}\0{alt}\0inline".encode("utf-8", "replace")).hexdigest()
    root = f"rb-{content[:8]}"
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{root}" width="{width}" '
        f'height="{height}" viewBox="{parts.box}"><title>Flowchart</title>'
        f"<desc>{character_data(alt)}</desc>"
        f"<style>{character_data(style_for(f'rbnb .{root}', 'host', states=True))}</style>"
        f"{parts.body}</svg>"
    )
    size = len(svg.encode("utf-8", "replace"))
    if size > MAX_BYTES:
        return Inline(note=f"no picture: it has {size // 1024} kB, more than {MAX_BYTES // 1024}")
    return Inline(id=root, svg=svg, width=width, height=height, note=laid.note)
