"""Paths into arguments and results: ``query.index``, ``hosts[0].name``, ``headers["x-id"]``.

A path names one place and nothing else: there are no filters, no wildcards, no way up.
"""

from __future__ import annotations

import re
from typing import Any, Final

from runbook_nb._text import clip, visible
from runbook_nb.rules.facts import follow

#: Longest path, in characters, and how many steps it may take.
MAX_LENGTH: Final = 200
MAX_STEPS: Final = 20

_STEP: Final = re.compile(r"(?:\A|(?<=.)\.)([^\W\d][\w-]*)|\[(\d{1,6})\]|\[\"([^\"\\]+)\"\]")


def read_path(text: str) -> tuple[str, ...]:
    """Read a path as the steps it takes; an empty one is the whole.

    Raises
    ------
    ValueError
        It is no path; the message says where it ends to be one.

    Examples
    --------
    >>> read_path('query.hosts[0]["x.y"]'), read_path("")
    (('query', 'hosts', '0', 'x.y'), ())
    """
    if len(text) > MAX_LENGTH:
        raise ValueError(f"is longer than {MAX_LENGTH} characters")
    steps: list[str] = []
    place = 0
    while place < len(text):
        found = _STEP.match(text, place)
        if found is None:
            raise ValueError(f"is not a path from {clip(visible(text[place:]), 20)!r} on")
        steps.append(found[1] or found[2] or found[3])
        place = found.end()
    if len(steps) > MAX_STEPS:
        raise ValueError(f"takes more than {MAX_STEPS} steps")
    return tuple(steps)


def value_at(whole: Any, steps: tuple[str, ...]) -> Any:
    """Give what stands at a path; `MISSING` when nothing does.

    Examples
    --------
    >>> value_at({"hosts": [{"name": "web-1"}]}, ("hosts", "0", "name"))
    'web-1'
    """
    return follow({"": whole}.get, ("", *steps))
