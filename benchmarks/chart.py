"""A line chart on two logarithmic axes, as SVG: microseconds per subject by number of subjects.

It uses the tokens of `runbook_nb.render.theme`: the same fills, signs and lines as every card. A
series is told by its sign and by its name beside its last point, never by colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from runbook_nb.render.theme import FILLS, LINE, SIGNS, TEXT_DARK

WIDTH, HEIGHT = 760, 520
LEFT, RIGHT, TOP, BOTTOM = 62, 236, 40, 50
FONT = 'Helvetica,Arial,"Liberation Sans",sans-serif'
#: Lines of text beside the last points are at least this far apart.
APART = 15.0
INK = {"light": "#1f2328", "dark": "#e6edf3"}
QUIET = {"light": "#57606a", "dark": "#9198a1"}


@dataclass(frozen=True, slots=True)
class Series:
    """A line: its name, its role in the palette, and its points (N, microseconds).

    Quiet ones are thin and grey, dotted or dashed.
    """

    name: str
    role: str
    points: tuple[tuple[int, float], ...]
    quiet: bool = False
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """A logarithmic axis between two exponents of ten, on so many pixels."""

    low: float
    high: float
    start: float
    length: float

    def at(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + share * self.length

    def ticks(self) -> list[float]:
        """Give the powers of ten on it."""
        powers = range(math.ceil(self.low), math.floor(self.high) + 1)
        return [10.0**power for power in powers]


def axes_of(series: Iterable[Series]) -> tuple[Axis, Axis]:
    points = [point for one in series for point in one.points]
    xs, ys = [math.log10(n) for n, _ in points], [math.log10(us) for _, us in points]
    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    # Across, it begins with the data: below the smallest number of subjects there is nothing.
    across = Axis(min(xs) - 0.1, max(xs), LEFT, width)
    # Upwards is more, and SVG counts downwards.
    up = Axis(math.floor(min(ys)), math.ceil(max(ys)), HEIGHT - BOTTOM, -height)
    return across, up


def colour(series: Series, theme: str) -> str:
    if series.quiet:
        return QUIET[theme]
    return (FILLS if theme == "light" else TEXT_DARK)[series.role]


def said(value: float) -> str:
    """Write a power of ten as people read it."""
    return f"{int(value):,}" if value >= 1 else f"{value:g}"


def spread(wanted: Sequence[float]) -> list[float]:
    """Move heights apart until each has room, as little as needed, in their order."""
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    placed = [wanted[place] for place in order]
    for _ in range(200):
        moved = False
        for n in range(len(placed) - 1):
            short = APART - (placed[n + 1] - placed[n])
            if short > 0.01:
                placed[n], placed[n + 1] = placed[n] - short / 2, placed[n + 1] + short / 2
                moved = True
        if not moved:
            break
    found = [0.0] * len(wanted)
    for place, height in zip(order, placed, strict=True):
        found[place] = height
    return found


def _text(x: float, y: float, text: str, fill: str, **more: object) -> str:
    given = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in more.items())
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}"{given}>{escape(text)}</text>'


def _grid(across: Axis, up: Axis, theme: str) -> Iterable[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    yield f'<path d="M{LEFT} {TOP}V{bottom}" stroke="{LINE}" stroke-opacity=".6"/>'
    for value in up.ticks():
        y = up.at(value)
        yield f'<path d="M{LEFT} {y:.1f}H{right}" stroke="{LINE}" stroke-opacity=".3"/>'
        yield _text(LEFT - 8, y + 4, said(value), QUIET[theme], text_anchor="end")
    for value in across.ticks():
        x = across.at(value)
        yield f'<path d="M{x:.1f} {TOP}V{bottom}" stroke="{LINE}" stroke-opacity=".3"/>'
        yield _text(x, bottom + 18, said(value), QUIET[theme], text_anchor="middle")
    middle = (LEFT + right) / 2
    yield _text(middle, HEIGHT - 10, "subjects", QUIET[theme], text_anchor="middle")
    yield _text(LEFT - 50, 20, "microseconds per subject", QUIET[theme])


def _line(series: Series, across: Axis, up: Axis, theme: str) -> Iterable[str]:
    fill = colour(series, theme)
    places = [(across.at(n), up.at(us)) for n, us in series.points]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    dashes = "7 3" if series.dashed else "2 3"
    look = f'stroke-dasharray="{dashes}"' if series.quiet else 'stroke-width="2"'
    yield f'<path d="M{path}" fill="none" stroke="{fill}" {look}/>'
    sign = SIGNS[series.role].glyph
    for x, y in places:
        if series.quiet:
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="{fill}"/>'
        else:
            yield _text(x, y + 4, sign, fill, text_anchor="middle", font_size=12)


def draw(series: Sequence[Series], *, title: str, theme: str) -> str:
    """Draw series as one SVG document.

    Parameters
    ----------
    series : sequence of Series
        Quiet ones are drawn below the others.
    title : str
        Said to who cannot see it.
    theme : {"light", "dark"}
        The ground it will stand on; it paints none of its own.
    """
    series = [one for one in series if one.points]
    across, up = axes_of(series)
    parts = [*_grid(across, up, theme)]
    for one in sorted(series, key=lambda one: not one.quiet):
        parts += _line(one, across, up, theme)
    ends = [one.points[-1] for one in series]
    heights = spread([up.at(us) for _, us in ends])
    right = WIDTH - RIGHT
    for one, (n, us), height in zip(series, ends, heights, strict=True):
        fill, x = colour(one, theme), across.at(n)
        parts.append(
            f'<path d="M{x + 7:.1f} {up.at(us):.1f}L{right + 6} {height:.1f}H{right + 12}" '
            f'fill="none" stroke="{fill}" stroke-opacity="{0.3 if one.quiet else 0.55}"/>'
        )
        weight = {} if one.quiet else {"font_weight": 600}
        parts.append(_text(right + 16, height + 4, one.name, fill, **weight))
    body = "".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family=\'{FONT}\' font-size="12">'
        f"<title>{escape(title)}</title>{body}</svg>\n"
    )


def merged(points: Iterable[Mapping[str, object]]) -> dict[str, tuple[tuple[int, float], ...]]:
    """Gather points by name, by number of subjects; the last one noted of each counts."""
    found: dict[str, dict[int, float]] = {}
    for point in points:
        found.setdefault(str(point["name"]), {})[int(str(point["n"]))] = float(str(point["us"]))
    return {name: tuple(sorted(kept.items())) for name, kept in found.items()}
