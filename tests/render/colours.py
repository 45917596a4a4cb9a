"""What colours do to a reader: contrast, and how far apart they are for those who see fewer.

Red-green and blue-yellow vision are simulated in linear light after Machado, Oliveira and Fernandes
(2009), at full severity; distance is the Euclidean one in CIE L*a*b* (D65).
"""

from __future__ import annotations

import math
import re

#: What each kind of vision makes of red, green and blue.
VISION = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deutan": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritan": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
_TO_XYZ = (
    (0.4124564, 0.3575761, 0.1804375),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339, 0.1191920, 0.9503041),
)
_WHITE = (0.95047, 1.0, 1.08883)
_NAMED = {"white": "#ffffff", "black": "#000000"}


def channels(colour: str) -> list[float]:
    """Read a literal colour as red, green and blue from 0 to 1."""
    colour = _NAMED.get(colour, colour)
    if not re.fullmatch(r"#[0-9a-f]{3}|#[0-9a-f]{6}", colour):
        raise ValueError(f"{colour!r} is no literal colour")
    digits = colour[1:] if len(colour) == 7 else "".join(2 * one for one in colour[1:])
    return [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]


def linear(colour: str) -> list[float]:
    """Give the amounts of light."""
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels(colour)]


def contrast(one: str, other: str) -> float:
    """Give the ratio WCAG asks about, from 1 to 21."""
    dim, bright = sorted(
        sum(weight * c for weight, c in zip(_TO_XYZ[1], linear(colour), strict=True))
        for colour in (one, other)
    )
    return (bright + 0.05) / (dim + 0.05)


def over(colour: str, ground: str, opacity: float) -> str:
    """Give what is seen of a colour that lets its ground through."""
    mixed = (
        round(255 * (opacity * c + (1 - opacity) * g))
        for c, g in zip(channels(colour), channels(ground), strict=True)
    )
    return "#" + "".join(f"{one:02x}" for one in mixed)


def seen(colour: str, vision: str, *, on_screen: bool = True) -> tuple[float, float, float]:
    """Give a colour as L*, a*, b* to a kind of vision.

    A simulated colour may lie outside of what a screen can show; ``on_screen`` cuts it to that.
    """
    light = linear(colour)
    rgb = [sum(m * c for m, c in zip(row, light, strict=True)) for row in VISION[vision]]
    if on_screen:
        rgb = [min(max(c, 0.0), 1.0) for c in rgb]
    xyz = (sum(m * c for m, c in zip(row, rgb, strict=True)) for row in _TO_XYZ)
    x, y, z = (_root(part / white) for part, white in zip(xyz, _WHITE, strict=True))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _root(part: float) -> float:
    return part ** (1 / 3) if part > 216 / 24389 else (24389 / 27 * part + 16) / 116


def distance(one: str, other: str, vision: str, *, on_screen: bool = True) -> float:
    """Give how far apart two colours are to a kind of vision."""
    pair = (seen(colour, vision, on_screen=on_screen) for colour in (one, other))
    return math.dist(*pair)
