"""Counts over time as a picture: a line, a sign and a name for each word, in the house palette.

No line is told by its colour alone: signs differ in shape, *declined* is dashed, and each line has
its name at its end. The bytes are the same on every machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, Final

from runbook_nb._text import clip, visible
from runbook_nb._view import Plot, Series
from runbook_nb.render.cells import words
from runbook_nb.render.markup import character_data
from runbook_nb.render.paint import painted
from runbook_nb.render.parts import picture_parts
from runbook_nb.render.svg import COLUMN, Drawing, picture
from runbook_nb.render.theme import TEXT_LIGHT
from runbook_nb.settings import settings

#: Height of the picture, and room at its edges: above, for names, for days, for counts.
HEIGHT: Final = 220
TOP, RIGHT, BOTTOM, LEFT = 14, 168, 34, 48
#: Lines that are drawn at most, and places: the newest.
MOST_LINES: Final = 8
MOST_PLACES: Final = 120
#: Up to so many places each value has its sign; beyond, only the last one has.
SIGNED: Final = 30
#: Characters of a name, and pixels from one name to the next.
_NAME: Final = 18
_STEP: Final = 16


def draw_plot(plot: Plot) -> Drawing:
    """Draw counts over time.

    Parameters
    ----------
    plot : Plot

    Returns
    -------
    Drawing
        Without a picture where there is nothing to draw.

    Examples
    --------
    >>> from runbook_nb._view import Series
    >>> made = draw_plot(Plot(places=("1", "2"), series=(Series("old", "a", (1, 3)),),
    ...     summary="old rose from 1 to 3"))
    >>> made.width, made.alt
    (672, 'old rose from 1 to 3')
    """
    alt = visible(plot.summary)
    series = plot.series[:MOST_LINES]
    if not plot.places or not any(value is not None for one in series for value in one.values):
        return Drawing(alt=alt)
    left_out = len(plot.places) - MOST_PLACES
    notes = [plot.note] if plot.note else []
    if left_out > 0:
        notes.append(f"the last {MOST_PLACES} of {len(plot.places)} are drawn")
    if len(plot.series) > MOST_LINES:
        notes.append(f"{MOST_LINES} of {len(plot.series)} words are drawn")
    shown = [Series(one.word, one.role, one.values[-MOST_PLACES:]) for one in series]
    ends = (plot.places[max(left_out, 0)], plot.places[-1])
    body = "".join(_body(shown, min(len(plot.places), MOST_PLACES), plot.ends, ends))
    content = hashlib.sha256(f"{body}\0{alt}".encode("utf-8", "replace")).hexdigest()
    root = f"rb-{content[:8]}"
    style = painted(root, settings.theme, ("plot.css",), ("plot_paint.css",))
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{root}" role="img" width="{COLUMN}" '
        f'height="{HEIGHT}" viewBox="0 0 {COLUMN} {HEIGHT}"><title>Counts over time</title>'
        f"<desc>{character_data(alt)}</desc><style>{character_data(style)}</style>"
        f"{body}</svg>"
    )
    return picture(svg, alt, COLUMN, HEIGHT, "; ".join(map(visible, notes)))


def plot_parts(plot: Plot, drawing: Drawing | None) -> dict[str, Any]:
    """Make counts over time ready: the picture, or the sentence in its place."""
    summary = words(plot.summary)
    made = picture_parts(drawing, summary or "counts over time")
    return {
        "picture": made,
        "key": False,
        "drawn": words(drawing.note) if drawing and made else "",
        "summary": "" if made else summary,
        "tree": [],
        "notes": [],
    }


def _body(
    series: Sequence[Series], places: int, days: tuple[str, str], ends: tuple[str, str]
) -> Iterator[str]:
    most = max(value for one in series for value in one.values if value is not None)
    step = _nice(most)
    top = max(step * -(-most // step), step)
    right, bottom = COLUMN - RIGHT, HEIGHT - BOTTOM
    for count in range(0, top + 1, step):
        y = _height(count, top)
        yield f'<path class="g" d="M{LEFT} {y}H{right}"/>'
        yield f'<text class="t" x="{LEFT - 8}" y="{y + 4:g}" text-anchor="end">{count}</text>'
    for text, x, anchor in (
        (_under(ends[0], days[0]), LEFT, "start"),
        (_under(ends[1], days[1]), right, "end"),
    )[places == 1 :]:
        yield f'<text class="t" x="{x}" y="{bottom + 20}" text-anchor="{anchor}">{text}</text>'
    at = [LEFT + (right - LEFT) * (n / (places - 1) if places > 1 else 1) for n in range(places)]
    for one in series:
        yield from _line(one, at, top)
    yield from _names(series, top)


def _under(place: str, day: str) -> str:
    return escape(clip(visible(f"run {place} · {day}" if day else f"run {place}"), 40))


def _line(one: Series, at: Sequence[float], top: int) -> Iterator[str]:
    role = _role(one)
    points = [
        (x, _height(value, top)) if value is not None else None
        for x, value in zip(at[-len(one.values) :], one.values, strict=False)
    ]
    path = ""
    for n, point in enumerate(points):
        if point is not None:
            joined = n and points[n - 1] is not None
            path += f"{'L' if joined else 'M'}{point[0]:.1f} {point[1]:g}"
    yield f'<path class="l {role}" d="{path}"/>'
    held = [point for point in points if point is not None]
    for x, y in held if len(points) <= SIGNED else held[-1:]:
        yield _sign(role, round(x, 1), y)


def _names(series: Sequence[Series], top: int) -> Iterator[str]:
    """Name each line at its end, one under the other where they lie close."""
    named = []
    for one in series:
        last = next((value for value in reversed(one.values) if value is not None), None)
        if last is not None:
            named.append((_height(last, top), one, last))
    named.sort(key=lambda entry: entry[0])
    lowest = HEIGHT - 6
    heights: list[float] = []
    for y, _, _ in named:
        heights.append(max(y, heights[-1] + _STEP) if heights else max(y, TOP))
    for n in range(len(heights) - 1, -1, -1):
        heights[n] = min(heights[n], lowest - _STEP * (len(heights) - 1 - n))
    for y, (_, one, last) in zip(heights, named, strict=True):
        role = _role(one)
        x = COLUMN - RIGHT + 18
        word = escape(clip(visible(one.word), _NAME))
        yield _sign(role, x, y)
        yield f'<text class="h {role}" x="{x + 10}" y="{y + 4:g}">{word} {last}</text>'


def _sign(role: str, x: float, y: float) -> str:
    if role == "b":
        return f'<path class="m b" d="M{x:g} {y - 4.5:g}l5 8.5h-10z"/>'
    if role == "c":
        return f'<path class="m c" d="M{x - 4:g} {y - 4:g}h8v8h-8z"/>'
    if role == "d":
        return f'<path class="m d" d="M{x:g} {y - 5:g}l5 5l-5 5l-5 -5z"/>'
    kind = "open declined" if role == "declined" else f"m {role}"
    size = 4.5 if role == "declined" else 4 if role == "a" else 2.5
    return f'<circle class="{kind}" cx="{x:g}" cy="{y:g}" r="{size}"/>'


def _role(one: Series) -> str:
    return one.role if one.role in TEXT_LIGHT else "plain"


def _height(count: int, top: int) -> float:
    return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - count / top), 1)


def _nice(most: int) -> int:
    """Give a round step of which at most five reach so far."""
    size = 1
    while True:
        for step in (size, 2 * size, 5 * size):
            if 5 * step >= most:
                return step
        size *= 10
