"""What an output shows, taken apart: its texts, block by block, and the texts in its picture.

Sharing layer. It reads what anybody wrote: nothing in it is run or fetched, and what cannot be
taken apart is simply not there.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from html import escape
from html.parser import HTMLParser
from typing import Final
from urllib.parse import unquote

from runbook_nb._value import frozen

#: Elements that have no end.
_VOID: Final = frozenset({"img", "col", "br", "hr", "meta", "input", "wbr"})
#: The answer an output carries, which is not shown. Any other comment is read as it stands: where
#: one ends is not the same for every reader.
_CARRIED: Final = re.compile(r"<!--runbook_nb:payload/[^<>]*-->")
_SVG: Final = "data:image/svg+xml;base64,"

#: What a card has that stands on a page of its own.
OWN_PAGE: Final = 'class="rbnb rbnb-page"'
#: How a card begins, whatever is said of it in which order.
_CARD: Final = re.compile(r'<div\b(?: [^<>]*)? class="rbnb[" ]')
#: What a widget puts around its static view, for its script to find it by.
_MARKED: Final = re.compile(r'<div class="rb-[0-9a-f]{8}">(.*)</div>\s*\Z', re.DOTALL)

_OPENS: Final = re.compile(r"<(?!img\b)[a-z]")

#: Largest picture that is looked into, in characters of its address.
MAX_PICTURE: Final = 4_000_000


@frozen
class Picture:
    """An image in an output.

    Attributes
    ----------
    uri, alt : str
    texts : tuple of str or None
        The texts in it; None where it cannot be read.
    """

    uri: str
    alt: str
    texts: tuple[str, ...] | None


@frozen
class Block:
    """One of the parts an output shows under each other.

    Attributes
    ----------
    label : str
        What it is headed by; of the parts above the first section the place they have.
    rows : tuple of tuple of str
        Its texts; those of one table row, list item or other element belong together.
    pictures : tuple of Picture
    html : str
        As it is written.
    """

    label: str
    rows: tuple[tuple[str, ...], ...]
    pictures: tuple[Picture, ...]
    html: str


#: Elements whose texts belong together.
_LINES: Final = frozenset({"tr", "li", "dt", "dd", "div", "caption", "summary", "figcaption"})


class _Reader(HTMLParser):
    """Reads the blocks of one card."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text = text
        self.blocks: list[Block] = []
        self._open: list[str] = []
        self._start = 0
        self._rows: list[list[str]] = [[]]
        self._pictures: list[Picture] = []
        self.spans: list[tuple[int, int]] = []
        self._lines = [0]
        for line in text.split("\n"):
            self._lines.append(self._lines[-1] + len(line) + 1)

    def _at(self) -> int:
        line, column = self.getpos()
        return self._lines[line - 1] + column

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if len(self._open) == 1:
            self._start = self._at()
            self._rows, self._pictures = [[]], []
        if tag in _LINES and self._rows[-1]:
            self._rows.append([])
        if tag == "img":
            given = dict(attrs)
            uri, alt = given.get("src") or "", given.get("alt") or ""
            self._pictures.append(Picture(uri=uri, alt=alt, texts=texts_of(uri)))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID or tag not in self._open:
            return
        while self._open.pop() != tag:
            pass
        if tag in _LINES and self._rows[-1]:
            self._rows.append([])
        if len(self._open) == 1:
            self._close(self._at() + len(f"</{tag}>"))

    def handle_data(self, data: str) -> None:
        if data.strip() and (not self._open or self._open[-1] != "style"):
            self._rows[-1].append(" ".join(data.split()))

    def handle_comment(self, data: str) -> None:
        self._rows[-1].append(f"<!--{data}-->")

    def _close(self, end: int) -> None:
        rows = tuple(tuple(row) for row in self._rows if row)
        html = self.text[self._start : end]
        self.spans.append((self._start, end))
        self.blocks.append(Block(label="", rows=rows, pictures=tuple(self._pictures), html=html))


def card_in(html: str) -> str | None:
    """Give the part of a text that is a card of ours; None where there is none.

    Examples
    --------
    >>> card_in('<p>x</p><div class="rbnb" lang="en"><div>a</div></div><p>y</p>')
    '<div class="rbnb" lang="en"><div>a</div></div>'
    """
    return next(_cards(html), None)


def cards_in(html: str) -> list[str]:
    """Give every part of a text that is a card of ours, in its order.

    Examples
    --------
    >>> cards_in('<div class="rbnb">a</div><p>y</p><div lang="en" class="rbnb">b</div>')
    ['<div class="rbnb">a</div>', '<div lang="en" class="rbnb">b</div>']
    """
    found: list[str] = []
    for card in _cards(html):
        if card is None:
            break
        found.append(card)
    return found


def _cards(html: str) -> Iterator[str | None]:
    at = 0
    while (found := _CARD.search(html, at)) is not None:
        card = _Extent(html[found.start() :]).card
        yield card
        at = found.start() + (len(card) if card else len(html))


def unwrapped(html: str) -> str:
    """Give the HTML of a widget's static view without the mark its script finds it by.

    Examples
    --------
    >>> unwrapped('<div class="rb-0ff49849"><div class="rbnb">a</div></div>')
    '<div class="rbnb">a</div>'
    """
    found = _MARKED.match(html)
    return html if found is None else found[1]


def alike(html: str) -> str:
    """Write HTML so that what says the same is the same: whoever saves it may write it otherwise.

    Examples
    --------
    >>> alike('<br/><p lang=en class="a" hidden>it&#39;s</p>') == alike(
    ...     '<br><p class="a" hidden="" lang="en">it&apos;s</p>')
    True
    """
    writer = _Writer(convert_charrefs=True)
    writer.feed(html)
    writer.close()
    return "".join(writer.written)


def looks_of(html: str) -> set[str]:
    """Give the ways in which parts of a text are drawn: its elements with what is said of each.

    Pictures are left out: what they look like depends on what drew them.

    Examples
    --------
    >>> sorted(looks_of('<li class="a">x<img width="3"><b>y</b></li><li hidden class="a">z</li>'))
    ['<b>', '<li class="a" hidden="">', '<li class="a">']
    """
    writer = _Writer(convert_charrefs=True)
    writer.feed(html)
    writer.close()
    return {one for one in writer.written if _OPENS.match(one)}


class _Writer(HTMLParser):
    """Writes what it reads: attributes in the order of their names, and one spelling of texts."""

    def __init__(self, *, convert_charrefs: bool) -> None:
        super().__init__(convert_charrefs=convert_charrefs)
        self.written: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = sorted(attrs, key=lambda one: one[0])  # of two of one name the first counts
        said = "".join(f' {name}="{escape(value or "")}"' for name, value in told)
        self.written.append(f"<{tag}{said}>")

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            self.written.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        raw = self.cdata_elem is not None
        self.written.append(data if raw else escape(data, quote=False))

    def handle_comment(self, data: str) -> None:
        self.written.append(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        self.written.append(f"<!{decl}>")

    def handle_pi(self, data: str) -> None:
        self.written.append(f"<?{data}>")

    def unknown_decl(self, data: str) -> None:
        self.written.append(f"<![{data}]>")


class _Ended(Exception):
    """The element that was looked for has ended."""


class _Extent(HTMLParser):
    """Finds where the first element of a text ends."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.card: str | None = None
        self._text, self._depth = text, 0
        self._lines = [0]
        for line in text.split("\n"):
            self._lines.append(self._lines[-1] + len(line) + 1)
        try:
            self.feed(text)
        except _Ended:
            return

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._depth += tag not in _VOID

    def handle_endtag(self, tag: str) -> None:
        self._depth -= tag not in _VOID
        if not self._depth and self.card is None:
            line, column = self.getpos()
            end = self._lines[line - 1] + column + len(f"</{tag}>")
            self.card = self._text[:end]
            raise _Ended


def blocks_of(card: str) -> Sequence[Block]:
    """Take a card apart, its style and what it carries apart.

    Examples
    --------
    >>> rules = "<div><strong>Rules</strong> <samp>v1</samp></div>"
    >>> card = f'<div class="rbnb"><div>a</div>{rules}</div>'
    >>> [(block.label, block.rows) for block in blocks_of(card)]
    [('part 1', (('a',),)), ('Rules', (('Rules', 'v1'),))]
    """
    reader = _Reader(_CARRIED.sub("", card))
    reader.feed(reader.text)
    named: list[Block] = []
    for block in reader.blocks:
        if block.html.startswith("<style"):
            continue
        label = _label(block.html) or f"part {len(named) + 1}"
        named.append(Block(label=label, rows=block.rows, pictures=block.pictures, html=block.html))
    return named


_HEADED: Final = re.compile(
    r'<div[^>]*>(?:<div[^>]*>)?(?:<div [^>]*class="rb-wide"[^>]*><table[^>]*><caption[^>]*>)?'
    r"<strong[^>]*>([A-Z][a-z ]+)</strong>"
)


def _label(html: str) -> str:
    found = _HEADED.match(html)
    return "" if found is None else found[1]


def beside_blocks(html: str) -> tuple[tuple[str, ...], str]:
    """Give what stands around a card and between its blocks: the texts there, and all of it.

    Examples
    --------
    >>> beside_blocks('<p>x</p><div class="rbnb">y<div>a</div></div>')
    (('x', 'y'), '<p>x</p><div class="rbnb">y</div>')
    """
    text = _CARRIED.sub("", html)
    card = card_in(text) or ""
    reader = _Reader(card)
    reader.feed(card)
    start, kept = text.index(card), []
    at = 0
    for begin, end in reader.spans:
        if not card.startswith("<style", begin):
            kept.append(card[at:begin])
            at = end
    rest = text[:start] + "".join(kept) + card[at:] + text[start + len(card) :]
    loose = _Loose(convert_charrefs=True)
    loose.feed(rest)
    loose.close()
    return tuple(loose.texts), " ".join(rest.split())


class _Loose(HTMLParser):
    """Reads every text and picture of a piece of HTML, in which nothing need be closed."""

    def __init__(self, *, convert_charrefs: bool) -> None:
        super().__init__(convert_charrefs=convert_charrefs)
        self.texts: list[str] = []
        self._styled = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._styled = tag == "style"
        if tag == "img":
            self.texts.append(f"a picture: {dict(attrs).get('alt') or ''}")

    def handle_endtag(self, tag: str) -> None:
        self._styled = self._styled and tag != "style"

    def handle_data(self, data: str) -> None:
        if data.strip() and not self._styled:
            self.texts.append(" ".join(data.split()))

    def handle_comment(self, data: str) -> None:
        self.texts.append(f"<!--{data}-->")


def texts_of(uri: str) -> tuple[str, ...] | None:
    """Give the texts in a picture that is part of its address; None where there is none.

    Examples
    --------
    >>> packed = base64.b64encode(b"<svg><text>a &lt; b</text></svg>").decode()
    >>> texts_of(f"data:image/svg+xml;base64,{packed}")
    ('a < b',)
    """
    if not uri.startswith(_SVG) or len(uri) > MAX_PICTURE:
        return None
    try:
        svg = base64.b64decode(unquote(uri.removeprefix(_SVG)), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None
    reader = _PictureTexts(convert_charrefs=True)
    reader.feed(svg)
    return tuple(reader.texts)


class _PictureTexts(HTMLParser):
    """Reads the texts of an SVG, each whole."""

    def __init__(self, *, convert_charrefs: bool) -> None:
        super().__init__(convert_charrefs=convert_charrefs)
        self.texts: list[str] = []
        self._inside = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("text", "title", "desc"):
            self._inside += 1
            self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("text", "title", "desc"):
            self._inside -= 1
            self.texts[-1] = " ".join(self.texts[-1].split())

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.texts[-1] += data
