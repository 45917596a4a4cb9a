"""Layout engines behind one port: DOT text in, SVG text out.

The order is fixed: what `settings.layout` names, then ``graphviz-pure`` (font-independent, so the
same bytes on every machine), ``dot`` on the path, ``pygraphviz``. An engine that is not here, that
fails or that takes too long gives way to the next; nothing raises, nothing asks the network.
"""

from __future__ import annotations

from typing import Final

from runbook_nb._value import inner
from runbook_nb.render.layouts.base import Layout, LayoutFailed
from runbook_nb.render.layouts.engines import DotLayout, PureLayout, PygraphvizLayout
from runbook_nb.settings import settings

#: Every engine, in the order they are tried.
ENGINES: Final[dict[str, Layout]] = {
    engine.name: engine for engine in (PureLayout(), DotLayout(), PygraphvizLayout())
}
#: How to get a picture where nothing can draw one.
HOW_TO_GET: Final = "no picture: `pip install graphviz-pure` adds what draws it"


@inner(kw_only=False)
class Laid:
    """What came of laying out a graph.

    Attributes
    ----------
    svg : str or None
        The engine's SVG; None when no engine gave one.
    engine : str
        Which one drew it.
    note : str
        What went wrong on the way, or how to get a picture.
    tried : bool
        Whether any engine was here at all.
    """

    svg: str | None
    engine: str = ""
    note: str = ""
    tried: bool = False


def lay_out(dot: str) -> Laid:
    """Lay out a graph with the first engine that can.

    Parameters
    ----------
    dot : str
        The graph as DOT text.

    Examples
    --------
    >>> with settings(layout="none"):
    ...     lay_out("digraph {}").note
    "no picture: layout='none' is set"
    """
    chosen = settings.layout
    if chosen == "none":
        return Laid(None, note="no picture: layout='none' is set")
    order = [*([chosen] if chosen in ENGINES else []), *(n for n in ENGINES if n != chosen)]
    problems: list[str] = []
    tried = False
    for name in order:
        engine = ENGINES[name]
        if not engine.available():
            if name == chosen:
                problems.append(f"{name} is not here")
            continue
        tried = True
        try:
            svg = engine.svg(dot)
        except LayoutFailed as failed:
            problems.append(f"{name} {failed}")
            continue
        return Laid(svg, name, f"{'; '.join(problems)}; drawn by {name}" if problems else "", tried)
    if problems and tried:
        return Laid(None, note=f"no picture: {'; '.join(problems)}", tried=True)
    return Laid(None, note="; ".join([*problems, HOW_TO_GET]))


__all__ = ["ENGINES", "HOW_TO_GET", "Laid", "Layout", "LayoutFailed", "lay_out"]
