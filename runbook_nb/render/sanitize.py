"""An engine's SVG taken apart and written anew, with nothing in it that is not on a list.

Whatever an engine wrote, the picture holds known elements with known attributes of known form.
Identifiers and titles of the engine go; classes come from a closed set; text stays text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from xml.etree.ElementTree import Element, ParseError, XMLParser

from runbook_nb.render.dot import CLASSES
from runbook_nb.render.markup import character_data

_SVG: Final = "{http://www.w3.org/2000/svg}"
_NUMBER: Final = r"-?\d+(?:\.\d+)?"
_NUMBERS: Final = re.compile(rf"{_NUMBER}(?:[ ,]+{_NUMBER})*")

#: Element -> the attributes it keeps, in the order they are written.
_SHAPES: Final = {
    "path": ("d",),
    "polygon": ("points",),
    "polyline": ("points",),
    "ellipse": ("cx", "cy", "rx", "ry"),
}
_PAINT: Final = ("fill", "stroke", "stroke-width", "stroke-dasharray")
_FORMS: Final = {
    "d": re.compile(rf"(?:[MCLz] ?|{_NUMBER}|[ ,])+"),
    "fill": re.compile("none|white|black"),
    "stroke": re.compile("none|black"),
    "text-anchor": re.compile("start|middle|end"),
    "stroke-dasharray": re.compile(rf"{_NUMBER}(?:,{_NUMBER})*"),
}
_WEIGHTS: Final = {"s": "h", "p": "", "d": "q"}
_PLACE: Final = re.compile(rf"translate\(({_NUMBER}) ({_NUMBER})\)")
#: What DOT calls a node, and an edge by its ends.
_NUMBERED: Final = r"n(\d+)(?:->n(\d+))?"
_SIZE: Final = re.compile(rf"({_NUMBER})(?:pt|px)?")


class NotAPicture(ValueError):
    """What an engine gave is no SVG we would show."""


class Parts:
    """A picture's size in points, the box it looks at, and its content as SVG text."""

    __slots__ = ("body", "box", "height", "width")

    def __init__(self, root: Element, *, numbered: bool = False) -> None:
        self.width, self.height = (_size(root.get(name)) for name in ("width", "height"))
        self.box = _checked("viewBox", root.get("viewBox"))
        self.body = "".join(_groups(root, numbered))


def take_apart(text: str, *, numbered: bool = False) -> Parts:
    """Read an engine's SVG and keep what is on the list.

    Parameters
    ----------
    text : str
        What the engine wrote.
    numbered : bool
        Whether nodes and edges say their numbers in the DOT text, as ``data-n`` and ``data-e``,
        for a script that is to find them.

    Raises
    ------
    NotAPicture
        It is not well formed, declares entities, or has no size.

    Examples
    --------
    >>> svg = '<svg xmlns="http://www.w3.org/2000/svg" width="3pt" height="4pt" viewBox="0 0 3 4"/>'
    >>> take_apart(svg).width
    3.0
    """
    start = text.find("<svg")
    if start < 0:
        raise NotAPicture("there is no svg element")
    # The prolog of an engine names a document type and is left behind unread. Behind it, a
    # declaration could only define entities.
    body = text[start:]
    if "<!DOCTYPE" in body or "<!ENTITY" in body or "<![" in body:
        raise NotAPicture("it declares entities")
    parser = XMLParser()  # noqa: S314 - nothing is declared, so there is nothing to expand
    try:
        parser.feed(body)
        root: Element = parser.close()
    except ParseError as error:
        raise NotAPicture("it is not well formed") from error
    if root.tag != f"{_SVG}svg":
        raise NotAPicture("it is not an svg element")
    return Parts(root, numbered=numbered)


def _groups(root: Element, numbered: bool) -> Iterator[str]:
    for graph in root:
        if graph.tag == f"{_SVG}g":
            place = _PLACE.search(graph.get("transform", ""))
            x, y = place.groups() if place else ("0", "0")
            inner = "".join(_group(g, numbered) for g in graph if g.tag == f"{_SVG}g")
            yield f'<g transform="translate({x} {y})">{inner}</g>'


def _group(group: Element, numbered: bool) -> str:
    classes = group.get("class", "").split()
    kind = next((c for c in ("node", "edge") if c in classes), "")
    weights = next((c[2:] for c in classes if c.startswith("w-")), "")
    names = " ".join([*([kind] if kind else []), *(c for c in classes if c in CLASSES)])
    written: list[str] = []
    line = 0
    for element in group.iter():
        tag = element.tag.removeprefix(_SVG)
        if tag in _SHAPES:
            written.append(_shape(tag, element))
        elif tag == "text":
            weight = _WEIGHTS.get(weights[line : line + 1], "")
            line += 1
            written.append(_text(element, weight))
    inner = "".join(written)
    found = re.fullmatch(_NUMBERED, group.findtext(f"{_SVG}title") or "") if numbered else None
    number = ""
    if found is not None and kind:
        source, target = found.groups()
        number = f' data-n="{source}"' if target is None else f' data-e="{source} {target}"'
    return f'<g class="{names}"{number}>{inner}</g>' if names else f"<g>{inner}</g>"


def _shape(tag: str, element: Element) -> str:
    kept = [f'{name}="{_checked(name, element.get(name))}"' for name in _SHAPES[tag]]
    for name in _PAINT:
        value = element.get(name)
        if name == "fill" and value in (None, "transparent"):
            value = "none"
        if name == "fill" and tag == "ellipse":
            value = "white"  # the ring of a default branch lies on its decider's outline
        if value is not None:
            kept.append(f'{name}="{_checked(name, value)}"')
    return f"<{tag} {' '.join(kept)}/>"


def _text(element: Element, weight: str) -> str:
    kept = [f'class="{weight}"'] if weight else []
    for name in ("x", "y", "text-anchor", "font-size"):
        kept.append(f'{name}="{_checked(name, element.get(name))}"')
    return f"<text {' '.join(kept)}>{character_data(''.join(element.itertext()))}</text>"


def _checked(name: str, value: str | None) -> str:
    value = " ".join((value or "").split())
    if not _FORMS.get(name, _NUMBERS).fullmatch(value):
        raise NotAPicture(f"its {name} is of no known form")
    return value


def _size(value: str | None) -> float:
    found = _SIZE.fullmatch(value or "")
    if found is None:
        raise NotAPicture("it has no size")
    return float(found.group(1))
