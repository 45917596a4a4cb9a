"""HTML made of elements, in which text cannot be mistaken for markup.

The law kept: a ``str`` is text and is escaped wherever it is put; what stands as it is has the type
`Html`, which only `tag`, `together` and constants of ours make. Nothing is loaded for it, so that
the first answer of a session does not wait for a template language.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final


class Html(str):
    """Text that is HTML already. Writing ``Html(text)`` vouches for the text."""

    __slots__ = ()


#: Attributes whose names Python cannot write.
_NAMES: Final = {"class_": "class", "aria_hidden": "aria-hidden"}
#: Elements that hold nothing and have no end.
_VOID: Final = frozenset({"col", "img"})


def escape(text: str) -> Html:
    """Give text as HTML that shows it, also inside a quoted attribute.

    Examples
    --------
    >>> escape('<b title="x">')
    '&lt;b title=&#34;x&#34;&gt;'
    """
    if text.__class__ is Html:
        return text
    return Html(
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
    return Html(escape(between).join([escape(piece) for piece in pieces]))


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
    made = ["<", name]
    for key, value in attributes.items():
        if value is True:
            made.append(f" {_NAMES.get(key, key)}")
        elif value is not None and value is not False:
            made.append(f' {_NAMES.get(key, key)}="{escape(value)}"')
    made.append(">")
    if name not in _VOID:
        made += map(escape, inner)
        made.append(f"</{name}>")
    return Html("".join(made))
