"""Flowcharts as pictures: an SVG of our own making inside a data URI, with its sentence.

The chart is folded, written as DOT, laid out by whichever engine is here, taken apart and written
anew, and painted by its own stylesheet. A picture wider than the text column is told more briefly
step by step; it is never shrunk. With ``graphviz-pure`` the bytes are the same on every machine.
"""

from __future__ import annotations

import base64
import hashlib
import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Final, TypeVar

from runbook_nb._text import clip, counted, listed, visible
from runbook_nb._value import frozen
from runbook_nb._view import Flow, Graph
from runbook_nb.render.dot import render_dot
from runbook_nb.render.folding import fold
from runbook_nb.render.labels import MANY_BRANCHES, WRAPS, Look, most_branches
from runbook_nb.render.layouts import lay_out
from runbook_nb.render.markup import character_data
from runbook_nb.render.paint import style_for
from runbook_nb.render.sanitize import NotAPicture, take_apart
from runbook_nb.settings import settings

#: Width, in CSS pixels, a picture should not pass: that of the text in a card.
COLUMN: Final = 672
#: Largest picture, in bytes of SVG.
MAX_BYTES: Final = 256 * 1024
#: CSS pixels to a point.
PX: Final = 4 / 3
#: Longest sentence about a picture.
MAX_ALT: Final = 1000
#: Pictures kept for the next time they are asked for.
KEPT: Final = 64


@frozen
class Drawing:
    """A picture of a flow, or the reason there is none.

    Attributes
    ----------
    uri : str or None
        The picture as ``data:image/svg+xml;base64,…``, for an image element.
    svg : str or None
        The same as SVG text.
    alt : str
        What happened, for who cannot see it.
    width, height : int
        In CSS pixels; a picture is shown at this size and never shrunk.
    note : str
        How to get the picture when there is none, or what was folded to draw it.
    verdicts : bool
        Whether verdicts are drawn in it, whose lines have to be explained.
    """

    uri: str | None = None
    svg: str | None = None
    alt: str = ""
    width: int = 0
    height: int = 0
    note: str = ""
    verdicts: bool = False


def draw(flow: Flow) -> Drawing:
    """Draw a flow; never raises.

    Parameters
    ----------
    flow : Flow
        What to draw; one without a graph gives an empty drawing.

    Returns
    -------
    Drawing
        With ``uri`` None and a note when no engine could draw it.

    Examples
    --------
    >>> from runbook_nb._view import GraphNode
    >>> with settings(layout="none"):
    ...     draw(Flow(lines=(), graph=Graph(nodes=(GraphNode(key="a", title="A"),)))).note
    "no picture: layout='none' is set"
    """
    if flow.graph is None or not flow.graph.nodes:
        return Drawing(alt=_alt(flow))
    try:
        return _drawn(flow, flow.graph)
    except Exception as error:  # a view must not fail for want of its picture
        return Drawing(alt=_alt(flow), note=f"no picture: {type(error).__name__} while drawing")


def _drawn(flow: Flow, whole: Graph) -> Drawing:
    if settings.layout == "none":  # which can be said without writing the chart down
        return Drawing(alt=_alt(flow), note=lay_out("").note)
    # Folding and writing the chart down costs more than finding what came of it the last time.
    key = (_Whole(whole), _alt(flow), settings.theme, settings.layout, settings.max_cell)
    with _lock:
        if (known := _drawings.get(key)) is not None:
            _drawings.move_to_end(key)
            return known
    drawing = _narrowest(flow, whole)
    if drawing.svg is not None:
        with _lock:
            _keep(_drawings, key, drawing)
    return drawing


def _narrowest(flow: Flow, whole: Graph) -> Drawing:
    graph, folded = fold(whole)
    drawing, said = Drawing(), ""
    for turned, look, left_out in _looks(graph):
        said = left_out
        drawing = picture_of(render_dot(turned, look), _alt(flow))
        if drawing.svg is None:
            return drawing
        if drawing.width <= COLUMN:
            break
    notes = [*folded, said, drawing.note]
    verdicts = any(node.kind == "branch" for node in graph.nodes)
    return replace(drawing, note="; ".join(filter(None, notes)), verdicts=verdicts)


def _looks(graph: Graph) -> Iterator[tuple[Graph, Look, str]]:
    """Yield the ways to draw a chart, each narrower than the one before, and what each leaves."""
    many = most_branches(graph) >= MANY_BRANCHES
    if graph.direction == "LR":
        yield graph, Look(), ""
        graph = replace(graph, direction="TB")
    for wrap in WRAPS[many:]:
        yield graph, Look(wrap=wrap), ""
    if any(node.kind in ("fork", "selector") for node in graph.nodes):  # side by side
        yield graph, Look(wrap=WRAPS[-1], narrow=True), ""
    narrow = Look(wrap=WRAPS[-1], sentences=False, narrow=True)
    if any(line.kind == "label" for edge in graph.edges for line in edge.lines):
        yield graph, narrow, "too wide for the author's sentences, which are left out"
    if any(edge.state == "taken" and edge.lines for edge in graph.edges):
        # Before a run the list does not tell them, so there they stay in the picture.
        yield graph, replace(narrow, numbered=True), "numbered edges are told in the list, in order"


class _Whole:
    """A chart as drawings are kept by it: told apart by all of it, and looked up by its size.

    Charts of one size have different sentences, nearly always; what a hash of all of it would say
    more is not worth reading every node and line for a chart that is the very one kept.
    """

    __slots__ = ("graph",)

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Whole):
            return NotImplemented
        return self.graph is other.graph or self.graph == other.graph

    def __hash__(self) -> int:
        return hash((len(self.graph.nodes), len(self.graph.edges)))


#: Pictures by what they were laid out from, and the drawings of whole charts.
_kept: OrderedDict[tuple[str, str, str], Drawing] = OrderedDict()
_drawings: OrderedDict[tuple[_Whole, str, str, str, int], Drawing] = OrderedDict()
_lock = threading.Lock()

_Key = TypeVar("_Key")


def _keep(kept: OrderedDict[_Key, Drawing], key: _Key, drawing: Drawing) -> None:
    kept[key] = drawing
    while len(kept) > KEPT:
        kept.popitem(last=False)


def picture_of(dot: str, alt: str) -> Drawing:
    """Make the picture of a DOT text, or find the one made before.

    Parameters
    ----------
    dot : str
        The chart.
    alt : str
        The sentence that goes into the picture as its title.

    Returns
    -------
    Drawing
        What an engine drew, sanitised and painted.
    """
    content = hashlib.sha256(f"{dot}\0{alt}".encode("utf-8", "replace")).hexdigest()
    key = (content, settings.theme, settings.layout)
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key]
    laid = lay_out(dot)
    if laid.svg is None:
        drawing = Drawing(alt=alt, note=laid.note)
    else:
        drawing = _painted(laid.svg, alt, f"rb-{content[:8]}", laid.note)
    if laid.tried:  # what is only missing may be installed later
        with _lock:
            _keep(_kept, key, drawing)
    return drawing


def _painted(raw: str, alt: str, root: str, note: str) -> Drawing:
    try:
        parts = take_apart(raw)
    except NotAPicture as error:
        return Drawing(alt=alt, note=f"no picture: the layout cannot be shown, {error}")
    width, height = (round(size * PX) for size in (parts.width, parts.height))
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{root}" role="img" width="{width}" '
        f'height="{height}" viewBox="{parts.box}"><title>Flowchart</title>'
        f"<desc>{character_data(alt)}</desc>"
        f"<style>{_style(root, settings.theme, bool(_STATES.search(parts.body)))}</style>"
        f"{parts.body}</svg>"
    )
    return picture(svg, alt, width, height, note)


def picture(svg: str, alt: str, width: int, height: int, note: str = "") -> Drawing:
    """Make a picture of an SVG, as an address of its own; or say that it is too large.

    Examples
    --------
    >>> picture("<svg/>", "nothing", 1, 1).uri
    'data:image/svg+xml;base64,PHN2Zy8+'
    """
    size = len(svg.encode("utf-8", "replace"))
    if size > MAX_BYTES:
        kept = "the list tells the same, and .mermaid can be drawn elsewhere"
        words = f"no picture: it has {size // 1024} kB, more than {MAX_BYTES // 1024} kB; {kept}"
        return Drawing(alt=alt, note=words)
    encoded = base64.b64encode(svg.encode("utf-8", "replace")).decode("ascii")
    return Drawing(
        uri=f"data:image/svg+xml;base64,{encoded}",
        svg=svg,
        alt=alt,
        width=width,
        height=height,
        note=note,
    )


#: A stage whose state has colours of its own.
_STATES: Final = re.compile(r'<g class="node[^"]*\b(?:waits|stop)\b')


@lru_cache(maxsize=KEPT)
def _style(root: str, theme: str, states: bool) -> str:
    return character_data(style_for(root, theme, states=states))


def _alt(flow: Flow) -> str:
    """Say what happened; before a run, what there is."""
    summary = visible(flow.summary)
    if not summary and flow.graph is not None:
        kinds: Counter[str] = Counter(node.kind for node in flow.graph.nodes)
        verdicts = kinds.pop("branch", 0)
        stages = counted(sum(kinds.values()), "stage")
        told = [counted(kinds[kind], words) for kind, words in _TOLD if kinds[kind]]
        if verdicts:
            told[-1:] = [
                f"{one} with {counted(verdicts, 'branch', 'branches')}" for one in told[-1:]
            ]
        summary = f"a procedure of {stages}{': ' if told else ''}{listed(told)}"
    return clip(summary, MAX_ALT)


#: What is counted of a procedure that has not run.
_TOLD: Final = (
    ("fan_out", "fan-out"),
    ("fork", "fork"),
    ("selector", "selector"),
    ("subchart", "inner chart"),
    ("pausable", "question"),
    ("streaming", "stream"),
    ("decider", "decider"),
)
