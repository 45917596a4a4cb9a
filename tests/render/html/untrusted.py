"""What an untrusted notebook keeps of an HTML output, as JupyterLab was measured to do it.

An allow-list of tags, attributes and literal style values: everything else is dropped, text of
dropped tags is kept, except that of tags whose text is no text (``style``, ``script``).
"""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser


def listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


TAGS = listed(
    "a abbr acronym address area article aside audio b bdi bdo big blockquote br button canvas "
    "caption center cite code col colgroup colspan command data datalist dd del details dfn dir "
    "div dl dt em fieldset figcaption figure font footer form h1 h2 h3 h4 h5 h6 header hgroup hr "
    "i img input ins kbd label legend li map mark menu meter nav nobr ol optgroup option output p "
    "pre progress q rowspan s samp section select small source span strike strong sub summary sup "
    "table tbody td textarea tfoot th thead time tr track tt u ul var video wbr"
)
#: Tags that are dropped together with what is in them.
SILENT = frozenset(("style", "script", "textarea", "option", "noscript"))
VOID = listed("area br col hr img input source track wbr")

EVERYWHERE = listed(
    "class dir draggable hidden id inert itemprop itemref itemscope lang spellcheck style title "
    "translate"
)
CELLS = "abbr align axis bgcolor char charoff colspan headers height nowrap rowspan scope valign"
BY_TAG = {
    "a": "accesskey coords href hreflang name rel shape tabindex target type",
    "caption": "align",
    "col": "align char charoff span valign width",
    "colgroup": "align char charoff span valign width",
    "data": "value",
    "details": "open",
    "div": "align",
    "dl": "compact",
    "font": "color face size",
    "hr": "align noshade size width",
    "img": "align alt border height hspace ismap name src usemap vspace width",
    "li": "type value",
    "meter": "high low max min value",
    "ol": "compact reversed start type",
    "p": "align",
    "pre": "width",
    "progress": "max min value",
    "table": "align bgcolor border cellpadding cellspacing frame rules summary width",
    "tbody": "align char charoff valign",
    "td": f"{CELLS} width",
    "th": f"{CELLS} width",
    "thead": "align char charoff valign",
    "tr": "align bgcolor char charoff valign",
    "ul": "compact type",
}
#: What may be lost on the way to an untrusted notebook: colours, and hints for assistive software.
HINTS = {"<style>", "aria-hidden=", "aria-label=", "role=", "tabindex="}

# --- style values ------------------------------------------------------------------------------

_NUM = r"[+-]?(?:\d*\.)?\d+"
_LEN = rf"(?:{_NUM}(?:px|em|rem|ex|in|cm|mm|pt|pc)|0)"
_LEN_PERC = rf"(?:{_NUM}(?:px|em|rem|ex|in|cm|mm|pt|pc|%)|0)"
_BYTE = r"\s*\d{1,3}\s*"
_COLOR = (
    rf"(?:#[0-9a-f]+|rgb\({_BYTE},{_BYTE},{_BYTE}\)|rgba\({_BYTE},{_BYTE},{_BYTE},"
    r"\s*(?:0(?:\.\d+)?|1(?:\.0+)?)\s*\)|transparent|black|white|gray|red|green|blue)"
)
_LINE = r"(?:none|hidden|dotted|dashed|solid|double|groove|ridge|inset|outset)"
_BORDER = rf"(?:(?:thin|medium|thick|{_LEN}|{_LINE}|{_COLOR})\s*){{1,3}}"
_WORDS = r"(?:-?[_a-z][_a-z0-9-]*\s*)+"
_FAMILY = rf"(?:\"[^\"\n]*\"|'[^'\n]*'|{_WORDS})"
_BREADTH = rf"(?:{_LEN_PERC}|auto|max-content|min-content)"
_FLEXIBLE = rf"(?:{_BREADTH}|\d*\.?\d+fr)"
_TRACK = rf"(?:{_FLEXIBLE}|minmax\(\s*{_BREADTH}\s*,\s*{_FLEXIBLE}\s*\))"

VALUES = {
    "background": _COLOR,
    "background-color": _COLOR,
    "color": _COLOR,
    **dict.fromkeys(
        ("border", "border-top", "border-right", "border-bottom", "border-left"), _BORDER
    ),
    "border-collapse": "collapse|separate",
    "border-radius": rf"(?:{_LEN_PERC}\s*){{1,4}}",
    "border-spacing": rf"{_LEN}(?:\s+{_LEN})?",
    "border-style": rf"(?:{_LINE}\s*){{1,4}}",
    "border-width": rf"(?:{_LEN}\s*){{1,4}}",
    "box-sizing": "content-box|padding-box|border-box",
    "caption-side": "top|bottom",
    "clear": "none|left|right|both",
    "display": "inline|block|list-item|inline-block|table|inline-table|table-cell|table-caption|"
    "flex|inline-flex|grid|inline-grid|auto|none|table-row|table-column|inherit",
    "flex": r"\d+(?:\s+\d+(?:\s+\S+)?)?",
    "float": "left|right|none",
    "font-family": rf"{_FAMILY}(?:,\s*{_FAMILY})*",
    "font-size": rf"x?x-small|small|medium|large|x?x-large|smaller|larger|{_LEN_PERC}",
    "font-style": "normal|italic|oblique",
    "font-variant": "normal|small-caps",
    "font-weight": "normal|bold|bolder|lighter|[1-9]00",
    "gap": rf"{_LEN_PERC}(?:\s+{_LEN_PERC})?",
    "grid-template-columns": rf"(?:(?:{_TRACK}|repeat\([a-z0-9-]+,\s*{_TRACK}\))\s*)+",
    **dict.fromkeys(("height", "width"), rf"{_LEN_PERC}|auto"),
    "line-height": rf"normal|{_NUM}|{_LEN_PERC}",
    "list-style": r"(?:(?:disc|circle|square|decimal|inside|outside|none)\s*){1,3}",
    "list-style-type": "disc|circle|square|decimal|none",
    "margin": rf"(?:(?:{_LEN_PERC}|auto)\s*){{1,4}}",
    **dict.fromkeys(
        ("margin-top", "margin-right", "margin-bottom", "margin-left"), rf"{_LEN_PERC}|auto"
    ),
    **dict.fromkeys(
        ("max-height", "max-width", "min-height", "min-width"), rf"{_LEN_PERC}|none|auto"
    ),
    "opacity": r"\+?(?:1(?:\.0+)?|0(?:\.\d+)?)",
    "overflow": "visible|hidden|scroll|auto",
    "overflow-wrap": "normal|break-word",
    "overflow-x": "visible|hidden|scroll|auto",
    "overflow-y": "visible|hidden|scroll|auto",
    "padding": rf"(?:{_LEN_PERC}\s*){{1,4}}",
    **dict.fromkeys(("padding-top", "padding-right", "padding-bottom", "padding-left"), _LEN_PERC),
    "position": "static|relative|absolute",
    "table-layout": "auto|fixed",
    "text-align": "left|right|center|justify",
    "text-decoration": r"none|(?:(?:underline|overline|line-through)\s*)+",
    "vertical-align": f"baseline|sub|super|top|text-top|middle|bottom|text-bottom|{_LEN_PERC}",
    "white-space": "normal|pre|nowrap|pre-wrap|pre-line",
    "word-break": "normal|keep-all|break-all",
}
_KNOWN = {name: re.compile(f"^(?:{value})$", re.IGNORECASE) for name, value in VALUES.items()}


def kept_style(style: str) -> str:
    """Keep the declarations that an untrusted notebook keeps."""
    kept = []
    for declaration in style.split(";"):
        name, _, value = declaration.partition(":")
        name, value = name.strip().lower(), value.strip()
        if name in _KNOWN and _KNOWN[name].match(value):
            kept.append(f"{name}:{value}")
    return ";".join(kept)


class _Sanitizer(HTMLParser):
    def __init__(self, *, styles: bool) -> None:
        super().__init__(convert_charrefs=True)
        self.out: list[str] = []
        self.dropped: list[str] = []
        self._styles = styles
        self._silent = 0

    def handle_starttag(self, tag, attrs):
        if tag in SILENT:
            self._silent += 1
        if tag not in TAGS:
            self.dropped.append(f"<{tag}>")
            return
        if self._silent:
            return
        allowed = EVERYWHERE | set(BY_TAG.get(tag, "").split())
        written = []
        for given, value in attrs:
            name = "data-jupyter-id" if given == "id" else given
            text = "" if value is None else value
            if given not in allowed:
                self.dropped.append(f"{name}=")
                continue
            if name == "href" and not re.match(r"(?i)(https?|mailto|ftp|tel):|[^:]*$", text):
                self.dropped.append(f"href={text}")
                continue
            if name == "style":
                kept = kept_style(text) if self._styles else ""
                if kept != text:
                    self.dropped.append(f"style {text}")
                if not kept:
                    continue
                text = kept
            written.append(f' {name}="{escape(text)}"')
        self.out.append(f"<{tag}{''.join(written)}>")

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        if tag in SILENT:
            self._silent = max(self._silent - 1, 0)
        if tag in TAGS and not self._silent and tag not in VOID:
            self.out.append(f"</{tag}>")

    def handle_data(self, data):
        if not self._silent:
            self.out.append(escape(data, quote=False))


def sanitized(html: str, *, styles: bool = True) -> str:
    """Give what an untrusted notebook keeps; without ``styles`` every style attribute goes too."""
    parser = _Sanitizer(styles=styles)
    parser.feed(html)
    parser.close()
    return "".join(parser.out)


def dropped(html: str) -> list[str]:
    """List what an untrusted notebook takes away, style declarations it cuts included."""
    parser = _Sanitizer(styles=True)
    parser.feed(html)
    parser.close()
    return parser.dropped


class _Reader(HTMLParser):
    BLOCKS = listed("div p table caption tr tbody thead details summary ul ol li dl dt dd")

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._silent = 0

    def _edge(self, tag):
        if tag in self.BLOCKS:
            self.parts.append("\n")
        if tag in ("td", "th"):
            self.parts.append(" ")

    def handle_starttag(self, tag, attrs):
        self._silent += tag in SILENT
        self._edge(tag)
        if tag == "img":
            self.parts.append(f"\n[{dict(attrs).get('alt', '')}]\n")

    def handle_endtag(self, tag):
        self._silent -= tag in SILENT
        self._edge(tag)

    def handle_data(self, data):
        if not self._silent:
            self.parts.append(data)


def reading(html: str) -> list[str]:
    """Give the lines a reader meets where nothing but the order of the tags is left."""
    reader = _Reader()
    reader.feed(html)
    lines = re.sub(r"[ \t\r\f\v\xa0]+", " ", "".join(reader.parts)).split("\n")
    return [line.strip() for line in lines if line.strip()]
