"""The stylesheet inside a picture: its files and the palette, scoped to the picture's own class."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from runbook_nb.render.static import shipped
from runbook_nb.render.theme import TEXT_DARK, TEXT_LIGHT

#: Running text, quiet text, text of what was not taken; lines; ground of nodes, of frames, and
#: the frames' edge. Text is at least 5:1 and lines at least 4.3:1 on the ground they stand on.
LIGHT: Final = TEXT_LIGHT | {
    "text": "#1f2328",
    "dim": "#57606a",
    "off": "#656d76",
    "line": "#6b747e",
    "ground": "#fff",
    "frame": "#f6f8fa",
    "edge": "#afb8c1",
}
DARK: Final = TEXT_DARK | {
    "text": "#f0f0f0",
    "dim": "#bcbcbc",
    "off": "#adadad",
    "line": "#949aa1",
    "ground": "#212121",
    "frame": "#2b2b2b",
    "edge": "#666",
}
#: Both at once, chosen by the colour scheme of the element.
BOTH: Final = {name: f"light-dark({LIGHT[name]},{DARK[name]})" for name in LIGHT}


def style_for(root: str, theme: str, *, states: bool = False) -> str:
    """Give the stylesheet of one picture.

    Parameters
    ----------
    root : str
        The class of the picture's root, on which every rule hangs.
    theme : {"auto", "light", "dark", "host"}
        ``auto`` carries both and follows what the picture is embedded in; ``host`` is for a
        picture that is part of a page and follows the colour scheme of what is around it.
    states : bool
        Whether it has a stage that waits, or that ended its chart on purpose.

    Examples
    --------
    >>> style_for("rb-0", "light").count("prefers-color-scheme"), len(style_for("x", "auto")) < 2700
    (0, True)
    """
    sheets = ("flow_paint.css", "flow_states.css")[: 1 + states]
    return painted(root, theme, ("flow.css",), sheets)


def painted(root: str, theme: str, lines: Sequence[str], paints: Sequence[str]) -> str:
    """Give the stylesheet of a picture: its lines once, its colours for each theme.

    Parameters
    ----------
    root, theme : str
        As of `style_for`.
    lines, paints : sequence of str
        Names of files beside the others.
    """
    light, dark, both = (
        "".join(_filled(_sheet(name), root, colours) for name in paints)
        for colours in (LIGHT, DARK, BOTH)
    )
    made = {
        "light": light,
        "dark": dark,
        "auto": f"{light}@media(prefers-color-scheme:dark){{{dark}}}",
        "host": f"{light}@supports (color:light-dark(#000,#fff)){{{both}}}",
    }
    drawn = "".join(_filled(_sheet(name), root, {}) for name in lines)
    return drawn + made.get(theme, made["auto"])


def _filled(sheet: str, root: str, colours: Mapping[str, str]) -> str:
    """Put the root's class and colours where a stylesheet names them: ``$root``, ``$line``."""
    known = {**colours, "root": f".{root}"}
    return re.sub(r"\$([a-z]+)", lambda found: known.get(found[1], found[0]), sheet)


@cache
def _sheet(name: str) -> str:
    text = shipped(name)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"\s+", " ", text)
    return re.sub(r" ?([{};,]) ?|(?<=:) ", r"\1", text).strip()
