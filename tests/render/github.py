"""What GitHub's published rules for markup of others keep of an HTML output.

The rules are those of html-pipeline's ``SanitizationFilter``, in which GitHub published what it
lets through; how it shows a notebook is not published, so this is the strict reading: what is
kept here can be counted on, what is not may be shown all the same. Tags that are not listed go and
their text stays, except the text of ``script``, ``style`` and their like.
"""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser

from untrusted import SILENT, VOID, listed

#: By version of html-pipeline: the second of two lists, the newer one lets more through.
TAGS = {
    2: listed(
        "h1 h2 h3 h4 h5 h6 h7 h8 br b i strong em a pre code img tt div ins del sup sub p ol ul "
        "table thead tbody tfoot blockquote dl dt dd kbd q samp var hr ruby rt rp li tr td th s "
        "strike summary details"
    ),
}
TAGS[3] = TAGS[2] - listed("h7 h8") | listed(
    "caption figure figcaption abbr bdo cite dfn mark small span time wbr"
)
EVERYWHERE = listed(
    "abbr accept accept-charset accesskey action align alt axis border cellpadding cellspacing "
    "char charoff charset checked clear cols colspan color compact coords datetime dir disabled "
    "enctype for frame headers height hreflang hspace ismap label lang maxlength media method "
    "multiple name nohref noshade nowrap open prompt readonly rel rev rows rowspan rules scope "
    "selected shape size span start summary tabindex title type usemap valign value width itemprop"
)
BY_TAG = {"a": "href", "img": "src longdesc", "div": "itemscope itemtype"}
#: A picture has to come from the web, or from beside the file.
SOURCES = re.compile(r"(?i)https?:|[^:]*$")


class _Filter(HTMLParser):
    def __init__(self, tags: frozenset[str]) -> None:
        super().__init__(convert_charrefs=True)
        self._tags = tags
        self.out: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag, attrs):
        self._silent += tag in SILENT
        if self._silent or tag not in self._tags:
            return
        allowed = EVERYWHERE | listed(BY_TAG.get(tag, ""))
        kept = [
            f' {name}="{escape(value or "")}"'
            for name, value in attrs
            if name in allowed and (name not in ("src", "href") or SOURCES.match(value or ""))
        ]
        self.out.append(f"<{tag}{''.join(kept)}>")

    def handle_endtag(self, tag):
        self._silent -= tag in SILENT
        if not self._silent and tag in self._tags and tag not in VOID:
            self.out.append(f"</{tag}>")

    def handle_data(self, data):
        if not self._silent:
            self.out.append(escape(data, quote=False))


def kept_by_github(html: str, *, version: int = 2) -> str:
    """Give what is kept of an output under the rules of one version of html-pipeline."""
    parser = _Filter(TAGS[version])
    parser.feed(html)
    parser.close()
    return "".join(parser.out)
