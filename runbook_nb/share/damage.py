"""What was changed in an answer after it was written, as far as another copy of it tells.

Sharing layer. A digest tells that something was changed and not what. An output carries its answer
twice, and whoever changes one copy by hand leaves the other to be held against it.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from runbook_nb._text import listed
from runbook_nb.runbook.differing import NAMED, differences
from runbook_nb.share.hydrate import Found

CARRIERS: Final = {"metadata": "its metadata", "comment": "its HTML", "file": "the file"}


def damage_of(one: Found, copy: Found | None) -> str:
    """Say in a sentence what is wrong with an answer that its digest speaks against.

    Parameters
    ----------
    one : Found
        The damaged one.
    copy : Found or None
        What the same output carries of it elsewhere, intact.

    Examples
    --------
    >>> damaged = Found(place="the page", payload=None, left={"rows": 3})
    >>> damage_of(damaged, None)
    'the answer in the page was changed after it was written'
    >>> damage_of(damaged, Found(place="the page", payload={"rows": 2}, carrier="metadata"))
    'the answer in the page was changed after it was written; it differs from the copy in its \
metadata at rows: 3, there 2'
    """
    within = "" if one.output is None else f"the {_HOLDS[one.carrier]} of "
    name = f"the answer in {within}{one.place}"
    if one.left is None:
        beside = "" if copy is None else f"; the copy in {CARRIERS[copy.carrier]} can be"
        return f"{name} cannot be read, or not by this version{beside}"
    if copy is None or copy.payload is None:
        return f"{name} was changed after it was written"
    where = CARRIERS[copy.carrier]
    try:
        found = list(islice(differences(one.left, copy.payload), NAMED + 1))
    except RecursionError:
        return f"{name} was changed after it was written"
    if not found:
        return f"{name} is the same as the copy in {where}, and its digest was changed"
    more = ["more"] if len(found) > NAMED else []
    places = listed([*found[:NAMED], *more])
    return (
        f"{name} was changed after it was written; it differs from the copy in {where} at {places}"
    )


_HOLDS: Final = {"metadata": "metadata", "comment": "HTML", "file": "text"}
