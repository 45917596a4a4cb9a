"""What a page of ours says below the answer: the call, and the tickets of what was filed.

Sharing layer. A copy may leave tickets out, so these are held against it one by one and not as the
rest of the page is, to the byte.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Final

from runbook_nb._text import visible
from runbook_nb.record.claims import Claims, Place
from runbook_nb.runbook import Envelope

#: What a page calls them, and how a claim about them is called.
NAMES: Final = {
    "Call": "call",
    "Walk": "walk",
    "Whole walk": "columns",
    "Recording": "recording",
}
_FACT: Final = re.compile(rf"<dt>({'|'.join(NAMES)})</dt> <dd>([^<>]*)</dd>\n")
_CARRIED: Final = "the answer carried in the page"


def without_facts(html: str) -> str:
    r"""Leave out what a page says of the call and of tickets.

    Examples
    --------
    >>> without_facts("<dl><dt>Call</dt> <dd>call_1</dd>\n</dl>")
    '<dl></dl>'
    """
    return _FACT.sub("", html)


def claim_facts(envelope: Envelope, html: str, name: str, place: Place, claims: Claims) -> None:
    """Claim that the call and the tickets a page names are those of the answer it carries."""
    from runbook_nb.share.report import provenance

    found = [(term, unescape(said)) for term, said in _FACT.findall(html)]
    wanted = {term: visible(said) for term, said in provenance(envelope) if term in NAMES}
    for term in dict.fromkeys([*wanted, *(term for term, _ in found)]):
        said = [one for other, one in found if other == term]
        told, id_ = f"{term} {', '.join(said)}", f"{name}.{NAMES[term]}.id"
        if term in wanted:
            held = said == [wanted[term]]
            pair = (said[0] if len(said) == 1 else said or None, wanted[term])
            claims.settle(id_, told, held, _CARRIED, place, told=pair)
        else:
            claims.unchecked(id_, told, "the answer in the page does not carry it", place)
