"""Values inside values: what handles and unions do upstream, written out as an author would."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runbook_nb._frozen import thaw
from runbook_nb._text import MISSING


def merges_alike(held: Any, partial: Any) -> bool:
    """Say whether our merge does what the recorded one does: no list stands on either side."""
    if not isinstance(partial, Mapping) or isinstance(held, list):
        return False
    if not isinstance(held, Mapping):
        return True
    return all(
        not (isinstance(value, list) and isinstance(held.get(key), list))
        and (
            not isinstance(value, Mapping)
            or not isinstance(held.get(key), Mapping | list)
            or merges_alike(held[key], value)
        )
        for key, value in partial.items()
    )


def union(held: Any, partial: Any) -> Any:
    """Merge as the recorded rule does (S10): lists unite, mappings merge, the rest replaces."""
    if partial is MISSING:
        return MISSING
    if isinstance(partial, list):
        if not isinstance(held, list) or not partial:
            return partial
        return [*held, *(item for item in partial if not any(_is(item, one) for one in held))]
    if isinstance(partial, Mapping):
        if isinstance(held, list):
            held = {str(place): item for place, item in enumerate(held)}
        held = dict(held) if isinstance(held, Mapping) else {}
        return {**held, **{key: union(held.get(key), value) for key, value in partial.items()}}
    return partial


def _is(a: Any, b: Any) -> bool:
    scalar = not isinstance(a, Mapping | list)
    return scalar and type(a) is type(b) and a == b


def crosses_list(held: Any, steps: list[Any]) -> bool:
    for step in steps:
        if isinstance(held, list):
            return True
        held = held.get(step) if isinstance(held, Mapping) else None
    return False


def inside(held: Any, steps: list[Any]) -> Any:
    for step in steps:
        if isinstance(held, list):
            place = int(step)
            held = held[place] if 0 <= place < len(held) else MISSING
        elif isinstance(held, Mapping):
            held = held.get(step, MISSING)
        else:
            return MISSING
    return held


def replaced(held: Any, steps: list[Any], value: Any) -> Any:
    """Give a copy with one place inside replaced, or removed."""
    root = thaw(held) if held is not MISSING else {}
    at = root
    for step in steps[:-1]:
        at = at[int(step) if isinstance(at, list) else step]
    last = int(steps[-1]) if isinstance(at, list) else steps[-1]
    if value is MISSING:
        if isinstance(at, list) or last in at:
            del at[last]
    elif isinstance(at, list) and last == len(at):
        at.append(value)
    else:
        at[last] = value
    return root
