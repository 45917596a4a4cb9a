"""HTML made of elements, in which text cannot be mistaken for markup.

The law kept: a ``str`` is text and is escaped wherever it is put; what stands as it is has the type
`Html`, which only `tag`, `together` and constants of ours make. Nothing is loaded for it, so that
the first answer of a session does not wait for a template language.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final


class Html(str):
    """Text that is HTML already. Writing ``Html(text)`` vouches for the text."""

    __slots__ = ()


#: Attributes whose names Python cannot write.
_NAMES: Final = {"class_": "class", "aria_hidden": "aria-hidden", "aria_label": "aria-label"}
#: Elements that hold nothing and have no end.
_VOID: Final = frozenset({"col", "img"})
#: Finds what cannot stand in HTML as it is.
_MARKUP: Final = re.compile("[&><'\"]").search


def escape(text: str) -> Html:
    """Give text as HTML that shows it, also inside a quoted attribute.

    Examples
    --------
    >>> escape('<b title="x">')
    '&lt;b title=&#34;x&#34;&gt;'
    """
    return text if type(text) is Html else Html(_escaped(text))


def character_data(text: str) -> Html:
    """Give text as it stands between tags, where quotes mean nothing: in SVG, in a stylesheet.

    Examples
    --------
    >>> character_data('a "b" < c')
    'a "b" &lt; c'
    """
    return Html(text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def _escaped(text: str) -> str:
    if type(text) is Html or _MARKUP(text) is None:  # most texts have nothing to escape
        return text
    return (
        text.replace("&", "&amp;")
        .replace(">", "&gt;")
        .replace("<", "&lt;")
        .replace("'", "&#39;")
        .replace('"', "&#34;")
    )


def together(pieces: Iterable[str], between: str = "") -> Html:
    """Put pieces next to each other, each escaped unless it is `Html`.

    Examples
    --------
    >>> together(["a < b", tag("b", "c")], " · ")
    'a &lt; b · <b>c</b>'
    """
    return Html(_escaped(between).join(map(_escaped, pieces)))


def tag(name: str, /, *inner: str, **attributes: str | bool | None) -> Html:
    """Make an element; what is inside is escaped unless it is `Html`.

    Parameters
    ----------
    name : str
        The element.
    *inner : str
        What it holds.
    **attributes : str, bool or None
        In the order they are written; True writes the name alone, False and None nothing.

    Examples
    --------
    >>> tag("details", "x > y", class_="fold", open=True, title=None)
    '<details class="fold" open>x &gt; y</details>'
    """
    start = _start(name, attributes)
    return Html(start if name in _VOID else f"{start}{''.join(map(_escaped, inner))}</{name}>")


def element(name: str, /, **attributes: str | bool | None) -> Callable[..., Html]:
    """Give what makes elements that differ in nothing but what they hold; see `tag`.

    Examples
    --------
    >>> word = element("span", class_="word")
    >>> word("a", " & b")
    '<span class="word">a &amp; b</span>'
    """
    start, end = _start(name, attributes), f"</{name}>"

    def made(*inner: str) -> Html:
        return Html(f"{start}{''.join(map(_escaped, inner))}{end}")

    return made


def _start(name: str, attributes: Mapping[str, str | bool | None]) -> str:
    start = f"<{name}"
    for key, value in attributes.items():
        if value is True:
            start += f" {_NAMES.get(key, key)}"
        elif value is not None and value is not False:
            start += f' {_NAMES.get(key, key)}="{_escaped(value)}"'
    return f"{start}>"
