"""The stylesheet inside a picture: its files and the palette, scoped to the picture's own class."""

from __future__ import annotations

import re
from functools import cache
from string import Template
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
    lines, *sheets = map(_sheet, ("flow.css", "flow_paint.css", "flow_states.css")[: 2 + states])
    light, dark, both = (
        "".join(sheet.safe_substitute(colours, root=f".{root}") for sheet in sheets)
        for colours in (LIGHT, DARK, BOTH)
    )
    painted = {
        "light": light,
        "dark": dark,
        "auto": f"{light}@media(prefers-color-scheme:dark){{{dark}}}",
        "host": f"{light}@supports (color:light-dark(#000,#fff)){{{both}}}",
    }
    return lines.safe_substitute(root=f".{root}") + painted.get(theme, painted["auto"])


@cache
def _sheet(name: str) -> Template:
    text = shipped(name)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"\s+", " ", text)
    return Template(re.sub(r" ?([{};,]) ?|(?<=:) ", r"\1", text).strip())
