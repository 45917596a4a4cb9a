"""Where two JSON values that should be the same differ, place by place.

Bridge layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from runbook_nb._text import clip, show, visible
from runbook_nb.record.claims import quoted, same
from runbook_nb.runbook.verdicts import subject_column

#: Places that are named at most.
NAMED: Final = 3
#: Stands for what one of two copies has not.
_ABSENT: Final = object()
#: Leads to what an answer says, in every one; it is left out of places.
_USUAL: Final = ("envelope", "result")


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
