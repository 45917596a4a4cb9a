"""What was changed in an answer after it was written, as far as another copy of it tells.

Sharing layer. A digest tells that something was changed and not what. An output carries its answer
twice, and whoever changes one copy by hand leaves the other to be held against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from runbook_nb._text import clip, listed, show, visible
from runbook_nb.record.claims import quoted, same
from runbook_nb.runbook.verdicts import subject_column
from runbook_nb.share.hydrate import Found

CARRIERS: Final = {"metadata": "its metadata", "comment": "its HTML", "file": "the file"}

#: Places that are named at most.
NAMED: Final = 3
#: Stands for what one of two copies has not.
_ABSENT: Final = object()
#: Leads to what an answer says, in every one; it is left out of places.
_USUAL: Final = ("envelope", "result")


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


def differences(found: Any, there: Any, place: str = "") -> Iterator[str]:
    """Yield the places at which two JSON values differ, with what each has.

    Examples
    --------
    >>> one = {"verdicts": [{"host": "db-1", "disk_pct": 79.0}]}
    >>> other = {"verdicts": [{"host": "db-1", "disk_pct": 78.0}]}
    >>> list(differences(one, other))
    ['verdicts[host=db-1].disk_pct: 79.0, there 78.0']
    """
    if isinstance(found, Mapping) and isinstance(there, Mapping):
        for key in dict.fromkeys((*there, *found)):
            held = found.get(key, _ABSENT), there.get(key, _ABSENT)
            step = "" if not place and key in _USUAL else _step(key)
            yield from differences(*held, f"{place}{'.' if place and step else ''}{step}")
    elif isinstance(found, list) and isinstance(there, list) and len(found) == len(there):
        for number, (one, other) in enumerate(zip(found, there, strict=True)):
            yield from differences(one, other, f"{place}[{_named(other, one, number)}]")
    elif isinstance(found, list) and isinstance(there, list):
        yield f"{place}: {len(found)} entries, there {len(there)}"
    elif found is _ABSENT or there is _ABSENT or not same(found, there):
        yield f"{place}: {_told(found)}, there {_told(there)}"


def _step(key: Any) -> str:
    return clip(visible(str(key)), 60)


def _named(there: Any, found: Any, number: int) -> str:
    """Name an entry of a list by whom it is about, where both copies say so, else its number."""
    if isinstance(there, Mapping) and isinstance(found, Mapping):
        column = subject_column(there)
        name = None if column is None else there[column]
        if isinstance(name, str | int) and name == found.get(column):
            return f"{_step(column)}={clip(visible(show(name)), 60)}"
    return str(number)


def _told(value: Any) -> str:
    return "nothing" if value is _ABSENT else clip(quoted(value), 80)
