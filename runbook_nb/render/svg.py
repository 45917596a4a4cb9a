"""Flowcharts as pictures: an SVG of our own making inside a data URI, with its sentence.

This first form draws nothing yet and says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from runbook_nb._view import Flow


@dataclass(frozen=True, slots=True, kw_only=True)
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
    """

    uri: str | None = None
    svg: str | None = None
    alt: str = ""
    width: int = 0
    height: int = 0
    note: str = ""


def draw(flow: Flow) -> Drawing:
    """Draw a flow; never raises."""
    return Drawing(alt=flow.summary)
