"""What rich output looks like: palette, glyphs, inline styles and the one small stylesheet.

An output has to stand where a host keeps nothing but semantic tags and literal inline styles, so
layout and meaning are complete without the stylesheet. Inline styles set layout, mid-tone lines
and chips that paint both of their colours; they never set the colour of running text, which a
dark host could not take back. The stylesheet only upgrades classes to the host's own colours.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from runbook_nb.render.markup import Html
from runbook_nb.render.static import shipped, shortened

#: Fill of what was judged, in both themes; white stands on it.
FILLS: Final = {
    "a": "#0b5fa5",
    "b": "#b84a00",
    "c": "#8e3b7a",
    "d": "#00796b",
    "declined": "#5f6368",
    "completed": "#0b5fa5",
    "stuck": "#b84a00",
}
#: The same roles as text, on light and on dark ground.
TEXT_LIGHT: Final = {role: FILLS[role] for role in ("a", "b", "c", "d", "declined")}
TEXT_DARK: Final = {
    "a": "#6fb7f2",
    "b": "#ff9d5c",
    "c": "#e29ad6",
    "d": "#4fd1b5",
    "declined": "#b8bcc2",
}
#: Every line and outline: at least 3:1 on white and on the dark grounds of known hosts.
LINE: Final = "#7d8590"
#: How much of the text's colour quiet words keep.
DIM: Final = 0.74


class Sign(NamedTuple):
    """A glyph and the size, in px, at which it looks as large as the others."""

    glyph: str
    size: int


#: The sign of each role, always followed by a word.
SIGNS: Final = {
    "a": Sign("●", 11),
    "b": Sign("▲", 10),
    "c": Sign("■", 11),
    "d": Sign("◆", 12),
    "declined": Sign("◌", 16),
    "failed": Sign("✕", 11),
    "not_reached": Sign("⋯", 13),
    "absent": Sign("∅", 12),
    "unchanged": Sign("=", 12),
    "yes": Sign("✓", 12),
    "no": Sign("–", 12),
    "idle": Sign("·", 12),
    "unreadable": Sign("?", 12),
    "completed": Sign("✓", 12),
    "stuck": Sign("▲", 10),
    "pending": Sign("◌", 16),
    "skipped": Sign("⤼", 13),
    "refused": Sign("⊘", 12),
    "current": Sign("▶", 10),
    "active": Sign("◐", 12),
    "noted": Sign("▲", 10),
}
#: Outlines of what was not judged: a line says the same everywhere, solid what is known, dashed
#: what is open, dotted what was passed by.
OUTLINES: Final = {
    "failed": "solid",
    "active": "solid",
    "absent": "solid",
    "unchanged": "solid",
    "plain": "solid",
    "not_reached": "dashed",
    "pending": "dashed",
    "skipped": "dotted",
}
#: Sign and line of the three lists of a ledger.
LEDGER: Final = {
    "checked": ("✓", "solid"),
    "not_checked": ("◌", "dashed"),
    "cannot_cover": ("⊘", "dotted"),
}

_CELL: Final = "vertical-align:top;padding:6px 10px;line-height:20px"
_CHIP: Final = (
    "display:inline-flex;box-sizing:border-box;height:22px;padding:0 8px;border-radius:5px;"
    "font-size:13px;font-weight:600;white-space:nowrap;vertical-align:top;margin:2px 3px 2px 0"
)
_TILE: Final = (
    "display:inline-block;width:18px;height:18px;border-radius:4px;"
    "text-align:center;vertical-align:top;margin:1px 4px 0 0"
)
_PLAIN_LIST: Final = "list-style:none;margin:0;padding:0"
_UNFLOATED: Final = (
    "float:none;width:auto;margin:0;padding:0;font-weight:400;overflow-wrap:break-word"
)

_STYLES: Final = {
    "root": "max-width:880px;box-sizing:border-box;padding:16px 20px 14px;font-size:13px;"
    "line-height:20px",
    "eyebrow": f"font-size:12px;line-height:18px;opacity:{DIM}",
    "headline": "margin:2px 0 0;font-size:18px;line-height:26px",
    "heading": "font-weight:600;margin-right:5px",
    "heading_data": "font-size:17px;font-weight:600;margin-right:5px",
    "lead": "margin:6px 0 0;font-size:14px;line-height:22px",
    "lead_quiet": f"margin:6px 0 0;font-size:12px;line-height:18px;opacity:{DIM}",
    "prose": "margin:0 0 6px",
    "quiet": f"margin:0 0 6px;font-size:12px;line-height:18px;opacity:{DIM}",
    "section": "margin:14px 0 0",
    "ruled": "margin:12px -10px 0;padding:14px 10px 0",
    "label": "padding:0 0 6px;font-size:14px;line-height:20px",
    "strong": "font-weight:600",
    "normal": "font-weight:400",
    "note": f"margin-left:5px;font-size:12px;font-weight:400;opacity:{DIM}",
    "dim": f"font-size:12px;opacity:{DIM}",
    "faint": f"opacity:{DIM}",
    "data": "font-size:12px",
    "name": "font-size:12px;font-weight:600",
    "foot": f"margin:12px 0 0;font-size:12px;line-height:18px;opacity:{DIM}",
    "wide": "overflow-x:auto;margin:0 -10px",
    "table": "border-collapse:collapse;width:100%;margin:0;table-layout:auto;font-size:13px;"
    "line-height:20px",
    "caption": "caption-side:top;text-align:left;padding:0 10px 6px;font-size:14px;"
    "line-height:20px",
    "head": "text-align:left;vertical-align:bottom;padding:2px 10px;font-size:12px;"
    f"line-height:20px;font-weight:500;border-bottom:1px solid {LINE}",
    "head_right": "text-align:right;vertical-align:bottom;padding:2px 10px;font-size:12px;"
    f"line-height:20px;font-weight:500;border-bottom:1px solid {LINE}",
    "cell": f"text-align:left;{_CELL}",
    "cell_right": f"text-align:right;{_CELL}",
    "cell_right_tight": f"text-align:right;white-space:nowrap;{_CELL}",
    "cell_tight": f"text-align:left;white-space:nowrap;{_CELL}",
    "row_head": f"text-align:left;font-weight:400;white-space:nowrap;{_CELL}",
    "row_head_open": f"text-align:left;font-weight:400;{_CELL}",
    "row_head_in": "text-align:left;font-weight:400;white-space:nowrap;vertical-align:top;"
    "padding:6px 10px 6px 24px;line-height:20px",
    "cell_in": "text-align:left;vertical-align:top;padding:6px 10px 6px 24px;line-height:20px",
    "under": "text-align:left;vertical-align:top;padding:0 10px 6px;line-height:20px",
    "line": "margin:0",
    "fold": "margin:6px 0 0",
    "summary": "font-size:13px;line-height:20px",
    "rail_fold": "margin:0 0 8px",
    "rail_empty": "margin:0 0 8px 18px",
    "rail_sign": "display:inline-block;width:15px;margin-right:2px;text-align:center;"
    "font-size:12px;line-height:16px",
    "item": "display:grid;grid-template-columns:repeat(auto-fit,minmax(250px,1fr));gap:0 12px;"
    "margin:0;padding:1px 0",
    "item_alone": "margin:0;padding:1px 0",
    "nowrap": "white-space:nowrap",
    "facts": "display:grid;gap:4px 16px;margin:0",
    "term": _UNFLOATED,
    "term_tight": f"{_UNFLOATED};white-space:nowrap",
    "said": _UNFLOATED,
    "bar": "display:flex;height:7px;margin:10px 0 0",
    "figure": "margin:0",
    "picture": "overflow-x:auto;margin:0 0 6px",
    "img": "display:block;max-width:none;margin:0",
    "key": f"margin:0 0 8px;font-size:12px;line-height:18px;opacity:{DIM}",
    "steps": "list-style:decimal;margin:0;padding:0 0 0 24px",
    "branches": f"{_PLAIN_LIST};padding:0 0 0 2px",
    "sides": "list-style:disc;margin:0;padding:0 0 0 24px",
    "step": "margin:0;padding:2px 0",
}
#: Inline styles by what they are on. None has a sign in it that would have to be escaped.
STYLES: Final = {place: Html(style) for place, style in _STYLES.items()}
#: The line under a ledger's words.
RAILS: Final = {
    style: f"list-style:none;margin:2px 0 0 4px;padding:0 0 0 24px;border-left:2px {line} {LINE}"
    for style, (_, line) in LEDGER.items()
}
#: A short line beside its word, in the key of a picture.
KEYS: Final = {
    line: "display:inline-block;width:26px;margin:0 7px 0 0;vertical-align:middle;"
    f"border-top:2px {line} {LINE}"
    for line in ("solid", "dashed", "dotted")
}


def chip_style(role: str) -> str:
    """Give the inline style of a chip: filled for what was judged, outlined for the rest.

    Examples
    --------
    >>> chip_style("a").endswith("line-height:22px;background-color:#0b5fa5;color:#ffffff")
    True
    """
    if role in FILLS:
        return f"{_CHIP};line-height:22px;background-color:{FILLS[role]};color:#ffffff"
    return f"{_CHIP};line-height:20px;border:1px {OUTLINES.get(role, 'solid')} {LINE}"


def tile_style(role: str) -> str:
    """Give the inline style of the square that stands before an outcome in a row."""
    size = SIGNS[role].size
    if role in FILLS:
        return (
            f"{_TILE};line-height:18px;font-size:{size}px;"
            f"background-color:{FILLS[role]};color:#ffffff"
        )
    edge = f"box-sizing:border-box;border:1px {OUTLINES[role]} {LINE}"
    return f"{_TILE};line-height:16px;font-size:{size}px;{edge}"


def mark_style(role: str) -> str:
    """Give the inline style of a bare glyph before a word."""
    if role == "current":  # before a number
        return f"{close_style(role)};margin-right:3px"
    return (
        "display:inline-block;width:14px;margin-right:5px;line-height:16px;"
        f"font-size:{SIGNS[role].size}px"
    )


def close_style(role: str) -> str:
    """Give the inline style of a glyph close before a name."""
    return f"display:inline-block;width:12px;line-height:16px;font-size:{SIGNS[role].size}px"


#: A word in an outline.
LABEL_STYLE: Final = (
    f"display:inline-block;box-sizing:border-box;border:1px solid {LINE};border-radius:4px;"
    "padding:0 5px;font-size:12px;line-height:16px;white-space:nowrap"
)


def glyph_style(role: str) -> str:
    """Give the inline style of the glyph in a chip."""
    return f"margin-right:5px;font-size:{SIGNS[role].size}px"


def bar_style(role: str, percent: float) -> str:
    """Give the inline style of one piece of the bar that shows proportions."""
    look = (
        f"background-color:{FILLS[role]}"
        if role in FILLS
        else f"border:1px {OUTLINES.get(role, 'solid')} {LINE}"
    )
    return (
        f"box-sizing:border-box;min-width:4px;margin-right:2px;border-radius:2px;{look};"
        f"width:{percent:.2f}%"
    )


@cache
def tokens() -> str:
    """Give the part of the stylesheet that names colours, as cards and widgets both need it."""
    return shortened(shipped("tokens.css"))


@cache
def css() -> str:
    """Give the stylesheet as it stands in every output: the files without comments and spaces."""
    return tokens() + shortened(shipped("card.css"))
